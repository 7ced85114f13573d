"""Guards, folded from events: what they served, how it was judged, and how they ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from memlab.kernel.journal import Event
from memlab.kernel.state import (
    HASH,
    NUMBER,
    REASON,
    TIME,
    WORD,
    Field,
    Projection,
    list_field,
    mapping_field,
)

if TYPE_CHECKING:
    from memlab.subjects.guard.process import LossProcess

_MAX_RECALLS = 10_000
"""Maximum number of recalls that wait for a first judgement; ``Judged`` stores as many."""


@dataclass
class GuardRecord:
    """One guard.

    ``served`` counts recalls: with results of the active pack, of the guarded one, and of both.
    ``open`` has recalls without a judgement, and ``judged`` those that may get more judgements:
    whose results they showed, the sum of their rewards, and the number of judgements. ``latest`` is
    the recall, whose results it showed, and its reward, of the last observation.
    """

    seq: int
    at: int
    pack: str
    hash: str
    live: str
    reason: str
    options: dict[str, float]
    until: int | None = None
    ended: str = ""
    why: str = ""
    served: list[int] = field(default_factory=lambda: [0, 0, 0])
    open: dict[int, int] = field(default_factory=dict)
    judged: dict[int, list[float]] = field(default_factory=dict)
    decided: bool = False
    stored: list[float] = field(default_factory=list)
    latest: list[float] = field(default_factory=list)

    @property
    def shadow(self) -> bool:
        """Whether recalls only score the guarded pack, and return results of the active pack."""
        return bool(self.options["shadow"])

    @cached_property
    def process(self) -> LossProcess:
        """The confidence sequence of the loss."""
        # The import is here, so that labs without a guard never load the module.
        from memlab.subjects.guard.process import LossProcess

        process = LossProcess(self.options["share"])
        if self.stored:
            process.load(np.array([self.stored]).T)
        return process

    def show(self, decision: int, guarded: int) -> None:
        """Count a recall."""
        self.served[guarded] += 1
        if self.shadow:
            return
        if self.options["zero"]:
            self.judged[decision] = [guarded, 0.0, 0]
            self._close()
        else:
            self.open[decision] = guarded
            if len(self.open) > _MAX_RECALLS:
                del self.open[next(iter(self.open))]

    def judge(self, decision: int, reward: float) -> None:
        """Count a judgement, unless the judged recall was already added to the sequence."""
        if decision in self.open:
            self.judged[decision] = [self.open.pop(decision), 0.0, 0]
        entry = self.judged.get(decision)
        if entry is not None:
            low, high = self.options["low"], self.options["high"]
            entry[1] += min(max((reward - low) / (high - low), 0.0), 1.0)
            entry[2] += 1
            self._close()

    def _close(self) -> None:
        """Add the oldest recalls to the sequence, each after enough later recalls were judged."""
        while len(self.judged) > self.options["wait"]:
            decision = next(iter(self.judged))
            guarded, total, count = self.judged.pop(decision)
            reward = total / count if count else 0.0
            self.latest = [decision, guarded, reward]
            self.process.add(np.array([guarded], dtype=np.int64), np.array([reward]))
            if self.process.exceeds(self.options["tolerance"], self.options["level"])[0]:
                self.decided = True

    def end(self, event: Event) -> None:
        """End the guard, and drop the recalls that still wait for judgements."""
        live = event.body.get("live")
        why = "rolled back" if self.decided else "ended"
        self.ended = why if live is None else "in use" if live == self.hash else "replaced"
        self.why, self.until = event.body.get("reason", ""), event.at
        self.open, self.judged = {}, {}


class Guards(Projection):
    """Packs that serve a share of recalls, and the loss of each."""

    name = "guards"
    kinds = ("challenge", "end-challenge", "recall", "feedback")
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {
        "challenge": {"guard": mapping_field({"*": NUMBER})},
        "recall": {"guarded": NUMBER},
    }
    dumped = list_field(
        mapping_field(
            {
                **dict.fromkeys(("seq", "served", "decided", "stored", "latest"), NUMBER),
                **dict.fromkeys(("at", "until"), TIME),
                **dict.fromkeys(("pack", "ended"), WORD),
                **dict.fromkeys(("hash", "live"), HASH),
                **dict.fromkeys(("reason", "why"), REASON),
                **dict.fromkeys(("options", "open", "judged"), mapping_field({"*": NUMBER})),
            }
        )
    )
    exported = False

    def __init__(self) -> None:
        self.records: list[GuardRecord] = []

    @property
    def running(self) -> GuardRecord | None:
        """The guard that has not ended, or None if every guard ended."""
        last = self.records[-1] if self.records else None
        return last if last is not None and last.until is None else None

    def fold(self, event: Event) -> None:
        """Apply an event: begin or end a guard, or count a recall or judgement."""
        body, guard = event.body, self.running
        # Only recalls since the beginning of a guard have the field, so only they can be judged.
        if event.kind == "challenge":
            if "guard" in body:
                names = body["pack"], body["hash"], body["live"], body["reason"]
                self.records.append(GuardRecord(event.seq, event.at, *names, dict(body["guard"])))
        elif guard is None:
            return
        elif event.kind == "end-challenge":
            if body["pack"] == guard.pack:
                guard.end(event)
        elif event.kind == "recall":
            if (guarded := body.get("guarded")) is not None:
                guard.show(event.seq, guarded)
        elif (decision := body.get("decision")) is not None:
            reward = body["reward"]
            guard.judge(decision, float(body["outcome"] == "success") if reward is None else reward)

    def dump(self) -> Any:
        """Return the guards as a list of dicts for a snapshot."""
        return [
            asdict(record)
            | {"stored": record.process.dump() if "process" in vars(record) else record.stored}
            for record in self.records
        ]

    def load(self, dumped: Any) -> None:
        """Restore the guards from the result of ``dump``."""
        self.records = [GuardRecord(**row) for row in dumped]
