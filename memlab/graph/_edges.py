"""Directed edges in growable columns, with an order by either end for looking up many rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.errors import InputError

__all__ = ["Crossings", "Edges"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_DELTA_LEAST, _DELTA_MOST = 1024, 16_384
"""The delta is sorted anew after an append and merged into the base beyond a tenth of it, within these limits."""


@dataclass(frozen=True)
class Crossings:
    """Edges met from some rows: entry ``i`` leaves ``rows[position[i]]`` over ``edge[i]`` to ``neighbour[i]``.

    ``outgoing[i]`` says whether that is the edge's own direction. Ordered by position, then edge.
    """

    position: Ints
    edge: Ints
    neighbour: Ints
    outgoing: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.edge)


@dataclass(frozen=True)
class _Side:
    """Edges ordered by one end: ``edge[i]`` is at row ``row[i]``; rows ascend, then edges."""

    row: Ints
    edge: Ints

    def count(self, rows: Ints) -> tuple[Ints, Ints]:
        """Where the edges of each of ``rows`` start, and how many they are."""
        start = np.searchsorted(self.row, rows, side="left")
        return start, np.searchsorted(self.row, rows, side="right") - start


_NO_SIDE = _Side(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


class Edges:
    """``len(edges)`` edges, appended; an edge's number is its place in that order.

    >>> edges = Edges()
    >>> edges.append([0, 1], [1, 2], [0, 0], [1.0, 0.5], nodes=3).tolist()
    [0, 1]
    >>> crossed = edges.crossings(np.array([1]))
    >>> crossed.neighbour.tolist(), crossed.outgoing.tolist()
    ([0, 2], [False, True])
    """

    def __init__(self) -> None:
        self._size = 0
        self._ends: Ints = np.empty((2, 0), dtype=np.int64)
        self._relation: NDArray[np.int16] = np.empty(0, dtype=np.int16)
        self._weight: Floats = np.empty(0)
        self._reinforcements: Ints = np.empty(0, dtype=np.int64)
        self._created: Ints = np.empty(0, dtype=np.int64)
        self._sealed = 0
        self._base = (_NO_SIDE, _NO_SIDE)
        self._delta: tuple[int, tuple[_Side, _Side]] = (0, (_NO_SIDE, _NO_SIDE))

    def __len__(self) -> int:
        return self._size

    # -- columns: read-only views of the edges so far ---------------------------------------------------------

    @property
    def source(self) -> Ints:
        """The row that each edge leaves."""
        return _read_only(self._ends[0, : self._size])

    @property
    def target(self) -> Ints:
        """The row that each edge enters."""
        return _read_only(self._ends[1, : self._size])

    @property
    def relation(self) -> NDArray[np.int16]:
        """What joins them, as the caller's code."""
        return _read_only(self._relation[: self._size])

    @property
    def weight(self) -> Floats:
        """How strongly, 0-1."""
        return _read_only(self._weight[: self._size])

    @property
    def reinforcements(self) -> Ints:
        """How often the weight was changed by ``reinforce``."""
        return _read_only(self._reinforcements[: self._size])

    @property
    def created(self) -> Ints:
        """When each was made, microseconds UTC; 0 unless given."""
        return _read_only(self._created[: self._size])

    def append(
        self,
        source: ArrayLike,
        target: ArrayLike,
        relation: ArrayLike,
        weight: ArrayLike,
        *,
        nodes: int,
        reinforcements: ArrayLike = 0,
        created: ArrayLike = 0,
    ) -> Ints:
        """Add edges between rows ``0..nodes - 1`` and return their numbers; all of them or, on InputError, none.

        Refused are self-loops, rows that do not exist, weights outside 0-1 and NaN. ``relation``, ``weight``,
        ``reinforcements`` and ``created`` may be one value for all.
        """
        sources, targets = _whole("source", source), _whole("target", target)
        if sources.ndim != 1 or sources.shape != targets.shape:
            raise InputError(f"{sources.size} sources do not pair with {targets.size} targets.")
        count = len(sources)
        relations = _filled("relation", _whole("relation", relation), count)
        weights = _filled("weight", np.asarray(weight, dtype=np.float64), count)
        reinforced = _filled("reinforcements", _whole("reinforcements", reinforcements), count)
        made = _filled("created", _whole("created", created), count)

        def refuse(bad: NDArray[np.bool_], why: str) -> None:
            if bad.any():
                at = int(np.argmax(bad))
                raise InputError(f"Edge {at} of {count} ({sources[at]} -> {targets[at]}, weight {weights[at]}): {why}")

        refuse(
            (np.minimum(sources, targets) < 0) | (np.maximum(sources, targets) >= nodes),
            f"rows lie in 0..{nodes - 1}." if nodes else "there are no rows yet.",
        )
        refuse(sources == targets, "nothing is joined to itself.")
        refuse(~((weights >= 0) & (weights <= 1)), "a weight lies in 0..1.")
        refuse((relations < 0) | (relations > np.iinfo(np.int16).max), "a relation code lies in 0..32767.")
        refuse(reinforced < 0, "reinforcements are at least 0.")
        start, stop = self._size, self._size + count
        self._reserve(stop)
        self._ends[0, start:stop], self._ends[1, start:stop] = sources, targets
        self._relation[start:stop], self._weight[start:stop] = relations, weights
        self._reinforcements[start:stop], self._created[start:stop] = reinforced, made
        self._size = stop
        return np.arange(start, stop)

    def reinforce(self, edges: ArrayLike, weight: ArrayLike) -> None:
        """Give each of these edges a new weight 0-1 and count one reinforcement; on InputError nothing changes."""
        numbers = _whole("edge", edges)
        weights = _filled("weight", np.asarray(weight, dtype=np.float64), numbers.size)
        if numbers.ndim != 1 or (len(numbers) and not (numbers.min() >= 0 and numbers.max() < self._size)):
            raise InputError(f"Edges are numbered 0..{self._size - 1}.")
        if len(np.unique(numbers)) != len(numbers):
            raise InputError("An edge is reinforced once at a time; these numbers repeat.")
        bad = ~((weights >= 0) & (weights <= 1))
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(f"Edge {numbers[at]}: a weight lies in 0..1, not {weights[at]}.")
        self._weight[numbers] = weights
        self._reinforcements[numbers] += 1

    def degree(self, rows: ArrayLike) -> Ints:
        """How many edges meet each row, in either direction."""
        wanted = _whole("row", rows)
        degree = np.zeros(len(wanted), dtype=np.int64)
        for pair in self._sides():
            for side in pair:
                degree += side.count(wanted)[1]
        return degree

    def crossings(self, rows: ArrayLike) -> Crossings:
        """Every edge that leaves or enters ``rows``, once for each end that is among them."""
        wanted = _whole("row", rows)
        position, edge, outgoing = self._meet(wanted, (True, False))
        return Crossings(position, edge, self._ends[outgoing.astype(np.int64), edge], outgoing)

    def step(self, rows: ArrayLike, relation: int, *, outgoing: bool = True) -> Ints:
        """For each row the neighbour along its first edge of this relation, -1 where there is none."""
        wanted = _whole("row", rows)
        position, edge, _ = self._meet(wanted, (outgoing,))
        along = self._relation[edge] == relation
        position, edge = position[along], edge[along]
        first = np.ones(len(position), dtype=np.bool_)
        first[1:] = position[1:] != position[:-1]
        found = np.full(len(wanted), -1, dtype=np.int64)
        found[position[first]] = self._ends[int(outgoing), edge[first]]
        return found

    # -- inside -----------------------------------------------------------------------------------------------

    def _meet(self, rows: Ints, directions: tuple[bool, ...]) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Position, edge and direction of what meets ``rows``, by position, then edge."""
        positions, edges, ways = [], [], []
        for pair in self._sides():
            for outgoing in directions:
                side = pair[0] if outgoing else pair[1]
                start, count = side.count(rows)
                ends = np.cumsum(count)
                total = int(ends[-1]) if len(ends) else 0
                place = np.arange(total) + np.repeat(start - (ends - count), count)
                positions.append(np.repeat(np.arange(len(rows)), count))
                edges.append(side.edge[place])
                ways.append(np.full(total, outgoing))
        position, edge, way = np.concatenate(positions), np.concatenate(edges), np.concatenate(ways)
        # four runs, each in order: a stable sort merges them
        order = np.argsort(position * max(self._size, 1) + edge, kind="stable")
        return position[order], edge[order], way[order]

    def _sides(self) -> tuple[tuple[_Side, _Side], tuple[_Side, _Side]]:
        size = self._size
        if size - self._sealed > max(_DELTA_LEAST, min(self._sealed // 10, _DELTA_MOST)):
            self._base = (self._ordered(0, 0, size), self._ordered(1, 0, size))
            self._sealed = size
        if self._delta[0] != size:
            self._delta = (size, (self._ordered(0, self._sealed, size), self._ordered(1, self._sealed, size)))
        return self._base, self._delta[1]

    def _ordered(self, end: int, start: int, stop: int) -> _Side:
        rows = self._ends[end, start:stop]
        order = np.argsort(rows, kind="stable")
        return _Side(rows[order], order + start)

    def _reserve(self, needed: int) -> None:
        if needed <= len(self._weight):
            return
        room, size = max(needed, 2 * len(self._weight), 64), self._size

        def grown(old: NDArray[Any]) -> NDArray[Any]:
            new = np.zeros((*old.shape[:-1], room), dtype=old.dtype)
            new[..., :size] = old[..., :size]
            return new

        self._ends, self._relation, self._weight = grown(self._ends), grown(self._relation), grown(self._weight)
        self._reinforcements, self._created = grown(self._reinforcements), grown(self._created)


def _whole(what: str, values: ArrayLike) -> Ints:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"Every {what} is a whole number, not {array.dtype}.")
    return array.astype(np.int64, copy=False)


def _filled(what: str, values: NDArray[Any], count: int) -> NDArray[Any]:
    if values.ndim and values.shape != (count,):
        raise InputError(f"There are {count} edges, and {values.size} values of {what}.")
    return np.broadcast_to(values, (count,))


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    values.flags.writeable = False
    return values
