"""Policies on labels: complete judgements of what answers each recall. No propensities, no feedback, no weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.science.evaluation._intervals import Floats, Sample, cluster_sums
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._targets import Target

__all__ = [
    "METRICS",
    "Gold",
    "Judged",
    "Labelled",
    "judge",
    "measure",
    "measure_labels",
    "read_gold",
]


# Retrieval metrics over labels, with strict ranks; equal to ``ir_measures`` wherever that one is defined.
#
# Where harnesses differ, this one says: a question without evidence has no value (NaN, left out of means), a question
# whose search found nothing scores 0, and an item that is listed again holds its rank but counts once.


@dataclass(frozen=True)
class Judged:
    """Rankings after the labels were consulted.

    ``relevant`` is bool[questions, depth], true where the item at that rank is evidence; ``gold`` is
    int64[questions], how many items are.
    """

    relevant: NDArray[np.bool_]
    gold: NDArray[np.int64]

    @property
    def depth(self) -> int:
        """How many ranks were judged."""
        return int(self.relevant.shape[1])


def judge(
    rankings: Sequence[Sequence[str]], evidence: Sequence[Collection[str]], *, depth: int
) -> Judged:
    """Each ranking, best first, against the items that its question asks for.

    >>> judge([["b", "a", "a"]], [{"a"}], depth=3).relevant.tolist()
    [[False, True, False]]
    """
    if len(rankings) != len(evidence):
        raise InputError(
            f"{len(rankings)} rankings cannot be judged by the evidence of {len(evidence)} questions."
        )
    if depth < 1:
        raise InputError(f"The depth of a judgement is at least 1, not {depth}.")
    relevant = np.zeros((len(rankings), depth), dtype=np.bool_)
    gold = np.zeros(len(rankings), dtype=np.int64)
    for row, (ranking, wanted) in enumerate(zip(rankings, evidence, strict=True)):
        left = set(wanted)
        gold[row] = len(left)
        for rank, item in enumerate(ranking[:depth]):
            if item in left:
                relevant[row, rank] = True
                left.discard(item)
    return Judged(relevant, gold)


def _recall(relevant: NDArray[np.bool_], gold: Floats) -> Floats:
    """The share of the evidence that was found."""
    return np.asarray(relevant.sum(axis=1) / gold)


def _recall_any(relevant: NDArray[np.bool_], gold: Floats) -> Floats:
    """1 if any of the evidence was found (``Success``)."""
    return np.where(np.isnan(gold), np.nan, relevant.any(axis=1))


def _recall_all(relevant: NDArray[np.bool_], gold: Floats) -> Floats:
    """1 if all of the evidence was found."""
    return np.where(np.isnan(gold), np.nan, relevant.sum(axis=1) == gold)


def _reciprocal_rank(relevant: NDArray[np.bool_], gold: Floats) -> Floats:
    """1 / rank of the first evidence; 0 if there is none."""
    first = np.where(relevant.any(axis=1), 1.0 / (1.0 + relevant.argmax(axis=1)), 0.0)
    return np.where(np.isnan(gold), np.nan, first)


def _average_precision(relevant: NDArray[np.bool_], gold: Floats) -> Floats:
    """The precision at each piece of evidence that was found, summed, over all evidence (MAP is its mean)."""
    found = np.cumsum(relevant, axis=1) / np.arange(1, relevant.shape[1] + 1)
    return np.asarray(np.where(relevant, found, 0.0).sum(axis=1) / gold)


def _ndcg(relevant: NDArray[np.bool_], gold: Floats) -> Floats:
    """Gains of 1 discounted by log2(1 + rank), as a share of the best possible (Järvelin & Kekäläinen 2002)."""
    ranks = np.arange(1, relevant.shape[1] + 1, dtype=np.float64)
    gains = 1.0 / np.log2(1.0 + ranks)
    best = np.where(ranks <= gold[:, None], gains, 0.0).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((relevant * gains).sum(axis=1) / np.where(np.isnan(gold), np.nan, best))


METRICS: dict[str, Callable[[NDArray[np.bool_], Floats], Floats]] = {
    "recall": _recall,
    "recall_any": _recall_any,
    "recall_all": _recall_all,
    "mrr": _reciprocal_rank,
    "map": _average_precision,
    "ndcg": _ndcg,
}
"""Each metric by the name that stands before ``@k``."""

_NAME = re.compile(r"([a-z_]+)@([1-9]\d{0,5})\Z")


def measure(judged: Judged, name: str) -> Floats:
    """A metric for each question (f64), such as ``recall@10``, ``recall_any@5``, ``mrr@10`` or ``ndcg@10``.

    NaN where a question has no evidence. Raises ``UnknownName``, and ``InputError`` for a cut below what was judged.

    >>> measure(judge([["x", "b"]], [{"a", "b"}], depth=2), "recall@2").tolist()
    [0.5]
    """
    match = _NAME.match(name)
    if match is None or match[1] not in METRICS:
        raise UnknownName("metric", name, [f"{known}@10" for known in METRICS])
    cut = int(match[2])
    if cut > judged.depth:
        raise InputError(
            f"{name} needs {cut} ranks; these rankings were judged to depth {judged.depth}."
        )
    gold = np.where(judged.gold > 0, judged.gold, np.nan).astype(np.float64)
    return METRICS[match[1]](judged.relevant[:, :cut], gold)


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
        raise InputError(
            "No recall of the log has a relevant item in the labels: there is nothing to measure."
        )
    if (~judged).any():
        notes.append(
            f"{int((~judged).sum())} recalls have no relevant item in the labels: left out."
        )
    return Gold(log, wanted, count, judged, int(log.limit[judged].min()), tuple(notes))


def measure_labels(
    targets: Sequence[Target], log: Log, labels: pl.DataFrame, *, level: float
) -> Labelled:
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
    return Labelled(
        Sample(sums, level=level), places, metrics, gold.metric, int(judged.sum()), gold.notes
    )


def _wanted(labels: pl.DataFrame, log: Log) -> tuple[pl.DataFrame, list[str]]:
    """recall, memory_id of every relevant item of the recalls that count."""
    for name in (*_KEY, "relevance"):
        if name not in labels.columns:
            raise InputError(
                f"The labels have no column {name}; they are decision, memory_id, relevance."
            )
    if not labels.height:
        raise InputError("The labels are empty.")
    given = labels.select(*_KEY, pl.col("relevance").cast(pl.Float64))
    for name in _KEY:
        if given[name].dtype != log.ids[name].dtype:
            raise InputError(
                f"{name} is {given[name].dtype} in the labels and {log.ids[name].dtype} in the candidates."
            )
    bad = given.with_row_index("row").filter(
        ~pl.col("relevance").is_in([0.0, 1.0]) | pl.col("relevance").is_null()
    )
    if bad.height:
        row = bad.row(0, named=True)
        raise InputError(
            f"Row {row['row']} of the labels has relevance {row['relevance']}; it is 1 or 0."
        )
    if given.select(pl.struct(_KEY).is_duplicated().any()).item():
        row = given.filter(pl.struct(_KEY).is_duplicated()).row(0, named=True)
        raise InputError(
            f"The labels name recall {row['decision']}, memory {row['memory_id']} twice."
        )
    numbered = log.decisions.select("decision").with_row_index("recall")
    joined = given.filter(pl.col("relevance") == 1).join(numbered, on="decision", how="left")
    strays = joined["recall"].null_count()
    notes = (
        [f"{strays} labels name recalls that the log does not hold: left out."] if strays else []
    )
    kept = joined.filter(pl.col("recall").is_not_null()).with_columns(
        pl.col("recall").cast(pl.Int64)
    )
    return kept.select("recall", "memory_id"), notes


def _relevant(target: Target, wanted: pl.DataFrame, recalls: int, cut: int) -> NDArray[np.bool_]:
    """bool[recalls, cut]: whether the item at each rank is relevant."""
    items = pl.DataFrame({"recall": target.recall, "memory_id": target.memory, "rank": target.rank})
    found = items.filter(pl.col("rank") <= cut).join(wanted, on=["recall", "memory_id"], how="semi")
    relevant = np.zeros((recalls, cut), dtype=np.bool_)
    relevant[found["recall"].to_numpy(), found["rank"].to_numpy() - 1] = True
    return relevant
