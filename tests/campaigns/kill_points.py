"""Kill a lab's process during an operation, open the lab, and check that nothing is lost, halved or left behind.

    python -m tests.campaigns.kill_points                       # 20 kill points in each of 15 operations
    python -m tests.campaigns.kill_points --points 4 --only purge --seed 3

A child process runs the steps of one operation and acknowledges each over a pipe. For half of the points, ``kill -9``
ends it at a random instant of a duration that was measured first. For the other half it dies at a random line of memlab.

The same steps ran once without a kill, with a picture of the lab after each. The lab that is opened after the kill must
equal the picture after the last acknowledged step, or after the step under way. It must equal the fold of the journal
in a copy without snapshots, slates and indexes; and it must be sound. No byte of it holds purged text, no draft is
left, and it can be written to.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import polars as pl

import memlab
from memlab.errors import MemlabError
from tests.campaigns.breaking import (
    PACKAGE,
    QUESTIONS,
    Hung,
    add_key,
    checked,
    concluded,
    copied,
    embed,
    embed_otherwise,
    encrypted,
    everything,
    forking,
    leftovers,
    low_thresholds,
    many,
    opened,
    opened_by_either,
    patience,
    picture,
    tell,
    texts,
    without_derived,
)

__all__ = ["OPERATIONS", "Operation", "Tally", "run"]

LATER = 24 * 60
"""Hours after the beginning at which every picture is taken."""

COUNTS = ("lost", "half", "differ", "bytes", "unopenable", "unsound", "told", "drafts", "raw")


@dataclass
class Stage:
    """The lab that an operation uses; the operation may close it and open another lab instead."""

    folder: Path
    lab: memlab.Lab

    def opened_anew(self, hours: float, **more: Any) -> None:
        self.lab.close()
        self.lab = opened(self.folder, hours=hours, **more)


@dataclass(frozen=True)
class Operation:
    """``step(stage, n)`` does the same whenever it is called with the same ``n`` on the same lab."""

    name: str
    step: Callable[[Stage, int], object]
    steps: int = 12
    prepare: Callable[[Path], None] = everything
    purges: bool = False


# -- what is done ---------------------------------------------------------------------------------------------------


def _remember(stage: Stage, n: int) -> None:
    stage.lab.remember(texts(1, first=1000 + n)[0], session="s", chain=True, tags=["killed"])


def _remember_many(stage: Stage, n: int) -> None:
    rows = [
        {"text": text, "session": "s", "tags": ["killed"]}
        for text in texts(200, first=1000 * (n + 1))
    ]
    stage.lab.remember(rows, chain=True)


def _recall(stage: Stage, n: int) -> None:
    stage.lab.recall(f"{QUESTIONS[n % 3]} {n}")


def _feedback(stage: Stage, n: int) -> None:
    stage.lab.feedback(n % 3 + 1, ("success", "fail")[n % 2])


def _edit(stage: Stage, n: int) -> None:
    if n % 2:
        stage.lab.edit(10 + n, importance=0.1 + 0.01 * n)
    else:
        stage.lab.edit(10 + n, text=texts(1, first=2000 + n)[0])


def _purge(stage: Stage, n: int) -> None:
    stage.lab.purge(PURGED[n])


PURGED = (12, 13, 16, 20)
"""Memories whose texts are ``texts(30)[id - 1]``, and nothing else says the same."""


def _snapshot(stage: Stage, n: int) -> None:
    if n % 2:
        stage.lab.io.snapshot()
    else:
        stage.lab.remember(texts(50, first=1000 * (n + 1)))


def _backup(stage: Stage, n: int) -> None:
    if n % 2:
        stage.lab.io.backup()
    else:
        stage.lab.remember(texts(20, first=1000 * (n + 1)))


def _restore(stage: Stage, n: int) -> None:
    if n % 2:
        stage.lab.close()
        memlab.restore(stage.folder, sorted((stage.folder / "backups").glob("backup-*"))[-1])
        stage.lab = opened(stage.folder)
    else:
        stage.lab.remember(texts(20, first=1000 * (n + 1)))


def _maintain(stage: Stage, n: int) -> None:
    clock: Any = stage.lab.io.store.clock
    clock.advance(hours=12)
    stage.lab.upkeep.maintain(progress=False)


def _consolidate(stage: Stage, n: int) -> None:
    if n % 2:
        stage.lab.upkeep.consolidation.run(
            older_than_days=0, keep=0, summarise=lambda texts: f"summary {n} of {len(texts)}"
        )
    else:
        rows = [f"goat sea bakery tabs deploy mark{n}x{i}q" for i in range(12)]
        stage.lab.remember(rows + [f"garden music engine river mark{n}y{i}q" for i in range(12)])


def _install(stage: Stage, n: int) -> None:
    if n % 3 == 2:
        stage.lab.policies.rollback("recall-score")
    else:
        stage.lab.policies.install(
            "recall-score", f"(fn [similarity lexical] (+ similarity (* {n} lexical)))"
        )


def _reembed(stage: Stage, n: int) -> None:
    stage.opened_anew(0, embedder=(embed_otherwise, embed)[n % 2], reembed=True)


def _load(stage: Stage, n: int) -> None:
    stage.lab.load(stage.folder.parent / "exports" / f"{n}.jsonl")


def _build_index(stage: Stage, n: int) -> None:
    if n % 2:
        stage.lab.remember(texts(4_096, first=10_000 * n))
    stage.lab.upkeep.index.rebuild()


def _prepare_exports(path: Path) -> None:
    everything(path)
    (path.parent / "exports").mkdir()
    for n in range(6):
        with memlab.open(embedder=embed) as other:
            other.remember(
                [{"text": text, "session": "s"} for text in texts(150, first=1000 * (n + 5))],
                chain=True,
            )
            other.io.export(path.parent / "exports" / f"{n}.jsonl")


def _prepare_many(path: Path) -> None:
    many(path, 4_200)


OPERATIONS = (
    Operation("remember", _remember),
    Operation("remember_many", _remember_many),
    Operation("recall", _recall, steps=20),
    Operation("feedback", _feedback, steps=20),
    Operation("edit", _edit, steps=10),
    Operation("purge", _purge, steps=len(PURGED), purges=True),
    Operation("snapshot", _snapshot),
    Operation("backup", _backup),
    Operation("restore", _restore, steps=6),
    Operation("maintain", _maintain, steps=8),
    Operation("consolidate", _consolidate, steps=4),
    Operation("policy install", _install),
    Operation("re-embedding", _reembed, steps=4),
    Operation("import", _load, steps=6, prepare=_prepare_exports),
    Operation("index build", _build_index, steps=2, prepare=_prepare_many),
)


# -- what must have come of it --------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What the kills in one operation gave: ``found`` counts by the names of ``COUNTS``, ``problems`` says where."""

    operation: Operation
    points: int = 0
    acknowledged: int = 0
    found: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _After:
    """The lab after a step: its picture, and the kinds of its events in order, but for sealing, which a look does."""

    picture: dict[str, str]
    events: list[str]


