"""The figure of a memory's structure: its communities and what joins them, and the layers of its weeks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.drawing import BLUE, GREY, ORANGE, panelled
from memlab.subjects.structure._layers import LAYERS
from memlab.subjects.structure._packing import packed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["figure", "height", "width"]

Floats = NDArray[np.float64]

width, height = 9.6, 4.0
"""Inches."""

_MOST_BUBBLES = 24
_MOST_LINES = 24
_MOST_BARS = 60
_ROOM = (4.3, 2.85)
"""Inches that the bubbles have."""

_PAD = 22
"""Points between a title and its axes, where a line of small print stands."""

_POINT = 1 / 72
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
    """Communities as bubbles, bridges as lines; clusters where nothing is joined, kinds where nothing is alike."""
    what = "memories"
    communities, found, kinds = (frames[name] for name in ("communities", "clusters", "kinds"))
    if communities.height:
        title, sizes = "Communities", communities["size"]
        what = "memories" if communities["memories"].sum() == sizes.sum() else "nodes"
        names = [words[:2] for words in communities["words"].to_list()]
        links = _links(frames["bridges"], min(len(sizes), _MOST_BUBBLES))
    elif found.height:
        title, sizes = "Clusters", found["size"]
        names = [words[:2] for words in found["words"].to_list()]
        links = np.zeros((_MOST_BUBBLES, _MOST_BUBBLES))
    else:
        title, sizes = "Kinds", kinds["memories"]
        names = [[kind] for kind in kinds["kind"].to_list()]
        links = np.zeros((_MOST_BUBBLES, _MOST_BUBBLES))
    axes.set_title(title, pad=_PAD)
    axes.axis("off")
    if not len(sizes):
        axes.text(0.5, 0.5, "nothing is remembered yet", transform=axes.transAxes, ha="center", color=GREY)
        return
    _bubbles(axes, sizes.to_numpy()[:_MOST_BUBBLES].astype(np.float64), names[:_MOST_BUBBLES], links)
    small: dict[str, Any] = {"fontsize": 8.5, "color": GREY, "va": "bottom"}
    axes.annotate(
        _caption(what, sizes, links),
        (0, 1),
        xytext=(0, 8),
        xycoords="axes fraction",
        textcoords="offset points",
        **small,
    )


def _bubbles(axes: Axes, sizes: Floats, names: Sequence[Sequence[str]], links: Floats) -> None:
    from matplotlib.patches import Circle

    radii = np.sqrt(sizes / sizes[0])
    centres = packed(radii, links, gap=0.22)
    low, high = (centres - radii[:, None]).min(axis=0), (centres + radii[:, None]).max(axis=0)
    inches = min(_ROOM / (high - low))
    joined = np.argwhere(np.triu(links[: len(sizes), : len(sizes)]) > 0)
    weight = links[joined[:, 0], joined[:, 1]]
    for place in np.argsort(-weight, kind="stable")[:_MOST_LINES]:
        (one, other), share = joined[place], weight[place] / weight.max()
        style: dict[str, Any] = {"linewidth": 0.6 + 4.4 * share, "alpha": 0.35 + 0.55 * share}
        axes.plot(*_shortened(centres, radii, one, other), color=GREY, solid_capstyle="butt", zorder=1, **style)
    for centre, radius, size, name in zip(centres, radii, sizes, names, strict=True):
        axes.add_patch(Circle(centre, radius, facecolor=BLUE, alpha=0.28, linewidth=0, zorder=2))
        axes.add_patch(Circle(centre, radius, facecolor="none", edgecolor=BLUE, linewidth=1.4, zorder=3))
        lines = _fitting(name, int(size), radius * inches)
        if lines:
            parts = axes.text(
                float(centre[0]),
                float(centre[1]),
                lines,
                ha="center",
                va="center",
                fontsize=8.5,
                linespacing=1.25,
                zorder=4,
            )
            parts.set_parse_math(False)
    axes.set_aspect("equal")
    axes.set_xlim(low[0] - 0.05, high[0] + 0.05)
    axes.set_ylim(low[1] - 0.05, high[1] + 0.05)


def _shortened(centres: Floats, radii: Floats, one: int, other: int) -> Floats:
    """f64[2, points]: the line between two centres where it lies behind no circle, NaN elsewhere."""
    along = np.linspace(0.0, 1.0, 400)[:, None]
    points = centres[one] * (1 - along) + centres[other] * along
    inside = np.linalg.norm(points[:, None, :] - centres, axis=2) < radii
    points[inside.any(axis=1)] = np.nan
    return np.asarray(points.T)


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


def _fitting(words: Sequence[str], size: int, radius: float) -> str:
    """What can be read inside a circle of so many inches: the words and the size, a word, the size, or nothing."""
    letter, line = 5.4 * _POINT, 10.6 * _POINT
    count = _brief(size)
    for shown in ([*words, count], *([word, count] for word in words), [count]):
        wide, tall = max(map(len, shown)) * letter / 2, len(shown) * line / 2
        if np.hypot(wide, tall - 0.3 * line) <= radius:
            return "\n".join(shown)
    return ""


def _caption(what: str, sizes: pl.Series, links: Floats) -> str:
    """What the picture leaves out, and what its signs mean."""
    parts = [f"with the number of {what}"]
    if links.any():
        parts.append("joined by edges")
    if len(sizes) > _MOST_BUBBLES:
        rest = sizes[_MOST_BUBBLES:]
        parts.append(f"{len(rest):,} smaller ones left out ({int(rest.sum()):,} {what})")
    return "; ".join(parts)


def _links(between: pl.DataFrame, count: int) -> Floats:
    """f64[n, n]: how much weight joins each two of the communities shown."""
    links = np.zeros((count, count))
    shown = between.filter((pl.col("left") < count) & (pl.col("right") < count))
    left, right = shown["left"].to_numpy(), shown["right"].to_numpy()
    links[left, right] = links[right, left] = shown["weight"].to_numpy()
    return links


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
