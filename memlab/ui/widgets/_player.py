"""Life player: the state of a lab after each event under two packs, and a forecast of retention."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import traitlets

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import from_micros
from memlab.kernel.language import with_setting
from memlab.kernel.policies import Pack, PolicyLike, as_pack, list_policies, load_pack, pack_names
from memlab.kernel.schema import RECALLABLE, STATUSES
from memlab.subjects.lab import Lab
from memlab.subjects.retention.forecast import Forecast
from memlab.ui.widgets._widget import MOST_TEXT, Answer, WorkingWidget, arrow, synced

_MOST = 3_000
"""Memories that are drawn, an even sample if there are more: each is a cell in two grids."""
_FRAMES, _TOGETHER = 48, 8
"""Key frames for scrubbing, and how many are computed before the browser receives them."""
_MOST_EVENTS = 50_000
"""Events of the histogram, an even sample if there are more: it has 150 bars."""
_CURVES = 6
"""Curves of a forecast: as many as are distinguishable by colour."""
_LIVE = "as it lived"
"""The name of the packs that were active at each event."""
_DECIDES = {
    "remember": ("admit", "link", "resolve"),
    "recall": ("eligible", "seed-score", "spread", "recall-score", "explore", "reinforce"),
    "feedback": ("reinforce",),
    "maintain": ("promote", "forget", "label", "prune"),
    "link": ("link", "resolve"),
    "consolidate": ("consolidate",),
}
"""The slots that decide an event, by its kind."""


class LifePlayer(WorkingWidget, bundle="player"):
    """The status and retention of all memories after each event, under two packs.

    Parameters
    ----------
    lab
        The lab.
    packs
        Two packs; "as it lived" stands for the packs that were active at each event.
    until
        The date at which the forecast ends; three months after the last event by default.

    Attributes
    ----------
    event
        The event after which the lab is shown; 0 for the last.
    chosen
        At most six memories whose retention is drawn.
    params
        Parameters of the first pack that the forecast changes, such as ``"retention w20"`` or
        ``"base-half-life"``.
    forecast
        The forecast that is drawn.

    Examples
    --------
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
        packs: PolicyLike = (_LIVE, "companion"),
        until: str = "",
    ) -> None:
        listed = [pack for _, pack in list_policies(packs)]
        if len(listed) != 2:
            raise InputError(f"LifePlayer shows two packs side by side, not {len(listed)}.")
        own = [
            None if pack == _LIVE else as_pack(pack, lambda: lab.policies.pack) for pack in listed
        ]
        names = [_LIVE if pack is None else pack.name for pack in own]
        self._named = {name: name for name in pack_names()} | dict(zip(names, own, strict=True))
        self._cached_frames: list[pl.DataFrame] = []
        self._generation = 0
        super().__init__(lab, packs=names, until=until)
        self._look()

    @property
    def selection(self) -> pl.Expr:
        """The memories whose curves are drawn, as an expression over ``lab.memories``."""
        return pl.col("id").is_in(self.chosen)

    def refresh(self) -> None:
        """Read new events, and drop cached states after a purge."""
        self._look()

    def fill(self) -> None:
        """Compute all key frames and curves, so that a saved copy can be played."""
        self.answer_frames(self.packs)
        self.answer_curves(self.event, self.chosen, self.until, self.params)
        self.finish()

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_frames(self, packs: list[str]) -> None:
        """Compute the key frames of the timeline under two packs."""
        if len(packs) != 2:
            raise InputError("LifePlayer shows exactly two packs.")
        specs = [self._spec(name) for name in packs]
        self.packs, self._cached_frames, self._frames = packs, [], b""
        self._about = {**self._about, "params": fading_params(specs[0] or self.lab.policies.pack)}
        first, head = self._first, self._about["head"]
        count = min(_FRAMES, head - first + 1)
        events = sorted(
            {round(first + (head - first) * index / max(1, count - 1)) for index in range(count)}
        )
        # Frames far apart come first, so that scrubbing works early.
        spread = [event for step in range(_TOGETHER) for event in events[step::_TOGETHER]]
        ids = self._ids
        parts = [tuple(spread[at : at + _TOGETHER]) for at in range(0, len(spread), _TOGETHER)]
        for index, part in enumerate(parts, 1):
            what, call = (
                f"key frames {index} of {len(parts)}",
                partial(frames_of, self.lab, part, specs, ids),
            )
            self.work(what, (*packs, *part, self._generation), call, self._add_frames)

    @checked
    def answer_frame(self, event: int) -> None:
        """Compute the state of the memories after an event."""
        self.event = event
        ids, specs = self._ids, [self._spec(name) for name in self.packs]

        def deliver(frame: pl.DataFrame) -> None:
            self._frame = arrow(frame)

        key = (event, *self.packs, self._generation)
        self.work(
            "look at an event", key, lambda: frames_of(self.lab, [event], specs, ids), deliver
        )

    @checked
    def answer_event(self, event: int) -> Answer:
        """Return an event, its memories and the policies that decided the outcome."""
        if not 1 <= event <= self._log.height:
            raise UnknownName("event", event, [f"1 to {self._log.height}"])
        entry = next(iter(self.lab.io.store.journal.events(after=event - 1, upto=event)))
        row = self._log.row(by_predicate=pl.col("event") == event, named=True)
        memories = self.lab.memories.filter(pl.col("id").is_in(row["memories"][:8])).select(
            "id", pl.col("text").str.slice(0, MOST_TEXT), "status"
        )
        hash = entry.body.get("pack")
        versions = (
            self.lab.policies.deciders(hash) if isinstance(hash, str) and len(hash) == 64 else {}
        )
        deciders = [
            {
                "slot": slot,
                "number": decider.number,
                "pack": decider.pack,
                "hash": decider.hash[:12],
                "source": decider.source,
            }
            | {"reason": decider.reason}
            for slot in _DECIDES.get(entry.kind, ())
            if (decider := versions.get(slot)) is not None
        ]
        about = {
            "event": event,
            "at": row["at"].isoformat(),
            "count": len(row["memories"]),
            "pack": (hash or "")[:12],
        }
        description = {name: row[name] for name in ("kind", "what", "edges")}
        return {**about, **description, "deciders": deciders, "memories": memories}

    @checked
    def answer_curves(
        self, event: int, chosen: list[int], until: str, params: dict[str, float]
    ) -> None:
        """Compute retention curves and future losses from an event on."""
        with self.hold_trait_notifications():
            self.chosen, self.until, self.params = chosen[:_CURVES], until or self._soon(), params
        event, ids, until = event or self._about["head"], self._ids, self.until
        if not ids:
            return
        spec, settings = self._spec(self.packs[0]), tuple(params.items())
        key = (event, tuple(self.chosen), until, settings, self.packs[0], self._generation)
        chosen = self.chosen
        call = partial(forecasts_from, self.lab, event, chosen, until, params, spec, ids)
        self.work("forecast", key, call, self._forecasted)

    # -- finding out --------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Read the events, the memories to draw and the tunable parameters."""
        journal = self.lab.io.store.journal
        purged = sum(1 for _ in journal.events(kinds=("purge",)))
        if purged != self._generation:  # No cache may contain purged memories.
            self._generation, self._cached_frames, self._frames, self._frame, self._curves = (
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
        memories = self.lab.memories.select(
            "id", pl.col("text").str.slice(0, MOST_TEXT // 5), "kind", "created", "superseded_by"
        )
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
        """Return the date 90 days after the last event, or "" without events."""
        if not self._log.height:
            return ""
        last: datetime = self._log["at"][-1]
        return str((last + timedelta(days=90)).date())

    def _add_frames(self, frame: pl.DataFrame) -> None:
        self._cached_frames.append(frame)
        self._frames = arrow(pl.concat(self._cached_frames).sort("event", "id"))

    def _forecasted(self, result: tuple[Any, list[Any]]) -> None:
        curves, every = result
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
                "sides": [count_forgotten(forecast) for forecast in every],
            }


# -- events of the past, and forecasts from them ----------------------------------------------------------------------

_FRAME: dict[str, Any] = {"event": pl.Int32, "id": pl.Int32} | dict.fromkeys(
    ("status_a", "keep_a", "status_b", "keep_b"), pl.UInt8
)
"""The columns of a frame: for each pack the code of the status and the retention as a byte."""
_MOST_CURVES, _POINTS = 6, 80
"""Curves by default, and points of each, one for about ten pixels."""
_LISTED = 40
"""Forgotten memories in the list, about two screens."""
_FADING = ("half-life", "retention", "promote", "forget", "label")
"""The slots whose parameters affect retention and status."""


def frames_of(
    lab: Lab, events: Sequence[int], specs: Sequence[Pack | None], ids: Sequence[int]
) -> pl.DataFrame:
    """Return the status and retention of memories after each event, under both packs."""
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
            forecast = past.upkeep.forecast(
                then["id"].to_list(), soon, points=2, packs=spec or past.policies.pack
            ).frame
            now = forecast.group_by("memory_id", maintain_order=True).first()
            # The packs that were active have decided the status already.
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
    """Forecast retention under a pack, for selected memories and for all memories."""
    with lab.at(event=event, progress=False) as past:
        pack = spec or past.policies.pack
        packs = [pack, tuned_pack(pack, params)] if params else [pack]
        there = [id for id in ids if id <= past.io.store.state.rows]
        if not there:
            raise InputError("The lab had no memories at this event. Choose a later event.")
        drawn = [id for id in chosen if id in there] or there[
            :: max(1, len(there) // _MOST_CURVES)
        ][:_MOST_CURVES]
        curves = past.upkeep.forecast(drawn, until, points=_POINTS, packs=packs)
        return curves, [
            past.upkeep.forecast(there, until, points=2, packs=candidate) for candidate in packs
        ]


def count_forgotten(forecast: Forecast) -> dict[str, Any]:
    """Return the number of memories that a forecast removes from recall, and the first few."""
    moved = forecast.transitions.filter(pl.col("what") == "status", ~pl.col("to").is_in(RECALLABLE))
    moved = moved.unique("memory_id", keep="first").sort("at", "memory_id")
    texts = dict(forecast.texts)
    first = [
        {
            "id": row["memory_id"],
            "at": str(row["at"].date()),
            "to": row["to"],
            "text": texts[row["memory_id"]][:MOST_TEXT],
        }
        for row in moved.head(_LISTED).iter_rows(named=True)
    ]
    return {"count": moved.height, "of": len(texts), "first": first}


def fading_params(pack: Pack) -> list[dict[str, Any]]:
    """Return the parameters of a pack that affect retention."""
    params = [
        {"name": f"{slot} {param.name}", "value": param.value, "low": param.low, "high": param.high}
        for slot in _FADING
        for param in pack.policies[slot].params.values()
    ]
    reads = {*pack.policies["half-life"].inputs} & {"base-half-days", "base-half-ms"}
    if reads and "half-life" in pack.policies["retention"].inputs:
        params.append(
            {
                "name": "base-half-life",
                "value": pack.number("base-half-life"),
                "low": 1.0,
                "high": 365.0,
            }
        )
    return params


def tuned_pack(pack: Pack, params: dict[str, float]) -> Pack:
    """Return the pack with changed values of retention parameters."""
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
