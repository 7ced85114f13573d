"""A forecast: what it holds, its figure and its page."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Displayed, Markup, clip, table
from memlab.kernel.base.drawing import CYCLE, GREY, OnPanels, element, legend_of, panelled
from memlab.kernel.base.printable import printable
from memlab.kernel.schema import RECALLABLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Forecast"]

Floats = NDArray[np.float64]

_MOST_LINES = len(CYCLE)
_MOST_SHOWN = 12
_ACROSS = 3
_DAY = 86_400.0
_STYLES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
"""What colour shows is shown by shape too: a line style for each run of colours."""


@dataclass(frozen=True)
class Forecast(Displayed):
    """What becomes of memories from ``at`` to ``until`` if none of them is used.

    ``frame``: one row for each pack, memory and instant: pack, memory_id, at, retention (1 as when new), half_life
    (days), label, status. What never fades has a retention of 1; its half_life is what the pack's ``half-life`` gives:
    1e300 for what is pinned under ``workbench``, ``base-half-life`` where the pack's ``retention`` does not read it
    (``companion``, ``factgraph``, ``fsrs``, ``actr``), and null where the policy gives null. ``transitions``: pack,
    memory_id, at (to the second), what (status or label), from, to. ``packs`` are names with hashes, ``texts`` what the
    memories say.
    """

    at: datetime
    until: datetime
    packs: tuple[tuple[str, str], ...]
    texts: tuple[tuple[int, str], ...]
    frame: pl.DataFrame = field(repr=False)
    transitions: pl.DataFrame = field(repr=False)

    @checked
    def figure(self, *, axes: OnPanels | None = None) -> Figure:
        """Retention against time: one line a memory in a panel for each pack; of one memory, one line a pack.

        A dot is a transition, with the word that holds from then on. A line is pale once its memory has left recall.
        It is drawn on ``axes``, one for each panel, if they are given. InputError for another number of them.
        """
        return _figure(self, axes)

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.packs)
        return printable(
            f"<Forecast of {len(self.texts):,} memories, {self.at:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M} UTC, "
            f"under {names}: {self.transitions.height:,} transitions>"
        )

    def _display(self) -> object:
        return _shown(self)


def _figure(found: Forecast, axes: Sequence[Axes] | None = None) -> Figure:
    packs, memories = [name for name, _ in found.packs], [id for id, _ in found.texts]
    alone = len(memories) == 1 and len(packs) > 1
    shown = packs[:_MOST_LINES] if alone else [str(id) for id in memories[:_MOST_LINES]]
    panels = [""] if alone else packs
    across = 2 if len(panels) == 4 else min(_ACROSS, len(panels))
    down = -(-len(panels) // across)

    def draw(grid: Sequence[Axes]) -> None:
        for place, panel in enumerate(grid):
            _draw(panel, found, shown, packs[place], alone)
            panel.set_title(f"Memory {memories[0]}" if alone else panels[place], pad=8)
            if axes is not None or place + across >= len(panels):
                panel.set_xlabel("days")
                panel.tick_params(labelbottom=True)
            if axes is not None or place % across == 0:
                panel.set_ylabel("what is left")
        hidden = (len(packs) if alone else len(memories)) - len(shown)
        title = f"and {hidden:,} more, not drawn" if hidden > 0 else None
        if len(shown) > 1:
            legend_of(
                grid, alone=axes is not None, ncols=4 if alone else 2, title=title, fontsize=8.2, handlelength=1.8
            )

    width = 4.8 if across == 1 and not alone else min(9.6, 3.4 * max(across, 2))
    return panelled(
        draw,
        len(panels),
        shape=(down, across),
        width=width,
        height=0.7 + 2.4 * down,
        axes=axes,
        sharex=True,
        sharey=True,
    )


def _draw(axes: Axes, found: Forecast, lines: list[str], pack: str, alone: bool) -> None:
    for place, line in enumerate(lines):
        chosen = pl.col("pack") == line if alone else (pl.col("pack") == pack) & (pl.col("memory_id") == int(line))
        rows = found.frame.filter(chosen)
        days = _days(rows["at"], found)
        left = rows["retention"].fill_null(float("nan")).to_numpy()
        colour, style = CYCLE[place % len(CYCLE)], _STYLES[place % len(_STYLES)]
        name = line if alone else f"{line}: {clip(dict(found.texts)[int(line)], 44)}"
        inside = rows["status"].is_in(RECALLABLE).to_numpy()
        shared: dict[str, Any] = {"color": colour, "linewidth": 1.8, "linestyle": style}
        axes.plot(days, np.where(_reaching(inside), left, np.nan), label=_plain(name), **shared)
        axes.plot(days, np.where(inside, np.nan, left), alpha=0.3, clip_on=False, **shared)
        moved = found.transitions.filter(chosen & pl.col("from").is_not_null())
        if not moved.height:
            continue
        at = _days(moved["at"], found)
        axes.scatter(at, np.interp(at, days, left), s=16, color=colour, zorder=3, clip_on=False)
        if len(lines) == 1:
            _word(axes, at, np.interp(at, days, left), moved["to"].to_list(), colour)
    axes.set_ylim(bottom=0)
    axes.margins(x=0.02)
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)


def _word(axes: Axes, at: Floats, left: Floats, words: list[str], colour: str) -> None:
    """The words that hold from each dot on; of several at one instant all."""
    for x in np.unique(at):
        here = np.flatnonzero(at == x)
        label = axes.annotate(
            ", ".join(words[place] for place in here),
            (float(x), float(left[here[0]])),
            xytext=(5, 4),
            textcoords="offset points",
            fontsize=8.2,
            color=colour,
        )
        label.set_parse_math(False)


def _reaching(inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """And the first instant after each run, so that the strong line meets the pale one."""
    reaching = inside.copy()
    reaching[1:] |= inside[:-1]
    return reaching


def _days(at: pl.Series, found: Forecast) -> Floats:
    begin = pl.Series([found.at]).cast(pl.Datetime("us", "UTC")).to_physical()[0]
    return np.asarray((at.to_physical() - begin).to_numpy() / 1e6 / _DAY)


def _plain(name: str) -> str:
    """A label that begins with an underscore would be left out of the legend."""
    return f" {name}" if name.startswith("_") else name


def _shown(found: Forecast) -> object:
    with warnings.catch_warnings():
        # a page has glyphs that matplotlib's own face lacks
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        drawing = element(_figure(found), name="forecast")
    moved = found.transitions.head(_MOST_SHOWN)
    when, old = pl.col("at").dt.strftime("%Y-%m-%d %H:%M"), pl.col("from").fill_null("none")
    rows = moved.select("pack", "memory_id", when, "what", old, "to").iter_rows()
    heads = ("pack", "memory", "at", "what", "from", "to")
    more = found.transitions.height - moved.height
    notes = [f"and {more:,} more transitions"] if more > 0 else []
    listed = table("", heads, rows, notes=notes)
    face = "--face:var(--jp-content-font-family,system-ui,sans-serif)"
    return Markup(f'<div style="max-width:62em;{face}">{drawing}</div>'), listed
