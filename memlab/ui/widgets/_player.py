"""Life player: a lab as it was at each event, under two packs, and what time will do to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import traitlets

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import from_micros
from memlab.kernel.language import with_setting
from memlab.kernel.policies import Pack, load_pack, pack_names
from memlab.kernel.schema import RECALLABLE, STATUSES
from memlab.subjects.lab import Lab
from memlab.subjects.retention.forecast import Forecast
from memlab.ui.widgets._widget import WorkingWidget, arrow, synced

__all__ = ["LifePlayer", "fading_params", "forecasts_from", "frames_of", "let_go", "tuned_pack"]

_MOST = 3_000
"""Memories that are drawn, evenly chosen where there are more: each is a cell, twice."""
_FRAMES, _TOGETHER = 48, 8
"""Instants that are kept for scrubbing, and how many are worked out before the browser has them."""
_MOST_EVENTS = 50_000
_CURVES = 6
_LIVE = "as it lived"
_DECIDES = {
    "remember": ("admit", "link", "resolve"),
    "recall": ("eligible", "seed-score", "spread", "recall-score", "explore", "reinforce"),
    "feedback": ("reinforce",),
    "maintain": ("promote", "forget", "label", "prune"),
    "link": ("link", "resolve"),
    "consolidate": ("consolidate",),
}
"""The slots that are asked for an event, by its kind."""


class LifePlayer(WorkingWidget, bundle="player"):
    """Scrub through a lab: memories pale, are superseded, merged and promoted; two packs side by side.

    ``event`` is the one after which the lab is shown (0: the last), ``packs`` names the two by which it is shown: "as
    it lived" is the pack that was live then. ``chosen`` are up to six memories whose curves are drawn from there to
    ``until`` (a date), under the first pack and with ``params`` in place of its own (``"retention w20"``, or
    ``"base-half-life"``). ``forecast`` holds what was drawn, and ``selection`` is an expression over ``lab.memories``.

    >>> player = memlab.widgets.LifePlayer(lab, packs=["companion", "fsrs"])                   # doctest: +SKIP
    >>> player.forecast.transitions                                                            # doctest: +SKIP
    """

    event = synced(0)
    packs = synced([str], minlen=2, maxlen=2)
    chosen = synced([int], maxlen=_CURVES)
    until = synced("")
    params = synced({})
    forecast = traitlets.Any(None)

    _about = synced({})
    _events = synced(b"")
    _memories = synced(b"")
    _frames = synced(b"")
    _frame = synced(b"")
    _curves = synced(b"")
    _gone = synced({})

    @checked
    def __init__(
        self,
        lab: Lab,
        *,
        packs: Sequence[str | Path | Pack] = (_LIVE, "companion"),
        until: str = "",
    ) -> None:
        if len(packs) != 2:
            raise InputError(f"LifePlayer shows two packs side by side, not {len(packs)}.")
        names = [_LIVE if one == _LIVE else load_pack(one).name for one in packs]
        self._named = {name: name for name in pack_names()} | dict(zip(names, packs, strict=True))
        self._kept: list[pl.DataFrame] = []
        self._generation = 0
        super().__init__(lab, packs=names, until=until)
        self._look()

    @property
    def selection(self) -> pl.Expr:
        """The memories whose curves are drawn: an expression over the columns of ``lab.memories``."""
        return pl.col("id").is_in(self.chosen)

    def refresh(self) -> None:
        """Take in new events; after a purge also what was kept of the past."""
        self._look()

    def fill(self) -> None:
        """All key frames and the curves, so that a copy can be scrubbed."""
        self.answer_frames(self.packs)
        self.answer_curves(self.event, self.chosen, self.until, self.params)
        self.finish()

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_frames(self, packs: list[str]) -> None:
        """Work out the key frames under two packs."""
        if len(packs) != 2:
            raise InputError("Two packs are shown side by side.")
        specs = [self._spec(name) for name in packs]
        self.packs, self._kept, self._frames = packs, [], b""
        self._about = {**self._about, "params": fading_params(specs[0] or self.lab.policies.pack)}
        first, head = self._first, self._about["head"]
        count = min(_FRAMES, head - first + 1)
        events = sorted(
            {round(first + (head - first) * place / max(1, count - 1)) for place in range(count)}
        )
        # coarse ones first
        spread = [one for step in range(_TOGETHER) for one in events[step::_TOGETHER]]
        ids = self._ids
        parts = [tuple(spread[at : at + _TOGETHER]) for at in range(0, len(spread), _TOGETHER)]
        for place, part in enumerate(parts, 1):
            what, call = (
                f"key frames {place} of {len(parts)}",
                partial(frames_of, self.lab, part, specs, ids),
            )
            self.work(what, (*packs, *part, self._generation), call, self._keep)

    @checked
    def answer_frame(self, event: int) -> None:
        """The lab after exactly this event."""
        self.event = event
        ids, specs = self._ids, [self._spec(name) for name in self.packs]

        def deliver(found: pl.DataFrame) -> None:
            self._frame = arrow(found)

        key = (event, *self.packs, self._generation)
        self.work(
            "look at an event", key, lambda: frames_of(self.lab, [event], specs, ids), deliver
        )

    @checked
    def answer_event(self, event: int) -> dict[str, Any]:
        """What happened, to whom, and the policies that decided it."""
        if not 1 <= event <= self._log.height:
            raise UnknownName("event", event, [f"1 to {self._log.height}"])
        found = next(iter(self.lab.io.store.journal.events(after=event - 1, upto=event)))
        row = self._log.row(by_predicate=pl.col("event") == event, named=True)
        known = self.lab.memories.filter(pl.col("id").is_in(row["memories"][:8])).select(
            "id", "text", "status"
        )
        hash = found.body.get("pack")
        versions = (
            self.lab.policies.deciders(hash) if isinstance(hash, str) and len(hash) == 64 else {}
        )
        deciders = [
            {
                "slot": slot,
                "number": one.number,
                "pack": one.pack,
                "hash": one.hash[:12],
                "source": one.source,
            }
            | {"reason": one.reason}
            for slot in _DECIDES.get(found.kind, ())
            if (one := versions.get(slot)) is not None
        ]
        about = {
            "event": event,
            "at": row["at"].isoformat(),
            "count": len(row["memories"]),
            "pack": (hash or "")[:12],
        }
        said = {name: row[name] for name in ("kind", "what", "edges")}
        return {**about, **said, "deciders": deciders, "memories": known}

    @checked
    def answer_curves(
        self, event: int, chosen: list[int], until: str, params: dict[str, float]
    ) -> None:
        """Curves of a few memories from an event on, and what would be forgotten until a date."""
        with self.hold_trait_notifications():
            self.chosen, self.until, self.params = chosen[:_CURVES], until or self._soon(), params
        event, ids, until = event or self._about["head"], self._ids, self.until
        if not ids:
            return
        spec, given = self._spec(self.packs[0]), tuple(params.items())
        key = (event, tuple(self.chosen), until, given, self.packs[0], self._generation)
        chosen = self.chosen
        call = partial(forecasts_from, self.lab, event, chosen, until, params, spec, ids)
        self.work("forecast", key, call, self._forecasted)

    # -- finding out --------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """The events so far, the memories that are drawn, and what may be tuned."""
        journal = self.lab.io.store.journal
        purged = sum(1 for _ in journal.events(kinds=("purge",)))
        if purged != self._generation:  # of what is gone nothing is kept
            self._generation, self._kept, self._frames, self._frame, self._curves = (
                purged,
                [],
                b"",
                b"",
                b"",
            )
            self._results.clear()
            self._waiting.clear()
            self.forecast, self._gone = None, {}
        self._log = self.lab.log
        memories = self.lab.memories.select("id", "text", "kind", "created", "superseded_by")
        if memories.height > _MOST:
            memories = memories[np.linspace(0, memories.height - 1, _MOST).round().astype(int)]
        self._ids = memories["id"].to_list()
        self._first = self.lab.policies.history()["event"][0]
        events = self._log.select("event", pl.col("at").dt.timestamp("ms"), "kind")
        if events.height > _MOST_EVENTS:
            events = events.gather_every(-(-events.height // _MOST_EVENTS))
        with self.hold_sync():
            self._memories, self._events = arrow(memories), arrow(events)
            self._about = {
                "head": journal.head,
                "first": self._first,
                "memories": len(self.lab),
                "drawn": len(self._ids),
                "statuses": list(STATUSES),
                "recallable": list(RECALLABLE),
                "packs": [_LIVE, *(name for name in self._named if name != _LIVE)],
                "live": self.lab.policies.pack.name,
                "params": fading_params(self._spec(self.packs[0]) or self.lab.policies.pack),
                "generation": self._generation,
            }
            if not self.until:
                self.until = self._soon()

    def _spec(self, name: str) -> Pack | None:
        return None if name == _LIVE else load_pack(self._named.get(name, name))

    def _soon(self) -> str:
        """Three months after the last event, as a date."""
        if not self._log.height:
            return ""
        last: datetime = self._log["at"][-1]
        return str((last + timedelta(days=90)).date())

    def _keep(self, found: pl.DataFrame) -> None:
        self._kept.append(found)
        self._frames = arrow(pl.concat(self._kept).sort("event", "id"))

    def _forecasted(self, found: tuple[Any, list[Any]]) -> None:
        curves, every = found
        self.forecast = curves
        names = [name for name, _ in curves.packs]
        frame = curves.frame.select(
            pl.col("pack")
            .replace_strict(names, range(len(names)), return_dtype=pl.Int8)
            .alias("tuned"),
            pl.col("memory_id").cast(pl.Int32).alias("id"),
            pl.col("at").dt.timestamp("ms"),
            "retention",
        )
        with self.hold_sync():
            self.fault, self._curves = "", arrow(frame)
            self._gone = {
                "until": str(curves.until),
                "pack": names[0].split(" [")[0],
                "sides": [let_go(one) for one in every],
            }


# -- events of the past, and forecasts from them ----------------------------------------------------------------------

_FRAME: dict[str, Any] = {"event": pl.Int32, "id": pl.Int32} | dict.fromkeys(
    ("status_a", "keep_a", "status_b", "keep_b"), pl.UInt8
)
_MOST_CURVES, _POINTS = 6, 80
_LISTED = 40
_FADING = ("half-life", "retention", "promote", "forget", "label")


def frames_of(
    lab: Lab, events: Sequence[int], specs: Sequence[Pack | None], ids: Sequence[int]
) -> pl.DataFrame:
    """Status and retention of the memories that there were after each of these events, under both packs."""
    return pl.concat([_frame_after(lab, event, specs, ids) for event in events])


def _frame_after(
    lab: Lab, event: int, specs: Sequence[Pack | None], ids: Sequence[int]
) -> pl.DataFrame:
    with lab.at(event=event, progress=False) as past:
        then = past.memories.select("id", "status").filter(pl.col("id").is_in(ids))
        if not then.height:
            return pl.DataFrame(schema=_FRAME)
        sides, soon = [], from_micros(past.io.store.clock() + 1_000_000)
        for side, spec in zip("ab", specs, strict=True):
            found = past.upkeep.forecast(
                then["id"].to_list(), soon, points=2, packs=spec or past.policies.pack
            ).frame
            now = found.group_by("memory_id", maintain_order=True).first()
            # the pack that lived has already decided
            status = then["status"] if spec is None else now["status"]
            sides += [
                status.cast(pl.String)
                .cast(pl.Enum(STATUSES))
                .to_physical()
                .cast(pl.UInt8)
                .alias(f"status_{side}"),
                (now["retention"].fill_null(1.0).clip(0, 1) * 255)
                .round()
                .cast(pl.UInt8)
                .alias(f"keep_{side}"),
            ]
    return then.select(
        pl.lit(event, pl.Int32).alias("event"), pl.col("id").cast(pl.Int32)
    ).with_columns(sides)


def forecasts_from(
    lab: Lab,
    event: int,
    chosen: Sequence[int],
    until: str,
    params: dict[str, float],
    spec: Pack | None,
    ids: Sequence[int],
) -> tuple[Forecast, list[Forecast]]:
    """Curves of a few of ``ids`` from an event on, and what becomes of all: under a pack, and with its ``params``."""
    with lab.at(event=event, progress=False) as past:
        pack = spec or past.policies.pack
        packs = [pack, tuned_pack(pack, params)] if params else [pack]
        there = [id for id in ids if id <= past.io.store.state.rows]
        if not there:
            raise InputError("There were no memories yet: scrub to a later event.")
        known = [id for id in chosen if id in there] or there[
            :: max(1, len(there) // _MOST_CURVES)
        ][:_MOST_CURVES]
        curves = past.upkeep.forecast(known, until, points=_POINTS, packs=packs)
        return curves, [past.upkeep.forecast(there, until, points=2, packs=one) for one in packs]


def let_go(found: Forecast) -> dict[str, Any]:
    """What leaves recall until a forecast ends: how many, and the first of them."""
    moved = found.transitions.filter(pl.col("what") == "status", ~pl.col("to").is_in(RECALLABLE))
    moved = moved.unique("memory_id", keep="first").sort("at", "memory_id")
    texts = dict(found.texts)
    first = [
        {
            "id": row["memory_id"],
            "at": str(row["at"].date()),
            "to": row["to"],
            "text": texts[row["memory_id"]],
        }
        for row in moved.head(_LISTED).iter_rows(named=True)
    ]
    return {"count": moved.height, "of": len(texts), "first": first}


def fading_params(pack: Pack) -> list[dict[str, Any]]:
    """What may be tuned of how a pack lets memories fade."""
    found = [
        {"name": f"{slot} {one.name}", "value": one.value, "low": one.low, "high": one.high}
        for slot in _FADING
        for one in pack.policies[slot].params.values()
    ]
    reads = {*pack.policies["half-life"].inputs} & {"base-half-days", "base-half-ms"}
    if reads and "half-life" in pack.policies["retention"].inputs:
        found.append(
            {
                "name": "base-half-life",
                "value": pack.number("base-half-life"),
                "low": 1.0,
                "high": 365.0,
            }
        )
    return found


def tuned_pack(pack: Pack, params: dict[str, float]) -> Pack:
    """The pack with other parameters of how memories fade."""
    base = params.get("base-half-life")
    tuned = (
        pack if base is None else load_pack(with_setting(pack.sources[0], "base-half-life", base))
    )
    for slot in _FADING:
        own = {
            name.removeprefix(f"{slot} "): value
            for name, value in params.items()
            if name.startswith(f"{slot} ")
        }
        policy = pack.policies[slot].with_params(own) if own else pack.policies[slot]
        tuned = tuned.with_policy(slot, policy)
    return tuned
