"""The words from which a wallet is made again: twelve to twenty-four of the 2,048 of BIP-39."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

__all__ = ["LEAST", "maybe_seed", "seed_phrases"]

LEAST = 12
"""A seed phrase has 12, 15, 18, 21 or 24 words."""

_WORD = re.compile(r"[a-z]+")
_BETWEEN = re.compile(r"[\s,;|\"'\[\]-]{0,6}(?:[0-9]{1,2}[.):]{0,2}[\s\"']{0,3})?")
_APART = str.maketrans(dict.fromkeys(",\"'|;[]", " "))
_PROSE = 0.75


@cache
def _words() -> frozenset[str]:
    return frozenset(files("memlab.kernel.privacy").joinpath("seed_words.txt").read_text("ascii").split())


def maybe_seed(low: str) -> bool:
    """Whether a text in small letters may hold a seed phrase: so many words of the list stand in it."""
    known = _words()
    if len(known.intersection(low.split())) >= _PROSE * LEAST:
        return True
    apart = low.count(",") + low.count('"') + low.count("'") + low.count(";") + low.count("|")
    return apart >= LEAST - 1 and len(known.intersection(low.translate(_APART).split())) >= _PROSE * LEAST


def seed_phrases(low: str) -> Iterator[tuple[str, int, int]]:
    """Runs of words of the list, nearly all different, with nothing but spaces, commas and numbers between them. A word
    may be broken in two, and the first have a letter in front.
    """
    start = stop = 0
    run: list[str] = []
    known = _words()
    broken = ""
    for match in _WORD.finditer(low):
        word = match[0]
        if run and _BETWEEN.fullmatch(low, stop, match.start()) is None:
            yield from _complete(run, start, stop)
            run, broken = [], ""
        if broken and broken + word in known:
            word, broken = broken + word, ""
        if word in known or (not run and word[1:] in known):
            if not run:
                start = match.start()
            run.append(word)
            stop = match.end()
        elif run and not broken:
            broken, stop = word, match.end()
            continue
        elif run:
            yield from _complete(run, start, stop)
            run = []
        broken = ""
    yield from _complete(run, start, stop)


def _complete(run: Sequence[str], start: int, stop: int) -> Iterator[tuple[str, int, int]]:
    if len(run) >= LEAST and len(set(run)) >= _PROSE * len(run):
        yield "seed phrase", start, stop
