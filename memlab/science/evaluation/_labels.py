"""Measure policies by labels: complete judgements of each recall's relevant items."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Count, checked
from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.base.printable import count_of
from memlab.kernel.slates import Slates
from memlab.science.evaluation._intervals import Sample, cluster_sums
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._targets import Target

# The retrieval metrics use strict ranks. They equal those of ``ir_measures`` wherever that package defines them.
#
# Evaluation harnesses differ in three cases. Here a question without evidence has no value (NaN, left out of means). A
# question without results scores 0. A repeated item occupies its rank but counts once.


@dataclass(frozen=True)
class Judged:
    """Rankings compared with labels; made by ``memlab.science.evaluation.judge``.

    Parameters
    ----------
    relevant
        Whether the item at each rank is relevant: bool[questions, depth].
    gold
        The number of relevant items of each question: int64[questions].

    Examples
    --------
    >>> judge([["b", "a"]], [{"a"}], depth=2).gold.tolist()
    [1]
    """

    relevant: Flags
    gold: Ints

    @property
    def depth(self) -> int:
        """The number of ranks that have relevance judgements."""
        return int(self.relevant.shape[1])


@checked
def judge(
    rankings: Sequence[Sequence[str]], evidence: Sequence[Collection[str]], *, depth: Count
) -> Judged:
    """Mark which items of each question's ranking are relevant.

    Parameters
    ----------
    rankings
        The item ids of each question, best first.
    evidence
        The relevant item ids of each question.
    depth
        The number of ranks to judge, at least 1.

    Returns
    -------
    Judged
        The relevance of each rank, and the number of relevant items of each question.

    Raises
    ------
    InputError
        If the numbers of rankings and questions differ, or ``depth`` is below 1.

    Examples
    --------
    >>> judge([["b", "a", "a"]], [{"a"}], depth=3).relevant.tolist()
    [[False, True, False]]
    """
    if len(rankings) != len(evidence):
        raise InputError(
            f"There are {len(rankings)} rankings, but {len(evidence)} questions with "
            "evidence. Pass one ranking for each question."
        )
    relevant = np.zeros((len(rankings), depth), dtype=np.bool_)
    gold = np.zeros(len(rankings), dtype=np.int64)
    for row, (ranking, wanted) in enumerate(zip(rankings, evidence, strict=True)):
        remaining = set(wanted)
        gold[row] = len(remaining)
        for rank, item in enumerate(ranking[:depth]):
            if item in remaining:
                relevant[row, rank] = True
                remaining.discard(item)
    return Judged(relevant, gold)


def _compute_recall(relevant: Flags, gold: Floats) -> Floats:
    """Return the share of each question's evidence that was retrieved; NaN without evidence."""
    return np.asarray(relevant.sum(axis=1) / gold)


def _recall_any(relevant: Flags, gold: Floats) -> Floats:
    """Return 1 for each question with at least one retrieved item of evidence, otherwise 0; NaN without evidence."""
    return np.where(np.isnan(gold), np.nan, relevant.any(axis=1))


def _recall_all(relevant: Flags, gold: Floats) -> Floats:
    """Return 1 for each question whose evidence was all retrieved, otherwise 0; NaN without evidence."""
    return np.where(np.isnan(gold), np.nan, relevant.sum(axis=1) == gold)


def _reciprocal_rank(relevant: Flags, gold: Floats) -> Floats:
    """Return 1 / rank of each question's first relevant item; 0 if none was retrieved, NaN without evidence."""
    first = np.where(relevant.any(axis=1), 1.0 / (1.0 + relevant.argmax(axis=1)), 0.0)
    return np.where(np.isnan(gold), np.nan, first)


def _average_precision(relevant: Flags, gold: Floats) -> Floats:
    """Return the average precision of each question, whose mean is MAP; NaN without evidence."""
    precision = np.cumsum(relevant, axis=1) / np.arange(1, relevant.shape[1] + 1)
    return np.asarray(np.where(relevant, precision, 0.0).sum(axis=1) / gold)


def _ndcg(relevant: Flags, gold: Floats) -> Floats:
    """Return each question's nDCG with binary gains (Järvelin & Kekäläinen 2002); NaN without evidence."""
    ranks = np.arange(1, relevant.shape[1] + 1, dtype=np.float64)
    gains = 1.0 / np.log2(1.0 + ranks)
    best = np.where(ranks <= gold[:, None], gains, 0.0).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((relevant * gains).sum(axis=1) / np.where(np.isnan(gold), np.nan, best))


