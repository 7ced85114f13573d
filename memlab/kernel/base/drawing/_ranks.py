"""Ranks under two policies, joined by lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memlab.kernel.base.drawing._svg import BLUE, GREY, ORANGE, Draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_ranks"]


def draw_ranks(
    names: tuple[str, str],
    rows: Sequence[tuple[int | None, int | None, str]],
    *,
    most: int,
    below: str = "not shown",
    margin: float = 2.5,
    size: float | None = None,
) -> Draw:
    """One line for each row (rank on the left, rank on the right, text): orange rises, blue falls.

    What has a rank on one side alone is joined to the foot, which is called ``below``. ``margin`` is the width of the
    texts, that of the lines being 1; ``size`` is the texts' in points.
    """
    foot = most + 1.1

    def draw(axes: Axes) -> None:
        for left, right, text in rows:
            start, stop = left or foot, right or foot
            if left and right:
                colour = ORANGE if start > stop else BLUE if start < stop else GREY
                axes.plot([0, 1], [start, stop], color=colour, linewidth=2.2, solid_capstyle="round", zorder=2)
            else:
                axes.plot([0, 1], [start, stop], color=GREY, linewidth=0.8, alpha=0.5, zorder=1)
            if left:
                axes.text(-0.05, start, f"{text}   {left}", ha="right", va="center", fontsize=size)
            if right:
                axes.text(1.05, stop, f"{right}   {text}", ha="left", va="center", fontsize=size)
        for x, side, name in ((-0.05, "right", names[0]), (1.05, "left", names[1])):
            axes.text(x, 0.1, name, ha=side, va="center", color=GREY)
            axes.text(x, foot, below, ha=side, va="center", color=GREY)
        axes.set_xlim(-margin, 1 + margin)
        axes.set_ylim(foot + 0.4, -0.3)
        axes.axis("off")

    return draw
