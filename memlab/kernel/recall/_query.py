"""A question, and the evidence that the index has for it over the memories that may answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.embedding import Embedder, load_embedder
from memlab.kernel.english import signs_of
from memlab.kernel.graph import node_kinds
from memlab.kernel.index import (
    InPassages,
    Matches,
    Query,
    Vectors,
    Words,
    best,
    compact,
    group_scores,
    idf,
    products,
)
from memlab.kernel.language import Value
from memlab.kernel.policies import Pack
from memlab.kernel.recall._mentions import Span, Triggers, named_dates
from memlab.kernel.recall._population import NO_FILTERS, Filters, Population
from memlab.kernel.schema import RELATIONS
from memlab.kernel.state import Entities, State, entity_key

__all__ = [
    "NO_ENTITIES",
    "About",
    "Content",
    "EntityNames",
    "Question",
    "QuestionFeatures",
    "SpeakerNames",
    "WordVectors",
    "first_mention",
]


# How nearly each word of a question has a word in a text, by the vectors of single words of the model that ships.
#
# Products of integer vectors are exact in any order: 256 of them stay below 2^24, which 32-bit floats hold without a
# rounding. So a value is the same on every machine. Vectors of words are made when a pool first holds them and kept.


Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


class _Table:
    """The vectors of some forms of ``Words.written``: components, lengths (1 for a zero vector), which are there."""

    def __init__(self, size: int) -> None:
        dim = load_embedder().dim
        self.vectors = np.zeros((size, dim), dtype=np.int8)
        self.norms = np.ones(size)
        self.known = np.zeros(size, dtype=np.bool_)

    def grown(self, size: int) -> _Table:
        """As many forms or more."""
        found = _Table(size)
        held = len(self.known)
        found.vectors[:held], found.norms[:held], found.known[:held] = (
            self.vectors,
            self.norms,
            self.known,
        )
        return found


class WordVectors:
    """The vectors of single words, by the model that ships, whatever embeds the memories."""

    def __init__(self) -> None:
        self._tables: WeakKeyDictionary[Words, _Table] = WeakKeyDictionary()

    def late(self, words: Words, held: tuple[Rows, Rows], asked: Content, left_out: Rows) -> Scores:
        """For each row the mean, by the weights of ``asked``, of the cosine of each word with the nearest of the row.

        A word of whose stem the row has any form counts 1. Words without a neighbour at a cosine above 0 count 0.
        ``held`` has the forms of the rows, one row after the other, and how many of each; those ``left_out`` are not
        looked at.
        """
        every, counts = held
        if not asked.words or not len(every):
            return np.zeros(len(counts))
        forms, place = compact(every, words.written.forms)
        cosine = self._cosines(words, [word for word, _ in asked.words], forms)
        stems = np.array([[stem] for _, stem in asked.words], dtype=np.int32)
        np.copyto(cosine, 1.0, where=words.written.terms.take(forms) == stems)
        if len(left_out):
            at = forms.searchsorted(left_out)
            inside = at < len(forms)
            cosine[:, at[inside][forms[at[inside]] == left_out[inside]]] = 0.0
        (some,) = counts.nonzero()
        starts = (counts.cumsum() - counts)[some]
        nearest = np.maximum.reduceat(cosine.take(place, axis=1), starts, axis=1)
        np.maximum(nearest, 0.0, out=nearest)
        found = np.zeros(len(counts))
        share = asked.weight / asked.weight.sum()
        # word by word: a sum may be taken in another order
        found[some] = (nearest * share[:, None]).cumsum(axis=0)[-1]
        return found

    def _cosines(self, words: Words, asked: list[str], forms: Rows) -> Scores:
        """f64[asked, forms]: the cosine of each word of a query with each of these forms of the texts."""
        table = self._tables.get(words)
        if table is None or len(table.known) < words.written.forms:
            table = self._tables[words] = (table or _Table(0)).grown(2 * words.written.forms)
        ids = words.written.ids
        own = np.array([ids.get(word, -1) for word in asked], dtype=np.int64)
        wanted = np.concatenate((forms, own[own >= 0]))
        missing = wanted[~table.known[wanted]]
        strange = [word for word, form in zip(asked, own.tolist(), strict=True) if form < 0]
        count, fresh, lengths = len(missing), table.vectors[:0], table.norms[:0]
        if count or strange:
            # all at once: to encode costs as much as five words more
            fresh = load_embedder().embed([*words.written.names(missing), *strange])
            wide = fresh.astype(np.float32)
            # whole, below 2^24: exact in any order
            squares = np.vecdot(wide, wide).astype(np.float64)
            lengths = np.sqrt(np.maximum(squares, 1.0))
            table.vectors[missing], table.norms[missing], table.known[missing] = (
                fresh[:count],
                lengths[:count],
                True,
            )
        vectors, norms = table.vectors[own].astype(np.float32), table.norms[own]
        if strange:
            vectors[own < 0], norms[own < 0] = fresh[count:], lengths[count:]
        dots = products(table.vectors.take(forms, axis=0), vectors).T
        both = np.multiply.outer(norms, table.norms.take(forms))
        return np.asarray(np.divide(dots, both, out=both))


class Content(NamedTuple):
    """What a query is about: its words without stop words, names of speakers, and words that only ask ("how much").

    A word that only asks counts where a text has it; where none has, nothing lacks an answer for that.
    """

    words: list[tuple[str, int]]
    """Each with the id of its stem; -1 where no text has it."""
    terms: Rows
    """Which of the terms of the query's hits they are."""
    weight: Scores
    """The idf of each."""


