"""Where to draw bubbles: close together, none over another, those that belong together side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["packed"]

Floats = NDArray[np.float64]


def packed(radii: Floats, links: Floats, *, gap: float) -> Floats:
    """f64[n, 2]: centres of circles of these radii, at least ``gap`` apart.

    The first lies at the origin. Each of the others goes where it touches two that lie already, and of such places
    to the one nearest to those it is linked to (by the weights ``links[n, n]``) and to the middle. It takes
    n**4 / 2 comparisons: for some dozens.
    """
    count = len(radii)
    centres = np.zeros((count, 2))
    for one in range(1, count):
        lying, reach = centres[:one], radii[:one] + radii[one] + gap
        places = _touching(lying, reach)
        apart = np.linalg.norm(places[:, None, :] - lying[None, :, :], axis=2)
        free = places[(apart >= reach - 1e-9).all(axis=1)]
        weight = links[one, :one]
        total = weight.sum()
        middle = np.average(lying, axis=0, weights=radii[:one] ** 2)
        wanted = (weight @ lying / total + middle) / 2 if total > 0 else middle
        # rounded, so that what is equally near is ordered by its place in the list and not by the last bit
        centres[one] = free[np.argmin(np.linalg.norm(free - wanted, axis=1).round(6))]
    return centres - (centres.min(axis=0) + centres.max(axis=0)) / 2 if count else centres


def _touching(centres: Floats, reach: Floats) -> Floats:
    """All points at distance ``reach[i]`` of ``centres[i]`` for two of them at once, and beside each of them."""
    beside = np.concatenate([centres + reach[:, None] * side for side in ((1, 0), (-1, 0), (0, 1), (0, -1))])
    first, second = np.triu_indices(len(centres), 1)
    between = centres[second] - centres[first]
    distance = np.linalg.norm(between, axis=1)
    along = (distance**2 + reach[first] ** 2 - reach[second] ** 2) / (2 * distance)
    height = reach[first] ** 2 - along**2
    meet = height >= 0
    unit = between[meet] / distance[meet, None]
    foot = centres[first[meet]] + along[meet, None] * unit
    across = np.sqrt(height[meet])[:, None] * np.stack([-unit[:, 1], unit[:, 0]], axis=1)
    return np.concatenate([beside, foot + across, foot - across])
