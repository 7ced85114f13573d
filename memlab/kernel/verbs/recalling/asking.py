"""Asking a lab: recalls that are logged, recalls repeated as they would have been, and what is similar to a memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import shown
from memlab.kernel.base.clock import When, datable, to_micros
from memlab.kernel.journal import Event, Journal, JournalView
from memlab.kernel.language import changed_fields
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import Screening, personal_kinds, refuse_strings, screen
from memlab.kernel.recall import (
    Candidates,
    Chosen,
    Filters,
    Hits,
    Question,
    QuestionFeatures,
    Ranking,
    Recaller,
    recalled,
    similar,
)
from memlab.kernel.recall import Selection as Selection
from memlab.kernel.slates import Slate, read_slates
from memlab.kernel.state import Change, State, checked_text
from memlab.kernel.storage.purging import last_purge
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import SeenJournal, SeenStore, seen
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import apply_switches
from memlab.kernel.verbs.projections import new_state
from memlab.kernel.verbs.recalling.injected import Injected
from memlab.kernel.verbs.reinforcement import reinforce, strengthen_coactivated

__all__ = ["Once", "Past", "Questions", "Use", "find_slate", "logged_hits", "logged_slate"]


# A recall that shows nothing that its agent was given before in the session.


class Once:
    """What one recall is made for: at most ``limit`` memories, each new to the session. A ``Use`` and a ``Selection``.

    ``left_out`` are the memories, best first, that would have been shown and were given before.
    """

    abstains = True

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self.left_out: tuple[int, ...] = ()

    def selection(self, state: State, pack: Pack, question: Question) -> Selection:
        self._question = question
        self._most = pack.count("limit") if self._limit is None else self._limit
        given = state.projection(Injected)
        agent = question.filters.viewer
        self._before = np.array(
            given.ids(agent=agent, project=question.project, session=question.session),
            dtype=np.int64,
        )
        return self

    def named(self, asked: QuestionFeatures) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.empty(0, dtype=np.int64)

    def spending(self, rows: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        """A recall has no budget."""

    def choose(self, pool: Candidates, scores: Any, ranking: Ranking, *, beside: int) -> Chosen:
        order = ranking.order[: ranking.showable]
        repeated = np.isin(pool.rows[order] + 1, self._before)
        self.left_out = tuple((pool.rows[order][: self._most][repeated[: self._most]] + 1).tolist())
        return Chosen(np.empty(0, dtype=np.int64), order[~repeated], self._most)

    def shown(self, slate: Slate) -> None:
        self._shown = slate.shown

    def body(self) -> dict[str, Any]:
        return {}

    def events(self, decision: int) -> dict[str, dict[str, Any]]:
        """What was shown, so that neither a recall nor a context gives it again."""
        if not self._shown or self._question.session is None:
            return {}
        question = self._question
        where = {
            "agent": question.filters.viewer,
            "project": question.project,
            "session": question.session,
        }
        said = {"decision": decision, "ids": list(self._shown), "searched": True}
        return {"inject": said | {name: one for name, one in where.items() if one}}


# Logged recalls by their numbers.


def find_slate(store: Store, decision: int) -> Slate | None:
    """The slate of a logged recall; None if no recall of this number was logged."""
    return next(read_slates(store.journal, decision - 1, upto=decision), None)


def logged_slate(store: Store, decision: int) -> Slate:
    """The slate of a logged recall; UnknownName if there is none of this number."""
    slate = find_slate(store, decision)
    if slate is None:
        logged = (str(event.seq) for event in store.journal.events(kinds=("recall",)))
        raise UnknownName("logged recall", decision, logged)
    return slate


def logged_hits(store: Store, decision: int) -> Hits:
    """What a logged recall showed, with the pack that decided; UnknownName if there is none of this number.

    Texts are those of today: what was purged since has none.
    """
    slate = logged_slate(store, decision)
    with store.reading() as state:
        pack = _decided(store, slate)
        return Hits(slate, pack, decision, recalled(state, slate.shown))


def _decided(store: Store, slate: Slate) -> Pack:
    """Return the pack that decided a recall, with the values of parameters that were given for that one."""
    decision = slate.decision
    event = next(iter(store.journal.events(after=decision - 1, upto=decision)), None)
    body = {} if event is None else event.body
    pack = store.versions.live_at(store.versions.event_of(body.get("of", slate.pack_hash)))
    return pack.with_params(body["params"]) if "params" in body else pack


# Recalls of the past: a logged question asked once more, of the state before it, under another pack.


class Past:
    """The states that a lab has been in. Going forward folds what lies between; going back starts again."""

    def __init__(self, journal: Journal | JournalView, recaller: Recaller) -> None:
        self._journal, self._recaller = journal, recaller
        self._state, self._purged = new_state(), last_purge(journal)
        self._read: tuple[int, int, Slate] | None = None

    def before(self, seq: int) -> State:
        """The state of which a decision that had seen the event ``seq`` was made."""
        purged = last_purge(self._journal)
        if seq < self._state.seq or purged != self._purged:
            self._state, self._purged = new_state(), purged
        if seq > self._state.seq:
            # put aside meanwhile: an interrupt must leave none that is half folded
            state, self._state = self._state, new_state()
            state.fold(self._journal.events(after=state.seq, upto=seq), self._journal)
            self._state = state
        return self._state

    def logged(self, decision: int) -> Slate:
        """The slate of a decision as it was logged; the last one is kept, for packs are asked one after another."""
        purged = last_purge(self._journal)
        if self._read is not None and self._read[:2] == (decision, purged):
            return self._read[2]
        for slate in read_slates(self._journal, decision - 1, upto=decision):
            self._read = decision, purged, slate
            return slate
        raise UnknownName("decision", decision)

    def repeats(self, decision: int) -> bool:
        """Whether a decision can be asked again: not if an expression filtered it that the log does not hold."""
        try:
            Filters.read(self.logged(decision).filters)
        except InputError:
            return False
        return True

    def recall(
        self,
        decision: int,
        pack: Pack,
        *,
        instead: Callable[[State], tuple[Change, Change]] | None = None,
    ) -> Slate:
        """What ``pack`` would have answered: the logged question, filters and vector, nothing explored or written.

        ``instead`` gives, for the state before the decision, what had been so instead, and the way back from there.

        InputError if the recall was filtered by an expression that the log does not hold.
        """
        slate = self.logged(decision)
        try:
            filters = Filters.read(slate.filters)
        except InputError as error:
            raise InputError(f"The recall {decision} cannot be repeated. {error}") from None
        question = Question(
            slate.query,
            at=slate.at,
            project=slate.project,
            session=slate.session,
            filters=filters,
            vector=np.frombuffer(slate.vector, dtype=np.int8),
        )
        with self._supposed(self.before(slate.state), instead) as state:
            view = seen(self._journal, state, filters.viewer)
            return self._recaller.recall(view, pack, question, limit=slate.limit)

    @contextmanager
    def _supposed(
        self, state: State, instead: Callable[[State], tuple[Change, Change]] | None
    ) -> Iterator[State]:
        if instead is None:
            yield state
            return
        there, back = (Event(state.seq, 0, "edit", change.body()) for change in instead(state))
        self._state = new_state()  # whoever is interrupted here begins again
        state.fold([there], self._journal)
        yield state
        state.fold([back], self._journal)
        self._state = state


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
            asked, state = (
                live.with_params(params) if params else live,
                seen(store.journal, state, filters.viewer),
            )
            filters, off = apply_switches(store, state, project, filters)
            screening = screen(query, personal=personal_kinds(asked.settings))
            # an embedder may be elsewhere: it is not sent what is not answered
            vector = None if off is None else np.zeros(store.embedder.dim, dtype=np.int8)
            question = Question(
                screening.text,
                project=project,
                session=session,
                filters=filters,
                at=now,
                vector=vector,
            )
            logs = log and pack is None and off is None and not store.journal.read_only
            if logs:
                refuse_strings(
                    {"project": project, "session": session, **filters.logged()}, "recall"
                )
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
                    said = {
                        "of": live.hash,
                        "params": {name: float(value) for name, value in params.items()},
                    } | said
                decision = self._log(slate, asked, said, screening, viewer=filters.viewer, use=use)
            repeated = () if once is None else once.left_out
            return Hits(
                slate,
                asked,
                decision,
                memories,
                redacted=screening.findings,
                off=off,
                repeated=repeated,
            )

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
            body = {
                "ids": list(slate.shown),
                "probes": list(slate.probes),
                "pack": slate.pack_hash,
                **said,
            }
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
        if not pack.number("coactivation-gain") and not changed_fields(
            pack.policies["reinforce"], _RECALLED
        ):
            return {}
        rows = np.array(slate.shown, dtype=np.int64) - 1
        rows.sort()
        state = seen(store.journal, store.state, viewer)
        change = reinforce(state, pack, rows, slate.at, outcome="recalled")
        change += strengthen_coactivated(store.state, pack, rows)  # a view numbers edges otherwise
        return change.body()

    def similar(
        self, row: int, *, limit: int, project: str | None, filters: Filters
    ) -> pl.DataFrame:
        """The memories nearest to that in ``row``; see ``Lab.similar``."""
        with self._store.reading() as state:
            if state.names["status"].at(row) == "purged":
                raise InputError(
                    f"Memory {row + 1} is purged: only its row is left, and nothing is similar to it."
                )
            self._store.refresh_index()
            # what is bound to a session is known to its neighbours there
            session = state.names["session"].at(row)
            question = Question(
                "", at=0, project=project, session=session, filters=self._seen_by(filters)
            )
            return similar(state, row, self._core.recaller.population(state, question), limit=limit)

    def again(self, decision: Mapping[str, Any], pack: Pack) -> pl.DataFrame | None:
        """The candidates that ``pack`` would have had for a logged decision: what ``evaluate`` re-recalls.

        None where the recall cannot be repeated, because its filter is not in the log.
        """
        if not isinstance(decision.get("decision"), int):
            raise InputError(
                f"A decision is a row of lab.slates().decisions; {shown(decision)} names no recall."
            )
        with self._store.reading():
            self._store.refresh_index()
            if self._past is None:
                journal = self._store.journal
                self._past = Past(
                    journal.full if isinstance(journal, SeenJournal) else journal,
                    self._core.recaller,
                )
            seq = decision["decision"]
            return self._past.recall(seq, pack).frame if self._past.repeats(seq) else None

    def _seen_by(self, filters: Filters) -> Filters:
        """The filters with the viewer whose lab this is."""
        if self._viewer is None:
            return filters
        if filters.viewer not in (None, self._viewer):
            raise InputError(
                f'This is the lab as "{self._viewer}" sees it, so "{filters.viewer}" cannot ask it.'
            )
        return replace(filters, viewer=self._viewer)
