"""mem0's ``Memory`` on a lab, without the package and without a language model.

    from memlab.io.adapters.mem0 import Mem0Memory
    memory = Mem0Memory(memlab.open("agent.memlab"))
    memory.add("I prefer tea", user_id="ada")

``AsyncMem0Memory`` has the same methods as coroutines, like mem0's ``AsyncMemory``.

| mem0 | in the lab |
|---|---|
| ``add`` | ``remember``: a memory for each message; with ``infer`` only those that the pack's ``admit`` accepts |
| ``search`` | ``recall`` among the memories that the filters select: logged; ``memory.hits`` is for feedback |
| ``get``, ``get_all``, ``history`` | reads the state; nothing is logged |
| ``update`` | ``edit``: the id stays, earlier versions stay in the history |
| ``delete``, ``delete_all`` | ``delete``: excluded from recall; ``lab.restore`` restores it |

Arguments, checks and error messages equal those of mem0 2.2. Differences: ``infer=True`` selects messages and neither
rewrites nor merges them. Scores come from the active pack and are not cosines, so ``threshold`` has no default.
``timestamp`` and ``reference_date``, which mem0 supports on its platform only, are the time of a memory and of a search.
An id is a hash of the text, its owner and the time.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import logging
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Any, NoReturn, Self, TypeVar

import polars as pl

from memlab.errors import InputError, did_you_mean
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
from memlab.kernel.base.arguments import AnyNumber, checked, describe_value
from memlab.kernel.base.clock import When, from_micros
from memlab.kernel.recall import Hits
from memlab.kernel.state import is_blank
from memlab.subjects.lab import Lab
from memlab.subjects.opening import open_lab

_logger = logging.getLogger(__name__)
# The value of mem0's ``memory_type``.
_PROCEDURAL = "procedural_memory"

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

    Raises InputError (a ValueError) where mem0 raises ValueError.

    Parameters
    ----------
    lab
        The lab that stores the memories.
    name
        Name that separates these memories from others in the lab.
    project
        Project of each memory. Searches are limited to this project.

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
        self._owns_lab = False

    @classmethod
    @checked
    def from_config(cls, config_dict: dict[str, Any]) -> Self:
        """Open a lab from a configuration of mem0; ``close`` closes the lab.

        Parameters
        ----------
        config_dict
            ``{"vector_store": {"provider": "memlab", "config": {"path": "agent.memlab"}}}``. Other values of the
            inner ``config`` are ``name``, ``project``, and the arguments of ``memlab.open``. Without a path, the lab
            is in memory.

        Returns
        -------
        Mem0Memory
            The memory.

        Raises
        ------
        InputError
            If the configuration names another provider, or configures what a lab does not use.

        Examples
        --------
        >>> from memlab.io.adapters.mem0 import Mem0Memory
        >>> with Mem0Memory.from_config({"vector_store": {"provider": "memlab"}}) as memory:
        ...     memory.get_all(filters={"user_id": "ada"})
        {'results': []}
        """
        config = {key: value for key, value in config_dict.items() if key != "version"}
        store = config.pop("vector_store", {})
        if config or not isinstance(store, Mapping) or store.get("provider", "memlab") != "memlab":
            raise InputError(
                "memlab reads only "
                f'{{"vector_store": {{"provider": "memlab", "config": {{"path": ...}}}}}}: '
                "a lab calls no language model and has its own embedder. Remove "
                f"{', '.join(config) or 'the other provider'}."
            )
        options = dict(store.get("config") or {})
        names = {key: options.pop(key) for key in ("name", "project") if key in options}
        lab = open_lab(options.pop("path", None), **options)
        try:
            memory = cls(lab, **names)
        except BaseException:
            lab.close()
            raise
        memory._owns_lab = True
        return memory

    def close(self) -> None:
        """Close the lab if ``from_config`` opened it; leave a lab that was passed in open."""
        if self._owns_lab:
            self._records.lab.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reset(self) -> None:
        """Delete all memories of this facade; ``lab.restore`` restores them."""
        with self._records.lock:
            self._records.delete(self._records.get_below())

    @checked
    def chat(self, query: str) -> NoReturn:
        """Raise NotImplementedError, because mem0 does not implement chats either.

        Parameters
        ----------
        query
            Unused.

        Raises
        ------
        NotImplementedError
            Always: a lab has no language model.
        """
        raise NotImplementedError("Chat function not implemented yet.")

    @property
    def hits(self) -> Hits | None:
        """The hits of the last search, or None before the first search.

        ``lab.feedback`` and ``lab.agents.credits.answer`` take them.
        """
        return self._records.hits

    @checked
    def add(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        metadata: dict[str, Any] | None = None,
        timestamp: str | float | datetime | None = None,
        expiration_date: str | date | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        filters: dict[str, Any] | None = None,
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
        timestamp
            When the messages were said: a time, a text, or seconds since 1970. Default: now.
        expiration_date
            The last day on which searches return the memories.
        infer
            Whether to store only the messages that the pack's ``admit`` accepts.
        memory_type
            "procedural_memory", which needs ``agent_id``, stores all messages as one memory of kind "procedure".
        prompt
            Not supported, because no language model reads it.
        filters
            The owners by name, as mem0's platform has them.

        Returns
        -------
        dict
            ``{"results": [{"id", "memory", "event", "role", "actor_id"}]}``.

        Raises
        ------
        InputError
            If no owner is given, or an argument is invalid.
        """
        owners = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        for field, owner in (filters or {}).items():
            if field not in owners:
                raise InputError(
                    f"{describe_value(field)} is not an owner field of a memory. {did_you_mean(field, owners)}"
                )
            owners[field] = owner if owners[field] is None else owners[field]
        scope = _build_scope(**owners)
        if not scope:
            raise InputError("At least one of 'user_id', 'agent_id', or 'run_id' must be provided.")
        if memory_type not in (None, _PROCEDURAL):
            raise InputError(
                f"Invalid 'memory_type'. Please pass {_PROCEDURAL} to create procedural memories."
            )
        if prompt is not None:
            raise InputError(
                "prompt= instructs a language model, but this Memory calls none. Omit it."
            )
        times = {} if timestamp is None else {"at": _read_time(timestamp, "timestamp")}
        own = dict(metadata or {})
        encode_value(own, "metadata")
        for field in _OWN_FIELDS:
            own.pop(field, None)  # only the arguments decide who owns a memory
        if expiration_date is not None:
            scope["expiration_date"] = _format_day(expiration_date)
        lab = self._records.lab
        with self._records.lock:
            event_count, writes = lab.io.store.journal.head, []
            parsed = _read_messages(messages)
            procedural = "agent_id" in scope and memory_type == _PROCEDURAL
            if procedural:
                text = "\n".join(text for role, _, text in parsed if role != "system")
                parsed = [("assistant", None, text)] if text.strip() else []
            for index, (role, actor, text) in enumerate(parsed):
                if role == "system" or (
                    infer
                    and not procedural
                    and not lab.agents.admit(text, role=_choose_role(role)).admitted
                ):
                    continue
                about = {
                    **scope,
                    "role": role,
                    **({"actor_id": actor} if actor else {}),
                    **({"memory_type": _PROCEDURAL} if procedural else {}),
                    "metadata": own,
                }
                key = hashlib.sha256(
                    json.dumps([event_count, index, text, about]).encode()
                ).digest()
                path = (*_name_owners(scope), str(uuid.UUID(bytes=key[:16], version=4)))
                writes.append(_build_memory(path, text, about, **times))
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
        top_k: int = 20,
        filters: dict[str, Any] | None = None,
        threshold: Annotated[float, AnyNumber] | None = None,
        rerank: bool = False,
        explain: bool = False,
        reference_date: str | float | datetime | None = None,
        show_expired: bool = False,
        **kwargs: Any,
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
            Minimum score of a result, from 0 to 1.
        rerank
            Without effect: the pack has ranked the results already.
        explain
            Whether each result has ``score_details``, the terms of its score by name.
        reference_date
            The time of the search. Default: now.
        show_expired
            Include memories after their expiration date.
        **kwargs
            Refused: owners belong into ``filters``.

        Returns
        -------
        dict
            ``{"results": [...]}``, best first.

        Raises
        ------
        InputError
            If the filters name no owner, or an unknown operator.
        """
        _refuse_keywords(kwargs, "search")
        if threshold is not None and not 0 <= threshold <= 1:
            raise InputError(
                f"Invalid threshold: {threshold}. Must be between 0 and 1 (inclusive)."
            )
        _check_top_k(top_k)
        if is_blank(query):
            raise InputError("Invalid query: cannot be empty or whitespace-only.")
        at = None if reference_date is None else _read_time(reference_date, "reference_date")
        conditions = _check_filters(filters)
        if set(conditions) <= set(_list_owners(conditions)):
            # Columns select faster than Python, which would read each memory.
            where = self._records.select_below(())
            for owner in _name_owners(conditions):
                where &= pl.col("ref").str.contains(f",{json.dumps(owner)},", literal=True)
            if not show_expired:
                expires = pl.col("context").str.json_path_match("$.expiration_date")
                where &= expires.is_null() | (expires >= self._today())
        else:
            where = self._records.select_where(*self._build_tests(conditions, show_expired))
        results = self._records.recall(query.strip(), top_k, where, at=at)
        hits, items = self._records.hits, []
        for record, score in results:
            item = {**_format_memory(record), "score": score}
            if explain and hits is not None:
                parts = hits.explain(record.id).parts
                item["score_details"] = {name: value for _, name, value in parts if value}
            if threshold is None or score >= threshold:
                items.append(item)
        return {"results": items}

    @checked
    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return the memory with an id, or None if the id is unknown.

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
        top_k: int = 20,
        show_expired: bool = False,
        **kwargs: Any,
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
        **kwargs
            Refused: owners belong into ``filters``.

        Returns
        -------
        dict
            ``{"results": [...]}``.

        Raises
        ------
        InputError
            If the filters name no owner, or an unknown operator.
        """
        _refuse_keywords(kwargs, "get_all")
        _check_top_k(top_k)
        selected = self._records.select(
            *self._build_tests(_check_filters(filters), show_expired), top_k
        )
        return {"results": [_format_memory(record) for record in selected]}

    @checked
    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: dict[str, Any] | None = None,
        expiration_date: str | date | None = _UNCHANGED,
        data: str | None = None,
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
        data
            Deprecated name of ``text``.

        Returns
        -------
        dict
            A message.

        Raises
        ------
        InputError
            If there is no such memory, or nothing to change.
        """
        if data is not None:
            _logger.warning("The argument `data` of update() is deprecated. Use `text` instead.")
            text = data if text is None else text
        if text is None and metadata is None and expiration_date == _UNCHANGED:
            raise InputError("At least one of text, metadata, or expiration_date must be provided.")
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
        InputError
            If there is no such memory.
        """
        with self._records.lock:
            self._records.delete([self._get_existing(memory_id)])
        return {"message": "Memory deleted successfully!"}

    @checked
    def delete_all(
        self, user_id: Any = None, agent_id: Any = None, run_id: Any = None
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
        if not scope:
            raise InputError(
                "At least one filter is required to delete all memories. If you want to delete all memories, use the "
                "`reset()` method."
            )
        with self._records.lock:
            self._records.delete(self._records.select(*self._build_tests(scope, show_expired=True)))
        return {"message": "Memories deleted successfully!"}

    @checked
    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return a memory's history: an event for each version of the text and for a deletion.

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
        """Return the record with an id, or raise InputError if the id is unknown."""
        path = self._records.find_path(memory_id)
        record = None if path is None else self._records.get(path)
        if record is None:
            raise InputError(
                f"Memory with id {memory_id} not found. Take an id that add, search or get_all returned."
            )
        return record

    def _build_tests(
        self, conditions: Mapping[str, Any], show_expired: bool
    ) -> tuple[Callable[[str], bool], Callable[[str | None], bool]]:
        """Return two predicates for mem0's conditions: one for the ref, one for the stored JSON value of a record.

        The second also tests the expiration date, unless expired records are to be returned.
        """
        owners = [f",{json.dumps(owner)}," for owner in _name_owners(conditions)]
        today = "" if show_expired else self._today()

        def is_wanted(value: str | None) -> bool:
            """Return whether owners, metadata and expiration date of a memory satisfy the conditions."""
            about: dict[str, Any] = decode_value(value or '{"metadata": {}}')
            return (about.get("expiration_date") or today) >= today and _is_selected(
                {**about["metadata"], **about}, conditions
            )

        return lambda ref: all(owner in ref for owner in owners), is_wanted

    def _today(self) -> str:
        """Return the current day by the lab's clock, as YYYY-MM-DD."""
        return from_micros(self._records.lab.io.store.clock()).date().isoformat()


_Answer = TypeVar("_Answer")


def _in_thread(method: Callable[..., _Answer]) -> Callable[..., Coroutine[Any, Any, _Answer]]:
    """Return a coroutine function that calls a method of the memory in a thread."""

    @functools.wraps(method)
    async def call(self: AsyncMem0Memory, *args: Any, **kwargs: Any) -> _Answer:
        return await asyncio.to_thread(method, self.memory, *args, **kwargs)

    return call


class AsyncMem0Memory:
    """The methods of ``Mem0Memory`` as coroutines, like mem0's ``AsyncMemory``.

    ``agent_framework_mem0.Mem0ContextProvider`` takes it as ``mem0_client``.

    Parameters
    ----------
    lab
        The lab that stores the memories.
    name
        Name that separates these memories from others in the lab.
    project
        Project of each memory. Searches are limited to this project.

    Examples
    --------
    >>> import asyncio, memlab
    >>> from memlab.io.adapters.mem0 import AsyncMem0Memory
    >>> memory = AsyncMem0Memory(memlab.open())
    >>> asyncio.run(memory.get_all(filters={"user_id": "ada"}))
    {'results': []}
    """

    @checked
    def __init__(self, lab: Lab, *, name: str = "mem0", project: str | None = None) -> None:
        self.memory = Mem0Memory(lab, name=name, project=project)

    @classmethod
    @checked
    def from_config(cls, config_dict: dict[str, Any]) -> Self:
        """Open a lab from a configuration of mem0; ``close`` closes the lab.

        Parameters
        ----------
        config_dict
            As for ``Mem0Memory.from_config``.

        Returns
        -------
        AsyncMem0Memory
            The memory.
        """
        memory = cls.__new__(cls)
        memory.memory = Mem0Memory.from_config(config_dict)
        return memory

    @property
    def hits(self) -> Hits | None:
        """The hits of the last search, or None before the first search."""
        return self.memory.hits

    def close(self) -> None:
        """Close the lab if ``from_config`` opened it."""
        self.memory.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.memory.close)

    add = _in_thread(Mem0Memory.add)
    search = _in_thread(Mem0Memory.search)
    get = _in_thread(Mem0Memory.get)
    get_all = _in_thread(Mem0Memory.get_all)
    update = _in_thread(Mem0Memory.update)
    delete = _in_thread(Mem0Memory.delete)
    delete_all = _in_thread(Mem0Memory.delete_all)
    history = _in_thread(Mem0Memory.history)
    reset = _in_thread(Mem0Memory.reset)
    chat = _in_thread(Mem0Memory.chat)


