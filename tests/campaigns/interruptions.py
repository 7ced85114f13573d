"""Interrupt a lab at every line of its operations, and check the open lab and the files on disk.

    python -m tests.campaigns.interruptions                              # every line of each operation: about an hour
    python -m tests.campaigns.interruptions --only fold --most 100       # 100 lines of one operation, drawn by the seed
    python -m tests.campaigns.interruptions --signals 200                # and 200 signals at random instants each

An operation is traced once, which lists the lines of memlab that it reaches. For each of these lines it then runs on a
copy of the same lab, and a KeyboardInterrupt is raised the first time the line is reached. Signals come from a timer
instead, at any instruction, as Ctrl-C does.

Afterwards the lab must be what its journal says: equal to the journal folded from its beginning, with the operation done
or not begun. The next memory has the next id. The lab that is opened from the disk is the same, with and without the
files that are derived from the journal.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

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
    embed_otherwise,
    encrypted,
    everything,
    leftovers,
    opened,
    opened_by_either,
    patience,
    tell,
    texts,
    without_derived,
)

__all__ = ["OPERATIONS", "Operation", "Tally", "interrupted_by_signals", "interrupted_everywhere"]

Place = tuple[str, int]
LATER = 24.0 * 5
LONGEST = 90.0
"""Seconds that an interrupted operation may take; locks are waited for up to 60."""

COUNTS = ("live", "disk", "lost", "hung", "drafts", "raw")


@dataclass(frozen=True)
class Operation:
    """``do(lab)`` is interrupted. It may close the lab and return another one. ``first(lab)`` is done before it."""

    name: str
    do: Callable[[memlab.Lab], memlab.Lab | None]
    first: Callable[[memlab.Lab], None] = lambda lab: None


def _nothing(done: object) -> None:
    """Ignore the result of an operation."""


def _written_elsewhere(lab: memlab.Lab) -> None:
    """Write an event of every usual kind through another handle, so that there is something to fold."""
    with opened(_path(lab), hours=LATER) as other:
        _write_much(other)


def _purged_elsewhere(lab: memlab.Lab) -> None:
    with opened(_path(lab), hours=LATER) as other:
        other.purge(12)


def _path(lab: memlab.Lab) -> Path:
    assert lab.io.path is not None
    return lab.io.path


def _write_much(lab: memlab.Lab) -> None:
    lab.remember(
        [{"text": text, "session": "x", "tags": ["new"]} for text in texts(4, first=500)],
        chain=True,
    )
    lab.facts.add("Bela", "lives-in", object="Porto")
    lab.facts.entities.declare("Bela Q", type="person")
    lab.facts.entities.merge("Bela Q", "Bela")
    hits = lab.recall(QUESTIONS[0])
    lab.feedback(hits[0], "success")
    lab.edit(3, importance=0.9)
    lab.graph.link(4, 1, "relates-to")
    lab.forget(6)
    lab.policies.install("recall-score", "(fn [similarity] (* 2 similarity))")


def _remember_many(lab: memlab.Lab) -> None:
    rows = [{"text": text, "session": "x", "tags": ["new"]} for text in texts(6, first=500)]
    lab.remember(rows, chain=True)


def _install(lab: memlab.Lab) -> None:
    lab.policies.install("recall-score", f"(fn [recency] (* {next(_DIFFERENT)} recency))")


_DIFFERENT = itertools.count(2)
"""Numbers that make a policy another one, which has to be compiled."""


def _consolidate(lab: memlab.Lab) -> None:
    lab.upkeep.consolidation.run(
        older_than_days=0, keep=0, summarise=lambda texts: f"summary of {len(texts)}"
    )


def _maintain(lab: memlab.Lab) -> None:
    clock: Any = lab.io.store.clock
    clock.advance(hours=30)
    lab.upkeep.maintain(progress=False)
    clock.advance(hours=-30)


def _close(lab: memlab.Lab) -> memlab.Lab:
    lab.close()
    return opened(_path(lab), hours=LATER)


def _open(lab: memlab.Lab) -> memlab.Lab:
    with opened(_path(lab), hours=LATER, backups=True) as other:
        len(other)
    return lab


def _reembed(lab: memlab.Lab) -> memlab.Lab:
    lab.close()
    return opened(_path(lab), hours=LATER, embedder=embed_otherwise, reembed=True)


def _restore(lab: memlab.Lab) -> memlab.Lab:
    lab.close()
    memlab.restore(_path(lab), sorted((_path(lab) / "backups").glob("backup-*"))[-1])
    return opened(_path(lab), hours=LATER)


OPERATIONS = (
    Operation("fold", lambda lab: _nothing(len(lab)), _written_elsewhere),
    Operation("fold of a purge", lambda lab: _nothing(len(lab)), _purged_elsewhere),
    Operation(
        "remember",
        lambda lab: _nothing(lab.remember(texts(1, first=500)[0], session="x", tags=["new"])),
    ),
    Operation("remember_many", _remember_many),
    Operation("recall", lambda lab: _nothing(lab.recall(QUESTIONS[0]))),
    Operation("feedback", lambda lab: _nothing(lab.feedback(3, "success"))),
    Operation("edit", lambda lab: _nothing(lab.edit(3, text="the sea is cold in winter"))),
    Operation("link", lambda lab: _nothing(lab.graph.link(4, 1, "relates-to"))),
    Operation("policy install", _install),
    Operation("purge", lambda lab: _nothing(lab.purge(12))),
    Operation("snapshot", lambda lab: _nothing(lab.io.snapshot())),
    Operation("backup", lambda lab: _nothing(lab.io.backup())),
    Operation("maintain", _maintain),
    Operation("cluster", lambda lab: _nothing(lab.graph.clusters.find())),
    Operation("consolidate", _consolidate),
    Operation("close", _close),
    Operation("open", _open),
    Operation("re-embedding", _reembed),
    Operation("restore", _restore),
)


_BLOCK: Any = contextlib._GeneratorContextManager
"""What opens and closes a block of memlab's own context managers: an interrupt may strike there as well."""


