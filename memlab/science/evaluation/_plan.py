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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.arrays import Floats, Rows
from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.kernel.base.printable import count_of
from memlab.kernel.recall import ADDED_SHARE
from memlab.kernel.slates import Slates
from memlab.science.distributions import normal_quantile
from memlab.science.evaluation._duels import DRAFT_RATES, GROUP_RATES, comparisons_begun
from memlab.science.evaluation._evidence import Evidence, TopK, gather_evidence
from memlab.science.evaluation._log import Horizon, Log, Missing
from memlab.science.evaluation._prepared import HasSlates, Settings, prepare, with_baseline
from memlab.science.evaluation._reward_model import predicted_rewards, select_features
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
    ("extra items", "{extra:.1f}"),
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
    # A log that cannot answer is refused before anything is forecast: a plan covers all designs or is an error.
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
    rewards = _Rewards(evidence, expected, _predict_noise(log, expected, settings.reward_range))
    levels = (level, level_of(comparisons_begun(log) + 1, level))
    rows = []
    for name, top_k in top_ks.items():
        if name != base:
            contest = _Contest(top_k, top_ks[base], rewards)
            rows += [
                {"policy": name, **contest.forecast(design, *levels)}
                for design in contest.list_designs(extra)
            ]
    notes = [f"{refusal.policy}: {refusal.reason}" for refusal in refused]
    numbers = {"one_look": pl.Int64, "every_look": pl.Int64}
    return Plan(
        pl.DataFrame(rows, schema_overrides=numbers), base, len(log), settings, tuple(notes)
    )


def _predict_noise(log: Log, expected: Floats, reward_range: tuple[float, float]) -> Floats:
    """Return the variance of the reward of each candidate by the model.

    Rewards of two values have the variance of a coin; other rewards get the residual variance.
    """
    low, high = reward_range
    observed = log.reward[log.answered]
    if np.isin(observed, (low, high)).all():
        return (expected - low) * (high - expected)
    return np.full(len(expected), float((observed - expected[log.answered]).var()))


@dataclass(frozen=True)
class _Rewards:
    """The mean and the variance of the reward of each candidate, by the model: f64[candidates]."""

    evidence: Evidence
    expected: Floats
    noise: Floats

    def sum_by_recall(self, rows: Rows, values: Floats) -> Floats:
        """Sum the values of these candidates by recall."""
        log = self.evidence.log
        return np.bincount(log.recall[rows], weights=values, minlength=len(log)).astype(np.float64)

    def sum_arm(self, rows: Rows, outside: Floats, typical: float) -> _Arm:
        """Sum the expected reward and the variance of one policy's items by recall.

        ``outside`` counts the items outside the logged pools, each of which has the expected reward
        ``typical``.
        """
        expected = self.expected[rows]
        return _Arm(
            size=self.sum_by_recall(rows, np.ones(len(rows))) + outside,
            sum=self.sum_by_recall(rows, expected) + outside * typical,
            squares=self.sum_by_recall(rows, expected**2) + outside * typical**2,
            noise=self.sum_by_recall(rows, self.noise[rows])
            + outside * typical * (1 - min(typical, 1.0)),
        )


@dataclass(frozen=True)
class _Design:
    """A design of an experiment, which makes one observation in each recall.

    ``observed`` is the expected observation, ``variance`` its variance, and ``scale`` its largest
    size. ``loss`` returns the mean loss of a value of candidates while the experiment runs. ``rates``
    is the factor of the rates of its confidence sequence.
    """

    label: str
    extra: float
    observed: Floats
    variance: Floats
    scale: Floats
    loss: Callable[[Floats], float]
    unsupported: float = 0.0
    rates: float = 1.0


