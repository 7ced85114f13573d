"""Compare the cost of a prompt context with the cost of its recall.

    python experiments/context_cost.py [--memories 10000] [--calls 100]

Each pack has a lab on disk with invented memories of one project. Half of them have files, some have triggers, fifty
entities have facts, and three in ten are of kinds that every prompt includes. Contexts and recalls of the same tasks
alternate. All are logged, contexts in sessions of ten.

Printed are medians in milliseconds of processor time and of wall time (``wall``, which other programs affect), the
ratio of processor times, and the tokens and memories of a context.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import memlab

PACKS = ("memlab", "workbench", "cascade", "companion", "factgraph", "associative")
KINDS = (
    "fact",
    "gotcha",
    "convention",
    "decision",
    "turn",
    "preference",
    "negative",
    "codebase-map",
    "procedure",
    "event",
)


def invent_memories(
    dice: random.Random, count: int, words: list[str], files: list[str]
) -> list[dict[str, Any]]:
    """Return random memories as rows."""
    rows = []
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        row: dict[str, Any] = {
            "text": " ".join(dice.choices(words, k=18)),
            "kind": kind,
            "project": "p",
        }
        if number % 2:
            row["files"] = [dice.choice(files)]
        if kind in ("negative", "procedure"):
            row["triggers"] = [" ".join(dice.choices(words, k=2))]
        rows.append(row)
    return rows


def measure_pack(pack: str, memories: int, calls: int) -> str:
    """Measure one pack; return a line of the table."""
    dice = random.Random(7)
    words = [f"word{number}" for number in range(3_000)]
    files = [f"src/module{module}/file{other}.py" for module in range(100) for other in range(20)]
    with (
        tempfile.TemporaryDirectory() as folder,
        memlab.open(Path(folder) / "lab", pack=pack) as lab,
    ):
        lab.remember(invent_memories(dice, memories, words, files), linking="off")
        for number in range(200):
            lab.facts.add(
                f"Entity{number % 50}", "likes", dice.choice(words), linking="off", project="p"
            )
        spent: dict[str, list[tuple[float, float]]] = {"recall": [], "context": []}
        rows = []
        for number in range(calls + 5):
            task = f"{' '.join(dice.choices(words, k=8))} Entity{number % 50}"
            file = dice.choice(files)
            spent["recall"].append(_time_call(lambda task=task: lab.recall(task, project="p")))
            spent["context"].append(
                _time_call(
                    lambda task=task, file=file, number=number: rows.append(
                        lab.context(task, project="p", session=f"s{number // 10}", files=[file])
                    )
                )
            )
        (cpu, wall), (own, own_wall) = (
            (statistics.median(times) for times in zip(*spent[name][5:], strict=True))
            for name in ("recall", "context")
        )
        tokens, count = (
            statistics.mean(values)
            for values in zip(*((module.tokens, len(module)) for module in rows), strict=True)
        )
    return f"{pack:<12}{cpu:9.1f}{wall:9.1f}{own:10.1f}{own_wall:10.1f}{own / cpu:8.2f}{tokens:9.0f}{count:9.1f}"


def _time_call(call: Callable[[], object]) -> tuple[float, float]:
    """Return the processor and wall time of a call in milliseconds."""
    began, cpu = time.perf_counter(), time.process_time()
    call()
    return 1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - began)


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=100)
    arguments = parser.parse_args()
    print(
        f"{'pack':<12}{'recall':>9}{'wall':>9}{'context':>10}{'wall':>10}{'ratio':>8}{'tokens':>9}{'memories':>9}"
    )
    for pack in PACKS:
        print(measure_pack(pack, arguments.memories, arguments.calls), flush=True)


if __name__ == "__main__":
    main()
