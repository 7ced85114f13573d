"""The life of an approximate index: opened, kept in step with its vectors, rebuilt in the background, replaced.

A base never changes; a better one is built beside it by a process of its own, under a lock that ends with that
process, published by renaming, and found by everyone who looks at the folder's time of modification, which takes
microseconds. Whatever is missing, damaged or made of other vectors is not used: searches are exact until there is a
sound base again. Forgotten rows are a matter of the search's mask, later rows of exact search.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping
from pathlib import Path

from memlab.errors import DamagedLab, InputError, LabBusy, MemlabError, UnknownName
from memlab.kernel.base.disk import checksum_of
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.extension import load_installed
from memlab.kernel.index._base import (
    KINDS,
    Base,
    Header,
    Kind,
    build_base,
    draft_of,
    found_bases,
    remove,
    sampled,
)
from memlab.kernel.index._vectors import BLOCK, Vectors

__all__ = ["Build", "Neighbours", "build_from_spool", "sweep"]


# Starting the process that builds an index, never two at once, and learning how it ended.
#
# The lock is ``flock`` on an open file that the builder inherits: the kernel lets it go when the builder ends, however
# it ends, so it cannot go stale; and it outlives the process that started it.


_BUILDER = """
import os, sys
from memlab.kernel.index._neighbours import build_from_spool
os.nice(10)
build_from_spool(*sys.argv[1:])
"""


class Build:
    """One build: a thread that takes the lock, writes the vectors out, starts the builder and waits for it."""

    def __init__(self, folder: Path, kind: str, vectors: Vectors, rows: int) -> None:
        self.folder, self.kind, self.rows = folder, kind, rows
        self.busy = False
        self.failure: str | None = None
        self.started, self.ended = threading.Event(), threading.Event()
        self._vectors, self._prefix = vectors, vectors.prefix(rows)
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        threading.Thread(target=self._run, name="memlab index build", daemon=True).start()

    def wait(self, timeout: float | None = None) -> bool:
        return self.ended.wait(timeout)

    def stop(self) -> None:
        """End it; whatever it leaves is removed by the next."""
        self._stopped = True
        self.started.wait()
        if self._process is not None:
            self._process.kill()

    def _run(self) -> None:
        try:
            self.folder.mkdir(exist_ok=True)  # no parents: a lab that is gone is not made again
            lock = os.open(self.folder / "build.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._spawn(lock)
            except BlockingIOError:
                self.busy = True
            finally:
                # closed, not unlocked: the builder has the same open file, and the lock lives as long as it does
                os.close(lock)
                self.started.set()
            self._await()
        except (OSError, MemlabError) as error:
            self.failure = f"The index could not be built: {error}"
        finally:
            self.started.set()
            self.ended.set()

    def _spawn(self, lock: int) -> None:
        for left in self.folder.glob(draft_of(self.folder, "*").name):
            left.unlink(missing_ok=True)
        spool = draft_of(self.folder, "vectors")
        digest = self._vectors.digest(self.rows)
        self._prefix.spool(spool)
        if self._stopped:
            return
        arguments = [str(self.folder), self.kind, str(self.rows), digest, str(spool)]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BUILDER, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=_environment(),
            pass_fds=(lock,),
            start_new_session=True,  # an interrupt in a notebook is not meant for it
        )

    def _await(self) -> None:
        if self._process is None:
            return
        _, output = self._process.communicate()
        if self._process.returncode:
            last = output.decode("utf-8", "replace").strip().rpartition("\n")[2] or "no message"
            self.failure = f"The builder of the index ended with {self._process.returncode}: {last}"


def _environment() -> Mapping[str, str]:
    """This process's, with the memlab that runs here first on the path and one thread for products."""
    here = str(Path(__file__).parents[3])
    path = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": here + (os.pathsep + path if path else ""),
        "OPENBLAS_NUM_THREADS": "1",
    }


_SETTLED = 50_000_000
"""Nanoseconds after which a folder's time of modification tells of every change: kernels round it to some 4 ms."""

_PAUSE = 0.05
"""Seconds between two looks at what another process builds, where that is waited for."""

_AT_ONCE = 1 << 26
"""Bytes of an index up to which it is compared with its checksum before a search goes on: 25 ms."""

_RETRY = 5.0
"""Seconds between two attempts to build while another process holds the lock."""


