"""``memlab.plan``: forecast which experiment distinguishes policies, and how soon.

Items that both policies would show say nothing about their difference. Designs of experiments
differ in how often they show the other items. These frequencies determine the variance of the
difference observed in one recall. A model of rewards that is fitted on the log predicts the
difference (the direct method).

Let d be the mean difference and v the variance of one observation. A fixed-sample test needs
(z_level + z_power)^2 v / d^2 recalls. A confidence sequence, which allows an interim analysis every
day, needs about twice as many recalls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.arrays import Floats
from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.kernel.base.printable import count_of
from memlab.kernel.recall import ADDED_SHARE
from memlab.kernel.slates import Slates
from memlab.science.distributions import normal_quantile
from memlab.science.evaluation._duels import DRAFT_RATES, GROUP_RATES, comparisons_begun
from memlab.science.evaluation._log import Horizon, Log, Missing
from memlab.science.evaluation._measure import (
    Evidence,
    TopK,
    gather_evidence,
    predicted_rewards,
    select_features,
)
from memlab.science.evaluation._prepared import HasSlates, Settings, prepare, with_baseline
from memlab.science.evaluation._sequence import level_of, recalls_of_sequence
from memlab.science.evaluation._targets import (
    PolicySpec,
    RecallsAgain,
    find_targets,
    make_logged_ranker,
)
from memlab.science.evaluation._tests import format_count

_WIDTH_RECALLS = 400
"""The number of recalls for which the width of an interval is reported.

The number is an illustration: the width falls with its square root.
"""
_PROBE_DEPTH = 90
"""The number of ranks below the results from which one probe is drawn.

A pool of 100 candidates has about 90 of them.
"""
_MAX_RECALLS = 50_000
"""The number of recalls above which a forecast is null: no experiment would run for so long."""


@dataclass(frozen=True, repr=False)
class Plan(Report):
    """The recalls that each design needs to compare a policy with the baseline.

    Parameters
    ----------
    frame
        A row for each policy and design, with these columns among others:

        - ``extra``: the number of additional items shown per recall
        - ``difference``: the expected difference by the model
        - ``one_look`` and ``every_look``: the recalls needed by a fixed-sample test and by an
          anytime-valid test with a power of 80%, null above 50,000
        - ``half_width``: half the width of an interval after 400 recalls; under a draft, of its credit
        - ``cost``: the share of the rewards of the first results that is lost while the experiment
          runs, by the model; negative if the policy is better
        - ``recall_cost``: the loss of recall among the first results while the experiment runs, measured
          on the log; null if no item has a reward. Items with a reward are relevant, others are not, so
          this cost is too high where the log did not show the policy's items
        - ``unsupported``: the share of the policy's items that the design never shows
    baseline
        The policy that the others are compared with.
    recalls
        The number of recalls on which the model of rewards was fitted.
    settings
        The settings of the evaluation.
    notes
        Policies that cannot be evaluated on the log, and why.

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
    >>> plan = memlab.plan(log, ["old_score", "new_score"], missing="zero", extra=[2])
    >>> plan.baseline, plan.recalls
    ('old_score', 418)
    >>> plan.frame["design"].head(3).to_list()
    ['probes as logged', 'one probe of 90, every recall', 'challenge, 2 extra']
    """

    frame: pl.DataFrame
    baseline: str
    recalls: int
    settings: Settings
    notes: tuple[str, ...] = field(default=())

    @property
    def best(self) -> dict[str, str]:
        """The design that needs the fewest recalls for each policy.

        The test is anytime-valid. Of designs that need equally many recalls, the one with fewer
        extra items is chosen.
        """
        feasible = self.frame.drop_nulls("every_look").sort("every_look", "extra")
        return {
            row["policy"]: row["design"]
            for row in feasible.unique("policy", keep="first").iter_rows(named=True)
        }

    def _display(self) -> object:
        legend = (
            f"Compared with {self.baseline}, by a model fitted on {count_of(self.recalls, 'recall')}.",
            "fixed-sample, anytime-valid: recalls after which the test has a power of 80%",
            f"half-width: half the width of the {self.settings.level:.0%} interval after {_WIDTH_RECALLS} recalls",
            "cost: the share of the rewards of the first results that is lost while the experiment runs, by the model",
            "recall cost: the loss of recall among the first results, by the items with a reward in the log",
            "unsupported: the share of the policy's items that the design never shows",
        )
        headings, rows = format_rows(self.frame.iter_rows(named=True), _COLUMNS)
        return Table(
            "Recalls needed for a verdict", headings, rows, [*legend, *self.notes], left=(0, 1)
        )


def _format_count(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Return a formatter for a count column, with "-" for null."""
    return lambda row: "-" if row[name] is None else format_count(row[name])


