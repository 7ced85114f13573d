"""The features of candidates of a question, by column and only once each.

``memlab.kernel.policies.FEATURES`` says what each name means; this module computes it. Nothing here weighs or decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.embedding import evened
from memlab.kernel.english import Asked
from memlab.kernel.index import among, products, products_below
from memlab.kernel.policies import Pack
from memlab.kernel.recall._mentions import Phrases, days_from, file_namer, tag_namer
from memlab.kernel.recall._moment import Moment, Rows, Values
from memlab.kernel.recall._query import QuestionFeatures
from memlab.kernel.schema import RELATIONS
from memlab.kernel.state import State

__all__ = ["Candidates", "corrects", "min_max", "takes_over"]


# Which statements may take the place of an older one that answers: later ones on the same subject.


_TYPICAL, _AT_TYPICAL, _PER_LOG_WORD = 8.0, 0.03, 0.233
"""Closeness of a pair of statements that have nothing to do with each other: at eight words each, and by the logarithm
of the geometric mean of their numbers of words. A line through 9,290 pairs of statements of tests and experiments."""

_BIAS, _PER_NEARER, _PER_GAP, _PER_LATE, _PER_SHARED = -6.7, 5.5, 5.1, 5.2, 7.0
"""Log-odds that a correction corrects a statement of which a query is asked: by how much closer the two are than an
unrelated pair, by how much less close than the nearest older statement, by the feature ``late`` of the correction, and
by the share of the words of the shorter one that both hold. Fitted by ``experiments/corrects.py`` to labs in which half
of the corrections correct nothing that is there.
"""

_IF_CHANGE = 2.0
"""Added for a correction that says a change ("moved", "now", "instead"): it leaves out what was said before, where one
that says "not in seconds" repeats it. The fit gives .3; set by hand between what leads rightly and wrongly."""

_ODDS = (-1.5, -0.75)
"""Log-odds from which it may be the correction, and from which it surely is."""

Scores = NDArray[np.float64]


def min_max(values: Scores) -> Scores:
    """From 0 to 1 over the pool; 0 where all are equal."""
    if not len(values):
        return values
    low, high = np.minimum.reduce(values), np.maximum.reduce(values)
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def takes_over(
    vectors: NDArray[np.int8],
    relevance: Scores,
    created: NDArray[Any],
    speakers: NDArray[np.int32],
    sessions: NDArray[np.int32],
    closeness: Callable[[Scores], Scores],
) -> Scores:
    """For each row the greatest, over older rows of its speaker from other sessions, of the closeness of the two times
    the cube of the older one's relevance; 0 where there is none.

    A session of -1 is none, and other than all. A pool of 100 takes .3 milliseconds of processor time.
    """
    if not len(vectors):
        return np.zeros(0)
    older = _older(created, speakers)
    older &= (sessions != sessions[:, None]) | (sessions < 0)
    (later, earlier) = older.nonzero()
    found = np.zeros(len(vectors))
    if not len(later):
        return found
    worth = np.maximum(_closeness_of(vectors, later, earlier, created, closeness), 0.0)
    worth *= (relevance**3)[earlier]
    (starts,) = (later[1:] != later[:-1]).nonzero()
    starts = np.concatenate(([0], starts + 1))
    found[later[starts]] = np.maximum.reduceat(worth, starts)
    return found


def corrects(
    rows: NDArray[np.int64],
    vectors: NDArray[np.int8],
    relevance: Scores,
    late: Scores,
    words: Scores,
    content: Sequence[frozenset[int]],
    says_change: NDArray[np.bool_],
    created: NDArray[Any],
    speakers: NDArray[np.int32],
    closeness: Callable[[Scores], Scores],
) -> Scores:
    """Return how relevant the statement is that each correction corrects, cubed; 0 for all but ``rows``.

    Parameters
    ----------
    rows
        The places of corrections in the pool, in any order.
    relevance, late, words
        Of each place, how relevant it is, from 0 to 1, and the features ``late`` and ``words``.
    content, says_change
        Of each place, the stems that say what it is about, and whether a word of it says that something changed.

    Notes
    -----
    A correction rarely repeats the words of what it corrects. Which older statement of its speaker is meant is told by
    how close the two are, for texts of their lengths, by the words that both hold, and by how much the correction itself
    speaks of the query. A correction of a correction has the relevance of the first statement.
    """
    found = np.zeros(len(vectors))
    allowed = _older(created, speakers)
    length = np.log(np.maximum(words, 1.0) / _TYPICAL)
    nearer = (
        _closeness(vectors, allowed, closeness)
        - _AT_TYPICAL
        - _PER_LOG_WORD * (length + length[:, None]) / 2.0
    )
    reached = relevance.copy()
    for row in rows[np.argsort(created[rows], kind="stable")].tolist():
        (older,) = np.nonzero(allowed[row])
        if not len(older):
            continue
        near = nearer[row, older]
        odds = _BIAS + _PER_NEARER * near + _PER_GAP * (near - near.max()) + _PER_LATE * late[row]
        odds += _IF_CHANGE if says_change[row] else 0.0
        odds += _PER_SHARED * np.array(
            [_shared(content[row], content[place]) for place in older.tolist()]
        )
        share = np.clip((odds - _ODDS[0]) / (_ODDS[1] - _ODDS[0]), 0.0, 1.0)
        found[row] = (share * reached[older] ** 3).max()
        reached[row] = max(reached[row], np.cbrt(found[row]))
    return found


def _shared(one: frozenset[int], other: frozenset[int]) -> float:
    """Return the share of the stems of the shorter statement that both hold."""
    return len(one & other) / max(1, min(len(one), len(other)))


def _older(created: NDArray[Any], speakers: NDArray[np.int32]) -> NDArray[np.bool_]:
    """bool[rows, rows]: where the row of the column is older than that of the line, and of the same speaker."""
    return np.asarray((created < created[:, None]) & (speakers == speakers[:, None]))


def _closeness_of(
    vectors: NDArray[np.int8],
    later: NDArray[np.int64],
    earlier: NDArray[np.int64],
    created: NDArray[Any],
    closeness: Callable[[Scores], Scores],
) -> NDArray[np.float64]:
    """The closeness of pairs of rows, each of which has a later and an earlier one."""
    matrix = vectors.astype(np.float32)
    ascending = bool((created[1:] >= created[:-1]).all())
    dots = (products_below if ascending else products)(matrix, matrix)[later, earlier].astype(
        np.float64
    )
    lengths = np.sqrt(np.maximum(np.einsum("ij,ij->i", matrix, matrix).astype(np.float64), 1.0))
    return closeness(dots / (lengths[later] * lengths[earlier]))


def _closeness(
    vectors: NDArray[np.int8], wanted: NDArray[np.bool_], closeness: Callable[[Scores], Scores]
) -> NDArray[np.float64]:
    """f64[rows, rows]: the closeness of the wanted pairs; -1 of all others."""
    matrix = vectors.astype(np.float32)
    dots = products(matrix, matrix).astype(np.float64)
    lengths = np.sqrt(np.maximum(dots.diagonal(), 1.0))
    found = np.full(dots.shape, -1.0)
    found[wanted] = closeness(dots[wanted] / (lengths[:, None] * lengths)[wanted])
    return found


_UPDATES = RELATIONS.index("updates")
_OUTDATED = 0.4
"""Share of a question's words from which it may be about one statement of a memory."""

