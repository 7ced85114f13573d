"""An evaluation: what each policy is worth on a log, why a value is missing, and where policies differ."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from itertools import combinations
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Count, checked
from memlab.kernel.base.display import Columns, Markup, Report, Table, format_rows
from memlab.kernel.version import __version__
from memlab.science.evaluation._disagreements import Disagreements, disagreements
from memlab.science.evaluation._figures import (
    DASHES,
    MOST_LINES,
    SIZES,
    draw_disagreement,
    draw_legend,
)
from memlab.science.evaluation._intervals import Estimate, benjamini_hochberg, holm
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._measure import Measured, predicted_rewards
from memlab.science.evaluation._prepared import Settings
from memlab.science.evaluation._targets import Refused, Target
from memlab.science.evaluation._tests import (
    GATES,
    ONE_CLUSTER,
    Gate,
    list_names,
    recalls_to_open,
    rounded,
    share,
    untested_sentence,
)
from memlab.subjects.drawing import (
    BLUE,
    CYCLE,
    GREY,
    INK,
    ORANGE,
    Draw,
    OnAxes,
    draw_figure,
    draw_svg,
    render_page,
    write_page,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Between",
    "Evaluation",
    "PolicyValue",
    "caption",
    "headline",
    "interval",
    "next_step",
    "number",
    "reasons",
    "remarks",
    "separated",
    "stars",
]


Between = Callable[[str, str], tuple[Estimate, tuple[Gate, ...]]]
"""The difference of two policies by their names, and the gates of their comparison."""


@dataclass(frozen=True)
class PolicyValue:
    """What one policy is worth on the log.

    ``value`` and ``difference`` are None where a gate is closed; ``estimate`` is what the arithmetic gave all the
    same, for diagnosis. ``lower`` and ``upper`` bound the value, sampling error left aside.
    """

    policy: str
    kind: Literal["re-scored", "re-recalled"]
    value: Estimate | None
    difference: Estimate | None
    adjusted: float
    lower: float
    upper: float
    verdict: str
    estimate: float
    measured: Measured | None
    metrics: dict[str, float]

    @property
    def closed(self) -> tuple[Gate, ...]:
        """The gates that are closed, which withhold the value."""
        if self.measured is None:
            return () if self.value else (ONE_CLUSTER,)
        return tuple(gate for gate in self.measured.gates if gate.closed)

    @property
    def untested(self) -> tuple[Gate, ...]:
        """The gates that the log cannot test; they withhold nothing, and have not passed."""
        return (
            ()
            if self.measured is None
            else tuple(gate for gate in self.measured.gates if gate.untested)
        )

    @property
    def needed(self) -> int | None:
        """How many more recalls like these would give it a value: 0 if it has one, None where they alone would not."""
        return recalls_to_open(self.closed)


@dataclass(frozen=True, repr=False)
class Evaluation(Report):
    """Policies on one log, best first. A trailing expression renders it; made by ``memlab.evaluate``.

    ``refusals`` are policies that this log cannot evaluate; ``notes`` what was left out of the log and why; ``method``
    how intervals were made. ``needed``: the two best policies that have a value, and how many recalls like these would
    separate them; where nothing but the baseline has a value, the policy that is nearest to one, the baseline, and the
    recalls that it needs. None where recalls like these would not do. Each row has a ``needed`` of its own.
    """

    rows: tuple[PolicyValue, ...]
    refusals: tuple[Refused, ...]
    notes: tuple[str, ...]
    settings: Settings
    baseline: str
    method: str
    recalls: int
    clusters: int
    needed: tuple[str, str, int] | None
    given: tuple[str, ...]
    _log: Log = field(repr=False)
    _targets: tuple[Target, ...] = field(repr=False)
    _schema: pl.Schema = field(repr=False)
    _features: tuple[str, ...] = field(repr=False)
    _lab: Any = field(repr=False)
    _between: Between = field(repr=False)

    @cached_property
    def model_values(self) -> dict[str, float]:
        """The direct method: what a model of rewards expects each policy to be worth. An extrapolation, not a result.

        NaN where the model has too little to learn from, or the policy was re-recalled (its pool has other features).
        """
        if self.settings.measure == "labels":
            return {}
        expected = self._expected()
        values = {}
        for target in self._targets:
            values[target.name] = float("nan")
            if expected is not None and target.kind == "re-scored":
                values[target.name] = float(expected[target.row].sum()) / self.recalls
        return values

    def _expected(self) -> np.ndarray[Any, np.dtype[np.float64]] | None:
        names = [
            name
            for name in self._features
            if (dtype := self._schema.get(name)) is not None
            and (dtype.is_numeric() or dtype == pl.Boolean)
        ]
        log = self._log
        features = (
            log.pool(names).select(pl.col(name).cast(pl.Float64) for name in names).to_numpy()
        )
        cluster = log.cluster[log.recall]
        return predicted_rewards(
            features, log.reward, log.answered, cluster, self.settings.reward_range
        )

    @cached_property
    def frame(self) -> pl.DataFrame:
        """One row a policy, best first, refused ones last.

        ``policy``, ``value``, ``low``, ``high``, ``difference``, ``difference_low``, ``difference_high``, ``p`` (Holm),
        ``lower``, ``upper`` (bounds), ``probes`` (answered, by which it is told from the baseline), ``unsupported``,
        ``untested`` (names of the untested gates, "" for none), ``kind``, ``estimator``, ``verdict``; with labels,
        every metric in place of what concerns feedback.
        """
        labels = self.settings.measure == "labels"
        rows: list[dict[str, object]] = []
        for row in self.rows:
            record: dict[str, object] = {
                "policy": row.policy,
                **_parts("", row.value),
                **_parts("difference", row.difference),
                "p": _known(row.adjusted),
            }
            if labels:
                record |= row.metrics
            else:
                assert row.measured is not None
                record |= {
                    "lower": _known(row.lower),
                    "upper": _known(row.upper),
                    "probes": row.measured.probes,
                    "unsupported": _known(row.measured.unsupported),
                    "untested": ", ".join(gate.name for gate in row.untested),
                }
            estimator = self.settings.metric if labels else self.settings.estimator
            rows.append(record | {"kind": row.kind, "estimator": estimator, "verdict": row.verdict})
        refused = [
            {"policy": one.policy, "kind": "refused", "verdict": "refused"} for one in self.refusals
        ]
        numbers = ("value", "low", "high", "difference", "difference_low", "difference_high", "p")
        overrides = dict.fromkeys(numbers, pl.Float64) if rows else {}
        return pl.DataFrame([*rows, *refused], infer_schema_length=None, schema_overrides=overrides)

    @checked
    def pairs(self, adjust: Literal["holm", "bh"] = "holm") -> pl.DataFrame:
        """Every pair of policies that have a value: a row each, in the order of the values.

        ``policy``, ``other``, ``difference`` (of the one less the other), ``low``, ``high``, ``p`` (adjusted over all
        pairs), ``verdict`` ("better", "worse", "not separated"; "withheld" where a gate of that pair is closed, and
        then no numbers), ``untested`` (names of the untested gates of that pair). ``adjust``: "holm" keeps
        the probability of any wrong finding, "bh" (Benjamini & Hochberg 1995) the share of wrong ones among the
        findings.

        >>> ev.pairs(adjust="bh")                                                          # doctest: +SKIP
        """
        names = [row.policy for row in self.rows if row.value is not None]
        found = [(a, b, *self._between(a, b)) for a, b in combinations(names, 2)]
        passed = [not any(gate.closed for gate in gates) for *_, gates in found]
        known = [gap.p if told else nan for (_, _, gap, _), told in zip(found, passed, strict=True)]
        adjusted = holm(known) if adjust == "holm" else benjamini_hochberg(known)
        rows: list[tuple[object, ...]] = []
        for (a, b, gap, gates), told, p in zip(found, passed, adjusted, strict=True):
            parts = [_known(part) if told else None for part in (gap.value, gap.low, gap.high)]
            verdict = separated(gap, p, self.settings.level) if told else "withheld"
            rows.append(
                (
                    a,
                    b,
                    *parts,
                    _known(p),
                    verdict,
                    ", ".join(gate.name for gate in gates if gate.untested),
                )
            )
        texts, numbers = ("policy", "other"), ("difference", "low", "high", "p")
        schema = dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Float64)
        schema |= dict.fromkeys(("verdict", "untested"), pl.String)
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def diagnostics(self) -> pl.DataFrame:
        """One row a policy and gate, and the raw ``estimate`` of the policy.

        ``figure``, ``threshold``, ``state`` ("open", "closed", "untested", "not needed"), ``open`` (true or false; null
        where nothing was tested), ``finding`` and ``advice`` (of a closed or untested gate).
        """
        rows = [
            {
                "policy": row.policy,
                "gate": gate.name,
                "figure": float(gate.figure),
                "threshold": gate.threshold,
                "state": gate.state,
                "open": gate.open if gate.open or gate.closed else None,
                "finding": "" if gate.open else gate.finding,
                "advice": "" if gate.open else gate.advice,
                "estimate": row.estimate,
                "largest_weight": float(row.measured.weights[0])
                if len(row.measured.weights)
                else None,
            }
            for row in self.rows
            if row.measured is not None
            for gate in row.measured.gates
        ]
        schema = {
            "policy": pl.String,
            "gate": pl.String,
            "figure": pl.Float64,
            "threshold": pl.String,
            "state": pl.String,
            "open": pl.Boolean,
            "finding": pl.String,
            "advice": pl.String,
            "estimate": pl.Float64,
            "largest_weight": pl.Float64,
        }
        return pl.DataFrame(rows, schema=schema)

    @property
    def silent(self) -> float:
        """The share of what was shown whose reward is not known."""
        return self._log.silent

    @property
    def open_windows(self) -> int:
        """Recalls that were left out because their horizon had not closed."""
        return self._log.open

    @property
    def ranked(self) -> bool:
        """Whether at least two policies passed their gates."""
        return sum(row.value is not None for row in self.rows) > 1

    @checked
    def target(self, policy: str) -> Target:
        """What this policy would have shown."""
        for target in self._targets:
            if target.name == policy:
                return target
        raise UnknownName("evaluated policy", policy, [target.name for target in self._targets])

    @checked
    def disagreements(self, a: str, b: str, n: Count = 5) -> Disagreements:
        """The ``n`` recalls on which two policies differ most, with the items and the terms of their scores."""
        return disagreements(
            self._log, self.target(a), self.target(b), n, schema=self._schema, lab=self._lab
        )

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two policies that are most worth comparing: the best and the baseline, or the next."""
        names = [row.policy for row in self.rows]
        if len(names) < 2:
            return None
        others = [name for name in names if name != self.baseline]
        return others[0], self.baseline if self.baseline in names else others[1]

    @checked
    def figure(
        self,
        kind: Literal["leaderboard", "weights", "disagreement"] = "leaderboard",
        *,
        axes: OnAxes | None = None,
    ) -> Figure:
        """A matplotlib figure: ``leaderboard`` with intervals, ``weights``, or the greatest ``disagreement``.

        With ``axes`` it is drawn there, and their figure is returned.
        """
        return _draw_figure(self, kind, axes)

    @checked
    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML file, and return its path."""
        return write_page(_render_page(self), path)

    def to_dict(self) -> dict[str, Any]:
        """All that the text says, as JSON values: each refusal, closed gate and untested gate, with its reason."""
        needed = [*(row.needed for row in self.rows), *(None for _ in self.refusals)]
        policies = self.frame.to_dicts()
        for policy, count in zip(policies, needed, strict=True):
            policy["recalls_needed"] = count
        return {
            "headline": headline(self),
            "method": caption(self),
            "policies": policies,
            "refusals": [{"policy": one.policy, "reason": one.reason} for one in self.refusals],
            "withheld": [_explain_gate(row, gate) for row in self.rows for gate in row.closed],
            "untested": [_explain_gate(row, gate) for row in self.rows for gate in row.untested],
            "needed": self.needed
            and {"policies": list(self.needed[:2]), "recalls": self.needed[2]},
            "next": next_step(self) or None,
            "notes": remarks(self),
        }

    def _display(self) -> object:
        why = [f"{policy}: {reason}" for policy, reason in reasons(self)]
        table = _leaderboard(self) if self.rows else None
        return [headline(self), caption(self)], table, why, remarks(self), next_step(self) or None


def _explain_gate(row: PolicyValue, gate: Gate) -> dict[str, Any]:
    """Return a gate that is closed or untested as JSON values; a figure only of one that was tested."""
    figure = {"figure": gate.figure if isfinite(gate.figure) else None} if gate.closed else {}
    return {
        "policy": row.policy,
        "gate": gate.name,
        **figure,
        "threshold": gate.threshold,
        "reason": gate.finding,
        "advice": gate.advice,
    }


def separated(gap: Estimate | None, adjusted: float, level: float) -> str:
    """The verdict on a difference, by its adjusted p."""
    if gap is None:
        return "ranked, without a baseline to compare with"
    if adjusted < 1 - level:
        return "better" if gap.low > 0 or (gap.value > 0 and not gap.high < 0) else "worse"
    return "not separated"


def _parts(name: str, estimate: Estimate | None) -> dict[str, object]:
    prefix = f"{name}_" if name else ""
    values = (
        (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)
    )
    known = [None if value is None else _known(value) for value in values]
    return {name or "value": known[0], f"{prefix}low": known[1], f"{prefix}high": known[2]}


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


# An evaluation as text and as HTML: the leaderboard, or the refusal and its reasons.


def number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def interval(estimate: Estimate | None) -> str:
    if estimate is None or np.isnan(estimate.low):
        return ""
    return f"[{estimate.low:.3f}, {estimate.high:.3f}]"


def stars(p: float) -> str:
    """``***``, ``**``, ``*`` for an adjusted p below .001, .01 and .05."""
    return "" if np.isnan(p) else "*" * sum(p < threshold for threshold in (0.001, 0.01, 0.05))


def caption(ev: Evaluation) -> str:
    """What kind of number this is."""
    held = f"{_counted(ev.recalls, 'recall')} in {_counted(ev.clusters, 'cluster')}"
    if ev.settings.measure == "labels":
        return f"mean {ev.settings.metric} by labels, {held}; {ev.settings.level:.0%} intervals: {ev.method}"
    name = "self-normalised" if ev.settings.estimator == "snips" else "Horvitz-Thompson"
    return (
        f"value on logged recalls, long-term effects not modelled: mean reward per recall (top k); {name} inclusion "
        f"weights, {held}; {ev.settings.level:.0%} intervals: {ev.method}"
    )


def headline(ev: Evaluation) -> str:
    """The finding in one sentence, and the gates that are untested for what has a value."""
    untested = untested_sentence(
        [gate for row in ev.rows if row.value is not None for gate in row.untested]
    )
    return f"{_finding(ev)} {untested}".rstrip()


def _finding(ev: Evaluation) -> str:
    valued = [row for row in ev.rows if row.value is not None]
    if not valued:
        return "No ranking: this log cannot tell these policies apart, and says why below."
    base = next((row for row in ev.rows if row.policy == ev.baseline), None)
    better = [row.policy for row in ev.rows if row.verdict.startswith("better")]
    worse = [row.policy for row in ev.rows if row.verdict.startswith("worse")]
    if base is None or base.value is None:
        return f"No comparison: {ev.baseline}, which the others are compared to, has no value on this log."
    if len(ev.rows) == 1:
        return f"{base.policy} is worth {number(base.value.value)} a recall."
    if better:
        return f"{list_names(better)} would have done better than {ev.baseline}."
    if worse and len(worse) == len(ev.rows) - 1:
        return f"Nothing would have done better than {ev.baseline}."
    withheld = [row.policy for row in ev.rows if row.value is None]
    if withheld and len(withheld) == len(ev.rows) - 1:
        return f"No ranking: the log has a value for {base.policy} alone, and says below why not for the others."
    return f"Nothing in this log shows a policy to be better than {ev.baseline}."


def reasons(ev: Evaluation) -> list[tuple[str, str]]:
    """Policies and the reason that they share, for everything that has no value and for every untested gate.

    ``next_step`` says what to do.
    """
    pairs = [(one.policy, f"refused. {one.reason}") for one in ev.refusals]
    pairs += [(row.policy, f"withheld. {gate.finding}") for row in ev.rows for gate in row.closed]
    pairs += [
        (row.policy, f"untested. {gate.finding} {gate.advice}".rstrip())
        for row in ev.rows
        for gate in row.untested
    ]
    shared: dict[str, list[str]] = {}
    for policy, reason in pairs:
        shared.setdefault(reason, []).append(policy)
    return [(list_names(policies), reason) for reason, policies in shared.items()]


_BEFORE_MORE = (
    "propensities",
    "balance",
    "clusters",
    "independence",
    "silence",
    "position",
    "redundancy",
)
"""Gates that no number of recalls opens, in the order in which to look at them."""


def next_step(ev: Evaluation) -> str:
    """The one thing to do where a value is withheld or policies are not told apart; "" where there is nothing."""
    closed = {gate.name: gate for row in reversed(ev.rows) for gate in row.closed}
    first = next((closed[name] for name in _BEFORE_MORE if name in closed), None)
    if first is not None:
        return f"Next: {first.advice or first.finding}"
    short = [row.policy for row in ev.rows if row.closed]
    apart = [row.policy for row in ev.rows if row.verdict == "not separated"]
    if not short and not apart:
        return ""
    if ev.settings.measure == "labels":
        more = "" if ev.needed is None else f" {_enough(ev, 'like these')}."
        return f"Next: label more recalls.{more}"
    wanted = (short or apart)[0]
    challenged = (
        f"show now and then, with its probability logged, what {wanted} would show and {ev.baseline} would not"
        if ev._lab is None
        else f'lab.challenge("{wanted}") shows what tells it from {ev.baseline}'
    )
    alone = (
        ""
        if ev.needed is None or ev.needed[2] <= ev.recalls
        else f" {_enough(ev, 'at this probe rate')}."
    )
    return f"Next: {challenged}; memlab.plan says for how many recalls.{alone}"


def _enough(ev: Evaluation, how: str) -> str:
    assert ev.needed is not None
    first, second, count = ev.needed
    return f"Separating {first} and {second} needs about {rounded(count)} recalls {how}"


def remarks(ev: Evaluation) -> list[str]:
    lines = []
    if ev.open_windows:
        lines.append(f"{ev.open_windows} recalls whose horizon had not closed are left out.")
    if ev.settings.measure == "feedback" and ev.silent:
        lines.append(f"{share(ev.silent)} of shown items have no feedback and are left out.")
    return lines + list(ev.notes)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


_LEGEND = "p-values are Holm-adjusted; * < .05, ** < .01, *** < .001."

_FEEDBACK: Columns = (
    ("bounds", lambda row: _bounds(row["lower"], row["upper"])),
    ("probes", "{probes:,}"),
    ("unsupported", lambda row: "-" if row["unsupported"] is None else share(row["unsupported"])),
    ("untested gates", "{untested}"),
)

_OPTIONAL = ("untested gates", "bounds", "probes", "kind", "unsupported", "p", "interval")
"""What a narrow terminal has no room for, in this order; of metrics the last first. Untested gates are named above and
below the table too."""


def _leaderboard(ev: Evaluation) -> Table:
    metrics = list(ev.rows[0].metrics) if ev.settings.measure == "labels" else []
    columns: Columns = (
        ("policy", "{policy}"),
        ("value", lambda row: number(row["value"])),
        ("interval", "[{low:.3f}, {high:.3f}]"),
        (f"to {ev.baseline}", "{difference:+.3f}"),
        ("interval", "[{difference_low:.3f}, {difference_high:.3f}]"),
        (
            "p",
            lambda row: (
                "" if row["p"] is None else "<.001" if row["p"] < 0.001 else f"{row['p']:.3f}"
            ),
        ),
        ("", lambda row: "" if row["p"] is None else stars(row["p"])),
        *([(name, f"{{{name}:.3f}}") for name in metrics] or _FEEDBACK),
        ("kind", "{kind}"),
        ("verdict", "{verdict}"),
    )
    heads, rows = format_rows(ev.frame.head(len(ev.rows)).iter_rows(named=True), columns)
    first_left_out = (*reversed(metrics), *_OPTIONAL)
    optional = [at for at in reversed(range(len(heads))) if heads[at] in first_left_out]
    optional.sort(key=lambda at: first_left_out.index(heads[at]))
    return Table(
        "", heads, rows, [_LEGEND], left=(0, len(heads) - 2, len(heads) - 1), optional=optional
    )


def _bounds(lower: float | None, upper: float | None) -> str:
    known = lower is not None and upper is not None and upper - lower >= 0.005
    return f"{lower:.2f}..{upper:.2f}" if known else ""


# The figures of an evaluation, and its report: one self-contained HTML file.


def _draw_figure(ev: Evaluation, kind: str, axes: Axes | None) -> Figure:
    """One of the figures of ``Evaluation.figure``."""
    makers: dict[str, Callable[[Evaluation], Draw]] = {
        "leaderboard": draw_leaderboard,
        "weights": draw_weights,
        "disagreement": _greatest,
    }
    width, height = SIZES[kind]
    return draw_figure(makers[kind](ev), width=width, height=height or height_of(ev), axes=axes)


def height_of(ev: Evaluation) -> float:
    """Inches that a leaderboard needs."""
    return 1.0 + 0.36 * max(1, len(ev.rows))


def draw_leaderboard(ev: Evaluation) -> Draw:
    """One line a policy: its value with its interval, its bounds in grey, and the model's guess as a hollow diamond."""
    rows = list(reversed(ev.rows))
    labels = ev.settings.measure == "labels"

    def draw(axes: Axes) -> None:
        base = next(
            (row.value.value for row in rows if row.policy == ev.baseline and row.value), None
        )
        if base is not None:
            axes.axvline(base, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        for y, row in enumerate(rows):
            bounded = row.measured is not None and row.upper > row.lower and np.isfinite(row.lower)
            if bounded:
                label = "bounds, for what could not be shown"
                axes.plot(
                    [row.lower, row.upper],
                    [y, y],
                    color=GREY,
                    alpha=0.35,
                    linewidth=5,
                    label=label,
                    zorder=1,
                )
            if row.value is not None:
                colour = INK if row.policy == ev.baseline else BLUE
                if np.isfinite(row.value.low):
                    axes.plot(
                        [row.value.low, row.value.high],
                        [y, y],
                        color=colour,
                        linewidth=2.2,
                        zorder=2,
                    )
                axes.scatter([row.value.value], [y], s=46, color=colour, zorder=3)
            else:
                across = axes.get_yaxis_transform()
                axes.text(
                    1.01, y, row.verdict, transform=across, va="center", color=GREY, fontsize=9
                )
            if not labels and np.isfinite(ev.model_values[row.policy]):
                axes.scatter(
                    [ev.model_values[row.policy]],
                    [y - 0.26],
                    s=24,
                    marker="D",
                    facecolors="none",
                    edgecolors=ORANGE,
                    linewidths=1.5,
                    label="direct method (a model)",
                    zorder=4,
                )
        axes.set_yticks(range(len(rows)), [row.policy for row in rows])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlim(*_range(ev))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        axes.set_xlabel(
            f"mean {ev.settings.metric}" if labels else "mean reward per recall (top k)"
        )
        draw_legend(axes)

    return draw


def _range(ev: Evaluation) -> tuple[float, float]:
    """What holds every interval and its model's guess; wide bounds and guesses of what is withheld may run out."""
    valued = [row for row in ev.rows if row.value is not None]
    ends = [
        end
        for row in ev.rows
        if row.value
        for end in (row.value.value, row.value.low, row.value.high)
    ]
    ends += [ev.model_values.get(row.policy, np.nan) for row in valued or ev.rows]
    if not valued:
        ends += [end for row in ev.rows for end in (row.lower, row.upper)]
    known = [end for end in ends if np.isfinite(end)] or [0.0, 1.0]
    room = 0.12 * (max(known) - min(known)) or 0.5
    return min(known) - room, max(known) + room


def draw_weights(ev: Evaluation) -> Draw:
    """How much of the weight the heaviest items hold; the gate asks that 1% of them hold at most half."""
    if ev.settings.measure == "labels":
        raise InputError("Labels are counted, not weighted: there is no figure of weights.")
    rows = [row for row in ev.rows if row.measured is not None and len(row.measured.weights)][
        :MOST_LINES
    ]

    def draw(axes: Axes) -> None:
        axes.axvline(0.01, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        axes.plot([0.01], [0.5], marker="_", color=GREY, markersize=16, markeredgewidth=1.5)
        axes.annotate(
            "gate", (0.01, 0.5), xytext=(10, 0), textcoords="offset points", va="center", color=GREY
        )
        for place, row in enumerate(rows):
            assert row.measured is not None
            weights = row.measured.weights
            share = np.arange(1, len(weights) + 1) / len(weights)
            held = np.cumsum(weights) / weights.sum()
            # 200 points draw the line; a log may hold a million items
            at = np.unique(np.geomspace(1, len(weights), 200).astype(np.int64)) - 1
            style = DASHES[place % len(DASHES)]
            axes.plot(
                share[at],
                held[at],
                color=CYCLE[place],
                linewidth=1.8,
                linestyle=style,
                label=row.policy,
            )
        axes.set_xscale("log")
        axes.set_ylim(0, 1.02)
        ticks = [tick for tick in (0.0001, 0.001, 0.01, 0.1, 1.0) if tick >= axes.get_xlim()[0]]
        axes.set_xticks(ticks, [f"{100 * tick:g}%" for tick in ticks])
        axes.minorticks_off()
        axes.set_yticks([0, 0.5, 1], ["0", "half", "all"])
        axes.set_xlabel("heaviest items of the policy that were shown and answered")
        axes.set_ylabel("of the weight")
        axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
        draw_legend(axes)

    return draw


def _greatest(ev: Evaluation) -> Draw:
    pair = ev.pair
    if pair is None:
        raise InputError("A disagreement needs two policies that could be evaluated.")
    found = ev.disagreements(*pair, n=1)
    if not found:
        raise InputError(
            f"{pair[0]} and {pair[1]} would have shown the same items in the same order, always."
        )
    return draw_disagreement(found[0], *pair)


_TEMPLATE = Path(__file__).parent / "report.html"


_PACKAGES = ("polars", "numpy")


_EXAMPLES = 4


def _render_page(ev: Evaluation) -> str:
    """The page. Everything that came from text is escaped."""
    pair = ev.pair
    differ = ev.disagreements(*pair, n=_EXAMPLES) if pair else None
    figures = {
        "leaderboard": draw_svg(
            draw_leaderboard(ev), name="leaderboard", width=7.6, height=height_of(ev)
        )
    }
    if ev.settings.measure == "feedback":
        width, height = SIZES["weights"]
        figures["weights"] = draw_svg(draw_weights(ev), name="weights", width=width, height=height)
    if pair and differ:
        width, height = SIZES["disagreement"]
        figures["disagreement"] = draw_svg(
            draw_disagreement(differ[0], *pair), name="disagreement", width=width, height=height
        )
    return render_page(
        _TEMPLATE,
        _FILTERS,
        ev=ev,
        caption=caption(ev),
        headline=headline(ev),
        reasons=reasons(ev),
        remarks=remarks(ev),
        labels=ev.settings.measure == "labels",
        figures={name: Markup(text) for name, text in figures.items()},
        differ=differ,
        pair=pair,
        rankers=[target.ranker for target in ev._targets],
        gates=GATES,
        kinds=sorted({row.kind for row in ev.rows}),
        line=reproduction(ev),
        digest=log_digest(ev),
        versions=[("memlab", __version__), ("Python", platform.python_version())]
        + [(name, version(name)) for name in _PACKAGES],
    )


def reproduction(ev: Evaluation) -> str:
    """The call that gives this evaluation again."""
    settings = ev.settings
    given = ", ".join(repr(name) for name in ev.given)
    parts = [f"memlab.evaluate(slates, [{given}]"]
    if settings.measure == "labels":
        parts.append("labels=labels")
    else:
        parts.append(
            f"horizon={settings.horizon!r}, missing={settings.missing!r}, estimator={settings.estimator!r}"
        )
        if settings.cluster is not None:
            parts.append(f"cluster={settings.cluster!r}")
        parts.append(f"reward_range={settings.reward_range!r}")
    parts.append(f"level={settings.level!r}, baseline={ev.baseline!r})")
    return (",\n" + " " * len("memlab.evaluate(")).join(parts)


def log_digest(ev: Evaluation) -> str:
    """A sha256 of what the log says: recalls, candidates, probabilities, what was shown and what it earned."""
    log = ev._log
    digest = hashlib.sha256()
    for array in (log.recall, log.propensity, log.shown, log.reward, log.limit, log.cluster):
        digest.update(np.ascontiguousarray(array).tobytes())
    for name in ("decision", "memory_id"):
        digest.update("\x1f".join(map(str, log.ids[name].to_list())).encode())
    return digest.hexdigest()


def _is_finite(value: Any) -> bool:
    return value is not None and bool(np.isfinite(value))


_FILTERS: dict[str, Callable[..., Any]] = {
    "number": number,
    "interval": interval,
    "stars": stars,
    "share": share,
    "known": _is_finite,
}