# Headings name the tests as the glossary does; callers read the older column names of the frame.
_COLUMNS: Columns = (
    ("policy", "{policy}"),
    ("design", "{design}"),
    ("extra", "{extra:.1f}"),
    ("difference", "{difference:+.3f}"),
    ("fixed-sample", _format_count("one_look")),
    ("anytime-valid", _format_count("every_look")),
    ("half-width", "{half_width:.3f}"),
    ("cost", "{cost:+.1%}"),
    ("recall cost", "{recall_cost:+.3f}"),
    ("unsupported", "{unsupported:.0%}"),
)


@dataclass(frozen=True)
class _Arm:
    """The items that only one of two policies would show, summed by recall.

    All arrays are f64[recalls]. ``size`` is the number of items, and ``sum`` their expected total
    reward. ``squares`` is the sum of their squared expected rewards, and ``noise`` the variance of
    their total reward.
    """

    size: Floats
    sum: Floats
    squares: Floats
    noise: Floats


@checked
def plan(
    slates: Slates | HasSlates,
    policies: PolicySpec,
    *,
    horizon: Horizon = None,
    missing: Missing | None = None,
    level: float = 0.95,
    baseline: str | None = None,
    reward_range: tuple[float, float] | None = None,
    extra: Sequence[Annotated[int, Within(1, 20)]] = (1, 3),
) -> Plan:
    """Forecast the number of recalls that each design needs to compare policies.

    Two designs have no challenge: the log's own probes, and one probe per recall from the 90 ranks
    below the results. The others are challenges: with extra items, as many as ``extra`` says or as
    "auto" chooses, by lot, by draft, and an A/B test. A draft says which policy is better, not by
    how much. The anytime-valid test has the error share of the log's next comparison; see
    ``memlab.verdict``.

    Parameters
    ----------
    slates
        The tables of a log, or a lab. The log needs at least some tens of rewards. Any policy may
        have logged it.
    policies
        The policies to compare, as for ``memlab.evaluate``.
    horizon
        The time that each recall has to get feedback, such as "7d".
    missing
        What missing feedback counts as: "zero", "censor", "inverse" or "bounds".
    level
        The confidence level, between 0 and 1.
    baseline
        The policy that the others are compared with; the one that logged by default.
    reward_range
        The minimum and maximum reward. Default: the range of the log.
    extra
        Numbers of extra items of a challenge, 1 to 20.

    Returns
    -------
    Plan
        The recalls needed by policy and design.

    Raises
    ------
    InputError
        If the log has too few rewards for a model, or contradicts itself.

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
    >>> memlab.plan(log, ["old_score", "new_score"], missing="zero").best
    {'new_score': 'challenge, 3 extra'}
    """
    slates = slates if isinstance(slates, Slates) else slates.slates()
    prepared = prepare(
        slates,
        policies,
        horizon=horizon,
        missing=missing,
        estimator="snips",
        level=level,
        reward_range=reward_range,
        labels=None,
    )
    log, schema, settings = prepared.log, prepared.schema, prepared.settings
    rankers, base = with_baseline(
        prepared.rankers, baseline, log.packs, make_logged_ranker(slates.candidates, schema)
    )
    if len(rankers) == 1:
        raise InputError(
            f"The only policy, {base}, is the baseline. Pass a second policy to compare with it."
        )
    recall_again: RecallsAgain | None = getattr(
        getattr(slates.lab, "policies", None), "recall_again", None
    )
    targets, refused = find_targets(rankers, log, schema, prepared.fingerprints, recall_again)
    features = select_features(log, prepared.features, schema)
    expected = predicted_rewards(
        features, log.reward, log.answered, log.cluster[log.recall], settings.reward_range
    )
    if expected is None:
        raise InputError(
            "The log has too few rewards or clusters to fit a model of rewards, so no experiment can be planned. Log more "
            "recalls with feedback."
        )
    evidence = gather_evidence(log, settings, features)
    top_ks = {target.name: evidence.top_k(target) for target in targets}
    if base not in top_ks:
        raise InputError(
            f"The baseline {base} cannot be scored on this log. Pass the name of another policy as baseline."
        )
    residual = log.reward[log.answered] - expected[log.answered]
    low, high = settings.reward_range
    binary = bool(np.isin(log.reward[log.answered], (low, high)).all())
    # Rewards of two values have the variance of a coin; other rewards get the residual variance of the model.
    noise = (
        (expected - low) * (high - expected)
        if binary
        else np.full(len(expected), float(residual.var()))
    )
    anytime_level = level_of(comparisons_begun(log) + 1, level)
    rows: list[dict[str, Any]] = []
    for name, top_k in top_ks.items():
        if name != base:
            rows += _designs(
                name, top_k, top_ks[base], evidence, expected, noise, level, anytime_level, extra
            )
    notes = [f"{refusal.policy}: {refusal.reason}" for refusal in refused]
    numbers = {"one_look": pl.Int64, "every_look": pl.Int64}
    return Plan(
        pl.DataFrame(rows, schema_overrides=numbers), base, len(log), settings, tuple(notes)
    )


