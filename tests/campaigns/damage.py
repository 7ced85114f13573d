"""Damage every file of a lab in every way, and check that no damage goes unreported.

    python -m tests.campaigns.damage                                    # 1,000 damages
    python -m tests.campaigns.damage --cases 100 --only snapshots --seed 3

Two labs that use every feature are written once, as the death of their process leaves them. They have a log that was
not merged into the database, a snapshot, backups and an index. In a copy, one file or one folder is damaged. The damage is
one flipped bit, 512 zeroed bytes, a truncated end, a deletion, or a replacement by the same file of an earlier state or
of another lab. Flips and zeros keep the time of modification, as a bad disk does. The copy is then opened and read
completely, its backups too, and ``lab.io.check()`` is called. It is closed, opened and read again.

    harmless    everything equals the undamaged lab
    told        something differs, and a warning, an error of memlab or ``check`` reported it before
    silent      something differs, and nothing was reported
    raw         an error from outside memlab's tree, or the interpreter died
    unmended    a file that can be rebuilt from the journal was damaged, was reported, and is still not as before
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import memlab
from memlab.errors import MemlabError
from tests.campaigns.breaking import (
    QUESTIONS,
    READINGS,
    Hung,
    add_key,
    copied,
    encrypted,
    everything,
    forking,
    low_thresholds,
    many,
    opened,
    patience,
    texts,
)

__all__ = ["CLASSES", "DAMAGES", "Case", "Ran", "Setting", "cases", "make", "run"]

CLASSES = ("harmless", "told", "silent", "raw", "unmended")
LATER = 24.0 * 30
_DERIVED = (
    "snapshots",
    "slates",
    "neighbours",
    "head",
    "lock",
    "derived.lock",
    "journal.db-shm",
    "journal.enc-shm",
)


# -- the labs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A lab to damage, the same lab at an earlier time, and another one."""

    name: str
    lab: Path
    earlier: Path
    other: Path


def make(home: Path, *, names: Sequence[str] = ("small", "indexed")) -> tuple[Setting, ...]:
    """Write the labs into ``home``: a small one that uses every feature, and one large enough for an index."""
    with low_thresholds():
        builds = {"small": _small, "indexed": _indexed}
        return tuple(_setting(home, name, builds[name]) for name in names)


def _setting(home: Path, name: str, build: Callable[[Path, int, Path], None]) -> Setting:
    setting = Setting(name, home / f"{name}-lab", home / f"{name}-earlier", home / f"{name}-other")
    # both in a place of the same name: where a lab is must not matter, but what is written there may hold it
    for seed, to in enumerate((setting.lab, setting.other)):
        build(home / "built", seed, setting.earlier if not seed else home / "dropped")
        (home / "built-killed").rename(to)
        shutil.rmtree(home / "built")
    shutil.rmtree(home / "dropped")
    return setting


def _small(path: Path, seed: int, earlier: Path) -> None:
    everything(path, seed=seed, recalls=30)
    with opened(path, hours=LATER) as lab:
        lab.slates().decisions.collect()
        copied(path, earlier)
        for n in range(25):
            lab.recall(f"{QUESTIONS[n % 3]} {n}")
        lab.slates().decisions.collect()
        lab.remember(texts(3, first=300, seed=seed), chain=True)
        lab.io.backup()
        lab.io.snapshot()
        _written_after(lab, seed)
        copied(path, path.parent / "built-killed")


def _indexed(path: Path, seed: int, earlier: Path) -> None:
    many(path, 4_150, seed=seed)
    with opened(path, hours=LATER) as lab:
        lab.upkeep.index.rebuild()
        lab.io.snapshot()
        lab.recall(QUESTIONS[0])
        copied(path, earlier)
        lab.remember(texts(4_100, first=5_000, seed=seed))
        lab.upkeep.index.rebuild()
        lab.io.snapshot()
        _written_after(lab, seed)
        copied(path, path.parent / "built-killed")


