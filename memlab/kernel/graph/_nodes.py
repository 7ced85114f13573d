"""Nodes of four kinds as integers, layouts of arrays, and the adjacency index.

The high bits of a node's code are its kind, and the low bits its number within the kind.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.errors import DamagedLab, InputError, UnknownName
from memlab.kernel.base.arrays import NO_ROWS, Codes, Flags, Ints, Values
from memlab.kernel.base.disk import MAPPED_BYTES, replacing
from memlab.kernel.graph._sparse import sort_by_number

NODE_KINDS = ("memory", "tag", "cluster", "entity")
"""The kinds of nodes, in the order of their codes.

The code of a memory equals its row.
"""

SHIFT = 28
"""Bits of the number within a kind.

This allows 268 million nodes of each kind, and every code fits four unsigned bytes.
"""

_KIND_SIZE = 1 << SHIFT  # the first number that no node of a kind has


def node_codes(kind: str, numbers: ArrayLike) -> Ints:
    """Return the codes of nodes of one kind from their numbers.

    >>> node_codes("tag", [0, 2]).tolist()
    [268435456, 268435458]
    """
    within = to_integers("number of a node", numbers)
    if within.size and not (within.min() >= 0 and within.max() < _KIND_SIZE):
        raise InputError(
            f"Nodes of one kind are numbered 0..{_KIND_SIZE - 1}, so {within.min()}..{within.max()} is out of range."
        )
    return within + (_kind_code(kind) << SHIFT)


def node_kinds(nodes: ArrayLike) -> Ints:
    """Return the kind of each node as its position in ``NODE_KINDS``.

    >>> node_kinds([7, 268435456]).tolist()
    [0, 1]
    """
    codes = to_integers("node", nodes)
    if codes.size and not (codes.min() >= 0 and codes.max() < len(NODE_KINDS) << SHIFT):
        raise InputError(
            f"Nodes must be in 0..{(len(NODE_KINDS) << SHIFT) - 1}, not {codes.min()}..{codes.max()}. Pass node codes "
            "that the graph returned."
        )
    return codes >> SHIFT


def node_numbers(nodes: ArrayLike) -> Ints:
    """Return the number of each node within its kind; a memory's number is its row.

    >>> node_numbers([7, 268435457]).tolist()
    [7, 1]
    """
    return to_integers("node", nodes) & (_KIND_SIZE - 1)


class Nodes:
    """The nodes of a graph: numbered memories, and named tags, clusters and entities.

    The code of a node never changes. ``vocabularies`` returns everything that a snapshot needs.

    >>> nodes = Nodes(memories=3)
    >>> nodes.intern("tag", ["rust", "style", "rust"]).tolist()
    [268435456, 268435457, 268435456]
    >>> nodes.find("tag", ["style", "python"]).tolist(), nodes.labels([2, 268435457])
    ([268435457, -1], ['memory 2', 'tag style'])
    """

    def __init__(
        self, vocabularies: Mapping[str, Sequence[str]] | None = None, *, memories: int = 0
    ) -> None:
        if not 0 <= memories <= _KIND_SIZE:
            raise InputError(f"A graph can have 0 to {_KIND_SIZE} memories, not {memories}.")
        self._memories = memories
        self._names: list[list[str]] = [[] for _ in NODE_KINDS]
        self._numbers: list[dict[str, int]] = [{} for _ in NODE_KINDS]
        for kind, names in (vocabularies or {}).items():
            if len(set(names)) != len(names):
                raise InputError(
                    f"Two nodes of kind {kind} share a name. Names within a kind must be unique."
                )
            self.intern(kind, names)

    def grow(self, memories: int) -> None:
        """Set the number of memory nodes to an equal or larger number."""
        if not self._memories <= memories <= _KIND_SIZE:
            raise InputError(
                f"The number of memories can grow from {self._memories} to at most {_KIND_SIZE}, not to {memories}."
            )
        self._memories = memories

    def intern(self, kind: str, names: Iterable[str]) -> Ints:
        """Return the nodes with the given names, adding a node for each new name.

        If InputError is raised, no node is added.
        """
        kind_code = self._check_named_kind(kind)
        wanted = list(names)
        for name in wanted:
            if not isinstance(name, str) or not name:
                raise InputError(
                    f"The name of a {kind} must be a text with at least one character, not {name!r}."
                )
        numbers, vocabulary = self._numbers[kind_code], self._names[kind_code]
        codes = np.empty(len(wanted), dtype=np.int64)
        for position, name in enumerate(wanted):
            number = numbers.get(name)
            if number is None:
                number = numbers[name] = len(vocabulary)
                vocabulary.append(name)
            codes[position] = number
        return codes + (kind_code << SHIFT)

    def find(self, kind: str, names: Iterable[str]) -> Ints:
        """Return the nodes with the given names, or -1 for unknown names."""
        kind_code = self._check_named_kind(kind)
        numbers, first = self._numbers[kind_code], kind_code << SHIFT
        matches = [numbers.get(name, -1) for name in names]
        return np.array(
            [number + first if number >= 0 else -1 for number in matches], dtype=np.int64
        )

    def count(self, kind: str) -> int:
        """Return the number of nodes of this kind."""
        kind_code = _kind_code(kind)
        return self._memories if kind_code == 0 else len(self._names[kind_code])

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of nodes of each kind."""
        return tuple(self.count(kind) for kind in NODE_KINDS)

    def labels(self, nodes: ArrayLike) -> list[str]:
        """Return the kind and the name of each node, such as "tag rust".

        Raises InputError for a missing node.
        """
        codes = to_integers("node", nodes)
        labels = []
        for code, kind_code in zip(codes.tolist(), node_kinds(codes).tolist(), strict=True):
            number, kind = code - (kind_code << SHIFT), NODE_KINDS[kind_code]
            if number >= self.count(kind):
                raise InputError(
                    f"There is no {kind} with number {number}: the graph has {self.count(kind)}, numbered from 0."
                )
            labels.append(f"{kind} {self._names[kind_code][number] if kind_code else number}")
        return labels

    def names(self, nodes: ArrayLike) -> list[str | None]:
        """Return the name of each tag, cluster or entity, and None for memories."""
        codes = to_integers("node", nodes)
        pairs = zip(node_numbers(codes).tolist(), node_kinds(codes).tolist(), strict=True)
        return [
            self._names[kind_code][number] if kind_code else None for number, kind_code in pairs
        ]

    def vocabularies(self) -> dict[str, list[str]]:
        """Return the names of each kind in the order of their numbers.

        ``Nodes(...)`` takes names in this form.
        """
        return {
            kind: list(names) for kind, names in zip(NODE_KINDS[1:], self._names[1:], strict=True)
        }

    @staticmethod
    def _check_named_kind(kind: str) -> int:
        """Return the code of a kind whose nodes have names. Refuse memories."""
        kind_code = _kind_code(kind)
        if kind_code == 0:
            raise InputError(
                "A node that is a memory has a row number and no name. Pass the row, or another kind of node."
            )
        return kind_code


