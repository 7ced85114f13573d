"""Files of text, read within bounds: bytes to UTF-8, lines with their numbers, JSON with line and column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from memlab.errors import DatasetError

__all__ = ["MOST_BYTES", "json_of", "lines_of", "text_of"]

MOST_BYTES = 2 << 30
"""Of one file. A million memories of a hundred words are about a quarter of it."""

_MOST_LINE = 256 << 20
"""Of one line: a register is one."""


def text_of(path: Path, *, most: int = MOST_BYTES) -> str:
    """A whole file; DatasetError for what is too large, no UTF-8 or no file."""
    data = _bytes_of(path, most)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DatasetError(f"{path.name}, line {line}: The file is not UTF-8: {error.reason}.") from None


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, numbered from 1, as bytes without their end."""
    _check_size(path, MOST_BYTES)
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(_MOST_LINE + 1):
                number += 1
                if len(line) > _MOST_LINE:
                    raise DatasetError(f"{path.name}, line {number}: A line has at most {_MOST_LINE:,} bytes.")
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    yield number, line.rstrip(b"\r\n")
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from None


def json_of(data: bytes, source: str, line: int, type: Any = Any) -> Any:
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
        raise DatasetError(f"{source}, line {line}: The file is not UTF-8: {error.reason}.") from None
    except RecursionError:
        raise DatasetError(f"{source}, line {line}: The JSON is nested too deeply.") from None


def _bytes_of(path: Path, most: int) -> bytes:
    _check_size(path, most)
    try:
        return path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from None


def _check_size(path: Path, most: int) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from None
    if size > most:
        raise DatasetError(f"{path.name} has {size:,} bytes; at most {most:,} are read.")