METRICS: dict[str, Callable[[Flags, Floats], Floats]] = {
    "recall": _compute_recall,
    "recall_any": _recall_any,
    "recall_all": _recall_all,
    "mrr": _reciprocal_rank,
    "map": _average_precision,
    "ndcg": _ndcg,
}
"""The metrics by name. A number of ranks is appended, as in ``recall@10``."""

# The name of a metric and the number of ranks that count.
_NAME = re.compile(r"([a-z_]+)@([1-9]\d{0,5})\Z")


def split_metric(name: str) -> tuple[str, int]:
    """Return a metric's kind and number of ranks; raise UnknownName for an unknown name."""
    match = _NAME.match(name)
    if match is None or match[1] not in METRICS:
        raise UnknownName("metric", name, [f"{metric}@10" for metric in METRICS])
    return match[1], int(match[2])


@checked
def measure(judged: Judged, name: str) -> Floats:
    """Return a retrieval metric for each question; NaN where evidence is missing.

    Parameters
    ----------
    judged
        The rankings that were judged.
    name
        A metric and a number of ranks, such as ``recall@10``, ``recall_any@5`` or ``ndcg@10``.

    Returns
    -------
    ndarray
        The value of each question, f64[questions].

    Raises
    ------
    UnknownName
        If there is no such metric.
    InputError
        If the number of ranks exceeds the judged depth.

    Examples
    --------
    >>> measure(judge([["x", "b"]], [{"a", "b"}], depth=2), "recall@2").tolist()
    [0.5]
    """
    kind, cut = split_metric(name)
    if cut > judged.depth:
        raise InputError(
            f"{name} needs {cut} ranks, and these rankings were judged to depth {judged.depth}. Call judge with "
            f"depth={cut}."
        )
    gold = np.where(judged.gold > 0, judged.gold, np.nan).astype(np.float64)
    return METRICS[kind](judged.relevant[:, :cut], gold)


@runtime_checkable
class LabelsRecalls(Protocol):
    """The questions of a lab (``lab.questions``), which label the recalls that ask them."""

    def label_recalls(self, slates: Slates) -> pl.DataFrame:
        """Return ``decision``, ``memory_id`` and ``relevance`` of the relevant items."""


def frame_of_labels(
    labels: pl.DataFrame | LabelsRecalls | None, slates: Slates
) -> pl.DataFrame | None:
    """Return labels as a frame with one row for each wanted memory of a recall."""
    if labels is None or isinstance(labels, pl.DataFrame):
        return labels
    return labels.label_recalls(slates)


_KEY = ["decision", "memory_id"]
"""The columns that identify a labelled item."""


@dataclass(frozen=True)
class Labelled:
    """The retrieval metrics of policies on the labelled recalls.

    ``sample`` has two columns for each policy: the number of recalls with labels, and the sum of
    the metric that ranks policies. ``columns`` are the columns of each policy.
    """

    sample: Sample
    columns: dict[str, slice]
    metrics: dict[str, dict[str, float]]
    metric: str
    judged: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Gold:
    """The relevant items of a log's recalls, from labels.

    ``count`` is the number of relevant items of each recall, and ``judged`` whether a recall has
    any. ``cut`` is the smallest limit among the judged recalls, and ``name`` the kind of the metric,
    a key of ``METRICS``.
    """

    log: Log
    wanted: pl.DataFrame
    count: Ints
    judged: Flags
    cut: int
    notes: tuple[str, ...]
    name: str = "recall"

    @property
    def metric(self) -> str:
        """The name of the metric that ranks the policies, such as ``recall@5``."""
        return f"{self.name}@{self.cut}"

    def judge(self, target: Target) -> Judged:
        """Mark which of a policy's top items are relevant in each recall."""
        return Judged(_mark_relevant(target, self.wanted, len(self.log), self.cut), self.count)

    def totals(self, target: Target, judgement: Judged | None = None) -> tuple[Floats, Floats]:
        """Return the number of labelled recalls and the policy's ranking metric by recall."""
        values = measure(judgement or self.judge(target), self.metric)
        return self.judged.astype(np.float64), np.where(self.judged, values, 0.0)


