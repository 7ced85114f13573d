"""Gates: checks that withhold a misleading figure, with the reason and an action.

A gate is *open*, *closed*, *untested* or *not needed*. A closed gate withholds the value. An
untested gate withholds nothing, but it has not passed either: every report that shows the value
names its untested gates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.base.printable import count_of
from memlab.science.distributions import f_tail, normal_cdf, t_cdf

__all__ = [
    "GATES",
    "GATE_TITLES",
    "MIN_P",
    "MISSING_GATE",
    "ONE_CLUSTER",
    "UNSURE",
    "Balance",
    "Facts",
    "Gate",
    "GateState",
    "arms_p",
    "balance_p",
    "by_recall",
    "effective_count",
    "falling_p",
    "format_count",
    "format_signed",
    "gates",
    "hotelling_p",
    "independence_p",
    "list_names",
    "missing_p",
    "moments_p",
    "position_p",
    "recalls_to_open",
    "redundancy_p",
    "score_strata",
    "share",
    "untested_sentence",
]


GateState = Literal["open", "closed", "untested", "not needed"]

MISSING_GATE = "silence"
"""The id of the gate on missing feedback, in JSON and logs."""

GATE_TITLES = {MISSING_GATE: "missing feedback"}
"""The names of gates in reports, where they differ from the id."""

GATES: dict[str, str] = {
    "propensities": "Every item that counts was shown with a known probability.",
    "clusters": "The log has at least 2 clusters.",
    "independence": "Recalls that count as independent have uncorrelated rewards over time (p at least .01).",
    "balance": "The items shown agree with the logged propensities (p at least .001).",
    "answered probes": "At least 20 answered probes are items that only one of the two policies would show.",
    "influence": "The evidence is worth at least 4 recalls, so that no few recalls decide.",
    MISSING_GATE: "Missing feedback that is left out does not depend on an item's features (p at least .001).",
    "position": "Rewards do not depend on the position in which an item was shown (p at least .01).",
    "redundancy": "An item's reward does not depend on the other items shown (p at least .001).",
}
"""The gates for feedback by id, each with its requirement.

Of these, labels need the gate ``clusters`` only.
"""

# In the simulations of docs/benchmarks/evaluation.md, two policies were equally good. With at least 20 answered probes
# and the evidence of 4 recalls, 4.6% of their verdicts were false; the nominal share is 5%. Several gates test a log,
# for several policies, so the levels of their tests are far below .05.
_MIN_PROBES, _MIN_EFFECTIVE, MIN_P = 20, 4.0, 0.001
_MIN_P_OF = {"independence": 0.01, "position": 0.01}
"""Gates whose level is above that of the others, because their tests have less power.

At .001, the gate *position* misses a third of strong effects after 300 recalls of a challenge.
"""
_WEAK_RECALLS = 300
"""The number of recalls up to which the level of the gate *position* is constant.

