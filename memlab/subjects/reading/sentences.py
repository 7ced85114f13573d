"""Split texts into sentences and clauses, remove quotations, and shorten texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from memlab.kernel.english import lexicon, table

# Patterns of rough sentences, and of ends of sentences for `sentence_spans`.
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_END = re.compile(r"[.!?\u2026]+[)\"'\u201d\u2019]*(?=\s|\Z)|\n")
_LOOK_BACK = 12
"""The maximum length in characters of an abbreviation before a dot."""


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, split at sentence marks and line breaks.

    This is fast but approximate: the dot of an abbreviation ends a sentence, too.
    ``sentence_spans`` recognises abbreviations.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    list of str
        The sentences, each with the marks that end it.

    Examples
    --------
    >>> sentences("I moved. Where to? Rome")
    ['I moved.', ' Where to?', ' Rome']
    """
    return _SENTENCE.findall(text)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence of a text.

    A dot after an abbreviation or an initial does not end a sentence. Together, the spans cover the
    whole text.

    Parameters
    ----------
    text
        Any text.

    Yields
    ------
    tuple of (int, int)
        The start and the end of a sentence, which includes the marks that end it.

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
    """Return the clauses of a text, split at punctuation and words such as "but".

    Parameters
    ----------
    text
        Any text in lower case, because conjunctions are recognised in lower case only.

    Returns
    -------
    list of str
        The clauses without the separators.

    Examples
    --------
    >>> clauses("Use spaces, not tabs")
    ['Use spaces', ' not tabs']
    """
    return _clause_break_pattern().split(text)


# Compiled once from the table of conjunctions.
@cache
def _clause_break_pattern() -> re.Pattern[str]:
    """Return a pattern for the punctuation and conjunctions between clauses."""
    return re.compile(
        rf"[,;:()\n\u2014]|[.!?](?:\s|$)|\b(?:{'|'.join(lexicon()['text']['conjunctions'])})\b"
    )


# Code, quotations and error output are not the speaker's words. They are blanked before a message is read.


# A pattern of a line of code.
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

# Patterns of fenced code, of quotations, and of tracebacks, which run to the end of the message.
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
"""The patterns of words that are not the speaker's, each with substrings.

Every match of a pattern contains one of its substrings. The substrings are searched first, because
most messages contain none of them.
"""


def code_lines(text: str) -> list[tuple[int, int]]:
    r"""Return the start and end of each line of code in a text.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    list of tuple
        The start and the end of each line, without its line break.

    Examples
    --------
    >>> code_lines("Why?\nimport os")
    [(5, 14)]
    """
    spans, start = [], 0
    for line in text.splitlines(keepends=True):
        if _CODE_LINE.match(line):
            spans.append((start, start + len(line.rstrip("\r\n"))))
        start += len(line)
    return spans


def without_quotations(text: str) -> str:
    """Return a message with its code, quotations and error output blanked.

    The blanks keep all offsets valid.

    Parameters
    ----------
    text
        A message.

    Returns
    -------
    str
        A text of the same length as the message.

    Examples
    --------
    >>> without_quotations('Ada said "no way" twice')
    'Ada said          twice'
    """
    for pattern, signs in _OTHERS_WORDS:
        if any(sign in text for sign in signs):
            text = pattern.sub(lambda match: " " * len(match[0]), text)
    code = code_lines(text)
    return "".join(_blank_spans(text, code)) if code else text


def _blank_spans(text: str, spans: list[tuple[int, int]]) -> Iterator[str]:
    """Yield the pieces of a text, with spaces in place of the spans."""
    end = 0
    for start, stop in spans:
        yield text[end:start]
        yield " " * (stop - start)
        end = stop
    yield text[end:]


# Texts are measured in tokens of a language model, and shortened to a number of tokens.


BYTES_A_TOKEN = 4
"""The number of UTF-8 bytes per token.

Tokenisers of language models use 3.5 to 4.5 bytes for English, and 3 per Chinese character.
"""

# A pattern of an end of a sentence before white space, an East Asian full stop, or a line break.
_END_OF_SENTENCE_OR_LINE = re.compile(
    r"(?<=[.!?\u2026])[\"')\]\u201d\u2019]*\s+|(?<=[\u3002\uff01\uff1f])|(?<!\s)\s*\n\s*"
)


def count_tokens(text: str) -> int:
    """Return the estimated number of tokens in a text for a language model."""
    return -(-len(text.encode()) // BYTES_A_TOKEN)


def sentences_and_lines(text: str) -> list[str]:
    r"""Return the sentences and lines of a text that contain a letter or digit.

    >>> sentences_and_lines("It rained. We stayed in!  ---\nThe end")
    ['It rained.', 'We stayed in!', 'The end']
    """
    return [
        sentence
        for part in _END_OF_SENTENCE_OR_LINE.split(text)
        if any(map(str.isalnum, sentence := part.strip()))
    ]


def shorten(text: str, budget: int) -> str:
    """Return a text cut to at most ``budget`` tokens at a word boundary.

    >>> shorten("one two three four five", 4)
    'one two three\u2026'
    """
    if count_tokens(text) <= budget:
        return text
    room = max(budget * BYTES_A_TOKEN - len("\u2026".encode()), 1)
    begun = text.encode()[:room].decode(errors="ignore")
    complete = text[len(begun) : len(begun) + 1].isspace() or len(begun.split()) <= 1
    return f"{begun.rstrip() if complete else begun.rsplit(None, 1)[0]}\u2026"


# A capital letter alone does not turn an ordinary word of English into a name.
#
# ``plain_words.txt`` lists the base forms of ordinary words; plurals, "-ed", "-ing" and "-ly" are derived. Words that
# are at least as often names of people, places or products ("grace", "apple", "frozen") or of projects ("otter",
# "orbit") are not listed.


# Endings of derived forms with the ending of the base form, and the minimum letters of a stem.
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
"""A pattern of a letter three times in a row, or each letter twice: "dunnnn", "bbaadddd"."""


def is_plain_word(word: str) -> bool:
    """Return whether a word is an ordinary English word or a drawn-out cry.

    Parameters
    ----------
    word
        One word in lower case.

    Returns
    -------
    bool
        Whether the list contains the word or its base form, or the word is drawn out.

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
        and word[: -len(ending)] + restored in _plain_words()
        for ending, restored in _SUFFIXES
    )


# Read from the file once per process.
@cache
def _plain_words() -> frozenset[str]:
    """Return the base forms of ordinary words, which are read once per process."""
    return frozenset(
        (Path(__file__).parent / "plain_words.txt").read_text(encoding="utf-8").split()
    )
