"""Display of results: one description of a result yields its text in a terminal and its HTML in a notebook.

A class that inherits `Displayed` returns the displayed parts from ``_display``. A `Report` shows
the same parts as text. Only this module turns text into HTML, and it escapes the text.
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

BLUE, RED = "#4c78a8", "#e45756"
# A cell that is a number, a share, an interval or empty, so that its column is aligned to the right.
_NUMBER = re.compile(r"[-+]?[\d.,]+%?|-|\[[-\d., ]*\]|")
_INKED = "print-color-adjust:exact;-webkit-print-color-adjust:exact"
"""CSS that makes browsers print backgrounds."""

_NARROW = 8
"""Minimum number of characters of a clipped cell in a text table."""

_HIGHEST = "32em"
"""Maximum height of an output before it scrolls, about one screen."""

_TALL = 30
"""Maximum number of rows of a table before it scrolls."""


class Markup(str):
    """Text that is already HTML and is not escaped again, not even in templates."""

    __slots__ = ()

    def __html__(self) -> str:
        return self

    def format(self, *values: object, **keywords: object) -> Markup:
        """Fill a template with values, escaping all values that are not HTML.

        Parameters
        ----------
        *values, **keywords
            Values for the placeholders.

        Returns
        -------
        Markup
            The HTML.

        Examples
        --------
        >>> Markup("<b>{}</b>").format("a < b")
        '<b>a &lt; b</b>'
        """
        return Markup(
            super().format(
                *map(_escaped, values), **{name: _escaped(x) for name, x in keywords.items()}
            )
        )


Columns: TypeAlias = "Sequence[tuple[str, str | Callable[[Mapping[str, Any]], object]]]"
"""Heading of each column, and a template of its cells or a function of a row."""


class Table(NamedTuple):
    """A table below its title and above its notes.

    The columns in `left` are aligned to the left in a terminal. If a terminal is too narrow, columns in `optional` are
    omitted in their order. HTML has all columns, and aligns columns of numbers to the right.
    """

    title: object
    heads: Sequence[str]
    rows: Iterable[Sequence[object]]
    notes: Iterable[str] = ()
    left: Collection[int] = (0,)
    optional: Iterable[int] = ()


class Folded(NamedTuple):
    """Texts that HTML shows after a click. A terminal shows only the summary, with a hint to the texts."""

    summary: str
    inside: Sequence[str]
    hint: str


class Displayed:
    """A value that a notebook shows as HTML."""

    __slots__ = ()

    def _display(self) -> object:
        """Return the parts that `render_html` displays: the repr, then ``frame`` if present."""
        frame = getattr(self, "frame", None)
        return repr(self) if frame is None else (repr(self), frame)

    def _repr_html_(self) -> str:
        return render_html(self._display())


class Report(Displayed):
    """A result whose text and HTML show the same parts.

    A subclass defines ``_display``.
    """

    __slots__ = ()

    @checked
    def text(self, width: Count | None = None) -> str:
        """Return the displayed parts of the result as text.

        Parameters
        ----------
        width
            Maximum number of characters per line; by default unlimited. Wider tables lose columns, which `frame` still has.

        Returns
        -------
        str
            The text, with parts separated by empty lines.
        """
        return render_text(self._display(), width)

    def __repr__(self) -> str:
        return self.text()


def render_html(parts: object) -> Markup:
    """Return display parts as HTML, escaping everything that is not `Markup`.

    A part is a text (shown as a paragraph), a list of texts, a `Table`, `Markup`, or a value that
    notebooks can show, such as a frame. A part that is None shows nothing.

    Parameters
    ----------
    parts
        One part, or an iterable of parts.

    Returns
    -------
    Markup
        The HTML.

    Examples
    --------
    >>> render_html("a < b")
    "<p style='margin:.2em 0'>a &lt; b</p>"
    """
    if isinstance(parts, Table):
        return _table_html(parts)
    if isinstance(parts, Folded):
        return details(parts.summary, parts.inside)
    if isinstance(parts, str):
        return parts if isinstance(parts, Markup) else paragraph(parts)
    if parts is None:
        return Markup()
    if hasattr(parts, "_repr_html_"):
        return Markup(parts._repr_html_())
    if not isinstance(parts, Iterable):
        return paragraph(parts)
    rendered = [render_html(part) for part in parts]
    inside = "".join(rendered)
    return Markup(f"<div>{inside}</div>" if len(rendered) > 1 else inside)


def render_text(parts: object, width: int | None = None) -> str:
    """Return display parts as text, separated by empty lines.

    Parameters
    ----------
    parts
        One part, or an iterable of parts; see `render_html`.
    width
        Maximum number of characters per line; by default unlimited.

    Returns
    -------
    str
        The text, with parts separated by empty lines.

    Examples
    --------
    >>> print(render_text(["The finding.", Table("", ["pack", "p"], [["mine", 0.2]])]))
    The finding.
    <BLANKLINE>
    pack    p
    mine  0.2
    """
    listed = (
        [parts]
        if isinstance(parts, str | Table) or not isinstance(parts, Iterable)
        else list(parts)
    )
    blocks = (_block(part, width) for part in listed if part is not None)
    return printable("\n\n".join("\n".join(block) for block in blocks if block))


def _block(part: object, width: int | None) -> list[str]:
    """Return one display part as lines of text."""
    if isinstance(part, Table):
        rows = [list(map(_plain, row)) for row in part.rows]
        title = wrap(str(part.title), width) if part.title else []
        lines = (
            text_table(part.heads, rows, left=part.left, width=width, optional=part.optional)
            if rows
            else []
        )
        return [*title, *lines, *(line for note in part.notes for line in wrap(note, width))]
    if isinstance(part, Folded):
        part = f"{part.summary}: {part.hint}"
    texts = [part] if isinstance(part, str) or not isinstance(part, Iterable) else part
    return [line for text in texts for line in wrap(str(text), width)]


def _plain(cell: object) -> str:
    """Return a table cell as plain text; None becomes empty."""
    return "" if cell is None else str(cell)


def format_rows(
    rows: Iterable[Mapping[str, Any]], columns: Columns
) -> tuple[list[str], list[list[str]]]:
    """Return the headings and cells of a table from rows of values.

    A column is its heading and a template, such as ``"[{low:.2f}, {high:.2f}]"``, or a function of the row. A template
    gives an empty cell if one of its values is None or NaN.

    Parameters
    ----------
    rows
        The values of each row, by name.
    columns
        Heading and template of each column.

    Returns
    -------
    tuple
        The headings, and the cells of each row.

    Examples
    --------
    >>> format_rows([{"pack": "mine", "p": 0.25}, {"pack": "yours", "p": None}], [("", "{pack}"), ("p", "{p:.1f}")])
    (['', 'p'], [['mine', '0.2'], ['yours', '']])
    """
    cells = [[str(_fill(row, how)) for _, how in columns] for row in rows]
    return [head for head, _ in columns], cells


def _fill(row: Mapping[str, Any], how: str | Callable[[Mapping[str, Any]], object]) -> object:
    """Return a table cell from a template or function of a row; a template with a missing value gives ""."""
    if not isinstance(how, str):
        return how(row)
    names = [name for _, name, _, _ in Formatter().parse(how) if name]
    missing = any(row[name] is None or row[name] != row[name] for name in names)
    # A difference that rounds to zero has no sign: "-0.000" would read as a loss.
    return "" if missing else re.sub(r"(?<![\w.])-(?=0\.0+(?!\d))", "", how.format(**row))


def clip(text: str | None, limit: int = 60, *, words: bool = False) -> str:
    """Return a text as one line of limited length.

    Parameters
    ----------
    text
        The text to shorten.
    limit
        Maximum number of characters.
    words
        Clip after a whole word, if the limit is larger than the first word.

    Returns
    -------
    str
        The text, which ends with an ellipsis if it was clipped.

    Examples
    --------
    >>> clip("tabs,  or spaces?", 6)
    'tabs…'
    >>> clip("tabs,  or spaces?", 12, words=True)
    'tabs, or…'
    """
    line = " ".join((text or "").split())
    if len(line) <= limit:
        return line
    end = line.rfind(" ", 0, limit) if words else -1
    return f"{line[: limit - 1 if end < 0 else end].rstrip(' ,.')}…"


def paragraph(text: object) -> Markup:
    """Return a text as an HTML paragraph, without the angle brackets around a repr."""
    inside = text if isinstance(text, Markup) else str(text)
    if inside.startswith("<") and inside.endswith(">") and not isinstance(text, Markup):
        inside = inside[1:-1]
    return Markup("<p style='margin:.2em 0'>{}</p>").format(inside)


def code_block(text: object) -> Markup:
    """Return a text as preformatted HTML in a monospaced font."""
    return Markup("<pre dir='auto' style='line-height:1.35;margin:.3em 0 0'>{}</pre>").format(text)


def table(
    title: object,
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    notes: Iterable[str] = (),
) -> Markup:
    """Return a table as HTML; see `Table`.

    Parameters
    ----------
    title
        Title above the table.
    heads
        Headings of the columns.
    rows
        Cells of each row.
    notes
        Texts below the table.

    Returns
    -------
    Markup
        The HTML.

    Examples
    --------
    >>> table("A title.", ["x"], [["<"]])[-49:]
    "' dir='auto'>&lt;</td></tr></tbody></table></div>"
    """
    return _table_html(Table(title, heads, rows, notes))


def _table_html(content: Table) -> Markup:
    """Return the HTML of a table; a table of more than ``_TALL`` rows scrolls."""
    escaped = [list(map(_escaped, row)) for row in content.rows]
    numeric = [all(map(_NUMBER.fullmatch, column)) for column in zip(*escaped, strict=True)]
    sides = ["right" if is_numeric else "left;white-space:normal" for is_numeric in numeric]

    def line(tag: str, cells: Sequence[str]) -> str:
        inside = (
            f"<{tag} style='padding:.1em .5em;vertical-align:top;text-align:{side}' dir='auto'>{cell}</{tag}>"
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(inside)}</tr>"

    head = line("th", [html.escape(name) for name in content.heads]) if escaped else ""
    body = "".join(line("td", row) for row in escaped)
    whole = (
        f"<table style='margin:0'><thead>{head}</thead><tbody>{body}</tbody></table>"
        if escaped
        else ""
    )
    below = "".join(
        f"<p style='opacity:.7;margin:.2em 0'>{_escaped(note)}</p>" for note in content.notes
    )
    frame = "overflow:auto" + (f";max-height:{_HIGHEST}" if len(escaped) > _TALL else "")
    return Markup(
        f"<div style='{frame}'>{paragraph(content.title) if content.title else ''}{whole}{below}</div>"
    )


def details(summary: object, inside: object, *, opened: bool = False) -> Markup:
    """Return a collapsible HTML section that works without a script."""
    start = "<details open>" if opened else "<details>"
    return Markup(
        f"{start}<summary dir='auto'>{_escaped(summary)}</summary>{render_html(inside)}</details>"
    )


def box(inside: object) -> Markup:
    """Return HTML parts in a box that scrolls if it is taller than the screen."""
    return Markup(f"<div style='overflow:auto;max-height:{_HIGHEST}'>{render_html(inside)}</div>")


def text_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: Collection[int] = (0,),
    width: int | None = None,
    optional: Iterable[int] = (),
) -> list[str]:
    """Return the lines of a table for a terminal.

    Parameters
    ----------
    heads
        Headings of the columns.
    rows
        Cells of each row.
    left
        Numbers of the columns that are aligned to the left.
    width
        Maximum number of characters per line. A wider table loses columns, then long cells of `left` are clipped.
    optional
        Numbers of the columns that may be omitted, in this order.

    Returns
    -------
    list of str
        One line for the headings and one for each row.

    Examples
    --------
    >>> text_table(["pack", "value"], [["companion", ".5"]])
    ['pack       value', 'companion     .5']
    >>> text_table(["pack", "value"], [["companion", ".5"]], width=12, optional=[1])
    ['pack', 'companion']
    """
    columns = list(zip(heads, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    visible = list(range(len(heads)))

    def excess() -> int:
        return 0 if width is None else sum(widths[at] + 2 for at in visible) - 2 - width

    # Whole columns are omitted first, because clipped cells are harder to read than fewer columns.
    for at in optional:
        if excess() > 0:
            visible.remove(at)
    while excess() > 0:
        at = max((at for at in visible if at in left), key=lambda at: widths[at])
        if widths[at] <= _NARROW:
            break
        widths[at] = max(_NARROW, widths[at] - excess())

    def align(at: int, cell: str) -> str:
        return clip(cell, widths[at]).ljust(widths[at]) if at in left else cell.rjust(widths[at])

    lines = zip(*(columns[at] for at in visible), strict=True)
    return ["  ".join(map(align, visible, line)).rstrip() for line in lines]


def wrap(text: str, width: int | None) -> list[str]:
    """Return a paragraph as lines of limited width, with later lines indented.

    Parameters
    ----------
    text
        The paragraph to wrap.
    width
        Maximum number of characters per line; None keeps the text on one line.

    Returns
    -------
    list of str
        The lines of the paragraph.

    Examples
    --------
    >>> wrap("one two three", 8)
    ['one two', '  three']
    """
    return [text] if width is None else textwrap.wrap(text, width, subsequent_indent="  ")


def bar(value: float | None, top: float, *, signed: bool = True) -> Markup:
    """Return a bar whose length is the share of `value` in `top`.

    Parameters
    ----------
    value
        Value to draw; None draws nothing.
    top
        Value of a full bar.
    signed
        True to draw negative values to the left of a middle line. False to draw only positive values.

    Returns
    -------
    Markup
        The HTML.
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
    """Return a table cell as HTML: `Markup` unchanged, None as an empty text, any other value escaped."""
    return cell if isinstance(cell, Markup) else html.escape("" if cell is None else str(cell))
