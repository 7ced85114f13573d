"""The features of the candidates of a query, each computed once as a column.

``memlab.kernel.policies.FEATURES`` defines each feature; this module computes the values. Policies weigh them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from memlab.kernel.base.arrays import Codes, Components, Flags, Floats, Ints, Rows, Scores, Values
from memlab.kernel.embedding import evened
from memlab.kernel.english import Asked
from memlab.kernel.index import is_in_sorted, products, products_below
from memlab.kernel.policies import Pack
from memlab.kernel.recall._mentions import Phrases, days_from, file_namer, tag_namer
from memlab.kernel.recall._moment import Moment
from memlab.kernel.recall._query import QuestionFeatures
from memlab.kernel.schema import RELATIONS
from memlab.kernel.state import State

# Features of statements that replace an older answer on the same subject.


_TYPICAL, _AT_TYPICAL, _PER_LOG_WORD = 8.0, 0.03, 0.233
"""The expected closeness of two unrelated statements: ``_AT_TYPICAL`` at ``_TYPICAL`` words each, and a slope by the
logarithm of the geometric mean of their lengths. Fitted to 9,290 pairs of statements of tests and experiments."""

_BIAS, _PER_NEARER, _PER_GAP, _PER_LATE, _PER_SHARED = -6.7, 5.5, 5.1, 5.2, 7.0
"""Coefficients of the log-odds that a correction corrects a given older statement.

In order, the coefficients weigh a constant, the closeness above that of an unrelated pair, the gap
to the nearest older statement, the feature ``late`` of the correction, and the share of common
words in the shorter text. Fitted by ``experiments/corrects.py`` to labs in which half of the
corrections correct no stored statement.
"""

_IF_CHANGE = 2.0
"""Log-odds added for a correction that states a change ("moved", "now", "instead"), which omits the former value.

The fit gives .3. The value is set by hand between the odds of right and wrong corrections."""

_ODDS = (-1.5, -0.75)
"""Log-odds at which the certainty of a correction leaves 0 and reaches 1."""


def min_max(values: Scores) -> Scores:
    """Scale values to 0..1 over the pool; return zeros if all values are equal."""
    if not len(values):
        return values
    low, high = np.minimum.reduce(values), np.maximum.reduce(values)
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def takes_over(
    vectors: Components,
    relevance: Scores,
    created: Values,
    speakers: Codes,
    sessions: Codes,
    closeness: Callable[[Scores], Scores],
) -> Scores:
    """Return how strongly each statement replaces an older, relevant statement.

    An older statement counts if it has the same speaker and another session. The value is the
    maximum, over these statements, of the closeness times the cubed relevance of the older
    statement, or 0 if there is none. A memory without a session (code -1) differs from every
    session. A pool of 100 takes .3 milliseconds of processor time.
    """
    if not len(vectors):
        return np.zeros(0)
    older = _find_older(created, speakers)
    older &= (sessions != sessions[:, None]) | (sessions < 0)
    later, earlier = np.divmod(np.flatnonzero(older), len(vectors))
    strengths = np.zeros(len(vectors))
    if not len(later):
        return strengths
    dots = np.maximum(_measure_pairs(vectors, later, earlier, closeness), 0.0)
    dots *= (relevance**3)[earlier]
    (starts,) = (later[1:] != later[:-1]).nonzero()
    starts = np.concatenate(([0], starts + 1))
    strengths[later[starts]] = np.maximum.reduceat(dots, starts)
    return strengths


def corrects(
    rows: Ints,
    vectors: Components,
    relevance: Scores,
    late: Scores,
    words: Scores,
    content: Sequence[frozenset[int]],
    says_change: Flags,
    created: Values,
    speakers: Codes,
    closeness: Callable[[Scores], Scores],
) -> Scores:
    """Return the cubed relevance of the statement that each correction corrects.

    The value is multiplied by the certainty of the correction, and 0 for candidates outside
    ``rows``.

    Parameters
    ----------
    rows
        The positions of corrections in the pool. The positions need not be sorted.
    vectors
        The stored vectors of the pool.
    relevance, late, words
        The relevance of each candidate, from 0 to 1, and its features ``late`` and ``words``.
    content, says_change
        The content stems of each candidate, and whether one of its words states a change.
    created, speakers
        The creation time and the code of the speaker of each candidate.
    closeness
        The function that maps cosines to the scale of the feature ``closeness``.

    Notes
    -----
    A correction rarely repeats the words of the corrected statement. The older statement is identified
    by the closeness given the lengths of both texts and by the gap to the nearest statement. Common
    words and the match of the correction with the query count as well. Only statements of the same
    speaker count. A correction of a correction inherits the relevance of the first statement.
    """
    scores = np.zeros(len(vectors))
    allowed = _find_older(created, speakers)
    length = np.log(np.maximum(words, 1.0) / _TYPICAL)
    nearer = (
        _measure_all_pairs(vectors, allowed, closeness)
        - _AT_TYPICAL
        - _PER_LOG_WORD * (length + length[:, None]) / 2.0
    )
    inherited = relevance.copy()
    for row in rows[np.argsort(created[rows], kind="stable")].tolist():
        (older,) = np.nonzero(allowed[row])
        if not len(older):
            continue
        gaps = nearer[row, older]
        odds = _BIAS + _PER_NEARER * gaps + _PER_GAP * (gaps - gaps.max()) + _PER_LATE * late[row]
        odds += _IF_CHANGE if says_change[row] else 0.0
        odds += _PER_SHARED * np.array(
            [_common_share(content[row], content[position]) for position in older.tolist()]
        )
        certainty = np.clip((odds - _ODDS[0]) / (_ODDS[1] - _ODDS[0]), 0.0, 1.0)
        scores[row] = (certainty * inherited[older] ** 3).max()
        inherited[row] = max(inherited[row], np.cbrt(scores[row]))
    return scores


def _common_share(first: frozenset[int], second: frozenset[int]) -> float:
    """Return the number of shared stems as a share of the shorter statement's stems."""
    return len(first & second) / max(1, min(len(first), len(second)))


