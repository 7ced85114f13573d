"""One progress display for all work that takes longer than a second."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

_SECONDS_PER_LINE = 3.0
"""Interval of progress lines where no bar can be drawn: often enough to show progress, and short in a log file."""


class Step(Protocol):
    """A function that advances the progress by `n` units."""

    def __call__(self, n: float) -> object:
        """Advance the progress by `n` units."""


def in_notebook() -> bool:
    """Return True if output goes to a Jupyter front end.

    IPython is not imported for the answer.
    """
    if "IPython" not in sys.modules:
        return False
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


@contextmanager
def bar(visible: bool, total: int, *, unit: str, desc: str | None = None) -> Iterator[Step]:
    """Show progress as a bar in a terminal or notebook, and as lines of text elsewhere.

    Parameters
    ----------
    visible
        True to show the progress. Otherwise nothing is written, and tqdm is not imported.
    total
        Number of units of the whole work.
    unit
        Name of a unit.
    desc
        Description of the work.

    Returns
    -------
    Iterator
        A context manager that yields a function, which advances the progress by ``n`` units.
    """
    if not visible:
        yield lambda n: None
        return
    if not sys.stderr.isatty() and not in_notebook():
        yield _Lines(total, unit, desc)
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, unit=unit, desc=desc, leave=False) as progress:
        yield progress.update


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
