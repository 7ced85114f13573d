"""Tables and bars of the results that a notebook shows."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

__all__ = ["Markup", "bar", "table"]

BLUE, RED = "#4c78a8", "#e45756"


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def table(
    title: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Iterable[int] = (0,),
    notes: Iterable[str] = (),
) -> str:
    """A table under its title and above its notes; the columns ``left`` are aligned to the left, others to the right.

    >>> table("A title.", ["x"], [["<"]])[:60]
    "<div><p>A title.</p><table><thead><tr><th style='text-align:"
    """
    ends = [("left;white-space:normal" if i in set(left) else "right") for i in range(len(heads))]

    def line(tag: str, cells: Sequence[str]) -> str:
        inside = "".join(
            f"<{tag} style='text-align:{end}'>{_escaped(cell)}</{tag}>" for end, cell in zip(ends, cells, strict=True)
        )
        return f"<tr>{inside}</tr>"

    body = "".join(line("td", row) for row in rows)
    whole = f"<table><thead>{line('th', heads)}</thead><tbody>{body}</tbody></table>" if body else ""
    below = "".join(f"<p style='opacity:.7'>{_escaped(note)}</p>" for note in notes)
    return f"<div><p>{_escaped(title)}</p>{whole}{below}</div>"


def bar(value: float | None, top: float) -> Markup:
    """A bar as long as the share of ``value`` in ``top``: to the right when positive, to the left when negative."""
    if not value or not top:
        return Markup()
    share = min(100.0, 100 * abs(value) / top) if math.isfinite(value) else 100.0
    side = "margin-left:auto;" if value < 0 else ""
    drawn = f"<div style='{side}height:.8em;width:{share:.1f}%;background:{BLUE if value > 0 else RED}'></div>"
    halves = (drawn, "") if value < 0 else ("", drawn)
    edge = "border-right:1px solid rgba(128,128,128,.6)"
    inside = "".join(
        f"<div style='width:5em;{style}'>{half}</div>" for style, half in zip((edge, ""), halves, strict=True)
    )
    return Markup(f"<div style='display:flex'>{inside}</div>")


def _escaped(text: str) -> str:
    return text if isinstance(text, Markup) else html.escape(text)
