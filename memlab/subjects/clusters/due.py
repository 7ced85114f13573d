"""When clusters are due to be refined.

Recalls only count, which costs them nothing, and whoever keeps clusters asks
``refine_due`` and, once they are refined, writes an event of kind ``refine``, from which the count restarts.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from memlab.kernel.journal import Event
from memlab.kernel.policies import Pack
from memlab.kernel.schema import RELATIONS
from memlab.kernel.state import MEMORY_ID, NUMBER, Field, Projection, State

__all__ = ["Recalls", "refine_due", "spanned"]

_IN_CLUSTER = RELATIONS.index("in-cluster")


class Recalls(Projection):
    """A count of logged recalls, which an event of kind ``refine`` sets back to nothing."""

    name: ClassVar[str] = "recalls"
    kinds: ClassVar[tuple[str, ...]] = ("recall", "refine")
    dumped: ClassVar[Field] = Field("tuple", items=(NUMBER, MEMORY_ID))
    exported: ClassVar[bool] = False

    def __init__(self) -> None:
        self.since_refined = 0
        self.last: tuple[int, ...] = ()
        """The ids that the last recall showed, best first; none once clusters were refined."""

    def fold(self, event: Event) -> None:
        if event.kind == "refine":
            self.since_refined, self.last = 0, ()
        else:
            self.since_refined, self.last = self.since_refined + 1, tuple(event.body["ids"])

    def dump(self) -> Any:
        return [self.since_refined, list(self.last)]

    def load(self, dumped: Any) -> None:
        self.since_refined, self.last = dumped[0], tuple(dumped[1])


def refine_due(state: State, pack: Pack, *, spanning: bool = True) -> bool:
    """Whether clusters are to be refined: ``refine-every`` recalls were logged since they last were, or, if
    ``spanning`` counts, what the last recall showed spans clusters. Never where the setting is 0.
    """
    every, recalls = pack.count("refine-every"), state.projection(Recalls)
    return bool(every) and (recalls.since_refined >= every or (spanning and spanned(state, recalls.last) > 1))


def spanned(state: State, ids: tuple[int, ...]) -> int:
    """How many clusters these memories belong to."""
    met = state.edges.crossings(np.array(ids, dtype=np.int64) - 1)
    inside = met.outgoing & (state.edges.relation[met.edge] == _IN_CLUSTER)
    return len(np.unique(met.neighbour[inside]))
