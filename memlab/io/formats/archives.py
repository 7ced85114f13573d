"""Zip archives of exports, unpacked into a temporary folder within limits."""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO

from memlab.errors import DatasetError
from memlab.io.formats.lines import MAX_DOCUMENT_BYTES, Notes
from memlab.kernel.base.disk import open_regular

__all__ = ["is_archive", "open_archive", "read_member", "unpack_archive"]

MAX_UNPACKED_BYTES = 4 << 30
"""Maximum bytes of all readable files of an archive; exports of ten years of messages have a tenth."""

MAX_MEMBERS = 200_000
"""Maximum files of an archive, as of a folder."""

_MAX_RATIO = 200
"""Maximum ratio of unpacked to packed bytes of a file above 1 MiB; JSON with repeated keys reaches about 40."""


def is_archive(path: Path) -> bool:
    """Return whether a path is a zip archive by its name."""
    return path.suffix.lower() == ".zip" and path.is_file()


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; DatasetError if it is cut off, too large or not a zip archive."""
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


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, source: str) -> BinaryIO:
    """Return an open file of an archive, within limits; DatasetError if it cannot be unpacked."""
    name, size = f"{source}/{member.filename}", member.file_size
    if size > MAX_DOCUMENT_BYTES or (
        size > 1 << 20 and size > _MAX_RATIO * max(1, member.compress_size)
    ):
        raise DatasetError(
            f"{name} unpacks to {size:,} bytes from {member.compress_size:,}, more than a file of an export may. "
            "Unpack it and load the file."
        )
    try:
        return archive.open(member)  # type: ignore[return-value]  # a reader of bytes
    except (NotImplementedError, RuntimeError, zipfile.BadZipFile) as error:
        raise DatasetError(
            f"{name} cannot be unpacked: {error}. Unpack the archive with another program and load the folder."
        ) from None


@contextmanager
def unpack_archive(path: Path, suffixes: Collection[str], notes: Notes) -> Iterator[Path]:
    """Unpack the files with known suffixes into a temporary folder, which is removed afterwards.

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
            total += member.file_size
            if total > MAX_UNPACKED_BYTES:
                raise DatasetError(
                    f"{path.name} unpacks to more than {MAX_UNPACKED_BYTES:,} bytes. Unpack it and load its folders."
                )
            try:
                _unpack(archive, member, root / name, path.name)
            except (DatasetError, OSError) as problem:
                notes.skip(number, "file not read", str(problem))
        entries = list(root.iterdir())
        # many archives contain one folder with everything
        yield entries[0] if len(entries) == 1 and entries[0].is_dir() else root


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, source: str) -> None:
    """Write one file of an archive; DatasetError if its bytes are damaged."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with read_member(archive, member, source) as file, target.open("xb") as out:
            while piece := file.read(1 << 20):
                out.write(piece)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        target.unlink(missing_ok=True)
        raise DatasetError(f"{source}/{member.filename} is damaged: {error}.") from None
