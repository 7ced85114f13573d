"""How long a text is for a language model, and shorter parts of it."""

from __future__ import annotations

import re

__all__ = ["BYTES_A_TOKEN", "count_tokens", "sentences_and_lines", "shorten"]

BYTES_A_TOKEN = 4
"""Of UTF-8: tokenisers of language models take 3.5 to 4.5 of English, and 3 a sign of Chinese."""

_END = re.compile(r"(?<=[.!?\u2026])[\"')\]\u201d\u2019]*\s+|(?<=[\u3002\uff01\uff1f])|\s*\n\s*")


def count_tokens(text: str) -> int:
    """Return about how many tokens a language model takes for a text."""
    return -(-len(text.encode()) // BYTES_A_TOKEN)


def sentences_and_lines(text: str) -> list[str]:
    """Return the sentences and lines of a text, without those that hold no letter or digit.

    >>> sentences_and_lines("It rained. We stayed in!  ---\\nThe end")
    ['It rained.', 'We stayed in!', 'The end']
    """
    return [one for part in _END.split(text) if any(map(str.isalnum, one := part.strip()))]


def shorten(text: str, budget: int) -> str:
    """Return the beginning of a text within ``budget`` tokens, up to a word where it has words.

    >>> shorten("one two three four five", 4)
    'one two three\u2026'
    """
    if count_tokens(text) <= budget:
        return text
    room = max(budget * BYTES_A_TOKEN - len("\u2026".encode()), 1)
    begun = text.encode()[:room].decode(errors="ignore")
    complete = text[len(begun) : len(begun) + 1].isspace() or len(begun.split()) <= 1
    return f"{begun.rstrip() if complete else begun.rsplit(None, 1)[0]}\u2026"
