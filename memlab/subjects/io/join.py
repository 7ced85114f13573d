"""The join of two labs, which keeps the later change of each memory.

The rules treat both labs alike, so joining A into B gives the same active texts as joining B into A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import polars as pl

from memlab.io.formats import Bundle
from memlab.kernel.journal import Event
from memlab.kernel.privacy import Finding, personal_kinds
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import Change, State, build_values, describe_redactions
from memlab.kernel.storage.store import Store
from memlab.subjects.io.edges import graph_of
from memlab.subjects.io.join_plan import Plan, plan_join
from memlab.subjects.io.results import JOINED, Joined
from memlab.subjects.io.storing import Screened, bodies_of, check_bundle

__all__ = ["Joined", "join_bundle"]


def join_bundle(
    store: Store,
    bundle: Bundle,
    *,
    own: str,
    events: Callable[[], Iterable[Event]] | None = None,
    dry_run: bool = False,
) -> Joined:
    """Merge a bundle into the lab named ``own`` in one transaction.

    ``events`` reads the journal of the other lab, if it has one. The journal shows whether a change there was made
    after the change here was known, or independently.
    """
    with store.reading():
        pack = store.versions.pack
    checked = check_bundle(
        bundle, store.clock(), personal_kinds(pack.settings), bool(pack.settings["open-words"])
    )
    if dry_run:
        with store.reading() as state:
            plan = plan_join(store, state, bundle, checked, own, events)
            edges = _edges(state, bundle, plan)[1]
        return _describe_join(bundle, checked, plan, edges, dry_run=True)
    with store.writing() as tx:
        state, now = store.state, store.clock()
        # The join is planned again within the transaction, because another process may have written in the meantime.
        plan = plan_join(store, state, bundle, checked, own, events)
        first = tx.next_id
        graph, edges = _edges(state, bundle, plan)
        if plan.fresh:
            texts = [checked.screenings[row].text for row in plan.fresh]
            tx.payloads(range(first, first + len(texts)), texts)
            embedded = list(map(checked.embedded_text, plan.fresh))
            tx.vectors(first, store.embedder.fingerprint, store.embedder.encode(embedded))
            for body in bodies_of(checked, plan.fresh, first, plan.here):
                tx.event("import", {"lab": bundle.lab, **body}, at=now)
        rest: dict[str, Any] = {"graph": graph} if edges or (graph["nodes"] and plan.fresh) else {}
        rest |= Change(
            set=[_build_part(id, columns) for id, columns in sorted(plan.set.items())]
        ).body()
        rest |= describe_redactions(_list_redacted(checked, plan))
        if rest:
            tx.event("import", {"lab": bundle.lab, **rest}, at=now)
    store.snapshot_if_due()
    return _describe_join(bundle, checked, plan, edges, dry_run=False)


def _describe_join(
    bundle: Bundle, checked: Screened, plan: Plan, edges: int, *, dry_run: bool
) -> Joined:
    """Return the result of a join that followed a plan."""
    return Joined(
        bundle.source,
        pl.DataFrame(plan.report, schema=JOINED, orient="row"),
        plan.known_count,
        edges,
        plan.kept_away,
        tuple(plan.purged),
        _list_redacted(checked, plan),
        dry_run,
    )


def _list_redacted(checked: Screened, plan: Plan) -> tuple[tuple[int, Finding], ...]:
    """Return each secret that was redacted in an added text, and the text's memory id."""
    return tuple(
        (plan.here[checked.ids[row]], finding)
        for row in plan.fresh
        for finding in checked.screenings[row].findings
    )


def _edges(state: State, bundle: Bundle, plan: Plan) -> tuple[dict[str, Any], int]:
    """Return the edges that a join adds, as an event's ``graph``, and their number."""
    new_ids = {theirs: id for theirs, id in plan.here.items() if id > len(state)}
    known_ids = {theirs: id for theirs, id in plan.here.items() if id <= len(state)}
    return graph_of(state, bundle, new_ids, known_ids)


def _build_part(id: int, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of an edit event that sets column values of one memory."""
    listed = {
        name: [value or []] if MEMORY[name].storage == "list" else value
        for name, value in columns.items()
    }
    return build_values([id], **listed)
