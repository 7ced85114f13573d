"""The results of loading a file and of joining two labs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import polars as pl

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.privacy import Finding

__all__ = ["GUESSED", "JOINED", "PLACES", "WHATS", "Joined", "Loaded"]

# The columns of the tables in a result, which tables without rows have too.
GUESSED = {"source": pl.String, "field": pl.String, "taken": pl.String}
PLACES = {"source": pl.String, "place": pl.Int64, "why": pl.String}
_MAX_GUESSES = 12
"""The maximum number of guesses that the text of a result lists. A folder may have many."""
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


@dataclass(frozen=True)
class _Incoming:
    """The outcomes of the memories that came from one source.

    ``frame`` has one row for each memory, with the outcome in the column ``what``.
    """

    _id: ClassVar[str] = "id"
    source: str
    frame: pl.DataFrame = field(repr=False)

    @checked
    def count(self, what: str) -> int:
        """Count the rows of ``frame`` with the given outcome.

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


@dataclass(frozen=True)
class Loaded(_Incoming, Displayed):
    """The result of ``lab.load``.

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

    @checked
    def count(self, what: str) -> int:
        """Count the memories with the given outcome.

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

    def __repr__(self) -> str:
        # Counts of zero are left out, so that a plain file gives one short line.
        edges = f" and {self.edges:,} edges" if self.guessed.is_empty() else ""
        parts = [f"{self.count('added'):,} memories{edges} from {self.source}"]
        notes = (
            (self.count("known"), "were already in the lab"),
            (self.count("purged"), "were purged from the lab before and not added"),
            (self.extracted, "facts and memories extracted from the messages"),
        )
        parts += [f"{count:,} {note}" for count, note in notes if count]
        if self.registers:
            parts.append(f"with {', '.join(self.registers)}")
        if self.redacted:
            parts.append(f"{len(self.redacted):,} secrets redacted")
        for word, counts in (("skipped", self.skipped), ("left out", self.left_out)):
            if counts:
                parts.append(
                    f"{word}: " + ", ".join(f"{name} ({count:,})" for name, count in counts.items())
                )
        if 0 < len(self.guessed) <= _MAX_GUESSES:
            parts.append(
                "guessed: "
                + ", ".join(f"{field} {column}" for _, field, column in self.guessed.iter_rows())
            )
        return printable("; ".join(parts))

    def _display(self) -> object:
        return repr(self)


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
