"""Figures for pages and notebooks: one style, one palette, SVG that takes its ink from the page."""

from memlab.drawing._ranks import draw_ranks
from memlab.drawing._svg import BLUE, CYCLE, GREY, INK, ORANGE, STYLE, Draw, OnAxes, drawn, element, svg
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
    "draw_ranks",
    "drawn",
    "element",
    "render_page",
    "svg",
    "write_page",
]
