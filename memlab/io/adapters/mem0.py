"""mem0's ``Memory`` on a lab, without the package and without a language model.

    from memlab.io.adapters.mem0 import Mem0Memory
    memory = Mem0Memory(memlab.open("agent.memlab"))
    memory.add("I prefer tea", user_id="ada")

| mem0 | in the lab |
|---|---|
| ``add`` | ``remember``: a memory for each message; with ``infer`` only those that the pack's ``admit`` accepts |
| ``search`` | ``recall`` among the memories that the filters select: logged; ``memory.hits`` is for feedback |
| ``get``, ``get_all``, ``history`` | reads the state; nothing is logged |
| ``update`` | ``edit``: the id stays, earlier versions stay in the history |
| ``delete``, ``delete_all`` | ``delete``: excluded from recall; ``lab.restore`` restores it |

Differences: ``infer=True`` selects messages but neither rewrites nor merges them. Scores are those of the active pack
instead of a cosine, so that ``threshold`` has no default. An id is a hash of the text, its owner and the time.
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
    build_write,
    decode_value,
    encode_value,
    matches_filter,
)
from memlab.kernel.base.arguments import AnyNumber, Count, checked, describe_value
from memlab.kernel.base.clock import from_micros
from memlab.kernel.recall import Hits
from memlab.subjects.lab import Lab

__all__ = ["Mem0Memory"]

# Owners of a memory, in the order of their names in a path.
_SCOPES = ("user_id", "agent_id", "run_id")
_OWN_FIELDS = (*_SCOPES, "actor_id", "role", "expiration_date")
"""Fields that mem0 returns next to a memory; all others are ``metadata``."""
# Operators of mem0's filters.
_OPERATORS = ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "icontains")
# Default of an argument for which None has a meaning.
_UNCHANGED = "unchanged"


class Mem0Memory:
    """Memories of users, agents and runs with the methods of ``mem0.Memory``.

    Raises InputError (a ValueError) where mem0 raises ValueError, UnknownName for an id that does not exist.

    Parameters
    ----------
    lab
        The lab that stores the memories.
    name
        Name that separates these memories from others in the lab.
    project
        Project of each memory; searches are limited to it.

    Examples
    --------
    >>> import memlab
    >>> from memlab.io.adapters.mem0 import Mem0Memory
    >>> memory = Mem0Memory(memlab.open())
    >>> memory.add("I prefer tea", user_id="ada", infer=False)["results"][0]["event"]
    'ADD'
    """

    @checked
    def __init__(self, lab: Lab, *, name: str = "mem0", project: str | None = None) -> None:
        self._records = Records(lab, name, project=project)

    @property
    def hits(self) -> Hits | None:
        """The hits of the last search, or None.

        ``lab.feedback`` and ``lab.agents.credits.answer`` take them.
        """
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
        """Store a text or messages as memories in one transaction.

        System messages are omitted.

        Parameters
        ----------
        messages
            A text, a message with ``role`` and ``content``, or a list of messages.
        user_id, agent_id, run_id
            Owners of the memories; at least one is needed.
        metadata
            Other values by name.
        expiration_date
            The last day on which searches return the memories.
        infer
            Whether to store only the messages that the pack's ``admit`` accepts.

        Returns
        -------
        dict
            ``{"results": [{"id", "memory", "event", "role", "actor_id"}]}``.

        Raises
        ------
        InputError
            If no owner is given, or an argument is invalid.
        """
        scope = _build_scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        own = dict(metadata or {})
        encode_value(own, "metadata")
        for field in _OWN_FIELDS:
            own.pop(field, None)  # only the arguments decide who owns a memory
        if expiration_date is not None:
            scope["expiration_date"] = _format_day(expiration_date)
        lab = self._records.lab
        with self._records.lock:
            event_count, writes = lab.io.store.journal.head, []
            for index, (role, actor, text) in enumerate(_read_messages(messages)):
                if role == "system" or (
                    infer and not lab.agents.admit(text, role=_choose_role(role)).admitted
                ):
                    continue
                about = {
                    **scope,
                    "role": role,
                    **({"actor_id": actor} if actor else {}),
                    "metadata": own,
                }
                key = hashlib.sha256(
                    json.dumps([event_count, index, text, about]).encode()
                ).digest()
                path = (*_name_owners(scope), str(uuid.UUID(bytes=key[:16], version=4)))
                writes.append(_build_memory(path, text, about))
            added = self._records.append(writes)
        results = []
        for write, memory in zip(writes, added or (), strict=True):
            about = decode_value(write.value or "{}")
            # the stored text, in which secrets are redacted
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
        """Return the memories that the active pack ranks highest, with scores.

        Parameters
        ----------
        query
            The query.
        top_k
            Maximum number of results.
        filters
            A user, agent or run, and optionally metadata with mem0's operators.
        threshold
            Minimum score of a result.
        show_expired
            Include memories after their expiration date.

        Returns
        -------
        dict
            ``{"results": [...]}``, best first.

        Raises
        ------
        InputError
            If the filters name no owner, or an unknown operator.
        """
        selected = self._select(filters, show_expired=True)
        candidates = selected if show_expired else self._unexpired(selected)
        scope = _name_owners(filters or {})
        if len(candidates) == len(selected) and len(scope) == len(filters or {}):
            where = self._records.select_below(())
            for owner in scope:
                where &= pl.col("ref").str.contains(f",{json.dumps(owner)},", literal=True)
        else:
            where = self._records.select_records(candidates)
        results = self._records.recall(query, top_k, where) if candidates else []
        above_threshold = [
            (record, score) for record, score in results if threshold is None or score >= threshold
        ]
        return {
            "results": [
                {**_format_memory(record), "score": score} for record, score in above_threshold
            ]
        }

    @checked
    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return the memory with an id, or None if there is none.

        Parameters
        ----------
        memory_id
            Its id.

        Returns
        -------
        dict or None
            The memory.
        """
        path = self._records.find_path(memory_id)
        record = None if path is None else self._records.get(path)
        return None if record is None else _format_memory(record)

    @checked
    def get_all(
        self,
        *,
        filters: dict[str, Any] | None = None,
        top_k: Count = 20,
        show_expired: bool = False,
    ) -> dict[str, Any]:
        """Return memories of a user, agent or run, oldest first.

        Parameters
        ----------
        filters
            As for ``search``.
        top_k
            Maximum number of memories.
        show_expired
            Include memories after their expiration date.

        Returns
        -------
        dict
            ``{"results": [...]}``.

        Raises
        ------
        InputError
            If the filters name no owner, or an unknown operator.
        """
        return {
            "results": [
                _format_memory(record) for record in self._select(filters, show_expired)[:top_k]
            ]
        }

    @checked
    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: dict[str, Any] | None = None,
        expiration_date: str | date | None = _UNCHANGED,
    ) -> dict[str, str]:
        """Change text, metadata or expiration date of a memory.

        Parameters
        ----------
        memory_id
            Its id.
        text
            The new text. Default: unchanged.
        metadata
            Values to change, by name.
        expiration_date
            The new date; None removes it. Default: unchanged.

        Returns
        -------
        dict
            A message.

        Raises
        ------
        UnknownName
            If there is no such memory.
        """
        with self._records.lock:
            record = self._get_existing(memory_id)
            about = _read_metadata(record)
            if metadata is not None:
                encode_value(metadata, "metadata")
                own = {name: value for name, value in metadata.items() if name not in _OWN_FIELDS}
                about["metadata"] = {**about["metadata"], **own}
            if expiration_date != _UNCHANGED:
                about["expiration_date"] = (
                    None if expiration_date is None else _format_day(expiration_date)
                )
            self._records.put(
                [_build_memory(record.path, record.text if text is None else text, about)]
            )
        return {"message": "Memory updated successfully!"}

    @checked
    def delete(self, memory_id: str) -> dict[str, str]:
        """Delete one memory.

        Parameters
        ----------
        memory_id
            Its id.

        Returns
        -------
        dict
            A message.

        Raises
        ------
        UnknownName
            If there is no such memory.
        """
        with self._records.lock:
            self._records.delete([self._get_existing(memory_id)])
        return {"message": "Memory deleted successfully!"}

    @checked
    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Delete the memories of a user, agent or run.

        With several owners, only memories that belong to all of them are deleted.

        Parameters
        ----------
        user_id, agent_id, run_id
            The owners; at least one is needed.

        Returns
        -------
        dict
            A message.

        Raises
        ------
        InputError
            If no owner is given.
        """
        scope = _build_scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        with self._records.lock:
            self._records.delete(self._select(scope, show_expired=True))
        return {"message": "Memories deleted successfully!"}

    @checked
    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the history of a memory: a row for each text, and for its deletion.

        Changes of metadata alone are in ``lab.log``.

        Parameters
        ----------
        memory_id
            Its id.

        Returns
        -------
        list of dict
            The rows, oldest first; empty for an unknown or purged id.
        """
        rows: list[dict[str, Any]] = []
        before: str | None = None
        for record, status in self._records.versions(self._records.find_path(memory_id) or ()):
            rows.append(
                _format_event(memory_id, "UPDATE" if rows else "ADD", before, record.text, record)
            )
            before = record.text
            if status in ("deleted", "forgotten"):
                rows.append(_format_event(memory_id, "DELETE", before, None, record))
        return rows

    def _get_existing(self, memory_id: str) -> Record:
        """Return the record with an id, or raise UnknownName if there is none."""
        path = self._records.find_path(memory_id)
        record = None if path is None else self._records.get(path)
        if record is None:
            raise UnknownName("memory", memory_id, None)
        return record

    def _select(self, filters: Mapping[str, Any] | None, show_expired: bool) -> list[Record]:
        """Return the records that filters select, with expired ones if ``show_expired``."""
        conditions = dict(filters or {})
        encode_value(conditions, "filters")
        if not any(name in _SCOPES for name in _list_required(conditions)):
            raise InputError(f"filters must name at least one of {', '.join(_SCOPES)}.")
        selected = []
        for record in self._records.get_below():
            about = _read_metadata(record)
            if _is_selected({**about["metadata"], **about}, conditions):
                selected.append(record)
        return selected if show_expired else self._unexpired(selected)

    def _unexpired(self, records: list[Record]) -> list[Record]:
        """Return the records whose expiration date has not passed."""
        today = from_micros(self._records.lab.io.store.clock()).date().isoformat()
        return [
            record
            for record in records
            if (_read_metadata(record).get("expiration_date") or today) >= today
        ]


