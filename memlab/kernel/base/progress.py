"""One progress display for everything that takes longer than a second."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

__all__ = ["Step", "bar", "in_notebook"]

_SECONDS_PER_LINE = 3.0
"""Where no bar can be drawn: a line now and then shows that work goes on, and a log stays short."""


class Step(Protocol):
    def __call__(self, n: float) -> object: ...


def in_notebook() -> bool:
    """Whether output goes to a Jupyter front end; asked without loading IPython."""
    if "IPython" not in sys.modules:
        return False
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


@contextmanager
def bar(shown: bool, total: int, *, unit: str, desc: str | None = None) -> Iterator[Step]:
    """Yield what advances the progress by ``n``; a bar in a terminal or notebook, plain lines on any other stderr.

    Nothing is written, and tqdm is not imported, unless ``shown``.
    """
    if not shown:
        yield lambda n: None
        return
    if not sys.stderr.isatty() and not in_notebook():
        yield _Lines(total, unit, desc)
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, unit=unit, desc=desc, leave=False) as shown_bar:
        yield shown_bar.update


class _Lines:
    """Progress as lines of text: ``living: 400 of 2,133 (event)``."""

    def __init__(self, total: int, unit: str, desc: str | None) -> None:
        self._total, self._unit, self._desc = total, unit, f"{desc}: " if desc else ""
        self._done = 0.0
        self._next = monotonic() + _SECONDS_PER_LINE

    def __call__(self, n: float) -> None:
        self._done += n
        if monotonic() >= self._next:
            self._next = monotonic() + _SECONDS_PER_LINE
            print(
                f"{self._desc}{self._done:,.0f} of {self._total:,} ({self._unit})",
                file=sys.stderr,
                flush=True,
            )
