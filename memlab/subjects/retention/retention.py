"""``lab.upkeep``: what time does to memories, now, regularly, and to come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from memlab.errors import InputError, MemlabError, ReadOnlyLab
from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.clock import When, check_instant, from_micros, to_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.base.threads import Background, Worker
from memlab.kernel.policies import Pack, load_pack
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.core import Core, Memories
from memlab.subjects.retention.forecast import Forecast, forecast
from memlab.subjects.retention.upkeep import Upkeep, run_upkeep

if TYPE_CHECKING:
    from memlab.subjects.clusters.consolidation import LabConsolidation
    from memlab.subjects.index.index import LabIndex
    from memlab.subjects.io.keeping import LabKeeping, Thinning, Usage
    from memlab.subjects.programs.operations import LabOperations
    from memlab.subjects.review.review import LabReview

__all__ = ["LabUpkeep", "OnUpkeep", "Schedule", "Scheduler"]


# -- a schedule: upkeep again and again, for as long as a process lives -----------------------------------------------


OnUpkeep = Callable[[Upkeep], None]

_LOOK = 30.0
"""Seconds between two looks at the clock: a machine that slept is late by no more than this."""

_LEAST, _MOST = timedelta(milliseconds=1), timedelta(days=365)


class Pace:
    """When the next pass is due, by two clocks: one that may be set, and one that may stand still while it sleeps.

    A pass is due when either says that ``seconds`` have gone by since the last one began. So a machine that slept
    through five of them makes one, and a clock that was set back holds up nothing.
    """

    def __init__(self, wall: float, steady: float) -> None:
        self.wall, self.steady = wall, steady

    def left(self, seconds: float, wall: float, steady: float) -> float:
        """Seconds until the next pass; none or fewer when it is due."""
        return seconds - max(wall - self.wall, steady - self.steady)


class Schedule(Background, Displayed):
    """Upkeep in the background; made by ``lab.upkeep.schedule``. ``stop`` it, or use it in a ``with``.

    One thread makes a pass at once and then one every ``every``; each is as of the lab's clock, and the waiting is by
    real time. Passes that fell into a time when the machine slept are made up for by one. A pass that fails is shown on
    standard error and kept as ``error`` until one succeeds; the next is made when it is due. A pass that is stopped
    writes the block that it is at, and the next pass of anyone does the rest.
    """

    def __init__(self, store: Store, every: timedelta | None, on_upkeep: OnUpkeep | None) -> None:
        if every is not None and not _LEAST <= every <= _MOST:
            raise InputError(
                f"every is a timedelta of 1 ms to 365 days, such as timedelta(hours=4), not {every!r}."
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
        """What lies between the beginnings of two passes: as given, or the live pack's ``upkeep-hours``."""
        if self._every is not None:
            return self._every
        return timedelta(hours=self._store.versions.pack.number("upkeep-hours"))

    @property
    def last(self) -> Upkeep | None:
        """What the last pass that succeeded found; None before the first."""
        return self._last

    @property
    def next(self) -> datetime | None:
        """When the next pass is due, in real time; None if it is stopped."""
        if not self.active:
            return None
        left = self._left()
        return datetime.now(UTC) + timedelta(seconds=max(left, 0.0))

    @property
    def error(self) -> MemlabError | None:
        """Why the last pass failed, None if it did not."""
        return self._error

    @property
    def passes(self) -> int:
        """How many passes were made, those that failed among them."""
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
        head, *rest = repr(self).split("\n")
        return head, self._last, rest[-1] if self._error is not None else None

    def _step(self) -> float:
        """A pass if one is due; the seconds until the next look at the clocks.

        ``every`` is asked at each look, since another pack may say another.
        """
        if self._pace is None or self._left() <= 0:
            self._pace = Pace(time.time(), time.monotonic())
            self._pass()
        return max(0.0, min(self._left(), _LOOK))

    def _left(self) -> float:
        return (
            0.0
            if self._pace is None
            else self._pace.left(self.every.total_seconds(), time.time(), time.monotonic())
        )

    def _pass(self) -> None:
        try:
            found = run_upkeep(
                self._store, self._store.clock(), stopped=lambda: self._worker.stopping
            )
        except MemlabError as error:
            if self._store.journal.closed:
                self._worker.stop_soon()
                return
            # the same trouble, as when another process holds the lab for long, is reported once
            if str(error) != str(self._error):
                at = from_micros(self._store.clock())
                print(
                    f"{at:%Y-%m-%d %H:%M:%S} upkeep of {self._store.where} failed: {error}",
                    file=sys.stderr,
                )
            self._error = error
            self._passes += 1
            return
        self._last, self._error = found, None
        self._passes += 1
        if self._on_upkeep is not None:
            self._on_upkeep(found)