Longer logs show effects clearly, and also how far the test's own model is from real scores. The level therefore falls
as 1 / recalls, to ``MIN_P``. In 300 sound logs of 1,000 recalls from real pools, the constant level closed the gate
in .033 and .023, the falling one in .017 and .010. It finds .89 instead of .94 of the effects there.
"""

_TESTS = ("independence", "balance", MISSING_GATE, "position", "redundancy")
"""Gates whose figure is a p-value."""


@dataclass(frozen=True)
class Gate:
    """The result of one check, made for one policy on one log.

    Parameters
    ----------
    name
        The id of the gate, a key of ``GATES``.
    figure
        The number that is compared with the threshold; NaN if there is none.
    threshold
        The requirement as a phrase, such as "at least 20".
    state
        "open" (passed), "closed" (failed), "untested" (the log lacks the data of the test) or
        "not needed" (the estimate does not depend on it).
    finding
        One sentence that says why the gate is closed or untested.
    advice
        One action that would open the gate; "" if there is none.
    more
        The number of further recalls like these that would open the gate. It is 0 unless the gate
        is closed, and None if more recalls alone would not open it.

    Examples
    --------
    >>> gate = Gate("clusters", 1, "at least 2", "closed", "The log has 1 cluster.", 'Set cluster="day".')
    >>> gate.closed, str(gate)
    (True, 'The log has 1 cluster. Set cluster="day".')
    """

    name: str
    figure: float
    threshold: str
    state: GateState
    finding: str
    advice: str
    more: int | None = None

    @property
    def title(self) -> str:
        """The name of the gate in reports."""
        return GATE_TITLES.get(self.name, self.name)

    @property
    def open(self) -> bool:
        """Whether the check was made and passed; False for an untested gate."""
        return self.state == "open"

    @property
    def closed(self) -> bool:
        """Whether the check was made and failed, so that the value is withheld."""
        return self.state == "closed"

    @property
    def untested(self) -> bool:
        """Whether the log lacks the data that the check needs."""
        return self.state == "untested"

    @property
    def shown(self) -> str:
        """The figure as text, or the gate's state if there is no figure."""
        if math.isnan(self.figure):
            return "-" if self.closed or self.open else self.state
        if self.name in _TESTS:
            return f"p {self.figure:.3f}" if self.figure >= MIN_P else "p < .001"
        is_share = self.name == "propensities" or self.name.startswith("single ")
        return share(self.figure) if is_share else f"{self.figure:,.0f}"

    def __str__(self) -> str:
        return f"{self.finding} {self.advice}".rstrip()


ONE_CLUSTER = Gate(
    "clusters",
    1,
    "at least 2",
    "closed",
    "The labels are of 1 cluster; at least 2 are needed.",
    "Label recalls of another cluster, such as another project or user.",
)
"""The closed gate of labels that cover one cluster only."""


@dataclass(frozen=True)
class Facts:
    """The figures that decide the gates of one policy.

    A figure is NaN if the log lacks the data of its test, and None if no test is needed.
    ``balance``, ``missing``, ``independence``, ``position`` and ``redundancy`` are p-values.

    Attributes
    ----------
    unknown
        The share of the policy's items that were shown with an unknown probability.
    probes
        The number of answered probes among the items that only one of two policies would show. None
        if none of these items is randomised.
    effective
        The number of recalls that carry the difference of two policies.
    """

    unknown: float
    clusters: int
    recalls: int
    balance: float | None
    missing: float | None
    probes: float | None = None
    effective: float | None = None
    independence: float | None = None
    position: float | None = None
    redundancy: float | None = None


def gates(facts: Facts) -> tuple[Gate, ...]:
    """Return all gates of one policy, each open, closed, untested or not needed."""
    checked = [
        Gate(
            "propensities",
            facts.unknown,
            "none",
            _state(facts.unknown == 0),
            f"{share(facts.unknown)} of this policy's items were shown with an unknown probability; the limit is 0%.",
            "Log the probability with which each item was shown, as a lab does.",
        ),
        Gate(
            "clusters",
            facts.clusters,
            "at least 2",
            _state(facts.clusters >= 2),
            f"The log has {count_of(facts.clusters, 'cluster')}; at least 2 are needed.",
            'Name the independent unit: cluster="session", cluster="day" or a column of the decisions.',
        ),
        _p_value_gate(
            "independence",
            facts.independence,
            "Rewards of recalls near in time are correlated, and each recall counts as a cluster of its own",
            'Name what recalls share (a user, a project, a session) in the column cluster, or set cluster="day".',
        ),
        _p_value_gate(
            "balance",
            facts.balance,
            "The items shown do not agree with the logged propensities",
            "Fix the logging: weights need the probabilities with which items were drawn.",
        ),
        _probes_gate(facts),
        _influence_gate(facts),
        _p_value_gate(
            MISSING_GATE,
            facts.missing,
            "Missing feedback depends on the features of an item, so leaving it out biases the estimate",
            'Set missing="inverse" (it depends on the features alone), "bounds" (no assumption) or "zero" (a reward '
            "of 0).",
        ),
        _p_value_gate(
            "position",
            facts.position,
            "Rewards depend on the position in which an item was shown",
            "Show probes at random positions, and evaluate with position=True.",
            factor=min(1.0, _WEAK_RECALLS / max(facts.recalls, 1)),
        ),
        _p_value_gate(
            "redundancy",
            facts.redundancy,
            "The reward of an item depends on the other items shown, so sums over items mislead",
            'Compare whole result lists: lab.challenge(pack, design="ab").',
        ),
    ]
    return tuple(gate if gate.closed else replace(gate, more=0) for gate in checked)


