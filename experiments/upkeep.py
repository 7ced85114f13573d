"""Measure the cost of maintenance under every pack.

    python experiments/upkeep.py                        # 100,000 memories, 1,000,000 edges
    python experiments/upkeep.py --memories 1000000 --edges 10000000

Memories date from the last year and were recalled now and then, so they have all ages. Each pack makes three passes.
In the first, every memory gets its first label. The second, at the same instant, changes nothing. The third is four
hours later, as the scheduler does. Printed is CPU time, which other programs affect less than wall time.
"""

from __future__ import annotations

import time

import numpy as np
import polars as pl
from measuring import positive
from results import Results, plot_dots

import memlab
from memlab.kernel.base.clock import DAY
from memlab.kernel.state import Change, build_edges, build_values

NOW = memlab.ManualClock("2026-06-01")()


def time_call(call):
    """Return the CPU seconds and the result of a call."""
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


def build_lab(memories: int, edges: int, clock: memlab.ManualClock) -> memlab.Lab:
    """Return a lab with a past: memories of up to a year, recalls, and random edges, some weak."""
    dice = np.random.default_rng(0)
    vectors = dice.normal(size=(64, 8))
    lab = memlab.open(
        embedder=lambda texts: vectors[[len(text) % 64 for text in texts]], clock=clock
    )
    age = dice.uniform(0, 365, memories)
    kinds = np.array(["fact", "preference", "gotcha", "observation"])[dice.integers(0, 4, memories)]
    frame = pl.DataFrame(
        {
            "text": [f"note {number}" for number in range(memories)],
            "kind": kinds,
            "at": NOW - (age * DAY).astype(np.int64),
            "confidence": dice.uniform(0.3, 1, memories),
            "emotional_weight": dice.uniform(0, 100, memories),
        }
    )
    for part in frame.iter_slices(100_000):
        lab.remember(part)
    for days in (200, 90, 30, 5):
        clock.set(NOW - days * DAY)
        with lab.io.store.writing() as tx:
            existing = np.flatnonzero(age > days)
            used = dice.choice(existing, len(existing) // 10, replace=False) + 1
            tx.event("recall", {"ids": np.sort(used).tolist()}, at=clock())
    linked_at = NOW - 400 * DAY
    for start in range(0, edges, 1_000_000):
        count = min(1_000_000, edges - start)
        source = dice.integers(0, memories, count)
        target = (source + dice.integers(1, memories, count)) % memories
        weight = dice.uniform(0, 1, count)
        with lab.io.store.writing() as tx:
            body = build_edges(
                (source + 1).tolist(), (target + 1).tolist(), "relates-to", weight.tolist()
            )
            tx.event("link", Change(edges=body).body(), at=linked_at)
    clock.set(NOW)
    return lab


def reset_labels(lab: memlab.Lab) -> None:
    """Make every memory active and unlabelled, as before the first pass."""
    with lab.io.store.writing() as tx:
        ids = list(range(1, len(lab) + 1))
        tx.event(
            "restore",
            Change(set=[build_values(ids, status="active", label=None, changed=None)]).body(),
            at=NOW,
        )


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("--memories", type=positive, default=100_000)
    parser.add_argument("--edges", type=positive, default=1_000_000)
    arguments = parser.parse_args()
    results = Results("upkeep", arguments)
    rows: list[dict[str, object]] = []
    clock = memlab.ManualClock(NOW)
    lab = build_lab(arguments.memories, arguments.edges, clock)
    print(
        f"{len(lab):,} memories, {lab.io.store.state.edges.live:,} edges; CPU seconds, transitions and edges pruned"
    )
    print(f"{'pack':<14}{'first pass':>28}{'nothing to do':>20}{'four hours later':>28}")
    for name in memlab.packs():
        lab.policies.use(name)
        reset_labels(lab)
        clock.set(NOW)
        first, result_first = time_call(lambda: lab.upkeep.maintain(progress=False))
        again, nothing = time_call(lambda: lab.upkeep.maintain(progress=False))
        assert not nothing, nothing
        clock.advance(hours=4)
        later, after = time_call(lambda: lab.upkeep.maintain(progress=False))
        print(
            f"{name:<14}{first:>10.3f} s {result_first.frame.height:>9,} {result_first.pruned.height:>6,}{again:>18.3f} s"
            f"{later:>10.3f} s {after.frame.height:>9,} {after.pruned.height:>6,}",
            flush=True,
        )
        for step, seconds, result in (
            ("first pass", first, result_first),
            ("nothing to do", again, nothing),
            ("four hours later", later, after),
        ):
            rows.append(
                {
                    "pack": name,
                    "pass": step,
                    "cpu s": seconds,
                    "transitions": result.frame.height,
                    "edges pruned": result.pruned.height,
                }
            )
    results.save(
        rows,
        plot_dots(
            rows,
            label="pack",
            value="cpu s",
            group="pass",
            log=True,
            title="Processor time of a maintenance pass",
        ),
        height=4.0,
    )


if __name__ == "__main__":
    main()
