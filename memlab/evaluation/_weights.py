"""What the weights of an estimate say about it: how few items carry it, and whether the propensities are right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Weights", "weigh"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Weights:
    """``effective`` is Kish's sample size, (sum w)^2 / sum w^2, over the items whose reward is known, and
    ``effective_share`` its share of all items that were shown and whose reward is known. ``mean`` is the weight of what
    was shown over the number of items that could be: 1 if the propensities are right. ``top_share`` is the part that
    the heaviest 1% of the items hold.
    """

    items: int
    effective: float
    effective_share: float
    largest: float
    mean: float
    top_share: float


def weigh(weights: Floats, answered: NDArray[np.bool_], *, supported: float, logged: int) -> Weights:
    """Over the items that a policy would show (f64[n], 0 where not shown): ``answered`` marks those with a reward,
    ``supported`` counts those that could be shown, ``logged`` all items of the log that were shown and answered.
    """
    counted = weights[answered]
    total, squares = float(counted.sum()), float((counted**2).sum())
    effective = total**2 / squares if squares else 0.0
    heaviest = max(1, round(len(counted) / 100))
    top = float(np.partition(counted, -heaviest)[-heaviest:].sum()) if len(counted) else 0.0
    return Weights(
        items=len(counted),
        effective=effective,
        effective_share=effective / logged if logged else 0.0,
        largest=float(counted.max()) if len(counted) else 0.0,
        mean=float(weights.sum()) / supported if supported else float("nan"),
        top_share=top / total if total else 0.0,
    )
