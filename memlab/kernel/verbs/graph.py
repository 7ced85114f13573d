"""``lab.graph``: edges and tags by hand, spreading activation, paths between memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, NamedTuple, overload

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName, did_you_mean
from memlab.kernel.base.arguments import Count, Seconds, Share, Within, checked
from memlab.kernel.base.arrays import Ints
from memlab.kernel.base.display import Displayed, code_block
from memlab.kernel.base.printable import printable
from memlab.kernel.graph import NODE_KINDS, Trace, activate, node_kinds, node_numbers, trace
from memlab.kernel.journal import Transaction
from memlab.kernel.privacy import refuse, screen
from memlab.kernel.recall import Filters
from memlab.kernel.schema import RECALLABLE, RELATIONS, is_open_word, normalise_word
from memlab.kernel.state import (
    Change,
    State,
    build_edges,
    build_values,
    normalize_tag,
    refuse_secret_values,
    validate_columns,
    validate_text,
    visible_rows,
)
from memlab.kernel.verbs.core import Core, Memories, MemoryLike
from memlab.kernel.verbs.corrections.editing import retire, take_out_of_use
from memlab.kernel.verbs.linking import Linker

if TYPE_CHECKING:
    from memlab.kernel.verbs.recalling.asking import Questions

from memlab.kernel.verbs.registers import TagDescriptions

__all__ = [
    "EdgeRow",
    "GraphVerbs",
    "LabTrace",
    "TagDescriptions",
    "activate_nodes",
    "build_tag_frame",
    "parse_edge_rows",
    "split_new_edges",
    "trace_paths",
    "write_tags",
]


# Relations from a memory to a tag, a cluster or an entity; ``link`` refuses them.
_TO_NODES = ("has-tag", "in-cluster", "mentions")


class GraphVerbs:
    """``lab.graph``: link and tag memories, and follow their edges."""

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
        """Return the memories nearest to a memory by cosine similarity, best first.

        Memories that recall does not admit (forgotten, superseded, bound to another session) are
        left out. Nothing is logged.

        Parameters
        ----------
        memory
            A memory, a hit or an id.
        limit
            The maximum number of rows.
        project
            Admit memories of this project and memories without a project.
        where
            A boolean Polars expression over the columns of ``lab.memories``.

        Returns
        -------
        DataFrame
            The columns ``rank``, ``memory_id``, ``similarity`` (-1 to 1), ``text``, ``kind``,
            ``ref``, ``speaker``, ``session``, ``project``.

        Raises
        ------
        UnknownName
            If the memory does not exist.
        InputError
            If the memory is purged.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The user likes tea", "The user drinks tea", "Deploy on Tuesday"])
        >>> lab.graph.similar(1, limit=1)["memory_id"].to_list()
        [2]
        """
        with self._core.reading():
            row = self._core.row(memory)
        questions: Questions = self._core.component("questions")
        return questions.similar(row, limit=limit, project=project, filters=Filters.of(where=where))

    def tags(self) -> pl.DataFrame:
        """Return every tag of an active memory, the most frequent first.

        Under a pack with ``infer-tags``, paths, topics and entities become tags, too.

        Returns
        -------
        DataFrame
            The columns ``tag``, ``memories`` (the number of memories with the tag), ``first`` and
            ``last`` (when the oldest and the newest of them were created), and ``description``
            (null without one).

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("Releases need a tag", tags=["ci"])
        >>> lab.graph.tags()["tag"].to_list()
        ['ci']
        """
        with self._core.reading() as state:
            return build_tag_frame(state.memories(), state.projection(TagDescriptions))

    @checked
    def describe_tag(self, tag: str, description: str) -> None:
        """Set the description of a tag; an empty text removes the description.

        Every reader of the lab sees descriptions.

        Parameters
        ----------
        tag
            A tag that a memory has.
        description
            The description. Secrets in it are redacted.

        Raises
        ------
        UnknownName
            If no memory has the tag.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("Tokens expire after 30 days", tags=["auth"])
        >>> lab.graph.describe_tag("auth", "login, sessions and tokens")
        >>> lab.graph.tags()["description"].to_list()
        ['login, sessions and tokens']
        """
        name = normalize_tag(tag)
        screened = (
            screen(validate_text(description, where="description")).text if description else ""
        )
        store = self._core.store
        with store.writing() as tx:
            tags = list(store.state.nodes.vocabularies().get("tag", ()))
            if name not in tags:
                raise UnknownName("tag", name, tags)
            if store.state.projection(TagDescriptions)[name] != screened:
                tx.event("describe-tag", {"tag": name, "description": screened}, at=store.clock())

    @checked
    def tag(
        self, memories: Memories, tags: str | Sequence[str], *, remove: bool = False
    ) -> tuple[int, ...]:
        """Add tags to memories, or remove tags from memories.

        Parameters
        ----------
        memories
            One memory or several; a frame names them by ``id`` or ``memory_id``.
        tags
            One tag or several. A leading ``#`` is dropped.
        remove
            Whether to remove the tags instead.

        Returns
        -------
        tuple of int
            The ids of the memories that changed.

        Raises
        ------
        InputError
            If there is no tag, or a memory is deleted or purged.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> memory = lab.remember("Releases need a tag")
        >>> lab.graph.tag(memory, ["release", "ci"])
        (1,)
        >>> lab[1].tags
        ('release', 'ci')
        """
        names = [tags] if isinstance(tags, str) else list(tags)
        if not names:
            raise InputError('tag needs a tag, such as tag(memory, "release").')
        columns = validate_columns({"text": ["-"], "tags": [names]}, now=0)
        refuse_secret_values({"tags": columns["tags"]})
        store = self._core.store
        with store.writing() as tx:
            rows, now = self._core.rows(memories), store.clock()
            take_out_of_use(
                store.state, rows, "active", now
            )  # raises for deleted or purged memories
            return tuple(
                write_tags(tx, store.state, rows, columns["tags"][0], remove=remove, now=now)
            )

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
        """Link two memories by an edge, or all pairs of a frame in one event.

        An existing edge gets the new weight, and one reinforcement if the weight differs.

        Parameters
        ----------
        source
            A memory, a hit or an id; or a frame with the columns ``source`` and ``target`` (ids),
            and optionally ``relation`` and ``weight``. Rows of ``lab.edges`` are accepted; edges to
            tags, clusters and entities are ignored. All edges of a frame are written, or none.
        target
            The other memory; not with a frame.
        relation
            A relation of memlab, or another short word if the pack's setting ``open-words`` is on.
            "supersedes" takes the target out of use.
        weight
            The weight of the edge, 0 to 1.

        Raises
        ------
        InputError
            If a memory is purged or linked to itself, or if the frame is invalid.
        UnknownName
            If a memory or the relation does not exist.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["Refresh tokens expire", "The login fails after 30 days"])
        >>> lab.graph.link(2, 1, "derived-from")
        >>> lab.edges.select("source", "target", "relation").rows()
        [(2, 1, 'derived-from')]
        """
        if isinstance(source, pl.DataFrame):
            if target is not None:
                raise InputError(
                    "A frame of edges contains both ends of each edge. Leave target out."
                )
            self._link(parse_edge_rows(source))
            return
        if target is None:
            raise InputError("link needs a source and a target, or a frame with both columns.")
        with self._core.reading():
            ends = self._core.row(source) + 1, self._core.row(target) + 1
        self._link([EdgeRow(*ends, relation, weight)])

    def _link(self, edges: Sequence[EdgeRow]) -> None:
        """Write edges between memories as one event, or none of them if an edge is refused.

        If an edge exists already, its weight changes, and no duplicate is written.
        """
        # All ends are checked before the change is computed, so that a refused edge prevents all
        # others.
        edges = [edge._replace(relation=self._check_relation(edge.relation)) for edge in edges]
        if not edges:
            return
        store = self._core.store
        with store.writing() as tx:
            status, now = store.state.names["status"], store.clock()
            for edge in edges:
                for id in edge[:2]:
                    if status.value_at(self._core.row(id)) == "purged":
                        raise InputError(f"Memory {id} is purged and cannot be linked.")
                if edge.source == edge.target:
                    raise InputError(f"Memory {edge.source} cannot be linked to itself.")
            pairs = [(edge.source, edge.target) for edge in edges if edge.relation == "supersedes"]
            change, edges = split_new_edges(store.state, edges)
            if edges:
                change += Change(edges=build_edges(*map(list, zip(*edges, strict=True))))
            if pairs:
                change += retire(store.state, pairs, now)
            if change:
                tx.event("link", {"by": "hand", **change.body()}, at=now)

    def _check_relation(self, relation: str) -> str:
        """Check a relation between two memories and return it in its stored spelling."""
        relation = normalise_word(relation, RELATIONS)
        if relation not in RELATIONS and not (self._core.open_words and is_open_word(relation)):
            raise UnknownName("relation", relation, RELATIONS)
        refuse(relation, "relation")
        if relation in _TO_NODES:
            raise InputError(
                f"An edge {relation} leads to a tag, a cluster or an entity, not to a memory. Use another relation."
            )
        return relation

    def waiting(self) -> int:
        """Return the number of memories that wait to be linked in the background.

        Returns
        -------
        int
            The number of waiting memories that the viewer of this lab sees.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.graph.waiting()
        0
        """
        with self._core.reading() as state:
            ids = np.array(self._linker.waiting, dtype=np.int64)
            return (
                len(ids)
                if (visible := visible_rows(state)) is None
                else int(np.isin(ids - 1, visible).sum())
            )

    @checked
    def link_waiting(self, timeout: Seconds | None = None) -> bool:
        """Link the waiting memories now instead of in the background.

        The call is optional, because a background thread does the same.

        Parameters
        ----------
        timeout
            The maximum number of seconds. Default: no limit.

        Returns
        -------
        bool
            Whether all memories are linked now, so that none is waiting.

        Raises
        ------
        ReadOnlyLab
            If the lab cannot be written.
        LabBusy
            If another process writes for too long.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The user likes tea", "The user drinks tea"], linking="later")
        >>> lab.graph.link_waiting()
        True
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
        """Spread activation from memories along their edges, in both directions.

        Each step computes ``A[j] += A[i] * W[i, j] * decay``. Nothing is changed or logged, and the
        pack's policy ``spread`` is not used.

        Parameters
        ----------
        seeds
            The memories that start with the activation 1.
        steps
            The number of steps, 0 to 100.
        decay
            The factor of each step.
        threshold
            The minimum activation that a node passes on.

        Returns
        -------
        DataFrame
            One row per active node: ``kind``, ``id``, ``name``, ``activation``, ``received``,
            ``hops``; the most active first.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["Refresh tokens expire", "The login fails after 30 days"])
        >>> lab.graph.link(2, 1)
        >>> lab.graph.activate(1, steps=1).select("id", "activation").rows()
        [(1, 1.0), (2, 0.7)]
        """
        with self._core.reading() as state:
            rows = dict.fromkeys(self._core.rows(seeds), 1.0)
            return activate_nodes(state, rows, steps=steps, decay=decay, threshold=threshold)

    @checked
    def trace(self, memory: MemoryLike, depth: int = 2, *, most: Count = 100) -> LabTrace:
        """Return the strongest paths from a memory to other nodes.

        Parameters
        ----------
        memory
            A memory, a hit or an id.
        depth
            The maximum number of edges of a path.
        most
            The maximum number of paths.

        Returns
        -------
        LabTrace
            The paths as a tree and as a frame.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["Refresh tokens expire", "The login fails after 30 days"])
        >>> lab.graph.link(2, 1)
        >>> lab.graph.trace(1).frame["to_id"].to_list()
        [2]
        """
        with self._core.reading() as state:
            return trace_paths(state, self._core.row(memory), depth=depth, maximum=most)