def _find_older(created: Values, speakers: Codes) -> Flags:
    """Return bool[rows, rows]: whether the column's statement is older than the row's.

    The value is False if the two speakers differ.
    """
    return np.asarray((created < created[:, None]) & (speakers == speakers[:, None]))


def _measure_pairs(
    vectors: Components,
    later: Ints,
    earlier: Ints,
    closeness: Callable[[Scores], Scores],
) -> Floats:
    """Return the closeness of the vectors of each (later, earlier) pair of rows."""
    matrix = vectors.astype(np.float32)
    left, right = np.zeros((2, len(matrix)), dtype=np.bool_)
    left[later], right[earlier] = True, True
    if 2 * left.sum() * right.sum() > left.size**2 and (later > earlier).all():
        dots = products_below(matrix, matrix)[later, earlier]
    else:  # only products of rows that have a pair
        dots = products(matrix[left], matrix[right])[
            left.cumsum()[later] - 1, right.cumsum()[earlier] - 1
        ]
    lengths = np.sqrt(np.maximum(np.einsum("ij,ij->i", matrix, matrix).astype(np.float64), 1.0))
    return closeness(dots.astype(np.float64) / (lengths[later] * lengths[earlier]))


def _measure_all_pairs(
    vectors: Components, wanted: Flags, closeness: Callable[[Scores], Scores]
) -> Floats:
    """Return f64[rows, rows]: the closeness of the pairs in ``wanted``, or -1 for others."""
    pairs = np.full(wanted.shape, -1.0)
    later, earlier = wanted.nonzero()
    pairs[wanted] = _measure_pairs(vectors, later, earlier, closeness)
    return pairs


# The relation of a later memory that replaces a statement of an earlier one.
_UPDATES = RELATIONS.index("updates")
_SUPERSEDES = RELATIONS.index("supersedes")
_OUTDATED = 0.4
"""The minimum share of a query's words in one statement; the feature ``outdated`` is 0 below it."""

# A tag in a query: # after a character that is no part of a word, then word characters and : / . + - inside.
_TAG = re.compile(r"(?<!\w)#([\w:/.+-]*\w)")

_INDEPENDENT = (
    *("seed", "received", "activation", "hops", "session-lexical", "names-speaker", "names-other"),
    *("coverage", "similarity", "lexical"),
)
"""Features of a candidate that do not depend on the other candidates.

A selection of a pool keeps their values.
"""