_WORD = re.compile(r"\w+")
_ALL = 10_000
"""Vectors of which one pass gives the nearest and every similarity that features will ask for."""

_AROUND_K1, _AROUND_B = 0.9, 0.2
"""Of the words of five turns: their own lengths say less than that of one."""


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

    def find(
        self, text: str, vocabulary: list[str], present: NDArray[np.int64]
    ) -> NDArray[np.int32]:
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
        self.embedder, self._word_vectors = embedder, word_vectors
        self.at, self.now = question.at, np.asarray(question.at, dtype=np.float64)
        given = question.vector
        self.vector: NDArray[np.int8] = (
            embedder.embed([question.text])[0] if given is None else given
        )
        settings = pack.settings
        self._k1, self._b = float(settings["bm25-k1"]), float(settings["bm25-b"])
        self.words = words = state.get_words(str(settings["language"]))
        self._lengths = population.lengths(state, words)
        self.query = words.query(question.text)
        self.matches = self._match(self.query)
        self.signs = signs_of(words.language)
        """What a query in this language shows."""
        self._near: tuple[Rows, Scores] = np.empty(0, dtype=np.int64), np.empty(0)
        self.named = speakers.find(
            question.text, state.names["speaker"].vocabulary, population.speakers
        )
        """The codes of the speakers that it names."""
        self.triggered = population.among(triggers.called(state, question.text))
        """The rows that take part and have a trigger in it, ascending."""
        self.spans: tuple[Span, ...] = (
            named_dates(question.text, self.at) if len(population.rows) else ()
        )
        """The days that it names."""
        if self.spans:
            self.spans = named_dates(question.text, self.at, population.newest(state))
        uniform: dict[str, Value] = dict(self.signs.read_query(f" {' '.join(self.query.tokens)} "))
        if not len(self.named):
            uniform |= {"names-speaker": False, "names-other": False}
        if not self.spans:
            uniform |= {"names-date": None, "date-gap": None}
        if not question.session:
            uniform["same-session"] = False
        if not len(self.triggered):
            uniform["triggered"] = False
        self.uniform: Mapping[str, Value] = uniform
        """The features that all candidates share, because they follow from the query alone; null as None."""

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
        return self._match(query) if query.words else None

    def _match(self, query: Query) -> Matches:
        """The evidence of the index for these words of the query; of long memories, that of their passages, too."""
        words, mask, passages, inside = self.words, self.population.mask, self.words.passages, None
        if passages is not None:
            hits = passages.words.hits(query, None if mask is None else mask[passages.of])
            inside = InPassages(passages, hits, self._lengths.mean_of_parts)
        return Matches(
            words.hits(query, mask),
            words.lengths,
            count=len(self.population.rows),
            mean_length=self._lengths.mean,
            k1=self._k1,
            b=self._b,
            inside=inside,
        )

    def nearest(self, count: int) -> Rows:
        """The nearest memories that take part and have a vector, best first."""
        population, vectors = self.population, self.state.vectors
        rows = self.state.drop_unembedded(population.rows)
        every = len(rows) == len(population.rows)
        if len(rows) <= _ALL:
            among = None if every and population.mask is None else rows
            cosine = vectors.similarity(self.vector, among, key=population.key if every else None)
            self._near = rows, cosine
            return rows[best(cosine, count)]
        found, cosine = vectors.top(
            self.vector, count, **(population.search if every else {"rows": rows})
        )
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
    def content(self) -> Content:
        """What the query is about."""
        query, names, only_ask = (
            self.query,
            self.population.names(self.state),
            self.signs.words["only-ask"],
        )
        known = len(query.terms)
        frequency = [*self.matches.hits.frequency.tolist(), *[0] * (len(query.words) - known)]
        kept = [
            place
            for place, (word, _) in enumerate(query.words)
            if word not in names and (frequency[place] or word not in only_ask)
        ]
        terms = np.array([place for place in kept if place < known], dtype=np.int64)
        counts = np.array([frequency[place] for place in kept], dtype=np.int64)
        return Content(
            [query.words[place] for place in kept], terms, idf(counts, len(self.population.rows))
        )

    @cached_property
    def names(self) -> Rows:
        """The forms that are words of names of speakers, ascending."""
        ids = self.words.written.ids
        known = [ids[name] for name in self.population.names(self.state) if name in ids]
        return np.array(sorted(known), dtype=np.int64)

    def late(self, rows: Rows, forms: Rows, counts: Rows) -> Scores:
        """How nearly each word of the query has a word in each row: these forms, so many of each. In a long row, in its
        best passage.
        """
        passages, late = self.words.passages, self._word_vectors.late
        if passages is None or not len((among := passages.among(rows))[0]):
            return late(self.words, (forms, counts), self.content, self.names)
        long, inside, starts = among
        short = np.ones(len(rows), dtype=np.bool_)
        short[long] = False
        forms_inside, _, counts_inside = passages.words.written.held(inside)
        own = np.concatenate((forms[short.repeat(counts)], forms_inside))
        scores = late(
            self.words,
            (own, np.concatenate((counts[short], counts_inside))),
            self.content,
            self.names,
        )
        found = np.empty(len(rows))
        found[short] = scores[: len(rows) - len(long)]
        found[long] = np.maximum.reduceat(scores[len(rows) - len(long) :], starts)
        return found

    def around_lexical(self, windows: Rows) -> Scores:
        """BM25 of the words of each row and of those around it."""
        return self.matches.around(windows, self.content.terms, k1=_AROUND_K1, b=_AROUND_B)

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

    def session_lexical(self, contexts: NDArray[np.int32]) -> Scores:
        """BM25 of the sessions with these codes; 0 for a memory without a session."""
        sessions = self._lengths.sessions
        codes, place = compact(contexts.astype(np.int64) + 1)
        scores = group_scores(
            self.matches.hits,
            self.state.contexts.codes,
            sessions,
            codes - 1,
            k1=self._k1,
            b=self._b,
        )
        return scores[place]


