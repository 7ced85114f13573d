"""Linking as a lab does it: what is about to be stored beside what is there, and later what waits."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import LabBusy, MemlabError
from memlab.kernel.base.threads import Background, Worker
from memlab.kernel.recall import Filters, Population, Question, Where
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import State, compact_columns
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.results import Linked
from memlab.subjects.linking.candidates import PairedState
from memlab.subjects.linking.resolving import linked
from memlab.subjects.linking.waiting import Waiting

__all__ = ["Comparing", "Linker", "link_waiting", "waiting_of"]


_AT_ONCE = 32
"""Memories linked in one transaction, in which nobody else writes: some 0.2 s beside 100,000 others."""


_NO_TURNS = Where.of(pl.col("kind") != "turn")


class Comparing:
    """How new memories of one lab are compared with old ones, under its pack as it is now."""

    def __init__(self, core: Core) -> None:
        core.store.refresh_index()
        self._core = core

    def before(
        self,
        columns: Mapping[str, list[Any]],
        edges: Mapping[str, Any] | None,
        texts: Sequence[str],
        vectors: NDArray[np.int8],
        *,
        first: int,
        now: int,
    ) -> Linked:
        """Of what is not stored yet: memories from the id ``first`` on, and the ``next`` edges that lead to them."""
        state = self._core.store.state
        fresh = State.from_rows(compact_columns(columns), texts, vectors, at=now, like=state)
        before = np.full(len(fresh), -1, dtype=np.int64)
        if edges is not None:
            before[np.asarray(edges["target"], dtype=np.int64) - first] = (
                np.asarray(edges["source"], dtype=np.int64) - 1
            )
        joint = PairedState(state, self._core.pack, now, fresh=fresh, before=before)
        kinds = fresh.names["kind"]
        return self._linked(joint, joint.size + np.flatnonzero(kinds.codes != kinds.code("turn")))

    def after(self, ids: range) -> Linked:
        """Of what is stored: those of these ids, one after the other, that take part in recall and are no turns."""
        state = self._core.store.state
        rows = np.arange(ids.start - 1, ids.stop - 1)
        status, kinds = state.names["status"], state.names["kind"]
        live = np.isin(status.codes[rows], [status.code(word) for word in RECALLABLE])
        rows = rows[live & (kinds.codes[rows] != kinds.code("turn"))]
        return self._linked(PairedState(state, self._core.pack, self._core.store.clock()), rows)

    def nearest(self, text: str, *, project: str | None, viewer: str | None = None) -> float | None:
        """Closeness of the nearest memory that a recall from this project may find; None where there is none.

        Turns are no memories in this sense: what was said is not yet known.
        """
        state = self._core.store.state
        population = self._populate(
            project=project, session=None, filters=Filters(viewer=viewer, where=_NO_TURNS)
        )
        embedded = state.drop_unembedded(population.rows)
        if not len(embedded):
            return None
        vector = self._core.store.embedder.encode([text])[0]
        search = {"rows": embedded} if state.unembedded else population.search
        _, cosine = state.vectors.top(vector, 1, **search)
        return float(self._core.store.embedder.closeness(cosine)[0])

    def _linked(self, joint: PairedState, rows: NDArray[np.int64]) -> Linked:
        pack = joint.pack
        return linked(
            joint,
            rows,
            self._populate,
            self._core.store.embedder.pair_closeness,
            count=int(pack.settings["link-candidates"]),
            gain=float(pack.settings["merge-gain"]),
            most=int(pack.settings["edges-per-node"]),
            bound=float(pack.settings["destroy-certainty"]),
        )

    def _populate(
        self, *, project: str | None, session: str | None, filters: Filters
    ) -> Population:
        question = Question("", at=0, project=project, session=session, filters=filters)
        return self._core.recaller.population(self._core.store.state, question)


def waiting_of(state: State) -> Waiting:
    """Which memories of a state wait to be linked."""
    return state.projection(Waiting)


def link_waiting(core: Core) -> bool:
    """Link the first memories that wait, in one transaction; False if none did.

    What waits is asked under the writer's lock, of a state that has seen every event, and the event that links them
    says so: whichever process or thread comes next goes on after them, and a process that is killed loses nothing.
    """
    store = core.store
    with store.writing() as tx:
        ids = waiting_of(store.state).first(_AT_ONCE)
        if not ids:
            return False
        body = Comparing(core).after(ids).body
        tx.event("link", {"upto": ids.stop - 1, **body}, at=store.clock())
    return True


# The worker that links in the background what was remembered with linking "later".


_GATHER = 0.2
"""Seconds that pass before what waits is linked: together, memories cost a quarter of what they cost one by one (5 ms
of processor time each beside 100,000, against 20)."""

_BREATH = 0.01
"""Seconds at least between two blocks, and as long as the block took: others get at the lab for half of the time."""

_RETRY = 1.0
"""Seconds until the next attempt where another process holds the lab."""


class Linker(Background):
    """One worker a lab, which begins when something waits for the first time.

    What waits is in the journal, so nothing is handed to the worker: it is woken, and asks. What is left when the lab
    is closed or the process dies is linked after the next opening. While the lab is embedded anew, all of it waits.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._worker = Worker(f"links {core.store.where}", self._step)
        self._error: MemlabError | None = None
        self._gathers = True
        """Nothing waited after the last block: what comes is given time to become more."""

    @property
    def waiting(self) -> list[int]:
        """The ids of the memories that wait, ascending."""
        return waiting_of(self._core.store.state).ids

    def wake(self) -> None:
        """Link what waits, soon; nothing happens where nothing waits or the lab cannot be written."""
        store = self._core.store
        if not store.journal.read_only and waiting_of(store.state):
            self._worker.wake()

    def link_all(self, timeout: float | None) -> bool:
        """Link here and now until nothing waits, for at most ``timeout`` seconds; whether nothing does."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._core.store.reading():
            if not waiting_of(self._core.store.state):
                return True
        while until is None or time.monotonic() < until:
            if not link_waiting(self._core):
                self._error = None
                return True
        return False

    @property
    def error(self) -> MemlabError | None:
        """Why the last block could not be linked in the background, None if it was."""
        return self._error

    def _step(self) -> float | None:
        """One block, if anything waits; the seconds until the next."""
        self._worker.pause(_GATHER if self._gathers else 0.0)
        began = time.monotonic()
        try:
            with self._core.store.reading() as state:
                if state.unembedded:
                    return _RETRY  # what has no vector yet would be missed
            more = not self._worker.stopping and link_waiting(self._core)
        except LabBusy as error:
            self._error = error
            return _RETRY
        except MemlabError as error:
            # a policy that cannot be asked, a full disk: it stays waiting, and link_all() raises the same
            self._error = error
            more = False
        else:
            self._error = None
        self._gathers = not more
        return max(_BREATH, time.monotonic() - began) if more else None