def _build_scope(**ids: str | None) -> dict[str, Any]:
    """Return the owners of a memory; InputError if there are none or one is invalid."""
    scope: dict[str, Any] = {}
    for name, value in ids.items():
        if value is not None:
            if not value.strip() or any(character.isspace() for character in value.strip()):
                raise InputError(
                    f"{name} must be a name without spaces, not {describe_value(value)}."
                )
            scope[name] = value.strip()
    if not scope:
        raise InputError(f"Give at least one of {', '.join(_SCOPES)}, the owner of the memory.")
    return scope


def _name_owners(scope: Mapping[str, Any]) -> list[str]:
    """Return ``name=value`` for each user, agent or run id that a filter requires."""
    return [f"{name}={scope[name]}" for name in _SCOPES if isinstance(scope.get(name), str)]


def _read_messages(messages: Any) -> list[tuple[str, str | None, str]]:
    """Return the role, the speaker's name and the text of each message."""
    if isinstance(messages, str):
        return [("user", None, messages)]
    items = [messages] if isinstance(messages, Mapping) else messages
    if isinstance(items, bytes) or not isinstance(items, Sequence):
        raise InputError(
            f"messages must be a text, a message or a list of messages, not {describe_value(messages)}."
        )
    parsed = []
    for index, message in enumerate(items):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InputError(
                f"Message {index} must be a dict with role and content, not {describe_value(message)}."
            )
        content, name = message.get("content"), message.get("name")
        if isinstance(content, list):
            content = "\n".join(
                part["text"] for part in content if isinstance(part, Mapping) and _is_text(part)
            )
        if not isinstance(content, str) or not (name is None or isinstance(name, str)):
            raise InputError(
                f"Message {index}: content must be a text or a list of parts with texts, and name a text."
            )
        parsed.append((message["role"], name, content))
    return parsed


