"""The result of a search: the front, the winner, and the evidence for the winner."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.errors import UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Columns, Markup, Report, Table, format_rows
from memlab.kernel.base.printable import count_of, printable
from memlab.kernel.language import Policy
from memlab.kernel.policies import Pack
from memlab.science.evaluation import Estimate
from memlab.science.evaluation.parts import untested_sentence
from memlab.subjects.drawing import (
    BLUE,
    GREY,
    ORANGE,
    OnAxes,
    draw_figure,
    draw_svg,
    render_page,
    write_page,
)
from memlab.subjects.lens.diff import FormDiff, diff_policies

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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

PROVEN = 1e-9
"""A gain is proven if its lower bound exceeds this, which is above rounding errors."""

CHANGES: dict[str, Any] = {
    "hash": pl.String,
    "name": pl.String,
    "before": pl.Float64,
    "after": pl.Float64,
}
"""The columns of the changed questions or clusters and their types."""


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
        ``gain_low`` and ``gain_high`` are the difference from the start. Intervals of the gain hold together
        for all rows. ``gained`` and ``lost`` are the numbers of questions of the report part that do
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
    policies
        The compiled policies of the front, in the order of its rows.
    changes
        A row for each policy and each question of the report part that does better or worse, or
        cluster with feedback: ``hash`` of the policy, ``name`` (the query, or the cluster), and the
        metric ``before`` and ``after``.

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
    policies: tuple[Policy, ...] = field(default=(), repr=False)
    changes: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CHANGES), repr=False)

    @property
    def sentence(self) -> str:
        """The finding in one or two sentences."""
        tried = f"{count_of(self.tried, 'program')} {'was' if self.tried == 1 else 'were'} tried"
        if self.gain is None:
            return f"Nothing better was found: {tried}, and none ranks otherwise and does better."
        gain = self.gain
        span = f"{gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
        if self.best is not None:
            value = f"{self.metric} {self.start + gain.value:.4f}, {span} over the start"
            untested = untested_sentence(self.untested)
            return f"A better policy was found: {value}, on clusters that the search never read. {untested}".rstrip()
        # Gates withhold a policy only if its gain is proven.
        withheld = self.front.filter(pl.col("gain_low") > PROVEN)["closed"].to_list()
        closed = sorted({gate for gates in withheld for gate in gates})
        gates = (
            f" Closed gates withhold a policy that does better: {', '.join(closed)}."
            if closed
            else ""
        )
        missed = self.front["gain_high"].max()
        bound = (
            f" A policy of the front may be better by up to {missed:.4f}, which these data cannot show."
            if isinstance(missed, float) and missed > 0
            else ""
        )
        return (
            f"Nothing better was found: {tried}, and the most promising of {count_of(self.reported, 'policy')} differs "
            f"from the start by {span} on the report part.{gates}{bound}"
        )

    @property
    def best_hash(self) -> str | None:
        """The hash of the best policy in the front, or None; a pack has another hash."""
        if self.best is None:
            return None
        better = self.front.filter(pl.col("gain_low") > PROVEN, pl.col("closed").list.len() == 0)
        return str(better["hash"][0])

    def _display(self) -> tuple[list[str], Table]:
        parts = ", ".join(f"{name} {count}" for name, count in self.clusters.items())
        lines = [
            self.sentence,
            f"{self.metric}, {count_of(self.tried, 'program')}, seed {self.seed}; parts by {self.clustered}: {parts}. "
            f"Intervals of the gain hold together for {count_of(self.reported, 'policy')} at {self.level:.0%}.",
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
    def diff(self, policy: str) -> FormDiff:
        """Compare a policy of the front with the start, word by word.

        Parameters
        ----------
        policy
            The hash of the policy, or its first characters.

        Returns
        -------
        FormDiff
            The differences; false for the start itself.

        Raises
        ------
        UnknownName
            If not exactly one policy of the front has such a hash.

        Examples
        --------
        >>> found.diff(found.front["hash"][-1])                         # doctest: +SKIP
        """
        matches = [item for item in self.policies if item.hash.startswith(policy)]
        if len(matches) != 1:
            raise UnknownName("policy of the front", policy, self.front["hash"].to_list())
        return diff_policies(self.policies[0], matches[0])

    @checked
    def figure(self, *, axes: OnAxes | None = None) -> Figure:
        """Draw the value of each policy of the front against its size.

        Parameters
        ----------
        axes
            The axes to draw on. Default: a new figure.

        Returns
        -------
        Figure
            A dot with an interval for each policy, a square for the start, and a filled dot for the
            best policy.

        Raises
        ------
        MissingExtra
            If matplotlib is not installed.
        """
        return draw_figure(self._draw, width=6.4, height=3.4, axes=axes)

    def _draw(self, axes: Axes) -> None:
        """Draw the size and value of each policy as a dot with its interval, linked to the policy's text on the page."""
        best = self.best_hash
        for number, row in enumerate(self.front.iter_rows(named=True)):
            colour = BLUE if number else ORANGE
            filled = not number or row["hash"] == best
            axes.vlines(row["size"], row["low"], row["high"], color=colour, linewidth=1.4)
            (dot,) = axes.plot(
                row["size"],
                row["value"],
                "o" if number else "s",
                color=colour,
                # A dot without any fill could be clicked at its border only.
                markerfacecolor=colour if filled else "white",
                markersize=9,
            )
            dot.set_url(f"#{row['hash']}")
            axes.annotate(
                row["hash"][:6] if number else "start",
                (row["size"], row["value"]),
                xytext=(8, 4),
                textcoords="offset points",
                fontsize="small",
            )
        axes.axhline(self.start, color=GREY, linewidth=0.8, linestyle=":")
        axes.margins(x=0.12)
        # A correction has hundreds of operations, and policies of a search have a few.
        axes.set(xscale="log", xlabel="size (operations)", ylabel=f"{self.metric}, report part")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()

    @checked
    def report(self, path: str | Path) -> Path:
        """Write the result as one HTML file, in which each dot opens its policy.

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
        MissingExtra
            If matplotlib is not installed.
        """
        lines, table = self._display()
        policies = []
        for number, row in enumerate(self.front.iter_rows(named=True)):
            changes = self.changes.filter(hash=row["hash"]).with_columns(
                change=pl.col("after") - pl.col("before")
            )
            diff = Markup(self.diff(row["hash"])._repr_html_()) if number else ""
            policies.append(row | {"diff": diff, "changes": changes.sort("change").to_dicts()})
        figure = draw_svg(self._draw, name="front", width=7.6, height=3.6)
        html = render_page(
            Path(__file__).parent / "evolved.html",
            {"printable": printable},
            # matplotlib's links open another tab, where no policy would be open.
            figure=Markup(figure.replace(' target="_blank"', "")),
            sentence=lines[0],
            lines=lines[1:],
            heads=table.heads,
            rows=list(table.rows),
            policies=policies,
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
    ("operator", "{operator}"),
)