# -- edges that a caller gives as a frame -----------------------------------------------------------------------------


# Columns that a caller may set, and all columns of ``lab.edges``, of which the others are ignored.
_WRITABLE = ("source", "target", "relation", "weight")
_COLUMNS = (*_WRITABLE, "reinforcements", "created", "from_kind", "to_kind", "to", "edge")


class EdgeRow(NamedTuple):
    """One edge between two memories, by their ids."""

    source: int
    target: int
    relation: str
    weight: float


def parse_edge_rows(frame: pl.DataFrame) -> list[EdgeRow]:
    """Return the edges between memories that a frame names, in the order of its rows.

    Raises
    ------
    InputError
        If a column is not one of ``lab.edges``, an end is missing, or a value is invalid.
    """
    # Frames come from files and computations, so every value is checked. Messages name the row.
    for name in frame.columns:
        if name not in _COLUMNS:
            raise InputError(
                f'A frame of edges has no column "{name}". {did_you_mean(name, _WRITABLE)}'
            )
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
            raise InputError(
                f"Row {row} of the edges: relation must be a text, not {relation!r:.40}."
            )
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
            raise InputError(
                f"Row {row} of the edges: weight must be a number from 0 to 1, not {weight!r:.40}."
            )
        edges.append(EdgeRow(source, target, relation, float(weight)))
    return edges


