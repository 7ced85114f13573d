"""Mutation testing: change one piece of memlab at a time, and check that a test fails.

    python -m tests.campaigns.mutants map                                  # which functions each test reaches
    python -m tests.campaigns.mutants draw drawn.toml --seed 1 --count 200 memlab.kernel.privacy memlab.subjects.purge
    python -m tests.campaigns.mutants check mutants.toml                   # does each mutant match one piece of code?
    python -m tests.campaigns.mutants run mutants.toml                     # caught or survived, and how long it took

``map`` runs the quick suite once under a tracer (some minutes) and stores the result under WORK. The map of another tree
works as well, because it decides only which tests run first.

A list is a TOML file, written by hand or by ``draw``; ``edits.py`` defines its form. Each mutant has the function, the
old code, the new code, and the documented sentence that the change breaks. A mutant with ``equivalent = "reason"`` does
not run.

``run`` copies the working tree to WORK for each of its processes and applies one mutant at a time. It runs the tests
that reach the changed function, the most specific ones first, for a few seconds. If these pass, the others follow, up
to ``--seconds`` of tests by the times of the map. It stops at the first failure. Results are stored in LIST.jsonl next
to the list, so that an interrupted run can be continued; ``--again`` runs everything again. A survivor passed the tests
that are counted in its result, and no others.

The command needs the environment of the tests. WORK is ``~/.cache/memlab-mutants`` or the variable MEMLAB_MUTANTS.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.campaigns.edits import (
    OPERATORS,
    Mutant,
    MutantError,
    draw_mutants,
    module_path,
    mutate,
    read_module,
    read_mutants,
    write_mutants,
)
from tests.campaigns.reach import ReachMap

ROOT = Path(__file__).parents[2]
WORK = Path(os.environ.get("MEMLAB_MUTANTS") or Path.home() / ".cache" / "memlab-mutants")

FIRST_SECONDS = 4.0
"""Seconds of tests that are tried first: about what it takes to start pytest and import memlab."""

FILE_SECONDS = 0.3
"""What it takes to collect one more file of tests."""

TIMEOUT = 5.0
"""How many times as long as expected tests may take before the mutant counts as caught: it does not end."""

_FAILED, _NONE_LEFT = 1, 5
"""Exit codes of pytest: a test failed; no test was run."""


@dataclass(frozen=True)
class Outcome:
    """The result of one mutant: ``by`` names the failed test, ``tests`` counts the tests that ran."""

    id: str
    at: str
    caught: bool
    by: str
    tests: int
    seconds: float


# -- copies of the tree -----------------------------------------------------------------------------------------------


def tree_files() -> list[Path]:
    """Return the files of the working tree that git knows or would add, relative to the root."""
    command = [
        "git",
        "-C",
        str(ROOT),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\0")
    paths = [Path(name) for name in listed if name]
    return [path for path in paths if (ROOT / path).is_file() or (ROOT / path).is_symlink()]


def tree_hash() -> str:
    """Return a hash of the code and the tests."""
    digest = hashlib.sha256()
    for path in sorted(tree_files()):
        if path.suffix in (".py", ".hy", ".toml") and path.parts[0] in ("memlab", "tests"):
            digest.update(f"{path}\0".encode() + (ROOT / path).read_bytes())
    return digest.hexdigest()[:16]


def copy_tree(target: Path) -> None:
    """Copy the working tree, compiled, to an empty folder."""
    shutil.rmtree(target, ignore_errors=True)
    for path in tree_files():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, target / path, follow_symlinks=False)
    for folder in ("memlab", "tests"):
        compileall.compile_dir(target / folder, quiet=2)


class Applied:
    """A copy of the tree with one mutant in it, until the block ends."""

    def __init__(self, tree: Path, mutant: Mutant) -> None:
        self._path = module_path(mutant.module, tree)
        self._source = read_module(mutant, tree)
        self._changed = mutate(mutant, self._source)

    def __enter__(self) -> None:
        self._write(self._changed)

    def __exit__(self, *raised: object) -> None:
        self._write(self._source)

    def _write(self, source: str) -> None:
        self._path.write_text(source, encoding="utf-8")
        for compiled in (self._path.parent / "__pycache__").glob(f"{self._path.stem}.*.pyc"):
            # a compiled file is told by its second and size, which two mutants may share
            compiled.unlink()


# -- the map ----------------------------------------------------------------------------------------------------------


def run_pytest(
    tree: Path, words: Sequence[str], *, seconds: float | None = None, **environment: str
) -> tuple[int, str]:
    """Run pytest in a tree; return its exit code and what it prints, or -1 after ``seconds``."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMLAB_", "PYTEST_"))
    }
    variables |= {"PYTHONPATH": str(tree), "PYTHONHASHSEED": "0", **environment}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.campaigns.reach",
        "-p",
        "no:cacheprovider",
        *words,
    ]
    try:
        done = subprocess.run(
            command, cwd=tree, env=variables, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return -1, ""
    return done.returncode, done.stdout + done.stderr


def make_map(jobs: int, only: Sequence[str]) -> Path:
    """Run the quick suite under the recorder and write the map; return its path."""
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WORK) as scratch:
        tree, parts = Path(scratch, "tree"), Path(scratch, "parts")
        parts.mkdir()
        copy_tree(tree)
        words = ["-n", str(jobs), "--dist", "loadfile", "--tb", "no", *only]
        _, output = run_pytest(tree, words, MEMLAB_REACH=str(parts))
        failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        print(*failed, output.splitlines()[-1], sep="\n")
        result = ReachMap.of_parts(parts)
    path = WORK / f"map-{tree_hash()}.npz"
    result.save(path)
    print(f"{path}: {len(result.tests):,} tests reach {len(result.functions):,} functions")
    return path