def _is_text(part: Mapping[str, Any]) -> bool:
    """Return whether a part of a message is a text."""
    return part.get("type", "text") == "text" and isinstance(part.get("text"), str)


def _choose_role(role: str) -> str:
    """Map a role of mem0 to a role of memlab; unknown roles become "user"."""
    return role if role in ("user", "assistant", "system", "tool") else "user"


def _format_day(value: Any) -> str:
    """Return a day as YYYY-MM-DD, or raise InputError for an invalid one."""
    try:
        return (value if isinstance(value, date) else date.fromisoformat(value)).strftime(
            "%Y-%m-%d"
        )
    except (TypeError, ValueError):
        raise InputError(
            f"expiration_date must be a day as YYYY-MM-DD, not {describe_value(value)}."
        ) from None


def _build_memory(path: Path, text: str, about: dict[str, Any]) -> Write:
    """Build the record to write for a memory of mem0."""
    user = about["role"] == "user"
    return build_write(
        path,
        text,
        encode_value(about, "the memory"),
        kind="fact",
        speaker=about.get("actor_id") or about["role"],
        session=about.get("run_id"),
        provenance="user-stated" if user else "inferred",
    )


def _read_metadata(record: Record) -> dict[str, Any]:
    """Return owners, role, metadata and expiration date of a record."""
    about: dict[str, Any] = decode_value(record.value or '{"metadata": {}}')
    return about


