"""mem0's ``Memory`` on a lab: its calls, arguments and results, without the package and without a language model.

    from memlab.io.adapters.mem0 import Mem0Memory
    memory = Mem0Memory(memlab.open("agent.memlab"))
    memory.add("I prefer tea", user_id="ada")

| mem0 | the lab |
|---|---|
| ``add`` | ``remember``: a memory for each message, with ``infer`` for each that the pack's ``admit`` finds worth it |
| ``search`` | ``recall`` among what the filters admit: it leaves a slate; ``memory.hits`` has it for feedback |
| ``get``, ``get_all``, ``history`` | a look at the state; nothing is logged |
| ``update`` | ``edit``: the id stays, the versions before stay in the history |
| ``delete``, ``delete_all`` | ``delete``: out of use, ``lab.restore`` brings it back |

Where it differs: ``infer=True`` rewrites nothing and merges nothing, it leaves out what is not worth it; scores are
those of the live pack and not of a cosine, so ``threshold`` has no default; an id is made of what is added and when.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any

import polars as pl

from memlab.errors import InputError, UnknownName, did_you_mean
from memlab.io.adapters._records import (
    Path,
    Record,
    Records,
    Write,
    decoded,
    encoded,
    fits,
    these,
    written,
)
from memlab.kernel.base.arguments import AnyNumber, Count, checked, describe_value
from memlab.kernel.base.clock import from_micros
from memlab.kernel.recall import Hits
from memlab.subjects.lab import Lab

__all__ = ["Mem0Memory"]

_SCOPES = ("user_id", "agent_id", "run_id")
_KEPT = (*_SCOPES, "actor_id", "role", "expiration_date")
"""What mem0 shows beside a memory; the rest of what is given is in ``metadata``."""
_OPERATORS = ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "icontains")
_UNCHANGED = "unchanged"


class Mem0Memory:
    """Memories of users, agents and runs, as ``mem0.Memory`` has them.

    ``name`` sets one facade's memories apart; ``project`` is given to each, and narrows searches. InputError (a
    ValueError) where mem0 raises ValueError; UnknownName for an id that is not there.
    """

    @checked
    def __init__(self, lab: Lab, *, name: str = "mem0", project: str | None = None) -> None:
        self._records = Records(lab, name, project=project)

    @property
    def hits(self) -> Hits | None:
        """What the last search recalled: for ``lab.feedback`` and ``lab.agents.credits.answer``."""
        return self._records.hits

    @checked
    def add(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        expiration_date: str | date | None = None,
        infer: bool = True,
    ) -> dict[str, Any]:
        """Remember a text, or messages of ``role`` and ``content``; ``{"results": [{"id", "memory", "event"}]}``.

        One of the three ids is needed. System messages are left out. All or nothing is stored.
        """
        scope = _scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        own = dict(metadata or {})
        encoded(own, "metadata")
        for kept in _KEPT:
            own.pop(kept, None)  # who a memory belongs to is said by the arguments alone
        if expiration_date is not None:
            scope["expiration_date"] = _day(expiration_date)
        lab = self._records.lab
        with self._records.lock:
            head, writes = lab.io.store.journal.head, []
            for place, (role, actor, text) in enumerate(_messages(messages)):
                if role == "system" or (
                    infer and not lab.agents.admit(text, role=_role(role)).admitted
                ):
                    continue
                about = {
                    **scope,
                    "role": role,
                    **({"actor_id": actor} if actor else {}),
                    "metadata": own,
                }
                key = hashlib.sha256(json.dumps([head, place, text, about]).encode()).digest()
                path = (*_places(scope), str(uuid.UUID(bytes=key[:16], version=4)))
                writes.append(_written(path, text, about))
            added = self._records.append(writes)
        results = []
        for write, memory in zip(writes, added or (), strict=True):
            about = decoded(write.value or "{}")
            # the text as it is kept: a secret is redacted
            result = {"id": write.path[-1], "memory": memory.text, "event": "ADD"}
            results.append({**result, "role": about["role"], "actor_id": about.get("actor_id")})
        return {"results": results}

    @checked
    def search(
        self,
        query: str,
        *,
        top_k: Count = 20,
        filters: dict[str, Any] | None = None,
        threshold: Annotated[float, AnyNumber] | None = None,
        show_expired: bool = False,
    ) -> dict[str, Any]:
        """The memories that the live pack puts first, best first, each with its ``score``.

        ``filters`` name a user, agent or run, and may narrow by metadata with mem0's operators. ``threshold`` leaves
        out lower scores of what was shown.
        """
        whole = self._among(filters, show_expired=True)
        among = whole if show_expired else self._unexpired(whole)
        scope = _places(filters or {})
        if len(among) == len(whole) and len(scope) == len(filters or {}):
            where = self._records.below(())
            for place in scope:
                where &= pl.col("ref").str.contains(f",{json.dumps(place)},", literal=True)
        else:
            where = these(among)
        found = self._records.ask(query, top_k, where) if among else []
        kept = [
            (record, score) for record, score in found if threshold is None or score >= threshold
        ]
        return {"results": [{**_shown(record), "score": score} for record, score in kept]}

    @checked
    def get(self, memory_id: str) -> dict[str, Any] | None:
        """One memory; None if there is none."""
        path = self._records.ending(memory_id)
        record = None if path is None else self._records.at(path)
        return None if record is None else _shown(record)

    @checked
    def get_all(
        self,
        *,
        filters: dict[str, Any] | None = None,
        top_k: Count = 20,
        show_expired: bool = False,
    ) -> dict[str, Any]:
        """The first ``top_k`` memories of a user, agent or run, in the order in which they were added."""
        return {
            "results": [_shown(record) for record in self._among(filters, show_expired)[:top_k]]
        }

    @checked
    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: dict[str, Any] | None = None,
        expiration_date: str | date | None = _UNCHANGED,
    ) -> dict[str, str]:
        """Give a memory another text, other metadata (those that are named) or another day to expire (None: none)."""
        with self._records.lock:
            record = self._known(memory_id)
            about = _about(record)
            if metadata is not None:
                encoded(metadata, "metadata")
                own = {name: value for name, value in metadata.items() if name not in _KEPT}
                about["metadata"] = {**about["metadata"], **own}
            if expiration_date != _UNCHANGED:
                about["expiration_date"] = (
                    None if expiration_date is None else _day(expiration_date)
                )
            self._records.put([_written(record.path, record.text if text is None else text, about)])
        return {"message": "Memory updated successfully!"}

    @checked
    def delete(self, memory_id: str) -> dict[str, str]:
        """Delete one memory."""
        with self._records.lock:
            self._records.delete([self._known(memory_id)])
        return {"message": "Memory deleted successfully!"}

    @checked
    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Delete all memories of a user, agent or run, or of what all that is named have in common."""
        scope = _scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        with self._records.lock:
            self._records.delete(self._among(scope, show_expired=True))
        return {"message": "Memories deleted successfully!"}

    @checked
    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What became of a memory: a row for each text that it had, and one for its deletion.

        Changes of metadata alone are in ``lab.log``. Empty for an id that never was, or was purged.
        """
        rows: list[dict[str, Any]] = []
        before: str | None = None
        for record, status in self._records.versions(self._records.ending(memory_id) or ()):
            rows.append(_event(memory_id, "UPDATE" if rows else "ADD", before, record.text, record))
            before = record.text
            if status in ("deleted", "forgotten"):
                rows.append(_event(memory_id, "DELETE", before, None, record))
        return rows

    def _known(self, memory_id: str) -> Record:
        path = self._records.ending(memory_id)
        record = None if path is None else self._records.at(path)
        if record is None:
            raise UnknownName(
                "memory", memory_id, [one.path[-1] for one in self._records.under()[-5:]]
            )
        return record

    def _among(self, filters: Mapping[str, Any] | None, show_expired: bool) -> list[Record]:
        given = dict(filters or {})
        encoded(given, "filters")
        if not any(name in _SCOPES for name in _names(given)):
            raise InputError(f"filters needs at least one of {', '.join(_SCOPES)}.")
        found = []
        for record in self._records.under():
            about = _about(record)
            if _admits({**about["metadata"], **about}, given):
                found.append(record)
        return found if show_expired else self._unexpired(found)

    def _unexpired(self, records: list[Record]) -> list[Record]:
        today = from_micros(self._records.lab.io.store.clock()).date().isoformat()
        return [
            record
            for record in records
            if (_about(record).get("expiration_date") or today) >= today
        ]


def _scope(**ids: str | None) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    for name, value in ids.items():
        if value is not None:
            if not value.strip() or any(character.isspace() for character in value.strip()):
                raise InputError(f"{name} is a name without spaces, not {describe_value(value)}.")
            scope[name] = value.strip()
    if not scope:
        raise InputError(f"At least one of {', '.join(_SCOPES)} is needed: whose memory is it?")
    return scope


def _places(scope: Mapping[str, Any]) -> list[str]:
    """Whose a memory is, as names in its path, where a filter on the text of the path finds them whole."""
    return [f"{name}={scope[name]}" for name in _SCOPES if isinstance(scope.get(name), str)]


def _messages(messages: Any) -> list[tuple[str, str | None, str]]:
    """The role, name and text of each."""
    if isinstance(messages, str):
        return [("user", None, messages)]
    given = [messages] if isinstance(messages, Mapping) else messages
    if isinstance(given, bytes) or not isinstance(given, Sequence):
        raise InputError(
            f"messages is a text, a message or a list of messages, not {describe_value(messages)}."
        )
    found = []
    for place, message in enumerate(given):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InputError(
                f"Message {place} is a dict of role and content, not {describe_value(message)}."
            )
        content, name = message.get("content"), message.get("name")
        if isinstance(content, list):
            content = "\n".join(
                part["text"] for part in content if isinstance(part, Mapping) and _is_text(part)
            )
        if not isinstance(content, str) or not (name is None or isinstance(name, str)):
            raise InputError(
                f"Message {place}: content is a text or a list of parts with texts, and name a text."
            )
        found.append((message["role"], name, content))
    return found


def _is_text(part: Mapping[str, Any]) -> bool:
    return part.get("type", "text") == "text" and isinstance(part.get("text"), str)


def _role(role: str) -> str:
    return role if role in ("user", "assistant", "system", "tool") else "user"


def _day(given: Any) -> str:
    try:
        return (given if isinstance(given, date) else date.fromisoformat(given)).strftime(
            "%Y-%m-%d"
        )
    except (TypeError, ValueError):
        raise InputError(
            f"expiration_date is a day as YYYY-MM-DD, not {describe_value(given)}."
        ) from None


def _written(path: Path, text: str, about: dict[str, Any]) -> Write:
    user = about["role"] == "user"
    return written(
        path,
        text,
        encoded(about, "the memory"),
        kind="fact",
        speaker=about.get("actor_id") or about["role"],
        session=about.get("run_id"),
        provenance="user-stated" if user else "inferred",
    )


def _about(record: Record) -> dict[str, Any]:
    about: dict[str, Any] = decoded(record.value or '{"metadata": {}}')
    return about


def _shown(record: Record) -> dict[str, Any]:
    about = _about(record)
    item = {
        "id": record.path[-1],
        "memory": record.text,
        "hash": hashlib.md5(record.text.encode(), usedforsecurity=False).hexdigest(),
        "created_at": record.created.isoformat(),
        "updated_at": record.changed.isoformat(),
    }
    item |= {name: about[name] for name in _KEPT if about.get(name) is not None}
    return item | ({"metadata": about["metadata"]} if about["metadata"] else {})


def _event(id: str, event: str, old: str | None, new: str | None, record: Record) -> dict[str, Any]:
    about = _about(record)
    when = record.changed if event == "DELETE" else record.created
    return {
        "id": f"{record.id}-{event.lower()}",
        "memory_id": id,
        "old_memory": old,
        "new_memory": new,
        "event": event,
        "created_at": record.created.isoformat(),
        "updated_at": when.isoformat(),
        "is_deleted": event == "DELETE",
        "actor_id": about.get("actor_id"),
        "role": about.get("role"),
    }


# -- filters ------------------------------------------------------------------------------------------------------


def _names(filters: Mapping[str, Any]) -> list[str]:
    """The names that what is found must have: those below AND, not those below OR or NOT."""
    names = [
        name
        for name, value in filters.items()
        if name not in ("AND", "OR", "NOT") and value not in (None, "*")
    ]
    return names + [name for part in _parts(filters, "AND") for name in _names(part)]


def _parts(filters: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    parts = filters.get(name, [])
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise InputError(f"{name} in filters takes a list of filters, not {describe_value(parts)}.")
    return parts


def _admits(about: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    for name, wanted in filters.items():
        if name == "AND":
            fit = all(_admits(about, part) for part in _parts(filters, name))
        elif name == "OR":
            fit = any(_admits(about, part) for part in _parts(filters, name))
        elif name == "NOT":
            fit = not any(_admits(about, part) for part in _parts(filters, name))
        elif wanted == "*":
            fit = about.get(name) is not None
        else:
            if isinstance(wanted, Mapping) and not all(one in _OPERATORS for one in wanted):
                strange = next(one for one in wanted if one not in _OPERATORS)
                raise InputError(
                    f"There is no operator {describe_value(strange)}. {did_you_mean(str(strange), _OPERATORS)}"
                )
            fit = fits(about.get(name), wanted, _OPERATORS)
        if not fit:
            return False
    return True
