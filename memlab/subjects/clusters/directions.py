"""Where vectors point once what they have in common is taken away, on a grid on which every sum is exact.

Static encoders crowd: the mean cosine of two turns of real conversations is .88, and that of a cluster's centroid with
the nearest other one .98 (median). Without the mean vector (Mu and Viswanath, 2018) these are .0 and .64, and a radius
means something.

Components are multiples of 2**-24. So a dot product of two directions, and the sum of up to 2**29 of them, is exact in
f64: it is the same in any order, batch or BLAS, and f32 holds a component without loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["blocks", "centre_of", "directions", "on_grid"]

Floats = NDArray[np.float64]

_GRID = float(1 << 24)
_BLOCK = 8192
"""Rows at a time: 16 MB of f64 with 256 dimensions."""


def blocks(matrix: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """The matrix in pieces of some thousand rows, each with the number of its first."""
    for start in range(0, len(matrix), _BLOCK):
        yield start, matrix[start : start + _BLOCK]


def directions(vectors: NDArray[Any], centre: NDArray[Any] | None = None) -> Floats:
    """f64[rows, dim]: each vector at length 1, less ``centre``, at length 1 again; zero where nothing is left."""
    unit = _unit(vectors.astype(np.float64))
    if centre is not None:
        away = _unit(unit - centre)
        away[~unit.any(axis=1)] = 0.0  # a zero vector points nowhere, not away from the centre
        unit = away
    return on_grid(unit)


def centre_of(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """f32[dim]: the mean direction of all vectors that are not zero."""
    total, count = np.zeros(vectors.shape[1]), 0
    for _, block in blocks(vectors):
        pointing = directions(block)
        total += pointing.sum(axis=0)
        count += int(pointing.any(axis=1).sum())
    return on_grid(total / max(count, 1)).astype(np.float32)


def on_grid(values: Floats) -> Floats:
    """The nearest multiples of 2**-24."""
    return np.asarray(np.rint(values * _GRID) / _GRID)


def _unit(matrix: Floats) -> Floats:
    length = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
    return np.asarray(np.divide(matrix, length, out=np.zeros_like(matrix), where=length > 1e-9))