# -- interrupting ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _traced(on_line: Callable[[Place], None]) -> Iterator[None]:
    """Call ``on_line`` before each line of memlab that this thread comes to, and before a block opens or closes."""

    def line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            on_line((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def reached(step: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(block: Any, *arguments: Any) -> Any:
            code = block.gen.gi_code
            if code.co_filename.startswith(PACKAGE):
                on_line((f"{step.__name__} of {code.co_qualname}", code.co_firstlineno))
            return step(block, *arguments)

        return stepping

    steps = {name: getattr(_BLOCK, name) for name in ("__enter__", "__exit__")}
    for name, step in steps.items():
        setattr(_BLOCK, name, reached(step))
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(None)
        for name, step in steps.items():
            setattr(_BLOCK, name, step)


@contextlib.contextmanager
def _raising_at(position: Place) -> Iterator[None]:
    raised = False

    def at_line(here: Place) -> None:
        nonlocal raised
        if here == position and not raised:
            raised = True
            raise KeyboardInterrupt

    with patience(LONGEST), _traced(at_line):
        yield


@contextlib.contextmanager
def _signalled(after: float) -> Iterator[None]:
    """Raise KeyboardInterrupt, as Ctrl-C does, after so many seconds; ``Hung`` if nothing has come of it long after.

    Python ignores an exception that is raised in a callback of a weak reference or in ``__del__``: the signal comes
    again then.
    """
    errors: list[BaseException] = [Hung("no answer to a signal"), KeyboardInterrupt()]

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if errors:
            raise errors.pop()

    def on_ignored(ignored: Any) -> None:
        if isinstance(ignored.exc_value, KeyboardInterrupt):
            errors.append(KeyboardInterrupt())
            signal.setitimer(signal.ITIMER_REAL, 0.001, LONGEST)
        else:
            report(ignored)

    before, report = signal.signal(signal.SIGALRM, on_signal), sys.unraisablehook
    sys.unraisablehook = on_ignored
    signal.setitimer(signal.ITIMER_REAL, after, LONGEST)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = report
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """Collect no garbage, because an interrupt inside a collection cannot be caught: earlier labs are freed elsewhere."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# -- looking --------------------------------------------------------------------------------------------------------

Seen = tuple[Any, ...]


def _read(lab: memlab.Lab) -> Seen:
    """Return what is compared: quicker than a whole picture, and everything that is folded into rows."""
    return (
        lab.memories.write_ndjson(),
        lab.edges.write_ndjson(),
        lab.facts.entities.frame().write_ndjson(),
        lab.policies.pack.hash,
        [(hit.id, hit.text) for hit in lab.recall(QUESTIONS[1], limit=5, log=False)],
    )


def _events(lab: memlab.Lab) -> list[tuple[int, str]]:
    log = lab.log
    return list(zip(log["event"], log["kind"], strict=True))


_NAMES = ("memories", "edges", "entities", "pack", "recall")


def _unlike(first: Seen, second: Seen) -> str:
    return ", ".join(name for name, a, b in zip(_NAMES, first, second, strict=True) if a != b)


class _Look:
    """What is wrong with a lab, and with its folder, after it was interrupted in an operation."""

    def __init__(self, lab: memlab.Lab, folder: Path, before: list[tuple[int, str]]) -> None:
        self.lab, self.folder, self.before = lab, folder, before
        self.faults: dict[str, str] = {}

    def look(self) -> dict[str, str]:
        live = self._guarded("live", self._live)
        disk = self._guarded("disk", self._disk)
        if live and disk and (unlike := _unlike(live, disk)):
            self.faults.setdefault("disk", f"{unlike} differ from the live lab")
        gc.collect()  # a handle whose closing was interrupted is closed when it is collected
        if left := leftovers(self.folder):
            self.faults["drafts"] = ", ".join(left)
        return self.faults

    def _guarded(self, what: str, look: Callable[[], Seen]) -> Seen | None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with patience(20):
                    reading = look()
            except MemlabError as error:
                self.faults[what] = f"{type(error).__name__}: {error}"
                return None
            except Hung as error:
                self.faults[what] = self.faults["hung"] = str(error)
                return None
            except Exception as error:  # noqa: BLE001  whatever comes out is what is looked for
                self.faults[what] = self.faults["raw"] = f"{type(error).__name__}: {error}"
                return None
        if messages := [
            str(item.message) for item in caught if not issubclass(item.category, ResourceWarning)
        ]:
            self.faults[what] = f"warned: {messages[0]}"
        return reading

    def _live(self) -> Seen:
        lab = self.lab
        if _events(lab)[: len(self.before)] != self.before:
            self.faults["lost"] = "events that were acknowledged"
        self._same(lab, "as the journal has it")
        count = len(lab)
        if lab.remember("what is written after it", session="y").id != count + 1:
            self.faults["live"] = "an id that is not the next"
        if lab[count + 1].text != "what is written after it":
            self.faults["live"] = "another text than was remembered"
        lab.recall("written after")
        self._same(lab, "as the journal has it, after it was written")
        reading = _read(lab)
        lab.close()
        return reading

    def _same(self, lab: memlab.Lab, what: str) -> None:
        past = lab.at(event=_events(lab)[-1][0], progress=False)
        if unlike := [
            n for n in ("memories", "edges") if not getattr(lab, n).equals(getattr(past, n))
        ]:
            self.faults["live"] = f"{', '.join(unlike)} not {what}"

    def _disk(self) -> Seen:
        rebuilt = without_derived(self.folder, self.folder.parent / "rebuilt")
        with opened_by_either(self.folder, hours=LATER) as lab:
            reading = _read(lab)
            sound, listed = checked(lab)
            if not sound or listed:
                self.faults["disk"] = "; ".join(listed)
            if _events(lab)[: len(self.before)] != self.before:
                self.faults["lost"] = "events that were acknowledged"
        with opened_by_either(rebuilt, hours=LATER) as lab:
            if unlike := _unlike(reading, _read(lab)):
                self.faults["disk"] = f"{unlike} differ from a fold from scratch"
        return reading


# -- the campaign ---------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What the interruptions of one operation gave."""

    operation: Operation
    tried: int = 0
    missed: int = 0
    """Interruptions that came when all was over."""
    found: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    problems: list[str] = field(default_factory=list)

    def add(self, where: str, faults: dict[str, str] | None) -> None:
        if faults is None:
            self.missed += 1
            return
        self.tried += 1
        for fault, what in faults.items():
            self.found[fault] += 1
            self.problems.append(f"{fault} at {where}: {what}")


def lines_of(operation: Operation, base: Path, scratch: Path) -> list[Place]:
    """Return the lines of memlab that the operation reaches, each once, in order."""
    lab = opened(copied(base, scratch / "lab"), hours=LATER)
    reached: dict[Place, None] = {}
    operation.first(lab)
    with _traced(lambda position: reached.setdefault(position)):
        lab = operation.do(lab) or lab
    lab.close()
    return list(reached)


def _interrupted(
    operation: Operation, base: Path, scratch: Path, by: contextlib.AbstractContextManager[None]
) -> dict[str, str] | None:
    """Return the faults after one interruption; None if it did not come in time."""
    folder = copied(base, scratch / "lab")
    lab = opened(folder, hours=LATER)
    before = _events(lab)
    operation.first(lab)
    try:
        with _nothing_collected(), by:
            other = operation.do(lab)
    except KeyboardInterrupt:
        pass
    except Hung as error:
        return {"hung": f"the operation itself: {error}"}
    else:
        (other or lab).close()
        return None
    if operation.name == "restore":
        before = [event for event in before if event[0] <= _of_backup(base)]
    try:
        if lab.io.store.journal.closed:  # the operation had closed it
            lab = opened_by_either(folder, hours=LATER)
    except (MemlabError, KeyboardInterrupt, Exception) as error:  # noqa: BLE001  it is what is looked for
        return {"disk": f"{type(error).__name__}: {error}"}
    try:
        return _Look(lab, folder, before).look()
    finally:
        with contextlib.suppress(Exception):
            lab.close()


def _of_backup(base: Path) -> int:
    return max(int(path.name.split("-")[2]) for path in (base / "backups").glob("backup-*"))


def interrupted_everywhere(
    operation: Operation, base: Path, *, limit: int | None, seed: int, only: str = ""
) -> Tally:
    """Raise at every line of ``operation`` in turn, or at ``most``; ``only`` where the file or block holds this."""
    tally = Tally(operation)
    with tempfile.TemporaryDirectory(prefix="interruptions-") as name:
        scratch = Path(name)
        places = [
            position for position in lines_of(operation, base, scratch) if only in position[0]
        ]
        if limit is not None and limit < len(places):
            chosen = sorted(
                random.Random(f"{seed}/{operation.name}").sample(range(len(places)), limit)
            )
            places = [places[n] for n in chosen]
        for file, line in places:
            where = f"{file.removeprefix(f'{Path(PACKAGE).parent}{os.sep}')}:{line}"
            # pytest would hold the frames of a file that was left open, and with them the interrupted handle.
            with mock.patch("sys.unraisablehook"):
                tally.add(where, _interrupted(operation, base, scratch, _raising_at((file, line))))
    return tally


def interrupted_by_signals(operation: Operation, base: Path, *, times: int, seed: int) -> Tally:
    """Interrupt ``operation`` by signals at random instants."""
    tally, dice = Tally(operation), random.Random(f"{seed}/{operation.name}")
    with tempfile.TemporaryDirectory(prefix="interruptions-") as name:
        scratch = Path(name)
        seconds = _duration(operation, base, scratch)
        for _ in range(times):
            after = dice.uniform(0.00005, max(0.0001, seconds))
            tally.add(
                f"{after:.4f} s of {seconds:.4f}",
                _interrupted(operation, base, scratch, _signalled(after)),
            )
    return tally


def _duration(operation: Operation, base: Path, scratch: Path) -> float:
    lab = opened(copied(base, scratch / "lab"), hours=LATER)
    operation.first(lab)
    before = time.perf_counter()
    lab = operation.do(lab) or lab
    seconds = time.perf_counter() - before
    lab.close()
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Interrupt a lab at every line, and look what is left."
    )
    parser.add_argument(
        "--most", type=int, help="at most so many lines of each operation (default: every line)"
    )
    parser.add_argument(
        "--signals", type=int, default=20, help="signals at random instants of each operation"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only operations whose name contains this")
    add_key(parser)
    options = parser.parse_args()
    with encrypted(options.key):
        return measure(options)


def measure(options: argparse.Namespace) -> int:
    """Run the campaign and print its table."""
    print(
        f"{'operation':<16}{'by':>9}{'tried':>7}{'missed':>8}"
        + "".join(f"{name:>8}" for name in COUNTS)
    )
    totals = dict.fromkeys(COUNTS, 0)
    with tempfile.TemporaryDirectory(prefix="interruptions-") as name:
        base = Path(name) / "base"
        everything(base, recalls=4)
        for operation in OPERATIONS:
            if options.only not in operation.name:
                continue
            for by in ("lines", "signals"):
                if by == "lines":
                    tally = interrupted_everywhere(
                        operation, base, limit=options.most, seed=options.seed
                    )
                else:
                    tally = interrupted_by_signals(
                        operation, base, times=options.signals, seed=options.seed
                    )
                row = "".join(f"{tally.found[name]:>8}" for name in COUNTS)
                text = f"{operation.name:<16}{by:>9}{tally.tried:>7}{tally.missed:>8}{row}"
                tell(text, tally.problems, tally.found, totals)
    return concluded(totals)


if __name__ == "__main__":
    sys.exit(main())
