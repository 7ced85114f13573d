"""The operations, each declared once: its parameters in order, what it does, and how many memories it touches at
most."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from memlab.schema import KINDS, OUTCOMES, RELATIONS

__all__ = ["OPERATIONS", "SLOT_OF", "Operation", "Parameter"]

Sort = Literal["text", "word", "share", "days", "ttl", "texts", "id", "ids", "count", "number", "slot", "code"]


@dataclass(frozen=True)
class Parameter:
    """One argument. ``optional`` ones may be left out at the end, or be nil."""

    name: str
    sort: Sort
    optional: bool = False
    words: tuple[str, ...] = ()
    low: float = 0
    high: float = inf

    def __str__(self) -> str:
        return f"[{self.name}]" if self.optional else self.name


@dataclass(frozen=True)
class Operation:
    """One operation. ``does`` says what a person consents to: reads, adds to the memory, or changes how it decides."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...] = ()
    does: Literal["reads", "adds", "decides"] = "reads"

    @property
    def shape(self) -> str:
        """How it is written."""
        return f"({' '.join([self.name, *map(str, self.parameters)])})"

    @property
    def least(self) -> int:
        return sum(not parameter.optional for parameter in self.parameters)


OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation(
            "remember",
            "remember a text",
            (
                Parameter("text", "text"),
                Parameter("type", "word", True, KINDS),
                Parameter("importance", "share", True, high=1),
                Parameter("ttl", "ttl", True),
                Parameter("tags", "texts", True),
            ),
            "adds",
        ),
        Operation(
            "recall",
            "recall what answers a question",
            (Parameter("query", "text"), Parameter("limit", "count", True, low=1, high=10_000)),
        ),
        Operation(
            "associate",
            "join two memories",
            (
                Parameter("from", "id"),
                Parameter("to", "id"),
                Parameter("relation", "word", True, RELATIONS),
                Parameter("weight", "share", True, high=1),
            ),
            "adds",
        ),
        Operation(
            "feedback",
            "say how a memory did",
            (Parameter("id", "id"), Parameter("outcome", "word", False, OUTCOMES)),
            "adds",
        ),
        Operation("consolidate", "let summaries stand for what is old", (), "adds"),
        Operation(
            "decay!",
            "set the days in which what is not recalled falls by half",
            (Parameter("half-life-days", "days", low=1e-6, high=1e9),),
            "decides",
        ),
        Operation("get-policy", "show the policies that decide"),
        Operation(
            "set-policy-fn",
            "put a policy into its slot",
            (Parameter("name", "slot"), Parameter("code", "code")),
            "decides",
        ),
        Operation("adapt-policy", "keep what does better on the log, take back what does worse", (), "decides"),
        Operation("stats", "show what the memory is like as a whole"),
        Operation(
            "trace",
            "show how a memory is joined to others",
            (Parameter("id", "id"), Parameter("depth", "count", True, low=1, high=10)),
        ),
        Operation(
            "activate",
            "spread activation from some memories",
            (
                Parameter("seeds", "ids"),
                Parameter("steps", "count", True, high=100),
                Parameter("decay", "share", True, high=1),
                Parameter("threshold", "number", True),
            ),
        ),
    )
}

SLOT_OF = {"decay": "half-life", "recall": "recall-score", "exploration": "explore", "exploration-policy": "explore"}
"""What the first system of this kind called its three policies."""