# The entities that a question is about: those that it names, and those whose names are nearest to it.
#
# Every name and alias has a vector of its own, so that an entity with many names is as near as its nearest one. They
# are embedded when a question first needs them, and kept while the lab is open.


_MENTIONS = RELATIONS.index("mentions")
_FIRST_LOOKED_AT = 64
"""Entities, best first, of which it is asked whether what takes part mentions them; then four times as many."""

_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
"""Scripts in which a name may stand anywhere: no space parts their words, or endings follow at once."""

_PIECE = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")

Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class About:
    """Nodes of entities, ascending, each with how near it is to the question: above 0, and 1 where it is named."""

    nodes: Nodes
    nearness: Scores


NO_ENTITIES = About(np.empty(0, dtype=np.int64), np.empty(0))


@dataclass
class _Known:
    """What is kept of the names of one state: ``size`` of them so far."""

    vectors: Vectors
    size: int = 0
    places: dict[tuple[str, ...], int] = field(default_factory=dict)
    """Of each name, as pieces."""
    lengths: dict[str, set[int]] = field(default_factory=dict)
    """How many pieces the names have that begin with this one."""
    version: int = -1
    roots: Nodes = field(default_factory=lambda: NO_ENTITIES.nodes)
    """Of each name, the entity that it stands for."""
    nodes: Nodes = field(default_factory=lambda: NO_ENTITIES.nodes)
    """Of each entity, its node, -1 while no memory mentions it."""
    seen: int = -1
    """How many nodes of entities there were."""


