"""Labs to read and to ask: as they were, and as one viewer sees them."""

from __future__ import annotations

import sys

from memlab.errors import InputError
from memlab.kernel.base.clock import ManualClock, When, from_micros, to_micros
from memlab.kernel.base.progress import bar
from memlab.kernel.journal import JournalView
from memlab.kernel.privacy import refuse
from memlab.kernel.state import policy_events
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import SeenStore

__all__ = ["store_at", "store_viewed_by"]


def store_at(store: Store, when: When | None, *, event: int | None, progress: bool) -> Store:
    """The store as it was at a time or after an event; see ``Lab.at``."""
    if (when is None) == (event is None):
        raise InputError("at takes a time, or event=: one of the two.")
    journal = store.journal
    if event is None:
        assert when is not None
        event = journal.last_at(to_micros(when))
    elif not 1 <= event <= journal.head:
        raise InputError(f"An event is a whole number from 1 to {journal.head}, not {event!r}.")
    first = next(journal.events(kinds=policy_events()), None)
    if first is None or event < first.seq:
        began = "" if first is None else f" It began with event {first.seq}, at {from_micros(first.at).isoformat()}."
        raise InputError(f"There was no lab then.{began}")
    last = next(iter(journal.events(after=event - 1, upto=event)))
    view = JournalView(journal, event)
    clock = ManualClock(last.at if when is None else when)
    with bar(progress and event > 20_000 and sys.stderr.isatty(), 1, unit="fold", desc=f"to event {event:,}"):
        return store.as_of(view, clock)


def store_viewed_by(store: Store, viewer: str) -> Store:
    """What ``viewer`` sees of a store; see ``Lab.at``."""
    if not viewer:
        raise InputError('viewer is who asks, such as "agent:coder", not an empty name.')
    refuse(viewer, "viewer")
    if not isinstance(store, SeenStore):
        return SeenStore(store, viewer)
    if store.viewer != viewer:
        raise InputError(f'This is the lab as "{store.viewer}" sees it, and shows nobody else\'s.')
    return store
