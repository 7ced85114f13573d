"""The life cycle of an approximate index.

An index is opened, validated, rebuilt in the background and replaced.

A base never changes. A separate process builds a larger base and publishes it by renaming. The builder holds a lock
that the operating system releases when it ends. Other processes detect a new base by the modification time of the
folder, which takes microseconds. A base that is missing, damaged or built from other vectors is not used, and searches
are then exact. The mask of a search excludes deleted rows, and rows that were added after the build are searched
exactly.
"""

from __future__ import annotations

import fcntl
import json
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

from memlab.errors import (
    DamagedLab,
    InputError,
    LabBusy,
    MemlabError,
    MissingExtra,
    UnknownName,
)
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
    list_bases,
    remove,
    sample_checksum,
)
from memlab.kernel.index._vectors import BLOCK, Vectors

# The process that builds an index. At most one runs at a time, and its exit status is always read.
#
# The lock is ``flock`` on an open file that the builder inherits. The operating system releases it when the builder
# ends, even if it is killed, so the lock cannot become stale. The lock is held even if the process that started the
# builder ends first.


# The code of the builder. Niceness 10 gives searches priority.
_BUILDER = """
import os, sys
from memlab.kernel.index._neighbours import build_from_spool
os.nice(10)
build_from_spool(*sys.argv[1:])
"""


