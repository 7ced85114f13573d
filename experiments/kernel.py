"""Print the size, structure and cost of memlab next to another checkout, with limits.

    git worktree add --detach ../before 1fcf7c3
    python experiments/kernel.py ../before            # some minutes
    python experiments/kernel.py ../before --shape    # counts only, without timing
    python experiments/kernel.py ../before --log      # and the cost of a log of 10,000 recalls
    python experiments/kernel.py ../before --json

Counts come from the sources and from one profiled process per checkout; they do not vary. Times are ratios of processor
time, measured alternately within one run (``recall_cost.py``). ``--log`` runs ``years_of_log.py``: bytes per recall, a
purge, and whether sealing changes an estimate. Results of mutation tests take an hour and are read from
``tests/campaigns/``; ``python -m tests.campaigns.mutants run LIST`` computes them.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from recall_cost import Tree
from size import add_sizes, measure_tree

# Runs in a process of the checkout that is measured; prints one JSON object.
PROFILE = """
import json, random, sys, tempfile
from collections import Counter
from pathlib import Path
import memlab

opened = memlab.open()
loaded = sum(name == "memlab" or name.startswith("memlab.") for name in sys.modules)
opened.close()

ROOT = str(Path(memlab.__file__).parent) + "/"
INLINE = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}
DICE = random.Random(5)
WORDS = [f"word{number}" for number in range(400)]

def sentence():
    return " ".join(DICE.choice(WORDS) for _ in range(8))

def profile(act):
    entered, calls = set(), Counter()
    def see(frame, event, _):
        if event in ("call", "c_call"):
            calls[event] += 1
        if event == "call" and frame.f_code.co_filename.startswith(ROOT) and frame.f_code.co_name not in INLINE:
            entered.add((frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_code.co_firstlineno))
    for _ in range(40):
        act()
    sys.setprofile(see)
    for _ in range(20):
        act()
    sys.setprofile(None)
    return {"files": len({file for file, *_ in entered}), "functions": len(entered), "calls": sum(calls.values()) / 20}

with tempfile.TemporaryDirectory() as folder, memlab.open(Path(folder) / "lab", pack="memlab") as lab:
    for _ in range(30):
        lab.remember(sentence(), project="p", linking="off")
    counts = {
        "modules loaded by memlab.open()": loaded,
        "remember": profile(lambda: lab.remember(sentence(), project="p", linking="off")),
    }
    counts["names of Lab"] = sum(not name.startswith("_") for name in dir(memlab.Lab))
print(json.dumps(counts))
"""

COMMANDS = """
import click, memlab
try:
    from memlab.ui.cli import main
except ImportError:
    from memlab.cli import main
print(len(main.list_commands(click.Context(main))))
"""


class Figure(NamedTuple):
    """One row of the table: the figure of both checkouts, and its limit."""

    name: str
    before: float
    after: float
    limit: float | None = None


def run_child(checkout: Path, program: str) -> str:
    """Run a program under the memlab of a checkout and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
    environment.pop("PYTHONWARNINGS", None)
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=checkout,
        env=environment,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    )
    return ended.stdout.splitlines()[-1]


def count_private_uses(tests: Path) -> tuple[int, int]:
    """Count imports of private modules or names of memlab, and uses of ``x._name``, in a folder of tests."""
    imports = attributes = 0
    for path in tests.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            imports += isinstance(node, ast.ImportFrom) and _is_private_import(node)
            attributes += isinstance(node, ast.Attribute) and _is_private_use(node)
    return imports, attributes


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _is_private_import(node: ast.ImportFrom) -> bool:
    parts = (node.module or "").split(".")
    if parts[0] != "memlab":
        return False
    return any(_is_private(name) for name in (*parts, *(alias.name for alias in node.names)))


def _is_private_use(node: ast.Attribute) -> bool:
    of_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    return _is_private(node.attr) and not of_itself


