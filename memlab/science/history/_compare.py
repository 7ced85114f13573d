"""Two labs side by side over time: how large they are, how much of it is junk, what they show that is out of date."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import Share, Within, checked
from memlab.kernel.base.clock import Micros
from memlab.kernel.base.display import Displayed, Markup
from memlab.kernel.base.printable import printable
from memlab.kernel.journal import Event
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment
from memlab.kernel.schema import NEVER, RECALLABLE, is_single_valued
from memlab.kernel.state import State
from memlab.kernel.verbs.projections import new_state
from memlab.science.history._replay import Replay
from memlab.subjects.drawing import CYCLE, GREY, OnPanels, add_legend, draw_panels, render_svg
from memlab.subjects.lab import Lab

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Comparison", "compare", "figure"]


Rows = NDArray[np.int64]

_SCHEMA: dict[str, Any] = {
    "lab": pl.String,
    "at": pl.Datetime("us", "UTC"),
    "event": pl.Int64,
    "memories": pl.Int64,
    "live": pl.Int64,
    "edges": pl.Int64,
    "junk": pl.Float64,
    "shown": pl.Int64,
    "stale": pl.Float64,
    "failed": pl.Float64,
    "retained": pl.Float64,
}


@dataclass(frozen=True)
class Comparison(Displayed):
    """Labs over time. ``frame`` has a row for each lab and instant.

    ``memories``, ``live`` (those that take part in recall), ``edges``; ``junk``: share of the live ones of which less
    than ``junk_below`` is left by the pack's own ``retention`` and that nobody called a success; of what was ``shown``
    since the instant before, the shares that were ``stale`` (its status said so, or a newer memory gave its subject
    and single-valued predicate another value) and ``failed`` (feedback said so); ``retained``: mean retention of what
    was a success by the end and had been remembered by then, 0 where it is no longer live. Null where nothing was.
    """

    labs: tuple[str, ...]
    packs: tuple[str, ...]
    pack_hashes: tuple[str, ...]
    junk_below: float
    frame: pl.DataFrame = field(repr=False)

    def __repr__(self) -> str:
        return printable(
            f"<Comparison of {' and '.join(self.labs)} at {self.frame['at'].n_unique()} instants>"
        )

    @checked
    def figure(self, *, axes: OnPanels | None = None) -> Figure:
        """Four panels: size, junk, stale hits, retained value; on four ``axes`` if they are given."""

        return figure(self.labs, self.frame, axes)

    def _display(self) -> object:
        last = self.frame.group_by("lab", maintain_order=True).last()
        return repr(self), Markup(render_svg(self.figure(), name="compare")), last


@checked
def compare(
    a: Lab | Replay,
    b: Lab | Replay,
    *others: Lab | Replay,
    names: tuple[str, ...] | None = None,
    points: Annotated[int, Within(2, 10_000)] = 60,
    junk_below: Share = 0.1,
) -> Comparison:
    """How two labs (or more) went, at ``points`` instants from the first event of any to the last.

    A replay stands for its lab. ``names`` are what to call them; their packs unless given. Each lab is folded once
    from its beginning.

    >>> memlab.compare(lab, memlab.replay(lab, "companion")).figure()                  # doctest: +SKIP
    """
    labs = [one.lab if isinstance(one, Replay) else one for one in (a, b, *others)]
    if names is not None and len(set(names)) != len(labs):
        raise InputError(f"There are {len(labs)} labs: give as many names, each another.")
    packs = [lab.policies.pack for lab in labs]
    called = names or _distinct([pack.name for pack in packs])
    # a pack is chosen before anything happens in a lab; what a lab is about begins with what it remembered
    instants = [
        [
            event.at
            for event in lab.io.store.journal.events(kinds=("remember", "recall", "feedback"))
        ]
        for lab in labs
    ]
    if not all(instants):
        raise InputError("Nothing happened in one of the labs: there is nothing to compare.")
    first, last = min(map(min, instants)), max(map(max, instants))
    at = np.linspace(first, last, points).round().astype(np.int64)
    rows = [
        (name, *row)
        for name, lab, pack in zip(called, labs, packs, strict=True)
        for row in _Course(lab, pack, junk_below).rows(at.tolist())
    ]
    return Comparison(
        tuple(called),
        tuple(pack.name for pack in packs),
        tuple(pack.hash for pack in packs),
        junk_below,
        pl.DataFrame(rows, schema=_SCHEMA, orient="row"),
    )


class _Course:
    """One lab, from its beginning on."""

    def __init__(self, lab: Lab, pack: Pack, junk_below: float) -> None:
        self._journal, self._pack, self._junk_below = lab.io.store.journal, pack, junk_below
        self._state = new_state()
        self._shown = self._stale = self._judged = self._failed = 0
        with lab.io.store.reading() as final:
            self._successes = np.flatnonzero(final.numbers["success"].values > 0)

    def rows(self, instants: list[Micros]) -> Iterator[tuple[object, ...]]:
        events = self._journal.events()
        event: Event | None = next(events, None)
        for instant in instants:
            while event is not None and event.at <= instant:
                self._live_through(event)
                event = next(events, None)
            yield self._row(instant)

    def _live_through(self, event: Event) -> None:
        state = self._state
        if event.kind == "recall":
            rows = np.asarray(event.body["ids"], dtype=np.int64) - 1
            self._shown += len(rows)
            self._stale += int(
                _stale(state, rows, event.at, str(self._pack.settings["single-valued"])).sum()
            )
        if event.kind == "feedback" and event.body.get("outcome") is not None:
            self._judged += 1
            self._failed += event.body["outcome"] == "fail"
        state.fold([event], self._journal)

    def _row(self, instant: Micros) -> tuple[object, ...]:
        state = self._state
        live = _live(state)
        left = self._retention(live, instant)
        unused = state.numbers["success"].values[live] == 0
        known = self._successes[self._successes < len(state)]
        kept = np.where(np.isin(known, live), self._retention(known, instant), 0.0)
        row = (
            instant,
            state.seq,
            len(state),
            len(live),
            state.edges.live,
            float((unused & (left < self._junk_below)).mean()) if len(live) else None,
            self._shown,
            self._stale / self._shown if self._shown else None,
            self._failed / self._judged if self._judged else None,
            float(kept.mean()) if len(kept) else None,
        )
        self._shown = self._stale = self._judged = self._failed = 0
        return row

    def _retention(self, rows: Rows, instant: Micros) -> NDArray[np.float64]:
        left = Moment(self._state, self._pack, rows, instant)["retention"]
        return np.clip(np.nan_to_num(np.asarray(left, dtype=np.float64), nan=1.0), 0.0, 1.0)


def _live(state: State) -> Rows:
    status = state.names["status"]
    wanted = [status.code(word) for word in RECALLABLE]
    return np.flatnonzero(np.isin(status.codes, wanted))


def _stale(state: State, rows: Rows, now: Micros, declared: str) -> NDArray[np.bool_]:
    """Which of these were out of date: no longer in use, no longer valid, or given another value since."""
    if not len(rows):
        return np.zeros(0, dtype=np.bool_)
    stale = ~np.isin(rows, _live(state))
    ended = state.numbers["valid_until"].values[rows]
    stale |= (ended != NEVER) & (ended <= now)
    names = state.names
    for place, row in enumerate(rows.tolist()):
        predicate = names["predicate"].value_at(row)
        if predicate is None or not is_single_valued(predicate, declared):
            continue
        same = (names["subject"].codes == names["subject"].codes[row]) & (
            names["predicate"].codes == names["predicate"].codes[row]
        )
        other = (names["value"].codes != names["value"].codes[row]) | (
            names["object"].codes != names["object"].codes[row]
        )
        stale[place] |= bool((same & other)[row + 1 :].any())
    return stale


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Names that tell labs apart: the second of a kind is called so."""
    return tuple(
        name if names.count(name) == 1 else f"{name} ({names[:place].count(name) + 1})"
        for place, name in enumerate(names)
    )


# The figure of a comparison: how labs went over time.


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
                panel.text(
                    0.5,
                    0.5,
                    "nothing to measure",
                    transform=panel.transAxes,
                    ha="center",
                    color=GREY,
                )
        # the upper ones of ours share the axis below them
        for panel in panels[2:] if axes is None else panels:
            locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
            panel.xaxis.set_major_locator(locator)
            panel.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        add_legend(panels, alone=axes is not None, ncols=min(6, len(labs)), handlelength=2.4)

    return draw_panels(
        draw, len(_PANELS), shape=(2, 2), width=9.6, height=5.8, axes=axes, sharex=True
    )
