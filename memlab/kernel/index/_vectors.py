"""The nearest vectors, by exact search or among the candidates of an index.

Few rows are searched exactly. For many rows, an index proposes candidates, which are scored exactly.

Components are integers -127..127. In float32 every partial sum of a dot product of up to 1,040 components is an integer
below 2**24. The product is therefore the same for every BLAS, batch, filter and order. Longer vectors are multiplied in
slices whose sums are added in float64. A cosine is ``dot / sqrt(square * square)`` in float64. It is exactly 1 for
equal vectors, lies in -1..1, and is 0 if a vector is zero.

An exact top 10 with 256 dimensions was measured on one core of a busy machine. It takes 0.6 ms of processor time for
10,000 rows, and 6-9 ms for 100,000 rows stored as float32. For 1,000,000 rows, converted from int8 block by block, it
takes 64 ms.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.errors import DamagedLab, InputError
from memlab.kernel.base.arrays import NO_ROWS, Components, Flags, Floats, Rows, Scores, Values
from memlab.kernel.base.disk import MAPPED_BYTES, open_source, replacing
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.index._arrays import Grown, best, is_in_sorted

# Integer vectors are stored as int8, first in a memory-mapped file, then in memory for later rows.
#
# int8 takes a quarter of the space of float32, on disk, in memory and in the pages that a search reads. Converting
# blocks before the product makes an exact search of 100,000 rows 1.4 times as slow (6.3 ms, compared with 4.6).
#
# Rows are appended and never changed, so a digest identifies the first rows of the vectors. The digest of a block
# covers its vectors and the digest of the previous block. An index records the digest of its vectors, so checking that
# it matches reads no vector.


BLOCK = 4096
"""The number of rows in a block, which has one digest. An index covers whole blocks."""

Squares = Floats


@dataclass(frozen=True)
class _Part:
    """Consecutive rows: components (n, dim) and squared norms (n,)."""

    matrix: Components
    squares: Squares


class Stored:
    """Rows of int8 components and their squared norms.

    The first rows are memory-mapped from a file, and later rows are in memory.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._mapped = _Part(np.empty((0, dim), dtype=np.int8), np.empty(0))
        self._path: Path | None = None
        self._late = Grown(np.empty((0, dim), dtype=np.int8), np.empty(0))
        self._digests: dict[int, str] = {}
        self.size = 0
        """The number of rows in both parts."""

    @property
    def parts(self) -> tuple[_Part, _Part]:
        """The rows in the mapped file, and the rows in memory."""
        return self._mapped, _Part(*self._late.columns)

    def append(self, vectors: Components) -> None:
        """Append vectors to the rows in memory."""
        wide = vectors.astype(np.int32)
        self._late.append(
            vectors, np.einsum("ij,ij->i", wide, wide, dtype=np.int64).astype(np.float64)
        )
        self.size += len(vectors)

    def slice(self, start: int, stop: int) -> tuple[Components, Squares]:
        """Return rows ``start..stop - 1``, copied only if they span both parts."""
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
        """Return copies of ``rows``, in the requested order."""
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
        """Return the first rows as a separate object that shares their memory."""
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

    # -- digests -------------------------------------------------------------------------------

    def digest(self, rows: int, *, rehash: bool = False) -> str:
        """Return the digest of the first ``rows`` rows, which must form whole blocks.

        Each block is read once and its digest cached. With ``rehash``, all blocks are read again.
        """
        if rows % BLOCK or not 0 <= rows <= self.size:
            raise InputError(
                f"rows must be a multiple of {BLOCK:,} and at most {self.size:,}, not {rows:,} (whole blocks)."
            )
        digests = {} if rehash else self._digests
        digest = ""
        for number in range(rows // BLOCK):
            block = digests.get(number)
            if block is None:
                hashed = hashlib.blake2b(f"{self.dim} {digest}".encode(), digest_size=16)
                hashed.update(
                    np.ascontiguousarray(self.slice(number * BLOCK, (number + 1) * BLOCK)[0]).data
                )
                block = digests[number] = hashed.hexdigest()
            digest = block
        return digest

    # -- on disk ----------------------------------------------------------------------------------------------

    def save(self, target: str | Path | BinaryIO) -> None:
        """Write all rows to one file, which is replaced atomically, or to an open file.

        The file has three arrays in NumPy's format: digests of blocks, squared norms (float64) and vectors (int8).
        """
        complete = self.size // BLOCK
        self.digest(complete * BLOCK)
        digests = np.frombuffer(
            bytes.fromhex("".join(self._digests[number] for number in range(complete))),
            dtype=np.uint8,
        )
        early, late = self.parts
        with replacing(target) as file:
            _write_array(file, "|u1", (len(digests) // 16, 16), [digests])
            _write_array(file, "<f8", (self.size,), [early.squares, late.squares])
            _write_array(file, "|i1", (self.size, self.dim), [early.matrix, late.matrix])

    def spool(self, path: Path) -> None:
        """Write the rows to a file for another process.

        If the mapped file has all rows, the new file is a hard link to it. Otherwise it is a copy. The reader checks
        ``digest(..., rehash=True)``.
        """
        if self._path is not None and not self._late.size:
            try:
                os.link(self._path, path)
            # The target is on another file system, or the mapped snapshot was removed.
            except OSError:
                self.save(path)
        else:
            self.save(path)

    @classmethod
    def load(cls, source: str | Path | BinaryIO) -> Stored:
        """Memory-map a file that ``save`` wrote, or read an open file.

        Opening reads the digests only. Vectors and norms are read on first use.

        Raises
        ------
        DamagedLab
            If the file is incomplete.
        """
        path = Path(source) if isinstance(source, str | Path) else None
        try:
            with open_source(source) as file:
                digests = np.lib.format.read_array(file, allow_pickle=False)
                squares, matrix = _map_array(path, file, "<f8"), _map_array(path, file, "|i1")
                ended = not file.read(1)
        except (OSError, ValueError, EOFError) as error:
            raise DamagedLab(
                f"The vectors in {path or 'the snapshot'} cannot be read ({error}). Rebuild them from the journal."
            ) from None
        rows = len(squares)
        is_valid = ended and digests.dtype == np.uint8 and digests.shape == (rows // BLOCK, 16)
        if (
            not is_valid
            or squares.ndim != 1
            or matrix.ndim != 2
            or len(matrix) != rows
            or matrix.shape[1] < 1
        ):
            raise DamagedLab(
                f"{path or 'The snapshot'} has digests, norms and vectors that do not fit together. Rebuild it from the "
                "journal."
            )
        stored = cls(matrix.shape[1])
        stored._mapped, stored._path, stored.size = _Part(matrix, squares), path, rows
        stored._digests = {number: row.tobytes().hex() for number, row in enumerate(digests)}
        return stored


def _map_array(path: Path | None, file: BinaryIO, dtype: str) -> Values:
    """Return the array at the file's position, and move past it; a large array of a path is memory-mapped."""
    np.lib.format.read_magic(file)
    shape, fortran, actual = np.lib.format.read_array_header_1_0(file)
    offset, size = file.tell(), int(np.prod(shape, dtype=np.int64)) * actual.itemsize
    if fortran or actual != np.dtype(dtype):
        raise ValueError(
            f"the array is of {actual}{' in column order' * fortran}, and must be of {dtype} in row order"
        )
    if offset + size > file.seek(0, os.SEEK_END):
        raise ValueError("the file ends before its array does")
    file.seek(offset)
    if not size:
        return np.empty(shape, dtype=dtype)
    if path is None or size < MAPPED_BYTES:
        return np.frombuffer(file.read(size), dtype=dtype).reshape(shape)
    file.seek(offset + size)
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape).view(np.ndarray)


def _write_array(file: BinaryIO, dtype: str, shape: tuple[int, ...], parts: list[Values]) -> None:
    """Write consecutive parts as one array in NumPy's format."""
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    for part in parts:
        file.write(np.ascontiguousarray(part, dtype=dtype).data)


EXACT_DIM = 1040
"""The maximum number of dimensions whose float32 dot product is exact: 1040 * 127 * 127 < 2**24."""

EXACT_UP_TO = 100_000
"""The number of eligible rows up to which search is exact. It takes 6-9 ms, as Annoy does for a recall@10 of 0.97."""

SCANNED_UP_TO = 400_000
"""The number of rows up to which search is exact where numkong is installed. Its products of integers take 1.3 ms per
100,000 rows and are bit-identical to those of NumPy; Annoy takes 5 to 8 ms for a recall@10 of .93 to .89 from 100,000
to here."""


# The package is optional. Small labs never search so many rows, so they do not wait for its import.
@cache
def scanner() -> Callable[..., Any] | None:
    """Return numkong's function of pairwise products, or None if the package is not installed."""
    try:
        import numkong
    except ImportError:
        return None
    return numkong.cdist  # type: ignore[no-any-return]


_MINIMUM_CACHED = 4096
"""The number of rows that cached views may always have together, even in a small lab."""

_CONVERTED = 1 << 20
"""The number of components converted to float32 at a time (4 MB), the fastest of 2**16 to 2**20."""

_MINIMUM_SHARE = 0.25
"""The share of eligible rows below which exact search is used. An index would inspect too many rows."""

# The factor on the number of requested candidates, because a filter may leave fewer than on average. And the efforts of
# the two attempts before exact search.
_MARGIN = 1.25
_EFFORTS = (1.0, 4.0)
Matrix = NDArray[np.float32]
Mask = Flags


class Approximate(Protocol):
    """An index over the first rows of vectors, which proposes candidates.

    The caller scores the candidates exactly.
    """

    dim: int

    def __len__(self) -> int: ...
    def candidates(self, query: Values, n: int, *, effort: float = 1.0) -> Rows:
        """Return ``n`` distinct rows near ``query``, in no particular order.

        An index with fewer than ``n`` rows returns fewer. ``effort`` multiplies the number of nodes that are searched.
        """


@dataclass(frozen=True)
class View:
    """Selected vectors, copied into one contiguous matrix.

    ``matrix[i]`` is the vector of row ``rows[i]``, and rows ascend.
    """

    rows: Rows
    matrix: Matrix
    squares: Scores
    grown: Grown
    """The growing columns behind the view. A longer view of the same rows extends them."""

    @classmethod
    def of(cls, grown: Grown) -> View:
        """Return a view of the rows that the growing columns contain at this moment."""
        rows, matrix, squares = grown.columns
        return cls(rows, matrix, squares, grown)


class Vectors:
    """Vectors of ``dim`` integers -127..127; rows are added and never changed.

    ``top`` searches exactly if no index is attached, or if at most ``exact_up_to`` rows are eligible.

    >>> vectors = Vectors(2)
    >>> vectors.append(np.array([[127, 0], [0, 127], [127, 127]], dtype=np.int8))
    >>> rows, cosine = vectors.top(np.array([127, 1], dtype=np.int8), 2)
    >>> rows.tolist(), cosine.round(3).tolist()
    ([0, 2], [1.0, 0.713])
    """

    def __init__(self, dim: int, *, exact_up_to: int = EXACT_UP_TO) -> None:
        if dim < 1:
            raise InputError(f"Vectors need at least one dimension, not {dim}.")
        self.dim, self.exact_up_to = dim, exact_up_to
        self._stored = Stored(dim)
        self._views: OrderedDict[Hashable, View] = OrderedDict()
        self._tail: tuple[int, Grown] = (0, self._empty())
        # One thread may extend cached views or the tail while another thread searches.
        self._lock = ThreadLock()
        self._index: Approximate | None = None

    def __len__(self) -> int:
        return self._stored.size

    @property
    def searched_up_to(self) -> int:
        """The number of eligible rows up to which search is exact, with any attached index."""
        scans = self.exact_up_to == EXACT_UP_TO < self._stored.size <= SCANNED_UP_TO
        return SCANNED_UP_TO if scans and scanner() is not None else self.exact_up_to

    def append(self, vectors: Components) -> None:
        """Append rows, passed as an int8 matrix (k, dim) of components -127..127.

        Raises
        ------
        InputError
            If the matrix has another type or shape, or a component -128.
        """
        vectors = np.asarray(vectors)
        if vectors.dtype != np.int8 or vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise InputError(
                f"New vectors must be an int8 matrix of shape (rows, {self.dim}), not {vectors.dtype} {vectors.shape}."
            )
        if not len(vectors):
            return
        if vectors.min() < -127:
            raise InputError(
                f"Row {int(np.argmax(vectors.min(axis=1) < -127))} has a component -128. "
                "Quantised int8 vectors use -127 to 127: clip them."
            )
        self._stored.append(vectors)

    def take(self, rows: Rows | None = None) -> Components:
        """Return a copy of ``rows`` (all rows by default) as an int8 matrix."""
        if rows is None:
            return np.array(self._stored.slice(0, self._stored.size)[0])
        return self._stored.gather(self._check_rows(rows))[0]

    def digest(self, rows: int, *, rehash: bool = False) -> str:
        """Return a digest of the first ``rows`` vectors; ``rows`` is a multiple of 4,096.

        Equal digests mean equal vectors. The digest of each block is cached and saved; ``rehash=True`` reads all blocks.
        """
        return self._stored.digest(rows, rehash=rehash)

    def prefix(self, rows: int) -> Vectors:
        """Return the first ``rows`` vectors as an object that shares their memory.

        Appending to this object does not change the result.
        """
        first = Vectors(self.dim, exact_up_to=self.exact_up_to)
        first._stored = self._stored.prefix(rows)
        return first

    def similarity(
        self, query: Components, rows: Rows | None = None, *, key: Hashable | None = None
    ) -> Scores:
        """Return the cosine of ``query`` with each of ``rows``, or with every row.

        ``query`` has the shape (dim,), and cosines are in the order of ``rows``. A matrix of queries (q, dim) gives
        (q, rows). With a ``key`` the rows are cached as a ``view`` for the next query.
        """
        queries, square = self._check_query(query)
        if rows is None:
            return self._cosines(queries, square, None)
        if key is None:
            return self._cosines(queries, square, self._check_rows(rows))
        view = self.view(key, rows)
        return _cosine(view.matrix, view.squares, queries, square)

    def view(self, key: Hashable, rows: Rows) -> View:
        """Return the contiguous sub-matrix of ``rows``, cached under ``key``.

        Rows must be strictly ascending. The key may stay the same while rows are added. A cached view is reused if its
        rows are equal. It is extended if its rows are the first of ``rows``, and replaced otherwise. All cached views
        together have at most as many rows as there are vectors (or 4,096), and at most twice ``exact_up_to``. The least
        recently used views are dropped first.
        """
        with self._lock:
            cached = self._views.get(key)
            if cached is not None and len(cached.rows) == len(rows) and (cached.rows == rows).all():
                self._views.move_to_end(key)
                return cached
            rows = self._check_rows(rows)
            _check_ascending(rows)
            grown = (
                self._empty()
                if cached is None or not _has_prefix(rows, cached.rows)
                else cached.grown
            )
            added = rows[grown.size :]
            grown.append(added, *self._stored.gather(added))
            cached = self._views[key] = View.of(grown)
            self._views.move_to_end(key)
            room = max(min(self._stored.size, 2 * self.exact_up_to), _MINIMUM_CACHED)
            while (
                len(self._views) > 1 and sum(len(view.rows) for view in self._views.values()) > room
            ):
                self._views.popitem(last=False)
            return cached

    def top(
        self,
        query: Components,
        n: int,
        *,
        rows: Rows | None = None,
        mask: Mask | None = None,
        key: Hashable | None = None,
        exact: bool = False,
    ) -> tuple[Rows, Scores]:
        """Return the ``n`` nearest rows and their cosines, in descending order.

        Ties are broken by row. ``rows`` (strictly ascending) or ``mask`` (one flag per row) restrict the search to
        eligible rows. Pass both if both are available, so that neither is computed from the other. The search is exact
        if at most ``exact_up_to`` rows are eligible, and a ``key`` caches their sub-matrix. For more rows, an attached
        index proposes candidates. Eligible candidates are scored exactly, and rows added after the index was built are
        searched exactly. If too few candidates are eligible, the index is searched further, and finally all rows
        exactly. With ``exact``, the index is not used, so that excluded rows cannot affect the result.

        Raises
        ------
        InputError
            If rows, mask or query do not fit.
        """
        queries, square = self._check_query(query)
        if queries.ndim != 1:
            raise InputError(
                f"top takes one query vector of shape ({self.dim},), not an array of shape {queries.shape}."
            )
        if n < 0:
            raise InputError(f"The number of neighbours must be at least 0, not {n}.")
        admitted = self._count_admitted(rows, mask)
        # Products of all rows are cheaper than copies of the eligible rows.
        if self.exact_up_to < admitted <= self.searched_up_to:
            cosines = self._cosines(queries, square, None)
            if admitted == self._stored.size:
                return _take_best(None, cosines, n)
            rows = self._check_rows(_rows_from(0, self._stored.size, rows, mask))
            return _take_best(rows, cosines[rows], n)
        if admitted > self.exact_up_to and self._index is not None and not exact:
            proposed = self._search_index(
                self._index, query, queries, square, n, rows, mask, admitted
            )
            if proposed is not None:
                return proposed
        if admitted == self._stored.size:
            return _take_best(None, self._cosines(queries, square, None), n)
        rows = self._check_rows(_rows_from(0, self._stored.size, rows, mask))
        if key is not None and admitted <= self.exact_up_to:
            view = self.view(key, rows)
            return _take_best(view.rows, _cosine(view.matrix, view.squares, queries, square), n)
        _check_ascending(rows)
        return _take_best(rows, self._cosines(queries, square, rows), n)

    def nearest(
        self, queries: Components, n: int, *, excluded: Mask | None = None
    ) -> Iterator[tuple[Rows, Scores]]:
        """Yield the exact ``n`` nearest rows of each query, without ``excluded`` rows.

        Cosines in single precision select the rows that may be among the nearest, and only these are scored exactly. Many
        queries take half the time of ``similarity``.
        """
        wide, squares = self._check_query(queries)
        bias = np.zeros(self._stored.size, dtype=np.float32)
        if excluded is not None:
            bias[excluded] = -np.inf
        tail = self._tail_from(0)
        step = max(1, _PRODUCTS // max(1, len(bias)))
        for start in range(0, len(wide), step):
            block, lengths = wide[start : start + step], squares[start : start + step]
            if tail is None or self.dim > EXACT_DIM:
                rows = np.flatnonzero(bias == 0)
                for query, square in zip(block, lengths, strict=True):
                    yield _take_best(rows, self._cosines(query, square, rows), n)
                continue
            norms = np.sqrt(np.maximum(tail.squares, 1.0)).astype(np.float32)
            # A few single products are as fast as one product of matrices, and do not wait for its threads.
            few = len(block) <= _SINGLE
            rough = np.vecdot(tail.matrix, block[:, None]) if few else block @ tail.matrix.T
            rough /= norms
            rough += bias
            cuts = _lower_bounds(rough, n) - _ROUNDING * np.sqrt(lengths)
            np.maximum(cuts, np.finfo(np.float32).min, out=cuts)  # above the -inf of excluded rows
            for query, square, scores, cut in zip(block, lengths, rough, cuts, strict=True):
                rows = np.flatnonzero(scores >= cut)
                exact = _cosine(tail.matrix.take(rows, axis=0), tail.squares[rows], query, square)
                yield _take_best(rows, exact, n)

    def attach(self, index: Approximate | None) -> None:
        """Attach an index that proposes candidates, or detach it with None.

        Searches use the index if more than ``exact_up_to`` rows are eligible.
        """
        if index is not None and (index.dim != self.dim or len(index) > self._stored.size):
            raise InputError(
                f"The nearest-neighbour index has {len(index)} rows of {index.dim} dimensions and does not fit the "
                f"{self._stored.size} stored vectors of {self.dim} dimensions. Rebuild the index from them."
            )
        self._index = index

    @property
    def attached(self) -> Approximate | None:
        """The attached index, or None if no index is attached."""
        return self._index

    # -- on disk ----------------------------------------------------------------------------------------------

    def save(self, target: str | Path | BinaryIO) -> None:
        """Write all vectors to one file in NumPy's format, which is replaced atomically.

        The file has digests, squared norms and int8 vectors.
        """
        self._stored.save(target)

    def spool(self, path: str | Path) -> None:
        """Write the vectors to a file for another process.

        The file has at least these vectors, and may be a hard link to a larger file.

        The reader takes the ``prefix`` that it needs and compares its ``digest(..., rehash=True)``.
        """
        self._stored.spool(Path(path))

    @classmethod
    def load(cls, source: str | Path | BinaryIO, *, exact_up_to: int = EXACT_UP_TO) -> Vectors:
        """Memory-map a file that ``save`` wrote. Vectors are read when they are searched.

        Raises
        ------
        DamagedLab
            If the file is incomplete.
        """
        stored = Stored.load(source)
        vectors = cls(stored.dim, exact_up_to=exact_up_to)
        vectors._stored = stored
        return vectors

    # -- private -----------------------------------------------------------------------------------------------

    def _empty(self) -> Grown:
        """Return empty columns for row numbers, float32 vectors and squared norms."""
        return Grown(NO_ROWS, np.empty((0, self.dim), dtype=np.float32), np.empty(0))

    def _tail_from(self, start: int) -> View | None:
        """Return all rows from ``start`` on as float32, or None if they are too many.

        The result is cached, and extended when rows were added.
        """
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

    def _search_index(
        self,
        index: Approximate,
        query: Components,
        queries: Matrix,
        square: Any,
        n: int,
        rows: Rows | None,
        mask: Mask | None,
        admitted: int,
    ) -> tuple[Rows, Scores] | None:
        """Return the nearest rows among the index's candidates and all later rows.

        Returns None if exact search is better.
        """
        sealed, share = len(index), admitted / self._stored.size
        if share < _MINIMUM_SHARE or self._stored.size - sealed > sealed:
            return None
        if not square:
            # Every cosine with a zero vector is 0, and ties are broken by row.
            first = (
                np.arange(min(n, admitted))
                if admitted == self._stored.size
                else _rows_from(0, self._stored.size, rows, mask)[:n]
            )
            return first, np.zeros(len(first))
        late = _rows_from(sealed, self._stored.size, rows, mask)
        wanted = min(n, admitted - len(late))
        if wanted * 10 > sealed:
            return None
        for effort in _EFFORTS:
            count = math.ceil(wanted / share * _MARGIN * effort)
            candidates = np.sort(index.candidates(query, count, effort=effort / share))
            candidates = (
                candidates[_is_admitted(candidates, rows, mask)]
                if admitted < self._stored.size
                else candidates
            )
            if len(candidates) >= wanted:
                break
        else:
            return None
        cosines = self._cosines(queries, square, candidates)
        if len(late):
            tail = self._tail_from(sealed)
            if tail is None:
                later = self._cosines(queries, square, late)
            else:
                later = _cosine(tail.matrix, tail.squares, queries, square)
                later = later if len(late) == len(later) else later[late - sealed]
            candidates, cosines = (
                np.concatenate([candidates, late]),
                np.concatenate([cosines, later]),
            )
        return _take_best(candidates, cosines, n)

    def _count_admitted(self, rows: Rows | None, mask: Mask | None) -> int:
        """Check the filter, and return the number of rows that it admits."""
        if mask is not None:
            if mask.dtype != np.bool_ or mask.shape != (self._stored.size,):
                raise InputError(
                    f"A mask must have one flag for each of {self._stored.size} rows, not {mask.dtype} {mask.shape}."
                )
            count = int(np.count_nonzero(mask))
            if rows is not None and len(rows) != count:
                raise InputError(
                    f"The mask admits {count} rows, but {len(rows)} rows were passed with it. Pass a mask of the same rows."
                )
            return count
        if rows is None:
            return self._stored.size
        _check_ascending(self._check_rows(rows))
        return len(rows)

    def _check_rows(self, rows: Rows) -> Rows:
        """Check the type and range of row numbers, and return them as int64."""
        rows = np.asarray(rows)
        if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
            raise InputError(f"Rows must be a vector of integers, not {rows.dtype} {rows.shape}.")
        if len(rows) and not (rows.min() >= 0 and rows.max() < self._stored.size):
            raise InputError(
                f"Rows must be in 0..{self._stored.size - 1}, not {int(rows.min())}..{int(rows.max())}."
            )
        return rows.astype(np.int64, copy=False)

    def _check_query(self, query: Values) -> tuple[Matrix, Any]:
        """Check an int8 query or matrix of queries, and return it as float32 with the squared norm of each query."""
        query = np.asarray(query)
        if query.dtype != np.int8 or query.ndim not in (1, 2) or query.shape[-1] != self.dim:
            raise InputError(
                f"A query must be an int8 vector of shape ({self.dim},), not {query.dtype} {query.shape}."
            )
        wide = query.astype(np.int64)
        return query.astype(np.float32), np.vecdot(wide, wide).astype(np.float64)

    def _cosines(self, queries: Matrix, square: Any, rows: Rows | None) -> Scores:
        """Return the cosines of queries with ``rows``, or with all rows.

        Rows that are not cached are converted to float32 block by block.
        """
        if rows is None:
            segment = self._tail_from(0)
            if segment is not None:
                return _cosine(segment.matrix, segment.squares, queries, square)
            scan = scanner()
            if scan is not None and queries.ndim == 1:
                return self._scan(scan, queries, square)
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

    def _scan(self, scan: Callable[..., Any], query: Matrix, square: Any) -> Scores:
        """Return the cosine of a query with every row, by products of int8 vectors."""
        out, row = np.empty(self._stored.size), query.astype(np.int8)[None]
        # A block of a megabyte stays in the cache between its products and its norms.
        step = max(1, _CONVERTED // self.dim)
        for start in range(0, len(out), step):
            matrix, squares = self._stored.slice(start, min(start + step, len(out)))
            dots = np.array(scan(row, np.ascontiguousarray(matrix), metric="dot"), dtype=np.float64)
            out[start : start + step] = _divide(dots.reshape(-1), squares, square)
        return out


def _cosine(matrix: Matrix, squares: Scores, query: Matrix, square: Any) -> Scores:
    """Return the cosine similarities of a matrix's rows with queries.

    ``matrix`` has the shape (n, dim), one query the shape (dim,), and several queries the shape (q, dim).
    """
    dim = matrix.shape[1]
    if dim <= EXACT_DIM:
        # vecdot takes 4 ms for 100,000 rows. The matrix-vector product takes 10 ms and waits for threads on a busy
        # machine.
        is_single = query.ndim == 1
        dots = (np.vecdot(matrix, query) if is_single else query @ matrix.T).astype(np.float64)
    else:
        dots = np.zeros((*query.shape[:-1], len(matrix)))
        for start in range(0, dim, EXACT_DIM):
            part = slice(start, start + EXACT_DIM)
            dots += np.vecdot(matrix[:, part], query[..., None, part])
    return _divide(dots, squares, square)


def _divide(dots: Scores, squares: Scores, square: Any) -> Scores:
    """Divide dot products in place by both vector lengths, keeping 0 for zero vectors."""
    norms = np.sqrt(squares * np.asarray(square)[..., None])
    np.divide(dots, norms, out=dots, where=norms > 0)
    return dots


_PRODUCTS = 1 << 22
"""Maximum number of single-precision products at a time, 16 MB. The conversion of norms is then a small share."""

_ROUNDING = 1e-5
"""Bound of the rounding of single-precision cosines; products of integers are exact, and quotients are right to 1e-7."""

_SINGLE = 4
"""Maximum number of queries that are multiplied one by one."""

_GROUPED = 16
"""Rows per group in the search for a lower bound. Its cost is a fifth of a full partition."""


def _lower_bounds(scores: Matrix, n: int) -> Matrix:
    """Return a lower bound of the ``n``-th greatest entry of each matrix row, or -inf.

    The maxima of groups of entries are entries, so the ``n``-th greatest of them is such a value.
    """
    groups = scores.shape[1] // _GROUPED
    if not 0 < n <= groups:
        return np.full(len(scores), -np.inf, dtype=np.float32)
    maxima = scores[:, : groups * _GROUPED].reshape(len(scores), _GROUPED, groups).max(axis=1)
    return np.asarray(np.partition(maxima, groups - n, axis=1)[:, groups - n])


def _take_best(rows: Rows | None, scores: Scores, n: int) -> tuple[Rows, Scores]:
    """Return the ``n`` greatest scores, in descending order, with their rows; ties are broken by row.

    If ``rows`` is None, the scores are those of all rows.
    """
    positions = best(scores, n)
    return (positions if rows is None else rows[positions]), scores[positions]


def _is_admitted(candidates: Rows, rows: Rows | None, mask: Mask | None) -> Mask:
    """Return which of the candidate rows the filter admits."""
    if mask is not None:
        return mask[candidates]
    return (
        np.ones(len(candidates), dtype=np.bool_) if rows is None else is_in_sorted(candidates, rows)
    )


def _rows_from(start: int, stop: int, rows: Rows | None, mask: Mask | None) -> Rows:
    """Return the rows from ``start`` on that the filter admits."""
    if rows is not None:
        return rows[np.searchsorted(rows, start) :]
    return np.arange(start, stop) if mask is None else np.flatnonzero(mask[start:]) + start


def _check_ascending(rows: Rows) -> None:
    """Raise InputError unless rows are strictly ascending."""
    if not (rows[1:] > rows[:-1]).all():
        raise InputError(
            "The rows of a search must be strictly ascending, so that ties break by row. Sort them."
        )


def _has_prefix(rows: Rows, start: Rows) -> bool:
    """Return whether ``rows`` begins with ``start``."""
    return len(start) <= len(rows) and bool(np.array_equal(rows[: len(start)], start))
