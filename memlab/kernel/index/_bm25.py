"""BM25 and coverage from the postings of a query: nothing but posted rows is touched.

Lucene's form: ``idf * tf / (tf + k1 * (1 - b + b * length / mean))`` with ``idf = log(1 + (N - df + .5) / (df + .5))``.
Document frequencies are counted from the hits themselves, so a mask given to ``Words.hits`` gives the scores of an
index that holds nothing but the rows of the mask; the caller passes their number and mean length. Sums run in the
order of the query's terms, whatever the postings' layout, so scores are equal to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.index._postings import TermHits
from memlab.kernel.index._segments import ranges
from memlab.kernel.index._select import compact

__all__ = [
    "GroupLengths",
    "bm25",
    "check_statistics",
    "coverage",
    "group_bm25",
    "group_coverage",
    "group_lengths",
    "group_scores",
    "idf",
    "mass_of",
]

Ints = NDArray[np.int64]
Scores = NDArray[np.float64]

_CELLS = 65_536
"""Pairs of term and group that are cheaper to count than to sort out, however few the hits."""

_AT_ONCE = 8192
"""Hits that are counted in one pass over all terms; of more, the terms are better counted one by one."""

K1, B = 0.9, 0.4
"""Better than 1.5 and 0.75 on turns of conversation: recall@10 .579 against .552."""


def idf(frequency: Ints, count: int) -> Scores:
    """Lucene's inverse document frequency of terms found in ``frequency`` of ``count`` documents."""
    return np.log(1.0 + (count - frequency + 0.5) / (frequency + 0.5))


def bm25(
    hits: TermHits,
    lengths: NDArray[np.integer],
    *,
    count: int,
    mean_length: float,
    k1: float = K1,
    b: float = B,
    weight: Scores | None = None,
) -> tuple[Ints, Scores]:
    """The rows that hold a term, ascending, and their scores.

    ``lengths`` are ``Words.lengths``; ``count`` and ``mean_length`` describe the rows that were eligible. ``weight`` is
    the idf of the terms where it is not that of these rows.
    """
    check_statistics(k1, b, count, mean_length)
    rows, place = hits.posted
    if len(rows) and not mean_length:
        raise InputError("Rows that hold a term of the question have words: their mean length is not 0.")
    if weight is None:
        check_count(count, len(rows), "rows")
        weight = idf(hits.frequency, count)
    norm = k1 * (1.0 - b + b * lengths[rows] / (mean_length or 1.0))
    scores = weight[hits.term] * (hits.tf / (hits.tf + norm[place]))
    return rows, _summed(place, scores, len(rows))


def coverage(hits: TermHits, *, count: int, weight: Scores | None = None) -> tuple[Ints, Scores]:
    """The rows that hold a term, ascending, and the share (0-1) of the question's idf mass that each holds.

    A word that no eligible row has counts in the mass: a question is not covered by the half that is known. ``weight``
    is the idf of the terms where it is not that of these rows.
    """
    rows, place = hits.posted
    if weight is None:
        check_count(count, len(rows), "rows")
        weight = idf(hits.frequency, count)
    mass = mass_of(weight, hits.unknown, count)
    return rows, _summed(place, weight[hits.term], len(rows)) / mass


@dataclass(frozen=True)
class GroupLengths:
    """``total[code]`` counts the words of a group's rows, and ``rows[code]`` those rows.

    ``count`` groups have any row, ``mean`` words each.
    """

    total: Scores
    rows: Ints
    count: int
    mean: float

    def with_rows(self, groups: NDArray[np.integer], lengths: NDArray[np.integer]) -> GroupLengths:
        """These, and more rows: the code of each one's group, and its length."""
        inside = groups >= 0
        if not inside.any():
            return self
        members, sizes = groups[inside], lengths[inside]
        total, rows = (np.zeros(max(len(self.total), int(members.max()) + 1), dtype=kind) for kind in (float, np.int64))
        total[: len(self.total)], rows[: len(self.rows)] = self.total, self.rows
        np.add.at(total, members, sizes)
        np.add.at(rows, members, 1)
        return _described(total, rows)


