"""The file of an approximate index.

An index file is published atomically, belongs to certain vectors, and is verified before use.

A base consists of two files: the index, and a JSON header that is renamed into place last. Without its header, a base
does not count as present. Damage is detected in three steps:

- Opening takes a few milliseconds. It detects a changed header, and an index of another format, kind, size or of other
  vectors. It also detects damage in 64 evenly spaced pieces of 4 KB.
- Then the checksum of the whole file is compared in the background, at 0.4 seconds per gigabyte. Searches are exact
  until the file is verified.
- ``verify`` compares the whole file and the digests of the vectors.
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

from memlab.errors import DamagedLab, require_extra
from memlab.kernel.base.arrays import NO_ROWS, Ints, Values
from memlab.kernel.base.disk import checksum_of, read_sealed, sync, write_sealed
from memlab.kernel.index._vectors import BLOCK, Vectors
from memlab.kernel.registry import Registry

# The interface of a kind of index: how a file is built, and how it is searched.
#
# memlab has one kind, Annoy. Code outside the kind handles the life cycle, the projection, exact scores, and deleted
# and later rows.


Points = Iterator[NDArray[np.float32]]
"""The rows to be indexed, in order, as blocks of shape (k, dim)."""


class Opened(Protocol):
    """An index file that is mapped or loaded and can be searched."""

    def near(self, point: NDArray[np.float32], n: int, effort: float) -> Ints:
        """Return ``n`` rows near ``point``, in no particular order.

        ``effort`` multiplies the number of nodes that are searched.
        """

    def settings(self) -> Mapping[str, int]:
        """Return the settings of a search, for reports."""


@dataclass(frozen=True)
class Kind:
    """A kind of approximate index.

    Parameters
    ----------
    name
        The name of the kind, which ``memlab.open(index=...)`` takes.
    settings
        A function that returns the settings of an index file for a number of rows. It raises MissingExtra if a package
        of the kind is missing; searches are then exact.
    build
        A function (points, dimensions, rows, settings, path) that writes the file. Equal input must give equal bytes.
    open
        A function (path, dimensions, rows, settings) that maps the file for searches.
    doc
        One sentence that describes the kind.
    owner
        The name and version of the extension that declares the kind. memlab sets this field.

    Notes
    -----
    A separate process builds the index. An extension that declares a kind must therefore be an installed package with
    an entry point. The process does not know a kind that only a notebook registers.
    """

    name: str
    settings: Callable[[int], Mapping[str, int]]
    build: Callable[[Points, int, int, Mapping[str, int], Path], None]
    open: Callable[[Path, int, int, Mapping[str, int]], Opened]
    doc: str = ""
    owner: str = ""


# Annoy: a forest of random splits, written once and memory-mapped, so that processes share its pages.
#
# One thread and a fixed seed always give the same bytes. More threads would draw other trees. Annoy's default
# ``search_k`` (trees times neighbours) finds 8-17% of the true neighbours among 100,000 rows and more, so it is set
# explicitly. Annoy silently ignores rows added after ``build``, so none are added. It trusts the nodes of its file, so
# the file is verified by checksum before it is opened.


# The table of measurements below is for 25 trees. The value of the seed does not matter.
_SEED = 20_260_101
_TREES = 25

_SEARCH_K = ((100_000, 40_000), (1_000_000, 90_000))
"""Pairs of rows and ``search_k``, interpolated between their logarithms. Measured recall@10 of questions against
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

