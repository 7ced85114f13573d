"""The statistics of a memory as text and as HTML. Everything that came from text is escaped."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from memlab.kernel.base.display import Markup, clip, table
from memlab.kernel.base.drawing import element

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["as_parts", "as_text"]

_SHOWN = 8
_WORDS = {"", "kind", "words", "text"}
"""The heads of columns that hold words, and so begin on the left."""

_FACE = "--face:var(--jp-content-font-family,system-ui,sans-serif)"

Cells = list[list[str]]
Frames = Mapping[str, pl.DataFrame]


def headline(frames: Frames) -> str:
    """The size of it in one sentence."""
    total = dict(frames["totals"].iter_rows())
    in_use = "all in use" if total["in use"] == total["memories"] else f"{total['in use']:,.0f} in use"
    return (
        f"{total['memories']:,.0f} memories, {in_use}, {total['used']:,.0f} ever recalled; "
        f"{total['edges']:,.0f} edges, {total['communities']:,.0f} communities, {total['clusters']:,.0f} clusters"
    )


def _graph(frames: Frames) -> str:
    total = dict(frames["totals"].iter_rows())
    if not total["edges"]:
        return "nothing is joined by an edge yet"
    return (
        f"density {total['density']:.2g}, clustering {total['clustering']:.2g}, modularity {total['modularity']:.2f}; "
        f"{total['joined']:,.0f} nodes joined; components: {total['components']:,.0f}, "
        f"the largest of {total['largest component']:,.0f}"
    )


def tables(frames: Frames) -> list[tuple[str, list[str], Cells]]:
    """What is shown of the frames: a title, the head and the rows of each."""
    found: list[tuple[str, list[str], Cells]] = []
    kinds = frames["layers_by_kind"].pivot("layer", index="kind", values="memories") if len(frames["kinds"]) else None
    if kinds is not None:
        layers = [name for name in kinds.columns if name != "kind"]
        rows = [["all", *(f"{count:,}" for count in frames["layers"]["memories"])]]
        rows += [[str(row[0]), *(f"{count:,}" for count in row[1:])] for row in kinds.head(_SHOWN).iter_rows()]
        found.append(("layers", ["kind", *layers], rows))
    if frames["communities"].height:
        found.append(
            ("communities", ["", "size", "density", "clustering", "bridges", "central", "words"], _communities(frames))
        )
    if frames["clusters"].height:
        rows = [
            [
                str(row["cluster"]),
                f"{row['size']:,}",
                f"{row['share']:.0%}",
                _ids(row["central"]),
                ", ".join(row["words"]),
            ]
            for row in frames["clusters"].head(_SHOWN).iter_rows(named=True)
        ]
        found.append(("clusters", ["", "size", "share", "central", "words"], rows))
    if frames["key"].height:
        rows = [
            [
                f"#{row['memory_id']}",
                f"{row['key']:.2f}",
                f"{row['importance']:.2f}",
                f"{row['access']:,.0f}",
                f"{row['degree']:,}",
                clip(row["text"]),
            ]
            for row in frames["key"].head(_SHOWN).iter_rows(named=True)
        ]
        found.append(("key memories", ["", "key", "importance", "recalls", "edges", "text"], rows))
    return found


def _communities(frames: Frames) -> Cells:
    return [
        [
            str(row["community"]),
            f"{row['size']:,}",
            f"{row['density']:.2g}",
            "" if row["clustering"] is None else f"{row['clustering']:.2g}",
            f"{row['bridges']:,}",
            _ids(row["central"]),
            ", ".join(row["words"]),
        ]
        for row in frames["communities"].head(_SHOWN).iter_rows(named=True)
    ]


def as_text(frames: Frames, notes: Sequence[str]) -> str:
    """The frames of ``Stats`` as tables of plain text."""
    lines = [headline(frames), _graph(frames)]
    for title, head, rows in tables(frames):
        lines += ["", f"{title}{_more(frames, title)}", *_aligned(head, rows)]
    return "\n".join([*lines, "", *notes])


def as_parts(frames: Frames, notes: Sequence[str], figure: Figure) -> list[object]:
    """Return what a notebook shows: the finding, the figure and the tables."""
    parts: list[object] = [[headline(frames), _graph(frames)]]
    with warnings.catch_warnings():
        # a page has glyphs that matplotlib's own face lacks
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        parts.append(Markup(f"<div style='max-width:62em;{_FACE}'>{element(figure, name='stats')}</div>"))
    for title, head, rows in tables(frames):
        parts.append(table(f"{title}{_more(frames, title)}", head, rows))
    return [*parts, list(notes)]


def _more(frames: Frames, title: str) -> str:
    """How many rows of a frame are not shown."""
    frame: pl.DataFrame | None = frames.get(title)
    count = 0 if frame is None or title == "layers" else frame.height - _SHOWN
    return f", the {_SHOWN} largest of {count + _SHOWN:,}" if count > 0 else ""


def _aligned(head: Sequence[str], rows: Cells) -> list[str]:
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if name in _WORDS else cell.rjust(width)
            for name, cell, width in zip(head, row, widths, strict=True)
        ).rstrip()
        for row in (head, *rows)
    ]


def _ids(ids: Sequence[int]) -> str:
    return " ".join(f"#{one}" for one in ids)
