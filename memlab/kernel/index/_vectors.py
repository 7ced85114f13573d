"""The nearest vectors: exact where that is fast, and exactly scored where an index proposes candidates.

Components are integers -127..127. As f32, every partial sum of a dot product of up to 1,040 of them is an integer
below 2**24, so the product is the same whatever BLAS, batch, filter or order computes it. Longer vectors are
multiplied in slices whose sums are added in f64. A cosine is ``dot / sqrt(square * square)`` in f64: exactly 1 for
equal vectors, never beyond -1..1, and 0 with a zero vector.

Measured with 256 dimensions on one core of a busy machine, processor time: the exact top 10 of 10,000 rows in 0.6 ms,
of 100,000 kept as f32 in 6-9 ms, of 1,000,000 converted from int8 block by block in 64 ms.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.errors import DamagedLab, InputError
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.index._arrays import Grown, among, best

__all__ = ["BLOCK", "EXACT_UP_TO", "Approximate", "Stored", "Vectors", "View"]


# Where integer vectors are kept: a memory-mapped file and rows in memory after it, int8 throughout.
#
# int8 takes a quarter of f32, on disk, in memory and of the pages that a search touches; converting blocks on the way
# to the product makes an exact search of 100,000 rows 1.4 times as slow (6.3 ms against 4.6 of processor time).
#
# Rows are appended and never changed, so a prefix is named by a digest: of every whole block, with that of the blocks
# before it. An index says by it which vectors it was built from, and comparing needs no vector to be read.


BLOCK = 4096
"""Rows that are digested together; an index covers whole blocks."""

Rows = NDArray[np.int64]
Squares = NDArray[np.float64]
Components = NDArray[np.int8]


@dataclass(frozen=True)
class _Part:
    """Rows that follow one another: components (n, dim) and squared norms (n,)."""

    matrix: Components
    squares: Squares


class Stored:
    """Rows ``0..len - 1`` of int8 components and their squared norms: mapped ones first, then those in memory."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._mapped = _Part(np.empty((0, dim), dtype=np.int8), np.empty(0))
        self._path: Path | None = None
        self._late = Grown(np.empty((0, dim), dtype=np.int8), np.empty(0))
        self._digests: dict[int, str] = {}
        self.size = 0
        """How many rows there are, in both parts."""

    @property
    def parts(self) -> tuple[_Part, _Part]:
        return self._mapped, _Part(*self._late.columns)

    def append(self, vectors: Components) -> None:
        wide = vectors.astype(np.int32)
        self._late.append(
            vectors, np.einsum("ij,ij->i", wide, wide, dtype=np.int64).astype(np.float64)
        )
        self.size += len(vectors)

    def slice(self, start: int, stop: int) -> tuple[Components, Squares]:
        """Rows ``start..stop - 1``: without a copy unless they lie in both parts."""
        sealed = len(self._mapped.squares)
        if stop <= sealed:
            return self._mapped.matrix[start:stop], self._mapped.squares[start:stop]
        late = self.parts[1]
        if start >= sealed:
            return late.matrix[start - sealed : stop - sealed], late.squares[
                start - sealed : stop - sealed
            ]
        return (
            np.concatenate([self._mapped.matrix[start:], late.matrix[: stop - sealed]]),
            np.concatenate([self._mapped.squares[start:], late.squares[: stop - sealed]]),
        )

    def gather(self, rows: Rows) -> tuple[Components, Squares]:
        """A copy of these rows, in the order given."""
        sealed = len(self._mapped.squares)
        late_matrix, late_squares = self._late.columns
        if not sealed:
            return late_matrix[rows], late_squares[rows]
        beyond = rows >= sealed
        if not beyond.any():
            return self._mapped.matrix[rows], self._mapped.squares[rows]
        matrix, squares = np.empty((len(rows), self.dim), dtype=np.int8), np.empty(len(rows))
        early = ~beyond
        matrix[early], squares[early] = (
            self._mapped.matrix[rows[early]],
            self._mapped.squares[rows[early]],
        )
        matrix[beyond], squares[beyond] = (
            late_matrix[rows[beyond] - sealed],
            late_squares[rows[beyond] - sealed],
        )
        return matrix, squares

    def prefix(self, rows: int) -> Stored:
        """The first ``rows`` rows without a copy; appending here or there does not show in the other."""
        first = Stored(self.dim)
        sealed = len(self._mapped.squares)
        late = self.parts[1]
        first._mapped = _Part(self._mapped.matrix[:rows], self._mapped.squares[:rows])
        first._late = Grown(
            late.matrix[: max(0, rows - sealed)], late.squares[: max(0, rows - sealed)]
        )
        first._path, first.size = self._path, rows
        first._digests = {
            number: digest
            for number, digest in self._digests.copy().items()
            if number < rows // BLOCK
        }
        return first

    # -- whose vectors they are -------------------------------------------------------------------------------

    def digest(self, rows: int, *, rehash: bool = False) -> str:
        """Names the first ``rows`` rows, a whole number of blocks. Each is read once, with ``rehash`` again."""
        if rows % BLOCK or not 0 <= rows <= self.size:
            raise InputError(
                f"A digest covers whole blocks of {BLOCK:,} rows up to {self.size:,}, not {rows:,}."
            )
        known = {} if rehash else self._digests
        digest = ""
        for number in range(rows // BLOCK):
            block = known.get(number)
            if block is None:
                hashed = hashlib.blake2b(f"{self.dim} {digest}".encode(), digest_size=16)
                hashed.update(
                    np.ascontiguousarray(self.slice(number * BLOCK, (number + 1) * BLOCK)[0]).data
                )
                block = known[number] = hashed.hexdigest()
            digest = block
        return digest

    # -- on disk ----------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Three arrays in NumPy's format: digests of blocks, squared norms (f64), vectors (int8). Replaces it whole."""
        draft = path.with_name(f"{path.name}.draft")
        complete = self.size // BLOCK
        self.digest(complete * BLOCK)
        digests = np.frombuffer(
            bytes.fromhex("".join(self._digests[number] for number in range(complete))),
            dtype=np.uint8,
        )
        early, late = self.parts
        with draft.open("wb") as file:
            _write(file, "|u1", (len(digests) // 16, 16), [digests])
            _write(file, "<f8", (self.size,), [early.squares, late.squares])
            _write(file, "|i1", (self.size, self.dim), [early.matrix, late.matrix])
        draft.replace(path)

    def spool(self, path: Path) -> None:
        """These rows in a file of their own, for another process: a second name of the mapped file where that is
        all of them, else a copy. The reader checks ``digest(..., rehash=True)``."""
        if self._path is not None and not self._late.size:
            try:
                os.link(self._path, path)
            except OSError:  # another file system, or the snapshot that was mapped is gone
                self.save(path)
        else:
            self.save(path)

    @classmethod
    def load(cls, path: Path) -> Stored:
        """Map what ``save`` wrote; of the vectors and norms nothing is read. DamagedLab if the file is not whole."""
        try:
            with path.open("rb") as file:
                digests = np.lib.format.read_array(file, allow_pickle=False)
                squares, matrix = _mapped(path, file, "<f8"), _mapped(path, file, "|i1")
                ended = file.tell() == path.stat().st_size
        except (OSError, ValueError, EOFError) as error:
            raise DamagedLab(f"The vectors in {path} cannot be read: {error}") from None
        rows = len(squares)
        right = ended and digests.dtype == np.uint8 and digests.shape == (rows // BLOCK, 16)
        if (
            not right
            or squares.ndim != 1
            or matrix.ndim != 2
            or len(matrix) != rows
            or matrix.shape[1] < 1
        ):
            raise DamagedLab(f"{path} does not hold the vectors that its header announces.")
        stored = cls(matrix.shape[1])
        stored._mapped, stored._path, stored.size = _Part(matrix, squares), path, rows
        stored._digests = {number: row.tobytes().hex() for number, row in enumerate(digests)}
        return stored


def _mapped(path: Path, file: BinaryIO, dtype: str) -> NDArray[Any]:
    """The array at the file's position, mapped; leaves the file at its end."""
    np.lib.format.read_magic(file)
    shape, fortran, found = np.lib.format.read_array_header_1_0(file)
    offset, size = file.tell(), int(np.prod(shape, dtype=np.int64)) * found.itemsize
    if fortran or found != np.dtype(dtype):
        raise ValueError(f"an array of {found}, not {dtype}")
    if offset + size > path.stat().st_size:
        raise ValueError("the file ends early")
    file.seek(offset + size)
    if not size:
        return np.empty(shape, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape).view(np.ndarray)


def _write(file: BinaryIO, dtype: str, shape: tuple[int, ...], parts: list[NDArray[Any]]) -> None:
    """One array in NumPy's format from parts that follow one another."""
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    for part in parts:
        file.write(np.ascontiguousarray(part, dtype=dtype).data)


EXACT_DIM = 1040
"""The longest slice whose f32 dot product is exact: 1040 * 127 * 127 < 2**24."""

EXACT_UP_TO = 100_000
"""Rows left by a filter up to which they are searched exactly: 6-9 ms, what Annoy needs there for recall@10 .97."""

_LEAST_CACHED = 4096
_CONVERTED = 1 << 20
"""Components converted to f32 at a time: 4 MB, measured best between 2**16 and 2**20."""

_LEAST_SHARE = 0.25
"""Below this share of eligible rows an index must look at so many that exact search is no slower."""

_MARGIN = 1.25
_EFFORTS = (1.0, 4.0)
Scores = NDArray[np.float64]
Matrix = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Approximate(Protocol):
    """An index over a prefix of the rows that proposes neighbours; the caller scores them exactly."""

    dim: int

    def __len__(self) -> int: ...
    def candidates(self, query: NDArray[Any], n: int, *, effort: float = 1.0) -> Rows:
        """Some ``n`` different rows near ``query``, in any order; fewer only if it has no more to offer.

        ``effort`` multiplies how far it looks.
        """


@dataclass(frozen=True)
class View:
    """Some rows of the vectors in one contiguous matrix: ``matrix[i]`` is row ``rows[i]``, rows ascending."""

    rows: Rows
    matrix: Matrix
    squares: Scores
    grown: Grown
    """The columns that the three show, which a longer view goes on with."""

    @classmethod
    def of(cls, grown: Grown) -> View:
        """What the columns hold by now."""
        rows, matrix, squares = grown.columns
        return cls(rows, matrix, squares, grown)


class Vectors:
    """``len(vectors)`` rows of ``dim`` integers -127..127, appended and never changed.

    ``top`` is exact up to ``exact_up_to`` rows after filtering, and wherever no index is attached.

    >>> vectors = Vectors(2)
    >>> vectors.append(np.array([[127, 0], [0, 127], [127, 127]], dtype=np.int8))
    >>> rows, cosine = vectors.top(np.array([127, 1], dtype=np.int8), 2)
    >>> rows.tolist(), cosine.round(3).tolist()
    ([0, 2], [1.0, 0.713])
    """

    def __init__(self, dim: int, *, exact_up_to: int = EXACT_UP_TO) -> None:
        if dim < 1:
            raise InputError(f"Vectors have at least one dimension, not {dim}.")
        self.dim, self.exact_up_to = dim, exact_up_to
        self._stored = Stored(dim)
        self._views: OrderedDict[Hashable, View] = OrderedDict()
        self._tail: tuple[int, Grown] = (0, self._empty())
        self._lock = ThreadLock()
        self._index: Approximate | None = None

    def __len__(self) -> int:
        return self._stored.size

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
        self._stored.append(vectors)

    def take(self, rows: Rows | None = None) -> NDArray[np.int8]:
        """A copy of these rows (all unless given) as an int8 matrix."""
        if rows is None:
            return np.array(self._stored.slice(0, self._stored.size)[0])
        return self._stored.gather(self._checked(rows))[0]

    def digest(self, rows: int, *, rehash: bool = False) -> str:
        """A name of the first ``rows`` vectors (a multiple of 4,096): equal if and only if they are.

        Each block is read once and its digest kept and saved; ``rehash=True`` reads them all.
        """
        return self._stored.digest(rows, rehash=rehash)

    def prefix(self, rows: int) -> Vectors:
        """The first ``rows`` vectors, without a copy and for good: what is appended here is not seen there."""
        first = Vectors(self.dim, exact_up_to=self.exact_up_to)
        first._stored = self._stored.prefix(rows)
        return first

    def similarity(
        self, query: NDArray[np.int8], rows: Rows | None = None, *, key: Hashable | None = None
    ) -> Scores:
        """The cosine of ``query`` (dim,) with each of ``rows`` in the order given, or with every row.

        A matrix of queries (q, dim) gives (q, rows). With a ``key`` the rows are a ``view``, kept for the next query.
        """
        queries, square = self._checked_query(query)
        if rows is None:
            return self._cosines(queries, square, None)
        if key is None:
            return self._cosines(queries, square, self._checked(rows))
        view = self.view(key, rows)
        return _cosine(view.matrix, view.squares, queries, square)

    def view(self, key: Hashable, rows: Rows) -> View:
        """The contiguous sub-matrix of ``rows`` (strictly ascending), kept under ``key``.

        The key is only where it is looked up, and may stay the same while rows are added: a kept view serves if its
        rows are equal to ``rows``, is extended if they are its beginning, and is replaced otherwise. All kept views
        together hold at most as many rows as there are vectors (or 4,096), and twice ``exact_up_to``; the least
        recently used go first.
        """
        with self._lock:
            kept = self._views.get(key)
            if kept is not None and len(kept.rows) == len(rows) and (kept.rows == rows).all():
                self._views.move_to_end(key)
                return kept
            rows = self._checked(rows)
            _check_ascending(rows)
            grown = self._empty() if kept is None or not _begins(rows, kept.rows) else kept.grown
            fresh = rows[grown.size :]
            grown.append(fresh, *self._stored.gather(fresh))
            kept = self._views[key] = View.of(grown)
            self._views.move_to_end(key)
            room = max(min(self._stored.size, 2 * self.exact_up_to), _LEAST_CACHED)
            while (
                len(self._views) > 1 and sum(len(view.rows) for view in self._views.values()) > room
            ):
                self._views.popitem(last=False)
            return kept

    def top(
        self,
        query: NDArray[np.int8],
        n: int,
        *,
        rows: Rows | None = None,
        mask: Mask | None = None,
        key: Hashable | None = None,
        exact: bool = False,
    ) -> tuple[Rows, Scores]:
        """The ``n`` nearest rows and their cosines, by (-cosine, row).

        ``rows`` (strictly ascending) or ``mask`` (one flag a row) restrict the search. Give both if both are at hand:
        then nothing is computed for each row. Up to ``exact_up_to`` rows are searched exactly, and with a ``key`` their
        sub-matrix is kept for the next query. Beyond, an attached index proposes candidates, those that the filter
        excludes are dropped, the others scored exactly, and rows after the index searched exactly throughout; if too
        few are left it is asked for more, and then all are searched exactly; ``exact`` asks no index, so that what is
        excluded can move nothing. InputError for rows, a mask or a query that do not fit.
        """
        queries, square = self._checked_query(query)
        if queries.ndim != 1:
            raise InputError(f"top takes one query ({self.dim},), not a batch {queries.shape}.")
        if n < 0:
            raise InputError(f"The number of neighbours is at least 0, not {n}.")
        admitted = self._admitted(rows, mask)
        if admitted > self.exact_up_to and self._index is not None and not exact:
            found = self._proposed(self._index, query, queries, square, n, rows, mask, admitted)
            if found is not None:
                return found
        if admitted == self._stored.size:
            return _best(None, self._cosines(queries, square, None), n)
        rows = self._checked(_late(0, self._stored.size, rows, mask))
        if key is not None and admitted <= self.exact_up_to:
            view = self.view(key, rows)
            return _best(view.rows, _cosine(view.matrix, view.squares, queries, square), n)
        _check_ascending(rows)
        return _best(rows, self._cosines(queries, square, rows), n)

    def attach(self, index: Approximate | None) -> None:
        """Let this index propose candidates beyond ``exact_up_to`` rows; None detaches it."""
        if index is not None and (index.dim != self.dim or len(index) > self._stored.size):
            raise InputError(
                f"An index of {len(index)} rows of {index.dim} dimensions does not belong to "
                f"{self._stored.size} rows of {self.dim}."
            )
        self._index = index

    @property
    def attached(self) -> Approximate | None:
        return self._index

    # -- on disk ----------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write one file, three arrays in NumPy's format: digests, squared norms, int8 vectors. Replaces it whole."""
        self._stored.save(Path(path))

    def spool(self, path: str | Path) -> None:
        """Like ``save``, but a hard link of the file that is mapped will do: at least these rows, for a reader that
        takes the ``prefix`` it wants and compares its ``digest(..., rehash=True)``."""
        self._stored.spool(Path(path))

    @classmethod
    def load(cls, path: str | Path, *, exact_up_to: int = EXACT_UP_TO) -> Vectors:
        """Map what ``save`` wrote; no vector is read until it is searched. DamagedLab if the file is not whole."""
        stored = Stored.load(Path(path))
        vectors = cls(stored.dim, exact_up_to=exact_up_to)
        vectors._stored = stored
        return vectors

    # -- inside -----------------------------------------------------------------------------------------------

    def _empty(self) -> Grown:
        """No rows yet: their numbers, vectors as f32, squared norms."""
        return Grown(
            np.empty(0, dtype=np.int64), np.empty((0, self.dim), dtype=np.float32), np.empty(0)
        )

    def _from(self, start: int) -> View | None:
        """Rows ``start`` to the last as f32, kept and extended as rows are added; None if they are too many."""
        with self._lock:
            if self._stored.size - start > self.exact_up_to:
                if self._tail[0] == start:
                    self._tail = (start, self._empty())
                return None
            if self._tail[0] != start or self._tail[1].size > self._stored.size - start:
                self._tail = (start, self._empty())
            tail = self._tail[1]
            first = start + tail.size
            if first < self._stored.size:
                tail.append(
                    np.arange(first, self._stored.size),
                    *self._stored.slice(first, self._stored.size),
                )
            return View.of(tail)

    def _proposed(
        self,
        index: Approximate,
        query: NDArray[np.int8],
        queries: Matrix,
        square: Any,
        n: int,
        rows: Rows | None,
        mask: Mask | None,
        admitted: int,
    ) -> tuple[Rows, Scores] | None:
        """The best of the index's candidates and of all rows after it; None if exact search is the better way."""
        sealed, share = len(index), admitted / self._stored.size
        if share < _LEAST_SHARE or self._stored.size - sealed > sealed:
            return None
        if not square:
            # every cosine is 0, and ties break by row
            first = (
                np.arange(min(n, admitted))
                if admitted == self._stored.size
                else _late(0, self._stored.size, rows, mask)[:n]
            )
            return first, np.zeros(len(first))
        late = _late(sealed, self._stored.size, rows, mask)
        wanted = min(n, admitted - len(late))
        if wanted * 10 > sealed:
            return None
        for effort in _EFFORTS:
            many = math.ceil(wanted / share * _MARGIN * effort)
            near = np.sort(index.candidates(query, many, effort=effort / share))
            near = near[_among(near, rows, mask)] if admitted < self._stored.size else near
            if len(near) >= wanted:
                break
        else:
            return None
        cosines = self._cosines(queries, square, near)
        if len(late):
            kept = self._from(sealed)
            if kept is None:
                later = self._cosines(queries, square, late)
            else:
                later = _cosine(kept.matrix, kept.squares, queries, square)
                later = later if len(late) == len(later) else later[late - sealed]
            near, cosines = np.concatenate([near, late]), np.concatenate([cosines, later])
        return _best(near, cosines, n)

    def _admitted(self, rows: Rows | None, mask: Mask | None) -> int:
        """How many rows a search may find."""
        if mask is not None:
            if mask.dtype != np.bool_ or mask.shape != (self._stored.size,):
                raise InputError(
                    f"A mask has one flag for each of {self._stored.size} rows, not {mask.dtype} {mask.shape}."
                )
            count = int(np.count_nonzero(mask))
            if rows is not None and len(rows) != count:
                raise InputError(
                    f"The mask admits {count} rows, and {len(rows)} were given with it."
                )
            return count
        if rows is None:
            return self._stored.size
        _check_ascending(self._checked(rows))
        return len(rows)

    def _checked(self, rows: Rows) -> Rows:
        rows = np.asarray(rows)
        if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
            raise InputError(f"Rows are a vector of integers, not {rows.dtype} {rows.shape}.")
        if len(rows) and not (rows.min() >= 0 and rows.max() < self._stored.size):
            raise InputError(
                f"Rows lie in 0..{self._stored.size - 1}, not {int(rows.min())}..{int(rows.max())}."
            )
        return rows.astype(np.int64, copy=False)

    def _checked_query(self, query: NDArray[Any]) -> tuple[Matrix, Any]:
        query = np.asarray(query)
        if query.dtype != np.int8 or query.ndim not in (1, 2) or query.shape[-1] != self.dim:
            raise InputError(
                f"A query is an int8 vector ({self.dim},), not {query.dtype} {query.shape}."
            )
        wide = query.astype(np.int64)
        return query.astype(np.float32), np.vecdot(wide, wide).astype(np.float64)

    def _cosines(self, queries: Matrix, square: Any, rows: Rows | None) -> Scores:
        """Cosines with ``rows`` or with all, a block at a time unless they are few."""
        if rows is None:
            segment = self._from(0)
            if segment is not None:
                return _cosine(segment.matrix, segment.squares, queries, square)
        count, step = (
            self._stored.size if rows is None else len(rows),
            max(1, _CONVERTED // self.dim),
        )
        buffer = np.empty((min(step, count), self.dim), dtype=np.float32)
        out = np.empty((*queries.shape[:-1], count))
        for start in range(0, count, step):
            stop = min(start + step, count)
            matrix, squares = (
                self._stored.slice(start, stop)
                if rows is None
                else self._stored.gather(rows[start:stop])
            )
            block = buffer[: stop - start]
            np.copyto(block, matrix)
            out[..., start:stop] = _cosine(block, squares, queries, square)
        return out


def _cosine(matrix: Matrix, squares: Scores, query: Matrix, square: Any) -> Scores:
    """Cosines of each row of ``matrix`` (n, dim) with a query (dim,) or queries (q, dim): (n,) or (q, n)."""
    dim = matrix.shape[1]
    if dim <= EXACT_DIM:
        # 4 ms for 100,000 rows; the matrix-vector product takes 10, and waits for its threads on a busy machine
        one = query.ndim == 1
        dots = (np.vecdot(matrix, query) if one else query @ matrix.T).astype(np.float64)
    else:
        dots = np.zeros((*query.shape[:-1], len(matrix)))
        for start in range(0, dim, EXACT_DIM):
            part = slice(start, start + EXACT_DIM)
            dots += np.vecdot(matrix[:, part], query[..., None, part])
    norms = np.sqrt(squares * np.asarray(square)[..., None])
    np.divide(dots, norms, out=dots, where=norms > 0)
    return dots


def _best(rows: Rows | None, scores: Scores, n: int) -> tuple[Rows, Scores]:
    """The ``n`` greatest scores by (-score, row); ``rows`` ascend, None is 0..n-1."""
    kept = best(scores, n)
    return (kept if rows is None else rows[kept]), scores[kept]


def _among(found: Rows, rows: Rows | None, mask: Mask | None) -> Mask:
    """Which of the ``found`` rows a filter admits; by the mask if there is one, else by halving."""
    if mask is not None:
        return mask[found]
    return np.ones(len(found), dtype=np.bool_) if rows is None else among(found, rows)


def _late(start: int, stop: int, rows: Rows | None, mask: Mask | None) -> Rows:
    """The admitted rows from ``start``."""
    if rows is not None:
        return rows[np.searchsorted(rows, start) :]
    return np.arange(start, stop) if mask is None else np.flatnonzero(mask[start:]) + start


def _check_ascending(rows: Rows) -> None:
    if not (rows[1:] > rows[:-1]).all():
        raise InputError("The rows of a search are strictly ascending, so that ties break by row.")


def _begins(rows: Rows, start: Rows) -> bool:
    return len(start) <= len(rows) and bool(np.array_equal(rows[: len(start)], start))
