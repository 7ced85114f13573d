"""Fill the disk while a lab is in use, and check that memlab raises its own errors and loses nothing.

    python -m tests.campaigns.fulldisk                          # 20 limits for each operation
    python -m tests.campaigns.fulldisk --limits 5 --only purge

No file of the process may grow beyond a limit (``RLIMIT_FSIZE``). The limit is drawn between the size of the lab's
largest file and the size that the operation would need. A child process writes until a write is refused, several times,
as an agent would. With ``--tmpfs`` (only root can mount one) the disk is really full instead. Each refusal must be an
error of memlab, and the lab must stay readable. When it is opened with room again, it is sound and complete.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import memlab
from memlab.errors import MemlabError
from memlab.kernel.journal import data_file
from tests.campaigns.breaking import (
    QUESTIONS,
    Hung,
    add_key,
    checked,
    concluded,
    copied,
    encrypted,
    everything,
    forking,
    leftovers,
    opened,
    patience,
    picture,
    tell,
    texts,
    without_derived,
)

__all__ = ["OPERATIONS", "Operation", "Tally", "run"]

COUNTS = ("lost", "differ", "unopenable", "unsound", "told", "drafts", "raw")


@dataclass(frozen=True)
class Operation:
    """``step(lab, n)`` is done again and again, with less and less room."""

    name: str
    step: Callable[[memlab.Lab, int], object]


def _remember(lab: memlab.Lab, n: int) -> None:
    lab.remember(texts(1, first=1000 + n)[0] + " and more" * 1_000)


def _remember_many(lab: memlab.Lab, n: int) -> None:
    lab.remember(texts(300, first=1000 * (n + 1)))


def _snapshot(lab: memlab.Lab, n: int) -> None:
    lab.remember(texts(60, first=1000 * (n + 1)))
    lab.io.snapshot()


def _backup(lab: memlab.Lab, n: int) -> None:
    lab.remember(texts(60, first=1000 * (n + 1)))
    lab.io.backup()


def _purge(lab: memlab.Lab, n: int) -> None:
    lab.remember(texts(60, first=1000 * (n + 1)))
    lab.purge(len(lab))


def _close(lab: memlab.Lab, n: int) -> None:
    lab.remember(texts(60, first=1000 * (n + 1)))
    path = lab.io.path
    lab.close()
    opened(path, backups=True).close()  # type: ignore[arg-type]


def _export(lab: memlab.Lab, n: int) -> None:
    lab.remember(texts(60, first=1000 * (n + 1)))
    assert lab.io.path is not None
    for suffix in ("jsonl", "parquet", "md", "hy"):
        format = {"md": "markdown", "hy": "sexp"}.get(suffix, suffix)
        lab.io.export(lab.io.path.parent / f"export.{suffix}", format=format, overwrite=True)


OPERATIONS = (
    Operation("remember", _remember),
    Operation("remember_many", _remember_many),
    Operation("recall", lambda lab, n: lab.recall(f"{QUESTIONS[n % 3]} {n}")),
    Operation("snapshot", _snapshot),
    Operation("backup", _backup),
    Operation("purge", _purge),
    Operation("export", _export),
    Operation("close", _close),
)


# -- a process without room -----------------------------------------------------------------------------------------


def _child(name: str, folder: Path, limit: int, tries: int, pipe: Connection) -> None:
    """Do steps until three were refused; tell each (what was raised), and how many memories and events there are."""
    [operation] = [operation for operation in OPERATIONS if operation.name == name]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    lab = opened(folder)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    refused = 0
    for n in range(tries):
        problem = ""
        try:
            with patience(60):
                operation.step(lab, n)
        except MemlabError as error:
            problem = f"told {type(error).__name__}: {error}"
        except BaseException as error:  # noqa: BLE001  whatever comes out is what is looked for, a panic of Polars, too
            problem = f"raw {type(error).__name__}: {error}"
        try:
            if lab.io.store.journal.closed:
                lab = opened(folder)
            sizes = (len(lab), lab.log.height)
        except MemlabError as error:
            pipe.send((f"told {type(error).__name__}: {error}", None))
            break
        except Exception as error:  # noqa: BLE001
            pipe.send((f"raw {type(error).__name__}: {error}", None))
            break
        pipe.send((problem, sizes))
        refused += bool(problem)
        if refused == 3:
            break
    pipe.send(None)
    os._exit(0)  # as a process ends that nobody closes


@dataclass
class Tally:
    """What the limits gave for one operation; ``refused`` counts steps that the disk did not allow."""

    operation: Operation
    limits: int = 0
    steps: int = 0
    refused: int = 0
    found: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    problems: list[str] = field(default_factory=list)

    def note(self, fault: str, what: str) -> None:
        self.found[fault] += 1
        self.problems.append(f"{fault}: {what}")


def run(operation: Operation, *, limits: int, seed: int, tmpfs: bool = False) -> Tally:
    """Run ``limits`` children, each with another limit."""
    dice, tally = random.Random(f"{seed}/{operation.name}"), Tally(operation)
    context = forking("tests.campaigns.fulldisk")
    with tempfile.TemporaryDirectory(prefix="fulldisk-") as name:
        home = Path(name)
        base = home / "base"
        everything(base, recalls=4)
        minimum = data_file(base).stat().st_size
        for _ in range(limits):
            limit = minimum + round(200_000 * dice.random() ** 2)
            with (
                _mounted(home / "disk", 4 * minimum + limit)
                if tmpfs
                else contextlib.nullcontext(home / "disk") as disk
            ):
                disk.mkdir(exist_ok=True)
                folder = copied(base, disk / "lab")
                acknowledged = _live(operation, context, folder, 0 if tmpfs else limit, tally)
                _look(copied(folder, home / "after"), tally, f"limit {limit:,}", home, acknowledged)
            tally.limits += 1
    return tally


@contextlib.contextmanager
def _mounted(folder: Path, room: int) -> Iterator[Path]:
    """Mount a disk of its own with ``room`` bytes."""
    folder.mkdir(exist_ok=True)
    size = f"size={3_000 + room // 1024}k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _live(
    operation: Operation, context: Any, folder: Path, limit: int, tally: Tally
) -> tuple[int, int]:
    """Return the last numbers of memories and events that the child reported."""
    ours, its = context.Pipe()
    child = context.Process(
        target=_child, args=(operation.name, folder, limit, 30, its), daemon=True
    )
    child.start()
    its.close()
    acknowledged = (0, 0)
    try:
        while (result := ours.recv()) is not None:
            problem, sizes = result
            tally.steps += 1
            tally.refused += bool(problem)
            if problem.startswith("raw"):
                tally.note("raw", problem)
            if sizes is None:
                tally.note("unopenable", problem)
            else:
                acknowledged = sizes
    except EOFError:
        tally.note("raw", "the process died")
    child.join()
    return acknowledged


def _look(
    folder: Path, tally: Tally, where: str, home: Path, acknowledged: tuple[int, int]
) -> None:
    """Return what is wrong once there is room again: acknowledged events and memories must all be present."""
    memories, events = acknowledged
    rebuilt = without_derived(folder, home / "rebuilt")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with patience(60), opened(folder) as lab, opened(rebuilt) as other:
                if len(lab) < memories or lab.log.height < events:
                    tally.note(
                        "lost",
                        f"{where}: {memories} memories, {events} events; {len(lab)}, {lab.log.height}",
                    )
                if unlike := [n for n, value in picture(lab).items() if value != picture(other)[n]]:
                    tally.note(
                        "differ", f"{where}: {', '.join(unlike)} differ from a fold from scratch"
                    )
                sound, listed = checked(lab)
                if not sound or listed:
                    tally.note("unsound", f"{where}: {'; '.join(listed)}")
                lab.remember("there is room again")
        except MemlabError as error:
            tally.note("unopenable", f"{where}: {type(error).__name__}: {error}")
        except (Exception, Hung) as error:  # noqa: BLE001
            tally.note("raw", f"{where}: {type(error).__name__}: {error}")
    if caught:
        tally.note("told", f"{where}: {caught[0].message}")
    if left := leftovers(folder):
        tally.note("drafts", f"{where}: {', '.join(left)}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Take away the room on the disk, and look what is lost."
    )
    parser.add_argument("--limits", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only operations whose name contains this")
    parser.add_argument(
        "--tmpfs",
        action="store_true",
        help="a disk that is full, in place of files that may not grow",
    )
    add_key(parser)
    options = parser.parse_args()
    with encrypted(options.key):
        return measure(options)


def measure(options: argparse.Namespace) -> int:
    """Run the campaign and print its table."""
    print(
        f"{'operation':<16}{'limits':>7}{'steps':>7}{'refused':>9}"
        + "".join(f"{name:>11}" for name in COUNTS)
    )
    totals = dict.fromkeys(COUNTS, 0)
    for operation in OPERATIONS:
        if options.only not in operation.name:
            continue
        tally = run(operation, limits=options.limits, seed=options.seed, tmpfs=options.tmpfs)
        row = "".join(f"{tally.found[name]:>11}" for name in COUNTS)
        text = f"{operation.name:<16}{tally.limits:>7}{tally.steps:>7}{tally.refused:>9}{row}"
        tell(text, tally.problems, tally.found, totals)
    return concluded(totals)


if __name__ == "__main__":
    sys.exit(main())
