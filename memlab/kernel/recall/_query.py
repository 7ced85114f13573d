"""A query, and its matches in the vectors, words and entities of a state."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from memlab.kernel.base.arrays import NO_ROWS, Codes, Components, Ints, Rows, Scores
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

# The feature `late`: for each word of a query, the cosine of the nearest word of a text, by vectors of single words.
#
# The dot product of two int8 vectors of 256 dimensions stays below 2^24, so float32 holds it exactly. The
# values are therefore the same on every machine. The vector of a word is computed when a pool first contains it.


class _Table:
    """Vectors of word forms by id.

    ``norms`` has the length of each vector, 1 for a zero vector. ``known`` marks computed vectors.
    """

    def __init__(self, size: int) -> None:
        self.vectors = np.zeros((size, load_embedder().dim), dtype=np.int8)
        self.norms = np.ones(size)
        self.known = np.zeros(size, dtype=np.bool_)

    def extend(self, size: int) -> _Table:
        """Return a copy of the table with room for ``size`` word forms."""
        table = _Table(size)
        count = len(self.known)
        table.vectors[:count], table.norms[:count], table.known[:count] = (
            self.vectors,
            self.norms,
            self.known,
        )
        return table


class WordVectors:
    """A cache of the vectors of single words, by the shipped model.

    Memories may be embedded by another embedder.
    """

    def __init__(self) -> None:
        self._tables: WeakKeyDictionary[Words, _Table] = WeakKeyDictionary()

    def late(
        self, words: Words, row_forms: tuple[Rows, Rows], content: Content, skipped: Rows
    ) -> Scores:
        """Return the mean cosine of the query's words with the nearest words of each row.

        The mean is weighted by the weights of the words.

        Parameters
        ----------
        words
            The words of all memories.
        row_forms
            The word forms of the rows, one row after the other, and the number of forms per row.
        content
            The content of the query. A word counts 1 in a row that contains its stem, and 0 without a positive cosine.
        skipped
            Forms that are skipped, such as names of speakers.
        """
        every, counts = row_forms
        if not content.words or not len(every):
            return np.zeros(len(counts))
        forms, column = compact(every, words.written.forms)
        cosine = self._cosines(words, [word for word, _ in content.words], forms)
        stems = np.array([[stem] for _, stem in content.words], dtype=np.int32)
        np.copyto(cosine, 1.0, where=words.written.terms.take(forms) == stems)
        if len(skipped):
            positions = forms.searchsorted(skipped)
            inside = positions < len(forms)
            cosine[:, positions[inside][forms[positions[inside]] == skipped[inside]]] = 0.0
        (rows,) = counts.nonzero()
        starts = (counts.cumsum() - counts)[rows]
        nearest = np.maximum.reduceat(cosine.take(column, axis=1), starts, axis=1)
        np.maximum(nearest, 0.0, out=nearest)
        means = np.zeros(len(counts))
        share = content.weight / content.weight.sum()
        # A cumulative sum adds word by word; `sum` may add in another order on another machine.
        means[rows] = (nearest * share[:, None]).cumsum(axis=0)[-1]
        return means

    def _cosines(self, words: Words, query_words: list[str], forms: Rows) -> Scores:
        """Return f64[words, forms]: the cosine of each word of the query with each form."""
        table = self._tables.get(words)
        if table is None or len(table.known) < words.written.forms:
            table = self._tables[words] = (table or _Table(0)).extend(2 * words.written.forms)
        ids = words.written.ids
        own = np.array([ids.get(word, -1) for word in query_words], dtype=np.int64)
        wanted = np.concatenate((forms, own[own >= 0]))
        missing = wanted[~table.known[wanted]]
        unseen = [word for word, form in zip(query_words, own.tolist(), strict=True) if form < 0]
        count, embedded, lengths = len(missing), table.vectors[:0], table.norms[:0]
        if count or unseen:
            # All words are embedded in one call, because a call costs as much as five words.
            embedded = load_embedder().embed([*words.written.names(missing), *unseen])
            wide = embedded.astype(np.float32)
            # Sums of integers below 2^24 are exact in float32.
            squares = np.vecdot(wide, wide).astype(np.float64)
            lengths = np.sqrt(np.maximum(squares, 1.0))
            table.vectors[missing], table.norms[missing], table.known[missing] = (
                embedded[:count],
                lengths[:count],
                True,
            )
        vectors, norms = table.vectors[own].astype(np.float32), table.norms[own]
        if unseen:
            vectors[own < 0], norms[own < 0] = embedded[count:], lengths[count:]
        dots = products(table.vectors.take(forms, axis=0), vectors).T
        both = np.multiply.outer(norms, table.norms.take(forms))
        return np.asarray(np.divide(dots, both, out=both))


class Content(NamedTuple):
    """The content words of a query.

    Stop words, names of speakers, and words that only ask ("how much") are left out.

    A word that only asks counts if a text contains it; otherwise its absence says nothing about an answer.
    """

    words: list[tuple[str, int]]
    """The words, each with the id of its stem, which is -1 if no text contains it."""
    terms: Rows
    """The indices of these words among the terms of the query."""
    weight: Scores
    """The inverse document frequency of each word."""


# A word of a speaker's name.
_WORD = re.compile(r"\w+")
_ALL = 100_000
"""Maximum number of vectors for which one pass computes all similarities.

