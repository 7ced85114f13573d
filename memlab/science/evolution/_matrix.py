"""Score thousands of programs on one part of a log.

The candidates' features are arrays, in the order of recalls and memory ids. Programs of a search share
most of their subexpressions with their parents. So the values of subexpressions are kept under their
Merkle hashes, and a new program computes the path from its change to its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.language import Policy
from memlab.kernel.language.arrays import ArrayProgram, Slates, execute
from memlab.science.evaluation import METRICS
from memlab.science.evaluation.parts import (
    ARM,
    Evidence,
    Gold,
    Statistic,
    TopK,
    mean,
    rank_top_k,
    value_statistic,
)

_CACHE_BYTES = 192_000_000
"""The maximum bytes of the values that are cached: 800 subexpressions of 300 recalls of 100 candidates."""

Arrays = tuple[Any, Flags | None]
"""The values of a column or subexpression, and the mask of its nulls, or None."""


def read_columns(pool: pl.DataFrame, names: Mapping[str, str]) -> dict[str, Arrays]:
    """Return candidate columns as arrays, keyed by feature name.

    ``names`` has the column of each feature.
    """
    blank: dict[Any, Any] = {pl.Boolean: False, pl.String: ""}
    columns = {}
    for feature, name in names.items():
        series = pool[name]
        nulls = series.is_null().to_numpy() if series.null_count() else None
        if isinstance(series.dtype, pl.List):
            values: Any = np.fromiter(series.to_list(), object, len(series))
        else:
            if series.dtype.is_numeric():
                series = series.cast(pl.Float64)
            values = series.fill_null(blank.get(series.dtype, np.nan)).to_numpy()
            values = values.astype(object) if series.dtype == pl.String else values
        columns[feature] = (values, nulls)
    return columns


class Matrix:
    """The features of a log's candidates, with the values of subexpressions computed so far."""

    def __init__(self, columns: Mapping[str, Arrays], recall: Ints) -> None:
        self.columns, self.recall = dict(columns), recall
        # Least recently used values are dropped first. Values depend on their key alone, so the cache changes no
        # result. Each process has its own.
        self._cache: dict[str, Arrays] = {}
        self._capacity = max(8, _CACHE_BYTES // max(1, 8 * len(recall)))

    def __getstate__(self) -> dict[str, Any]:
        # Features are a few megabytes; the cache is computed again in a worker.
        return {**self.__dict__, "_cache": {}}

    @cached_property
    def _slates(self) -> Slates:
        """The recall of each candidate, as the group of aggregates."""
        return Slates(len(self.recall), codes=self.recall)

    def scores(self, policy: Policy) -> Floats:
        """Return the score of each candidate, f64[n]; NaN in place of null."""
        # A value is taken from the cache at the topmost node that has one, so nodes below it are not computed.
        computed: dict[int, Arrays] = {}
        visited, stack = set(), [policy.root]
        while stack:
            node = stack.pop()
            if node.index in visited:
                continue
            visited.add(node.index)
            if node.args and (stored := self._cache.pop(node.digest, None)) is not None:
                computed[node.index] = self._cache[node.digest] = stored
            else:
                stack.extend(node.args)
        program = ArrayProgram(policy.root, policy.derived, computed)
        values, masks = program.values, program.masks
        nullable = 0
        for position, (i, name, *_) in enumerate(program.inputs):
            index = program.nodes[i].index
            if index not in computed and name not in self.columns:
                self.columns[name] = policy.derived[name].array(
                    {key: pair[0] for key, pair in self.columns.items()}
                )
            values[i], masks[i] = computed[index] if index in computed else self.columns[name]
            nullable |= (masks[i] is not None) << position
        values[-1] = self._slates
        with np.errstate(all="ignore"):
            execute(program.compile(nullable), values, masks)
        for i, node in enumerate(program.nodes):
            if node.args and node.index not in computed and np.ndim(values[i]):
                self._cache[node.digest] = values[i], masks[i]
        while len(self._cache) > self._capacity:
            del self._cache[next(iter(self._cache))]
        i = program.slot[policy.root.index]
        result = np.broadcast_to(np.asarray(values[i], np.float64), len(self.recall))
        return result if masks[i] is None else np.where(masks[i], np.nan, result)


class LabelGoal:
    """A metric of labels, such as recall@10, computed from the ranks of relevant items alone."""

    def __init__(self, gold: Gold) -> None:
        log, self.cut, self.kind = gold.log, gold.cut, gold.name
        self.recall, self.judged = log.recall, gold.judged.astype(np.float64)
        self.count = np.where(gold.judged, gold.count, np.nan)
        self.sizes = np.bincount(log.recall, minlength=len(log))
        self.rows = log.rows_of(gold.wanted).drop_nulls().sort().to_numpy().astype(np.int64)
        starts = np.cumsum(self.sizes) - self.sizes
        self.offset = np.arange(len(log.recall)) - starts[log.recall]
        # The pool of each relevant item as rows of the scores; a last row, without a score, fills up smaller pools.
        own, column = log.recall[self.rows][:, None], np.arange(self.sizes.max(initial=1))
        inside = column < self.sizes[own]
        self.pools = np.where(inside, starts[own] + column, len(log.recall))
        # Ties are broken by memory id, the order of the rows.
        self.earlier = inside & (column < self.offset[self.rows][:, None])
        self.statistic: Statistic = mean

    def ranks(self, scores: Floats) -> Ints:
        """Return the rank of each relevant item in its pool, or 0 for an item without a score."""
        padded = np.append(scores, -np.inf)
        padded[~np.isfinite(padded)] = -np.inf
        pool, own = padded[self.pools], padded[self.rows][:, None]
        rank = 1 + np.count_nonzero(np.where(self.earlier, pool >= own, pool > own), axis=1)
        return np.where(np.isneginf(own[:, 0]), 0, rank)

    def totals(self, scores: Floats) -> Floats:
        """Return, for each recall, whether it has labels, and its metric: f64[recalls, 2]."""
        rank = self.ranks(scores)
        visible = (rank > 0) & (rank <= self.cut)
        relevant = np.zeros((len(self.sizes), self.cut), dtype=np.bool_)
        relevant[self.recall[self.rows[visible]], rank[visible] - 1] = True
        values = METRICS[self.kind](relevant, self.count)
        return np.column_stack([self.judged, np.nan_to_num(values)])


class FeedbackGoal:
    """The mean reward of a policy, where unsupported items count as the minimum reward."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.statistic: Statistic = value_statistic(evidence.estimator, evidence.reward_range[0])

    def top_k(self, scores: Floats, name: str = "") -> TopK:
        """Return the items that a policy with these scores would show."""
        log = self.evidence.log
        rows, ranks = rank_top_k(scores, log.recall, log.limit)
        order = np.argsort(rows)
        return TopK(name, rows[order], np.zeros(len(log)), ranks[order])

    def totals(self, scores: Floats) -> Floats:
        """Return the sums of rewards and weights by recall, f64[recalls, 1 + ARM]."""
        return self.evidence.totals(self.top_k(scores))[:, : 1 + ARM]


Goal = LabelGoal | FeedbackGoal
