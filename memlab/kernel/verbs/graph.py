"""``lab.graph``: edges between memories, what activation passes along them, and the structure of it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, NamedTuple, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName, did_you_mean
from memlab.kernel.base.arguments import Count, Seconds, Share, Within, checked
from memlab.kernel.base.display import Displayed, code_block
from memlab.kernel.base.printable import printable
from memlab.kernel.graph import NODE_KINDS, Trace, activate, kind_of, number_of, trace
from memlab.kernel.journal import Transaction
from memlab.kernel.privacy import refuse, screen
from memlab.kernel.recall import Filters
from memlab.kernel.schema import RECALLABLE, RELATIONS, is_open_word, spelled
from memlab.kernel.state import (
    Change,
    State,
    checked_columns,
    checked_text,
    edges_of,
    refuse_names,
    seen_rows,
    tag_name,
    values_of,
)
from memlab.kernel.verbs.core import Core, Memories, MemoryLike
from memlab.kernel.verbs.corrections.editing import retired, without_use
from memlab.kernel.verbs.linking import Linker

if TYPE_CHECKING:
    from memlab.kernel.verbs.recalling.asking import Questions

from memlab.kernel.verbs.registers import TagDescriptions

__all__ = [
    "EdgeRow",
    "GraphVerbs",
    "LabTrace",
    "TagDescriptions",
    "activated",
    "edge_rows",
    "retagged",
    "tag_frame",
    "traced",
    "weighed",
]


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
        questions: Questions = self._core.component("questions")
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
    def tag(
        self, memories: Memories, tags: str | Sequence[str], *, remove: bool = False
    ) -> tuple[int, ...]:
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
        self,
        source: MemoryLike,
        target: MemoryLike,
        relation: str = "relates-to",
        *,
        weight: Share = 1.0,
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
                        raise InputError(
                            f"Memory {id} is purged: only its row is left, and nothing is linked to it."
                        )
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
            raise InputError(
                f"An edge {relation} leads from a memory to a node of another kind, not to a memory."
            )
        return relation

    def waiting(self) -> int:
        """How many memories wait to be linked in the background."""
        with self._core.reading() as state:
            ids = np.array(self._linker.waiting, dtype=np.int64)
            return (
                len(ids)
                if (seen := seen_rows(state)) is None
                else int(np.isin(ids - 1, seen).sum())
            )

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


# -- edges that a caller gives as a frame -----------------------------------------------------------------------------


_OWN = ("source", "target", "relation", "weight")
_KNOWN = (*_OWN, "reinforcements", "created", "from_kind", "to_kind", "to", "edge")
"""The columns of ``lab.edges``; those that are not a caller's to set are passed over."""


class EdgeRow(NamedTuple):
    """One edge between two memories, by their ids."""

    source: int
    target: int
    relation: str
    weight: float


def edge_rows(frame: pl.DataFrame) -> list[EdgeRow]:
    """Return the edges between memories that a frame names, in its order.

    Raises
    ------
    InputError
        If a column is none of ``lab.edges``, one of the ends is missing, or a value is no id, relation or weight.
    """
    for name in frame.columns:
        if name not in _KNOWN:
            raise InputError(f'A frame of edges has no column "{name}". {did_you_mean(name, _OWN)}')
    for name in ("source", "target"):
        if (
            name not in frame.columns
            or not frame[name].dtype.is_integer()
            or frame[name].null_count()
        ):
            raise InputError(
                f"A frame of edges needs the column {name}, with the id of a memory in each row."
            )
    for kind in ("from_kind", "to_kind"):
        if kind in frame.columns:
            frame = frame.filter(pl.col(kind).is_null() | (pl.col(kind) == "memory"))
    relations = (
        frame["relation"].to_list() if "relation" in frame.columns else ["relates-to"] * len(frame)
    )
    weights = frame["weight"].to_list() if "weight" in frame.columns else [1.0] * len(frame)
    edges = []
    for row, (source, target, relation, weight) in enumerate(
        zip(frame["source"].to_list(), frame["target"].to_list(), relations, weights, strict=True)
    ):
        if not isinstance(relation, str):
            raise InputError(f"Row {row} of the edges: relation is a text, not {relation!r:.40}.")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
            raise InputError(
                f"Row {row} of the edges: weight is a number from 0 to 1, not {weight!r:.40}."
            )
        edges.append(EdgeRow(source, target, relation, float(weight)))
    return edges


def weighed(state: State, edges: Sequence[EdgeRow]) -> tuple[Change, list[EdgeRow]]:
    """Return what gives edges that are there their new weights, and the edges that are not there yet."""
    last = list({edge[:3]: edge for edge in edges}.values())
    if not last:
        return Change(), []
    source, target = (np.array([edge[end] for edge in last], dtype=np.int64) - 1 for end in (0, 1))
    relation = state.edges.codes_of([edge.relation for edge in last])
    known = np.where(relation >= 0, state.edges.find(source, target, relation), -1).tolist()
    weights = state.edges.weight
    moved = [
        (at, edge.weight)
        for at, edge in zip(known, last, strict=True)
        if at >= 0 and weights[at] != edge.weight
    ]
    numbers, values = ([], []) if not moved else map(list, zip(*moved, strict=True))
    change = Change(strengthen={"edges": numbers, "weight": values} if moved else None)
    return change, [edge for at, edge in zip(known, last, strict=True) if at < 0]


