"""Evaluate policies from sums over the recalls of a log."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import NO_ROWS, Floats, Ints
from memlab.kernel.base.printable import count_of
from memlab.science.evaluation._evaluation import Evaluation
from memlab.science.evaluation._evidence import (
    COLUMNS,
    Estimates,
    TopK,
    difference_statistic,
    value_statistic,
)
from memlab.science.evaluation._exact import LOWER, round_exact, unfix
from memlab.science.evaluation._intervals import Estimate, Sample, mean
from memlab.science.evaluation._item_tests import Tests, doubt_redundancy
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._measure import Compared, Measured, repeated_note
from memlab.science.evaluation._observed import EMPTY, Observed
from memlab.science.evaluation._prepared import (
    Estimator,
    Settings,
    check_estimator,
    check_missing,
    with_baseline,
)
from memlab.science.evaluation._reward_model import enough_recalls
from memlab.science.evaluation._rows import describe_assumptions, name_logging, rank_policies
from memlab.science.evaluation._sums import FACTS, ITEMS, PartialSums
from memlab.science.evaluation._targets import Ranker, Refused, Target, refuse_unscored
from memlab.science.evaluation._tests import (
    Facts,
    balance_p,
    effective_count,
    gates,
    independence_p,
)

# Sums have no single items, so arrays over items are empty.
_NOTHING = np.zeros(0)


def _evaluate_sums(
    sums: PartialSums, *, estimator: Estimator, level: float, baseline: str | None
) -> Evaluation:
    """Evaluate the policies of sums; see ``Sums.evaluate``."""
    # The policies are ranked by the rules of a log in memory; only their totals come from elsewhere.
    definition = sums.definition
    if definition is None:
        raise InputError(
            "The sums have no recalls, so there is nothing to evaluate. Sum a partition that has some."
        )
    log = _Summed(sums, estimator, level)
    if definition.missing is None:
        check_missing(log.silent, *sums.ends)
    check_estimator(estimator, log.silent)
    packs = list(sums.packs)
    own = next((ranker for ranker in log.rankers if ranker.sort == "logged"), None)
    requested = [ranker for ranker in log.rankers if ranker.name in definition.requested]
    rankers, baseline = with_baseline(requested, baseline, packs, own)
    unscored = {
        ranker.name: sums.totals[f"unscored {log.numbers[ranker.name]}"][0] for ranker in rankers
    }
    refused = [Refused(*refusal) for refusal in definition.refusals]
    refused += [
        refuse_unscored(name, count) for name, count in unscored.items() if count == log.candidates
    ]
    names = [ranker.name for ranker in rankers if unscored[ranker.name] < log.candidates]
    kinds: dict[str, Literal["re-scored", "re-recalled"]] = dict.fromkeys(names, "re-scored")
    logging = name_logging(requested, packs)
    ranked = rank_policies(
        kinds,
        baseline,
        level,
        len(sums),
        log.compare,
        log.measure,
        lambda name: log.state_fact(name) if name in logging else None,
    )
    return Evaluation(
        rows=ranked.rows,
        refusals=tuple(refused),
        notes=(*log.notes, *log.describe_unscored(unscored)),
        settings=log.settings,
        baseline=baseline,
        method=log.method,
        recalls=len(sums),
        clusters=log.clusters,
        needed=ranked.needed,
        given=definition.requested,
        observed=log.observe(),
        _log=log.without_recalls,
        _targets=tuple(_target(ranker) for ranker in rankers if ranker.name in kinds),
        _schema=pl.Schema(),
        _features=(),
        _lab=None,
        _between=ranked.between,
        _digest=hashlib.sha256(sums.to_bytes()).hexdigest(),
    )


class _Summed:
    """A log of which only sums are left."""

    def __init__(self, sums: PartialSums, estimator: Estimator, level: float) -> None:
        assert sums.definition is not None
        self._sums, self._definition = sums, sums.definition
        self.rankers = [
            Ranker(name, sort, (), source, hash)  # type: ignore[arg-type]
            for name, sort, source, hash in self._definition.policies
        ]
        self.numbers = {ranker.name: number for number, ranker in enumerate(self.rankers)}
        self.clusters = sums.cells.height
        (
            items,
            silent,
            self.candidates,
            self._randomised,
            self._unknown,
            self._unlisted,
            self._wrong,
        ) = sums.totals["log"]
        self.silent = silent / items if items else 0.0
        missing = self._definition.missing or "censor"
        self.settings = Settings(
            "feedback",
            None,
            missing,
            estimator,
            level,
            self._definition.reward_range,
            self._definition.cluster,
        )
        self._estimates = Estimates(
            estimator=estimator, level=level, reward_range=self.settings.reward_range
        )

    @cached_property
    def _is_single(self) -> bool:
        """Whether each recall forms its own cluster."""
        return self.clusters == len(self._sums)

    @property
    def unit(self) -> str:
        """The name of the unit that forms a cluster."""
        unit = self._definition.unit
        return "decision" if unit == "query" and self._is_single else unit

    @property
    def method(self) -> str:
        """The method of the intervals, with the unit of a cluster."""
        method = self._sample(np.ones((self.clusters, 0))).method
        return method.replace("clusters", f"clusters ({self.unit})", 1)

    @property
    def notes(self) -> list[str]:
        """Remarks on the log, its sums and its assumptions."""
        notes = [_fill_counts(note, counts) for note, counts in self._sums.notes.items()]
        recalls = self._sums.sample["recall"].n_unique()
        if len(self._sums) > recalls > 0:
            notes.append(
                f"Position, redundancy and missing feedback were tested on {recalls:,} recalls, drawn by a hash of their "
                "ids."
            )
        return notes + describe_assumptions(
            self.settings.missing,
            self.silent,
            without_chance=not self._randomised and self._unknown < self.candidates,
            pool_unknown=self._unlisted > 0,
        )

    def describe_unscored(self, unscored: dict[str, int]) -> list[str]:
        """Return remarks on policies with unscored candidates or repeated items."""
        notes = [
            f"{name} gives {count_of(count, 'candidate')} no finite score and would not show them."
            for name, count in unscored.items()
            if 0 < count < self.candidates
        ]
        for name in unscored:
            notes += repeated_note(name, self._sums.totals[f"repeated {self.numbers[name]}"][0])
        return notes

    def _totals(
        self,
        frame: pl.DataFrame,
        own: str,
        less: str = "",
        names: list[str] | tuple[str, ...] = COLUMNS,
    ) -> Floats:
        """Return the totals of the items in one set but not in another, f64[rows, columns]."""

        def read(name: str) -> Ints:
            """Return a column of integers, or 0 if the frame lacks the column."""
            if name not in frame.columns:
                return np.zeros(frame.height, dtype=np.int64)
            return frame[name].to_numpy()

        columns = []
        for name in names:
            upper, lower = (
                read(f"{own} {name}{end}") - read(f"{less} {name}{end}") for end in ("", LOWER)
            )
            columns.append(unfix(upper, lower))
        return np.column_stack(columns)

    def _arms(self, frame: pl.DataFrame, name: str, other: str | None) -> Floats:
        """Return the number of recalls, followed by the totals of a value or a difference."""
        first = str(self.numbers[name])
        parts = [frame["recalls"].to_numpy()[:, None].astype(np.float64)]
        if other is None:
            return np.concatenate([*parts, self._totals(frame, first)], axis=1)
        second, both = str(self.numbers[other]), self._pair(name, other)
        parts += [self._totals(frame, first, both), self._totals(frame, second, both)]
        return np.concatenate(parts, axis=1)

    def _pair(self, name: str, other: str) -> str:
        """Return the name of the set of items that two policies share."""
        return "&".join(map(str, sorted((self.numbers[name], self.numbers[other]))))

    def _sample(self, totals: Floats) -> Sample:
        """Return totals by cluster as a sample; without columns, use the numbers of recalls."""
        if not totals.shape[1]:
            totals = self._sums.cells["recalls"].to_numpy()[:, None].astype(np.float64)
        return Sample(totals, level=self.settings.level)

    def compare(self, name: str, other: str | None) -> Compared:
        """Estimate a policy's value, and its difference to another policy."""
        cells, buckets = self._sums.cells, self._sums.buckets
        value = self._estimates.value(self._sample(self._arms(cells, name, None)))
        top_k = TopK(name, NO_ROWS, _NOTHING)
        if other is None:
            return Compared(top_k, None, self._arms(buckets, name, None), *value)
        difference = self._estimates.difference(self._sample(self._arms(cells, name, other)))
        base = TopK(other, NO_ROWS, _NOTHING)
        return Compared(top_k, base, self._arms(buckets, name, other), *value, *difference)

    def state_fact(self, name: str) -> Compared | None:
        """Return a logging policy's observed totals; None if some of its items were not shown."""
        counts = self._items(str(self.numbers[name]))
        if counts["hidden"]:
            return None
        cells, number = self._sums.cells, str(self.numbers[name])
        items, answered, earned = self._totals(cells, number, names=FACTS).T
        nothing = np.zeros(len(items))
        open_items = items - answered if self.settings.missing == "bounds" else nothing
        arm = [items - open_items, answered, earned, nothing, nothing, nothing, nothing, open_items]
        recalls = cells["recalls"].to_numpy().astype(np.float64)
        totals = np.column_stack([recalls, *arm])
        top_k = TopK(name, NO_ROWS, _NOTHING)
        return Compared(top_k, None, totals, *self._estimates.value(self._sample(totals)))

    def _items(self, group: str) -> dict[str, int]:
        """Return the counts of an item set by name."""
        counts = self._sums.totals.get(f"items {group}", (0,) * len(ITEMS))
        return dict(zip(ITEMS, counts, strict=True))

    def measure(self, compared: Compared) -> Measured:
        """Count the evidence on a policy and check its gates, as ``_measure.measure`` does."""
        name, low_high = compared.top_k.name, self.settings.reward_range
        own = self._items(str(self.numbers[name]))
        if compared.base is None:
            disputed = own
            statistic = value_statistic(self.settings.estimator, low_high[0])
        else:
            other = self._items(str(self.numbers[compared.base.name]))
            shared = self._items(self._pair(name, compared.base.name))
            disputed = {key: own[key] + other[key] - 2 * shared[key] for key in ITEMS}
            statistic = difference_statistic(self.settings.estimator, *low_high)
        probes = disputed["probes"]
        influence = self._estimates.influence(compared.totals, statistic)
        effective = effective_count(influence) if probes else None
        items = own["items"]
        facts = Facts(
            unknown=own["unknown"] / items if items else 0.0,
            clusters=self.clusters,
            recalls=len(self._sums),
            probes=float(probes) if disputed["randomised"] else None,
            effective=effective,
            independence=self._independence,
            balance=self._balance(name),
            missing=self._tests.missing,
            position=self._tests.position,
            redundancy=doubt_redundancy(
                self._tests.redundancy,
                self._sums.totals[f"repeated {self.numbers[name]}"][1],
            ),
        )
        unsupported = np.nan if own["incomplete"] else own["impossible"] / items if items else 0.0
        return Measured(unsupported, facts.unknown, probes, effective, gates(facts), _NOTHING)

    def _balance(self, name: str) -> float | None:
        """Return the p-value of the hypothesis that the logged propensities are correct.

        It is None if nothing was randomised, NaN with fewer than two recalls, and 0 if a propensity is certainly
        wrong.
        """
        count, *sums = self._sums.totals[f"balance {self.numbers[name]}"]
        if self._wrong:
            return 0.0
        if not self._randomised:
            return None
        if count < 2:
            return np.nan
        first, products, squares = sums[:3], sums[3:9], sums[9:]
        covariance = np.zeros((3, 3))
        for left, right, product in zip(*np.triu_indices(3), products, strict=True):
            # Integers until the last division, because the difference cancels.
            spread = (product * count << 1127) - first[left] * first[right]
            covariance[left, right] = covariance[right, left] = round_exact(
                spread, (count * (count - 1)) << 1127
            )
        means = np.array([round_exact(total, count) for total in first])
        return balance_p(
            count, means, covariance, np.array([round_exact(total) for total in squares])
        )

    @cached_property
    def _independence(self) -> float | None:
        """The p-value of the hypothesis that rewards are independent over time.

        It is None if sums by cluster cannot test this, and NaN if a recall has no time.
        """
        if not self._is_single and self._definition.unit != "query":
            return None
        if self._sums.totals["untimed"][0]:
            return np.nan
        cells = self._sums.cells
        _, answered, earned = self._totals(cells, "shown", names=FACTS).T
        residual = earned - answered * (earned.sum() / max(1.0, answered.sum()))
        order = cells.select(pl.arg_sort_by("at", "cluster")).to_series().to_numpy()
        return independence_p((residual / cells["recalls"].to_numpy())[order])

    @cached_property
    def _tests(self) -> _SampledTests:
        """The tests that compare single items, for the sampled recalls."""
        return _SampledTests(self._sums, self.settings, self._sampled)

    @cached_property
    def _sampled(self) -> Log:
        """The sampled recalls, as a log of the items that were shown."""
        sample = self._sums.sample
        recalls, number = np.unique(sample["recall"].to_numpy(), return_inverse=True)
        count = len(recalls)
        return _make_log(
            pl.DataFrame({"decision": recalls}),
            number.astype(np.int64),
            sample["propensity"].to_numpy(),
            sample["position"].to_numpy(),
            sample["reward"].to_numpy(),
            clusters=count,
            unit=self.unit,
            silent=self.silent,
        )

    @property
    def without_recalls(self) -> Log:
        """A log without recalls, for reports that read its counts."""
        empty = pl.DataFrame(schema={"decision": pl.Int64})
        return _make_log(
            empty,
            NO_ROWS,
            _NOTHING,
            NO_ROWS,
            _NOTHING,
            clusters=self.clusters,
            unit=self.unit,
            silent=self.silent,
        )

    def observe(self) -> Observed:
        """Return the observed rewards, without outcomes of single queries."""
        cells = self._sums.cells
        items, answered, earned = self._totals(cells, "shown", names=FACTS).T
        recalls = cells["recalls"].to_numpy().astype(np.float64)
        value, per_item = (
            self._sample(np.column_stack([count, earned])).estimate(mean)
            if count.any()
            else Estimate(np.nan, np.nan, np.nan, np.nan, np.nan)
            for count in (recalls, answered)
        )
        return Observed(
            len(self._sums),
            None,
            int(items.sum()),
            int(answered.sum()),
            value,
            per_item,
            self.unit,
            EMPTY,
        )


