"""A text with parts replaced, which knows where each of its characters stood before."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Edit", "View"]


class Edit(NamedTuple):
    """What stood from ``start`` to ``end`` reads ``text``."""

    start: int
    end: int
    text: str


class View:
    """A way to read a text. ``origin`` maps a span of it to the span of the original that it was read from."""

    __slots__ = ("_before", "_edited", "_origins", "_starts", "text")

    def __init__(self, text: str, before: View | None = None) -> None:
        self.text = text
        self._before = before
        self._starts: list[int] | None = None
        self._origins: list[int] = []
        self._edited: list[int] = []

    def edited(self, edits: Iterable[Edit]) -> View:
        """This text with each edit made; they ascend and do not overlap."""
        parts, starts, origins, lengths = [], [], [], []
        position = length = 0
        for start, end, new in edits:
            if start > position:
                parts.append(self.text[position:start])
                starts.append(length)
                origins.append(position)
                lengths.append(0)
                length += start - position
            if new:
                parts.append(new)
                starts.append(length)
                origins.append(start)
                lengths.append(end - start)
                length += len(new)
            position = end
        parts.append(self.text[position:])
        starts.append(length)
        origins.append(position)
        lengths.append(0)
        view = View("".join(parts), self)
        view._starts, view._origins, view._edited = starts, origins, lengths
        return view

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where in the original the characters from ``start`` to ``end`` come from."""
        if self._before is None:
            return start, end
        assert self._starts is not None
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        # what was replaced stands as a whole for each of its characters
        begin = self._origins[first] + (0 if self._edited[first] else start - self._starts[first])
        stop = self._origins[last] + (self._edited[last] or end - self._starts[last])
        return self._before.origin(begin, stop)
