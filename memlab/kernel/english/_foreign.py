"""What of a message its speaker did not say: code, quotations, error output. It is left out before anything is read."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["code_lines", "without_quotations"]

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
