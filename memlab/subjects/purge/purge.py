"""Purging: what goes, from the journal and every file made of it, and the receipt of that."""

from __future__ import annotations

import numpy as np

from memlab.errors import LabError, MissingExtension, ReadOnlyLab
from memlab.kernel.journal import Journal, Scrub
from memlab.kernel.privacy import refuse
from memlab.kernel.state import State
from memlab.kernel.storage.purging import PURGE_TIMEOUT, PURGED, PURGING, end_purge
from memlab.kernel.verbs.core import Core, Memories
from memlab.kernel.verbs.corrections.editing import due_for_purge, find_related
from memlab.subjects.purge.planning import plan_purge, purging, redact_slates
from memlab.subjects.purge.receipt import (
    Chosen,
    Purged,
    Receipt,
    checked_choice,
    chosen_by,
    held_files,
    receipt_of,
    search_terms_of,
)
from memlab.subjects.purge.rewriting import events_that_may_hold, redact_event
from memlab.subjects.purge.verifying import differences

__all__ = ["purge"]


def purge(
    core: Core,
    memory: Memories | None,
    *,
    project: str | None,
    session: str | None,
    subject: str | None,
    creator: str | None,
    overdue: bool,
    remove_exports: bool,
    reason: str,
) -> Purged:
    """Remove memories for good, in one transaction, from the journal and from all that was made of it.

    See ``Lab.purge``.
    """

    checked_choice(
        memory, overdue, project=project, session=session, subject=subject, creator=creator
    )
    refuse(reason, "reason")
    store, journal = core.store, core.store.journal
    if not isinstance(journal, Journal) or journal.read_only:
        raise ReadOnlyLab(f"{store.where} was opened with read_only=True.")
    # nobody writes a file that is made of the journal until all of them are gone
    with store.exclusive(), store.derived.hold(PURGE_TIMEOUT):
        rows: list[int] = []

        def verify(before: State, after: State) -> None:
            found = differences(before, after, np.array(rows, dtype=np.int64))
            if found:
                raise LabError(
                    f"{store.where}: nothing was purged, as more than the purged content would change: {found[0]} "
                    "Please report this."
                )

        with store.writing(verify=verify) as tx:
            state, now = store.state, store.clock()
            _refuse_missing(state)
            if overdue:
                chosen = Chosen(
                    [
                        id - 1
                        for id in due_for_purge(state, store.versions.pack, now)["id"].to_list()
                    ]
                )
            elif memory is not None:
                chosen = Chosen(core.rows(memory))
            else:
                chosen = chosen_by(
                    state, project=project, session=session, subject=subject, creator=creator
                )
            rows = [row for row in chosen.rows if state.names["status"].value_at(row) != "purged"]
            review = find_related(state, rows, derived=True)
            scrub = Scrub()
            if rows:
                seq, purged = tx.head + 1, np.array(sorted(rows), dtype=np.int64)
                # a log of years is read once: a recall or a judgement has nothing that could go
                events = events_that_may_hold(journal.events())
                gone = plan_purge(
                    state, events, purged, seq=seq, filters=chosen.filters, entity=chosen.entity
                )
                wanted = search_terms_of(state, rows, gone, chosen.entity)
                # slates first: they tell as whom the recalls were asked that events speak of
                slates = redact_slates(journal.slates(), gone)
                bodies = {
                    event.seq: body
                    for event in events
                    if (body := redact_event(event, gone)) is not None
                }
                scrub = Scrub(bodies, slates, gone.ids.tolist())
                change, tombstones = purging(state, purged, now)
                tx.scrub(scrub)
                tx.event(
                    "purge", {"reason": reason, "tombstones": tombstones, **change.body()}, at=now
                )
                tx.meta(PURGED, str(seq))
                tx.meta(PURGING, str(seq))
        if rows:
            store.neighbours.forget()
            held = held_files(store)
            end_purge(journal, now=now)
            exports = {"remove_exports": remove_exports}
            frame = receipt_of(store, gone, scrub, change, wanted, held, **exports)
            counts = (len(scrub.bodies), len(scrub.slates), len(gone.emptied))
    if not rows:
        return Purged((), 0, 0, 0, review, Receipt().frame(), reason)
    store.snapshot_if_due()
    return Purged(tuple(row + 1 for row in rows), *counts, review, frame, reason)


def _refuse_missing(state: State) -> None:
    """Raise MissingExtension where events of an extension that is not registered may hold what is purged."""
    if missing := state.missing_extensions:
        raise MissingExtension(
            f"The lab has events of the extension {', '.join(sorted(missing))}, which is not registered here. A "
            "purge has to know what they hold, so nothing was purged. Install the extension and open the lab again."
        )
