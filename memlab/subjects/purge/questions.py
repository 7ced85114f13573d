"""Search for logged queries that quote a text, name or number of purged memories.

A query that a remaining memory contains as well is kept. Only memories that the viewer of the
recall may see count, so that a kept query reveals nothing about private memories of others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.base.arrays import Flags, Ints
from memlab.kernel.state import EVERYONE, State, hidden_rows, normalize_text

__all__ = ["ALL", "NOTHING", "Quotes", "owners_of", "quotes_of"]

RUN = 12
"""The number of consecutive characters, two or three words, by which a query quotes a purged text.
Upper and lower case are equal.

Measured on the conversation that comes with memlab, each turn purged alone: of the queries that quote three words of
the turn, 97% are found, of queries that quote four, 99% (with 16 characters: 58% and 95%). Of 6,616 pairs with a query
about another turn, 8 are found wrongly (with 10 characters: 19, with 16: 4)."""

_AT_ONCE = 10_000
"""The number of texts that are hashed together: a few megabytes."""

# A word of two or more characters, and the first letter of a sentence, which is a capital in any case.
_WORD = re.compile(r"\w[\w.@'\u2019-]*\w")
_STARTS = re.compile(r"(?:^|[.!?:\"\u201c(]\s*|\n[^\S\n]*)\w")
# The multiplier of the rolling hash: 2**64 divided by the golden ratio, which spreads small codes over all bits.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

ALL, NOBODY = -1, -2
"""Owners other than the code of a creator: memories for everyone, and private memories without a creator."""

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Quotes:
    """The runs of characters and the words by which a query quotes purged memories.

    ``runs`` are hashes of runs of characters, ascending; ``words`` are case-folded names and
    numbers.
    """

    runs: Hashes
    words: frozenset[str]

    def within(self, query: str) -> bool:
        """Return whether a query contains any of the quoted runs or words."""
        folded = _folded(query)
        if not self.words.isdisjoint(_WORD.findall(folded)):
            return True
        hashes = _hashes([folded])
        return bool(len(self.runs)) and bool(
            (self.runs[_positions(self.runs, hashes)] == hashes).any()
        )

    def within_any(self, queries: Mapping[int, str]) -> set[int]:
        """Return the keys of queries that contain any of the quoted runs or words."""
        # The texts are joined with zero characters for hashing, so none may contain one.
        keys, folded = (
            list(queries),
            [_folded(query).replace("\0", "\1") for query in queries.values()],
        )
        quoting = {
            key
            for key, text in zip(keys, folded, strict=True)
            if not self.words.isdisjoint(_WORD.findall(text))
        }
        if len(self.runs) and keys:
            hashes = _hashes(folded)
            counts = [max(len(text) - RUN + 1, 0) for text in folded]
            matches = np.flatnonzero(self.runs[_positions(self.runs, hashes)] == hashes)
            quoting |= {
                keys[number]
                for number in np.searchsorted(np.cumsum(counts), matches, side="right").tolist()
            }
        return quoting


# A Quotes without runs and words, which no query contains.
NOTHING = Quotes(np.empty(0, dtype=np.uint64), frozenset())


def owners_of(state: State) -> Ints:
    """Return the owner number of each memory, int64[rows].

    The owner of a private memory is the code of its creator, or ``NOBODY`` without a creator. Every
    other memory has the owner ``ALL``.
    """
    hidden, codes = hidden_rows(state, EVERYONE), state.names["creator"].codes
    if hidden is None:
        return np.full(len(state), ALL, dtype=np.int64)
    return np.where(hidden, np.where(codes >= 0, codes, NOBODY), ALL)


def quotes_of(
    state: State, rows: Ints, names: Iterable[str], owners: Ints
) -> Mapping[str | None, Quotes]:
    """Return the runs and words that only the purged memories contain, for each viewer.

    The viewer None sees all remaining memories, ``EVERYONE`` those that are private to nobody, and
    a creator also their own. The words of ``names`` always count, whether or not other memories
    contain them.
    """
    # Remaining memories are compared once for each owner; a viewer's result combines ALL and the
    # viewer as owner.
    texts = [text for text in state.texts.to_list(rows) if text]
    own = np.unique(_hashes(map(_folded, texts)))
    name_words = {word for name in names for word in _WORD.findall(_folded(name)) if len(word) > 2}
    remaining = np.ones(len(state), dtype=np.bool_)
    remaining[rows] = False
    holders = {int(owner): remaining & (owners == owner) for owner in np.unique(owners[remaining])}
    shared_by = {
        owner: _shared(state, own, np.flatnonzero(mask)) for owner, mask in holders.items()
    }
    owners_by_word = {word: _owners_of_word(state, word, holders) for word in _names_in(texts)}

    def quotes_for(visible: Collection[int]) -> Quotes:
        """Return the runs and words that no memory of the visible owners contains."""
        common = np.zeros(len(own), dtype=np.bool_)
        for owner in holders.keys() & visible:
            common |= shared_by[owner]
        words = {
            word
            for word, owners in owners_by_word.items()
            if owners is not None and owners.isdisjoint(visible)
        }
        return Quotes(own[~common], frozenset(words | name_words))

    vocabulary = state.names["creator"].vocabulary
    result: dict[str | None, Quotes] = {
        None: quotes_for(holders.keys()),
        EVERYONE: quotes_for((ALL,)),
    }
    return result | {vocabulary[owner]: quotes_for((ALL, owner)) for owner in holders if owner >= 0}


def _shared(state: State, own: Hashes, rows: Ints) -> Flags:
    """Return a mask of the hashes ``own`` that also occur in texts of ``rows``."""
    shared = np.zeros(len(own), dtype=np.bool_)
    for start in range(0, len(rows) if len(own) else 0, _AT_ONCE):
        hashes = _hashes(
            _folded(text) for text in state.texts.to_list(rows[start : start + _AT_ONCE]) if text
        )
        positions = _positions(own, hashes)
        shared[positions[own[positions] == hashes]] = True
    return shared


def _folded(text: str) -> str:
    """Return a text in normalized, case-folded form for comparison."""
    return normalize_text(text).casefold()


def _hashes(folded: Iterable[str]) -> Hashes:
    """Return a hash of each run of ``RUN`` consecutive characters in the texts."""
    codes = np.frombuffer(
        "\0".join(folded).encode("utf-32-le", "surrogatepass"), dtype="<u4"
    ).astype(np.uint64)
    if len(codes) < RUN:
        return np.empty(0, dtype=np.uint64)
    count = len(codes) - RUN + 1
    hashes, defined = np.zeros(count, dtype=np.uint64), np.ones(count, dtype=np.bool_)
    for offset in range(RUN):
        hashes = hashes * _FACTOR + codes[offset : offset + count]
        defined &= codes[offset : offset + count] != 0
    return hashes[defined]


def _positions(ascending: Hashes, hashes: Hashes) -> Ints:
    """Return each hash's position in the sorted array ``ascending``, at most the last."""
    return np.minimum(np.searchsorted(ascending, hashes), len(ascending) - 1)


def _names_in(texts: Collection[str]) -> Iterator[str]:
    """Yield the names and numbers of three or more characters in texts, in case-folded form.

    A name is a word with a digit, or with a capital that does not begin a sentence.
    """
    for text in texts:
        starts = {match.end() - 1 for match in _STARTS.finditer(text)}
        for match in _WORD.finditer(text):
            word = match.group()
            capital = word[0].isupper() and match.start() not in starts
            if len(word) > 2 and (capital or not word.isalpha() or word[1:] != word[1:].lower()):
                yield word.casefold()


def _owners_of_word(state: State, word: str, holders: Mapping[int, Flags]) -> set[int] | None:
    """Return the owners of remaining memories that contain a word; None if not indexed."""
    posted = state.words.hits(state.words.query(word)).parts
    return (
        {owner for owner, mask in holders.items() if any(mask[rows].any() for rows, _ in posted)}
        if posted
        else None
    )
