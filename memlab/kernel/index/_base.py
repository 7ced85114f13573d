"""The file of an approximate index: published whole, recognised by what it was built from, checked before it is used.

A base is two files: the index, and a header (JSON) that is renamed into place last. A base without its header does
not exist. What is noticed when:

- on opening, in a few milliseconds: a changed header, another format or kind, other vectors (by digest), another size,
  and damage in 64 evenly spaced pieces of 4 KB, the first and last among them;
- then the checksum of all of it, in the background, 0.4 seconds a gigabyte; searches are exact until that is done;
- ``verify`` compares all of it, and the digests of the vectors themselves.
"""

from __future__ import annotations

import base64
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from memlab.errors import DamagedLab
from memlab.kernel.base.disk import checksum_of, read_sealed, sync, write_sealed
from memlab.kernel.index._vectors import BLOCK, Vectors
from memlab.kernel.registry import Registry

__all__ = [
    "ANNOY",
    "KINDS",
    "Base",
    "Header",
    "Kind",
    "Opened",
    "Points",
    "Projection",
    "build_base",
    "draft_of",
    "found_bases",
    "remove",
    "sampled",
    "search_k",
    "unsound_bases",
]


# What an approximate index has to offer: how it is built into a file, and how that file is searched.
#
# Annoy is the kind that memlab has. Life cycle, projection, exact scores, deleted rows and later rows are the same for
# every kind, and live elsewhere.


Points = Iterator[NDArray[np.float32]]
"""The rows to be indexed in order, in blocks (k, dim)."""


class Opened(Protocol):
    """A file that is mapped or loaded, ready for searches."""

    def near(self, point: NDArray[np.float32], n: int, effort: float) -> NDArray[np.int64]:
        """``n`` rows near ``point``, in any order; ``effort`` multiplies how far it looks."""

    def settings(self) -> Mapping[str, int]:
        """How far it looks, for people."""


@dataclass(frozen=True)
class Kind:
    """One sort of index.

    ``settings`` gives those of a file for a number of rows; ``build`` writes the file, the same bytes each time;
    ``open`` maps it, given dimensions, rows and settings.

    An index is built by a process of its own, so an extension that declares one is an installed package with an entry
    point: what only a notebook registers is not known there.
    """

    name: str
    settings: Callable[[int], Mapping[str, int]]
    build: Callable[[Points, int, int, Mapping[str, int], Path], None]
    open: Callable[[Path, int, int, Mapping[str, int]], Opened]
    doc: str = ""
    owner: str = ""


# Annoy: a forest of random splits, written once and memory-mapped, so that processes share its pages.
#
# Built with one thread and a fixed seed it has the same bytes each time (more threads draw other trees). Annoy's own
# ``search_k`` (trees times neighbours) finds 8-17% of the true neighbours among 100,000 rows and more, so it is given
# explicitly. Annoy silently accepts and never finds what is added after ``build``; nothing can be added here. It trusts
# the nodes of its file: checksums stand before the door.


_SEED = 20_260_101
_TREES = 25

_SEARCH_K = ((100_000, 40_000), (1_000_000, 90_000))
"""Rows and ``search_k`` by measurement, straight lines between their logarithms. Recall@10 of questions against
statements (``experiments/neighbours.py``: 25 trees, 96 principal directions, 400 candidates scored exactly) and
processor time:

    rows        search_k   recall@10   p50 ms
    100,000       10,000        .767     1.8
    100,000       20,000        .877     2.8
    100,000       40,000        .936     4.8
    100,000       80,000        .974     8.2
    1,000,000     20,000        .738     3.8
    1,000,000     50,000        .843     7.8
    1,000,000     80,000        .891    11-12
    1,000,000    120,000        .917    14-15
    1,000,000    200,000        .939    28

With the questions of ``experiments/scale.py`` 80,000 gives .848 of 1,000,000.
50 trees there give .863 at 50,000 and .907 at 80,000, for half as much file again and twice the time.
"""


def search_k(rows: int) -> int:
    """How many nodes' rows a search looks at.

    >>> search_k(100_000), search_k(1_000_000)
    (40000, 90000)
    """
    known = np.log(np.array(_SEARCH_K, dtype=np.float64))
    slope = (known[1, 1] - known[0, 1]) / (known[1, 0] - known[0, 0])
    return (
        round(float(np.exp(known[0, 1] + slope * (np.log(max(rows, 1)) - known[0, 0]))) / 1000)
        * 1000
        or 1000
    )


