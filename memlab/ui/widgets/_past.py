"""A lab at events of its past, and what time will do from there, as the life player shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.clock import from_micros
from memlab.kernel.language import with_setting
from memlab.kernel.policies import Pack, load_pack
from memlab.kernel.schema import RECALLABLE, STATUSES
from memlab.subjects.lab import Lab
from memlab.subjects.retention.curves import Forecast

__all__ = ["fading_params", "forecasts_from", "frames_of", "let_go", "tuned_pack"]

_FRAME: dict[str, Any] = {"event": pl.Int32, "id": pl.Int32} | dict.fromkeys(
    ("status_a", "keep_a", "status_b", "keep_b"), pl.UInt8
)
_MOST_CURVES, _POINTS = 6, 80
_LISTED = 40
_FADING = ("half-life", "retention", "promote", "forget", "label")


def frames_of(lab: Lab, events: Sequence[int], specs: Sequence[Pack | None], ids: Sequence[int]) -> pl.DataFrame:
    """Status and retention of the memories that there were after each of these events, under both packs."""
    return pl.concat([_frame_after(lab, event, specs, ids) for event in events])


def _frame_after(lab: Lab, event: int, specs: Sequence[Pack | None], ids: Sequence[int]) -> pl.DataFrame:
    with lab.at(event=event, progress=False) as past:
        then = past.memories.select("id", "status").filter(pl.col("id").is_in(ids))
        if not then.height:
            return pl.DataFrame(schema=_FRAME)
        sides, soon = [], from_micros(past.io.store.clock() + 1_000_000)
        for side, spec in zip("ab", specs, strict=True):
            found = past.upkeep.forecast(then["id"].to_list(), soon, points=2, packs=spec or past.policies.pack).frame
            now = found.group_by("memory_id", maintain_order=True).first()
            status = then["status"] if spec is None else now["status"]  # the pack that lived has already decided
            sides += [
                status.cast(pl.String).cast(pl.Enum(STATUSES)).to_physical().cast(pl.UInt8).alias(f"status_{side}"),
                (now["retention"].fill_null(1.0).clip(0, 1) * 255).round().cast(pl.UInt8).alias(f"keep_{side}"),
            ]
    return then.select(pl.lit(event, pl.Int32).alias("event"), pl.col("id").cast(pl.Int32)).with_columns(sides)


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
        known = [id for id in chosen if id in there] or there[:: max(1, len(there) // _MOST_CURVES)][:_MOST_CURVES]
        curves = past.upkeep.forecast(known, until, points=_POINTS, packs=packs)
        return curves, [past.upkeep.forecast(there, until, points=2, packs=one) for one in packs]


def let_go(found: Forecast) -> dict[str, Any]:
    """What leaves recall until a forecast ends: how many, and the first of them."""
    moved = found.transitions.filter(pl.col("what") == "status", ~pl.col("to").is_in(RECALLABLE))
    moved = moved.unique("memory_id", keep="first").sort("at", "memory_id")
    texts = dict(found.texts)
    first = [
        {"id": row["memory_id"], "at": str(row["at"].date()), "to": row["to"], "text": texts[row["memory_id"]]}
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
        found.append({"name": "base-half-life", "value": pack.number("base-half-life"), "low": 1.0, "high": 365.0})
    return found


def tuned_pack(pack: Pack, params: dict[str, float]) -> Pack:
    """The pack with other parameters of how memories fade."""
    base = params.get("base-half-life")
    tuned = pack if base is None else load_pack(with_setting(pack.sources[0], "base-half-life", base))
    for slot in _FADING:
        own = {name.removeprefix(f"{slot} "): value for name, value in params.items() if name.startswith(f"{slot} ")}
        policy = pack.policies[slot].with_params(own) if own else pack.policies[slot]
        tuned = tuned.with_policy(slot, policy)
    return tuned
