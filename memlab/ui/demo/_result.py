"""What the demo shows, as objects of the public API."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memlab.io.ingest import LabelledConversation
    from memlab.kernel.recall import Hit, Hits, ScoreExplanation
    from memlab.science.bench import BenchResult
    from memlab.ui.demo.quarter import Quarter

__all__ = ["CONVERSATION", "QUESTION", "SLOT", "SOURCE", "DemoResult"]

CONVERSATION = Path(__file__).parent / "conversation.json"
"""171 turns in LoCoMo's format, with 39 questions and their evidence; written for memlab."""

QUESTION = "Should I offer Noor a coffee in the morning?"
SLOT = "recall-score"
SOURCE = """(fn [similarity lexical age-days]
  (+ (min-max similarity)
     (min-max lexical)
     (* 0.6 (pow 0.5 (/ age-days 30)))))"""


@dataclass(frozen=True)
class DemoResult:
    """The pages that were written and what they show.

    ``before`` and ``after`` are the refs of the turns that were recalled under either policy, best first. ``report``
    and ``quarter`` are None unless the demo was a full one.
    """

    output: Path
    report: Path | None
    seconds: float
    labelled: LabelledConversation
    memories: int
    edges: int
    ingest_seconds: float
    hits: Hits
    explanations: tuple[ScoreExplanation, ...]
    helped: Hit
    stale: Hit
    old_source: str
    hits_after: Hits
    restored: Hits
    bench: BenchResult
    embedder: str
    quarter: Quarter | None

    @property
    def before(self) -> tuple[str, ...]:
        return tuple(hit.ref or "" for hit in self.hits)

    @property
    def after(self) -> tuple[str, ...]:
        return tuple(hit.ref or "" for hit in self.hits_after)

    @property
    def hashes(self) -> Mapping[str, str]:
        """Conversation, embedder, and each policy and pack that took part, by hash."""
        found = {
            "conversation": hashlib.sha256(CONVERSATION.read_bytes()).hexdigest(),
            "embedder": self.embedder,
            f"policy {SLOT}, before": self.hits.pack.policies[SLOT].hash,
            f"policy {SLOT}, after": self.hits_after.pack.policies[SLOT].hash,
            "pack memlab, after": self.hits_after.pack.hash,
        }
        found |= {f"pack {system.name}": system.hash for system in self.bench.systems}
        if self.quarter is not None:
            found |= {
                "pack that logged the quarter": self.quarter.pack.hash,
                "log of the quarter": self.quarter.digest,
            }
        return found

    def to_dict(self) -> dict[str, object]:
        """As JSON takes it; ``report`` and ``quarter`` only of a full demo."""
        values: dict[str, object] = {
            "output": str(self.output),
            "seconds": round(self.seconds, 2),
            "memories": self.memories,
            "edges": self.edges,
            "question": QUESTION,
            "before": list(self.before),
            "after": list(self.after),
            "hashes": dict(self.hashes),
            "bench": self.bench.to_dict(),
        }
        if self.quarter is not None:
            values |= {"report": str(self.report), "quarter": self.quarter.to_dict()}
        return values

    def __repr__(self) -> str:
        recalls = "" if self.quarter is None else f", {self.quarter.recalls} simulated recalls"
        return f"<DemoResult {self.output}: {self.memories} memories{recalls}, {self.seconds:.1f} s>"
