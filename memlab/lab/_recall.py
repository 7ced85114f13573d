"""Asking a lab: recalls that are logged, recalls repeated as they would have been, and what is similar to a memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl

from memlab.clock import When, datable, to_micros
from memlab.errors import InputError
from memlab.life import reinforced
from memlab.memory import State, checked_text
from memlab.past import Past
from memlab.policies import Pack
from memlab.privacy import personal_kinds, refuse_strings, screen
from memlab.recall import Filters, Hits, Question, Recaller, recalled, similar
from memlab.slates import encode
from memlab.store import Store

__all__ = ["LabRecalls"]


class LabRecalls:
    """The questions of one lab. ``seed`` decides, with what the lab has seen, which probes are drawn."""

    def __init__(self, store: Store, seed: int) -> None:
        self._store, self.seed = store, seed
        self.recaller = Recaller(store.embedder)
        self._past: Past | None = None

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
    ) -> Hits:
        """One recall, logged unless told otherwise or the lab cannot be written; see ``Lab.recall``."""
        checked_text(query)
        if limit is not None:
            _check_limit(limit)
        store = self._store
        now = store.clock() if at is None else datable(to_micros(at), "at=")
        with self._reading() as state:
            pack = store.versions.pack
            screening = screen(query, personal=personal_kinds(pack.settings))
            question = Question(screening.text, project=project, session=session, filters=filters, at=now)
            logs = log and not store.journal.read_only
            if logs:
                refuse_strings({"project": project, "session": session, **filters.logged()}, "recall")
            slate = self.recaller.recall(
                state,
                pack,
                question,
                limit=pack.count("limit") if limit is None else limit,
                seed=self.seed if logs else None,  # what is not logged teaches nothing, so it explores nothing
            )
            memories = recalled(state, slate.shown)
            decision = None
            if logs:
                with store.writing(durable=False) as tx:
                    body = {"ids": list(slate.shown), "probes": list(slate.probes), "pack": slate.pack_hash}
                    rows = np.sort(np.array(slate.shown, dtype=np.int64)) - 1
                    use = reinforced(state, store.versions.pack, rows, now, outcome="recalled")
                    redacted = {"redacted": kinds} if (kinds := [found.type for found in screening.findings]) else {}
                    decision = tx.event("recall", {**body, **use.body(), **redacted}, at=now)
                    tx.slate(decision, encode(slate))
            return Hits(slate, pack, decision, memories, redacted=screening.findings)

    def similar(self, row: int, *, limit: int, project: str | None, filters: Filters) -> pl.DataFrame:
        """The memories nearest to that in ``row``; see ``Lab.similar``."""
        _check_limit(limit)
        with self._reading() as state:
            session = state.names["session"].at(row)  # what is bound to a session is known to its neighbours there
            question = Question("", at=0, project=project, session=session, filters=filters)
            return similar(state, row, self.recaller.population(state, question), limit=limit)

    def again(self, decision: Mapping[str, Any], pack: Pack) -> pl.DataFrame | None:
        """The candidates that ``pack`` would have had for a logged decision: what ``evaluate`` re-recalls.

        None where the recall cannot be repeated, because its filter is not in the log.
        """
        with self._reading():
            if self._past is None:
                self._past = Past(self._store.journal, self.recaller)
            seq = int(decision["decision"])
            return self._past.recall(seq, pack).frame if self._past.repeats(seq) else None

    @contextmanager
    def _reading(self) -> Iterator[State]:
        with self._store.reading() as state:
            self._store.refresh_index()
            yield state


def _check_limit(limit: int) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InputError(f"limit is a whole number of at least 1, not {limit!r}.")
