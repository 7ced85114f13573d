"""Figures for pages and notebooks: one style, one palette, SVG that takes its ink from the page."""

from memlab.drawing._svg import BLUE, CYCLE, GREY, INK, ORANGE, STYLE, Draw, drawn, element, svg

__all__ = ["BLUE", "CYCLE", "GREY", "INK", "ORANGE", "STYLE", "Draw", "drawn", "element", "svg"]