@dataclass(frozen=True)
class Layout:
    """A dense numbering of nodes, by which arrays with one value per node are indexed.

    Each kind has ``room`` positions, one kind after the other.
    """

    room: tuple[int, ...] = (0,) * len(NODE_KINDS)

    @cached_property
    def size(self) -> int:
        """The number of positions of all kinds."""
        return sum(self.room)

    @cached_property
    def first(self) -> tuple[int, ...]:
        """The array position of the first node of each kind."""
        return tuple(sum(self.room[:kind]) for kind in range(len(self.room)))

    @cached_property
    def _shift(self) -> Ints:
        """The offset of each node kind: array position minus node code."""
        return np.asarray(
            np.array(self.first) - (np.arange(len(self.room)) << SHIFT), dtype=np.int64
        )

    @cached_property
    def _rows_only(self) -> bool:
        """True if all nodes are memories, so that positions equal node codes."""
        return not any(self.room[1:])

    def positions(self, codes: Ints) -> Ints:
        """Return the position of each node. The nodes must be in this layout."""
        return codes if self._rows_only else codes + self._shift[codes >> SHIFT]

    def positions_or_end(self, codes: Ints) -> Ints:
        """Return the position of each node, and ``size`` for nodes outside this layout."""
        if self._rows_only:
            return np.where(codes.view(np.uint64) < self.size, codes, self.size)
        kind = codes >> SHIFT
        inside = (kind >= 0) & (kind < len(self.room))
        kind = np.where(inside, kind, 0)
        inside &= (codes & (_KIND_SIZE - 1)) < np.array(self.room)[kind]
        return np.where(inside, codes + self._shift[kind], self.size)

    def code(self, positions: Ints) -> Ints:
        """Return the code of the node at each position."""
        if self._rows_only:
            return positions
        kind = np.searchsorted(np.cumsum(self.room), positions, side="right")
        return np.asarray(positions - self._shift[kind])

    def with_room_for(self, codes: Ints) -> Layout:
        """Return a layout that is large enough for the nodes ``codes``.

        The result is this layout, or a layout in which the kinds that are too small have at least doubled.
        """
        if not len(codes):
            return self
        top = int(codes.max())
        if top < self.room[0]:
            return self
        if top < _KIND_SIZE:
            needed = [top + 1]
        else:
            kinds, numbers = codes >> SHIFT, codes & (_KIND_SIZE - 1)
            needed = [
                int(numbers[kinds == kind].max(initial=-1)) + 1 for kind in range(len(self.room))
            ]
        needed += [0] * (len(self.room) - len(needed))
        if all(want <= have for want, have in zip(needed, self.room, strict=True)):
            return self
        return Layout(
            tuple(
                have if want <= have else max(want, 2 * have)
                for want, have in zip(needed, self.room, strict=True)
            )
        )


