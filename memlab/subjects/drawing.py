"""Figures and pages in one style.

SVG inherits its text colour and typeface from the page, and pages load nothing else. Text stays
text, and equal numbers give equal bytes. Blue and orange differ in every common colour blindness,
and shape repeats the information of colour.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from memlab.errors import InputError, require_extra
from memlab.kernel.base.arguments import Taken, describe_value
from memlab.kernel.base.display import Table
from memlab.kernel.base.printable import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RESULTS_PAGE = Path(__file__).parent / "results.html"
"""The template of a page of figures and tables, for ``render_page``."""

Draw = Callable[["Axes"], None]
"""A function that draws one figure on matplotlib axes."""


def _check_axes(value: Any) -> Any:
    """Return matplotlib axes; raise InputError for anything else."""
    with require_extra("plots", "A figure"):
        from matplotlib.axes import Axes

    if not isinstance(value, Axes):
        raise InputError(
            f"axes must be axes of matplotlib, such as plt.subplots()[1], not {describe_value(value)}."
        )
    return value


OnAxes = Annotated["Axes", Taken("axes of matplotlib", _check_axes)]
"""Axes of the caller, on which a figure of one panel is drawn."""


def _check_panels(value: Any) -> Any:
    """Return a list of matplotlib axes; raise InputError for anything else."""
    values = value.ravel() if hasattr(value, "ravel") else value
    try:
        return [_check_axes(axes) for axes in values]
    except TypeError:
        raise InputError(
            f"axes must be a sequence with one item for each panel, not {describe_value(value)}."
        ) from None


OnPanels = Annotated[
    "Sequence[Axes]", Taken("axes of matplotlib, one for each panel", _check_panels)
]
"""Axes of the caller for a figure of several panels, also as ``plt.subplots`` returns them."""

# ``INK`` stands for the text colour of the page, which replaces it in SVG: no other element has it. In PNG, whose reader
# may have a light or a dark notebook, it has a contrast of 4.3 to 1 with white and with the black of JupyterLab.
INK = "#777b80"
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
"""Colours of lines and bars; the first six are Okabe and Ito's (2008), two in another shade."""
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
"""Settings of matplotlib for all figures."""


def _style(settings: Mapping[Any, Any] = MappingProxyType({})) -> AbstractContextManager[None]:
    """Return a context manager that applies memlab's matplotlib settings and then ``settings``.

    Raises MissingExtra without matplotlib.
    """
    with require_extra("plots", "A figure"):
        from matplotlib import rc_context

    return rc_context({**STYLE, **settings})


def draw_figure(draw: Draw, *, width: float, height: float, axes: Axes | None = None) -> Figure:
    """Draw on ``axes``, or on a new figure sized in inches, and return the figure."""
    with _style():
        if axes is None:
            axes = _new_figure(figsize=(width, height)).add_subplot()
        draw(axes)
    return _get_figure(axes)


def draw_panels(
    draw: Callable[[Sequence[Axes]], None],
    count: int,
    *,
    shape: tuple[int, int],
    width: float,
    height: float,
    axes: Sequence[Axes] | None = None,
    **layout: Any,
) -> Figure:
    """Draw on ``count`` axes, new or given, and return their figure.

    ``shape`` is the number of rows and columns of a new figure, ``layout`` the arguments of its
    ``subplots``; sizes are inches. Raises InputError for another number of axes, and for axes of
    several figures.
    """
    with _style():
        if axes is None:
            figure = _new_figure(figsize=(width, height))
            panels = list(figure.subplots(*shape, squeeze=False, **layout).flat)
            for spare in panels[count:]:
                spare.axis("off")
            panels = panels[:count]
        else:
            if len(axes) != count or len({panel.get_figure(root=True) for panel in axes}) != 1:
                grid = f"plt.subplots({shape[0]}, {shape[1]})[1]"
                example = f", such as {grid}" if shape[0] * shape[1] == count else ""
                raise InputError(
                    f"axes need one entry per panel: {count} axes of one figure{example}, not {len(axes)}."
                )
            panels = list(axes)
        draw(panels)
    return _get_figure(panels[0])


