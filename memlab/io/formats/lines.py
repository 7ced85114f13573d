"""Reading of files within limits, and notes on guesses and skipped lines."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from memlab.errors import DatasetError, InputError
from memlab.kernel.base.disk import open_regular

MAX_LOCATIONS = 1000
"""Maximum number of skipped lines of which the location is stored; all are counted."""


@dataclass
class Notes:
    """Guesses, omissions and skipped rows, noted while one source is read.

    Attributes
    ----------
    source
        Name of the source.
    unit
        What locations number: line, row, message or entry.
    strict
        Whether a row that would be skipped is an error.
    guessed
        Guess by field, such as the column that is taken for the time.
    left_out
        Number of omitted values by description.
    skipped
        Number of skipped rows by reason.
    locations
        Source, number and reason of the first ``MAX_LOCATIONS`` skipped rows.
    has_own_times
        Whether the times are part of the rows. The date of a file is not: it changes when another row does.
    proposed
        Column whose name resembles a field that no column provides, by field.
    """

    source: str
    unit: str = "line"
    strict: bool = False
    guessed: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    locations: list[tuple[str, int, str]] = field(default_factory=list)
    has_own_times: bool = True
    proposed: dict[str, str] = field(default_factory=dict)

    def skip(self, location: int, why: str, detail: str = "") -> None:
        """Record that a row is skipped; raise DatasetError in strict mode."""
        reason = f"{why}: {detail}" if detail else why
        if self.strict:
            raise DatasetError(f"{self.source}, {self.unit} {location}: {reason}.")
        self.skipped[why] += 1
        if len(self.locations) < MAX_LOCATIONS:
            self.locations.append((self.source, location, reason))


# -- lines of a file, of bounded length -------------------------------------------------------------------------------

MAX_LINE_BYTES = 16 << 20
"""Maximum bytes of a line of JSON Lines or a table; a longer one is skipped. A memory has at most 1 MB."""

MAX_DOCUMENT_BYTES = 1 << 30
"""Maximum bytes of a JSON document, which is read at once and held in memory."""

MAX_TABLE_BYTES = 1 << 29
"""Maximum bytes of a log as CSV or JSON Lines, which Polars reads at once; Parquet has no such limit."""

MAX_VALUES = 20_000_000
"""Maximum commas of a JSON text: a list of so many short values takes more than a gigabyte."""

# Bytes that decide the format of a file: 64 kB contain several messages.
_HEAD = 1 << 16
# The first bytes of gzip, zstd and zlib, which Polars decompresses without a limit.
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda")
# Bytes of a long line that are skipped at a time.
_PIECE = 1 << 20
# Byte order marks. The mark of UTF-32 begins with that of UTF-16, so that it comes first.
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
)
_MARKS = (*_WIDE, (codecs.BOM_UTF16_BE, "utf-16"))


def read_start(path: Path) -> str:
    """Return the first 64 kB of a file as text.

    Raises InputError if it is not a regular file, DatasetError if it is binary.
    """
    try:
        with open_regular(path) as file:
            start = file.read(_HEAD)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    wide = next((name for mark, name in _MARKS if start.startswith(mark)), None)
    if wide is not None:
        return start.decode(wide, errors="ignore")
    if b"\0" in start:
        raise DatasetError(
            f"{path.name} is binary: it contains a zero byte in its first {_HEAD:,} bytes."
        )
    return start.removeprefix(codecs.BOM_UTF8).decode(errors="replace")


def read_document(path: Path) -> bytes:
    """Return a file's bytes, in UTF-8 if it has a byte order mark; raise DatasetError if it is too large."""
    size = path.stat().st_size
    if size > MAX_DOCUMENT_BYTES:
        raise DatasetError(
            f"{path.name} has {size:,} bytes; the maximum for a JSON document is {MAX_DOCUMENT_BYTES:,}. "
            "Convert it to JSON Lines, one value per line, which has no maximum."
        )
    with open_regular(path) as file:
        data = file.read()
    wide = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if wide is None:
        return data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode(wide).encode()
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path.name} begins with the byte order mark of {wide.upper()}, but is not "
            f"valid {wide.upper()}: invalid byte at {error.start}."
        ) from None


