"""Asking a lab: recalls that are logged, recalls repeated as they would have been, and what is similar to a memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import shown
from memlab.kernel.base.clock import When, datable, to_micros
from memlab.kernel.language import changed_fields
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import Screening, personal_kinds, refuse_strings, screen
from memlab.kernel.recall import Filters, Hits, Question, Selection, recalled, similar
from memlab.kernel.slates import Slate
from memlab.kernel.state import State, checked_text
from memlab.kernel.storage.views import SeenJournal, SeenStore, seen
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import filters_while_off
from memlab.kernel.verbs.recalling.once import Once
from memlab.kernel.verbs.recalling.past import Past
from memlab.kernel.verbs.reinforcement import coactivated, reinforced

__all__ = ["Questions", "Use"]


_RECALLED = {"outcome": "recalled", "rating": None}
"""What the slot ``reinforce`` knows of a memory that was shown."""


class Use(Protocol):
    """What a recall is made for beyond being shown: what it selects, and what is logged of it."""

    def selection(self, state: State, pack: Pack, question: Question) -> Selection:
        """Who decides what is shown."""

    def shown(self, slate: Slate) -> None:
        """Take in what is shown, while the state is held."""

    def body(self) -> dict[str, Any]:
        """What the event of the recall says of it, in numbers."""

    def events(self, decision: int) -> Mapping[str, dict[str, Any]]:
        """What is logged with the recall: bodies of events by their kinds."""


class Questions:
    """The questions that one lab is asked."""

    def __init__(self, core: Core) -> None:
        self._core, self._store = core, core.store
        self._past: Past | None = None
        self._viewer = self._store.viewer if isinstance(self._store, SeenStore) else None

    def ask(
        self,
        query: str,
        *,
        limit: int | None,
        project: str | None,
        session: str | None,
        filters: Filters,
        at: When | None,
        log: bool,
        pack: Pack | None = None,
        params: Mapping[str, float] | None = None,
        use: Use | None = None,
        again: bool | None = True,
    ) -> Hits:
        """One recall, logged unless another pack is asked, ``log`` is false or the lab cannot be written.

        ``again`` says whether what was given before in the session may be shown; None: as the pack's setting
        ``recall-again`` says. With ``params`` the policies have these values for this recall, and its event says so; no
        challenger is asked.
        """
        checked_text(query)
        store = self._store
        once: Once | None = None
        now = store.clock() if at is None else datable(to_micros(at), "at=")
        filters = self._seen_by(filters)
        with store.reading() as state:
            store.refresh_index()
            live = pack or store.versions.pack
            if again is None:
                again = bool(live.settings["recall-again"])
            if not again and session is not None and use is None:
                use = once = Once(limit)
            asked, state = live.with_params(params) if params else live, seen(store.journal, state, filters.viewer)
            filters, off = filters_while_off(store, state, project, filters)
            screening = screen(query, personal=personal_kinds(asked.settings))
            # an embedder may be elsewhere: it is not sent what is not answered
            vector = None if off is None else np.zeros(store.embedder.dim, dtype=np.int8)
            question = Question(
                screening.text, project=project, session=session, filters=filters, at=now, vector=vector
            )
            logs = log and pack is None and off is None and not store.journal.read_only
            if logs:
                refuse_strings({"project": project, "session": session, **filters.logged()}, "recall")
            began = perf_counter()
            slate = self._core.recaller.recall(
                state,
                asked,
                question,
                limit=int(asked.settings["limit"]) if limit is None else limit,
                # what is not logged teaches nothing, so it explores nothing
                seed=self._core.seed if logs else None,
                challenges=() if pack or params else store.versions.challenges,
                selection=None if use is None else use.selection(state, asked, question),
            )
            self._core.latencies.add("search", perf_counter() - began)
            if use is not None:
                use.shown(slate)
            memories = recalled(state, slate.shown)
            decision = None
            if logs:
                said = {} if use is None else use.body()
                if params:
                    said = {"of": live.hash, "params": {name: float(value) for name, value in params.items()}} | said
                decision = self._log(slate, asked, said, screening, viewer=filters.viewer, use=use)
            repeated = () if once is None else once.left_out
            return Hits(slate, asked, decision, memories, redacted=screening.findings, off=off, repeated=repeated)

    def _log(
        self,
        slate: Slate,
        pack: Pack,
        said: dict[str, Any],
        screening: Screening,
        *,
        viewer: str | None,
        use: Use | None,
    ) -> int:
        """Write the event of a recall and its slate; the number of the event."""
        store = self._store
        with store.writing(durable=False) as tx:
            body = {"ids": list(slate.shown), "probes": list(slate.probes), "pack": slate.pack_hash, **said}
            body |= self._changed(slate, viewer)
            if screening.findings:
                body["redacted"] = [found.type for found in screening.findings]
            decision = tx.event("recall", body, at=slate.at)
            tx.slate(decision, self._core.recaller.encode(pack, slate))
            for kind, content in ({} if use is None else use.events(decision)).items():
                tx.event(kind, content, at=slate.at)
        return decision

    def _changed(self, slate: Slate, viewer: str | None) -> dict[str, Any]:
        """What being shown changes in memories and edges, as the live pack decides."""
        store, pack = self._store, self._store.versions.pack
        if not pack.number("coactivation-gain") and not changed_fields(pack.policies["reinforce"], _RECALLED):
            return {}
        rows = np.array(slate.shown, dtype=np.int64) - 1
        rows.sort()
        state = seen(store.journal, store.state, viewer)
        change = reinforced(state, pack, rows, slate.at, outcome="recalled")
        change += coactivated(store.state, pack, rows)  # a view numbers edges otherwise
        return change.body()

    def similar(self, row: int, *, limit: int, project: str | None, filters: Filters) -> pl.DataFrame:
        """The memories nearest to that in ``row``; see ``Lab.similar``."""
        with self._store.reading() as state:
            if state.names["status"].at(row) == "purged":
                raise InputError(f"Memory {row + 1} is purged: only its row is left, and nothing is similar to it.")
            self._store.refresh_index()
            session = state.names["session"].at(row)  # what is bound to a session is known to its neighbours there
            question = Question("", at=0, project=project, session=session, filters=self._seen_by(filters))
            return similar(state, row, self._core.recaller.population(state, question), limit=limit)

    def again(self, decision: Mapping[str, Any], pack: Pack) -> pl.DataFrame | None:
        """The candidates that ``pack`` would have had for a logged decision: what ``evaluate`` re-recalls.

        None where the recall cannot be repeated, because its filter is not in the log.
        """
        if not isinstance(decision.get("decision"), int):
            raise InputError(f"A decision is a row of lab.slates().decisions; {shown(decision)} names no recall.")
        with self._store.reading():
            self._store.refresh_index()
            if self._past is None:
                journal = self._store.journal
                self._past = Past(journal.full if isinstance(journal, SeenJournal) else journal, self._core.recaller)
            seq = decision["decision"]
            return self._past.recall(seq, pack).frame if self._past.repeats(seq) else None

    def _seen_by(self, filters: Filters) -> Filters:
        """The filters with the viewer whose lab this is."""
        if self._viewer is None:
            return filters
        if filters.viewer not in (None, self._viewer):
            raise InputError(f'This is the lab as "{self._viewer}" sees it, so "{filters.viewer}" cannot ask it.')
        return replace(filters, viewer=self._viewer)
