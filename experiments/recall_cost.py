"""Compare the cost and the result of a logged recall with another checkout.

    git worktree add --detach ../before 0366433
    python experiments/recall_cost.py ../before                  # processor time and calls
    python experiments/recall_cost.py ../before ../after         # two other checkouts
    python experiments/recall_cost.py ../before --same           # 200 recalls of each shipped pack, compared
    python experiments/recall_cost.py . --threads                # default threads ("after"), one thread ("before")

Each lab has projects of 600 invented memories on disk, drawn by a seed, and each recall is within one project. Times are
processor time of the whole process, with the threads that libraries start by default. Each checkout has a process of
its own. They alternate every 25 recalls, and each line is a median over ``--runs`` turns.

``remember`` is a call for one memory, ``remember_many`` is a call for 250; both are per memory. Calls are those of a
logged recall, of Python functions and built-in ones. Files and functions are those of memlab that 20 recalls enter.
``--same`` compares the results, the scores and the bytes of the slate of every recall. The slate holds the whole pool
with all features, its probes and fingerprints.
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
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from speed import draw_rows, draw_sentence

PACKS = ("memlab", "workbench", "companion", "associative", "factgraph", "actr", "cascade", "fsrs")
FILES = ("parser.py", "cache/index.rs", "docs/guide.md")
TAGS = ("release", "ci", "design", "incident")
KINDS = ("turn", "decision", "preference", "fact")
QUESTIONS = (
    "What did Ana say about {}?",
    "{} on 5 November #ci",
    "Who changed parser.py, {}",
    "{} last week",
    "{}",
)


def draw_projects(dice: random.Random, count: int) -> list[list[dict[str, Any]]]:
    """Return rows of ``count`` projects of 600 memories."""
    projects_of_lab = []
    for number in range(count):
        turns: list[dict[str, Any]] = draw_rows(600, dice)
        for row in turns:
            row["project"] = f"p{number}"
        projects_of_lab.append(turns)
    return projects_of_lab


OPERATIONS = ("recall, logged", "recall, not logged", "remember", "remember_many", "evaluate")


class Bench:
    """A lab with four projects of 600 invented memories, and its measurements."""

    def __init__(self, folder: Path) -> None:
        import memlab

        self.memlab = memlab
        self.dice = random.Random(7)
        self.lab = memlab.open(folder / "lab", pack="memlab")
        for rows_of_project in draw_projects(self.dice, 4):
            self._remember_many(rows_of_project)
        self.ask(40, log=True)

    def ask(self, count: int, *, log: bool) -> float:
        """Return the processor time of a recall in milliseconds."""
        questions = [draw_sentence(self.dice, 8) for _ in range(count)]

        def recalls() -> None:
            for question in questions:
                self.lab.recall(question, project="p1", log=log)

        return _time_call(recalls) / count

    def run(self, operation: str, count: int) -> float:
        """Return the processor time of one call, or of one memory, in milliseconds."""
        if operation.startswith("recall"):
            return self.ask(count, log=operation == "recall, logged")
        if operation == "remember":
            return _time_call(lambda: self._remember(count)) / count
        if operation == "remember_many":
            batch = draw_rows(10 * count, self.dice)
            return _time_call(lambda: self._remember_many(batch)) / len(batch)
        return _time_call(
            lambda: self.memlab.evaluate(self._slates(), ["memlab"], missing="zero") and None
        )

    def _remember(self, count: int) -> None:
        for _ in range(count):
            self.lab.remember(draw_sentence(self.dice, 8), project="p2")

    def _remember_many(self, batch: list[dict[str, Any]]) -> None:
        # older checkouts have another verb for several memories
        present = find_spec("memlab.kernel") is not None
        (self.lab.remember if present else self.lab.remember_many)(batch, chain=True)

    def _slates(self) -> Any:
        return self.lab.slates() if callable(self.lab.slates) else self.lab.slates

    def calls(self, count: int) -> dict[str, float]:
        """Count the calls of a logged recall, and the files and functions that it enters."""
        root = str(Path(self.memlab.__file__).parent) + "/"
        python: Counter[CodeType] = Counter()
        native = 0

        def count_event(frame: FrameType, event: str, _: Any) -> None:
            nonlocal native
            if event == "call":
                python[frame.f_code] += 1
            elif event == "c_call":
                native += 1

        questions = [draw_sentence(self.dice, 8) for _ in range(count)]
        for question in questions:
            sys.setprofile(count_event)
            self.lab.recall(question, project="p1")
            sys.setprofile(None)
        own = [code for code in python if code.co_filename.startswith(root)]
        codes = [code for code in own if code.co_name not in OF_THE_CALLER]
        return {
            "Python calls": sum(python.values()) / count,
            "built-in calls": native / count,
            "files": len({code.co_filename for code in own}),
            "functions": len(codes),
        }


OF_THE_CALLER = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}


def serve() -> None:
    """Answer operations, one per line, with their cost, until the input ends."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        print("ready", flush=True)
        for line in sys.stdin:
            operation, count = line.rstrip().rsplit("\t", 1)
            if operation == "calls":
                counts = bench.calls(int(count))
                print("\t".join(f"{name}={value}" for name, value in counts.items()), flush=True)
            else:
                print(bench.run(operation, int(count)), flush=True)
        bench.lab.close()


