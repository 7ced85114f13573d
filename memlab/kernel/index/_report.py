"""A measurement of an index: recall against exact search, and times."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arrays import Components, Floats, Ints
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.progress import bar
from memlab.kernel.index._arrays import best
from memlab.kernel.index._neighbours import Neighbours

# The number of queries that are scored exactly at a time, and of exact searches that are timed. Larger numbers would
# only take time.
_BATCH = 8
_TIMED = 20
_SLOW = 20_000_000
"""The product of queries and rows from which the measurement lasts more than a second and shows a progress bar."""


@dataclass(frozen=True)
class IndexReport(Displayed):
    """The measurement of an index, as returned by ``lab.upkeep.index.report()``.

    Parameters
    ----------
    index
        The kind of the index, or "exact" if none is in use.
    rows, covered, delta
        The number of all vectors, of vectors in the index, and of vectors added later, which are searched exactly.
    settings
        The settings of the index.
    megabytes, build_seconds
        The size of the index file, and the time of its build.
    n, queries
        The number of neighbours per query, and the number of queries.
    recall, low, high
        The mean share of the exact ``n`` nearest vectors that the index finds, with the bounds of its 95% confidence
        interval. The interval is Wilson's with one trial per query, which is conservative.
    p50_ms, p95_ms, exact_p50_ms, exact_p95_ms
        The median and the 95th percentile of the wall time of one search in milliseconds, with the index and with exact
        search.
    building
        Whether a new index is being built.
    failure
        The reason why the last index was refused or not built, or None.
    problems
        Messages about damage that ``verify`` has detected, or None if no check was requested.
    ways, recommended
        The compared ways of search and the recommended way, with ``compare``; otherwise None. A row has the recall, the
        median of the processor time of a search, the processor time of the build, and the size.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["Ana prefers tabs", "Ben prefers spaces"])
    >>> report = lab.upkeep.index.report(n=1)
    >>> report.index, report.rows, report.recall
    ('exact', 2, 1.0)
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
    ways: pl.DataFrame | None = field(default=None)
    recommended: str | None = field(default=None)

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with the recall and latency of each compared search, one row per search."""
        if self.ways is not None:
            return self.ways
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
        """Return the lines of the report as text."""
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
                f"{self.index}: {self.covered:,} of {self.rows:,} rows; the other {self.delta:,} are searched exactly.",
                f"recall@{self.n} {self.recall:.3f} [{self.low:.3f}, {self.high:.3f}] over {self.queries:,} queries; "
                f"{self.p50_ms:.2f} ms (p95 {self.p95_ms:.2f}), "
                f"exact {self.exact_p50_ms:.2f} (p95 {self.exact_p95_ms:.2f}).",
                f"{settings}; {self.megabytes:,.0f} MB{built}.",
            ]
        if self.building:
            lines.append("A new index is being built.")
        if self.failure is not None:
            lines.append(self.failure)
        if self.recommended is not None:
            lines.append(f"Recommended: {self.recommended}.")
        if self.problems is not None:
            lines += list(self.problems) or ["Index and vectors are undamaged."]
        return lines


def report(
    neighbours: Neighbours,
    queries: Components | None = None,
    *,
    n: int = 10,
    sample: int = 200,
    seed: int = 0,
    verify: bool = False,
    progress: bool = True,
) -> IndexReport:
    """Measure the search of ``neighbours`` against exact search.

    ``queries`` is a matrix (q, dim) of vectors of real queries. Without it, ``sample`` stored vectors are drawn with
    ``seed`` and used as queries. Stored vectors are easier to find neighbours of, so the measured recall is higher.
    With ``verify``, the whole index and all vectors are also checked for damage.

    Raises
    ------
    InputError
        If there are no rows, queries or neighbours.
    """
    neighbours.refresh()
    vectors, base = neighbours.vectors, neighbours.base
    if n < 1 or sample < 1 or not len(vectors):
        raise InputError("A report on an index needs at least one row, n >= 1 and sample >= 1.")
    # A stored vector that is used as a query is no neighbour of itself.
    own: Ints | None = None
    if queries is None:
        own = np.sort(
            np.random.default_rng(seed).choice(
                len(vectors), min(sample, len(vectors)), replace=False
            )
        )
        queries = vectors.take(own)
    if queries.ndim != 2 or not len(queries):
        raise InputError(
            f"Queries must be a matrix of shape (queries, {vectors.dim}), not {queries.shape}."
        )
    shares: list[float] = []
    times: list[float] = []
    exact_times: list[float] = []
    approximate = base is not None and len(vectors) > vectors.searched_up_to
    with bar(
        progress and len(queries) * len(vectors) > _SLOW, len(queries), unit="query", desc="index"
    ) as step:
        for start in range(0, len(queries), _BATCH):
            batch = queries[start : start + _BATCH]
            for offset, scores in enumerate(vectors.similarity(batch)):
                query = batch[offset]
                itself = -1 if own is None else int(own[start + offset])
                start_time = time.perf_counter()
                rows, cosines = vectors.top(query, n + (own is not None))
                times.append(time.perf_counter() - start_time)
                shares.append(_recall_of_query(scores, rows, cosines, n, itself))
                if len(exact_times) < _TIMED:
                    start_time = time.perf_counter()
                    best(vectors.similarity(query), n)
                    exact_times.append(time.perf_counter() - start_time)
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


def _recall_of_query(
    scores: Floats,
    rows: Ints,
    cosines: Floats,
    n: int,
    itself: int,
) -> float:
    """Return the share of the exact top ``n`` that a search returned.

    ``scores`` has the exact score of each row; ``rows`` and ``cosines`` are the search's results. A row
    whose score equals the ``n``-th greatest counts as part of the top ``n``. ``itself`` is the row of
    the query, which is left out, or -1.
    """
    if itself >= 0:
        scores = scores.copy()
        scores[itself] = -math.inf
        others = rows != itself
        rows, cosines = rows[others], cosines[others]
    wanted = min(n, len(scores) - (itself >= 0))
    if not wanted:
        return 1.0
    minimum = scores[best(scores, wanted)[-1]]
    return int((cosines[:wanted] >= minimum).sum()) / wanted


def wilson(share: float, trials: int) -> tuple[float, float]:
    """Return the 95% Wilson confidence interval of a proportion.

    See Wilson (1927).
    """
    z = NormalDist().inv_cdf(0.975)
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = (
        z
        / (1 + z * z / trials)
        * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    )
    return max(0.0, centre - half), min(1.0, centre + half)


def _quantile_ms(seconds: list[float], share: float) -> float:
    """Return a quantile, in milliseconds, of durations in seconds."""
    return float(np.quantile(seconds, share)) * 1000
