"""Figures for pages and notebooks: one style, one palette, SVG that takes its ink from the page."""

from memlab.kernel.base.drawing._ranks import draw_ranks
from memlab.kernel.base.drawing._svg import (
    BLUE,
    CYCLE,
    GREY,
    INK,
    ORANGE,
    STYLE,
    Draw,
    OnAxes,
    OnPanels,
    drawn,
    element,
    legend_of,
    panelled,
    svg,
)
from memlab.kernel.base.drawing._template import render_page, write_page

__all__ = [
    "BLUE",
    "CYCLE",
    "GREY",
    "INK",
    "ORANGE",
    "STYLE",
    "Draw",
    "OnAxes",
    "OnPanels",
    "draw_ranks",
    "drawn",
    "element",
    "legend_of",
    "panelled",
    "render_page",
    "svg",
    "write_page",
]
