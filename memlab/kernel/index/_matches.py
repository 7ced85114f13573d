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

from memlab.kernel.base.scratch import zeros
from memlab.kernel.index._bm25 import bm25, check_count, check_statistics, coverage, idf, mass_of
from memlab.kernel.index._postings import Passages, TermHits
from memlab.kernel.index._select import best, compact

__all__ = ["InPassages", "Matches"]

_FEW = 8192
"""Postings up to which every row that holds a word gets its score: some 100 microseconds."""

_WORTH = 16_384
"""Postings of a word from which it is worth finding out whether they must be read."""

_APART = 16
"""Rows are looked up one by one in the postings of a word that are as many times more: that is quicker from there."""

_CELLS = 65_536
"""Pairs of term and row that are cheaper to write down at once than to look up term by term."""

_SAFE = 1.0 - 1e-9
"""Sums that bound a score are added up in another order, and may differ from it in the last bits."""

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]

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
        check_statistics(k1, b, count, mean_length)
        self._hits, self._lengths = hits, lengths
        self._count, self._whole_mean, self._k1, self._b = count, mean_length, k1, b
        self._mean = mean_length if inside is None else inside.mean_length
        self._inside, self._given = inside, weight
        self._few = len(hits) <= _FEW
        self._read: tuple[Rows, NDArray[np.int32]] | None = None

    def best(self, n: int) -> Rows:
        """The ``n`` rows of the greatest scores, greatest first, ties by row; fewer if fewer hold a word."""
        if self._few:
            rows, scores = self._scored
            return rows[best(scores, n)]
        if n <= 0:
            return np.empty(0, dtype=np.int64)
        rows = self._contenders(n)
        if self._inside is not None:
            rows = np.union1d(rows, self._long_contenders(n))
        return rows[best(self.scores(rows), n)]

    def scores(self, rows: Rows) -> Scores:
        """BM25 of each of these rows."""
        if self._few:
            return _look_up(*self._scored, rows)
        held, norm = self._held(rows), self._norm(rows)
        total = np.zeros(len(rows))
        for tf, weight in zip(held, self._weight, strict=True):
            total += weight * _share(tf, norm)
        return self._with_best_passages(rows, total, Matches.scores)

    def coverage(self, rows: Rows) -> Scores:
        """The share of the question's idf mass that each of these rows holds."""
        if self._few:
            return _look_up(*self._covered, rows)
        total = np.zeros(len(rows))
        for tf, weight in zip(self._held(rows), self._weight, strict=True):
            total += weight * (tf > 0)
        total /= mass_of(self._weight, self._hits.unknown, self._count)
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
        tf = self._counted(windows)
        if len(terms) < tf.shape[1]:
            tf = tf[:, terms]
        norm = k1 * (1.0 - b + b * self._lengths[windows[0]] / (self._whole_mean or 1.0))
        shares = _share(tf, norm[:, None])
        shares *= self._weight[terms]
        return np.asarray(shares.cumsum(axis=1)[:, -1])  # term by term: a sum may be taken in another order

    # -- inside -----------------------------------------------------------------------------------------------

    @cached_property
    def _scored(self) -> tuple[Rows, Scores]:
        rows, scores = bm25(
            self._hits,
            self._lengths,
            count=self._count,
            mean_length=self._mean,
            k1=self._k1,
            b=self._b,
            weight=self._weight,
        )
        return rows, self._with_best_passages(rows, scores, Matches.scores)

    @cached_property
    def _covered(self) -> tuple[Rows, Scores]:
        rows, shares = coverage(self._hits, count=self._count, weight=self._weight)
        return rows, self._with_best_passages(rows, shares, Matches.coverage)

    @cached_property
    def _weight(self) -> Scores:
        if self._given is not None:
            return self._given
        if self._few:
            check_count(self._count, len(self._hits.posted[0]), "rows")
        return idf(self._hits.frequency, self._count)

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

    def _with_best_passages(self, rows: Rows, values: Scores, of: Callable[[Matches, Rows], Scores]) -> Scores:
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
            return self._hits
        long = np.zeros(len(self._lengths), dtype=np.bool_)
        long[self._inside.passages.of] = True
        kept = [~long[rows] for rows in self._hits.rows]
        return TermHits(
            tuple(rows[own] for rows, own in zip(self._hits.rows, kept, strict=True)),
            tuple(tfs[own] for tfs, own in zip(self._hits.tfs, kept, strict=True)),
            self._hits.unknown,
        )

    def _norm(self, rows: Rows) -> Scores:
        return np.asarray(self._k1 * (1.0 - self._b + self._b * self._lengths[rows] / (self._mean or 1.0)), np.float64)

    def _held(self, rows: Rows) -> NDArray[np.int32]:
        """i32[terms, rows]: how often each row holds each term. Features ask for the same rows one after the other."""
        if self._read is None or self._read[0] is not rows:
            wanted = rows.astype(np.int32)
            held = np.zeros((self._hits.size, len(rows)), dtype=np.int32)
            for out, posted, tf in zip(held, self._hits.rows, self._hits.tfs, strict=True):
                if len(posted):
                    place = posted[:-1].searchsorted(wanted)
                    np.copyto(out, tf[place], where=posted[place] == wanted)
            self._read = rows, held
        return self._read[1]

    def _counted(self, windows: Rows) -> NDArray[Any]:
        """[columns, terms]: how often the rows of each column hold each term."""
        posted, _ = self._hits.posted if self._few else (_NONE, _NONE)
        if not len(posted) or len(posted) * self._hits.size > _CELLS:
            unique, place = compact(windows.ravel() + 1)
            held = self._held(unique - 1)
            counted: NDArray[Any] = held[:, place].reshape(len(held), *windows.shape).sum(axis=1).T
            return counted
        at = posted[:-1].searchsorted(windows)
        at[posted[at] != windows] = len(posted)
        return np.asarray(self._cells.take(at, axis=0).sum(axis=0))

    @cached_property
    def _cells(self) -> Scores:
        """How often each posted row holds each term, and last a row that holds none."""
        rows, place = self._hits.posted
        cells = np.zeros((len(rows) + 1, self._hits.size))
        cells[place, self._hits.term] = self._hits.tf
        return cells

    def _contenders(self, n: int) -> Rows:
        """Rows that are not long, ascending, among which are those of the best ``n``."""
        hits = self._short
        order = [int(term) for term in np.argsort(hits.frequency, kind="stable") if len(hits.rows[term])]
        if not order:
            return np.empty(0, dtype=np.int64)
        most = np.array([int(hits.tfs[term].max()) for term in order])
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
                posted, tf = hits.rows[term], hits.tfs[term]
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


def _look_up(keys: NDArray[Any], values: Scores, wanted: NDArray[Any]) -> Scores:
    """The value of each wanted key among the ascending ``keys``; 0 where it is missing."""
    if not len(keys):
        return np.zeros(len(wanted))
    place = keys[:-1].searchsorted(wanted)  # that of the last key for all that is greater
    return np.where(keys[place] == wanted, values[place], 0.0)
