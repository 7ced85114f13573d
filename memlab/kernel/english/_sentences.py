"""Sentences and clauses of a text, as texts or as places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from memlab.kernel.english._lexicon import lexicon, table

__all__ = ["clauses", "sentence_spans", "sentences"]

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_END = re.compile(r"[.!?\u2026]+[)\"'\u201d\u2019]*(?=\s|\Z)|\n")
_LOOK_BACK = 12
"""Characters before a dot in which an abbreviation is looked for."""


def sentences(text: str) -> list[str]:
    """Split a text at every dot, question mark, exclamation mark and line break.

    Quick and rough: abbreviations end a sentence too. ``sentence_spans`` knows them.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    list of str
        The sentences with the marks that end them.

    Examples
    --------
    >>> sentences("I moved. Where to? Rome")
    ['I moved.', ' Where to?', ' Rome']
    """
    return _SENTENCE.findall(text)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a text begin and end.

    A dot after an abbreviation or an initial ends no sentence. Together the spans cover the text.

    Parameters
    ----------
    text
        Any text.

    Yields
    ------
    tuple of (int, int)
        Start and stop of a sentence, with the marks that end it.

    Examples
    --------
    >>> text = "Dr. Okafor called. She's in!"
    >>> [text[start:stop] for start, stop in sentence_spans(text)]
    ['Dr. Okafor called.', " She's in!"]
    """
    start = 0
    for end in _END.finditer(text):
        if end[0] == ".":
            before = text[max(start, end.start() - _LOOK_BACK) : end.start()].rsplit(None, 1)
            word = before[-1].lower() if before else ""
            if word in table("extraction", "abbreviations") or (len(word) == 1 and word.isalpha() and word != "i"):
                continue
        if end.end() > start:
            yield start, end.end()
        start = end.end()
    if start < len(text):
        yield start, len(text)


def clauses(text: str) -> list[str]:
    """Split a text at commas, colons, brackets, ends of sentences and words such as "but".

    Parameters
    ----------
    text
        Any text in lower case; conjunctions are recognised in lower case only.

    Returns
    -------
    list of str
        The clauses; what parted them is left out.

    Examples
    --------
    >>> clauses("Use spaces, not tabs")
    ['Use spaces', ' not tabs']
    """
    return _clause().split(text)


@cache
def _clause() -> re.Pattern[str]:
    return re.compile(rf"[,;:()\n\u2014]|[.!?](?:\s|$)|\b(?:{'|'.join(lexicon()['text']['conjunctions'])})\b")