class Forest:
    """A mapped forest."""

    def __init__(self, path: Path, dim: int, rows: int) -> None:
        self._index = _index(dim)
        self._index.load(str(path))
        self._rows, self._search_k = rows, search_k(rows)

    def near(self, point: NDArray[np.float32], n: int, effort: float) -> NDArray[np.int64]:
        looked_at = max(round(self._search_k * effort), n)
        # four times as many are scored exactly as are wanted: it costs 0.1 ms and a projection misorders the last ones
        wanted = min(max(4 * n, 400), self._rows)
        found = self._index.get_nns_by_vector(point.tolist(), wanted, looked_at)
        return np.array(found, dtype=np.int64)

    def settings(self) -> Mapping[str, int]:
        return {"search_k": self._search_k}


def _index(dim: int) -> Any:
    from annoy import AnnoyIndex

    return AnnoyIndex(dim, "angular")


def _build(points: Points, dim: int, rows: int, settings: Mapping[str, int], path: Path) -> None:
    index = _index(dim)
    index.set_seed(settings["seed"])
    row = 0
    for block in points:
        for point in block.tolist():
            index.add_item(row, point)
            row += 1
    index.build(settings["trees"], n_jobs=1)
    index.save(str(path))
    index.unload()


ANNOY = Kind(
    "annoy",
    lambda rows: {"trees": _TREES, "seed": _SEED},
    _build,
    lambda path, dim, rows, settings: Forest(path, dim, rows),
)


# Fewer dimensions for an index to search in: the leading principal directions of the vectors, in integers.
#
# An index only proposes candidates, which are then scored exactly with all dimensions, so it may look at a coarser
# picture. Measured on 1,000,000 vectors of the shipped model, 96 of whose 256 principal directions hold 97% of the
# squares: a forest of 25 trees takes 725 MB and 77 s instead of 1,390 MB and about 110 s, at equal or better recall for
# the same effort. Sums of integers are exact in f64, so the covariances and all that an index is built from have the
# same bits in any order of summation; the directions are rounded, with signs fixed.


_SAMPLE = 65_536
_HELD = 0.97
_STEP = 32
_SCALE = 1000