class EntityNames:
    """The names of entities, as vectors and as pieces of text, of the states that are asked."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: WeakKeyDictionary[State, _Known] = WeakKeyDictionary()

    def about(self, asked: QuestionFeatures, count: int, floor: float) -> About:
        """The ``count`` entities that a question is most about, among those that memories which take part mention.

        An entity that the question does not name takes part from a closeness of ``floor``.
        """
        state = asked.state
        entities = state.projection(Entities)
        if not len(entities) or not count or asked.question.filters.without is None:
            return NO_ENTITIES  # where memory is off, no name is embedded either
        known = self._learned(state, entities)
        cosine = np.full(len(entities), -np.inf)
        np.maximum.at(cosine, known.roots, known.vectors.similarity(asked.vector))
        near = cosine.copy()
        for place in _named(known, asked.question.text, asked.words.stop_words):
            # before all that are not named
            near[known.roots[place]] = 2.0 + cosine[known.roots[place]]
        near[known.nodes < 0] = -np.inf
        chosen = _mentioned(asked, known.nodes, near, count)
        nearness = np.where(near[chosen] > 1.0, 1.0, self._embedder.closeness(cosine[chosen]))
        enough = (nearness > 0) & (nearness >= floor)
        chosen, nearness = chosen[enough], nearness[enough]
        order = np.argsort(known.nodes[chosen])
        return About(known.nodes[chosen][order], nearness[order])

    def _learned(self, state: State, entities: Entities) -> _Known:
        known = self._kept.get(state)
        if known is None:
            known = self._kept[state] = _Known(Vectors(self._embedder.dim))
        fresh = entities.names[known.size :]
        if fresh:
            known.vectors.append(self._embedder.encode(fresh))
            for place, name in enumerate(fresh, known.size):
                pieces = tuple(_pieces(entity_key(name)))
                known.places[pieces] = place
                known.lengths.setdefault(pieces[0], set()).add(len(pieces))
        if known.version != entities.version:
            known.roots = entities.find_roots()[np.array(entities.owners, dtype=np.int64)]
            known.nodes, known.seen = NO_ENTITIES.nodes, -1
            known.version = entities.version
        elif fresh:
            known.roots = np.concatenate(
                (known.roots, [entities.find_root(n) for n in entities.owners[known.size :]])
            )
        known.size += len(fresh)
        if known.seen != state.nodes.count("entity") or len(known.nodes) < len(entities):
            known.nodes = np.concatenate(
                (known.nodes, np.full(len(entities) - len(known.nodes), -1))
            )
            absent = np.flatnonzero(known.nodes < 0)
            names = (entities.entries[number].name for number in absent.tolist())
            known.nodes[absent] = state.nodes.find("entity", names)
            known.seen = state.nodes.count("entity")
        return known


def _named(known: _Known, question: str, stop_words: frozenset[str]) -> Iterator[int]:
    """The names that stand in a question, in any case; a name that is a stop word is not meant."""
    pieces = _pieces(
        unicodedata.normalize("NFC", unicodedata.normalize("NFD", question).casefold())
    )
    for start, piece in enumerate(pieces):
        for length in known.lengths.get(piece, ()):
            name = tuple(pieces[start : start + length])
            if name in known.places and not (length == 1 and piece in stop_words):
                yield known.places[name]


def first_mention(names: Iterable[str], text: str, stop_words: frozenset[str]) -> int | None:
    """Return how many pieces of ``text`` precede the first of these names in it, or None if it holds none of them.

    A name counts in any case; a name that is a stop word is not meant.

    >>> first_mention(["Ada Lovelace", "Ada"], "Where does ADA live?", frozenset())
    2
    """
    pieces = _pieces(entity_key(text)) if text.strip() else []
    wanted = [_pieces(entity_key(name)) for name in names]
    for start in range(len(pieces)):
        for name in wanted:
            meant = len(name) > 1 or name[0] not in stop_words
            if meant and pieces[start : start + len(name)] == name:
                return start
    return None


def _pieces(text: str) -> list[str]:
    """Runs of letters and digits, and every other sign by itself. A mark, such as a vowel of Hindi, parts no run.

    >>> _pieces("is c++ in osl\u00f6?")
    ['is', 'c', '+', '+', 'in', 'osl\u00f6', '?']
    """
    if text.isascii():
        return _PIECE.findall(text)
    pieces: list[str] = []
    end, marked = -1, False
    for found in _PIECE.finditer(text):
        piece, mark = found[0], unicodedata.category(found[0][0]).startswith("M")
        if pieces and found.start() == end and (mark or (marked and piece[0].isalnum())):
            pieces[-1] += piece
        else:
            pieces.append(piece)
        end, marked = found.end(), mark
    return pieces


def _mentioned(asked: QuestionFeatures, nodes: Nodes, near: Scores, count: int) -> Nodes:
    """The ``count`` nearest entities that a memory which takes part mentions; ties by number."""
    mask, edges = asked.population.mask, asked.state.edges
    many, able = _FIRST_LOOKED_AT, int(np.isfinite(near).sum())
    while True:
        order = best(near, min(many, able))
        met = edges.crossings(nodes[order])
        takes_part = (edges.relation[met.edge] == _MENTIONS) & (node_kinds(met.neighbour) == 0)
        if mask is not None:
            takes_part[takes_part] = mask[met.neighbour[takes_part]]
        found: Nodes = order[np.unique(met.position[takes_part])]
        if len(found) >= count or many >= able:
            return found[:count]
        many *= 4
