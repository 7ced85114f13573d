"""Tests of the assumptions about which items a log showed."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.science.evaluation._duplicates import count_unseen
from memlab.science.evaluation._evidence import TopK
from memlab.science.evaluation._log import Log, is_randomised
from memlab.science.evaluation._position import (
    lot_position_p,
    pair_probes,
    random_position_p,
)
from memlab.science.evaluation._prepared import Settings
from memlab.science.evaluation._reward_model import scale_ranks
from memlab.science.evaluation._tests import (
    MIN_P,
    UNSURE,
    Balance,
    independence_p,
    missing_p,
    position_p,
    redundancy_p,
    score_strata,
)


class Tests:
    """The p-values of the assumptions of an estimate, each computed on first use.

    A p-value is NaN if the log lacks the data of the test, and None if the estimate does not depend
    on the assumption. The matrix ``features`` is f64[n, k] over the candidates, and its first
    column is the score.
    """

    def __init__(self, log: Log, settings: Settings, features: Floats) -> None:
        self._log, self._settings, self._features = log, settings, features

    @cached_property
    def independence(self) -> float | None:
        """The p-value of the hypothesis that rewards are independent over time."""
        log = self._log
        if log.clusters < len(log) and log.clustered != "query":
            return None
        if "at" not in log.decisions.columns or log.decisions["at"].null_count():
            return math.nan
        residual = np.where(log.answered, np.nan_to_num(log.reward), 0.0)
        residual = residual - np.where(
            log.answered, residual.sum() / max(1, log.answered.sum()), 0.0
        )
        earned = np.bincount(log.recall, weights=residual, minlength=len(log))
        order = log.decisions["at"].arg_sort().to_numpy()
        # Recalls of one query are one unit, at the time of the first of them.
        first = order[np.sort(np.unique(log.cluster[order], return_index=True)[1])]
        units = np.bincount(log.cluster, weights=earned) / np.bincount(log.cluster)
        return independence_p(units[log.cluster[first]])

    @cached_property
    def missing(self) -> float | None:
        """The p-value of the hypothesis that missing feedback is independent of features."""
        log, exposed = self._log, self._log.exposed
        if self._settings.missing != "censor" or log.answered[exposed].all():
            return None
        features = np.column_stack(
            [_scale_columns(self._features[exposed]), np.log(np.maximum(log.position[exposed], 1))]
        )
        return missing_p(features, log.answered[exposed], log.recall[exposed])

    @cached_property
    def position(self) -> float | None:
        """The p-value of the hypothesis that rewards are independent of the position."""
        log = self._log
        if self._settings.position or self._has_single_items:
            return None
        if not self._is_scored.any():
            return math.nan
        pairs = pair_probes(log, self.scaled_rank)
        by_chance = lot_position_p(log) if pairs is None else random_position_p(pairs, log)
        strata, reward, recall = self._scored_items
        by_strata = position_p(strata, log.position[self._is_scored], reward, recall)
        if by_chance is None or math.isnan(by_chance):
            return by_strata
        # The strata have a tenth of the level, and random positions the rest.
        by_strata = 1.0 if math.isnan(by_strata) else by_strata
        return min(1.0, by_chance / (1 - 1 / UNSURE), by_strata)

    @cached_property
    def redundancy(self) -> float | None:
        """The p-value of the hypothesis that an item's reward is independent of the other items."""
        if self._has_single_items:
            return None
        return redundancy_p(*self._scored_items) if self._is_scored.any() else math.nan

    def redundancy_of(self, top_k: TopK) -> float | None:
        """Return the p-value of the redundancy test for one policy.

        It is NaN if the test passed on what was shown, but the policy would show other items
        together, and the log lacks the content of these items.
        """
        return doubt_redundancy(self.redundancy, count_unseen(self._log, top_k.rows))

    def balance(self, top_k: TopK) -> float | None:
        """Return the p-value of the hypothesis that the logged propensities are correct.

        Membership of ``top_k`` is one of the weights of the test.
        """
        if self._contradicted:
            return 0.0
        if not len(self._randomised_rows):
            return None
        return self._balance.p(self._mark_randomised(top_k))

    def balance_sums(self, top_k: TopK) -> tuple[Floats, Floats]:
        """Return the propensity test's residuals by recall, and their squares."""
        if not len(self._randomised_rows):
            return np.zeros((0, 3)), np.zeros((0, 3))
        return self._balance.sums(self._mark_randomised(top_k))

    def _mark_randomised(self, top_k: TopK) -> Floats:
        """Return, for each randomised candidate, 1 if it is in a top-k, otherwise 0, as f64[randomised, 1]."""
        member = np.zeros(len(self._log.propensity))
        member[top_k.rows] = 1.0
        return member[self._randomised_rows, None]

    @cached_property
    def _has_single_items(self) -> bool:
        """Whether every recall showed at most one item."""
        return bool(np.bincount(self._log.recall[self._log.exposed], minlength=1).max() < 2)

    @cached_property
    def _is_scored(self) -> Flags:
        """Whether each candidate was shown with a reward and a position; all are false if all scores are equal.

        Without different scores, the effect of a high position cannot be separated from the effect of a good item.
        """
        return self._log.answered & (self._log.position > 0) & bool(np.ptp(self._features[:, 0]))

    @cached_property
    def strata(self) -> Ints:
        """The stratum of each candidate's score within its recall."""
        recall, size = self._log.recall, np.bincount(self._log.recall, minlength=len(self._log))
        return score_strata(self._features[:, 0], np.rint(self.scaled_rank * size[recall]), recall)

    @property
    def _scored_items(self) -> tuple[Ints, Floats, Ints]:
        """The score strata, rewards and recalls of the items that ``_is_scored`` selects."""
        log = self._log
        return (
            self.strata[self._is_scored],
            log.reward[self._is_scored],
            log.recall[self._is_scored],
        )

    @cached_property
    def scaled_rank(self) -> Floats:
        """The rank of each candidate in its recall, from 0 for the highest score to below 1."""
        return scale_ranks(self._features[:, 0], self._log)

    @cached_property
    def _randomised_rows(self) -> Ints:
        """The row numbers of the randomised candidates."""
        return np.flatnonzero(is_randomised(self._log.propensity))

    @cached_property
    def _contradicted(self) -> bool:
        """Whether an item with a propensity of 1 was not shown, which contradicts the log."""
        return bool(((self._log.propensity >= 1) & ~self._log.exposed).any())

    @cached_property
    def _balance(self) -> Balance:
        """The test of the hypothesis that logged propensities are correct, for any policy."""
        log, rows = self._log, self._randomised_rows
        propensity, recall, rank = log.propensity[rows], log.recall[rows], self.scaled_rank[rows]
        weight = None
        # Propensities of a Gumbel draw are conditional on its threshold, so a weight must come from other recalls.
        if "sampler" in log.decisions.columns:
            is_gumbel = (log.decisions["sampler"] == "gumbel").fill_null(False).to_numpy()[recall]
            weight = (
                np.where(is_gumbel, _mean_elsewhere(propensity, rank, recall), propensity)
                if is_gumbel.any()
                else None
            )
        return Balance(
            np.column_stack([np.ones(len(rows)), rank]),
            log.exposed[rows],
            propensity,
            recall,
            weight,
        )


def doubt_redundancy(p: float | None, unseen: int) -> float | None:
    """Return a test's p-value, or NaN if the policy shows pairs that are not in the log.

    ``unseen`` is the number of recalls in which the policy would show other pairs.
    """
    return math.nan if unseen and p is not None and p >= MIN_P else p


def _mean_elsewhere(propensity: Floats, ranks: Floats, recall: Ints) -> Floats:
    """Return the mean propensity at the same rank in the other recalls, or 0 if there are none."""
    order = np.lexsort((ranks, recall))
    first = np.searchsorted(recall[order], recall[order])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - first
    count, total = np.bincount(rank)[rank], np.bincount(rank, weights=propensity)[rank]
    return np.asarray((total - propensity) / np.maximum(count - 1, 1))


def _scale_columns(features: Floats) -> Floats:
    """Scale columns to mean 0 and standard deviation 1; constant columns become 0."""
    scale = features.std(axis=0)
    return np.asarray((features - features.mean(axis=0)) / np.where(scale > 0, scale, 1.0))
