"""Files read within bounds, and notes of what was guessed, left out and skipped."""

from __future__ import annotations

import codecs
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from memlab.errors import DatasetError, InputError

__all__ = [
    "MAX_DOCUMENT_BYTES",
    "MAX_LINE_BYTES",
    "MAX_LOCATIONS",
    "Lines",
    "Notes",
    "decode_json",
    "decode_line",
    "read_document",
    "read_lines",
    "read_start",
    "read_text",
]

MAX_LOCATIONS = 1000
"""Places of skipped lines that are kept; all are counted."""


@dataclass
class Notes:
    """Of one source. ``unit`` is what its places number: line, row, message, entry."""

    source: str
    unit: str = "line"
    strict: bool = False
    guessed: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    locations: list[tuple[str, int, str]] = field(default_factory=list)

    def skip(self, place: int, why: str, detail: str = "") -> None:
        """Note that nothing is read of a place; DatasetError where reading is strict."""
        said = f"{why}: {detail}" if detail else why
        if self.strict:
            raise DatasetError(f"{self.source}, {self.unit} {place}: {said}.")
        self.skipped[why] += 1
        if len(self.locations) < MAX_LOCATIONS:
            self.locations.append((self.source, place, said))


# -- lines of a file, of bounded length -------------------------------------------------------------------------------

MAX_LINE_BYTES = 16 << 20
"""Bytes of one line that is read; a longer one is skipped, with its size."""

MAX_DOCUMENT_BYTES = 1 << 30
"""Bytes of a file that has to be read at once: one JSON document."""

_HEAD = 1 << 16
_PIECE = 1 << 20
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
)
_MARKS = (*_WIDE, (codecs.BOM_UTF16_BE, "utf-16"))


def read_start(path: Path) -> str:
    """The first 64 kB as text. InputError for what is no regular file, DatasetError for what is no text."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise InputError(f"{path} is no regular file.")
        with path.open("rb") as file:
            start = file.read(_HEAD)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    wide = next((name for mark, name in _MARKS if start.startswith(mark)), None)
    if wide is not None:
        return start.decode(wide, errors="ignore")
    if b"\0" in start:
        raise DatasetError(
            f"{path.name} is binary: it holds a zero byte within its first {_HEAD:,}."
        )
    return start.removeprefix(codecs.BOM_UTF8).decode(errors="replace")


def read_document(path: Path) -> bytes:
    """A file that has to be read at once, as UTF-8; DatasetError for one that is too large or of no known encoding."""
    size = path.stat().st_size
    if size > MAX_DOCUMENT_BYTES:
        raise DatasetError(
            f"{path.name} has {size:,} bytes; one JSON document of at most {MAX_DOCUMENT_BYTES:,} is read. JSON Lines, one "
            "value a line, may be of any length."
        )
    data = path.read_bytes()
    wide = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if wide is None:
        return data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode(wide).encode()
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path.name} is not {wide.upper()} as its mark says: byte {error.start}."
        ) from None


def decode_line(line: bytes, notes: Notes) -> str:
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
            yield from self._read_bytes(file) if wide is None else self._decode_wide(wide)

    def _read_bytes(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            self.done += len(line)
            if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                size = len(line)
                while not line.endswith(b"\n") and (line := file.readline(_PIECE)):
                    size += len(line)
                    self.done += len(line)
                self._skip_long(number, size)
                continue
            yield number, line.rstrip(b"\r\n")

    def _decode_wide(self, encoding: str) -> Iterator[tuple[int, bytes]]:
        self.notes.guessed["encoding"] = encoding.upper()
        number = 0
        with self.path.open(encoding=encoding, errors="replace", newline="\n") as file:
            while line := file.readline(MAX_LINE_BYTES // 4):
                number += 1
                size = len(line)
                if size >= MAX_LINE_BYTES // 4 and not line.endswith("\n"):
                    while not line.endswith("\n") and (line := file.readline(_PIECE)):
                        size += len(line)
                    self._skip_long(number, size)
                    continue
                self.done += 2 * size
                yield number, line.rstrip("\r\n").encode()

    def _skip_long(self, number: int, size: int) -> None:
        self.notes.skip(number, f"line of more than {MAX_LINE_BYTES:,} bytes", f"{size:,}")


# -- texts and JSON, with the place of what is wrong ------------------------------------------------------------------

MAX_EXPORT_BYTES = 2 << 30
"""Of one file. A million memories of a hundred words are about a quarter of it."""

_MOST_LINE = 256 << 20
"""Of one line: a register is one."""


def read_text(path: Path, *, max_bytes: int = MAX_EXPORT_BYTES) -> str:
    """A whole file; DatasetError for what is too large, no UTF-8 or no file."""
    data = _read_file(path, max_bytes)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DatasetError(
            f"{path.name}, line {line}: The file is not UTF-8: {error.reason}."
        ) from None


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, numbered from 1, as bytes without their end."""
    _check_size(path, MAX_EXPORT_BYTES)
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(_MOST_LINE + 1):
                number += 1
                if len(line) > _MOST_LINE:
                    raise DatasetError(
                        f"{path.name}, line {number}: A line has at most {_MOST_LINE:,} bytes."
                    )
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    yield number, line.rstrip(b"\r\n")
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from None


def decode_json(data: bytes, source: str, line: int, type: Any = Any) -> Any:
    """The value of a JSON text that begins in ``line``, of a type as ``msgspec`` has it."""
    try:
        return msgspec.json.decode(data, type=type)
    except msgspec.DecodeError as error:
        problem = str(error)
        _, _, tail = problem.rpartition("(byte ")
        place = f"line {line}"
        if tail.endswith(")") and tail[:-1].isdecimal():
            before = data[: int(tail[:-1])]
            last = before.rfind(b"\n") + 1
            column = len(before[last:].decode(errors="replace")) + 1
            line += before.count(b"\n")
            place = f"line {line}, column {column}"
        raise DatasetError(f"{source}, {place}: {problem}.") from None
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{source}, line {line}: The file is not UTF-8: {error.reason}."
        ) from None
    except RecursionError:
        raise DatasetError(f"{source}, line {line}: The JSON is nested too deeply.") from None


def _read_file(path: Path, max_bytes: int) -> bytes:
    _check_size(path, max_bytes)
    try:
        return path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from None


def _check_size(path: Path, max_bytes: int) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from None
    if size > max_bytes:
        raise DatasetError(f"{path.name} has {size:,} bytes; at most {max_bytes:,} are read.")