def _described(total: Scores, rows: Ints) -> GroupLengths:
    count = int(np.count_nonzero(rows))
    return GroupLengths(total, rows, count, float(total.sum()) / count if count else 0.0)


def group_lengths(
    groups: NDArray[np.integer], lengths: NDArray[np.integer], *, rows: Ints | None = None
) -> GroupLengths:
    """What ``group_bm25`` needs to know of all rows, or of the eligible ``rows``: worth keeping for many questions."""
    if len(groups) != len(lengths):
        raise InputError(f"{len(groups)} group codes do not fit {len(lengths)} lengths.")
    members, sizes = (groups, lengths) if rows is None else (groups[rows], lengths[rows])
    inside = members >= 0
    if not inside.all():
        members, sizes = members[inside], sizes[inside]
    total = np.bincount(members, weights=sizes).astype(np.float64, copy=False)
    return _described(total, np.bincount(members, minlength=len(total)))


def group_bm25(
    hits: TermHits,
    groups: NDArray[np.integer],
    lengths: NDArray[np.integer] | GroupLengths,
    *,
    rows: Ints | None = None,
    k1: float = K1,
    b: float = B,
) -> tuple[Ints, Scores]:
    """BM25 where each group of rows (a session) is one document: the codes with a hit, ascending, and their scores.

    ``groups`` codes every row, -1 for none; ``rows`` are the eligible ones (all unless given). Frequencies are
    counted over groups, term frequencies and lengths are summed. In place of the rows' ``lengths``, what
    ``group_lengths`` made of them and of ``rows`` saves a pass over all rows.
    """
    check_statistics(k1, b, 0, 0.0)
    documents = lengths if isinstance(lengths, GroupLengths) else group_lengths(groups, lengths, rows=rows)
    codes, place, term, tf = _grouped(hits, groups)
    check_count(documents.count, len(codes), "groups")
    if not len(codes):
        return codes, np.empty(0)
    weight = idf(_frequency(term, hits.size), documents.count)
    norm = k1 * (1.0 - b + b * documents.total[codes] / documents.mean)
    scores = weight[term] * (tf / (tf + norm[place]))
    return codes, _summed(place, scores, len(codes))


def group_scores(
    hits: TermHits,
    groups: NDArray[np.integer],
    documents: GroupLengths,
    wanted: NDArray[np.integer],
    *,
    k1: float = K1,
    b: float = B,
) -> Scores:
    """What ``group_bm25`` gives for each of the ``wanted`` codes; 0 for no group, and for one without a hit.

    One cell for each pair of term and group: frequencies are counted over all groups, scores computed for a few.
    """
    check_statistics(k1, b, 0, 0.0)
    width, size, count = len(documents.total) + 1, len(hits.rows), len(hits)
    if size * width > 16 * count + _CELLS:
        codes, scores = group_bm25(hits, groups, documents, k1=k1, b=b)
        if not len(codes):
            return np.zeros(len(wanted))
        place = codes[:-1].searchsorted(wanted)
        return np.where(codes[place] == wanted, scores[place], 0.0)
    (inside,) = ((wanted >= 0) & (wanted < width - 1)).nonzero()
    selected = wanted[inside]
    norm = k1 * (1.0 - b + b * documents.total[selected] / (documents.mean or 1.0))
    held: NDArray[Any]
    if count <= _AT_ONCE:
        # the first cell of each term is that of rows without a group
        keys = hits.term * width + groups[hits.row] + 1
        cells = np.bincount(keys, weights=hits.tf, minlength=size * width).reshape(size, width)
        frequency, held = (cells[:, 1:] != 0).sum(axis=1), cells.take(selected + 1, axis=1)
    else:
        frequency, held = np.empty(size, dtype=np.int64), np.empty((size, len(selected)))
        for term, (rows, tf) in enumerate(zip(hits.rows, hits.tfs, strict=True)):
            frequency[term], held[term] = _counted(groups.take(rows), tf, selected, width)
    shares = np.divide(held, held + norm, out=np.zeros(held.shape), where=held > 0)
    shares *= idf(frequency, documents.count)[:, None]
    found = np.zeros(len(wanted))
    if size:
        found[inside] = shares.cumsum(axis=0)[-1]  # term by term: a sum may be taken in another order
    return found


