"""Figures for a page and for a notebook: one style, and SVG that takes its ink from the page it stands in.

Text stays text, in the page's own typeface, and the same numbers give the same bytes. Blue and orange differ in
every common kind of colour blindness, and shape says what colour says.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from memlab.errors import InputError
from memlab.kernel.base.arguments import Taken, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    "drawn",
    "element",
    "legend_of",
    "panelled",
    "svg",
]

Draw = Callable[["Axes"], None]


def _axes(value: Any) -> Any:
    from matplotlib.axes import Axes

    if not isinstance(value, Axes):
        raise InputError(f"axes are matplotlib's, such as plt.subplots()[1], not {shown(value)}.")
    return value


OnAxes = Annotated["Axes", Taken("axes of matplotlib", _axes)]
"""Axes of the caller's, on which a figure of one panel is drawn."""


def _several(value: Any) -> Any:
    given = value.ravel() if hasattr(value, "ravel") else value
    try:
        return [_axes(one) for one in given]
    except TypeError:
        raise InputError(f"axes are a sequence, one for each panel, not {shown(value)}.") from None


OnPanels = Annotated["Sequence[Axes]", Taken("axes of matplotlib, one for each panel", _several)]
"""Axes of the caller's, on which a figure of several panels is drawn; also as ``plt.subplots`` gives them."""

INK = "#010203"
GREY = "#8a8f98"
BLUE = "#3b7dd8"
ORANGE = "#e07b39"
CYCLE = (BLUE, ORANGE, "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7a5fc0", "#b5485d", "#6b8e23", "#4f6d7a")
"""The first six are Okabe and Ito's (2008), the first two in a shade of ours."""
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 10.0,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
}


def drawn(draw: Draw, *, width: float, height: float, axes: Axes | None = None) -> Figure:
    """The figure with what ``draw`` puts on one pair of axes: on those given, or else of a new figure (inches)."""
    from matplotlib import rc_context

    from memlab.kernel.base.drawing._picture import Picture

    with rc_context(STYLE):
        if axes is None:
            axes = Picture(figsize=(width, height), layout="constrained").add_subplot()
        draw(axes)
    return _figure_of(axes)


def panelled(
    draw: Callable[[Sequence[Axes]], None],
    count: int,
    *,
    shape: tuple[int, int],
    width: float,
    height: float,
    axes: Sequence[Axes] | None = None,
    **layout: Any,
) -> Figure:
    """The figure with what ``draw`` puts on ``count`` panels: on those given, or else of a new figure (inches).

    ``shape`` is rows and columns of the new figure, ``layout`` what its ``subplots`` take. InputError for another
    number of axes, and for those of several figures.
    """
    from matplotlib import rc_context

    from memlab.kernel.base.drawing._picture import Picture

    with rc_context(STYLE):
        if axes is None:
            figure = Picture(figsize=(width, height), layout="constrained")
            panels = list(figure.subplots(*shape, squeeze=False, **layout).flat)
            for spare in panels[count:]:
                spare.axis("off")
            panels = panels[:count]
        else:
            if len(axes) != count or len({one.get_figure(root=True) for one in axes}) != 1:
                grid = f"plt.subplots({shape[0]}, {shape[1]})[1]"
                near = f", such as {grid}" if shape[0] * shape[1] == count else ""
                raise InputError(f"axes: {count} of one figure are needed, one for each panel{near}, not {len(axes)}.")
            panels = list(axes)
        draw(panels)
    return _figure_of(panels[0])


def _figure_of(axes: Axes) -> Figure:
    figure: Figure | None = axes.get_figure(root=True)
    assert figure is not None
    return figure


def legend_of(panels: Sequence[Axes], *, alone: bool, ncols: int, title: str | None = None, **how: Any) -> None:
    """One legend for all panels, whose lines are the same: below them, or ``alone``, on the caller's, in the first."""
    handles, names = panels[0].get_legend_handles_labels()
    how |= {"frameon": False, "title": title}
    if alone:
        legend = panels[0].legend(handles, names, **how)
    else:
        legend = _figure_of(panels[0]).legend(handles, names, loc="outside lower center", ncols=ncols, **how)
    if "fontsize" in how:
        legend.get_title().set_fontsize(how["fontsize"])
    for text in legend.get_texts():
        text.set_parse_math(False)


def svg(draw: Draw, *, name: str, width: float, height: float) -> str:
    """The same as an element to stand in HTML."""
    return element(drawn(draw, width=width, height=height), name=name)


def element(figure: Figure, *, name: str) -> str:
    """A figure as an element to stand in HTML; ``name`` makes its ids unique there."""
    from matplotlib import rc_context

    with rc_context({**STYLE, "svg.hashsalt": name}):
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = text.replace(INK, "currentColor").replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    text = text.replace(' xmlns="http://www.w3.org/2000/svg"', "").replace("xlink:href", "href")
    text = re.sub(r"(font: (?:\w+ )*[\d.]+px) [^;\"]+", r"\1 var(--face)", text)
    text = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{name}-", text)
    return re.sub(r'<svg height="[^"]+" ', "<svg ", re.sub(r' (?:width|height)="[\d.]+pt"', "", text, count=2), count=1)
