"""Starting the process that builds an index, never two at once, and learning how it ended.

The lock is ``flock`` on an open file that the builder inherits: the kernel lets it go when the builder ends, however it
ends, so it cannot go stale; and it outlives the process that started it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from memlab.errors import MemlabError
from memlab.kernel.index._base import draft_of
from memlab.kernel.index._vectors import Vectors

__all__ = ["Build"]


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
            [sys.executable, "-P", "-m", "memlab.kernel.index._builder", *arguments],
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
    return {**os.environ, "PYTHONPATH": here + (os.pathsep + path if path else ""), "OPENBLAS_NUM_THREADS": "1"}
