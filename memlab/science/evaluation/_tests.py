"""When a figure must not be used to rank policies: each gate has a figure, a threshold, and what would help.

A gate is *open*, *closed*, *untested* or *not needed*. An untested gate withholds nothing, but it has not passed
either: wherever a value is shown, its untested gates are named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import fdtrc, ndtr, stdtr

from memlab.science.evaluation._intervals import Flags, Floats, Ints

__all__ = [
    "GATES",
    "ONE_CLUSTER",
    "Balance",
    "Facts",
    "Gate",
    "GateState",
    "arms_p",
    "by_recall",
    "effective_count",
    "gates",
    "hotelling_p",
    "independence_p",
    "list_names",
    "position_p",
    "recalls_to_open",
    "redundancy_p",
    "rounded",
    "share",
    "silence_p",
    "untested_sentence",
]


GateState = Literal["open", "closed", "untested", "not needed"]

GATES: dict[str, str] = {
    "propensities": "every item that counts was shown with a known probability",
    "clusters": "at least 2 clusters",
    "independence": "recalls taken as independent do not earn alike where they are near in time (p at least .01)",
    "balance": "what was shown agrees with the logged propensities (p at least .001)",
    "answered probes": "at least 20 answered probes among the items that only one of the two policies would show",
    "influence": "at least 4 recalls' worth of evidence: no handful of them decides",
    "silence": "whether an item was answered does not follow its features (p at least .001), if silence is left out",
    "position": "rewards do not follow the position in which an item was shown (p at least .001)",
    "redundancy": "an item's reward does not depend on the others that were shown (p at least .001)",
}
"""Every gate for feedback, with what it asks for. Labels need clusters only."""

ENOUGH, _EFFECTIVE, _ODDS, _ALIKE = 20, 4.0, 0.001, 0.01
_TESTS = ("independence", "balance", "silence", "position", "redundancy")


@dataclass(frozen=True)
class Gate:
    """One check of one policy.

    ``figure`` is compared with ``threshold``, and ``state`` is the result: "open", "closed", "untested" (the log does
    not hold what the test needs) or "not needed" (the estimate does not rest on it). ``finding`` says what is wrong
    where the gate is closed, and why it was not tested where it is untested; ``advice`` says what would open it.
    ``more`` is how many more recalls like these would open it: 0 unless it is closed, None where more recalls alone
    would not.
    """

    name: str
    figure: float
    threshold: str
    state: GateState
    finding: str
    advice: str
    more: int | None = None

    @property
    def open(self) -> bool:
        """Whether the check was made and passed. False for an untested gate."""
        return self.state == "open"

    @property
    def closed(self) -> bool:
        """Whether the check was made and failed, which withholds the value."""
        return self.state == "closed"

    @property
    def untested(self) -> bool:
        """Whether the log does not hold what the check needs."""
        return self.state == "untested"

    @property
    def shown(self) -> str:
        """The figure as people read it; the state where there is none."""
        if math.isnan(self.figure):
            return "-" if self.closed or self.open else self.state
        if self.name in _TESTS:
            return f"p {self.figure:.3f}" if self.figure >= _ODDS else "p < .001"
        return share(self.figure) if self.name == "propensities" else f"{self.figure:,.0f}"

    def __str__(self) -> str:
        return f"{self.finding} {self.advice}".rstrip()


ONE_CLUSTER = Gate(
    "clusters", 1, "at least 2", "closed", "Labels of one cluster say nothing about the next.", ""
)
"""The gate of policies that are judged by labels."""


@dataclass(frozen=True)
class Facts:
    """What the gates of one policy ask about. Figures are NaN where the log does not hold what the test needs, and None
    where no test is needed.

    ``unknown`` is the share of its items that were shown with an unknown probability; ``probes`` counts the answered
    probes in the symmetric difference, None where that holds nothing left to chance; ``effective`` is how many recalls
    carry the difference.
    """

    unknown: float
    clusters: int
    recalls: int
    balance: float | None
    silence: float | None
    probes: float | None = None
    effective: float | None = None
    independence: float | None = None
    position: float | None = None
    redundancy: float | None = None


def gates(facts: Facts) -> tuple[Gate, ...]:
    """The gates of one policy."""
    found = [
        Gate(
            "propensities",
            facts.unknown,
            "none",
            _state(facts.unknown == 0),
            f"{share(facts.unknown)} of what this policy would show was shown with an unknown probability; the limit "
            "is 0%.",
            "Log the probability with which each item was shown; a lab does. Without it no estimate is possible.",
        ),
        Gate(
            "clusters",
            facts.clusters,
            "at least 2",
            _state(facts.clusters >= 2),
            f"{facts.clusters} cluster{'' if facts.clusters == 1 else 's'}; at least 2 are needed.",
            'Name what is independent: cluster="session" or "day", or a column cluster of the decisions.',
        ),
        _tested(
            "independence",
            facts.independence,
            "Recalls that are near in time earn alike, and each counts as a cluster of its own",
            'Name what they share (a user, a project, a session) in the column cluster, or say cluster="day".',
        ),
        _tested(
            "balance",
            facts.balance,
            "What was shown does not agree with the logged propensities",
            "They are not those with which items were drawn: no weight can be trusted. Mend the logging.",
        ),
        _probes(facts),
        _influence(facts),
        _tested(
            "silence",
            facts.silence,
            "Whether an item was answered follows its features",
            'To leave silence out would be wrong. Choose missing="inverse" (answers depend on the features alone), '
            '"bounds" (nothing assumed), or "zero" (silence means no).',
        ),
        _tested(
            "position",
            facts.position,
            "Rewards follow the position in which an item was shown",
            "An item would earn another reward elsewhere. Show probes at random places, and evaluate with "
            "position=True.",
        ),
        _tested(
            "redundancy",
            facts.redundancy,
            "The reward of an item depends on what else was shown",
            'Sums over items mislead: compare whole slates, lab.challenge(pack, design="ab").',
        ),
    ]
    return tuple(gate if gate.closed else replace(gate, more=0) for gate in found)


def _state(passed: bool) -> GateState:
    return "open" if passed else "closed"


_NOT_TESTED = {
    "independence": (
        "Whether recalls that are near in time earn alike was not tested: each counts as a cluster of its own, and the "
        "log has no times (column at), or fewer than 30 recalls.",
        "Give the decisions a column at, or name what recalls share in the column cluster.",
    ),
    "balance": (
        "Whether what was shown agrees with the logged propensities was not tested: fewer than 30 recalls, or too few "
        "of them, left something to chance.",
        "Log more recalls with probes.",
    ),
    "influence": (
        "Whether a few recalls decide was not tested: all of them say the same.",
        "",
    ),
    "silence": (
        "Whether an item was answered follows its features was not tested: fewer than 30 items were shown, or too few "
        "were answered.",
        "",
    ),
    "position": (
        "Whether rewards follow the position in which an item was shown was not tested: the log has no score by which "
        "it ranked, no positions, or fewer than 30 rewards.",
        "Name the column of scores that ranked the log (score=), and log the position of each item.",
    ),
    "redundancy": (
        "Whether the reward of an item depends on what else was shown was not tested: the log has no score by which it "
        "ranked, or fewer than 30 recalls with two rewards.",
        "Name the column of scores that ranked the log (score=).",
    ),
}
"""Of each gate that can be untested: why, and what would test it."""


def _unasked(name: str, figure: float | None, threshold: str) -> Gate:
    """A gate without a figure: not needed if it is None, untested if it is NaN."""
    if figure is None:
        return Gate(name, math.nan, threshold, "not needed", "", "")
    return Gate(name, math.nan, threshold, "untested", *_NOT_TESTED[name])


def _tested(name: str, p: float | None, finding: str, advice: str) -> Gate:
    minimum = _ALIKE if name == "independence" else _ODDS
    threshold = f"p at least {minimum:g}"
    if p is None or math.isnan(p):
        return _unasked(name, p, threshold)
    figure = f" (p {p:.1g}; at least {minimum:g} is needed)"
    return Gate(name, p, threshold, _state(p >= minimum), f"{finding}{figure}.", advice)


def _influence(facts: Facts) -> Gate:
    count, threshold = facts.effective, f"at least {_EFFECTIVE:g}"
    if count is None or math.isnan(count):
        return _unasked("influence", count, threshold)
    return Gate(
        "influence",
        count,
        threshold,
        _state(count >= _EFFECTIVE),
        f"{count:.1f} recalls carry the difference; at least {_EFFECTIVE:g} are needed.",
        "A few rare probes decide. More recalls help, and probes where the policies differ: lab.challenge.",
        math.ceil(facts.recalls * (_EFFECTIVE / count - 1)) if count > 0 else None,
    )


def _probes(facts: Facts) -> Gate:
    count, threshold = facts.probes, f"at least {ENOUGH}"
    if count is None:
        return _unasked("answered probes", count, threshold)
    more = math.ceil(facts.recalls * (ENOUGH / count - 1)) if count > 0 else None
    advice = "Nothing of it that was left to chance was shown and answered: lab.challenge shows it."
    if more is not None:
        advice = f"About {rounded(more)} more recalls at this probe rate would do; lab.challenge needs far fewer."
    return Gate(
        "answered probes",
        count,
        threshold,
        _state(count >= ENOUGH),
        f"{count:.0f} answered probes tell the two policies apart; at least {ENOUGH} are needed.",
        advice,
        more,
    )


def untested_sentence(gates: Sequence[Gate]) -> str:
    """Name the untested gates in a sentence; "" where every gate that is needed was tested.

    >>> untested_sentence([Gate("position", math.nan, "p at least .001", "untested", "", "")])
    'Untested: position.'
    """
    names = list(dict.fromkeys(gate.name for gate in gates if gate.untested))
    if not names:
        return ""
    return f"Untested: {list_names(names)}."


def list_names(names: Sequence[str]) -> str:
    """Join names for a sentence.

    >>> list_names(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def effective_count(influence: Floats) -> float:
    """How many equal parts would be as uneven as these: (sum x^2)^2 / sum x^4; NaN where nothing moves.

    >>> effective_count(np.array([1.0, -1.0, 1.0, -1.0]))
    4.0
    """
    squares = influence**2
    fourth = float((squares**2).sum())
    return float(squares.sum() ** 2 / fourth) if fourth > 0 else math.nan


def recalls_to_open(gates: Sequence[Gate]) -> int | None:
    """How many more recalls like these would open them all; None where more recalls alone would not.

    >>> recalls_to_open([])
    0
    """
    more = [gate.more for gate in gates]
    return None if None in more else max((count for count in more if count is not None), default=0)


def share(value: float) -> str:
    """A share in per cent, as people read it; with one decimal below 10%."""
    if math.isnan(value):
        return "-"
    return f"{value:.0%}" if value >= 0.1 or value == 0 else f"{value:.1%}"


def rounded(count: float) -> str:
    """Two digits: more would promise what an extrapolation cannot keep."""
    if count < 100:
        return str(max(1, math.ceil(count)))
    size = 10 ** (math.floor(math.log10(count)) - 1)
    return f"{math.ceil(count / size) * size:,}"


# Tests of what an estimate takes for granted: each gives a p-value, or NaN where there is nothing to test.
#
# - *balance*: what was certain was shown. With the right propensities, what was shown less what was expected is noise,
# whatever it is summed with (the rank, the score, membership of a policy's head). Draws of different recalls are
# independent by design, so the covariance is that of recalls, and Hotelling's statistic holds for few of them. A
# propensity given the threshold of a draw is itself drawn: only shown / propensity has a known mean, and its weight
# must not come from the same draw. Where whole heads are shown, each is counted against its probability.
# - *independence*: what recalls earn, in order of time, does not resemble what the next one earns, nor the next ten.
# - *silence*: rewards may be left out where they are missing at random; whether an item was answered must then not
#   follow
# what is known of it.
# - *position*: at the same score, an item shown further up must not earn more. Where places are random, ``_position``
# asks that without the score.
# - *redundancy*: where rewards add up, those of one recall move apart by chance, or together by its mood. If they move
# against each other, one item makes another one worthless.


_LEAST = 30
"""Recalls, or items, below which nothing is tested."""
_BINS = 20
_LAGS = 10
"""So many recalls before each are looked at together. Of logs of forty users of Pareto sizes who are not named, the
recall before alone lets .16 pass, both looks .03: those of which one user asked nearly all."""
_ROUNDING = 0.01
"""The share of what chance would leave that is taken for rounding."""


class Balance:
    """Of the logged propensities, over the n candidates that were left to chance, recall by recall.

    ``fixed`` f64[n, k] is held against what was shown in every test. ``weight`` f64[n] multiplies
    shown / propensity - 1, and was fixed before the draw: the propensity unless given.
    """

    def __init__(
        self,
        fixed: Floats,
        shown: Flags,
        propensity: Floats,
        recall: Ints,
        weight: Floats | None = None,
    ) -> None:
        self._moved = shown - propensity if weight is None else weight * (shown / propensity - 1.0)
        self._recall = recall
        self._fixed = self._summed(fixed)

    def _summed(self, features: Floats) -> tuple[Floats, Floats]:
        moved = self._moved[:, None] * features
        return by_recall(moved, self._recall), (moved**2).sum(axis=0)

    def p(self, more: Floats) -> float:
        """The p-value, ``more`` f64[n, k] held against what was shown as well."""
        parts = self._fixed, self._summed(more)
        sums, squares = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        # where each recall shows as many probes as expected, their number leaves nothing but what the propensities were
        # rounded by; a constant that is more than that is no chance
        alone = np.sqrt(squares / len(sums))
        nothing = np.sqrt((sums**2).mean(axis=0)) <= _ROUNDING * alone
        if len(sums) >= _LEAST and (~nothing & (sums.std(axis=0) <= 1e-5 * alone)).any():
            return 0.0
        return hotelling_p(np.where(nothing, 0.0, sums))


def arms_p(shown: Flags, share: Floats) -> float:
    """Of the probabilities with which whole heads were shown: ``shown`` and ``share`` are [recalls, heads]."""
    count, error = (shown - share).sum(axis=0), np.sqrt((share * (1 - share)).sum(axis=0))
    if len(share) < _LEAST or not error.any():
        return np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.where(error > 0, np.abs(count) / error, np.where(count != 0, np.inf, 0.0))
    return float(min(1.0, share.shape[1] * 2 * ndtr(-float(off.max()))))


def independence_p(earned: Floats) -> float:
    """Of recalls that earn independently of those before; ``earned`` is f64[recalls] in order of time."""
    count = len(earned)
    centred = earned - earned.mean()
    spread = float((centred**2).sum())
    if count < _LEAST or spread == 0:
        return np.nan
    # one-sided: autocorrelations of independent values are normal around -1/n with variance 1/n, and independent
    each = []
    for lags in (1, min(_LAGS, count // _LAGS)):
        total = (
            sum(float((centred[lag:] * centred[:-lag]).sum()) for lag in range(1, lags + 1))
            / spread
        )
        each.append(float(ndtr(-(total + lags / count) * math.sqrt(count / lags))))
    return min(1.0, 2 * min(each))


def silence_p(features: Floats, answered: Flags, recall: Ints) -> float:
    """Of silence that does not follow the features, f64[n, k], over the items that were shown."""
    if answered.all() or len(answered) < _LEAST:
        return np.nan
    sums = by_recall(
        (answered - answered.mean())[:, None] * (features - features.mean(axis=0)), recall
    )
    return hotelling_p(sums)


def position_p(score: Floats, position: Ints, reward: Floats, recall: Ints) -> float:
    """Of rewards that do not follow the position (from 1), given the score, over the items with a reward."""
    if len(reward) < _LEAST or np.ptp(position) == 0:
        return np.nan
    strata = _strata(score)
    place = np.log(position.astype(np.float64))
    place, residual = place - _means(place, strata), reward - _means(reward, strata)
    return hotelling_p(by_recall((place * residual)[:, None], recall))


def redundancy_p(score: Floats, reward: Floats, recall: Ints) -> float:
    """Of rewards that do not move against each other within a recall, given the score; one-sided."""
    if len(reward) < _LEAST:
        return np.nan
    residual = reward - _means(reward, _strata(score))
    groups = np.unique(recall, return_inverse=True)[1]
    total = np.bincount(groups, weights=residual)
    pairs = (total**2 - np.bincount(groups, weights=residual**2)) / 2
    if len(pairs) < _LEAST or not pairs.any():
        return np.nan
    error = pairs.std(ddof=1) / np.sqrt(len(pairs))
    return float(stdtr(len(pairs) - 1, pairs.mean() / error)) if error > 0 else np.nan


def by_recall(values: Floats, recall: Ints) -> Floats:
    """f64[recalls, k]: rows f64[n, k] summed in recalls, of which there is one for each number that occurs."""
    if not len(recall):
        return np.zeros((0, values.shape[1]))
    if (recall[1:] < recall[:-1]).any():
        order = np.argsort(recall, kind="stable")
        values, recall = values[order], recall[order]
    first = np.flatnonzero(np.concatenate([[True], recall[1:] != recall[:-1]]))
    return np.asarray(np.add.reduceat(values, first, axis=0))


def _strata(score: Floats) -> Ints:
    """The twentieth of all items in which each one's score lies."""
    edges = np.quantile(score, np.linspace(0, 1, _BINS + 1)[1:-1])
    return np.searchsorted(edges, score, side="right")


def _means(values: Floats, strata: Ints) -> Floats:
    counts = np.maximum(np.bincount(strata, minlength=_BINS), 1)
    return np.asarray((np.bincount(strata, weights=values, minlength=_BINS) / counts)[strata])


def hotelling_p(sums: Floats) -> float:
    """The p-value of a mean of zero, from independent rows f64[n, k]; columns that repeat others are left out."""
    count = len(sums)
    if count < _LEAST:
        return np.nan
    covariance = np.atleast_2d(np.cov(sums, rowvar=False))
    scale = np.sqrt(np.diag(covariance))
    kept = scale > 1e-12
    if not kept.any():
        return np.nan
    correlation = covariance[np.ix_(kept, kept)] / np.outer(scale[kept], scale[kept])
    values, vectors = np.linalg.eigh(correlation)
    firm = values > 1e-6
    rank = int(firm.sum())
    mean = (sums.mean(axis=0)[kept] / scale[kept]) @ vectors[:, firm]
    squared = count * float((mean**2 / values[firm]).sum())
    if count <= rank:
        return np.nan
    return float(fdtrc(rank, count - rank, squared * (count - rank) / (rank * (count - 1))))
