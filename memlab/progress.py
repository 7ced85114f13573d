"""One progress bar for everything that takes longer than a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Step", "bar"]


class Step(Protocol):
    def __call__(self, n: float) -> object: ...


@contextmanager
def bar(shown: bool, total: int, *, unit: str, desc: str | None = None) -> Iterator[Step]:
    """A bar, and what moves it on by ``n``; nothing is drawn, and tqdm is not imported, unless ``shown``."""
    if not shown:
        yield lambda n: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, unit=unit, desc=desc, leave=False) as shown_bar:
        yield shown_bar.update