def _designs(
    name: str,
    top_k: TopK,
    base: TopK,
    evidence: Evidence,
    expected: Floats,
    noise: Floats,
    level: float,
    anytime_level: float,
    draws: Sequence[int],
) -> list[dict[str, Any]]:
    """Return a row for each design that can compare a policy with the baseline."""
    log = evidence.log
    own_rows, base_rows = evidence.differing_rows(top_k, base)
    typical = float(expected[own_rows].mean()) if len(own_rows) else float(expected.mean())
    own = _sum_arm(own_rows, top_k.outside, log, expected, noise, typical)
    other = _sum_arm(base_rows, base.outside, log, expected, noise, typical)
    gap, items = own.sum - other.sum, max(float(len(top_k)), 1.0)
    difference = float(gap.mean())
    unit = evidence.reward_range[1] - evidence.reward_range[0]
    deep = np.full(1, _PROBE_DEPTH * unit)
    earned = max(float(expected[base.rows].sum()) / len(log), 1e-12)
    rewarded = log.answered & (log.reward > max(evidence.reward_range[0], 0.0))
    counts = np.bincount(log.recall[rewarded], minlength=len(log))
    # Each rewarded item is worth its share of the recall of its query.
    relevance = rewarded / np.maximum(counts, 1)[log.recall]
    judged = int((counts > 0).sum())
    # A reward that is observed with probability p and divided by p has a square that is 1/p times as large.
    squares = own.squares + own.noise
    rows = []

    def design(
        label: str,
        extra: float,
        variance: Floats,
        scale: Floats,
        lost: Callable[[Floats], float],
        unsupported: float = 0.0,
        observed: Floats = gap,
        rates: float = 1.0,
    ) -> None:
        """Add a design's row, given the mean and variance of the design's observations."""
        spread = math.sqrt(float(variance.mean()) + float(observed.var()))
        mean = float(observed.mean())
        fixed = math.ceil((_power_quantile(level) * spread / mean) ** 2) if mean else None
        anytime = recalls_of_sequence(
            abs(mean), spread, scale, unit=unit / rates, level=anytime_level
        )
        is_unbounded = (
            unsupported > 0.02
        )  # Unsupported items widen the interval at any number of recalls.
        half = (
            _level_quantile(level) * spread / math.sqrt(_WIDTH_RECALLS)
            + unsupported * items / len(log) * unit / 2
        )
        rows.append(
            {
                "policy": name,
                "design": label,
                "extra": extra,
                "difference": difference,
                "one_look": None
                if fixed is None or fixed > _MAX_RECALLS or is_unbounded
                else fixed,
                "every_look": None
                if anytime is None or anytime > _MAX_RECALLS or is_unbounded
                else anytime,
                "half_width": half,
                "cost": lost(expected) / earned,
                "recall_cost": lost(relevance) * len(log) / judged if judged else None,
                "unsupported": unsupported,
            }
        )

    propensity = log.propensity[own_rows]
    unsupported_share = float((propensity == 0).sum() + top_k.outside.sum()) / items
    random_rows = own_rows[(propensity > 0) & (propensity < 1)]
    probe_variance = np.bincount(
        log.recall[random_rows],
        weights=(expected[random_rows] ** 2 + noise[random_rows]) / log.propensity[random_rows],
        minlength=len(log),
    )
    probes = (log.exposed & evidence.probe).sum() / len(log)
    places = np.arange(1, len(log.recall) + 1) if base.ranks is None else base.ranks
    size = np.bincount(log.recall[base.rows], minlength=len(log)).astype(np.float64)

    def displaced(count: Floats, values: Floats, gain: Floats | float) -> float:
        """Return the mean reward lost when items worth ``gain`` displace the last results."""
        entering = count * np.maximum(size - 1, 0) / np.maximum(size + count - 1, 1)
        depth = (size - entering)[log.recall[base.rows]]
        pushed = np.clip(places - depth, 0.0, 1.0) * values[base.rows]
        return float((pushed.sum() - (entering * gain).sum()) / len(log))

    def displaced_by_probes(count: float) -> Callable[[Floats], float]:
        """Return a function that computes the reward lost when probes displace results."""

        def lost(values: Floats) -> float:
            rest = (
                float(np.delete(values, base.rows).mean()) if len(base.rows) < len(values) else 0.0
            )
            return displaced(np.full(len(log), count), values, rest)

        return lost

    def sums(values: Floats) -> tuple[Floats, Floats]:
        """Return two sums by recall: over the policy's own items, and over the baseline's."""
        if values is expected:
            return own.sum, other.sum
        first, second = (
            np.bincount(log.recall[rows_], weights=values[rows_], minlength=len(log)).astype(
                np.float64
            )
            for rows_ in (own_rows, base_rows)
        )
        return first, second

    def half_exchanged(values: Floats) -> float:
        """Return the loss if half of the recalls show the policy's results where they differ."""
        first, second = sums(values)
        return -float((first - second).mean()) / 2

    # Without logged probabilities, more of the same recalls would decide nothing.
    if not np.isnan(log.propensity).any():
        design(
            "probes as logged",
            float(probes),
            probe_variance + other.noise,
            deep,
            displaced_by_probes(float(probes)),
            unsupported_share,
        )
    outside_share = float(top_k.outside.sum()) / items
    design(
        "one probe of 90, every recall",
        1.0,
        _PROBE_DEPTH * squares + other.noise,
        deep,
        displaced_by_probes(1.0),
        outside_share,
    )
    automatic = np.minimum(
        np.ceil(own.size / 2), np.maximum(np.floor(ADDED_SHARE * np.maximum(size, 1)), 1)
    )
    for label, wished in [
        *((f"challenge, {count} extra", np.full(len(log), float(count))) for count in draws),
        ("challenge, auto extra", automatic),
    ]:
        added = np.minimum(wished, own.size)
        # An observation is one group, whose size is the reciprocal of the probability of its items.
        reach = np.maximum(own.size / np.maximum(added, 1.0), 1.0) * unit
        design(
            label,
            float(added.mean()) if label.endswith("auto extra") else float(wished[0]),
            _draw_variance(own, wished) + other.noise,
            reach,
            lambda values, added=added: displaced(  # type: ignore[misc]
                added, values, sums(values)[0] / np.maximum(own.size, 1.0)
            ),
            rates=1.0 if label == "challenge, 1 extra" else GROUP_RATES,
        )
    both = 2 * (squares + other.squares + other.noise) - (own.squares + other.squares)
    pair = np.full(1, 2 * unit)
    design("challenge by lot", 0.0, both, pair, half_exchanged, rates=GROUP_RATES)

    def draft(values: Floats) -> list[_Half]:
        """Return the disputed items of the policy and of the baseline that a draft shows."""
        return [
            _sum_half(rows_, top, other.size, log, values, noise)
            for rows_, top in ((own_rows, top_k), (base_rows, base))
        ]

    def lost_by_draft(values: Floats) -> float:
        """Return the loss caused by a draft."""
        placed = sum(half.exposed for half in draft(values))
        return float((sums(values)[1] - placed).mean())

    halves = draft(expected)
    credit = halves[0].sum - halves[1].sum
    design(
        "challenge by draft",
        0.0,
        halves[0].noise + halves[1].noise,
        pair,
        lost_by_draft,
        observed=credit,
        rates=DRAFT_RATES,
    )
    reach = np.maximum(own.size, other.size) * unit
    design(
        "A/B by recall",
        0.0,
        2 * (own.sum**2 + own.noise + other.sum**2 + other.noise),
        2 * reach,
        half_exchanged,
    )
    return rows


