"""The features of candidates that depend on the question or on spreading; ``_moment`` has the others.

``memlab.policies.FEATURES`` says what each name means; this module computes it. Nothing here weighs or decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from memlab.policies import Pack
from memlab.recall._dates import days_from
from memlab.recall._hints import Phrases, file_namer, tag_namer
from memlab.recall._moment import COMPUTE, Moment, Rows, Values
from memlab.recall._question import Asked
from memlab.state import State

__all__ = ["Candidates"]

_TAG = re.compile(r"(?<!\w)#([\w:/.+-]*\w)")


class Candidates(Moment):
    """Some rows of a state under one question, with all features on demand. Rows are ascending."""

    def __init__(self, state: State, pack: Pack, asked: Asked, rows: Rows) -> None:
        super().__init__(state, pack, rows, asked.at)
        self.asked = asked

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

    def phrase(self) -> Values:
        """Read are only the texts that hold both words of some pair."""
        asked = Phrases(self.asked.words, self.asked.question.text)
        found = np.zeros(len(self))
        places = np.flatnonzero(self.asked.matches.with_pair(self.rows, asked.terms))
        texts = self.state.texts.take(self.rows[places])
        found[places] = [asked.share(text or "") for text in texts]
        return found

    def date_gap(self) -> Values:
        spans = self.asked.spans
        return days_from(spans, self.number("created")) if spans else np.full(len(self.rows), np.nan)

    def names_date(self) -> Values:
        gap = self["date-gap"]
        return np.where(np.isnan(gap), np.nan, gap == 0)

    def names_file(self) -> Values:
        return self._any_named("files", lambda: file_namer(self.asked.words.stop_words, self.asked.question.text))

    def names_tag(self) -> Values:
        return self._any_named("tags", lambda: tag_namer(self.asked.words, self.asked.question.text))

    def _any_named(self, column: str, namer: Callable[[], Callable[[str], bool]]) -> Values:
        lists = self.state.lists[column]
        if not lists.held:
            return np.zeros(len(self), dtype=np.bool_)
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
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray(sessions.codes[self.rows] == sessions.code(session))

    def session_seed(self) -> Values:
        """The best seed of each session among these rows; a row without a session has its own."""
        contexts, seeds = self.contexts(), self["seed"]
        inside = contexts >= 0
        best = seeds.copy()
        if inside.any():
            sessions = contexts[inside]
            top = np.full(int(sessions.max()) + 1, -np.inf)
            np.maximum.at(top, sessions, seeds[inside])
            best[inside] = top[sessions]
        return np.asarray(best)


def _any_of(values: Values, wanted: Values) -> Values:
    """Which values are wanted; a few comparisons cost a fifth of ``isin``, which sorts."""
    if len(wanted) > 8:
        return np.isin(values, wanted)
    found = np.zeros(len(values), dtype=np.bool_)
    for value in wanted:
        found |= values == value
    return found


_COMPUTE: dict[str, Callable[[Candidates], Values]] = {
    **COMPUTE,
    "similarity": lambda pool: pool.asked.similarity(pool.rows),
    "closeness": lambda pool: pool.asked.closeness(pool["similarity"]),
    "lexical": lambda pool: pool.asked.matches.scores(pool.rows),
    "coverage": lambda pool: pool.asked.matches.coverage(pool.rows),
    "session-lexical": lambda pool: pool.asked.session_lexical(pool.contexts()),
    "before-coverage": Candidates.before_coverage,
    "names-speaker": Candidates.names_speaker,
    "names-other": lambda pool: ~pool["names-speaker"] & bool(len(pool.asked.named)),
    "phrase": Candidates.phrase,
    "date-gap": Candidates.date_gap,
    "names-date": Candidates.names_date,
    "names-file": Candidates.names_file,
    "names-tag": Candidates.names_tag,
    "query-tags": Candidates.query_tags,
    "triggered": Candidates.triggered,
    "same-session": Candidates.same_session,
    "same-branch": Candidates.same_branch,
    "seed": lambda pool: np.zeros(len(pool)),
    "received": lambda pool: np.zeros(len(pool)),
    "activation": lambda pool: pool["seed"] + pool["received"],
    "hops": lambda pool: np.zeros(len(pool)),
    "session-seed": Candidates.session_seed,
}

Candidates.compute = _COMPUTE
