"""The BM25 matches of a query.

``Matches`` computes the best rows, and the scores of requested rows, without scoring every row.

Among a million memories, a common word occurs in tens of thousands, and its rows cannot be among the best by this word
alone. So the rarest words are read first, and the other words only for rows that can still reach the top. Rows are
excluded by bounds, as in MaxScore (Turtle & Flood 1995). All results are exact: bit-identical to those of ``bm25`` and
``coverage``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arrays import NO_ROWS, Codes, Flags, Ints, Rows, Scores, Values
from memlab.kernel.base.scratch import zeros
from memlab.kernel.index._arrays import best, compact, ranges
from memlab.kernel.index._postings import Passages, TermHits

# BM25 and coverage from the postings of a query. Only rows with a posting are read.
#
# Lucene's form: ``idf * tf / (tf + k1 * (1 - b + b * length / mean))`` with ``idf = log(1 + (N - df + .5) / (df +
# .5))``. Document frequencies are counted from the hits. So a mask passed to ``Words.hits`` gives the scores of an
# index of the masked rows alone. The caller passes the number and mean length of these rows. Sums run in the order of
# the query's terms, regardless of the layout of postings, so scores are bit-identical.


_CELLS = 65_536
"""The number of cells (terms times groups) below which counting into cells is faster than sorting the hits."""

_AT_ONCE = 8192
"""The number of hits up to which one pass over all terms is faster than one pass per term."""

K1, B = 0.9, 0.4
"""The default BM25 parameters. On turns of conversation recall@10 is .579, compared with .552 for 1.5 and 0.75."""


def idf(frequency: Ints, count: int) -> Scores:
    """Return Lucene's inverse document frequency (idf) of each term.

    ``frequency`` is the number of documents with each term, out of ``count``.
    """
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
    """Return the rows that match a query, ascending, and their BM25 scores.

    ``lengths`` are ``Words.lengths``. ``count`` and ``mean_length`` describe the eligible rows. ``weight`` is the idf
    of the terms, by default computed from the hits.
    """
    rows, index = hits.posted
    if weight is None:
        check_statistics(k1, b, count, mean_length)
        if len(rows) and not mean_length:
            raise InputError(
                "mean_length is 0, but some rows contain a term of the query. Pass the mean number of terms per row."
            )
        check_count(count, len(rows), "rows")
        weight = idf(hits.frequency, count)
    norm = k1 * (1.0 - b + b * lengths[rows] / (mean_length or 1.0))
    scores = weight[hits.term] * (hits.tf / (hits.tf + norm[index]))
    return rows, _sum_by_index(index, scores, len(rows))


def coverage(hits: TermHits, *, count: int, weight: Scores | None = None) -> tuple[Ints, Scores]:
    """Return the rows that match a query, and the share of the query's idf mass in each row.

    Rows ascend. The mass also includes words that no eligible row contains, so a row with all other words is not fully
    covered. ``weight`` is the idf of the terms, by default computed from these rows.
    """
    rows, index = hits.posted
    if weight is None:
        check_count(count, len(rows), "rows")
        weight = idf(hits.frequency, count)
    mass = idf_mass(weight, hits.unknown, count)
    return rows, _sum_by_index(index, weight[hits.term], len(rows)) / mass


@dataclass(frozen=True)
class GroupLengths:
    """The lengths of groups of rows, such as sessions.

    ``total[code]`` is the number of words of a group, and ``rows[code]`` the number of its rows. ``count`` is the
    number of groups with rows, and ``mean`` their mean length.
    """

    total: Scores
    rows: Ints
    count: int
    mean: float

    def with_rows(self, groups: NDArray[np.integer], lengths: NDArray[np.integer]) -> GroupLengths:
        """Return the group lengths after adding rows with the given groups and lengths."""
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
        return _build_lengths(total, rows)


def _build_lengths(total: Scores, rows: Ints) -> GroupLengths:
    """Build `GroupLengths` of groups, such as sessions, from their word and row counts."""
    count = int(np.count_nonzero(rows))
    return GroupLengths(total, rows, count, float(total.sum()) / count if count else 0.0)


def group_lengths(
    groups: NDArray[np.integer], lengths: NDArray[np.integer], *, rows: Ints | None = None
) -> GroupLengths:
    """Return the lengths of groups, over all rows or only the eligible ``rows``.

    The result can be reused for many queries.
    """
    if len(groups) != len(lengths):
        raise InputError(
            f"groups has {len(groups)} codes, but there are {len(lengths)} rows. Pass one group code for each row."
        )
    members, sizes = (groups, lengths) if rows is None else (groups[rows], lengths[rows])
    inside = members >= 0
    if not inside.all():
        members, sizes = members[inside], sizes[inside]
    total = np.bincount(members, weights=sizes).astype(np.float64, copy=False)
    return _build_lengths(total, np.bincount(members, minlength=len(total)))


def group_bm25(
    hits: TermHits,
    groups: NDArray[np.integer],
    lengths: NDArray[np.integer] | GroupLengths,
    *,
    rows: Ints | None = None,
    k1: float = K1,
    b: float = B,
) -> tuple[Ints, Scores]:
    """Return the groups of rows that match a query, and their BM25 scores.

    Each group is scored as one document. The returned codes ascend. ``groups`` has the group code of each row, or -1.
    ``rows`` are the eligible rows (all by default). Document frequencies count groups. Term frequencies and lengths are
    summed over the rows of a group. Passing the result of ``group_lengths`` as ``lengths`` saves a pass over all rows.
    """
    check_statistics(k1, b, 0, 0.0)
    documents = (
        lengths if isinstance(lengths, GroupLengths) else group_lengths(groups, lengths, rows=rows)
    )
    codes, index, term, tf = _group_hits(hits, groups)
    check_count(documents.count, len(codes), "groups")
    if not len(codes):
        return codes, np.empty(0)
    weight = idf(_count_terms(term, hits.size), documents.count)
    norm = k1 * (1.0 - b + b * documents.total[codes] / documents.mean)
    scores = weight[term] * (tf / (tf + norm[index]))
    return codes, _sum_by_index(index, scores, len(codes))


def group_scores(
    hits: TermHits,
    groups: NDArray[np.integer],
    documents: GroupLengths,
    wanted: NDArray[np.integer],
    *,
    k1: float = K1,
    b: float = B,
) -> Scores:
    """Return the ``group_bm25`` score of each requested group.

    The score is 0 for the code -1 and for a group without a hit. Document frequencies are counted over all groups, and
    scores are computed for the requested groups only.
    """
    width, size, count = len(documents.total) + 1, hits.size, len(hits.row)
    if size * width > 16 * count + _CELLS:
        codes, scores = group_bm25(hits, groups, documents, k1=k1, b=b)
        if not len(codes):
            return np.zeros(len(wanted))
        index = codes[:-1].searchsorted(wanted)
        return np.where(codes[index] == wanted, scores[index], 0.0)
    (inside,) = ((wanted >= 0) & (wanted < width - 1)).nonzero()
    selected = wanted[inside]
    norm = k1 * (1.0 - b + b * documents.total[selected] / (documents.mean or 1.0))
    frequencies: Values
    if count <= _AT_ONCE:
        # The first cell of each term is for rows without a group.
        keys = hits.term * width + groups[hits.row] + 1
        cells = np.bincount(keys, weights=hits.tf, minlength=size * width).reshape(size, width)
        frequency, frequencies = (cells[:, 1:] != 0).sum(axis=1), cells.take(selected + 1, axis=1)
    else:
        frequency, frequencies = np.empty(size, dtype=np.int64), np.empty((size, len(selected)))
        for term, (rows, tf) in enumerate(hits.parts):
            frequency[term], frequencies[term] = _count_frequencies(
                groups.take(rows), tf, selected, width
            )
    shares = np.divide(
        frequencies, frequencies + norm, out=np.zeros(frequencies.shape), where=frequencies > 0
    )
    shares *= idf(frequency, documents.count)[:, None]
    scores_of_codes = np.zeros(len(wanted))
    if size:
        # A cumulative sum adds term by term; `sum` may add in another order on another machine.
        scores_of_codes[inside] = shares.cumsum(axis=0)[-1]
    return scores_of_codes


def _count_frequencies(
    codes: NDArray[np.integer], tf: NDArray[np.integer], selected: NDArray[np.integer], width: int
) -> tuple[int, Values]:
    """Return a term's document frequency, and its frequency in each selected group.

    Each group counts as one document. ``codes`` and ``tf`` have the group (-1 for none) and the
    frequency of each posting; ``width`` is the number of groups plus 1.
    """
    if (codes[1:] >= codes[:-1]).all():
        # Codes ascend if sessions do not overlap in time. Then no array with one cell per group is needed.
        grouped = codes[np.searchsorted(codes, 0) :]
        start, stop = (
            np.searchsorted(codes, selected),
            np.searchsorted(codes, selected, side="right"),
        )
        owner = np.repeat(np.arange(len(selected)), stop - start)
        frequencies = np.bincount(
            owner, weights=tf.take(ranges(start, stop - start)), minlength=len(selected)
        )
        return int(np.count_nonzero(grouped[1:] != grouped[:-1])) + bool(len(grouped)), frequencies
    # The first cell is for rows without a group.
    cells = np.bincount(codes + 1, weights=tf, minlength=width)[1:]
    return int(np.count_nonzero(cells)), cells[selected]


def _group_hits(hits: TermHits, groups: NDArray[np.integer]) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the groups with a hit, and one hit per pair of group and term.

    The result is the group codes, then three arrays with one element per hit, ordered by term. They have the index of
    the group, the term and the summed frequency.
    """
    code = groups[hits.row].astype(np.int64)
    inside = code >= 0
    codes, index = compact(code[inside])
    width = max(len(codes), 1)
    keys = hits.term[inside] * width + index
    if hits.size * width <= 4 * len(keys) + 1024:
        # For few groups and many hits, counting into one cell per pair of term and group is faster than sorting the pairs.
        cells = np.bincount(keys, weights=hits.tf[inside], minlength=hits.size * width)
        pairs = np.flatnonzero(cells)
        tf = cells[pairs].astype(np.int64)
    else:
        pairs, pair_index = compact(keys)
        tf = np.bincount(pair_index, weights=hits.tf[inside], minlength=len(pairs)).astype(np.int64)
    return codes, pairs % width, pairs // width, tf