@dataclass(frozen=True)
class _Half:
    """The better half of a policy's disputed items, summed by recall: f64[recalls] each.

    ``sum`` is the expected credit, ``exposed`` the expected reward of what a draft shows, and
    ``noise`` the variance of the credit.
    """

    sum: Floats
    exposed: Floats
    noise: Floats


def _sum_half(
    rows: NDArray[np.int64],
    top_k: TopK,
    slots: Floats,
    log: Log,
    expected: Floats,
    noise: Floats,
) -> _Half:
    """Sum the items of one policy that a draft shows in ``slots`` disputed positions.

    Each policy fills half of them, and a coin decides about a middle position.
    """
    ranks = np.arange(len(top_k.rows)) if top_k.ranks is None else top_k.ranks
    rank = ranks[np.searchsorted(top_k.rows, rows)]
    recall = log.recall[rows]
    order = np.lexsort((rank, recall))
    first = np.searchsorted(recall[order], recall[order])
    number = np.empty(len(rows))
    number[order] = np.arange(len(rows)) - first
    chance = np.clip(slots[recall] / 2 - number, 0.0, 1.0)

    def by_recall(values: Floats) -> Floats:
        return np.bincount(recall, weights=values, minlength=len(log)).astype(np.float64)

    value, inverse = expected[rows], np.divide(1, chance, out=0 * chance, where=chance > 0)
    return _Half(
        by_recall(value * (chance > 0)),
        by_recall(value * chance),
        by_recall(inverse * noise[rows] + np.maximum(inverse - 1, 0.0) * value**2),
    )