def _written_after(lab: memlab.Lab, seed: int) -> None:
    """Write the events that only the log has when the process is killed."""
    for text in texts(4, first=400, seed=seed):
        lab.remember(text)
    lab.recall(QUESTIONS[0])
    lab.feedback(2, "success")


# -- damages --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One damage: to ``file`` (or folder), a path within the lab of ``setting``; ``at`` in 0..1 says where."""

    number: int
    setting: Setting
    file: str
    damage: str
    at: float

    @property
    def kind(self) -> str:
        """Return the path without its numbers, as the kind of the file."""
        parts = [
            re.sub(r"(?<=-)[0-9TZ-]+|[0-9a-f]{8,}", "", part).rstrip("-")
            for part in Path(self.file).parts
        ]
        return f"{self.setting.name}: {'/'.join(parts)}"

    def do(self, lab: Path) -> None:
        target = lab / self.file
        status = target.stat()
        DAMAGES[self.damage](self, target)
        if self.damage in ("flip", "zero"):
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _flip(case: Case, target: Path) -> None:
    data = bytearray(target.read_bytes())
    bit = int(case.at * 8 * len(data))
    data[bit // 8] ^= 1 << (bit % 8)
    target.write_bytes(data)


def _zero(case: Case, target: Path) -> None:
    data = bytearray(target.read_bytes())
    start = int(case.at * max(1, len(data) - 512))
    data[start : start + 512] = bytes(len(data[start : start + 512]))
    target.write_bytes(data)


def _truncate(case: Case, target: Path) -> None:
    os.truncate(target, int(case.at * target.stat().st_size))


def _delete(_: Case, target: Path) -> None:
    shutil.rmtree(target) if target.is_dir() else target.unlink()


def _from_earlier(case: Case, target: Path) -> None:
    _put(_same(case.file, case.setting.earlier), target)


def _from_other(case: Case, target: Path) -> None:
    _put(_same(case.file, case.setting.other), target)


def _put(source: Path | None, target: Path) -> None:
    """Put a folder in the place of another, which is deleted. Its own name says which state it is from."""
    assert source is not None
    if source.is_dir():
        shutil.rmtree(target)
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)


def _same(file: str, lab: Path) -> Path | None:
    """Return the file of another lab with the same name, or with a name that differs in numbers only."""
    if (lab / file).exists():
        return lab / file
    wanted = re.sub(r"[0-9a-f]{6,}|\d+", "*", file)
    ordered = sorted(path for path in lab.glob(wanted) if path.exists())
    return ordered[-1] if ordered else None


DAMAGES: dict[str, Callable[[Case, Path], None]] = {
    "flip": _flip,
    "zero": _zero,
    "truncate": _truncate,
    "delete": _delete,
    "earlier": _from_earlier,
    "other": _from_other,
}


