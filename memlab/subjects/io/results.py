"""What came in: the results of loading a file and of joining two labs."""

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

GUESSED = {"source": pl.String, "field": pl.String, "taken": pl.String}
PLACES = {"source": pl.String, "place": pl.Int64, "why": pl.String}
_MOST_SAID = 12
"""Guesses that a line of text repeats; of a folder there are many."""
JOINED = {
    "memory_id": pl.Int64,
    "what": pl.String,
    "before": pl.String,
    "after": pl.String,
    "stands": pl.String,
}
WHATS = ("added", "edited", "status", "conflict")


@dataclass(frozen=True)
class _Incoming:
    """What came in of one source; ``frame`` has a row for each memory, and says in ``what`` what became of it."""

    _id: ClassVar[str] = "id"
    source: str
    frame: pl.DataFrame = field(repr=False)

    @checked
    def count(self, what: str) -> int:
        """Return how many rows of ``frame`` have this word in ``what``, such as "added"."""
        return int((self.frame["what"] == what).sum())

    @property
    def ids(self) -> tuple[int, ...]:
        """The memories that were added, by their ids here."""
        return tuple(self.frame.filter(pl.col("what") == "added")[self._id].to_list())


@dataclass(frozen=True)
class Loaded(_Incoming, Displayed):
    """What was loaded. ``frame`` has a row for each memory of the source, in its order.

    Its columns: ``theirs`` (of an export the id there, else the place: a line, a row, an entry), ``id`` (here; null for
    what a source of no ids has that was here), ``what`` (added, known, purged), ``origin`` (of which file or lab).
    ``guessed`` says what was taken for what, ``left_out`` counts by name what the source says and a lab has no place
    for, ``skipped`` by reason what could not be taken, and ``places`` says where. ``redacted`` lists what the privacy
    gate replaced, by id here. ``registers`` are the tables beside memories that came along with an export.
    """

    edges: int = 0
    registers: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    redacted: tuple[tuple[int, Finding], ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    guessed: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=GUESSED), repr=False)
    """``source``, ``field`` (reader, text, role, speaker, at, session, project, ...), ``taken``: from which column."""
    places: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PLACES), repr=False)
    """``source``, ``place``, ``why``, of the first thousand of each file."""
    extracted: int = 0
    """Facts and memories that were extracted of the messages and stored beside them."""

    @checked
    def count(self, what: str) -> int:
        """Return how many memories were "added", "known" already, "purged" here before, or "skipped"."""
        return sum(self.skipped.values()) if what == "skipped" else super().count(what)

    def __repr__(self) -> str:
        edges = f" and {self.edges:,} edges" if self.guessed.is_empty() else ""
        parts = [f"{self.count('added'):,} memories{edges} from {self.source}"]
        if known := self.count("known"):
            parts.append(f"{known:,} were here already")
        if purged := self.count("purged"):
            parts.append(f"{purged:,} had been purged here and stay away")
        if self.extracted:
            parts.append(f"{self.extracted:,} facts and memories extracted of them")
        if self.registers:
            parts.append(f"with {', '.join(self.registers)}")
        if self.redacted:
            parts.append(f"{len(self.redacted):,} secrets redacted")
        for word, counts in (("skipped", self.skipped), ("left out", self.left_out)):
            if counts:
                parts.append(
                    f"{word}: " + ", ".join(f"{name} ({count:,})" for name, count in counts.items())
                )
        if 0 < len(self.guessed) <= _MOST_SAID:
            parts.append(
                "guessed: "
                + ", ".join(f"{field} {taken}" for _, field, taken in self.guessed.iter_rows())
            )
        return printable("; ".join(parts))

    def _display(self) -> object:
        return repr(self)


@dataclass(frozen=True)
class Joined(_Incoming, Displayed):
    """What ``lab.io.join`` did, or would do (``dry_run``).

    ``frame`` has a row for each memory that came in or changed: ``memory_id``, ``what`` ("added", "edited", "status",
    "conflict"), ``before``, ``after``, ``stands``. An edited memory has its texts or fields there, "status" the
    statuses; a conflict the version here and the one there, and in ``stands`` which is kept: "here" or "there".
    """

    _id: ClassVar[str] = "memory_id"
    known: int = 0
    """Memories that both labs have."""
    edges: int = 0
    """Edges that came in."""
    kept_away: int = 0
    """Memories that were purged here, and stay away."""
    purged: tuple[int, ...] = ()
    """Memories that were purged there, and are deleted here; ``lab.purge`` removes them for good."""
    redacted: tuple[tuple[int, Finding], ...] = ()
    """What the privacy gate replaced in texts that came in, by id here."""
    dry_run: bool = False

    @property
    def conflicts(self) -> pl.DataFrame:
        """The rows of ``frame`` for what both labs changed."""
        return self.frame.filter(pl.col("what") == "conflict")

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        counts = {what: self.count(what) for what in WHATS}
        parts = [
            f"{'would join' if self.dry_run else 'joined'} {self.source}: {counts['added']:,} memories and "
            f"{self.edges:,} edges added, {counts['edited']:,} edited, {counts['status']:,} of another status, "
            f"{counts['conflict']:,} conflicts"
        ]
        if self.known:
            parts.append(f"{self.known:,} were here already")
        if self.kept_away:
            parts.append(f"{self.kept_away:,} had been purged here and stay away")
        if self.purged:
            parts.append(f"{len(self.purged):,} were purged there and are deleted here")
        if self.redacted:
            parts.append(f"{len(self.redacted):,} secrets redacted")
        return printable("; ".join(parts))
