"""The head file: how far a lab had come when it was last written, so that a shorter journal is noticed.

SQLite takes a write-ahead log that was cut or damaged for one that ended there, without a word. So the last event and
its chain value are written to a small file of their own after each commit. It is synced where the log is moved into the
database, at a backup and on closing, not at each commit: what it tells is what a killed process had acknowledged. After
a power loss it may be older than the journal (which is as good as none), or name recalls that were never synced.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import msgspec

from memlab.errors import DamagedLab
from memlab.kernel.base.disk import sync, sync_open

__all__ = ["RESTORED", "Head", "HeadFile"]

_BYTES = 512
"""The length of the record, written in place at once: a block of a disk, so that it is not written by halves."""


RESTORED = "restored"
"""What a restored journal knows of itself: the text of the head that was given up for it."""


class Head(msgspec.Struct, frozen=True):
    """The last event of a journal. ``lost`` says what was found missing, until ``memlab restore`` settles it."""

    lab: str
    generation: int
    seq: int
    chain: str
    lost: str = ""

    @property
    def text(self) -> str:
        """It as one line."""
        return msgspec.json.encode(self).decode()


class HeadFile:
    """The file ``head`` of a lab's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def read(self) -> Head | None:
        """What was last written; None if there is no such file. DamagedLab if it is not what was written."""
        for attempt in range(3):  # another process may be writing it at this moment
            try:
                data = self.path.read_bytes()
            except FileNotFoundError:
                return None
            except OSError as error:
                raise DamagedLab(f"{self.path} cannot be read: {error.strerror}.") from None
            if not data:
                return None  # made, and not yet written
            if len(data) == _BYTES and data[:8] == b"%08x" % zlib.crc32(data[8:]):
                break
            if attempt == 2:
                raise DamagedLab(f"{self.path} is not what was written.")
        try:
            return msgspec.json.decode(data[8:].rstrip(), type=Head)
        except msgspec.MsgspecError:
            raise DamagedLab(f"{self.path} is not what was written.") from None

    def write(self, head: Head) -> None:
        """Put ``head`` in the place of what was there: ten microseconds. OSError where the disk refuses."""
        encoded = msgspec.json.encode(head)[: _BYTES - 8].ljust(_BYTES - 8)
        record = b"%08x" % zlib.crc32(encoded) + encoded
        if self._descriptor is not None and not os.fstat(self._descriptor).st_nlink:
            self.close()  # somebody removed the file
        if self._descriptor is None:
            new = not self.path.exists()
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if new:
                os.pwrite(self._descriptor, record, 0)
                sync_open(self._descriptor)
                sync(self.path.parent)
        os.pwrite(self._descriptor, record, 0)

    def sync(self) -> None:
        """Make what was written durable. OSError where the disk refuses."""
        if self._descriptor is not None:
            sync_open(self._descriptor)

    def close(self) -> None:
        """Let the file go."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
