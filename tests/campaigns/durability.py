"""Check that "acknowledged" means durable: kill a writing process at random moments, or cut the power.

    python -m tests.campaigns.durability                 # 100 runs of each case; prints a table
    python -m tests.campaigns.durability --runs 10 --seed 7 --case power
    python -m tests.campaigns.durability --workload package.module
    python -m tests.campaigns.durability --key passphrase    # on an encrypted lab

A child process writes and acknowledges each write over a pipe; SIGKILL ends it at a random moment. After a *kill*, the
directory is opened as it is. After a *power cut*, the disk that `powercut.c` kept is opened: only bytes that were synced
(and, in the strict case, only names whose directory was synced). The two cases without sync are controls. They must
lose something; otherwise the experiment measures nothing.

A workload is a module with two functions. ``write`` runs until it is killed; ``check`` reports what is missing.

    def write(path: Path, acknowledge: Callable[[int, bool], None], *, seed: int, synchronous: str) -> None
    def check(path: Path, acknowledged: Sequence[tuple[int, bool]], *, power_cut: bool) -> Verdict

``acknowledge(number, durable)`` is called after a write returned. ``synchronous`` is FULL, or weaker for a control.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.kernel.journal import Journal, open_connection
from memlab.kernel.privacy import Screened
from tests.campaigns.breaking import add_key, encrypted

__all__ = ["CASES", "Case", "Tally", "Verdict", "Workload", "build_shim", "run_case", "unsupported"]

Acknowledged = Sequence[tuple[int, bool]]

HERE = Path(__file__).resolve().parent
LONGEST_LIFE = 0.3
"""Seconds that a child lives at most after its imports: up to 500 writes, checkpoints and reopenings among them."""


@dataclass(frozen=True)
class Verdict:
    """``lost``: acknowledged numbers that are not there. ``broken``: what should not be so at all."""

    lost: tuple[int, ...] = ()
    broken: tuple[str, ...] = ()


class Workload(Protocol):
    def write(
        self, path: Path, acknowledge: Callable[[int, bool], None], *, seed: int, synchronous: str
    ) -> None: ...
    def check(self, path: Path, acknowledged: Acknowledged, *, power_cut: bool) -> Verdict: ...


@dataclass(frozen=True)
class Case:
    name: str
    cut: Literal["kill", "power", "power, strict"]
    synchronous: str = "FULL"

    @property
    def must_lose(self) -> bool:
        return self.synchronous != "FULL"


CASES = (
    Case("process killed", "kill"),
    Case("power cut", "power"),
    Case("power cut, strict", "power, strict"),
    Case("control: commits unsynced", "power, strict", "NORMAL"),
    Case("control: nothing synced", "power, strict", "OFF"),
)


@dataclass
class Tally:
    """What the runs of one case gave."""

    case: Case
    runs: int = 0
    acknowledged: int = 0
    promised: int = 0
    lost: int = 0
    runs_with_loss: int = 0
    broken: list[str] = field(default_factory=list)

    @property
    def as_it_must_be(self) -> bool:
        """Return whether the case is as expected: only a control may lose or break anything."""
        return self.lost > 0 if self.case.must_lose else not self.lost and not self.broken

    def add(self, acknowledged: Acknowledged, verdict: Verdict) -> None:
        promised = [
            number for number, durable in acknowledged if durable or self.case.cut == "kill"
        ]
        self.runs += 1
        self.acknowledged += len(acknowledged)
        self.promised += len(promised)
        self.lost += len(verdict.lost)
        self.runs_with_loss += bool(verdict.lost)
        self.broken += verdict.broken


def unsupported() -> str | None:
    """Return why the power cannot be cut on this machine, None if it can."""
    if not sys.platform.startswith("linux"):
        return "the power cut needs Linux (LD_PRELOAD and /proc)"
    if _compiler() is None:
        return "the power cut needs a C compiler (cc, gcc or clang) for powercut.c"
    return None


def _compiler() -> str | None:
    return next((result for name in ("cc", "gcc", "clang") if (result := shutil.which(name))), None)


def build_shim(folder: Path) -> Path:
    """Compile powercut.c."""
    compiler = _compiler()
    if compiler is None:
        raise RuntimeError(unsupported())
    shim = folder / "powercut.so"
    command = [
        compiler,
        "-shared",
        "-fPIC",
        "-O2",
        "-o",
        str(shim),
        str(HERE / "powercut.c"),
        "-ldl",
        "-lpthread",
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return shim


def run_case(
    case: Case,
    *,
    runs: int,
    seed: int,
    workload: str = "tests.campaigns.durability",
    shim: Path | None = None,
) -> Tally:
    """Run ``runs`` children, one after another; the seed decides what each writes and when it is killed.

    Every second one lives on from its first acknowledged write, so that on a slow machine, too, something is at stake.
    """
    chance = random.Random(f"{seed}/{case.name}")
    tally = Tally(case)
    for number in range(runs):
        with tempfile.TemporaryDirectory(prefix="durability-") as scratch:
            # realpath: the shim compares paths as the kernel gives them
            folder = Path(os.path.realpath(scratch))
            seed, life, writes = (
                chance.randrange(2**32),
                chance.uniform(0, LONGEST_LIFE),
                bool(number % 2),
            )
            tally.add(*_run(case, folder, seed, life, writes, workload, shim))
    return tally


def _run(
    case: Case, folder: Path, seed: int, life: float, writes: bool, workload: str, shim: Path | None
) -> tuple[Acknowledged, Verdict]:
    root, disk, after = folder / "root", folder / "disk", folder / "after"
    root.mkdir()
    disk.mkdir()
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parents[1]), *sys.path])
    if case.cut != "kill":
        environment["LD_PRELOAD"] = str(shim)
        environment["POWERCUT_ROOT"], environment["POWERCUT_DISK"] = str(root), str(disk)
        environment["POWERCUT_STRICT"] = str(int(case.cut == "power, strict"))
    task = json.dumps(
        {
            "workload": workload,
            "path": str(root / "lab"),
            "seed": seed,
            "synchronous": case.synchronous,
        }
    )
    command = [sys.executable, str(HERE / "durability.py"), "--child", task]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        ready = child.stdout.readline()
        first = b""
        while writes and not first.endswith(
            b" 1\n"
        ):  # a slow machine, too, promises something first
            line = child.stdout.readline()
            first += line
            if not line:
                break
        time.sleep(life)
        child.send_signal(signal.SIGKILL)
        lines, complaint = first + child.stdout.read(), child.stderr.read().decode()
    if ready != b"ready\n" or child.returncode != -signal.SIGKILL:
        raise RuntimeError(f"The writing child ended by itself:\n{complaint}")
    pairs = [line.split() for line in lines.decode().splitlines()]
    acknowledged = [(int(number), durable == "1") for number, durable in pairs]
    if case.cut == "kill":
        return acknowledged, _load(workload).check(root / "lab", acknowledged, power_cut=False)
    if not (disk / "active").exists():
        raise RuntimeError("powercut.so was not loaded into the child.")
    _restore(disk, after)
    return acknowledged, _load(workload).check(after / "lab", acknowledged, power_cut=True)


def _restore(disk: Path, target: Path) -> None:
    """Write the tree that exists after the cut. A name without synced bytes is an empty file; see powercut.c."""
    target.mkdir()
    names = disk / "names"
    for directory, folders, files in os.walk(names):
        here = target / Path(directory).relative_to(names)
        folders[:] = [
            folder for folder in folders if (Path(directory) / folder).stat().st_mode & 0o055
        ]
        for folder in folders:
            (here / folder).mkdir()
        for file in files:
            data = disk / "data" / (Path(directory) / file).readlink()
            (here / file).write_bytes(data.read_bytes() if data.exists() else b"")


def _load(workload: str) -> Workload:
    return cast(Workload, importlib.import_module(workload))


def _child(task: str) -> NoReturn:
    data = json.loads(task)
    workload = _load(data["workload"])

    def acknowledge(number: int, durable: bool) -> None:
        os.write(1, b"%d %d\n" % (number, durable))

    os.write(1, b"ready\n")
    with encrypted(os.environ.get("MEMLAB_KEY")):
        workload.write(
            Path(data["path"]), acknowledge, seed=data["seed"], synchronous=data["synchronous"]
        )
    raise RuntimeError("The workload must write until it is killed.")


# -- the workload of the journal: memories, recalls with a slate, feedback, now and then a reopening -----------------

_DIM = 64
_FINGERPRINT = "durability"


def _text(id: int) -> Screened:
    return Screened(f"memory {id} " * (1 + id % 200))


def _vectors(first: int, count: int) -> NDArray[np.int8]:
    ids = np.arange(first, first + count)[:, None]
    return (ids * 31 + np.arange(_DIM) * 7).astype(np.int8)


def _slate(seq: int) -> bytes:
    """Return a slate of 20 kB, sometimes large enough that the log is merged into the database soon."""
    return random.Random(seq).randbytes(2_000_000 if seq % 20 == 0 else 20_000)


def write(
    path: Path, acknowledge: Callable[[int, bool], None], *, seed: int, synchronous: str
) -> None:
    chance = random.Random(seed)
    id = 1
    while True:
        with Journal.open(path, _synchronous=synchronous) as journal:  # type: ignore[arg-type]
            for _ in range(chance.randrange(1, 100)):
                if chance.random() < 0.5:
                    count = chance.choice((1, 1, 1, 50))
                    with journal.write() as tx:
                        seq = tx.event("remember", {"first": id, "count": count}, at=id)
                        tx.payloads(
                            range(id, id + count), [_text(other) for other in range(id, id + count)]
                        )
                        tx.vectors(id, _FINGERPRINT, _vectors(id, count))
                    acknowledge(seq, True)
                    id += count
                else:
                    with journal.write(durable=False) as tx:
                        recalled = tx.event("recall", {}, at=id)
                        tx.slate(recalled, _slate(recalled))
                    acknowledge(recalled, False)
                    if chance.random() < 0.3:
                        with journal.write() as tx:
                            seq = tx.event("feedback", {"recall": recalled}, at=id)
                        acknowledge(seq, True)


def check(path: Path, acknowledged: Acknowledged, *, power_cut: bool) -> Verdict:
    promised = [number for number, durable in acknowledged if durable or not power_cut]
    try:
        with Journal.open(path) as journal:
            head, broken = journal.head, tuple(_inconsistencies(journal))
        with open_connection(path) as connection:
            (integrity,) = connection.execute("PRAGMA integrity_check").fetchone()
    except MemlabError as error:
        return Verdict(tuple(promised), (f"{type(error).__name__}: {error}",))
    if integrity != "ok":
        broken += (f"integrity_check: {integrity}",)
    return Verdict(tuple(number for number in promised if number > head), broken)


def _inconsistencies(journal: Journal) -> list[str]:
    """List inconsistencies: feedback without its recall, recalls without a slate, gaps in the order."""
    results = []
    slates = dict(journal.slates())
    vectors = {
        first + row: matrix[row]
        for first, matrix in journal.vectors(_FINGERPRINT)
        for row in range(len(matrix))
    }
    for expected, event in enumerate(journal.events(), start=1):
        if event.seq != expected:
            results.append(f"event {expected} is missing below {event.seq}")
            break
        if event.kind == "recall" and slates.get(event.seq) != _slate(event.seq):
            results.append(f"the slate of recall {event.seq} is missing or wrong")
        if event.kind == "remember":
            first, count = event.body["first"], event.body["count"]
            ids = range(first, first + count)
            if journal.texts(ids) != [_text(id) for id in ids]:
                results.append(f"texts of event {event.seq} are wrong")
            stored = [vectors[id].tobytes() for id in ids if id in vectors]
            if b"".join(stored) != _vectors(first, count).tobytes():
                results.append(f"vectors of event {event.seq} are missing or wrong")
    return results


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Kill a writing process, or cut the power, and count what is lost."
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument(
        "--workload",
        default="tests.campaigns.durability",
        help="the module that writes and checks (default: the journal)",
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    add_key(parser)
    options = parser.parse_args()
    with encrypted(options.key):
        return measure(options)


def measure(options: argparse.Namespace) -> int:
    """Run the campaign and print its table."""
    if options.child is not None:
        _child(options.child)
    print(
        f"{'case':<28}{'runs':>6}{'acknowledged':>14}{'promised':>10}{'lost':>8}{'runs with loss':>16}{'broken':>8}"
    )
    good = True
    with tempfile.TemporaryDirectory(prefix="powercut-") as folder:
        reason = unsupported()
        shim = build_shim(Path(folder)) if reason is None else None
        for case in CASES:
            if options.case not in case.name:
                continue
            if case.cut != "kill" and shim is None:
                print(f"{case.name:<28}skipped: {reason}")
                continue
            tally = run_case(
                case, runs=options.runs, seed=options.seed, workload=options.workload, shim=shim
            )
            good &= tally.as_it_must_be
            print(
                f"{case.name:<28}{tally.runs:>6}{tally.acknowledged:>14,}{tally.promised:>10,}{tally.lost:>8,}"
                f"{tally.runs_with_loss:>16}{len(tally.broken):>8}{'' if tally.as_it_must_be else '   FAILED'}",
                flush=True,
            )
            if not case.must_lose:
                for problem in tally.broken[:5]:
                    print(f"    {problem}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
