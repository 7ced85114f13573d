"""Exact neighbours: integer vectors in a memory-mapped base and a delta that grows.

Components are integers -127..127 held as f32. Every partial sum of a dot product of up to 1,040 of them is an
integer below 2**24, so the product is the same whatever BLAS, batch, filter or order computes it. Longer vectors
are multiplied in slices whose sums are added in f64. A cosine is ``dot / sqrt(square * square)`` in f64: exactly 1
for equal vectors, never beyond -1..1, and 0 with a zero vector.

Measured with 256 dimensions on one core: the exact top 100 of 10,000 rows in 0.3 ms, of 100,000 in 6 ms.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.errors import DamagedLab, InputError
from memlab.index._select import best

__all__ = ["Vectors", "View"]

EXACT_DIM = 1040
"""The longest slice whose f32 dot product is exact: 1040 * 127 * 127 < 2**24."""

_LEAST_CACHED = 4096

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
Matrix = NDArray[np.float32]


class Approximate(Protocol):
    """An index over a prefix of the rows that proposes neighbours; the caller scores them exactly."""

    dim: int

    def __len__(self) -> int: ...
    def candidates(self, query: NDArray[Any], n: int) -> NDArray[np.int64]: ...


@dataclass(frozen=True)
class View:
    """Some rows of the vectors in one contiguous matrix: ``matrix[i]`` is row ``rows[i]``, rows ascending."""

    rows: Rows
    matrix: Matrix
    squares: Scores


class _Grown:
    """Rows, their vectors and squared norms, in buffers that double; what was handed out never changes."""

    def __init__(self, dim: int) -> None:
        self.size = 0
        self._rows: Rows = np.empty(0, dtype=np.int64)
        self._matrix: Matrix = np.empty((0, dim), dtype=np.float32)
        self._squares: Scores = np.empty(0)

    @property
    def view(self) -> View:
        size = self.size
        return View(_read_only(self._rows[:size]), _read_only(self._matrix[:size]), _read_only(self._squares[:size]))

    def append(self, rows: Rows, matrix: NDArray[Any], squares: Scores) -> None:
        needed = self.size + len(rows)
        if needed > len(self._rows):
            # the first block is taken as it comes: most views and bases never grow
            room = max(needed, 2 * len(self._rows))
            self._rows = _with_room(self._rows, room)
            self._matrix = _with_room(self._matrix, room)
            self._squares = _with_room(self._squares, room)
        self._rows[self.size : needed] = rows
        self._matrix[self.size : needed] = matrix
        self._squares[self.size : needed] = squares
        self.size = needed


class Vectors:
    """``len(vectors)`` rows of ``dim`` integers -127..127, appended and never changed.

    ``top`` is exact up to ``annoy_above`` rows, and with a filter always. Beyond, it uses an Annoy base if one was
    given to ``attach``.

    >>> vectors = Vectors(2)
    >>> vectors.append(np.array([[127, 0], [0, 127], [127, 127]], dtype=np.int8))
    >>> rows, cosine = vectors.top(np.array([127, 1], dtype=np.int8), 2)
    >>> rows.tolist(), cosine.round(3).tolist()
    ([0, 2], [1.0, 0.713])
    """

    def __init__(self, dim: int, *, annoy_above: int = 200_000) -> None:
        if dim < 1:
            raise InputError(f"Vectors have at least one dimension, not {dim}.")
        self.dim, self.annoy_above = dim, annoy_above
        self._base = View(np.empty(0, dtype=np.int64), np.empty((0, dim), dtype=np.float32), np.empty(0))
        self._delta = _Grown(dim)
        self._views: OrderedDict[Hashable, _Grown] = OrderedDict()
        self._lock = Lock()
        self._annoy: Approximate | None = None

    def __len__(self) -> int:
        return len(self._base.rows) + self._delta.size

    def append(self, vectors: NDArray[np.int8]) -> None:
        """Add rows, an int8 matrix (k, dim) of components -127..127; InputError otherwise."""
        vectors = np.asarray(vectors)
        if vectors.dtype != np.int8 or vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise InputError(
                f"Vectors are appended as an int8 matrix (rows, {self.dim}), not {vectors.dtype} {vectors.shape}."
            )
        if not len(vectors):
            return
        if vectors.min() < -127:
            raise InputError(
                f"Row {int(np.argmax(vectors.min(axis=1) < -127))} has a component -128; -127 is the least."
            )
        start = len(self)
        wide = vectors.astype(np.int32)
        squares = np.einsum("ij,ij->i", wide, wide, dtype=np.int64).astype(np.float64)
        self._delta.append(np.arange(start, start + len(vectors)), vectors, squares)

    def take(self, rows: Rows | None = None) -> NDArray[np.int8]:
        """A copy of these rows (all unless given) as an int8 matrix."""
        if rows is None:
            return np.concatenate([self._base.matrix.astype(np.int8), self._delta.view.matrix.astype(np.int8)])
        return self._gather(self._checked(rows))[0].astype(np.int8)

    def similarity(self, query: NDArray[np.int8], rows: Rows | None = None) -> Scores:
        """The cosine of ``query`` (dim,) with each of ``rows`` in the order given, or with every row.

        A matrix of queries (q, dim) gives (q, rows).
        """
        asked, square = self._checked_query(query)
        if rows is not None:
            return _cosine(*self._gather(self._checked(rows)), asked, square)
        delta = self._delta.view
        parts = [
            _cosine(part.matrix, part.squares, asked, square) for part in (self._base, delta) if len(part.rows)
        ] or [np.zeros((*asked.shape[:-1], 0))]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def view(self, key: Hashable, rows: Rows) -> View:
        """The contiguous sub-matrix of ``rows`` (strictly ascending), kept under ``key``.

        The key is only where it is looked up, and may stay the same while rows are added: a kept view serves if its
        rows are equal to ``rows``, is extended if they are its beginning, and is replaced otherwise. All kept views
        together hold at most as many rows as there are vectors (or 4,096); the least recently used go first.
        """
        rows = self._checked(rows)
        with self._lock:
            kept = self._views.get(key)
            if kept is None or not _begins(rows, kept.view.rows):
                kept = _Grown(self.dim)
            if kept.size < len(rows):
                _check_ascending(rows)
                fresh = rows[kept.size :]
                kept.append(fresh, *self._gather(fresh))
            self._views[key] = kept
            self._views.move_to_end(key)
            room = max(len(self), _LEAST_CACHED)
            while len(self._views) > 1 and sum(view.size for view in self._views.values()) > room:
                self._views.popitem(last=False)
            return kept.view

    def top(
        self, query: NDArray[np.int8], n: int, *, rows: Rows | None = None, key: Hashable | None = None
    ) -> tuple[Rows, Scores]:
        """The ``n`` nearest rows and their cosines, by (-cosine, row).

        ``rows`` (strictly ascending) restricts the search; with a ``key`` their sub-matrix is kept for the next
        query. Without ``rows``, beyond ``annoy_above`` and with an attached base, candidates come from Annoy and are
        scored exactly, rows after the base exactly throughout.
        """
        asked, square = self._checked_query(query)
        if asked.ndim != 1:
            raise InputError(f"top takes one query ({self.dim},), not a batch {asked.shape}.")
        if n < 0:
            raise InputError(f"The number of neighbours is at least 0, not {n}.")
        if rows is not None:
            rows = self._checked(rows)
            if key is not None and len(rows) < len(self):
                view = self.view(key, rows)
                return _best(view.rows, _cosine(view.matrix, view.squares, asked, square), n)
            _check_ascending(rows)
            if len(rows) < len(self):
                return _best(rows, _cosine(*self._gather(rows), asked, square), n)
            return _best(None, self.similarity(query), n)
        if self._annoy is not None and len(self) > self.annoy_above:
            near = self._annoy.candidates(query, n)
            rows = np.concatenate([np.sort(near), np.arange(len(self._annoy), len(self))])
            return _best(rows, _cosine(*self._gather(rows), asked, square), n)
        return _best(None, self.similarity(query), n)

    def attach(self, base: Approximate | None) -> None:
        """Use this Annoy base for unfiltered searches beyond ``annoy_above`` rows; None detaches it."""
        if base is not None and (base.dim != self.dim or len(base) > len(self)):
            raise InputError(
                f"An Annoy base of {len(base)} rows of {base.dim} dimensions does not belong to "
                f"{len(self)} rows of {self.dim}."
            )
        self._annoy = base

    # -- on disk ----------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write one file, two arrays in NumPy's format: squared norms (f64), vectors (f32). Replaces it whole."""
        path = Path(path)
        draft = path.with_name(f"{path.name}.draft")
        delta = self._delta.view
        with draft.open("wb") as file:
            _write(file, "<f8", (len(self),), [self._base.squares, delta.squares])
            _write(file, "<f4", (len(self), self.dim), [self._base.matrix, delta.matrix])
        draft.replace(path)

    @classmethod
    def load(cls, path: str | Path, *, annoy_above: int = 200_000) -> Vectors:
        """Map what ``save`` wrote; no vector is read until it is searched. DamagedLab if the file is not whole."""
        path = Path(path)
        try:
            with path.open("rb") as file:
                squares = np.lib.format.read_array(file, allow_pickle=False)
                np.lib.format.read_magic(file)
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
                offset, size = file.tell(), path.stat().st_size
        except (OSError, ValueError, EOFError) as error:
            raise DamagedLab(f"The vectors in {path} cannot be read: {error}") from None
        whole = len(shape) == 2 and squares.shape == shape[:1] and squares.dtype == "<f8" and dtype == "<f4"
        if not whole or fortran or shape[1] < 1 or size != offset + 4 * shape[0] * shape[1]:
            raise DamagedLab(f"{path} does not hold the vectors that its header announces.")
        vectors = cls(int(shape[1]), annoy_above=annoy_above)
        if shape[0]:
            mapped: Matrix = np.memmap(path, dtype="<f4", mode="r", offset=offset, shape=shape).view(np.ndarray)
            vectors._base = View(np.arange(shape[0]), mapped, squares)
        return vectors

    # -- inside -----------------------------------------------------------------------------------------------

    def _checked(self, rows: Rows) -> Rows:
        rows = np.asarray(rows)
        if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
            raise InputError(f"Rows are a vector of integers, not {rows.dtype} {rows.shape}.")
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self)):
            raise InputError(f"Rows lie in 0..{len(self) - 1}, not {int(rows.min())}..{int(rows.max())}.")
        return rows.astype(np.int64, copy=False)

    def _checked_query(self, query: NDArray[Any]) -> tuple[Matrix, Any]:
        query = np.asarray(query)
        if query.dtype != np.int8 or query.ndim not in (1, 2) or query.shape[-1] != self.dim:
            raise InputError(f"A query is an int8 vector ({self.dim},), not {query.dtype} {query.shape}.")
        wide = query.astype(np.int64)
        return query.astype(np.float32), (wide * wide).sum(axis=-1).astype(np.float64)

    def _gather(self, rows: Rows) -> tuple[Matrix, Scores]:
        sealed, delta = len(self._base.rows), self._delta.view
        if not sealed:
            return delta.matrix[rows], delta.squares[rows]
        late = rows >= sealed
        if not late.any():
            return self._base.matrix[rows], self._base.squares[rows]
        matrix, squares = np.empty((len(rows), self.dim), dtype=np.float32), np.empty(len(rows))
        early = ~late
        matrix[early], squares[early] = self._base.matrix[rows[early]], self._base.squares[rows[early]]
        matrix[late], squares[late] = delta.matrix[rows[late] - sealed], delta.squares[rows[late] - sealed]
        return matrix, squares


