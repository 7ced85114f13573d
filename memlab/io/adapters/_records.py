"""Memories under paths, JSON values, and filters, which the adapters share."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from memlab.errors import InputError, PrivacyError, did_you_mean
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.clock import When, from_micros
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.journal import WriterLock
from memlab.kernel.privacy import personal_kinds, screen
from memlab.kernel.recall import maximum_draws
from memlab.kernel.schema import NEVER, RECALLABLE
from memlab.kernel.state import State, ViewerState, is_blank
from memlab.kernel.storage.store import Store

if TYPE_CHECKING:
    from memlab.kernel.recall import Hits
    from memlab.kernel.verbs.results import Remembered
    from memlab.subjects.lab import Lab

MAX_SEARCHED = 20_000
"""Maximum characters of a value that are searched; longer values are stored completely."""
# Python's JSON decoder recurses; 100 levels are far within its limit.
_MAX_DEPTH = 100
# Longer integers take quadratic time to convert, and Python refuses to print them.
_MAX_BITS = 10_000
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""Two surrogates that JSON would restore as one character."""


def encode_value(value: Any, what: str) -> str:
    """Encode a value as ASCII JSON, from which ``decode_value`` restores it.

    A tuple becomes a list. Raises InputError for values that JSON cannot express: other types, keys that are not
    strings, NaN, infinities, lone surrogates.

    >>> encode_value({"a": [1, 2.5, None]}, "value")
    '{"a":[1,2.5,null]}'
    """
    _check_value(value, what, 0)
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def decode_value(text: str) -> Any:
    """Decode a text that ``encode_value`` wrote, and return the value."""
    return json.loads(text)


def _check_value(value: Any, where: str, depth: int) -> None:
    """Raise InputError for a value that JSON cannot express, or that is too deep or too large."""
    # the exact types of JSON only: json.dumps itself would change keys that are numbers, and accept NaN
    if depth > _MAX_DEPTH:
        raise InputError(f"{where} is nested deeper than {_MAX_DEPTH} levels. Flatten it.")
    if value is None or isinstance(value, str | int):
        if isinstance(value, str) and _HALVES.search(value):
            raise InputError(
                f"{where} contains a pair of UTF-16 surrogates. Decode it as UTF-16 first."
            )
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            raise InputError(f"{where} has more than {_MAX_BITS:,} bits. Store it as a text.")
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{where} is {value}, which JSON cannot express. Use None.")
        return
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                raise InputError(f"{where}: a key must be a string, not {describe_value(key)}.")
            _check_value(key, f"a key of {where}", depth + 1)
            _check_value(part, f"{where}.{key[:40]}", depth + 1)
        return
    if isinstance(value, list | tuple):
        for index, part in enumerate(value):
            _check_value(part, f"{where}[{index}]", depth + 1)
        return
    raise InputError(
        f"{where} is {type(value).__name__}, which JSON cannot express. Use texts, numbers, lists and dicts."
    )


def iter_texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the key and the text of each scalar in a nested value, in order."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from iter_texts(part, key)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from iter_texts(part, name)
    elif value is not None:
        yield name, value if isinstance(value, str) else json.dumps(value)


def join_texts(value: Any) -> str:
    """Join the texts of a nested value into one searchable text.

    A single text is returned as it is. Several texts become lines ``key: text``. A value without
    texts gives "".

    >>> join_texts({"food": "pizza", "since": 2020}).splitlines()
    ['food: pizza', 'since: 2020']
    """
    texts = list(iter_texts(value))
    if len(texts) == 1:
        return texts[0][1]
    return "\n".join(f"{name}: {text}" if name else text for name, text in texts)


def clean_text(text: str, instead: str) -> str:
    """Return a text with lone surrogates as "?", or ``instead`` if the text is blank.

    Only the first ``MAX_SEARCHED`` characters are returned.
    """
    clean = text[:MAX_SEARCHED].encode("utf-8", "replace").decode()
    return instead if is_blank(clean) else clean


def redact_value(value: Any, personal: frozenset[str]) -> Any:
    """Return a value with the secrets in its texts replaced, as ``lab.remember`` does."""
    return _map_texts(value, lambda text: screen(text, personal=personal).text)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with ``change`` applied to each of its texts, but not to keys of dicts."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _map_texts(part, change) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(part, change) for part in value]
    return value


