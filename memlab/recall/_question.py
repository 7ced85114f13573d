"""A question, and the evidence that the index has for it over the memories that may answer."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.embedding import Embedder
from memlab.index import TermHits, bm25, coverage, group_bm25
from memlab.memory import State
from memlab.policies import Pack

__all__ = ["Asked", "Population", "Populations", "Question", "SpeakerNames"]

_WORD = re.compile(r"\w+")
_POPULATIONS = 16

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """What is asked, from where, and when (microseconds UTC); ``vector`` if it was embedded before."""

    text: str
    at: int
    project: str | None = None
    session: str | None = None
    branch: str | None = None
    vector: NDArray[np.int8] | None = None


@dataclass(frozen=True)
class Population:
    """The memories that may take part in a recall: filter first, then search what is left.

    Document statistics of BM25 are those of the population, so one project's words say nothing of another's.
    """

    mask: NDArray[np.bool_] | None
    rows: Rows
    speakers: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.rows)


class Populations:
    """The populations of recent filters; one is valid until a memory is added or changes its status."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Any, ...], Population] = OrderedDict()

    def get(self, state: State, *, project: str | None, session: str | None) -> Population:
        key = (state.generation, len(state), project, session)
        found = self._kept.get(key)
        if found is None:
            mask = state.population(project=project, session=session)
            rows = np.flatnonzero(mask)
            everything = len(rows) == len(state)
            found = Population(None if everything else mask, rows, np.unique(state.names["speaker"].codes[rows]))
            self._kept[key] = found
            while len(self._kept) > _POPULATIONS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return found


class SpeakerNames:
    """Which speakers a text names: any word of a name counts, in any case."""

    def __init__(self) -> None:
        self._codes: dict[str, set[int]] = {}
        self._known = 0

    def _learn(self, vocabulary: list[str]) -> None:
        for code in range(self._known, len(vocabulary)):
            for word in _WORD.findall(vocabulary[code].lower()):
                self._codes.setdefault(word, set()).add(code)
        self._known = len(vocabulary)

    def find(self, text: str, vocabulary: list[str], present: NDArray[np.int32]) -> NDArray[np.int32]:
        """The codes of those speakers ``present`` whom ``text`` names."""
        if len(vocabulary) < self._known:
            self._codes, self._known = {}, 0
        if len(vocabulary) > self._known:
            self._learn(vocabulary)
        here = set(present.tolist())
        named: set[int] = set()
        for word in _WORD.findall(text.lower()):
            named |= self._codes.get(word, _NOBODY) & here
        return np.array(sorted(named), dtype=np.int32)


_NOBODY: frozenset[int] = frozenset()


class Asked:
    """A question against one state: vectors and postings are read once, features look rows up in them."""

    def __init__(
        self,
        state: State,
        pack: Pack,
        embedder: Embedder,
        question: Question,
        population: Population,
        speakers: SpeakerNames,
    ) -> None:
        self.state, self.question, self.population = state, question, population
        self._embedder = embedder
        self.at, self.session, self.branch = question.at, question.session, question.branch
        self.named = speakers.find(question.text, state.names["speaker"].vocabulary, population.speakers)
        given = question.vector
        self.vector: NDArray[np.int8] = embedder.encode([question.text])[0] if given is None else given
        self._k1, self._b = pack.number("bm25-k1"), pack.number("bm25-b")
        words = state.words
        self.hits: TermHits = words.hits(words.query(question.text), population.mask)
        self._size = len(population)
        lengths = words.lengths
        self._mean_length = float(lengths[population.rows].mean()) if self._size else 0.0
        self.posted, self.posted_scores = bm25(
            self.hits, lengths, k1=self._k1, b=self._b, count=self._size, mean_length=self._mean_length
        )
        self._covered_rows, self._covered = coverage(self.hits, count=self._size)
        self._sessions: tuple[Rows, Scores] | None = None
        self._triggered: Rows | None = None

    def similarity(self, rows: Rows) -> Scores:
        return self.state.vectors.similarity(self.vector, rows)

    def closeness(self, cosine: Scores) -> Scores:
        return self._embedder.closeness(cosine)

    def lexical(self, rows: Rows) -> Scores:
        return _look_up(self.posted, self.posted_scores, rows)

    def coverage(self, rows: Rows) -> Scores:
        return _look_up(self._covered_rows, self._covered, rows)

    def triggered(self) -> Rows:
        """The rows that take part and have a trigger in the question, ascending."""
        if self._triggered is None:
            said = self.question.text.lower()
            rows = [
                row
                for row, triggers in self.state.lists["triggers"].filled()
                if any(t.lower() in said for t in triggers)
            ]
            found = np.array(sorted(rows), dtype=np.int64)
            self._triggered = found if self.population.mask is None else found[self.population.mask[found]]
        return self._triggered

    def session_lexical(self, contexts: NDArray[np.int32]) -> Scores:
        """BM25 of the sessions with these codes; 0 for a memory without a session."""
        if self._sessions is None:
            codes = self.state.contexts.codes
            self._sessions = group_bm25(
                self.hits, codes, self.state.words.lengths, k1=self._k1, b=self._b, rows=self.population.rows
            )
        return _look_up(*self._sessions, contexts)


def _look_up(keys: NDArray[Any], values: Scores, wanted: NDArray[Any]) -> Scores:
    """The value of each wanted key among the ascending ``keys``; 0 where it is missing."""
    if not len(keys):
        return np.zeros(len(wanted))
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0.0)
