"""Figures for pages and notebooks: one style, one palette, SVG that takes its ink from the page."""

from memlab.drawing._ranks import draw_ranks
from memlab.drawing._svg import (
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
from memlab.drawing._template import render_page, write_page

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
