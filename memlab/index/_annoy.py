"""An approximate base for a million rows and more: Annoy over a prefix of the vectors, candidates scored exactly.

Exact search wins up to some 100,000 rows. Beyond, an Annoy forest proposes candidates: it is immutable, built with
one thread and a fixed seed (the same bytes each time), and memory-mapped, so processes share its pages. Rows that
came later are searched exactly. Annoy's default ``search_k`` finds 8-17% of the true neighbours at this size, so it
is given explicitly. Annoy silently accepts and never finds what is added after ``build``; nothing can be added here.

Annoy trusts the nodes of its file, so ``open_or_build`` compares a checksum before it maps one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.index._vectors import Vectors

__all__ = ["AnnoyBase", "OpenedBase", "index_recall", "open_or_build"]

_FORMAT = 1
_SEED = 20_260_101
_CHUNK = 1 << 22


class AnnoyBase:
    """A built forest over rows ``0..len(base) - 1``; made by ``open_or_build``."""

    def __init__(self, index: Any, dim: int, size: int, search_k: int) -> None:
        self._index, self.dim, self._size, self.search_k = index, dim, size, search_k

    def __len__(self) -> int:
        return self._size

    def candidates(self, query: NDArray[Any], n: int) -> NDArray[np.int64]:
        """At least ``n`` rows near ``query`` if there are as many, unordered; scored by the caller."""
        wanted = min(max(n, self.search_k // 10), self._size)
        found = self._index.get_nns_by_vector(query.tolist(), wanted, max(self.search_k, n))
        return np.array(found, dtype=np.int64)


@dataclass(frozen=True)
class OpenedBase:
    """What ``open_or_build`` did: ``rebuilt`` with the ``reason``, or mapped the file as it was (reason None)."""

    base: AnnoyBase
    rebuilt: bool
    reason: str | None


def open_or_build(
    vectors: Vectors, path: str | Path, *, rows: int | None = None, trees: int = 25, search_k: int = 50_000
) -> OpenedBase:
    """Map the forest at ``path`` if it is whole and belongs to these vectors; build and save it otherwise.

    The forest covers the first ``rows`` rows (all unless given); one that was built from fewer is taken as it is,
    since later rows are searched exactly. 25 trees over 1,000,000 rows of 256 dimensions take 83 s and 1.4 GB.
    A header beside the file (``.json``) holds its size and checksum and that of the vectors.

    >>> opened = open_or_build(vectors, "lab/neighbours.annoy")      # doctest: +SKIP
    >>> vectors.attach(opened.base)                                  # doctest: +SKIP
    """
    path = Path(path)
    rows = len(vectors) if rows is None else rows
    if not 0 < rows <= len(vectors):
        raise InputError(f"An Annoy base covers 1..{len(vectors)} rows, not {rows}.")
    if trees < 1 or search_k < 1:
        raise InputError(f"Annoy takes at least one tree and search_k of at least 1, not {trees} and {search_k}.")
    header, reason = _sound_header(vectors, path, rows, trees)
    if header is None:
        header = _build(vectors, path, rows, trees)
    index = _forest(vectors.dim)
    index.load(str(path))
    return OpenedBase(AnnoyBase(index, vectors.dim, header["rows"], search_k), reason is not None, reason)


def index_recall(vectors: Vectors, base: AnnoyBase, queries: NDArray[np.int8], *, n: int = 10) -> float:
    """The share of the exact ``n`` nearest rows of the base that its candidates hold, over queries (q, dim)."""
    if not len(queries) or n < 1:
        raise InputError("The recall of an index needs at least one query and one neighbour.")
    covered = np.arange(len(base))
    found = 0
    wanted = 0
    for query in queries:
        exact, _ = vectors.top(query, n, rows=covered, key=("index recall", len(base)))
        found += int(np.isin(exact, base.candidates(query, n)).sum())
        wanted += len(exact)
    return found / wanted


def _forest(dim: int) -> Any:
    from annoy import AnnoyIndex

    return AnnoyIndex(dim, "angular")


def _build(vectors: Vectors, path: Path, rows: int, trees: int) -> dict[str, Any]:
    index = _forest(vectors.dim)
    index.set_seed(_SEED)
    for start in range(0, rows, 65_536):
        block = vectors.take(np.arange(start, min(rows, start + 65_536)))
        for offset, vector in enumerate(block.tolist()):
            index.add_item(start + offset, vector)
    # more threads would draw other trees each time
    index.build(trees, n_jobs=1)
    draft, beside = path.with_name(f"{path.name}.draft"), _beside(path)
    beside.unlink(missing_ok=True)
    index.save(str(draft))
    index.unload()
    header = {
        "format": _FORMAT,
        "dim": vectors.dim,
        "rows": rows,
        "trees": trees,
        "vectors": _digest_of(vectors, rows),
        "size": draft.stat().st_size,
        "checksum": _digest(draft),
    }
    draft.replace(path)
    beside.write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")
    return header


def _sound_header(vectors: Vectors, path: Path, rows: int, trees: int) -> tuple[dict[str, Any] | None, str | None]:
    """The header if the file may be mapped, or why it is to be built."""
    beside = _beside(path)
    if not path.is_file() or not beside.is_file():
        return None, f"{path.name} or its header is missing"
    try:
        header = json.loads(beside.read_text(encoding="utf-8"))
        same = (header["format"], header["dim"], header["trees"]) == (_FORMAT, vectors.dim, trees)
        covered, size, checksum, made_of = header["rows"], header["size"], header["checksum"], header["vectors"]
    except (ValueError, KeyError, TypeError) as error:
        return None, f"the header of {path.name} cannot be read: {error}"
    if not same or not isinstance(covered, int) or not 0 < covered <= rows:
        return None, f"{path.name} was built with other settings or from more rows"
    if path.stat().st_size != size or _digest(path) != checksum:
        return None, f"{path.name} is damaged"
    if made_of != _digest_of(vectors, covered):
        return None, f"{path.name} was built from other vectors"
    return header, None


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _digest_of(vectors: Vectors, rows: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for start in range(0, rows, 65_536):
        digest.update(vectors.take(np.arange(start, min(rows, start + 65_536))).tobytes())
    return digest.hexdigest()
