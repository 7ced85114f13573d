"""Memories under paths: what a framework keeps by a key, as memories of a lab.

The ``ref`` of a memory is its path as a JSON array, which no name in it can leave; ``context`` is the value as JSON
where the text alone does not say it. A path names the newest memory with its ref that is in use: what the lab forgets,
retires or quarantines is not there for the framework either. Another value is an edit, so both stay in the history;
deleting is ``lab.forget(how="delete")``, which ``lab.restore`` undoes and ``lab.purge(overdue=True)`` ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.errors import InputError, PrivacyError
from memlab.kernel.base.arguments import shown
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.privacy import personal_kinds, screen
from memlab.kernel.schema import NEVER, RECALLABLE
from memlab.kernel.state import Seen, State, is_blank

if TYPE_CHECKING:
    from memlab.kernel.recall import Hits
    from memlab.kernel.verbs.results import Remembered
    from memlab.subjects.lab import Lab

__all__ = ["Path", "Record", "Records", "Write", "these", "written"]

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


def written(path: Iterable[str], text: str, value: str | None = None, *, searched: bool = True, **fields: Any) -> Write:
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

    def __init__(self, lab: Lab, name: str, *, project: str | None = None, creator: str | None = None) -> None:
        if is_blank(name):
            raise InputError("name is blank: it sets apart what is kept here.")
        self.lab, self.root = lab, (name,)
        self.project = project
        self.fields = {name: value for name, value in (("project", project), ("creator", creator)) if value is not None}
        self.lock = ThreadLock()
        self.hits: Hits | None = None
        self._rows: dict[str, list[int]] = {}
        self._upto = 0

    # -- reading ------------------------------------------------------------------------------------------------------

    def at(self, path: Iterable[str]) -> Record | None:
        """The record under a path; None if there is none."""
        ref = self._ref(path)
        with self.lock, self.lab.io.store.reading() as state:
            self._follow(state)
            rows = self._in_use(state, ref)
            return self._record(state, ref, rows[-1]) if rows else None

    def all_at(self, path: Iterable[str]) -> list[Record]:
        """Every record under a path, in the order in which they were written: where a path names a sequence."""
        ref = self._ref(path)
        with self.lock, self.lab.io.store.reading() as state:
            self._follow(state)
            return [self._record(state, ref, row) for row in self._in_use(state, ref)]

    def under(self, prefix: Iterable[str] = ()) -> list[Record]:
        """The records whose paths begin with a prefix, in the order in which they were first written."""
        begins = self._prefix(prefix)
        with self.lock, self.lab.io.store.reading() as state:
            self._follow(state)
            found = []
            for ref in self._rows:
                rows = self._in_use(state, ref) if ref.startswith(begins) else []
                if rows:
                    found.append(self._record(state, ref, rows[-1]))
            return sorted(found, key=lambda record: record.first)

    def paths(self) -> list[Path]:
        """The path of each record."""
        with self.lock, self.lab.io.store.reading() as state:
            self._follow(state)
            return [tuple(json.loads(ref))[1:] for ref in self._rows if self._in_use(state, ref)]

    def ending(self, name: str) -> Path | None:
        """The path that ends with a name, whether anything is there or not; None if there never was one."""
        end = "," + json.dumps(name) + "]"
        with self.lock, self.lab.io.store.reading() as state:
            self._follow(state)
            found = next((ref for ref in self._rows if ref.endswith(end)), None)
        return None if found is None else tuple(json.loads(found))[1:]

    def versions(self, path: Iterable[str]) -> list[tuple[Record, str]]:
        """Every memory that was ever under a path and was not purged, oldest first, with its status."""
        ref = self._ref(path)
        with self.lock, self.lab.io.store.reading() as state:
            self._follow(state)
            rows = [row for row in self._rows.get(ref, ()) if state.refs.at(row) == ref]
            return [(self._record(state, ref, row), state.names["status"].at(row) or "") for row in rows]

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
            if status.at(row) in RECALLABLE and state.refs.at(row) == ref and (hidden is None or not hidden[row])
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
            changed=from_micros(max(int(created[row]), last if last != NEVER else int(created[row]))),
        )

    # -- paths --------------------------------------------------------------------------------------------------------

    def _ref(self, path: Iterable[str]) -> str:
        names = (*self.root, *path)
        for name in names:
            if not isinstance(name, str):
                raise InputError(f"A name in a path is a text, not {shown(name)}.")
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
                elif (old.text, old.value, old.searched) != (write.text, write.value, write.searched):
                    self._refuse(write)
                    # without a source, so that it is a "user-edit": edits of one memory by several follow one another
                    given = {name: value for name, value in self._given(write).items() if name != "source"}
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
        rows = [{"text": write.text, "ref": self._ref(write.path), **self._given(write)} for write in writes]
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
            self.drop([one for path in dict.fromkeys(record.path for record in records) for one in self.all_at(path)])

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
        hits = self.lab.recall(query, limit=max(limit - probes, 1), project=self.project, where=where)
        self.hits = hits
        found = []
        with self.lock, self.lab.io.store.reading() as state:
            self._follow(state)
            for hit in hits[:limit]:
                rows = self._in_use(state, hit.ref or "")
                if rows and rows[-1] == hit.id - 1:
                    found.append((self._record(state, hit.ref or "", hit.id - 1), hit.score))
        return found