def read_gold(labels: pl.DataFrame, log: Log) -> Gold:
    """Read the relevant items of a log's recalls from a frame of labels."""
    wanted, notes = _read_relevant_items(labels, log)
    count = np.bincount(wanted["recall"].to_numpy(), minlength=len(log))
    judged = count > 0
    if not judged.any():
        raise InputError(
            "No recall of the log has a relevant item in the labels, so there is nothing to measure. Check the ids in the "
            "column decision of the labels."
        )
    if (~judged).any():
        notes.append(
            f"{count_of(int((~judged).sum()), 'recall')} without a relevant item in the labels: left out."
        )
    return Gold(log, wanted, count, judged, int(log.limit[judged].min()), tuple(notes))


def measure_labels(
    targets: Sequence[Target], log: Log, labels: pl.DataFrame, kind: str, *, level: float
) -> Labelled:
    """Compute every retrieval metric of every policy on the labelled recalls.

    ``kind`` is the metric that ranks the policies, a key of ``METRICS``.
    """
    gold = replace(read_gold(labels, log), name=kind)
    judged, cut = gold.judged, gold.cut
    columns: list[Floats] = []
    columns_of: dict[str, slice] = {}
    metrics: dict[str, dict[str, float]] = {}
    for target in targets:
        judgement = gold.judge(target)
        values = {f"{name}@{cut}": measure(judgement, f"{name}@{cut}") for name in METRICS}
        metrics[target.name] = {name: float(value[judged].mean()) for name, value in values.items()}
        columns_of[target.name] = slice(len(columns), len(columns) + 2)
        columns += gold.totals(target, judgement)
    clusters = np.unique(log.cluster[judged], return_inverse=True)[1]
    sums = cluster_sums([column[judged] for column in columns], clusters, int(clusters.max()) + 1)
    return Labelled(
        Sample(sums, level=level), columns_of, metrics, gold.metric, int(judged.sum()), gold.notes
    )


def _read_relevant_items(labels: pl.DataFrame, log: Log) -> tuple[pl.DataFrame, list[str]]:
    """Return the relevant items of the log's recalls, with remarks on unusable labels."""
    # Labels come from users' files, so each column is checked and the first bad row is named.
    for name in (*_KEY, "relevance"):
        if name not in labels.columns:
            raise InputError(
                f"The labels have no column {name}. Their columns must be decision, memory_id and relevance."
            )
    if not labels.height:
        raise InputError("The labels are empty. Pass a row for each relevant item of a recall.")
    checked = labels.select(*_KEY, pl.col("relevance").cast(pl.Float64))
    for name in _KEY:
        if checked[name].dtype != log.ids[name].dtype:
            raise InputError(
                f"The column {name} is {checked[name].dtype} in the labels and {log.ids[name].dtype} in the candidates. "
                f"Cast the labels to that type."
            )
    bad = checked.with_row_index("row").filter(
        ~pl.col("relevance").is_in([0.0, 1.0]) | pl.col("relevance").is_null()
    )
    if bad.height:
        row = bad.row(0, named=True)
        raise InputError(
            f"Row {row['row']} of the labels has relevance {row['relevance']}. Set it to 1 (relevant) or 0."
        )
    if checked.select(pl.struct(_KEY).is_duplicated().any()).item():
        row = checked.filter(pl.struct(_KEY).is_duplicated()).row(0, named=True)
        raise InputError(
            f"The labels name recall {row['decision']}, memory {row['memory_id']} twice. Keep one row for each memory of a "
            f"recall."
        )
    numbered = log.decisions.select("decision").with_row_index("recall")
    joined = checked.filter(pl.col("relevance") == 1).join(numbered, on="decision", how="left")
    strays = joined["recall"].null_count()
    notes = (
        [f"{count_of(strays, 'label')} of recalls that are not in the log: left out."]
        if strays
        else []
    )
    matched = joined.filter(pl.col("recall").is_not_null()).with_columns(
        pl.col("recall").cast(pl.Int64)
    )
    return matched.select("recall", "memory_id"), notes


def _mark_relevant(target: Target, wanted: pl.DataFrame, recalls: int, cut: int) -> Flags:
    """Return whether the item at each rank is relevant, bool[recalls, cut]."""
    items = pl.DataFrame({"recall": target.recall, "memory_id": target.memory, "rank": target.rank})
    hits = items.filter(pl.col("rank") <= cut).join(wanted, on=["recall", "memory_id"], how="semi")
    relevant = np.zeros((recalls, cut), dtype=np.bool_)
    relevant[hits["recall"].to_numpy(), hits["rank"].to_numpy() - 1] = True
    return relevant
