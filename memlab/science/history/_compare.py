"""Compare labs over time: size, share of junk, outdated results, retained value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import Share, Within, checked
from memlab.kernel.base.arrays import Flags, Floats, Rows
from memlab.kernel.base.clock import INSTANT, Micros
from memlab.kernel.base.display import Displayed, Markup
from memlab.kernel.base.printable import printable
from memlab.kernel.base.progress import Step
from memlab.kernel.journal import Event
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment
from memlab.kernel.schema import NEVER, RECALLABLE, is_single_valued
from memlab.kernel.state import State
from memlab.kernel.verbs.projections import new_state
from memlab.science.batch import Workers, run_tasks
from memlab.science.history._replay import Replay
from memlab.subjects.copies import copy_for_workers
from memlab.subjects.drawing import CYCLE, GREY, OnPanels, add_legend, draw_panels, render_svg
from memlab.subjects.lab import Lab

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# The types are fixed, because a column may be null at all instants.
_SCHEMA: dict[str, Any] = {
    "lab": pl.String,
    "at": INSTANT,
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
    """The development of two or more labs over time; the result of ``memlab.compare``.

    Parameters
    ----------
    labs
        The names of the labs.
    packs, pack_hashes
        The names and hashes of the labs' packs.
    junk_below
        The retention below which a memory without a success is junk.
    frame
        A row for each lab and instant. ``memories`` and ``edges`` are counts, ``live`` counts the
        recallable memories, and ``junk`` is the share of junk among them. ``shown`` counts the
        memories that recalls showed since the previous instant. ``stale`` is the share of these
        memories that were outdated. ``failed`` is the share of judged memories whose feedback was
        fail. ``retained`` is the mean retention of memories that are successes at the end; a memory
        that is no longer recallable counts as 0. A share or mean is null if there is nothing to
        count.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
    >>> hits = lab.recall("When do we deploy?")
    >>> comparison = memlab.compare(lab, memlab.replay(lab, "companion"), names=("old", "new"))
    >>> comparison.labs, comparison.packs
    (('old', 'new'), ('memlab', 'companion'))
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
        """Draw four panels: size, junk, outdated hits and retained value.

        Parameters
        ----------
        axes
            Four matplotlib axes to draw on; a new figure by default.

        Returns
        -------
        Figure
            The figure of the axes.
        """
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
    executor: Workers = None,
) -> Comparison:
    """Compare the development of two or more labs.

    The history of each lab is rebuilt once from its beginning.

    Parameters
    ----------
    a, b, *others
        The labs, or replays of labs.
    names
        A name for each lab; by default the names of their packs.
    points
        The number of instants, 2 to 10,000, evenly spaced from the first event of any lab to the
        last.
    junk_below
        The retention below which a memory without a success is junk, 0 to 1.
    executor
        A number of processes, or an object with ``submit``, such as a ``dask.distributed.Client``.
        Each lab is a task, on a copy of the lab. Default: this thread.

    Returns
    -------
    Comparison
        The labs at each instant.

    Raises
    ------
    InputError
        If the names do not match the labs, or a lab has no events.
    WorkerLost
        If the executor does not return the result of a lab.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
    >>> hits = lab.recall("When do we deploy?")
    >>> comparison = memlab.compare(lab, memlab.replay(lab, "companion"), points=3)
    >>> comparison.frame.group_by("lab", maintain_order=True).last()["memories"].to_list()
    [2, 2]
    """
    labs = [item.lab if isinstance(item, Replay) else item for item in (a, b, *others)]
    if names is not None and len(set(names)) != len(labs):
        raise InputError(f"There are {len(labs)} labs. Pass as many names, all different.")
    packs = [lab.policies.pack for lab in labs]
    labels = names or _name_labs([pack.name for pack in packs])
    # Events before the first memory, such as the choice of a pack, would add instants with nothing to show.
    instants = [
        [
            event.at
            for event in lab.io.store.journal.events(kinds=("remember", "recall", "feedback"))
        ]
        for lab in labs
    ]
    if not all(instants):
        raise InputError(
            "One of the labs has no memories, recalls or feedback, so there is nothing to compare. Pass labs that have "
            "been used."
        )
    first, last = min(map(min, instants)), max(map(max, instants))
    at = np.linspace(first, last, points).round().astype(np.int64).tolist()
    pairs = list(zip(labs, packs, strict=True))
    if executor is None:
        courses = [list(_Course(lab, pack, junk_below).rows(at)) for lab, pack in pairs]
    else:
        with ExitStack() as copies:
            tasks = [(copies.enter_context(copy_for_workers(lab)), pack) for lab, pack in pairs]
            courses = run_tasks(partial(_follow_copy, junk_below, at), tasks, executor)
    rows = [(name, *row) for name, course in zip(labels, courses, strict=True) for row in course]
    return Comparison(
        tuple(labels),
        tuple(pack.name for pack in packs),
        tuple(pack.hash for pack in packs),
        junk_below,
        pl.DataFrame(rows, schema=_SCHEMA, orient="row"),
    )


