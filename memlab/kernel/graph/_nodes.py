"""Nodes of four kinds as whole numbers: the kind in the high bits, a number within the kind in the low ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.errors import InputError, UnknownName

__all__ = ["NODE_KINDS", "Layout", "Nodes", "as_integers", "kind_of", "node_codes", "number_of"]

Ints = NDArray[np.int64]

NODE_KINDS = ("memory", "tag", "cluster", "entity")
"""What a node can be; its place here is the kind's code. A memory's node is its row, so that rows are nodes."""

SHIFT = 28
"""Bits of the number within a kind: 268 million nodes of each, and every code fits four bytes without a sign."""

_MOST = 1 << SHIFT


def node_codes(kind: str, numbers: ArrayLike) -> Ints:
    """The nodes with these numbers within ``kind``.

    >>> node_codes("tag", [0, 2]).tolist()
    [268435456, 268435458]
    """
    within = as_integers("number of a node", numbers)
    if within.size and not (within.min() >= 0 and within.max() < _MOST):
        raise InputError(f"Nodes of a kind are numbered 0..{_MOST - 1}, not {within.min()}..{within.max()}.")
    return within + (_place(kind) << SHIFT)


def kind_of(nodes: ArrayLike) -> NDArray[np.int64]:
    """The kind of each node, as its place in ``NODE_KINDS``.

    >>> kind_of([7, 268435456]).tolist()
    [0, 1]
    """
    codes = as_integers("node", nodes)
    if codes.size and not (codes.min() >= 0 and codes.max() < len(NODE_KINDS) << SHIFT):
        raise InputError(f"Nodes lie in 0..{(len(NODE_KINDS) << SHIFT) - 1}, not {codes.min()}..{codes.max()}.")
    return codes >> SHIFT


def number_of(nodes: ArrayLike) -> Ints:
    """The number of each node within its kind: a memory's row.

    >>> number_of([7, 268435457]).tolist()
    [7, 1]
    """
    return as_integers("node", nodes) & (_MOST - 1)


class Nodes:
    """Which nodes there are: a count of memories, and the names of tags, clusters and entities.

    A node keeps its code for good. ``vocabularies`` gives all that a snapshot needs to keep.

    >>> nodes = Nodes(memories=3)
    >>> nodes.intern("tag", ["rust", "style", "rust"]).tolist()
    [268435456, 268435457, 268435456]
    >>> nodes.find("tag", ["style", "python"]).tolist(), nodes.labels([2, 268435457])
    ([268435457, -1], ['memory 2', 'tag style'])
    """

    def __init__(self, vocabularies: Mapping[str, Sequence[str]] | None = None, *, memories: int = 0) -> None:
        if not 0 <= memories <= _MOST:
            raise InputError(f"A graph holds 0..{_MOST} memories, not {memories}.")
        self._memories = memories
        self._names: list[list[str]] = [[] for _ in NODE_KINDS]
        self._numbers: list[dict[str, int]] = [{} for _ in NODE_KINDS]
        for kind, names in (vocabularies or {}).items():
            if len(set(names)) != len(names):
                raise InputError(f"Two nodes of kind {kind} share a name.")
            self.intern(kind, names)

    def grow(self, memories: int) -> None:
        """Say that there are ``memories`` memories by now; there are never fewer than before."""
        if not self._memories <= memories <= _MOST:
            raise InputError(f"Memories grow from {self._memories} to at most {_MOST}, not to {memories}.")
        self._memories = memories

    def intern(self, kind: str, names: Iterable[str]) -> Ints:
        """The nodes of these names; a new name gets a new node. All of them or, on InputError, none."""
        place = self._named(kind)
        wanted = list(names)
        for name in wanted:
            if not isinstance(name, str) or not name:
                raise InputError(f"A {kind} has a name, not {name!r}.")
        numbers, known = self._numbers[place], self._names[place]
        found = np.empty(len(wanted), dtype=np.int64)
        for at, name in enumerate(wanted):
            number = numbers.get(name)
            if number is None:
                number = numbers[name] = len(known)
                known.append(name)
            found[at] = number
        return found + (place << SHIFT)

    def find(self, kind: str, names: Iterable[str]) -> Ints:
        """The nodes of these names, -1 for a name that nothing bears."""
        place = self._named(kind)
        numbers, first = self._numbers[place], place << SHIFT
        found = [numbers.get(name, -1) for name in names]
        return np.array([number + first if number >= 0 else -1 for number in found], dtype=np.int64)

    def count(self, kind: str) -> int:
        """How many nodes of this kind there are."""
        place = _place(kind)
        return self._memories if place == 0 else len(self._names[place])

    @property
    def counts(self) -> tuple[int, ...]:
        """How many nodes there are of each kind."""
        return tuple(self.count(kind) for kind in NODE_KINDS)

    def labels(self, nodes: ArrayLike) -> list[str]:
        """Kind and name of each node; a memory's number is its row. InputError for a node that does not exist."""
        codes = as_integers("node", nodes)
        labels = []
        for code, place in zip(codes.tolist(), kind_of(codes).tolist(), strict=True):
            number, kind = code - (place << SHIFT), NODE_KINDS[place]
            if number >= self.count(kind):
                raise InputError(f"There is no {kind} {number}; there are {self.count(kind)}.")
            labels.append(f"{kind} {self._names[place][number] if place else number}")
        return labels

    def names(self, nodes: ArrayLike) -> list[str | None]:
        """What each tag, cluster or entity is called; None for a memory."""
        codes = as_integers("node", nodes)
        pairs = zip(number_of(codes).tolist(), kind_of(codes).tolist(), strict=True)
        return [self._names[place][number] if place else None for number, place in pairs]

    def vocabularies(self) -> dict[str, list[str]]:
        """The names of each kind by number: what ``Nodes(...)`` takes."""
        return {kind: list(names) for kind, names in zip(NODE_KINDS[1:], self._names[1:], strict=True)}

    @staticmethod
    def _named(kind: str) -> int:
        place = _place(kind)
        if place == 0:
            raise InputError("A memory is known by its row, not by a name.")
        return place


