"""Large arrays of zeros that are reused, arrays that grow, and memory that is returned.

A new array for a million rows costs a page fault for each 4 KB touched, about a millisecond for a thousand scattered
rows. A reused array costs nothing. Borrowers must restore the zeros and should touch few elements.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from memlab.kernel.base.arrays import Values

# Below this size a new array is as fast as a reused one. At most four arrays per thread and type are kept, because
# blocks are rarely nested deeper.
_SMALL = 4096
_MAX_FREE = 4

_local = threading.local()


@contextmanager
def zeros(size: int, dtype: type[np.generic]) -> Iterator[Values]:
    """Yield a reusable array of zeros, which the block must reset to zeros.

    Each thread has its own arrays, and a nested block gets another array. If the block raises, its array is dropped.

    Parameters
    ----------
    size
        Number of elements.
    dtype
        NumPy type of the elements.

    Returns
    -------
    Iterator
        A context manager that yields the array.

    Examples
    --------
    >>> with zeros(10_000, np.int64) as counts:
    ...     counts[[7, 7_000]] = 1
    ...     counts[[7, 7_000]] = 0
    """
    if size <= _SMALL:
        yield np.zeros(size, dtype=dtype)
        return
    free: dict[type[np.generic], list[Values]] = _local.__dict__.setdefault("free", {})
    arrays = free.setdefault(dtype, [])
    array = arrays.pop() if arrays else np.zeros(0, dtype=dtype)
    if len(array) < size:
        array = np.zeros(size + size // 4, dtype=dtype)
    yield array[:size]
    if len(arrays) < _MAX_FREE:
        arrays.append(array)


def enlarge(array: Values, size: int, needed: int) -> Values:
    """Return `array` with room for at least `needed` rows.

    The first `size` rows are kept.

    The result is `array` itself if it is long enough. Otherwise it is a copy of at least twice the length, so that
    appending rows one by one takes amortised constant time.

    >>> len(enlarge(np.zeros((4, 2)), 3, 4)), len(enlarge(np.zeros((4, 2)), 4, 5))
    (4, 8)
    """
    if needed <= len(array):
        return array
    longer = np.empty((max(needed, 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
    longer[:size] = array[:size]
    return longer


def return_memory() -> None:
    """Return this process's freed memory to the operating system.

    glibc keeps the memory that each thread has freed. A server that seals slates in each of its threads would keep the
    peak of all of them, 100 MB each. Other allocators return memory by themselves.

    Examples
    --------
    >>> return_memory()
    """
    # ctypes is imported late, because few processes seal slates.
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
