"""Count the function calls of one operation of a lab.

    python experiments/calls.py                       # of this checkout
    python experiments/calls.py --at ../other         # of another checkout of memlab

``sys.setprofile`` counts once in a warm lab on disk under the default pack. Counted are calls of functions in memlab's
files, calls from another file, calls from another package (each subject of ``memlab/subjects`` is one), and the depth
of nested calls. A generator counts once; comprehensions do not count. ``--list`` names the calls across files of one
operation, the most frequent first.
"""

from __future__ import annotations

import argparse
import inspect
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

_OF_THE_CALLER = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}


class Calls:
    """Counts of the calls of one run of ``operation``."""

    def __init__(self, operation: Callable[[], object], root: str) -> None:
        self._root = root
        self.every = self.files = self.packages = self.depth = 0
        self.across: Counter[str] = Counter()
        self._resumed: set[FrameType] = set()
        sys.setprofile(self._count_event)
        try:
            operation()
        finally:
            sys.setprofile(None)

    def _count_event(self, frame: FrameType, event: str, _: Any) -> None:
        """Count one event of the profiler."""
        if event != "call" or not self._counts(frame) or frame in self._resumed:
            return
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            self._resumed.add(frame)
        self.every += 1
        above = [frame]
        outer = frame.f_back
        while outer is not None:
            if self._counts(outer):
                above.append(outer)
            outer = outer.f_back
        self.depth = max(self.depth, len(above))
        if len(above) == 1:
            return
        here, caller = (self._file(frame) for frame in above[:2])
        if here != caller:
            self.files += 1
            self.across[f"{caller} -> {here}:{frame.f_code.co_qualname}"] += 1
            self.packages += _package(here) != _package(caller)

    def _counts(self, frame: FrameType) -> bool:
        """Return whether a frame is a function of memlab."""
        code = frame.f_code
        return code.co_filename.startswith(self._root) and code.co_name not in _OF_THE_CALLER

    def _file(self, frame: FrameType) -> str:
        """Return the path of a frame within memlab."""
        return frame.f_code.co_filename[len(self._root) :]


def _package(file: str) -> str:
    """Return the package of a file."""
    parts = file.split("/")
    return "/".join(parts[:2]) if parts[0] == "subjects" else parts[0]


def count_calls(folder: Path) -> dict[str, Calls]:
    """Run each operation in a warm lab; return its counts."""
    import memlab

    root = str(Path(memlab.__file__).parent) + "/"
    texts = [
        f"Service {name} deploys on port {port}"
        for port in range(8000, 8010)
        for name in ("api", "web", "queue")
    ]
    with memlab.open(folder / "lab.memlab", pack="memlab") as lab:
        lab.remember(texts, chain=True)
        for number in range(5):
            lab.remember(f"The release {number} was late by {number} days")
            lab.remember(f"The audit {number} found {number} faults", linking="now")
        for number in range(30):
            hits = lab.recall(
                f"Which port has the {('api', 'web', 'queue')[number % 3]}, {8000 + number % 10}?"
            )
            if number % 3 == 0:
                lab.feedback(hits[0], "success")
        lab.recall("Which port has the web, 8003?")

        def slates() -> Any:
            return lab.slates() if callable(lab.slates) else lab.slates

        def evaluated() -> object:
            return memlab.evaluate(slates(), ["memlab"], missing="zero")

        evaluated()
        counts = {
            "remember": Calls(lambda: lab.remember("The release 7 was on time"), root),
            'remember, linking="now"': Calls(
                lambda: lab.remember("The release 6 was late by 6 days", linking="now"), root
            ),
            "recall, logged": Calls(lambda: lab.recall("Which port has the api, 8004?"), root),
            "slates and evaluate": Calls(evaluated, root),
        }
        logs = slates()
        memlab.evaluate(logs, ["memlab"], missing="zero")
        counts["evaluate"] = Calls(lambda: memlab.evaluate(logs, ["memlab"], missing="zero"), root)
        return counts


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--at", type=Path, help="the checkout to count (default: this one)")
    parser.add_argument(
        "--list", metavar="OPERATION", help="name the calls across files of this operation"
    )
    arguments = parser.parse_args()
    if arguments.at is not None:
        rest = ["--list", arguments.list] if arguments.list else []
        environment = {**os.environ, "PYTHONPATH": str(arguments.at.resolve())}
        sys.exit(
            subprocess.run(
                [sys.executable, __file__, *rest], env=environment, check=False
            ).returncode
        )
    with tempfile.TemporaryDirectory() as folder:
        counts = count_calls(Path(folder))
    if arguments.list:
        for where, count in counts[arguments.list].across.most_common():
            print(f"{count:5}  {where}")
        return
    print(f"{'operation':<28}{'calls':>8}{'across files':>14}{'across packages':>17}{'depth':>7}")
    for name, calls in counts.items():
        print(f"{name:<28}{calls.every:>8,}{calls.files:>14,}{calls.packages:>17,}{calls.depth:>7}")


if __name__ == "__main__":
    main()