def _time_call(call: Callable[[], None]) -> float:
    """Return the processor time of a call in milliseconds."""
    began = time.process_time()
    call()
    return 1000 * (time.process_time() - began)


def compute_digests(count: int) -> dict[str, str]:
    """Return a digest of ``count`` recalls of each pack."""
    import memlab

    try:
        from memlab.kernel.base.clock import ManualClock
    except ModuleNotFoundError:
        from memlab.clock import ManualClock

    hashes = {}
    for pack in PACKS:
        dice, clock = random.Random(11), ManualClock("2026-11-01")
        digest = hashlib.sha256()
        with (
            tempfile.TemporaryDirectory() as folder,
            memlab.open(Path(folder) / "lab", pack=pack, clock=clock, seed=3) as lab,
        ):
            for rows_of_project in draw_projects(dice, 2):
                for row in rows_of_project:
                    row |= {
                        "tags": dice.sample(TAGS, dice.randrange(3)),
                        "kind": dice.choice(KINDS),
                    }
                    row |= {
                        "files": dice.sample(FILES, dice.randrange(2)),
                        "importance": dice.random(),
                    }
                lab.remember(rows_of_project[:400], chain=True, linking="off")
                lab.remember(rows_of_project[400:440], chain=True, linking="now")
            texts = lab.memories["text"].to_list()
            for number in range(count):
                clock.advance(hours=dice.randrange(30))
                about = dice.choice(
                    (draw_sentence(dice, 6), " ".join(dice.choice(texts).split()[:5]))
                )
                results = {
                    "project": dice.choice((None, "p0", "p1")),
                    "session": dice.choice((None, "s3")),
                }
                if number % 9 == 0:
                    results["status"] = ["active", "superseded"]
                hits = lab.recall(
                    dice.choice(QUESTIONS).format(about), **results, limit=dice.choice((None, 5))
                )
                digest.update(
                    repr([(hit.id, hit.score, hit.probe, hit.also) for hit in hits]).encode()
                )
                if number % 5 == 0 and hits:
                    lab.feedback(hits[0], dice.choice(("success", "fail")))
                if number % 20 == 0:
                    lab.remember(draw_sentence(dice), project="p1", tags=["ci"], linking="now")
            journal = lab.io.store
            for seq, blob in journal.journal.slates():
                digest.update(b"%d:" % seq + blob)
        hashes[pack] = digest.hexdigest()
    return hashes


