"""How a few memories of a life fade under several packs: what each formula says, hour by hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.clock import DAY, Micros
from memlab.policies import Pack, load_pack
from memlab.simulation import Life, World

__all__ = ["PACKS", "Fading", "fading", "recency", "vividness"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PACKS = ("memlab", "associative", "workbench", "companion")
_LASTING = ("convention", "decision")
_STEPS_A_DAY = 8
_MS_A_DAY = 86_400_000.0


@dataclass(frozen=True)
class Fading:
    """One memory: why it was chosen, the days on which it was recalled, and what is left of it under each pack.

    ``days`` f64[t], ``said`` and ``recalled`` count from the first day of the life; ``left`` f64[t] in 0..1 by pack.
    """

    why: str
    memory: int
    text: str
    kind: str
    said: float
    recalled: Floats
    success: int
    fail: int
    days: Floats
    left: Mapping[str, Floats]


def fading(life: Life, world: World) -> tuple[Fading, ...]:
    """Three memories of the first third of a life: one that helped, one that failed, one that was left alone."""
    begin = life.world.events()[0].at // DAY * DAY
    end = begin + world.days * DAY
    early = life.lab.memories.filter(pl.col("created").dt.epoch("us") < begin + world.days * DAY // 3).with_columns(
        rate=pl.col("success") / (pl.col("success") + pl.col("fail") + 1),
        pause=(pl.lit(end).cast(pl.Datetime("us", "UTC")) - pl.col("accessed")).dt.total_days(),
    )
    used = early.filter(pl.col("access").is_between(4, 12))
    lasting = early.filter(pl.col("kind").is_in(_LASTING), pl.col("access").is_between(1, 4))
    chosen: dict[int, str] = {}
    for why, best in (
        ("it helped", used.sort(["rate", "success", "id"], descending=[True, True, False])),
        ("it failed", used.sort(["rate", "fail", "id"], descending=[False, True, False])),
        ("left alone", lasting.sort(["pause", "id"], descending=[True, False])),
    ):
        memory = next((memory for memory in best["id"].head(3) if memory not in chosen), None)
        if memory is not None:
            chosen[memory] = why
    return tuple(_follow(life, why, memory, begin, end) for memory, why in chosen.items())


def _follow(life: Life, why: str, memory: int, begin: Micros, end: Micros) -> Fading:
    row = life.lab.memories.row(memory - 1, named=True)
    created = int(life.lab.memories["created"].to_physical()[memory - 1])
    shown = life.slates.exposures.filter(pl.col("memory_id") == memory)
    recalled = _moments(shown.join(life.slates.decisions.select("decision", "at"), on="decision"))
    feedback = life.slates.feedback.filter(pl.col("memory_id") == memory)
    times = np.unique(np.concatenate([np.arange(created, end, DAY // _STEPS_A_DAY), recalled, recalled - 1]))
    times = times[times >= created]
    fresh = np.concatenate([[created], recalled])
    idle = (times - fresh[np.maximum(np.searchsorted(fresh, times, side="right") - 1, 0)]) / DAY
    counts = [
        np.searchsorted(_moments(feedback.filter(pl.col("outcome") == outcome)), times, side="right")
        for outcome in ("success", "fail")
    ]
    at_times = [
        {**row, "success": float(success), "fail": float(fail), "idle-days": float(days)}
        for success, fail, days in zip(*counts, idle, strict=True)
    ]
    left = {}
    for name in PACKS:
        pack = load_pack(name)
        formula = vividness if "strength" in pack.policies["recall-score"].inputs else recency
        left[name] = np.array([formula(pack, values) for values in at_times])
    return Fading(
        why,
        memory,
        str(row["text"]),
        str(row["kind"]),
        (created - begin) / DAY,
        (recalled - begin) / DAY,
        int(row["success"]),
        int(row["fail"]),
        (times - begin) / DAY,
        left,
    )


def recency(pack: Pack, memory: Mapping[str, Any]) -> float:
    """0.5 ^ (idle days / half-life) by the pack's half-life, as the feature ``recency`` has it."""
    base = pack.number("base-half-life")
    half = _evaluate(
        pack,
        "half-life",
        memory,
        {
            "base-half-days": base,
            "base-half-ms": base * _MS_A_DAY,
            "recency-ms": memory["idle-days"] * _MS_A_DAY,
            "energy": 1.0,
        },
    )
    return float(0.5 ** (memory["idle-days"] * pack.unit("half-life") / half))


def vividness(pack: Pack, memory: Mapping[str, Any]) -> float:
    """What the pack's recall-score still gives for strength alone, as a share of what it gives a fresh memory."""
    now = _evaluate(pack, "recall-score", memory, {"closeness": 0.0})
    return now / _evaluate(pack, "recall-score", memory, {"closeness": 0.0, "idle-days": 0.0, "strength": 100.0})


def _evaluate(pack: Pack, slot: str, memory: Mapping[str, Any], more: Mapping[str, float]) -> float:
    """A policy of the pack, asked of one memory; ``more`` are inputs that are no column."""
    policy = pack.policies[slot]
    values = {name.replace("_", "-"): value for name, value in memory.items()} | dict(more)
    value = policy.row({name: values[name] for name in policy.inputs})
    assert isinstance(value, float | int)
    return float(value)


def _moments(frame: pl.LazyFrame) -> Ints:
    return np.sort(frame.select(pl.col("at").to_physical()).collect()["at"].to_numpy()).astype(np.int64)
