"""Blocks of private keys: PEM, OpenSSH, PGP and PuTTY."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

__all__ = ["private_keys"]

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE)
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE)
_BASE64_LINES = re.compile(r"(?:(?:\s|\\n|\\r){1,8}[A-Za-z0-9+/=]{20,})*")
_PUTTY = re.compile(r"PuTTY-User-Key-File-[0-9][^\0]{0,4000}?Private-Lines: [0-9]{1,4}(?:\s{1,4}[A-Za-z0-9+/=]{4,})*+")


def private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Blocks from their first line to their last; one that was cut short counts as far as its base64 goes."""
    ends = _END.finditer(text)
    end = next(ends, None)
    begins = list(_BEGIN.finditer(text))
    for begin, following in itertools.zip_longest(begins, begins[1:]):
        while end is not None and end.start() < begin.end():
            end = next(ends, None)
        if end is not None and (following is None or end.start() < following.start()):
            yield begin.start(), end.end()
        else:
            tail = _BASE64_LINES.match(text, begin.end())
            yield begin.start(), tail.end() if tail else begin.end()
    yield from (match.span() for match in _PUTTY.finditer(text))
