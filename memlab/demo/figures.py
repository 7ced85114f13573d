"""The figures of the page, as SVG that takes its ink from the page: readable on a light ground and on a dark one.

Text stays text, in the page's own typeface. The same numbers give the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from memlab.evaluation import BenchResult
    from memlab.recall import Hit, Hits

__all__ = ["STYLE", "draw_bench", "draw_moves", "draw_timeline", "svg"]

INK = "#010203"
GREY = "#8a8f98"
BLUE = "#3b7dd8"
ORANGE = "#e07b39"
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 10.0,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
}


def svg(draw: Callable[[Axes], None], *, name: str, width: float, height: float) -> str:
    """What ``draw`` puts on one pair of axes (inches), as an element to stand in HTML."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.add_subplot())
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = text.replace(INK, "currentColor").replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    text = text.replace(' xmlns="http://www.w3.org/2000/svg"', "").replace("xlink:href", "href")
    text = re.sub(r"(font: (?:\w+ )*[\d.]+px) [^;\"]+", r"\1 var(--face)", text)
    # ids are unique in the page, not only in the figure
    text = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{name}-", text)
    return re.sub(r'<svg height="[^"]+" ', "<svg ", re.sub(r' (?:width|height)="[\d.]+pt"', "", text, count=2), count=1)


def draw_timeline(hits: Hits, when: dict[int, datetime], marked: Sequence[Hit]) -> Callable[[Axes], None]:
    """Every candidate of a recall by when it was said and by its score; what was shown is filled."""
    pool = [(when[int(memory)], float(score)) for memory, score in zip(hits.slate.ids, hits.slate.scores, strict=True)]
    shown = [(when[hit.id], hit.score) for hit in hits]

    def draw(axes: Axes) -> None:
        import matplotlib.dates

        dates: Any = matplotlib.dates  # which has no types

        axes.scatter(*_columns(pool), s=16, facecolors="none", edgecolors=GREY, linewidths=0.8, label="considered")
        axes.scatter(*_columns(shown), s=30, color=BLUE, label="shown")
        for hit in marked:
            at: Any = when[hit.id]
            axes.scatter([at], [hit.score], s=120, facecolors="none", edgecolors=ORANGE, linewidths=1.8)
            axes.annotate(
                f"{at.day} {at:%B}, rank {hit.rank}",
                (at, hit.score),
                xytext=(11, 0),
                textcoords="offset points",
                va="center",
            )
        axes.xaxis.set_major_locator(dates.MonthLocator())
        axes.xaxis.set_major_formatter(dates.DateFormatter("1 %B"))
        axes.set_ylabel("score")
        axes.margins(y=0.1)
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderpad=0, handletextpad=0.3)

    return draw


def draw_moves(before: Hits, after: Hits, *, most: int = 8) -> Callable[[Axes], None]:
    """The ranks of the hits under two policies, joined by lines; what left or came is joined to the foot."""
    old = {hit.id: hit for hit in before[:most]}
    new = {hit.id: hit for hit in after[:most]}
    foot = most + 1.1

    def draw(axes: Axes) -> None:
        for memory in sorted(old.keys() | new.keys()):
            left, right = old.get(memory), new.get(memory)
            start, stop = left.rank if left else foot, right.rank if right else foot
            if left and right:
                colour = ORANGE if start > stop else GREY if start == stop else BLUE
                axes.plot([0, 1], [start, stop], color=colour, linewidth=2.2, solid_capstyle="round", zorder=2)
            else:
                axes.plot([0, 1], [start, stop], color=GREY, linewidth=0.8, alpha=0.5, zorder=1)
            if left:
                axes.text(-0.05, start, f"{_clip(left.text, 42)}   {left.rank}", ha="right", va="center")
            if right:
                axes.text(1.05, stop, f"{right.rank}   {_clip(right.text, 42)}", ha="left", va="center")
        for x, side, word in ((-0.05, "right", "before"), (1.05, "left", "after")):
            axes.text(x, 0.1, word, ha=side, va="center", color=GREY)
            axes.text(x, foot, "not shown", ha=side, va="center", color=GREY)
        axes.set_xlim(-2.5, 3.5)
        axes.set_ylim(foot + 0.4, -0.3)
        axes.axis("off")

    return draw


def draw_bench(bench: BenchResult) -> Callable[[Axes], None]:
    """One line a system: recall@10 and nDCG@10, the better the further right."""
    systems = list(reversed(bench.systems))

    def draw(axes: Axes) -> None:
        rows = range(len(systems))
        recall = [system.metrics["recall@10"] for system in systems]
        ndcg = [system.metrics["ndcg@10"] for system in systems]
        axes.hlines(rows, ndcg, recall, color=GREY, linewidth=1.2)
        axes.scatter(ndcg, rows, s=46, facecolors="none", edgecolors=ORANGE, linewidths=1.8, label="nDCG@10", zorder=3)
        axes.scatter(recall, rows, s=50, color=BLUE, label="recall@10", zorder=3)
        axes.set_yticks(rows, [system.name for system in systems])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        axes.set_xlim(min([*ndcg, *recall]) - 0.05, 1.0)
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderpad=0, handletextpad=0.3)

    return draw


def _columns(points: Sequence[tuple[datetime, float]]) -> tuple[Any, list[float]]:
    return [at for at, _ in points], [score for _, score in points]


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip(' ,.')}…"
