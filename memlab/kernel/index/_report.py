"""How good an index is, measured on the spot: recall against exact search, and what both cost."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.progress import bar
from memlab.kernel.index._arrays import best
from memlab.kernel.index._neighbours import Neighbours

__all__ = ["IndexReport", "report"]

_BATCH = 8
_TIMED = 20
_SLOW = 20_000_000
"""Queries times rows beyond which the measurement takes more than a second, and a bar is drawn."""


@dataclass(frozen=True)
class IndexReport(Displayed):
    """What ``report`` measured.

    ``recall`` is the mean share of the exact ``n`` nearest that a search finds, with its 95% interval (Wilson's,
    where a query counts as one trial, so rather wide). Times are milliseconds of one search for ``n`` over all rows,
    by the wall.
    ``index`` is "exact" where no index is in use; ``problems`` are those of ``verify``, if it was asked for.
    """

    index: str
    rows: int
    covered: int
    delta: int
    settings: dict[str, int]
    megabytes: float
    build_seconds: float | None
    n: int
    queries: int
    recall: float
    low: float
    high: float
    p50_ms: float
    p95_ms: float
    exact_p50_ms: float
    exact_p95_ms: float
    building: bool
    failure: str | None
    problems: tuple[str, ...] | None = field(default=None)

    @property
    def frame(self) -> pl.DataFrame:
        """Two rows, the search as it is and the exact one: way, recall, low, high, p50_ms, p95_ms."""
        return pl.DataFrame(
            [
                (self.index, self.recall, self.low, self.high, self.p50_ms, self.p95_ms),
                ("exact", 1.0, 1.0, 1.0, self.exact_p50_ms, self.exact_p95_ms),
            ],
            schema=["way", "recall", "low", "high", "p50_ms", "p95_ms"],
            orient="row",
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _display(self) -> object:
        return self._lines(), self.frame

    def _lines(self) -> list[str]:
        if self.index == "exact":
            lines = [
                f"Exact search over {self.rows:,} rows: {self.exact_p50_ms:.2f} ms (p95 {self.exact_p95_ms:.2f})."
            ]
        else:
            settings = ", ".join(
                f"{name} {value:,}" for name, value in self.settings.items() if name != "seed"
            )
            built = "" if self.build_seconds is None else f", built in {self.build_seconds:,.0f} s"
            lines = [
                f"{self.index}: {self.covered:,} of {self.rows:,} rows, {self.delta:,} later ones searched exactly.",
                f"recall@{self.n} {self.recall:.3f} [{self.low:.3f}, {self.high:.3f}] over {self.queries:,} queries; "
                f"{self.p50_ms:.2f} ms (p95 {self.p95_ms:.2f}), "
                f"exact {self.exact_p50_ms:.2f} (p95 {self.exact_p95_ms:.2f}).",
                f"{settings}; {self.megabytes:,.0f} MB{built}.",
            ]
        if self.building:
            lines.append("A new index is being built.")
        if self.failure is not None:
            lines.append(self.failure)
        if self.problems is not None:
            lines += list(self.problems) or ["Index and vectors are whole."]
        return lines


def report(
    neighbours: Neighbours,
    queries: NDArray[np.int8] | None = None,
    *,
    n: int = 10,
    sample: int = 200,
    seed: int = 0,
    verify: bool = False,
    progress: bool = True,
) -> IndexReport:
    """Measure the search of ``neighbours`` against the exact one.

    ``queries`` (q, dim) are best those that people asked. Without them ``sample`` stored vectors are drawn with
    ``seed``, each looking for its neighbours without itself: easier than a question, so recall comes out higher.
    ``verify`` also reads the whole index and all vectors for damage. InputError for no rows, queries or neighbours.
    """
    neighbours.refresh()
    vectors, base = neighbours.vectors, neighbours.base
    if n < 1 or sample < 1 or not len(vectors):
        raise InputError(
            "A report on an index needs at least one row, one query and one neighbour."
        )
    own: NDArray[np.int64] | None = None
    if queries is None:
        own = np.sort(
            np.random.default_rng(seed).choice(
                len(vectors), min(sample, len(vectors)), replace=False
            )
        )
        queries = vectors.take(own)
    if queries.ndim != 2 or not len(queries):
        raise InputError(f"Queries are a matrix (queries, {vectors.dim}), not {queries.shape}.")
    shares: list[float] = []
    times: list[float] = []
    exact_times: list[float] = []
    approximate = base is not None and len(vectors) > vectors.exact_up_to
    with bar(
        progress and len(queries) * len(vectors) > _SLOW, len(queries), unit="query", desc="index"
    ) as step:
        for start in range(0, len(queries), _BATCH):
            batch = queries[start : start + _BATCH]
            for offset, scores in enumerate(vectors.similarity(batch)):
                query = batch[offset]
                itself = -1 if own is None else int(own[start + offset])
                began = time.perf_counter()
                found, cosines = vectors.top(query, n + (own is not None))
                times.append(time.perf_counter() - began)
                shares.append(_share(scores, found, cosines, n, itself))
                if len(exact_times) < _TIMED:
                    began = time.perf_counter()
                    best(vectors.similarity(query), n)
                    exact_times.append(time.perf_counter() - began)
            step(len(batch))
    recall = float(np.mean(shares))
    low, high = wilson(recall, len(shares))
    in_use = base if approximate else None
    return IndexReport(
        index="exact" if in_use is None else in_use.header.kind,
        rows=len(vectors),
        covered=0 if in_use is None else len(in_use),
        delta=len(vectors) if in_use is None else len(vectors) - len(in_use),
        settings={} if in_use is None else in_use.settings,
        megabytes=0.0 if in_use is None else in_use.header.size / 1e6,
        build_seconds=None if in_use is None else in_use.header.seconds,
        n=n,
        queries=len(queries),
        recall=recall,
        low=low,
        high=high,
        p50_ms=_quantile_ms(times, 0.5),
        p95_ms=_quantile_ms(times, 0.95),
        exact_p50_ms=_quantile_ms(exact_times, 0.5),
        exact_p95_ms=_quantile_ms(exact_times, 0.95),
        building=neighbours.building,
        problems=neighbours.verify() if verify else None,
        failure=neighbours.failure,
    )


def _share(
    scores: NDArray[np.float64],
    found: NDArray[np.int64],
    cosines: NDArray[np.float64],
    n: int,
    itself: int,
) -> float:
    """How many of the ``n`` best are found; one that ties with the last of them is as good."""
    if itself >= 0:
        scores = scores.copy()
        scores[itself] = -math.inf
        others = found != itself
        found, cosines = found[others], cosines[others]
    wanted = min(n, len(scores) - (itself >= 0))
    if not wanted:
        return 1.0
    least = scores[best(scores, wanted)[-1]]
    return int((cosines[:wanted] >= least).sum()) / wanted


def wilson(share: float, trials: int) -> tuple[float, float]:
    """Return the 95% interval of Wilson (1927) of a share of so many trials."""
    z = NormalDist().inv_cdf(0.975)
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = (
        z
        / (1 + z * z / trials)
        * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    )
    return max(0.0, centre - half), min(1.0, centre + half)


def _quantile_ms(seconds: list[float], share: float) -> float:
    return float(np.quantile(seconds, share)) * 1000
