"""Directed, weighted edges in growable columns, indexed by source and target node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.errors import InputError
from memlab.kernel.base.arrays import NO_ROWS, Codes, Flags, Floats, Ints, Values
from memlab.kernel.graph._nodes import (
    COLUMNS,
    NODE_KINDS,
    SHIFT,
    Adjacency,
    IncidentEdges,
    Layout,
    Nodes,
    read_edges,
    to_integers,
    write_edges,
)
from memlab.kernel.schema import RELATIONS

# The largest values that the columns' types hold. A sort key has 31 bits for the edge and one bit
# for its direction.
_MAX_EDGES = 1 << 31
_MAX_RELATION = 32_767
_MAX_REINFORCED = 2_147_483_647


@dataclass(frozen=True)
class Crossings:
    """Edges that are incident to some nodes.

    Entry ``i`` leads from ``rows[position[i]]`` over ``edge[i]`` to ``neighbour[i]``.
    ``outgoing[i]`` is True if the edge points in this direction. Entries are ordered by position,
    then edge.
    """

    position: Ints
    edge: Ints
    neighbour: Ints
    outgoing: Flags

    def __len__(self) -> int:
        return len(self.edge)


class Edges:
    """Directed, weighted edges, in the order in which they were appended.

    The number of an edge is its position in the order of appending and never changes.

    A removed edge keeps its number and its columns, but no look-up finds it. Parallel edges with
    the same relation stay separate. ``find`` returns an existing edge, which ``reinforce`` can
    change instead.

    Memory per edge: 31 bytes in columns (up to twice that while they grow), 8 in the base, 16 in
    the delta. Memory per node: 12 bytes.

    >>> edges = Edges()
    >>> edges.append([0, 1], [1, 2], [0, 0], [1.0, 0.5], nodes=3).tolist()
    [0, 1]
    >>> crossed = edges.crossings(np.array([1]))
    >>> crossed.neighbour.tolist(), crossed.outgoing.tolist()
    ([0, 2], [False, True])
    """

    def __init__(self) -> None:
        self._size = 0
        self.live = 0
        """The number of edges that were not removed."""
        self._columns: dict[str, Values] = {
            name: np.empty((*shape, 0), dtype=dtype) for name, (dtype, shape) in COLUMNS.items()
        }
        self.layout = Layout()
        """A layout with room for every node that has an edge."""
        self._degree: Codes = np.zeros(0, dtype=np.int32)
        self._adjacency = Adjacency()
        self._removed_since_seal = 0
        self._ordered = -1
        """The number of edges that the index by node includes."""
        self._first: dict[tuple[int, bool], tuple[Layout, int, Ints]] = {}
        self._entered: dict[int, tuple[int, Ints]] = {}
        self.relations = list(RELATIONS)
        """The name of each code in ``relation``; ``codes_of`` with ``grow`` adds names."""

    def __len__(self) -> int:
        return self._size

    # -- Columns: read-only, one value for each edge, by number ------------------------------------------------

    @property
    def source(self) -> Ints:
        """A copy of the source node of each edge."""
        return np.asarray(self._ends[0], dtype=np.int64)

    @property
    def target(self) -> Ints:
        """A copy of the target node of each edge."""
        return np.asarray(self._ends[1], dtype=np.int64)

    @property
    def relation(self) -> NDArray[np.int16]:
        """The code of each edge's relation."""
        return self._view("relation")

    @property
    def weight(self) -> Floats:
        """The weight of each edge, 0-1."""
        return self._view("weight")

    @property
    def reinforcements(self) -> Codes:
        """The number of times that ``reinforce`` changed the weight of each edge."""
        return self._view("reinforcements")

    @property
    def created(self) -> Ints:
        """The creation time of each edge in microseconds UTC, or 0 if unknown."""
        return self._view("created")

    @property
    def alive(self) -> Flags:
        """A boolean mask of the edges that were not removed."""
        return self._view("alive")

    def codes_of(self, words: Sequence[str], *, grow: bool = False) -> Ints:
        """Return the integer codes of relation names, or -1 for unknown names.

        With ``grow``, an unknown name gets a new code.
        """
        codes = {word: code for code, word in enumerate(self.relations)}
        for word in words if grow else ():
            if word not in codes:
                codes[word] = len(self.relations)
                self.relations.append(word)
        return np.array([codes.get(word, -1) for word in words], dtype=np.int64)

    def words_of(self, codes: NDArray[np.integer]) -> NDArray[np.object_]:
        """Return the relation names of integer codes."""
        words: NDArray[np.object_] = np.array(self.relations, dtype=object)
        return np.asarray(words[codes], dtype=object)

    # -- Changes ----------------------------------------------------------------------------------------------

    def append(
        self,
        source: ArrayLike,
        target: ArrayLike,
        relation: ArrayLike,
        weight: ArrayLike,
        *,
        nodes: int | Nodes,
        reinforcements: ArrayLike = 0,
        created: ArrayLike = 0,
        max_degree: int | None = None,
    ) -> Ints:
        """Add edges between existing nodes and return their numbers.

        If InputError is raised, no edge is added.

        ``nodes`` is the number of memories, or the nodes of all kinds. Edges may join only these
        nodes. Self-loops and weights outside 0-1 are refused. ``relation``, ``weight``,
        ``reinforcements`` and ``created`` may be one value for all edges.

        ``max_degree`` is the maximum number of edges of one relation at a node, in both directions together. If a new
        edge exceeds it, the strongest edges are kept, and of equally strong edges the newer. A weaker old edge is
        removed. A new edge that is itself too weak is not added and has number -1. Other nodes and relations do not
        change. The result depends only on the edges so far and on this call, so a replayed log of calls gives the same
        edges.
        """
        sources, targets = _read_ends(source, target)
        count = len(sources)
        columns = {
            "relation": _filled("relation", to_integers("relation", relation), count),
            "weight": _filled("weight", np.asarray(weight, dtype=np.float64), count),
            "reinforcements": _filled(
                "reinforcements", to_integers("reinforcements", reinforcements), count
            ),
            "created": _filled("created", to_integers("created", created), count),
        }
        _check_ends(sources, targets, columns, nodes)
        if self._size + count > _MAX_EDGES:
            raise InputError(
                f"A graph can have at most {_MAX_EDGES:,} edges; {self._size:,} and {count:,} new ones exceed this."
            )
        if max_degree is not None and max_degree < 1:
            raise InputError(f"max_degree must be at least 1, not {max_degree}.")
        if max_degree is None or not count:
            return self._add(sources, targets, columns)
        removed, refused = _weakest(
            self, sources, targets, columns["relation"], columns["weight"], max_degree
        )
        self.remove(removed)
        numbers = np.full(count, -1, dtype=np.int64)
        numbers[~refused] = self._add(
            sources[~refused],
            targets[~refused],
            {name: values[~refused] for name, values in columns.items()},
        )
        return numbers

    def reinforce(self, edges: ArrayLike, weight: ArrayLike) -> None:
        """Set new weights 0-1 and count one reinforcement of each edge.

        If InputError is raised, nothing changes.
        """
        numbers = self._numbers(edges)
        weights = _filled("weight", np.asarray(weight, dtype=np.float64), numbers.size)
        ordered = np.sort(numbers)
        if (ordered[1:] == ordered[:-1]).any():
            raise InputError("Edges to reinforce are listed twice: name each edge once.")
        bad = ~((weights >= 0) & (weights <= 1))
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(f"Edge {numbers[at]}: a weight must be in 0..1, not {weights[at]}.")
        removed = ~self._columns["alive"][numbers]
        if removed.any():
            raise InputError(
                f"Edge {numbers[int(np.argmax(removed))]} was removed; it cannot be reinforced."
            )
        self._columns["weight"][numbers] = weights
        self._columns["reinforcements"][numbers] += 1

    def remove(self, edges: ArrayLike) -> int:
        """Remove edges and return the number of newly removed edges.

        Edges are given by number or by a mask.
        """
        wanted = np.asarray(edges)
        if wanted.dtype == np.bool_:
            if wanted.shape != (self._size,):
                raise InputError(
                    f"A mask of edges must have {self._size} values, not the shape {wanted.shape}."
                )
            wanted = np.flatnonzero(wanted)
        numbers = np.sort(self._numbers(wanted))
        numbers = numbers[np.diff(numbers, prepend=-1) > 0]
        numbers = numbers[self._columns["alive"][numbers]]
        self._columns["alive"][numbers] = False
        for relation in np.unique(self._columns["relation"][numbers]).tolist():
            self._first.pop((relation, False), None)
            self._first.pop((relation, True), None)
        self._count(self._ends[:, numbers].astype(np.int64).ravel(), -1)
        self.live -= len(numbers)
        self._removed_since_seal += len(numbers)
        return len(numbers)

    # -- Look-ups ---------------------------------------------------------------------------------------------

    def entered(self, relation: int) -> Ints:
        """Return all nodes that were ever the target of a relation, ascending.

        Only edges added since the last call are scanned.
        """
        start, nodes = self._entered.get(relation, (0, NO_ROWS))
        if start < self._size:
            (fresh,) = np.nonzero(self._columns["relation"][start : self._size] == relation)
            if len(fresh):
                nodes = np.union1d(nodes, self._ends[1, start + fresh].astype(np.int64))
            self._entered[relation] = self._size, nodes
        return nodes

    def degree(self, rows: ArrayLike) -> Ints:
        """Return the number of edges incident to each node."""
        positions = self.layout.positions_or_end(to_integers("row", rows))
        inside = positions < self.layout.size
        degree = np.zeros(len(positions), dtype=np.int64)
        degree[inside] = self._degree[positions[inside]]
        return degree

    def crossings(self, rows: ArrayLike, *, newest: int | None = None) -> Crossings:
        """Return the edges incident to ``rows``, once for each endpoint in ``rows``.

        With ``newest``, only that many of the latest edges of each row are returned.
        """
        met = self._meet(to_integers("row", rows), newest)
        return Crossings(met.position, met.edge, self._across(met), met.outgoing)

    def step(self, rows: ArrayLike, relation: int, *, outgoing: bool = True) -> Ints:
        """Return each row's neighbour along its first edge of a relation, or -1 without an edge."""
        layout, start, first = self._first.get((relation, outgoing), (None, 0, NO_ROWS))
        if layout is not self.layout:
            # The last entry is for nodes outside the layout.
            layout, start, first = self.layout, 0, np.full(self.layout.size + 1, -1, dtype=np.int64)
        if start < self._size:
            (fresh,) = (self._columns["relation"][start : self._size] == relation).nonzero()
            fresh = fresh[::-1] + start
            # The order is reversed, because the last of several values assigned to a position
            # stays.
            numbers = fresh[self._columns["alive"][fresh]]
            positions = layout.positions(self._ends[int(not outgoing), numbers].astype(np.int64))
            free = first[positions] < 0
            first[positions[free]] = self._ends[int(outgoing), numbers[free]]
            self._first[relation, outgoing] = layout, self._size, first
        return first[layout.positions_or_end(to_integers("row", rows))]

    def weigh(self, edges: Ints) -> tuple[Floats, NDArray[np.int16]]:
        """Return the weight and relation code of each edge."""
        return self._columns["weight"][edges], self._columns["relation"][edges]

    def find(
        self, source: ArrayLike, target: ArrayLike, relation: ArrayLike, *, either: bool = False
    ) -> Ints:
        """Return the number of the first edge of a relation from each source to its target.

        The number is -1 for a pair without an edge. With ``either``, an edge from target to source
        counts too. The cost is proportional to the smaller degree of each pair.
        """
        sources, targets = _read_ends(source, target)
        relations = _filled("relation", to_integers("relation", relation), len(sources))
        forward = self.degree(sources) <= self.degree(targets)
        near, far = np.where(forward, sources, targets), np.where(forward, targets, sources)
        met = self._meet(near)
        met = met.only(
            (self._across(met) == far[met.position])
            & (self._columns["relation"][met.edge] == relations[met.position])
            & (either | (met.outgoing == forward[met.position]))
        )
        matches = np.full(len(sources), -1, dtype=np.int64)
        first = np.diff(met.position, prepend=-1) > 0
        matches[met.position[first]] = met.edge[first]
        return matches

    def ends(self, edges: ArrayLike) -> tuple[Ints, Ints]:
        """Return the source and target node of each edge."""
        met = self._ends[:, self._numbers(edges)].astype(np.int64)
        return met[0], met[1]

    # -- On disk ----------------------------------------------------------------------------------------------

    def save(self, target: str | Path | BinaryIO) -> None:
        """Write the edge columns and adjacency index to one file.

        The file has room for further edges. An existing file is replaced as a whole.
        """
        self._refresh(seal=True)
        write_edges(
            target, self._size, self.live, self._columns, self._degree, self._adjacency.base
        )

    @classmethod
    def load(cls, source: str | Path | BinaryIO) -> Edges:
        """Memory-map a file that ``save`` wrote, or read an open file.

        Pages are read only when they are used. Raises DamagedLab if the file is incomplete. Changes
        stay in memory and are not written to the file.
        """
        edges = cls()
        stored = read_edges(source)
        edges._size, edges.live, edges._columns = stored.size, stored.live, stored.columns
        edges.layout, edges._degree, edges._adjacency = (
            stored.layout,
            stored.degree,
            Adjacency(stored.base),
        )
        return edges

    # -- Private ----------------------------------------------------------------------------------------------

    @property
    def _ends(self) -> NDArray[np.uint32]:
        """The source and target nodes of all edges, removed ones included, u32[2, edges]."""
        return self._columns["ends"][:, : self._size]

    def _view(self, name: str) -> Values:
        """Return a read-only view of a column."""
        values = self._columns[name][: self._size]
        values.flags.writeable = False
        return values

    def _numbers(self, edges: ArrayLike) -> Ints:
        """Return edge numbers as int64. Raises InputError if an edge does not exist."""
        numbers = to_integers("edge", edges)
        if numbers.ndim != 1 or (
            len(numbers) and not (numbers.min() >= 0 and numbers.max() < self._size)
        ):
            raise InputError(
                f"Edges are numbered 0..{self._size - 1} in this graph. Pass a list of edge numbers within this range."
            )
        return numbers

    def _add(self, sources: Ints, targets: Ints, columns: dict[str, Values]) -> Ints:
        """Append checked edges and return their numbers."""
        start, stop = self._size, self._size + len(sources)
        self._reserve(stop)
        self._columns["ends"][0, start:stop], self._columns["ends"][1, start:stop] = (
            sources,
            targets,
        )
        for name, values in columns.items():
            self._columns[name][start:stop] = values
        self._columns["alive"][start:stop] = True
        self._size = stop
        self.live += stop - start
        self._count(np.concatenate((sources, targets)), 1)
        return np.arange(start, stop)

    def _count(self, nodes: Ints, change: int) -> None:
        """Add ``change`` to a node's degree for each occurrence in ``nodes``."""
        layout = self.layout.with_room_for(nodes)
        if layout is not self.layout:
            degree = np.zeros(layout.size, dtype=np.int32)
            for new, old, room in zip(
                layout.first, self.layout.first, self.layout.room, strict=True
            ):
                degree[new : new + room] = self._degree[old : old + room]
            self.layout, self._degree = layout, degree
        np.add.at(self._degree, layout.positions(nodes), np.int32(change))

    def _meet(self, nodes: Ints, newest: int | None = None) -> IncidentEdges:
        """Return each node's live edges, or only the ``newest`` of them with the highest numbers."""
        if self._ordered != self._size or self._removed_since_seal:
            self._refresh()
        wanted = None if newest is None else np.full(len(nodes), newest)
        if wanted is not None and self._removed_since_seal:
            # The index still includes removed edges, and any of them may be among the newest.
            wanted += self._adjacency.count(nodes) - self.degree(nodes)
        met = self._adjacency.meet(nodes, wanted)
        if self._removed_since_seal:
            met = met.only(self._columns["alive"][met.edge])
        if newest is None or not len(met.edge):
            return met
        after = np.searchsorted(met.position, np.arange(len(nodes)), side="right")
        return met.only(after[met.position] - np.arange(len(met.edge)) <= newest)

    def _across(self, met: IncidentEdges) -> Ints:
        """Return the node at the other end of each incident edge."""
        ends = self._columns["ends"]
        index = met.edge + np.where(met.outgoing, ends.shape[1], 0)
        return np.asarray(ends.ravel().take(index), dtype=np.int64)

    def _refresh(self, *, seal: bool = False) -> None:
        """Add pending edges to the adjacency index.

        With ``seal``, or after many removals, the index is rebuilt without removed edges.
        """
        # When a quarter of the edges are removed, look-ups read too many useless entries.
        seal = seal or self._removed_since_seal > max(1024, self.live // 4)
        alive = self._columns["alive"][: self._size]
        if self._adjacency.refresh(self._ends, self.layout, alive, seal=seal):
            self._removed_since_seal = 0
        self._ordered = self._size

    def _reserve(self, needed: int) -> None:
        """Enlarge the columns to hold ``needed`` edges."""
        if needed <= len(self._columns["weight"]):
            return
        room = max(needed, self._size + max(self._size // 2, 64))
        for name, old in self._columns.items():
            new = np.zeros((*old.shape[:-1], room), dtype=old.dtype)
            new[..., : self._size] = old[..., : self._size]
            self._columns[name] = new


def _check_ends(
    sources: Ints, targets: Ints, columns: dict[str, Values], nodes: int | Nodes
) -> None:
    """Raise an InputError that names the first invalid edge, if there is one."""
    weights = columns["weight"]
    counts = nodes.counts if isinstance(nodes, Nodes) else (nodes, 0, 0, 0)
    absent = _mask_absent(sources, counts) | _mask_absent(targets, counts)
    loops, light = sources == targets, ~((weights >= 0) & (weights <= 1))
    # Negative numbers are large as unsigned numbers, so one comparison checks both bounds.
    relation = columns["relation"].view(np.uint64) > _MAX_RELATION
    reinforced = columns["reinforcements"].view(np.uint64) > _MAX_REINFORCED
    if not (absent | loops | light | relation | reinforced).any():
        return
    if any(counts[1:]):
        bounds = ", ".join(
            f"{count} of kind {kind}" for kind, count in zip(NODE_KINDS, counts, strict=True)
        )
        bounds = f"there are {bounds}."
    else:
        bounds = f"rows lie in 0..{counts[0] - 1}." if counts[0] else "there are no rows yet."
    for bad, why in (
        (absent, bounds),
        (loops, "a node cannot be linked to itself."),
        (light, "a weight must be in 0..1."),
        (relation, f"a relation code must be in 0..{_MAX_RELATION}."),
        (reinforced, f"reinforcements lie in 0..{_MAX_REINFORCED}."),
    ):
        if bad.any():
            first = int(np.argmax(bad))
            raise InputError(
                f"Edge {first} of {len(sources)} ({sources[first]} -> {targets[first]}, weight {weights[first]}): {why}"
            )


def _mask_absent(nodes: Ints, counts: tuple[int, ...]) -> Flags:
    """Return a mask of the node codes without an existing node."""
    if not any(counts[1:]):
        return nodes.view(np.uint64) >= counts[0]
    kind = nodes >> SHIFT
    outside = (kind < 0) | (kind >= len(counts))
    return np.asarray(
        outside | (nodes - (kind << SHIFT) >= np.array(counts)[np.where(outside, 0, kind)])
    )


def _read_ends(source: ArrayLike, target: ArrayLike) -> tuple[Ints, Ints]:
    """Return sources and targets as integers, or raise InputError if their numbers differ."""
    sources, targets = to_integers("source", source), to_integers("target", target)
    if sources.ndim != 1 or sources.shape != targets.shape:
        raise InputError(
            f"There are {sources.size} sources but {targets.size} targets. Pass one source and one target per edge."
        )
    return sources, targets


def _filled(what: str, values: Values, count: int) -> Values:
    """Return an edge attribute as one value per edge, given one value or one per edge."""
    if values.ndim and values.shape != (count,):
        raise InputError(
            f"There are {count} edges, but {values.size} values of {what}. Pass one value, or one per edge."
        )
    return values if values.ndim else np.full(count, values)


def _weakest(
    edges: Edges, source: Ints, target: Ints, relation: Ints, weight: Floats, max_degree: int
) -> tuple[Ints, Flags]:
    """Return old edges to remove and a mask of new edges to refuse, so that nodes keep their strongest edges.

    An edge stays if it is among the ``max_degree`` strongest of its relation at both ends. Of equally
    strong edges, the newer stays. Only nodes and relations of new edges are considered.
    """
    count, size = len(source), len(edges)
    refused = np.zeros(count, dtype=np.bool_)
    ends = np.concatenate((source, target))
    ordered = np.sort(ends)
    first = np.flatnonzero(np.diff(ordered, prepend=-1) > 0)
    nodes, added = ordered[first], np.diff(first, append=len(ordered))
    crowded = nodes[edges.degree(nodes) + added > max_degree]
    if not len(crowded):
        return NO_ROWS, refused
    index_of_end = np.searchsorted(crowded, ends)
    hit = np.flatnonzero(crowded[np.minimum(index_of_end, len(crowded) - 1)] == ends)
    index = hit % count
    touched = index_of_end[hit] << 16 | relation[index]
    met = edges.crossings(crowded)
    group = met.position << 16 | edges.relation[met.edge]
    shared = np.isin(group, touched)
    group = np.concatenate((group[shared], touched))
    number = np.concatenate((met.edge[shared], index + size))
    strength = np.concatenate((edges.weight[met.edge[shared]], weight[index]))
    order = np.lexsort((-number, -strength, group))
    group = group[order]
    start = np.flatnonzero(np.diff(group, prepend=-1) > 0)
    rank = np.arange(len(group)) - np.repeat(start, np.diff(start, append=len(group)))
    over = number[order[rank >= max_degree]]
    refused[over[over >= size] - size] = True
    return over[over < size], refused
