"""The slots: every decision that a pack makes, with what it may read and what it must return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from memlab.errors import UnknownName
from memlab.language import Input, Signature
from memlab.policies._features import FEATURES
from memlab.schema import RELATIONS

__all__ = ["SLOTS", "Slot", "slot_named"]


@dataclass(frozen=True)
class Slot:
    """One decision. ``adapter`` maps the unit in which an older spelling returns to ours, by one of its inputs."""

    name: str
    doc: str
    signature: Signature
    adapters: tuple[Adapter, ...] = field(default=())


@dataclass(frozen=True)
class Adapter:
    """A policy that reads ``input`` returns ``per_unit`` for one of our unit (the original decay: ms, not days)."""

    input: str
    per_unit: float


def _inputs(*extra: Input, stages: tuple[str, ...], without: tuple[str, ...] = ()) -> dict[str, Input]:
    declared = {
        feature.name: Input(feature.name, feature.type, feature.formula, feature.words)
        for feature in FEATURES.values()
        if feature.stage in stages and feature.name not in without
    }
    return declared | {item.name: item for item in extra}


def _slot(
    name: str,
    doc: str,
    inputs: dict[str, Input],
    returns: Literal["num", "bool", "str"],
    *,
    aggregates: bool = False,
    lists: dict[str, str] | None = None,
    adapters: tuple[Adapter, ...] = (),
) -> Slot:
    return Slot(name, doc, Signature(name, inputs, returns, aggregates=aggregates, lists=lists or {}), adapters)


_ALL = ("memory", "query", "spread")

SLOTS: dict[str, Slot] = {
    slot.name: slot
    for slot in (
        _slot(
            "eligible",
            "Whether a candidate takes part: thresholds, branch, visibility. Asked before spreading of what the "
            "question found (hops 0), and after it of what spreading reached (hops > 0).",
            _inputs(Input("hops", "num", "0 for what the question found"), stages=("memory", "query")),
            "bool",
        ),
        _slot(
            "seed-score",
            "The score of a candidate before spreading; the best `seeds` of them spread.",
            _inputs(stages=("memory", "query")),
            "num",
            aggregates=True,
        ),
        _slot(
            "spread",
            "What passes over one edge, from the memory that is active to its neighbour.",
            {
                item.name: item
                for item in (
                    Input("activation", "num", "activation of the memory that is left"),
                    Input("weight", "num", "weight of the edge, 0-1"),
                    Input("relation", "str", "what the edge means", RELATIONS),
                    Input("depth", "num", "edges from the seed, this one included; 1 at first"),
                    Input("damping", "num", "the setting damping"),
                    Input("outgoing", "bool", "whether the edge is crossed from its source to its target"),
                )
            },
            "num",
        ),
        _slot("recall-score", "The final score of a candidate.", _inputs(stages=_ALL), "num", aggregates=True),
        _slot(
            "explore",
            "The weight with which a candidate below the top is shown as a probe.",
            _inputs(
                Input("limit", "num", "how many the caller asked for"),
                Input("tail-n", "num", "how many candidates are below the top"),
                stages=_ALL,
            ),
            "num",
            aggregates=True,
            lists={
                "acts": "activation",
                "recs": "recency",
                "imps": "importance",
                "accs": "access",
                "succs": "success",
                "fails": "fail",
            },
        ),
        _slot(
            "half-life",
            "Days in which a memory's recency falls by half; what is never recalled again.",
            _inputs(
                Input("base-half-days", "num", "the setting base-half-life, in days"),
                Input("base-half-ms", "num", "the setting base-half-life, in milliseconds"),
                Input("recency-ms", "num", "time since it was last recalled, in milliseconds"),
                Input("energy", "num", "1: a memory that has just been used"),
                stages=("memory",),
                without=("recency",),  # which it decides
            ),
            "num",
            adapters=(Adapter("base-half-ms", 86_400_000.0),),
        ),
    )
}


def slot_named(name: str) -> Slot:
    """The slot of this name, or an error with the nearest one."""
    try:
        return SLOTS[name]
    except KeyError:
        raise UnknownName("policy slot", name, SLOTS) from None
