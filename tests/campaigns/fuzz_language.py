"""Fuzz the policy language with hostile and honest texts: one command, seeded, a table at the end.

    python -m tests.campaigns.fuzz_language --inputs 1000000 --processes 2 --seed 1 --out findings

A share of the inputs are random valid programs (``tests/language/grammar.py``). The others are mutations of those, of
the shipped packs and of the corpus of attacks. An input that reached a new edge of the language's code is mutated
again. Each text is read and checked under an audit hook, with canaries in reach. A valid one is run on a row, and a
sample on columns and arrays over special values. A finding is written to ``--out`` in a minimal form. The status is 1
if any text

* raised anything but a ``PolicyError`` or an ``InputError``, or stopped the process,
* made Python open, import, compile or execute something, or touched a canary,
* gave a row and a column that differ in a bit, or an array beyond 1e-12 of both NumPy's and C's rounding,
* took 50 ms of processor time or more to read and check, and again when timed alone.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import sys
import tempfile
import time
from pathlib import Path

from memlab.kernel.base.progress import bar
from tests.campaigns.fuzzing.crew import Crew
from tests.campaigns.fuzzing.minimal import minimal, timed_alone
from tests.campaigns.fuzzing.session import SLOW, Session
from tests.campaigns.fuzzing.tally import Finding, Tally, kind_of


def table(
    tally: Tally, slow: list[tuple[float, str, str]], unique: dict[str, Finding], seconds: float
) -> str:
    """Return the table of results for a reader."""
    counts = collections.Counter(f.what for f in tally.findings)
    each = collections.Counter(f.what for f in unique.values())
    lines = [
        f"{'inputs':<26}{tally.inputs:>12,}   {tally.inputs / seconds:,.0f} a second, {seconds:,.0f} s",
        f"{'valid':<26}{tally.valid:>12,}   {tally.valid / max(1, tally.inputs):.1%}",
    ]
    for kind, count in tally.kinds.most_common():
        lines.append(
            f"  {kind:<24}{count:>12,}   {tally.valid_kinds[kind] / count:.1%} of them valid"
        )
    lines += [f"{name:<26}{count:>12,}" for name, count in tally.errors.most_common()]
    for kind, (worst, text, _) in sorted(tally.slowest.items()):
        beginning = repr(text[:48] + ("..." if len(text) > 48 else ""))
        lines.append(
            f"slowest {kind:<18}{1000 * worst:>9.1f} ms   {len(text):,} characters: {beginning}"
        )
    lines += [
        f"{f'over {1000 * SLOW:.0f} ms':<26}{len(slow):>12,}   when timed alone; {len(tally.slow):,} in passing",
        f"{'programs compared':<26}{tally.compared:>12,}   row, columns and arrays",
        f"{'disagreements':<26}{counts['disagreement']:>12,}   {each['disagreement']} kinds",
        f"{'crashes':<26}{counts['crash']:>12,}   {each['crash']} kinds",
        f"{'executions':<26}{counts['execution']:>12,}   {each['execution']} kinds",
        f"{'edges reached':<26}{tally.edges:>12,}   {tally.kept:,} inputs kept for them",
    ]
    return "\n".join(lines)


def written(out: Path | None, finding: Finding) -> str:
    """Return the path of the written finding, or its text."""
    if out is None:
        return f"{finding.what}: {finding.detail}\n  [{finding.slot}] {finding.text[:400]!r}"
    out.mkdir(parents=True, exist_ok=True)
    data = finding.text.encode("utf-8", "surrogatepass")
    path = out / f"{finding.what}-{hashlib.sha256(data).hexdigest()[:12]}.txt"
    path.write_bytes(data)
    path.with_suffix(".why").write_text(
        f"{finding.slot}\n{finding.detail}\n", encoding="utf-8", errors="replace"
    )
    return f"{finding.what}: {finding.detail}\n  [{finding.slot}] {path}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a folder for findings, each in a minimal form")
    options = parser.parse_args()
    started = time.monotonic()
    total = Tally()
    unique: dict[str, Finding] = {}
    with bar(sys.stderr.isatty(), options.inputs, unit="input") as step:
        for tally in Crew(options.inputs, options.processes, options.seed).run():
            total.add(tally)
            step(tally.inputs)
            for finding in tally.findings:
                unique.setdefault(kind_of(finding), finding)
    seconds = time.monotonic() - started
    with tempfile.TemporaryDirectory() as folder:
        session = Session("minimal", Path(folder))
        slow = [
            (alone, text, slot)
            for _, text, slot in total.slow
            if (alone := timed_alone(text, slot)) >= SLOW
        ]
        for kind, (_, text, slot) in list(total.slowest.items()):
            if kind != "run":
                total.slowest[kind] = (timed_alone(text, slot), text, slot)
        print(table(total, slow, unique, seconds))
        results = [minimal(session, finding) for finding in list(unique.values())[:40]]
    results += [
        Finding("slow", f"{1000 * alone:.0f} ms alone", text, slot)
        for alone, text, slot in slow[:10]
    ]
    for finding in results:
        print(written(options.out, finding))
    return 1 if results else 0


if __name__ == "__main__":
    raise SystemExit(main())