With the questions of ``experiments/scale.py``, a ``search_k`` of 80,000 finds .848 among 1,000,000 rows. With 50 trees
it finds .863 at 50,000 and .907 at 80,000. The file is then 1.5 times as large, and the build takes twice the time.
"""


def search_k(rows: int) -> int:
    """Return the number of Annoy nodes that a search inspects in an index of ``rows``.

    >>> search_k(100_000), search_k(1_000_000)
    (40000, 90000)
    """
    measured = np.log(np.array(_SEARCH_K, dtype=np.float64))
    slope = (measured[1, 1] - measured[0, 1]) / (measured[1, 0] - measured[0, 0])
    return (
        round(
            float(np.exp(measured[0, 1] + slope * (np.log(max(rows, 1)) - measured[0, 0]))) / 1000
        )
        * 1000
        or 1000
    )


class Forest:
    """An index file of Annoy: a memory-mapped forest of random splits."""

    def __init__(self, path: Path, dim: int, rows: int, settings: Mapping[str, int]) -> None:
        self._index = _new_index(dim)
        self._index.load(str(path))
        self._rows, self._search_k = rows, settings.get("search_k") or search_k(rows)

    def near(self, point: NDArray[np.float32], n: int, effort: float) -> Ints:
        """Return about four times ``n`` rows near ``point``, as candidates for exact scoring."""
        nodes = max(round(self._search_k * effort), n)
        # Four times as many candidates are scored exactly, because the projection misorders the most distant
        # candidates. This takes 0.1 ms more.
        wanted = min(max(4 * n, 400), self._rows)
        rows = self._index.get_nns_by_vector(point.tolist(), wanted, nodes)
        return np.array(rows, dtype=np.int64)

    def settings(self) -> Mapping[str, int]:
        """Return the number of nodes that a search inspects, for reports."""
        return {"search_k": self._search_k}


def _new_index(dim: int) -> Any:
    """Return an empty index of Annoy."""
    with require_extra("annoy", "An index for faster searches of more than 100,000 memories"):
        from annoy import AnnoyIndex

    return AnnoyIndex(dim, "angular")


def _read_settings(rows: int) -> Mapping[str, int]:
    """Return the settings of Annoy, which are the same for any number of rows.

    Raises MissingExtra if Annoy is not installed.
    """
    _new_index(1)
    return {"trees": _TREES, "seed": _SEED}


def _build(points: Points, dim: int, rows: int, settings: Mapping[str, int], path: Path) -> None:
    """Write an Annoy forest of all points to a file."""
    index = _new_index(dim)
    index.set_seed(settings["seed"])
    row = 0
    for block in points:
        for point in block.tolist():
            index.add_item(row, point)
            row += 1
    index.build(settings["trees"], n_jobs=1)
    index.save(str(path))
    index.unload()


# The kind that a lab uses by default.
ANNOY = Kind(
    "annoy",
    _read_settings,
    _build,
    Forest,
)


# A projection to fewer dimensions for the index: the leading principal directions of the vectors, as integers.
#
# An index only proposes candidates, which are then scored exactly in all dimensions. So the index may use coarser
# vectors. Measured on 1,000,000 vectors of the shipped model: 96 of the 256 principal directions hold 97% of the
# squares. With these directions, a forest of 25 trees takes 725 MB and 77 s instead of 1,390 MB and about 110 s. Recall
# for the same effort is equal or better. Sums of integers are exact in float64, so the covariances have the same bits
# in any order of summation. The directions are rounded to integers, and their signs are fixed.


# The number of rows from which the directions are computed, and the share of the sum of squares that they must
# preserve. Their number is rounded up to a multiple of _STEP, and their components are scaled by _SCALE.
_SAMPLE = 65_536
_SHARE = 0.97
_STEP = 32
_SCALE = 1000


class Projection:
    """A projection of vectors to fewer components, or the identity.

    ``kept`` is the number of components. If more than three quarters would be kept, the projection is the identity.
    """

    def __init__(self, dim: int, directions: NDArray[np.int16] | None) -> None:
        self.dim = dim
        self.kept = dim if directions is None else directions.shape[1]
        self._directions = directions
        self._wide = None if directions is None else directions.astype(np.float64)

    @classmethod
    def of(cls, vectors: Vectors) -> Projection:
        """Compute the projection whose directions preserve most of the vectors' variance.

        It has the smallest number of directions, a multiple of 32, that preserve 97% of the sum of squares. The sample
        has up to 65,536 evenly spaced rows.
        """
        dim, count = vectors.dim, min(len(vectors), _SAMPLE)
        sample = vectors.take(np.arange(count) * len(vectors) // max(count, 1)).astype(np.float64)
        values, directions = np.linalg.eigh(sample.T @ sample)
        shares = np.cumsum(values[::-1]) / max(values.sum(), 1.0)
        rounded = -(-(int(np.searchsorted(shares, _SHARE)) + 1) // _STEP) * _STEP
        if rounded > dim * 3 // 4:
            return cls(dim, None)
        leading = directions[:, ::-1][:, :rounded]
        signs = np.sign(np.take_along_axis(leading, np.abs(leading).argmax(axis=0)[None], axis=0))
        return cls(dim, np.rint(leading * signs * _SCALE).astype(np.int16))

    def __call__(self, vectors: Values) -> NDArray[np.float32]:
        """Project int8 vectors (..., dim) to float32 (..., kept)."""
        if self._wide is None:
            return vectors.astype(np.float32)
        projected: NDArray[np.float32] = (vectors.astype(np.float64) @ self._wide / _SCALE).astype(
            np.float32
        )
        return projected

    def to_text(self) -> str | None:
        """Return the projection as base64 text, or None for the identity."""
        if self._directions is None:
            return None
        return base64.b64encode(self._directions.astype("<i2").tobytes()).decode()

    @classmethod
    def from_text(cls, dim: int, text: str | None) -> Projection:
        """Read a projection that ``to_text`` wrote; raise DamagedLab if it is invalid."""
        if text is None:
            return cls(dim, None)
        try:
            directions = np.frombuffer(base64.b64decode(text, validate=True), dtype="<i2").reshape(
                dim, -1
            )
        except ValueError as error:
            raise DamagedLab(
                f"The projection of an index cannot be read ({error}). The index must be rebuilt."
            ) from None
        return cls(dim, directions.astype(np.int16))


# Every kind of index by name.
KINDS: Registry[Kind] = Registry("kind of index", (ANNOY,), kind="indexes", about="doc")

# The format of a header, and the size in bytes and the number of the pieces that are compared on opening.
_FORMAT = 2
_PIECE, _PIECES = 4096, 64
_DRAFT = ".draft-"
"""The prefix of unfinished files."""

_BLOCK = 8192
"""The number of rows that are projected at a time."""


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The header of an index file, stored as JSON next to the file."""

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
    """An index over the first ``len(base)`` rows, which proposes candidates."""

    def __init__(self, path: Path, header: Header, *, effort: float = 1.0) -> None:
        self.path, self.header, self.dim, self.effort = path, header, header.dim, effort
        self.broken: str | None = None
        """The fault that a search has detected in the file, or None."""
        self._projection = Projection.from_text(header.dim, header.projection)
        kind = KINDS[header.kind]
        self._opened: Opened = kind.open(path, header.kept, header.rows, header.settings)

    def __len__(self) -> int:
        return self.header.rows

    def candidates(self, query: Values, n: int, *, effort: float = 1.0) -> Ints:
        """Return at least ``n`` rows near the query, in no particular order.

        An index with fewer than ``n`` rows returns fewer. If the index returns a row that it does not have, it counts
        as damaged and the result is empty.
        """
        if self.broken is not None:
            return NO_ROWS
        rows = self._opened.near(self._projection(query), min(n, len(self)), effort * self.effort)
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            self.broken = f"The index {self.path.name} is damaged: it returns rows beyond its {len(self):,}. It is rebuilt."
            return NO_ROWS
        return rows

    @property
    def settings(self) -> dict[str, int]:
        """The settings of the index file and of a search."""
        return {**self.header.settings, **self._opened.settings(), "dimensions": self.header.kept}