def _state(passed: bool) -> GateState:
    """Return the state of a gate: "open" if its check passed, otherwise "closed"."""
    return "open" if passed else "closed"


_NOT_TESTED = {
    "independence": (
        "The independence of recalls near in time was not tested: the log has no times (column 'at'), or fewer than 30 "
        "recalls.",
        "Add a column 'at' to the decisions, or name what recalls share in a column 'cluster'.",
    ),
    "balance": (
        "The logged propensities were not tested against the items shown: fewer than 30 recalls had randomised items.",
        "Log more recalls with probes.",
    ),
    "influence": (
        "The influence of single recalls was not tested: all of them have the same effect.",
        "",
    ),
    MISSING_GATE: (
        "The dependence of missing feedback on features was not tested: fewer than 30 items were shown, or too few "
        "were answered.",
        "",
    ),
    "position": (
        "The dependence of rewards on the position was not tested: the log has no scores, no positions, or fewer than "
        "30 rewards.",
        "Name the column of scores that ranked the log (score=), and log the position of each item.",
    ),
    "redundancy": (
        "The dependence of rewards on other items was not tested: the log has no scores, fewer than 30 recalls with two "
        "rewards, or no content of two items that a policy would show together and no recall had to show together.",
        "Name the column of scores (score=), and add a column group with one value for all near-duplicates of an item.",
    ),
}
"""For each gate that can be untested: the reason, and an action that makes it testable."""


def _without_figure(name: str, figure: float | None, threshold: str) -> Gate:
    """Return a gate without a figure: "not needed" for None, "untested" for NaN."""
    if figure is None:
        return Gate(name, math.nan, threshold, "not needed", "", "")
    return Gate(name, math.nan, threshold, "untested", *_NOT_TESTED[name])


def _p_value_gate(
    name: str, p: float | None, finding: str, advice: str, *, factor: float = 1.0
) -> Gate:
    """Return a gate that is open if a p-value is at least ``factor`` times the gate's level."""
    minimum = max(MIN_P, _MIN_P_OF.get(name, MIN_P) * factor)
    threshold = f"p at least {minimum:.2g}"
    if p is None or math.isnan(p):
        return _without_figure(name, p, threshold)
    figure = f" (p {p:.1g}; at least {minimum:.2g} is needed)"
    return Gate(name, p, threshold, _state(p >= minimum), f"{finding}{figure}.", advice)


def _influence_gate(facts: Facts) -> Gate:
    """Return the gate that is open if enough recalls contribute to the difference between two policies."""
    count, threshold = facts.effective, f"at least {_MIN_EFFECTIVE:g}"
    if count is None or math.isnan(count):
        return _without_figure("influence", count, threshold)
    return Gate(
        "influence",
        count,
        threshold,
        _state(count >= _MIN_EFFECTIVE),
        f"{count:.1f} recalls carry the difference; at least {_MIN_EFFECTIVE:g} are needed.",
        "Run lab.challenge, which shows probes where the policies differ, or log more recalls.",
        math.ceil(facts.recalls * (_MIN_EFFECTIVE / count - 1)) if count > 0 else None,
    )