def _look(lab: memlab.Lab) -> _After:
    log = lab.log
    clock: Any = lab.io.store.clock
    before = clock()
    clock.set(START_LATER)
    # A look that seals would shift the numbers of all later events, which a killed process did not do.
    unsealed = mock.patch("memlab.kernel.storage.store._SEAL_EVERY", sys.maxsize)
    try:
        with unsealed:
            return _After(picture(lab), [kind for kind in log["kind"] if kind != "seal"])
    finally:
        clock.set(before)


START_LATER = memlab.ManualClock("2026-05-01").now


def _begins(longer: list[str], shorter: list[str]) -> bool:
    return longer[: len(shorter)] == shorter


def _reference(operation: Operation, base: Path, scratch: Path) -> list[_After]:
    """Return the pictures before the first step and after each step of a run without a kill."""
    folder = copied(base, scratch / "reference")
    stage = Stage(folder, opened(folder))
    afters = [_look(stage.lab)]
    for n in range(operation.steps):
        operation.step(stage, n)
        afters.append(_look(stage.lab))
    stage.lab.close()
    return afters


class _Trial:
    """One kill, and the faults of the lab that it left."""

    def __init__(self, operation: Operation, folder: Path, done: int, afters: list[_After]) -> None:
        self.operation, self.folder, self.done = operation, folder, done
        self.before, self.after = afters[done], afters[min(done + 1, len(afters) - 1)]
        self.faults: dict[str, str] = {}

    def look(self) -> dict[str, str]:
        scratch = without_derived(self.folder, self.folder.parent / "scratch")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with patience(60):
                    self._look(scratch)
            except MemlabError as error:
                self.faults["unopenable"] = f"{type(error).__name__}: {error}"
            except (Hung, Exception) as error:  # noqa: BLE001  whatever comes out is what is looked for
                self.faults["unopenable"] = self.faults["raw"] = f"{type(error).__name__}: {error}"
        if caught:
            self.faults["told"] = str(caught[0].message)
        if left := leftovers(self.folder):
            self.faults["drafts"] = ", ".join(left)
        return self.faults

    def _look(self, scratch: Path) -> None:
        with opened_by_either(self.folder) as lab:
            now = _look(lab)
            sound, listed = checked(lab)
            if not sound or listed:
                self.faults["unsound"] = "; ".join(listed)
            purged = lab.memories.filter(pl.col("status") == "purged")["id"].to_list()
        with opened_by_either(scratch) as lab:
            rebuilt = _look(lab)
        self._compare(now, rebuilt)
        if self.operation.purges and (result := self._bytes_of(purged)):
            self.faults["bytes"] = result
        with opened_by_either(self.folder) as lab:
            count = len(lab)
            if lab.remember("written after the kill").id != count + 1 or _look(lab).picture[
                "memories"
            ] != _past(lab):
                self.faults["differ"] = "what is written after the kill"
            if self.operation.name == "index build":
                lab.upkeep.index.rebuild()  # also waits for a builder that outlived its parent

    def _compare(self, now: _After, rebuilt: _After) -> None:
        if differ := [name for name in now.picture if now.picture[name] != rebuilt.picture[name]]:
            self.faults["differ"] = f"{', '.join(differ)} differ from a fold from scratch"
        if not any(_begins(now.events, step.events) for step in (self.before, self.after)):
            self.faults["lost"] = (
                f"{len(self.before.events)} events were there, {len(now.events)} are"
            )
        elif now.picture not in (self.before.picture, self.after.picture) and not self._between(
            now
        ):
            nearest = min((self.before, self.after), key=lambda step: len(_unlike(now, step)))
            self.faults["half"] = f"{', '.join(_unlike(now, nearest))} of neither before nor after"

    def _between(self, now: _After) -> bool:
        """Return whether the lab has some, not all, of the events of a step that writes several."""
        return (
            len(self.before.events) < len(now.events) < len(self.after.events)
            and _begins(now.events, self.before.events)
            and _begins(self.after.events, now.events)
        )

    def _bytes_of(self, purged: list[int]) -> str:
        """List the files that still contain a word of a purged text."""
        words = [texts(30)[id - 1].split()[-1].encode() for id in PURGED if id in purged]
        files = [item for item in self.folder.rglob("*") if item.is_file()]
        results = [
            str(item.relative_to(self.folder))
            for item in files
            if any(w in item.read_bytes() for w in words)
        ]
        return ", ".join(results)