def _format_memory(record: Record) -> dict[str, Any]:
    """Convert a memory to the dict that mem0 returns."""
    about = _read_metadata(record)
    item = {
        "id": record.path[-1],
        "memory": record.text,
        "hash": hashlib.md5(record.text.encode(), usedforsecurity=False).hexdigest(),
        "created_at": record.created.isoformat(),
        "updated_at": record.changed.isoformat(),
    }
    item |= {name: about[name] for name in _OWN_FIELDS if about.get(name) is not None}
    return item | ({"metadata": about["metadata"]} if about["metadata"] else {})


def _format_event(
    id: str, event: str, old: str | None, new: str | None, record: Record
) -> dict[str, Any]:
    """Convert a history event to the dict that mem0 returns."""
    about = _read_metadata(record)
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


def _list_required(filters: Mapping[str, Any]) -> list[str]:
    """List the fields that a filter requires, at top level or inside AND."""
    names = [
        name
        for name, value in filters.items()
        if name not in ("AND", "OR", "NOT") and value not in (None, "*")
    ]
    return names + [name for part in _read_filters(filters, "AND") for name in _list_required(part)]


def _read_filters(filters: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the filters in AND, OR or NOT, or raise InputError for other values."""
    parts = filters.get(name, [])
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise InputError(
            f"{name} in filters must be a list of filters, not {describe_value(parts)}."
        )
    return parts


def _is_selected(about: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Return whether a memory satisfies the filters."""
    # conditions of one dict are joined by "and"; AND, OR and NOT take lists of such dicts
    for name, condition in filters.items():
        if name == "AND":
            fits = all(_is_selected(about, part) for part in _read_filters(filters, name))
        elif name == "OR":
            fits = any(_is_selected(about, part) for part in _read_filters(filters, name))
        elif name == "NOT":
            fits = not any(_is_selected(about, part) for part in _read_filters(filters, name))
        elif condition == "*":
            fits = about.get(name) is not None
        else:
            if isinstance(condition, Mapping) and not all(
                operator in _OPERATORS for operator in condition
            ):
                unknown = next(operator for operator in condition if operator not in _OPERATORS)
                raise InputError(
                    f"There is no operator {describe_value(unknown)}. {did_you_mean(str(unknown), _OPERATORS)}"
                )
            fits = matches_filter(about.get(name), condition, _OPERATORS)
        if not fits:
            return False
    return True
