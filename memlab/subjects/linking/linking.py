"""Linking in a lab: new memories are compared before they are stored, or later."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import LabBusy, MemlabError
from memlab.kernel.base.arrays import Components, Ints
from memlab.kernel.base.threads import Background, Worker
from memlab.kernel.recall import Filters, Population, Question, Where
from memlab.kernel.schema import NEVER, RECALLABLE
from memlab.kernel.state import State, compact_columns
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.results import Linked
from memlab.subjects.linking.candidates import PairedState
from memlab.subjects.linking.resolving import decide_links
from memlab.subjects.linking.waiting import Waiting
from memlab.subjects.reading.denials import reports_change

_AT_ONCE = 32
"""The memories that are linked in one transaction.

In a lab of 100,000 memories, that blocks other writers for about 0.2 s.
"""


# Turns are utterances, not memories of what they state.
_NO_TURNS = Where.of(pl.col("kind") != "turn")


_CORRECTED = 20
"""The minimum neighbours of a correction: a statement and its correction share few words."""


def _may_correct(state: State, columns: Mapping[str, list[Any]], texts: Sequence[str]) -> bool:
    """Return whether any new row, except turns, corrects, reports a change, or is older than the lab's newest memory.

    Such an older row may be corrected already.
    """
    kinds = columns.get("kind") or [None] * len(texts)
    created = columns.get("created") or [None] * len(texts)
    newest = int(state.numbers["created"].values.max()) if len(state) else NEVER
    return any(
        kind == "correction" or (when is not None and when < newest) or reports_change(text)
        for kind, when, text in zip(kinds, created, texts, strict=True)
        if kind != "turn"
    )


class Comparing:
    """The comparison of new memories of a lab with old ones, under the active pack."""

    def __init__(self, core: Core) -> None:
        core.store.refresh_index()
        self._core = core

    def before(
        self,
        columns: Mapping[str, list[Any]],
        edges: Mapping[str, Any] | None,
        texts: Sequence[str],
        vectors: Components,
        *,
        first: int,
        now: int,
        corrections: bool = False,
    ) -> Linked | None:
        """Decide the links of memories before they get ids, which start at `first`.

        `edges` are the ``next`` edges that lead to the new memories. With `corrections`, the result
        is None unless a memory reports a change, or began before another memory of the lab.
        """
        state = self._core.store.state
        if corrections and not _may_correct(state, columns, texts):
            return None
        fresh = State.from_rows(compact_columns(columns), texts, vectors, at=now, like=state)
        before = np.full(len(fresh), -1, dtype=np.int64)
        if edges is not None:
            before[np.asarray(edges["target"], dtype=np.int64) - first] = (
                np.asarray(edges["source"], dtype=np.int64) - 1
            )
        joint = PairedState(state, self._core.pack, now, fresh=fresh, before=before)
        kinds = fresh.names["kind"]
        compared = kinds.codes != kinds.code("turn")
        if corrections:  # facts end facts by their fields
            compared &= fresh.names["predicate"].codes < 0
        return self._decide(joint, joint.size + np.flatnonzero(compared), corrections=corrections)

    def after(self, ids: range) -> Linked:
        """Decide which links to add to stored memories, in ascending order of memory id.

        Only recallable memories are compared, and turns are skipped.
        """
        state = self._core.store.state
        rows = np.arange(ids.start - 1, ids.stop - 1)
        status, kinds = state.names["status"], state.names["kind"]
        is_recallable = np.isin(status.codes[rows], [status.code(word) for word in RECALLABLE])
        rows = rows[is_recallable & (kinds.codes[rows] != kinds.code("turn"))]
        return self._decide(PairedState(state, self._core.pack, self._core.store.clock()), rows)

    def nearest(self, text: str, *, project: str | None, viewer: str | None = None) -> float | None:
        """Return the closeness of the retrievable memory nearest to a text, if there is one.

        `project` and `viewer` limit the memories. Turns do not count, because an utterance is not
        yet a memory of what it states.
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

    def _decide(self, joint: PairedState, rows: Ints, *, corrections: bool = False) -> Linked:
        """Decide the links of rows with the settings of the pack."""
        pack = joint.pack
        count = int(pack.settings["link-candidates"])
        return decide_links(
            joint,
            rows,
            self._populate,
            self._core.store.embedder.pair_closeness,
            count=max(count, _CORRECTED) if corrections else count,
            strength_gain=float(pack.settings["merge-gain"]),
            max_edges=int(pack.settings["edges-per-node"]),
            min_certainty=float(pack.settings["destroy-certainty"]),
            corrections=corrections,
        )

    def _populate(
        self, *, project: str | None, session: str | None, filters: Filters
    ) -> Population:
        """Return the memories that a recall with these filters can return."""
        question = Question("", at=0, project=project, session=session, filters=filters)
        return self._core.recaller.population(self._core.store.state, question)


