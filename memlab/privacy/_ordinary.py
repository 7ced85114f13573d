"""Whether a text is ordinary: without anything that the gate would look at. Most texts are, and cost no more.

What no gate has to look at has no telling word, no long run of characters, no escape, no invisible character, no line
that a token could run over, no characters one by one and no twelve words of a wallet.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache

import polars as pl

from memlab.privacy._seed import LEAST, maybe_seed
from memlab.privacy._told import TELLING

__all__ = ["LONG", "is_ordinary", "which_are_ordinary"]

LONG = 14
"""Characters without a space from which a run may be a credential."""

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|&#|&[A-Za-z]{2,8};|\\[uUx_*.-]|=[0-9A-F]{2}")
_SPELLED = re.compile(r"(?<!\S)\S(?: (?: {2})?\S(?!\S)){7}")
_COMMANDS = ("sshpass", "mysql", "redis-cli", "curl ", "login ")
_WORDS = tuple(word for word in TELLING if not any(other in word for other in TELLING if other != word)) + _COMMANDS
_PERSONAL = re.compile(r"@|[0-9](?:[^0-9A-Za-z]{0,2}[0-9]){6}|[A-Za-z]{2}[0-9]{2} ?[A-Za-z0-9]{4}")


def is_ordinary(text: str, low: str, personal: Collection[str] = ()) -> bool:
    """Whether the gate has nothing to look at; ``low`` is the text in small letters."""
    words = low.split()
    if words and (max(map(len, words)) >= LONG or (len(words) >= LEAST and maybe_seed(words))):
        return False
    if not text.isascii() or "\n" in text:
        return False
    for word in _WORDS:
        if word in low:
            return False
    if ("%" in text or "&" in text or "\\" in text or "=" in text) and _ESCAPE.search(text):
        return False
    if len(words) >= 8 and _SPELLED.search(text):
        return False
    return not (personal and _PERSONAL.search(text))


@cache
def _odd() -> str:
    """A pattern of Polars for all that ``is_ordinary`` does not let through by a word, and for somewhat more."""
    seed = rf"(?:[A-Za-z]+[^A-Za-z]+){{{LEAST - 1}}}"
    return rf"\S{{{LONG}}}|[^\x00-\x7f]|\n|%[0-9A-Fa-f]{{2}}|&#|&[A-Za-z]|\\|=[0-9A-F]|(?:\S\s+){{7}}|{seed}"


def which_are_ordinary(texts: Sequence[str], personal: Collection[str] = ()) -> list[bool]:
    """``is_ordinary`` of each, where that can be told of many at once; False where it has to be asked."""
    column = pl.Series(texts, dtype=pl.String)
    odd = column.str.contains_any(_WORDS, ascii_case_insensitive=True) | column.str.contains(_odd())
    if personal:
        odd |= column.str.contains(_PERSONAL.pattern)
    return (~odd).to_list()
