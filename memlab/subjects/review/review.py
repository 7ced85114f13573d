"""Quarantine: all that came from one place out of recall by one event, what it did until then, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.clock import When, check_instant, from_micros, to_micros
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
from memlab.kernel.verbs.recalling.asking import Past
from memlab.kernel.verbs.registers import Gaps
from memlab.kernel.verbs.tellings import build_provenance_frame
from memlab.subjects.review.quarantine import (
    Displaced,
    SetApart,
    came_from,
    displaced_by,
    released,
    set_apart,
    written_since,
)

__all__ = ["LabReview", "Quarantined"]

_SLOW = 20_000
"""Events that are folded in about a second; a question asked again costs as much as some hundred."""

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
    "at": pl.Datetime("us", "UTC"),
    "query": pl.String,
    "left": pl.List(pl.Int64),
    "came": pl.List(pl.Int64),
    "overlap": pl.Float64,
}


@dataclass(frozen=True)
class Quarantined(Displayed):
    """What a quarantine took out of recall, and what that had done until then.

    ``frame``: a row a memory that changes (memory_id, role, before, status, text). The role is "quarantined", "summary"
    (one that a quarantined memory is part of, and that goes with it) or "back" (superseded by them alone, or part of
    such a summary: in use again).

    ``shown``: a row each time that a recall showed one of them (decision, at, query, position, memory_id, probe, and
    outcome and reward of the last feedback). ``replay``: the newest of these recalls asked again, of the lab as it was
    then without them: decision, at, query, ``left`` and ``came`` (ids that the answer loses and gains), ``overlap``
    (share of the answer that stays; null: filtered by what the log does not hold, so that it cannot be asked again).

    ``derived``: what stays and may want a look (memory_id, of, how, status, text): what they supersede or were
    superseded by, what was derived from one, what their creator contributed to. ``edges``: those that meet one of them
    (edge, memory_id, relation, outgoing, kind, other, name, weight, reinforcements; ``other`` is the number of the node
    of this kind at the other end, of a memory its id); nothing passes on to a memory in quarantine.

    ``event`` is the place in the journal, for ``lab.restore``; None in a dry run and where nothing changes.
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
        """What is out of recall, summaries included."""
        return tuple(self.frame.filter(pl.col("role") != "back")["memory_id"].to_list())

    @property
    def back(self) -> tuple[int, ...]:
        """What is in use again."""
        return tuple(self.frame.filter(role="back")["memory_id"].to_list())

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        would = "would go" if self.dry_run else "go"
        parts = [f"{len(self):,} memories {would} out of recall", f"{len(self.back):,} come back"]
        parts.append(
            f"shown {self.shown.height:,} times in {self.shown['decision'].n_unique():,} recalls"
        )
        if self.replay.height:
            other = (self.replay["overlap"] < 1).sum()
            parts.append(f"{other:,} of {self.replay.height:,} asked again answer otherwise")
        if self.derived.height:
            parts.append(f"{self.derived.height:,} to review")
        return printable(f"<Quarantined: {', '.join(parts)}>")

    def _display(self) -> object:
        why = f" ({self.reason})" if self.reason else ""
        parts: list[object] = [f"{repr(self)[1:-1]}{why}", self.frame]
        titles = {
            "shown": "recalls that showed them",
            "replay": "the same questions without them",
            "derived": "to review",
        }
        for name, title in titles.items():
            frame = getattr(self, name)
            parts += [f"{title}:", frame] if frame.height else []
        return parts


