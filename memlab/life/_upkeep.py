"""When clusters are due to be refined.

The hook between recalls and clustering: recalls only count, which costs them nothing, and whoever keeps clusters asks
``refine_due`` and, once they are refined, writes an event of kind ``refine``, from which the count begins anew.
"""

from __future__ import annotations

import numpy as np

from memlab.memory import Recalls, State
from memlab.policies import Pack
from memlab.schema import RELATIONS

__all__ = ["refine_due", "spanned"]

_IN_CLUSTER = RELATIONS.index("in-cluster")


def refine_due(state: State, pack: Pack) -> bool:
    """Whether clusters are to be refined: ``refine-every`` recalls were logged since they last were, or what the last
    recall showed spans clusters. Never where the setting is 0.
    """
    every, recalls = pack.count("refine-every"), _recalls(state)
    return bool(every) and (recalls.since_refined >= every or spanned(state, recalls.last) > 1)


def spanned(state: State, ids: tuple[int, ...]) -> int:
    """How many clusters these memories belong to."""
    met = state.edges.crossings(np.array(ids, dtype=np.int64) - 1)
    inside = met.outgoing & (state.edges.relation[met.edge] == _IN_CLUSTER)
    return len(np.unique(met.neighbour[inside]))


def _recalls(state: State) -> Recalls:
    found = state.registers["recalls"]
    assert isinstance(found, Recalls)
    return found