def _sum_by_index(index: Ints, values: Scores, size: int) -> Scores:
    """Return the sum of the values of each index, added in array order."""
    return np.bincount(index, weights=values, minlength=size).astype(np.float64, copy=False)


def _count_terms(term: Ints, size: int) -> Ints:
    """Return the number of groups that contain each term."""
    return np.bincount(term, minlength=size)


def idf_mass(weight: Scores, unknown: int, count: int) -> float:
    """Return the total idf of all terms of a query, including terms that no text contains."""
    mass = float(weight.sum())
    return (
        mass + unknown * float(idf(np.zeros(1, dtype=np.int64), count)[0]) if unknown else mass
    ) or 1.0


def check_statistics(k1: float, b: float, count: int, mean_length: float) -> None:
    """Raise InputError for invalid parameters or statistics of BM25."""
    if not (0 <= k1 < np.inf and 0 <= b <= 1):
        raise InputError(f"BM25 needs k1 >= 0 and b in 0..1, not k1 = {k1} and b = {b}.")
    if count < 0 or not 0 <= mean_length < np.inf:
        raise InputError(
            f"BM25 needs a count and a mean length of at least 0, not {count} and {mean_length}."
        )


def check_count(count: int, posted: int, what: str) -> None:
    """Raise InputError if more rows contain a term than are eligible."""
    if count < posted:
        raise InputError(
            f"count={count} is below the {posted} {what} that contain a term of the query. "
            f"Pass the number of all eligible {what}."
        )


