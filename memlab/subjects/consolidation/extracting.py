"""A summary in the words of what it sums up: the sentences that stand for the others, in the order of time.

Nothing is generated. Sentences are chosen one by one, each the one that brings most of all the others closer to what is
chosen (facility location, Lin and Bilmes, 2011): so it is central, and says what those before it do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["chosen", "cut", "sentences", "tokens"]

_BYTES_A_TOKEN = 4
"""Of UTF-8: tokenisers of language models take 3.5 to 4.5 of English, and 3 a sign of Chinese."""

_END = re.compile(r"(?<=[.!?\u2026])[\"')\]\u201d\u2019]*\s+|(?<=[\u3002\uff01\uff1f])|\s*\n\s*")


def tokens(text: str) -> int:
    """About how many a language model takes for it."""
    return -(-len(text.encode()) // _BYTES_A_TOKEN)


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, without those that hold no letter or digit.

    >>> sentences("It rained. We stayed in!  ---\\nThe end")
    ['It rained.', 'We stayed in!', 'The end']
    """
    return [one for part in _END.split(text) if any(map(str.isalnum, one := part.strip()))]


def chosen(texts: Sequence[str], vectors: NDArray[np.int8], budget: int) -> list[int]:
    """The places, ascending, of the sentences that stand for all within ``budget`` tokens; none if none fits.

    ``vectors`` (sentences, dim) say what each means. Ties go to the earlier one. What is said twice is said once.
    """
    costs = [len(one.encode()) + 1 for one in texts]  # with a space
    matrix = vectors.astype(np.float64)
    matrix /= np.maximum(np.sqrt(np.einsum("ij,ij->i", matrix, matrix)), 1e-9)[:, None]
    likeness = np.round(matrix @ matrix.T, 9)  # a product of matrices may differ in its last bits
    reached = np.full(len(texts), -1.0)
    taken: list[int] = []
    seen: set[str] = set()
    left = budget * _BYTES_A_TOKEN + 1  # no space follows the last
    while True:
        gain = np.maximum(likeness - reached[:, None], 0.0).sum(axis=0)
        gain = np.round(gain, 6)
        fits = [cost <= left and one.casefold() not in seen for cost, one in zip(costs, texts, strict=True)]
        gain[~np.array(fits, dtype=np.bool_)] = -1.0
        best = int(np.argmax(gain)) if len(gain) else -1
        if best < 0 or gain[best] <= 0.0:
            return sorted(taken)
        taken.append(best)
        seen.add(texts[best].casefold())
        left -= costs[best]
        reached = np.maximum(reached, likeness[:, best])


def cut(text: str, budget: int) -> str:
    """The beginning of a text within ``budget`` tokens, up to a word where it has words.

    >>> cut("one two three four five", 4)
    'one two three\u2026'
    """
    if tokens(text) <= budget:
        return text
    room = max(budget * _BYTES_A_TOKEN - len("\u2026".encode()), 1)
    begun = text.encode()[:room].decode(errors="ignore")
    complete = text[len(begun) : len(begun) + 1].isspace() or len(begun.split()) <= 1
    return f"{begun.rstrip() if complete else begun.rsplit(None, 1)[0]}\u2026"
