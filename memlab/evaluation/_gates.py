"""When a figure must not be used to rank policies: each gate has a figure, a threshold, and what would help."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from memlab.evaluation._weights import Weights

__all__ = [
    "GATES",
    "ONE_CLUSTER",
    "Gate",
    "bounded_only",
    "explored_share",
    "gates",
    "recalls_to_open",
    "rounded",
    "share",
]

GATES: dict[str, str] = {
    "propensities": "every item that counts was shown with a known probability",
    "exploration": "some recalls left something to chance, unless the policy shows what was shown",
    "clusters": "at least 2 clusters",
    "effective sample": "an effective sample of at least 100 items",
    "effective share": "and of at least 1% of what was shown",
    "mean weight": "weights that average 0.9 to 1.1: the propensities are what they say",
    "weight tail": "the heaviest 1% of the items hold at most 50% of the weight",
    "support": "at most 10% of what the policy would show could never have been shown",
    "silence": "at most 50% of shown items have no feedback",
}
"""Every gate for feedback, with what it asks for. Labels need clusters only."""

_COUNTS = ("clusters", "effective sample")
_OF_WEIGHTS = ("effective sample", "effective share", "mean weight", "weight tail")
_EFFECTIVE, _SHARE, _DRIFT, _TOP, _UNSUPPORTED, _SILENT = 100, 0.01, 0.1, 0.5, 0.1, 0.5
# Unsupported: what could not be shown tends to earn less, so the self-normalised value leans upward. On questions of
# real conversations a policy with 19% of it came out .15 too high (.82 for .68), and in a simulated life 10% made .09.


@dataclass(frozen=True)
class Gate:
    """One check of one policy.

    ``figure`` is held against ``threshold``; ``finding`` says what is wrong where it is closed, ``advice`` what
    would open it; ``more`` is how many more recalls like these would: 0 where it is open, None where more recalls alone
    would not.
    """

    name: str
    figure: float
    threshold: str
    open: bool
    finding: str
    advice: str
    more: int | None = None

    @property
    def shown(self) -> str:
        """The figure as people read it."""
        if math.isnan(self.figure):
            return "-"
        if self.name in _COUNTS:
            return f"{self.figure:,.0f}"
        if self.name == "mean weight":
            return f"{self.figure:.2f}"
        return share(self.figure)

    def __str__(self) -> str:
        return f"{self.finding} {self.advice}".rstrip()


ONE_CLUSTER = Gate("clusters", 1, "at least 2", False, "Labels of one cluster say nothing about the next.", "")
"""The gate of policies that are judged by labels."""


def gates(
    weights: Weights,
    *,
    unknown: float,
    unsupported: float,
    silent: float,
    explored: float,
    clusters: int,
    recalls: int,
) -> tuple[Gate, ...]:
    """The gates of one policy. Shares are of its items (``unknown`` propensity, ``unsupported``) and of what the log
    shows (``silent``); ``explored`` is the share of recalls that left something to chance. Where nothing of the policy
    could have been shown there are no weights, and no gates for them.
    """
    found: tuple[Gate, ...] = (
        Gate(
            "propensities",
            unknown,
            "none",
            unknown == 0,
            f"{share(unknown)} of what this policy would show was shown with an unknown probability; the limit is 0%.",
            "Log the probability with which each item was shown; a lab does. Without it no estimate is possible.",
        ),
        Gate(
            "exploration",
            explored,
            "more than none",
            explored > 0 or unsupported == 0,
            "No exploration: this log is deterministic, and holds nothing about what was not shown.",
            "Log with probes ((setting probe-rate 0.1) in the pack), or compare by labels; the model's value is an "
            "extrapolation.",
        ),
        Gate(
            "clusters",
            clusters,
            "at least 2",
            clusters >= 2,
            f"{clusters} cluster{'' if clusters == 1 else 's'}; at least 2 are needed.",
            "Name what is independent in the column cluster, and log more of it.",
        ),
        Gate(
            "effective share",
            weights.effective_share,
            f"at least {_SHARE:.0%}",
            weights.effective_share >= _SHARE,
            f"The effective sample is {share(weights.effective_share)} of what was shown; at least {_SHARE:.0%} is "
            "needed.",
            "More recalls leave it as it is: increase `probe-rate` or `probe-floor`, or probe where this policy looks.",
        ),
        Gate(
            "weight tail",
            weights.top_share,
            f"at most {_TOP:.0%}",
            weights.top_share <= _TOP,
            f"The heaviest 1% of the items hold {share(weights.top_share)} of the weight; the limit is {_TOP:.0%}.",
            f"A few rare probes carry the figure: one stands for {weights.largest:,.0f} items. More recalls leave that "
            "as it is; a greater `probe-floor` makes each weigh less.",
        ),
        Gate(
            "support",
            unsupported,
            f"at most {_UNSUPPORTED:.0%}",
            unsupported <= _UNSUPPORTED,
            f"Unsupported: {share(unsupported)} of what this policy would show could never have been shown; the limit "
            f"is {_UNSUPPORTED:.0%}.",
            "Only the bounds can settle this. For a later log, increase `probe-depth`, or use a pack that is nearer to "
            "this policy.",
        ),
        Gate(
            "silence",
            silent,
            f"at most {_SILENT:.0%}",
            silent <= _SILENT,
            f"{share(silent)} of shown items have no feedback (limit {_SILENT:.0%}).",
            'If silence means no, say so: horizon="7d", missing="zero". Otherwise ask for feedback on another '
            f"{share(max(silent - _SILENT, 0.0))} of them.",
        ),
    )
    alone = all(gate.open for gate in found)
    found += (_sample(weights, recalls, alone), _drift(weights, recalls, alone))
    order = list(GATES)
    kept = [gate for gate in found if unsupported < 1 or gate.name not in _OF_WEIGHTS]
    return tuple(
        replace(gate, more=0) if gate.open else gate for gate in sorted(kept, key=lambda one: order.index(one.name))
    )


_OTHERS_FIRST = "More recalls alone will not do: the other reasons come first."


def _sample(weights: Weights, recalls: int, alone: bool) -> Gate:
    """``alone``: whether nothing is in the way that more recalls would leave as it is."""
    more = math.ceil(recalls * (_EFFECTIVE / weights.effective - 1)) if weights.effective else None
    advice = "Nothing that the policy would show was shown and answered."
    if more is not None:
        advice = f"About {rounded(more)} more recalls at this probe rate would reach it." if alone else _OTHERS_FIRST
    return Gate(
        "effective sample",
        weights.effective,
        f"at least {_EFFECTIVE}",
        weights.effective >= _EFFECTIVE,
        f"The effective sample is {weights.effective:,.0f} items; at least {_EFFECTIVE} are needed.",
        advice,
        more if alone else None,
    )


def _drift(weights: Weights, recalls: int, alone: bool) -> Gate:
    """Chance makes the mean weight differ from 1 by an amount that falls with the root of the number of recalls."""
    drift = abs(weights.mean - 1.0)
    more = math.ceil(recalls * ((drift / _DRIFT) ** 2 - 1)) if drift > _DRIFT else None
    advice = "Either the logged propensities are wrong, or there are too few probes for their weights to average out"
    if more is not None and alone:
        advice += f": if they are right, about {rounded(more)} more recalls at this probe rate would do"
    return Gate(
        "mean weight",
        weights.mean,
        f"{1 - _DRIFT:g} to {1 + _DRIFT:g}",
        bool(drift <= _DRIFT),
        f"{'No weight is known' if math.isnan(weights.mean) else f'Weights average {weights.mean:.2f}'}; expected "
        f"{1 - _DRIFT:g}-{1 + _DRIFT:g}.",
        f"{advice}.",
        more if alone else None,
    )


def recalls_to_open(gates: Sequence[Gate]) -> int | None:
    """How many more recalls like these would open them all; None where more recalls alone would not.

    >>> recalls_to_open([])
    0
    """
    more = [gate.more for gate in gates]
    return None if None in more else max((count for count in more if count is not None), default=0)


def bounded_only(gates: tuple[Gate, ...]) -> bool:
    """Whether lack of support is all that speaks against the figure, so that its bounds may still decide."""
    closed = {gate.name for gate in gates if not gate.open}
    return bool(closed) and closed <= {"support", "exploration"}


def explored_share(propensity: NDArray[np.float64], recall: NDArray[np.int64], recalls: int) -> float:
    """The share of recalls that left something to chance."""
    chance = (propensity > 0) & (propensity < 1)
    return len(np.unique(recall[chance])) / recalls


def share(value: float) -> str:
    """A share in per cent, as people read it; with one decimal below 10%."""
    return f"{value:.0%}" if value >= 0.1 or value == 0 else f"{value:.1%}"


def rounded(count: float) -> str:
    """Two digits: more would promise what an extrapolation cannot keep."""
    if count < 100:
        return str(max(1, math.ceil(count)))
    size = 10 ** (math.floor(math.log10(count)) - 1)
    return f"{math.ceil(count / size) * size:,}"