def _probes_gate(facts: Facts) -> Gate:
    """Return the gate that is open if enough exploration items with feedback distinguish two policies."""
    count, threshold = facts.probes, f"at least {_MIN_PROBES}"
    if count is None:
        return _without_figure("answered probes", count, threshold)
    more = math.ceil(facts.recalls * (_MIN_PROBES / count - 1)) if count > 0 else None
    advice = "Run lab.challenge to show the items on which the policies differ."
    if more is not None:
        advice = f"Log about {format_count(more)} more recalls at this probe rate; lab.challenge needs far fewer."
    return Gate(
        "answered probes",
        count,
        threshold,
        _state(count >= _MIN_PROBES),
        f"{count_of(int(count), 'answered probe')} distinguish the two policies; at least {_MIN_PROBES} are needed.",
        advice,
        more,
    )


def untested_sentence(gates: Sequence[Gate]) -> str:
    """Name the untested gates in a sentence; return "" without untested gates.

    >>> untested_sentence([Gate("position", math.nan, "p at least .001", "untested", "", "")])
    'Untested: position.'
    """
    names = list(dict.fromkeys(gate.title for gate in gates if gate.untested))
    if not names:
        return ""
    return f"Untested: {list_names(names)}."


def list_names(names: Sequence[str]) -> str:
    """Join names with commas, and the last two names with "and".

    >>> list_names(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def effective_count(influence: Floats) -> float:
    """Return the effective number of contributions, which is lower if they are uneven.

    This is (sum x^2)^2 / sum x^4; NaN if all contributions are 0.

    >>> effective_count(np.array([1.0, -1.0, 1.0, -1.0]))
    4.0
    """
    squares = influence**2
    fourth = float((squares**2).sum())
    return float(squares.sum() ** 2 / fourth) if fourth > 0 else math.nan


def recalls_to_open(gates: Sequence[Gate]) -> int | None:
    """Return how many more recalls open all gates, or None if no number does.

    >>> recalls_to_open([])
    0
    """
    more = [gate.more for gate in gates]
    return None if None in more else max((count for count in more if count is not None), default=0)


def share(value: float) -> str:
    """Format a share in per cent, with one decimal below 10%; "-" for NaN."""
    if math.isnan(value):
        return "-"
    return f"{value:.0%}" if value >= 0.1 or value == 0 else f"{value:.1%}"


def format_signed(value: float, digits: int = 2) -> str:
    """Format a difference with its sign; zero is written with a plus.

    >>> format_signed(0.214), format_signed(-0.0001)
    ('+0.21', '+0.00')
    """
    # A sum with 0.0 turns -0.0 into 0.0.
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def format_count(count: float) -> str:
    """Format a forecast count, rounded up to two digits.

    More digits would suggest a precision that a forecast does not have.
    """
    if count < 100:
        return str(max(1, math.ceil(count)))
    size = 10 ** (math.floor(math.log10(count)) - 1)
    return f"{math.ceil(count / size) * size:,}"


# Tests of the assumptions of an estimate: each gives a p-value, or NaN where the data do not allow a test.
#
# - *balance*: with the right propensities, the items shown minus their expected number are noise, whatever they are
#   weighted with (the rank, the score, membership of a policy's top-k). Draws of different recalls are independent by
#   design, so the covariance is that of recalls, and Hotelling's statistic holds for few recalls. A propensity given
#   the threshold of a draw is itself random: only shown / propensity has a known mean, and its weight must not come
#   from the same draw. Where recalls show whole result lists, the count of each list is compared with its probability.
# - *independence*: the rewards of recalls, in order of time, are correlated neither with those of the next recall nor
#   with those of the next ten.
# - *missing feedback*: items without a reward may be left out if rewards are missing at random. Whether an item was
#   answered must then not depend on its known features.
# - *position*: of items with the same standing in their slates (the score in deviations of the slate), one that was
#   shown further up must not have a higher reward. Where positions are random, ``_position`` tests this without the
#   score too.
# - *redundancy*: where rewards add up, the rewards of one recall vary nearly independently, or together with the mood of
#   its user. Where one item makes others worthless, their sum varies much less than that.


_MIN_COUNT = 30
"""The minimum number of recalls or items of a test.