def cases(settings: Sequence[Setting], count: int, *, seed: int, only: str = "") -> list[Case]:
    """Return ``count`` damages that alternate between kinds of files and of damage, so that each is frequent."""
    dice = random.Random(seed)
    by_kind: dict[str, list[tuple[Setting, str]]] = defaultdict(list)
    for setting in settings:
        for path in sorted(setting.lab.rglob("*")):
            file = str(path.relative_to(setting.lab))
            kind = Case(0, setting, file, "flip", 0).kind
            if only in kind and (path.is_file() or path.parent == setting.lab):
                by_kind[kind].append((setting, file))
    # half of what a lab cannot rebuild is in two files, so these are drawn more often
    kinds = [
        kind
        for kind in by_kind
        for _ in range(5 if re.fullmatch(r"small: journal\.(db|enc)(-wal)?", kind) else 1)
    ]
    chosen: list[Case] = []
    for number in range(count):
        setting, file = dice.choice(by_kind[kinds[number % len(kinds)]])
        possible = [name for name in DAMAGES if _possible(setting, file, name)]
        damage = possible[(number // len(kinds)) % len(possible)]
        chosen.append(Case(number, setting, file, damage, dice.random()))
    return chosen


def _possible(setting: Setting, file: str, damage: str) -> bool:
    path = setting.lab / file
    if damage == "earlier":
        return _same(file, setting.earlier) is not None
    if damage == "other":
        return _same(file, setting.other) is not None
    return damage == "delete" or (path.is_file() and path.stat().st_size > 0)


# -- looking --------------------------------------------------------------------------------------------------------


@dataclass
class _Session:
    """One opening: what was read, the reports up to then, and the errors that should not occur."""

    values: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    """What had been said when a reading was made."""
    raw: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


def _looked(folder: Path) -> _Session:
    session = _Session()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        def reading(name: str, read: Callable[[], str]) -> None:
            try:
                session.values[name] = read()
            except MemlabError as error:
                session.said.append(f"{name}: {type(error).__name__}: {error}")
                session.values[name] = "told"
            except (Exception, Hung) as error:  # noqa: BLE001  whatever comes out is what is looked for
                session.raw.append(f"{name}: {type(error).__name__}: {error}")
                session.values[name] = "raw"
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                # a panic of Polars is one
                session.raw.append(f"{name}: {type(error).__name__}: {error}")
                session.values[name] = "raw"
            warned = [
                str(warning.message)
                for warning in caught
                if issubclass(warning.category, UserWarning)
            ]
            session.told[name] = "; ".join([*session.said, *warned])

        with patience(120):
            lab: list[memlab.Lab] = []
            reading("open", lambda: str(lab.append(opened(folder, hours=LATER))))
            if lab:
                for name, read in READINGS.items():
                    reading(name, lambda read=read: read(lab[0]))  # type: ignore[misc]
                reading("check", lambda: _checked(lab[0], session))
                if len(lab[0]) > 4_000:
                    reading("index", lambda: str(lab[0].index.wait(10) and ""))
                reading("close", lambda: str(lab[0].close()))
            for backup in sorted((folder / "backups").glob("backup-*")):
                # what a backup holds is wanted when the lab is gone: its own opening has to tell
                before, session.said = session.said, []
                count = len(caught)
                reading(f"backups/{backup.name}", lambda backup=backup: _read_backup(backup))  # type: ignore[misc]
                fresh = [
                    str(warning.message)
                    for warning in caught[count:]
                    if issubclass(warning.category, UserWarning)
                ]
                session.told[f"backups/{backup.name}"] = "; ".join([*session.said, *fresh])
                session.said = before + session.said
    return session


def _checked(lab: memlab.Lab, session: _Session) -> str:
    report = lab.io.check()
    if not report.sound:
        session.said.append("check")
    for row in report.frame.iter_rows(named=True):
        if row["state"] != "sound":
            session.said.append(
                f"check: {row['file']} {row['part']} {row['state']}: {row['detail']}"
            )
    return ""


def _read_backup(path: Path) -> str:
    with opened(path, hours=LATER, read_only=True) as lab:
        return " ".join(READINGS[name](lab) for name in ("memories", "edges", "log", "past"))


@dataclass(frozen=True)
class Ran:
    """What one case came to, and why."""

    case: Case
    was: str
    why: str


def _judged(case: Case, before: list[_Session], after: list[_Session]) -> Ran:
    raw = [problem for session in after for problem in session.raw]
    if raw:
        return Ran(case, "raw", raw[0])
    differing = [
        (n, name)
        for n, (index, now) in enumerate(zip(before, after, strict=True))
        for name in index.values
        if now.values.get(name) != index.values[name] and not _gone(case, name)
    ]
    for n, name in differing:
        if "open" in after[n].told and not after[n].told.get(name, after[n].told["open"]):
            return Ran(case, "silent", f"opening {n + 1}: {name} differs, and nothing was said")
    if Path(case.file).parts[0] in _DERIVED and differing:
        return Ran(
            case, "unmended", ", ".join(f"{name} of opening {n + 1}" for n, name in differing)
        )
    messages = [message for session in after for message in session.said] + [
        t for s in after for t in s.told.values() if t
    ]
    return Ran(
        case, "told" if differing or messages else "harmless", messages[0] if messages else ""
    )


def _gone(case: Case, name: str) -> bool:
    """Return whether the damage is a deleted or replaced backup, which a person notices without a report."""
    return name.startswith("backups/") and case.file == "backups"


# -- running --------------------------------------------------------------------------------------------------------


def _work(pipe: Connection, home: Path, key: str | None) -> None:
    """Run a case, or read an undamaged copy of a setting if the case is None."""
    # The server of forks may have been started before the key was set.
    with encrypted(key), low_thresholds():
        while True:
            setting, case = pipe.recv()
            folder = copied(setting.lab, home / "work")
            if case is not None:
                case.do(folder)
            pipe.send([_looked(folder), _looked(folder)])


class _Worker:
    """A process that may die of a case."""

    def __init__(self, home: Path) -> None:
        self._context, self._home = forking("tests.campaigns.damage"), home
        self._process: Any = None

    def look(self, setting: Setting, case: Case | None) -> list[_Session] | None:
        """Open the lab twice; return None if the process died."""
        if self._process is None:
            self._pipe, its = self._context.Pipe()
            self._process = self._context.Process(
                target=_work, args=(its, self._home, os.environ.get("MEMLAB_KEY")), daemon=True
            )
            self._process.start()
            its.close()
        self._pipe.send((setting, case))
        try:
            if self._pipe.poll(300):
                result: list[_Session] = self._pipe.recv()
                return result
        except EOFError:
            pass
        self.stop()
        return None

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def run(settings: Sequence[Setting], chosen: Sequence[Case], home: Path) -> Iterator[Ran]:
    """Do the cases, one after another, in a process of their own."""
    worker, before = _Worker(home), {}
    for setting in settings:
        if any(case.setting == setting for case in chosen):
            sound = worker.look(setting, None)
            if sound is None or any(session.raw or session.said for session in sound):
                raise RuntimeError(f"The undamaged lab is not sound: {sound}")
            before[setting.name] = sound
    for case in chosen:
        after = worker.look(case.setting, case)
        if after is None:
            yield Ran(case, "raw", "the interpreter died, or did not answer")
        else:
            yield _judged(case, before[case.setting.name], after)
    worker.stop()


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Damage every file of a lab, and look who is told."
    )
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only kinds of files that contain this")
    add_key(parser)
    options = parser.parse_args()
    with encrypted(options.key):
        return measure(options)


def measure(options: argparse.Namespace) -> int:
    """Run the campaign and print its table."""
    with tempfile.TemporaryDirectory(prefix="damage-") as name:
        home = Path(name)
        settings = make(home)
        ran = []
        for item in run(
            settings, cases(settings, options.cases, seed=options.seed, only=options.only), home
        ):
            ran.append(item)
            if item.was in CLASSES[2:]:
                case = item.case
                print(
                    f"{item.was}: case {case.number}, {case.damage} {case.file}: {item.why[:200]}",
                    flush=True,
                )
    table: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for item in ran:
        table[item.case.kind, item.case.damage][item.was] += 1
    print(f"{'file':<44}{'damage':<10}" + "".join(f"{name:>10}" for name in CLASSES))
    for (kind, damage), counts in sorted(table.items()):
        print(f"{kind:<44}{damage:<10}" + "".join(f"{counts[name]:>10}" for name in CLASSES))
    totals = Counter(entry.was for entry in ran)
    print(f"{len(ran)} damages: " + ", ".join(f"{totals[name]} {name}" for name in CLASSES))
    return 0 if not any(totals[name] for name in CLASSES[2:]) else 1


if __name__ == "__main__":
    sys.exit(main())