class Build:
    """One build of an index, run by a thread.

    The thread acquires the lock, writes the vectors, starts the builder and waits for it.
    """

    def __init__(
        self,
        folder: Path,
        kind: str,
        vectors: Vectors,
        rows: int,
        chosen: Mapping[str, int] | None = None,
    ) -> None:
        self.folder, self.kind, self.rows, self.chosen = folder, kind, rows, chosen or {}
        self.busy = False
        self.failure: str | None = None
        self.started, self.ended = threading.Event(), threading.Event()
        self._vectors, self._prefix = vectors, vectors.prefix(rows)
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        threading.Thread(target=self._run, name="memlab index build", daemon=True).start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to ``timeout`` seconds for the build; return whether it has ended."""
        return self.ended.wait(timeout)

    def stop(self) -> None:
        """Kill the builder process. The next build removes its unfinished files."""
        self._stopped = True
        self.started.wait()
        if self._process is not None:
            self._process.kill()

    def _run(self) -> None:
        """Acquire the lock, start the builder process and wait until it ends.

        If another process has the lock, only set ``busy``. Errors are stored in ``failure``.
        """
        try:
            # Parent folders are not created, because a lab that was removed must not appear again.
            self.folder.mkdir(exist_ok=True)
            lock = os.open(self.folder / "build.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._spawn(lock)
            except BlockingIOError:
                self.busy = True
            finally:
                # The file is closed and not unlocked, because the builder inherits the open file and holds the lock
                # until it ends.
                os.close(lock)
                self.started.set()
            self._await()
        except (OSError, MemlabError) as error:
            self.failure = f"The index could not be built: {error}"
        finally:
            self.started.set()
            self.ended.set()

    def _spawn(self, lock: int) -> None:
        """Write the vectors to a file and start the builder process.

        The builder process inherits the open file with the lock.
        """
        for leftover in self.folder.glob(draft_of(self.folder, "*").name):
            leftover.unlink(missing_ok=True)
        spool = draft_of(self.folder, "vectors")
        digest = self._vectors.digest(self.rows)
        self._prefix.spool(spool)
        if self._stopped:
            return
        settings = json.dumps(dict(self.chosen))
        arguments = [str(self.folder), self.kind, str(self.rows), digest, str(spool), settings]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BUILDER, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=_environment(),
            pass_fds=(lock,),
            # An interrupt in a notebook must not end the builder.
            start_new_session=True,
        )

    def _await(self) -> None:
        """Wait until the builder process ends, and record any failure of the process."""
        if self._process is None:
            return
        _, output = self._process.communicate()
        if self._process.returncode:
            last = output.decode("utf-8", "replace").strip().rpartition("\n")[2] or "no message"
            self.failure = (
                f"The builder of the index failed with exit code {self._process.returncode}: {last}"
            )


def _environment() -> Mapping[str, str]:
    """Return the environment variables of the builder process.

    They put this copy of memlab first on the path and limit OpenBLAS to one thread.
    """
    root = str(Path(__file__).parents[3])
    path = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": root + (os.pathsep + path if path else ""),
        "OPENBLAS_NUM_THREADS": "1",
    }


_SETTLED = 50_000_000
"""The age in nanoseconds from which the modification time of a folder is reliable. Kernels round it to about 4 ms."""

_PAUSE = 0.05
"""Seconds between two checks while waiting for a build of another process."""

_AT_ONCE = 1 << 26
"""The size in bytes up to which an index is compared with its checksum during a search, which takes 25 ms."""

_MEMORY = Path("/dev/shm")
"""A folder in memory, which exists on Linux but not on macOS."""

_RETRY = 5.0
"""Seconds between two attempts to build while another process holds the lock."""


class Neighbours:
    """The nearest-neighbour index of ``vectors``: built, published and validated.

    The bases are in ``folder``, which the first build creates. None means a temporary folder that is removed with this
    object; ``secret`` keeps that folder in memory, for vectors that must not reach a disk. ``kind`` is a kind of index,
    such as "annoy". The factor ``effort`` multiplies the number of nodes that a search inspects, for more recall and
    more time. A base is rebuilt when the rows added after it exceed ``share`` of its rows. With ``background=False``,
    only ``rebuild`` starts a build. With ``writable=False``, nothing is written.

    Call ``refresh`` before a search:

    >>> neighbours = Neighbours("agent.memlab/neighbours", vectors)     # doctest: +SKIP
    >>> neighbours.refresh(); vectors.top(query, 10)                    # doctest: +SKIP

    Raises UnknownName for an unknown kind.
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
        secret: bool = False,
    ) -> None:
        if kind == "graph":
            raise InputError(
                'The index "graph" was removed with the extra "graph". Use index="annoy".'
            )
        if kind not in KINDS:
            raise UnknownName("kind of index", kind, KINDS)
        if not 0.05 <= effort <= 100 or not 0 < share <= 1:
            raise InputError(
                f"effort must be in 0.05..100, and share above 0 and at most 1, not {effort} and {share}."
            )
        self.kind, self.effort, self.share = KINDS[kind], effort, share
        # Where no folder is in memory, an encrypted lab has no index, and searches stay exact.
        writable = writable and (not secret or _MEMORY.is_dir())
        self.background, self.writable = background and writable, writable
        self._parent = _MEMORY if secret else None
        self.failure: str | None = None
        """The reason why the last base was refused or not built, or None."""
        self._folder = None if folder is None else Path(folder)
        self._temporary = folder is None
        self._vectors = vectors
        self.chosen: Mapping[str, int] | None = None
        """Settings of the next index, such as trees, or None for those of the index in use."""
        self._base: Base | None = None
        self._last_stamp: int | None = None
        self._rows_of_later_base: int | None = None
        self._checked: dict[tuple[str, int], bool] = {}
        self._checking: threading.Thread | None = None
        self._build: Build | None = None
        self._not_before = 0.0
        self._failed_rows = 0
        # Searches call refresh in several threads, while checks and builds end in other threads.
        self._mutex = ThreadLock()
        self._closed = False

    # -- before each search -----------------------------------------------------------------------------------

    def refresh(self, vectors: Vectors | None = None) -> None:
        """Switch to the largest valid index, and start a build if one is due.

        A call takes microseconds if nothing has changed. After a change of the embedder, pass its ``vectors``; they
        replace the previous vectors.
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
            has_caught_up = (
                self._rows_of_later_base is not None
                and len(self._vectors) >= self._rows_of_later_base
            )
            if stamp != self._last_stamp or has_caught_up:
                self._last_stamp = (
                    stamp if stamp is None or time.time_ns() - stamp > _SETTLED else -1
                )
                self._adopt()
            if self.background and self.is_due and time.monotonic() >= self._not_before:
                self._start()

    @property
    def base(self) -> Base | None:
        """The index file in use, or None without an index."""
        return self._base

    @property
    def vectors(self) -> Vectors:
        """The vectors that the index covers."""
        return self._vectors

    @property
    def build(self) -> Build | None:
        """The build that this process has started but not finished, or None without a build."""
        return self._build

    @property
    def building(self) -> bool:
        """Whether a build of this process is running."""
        with self._mutex:
            self._reap()
            return self._build is not None

    # -- explicit calls --------------------------------------------------------------------------------------------

    def rebuild(self, *, wait: bool = True) -> bool:
        """Build an index of all whole blocks of 4,096 rows now.

        Returns whether an index of these rows is in use.

        If another process is building an index, the call waits for that build. Without an index, ``failure`` has the
        reason.

        Raises
        ------
        InputError
            If the lab is read-only or has less than one block.
        """
        if not self.writable:
            raise InputError(
                "No index can be built because the lab is read-only. Open it for writing."
            )
        rows = len(self._vectors) // BLOCK * BLOCK
        if not rows:
            raise InputError(
                f"An index needs at least one whole block of {BLOCK:,} rows, but there are "
                f"{len(self._vectors):,}. Add memories."
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
        """Wait up to ``timeout`` seconds for this process's checks and builds.

        Returns whether a base is in use.
        """
        for task in (self._checking, self._build):
            if isinstance(task, threading.Thread):
                task.join(timeout)
            elif task is not None:
                task.wait(timeout)
        self._last_stamp = None
        self.refresh()
        if self._base is None and self._checking is not None and self._checking.is_alive():
            self._checking.join(timeout)
            self._last_stamp = None
            self.refresh()
        return self._base is not None

    def verify(self) -> tuple[str, ...]:
        """Read the whole index and all vectors, and return a message for each fault.

        A damaged index is removed and later rebuilt. Damaged vectors must be restored from the journal of the lab.
        """
        with self._mutex:
            base, vectors = self._base, self._vectors
        problems = []
        rows = len(vectors) // BLOCK * BLOCK
        if vectors.digest(rows, rehash=True) != vectors.digest(rows):
            problems.append(
                "The file of vectors is damaged: its digest does not match. Restore it from the journal."
            )
        if base is not None and not _is_complete(base.path, base.header):
            problems.append(f"The index {base.path.name} is damaged. It is removed and rebuilt.")
            with self._mutex:
                self._refuse(base.path, problems[-1])
                self._release()
        return tuple(problems)

    def forget(self) -> None:
        """Remove every index file and stop a running build.

        A purge calls it, because indexes contain data from purged vectors.
        """
        with self._mutex:
            self._stop()
            self._release()
            if self._folder is not None and self.writable:
                for path in self._folder.glob("*.index"):
                    remove(path)

    def close(self, *, stop: bool = False) -> None:
        """Release the index file and stop watching the folder.

        A running build continues, and its result is used when the lab is opened again. With ``stop``, the build ends. A
        temporary folder is removed after its build was stopped.
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
        """Return the folder's modification time in nanoseconds, or None if it is missing."""
        if self._folder is None:
            return None
        try:
            return os.stat(self._folder).st_mtime_ns  # noqa: PTH116  a Path costs as much again
        except FileNotFoundError:
            return None

    def _adopt(self) -> None:
        """Switch to the largest valid index of the current vectors, or to no index if none is valid."""
        self._rows_of_later_base = None
        bases = [] if self._folder is None else list_bases(self._folder, self.kind.name)
        for path, header in bases:
            if header.rows > len(self._vectors):
                self._rows_of_later_base = header.rows
                continue
            if self._base is not None and path == self._base.path and header == self._base.header:
                return
            if (
                header.dim != self._vectors.dim
                or self._vectors.digest(header.rows) != header.vectors
            ):
                continue
            if self._is_sound(path, header):
                self._open(path, header)
                if self._base is not None and self._base.path == path:
                    return
        self._release(keep_stamp=True)

    def _open(self, path: Path, header: Header) -> None:
        """Open an index file and attach it to the vectors, or record the reason for a failure."""
        try:
            base = Base(path, header, effort=self.effort)
        except (DamagedLab, OSError) as error:
            self._refuse(path, f"The index {path.name} cannot be opened: {error}")
            return
        except MissingExtra as error:  # The file stays, for processes that have the package.
            self.failure = str(error)
            return
        self._vectors.attach(base)
        self._base, self.failure = base, None

    def _is_sound(self, path: Path, header: Header) -> bool:
        """Return whether an index file is known to be undamaged and may be mapped.

        The whole file is compared with its checksum once. For a large file, this runs in the background, and the result
        is False until it ends.
        """
        try:
            status = path.stat()
            if status.st_size != header.size or sample_checksum(path) != header.sample:
                self._refuse(path, f"The index {path.name} is damaged.")
                return False
        except FileNotFoundError:
            self._refuse(path, f"The index {path.name} is missing.")
            return False
        file_version = (path.name, status.st_mtime_ns)
        if file_version not in self._checked and header.size <= _AT_ONCE:
            self._checked[file_version] = _is_complete(path, header)
        is_complete = self._checked.get(file_version)
        if is_complete is None:
            if self._checking is None or not self._checking.is_alive():
                self._checking = threading.Thread(
                    target=self._check,
                    args=(path, header, file_version),
                    name="memlab index check",
                    daemon=True,
                )
                self._checking.start()
        elif not is_complete:
            self._refuse(path, f"The index {path.name} is damaged.")
        return is_complete is True

    def _check(self, path: Path, header: Header, file_version: tuple[str, int]) -> None:
        """Compare a whole file with its checksum and record the result. Runs in a thread of its own."""
        try:
            self._checked[file_version] = _is_complete(path, header)
        except OSError as error:
            # The file was removed in the meantime or cannot be read.
            self.failure = f"The index {path.name} could not be checked: {error}"
        self._last_stamp = -1

    def _refuse(self, path: Path, reason: str) -> None:
        """Record why an index file is unusable, and remove the file unless the lab is read-only."""
        self.failure = reason
        if self.writable:
            remove(path)

    def _release(self, *, keep_stamp: bool = False) -> None:
        """Detach the approximate index, so that vectors are searched without it.

        Unless ``keep_stamp`` is true, the folder is read again.
        """
        self._vectors.attach(None)
        self._base = None
        if not keep_stamp:
            self._last_stamp = -1

    # -- building ---------------------------------------------------------------------------------------------

    def _covers(self, rows: int) -> bool:
        """Return whether the index in use has at least ``rows`` rows and the chosen settings."""
        if self._base is None or len(self._base) < rows:
            return False
        built = self._base.header.settings
        return self.chosen is None or self.chosen.items() <= built.items()

    @property
    def is_due(self) -> bool:
        """Whether enough rows are outside the index in use to build a new one."""
        count = len(self._vectors)
        if count <= self._vectors.searched_up_to or self._build is not None:
            return False
        if self._checking is not None and self._checking.is_alive():
            return False
        if self._failed_rows and count < self._failed_rows * (1 + self.share):
            return False
        covered = 0 if self._base is None else len(self._base)
        return count - covered >= max(BLOCK, self.share * covered)

    def _start(self) -> None:
        """Start a build of an index over all whole blocks of rows."""
        rows = len(self._vectors) // BLOCK * BLOCK
        try:
            self.kind.settings(rows)
        except MissingExtra as error:  # Searches are exact, and the report names what to install.
            self.failure, self._failed_rows = str(error), rows
            return
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="memlab-neighbours-", dir=self._parent))
            weakref.finalize(self, shutil.rmtree, self._folder, True)
        self._build = Build(self._folder, self.kind.name, self._vectors, rows, self._chosen())

    def _chosen(self) -> Mapping[str, int]:
        """Return the non-default settings of the current index, overridden by those a caller chose."""
        chosen = dict(self.chosen or {})
        if self._base is not None:
            header = self._base.header
            usual = self.kind.settings(header.rows)
            built = {name for name, value in header.settings.items() if usual.get(name) != value}
            chosen = {name: header.settings[name] for name in built} | chosen
        return chosen

    def _reap(self) -> None:
        """Record the result of a build that has ended."""
        build = self._build
        if build is None or not build.ended.is_set():
            return
        self._build, self._last_stamp = None, -1
        if build.busy:
            self._not_before = time.monotonic() + _RETRY
        elif build.failure is not None:
            self.failure, self._failed_rows = build.failure, build.rows
        else:
            self._failed_rows = 0

    def _stop(self) -> None:
        """Stop the running build, if any, and wait until it ends."""
        if self._build is not None:
            self._build.stop()
            self._build.wait()
            self._build = None


