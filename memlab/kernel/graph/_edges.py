"""Directed, weighted edges in growable columns, with an order by either end for looking up many nodes at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.errors import InputError
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

__all__ = ["Crossings", "Edges"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_MOST_EDGES = 1 << 31
_MOST_RELATION = 32_767
_MOST_REINFORCED = 2_147_483_647


@dataclass(frozen=True)
class Crossings:
    """Edges met from some nodes: entry ``i`` leaves ``rows[position[i]]`` over ``edge[i]`` to ``neighbour[i]``.

    ``outgoing[i]`` says whether that is the edge's own direction. Ordered by position, then edge.
    """

    position: Ints
    edge: Ints
    neighbour: Ints
    outgoing: Flags

    def __len__(self) -> int:
        return len(self.edge)


class Edges:
    """``len(edges)`` edges, appended; an edge's number is its place in that order and stays its own for good.

    A removed edge keeps its number and its columns, and no look-up finds it. Edges of the same ends and relation
    stay apart: ``find`` tells whether there is one to ``reinforce`` instead.

    Memory: 31 bytes an edge in columns (of which growing may double the room), 8 in the base, 16 in the delta; 12
    bytes a node.

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
        """How many edges are still there."""
        self._columns: dict[str, NDArray[Any]] = {
            name: np.empty((*shape, 0), dtype=dtype) for name, (dtype, shape) in COLUMNS.items()
        }
        self.layout = Layout()
        """Room for every node that an edge has met."""
        self._degree: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._adjacency = Adjacency()
        self._removed_since_seal = 0
        self._ordered = -1
        """How many edges the order by either end holds."""
        self._first: dict[tuple[int, bool], tuple[Layout, int, Ints]] = {}
        self._entered: dict[int, tuple[int, Ints]] = {}
        self.relations = list(RELATIONS)
        """The words of the codes in ``relation``; whoever appends edges of other relations adds to them."""

    def __len__(self) -> int:
        return self._size

    # -- columns: read-only, of all the edges so far, by number -----------------------------------------------

    @property
    def source(self) -> Ints:
        """The node that each edge leaves: a copy."""
        return np.asarray(self._ends[0], dtype=np.int64)

    @property
    def target(self) -> Ints:
        """The node that each edge enters: a copy."""
        return np.asarray(self._ends[1], dtype=np.int64)

    @property
    def relation(self) -> NDArray[np.int16]:
        """What joins them, as the caller's code."""
        return self._view("relation")

    @property
    def weight(self) -> Floats:
        """How strongly, 0-1."""
        return self._view("weight")

    @property
    def reinforcements(self) -> NDArray[np.int32]:
        """How often the weight was changed by ``reinforce``."""
        return self._view("reinforcements")

    @property
    def created(self) -> Ints:
        """When each was made, microseconds UTC; 0 unless given."""
        return self._view("created")

    @property
    def alive(self) -> Flags:
        """Whether each is still there: false for what was removed."""
        return self._view("alive")

    def codes_of(self, words: Sequence[str], *, grow: bool = False) -> Ints:
        """The codes of relations; -1 for one that no edge has, unless ``grow`` gives it one."""
        known = {word: code for code, word in enumerate(self.relations)}
        for word in words if grow else ():
            if word not in known:
                known[word] = len(self.relations)
                self.relations.append(word)
        return np.array([known.get(word, -1) for word in words], dtype=np.int64)

    def words_of(self, codes: NDArray[np.integer]) -> NDArray[np.object_]:
        """The words of relations, by their codes."""
        words: NDArray[np.object_] = np.array(self.relations, dtype=object)
        return np.asarray(words[codes], dtype=object)

    # -- changes ----------------------------------------------------------------------------------------------

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
        most: int | None = None,
    ) -> Ints:
        """Add edges between nodes that exist and return their numbers; all of them or, on InputError, none.

        ``nodes`` says what exists: a number of memories, or all kinds. Refused are self-loops, nodes that do not
        exist, weights outside 0-1 and NaN. ``relation``, ``weight``, ``reinforcements`` and ``created`` may be one
        value for all.

        ``most`` bounds how many edges of one relation a node has, in both directions together. Where these edges
        lead beyond it, the strongest stay, the newer of equals: a weaker old edge is removed, and a new one that
        is itself among the weakest is not added and has number -1. Other nodes and relations are left alone.
        The outcome depends on the edges so far and on this call alone, so a log of calls replays to the same edges.
        """
        sources, targets = to_integers("source", source), to_integers("target", target)
        if sources.ndim != 1 or sources.shape != targets.shape:
            raise InputError(f"{sources.size} sources do not pair with {targets.size} targets.")
        count = len(sources)
        given = {
            "relation": _filled("relation", to_integers("relation", relation), count),
            "weight": _filled("weight", np.asarray(weight, dtype=np.float64), count),
            "reinforcements": _filled(
                "reinforcements", to_integers("reinforcements", reinforcements), count
            ),
            "created": _filled("created", to_integers("created", created), count),
        }
        _check(sources, targets, given, nodes)
        if self._size + count > _MOST_EDGES:
            raise InputError(
                f"A graph holds {_MOST_EDGES:,} edges; {self._size:,} and {count:,} are more."
            )
        if most is not None and most < 1:
            raise InputError(f"A node may have at least one edge of a relation, not {most}.")
        if most is None or not count:
            return self._add(sources, targets, given)
        gone, refused = _weakest(self, sources, targets, given["relation"], given["weight"], most)
        self.remove(gone)
        numbers = np.full(count, -1, dtype=np.int64)
        numbers[~refused] = self._add(
            sources[~refused],
            targets[~refused],
            {name: values[~refused] for name, values in given.items()},
        )
        return numbers

    def reinforce(self, edges: ArrayLike, weight: ArrayLike) -> None:
        """Give each of these edges a new weight 0-1 and count one reinforcement; on InputError nothing changes."""
        numbers = self._numbers(edges)
        weights = _filled("weight", np.asarray(weight, dtype=np.float64), numbers.size)
        ordered = np.sort(numbers)
        if (ordered[1:] == ordered[:-1]).any():
            raise InputError("An edge is reinforced once at a time; these numbers repeat.")
        bad = ~((weights >= 0) & (weights <= 1))
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(f"Edge {numbers[at]}: a weight lies in 0..1, not {weights[at]}.")
        gone = ~self._columns["alive"][numbers]
        if gone.any():
            raise InputError(
                f"Edge {numbers[int(np.argmax(gone))]} was removed; it cannot be reinforced."
            )
        self._columns["weight"][numbers] = weights
        self._columns["reinforcements"][numbers] += 1

    def remove(self, edges: ArrayLike) -> int:
        """Take edges out, by number or by a mask of all; how many were still there. What is gone already stays so."""
        wanted = np.asarray(edges)
        if wanted.dtype == np.bool_:
            if wanted.shape != (self._size,):
                raise InputError(f"A mask of edges has {self._size} values, not {wanted.shape}.")
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

    # -- look-ups ---------------------------------------------------------------------------------------------

    def entered(self, relation: int) -> Ints:
        """The nodes that an edge of this relation ever entered, ascending; each edge is looked at once."""
        seen, nodes = self._entered.get(relation, (0, np.empty(0, dtype=np.int64)))
        if seen < self._size:
            (fresh,) = np.nonzero(self._columns["relation"][seen : self._size] == relation)
            if len(fresh):
                nodes = np.union1d(nodes, self._ends[1, seen + fresh].astype(np.int64))
            self._entered[relation] = self._size, nodes
        return nodes

    def degree(self, rows: ArrayLike) -> Ints:
        """How many edges meet each node, in either direction."""
        places = self.layout.place_or_end(to_integers("row", rows))
        inside = places < self.layout.size
        degree = np.zeros(len(places), dtype=np.int64)
        degree[inside] = self._degree[places[inside]]
        return degree

    def crossings(self, rows: ArrayLike, *, newest: int | None = None) -> Crossings:
        """Every edge that leaves or enters ``rows``, once for each end that is among them.

        With ``newest``, only that many of the latest edges of each row.
        """
        met = self._meet(to_integers("row", rows), newest)
        return Crossings(met.position, met.edge, self._across(met), met.outgoing)

    def step(self, rows: ArrayLike, relation: int, *, outgoing: bool = True) -> Ints:
        """For each row the neighbour along its first edge of this relation, -1 where there is none."""
        layout, seen, first = self._first.get(
            (relation, outgoing), (None, 0, np.empty(0, dtype=np.int64))
        )
        if layout is not self.layout:
            # the last is for what lies outside the layout
            layout, seen, first = self.layout, 0, np.full(self.layout.size + 1, -1, dtype=np.int64)
        if seen < self._size:
            (fresh,) = (self._columns["relation"][seen : self._size] == relation).nonzero()
            fresh = fresh[::-1] + seen
            # of several values for one place the last stays: that of the first edge
            numbers = fresh[self._columns["alive"][fresh]]
            places = layout.place(self._ends[int(not outgoing), numbers].astype(np.int64))
            free = first[places] < 0
            first[places[free]] = self._ends[int(outgoing), numbers[free]]
            self._first[relation, outgoing] = layout, self._size, first
        return first[layout.place_or_end(to_integers("row", rows))]

    def weigh(self, edges: Ints) -> tuple[Floats, NDArray[np.int16]]:
        """The weight and the relation of each of these edges, which exist."""
        return self._columns["weight"][edges], self._columns["relation"][edges]

    def find(
        self, source: ArrayLike, target: ArrayLike, relation: ArrayLike, *, either: bool = False
    ) -> Ints:
        """The first edge of this relation from each source to its target, -1 where there is none.

        ``either`` counts an edge from target to source too. It costs as many steps as the end with fewer edges has.
        """
        sources, targets = to_integers("source", source), to_integers("target", target)
        if sources.ndim != 1 or sources.shape != targets.shape:
            raise InputError(f"{sources.size} sources do not pair with {targets.size} targets.")
        relations = _filled("relation", to_integers("relation", relation), len(sources))
        forward = self.degree(sources) <= self.degree(targets)
        near, far = np.where(forward, sources, targets), np.where(forward, targets, sources)
        met = self._meet(near)
        met = met.only(
            (self._across(met) == far[met.position])
            & (self._columns["relation"][met.edge] == relations[met.position])
            & (either | (met.outgoing == forward[met.position]))
        )
        found = np.full(len(sources), -1, dtype=np.int64)
        first = np.diff(met.position, prepend=-1) > 0
        found[met.position[first]] = met.edge[first]
        return found

    def ends(self, edges: ArrayLike) -> tuple[Ints, Ints]:
        """What each of these edges leaves, and what it enters."""
        met = self._ends[:, self._numbers(edges)].astype(np.int64)
        return met[0], met[1]

    # -- on disk ----------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write one file, columns and base, with room to grow. Replaces it whole."""
        self._refresh(seal=True)
        write_edges(
            Path(path), self._size, self.live, self._columns, self._degree, self._adjacency.base
        )

    @classmethod
    def load(cls, path: str | Path) -> Edges:
        """Map what ``save`` wrote; nothing is read until it is looked up. DamagedLab if the file is not whole.

        Changes stay in memory: the file is not written to.
        """
        edges = cls()
        stored = read_edges(Path(path))
        edges._size, edges.live, edges._columns = stored.size, stored.live, stored.columns
        edges.layout, edges._degree, edges._adjacency = (
            stored.layout,
            stored.degree,
            Adjacency(stored.base),
        )
        return edges

    # -- inside -----------------------------------------------------------------------------------------------

    @property
    def _ends(self) -> NDArray[np.uint32]:
        return self._columns["ends"][:, : self._size]

    def _view(self, name: str) -> NDArray[Any]:
        values = self._columns[name][: self._size]
        values.flags.writeable = False
        return values

    def _numbers(self, edges: ArrayLike) -> Ints:
        numbers = to_integers("edge", edges)
        if numbers.ndim != 1 or (
            len(numbers) and not (numbers.min() >= 0 and numbers.max() < self._size)
        ):
            raise InputError(f"Edges are numbered 0..{self._size - 1}.")
        return numbers

    def _add(self, sources: Ints, targets: Ints, given: dict[str, NDArray[Any]]) -> Ints:
        start, stop = self._size, self._size + len(sources)
        self._reserve(stop)
        self._columns["ends"][0, start:stop], self._columns["ends"][1, start:stop] = (
            sources,
            targets,
        )
        for name, values in given.items():
            self._columns[name][start:stop] = values
        self._columns["alive"][start:stop] = True
        self._size = stop
        self.live += stop - start
        self._count(np.concatenate((sources, targets)), 1)
        return np.arange(start, stop)

    def _count(self, nodes: Ints, change: int) -> None:
        """Add ``change`` to the degree of each node, as often as it occurs."""
        layout = self.layout.with_room_for(nodes)
        if layout is not self.layout:
            degree = np.zeros(layout.size, dtype=np.int32)
            for new, old, room in zip(
                layout.first, self.layout.first, self.layout.room, strict=True
            ):
                degree[new : new + room] = self._degree[old : old + room]
            self.layout, self._degree = layout, degree
        np.add.at(self._degree, layout.place(nodes), np.int32(change))

    def _meet(self, nodes: Ints, newest: int | None = None) -> IncidentEdges:
        if self._ordered != self._size or self._removed_since_seal:
            self._refresh()
        wanted = None if newest is None else np.full(len(nodes), newest)
        if wanted is not None and self._removed_since_seal:
            # any of the newest could be one that was removed and is still in the order
            wanted += self._adjacency.count(nodes) - self.degree(nodes)
        met = self._adjacency.meet(nodes, wanted)
        if self._removed_since_seal:
            met = met.only(self._columns["alive"][met.edge])
        if newest is None or not len(met.edge):
            return met
        after = np.searchsorted(met.position, np.arange(len(nodes)), side="right")
        return met.only(after[met.position] - np.arange(len(met.edge)) <= newest)

    def _across(self, met: IncidentEdges) -> Ints:
        ends = self._columns["ends"]
        place = met.edge + np.where(met.outgoing, ends.shape[1], 0)
        return np.asarray(ends.ravel().take(place), dtype=np.int64)

    def _refresh(self, *, seal: bool = False) -> None:
        # a quarter of the edges gone makes look-ups read as much again in vain
        seal = seal or self._removed_since_seal > max(1024, self.live // 4)
        alive = self._columns["alive"][: self._size]
        if self._adjacency.refresh(self._ends, self.layout, alive, seal=seal):
            self._removed_since_seal = 0
        self._ordered = self._size

    def _reserve(self, needed: int) -> None:
        if needed <= len(self._columns["weight"]):
            return
        room = max(needed, self._size + max(self._size // 2, 64))
        for name, old in self._columns.items():
            new = np.zeros((*old.shape[:-1], room), dtype=old.dtype)
            new[..., : self._size] = old[..., : self._size]
            self._columns[name] = new


def _check(
    sources: Ints, targets: Ints, given: dict[str, NDArray[Any]], nodes: int | Nodes
) -> None:
    weights = given["weight"]
    counts = nodes.counts if isinstance(nodes, Nodes) else (nodes, 0, 0, 0)
    absent = _absent(sources, counts) | _absent(targets, counts)
    loops, light = sources == targets, ~((weights >= 0) & (weights <= 1))
    # as unsigned numbers, negative ones are large
    relation = given["relation"].view(np.uint64) > _MOST_RELATION
    reinforced = given["reinforcements"].view(np.uint64) > _MOST_REINFORCED
    if not (absent | loops | light | relation | reinforced).any():
        return
    if any(counts[1:]):
        known = ", ".join(
            f"{count} of kind {kind}" for kind, count in zip(NODE_KINDS, counts, strict=True)
        )
        known = f"there are {known}."
    else:
        known = f"rows lie in 0..{counts[0] - 1}." if counts[0] else "there are no rows yet."
    for bad, why in (
        (absent, known),
        (loops, "nothing is joined to itself."),
        (light, "a weight lies in 0..1."),
        (relation, f"a relation code lies in 0..{_MOST_RELATION}."),
        (reinforced, f"reinforcements lie in 0..{_MOST_REINFORCED}."),
    ):
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(
                f"Edge {at} of {len(sources)} ({sources[at]} -> {targets[at]}, weight {weights[at]}): {why}"
            )


def _absent(nodes: Ints, counts: tuple[int, ...]) -> Flags:
    if not any(counts[1:]):
        return nodes.view(np.uint64) >= counts[0]
    kind = nodes >> SHIFT
    outside = (kind < 0) | (kind >= len(counts))
    return np.asarray(
        outside | (nodes - (kind << SHIFT) >= np.array(counts)[np.where(outside, 0, kind)])
    )


def _filled(what: str, values: NDArray[Any], count: int) -> NDArray[Any]:
    if values.ndim and values.shape != (count,):
        raise InputError(f"There are {count} edges, and {values.size} values of {what}.")
    return values if values.ndim else np.full(count, values)


def _weakest(
    edges: Edges, source: Ints, target: Ints, relation: Ints, weight: Floats, most: int
) -> tuple[Ints, Flags]:
    """Numbers of the old edges and a mask of the new ones that are not among the ``most`` strongest at both ends.

    Of equals the newer stays. Only nodes and relations that a new edge touches are looked at.
    """
    count, size = len(source), len(edges)
    refused = np.zeros(count, dtype=np.bool_)
    ends = np.concatenate((source, target))
    ordered = np.sort(ends)
    first = np.flatnonzero(np.diff(ordered, prepend=-1) > 0)
    nodes, added = ordered[first], np.diff(first, append=len(ordered))
    crowded = nodes[edges.degree(nodes) + added > most]
    if not len(crowded):
        return np.empty(0, dtype=np.int64), refused
    place = np.searchsorted(crowded, ends)
    hit = np.flatnonzero(crowded[np.minimum(place, len(crowded) - 1)] == ends)
    index = hit % count
    touched = place[hit] << 16 | relation[index]
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
    over = number[order[rank >= most]]
    refused[over[over >= size] - size] = True
    return over[over < size], refused