def build_base(
    vectors: Vectors,
    folder: Path,
    kind: Kind,
    *,
    seconds: Callable[[], float],
    chosen: Mapping[str, int] | None = None,
) -> Path:
    """Build an index of vectors and publish it in ``folder``; return its path.

    The number of vectors must be a multiple of 4,096. ``seconds`` returns the time since the build began. ``chosen``
    are settings that replace those of the kind.
    """
    rows = len(vectors)
    digest = vectors.digest(rows)
    draft, path = (
        folder / f"{_DRAFT}{kind.name}",
        folder / f"{kind.name}-{rows:012d}-{digest[:12]}.index",
    )
    projection = Projection.of(vectors)
    settings = {**kind.settings(rows), **(chosen or {})}
    kind.build(_project_blocks(vectors, projection), projection.kept, rows, settings, draft)
    # A full disk may truncate a file without an error, so the draft is searched once before it is published.
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
        sample=sample_checksum(path),
        checksum=checksum_of(path),
        seconds=round(seconds(), 3),
    )
    write_header(path, header)
    return path


def write_header(path: Path, header: Header) -> None:
    """Write the header of an index file and rename it to its final name."""
    target = _header_path(path)
    draft = path.with_name(f"{_DRAFT}{os.getpid()}-{threading.get_ident()}-{target.name}")
    write_sealed(draft, msgspec.json.encode(header))
    draft.replace(target)
    sync(path.parent)