def _is_complete(path: Path, header: Header) -> bool:
    """Return whether the size and the checksum of a file match its header."""
    try:
        return path.stat().st_size == header.size and checksum_of(path) == header.checksum
    except FileNotFoundError:
        return False


# A purge removes vectors and every file that was derived from them.


# Seconds between two attempts to lock the folder.
_SWEEP_PAUSE = 0.02


def sweep(folder: Path, *, timeout: float = 30.0) -> None:
    """Remove all finished and unfinished index files in ``folder``.

    The lock of builders is held during the removal. Processes that have mapped an index can still read it.

    Raises
    ------
    LabBusy
        If another process builds an index for longer than ``timeout`` seconds.
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
    """Acquire the lock of a folder, or raise LabBusy at the deadline."""
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LabBusy(
                    f"Another process is building an index in {folder}. Try again when that build has ended."
                ) from None
            time.sleep(_SWEEP_PAUSE)
        else:
            return


# The builder runs only ``build_from_spool``. The process inherits the lock of the folder as an open file, so the lock
# lasts exactly as long as the process. The vectors that it reads must have the requested digest.


def build_from_spool(
    folder: str, kind: str, rows: str, digest: str, spool: str, chosen: str = "{}"
) -> None:
    """Build an index from the vectors in the file ``spool``, and remove older indexes."""
    started = time.monotonic()
    load_installed()
    vectors = Vectors.load(spool).prefix(int(rows))
    # The file stays mapped and readable after it is removed.
    Path(spool).unlink()
    if vectors.digest(len(vectors), rehash=True) != digest:
        raise DamagedLab(
            "The vectors for the builder of the index do not match their digest: their file is damaged. Build again."
        )
    path = build_base(
        vectors,
        Path(folder),
        KINDS[kind],
        seconds=lambda: time.monotonic() - started,
        chosen=json.loads(chosen),
    )
    _remove_replaced(path, KINDS[kind], len(vectors))


def _remove_replaced(published: Path, kind: Kind, rows: int) -> None:
    """Remove indexes of a kind that have no header or that a newer index replaces.

    An index with more rows stays, because another builder has published it.
    """
    larger = {
        path for path, header in list_bases(published.parent, kind.name) if header.rows > rows
    }
    for path in published.parent.glob(f"{kind.name}-*.index"):
        if path != published and path not in larger:
            remove(path)