_TAG = re.compile(r"(?<!\w)#([\w:/.+-]*\w)")

_BY_ITSELF = (
    *("seed", "received", "activation", "hops", "session-lexical", "names-speaker", "names-other"),
    *("coverage", "similarity", "lexical"),
)
"""Features whose values do not depend on which others are candidates."""


class Candidates(Moment):
    """Some rows of a state under one question, with all features on demand. Rows are ascending."""

    quiet = True

    def __init__(self, state: State, pack: Pack, asked: QuestionFeatures, rows: Rows) -> None:
        self.state, self.pack, self.rows, self.now = state, pack, rows, asked.now
        self.asked, self.uniform = asked, asked.uniform
        self._known: dict[str, Values] = {}
        self._held: tuple[Rows, Values, Rows] | None = None

    def among(self, places: Rows) -> Candidates:
        """Those at ascending places, with what is known of each row by itself."""
        found = Candidates(self.state, self.pack, self.asked, self.rows[places])
        known = self._known
        found._known = {name: known[name][places] for name in _BY_ITSELF if name in known}
        return found

    def compute(self, name: str) -> Values:
        """Compute a feature that does not follow from the query alone."""
        asked, rows, state = self.asked, self.rows, self.state
        match name:
            case "seed" | "received" | "hops":  # nothing has given it yet
                return np.zeros(len(rows))
            case "activation":
                return self["seed"] + self["received"]
            case "session-seed":
                return self._session_seed()
            case "similarity":
                return asked.similarity(rows)
            case "closeness":
                return asked.embedder.scale(self["similarity"])
            case "nearness":
                return self._nearness()
            case "lexical":
                return asked.matches.scores(rows)
            case "coverage":
                return asked.matches.coverage(rows)
            case "session-lexical":
                return asked.session_lexical(state.contexts.codes[rows])
            case "around-lexical":
                return asked.around_lexical(self._windows())
            case "around-similarity":
                return asked.around_similarity(self._windows())
            case "before-coverage":
                before = self.before()
                return np.where(before >= 0, asked.matches.coverage(np.maximum(before, 0)), 0.0)
            case "late":
                forms, _, counts = self._words_held()
                return asked.late(rows, forms, counts)
            case "takes-over":
                return takes_over(
                    state.vectors.take(rows),
                    (min_max(self["late"]) + min_max(self["similarity"])) / 2.0,
                    self.number("created"),
                    state.names["speaker"].codes[rows],
                    state.contexts.codes[rows],
                    asked.embedder.scale,
                )
            case "corrects":
                return self._corrects()
            case "outdated":
                return self._outdated()
            case "names-things":
                return self._names_things()
            case "names-speaker":
                return _any_of(state.names["speaker"].codes[rows], asked.named)
            case "names-other":
                return np.asarray(~self["names-speaker"])
            case "date-gap":
                return days_from(asked.spans, self.number("created"))
            case "names-date":
                return np.asarray(self["date-gap"] == 0, dtype=np.float64)
            case "names-file" | "names-tag":
                return self._names_any("files" if name == "names-file" else "tags")
            case "query-tags":
                named = tuple(dict.fromkeys(_TAG.findall(asked.question.text)))
                return np.fromiter([named] * len(rows), dtype=object, count=len(rows))
            case "phrase":
                return self._phrase()
            case "triggered":
                return _any_of(rows, asked.triggered)
            case "same-session":
                sessions = state.names["session"]
                return np.asarray(sessions.codes[rows] == sessions.code(asked.question.session))
            case "same-branch":
                branches = state.names["branch"]
                wanted = map(branches.code, asked.question.filters.branch or ())
                return _any_of(branches.codes[rows], np.array([-1, *wanted]))
        return super().compute(name)

    def contexts(self) -> NDArray[np.int32]:
        """The code of the session of each row."""
        return self.state.contexts.codes[self.rows]

    def _phrase(self) -> Values:
        """The share of the query's phrases in each text; read are only texts that hold both words of some pair."""
        asked = Phrases(self.asked.words, self.asked.question.text)
        found = np.zeros(len(self))
        (places,) = self.asked.matches.with_pair(self.rows, asked.terms).nonzero()
        if len(places):
            texts = self.state.texts.to_list(self.rows[places])
            found[places] = [asked.share(text or "") for text in texts]
        return found

    def _windows(self) -> Rows:
        """The rows, the two that take part before each in its session and the two after; -1 where there is none."""
        if "windows" not in self._known:
            self._known["windows"] = self.state.rows_around(
                self.rows, 2, self.asked.population.mask
            )
        return self._known["windows"]

    def _words_held(self) -> tuple[Rows, Values, Rows]:
        """The forms of the rows, which of them have a capital, and how many each row has."""
        if self._held is None:
            self._held = self.asked.words.written.held(self.rows)
        return self._held

    def _content(self) -> list[frozenset[int]]:
        """The stems of each row that say what it is about: no stop words, no words such as user and like."""
        forms, _, counts = self._words_held()
        written = self.asked.words.written
        stems = written.terms[forms]
        unspecific = self.asked.signs.words["unspecific"]
        known = [written.ids[word] for word in unspecific if word in written.ids]
        stems = np.where(np.isin(stems, written.terms[known]), -1, stems) if known else stems
        parts = np.split(stems, counts.cumsum()[:-1])
        return [frozenset(part[part >= 0].tolist()) for part in parts]

    def _corrects(self) -> Values:
        kinds = self.state.names["kind"]
        (rows,) = np.nonzero(kinds.codes[self.rows] == kinds.code("correction"))
        if not len(rows):
            return np.zeros(len(self.rows))
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
            self.asked.embedder.scale,
        )

    def _outdated(self) -> Values:
        """Texts are read only of pairs that both hold enough of the question's words."""
        found, edges = np.zeros(len(self)), self.state.edges
        updated = edges.entered(_UPDATES)
        (own,) = among(self.rows, updated).nonzero()
        if not len(own):
            return found
        asked = Asked(self.asked.question.text, self.asked.words.language or "none")
        least, held = max(_OUTDATED * len(asked), 1), self.asked.matches.terms_of(self.rows[own])
        enough = held.sum(axis=0) >= least
        own, held = own[enough], held[:, enough]
        if not len(own):
            return found
        met = edges.crossings(self.rows[own])
        places, later = met.position, met.neighbour
        kept = (edges.relation[met.edge] == _UPDATES) & ~met.outgoing & (later < len(self.state))
        if self.asked.population.mask is not None:
            kept[kept] = self.asked.population.mask[later[kept]]
        places, later = places[kept], later[kept]
        rows, which = np.unique(later, return_inverse=True)
        both = (held[:, places] & self.asked.matches.terms_of(rows)[:, which]).sum(axis=0) >= least
        places, later = own[places[both]], later[both]
        texts = (self.state.texts.to_list(some) for some in (self.rows[places], later))
        for place, old, new in zip(places.tolist(), *texts, strict=True):
            found[place] = max(found[place], asked.outdated(old or "", new or ""))
        return np.where(found >= _OUTDATED, found, 0.0)

    def _names_things(self) -> Values:
        forms, capital, counts = self._words_held()
        (places,) = capital.nonzero()
        places = places[~_any_of(forms[places], self.asked.names)]
        row = counts.cumsum().searchsorted(places, side="right")
        return np.minimum(np.bincount(row, minlength=len(self)), 3).astype(np.float64)

    def _nearness(self) -> Values:
        if not self.asked.embedder.calibrated:
            return self["closeness"]
        specific = self.asked.specific_matches
        shared = self["coverage"] if specific is None else specific.coverage(self.rows)
        return evened(self["closeness"], shared, self["length"])

    def _names_any(self, column: str) -> Values:
        """Whether the query names any of the files, or of the tags, of each row."""
        lists, text, words = self.state.lists[column], self.asked.question.text, self.asked.words
        if not lists.has_values:
            return np.zeros(len(self.rows), dtype=np.bool_)
        is_named = (
            file_namer(words.stop_words, text) if column == "files" else tag_namer(words, text)
        )
        held = (any(map(is_named, lists.value_at(row))) for row in self.rows.tolist())
        return np.fromiter(held, dtype=np.bool_, count=len(self))

    def _session_seed(self) -> Values:
        """The best seed of each session among these rows; a row without a session has its own."""
        contexts, seeds = self.state.contexts.codes[self.rows], self["seed"]
        # the last place is for rows without a session, whose code is -1
        top = np.full(int(contexts.max(initial=-1)) + 2, -np.inf)
        np.maximum.at(top, contexts, seeds)
        return np.where(contexts >= 0, top[contexts], seeds)


def _any_of(values: Values, wanted: Values) -> Values:
    """Which values are wanted; a few comparisons cost a fifth of ``isin``, which sorts."""
    if len(wanted) > 8:
        return np.isin(values, wanted)
    found = np.zeros(len(values), dtype=np.bool_)
    for value in wanted:
        found |= values == value
    return found
