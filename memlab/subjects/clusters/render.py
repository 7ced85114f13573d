"""The statistics of a memory graph as text, HTML and a figure. Texts of memories are escaped."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import Floats
from memlab.kernel.base.display import Markup, Table, clip, format_rows, render_text
from memlab.subjects.clusters.topology import LAYERS
from memlab.subjects.drawing import BLUE, GREY, ORANGE, draw_panels, render_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The maximum number of rows per table, so that a report fits on a screen, and the font of a notebook.
_SHOWN = 8
_FACE = "--face:var(--jp-content-font-family,system-ui,sans-serif)"

Columns = tuple[tuple[str, str | Callable[[Mapping[str, Any]], object]], ...]
Frames = Mapping[str, pl.DataFrame]


def write_headline(frames: Frames) -> str:
    """Return a sentence with the numbers of memories, edges, communities and clusters."""
    total = dict(frames["totals"].iter_rows())
    in_use = (
        "all in use" if total["in use"] == total["memories"] else f"{total['in use']:,.0f} in use"
    )
    return (
        f"{total['memories']:,.0f} memories, {in_use}, {total['used']:,.0f} ever recalled; "
        f"{total['edges']:,.0f} edges, {total['communities']:,.0f} communities, {total['clusters']:,.0f} clusters"
    )


def _describe_graph(frames: Frames) -> str:
    """Return one sentence about the density, clustering and components of the graph."""
    total = dict(frames["totals"].iter_rows())
    if not total["edges"]:
        return "no memories are linked yet"
    return (
        f"density {total['density']:.2g}, clustering {total['clustering']:.2g}, modularity {total['modularity']:.2f}; "
        f"{total['joined']:,.0f} linked nodes; components: {total['components']:,.0f}, "
        f"the largest of {total['largest component']:,.0f}"
    )


def _join_words(row: Mapping[str, Any]) -> str:
    """Return the keywords of a row, separated by commas."""
    return ", ".join(row["words"])


def _join_ids(row: Mapping[str, Any]) -> str:
    """Return the ids of the central memories of a row, such as "#3 #7"."""
    return " ".join(f"#{id}" for id in row["central"])


# Columns that occur in several tables.
_SIZE, _CENTRAL, _ABOUT = ("size", "{size:,}"), ("central", _join_ids), ("words", _join_words)
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
"""The title and the columns of each displayed frame, in the form that ``format_rows`` expects."""


def build_tables(frames: Frames) -> list[Table]:
    """Return the tables of a report, each with the first rows of a frame."""
    result = []
    if len(frames["kinds"]):
        kinds = frames["layers_by_kind"].pivot("layer", index="kind", values="memories")
        rows = [("all", *frames["layers"]["memories"]), *kinds.head(_SHOWN).iter_rows()]
        result.append(
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
            result.append(Table(f"{title}{more}", heads, cells, left=(0, len(heads) - 1)))
    return result


def render_text_report(frames: Frames, notes: Sequence[str]) -> str:
    """Return the frames of ``Stats`` as plain text: headline, tables and notes."""
    return render_text(
        [[write_headline(frames), _describe_graph(frames)], *build_tables(frames), list(notes)]
    )


def build_parts(frames: Frames, notes: Sequence[str], figure: Figure) -> list[object]:
    """Return the parts that a notebook shows: headline, figure, tables and notes."""
    with warnings.catch_warnings():
        # The font of the page has glyphs that matplotlib's default font lacks.
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from font", category=UserWarning
        )
        picture = Markup(
            f"<div style='max-width:62em;{_FACE}'>{render_svg(figure, name='stats')}</div>"
        )
    return [
        [write_headline(frames), _describe_graph(frames)],
        picture,
        *build_tables(frames),
        list(notes),
    ]


# The figure shows the sizes of the communities, and the layers of memories by week.


width, height = 9.6, 4.0
"""The size of the figure in inches."""

_MOST_GROUPS = 12
"""Maximum number of bars that are legible in the height of the figure."""

_MOST_BARS = 60
"""Maximum number of bars that are distinguishable in the width of a panel."""

_PAD = 22
"""Points between a title and its axes, which leave room for a caption."""

# Colours that colour-blind readers can distinguish. Hatching marks new memories in print without colour.
_COLOURS = dict(zip(LAYERS, (BLUE, "#009e73", ORANGE, GREY), strict=True))
_HATCHES = {"emerging": "////"}
_STACKED = ("stable", "active", "emerging", "decaying")
"""The order of layers in a bar from bottom to top: lasting memories below, decaying memories on top."""


def draw_figure(frames: Mapping[str, pl.DataFrame], axes: Sequence[Axes] | None = None) -> Figure:
    """Draw the two panels from the frames of ``Stats``; see ``Stats.figure``."""

    def draw(panels: Sequence[Axes]) -> None:
        """Draw the groups on the first panel and the layers on the second."""
        _draw_groups(panels[0], frames)
        _draw_layers(panels[1], frames)

    return draw_panels(
        draw, 2, shape=(1, 2), width=width, height=height, axes=axes, width_ratios=(1.15, 1)
    )


def _draw_groups(axes: Axes, frames: Mapping[str, pl.DataFrame]) -> None:
    """Draw the largest communities as bars; without communities, draw clusters or kinds."""
    title, unit, groups = _choose_groups(frames)
    axes.set_title(title, pad=_PAD)
    if groups.is_empty():
        axes.axis("off")
        axes.text(0.5, 0.5, "no memories yet", transform=axes.transAxes, ha="center", color=GREY)
        return
    largest = groups.head(_MOST_GROUPS)
    bars = axes.barh(range(largest.height), largest["size"].to_numpy(), color=BLUE)
    axes.bar_label(
        bars, [_shorten_count(size) for size in largest["size"].to_list()], padding=3, fontsize=8.5
    )
    axes.set_yticks(
        range(largest.height),
        [" ".join(words) for words in largest["words"].to_list()],
        parse_math=False,
    )
    axes.invert_yaxis()
    axes.xaxis.set_visible(False)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    small: dict[str, Any] = {"fontsize": 8.5, "color": GREY, "va": "bottom"}
    axes.annotate(
        _write_caption(unit, groups["size"]),
        (0, 1),
        xytext=(0, 8),
        xycoords="axes fraction",
        textcoords="offset points",
        **small,
    )


def _choose_groups(frames: Mapping[str, pl.DataFrame]) -> tuple[str, str, pl.DataFrame]:
    """Return a title, a unit, and the size and two keywords of each community, or else cluster, or else kind."""
    communities, clusters, kinds = (frames[name] for name in ("communities", "clusters", "kinds"))
    words = pl.col("words").list.head(2)
    if communities.height:
        unit = "memories" if communities["memories"].sum() == communities["size"].sum() else "nodes"
        return "Communities", unit, communities.select("size", words)
    if clusters.height:
        return "Clusters", "memories", clusters.select("size", words)
    return "Kinds", "memories", kinds.select(size="memories", words=pl.concat_list("kind"))


def _shorten_count(count: int) -> str:
    """Return a count in thousands or millions with two or more digits, such as 94k; below 1,000 in full.

    >>> [_shorten_count(count) for count in (999, 2_345, 93_814, 2_345_678)]
    ['999', '2.3k', '94k', '2.3M']
    """
    if count < 1_000:
        return str(count)
    if count < 999_500:
        return f"{count / 1e3:.1f}k" if count < 9_950 else f"{count / 1e3:.0f}k"
    return f"{count / 1e6:.1f}M"


def _write_caption(unit: str, sizes: pl.Series) -> str:
    """Return a caption with the unit of the bars and the number of omitted groups."""
    rest = sizes[_MOST_GROUPS:]
    left_out = (
        f"; {len(rest):,} smaller ones left out ({int(rest.sum()):,} {unit})" if len(rest) else ""
    )
    return f"number of {unit}{left_out}"


def _draw_layers(axes: Axes, frames: Mapping[str, pl.DataFrame]) -> None:
    """Draw the memories created per week as bars stacked by layer."""
    from matplotlib.dates import AutoDateFormatter, AutoDateLocator
    from matplotlib.ticker import MaxNLocator

    axes.set_title("Layers", pad=_PAD)
    overall = dict(frames["layers"].select("layer", "memories").iter_rows())
    days, counts, span = _layout_bars(frames["layers_by_week"])
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
            label=f"{name} {_shorten_count(overall[name])}",
        )
        base += counts[name]
    margin = max(0.0, 56 * span - (days[-1] - days[0])) / 2  # keeps a single bar narrow
    axes.set_xlim(days[0] - margin - 1.4 * span, days[-1] + margin + 7 * span)
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
    legend.set_in_layout(False)  # otherwise the axes would shrink to make room


def _layout_bars(by_week: pl.DataFrame) -> tuple[Floats, dict[str, Floats], int]:
    """Return each bar's first day, in days since 1970-01-01, the bar heights by layer, and the weeks per bar."""
    if by_week.is_empty():
        return np.empty(0), {}, 1
    table = by_week.pivot("layer", index="week", values="memories").sort("week")
    day = table["week"].cast(pl.Date).cast(pl.Int32).to_numpy().astype(np.int64)
    number = (day - day[0]) // 7
    span = int(number[-1]) // _MOST_BARS + 1
    position = number // span
    count = int(position[-1]) + 1
    heights = {
        name: np.bincount(position, weights=table[name].to_numpy(), minlength=count).astype(
            np.float64
        )
        for name in LAYERS
    }
    return (day[0] + 7.0 * span * np.arange(count)), heights, span