def to_integers(what: str, values: ArrayLike) -> Ints:
    """Return ``values`` as int64. Raises InputError if they are not 64-bit integers."""
    array = np.asarray(values)
    if array.size and (
        array.dtype.kind not in "iu" or (array.dtype == np.uint64 and array.max() >= 1 << 63)
    ):
        raise InputError(f"Every {what} must be a whole number of 64 bits, not {array.dtype}.")
    return array.astype(np.int64, copy=False)


def _kind_code(kind: str) -> int:
    """Return the code of a kind. Raises UnknownName with the nearest kind."""
    try:
        return NODE_KINDS.index(kind)
    except ValueError:
        raise UnknownName("kind of node", kind, NODE_KINDS) from None


# Compressed sparse rows map nodes to their incident edges; sorted keys hold edges that were added
# later.


Ends = NDArray[np.uint32]
"""Two rows of nodes: the source and the target of each edge."""

TAIL = 1024
"""Maximum number of edges in the tail.

A look-up merges a longer tail into the run.
"""

RUN_MIN, RUN_SHARE = 65_536, 16
"""Limits above which new edges are merged into the base.

There must be more than this number, and more than a sixteenth of the edges of the base.
"""

# A sort key has the node in its high 32 bits; the low bits hold the edge and its direction.
_WORD = 32
_LOW = (1 << _WORD) - 1


@dataclass(frozen=True)
class IncidentEdges:
    """Edges incident to some nodes, ordered by node, then edge.

    ``position`` is the index of the node in the queried nodes, and ``outgoing`` is True if the edge
    starts at this node.
    """

    position: Ints
    edge: Ints
    outgoing: Flags

    def only(self, keep: Flags) -> IncidentEdges:
        """Return the incident edges that the mask ``keep`` selects."""
        return (
            self
            if keep.all()
            else IncidentEdges(self.position[keep], self.edge[keep], self.outgoing[keep])
        )