@dataclass(frozen=True)
class Layout:
    """Room for so many nodes of each kind, side by side: what turns nodes into places of one dense array."""

    room: tuple[int, ...] = (0,) * len(NODE_KINDS)

    @property
    def size(self) -> int:
        return sum(self.room)

    @cached_property
    def first(self) -> tuple[int, ...]:
        """The first place of each kind."""
        return tuple(sum(self.room[:kind]) for kind in range(len(self.room)))

    @cached_property
    def _shift(self) -> Ints:
        return np.asarray(np.array(self.first) - (np.arange(len(self.room)) << SHIFT), dtype=np.int64)

    @cached_property
    def _rows_only(self) -> bool:
        return not any(self.room[1:])

    def place(self, codes: Ints) -> Ints:
        """The place of each node, all of which lie in this layout."""
        return codes if self._rows_only else codes + self._shift[codes >> SHIFT]

    def place_or_end(self, codes: Ints) -> Ints:
        """The place of each node, and ``size`` for what lies outside."""
        if self._rows_only:
            return np.where(codes.view(np.uint64) < self.size, codes, self.size)
        kind = codes >> SHIFT
        inside = (kind >= 0) & (kind < len(self.room))
        kind = np.where(inside, kind, 0)
        inside &= (codes & (_MOST - 1)) < np.array(self.room)[kind]
        return np.where(inside, codes + self._shift[kind], self.size)

    def code(self, places: Ints) -> Ints:
        """The node at each place."""
        if self._rows_only:
            return places
        kind = np.searchsorted(np.cumsum(self.room), places, side="right")
        return np.asarray(places - self._shift[kind])

    def with_room_for(self, codes: Ints) -> Layout:
        """This layout, or one in which the kinds that are too small for ``codes`` have at least doubled."""
        if not len(codes):
            return self
        top = int(codes.max())
        if top < self.room[0]:
            return self
        if top < _MOST:
            needed = [top + 1]
        else:
            kinds, numbers = codes >> SHIFT, codes & (_MOST - 1)
            needed = [int(numbers[kinds == kind].max(initial=-1)) + 1 for kind in range(len(self.room))]
        needed += [0] * (len(self.room) - len(needed))
        if all(want <= have for want, have in zip(needed, self.room, strict=True)):
            return self
        return Layout(
            tuple(have if want <= have else max(want, 2 * have) for want, have in zip(needed, self.room, strict=True))
        )


def as_integers(what: str, values: ArrayLike) -> Ints:
    """``values`` as int64; InputError if they are not whole numbers."""
    array = np.asarray(values)
    if array.size and (array.dtype.kind not in "iu" or (array.dtype == np.uint64 and array.max() >= 1 << 63)):
        raise InputError(f"Every {what} is a whole number of 64 bits, not {array.dtype}.")
    return array.astype(np.int64, copy=False)


def _place(kind: str) -> int:
    try:
        return NODE_KINDS.index(kind)
    except ValueError:
        raise UnknownName("kind of node", kind, NODE_KINDS) from None
