"""The verb ``recall``: logged queries, the events that they write, and similar memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal, Protocol

import numpy as np
import polars as pl

from memlab.errors import ExplorationWarning, InputError
from memlab.kernel.base.arguments import describe_value, warn_caller
from memlab.kernel.base.clock import When, check_instant, to_micros
from memlab.kernel.journal import Body
from memlab.kernel.language import changed_fields
from memlab.kernel.policies import Challenge, Pack
from memlab.kernel.privacy import Screening, personal_kinds, refuse_strings, screen
from memlab.kernel.recall import Filters, Hits, Question, Selection, read_memories, similar
from memlab.kernel.slates import Slate
from memlab.kernel.state import State, validate_text
from memlab.kernel.storage.views import ViewerJournal, ViewerStore, view_state
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import apply_switches, calibrate_embedder
from memlab.kernel.verbs.recalling.new_to_session import NewToSession
from memlab.kernel.verbs.recalling.past import Past
from memlab.kernel.verbs.reinforcement import reinforce, strengthen_coactivated

_TOLD = "told-of-exploration"
"""The key in ``meta`` of the journal that says that the owner of an old lab was told of its exploration."""

_RECALLED = {"outcome": "recalled", "rating": None}
"""The inputs of a ``reinforce`` policy for a memory that a recall showed."""


class Use(Protocol):
    """A purpose of a recall, with its selection and the events logged with it."""

    def selection(self, state: State, pack: Pack, question: Question) -> Selection:
        """Return the selection that decides which memories a recall shows."""

    def record_shown(self, slate: Slate) -> None:
        """Keep the shown memories of a slate for ``events``, while the state is locked."""

    def body(self) -> Body:
        """Return additional fields for the event of the recall."""

    def events(self, decision: int) -> Mapping[str, Body]:
        """Return further events that are logged with the recall, by kind."""


def _guarded_field(challenges: Sequence[Challenge], slate: Slate) -> dict[str, Any]:
    """Return the field ``guarded``: 1 for results of the guarded pack, 0 for the active pack.

    The value is -1 if both have the same results. Recalls without a guard have no such field.
    """
    record = slate.challenge or {}
    if not challenges or not challenges[0].guard or not record.get("heads"):
        return {}
    [head] = record["heads"].values()
    return {"guarded": -1 if head["ids"] == record["live"] else int(record.get("whose", "") != "")}


class Questions:
    """The verb ``recall`` of one lab."""

    def __init__(self, core: Core) -> None:
        self._core, self._store = core, core.store
        self._past: Past | None = None
        self._told = False
        self._viewer = self._store.viewer if isinstance(self._store, ViewerStore) else None

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
        explore: bool | Literal["within"] | None = True,
        pack: Pack | None = None,
        params: Mapping[str, float] | None = None,
        use: Use | None = None,
        again: bool | None = True,
    ) -> Hits:
        """Return the hits of a query; see ``Lab.recall``.

        The recall is logged unless ``pack`` is given, ``log`` is False or the lab is read-only.
        With ``params``, the event names the parameters, and no challenger takes part. ``use`` is
        the purpose of the recall, such as a prompt context. ``explore`` says whether the pack's own
        probes may be shown: agents explore, and None, for a plain recall, is as the lab decided. Those
        ``within`` the limit take the place of its last results.
        """
        # The order matters: the viewer and switched-off projects restrict the filters before the
        # query is embedded.
        validate_text(query)
        store = self._store
        once: NewToSession | None = None
        now = store.clock() if at is None else check_instant(to_micros(at), "at=")
        filters = self._restrict_to_viewer(filters)
        calibrate_embedder(self._core)
        with store.reading() as state:
            store.refresh_index()
            base_pack = pack or store.versions.pack
            if again is None:
                again = bool(base_pack.settings["recall-again"])
            if not again and session is not None and use is None:
                use = once = NewToSession(limit)
            deciding_pack, state = (
                base_pack.with_params(params) if params else base_pack,
                view_state(store.journal, state, filters.viewer),
            )
            filters, off = apply_switches(store, state, project, filters)
            screening = screen(query, personal=personal_kinds(deciding_pack.settings))
            # The vector is zero while memory is off, so that a remote embedder does not get the
            # query.
            vector = None if off is None else np.zeros(store.embedder.dim, dtype=np.int8)
            question = Question(
                screening.text,
                project=project,
                session=session,
                filters=filters,
                at=now,
                vector=vector,
            )
            challenges = () if pack or params else store.versions.challenges
            logs = log and pack is None and off is None and not store.journal.read_only
            if logs:
                refuse_strings(
                    {"project": project, "session": session, **filters.logged()}, "recall"
                )
            began = perf_counter()
            slate = self._core.recaller.recall(
                state,
                deciding_pack,
                question,
                limit=int(deciding_pack.settings["limit"]) if limit is None else limit,
                # An unlogged recall gives no evidence, so it does not explore.
                seed=self._core.seed if logs else None,
                explores=store.versions.explores if explore is None else explore,
                challenges=challenges,
                selection=None if use is None else use.selection(state, deciding_pack, question),
            )
            self._core.latencies.add("search", perf_counter() - began)
            if use is not None:
                use.record_shown(slate)
            memories = read_memories(state, slate.shown)
            decision = None
            if logs:
                details = {} if use is None else use.body()
                if params:
                    details = {
                        "of": base_pack.hash,
                        "params": {name: float(value) for name, value in params.items()},
                    } | details
                details |= _guarded_field(challenges, slate)
                decision = self._log(
                    slate, deciding_pack, details, screening, viewer=filters.viewer, use=use
                )
                if explore is None and slate.sampler in ("probe", "gumbel"):
                    self._tell_of_exploration()
            repeated = () if once is None else once.left_out
            return Hits(
                slate,
                deciding_pack,
                decision,
                memories,
                redacted=screening.findings,
                off=off,
                repeated=repeated,
            )

    def _tell_of_exploration(self) -> None:
        """Warn once per lab that plain recalls of an old lab still explore."""
        if self._told or not self._store.versions.explores_by_habit:
            return
        with self._store.writing() as tx:
            is_told = self._store.journal.meta(_TOLD) is not None
            if not is_told:
                tx.meta(_TOLD, "yes")
        self._told = True
        if not is_told:
            warn_caller(
                "Recalls of this lab may show an exploration item, because an earlier version of memlab created it. "
                "Recalls of a new lab do not. Decide with lab.policies.explore(False) or lab.policies.explore(True), or "
                "with `memlab policy explore LAB off`. Until then recalls explore as before, without this message.",
                ExplorationWarning,
            )

    def _log(
        self,
        slate: Slate,
        pack: Pack,
        details: Body,
        screening: Screening,
        *,
        viewer: str | None,
        use: Use | None,
    ) -> int:
        """Write the event and slate of a recall; return the event number.

        ``details`` are further fields of the event, ``use`` adds events of an extension, and ``viewer`` is
        the one who asked.
        """
        store = self._store
        with store.writing(durable=False) as tx:
            body = {
                "ids": list(slate.shown),
                "probes": list(slate.probes),
                "pack": slate.pack_hash,
                **details,
            }
            body |= self._compute_changes(slate, viewer)
            if screening.findings:
                body["redacted"] = [finding.type for finding in screening.findings]
            decision = tx.event("recall", body, at=slate.at)
            tx.slate(decision, self._core.recaller.encode(pack, slate))
            for kind, content in ({} if use is None else use.events(decision)).items():
                tx.event(kind, content, at=slate.at)
        return decision

    def _compute_changes(self, slate: Slate, viewer: str | None) -> dict[str, Any]:
        """Return the changes to memories and edges that a recall causes under the active pack.

        The memories are reinforced in the state that ``viewer`` sees.
        """
        store, pack = self._store, self._store.versions.pack
        if not pack.number("coactivation-gain") and not changed_fields(
            pack.policies["reinforce"], _RECALLED
        ):
            return {}
        rows = np.array(slate.shown, dtype=np.int64) - 1
        rows.sort()
        state = view_state(store.journal, store.state, viewer)
        change = reinforce(state, pack, rows, slate.at, outcome="recalled")
        # A viewer's state has other edge numbers.
        change += strengthen_coactivated(store.state, pack, rows)
        return change.body()

    def similar(
        self, row: int, *, limit: int, project: str | None, filters: Filters
    ) -> pl.DataFrame:
        """Return the memories nearest to the memory in ``row``; see ``lab.graph.similar``."""
        with self._store.reading() as state:
            if state.names["status"].value_at(row) == "purged":
                raise InputError(
                    f"Memory {row + 1} is purged and has no vector: nothing is similar to it."
                )
            self._store.refresh_index()
            # A memory bound to a session is compared with its neighbours there.
            session = state.names["session"].value_at(row)
            question = Question(
                "",
                at=0,
                project=project,
                session=session,
                filters=self._restrict_to_viewer(filters),
            )
            return similar(state, row, self._core.recaller.population(state, question), limit=limit)

    def again(self, decision: Mapping[str, Any], pack: Pack) -> pl.DataFrame | None:
        """Return the candidates that ``pack`` would have had for a logged decision.

        Returns None if the recall cannot be repeated, because its filter is not in the log.
        """
        if not isinstance(decision.get("decision"), int):
            raise InputError(
                f"No recall has the decision {describe_value(decision)}. Pass a number from lab.slates().decisions."
            )
        with self._store.reading():
            self._store.refresh_index()
            if self._past is None:
                journal = self._store.journal
                self._past = Past(
                    journal.full if isinstance(journal, ViewerJournal) else journal,
                    self._core.recaller,
                )
            number = decision["decision"]
            return self._past.recall(number, pack).frame if self._past.repeats(number) else None

    def _restrict_to_viewer(self, filters: Filters) -> Filters:
        """Return the filters limited to this lab's viewer; refuse another viewer."""
        if self._viewer is None:
            return filters
        if filters.viewer not in (None, self._viewer):
            raise InputError(
                f'The viewer of this lab is "{self._viewer}": leave viewer="{filters.viewer}" out.'
            )
        return replace(filters, viewer=self._viewer)
