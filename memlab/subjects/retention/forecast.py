"""What becomes of memories that nobody uses: what the closed forms of one pack or several say of times to come."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import Micros, from_micros
from memlab.kernel.base.display import Displayed, Markup, clip, table
from memlab.kernel.base.printable import printable
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment, read_statuses
from memlab.kernel.schema import RECALLABLE, STATUSES
from memlab.kernel.state import State, to_datetimes
from memlab.subjects.drawing import CYCLE, GREY, OnPanels, add_legend, draw_panels, render_svg
from memlab.subjects.retention.upkeep import spelled, standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Forecast", "forecast"]


# -- what a forecast holds, its figure and its page -------------------------------------------------------------------


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
            add_legend(
                grid,
                alone=axes is not None,
                ncols=4 if alone else 2,
                title=title,
                fontsize=8.2,
                handlelength=1.8,
            )

    width = 4.8 if across == 1 and not alone else min(9.6, 3.4 * max(across, 2))
    return draw_panels(
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
        chosen = (
            pl.col("pack") == line
            if alone
            else (pl.col("pack") == pack) & (pl.col("memory_id") == int(line))
        )
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
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from font", category=UserWarning
        )
        drawing = render_svg(_figure(found), name="forecast")
    moved = found.transitions.head(_MOST_SHOWN)
    when, old = pl.col("at").dt.strftime("%Y-%m-%d %H:%M"), pl.col("from").fill_null("none")
    rows = moved.select("pack", "memory_id", when, "what", old, "to").iter_rows()
    heads = ("pack", "memory", "at", "what", "from", "to")
    more = found.transitions.height - moved.height
    notes = [f"and {more:,} more transitions"] if more > 0 else []
    listed = table("", heads, rows, notes=notes)
    face = "--face:var(--jp-content-font-family,system-ui,sans-serif)"
    return Markup(f'<div style="max-width:62em;{face}">{drawing}</div>'), listed


Rows = NDArray[np.int64]
Instants = NDArray[np.int64]

_MOST_POINTS = 10_000
_MOST_VALUES = 5_000_000
"""Rows of a frame: some 300 MB."""

_FINEST: Micros = 1_000_000
"""Transitions have a resolution of one second."""

_MOST_MOVES = 16
"""Transitions of one memory between two points; any more of them stand at the second point."""

_IN_RECALL = np.array([word in RECALLABLE for word in STATUSES])


def forecast(
    state: State,
    packs: Sequence[Pack],
    rows: Rows,
    now: Micros,
    until: Micros,
    *,
    points: int = 100,
) -> Forecast:
    """What each pack makes of ``rows`` (ascending) at ``points`` instants from ``now`` to ``until``, both included.

    Nothing is changed, and nothing is used in between. Upkeep is taken to follow at once: status and label are those
    that ``promote``, ``forget`` and ``label`` give at each instant of what takes part in recall; what has left it keeps
    what it had. A transition that is undone again between two instants is not seen.
    """
    if until <= now:
        raise InputError(
            f"A forecast ends after it begins: until= is {from_micros(until):%Y-%m-%d %H:%M:%S}, and it begins at "
            f"{from_micros(now):%Y-%m-%d %H:%M:%S} UTC."
        )
    if not packs:
        raise InputError("A forecast needs a pack: packs= is empty.")
    if len(rows) * points * len(packs) > _MOST_VALUES:
        raise InputError(
            f"{len(rows):,} memories at {points:,} instants under {len(packs)} packs are more than {_MOST_VALUES:,} "
            "values: ask for fewer of one of them."
        )
    step = (until - now) / (points - 1)
    instants = [*dict.fromkeys(now + round(step * place) for place in range(points - 1)), until]
    walks = [
        _walked(state, pack, name, rows, instants)
        for pack, name in zip(packs, _named(packs), strict=True)
    ]
    return Forecast(
        at=from_micros(now),
        until=from_micros(until),
        packs=tuple((name, pack.hash) for name, pack in zip(_named(packs), packs, strict=True)),
        texts=tuple(
            (row + 1, text or "")
            for row, text in zip(rows.tolist(), state.texts.to_list(rows), strict=True)
        ),
        frame=pl.concat([frame for frame, _ in walks]),
        transitions=pl.concat([moved for _, moved in walks]),
    )


def _named(packs: Sequence[Pack]) -> list[str]:
    """The packs' names; hashes are added to those that share one."""
    names = [pack.name for pack in packs]
    return [
        f"{pack.name} [{pack.hash[:6]}]" if names.count(pack.name) > 1 else pack.name
        for pack in packs
    ]


@dataclass(frozen=True)
class _Held:
    """Status and label of some memories at an instant, the label as a code of ``words``, -1 for none."""

    rows: Rows
    status: NDArray[np.int64]
    label: NDArray[np.int64]

    def at(self, places: NDArray[Any]) -> _Held:
        return _Held(self.rows[places], self.status[places], self.label[places])

    def where(self, mask: NDArray[np.bool_], other: _Held) -> _Held:
        """This one where ``mask`` holds, and else the other."""
        return _Held(
            self.rows,
            np.where(mask, self.status, other.status),
            np.where(mask, self.label, other.label),
        )

    @classmethod
    def joined(cls, parts: Sequence[_Held]) -> _Held:
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.status for part in parts]),
            np.concatenate([part.label for part in parts]),
        )

    def differs(self, other: _Held) -> NDArray[np.bool_]:
        return np.asarray((self.status != other.status) | (self.label != other.label))