class _Contest:
    """A policy and the baseline on one log: what each design would observe of their difference."""

    def __init__(self, top_k: TopK, base: TopK, rewards: _Rewards) -> None:
        evidence, expected = rewards.evidence, rewards.expected
        self.top_k, self.base, self.rewards, self.log = top_k, base, rewards, evidence.log
        self.rows, self.base_rows = evidence.differing_rows(top_k, base)
        typical = float((expected[self.rows] if len(self.rows) else expected).mean())
        self.own = rewards.sum_arm(self.rows, top_k.outside, typical)
        self.other = rewards.sum_arm(self.base_rows, base.outside, typical)
        self.gap = self.own.sum - self.other.sum
        # A reward observed with probability p and divided by p has a square that is 1/p times as large.
        self.squares = self.own.squares + self.own.noise
        self.items = max(float(len(top_k)), 1.0)
        self.unit = evidence.reward_range[1] - evidence.reward_range[0]
        self.size = np.bincount(self.log.recall[base.rows], minlength=len(self.log)).astype(
            np.float64
        )
        self.relevance, self.judged = _share_relevance(self.log, evidence.reward_range[0])

    def forecast(self, design: _Design, level: float, anytime_level: float) -> dict[str, Any]:
        """Return the row of a design, without the name of the policy."""
        mean, unsupported = float(design.observed.mean()), design.unsupported
        spread = math.sqrt(float(design.variance.mean()) + float(design.observed.var()))
        fixed = math.ceil((_power_quantile(level) * spread / mean) ** 2) if mean else None
        anytime = recalls_of_sequence(
            abs(mean), spread, design.scale, unit=self.unit / design.rates, level=anytime_level
        )
        # Unsupported items widen the interval at any number of recalls.
        is_unbounded = unsupported > 0.02
        fixed, anytime = (
            None if count is None or count > _MAX_RECALLS or is_unbounded else count
            for count in (fixed, anytime)
        )
        half = (
            _level_quantile(level) * spread / math.sqrt(_WIDTH_RECALLS)
            + unsupported * self.items / len(self.log) * self.unit / 2
        )
        expected = self.rewards.expected
        earned = max(float(expected[self.base.rows].sum()) / len(self.log), 1e-12)
        return {
            "design": design.label,
            "extra": design.extra,
            "difference": float(self.gap.mean()),
            "one_look": fixed,
            "every_look": anytime,
            "half_width": half,
            "cost": design.loss(expected) / earned,
            "recall_cost": design.loss(self.relevance) * len(self.log) / self.judged
            if self.judged
            else None,
            "unsupported": unsupported,
        }

    def list_designs(self, draws: Sequence[int]) -> list[_Design]:
        """Return the designs that can compare the two, with challenges of ``draws`` extra items."""
        own, other, pair = self.own, self.other, np.full(1, 2 * self.unit)
        both = 2 * (self.squares + other.squares + other.noise) - (own.squares + other.squares)
        apart = 2 * (own.sum**2 + own.noise + other.sum**2 + other.noise)
        reach = 2 * (np.maximum(own.size, other.size) * self.unit)
        halves = self._draft(self.rewards.expected)
        return [
            *self._list_probes(),
            *self._list_extra(draws),
            _Design(
                "challenge by lot",
                0.0,
                self.gap,
                both,
                pair,
                self._lose_half,
                rates=GROUP_RATES,
            ),
            _Design(
                "challenge by draft",
                0.0,
                halves[0].sum - halves[1].sum,
                halves[0].noise + halves[1].noise,
                pair,
                self._lose_by_draft,
                rates=DRAFT_RATES,
            ),
            _Design("A/B by recall", 0.0, self.gap, apart, reach, self._lose_half),
        ]

    def _list_probes(self) -> Iterator[_Design]:
        """Yield the designs of an experiment that show probes and need no challenge."""
        log, deep = self.log, np.full(1, _PROBE_DEPTH * self.unit)
        outside = self.top_k.outside.sum()
        # Without logged probabilities, more of the same recalls would decide nothing.
        if not np.isnan(log.propensity).any():
            propensity = log.propensity[self.rows]
            rows = self.rows[(propensity > 0) & (propensity < 1)]
            squares = self.rewards.expected[rows] ** 2 + self.rewards.noise[rows]
            probes = float((log.exposed & self.rewards.evidence.probe).sum() / len(log))
            yield _Design(
                "probes as logged",
                probes,
                self.gap,
                self.rewards.sum_by_recall(rows, squares / log.propensity[rows]) + self.other.noise,
                deep,
                partial(self._lose_to_probes, probes),
                float((propensity == 0).sum() + outside) / self.items,
            )
        yield _Design(
            "one probe of 90, every recall",
            1.0,
            self.gap,
            _PROBE_DEPTH * self.squares + self.other.noise,
            deep,
            partial(self._lose_to_probes, 1.0),
            float(outside) / self.items,
        )

    def _list_extra(self, draws: Sequence[int]) -> Iterator[_Design]:
        """Yield the designs that insert items of the challenger among the results, below the first."""
        own = self.own
        automatic = np.minimum(
            np.ceil(own.size / 2), np.maximum(np.floor(ADDED_SHARE * np.maximum(self.size, 1)), 1)
        )
        wishes: list[tuple[int | str, Floats]] = [
            (count, np.full(len(self.log), float(count))) for count in draws
        ]
        for count, wished in [*wishes, ("auto", automatic)]:
            added = np.minimum(wished, own.size)
            # An observation is one group, whose size is the reciprocal of the probability of its items.
            reach = np.maximum(own.size / np.maximum(added, 1.0), 1.0) * self.unit
            yield _Design(
                f"challenge, {count} extra",
                float(added.mean()) if count == "auto" else float(wished[0]),
                self.gap,
                _draw_variance(own, wished) + self.other.noise,
                reach,
                partial(self._lose_to_added, added),
                rates=1.0 if count == 1 else GROUP_RATES,
            )

    def _sum_own(self, values: Floats) -> Floats:
        """Sum the values of the policy's own items by recall."""
        if values is self.rewards.expected:
            return self.own.sum  # with the items outside the logged pools
        return self.rewards.sum_by_recall(self.rows, values[self.rows])

    def _sum_other(self, values: Floats) -> Floats:
        """Sum the values of the baseline's own items by recall."""
        if values is self.rewards.expected:
            return self.other.sum
        return self.rewards.sum_by_recall(self.base_rows, values[self.base_rows])

    def _lose_half(self, values: Floats) -> float:
        """Return the mean loss per recall if half of the recalls show the policy's results where they differ."""
        return -float((self._sum_own(values) - self._sum_other(values)).mean()) / 2

    def _lose_to_probes(self, count: float, values: Floats) -> float:
        """Return the mean loss per recall if ``count`` probes per recall displace the last results."""
        rows = self.base.rows
        rest = float(np.delete(values, rows).mean()) if len(rows) < len(values) else 0.0
        return self._displace(np.full(len(self.log), count), values, rest)

    def _lose_to_added(self, added: Floats, values: Floats) -> float:
        """Return the mean loss per recall if ``added`` of the policy's own items displace the last results."""
        gain = self._sum_own(values) / np.maximum(self.own.size, 1.0)
        return self._displace(added, values, gain)

    def _displace(self, count: Floats, values: Floats, gain: Floats | float) -> float:
        """Return the mean loss per recall when ``count`` items worth ``gain`` each displace the last results."""
        log, base, size = self.log, self.base, self.size
        places = np.arange(1, len(log.recall) + 1) if base.ranks is None else base.ranks
        entering = count * np.maximum(size - 1, 0) / np.maximum(size + count - 1, 1)
        depth = (size - entering)[log.recall[base.rows]]
        pushed = np.clip(places - depth, 0.0, 1.0) * values[base.rows]
        return float((pushed.sum() - (entering * gain).sum()) / len(log))

    def _draft(self, values: Floats) -> list[_Half]:
        """Return the disputed items of the policy and of the baseline that a draft shows."""
        return [
            _sum_half(rows, top_k, self.other.size, self.rewards, values)
            for rows, top_k in ((self.rows, self.top_k), (self.base_rows, self.base))
        ]

    def _lose_by_draft(self, values: Floats) -> float:
        """Return the mean loss of reward per recall that a draft causes."""
        placed = sum(half.exposed for half in self._draft(values))
        return float((self._sum_other(values) - placed).mean())


