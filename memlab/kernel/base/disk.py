"""Durable writes, sealed files that reveal changes, and errors of the disk as errors of memlab."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from memlab.errors import DamagedLab, InputError, LabError, MemlabError, ReadOnlyLab

# Bytes read at a time for a checksum: large enough for the speed of the disk, small enough for memory.
_CHUNK = 1 << 22
_SEAL = 9
"""Length in bytes of a seal: eight digits of a checksum, and a line break."""

MAPPED_BYTES = 4 << 20
"""Bytes from which a file is mapped and not read: a mapping keeps a descriptor open, and reading them takes 1 ms."""

MAX_SOURCE = 4 << 20
"""Maximum characters of a file with policies or operations; the longest pack of memlab has 11,000."""

# A scheme of two letters or more, so that a Windows drive does not count as a scheme.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/", re.ASCII)


def sync(path: Path) -> None:
    """Flush a file's bytes, or a directory's entries, to permanent storage."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_open(descriptor)
    finally:
        os.close(descriptor)


def sync_open(descriptor: int) -> None:
    """Flush the data written to an open file to permanent storage."""
    # On macOS, fsync only reaches the cache of the drive.
    if hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def open_source(source: str | Path | BinaryIO) -> BinaryIO:
    """Open the file at a path for reading, or return an open file unchanged."""
    return Path(source).open("rb") if isinstance(source, str | Path) else source


@contextmanager
def replacing(target: str | Path | BinaryIO) -> Iterator[BinaryIO]:
    """Yield a draft file that replaces the file at a path on exit; yield an open file as is."""
    if not isinstance(target, str | Path):
        yield target
        return
    path = Path(target)
    # Two writers of a path have two drafts, so that neither truncates or renames that of the other.
    draft = path.with_name(f"{path.name}.{os.urandom(4).hex()}.draft")
    try:
        with draft.open("xb") as file:
            yield file
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def check_regular(path: Path) -> int:
    """Return the size in bytes of a regular file, without opening the file.

    Raises InputError for a pipe, a socket or a device, because opening or reading one may never end. A folder passes, so
    that the system reports it.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise InputError(
            f"{path} is not a regular file but a pipe, a socket or a device. Copy its content to a file first."
        )
    return status.st_size


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file for reading in binary mode; see `check_regular`."""
    check_regular(path)
    # O_NONBLOCK: the path may have become a pipe since the check, and opening must not wait for its writer.
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


def read_source_file(path: Path) -> str:
    """Return the text of a file of policies or operations, or raise InputError if unreadable."""
    try:
        return read_source(path)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text: {error.reason} at byte {error.start}."
        ) from None


def read_source(path: Path) -> str:
    """Return the text of a file of policies or operations, or raise InputError if too large."""
    with io.TextIOWrapper(open_regular(path), encoding="utf-8") as file:
        text = file.read(MAX_SOURCE + 1)
    if len(text) > MAX_SOURCE:
        raise InputError(f"{path} has more than {MAX_SOURCE:,} characters. Split it.")
    return text


def checksum_of(path: Path) -> int:
    """Return the CRC-32 of a file's bytes.

    Reading takes 0.4 seconds per gigabyte.
    """
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc


def write_sealed(path: Path, data: bytes) -> None:
    """Write and sync a file with a checksum that `read_sealed` verifies."""
    path.write_bytes(b"%08x\n" % zlib.crc32(data) + data)
    sync(path)


def read_sealed(path: Path) -> bytes:
    """Read and verify the content of a file written by `write_sealed`.

    Raises DamagedLab if the file is missing or has other content.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DamagedLab(f"{path.name} cannot be read: {error.strerror}.") from None
    if content[:_SEAL] != b"%08x\n" % zlib.crc32(content[_SEAL:]):
        raise DamagedLab(
            f"{path.name} was changed after it was written: its checksum differs, so it is not used."
        )
    return content[_SEAL:]


@contextmanager
def writing(what: str, *also: type[Exception]) -> Iterator[None]:
    """Convert disk errors raised within the block to memlab errors.

    `what` names the data that is written. `also` are errors besides OSError by which a library reports a disk error.
    """
    refused: tuple[type[Exception], ...] = (OSError, *also)
    try:
        yield
    except MemlabError:  # Some errors of memlab are also OSErrors.
        raise
    except refused as error:
        raise translate_error(what, error) from error


def translate_error(what: str, error: Exception) -> LabError:
    """Return the memlab error for a disk error that occurred while writing `what`."""
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
    """Return True if a path looks like a URL, such as ``s3://bucket``.

    A URL has a scheme of two letters or more, ``:`` and ``/``. ``Path`` keeps only one of two
    slashes. A Windows drive has one letter and is not a scheme.

    >>> is_url("postgresql://host/base"), is_url(Path("s3://bucket/key")), is_url("C:/labs/a")
    (True, True, False)
    """
    return _URL.match(str(path)) is not None
