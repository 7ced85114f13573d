"""How results are shown: tables, bars and clipped lines, for a notebook and a terminal."""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections.abc import Collection, Iterable, Sequence

__all__ = [
    "Markup",
    "bar",
    "box",
    "clip",
    "details",
    "json_safe",
    "paragraph",
    "printable",
    "table",
    "text_table",
    "wrap",
]


BLUE, RED = "#4c78a8", "#e45756"
_NUMBER = re.compile(r"[-+]?[\d.,]+%?|-|\[[-\d., ]*\]|")
_INKED = "print-color-adjust:exact;-webkit-print-color-adjust:exact"
"""Browsers print no backgrounds otherwise."""

_NARROW = 8
"""Characters that a cell of a text table keeps at least."""

_HIGHEST = "32em"
"""Height beyond which an output scrolls."""

_TALL = 30
"""Rows above which a table scrolls."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def clip(text: str | None, most: int = 60) -> str:
    """One line of at most so many characters.

    >>> clip("tabs,  or spaces?", 6)
    'tabs…'
    """
    line = " ".join((text or "").split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip(' ,.')}…"


def paragraph(text: object) -> str:
    """A line of its own; of what says what it is in angle brackets, the words within."""
    inside = text if isinstance(text, Markup) else html.escape(str(text).removeprefix("<").removesuffix(">"))
    return f"<p style='margin:.2em 0'>{inside}</p>"


def table(title: object, heads: Sequence[str], rows: Iterable[Sequence[object]], *, notes: Iterable[str] = ()) -> str:
    """A table under its title and above its notes. Columns of numbers are aligned to the right, others to the left.

    >>> table("A title.", ["x"], [["<"]])[-49:]
    "' dir='auto'>&lt;</td></tr></tbody></table></div>"
    """
    escaped = [[_escaped(cell) for cell in row] for row in rows]
    sides = [
        "right" if all(_NUMBER.fullmatch(cell) for cell in column) else "left;white-space:normal"
        for column in zip(*escaped, strict=True)
    ]

    def line(tag: str, cells: Sequence[str]) -> str:
        inside = (
            f"<{tag} style='padding:.1em .5em;vertical-align:top;text-align:{side}' dir='auto'>{cell}</{tag}>"
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(inside)}</tr>"

    head = line("th", [html.escape(name) for name in heads]) if escaped else ""
    body = "".join(line("td", row) for row in escaped)
    whole = f"<table style='margin:0'><thead>{head}</thead><tbody>{body}</tbody></table>" if escaped else ""
    below = "".join(f"<p style='opacity:.7;margin:.2em 0'>{_escaped(note)}</p>" for note in notes)
    frame = "overflow:auto" + (f";max-height:{_HIGHEST}" if len(escaped) > _TALL else "")
    return f"<div style='{frame}'>{paragraph(title)}{whole}{below}</div>"


def details(summary: object, inside: str, *, opened: bool = False) -> str:
    """A line that opens to HTML, without a script."""
    return f"<details{' open' if opened else ''}><summary dir='auto'>{_escaped(summary)}</summary>{inside}</details>"


def box(inside: str) -> str:
    """HTML that scrolls where it is higher than a screen."""
    return f"<div style='overflow:auto;max-height:{_HIGHEST}'>{inside}</div>"


def text_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: Collection[int] = (0,),
    width: int | None = None,
    optional: Iterable[int] = (),
) -> list[str]:
    """The lines of a table for a terminal: columns in ``left`` are aligned to the left, others to the right.

    Where it is wider than ``width`` characters, columns in ``optional`` are left out, the first of them first, until
    it fits; then long cells of ``left`` are clipped.

    >>> text_table(["pack", "value"], [["companion", ".5"]])
    ['pack       value', 'companion     .5']
    >>> text_table(["pack", "value"], [["companion", ".5"]], width=12, optional=[1])
    ['pack', 'companion']
    """
    columns = [[heads[at], *(row[at] for row in rows)] for at in range(len(heads))]
    widths = [max(map(len, column)) for column in columns]
    shown = list(range(len(heads)))

    def excess() -> int:
        return 0 if width is None else sum(widths[at] + 2 for at in shown) - 2 - width

    for at in optional:
        if excess() > 0:
            shown.remove(at)
    while excess() > 0:
        at = max((at for at in shown if at in left), key=lambda at: widths[at])
        if widths[at] <= _NARROW:
            break
        widths[at] = max(_NARROW, widths[at] - excess())
    return [
        "  ".join(
            clip(columns[at][line], widths[at]).ljust(widths[at]) if at in left else columns[at][line].rjust(widths[at])
            for at in shown
        ).rstrip()
        for line in range(len(rows) + 1)
    ]


def wrap(text: str, width: int | None) -> list[str]:
    """A paragraph as lines of at most ``width`` characters, the later ones indented; as it is where there is no width.

    >>> wrap("one two three", 8)
    ['one two', '  three']
    """
    return [text] if width is None else textwrap.wrap(text, width, subsequent_indent="  ")


def bar(value: float | None, top: float, *, signed: bool = True) -> Markup:
    """A bar as long as the share of ``value`` in ``top``: to the right when positive, to the left when negative.

    What is not ``signed`` has no half for what is negative, and nothing is drawn for that.
    """
    if not value or not top or (value < 0 and not signed):
        return Markup()
    share = min(100.0, 100 * abs(value) / top) if math.isfinite(value) else 100.0
    side = "margin-left:auto;" if value < 0 else ""
    ink = f"background:{BLUE if value > 0 else RED};{_INKED}"
    drawn = f"<div style='{side}height:.8em;width:{share:.1f}%;{ink}'></div>"
    if not signed:
        return Markup(f"<div style='width:5em'>{drawn}</div>")
    halves = (drawn, "") if value < 0 else ("", drawn)
    edge = "border-right:1px solid rgba(128,128,128,.6)"
    inside = "".join(
        f"<div style='width:5em;{style}'>{half}</div>" for style, half in zip((edge, ""), halves, strict=True)
    )
    return Markup(f"<div style='display:flex'>{inside}</div>")


def _escaped(cell: object) -> str:
    return cell if isinstance(cell, Markup) else html.escape("" if cell is None else str(cell))


# -- text for a terminal ----------------------------------------------------------------------------------------------


_UNKNOWN = "\ufffd"
_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"} | {0x7F: "\u2421"}
_C1 = range(0x80, 0xA0)
_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Embeddings, overrides and isolates. Marks of direction reorder nothing around them, and Arabic needs them."""
_PICTURES |= dict.fromkeys((*_C1, *_DIRECTIONS), _UNKNOWN)
_ACTIVE = re.compile("[" + "".join(map(re.escape, map(chr, _PICTURES))) + "]")


def printable(text: str) -> str:
    """A text in which nothing steers a terminal: control characters as pictures; line ends and tabs stay.

    >>> printable("a\\x1b[2J\\r\\nb\\u202e")
    'a␛[2J\\nb�'
    """
    if text.isprintable():  # true of most, and quick
        return text
    return text.replace("\r\n", "\n").translate(_PICTURES)


def json_safe(text: str) -> str:
    """A JSON text of the same value in which none of these characters stands as itself.

    >>> json_safe('"a\\x9b"')
    '"a\\\\u009b"'
    """
    return _ACTIVE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
