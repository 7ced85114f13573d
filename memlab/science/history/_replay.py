"""A history lived again under another pack: what was put in, at the times at which it was put in.

Inputs are what a person or an agent did: remembered, asked, judged, linked, corrected. What the lab's own pack made of
them (edges, merged duplicates, labels, promotions, forgetting) is left out, and decided again. Time is simulated:
a year takes as long as its events, and upkeep runs when it is due in that time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Count, Seed, Within, checked
from memlab.kernel.base.clock import DAY, ManualClock, Micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.base.progress import bar
from memlab.kernel.journal import Event
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Filters, Hits
from memlab.kernel.schema import FIELDS, RECALLABLE
from memlab.kernel.slates import Slate, read_slates
from memlab.kernel.state import EVENTS
from memlab.subjects.lab import Lab
from memlab.subjects.opening import open_lab

__all__ = ["Replay", "replay"]

_LEAST_DAYS = 1 / 24
_MOST_PASSES = 400
"""Of upkeep between two events; in a longer gap they are as many, evenly."""


@dataclass(frozen=True)
class Replay(Displayed):
    """The lab that came of it, and how its inputs went.

    ``frame``: one row a kind of input: kind, inputs, applied, left_out, why (of what was left out). ``ids`` gives for
    each memory of the old lab the one that stands for it in the new, or null: memory_id, replayed_id.
    """

    lab: Lab
    pack: str
    pack_hash: str
    seed: int
    every_days: float
    frame: pl.DataFrame = field(repr=False)
    ids: pl.DataFrame = field(repr=False)

    def __repr__(self) -> str:
        applied, inputs = self.frame["applied"].sum(), self.frame["inputs"].sum()
        return printable(
            f"<Replay under {self.pack} [{self.pack_hash[:12]}]: {applied:,} of {inputs:,} inputs applied>"
        )


@checked
def replay(
    lab: Lab,
    pack: str | Path | Pack,
    *,
    path: str | Path | None = None,
    every_days: Annotated[float, Within(0, 1_000_000)] = 1.0,
    upto: Count | None = None,
    seed: Seed | None = None,
    progress: bool = True,
) -> Replay:
    """Run the inputs of ``lab`` through a fresh lab under ``pack`` and a simulated clock.

    ``path`` keeps the new lab on disk; without it, it lives in memory. Upkeep (``lab.upkeep.maintain``) runs every
    ``every_days`` of simulated time, 0 for never. ``upto`` is the last event to be replayed. ``seed`` is that of the
    probes; the old lab's unless given.

    Feedback counts only where the new lab showed the memory too: nobody judged what they did not see. A memory that the
    new pack merged into another, or refused, is replaced by what stands for it, or its later inputs are left out. What
    the old lab did not store (a duplicate that it merged) is not in its journal and cannot be replayed.

    InputError for an unknown pack or a path that holds a lab already.

    >>> memlab.replay(lab, "companion").frame                                              # doctest: +SKIP
    """
    if 0 < every_days < _LEAST_DAYS:
        raise InputError(
            f"every_days is at least an hour, {_LEAST_DAYS:.4f} of a day, not {every_days!r}."
        )
    if path is not None and Path(path).expanduser().exists():
        raise InputError(f"{path} exists: a replay begins with an empty lab.")
    journal = lab.io.store.journal
    last = journal.head if upto is None else min(upto, journal.head)
    began = next(iter(journal.events(upto=last)), None)
    clock = ManualClock(0 if began is None else began.at)
    chosen = lab.io.seed if seed is None else seed
    fresh = open_lab(path, pack=pack, embedder=lab.io.embedder, clock=clock, seed=chosen)
    try:
        _consent(lab, fresh)
        player = _Player(lab, fresh, clock, round(every_days * DAY))
        with bar(progress and last > 500, last, unit="event", desc="replay") as step:
            for event in journal.events(upto=last):
                player.play(event)
                step(1)
    except BaseException:
        fresh.close()
        raise
    live = fresh.policies.pack
    return Replay(
        fresh, live.name, live.hash, chosen, float(every_days), player.summary(), player.pairs()
    )


def _consent(lab: Lab, fresh: Lab) -> None:
    """Under a pack that needs consent: what the old lab remembered, the new one may try again on this machine."""
    if fresh.policies.pack.settings["consent"] == "needed":
        for project in (None, *lab.memories["project"].drop_nulls().unique(maintain_order=True)):
            fresh.agents.switch_on(project, reason="a replay of what was remembered", by="replay")


class _Player:
    """Applies events to a fresh lab, one at a time, and keeps what became of each memory and decision."""

    def __init__(self, old: Lab, new: Lab, clock: ManualClock, every: Micros) -> None:
        self._old, self._new, self._clock, self._every = old, new, clock, every
        self._due: Micros | None = None
        self._ids: dict[int, int | None] = {}
        self._hits: dict[int, Hits] = {}
        self._applied: Counter[str] = Counter()
        self._left: Counter[tuple[str, str]] = Counter()
        self._slates = _Slates(old)
        self._acts: dict[str, Callable[[Event], str | None]] = {
            "remember": self._remember,
            "import": self._remember,
            "recall": self._recall,
            "feedback": self._feedback,
            "verify": self._verify,
            "conversation": self._conversation,
            "link": self._link,
            "switch": self._switch,
            "describe-tag": self._describe_tag,
            **{kind: self._by_hand for kind, known in EVENTS.items() if known.replay == "values"},
        }

    def play(self, event: Event) -> None:
        """Live through an event: upkeep that was due before it, then the input itself."""
        self._pass_time(event.at)
        if EVENTS[event.kind].replay == "left-out":
            self._left[event.kind, "depends on how the old lab stood"] += 1
        act = self._acts.get(event.kind)
        if act is None or (event.kind == "link" and event.body.get("by") != "hand"):
            return
        why = act(event)
        # what a pack links in the background would meet whatever simulated time it is by then
        self._new.graph.link_waiting()
        if why is None:
            self._applied[event.kind] += 1
        else:
            self._left[event.kind, why] += 1

    def _pass_time(self, now: Micros) -> None:
        if self._due is None:
            self._due = now + self._every
        apart = max(self._every, (now - self._due) // _MOST_PASSES)
        while self._every and self._due <= now:
            self._clock.set(self._due)
            if len(self._new):
                self._new.upkeep.maintain(progress=False)
            self._due += apart
        self._clock.set(max(now, self._clock.now))

    # -- one method for each kind of input: why it was left out, or None ------------------------------------------

    def _remember(self, event: Event) -> str | None:
        body, count = event.body, event.body.get("count", 0)
        if not count:
            return "nothing was remembered"
        ids = range(body["first"], body["first"] + count)
        texts = self._old.io.store.journal.texts(ids)
        columns = {
            name: each(values, count) for name, values in body["columns"].items() if name in FIELDS
        }
        if "edit" in body:
            return self._edit(
                ids[0],
                body["edit"],
                texts[0],
                {name: values[0] for name, values in columns.items()},
            )
        created = each(body["columns"].get("created", event.at), count)
        rows = [
            {"text": text, "at": at, **{name: values[row] for name, values in columns.items()}}
            for row, (text, at) in enumerate(zip(texts, created, strict=True))
        ]
        kept = [row for row, text in enumerate(texts) if text]
        edges = body.get("edges")
        chain = isinstance(edges, dict) and "next" in each(edges["relation"], len(edges["source"]))
        found = (
            self._new.remember([rows[row] for row in kept], chain=chain).standing if kept else ()
        )
        self._ids.update(dict.fromkeys(ids))
        self._ids.update(zip((ids[row] for row in kept), found, strict=True))
        return None if kept else "purged since"

    def _switch(self, event: Event) -> str | None:
        agents, body = self._new.agents, event.body
        (agents.switch_on if body["on"] else agents.switch_off)(
            body["project"], reason=body["reason"]
        )
        return None

    def _edit(self, id: int, before: int, text: str, fields: dict[str, Any]) -> str | None:
        self._ids[id] = None
        memory = self._ids.get(before)
        if memory is None or not text:
            return "the memory is not there"
        fields.pop("status", None)
        try:
            self._ids[id] = self._new.edit(memory, text=text, **fields).id
        except InputError:
            return "the new lab has forgotten it"
        return None

    def _recall(self, event: Event) -> str | None:
        slate = self._slates.of(event.seq)
        if slate is None:
            return "no slate was logged"
        try:
            filters = Filters.read(slate.filters)
        except InputError:
            return "filtered by an expression that the log does not hold"
        if "budget" in event.body:
            given = self._new.context(
                slate.query,
                budget=event.body["budget"],
                project=slate.project,
                session=slate.session,
                viewer=filters.viewer,
                at=event.at,
            )
            self._hits[event.seq] = given.hits
            return None
        self._hits[event.seq] = self._new.recall(
            slate.query,
            limit=slate.wanted or slate.limit,
            project=slate.project,
            session=slate.session,
            at=event.at,
            **filters.arguments(),
        )
        return None

    def _feedback(self, event: Event) -> str | None:
        body = event.body
        memory = self._ids.get(body["memory"])
        if memory is None:
            return "the memory is not there"
        judged: Any = memory
        if body.get("decision") is not None:
            hits = self._hits.get(body["decision"])
            judged = next((hit for hit in hits or () if hit.id == memory), None)
            if judged is None:
                return "the new lab did not show it"
        more = {name: body[name] for name in ("rating", "agent") if body.get(name) is not None}
        self._new.feedback(
            judged,
            body.get("outcome"),
            reward=body.get("reward"),
            source=body["source"],
            at=event.at,
            **more,
        )
        return None

    def _verify(self, event: Event) -> str | None:
        hits = self._hits.get(event.body["decision"])
        if hits is None:
            return "the recall was left out"
        shown = {hit.id for hit in hits}
        accepted, rejected = (
            [id for id in map(self._ids.get, event.body[verdict]) if id in shown]
            for verdict in ("verified", "rejected")
        )
        if not accepted and not rejected and (event.body["verified"] or event.body["rejected"]):
            return "the new lab did not show them"
        self._new.agents.verify(hits, accepted, rejected=rejected, at=event.at)
        return None

    def _conversation(self, event: Event) -> str | None:
        self._new.agents.conversation(event.body["relationship"]["agent"], at=event.at)
        return None

    def _link(self, event: Event) -> str | None:
        edges, why = event.body.get("edges"), self._weighed(event.body.get("strengthen"))
        if edges is None:
            return why
        count = len(edges["source"])
        relations, weights = each(edges["relation"], count), each(edges["weight"], count)
        for source, target, relation, weight in zip(
            edges["source"], edges["target"], relations, weights, strict=True
        ):
            one, other = self._ids.get(source), self._ids.get(target)
            if one is None or other is None or one == other:
                why = "an end is not there"
            else:
                self._new.graph.link(one, other, relation, weight=weight)
        return why

    def _weighed(self, strengthened: dict[str, Any] | None) -> str | None:
        """Give edges that the new lab has too the weights that a person gave them."""
        if strengthened is None:
            return None
        known, why = self._old.io.store.state.edges, None
        numbers = np.asarray(strengthened["edges"], dtype=np.int64)
        ends = [nodes.tolist() for nodes in known.ends(numbers)]
        words = known.words_of(known.relation[numbers]).tolist()
        for source, target, relation, weight in zip(
            *ends, words, strengthened["weight"], strict=True
        ):
            one, other = self._ids.get(source + 1), self._ids.get(target + 1)
            if one is None or other is None or one == other:
                why = "an end is not there"
                continue
            row = {"source": [one], "target": [other], "relation": [relation], "weight": [weight]}
            self._new.graph.link(pl.DataFrame(row))
        return why

    def _describe_tag(self, event: Event) -> str | None:
        try:
            self._new.graph.describe_tag(event.body["tag"], event.body["description"])
        except UnknownName:
            return "no memory bears the tag"
        return None

    def _by_hand(self, event: Event) -> str | None:
        parts = []
        for part in event.body.get("set", ()):
            ids = [self._ids.get(id) for id in part["ids"]]
            kept = [
                place
                for place, id in enumerate(ids)
                if id is not None and self._alive(id, part["columns"])
            ]
            columns = {
                name: [values[place] for place in kept] if isinstance(values, list) else values
                for name, values in part["columns"].items()
            }
            columns = {name: values for name, values in columns.items() if name != "superseded_by"}
            if kept:
                parts.append({"ids": [ids[place] for place in kept], "columns": columns})
        if not parts:
            return "the memory is not there"
        given = {name: value for name, value in event.body.items() if name in ("reason", "project")}
        with self._new.io.store.writing() as tx:
            tx.event(event.kind, {**given, "set": parts}, at=event.at)
        return None

    def _alive(self, id: int, columns: dict[str, Any]) -> bool:
        """Whether a change applies: what is back in use had to be out of it, and the other way round."""
        status = columns.get("status")
        if not isinstance(status, str):
            return True
        now = self._new.io.store.state.names["status"].value_at(id - 1)
        return now != status and (now in RECALLABLE) != (status in RECALLABLE)

    # -- what came of it -------------------------------------------------------------------------------------------

    def summary(self) -> pl.DataFrame:
        kinds = sorted({*self._applied, *(kind for kind, _ in self._left)})
        rows = []
        for kind in kinds:
            reasons = {why: count for (of, why), count in self._left.items() if of == kind}
            left = sum(reasons.values())
            why = "; ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
            rows.append((kind, self._applied[kind] + left, self._applied[kind], left, why))
        schema = {
            "kind": pl.String,
            "inputs": pl.Int64,
            "applied": pl.Int64,
            "left_out": pl.Int64,
            "why": pl.String,
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    def pairs(self) -> pl.DataFrame:
        pairs = list(self._ids.items())
        return pl.DataFrame(
            pairs, schema={"memory_id": pl.Int64, "replayed_id": pl.Int64}, orient="row"
        )


class _Slates:
    """The slates of a lab by decision, asked for in ascending order."""

    def __init__(self, lab: Lab) -> None:
        self._left: Iterator[Slate] = read_slates(lab.io.store.journal)
        self._next: Slate | None = next(self._left, None)

    def of(self, decision: int) -> Slate | None:
        while self._next is not None and self._next.decision < decision:
            self._next = next(self._left, None)
        return None if self._next is None or self._next.decision != decision else self._next


def each(values: Any, count: int) -> list[Any]:
    return values if isinstance(values, list) else [values] * count
