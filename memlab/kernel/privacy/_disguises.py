"""Reading a text without its disguises: as views, bounded in number, depth and bytes.

A text is read as it is; with plain letters; without line breaks within a token; and with spelled-out characters
joined. In the second and third, escapes and encodings are undone up to ``DEPTH`` times over. So at most
``VIEWS`` are looked at, none longer than the text: nothing that is decoded grows.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

__all__ = [
    "DEPTH",
    "MAX_ENCODED",
    "SPELLED",
    "VIEWS",
    "Edit",
    "View",
    "Way",
    "has_broken_token",
    "read_views",
    "strip_disguise",
]


# A text with parts replaced, which knows where each of its characters stood before.


class Edit(NamedTuple):
    """What stood from ``start`` to ``end`` reads ``text``."""

    start: int
    end: int
    text: str


class View:
    """A way to read a text. ``origin`` maps a span of it to the span of the original that it was read from."""

    __slots__ = ("_before", "_edited", "_origins", "_starts", "text")

    def __init__(self, text: str, before: View | None = None) -> None:
        self.text = text
        self._before = before
        self._starts: list[int] | None = None
        self._origins: list[int] = []
        self._edited: list[int] = []

    def edited(self, edits: Iterable[Edit]) -> View:
        """This text with each edit made; they ascend and do not overlap."""
        parts, starts, origins, lengths = [], [], [], []
        position = length = 0
        for start, end, new in edits:
            if start > position:
                parts.append(self.text[position:start])
                starts.append(length)
                origins.append(position)
                lengths.append(0)
                length += start - position
            if new:
                parts.append(new)
                starts.append(length)
                origins.append(start)
                lengths.append(end - start)
                length += len(new)
            position = end
        parts.append(self.text[position:])
        starts.append(length)
        origins.append(position)
        lengths.append(0)
        view = View("".join(parts), self)
        view._starts, view._origins, view._edited = starts, origins, lengths
        return view

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where in the original the characters from ``start`` to ``end`` come from."""
        if self._before is None:
            return start, end
        assert self._starts is not None
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        # what was replaced stands as a whole for each of its characters
        begin = self._origins[first] + (0 if self._edited[first] else start - self._starts[first])
        stop = self._origins[last] + (self._edited[last] or end - self._starts[last])
        return self._before.origin(begin, stop)


DEPTH = 4
"""How many encodings within one another are undone, all escapes counted as one of them."""

VIEWS = 4 + 2 * DEPTH
"""Ways to read one text, at most."""

MAX_ENCODED = 1_000_000
"""Of how much encoded text, in characters, one way to read a text undoes the encoding."""

Way = Literal["as it is", "joined"]

SPELLED = r"(?:(?<!\S)|(?<=[^\w\s]))[!-~](?> (?: {2})?\S(?!\S)){7,}+(?: \S(?=[^\w\s]))?"
_SPELLING = r"(\S)(?: ( {2})?)?"
# a line that goes on: no space before, and what follows is no "name =" or "name:"
_BROKEN = (
    r"(?<=[A-Za-z0-9_+/=.$&%@!#*~:-])(?:[\"'][ \t]{0,20}[+.\\]?)?[ \t]{0,20}\\?\r?\n[ \t>|#*]{0,40}(?:[+.][ \t]{0,20})?"
    r"[\"']?(?P<next>(?![A-Za-z_][\w.-]{0,64}[ \t]{0,4}[:=](?!=?(?:\Z|[\s;\"',)&\]}])))[A-Za-z0-9_+/=.$&%@!#*~-]{2,}+)"
)
_HALVES = r"(?<=[^\s\"'])([\"'])[ \t]{0,20}[+.&]?[ \t]{0,20}\1(?=[^\n\"'])"
_ODD = (
    r"[A-Za-z][0-9]|[0-9][A-Za-z]|[a-z][A-Z]|_[A-Za-z]|[A-Za-z0-9][!@#%^*~+=&$]|[A-Za-z0-9+/]{24}"
)


def read_views(text: str) -> Iterator[tuple[View, Way]]:
    """The ways to read ``text``, and which each is."""
    own = View(text)
    yield own, "as it is"
    plain = _plain(own)
    if plain is not own:
        yield plain, "as it is"
    yield from ((view, "as it is") for view in _decoded(plain))
    if (joined := _joined(plain)) is not None:
        yield joined, "joined"
        yield from ((view, "joined") for view in _decoded(joined))
    if (spelled := _spelled(plain)) is not None:
        yield spelled, "joined"


