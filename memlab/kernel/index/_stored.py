"""Where integer vectors are kept: a memory-mapped file and rows in memory after it, int8 throughout.

int8 takes a quarter of f32, on disk, in memory and of the pages that a search touches; converting blocks on the way
to the product makes an exact search of 100,000 rows 1.4 times as slow (6.3 ms against 4.6 of processor time).

Rows are appended and never changed, so a prefix is named by a digest: of every whole block, with that of the blocks
before it. An index says by it which vectors it was built from, and comparing needs no vector to be read.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from memlab.errors import DamagedLab, InputError

__all__ = ["BLOCK", "Grown", "Stored"]

BLOCK = 4096
"""Rows that are digested together; an index covers whole blocks."""

Rows = NDArray[np.int64]
Squares = NDArray[np.float64]
Components = NDArray[np.int8]


class Grown:
    """Columns that grow together, in buffers that double; what was handed out never changes.

    >>> grown = Grown(np.empty(0), np.empty((0, 2)))
    >>> grown.append(np.ones(3), np.zeros((3, 2)))
    >>> [column.shape for column in grown.columns]
    [(3,), (3, 2)]
    """

    def __init__(self, *empty: NDArray[Any]) -> None:
        self.size = len(empty[0])
        self._buffers = list(empty)

    @property
    def columns(self) -> list[NDArray[Any]]:
        """Read-only views of the rows so far."""
        return [_read_only(buffer[: self.size]) for buffer in self._buffers]

    def column(self, number: int) -> NDArray[Any]:
        """One of them: a third of the cost of all."""
        return _read_only(self._buffers[number][: self.size])

    def append(self, *blocks: NDArray[Any]) -> None:
        needed = self.size + len(blocks[0])
        if needed > len(self._buffers[0]):
            # the first block is taken as it comes: most views and bases never grow
            room = max(needed, 2 * len(self._buffers[0]))
            self._buffers = [_with_room(buffer[: self.size], room) for buffer in self._buffers]
        for buffer, block in zip(self._buffers, blocks, strict=True):
            buffer[self.size : needed] = block
        self.size = needed


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
        self._late.append(vectors, np.einsum("ij,ij->i", wide, wide, dtype=np.int64).astype(np.float64))
        self.size += len(vectors)

    def slice(self, start: int, stop: int) -> tuple[Components, Squares]:
        """Rows ``start..stop - 1``: without a copy unless they lie in both parts."""
        sealed = len(self._mapped.squares)
        if stop <= sealed:
            return self._mapped.matrix[start:stop], self._mapped.squares[start:stop]
        late = self.parts[1]
        if start >= sealed:
            return late.matrix[start - sealed : stop - sealed], late.squares[start - sealed : stop - sealed]
        return (
            np.concatenate([self._mapped.matrix[start:], late.matrix[: stop - sealed]]),
            np.concatenate([self._mapped.squares[start:], late.squares[: stop - sealed]]),
        )

    def gather(self, rows: Rows) -> tuple[Components, Squares]:
        """A copy of these rows, in the order given."""
        sealed = len(self._mapped.squares)
        late = self.parts[1]
        if not sealed:
            return late.matrix[rows], late.squares[rows]
        beyond = rows >= sealed
        if not beyond.any():
            return self._mapped.matrix[rows], self._mapped.squares[rows]
        matrix, squares = np.empty((len(rows), self.dim), dtype=np.int8), np.empty(len(rows))
        early = ~beyond
        matrix[early], squares[early] = self._mapped.matrix[rows[early]], self._mapped.squares[rows[early]]
        matrix[beyond], squares[beyond] = late.matrix[rows[beyond] - sealed], late.squares[rows[beyond] - sealed]
        return matrix, squares

    def prefix(self, rows: int) -> Stored:
        """The first ``rows`` rows without a copy; appending here or there does not show in the other."""
        first = Stored(self.dim)
        sealed = len(self._mapped.squares)
        late = self.parts[1]
        first._mapped = _Part(self._mapped.matrix[:rows], self._mapped.squares[:rows])
        first._late = Grown(late.matrix[: max(0, rows - sealed)], late.squares[: max(0, rows - sealed)])
        first._path, first.size = self._path, rows
        first._digests = {number: digest for number, digest in self._digests.copy().items() if number < rows // BLOCK}
        return first

    # -- whose vectors they are -------------------------------------------------------------------------------

    def digest(self, rows: int, *, rehash: bool = False) -> str:
        """Names the first ``rows`` rows, a whole number of blocks. Each is read once, with ``rehash`` again."""
        if rows % BLOCK or not 0 <= rows <= self.size:
            raise InputError(f"A digest covers whole blocks of {BLOCK:,} rows up to {self.size:,}, not {rows:,}.")
        known = {} if rehash else self._digests
        digest = ""
        for number in range(rows // BLOCK):
            block = known.get(number)
            if block is None:
                hashed = hashlib.blake2b(f"{self.dim} {digest}".encode(), digest_size=16)
                hashed.update(np.ascontiguousarray(self.slice(number * BLOCK, (number + 1) * BLOCK)[0]).data)
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
            bytes.fromhex("".join(self._digests[number] for number in range(complete))), dtype=np.uint8
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
        if not right or squares.ndim != 1 or matrix.ndim != 2 or len(matrix) != rows or matrix.shape[1] < 1:
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


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    values.flags.writeable = False
    return values


def _with_room(old: NDArray[Any], room: int) -> NDArray[Any]:
    new = np.empty((room, *old.shape[1:]), dtype=old.dtype)
    new[: len(old)] = old
    return new


def _write(file: BinaryIO, dtype: str, shape: tuple[int, ...], parts: list[NDArray[Any]]) -> None:
    """One array in NumPy's format from parts that follow one another."""
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    for part in parts:
        file.write(np.ascontiguousarray(part, dtype=dtype).data)