def newest_map() -> ReachMap:
    """Return the map of this tree, else the newest one."""
    maps = sorted(WORK.glob("map-*.npz"), key=lambda path: path.stat().st_mtime)
    if not maps:
        raise SystemExit(
            "There is no map of the tests. Make one: python -m tests.campaigns.mutants map"
        )
    own = WORK / f"map-{tree_hash()}.npz"
    if own not in maps:
        print(f"The map is that of an earlier tree: {maps[-1].name}")
    return ReachMap.load(own if own in maps else maps[-1])


# -- one mutant -------------------------------------------------------------------------------------------------------


def batches(reach: ReachMap, mutant: Mutant, seconds: float) -> Iterator[list[int]]:
    """Yield the tests to run for a mutant: at most two lists, the most specific tests first."""
    direct, others = reach.tests_for(mutant.module, mutant.function)
    budget, files = FIRST_SECONDS, set[str]()
    batch: list[int] = []
    cost = spent = 0.0
    for row in (*direct, *others):
        file = reach.tests[row].partition("::")[0]
        price = float(reach.seconds[row]) + (0 if file in files else FILE_SECONDS)
        if batch and cost + price > budget:
            if budget == seconds:
                break
            yield batch
            batch, files, budget, cost = [], set(), seconds, 0.0
            price = float(reach.seconds[row]) + FILE_SECONDS
        batch.append(row)
        files.add(file)
        cost += price
        spent += price
    if batch:
        yield batch


def try_mutant(mutant: Mutant, tree: Path, reach: ReachMap, seconds: float) -> Outcome:
    """Apply a mutant to a tree and run tests until one fails."""
    began = time.monotonic()
    count = 0
    by = ""
    with Applied(tree, mutant):
        for rows in batches(reach, mutant, seconds):
            count += len(rows)
            by = _run_tests(tree, reach, rows)
            if by:
                break
    return Outcome(mutant.id, mutant.at, bool(by), by, count, round(time.monotonic() - began, 1))


def _run_tests(tree: Path, reach: ReachMap, rows: list[int]) -> str:
    """Return the first of some tests that fails, or what else went wrong; empty if all pass."""
    tests = [reach.tests[row] for row in rows]
    files = sorted({name for test in tests if (tree / (name := test.partition("::")[0])).exists()})
    if not files:
        return ""
    selected = tree.parent / f"{tree.name}.tests"
    selected.write_text("\n".join(tests), encoding="utf-8")
    expected = 30 + TIMEOUT * (float(reach.seconds[rows].sum()) + FILE_SECONDS * len(files))
    words = ["-x", "-n", "0", "--tb", "line", *files]
    code, output = run_pytest(tree, words, seconds=expected, MEMLAB_SELECTED=str(selected))
    if code in (0, _NONE_LEFT):
        return ""
    if code == -1:
        return "no end in time"
    failed = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return failed[0].split(" - ")[0] if failed else f"pytest ended with {code}: {output[-200:]!r}"


# -- a list -----------------------------------------------------------------------------------------------------------


