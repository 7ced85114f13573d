"""The features of candidates of a question, by column and only once each.

``memlab.kernel.policies.FEATURES`` says what each name means; this module computes it. Nothing here weighs or decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.embedding import evened
from memlab.kernel.index import Asked, Signs, among, products, products_below
from memlab.kernel.language import Known
from memlab.kernel.policies import Pack
from memlab.kernel.recall._mentions import Phrases, days_from, file_namer, tag_namer
from memlab.kernel.recall._moment import COMPUTE, Moment, Rows, Values
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
    starts = np.flatnonzero(np.diff(later, prepend=-1))
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
    nearer = _closeness(vectors, allowed, closeness) - _AT_TYPICAL - _PER_LOG_WORD * (length + length[:, None]) / 2.0
    reached = relevance.copy()
    for row in rows[np.argsort(created[rows], kind="stable")].tolist():
        (older,) = np.nonzero(allowed[row])
        if not len(older):
            continue
        near = nearer[row, older]
        odds = _BIAS + _PER_NEARER * near + _PER_GAP * (near - near.max()) + _PER_LATE * late[row]
        odds += _IF_CHANGE if says_change[row] else 0.0
        odds += _PER_SHARED * np.array([_shared(content[row], content[place]) for place in older.tolist()])
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
    dots = (products_below if ascending else products)(matrix, matrix)[later, earlier].astype(np.float64)
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
        super().__init__(state, pack, rows, asked.at)
        self.asked = asked
        self._held: tuple[Rows, Values, Rows] | None = None

    def shared(self, names: Iterable[str]) -> Known:
        """Which of these features all candidates share, with the value."""
        kept, found = self.asked.shared, []
        for name in names:
            if name not in kept:
                kept[name] = _UNIFORM[name](self.asked)
            if kept[name] is not _VARIES:
                found.append((name, kept[name]))
        return tuple(found)

    def among(self, places: Rows) -> Candidates:
        """Those at ascending places, with what is known of each row by itself."""
        found = Candidates(self.state, self.pack, self.asked, self.rows[places])
        known = self._known
        found.give(**{name: known[name][places] for name in _BY_ITSELF if name in known})
        return found

    def contexts(self) -> NDArray[np.int32]:
        return self.state.contexts.codes[self.rows]

    def query_tags(self) -> Values:
        named = tuple(dict.fromkeys(_TAG.findall(self.asked.question.text)))
        found = np.empty(len(self), dtype=object)
        found[:] = [named] * len(self)
        return found

    def triggered(self) -> Values:
        return _any_of(self.rows, self.asked.triggered())

    def names_speaker(self) -> Values:
        return _any_of(self.state.names["speaker"].codes[self.rows], self.asked.named)

    def names_other(self) -> Values:
        return ~self["names-speaker"] & bool(len(self.asked.named))

    def lexical(self) -> Values:
        return self.asked.matches.scores(self.rows)

    def coverage(self) -> Values:
        return self.asked.matches.coverage(self.rows)

    def phrase(self) -> Values:
        """Read are only the texts that hold both words of some pair."""
        asked = Phrases(self.asked.words, self.asked.question.text)
        found = np.zeros(len(self))
        places = np.flatnonzero(self.asked.matches.with_pair(self.rows, asked.terms))
        texts = self.state.texts.take(self.rows[places])
        found[places] = [asked.share(text or "") for text in texts]
        return found

    def windows(self) -> Rows:
        """The rows, the two that take part before each in its session and the two after; -1 where there is none."""
        if "windows" not in self._known:
            self._known["windows"] = self.state.around(self.rows, 2, self.asked.population.mask)
        return self._known["windows"]

    def held(self) -> tuple[Rows, Values, Rows]:
        """The forms of the rows, which of them have a capital, and how many each row has."""
        if self._held is None:
            self._held = self.asked.words.written.held(self.rows)
        return self._held

    def late(self) -> Values:
        forms, _, counts = self.held()
        return self.asked.late(self.rows, forms, counts)

    def takes_over(self) -> Values:
        return takes_over(
            self.state.vectors.take(self.rows),
            (min_max(self["late"]) + min_max(self["similarity"])) / 2.0,
            self.number("created"),
            self.state.names["speaker"].codes[self.rows],
            self.contexts(),
            self.asked.embedder.scale,
        )

    def content(self) -> list[frozenset[int]]:
        """The stems of each row that say what it is about: no stop words, no words such as user and like."""
        forms, _, counts = self.held()
        written = self.asked.words.written
        stems = written.terms[forms]
        unspecific = self.asked.signs.words["unspecific"]
        known = [form for word in unspecific if (form := written.id_of(word)) >= 0]
        stems = np.where(np.isin(stems, written.terms[known]), -1, stems) if known else stems
        parts = np.split(stems, counts.cumsum()[:-1])
        return [frozenset(part[part >= 0].tolist()) for part in parts]

    def corrects(self) -> Values:
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
            self.content(),
            self["says-change"],
            self.number("created"),
            self.state.names["speaker"].codes[self.rows],
            self.asked.embedder.scale,
        )

    def outdated(self) -> Values:
        """Texts are read only of pairs that both hold enough of the question's words."""
        found, edges = np.zeros(len(self)), self.state.edges
        updated = edges.entered(_UPDATES)
        own = np.flatnonzero(among(self.rows, updated))
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
        texts = (self.state.texts.take(some) for some in (self.rows[places], later))
        for place, old, new in zip(places.tolist(), *texts, strict=True):
            found[place] = max(found[place], asked.outdated(old or "", new or ""))
        return np.where(found >= _OUTDATED, found, 0.0)

    def names_things(self) -> Values:
        forms, capital, counts = self.held()
        (places,) = capital.nonzero()
        places = places[~_any_of(forms[places], self.asked.names)]
        row = counts.cumsum().searchsorted(places, side="right")
        return np.minimum(np.bincount(row, minlength=len(self)), 3).astype(np.float64)

    def nearness(self) -> Values:
        if not self.asked.embedder.calibrated:
            return self["closeness"]
        specific = self.asked.specific_matches
        shared = self["coverage"] if specific is None else specific.coverage(self.rows)
        return evened(self["closeness"], shared, self["length"])

    def date_gap(self) -> Values:
        spans = self.asked.spans
        return days_from(spans, self.number("created")) if spans else np.full(len(self.rows), np.nan)

    def names_date(self) -> Values:
        gap = self["date-gap"]
        return np.where(np.isnan(gap), np.nan, gap == 0) if self.asked.spans else gap

    def names_file(self) -> Values:
        return self._any_named("files", lambda: file_namer(self.asked.words.stop_words, self.asked.question.text))

    def names_tag(self) -> Values:
        return self._any_named("tags", lambda: tag_namer(self.asked.words, self.asked.question.text))

    def _any_named(self, column: str, namer: Callable[[], Callable[[str], bool]]) -> Values:
        lists = self.state.lists[column]
        if not lists.held:
            return np.zeros(len(self.rows), dtype=np.bool_)
        named = namer()
        held = (any(map(named, lists.at(row))) for row in self.rows.tolist())
        return np.fromiter(held, dtype=np.bool_, count=len(self))

    def before_coverage(self) -> Values:
        rows = self.before()
        return np.where(rows >= 0, self.asked.matches.coverage(np.maximum(rows, 0)), 0.0)

    def same_branch(self) -> Values:
        branches = self.state.names["branch"]
        codes = branches.codes[self.rows]
        wanted = self.asked.question.filters.branch or ()
        return _any_of(codes, np.array([-1, *map(branches.code, wanted)]))

    def same_session(self) -> Values:
        sessions = self.state.names["session"]
        session = self.asked.question.session
        if session is None:
            return np.zeros(len(self.rows), dtype=np.bool_)
        return np.asarray(sessions.codes[self.rows] == sessions.code(session))

    def session_seed(self) -> Values:
        """The best seed of each session among these rows; a row without a session has its own."""
        contexts, seeds = self.contexts(), self["seed"]
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