def _share_relevance(log: Log, worst: float) -> tuple[Floats, int]:
    """Return each item's share of its recall's rewarded items (else 0), and the number of recalls with any.

    An item is rewarded if its reward is above 0 and above ``worst``.
    """
    rewarded = log.answered & (log.reward > max(worst, 0.0))
    counts = np.bincount(log.recall[rewarded], minlength=len(log))
    return rewarded / np.maximum(counts, 1)[log.recall], int((counts > 0).sum())


@dataclass(frozen=True)
class _Half:
    """The better half of a policy's disputed items, summed by recall: f64[recalls] each.

    ``sum`` is the expected credit, ``exposed`` the expected reward of what a draft shows, and
    ``noise`` the variance of the credit.
    """

    sum: Floats
    exposed: Floats
    noise: Floats


def _sum_half(rows: Rows, top_k: TopK, slots: Floats, rewards: _Rewards, values: Floats) -> _Half:
    """Sum the items of one policy that a draft shows in ``slots`` disputed positions.

    Each policy fills half of them, and a coin decides about a middle position.
    """
    ranks = np.arange(len(top_k.rows)) if top_k.ranks is None else top_k.ranks
    rank = ranks[np.searchsorted(top_k.rows, rows)]
    recall = rewards.evidence.log.recall[rows]
    order = np.lexsort((rank, recall))
    first = np.searchsorted(recall[order], recall[order])
    number = np.empty(len(rows))
    number[order] = np.arange(len(rows)) - first
    chance = np.clip(slots[recall] / 2 - number, 0.0, 1.0)
    value, inverse = values[rows], np.divide(1, chance, out=0 * chance, where=chance > 0)
    noise = inverse * rewards.noise[rows] + np.maximum(inverse - 1, 0.0) * value**2
    return _Half(
        rewards.sum_by_recall(rows, value * (chance > 0)),
        rewards.sum_by_recall(rows, value * chance),
        rewards.sum_by_recall(rows, noise),
    )


def _draw_variance(arm: _Arm, draws: Floats) -> Floats:
    """Return the variance of the weighted sum if ``draws`` items of the set are shown.

    The result is f64[recalls].
    """
    size = np.maximum(arm.size, 1.0)
    rate = np.clip(draws / size, 1e-12, 1.0)
    spread = (arm.squares - arm.sum**2 / size) / np.maximum(size - 1, 1.0)
    return np.asarray(size * (1 - rate) / rate * np.maximum(spread, 0.0) + arm.noise / rate)


def _power_quantile(level: float) -> float:
    """Return the sum of the normal quantiles of the level and of 80% power."""
    return _level_quantile(level) + normal_quantile(0.8)


def _level_quantile(level: float) -> float:
    """Return the two-sided normal quantile of a confidence level."""
    return normal_quantile((1 + level) / 2)