def _unlike(first: _After, second: _After) -> list[str]:
    return [name for name in first.picture if first.picture[name] != second.picture[name]]


def _past(lab: memlab.Lab) -> str:
    return _look(lab.at(event=lab.log["event"][-1], progress=False)).picture["memories"]


# -- killing --------------------------------------------------------------------------------------------------------


def _child(name: str, folder: Path, pipe: Connection, line: int | None, key: str | None) -> None:
    """Do the steps, acknowledge each, and wait to be killed; at the ``line``-th line of memlab, die. 0 only counts."""
    # The server of forks may have been started before the key was set.
    with encrypted(key), low_thresholds():
        _live(name, folder, pipe, line)


def _live(name: str, folder: Path, pipe: Connection, line: int | None) -> None:
    [operation] = [operation for operation in OPERATIONS if operation.name == name]
    stage = Stage(folder, opened(folder))
    seen = 0

    def on_line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen
        if event == "line":
            seen += 1
            if seen == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return on_line

    def on_call(frame: FrameType, event: str, argument: Any) -> Any:
        return on_line if frame.f_code.co_filename.startswith(PACKAGE) else None

    pipe.send_bytes(b"go")
    began = time.perf_counter()
    if line is not None:
        threading.settrace(on_call)
        sys.settrace(on_call)
    for n in range(operation.steps):
        operation.step(stage, n)
        pipe.send_bytes(b"step")
    sys.settrace(None)
    pipe.send_bytes(f"{time.perf_counter() - began} {seen}".encode())
    signal.pause()


