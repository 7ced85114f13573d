"""OpenAI Agents' ``Session`` on a lab: items of a conversation are memories.

    from memlab.io.adapters.openai_agents import LabSession
    result = await Runner.run(agent, "Hello", session=LabSession("ada-1", memlab.open("agent.memlab")))

| Session | in the lab |
|---|---|
| ``add_items`` | ``remember`` in one transaction: each item is a memory of kind "turn", said by its role |
| ``get_items`` | reads the state in the order of writing; this is history, not recall, so nothing is logged |
| ``pop_item``, ``clear_session`` | ``delete``: excluded from recall; ``lab.restore`` restores it |

``lab.recall`` returns such turns in this and other sessions, including calls and results of tools, but not reasoning.
Items are returned unchanged except for secrets in their texts, which are replaced before they are stored. The SDK's
package is not needed: a session has the methods of its protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from memlab.errors import InputError
from memlab.io.adapters._records import (
    Records,
    Write,
    build_write,
    clean_text,
    decode_value,
    encode_value,
    join_texts,
    redact_value,
)
from memlab.kernel.base.arguments import checked, describe_value
from memlab.kernel.privacy import personal_kinds
from memlab.kernel.state import is_blank
from memlab.subjects.lab import Lab

# Provenance of a turn by role; answers of a model are inferred.
_PROVENANCE = {
    "user": "user-stated",
    "system": "user-stated",
    "developer": "user-stated",
    "tool": "observed",
}


class LabSession:
    """The history of one conversation, with the methods of OpenAI Agents' ``Session``.

    The attribute ``session_settings`` may be set to the SDK's; its ``limit`` is the default of ``get_items``.

    Parameters
    ----------
    session_id
        Name of the session.
    lab
        The lab that stores its items.
    project
        Project of each memory.
    creator
        Creator of each memory.

    Examples
    --------
    >>> import asyncio, memlab
    >>> from memlab.io.adapters.openai_agents import LabSession
    >>> session = LabSession("ada-1", memlab.open())
    >>> asyncio.run(session.add_items([{"role": "user", "content": "Hello"}]))
    >>> asyncio.run(session.get_items())
    [{'role': 'user', 'content': 'Hello'}]
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
            raise InputError("session_id is blank. Give the session a name.")
        self.session_id = session_id
        self._records = Records(lab, "openai-agents", project=project, creator=creator)

    @checked
    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items of the session, oldest first.

        Parameters
        ----------
        limit
            Number of latest items. Default: the limit in ``session_settings``, otherwise all.

        Returns
        -------
        list
            The items.

        Raises
        ------
        InputError
            If ``session_settings.limit`` is not an integer.
        """
        if limit is None:
            limit = getattr(self.session_settings, "limit", None)
            if not isinstance(limit, int | None):
                raise InputError(
                    f"session_settings.limit must be an integer, not {describe_value(limit)}."
                )
        records = await asyncio.to_thread(self._records.get_all, (self.session_id,))
        chosen = records if limit is None else records[max(0, len(records) - max(limit, 0)) :]
        return [decode_value(record.value or "null") for record in chosen]

    @checked
    async def add_items(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Append items to the session in one durable transaction.

        Parameters
        ----------
        items
            Items of the SDK, as dicts.

        Raises
        ------
        InputError
            If JSON cannot express an item.
        """
        personal = personal_kinds(self._records.lab.policies.pack.settings)
        writes = [self._build_item(item, index, personal) for index, item in enumerate(items)]
        await asyncio.to_thread(self._records.append, writes, chain=True)

    async def pop_item(self) -> Any:
        """Remove and return the session's last item.

        Returns
        -------
        Any
            The item; None if there is none.
        """
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Delete all items of the session."""
        await asyncio.to_thread(self._clear)

    def _clear(self) -> None:
        """Delete all items of the session."""
        with self._records.lock:
            self._records.drop(self._records.get_all((self.session_id,)))

    def _pop(self) -> Any:
        """Delete and return the last item of the session; return None for an empty session."""
        with self._records.lock:
            last = self._records.get_all((self.session_id,))[-1:]
            self._records.drop(last)
        return decode_value(last[0].value or "null") if last else None

    def _build_item(self, item: Any, index: int, personal: frozenset[str]) -> Write:
        """Build the record to write for an item, with secrets redacted."""
        if not isinstance(item, dict):
            raise InputError(f"Item {index} must be a dict of the SDK, not {describe_value(item)}.")
        encode_value(
            item, f"item {index}"
        )  # before anything is redacted, so that an error names the caller's value
        item = redact_value(item, personal)
        role, text = _split_item(item)
        return build_write(
            (self.session_id,),
            clean_text(text, str(item.get("type") or role)),
            encode_value(item, f"item {index}"),
            searched=bool(text.strip()),
            kind="turn",
            session=self.session_id,
            speaker=role,
            provenance=_PROVENANCE.get(role, "inferred"),
        )


def _split_item(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return the role of an item, and its searchable text."""
    kind = item.get("type", "message")
    if kind == "message" and isinstance(item.get("role"), str):
        content = item.get("content")
        parts = content if isinstance(content, list) else [content]
        texts = [part if isinstance(part, str) else _find_text(part) for part in parts]
        return item["role"], "\n".join(filter(None, texts))
    if kind == "reasoning":
        return "assistant", ""
    if isinstance(kind, str) and kind.endswith("_output"):
        output = item.get("output")
        return "tool", output if isinstance(output, str) else join_texts(output)
    if isinstance(item.get("name"), str):
        return "assistant", f"{item['name']}({item.get('arguments') or ''})"
    return "assistant", ""


def _find_text(part: Any) -> str | None:
    """Return the text or the refusal in a part of a message, or None for other parts."""
    text = part.get("text", part.get("refusal")) if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else None
