"""Figures and pages in one style: SVG takes its ink from the page it stands in, and a page asks for nothing else.

Text stays text, in the page's own typeface, and the same numbers give the same bytes. Blue and orange differ in
every common kind of colour blindness, and shape says what colour says.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from memlab.errors import InputError
from memlab.kernel.base.arguments import Taken, describe_value

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
    "draw_ranks",
    "drawn",
    "element",
    "legend_of",
    "panelled",
    "render_page",
    "svg",
    "write_page",
]

Draw = Callable[["Axes"], None]


def _axes(value: Any) -> Any:
    from matplotlib.axes import Axes

    if not isinstance(value, Axes):
        raise InputError(
            f"axes are matplotlib's, such as plt.subplots()[1], not {describe_value(value)}."
        )
    return value


OnAxes = Annotated["Axes", Taken("axes of matplotlib", _axes)]
"""Axes of the caller's, on which a figure of one panel is drawn."""


def _several(value: Any) -> Any:
    given = value.ravel() if hasattr(value, "ravel") else value
    try:
        return [_axes(one) for one in given]
    except TypeError:
        raise InputError(
            f"axes are a sequence, one for each panel, not {describe_value(value)}."
        ) from None


OnPanels = Annotated["Sequence[Axes]", Taken("axes of matplotlib, one for each panel", _several)]
"""Axes of the caller's, on which a figure of several panels is drawn; also as ``plt.subplots`` gives them."""

INK = "#010203"
GREY = "#8a8f98"
BLUE = "#3b7dd8"
ORANGE = "#e07b39"
CYCLE = (
    BLUE,
    ORANGE,
    "#009e73",
    "#cc79a7",
    "#8a6d00",
    "#56b4e9",
    "#7a5fc0",
    "#b5485d",
    "#6b8e23",
    "#4f6d7a",
)
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

    with rc_context(STYLE):
        if axes is None:
            axes = _new_figure(figsize=(width, height)).add_subplot()
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

    with rc_context(STYLE):
        if axes is None:
            figure = _new_figure(figsize=(width, height))
            panels = list(figure.subplots(*shape, squeeze=False, **layout).flat)
            for spare in panels[count:]:
                spare.axis("off")
            panels = panels[:count]
        else:
            if len(axes) != count or len({one.get_figure(root=True) for one in axes}) != 1:
                grid = f"plt.subplots({shape[0]}, {shape[1]})[1]"
                near = f", such as {grid}" if shape[0] * shape[1] == count else ""
                raise InputError(
                    f"axes: {count} of one figure are needed, one for each panel{near}, not {len(axes)}."
                )
            panels = list(axes)
        draw(panels)
    return _figure_of(panels[0])


def _new_figure(**how: Any) -> Figure:
    """Return a figure that renders as the last line of a cell, whether or not pyplot was ever imported."""
    figure: Figure = _picture()(layout="constrained", **how)
    return figure


@cache
def _picture() -> type[Figure]:
    from matplotlib.figure import Figure  # costs .3 seconds: imported where a figure is drawn

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            out = io.BytesIO()
            self.savefig(out, format="png", dpi=144)
            return out.getvalue()

    return Picture


def _figure_of(axes: Axes) -> Figure:
    figure: Figure | None = axes.get_figure(root=True)
    assert figure is not None
    return figure


def legend_of(
    panels: Sequence[Axes], *, alone: bool, ncols: int, title: str | None = None, **how: Any
) -> None:
    """One legend for all panels, whose lines are the same: below them, or ``alone``, on the caller's, in the first."""
    handles, names = panels[0].get_legend_handles_labels()
    how |= {"frameon": False, "title": title}
    if alone:
        legend = panels[0].legend(handles, names, **how)
    else:
        legend = _figure_of(panels[0]).legend(
            handles, names, loc="outside lower center", ncols=ncols, **how
        )
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
        figure.savefig(
            out, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = text.replace(INK, "currentColor").replace(
        ' xmlns:xlink="http://www.w3.org/1999/xlink"', ""
    )
    text = text.replace(' xmlns="http://www.w3.org/2000/svg"', "").replace("xlink:href", "href")
    text = re.sub(r"(font: (?:\w+ )*[\d.]+px) [^;\"]+", r"\1 var(--face)", text)
    text = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{name}-", text)
    return re.sub(
        r'<svg height="[^"]+" ',
        "<svg ",
        re.sub(r' (?:width|height)="[\d.]+pt"', "", text, count=2),
        count=1,
    )


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
                axes.plot(
                    [0, 1],
                    [start, stop],
                    color=colour,
                    linewidth=2.2,
                    solid_capstyle="round",
                    zorder=2,
                )
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


def render_page(template: Path, filters: Mapping[str, Callable[..., Any]], **values: object) -> str:
    """The page that ``template`` makes of ``values``, everything from texts escaped.

    A template has its neighbours to include, and ``layout.html``, what every page begins and ends with, to extend.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template(template.name).render(values)


def write_page(html: str, path: str | Path) -> Path:
    """Write a page, its folders too, and return its path; InputError where that is not possible."""
    target = Path(path).expanduser()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(html, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"The page cannot be written to {target}: {error.strerror}. Name another path."
        ) from None
    return target
