"""Adapters of vector and word indexes with one interface, for ``scale.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["INDEXES", "TEN", "Index", "Matrix"]

TEN = 10
"""The number of neighbours that a search returns."""

Matrix = NDArray[np.float32]
Search = Callable[[Any], Sequence[int] | NDArray[Any]]


@dataclass(frozen=True)
class Index:
    """One index: ``build`` saves an index of unit vectors (or texts) at a path; ``serve`` opens it.

    ``serve`` also gets the dimension. It returns a function that gives a search function for each of ``efforts``. A search
    returns the ten nearest of one query, a unit vector or a text. The distribution ``needs`` contains ``module``.
    """

    name: str
    module: str
    needs: str
    build: Callable[[Any, Path], None]
    serve: Callable[[Path, int], Callable[[int], Search]]
    efforts: tuple[int, ...] = (0,)
    lexical: bool = False


def _build_numpy(vectors: Matrix, path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, vectors)


def _serve_numpy(path: Path, dim: int) -> Callable[[int], Search]:
    vectors = np.load(path)

    def search(query: Matrix) -> NDArray[Any]:
        scores = vectors @ query
        best = np.argpartition(-scores, TEN - 1)[:TEN]
        return np.asarray(best[np.argsort(-scores[best])])

    return lambda effort: search


def _build_annoy(vectors: Matrix, path: Path) -> None:
    from annoy import AnnoyIndex

    index = AnnoyIndex(vectors.shape[1], "angular")
    index.set_seed(1)
    for row in range(len(vectors)):
        index.add_item(row, vectors[row])
    index.build(25 if len(vectors) > 200_000 else 50, n_jobs=2)
    index.save(str(path))


def _serve_annoy(path: Path, dim: int) -> Callable[[int], Search]:
    from annoy import AnnoyIndex

    index = AnnoyIndex(dim, "angular")
    index.load(str(path))
    return lambda effort: (
        lambda query: index.get_nns_by_vector(query.tolist(), TEN, search_k=effort)
    )


def _build_hnswlib(vectors: Matrix, path: Path) -> None:
    import hnswlib

    index = hnswlib.Index(space="ip", dim=vectors.shape[1])
    index.init_index(len(vectors), M=16, ef_construction=200, random_seed=1)
    index.set_num_threads(2)
    index.add_items(vectors)
    index.save_index(str(path))


def _serve_hnswlib(path: Path, dim: int) -> Callable[[int], Search]:
    import hnswlib

    index = hnswlib.Index(space="ip", dim=dim)
    index.load_index(str(path))
    index.set_num_threads(1)

    def search_with(effort: int) -> Search:
        index.set_ef(effort)
        return lambda query: index.knn_query(query, TEN)[0][0]

    return search_with


def _build_usearch(vectors: Matrix, path: Path) -> None:
    from usearch.index import Index as Usearch

    # its default, half precision, reaches recall@10 .90 at 10,000 rows at every effort
    index = Usearch(
        ndim=vectors.shape[1], metric="cos", dtype="f32", connectivity=16, expansion_add=200
    )
    index.add(np.arange(len(vectors)), vectors, threads=2)
    index.save(str(path))


def _serve_usearch(path: Path, dim: int) -> Callable[[int], Search]:
    from usearch.index import Index as Usearch

    index: Any = Usearch.restore(str(path), view=True)

    def search_with(effort: int) -> Search:
        index.expansion_search = effort
        return lambda query: index.search(query, TEN, threads=1).keys

    return search_with


def _build_faiss(vectors: Matrix, path: Path) -> None:
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    faiss.write_index(index, str(path))


def _serve_faiss(path: Path, dim: int) -> Callable[[int], Search]:
    import faiss

    index = faiss.read_index(str(path))
    return lambda effort: lambda query: index.search(query[None], TEN)[1][0]


def _build_bm25s(texts: list[str], path: Path) -> None:
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    index.save(str(path))


def _serve_bm25s(path: Path, dim: int) -> Callable[[int], Search]:
    import bm25s

    index = bm25s.BM25.load(str(path))

    def search(question: str) -> NDArray[Any]:
        words = bm25s.tokenize(question, stopwords="en", show_progress=False, return_ids=False)
        return np.asarray(index.retrieve(words, k=TEN, show_progress=False, n_threads=0)[0][0])

    return lambda effort: search


_SEARCH_K = (500, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
_EFFORTS = (16, 32, 64, 128, 256, 512, 1024)
INDEXES = (
    Index("numpy exact", "numpy", "numpy", _build_numpy, _serve_numpy),
    Index("annoy", "annoy", "annoy", _build_annoy, _serve_annoy, _SEARCH_K),
    Index("hnswlib", "hnswlib", "hnswlib", _build_hnswlib, _serve_hnswlib, _EFFORTS),
    Index("usearch", "usearch", "usearch", _build_usearch, _serve_usearch, _EFFORTS),
    Index("faiss flat", "faiss", "faiss-cpu", _build_faiss, _serve_faiss),
    Index("bm25s", "bm25s", "bm25s", _build_bm25s, _serve_bm25s, lexical=True),
)
