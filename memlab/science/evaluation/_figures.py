"""The figures of an evaluation: leaderboard with intervals, weights, and the recall where two policies differ most."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

import polars as pl

from memlab.kernel.base.display import clip
from memlab.science.evaluation._disagreements import Disagreement
from memlab.subjects.drawing import CYCLE, GREY, Draw, draw_ranks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DASHES", "MOST_LINES", "SIZES", "draw_disagreement", "draw_legend", "draw_sequences"]


SIZES = {"leaderboard": (7.6, 0.0), "weights": (7.6, 3.0), "disagreement": (7.6, 3.3)}
"""Inches; the height of a leaderboard follows its rows."""

DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
MOST_LINES = len(CYCLE)
_MOST_RANKS = 8


def draw_disagreement(one: Disagreement, a: str, b: str) -> Draw:
    """The heads of one recall under two policies, joined by lines; what earned something is marked."""
    most = min(
        max(rank for item in one.items for rank in item.ranks if rank is not None), _MOST_RANKS
    )
    rows = []
    for item in one.items:
        left, right = (rank if rank is not None and rank <= most else None for rank in item.ranks)
        earned = "" if item.reward is None else f" ({item.reward:g})"
        if left or right:
            rows.append((left, right, clip(item.text or f"memory {item.memory}", 36) + earned))
    return draw_ranks((a, b), rows, maximum=most, below="lower, or not at all", margin=3.1, size=9)


def draw_legend(axes: Axes) -> None:
    """Each sign once, above the axes."""
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if once:
        axes.legend(
            list(once.values()),
            list(once),
            frameon=False,
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=min(3, len(once)),
            borderpad=0,
            handletextpad=0.5,
            columnspacing=1.4,
        )


def draw_sequences(tracks: Mapping[str, pl.DataFrame], live: str) -> Draw:
    """The running difference of each challenger to the live pack, in the interval that holds at every look.

    A track has ``recalls``, ``difference``, ``low`` and ``high``.
    """

    def draw(axes: Axes) -> None:
        axes.axhline(0, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        reach = 0.0
        for colour, dash, (name, track) in zip(cycle(CYCLE), cycle(DASHES), tracks.items()):
            x = track["recalls"].to_numpy()
            axes.fill_between(x, track["low"], track["high"], color=colour, alpha=0.15, linewidth=0)
            axes.plot(
                x,
                track["difference"],
                color=colour,
                linestyle=dash,
                linewidth=1.8,
                label=f"{name} less {live}",
            )
            late = track.tail(max(1, track.height * 4 // 5))
            reach = max(reach, float(late["high"].max()), -float(late["low"].min()))  # type: ignore[arg-type]
        axes.set_ylim(-1.15 * reach, 1.15 * reach)
        axes.set_xlabel("recalls while challenged")
        axes.set_ylabel("difference in rewards a recall")
        draw_legend(axes)

    return draw
