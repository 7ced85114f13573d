"""The results of loading a file and of joining two labs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import polars as pl

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import INSTANT
from memlab.kernel.base.display import Displayed, Report, Table, clip
from memlab.kernel.base.printable import count_of, printable
from memlab.kernel.privacy import Finding

# The columns of the tables in a result, which tables without rows have too.
GUESSED = {"source": pl.String, "field": pl.String, "taken": pl.String}
PLACES = {"source": pl.String, "place": pl.Int64, "why": pl.String}
ROWS = pl.Schema({"speaker": pl.String(), "session": pl.String(), "at": INSTANT})
_MAX_GUESSES = 12
"""The maximum number of guesses and reasons that a card lists. A folder may have many."""
# Guesses about a file; all others say where a field of memories is from.
_OF_FILES = ("reader", "separator", "encoding")
# The names of fields as in the other rows of a card.
_FIELDS = {"at": "time", "session": "sessions", "speaker": "speakers"}
# The guess of a reader that found no column of times.
_UNTIMED = "nothing, so the time of loading counts"
_MAX_SPEAKERS = 6
"""The maximum number of speakers that a card names, so that a group chat stays one line."""
# The columns of ``Joined.frame``.
JOINED = {
    "memory_id": pl.Int64,
    "what": pl.String,
    "before": pl.String,
    "after": pl.String,
    "stands": pl.String,
}
# The values of ``what`` in ``Joined.frame``, in the order of its rows.
WHATS = ("added", "edited", "status", "conflict")


@dataclass(frozen=True, repr=False)
class _Incoming:
    """The outcomes of the memories that came from one source.

    ``frame`` has one row for each memory, with the outcome in the column ``what``.
    """

    _id: ClassVar[str] = "id"
    source: str
    frame: pl.DataFrame = field(repr=False)

    @checked
    def count(self, what: str) -> int:
        """Return the number of rows of ``frame`` with this outcome.

        Parameters
        ----------
        what
            A value of the column ``what``, such as "added".

        Returns
        -------
        int
            The number of rows; 0 for an unknown outcome.
        """
        return int((self.frame["what"] == what).sum())

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the added memories."""
        return tuple(self.frame.filter(pl.col("what") == "added")[self._id].to_list())


@dataclass(frozen=True, repr=False)
class Loaded(_Incoming, Report):
    """The result of ``lab.load``, displayed as a card.

    Attributes
    ----------
    source
        The name of the file, folder or lab.
    frame
        One row for each memory of the source, in its order:

        - ``theirs``: the id in an export, or the number of the line, row or entry
        - ``id``: the id in this lab, null for a known memory from a source without ids
        - ``what``: "added", "known" or "purged"
        - ``origin``: the file or lab
    edges
        The number of added edges.
    registers
        The names of the other tables that came with an export.
    left_out
        The number of values, by field, that a lab does not store.
    redacted
        The secrets that the privacy gate replaced, each with the id of its memory.
    skipped
        The number of rows that could not be loaded, by reason.
    guessed
        The columns that were recognised: ``source``, ``field`` (reader, text, role, speaker, at,
        session, project, ...) and ``taken`` (the name of the column).
    places
        The first thousand skipped rows of each file: ``source``, ``place`` and ``why``.
    extracted
        The number of facts and memories that were extracted from messages.
    rows
        One row for each memory of the source: ``speaker``, ``session`` and ``at``, null where the source has none.
    proposed
        The column whose name resembles a field that no column provides, by field.
    path
        The path that was loaded; None for data.

    Examples
    --------
    >>> lab = memlab.open()
    >>> lab.load([{"text": "The build needs Node 20."}]).count("added")
    1
    """

    edges: int = 0
    registers: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    redacted: tuple[tuple[int, Finding], ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    guessed: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=GUESSED), repr=False)

    places: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PLACES), repr=False)

    extracted: int = 0
    rows: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=ROWS), repr=False)
    proposed: Mapping[str, str] = field(default_factory=dict)
    path: str | None = None

    @checked
    def count(self, what: str) -> int:
        """Return the number of memories with this outcome.

        Parameters
        ----------
        what
            "added", "known" (already in the lab), "purged" (purged from the lab before) or
            "skipped".

        Returns
        -------
        int
            The number of memories; 0 for an unknown outcome.
        """
        return sum(self.skipped.values()) if what == "skipped" else super().count(what)

    @property
    def card(self) -> list[tuple[str, str]]:
        """The rows of the notebook card, as pairs of a name and a text."""
        lines = [
            ("speakers", self._describe_speakers()),
            ("sessions", self._describe_sessions()),
            ("time", self._describe_times()),
            *(
                (
                    field if field in _OF_FILES else f"{_FIELDS.get(field, field)} from",
                    guess if count == 1 else f"{guess} ({count:,} files)",
                )
                for field, guess, count in self._count_guesses()
            ),
            ("skipped", _join_counts(self.skipped)),
            ("left out", _join_counts(self.left_out)),
        ]
        return [(name, printable(text)) for name, text in lines if text]

    def _display(self) -> Table:
        edges = f" and {count_of(self.edges, 'edge')}" if self.guessed.is_empty() else ""
        notes = (
            (self.count("known"), "were already in the lab"),
            (self.count("purged"), "were purged from the lab before and not added"),
            (self.extracted, "facts and memories extracted from the messages"),
            (len(self.redacted), "secrets redacted"),
        )
        title = [f"{count_of(self.count('added'), 'memory')}{edges} from {self.source}"]
        title += [f"{count:,} {note}" for count, note in notes if count]
        title += [f"with {', '.join(self.registers)}"] if self.registers else []
        return Table(
            printable("; ".join(title)), ("", ""), self.card, self._next_calls(), left=(0, 1)
        )

    def _describe_speakers(self) -> str:
        """Return the number of speakers, and the names of the most frequent speakers; "" without speakers."""
        counts = self.rows["speaker"].drop_nulls().value_counts(sort=True)
        names = [f"{clip(name, 40)} ({count:,})" for name, count in counts.iter_rows()]
        return f"{len(names):,}: {_join_first(names, _MAX_SPEAKERS)}" if names else ""

    def _describe_sessions(self) -> str:
        """Describe the sessions: their number, and the name of a single session; "" without sessions."""
        names = self.rows["session"].drop_nulls().unique()
        return (
            f"{len(names):,}" + (f": {clip(names[0])}" if len(names) == 1 else "")
            if len(names)
            else ""
        )

    def _describe_times(self) -> str:
        """Return the first and last time of the rows, and the number of rows without a time; "" without times."""
        times = self.rows["at"].drop_nulls()
        if times.is_empty():
            return ""
        first, last = (times.dt.strftime("%Y-%m-%d %H:%M").sort()[at] for at in (0, -1))
        missing = len(self.rows) - len(times)
        return f"{first} to {last} UTC" + (
            f"; {count_of(missing, 'row')} without one" if missing else ""
        )

    def _count_guesses(self) -> list[tuple[str, str, int]]:
        """Return the most frequent guesses as tuples of field, guess and number of sources, the most frequent first."""
        counts = self.guessed.group_by("field", "taken", maintain_order=True).len()
        return counts.sort("len", descending=True, maintain_order=True).rows()[:_MAX_GUESSES]

    def _next_calls(self) -> list[str]:
        """Return the calls that may follow: a corrected load, or queries."""
        calls = []
        again = (
            f"lab.load({'data' if self.path is None else json.dumps(self.path, ensure_ascii=False)}"
        )
        if self.count("added"):
            again = f'lab.forget(loaded.ids, how="delete"); {again}'
        if self.proposed:
            columns = json.dumps(dict(self.proposed), ensure_ascii=False)
            calls.append(
                f"Columns with similar names exist. To use them: {again}, columns={columns})"
            )
        if ("at", _UNTIMED) in self.guessed.select("field", "taken").rows():
            calls.append(f'To date rows by their order: {again}, columns={{"at": "2024-01-01"}})')
        if self.count("added"):
            calls.append("Next: lab.questions.propose()")
        return [printable(call) for call in calls]


