"""Large arrays of zeros that are lent and reused, and arrays that grow.

An array for a million rows that is new costs a page fault for each 4 KB touched, a millisecond for a thousand rows all
over it; one that is kept costs nothing. So whoever borrows puts back the zeros, and touches no more than it must.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["enlarge", "zeros"]

_SMALL = 4096
_MAX_FREE = 4

_local = threading.local()


@contextmanager
def zeros(size: int, dtype: type[np.generic]) -> Iterator[NDArray[Any]]:
    """An array of ``size`` zeros for the block, which leaves it all zeros.

    Each thread has its own, and a block within a block gets another. Where the block raises, its array is dropped.

    >>> with zeros(10_000, np.int64) as counts:
    ...     counts[[7, 7_000]] = 1
    ...     counts[[7, 7_000]] = 0
    """
    if size <= _SMALL:
        yield np.zeros(size, dtype=dtype)
        return
    free: dict[type[np.generic], list[NDArray[Any]]] = _local.__dict__.setdefault("free", {})
    arrays = free.setdefault(dtype, [])
    found = arrays.pop() if arrays else np.zeros(0, dtype=dtype)
    if len(found) < size:
        found = np.zeros(size + size // 4, dtype=dtype)
    yield found[:size]
    if len(arrays) < _MAX_FREE:
        arrays.append(found)


def enlarge(array: NDArray[Any], size: int, needed: int) -> NDArray[Any]:
    """Return an array with room for ``needed`` rows that begins with the first ``size`` rows of ``array``.

    Returns ``array`` itself where it is long enough, and otherwise a copy of at least twice its length, so that
    appending rows one by one takes amortised constant time.

    >>> len(enlarge(np.zeros((4, 2)), 3, 4)), len(enlarge(np.zeros((4, 2)), 4, 5))
    (4, 8)
    """
    if needed <= len(array):
        return array
    longer = np.empty((max(needed, 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
    longer[:size] = array[:size]
    return longer
