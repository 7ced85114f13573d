"""OpenAI Agents' ``Session`` on a lab: a conversation's items are memories, in the order in which they came.

    from memlab.io.adapters.openai_agents import LabSession
    result = await Runner.run(agent, "Hello", session=LabSession("ada-1", memlab.open("agent.memlab")))

| Session | the lab |
|---|---|
| ``add_items`` | ``remember``, in one transaction: each item is a memory of kind "turn", of the session, by its role |
| ``get_items`` | a look at the state in the order of writing: history, not recall, so nothing is logged |
| ``pop_item``, ``clear_session`` | ``delete``: out of use, ``lab.restore`` brings it back |

What is said is found by ``lab.recall`` like any turn, in this session or from another one; calls and results of tools
are too, reasoning is not. Items come back as they were given, but for secrets in their texts, which are replaced before
they reach the disk. The package is not needed: a session has the methods that its protocol asks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from memlab.errors import InputError
from memlab.io.adapters._records import (
    Records,
    Write,
    clean_text,
    decoded,
    encoded,
    redacted,
    text_of,
    written,
)
from memlab.kernel.base.arguments import checked, describe_value
from memlab.kernel.privacy import personal_kinds
from memlab.kernel.state import is_blank
from memlab.subjects.lab import Lab

__all__ = ["LabSession"]

_PROVENANCE = {
    "user": "user-stated",
    "system": "user-stated",
    "developer": "user-stated",
    "tool": "observed",
}


class LabSession:
    """The history of one conversation. ``project`` and ``creator`` are given to each memory.

    The attribute ``session_settings`` may be set to the SDK's: its ``limit`` counts where ``get_items`` is given none.
    """

    session_settings: Any = None

    @checked
    def __init__(
        self,
        session_id: str,
        lab: Lab,
        *,
        project: str | None = None,
        creator: str | None = None,
    ) -> None:
        if is_blank(session_id):
            raise InputError("session_id is blank: a session needs a name.")
        self.session_id = session_id
        self._records = Records(lab, "openai-agents", project=project, creator=creator)

    @checked
    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items in the order in which they came: all of them, or the last ``limit``."""
        if limit is None:
            limit = getattr(self.session_settings, "limit", None)
            if not isinstance(limit, int | None):
                raise InputError(
                    f"session_settings.limit is a whole number, not {describe_value(limit)}."
                )
        records = await asyncio.to_thread(self._records.all_at, (self.session_id,))
        chosen = records if limit is None else records[max(0, len(records) - max(limit, 0)) :]
        return [decoded(record.value or "null") for record in chosen]

    @checked
    async def add_items(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Add items, all or none; durable when it returns. InputError for what JSON cannot say."""
        personal = personal_kinds(self._records.lab.policies.pack.settings)
        writes = [self._written(item, place, personal) for place, item in enumerate(items)]
        await asyncio.to_thread(self._records.append, writes, chain=True)

    async def pop_item(self) -> Any:
        """Take the last item away, and return it; None if there is none."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Take all items away."""
        await asyncio.to_thread(self._clear)

    def _clear(self) -> None:
        with self._records.lock:
            self._records.drop(self._records.all_at((self.session_id,)))

    def _pop(self) -> Any:
        with self._records.lock:
            last = self._records.all_at((self.session_id,))[-1:]
            self._records.drop(last)
        return decoded(last[0].value or "null") if last else None

    def _written(self, item: Any, place: int, personal: frozenset[str]) -> Write:
        if not isinstance(item, dict):
            raise InputError(
                f"Item {place} is a dict, as the SDK has them, not {describe_value(item)}."
            )
        encoded(item, f"item {place}")  # refuses what cannot be kept
        item = redacted(item, personal)
        role, text = _said(item)
        return written(
            (self.session_id,),
            clean_text(text, str(item.get("type") or role)),
            encoded(item, f"item {place}"),
            searched=bool(text.strip()),
            kind="turn",
            session=self.session_id,
            speaker=role,
            provenance=_PROVENANCE.get(role, "inferred"),
        )


def _said(item: Mapping[str, Any]) -> tuple[str, str]:
    """Whose an item is, and what of it is searched."""
    kind = item.get("type", "message")
    if kind == "message" and isinstance(item.get("role"), str):
        content = item.get("content")
        parts = content if isinstance(content, list) else [content]
        texts = [part if isinstance(part, str) else _text_in(part) for part in parts]
        return item["role"], "\n".join(filter(None, texts))
    if kind == "reasoning":
        return "assistant", ""
    if isinstance(kind, str) and kind.endswith("_output"):
        output = item.get("output")
        return "tool", output if isinstance(output, str) else text_of(output)
    if isinstance(item.get("name"), str):
        return "assistant", f"{item['name']}({item.get('arguments') or ''})"
    return "assistant", ""


def _text_in(part: Any) -> str | None:
    text = part.get("text", part.get("refusal")) if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else None