def _join_counts(counts: Mapping[str, int]) -> str:
    """Return the most frequent names with their counts, and how many names are omitted, as one text."""
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return _join_first([f"{name} ({count:,})" for name, count in ordered], _MAX_GUESSES)


def _join_first(texts: list[str], limit: int) -> str:
    """Return the first ``limit`` texts on one line, and at its end how many texts are omitted."""
    rest = f" and {len(texts) - limit:,} more" if len(texts) > limit else ""
    return ", ".join(texts[:limit]) + rest


@dataclass(frozen=True)
class Joined(_Incoming, Displayed):
    """The result of ``lab.io.join``, or its plan with ``dry_run``.

    Attributes
    ----------
    source
        The name of the other lab.
    frame
        One row for each added or changed memory: ``memory_id``, ``what`` ("added", "edited", "status" or "conflict"),
        ``before``, ``after`` and ``stands``. For an edited memory ``before`` and ``after`` are texts or fields, for
        "status" they are statuses. For a conflict they are the versions here and there, and ``stands`` says which
        version is kept, "here" or "there".
    known
        The number of memories in both labs.
    edges
        The number of added edges.
    kept_away
        The number of memories that were not added because they were purged here.
    purged
        The ids of memories that were purged in the other lab and are now deleted here. ``lab.purge`` removes them
        permanently.
    redacted
        The secrets that the privacy gate replaced in added texts, each with the id of its memory.
    dry_run
        True for a plan, which changed nothing.

    Examples
    --------
    >>> laptop, server = memlab.open(), memlab.open()
    >>> hit = laptop.remember("The build needs Node 20.")
    >>> len(server.io.join(laptop))
    1
    """

    _id: ClassVar[str] = "memory_id"
    known: int = 0
    edges: int = 0
    kept_away: int = 0
    purged: tuple[int, ...] = ()
    redacted: tuple[tuple[int, Finding], ...] = ()
    dry_run: bool = False

    @property
    def conflicts(self) -> pl.DataFrame:
        """The rows of ``frame`` for memories that both labs changed."""
        return self.frame.filter(pl.col("what") == "conflict")

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        counts = {what: self.count(what) for what in WHATS}
        parts = [
            f"{'would join' if self.dry_run else 'joined'} {self.source}: {counts['added']:,} memories and "
            f"{self.edges:,} edges added, {counts['edited']:,} edited, {counts['status']:,} with a changed status, "
            f"{counts['conflict']:,} conflicts"
        ]
        notes = (
            (self.known, "were already in the lab"),
            (self.kept_away, "were purged here before and not added"),
            (len(self.purged), "were purged there and are deleted here"),
            (len(self.redacted), "secrets redacted"),
        )
        parts += [f"{count:,} {note}" for count, note in notes if count]
        return printable("; ".join(parts))
