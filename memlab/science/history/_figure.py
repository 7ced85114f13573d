"""The figure of a comparison: how labs went over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from memlab.kernel.base.drawing import CYCLE, GREY, legend_of, panelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["figure"]

_PANELS = (
    ("live", "Memories in use", "memories"),
    ("junk", "Faded and never useful", "share of those in use"),
    ("stale", "Out of date when shown", "share of what was shown"),
    ("retained", "Retention of useful memories", "mean retention"),
)
_DASHES = ((5, 1.5), (1.5, 1.2), (6, 1.5, 1.5, 1.5), (3, 2.5), (6, 1.2, 1.2, 1.2, 1.2, 1.2))
_STYLES = ("-", *((0, dashes) for dashes in _DASHES))
"""By turns, so that a line shows through the gaps of one that lies on it: several labs are often at 0 together."""


def figure(labs: Sequence[str], frame: pl.DataFrame, axes: Sequence[Axes] | None) -> Figure:
    """One panel a measure, one line a lab; a lab without a value at an instant has a gap there."""

    def draw(panels: Sequence[Axes]) -> None:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        for panel, (column, title, unit) in zip(panels, _PANELS, strict=True):
            for place, name in enumerate(labs):
                line = frame.filter(pl.col("lab") == name)
                panel.plot(
                    line["at"].to_list(),
                    line[column].cast(pl.Float64).fill_null(float("nan")).to_numpy(),
                    color=CYCLE[place % len(CYCLE)],
                    linestyle=_STYLES[place % len(_STYLES)],
                    linewidth=1.6,
                    marker=".",
                    markersize=3,
                    label=name,
                    clip_on=False,
                )
            panel.set_title(title)
            panel.set_ylabel(unit)
            panel.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
            panel.set_ylim(bottom=0)
            if not frame[column].drop_nulls().len():
                panel.text(0.5, 0.5, "nothing to measure", transform=panel.transAxes, ha="center", color=GREY)
        for panel in panels[2:] if axes is None else panels:  # the upper ones of ours share the axis below them
            locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
            panel.xaxis.set_major_locator(locator)
            panel.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        legend_of(panels, alone=axes is not None, ncols=min(6, len(labs)), handlelength=2.4)

    return panelled(draw, len(_PANELS), shape=(2, 2), width=9.6, height=5.8, axes=axes, sharex=True)