class Neighbours:
    """Gives ``vectors`` an index when there are many, and sees to it that it is the right one.

    ``folder`` is where bases are kept (made when the first is built); with None a temporary folder that goes with this
    object. ``kind`` is "annoy". ``effort`` multiplies how far a search looks, for more recall
    and more time. A base is rebuilt when the rows after it are more than ``share`` of it. With ``background=False``
    nothing is built but by ``rebuild``; with ``writable=False`` nothing is written at all.

    ``refresh`` before a search is all that is needed:

    >>> neighbours = Neighbours("agent.memlab/neighbours", vectors)     # doctest: +SKIP
    >>> neighbours.refresh(); vectors.top(query, 10)                    # doctest: +SKIP

    Raises UnknownName for a kind.
    """

    def __init__(
        self,
        folder: str | Path | None,
        vectors: Vectors,
        *,
        kind: str = "annoy",
        effort: float = 1.0,
        share: float = 0.1,
        background: bool = True,
        writable: bool = True,
    ) -> None:
        if kind == "graph":
            raise InputError(
                'The index "graph" was removed with the extra "graph"; instead: index="annoy".'
            )
        if kind not in KINDS:
            raise UnknownName("kind of index", kind, KINDS)
        if not 0.05 <= effort <= 100 or not 0 < share <= 1:
            raise InputError(
                f"effort lies in 0.05..100 and share in 0..1, not {effort} and {share}."
            )
        self.kind, self.effort, self.share = KINDS[kind], effort, share
        self.background, self.writable = background and writable, writable
        self.failure: str | None = None
        """Why the last base was refused or not built; None once one is in use."""
        self._folder = None if folder is None else Path(folder)
        self._temporary = folder is None
        self._vectors = vectors
        self._base: Base | None = None
        self._seen: int | None = None
        self._ahead: int | None = None
        self._checked: dict[tuple[str, int], bool] = {}
        self._checking: threading.Thread | None = None
        self._build: Build | None = None
        self._not_before = 0.0
        self._failed_rows = 0
        self._mutex = ThreadLock()
        self._closed = False

    # -- before each search -----------------------------------------------------------------------------------

    def refresh(self, vectors: Vectors | None = None) -> None:
        """Take up a new base, drop one that no longer fits, start a build that is due: microseconds if none is so.

        ``vectors`` are other ones to follow from now on, as after a change of embedder.
        """
        with self._mutex:
            if vectors is not None and vectors is not self._vectors:
                self._release()
                self._vectors, self._failed_rows = vectors, 0
            if self._closed:
                return
            self._reap()
            if self._base is not None and self._base.broken is not None:
                self._refuse(self._base.path, self._base.broken)
                self._release()
            stamp = self._stamp()
            grown = self._ahead is not None and len(self._vectors) >= self._ahead
            if stamp != self._seen or grown:
                self._seen = stamp if stamp is None or time.time_ns() - stamp > _SETTLED else -1
                self._adopt()
            if self.background and self.is_due and time.monotonic() >= self._not_before:
                self._start()

    @property
    def base(self) -> Base | None:
        """The base in use."""
        return self._base

    @property
    def vectors(self) -> Vectors:
        return self._vectors

    @property
    def build(self) -> Build | None:
        """The build that was started here, until its end is noted."""
        return self._build

    @property
    def building(self) -> bool:
        """Whether a build that was started here is under way."""
        with self._mutex:
            self._reap()
            return self._build is not None

    # -- on demand --------------------------------------------------------------------------------------------

    def rebuild(self, *, wait: bool = True) -> bool:
        """Build a base of all whole blocks of 4,096 rows now; whether one of so many rows is in use afterwards.

        InputError where nothing may be written or there is not one block. If another process is building, this waits
        for it. ``failure`` says why there is none.
        """
        if not self.writable:
            raise InputError("This lab is read-only: no index can be built.")
        rows = len(self._vectors) // BLOCK * BLOCK
        if not rows:
            raise InputError(
                f"An index covers blocks of {BLOCK:,} rows; there are {len(self._vectors):,}."
            )
        while True:
            with self._mutex:
                self.refresh()
                if self._build is None and not self._covers(rows):
                    self._start()
                build = self._build
            if not wait or build is None:
                return self._covers(rows)
            build.wait()
            self.wait()
            if self._covers(rows) or (build.rows >= rows and not build.busy):
                return self._covers(rows)
            time.sleep(_PAUSE if build.busy else 0)

    def wait(self, timeout: float | None = None) -> bool:
        """Until what was started here has ended, at most ``timeout`` seconds; whether a base is in use."""
        for task in (self._checking, self._build):
            if isinstance(task, threading.Thread):
                task.join(timeout)
            elif task is not None:
                task.wait(timeout)
        self._seen = None
        self.refresh()
        if self._base is None and self._checking is not None and self._checking.is_alive():
            self._checking.join(timeout)
            self._seen = None
            self.refresh()
        return self._base is not None

    def verify(self) -> tuple[str, ...]:
        """What is wrong with the base in use and with its vectors, by reading all of both; () if nothing is.

        A damaged base is dropped and rebuilt. Damaged vectors are the lab's to restore from its journal.
        """
        with self._mutex:
            base, vectors = self._base, self._vectors
        problems = []
        rows = len(vectors) // BLOCK * BLOCK
        if vectors.digest(rows, rehash=True) != vectors.digest(rows):
            problems.append("The vectors are not those that were written: their file is damaged.")
        if base is not None and not _is_complete(base.path, base.header):
            problems.append(f"The index {base.path.name} is damaged.")
            with self._mutex:
                self._refuse(base.path, problems[-1])
                self._release()
        return tuple(problems)

    def forget(self) -> None:
        """Remove every base, those of former kinds too, and end a build: for when vectors themselves must go."""
        with self._mutex:
            self._stop()
            self._release()
            if self._folder is not None and self.writable:
                for path in self._folder.glob("*.index"):
                    remove(path)

    def close(self, *, stop: bool = False) -> None:
        """Let the base go. A build goes on without us and is found when the lab is opened again; ``stop`` ends it.

        With a temporary folder it is ended and everything removed.
        """
        with self._mutex:
            if self._closed:
                return
            self._closed = True
            if stop or self._temporary:
                self._stop()
            elif self._build is not None:
                self._build.started.wait()
            self._release()
            if self._temporary and self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)

    # -- opening ----------------------------------------------------------------------------------------------

    def _stamp(self) -> int | None:
        if self._folder is None:
            return None
        try:
            return os.stat(self._folder).st_mtime_ns  # noqa: PTH116  a Path costs as much again
        except FileNotFoundError:
            return None

    def _adopt(self) -> None:
        """Use the base of most rows that is sound and made of these vectors."""
        self._ahead = None
        found = [] if self._folder is None else found_bases(self._folder, self.kind.name)
        for path, header in found:
            if header.rows > len(self._vectors):
                self._ahead = header.rows
                continue
            if self._base is not None and path == self._base.path and header == self._base.header:
                return
            if (
                header.dim != self._vectors.dim
                or self._vectors.digest(header.rows) != header.vectors
            ):
                continue
            if self._sound(path, header):
                self._open(path, header)
                if self._base is not None and self._base.path == path:
                    return
        self._release(keep_seen=True)

    def _open(self, path: Path, header: Header) -> None:
        try:
            base = Base(path, header, effort=self.effort)
        except (DamagedLab, OSError) as error:
            self._refuse(path, f"The index {path.name} cannot be opened: {error}")
            return
        self._vectors.attach(base)
        self._base, self.failure = base, None

    def _sound(self, path: Path, header: Header) -> bool:
        """Whether the file may be mapped: only after all of it was compared once, a large one in the background."""
        try:
            status = path.stat()
            if status.st_size != header.size or sampled(path) != header.sample:
                self._refuse(path, f"The index {path.name} is damaged.")
                return False
        except FileNotFoundError:
            self._refuse(path, f"The index {path.name} is missing.")
            return False
        seen = (path.name, status.st_mtime_ns)
        if seen not in self._checked and header.size <= _AT_ONCE:
            self._checked[seen] = _is_complete(path, header)
        known = self._checked.get(seen)
        if known is None:
            if self._checking is None or not self._checking.is_alive():
                self._checking = threading.Thread(
                    target=self._check,
                    args=(path, header, seen),
                    name="memlab index check",
                    daemon=True,
                )
                self._checking.start()
        elif not known:
            self._refuse(path, f"The index {path.name} is damaged.")
        return known is True

    def _check(self, path: Path, header: Header, seen: tuple[str, int]) -> None:
        """Compare all of a file."""
        try:
            self._checked[seen] = _is_complete(path, header)
        except OSError as error:
            # it was removed meanwhile, or cannot be read: whatever was found out above is kept
            self.failure = f"The index {path.name} could not be checked: {error}"
        self._seen = -1

    def _refuse(self, path: Path, reason: str) -> None:
        self.failure = reason
        if self.writable:
            remove(path)

    def _release(self, *, keep_seen: bool = False) -> None:
        self._vectors.attach(None)
        self._base = None
        if not keep_seen:
            self._seen = -1

    # -- building ---------------------------------------------------------------------------------------------

    def _covers(self, rows: int) -> bool:
        return self._base is not None and len(self._base) >= rows

    @property
    def is_due(self) -> bool:
        """Whether so many rows are outside the base in use that a new one is to be built."""
        count = len(self._vectors)
        if count <= self._vectors.exact_up_to or self._build is not None:
            return False
        if self._checking is not None and self._checking.is_alive():
            return False
        if self._failed_rows and count < self._failed_rows * (1 + self.share):
            return False
        covered = 0 if self._base is None else len(self._base)
        return count - covered >= max(BLOCK, self.share * covered)

    def _start(self) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="memlab-neighbours-"))
            weakref.finalize(self, shutil.rmtree, self._folder, True)
        rows = len(self._vectors) // BLOCK * BLOCK
        self._build = Build(self._folder, self.kind.name, self._vectors, rows)

    def _reap(self) -> None:
        """Note how a build ended."""
        build = self._build
        if build is None or not build.ended.is_set():
            return
        self._build, self._seen = None, -1
        if build.busy:
            self._not_before = time.monotonic() + _RETRY
        elif build.failure is not None:
            self.failure, self._failed_rows = build.failure, build.rows
        else:
            self._failed_rows = 0

    def _stop(self) -> None:
        if self._build is not None:
            self._build.stop()
            self._build.wait()
            self._build = None


