"""What an interrupted call leaves behind: a write or a lock whose block was left before its end.

An interrupt may strike between two instructions that open or close a block. The traceback then keeps the block open,
and where it is kept itself, as in a notebook, nothing closes it later. So a public call that an interrupt ends clears
the frames that have ended, which closes their blocks, and frees the locks that its thread still holds.
"""

from __future__ import annotations

import sys
import traceback
import weakref
from typing import Protocol

__all__ = ["Holder", "free_interrupted", "watch_interrupts"]


class Holder(Protocol):
    """Whoever has a lock that an interrupted thread may still hold."""

    def free(self) -> None:
        """Release what this thread holds."""


_HOLDERS: weakref.WeakSet[Holder] = weakref.WeakSet()


def watch_interrupts(holder: Holder) -> None:
    """Have ``holder`` freed after every interrupted call, as long as it lives."""
    _HOLDERS.add(holder)


def free_interrupted(error: BaseException) -> None:
    """Close what the call that ``error`` ended has left open, and free the locks of its thread, unless memlab itself
    called it and may still need them.
    """
    traceback.clear_frames(error.__traceback__)
    frame = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("memlab."):
            return
        frame = frame.f_back  # type: ignore[assignment]
    for holder in list(_HOLDERS):
        holder.free()
