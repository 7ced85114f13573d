"""Measure which memories pass similarity thresholds of .3 and .4.

    python experiments/nearness.py locomo-dev5.json

The features ``closeness`` and ``nearness`` are compared. Each question of LoCoMo with evidence (up to 150 per
conversation) is recalled from ten turns: the first of its evidence and nine others of its conversation. It is also
recalled from ten turns of another conversation, which do not answer it.

Printed are the shares that pass a threshold: evidence, turns of the other conversation, and questions for which any of
these ten passes. Intervals are the central 95% of a bootstrap over questions.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import memlab
from memlab.io.ingest import Turn, read_locomo
from memlab.kernel.embedding import Embedder, load_embedder
from memlab.kernel.policies import Pack, load_pack

PACK = """(pack all) (setting probe-rate 0)
(defpolicy recall-score [closeness nearness] (+ closeness nearness))"""
MOST = 150
BESIDE = 9
FEATURES = ("closeness", "nearness")


def measure_features(
    question: str, turns: list[Turn], pack: Pack, embedder: Embedder
) -> NDArray[np.float64]:
    """Return f64[turns, features] of a lab that holds only these turns."""
    with memlab.open(pack=pack, embedder=embedder) as lab:
        lab.remember(
            [{"text": turn.content, "speaker": turn.speaker} for turn in turns], linking="off"
        )
        slate = lab.recall(question, limit=len(turns), log=False).slate
    order = np.argsort(slate.ids)
    return np.stack([slate.numbers[name][order] for name in FEATURES], axis=1)


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("locomo", type=Path)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    pack, embedder, talks = load_pack(PACK), load_embedder(None), read_locomo(arguments.locomo)
    evidence, others = [], []
    for number, talk in enumerate(talks):
        turns = {turn.ref: turn for turn in talk.conversation.turns if turn.content.strip()}
        queries = [
            entry
            for entry in talk.questions
            if entry.evidence and all(ref in turns for ref in entry.evidence)
        ]
        for question in chance.sample(queries, min(MOST, len(queries))):
            other_turns = chance.sample(
                [turn for ref, turn in turns.items() if ref not in question.evidence], BESIDE
            )
            own = [turns[question.evidence[0]], *other_turns]
            evidence.append(measure_features(question.text, own, pack, embedder)[0])
            other = talks[
                (number + 1 + chance.randrange(len(talks) - 1)) % len(talks)
            ].conversation.turns
            strange = chance.sample([turn for turn in other if turn.content.strip()], BESIDE + 1)
            others.append(measure_features(question.text, strange, pack, embedder))
    evidence_values, false = np.array(evidence), np.array(others)
    draws = np.random.default_rng(arguments.seed).integers(
        len(evidence_values), size=(1000, len(evidence_values))
    )
    print(f"{len(evidence_values)} questions")
    for threshold in (0.3, 0.4):
        for column, name in enumerate(FEATURES):
            right, wrong = evidence_values[:, column] >= threshold, false[..., column] >= threshold
            low, high = np.quantile(right[draws].mean(axis=1), [0.025, 0.975])
            print(
                f"{name:9s} >= {threshold}: evidence {right.mean():.3f} [{low:.3f}, {high:.3f}], "
                f"turns of another conversation {wrong.mean():.3f}, any of ten {wrong.any(axis=1).mean():.3f}"
            )


if __name__ == "__main__":
    main()
