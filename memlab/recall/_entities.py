"""The entities that a question is about: those that it names, and those whose names are nearest to it.

Every name and alias has a vector of its own, so that an entity with many names is as near as its nearest one. They are
embedded when a question first needs them, and kept while the lab is open.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from memlab.embedding import Embedder
from memlab.graph import kind_of
from memlab.index import Vectors
from memlab.memory import Entities, State, entity_key
from memlab.recall._question import Asked
from memlab.schema import RELATIONS

__all__ = ["NO_ENTITIES", "About", "EntityNames"]

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

    def __len__(self) -> int:
        return len(self.nodes)


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
    valid: tuple[int, int] = (-1, -1)
    roots: Nodes = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Of each name, the entity that it stands for."""
    nodes: Nodes = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Of each entity, its node, -1 while no memory mentions it."""


class EntityNames:
    """The names of entities, as vectors and as pieces of text, of the states that are asked."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: WeakKeyDictionary[State, _Known] = WeakKeyDictionary()

    def about(self, asked: Asked, count: int) -> About:
        """The ``count`` entities that a question is most about, among those that memories which take part mention."""
        state = asked.state
        entities = state.registers["entities"]
        assert isinstance(entities, Entities)
        if not len(entities) or not count:
            return NO_ENTITIES
        known = self._learned(state, entities)
        cosine = np.full(len(entities), -1.0)
        np.maximum.at(cosine, known.roots, known.vectors.similarity(asked.vector))
        nearness = self._embedder.closeness(cosine)
        for place in _named(known, asked.question.text, asked.words.stop_words):
            nearness[known.roots[place]] = 1.0
        fit = np.flatnonzero((known.nodes >= 0) & (nearness > 0))
        order = fit[np.lexsort((fit, -cosine[fit], -nearness[fit]))]
        best = _mentioned(asked, known.nodes[order], count)
        chosen = order[best]
        ascending = np.argsort(known.nodes[chosen])
        return About(known.nodes[chosen][ascending], nearness[chosen][ascending])

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
            known.size += len(fresh)
        valid = entities.version, state.nodes.count("entity")
        if known.valid != valid:
            roots = entities.roots()
            known.roots = roots[np.array(entities.owners, dtype=np.int64)]
            known.nodes = state.nodes.find("entity", (entry.name for entry in entities.entries))
            known.nodes[roots != np.arange(len(roots))] = -1
            known.valid = valid
        return known


def _named(known: _Known, question: str, stop_words: frozenset[str]) -> Iterator[int]:
    """The names that stand in a question, in any case; a name that is a stop word is not meant."""
    pieces = _pieces(unicodedata.normalize("NFC", unicodedata.normalize("NFD", question).casefold()))
    for start, piece in enumerate(pieces):
        for length in known.lengths.get(piece, ()):
            name = tuple(pieces[start : start + length])
            if name in known.places and not (length == 1 and piece in stop_words):
                yield known.places[name]


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


def _mentioned(asked: Asked, nodes: Nodes, count: int) -> NDArray[np.int64]:
    """The places of the first ``count`` of these nodes that a memory which takes part mentions."""
    mask, edges = asked.population.mask, asked.state.edges
    found: list[int] = []
    start, many = 0, _FIRST_LOOKED_AT
    while start < len(nodes) and len(found) < count:
        met = edges.crossings(nodes[start : start + many])
        takes_part = (edges.relation[met.edge] == _MENTIONS) & (kind_of(met.neighbour) == 0)
        if mask is not None:
            takes_part[takes_part] = mask[met.neighbour[takes_part]]
        found += (start + np.unique(met.position[takes_part])).tolist()
        start, many = start + many, 4 * many
    return np.array(found[:count], dtype=np.int64)
