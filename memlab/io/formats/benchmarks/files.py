"""Untrusted files of benchmarks: JSON that is read, or refused with the place in it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from memlab.errors import DatasetError
from memlab.kernel.base.arguments import checked

__all__ = ["Place", "check_digest", "digest", "lines", "loaded", "named", "opened", "parsed"]

LONGEST_LINE = 64 * 2**20
LARGEST = 4 * 2**30
"""Bytes of a file that is read: LongMemEval's largest has 2.7 GB."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something was met, and the one way to complain about it."""

    path: Path
    within: str = ""

    def error(self, field: str, problem: str) -> DatasetError:
        return DatasetError(f"{self.path}: {f'{self.within}, ' if self.within else ''}field {field}: {problem}")

    def text(self, record: dict[str, Any], key: str, field: str, *, required: bool = True) -> str:
        """The text of ``key``, stripped; "" for none that is not required."""
        value = record.get(key)
        if value is None and not required:
            return ""
        if not isinstance(value, str) or (required and not value.strip()):
            raise self.error(_below(field, key), f"expected text, found {named(value)}.")
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise self.error(_below(field, key), "the text holds half of a surrogate pair and is not Unicode.")
        return value.strip()

    def items(self, value: object, field: str, what: str) -> list[Any]:
        """A list of ``what``, as it is."""
        if not isinstance(value, list):
            raise self.error(field, f"expected a list of {what}, found {named(value)}.")
        return value

    def time(self, given: object, field: str, example: str, pattern: re.Pattern[str] | None = None) -> datetime:
        """A time in the form of ``pattern``, whose groups name its parts, or in ISO 8601, as UTC; months in English."""
        match = pattern.match(given.strip()) if pattern is not None and isinstance(given, str) else None
        try:
            if match is not None:
                return _time_of(match.groupdict())
            at = datetime.fromisoformat(str(given))
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        except (ValueError, OverflowError):
            raise self.error(field, f'{named(given)} is not a time such as "{example}".') from None

    def record(self, value: object, field: str, what: str = "an object") -> dict[str, Any]:
        """An object, as it is."""
        if not isinstance(value, dict):
            raise self.error(field, f"expected {what}, found {named(value)}.")
        return value


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _time_of(parts: Mapping[str, str | None]) -> datetime:
    """The time of a match: year, month (a number or a name), day, and if there are any hour, minute and half of day."""
    year, month, day = (str(parts[name]) for name in ("year", "month", "day"))
    hour, half = int(parts.get("hour") or 0), parts.get("half")
    if half and not 1 <= hour <= 12:
        raise ValueError(hour)
    if half:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    number = int(month) if month.isdecimal() else _MONTHS.index(month[:3].lower()) + 1
    return datetime(int(year), number, int(day), hour, int(parts.get("minute") or 0), tzinfo=UTC)


def loaded(path: Path, kind: str) -> object:
    """What a file of JSON holds; ``kind`` is what it ought to be, for messages. Raises ``DatasetError``."""
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise DatasetError(f"{path} has {size:,} bytes; {kind} of at most {LARGEST:,} is read.")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}.") from error
    return parsed(text, path, kind)


@contextmanager
def opened(path: Path, kind: str) -> Iterator[TextIO]:
    """A file of text to read line by line. What cannot be read is a ``DatasetError``."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8 text and not {kind}: {error.reason}.") from error


def lines(path: Path, kind: str) -> Iterator[tuple[int, object]]:
    """The number and the value of each line of a file of JSON lines; empty lines have none. Raises ``DatasetError``."""
    with opened(path, kind) as file:
        for number, line in enumerate(file, 1):
            if len(line) > LONGEST_LINE:
                raise DatasetError(
                    f"{path}, line {number}: {len(line):,} characters; {kind} of JSON lines has one value a line."
                )
            if line.strip():
                yield number, parsed(line, path, kind, line=number)


@checked
def digest(path: str | Path) -> str:
    """The SHA-256 of a file; of a folder, of the lines "hash  path" of the files of JSON and TSV below it, sorted.

    The latter is what ``find . -name '*.json*' -o -name '*.tsv' | sort | xargs sha256sum | sha256sum`` prints, where
    paths are sorted by their bytes and stand without "./".
    """
    path = Path(path).expanduser()
    try:
        if path.is_dir():
            files = (file for file in path.rglob("*") if file.suffix in (".json", ".jsonl", ".tsv"))
            named_files = sorted((file.relative_to(path).as_posix(), file) for file in files)
            listed = "".join(f"{digest(file)}  {name}\n" for name, file in named_files)
            return hashlib.sha256(listed.encode()).hexdigest()
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error


@checked
def check_digest(path: str | Path, expected: str) -> str:
    """The digest of what is at ``path``. Raises ``DatasetError`` if it is another than expected."""
    found = digest(path)
    if expected and found != expected.strip().lower():
        raise DatasetError(f"{path} has sha256 {found}; {expected} was expected: it is another version of the data.")
    return found


def parsed(text: str, path: Path, kind: str, *, line: int | None = None) -> object:
    """One JSON value, of a whole file or of one ``line`` of it. Raises ``DatasetError``."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        at = error.lineno if line is None else line
        raise DatasetError(f"{path}, line {at}, column {error.colno}: not JSON: {error.msg}.") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise DatasetError(f"{path} is not {kind}: {error}.") from error
    except RecursionError as error:
        raise DatasetError(f"{path} is nested too deeply to be {kind}.") from error


def named(value: object) -> str:
    """A JSON value by its kind, for a message."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "an object"
        case list():
            return "a list" if value else "an empty list"
        case str():
            return f'"{value[:40]}"' if value.strip() else "empty text"
    return f"the number {value}"


def _below(field: str, key: str) -> str:
    return f"{field}.{key}" if field else key