def _new_figure(**options: Any) -> Figure:
    """Return a figure that renders in a notebook, even if pyplot was never imported."""
    figure: Figure = _figure_class()(layout="constrained", **options)
    return figure


@cache  # one class for the process: notebooks compare types
def _figure_class() -> type[Figure]:
    """Return a figure class that displays itself in a notebook as PNG."""
    from matplotlib.figure import Figure  # the import takes 0.3 s

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            out = io.BytesIO()
            self.savefig(out, format="png", dpi=144, transparent=True)
            return out.getvalue()

    return Picture


def _get_figure(axes: Axes) -> Figure:
    """Return the figure to which matplotlib axes belong."""
    figure: Figure | None = axes.get_figure(root=True)
    assert figure is not None
    return figure


def add_legend(
    panels: Sequence[Axes], *, alone: bool, ncols: int, title: str | None = None, **options: Any
) -> None:
    """Add one legend below all panels, or inside the first panel if ``alone`` is true.

    ``alone`` is for axes of the caller, whose figure may have a legend.
    """
    handles, names = panels[0].get_legend_handles_labels()
    options |= {"frameon": False, "title": title}
    if alone:
        legend = panels[0].legend(handles, names, **options)
    else:
        legend = _get_figure(panels[0]).legend(
            handles, names, loc="outside lower center", ncols=ncols, **options
        )
    if "fontsize" in options:
        legend.get_title().set_fontsize(options["fontsize"])
    for text in legend.get_texts():
        text.set_parse_math(False)


def draw_svg(draw: Draw, *, name: str, width: float, height: float) -> str:
    """Return a drawing as an SVG element for HTML."""
    return render_svg(draw_figure(draw, width=width, height=height), name=name)


def render_svg(figure: Figure, *, name: str) -> str:
    """Return a figure as an SVG element for HTML, with ids that are unique to ``name``."""
    with _style({"svg.hashsalt": name}):
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
    maximum: int,
    below: str = "not shown",
    margin: float = 2.5,
    size: float | None = None,
) -> Draw:
    """Return a drawing of rank changes, with one line per row.

    Orange lines rise, blue lines fall. The line of a row with only one rank ends at the bottom,
    which is labelled ``below``. The width of the texts relative to the lines is ``margin``, and
    their font size in points is ``size``.
    """
    # Lines of rows on both sides are drawn above the thin ones that end at the bottom.
    foot = maximum + 1.1

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
    """Return the HTML that ``template`` renders from ``values``; texts are escaped.

    A template can include files next to it and extend ``layout.html``, which every page shares.
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


def render_latex(table: Table, caption: str) -> str:
    """Return a table as LaTeX with booktabs rules, without columns of empty cells.

    Every character of the cells and of the caption is escaped.
    """
    columns = [
        ("l" if number in table.left else "r", [head, *cells])
        for number, (head, *cells) in enumerate(zip(table.heads, *table.rows, strict=True))
        if any(cells)
    ]
    head, *rows = (
        # A row that begins with a bracket or an asterisk would be an option of the command before it.
        re.sub(r"^([\[*])", r"{\1}", " & ".join(map(_escape_latex, row))) + r" \\"
        for row in zip(*(cells for _, cells in columns), strict=True)
    )
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_escape_latex(caption)}}}",
            rf"\begin{{tabular}}{{{''.join(side for side, _ in columns)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _escape_latex(text: object) -> str:
    """Return a printable text with LaTeX commands escaped and the minus signs of numbers typeset."""
    plain = "".join(_LATEX.get(character, character) for character in printable(str(text)))
    return re.sub(r"(?<![\w.-])-(?=\.?\d)", "$-$", plain)


_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "\n": " ",
}
"""The text of each character that LaTeX would read as a command, and of signs that its old fonts lack."""


def write_page(html: str, path: str | Path) -> Path:
    """Write an HTML page, creating missing folders, and return its path."""
    target = Path(path).expanduser()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(html, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"The page cannot be written to {target}: {error.strerror}. Name another path."
        ) from None
    return target
