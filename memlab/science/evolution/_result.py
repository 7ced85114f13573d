"""The result of a search: the front, the winner, and the evidence for the winner."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.kernel.base.printable import count_of
from memlab.kernel.language import Policy
from memlab.kernel.policies import Pack
from memlab.science.evaluation import Estimate
from memlab.science.evaluation.parts import untested_sentence
from memlab.subjects.drawing import render_page, write_page

__all__ = ["FRONT", "Evolved"]

FRONT: dict[str, Any] = {
    "size": pl.Int64,
    **dict.fromkeys(("value", "low", "high", "gain", "gain_low", "gain_high"), pl.Float64),
    "hash": pl.String,
    "parents": pl.List(pl.String),
    "operator": pl.String,
    "policy": pl.String,
    "gained": pl.Int64,
    "lost": pl.Int64,
    "closed": pl.List(pl.String),
}
"""The columns of the front and their types."""


@dataclass(frozen=True, repr=False)
class Evolved(Report):
    """The result of a search over policies, made by ``memlab.evolve``.

    Parameters
    ----------
    best
        The pack of the front that is better than the start on the report part, or None. It is a
        compiled policy if the log has columns that no slot declares.
    front
        A row for the start and for each policy that the selection part chose. ``size`` is the number
        of operations. ``value``, ``low`` and ``high`` are the metric on the report part. ``gain``,
        ``gain_low`` and ``gain_high`` are the difference from the start. Intervals of all rows hold
        together. ``gained`` and ``lost`` are the numbers of questions of the report part that do
        better or worse, or of clusters with feedback. ``closed`` are the closed gates.
    frame
        A row for each program of the archive, with its value on the search part.
    lineage
        A row for each program that ever entered the archive: ``hash``, ``parents``, ``operator`` and
        ``value`` on the search part. Hashes are those of policies.
    gain
        The difference of the best, or of the most promising policy, from the start; None if no
        policy differs.
    metric, start
        The name of the metric, and its value for the start on the report part.
    tried
        The number of programs. The same seed with this number as budget gives the same front.
    reported
        The number of policies that were measured on the report part. Intervals are corrected for it.
    clusters, clustered
        The number of clusters in each part, and the unit.
    proposals, refusals
        The number of proposals, and why proposals were refused.
    ended
        What ended the search: "budget" or "interrupt".
    seed, level
        The seed of the search, and the confidence level.
    notes
        Observations about the data.
    untested
        With feedback, the gates of the best policy that the log cannot test.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> texts = [f"{name} likes {what}" for name in ("Ana", "Ben") for what in ("tea", "rain", "Rome")]
    >>> _ = lab.remember(texts)
    >>> for number, text in enumerate(texts, 1):
    ...     _ = lab.questions.add(f"Who says that {text}?", wants=number)
    >>> found = memlab.evolve(lab, "similarity", budget=20)
    >>> found.tried, found.best, found.clusters
    (20, None, {'search': 3, 'selection': 1, 'report': 2})
    """

    best: Pack | Policy | None
    front: pl.DataFrame = field(repr=False)
    frame: pl.DataFrame = field(repr=False)
    lineage: pl.DataFrame = field(repr=False)
    gain: Estimate | None
    metric: str
    start: float
    tried: int
    reported: int
    clusters: dict[str, int]
    clustered: str
    proposals: int
    refusals: tuple[str, ...]
    ended: str
    seed: int
    level: float
    notes: tuple[str, ...] = ()
    untested: tuple[Any, ...] = ()

    @property
    def sentence(self) -> str:
        """The finding in one or two sentences."""
        tried = f"{self.tried:,} programs were tried"
        if self.gain is None:
            return f"Nothing better was found: {tried}, and none ranks otherwise and does better."
        gain = self.gain
        span = f"{gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
        if self.best is not None:
            value = f"{self.metric} {self.start + gain.value:.4f}, {span} over the start"
            untested = untested_sentence(self.untested)
            return f"A better policy was found: {value}, on clusters that the search never read. {untested}".rstrip()
        closed = sorted({gate for gates in self.front["closed"].to_list() for gate in gates})
        gates = f" Closed gates withhold it: {', '.join(closed)}." if closed else ""
        missed = self.front["gain_high"].max()
        bound = (
            f" A policy of the front may be better by up to {missed:.4f}, which these data cannot show."
            if isinstance(missed, float) and missed > 0
            else ""
        )
        return (
            f"Nothing better was found: {tried}, and the most promising of {count_of(self.reported, 'policy')} does {span} "
            f"on the report part.{gates}{bound}"
        )

    def _display(self) -> tuple[list[str], Table]:
        parts = ", ".join(f"{name} {count}" for name, count in self.clusters.items())
        lines = [
            self.sentence,
            f"{self.metric}, {self.tried:,} programs, seed {self.seed}; parts by {self.clustered}: {parts}. "
            f"Intervals hold together for {count_of(self.reported, 'policy')} at {self.level:.0%}.",
            *(["The search was interrupted."] if self.ended == "interrupt" else []),
            *(
                [f"{count_of(self.proposals, 'proposal')}, {len(self.refusals)} refused."]
                if self.proposals
                else []
            ),
            *self.notes,
        ]
        return lines, Table("", *format_rows(self.front.iter_rows(named=True), _COLUMNS))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values.

        Returns
        -------
        dict
            The sentence, the front, and the settings of the search.
        """
        names = (
            "metric",
            "start",
            "tried",
            "reported",
            "clusters",
            "clustered",
            "proposals",
            "ended",
            "seed",
            "level",
        )
        return {
            "sentence": self.sentence,
            "best": None if self.best is None else self.best.hash,
            "gain": None if self.gain is None else [self.gain.value, self.gain.low, self.gain.high],
            **{name: getattr(self, name) for name in names},
            "front": self.front.to_dicts(),
            "refusals": list(self.refusals),
            "notes": list(self.notes),
        }

    @checked
    def report(self, path: str | Path) -> Path:
        """Write the result as one self-contained HTML file.

        Parameters
        ----------
        path
            The file to write.

        Returns
        -------
        Path
            The path of the file.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        lines, table = self._display()
        html = render_page(
            Path(__file__).parent / "evolved.html",
            {},
            sentence=lines[0],
            lines=lines[1:],
            heads=table.heads,
            rows=list(table.rows),
            policies=self.front.to_dicts(),
        )
        return write_page(html, path)


# Columns of the table in a terminal; the frame has all.
_COLUMNS: Columns = (
    ("policy", lambda row: row["hash"][:12]),
    ("size", "{size}"),
    ("value", "{value:.4f}"),
    ("interval", "[{low:.4f}, {high:.4f}]"),
    ("gain", "{gain:+.4f} [{gain_low:+.4f}, {gain_high:+.4f}]"),
    ("gained", "{gained}"),
    ("lost", "{lost}"),
    ("by", "{operator}"),
)