# -- filters ----------------------------------------------------------------------------------------------------------


def _compare_like(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Wrap a comparison so that it is false unless both operands are numbers or both are texts."""

    def compare_values(value: Any, operand: Any) -> bool:
        """Compare two numbers or two texts; other operands compare as false."""
        numbers = all(
            isinstance(item, int | float) and not isinstance(item, bool)
            for item in (value, operand)
        )
        texts = isinstance(value, str) and isinstance(operand, str)
        return (numbers or texts) and compare(value, operand)

    return compare_values


# Operators of LangGraph and mem0, without the sign that the framework writes before the name.
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, operand: bool(value == operand),
    "ne": lambda value, operand: bool(value != operand),
    "gt": _compare_like(lambda value, operand: value > operand),
    "gte": _compare_like(lambda value, operand: value >= operand),
    "lt": _compare_like(lambda value, operand: value < operand),
    "lte": _compare_like(lambda value, operand: value <= operand),
    "in": lambda value, operand: isinstance(operand, list | tuple) and value in operand,
    "nin": lambda value, operand: isinstance(operand, list | tuple) and value not in operand,
    "contains": lambda value, operand: (
        isinstance(value, str) and isinstance(operand, str) and operand in value
    ),
    "icontains": lambda value, operand: (
        isinstance(value, str)
        and isinstance(operand, str)
        and operand.casefold() in value.casefold()
    ),
}


def matches_filter(value: Any, condition: Any, operators: tuple[str, ...], sign: str = "") -> bool:
    """Return whether a value satisfies a filter.

    A filter is an equal value, a dict or list of filters for its parts, or a dict of operators, whose names begin with
    ``sign``. Raises InputError for an operator that is not in ``operators``.

    >>> matches_filter({"age": 30}, {"age": {"$gte": 18}}, ("gte",), "$")
    True
    """
    # a dict is a set of operators if any key is one; an unknown key next to one is then an error
    if isinstance(condition, Mapping):
        if any(_is_operator(name, operators, sign) for name in condition):
            for name in condition:
                if (
                    not _is_operator(name, operators, sign)
                    or name.removeprefix(sign) not in operators
                ):
                    hint = did_you_mean(str(name), [sign + operator for operator in operators])
                    raise InputError(
                        f"There is no operator {describe_value(name)} in a filter. {hint}"
                    )
            return all(
                _OPERATORS[name.removeprefix(sign)](value, operand)
                for name, operand in condition.items()
            )
        return isinstance(value, Mapping) and all(
            matches_filter(value.get(name), part, operators, sign)
            for name, part in condition.items()
        )
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(condition)
            and all(
                matches_filter(item, expected, operators, sign)
                for item, expected in zip(value, condition, strict=True)
            )
        )
    return bool(value == condition)


def _is_operator(name: object, operators: tuple[str, ...], sign: str) -> bool:
    """Return whether a filter's key begins with ``sign`` or, for an empty sign, is in ``operators``."""
    if not isinstance(name, str):
        return False
    return name.startswith(sign) if sign else name in operators


# -- memories under paths ---------------------------------------------------------------------------------------------
# The ``ref`` of a memory is its path as a JSON array, so that no name can leave its level. ``context`` is the value as
# JSON if the text alone is not the value. A path names the newest memory with its ref that is in use: memories that the
# lab forgets or quarantines do not exist for the framework. Another value is an edit, so that both stay in the history.
# Deleting is ``lab.forget(how="delete")``; ``lab.restore`` undoes it and ``lab.purge(overdue=True)`` makes it final.

Path = tuple[str, ...]

UNSEARCHED = "unsearched"
"""Season of memories that are stored but never recalled: no recall names it."""


@dataclass(frozen=True)
class Record:
    """A memory that is stored under a path, with its value and times.

    Attributes
    ----------
    id
        Id of the memory.
    first
        Id of the first of its versions.
    path
        Its path, without the name of the records.
    text
        Its text.
    value
        Its value as JSON; None if the text is the value.
    searched
        Whether recalls can return it.
    created, changed
        The times of the first version and of the last change.
    """

    id: int
    first: int
    path: Path
    text: str
    value: str | None
    searched: bool
    created: datetime
    changed: datetime


@dataclass(frozen=True)
class Write:
    """The path, text, value and fields of a record to be written.

    Attributes
    ----------
    path
        Its path, without the name of the records.
    text
        The text of the memory.
    value
        Its value as JSON; None if the text is the value.
    searched
        Whether recalls may return it.
    fields
        Other fields of the memory.
    parts
        Further texts, which recalls search separately. The best score of all texts counts.
    """

    path: Path
    text: str
    value: str | None
    searched: bool
    fields: Mapping[str, Any]
    parts: Sequence[str] = ()


def build_write(
    path: Iterable[str],
    text: str,
    value: str | None = None,
    *,
    searched: bool = True,
    parts: Sequence[str] = (),
    **fields: Any,
) -> Write:
    """Build a record to write; ``fields`` are further fields of its memory."""
    return Write(tuple(path), text, value, searched, fields, parts)


def split_ref(ref: str) -> tuple[str, int]:
    """Split a ref into its record's ref and the number of the part; 0 means the record itself.

    A part has the path of its record and a number, which no path contains.

    >>> split_ref('["langgraph","ada","food",1]')
    ('["langgraph","ada","food"]', 1)
    """
    start, _, number = ref[:-1].rpartition(",")
    return (start + "]", int(number)) if number.isdecimal() else (ref, 0)


# Embedding the texts of a write happens within the lock, and a remote embedder may retry for minutes.
_PATIENCE = 300.0


class _Changes:
    """The lock for changes of a lab by its adapters, in all threads, handles and processes."""

    def __init__(self, store: Store) -> None:
        self._threads = ThreadLock()
        self._file = WriterLock(None if store.folder is None else store.folder / "adapters.lock")

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the adapters' lock for a ``with`` block; blocks may be nested."""
        nested = self._threads.owned
        with self._threads.hold():
            if nested:
                yield
                return
            with self._file.against_processes(_PATIENCE):
                yield


_LOCKS: WeakKeyDictionary[Store, _Changes] = WeakKeyDictionary()
"""One lock for each lab, because two adapters of one lab may change the same record."""
# Searches whose next pages continue where they ended. More are seldom open at once, and one that was dropped starts again
# from the ranking.
_MAX_PAGED = 100


class Records:
    """The memories of one adapter in a lab; ``name`` is the first part of each path.

    Each new memory has the ``project`` and ``creator``; recalls are limited to the project. Changes are made under
    ``lock``, which all adapters of a lab share, including adapters in other processes. If a process without the lock
    writes the same new path at once, both memories stay. The newer memory counts, and the next change of the path
    deletes the older memory.
    """

    def __init__(
        self, lab: Lab, name: str, *, project: str | None = None, creator: str | None = None
    ) -> None:
        if is_blank(name):
            raise InputError(
                "name is blank. Give a name that separates these memories from others in the lab."
            )
        self.lab, self.root = lab, (name,)
        self.project = project
        self.fields = {
            name: value
            for name, value in (("project", project), ("creator", creator))
            if value is not None
        }
        self._changes = _LOCKS.setdefault(lab.io.store, _Changes(lab.io.store))
        self.hits: Hits | None = None
        self._rows: dict[str, list[int]] = {}
        self._parts: dict[str, list[int]] = {}
        self._upto = 0
        self._pages: dict[Hashable, list[str]] = {}

    @property
    def lock(self) -> AbstractContextManager[None]:
        """The lock of the lab's adapters, for blocks that read and then change records."""
        return self._changes.hold()

    # -- reading ------------------------------------------------------------------------------------------------------

    def get(self, path: Iterable[str]) -> Record | None:
        """Return the record under a path, or None if the path has no record."""
        ref = self._ref(path)
        with self._reading() as state:
            rows = self._in_use(state, ref)
            return self._record(state, ref, rows[-1]) if rows else None

    def get_all(self, path: Iterable[str]) -> list[Record]:
        """Return all records under a path that names a sequence, oldest first."""
        ref = self._ref(path)
        with self._reading() as state:
            return [self._record(state, ref, row) for row in self._in_use(state, ref)]

    def get_below(self, prefix: Iterable[str] = ()) -> list[Record]:
        """Return the records whose paths begin with a prefix, oldest first."""
        start = self._prefix(prefix)
        with self._reading() as state:
            rows = self._iter_rows(state, lambda ref: ref.startswith(start))
            records = [self._record(state, ref, row) for ref, row in rows]
            return sorted(records, key=lambda record: record.first)

    def select(
        self,
        has_ref: Callable[[str], bool],
        has_value: Callable[[str | None], bool],
        limit: int | None = None,
    ) -> list[Record]:
        """Return up to ``limit`` records that pass tests of ref and value, oldest path first."""
        with self._reading() as state:
            rows = self._iter_rows(state, has_ref, has_value)
            return [self._record(state, ref, row) for ref, row in islice(rows, limit)]

    def _iter_rows(
        self,
        state: State,
        has_ref: Callable[[str], bool],
        has_value: Callable[[str | None], bool] = lambda _: True,
    ) -> Iterator[tuple[str, int]]:
        """Yield the ref and the newest recallable row of each record whose ref and value are accepted."""
        values = state.notes["context"]
        for ref in self._rows:
            rows = self._in_use(state, ref) if has_ref(ref) else []
            if rows and has_value(values.value_at(rows[-1])):
                yield ref, rows[-1]

    def paths(self) -> list[Path]:
        """Return the path of every record that is in use."""
        with self._reading() as state:
            return [tuple(json.loads(ref))[1:] for ref in self._rows if self._in_use(state, ref)]

    def find_path(self, name: str) -> Path | None:
        """Return the path of the record called ``name``, deleted or not, or None if unknown."""
        end = "," + json.dumps(name) + "]"
        with self._reading():
            ref = next((ref for ref in self._rows if ref.endswith(end)), None)
        return None if ref is None else tuple(json.loads(ref))[1:]

    def versions(self, path: Iterable[str]) -> list[tuple[Record, str]]:
        """Return every version of the record under a path with its status, oldest first.

        Purged versions are omitted.
        """
        ref = self._ref(path)
        with self._reading() as state:
            rows = [row for row in self._rows.get(ref, ()) if state.refs.value_at(row) == ref]
            return [
                (self._record(state, ref, row), state.names["status"].value_at(row) or "")
                for row in rows
            ]

    @contextmanager
    def _reading(self) -> Iterator[State]:
        """Update the index of paths, then yield the lab's state."""
        with (
            self.lab.io.store.reading() as state
        ):  # held by one thread at a time, so the index needs no lock
            self._index_rows(state)
            yield state

    def _index_rows(self, state: State) -> None:
        """Add the state's new rows to the index of paths."""
        if state.rows < self._upto:
            self._rows, self._parts, self._upto = {}, {}, 0
        start = self._prefix(())
        new = np.arange(self._upto, state.rows, dtype=np.int64)
        for row, ref in zip(new.tolist(), state.refs.to_list(new) if len(new) else (), strict=True):
            if ref is not None and ref.startswith(start):
                ref, part = split_ref(ref)
                (self._parts if part else self._rows).setdefault(ref, []).append(row)
        self._upto = state.rows

    def _in_use(self, state: State, ref: str) -> list[int]:
        """Return the recallable and visible rows of a ref, oldest first."""
        return self._list_recallable(state, self._rows.get(ref, ()), lambda stored: stored == ref)

    def _parts_in_use(self, state: State, ref: str) -> list[int]:
        """Return the recallable, visible rows of the parts of a record."""
        rows = self._parts.get(ref, ())
        return self._list_recallable(state, rows, lambda stored: split_ref(stored)[0] == ref)

    def _list_recallable(
        self, state: State, rows: Iterable[int], has_ref: Callable[[str], bool]
    ) -> list[int]:
        """Return the rows that are still recallable and visible and have an unchanged ref."""
        status = state.names["status"]
        hidden = state.hidden if isinstance(state, ViewerState) else None
        return [
            row
            for row in rows
            if status.value_at(row) in RECALLABLE
            and has_ref(state.refs.value_at(row) or "[]")
            and (hidden is None or not hidden[row])
        ]

    def _record(self, state: State, ref: str, row: int) -> Record:
        """Build the record of a memory row, with the creation time of its first version."""
        created, changed = state.numbers["created"].values, state.numbers["changed"].values
        rows = self._rows[ref]
        position, first, successors = rows.index(row), row, state.numbers["superseded_by"].values
        while position and float(successors[rows[position - 1]]) == first + 1:
            position -= 1
            first = rows[position]
        last = int(changed[row])
        return Record(
            id=row + 1,
            first=first + 1,
            path=tuple(json.loads(ref))[len(self.root) :],
            text=state.texts.value_at(row) or "",
            value=state.notes["context"].value_at(row),
            searched=state.names["season"].value_at(row) != UNSEARCHED,
            created=from_micros(int(created[first])),
            changed=from_micros(
                max(int(created[row]), last if last != NEVER else int(created[row]))
            ),
        )

    # -- paths --------------------------------------------------------------------------------------------------------

    def _ref(self, path: Iterable[str]) -> str:
        """Return the ref of a path, or raise InputError if a name is not a text."""
        names = (*self.root, *path)
        for name in names:
            if not isinstance(name, str):
                raise InputError(f"A name in a path must be a text, not {describe_value(name)}.")
        return json.dumps(names, separators=(",", ":"))

    def _prefix(self, prefix: Iterable[str]) -> str:
        """Return the leading text that the refs of all paths below ``prefix`` share."""
        return self._ref(prefix)[:-1] + ","

    # -- writing ------------------------------------------------------------------------------------------------------

    def put(self, writes: Sequence[Write]) -> None:
        """Write records: add all records with new paths together, and edit the other records."""
        with self.lock:
            for write in writes:
                self._check_personal(write)
            new = []
            for write in writes:
                existing = self.get_all(write.path)
                self.drop(existing[:-1])
                old = existing[-1] if existing else None
                if old is None:
                    new.append(self._build_row(write))
                elif (old.text, old.value, old.searched) != (
                    write.text,
                    write.value,
                    write.searched,
                ):
                    # the edit has no source, so it counts as a user's edit, which may also change a
                    # version of another process
                    fields = {
                        name: value
                        for name, value in self._build_fields(write).items()
                        if name != "source"
                    }
                    self.lab.edit(old.id, text=write.text, **fields)
                new += self._put_parts(write)
            if new:
                self.lab.remember(new, linking="off")

    def _put_parts(self, write: Write) -> list[dict[str, Any]]:
        """Edit or delete a record's existing parts, and return the memories to add for its new parts."""
        ref = self._ref(write.path)
        with self._reading() as state:
            stored = {
                split_ref(state.refs.value_at(row) or "")[1]: (row + 1, state.texts.value_at(row))
                for row in self._parts_in_use(state, ref)
            }
        new = []
        for number, text in enumerate(write.parts, 1):
            id, old = stored.pop(number, (None, None))
            if id is None:
                new.append(self._build_row(write) | {"text": text, "context": None})
                new[-1]["ref"] = f"{ref[:-1]},{number}]"
            elif old != text:
                self.lab.edit(id, text=text)
        self._forget([id for id, _ in stored.values()])
        return new

    def move(self, moves: Iterable[tuple[Record, Path]], **fields: Any) -> None:
        """Move each record to another path by editing its memory."""
        with self.lock:
            for record, path in moves:
                self.lab.edit(record.id, ref=self._ref(path), **fields)

    def append(self, writes: Sequence[Write], *, chain: bool = False) -> Remembered | None:
        """Add records in one transaction, keeping earlier records of the same path."""
        if not writes:
            return None
        for write in writes:
            self._check_personal(write)
        rows = [self._build_row(write) for write in writes]
        return self.lab.remember(rows, linking="off", chain=chain)

    def _build_row(self, write: Write) -> dict[str, Any]:
        """Return the memory that stores a record, without the record's parts."""
        return {"text": write.text, "ref": self._ref(write.path), **self._build_fields(write)}

    def _build_fields(self, write: Write) -> dict[str, Any]:
        """Return the fields of the memory that stores a record."""
        season = None if write.searched else UNSEARCHED
        return {**self.fields, **write.fields, "context": write.value, "season": season}

    def _check_personal(self, write: Write) -> None:
        """Raise PrivacyError if a record's value contains personal identifiers that the pack redacts in texts.

        The lab itself refuses secrets.
        """
        personal = personal_kinds(self.lab.policies.pack.settings)
        if personal and write.value is not None:
            findings = screen(write.value, personal=personal).findings
            if findings:
                raise PrivacyError(
                    f"The value under {'/'.join(write.path)} contains a secret or personal "
                    f"datum ({findings[0].type}). The pack redacts these in texts, but a "
                    "value cannot be redacted. Remove it."
                )

    def delete(self, records: Iterable[Record]) -> None:
        """Delete all versions of the records under these paths, and their parts, in one transaction."""
        with self.lock:
            refs = {self._ref(record.path): None for record in records}
            with self._reading() as state:
                ids = self._list_ids(state, refs)
            self._forget(ids)

    def drop(self, records: Iterable[Record]) -> None:
        """Delete exactly these records, and keep other records under the same path."""
        self._forget([record.id for record in records])

    def _forget(self, ids: list[int]) -> None:
        """Delete memories by their ids."""
        if ids:
            self.lab.forget(ids, how="delete")

    def _list_ids(self, state: State, refs: Iterable[str]) -> list[int]:
        """Return the ids of the recallable memories of records and of the records' parts."""
        return [
            row + 1
            for ref in refs
            for row in (*self._in_use(state, ref), *self._parts_in_use(state, ref))
        ]

    # -- recall -------------------------------------------------------------------------------------------------------

    def select_below(self, prefix: Iterable[str]) -> pl.Expr:
        """Return a Polars expression that selects the memories below a prefix."""
        return pl.col("ref").str.starts_with(self._prefix(prefix))

    def select_records(self, records: Iterable[Record]) -> pl.Expr:
        """Return a Polars expression that selects the memories of some records."""
        with self._reading() as state:
            ids = self._list_ids(state, [self._ref(record.path) for record in records])
        return pl.col("id").is_in(ids)

    def select_where(
        self, has_ref: Callable[[str], bool], has_value: Callable[[str | None], bool]
    ) -> pl.Expr:
        """Return a Polars expression for memories whose record passes tests of ref and value."""
        with self._reading() as state:
            ids = []
            for ref, row in self._iter_rows(state, has_ref, has_value):
                ids += [row + 1, *(part + 1 for part in self._parts_in_use(state, ref))]
            return pl.col("id").is_in(ids)

    def recall(
        self,
        query: str,
        limit: int,
        where: pl.Expr,
        *,
        offset: int = 0,
        search: Hashable = None,
        at: When | None = None,
    ) -> list[tuple[Record, float]]:
        """Return the recalled records that ``where`` selects, best first, with scores.

        At most ``limit`` records are returned, and fewer only if there are no more, or if packs are challenged.
        Exploration items take the place of the last results, so that the log says exactly what was returned. A record
        whose parts were found several times counts once, and further recalls fill its ranks.

        A page with an ``offset`` continues the last page of the same ``search``: it recalls only records that the
        earlier pages did not show. Without earlier pages, the page is the part of the ranking from ``offset`` on.
        """
        earlier = self._pages.pop(search, [])[:offset]
        skipped = offset - len(earlier)
        if skipped:  # the ranks of a search that nobody read, of which nothing is drawn at random
            earlier, limit = [], offset + limit
        results: list[tuple[Record, float]] = []
        refs, ids = list(earlier), list[int]()
        challenges = self.lab.io.store.versions.challenges
        added = (
            maximum_draws(challenges, limit)
            if challenges and challenges[0].design in ("extra", "draft")
            else 0
        )
        while len(results) < limit:
            wanted = max(limit - len(results) - added, 1)
            others = where
            if refs:
                with self._reading() as state:
                    others &= ~pl.col("id").is_in([*ids, *self._list_ids(state, refs)])
            hits = self.lab.recall(
                query,
                limit=wanted,
                project=self.project,
                where=others,
                at=at,
                explore=False if skipped or ids else "within",
            )
            ids += [hit.id for hit in hits]
            if not results:
                self.hits = hits
            with self._reading() as state:
                for hit in hits[: limit - len(results)]:
                    ref = split_ref(hit.ref or "[]")[0]
                    rows = self._in_use(state, ref)
                    if (
                        rows
                        and ref not in refs
                        and hit.id - 1 in (rows[-1], *self._parts.get(ref, ()))
                    ):
                        results.append((self._record(state, ref, rows[-1]), hit.score))
                        refs.append(ref)
            if len(hits) < wanted or challenges:
                break
        if search is not None:
            while len(self._pages) >= _MAX_PAGED:
                self._pages.pop(next(iter(self._pages)), None)
            self._pages[search] = refs
        return results[skipped and offset :]
