"""What adapters share: memories under paths, JSON values that come back as they were given, and filters over them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.errors import InputError, PrivacyError, did_you_mean
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.privacy import personal_kinds, screen
from memlab.kernel.schema import NEVER, RECALLABLE
from memlab.kernel.state import Seen, State, is_blank

if TYPE_CHECKING:
    from memlab.kernel.recall import Hits
    from memlab.kernel.verbs.results import Remembered
    from memlab.subjects.lab import Lab

__all__ = [
    "Path",
    "Record",
    "Records",
    "Write",
    "clean_text",
    "decoded",
    "encoded",
    "fits",
    "redacted",
    "text_of",
    "texts_in",
    "these",
    "written",
]

MOST_SEARCHED = 20_000
"""Characters of a value that are searched."""
_DEEPEST = 100
_LONGEST_NUMBER = 10_000
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""JSON makes one character of them."""


def encoded(value: Any, what: str) -> str:
    """``value`` as ASCII JSON, which ``decoded`` gives back equal; a tuple comes back as a list.

    InputError for what JSON cannot say: other types, keys that are no strings, NaN, infinities, torn characters.

    >>> encoded({"a": [1, 2.5, None, "é"]}, "value")
    '{"a":[1,2.5,null,"\\\\u00e9"]}'
    """
    _check(value, what, 0)
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def decoded(text: str) -> Any:
    """What ``encoded`` was given."""
    return json.loads(text)


