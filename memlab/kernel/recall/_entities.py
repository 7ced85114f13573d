"""The entities that a question is about: those that it names, and those whose names are nearest to it.

Every name and alias has a vector of its own, so that an entity with many names is as near as its nearest one. They are
embedded when a question first needs them, and kept while the lab is open.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.embedding import Embedder
from memlab.kernel.graph import kind_of
from memlab.kernel.index import Vectors, best
from memlab.kernel.recall._question import QuestionFeatures
from memlab.kernel.schema import RELATIONS
from memlab.kernel.state import Entities, State, entity_key

__all__ = ["NO_ENTITIES", "About", "EntityNames", "first_mention"]

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
Scores = NDArray[np.float64]


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
            near[known.roots[place]] = 2.0 + cosine[known.roots[place]]  # before all that are not named
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
            known.roots = entities.roots()[np.array(entities.owners, dtype=np.int64)]
            known.nodes, known.seen = NO_ENTITIES.nodes, -1
            known.version = entities.version
        elif fresh:
            known.roots = np.concatenate((known.roots, [entities.root(n) for n in entities.owners[known.size :]]))
        known.size += len(fresh)
        if known.seen != state.nodes.count("entity") or len(known.nodes) < len(entities):
            known.nodes = np.concatenate((known.nodes, np.full(len(entities) - len(known.nodes), -1)))
            absent = np.flatnonzero(known.nodes < 0)
            names = (entities.entries[number].name for number in absent.tolist())
            known.nodes[absent] = state.nodes.find("entity", names)
            known.seen = state.nodes.count("entity")
        return known


def _named(known: _Known, question: str, stop_words: frozenset[str]) -> Iterator[int]:
    """The names that stand in a question, in any case; a name that is a stop word is not meant."""
    pieces = _pieces(unicodedata.normalize("NFC", unicodedata.normalize("NFD", question).casefold()))
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
        takes_part = (edges.relation[met.edge] == _MENTIONS) & (kind_of(met.neighbour) == 0)
        if mask is not None:
            takes_part[takes_part] = mask[met.neighbour[takes_part]]
        found: Nodes = order[np.unique(met.position[takes_part])]
        if len(found) >= count or many >= able:
            return found[:count]
        many *= 4
