"""The statistics of a memory as text and as HTML. Everything that came from text is escaped."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.display import Markup, clip, table
from memlab.kernel.base.drawing import BLUE, GREY, ORANGE, element, panelled
from memlab.subjects.clusters.stats import LAYERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["as_parts", "as_text", "figure", "height", "width"]


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


# The figure of a memory's structure: the sizes of its communities, and the layers of its weeks.


Floats = NDArray[np.float64]

width, height = 9.6, 4.0
"""Inches."""

_MOST_GROUPS = 12
"""Bars that can be read in the height of the figure."""

_MOST_BARS = 60

_PAD = 22
"""Points between a title and its axes, where a line of small print stands."""

_COLOURS = dict(zip(LAYERS, (BLUE, "#009e73", ORANGE, GREY), strict=True))
_HATCHES = {"emerging": "////"}
_STACKED = ("stable", "active", "emerging", "decaying")
"""From the ground up: what lasts below, what fades on top."""


def figure(frames: Mapping[str, pl.DataFrame], axes: Sequence[Axes] | None = None) -> Figure:
    """Draw both panels from the frames of ``Stats``; see ``Stats.figure``."""

    def draw(panels: Sequence[Axes]) -> None:
        _draw_groups(panels[0], frames)
        _draw_layers(panels[1], frames)

    return panelled(draw, 2, shape=(1, 2), width=width, height=height, axes=axes, width_ratios=(1.15, 1))


def _draw_groups(axes: Axes, frames: Mapping[str, pl.DataFrame]) -> None:
    """Draw the largest communities as bars; clusters where nothing is joined, kinds where no clusters are known."""
    title, unit, groups = _choose_groups(frames)
    axes.set_title(title, pad=_PAD)
    if groups.is_empty():
        axes.axis("off")
        axes.text(0.5, 0.5, "nothing is remembered yet", transform=axes.transAxes, ha="center", color=GREY)
        return
    shown = groups.head(_MOST_GROUPS)
    bars = axes.barh(range(shown.height), shown["size"].to_numpy(), color=BLUE)
    axes.bar_label(bars, [_brief(size) for size in shown["size"].to_list()], padding=3, fontsize=8.5)
    axes.set_yticks(range(shown.height), [" ".join(words) for words in shown["words"].to_list()], parse_math=False)
    axes.invert_yaxis()
    axes.xaxis.set_visible(False)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    small: dict[str, Any] = {"fontsize": 8.5, "color": GREY, "va": "bottom"}
    axes.annotate(
        _caption(unit, groups["size"]),
        (0, 1),
        xytext=(0, 8),
        xycoords="axes fraction",
        textcoords="offset points",
        **small,
    )


def _choose_groups(frames: Mapping[str, pl.DataFrame]) -> tuple[str, str, pl.DataFrame]:
    """The title, the unit, and for each group its size and its first words."""
    communities, clusters, kinds = (frames[name] for name in ("communities", "clusters", "kinds"))
    words = pl.col("words").list.head(2)
    if communities.height:
        unit = "memories" if communities["memories"].sum() == communities["size"].sum() else "nodes"
        return "Communities", unit, communities.select("size", words)
    if clusters.height:
        return "Clusters", "memories", clusters.select("size", words)
    return "Kinds", "memories", kinds.select(size="memories", words=pl.concat_list("kind"))


def _brief(count: int) -> str:
    """At most four characters.

    >>> [_brief(count) for count in (999, 2_345, 93_814, 2_345_678)]
    ['999', '2.3k', '94k', '2.3M']
    """
    if count < 1_000:
        return str(count)
    if count < 999_500:
        return f"{count / 1e3:.1f}k" if count < 9_950 else f"{count / 1e3:.0f}k"
    return f"{count / 1e6:.1f}M"


def _caption(unit: str, sizes: pl.Series) -> str:
    """The unit of the bars, and how many groups are left out."""
    rest = sizes[_MOST_GROUPS:]
    left_out = f"; {len(rest):,} smaller ones left out ({int(rest.sum()):,} {unit})" if len(rest) else ""
    return f"number of {unit}{left_out}"


def _draw_layers(axes: Axes, frames: Mapping[str, pl.DataFrame]) -> None:
    """One bar a week of creation (or some weeks), in which each layer has its share."""
    from matplotlib.dates import AutoDateFormatter, AutoDateLocator
    from matplotlib.ticker import MaxNLocator

    axes.set_title("Layers", pad=_PAD)
    overall = dict(frames["layers"].select("layer", "memories").iter_rows())
    days, counts, span = _bars(frames["layers_by_week"])
    if not len(days):
        axes.axis("off")
        return
    base = np.zeros(len(days))
    for name in _STACKED:
        axes.bar(
            days,
            counts[name],
            width=7 * span * 0.86,
            bottom=base,
            align="edge",
            color=_COLOURS[name],
            hatch=_HATCHES.get(name),
            edgecolor="white",
            linewidth=0,
            label=f"{name} {_brief(overall[name])}",
        )
        base += counts[name]
    room = max(0.0, 56 * span - (days[-1] - days[0])) / 2  # one bar alone is no wall
    axes.set_xlim(days[0] - room - 1.4 * span, days[-1] + room + 7 * span)
    locator: Any = AutoDateLocator(minticks=2, maxticks=5)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(AutoDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylabel("memories")
    axes.set_xlabel("week of their creation" if span == 1 else f"{span} weeks of their creation")
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    legend = axes.legend(
        frameon=False,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=4,
        borderpad=0.3,
        borderaxespad=0.3,
        fontsize=8.2,
        handlelength=0.9,
        handletextpad=0.35,
        columnspacing=0.7,
    )
    legend.set_in_layout(False)  # else the axes would give way to it


def _bars(by_week: pl.DataFrame) -> tuple[Floats, dict[str, Floats], int]:
    """The first day of each bar since 1970, the height of each layer in it, and how many weeks a bar spans."""
    if by_week.is_empty():
        return np.empty(0), {}, 1
    table = by_week.pivot("layer", index="week", values="memories").sort("week")
    day = table["week"].cast(pl.Date).cast(pl.Int32).to_numpy().astype(np.int64)
    number = (day - day[0]) // 7
    span = int(number[-1]) // _MOST_BARS + 1
    place = number // span
    count = int(place[-1]) + 1
    heights = {
        name: np.bincount(place, weights=table[name].to_numpy(), minlength=count).astype(np.float64) for name in LAYERS
    }
    return (day[0] + 7.0 * span * np.arange(count)), heights, span
