"""A comparison of ways to search the vectors of a lab: exact, with SIMD, by Annoy, and by what else is installed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import MissingExtra
from memlab.kernel.base.arrays import Components, Ints
from memlab.kernel.index import KINDS, Base, Vectors, best, build_base, list_bases, scanner

_SUFFICIENT = 0.95
"""Recall from which the fastest way is recommended: a recall@10 of .95 loses one neighbour in two searches."""

# The columns of the table, as a reader of the report sees them.
_SCHEMA = {
    "way": pl.String,
    "recall": pl.Float64,
    "ms": pl.Float64,
    "build_seconds": pl.Float64,
    "megabytes": pl.Float64,
}

Search = Callable[[Components], Ints]


class Way(NamedTuple):
    """A way of search: a function from a query to rows, and the megabytes of its index."""

    search: Search
    megabytes: float


def compare_ways(
    vectors: Vectors, queries: Components, n: int, chosen: Mapping[str, int]
) -> tuple[pl.DataFrame, str]:
    """Measure each installed search method on the same queries.

    Indexes are built for the measurement, in a temporary folder or in memory, and removed. Times are those of the
    processor. ``chosen`` are settings of Annoy.

    Returns the table and the recommended way: the fastest with a recall of at least .95.
    """
    exact = [best(vectors.similarity(query), n) for query in queries]
    cuts = [
        float(vectors.similarity(query, rows[-1:])[0])
        for query, rows in zip(queries, exact, strict=True)
    ]
    measured = []
    with tempfile.TemporaryDirectory(prefix="memlab-ways-") as folder:
        for name, make in _WAYS.items():
            began = time.process_time()
            try:
                way = make(vectors, n, Path(folder), chosen)
            except (ImportError, MissingExtra):
                continue
            build = time.process_time() - began
            times, recalls = [], []
            for query, cut in zip(queries, cuts, strict=True):
                began = time.process_time()
                rows = way.search(query)
                times.append(time.process_time() - began)
                # Rows with equal cosines are equally good, whichever of them a way returns.
                near = vectors.similarity(query, np.sort(rows)) >= cut - 1e-9
                recalls.append(min(int(near.sum()), n) / n)
            ms = float(np.median(times)) * 1000
            measured.append((name, float(np.mean(recalls)), ms, build, way.megabytes))
    frame = pl.DataFrame(measured, schema=_SCHEMA, orient="row").sort("ms")
    return frame, frame.filter(pl.col("recall") >= _SUFFICIENT)["way"][0]


def _search_exactly(vectors: Vectors, n: int, _folder: Path, _chosen: Mapping[str, int]) -> Way:
    """Return an exact search by NumPy on single-precision vectors."""
    matrix = vectors.take().astype(np.float32)
    norms = np.sqrt(np.maximum(np.vecdot(matrix, matrix), 1.0)).astype(np.float64)
    return Way(
        lambda query: best(np.vecdot(matrix, query.astype(np.float32)) / norms, n),
        matrix.nbytes / 1e6,
    )


def _scan(vectors: Vectors, n: int, _folder: Path, _chosen: Mapping[str, int]) -> Way:
    """Return an exact search by numkong's integer products."""
    scan, matrix = scanner(), vectors.take()
    if scan is None:
        raise ImportError("numkong")
    wide = matrix.astype(np.float32)
    norms = np.sqrt(np.maximum(np.vecdot(wide, wide), 1.0)).astype(np.float64)
    return Way(
        lambda query: best(np.asarray(scan(query[None], matrix, metric="dot")).ravel() / norms, n),
        matrix.nbytes / 1e6,
    )


def _build_annoy(vectors: Vectors, n: int, folder: Path, chosen: Mapping[str, int]) -> Way:
    """Build an Annoy index; return a search that scores its candidates exactly."""
    build_base(vectors, folder, KINDS["annoy"], seconds=lambda: 0.0, chosen=chosen)
    ((path, header),) = list_bases(folder, "annoy")
    base = Base(path, header)

    def search(query: Components) -> Ints:
        rows = np.sort(base.candidates(query, n))
        return rows[best(vectors.similarity(query, rows), n)]

    return Way(search, header.size / 1e6)


def _build_usearch(vectors: Vectors, n: int, _folder: Path, _chosen: Mapping[str, int]) -> Way:
    """Build a usearch graph; return a search over it on 8-bit vectors."""
    from usearch.index import Index

    index = Index(ndim=vectors.dim, metric="cos", dtype="i8", expansion_search=128)
    index.add(np.arange(len(vectors)), vectors.take(), threads=1)
    return Way(
        lambda query: index.search(query, n, threads=1).keys.astype(np.int64),
        index.memory_usage / 1e6,
    )


def _build_faiss(vectors: Vectors, n: int, _folder: Path, _chosen: Mapping[str, int]) -> Way:
    """Build a faiss graph; return a search over it in single precision."""
    import faiss

    matrix = vectors.take().astype(np.float32)
    matrix /= np.sqrt(np.maximum(np.vecdot(matrix, matrix), 1.0))[:, None]
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # processor time of several threads is no time of a search
    try:
        index = faiss.IndexHNSWFlat(vectors.dim, 32, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efSearch = 128
        index.add(matrix)
    finally:
        faiss.omp_set_num_threads(threads)

    def search(query: Components) -> Ints:
        _, rows = index.search(query.astype(np.float32)[None], n)
        return np.asarray(rows[0][rows[0] >= 0], dtype=np.int64)

    # A row has its vector and twice 32 links of four bytes.
    return Way(search, (matrix.nbytes + len(matrix) * 64 * 4) / 1e6)


_WAYS: dict[str, Callable[[Vectors, int, Path, Mapping[str, int]], Any]] = {
    "exact": _search_exactly,
    "exact, SIMD (numkong)": _scan,
    "annoy": _build_annoy,
    "usearch": _build_usearch,
    "faiss": _build_faiss,
}
"""The compared ways by name. A way whose package is missing is left out."""
