"""A journal as it was after one of its events: everything that came later is not there, and nothing can be written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memlab.errors import ReadOnlyLab
from memlab.kernel.journal._event import Event
from memlab.kernel.journal._journal import Journal
from memlab.kernel.journal._transaction import Transaction

__all__ = ["JournalView"]


class JournalView:
    """What ``journal`` held when ``head`` was its last event. The journal stays its owner's to close.

    Texts and vectors are known by id, and an id is known by its event, so those of later ones are out of sight.
    """

    read_only = True
    lost = ""

    def __init__(self, journal: Journal | JournalView, head: int) -> None:
        self._journal: Journal = journal._journal if isinstance(journal, JournalView) else journal
        self.head: int = min(head, journal.head)
        self._closed = False

    @property
    def path(self) -> Path | None:
        return self._journal.path

    @property
    def closed(self) -> bool:
        return self._closed or self._journal.closed

    def events(self, after: int = 0, *, upto: int | None = None, kinds: Iterable[str] | None = None) -> Iterator[Event]:
        return self._journal.events(after, upto=self._capped(upto), kinds=kinds)

    def slates(self, after: int = 0, *, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        return self._journal.slates(after, upto=self._capped(upto))

    def segments(self) -> dict[int, str | None]:
        return self._journal.segments()

    def segment_part(self, upto: int, name: str) -> bytes:
        return self._journal.segment_part(upto, name)

    def texts(self, ids: Sequence[int]) -> list[str]:
        return self._journal.texts(ids)

    def vectors(self, fingerprint: str, *, after_id: int = 0) -> Iterator[tuple[int, NDArray[np.int8]]]:
        return self._journal.vectors(fingerprint, after_id=after_id)

    @property
    def identity(self) -> str:
        return self._journal.identity

    def chain(self, seq: int) -> bytes | None:
        return self._journal.chain(seq) if seq <= self.head else None

    def source(self, hash: str) -> str:
        return self._journal.source(hash)

    def meta(self, key: str) -> str | None:
        return self._journal.meta(key)

    def last_at(self, instant: int) -> int:
        return min(self._journal.last_at(instant), self.head)

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Transaction]:
        raise ReadOnlyLab(f"This is the lab as it was after event {self.head:,}: the past cannot be written.")
        yield  # what makes it a context manager

    def close(self) -> None:
        self._closed = True

    def _capped(self, upto: int | None) -> int:
        return self.head if upto is None else min(upto, self.head)