def split_new_edges(state: State, edges: Sequence[EdgeRow]) -> tuple[Change, list[EdgeRow]]:
    """Return the changed weights of existing edges, and the edges that are new."""
    last = list({edge[:3]: edge for edge in edges}.values())
    if not last:
        return Change(), []
    source, target = (np.array([edge[end] for edge in last], dtype=np.int64) - 1 for end in (0, 1))
    relation = state.edges.codes_of([edge.relation for edge in last])
    existing = np.where(relation >= 0, state.edges.find(source, target, relation), -1).tolist()
    weights = state.edges.weight
    changed = [
        (edge_number, edge.weight)
        for edge_number, edge in zip(existing, last, strict=True)
        if edge_number >= 0 and weights[edge_number] != edge.weight
    ]
    numbers, values = ([], []) if not changed else map(list, zip(*changed, strict=True))
    change = Change(strengthen={"edges": numbers, "weight": values} if changed else None)
    return change, [
        edge for edge_number, edge in zip(existing, last, strict=True) if edge_number < 0
    ]


# -- activation and paths ---------------------------------------------------------------------------------------------


_MAX_TEXT = 60
"""Maximum characters of a memory's text as a label in a tree."""


@dataclass(frozen=True)
class LabTrace(Displayed):
    """The strongest paths from a memory to other nodes.

    Attributes
    ----------
    memory
        The id of the memory.
    depth
        The maximum number of edges of a path.
    cut
        Whether there are more paths than the maximum.
    frame
        One row per path: ``to_kind``, ``to_id``, ``to``, ``depth``, ``product`` of the weights,
        ``relations``, ``weights``, ``path`` (the label of each node).
    tree
        The paths as text.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["Refresh tokens expire", "The login fails after 30 days"])
    >>> lab.graph.link(2, 1)
    >>> trace = lab.graph.trace(1, depth=1)
    >>> trace.cut, trace.frame["product"].to_list()
    (False, [1.0])
    """

    memory: int
    depth: int
    cut: bool
    frame: pl.DataFrame = field(repr=False)
    tree: str = field(repr=False)

    def __repr__(self) -> str:
        return printable(self.tree)

    def _display(self) -> object:
        return code_block(self.tree)


