"""Views of a text in which disguises of secrets are undone.

The number of views, their size and the depth of decoding are bounded.

A text is read in four ways: unchanged, with plain letters, without line breaks within tokens, and with spelled-out
characters joined. In the second and the third way, escapes and encodings are undone up to ``DEPTH`` times. So there are
at most ``VIEWS`` views. None is longer than the text, because decoding never makes a text longer.
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

# A view is a text with replaced parts. It maps each of its characters to the original text.


class Edit(NamedTuple):
    """A replacement of the characters from ``start`` to ``end`` by ``text``."""

    start: int
    end: int
    text: str


class View:
    """A text after some replacements, with the original position of each character.

    ``origin`` maps a span of the view to the corresponding span of the original text.
    """

    __slots__ = ("_before", "_edited", "_origins", "_starts", "text")

    def __init__(self, text: str, before: View | None = None) -> None:
        self.text = text
        self._before = before
        self._starts: list[int] | None = None
        self._origins: list[int] = []
        self._edited: list[int] = []

    def edited(self, edits: Iterable[Edit]) -> View:
        """Return the text view after applying edits, which ascend and do not overlap."""
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
        """Return the original span of the characters from ``start`` to ``end``."""
        if self._before is None:
            return start, end
        assert self._starts is not None
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        # A replaced part maps to its whole original, even if the span has only some of its characters.
        begin = self._origins[first] + (0 if self._edited[first] else start - self._starts[first])
        stop = self._origins[last] + (self._edited[last] or end - self._starts[last])
        return self._before.origin(begin, stop)


DEPTH = 4
"""The maximum number of nested encodings that are undone. All escapes together count as one encoding."""

VIEWS = 4 + 2 * DEPTH
"""The maximum number of views of one text."""

MAX_ENCODED = 1_000_000
"""The maximum number of encoded characters that are decoded in one view, so that large texts take bounded time."""

Way = Literal["as it is", "joined"]

# Eight or more characters with spaces between them, such as "g h p _ 4 x 1 z".
SPELLED = r"(?:(?<!\S)|(?<=[^\w\s]))[!-~](?> (?: {2})?\S(?!\S)){7,}+(?: \S(?=[^\w\s]))?"
_SPELLING = r"(\S)(?: ( {2})?)?"
# A line break within a token: no space before the break, and no "name =" or "name:" after it.
_BROKEN = (
    r"(?<=[A-Za-z0-9_+/=.$&%@!#*~:-])(?:[\"'][ \t]{0,20}[+.\\]?)?[ \t]{0,20}\\?\r?\n[ \t>|#*]{0,40}(?:[+.][ \t]{0,20})?"
    r"[\"']?(?P<next>(?![A-Za-z_][\w.-]{0,64}[ \t]{0,4}[:=](?!=?(?:\Z|[\s;\"',)&\]}])))[A-Za-z0-9_+/=.$&%@!#*~-]{2,}+)"
)
_HALVES = r"(?<=[^\s\"'])([\"'])[ \t]{0,20}[+.&]?[ \t]{0,20}\1(?=[^\n\"'])"
# A pattern that the second half of a broken token matches, and an ordinary first word of a line does not.
_ODD = (
    r"[A-Za-z][0-9]|[0-9][A-Za-z]|[a-z][A-Z]|_[A-Za-z]|[A-Za-z0-9][!@#%^*~+=&$]|[A-Za-z0-9+/]{24}"
)


def read_views(text: str) -> Iterator[tuple[View, Way]]:
    """Yield a text and its decoded views, each with the name of its decoding."""
    own = View(text)
    yield own, "as it is"
    plain = _simplify(own)
    if plain is not own:
        yield plain, "as it is"
    yield from ((view, "as it is") for view in _decoded(plain))
    if (joined := _join_broken(plain)) is not None:
        yield joined, "joined"
        yield from ((view, "joined") for view in _decoded(joined))
    if (spelled := _join_spelled(plain)) is not None:
        yield spelled, "joined"


def strip_disguise(text: str) -> str:
    """Return a text without invisible characters and with look-alike letters made Latin.

    Look-alike characters of other alphabets are replaced by Latin characters.
    """
    return _simplify(View(text)).text


def has_broken_token(text: str) -> bool:
    """Return whether a token of a text may continue after a line break."""
    return _join_broken(View(text)) is not None


def _decoded(view: View) -> Iterator[View]:
    """Yield views of a text, each with one more layer of escapes or encodings decoded, at most ``DEPTH``."""
    left = MAX_ENCODED
    for _ in range(DEPTH):
        edits, left = _find_decodings(view.text, left)
        if not edits:
            return
        view = view.edited(edits)
        yield view


# -- Characters ----------------------------------------------------------------------------------------------------

# Soft hyphens, joiners, direction marks, variation selectors and tags, which no font draws.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
_ALIKE = (
    "AАΑᴀ BВΒ CСϹᴄ DᎠ EЕΕᴇ FϜ GԌ HНΗ IІΙӀ JЈͿ KКΚᴋ MМΜ NΝ OОΟՕ PРΡ QԚ SЅՏ TТΤ UՍ VѴᴠ WԜᴡ XХΧ YУΥҮ ZΖᴢ "
    "aаαɑ bЬƅ cсϲ dԁ eеҽ fẝ gɡց hһհ iіιɩı jјϳ kкκ lӏⅼ mмⅿ nոη oоοօσᴏ pрρ qԛզ rгᴦ sѕꜱ tтτ uυսᴜ vνѵ wԝѡ xхχ "
    "yуγү zᴢ 3З -‐‑‒–—−﹘﹣ .․ :։꞉∶ /∕⁄⧸ =꞊"
)
"""Groups of a Latin character and the characters of other alphabets that look like it."""


@cache  # built when a text first has a character outside ASCII
def _plain_of() -> tuple[re.Pattern[str], dict[int, str]]:
    """Return a pattern of invisible characters, and a table of look-alike characters.

    The table maps look-alike characters to Latin characters.
    """
    table = {ord(foreign): group[0] for group in _ALIKE.split() for foreign in group[1:]}
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


def _simplify(view: View) -> View:
    """Return a text without invisible characters, and with Latin letters in place of look-alike letters.

    Digits and signs that look like others are replaced too.
    """
    if view.text.isascii():
        return view
    invisible, table = _plain_of()
    read = view.text.translate(table)
    if invisible.search(read) is None:
        return view if read == view.text else _replace_text(view, read)
    plain = view.edited(Edit(*match.span(), "") for match in invisible.finditer(view.text))
    read = plain.text.translate(table)
    return plain if read == plain.text else _replace_text(plain, read)


def _replace_text(view: View, text: str) -> View:
    """Return a text variant with a new text of equal length and unchanged positions."""
    same = view.edited(())
    same.text = text
    return same


# -- Broken lines and spelled-out characters -----------------------------------------------------------------------


def _join_broken(view: View) -> View | None:
    """Join the parts of tokens broken over lines and of concatenated strings.

    Returns None if the text has neither.
    """
    text, edits = view.text, []
    if "\n" in text:
        broken = (match for match in re.finditer(_BROKEN, text) if re.search(_ODD, match["next"]))
        edits += [Edit(match.start(), match.start("next"), "") for match in broken]
    if '"' in text or "'" in text:
        edits += [Edit(*match.span(), "") for match in re.finditer(_HALVES, text)]
        edits.sort()
        edits = [
            edit
            for index, edit in enumerate(edits)
            if not index or edit.start >= edits[index - 1].end
        ]
    return view.edited(edits) if edits else None


def _join_spelled(view: View) -> View | None:
    """Join the letters of spelled-out words. Return None if no word is spelled out.

    For example, "g h p _ 4" is read as "ghp_4".
    """
    edits = [
        Edit(
            *match.span(),
            re.sub(_SPELLING, lambda pair: pair[1] + (" " if pair[2] else ""), match[0]),
        )
        for match in re.finditer(SPELLED, view.text)
    ]
    return view.edited(edits) if edits else None


# -- Escapes and encodings -----------------------------------------------------------------------------------------


@cache  # ordinary texts never need the pattern
def _escapes() -> re.Pattern[str]:
    """Return the compiled pattern of escape sequences.

    It matches percent escapes, HTML entities, backslash escapes and quoted-printable.
    """
    return re.compile(
        r"(?P<percent>(?:%[0-9A-Fa-f]{2})++)"
        r"|(?P<entity>(?:&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,24});)++)"
        r"|(?P<escape>(?:\\(?:u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}))++)"
        r"|(?P<marked>\\(?=[_*\-.~`\#+=\[\](){}!>|:/&@$\"']))"
        r"|(?P<soft>=\r?\n)"
        r"|(?P<quoted>(?:=[0-9A-F]{2})++(?![0-9A-Fa-f]{24}))"
    )


@cache  # ordinary texts never need the pattern
def _encodings() -> re.Pattern[str]:
    """Return the compiled pattern of hexadecimal pairs and base64."""
    return re.compile(
        r"(?P<pairs>(?<![0-9A-Za-z])(?:(?:0x)?[0-9A-Fa-f]{2}[ :,]{1,2}){7,}+(?:(?:0x)?[0-9A-Fa-f]{2})?)"
        r"|(?P<base64>[A-Za-z0-9+/_-]{11,}+(?:={1,2}(?![0-9A-Za-z=]))?)"
    )


def _find_decodings(text: str, left: int) -> tuple[list[Edit], int]:
    """Return edits that decode a text's escapes or encodings, and the remaining budget.

    Encodings are decoded only if the text has no escapes. At most ``left`` characters are decoded.
    """
    # Escapes are undone first, because an escaped text may contain an encoding that is complete only afterwards.
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
    """Yield the spans of a match that may be encoded text.

    They are the whole match and, for base64, each part between slashes, because a path may precede it.
    """
    yield match.span()
    if match.lastgroup == "base64" and "/" in match[0]:
        yield from (piece.span() for piece in _PIECE.finditer(match.string, *match.span()))


def _percent(escaped: str) -> str | None:
    """Decode percent escapes. Return None if the result is not readable text."""
    return _readable(unquote_to_bytes(escaped))


def _entity(escaped: str) -> str | None:
    """Decode HTML entities. Return None if nothing changes."""
    read = html.unescape(escaped)
    return None if read == escaped else read


def _escape(escaped: str) -> str | None:
    r"""Decode backslash escapes such as ``\u005f``; a code point that is no character becomes "?"."""
    codes = re.findall(r"\\[uUx]\{?([0-9A-Fa-f]+)\}?", escaped)
    return "".join(
        chr(code) if (code := int(code_text, 16)) < 0xD800 or 0xE000 <= code < 0x110000 else "?"
        for code_text in codes
    )


def _quoted(escaped: str) -> str | None:
    """Decode quoted-printable. Return None if the result is not readable text."""
    return _readable(binascii.a2b_qp(escaped))


def _pairs(encoded: str) -> str | None:
    """Decode pairs of hexadecimal digits. Return None if the result is not readable."""
    return _readable(bytes.fromhex(re.sub(r"0x|[ :,]", "", encoded)))


def _base64(encoded: str) -> str | None:
    """Decode hexadecimal digits or base64. Return None if unreadable, or for base64 below 16 characters without "=".

    Both alphabets of base64 are read, and an end that was cut off is ignored.
    """
    body = encoded.rstrip("=")
    if _HEXADECIMAL.fullmatch(body) and (read := _readable(bytes.fromhex(body))) is not None:
        return read
    if len(body) < 16 and not encoded.endswith("="):
        return None
    usual = body.translate(_USUAL)
    usual = usual[: len(usual) - (len(usual) % 4 == 1)]
    return _readable(base64.b64decode(usual + "=" * (-len(usual) % 4)))


# Patterns of base64 between slashes and of hexadecimal digits, a table to the standard alphabet of base64, and the
# decoder of each group of the patterns.
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
    """Decode bytes as UTF-8 or UTF-16; return None on failure or for unprintable characters."""
    wide = len(data) >= 8 and not any(data[1::2]) and len(data) % 2 == 0
    try:
        text = data.decode("utf-16-le" if wide else "utf-8")
    except UnicodeDecodeError:
        return None
    return text if all(map(_is_written, text)) else None


def _is_written(character: str) -> bool:
    """Return whether a character is printable, a line break or a tab."""
    return character.isprintable() or character in "\n\r\t"