def _counted(
    codes: NDArray[np.integer], tf: NDArray[np.integer], selected: NDArray[np.integer], width: int
) -> tuple[int, NDArray[Any]]:
    """How many groups hold a term that is posted with these codes, and how often each of those selected for does."""
    if (codes[1:] >= codes[:-1]).all():
        # sessions that follow one another: counted without a cell for each
        some = codes[np.searchsorted(codes, 0) :]
        start, stop = np.searchsorted(codes, selected), np.searchsorted(codes, selected, side="right")
        place = np.repeat(np.arange(len(selected)), stop - start)
        held = np.bincount(place, weights=tf.take(ranges(start, stop - start)), minlength=len(selected))
        return int(np.count_nonzero(some[1:] != some[:-1])) + bool(len(some)), held
    # the first cell is that of rows without a group
    cells = np.bincount(codes + 1, weights=tf, minlength=width)[1:]
    return int(np.count_nonzero(cells)), cells[selected]


def group_coverage(hits: TermHits, groups: NDArray[np.integer], *, count: int) -> tuple[Ints, Scores]:
    """The group codes with a hit, ascending, and the share of the question's idf mass that the group's rows hold.

    The idf is that of the rows, ``count`` of which were eligible, as in ``coverage``.
    """
    codes, place, term, _ = _grouped(hits, groups)
    weight = idf(hits.frequency, count)
    return codes, _summed(place, weight[term], len(codes)) / mass_of(weight, hits.unknown, count)


def _grouped(hits: TermHits, groups: NDArray[np.integer]) -> tuple[Ints, Ints, Ints, Ints]:
    """Codes with a hit, and one hit for each pair of group and term, ordered by term: place, term, summed tf."""
    code = groups[hits.row].astype(np.int64)
    inside = code >= 0
    codes, place = compact(code[inside])
    width = max(len(codes), 1)
    keys = hits.term[inside] * width + place
    if hits.size * width <= 4 * len(keys) + 1024:
        # few groups for many hits: one cell for each pair of term and group is cheaper than finding the pairs
        cells = np.bincount(keys, weights=hits.tf[inside], minlength=hits.size * width)
        pairs = np.flatnonzero(cells)
        tf = cells[pairs].astype(np.int64)
    else:
        pairs, at = compact(keys)
        tf = np.bincount(at, weights=hits.tf[inside], minlength=len(pairs)).astype(np.int64)
    return codes, pairs % width, pairs // width, tf


def _summed(place: Ints, values: Scores, size: int) -> Scores:
    """The sum of the values at each place, added in the order given."""
    return np.bincount(place, weights=values, minlength=size).astype(np.float64, copy=False)


def _frequency(term: Ints, size: int) -> Ints:
    return np.bincount(term, minlength=size)


def mass_of(weight: Scores, unknown: int, count: int) -> float:
    """The idf mass of a question: of its known terms, and of those that no text had."""
    known = float(weight.sum())
    return (known + unknown * float(idf(np.zeros(1, dtype=np.int64), count)[0]) if unknown else known) or 1.0


def check_statistics(k1: float, b: float, count: int, mean_length: float) -> None:
    """InputError unless these can be statistics."""
    if not (0 <= k1 < np.inf and 0 <= b <= 1):
        raise InputError(f"BM25 takes k1 >= 0 and b in 0..1, not k1 = {k1} and b = {b}.")
    if count < 0 or not 0 <= mean_length < np.inf:
        raise InputError(f"BM25 takes a count and a mean length of at least 0, not {count} and {mean_length}.")


def check_count(count: int, posted: int, what: str) -> None:
    if count < posted:
        raise InputError(f"{posted} {what} hold a term of the question, more than the {count} that are eligible.")
