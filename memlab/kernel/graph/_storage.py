"""Edges in one file that is mapped, not read: a header, then columns with room to grow, then the base."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from memlab.errors import DamagedLab
from memlab.kernel.graph._adjacency import Base
from memlab.kernel.graph._nodes import NODE_KINDS, Layout

__all__ = ["COLUMNS", "Stored", "read", "write"]

COLUMNS: dict[str, tuple[str, tuple[int, ...]]] = {
    "ends": ("<u4", (2,)),
    "relation": ("<i2", ()),
    "weight": ("<f8", ()),
    "reinforcements": ("<i4", ()),
    "created": ("<i8", ()),
    "alive": ("?", ()),
}
"""Type and leading shape of what is kept of each edge."""

_FORMAT = "memlab edges 1"
_HEADER = 4096
_LEAST_ROOM, _ROOM_SHARE = 65_536, 8
"""A file has room for this many more edges, and an eighth; holes in the file, which take no space on disk."""


class _Header(msgspec.Struct):
    format: str
    size: int
    live: int
    room: int
    layout: tuple[int, ...]
    met: int


@dataclass(frozen=True)
class Stored:
    """What a file holds."""

    size: int
    live: int
    columns: dict[str, NDArray[Any]]
    layout: Layout
    degree: NDArray[np.int32]
    base: Base


def write(path: Path, size: int, live: int, columns: dict[str, NDArray[Any]], degree: NDArray[Any], base: Base) -> None:
    """Replace the file whole. All edges are in ``base``."""
    header = _Header(_FORMAT, size, live, size + max(_LEAST_ROOM, size // _ROOM_SHARE), base.layout.room, len(base.met))
    arrays = {name: columns[name][..., :size] for name in COLUMNS}
    arrays |= {"degree": degree, "offsets": base.offsets, "met": base.met}
    draft = path.with_name(f"{path.name}.draft")
    with draft.open("wb") as file:
        described = msgspec.json.encode(header).ljust(_HEADER - 8)
        file.write(b"%08x" % crc32(described) + described)
        for name, dtype, shape, start in _sections(header):
            for row, values in enumerate(np.atleast_2d(arrays[name].astype(dtype, copy=False))):
                file.seek(start + row * shape[-1] * np.dtype(dtype).itemsize)
                file.write(np.ascontiguousarray(values).data)
        file.truncate(_end(header))
    draft.replace(path)


def read(path: Path) -> Stored:
    """Map a file; what is changed later stays in memory. DamagedLab if the file is not whole."""
    try:
        with path.open("rb") as file:
            sum_, described = file.read(8), file.read(_HEADER - 8)
        if sum_ != b"%08x" % crc32(described):
            raise DamagedLab(f"The edges in {path} cannot be read: their header is damaged.")
        header = msgspec.json.decode(described, type=_Header)
        length = path.stat().st_size
    except (OSError, msgspec.MsgspecError) as error:
        raise DamagedLab(f"The edges in {path} cannot be read: {error}") from None
    complete = (
        header.format == _FORMAT
        and 0 <= header.live <= header.size <= header.room
        and len(header.layout) == len(NODE_KINDS)
        and min(header.layout) >= 0
        and 0 <= header.met <= 2 * header.size
        and length == _end(header)
    )
    if not complete:
        raise DamagedLab(f"{path} does not hold the edges that its header announces.")
    mapped = np.memmap(path, dtype=np.uint8, mode="c").view(np.ndarray)
    arrays: dict[str, NDArray[Any]] = {
        name: mapped[start : start + _bytes(dtype, shape)].view(dtype).reshape(shape)
        for name, dtype, shape, start in _sections(header)
    }
    offsets, layout = arrays["offsets"], Layout(header.layout)
    if offsets[0] != 0 or offsets[-1] != header.met:
        raise DamagedLab(f"{path} does not hold the edges that its header announces.")
    return Stored(
        header.size,
        header.live,
        {name: arrays[name] for name in COLUMNS},
        layout,
        arrays["degree"],
        Base(header.size, layout, offsets, arrays["met"]),
    )


def _sections(header: _Header) -> Iterator[tuple[str, str, tuple[int, ...], int]]:
    """Name, type, shape and first byte of each array."""
    nodes = sum(header.layout)
    shapes = {name: (dtype, (*shape, header.room)) for name, (dtype, shape) in COLUMNS.items()}
    shapes |= {"degree": ("<i4", (nodes,)), "offsets": ("<i8", (nodes + 1,)), "met": ("<u4", (header.met,))}
    start = _HEADER
    for name, (dtype, shape) in shapes.items():
        yield name, dtype, shape, start
        start = _padded(start + _bytes(dtype, shape))


def _end(header: _Header) -> int:
    *_, (_, dtype, shape, start) = _sections(header)
    return _padded(start + _bytes(dtype, shape))


def _bytes(dtype: str, shape: tuple[int, ...]) -> int:
    count = np.dtype(dtype).itemsize
    for length in shape:
        count *= length
    return count


def _padded(length: int) -> int:
    return -(-length // 64) * 64