def count_shape(before: Path, after: Path) -> Iterator[Figure]:
    """Yield everything that can be counted without timing."""
    sizes = [measure_tree(checkout / "memlab") for checkout in (before, after)]
    kernels = [
        {path: size for path, size in tree.items() if path.parts[0] == "kernel"} for tree in sizes
    ]
    whole = [add_sizes(list(tree.values())) for tree in sizes]
    kernel = [add_sizes(list(tree.values())) if tree else None for tree in kernels]
    small = kernel[1]
    assert small is not None, f"{after} has no memlab/kernel"
    yield Figure("tokens, whole", whole[0].tokens, whole[1].tokens, 500_000)
    yield Figure(
        "tokens, kernel", kernel[0].tokens if kernel[0] else float("nan"), small.tokens, 200_000
    )
    yield Figure(
        "tokens a line, whole", whole[0].tokens / whole[0].lines, whole[1].tokens / whole[1].lines
    )
    yield Figure(
        "tokens a line, kernel", whole[0].tokens / whole[0].lines, small.tokens / small.lines, 9.3
    )
    rates = [100 * size.nested / size.statements for size in whole]
    yield Figure("nested comprehensions in 100 statements", rates[0], rates[1], 0.2)
    yield Figure("files of Python", len(sizes[0]), len(sizes[1]))
    entries = [_count_entries(checkout / "memlab") for checkout in (before, after)]
    yield Figure("entries at the top of memlab/", entries[0], entries[1], 9)
    old, new = (json.loads(run_child(checkout, PROFILE)) for checkout in (before, after))
    yield Figure("names of Lab", old["names of Lab"], new["names of Lab"], 24)
    yield Figure(
        "commands", *(int(run_child(checkout, COMMANDS)) for checkout in (before, after)), 20
    )
    loaded = "modules loaded by memlab.open()"
    yield Figure(loaded, old[loaded], new[loaded], 200)
    recalls = [_profile_recall(checkout) for checkout in (before, after)]
    for what, limit in (("files", 40), ("functions", 180), ("calls", 1400)):
        yield Figure(f"{what} of a logged recall", recalls[0][what], recalls[1][what], limit)
    for what, limit in (("files", 28), ("functions", 110)):
        yield Figure(f"{what} of remember", old["remember"][what], new["remember"][what], limit)
    yield from _count_mutants(after / "tests/campaigns")
    private = [count_private_uses(checkout / "tests") for checkout in (before, after)]
    yield Figure("private imports in tests", private[0][0], private[1][0], 0)
    yield Figure("uses of another object's ._x in tests", private[0][1], private[1][1], 40)


def _count_mutants(campaigns: Path) -> Iterator[Figure]:
    for results in sorted(campaigns.glob("*.jsonl")):
        caught = [
            json.loads(line)["caught"] for line in results.read_text(encoding="utf-8").splitlines()
        ]
        name = results.name.partition(".")[0]
        yield Figure(
            f"mutants that survive, {name}, of {len(caught)}",
            float("nan"),
            len(caught) - sum(caught),
        )


def _profile_recall(checkout: Path) -> dict[str, float]:
    """Return the files, functions and calls of a logged recall in projects of 600 memories."""
    tree = Tree(checkout, 1)
    tree.ask("recall, logged", 40)
    counts = {
        name: float(value)
        for name, value in (part.split("=") for part in tree.ask("calls", 20).split("\t"))
    }
    tree.end()
    return counts | {"calls": counts["Python calls"] + counts["built-in calls"]}


def _count_entries(package: Path) -> int:
    return sum(path.name != "__pycache__" for path in package.iterdir())


def measure_times(before: Path, after: Path, runs: int, recalls: int) -> Iterator[Figure]:
    """Yield ratios of processor time, each a median over ``runs`` turns of ``recalls`` calls."""
    limits = {
        "recall, logged": 0.6,
        "recall, not logged": 0.6,
        "remember": None,
        "remember_many": 1.0,
        "evaluate": 1.0,
    }
    trees = [Tree(before, 1), Tree(after, 1)]
    for operation, limit in limits.items():
        yield Figure(
            f"{operation}: processor time",
            1.0,
            _measure_ratio(trees, operation, runs, recalls),
            limit,
        )
    for tree in trees:
        tree.end()
    threads = [Tree(after, 1), Tree(after, None)]
    yield Figure(
        "default threads / one thread",
        1.0,
        _measure_ratio(threads, "recall, logged", runs, recalls),
        1.05,
    )
    for tree in threads:
        tree.end()


def _measure_ratio(trees: list[Tree], operation: str, runs: int, recalls: int) -> float:
    ratios = []
    for run in range(runs):
        took = [0.0, 0.0]
        for side in (0, 1) if run % 2 else (1, 0):
            took[side] = float(trees[side].ask(operation, recalls))
        ratios.append(took[1] / took[0])
    return statistics.median(ratios)


def _print_row(figure: Figure) -> None:
    limit = "" if figure.limit is None else f"{figure.limit:>10,g}"
    verdict = "" if figure.limit is None else ("met" if figure.after <= figure.limit else "NOT MET")
    print(
        f"{figure.name:<42}{figure.before:>12,.5g}{figure.after:>12,.5g}{limit:>10}  {verdict}".rstrip(),
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="another checkout of memlab")
    parser.add_argument("after", type=Path, nargs="?", default=Path(__file__).resolve().parents[1])
    parser.add_argument("--shape", action="store_true", help="count only, without timing")
    parser.add_argument(
        "--log", action="store_true", help="measure a log of 10,000 recalls as well"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--recalls", type=int, default=25)
    options = parser.parse_args()
    if not options.json:
        print(f"{'':<42}{'before':>12}{'after':>12}{'limit':>10}")
    figures = []
    for figure in count_shape(options.before, options.after):
        figures.append(figure)
        if not options.json:
            _print_row(figure)
    if not options.shape:
        for figure in measure_times(options.before, options.after, options.runs, options.recalls):
            figures.append(figure)
            if not options.json:
                _print_row(figure)
    if options.log:
        subprocess.run(
            [sys.executable, str(Path(__file__).with_name("years_of_log.py"))], check=True
        )
    if options.json:
        print(json.dumps([figure._asdict() for figure in figures], indent=1))


if __name__ == "__main__":
    main()
