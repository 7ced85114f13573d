"""Measure the cost of linking for a writer, and the delay of queued linking.

    python experiments/writing.py                         # 100,000 invented memories; some minutes
    python experiments/writing.py --lab agent.memlab      # with the memories of a lab, of which a copy is measured
    python experiments/writing.py --size 10000 --singles 200 --json

The same new memories are remembered one by one with linking off, later and now, each time next to the same old ones.
They are invented sentences drawn by a seed, a fifth of them near-duplicates of an old one. ``process`` is the processor
time of all threads of the writing process until nothing is queued; other programs affect it less than wall time. With
"later", ``appear`` is the time from the return of ``remember`` until the memory was linked.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import percentile_ms, positive, provenance, stated
from results import Results, plot_dots

import memlab

NAMES = [
    "parser",
    "build",
    "cache",
    "index",
    "queue",
    "worker",
    "router",
    "schema",
    "token",
    "session",
    "ledger",
    "gate",
]
VERBS = [
    "reads",
    "writes",
    "drops",
    "keeps",
    "skips",
    "merges",
    "splits",
    "checks",
    "signs",
    "retries",
]
ENDS = [
    "at night",
    "on every push",
    "before a release",
    "when the disk is full",
    "for each tenant",
    "without a lock",
]
WAYS = ("off", "later", "now")


def draw_sentences(seed: int) -> Iterator[str]:
    """Yield random sentences about a code base without end."""
    drawn = random.Random(seed)
    while True:
        first, second = drawn.sample(NAMES, 2)
        yield f"The {first} {drawn.choice(VERBS)} the {second} {drawn.randrange(10_000)} {drawn.choice(ENDS)}"


def fill_lab(path: Path, size: int, seed: int) -> None:
    """Fill a lab with ``size`` memories without links."""
    new_texts = draw_sentences(seed)
    with memlab.open(path) as lab:
        for start in range(0, size, 20_000):
            lab.remember([next(new_texts) for _ in range(min(20_000, size - start))], linking="off")


def measure_singles(path: Path, pack: str, way: str, singles: int, seed: int) -> dict[str, Any]:
    """Remember ``singles`` memories one by one in a copy of the lab at ``path``."""
    drawn = random.Random(seed + 1)
    new_texts = draw_sentences(seed + 2)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.memlab"
        shutil.copytree(path, copy)
        with memlab.open(copy, pack=pack) as lab:
            old = lab.memories["text"]
            project = lab.memories["project"].mode()[0] if len(lab) else None
            texts = [
                old[drawn.randrange(len(old))] + " now" if drawn.random() < 0.2 else next(new_texts)
                for _ in range(singles)
            ]
            # warm-up: the first recall loads tables
            lab.recall(texts[0], project=project, log=False)
            lab.remember(next(new_texts), project=project, linking="now")
            took, done, appear = [], [], []
            cpu, start = time.process_time(), time.perf_counter()
            for text in texts:
                began = time.perf_counter()
                lab.remember(text, project=project, linking=way)
                done.append(time.perf_counter())
                took.append(done[-1] - began)
                appear += [
                    time.perf_counter() - when
                    for when in done[len(appear) : len(done) - lab.graph.waiting()]
                ]
            wrote = time.perf_counter() - start
            while len(appear) < len(done):
                appear += [
                    time.perf_counter() - when
                    for when in done[len(appear) : len(done) - lab.graph.waiting()]
                ]
                time.sleep(0.001)
            return {
                "pack": pack,
                "linking": way,
                "size": len(old),
                "per second": singles / wrote,
                "p50 ms": percentile_ms(took, 50),
                "p95 ms": percentile_ms(took, 95),
                "process ms": 1000 * (time.process_time() - cpu) / singles,
                "appear p50 s": percentile_ms(appear, 50) / 1000,
                "appear max s": max(appear),
                "edges": lab.edges.height,
            }


def measure_bulk(path: Path, pack: str, rows: int, seed: int) -> dict[str, Any]:
    """Remember ``rows`` memories in one call, with linking off and now."""
    new_texts = draw_sentences(seed + 3)
    texts = [next(new_texts) for _ in range(rows)]
    rates: dict[str, Any] = {"pack": pack, "rows": rows}
    for way in ("off", "now"):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "copy.memlab"
            shutil.copytree(path, copy)
            with memlab.open(copy, pack=pack) as lab:
                cpu, start = time.process_time(), time.perf_counter()
                lab.remember(texts, linking=way)
                rates[f"{way} per second"] = rows / (time.perf_counter() - start)
                rates[f"{way} process ms"] = 1000 * (time.process_time() - cpu) / rows
    return rates


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument(
        "--lab", type=Path, help="measure with the memories of this lab, which is not changed"
    )
    parser.add_argument(
        "--size", type=positive, default=100_000, help="memories of the generated lab"
    )
    parser.add_argument(
        "--singles", type=positive, default=300, help="memories remembered one by one"
    )
    parser.add_argument(
        "--bulk", type=positive, default=2_000, help="memories remembered in one call"
    )
    parser.add_argument("--packs", nargs="+", default=["workbench"], choices=memlab.packs())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = Results("writing", arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.lab
        if path is None:
            path = Path(folder) / "made.memlab"
            fill_lab(path, arguments.size, arguments.seed)
        rows = [
            measure_singles(path, pack, way, arguments.singles, arguments.seed)
            for pack in arguments.packs
            for way in WAYS
        ]
        many = [
            measure_bulk(path, pack, arguments.bulk, arguments.seed) for pack in arguments.packs
        ]
    facts = provenance(["polars", "numpy", "hy"])
    results.write_table(many, "bulk")
    results.save(
        rows,
        plot_dots(
            rows,
            label="linking",
            value="process ms",
            group="pack",
            title="Processor time of one remembered memory",
        ),
        height=2.4,
    )
    if arguments.json:
        print(json.dumps({"facts": facts, "singles": rows, "bulk": many}, indent=1))
        return
    print(stated(facts))
    for table in (rows, many):
        print("\n" + "  ".join(table[0]))
        for row in table:
            print(
                "  ".join(
                    f"{value:,.2f}" if isinstance(value, float) else str(value)
                    for value in row.values()
                )
            )


if __name__ == "__main__":
    sys.exit(main())
