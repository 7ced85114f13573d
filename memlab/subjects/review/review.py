"""Review of doubtful memories, quarantine and gaps: ``lab.upkeep.review``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.arrays import Ints
from memlab.kernel.base.clock import INSTANT, When, check_instant, from_micros, to_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.base.progress import bar
from memlab.kernel.graph import NODE_KINDS, node_kinds, node_numbers
from memlab.kernel.journal import Event
from memlab.kernel.policies import VersionLog
from memlab.kernel.privacy import refuse
from memlab.kernel.recall import Recaller
from memlab.kernel.slates import Slates
from memlab.kernel.state import Change, State, ViewerState, to_datetimes, validate_text
from memlab.kernel.verbs.core import Core, Memories, MemoryLike
from memlab.kernel.verbs.corrections.corrections import Corrected, Corrections
from memlab.kernel.verbs.corrections.editing import find_related
from memlab.kernel.verbs.recalling.past import Past
from memlab.kernel.verbs.registers import Gaps
from memlab.kernel.verbs.tellings import build_provenance_frame
from memlab.subjects.review.quarantine import (
    Displaced,
    QuarantinePlan,
    filter_written_since,
    find_displaced,
    plan_quarantine,
    plan_release,
    select_origin,
)

_SLOW = 20_000
"""Events that are folded in about a second; repeating a recall costs as much as a hundred events."""

# The columns of the frames of a result.
_CHANGED: dict[str, Any] = {
    "memory_id": pl.Int64,
    "role": pl.String,
    "before": pl.String,
    "status": pl.String,
    "text": pl.String,
}
_EDGES: dict[str, Any] = {
    "edge": pl.Int64,
    "memory_id": pl.Int64,
    "relation": pl.String,
    "outgoing": pl.Boolean,
    "kind": pl.String,
    "other": pl.Int64,
    "name": pl.String,
    "weight": pl.Float64,
    "reinforcements": pl.Int64,
}
_REPLAYED: dict[str, Any] = {
    "decision": pl.Int64,
    "at": INSTANT,
    "query": pl.String,
    "left": pl.List(pl.Int64),
    "came": pl.List(pl.Int64),
    "overlap": pl.Float64,
}


@dataclass(frozen=True)
class Quarantined(Displayed):
    """The result of a quarantine, and the recalls that its memories affected.

    Attributes
    ----------
    at
        The instant of the quarantine, in UTC.
    event
        The position in the journal, for ``lab.restore``; None in a dry run or if nothing changed.
    dry_run
        Whether the quarantine was only planned.
    reason
        The reason that the caller passed.
    frame
        One row per changed memory: memory_id, role, before, status and text. The role is "quarantined",
        "summary" (of a quarantined memory) or "back" (superseded only by quarantined memories, or part of
        such a summary, and therefore in use again).
    shown
        One row per time that a recall returned one of the memories: decision, at, query, position,
        memory_id, probe, outcome and reward of the last feedback.
    replay
        The newest of these recalls, repeated without the memories:

        - ``decision``, ``at`` and ``query`` of the recall
        - ``left`` and ``came``: the ids that the results lose and gain
        - ``overlap``: the share of results that stay, null if the log does not have the filters of the
          recall
    derived
        Memories that may need review: memory_id, of, how, status and text. They supersede a quarantined
        memory, were superseded by one, were derived from one, or got contributions of its creator.
    edges
        The edges of the memories: edge, memory_id, relation, outgoing, kind, other, name, weight and
        reinforcements. ``other`` is the number of the node at the other end. No activation passes them.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("The goat eats hay.", session="s1")
    >>> lab.forget(how="quarantine", session="s1").ids
    (1,)
    """

    at: datetime
    event: int | None
    dry_run: bool
    reason: str
    frame: pl.DataFrame = field(repr=False)
    shown: pl.DataFrame = field(repr=False)
    replay: pl.DataFrame = field(repr=False)
    derived: pl.DataFrame = field(repr=False)
    edges: pl.DataFrame = field(repr=False)

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the quarantined memories, including summaries."""
        return tuple(self.frame.filter(pl.col("role") != "back")["memory_id"].to_list())

    @property
    def back(self) -> tuple[int, ...]:
        """The ids of the memories that recalls return again."""
        return tuple(self.frame.filter(role="back")["memory_id"].to_list())

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        verb = "would leave" if self.dry_run else "left"
        parts = [f"{len(self):,} memories {verb} recall", f"{len(self.back):,} back in use"]
        parts.append(
            f"shown {self.shown.height:,} times in {self.shown['decision'].n_unique():,} recalls"
        )
        if self.replay.height:
            changed = (self.replay["overlap"] < 1).sum()
            parts.append(f"{changed:,} of {self.replay.height:,} repeated recalls change")
        if self.derived.height:
            parts.append(f"{self.derived.height:,} to review")
        return printable(f"<Quarantined: {', '.join(parts)}>")

    def _display(self) -> object:
        """Return the summary and the frames of a quarantine for a notebook."""
        why = f" ({self.reason})" if self.reason else ""
        parts: list[object] = [f"{repr(self)[1:-1]}{why}", self.frame]
        titles = {
            "shown": "recalls that returned them",
            "replay": "the same queries without them",
            "derived": "to review",
        }
        for name, title in titles.items():
            frame = getattr(self, name)
            parts += [f"{title}:", frame] if frame.height else []
        return parts


