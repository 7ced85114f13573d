"""Run the tests under ten seeds of Hypothesis and on two kinds of processor: one command, a table at the end.

    python -m tests.campaigns.steady_tests
    python -m tests.campaigns.steady_tests --seeds 3 --thorough tests/graph tests/index -k property

Arguments after the options go to pytest. The first seed of a processor runs every test; the others run the property
tests, because a seed does not matter to the rest. ``--thorough`` draws ten times the examples. The second processor is
this one without newer features: NumPy's vector instructions beyond its baseline and OpenBLAS's kernels. Sums,
exponentials and products are therefore rounded in another order. The seeds are divided between the two processors unless
``--each`` runs all of them on both. The status is 1 if any test failed anywhere; each failure is printed with its seed
and processor.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from numpy._core import _multiarray_umath as built

_ROOT = Path(__file__).parents[2]
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|deselected)")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def processors() -> dict[str, dict[str, str]]:
    """Return the environment variables for NumPy and OpenBLAS, by kind of processor."""
    beyond = [name for name in built.__cpu_dispatch__ if built.__cpu_features__.get(name)]
    older = {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1"}
    return {"this one": {}, "an older one": {**older, "NPY_DISABLE_CPU_FEATURES": " ".join(beyond)}}


def run_tests(
    seed: int, environment: Mapping[str, str], arguments: Sequence[str]
) -> tuple[dict[str, int], list[str], str]:
    """Return the counts, the failed tests and the output of one pytest run without a cache."""
    with tempfile.TemporaryDirectory(prefix="memlab-steady-") as folder:
        variables = {**os.environ, **environment, "HYPOTHESIS_STORAGE_DIRECTORY": folder}
        options = ["-q", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}"]
        command = [sys.executable, "-m", "pytest", *options, "--tb=short", *arguments]
        done = subprocess.run(
            command, cwd=_ROOT, env=variables, capture_output=True, text=True, check=False
        )
    output = done.stdout + done.stderr
    last = done.stdout.strip().splitlines()[-1:] or [""]
    counts = {name.rstrip("s"): int(number) for number, name in _COUNT.findall(last[0])}
    if done.returncode not in (0, 1):
        raise SystemExit(f"pytest ended with {done.returncode}:\n{output[-3000:]}")
    return counts, _FAILED.findall(output), output


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--each", action="store_true", help="every seed on both processors")
    parser.add_argument(
        "--thorough", action="store_true", help="200 examples of every property, not 20"
    )
    parser.add_argument(
        "--say", action="store_true", help="print what pytest said of a run that failed"
    )
    options, arguments = parser.parse_known_args()
    kinds = list(processors().items())
    runs = [
        (seed, *kind)
        for index, seed in enumerate(range(options.first, options.first + options.seeds))
        for kind in (kinds if options.each else [kinds[index % len(kinds)]])
    ]
    print(f"{'seed':>4}  {'processor':<14}{'passed':>8}{'failed':>8}{'seconds':>9}")
    failing: collections.defaultdict[str, list[str]] = collections.defaultdict(list)
    profile = ["--hypothesis-profile=thorough"] if options.thorough else []
    unique: set[str] = set()
    for seed, name, environment in runs:
        began = time.monotonic()
        chosen = ["-m", "hypothesis and not slow"] if name in unique else []
        unique.add(name)
        counts, failed, output = run_tests(seed, environment, [*profile, *chosen, *arguments])
        seconds, bad = time.monotonic() - began, counts.get("failed", 0) + counts.get("error", 0)
        print(
            f"{seed:>4}  {name:<14}{counts.get('passed', 0):>8,}{bad:>8,}{seconds:>9,.0f}",
            flush=True,
        )
        for test in failed:
            failing[test].append(f"{seed} on {name}")
        if failed and options.say:
            print(output)
    for test, where in failing.items():
        print(f"{test}: seed {', '.join(where)}")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