# -- activation and paths ---------------------------------------------------------------------------------------------


_MAX_TEXT = 60
"""Characters of a memory that name it in a tree."""


@dataclass(frozen=True)
class LabTrace(Displayed):
    """The strongest paths from a memory. ``cut`` says that there are more; ``frame`` has a row a path."""

    memory: int
    depth: int
    cut: bool
    frame: pl.DataFrame = field(repr=False)
    """to_kind, to_id, to, depth, product, relations, weights, path (what each step leads to)."""
    tree: str = field(repr=False)

    def __repr__(self) -> str:
        return printable(self.tree)

    def _display(self) -> object:
        return code_block(self.tree)


def traced(state: State, row: int, *, depth: int, most: int) -> LabTrace:
    """The paths from the memory in ``row``, by the labels of their nodes."""
    found = trace(state.edges, row, depth, most=most)
    nodes = sorted({node for path in found.paths for node in path.nodes} | {row})
    named = dict(zip(nodes, labels(state, np.array(nodes)), strict=True))
    return LabTrace(row + 1, depth, found.cut, _paths(found, named), found.tree(named.__getitem__))


def _paths(found: Trace, named: Mapping[int, str]) -> pl.DataFrame:
    ends = np.array([path.nodes[-1] for path in found.paths], dtype=np.int64)
    kinds = np.array(NODE_KINDS, dtype=object)[kind_of(ends)].tolist() if len(ends) else []
    steps = [[named[node] for node in path.nodes[1:]] for path in found.paths]
    return pl.DataFrame(
        [
            pl.Series("to_kind", kinds, dtype=pl.String),
            pl.Series("to_id", number_of(ends) + 1),
            pl.Series("to", [path[-1] for path in steps], dtype=pl.String),
            *found.frame.select("depth", "product", "relations", "weights").iter_columns(),
            pl.Series("path", steps, dtype=pl.List(pl.String)),
        ]
    )


def activated(
    state: State, seeds: Mapping[int, float], *, steps: int, decay: float, threshold: float
) -> pl.DataFrame:
    """From rows with their energy: kind, id, name, activation, received, hops; the most active first."""
    found = activate(
        state.edges,
        np.array(list(seeds), dtype=np.int64),
        np.array(list(seeds.values()), dtype=np.float64),
        nodes=state.nodes,
        steps=steps,
        decay=decay,
        threshold=threshold,
    )
    frame = pl.DataFrame(
        [
            pl.Series(
                "kind",
                np.array(NODE_KINDS, dtype=object)[kind_of(found.rows)].tolist(),
                dtype=pl.String,
            ),
            pl.Series("id", number_of(found.rows) + 1),
            pl.Series("name", labels(state, found.rows), dtype=pl.String),
            pl.Series("activation", found.activation),
            pl.Series("received", found.received),
            pl.Series("hops", found.hops),
        ]
    )
    return frame.sort("activation", "hops", "kind", "id", descending=[True, False, False, False])


def labels(state: State, nodes: NDArray[np.int64]) -> list[str]:
    """What people call a node: a memory by its number and the beginning of its text."""
    names = state.nodes.names(nodes)
    found = []
    for node, kind, name in zip(nodes.tolist(), kind_of(nodes).tolist(), names, strict=True):
        if name is not None:
            found.append(f"{NODE_KINDS[kind]} {name}")
            continue
        text = " ".join((state.texts.at(node) or "").split())
        found.append(
            f"{node + 1}: {text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + '...'}"
        )
    return found


# -- tags -------------------------------------------------------------------------------------------------------------


def tag_frame(memories: pl.DataFrame, descriptions: TagDescriptions) -> pl.DataFrame:
    """Return a row for each tag of the memories in use, the most frequent first."""
    frame = (
        memories.select("tags", "created", "status")
        .filter(pl.col("status").is_in(RECALLABLE))
        .explode("tags")
        .drop_nulls("tags")
        .group_by(tag="tags")
        .agg(
            memories=pl.len().cast(pl.Int64),
            first=pl.col("created").min(),
            last=pl.col("created").max(),
        )
        .sort("memories", "tag", descending=[True, False])
    )
    said = [descriptions[tag] or None for tag in frame["tag"].to_list()]
    return frame.with_columns(pl.Series("description", said, dtype=pl.String))


def retagged(
    tx: Transaction,
    state: State,
    rows: Sequence[int],
    tags: Sequence[str],
    *,
    remove: bool,
    now: int,
) -> list[int]:
    """Write an event for each of ``rows`` whose tags change, and return the ids of these memories."""
    lists, changed = state.lists["tags"], []
    for row in rows:
        before = list(lists.at(row))
        after = (
            [tag for tag in before if tag not in tags]
            if remove
            else list(dict.fromkeys([*before, *tags]))
        )
        if after != before:
            part = values_of([row + 1], tags=[after], changed=now)
            tx.event("edit", {"memory": row + 1, "set": [part]}, at=now)
            changed.append(row + 1)
    return changed
