"""The result of an evaluation as data, text, figures and HTML."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
from memlab.kernel.base.arrays import Floats
from memlab.kernel.base.display import Columns, Folded, Markup, Report, Table, format_rows
from memlab.kernel.base.printable import count_of
from memlab.kernel.version import __version__
from memlab.science.evaluation._disagreements import Disagreements, disagreements
from memlab.science.evaluation._figures import (
    DASHES,
    MAX_LINES,
    SIZES,
    draw_disagreement,
    draw_legend,
)
from memlab.science.evaluation._intervals import Adjustment, Estimate, adjust_all
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._measure import Measured
from memlab.science.evaluation._observed import Observed
from memlab.science.evaluation._prepared import Settings
from memlab.science.evaluation._reward_model import predicted_rewards
from memlab.science.evaluation._targets import Refused, Target
from memlab.science.evaluation._tests import (
    GATE_TITLES,
    GATES,
    MISSING_GATE,
    ONE_CLUSTER,
    Gate,
    format_count,
    format_signed,
    list_names,
    recalls_to_open,
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
    render_latex,
    render_page,
    write_page,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Between = Callable[[str, str], tuple[Estimate, tuple[Gate, ...]]]
"""A function that compares two policies by name.

It returns the estimated difference and the gates of the comparison.
"""


@dataclass(frozen=True)
class PolicyValue:
    """The value of one policy on a log.

    Parameters
    ----------
    policy
        The name of the policy.
    kind
        "re-scored" on the logged pool, or "re-recalled": recalls were repeated by the lab.
    value
        The estimated value with its interval; None if a gate is closed. If the policy logged and
        all its items were shown, the value is the observed reward, even if a gate is closed.
    difference
        The difference between the policy and the baseline; None if a gate is closed. The intervals
        of all policies' differences hold together.
    adjusted
        The p-value of the difference, adjusted over all policies by Bonferroni's method. It is below
        1 - level if and only if the interval of the difference excludes 0.
    lower, upper
        The bounds of the value for any rewards of unsupported items, without sampling error.
    verdict
        "better", "worse", "not separated", "baseline", "observed" (a policy that logged, without a
        comparison) or "withheld".
    estimate
        The raw estimate, for diagnosis only. It is given even if the value is withheld.
    measured
        The evidence and gates of the policy; None with labels.
    metrics
        The label metrics by name; empty with feedback.
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
        """The gates that failed, so that a value not observed directly is withheld."""
        if self.measured is None:
            return () if self.value else (ONE_CLUSTER,)
        return tuple(gate for gate in self.measured.gates if gate.closed)

    @property
    def untested(self) -> tuple[Gate, ...]:
        """The gates that the log cannot test."""
        return (
            ()
            if self.measured is None
            else tuple(gate for gate in self.measured.gates if gate.untested)
        )

    @property
    def needed(self) -> int | None:
        """The number of further recalls that would give the policy a value.

        The number is 0 for a policy with a value, and None if more recalls alone would not open its
        gates.
        """
        return 0 if self.value is not None else recalls_to_open(self.closed)


