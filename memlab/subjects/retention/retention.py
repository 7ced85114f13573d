"""``lab.upkeep``: what time does to memories, now, regularly, and to come."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.clock import When, datable, to_micros
from memlab.kernel.policies import Pack, load_pack
from memlab.kernel.verbs.core import Core, Memories
from memlab.subjects.retention.curves import Forecast
from memlab.subjects.retention.forecast import forecast
from memlab.subjects.retention.schedule import OnUpkeep, Schedule, Scheduler
from memlab.subjects.retention.upkeep import Upkeep, run_upkeep

if TYPE_CHECKING:
    from memlab.subjects.clusters.consolidation import LabConsolidation
    from memlab.subjects.index.index import LabIndex
    from memlab.subjects.programs.operations import LabOperations
    from memlab.subjects.review.review import LabReview

__all__ = ["LabUpkeep"]


class LabUpkeep:
    """``lab.upkeep``: record what time has done, on demand or by a schedule, and forecast what it will do."""

    def __init__(self, core: Core, scheduler: Scheduler) -> None:
        self._core, self._scheduler = core, scheduler

    @property
    def consolidation(self) -> LabConsolidation:
        """Summaries in the place of many old memories: run, list."""
        consolidation: LabConsolidation = self._core.made("consolidation")
        return consolidation

    @property
    def review(self) -> LabReview:
        """What may be wrong, superseded or stale, where a memory comes from, and gaps."""
        review: LabReview = self._core.made("review")
        return review

    @property
    def operations(self) -> LabOperations:
        """Run operations written as S-expressions, and see what memories propose."""
        operations: LabOperations = self._core.made("operations")
        return operations

    @property
    def index(self) -> LabIndex:
        """The search for neighbours, and how good it is."""
        index: LabIndex = self._core.made("index")
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
    def schedule(self, *, every: timedelta | None = None, on_upkeep: OnUpkeep | None = None) -> Schedule:
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
        begin, end = self._core.instant(at), datable(to_micros(until), "until=")
        if isinstance(packs, str | Path | Pack):
            packs = [packs]
        chosen = None if packs is None else [load_pack(pack) for pack in packs]
        with self._core.reading() as state:
            rows = np.array(sorted(self._core.rows(memories)), dtype=np.int64)
            if chosen is None:
                chosen = [self._core.pack]
            return forecast(state, chosen, rows, begin, end, points=points)