def _check(value: Any, where: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise InputError(f"{where} is nested deeper than {_DEEPEST} levels.")
    if value is None or isinstance(value, str | int):
        if isinstance(value, str) and _HALVES.search(value):
            raise InputError(
                f"{where} holds two halves of UTF-16 side by side: decode it as UTF-16 first."
            )
        if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
            raise InputError(f"{where} has more than {_LONGEST_NUMBER:,} bits.")
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{where} is {value}, which JSON cannot say.")
        return
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                raise InputError(f"{where}: a key is a string, not {describe_value(key)}.")
            _check(key, f"a key of {where}", depth + 1)
            _check(part, f"{where}.{key[:40]}", depth + 1)
        return
    if isinstance(value, list | tuple):
        for place, part in enumerate(value):
            _check(part, f"{where}[{place}]", depth + 1)
        return
    raise InputError(
        f"{where} is {type(value).__name__}, which JSON cannot say: give texts, numbers, lists and dicts."
    )


def texts_in(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Each text or number in a value, with the name of the key that it stands under, in order."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from texts_in(part, key)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts_in(part, name)
    elif value is not None:
        yield name, value if isinstance(value, str) else json.dumps(value)


def text_of(value: Any) -> str:
    """What is searched of a value: its only text alone, or ``key: text`` on a line for each; "" for no text.

    >>> text_of({"food": "pizza", "since": 2020})
    'food: pizza\\nsince: 2020'
    """
    found = list(texts_in(value))
    if len(found) == 1:
        return found[0][1]
    return "\n".join(f"{name}: {text}" if name else text for name, text in found)


def clean_text(text: str, instead: str) -> str:
    """A text that a memory can hold: without halves of UTF-16, not too long; ``instead`` if it is blank."""
    clean = text[:MOST_SEARCHED].encode("utf-8", "replace").decode()
    return instead if is_blank(clean) else clean


def redacted(value: Any, personal: frozenset[str]) -> Any:
    """The same value with the secrets in its texts replaced, as ``lab.remember`` replaces them."""
    return _mapped(value, lambda text: screen(text, personal=personal).text)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(part, change) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(part, change) for part in value]
    return value


# -- filters ----------------------------------------------------------------------------------------------------------


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Numbers with numbers, texts with texts; anything else is in no order, and no fit."""

    def fit(value: Any, given: Any) -> bool:
        numbers = all(
            isinstance(one, int | float) and not isinstance(one, bool) for one in (value, given)
        )
        texts = isinstance(value, str) and isinstance(given, str)
        return (numbers or texts) and compare(value, given)

    return fit


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, given: bool(value == given),
    "ne": lambda value, given: bool(value != given),
    "gt": _ordered(lambda value, given: value > given),
    "gte": _ordered(lambda value, given: value >= given),
    "lt": _ordered(lambda value, given: value < given),
    "lte": _ordered(lambda value, given: value <= given),
    "in": lambda value, given: isinstance(given, list | tuple) and value in given,
    "nin": lambda value, given: isinstance(given, list | tuple) and value not in given,
    "contains": lambda value, given: (
        isinstance(value, str) and isinstance(given, str) and given in value
    ),
    "icontains": lambda value, given: (
        isinstance(value, str) and isinstance(given, str) and given.casefold() in value.casefold()
    ),
}


def fits(value: Any, wanted: Any, operators: tuple[str, ...], sign: str = "") -> bool:
    """Whether a value is what a filter wants: an equal one, the same parts in a dict or list, or as ``operators`` say.

    ``sign`` stands before the names of operators. InputError for an operator that is none of them.

    >>> fits({"age": 30}, {"age": {"$gte": 18}}, ("gte",), "$")
    True
    """
    if isinstance(wanted, Mapping):
        if any(_is_operator(name, operators, sign) for name in wanted):
            for name in wanted:
                if (
                    not _is_operator(name, operators, sign)
                    or name.removeprefix(sign) not in operators
                ):
                    near = did_you_mean(str(name), [sign + operator for operator in operators])
                    raise InputError(
                        f"There is no operator {describe_value(name)} in a filter. {near}"
                    )
            return all(
                _OPERATORS[name.removeprefix(sign)](value, given) for name, given in wanted.items()
            )
        return isinstance(value, Mapping) and all(
            fits(value.get(name), part, operators, sign) for name, part in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(
                fits(one, other, operators, sign) for one, other in zip(value, wanted, strict=True)
            )
        )
    return bool(value == wanted)


def _is_operator(name: object, operators: tuple[str, ...], sign: str) -> bool:
    if not isinstance(name, str):
        return False
    return name.startswith(sign) if sign else name in operators


# -- memories under paths ---------------------------------------------------------------------------------------------
# The ``ref`` of a memory is its path as a JSON array, which no name in it can leave; ``context`` is the value as JSON
# where the text alone does not say it. A path names the newest memory with its ref that is in use: what the lab
# forgets, retires or quarantines is not there for the framework either. Another value is an edit, so both stay in the
# history; deleting is ``lab.forget(how="delete")``, which ``lab.restore`` undoes and ``lab.purge(overdue=True)`` ends.

Path = tuple[str, ...]

UNSEARCHED = "unsearched"
"""The season of what is kept and never recalled: none of that name is ever on."""


@dataclass(frozen=True)
class Record:
    """A memory under a path: ``value`` is its JSON, None where the text alone says it."""

    id: int
    first: int
    """The first of its versions, by id, and when it was written."""
    path: Path
    text: str
    value: str | None
    searched: bool
    created: datetime
    changed: datetime


@dataclass(frozen=True)
class Write:
    """What is to be under a path: a text, its value as JSON, and other fields of a memory."""

    path: Path
    text: str
    value: str | None
    searched: bool
    fields: Mapping[str, Any]


def written(
    path: Iterable[str],
    text: str,
    value: str | None = None,
    *,
    searched: bool = True,
    **fields: Any,
) -> Write:
    return Write(tuple(path), text, value, searched, fields)


def these(records: Iterable[Record]) -> pl.Expr:
    """The memories of these records."""
    return pl.col("id").is_in([record.id for record in records])


class Records:
    """The records of one ``name`` in a lab, which is the first in each path there.

    ``project`` and ``creator`` are those of each new memory, and ``project`` narrows recalls. A change is made under
    ``lock``; of two processes that write the same new path at once both memories stay, the newer one counts, and the
    next change of the path deletes the other.
    """

    def __init__(
        self, lab: Lab, name: str, *, project: str | None = None, creator: str | None = None
    ) -> None:
        if is_blank(name):
            raise InputError("name is blank: it sets apart what is kept here.")
        self.lab, self.root = lab, (name,)
        self.project = project
        self.fields = {
            name: value
            for name, value in (("project", project), ("creator", creator))
            if value is not None
        }
        self.lock = ThreadLock()
        self.hits: Hits | None = None
        self._rows: dict[str, list[int]] = {}
        self._upto = 0

    # -- reading ------------------------------------------------------------------------------------------------------

    def at(self, path: Iterable[str]) -> Record | None:
        """The record under a path; None if there is none."""
        ref = self._ref(path)
        with self._reading() as state:
            rows = self._in_use(state, ref)
            return self._record(state, ref, rows[-1]) if rows else None

    def all_at(self, path: Iterable[str]) -> list[Record]:
        """Every record under a path, in the order in which they were written: where a path names a sequence."""
        ref = self._ref(path)
        with self._reading() as state:
            return [self._record(state, ref, row) for row in self._in_use(state, ref)]

    def under(self, prefix: Iterable[str] = ()) -> list[Record]:
        """The records whose paths begin with a prefix, in the order in which they were first written."""
        begins = self._prefix(prefix)
        with self._reading() as state:
            found = []
            for ref in self._rows:
                rows = self._in_use(state, ref) if ref.startswith(begins) else []
                if rows:
                    found.append(self._record(state, ref, rows[-1]))
            return sorted(found, key=lambda record: record.first)

    def paths(self) -> list[Path]:
        """The path of each record."""
        with self._reading() as state:
            return [tuple(json.loads(ref))[1:] for ref in self._rows if self._in_use(state, ref)]

    def ending(self, name: str) -> Path | None:
        """The path that ends with a name, whether anything is there or not; None if there never was one."""
        end = "," + json.dumps(name) + "]"
        with self._reading():
            found = next((ref for ref in self._rows if ref.endswith(end)), None)
        return None if found is None else tuple(json.loads(found))[1:]

    def versions(self, path: Iterable[str]) -> list[tuple[Record, str]]:
        """Every memory that was ever under a path and was not purged, oldest first, with its status."""
        ref = self._ref(path)
        with self._reading() as state:
            rows = [row for row in self._rows.get(ref, ()) if state.refs.at(row) == ref]
            return [
                (self._record(state, ref, row), state.names["status"].at(row) or "") for row in rows
            ]

    @contextmanager
    def _reading(self) -> Iterator[State]:
        """Give the state, with the rows of every path as of it."""
        with self.lock, self.lab.io.store.reading() as state:
            self._follow(state)
            yield state

    def _follow(self, state: State) -> None:
        """Take in the rows that are new."""
        if state.rows < self._upto:
            self._rows, self._upto = {}, 0
        begins = self._prefix(())
        new = np.arange(self._upto, state.rows, dtype=np.int64)
        for row, ref in zip(new.tolist(), state.refs.take(new) if len(new) else (), strict=True):
            if ref is not None and ref.startswith(begins):
                self._rows.setdefault(ref, []).append(row)
        self._upto = state.rows

    def _in_use(self, state: State, ref: str) -> list[int]:
        status, hidden = state.names["status"], state.hidden if isinstance(state, Seen) else None
        return [
            row
            for row in self._rows.get(ref, ())
            if status.at(row) in RECALLABLE
            and state.refs.at(row) == ref
            and (hidden is None or not hidden[row])
        ]

    def _record(self, state: State, ref: str, row: int) -> Record:
        created, changed = state.numbers["created"].values, state.numbers["changed"].values
        rows = self._rows[ref]
        place, first, successors = rows.index(row), row, state.numbers["superseded_by"].values
        while place and float(successors[rows[place - 1]]) == first + 1:
            place -= 1
            first = rows[place]
        last = int(changed[row])
        return Record(
            id=row + 1,
            first=first + 1,
            path=tuple(json.loads(ref))[len(self.root) :],
            text=state.texts.at(row) or "",
            value=state.notes["context"].at(row),
            searched=state.names["season"].at(row) != UNSEARCHED,
            created=from_micros(int(created[first])),
            changed=from_micros(
                max(int(created[row]), last if last != NEVER else int(created[row]))
            ),
        )

    # -- paths --------------------------------------------------------------------------------------------------------

    def _ref(self, path: Iterable[str]) -> str:
        names = (*self.root, *path)
        for name in names:
            if not isinstance(name, str):
                raise InputError(f"A name in a path is a text, not {describe_value(name)}.")
        return json.dumps(names, separators=(",", ":"))

    def _prefix(self, prefix: Iterable[str]) -> str:
        return self._ref(prefix)[:-1] + ","

    # -- writing ------------------------------------------------------------------------------------------------------

    def put(self, writes: Sequence[Write]) -> None:
        """Put a record under each path, in the place of what is there: new ones in one transaction, others by edits."""
        with self.lock:
            new = []
            for write in writes:
                there = self.all_at(write.path)
                self.drop(there[:-1])
                old = there[-1] if there else None
                if old is None:
                    new.append(write)
                elif (old.text, old.value, old.searched) != (
                    write.text,
                    write.value,
                    write.searched,
                ):
                    self._refuse(write)
                    # without a source, so that it is a "user-edit": edits of one memory by several follow one another
                    given = {
                        name: value
                        for name, value in self._given(write).items()
                        if name != "source"
                    }
                    self.lab.edit(old.id, text=write.text, **given)
            self.append(new)

    def move(self, moves: Iterable[tuple[Record, Path]], **fields: Any) -> None:
        """Put each record under another path: an edit of where it stands."""
        with self.lock:
            for record, path in moves:
                self.lab.edit(record.id, ref=self._ref(path), **fields)

    def append(self, writes: Sequence[Write], *, chain: bool = False) -> Remembered | None:
        """Add records, in one transaction, beside what is there."""
        if not writes:
            return None
        for write in writes:
            self._refuse(write)
        rows = [
            {"text": write.text, "ref": self._ref(write.path), **self._given(write)}
            for write in writes
        ]
        return self.lab.remember(rows, linking="off", chain=chain)

    def _given(self, write: Write) -> dict[str, Any]:
        season = None if write.searched else UNSEARCHED
        return {**self.fields, **write.fields, "context": write.value, "season": season}

    def _refuse(self, write: Write) -> None:
        """PrivacyError for personal identifiers in a value, where the pack has them taken out of texts.

        For secrets the lab refuses it by itself.
        """
        personal = personal_kinds(self.lab.policies.pack.settings)
        if personal and write.value is not None:
            found = screen(write.value, personal=personal).findings
            if found:
                raise PrivacyError(
                    f"The value under {'/'.join(write.path)} holds what the pack has taken out of texts "
                    f"({found[0].type}). A value is kept as it is or not at all: take it out."
                )

    def delete(self, records: Iterable[Record]) -> None:
        """Delete all that is under their paths, in one transaction."""
        with self.lock:
            every: list[Record] = []
            for path in {record.path: None for record in records}:
                every += self.all_at(path)
            self.drop(every)

    def drop(self, records: Iterable[Record]) -> None:
        """Delete these and nothing else, in one transaction."""
        ids = [record.id for record in records]
        if ids:
            self.lab.forget(ids, how="delete")

    # -- asking -------------------------------------------------------------------------------------------------------

    def below(self, prefix: Iterable[str]) -> pl.Expr:
        """The memories whose paths begin with a prefix."""
        return pl.col("ref").str.starts_with(self._prefix(prefix))

    def ask(self, query: str, limit: int, where: pl.Expr) -> list[tuple[Record, float]]:
        """The records, of those ``where`` admits, that the lab recalls for a question, with their scores.

        At most ``limit``: where the pack explores, the last places are kept for its probes, so that what is logged as
        shown is what is shown; with one place a probe that was drawn is not.
        """
        pack = self.lab.policies.pack
        probes = int(pack.settings["probes"]) if float(pack.settings["probe-rate"]) > 0 else 0
        hits = self.lab.recall(
            query, limit=max(limit - probes, 1), project=self.project, where=where
        )
        self.hits = hits
        found = []
        with self._reading() as state:
            for hit in hits[:limit]:
                rows = self._in_use(state, hit.ref or "")
                if rows and rows[-1] == hit.id - 1:
                    found.append((self._record(state, hit.ref or "", hit.id - 1), hit.score))
        return found
