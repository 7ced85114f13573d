"""One life: steps drawn from a seed, an interruption here and there, and what must be the same however it is opened."""

from __future__ import annotations

import faulthandler
import math
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import numpy as np
import polars as pl

import memlab
from memlab.subjects.purge.verifying import find_differences
from tests.campaigns.living.verbs import VERBS
from tests.campaigns.living.words import Words, letters

__all__ = ["ACTS", "Lived", "Trouble", "content_of", "live"]

ACTS = {"interrupt": 0.08, "kill": 0.015, "reopen": 0.08, "recover": 0.02}
"""The share of steps that are none of the verbs alone: a verb that Ctrl-C or SIGKILL ends at a random line of memlab,
an opening from the disk, and a backup put back.
"""

_PACKAGE = str(Path(memlab.__file__).parent)
_LINES = 20_000
"""Lines of memlab among which an interruption falls; early ones are as likely as late ones on a scale of logarithms."""

_LONGEST = 120.0
"""Seconds after which a step hangs."""

_BESIDE = ("snapshots", "slates", "neighbours", "backups")
"""The files next to the journal that a lab can rebuild."""


@dataclass(frozen=True)
class Trouble:
    """A failure. Its ``kind`` is unopenable, differs, raw, purge (changed too much) or hung."""

    kind: str
    what: str
    step: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Return a key that is mostly equal for equal faults."""
        return self.kind, "".join(c for c in self.what if not c.isdigit())[:60]


@dataclass
class Lived:
    """The course of a run: the problems, and every step in words."""

    seed: str
    steps: tuple[int, ...]
    troubles: list[Trouble] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    refused: int = 0
    interrupted: int = 0
    killed: int = 0
    purged: int = 0


class _Unlike(Exception):
    """Opened again, the lab is another one, or none."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


def live(
    seed: str, steps: Sequence[int], *, without: Iterable[str] = (), folder: Path | None = None
) -> Lived:
    """Run the steps of a seed, each with its own random numbers, so that any can be left out; stop at a trouble."""
    lived = Lived(seed, tuple(steps))
    with (
        tempfile.TemporaryDirectory(prefix="memlab-life-") as temporary,
        warnings.catch_warnings(),
        _hanging(),
    ):
        warnings.simplefilter("ignore")
        life = _Life(lived, Path(temporary) if folder is None else folder, frozenset(without))
        number: int | None = None
        try:
            for number in steps:
                signal.setitimer(signal.ITIMER_REAL, _LONGEST)
                life.step(number)
            number = None
            life.reopen()
        except _Unlike as error:
            lived.troubles.append(Trouble(error.kind, str(error), number))
        except TimeoutError as error:
            lived.troubles.append(Trouble("hung", str(error), number))
        except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001  what comes here is what is looked for
            where = traceback.extract_tb(error.__traceback__)[-1]
            at = f"{Path(where.filename).name}:{where.name}"
            lived.troubles.append(
                Trouble("raw", f"{type(error).__name__} in {at}: {error}", number)
            )
        finally:
            life.end()
    return lived