Hotelling's approximation is poor for smaller numbers.
"""
_BEST = 30
"""The number of best candidates of a recall whose mean and deviation standardise its scores.

Worse candidates say how large the pool was, and not how the best differ. On LoCoMo, a pool of 100
closed the gate *position* in .33 of sound logs by its own deviation.
"""
_WIDTH, _LOWEST, _BINS = 0.25, -3.0, 52
"""The strata of standardised scores: a quarter of a deviation wide, from -3 to 10.

They are fixed, so sums over strata of two parts of a log add up. Strata twice as wide leave a tenth
of a fall of LoCoMo's rewards to the position.
"""
_EXCLUSIVE = 0.25
"""The share of variance that sums of rewards may lack without redundancy.

Where one or two items answer a query, or users have two tastes, rewards exclude each other although no
item changes another's: the share is up to .12 on LoCoMo and .15 in the example log. Where a second
item of a kind earns nothing, the share is .64 to .78.
"""
UNSURE = 10.0
"""The factor of a p-value that rests on strata of the score instead of random positions.

Strata remove the effect of the score only approximately, so this test has a tenth of the level.
"""
_LAGS = 10
"""The number of preceding recalls in the second test of independence.

In logs of forty anonymous users of Pareto sizes, a test of the preceding recall alone passes .16 of
the logs. Both tests together pass .03: those in which one user asked nearly all questions.
"""
_FALL = 0.9
"""The share of a position test's error that is spent on rewards that fall with the position."""
_ROUNDING = 0.01
"""The share of sampling noise up to which a residual counts as rounding."""


class Balance:
    """A test of the logged propensities of the n randomised candidates, by recall.

    Attributes
    ----------
    fixed
        The columns that weight the items shown in every test, f64[n, k].
    weight
        The factor of shown / propensity - 1 for each candidate, f64[n], which must be fixed before
        the draw. By default it is the propensity.
    """

    def __init__(
        self,
        fixed: Floats,
        exposed: Flags,
        propensity: Floats,
        recall: Ints,
        weight: Floats | None = None,
    ) -> None:
        self._moved = (
            exposed - propensity if weight is None else weight * (exposed / propensity - 1.0)
        )
        self._recall = recall
        self._fixed = self._sum_residuals(fixed)

    def _sum_residuals(self, features: Floats) -> tuple[Floats, Floats]:
        """Return weighted residuals by recall, and the sums of squared residuals by recall."""
        moved = self._moved[:, None] * features
        return by_recall(moved, self._recall), by_recall(moved**2, self._recall)

    def sums(self, more: Floats) -> tuple[Floats, Floats]:
        """Return residuals and their squares by recall, after adding the columns ``more``."""
        parts = self._fixed, self._sum_residuals(more)
        sums, squares = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        return sums, squares

    def p(self, more: Floats) -> float:
        """Return the p-value of the test after adding the columns ``more`` (f64[n, k])."""
        sums, squares = self.sums(more)
        if len(sums) < _MIN_COUNT:
            return np.nan
        covariance = np.atleast_2d(np.cov(sums, rowvar=False))
        return balance_p(len(sums), sums.mean(axis=0), covariance, squares.sum(axis=0))


def balance_p(count: int, mean: Floats, covariance: Floats, squares: Floats) -> float:
    """Return the p-value of the propensity test, from the moments of its residuals.

    The moments are computed over ``count`` recalls; ``squares`` are the sums of squares over items.
    """
    if count < _MIN_COUNT:
        return np.nan
    # If each recall shows exactly the expected number of probes, the residual is rounding of the propensities. A
    # larger constant residual cannot be sampling noise.
    alone, variance = np.sqrt(squares / count), np.diag(covariance) * (count - 1) / count
    nothing = np.sqrt(variance + mean**2) <= _ROUNDING * alone
    if (~nothing & (np.sqrt(variance) <= 1e-5 * alone)).any():
        return 0.0
    return moments_p(
        count, np.where(nothing, 0.0, mean), np.where(nothing | nothing[:, None], 0.0, covariance)
    )


