"""Linking as a lab does it: what is about to be stored beside what is there, and later what waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import UnknownName
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Filters, Population, Question, Where
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import State, compact
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.linking.linked import Linked
from memlab.kernel.verbs.linking.paired_state import PairedState
from memlab.kernel.verbs.linking.resolving import linked
from memlab.kernel.verbs.linking.waiting import Waiting

__all__ = ["LINKING", "Comparing", "check_linking", "link_waiting", "linking_of", "waiting_of"]

LINKING = ("off", "now", "later")

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
        fresh = State.of_rows(compact(columns), texts, vectors, at=now, like=state)
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
        population = self._populate(project=project, session=None, filters=Filters(viewer=viewer, where=_NO_TURNS))
        embedded = state.embedded(population.rows)
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

    def _populate(self, *, project: str | None, session: str | None, filters: Filters) -> Population:
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


def check_linking(given: object) -> None:
    """UnknownName for what is no way of linking; None is the pack's."""
    if given is not None and given not in LINKING:
        raise UnknownName("way of linking", given, LINKING)


def linking_of(pack: Pack, given: str | None, columns: Mapping[str, list[Any]]) -> str:
    """When new memories are linked: as the caller says, or the pack. Turns alone are not linked at all."""
    how = str(pack.settings["linking"]) if given is None else given
    kinds = columns.get("kind")
    return "off" if kinds is not None and all(kind == "turn" for kind in kinds) else how
