"""Products of matrices of whole numbers, in the calling thread."""

from __future__ import annotations

from math import isqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["products", "products_below"]

F = TypeVar("F", np.float32, np.float64)

_ALONE = 1 << 18
"""Products that OpenBLAS computes in the calling thread. With more it wakes others, which go on spinning when they are
done and for which the caller waits when the machine is busy."""

_COLUMNS = 256


def products(left: NDArray[Any], right: NDArray[F]) -> NDArray[F]:
    """f[n, m]: ``left @ right.T`` of (n, dim) and (m, dim), block by block, in the type of ``right``.

    The sums are those of one product where all numbers are whole and small, in whatever order they are added. A hundred
    rows with one another take .25 ms of processor time; at once 2.1, and 10 ms of waiting on a busy machine.

    >>> products(np.array([[1, 2]], dtype=np.int8), np.array([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[11.0, 2.0]]
    """
    found = np.empty((len(left), len(right)), dtype=right.dtype)
    for first in range(0, len(right), _COLUMNS):
        columns = np.ascontiguousarray(right[first : first + _COLUMNS].T)
        step = _ALONE // max(columns.size, 1) or 1
        for start in range(0, len(left), step):
            block = left[start : start + step].astype(right.dtype, copy=False)
            np.matmul(block, columns, out=found[start : start + step, first : first + _COLUMNS])
    return found


def products_below(matrix: NDArray[F], others: NDArray[F]) -> NDArray[F]:
    """What ``products`` gives for each row and those before it: half the work. The rest is not computed.

    >>> np.tril(products_below(np.eye(2), np.eye(2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    size = len(matrix)
    found = np.zeros((size, size), dtype=matrix.dtype)
    columns = np.ascontiguousarray(others.T)
    room = _ALONE // matrix.shape[1]
    start = 0
    while start < size:
        # as many rows as one thread computes with all up to the last of them: step * (start + step) <= room
        step = max(1, (isqrt(start * start + 4 * room) - start) // 2)
        stop = min(size, start + step)
        np.matmul(matrix[start:stop], columns[:, :stop], out=found[start:stop, :stop])
        start = stop
    return found
