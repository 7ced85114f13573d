"""Policies on labels: complete judgements of what answers each recall. No propensities, no feedback, no weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.science.evaluation._clusters import Sample, cluster_sums
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._metrics import METRICS, Judged, measure
from memlab.science.evaluation._targets import Target

__all__ = ["Gold", "Labelled", "measure_labels", "read_gold"]

Floats = NDArray[np.float64]
_KEY = ["decision", "memory_id"]


@dataclass(frozen=True)
class Labelled:
    """``sample`` holds two columns a policy: recalls with labels, and the sum of the first metric over them."""

    sample: Sample
    places: dict[str, slice]
    metrics: dict[str, dict[str, float]]
    metric: str
    judged: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Gold:
    """The relevant items of a log's recalls: ``count`` of each recall, ``judged`` where there is one, and ``cut``, the
    smallest head among those.
    """

    log: Log
    wanted: pl.DataFrame
    count: NDArray[np.int64]
    judged: NDArray[np.bool_]
    cut: int
    notes: tuple[str, ...]

    @property
    def metric(self) -> str:
        """The metric that ranks."""
        return f"recall@{self.cut}"

    def judge(self, target: Target) -> Judged:
        """Which of the target's best items are relevant."""
        return Judged(_relevant(target, self.wanted, len(self.log), self.cut), self.count)

    def totals(self, target: Target, judgement: Judged | None = None) -> tuple[Floats, Floats]:
        """Recalls with labels, and the metric that ranks, recall by recall: what ``mean`` takes the sums of."""
        values = measure(judgement or self.judge(target), self.metric)
        return self.judged.astype(np.float64), np.where(self.judged, values, 0.0)


def read_gold(labels: pl.DataFrame, log: Log) -> Gold:
    """Labels as ``Gold``. Recalls without a relevant item have no value."""
    wanted, notes = _wanted(labels, log)
    count = np.bincount(wanted["recall"].to_numpy(), minlength=len(log))
    judged = count > 0
    if not judged.any():
        raise InputError("No recall of the log has a relevant item in the labels: there is nothing to measure.")
    if (~judged).any():
        notes.append(f"{int((~judged).sum())} recalls have no relevant item in the labels: left out.")
    return Gold(log, wanted, count, judged, int(log.limit[judged].min()), tuple(notes))


def measure_labels(targets: Sequence[Target], log: Log, labels: pl.DataFrame, *, level: float) -> Labelled:
    """Every metric of every policy at the size of the smallest head."""
    gold = read_gold(labels, log)
    judged, cut = gold.judged, gold.cut
    columns: list[Floats] = []
    places: dict[str, slice] = {}
    metrics: dict[str, dict[str, float]] = {}
    for target in targets:
        judgement = gold.judge(target)
        values = {f"{name}@{cut}": measure(judgement, f"{name}@{cut}") for name in METRICS}
        metrics[target.name] = {name: float(value[judged].mean()) for name, value in values.items()}
        places[target.name] = slice(len(columns), len(columns) + 2)
        columns += gold.totals(target, judgement)
    held = np.unique(log.cluster[judged], return_inverse=True)[1]
    sums = cluster_sums([column[judged] for column in columns], held, int(held.max()) + 1)
    return Labelled(Sample(sums, level=level), places, metrics, gold.metric, int(judged.sum()), gold.notes)


def _wanted(labels: pl.DataFrame, log: Log) -> tuple[pl.DataFrame, list[str]]:
    """recall, memory_id of every relevant item of the recalls that count."""
    for name in (*_KEY, "relevance"):
        if name not in labels.columns:
            raise InputError(f"The labels have no column {name}; they are decision, memory_id, relevance.")
    if not labels.height:
        raise InputError("The labels are empty.")
    given = labels.select(*_KEY, pl.col("relevance").cast(pl.Float64))
    for name in _KEY:
        if given[name].dtype != log.ids[name].dtype:
            raise InputError(
                f"{name} is {given[name].dtype} in the labels and {log.ids[name].dtype} in the candidates."
            )
    bad = given.with_row_index("row").filter(~pl.col("relevance").is_in([0.0, 1.0]) | pl.col("relevance").is_null())
    if bad.height:
        row = bad.row(0, named=True)
        raise InputError(f"Row {row['row']} of the labels has relevance {row['relevance']}; it is 1 or 0.")
    if given.select(pl.struct(_KEY).is_duplicated().any()).item():
        row = given.filter(pl.struct(_KEY).is_duplicated()).row(0, named=True)
        raise InputError(f"The labels name recall {row['decision']}, memory {row['memory_id']} twice.")
    numbered = log.decisions.select("decision").with_row_index("recall")
    joined = given.filter(pl.col("relevance") == 1).join(numbered, on="decision", how="left")
    strays = joined["recall"].null_count()
    notes = [f"{strays} labels name recalls that the log does not hold: left out."] if strays else []
    kept = joined.filter(pl.col("recall").is_not_null()).with_columns(pl.col("recall").cast(pl.Int64))
    return kept.select("recall", "memory_id"), notes


def _relevant(target: Target, wanted: pl.DataFrame, recalls: int, cut: int) -> NDArray[np.bool_]:
    """bool[recalls, cut]: whether the item at each rank is relevant."""
    items = pl.DataFrame({"recall": target.recall, "memory_id": target.memory, "rank": target.rank})
    found = items.filter(pl.col("rank") <= cut).join(wanted, on=["recall", "memory_id"], how="semi")
    relevant = np.zeros((recalls, cut), dtype=np.bool_)
    relevant[found["recall"].to_numpy(), found["rank"].to_numpy() - 1] = True
    return relevant
