"""History: what happened, and how it was at a time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

import polars as pl

from memlab.arguments import checked
from memlab.clock import ManualClock, When, from_micros, to_micros
from memlab.errors import InputError
from memlab.journal import Until
from memlab.lab._base import LabBase
from memlab.lab._log import happened
from memlab.policies import POLICY_EVENTS
from memlab.progress import bar

if TYPE_CHECKING:
    from memlab.store import Store

__all__ = ["LabHistory"]


class LabHistory(LabBase):
    """``at``, ``log``."""

    @checked
    def at(self, when: When | None = None, *, event: int | None = None, progress: bool = True) -> Self:
        """The lab as it was: at a time (after the last event that had happened by then), or after an event.

        A lab to read and to ask, with the pack that decided then and a clock that stands still; nothing is logged.
        It is folded from the journal's beginning, about a second for 20,000 events or 100,000 memories, searches
        exactly, and shares this lab's journal: it ends with it. What was purged since is not there.

        InputError before the lab had a pack, for an event that is not there, or unless one of the two is given.

        >>> lab.at("2026-11-01").recall("where does Ada live?")                            # doctest: +SKIP
        """
        if (when is None) == (event is None):
            raise InputError("at takes a time, or event=: one of the two.")
        journal = self._store.journal
        if event is None:
            assert when is not None
            event = journal.last_at(to_micros(when))
        elif not 1 <= event <= journal.head:
            raise InputError(f"An event is a whole number from 1 to {journal.head}, not {event!r}.")
        first = next(journal.events(kinds=POLICY_EVENTS), None)
        if first is None or event < first.seq:
            began = (
                "" if first is None else f" It began with event {first.seq}, at {from_micros(first.at).isoformat()}."
            )
            raise InputError(f"There was no lab then.{began}")
        last = next(iter(journal.events(after=event - 1, upto=event)))
        until = Until(journal, event)
        clock = ManualClock(last.at if when is None else when)
        with bar(progress and event > 20_000 and sys.stderr.isatty(), 1, unit="fold", desc=f"to event {event:,}"):
            return self._as_of(self._store.as_of(until, clock))

    def _as_of(self, store: Store) -> Self:
        lab = type(self).__new__(type(self))
        lab._begin(store, self._recalls.seed)
        return lab

    @property
    def log(self) -> pl.DataFrame:
        """Every event as a row: ``event``, ``at``, ``kind``, ``memories`` (whom it concerned), ``edges``, ``what``.

        ``lab.log.filter(pl.col("memories").list.contains(7))`` is the history of one memory.
        """
        with self._reading():
            return happened(self._store.journal.events())
