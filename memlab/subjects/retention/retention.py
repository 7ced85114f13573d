"""Upkeep of a lab, now, regularly and in a forecast: ``lab.upkeep``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import numpy as np

from memlab.errors import InputError, MemlabError, ReadOnlyLab
from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.clock import When, check_instant, from_micros, to_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.base.threads import Background, Worker
from memlab.kernel.policies import PolicyLike, as_packs
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.core import Core, Memories
from memlab.subjects.retention.forecast import Forecast, compute_forecast
from memlab.subjects.retention.upkeep import Upkeep, run_upkeep

if TYPE_CHECKING:
    from memlab.subjects.clusters.consolidation import LabConsolidation
    from memlab.subjects.index.index import LabIndex
    from memlab.subjects.io.keeping import LabKeeping, Thinning, Usage
    from memlab.subjects.programs.operations import LabOperations
    from memlab.subjects.review.review import LabReview

OnUpkeep = Callable[[Upkeep], None]

_LOOK = 30.0
"""Seconds between two checks of the clock: after a sleep of the machine, a pass is late by at most this time."""

# The shortest and longest interval between passes.
_LEAST, _MOST = timedelta(milliseconds=1), timedelta(days=365)


class Pace:
    """The time of the next pass, by the wall clock and by a monotonic clock.

    A pass is due when either clock says that enough seconds have passed since the last one began.
    The monotonic clock may stop while a machine sleeps, and the wall clock may be set back.
    """

    def __init__(self, wall: float, steady: float) -> None:
        self.wall, self.steady = wall, steady

    def left(self, seconds: float, wall: float, steady: float) -> float:
        """Return the seconds until the next pass, which are at most 0 if the pass is due."""
        return seconds - max(wall - self.wall, steady - self.steady)


class Schedule(Background, Displayed):
    """Upkeep in the background, created by ``lab.upkeep.schedule``.

    Call ``stop``, or use the schedule in a ``with`` block. A thread makes the first pass at once
    and the next one after each period ``every``. Each pass uses the lab's clock; the waiting uses
    real time. Passes that were missed while the machine slept are replaced by one. A failed pass is
    printed on standard error and kept as ``error`` until a pass succeeds. A pass that is stopped
    finishes its current block, and the next pass continues.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> with lab.upkeep.schedule() as schedule:
    ...     schedule.every
    datetime.timedelta(seconds=14400)
    """

    def __init__(self, store: Store, every: timedelta | None, on_upkeep: OnUpkeep | None) -> None:
        if every is not None and not _LEAST <= every <= _MOST:
            raise InputError(
                f"every must be a timedelta of 1 ms to 365 days, such as timedelta(hours=4), not {every!r}."
            )
        self._store, self._every, self._on_upkeep = store, every, on_upkeep
        self._last: Upkeep | None = None
        self._error: MemlabError | None = None
        self._passes = 0
        self._pace: Pace | None = None
        self._worker = Worker(f"upkeep of {store.where}", self._step)
        self._worker.start()

    @property
    def every(self) -> timedelta:
        """The time between two passes, by default the pack's setting ``upkeep-hours``."""
        if self._every is not None:
            return self._every
        return timedelta(hours=self._store.versions.pack.number("upkeep-hours"))

    @property
    def last(self) -> Upkeep | None:
        """The result of the last successful pass, or None before the first pass."""
        return self._last

    @property
    def next(self) -> datetime | None:
        """The real time of the next pass, or None if the schedule is stopped."""
        if not self.active:
            return None
        left = self._left()
        return datetime.now(UTC) + timedelta(seconds=max(left, 0.0))

    @property
    def error(self) -> MemlabError | None:
        """The error of the last pass, or None if the pass succeeded."""
        return self._error

    @property
    def passes(self) -> int:
        """The number of passes, including failed passes."""
        return self._passes

    def __repr__(self) -> str:
        due = self.next
        state = (
            "stopped" if due is None else f"every {self.every}, next at {due:%Y-%m-%d %H:%M:%S} UTC"
        )
        lines = [f"<Schedule of upkeep: {state}, {self._passes} passes>"]
        lines += [repr(self._last)] if self._last is not None else []
        lines += [f"the last pass failed: {self._error}"] if self._error is not None else []
        return printable("\n".join(lines))

    def _display(self) -> object:
        """Return the schedule and the result of its last pass for a notebook."""
        title, *rest = repr(self).split("\n")
        return title, self._last, rest[-1] if self._error is not None else None

    def _step(self) -> float:
        """Make a pass that is due; return the seconds until the next check.

        ``every`` is read at each check, because another pack may change it.
        """
        if self._pace is None or self._left() <= 0:
            self._pace = Pace(time.time(), time.monotonic())
            self._pass()
        return max(0.0, min(self._left(), _LOOK))

    def _left(self) -> float:
        """Return the seconds until the next pass."""
        return (
            0.0
            if self._pace is None
            else self._pace.left(self.every.total_seconds(), time.time(), time.monotonic())
        )

    def _pass(self) -> None:
        """Make one pass of upkeep, and keep its result or its error."""
        try:
            result = run_upkeep(
                self._store, self._store.clock(), is_stopped=lambda: self._worker.stopping
            )
        except MemlabError as error:
            if self._store.journal.closed:
                self._worker.stop_soon()
                return
            # a repeated error, for example while another process holds the lab, is printed once
            if str(error) != str(self._error):
                at = from_micros(self._store.clock())
                print(
                    f"{at:%Y-%m-%d %H:%M:%S} upkeep of {self._store.where} failed: {error}",
                    file=sys.stderr,
                )
            self._error = error
            self._passes += 1
            return
        self._last, self._error = result, None
        self._passes += 1
        if self._on_upkeep is not None:
            self._on_upkeep(result)


