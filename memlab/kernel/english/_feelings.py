"""How much feeling a text carries, by a small declared table."""

from __future__ import annotations

from functools import cache

from memlab.kernel.english._lexicon import lexicon, padded, phrases
from memlab.kernel.english._tokens import words_of

__all__ = ["emotional_weight"]

_STRONGER, _WEAKER = 1.2, 0.6
"""Factors of words such as "deeply" and "a bit" right before a word of feeling."""

_MOST = 100.0


def emotional_weight(text: str) -> float | None:
    """Return how much feeling a text carries; None where no word of the table stands in it.

    The strongest word counts. The table is ``feelings`` in ``english.toml``: 90 for grief and terror down to 40 for
    what is merely pleasant. A word such as "very" right before it counts 1.2 times, one such as "a bit" 0.6 times.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    float or None
        The weight, 0-100.

    Examples
    --------
    >>> emotional_weight("Ada was heartbroken"), emotional_weight("a bit worried"), emotional_weight("The build passed")
    (90.0, 36.0, None)
    """
    words = words_of(text)
    weights = [
        min(_weights()[word] * _factor(padded(words[max(place - 3, 0) : place])), _MOST)
        for place, word in enumerate(words)
        if word in _weights()
    ]
    return max(weights, default=None)


def _factor(before: str) -> float:
    if any(before.endswith(phrase) for phrase in phrases("feelings", "weaker")):
        return _WEAKER
    return _STRONGER if any(before.endswith(phrase) for phrase in phrases("feelings", "stronger")) else 1.0


@cache
def _weights() -> dict[str, float]:
    return {word: float(weight) for weight, words in lexicon()["feelings"]["weights"].items() for word in words}
