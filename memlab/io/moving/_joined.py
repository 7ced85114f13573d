"""What joining two labs did: the memories that came in or changed, and the conflicts."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import paragraph
from memlab.kernel.base.printable import printable
from memlab.kernel.privacy import Finding

__all__ = ["JOINED", "WHATS", "Joined"]

JOINED = {
    "memory_id": pl.Int64,
    "what": pl.String,
    "before": pl.String,
    "after": pl.String,
    "stands": pl.String,
}
WHATS = ("added", "edited", "status", "conflict")


@dataclass(frozen=True)
class Joined:
    """What ``lab.io.join`` did, or would do (``dry_run``).

    ``frame`` has a row for each memory that came in or changed: ``memory_id``, ``what`` ("added", "edited", "status",
    "conflict"), ``before``, ``after``, ``stands``. An edited memory has its texts or fields there, "status" the
    statuses; a conflict the version here and the one there, and in ``stands`` which is kept: "here" or "there".
    """

    source: str
    frame: pl.DataFrame = field(repr=False)
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

    @checked
    def count(self, what: str) -> int:
        """How many rows of ``frame`` are "added", "edited", "status" or "conflict"."""
        return int((self.frame["what"] == what).sum())

    @property
    def ids(self) -> tuple[int, ...]:
        """The memories that were added, by their ids here."""
        return tuple(self.frame.filter(pl.col("what") == "added")["memory_id"].to_list())

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

    def _repr_html_(self) -> str:
        return paragraph(self) + self.frame._repr_html_()
