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
from memlab.memory import Seen
from memlab.policies import POLICY_EVENTS
from memlab.privacy import refuse
from memlab.progress import bar
from memlab.seen import SeenStore

if TYPE_CHECKING:
    from memlab.store import Store

__all__ = ["LabHistory"]


class LabHistory(LabBase):
    """``at``, ``viewed_by``, ``log``."""

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

    @checked
    def viewed_by(self, viewer: str) -> Self:
        """The lab as ``viewer`` sees it: without what is private to another creator, as if it had never been told.

        A lab to read and to ask, by every verb that reads: what others keep private is in no frame, text, count, score,
        cluster or export of it, and moves none. It goes on as the lab does, and ends with it. Nothing is logged here:
        ``recall`` and ``turns`` of the lab itself take ``viewer=``, and log as whom they were asked. Ids are those of
        the lab. The first question folds the journal, about 0.3 s for 100,000 memories, if anything is hidden at all.

        InputError for what is no viewer, and for another one than this lab is viewed by already.

        >>> lab.viewed_by("agent:coder").memories                                          # doctest: +SKIP
        """
        if not viewer:
            raise InputError('viewer is who asks, such as "agent:coder", not an empty name.')
        refuse(viewer, "viewer")
        store = self._store
        if isinstance(store, SeenStore):
            if store.viewer != viewer:
                raise InputError(f'This is the lab as "{store.viewer}" sees it, and shows nobody else\'s.')
            return self
        return self._as_of(SeenStore(store, viewer))

    def _as_of(self, store: Store) -> Self:
        lab = type(self).__new__(type(self))
        lab._begin(store, self._recalls.seed)
        return lab

    @property
    def log(self) -> pl.DataFrame:
        """Every event as a row: ``event``, ``at``, ``kind``, ``memories`` (whom it concerned), ``edges``, ``what``.

        ``lab.log.filter(pl.col("memories").list.contains(7))`` is the history of one memory.
        """
        with self._reading() as state:
            hidden = state.hidden if isinstance(state, Seen) else None
            return happened(self._store.journal.events(), hidden=hidden)
