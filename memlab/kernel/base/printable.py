"""Text that is safe to print: control and direction characters are replaced by visible symbols."""

from __future__ import annotations

import re

# Replacement by character. C0 controls and DEL have pictures in Unicode; C1 controls, which some terminals obey, have none.
_UNKNOWN = "\ufffd"
_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"} | {
    0x7F: "\u2421"
}
_C1 = range(0x80, 0xA0)
_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Embeddings, overrides and isolates, which reorder the text around them. Direction marks are kept, because Arabic
needs them."""
_PICTURES |= dict.fromkeys((*_C1, *_DIRECTIONS), _UNKNOWN)
# All replaced characters, for texts in which they are escaped instead.
_ACTIVE = re.compile("[" + "".join(map(re.escape, map(chr, _PICTURES))) + "]")


def printable(text: str) -> str:
    r"""Return `text` with control characters replaced by visible symbols.

    Line ends and tabs are kept.

    Parameters
    ----------
    text
        Text from any source.

    Returns
    -------
    str
        A text that cannot steer a terminal or reorder other text.

    Examples
    --------
    >>> printable("a\x1b[2J\r\nb\u202e")
    'a␛[2J\nb�'
    """
    if text.isprintable():  # Fast, and true for most texts.
        return text
    return text.replace("\r\n", "\n").translate(_PICTURES)


def json_safe(text: str) -> str:
    r"""Return JSON text with its control characters escaped.

    Parameters
    ----------
    text
        A JSON text.

    Returns
    -------
    str
        The same value as JSON that is safe to print.

    Examples
    --------
    >>> json_safe('"a\x9b"')
    '"a\\u009b"'
    """
    return _ACTIVE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def count_of(count: int, noun: str) -> str:
    """Return a number with its noun in the singular or the plural.

    >>> count_of(1, "memory"), count_of(2000, "memory"), count_of(0, "day")
    ('1 memory', '2,000 memories', '0 days')
    """
    if count == 1:
        return f"1 {noun}"
    is_regular = noun[-1] != "y" or noun[-2] in "aeiou"
    return f"{count:,} {noun}s" if is_regular else f"{count:,} {noun[:-1]}ies"