@dataclass(frozen=True, repr=False)
class Evaluation(Report):
    """The values of policies on one log, best first; made by ``memlab.evaluate``.

    Parameters
    ----------
    rows
        The policies with their values.
    refusals
        The policies that the log cannot evaluate, with reasons.
    notes
        Remarks on the log: data left out, and assumptions.
    settings
        The settings of the evaluation.
    baseline
        The policy that the others are compared with.
    method
        The method of the intervals.
    recalls, clusters
        The number of recalls and of clusters.
    needed
        Two policies, and the number of recalls that would distinguish them. These are the two best
        policies with a value. If there are fewer than two, they are the policy that needs the
        fewest recalls for a value, and the baseline. None if no number of recalls would distinguish
        them.
    given
        The names of the policies as passed.
    observed
        Observed counts and mean rewards, and the outcomes of each query. None with labels.

    Examples
    --------
    >>> import polars as pl
    >>> import memlab
    >>> log = memlab.Slates.from_wide(
    ...     pl.read_parquet(memlab.examples.LOG),
    ...     decision="query_id",
    ...     item="memory_id",
    ...     shown="rank",
    ...     reward="clicked",
    ...     propensity="p",
    ...     limit=3,
    ...     scores=["old_score", "new_score"],
    ... )
    >>> evaluation = memlab.evaluate(log, ["old_score", "new_score"], missing="zero")
    >>> evaluation.baseline, evaluation.ranked
    ('old_score', True)
    >>> evaluation.frame.select("policy", "verdict").rows()
    [('new_score', 'better'), ('old_score', 'baseline')]
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
    observed: Observed | None
    _log: Log = field(repr=False)
    _targets: tuple[Target, ...] = field(repr=False)
    _schema: pl.Schema = field(repr=False)
    _features: tuple[str, ...] = field(repr=False)
    _lab: Any = field(repr=False)
    _between: Between = field(repr=False)
    _digest: str | None = field(default=None, repr=False)
    """The digest of the sums; None if the log is in memory."""

    @cached_property
    def model_values(self) -> dict[str, float]:
        """The expected value of each policy by a reward model, which extrapolates.

        The value is NaN if the log has too few data for the model. It is NaN, too, if the policy's
        recalls were repeated, because their pools have other features.
        """
        if self.settings.measure == "labels":
            return {}
        expected = self._predict_rewards()
        values = {}
        for target in self._targets:
            values[target.name] = float("nan")
            if expected is not None and target.kind == "re-scored":
                values[target.name] = float(expected[target.row].sum()) / self.recalls
        return values

    def _predict_rewards(self) -> Floats | None:
        """Predict the reward of each candidate, or return None if the log has too few data."""
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
        """A row for each policy: best first, policies without a value last.

        The columns are:

        - - ``policy``: its name
          - ``value``, with its interval ``low`` and ``high``
          - ``difference`` to the baseline, with its simultaneous interval ``difference_low`` and
            ``difference_high``
          - ``p``: the p-value of the difference, adjusted by Bonferroni's method
          - ``lower`` and ``upper``: the bounds of the value for any rewards of unsupported items
          - ``probes``: the number of answered probes that distinguish the policy from the baseline
          - ``unsupported``: the share of the policy's items that the log could not show
          - ``untested``: the ids of the untested gates
          - ``kind``, ``estimator`` and ``verdict``

        With labels, the retrieval metrics replace ``lower``, ``upper``, ``probes``, ``unsupported``
        and ``untested``.
        """
        labels = self.settings.measure == "labels"
        rows: list[dict[str, object]] = []
        for row in self.rows:
            record: dict[str, object] = {
                "policy": row.policy,
                **_estimate_columns("", row.value),
                **_estimate_columns("difference", row.difference),
                "p": _none_if_nan(row.adjusted),
            }
            if labels:
                record |= row.metrics
            else:
                assert row.measured is not None
                record |= {
                    "lower": _none_if_nan(row.lower),
                    "upper": _none_if_nan(row.upper),
                    "probes": row.measured.probes,
                    "unsupported": _none_if_nan(row.measured.unsupported),
                    "untested": ", ".join(gate.name for gate in row.untested),
                }
            estimator = self.settings.metric if labels else self.settings.estimator
            rows.append(record | {"kind": row.kind, "estimator": estimator, "verdict": row.verdict})
        refused = [
            {"policy": refusal.policy, "kind": "refused", "verdict": "refused"}
            for refusal in self.refusals
        ]
        numbers = ("value", "low", "high", "difference", "difference_low", "difference_high", "p")
        overrides = dict.fromkeys(numbers, pl.Float64) if rows else {}
        return pl.DataFrame([*rows, *refused], infer_schema_length=None, schema_overrides=overrides)

    @checked
    def pairs(self, adjust: Adjustment = "bonferroni") -> pl.DataFrame:
        """Compare every pair of policies that have a value.

        Parameters
        ----------
        adjust
            The adjustment of p-values and intervals over all pairs. "bonferroni" bounds the
            probability of any false finding; "bh" (Benjamini & Hochberg 1995) bounds the expected
            share of false findings. An interval excludes 0 if and only if the pair is a finding.

        Returns
        -------
        DataFrame
            A row for each pair, in the order of the values: ``policy``, ``other``, ``difference``
            (``policy`` minus ``other``), its bounds ``low`` and ``high``, ``p`` (adjusted),
            ``verdict`` and ``untested`` (ids of untested gates). The verdict is "better", "worse"
            or "not separated". It is "withheld", and the numbers are null, if a gate of the pair is
            closed.

        Examples
        --------
        >>> import polars as pl
        >>> import memlab
        >>> log = memlab.Slates.from_wide(
        ...     pl.read_parquet(memlab.examples.LOG),
        ...     decision="query_id",
        ...     item="memory_id",
        ...     shown="rank",
        ...     reward="clicked",
        ...     propensity="p",
        ...     limit=3,
        ...     scores=["old_score", "new_score"],
        ... )
        >>> evaluation = memlab.evaluate(log, ["old_score", "new_score"], missing="zero")
        >>> evaluation.pairs(adjust="bh").select("policy", "other", "verdict").rows()
        [('new_score', 'old_score', 'better')]
        """
        names = [row.policy for row in self.rows if row.value is not None]
        comparisons = [(a, b, *self._between(a, b)) for a, b in combinations(names, 2)]
        # Pairs with a closed gate have no p-value, so they are not part of the adjusted family.
        is_open_pair = [not any(gate.closed for gate in gates) for *_, gates in comparisons]
        raw = [
            gap if is_open else replace(gap, p=nan)
            for (_, _, gap, _), is_open in zip(comparisons, is_open_pair, strict=True)
        ]
        adjusted = adjust_all(raw, self.settings.level, adjust)
        rows: list[tuple[object, ...]] = []
        for (a, b, _, gates), is_open, (gap, p) in zip(
            comparisons, is_open_pair, adjusted, strict=True
        ):
            parts = [
                _none_if_nan(part) if is_open else None for part in (gap.value, gap.low, gap.high)
            ]
            verdict = name_verdict(gap, p, self.settings.level) if is_open else "withheld"
            rows.append(
                (
                    a,
                    b,
                    *parts,
                    _none_if_nan(p),
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
        """A row for each policy and gate, with the policy's raw ``estimate``.

        The result of a gate is in ``figure``, ``threshold``, ``state`` ("open", "closed",
        "untested" or "not needed") and ``open`` (null if not tested). ``finding`` and ``advice``
        are "" for an open gate. ``largest_weight`` is the largest weight of an item of the policy.
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
        """The share of shown items without known reward."""
        return self._log.silent

    @property
    def open_windows(self) -> int:
        """The number of recalls left out because users may still give feedback on them."""
        return self._log.open

    @property
    def ranked(self) -> bool:
        """Whether at least two policies have a value."""
        return sum(row.value is not None for row in self.rows) > 1

    @checked
    def target(self, policy: str) -> Target:
        """Return the items that a policy would show.

        Parameters
        ----------
        policy
            The name of an evaluated policy.

        Returns
        -------
        Target
            The items of each recall, best first.

        Raises
        ------
        UnknownName
            If no policy of this name was evaluated.
        """
        for target in self._targets:
            if target.name == policy:
                return target
        raise UnknownName("evaluated policy", policy, [target.name for target in self._targets])

    @checked
    def disagreements(self, a: str, b: str, n: Count = 5) -> Disagreements:
        """Find the recalls on which two policies differ most.

        Parameters
        ----------
        a, b
            The names of two evaluated policies.
        n
            The number of recalls to return.

        Returns
        -------
        Disagreements
            The recalls with their items, and the terms of the items' scores.

        Raises
        ------
        UnknownName
            If no policy of one of the names was evaluated.
        """
        if self._digest is not None:
            raise InputError(
                "This evaluation was made from sums, which have no recalls. Evaluate a part of the log in memory to see "
                "where policies differ: memlab.evaluate(slates)."
            )
        return disagreements(
            self._log, self.target(a), self.target(b), n, schema=self._schema, lab=self._lab
        )

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two policies to compare first: the best and the baseline, or the best two."""
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
        """Draw a matplotlib figure of the evaluation.

        Parameters
        ----------
        kind
            "leaderboard" (values with intervals), "weights" (how much of the weight few items have)
            or "disagreement" (the recall on which two policies differ most).
        axes
            The matplotlib axes to draw on; a new figure by default.

        Returns
        -------
        Figure
            The figure of the axes.
        """
        return _draw_figure(self, kind, axes)

    @checked
    def report(self, path: str | Path) -> Path:
        """Write the evaluation as one self-contained HTML file.

        Parameters
        ----------
        path
            The file to write.

        Returns
        -------
        Path
            The path of the written file.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        return write_page(_render_page(self), path)

    def to_latex(self) -> str:
        """Return the table as LaTeX, in the style of the package booktabs.

        The caption has the finding, the method, the hashes of policies and log, the seeds of the
        log's draws, and the version of memlab.

        Returns
        -------
        str
            An environment ``table``, without columns whose cells are all empty.

        Raises
        ------
        InputError
            If every policy was refused.

        Examples
        --------
        >>> import polars as pl
        >>> import memlab
        >>> log = memlab.Slates.from_wide(
        ...     pl.read_parquet(memlab.examples.LOG),
        ...     decision="query_id",
        ...     item="memory_id",
        ...     shown="rank",
        ...     reward="clicked",
        ...     propensity="p",
        ...     limit=3,
        ...     scores=["old_score", "new_score"],
        ... )
        >>> evaluation = memlab.evaluate(log, ["old_score", "new_score"], missing="zero")
        >>> "toprule" in evaluation.to_latex()
        True
        """
        if not self.rows:
            raise InputError(
                "Every policy was refused, so there is no table. evaluation.refusals has the reasons."
            )
        rankers = (target.ranker for target in self._targets)
        finding = headline(self).replace(", for the reasons below", "")
        method = caption(self)
        return render_latex(
            _leaderboard(self),
            f"{finding} {method[0].upper()}{method[1:]}. {_LEGEND} "
            + self._log.provenance({ranker.name: ranker.hash for ranker in rankers}),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values.

        Refused policies, closed gates and untested gates have their reasons.

        Returns
        -------
        dict
            The keys are the same as in ``memlab evaluate --json``.
        """
        # Refused policies are last in the frame and have no forecast.
        needed = [*(row.needed for row in self.rows), *(None for _ in self.refusals)]
        policies = self.frame.to_dicts()
        for policy, count in zip(policies, needed, strict=True):
            policy["recalls_needed"] = count
        return {
            "headline": headline(self),
            "observed": None if self.observed is None else self.observed.to_dict(),
            "method": caption(self),
            "policies": policies,
            "refusals": [
                {"policy": refusal.policy, "reason": refusal.reason} for refusal in self.refusals
            ],
            "withheld": [
                _explain_gate(row, gate)
                for row in self.rows
                if row.value is None
                for gate in row.closed
            ],
            "untested": [_explain_gate(row, gate) for row in self.rows for gate in row.untested],
            "needed": self.needed
            and {"policies": list(self.needed[:2]), "recalls": self.needed[2]},
            "next": next_step(self) or None,
            "notes": remarks(self),
        }

    def _display(self) -> object:
        table = _leaderboard(self) if self.rows else None
        facts = [] if self.observed is None else [self.observed.sentence]
        facts += [note for note in self.notes if note == NO_CHANCE]
        summary = count_of(len(self.details), "detail")
        folded = Folded(summary, self.details, "evaluation.details, or --details in a terminal.")
        return (
            [headline(self), *facts, caption(self)],
            table,
            refusal_lines(self),
            folded if self.details else None,
            next_step(self) or None,
        )

    @property
    def details(self) -> tuple[str, ...]:
        """All reasons for missing values and untested gates, with remarks on the log."""
        return (*(f"{policy}: {reason}" for policy, reason in reasons(self)), *remarks(self))


NO_CHANCE = (
    "No exploration: no item of this log was drawn at random, so rewards of items that were not shown are known only "
    "within their range. Run lab.challenge(pack), or recall with explore=True."
)
"""The remark on a log without exploration. Reports never fold it, because only the reader can start exploration."""


def _explain_gate(row: PolicyValue, gate: Gate) -> dict[str, Any]:
    """Return a policy's failed or untested check (gate) as JSON values."""
    figure = {"figure": gate.figure if isfinite(gate.figure) else None} if gate.closed else {}
    return {
        "policy": row.policy,
        "gate": gate.name,
        **figure,
        "threshold": gate.threshold,
        "reason": gate.finding,
        "advice": gate.advice,
    }


def name_verdict(gap: Estimate | None, adjusted: float, level: float) -> str:
    """Return the verdict on a difference to the baseline, from its adjusted p-value."""
    if gap is None:
        return "ranked, without a baseline to compare with"
    if adjusted < 1 - level:
        return "better" if gap.low > 0 or (gap.value > 0 and not gap.high < 0) else "worse"
    return "not separated"


def _estimate_columns(name: str, estimate: Estimate | None) -> dict[str, object]:
    """Return an estimate's value and bounds as columns; undefined numbers are null."""
    prefix = f"{name}_" if name else ""
    values = (
        (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)
    )
    finite = [None if value is None else _none_if_nan(value) for value in values]
    return {name or "value": finite[0], f"{prefix}low": finite[1], f"{prefix}high": finite[2]}


def _none_if_nan(value: float) -> float | None:
    """Return the value, or None for NaN."""
    return None if np.isnan(value) else value


# An evaluation as text and as HTML: the leaderboard, or the reasons for missing values.


def number(value: float | None, digits: int = 3) -> str:
    """Format a number with fixed digits; "-" for None or NaN."""
    return "-" if value is None or np.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"


def interval(estimate: Estimate | None) -> str:
    """Format the interval of an estimate; "" if it has no interval."""
    if estimate is None or np.isnan(estimate.low):
        return ""
    return f"[{number(estimate.low)}, {number(estimate.high)}]"


def stars(p: float) -> str:
    """Return "***", "**" or "*" for an adjusted p-value below .001, .01 or .05."""
    return "" if np.isnan(p) else "*" * sum(p < threshold for threshold in (0.001, 0.01, 0.05))


def caption(ev: Evaluation) -> str:
    """Describe the metric, the sample and the intervals of an evaluation in a phrase."""
    sample = f"{count_of(ev.recalls, 'recall')} in {count_of(ev.clusters, 'cluster')}"
    if ev.settings.measure == "labels":
        return f"mean {ev.settings.metric} by labels, {sample}; {ev.settings.level:.0%} intervals: {ev.method}"
    name = "self-normalised" if ev.settings.estimator == "snips" else "Horvitz-Thompson"
    return (
        f"value on logged recalls, long-term effects not modelled: mean reward per recall (top k); {name} inclusion "
        f"weights, {sample}; {ev.settings.level:.0%} intervals: {ev.method}"
    )


def headline(ev: Evaluation) -> str:
    """Return the finding in one sentence, followed by the untested gates."""
    untested = untested_sentence(
        [gate for row in ev.rows if row.value is not None for gate in row.untested]
    )
    return f"{_state_finding(ev)} {untested}".rstrip()


def _state_finding(ev: Evaluation) -> str:
    """State in one sentence which policies beat the baseline."""
    # The cases go from the strongest finding that the log supports to the weakest.
    valued = [row for row in ev.rows if row.value is not None]
    if not valued:
        return "No ranking: no policy has a value on this log, for the reasons below."
    base = next((row for row in ev.rows if row.policy == ev.baseline), None)
    better = [row.policy for row in ev.rows if row.verdict.startswith("better")]
    worse = [row.policy for row in ev.rows if row.verdict.startswith("worse")]
    if base is None or base.value is None:
        return f"No comparison: the baseline {ev.baseline} has no value on this log, for the reasons below."
    if len(ev.rows) == 1:
        return f"The expected reward of {base.policy} is {number(base.value.value)} per recall."
    if better:
        return f"{list_names(better)} would have done better than {ev.baseline}."
    if worse and len(worse) == len(ev.rows) - 1:
        return f"No policy would have done better than {ev.baseline}."
    withheld = [row.policy for row in ev.rows if row.value is None]
    if withheld and len(withheld) == len(ev.rows) - 1:
        return f"No ranking: only {base.policy} has a value on this log, for the reasons below."
    return f"No policy is significantly better than {ev.baseline} on this log."


def refusal_lines(ev: Evaluation) -> list[str]:
    """Return, as sentences, the most fundamental reason for each policy without a value.

    Policies that share the reason share the sentence. ``Evaluation.details`` has all reasons.
    """
    shared: dict[str, list[str]] = {}
    for refusal in ev.refusals:
        shared.setdefault(f"refused. {refusal.reason}", []).append(refusal.policy)
    for row in ev.rows:
        if row.value is None and row.closed:
            order = [*_FAULTS_OF_LOG, *GATES]
            gate = min(row.closed, key=lambda gate: order.index(gate.name))
            shared.setdefault(f"withheld. {gate.finding}", []).append(row.policy)
    return [f"{list_names(policies)}: {reason}" for reason, policies in shared.items()]


def reasons(ev: Evaluation) -> list[tuple[str, str]]:
    """Return the reasons for refused policies, withheld values and untested gates.

    Each reason comes with the names of the policies that share it. ``next_step`` returns the action
    to take.
    """
    pairs = [(refusal.policy, f"refused. {refusal.reason}") for refusal in ev.refusals]
    pairs += [
        (row.policy, f"{'withheld' if row.value is None else 'closed'}. {gate.finding}")
        for row in ev.rows
        for gate in row.closed
    ]
    pairs += [
        (row.policy, f"untested. {gate.finding} {gate.advice}".rstrip())
        for row in ev.rows
        for gate in row.untested
    ]
    shared: dict[str, list[str]] = {}
    for policy, reason in pairs:
        shared.setdefault(reason, []).append(policy)
    return [(list_names(policies), reason) for reason, policies in shared.items()]


_FAULTS_OF_LOG = (
    "propensities",
    "balance",
    "clusters",
    "independence",
    MISSING_GATE,
    "position",
    "redundancy",
)
"""Gates that more recalls do not open, most fundamental first.

A later gate of the list means little while an earlier gate is closed.
"""


def next_step(ev: Evaluation) -> str:
    """Return the most useful next action as a sentence, or "" if no action is needed.

    An action is needed if values are withheld or policies are indistinguishable.
    """
    # Faults of the log come first, because more recalls would not cure them.
    valueless = [row for row in ev.rows if row.value is None]
    closed = {gate.name: gate for row in reversed(valueless) for gate in row.closed}
    first = next((closed[name] for name in _FAULTS_OF_LOG if name in closed), None)
    if first is not None:
        return f"Next: {first.advice or first.finding}"
    withheld = [row.policy for row in valueless if row.closed]
    undecided = [row.policy for row in ev.rows if row.verdict == "not separated"]
    if not withheld and not undecided:
        return ""
    if ev.settings.measure == "labels":
        more = "" if ev.needed is None else f" {_state_forecast(ev, 'like these')}."
        return f"Next: label more recalls.{more}"
    policy = (withheld or undecided)[0]
    action = (
        f"show items that {policy} would show and {ev.baseline} would not, at random and with logged probabilities"
        if ev._lab is None
        else f'run lab.challenge("{policy}") to collect evidence against {ev.baseline}'
    )
    forecast = (
        ""
        if ev.needed is None or ev.needed[2] <= ev.recalls
        else f" {_state_forecast(ev, 'at this probe rate')}."
    )
    return f"Next: {action}. memlab.plan forecasts how many recalls that needs.{forecast}"


def _state_forecast(ev: Evaluation, how: str) -> str:
    """Return a clause such as "Separating A and B needs about 400 recalls", followed by the text ``how``."""
    assert ev.needed is not None
    first, second, count = ev.needed
    return f"Separating {first} and {second} needs about {format_count(count)} recalls {how}"


def remarks(ev: Evaluation) -> list[str]:
    """Return the remarks of a report: omitted data and assumptions."""
    lines = []
    if ev.open_windows:
        lines.append(
            f"{count_of(ev.open_windows, 'recall')} left out, because the time for feedback (horizon) is not over."
        )
    if ev.settings.measure == "feedback" and ev.silent:
        treatment = "count as any reward" if ev.settings.missing == "bounds" else "are left out"
        lines.append(f"{share(ev.silent)} of shown items have no feedback and {treatment}.")
    return lines + list(ev.notes)


# The explanation of the marks of significance, below the table.
_LEGEND = (
    "p-values and intervals of differences are Bonferroni-adjusted; * < .05, ** < .01, *** < .001."
)

# Columns of the table that need feedback.
_FEEDBACK: Columns = (
    ("bounds", lambda row: _format_bounds(row["lower"], row["upper"])),
    ("probes", "{probes:,}"),
    ("unsupported", lambda row: "-" if row["unsupported"] is None else share(row["unsupported"])),
    ("untested gates", "{untested}"),
)

_OPTIONAL = ("untested gates", "bounds", "probes", "kind", "unsupported", "p", "interval")
"""Columns that a narrow terminal omits, in this order, after the metrics.

Reports name the untested gates outside the table too.
"""


def _leaderboard(ev: Evaluation) -> Table:
    """Return the table of the policies' values, one row for each policy."""
    metrics = list(ev.rows[0].metrics) if ev.settings.measure == "labels" else []
    columns: Columns = (
        ("policy", "{policy}"),
        ("value", lambda row: number(row["value"])),
        ("interval", "[{low:.3f}, {high:.3f}]"),
        (f"vs. {ev.baseline}", "{difference:+.3f}"),
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
    headings, rows = format_rows(ev.frame.head(len(ev.rows)).iter_rows(named=True), columns)
    first_left_out = (*reversed(metrics), *_OPTIONAL)
    optional = [
        index for index in reversed(range(len(headings))) if headings[index] in first_left_out
    ]
    optional.sort(key=lambda index: first_left_out.index(headings[index]))
    return Table(
        "",
        headings,
        rows,
        [_LEGEND],
        left=(0, len(headings) - 2, len(headings) - 1),
        optional=optional,
    )


def _format_bounds(lower: float | None, upper: float | None) -> str:
    """Format the bounds of a value; "" if they are unknown or less than .005 apart."""
    differ = lower is not None and upper is not None and upper - lower >= 0.005
    return f"{lower:.2f}..{upper:.2f}" if differ else ""


# The figures of an evaluation, and its report: one self-contained HTML file.


def _draw_figure(ev: Evaluation, kind: str, axes: Axes | None) -> Figure:
    """Draw the figure of the named kind, for ``Evaluation.figure``."""
    makers: dict[str, Callable[[Evaluation], Draw]] = {
        "leaderboard": draw_leaderboard,
        "weights": draw_weights,
        "disagreement": _draw_largest_disagreement,
    }
    width, height = SIZES[kind]
    return draw_figure(makers[kind](ev), width=width, height=height or height_of(ev), axes=axes)


def height_of(ev: Evaluation) -> float:
    """Return the height of a leaderboard figure in inches."""
    return 1.0 + 0.36 * max(1, len(ev.rows))


def draw_leaderboard(ev: Evaluation) -> Draw:
    """Return a function that draws the policies' values, one line per policy.

    A line has the value with its interval, the bounds of the value in grey, and the prediction of
    the model as a hollow diamond.
    """
    rows = list(reversed(ev.rows))
    labels = ev.settings.measure == "labels"

    # Uncertain figures are drawn below measured ones: bounds first, then interval, value and model.
    def draw(axes: Axes) -> None:
        base = next(
            (row.value.value for row in rows if row.policy == ev.baseline and row.value), None
        )
        if base is not None:
            axes.axvline(base, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        for y, row in enumerate(rows):
            bounded = row.measured is not None and row.upper > row.lower and np.isfinite(row.lower)
            if bounded:
                label = "bounds for unsupported items"
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
        axes.set_xlim(*_axis_range(ev))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        axes.set_xlabel(
            f"mean {ev.settings.metric}" if labels else "mean reward per recall (top k)"
        )
        draw_legend(axes)

    return draw


def _axis_range(ev: Evaluation) -> tuple[float, float]:
    """Return the range of the value axis, which covers all values and intervals.

    The predictions for policies with a value are covered too. Wide bounds, and predictions for
    withheld values, may extend beyond the axis.
    """
    # Otherwise the bounds of one policy would compress the intervals of all others.
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
    finite = [end for end in ends if np.isfinite(end)] or [0.0, 1.0]
    margin = 0.12 * (max(finite) - min(finite)) or 0.5
    return min(finite) - margin, max(finite) + margin


def draw_weights(ev: Evaluation) -> Draw:
    """Return a function that draws the share of the weight that the heaviest items carry."""
    if ev.settings.measure == "labels":
        raise InputError(
            "An evaluation by labels uses no importance weights, so there is no figure of "
            "weights. Draw the leaderboard, or evaluate on feedback."
        )
    rows = [row for row in ev.rows if row.measured is not None and len(row.measured.weights)][
        :MAX_LINES
    ]

    def draw(axes: Axes) -> None:
        axes.axvline(0.01, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        axes.plot([0.01], [0.5], marker="_", color=GREY, markersize=16, markeredgewidth=1.5)
        axes.annotate(
            "gate", (0.01, 0.5), xytext=(10, 0), textcoords="offset points", va="center", color=GREY
        )
        for index, row in enumerate(rows):
            assert row.measured is not None
            weights = row.measured.weights
            share = np.arange(1, len(weights) + 1) / len(weights)
            cumulative = np.cumsum(weights) / weights.sum()
            # 200 points are enough for the line; a log may hold a million items.
            points = np.unique(np.geomspace(1, len(weights), 200).astype(np.int64)) - 1
            style = DASHES[index % len(DASHES)]
            axes.plot(
                share[points],
                cumulative[points],
                color=CYCLE[index],
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


def _draw_largest_disagreement(ev: Evaluation) -> Draw:
    """Return a function that draws the recall on which two policies differ most."""
    pair = ev.pair
    if pair is None:
        raise InputError(
            "A figure of a disagreement needs two policies that could be evaluated. Evaluate another policy too."
        )
    disagreements = ev.disagreements(*pair, n=1)
    if not disagreements:
        raise InputError(
            f"{pair[0]} and {pair[1]} show the same items in the same order in every recall, so there is no disagreement "
            f"to draw. Draw the leaderboard instead."
        )
    return draw_disagreement(disagreements[0], *pair)


_TEMPLATE = Path(__file__).parent / "report.html"
"""The template of the HTML page."""

_PACKAGES = ("polars", "numpy")
"""Packages whose versions may change the last digits of a figure."""

_EXAMPLES = 4
"""The number of disagreements on a page, as many as a reader compares."""


def _render_page(ev: Evaluation) -> str:
    """Render the HTML page of an evaluation. All text from the log is escaped."""
    pair = ev.pair
    disagreements = ev.disagreements(*pair, n=_EXAMPLES) if pair and ev._digest is None else None
    figures = {
        "leaderboard": draw_svg(
            draw_leaderboard(ev), name="leaderboard", width=7.6, height=height_of(ev)
        )
    }
    if ev.settings.measure == "feedback":
        width, height = SIZES["weights"]
        figures["weights"] = draw_svg(draw_weights(ev), name="weights", width=width, height=height)
    if pair and disagreements:
        width, height = SIZES["disagreement"]
        figures["disagreement"] = draw_svg(
            draw_disagreement(disagreements[0], *pair),
            name="disagreement",
            width=width,
            height=height,
        )
    return render_page(
        _TEMPLATE,
        _FILTERS,
        ev=ev,
        caption=caption(ev),
        headline=headline(ev),
        refusals=refusal_lines(ev),
        details=ev.details,
        next=next_step(ev),
        labels=ev.settings.measure == "labels",
        figures={name: Markup(text) for name, text in figures.items()},
        differ=disagreements,
        pair=pair,
        rankers=[target.ranker for target in ev._targets],
        gates=GATES,
        kinds=sorted({row.kind for row in ev.rows}),
        line=reproduction(ev),
        digest=ev._digest or ev._log.digest(),
        versions=[("memlab", __version__), ("Python", platform.python_version())]
        + [(name, version(name)) for name in _PACKAGES],
    )


def reproduction(ev: Evaluation) -> str:
    """Return the Python call that reproduces this evaluation."""
    settings = ev.settings
    names = ", ".join(repr(name) for name in ev.given)
    parts = [f"memlab.evaluate(slates, [{names}]"]
    if settings.measure == "labels":
        parts.append(f"labels=labels, metric={settings.metric!r}")
    else:
        parts.append(
            f"horizon={settings.horizon!r}, missing={settings.missing!r}, estimator={settings.estimator!r}"
        )
        if settings.cluster is not None:
            parts.append(f"cluster={settings.cluster!r}")
        parts.append(f"reward_range={settings.reward_range!r}")
    parts.append(f"level={settings.level!r}, baseline={ev.baseline!r})")
    return (",\n" + " " * len("memlab.evaluate(")).join(parts)


def _is_finite(value: Any) -> bool:
    """Return whether a value is a finite number: not None, NaN or infinite."""
    return value is not None and bool(np.isfinite(value))


_FILTERS: dict[str, Callable[..., Any]] = {
    "number": number,
    "interval": interval,
    "stars": stars,
    "share": share,
    "signed": format_signed,
    "plural": count_of,
    "title_of": lambda name: GATE_TITLES.get(name, name),
    "known": _is_finite,
}
"""Filters of the HTML template."""