class _Life:
    def __init__(self, lived: Lived, folder: Path, without: frozenset[str]) -> None:
        self.lived, self.without = lived, without
        self.path, self.files = folder / "lab.memlab", folder / "files"
        self.files.mkdir(parents=True)
        self.words = Words(random.Random(lived.seed))
        self.clock = memlab.ManualClock("2026-03-01T12:00:00")
        self.lab = self.opened()

    def opened(self, path: Path | None = None) -> memlab.Lab:
        return memlab.open(self.path if path is None else path, embedder=letters, clock=self.clock)

    def end(self) -> None:
        try:
            self.lab.close()
        except Exception as error:  # noqa: BLE001  a lab that is broken was told of already
            self.lived.said.append(f"end: {type(error).__name__} {error}")

    # -- steps ----------------------------------------------------------------------------------------------------

    def step(self, number: int) -> None:
        dice = random.Random(f"{self.lived.seed}:{number}")
        self.clock.advance(hours=dice.choice([0, 1, 30]))
        drawn, act = dice.random(), None
        for name, share in ACTS.items():
            if drawn < share and act is None:
                act = name
            drawn -= share
        chosen = [name for name in VERBS if name not in self.without]
        verb = dice.choices(chosen, [VERBS[name][0] for name in chosen])[0]
        lines = round(math.exp(dice.uniform(0.0, math.log(_LINES))))
        if act in self.without:
            act = None
        if act == "reopen":
            self.lived.said.append(f"{number} reopen")
            self.reopen()
        elif act == "recover":
            self.lived.said.append(f"{number} recover")
            self.recover()
        elif act == "kill":
            self.lived.said.append(f"{number} {verb}, killed at line {lines}")
            self.killed(number, verb, dice, lines)
        elif act == "interrupt":
            self.lived.said.append(f"{number} {verb}, interrupted at line {lines}")
            self.interrupted(verb, dice, lines)
        else:
            self.lived.said.append(f"{number} {verb}")
            self.done(verb, dice)

    def done(self, verb: str, dice: random.Random) -> None:
        self.lab.graph.link_waiting()  # what a thread links in the background would come between
        before = self.lab.io.store.state
        try:
            VERBS[verb][1](self.lab, dice, self.words, self.files)
        except memlab.MemlabError as error:
            self.lived.refused += 1
            self.lived.said[-1] += f": {type(error).__name__} {str(error)[:90]}"
            return
        after = self.lab.io.store.state
        if verb == "purge" and after is not before:
            self.lived.purged += 1
            was, now = (
                state.names["status"].series("").to_numpy() == "purged" for state in (before, after)
            )
            wrong = find_differences(before, after, np.flatnonzero(now & ~was))
            if wrong:
                raise _Unlike("purge", "; ".join(wrong))

    def interrupted(self, verb: str, dice: random.Random, lines: int) -> None:
        try:
            with _at_line(lines, _raise):
                self.done(verb, dice)
        except KeyboardInterrupt:
            self.lived.interrupted += 1

    def killed(self, number: int, verb: str, dice: random.Random, lines: int) -> None:
        self.lab.close()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["living.life"])
        arguments = (
            self.path,
            self.files,
            self.lived.seed,
            verb,
            dice.getstate(),
            self.clock(),
            lines,
        )
        child = context.Process(target=_die, args=arguments)
        child.start()
        child.join(_LONGEST)
        if child.exitcode is None:
            child.kill()
            raise TimeoutError(f"{verb} in a child hangs")
        self.lived.killed += child.exitcode == -signal.SIGKILL
        self.lab = self.open_again()

    # -- opening from the journal ---------------------------------------------------------------------------------

    def open_again(self) -> memlab.Lab:
        try:
            return self.opened()
        except Exception as error:
            raise _Unlike("unopenable", f"{type(error).__name__}: {error}") from error

    def reopen(self) -> None:
        """Close it, open it, and fold a copy of its journal from the first event: all three are one lab."""
        was = content_of(self.lab)
        self.lab.close()
        self.lab = self.open_again()
        self.same(was, content_of(self.lab), "opened again")
        with tempfile.TemporaryDirectory(prefix="memlab-fold-") as temporary:
            copy = Path(temporary) / self.path.name
            shutil.copytree(self.path, copy, ignore=shutil.ignore_patterns(*_BESIDE, "*.lock"))
            with self.opened(copy) as rebuilt:
                self.same(was, content_of(rebuilt), "folded from the journal")
        checked = self.lab.io.check()
        if not getattr(checked, "sound", getattr(checked, "ok", True)):
            raise _Unlike("differs", f"check: {checked!r}")

    def recover(self) -> None:
        """Put the newest backup in the lab's place, where the library has a verb for it."""
        if not (self.path / "backups").exists():
            return
        self.lab.close()
        try:
            memlab.restore(self.path)
        except memlab.MemlabError as error:
            self.lived.said[-1] += f": {type(error).__name__} {str(error)[:90]}"
        self.lab = self.open_again()

    @staticmethod
    def same(was: dict[str, Any], now: dict[str, Any], when: str) -> None:
        for name, value in was.items():
            other = now[name]
            alike = value.equals(other) if isinstance(value, pl.DataFrame) else value == other
            if not alike:
                raise _Unlike("differs", f"{name}, {when}: {_unlike(value, other)}")