def _follow_copy(
    junk_below: float, at: list[Micros], task: tuple[Callable[[], Lab], Pack], _: Step
) -> list[tuple[object, ...]]:
    """Return the rows of one lab at the times ``at``, computed in a worker on a copy of the lab.

    Unused memories with a retention below ``junk_below`` count as junk.
    """
    open_copy, pack = task
    with open_copy() as lab:
        return list(_Course(lab, pack, junk_below).rows(at))


class _Course:
    """A lab whose events are applied one by one, with counts since the last instant."""

    def __init__(self, lab: Lab, pack: Pack, junk_below: float) -> None:
        self._journal, self._pack, self._junk_below = lab.io.store.journal, pack, junk_below
        self._state = new_state()
        self._shown = self._stale = self._judged = self._failed = 0
        with lab.io.store.reading() as final:
            self._successes = np.flatnonzero(final.numbers["success"].values > 0)

    def rows(self, instants: list[Micros]) -> Iterator[tuple[object, ...]]:
        """Yield a row of the frame for each instant."""
        events = self._journal.events()
        event: Event | None = next(events, None)
        for instant in instants:
            while event is not None and event.at <= instant:
                self._apply_event(event)
                event = next(events, None)
            yield self._row(instant)

    def _apply_event(self, event: Event) -> None:
        """Count the memories that an event returns or judges, and apply the event to the state."""
        state = self._state
        if event.kind == "recall":
            rows = np.asarray(event.body["ids"], dtype=np.int64) - 1
            self._shown += len(rows)
            self._stale += int(
                _find_stale(state, rows, event.at, str(self._pack.settings["single-valued"])).sum()
            )
        if event.kind == "feedback" and event.body.get("outcome") is not None:
            self._judged += 1
            self._failed += event.body["outcome"] == "fail"
        state.fold([event], self._journal)

    def _row(self, instant: Micros) -> tuple[object, ...]:
        """Return the measures of a lab at an instant, and reset the counts of recalls."""
        state = self._state
        live = _find_live(state)
        retention = self._retention(live, instant)
        unused = state.numbers["success"].values[live] == 0
        successes = self._successes[self._successes < len(state)]
        retained = np.where(np.isin(successes, live), self._retention(successes, instant), 0.0)
        row = (
            instant,
            state.seq,
            len(state),
            len(live),
            state.edges.live,
            float((unused & (retention < self._junk_below)).mean()) if len(live) else None,
            self._shown,
            self._stale / self._shown if self._shown else None,
            self._failed / self._judged if self._judged else None,
            float(retained.mean()) if len(retained) else None,
        )
        self._shown = self._stale = self._judged = self._failed = 0
        return row

    def _retention(self, rows: Rows, instant: Micros) -> Floats:
        """Return the retention of memories under the lab's pack, clipped to 0..1; an undefined one is 1."""
        retention = Moment(self._state, self._pack, rows, instant)["retention"]
        return np.clip(np.nan_to_num(np.asarray(retention, dtype=np.float64), nan=1.0), 0.0, 1.0)