def _cosine(matrix: Matrix, squares: Scores, query: Matrix, square: Any) -> Scores:
    """Cosines of each row of ``matrix`` (n, dim) with a query (dim,) or queries (q, dim): (n,) or (q, n)."""
    dim = matrix.shape[1]
    if dim <= EXACT_DIM:
        dots = _dots(matrix, query).astype(np.float64)
    else:
        dots = np.zeros((*query.shape[:-1], len(matrix)))
        for start in range(0, dim, EXACT_DIM):
            part = slice(start, start + EXACT_DIM)
            dots += _dots(matrix[:, part], query[..., part])
    norms = np.sqrt(squares * np.asarray(square)[..., None])
    np.divide(dots, norms, out=dots, where=norms > 0)
    return dots


def _dots(matrix: Matrix, query: Matrix) -> Matrix:
    if query.ndim == 1:
        # 4 ms for 100,000 rows; the matrix-vector product takes 10, and waits for its threads on a busy machine
        products: Matrix = np.vecdot(matrix, query)
        return products
    return query @ matrix.T


def _best(rows: Rows | None, scores: Scores, n: int) -> tuple[Rows, Scores]:
    """The ``n`` greatest scores by (-score, row); ``rows`` ascend, None is 0..n-1."""
    kept = best(scores, n)
    return (kept if rows is None else rows[kept]), scores[kept]


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    values.flags.writeable = False
    return values


def _with_room(old: NDArray[Any], room: int) -> NDArray[Any]:
    new = np.empty((room, *old.shape[1:]), dtype=old.dtype)
    new[: len(old)] = old
    return new


def _check_ascending(rows: Rows) -> None:
    if not (rows[1:] > rows[:-1]).all():
        raise InputError("The rows of a search are strictly ascending, so that ties break by row.")


def _begins(rows: Rows, start: Rows) -> bool:
    return len(start) <= len(rows) and bool(np.array_equal(rows[: len(start)], start))


def _write(file: BinaryIO, dtype: str, shape: tuple[int, ...], parts: list[NDArray[Any]]) -> None:
    """One array in NumPy's format from parts that follow one another."""
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for part in parts:
        file.write(np.ascontiguousarray(part, dtype=dtype).data)