class Candidates(Moment):
    """Rows of a state as candidates of one query.

    Features are computed on access. Rows ascend.
    """

    quiet = True

    def __init__(self, state: State, pack: Pack, query: QuestionFeatures, rows: Rows) -> None:
        self.state, self.pack, self.rows, self.now = state, pack, rows, query.now
        self.query, self.uniform = query, query.uniform
        self._cache: dict[str, Values] = {}
        self._forms: tuple[Rows, Values, Rows] | None = None

    def select(self, positions: Rows) -> Candidates:
        """Return the candidates at the given positions, which must be ascending.

        Features that do not depend on other candidates are kept.
        """
        candidates = Candidates(self.state, self.pack, self.query, self.rows[positions])
        features = self._cache
        candidates._cache = {
            name: features[name][positions] for name in _INDEPENDENT if name in features
        }
        return candidates

    def compute(self, name: str) -> Values:
        """Compute a feature of the candidates by name."""
        query, rows, state = self.query, self.rows, self.state
        match name:
            # Before the stages `seed` and `spread` set these values.
            case "seed" | "received" | "hops":
                return np.zeros(len(rows))
            case "activation":
                return self["seed"] + self["received"]
            case "session-seed":
                return self._session_seed()
            case "similarity":
                return query.similarity(rows)
            case "closeness":
                return query.embedder.scale(self["similarity"])
            case "nearness":
                return self._nearness()
            case "lexical":
                return query.matches.scores(rows)
            case "coverage":
                return query.matches.coverage(rows)
            case "session-lexical":
                return query.session_lexical(state.contexts.codes[rows])
            case "around-lexical":
                return query.around_lexical(self._windows())
            case "around-similarity":
                return query.around_similarity(self._windows())
            case "before-coverage":
                before = self.before()
                return np.where(before >= 0, query.matches.coverage(np.maximum(before, 0)), 0.0)
            case "late":
                forms, _, counts = self._word_forms()
                return query.late(rows, forms, counts)
            case "takes-over":
                return takes_over(
                    state.vectors.take(rows),
                    (min_max(self["late"]) + min_max(self["similarity"])) / 2.0,
                    self.number("created"),
                    state.names["speaker"].codes[rows],
                    state.contexts.codes[rows],
                    query.embedder.scale,
                )
            case "corrects":
                return self._corrects()
            case "outdated":
                return self._outdated()
            case "names-things":
                return self._names_things()
            case "names-speaker":
                return _is_any_of(state.names["speaker"].codes[rows], query.named_speakers)
            case "names-other":
                return np.asarray(~self["names-speaker"])
            case "date-gap":
                return days_from(query.spans, self.number("created"))
            case "names-date":
                return np.asarray(self["date-gap"] == 0, dtype=np.float64)
            case "names-file" | "names-tag":
                return self._names_any("files" if name == "names-file" else "tags")
            case "query-tags":
                tags = tuple(dict.fromkeys(_TAG.findall(query.question.text)))
                return np.fromiter([tags] * len(rows), dtype=object, count=len(rows))
            case "phrase":
                return self._phrase()
            case "triggered":
                return _is_any_of(rows, query.triggered)
            case "same-session":
                sessions = state.names["session"]
                return np.asarray(sessions.codes[rows] == sessions.code(query.question.session))
            case "same-branch":
                branches = state.names["branch"]
                wanted = map(branches.code, query.question.filters.branch or ())
                return _is_any_of(branches.codes[rows], np.array([-1, *wanted]))
        return super().compute(name)

    def contexts(self) -> Codes:
        """Return the code of the session of each row."""
        return self.state.contexts.codes[self.rows]

    def _phrase(self) -> Values:
        """Return the share of the query's word pairs that each text contains.

        Only texts that contain both words of some pair are read.
        """
        phrases = Phrases(self.query.words, self.query.question.text)
        shares = np.zeros(len(self))
        (positions,) = self.query.matches.with_pair(self.rows, phrases.terms).nonzero()
        if len(positions):
            texts = self.state.texts.to_list(self.rows[positions])
            shares[positions] = [phrases.share(text or "") for text in texts]
        return shares

    def _windows(self) -> Rows:
        """Return one column per row: the row with its two predecessors and two successors in its session.

        -1 stands for a missing neighbour.
        """
        if "windows" not in self._cache:
            self._cache["windows"] = self.state.rows_around(
                self.rows, 2, self.query.population.mask
            )
        return self._cache["windows"]

    def _word_forms(self) -> tuple[Rows, Values, Rows]:
        """Return the rows' word forms, a mask of capitalised forms, and the number per row."""
        if self._forms is None:
            self._forms = self.query.words.written.forms_of(self.rows)
        return self._forms

    def _content(self) -> list[frozenset[int]]:
        """Return the stems of each row's words, without stop words and unspecific words such as user or like."""
        forms, _, counts = self._word_forms()
        written = self.query.words.written
        stems = written.terms[forms]
        unspecific = self.query.signs.words["unspecific"]
        unspecific_ids = [written.ids[word] for word in unspecific if word in written.ids]
        stems = (
            np.where(np.isin(stems, written.terms[unspecific_ids]), -1, stems)
            if unspecific_ids
            else stems
        )
        parts = np.split(stems, counts.cumsum()[:-1])
        return [frozenset(part[part >= 0].tolist()) for part in parts]

    def _corrects(self) -> Values:
        """Return the feature ``corrects``: the relevance of a correction's original, otherwise 0.

        An original that the correction superseded counts, although no recall shows it.
        """
        kinds, status = self.state.names["kind"], self.state.names["status"]
        (rows,) = np.nonzero(kinds.codes[self.rows] == kinds.code("correction"))
        if not len(rows):
            return np.zeros(len(self.rows))
        ended = self.state.edges.step(self.rows[rows], _SUPERSEDES)
        ended = ended[(ended >= 0) & (ended < len(self.state))]
        ended = np.setdiff1d(ended[status.codes[ended] == status.code("superseded")], self.rows)
        if len(ended):
            both = Candidates(self.state, self.pack, self.query, np.union1d(self.rows, ended))
            values: Values = both["corrects"][np.searchsorted(both.rows, self.rows)]
            return values
        return corrects(
            rows,
            self.state.vectors.take(self.rows),
            np.maximum(self["late"], (min_max(self["late"]) + min_max(self["similarity"])) / 2.0),
            self["late"],
            self["words"],
            self._content(),
            self["says-change"],
            self.number("created"),
            self.state.names["speaker"].codes[self.rows],
            self.query.embedder.scale,
        )

    def _outdated(self) -> Values:
        """Return the feature ``outdated``: the share of query words in an updated statement.

        The value is the share of the query's words in a statement that a later memory restates, or
        0 if it is below the minimum. Texts are read only of pairs in which both memories contain
        enough words of the query.
        """
        shares, edges = np.zeros(len(self)), self.state.edges
        (own,) = is_in_sorted(self.rows, edges.entered(_UPDATES)).nonzero()
        if not len(own):
            return shares
        question = Asked(self.query.question.text, self.query.words.language or "none")
        minimum, contains_term = (
            max(_OUTDATED * len(question), 1),
            self.query.matches.terms_of(self.rows[own]),
        )
        enough = contains_term.sum(axis=0) >= minimum
        own, contains_term = own[enough], contains_term[:, enough]
        if not len(own):
            return shares
        met = edges.crossings(self.rows[own])
        positions, later = met.position, met.neighbour
        is_update = (
            (edges.relation[met.edge] == _UPDATES) & ~met.outgoing & (later < len(self.state))
        )
        if self.query.population.mask is not None:
            is_update[is_update] = self.query.population.mask[later[is_update]]
        positions, later = positions[is_update], later[is_update]
        rows, which = np.unique(later, return_inverse=True)
        both = (contains_term[:, positions] & self.query.matches.terms_of(rows)[:, which]).sum(
            axis=0
        ) >= minimum
        positions, later = own[positions[both]], later[both]
        texts = (self.state.texts.to_list(selected) for selected in (self.rows[positions], later))
        for position, old, new in zip(positions.tolist(), *texts, strict=True):
            shares[position] = max(shares[position], question.outdated(old or "", new or ""))
        return np.where(shares >= _OUTDATED, shares, 0.0)

    def _names_things(self) -> Values:
        """Return the number of capitalised words inside sentences, without names in the query, at most 3."""
        forms, capital, counts = self._word_forms()
        (positions,) = capital.nonzero()
        positions = positions[~_is_any_of(forms[positions], self.query.names)]
        row = counts.cumsum().searchsorted(positions, side="right")
        return np.minimum(np.bincount(row, minlength=len(self)), 3).astype(np.float64)

    def _nearness(self) -> Values:
        """Return ``nearness``: closeness to the query, for the shipped embedder corrected for length and common words."""
        if not self.query.embedder.is_shipped:
            return self["closeness"]
        specific = self.query.specific_matches
        shared = self["coverage"] if specific is None else specific.coverage(self.rows)
        return evened(self["closeness"], shared, self["length"])

    def _names_any(self, column: str) -> Values:
        """Return for each row whether the query names any of the row's files, or tags."""
        lists, text, words = self.state.lists[column], self.query.question.text, self.query.words
        if not lists.has_values:
            return np.zeros(len(self.rows), dtype=np.bool_)
        is_named = (
            file_namer(words.stop_words, text) if column == "files" else tag_namer(words, text)
        )
        flags = (any(map(is_named, lists.value_at(row))) for row in self.rows.tolist())
        return np.fromiter(flags, dtype=np.bool_, count=len(self))

    def _session_seed(self) -> Values:
        """Return, for each row, the maximum of the feature ``seed`` among the candidates of its session.

        A row without a session has its own seed.
        """
        contexts, seeds = self.state.contexts.codes[self.rows], self["seed"]
        # The last element is for rows without a session, whose code is -1.
        top = np.full(int(contexts.max(initial=-1)) + 2, -np.inf)
        np.maximum.at(top, contexts, seeds)
        return np.where(contexts >= 0, top[contexts], seeds)


def _is_any_of(values: Values, wanted: Values) -> Values:
    """Return a mask of the values that are in ``wanted``.

    A few comparisons cost a fifth of ``isin``, which sorts.
    """
    if len(wanted) > 8:
        return np.isin(values, wanted)
    matches = np.zeros(len(values), dtype=np.bool_)
    for value in wanted:
        matches |= values == value
    return matches
