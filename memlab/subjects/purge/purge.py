"""``lab.purge``: permanent removal of memories from the journal and all derived files."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from memlab.errors import LabError, MissingExtension, ReadOnlyLab
from memlab.kernel.base.scratch import return_memory
from memlab.kernel.journal import Event, Journal, Scrub
from memlab.kernel.privacy import refuse
from memlab.kernel.state import State
from memlab.kernel.storage.purging import PURGE_TIMEOUT, PURGED, PURGING, end_purge
from memlab.kernel.verbs.core import Core, Memories
from memlab.kernel.verbs.corrections.editing import due_for_purge, find_related
from memlab.subjects.purge.planning import PurgePlan, plan_purge, purge_change, redact_slates
from memlab.subjects.purge.receipt import (
    Purged,
    Receipt,
    build_receipt,
    list_derived_files,
    search_terms_of,
)
from memlab.subjects.purge.rewriting import redact_event, select_affected_events
from memlab.subjects.purge.selecting import Choice, check_choice, choose_by_name
from memlab.subjects.purge.verifying import find_differences


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
    """Permanently remove memories and everything derived from them.

    See ``Lab.purge``.
    """
    names = {"project": project, "session": session, "subject": subject, "creator": creator}
    check_choice(memory, overdue, **names)
    refuse(reason, "reason")
    store, journal = core.store, core.store.journal
    if not isinstance(journal, Journal) or journal.read_only:
        raise ReadOnlyLab(
            f"{store.where} was opened with read_only=True. Open the lab for writing to purge it."
        )
    # The lock on derived files is held until all of them are rewritten: a snapshot written meanwhile by another
    # process would contain purged texts.
    with store.exclusive(), store.derived.hold(PURGE_TIMEOUT):
        rows: list[int] = []

        def verify(before: State, after: State) -> None:
            """Raise LabError if the rewritten journal differs in more than purged content."""
            problems = find_differences(before, after, np.array(rows, dtype=np.int64))
            if problems:
                raise LabError(
                    f"{store.where}: nothing was purged, because more than the purged content would change: "
                    f"{problems[0]} Please report this."
                )

        with store.writing(verify=verify) as tx:
            state, now = store.state, store.clock()
            _refuse_missing(state)
            if overdue:
                due = due_for_purge(state, store.versions.pack, now)
                chosen = Choice([id - 1 for id in due["id"].to_list()])
            elif memory is not None:
                chosen = Choice(core.rows(memory))
            else:
                chosen = choose_by_name(state, **names)
            rows = chosen.remaining_rows(state)
            review = find_related(state, rows, derived=True)
            scrub = Scrub()
            if rows:
                seq, purged = tx.head + 1, np.array(sorted(rows), dtype=np.int64)
                # Most events of a long log are recalls and feedback, which contain nothing to
                # purge. All other events are read once and kept for both passes.
                events = select_affected_events(journal.events())
                gone = plan_purge(
                    state, events, purged, seq=seq, filters=chosen.filters, entity=chosen.entity
                )
                wanted = search_terms_of(state, rows, gone, chosen.entity)
                scrub = _scrub(journal, events, gone)
                change, tombstones = purge_change(state, purged, now)
                tx.scrub(scrub)
                tx.event(
                    "purge", {"reason": reason, "tombstones": tombstones, **change.body()}, at=now
                )
                tx.meta(PURGED, str(seq))
                tx.meta(PURGING, str(seq))
        if rows:
            store.neighbours.forget()
            derived = list_derived_files(store)
            end_purge(journal, now=now)
            exports = {"remove_exports": remove_exports}
            frame = build_receipt(store, gone, scrub, change, wanted, derived, **exports)
            counts = (len(scrub.bodies), len(scrub.slates), len(gone.emptied))
    if not rows:
        return Purged((), 0, 0, 0, review, Receipt().frame(), reason)
    store.snapshot_if_due()
    return_memory()
    return Purged(tuple(row + 1 for row in rows), *counts, review, frame, reason)


def _scrub(journal: Journal, events: Iterable[Event], gone: PurgePlan) -> Scrub:
    """Return what the journal stores in place of the slates and events with purged content."""
    # Slates come first, because they contain the viewers of the recalls that events refer to.
    slates = redact_slates(journal.slates(), gone)
    redacted = ((event.seq, redact_event(event, gone)) for event in events)
    bodies = {seq: body for seq, body in redacted if body is not None}
    return Scrub(bodies, slates, gone.ids.tolist())


def _refuse_missing(state: State) -> None:
    """Raise MissingExtension if unreadable events may contain purged content."""
    if missing := state.missing_extensions:
        raise MissingExtension(
            f"The lab has events of the extension {', '.join(sorted(missing))}, which is not registered here. "
            "They may contain purged content, so nothing was purged. Install the extension and open the lab again."
        )
