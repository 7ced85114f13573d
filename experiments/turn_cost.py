"""Measure how long an agent waits when it offers its context to the memory.

    python experiments/turn_cost.py [--memories 10000] [--offers 3000] [--pack cascade] [--pause 5]

An agent offers a context, pauses for ``--pause`` milliseconds and offers the next. This is faster than recalls, so the
worker is always busy, and newer contexts replace waiting ones. Printed are percentiles of the wall time of ``offer`` in
milliseconds: with the default verifier, with one that hangs, and with none. The number of recalls of the worker and the
time from an offer until it is idle follow.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from speed import draw_rows, draw_sentence

import memlab
from memlab.subjects.verifiers import local

SEED = 7


def offer_contexts(
    lab: memlab.Lab, contexts: list[str], pause: float, **how: Any
) -> tuple[list[float], int, int]:
    """Return the milliseconds of each offer, the contexts searched, and the contexts replaced."""
    spent, searched, skipped = [], 0, 0
    with lab.agents.turns(**how) as turns:
        turns.offer(contexts[0])
        turns.wait()
        for context in contexts:
            began = time.perf_counter()
            offer = turns.offer(context)
            spent.append(1000 * (time.perf_counter() - began))
            searched, skipped = searched + len(offer.contexts), skipped + len(offer.skipped)
            time.sleep(pause / 1000)
    return spent, searched, skipped


def time_until_idle(lab: memlab.Lab, contexts: list[str]) -> list[float]:
    """Return the milliseconds from each offer until the worker is idle, one at a time."""
    spent = []
    with lab.agents.turns() as turns:
        for context in contexts:
            began = time.perf_counter()
            turns.offer(context)
            turns.wait()
            spent.append(1000 * (time.perf_counter() - began))
    return spent


def main() -> None:
    """Run the study."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--memories", type=int, default=10_000)
    options.add_argument("--offers", type=int, default=3_000)
    options.add_argument("--pack", default="cascade")
    options.add_argument("--pause", type=float, default=5.0)
    arguments = options.parse_args()
    dice = random.Random(SEED)
    ended = threading.Event()

    def hangs(hits: memlab.Hits) -> Any:
        ended.wait()
        return hits

    ways: dict[str, Callable[[memlab.Hits], Any] | None] = {
        "by default": local,
        "hangs": hangs,
        "none": None,
    }
    with memlab.open(pack=arguments.pack) as lab:
        lab.remember(draw_rows(arguments.memories, dice), linking="off")
        contexts = [draw_sentence(dice) for _ in range(arguments.offers)]
        print(
            f"{arguments.memories:,} memories, pack {arguments.pack}, "
            f"{arguments.offers:,} offers, {arguments.pause:g} ms apart"
        )
        for name, verifier in ways.items():
            spent, searched, skipped = offer_contexts(
                lab, contexts, arguments.pause, verifier=verifier, patience=0.5
            )
            p50, p99, maximum = np.percentile(spent, [50, 99, 100])
            print(
                f"  verifier {name:10s} offer p50 {p50:.3f}  p99 {p99:.3f}  max {maximum:.3f} ms; "
                f"{searched:,} searched, {skipped:,} replaced by a newer one"
            )
        ended.set()
        p50, p99 = np.percentile(time_until_idle(lab, contexts[:100]), [50, 99])
        refined = int((lab.log["kind"] == "refine").sum())
        print(
            f"  from offer to idle, verified: p50 {p50:.1f}  p99 {p99:.1f} ms; refined {refined} times"
        )


if __name__ == "__main__":
    main()
