"""Measure the recall of the privacy gate on secrets, and its false redactions in ordinary code.

    python -m tests.campaigns.find_secrets                     # as reported: phrases and numbers not used in development
    python -m tests.campaigns.find_secrets --develop           # the phrases and numbers of development

Prints the share of credentials that are redacted completely: pooled, for each kind and for each disguise. Then it
prints every redaction in five large installed packages, to be judged by eye.
"""

from __future__ import annotations

import argparse
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from memlab.kernel.privacy import screen, screen_many
from tests.campaigns.secret_forms import Case, cases, leaks

PACKAGES = ("jupyterlab", "matplotlib", "polars", "scipy", "sklearn")
_TEXT = {
    ".py",
    ".pyi",
    ".md",
    ".rst",
    ".txt",
    ".json",
    ".js",
    ".css",
    ".html",
    ".c",
    ".h",
    ".pyx",
    ".pxd",
    ".toml",
}
_LONGEST = 4_000
"""Characters of a line: a longer one is a program that was packed, or data."""


def shares(texts: list[Case]) -> dict[str, dict[str, list[bool]]]:
    """Return whether each case was redacted completely, by kind and by disguise."""
    result: dict[str, dict[str, list[bool]]] = {
        "kind": defaultdict(list),
        "disguise": defaultdict(list),
    }
    for case in texts:
        whole = not leaks(case.secret, screen(case.text).text)
        result["kind"][case.kind].append(whole)
        result["disguise"][case.disguise].append(whole)
    return result


def lines_of(package: str) -> Iterator[tuple[Path, int, str]]:
    """Yield every line of the text files of an installed package."""
    folder = Path(sysconfig.get_paths()["purelib"]) / package
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in _TEXT:
            for number, line in enumerate(
                path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
            ):
                if line.strip() and len(line) <= _LONGEST:
                    yield path.relative_to(folder.parent), number, line


def false_redactions(package: str) -> tuple[int, list[tuple[str, str, str]]]:
    """Return the number of lines of a package, and each redaction in them: position, kind and text."""
    lines = list(lines_of(package))
    redacted = []
    for (path, number, line), screening in zip(
        lines, screen_many([line for _, _, line in lines]), strict=True
    ):
        redacted += [
            (f"{path}:{number}", finding.type, line[finding.start : finding.end][:80])
            for finding in screening.findings
        ]
    return len(lines), redacted


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--develop", action="store_true", help="the phrases and the seed of development"
    )
    parser.add_argument("--each", type=int, default=8, help="texts of each kind and disguise")
    parser.add_argument("--misses", type=int, default=0, help="print so many misses of each kind")
    parser.add_argument("--no-packages", action="store_true")
    options = parser.parse_args()
    result = cases(
        seed=1 if options.develop else 20_261, each=options.each, half=0 if options.develop else 1
    )
    outcome = shares(result)
    everything = [item for some in outcome["kind"].values() for item in some]
    print(
        f"{len(result):,} texts, {len(outcome['kind'])} kinds, {len(outcome['disguise'])} disguises"
    )
    print(f"pooled {sum(everything) / len(everything):.4f}")
    for by in ("disguise", "kind"):
        print(f"\nby {by}")
        for name, some in sorted(outcome[by].items(), key=lambda item: sum(item[1]) / len(item[1])):
            print(f"  {sum(some) / len(some):.3f}  {name}")
    if options.misses:
        counts: Counter[str] = Counter()
        for case in result:
            redacted = screen(case.text).text
            if leaks(case.secret, redacted) and counts[case.kind] < options.misses:
                counts[case.kind] += 1
                print(f"\n{case.kind}, {case.disguise}\n  {case.text!r}\n  {redacted!r}")
    if not options.no_packages:
        print("\nredacted in installed packages")
        total, wrong = 0, 0
        for package in PACKAGES:
            count, redacted = false_redactions(package)
            total, wrong = total + count, wrong + len({where for where, _, _ in redacted})
            print(f"  {package}: {len(redacted)} in {count:,} lines")
            for where, kind, what in redacted:
                print(f"    {where}  {kind}  {what!r}")
        print(f"  together {wrong} in {total:,} lines, {10_000 * wrong / total:.2f} in 10,000")


if __name__ == "__main__":
    main()
