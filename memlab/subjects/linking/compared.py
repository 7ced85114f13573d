"""Pairs of memories with the results of the policies ``link`` and ``resolve``."""

from __future__ import annotations

import numpy as np

from memlab.kernel.base.arrays import Flags, Ints
from memlab.kernel.policies import Pack
from memlab.subjects.linking.pairs import Pairs
from memlab.subjects.reading.claims import difference


class ComparedPairs:
    """The pairs of a block of new rows, with the results of the policies.

    Attributes
    ----------
    new, old
        The new row and the other row of each pair. In ``pairs``, the memory with the later valid
        time is the new one.
    late
        Whether the other row has the later valid time, so that the new row was stored late.
    rank
        The rank of the other row among the neighbours of the new row, from 1.
    relation, resolution, weight
        The results of ``link`` and ``resolve``, and the weight of the edge that may join the pair.
    """

    def __init__(self, new: Ints, old: Ints, pairs: Pairs, late: Flags, pack: Pack) -> None:
        self.new, self.old, self.pairs, self.late = new, old, pairs, late
        self.relation = pairs.ask(pack.policies["link"])
        self.resolution = np.full(len(pairs), "keep-both", dtype=object)
        self.weight = np.clip(np.nan_to_num(pairs.closeness), 0.0, 1.0)

    def word(self, pair: int) -> str:
        """Return the relation that ``link`` gave to a pair."""
        return str(self.relation[pair])

    def texts(self, pair: int) -> tuple[str, str]:
        """Return the texts of the later and the earlier memory of a pair."""
        first, second = self.pairs.first[pair], self.pairs.second[pair]
        return self.pairs.new.texts[first], self.pairs.old.texts[second]

    def write_reason(self, pair: int) -> str:
        """Return the reason to record when the earlier memory of a pair ends."""
        later, earlier = self.texts(pair)
        return f"Updated: {difference(earlier, later)}"

    def describe(self, pair: int) -> str:
        """Return the relation and closeness of a pair as text."""
        return f"{self.word(pair)}, closeness {self.weight[pair]:.2f}"

    def keep_both(self, selected: Ints, relation: str) -> None:
        """Keep both memories of the selected pairs, and set their relation."""
        self.resolution[selected] = "keep-both"
        self.relation[selected] = relation

    def find_resolved(self) -> Ints:
        """Return the indices of the pairs in which only one memory stays."""
        return np.flatnonzero(self.resolution != "keep-both")

    def is_merging(self, selected: Ints) -> Flags:
        """Return a mask of the selected pairs that are duplicates to merge."""
        return np.asarray(
            (self.resolution[selected] == "merge") & (self.relation[selected] == "duplicate")
        )
