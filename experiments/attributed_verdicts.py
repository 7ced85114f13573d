"""Compare verdicts from attributed rewards with verdicts from true rewards.

    python experiments/attributed_verdicts.py LOCOMO.json --runs 20 [--corrections FILE]

A run is a lab with the conversations, a challenge, and questions drawn by a seed. A third of the answers are the gold
answers, a third are paraphrased (see ``attribution.py``), and a third are "I don't know".
``lab.agents.credits.answer`` reads them.

The true reward of a result is 1 if it is evidence of an answered question, else 0. ``memlab.verdict`` judges both
logs; missing feedback counts as not useful. Each attributed verdict names the better side of the true rewards, the
other side, or neither; all three are counted. The column *corrected* is for the same log after a tenth of its
attributed rewards were judged. Its last figure is how often the planned interval covers the difference of the true
rewards.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
from attribution import KINDS, UNKNOWN, correct_evidence, paraphrase
from challenges import PACKS

import memlab
from memlab.io.ingest import LabelledConversation, conversation, read_locomo
from memlab.science.evaluation import Verdict


@dataclass(frozen=True)
class Ran:
    """One run: differences and verdicts by true, attributed and corrected rewards."""

    true: Verdict
    read: Verdict
    right: Verdict


def judge_share(
    log: memlab.Slates, labels: pl.DataFrame, dice: np.random.Generator, share: float
) -> memlab.Slates:
    """Return the log after a user judged ``share`` of the attributed rewards."""
    feedback = log.feedback.collect().join(
        labels.select("decision", "memory_id", true="reward"),
        on=["decision", "memory_id"],
        how="left",
    )
    by_hand = pl.Series(dice.random(feedback.height) < share)
    feedback = feedback.with_columns(
        reward=pl.when(by_hand).then("true").otherwise("reward"),
        source=pl.when(by_hand).then(pl.lit("user")).otherwise("source"),
    )
    return memlab.Slates(log.decisions, log.candidates, log.exposures, feedback.drop("true").lazy())


def simulate_run(task: tuple[list[LabelledConversation], str, int, int]) -> Ran:
    """Simulate one run."""
    talks, name, seed, recalls = task
    dice = np.random.default_rng((13, seed))
    with memlab.open(seed=seed) as lab:
        for talk in talks:
            conversation(lab, talk.conversation, project=talk.conversation.name)
        texts = {(p, r): t for p, r, t in lab.memories.select("project", "ref", "text").iter_rows()}
        ids = {(p, r): i for p, r, i in lab.memories.select("project", "ref", "id").iter_rows()}
        lab.challenge(PACKS[name])
        questions = [
            (t.conversation, q)
            for t in talks
            for q in t.questions
            if q.category != 5 and q.evidence
        ]
        decided, true = [], []
        for position in dice.integers(len(questions), size=recalls).tolist():
            talk, question = questions[position]
            hits = lab.recall(question.text, project=talk.name, limit=10, at=talk.end, explore=True)
            kind = KINDS[int(dice.integers(3))]
            answer = question.answer
            if kind == "paraphrased":
                result_texts = [hit.text for hit in hits] + [
                    texts.get((talk.name, ref), "") for ref in question.evidence
                ]
                with lab.io.store.reading() as state:
                    answer = paraphrase(answer, result_texts, state.words.stems)
            lab.agents.credits.answer(UNKNOWN if kind == "unanswered" else answer, hits)
            gold = (
                {ids.get((talk.name, ref)) for ref in question.evidence}
                if kind != "unanswered"
                else set()
            )
            decided += [hits.decision] * len(hits)
            true += [(hit.id, float(hit.id in gold)) for hit in hits]
        log = lab.slates()
        labels = pl.DataFrame(
            {
                "decision": decided,
                "memory_id": [slates_log for slates_log, _ in true],
                "reward": [worth for _, worth in true],
            }
        ).with_columns(at=pl.lit(log.decisions.select(pl.col("at").max()).collect().item()))
        truth = memlab.Slates(log.decisions, log.candidates, log.exposures, labels.lazy())
        logs = truth, log, judge_share(log, labels, dice, 0.1)
        return Ran(*(memlab.verdict(slates_log, missing="zero").verdicts[0] for slates_log in logs))


def format_counts(runs: Sequence[Ran], which: str) -> str:
    """Return how many verdicts name the better side, neither, and the worse side."""
    signs = [(np.sign(outcome.true.difference.value), getattr(outcome, which)) for outcome in runs]
    none = sum(read.better is None for _, read in signs)
    same = sum(
        read.better is not None and np.sign(read.difference.value) == side for side, read in signs
    )
    return f"{same:>6}{none:>6}{len(runs) - same - none:>6}"


def covers_truth(outcome: Ran) -> bool:
    """Return whether the planned corrected interval covers the true estimate."""
    planned, true = outcome.right.planned, outcome.true.planned
    return planned is not None and true is not None and planned.low <= true.value <= planned.high


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("locomo", type=Path)
    parser.add_argument("--corrections", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--recalls", type=int, default=600)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    began = time.monotonic()
    talks = correct_evidence(list(read_locomo(arguments.locomo)), arguments.corrections)
    print(f"{arguments.runs} runs of {arguments.recalls} recalls a challenger")
    print(
        f"{'':<14}{'true':>8}{'named':>6} | {'read':>8}{'same':>6}{'none':>6}{'other':>6} | {'corrected':>10}"
        f"{'same':>6}{'none':>6}{'other':>6}{'held':>6}"
    )
    with get_context("spawn").Pool(arguments.processes) as pool:
        for name in PACKS:
            runs = pool.map(
                simulate_run,
                [(talks, name, seed, arguments.recalls) for seed in range(arguments.runs)],
                chunksize=1,
            )
            means = np.mean(
                [[verdict.difference.value for verdict in (r.true, r.read, r.right)] for r in runs],
                axis=0,
            )
            line = f"{name:<14}{means[0]:>+8.3f}{sum(r.true.better is not None for r in runs):>6} | {means[1]:>+8.3f}"
            line += (
                format_counts(runs, "read")
                + f" | {means[2]:>+10.3f}"
                + format_counts(runs, "right")
            )
            print(f"{line}{sum(covers_truth(r) for r in runs):>6}", flush=True)
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
