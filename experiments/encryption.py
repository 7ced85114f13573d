"""Measure the processor time of an encrypted lab next to a plain one (extra ``secure``).

    python experiments/encryption.py --memories 2000 --rounds 40

Both labs get the same calls in the same process, and the order alternates with the round. Each figure is the median of
the rounds: a logged recall, ``remember`` of one text and of 20 texts, all with their commits, and an opening. The
texts are random words of this file and of the documentation.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import memlab

ROOT = Path(__file__).resolve().parents[1]
KEYS = {"plain": None, "encrypted": b"k" * 32}


def measure(memories: int, rounds: int) -> None:
    """Print the medians of both labs."""
    dice = random.Random(4)
    words = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8").split()

    def text(length: int) -> str:
        return " ".join(dice.choices(words, k=length))

    times: dict[str, dict[str, list[float]]] = {}

    def clock(what: str, name: str, call: Callable[[], object], count: int = 1) -> None:
        began = time.process_time()
        call()
        of_names = times.setdefault(what, {kind: [] for kind in KEYS})
        of_names[name].append((time.process_time() - began) / count)

    with tempfile.TemporaryDirectory(prefix="memlab-encryption-") as folder:
        labs = {name: memlab.open(Path(folder) / name, key=key) for name, key in KEYS.items()}
        stored = [f"{text(14)} {number}" for number in range(memories)]
        for lab in labs.values():
            lab.remember(stored)
            lab.io.snapshot()
        for number in range(rounds):
            queries, single = [text(6) for _ in range(10)], [text(14) for _ in range(10)]
            many = [text(14) for _ in range(20)]
            for name in sorted(KEYS, reverse=bool(number % 2)):
                lab = labs[name]
                clock("recall", name, lambda: [lab.recall(query) for query in queries], 10)  # noqa: B023
                clock("remember", name, lambda: [lab.remember(words) for words in single], 10)  # noqa: B023
                clock("remember 20", name, lambda: lab.remember(many))  # noqa: B023
        for lab in labs.values():
            lab.close()
        for number in range(7):
            for name in sorted(KEYS, reverse=bool(number % 2)):
                path, key = Path(folder) / name, KEYS[name]
                clock("open", name, lambda: memlab.open(path, key=key).close())  # noqa: B023
    for what, of_names in times.items():
        plain, encrypted = (statistics.median(of_names[name]) * 1e3 for name in KEYS)
        print(
            f"{what:<12} plain {plain:8.3f} ms   encrypted {encrypted:8.3f} ms   {encrypted / plain - 1:+.1%}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare an encrypted lab with a plain one.")
    parser.add_argument("--memories", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    measure(options.memories, options.rounds)
