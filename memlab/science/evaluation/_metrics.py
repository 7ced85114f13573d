"""Retrieval metrics over labels, with strict ranks; equal to ``ir_measures`` wherever that one is defined.

Where harnesses differ, this one says: a question without evidence has no value (NaN, left out of means), a question
whose search found nothing scores 0, and an item that is listed again holds its rank but counts once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName

__all__ = ["METRICS", "Judged", "judge", "measure"]

Floats = NDArray[np.float64]


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


def judge(rankings: Sequence[Sequence[str]], evidence: Sequence[Collection[str]], *, depth: int) -> Judged:
    """Each ranking, best first, against the items that its question asks for.

    >>> judge([["b", "a", "a"]], [{"a"}], depth=3).relevant.tolist()
    [[False, True, False]]
    """
    if len(rankings) != len(evidence):
        raise InputError(f"{len(rankings)} rankings cannot be judged by the evidence of {len(evidence)} questions.")
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
        raise InputError(f"{name} needs {cut} ranks; these rankings were judged to depth {judged.depth}.")
    gold = np.where(judged.gold > 0, judged.gold, np.nan).astype(np.float64)
    return METRICS[match[1]](judged.relevant[:, :cut], gold)