@dataclass(frozen=True)
class _Step:
    """What some memories were just after ``since``, and are by ``until``: an instant for each."""

    old: _Held
    new: _Held
    since: Instants
    until: Instants

    @classmethod
    def joined(cls, steps: Sequence[_Step]) -> _Step:
        return cls(
            _Held.joined([step.old for step in steps]),
            _Held.joined([step.new for step in steps]),
            np.concatenate([step.since for step in steps]),
            np.concatenate([step.until for step in steps]),
        )


class _Walk:
    """One pack's way through time; it knows the words that it has met."""

    def __init__(self, state: State, pack: Pack) -> None:
        self.state, self.pack = state, pack
        self.words: list[str] = []

    def begun(self, rows: Rows) -> _Held:
        """What the state has."""
        labels = self.state.names["label"]
        self.words = list(labels.vocabulary)
        return _Held(rows, read_statuses(self.state, rows), labels.codes[rows].astype(np.int64))

    def on(self, held: _Held, now: Micros | Instants) -> _Held:
        """What becomes of it by ``now``, one instant or one for each row."""
        inside = np.flatnonzero(_IN_RECALL[held.status])
        if not len(inside):
            return held
        at = now if isinstance(now, int) else now[inside]
        found = standing(self.state, self.pack, held.rows[inside], at, status=held.status[inside])
        for word in found.words:
            if word not in self.words:
                self.words.append(word)
        codes = np.array([*map(self.words.index, found.words), -1])
        status, label = held.status.copy(), held.label.copy()
        status[inside] = found.status
        label[inside] = np.where(found.label >= 0, codes[found.label], label[inside])
        return _Held(held.rows, status, label)


def _walked(
    state: State, pack: Pack, name: str, rows: Rows, instants: Sequence[Micros]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The frame and the transitions of one pack."""
    walk, count = _Walk(state, pack), len(rows)
    held, before = walk.begun(rows), instants[0] - 1
    numbers: list[tuple[NDArray[Any], NDArray[Any], _Held]] = []
    steps: list[_Step] = []
    for now in instants:
        after = walk.on(held, now)
        places = np.flatnonzero(after.differs(held))
        steps.append(
            _Step(
                held.at(places),
                after.at(places),
                np.full(len(places), before),
                np.full(len(places), now),
            )
        )
        held, before = after, now
        moment = Moment(state, pack, rows, now)
        numbers.append((moment.retention(), moment.half_life(), held))
    moved = _located(walk, steps)
    words = walk.words
    frame = pl.DataFrame(
        [
            pl.Series("pack", [name], dtype=pl.String).new_from_index(0, count * len(instants)),
            pl.Series("memory_id", np.tile(rows + 1, len(instants)), dtype=pl.Int64),
            to_datetimes("at", np.repeat(np.array(instants, dtype=np.int64), count)),
            pl.Series(
                "retention", np.concatenate([kept for kept, _, _ in numbers]), dtype=pl.Float64
            ).fill_nan(None),
            pl.Series(
                "half_life", np.concatenate([half for _, half, _ in numbers]), dtype=pl.Float64
            ).fill_nan(None),
            spelled(np.concatenate([one.label for _, _, one in numbers]), words).alias("label"),
            spelled(np.concatenate([one.status for _, _, one in numbers]), STATUSES).alias(
                "status"
            ),
        ]
    )
    parts = [pl.DataFrame(schema=_MOVED)]
    for step in moved:
        for what, ours, theirs, known in (
            ("status", step.old.status, step.new.status, STATUSES),
            ("label", step.old.label, step.new.label, words),
        ):
            places = np.flatnonzero(ours != theirs)
            parts.append(
                pl.DataFrame(
                    [
                        pl.Series("pack", [name], dtype=pl.String).new_from_index(0, len(places)),
                        pl.Series("memory_id", step.old.rows[places] + 1, dtype=pl.Int64),
                        to_datetimes("at", step.until[places]),
                        pl.Series("what", [what], dtype=pl.String).new_from_index(0, len(places)),
                        spelled(ours[places], known).alias("from"),
                        spelled(theirs[places], known).alias("to"),
                    ]
                )
            )
    by_memory = frame.sort("memory_id", "at", maintain_order=True)
    return by_memory, pl.concat(parts).sort("memory_id", "at", maintain_order=True)


_MOVED: dict[str, Any] = {
    "pack": pl.String,
    "memory_id": pl.Int64,
    "at": pl.Datetime("us", "UTC"),
    "what": pl.String,
    "from": pl.String,
    "to": pl.String,
}


def _located(walk: _Walk, steps: Sequence[_Step]) -> list[_Step]:
    """The transitions within these steps, each with the instant of ``until``: by halving the time, all at once."""
    found: list[_Step] = []
    left = _Step.joined(steps)
    for _ in range(_MOST_MOVES):
        if not len(left.old.rows):
            return found
        low, high = left.since.copy(), left.until.copy()
        # where nothing happens until the end although the end is another, it happens there
        while (wide := np.flatnonzero(high - low > _FINEST)).size:
            middle = low[wide] + (high[wide] - low[wide]) // 2
            moved = walk.on(left.old.at(wide), middle).differs(left.old.at(wide))
            high[wide[moved]], low[wide[~moved]] = middle[moved], middle[~moved]
        last = high == left.until
        new = walk.on(left.old, high).where(~last, left.new)
        found.append(_Step(left.old, new, low, high))
        rest = np.flatnonzero(new.differs(left.new))
        left = _Step(new.at(rest), left.new.at(rest), high[rest], left.until[rest])
    return [*found, left]