def _run_child(checkout: Path, what: str, count: int) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
    command = [sys.executable, __file__, "--child", what, "--recalls", str(count)]
    return {"args": command, "env": environment, "text": True, "stdout": subprocess.PIPE}


def _run_digests(checkout: Path, count: int) -> dict[str, str]:
    ended = subprocess.run(**_run_child(checkout, "same", count), check=True)
    return dict(line.rsplit("\t", 1) for line in ended.stdout.splitlines())


class Tree:
    """A checkout in a process of its own that answers operations."""

    def __init__(self, checkout: Path, threads: int | None) -> None:
        command = _run_child(checkout, "cost", 0)
        if threads is not None:
            command["env"]["OMP_NUM_THREADS"] = str(threads)
        else:
            command["env"].pop("OMP_NUM_THREADS", None)
        self._process = subprocess.Popen(**command, stdin=subprocess.PIPE)
        self._answer()

    def ask(self, operation: str, count: int) -> str:
        print(operation, count, sep="\t", file=self._process.stdin, flush=True)
        return self._answer()

    def end(self) -> None:
        self._process.communicate()

    def _answer(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise SystemExit("A checkout ended early; its error is printed above.")
        return line.rstrip()


def compare(trees: Sequence[Tree], runs: int, recalls: int, operations: Sequence[str]) -> None:
    """Print the cost of each operation in two checkouts, which alternate."""
    print(f"{'ms of processor time':<24}{'before':>9}{'after':>9}{'after / before':>16}")
    for operation in operations:
        took: list[list[float]] = [[], []]
        for run in range(runs):
            for side in (0, 1) if run % 2 else (1, 0):
                took[side].append(float(trees[side].ask(operation, recalls)))
        old, new = map(statistics.median, took)
        ratio = statistics.median(b / a for a, b in zip(*took, strict=True))
        print(f"{operation:<24}{old:>9.3f}{new:>9.3f}{ratio:>16.2f}", flush=True)


def compare_calls(trees: Sequence[Tree]) -> None:
    """Print the calls of a logged recall in two warm checkouts."""
    for tree in trees:
        tree.ask("recall, logged", 40)
    before, after = (
        dict(part.split("=") for part in tree.ask("calls", 20).split("\t")) for tree in trees
    )
    for name, value in before.items():
        print(f"{name:<24}{float(value):>9.0f}{float(after[name]):>9.0f}")


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("before", type=Path, nargs="?", help="another checkout of memlab")
    parser.add_argument(
        "after", type=Path, nargs="?", help="the checkout to compare with it (default: this one)"
    )
    parser.add_argument(
        "--same", action="store_true", help="compare recalls instead of measuring them"
    )
    parser.add_argument(
        "--threads",
        action="store_true",
        help="compare default threads with one thread, for AFTER alone",
    )
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--recalls", type=int, default=25)
    parser.add_argument(
        "--only", choices=OPERATIONS, action="append", help="measure this operation alone"
    )
    parser.add_argument("--child", choices=("cost", "same"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child == "cost":
        serve()
        return
    if arguments.child:
        for name, value in compute_digests(arguments.recalls).items():
            print(f"{name}\t{value}")
        return
    if arguments.before is None:
        parser.error("name the other checkout")
    here = arguments.after or Path(__file__).resolve().parents[1]
    if arguments.same:
        before, after = (
            _run_digests(checkout, 8 * arguments.recalls) for checkout in (arguments.before, here)
        )
        for pack in PACKS:
            print(
                f"{pack:<14}{'the same' if before[pack] == after[pack] else 'ANOTHER'}  {after[pack][:16]}"
            )
        sys.exit(before != after)
    trees = [
        Tree(here if arguments.threads else arguments.before, 1),
        Tree(here, None if arguments.threads else 1),
    ]
    compare(trees, arguments.runs, arguments.recalls, arguments.only or OPERATIONS)
    compare_calls(trees)
    for tree in trees:
        tree.end()


if __name__ == "__main__":
    main()
