"""Policies side by side: values with intervals, paired differences to a baseline, and how many recalls would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memlab.evaluation._clusters import Estimate, Sample, Statistic, holm
from memlab.evaluation._student import normal_quantile

__all__ = ["Contest", "compare", "recalls_needed"]

Floats = NDArray[np.float64]
_POWER = 0.8


@dataclass(frozen=True)
class Contest:
    """Estimates by policy; ``adjusted`` is Holm's p over all differences that may be ranked. ``needed`` names the two
    best and how many recalls like these would tell them apart four times out of five.
    """

    values: Mapping[str, Estimate]
    differences: Mapping[str, Estimate]
    adjusted: Mapping[str, float]
    needed: tuple[str, str, int] | None


def compare(
    sample: Sample,
    places: Mapping[str, slice],
    statistic: Statistic,
    *,
    baseline: str | None,
    ranked: Sequence[str],
    recalls: int,
) -> Contest:
    """``places`` says in which columns of the sample the totals of each policy stand; ``statistic`` gives its value.

    Differences are to ``baseline``; ``ranked`` are the policies that passed their gates and make up the family.
    """
    values = {name: sample.estimate(_of(statistic, place)) for name, place in places.items()}
    differences = {}
    if baseline is not None and baseline in places:
        base = places[baseline]
        differences = {
            name: sample.estimate(_minus(statistic, place, base)) for name, place in places.items() if name != baseline
        }
    family = [name for name in differences if name in ranked and baseline in ranked]
    adjusted = dict(zip(family, holm([differences[name].p for name in family]), strict=True))
    best = sorted((name for name in ranked if not np.isnan(values[name].value)), key=lambda name: -values[name].value)
    needed = None
    if len(best) > 1:
        gap = sample.estimate(_minus(statistic, places[best[0]], places[best[1]]))
        count = recalls_needed(gap, recalls, sample.level)
        needed = None if count is None else (best[0], best[1], count)
    return Contest(values, differences, adjusted, needed)


def recalls_needed(gap: Estimate, recalls: int, level: float) -> int | None:
    """How many recalls like these would find ``gap`` with a power of .8; none if it is 0 or has no error."""
    if not gap.value or np.isnan(gap.error):
        return None
    reach = normal_quantile((1 + level) / 2) + normal_quantile(_POWER)
    return int(np.ceil(recalls * (reach * gap.error / gap.value) ** 2))


def _of(statistic: Statistic, place: slice) -> Statistic:
    return lambda totals: statistic(totals[..., place])


def _minus(statistic: Statistic, first: slice, second: slice) -> Statistic:
    return lambda totals: statistic(totals[..., first]) - statistic(totals[..., second])
