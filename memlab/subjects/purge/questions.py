"""Which logged questions quote what only purged memories said: a run of characters, or a name or number of theirs.

A question that shares either with a memory that stays says nothing of the purged ones, and is kept: with one that
whoever asked may see, so that nobody learns from what is kept what others keep private.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.state import EVERYONE, State, hidden_rows, normalize_text

__all__ = ["ALL", "NOTHING", "Quotes", "owners_of", "quotes_of"]

RUN = 12
"""Characters in a row that a question shares with purged texts alone, in any case: two words or three. Of the turns of
the conversation that comes with memlab, each purged by itself, questions that quote three words of it are found in 97
of 100 cases and such that quote four in 99 (with 16: 58 and 95; the rest quote what another turn says too), and of
6,616 pairs with a question about another turn 8 (with 10: 19, with 16: 4)."""

_AT_ONCE = 10_000
"""Texts that are hashed together: some megabytes."""

_WORD = re.compile(r"\w[\w.@'\u2019-]*\w")
_STARTS = re.compile(r"(?:^|[.!?:\"\u201c(\n]\s*)\w")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

ALL, NOBODY = -1, -2
"""Owners that are no creator's code."""

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Quotes:
    """What tells of purged memories: runs of characters by their hashes, ascending, and words in one case."""

    runs: Hashes
    words: frozenset[str]

    def within(self, question: str) -> bool:
        """Whether a question holds one of them."""
        folded = _folded(question)
        if not self.words.isdisjoint(_WORD.findall(folded)):
            return True
        found = _hashes([folded])
        return bool(len(self.runs)) and bool((self.runs[_places(self.runs, found)] == found).any())

    def within_any(self, questions: Mapping[int, str]) -> set[int]:
        """Which of these questions hold one of them, by their keys."""
        # a character that parts texts would be taken for the end of one
        keys, folded = (
            list(questions),
            [_folded(one).replace("\0", "\1") for one in questions.values()],
        )
        found = {
            key
            for key, text in zip(keys, folded, strict=True)
            if not self.words.isdisjoint(_WORD.findall(text))
        }
        if len(self.runs) and keys:
            hashes = _hashes(folded)
            counts = [max(len(text) - RUN + 1, 0) for text in folded]
            held = np.flatnonzero(self.runs[_places(self.runs, hashes)] == hashes)
            found |= {
                keys[place]
                for place in np.searchsorted(np.cumsum(counts), held, side="right").tolist()
            }
        return found


NOTHING = Quotes(np.empty(0, dtype=np.uint64), frozenset())


def owners_of(state: State) -> NDArray[np.int64]:
    """int64[rows]: to whom each memory is private, by the code of its creator; ``ALL`` where it is not, ``NOBODY``
    where it has none.
    """
    hidden, codes = hidden_rows(state, EVERYONE), state.names["creator"].codes
    if hidden is None:
        return np.full(len(state), ALL, dtype=np.int64)
    return np.where(hidden, np.where(codes >= 0, codes, NOBODY), ALL)


def quotes_of(
    state: State, rows: NDArray[np.int64], names: Iterable[str], owners: NDArray[np.int64]
) -> Mapping[str | None, Quotes]:
    """What only the memories in ``rows`` say, and ``names``, which tell of them whoever else says them.

    By who asks: None sees all that stays, ``EVERYONE`` what is private to nobody, a creator what is theirs as well.
    """
    texts = [text for text in state.texts.to_list(rows) if text]
    own = np.unique(_hashes(map(_folded, texts)))
    told = {word for name in names for word in _WORD.findall(_folded(name)) if len(word) > 2}
    stays = np.ones(len(state), dtype=np.bool_)
    stays[rows] = False
    holders = {int(owner): stays & (owners == owner) for owner in np.unique(owners[stays])}
    shared = {owner: _shared(state, own, np.flatnonzero(held)) for owner, held in holders.items()}
    said = {word: _sayers(state, word, holders) for word in _names_in(texts)}

    def seen_by(seen: Collection[int]) -> Quotes:
        common = np.zeros(len(own), dtype=np.bool_)
        for owner in holders.keys() & seen:
            common |= shared[owner]
        words = {
            word for word, sayers in said.items() if sayers is not None and sayers.isdisjoint(seen)
        }
        return Quotes(own[~common], frozenset(words | told))

    vocabulary = state.names["creator"].vocabulary
    found: dict[str | None, Quotes] = {None: seen_by(holders.keys()), EVERYONE: seen_by((ALL,))}
    return found | {vocabulary[owner]: seen_by((ALL, owner)) for owner in holders if owner >= 0}


def _shared(state: State, own: Hashes, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the hashes the texts of ``rows`` have as well."""
    shared = np.zeros(len(own), dtype=np.bool_)
    for start in range(0, len(rows) if len(own) else 0, _AT_ONCE):
        found = _hashes(
            _folded(text) for text in state.texts.to_list(rows[start : start + _AT_ONCE]) if text
        )
        places = _places(own, found)
        shared[places[own[places] == found]] = True
    return shared


def _folded(text: str) -> str:
    return normalize_text(text).casefold()


def _hashes(folded: Iterable[str]) -> Hashes:
    """A hash for each ``RUN`` characters in a row of each text."""
    codes = np.frombuffer(
        "\0".join(folded).encode("utf-32-le", "surrogatepass"), dtype="<u4"
    ).astype(np.uint64)
    if len(codes) < RUN:
        return np.empty(0, dtype=np.uint64)
    count = len(codes) - RUN + 1
    found, defined = np.zeros(count, dtype=np.uint64), np.ones(count, dtype=np.bool_)
    for place in range(RUN):
        found = found * _FACTOR + codes[place : place + count]
        defined &= codes[place : place + count] != 0
    return found[defined]


def _places(ascending: Hashes, found: Hashes) -> NDArray[np.int64]:
    return np.minimum(np.searchsorted(ascending, found), len(ascending) - 1)


def _names_in(texts: Collection[str]) -> Iterator[str]:
    """Names of people, places and things, and numbers: words with a digit, or a capital where no sentence begins."""
    for text in texts:
        starts = {found.end() - 1 for found in _STARTS.finditer(text)}
        for found in _WORD.finditer(text):
            word = found.group()
            capital = word[0].isupper() and found.start() not in starts
            if len(word) > 2 and (capital or not word.isalpha() or word[1:] != word[1:].lower()):
                yield word.casefold()


def _sayers(state: State, word: str, holders: Mapping[int, NDArray[np.bool_]]) -> set[int] | None:
    """Whose memories that stay say this word; None for a word that is not looked for."""
    posted = state.words.hits(state.words.query(word)).parts
    return (
        {owner for owner, held in holders.items() if any(held[rows].any() for rows, _ in posted)}
        if posted
        else None
    )
