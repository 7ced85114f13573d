"""Random simulated runs of a lab, by one command with a seed, which prints a table.

    python -m tests.campaigns.lives --lives 2000 --seed 1

A run has about thirty steps on a lab in a directory. Steps are every verb that writes, readers in between, Ctrl-C or
SIGKILL at a random line of memlab, openings, and a restored backup. Texts, names, tags, notes and queries use the same
few strings, so that a purged string is the beginning of one name and the whole of another.

At each opening and at the end, three labs must be equal: the open lab, the lab opened from its files, and its journal
folded from the first event. Compared are frames, registers, slates, the history of policies and vectors.
After every purge, the rest must be unchanged.

The status is 1 if a lab could not be opened, differed, raised an error outside of memlab's tree, or hung. Each fault is
printed with the fewest steps that show it, and the command that repeats them.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import time
from collections.abc import Iterable, Sequence

# frames of a few rows: waking other threads costs more than it saves
os.environ.setdefault("POLARS_MAX_THREADS", "1")

from memlab.kernel.base.progress import bar
from tests.campaigns.living.life import ACTS, Lived, live
from tests.campaigns.living.verbs import VERBS

_TRIES = 60
"""The maximum number of runs that are spent on finding the fewest steps."""

_KINDS = {
    "unopenable": "unopenable",
    "differs": "frames that differ",
    "purge": "purges that changed more",
    "raw": "raw errors",
    "hung": "hung",
}


def fewest(life: Lived, without: Iterable[str]) -> Lived:
    """Return the same trouble with steps left out, halves first."""
    key, best, tries = life.troubles[0].key, life, 0
    stopped = life.troubles[0].step
    steps = [step for step in life.steps if stopped is None or step <= stopped]
    size = max(1, len(steps) // 2)
    while tries < _TRIES:
        start, shorter = 0, False
        while start < len(steps) and tries < _TRIES:
            tried = live(life.seed, [*steps[:start], *steps[start + size :]], without=without)
            tries += 1
            if any(trouble.key == key for trouble in tried.troubles):
                steps, best, shorter = list(tried.steps), tried, True
            else:
                start += size
        if size == 1 and not shorter:
            break
        size = max(1, size // 2)
    return best


def table(lives: Sequence[Lived], seconds: float) -> str:
    """Return the table of results for a reader."""
    kinds = collections.Counter(trouble.kind for life in lives for trouble in life.troubles)
    counts = {
        "lives": len(lives),
        "steps": sum(len(life.said) for life in lives),
        "refused by memlab": sum(life.refused for life in lives),
        "interrupted": sum(life.interrupted for life in lives),
        "killed": sum(life.killed for life in lives),
        "purges compared": sum(life.purged for life in lives),
        **{value: kinds[kind] for kind, value in _KINDS.items()},
    }
    return "\n".join(f"{name:<26}{count:>10,}" for name, count in counts.items()) + (
        f"\n{seconds:,.0f} s, {time.process_time():,.0f} s of one processor"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lives", type=int, default=200)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no life after so long"
    )
    parser.add_argument(
        "--without", default="", help=f"of {', '.join([*ACTS, *VERBS])}: with commas between"
    )
    parser.add_argument("--life", type=int, help="this life alone")
    parser.add_argument("--only", default="", help="these steps of it alone: with commas between")
    options = parser.parse_args()
    without = [name for name in options.without.split(",") if name]
    if unknown := set(without) - {*ACTS, *VERBS}:
        parser.error(f"--without knows no {', '.join(sorted(unknown))}")
    steps = [int(step) for step in options.only.split(",") if step] or list(range(options.steps))
    began, lives, counts = time.monotonic(), [], collections.Counter[tuple[str, str]]()
    numbers = range(options.lives) if options.life is None else [options.life]
    with bar(True, len(numbers), unit="life", desc="living") as step:
        for number in numbers:
            if time.monotonic() - began > options.seconds:
                break
            lived = live(f"{options.seed}-{number}", steps, without=without)
            lives.append(lived)
            step(1)
            for trouble in lived.troubles:
                counts[trouble.key] += 1
                if counts[trouble.key] == 1 and options.life is None:
                    lived = fewest(lived, without)
                if counts[trouble.key] == 1 or options.life is not None:
                    result = ",".join(map(str, lived.steps))
                    also = f" --without {options.without}" if options.without else ""
                    print(f"\n{trouble.kind}: {lived.troubles[0].what}")
                    print(f"  --seed {options.seed} --life {number} --only {result}{also}")
                    print("".join(f"    {line}\n" for line in lived.said), flush=True)
    print(table(lives, time.monotonic() - began))
    for (kind, what), count in counts.most_common():
        print(f"{count:>6}  {kind}: {what}")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
