"""A question, and the evidence that the index has for it over the memories that may answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.embedding import Embedder
from memlab.kernel.english import Signs, signs_of
from memlab.kernel.index import InPassages, Matches, Query, TermHits, best, compact, group_scores, idf
from memlab.kernel.policies import Pack
from memlab.kernel.recall._dates import Span, named_dates
from memlab.kernel.recall._filters import NO_FILTERS, Filters
from memlab.kernel.recall._late import WordVectors, late
from memlab.kernel.recall._population import Population
from memlab.kernel.recall._triggers import Triggers
from memlab.kernel.state import State

__all__ = ["Question", "QuestionFeatures", "SpeakerNames"]

_WORD = re.compile(r"\w+")
_ALL = 10_000
"""Vectors of which one pass gives the nearest and every similarity that features will ask for."""

_AROUND_K1, _AROUND_B = 0.9, 0.2
"""Of the words of five turns: their own lengths say less than that of one."""

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """What is asked, when (microseconds UTC), from where, of which memories; ``vector`` if it was embedded before."""

    text: str
    at: int
    project: str | None = None
    session: str | None = None
    filters: Filters = NO_FILTERS
    vector: NDArray[np.int8] | None = None


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

    def find(self, text: str, vocabulary: list[str], present: NDArray[np.int64]) -> NDArray[np.int32]:
        """The codes of those speakers ``present`` whom ``text`` names."""
        if len(vocabulary) < self._known:
            self._codes, self._known = {}, 0
        if len(vocabulary) > self._known:
            self._learn(vocabulary)
        named: set[int] = set()
        for word in _WORD.findall(text.lower()):
            named.update(self._codes.get(word, ()))
        if named:
            named.intersection_update(present.tolist())
        return np.array(sorted(named), dtype=np.int32)


class QuestionFeatures:
    """A question against one state: vectors and postings are read once, features look rows up in them."""

    def __init__(
        self,
        state: State,
        pack: Pack,
        embedder: Embedder,
        question: Question,
        population: Population,
        speakers: SpeakerNames,
        triggers: Triggers,
        word_vectors: WordVectors,
    ) -> None:
        self.state, self.question, self.population = state, question, population
        self.embedder, self._triggers, self._word_vectors = embedder, triggers, word_vectors
        self.at = question.at
        self.named = speakers.find(question.text, state.names["speaker"].vocabulary, population.speakers)
        given = question.vector
        self.vector: NDArray[np.int8] = embedder.embed([question.text])[0] if given is None else given
        self._k1, self._b = float(pack.settings["bm25-k1"]), float(pack.settings["bm25-b"])
        self.words = words = state.words_in(str(pack.settings["language"]))
        self._lengths = population.lengths(state, words)
        self.query = words.query(question.text)
        self.hits: TermHits = words.hits(self.query, population.mask)
        self.matches = self._matches(self.query, self.hits)
        self._near: tuple[Rows, Scores] = np.empty(0, dtype=np.int64), np.empty(0)
        self._triggered: Rows | None = None
        self.shared: dict[str, Any] = {}
        """Features that all candidates may share, by name, as they were asked for."""

    @cached_property
    def specific_matches(self) -> Matches | None:
        """The matches of the query without its unspecific words (user, like, do ...), which are no evidence.

        None where the query has no such word, or no other.
        """
        unspecific = self.signs.words["unspecific"]
        kept = [token for token in self.query.tokens if token not in unspecific]
        if len(kept) == len(self.query.tokens):
            return None
        query = self.words.query(" ".join(kept))
        if not query.words:
            return None
        return self._matches(query, self.words.hits(query, self.population.mask))

    def _matches(self, query: Query, hits: TermHits) -> Matches:
        """The evidence of the index for these words of the query."""
        return Matches(
            hits,
            self.words.lengths,
            count=len(self.population.rows),
            mean_length=self._lengths.mean,
            k1=self._k1,
            b=self._b,
            inside=self._in_passages(query),
        )

    def _in_passages(self, query: Query) -> InPassages | None:
        passages, mask = self.words.passages, self.population.mask
        if passages is None:
            return None
        hits = passages.words.hits(query, None if mask is None else mask[passages.of])
        return InPassages(passages, hits, self._lengths.mean_of_parts)

    def nearest(self, count: int) -> Rows:
        """The nearest memories that take part and have a vector, best first."""
        population, vectors = self.population, self.state.vectors
        rows = self.state.embedded(population.rows)
        every = len(rows) == len(population.rows)
        if len(rows) <= _ALL:
            among = None if every and population.mask is None else rows
            cosine = vectors.similarity(self.vector, among, key=population.key if every else None)
            self._near = rows, cosine
            return rows[best(cosine, count)]
        found, cosine = vectors.top(self.vector, count, **(population.search if every else {"rows": rows}))
        order = np.argsort(found)
        self._near = found[order], cosine[order]
        return found

    def similarity(self, rows: Rows) -> Scores:
        """Cosines of ascending rows; those that were asked for before, or are the nearest, are not computed again."""
        known, values = self._near
        if not len(known):
            return self.state.vectors.similarity(self.vector, rows)
        place = known[:-1].searchsorted(rows)
        found = values[place]
        (fresh,) = (known[place] != rows).nonzero()
        if len(fresh):
            found[fresh] = self.state.vectors.similarity(self.vector, rows[fresh])
        if len(rows) > len(known):
            self._near = rows, found
        return found

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The days that the question names."""
        text, population = self.question.text, self.population
        if not len(population.rows) or not named_dates(text, self.at):
            return ()
        return named_dates(text, self.at, population.newest(self.state))

    @cached_property
    def content(self) -> tuple[list[tuple[str, int]], Rows, Scores]:
        """The question's words with the ids of their stems (-1: no text has it); which of the hits' terms they are; and
        the idf of each. Left out are stop words, names of speakers, and words that only ask ("how much") where no text
        has them: nothing lacks an answer for that.
        """
        names, only_ask = self.population.names(self.state), self.signs.words["only-ask"]
        frequency = np.zeros(len(self.query.words), dtype=np.int64)
        known = len(self.query.terms)
        frequency[:known] = self.hits.frequency
        kept = [
            place
            for place, (word, _) in enumerate(self.query.words)
            if word not in names and (frequency[place] or word not in only_ask)
        ]
        terms = np.array([place for place in kept if place < known], dtype=np.int64)
        return [self.query.words[place] for place in kept], terms, idf(frequency[kept], len(self.population))

    @cached_property
    def names(self) -> Rows:
        """The forms that are words of names of speakers, ascending."""
        id_of = self.words.written.id_of
        return np.array(
            sorted(found for name in self.population.names(self.state) if (found := id_of(name)) >= 0), dtype=np.int64
        )

    def late(self, rows: Rows, forms: Rows, counts: Rows) -> Scores:
        """How nearly each word of the question has a word in each row: these forms, so many of each. In a long row, in
        its best passage.
        """
        passages = self.words.passages
        if passages is None:
            return self._late(forms, counts)
        long, inside, starts = passages.among(rows)
        if not len(long):
            return self._late(forms, counts)
        short = np.ones(len(rows), dtype=np.bool_)
        short[long] = False
        forms_inside, _, counts_inside = passages.words.written.held(inside)
        own = np.concatenate((forms[short.repeat(counts)], forms_inside))
        scores = self._late(own, np.concatenate((counts[short], counts_inside)))
        found = np.empty(len(rows))
        found[short] = scores[: len(rows) - len(long)]
        found[long] = np.maximum.reduceat(scores[len(rows) - len(long) :], starts)
        return found

    def _late(self, forms: Rows, counts: Rows) -> Scores:
        asked, _, weight = self.content
        return late(self._word_vectors, self.words, (forms, counts), asked, weight, self.names)

    def around_lexical(self, windows: Rows) -> Scores:
        """BM25 of the words of each row and of those around it."""
        _, terms, _ = self.content
        return self.matches.around(windows, terms, k1=_AROUND_K1, b=_AROUND_B)

    def around_similarity(self, windows: Rows) -> Scores:
        """The mean cosine of each row and of those around it."""
        unique, place = compact(windows.ravel() + 1)
        there = unique > 0
        cosine = np.zeros(len(unique))
        cosine[there] = self.similarity(unique[there] - 1)
        total, count = np.zeros(windows.shape[1]), np.zeros(windows.shape[1])
        for own in place.reshape(windows.shape):
            total += cosine[own]
            count += there[own]
        return total / np.maximum(count, 1.0)

    @cached_property
    def spoken(self) -> str:
        """Its words, as ``Signs`` wants them."""
        return f" {' '.join(self.query.tokens)} "

    @cached_property
    def signs(self) -> Signs:
        """What a question in this language shows."""
        return signs_of(self.words.language)

    def triggered(self) -> Rows:
        """The rows that take part and have a trigger in the question, ascending."""
        if self._triggered is None:
            self._triggered = self.population.among(self._triggers.called(self.state, self.question.text))
        return self._triggered

    def session_lexical(self, contexts: NDArray[np.int32]) -> Scores:
        """BM25 of the sessions with these codes; 0 for a memory without a session."""
        sessions = self._lengths.sessions
        codes, place = compact(contexts.astype(np.int64) + 1)
        scores = group_scores(self.hits, self.state.contexts.codes, sessions, codes - 1, k1=self._k1, b=self._b)
        return scores[place]