Features read these similarities later.
"""

_AROUND_K1, _AROUND_B = 0.9, 0.2
"""BM25 parameters for windows of five turns, whose length is less informative than the length of one turn."""


@dataclass(frozen=True)
class Question:
    """A query with its time, project, session and filters.

    The time is in microseconds UTC. ``vector`` is None if it is not yet embedded.
    """

    text: str
    at: int
    project: str | None = None
    session: str | None = None
    filters: Filters = NO_FILTERS
    vector: Components | None = None


class SpeakerNames:
    """Finder of the speakers that a text names by any word of their names."""

    def __init__(self) -> None:
        self._codes: dict[str, set[int]] = {}
        self._known = 0

    def _learn(self, vocabulary: list[str]) -> None:
        """Index the words in the names of speakers that are new in ``vocabulary``."""
        for code in range(self._known, len(vocabulary)):
            for word in _WORD.findall(vocabulary[code].lower()):
                self._codes.setdefault(word, set()).add(code)
        self._known = len(vocabulary)

    def find(self, text: str, vocabulary: list[str], present: Ints) -> Codes:
        """Return the ascending codes of speakers in ``present`` that ``text`` names."""
        if len(vocabulary) < self._known:
            self._codes, self._known = {}, 0
        if len(vocabulary) > self._known:
            self._learn(vocabulary)
        codes: set[int] = set()
        for word in _WORD.findall(text.lower()):
            codes.update(self._codes.get(word, ()))
        if codes:
            codes.intersection_update(present.tolist())
        return np.array(sorted(codes), dtype=np.int32)


class QuestionFeatures:
    """A query's vector, words and matches in one state.

    Vectors and postings are read once; features look up rows.
    """

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
        vector = question.vector
        self.vector: Components = embedder.embed_query(question.text) if vector is None else vector
        settings = pack.settings
        self._k1, self._b = float(settings["bm25-k1"]), float(settings["bm25-b"])
        self.words = words = state.get_words(str(settings["language"]))
        self._lengths = population.lengths(state, words)
        self.query = words.query(question.text)
        self.matches = self._match(self.query)
        self.signs = signs_of(words.language)
        """The table of signs of the language, such as words that ask for a time."""
        self._near: tuple[Rows, Scores] = NO_ROWS, np.empty(0)
        self.named_speakers = speakers.find(
            question.text, state.names["speaker"].vocabulary, population.speakers
        )
        """The codes of the speakers that the query names."""
        self.triggered = population.keep_members(triggers.match(state, question.text))
        """The rows whose triggers match the query, ascending."""
        self.spans: tuple[Span, ...] = (
            named_dates(question.text, self.at) if len(population.rows) else ()
        )
        """The spans of time that the query names."""
        if self.spans:
            self.spans = named_dates(question.text, self.at, population.newest(state))
        uniform: dict[str, Value] = dict(self.signs.read_query(f" {' '.join(self.query.tokens)} "))
        uniform["reliance"] = embedder.reliance
        if not len(self.named_speakers):
            uniform |= {"names-speaker": False, "names-other": False}
        if not self.spans:
            uniform |= {"names-date": None, "date-gap": None}
        if not question.session:
            uniform["same-session"] = False
        if not len(self.triggered):
            uniform["triggered"] = False
        self.uniform: Mapping[str, Value] = uniform
        """The features that follow from the query alone, with their values; null is None."""

    @cached_property
    def specific_matches(self) -> Matches | None:
        """The matches of the query without unspecific words such as "user" or "like".

        Unspecific words are no evidence. The value is None if the query has only specific or only
        unspecific words.
        """
        unspecific = self.signs.words["unspecific"]
        specific = [token for token in self.query.tokens if token not in unspecific]
        if len(specific) == len(self.query.tokens):
            return None
        query = self.words.query(" ".join(specific))
        return self._match(query) if query.words else None

    def _match(self, query: Query) -> Matches:
        """Return the BM25 matches of a query, with matches of passages for long memories."""
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
        """Return the nearest memories of the population by vector, best first."""
        population, vectors = self.population, self.state.vectors
        rows = self.state.drop_unembedded(population.rows)
        every = len(rows) == len(population.rows)
        if len(rows) <= _ALL:
            subset = None if every and population.mask is None else rows
            cosine = vectors.similarity(self.vector, subset, key=population.key if every else None)
            self._near = rows, cosine
            return rows[best(cosine, count)]
        nearest, cosine = vectors.top(
            self.vector, count, **(population.search if every else {"rows": rows})
        )
        order = np.argsort(nearest)
        self._near = nearest[order], cosine[order]
        return nearest

    def similarity(self, rows: Rows, *, key: Hashable | None = None) -> Scores:
        """Return the cosine of the query with each of the ascending rows.

        Cosines that an earlier call or the search has computed are reused. With a ``key``, the
        vectors of the rows are cached for the next query if they must be read.
        """
        cached_rows, values = self._near
        if not len(cached_rows):
            return self.state.vectors.similarity(self.vector, rows, key=key)
        position = cached_rows[:-1].searchsorted(rows)
        cosines = values[position]
        (missing,) = (cached_rows[position] != rows).nonzero()
        if len(missing) and key is not None:
            return self.state.vectors.similarity(self.vector, rows, key=key)
        if len(missing):
            cosines[missing] = self.state.vectors.similarity(self.vector, rows[missing])
        if len(rows) > len(cached_rows):
            self._near = rows, cosines
        return cosines

    @cached_property
    def content(self) -> Content:
        """The content words of the query."""
        query, names, only_ask = (
            self.query,
            self.population.names(self.state),
            self.signs.words["only-ask"],
        )
        known_terms = len(query.terms)
        frequency = [*self.matches.hits.frequency.tolist(), *[0] * (len(query.words) - known_terms)]
        positions = [
            position
            for position, (word, _) in enumerate(query.words)
            if word not in names and (frequency[position] or word not in only_ask)
        ]
        terms = np.array(
            [position for position in positions if position < known_terms], dtype=np.int64
        )
        counts = np.array([frequency[position] for position in positions], dtype=np.int64)
        return Content(
            [query.words[position] for position in positions],
            terms,
            idf(counts, len(self.population.rows)),
        )

    @cached_property
    def names(self) -> Rows:
        """The ids of word forms that occur in names of speakers, ascending."""
        ids = self.words.written.ids
        name_ids = [ids[name] for name in self.population.names(self.state) if name in ids]
        return np.array(sorted(name_ids), dtype=np.int64)

    def late(self, rows: Rows, forms: Rows, counts: Rows) -> Scores:
        """Return the feature ``late``: the closeness of each row's words to the query's words.

        A long text has the value of its best passage.

        ``forms`` are the word forms of the rows, one row after the other, and ``counts`` is the
        number per row.
        """
        passages, late = self.words.passages, self._word_vectors.late
        if passages is None or not len((long_rows := passages.find(rows))[0]):
            return late(self.words, (forms, counts), self.content, self.names)
        long, inside, starts = long_rows
        short = np.ones(len(rows), dtype=np.bool_)
        short[long] = False
        forms_inside, _, counts_inside = passages.words.written.forms_of(inside)
        own = np.concatenate((forms[short.repeat(counts)], forms_inside))
        scores = late(
            self.words,
            (own, np.concatenate((counts[short], counts_inside))),
            self.content,
            self.names,
        )
        scores_by_row = np.empty(len(rows))
        scores_by_row[short] = scores[: len(rows) - len(long)]
        scores_by_row[long] = np.maximum.reduceat(scores[len(rows) - len(long) :], starts)
        return scores_by_row

    def around_lexical(self, windows: Rows) -> Scores:
        """Return the BM25 score of each window of neighbouring rows."""
        return self.matches.around(windows, self.content.terms, k1=_AROUND_K1, b=_AROUND_B)

    def around_similarity(self, windows: Rows) -> Scores:
        """Return the mean cosine of each window of neighbouring rows."""
        unique, columns = compact(windows.ravel() + 1)
        is_row = unique > 0
        cosine = np.zeros(len(unique))
        cosine[is_row] = self.similarity(unique[is_row] - 1)
        total, count = np.zeros(windows.shape[1]), np.zeros(windows.shape[1])
        for own in columns.reshape(windows.shape):
            total += cosine[own]
            count += is_row[own]
        return total / np.maximum(count, 1.0)

    def session_lexical(self, contexts: Codes) -> Scores:
        """Return the BM25 score of each session, or 0 for a code of -1."""
        if not (contexts >= 0).any():
            return np.zeros(len(contexts))
        sessions = self._lengths.sessions
        codes, columns = compact(contexts.astype(np.int64) + 1)
        scores = group_scores(
            self.matches.hits,
            self.state.contexts.codes,
            sessions,
            codes - 1,
            k1=self._k1,
            b=self._b,
        )
        return scores[columns]


# The entities of a query: those that it names, and those whose names are nearest to it.
#
# Every name and alias has its own vector, so an entity is as near as its nearest name. Names are embedded when a query
# first needs them, and cached while the lab is open.


# The relation of a memory to an entity.
_MENTIONS = RELATIONS.index("mentions")
_FIRST_LOOKED_AT = 64
"""Number of entities that are checked for mentions in the first pass.

