"""A vocabulary in which names, texts and beginnings of texts coincide, and a quick encoder for it."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

__all__ = ["Words", "letters"]

_SHORT = (
    "a",
    "ab",
    "goat",
    "user",
    "sea",
    "Ada",
    "ada",
    "Zo\u00eb",
    "Zoe\u0308",
    "STRASSE",
    "stra\u00dfe",
    "\uff47\uff4f",
    "\u05e9\u05dc\u05d5\u05dd",
)
_STEMS = (
    "xylophonist",
    "Adele Quuxley",
    "Zanzibarov",
    "lark wolf heron",
    "Lovelace",
    "Trondheim harbour",
    "stra\u00dfenbahn",
)
_TAILS = (
    "likes cheese",
    "lives in Oslo",
    "keeps goats",
    "has status done",
    "and others",
    "ab",
    "goat",
)


class Words:
    """What one life speaks of: the same few strings as texts, names, tags, notes, reasons and questions."""

    def __init__(self, dice: random.Random) -> None:
        short, stems, tails = dice.sample(_SHORT, 4), dice.sample(_STEMS, 2), dice.sample(_TAILS, 3)
        grown = [f"{stem} {tail}" for stem in stems for tail in tails]
        grown += [f"{item} {tail}" for item in grown[:2] for tail in tails[:2]]
        self.all = tuple(dict.fromkeys([*short, *stems, *grown]))

    def one(self, dice: random.Random) -> str:
        return dice.choice(self.all)

    def text(self, dice: random.Random) -> str:
        """Return a whole word, a text that begins with a word, one that contains a word, or several words."""
        first, second = self.one(dice), self.one(dice)
        return dice.choice(
            [
                first,
                first,
                f"{first} {second}",
                f"so {first}. {second}",
                f"{first}\u2026",
                f" {first}  {second} ",
            ]
        )

    def some(self, dice: random.Random) -> list[str]:
        return [self.one(dice) for _ in range(dice.randint(0, 3))]


@lru_cache(maxsize=20_000)
def _vector(text: str) -> bytes:
    vector = np.zeros(16)
    padded = f"  {text.lower()}  ".encode()
    for start in range(len(padded) - 2):
        digest = zlib.crc32(padded[start : start + 3])
        vector[digest % 16] += 1 if digest & 256 else -1
    return vector.tobytes()


def letters(texts: Sequence[str]) -> np.ndarray:
    """Embed texts by hashed trigrams, so that texts that share letters are near."""
    return np.array([np.frombuffer(_vector(text)) for text in texts]).reshape(len(texts), 16)