def arms_p(exposed: Flags, share: Floats) -> float:
    """Test whether result lists were shown as often as their logged probabilities predict.

    ``exposed`` and ``share`` have one row per recall and one column per list. Returns a p-value;
    NaN if the log has too few recalls.
    """
    count, error = (exposed - share).sum(axis=0), np.sqrt((share * (1 - share)).sum(axis=0))
    if len(share) < _MIN_COUNT or not error.any():
        return np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.where(error > 0, np.abs(count) / error, np.where(count != 0, np.inf, 0.0))
    return float(min(1.0, share.shape[1] * 2 * normal_cdf(-float(deviation.max()))))


def independence_p(earned: Floats) -> float:
    """Test whether the rewards of recalls are independent of earlier rewards.

    ``earned`` is the reward of each recall in order of time, f64[recalls]. Returns a p-value; NaN
    if it cannot be tested.
    """
    count = len(earned)
    centred = earned - earned.mean()
    spread = float((centred**2).sum())
    if count < _MIN_COUNT or spread == 0:
        return np.nan
    # The test is one-sided. Autocorrelations of independent values are independent and normal, with mean -1/n and
    # variance 1/n.
    p_values = []
    for lags in (1, min(_LAGS, count // _LAGS)):
        total = (
            sum(float((centred[lag:] * centred[:-lag]).sum()) for lag in range(1, lags + 1))
            / spread
        )
        p_values.append(normal_cdf(-(total + lags / count) * math.sqrt(count / lags)))
    return min(1.0, 2 * min(p_values))


def missing_p(features: Floats, answered: Flags, recall: Ints) -> float:
    """Test whether missing feedback is independent of the features of shown items.

    ``features`` is f64[n, k] over the items that were shown. Returns a p-value; NaN if it cannot be
    tested.
    """
    if answered.all() or len(answered) < _MIN_COUNT:
        return np.nan
    sums = by_recall(
        (answered - answered.mean())[:, None] * (features - features.mean(axis=0)), recall
    )
    return hotelling_p(sums)


def position_p(strata: Ints, position: Ints, reward: Floats, recall: Ints) -> float:
    """Test whether rewards are independent of the position, given the score within the slate.

    All arrays are over the items with a reward; ``strata`` come from ``score_strata``, and
    ``position`` counts from 1. Returns a p-value; NaN if it cannot be tested, such as where the
    strata determine the position.
    """
    if len(reward) < _MIN_COUNT:
        return np.nan
    log_position = np.log(position.astype(np.float64))
    log_position, residual = (
        values - _stratum_means(values, strata) for values in (log_position, reward)
    )
    p = falling_p(by_recall((log_position * residual)[:, None], recall)[:, 0])
    return min(1.0, UNSURE * p) if p == p else p


def redundancy_p(strata: Ints, reward: Floats, recall: Ints) -> float:
    """Test whether rewards within a recall vary together much less than independent rewards.

    ``strata`` come from ``score_strata``. The test is one-sided: under the hypothesis, the
    variance of a recall's sum is at least 1 - ``_EXCLUSIVE`` of the sum of the variances. Returns a
    p-value; NaN if it cannot be tested.
    """
    if len(reward) < _MIN_COUNT:
        return np.nan
    residual = reward - _stratum_means(reward, strata)
    groups = np.unique(recall, return_inverse=True)[1]
    total, alone = (np.bincount(groups, weights=values) for values in (residual, residual**2))
    if len(total) < _MIN_COUNT or not (total**2 - alone).any():
        return np.nan
    excess = total**2 - (1 - _EXCLUSIVE) * alone
    error = excess.std(ddof=1) / np.sqrt(len(excess))
    return t_cdf(len(excess) - 1, float(excess.mean() / error)) if error > 0 else np.nan


def by_recall(values: Floats, recall: Ints) -> Floats:
    """Sum rows by recall, omitting recalls without rows: f64[recalls, k]."""
    if not len(recall):
        return np.zeros((0, values.shape[1]))
    if (recall[1:] < recall[:-1]).any():
        order = np.argsort(recall, kind="stable")
        values, recall = values[order], recall[order]
    first = np.flatnonzero(np.concatenate([[True], recall[1:] != recall[:-1]]))
    return np.asarray(np.add.reduceat(values, first, axis=0))


def score_strata(score: Floats, rank: Floats, recall: Ints) -> Ints:
    """Assign each candidate to a stratum by its score, standardised within its recall.

    ``rank`` counts from 0 within the recall. The same raw score means more for one query than for
    another, so only differences within a recall are compared.
    """
    best = rank < _BEST
    count, total = (
        np.bincount(recall[best], weights=values[best]) for values in (np.ones(len(score)), score)
    )
    centred = score - (total / np.maximum(count, 1))[recall]
    square = np.bincount(recall[best], weights=centred[best] ** 2) / np.maximum(count, 1)
    deviation = np.sqrt(square)[recall]
    scaled = np.divide(centred, deviation, out=np.zeros(len(score)), where=deviation > 0)
    return np.clip((scaled - _LOWEST) // _WIDTH, 0, _BINS - 1).astype(np.int64)


def _stratum_means(values: Floats, strata: Ints) -> Floats:
    """Return, for each item, the mean of the values in its stratum."""
    counts = np.maximum(np.bincount(strata, minlength=_BINS), 1)
    return np.asarray((np.bincount(strata, weights=values, minlength=_BINS) / counts)[strata])


def falling_p(sums: Floats) -> float:
    """Test whether independent values have mean zero, with most power against a negative mean.

    ``sums`` is f64[recalls], negative where rewards fall with the position. Nine tenths of the
    error are spent on a fall, because users read from the top. Returns a p-value; NaN if it cannot
    be tested.
    """
    count = len(sums)
    if count < _MIN_COUNT or sums.std() <= 1e-12:
        return np.nan
    t = float(sums.mean() / sums.std(ddof=1)) * math.sqrt(count)
    fall, rise = t_cdf(count - 1, t), t_cdf(count - 1, -t)
    return min(1.0, fall / _FALL, rise / (1 - _FALL))


def hotelling_p(sums: Floats) -> float:
    """Test whether independent rows have mean zero, by Hotelling's T^2.

    Linearly dependent columns count once. Returns a p-value; NaN if it cannot be tested.
    """
    count = len(sums)
    if count < _MIN_COUNT:
        return np.nan
    return moments_p(count, sums.mean(axis=0), np.atleast_2d(np.cov(sums, rowvar=False)))


def moments_p(count: int, mean: Floats, covariance: Floats) -> float:
    """Test whether ``count`` rows with this mean and covariance have expectation zero.

    Returns the p-value of ``hotelling_p``, which reads the rows themselves.
    """
    if count < _MIN_COUNT:
        return np.nan
    scale = np.sqrt(np.diag(covariance))
    varying = scale > 1e-12
    if not varying.any():
        return np.nan
    correlation = covariance[np.ix_(varying, varying)] / np.outer(scale[varying], scale[varying])
    values, vectors = np.linalg.eigh(correlation)
    independent = values > 1e-6
    rank = int(independent.sum())
    independent_mean = (mean[varying] / scale[varying]) @ vectors[:, independent]
    squared = count * float((independent_mean**2 / values[independent]).sum())
    if count <= rank:
        return np.nan
    return f_tail(rank, count - rank, squared * (count - rank) / (rank * (count - 1)))
