"""Compare the cost of checksums and write order with another checkout of memlab.

    python experiments/integrity_costs.py OTHER_CHECKOUT [--rounds 9] [--seed 0]

Each round runs both checkouts in processes of their own, in alternating order, on new labs on disk: durable batch
ingest (500 memories a batch), single ``remember``, and logged recalls. Printed is the median ratio of processor and
wall time, this checkout to the other; above 1 this one is slower.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]

CHILD = """
import json, random, sys, time
path, seed = sys.argv[1], int(sys.argv[2])
import memlab, memlab.subjects.lab
dice = random.Random(seed)
words = [f"word{number}" for number in range(3000)]
def text():
    return " ".join(dice.choices(words, k=18))
def measured(work):
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu
lab = memlab.open(path)
lab.remember([text() for _ in range(200)]); lab.recall("warm up"); lab.remember("warm up")
batches = [[{"text": text(), "project": "p", "session": f"s{n}"} for n in range(500)] for _ in range(6)]
singles, questions = [text() for _ in range(150)], [text() for _ in range(150)]
times = {
    "batch ingest": measured(lambda: [lab.remember(batch) for batch in batches]),
    "single remember": measured(lambda: [lab.remember(text) for text in singles]),
    "logged recall": measured(lambda: [lab.recall(query) for query in questions]),
}
lab.close()
print(json.dumps(times))
"""


def run_round(checkout: Path, seed: int) -> dict[str, tuple[float, float]]:
    """Run one round of a checkout."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", CHILD, str(Path(folder) / "lab"), str(seed)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(checkout)}
        )
    return {name: (wall, cpu) for name, (wall, cpu) in json.loads(done.stdout).items()}


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    ratios: dict[str, list[tuple[float, float]]] = {}
    for round_ in range(arguments.rounds):
        order = [HERE, arguments.other.resolve()]
        random.Random(arguments.seed + round_).shuffle(order)
        times = {checkout: run_round(checkout, arguments.seed + round_) for checkout in order}
        own, other = times[HERE], times[arguments.other.resolve()]
        for name in own:
            ratios.setdefault(name, []).append(
                (own[name][0] / other[name][0], own[name][1] / other[name][1])
            )
    print(
        f"{'':16} {'processor time':>16} {'wall time':>12}   (this / other, median of {arguments.rounds})"
    )
    for name, some in ratios.items():
        wall, cpu = (
            statistics.median(time_pair[column] for time_pair in some) for column in (0, 1)
        )
        print(f"{name:16} {cpu:16.3f} {wall:12.3f}")


if __name__ == "__main__":
    main()
