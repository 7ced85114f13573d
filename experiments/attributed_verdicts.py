"""Does a verdict from attributed rewards agree with the one from true rewards? Real labs, one command.

    python experiments/attributed_verdicts.py LOCOMO.json --runs 20 [--corrections FILE]

A run is a lab that holds the conversations, a challenge, and questions drawn by the seed. Each recall is answered: a
third of the answers are the gold ones, a third are paraphrased (``attribution.py`` says how), a third are "I don't
know". ``lab.attribute`` reads them. The true reward of what was shown is 1 if it is evidence of an answered question,
else 0. Of both logs ``memlab.verdict`` is asked, with silence as no use. What counts: how often the attributed verdict
names the side that the true rewards of the same log speak for, names none, or names the other.
"""

from __future__ import annotations

import argparse
import sys
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
from attribution import KINDS, UNKNOWN, corrected, paraphrased
from challenges import PACKS

import memlab
from memlab.ingest import LabelledConversation, conversation, read_locomo


def run(task: tuple[list[LabelledConversation], str, int, int]) -> tuple[float, float, str | None, str | None, int]:
    """The two differences, the two verdicts by name, and how many rewards were attributed."""
    talks, name, seed, recalls = task
    dice = np.random.default_rng((13, seed))
    with memlab.open(seed=seed) as lab:
        for talk in talks:
            conversation(lab, talk.conversation, project=talk.conversation.name)
        texts = {(p, r): t for p, r, t in lab.memories.select("project", "ref", "text").iter_rows()}
        ids = {(p, r): i for p, r, i in lab.memories.select("project", "ref", "id").iter_rows()}
        lab.challenge(PACKS[name])
        asked = [(t.conversation, q) for t in talks for q in t.questions if q.category != 5 and q.evidence]
        decided, true = [], []
        for place in dice.integers(len(asked), size=recalls).tolist():
            talk, question = asked[place]
            hits = lab.recall(question.text, project=talk.name, limit=10, at=talk.end)
            kind = KINDS[int(dice.integers(3))]
            answer = question.answer
            if kind == "paraphrased":
                held = [hit.text for hit in hits] + [texts.get((talk.name, ref), "") for ref in question.evidence]
                with lab.store.reading() as state:
                    answer = paraphrased(answer, held, state.words.stems)
            lab.attribute(UNKNOWN if kind == "unanswered" else answer, hits)
            gold = {ids.get((talk.name, ref)) for ref in question.evidence} if kind != "unanswered" else set()
            decided += [hits.decision] * len(hits)
            true += [(hit.id, float(hit.id in gold)) for hit in hits]
        log = lab.slates()
        known = pl.DataFrame(
            {"decision": decided, "memory_id": [one for one, _ in true], "reward": [worth for _, worth in true]}
        ).with_columns(at=pl.lit(log.decisions.select(pl.col("at").max()).collect().item()))
        truth = memlab.Slates(log.decisions, log.candidates, log.exposures, known.lazy())
        read, given = (memlab.verdict(one, missing="zero").verdicts[0] for one in (log, truth))
        return read.difference.value, given.difference.value, read.better, given.better, log.feedback.collect().height


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("locomo", type=Path)
    parser.add_argument("--corrections", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--recalls", type=int, default=600)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    began = time.monotonic()
    talks = corrected(list(read_locomo(given.locomo)), given.corrections)
    print(f"{given.runs} runs of {given.recalls} recalls a challenger")
    print(f"{'challenger':<14}{'true':>8}{'read':>8}{'same':>6}{'none':>6}{'other':>7}{'both none':>11}{'rewards':>9}")
    with get_context("spawn").Pool(given.processes) as pool:
        for name in PACKS:
            found = pool.map(run, [(talks, name, seed, given.recalls) for seed in range(given.runs)], chunksize=1)
            sides = [(read, np.sign(true), by_read, by_true) for read, true, by_read, by_true, _ in found]
            same = sum(by_read is not None and np.sign(read) == side for read, side, by_read, _ in sides)
            none = sum(by_read is None for _, _, by_read, _ in sides)
            both = sum(by_read is None and by_true is None for _, _, by_read, by_true in sides)
            means = np.mean([one[:2] for one in found], axis=0)
            print(
                f"{name:<14}{means[1]:>+8.3f}{means[0]:>+8.3f}{same:>6}{none:>6}{len(found) - same - none:>7}{both:>11}"
                f"{np.mean([one[4] for one in found]):>9.0f}",
                flush=True,
            )
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
