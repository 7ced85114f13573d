"""Figures of evaluations: disagreements and running differences of challengers."""

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

SIZES = {"leaderboard": (7.6, 0.0), "weights": (7.6, 3.0), "disagreement": (7.6, 3.3)}
"""The width and height of each figure in inches.

The height 0 means that the leaderboard's height depends on its rows.
"""

# Lines differ in dash as well as in colour, for readers who cannot distinguish the colours.
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
MAX_LINES = len(CYCLE)
_MAX_RANKS = 8
"""The number of ranks of a disagreement that fit the height of its figure."""


def draw_disagreement(disagreement: Disagreement, a: str, b: str) -> Draw:
    """Return a function that draws one recall's results under two policies.

    Lines join the ranks of each item. The rewards of items are in brackets.
    """
    last_rank = min(
        max(rank for item in disagreement.items for rank in item.ranks if rank is not None),
        _MAX_RANKS,
    )
    rows = []
    for item in disagreement.items:
        left, right = (
            rank if rank is not None and rank <= last_rank else None for rank in item.ranks
        )
        earned = "" if item.reward is None else f" ({item.reward:g})"
        if left or right:
            rows.append((left, right, clip(item.text or f"memory {item.memory}", 36) + earned))
    return draw_ranks(
        (a, b), rows, maximum=last_rank, below="lower, or not at all", margin=3.1, size=9
    )


def draw_legend(axes: Axes) -> None:
    """Draw a legend above the axes, with one entry for each distinct label."""
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    if unique:
        axes.legend(
            list(unique.values()),
            list(unique),
            frameon=False,
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=min(3, len(unique)),
            borderpad=0,
            handletextpad=0.5,
            columnspacing=1.4,
        )


def draw_sequences(tracks: Mapping[str, pl.DataFrame]) -> Draw:
    """Return a function that plots each challenger's difference to its live pack.

    The shaded area is the anytime-valid interval. ``tracks`` has a frame for each difference by its
    name, with the columns ``recalls``, ``difference``, ``low`` and ``high``.
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
                label=name,
            )
            # The first fifth of an interval is so wide that it would hide the later part.
            late = track.tail(max(1, track.height * 4 // 5))
            reach = max(reach, float(late["high"].max()), -float(late["low"].min()))  # type: ignore[arg-type]
        # Packs with the same results differ by 0, and the axis needs a height.
        reach = 1.15 * (reach or 1.0)
        axes.set_ylim(-reach, reach)
        axes.set_xlabel("recalls while challenged")
        axes.set_ylabel("difference in reward per recall")
        draw_legend(axes)

    return draw