def _draw_variance(arm: _Arm, draws: Floats) -> Floats:
    """Return the variance of the weighted sum if ``draws`` items of the set are shown.

    The result is f64[recalls].
    """
    size = np.maximum(arm.size, 1.0)
    rate = np.clip(draws / size, 1e-12, 1.0)
    spread = (arm.squares - arm.sum**2 / size) / np.maximum(size - 1, 1.0)
    return np.asarray(size * (1 - rate) / rate * np.maximum(spread, 0.0) + arm.noise / rate)


def _sum_arm(
    rows: NDArray[np.int64],
    outside: Floats,
    log: Log,
    expected: Floats,
    noise: Floats,
    typical: float,
) -> _Arm:
    """Sum the expected reward and the variance of one policy's items by recall.

    ``rows`` are candidates of the log. ``outside`` counts the items outside the logged pools, each
    of which has the expected reward ``typical``.
    """

    def by_recall(values: Floats) -> Floats:
        return np.bincount(log.recall[rows], weights=values, minlength=len(log)).astype(np.float64)

    return _Arm(
        size=by_recall(np.ones(len(rows))) + outside,
        sum=by_recall(expected[rows]) + outside * typical,
        squares=by_recall(expected[rows] ** 2) + outside * typical**2,
        noise=by_recall(noise[rows]) + outside * typical * (1 - min(typical, 1.0)),
    )


def _power_quantile(level: float) -> float:
    """Return the sum of the normal quantiles of the level and of 80% power."""
    return _level_quantile(level) + normal_quantile(0.8)


def _level_quantile(level: float) -> float:
    """Return the two-sided normal quantile of a confidence level."""
    return normal_quantile((1 + level) / 2)
