"""What upkeep costs: one command, seeded, every pack in one run.

    python experiments/upkeep.py                        # 100,000 memories, 1,000,000 edges
    python experiments/upkeep.py --memories 1000000 --edges 10000000

Memories were made over the last year and recalled now and then, so that a pack finds all sorts of ages. For each pack:
the first pass, in which every memory gets its first label; a second at the same instant, which finds nothing to do; and
one four hours later, as the scheduler makes it. Prints CPU time, since nothing here uses a second core: what else runs
on the machine counts less than in wall time.
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


def cpu(call):
    """Seconds of CPU time, and what the call gave."""
    started = time.process_time()
    found = call()
    return time.process_time() - started, found


def lived(memories: int, edges: int, clock: memlab.ManualClock) -> memlab.Lab:
    """A lab with a past: ages up to a year, a third of it recalled, edges at random of which some are old and weak."""
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
            known = np.flatnonzero(age > days)
            used = dice.choice(known, len(known) // 10, replace=False) + 1
            tx.event("recall", {"ids": np.sort(used).tolist()}, at=clock())
    made = NOW - 400 * DAY
    for start in range(0, edges, 1_000_000):
        count = min(1_000_000, edges - start)
        source = dice.integers(0, memories, count)
        target = (source + dice.integers(1, memories, count)) % memories
        weight = dice.uniform(0, 1, count)
        with lab.io.store.writing() as tx:
            body = build_edges(
                (source + 1).tolist(), (target + 1).tolist(), "relates-to", weight.tolist()
            )
            tx.event("link", Change(edges=body).body(), at=made)
    clock.set(NOW)
    return lab


def anew(lab: memlab.Lab) -> None:
    """Every memory active and without a label, as before the first pass."""
    with lab.io.store.writing() as tx:
        ids = list(range(1, len(lab) + 1))
        tx.event(
            "restore",
            Change(set=[build_values(ids, status="active", label=None, changed=None)]).body(),
            at=NOW,
        )


def main() -> None:
    parser = Results.build_parser(__doc__)
    parser.add_argument("--memories", type=positive, default=100_000)
    parser.add_argument("--edges", type=positive, default=1_000_000)
    arguments = parser.parse_args()
    results = Results("upkeep", arguments)
    rows: list[dict[str, object]] = []
    clock = memlab.ManualClock(NOW)
    lab = lived(arguments.memories, arguments.edges, clock)
    print(
        f"{len(lab):,} memories, {lab.io.store.state.edges.live:,} edges; CPU seconds, transitions and edges pruned"
    )
    print(f"{'pack':<14}{'first pass':>28}{'nothing to do':>20}{'four hours later':>28}")
    for name in memlab.packs():
        lab.policies.use(name)
        anew(lab)
        clock.set(NOW)
        first, found = cpu(lambda: lab.upkeep.maintain(progress=False))
        again, nothing = cpu(lambda: lab.upkeep.maintain(progress=False))
        assert not nothing, nothing
        clock.advance(hours=4)
        later, after = cpu(lambda: lab.upkeep.maintain(progress=False))
        print(
            f"{name:<14}{first:>10.3f} s {found.frame.height:>9,} {found.pruned.height:>6,}{again:>18.3f} s"
            f"{later:>10.3f} s {after.frame.height:>9,} {after.pruned.height:>6,}",
            flush=True,
        )
        for step, seconds, result in (
            ("first pass", first, found),
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