def _is_complete(path: Path, header: Header) -> bool:
    try:
        return path.stat().st_size == header.size and checksum_of(path) == header.checksum
    except FileNotFoundError:
        return False


# Removing every file that was made of vectors, for when vectors themselves must go.


_SWEEP_PAUSE = 0.02


def sweep(folder: Path, *, timeout: float = 30.0) -> None:
    """Remove all indexes in ``folder`` and what builders left, under the builders' lock.

    LabBusy if another process builds one for longer than ``timeout`` seconds. Who has an index mapped keeps it.
    """
    if not folder.exists():
        return
    lock = os.open(folder / "build.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _take_lock(lock, folder, time.monotonic() + timeout)
        for path in folder.iterdir():
            if path.name != "build.lock":
                path.unlink(missing_ok=True)
    finally:
        os.close(lock)


def _take_lock(lock: int, folder: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LabBusy(
                    f"Another process builds an index in {folder}. Open the lab again when it has ended."
                ) from None
            time.sleep(_SWEEP_PAUSE)
        else:
            return


# The process that builds an index runs ``build_from_spool`` alone. It inherits the folder's lock as an open descriptor,
# so the lock lasts exactly as long as the process, however it ends. It trusts nothing it is given: the vectors must
# have the digest that was asked for.


def build_from_spool(folder: str, kind: str, rows: str, digest: str, spool: str) -> None:
    """Build, publish, and remove the bases that this one replaces."""
    started = time.monotonic()
    load_installed()
    vectors = Vectors.load(spool).prefix(int(rows))
    Path(spool).unlink()  # it stays mapped
    if vectors.digest(len(vectors), rehash=True) != digest:
        raise DamagedLab(
            "The vectors changed on their way to the builder, or the file that holds them is damaged."
        )
    path = build_base(
        vectors, Path(folder), KINDS[kind], seconds=lambda: time.monotonic() - started
    )
    _remove_replaced(path, KINDS[kind], len(vectors))


def _remove_replaced(kept: Path, kind: Kind, rows: int) -> None:
    """Bases of this kind over at most as many rows go, and files without a header; the others are not ours to judge."""
    known = {path for path, header in found_bases(kept.parent, kind.name) if header.rows > rows}
    for path in kept.parent.glob(f"{kind.name}-*.index"):
        if path != kept and path not in known:
            remove(path)
