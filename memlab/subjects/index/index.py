"""``lab.upkeep.index``: the search for neighbours, how good it is, and how it is kept so."""

from __future__ import annotations

from collections.abc import Sequence

from memlab.kernel.base.arguments import Count, Seconds, Seed, checked
from memlab.kernel.base.printable import printable
from memlab.kernel.index import EXACT_UP_TO, IndexReport, report
from memlab.kernel.state import validate_text
from memlab.kernel.storage.store import Store

__all__ = ["LabIndex"]


class LabIndex:
    """``lab.upkeep.index``: the search for neighbours.

    Up to 100,000 memories that a filter admits are searched exactly; beyond, an index proposes, and what it proposes is
    scored exactly. The index is built in the background and never stale: what came later is searched
    exactly, and a file that is damaged or of other vectors is not used.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @checked
    def report(
        self,
        queries: Sequence[str] | None = None,
        *,
        n: Count = 10,
        sample: Count = 200,
        seed: Seed = 0,
        verify: bool = False,
        progress: bool = True,
    ) -> IndexReport:
        """Recall of the search against exact search, and what both cost.

        ``queries`` are best questions that people asked; without them stored memories look for their neighbours.
        ``verify`` also reads the whole index and all vectors for damage.
        """
        store = self._store
        with store.reading():
            store.neighbours.refresh(store.state.vectors)
        vectors = (
            None
            if queries is None
            else store.embedder.encode([validate_text(query) for query in queries])
        )
        return report(
            store.neighbours,
            vectors,
            n=n,
            sample=sample,
            seed=seed,
            verify=verify,
            progress=progress,
        )

    @checked
    def rebuild(self, *, wait: bool = True) -> bool:
        """Rebuild the index over all memories, whatever their number; whether it is in use afterwards."""
        with self._store.reading():
            self._store.neighbours.refresh(self._store.state.vectors)
        return self._store.neighbours.rebuild(wait=wait)

    @checked
    def wait(self, timeout: Seconds | None = None) -> bool:
        """Until a build that was started here has ended, at most ``timeout`` seconds; whether an index is in use."""
        return self._store.neighbours.wait(timeout)

    @property
    def building(self) -> bool:
        """Whether an index is being built."""
        return self._store.neighbours.building

    def __repr__(self) -> str:
        base, count = self._store.neighbours.base, len(self._store.state)
        if base is None:
            why = f": {self._store.neighbours.failure}" if self._store.neighbours.failure else ""
            return printable(
                f"<index: {count:,} memories, searched exactly (always up to {EXACT_UP_TO:,}){why}>"
            )
        return printable(f"<index: {base.header.kind}, {base.header.rows:,} of {count:,} memories>")
