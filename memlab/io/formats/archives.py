"""Zip archives of exports, unpacked into a temporary folder within limits."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import polars as pl

from memlab.errors import DatasetError
from memlab.io.formats.lines import MAX_DOCUMENT_BYTES, Notes
from memlab.kernel.base.disk import open_regular

MAX_UNPACKED_BYTES = 4 << 30
"""Maximum bytes of all readable files of an archive; exports of ten years of messages have a tenth."""

MAX_MEMBERS = 200_000
"""Maximum files of an archive, as of a folder."""

_MAX_RATIO = 200
"""Maximum ratio of unpacked to packed bytes of a file above 1 MiB; JSON with repeated keys reaches about 40."""


def is_archive(path: Path) -> bool:
    """Return whether a path is an existing file with the suffix ``.zip``."""
    return path.suffix.lower() == ".zip" and path.is_file()


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; raise DatasetError if the file is truncated, too large or not a zip."""
    with open_regular(path) as file:
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, OverflowError, EOFError) as error:
            raise DatasetError(
                f"{path.name} is not a readable zip archive: {error}. Export it again, or unpack it and load the folder."
            ) from None
        with archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                raise DatasetError(
                    f"{path.name} has more than {MAX_MEMBERS:,} files. Unpack it and load its folders one by one."
                )
            yield archive


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, source: str) -> bytes:
    """Return the unpacked bytes of a file in an archive; raise DatasetError beyond the limits."""
    name, size = f"{source}/{member.filename}", member.file_size
    try:
        # the decoders of bzip2 and LZMA in zipfile unpack a whole piece at once, whatever size the archive states
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTD):
            raise NotImplementedError(f"compression method {member.compress_type} is not supported")
        file = archive.fp
        assert file is not None
        if member.compress_size > file.seek(0, 2):
            raise zipfile.BadZipFile("its directory entry states a size larger than the archive")
        packed = _read_packed(archive, member) if member.compress_type == _ZSTD else None
        size = max(size, _bound_zstd(packed or b""))
        if size > MAX_DOCUMENT_BYTES or (
            size > 1 << 20 and size > _MAX_RATIO * max(1, member.compress_size)
        ):
            raise DatasetError(
                f"{name} unpacks from {member.compress_size:,} to {size:,} bytes, above "
                "the limits for one file of an archive. Unpack it and load the file."
            )
        return _read_pieces(archive, member) if packed is None else _decompress_zstd(packed)
    except DatasetError:
        raise
    except (NotImplementedError, RuntimeError) as error:
        raise DatasetError(
            f"The file {name} in an archive cannot be unpacked: {error}. "
            "Unpack the archive with another program and load the folder."
        ) from None
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        struct.error,
        OSError,
        ValueError,  # a negative offset, or a name in a broken encoding
        pl.exceptions.PolarsError,
    ) as error:
        raise DatasetError(f"{name} is damaged: {error}. Export it again.") from None


def _read_pieces(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Unpack a stored or deflated file of an archive, up to the size that the archive states.

    A read without a length unpacks everything and cuts it to the stated size afterwards.
    """
    with archive.open(member) as file:
        return b"".join(iter(lambda: file.read(1 << 16), b""))


# -- zstd, which Python's zipfile reads from 3.14 on; logs of Inspect use it ------------------------------------------

_ZSTD = 93
"""The number of zstd in zip archives."""


def _read_packed(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return the compressed bytes of a file in an archive."""
    file = archive.fp
    assert file is not None
    file.seek(member.header_offset)
    name_length, extra_length = struct.unpack("<26x2H", file.read(30))
    file.seek(name_length + extra_length, 1)
    return file.read(member.compress_size)


def _bound_zstd(data: bytes) -> int:
    """Return the maximum size of unpacked zstd frames (RFC 8878), given their block headers.

    Polars unpacks without a limit, and the size that an archive states may be false.
    """
    total = position = 0
    while position < len(data):
        # a frame to skip, or another format that Polars detects, has no blocks to add up
        if data[position : position + 4] != b"\x28\xb5\x2f\xfd":
            raise zipfile.BadZipFile("it contains something other than frames of zstd")
        (flags,) = struct.unpack_from("<4xB", data, position)
        is_single = flags >> 5 & 1
        sizes = (is_single, 2, 4, 8)[flags >> 6], (0, 1, 2, 4)[flags & 3]
        position += 6 - is_single + sum(sizes)
        is_last = 0
        while not is_last:
            header = int.from_bytes(struct.unpack_from("3s", data, position)[0], "little")
            is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
            # a packed block has at most 128 kB; a repeated byte is stored once
            total += 1 << 17 if kind == 2 else size
            position += 3 + (1 if kind == 1 else size)
        position += 4 * (flags >> 2 & 1)
    return total


def _decompress_zstd(data: bytes) -> bytes:
    """Decompress a zstd-packed JSON text, which Polars reads as a table of lines."""
    # U+0001 cannot occur in JSON, so each line is one cell
    lines = pl.read_csv(
        data, has_header=False, separator="\x01", quote_char=None, infer_schema=False
    )
    return "\n".join(lines.to_series().fill_null("").to_list()).encode()


@contextmanager
def unpack_archive(path: Path, suffixes: Collection[str], notes: Notes) -> Iterator[Path]:
    """Unpack files with known suffixes into a temporary folder that is removed afterwards.

    The folder has the name of the archive. Links and names that leave the folder are not unpacked.
    """
    with TemporaryDirectory(prefix="memlab-") as temporary, open_archive(path) as archive:
        root = Path(temporary, path.stem)
        root.mkdir()
        total = 0
        for number, member in enumerate(archive.infolist(), 1):
            name = PurePosixPath(member.filename)
            if member.is_dir() or name.parts[:1] == ("__MACOSX",):
                continue
            is_link = stat.S_ISLNK(member.external_attr >> 16)
            if name.suffix.lower() not in suffixes or is_link:
                notes.left_out["link" if is_link else "file of no known format"] += 1
                continue
            if name.is_absolute() or ".." in name.parts or "\\" in member.filename:
                notes.skip(number, "file not read", f"{name} is outside the archive")
                continue
            try:
                data = read_member(archive, member, path.name)
            except DatasetError as problem:
                notes.skip(number, "file not read", str(problem))
                continue
            total += len(data)
            if total > MAX_UNPACKED_BYTES:
                raise DatasetError(
                    f"{path.name} unpacks to more than {MAX_UNPACKED_BYTES:,} bytes. Unpack it and load its folders."
                )
            try:
                target = root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                # notes are dated by their files; an archive names no time zone
                at = datetime(*member.date_time, tzinfo=UTC).timestamp()
                os.utime(target, (at, at))
            except (OSError, ValueError) as problem:
                notes.skip(number, "file not read", str(problem))
        entries = list(root.iterdir())
        # many archives contain one folder with everything
        yield entries[0] if len(entries) == 1 and entries[0].is_dir() else root