def trace_paths(state: State, row: int, *, depth: int, maximum: int) -> LabTrace:
    """Return the strongest paths from a memory, with a label for each node."""
    paths = trace(state.edges, row, depth, limit=maximum)
    nodes = sorted({node for path in paths.paths for node in path.nodes} | {row})
    labels_of = dict(zip(nodes, label_nodes(state, np.array(nodes)), strict=True))
    return LabTrace(
        row + 1,
        depth,
        paths.cut,
        _build_path_frame(paths, labels_of),
        paths.tree(labels_of.__getitem__),
    )


def _build_path_frame(paths: Trace, labels_of: Mapping[int, str]) -> pl.DataFrame:
    """Return a frame with one row per path, as in `LabTrace`."""
    ends = np.array([path.nodes[-1] for path in paths.paths], dtype=np.int64)
    kinds = np.array(NODE_KINDS, dtype=object)[node_kinds(ends)].tolist() if len(ends) else []
    steps = [[labels_of[node] for node in path.nodes[1:]] for path in paths.paths]
    return pl.DataFrame(
        [
            pl.Series("to_kind", kinds, dtype=pl.String),
            pl.Series("to_id", node_numbers(ends) + 1),
            pl.Series("to", [path[-1] for path in steps], dtype=pl.String),
            *paths.frame.select("depth", "product", "relations", "weights").iter_columns(),
            pl.Series("path", steps, dtype=pl.List(pl.String)),
        ]
    )


