"""When a figure must not be used to rank policies: each gate has a figure, a threshold, and what would help."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memlab.evaluation._weights import Weights

__all__ = ["GATES", "Gate", "bounded_only", "explored_share", "gates", "rounded"]

GATES: dict[str, str] = {
    "propensities": "every item that counts was shown with a known probability",
    "exploration": "some recalls left something to chance, unless the policy shows what was shown",
    "clusters": "at least 2 clusters",
    "effective sample": "an effective sample of at least 100 items",
    "effective share": "and of at least 1% of what was shown",
    "mean weight": "a mean weight of 1, give or take .1: the propensities are what they say",
    "weight tail": "the heaviest 1% of the items hold at most half of the weight",
    "support": "at most a tenth of what the policy would show could not have been shown",
    "silence": "at most half of what was shown has no known reward",
}
"""Every gate for feedback, with what it asks for. Labels need clusters only."""

_COUNTS = ("clusters", "effective sample")
_OF_WEIGHTS = ("effective sample", "effective share", "mean weight", "weight tail")
_EFFECTIVE, _SHARE, _DRIFT, _TOP, _UNSUPPORTED, _SILENT = 100, 0.01, 0.1, 0.5, 0.1, 0.5
# Unsupported: what could not be shown tends to earn less, so the self-normalised value leans upward. On questions of
# real conversations a policy with 19% of it came out .15 too high (.82 for .68), and in a simulated life 10% made .09.


@dataclass(frozen=True)
class Gate:
    """One check of one policy: ``figure`` against ``threshold``, and in ``advice`` what would open a closed one."""

    name: str
    figure: float
    threshold: str
    open: bool
    advice: str

    @property
    def shown(self) -> str:
        """The figure as people read it."""
        if math.isnan(self.figure):
            return "-"
        if self.name in _COUNTS:
            return f"{self.figure:,.0f}"
        if self.name == "mean weight":
            return f"{self.figure:.2f}"
        return f"{self.figure:.0%}" if self.figure >= 0.1 or self.figure == 0 else f"{self.figure:.1%}"

    def __str__(self) -> str:
        return f"{self.name}: {self.shown}, where {self.threshold} is asked for. {self.advice}".rstrip()


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
    need = _EFFECTIVE / weights.effective if weights.effective else math.inf
    drift = abs(weights.mean - 1.0)
    found = (
        Gate(
            "propensities",
            unknown,
            "none",
            unknown == 0,
            "Log the probability with which each item was shown; a lab does. Without it no estimate is possible.",
        ),
        Gate(
            "exploration",
            explored,
            "more than none",
            explored > 0 or unsupported == 0,
            "This log is deterministic: it holds nothing about what was not shown. Log with probes "
            "((setting probe-rate 0.1) in the pack), or compare by labels; the model's value is an extrapolation.",
        ),
        Gate(
            "clusters",
            clusters,
            "at least 2",
            clusters >= 2,
            "Name what is independent in the column cluster, and log more of it.",
        ),
        Gate(
            "effective sample",
            weights.effective,
            f"at least {_EFFECTIVE}",
            weights.effective >= _EFFECTIVE,
            f"About {rounded(recalls * (need - 1))} more recalls at this probe rate would reach it."
            if math.isfinite(need)
            else "Nothing that the policy would show was shown and answered.",
        ),
        Gate(
            "effective share",
            weights.effective_share,
            f"at least {_SHARE:.0%}",
            weights.effective_share >= _SHARE,
            "More recalls will not help: raise the probe rate or the floor, or probe where this policy looks.",
        ),
        Gate(
            "mean weight",
            weights.mean,
            f"1, give or take {_DRIFT:g},",
            bool(drift <= _DRIFT),
            "Either the logged propensities are wrong, or there are too few probes for their weights to average out.",
        ),
        Gate(
            "weight tail",
            weights.top_share,
            f"at most {_TOP:.0%}",
            weights.top_share <= _TOP,
            "A few rare probes carry the figure: a higher floor on the probe's probability makes each weigh less.",
        ),
        Gate(
            "support",
            unsupported,
            f"at most {_UNSUPPORTED:.0%}",
            unsupported <= _UNSUPPORTED,
            "The bounds decide, or nothing does. Widen the band of ranks that probes are drawn from ((setting "
            "probe-depth ...)), or log with a pack that is nearer to this policy.",
        ),
        Gate(
            "silence",
            silent,
            f"at most {_SILENT:.0%}",
            silent <= _SILENT,
            'If silence means no, say so: horizon="7d", missing="zero". Otherwise ask for feedback on more items.',
        ),
    )
    return tuple(gate for gate in found if unsupported < 1 or gate.name not in _OF_WEIGHTS)


def bounded_only(gates: tuple[Gate, ...]) -> bool:
    """Whether lack of support is all that speaks against the figure, so that its bounds may still decide."""
    closed = {gate.name for gate in gates if not gate.open}
    return bool(closed) and closed <= {"support", "exploration"}


def explored_share(propensity: NDArray[np.float64], recall: NDArray[np.int64], recalls: int) -> float:
    """The share of recalls that left something to chance."""
    chance = (propensity > 0) & (propensity < 1)
    return len(np.unique(recall[chance])) / recalls


def rounded(count: float) -> str:
    """Two digits: more would promise what an extrapolation cannot keep."""
    if count < 100:
        return str(max(1, math.ceil(count)))
    size = 10 ** (math.floor(math.log10(count)) - 1)
    return f"{math.ceil(count / size) * size:,}"