_FEW = 8192
"""The number of postings up to which every matching row is scored, which takes about 100 microseconds."""

_BOUND_FROM = 16_384
"""The number of postings of a word from which computing a bound is cheaper than reading them."""

_LOOK_UP_RATIO = 16
"""Minimum ratio of a word's postings to the remaining rows from which looking up each row is faster."""

_SAFE = 1.0 - 1e-9
"""The factor on bounds. Bounds are summed in another order than scores, so the last bits may differ."""


@dataclass(frozen=True)
class InPassages:
    """The hits of the same query in the passages of eligible long rows.

    ``mean_length`` is the mean length of documents, where each passage of a long row counts as a document.
    """

    passages: Passages
    hits: TermHits
    mean_length: float


class Matches:
    """The matches of a query among the eligible rows.

    ``count`` is the number of eligible rows and ``mean_length`` their mean length. ``lengths`` are ``Words.lengths``. A
    row without a word of the query has score and coverage 0. A long row has the score and coverage of its best passage,
    computed with the idf of whole rows. For passages, the caller passes this idf as ``weight``.
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
        self._last_frequencies: tuple[Rows, Codes] | None = None
        self._look_ups: tuple[Rows, Rows, Flags] | None = None

    def best(self, n: int) -> Rows:
        """Return the ``n`` rows with the greatest scores, in descending order.

        Ties are broken by row.
        """
        if self._few:
            return self.hits.posted[0][best(self._scored, n)]
        if n <= 0:
            return NO_ROWS
        rows = self._contenders(n)
        if self._inside is not None:
            rows = np.union1d(rows, self._long_contenders(n))
        return rows[best(self.scores(rows), n)]

    def scores(self, rows: Rows) -> Scores:
        """Return the BM25 score of each of ``rows``, or 0 for a row that does not match."""
        if self._few:
            return self._look_up(self._scored, rows)
        frequencies, norm = self._frequencies_in(rows), self._norm(rows)
        total = np.zeros(len(rows))
        for tf, weight in zip(frequencies, self._weight, strict=True):
            total += weight * _saturate(tf, norm)
        return self._with_best_passages(rows, total, Matches.scores)

    def coverage(self, rows: Rows) -> Scores:
        """Return the share of the query's idf mass that each of ``rows`` contains."""
        if self._few:
            return self._look_up(self._covered, rows)
        total = np.zeros(len(rows))
        for tf, weight in zip(self._frequencies_in(rows), self._weight, strict=True):
            total += weight * (tf > 0)
        total /= idf_mass(self._weight, self.hits.unknown, self._count)
        return self._with_best_passages(rows, total, Matches.coverage)

    def with_pair(self, rows: Rows, pairs: Sequence[tuple[int, int]]) -> Flags:
        """Return which rows contain both terms of at least one of the pairs.

        A term is given by its index in the query.
        """
        if not pairs:
            return np.zeros(len(rows), dtype=np.bool_)
        contains = self._frequencies_in(rows) > 0
        first, second = (list(terms) for terms in zip(*pairs, strict=True))
        return np.asarray((contains[first] & contains[second]).any(axis=0))

    def terms_of(self, rows: Rows) -> Flags:
        """Return which terms of the query each row contains, as bool[terms, rows]."""
        return np.asarray(self._frequencies_in(rows) > 0)

    def around(self, windows: Rows, terms: Rows, *, k1: float, b: float) -> Scores:
        """Return the BM25 score of each window of rows for some terms of the query.

        Each column of ``windows`` is one document, with -1 in empty cells. Its term frequencies are summed over its
        rows, and its length is that of its first row.
        """
        if not windows.size or not len(terms):
            return np.zeros(windows.shape[1])
        tf = self._count_in(windows)
        if len(terms) < tf.shape[1]:
            tf = tf[:, terms]
        norm = k1 * (1.0 - b + b * self._lengths[windows[0]] / (self._whole_mean or 1.0))
        shares = _saturate(tf, norm[:, None])
        shares *= self._weight[terms]
        # A cumulative sum adds term by term; `sum` may add in another order on another machine.
        return np.asarray(shares.cumsum(axis=1)[:, -1])

    # -- private -----------------------------------------------------------------------------------------------

    @cached_property
    def _scored(self) -> Scores:
        """The BM25 score of each row that matches the query; a long row has that of its best passage."""
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
        """The share of the query's idf mass that each matching row contains or, if it is long, its best passage."""
        rows, shares = coverage(self.hits, count=self._count, weight=self._weight)
        return self._with_best_passages(rows, shares, Matches.coverage)

    def _look_up(self, values: Scores, rows: Rows) -> Scores:
        """Return the value of each of ``rows``, or 0 for rows that do not match the query.

        The positions are cached, because several features read the same rows in sequence.
        """
        keys = self.hits.posted[0]
        if not len(keys):
            return np.zeros(len(rows))
        if self._look_ups is None or self._look_ups[0] is not rows:
            # Rows after the last key get the position of the last key.
            index = keys[:-1].searchsorted(rows)
            self._look_ups = rows, index, keys[index] == rows
        _, index, is_posted = self._look_ups
        return np.where(is_posted, values[index], 0.0)

    @cached_property
    def _passages(self) -> Matches:
        """The matches of the query in the passages of long rows."""
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
        self, rows: Rows, values: Scores, evaluate: Callable[[Matches, Rows], Scores]
    ) -> Scores:
        """Replace, in place, the values of long rows by those of their best passages; return the values."""
        if self._inside is not None:
            positions, passages, starts = self._inside.passages.find(rows)
            if len(positions):
                values[positions] = np.maximum.reduceat(evaluate(self._passages, passages), starts)
        return values

    def _long_contenders(self, n: int) -> Rows:
        """Return the long rows whose best passage may be among the best ``n``, ascending."""
        assert self._inside is not None
        wide = 4 * n
        while True:
            passages = self._passages.best(wide)
            rows = np.unique(self._inside.passages.of[passages])
            if len(rows) >= n or len(passages) < wide:
                return rows
            wide *= 4

    @cached_property
    def _short(self) -> TermHits:
        """The hits in rows that are not split into passages."""
        if self._inside is None:
            return self.hits
        long = np.zeros(len(self._lengths), dtype=np.bool_)
        long[self._inside.passages.of] = True
        is_short = ~long[self.hits.row]
        frequency = np.bincount(self.hits.term[is_short], minlength=self.hits.size)
        return TermHits(
            self.hits.row[is_short], self.hits.tf[is_short], frequency, self.hits.unknown
        )

    def _norm(self, rows: Rows) -> Scores:
        """Return the BM25 length normalisation of each row."""
        return np.asarray(
            self._k1 * (1.0 - self._b + self._b * self._lengths[rows] / (self._mean or 1.0)),
            np.float64,
        )

    def _frequencies_in(self, rows: Rows) -> Codes:
        """Return the frequency of each term in each row, as int32[terms, rows].

        The result is cached, because several features read the same rows in sequence.
        """
        if self._last_frequencies is None or self._last_frequencies[0] is not rows:
            wanted = rows.astype(np.int32)
            frequencies = np.zeros((self.hits.size, len(rows)), dtype=np.int32)
            for out, (posted, tf) in zip(frequencies, self.hits.parts, strict=True):
                if len(posted):
                    index = posted[:-1].searchsorted(wanted)
                    np.copyto(out, tf[index], where=posted[index] == wanted)
            self._last_frequencies = rows, frequencies
        return self._last_frequencies[1]

    def _count_in(self, windows: Rows) -> Values:
        """Return the summed frequency of each term in each window, as an array [windows, terms].

        Each column of ``windows`` has the rows of one window.
        """
        posted, column = self.hits.posted if self._few else (NO_ROWS, NO_ROWS)
        if not len(posted) or len(posted) * self.hits.size > _CELLS:
            unique, column = compact(windows.ravel() + 1)
            frequencies = self._frequencies_in(unique - 1)
            counted: Values = (
                frequencies[:, column].reshape(len(frequencies), *windows.shape).sum(axis=1).T
            )
            return counted
        # The frequency of each term in each posted row, with a last row of zeros for all others.
        cells = np.zeros((len(posted) + 1, self.hits.size))
        cells[column, self.hits.term] = self.hits.tf
        index = posted[:-1].searchsorted(windows)
        index[posted[index] != windows] = len(posted)
        return np.asarray(cells.take(index, axis=0).sum(axis=0))

    def _contenders(self, n: int) -> Rows:
        """Return the rows without passages that may be among the best ``n``, ascending."""
        hits = self._short
        order = [
            int(term) for term in np.argsort(hits.frequency, kind="stable") if hits.frequency[term]
        ]
        if not order:
            return NO_ROWS
        maximum_tf = np.array([int(hits.parts[term][1].max()) for term in order])
        floor, slope = self._k1 * (1.0 - self._b), self._k1 * self._b / self._mean

        def contribution(term: int, rows: Values, tf: Codes) -> Scores:
            """Return a term's contribution to the BM25 scores of rows."""
            values = np.asarray(self._lengths.take(rows) * slope, dtype=np.float64)
            values += floor
            values += tf
            np.divide(tf, values, out=values)
            values *= self._weight[term]
            return values

        # For each position in the order, the maximum that this and all later terms can add to a score.
        rest = np.append(
            np.cumsum((self._weight[order] * maximum_tf / (maximum_tf + floor))[::-1])[::-1], 0.0
        )
        rows, partial, size, bound = np.empty(len(hits), np.int64), np.empty(len(hits)), 0, 0.0
        leading: Rows | None = None
        with zeros(len(self._lengths), np.int32) as position:
            for read, term in enumerate(order):
                posted, tf = hits.parts[term]
                if len(posted) >= _BOUND_FROM and size >= n:
                    # The exact scores of the most promising rows give a lower bound of the n-th best score.
                    bound = max(bound, self._bound_nth(rows[:size], partial[:size], n))
                if rest[read] < bound:
                    # A row that contains only this word and more common words cannot be among the best.
                    eligible = np.flatnonzero(partial[:size] >= bound * _SAFE - rest[read])
                    if len(eligible) <= max(4 * n, len(posted) // _LOOK_UP_RATIO):
                        leading = rows[eligible]
                        break
                    positions = position.take(posted)
                    candidates = np.flatnonzero(positions > 0)
                    partial[positions[candidates] - 1] += contribution(
                        term, posted[candidates], tf[candidates]
                    )
                    continue
                values = contribution(term, posted, tf)
                is_new = values >= bound - rest[read + 1]
                if size:
                    positions = position.take(posted)
                    is_candidate = positions > 0
                    candidates = np.flatnonzero(is_candidate)
                    partial[positions[candidates] - 1] += values[candidates]
                    is_new &= ~is_candidate
                stop = size + int(np.count_nonzero(is_new))
                rows[size:stop], partial[size:stop] = posted[is_new], values[is_new]
                position[rows[size:stop]] = np.arange(size + 1, stop + 1, dtype=np.int32)
                size = stop
            position[rows[:size]] = 0
        if leading is None:
            rows, partial = rows[:size], partial[:size]
            leading = rows[
                partial >= max(bound * _SAFE, _nth_greatest(partial[_find_leading(partial, n)], n))
            ]
        return np.sort(leading)

    def _bound_nth(self, rows: Rows, partial: Scores, n: int) -> float:
        """Return a lower bound of the ``n``-th best score.

        The bound is the ``n``-th best exact score among the most promising rows.
        """
        leading = np.sort(rows[_find_leading(partial, n)[: 4 * n]])
        return _nth_greatest(self.scores(leading), n)


def _find_leading(values: Scores, n: int) -> Rows:
    """Return the positions of the ``n`` greatest values, and possibly more positions.

    The result seldom has more than a few times ``n`` positions. Its threshold is estimated from a sample, which takes a
    tenth of the time of a partition.
    """
    step = 1 + len(values) // 4096
    sample, rank = values[::step], 2 * n // step + 16
    if rank >= len(sample):
        return np.arange(len(values))
    positions = np.flatnonzero(values >= np.partition(sample, -rank)[-rank])
    return positions if len(positions) >= n else np.arange(len(values))


def _nth_greatest(values: Scores, n: int) -> float:
    """Return a lower bound of the ``n``-th greatest value, or 0 for fewer values."""
    return float(np.partition(values, -n)[-n]) * _SAFE if len(values) >= n else 0.0


def _saturate(tf: Values, norm: Scores) -> Scores:
    """Return ``tf / (tf + norm)``, the BM25 saturation, or 0 where ``tf`` is 0."""
    return np.asarray(np.divide(tf, tf + norm, out=np.zeros(tf.shape), where=tf > 0))
