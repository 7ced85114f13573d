"""What does a logged recall cost, beside another checkout, and is it the same recall to the last byte?

    git worktree add --detach ../before 0366433
    python experiments/recall_cost.py ../before                  # processor time, both measured in turns
    python experiments/recall_cost.py ../before --same           # 200 recalls of each shipped pack, compared

Each lab has projects of 600 invented memories on a disk, drawn by a seed, and is asked within one project. Time is that
of the processor, of the whole process with the threads that libraries start unasked; the two take turns, and each line
is a median over ``--runs``. ``remember`` and ``remember_many`` are those of memories one by one and of 2,000 at once,
per memory. ``--same`` compares, of every recall, what was shown, the scores, and the bytes of the slate, which hold the
whole pool with all features, its probes and fingerprints.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from speed import rows, sentence

PACKS = ("memlab", "workbench", "companion", "associative", "factgraph", "actr", "cascade", "fsrs")
FILES = ("parser.py", "cache/index.rs", "docs/guide.md")
TAGS = ("release", "ci", "design", "incident")
KINDS = ("turn", "decision", "preference", "fact")
QUESTIONS = ("What did Ana say about {}?", "{} on 5 November #ci", "Who changed parser.py, {}", "{} last week", "{}")


def projects(dice: random.Random, count: int) -> list[list[dict[str, Any]]]:
    """Rows of ``count`` projects of 600 memories."""
    found = []
    for number in range(count):
        given: list[dict[str, Any]] = rows(600, dice)
        for row in given:
            row["project"] = f"p{number}"
        found.append(given)
    return found


def measured(recalls: int) -> dict[str, float]:
    """Milliseconds of processor time, each per call or per memory."""
    import memlab

    dice = random.Random(7)
    with tempfile.TemporaryDirectory() as folder, memlab.open(Path(folder) / "lab", pack="memlab") as lab:
        for given in projects(dice, 4):
            lab.remember_many(given, chain=True)
        questions = [sentence(dice, 8) for _ in range(recalls + 20)]
        for question in questions[:20]:
            lab.recall(question, project="p1")

        def ask(log: bool) -> Callable[[], None]:
            return lambda: [lab.recall(question, project="p1", log=log) for question in questions[20:]] and None

        def one_by_one() -> None:
            for text in questions[20:]:
                lab.remember(text, project="p2")

        batch = rows(2000, dice)
        return {
            "recall, logged": _spent(ask(True)) / recalls,
            "recall, not logged": _spent(ask(False)) / recalls,
            "remember": _spent(one_by_one) / recalls,
            "remember_many": _spent(lambda: lab.remember_many(batch, chain=True) and None) / len(batch),
        }


def _spent(call: Callable[[], None]) -> float:
    began = time.process_time()
    call()
    return 1000 * (time.process_time() - began)


def digests(count: int) -> dict[str, str]:
    """A digest of ``count`` recalls of each pack."""
    import memlab
    from memlab.clock import ManualClock

    found = {}
    for pack in PACKS:
        dice, clock = random.Random(11), ManualClock("2026-11-01")
        digest = hashlib.sha256()
        with (
            tempfile.TemporaryDirectory() as folder,
            memlab.open(Path(folder) / "lab", pack=pack, clock=clock, seed=3) as lab,
        ):
            for given in projects(dice, 2):
                for row in given:
                    row |= {"tags": dice.sample(TAGS, dice.randrange(3)), "kind": dice.choice(KINDS)}
                    row |= {"files": dice.sample(FILES, dice.randrange(2)), "importance": dice.random()}
                lab.remember_many(given[:400], chain=True, linking="off")
                lab.remember_many(given[400:440], chain=True, linking="now")
            texts = lab.memories["text"].to_list()
            for number in range(count):
                clock.advance(hours=dice.randrange(30))
                about = dice.choice((sentence(dice, 6), " ".join(dice.choice(texts).split()[:5])))
                asked = {"project": dice.choice((None, "p0", "p1")), "session": dice.choice((None, "s3"))}
                if number % 9 == 0:
                    asked["status"] = ["active", "superseded"]
                hits = lab.recall(dice.choice(QUESTIONS).format(about), **asked, limit=dice.choice((None, 5)))
                digest.update(repr([(hit.id, hit.score, hit.probe, hit.also) for hit in hits]).encode())
                if number % 5 == 0 and hits:
                    lab.feedback(hits[0], dice.choice(("success", "fail")))
                if number % 20 == 0:
                    lab.remember(sentence(dice), project="p1", tags=["ci"], linking="now")
            journal = getattr(lab, "store", None) or lab._store
            for seq, blob in journal.journal.slates():
                digest.update(b"%d:" % seq + blob)
        found[pack] = digest.hexdigest()
    return found


def _child(checkout: Path, what: str, count: int) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
    command = [sys.executable, __file__, "--child", what, "--recalls", str(count)]
    ended = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    lines = (line.rsplit("\t", 1) for line in ended.stdout.splitlines())
    return {name: value if what == "same" else float(value) for name, value in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("before", type=Path, nargs="?", help="another checkout of memlab")
    parser.add_argument("--same", action="store_true", help="compare recalls instead of measuring them")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--recalls", type=int, default=200)
    parser.add_argument("--child", choices=("cost", "same"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        for name, value in (measured if given.child == "cost" else digests)(given.recalls).items():
            print(f"{name}\t{value}")
        return
    if given.before is None:
        parser.error("name the other checkout")
    here = Path(__file__).resolve().parents[1]
    if given.same:
        before, after = (_child(checkout, "same", given.recalls) for checkout in (given.before, here))
        for pack in PACKS:
            print(f"{pack:<14}{'the same' if before[pack] == after[pack] else 'ANOTHER'}  {after[pack][:16]}")
        sys.exit(before != after)
    found = [
        (_child(given.before, "cost", given.recalls), _child(here, "cost", given.recalls)) for _ in range(given.runs)
    ]
    print(f"{'ms of processor time':<24}{'before':>9}{'after':>9}{'after / before':>16}")
    for name in found[0][0]:
        old, new = ([run[place][name] for run in found] for place in (0, 1))
        ratio = statistics.median(b / a for a, b in zip(old, new, strict=True))
        print(f"{name:<24}{statistics.median(old):>9.3f}{statistics.median(new):>9.3f}{ratio:>16.2f}")


if __name__ == "__main__":
    main()