def strip_disguise(text: str) -> str:
    """Without invisible characters, and with a Latin letter for each that looks like one."""
    return _plain(View(text)).text


def has_broken_token(text: str) -> bool:
    """Whether a token may run over the end of a line."""
    return _joined(View(text)) is not None


def _decoded(view: View) -> Iterator[View]:
    left = MAX_ENCODED
    for _ in range(DEPTH):
        edits, left = _decoding(view.text, left)
        if not edits:
            return
        view = view.edited(edits)
        yield view


# -- characters ----------------------------------------------------------------------------------------------------

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
_ALIKE = {
    "A": "АΑᴀ", "B": "ВΒ", "C": "СϹᴄ", "D": "Ꭰ", "E": "ЕΕᴇ", "F": "Ϝ", "G": "Ԍ", "H": "НΗ", "I": "ІΙӀ", "J": "ЈͿ",
    "K": "КΚᴋ", "M": "МΜ", "N": "Ν", "O": "ОΟՕ", "P": "РΡ", "Q": "Ԛ", "S": "ЅՏ", "T": "ТΤ", "U": "Ս", "V": "Ѵᴠ",
    "W": "Ԝᴡ", "X": "ХΧ", "Y": "УΥҮ", "Z": "Ζᴢ", "a": "аαɑ", "b": "Ьƅ", "c": "сϲ", "d": "ԁ", "e": "еҽ", "f": "ẝ",
    "g": "ɡց", "h": "һհ", "i": "іιɩı", "j": "јϳ", "k": "кκ", "l": "ӏⅼ", "m": "мⅿ", "n": "ոη", "o": "оοօσᴏ", "p": "рρ",
    "q": "ԛզ", "r": "гᴦ", "s": "ѕꜱ", "t": "тτ", "u": "υսᴜ", "v": "νѵ", "w": "ԝѡ", "x": "хχ", "y": "уγү", "z": "ᴢ",
    "3": "З", "-": "‐‑‒–—−﹘﹣", ".": "․", ":": "։꞉∶", "/": "∕⁄⧸", "=": "꞊",
}  # fmt: skip
"""Latin characters, and letters of Cyrillic, Greek, Armenian and the phonetic alphabet that look like them."""


@cache
def _plain_of() -> tuple[re.Pattern[str], dict[int, str]]:
    table = {ord(foreign): latin for latin, alike in _ALIKE.items() for foreign in alike}
    table |= {0xFF01 + offset: chr(0x21 + offset) for offset in range(94)}
    for first, count, latin in (
        *((0x1D400 + 52 * style, 26, "A") for style in range(13)),
        *((0x1D41A + 52 * style, 26, "a") for style in range(13)),
        *((0x1D7CE + 10 * style, 10, "0") for style in range(5)),
        (0x24B6, 26, "A"),
        (0x24D0, 26, "a"),
        (0x2070, 10, "0"),
        (0x2080, 10, "0"),
    ):
        table |= {first + offset: chr(ord(latin) + offset) for offset in range(count)}
    return re.compile(f"[{_INVISIBLE}]+"), table


def _plain(view: View) -> View:
    """Without invisible characters, and with a Latin letter for each that looks like one."""
    if view.text.isascii():
        return view
    invisible, table = _plain_of()
    read = view.text.translate(table)
    if invisible.search(read) is None:
        return view if read == view.text else _replaced(view, read)
    plain = view.edited(Edit(*match.span(), "") for match in invisible.finditer(view.text))
    read = plain.text.translate(table)
    return plain if read == plain.text else _replaced(plain, read)


def _replaced(view: View, text: str) -> View:
    """Another text of the same length, character for character."""
    same = view.edited(())
    same.text = text
    return same


# -- broken lines, spelled characters ------------------------------------------------------------------------------


def _joined(view: View) -> View | None:
    """Tokens that run over the end of a line, or that a program puts together, in one; None if there are none."""
    text, edits = view.text, []
    if "\n" in text:
        broken = (match for match in re.finditer(_BROKEN, text) if re.search(_ODD, match["next"]))
        edits += [Edit(match.start(), match.start("next"), "") for match in broken]
    if '"' in text or "'" in text:
        edits += [Edit(*match.span(), "") for match in re.finditer(_HALVES, text)]
        edits.sort()
        edits = [
            edit
            for place, edit in enumerate(edits)
            if not place or edit.start >= edits[place - 1].end
        ]
    return view.edited(edits) if edits else None


