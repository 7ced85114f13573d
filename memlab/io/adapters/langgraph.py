"""LangGraph's ``BaseStore`` on a lab: items are memories, searches are recalls.

    from memlab.io.adapters.langgraph import LabStore
    graph = builder.compile(store=LabStore(memlab.open("agent.memlab")))

| LangGraph | in the lab |
|---|---|
| ``put`` of a new key | ``remember``: the value is stored as JSON, its texts at ``fields`` or ``index`` are searched |
| ``put`` of an existing key | ``edit``: earlier versions stay in the history |
| ``delete`` | ``delete``: excluded from recall; ``lab.restore`` restores it, ``lab.purge(overdue=True)`` removes it |
| ``search`` with a query | ``recall``: logged and counted as a use; ``store.hits`` is for feedback |
| ``search`` with an ``offset`` | a ``recall`` among what earlier pages did not show |
| ``search`` without a query, ``get``, ``list_namespaces`` | reads the state; nothing is logged |

Namespace and key together are the ``ref`` of the memory, a JSON array, so that no label can leave its namespace. Labels
contain no periods, as in LangGraph. The method ``batch`` reads first and then writes, as LangGraph's own stores do. The
last of several puts of one key counts, and new keys are one transaction. A value with a secret is refused
(PrivacyError). So is a time to live (InputError): in LangGraph it restarts with each read, while ``ttl_days`` counts
from the creation.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from memlab.errors import InputError, require_extra
from memlab.io.adapters._records import (
    Record,
    Records,
    Write,
    build_write,
    clean_text,
    decode_value,
    encode_value,
    join_texts,
    matches_filter,
)
from memlab.kernel.base.arguments import checked, describe_value
from memlab.kernel.recall import Hits
from memlab.kernel.state import is_blank
from memlab.subjects.lab import Lab

with require_extra("langgraph", "memlab.io.adapters.langgraph"):
    from langgraph.store.base import (
        NOT_PROVIDED,
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        NotProvided,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )

# Operators of LangGraph, written with "$".
_OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte")
# Texts of an item that are searched separately; an item with more of them is a list rather than a record.
_MAX_TEXTS = 16


class LabStore(BaseStore):
    """A ``BaseStore`` of LangGraph whose items are memories of a lab.

    ``put(..., index=False)`` stores an item that no search with a query returns.

    Parameters
    ----------
    lab
        The lab that stores the items.
    name
        Name that separates these items from others in the lab.
    fields
        JSON paths of the searched texts, unless a ``put`` names others; "$" is the whole value.
        Each text is searched separately, and the best score of an item counts.
    project
        Project of each memory. Searches are limited to this project.
    creator
        Creator of each memory.

    Examples
    --------
    >>> store.put(("users", "ada"), "food", {"likes": "pizza"})                            # doctest: +SKIP
    >>> store.search(("users",), query="what to order?")                                   # doctest: +SKIP
    """

    supports_ttl = False

    @checked
    def __init__(
        self,
        lab: Lab,
        *,
        name: str = "langgraph",
        fields: Iterable[str] = ("$",),
        project: str | None = None,
        creator: str | None = None,
    ) -> None:
        self._records = Records(lab, name, project=project, creator=creator)
        self._fields = list(fields)

    @property
    def hits(self) -> Hits | None:
        """The hits of the last search with a query, or None before the first such search.

        ``lab.feedback`` and ``lab.agents.verify`` take them.
        """
        return self._records.hits

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute LangGraph operations: first the reads, then the writes.

        Parameters
        ----------
        ops
            Operations of LangGraph.

        Returns
        -------
        list
            The result of each operation, in order.

        Raises
        ------
        InputError
            If an operation is invalid.
        """
        operations = list(ops)
        for op in operations:
            validate_op_namespace(op)
        results = [self._run_read(op) for op in operations]
        puts = {(*op.namespace, op.key): op for op in operations if isinstance(op, PutOp)}
        if puts:
            writes = [
                self._build_item(path, op) for path, op in puts.items() if op.value is not None
            ]
            with self._records.lock:
                deleted = [self._records.get(path) for path, op in puts.items() if op.value is None]
                self._records.put(writes)
                self._records.delete(record for record in deleted if record is not None)
        return results

    def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Store an item, replacing the item with the same key.

        Parameters
        ----------
        namespace
            Labels of the namespace.
        key
            Key of the item.
        value
            Its value, a dict.
        index
            JSON paths of the searched texts; False for none. Default: ``fields`` of the store.
        ttl
            Not supported.

        Raises
        ------
        InputError
            If the value is not JSON, or ``ttl`` is given.
        PrivacyError
            If the value contains a secret.
        """
        _refuse_ttl(ttl)
        super().put(namespace, key, value, index, ttl=ttl)

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Store or replace an item without blocking the event loop.

        Parameters
        ----------
        namespace, key, value, index, ttl
            As for ``put``.

        Raises
        ------
        InputError
            If the value is not JSON, or ``ttl`` is given.
        """
        _refuse_ttl(ttl)
        await super().aput(namespace, key, value, index, ttl=ttl)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations without blocking the event loop.

        Parameters
        ----------
        ops
            Operations of LangGraph.

        Returns
        -------
        list
            The result of each operation, in order.
        """
        return await asyncio.to_thread(self.batch, list(ops))

    def _run_read(self, op: Op) -> Result:
        """Execute a get, search or list operation; return None for a put."""
        if isinstance(op, GetOp):
            record = self._records.get((*op.namespace, op.key))
            return None if record is None else Item(**_item(record))
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._list_namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise InputError(
            f"{type(op).__name__} is not an operation of a LangGraph store. "
            "Pass GetOp, SearchOp, PutOp or ListNamespacesOp."
        )

    def _build_item(self, path: tuple[str, ...], op: PutOp) -> Write:
        """Build the record to write for a put operation."""
        _refuse_ttl(op.ttl)
        where = "/".join(path)
        if not isinstance(op.value, dict):
            raise InputError(f"The value of {where} must be a dict, not {type(op.value).__name__}.")
        if op.index is not None and op.index is not False and not _are_texts(op.index):
            raise InputError(
                f"index must be False or a list of JSON paths, not {describe_value(op.index)}."
            )
        value = encode_value(op.value, f"the value of {where}")
        texts: list[str] = []
        for field in self._fields if op.index is None else op.index or ["$"]:
            texts += (
                [join_texts(op.value)]
                if field == "$"
                else get_text_at_path(op.value, tokenize_path(field))
            )
        texts = list(dict.fromkeys(text for text in texts if not is_blank(text)))
        # further texts are joined, so that no list makes one item thousands of memories
        texts[_MAX_TEXTS:] = ["\n".join(texts[_MAX_TEXTS:])] if len(texts) > _MAX_TEXTS else []
        if op.index is False or not texts:
            return build_write(
                path,
                clean_text("\n".join(texts), where),
                value,
                searched=False,
                provenance="inferred",
            )
        first, *parts = (clean_text(text, where) for text in texts)
        return build_write(path, first, value, parts=parts, provenance="inferred")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        """Return the items that a search operation selects."""
        _check_counts(limit=op.limit, offset=op.offset)
        if not isinstance(op.query, str | None):
            raise InputError(f"query must be a text, not {describe_value(op.query)}.")
        if not isinstance(op.filter, dict | None):
            raise InputError(f"filter must be a dict, not {describe_value(op.filter)}.")
        query = (op.query or "").strip()
        # without a filter the namespace alone selects, which spares reading every item
        candidates = None
        if op.filter or not query:
            candidates = [
                record
                for record in self._records.get_below(op.namespace_prefix)
                if _is_wanted(record, op.filter)
            ]
        if not query:
            selected = (candidates or [])[op.offset : op.offset + op.limit]
            return [SearchItem(**_item(record)) for record in selected]
        if not op.limit or (candidates is not None and not candidates):
            return []
        where = (
            self._records.select_below(op.namespace_prefix)
            if candidates is None
            else self._records.select_records(candidates)
        )
        search = op.namespace_prefix, query, json.dumps(op.filter, default=str)
        results = self._records.recall(query, op.limit, where, offset=op.offset, search=search)
        return [SearchItem(**_item(record), score=score) for record, score in results]

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        """Return the matching namespaces, cut to ``max_depth`` names and sorted, by offset and limit."""
        _check_counts(
            limit=op.limit, offset=op.offset, max_depth=0 if op.max_depth is None else op.max_depth
        )
        namespaces = {path[:-1] for path in self._records.paths()}
        for condition in op.match_conditions or ():
            namespaces = {namespace for namespace in namespaces if _matches(condition, namespace)}
        if op.max_depth is not None:
            namespaces = {namespace[: op.max_depth] for namespace in namespaces}
        return sorted(namespaces)[op.offset : op.offset + op.limit]


def _check_counts(**counts: object) -> None:
    """Raise InputError for a count that is not an integer of at least 0."""
    for name, count in counts.items():
        if not isinstance(count, int) or count < 0:
            raise InputError(
                f"{name} must be an integer of at least 0, not {describe_value(count)}."
            )


def _are_texts(value: object) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _refuse_ttl(ttl: object) -> None:
    """Raise InputError if a time to live is given."""
    if ttl is not None and ttl is not NOT_PROVIDED:
        raise InputError(
            f"A LabStore does not support ttl={describe_value(ttl)}, which restarts with each read. Omit it; "
            "lab.edit(memory, ttl_days=...) makes the memory expire that many days after its creation."
        )


def _item(record: Record) -> dict[str, Any]:
    """Convert a record to the fields of a LangGraph item."""
    return {
        "namespace": record.path[:-1],
        "key": record.path[-1],
        "value": decode_value(record.value or "{}"),
        "created_at": record.created,
        "updated_at": record.changed,
    }


def _is_wanted(record: Record, conditions: dict[str, Any] | None) -> bool:
    """Return whether the value of a record satisfies the conditions of a search."""
    if not conditions:
        return True
    value = decode_value(record.value or "{}")
    return all(
        matches_filter(_get_at(value, name), part, _OPERATORS, "$")
        for name, part in conditions.items()
    )


def _get_at(value: dict[str, Any], name: str) -> Any:
    """Return the value of a field, or None if it is missing; periods separate the names of nested fields."""
    if name in value:
        return value[name]
    first, _, rest = name.partition(".")
    inner = value.get(first)
    return _get_at(inner, rest) if rest and isinstance(inner, dict) else None


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Return whether a namespace has the prefix or suffix of a condition, where "*" fits any name."""
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise InputError(
            f'The type of a condition must be "prefix" or "suffix", not {condition.match_type!r}.'
        )
    if len(namespace) < len(path):
        return False
    part = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(expected in ("*", label) for expected, label in zip(path, part, strict=True))