def get_waiting(state: State) -> Waiting:
    """Return the register of memories that wait to be linked."""
    return state.projection(Waiting)


def link_waiting(core: Core) -> bool:
    """Link the first waiting memories in one transaction; return False if none wait.

    The memories are read under the writer's lock, from a state that has seen every event. The event
    that links them records the id of the last one. So other processes and threads continue after
    it, and a killed process loses nothing.
    """
    store = core.store
    with store.writing() as tx:
        ids = get_waiting(store.state).first(_AT_ONCE)
        if not ids:
            return False
        body = Comparing(core).after(ids).body
        tx.event("link", {"upto": ids.stop - 1, **body}, at=store.clock())
    return True


# Memories that were remembered with linking "later" are linked by a background worker.


_GATHER = 0.2
"""The seconds to wait for more memories.

In a lab of 100,000 memories, a memory in a block costs 5 ms of CPU, a single memory 20 ms.
"""

_BREATH = 0.01
"""The minimum pause between two blocks, in seconds.

The pause is as long as the block took, if that is longer, so that other threads get half of the
time.
"""

_RETRY = 1.0
"""The seconds until the next attempt while another process holds the lab."""


class Linker(Background):
    """The background worker of a lab that links waiting memories.

    The worker starts when a memory waits for the first time. The journal records which memories
    wait, so the worker reads them itself after it is woken. Memories that still wait when the lab
    is closed or the process dies are linked after the next opening. While the lab is embedded
    again, all memories wait.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._worker = Worker(f"links {core.store.where}", self._step)
        self._error: MemlabError | None = None
        self._gathers = True
        """Whether no memory waited after the last block, so that the worker first waits for more."""

    @property
    def waiting(self) -> list[int]:
        """The ids of the waiting memories, ascending."""
        return get_waiting(self._core.store.state).ids

    def wake(self) -> None:
        """Start linking waiting memories in the background if the lab is writable."""
        store = self._core.store
        if not store.journal.read_only and get_waiting(store.state):
            self._worker.wake()

    def link_all(self, timeout: float | None) -> bool:
        """Link memories until none wait; return whether none wait.

        The call gives up after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._core.store.reading():
            if not get_waiting(self._core.store.state):
                return True
        while deadline is None or time.monotonic() < deadline:
            if not link_waiting(self._core):
                self._error = None
                return True
        return False

    @property
    def error(self) -> MemlabError | None:
        """The error that stopped background linking, or None if linking did not stop."""
        return self._error

    def _step(self) -> float | None:
        """Link one block of waiting memories; return the seconds until the next block, or None if none waits.

        A failed step is stored as the error of the worker. While vectors are missing or the lab is busy, the step
        is retried.
        """
        self._worker.pause(_GATHER if self._gathers else 0.0)
        began = time.monotonic()
        try:
            with self._core.store.reading() as state:
                if state.unembedded:
                    return _RETRY  # memories without a vector would be missed
            has_more = not self._worker.stopping and link_waiting(self._core)
        except LabBusy as error:
            self._error = error
            return _RETRY
        except MemlabError as error:
            # a policy failed or the disk is full: the memories still wait, and link_all() raises the same error
            self._error = error
            has_more = False
        else:
            self._error = None
        self._gathers = not has_more
        return max(_BREATH, time.monotonic() - began) if has_more else None