class _SampledTests(Tests):
    """Tests on sampled recalls, whose items have stored ranks and strata."""

    def __init__(self, sums: PartialSums, settings: Settings, log: Log) -> None:
        assert sums.definition is not None
        features = sums.sample.select("^feature .*$").to_numpy()
        if not enough_recalls(len(sums), sums.definition.numeric):
            features = features[:, :1]
        super().__init__(log, settings, features)
        # Computed from whole pools, of which the sample has only the items that were shown.
        self.__dict__["scaled_rank"] = sums.sample["rank"].to_numpy()
        self.__dict__["strata"] = sums.sample["stratum"].to_numpy()


def _make_log(
    decisions: pl.DataFrame,
    recall: Ints,
    propensity: Floats,
    position: Ints,
    reward: Floats,
    *,
    clusters: int,
    unit: str,
    silent: float,
) -> Log:
    """Build a log of shown items in which each recall forms its own cluster.

    ``clusters``, ``unit`` and ``silent`` describe the whole log: its clusters and its share of shown
    items without a known reward.
    """
    count = len(recall)
    ids = pl.DataFrame({"decision": decisions["decision"][recall], "memory_id": np.arange(count)})
    return Log(
        decisions=decisions,
        ids=ids,
        recall=recall,
        propensity=propensity,
        exposed=np.ones(count, dtype=np.bool_),
        position=position,
        reward=reward,
        attributed=np.full(count, np.nan),
        stated=np.ones(count, dtype=np.bool_),
        limit=np.ones(decisions.height, dtype=np.int64),
        cluster=np.arange(decisions.height),
        clusters=clusters,
        clustered=unit,
        silent=silent,
        open=0,
        notes=(),
        _candidates=ids.lazy(),
        _order=None,
    )