class Projection:
    """From ``dim`` components to ``kept``; the identity if nearly all would be kept."""

    def __init__(self, dim: int, directions: NDArray[np.int16] | None) -> None:
        self.dim = dim
        self.kept = dim if directions is None else directions.shape[1]
        self._directions = directions
        self._wide = None if directions is None else directions.astype(np.float64)

    @classmethod
    def of(cls, vectors: Vectors) -> Projection:
        """The fewest directions, in steps of 32, that hold 97% of the squares of up to 65,536 evenly spaced rows."""
        dim, count = vectors.dim, min(len(vectors), _SAMPLE)
        sample = vectors.take(np.arange(count) * len(vectors) // max(count, 1)).astype(np.float64)
        values, directions = np.linalg.eigh(sample.T @ sample)
        shares = np.cumsum(values[::-1]) / max(values.sum(), 1.0)
        kept = -(-(int(np.searchsorted(shares, _HELD)) + 1) // _STEP) * _STEP
        if kept > dim * 3 // 4:
            return cls(dim, None)
        leading = directions[:, ::-1][:, :kept]
        signs = np.sign(np.take_along_axis(leading, np.abs(leading).argmax(axis=0)[None], axis=0))
        return cls(dim, np.rint(leading * signs * _SCALE).astype(np.int16))

    def __call__(self, vectors: NDArray[Any]) -> NDArray[np.float32]:
        """f32 (..., kept) of int8 (..., dim)."""
        if self._wide is None:
            return vectors.astype(np.float32)
        projected: NDArray[np.float32] = (vectors.astype(np.float64) @ self._wide / _SCALE).astype(
            np.float32
        )
        return projected

    def to_text(self) -> str | None:
        """Base64 of the directions, i2 in rows; None for the identity."""
        if self._directions is None:
            return None
        return base64.b64encode(self._directions.astype("<i2").tobytes()).decode()

    @classmethod
    def from_text(cls, dim: int, text: str | None) -> Projection:
        if text is None:
            return cls(dim, None)
        try:
            directions = np.frombuffer(base64.b64decode(text, validate=True), dtype="<i2").reshape(
                dim, -1
            )
        except ValueError as error:
            raise DamagedLab(f"The projection of an index cannot be read: {error}") from None
        return cls(dim, directions.astype(np.int16))


KINDS: Registry[Kind] = Registry("kind of index", (ANNOY,), kind="indexes", about="doc")

_FORMAT = 2
_PIECE, _PIECES = 4096, 64
_DRAFT = ".draft-"
_BLOCK = 8192


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is written beside an index."""

    format: int
    kind: str
    dim: int
    rows: int
    vectors: str
    settings: dict[str, int]
    projection: str | None
    kept: int
    size: int
    sample: str
    checksum: int
    seconds: float


class Base:
    """An index over the first ``len(base)`` rows: projects a query and asks the file for candidates."""

    def __init__(self, path: Path, header: Header, *, effort: float = 1.0) -> None:
        self.path, self.header, self.dim, self.effort = path, header, header.dim, effort
        self.broken: str | None = None
        """What is wrong with it, once that has shown."""
        self._projection = Projection.from_text(header.dim, header.projection)
        kind = KINDS[header.kind]
        self._opened: Opened = kind.open(path, header.kept, header.rows, header.settings)

    def __len__(self) -> int:
        return self.header.rows

    def candidates(self, query: NDArray[Any], n: int, *, effort: float = 1.0) -> NDArray[np.int64]:
        """At least ``n`` rows near ``query`` if it finds as many, unordered; none once it names a row it has not."""
        if self.broken is not None:
            return np.empty(0, dtype=np.int64)
        found = self._opened.near(self._projection(query), min(n, len(self)), effort * self.effort)
        if len(found) and not 0 <= found.min() <= found.max() < len(self):
            self.broken = (
                f"The index {self.path.name} is damaged: it names rows that it does not have."
            )
            return np.empty(0, dtype=np.int64)
        return found

    @property
    def settings(self) -> dict[str, int]:
        return {**self.header.settings, **self._opened.settings(), "dimensions": self.header.kept}


def build_base(vectors: Vectors, folder: Path, kind: Kind, *, seconds: Callable[[], float]) -> Path:
    """Build an index of all ``vectors`` (whole blocks) and publish it; ``seconds`` tells the time that passed."""
    rows = len(vectors)
    digest = vectors.digest(rows)
    draft, path = (
        folder / f"{_DRAFT}{kind.name}",
        folder / f"{kind.name}-{rows:012d}-{digest[:12]}.index",
    )
    projection = Projection.of(vectors)
    settings = dict(kind.settings(rows))
    kind.build(_points(vectors, projection), projection.kept, rows, settings, draft)
    # a full disk may cut a file short without a word: what is published has answered once
    kind.open(draft, projection.kept, rows, settings).near(
        projection(vectors.take(np.array([0]))[0]), 1, 1.0
    )
    sync(draft)
    draft.replace(path)
    header = Header(
        format=_FORMAT,
        kind=kind.name,
        dim=vectors.dim,
        rows=rows,
        vectors=digest,
        settings=settings,
        projection=projection.to_text(),
        kept=projection.kept,
        size=path.stat().st_size,
        sample=sampled(path),
        checksum=checksum_of(path),
        seconds=round(seconds(), 3),
    )
    write_header(path, header)
    return path


def write_header(path: Path, header: Header) -> None:
    beside = _beside(path)
    draft = path.with_name(f"{_DRAFT}{os.getpid()}-{threading.get_ident()}-{beside.name}")
    write_sealed(draft, msgspec.json.encode(header))
    draft.replace(beside)
    sync(path.parent)


def draft_of(folder: Path, name: str) -> Path:
    """Where something unfinished lies; whoever builds next removes it."""
    return folder / f"{_DRAFT}{name}"


def found_bases(folder: Path, kind: str) -> list[tuple[Path, Header]]:
    """The bases of a kind that have a readable header, those of most rows first."""
    found = []
    for beside in sorted(folder.glob(f"{kind}-*.index.json"), reverse=True):
        try:
            header = msgspec.json.decode(read_sealed(beside), type=Header)
        except (DamagedLab, msgspec.MsgspecError):
            # half-removed, or of another version: as if it were not there, and sweep by the next builder
            continue
        right = header.format == _FORMAT and header.kind == kind
        if right and header.rows > 0 and header.rows % BLOCK == 0 and header.kept > 0:
            found.append((beside.with_suffix(""), header))
    return found


def remove(path: Path) -> None:
    """Take a base away, its header first; who has it mapped keeps it."""
    _beside(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def sampled(path: Path) -> str:
    """A checksum of 64 evenly spaced pieces of 4 KB."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        last = max(0, path.stat().st_size - _PIECE)
        for number in range(_PIECES):
            file.seek(last * number // (_PIECES - 1))
            digest.update(file.read(_PIECE))
    return digest.hexdigest()


def unsound_bases(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every index in ``folder``, and what is wrong with it (nothing if it is sound); reads all of each."""
    headers = {path: header for kind in KINDS for path, header in found_bases(folder, kind)}
    for path in sorted(folder.glob("*.index")):
        header = headers.get(path)
        if header is None:
            yield path, "it has no header that can be read"
        else:
            with suppress(FileNotFoundError):  # a builder has put another in its place
                sound = path.stat().st_size == header.size and checksum_of(path) == header.checksum
                yield path, "" if sound else "it is not what was written"


def _points(vectors: Vectors, projection: Projection) -> Iterator[NDArray[np.float32]]:
    for start in range(0, len(vectors), _BLOCK):
        yield projection(vectors.take(np.arange(start, min(len(vectors), start + _BLOCK))))


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