_VARIES = object()
"""In the place of a value that all candidates share: they do not share one."""


def _names_anyone(asked: QuestionFeatures) -> Any:
    return _VARIES if len(asked.named) else False


_UNIFORM: dict[str, Callable[[QuestionFeatures], Any]] = {
    "asks-when": lambda asked: asked.signs.asks_when(asked.spoken),
    "asks-how-many": lambda asked: asked.signs.asks_how_many(asked.spoken),
    "asks-you": lambda asked: asked.signs.asks_you(asked.spoken),
    "asks-now": lambda asked: asked.signs.asks_now(asked.spoken),
    "asks-over-time": lambda asked: asked.signs.asks_over_time(asked.spoken),
    "names-speaker": _names_anyone,
    "names-other": _names_anyone,
    "names-date": lambda asked: _VARIES if asked.spans else None,
    "date-gap": lambda asked: _VARIES if asked.spans else None,
    "same-session": lambda asked: _VARIES if asked.question.session else False,
    "triggered": lambda asked: _VARIES if len(asked.triggered()) else False,
}
"""Of each feature that all candidates of some recalls share, the value: null as None."""


def _of_question(asks: Callable[[Signs, str], bool]) -> Callable[[Candidates], Values]:
    return lambda pool: (np.ones if asks(pool.asked.signs, pool.asked.spoken) else np.zeros)(len(pool), np.bool_)


_COMPUTE: dict[str, Callable[[Candidates], Values]] = {
    **COMPUTE,
    "late": Candidates.late,
    "around-lexical": lambda pool: pool.asked.around_lexical(pool.windows()),
    "around-similarity": lambda pool: pool.asked.around_similarity(pool.windows()),
    "names-things": Candidates.names_things,
    "asks-when": _of_question(Signs.asks_when),
    "asks-how-many": _of_question(Signs.asks_how_many),
    "asks-you": _of_question(Signs.asks_you),
    "asks-now": _of_question(Signs.asks_now),
    "asks-over-time": _of_question(Signs.asks_over_time),
    "takes-over": Candidates.takes_over,
    "corrects": Candidates.corrects,
    "outdated": Candidates.outdated,
    "similarity": lambda pool: pool.asked.similarity(pool.rows),
    "closeness": lambda pool: pool.asked.embedder.scale(pool["similarity"]),
    "nearness": Candidates.nearness,
    "lexical": Candidates.lexical,
    "coverage": Candidates.coverage,
    "session-lexical": lambda pool: pool.asked.session_lexical(pool.contexts()),
    "before-coverage": Candidates.before_coverage,
    "names-speaker": Candidates.names_speaker,
    "names-other": Candidates.names_other,
    "phrase": Candidates.phrase,
    "date-gap": Candidates.date_gap,
    "names-date": Candidates.names_date,
    "names-file": Candidates.names_file,
    "names-tag": Candidates.names_tag,
    "query-tags": Candidates.query_tags,
    "triggered": Candidates.triggered,
    "same-session": Candidates.same_session,
    "same-branch": Candidates.same_branch,
    "seed": lambda pool: np.zeros(len(pool.rows)),
    "received": lambda pool: np.zeros(len(pool.rows)),
    "activation": lambda pool: pool["seed"] + pool["received"],
    "hops": lambda pool: np.zeros(len(pool.rows)),
    "session-seed": Candidates.session_seed,
}

Candidates.compute = _COMPUTE