def draft_of(folder: Path, name: str) -> Path:
    """Return the path of an unfinished index file called ``name`` in a folder.

    The next builder removes all such files.
    """
    return folder / f"{_DRAFT}{name}"


def list_bases(folder: Path, kind: str) -> list[tuple[Path, Header]]:
    """Return the readable index files of one kind, largest first."""
    bases = []
    for header_path in sorted(folder.glob(f"{kind}-*.index.json"), reverse=True):
        try:
            header = msgspec.json.decode(read_sealed(header_path), type=Header)
        except (DamagedLab, msgspec.MsgspecError):
            # The base was partly removed or has another format. It is ignored here, and the next builder removes it.
            continue
        is_current = header.format == _FORMAT and header.kind == kind
        if is_current and header.rows > 0 and header.rows % BLOCK == 0 and header.kept > 0:
            bases.append((header_path.with_suffix(""), header))
    return bases


def remove(path: Path) -> None:
    """Delete the header of an index file, then the file.

    Processes that have mapped the file can still read it.
    """
    _header_path(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def sample_checksum(path: Path) -> str:
    """Return the checksum of 64 evenly spaced pieces of 4 KB of a file."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        last = max(0, path.stat().st_size - _PIECE)
        for number in range(_PIECES):
            file.seek(last * number // (_PIECES - 1))
            digest.update(file.read(_PIECE))
    return digest.hexdigest()


def check_bases(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each index file in a folder with its fault, or "" for an undamaged file.

    Every file is read in full.
    """
    headers = {path: header for kind in KINDS for path, header in list_bases(folder, kind)}
    for path in sorted(folder.glob("*.index")):
        header = headers.get(path)
        if header is None:
            yield path, "its header is missing or cannot be read"
        else:
            # Another process may have replaced the file in the meantime.
            with suppress(FileNotFoundError):
                sound = path.stat().st_size == header.size and checksum_of(path) == header.checksum
                yield path, "" if sound else "its checksum does not match"


def _project_blocks(vectors: Vectors, projection: Projection) -> Iterator[NDArray[np.float32]]:
    """Yield blocks of vectors, projected to the dimensions of the index."""
    for start in range(0, len(vectors), _BLOCK):
        yield projection(vectors.take(np.arange(start, min(len(vectors), start + _BLOCK))))


def _header_path(path: Path) -> Path:
    """Return the path of the header of an index."""
    return path.with_name(f"{path.name}.json")
