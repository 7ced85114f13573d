"""What the demo saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memlab.demo._quarter import Quarter
    from memlab.evaluation import BenchResult
    from memlab.ingest import LabelledConversation
    from memlab.recall import Hit, Hits, ScoreExplanation

__all__ = ["DemoResult", "Story"]


@dataclass(frozen=True)
class Story:
    """Every step of the demo, as objects of the public API; ``quarter`` is its second half."""

    labelled: LabelledConversation
    memories: int
    edges: int
    ingest_seconds: float
    before: Hits
    explanations: tuple[ScoreExplanation, ...]
    helped: Hit
    stale: Hit
    slot: str
    old_source: str
    new_source: str
    after: Hits
    restored: Hits
    bench: BenchResult
    embedder: str
    quarter: Quarter
    seconds: float


@dataclass(frozen=True)
class DemoResult:
    """The pages that were written and the figures they show. ``before`` and ``after`` are refs of turns, best first."""

    output: Path
    report: Path
    seconds: float
    memories: int
    edges: int
    question: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    bench: BenchResult
    quarter: Quarter
    hashes: Mapping[str, str]

    def to_dict(self) -> dict[str, object]:
        return {
            "output": str(self.output),
            "report": str(self.report),
            "seconds": round(self.seconds, 2),
            "memories": self.memories,
            "edges": self.edges,
            "question": self.question,
            "before": list(self.before),
            "after": list(self.after),
            "hashes": dict(self.hashes),
            "bench": self.bench.to_dict(),
            "quarter": self.quarter.to_dict(),
        }

    def __repr__(self) -> str:
        told = f"{self.memories} memories, {self.quarter.recalls} simulated recalls"
        return f"<DemoResult {self.output}: {told}, {self.seconds:.1f} s>"
