"""How nearly each word of a question has a word in a text, by the vectors of single words of the model that ships.

Products of integer vectors are exact in any order: 256 of them stay below 2^24, which 32-bit floats hold without a
rounding. So a value is the same on every machine. Vectors of words are made when a pool first holds them and kept.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.embedding import load_embedder
from memlab.kernel.index import Words, compact, products

__all__ = ["WordVectors", "late"]

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
_Unknown = dict[str, tuple[NDArray[np.int8], float]]

_KEPT = 1024
"""Words of questions that no text has whose vectors are kept."""


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
        found.vectors[:held], found.norms[:held], found.known[:held] = self.vectors, self.norms, self.known
        return found


class WordVectors:
    """The vectors of single words, by the model that ships, whatever embeds the memories."""

    def __init__(self) -> None:
        self._tables: WeakKeyDictionary[Words, _Table] = WeakKeyDictionary()
        self._unknown: _Unknown = {}

    def cosines(self, words: Words, asked: list[str], forms: Rows) -> Scores:
        """f64[asked, forms]: of each word of a question with each of these forms of the texts."""
        own = [words.written.id_of(word) for word in asked]
        there = np.array([form for form in own if form >= 0], dtype=np.int64)
        others = [word for word, form in zip(asked, own, strict=True) if form < 0]
        table, unknown = self._with(words, np.concatenate((forms, there)), others)
        pairs = [
            (table.vectors[form], table.norms[form]) if form >= 0 else unknown[word]
            for word, form in zip(asked, own, strict=True)
        ]
        question = np.array([vector for vector, _ in pairs], dtype=np.float32)
        dots = products(table.vectors.take(forms, axis=0), question).T
        norms = np.multiply.outer(np.array([norm for _, norm in pairs]), table.norms.take(forms))
        return np.asarray(np.divide(dots, norms, out=norms))

    def _with(self, words: Words, forms: Rows, others: list[str]) -> tuple[_Table, _Unknown]:
        """A table in which these forms are, and vectors and lengths in which ``others`` are."""
        table = self._tables.get(words)
        if table is None or len(table.known) < words.written.forms:
            table = (table or _Table(0)).grown(2 * words.written.forms)
            self._tables[words] = table
        if len(self._unknown) > _KEPT:
            self._unknown = {}
        unknown = self._unknown  # another thread may begin a new one
        missing = forms[~table.known[forms]]
        strange = [word for word in others if word not in unknown]
        if len(missing) or strange:
            # all at once: to encode costs as much as five words more
            vectors = load_embedder().embed([*words.written.names(missing), *strange])
            norms, count = _norms(vectors), len(missing)
            table.vectors[missing], table.norms[missing] = vectors[:count], norms[:count]
            table.known[missing] = True
            for word, vector, norm in zip(strange, vectors[count:].copy(), norms[count:].tolist(), strict=True):
                unknown[word] = vector, norm
        return table, unknown


def _norms(vectors: NDArray[np.int8]) -> Scores:
    wide = vectors.astype(np.float32)
    squares = np.einsum("ij,ij->i", wide, wide).astype(np.float64)  # whole numbers below 2^24: exact in any order
    return np.sqrt(np.where(squares == 0.0, 1.0, squares))


def late(
    vectors: WordVectors,
    words: Words,
    held: tuple[Rows, Rows],
    asked: list[tuple[str, int]],
    weight: Scores,
    left_out: NDArray[np.int64],
) -> Scores:
    """For each row the mean, by ``weight``, of the cosine of each word ``asked`` with the nearest word of the row.

    ``asked`` has words with the ids of their stems, -1 for none: a word with that stem counts 1. Words without a
    neighbour at a cosine above 0 count 0. ``held`` has the forms of the rows, one row after the other, and how many of
    each; those ``left_out`` are not looked at.
    """
    every, counts = held
    if not asked or not len(every):
        return np.zeros(len(counts))
    forms, place = compact(every, words.written.forms)
    cosine = vectors.cosines(words, [word for word, _ in asked], forms)
    stems = np.array([[stem] for _, stem in asked], dtype=np.int32)
    np.copyto(cosine, 1.0, where=words.written.terms.take(forms) == stems)
    if len(left_out):
        at = forms.searchsorted(left_out)
        inside = at < len(forms)
        cosine[:, at[inside][forms[at[inside]] == left_out[inside]]] = 0.0
    (some,) = counts.nonzero()
    starts = (np.cumsum(counts) - counts)[some]
    nearest = np.maximum.reduceat(cosine.take(place, axis=1), starts, axis=1)
    np.maximum(nearest, 0.0, out=nearest)
    found = np.zeros(len(counts))
    share = weight / weight.sum()
    found[some] = (nearest * share[:, None]).cumsum(axis=0)[-1]  # word by word: a sum may be taken in another order
    return found
