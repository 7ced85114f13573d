"""What the words of a question find: the best rows, and the scores of any rows, without a score for every row.

Of a million memories a common word is in tens of thousands, which alone can never be among the best. So the rarest
words are read first, and the others only for rows that can still get there: what is left out is decided by bounds, as
in MaxScore (Turtle & Flood 1995), and all that is given is exact, to the bit what ``bm25`` and ``coverage`` give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.scratch import zeros
from memlab.kernel.index._arrays import best, compact, ranges
from memlab.kernel.index._postings import Passages, TermHits

__all__ = [
    "GroupLengths",
    "InPassages",
    "Matches",
    "bm25",
    "check_statistics",
    "coverage",
    "group_bm25",
    "group_lengths",
    "group_scores",
    "idf",
    "mass_of",
]


# BM25 and coverage from the postings of a query: nothing but posted rows is touched.
#
# Lucene's form: ``idf * tf / (tf + k1 * (1 - b + b * length / mean))`` with ``idf = log(1 + (N - df + .5) / (df +
# .5))``. Document frequencies are counted from the hits themselves, so a mask given to ``Words.hits`` gives the scores
# of an index that holds nothing but the rows of the mask; the caller passes their number and mean length. Sums run in
# the order of the query's terms, whatever the postings' layout, so scores are equal to the bit.


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
    rows, place = hits.posted
    if weight is None:
        check_statistics(k1, b, count, mean_length)
        if len(rows) and not mean_length:
            raise InputError(
                "Rows that hold a term of the question have words: their mean length is not 0."
            )
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
        total, rows = (
            np.zeros(max(len(self.total), int(members.max()) + 1), dtype=kind)
            for kind in (float, np.int64)
        )
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
    documents = (
        lengths if isinstance(lengths, GroupLengths) else group_lengths(groups, lengths, rows=rows)
    )
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
    width, size, count = len(documents.total) + 1, hits.size, len(hits.row)
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
        for term, (rows, tf) in enumerate(hits.parts):
            frequency[term], held[term] = _counted(groups.take(rows), tf, selected, width)
    shares = np.divide(held, held + norm, out=np.zeros(held.shape), where=held > 0)
    shares *= idf(frequency, documents.count)[:, None]
    found = np.zeros(len(wanted))
    if size:
        # term by term: a sum may be taken in another order
        found[inside] = shares.cumsum(axis=0)[-1]
    return found


def _counted(
    codes: NDArray[np.integer], tf: NDArray[np.integer], selected: NDArray[np.integer], width: int
) -> tuple[int, NDArray[Any]]:
    """How many groups hold a term that is posted with these codes, and how often each of those selected for does."""
    if (codes[1:] >= codes[:-1]).all():
        # sessions that follow one another: counted without a cell for each
        some = codes[np.searchsorted(codes, 0) :]
        start, stop = (
            np.searchsorted(codes, selected),
            np.searchsorted(codes, selected, side="right"),
        )
        place = np.repeat(np.arange(len(selected)), stop - start)
        held = np.bincount(
            place, weights=tf.take(ranges(start, stop - start)), minlength=len(selected)
        )
        return int(np.count_nonzero(some[1:] != some[:-1])) + bool(len(some)), held
    # the first cell is that of rows without a group
    cells = np.bincount(codes + 1, weights=tf, minlength=width)[1:]
    return int(np.count_nonzero(cells)), cells[selected]


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
    return (
        known + unknown * float(idf(np.zeros(1, dtype=np.int64), count)[0]) if unknown else known
    ) or 1.0


def check_statistics(k1: float, b: float, count: int, mean_length: float) -> None:
    """InputError unless these can be statistics."""
    if not (0 <= k1 < np.inf and 0 <= b <= 1):
        raise InputError(f"BM25 takes k1 >= 0 and b in 0..1, not k1 = {k1} and b = {b}.")
    if count < 0 or not 0 <= mean_length < np.inf:
        raise InputError(
            f"BM25 takes a count and a mean length of at least 0, not {count} and {mean_length}."
        )


def check_count(count: int, posted: int, what: str) -> None:
    if count < posted:
        raise InputError(
            f"{posted} {what} hold a term of the question, more than the {count} that are eligible."
        )


_FEW = 8192
"""Postings up to which every row that holds a word gets its score: some 100 microseconds."""

_WORTH = 16_384
"""Postings of a word from which it is worth finding out whether they must be read."""

_APART = 16
"""Rows are looked up one by one in the postings of a word that are as many times more: that is quicker from there."""
"""Pairs of term and row that are cheaper to write down at once than to look up term by term."""

_SAFE = 1.0 - 1e-9
"""Sums that bound a score are added up in another order, and may differ from it in the last bits."""

Rows = NDArray[np.int64]

_NONE: Rows = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class InPassages:
    """The same question's hits in the passages of eligible long rows.

    ``mean_length`` is that of what scores: passages of rows that are long, and all other rows.
    """

    passages: Passages
    hits: TermHits
    mean_length: float


class Matches:
    """The hits of a question among ``count`` eligible rows, whose words are ``mean_length`` on average.

    ``lengths`` are ``Words.lengths``. Rows that hold no word of the question have score and coverage 0. A long row has
    those of its best passage, each by itself, with the idf of rows; ``weight`` is that idf, given for passages.
    """

    def __init__(
        self,
        hits: TermHits,
        lengths: NDArray[np.integer],
        *,
        count: int,
        mean_length: float,
        k1: float,
        b: float,
        inside: InPassages | None = None,
        weight: Scores | None = None,
    ) -> None:
        if weight is None:
            check_statistics(k1, b, count, mean_length)
        self.hits, self._lengths = hits, lengths
        self._count, self._whole_mean, self._k1, self._b = count, mean_length, k1, b
        self._mean = mean_length if inside is None else inside.mean_length
        self._inside = inside
        self._few = len(hits.row) <= _FEW
        self._weight = idf(hits.frequency, count) if weight is None else weight
        if weight is None and self._few:
            check_count(count, len(hits.posted[0]), "rows")
        self._read: tuple[Rows, NDArray[np.int32]] | None = None
        self._asked: tuple[Rows, Rows, NDArray[np.bool_]] | None = None

    def best(self, n: int) -> Rows:
        """The ``n`` rows of the greatest scores, greatest first, ties by row; fewer if fewer hold a word."""
        if self._few:
            return self.hits.posted[0][best(self._scored, n)]
        if n <= 0:
            return np.empty(0, dtype=np.int64)
        rows = self._contenders(n)
        if self._inside is not None:
            rows = np.union1d(rows, self._long_contenders(n))
        return rows[best(self.scores(rows), n)]

    def scores(self, rows: Rows) -> Scores:
        """BM25 of each of these rows."""
        if self._few:
            return self._look_up(self._scored, rows)
        held, norm = self._held(rows), self._norm(rows)
        total = np.zeros(len(rows))
        for tf, weight in zip(held, self._weight, strict=True):
            total += weight * _share(tf, norm)
        return self._with_best_passages(rows, total, Matches.scores)

    def coverage(self, rows: Rows) -> Scores:
        """The share of the question's idf mass that each of these rows holds."""
        if self._few:
            return self._look_up(self._covered, rows)
        total = np.zeros(len(rows))
        for tf, weight in zip(self._held(rows), self._weight, strict=True):
            total += weight * (tf > 0)
        total /= mass_of(self._weight, self.hits.unknown, self._count)
        return self._with_best_passages(rows, total, Matches.coverage)

    def with_pair(self, rows: Rows, pairs: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
        """Which of these rows hold both terms of one of the pairs; terms by their number in the question."""
        if not pairs:
            return np.zeros(len(rows), dtype=np.bool_)
        held = self._held(rows) > 0
        one, two = (list(terms) for terms in zip(*pairs, strict=True))
        return np.asarray((held[one] & held[two]).any(axis=0))

    def terms_of(self, rows: Rows) -> NDArray[np.bool_]:
        """bool[terms, rows]: which of the question's terms each of these rows holds."""
        return np.asarray(self._held(rows) > 0)

    def around(self, windows: Rows, terms: Rows, *, k1: float, b: float) -> Scores:
        """BM25 of the words of several rows together, of these terms alone: the first of each column of ``windows`` is
        the row whose length counts, -1 stands for none.
        """
        if not windows.size or not len(terms):
            return np.zeros(windows.shape[1])
        tf = self._count_in(windows)
        if len(terms) < tf.shape[1]:
            tf = tf[:, terms]
        norm = k1 * (1.0 - b + b * self._lengths[windows[0]] / (self._whole_mean or 1.0))
        shares = _share(tf, norm[:, None])
        shares *= self._weight[terms]
        # term by term: a sum may be taken in another order
        return np.asarray(shares.cumsum(axis=1)[:, -1])

    # -- inside -----------------------------------------------------------------------------------------------

    @cached_property
    def _scored(self) -> Scores:
        """The score of each posted row."""
        rows, scores = bm25(
            self.hits,
            self._lengths,
            count=self._count,
            mean_length=self._mean,
            k1=self._k1,
            b=self._b,
            weight=self._weight,
        )
        return self._with_best_passages(rows, scores, Matches.scores)

    @cached_property
    def _covered(self) -> Scores:
        """The coverage of each posted row."""
        rows, shares = coverage(self.hits, count=self._count, weight=self._weight)
        return self._with_best_passages(rows, shares, Matches.coverage)

    def _look_up(self, values: Scores, rows: Rows) -> Scores:
        """The values of these rows, 0 for what is not posted. Features ask for the same rows one after the other."""
        keys = self.hits.posted[0]
        if not len(keys):
            return np.zeros(len(rows))
        if self._asked is None or self._asked[0] is not rows:
            place = keys[:-1].searchsorted(rows)  # that of the last key for all that is greater
            self._asked = rows, place, keys[place] == rows
        _, place, there = self._asked
        return np.where(there, values[place], 0.0)

    @cached_property
    def _passages(self) -> Matches:
        """The same question among passages."""
        assert self._inside is not None
        return Matches(
            self._inside.hits,
            self._inside.passages.words.lengths,
            count=self._count,
            mean_length=self._mean,
            k1=self._k1,
            b=self._b,
            weight=self._weight,
        )

    def _with_best_passages(
        self, rows: Rows, values: Scores, of: Callable[[Matches, Rows], Scores]
    ) -> Scores:
        """The values of these rows, where one is long that of its best passage."""
        if self._inside is not None:
            places, passages, starts = self._inside.passages.among(rows)
            if len(places):
                values[places] = np.maximum.reduceat(of(self._passages, passages), starts)
        return values

    def _long_contenders(self, n: int) -> Rows:
        """Long rows among which are those of the best ``n``, ascending."""
        assert self._inside is not None
        wide = 4 * n
        while True:
            found = self._passages.best(wide)
            rows = np.unique(self._inside.passages.of[found])
            if len(rows) >= n or len(found) < wide:
                return rows
            wide *= 4

    @cached_property
    def _short(self) -> TermHits:
        """The hits without those of long rows."""
        if self._inside is None:
            return self.hits
        long = np.zeros(len(self._lengths), dtype=np.bool_)
        long[self._inside.passages.of] = True
        kept = ~long[self.hits.row]
        frequency = np.bincount(self.hits.term[kept], minlength=self.hits.size)
        return TermHits(self.hits.row[kept], self.hits.tf[kept], frequency, self.hits.unknown)

    def _norm(self, rows: Rows) -> Scores:
        return np.asarray(
            self._k1 * (1.0 - self._b + self._b * self._lengths[rows] / (self._mean or 1.0)),
            np.float64,
        )

    def _held(self, rows: Rows) -> NDArray[np.int32]:
        """i32[terms, rows]: how often each row holds each term. Features ask for the same rows one after the other."""
        if self._read is None or self._read[0] is not rows:
            wanted = rows.astype(np.int32)
            held = np.zeros((self.hits.size, len(rows)), dtype=np.int32)
            for out, (posted, tf) in zip(held, self.hits.parts, strict=True):
                if len(posted):
                    place = posted[:-1].searchsorted(wanted)
                    np.copyto(out, tf[place], where=posted[place] == wanted)
            self._read = rows, held
        return self._read[1]

    def _count_in(self, windows: Rows) -> NDArray[Any]:
        """[columns, terms]: how often the rows of each column hold each term."""
        posted, place = self.hits.posted if self._few else (_NONE, _NONE)
        if not len(posted) or len(posted) * self.hits.size > _CELLS:
            unique, place = compact(windows.ravel() + 1)
            held = self._held(unique - 1)
            counted: NDArray[Any] = held[:, place].reshape(len(held), *windows.shape).sum(axis=1).T
            return counted
        # how often each posted row holds each term, and last a row that holds none
        cells = np.zeros((len(posted) + 1, self.hits.size))
        cells[place, self.hits.term] = self.hits.tf
        at = posted[:-1].searchsorted(windows)
        at[posted[at] != windows] = len(posted)
        return np.asarray(cells.take(at, axis=0).sum(axis=0))

    def _contenders(self, n: int) -> Rows:
        """Rows that are not long, ascending, among which are those of the best ``n``."""
        hits = self._short
        order = [
            int(term) for term in np.argsort(hits.frequency, kind="stable") if hits.frequency[term]
        ]
        if not order:
            return np.empty(0, dtype=np.int64)
        most = np.array([int(hits.parts[term][1].max()) for term in order])
        floor, slope = self._k1 * (1.0 - self._b), self._k1 * self._b / self._mean

        def given(term: int, rows: NDArray[Any], tf: NDArray[np.int32]) -> Scores:
            worth = np.asarray(self._lengths.take(rows) * slope, dtype=np.float64)
            worth += floor
            worth += tf
            np.divide(tf, worth, out=worth)
            worth *= self._weight[term]
            return worth

        # what the terms from a place on can add at most
        rest = np.append(np.cumsum((self._weight[order] * most / (most + floor))[::-1])[::-1], 0.0)
        rows, partial, size, least = np.empty(len(hits), np.int64), np.empty(len(hits)), 0, 0.0
        leading: Rows | None = None
        with zeros(len(self._lengths), np.int32) as place:
            for read, term in enumerate(order):
                posted, tf = hits.parts[term]
                if len(posted) >= _WORTH and size >= n:
                    # what leads so far, scored with the words that are not read yet, tells what the best will have
                    least = max(least, self._nth(rows[:size], partial[:size], n))
                if rest[read] < least:
                    # no row that holds nothing but this and commoner words is among the best
                    eligible = np.flatnonzero(partial[:size] >= least * _SAFE - rest[read])
                    if len(eligible) <= max(4 * n, len(posted) // _APART):
                        leading = rows[eligible]
                        break
                    at = place.take(posted)
                    known = np.flatnonzero(at > 0)
                    partial[at[known] - 1] += given(term, posted[known], tf[known])
                    continue
                worth = given(term, posted, tf)
                fresh = worth >= least - rest[read + 1]
                if size:
                    at = place.take(posted)
                    held = at > 0
                    known = np.flatnonzero(held)
                    partial[at[known] - 1] += worth[known]
                    fresh &= ~held
                stop = size + int(np.count_nonzero(fresh))
                rows[size:stop], partial[size:stop] = posted[fresh], worth[fresh]
                place[rows[size:stop]] = np.arange(size + 1, stop + 1, dtype=np.int32)
                size = stop
            place[rows[:size]] = 0
        if leading is None:
            rows, partial = rows[:size], partial[:size]
            leading = rows[partial >= max(least * _SAFE, _nth(partial[_leading(partial, n)], n))]
        return np.sort(leading)

    def _nth(self, rows: Rows, partial: Scores, n: int) -> float:
        """What the ``n``-th best score is at least, found by scoring the rows that promise most."""
        leading = np.sort(rows[_leading(partial, n)[: 4 * n]])
        return _nth(self.scores(leading), n)


def _leading(values: Scores, n: int) -> Rows:
    """Places of the greatest values: at least ``n`` of them (all if there are fewer), and seldom more than a few times
    that; by the rank of a sample, which costs a tenth of a partition.
    """
    step = 1 + len(values) // 4096
    sample, wanted = values[::step], 2 * n // step + 16
    if wanted >= len(sample):
        return np.arange(len(values))
    found = np.flatnonzero(values >= np.partition(sample, -wanted)[-wanted])
    return found if len(found) >= n else np.arange(len(values))


def _nth(values: Scores, n: int) -> float:
    """A little less than the ``n``-th greatest; 0 if there are fewer."""
    return float(np.partition(values, -n)[-n]) * _SAFE if len(values) >= n else 0.0


def _share(tf: NDArray[Any], norm: Scores) -> Scores:
    """``tf / (tf + norm)``, 0 where there is none."""
    return np.asarray(np.divide(tf, tf + norm, out=np.zeros(tf.shape), where=tf > 0))