def run_list(path: Path, *, jobs: int, seconds: float, again: bool) -> int:
    """Run the mutants of a list and print what became of each; return how many survived."""
    mutants = read_mutants(path)
    results = path.with_suffix(".jsonl")
    outcomes = {} if again or not results.exists() else _read_outcomes(results)
    equivalent = [mutant for mutant in mutants if mutant.equivalent]
    waiting = [mutant for mutant in mutants if not mutant.equivalent and mutant.id not in outcomes]
    reach = newest_map() if waiting else None
    lock, trees = threading.Lock(), queue.SimpleQueue[Path]()
    with results.open("w" if again else "a", encoding="utf-8") as file:

        def try_next(mutant: Mutant) -> None:
            tree = trees.get()
            try:
                outcome = try_mutant(mutant, tree, reach, seconds)  # type: ignore[arg-type]
            except MutantError as error:
                print(f"not applied      {error}", flush=True)
                return
            finally:
                trees.put(tree)
            with lock:
                outcomes[mutant.id] = outcome
                file.write(json.dumps(asdict(outcome)) + "\n")
                file.flush()
                print(_line(mutant, outcome), flush=True)

        if waiting:
            WORK.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=WORK) as scratch, ThreadPoolExecutor(jobs) as pool:
                for number in range(jobs):
                    copy_tree(Path(scratch, f"tree-{number}"))
                    trees.put(Path(scratch, f"tree-{number}"))
                list(pool.map(try_next, waiting))
    return _summary(mutants, equivalent, outcomes)


def _read_outcomes(path: Path) -> dict[str, Outcome]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {outcome.id: outcome for outcome in (Outcome(**json.loads(line)) for line in lines)}


def _line(mutant: Mutant, outcome: Outcome) -> str:
    verdict = "caught  " if outcome.caught else "SURVIVED"
    what = outcome.by if outcome.by else f"{outcome.tests} tests pass"
    return f"{verdict} {outcome.seconds:5.1f}s  {mutant}\n                 {what}"


def _summary(mutants: list[Mutant], equivalent: list[Mutant], results: dict[str, Outcome]) -> int:
    outcomes = [
        results[mutant.id] for mutant in mutants if mutant.id in results and not mutant.equivalent
    ]
    survived = [
        mutant for mutant in mutants if mutant.id in results and not results[mutant.id].caught
    ]
    survived = [mutant for mutant in survived if not mutant.equivalent]
    print(f"\n{len(outcomes) - len(survived)} of {len(outcomes)} caught", end="")
    if outcomes:
        mean = sum(outcome.seconds for outcome in outcomes) / len(outcomes)
        print(f" ({100 - 100 * len(survived) / len(outcomes):.0f}%), {mean:.1f} s each", end="")
    print(f"; {len(equivalent)} equivalent" if equivalent else "", end="")
    lacking = len(mutants) - len(outcomes) - len(equivalent)
    print(f"; {lacking} not applied" if lacking else "")
    for mutant in survived:
        print(
            f"  survived: {mutant}\n            {results[mutant.id].by or mutant.breaks or mutant.id}"
        )
    return len(survived)


def check_list(path: Path) -> int:
    """Apply each mutant of a list to its source alone; print those that cannot be, and return how many."""
    faults = 0
    for mutant in read_mutants(path):
        try:
            mutate(mutant, read_module(mutant, ROOT))
        except (MutantError, SyntaxError) as error:
            faults += 1
            print(error)
    print(f"{faults} of {len(read_mutants(path))} cannot be applied")
    return faults


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("map", help="record which functions each test reaches")
    verb.add_argument(
        "tests", nargs="*", help="files or folders of tests; all of the quick suite unless given"
    )
    verb.add_argument("--jobs", type=int, default=2)
    verb = verbs.add_parser("draw", help="draw mutants of modules by chance, and write the list")
    verb.add_argument("list", type=Path)
    verb.add_argument("modules", nargs="+", help="dotted names of modules or packages")
    verb.add_argument("--seed", type=int, required=True)
    verb.add_argument("--count", type=int, default=200)
    verb.add_argument("--operators", nargs="+", choices=OPERATORS, default=list(OPERATORS))
    verb = verbs.add_parser("check", help="see whether each mutant of a list can be applied")
    verb.add_argument("list", type=Path)
    verb = verbs.add_parser("run", help="run the mutants of a list")
    verb.add_argument("list", type=Path)
    verb.add_argument("--jobs", type=int, default=1)
    verb.add_argument(
        "--seconds", type=float, default=60.0, help="how long the tests of one mutant may take"
    )
    verb.add_argument("--again", action="store_true", help="forget the results of earlier runs")
    options = parser.parse_args(words)
    if options.verb == "map":
        make_map(options.jobs, options.tests)
        return 0
    if options.verb == "draw":
        drawn = draw_mutants(
            options.modules,
            ROOT,
            seed=options.seed,
            count=options.count,
            operators=options.operators,
        )
        head = f"Drawn by mutants.py draw --seed {options.seed} --count {options.count} {' '.join(options.modules)}"
        write_mutants(drawn, options.list, head)
        print(f"{options.list}: {len(drawn)} mutants")
        return 0
    if options.verb == "check":
        return min(check_list(options.list), 1)
    return min(
        run_list(options.list, jobs=options.jobs, seconds=options.seconds, again=options.again), 1
    )


if __name__ == "__main__":
    sys.exit(main())
