"""How results are shown: tables, bars and clipped lines, for a notebook and a terminal."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

from memlab.printable import printable

__all__ = ["Declared", "Markup", "bar", "clip", "paragraph", "table"]

BLUE, RED = "#4c78a8", "#e45756"
_NUMBER = re.compile(r"[-+]?[\d.,]+%?|")
_INKED = "print-color-adjust:exact;-webkit-print-color-adjust:exact"
"""Browsers print no backgrounds unless told to."""

_TALL = 30
"""Rows above which a table scrolls."""

T = TypeVar("T")


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
    told = text if isinstance(text, Markup) else html.escape(str(text).removeprefix("<").removesuffix(">"))
    return f"<p style='margin:.2em 0'>{told}</p>"


def table(title: object, heads: Sequence[str], rows: Iterable[Sequence[object]], *, notes: Iterable[str] = ()) -> str:
    """A table under its title and above its notes. Columns of numbers are aligned to the right, others to the left.

    >>> table("A title.", ["x"], [["<"]])[-49:]
    "' dir='auto'>&lt;</td></tr></tbody></table></div>"
    """
    told = [[_escaped(cell) for cell in row] for row in rows]
    sides = [
        "right" if all(_NUMBER.fullmatch(cell) for cell in column) else "left;white-space:normal"
        for column in zip(*told, strict=True)
    ]

    def line(tag: str, cells: Sequence[str]) -> str:
        inside = (
            f"<{tag} style='padding:.1em .5em;vertical-align:top;text-align:{side}' dir='auto'>{cell}</{tag}>"
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(inside)}</tr>"

    head = line("th", [html.escape(name) for name in heads]) if told else ""
    body = "".join(line("td", row) for row in told)
    whole = f"<table style='margin:0'><thead>{head}</thead><tbody>{body}</tbody></table>" if told else ""
    below = "".join(f"<p style='opacity:.7;margin:.2em 0'>{_escaped(note)}</p>" for note in notes)
    frame = "overflow:auto" + (";max-height:32em" if len(told) > _TALL else "")
    return f"<div style='{frame}'>{paragraph(title)}{whole}{below}</div>"


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


class Declared(dict[str, T]):
    """What memlab declares, by name: shown as a list of names, each with what its field ``about`` says."""

    def __init__(self, declared: Iterable[T], about: str) -> None:
        super().__init__((one.name, one) for one in declared)  # type: ignore[attr-defined]
        self._about = about

    def _said(self) -> list[tuple[str, str]]:
        return [(name, clip(getattr(one, self._about), 160)) for name, one in self.items()]

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return printable("\n".join(f"{name:<{width}}  {clip(said, 100)}" for name, said in self._said()))

    def _repr_html_(self) -> str:
        return table(f"{len(self)} declared", ("name", self._about), self._said())


def _escaped(cell: object) -> str:
    return cell if isinstance(cell, Markup) else html.escape("" if cell is None else str(cell))
