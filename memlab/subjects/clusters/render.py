"""The statistics of a memory as text and as HTML. Everything that came from text is escaped."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.display import Markup, Table, clip, format_rows, render_text
from memlab.subjects.clusters.topology import LAYERS
from memlab.subjects.drawing import BLUE, GREY, ORANGE, draw_panels, render_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["as_parts", "as_text", "figure", "height", "width"]


_SHOWN = 8
_FACE = "--face:var(--jp-content-font-family,system-ui,sans-serif)"

Columns = tuple[tuple[str, str | Callable[[Mapping[str, Any]], object]], ...]
Frames = Mapping[str, pl.DataFrame]


def headline(frames: Frames) -> str:
    """The size of it in one sentence."""
    total = dict(frames["totals"].iter_rows())
    in_use = (
        "all in use" if total["in use"] == total["memories"] else f"{total['in use']:,.0f} in use"
    )
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


def _words_of(row: Mapping[str, Any]) -> str:
    return ", ".join(row["words"])


def _central_of(row: Mapping[str, Any]) -> str:
    return " ".join(f"#{id}" for id in row["central"])


_SIZE, _CENTRAL, _ABOUT = ("size", "{size:,}"), ("central", _central_of), ("words", _words_of)
_COLUMNS: dict[str, tuple[str, Columns]] = {
    "communities": (
        "communities",
        (
            ("", "{community}"),
            _SIZE,
            ("density", "{density:.2g}"),
            ("clustering", "{clustering:.2g}"),
            ("bridges", "{bridges:,}"),
            _CENTRAL,
            _ABOUT,
        ),
    ),
    "clusters": (
        "clusters",
        (("", "{cluster}"), _SIZE, ("share", "{share:.0%}"), _CENTRAL, _ABOUT),
    ),
    "key": (
        "key memories",
        (
            ("", "#{memory_id}"),
            ("key", "{key:.2f}"),
            ("importance", "{importance:.2f}"),
            ("recalls", "{access:,.0f}"),
            ("edges", "{degree:,}"),
            ("text", lambda row: clip(row["text"])),
        ),
    ),
}
"""Of each frame that is shown: the title, and the columns as ``format_rows`` takes them."""


def tables(frames: Frames) -> list[Table]:
    """Return what is shown of the frames, each as a table of its first rows."""
    shown = []
    if len(frames["kinds"]):
        kinds = frames["layers_by_kind"].pivot("layer", index="kind", values="memories")
        rows = [("all", *frames["layers"]["memories"]), *kinds.head(_SHOWN).iter_rows()]
        shown.append(
            Table(
                "layers",
                kinds.columns,
                [[row[0], *(f"{count:,}" for count in row[1:])] for row in rows],
            )
        )
    for name, (title, columns) in _COLUMNS.items():
        frame = frames[name]
        if frame.height:
            heads, cells = format_rows(frame.head(_SHOWN).iter_rows(named=True), columns)
            more = (
                f", the {_SHOWN} largest of {frame.height:,}"
                if frame.height > _SHOWN and name != "key"
                else ""
            )
            shown.append(Table(f"{title}{more}", heads, cells, left=(0, len(heads) - 1)))
    return shown


def as_text(frames: Frames, notes: Sequence[str]) -> str:
    """Return the frames of ``Stats`` as plain text: the finding, the tables and the notes."""
    return render_text([[headline(frames), _graph(frames)], *tables(frames), list(notes)])


def as_parts(frames: Frames, notes: Sequence[str], figure: Figure) -> list[object]:
    """Return what a notebook shows: the same, with the figure before the tables."""
    with warnings.catch_warnings():
        # a page has glyphs that matplotlib's own face lacks
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from font", category=UserWarning
        )
        picture = Markup(
            f"<div style='max-width:62em;{_FACE}'>{render_svg(figure, name='stats')}</div>"
        )
    return [[headline(frames), _graph(frames)], picture, *tables(frames), list(notes)]


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

    return draw_panels(
        draw, 2, shape=(1, 2), width=width, height=height, axes=axes, width_ratios=(1.15, 1)
    )


def _draw_groups(axes: Axes, frames: Mapping[str, pl.DataFrame]) -> None:
    """Draw the largest communities as bars; clusters where nothing is joined, kinds where no clusters are known."""
    title, unit, groups = _choose_groups(frames)
    axes.set_title(title, pad=_PAD)
    if groups.is_empty():
        axes.axis("off")
        axes.text(
            0.5, 0.5, "nothing is remembered yet", transform=axes.transAxes, ha="center", color=GREY
        )
        return
    shown = groups.head(_MOST_GROUPS)
    bars = axes.barh(range(shown.height), shown["size"].to_numpy(), color=BLUE)
    axes.bar_label(
        bars, [_brief(size) for size in shown["size"].to_list()], padding=3, fontsize=8.5
    )
    axes.set_yticks(
        range(shown.height),
        [" ".join(words) for words in shown["words"].to_list()],
        parse_math=False,
    )
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
    left_out = (
        f"; {len(rest):,} smaller ones left out ({int(rest.sum()):,} {unit})" if len(rest) else ""
    )
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
        name: np.bincount(place, weights=table[name].to_numpy(), minlength=count).astype(np.float64)
        for name in LAYERS
    }
    return (day[0] + 7.0 * span * np.arange(count)), heights, span
