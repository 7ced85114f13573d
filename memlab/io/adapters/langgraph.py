"""LangGraph's ``BaseStore`` on a lab: items are memories, and a search with a question is a recall.

    from memlab.io.adapters.langgraph import LabStore
    graph = builder.compile(store=LabStore(memlab.open("agent.memlab")))

| LangGraph | the lab |
|---|---|
| ``put`` of a new key | ``remember``: the value is kept as JSON, its texts at ``fields`` or ``index`` are searched |
| ``put`` of a key that is there | ``edit``: the versions before stay in the history |
| ``delete`` | ``delete``: out of use, ``lab.restore`` brings it back, ``lab.purge(overdue=True)`` removes it |
| ``search`` with a query | ``recall``: it leaves a slate and counts as a use; ``store.hits`` has it for feedback |
| ``search`` without, ``get``, ``list_namespaces`` | a look at the state; nothing is logged |

A namespace and a key together are the memory's ``ref``, a JSON array: no label leads out of its namespace. Labels are
LangGraph's (no periods). ``batch`` reads first, as LangGraph's own stores do, then writes: the last of several puts of
one key counts, and new keys are one transaction. A value that holds a secret is refused (PrivacyError), and so is a
time to live (InputError): LangGraph's begins anew with each look, a lab's ``ttl_days`` counts from when a memory came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from memlab.errors import InputError, MissingExtra
from memlab.io.adapters._records import (
    Record,
    Records,
    Write,
    clean_text,
    decoded,
    encoded,
    fits,
    text_of,
    these,
    written,
)
from memlab.kernel.base.arguments import checked, describe_value
from memlab.kernel.recall import Hits
from memlab.subjects.lab import Lab

try:
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
except ImportError as error:
    raise MissingExtra("memlab.io.adapters.langgraph", "langgraph", "langgraph") from error

__all__ = ["LabStore"]

_OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte")


class LabStore(BaseStore):
    """A ``BaseStore`` of the items that are kept in a lab under ``name``.

    ``fields`` are the JSON paths whose texts are searched ("$" is the whole value) unless a ``put`` says which;
    ``project`` and ``creator`` are given to each memory, and ``project`` narrows searches. ``index=False`` keeps an
    item that no search with a question finds.

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
        """What the last search with a question recalled: for ``lab.feedback`` and ``lab.agents.verify``."""
        return self._records.hits

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The result of each operation, in order; see ``BaseStore.batch``."""
        operations = list(ops)
        for op in operations:
            validate_op_namespace(op)
        with self._records.lock:
            results = [self._read(op) for op in operations]
            puts = {(*op.namespace, op.key): op for op in operations if isinstance(op, PutOp)}
            writes = [self._write(path, op) for path, op in puts.items() if op.value is not None]
            gone = [self._records.at(path) for path, op in puts.items() if op.value is None]
            self._records.put(writes)
            self._records.delete(record for record in gone if record is not None)
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
        """Store or replace an item; see ``BaseStore.put``. InputError for a ``ttl``."""
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
        """``put`` in a thread."""
        _refuse_ttl(ttl)
        await super().aput(namespace, key, value, index, ttl=ttl)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """``batch`` in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            record = self._records.at((*op.namespace, op.key))
            return None if record is None else Item(**_item(record))
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise InputError(f"{type(op).__name__} is no operation of a store.")

    def _write(self, path: tuple[str, ...], op: PutOp) -> Write:
        _refuse_ttl(op.ttl)
        where = "/".join(path)
        if not isinstance(op.value, dict):
            raise InputError(f"The value of {where} is a dict, not {type(op.value).__name__}.")
        if op.index is not None and op.index is not False and not _are_texts(op.index):
            raise InputError(
                f"index is False or a list of JSON paths, as texts, not {describe_value(op.index)}."
            )
        value = encoded(op.value, f"the value of {where}")
        texts: list[str] = []
        for field in self._fields if op.index is None else op.index or ["$"]:
            texts += (
                [text_of(op.value)]
                if field == "$"
                else get_text_at_path(op.value, tokenize_path(field))
            )
        text = clean_text("\n".join(texts), where)
        searched = op.index is not False and any(texts)
        return written(path, text, value, searched=searched, provenance="inferred")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        _check_counts(limit=op.limit, offset=op.offset)
        if not isinstance(op.query, str | None):
            raise InputError(f"query is a text, not {describe_value(op.query)}.")
        if not isinstance(op.filter, dict | None):
            raise InputError(f"filter is a dict, not {describe_value(op.filter)}.")
        query = (op.query or "").strip()
        among = None
        if op.filter or not query:
            among = [
                record
                for record in self._records.under(op.namespace_prefix)
                if _wanted(record, op.filter)
            ]
        end = op.offset + op.limit
        if not query:
            return [SearchItem(**_item(record)) for record in (among or ())[op.offset : end]]
        if not op.limit or (among is not None and not among):
            return []
        where = self._records.below(op.namespace_prefix) if among is None else these(among)
        found = self._records.ask(query, end, where)
        return [SearchItem(**_item(record), score=score) for record, score in found[op.offset :]]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        _check_counts(
            limit=op.limit, offset=op.offset, max_depth=0 if op.max_depth is None else op.max_depth
        )
        found = {path[:-1] for path in self._records.paths()}
        for condition in op.match_conditions or ():
            found = {namespace for namespace in found if _matches(condition, namespace)}
        if op.max_depth is not None:
            found = {namespace[: op.max_depth] for namespace in found}
        return sorted(found)[op.offset : op.offset + op.limit]


def _check_counts(**counts: object) -> None:
    for name, count in counts.items():
        if not isinstance(count, int) or count < 0:
            raise InputError(
                f"{name} is a whole number of at least 0, not {describe_value(count)}."
            )


def _are_texts(given: object) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)


def _refuse_ttl(ttl: object) -> None:
    if ttl is not None and ttl is not NOT_PROVIDED:
        raise InputError(
            f"A LabStore has no ttl that each look begins anew (here {describe_value(ttl)}). Put without it; "
            "lab.edit(memory, ttl_days=...) lets the memory expire so many days after it came."
        )


def _item(record: Record) -> dict[str, Any]:
    return {
        "namespace": record.path[:-1],
        "key": record.path[-1],
        "value": decoded(record.value or "{}"),
        "created_at": record.created,
        "updated_at": record.changed,
    }


def _wanted(record: Record, wanted: dict[str, Any] | None) -> bool:
    if not wanted:
        return True
    value = decoded(record.value or "{}")
    return all(fits(value.get(name), part, _OPERATORS, "$") for name, part in wanted.items())


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise InputError(
            f'A namespace is matched by its "prefix" or "suffix", not {condition.match_type!r}.'
        )
    if len(namespace) < len(path):
        return False
    part = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