Each later pass checks four times as many.
"""

_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
"""Scripts in which a name may begin inside a run of letters: no spaces between words, or endings follow directly."""

# Scripts without spaces are split into characters, because a run of them is a whole sentence.
_PIECE = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")

Nodes = Ints


@dataclass(frozen=True)
class About:
    """Nodes of entities with the nearness of each to the query.

    Nodes ascend. Nearness is above 0, and 1 if the query names the entity.
    """

    nodes: Nodes
    nearness: Scores


# Most packs spread from memories alone, so most recalls have no entities.
NO_ENTITIES = About(NO_ROWS, np.empty(0))


@dataclass
class _CachedNames:
    """The cached names of the entities of one state; ``size`` is their number so far."""

    vectors: Vectors
    size: int = 0
    rows: dict[tuple[str, ...], int] = field(default_factory=dict)
    """The row of each name in ``vectors``, keyed by the pieces of the name."""
    lengths: dict[str, set[int]] = field(default_factory=dict)
    """For each first piece of a name, the numbers of pieces of such names."""
    version: int = -1
    roots: Nodes = field(default_factory=lambda: NO_ENTITIES.nodes)
    """The entity of each name, after merges."""
    nodes: Nodes = field(default_factory=lambda: NO_ENTITIES.nodes)
    """The node of each entity; -1 while no memory mentions it."""
    node_count: int = -1
    """The number of entity nodes when ``nodes`` was updated."""


class EntityNames:
    """The names of entities of recalled states, as vectors and as pieces of text."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._cache: WeakKeyDictionary[State, _CachedNames] = WeakKeyDictionary()

    def about(self, query: QuestionFeatures, count: int, floor: float) -> About:
        """Return at most ``count`` entities of a query that eligible memories mention.

        An entity that the query does not name needs a closeness of at least ``floor``.
        """
        state = query.state
        entities = state.projection(Entities)
        if not len(entities) or not count or query.question.filters.without is None:
            # Names are not embedded while memory is off: the embedder may be a remote service.
            return NO_ENTITIES
        names = self._update_names(state, entities)
        cosine = np.full(len(entities), -np.inf)
        np.maximum.at(cosine, names.roots, names.vectors.similarity(query.vector))
        near = cosine.copy()
        for row in _find_named(names, query.question.text, query.words.stop_words):
            # A named entity ranks above every entity that is not named.
            near[names.roots[row]] = 2.0 + cosine[names.roots[row]]
        near[names.nodes < 0] = -np.inf
        chosen = _select_mentioned(query, names.nodes, near, count)
        nearness = np.where(near[chosen] > 1.0, 1.0, query.embedder.closeness(cosine[chosen]))
        is_near = (nearness > 0) & (nearness >= floor)
        chosen, nearness = chosen[is_near], nearness[is_near]
        order = np.argsort(names.nodes[chosen])
        return About(names.nodes[chosen][order], nearness[order])

    def _update_names(self, state: State, entities: Entities) -> _CachedNames:
        """Update and return the cached entity names, vectors and nodes of a state."""
        # Three updates, each only if its source has changed: names, merges of entities, and nodes of the graph.
        names = self._cache.get(state)
        if names is None:
            names = self._cache[state] = _CachedNames(Vectors(self._embedder.dim))
        added = entities.names[names.size :]
        if added:
            names.vectors.append(self._embedder.encode(added))
            for row, name in enumerate(added, names.size):
                pieces = tuple(_pieces(entity_key(name)))
                names.rows[pieces] = row
                names.lengths.setdefault(pieces[0], set()).add(len(pieces))
        if names.version != entities.version:
            names.roots = entities.find_roots()[np.array(entities.owners, dtype=np.int64)]
            names.nodes, names.node_count = NO_ENTITIES.nodes, -1
            names.version = entities.version
        elif added:
            names.roots = np.concatenate(
                (names.roots, [entities.find_root(n) for n in entities.owners[names.size :]])
            )
        names.size += len(added)
        if names.node_count != state.nodes.count("entity") or len(names.nodes) < len(entities):
            names.nodes = np.concatenate(
                (names.nodes, np.full(len(entities) - len(names.nodes), -1))
            )
            absent = np.flatnonzero(names.nodes < 0)
            absent_names = (entities.entries[number].name for number in absent.tolist())
            names.nodes[absent] = state.nodes.find("entity", absent_names)
            names.node_count = state.nodes.count("entity")
        return names


