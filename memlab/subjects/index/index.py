"""``lab.upkeep.index``: the quality, rebuilding and state of the vector index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memlab.errors import InputError
from memlab.kernel.base.arguments import Count, Seconds, Seed, checked
from memlab.kernel.base.printable import printable
from memlab.kernel.index import BLOCK, EXACT_UP_TO, IndexReport, report
from memlab.kernel.state import validate_text
from memlab.kernel.storage.store import Store
from memlab.subjects.index.ways import compare_ways


class LabIndex:
    """``lab.upkeep.index``: the nearest-neighbour index of a lab.

    Up to 100,000 memories that pass a filter are searched exactly. Beyond that, an index proposes
    candidates, which are scored exactly. The index is built in the background. It is never stale:
    newer memories are searched exactly, and a damaged or outdated file is not used.

    Examples
    --------
    >>> import memlab
    >>> memlab.open().upkeep.index
    <index: 0 memories, searched exactly (always up to 100,000)>
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
        compare: bool = False,
    ) -> IndexReport:
        """Compare the index with exact search, and measure the memory and time of both.

        Parameters
        ----------
        queries
            The queries to search for, ideally real ones. By default, stored memories search for
            their neighbours.
        n
            The number of neighbours per query.
        sample
            The maximum number of stored memories that are used as queries.
        seed
            The seed of the sample.
        verify
            Whether to check the whole index and all vectors for damage, too.
        progress
            Whether to show a progress bar for work of more than a second.
        compare
            Whether to build and measure the other ways of search, too: exact search with SIMD (numkong), Annoy, usearch and
            faiss, as far as they are installed. Builds take 20 to 60 s for 100,000 memories.

        Returns
        -------
        IndexReport
            The recall of the index, and the durations of both searches.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
        >>> report = lab.upkeep.index.report(n=1, progress=False)
        """
        store = self._store
        with store.reading():
            store.neighbours.refresh(store.state.vectors)
        vectors = (
            None
            if queries is None
            else store.embedder.encode_queries([validate_text(query) for query in queries])
        )
        measured = report(
            store.neighbours,
            vectors,
            n=n,
            sample=sample,
            seed=seed,
            verify=verify,
            progress=progress,
        )
        if not compare:
            return measured
        stored = store.state.vectors.prefix(len(store.state.vectors) // BLOCK * BLOCK)
        if not len(stored):
            raise InputError(
                f"A comparison needs at least {BLOCK:,} memories, one block of an index, and the lab has "
                f"{len(store.state.vectors):,}. Up to {EXACT_UP_TO:,} memories, exact search is fast enough."
            )
        if vectors is None:
            drawn = np.random.default_rng(seed).choice(
                len(stored), min(sample, len(stored)), replace=False
            )
            vectors = stored.take(np.sort(drawn))
        ways, recommended = compare_ways(stored, vectors, n, store.neighbours.chosen or {})
        return replace(measured, ways=ways, recommended=recommended)

    @checked
    def rebuild(
        self, *, wait: bool = True, trees: Count | None = None, search_k: Count | None = None
    ) -> bool:
        """Rebuild the nearest-neighbour index, even if there are few memories.

        Parameters
        ----------
        wait
            Whether to wait until the build has ended.
        trees
            Number of trees of Annoy. More trees find more and take more memory. By default 25, or as before.
        search_k
            Number of nodes that a search of Annoy inspects. By default 40,000 for 100,000 memories and 90,000 for a
            million, or as before. Later builds keep both settings.

        Returns
        -------
        bool
            Whether an index is in use after the call.

        Raises
        ------
        InputError
            If there are fewer memories than one block of the index, which has 4,096.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.upkeep.index.rebuild()  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        memlab.errors.InputError: An index covers blocks of 4,096 rows; there are 0.
        """
        with self._store.reading():
            self._store.neighbours.refresh(self._store.state.vectors)
        wanted = {"trees": trees, "search_k": search_k}
        chosen = {name: value for name, value in wanted.items() if value is not None}
        if chosen:
            self._store.neighbours.chosen = {**(self._store.neighbours.chosen or {}), **chosen}
        return self._store.neighbours.rebuild(wait=wait)

    @checked
    def wait(self, timeout: Seconds | None = None) -> bool:
        """Wait until the running build ends.

        Parameters
        ----------
        timeout
            The maximum number of seconds to wait. By default there is no limit.

        Returns
        -------
        bool
            Whether an index is in use after the call.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().upkeep.index.wait(1.0)
        False
        """
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