def content_of(lab: memlab.Lab) -> dict[str, Any]:
    """Return everything that a lab reports: the results of its readers and its folded registers."""
    lab.graph.link_waiting()
    slates, state = lab.slates(), lab.io.store.state
    content: dict[str, Any] = {
        "memories": lab.memories,
        "edges": lab.edges,
        "entities": lab.facts.entities.frame(),
        "facts": lab.facts.frame(),
        "clusters": lab.graph.clusters.frame(),
        "gaps": lab.upkeep.review.gaps(),
        "relationships": lab.agents.relationships(),
        "summaries": lab.upkeep.consolidation.frame(),
        "history": lab.policies.history(),
        "pack": lab.policies.pack.hash,
        "pins": {slot: version.hash for slot, version in lab.policies.pins.items()},
        "log": lab.log,
    }
    content |= {
        name: getattr(slates, name).collect() for name in ("decisions", "candidates", "feedback")
    }
    content |= {
        f"register {name}": msgspec.msgpack.encode(value.dump())
        for name, value in state.projections.items()
    }
    rows = np.arange(len(state))
    content["uses"] = state.uses.values.tolist()
    content["vectors"] = state.vectors.take(rows).tobytes()
    content["words"] = state.words.lengths.tolist()
    return content


def _unlike(first: Any, second: Any) -> str:
    if not isinstance(first, pl.DataFrame):
        return f"{str(first)[:200]} and {str(second)[:200]}"
    if first.shape != second.shape:
        return f"{first.shape} and {second.shape}"
    columns = [name for name in first.columns if not first[name].equals(second[name])]
    column = columns[0]
    rows = [
        row
        for row in range(first.height)
        if not first[column][row : row + 1].equals(second[column][row : row + 1])
    ]
    return (
        f"{columns} in rows {rows[:5]}: {first[column][rows[0]]!r} and {second[column][rows[0]]!r}"
    )


# -- ends at a line ---------------------------------------------------------------------------------------------------


@contextmanager
def _at_line(lines: int, end: Callable[[], None]) -> Iterator[None]:
    """Call ``end`` before the line of memlab that is the so-manieth from now, in this thread."""
    left = [lines]

    def inside(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            left[0] -= 1
            if not left[0]:
                sys.settrace(None)
                end()
        return inside

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        return inside if left[0] > 0 and frame.f_code.co_filename.startswith(_PACKAGE) else None

    sys.settrace(entered)
    try:
        yield
    finally:
        sys.settrace(None)


def _raise() -> None:
    raise KeyboardInterrupt


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die(path: Path, files: Path, seed: str, verb: str, state: Any, now: int, lines: int) -> None:
    """Run a step in a child, which is killed at a line or before it closes the lab."""
    faulthandler.disable()
    warnings.simplefilter("ignore")
    dice = random.Random()
    dice.setstate(state)
    lab = memlab.open(path, embedder=letters, clock=memlab.ManualClock(now))
    try:
        with _at_line(lines, _kill):
            VERBS[verb][1](lab, dice, Words(random.Random(seed)), files)
    except memlab.MemlabError:
        pass
    finally:
        _kill()


@contextmanager
def _hanging() -> Iterator[None]:
    """Raise TimeoutError in a step that takes too long."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still at it after {_LONGEST:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
