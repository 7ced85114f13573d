"""The file of an approximate index: published whole, recognised by what it was built from, checked before it is used.

A base is two files: the index, and a header (JSON) that is renamed into place last. A base without its header does
not exist. What is noticed when:

- on opening, in a few milliseconds: a changed header, another format or kind, other vectors (by digest), another size,
  and damage in 64 evenly spaced pieces of 4 KB, the first and last among them;
- then the checksum of all of it, in the background, 0.4 seconds a gigabyte; searches are exact until that is done;
- ``verify`` compares all of it, and the digests of the vectors themselves.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memlab.errors import DamagedLab
from memlab.kernel.base.disk import checksum_of, read_sealed, sync, write_sealed
from memlab.kernel.index._annoy import ANNOY
from memlab.kernel.index._kinds import Kind, Opened
from memlab.kernel.index._projection import Projection
from memlab.kernel.index._stored import BLOCK
from memlab.kernel.index._vectors import Vectors
from memlab.kernel.registry import Registry

__all__ = ["KINDS", "Base", "Header", "build_base", "draft_of", "found_bases", "remove", "sampled", "unsound_bases"]

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
            self.broken = f"The index {self.path.name} is damaged: it names rows that it does not have."
            return np.empty(0, dtype=np.int64)
        return found

    @property
    def settings(self) -> dict[str, int]:
        return {**self.header.settings, **self._opened.settings(), "dimensions": self.header.kept}


def build_base(vectors: Vectors, folder: Path, kind: Kind, *, seconds: Callable[[], float]) -> Path:
    """Build an index of all ``vectors`` (whole blocks) and publish it; ``seconds`` tells the time that passed."""
    rows = len(vectors)
    digest = vectors.digest(rows)
    draft, path = folder / f"{_DRAFT}{kind.name}", folder / f"{kind.name}-{rows:012d}-{digest[:12]}.index"
    projection = Projection.of(vectors)
    settings = dict(kind.settings(rows))
    kind.build(_points(vectors, projection), projection.kept, rows, settings, draft)
    # a full disk may cut a file short without a word: what is published has answered once
    kind.open(draft, projection.kept, rows, settings).near(projection(vectors.take(np.array([0]))[0]), 1, 1.0)
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
            continue  # half-removed, or of another version: as if it were not there, and sweep by the next builder
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