def _find_live(state: State) -> Rows:
    """Return the row numbers of recallable memories."""
    status = state.names["status"]
    wanted = [status.code(word) for word in RECALLABLE]
    return np.flatnonzero(np.isin(status.codes, wanted))


def _find_stale(state: State, rows: Rows, now: Micros, declared: str) -> Flags:
    """Return whether each memory is outdated.

    A memory is outdated if it is not recallable, is no longer valid, or states a single-valued property
    of which a later memory states another value. ``declared`` is the setting of single-valued
    properties.
    """
    if not len(rows):
        return np.zeros(0, dtype=np.bool_)
    stale = ~np.isin(rows, _find_live(state))
    ended = state.numbers["valid_until"].values[rows]
    stale |= (ended != NEVER) & (ended <= now)
    names = state.names
    for index, row in enumerate(rows.tolist()):
        predicate = names["predicate"].value_at(row)
        if predicate is None or not is_single_valued(predicate, declared):
            continue
        same = (names["subject"].codes == names["subject"].codes[row]) & (
            names["predicate"].codes == names["predicate"].codes[row]
        )
        other = (names["value"].codes != names["value"].codes[row]) | (
            names["object"].codes != names["object"].codes[row]
        )
        stale[index] |= bool((same & other)[row + 1 :].any())
    return stale


def _name_labs(names: list[str]) -> tuple[str, ...]:
    """Return a distinct name for each lab, with numbers for labs of the same pack."""
    return tuple(
        name if names.count(name) == 1 else f"{name} ({names[:index].count(name) + 1})"
        for index, name in enumerate(names)
    )


# The figure of a comparison.


# The panels: a column of the frame, its title, and the unit of its axis.
_PANELS = (
    ("live", "Memories in use", "memories"),
    ("junk", "Decayed and never useful", "share of memories in use"),
    ("stale", "Out of date when shown", "share of memories shown"),
    ("retained", "Retention of useful memories", "mean retention"),
)
# The lengths of dashes and gaps, in points.
_DASHES = ((5, 1.5), (1.5, 1.2), (6, 1.5, 1.5, 1.5), (3, 2.5), (6, 1.2, 1.2, 1.2, 1.2, 1.2))
_STYLES = ("-", *((0, dashes) for dashes in _DASHES))
"""The line styles of labs.

They differ, so that a line is visible through the gaps of another: several labs are often at 0
together.
"""


def figure(labs: Sequence[str], frame: pl.DataFrame, axes: Sequence[Axes] | None) -> Figure:
    """Draw one panel for each measure and one line for each lab.

    A line has gaps where a value is missing.
    """

    def draw(panels: Sequence[Axes]) -> None:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        for panel, (column, title, unit) in zip(panels, _PANELS, strict=True):
            for index, name in enumerate(labs):
                line = frame.filter(pl.col("lab") == name)
                panel.plot(
                    line["at"].to_list(),
                    line[column].cast(pl.Float64).fill_null(float("nan")).to_numpy(),
                    color=CYCLE[index % len(CYCLE)],
                    linestyle=_STYLES[index % len(_STYLES)],
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
        # In a figure of our own, the upper panels share the time axis of the lower panels.
        for panel in panels[2:] if axes is None else panels:
            locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
            panel.xaxis.set_major_locator(locator)
            panel.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        add_legend(panels, alone=axes is not None, ncols=min(6, len(labs)), handlelength=2.4)

    return draw_panels(
        draw, len(_PANELS), shape=(2, 2), width=9.6, height=5.8, axes=axes, sharex=True
    )