def activate_nodes(
    state: State, seeds: Mapping[int, float], *, steps: int, decay: float, threshold: float
) -> pl.DataFrame:
    """Spread activation from seed rows with initial energies; return the active nodes.

    The most active node comes first. Columns: kind, id, name, activation, received, hops.
    """
    active = activate(
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
                np.array(NODE_KINDS, dtype=object)[node_kinds(active.rows)].tolist(),
                dtype=pl.String,
            ),
            pl.Series("id", node_numbers(active.rows) + 1),
            pl.Series("name", label_nodes(state, active.rows), dtype=pl.String),
            pl.Series("activation", active.activation),
            pl.Series("received", active.received),
            pl.Series("hops", active.hops),
        ]
    )
    return frame.sort("activation", "hops", "kind", "id", descending=[True, False, False, False])


def label_nodes(state: State, nodes: Ints) -> list[str]:
    """Return a label for each node: a memory's id and first words, or the node's name."""
    names = state.nodes.names(nodes)
    result = []
    for node, kind, name in zip(nodes.tolist(), node_kinds(nodes).tolist(), names, strict=True):
        if name is not None:
            result.append(f"{NODE_KINDS[kind]} {name}")
            continue
        text = " ".join((state.texts.value_at(node) or "").split())
        result.append(
            f"{node + 1}: {text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + '...'}"
        )
    return result


# -- tags -------------------------------------------------------------------------------------------------------------


def build_tag_frame(memories: pl.DataFrame, descriptions: TagDescriptions) -> pl.DataFrame:
    """Return a row for each tag of the active memories, the most frequent first."""
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
    texts = [descriptions[tag] or None for tag in frame["tag"].to_list()]
    return frame.with_columns(pl.Series("description", texts, dtype=pl.String))


def write_tags(
    tx: Transaction,
    state: State,
    rows: Sequence[int],
    tags: Sequence[str],
    *,
    remove: bool,
    now: int,
) -> list[int]:
    """Write an event for each row whose tags change; return the ids of these memories."""
    lists, changed = state.lists["tags"], []
    for row in rows:
        before = list(lists.value_at(row))
        after = (
            [tag for tag in before if tag not in tags]
            if remove
            else list(dict.fromkeys([*before, *tags]))
        )
        if after != before:
            part = build_values([row + 1], tags=[after], changed=now)
            tx.event("edit", {"memory": row + 1, "set": [part]}, at=now)
            changed.append(row + 1)
    return changed
