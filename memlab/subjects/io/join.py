"""Two labs that diverged into one: what is new comes in, and of what both have, the later change stands.

Everything is decided from both labs as they are, by rules that do not ask which of them is here: so joining A into B
and B into A ends with the same texts in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import polars as pl

from memlab.io.formats import Bundle
from memlab.kernel.journal import Event
from memlab.kernel.privacy import Finding, personal_kinds
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import Change, State, build_values, describe_redactions, prefix_speaker
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
    """Join what ``bundle`` holds into a lab that is called ``own``: in one transaction, or on any error not at all.

    ``events`` reads the journal of the other lab, where there is one: it tells a change that follows the one here from
    one that was made without knowing it.
    """
    with store.reading():
        pack = store.versions.pack
    given = check_bundle(
        bundle, store.clock(), personal_kinds(pack.settings), bool(pack.settings["open-words"])
    )
    if dry_run:
        with store.reading() as state:
            plan = plan_join(store, state, bundle, given, own, events)
            edges = _edges(state, bundle, plan)[1]
        return _joined(bundle, given, plan, edges, dry_run=True)
    with store.writing() as tx:
        state, now = store.state, store.clock()
        plan = plan_join(store, state, bundle, given, own, events)
        first = tx.next_id
        graph, edges = _edges(state, bundle, plan)
        if plan.fresh:
            speakers = given.columns.get("speaker") or [None] * len(given.ids)
            texts = [given.screenings[place].text for place in plan.fresh]
            tx.payloads(range(first, first + len(texts)), texts)
            spoken = [
                prefix_speaker(text, speakers[place])
                for text, place in zip(texts, plan.fresh, strict=True)
            ]
            tx.vectors(first, store.embedder.fingerprint, store.embedder.encode(spoken))
            for body in bodies_of(given, plan.fresh, first, plan.here):
                tx.event("import", {"lab": bundle.lab, **body}, at=now)
        rest: dict[str, Any] = {"graph": graph} if edges or (graph["nodes"] and plan.fresh) else {}
        rest |= Change(
            set=[_values(id, columns) for id, columns in sorted(plan.set.items())]
        ).body()
        rest |= describe_redactions(_redacted(given, plan))
        if rest:
            tx.event("import", {"lab": bundle.lab, **rest}, at=now)
    store.snapshot_if_due()
    return _joined(bundle, given, plan, edges, dry_run=False)


def _joined(bundle: Bundle, given: Screened, plan: Plan, edges: int, *, dry_run: bool) -> Joined:
    return Joined(
        bundle.source,
        pl.DataFrame(plan.told, schema=JOINED, orient="row"),
        plan.known,
        edges,
        plan.kept_away,
        tuple(plan.purged),
        _redacted(given, plan),
        dry_run,
    )


def _redacted(given: Screened, plan: Plan) -> tuple[tuple[int, Finding], ...]:
    return tuple(
        (plan.here[given.ids[place]], finding)
        for place in plan.fresh
        for finding in given.screenings[place].findings
    )


def _edges(state: State, bundle: Bundle, plan: Plan) -> tuple[dict[str, Any], int]:
    """The edges that come in, and how many."""
    new = {theirs: id for theirs, id in plan.here.items() if id > len(state)}
    known = {theirs: id for theirs, id in plan.here.items() if id <= len(state)}
    return graph_of(state, bundle, new, known)


def _values(id: int, columns: Mapping[str, Any]) -> dict[str, Any]:
    listed = {
        name: [value or []] if MEMORY[name].storage == "list" else value
        for name, value in columns.items()
    }
    return build_values([id], **listed)
