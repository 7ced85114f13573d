"""What every part that writes files promises: what was synced is on the disk, what was changed since is noticed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memlab.errors import DamagedLab, LabError, MemlabError, ReadOnlyLab

__all__ = [
    "checksum_of",
    "is_url",
    "read_sealed",
    "sync",
    "sync_open",
    "translate_error",
    "write_sealed",
    "writing",
]

_CHUNK = 1 << 22
_SEAL = 9
"""Eight digits of a checksum and a line break, in front of what they cover."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/", re.ASCII)


def sync(path: Path) -> None:
    """Make a file's bytes, or the names in a directory, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_open(descriptor)
    finally:
        os.close(descriptor)


def sync_open(descriptor: int) -> None:
    """Make durable what was written to an open file."""
    # On macOS fsync reaches the drive's cache only.
    if hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def checksum_of(path: Path) -> int:
    """The CRC-32 of all bytes of a file: 0.4 seconds a gigabyte."""
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc


def write_sealed(path: Path, data: bytes) -> None:
    """Write and sync a file of which ``read_sealed`` knows whether it was changed."""
    path.write_bytes(b"%08x\n" % zlib.crc32(data) + data)
    sync(path)


def read_sealed(path: Path) -> bytes:
    """What ``write_sealed`` wrote; DamagedLab if the file is missing or holds something else."""
    try:
        held = path.read_bytes()
    except OSError as error:
        raise DamagedLab(f"{path.name} cannot be read: {error.strerror}.") from None
    if held[:_SEAL] != b"%08x\n" % zlib.crc32(held[_SEAL:]):
        raise DamagedLab(f"{path.name} is not what was written.")
    return held[_SEAL:]


@contextmanager
def writing(what: str, *also: type[Exception]) -> Iterator[None]:
    """Raise what a disk refuses as an error of memlab's tree.

    ``what`` is what could not be written; ``also`` are errors besides OSError by which a library tells of a disk.
    """
    refused: tuple[type[Exception], ...] = (OSError, *also)
    try:
        yield
    except MemlabError:  # some are OSErrors as well
        raise
    except refused as error:
        raise translate_error(what, error) from error


def translate_error(what: str, error: Exception) -> LabError:
    """What a disk that refused ``what`` means."""
    code = error.errno if isinstance(error, OSError) else None
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return LabError(
            f"{what} cannot be written: the disk is full. Free some space and try again."
        )
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnlyLab(f"{what} cannot be written: {os.strerror(code)}.")
    return LabError(
        f"{what} cannot be written: {(error.strerror if isinstance(error, OSError) else None) or error}."
    )


def is_url(path: str | Path) -> bool:
    """Return whether a path is meant as a URL: a scheme of two letters or more, ``:`` and ``/``.

    ``Path`` keeps one slash of two. A drive of Windows has one letter, and is no scheme.

    >>> is_url("postgresql://host/base"), is_url(Path("s3://bucket/key")), is_url("C:/labs/a")
    (True, True, False)
    """
    return _URL.match(str(path)) is not None