@dataclass(frozen=True)
class Base:
    """Compressed sparse rows of incident edges.

    The node at position ``p`` has the entries ``met[offsets[p]:offsets[p + 1]]``, each of them
    ``edge << 1 | outgoing``.
    """

    stop: int
    layout: Layout
    offsets: Ints
    met: NDArray[np.uint32]


@dataclass(frozen=True)
class _Run:
    """The edges ``start..stop - 1`` as sorted keys, two for each edge.

    A key is ``node << 32 | edge << 1 | outgoing``.
    """

    start: int
    stop: int
    keys: Ints

    def span(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the start and stop index of each node's keys in the run."""
        first = nodes << _WORD
        return self.keys.searchsorted(first), self.keys.searchsorted(first + (1 << _WORD))


_NO_KEYS: Ints = np.empty(
    0, dtype=np.int64
)  # the empty run and the empty base, shared by new graphs
_NOTHING = Base(0, Layout(), np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint32))


class Adjacency:
    """The edges indexed by node, in three parts: a base, a run and a short tail.

    The index can be discarded and rebuilt from the edges at any time.
    """

    def __init__(self, base: Base | None = None) -> None:
        self._base = base or _NOTHING
        stop = self._base.stop
        self._run = self._tail = _Run(stop, stop, _NO_KEYS)

    @property
    def base(self) -> Base:
        """The compressed part of the adjacency index."""
        return self._base

    def refresh(self, ends: Ends, layout: Layout, alive: Flags, *, seal: bool = False) -> bool:
        """Add edges of ``ends`` that the adjacency index does not include yet.

        Returns whether the base was rebuilt and now holds all edges. ``seal`` rebuilds the base
        without removed edges. This also happens when enough edges were added.
        """
        size = ends.shape[1]
        fresh = size - self._base.stop
        seal = seal or fresh > max(RUN_MIN, self._base.stop // RUN_SHARE)
        if seal:
            self._base = _compress_edges(ends, layout, alive)
            self._run = self._tail = _Run(size, size, _NO_KEYS)
        elif size - self._run.stop > TAIL:
            self._run, self._tail = _extend_run(self._run, ends, size), _Run(size, size, _NO_KEYS)
        elif size > self._tail.stop:
            self._tail = _extend_run(self._tail, ends, size)
        return seal

    def count(self, nodes: Ints) -> Ints:
        """Return the number of edges incident to each node, including removed edges."""
        start, stop = self._span(nodes)
        count = stop - start
        for run in (self._run, self._tail):
            start, stop = run.span(nodes)
            count += stop - start
        return count

    def meet(self, nodes: Ints, newest: Ints | None = None) -> IncidentEdges:
        """Return the edges incident to each node, including removed ones.

        With ``newest``, each of the three parts returns at most that many edges of each node.
        """
        keys = (
            [_gather_edges(self._base.met, *self._span(nodes), newest)] if self._base.stop else []
        )
        keys += [
            _gather_edges(run.keys, *run.span(nodes), newest)
            for run in (self._run, self._tail)
            if len(run.keys)
        ]
        parts = [part for part in keys if len(part)]
        if len(parts) == 1:
            merged = parts[0]
        else:
            merged = np.concatenate(parts) if parts else NO_ROWS
            merged.sort()
        return IncidentEdges(merged >> _WORD, (merged & _LOW) >> 1, (merged & 1).astype(np.bool_))

    def _span(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the start and stop of each node's edges in the compressed edge index."""
        base = self._base
        places = base.layout.positions_or_end(nodes)
        return base.offsets[places], base.offsets[np.minimum(places + 1, base.layout.size)]


def _gather_edges(
    met: NDArray[np.uint32] | Ints, start: Ints, stop: Ints, newest: Ints | None
) -> Ints:
    """Return the sorted keys of the last ``newest`` edges, by default all, in each node's range of the edge index.

    A key is ``position << 32 | edge << 1 | outgoing``.
    """
    count = stop - start
    if newest is not None:
        count = np.minimum(count, newest)
        start = stop - count
    ends = count.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    if not total:
        return NO_ROWS
    index = np.arange(total)
    index += (start - (ends - count)).repeat(count)
    keys = (np.arange(len(count)) << _WORD).repeat(count)
    keys |= met[index] & _LOW
    return keys


def _interleaved(ends: Ends, start: int, stop: int) -> Ints:
    """Return the target and the source of each edge, interleaved in one array."""
    nodes = np.empty(2 * (stop - start), dtype=np.int64)
    nodes[0::2], nodes[1::2] = ends[1, start:stop], ends[0, start:stop]
    return nodes


def _extend_run(run: _Run, ends: Ends, stop: int) -> _Run:
    """Extend ``run``, the sorted index of recent edges, by the edges up to ``stop - 1``, and return it."""
    fresh = _interleaved(ends, run.stop, stop)
    fresh <<= _WORD
    fresh |= np.arange(2 * run.stop, 2 * stop)
    fresh.sort()
    if len(run.keys):
        fresh = np.concatenate((run.keys, fresh))
        fresh.sort(kind="stable")  # merges the two sorted parts, which the stable sort detects
    return _Run(run.start, stop, fresh)


def _compress_edges(ends: Ends, layout: Layout, alive: Flags) -> Base:
    """Build the compressed index of all live edges: the incident edges of each node."""
    size = ends.shape[1]
    positions = layout.positions(_interleaved(ends, 0, size)).astype(np.int32)
    met: Ints = np.arange(2 * size, dtype=np.int64 if size >= 1 << 30 else np.int32)
    if not alive.all():
        keep = np.repeat(alive, 2)
        positions, met = positions[keep], met[keep]
    offsets = np.zeros(layout.size + 1, dtype=np.int64)
    np.cumsum(np.bincount(positions, minlength=layout.size), out=offsets[1:])
    return Base(size, layout, offsets, sort_by_number(positions, met))


# Edges in one memory-mapped file: a header, then columns with room to grow, then the base.


COLUMNS: dict[str, tuple[str, tuple[int, ...]]] = {
    "ends": ("<u4", (2,)),
    "relation": ("<i2", ()),
    "weight": ("<f8", ()),
    "reinforcements": ("<i4", ()),
    "created": ("<i8", ()),
    "alive": ("?", ()),
}
"""The type and the leading dimensions of each column of edges."""

# The header has the size of a page, so that the arrays after it are aligned.
_FORMAT = "memlab edges 1"
_HEADER = 4096
MIN_ROOM, _ROOM_SHARE = 65_536, 8
"""The room for further edges in a file.

The room is this number, or an eighth of the edges if that is more. Holes in a file take no disk
space.
"""


class _Header(msgspec.Struct):
    format: str
    size: int
    live: int
    room: int
    layout: tuple[int, ...]
    met: int


@dataclass(frozen=True)
class StoredEdges:
    """The contents of a file of edges."""

    size: int
    live: int
    columns: dict[str, Values]
    layout: Layout
    degree: Codes
    base: Base


def write_edges(
    target: str | Path | BinaryIO,
    size: int,
    live: int,
    columns: dict[str, Values],
    degree: Values,
    base: Base,
) -> None:
    """Replace the edge file by a new file of all edges, which must be in ``base``."""
    header = _Header(
        _FORMAT,
        size,
        live,
        size + max(MIN_ROOM, size // _ROOM_SHARE),
        base.layout.room,
        len(base.met),
    )
    arrays = {name: columns[name][..., :size] for name in COLUMNS}
    arrays |= {"degree": degree, "offsets": base.offsets, "met": base.met}
    with replacing(target) as file:
        described = msgspec.json.encode(header).ljust(_HEADER - 8)
        file.write(b"%08x" % crc32(described) + described)
        for name, dtype, shape, start in _sections(header):
            for row, values in enumerate(np.atleast_2d(arrays[name].astype(dtype, copy=False))):
                file.seek(start + row * shape[-1] * np.dtype(dtype).itemsize)
                file.write(np.ascontiguousarray(values).data)
        file.write(bytes(_end(header) - file.seek(0, os.SEEK_END)))


def _map_file(path: Path) -> NDArray[np.uint8]:
    """Map a large file copy-on-write, or read a small file.

    The holes of a file, which are room for more edges, take no memory.
    """
    if path.stat().st_size >= MAPPED_BYTES:
        return np.memmap(path, dtype=np.uint8, mode="c").view(np.ndarray)
    with path.open("rb", buffering=0) as file:
        size, at = os.fstat(file.fileno()).st_size, 0
        content = np.zeros(size, dtype=np.uint8)
        try:
            while at < size:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
                at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
                file.seek(start)
                file.readinto(content[start:at].data)
        except OSError as error:
            if error.errno != errno.ENXIO:  # there is no data after the position
                raise
    return content


def read_edges(source: str | Path | BinaryIO) -> StoredEdges:
    """Memory-map an edge file copy-on-write, or read an open file.

    Raises DamagedLab if the file is incomplete.
    """
    path = source if isinstance(source, str | Path) else "the snapshot"
    try:
        if isinstance(source, str | Path):
            mapped = _map_file(Path(source))
        else:
            mapped = np.frombuffer(bytearray(source.read()), dtype=np.uint8)
        sum_, described = mapped[:8].tobytes(), mapped[8:_HEADER].tobytes()
        if sum_ != b"%08x" % crc32(described):
            raise DamagedLab(
                f"The edges in {path} cannot be read: the header is damaged. Rebuild them from the journal."
            )
        header = msgspec.json.decode(described, type=_Header)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise DamagedLab(f"The edges in {path} cannot be read: {error}") from None
    complete = (
        header.format == _FORMAT
        and 0 <= header.live <= header.size <= header.room
        and len(header.layout) == len(NODE_KINDS)
        and min(header.layout) >= 0
        and 0 <= header.met <= 2 * header.size
        and len(mapped) == _end(header)
    )
    if not complete:
        raise DamagedLab(
            f"The edges in {path} do not fit the header of the file. Rebuild them from the journal."
        )
    arrays: dict[str, Values] = {
        name: mapped[start : start + _bytes(dtype, shape)].view(dtype).reshape(shape)
        for name, dtype, shape, start in _sections(header)
    }
    offsets, layout = arrays["offsets"], Layout(header.layout)
    if offsets[0] != 0 or offsets[-1] != header.met:
        raise DamagedLab(
            f"The edges in {path} do not fit the header of the file. Rebuild them from the journal."
        )
    return StoredEdges(
        header.size,
        header.live,
        {name: arrays[name] for name in COLUMNS},
        layout,
        arrays["degree"],
        Base(header.size, layout, offsets, arrays["met"]),
    )


def _sections(header: _Header) -> Iterator[tuple[str, str, tuple[int, ...], int]]:
    """Yield the name, type, shape and byte offset of each array in an edge file, in file order."""
    nodes = sum(header.layout)
    shapes = {name: (dtype, (*shape, header.room)) for name, (dtype, shape) in COLUMNS.items()}
    shapes |= {
        "degree": ("<i4", (nodes,)),
        "offsets": ("<i8", (nodes + 1,)),
        "met": ("<u4", (header.met,)),
    }
    start = _HEADER
    for name, (dtype, shape) in shapes.items():
        yield name, dtype, shape, start
        start = _padded(start + _bytes(dtype, shape))


def _end(header: _Header) -> int:
    """Return the length of the edge file in bytes."""
    *_, (_, dtype, shape, start) = _sections(header)
    return _padded(start + _bytes(dtype, shape))


def _bytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Return the number of bytes of an array."""
    count = np.dtype(dtype).itemsize
    for length in shape:
        count *= length
    return count


def _padded(length: int) -> int:
    """Round a length up to a multiple of 64, so that arrays are aligned."""
    return -(-length // 64) * 64