class LabReview:
    """Doubtful memories, quarantine, and gaps of recall: ``lab.upkeep.review``.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("The office is in Oslo.")
    >>> lab.upkeep.review.provenance(1)["how"].to_list()
    ['told']
    """

    def __init__(self, core: Core, corrections: Corrections) -> None:
        self._core, self._corrections = core, corrections

    @checked
    def deprecate(self, memory: Memories, reason: str) -> Corrected:
        """Mark memories as wrong and remove them from recall, until ``lab.restore``.

        An edited memory is marked with its corrections. Memories that it superseded otherwise stay
        superseded; ``review`` of the result lists them, and ``lab.restore`` brings one back.

        Parameters
        ----------
        memory
            The memories.
        reason
            The reason, which is kept with them.

        Returns
        -------
        The changed memories, and related ones for review.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The office is in Oslo.")
        >>> lab.upkeep.review.deprecate(1, "the office has moved").frame["status"].to_list()
        ['deprecated']
        """
        return self._corrections.deprecate(memory, reason)

    @checked
    def related(self, memory: Memories | None = None) -> pl.DataFrame:
        """Return memories that superseded, or were superseded by, deprecated memories.

        Parameters
        ----------
        memory
            The deprecated memories; by default all of them.

        Returns
        -------
        One row per related memory: memory_id, of, how, status and text.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().upkeep.review.related().columns
        ['memory_id', 'of', 'how', 'status', 'text']
        """
        return self._corrections.related(memory)

    @checked
    def supersessions(self) -> pl.DataFrame:
        """Return each supersession: the two memories, the time and the rule.

        Returns
        -------
        One row per superseded memory: ``memory_id``, ``superseded_by``, ``at``, ``event``, ``rule``,
        ``relation``, ``pack``, ``pack_hash``, ``link_hash``, ``resolve_hash``, ``reason``, ``text`` and
        ``by_text``. The rule is "correction", "linking", "merge", "by hand", "verifier", "import" or "unknown
        rule". ``relation`` is the result of ``link``; pack and hashes are those active at the event.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().upkeep.review.supersessions().height
        0
        """
        with self._core.reading() as state:
            store = self._core.store
            return supersession_frame(state, store.versions, store.journal.events(upto=state.seq))

    @checked
    def provenance(self, memory: MemoryLike) -> pl.DataFrame:
        """Return every statement of a memory, in chronological order.

        Parameters
        ----------
        memory
            The memory.

        Returns
        -------
        One row per statement, with ``how``: "told" (the memory itself), "told again" (a near-duplicate that
        was merged into it), or the fate of a memory that it replaced: "corrected", "merged" or "superseded".
        Other columns: ``memory_id``, ``at``, ``session``, ``project``, ``speaker``, ``creator``,
        ``provenance``, ``source``, ``confidence``, ``context`` (the quotation) and ``reason``.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The goat eats hay.")
        >>> lab.upkeep.review.provenance(1)["how"].to_list()
        ['told']
        """
        with self._core.reading() as state:
            row = self._core.row(memory)
            return build_provenance_frame(state, row, _find_replaced(state, row))

    @checked
    def gaps(self) -> pl.DataFrame:
        """Return the gaps: recalls without a useful result, oldest first.

        A gap is a recall of which a verifier rejected every result. A recall without any result is
        a gap too, unless its context has fewer than two content words.

        Returns
        -------
        One row per gap: gap, decision, at, project, session, snippet, closed (null while open), reason,
        embedder and vector. The snippet is the first 200 characters of the context, without secrets;
        the vector is that of the context.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().upkeep.review.gaps().height
        0
        """
        with self._core.reading() as state:
            return state.projection(Gaps).frame

    @checked
    def close_gap(self, gap: int, reason: str) -> None:
        """Close a gap, for example after remembering an answer; ``gaps`` still lists it.

        Parameters
        ----------
        gap
            The number of the gap.
        reason
            The reason for closing it.

        Raises
        ------
        UnknownName
            If there is no such gap.
        InputError
            If the gap is closed already.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The goat eats hay.")
        >>> hits = lab.recall("Which boat is the fastest?")
        >>> gap = lab.agents.verify(hits, []).gap
        >>> lab.upkeep.review.close_gap(gap, "asked the user")
        """
        refuse(validate_text(reason, where="reason"), "the reason for closing a gap")
        with self._core.store.writing() as tx:
            self._core.store.state.projection(Gaps).check_open(gap)
            tx.event("close-gap", {"gap": gap, "reason": reason}, at=self._core.store.clock())

    @checked
    def quarantine(
        self,
        *,
        source: str | None = None,
        session: str | None = None,
        creator: str | None = None,
        since: When | None = None,
        reason: str = "",
        dry_run: bool = False,
        replay: Annotated[int, Within(0)] = 100,
        progress: bool = True,
    ) -> Quarantined:
        """Remove all memories of a source, session or creator from recall, in one event.

        Several conditions must all hold. Summaries of the memories are quarantined too. Memories
        superseded only by them, and the other members of such summaries, are in use again. Deleted
        and purged memories do not change. ``release`` undoes the event; ``lab.restore`` restores
        single memories. Numbers that a policy changed while the memories took part are unchanged,
        and near-duplicates that were not stored because of them stay absent: see docs/poisoning.md.

        Parameters
        ----------
        source, session, creator
            The origin of the memories; at least one is needed.
        since
            Memories that the journal recorded before this time are left alone.
        reason
            The reason, which is kept with the event.
        dry_run
            Whether to plan only, without writing anything.
        replay
            The number of newest recalls of these memories that are repeated without them. Repeating
            folds the lab from its first event, about a second for 100,000 memories.
        progress
            Whether to show a progress bar.

        Returns
        -------
        The changed memories, the recalls that returned them, and memories for review.

        Raises
        ------
        InputError
            If no condition is given.
        UnknownName
            If no memory has the name.
        ReadOnlyLab
            If the lab was opened read-only.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The goat eats hay.", session="s1")
        >>> lab.upkeep.review.quarantine(session="s1", dry_run=True).ids
        (1,)
        """
        names = {"source": source, "session": session, "creator": creator}
        _check_conditions(names, reason)
        instant = None if since is None else check_instant(to_micros(since), "since=")
        store, event = self._core.store, None
        if dry_run:
            with self._core.reading() as state:
                plan, displaced = self._apart(state, names, instant)
                frames, instant_now = _describe_plan(state, plan, creator), store.clock()
        else:
            with store.writing() as tx:
                state, instant_now = store.state, store.clock()
                plan, displaced = self._apart(state, names, instant)
                frames = _describe_plan(state, plan, creator)
                if plan.now:
                    body = {"reason": reason, "was": plan.was, **plan.change(instant_now).body()}
                    event = tx.event("quarantine", body, at=instant_now)
        ids = np.concatenate((plan.rows, plan.summaries)) + 1
        exposures = _find_exposures(self._core.store.slates(), ids.tolist())
        answers = self._answers(exposures, plan.rows, displaced, replay, progress)
        return Quarantined(
            from_micros(instant_now),
            event,
            dry_run,
            reason,
            frames[0],
            exposures,
            answers,
            *frames[1:],
        )

    @checked
    def release(self, quarantine: Quarantined | int) -> Corrected:
        """Undo a quarantine, and restore each memory's former status and values.

        Later changes stay: memories that were restored, deleted or purged, and memories superseded
        by one that does not come back.

        Parameters
        ----------
        quarantine
            The result of the quarantine, or the position of its event.

        Returns
        -------
        The changed memories.

        Raises
        ------
        InputError
            If it is not a quarantine of this lab.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The goat eats hay.", session="s1")
        >>> result = lab.upkeep.review.quarantine(session="s1")
        >>> lab.upkeep.review.release(result).frame["status"].to_list()
        ['active']
        """
        seq = quarantine.event if isinstance(quarantine, Quarantined) else quarantine
        store = self._core.store
        with store.writing() as tx:
            event = self._event(seq)
            state, now = store.state, store.clock()
            change, rows = plan_release(state, event.body, now)
            before = [state.names["status"].value_at(row) for row in rows]
            if change:
                tx.event("restore", {"quarantine": event.seq, **change.body()}, at=now)
        with self._core.reading() as state:
            frame = pl.DataFrame(
                {
                    "memory_id": [row + 1 for row in rows],
                    "before": before,
                    "status": [state.names["status"].value_at(row) for row in rows],
                    "text": [state.texts.value_at(row) for row in rows],
                },
                schema={name: _CHANGED[name] for name in ("memory_id", "before", "status", "text")},
            )
            return Corrected("release", frame, find_related(state, rows))

    def _event(self, seq: int | None) -> Event:
        """Return the quarantine with an event number. Raise InputError if there is none."""
        journal = self._core.store.journal
        if seq is not None and 1 <= seq <= journal.head:
            event = next(iter(journal.events(after=seq - 1, upto=seq)))
            if event.kind == "quarantine" and "was" in event.body:
                return event
        positions = [
            event.seq for event in journal.events(kinds=("quarantine",)) if "was" in event.body
        ]
        listing = (
            f"its quarantines are the events {', '.join(map(str, positions))}"
            if positions
            else "it has none"
        )
        raise InputError(f"{seq!r} is not a quarantine of this lab: {listing}.")

    def _apart(
        self, state: State, names: dict[str, str | None], since: int | None
    ) -> tuple[QuarantinePlan, Displaced]:
        """Return the plan of a quarantine, and the memories that its members superseded."""
        rows = select_origin(state, **names)
        events = self._core.store.journal.events
        if since is not None:
            rows = filter_written_since(events(), rows, since)
        statuses = state.names["status"]
        outside = np.union1d(rows, np.flatnonzero(statuses.codes == statuses.code("quarantined")))
        displaced = find_displaced(events, (outside + 1).tolist()) if len(rows) else {}
        return plan_quarantine(state, rows, displaced), displaced

    def _answers(
        self, exposures: pl.DataFrame, rows: Any, displaced: Displaced, limit: int, progress: bool
    ) -> pl.DataFrame:
        """Repeat the latest ``limit`` recalls that returned certain memories, without these memories.

        Return a row for each recall, with the ids that left and entered its results if it could be repeated.
        """
        decisions = (
            np.sort(exposures["decision"].unique().to_numpy())[-limit:].tolist() if limit else []
        )
        result: list[dict[str, Any]] = []
        past = Past(self._core.store.journal, Recaller(self._core.store.embedder))

        def without(state: State) -> tuple[Change, Change]:
            """Return two changes: one removes the quarantined memories, one restores them."""
            plan = plan_quarantine(state, rows, displaced)
            return Change(set=plan.now), Change(set=plan.was)

        slow = bool(decisions) and decisions[-1] + 100 * len(decisions) > _SLOW
        with bar(
            progress and slow, len(decisions), unit="recall", desc="repeating recalls"
        ) as step:
            for decision in decisions:
                with self._core.store.reading():
                    logged = past.logged(decision)
                    row = {
                        "decision": decision,
                        "at": from_micros(logged.at),
                        "query": logged.query,
                    }
                    if past.repeats(decision):
                        pack = self._core.store.versions.live_at(decision)
                        row |= _compare_results(
                            [id for id in logged.shown if id not in logged.probes],
                            past.recall(decision, pack, instead=without).shown,
                        )
                result.append(row)
                step(1)
        return pl.DataFrame(result, schema=_REPLAYED)


