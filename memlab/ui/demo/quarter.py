"""The second half of the full demo: a simulated quarter with a log, judged offline and held against the truth."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import ClassVar

import polars as pl

from memlab.kernel.base.progress import bar
from memlab.kernel.policies import Pack, load_pack, pack_names
from memlab.kernel.slates import Slates
from memlab.science.evaluation import Evaluation, evaluate
from memlab.science.simulation import WORLDS, World, live

__all__ = ["HORIZON", "LOGGING", "Agreement", "Quarter", "agreement", "live_quarter"]

LOGGING = """(pack probing "The default pack, with five probes in every recall." :inherits memlab)
(setting limit 5)
(setting probe-rate 1) (setting probes 5) (setting probe-depth 60) (setting probe-floor 0.5)
"""
"""What is live in the quarter. It differs from the default pack in how much it shows and explores, not in its order.

Of eleven designs that were tried on this world (one to six probes from 25 to 95 ranks), one under which all packs but
`factgraph` pass their gates; the page says so.
"""

HORIZON = "3d"
_OURS = "memlab"


@dataclass(frozen=True)
class Agreement:
    """How the offline values stand to the truth: pairs of policies in the true order, intervals that hold it."""

    pairs: int
    ordered: int
    intervals: int
    holding: int


@dataclass(frozen=True)
class Quarter:
    """What was lived, what an evaluation made of the log alone, and what was true."""

    logging: ClassVar[str] = LOGGING
    horizon: ClassVar[str] = HORIZON

    world: World
    pack: Pack
    memories: int
    recalls: int
    shown: int
    probes: int
    answers: int
    evaluation: Evaluation
    truth: Mapping[str, float]
    agreement: Agreement
    digest: str
    seconds: float

    def to_dict(self) -> dict[str, object]:
        return {
            "world": self.world.name,
            "seed": self.world.seed,
            "days": self.world.days,
            "memories": self.memories,
            "recalls": self.recalls,
            "shown": self.shown,
            "probes": self.probes,
            "feedback": self.answers,
            "policies": [
                row | {"truth": self.truth[row["policy"]]}
                for row in self.evaluation.frame.to_dicts()
            ],
            "pairs": self.agreement.pairs,
            "pairs_in_true_order": self.agreement.ordered,
            "intervals": self.agreement.intervals,
            "intervals_with_truth": self.agreement.holding,
            "seconds": round(self.seconds, 2),
        }


def live_quarter(
    *, world: World | None = None, report: Path | None = None, progress: bool = False
) -> Quarter:
    """Live the world (the bundled quarter unless given), evaluate every pack on its log, and ask for the truth.

    ``report`` is where the evaluation's own page goes; ``progress`` is shown on stderr.
    """
    start = perf_counter()
    world = replace(WORLDS["differs"] if world is None else world, packs=((0, LOGGING),))
    ours = load_pack(LOGGING)
    # the plus packs rank as the default does: beside it their lines would hide one another
    designs = [name for name in pack_names() if not name.endswith("-plus")]
    packs: dict[str, str | Pack] = {name: ours if name == _OURS else name for name in designs}
    with live(world, progress=progress) as life:
        evaluation = evaluate(life.slates, packs, horizon=HORIZON, missing="censor")
        truth = {}
        with bar(
            progress, len(packs), unit="pack", desc="asking the simulator for the truth"
        ) as step:
            for row in evaluation.rows:
                truth[row.policy] = life.truth(packs[row.policy])
                step(1)
        if report is not None:
            evaluation.report(report)
        shown, probes = (
            life.slates.exposures.select(pl.len(), pl.col("probe").sum().alias("probes"))
            .collect()
            .row(0)
        )
        memories, answers = len(life.lab), life.slates.feedback.select(pl.len()).collect().item()
        digest = _digest(life.slates)
    return Quarter(
        world,
        ours,
        memories,
        len(life.questions),
        shown,
        probes,
        answers,
        evaluation,
        truth,
        agreement(evaluation, truth),
        digest,
        perf_counter() - start,
    )


def agreement(evaluation: Evaluation, truth: Mapping[str, float]) -> Agreement:
    """Over the policies that have a value."""
    valued = [(row.value, truth[row.policy]) for row in evaluation.rows if row.value is not None]
    pairs = [(a[0].value - b[0].value, a[1] - b[1]) for a, b in combinations(valued, 2)]
    holding = sum(value.low <= true <= value.high for value, true in valued)
    return Agreement(
        len(pairs), sum(found * true > 0 for found, true in pairs), len(valued), holding
    )


def _digest(slates: Slates) -> str:
    """A sha256 of what was shown and of the feedback."""
    digest = hashlib.sha256()
    for frame, order in (
        (slates.exposures, ["decision", "position"]),
        (slates.feedback, ["at", "decision"]),
    ):
        digest.update(frame.collect().sort([*order, "memory_id"]).write_csv().encode())
    return digest.hexdigest()