def _spelled(view: View) -> View | None:
    """Characters that stand one by one, joined: "g h p _ 4" reads "ghp_4"; None if there are none."""
    edits = [
        Edit(
            *match.span(), re.sub(_SPELLING, lambda one: one[1] + (" " if one[2] else ""), match[0])
        )
        for match in re.finditer(SPELLED, view.text)
    ]
    return view.edited(edits) if edits else None


# -- escapes and encodings -----------------------------------------------------------------------------------------


@cache
def _escapes() -> re.Pattern[str]:
    return re.compile(
        r"(?P<percent>(?:%[0-9A-Fa-f]{2})++)"
        r"|(?P<entity>(?:&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,24});)++)"
        r"|(?P<escape>(?:\\(?:u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}))++)"
        r"|(?P<marked>\\(?=[_*\-.~`\#+=\[\](){}!>|:/&@$\"']))"
        r"|(?P<soft>=\r?\n)"
        r"|(?P<quoted>(?:=[0-9A-F]{2})++(?![0-9A-Fa-f]{24}))"
    )


@cache
def _encodings() -> re.Pattern[str]:
    return re.compile(
        r"(?P<pairs>(?<![0-9A-Za-z])(?:(?:0x)?[0-9A-Fa-f]{2}[ :,]{1,2}){7,}+(?:(?:0x)?[0-9A-Fa-f]{2})?)"
        r"|(?P<base64>[A-Za-z0-9+/_-]{11,}+(?:={1,2}(?![0-9A-Za-z=]))?)"
    )


def _decoding(text: str, left: int) -> tuple[list[Edit], int]:
    """What is to be replaced in ``text``, of at most ``left`` characters, and how many may still be: escapes, or
    encodings where there are no escapes any more.
    """
    edits: list[Edit] = []
    for pattern in (_escapes(), _encodings()):
        for match in pattern.finditer(text):
            for start, end in _pieces(match):
                if end - start > left:
                    return edits, left
                new = _READERS[str(match.lastgroup)](text[start:end])
                if new is not None:
                    edits.append(Edit(start, end, new))
                    left -= end - start
                    if start == match.start() and end == match.end():
                        break
        if edits:
            break
    return edits, left


def _pieces(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """All of it; and of base64, which may follow a path, what stands between slashes."""
    yield match.span()
    if match.lastgroup == "base64" and "/" in match[0]:
        yield from (piece.span() for piece in _PIECE.finditer(match.string, *match.span()))


def _percent(found: str) -> str | None:
    return _readable(unquote_to_bytes(found))


def _entity(found: str) -> str | None:
    read = html.unescape(found)
    return None if read == found else read


def _escape(found: str) -> str | None:
    codes = re.findall(r"\\[uUx]\{?([0-9A-Fa-f]+)\}?", found)
    return "".join(
        chr(code) if (code := int(one, 16)) < 0xD800 or 0xE000 <= code < 0x110000 else "?"
        for one in codes
    )


def _quoted(found: str) -> str | None:
    return _readable(binascii.a2b_qp(found))


def _pairs(found: str) -> str | None:
    return _readable(bytes.fromhex(re.sub(r"0x|[ :,]", "", found)))


def _base64(found: str) -> str | None:
    """Hexadecimal digits, or base64 of either alphabet, that make a text; an odd length is one that was cut."""
    body = found.rstrip("=")
    if _HEXADECIMAL.fullmatch(body) and (read := _readable(bytes.fromhex(body))) is not None:
        return read
    if len(body) < 16 and not found.endswith("="):
        return None
    usual = body.translate(_USUAL)
    usual = usual[: len(usual) - (len(usual) % 4 == 1)]
    return _readable(base64.b64decode(usual + "=" * (-len(usual) % 4)))


_PIECE = re.compile(r"[A-Za-z0-9+_-]{16,}={0,2}")
_HEXADECIMAL = re.compile(r"(?:[0-9A-Fa-f]{2}){8,}")
_USUAL = str.maketrans("-_", "+/")
_READERS = {
    "percent": _percent,
    "entity": _entity,
    "escape": _escape,
    "marked": lambda _: "",
    "soft": lambda _: "",
    "quoted": _quoted,
    "pairs": _pairs,
    "base64": _base64,
}


def _readable(data: bytes) -> str | None:
    """Bytes as a text, if they are one that a person could have written."""
    wide = len(data) >= 8 and not any(data[1::2]) and len(data) % 2 == 0
    try:
        text = data.decode("utf-16-le" if wide else "utf-8")
    except UnicodeDecodeError:
        return None
    return text if all(map(_is_written, text)) else None


def _is_written(character: str) -> bool:
    return character.isprintable() or character in "\n\r\t"
