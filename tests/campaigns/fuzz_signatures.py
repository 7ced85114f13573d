"""Junk for every argument of every public callable: one command, seeded, counts at the end.

    python -m tests.campaigns.fuzz_signatures --cases 25000 --seed 1

Without ``--cases`` all are tried. The status is 1 if a call raised anything from outside of ``memlab.MemlabError``,
accepted what must be refused, or changed a lab that refused it. A short run is ``tests/test_signatures.py``.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.campaigns.fuzzing.signatures import cases, fuzz, sampled


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=None, help="how many; all unless given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="callables whose name holds this")
    options = parser.parse_args()
    chosen = sampled(len(cases()) if options.cases is None else options.cases, options.seed)
    chosen = [case for case in chosen if options.only in case.call]
    began = time.monotonic()
    report = fuzz(chosen)
    print(report)
    print(f"{'seconds':<12}{time.monotonic() - began:>9,.0f}")
    return 1 if report.raw or report.nonsense or report.changed else 0


if __name__ == "__main__":
    sys.exit(main())
