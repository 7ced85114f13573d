"""Removing every file that was made of vectors, for when vectors themselves must go."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from memlab.errors import LabBusy

__all__ = ["sweep"]

_PAUSE = 0.02


def sweep(folder: Path, *, timeout: float = 30.0) -> None:
    """Remove all indexes in ``folder`` and what builders left, under the builders' lock.

    LabBusy if another process builds one for longer than ``timeout`` seconds. Who has an index mapped keeps it.
    """
    if not folder.exists():
        return
    lock = os.open(folder / "build.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _take(lock, folder, time.monotonic() + timeout)
        for path in folder.iterdir():
            if path.name != "build.lock":
                path.unlink(missing_ok=True)
    finally:
        os.close(lock)


def _take(lock: int, folder: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LabBusy(
                    f"Another process builds an index in {folder}. Open the lab again when it has ended."
                ) from None
            time.sleep(_PAUSE)
        else:
            return
