"""Find near-duplicates that a policy would show together and the log never showed together.

Where one of two near-duplicates is as good as both, each earns its full reward while it is shown alone, and their sum
counts that reward twice. The rewards of the log do not show this, because no recall showed both. So the second of such
a pair counts as unsupported: it may have any reward, and intervals cover that. The same holds for an item whose
near-duplicate was shown in its place, and took its reward. An item that the policy's recalls show with certainty needs
no bound, because the other items were shown with it.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import Flags, Ints
from memlab.science.evaluation._log import CERTAIN, Log, is_randomised

_ALIKE = 0.93
"""The closeness, corrected for length, from which two memories are near-duplicates.

Of 5,400 pairs among the best ten of LoCoMo's questions none has .8. "The user likes green tea" and
"The user likes black tea" have .90.
"""
# Texts that differ in case and punctuation alone are equal.
_WORD = re.compile(r"\w+")


def find_repeated(log: Log, rows: Ints, ranks: Ints) -> Ints:
    """Return the rows of a policy's items that repeat another item, so their reward is unknown.

    ``rows`` are the policy's items, and ``ranks`` their ranks. Without content of the items the
    result is empty.
    """
    free, rank = (
        rows[is_randomised(log.propensity[rows])],
        np.zeros(len(log.recall), dtype=np.int64),
    )
    if not len(free) or not _has_content(log):
        return free[:0]
    rank[rows] = ranks
    instead = np.flatnonzero(log.exposed & (log.propensity >= CERTAIN) & (rank == 0))
    first, second = _pair_rows(log, np.concatenate([free, instead]), free)
    follows = rank[first] < rank[second]
    first, second = first[follows], second[follows]
    return np.unique(second[_are_alike(log, first, second)]) if len(first) else first


def count_unseen(log: Log, rows: Ints) -> int:
    """Count the recalls in which a policy shows several randomised items of unknown content.

    ``rows`` are the policy's items. The number is 0 if the content of the items is known.
    """
    if _has_content(log):
        return 0
    recall = log.recall[rows[is_randomised(log.propensity[rows])]]
    return int((np.bincount(recall, minlength=1) > 1).sum())


def _has_content(log: Log) -> bool:
    """Return whether the contents of items are known, from the log or its lab."""
    return log.content is not None or hasattr(log.lab, "memories")


def _are_alike(log: Log, first: Ints, second: Ints) -> Flags:
    """Return whether each pair of rows are near-duplicates.

    Two rows are near-duplicates if the log's column of content has equal values, or if the lab's
    texts have the same words or a closeness of ``_ALIKE``.
    """
    if log.content is not None:
        values = log.pool([log.content])[log.content]
        return (values[first] == values[second]).fill_null(False).to_numpy()
    rows, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    texts = log.ids[rows].join(
        log.lab.memories.select("text", memory_id="id"),
        on="memory_id",
        how="left",
        maintain_order="left",
    )["text"]
    words, code = np.unique(
        [" ".join(_WORD.findall((text or "").casefold())) for text in texts], return_inverse=True
    )
    embedder = log.lab.io.embedder
    vectors = embedder.embed(words.tolist()).astype(np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    first, second = np.split(code[codes], 2)
    cosine = np.minimum(np.einsum("ij,ij->i", vectors[first], vectors[second]), 1.0)
    size = np.array([len(text) for text in words.tolist()], dtype=np.float64)
    closeness = embedder.pair_closeness(cosine, np.sqrt(size[first] * size[second]))
    return np.asarray(((first == second) | (closeness >= _ALIKE)) & (words != "")[first])


def _pair_rows(log: Log, first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return all pairs of a row of ``first`` and a row of ``second`` that belong to the same recall."""
    left, right = (
        pl.DataFrame({"recall": log.recall[rows], name: rows})
        for name, rows in (("first", first), ("second", second))
    )
    pairs = left.join(right, on="recall")
    return pairs["first"].to_numpy(), pairs["second"].to_numpy()
