"""How results are shown: one description of a result gives its text in a terminal and its HTML in a notebook.

A class that inherits ``Displayed`` says in ``_display`` what of it is shown; a ``Report`` shows the same as text. Text
becomes HTML in this module alone, which escapes it.
"""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from string import Formatter
from typing import Any, NamedTuple, TypeAlias

from memlab.kernel.base.arguments import Count, checked
from memlab.kernel.base.printable import printable

__all__ = [
    "Columns",
    "Displayed",
    "Markup",
    "Report",
    "Table",
    "bar",
    "box",
    "clip",
    "code_block",
    "details",
    "format_rows",
    "paragraph",
    "render_html",
    "render_text",
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
    """Text that is HTML already, for templates, too."""

    __slots__ = ()

    def __html__(self) -> str:
        return self

    def format(self, *values: object, **named: object) -> Markup:
        """Fill in values, which are escaped unless they are HTML.

        >>> Markup("<b>{}</b>").format("a < b")
        '<b>a &lt; b</b>'
        """
        return Markup(
            super().format(
                *map(_escaped, values), **{name: _escaped(one) for name, one in named.items()}
            )
        )


Columns: TypeAlias = "Sequence[tuple[str, str | Callable[[Mapping[str, Any]], object]]]"
"""The head of each column, and a template of its cells or a function of a row."""


class Table(NamedTuple):
    """A table under its title and above its notes.

    ``left`` are the columns that a terminal aligns to the left. Where it has no room, columns in ``optional`` are left
    out, the first of them first. HTML has all columns, and aligns those of numbers to the right.
    """

    title: object
    heads: Sequence[str]
    rows: Iterable[Sequence[object]]
    notes: Iterable[str] = ()
    left: Collection[int] = (0,)
    optional: Iterable[int] = ()


class Displayed:
    """A value that a notebook shows as HTML."""

    __slots__ = ()

    def _display(self) -> object:
        """Return what is shown, as ``render_html`` takes it: by default the repr, and ``frame`` if there is one."""
        frame = getattr(self, "frame", None)
        return repr(self) if frame is None else (repr(self), frame)

    def _repr_html_(self) -> str:
        return render_html(self._display())


class Report(Displayed):
    """A result whose text says what its HTML says: a class declares ``_display``."""

    __slots__ = ()

    @checked
    def text(self, width: Count | None = None) -> str:
        """Return the finding and its tables as text, in lines of at most ``width`` characters.

        Of a table that is wider, columns are left out; ``frame`` has them all.
        """
        return render_text(self._display(), width)

    def __repr__(self) -> str:
        return self.text()


def render_html(shown: object) -> Markup:
    """Return the HTML of one part or of several; everything that is not ``Markup`` is escaped.

    A part is a text, which is a paragraph; a list of texts, a paragraph each; a ``Table``; ``Markup``; or a value that
    notebooks know how to show, such as a frame. None shows nothing.
    """
    if isinstance(shown, Table):
        return _table_html(shown)
    if isinstance(shown, str):
        return shown if isinstance(shown, Markup) else paragraph(shown)
    if shown is None:
        return Markup()
    if hasattr(shown, "_repr_html_"):
        return Markup(shown._repr_html_())
    if not isinstance(shown, Iterable):
        return paragraph(shown)
    parts = [render_html(part) for part in shown]
    inside = "".join(parts)
    return Markup(f"<div>{inside}</div>" if len(parts) > 1 else inside)


def render_text(shown: object, width: int | None = None) -> str:
    """Return the text of the same parts: an empty line between two, and in a list of texts a line each."""
    parts = (
        [shown]
        if isinstance(shown, str | Table) or not isinstance(shown, Iterable)
        else list(shown)
    )
    blocks = (_block(part, width) for part in parts if part is not None)
    return printable("\n\n".join("\n".join(block) for block in blocks if block))


def _block(part: object, width: int | None) -> list[str]:
    if isinstance(part, Table):
        rows = [list(map(_plain, row)) for row in part.rows]
        title = wrap(str(part.title), width) if part.title else []
        lines = (
            text_table(part.heads, rows, left=part.left, width=width, optional=part.optional)
            if rows
            else []
        )
        return [*title, *lines, *(line for note in part.notes for line in wrap(note, width))]
    texts = [part] if isinstance(part, str) or not isinstance(part, Iterable) else part
    return [line for text in texts for line in wrap(str(text), width)]


def _plain(cell: object) -> str:
    return "" if cell is None else str(cell)


def format_rows(
    rows: Iterable[Mapping[str, Any]], columns: Columns
) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the cells of a table from rows of values.

    A column is its head and a template, such as ``"[{low:.2f}, {high:.2f}]"``, or a function of the row. A template is
    empty where one of its values is None or not a number.

    >>> format_rows([{"pack": "mine", "p": 0.25}, {"pack": "yours", "p": None}], [("", "{pack}"), ("p", "{p:.1f}")])
    (['', 'p'], [['mine', '0.2'], ['yours', '']])
    """
    cells = [[str(_fill(row, how)) for _, how in columns] for row in rows]
    return [head for head, _ in columns], cells


def _fill(row: Mapping[str, Any], how: str | Callable[[Mapping[str, Any]], object]) -> object:
    if not isinstance(how, str):
        return how(row)
    names = [name for _, name, _, _ in Formatter().parse(how) if name]
    missing = any(row[name] is None or row[name] != row[name] for name in names)
    # A difference that rounds to zero has no sign: "-0.000" would read as a loss.
    return "" if missing else re.sub(r"(?<![\w.])-(?=0\.0+(?!\d))", "", how.format(**row))


def clip(text: str | None, most: int = 60) -> str:
    """Return one line of at most ``most`` characters.

    >>> clip("tabs,  or spaces?", 6)
    'tabs…'
    """
    line = " ".join((text or "").split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip(' ,.')}…"


def paragraph(text: object) -> Markup:
    """Return a paragraph; of a repr in angle brackets, the words within."""
    inside = text if isinstance(text, Markup) else str(text)
    if inside.startswith("<") and inside.endswith(">") and not isinstance(text, Markup):
        inside = inside[1:-1]
    return Markup("<p style='margin:.2em 0'>{}</p>").format(inside)


def code_block(text: object) -> Markup:
    """Return text as it stands, in a typeface of equal widths."""
    return Markup("<pre dir='auto' style='line-height:1.35;margin:.3em 0 0'>{}</pre>").format(text)


def table(
    title: object,
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    notes: Iterable[str] = (),
) -> Markup:
    """Return the HTML of a ``Table``.

    >>> table("A title.", ["x"], [["<"]])[-49:]
    "' dir='auto'>&lt;</td></tr></tbody></table></div>"
    """
    return _table_html(Table(title, heads, rows, notes))


def _table_html(shown: Table) -> Markup:
    escaped = [list(map(_escaped, row)) for row in shown.rows]
    numeric = [all(map(_NUMBER.fullmatch, column)) for column in zip(*escaped, strict=True)]
    sides = ["right" if is_numeric else "left;white-space:normal" for is_numeric in numeric]

    def line(tag: str, cells: Sequence[str]) -> str:
        inside = (
            f"<{tag} style='padding:.1em .5em;vertical-align:top;text-align:{side}' dir='auto'>{cell}</{tag}>"
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(inside)}</tr>"

    head = line("th", [html.escape(name) for name in shown.heads]) if escaped else ""
    body = "".join(line("td", row) for row in escaped)
    whole = (
        f"<table style='margin:0'><thead>{head}</thead><tbody>{body}</tbody></table>"
        if escaped
        else ""
    )
    below = "".join(
        f"<p style='opacity:.7;margin:.2em 0'>{_escaped(note)}</p>" for note in shown.notes
    )
    frame = "overflow:auto" + (f";max-height:{_HIGHEST}" if len(escaped) > _TALL else "")
    return Markup(
        f"<div style='{frame}'>{paragraph(shown.title) if shown.title else ''}{whole}{below}</div>"
    )


def details(summary: object, inside: object, *, opened: bool = False) -> Markup:
    """Return a line that opens to parts, without a script."""
    start = "<details open>" if opened else "<details>"
    return Markup(
        f"{start}<summary dir='auto'>{_escaped(summary)}</summary>{render_html(inside)}</details>"
    )


def box(inside: object) -> Markup:
    """Return parts that scroll where they are higher than a screen."""
    return Markup(f"<div style='overflow:auto;max-height:{_HIGHEST}'>{render_html(inside)}</div>")


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
    columns = list(zip(heads, *rows, strict=True))
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

    def align(at: int, cell: str) -> str:
        return clip(cell, widths[at]).ljust(widths[at]) if at in left else cell.rjust(widths[at])

    lines = zip(*(columns[at] for at in shown), strict=True)
    return ["  ".join(map(align, shown, line)).rstrip() for line in lines]


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
        f"<div style='width:5em;{style}'>{half}</div>"
        for style, half in zip((edge, ""), halves, strict=True)
    )
    return Markup(f"<div style='display:flex'>{inside}</div>")


def _escaped(cell: object) -> str:
    return cell if isinstance(cell, Markup) else html.escape("" if cell is None else str(cell))
