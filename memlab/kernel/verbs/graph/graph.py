"""``lab.graph``: edges between memories, what activation passes along them, and the structure of it all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, overload

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Count, Seconds, Share, Within, checked
from memlab.kernel.privacy import refuse, screen
from memlab.kernel.recall import Filters
from memlab.kernel.schema import RELATIONS, is_open_word, spelled
from memlab.kernel.state import Change, checked_columns, checked_text, edges_of, refuse_names, seen_rows, tag_name
from memlab.kernel.verbs.core import Core, Memories, MemoryLike
from memlab.kernel.verbs.corrections.editing import retired, without_use
from memlab.kernel.verbs.graph.frames import EdgeRow, edge_rows, weighed
from memlab.kernel.verbs.graph.paths import LabTrace, activated, traced
from memlab.kernel.verbs.graph.tags import TagDescriptions, retagged, tag_frame
from memlab.kernel.verbs.linking import Linker

if TYPE_CHECKING:
    from memlab.kernel.verbs.recalling.asking import Questions

__all__ = ["GraphVerbs"]

_TO_NODES = ("has-tag", "in-cluster", "mentions")


class GraphVerbs:
    """``lab.graph``: link memories, follow their edges, and see what they are as a whole."""

    def __init__(self, core: Core, linker: Linker) -> None:
        self._core, self._linker = core, linker

    @checked
    def similar(
        self,
        memory: MemoryLike,
        *,
        limit: Count = 10,
        project: str | None = None,
        where: pl.Expr | None = None,
    ) -> pl.DataFrame:
        """The memories nearest to one of them by the cosine of their vectors, best first; nothing is logged.

        Columns: ``rank``, ``memory_id``, ``similarity`` (-1..1), ``text``, ``kind``, ``ref``, ``speaker``, ``session``,
        ``project``. What recall does not admit (forgotten, superseded, retracted; bound to another session) is left
        out, and ``project`` and ``where`` are those of ``recall``. UnknownName for an id that nothing has.

        >>> lab.graph.similar(hits[0], where=pl.col("kind") == "decision")                       # doctest: +SKIP
        """
        with self._core.reading():
            row = self._core.row(memory)
        questions: Questions = self._core.made("questions")
        return questions.similar(row, limit=limit, project=project, filters=Filters.of(where=where))

    def tags(self) -> pl.DataFrame:
        """Return every tag of a memory in use, the most frequent first.

        Columns: ``tag``, ``memories`` (how many bear it), ``first`` and ``last`` (when those were created), and
        ``description``, null until ``describe_tag`` gives one. Under a pack with ``infer-tags`` paths, topics and
        entities give tags besides those that are given.

        >>> lab.graph.tags().head(3)                                                       # doctest: +SKIP
        """
        with self._core.reading() as state:
            return tag_frame(state.memories(), state.projection(TagDescriptions))

    @checked
    def describe_tag(self, tag: str, description: str) -> None:
        """Say what a tag is for; an empty text takes the description away. Whoever reads the lab may read it.

        UnknownName for a tag that no memory bears. A secret in the description is redacted.

        >>> lab.graph.describe_tag("auth", "login, sessions and tokens")                   # doctest: +SKIP
        """
        named = tag_name(tag)
        said = screen(checked_text(description, where="description")).text if description else ""
        store = self._core.store
        with store.writing() as tx:
            known = list(store.state.nodes.vocabularies().get("tag", ()))
            if named not in known:
                raise UnknownName("tag", named, known)
            if store.state.projection(TagDescriptions)[named] != said:
                tx.event("describe-tag", {"tag": named, "description": said}, at=store.clock())

    @checked
    def tag(self, memories: Memories, tags: str | Sequence[str], *, remove: bool = False) -> tuple[int, ...]:
        """Give a tag, or several, to memories, or with ``remove`` take them away; return the ids of those that changed.

        A ``#`` in front of a tag is left out, as ``lab.remember(tags=)`` leaves it out. Memories that bear the tags
        already stay as they are. InputError for what is deleted or purged, and without a tag.

        >>> lab.graph.tag(hits, ["release", "ci"])                                         # doctest: +SKIP
        """
        named = [tags] if isinstance(tags, str) else list(tags)
        if not named:
            raise InputError('tag needs a tag, such as tag(memory, "release").')
        given = checked_columns({"text": ["-"], "tags": [named]}, now=0)
        refuse_names({"tags": given["tags"]})
        store = self._core.store
        with store.writing() as tx:
            rows, now = self._core.rows(memories), store.clock()
            without_use(store.state, rows, "active", now)  # raises for what is deleted or purged
            return tuple(retagged(tx, store.state, rows, given["tags"][0], remove=remove, now=now))

    @overload
    def link(
        self, source: MemoryLike, target: MemoryLike, relation: str = "relates-to", *, weight: Share = 1.0
    ) -> None: ...
    @overload
    def link(self, source: pl.DataFrame) -> None: ...
    @checked
    def link(
        self,
        source: MemoryLike | pl.DataFrame,
        target: MemoryLike | None = None,
        relation: str = "relates-to",
        *,
        weight: Share = 1.0,
    ) -> None:
        """Join two memories by an edge, or all the pairs that a frame names, in one event.

        Its relation is one of those with a name or, where the pack's ``open-words`` says so, any other short word. What
        is superseded by a memory in use is out of use from then on. A frame has the columns ``source`` and ``target``
        (ids), and if need be ``relation`` and ``weight``: ``lab.edges``, changed, is one. An edge
        that is there already gets the weight, which counts as a reinforcement where it is another one; edges to tags,
        clusters and entities are left as they are.

        InputError for what is purged: nothing leads to a row that is empty. Of a frame all edges are written, or none.

        >>> lab.graph.link(lab.edges.with_columns(weight=pl.col("weight") / 2))            # doctest: +SKIP
        """
        if isinstance(source, pl.DataFrame):
            if target is not None:
                raise InputError("A frame of edges names both ends: give no target beside it.")
            self._link(edge_rows(source))
            return
        if target is None:
            raise InputError("link needs a source and a target, or a frame that has them.")
        with self._core.reading():
            ends = self._core.row(source) + 1, self._core.row(target) + 1
        self._link([EdgeRow(*ends, relation, weight)])

    def _link(self, edges: Sequence[EdgeRow]) -> None:
        """Write edges between memories as one event, or raise and write none.

        An edge that is there already gets the weight, and no second one is made.
        """
        edges = [edge._replace(relation=self._checked_relation(edge.relation)) for edge in edges]
        if not edges:
            return
        store = self._core.store
        with store.writing() as tx:
            status, now = store.state.names["status"], store.clock()
            for edge in edges:
                for id in edge[:2]:
                    if status.at(self._core.row(id)) == "purged":
                        raise InputError(f"Memory {id} is purged: only its row is left, and nothing is linked to it.")
                if edge.source == edge.target:
                    raise InputError(f"Memory {edge.source} cannot be linked to itself.")
            pairs = [(edge.source, edge.target) for edge in edges if edge.relation == "supersedes"]
            change, edges = weighed(store.state, edges)
            if edges:
                change += Change(edges=edges_of(*map(list, zip(*edges, strict=True))))
            if pairs:
                change += retired(store.state, pairs, now)
            if change:
                tx.event("link", {"by": "hand", **change.body()}, at=now)

    def _checked_relation(self, relation: str) -> str:
        relation = spelled(relation, RELATIONS)
        if relation not in RELATIONS and not (self._core.open_words and is_open_word(relation)):
            raise UnknownName("relation", relation, RELATIONS)
        refuse(relation, "relation")
        if relation in _TO_NODES:
            raise InputError(f"An edge {relation} leads from a memory to a node of another kind, not to a memory.")
        return relation

    def waiting(self) -> int:
        """How many memories wait to be linked in the background."""
        with self._core.reading() as state:
            ids = np.array(self._linker.waiting, dtype=np.int64)
            return len(ids) if (seen := seen_rows(state)) is None else int(np.isin(ids - 1, seen).sum())

    @checked
    def link_waiting(self, timeout: Seconds | None = None) -> bool:
        """Link here and now what waits, for at most ``timeout`` seconds; whether nothing waits any more.

        Nothing has to call this: a thread does the same. It raises what hinders that thread: ReadOnlyLab, LabBusy, or
        what a policy raises.
        """
        return self._linker.link_all(timeout)

    @checked
    def activate(
        self,
        seeds: Memories,
        *,
        steps: Annotated[int, Within(0, 100)] = 3,
        decay: float = 0.7,
        threshold: float = 0.01,
    ) -> pl.DataFrame:
        """Spreading activation from ``seeds`` (energy 1 each): A[j] += A[i] * W[i,j] * D, in both directions.

        One row a node that is active in the end: kind, id, name, activation, received, hops. Below ``threshold``
        nothing passes. Nothing is changed or logged; a pack's ``spread`` policy is not asked.

        >>> lab.graph.activate(hits[0]).head(3)                                            # doctest: +SKIP
        """
        with self._core.reading() as state:
            rows = dict.fromkeys(self._core.rows(seeds), 1.0)
            return activated(state, rows, steps=steps, decay=decay, threshold=threshold)

    @checked
    def trace(self, memory: MemoryLike, depth: int = 2, *, most: Count = 100) -> LabTrace:
        """How a memory is joined to others: the ``most`` strongest paths of at most ``depth`` edges."""
        with self._core.reading() as state:
            return traced(state, self._core.row(memory), depth=depth, most=most)