class Scheduler:
    """The schedule of one lab; a second one takes the place of the first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._schedule: Schedule | None = None

    def start(self, every: timedelta | None, on_upkeep: OnUpkeep | None) -> Schedule:
        if self._store.journal.read_only:
            raise ReadOnlyLab(
                f"{self._store.where} was opened with read_only=True: upkeep writes down what it finds."
            )
        self.stop()
        self._schedule = Schedule(self._store, every, on_upkeep)
        return self._schedule

    def stop(self) -> None:
        """End it, and wait for the block that it is at."""
        if self._schedule is not None:
            self._schedule.stop()

    def stop_soon(self) -> None:
        """End it soon, without waiting: for a finalizer, which may run anywhere."""
        if self._schedule is not None:
            self._schedule.stop_soon()


class LabUpkeep:
    """``lab.upkeep``: record what time has done, on demand or by a schedule, and forecast what it will do."""

    def __init__(self, core: Core, scheduler: Scheduler) -> None:
        self._core, self._scheduler = core, scheduler

    @property
    def consolidation(self) -> LabConsolidation:
        """Summaries in the place of many old memories: run, list."""
        consolidation: LabConsolidation = self._core.component("consolidation")
        return consolidation

    @property
    def review(self) -> LabReview:
        """What may be wrong, superseded or stale, where a memory comes from, and gaps."""
        review: LabReview = self._core.component("review")
        return review

    @property
    def operations(self) -> LabOperations:
        """Run operations written as S-expressions, and see what memories propose."""
        operations: LabOperations = self._core.component("operations")
        return operations

    @property
    def index(self) -> LabIndex:
        """The search for neighbours, and how good it is."""
        index: LabIndex = self._core.component("index")
        return index

    @checked
    def maintain(self, now: When | None = None, *, progress: bool = True) -> Upkeep:
        """Record what time has done to memories as of ``now``: new statuses and labels, edges to be pruned.

        Nothing fades by being written to: ``retention`` is a closed form of time. What a pass writes are transitions.
        The live pack's ``promote`` and ``label`` are asked of every memory that takes part in recall, then ``forget``
        of these and of what was retracted; what is forgotten gets the status ``forgotten-as``. ``prune`` is asked of
        each edge but those to tags. Under "companion" a memory goes from vivid over clear and hazy to fragment and is
        softly deleted at no strength; under "factgraph" each memory, of whatever kind, is a fact: staged, confirmed at
        three accesses, or retracted and then cleaned up.

        A pass writes one event for each block of memories in which something changed, and none where nothing did. So
        a second pass at the same ``now`` writes nothing, and one that was killed is finished by the next. A memory that
        changed after ``now`` is left alone: a clock that runs backwards undoes and repeats nothing.

        Returns an ``Upkeep`` with its changes, and what was deleted for more than ``grace-days``. Raises ReadOnlyLab,
        and InputError if ``promote`` never settles on a status or ``now`` lies outside the years 1 to 9998.

        >>> lab.upkeep.maintain().counts                                                          # doctest: +SKIP
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
        """Preview what thinning the log of recalls removes, or apply it with ``consent``.

        Thinning works on whole segments of sealed slates. A thinned recall keeps its query, its scores, ranks and
        propensities, what was shown and what was judged, and loses the features of its candidates.

        Parameters
        ----------
        full_days
            Days that slates keep their features; 0 for good. Default: the setting of ``log_days``.
        thin_days
            Days that slates are kept at all; 0 for good. Default: the setting of ``log_days``.
        consent
            Whether to carry it out. Without it, nothing is changed.

        Returns
        -------
        Thinning
            What is removed, by segment, and which questions the log can no longer answer.

        Raises
        ------
        InputError
            If slates would be dropped before they lose their features.

        Examples
        --------
        >>> lab.upkeep.thin(full_days=400)                                                        # doctest: +SKIP
        """
        keeping: LabKeeping = self._core.component("keeping")
        return keeping.thin(full_days=full_days, thin_days=thin_days, consent=consent)

    @checked
    def log_days(
        self,
        full_days: Annotated[float, Within(0, 1e6)] | None = None,
        thin_days: Annotated[float, Within(0, 1e6)] | None = None,
    ) -> dict[str, float]:
        """Return for how many days this lab keeps its log, and set what is given; 0 is for good.

        Nothing is taken away by itself: ``thin`` does that, and says before which questions it ends.

        Parameters
        ----------
        full_days
            How long slates keep the features of their candidates.
        thin_days
            How long slates are kept at all.

        Raises
        ------
        InputError
            Where slates would be dropped before they lose their features.

        Examples
        --------
        >>> lab.upkeep.log_days(full_days=400)                                                    # doctest: +SKIP
        """
        keeping: LabKeeping = self._core.component("keeping")
        return keeping.log_days(full_days, thin_days)

    @checked
    def usage(self) -> Usage:
        """Return the disk space that each part of the lab uses, the largest part first.

        Examples
        --------
        >>> lab.upkeep.usage().frame                                                              # doctest: +SKIP
        """
        keeping: LabKeeping = self._core.component("keeping")
        return keeping.usage()

    @checked
    def schedule(
        self, *, every: timedelta | None = None, on_upkeep: OnUpkeep | None = None
    ) -> Schedule:
        """Do what ``maintain`` does in the background: at once and every ``every`` until ``stop`` or ``close``.

        Without ``every`` the live pack's ``upkeep-hours`` count, four hours for "companion". Each pass is as of the
        lab's clock; the waiting is by real time. ``on_upkeep`` is called, in the thread of the schedule, with each
        result. A second schedule takes the place of the first.

        Raises ReadOnlyLab, and InputError for another ``every``.

        >>> with lab.upkeep.schedule(every=timedelta(hours=1)) as schedule:                       # doctest: +SKIP
        ...     serve(lab)
        """
        return self._scheduler.start(every, on_upkeep)

    @checked
    def forecast(
        self,
        memories: Memories,
        until: When,
        *,
        points: Annotated[int, Within(2, 10_000)] = 100,
        packs: str | Path | Pack | Iterable[str | Path | Pack] | None = None,
        at: When | None = None,
    ) -> Forecast:
        """What becomes of memories from ``at`` (now) to ``until`` if nothing uses them; nothing is changed or logged.

        ``forecast.frame`` has retention, half-life, label and status at ``points`` instants, ``forecast.transitions``
        each change to the second, and ``forecast.figure()`` shows the curves. ``packs`` compares several, by name or
        path, in place of the live one: ``packs=memlab.packs()``.

        >>> lab.upkeep.forecast(hits[0], "2027-01-01", packs=["companion", "fsrs"]).figure()      # doctest: +SKIP
        """
        begin, end = self._core.instant(at), check_instant(to_micros(until), "until=")
        if isinstance(packs, str | Path | Pack):
            packs = [packs]
        chosen = None if packs is None else [load_pack(pack) for pack in packs]
        with self._core.reading() as state:
            rows = np.array(sorted(self._core.rows(memories)), dtype=np.int64)
            if chosen is None:
                chosen = [self._core.pack]
            return forecast(state, chosen, rows, begin, end, points=points)
