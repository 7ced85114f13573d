"""What an interrupted call leaves behind: a write or a lock whose block was left before its end.

An interrupt may strike between two instructions that open or close a block. The traceback then keeps the block open,
and where it is kept itself, as in a notebook, nothing closes it later. So a public call that an interrupt ends clears
the frames that have ended, which closes their blocks, and frees the locks that its thread still holds. A block that is
closed after that, by whoever collects it, releases nothing: another one may hold the lock by then.
"""

from __future__ import annotations

import sys
import threading
import traceback
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Holder", "ThreadLock", "free_interrupted", "watch_interrupts"]


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


class ThreadLock:
    """A lock among threads, which a thread that holds it may take again, and which an interrupted call gives back.

    ``with lock:`` for a block of a function. ``held`` is for blocks that may be closed late, such as those of
    generators: they release nothing that was freed since.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._freed = 0
        watch_interrupts(self)

    @property
    def owned(self) -> bool:
        """Whether this thread holds it."""
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        if self.owned:  # an interrupt between the two lines leaves it to ``free``
            self._lock.release()

    @contextmanager
    def held(self, timeout: float = -1) -> Iterator[bool]:
        """Hold it; False, and it is not held, after ``timeout`` seconds of waiting, which has no end if negative."""
        if not self._lock.acquire(timeout=min(timeout, threading.TIMEOUT_MAX)):
            yield False
            return
        freed = self._freed
        try:
            yield True
        finally:
            if freed == self._freed and self.owned:
                self._lock.release()

    def free(self) -> None:
        """Release what this thread holds; blocks that are still open release nothing any more."""
        while self.owned:
            self._freed += 1
            self._lock.release()