def _check_conditions(names: dict[str, str | None], reason: str) -> None:
    """Raise InputError without any condition, and PrivacyError for a secret in the reason."""
    if all(name is None for name in names.values()):
        raise InputError("quarantine needs at least one of source=, session= and creator=.")
    if reason:
        refuse(validate_text(reason, where="reason"), "reason")


def _describe_plan(
    state: State, plan: QuarantinePlan, creator: str | None
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the memories that a plan changes, the memories to review, and the edges."""
    after = {
        id: part["columns"]["status"]
        for part in plan.now
        if "status" in part["columns"]
        for id in part["ids"]
    }
    roles = {"quarantined": plan.rows, "summary": plan.summaries, "back": plan.back}
    rows = [
        (
            row + 1,
            role,
            state.names["status"].value_at(row),
            after[row + 1],
            state.texts.value_at(row),
        )
        for role, role_rows in roles.items()
        for row in role_rows.tolist()
    ]
    frame = pl.DataFrame(rows, schema=_CHANGED, orient="row")
    outside = np.concatenate((plan.rows, plan.summaries))
    derived = find_related(state, outside.tolist(), derived=True)
    if creator is not None and state.lists["agents"].has_values:
        quarantined = set(outside.tolist())
        helped = [
            row
            for row, agents in state.lists["agents"].items()
            if creator in agents and row not in quarantined
        ]
        contributions = [
            (
                row + 1,
                None,
                "contributed to",
                state.names["status"].value_at(row),
                state.texts.value_at(row),
            )
            for row in helped
            if state.names["status"].value_at(row) != "purged"
        ]
        derived = pl.concat(
            [derived, pl.DataFrame(contributions, schema=derived.schema, orient="row")]
        )
    derived = derived.filter(~pl.col("memory_id").is_in((plan.back + 1).tolist()))
    return frame, derived, _edge_table(state, outside)


def _edge_table(state: State, rows: Ints) -> pl.DataFrame:
    """Return the edges of memories as a table, with a row for each end in `rows`."""
    edges, crossings = state.edges, state.edges.crossings(rows)
    return pl.DataFrame(
        {
            "edge": crossings.edge,
            "memory_id": rows[crossings.position] + 1,
            "relation": edges.words_of(edges.relation[crossings.edge]).tolist(),
            "outgoing": crossings.outgoing,
            "kind": [NODE_KINDS[kind] for kind in node_kinds(crossings.neighbour).tolist()],
            "other": node_numbers(crossings.neighbour) + 1,
            "name": state.nodes.names(crossings.neighbour),
            "weight": edges.weight[crossings.edge],
            "reinforcements": edges.reinforcements[crossings.edge].astype(np.int64),
        },
        schema=_EDGES,
    )


def _find_exposures(slates: Slates, ids: Sequence[int]) -> pl.DataFrame:
    """Return the recalls that returned these memories, with the last feedback."""
    key = ["decision", "memory_id"]
    judgements = slates.feedback.select(*key, "outcome", "reward").unique(
        key, keep="last", maintain_order=True
    )
    return (
        slates.exposures.filter(pl.col("memory_id").is_in(list(ids)))
        .join(slates.decisions.select("decision", "at", "query"), on="decision", how="left")
        .join(judgements, on=key, how="left")
        .select("decision", "at", "query", "position", "memory_id", "probe", "outcome", "reward")
        .sort("decision", "position", maintain_order=True)
        .collect()
    )


def _compare_results(before: Sequence[int], after: Sequence[int]) -> dict[str, Any]:
    """Return the ids that left and entered the results, and the share that stayed."""
    left, came = [id for id in before if id not in after], [id for id in after if id not in before]
    return {"left": left, "came": came, "overlap": 1 - len(left) / len(before) if before else 1.0}


# Supersessions and their rules.


def _find_replaced(state: State, row: int) -> list[tuple[int, str]]:
    """Return the rows that a memory replaced directly or indirectly.

    Each row comes with its replacement's kind: corrected, merged or superseded.
    """
    by = state.numbers["superseded_by"].values
    visited, pending, result = {row}, [row], list[tuple[int, str]]()
    hidden = state.hidden if isinstance(state, ViewerState) else None
    while pending:
        successor = pending.pop()
        for older in np.flatnonzero(by == successor + 1).tolist():
            if older in visited or state.names["status"].value_at(older) == "purged":
                continue
            if hidden is not None and hidden[older]:
                continue
            visited.add(older)
            pending.append(older)
            reason = state.notes["reason"].value_at(older) or ""
            is_edit = state.names["source"].value_at(successor) == "user-edit"
            is_merge = reason.startswith("duplicate")
            result.append(
                (older, "merged" if is_merge else "corrected" if is_edit else "superseded")
            )
    return result


# The columns of ``supersessions``.
_SUPERSEDED: dict[str, Any] = {
    "memory_id": pl.Int64,
    "superseded_by": pl.Int64,
    "at": pl.Int64,
    "event": pl.Int64,
    "rule": pl.String,
    "relation": pl.String,
    "pack": pl.String,
    "pack_hash": pl.String,
    "link_hash": pl.String,
    "resolve_hash": pl.String,
    "reason": pl.String,
    "text": pl.String,
    "by_text": pl.String,
}


def supersession_frame(state: State, versions: VersionLog, events: Iterable[Event]) -> pl.DataFrame:
    """Return the successor, time and rule of each superseded memory.

    ``rule`` is "correction" (an edit), "linking" (the pack's ``link`` and ``resolve``), "merge"
    (linking made one of two), "by hand", "verifier", "import", or "unknown rule". The column
    ``relation`` is the result of ``link``, if the event has it. Pack and hashes are those that were
    active at the event.
    """
    by, status = state.numbers["superseded_by"].values, state.names["status"]
    rows = np.flatnonzero(status.codes == status.code("superseded")).tolist()
    superseded_ids = {row + 1 for row in rows}
    last: dict[int, Event] = {}
    for event in events:
        last |= dict.fromkeys(superseded_ids.intersection(_superseded_ids(event)), event)
    records = []
    for row in rows:
        last_event, successor_id = last.get(row + 1), by[row]
        reason = state.notes["reason"].value_at(row)
        successor = None if successor_id != successor_id else int(successor_id)
        pack = None if last_event is None else versions.live_at(last_event.seq)
        records.append(
            (
                row + 1,
                successor,
                int(state.numbers["changed"].values[row]) if last_event is None else last_event.at,
                None if last_event is None else last_event.seq,
                _find_rule(last_event, reason),
                None
                if last_event is None or successor is None
                else _find_relation(last_event, successor, row + 1),
                None if pack is None else pack.name,
                None if pack is None else pack.hash,
                None if pack is None else pack.policies["link"].hash,
                None if pack is None else pack.policies["resolve"].hash,
                reason,
                state.texts.value_at(row),
                None if successor is None else state.texts.value_at(successor - 1),
            )
        )
    frame = pl.DataFrame(records, schema=_SUPERSEDED, orient="row")
    return frame.with_columns(to_datetimes("at", frame["at"].to_numpy()))


def _superseded_ids(event: Event) -> Iterator[int]:
    """Yield the ids that an event marks as superseded."""
    body = event.body
    for part in body.get("set", ()):
        words = part["columns"].get("status")
        if words == "superseded":
            yield from part["ids"]
        elif isinstance(words, list):
            yield from (
                id for id, word in zip(part["ids"], words, strict=True) if word == "superseded"
            )
    words = body.get("columns", {}).get("status") if "first" in body else None
    if words is not None:
        ids = range(body["first"], body["first"] + body["count"])
        statuses = words if isinstance(words, list) else [words] * len(ids)
        yield from (id for id, word in zip(ids, statuses, strict=True) if word == "superseded")


def _find_rule(event: Event | None, reason: str | None) -> str:
    """Return the name of the rule by which an event superseded a memory."""
    if event is None:
        return "unknown rule"
    body = event.body
    if event.kind == "remember" and "edit" in body:
        return "correction"
    if event.kind == "link":
        is_merge = (reason or "").startswith("Merged: ") or (reason or "").startswith("duplicate")
        return "by hand" if body.get("by") == "hand" else "merge" if is_merge else "linking"
    return {"verify": "verifier", "import": "import"}.get(event.kind, "unknown rule")


def _find_relation(event: Event, successor: int, id: int) -> str | None:
    """Return the first relation from one memory to another in an event, or None.

    The relation "supersedes" is left out.
    """
    edges = event.body.get("edges")
    if not isinstance(edges, Mapping):
        return None
    words = (
        edges["relation"]
        if isinstance(edges["relation"], list)
        else [edges["relation"]] * len(edges["source"])
    )
    pairs = zip(edges["source"], edges["target"], words, strict=True)
    return next((w for s, t, w in pairs if (s, t) == (successor, id) and w != "supersedes"), None)