def check_table(path: Path) -> None:
    """Raise DatasetError for a text table that is compressed or too large, as a whole or in its first line."""
    with open_regular(path) as file:
        head = file.readline(MAX_LINE_BYTES // 16 + 1)
        size = file.seek(0, 2)
    if head.startswith(_COMPRESSED):
        raise DatasetError(f"{path.name} is compressed. Decompress it first.")
    if size > MAX_TABLE_BYTES or len(head) > MAX_LINE_BYTES // 16:
        raise DatasetError(
            f"{path.name} has {size:,} bytes, {len(head):,} of them in its first line; the maximum is "
            f"{MAX_TABLE_BYTES:,}, and {MAX_LINE_BYTES // 16:,} in the first line. Convert it to Parquet."
        )


def decode_line(line: bytes, notes: Notes) -> str:
    """Decode a line as UTF-8, or as Windows-1252 if the line is not valid UTF-8.

    Windows-1252 is a guess, because older programs wrote it. ``notes.left_out`` counts such lines.
    """
    try:
        return line.decode()
    except UnicodeDecodeError:
        notes.left_out["line read as Windows-1252, because it is not UTF-8"] += 1
        return line.decode("cp1252", errors="replace")


class Lines:
    """Iterator over the lines of a file: pairs of number and bytes without line end.

    Attributes
    ----------
    path
        Path of the file.
    notes
        Notes on skipped lines and the guessed encoding.
    done
        Number of bytes read so far.
    size
        Size of the file in bytes.
    """

    def __init__(self, path: Path, notes: Notes) -> None:
        self.path, self.notes, self.done = path, notes, 0
        self.size = path.stat().st_size

    def count_done(self) -> int:
        """Return how many bytes of the file are read so far."""
        return self.done

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        with open_regular(self.path) as file:
            mark = file.read(4)
            wide = next((name for bom, name in _MARKS if mark.startswith(bom)), None)
            file.seek(3 if mark.startswith(codecs.BOM_UTF8) else 0)
            yield from self._read_bytes(file) if wide is None else self._decode_wide(wide)

    def _read_bytes(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        """Yield the number and the bytes of each line; record and skip lines over ``MAX_LINE_BYTES``."""
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
        """Yield the number and the text, as UTF-8, of each line of a UTF-16 or UTF-32 file; skip long lines."""
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
        """Record that a line was skipped because it is too long."""
        self.notes.skip(number, f"line of more than {MAX_LINE_BYTES:,} bytes", f"{size:,}")


# -- texts and JSON, with the location of faults ----------------------------------------------------------------------

MAX_EXPORT_BYTES = 2 << 30
"""Maximum bytes of an export; a million memories of a hundred words are about a quarter of it."""

_MOST_LINE = 256 << 20
"""Maximum bytes of a line of an export; a register of a large lab is one line."""


def read_text(path: Path, *, max_bytes: int = MAX_EXPORT_BYTES) -> str:
    """Return a file as text, or raise DatasetError if the file is too large or not UTF-8."""
    data = _read_file(path, max_bytes)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DatasetError(
            f"{path.name}, line {line}: The file is not UTF-8: {error.reason}."
        ) from None


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the non-blank lines of a file with their line numbers, from 1."""
    _check_size(path, MAX_EXPORT_BYTES)
    try:
        with open_regular(path) as file:
            number = 0
            while line := file.readline(_MOST_LINE + 1):
                number += 1
                if len(line) > _MOST_LINE:
                    raise DatasetError(
                        f"{path.name}, line {number}: the line has more than {_MOST_LINE:,} bytes."
                    )
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    yield number, line.rstrip(b"\r\n")
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from None


def decode_json(data: bytes, source: str, line: int, type: Any = Any) -> Any:
    """Decode a JSON text that begins at ``line``; raise DatasetError if the text is invalid.

    Raises DatasetError with line and column of the first error. ``type`` is a type of msgspec.
    """
    check_values(data.count(b","), source)
    try:
        return msgspec.json.decode(data, type=type)
    except msgspec.DecodeError as error:
        problem = str(error)
        _, _, tail = problem.rpartition("(byte ")
        location = f"line {line}"
        if tail.endswith(")") and tail[:-1].isdecimal():
            before = data[: int(tail[:-1])]
            line_start = before.rfind(b"\n") + 1
            column = len(before[line_start:].decode(errors="replace")) + 1
            line += before.count(b"\n")
            location = f"line {line}, column {column}"
        raise DatasetError(f"{source}, {location}: {problem}.") from None
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{source}, line {line}: The file is not UTF-8: {error.reason}."
        ) from None
    except RecursionError:
        raise DatasetError(f"{source}, line {line}: The JSON is nested too deeply.") from None


def check_values(commas: int, source: str) -> None:
    """Raise DatasetError if a JSON text has too many commas to be decoded at once."""
    if commas > MAX_VALUES:
        raise DatasetError(
            f"{source} has {commas:,} commas; the maximum of a JSON document is {MAX_VALUES:,}. "
            "Convert it to JSON Lines, one value per line."
        )


def _read_file(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a file; raise DatasetError if the file is too large or unreadable."""
    _check_size(path, max_bytes)
    try:
        with open_regular(path) as file:
            return file.read()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from None


def _check_size(path: Path, max_bytes: int) -> None:
    """Raise DatasetError if a file has more than ``max_bytes`` bytes."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from None
    if size > max_bytes:
        raise DatasetError(f"{path.name} has {size:,} bytes; the maximum is {max_bytes:,}.")
