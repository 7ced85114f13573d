"""Sentences and clauses of a text; what of it its speaker did not say; shorter parts of it; ordinary words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from memlab.kernel.english import lexicon, table

__all__ = [
    "BYTES_A_TOKEN",
    "clauses",
    "code_lines",
    "count_tokens",
    "is_plain_word",
    "sentence_spans",
    "sentences",
    "sentences_and_lines",
    "shorten",
    "without_quotations",
]


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
            if word in table("extraction", "abbreviations") or (
                len(word) == 1 and word.isalpha() and word != "i"
            ):
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
    return re.compile(
        rf"[,;:()\n\u2014]|[.!?](?:\s|$)|\b(?:{'|'.join(lexicon()['text']['conjunctions'])})\b"
    )


# What of a message its speaker did not say: code, quotations, error output. It is left out before anything is read.


_CODE_LINE = re.compile(
    r"\s{0,64}(?:```|>>> |\$ |#!|#include\b|</?[a-zA-Z][\w-]{0,40}[ />]"
    r"|(?:async )?def \w{1,80}\(|class \w{1,80}\s?[:({]"
    r"|from [\w.]{1,120} import\b|import [\w.]{1,120}\s{0,8}(?:;|as\b|$)"
    r"|(?:export |public |private |static ){0,3}(?:function|fn|func) ?\w{0,80}\("
    r"|(?:const|let|var) \w{1,80} ?=|(?:if|for|while|switch) ?\(.{0,200}\) ?\{|return\b[^.]{0,80};$"
    r"|(?:SELECT|select) .{1,200} (?:FROM|from) |(?:INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE) \w"
    r"|Traceback \(most recent call last\)|[\w.\[\]]{1,80} ?(?:=|\+=) ?[^=\s].{0,200};$"
    r"|[{}]\s?$|\w{1,80}\(.{0,200}\);?$)"
)

_FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED = re.compile(
    r"\"[^\"\n]{1,600}\"|\u201c[^\u201d\n]{1,600}\u201d|\u00ab[^\u00bb\n]{1,600}\u00bb|`[^`\n]{1,600}`"
    r"|(?<![\w'])'[^'\n]{2,300}'(?!\w)|\u2018[^\u2019\n]{2,300}\u2019(?!\w)|^[ \t]*>[^\n]*",
    re.MULTILINE,
)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\).*\Z", re.DOTALL | re.MULTILINE)
_OTHERS_WORDS = (
    (_FENCED, ("```", "~~~")),
    (_TRACEBACK, ("Traceback (",)),
    (_QUOTED, ('"', "\u201c", "\u00ab", "`", "'", "\u2018", ">")),
)
"""Patterns of what is not the speaker's, each with signs of which it has one."""


def code_lines(text: str) -> list[tuple[int, int]]:
    """Return where the lines of a text that are code begin and end.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    list of tuple
        Start and stop of each such line, without its line break.

    Examples
    --------
    >>> code_lines("Why?\\nimport os")
    [(5, 14)]
    """
    found, start = [], 0
    for line in text.splitlines(keepends=True):
        if _CODE_LINE.match(line):
            found.append((start, start + len(line.rstrip("\r\n"))))
        start += len(line)
    return found


def without_quotations(text: str) -> str:
    """Return a message with code, quotations and error output as blanks, so that every place stays where it is.

    Parameters
    ----------
    text
        A message.

    Returns
    -------
    str
        A text of the same length.

    Examples
    --------
    >>> without_quotations('Ada said "no way" twice')
    'Ada said          twice'
    """
    for pattern, signs in _OTHERS_WORDS:
        if any(sign in text for sign in signs):
            text = pattern.sub(lambda found: " " * len(found[0]), text)
    code = code_lines(text)
    return "".join(_blanked(text, code)) if code else text


def _blanked(text: str, places: list[tuple[int, int]]) -> Iterator[str]:
    end = 0
    for start, stop in places:
        yield text[end:start]
        yield " " * (stop - start)
        end = stop
    yield text[end:]


# How long a text is for a language model, and shorter parts of it.


BYTES_A_TOKEN = 4
"""Of UTF-8: tokenisers of language models take 3.5 to 4.5 of English, and 3 a sign of Chinese."""

_END_OF_SENTENCE_OR_LINE = re.compile(
    r"(?<=[.!?\u2026])[\"')\]\u201d\u2019]*\s+|(?<=[\u3002\uff01\uff1f])|\s*\n\s*"
)


def count_tokens(text: str) -> int:
    """Return about how many tokens a language model takes for a text."""
    return -(-len(text.encode()) // BYTES_A_TOKEN)


def sentences_and_lines(text: str) -> list[str]:
    """Return the sentences and lines of a text, without those that hold no letter or digit.

    >>> sentences_and_lines("It rained. We stayed in!  ---\\nThe end")
    ['It rained.', 'We stayed in!', 'The end']
    """
    return [
        one
        for part in _END_OF_SENTENCE_OR_LINE.split(text)
        if any(map(str.isalnum, one := part.strip()))
    ]


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


# Ordinary words of English: what a capital letter alone does not make a name.
#
# ``plain_words.txt`` lists base forms; plurals, "-ed", "-ing" and "-ly" are derived. Words that are names of people,
# places or products at least as often ("grace", "apple", "frozen") are not listed, nor are those that projects are
# often called after ("otter", "orbit").


_SUFFIXES = (
    ("ies", "y"),
    ("ing", ""),
    ("ing", "e"),
    ("ed", ""),
    ("ed", "e"),
    ("es", ""),
    ("s", ""),
    ("ly", ""),
)
_SHORTEST_STEM = 3
_DRAWN_OUT = re.compile(r"([a-z])\1\1|^(?:([a-z])\2){3,}$")
"""A letter three times in a row, or each letter twice: "dunnnn", "bbaadddd"."""


def is_plain_word(word: str) -> bool:
    """Return whether a word is an ordinary word of English, or a drawn-out cry.

    Parameters
    ----------
    word
        One word in lower case.

    Returns
    -------
    bool
        Whether the word, or the word without an ending, is in the list.

    Examples
    --------
    >>> [is_plain_word(word) for word in ("sofa", "delivering", "dunnnn", "provo")]
    [True, True, True, False]
    """
    if word in _plain_words() or _DRAWN_OUT.search(word) is not None:
        return True
    return any(
        len(word) - len(ending) >= _SHORTEST_STEM
        and word.endswith(ending)
        and word[: -len(ending)] + kept in _plain_words()
        for ending, kept in _SUFFIXES
    )


@cache
def _plain_words() -> frozenset[str]:
    return frozenset(
        (Path(__file__).parent / "plain_words.txt").read_text(encoding="utf-8").split()
    )
