"""The figure of a comparison: how labs went over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from memlab.drawing import CYCLE, GREY, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from memlab.history._compare import Comparison

__all__ = ["figure"]

_PANELS = (
    ("live", "Memories in use", "memories"),
    ("junk", "Junk: faded, and never of use", "share of those in use"),
    ("stale", "Out of date when shown", "share of what was shown"),
    ("retained", "Left of what proved its worth", "mean retention"),
)


def figure(found: Comparison) -> Figure:
    """One panel a measure, one line a lab; a lab without a value at an instant has a gap there."""

    def draw(axes: Axes) -> None:
        whole = axes.get_figure(root=True)
        assert whole is not None
        axes.remove()
        panels = whole.subplots(2, 2, sharex=True)
        for panel, (column, title, unit) in zip(panels.flat, _PANELS, strict=True):
            for name, colour in zip(found.labs, CYCLE, strict=False):
                line = found.frame.filter(pl.col("lab") == name)
                seen = line.drop_nulls(column)
                panel.plot(seen["at"].to_list(), seen[column].to_list(), color=colour, linewidth=1.6, label=name)
            panel.set_title(title)
            panel.set_ylabel(unit)
            panel.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
            panel.set_ylim(bottom=0)
            if column != "live" and not found.frame[column].drop_nulls().len():
                panel.text(0.5, 0.5, "nothing to measure", transform=panel.transAxes, ha="center", color=GREY)
        panels.flat[0].legend(frameon=False)
        for panel in panels[1]:
            panel.tick_params(axis="x", rotation=30)

    return drawn(draw, width=9.6, height=5.6)
