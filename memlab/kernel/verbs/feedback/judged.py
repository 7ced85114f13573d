"""Which recalls were judged, and what was said to have helped in each: what shared success is read from."""

from __future__ import annotations

from typing import Any, ClassVar

from memlab.kernel.journal import Event
from memlab.kernel.state import MEMORY_ID, NUMBER, Field, Projection, listed, mapping

__all__ = ["Judged"]

_MAX_DECISIONS = 10_000
"""Decisions that are remembered: shared success is reported of the same recall, soon after it."""


class Judged(Projection):
    """The memories marked a success in each of the latest decisions, and the decisions that a verifier has judged."""

    name: ClassVar[str] = "judged"
    kinds: ClassVar[tuple[str, ...]] = ("feedback", "verify")
    dumped: ClassVar[Field] = mapping({"successes": listed(NUMBER, MEMORY_ID), "verified": NUMBER})
    exported: ClassVar[bool] = False

    def __init__(self) -> None:
        self._successes: dict[int, list[int]] = {}
        self._verified: dict[int, None] = {}

    def successes(self, decision: int) -> tuple[int, ...]:
        """The ids that feedback marked a success of this decision, in the order in which it came."""
        return tuple(self._successes.get(decision, ()))

    def verified(self, decision: int) -> bool:
        """Whether a verifier has judged this decision."""
        return decision in self._verified

    def fold(self, event: Event) -> None:
        body = event.body
        decision = body.get("decision")
        if decision is None:
            return
        if event.kind == "verify":
            self._verified[decision] = None
            _trim(self._verified)
        elif body.get("outcome") == "success":
            known = self._successes.setdefault(decision, [])
            if body["memory"] not in known:
                known.append(body["memory"])
            _trim(self._successes)

    def dump(self) -> Any:
        return {"successes": list(self._successes.items()), "verified": list(self._verified)}

    def load(self, dumped: Any) -> None:
        self._successes = {decision: list(ids) for decision, ids in dumped["successes"]}
        self._verified = dict.fromkeys(dumped["verified"])


def _trim(kept: dict[int, Any]) -> None:
    if len(kept) > _MAX_DECISIONS:
        del kept[next(iter(kept))]