def _target(ranker: Ranker) -> Target:
    """Return the target of a policy without items, because sums contain no items."""
    empty = pl.Series("memory_id", [], pl.Int64)
    return Target(ranker, "re-scored", NO_ROWS, NO_ROWS, NO_ROWS, empty, _NOTHING, 0, None, None)


def _fill_counts(note: str, counts: tuple[int, ...]) -> str:
    """Fill the counts into a note, with each noun in the singular or the plural.

    >>> _fill_counts("{item} of {} are left out.", (2, 1000))
    '2 items of 1,000 are left out.'
    """
    numbers = iter(counts)

    def fill(match: re.Match[str]) -> str:
        """Format the next count with the noun that the placeholder names."""
        count = next(numbers)
        return count_of(count, match[1]) if match[1] else f"{count:,}"

    return re.sub(r"\{(\w*)\}", fill, note)


@dataclass(frozen=True, eq=False, repr=False)
class Sums(PartialSums):
    """Sums over the recalls of a partition, or of a whole log; made by ``partial``.

    Add the sums of all partitions, with ``+`` or ``sum``, and call ``evaluate``. The result has the
    same bits for any partitions of a log, in any order. Workers return sums as objects, which
    pickle, or as bytes. Sums without a recall may be added to any others.

    Parameters
    ----------
    definition
        What was summed. Sums with different definitions are not added.
    totals
        Integer sums over the log, by name.
    ends
        The minimum and maximum reward; NaN without rewards.
    cells
        Integer sums for each cluster.
    buckets
        Integer sums for each group of recalls.
    bits
        The number of bits of a recall's hash that number its bucket.
    recalls
        The ids of the recalls as Int64, or their hashes if ids are texts.
    sample
        The items that up to 5,000 recalls showed.
    packs
        The hashes of the packs that logged.
    notes
        Remarks on the log, each with its counts.

    Examples
    --------
    >>> import polars as pl
    >>> import memlab
    >>> from memlab.science.evaluation import partial
    >>> frame = pl.read_parquet(memlab.examples.LOG)
    >>> columns = dict(
    ...     decision="query_id", item="memory_id", shown="rank", reward="clicked", propensity="p", limit=3
    ... )
    >>> halves = [
    ...     partial(part, ["old_score", "new_score"], columns=columns, missing="zero")
    ...     for _, part in frame.group_by(pl.col("query_id") % 2)
    ... ]
    >>> evaluation = sum(halves).evaluate()
    >>> [(row.policy, round(row.value.value, 2), row.verdict) for row in evaluation.rows]
    [('new_score', 0.48, 'better'), ('old_score', 0.29, 'baseline')]
    """

    @checked
    def evaluate(
        self, *, estimator: Estimator = "snips", level: float = 0.95, baseline: str | None = None
    ) -> Evaluation:
        """Evaluate the policies on all recalls that were summed.

        Parameters
        ----------
        estimator
            "snips" (self-normalised) or "ht" (Horvitz-Thompson).
        level
            The confidence level of the intervals, between 0 and 1.
        baseline
            The policy that the others are compared with; by default the policy that logged.

        Returns
        -------
        Evaluation
            The result of ``memlab.evaluate`` on the whole log, equal up to rounding (1e-12). It has
            no texts and no recalls, so ``disagreements`` and outcomes by query are missing. Above
            5,000 recalls, the gates on position, redundancy and missing feedback test a random
            sample of 5,000. Above 2,048 recalls, the gate on influence counts groups of recalls.

        Raises
        ------
        InputError
            If there is no recall, or if ``missing`` was not set and matters.
        UnknownName
            If there is no policy of the name ``baseline``.
        """
        return _evaluate_sums(self, estimator=estimator, level=level, baseline=baseline)