# -- arguments ------------------------------------------------------------------------------------------------------


def _build_scope(**ids: Any) -> dict[str, Any]:
    """Return the owners that are not None as texts; raise InputError for an invalid owner."""
    return {name: _check_owner(value, name) for name, value in ids.items() if value is not None}


def _check_owner(value: Any, name: str) -> str:
    """Return an owner as a text without surrounding spaces; raise InputError if blank or with inner spaces."""
    owner = str(value).strip()
    if not owner:
        raise InputError(
            f"Invalid {name}: cannot be empty or whitespace-only. Provide a valid identifier."
        )
    if any(character.isspace() for character in owner):
        raise InputError(
            f"Invalid {name}: cannot contain whitespace. Provide a valid identifier without spaces."
        )
    return owner


def _check_filters(filters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the filters as a new dict with owners as texts; raise InputError if no owner is required.

    An owner counts if it is required at top level or inside AND.
    """
    conditions = dict(filters or {})
    for name in _SCOPES:
        if not isinstance(conditions.get(name), Mapping | None):
            conditions[name] = _check_owner(conditions[name], name)
    encode_value(conditions, "filters")
    if not any(name in _SCOPES for name in _list_required(conditions)):
        raise InputError(
            f"filters must contain at least one of: {', '.join(_SCOPES)}. Example: filters={{'user_id': 'u1'}}. "
            "A filter inside OR or NOT, or with the value '*', does not count."
        )
    return conditions


def _check_top_k(top_k: int) -> None:
    """Raise InputError for a negative number of results."""
    if top_k < 0:
        raise InputError(f"Invalid top_k: {top_k}. Must be a non-negative integer.")


def _refuse_keywords(kwargs: Mapping[str, Any], method: str) -> None:
    """Raise InputError for owners outside ``filters``, and for unknown arguments."""
    owners = set(kwargs) & set(_SCOPES)
    if owners:
        raise InputError(
            f"Top-level entity parameters {owners} are not supported in {method}(). "
            "Use filters={'user_id': '...'} instead."
        )
    if kwargs:
        raise InputError(f"{method}() has no argument {describe_value(next(iter(kwargs)))}.")


def _read_time(value: str | float | datetime, name: str) -> When:
    """Convert a number of seconds since 1970 to a datetime; return any other value unchanged."""
    if isinstance(value, int | float):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (OverflowError, OSError, ValueError):
            raise InputError(f"{name} must be a time, not {describe_value(value)}.") from None
    return value


def _name_owners(scope: Mapping[str, Any]) -> list[str]:
    """Return a text ``name=value`` for each user, agent or run that a filter requires."""
    return [f"{name}={scope[name]}" for name in _list_owners(scope)]


def _list_owners(scope: Mapping[str, Any]) -> list[str]:
    """Return the names of the owners that a filter sets to one value, in path order."""
    return [name for name in _SCOPES if isinstance(scope.get(name), str) and scope[name] != "*"]


def _read_messages(messages: Any) -> list[tuple[str, str | None, str]]:
    """Return the role, the speaker's name (None without a name) and the text of each message."""
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
    """Return a day as YYYY-MM-DD, or raise InputError for an invalid day."""
    try:
        return (value if isinstance(value, date) else date.fromisoformat(value)).strftime(
            "%Y-%m-%d"
        )
    except (TypeError, ValueError):
        raise InputError(
            f"expiration_date must be a day as YYYY-MM-DD, not {describe_value(value)}."
        ) from None


def _build_memory(path: Path, text: str, about: dict[str, Any], **fields: Any) -> Write:
    """Build the record to write for a memory of mem0."""
    user = about["role"] == "user"
    return build_write(
        path,
        text,
        encode_value(about, "the memory"),
        kind="procedure" if about.get("memory_type") == _PROCEDURAL else "fact",
        speaker=about.get("actor_id") or about["role"],
        session=about.get("run_id"),
        provenance="user-stated" if user else "inferred",
        **fields,
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
    """List the fields for which a filter requires a value, at top level or inside AND.

    The conditions None and "*" require no certain value, so their fields are left out.
    """
    names = [
        name
        for name, value in filters.items()
        if name not in ("AND", "OR", "NOT") and value not in (None, "*")
    ]
    return names + [name for part in _read_filters(filters, "AND") for name in _list_required(part)]


def _read_filters(filters: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the list of filters in AND, OR or NOT, or [] without it; raise InputError for another value."""
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
