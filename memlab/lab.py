"""``Lab``: every verb that a person uses, each a few lines that call a room below."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import polars as pl

from memlab.clock import Clock, When, system_clock, to_micros
from memlab.embedding import Embedder, EmbedderSpec, load_embedder
from memlab.errors import InputError, UnknownName
from memlab.lab_graph import LabTrace, activated, traced
from memlab.lab_index import LabIndex
from memlab.lab_policies import LabPolicies
from memlab.lab_recall import LabRecalls
from memlab.lab_remember import chained, compact, refuse_names
from memlab.lab_results import Feedback, Memory, Remembered
from memlab.lab_watch import OnChange, Watch, Watches
from memlab.memory import State, as_said, checked_columns, checked_text, columns_of
from memlab.policies import DEFAULT_PACK, Pack, load_pack
from memlab.privacy import Finding, refuse, screen_many
from memlab.recall import Filters, Hit, Hits, WordOrWords
from memlab.schema import OUTCOMES, RELATIONS
from memlab.slates import Slates
from memlab.store import Store
from memlab.structure import Stats, stats

__all__ = ["Lab", "open_lab"]


def open_lab(
    path: str | Path | None = None,
    *,
    pack: str | Path | Pack | None = None,
    embedder: EmbedderSpec = None,
    clock: Clock = system_clock,
    seed: int = 0,
    read_only: bool = False,
    reembed: bool = False,
    index: str = "annoy",
) -> Lab:
    """Open the lab in the directory ``path``, or a new one there; without a path, a lab in memory.

    ``pack`` is used from now on (a new lab starts with "memlab"). ``embedder`` is the shipped static model, or a
    model2vec folder or hub name, or a callable from texts to vectors. A lab that holds vectors of another embedder
    is refused, unless ``reembed=True`` embeds every memory anew.

    ``seed`` decides, with what the lab has seen, which probes are drawn. ``index`` is what proposes neighbours among
    more than 100,000 memories: "annoy", or "graph" (an extra).

    Raises NotALab, NewerLab, DamagedLab, ReadOnlyLab, EmbedderMismatch, MissingExtra.

    >>> with open_lab() as lab:
    ...     _ = lab.remember("The user prefers tabs", kind="preference")
    ...     lab.recall("tabs or spaces?")[0].text
    'The user prefers tabs'
    """
    return Lab(
        path,
        pack=pack,
        embedder=embedder,
        clock=clock,
        seed=seed,
        read_only=read_only,
        reembed=reembed,
        index=index,
    )


class Lab:
    """A memory: its journal, the state folded from it, and the pack that decides. Use ``memlab.open``."""

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        pack: str | Path | Pack | None = None,
        embedder: EmbedderSpec = None,
        clock: Clock = system_clock,
        seed: int = 0,
        read_only: bool = False,
        reembed: bool = False,
        index: str = "annoy",
    ) -> None:
        chosen = load_pack(pack) if pack is not None else None
        folder = None if path is None else Path(path).expanduser()
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
            raise InputError(f"A seed is a whole number of at least 0, not {seed!r}.")
        self._store = Store(folder, load_embedder(embedder), clock, read_only=read_only, reembed=reembed, index=index)
        self._recalls = LabRecalls(self._store, seed)
        self._watches = Watches(self._store)
        weakref.finalize(self, self._watches.let_go)
        try:
            if chosen is not None or self._store.versions.empty:
                self.use(chosen or DEFAULT_PACK)
        except BaseException:
            self._store.journal.close()
            raise

    # -- remembering ------------------------------------------------------------------------------------------

    def remember(self, text: str, *, at: When | None = None, chain: bool = False, **fields: Any) -> Memory:
        """Remember one text; durable when it returns.

        ``fields`` are those of ``memlab.FIELDS``: kind, tags, project, session, speaker, importance, ref, ...
        ``chain=True`` links it by a ``next`` edge to the last memory of its session.

        >>> lab.remember("Deploys go out on Tuesdays", kind="convention", project="api")   # doctest: +SKIP
        """
        row = {"text": text, **fields}
        if at is not None:
            row["at"] = at
        return self.remember_many([row], chain=chain)[0]

    def remember_many(
        self, rows: Iterable[Mapping[str, Any] | str] | pl.DataFrame, *, chain: bool = False
    ) -> Remembered:
        """Remember several at once: one transaction, one event, all or nothing.

        ``rows`` are dicts of ``text`` and any of ``memlab.FIELDS`` and ``at``, or texts, or a Polars frame with
        those columns. ``chain=True`` links consecutive memories of a session by ``next`` edges.
        """
        columns = columns_of(rows)
        count = len(next(iter(columns.values()), ()))
        if not count:
            return self._remembered(range(0), ())
        now = self._store.clock()
        columns = checked_columns(columns, now=now)
        screenings = screen_many(columns.pop("text"))
        texts = [screening.text for screening in screenings]
        refuse_names(columns)
        speakers = columns.get("speaker") or [None] * count
        vectors = self._store.embedder.encode([as_said(*said) for said in zip(texts, speakers, strict=True)])
        with self._store.writing() as tx:
            first = len(self._store.state) + 1
            ids = range(first, first + count)
            body: dict[str, Any] = {"first": first, "count": count, "columns": compact(columns)}
            if chain:
                body["edges"] = chained(self._store.state, columns, first, count)
            tx.payloads(ids, texts)
            tx.vectors(first, self._store.embedder.fingerprint, vectors)
            tx.event("remember", body, at=now)
        findings = tuple((ids[row], found) for row, screening in enumerate(screenings) for found in screening.findings)
        self._store.snapshot_if_due()
        return self._remembered(ids, findings)

    extend = remember_many

    def _remembered(self, ids: range, redacted: tuple[tuple[int, Finding], ...]) -> Remembered:
        return Remembered(self.__getitem__, lambda: self.memories, ids, redacted)

    def link(
        self,
        source: Memory | Hit | int,
        target: Memory | Hit | int,
        relation: str = "relates-to",
        *,
        weight: float = 1.0,
    ) -> None:
        """Join two memories by an edge."""
        if relation not in RELATIONS:
            raise UnknownName("relation", relation, RELATIONS)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
            raise InputError(f"The weight of an edge lies in 0..1, not {weight!r}.")
        with self._store.writing() as tx:
            ends = self._row(source) + 1, self._row(target) + 1
            if ends[0] == ends[1]:
                raise InputError(f"Memory {ends[0]} cannot be linked to itself.")
            edges = {"source": [ends[0]], "target": [ends[1]], "relation": relation, "weight": float(weight)}
            tx.event("link", {"edges": edges}, at=self._store.clock())

    def forget(self, memory: Memory | Hit | int) -> None:
        """Take a memory out of every recall; ``restore`` brings it back."""
        self._set_status(memory, "forgotten")

    def restore(self, memory: Memory | Hit | int) -> None:
        """Undo ``forget``."""
        self._set_status(memory, "active")

    def _set_status(self, memory: Memory | Hit | int, status: str) -> None:
        with self._store.writing() as tx:
            tx.event("status", {"ids": [self._row(memory) + 1], "status": status}, at=self._store.clock())

    # -- recalling --------------------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        project: str | None = None,
        session: str | None = None,
        branch: WordOrWords = None,
        scope: WordOrWords = None,
        visibility: WordOrWords = None,
        status: WordOrWords = None,
        viewer: str | None = None,
        where: pl.Expr | None = None,
        at: When | None = None,
        log: bool = True,
    ) -> Hits:
        """The memories that the live pack puts first for ``query``: at most ``limit``, and now and then a probe.

        A probe (``hit.probe``, always last) comes from just below, at the pack's ``probe-rate``, so that the log can
        tell what another policy would have been worth. ``at`` is the time of asking. The slate is logged and what was
        shown gains an access, unless ``log=False`` or the lab is read-only; then nothing is explored either.

        What takes part: ``project`` and ``branch`` also admit what belongs to none; ``scope``, ``visibility`` and
        ``status`` (instead of active, staged and confirmed) take one word or several. ``viewer``, who asks, leaves out
        what is private to another creator. ``where`` is any Polars expression over the columns of ``lab.memories``,
        true or false for each of them; aggregates range over all. What is left out counts in no statistic either.

        >>> lab.recall("release", where=pl.col("tags").list.contains("ci"), status=["active", "superseded"]) \
        ... # doctest: +SKIP
        """
        filters = Filters.of(
            branch=branch, scope=scope, visibility=visibility, status=status, viewer=viewer, where=where
        )
        return self._recalls.ask(query, limit=limit, project=project, session=session, filters=filters, at=at, log=log)

    def similar(
        self,
        memory: Memory | Hit | int,
        *,
        limit: int = 10,
        project: str | None = None,
        where: pl.Expr | None = None,
    ) -> pl.DataFrame:
        """The memories nearest to one of them by the cosine of their vectors, best first; nothing is logged.

        Columns: ``rank``, ``memory_id``, ``similarity`` (-1..1), ``text``, ``kind``, ``ref``, ``speaker``, ``session``,
        ``project``. What recall does not admit (forgotten, superseded, retracted; bound to another session) is left
        out, and ``project`` and ``where`` are those of ``recall``. UnknownName for an id that nothing has.

        >>> lab.similar(hits[0], where=pl.col("kind") == "decision")                       # doctest: +SKIP
        """
        with self._reading():
            row = self._row(memory)
        return self._recalls.similar(row, limit=limit, project=project, filters=Filters.of(where=where))

    def feedback(
        self,
        hit: Hit | Memory | int,
        outcome: str | None = None,
        *,
        reward: float | None = None,
        source: str = "user",
        at: When | None = None,
    ) -> Feedback:
        """Say how a memory that was shown did: ``"success"``, ``"fail"``, or a ``reward``; durable when it returns."""
        if outcome is None and reward is None:
            raise InputError('Feedback needs an outcome, "success" or "fail", or a reward.')
        if outcome is not None and outcome not in OUTCOMES:
            raise UnknownName("outcome", outcome, OUTCOMES)
        if reward is not None and (
            isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward)
        ):
            raise InputError(f"A reward is a finite number, not {reward!r}.")
        refuse(checked_text(source, where="source"), "the source of feedback")
        now = self._store.clock() if at is None else to_micros(at)
        decision = hit.decision if isinstance(hit, Hit) else None
        with self._store.writing() as tx:
            memory = self._row(hit) + 1
            body = {"decision": decision, "memory": memory, "outcome": outcome, "reward": reward, "source": source}
            if isinstance(hit, Hit):
                body |= {"pack": hit._hits.pack.hash, "probe": hit.probe}
            seq = tx.event("feedback", body, at=now)
        return Feedback(seq, decision, memory, outcome, reward, source)

    # -- policies ---------------------------------------------------------------------------------------------

    @property
    def pack(self) -> Pack:
        """The live pack."""
        with self._reading():
            return self._store.versions.pack

    def use(self, pack: str | Path | Pack, *, reason: str = "") -> Pack:
        """Let another pack decide from the next recall on: logged, hashed, reversible."""
        return self.policies.use(pack, reason=reason)

    @property
    def policies(self) -> LabPolicies:
        """Install, roll back, pin, compare and attribute: see ``LabPolicies``."""
        return LabPolicies(self._store)

    def watch(
        self, path: str | Path, slot: str | None = None, *, every: float = 0.2, on_change: OnChange | None = None
    ) -> Watch:
        """Use the pack in a ``.hy`` file, now and at every save, until ``stop`` or ``close``; see ``Watch``.

        With ``slot``, the file holds one policy for it. ``on_change`` is called, in the watching thread, in place of
        showing changes. A file that is broken to begin with raises a PolicyError.

        >>> watch = lab.watch("mine.hy")                                                   # doctest: +SKIP
        """
        return self._watches.start(path, slot, every=every, on_change=on_change)

    # -- looking ----------------------------------------------------------------------------------------------

    @property
    def memories(self) -> pl.DataFrame:
        """Every memory as a row: a copy."""
        with self._reading() as state:
            return state.memories()

    @property
    def edges(self) -> pl.DataFrame:
        """Every edge as a row: a copy."""
        with self._reading() as state:
            return state.edge_frame()

    def activate(
        self,
        seeds: Memory | Hit | int | Iterable[Memory | Hit | int],
        *,
        steps: int = 3,
        decay: float = 0.7,
        threshold: float = 0.01,
    ) -> pl.DataFrame:
        """Spreading activation from ``seeds`` (energy 1 each): A[j] += A[i] * W[i,j] * D, in both directions.

        One row a node that is active in the end: kind, id, name, activation, received, hops. Below ``threshold``
        nothing passes. Nothing is changed or logged; a pack's ``spread`` policy is not asked.
        """
        with self._reading() as state:
            given = [seeds] if isinstance(seeds, Memory | Hit | int) else list(seeds)
            rows = dict.fromkeys((self._row(seed) for seed in given), 1.0)
            return activated(state, rows, steps=steps, decay=decay, threshold=threshold)

    def trace(self, memory: Memory | Hit | int, depth: int = 2, *, most: int = 100) -> LabTrace:
        """How a memory is joined to others: the ``most`` strongest paths of at most ``depth`` edges."""
        with self._reading() as state:
            return traced(state, self._row(memory), depth=depth, most=most)

    def stats(self, *, at: When | None = None, seed: int = 0, progress: bool = True) -> Stats:
        """Kinds, temporal layers, clusters, communities, bridges and key memories, as frames and one figure."""
        with self._reading() as state:
            now = self._store.clock() if at is None else to_micros(at)
            return stats(state, self._store.versions.pack, now=now, seed=seed, progress=progress)

    @property
    def index(self) -> LabIndex:
        """The search for neighbours: ``lab.index.report()`` measures it."""
        return LabIndex(self._store)

    @property
    def slates(self) -> Slates:
        """Every logged recall and what was said about it, as four lazy frames."""
        return self._store.slates(lab=self)

    def _recall_at(self, decision: Mapping[str, Any], pack: Pack) -> pl.DataFrame | None:
        return self._recalls.again(decision, pack)

    def __len__(self) -> int:
        with self._reading() as state:
            return len(state)

    def __getitem__(self, memory: int) -> Memory:
        with self._reading() as state:
            return Memory.of(state, self._row(memory))

    @property
    def path(self) -> Path | None:
        return self._store.folder

    @property
    def embedder(self) -> Embedder:
        return self._store.embedder

    def __repr__(self) -> str:
        with self._reading() as state:
            return (
                f"<Lab {self._store.where}: {len(state):,} memories, {state.edges.live:,} edges, "
                f"pack {self.pack.name} [{self.pack.hash[:12]}]>"
            )

    # -- opening and closing ----------------------------------------------------------------------------------

    def snapshot(self) -> None:
        """Write the folded state down, so that the next opening is quick. ``close`` does it when there is much new."""
        self._store.snapshot()

    def close(self) -> None:
        """End every watch, write a snapshot if that will save time, and let the journal go."""
        self._watches.stop()
        self._store.close()

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- within -----------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[State]:
        """The state as it is now, under the mutex."""
        with self._store.mutex:
            self._store.fold()
            yield self._store.state

    def _row(self, memory: Memory | Hit | int) -> int:
        state = self._store.state
        id = memory.id if isinstance(memory, Memory | Hit) else memory
        if isinstance(id, bool) or not isinstance(id, int) or not 1 <= id <= len(state):
            raise UnknownName("memory", id, [f"1 to {len(state)}"] if len(state) else ())
        return id - 1