class Scheduler:
    """The schedule of one lab; a new one replaces the former."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._schedule: Schedule | None = None

    def start(self, every: timedelta | None, on_upkeep: OnUpkeep | None) -> Schedule:
        """Start a schedule, and stop the schedule that ran before."""
        if self._store.journal.read_only:
            raise ReadOnlyLab(
                f"{self._store.where} was opened with read_only=True, and upkeep writes changes. "
                "Open it without read_only."
            )
        self.stop()
        self._schedule = Schedule(self._store, every, on_upkeep)
        return self._schedule

    def stop(self) -> None:
        """Stop the schedule, and wait for its current block."""
        if self._schedule is not None:
            self._schedule.stop()

    def stop_soon(self) -> None:
        """Stop the schedule without waiting for its current block."""
        if self._schedule is not None:
            self._schedule.stop_soon()


class LabUpkeep:
    """Upkeep of a lab, on demand or by a schedule, and forecasts: ``lab.upkeep``.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> lab.upkeep.maintain().complete
    True
    """

    def __init__(self, core: Core, scheduler: Scheduler) -> None:
        self._core, self._scheduler = core, scheduler

    @property
    def consolidation(self) -> LabConsolidation:
        """The accessor for summaries that replace many old memories."""
        consolidation: LabConsolidation = self._core.component("consolidation")
        return consolidation

    @property
    def review(self) -> LabReview:
        """The accessor for doubtful and stale memories, their origins, and open gaps."""
        review: LabReview = self._core.component("review")
        return review

    @property
    def operations(self) -> LabOperations:
        """The accessor for operations, which are S-expressions that change a lab."""
        operations: LabOperations = self._core.component("operations")
        return operations

    @property
    def index(self) -> LabIndex:
        """The accessor for the nearest-neighbour index and its quality."""
        index: LabIndex = self._core.component("index")
        return index

    @checked
    def maintain(self, now: When | None = None, *, progress: bool = True) -> Upkeep:
        """Apply decay as of `now`: change statuses and labels, and prune edges.

        Decay itself is not stored: the policy ``retention`` computes it from the elapsed time. A
        pass stores changes of status, changes of label and removed edges. The active pack's
        ``promote`` and ``label`` policies decide about every memory in recall, and ``forget`` also
        about retracted ones. Forgotten memories get the status ``forgotten-as``. ``prune`` decides
        about each edge, except edges to tags. Under "companion" a memory becomes clear, hazy and a
        fragment, and is deleted softly at the end. Under "factgraph" each memory is staged,
        confirmed at three accesses, or retracted and then cleaned up.

        A pass writes one event per block of memories with changes. A second pass at the same `now`
        writes nothing, and a killed pass is finished by the next one. Memories that changed after
        `now` are left alone, so a clock that was set back changes nothing twice.

        Parameters
        ----------
        now
            The instant of the pass; by default the time of the lab's clock.
        progress
            Whether to show a progress bar for large labs.

        Returns
        -------
        The changes, and the memories that were deleted more than ``grace-days`` ago.

        Raises
        ------
        ReadOnlyLab
            If the lab was opened read-only.
        InputError
            If ``promote`` never settles on a status, or `now` is outside the years 1 to 9998.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The goat eats hay.")
        >>> lab.upkeep.maintain().counts.select("what", "to", "memories").rows()
        [('label', 'vivid', 1)]
        """
        return run_upkeep(self._core.store, self._core.instant(now, name="now="), progress=progress)

    @checked
    def thin(
        self,
        *,
        full_days: Annotated[float, Within(0, 1e6)] | None = None,
        thin_days: Annotated[float, Within(0, 1e6)] | None = None,
        consent: bool = False,
    ) -> Thinning:
        """Preview the thinning of the recall log, or thin the log with `consent`.

        Thinning removes whole segments of sealed slates. A thinned recall keeps its query, scores,
        ranks, propensities, results and feedback, and loses the features of its candidates.

        Parameters
        ----------
        full_days
            Days for which slates keep their features; 0 keeps them permanently. By default the setting of
            ``log_days``.
        thin_days
            Days for which slates are kept at all; 0 keeps them permanently. By default the setting of
            ``log_days``.
        consent
            Whether to thin the log. By default nothing is changed.

        Returns
        -------
        The removed segments, and the questions that the log could no longer answer.

        Raises
        ------
        InputError
            If slates would be removed before they lose their features.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.upkeep.thin(full_days=400).done
        False
        """
        keeping: LabKeeping = self._core.component("keeping")
        return keeping.thin(full_days=full_days, thin_days=thin_days, consent=consent)

    @checked
    def log_days(
        self,
        full_days: Annotated[float, Within(0, 1e6)] | None = None,
        thin_days: Annotated[float, Within(0, 1e6)] | None = None,
    ) -> dict[str, float]:
        """Set and return the numbers of days for which the lab keeps its log.

        Nothing is removed automatically: ``thin`` applies these limits to the log, and shows the
        consequences first.

        Parameters
        ----------
        full_days
            Days for which slates keep the features of their candidates; 0 keeps them permanently.
        thin_days
            Days for which slates are kept at all; 0 keeps them permanently.

        Returns
        -------
        The present settings.

        Raises
        ------
        InputError
            If slates would be removed before they lose their features.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().upkeep.log_days(full_days=400)["full_days"]
        400.0
        """
        keeping: LabKeeping = self._core.component("keeping")
        return keeping.log_days(full_days, thin_days)

    @checked
    def usage(self) -> Usage:
        """Return the disk space of each part of the lab, in descending order of size.

        Returns
        -------
        The space, with one row per part in ``frame``.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The goat eats hay.")
        >>> lab.upkeep.usage().frame.columns
        ['what', 'count', 'bytes']
        """
        keeping: LabKeeping = self._core.component("keeping")
        return keeping.usage()

    @checked
    def schedule(
        self, *, every: timedelta | None = None, on_upkeep: OnUpkeep | None = None
    ) -> Schedule:
        """Run ``maintain`` in the background until ``stop`` or ``lab.close``.

        The first pass begins at once. A new schedule replaces the former one.

        Parameters
        ----------
        every
            The time between two passes, from 1 ms to 365 days; by default the active pack's
            ``upkeep-hours``, which is four hours in "companion".
        on_upkeep
            A function that is called with the result of each pass, in the thread of the schedule.

        Returns
        -------
        The schedule, which is also a context manager.

        Raises
        ------
        ReadOnlyLab
            If the lab was opened read-only.
        InputError
            If `every` is out of range.

        Examples
        --------
        >>> import memlab
        >>> from datetime import timedelta
        >>> lab = memlab.open()
        >>> with lab.upkeep.schedule(every=timedelta(hours=1)) as schedule:
        ...     schedule.active
        True
        """
        return self._scheduler.start(every, on_upkeep)

    @checked
    def forecast(
        self,
        memories: Memories,
        until: When,
        *,
        points: Annotated[int, Within(2, 10_000)] = 100,
        packs: PolicyLike | None = None,
        at: When | None = None,
    ) -> Forecast:
        """Forecast memories until an instant, assuming that nothing uses them.

        Nothing is changed or logged.

        Parameters
        ----------
        memories
            The memories, as ids, results or a frame.
        until
            The end of the forecast.
        points
            The number of instants, from 2 to 10,000.
        packs
            Packs to compare, in any form, or policies that replace those of their slot in the
            active pack. Default: the active pack.
        at
            The beginning of the forecast; by default now.

        Returns
        -------
        ``frame`` has the retention, half-life, label and status at each instant, and ``transitions`` each
        change to the second. ``figure()`` draws the curves.

        Raises
        ------
        InputError
            If `until` is not after `at`, or the forecast would be too large.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The goat eats hay.")
        >>> future = lab.upkeep.forecast(1, "2100-01-01", points=2, packs=["companion", "fsrs"])
        >>> future.frame.height
        4
        """
        start, end = self._core.instant(at), check_instant(to_micros(until), "until=")
        loaded = as_packs(self._core.pack if packs is None else packs, lambda: self._core.pack)
        with self._core.reading() as state:
            rows = np.array(sorted(self._core.rows(memories)), dtype=np.int64)
            return compute_forecast(state, loaded, rows, start, end, points=points)
