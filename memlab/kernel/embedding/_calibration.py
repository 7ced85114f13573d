"""The shipped model's cosines on the scale of its teacher.

Token vectors that keep half of their common direction rank better, but their cosines crowd: a question and a turn that
have nothing in common stand at .79, where all-MiniLM-L6-v2 says .10. Thresholds and weights written for such an encoder
would let everything pass. ``closeness`` maps a cosine of the shipped model to the one its teacher exceeds as often,
equal quantiles over 578,185 pairs of a question and a turn (``experiments/calibrate_closeness.py``). It is monotone:
no ranking by similarity alone changes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SHIPPED_KNOTS", "Knots", "calibrated"]

Knots = tuple[tuple[float, float], ...]

SHIPPED_KNOTS: Knots = (
    *((-1.0, -1.0), (0.5922, -0.10), (0.6760, -0.05), (0.7295, 0.00), (0.7631, 0.05), (0.7886, 0.10), (0.8085, 0.15)),
    *((0.8255, 0.20), (0.8409, 0.25), (0.8552, 0.30), (0.8685, 0.35), (0.8808, 0.40), (0.8919, 0.45), (0.9016, 0.50)),
    *((0.9107, 0.55), (0.9191, 0.60), (0.9273, 0.65), (0.9354, 0.70), (0.9441, 0.75), (1.0, 1.0)),
)
"""Cosine of the shipped model, cosine of the teacher at the same quantile."""


_TYPICAL, _PER_LOG_WORD = 12.0, 0.126


def evened(closeness: NDArray[np.float64], coverage: NDArray[np.float64], length: NDArray[np.float64]) -> NDArray[Any]:
    """The closeness of the shipped model as a threshold wants it: whatever the length of the text, and words counted.

    The longer a text, the nearer it stands to any question: of turns of 4 words and a question of somebody else's
    conversation one in ten is above .20, of turns of 28 words one above .43. That is taken away, by 0.126 of the
    logarithm of the length (words, stop words left out) over that of a typical turn; and the share of the question's
    rare words that the text holds is added. Of 705 questions of LoCoMo each among ten turns (its evidence and nine
    others), and asked of ten turns of another conversation (``experiments/nearness.py``):

        above .3: evidence found .73 by closeness, .90 so; a turn of the other conversation .20, and .19
        above .4: evidence found .53 by closeness, .83 so; a turn of the other conversation .06, and .05
    """
    longer = _PER_LOG_WORD * np.log(np.maximum(length, 1.0) / _TYPICAL)
    return np.asarray(np.minimum(1.0, closeness + coverage - longer))


def calibrated(cosine: NDArray[np.float64], knots: Knots | None) -> NDArray[np.float64]:
    """``cosine`` between the knots by straight lines; without knots, as it is."""
    if knots is None:
        return cosine
    scale, levels = _axes(knots)
    return np.asarray(np.interp(cosine, scale, levels))


@cache
def _axes(knots: Knots) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    scale, levels = np.array(knots).T
    return np.ascontiguousarray(scale), np.ascontiguousarray(levels)


_PAIR_LEVELS = (-1.0, -0.06, 0.02, 0.19, 0.40, 0.57, 0.66, 1.0)
PAIR_KNOTS: tuple[tuple[float, tuple[float, ...]], ...] = (
    (55.0, _PAIR_LEVELS[1:-1]),
    (70.0, (0.082, 0.223, 0.403, 0.562, 0.682, 0.739)),
    (101.0, (0.178, 0.347, 0.543, 0.691, 0.771, 0.799)),
    (137.0, (0.290, 0.463, 0.621, 0.729, 0.785, 0.808)),
    (186.0, (0.427, 0.584, 0.720, 0.799, 0.837, 0.856)),
    (262.0, (0.609, 0.730, 0.807, 0.854, 0.882, 0.894)),
    (540.0, (0.324, 0.595, 0.798, 0.870, 0.908, 0.921)),
    (858.0, (0.526, 0.689, 0.797, 0.858, 0.888, 0.901)),
    (1120.0, (0.605, 0.741, 0.822, 0.879, 0.906, 0.914)),
    (2394.0, (0.654, 0.791, 0.896, 0.947, 0.971, 0.978)),
)
"""Characters of a pair (geometric mean of both), and the closeness that as many unrelated pairs of that length exceed as
pairs of short statements exceed each of ``_PAIR_LEVELS``; fitted by ``experiments/calibrate_pairs.py``."""


def even_length(closeness: NDArray[np.float64], length: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map the closeness of pairs to that of short statements which as many unrelated pairs exceed.

    Long texts are near one another whatever they say: the median closeness of two messages that have nothing to do with
    each other is .02 at 40 to 60 characters and .75 above 1,000. ``length`` is the geometric mean of the characters of
    both texts. Up to 55 characters nothing changes; -1 and 1 stay as they are.
    """
    lengths = np.log([knot for knot, _ in PAIR_KNOTS])
    table = np.array([(-1.0, *levels, 1.0) for _, levels in PAIR_KNOTS])
    at = np.log(np.maximum(length, 1.0))
    knots = np.stack([np.interp(at, lengths, column) for column in table.T], axis=-1)
    levels = np.array(_PAIR_LEVELS)
    place = np.clip((closeness[:, None] >= knots).sum(axis=1) - 1, 0, len(levels) - 2)
    rows = np.arange(len(closeness))
    low, high = knots[rows, place], knots[rows, place + 1]
    share = np.clip((closeness - low) / np.maximum(high - low, 1e-9), 0.0, 1.0)
    return np.asarray(levels[place] + share * (levels[place + 1] - levels[place]))
