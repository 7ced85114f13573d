"""The figures of the page, as SVG that takes its ink from the page: readable on a light ground and on a dark one.

Text stays text, in the page's own typeface. The same numbers give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memlab.drawing import BLUE, CYCLE, GREY, ORANGE, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from memlab.bench import BenchResult
    from memlab.demo.quarter import Quarter
    from memlab.recall import Hit, Hits, ScoreExplanation

__all__ = [
    "draw_bench",
    "draw_fading",
    "draw_moves",
    "draw_terms",
    "draw_timeline",
    "draw_truth",
]


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


def draw_terms(explanations: Sequence[ScoreExplanation], texts: Sequence[str]) -> Callable[[Axes], None]:
    """One bar a hit, best first: the terms that its score is the sum of, as the policy's source writes them."""
    rows = [dict(one.terms) for one in explanations]
    size = {term: sum(abs(terms.get(term, 0.0)) for terms in rows) for terms in rows for term in terms}
    order = sorted((term for term in size if size[term] > 0), key=lambda term: -size[term])

    def draw(axes: Axes) -> None:
        ends = {1: [0.0] * len(rows), -1: [0.0] * len(rows)}
        for term, colour in zip(order, [*CYCLE, *[GREY] * len(order)], strict=False):
            for row, terms in enumerate(rows):
                value = terms.get(term, 0.0)
                if value:
                    side = 1 if value > 0 else -1
                    axes.barh(row, value, left=ends[side][row], height=0.62, color=colour, linewidth=0)
                    ends[side][row] += value
            axes.barh([0], [0], color=colour, label=term)
        for row, (one, up) in enumerate(zip(explanations, ends[1], strict=True)):
            axes.text(up + 0.012, row, f"{one.score:.2f}", va="center")
        names = [f"{_clip(text, 44)}  {rank}" for rank, text in enumerate(texts, 1)]
        axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(min([0.0, *ends[-1]]) - 0.01, max(ends[1]) + 0.05)
        axes.axvline(0, color=GREY, linewidth=0.8)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("score, as the sum of its terms")
        axes.legend(
            frameon=False,
            loc="lower right",
            bbox_to_anchor=(1, 1.01),
            ncols=3,
            borderpad=0,
            handlelength=0.9,
            columnspacing=1.6,
            prop={"family": "monospace", "size": 8.5},
        )

    return draw


def draw_truth(quarter: Quarter) -> Callable[[Axes], None]:
    """Each pack by its true value and by what the log alone said, with its interval; on the line the two are one."""
    rows = quarter.evaluation.rows
    valued = [(row.policy, quarter.truth[row.policy], row.value) for row in rows if row.value is not None]
    withheld = [(row.policy, quarter.truth[row.policy], row.estimate) for row in rows if row.value is None]

    def draw(axes: Axes) -> None:
        ends = [end for _, true, value in valued for end in (true, value.low, value.high)]
        ends += [end for _, true, found in withheld for end in (true, found)]
        room = 0.06 * (max(ends) - min(ends))
        low, high = max(0.0, min(ends) - room), max(ends) + 2 * room
        axes.plot([low, high], [low, high], color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
        for name, true, value in valued:
            colour = ORANGE if name == quarter.evaluation.baseline else BLUE
            axes.plot([true, true], [value.low, value.high], color=colour, linewidth=2.2, solid_capstyle="round")
            axes.scatter([true], [value.value], s=52, color=colour, zorder=3)
            _name(axes, name, true, value.high)
        for name, true, found in withheld:
            axes.scatter([true], [found], s=46, facecolors="none", edgecolors=GREY, linewidths=1.6, zorder=3)
            _name(axes, f"{name}, withheld", true, found)
        trues = [true for _, true, _ in [*valued, *withheld]]
        axes.set_xlim(min(trues) - 0.09, max(trues) + 0.13)
        axes.set_ylim(low, high)
        axes.set_xlabel("true value: mean reward per recall (top k)")
        axes.set_ylabel("estimated from the log alone")
        axes.grid(color=GREY, alpha=0.18, linewidth=0.6)

    return draw


def _name(axes: Axes, name: str, x: float, y: float) -> None:
    axes.annotate(name, (x, y), xytext=(0, 6), textcoords="offset points", ha="center")


def draw_fading(quarter: Quarter) -> Figure:
    """What is left of three memories under each pack, day by day; ticks below are recalls."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(8.2, 1.75 * len(quarter.fading) + 0.5), layout="constrained")
        layout: Any = figure.get_layout_engine()
        layout.set(h_pad=0.08)
        panels = figure.subplots(len(quarter.fading), 1, sharex=True, squeeze=False)[:, 0]
        for axes, one in zip(panels, quarter.fading, strict=True):
            for (name, left), colour, width in zip(one.left.items(), CYCLE, (3.6, 1.5, 1.5, 1.5), strict=False):
                # the first is wide, so that it shows beneath another where the two agree
                axes.plot(one.days, left, color=colour, linewidth=width, label=name)
            axes.plot(one.recalled, [-0.09] * len(one.recalled), "|", color=GREY, markersize=6, markeredgewidth=0.9)
            axes.set_ylim(-0.16, 1.06)
            axes.set_yticks([0, 0.5, 1], ["0", "half", "all"])
            axes.set_xlim(0, quarter.world.days)
            axes.set_title(f"“{_clip(one.text, 62)}”  {one.why}", fontweight="normal", pad=8)
        panels[-1].set_xlabel("day of the quarter")
        figure.legend(
            *panels[0].get_legend_handles_labels(), frameon=False, loc="outside upper left", ncols=4, borderpad=0
        )
    return figure


def _columns(points: Sequence[tuple[datetime, float]]) -> tuple[Any, list[float]]:
    return [at for at, _ in points], [score for _, score in points]


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip(' ,.')}…"