def _find_named(names: _CachedNames, question: str, stop_words: frozenset[str]) -> Iterator[int]:
    """Yield the rows of the names that occur in a query.

    Case and names that are stop words are ignored.
    """
    pieces = _pieces(
        unicodedata.normalize("NFC", unicodedata.normalize("NFD", question).casefold())
    )
    for start, piece in enumerate(pieces):
        for length in names.lengths.get(piece, ()):
            name = tuple(pieces[start : start + length])
            if name in names.rows and not (length == 1 and piece in stop_words):
                yield names.rows[name]


def first_mention(names: Iterable[str], text: str, stop_words: frozenset[str]) -> int | None:
    """Return the token position of the first name in ``text``, or None without a name.

    The result is None if no name occurs. Case is ignored, and so is a name that is a stop word.

    >>> first_mention(["Ada Lovelace", "Ada"], "Where does ADA live?", frozenset())
    2
    """
    pieces = _pieces(entity_key(text)) if text.strip() else []
    wanted = [_pieces(entity_key(name)) for name in names]
    for start in range(len(pieces)):
        for name in wanted:
            is_counted = len(name) > 1 or name[0] not in stop_words
            if is_counted and pieces[start : start + len(name)] == name:
                return start
    return None


def _pieces(text: str) -> list[str]:
    """Split a text into runs of letters and digits, and single other characters.

    A combining mark, such as a vowel of Hindi, does not end a run.

    >>> _pieces("is c++ in oslö?")
    ['is', 'c', '+', '+', 'in', 'oslö', '?']
    """
    if text.isascii():
        return _PIECE.findall(text)
    pieces: list[str] = []
    end, marked = -1, False
    for match in _PIECE.finditer(text):
        piece, mark = match[0], unicodedata.category(match[0][0]).startswith("M")
        if pieces and match.start() == end and (mark or (marked and piece[0].isalnum())):
            pieces[-1] += piece
        else:
            pieces.append(piece)
        end, marked = match.end(), mark
    return pieces


def _select_mentioned(query: QuestionFeatures, nodes: Nodes, near: Scores, count: int) -> Nodes:
    """Return the indices in ``nodes`` of at most ``count`` entities that an eligible memory mentions, nearest first.

    Ties are broken by number.
    """
    mask, edges = query.population.mask, query.state.edges
    limit, available = _FIRST_LOOKED_AT, int(np.isfinite(near).sum())
    while True:
        order = best(near, min(limit, available))
        crossings = edges.crossings(nodes[order])
        takes_part = (edges.relation[crossings.edge] == _MENTIONS) & (
            node_kinds(crossings.neighbour) == 0
        )
        if mask is not None:
            takes_part[takes_part] = mask[crossings.neighbour[takes_part]]
        entities: Nodes = order[np.unique(crossings.position[takes_part])]
        if len(entities) >= count or limit >= available:
            return entities[:count]
        limit *= 4
