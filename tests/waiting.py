"""Waiting in tests: for what happens, never for a time."""

import time
from collections.abc import Callable


def until(happened: Callable[[], bool], *, seconds: float = 60) -> bool:
    """Return whether a condition became true within ``seconds``."""
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        if happened():
            return True
        time.sleep(0.01)
    return happened()


def link_by_hand(lab) -> None:
    """Stop the thread that links what waits, so that ``lab.graph.link_waiting`` alone does."""
    lab._component("linker").stop()