class LabReview:
    """``lab.upkeep.review``: what may be wrong, out of recall until somebody has looked, and what was never found."""

    def __init__(self, core: Core, corrections: Corrections) -> None:
        self._core, self._corrections = core, corrections

    @checked
    def deprecate(self, memory: Memories, reason: str) -> Corrected:
        """Flag memories as wrong: they leave recall, and stay, with the ``reason``. ``lab.restore`` brings them back.

        A memory that was edited is flagged with its corrections, as ``lab.forget`` forgets it. What they superseded
        otherwise stays superseded: the result's ``review`` has those memories, and those by which they were
        superseded, and ``lab.restore`` of one brings it back.

        >>> lab.forget(hit, how="deprecate", reason="the office has moved").review  # doctest: +SKIP
        """
        return self._corrections.deprecate(memory, reason)

    @checked
    def related(self, memory: Memories | None = None) -> pl.DataFrame:
        """What may want a look since a memory was deprecated: those that it supersedes or was superseded by.

        Columns: memory_id, of, how, status, text. Without ``memory``, of all that is deprecated.
        """
        return self._corrections.related(memory)

    @checked
    def supersessions(self) -> pl.DataFrame:
        """Return which memory superseded which, when, and by which rule.

        Returns
        -------
        polars.DataFrame
            A row for each superseded memory: ``memory_id``, ``superseded_by``, ``at``, ``event``, ``rule``
            ("correction", "linking", "merge", "by hand", "verifier", "import" or "unknown rule"), ``relation`` (what
            ``link`` called the pair), ``pack``, ``pack_hash``, ``link_hash`` and ``resolve_hash`` (what was active
            then), ``reason``, ``text`` and ``by_text``.

        Examples
        --------
        >>> lab.upkeep.review.supersessions().group_by("rule").len()                              # doctest: +SKIP
        """
        with self._core.reading() as state:
            store = self._core.store
            return supersession_frame(state, store.versions, store.journal.events(upto=state.seq))

    @checked
    def provenance(self, memory: MemoryLike) -> pl.DataFrame:
        """Return how a memory came to be known: each time it was told, in the order of time.

        ``how`` is "told" (the memory itself), "told again" (a near-duplicate that was merged into it), or what became
        of a memory that it replaced: "corrected" by a person, "merged" or "superseded". Columns besides: ``memory_id``,
        ``at``, ``session``, ``project``, ``speaker``, ``creator``, ``provenance``, ``source``, ``confidence``,
        ``context`` (what was said around it) and ``reason`` (why it is believed as it is).

        >>> lab.upkeep.review.provenance(hits[0])                                                 # doctest: +SKIP
        """
        with self._core.reading() as state:
            row = self._core.row(memory)
            return build_provenance_frame(state, row, _replaced_by(state, row))

    @checked
    def gaps(self) -> pl.DataFrame:
        """Return what was looked for and not found: recalls of which a verifier let nothing pass, oldest first.

        A recall that found no memory at all is one too, unless its context holds fewer than two words that say
        something.

        Columns: gap, decision, at, project, session, snippet (the context's first 200 characters, after the privacy
        gate), closed (null while open), reason, embedder, vector (the context's, of that embedder).
        """
        with self._core.reading() as state:
            return state.projection(Gaps).frame

    @checked
    def close_gap(self, gap: int, reason: str) -> None:
        """Say what became of a gap: something was remembered, or nothing has to be. It stays in ``gaps``, as closed.

        UnknownName for a number that no gap has, InputError for one that was closed.
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
        """Take all that came from a ``source``, ``session`` or ``creator`` out of recall, by one event.

        Of several, all must hold. ``since`` leaves alone what was written before, by the journal's time, which no
        writer can choose. Summaries that one of the memories is part of go too; what was superseded by them alone, and
        the other members of such summaries, come back. What is deleted or purged stays so.

        The result says what the memories did: which recalls showed them, and what the newest ``replay`` of these answer
        without them (0: none is asked again; the lab is folded from its beginning for it, about a second for 100,000
        memories). With ``dry_run`` nothing is written. ``release`` undoes the event; ``lab.restore`` brings back single
        memories. Numbers that a policy changed while they took part stay, and so does what was never stored because it
        said the same: see docs/poisoning.md.

        InputError unless at least one of the three is given; UnknownName for a name that no memory has; ReadOnlyLab.

        >>> lab.forget(how="quarantine", session="web 17", since="2026-11-01", dry_run=True).shown  # doctest: +SKIP
        """
        names = {"source": source, "session": session, "creator": creator}
        _check(names, reason)
        instant = None if since is None else check_instant(to_micros(since), "since=")
        store, event = self._core.store, None
        if dry_run:
            with self._core.reading() as state:
                apart, displaced = self._apart(state, names, instant)
                described, now = _described(state, apart, creator), store.clock()
        else:
            with store.writing() as tx:
                state, now = store.state, store.clock()
                apart, displaced = self._apart(state, names, instant)
                described = _described(state, apart, creator)
                if apart.now:
                    body = {"reason": reason, "was": apart.was, **apart.change(now).body()}
                    event = tx.event("quarantine", body, at=now)
        ids = np.concatenate((apart.rows, apart.summaries)) + 1
        shown = _shown(self._core.store.slates(), ids.tolist())
        answers = self._answers(shown, apart.rows, displaced, replay, progress)
        return Quarantined(
            from_micros(now), event, dry_run, reason, described[0], shown, answers, *described[1:]
        )

    @checked
    def release(self, quarantine: Quarantined | int) -> Corrected:
        """Undo a quarantine, given by its result or its event: each memory gets back what it had before.

        What has changed since stays as it is: what was restored, deleted or purged, and what would be superseded by
        what does not come back. InputError for what is no quarantine of this lab.

        >>> lab.restore(quarantine=lab.forget(how="quarantine", creator="agent:web"))      # doctest: +SKIP
        """
        seq = quarantine.event if isinstance(quarantine, Quarantined) else quarantine
        store = self._core.store
        with store.writing() as tx:
            event = self._event(seq)
            state, now = store.state, store.clock()
            change, rows = released(state, event.body, now)
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
        journal = self._core.store.journal
        if seq is not None and 1 <= seq <= journal.head:
            event = next(iter(journal.events(after=seq - 1, upto=seq)))
            if event.kind == "quarantine" and "was" in event.body:
                return event
        made = [event.seq for event in journal.events(kinds=("quarantine",)) if "was" in event.body]
        known = (
            f"the events of those are {', '.join(map(str, made))}" if made else "this lab has none"
        )
        raise InputError(f"release takes a quarantine of this lab, not {seq!r}: {known}.")

    def _apart(
        self, state: State, names: dict[str, str | None], since: int | None
    ) -> tuple[SetApart, Displaced]:
        rows = came_from(state, **names)
        events = self._core.store.journal.events
        if since is not None:
            rows = written_since(events(), rows, since)
        statuses = state.names["status"]
        out = np.union1d(rows, np.flatnonzero(statuses.codes == statuses.code("quarantined")))
        displaced = displaced_by(events, (out + 1).tolist()) if len(rows) else {}
        return set_apart(state, rows, displaced), displaced

    def _answers(
        self, shown: pl.DataFrame, rows: Any, displaced: Displaced, most: int, progress: bool
    ) -> pl.DataFrame:
        """The newest recalls that showed one of them, asked again of the lab as it was without them."""
        decisions = np.sort(shown["decision"].unique().to_numpy())[-most:].tolist() if most else []
        found: list[dict[str, Any]] = []
        past = Past(self._core.store.journal, Recaller(self._core.store.embedder))

        def without(state: State) -> tuple[Change, Change]:
            apart = set_apart(state, rows, displaced)
            return Change(set=apart.now), Change(set=apart.was)

        slow = bool(decisions) and decisions[-1] + 100 * len(decisions) > _SLOW
        with bar(progress and slow, len(decisions), unit="recall", desc="asking again") as step:
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
                        row |= _difference(
                            [id for id in logged.shown if id not in logged.probes],
                            past.recall(decision, pack, instead=without).shown,
                        )
                found.append(row)
                step(1)
        return pl.DataFrame(found, schema=_REPLAYED)


def _check(names: dict[str, str | None], reason: str) -> None:
    if all(name is None for name in names.values()):
        raise InputError("quarantine takes source=, session= or creator=: at least one of them.")
    if reason:
        refuse(validate_text(reason, where="reason"), "reason")


def _described(
    state: State, apart: SetApart, creator: str | None
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """What changes, what else may want a look, and the edges that meet what goes."""
    after = {
        id: part["columns"]["status"]
        for part in apart.now
        if "status" in part["columns"]
        for id in part["ids"]
    }
    roles = {"quarantined": apart.rows, "summary": apart.summaries, "back": apart.back}
    rows = [
        (
            row + 1,
            role,
            state.names["status"].value_at(row),
            after[row + 1],
            state.texts.value_at(row),
        )
        for role, chosen in roles.items()
        for row in chosen.tolist()
    ]
    frame = pl.DataFrame(rows, schema=_CHANGED, orient="row")
    out = np.concatenate((apart.rows, apart.summaries))
    derived = find_related(state, out.tolist(), derived=True)
    if creator is not None and state.lists["agents"].has_values:
        own = set(out.tolist())
        helped = [
            row
            for row, agents in state.lists["agents"].items()
            if creator in agents and row not in own
        ]
        also = [
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
        derived = pl.concat([derived, pl.DataFrame(also, schema=derived.schema, orient="row")])
    derived = derived.filter(~pl.col("memory_id").is_in((apart.back + 1).tolist()))
    return frame, derived, _edges(state, out)


def _edges(state: State, rows: NDArray[np.int64]) -> pl.DataFrame:
    """The edges that meet these memories, each once for every end among them."""
    edges, met = state.edges, state.edges.crossings(rows)
    return pl.DataFrame(
        {
            "edge": met.edge,
            "memory_id": rows[met.position] + 1,
            "relation": edges.words_of(edges.relation[met.edge]).tolist(),
            "outgoing": met.outgoing,
            "kind": [NODE_KINDS[kind] for kind in node_kinds(met.neighbour).tolist()],
            "other": node_numbers(met.neighbour) + 1,
            "name": state.nodes.names(met.neighbour),
            "weight": edges.weight[met.edge],
            "reinforcements": edges.reinforcements[met.edge].astype(np.int64),
        },
        schema=_EDGES,
    )


def _shown(slates: Slates, ids: Sequence[int]) -> pl.DataFrame:
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


def _difference(before: Sequence[int], after: Sequence[int]) -> dict[str, Any]:
    left, came = [id for id in before if id not in after], [id for id in after if id not in before]
    return {"left": left, "came": came, "overlap": 1 - len(left) / len(before) if before else 1.0}


# -- what superseded what, and by which rule --------------------------------------------------------------------------


def _replaced_by(state: State, row: int) -> list[tuple[int, str]]:
    """Return the rows that a memory replaced, directly or not, each with how: corrected, merged or superseded."""
    by = state.numbers["superseded_by"].values
    seen, waiting, found = {row}, [row], list[tuple[int, str]]()
    hidden = state.hidden if isinstance(state, ViewerState) else None
    while waiting:
        successor = waiting.pop()
        for older in np.flatnonzero(by == successor + 1).tolist():
            if older in seen or state.names["status"].value_at(older) == "purged":
                continue
            if hidden is not None and hidden[older]:
                continue
            seen.add(older)
            waiting.append(older)
            reason = state.notes["reason"].value_at(older) or ""
            edited = state.names["source"].value_at(successor) == "user-edit"
            merged = reason.startswith("duplicate")
            found.append((older, "merged" if merged else "corrected" if edited else "superseded"))
    return found


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
    """Return a row for each superseded memory: by what, when, by which rule, and under which policies.

    ``rule`` is "correction" (an edit), "linking" (the pack's ``link`` and ``resolve``), "merge" (linking made one of
    two), "by hand", "verifier", "import", or "unknown rule". ``relation`` is what ``link`` called the pair, where its
    event says so. ``pack``, ``pack_hash``, ``link_hash`` and ``resolve_hash`` are those that were active at the event.
    """
    by, status = state.numbers["superseded_by"].values, state.names["status"]
    rows = np.flatnonzero(status.codes == status.code("superseded")).tolist()
    wanted = {row + 1 for row in rows}
    last: dict[int, Event] = {}
    for event in events:
        last |= dict.fromkeys(wanted.intersection(_superseded_by(event)), event)
    found = []
    for row in rows:
        made, other = last.get(row + 1), by[row]
        reason = state.notes["reason"].value_at(row)
        successor = None if other != other else int(other)
        pack = None if made is None else versions.live_at(made.seq)
        found.append(
            (
                row + 1,
                successor,
                int(state.numbers["changed"].values[row]) if made is None else made.at,
                None if made is None else made.seq,
                _rule(made, reason),
                None if made is None or successor is None else _relation(made, successor, row + 1),
                None if pack is None else pack.name,
                None if pack is None else pack.hash,
                None if pack is None else pack.policies["link"].hash,
                None if pack is None else pack.policies["resolve"].hash,
                reason,
                state.texts.value_at(row),
                None if successor is None else state.texts.value_at(successor - 1),
            )
        )
    frame = pl.DataFrame(found, schema=_SUPERSEDED, orient="row")
    return frame.with_columns(to_datetimes("at", frame["at"].to_numpy()))


def _superseded_by(event: Event) -> Iterator[int]:
    """The ids that an event gives the status superseded."""
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
        each = words if isinstance(words, list) else [words] * len(ids)
        yield from (id for id, word in zip(ids, each, strict=True) if word == "superseded")


def _rule(event: Event | None, reason: str | None) -> str:
    if event is None:
        return "unknown rule"
    body = event.body
    if event.kind == "remember" and "edit" in body:
        return "correction"
    if event.kind == "link":
        merged = (reason or "").startswith("Merged: ") or (reason or "").startswith("duplicate")
        return "by hand" if body.get("by") == "hand" else "merge" if merged else "linking"
    return {"verify": "verifier", "import": "import"}.get(event.kind, "unknown rule")


def _relation(event: Event, successor: int, id: int) -> str | None:
    """What else joins the two in the same event: what ``link`` called the pair."""
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