class _Killer:
    """Children that die; they are forked from a server that has imported all that they need."""

    def __init__(self) -> None:
        self._context = forking("tests.campaigns.kill_points")

    def run(
        self, operation: Operation, folder: Path, *, wait: float | None, line: int | None
    ) -> tuple[int, bytes]:
        """Run the child; return the number of acknowledged steps, and the measurements of a child that was not killed."""
        ours, its = self._context.Pipe()
        child = self._context.Process(
            target=_child,
            args=(operation.name, folder, its, line, os.environ.get("MEMLAB_KEY")),
            daemon=True,
        )
        child.start()
        its.close()
        done, last = 0, b""
        deadline: float | None = None
        try:
            while ours.poll(None if deadline is None else max(0.0, deadline - time.perf_counter())):
                result = ours.recv_bytes()
                if result == b"go":
                    deadline = None if wait is None else time.perf_counter() + wait
                elif result == b"step":
                    done += 1
                else:
                    last = result
                    if line is not None or wait is None:
                        break
            child.kill()
            while ours.poll(1):  # what it said before it died
                done += ours.recv_bytes() == b"step"
        except EOFError:
            pass  # it is dead, and all that it said was read
        child.kill()
        child.join()
        ours.close()
        if child.exitcode != -signal.SIGKILL:
            raise RuntimeError(
                f"The child that does {operation.name} ended by itself ({child.exitcode})."
            )
        return done, last


def run(operation: Operation, *, points: int, seed: int) -> Tally:
    """Kill ``points`` children in ``operation``."""
    dice = random.Random(f"{seed}/{operation.name}")
    tally, killer = Tally(operation), _Killer()
    with low_thresholds(), tempfile.TemporaryDirectory(prefix="kill-points-") as scratch:
        home = Path(scratch)
        base = home / "base"
        operation.prepare(base)
        with opened(base) as lab:
            _look(lab)  # seals what is due, so that no later look does
        afters = _reference(operation, base, home)
        seconds, lines = (
            float(
                killer.run(operation, copied(base, home / "lab"), wait=None, line=line)[1].split()[
                    n
                ]
            )
            for n, line in enumerate((None, 0))
        )
        for point in range(points):
            by_line = point % 2 == 1
            line = dice.randint(1, round(lines)) if by_line else None
            wait = None if by_line else dice.uniform(0, 1.05 * seconds)
            folder = copied(base, home / "lab")
            done, _ = killer.run(operation, folder, wait=wait, line=line)
            faults = _Trial(operation, folder, done, afters).look()
            tally.points += 1
            tally.acknowledged += done
            where = (
                f"line {line:,} of {lines:,.0f}" if by_line else f"{wait:.4f} s of {seconds:.4f}"
            )
            for fault, what in faults.items():
                tally.found[fault] += 1
                tally.problems.append(f"{fault} (point {point}, {where}, {done} steps): {what}")
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only operations whose name contains this")
    add_key(parser)
    options = parser.parse_args()
    with encrypted(options.key):
        return measure(options)


def measure(options: argparse.Namespace) -> int:
    """Run the campaign and print its table."""
    print(
        f"{'operation':<16}{'points':>7}{'acknowledged':>13}"
        + "".join(f"{name:>11}" for name in COUNTS)
    )
    totals = dict.fromkeys(COUNTS, 0)
    for operation in OPERATIONS:
        if options.only not in operation.name:
            continue
        tally = run(operation, points=options.points, seed=options.seed)
        row = "".join(f"{tally.found[name]:>11}" for name in COUNTS)
        tell(
            f"{operation.name:<16}{tally.points:>7}{tally.acknowledged:>13}{row}",
            tally.problems,
            tally.found,
            totals,
        )
    return concluded(totals)


if __name__ == "__main__":
    sys.exit(main())
