"""The lines of a file, read within bounds: never more of one than ``MOST_LINE`` bytes, whatever the file holds."""

from __future__ import annotations

import codecs
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from memlab.errors import DatasetError, InputError
from memlab.io.formats.rows.notes import Notes

__all__ = ["MOST_BYTES", "MOST_LINE", "Lines", "head_of", "text_of_line", "whole"]

MOST_LINE = 16 << 20
"""Bytes of one line that is read; a longer one is skipped, with its size."""

MOST_BYTES = 1 << 30
"""Bytes of a file that has to be read at once: one JSON document."""

_HEAD = 1 << 16
_PIECE = 1 << 20
_WIDE = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"))
_MARKS = (*_WIDE, (codecs.BOM_UTF16_BE, "utf-16"))


def head_of(path: Path) -> str:
    """The first 64 kB as text. InputError for what is no regular file, DatasetError for what is no text."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise InputError(f"{path} is no regular file.")
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    wide = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    if wide is not None:
        return head.decode(wide, errors="ignore")
    if b"\0" in head:
        raise DatasetError(f"{path.name} is binary: it holds a zero byte within its first {_HEAD:,}.")
    return head.removeprefix(codecs.BOM_UTF8).decode(errors="replace")


def whole(path: Path) -> bytes:
    """A file that has to be read at once, as UTF-8; DatasetError for one that is too large or of no known encoding."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise DatasetError(
            f"{path.name} has {size:,} bytes; one JSON document of at most {MOST_BYTES:,} is read. JSON Lines, one "
            "value a line, may be of any length."
        )
    data = path.read_bytes()
    wide = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if wide is None:
        return data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode(wide).encode()
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path.name} is not {wide.upper()} as its mark says: byte {error.start}.") from None


def text_of_line(line: bytes, notes: Notes) -> str:
    """UTF-8, or what an older program wrote, as Windows-1252: counted, as it is a guess."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        notes.left_out["line read as Windows-1252, as it is not UTF-8"] += 1
        return line.decode("cp1252", errors="replace")


class Lines:
    """Each line with its number, without its end; ``done`` is how many bytes were read so far."""

    def __init__(self, path: Path, notes: Notes) -> None:
        self.path, self.notes, self.done = path, notes, 0
        self.size = path.stat().st_size

    def count_done(self) -> int:
        """Return how many bytes were read so far."""
        return self.done

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        with self.path.open("rb") as file:
            mark = file.read(4)
            wide = next((name for bom, name in _MARKS if mark.startswith(bom)), None)
            file.seek(3 if mark.startswith(codecs.BOM_UTF8) else 0)
            yield from self._narrow(file) if wide is None else self._wide(wide)

    def _narrow(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        number = 0
        while line := file.readline(MOST_LINE + 1):
            number += 1
            self.done += len(line)
            if len(line) > MOST_LINE and not line.endswith(b"\n"):
                size = len(line)
                while not line.endswith(b"\n") and (line := file.readline(_PIECE)):
                    size += len(line)
                    self.done += len(line)
                self._too_long(number, size)
                continue
            yield number, line.rstrip(b"\r\n")

    def _wide(self, encoding: str) -> Iterator[tuple[int, bytes]]:
        self.notes.guessed["encoding"] = encoding.upper()
        number = 0
        with self.path.open(encoding=encoding, errors="replace", newline="\n") as file:
            while line := file.readline(MOST_LINE // 4):
                number += 1
                size = len(line)
                if size >= MOST_LINE // 4 and not line.endswith("\n"):
                    while not line.endswith("\n") and (line := file.readline(_PIECE)):
                        size += len(line)
                    self._too_long(number, size)
                    continue
                self.done += 2 * size
                yield number, line.rstrip("\r\n").encode()

    def _too_long(self, number: int, size: int) -> None:
        self.notes.skip(number, f"line of more than {MOST_LINE:,} bytes", f"{size:,}")
