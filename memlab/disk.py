"""What every room that writes files promises: what was synced is on the disk."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

__all__ = ["sync"]


def sync(path: Path) -> None:
    """Make a file's bytes, or the names in a directory, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # On macOS fsync reaches the drive's cache only.
        if hasattr(fcntl, "F_FULLFSYNC"):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        else:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
