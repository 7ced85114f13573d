"""Conversations with labelled questions, and the reading of benchmark files, with the place of what is wrong."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

from memlab.errors import DatasetError, did_you_mean
from memlab.kernel.base.arguments import checked

__all__ = [
    "Conversation",
    "LabelledConversation",
    "Location",
    "Question",
    "Turn",
    "WantedMemories",
    "check_digest",
    "conversation",
    "describe_value",
    "digest",
    "load_json",
    "open_text",
    "parse_json",
    "read_json_lines",
    "read_questions",
]

LONGEST_LINE = 64 * 2**20
LARGEST = 4 * 2**30
"""Bytes of a file that is read: LongMemEval's largest has 2.7 GB."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where in a file something was met, and the one way to complain about it."""

    path: Path
    within: str = ""

    def error(self, field: str, problem: str) -> DatasetError:
        return DatasetError(
            f"{self.path}: {f'{self.within}, ' if self.within else ''}field {field}: {problem}"
        )

    def text(self, record: dict[str, Any], key: str, field: str, *, required: bool = True) -> str:
        """The text of ``key``, stripped; "" for none that is not required."""
        value = record.get(key)
        if value is None and not required:
            return ""
        if not isinstance(value, str) or (required and not value.strip()):
            raise self.error(
                _join_field(field, key), f"expected text, found {describe_value(value)}."
            )
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise self.error(
                _join_field(field, key),
                "the text holds half of a surrogate pair and is not Unicode.",
            )
        return value.strip()

    def items(self, value: object, field: str, what: str) -> list[Any]:
        """A list of ``what``, as it is."""
        if not isinstance(value, list):
            raise self.error(field, f"expected a list of {what}, found {describe_value(value)}.")
        return value

    def records(self, value: object, field: str, what: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give each object of a list, after its field."""
        begins = "" if field == "(itself)" else field
        for index, item in enumerate(self.items(value, field, what)):
            yield f"{begins}[{index}]", self.record(item, f"{begins}[{index}]")

    def time(
        self, given: object, field: str, example: str, pattern: re.Pattern[str] | None = None
    ) -> datetime:
        """A time in the form of ``pattern``, whose groups name its parts, or in ISO 8601, as UTC; months in English."""
        match = (
            pattern.match(given.strip()) if pattern is not None and isinstance(given, str) else None
        )
        try:
            if match is not None:
                return _build_time(match.groupdict())
            at = datetime.fromisoformat(str(given))
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        except (ValueError, OverflowError):
            raise self.error(
                field, f'{describe_value(given)} is not a time such as "{example}".'
            ) from None

    def record(self, value: object, field: str, what: str = "an object") -> dict[str, Any]:
        """An object, as it is."""
        if not isinstance(value, dict):
            raise self.error(field, f"expected {what}, found {describe_value(value)}.")
        return value


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _build_time(parts: Mapping[str, str | None]) -> datetime:
    """The time of a match: year, month (a number or a name), day, and if there are any hour, minute and half of day."""
    year, month, day = (str(parts[name]) for name in ("year", "month", "day"))
    hour, half = int(parts.get("hour") or 0), parts.get("half")
    if half and not 1 <= hour <= 12:
        raise ValueError(hour)
    if half:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    number = int(month) if month.isdecimal() else _MONTHS.index(month[:3].lower()) + 1
    return datetime(int(year), number, int(day), hour, int(parts.get("minute") or 0), tzinfo=UTC)


def load_json(path: Path, kind: str) -> object:
    """What a file of JSON holds; ``kind`` is what it ought to be, for messages. Raises ``DatasetError``."""
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise DatasetError(f"{path} has {size:,} bytes; {kind} of at most {LARGEST:,} is read.")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path} is not UTF-8 text: {error.reason} at byte {error.start}."
        ) from error
    return parse_json(text, path, kind)


@contextmanager
def open_text(path: Path, kind: str) -> Iterator[TextIO]:
    """A file of text to read line by line. What cannot be read is a ``DatasetError``."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8 text and not {kind}: {error.reason}.") from error


def read_json_lines(path: Path, kind: str) -> Iterator[tuple[int, object]]:
    """The number and the value of each line of a file of JSON lines; empty lines have none. Raises ``DatasetError``."""
    with open_text(path, kind) as file:
        for number, line in enumerate(file, 1):
            if len(line) > LONGEST_LINE:
                raise DatasetError(
                    f"{path}, line {number}: {len(line):,} characters; {kind} of JSON lines has one value a line."
                )
            if line.strip():
                yield number, parse_json(line, path, kind, line=number)


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
            files_by_name = sorted((file.relative_to(path).as_posix(), file) for file in files)
            listed = "".join(f"{digest(file)}  {name}\n" for name, file in files_by_name)
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
        raise DatasetError(
            f"{path} has sha256 {found}; {expected} was expected: it is another version of the data."
        )
    return found


def parse_json(text: str, path: Path, kind: str, *, line: int | None = None) -> object:
    """One JSON value, of a whole file or of one ``line`` of it. Raises ``DatasetError``."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        at = error.lineno if line is None else line
        raise DatasetError(
            f"{path}, line {at}, column {error.colno}: not JSON: {error.msg}."
        ) from error
    except ValueError as error:  # a whole number of thousands of digits
        raise DatasetError(f"{path} is not {kind}: {error}.") from error
    except RecursionError as error:
        raise DatasetError(f"{path} is nested too deeply to be {kind}.") from error


def describe_value(value: object) -> str:
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


def _join_field(field: str, key: str) -> str:
    return f"{field}.{key}" if field else key


# -- conversations ----------------------------------------------------------------------------------------------------


@checked
@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker said at one time (UTC); ``caption`` describes a picture that came with it.

    ``role`` is what the speaker is in a chat: user, assistant, tool. Among people there is none.
    """

    ref: str
    speaker: str
    text: str
    session: str
    at: datetime
    caption: str = ""
    role: str = ""

    @property
    def content(self) -> str:
        """The words to remember: the text, and what the picture shows. Empty when the turn has neither.

        >>> from datetime import UTC
        >>> Turn("D1:1", "Ida", "Look!", "s1", datetime(2026, 1, 1, tzinfo=UTC), "a dog in the snow").content
        'Look! [image: a dog in the snow]'
        """
        image = f"[image: {self.caption}]" if self.caption else ""
        return f"{self.text} {image}".strip()


@checked
@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns between some speakers, over one or more sessions, in the order in which they were said."""

    name: str
    turns: tuple[Turn, ...]

    @property
    def speakers(self) -> tuple[str, ...]:
        """Who speaks, by first appearance."""
        return tuple(dict.fromkeys(turn.speaker for turn in self.turns))

    @property
    def refs(self) -> frozenset[str]:
        """The refs of its turns."""
        return frozenset(turn.ref for turn in self.turns)

    @property
    def end(self) -> datetime:
        """When its last turn was said."""
        return max(turn.at for turn in self.turns)

    @checked
    def rows(self, *, project: str | None = None) -> list[dict[str, object]]:
        """One row a turn for ``lab.remember``; a turn without words has none.

        A session's name is unique among conversations: two of them in one lab do not share a ``session_1``.
        """
        return [
            {
                "text": turn.content,
                "kind": "turn",
                "speaker": turn.speaker or None,
                "session": f"{self.name}/{turn.session}",
                "project": project,
                "at": turn.at,
                "ref": turn.ref,
            }
            for turn in self.turns
            if turn.content
        ]


Remembered = TypeVar("Remembered", covariant=True)


class Remembers(Protocol[Remembered]):
    """What a conversation needs of a lab: its public verb."""

    def remember(self, rows: Sequence[dict[str, Any]], /, *, chain: bool = False) -> Remembered: ...


@checked
def conversation(
    lab: Remembers[Remembered], conversation: Conversation, *, project: str | None = None
) -> Remembered:
    """Remember every turn, in one transaction, consecutive turns of a session joined by ``next`` edges.

    ``project`` is the conversation's name unless given. Returns what ``lab.remember`` returns.

    >>> import memlab
    >>> from memlab.io.ingest import conversation, read_locomo
    >>> for labelled in read_locomo("locomo10.json"):                   # doctest: +SKIP
    ...     conversation(memlab.open(), labelled.conversation)
    """
    describe_value = conversation.name if project is None else project
    return lab.remember(conversation.rows(project=describe_value), chain=True)


# -- questions about a conversation -----------------------------------------------------------------------------------

_UNANSWERABLE = (5, "abstention")


@checked
@dataclass(frozen=True, slots=True)
class Question:
    """A question with its labels. ``evidence`` are refs of turns that exist; ``dropped`` is what the file said beside.

    ``category`` is what the file sorts questions by: 1-5 of LoCoMo, which have no names here since published names
    conflict, or the name of an ability. ``parts`` are named parts of the evidence, such as BEAM's ``original_info`` and
    ``updated_info``. ``at`` is when it is asked, where the file says so. ``outdated`` is what of the evidence was put
    right by the rest of it.
    """

    text: str
    category: int | str
    evidence: tuple[str, ...]
    answer: str = ""
    dropped: tuple[str, ...] = ()
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    at: datetime | None = None
    outdated: tuple[str, ...] = ()

    @property
    def answerable(self) -> bool:
        """Whether the conversation holds an answer: LoCoMo's category 5 and questions of abstention have none.

        >>> Question("When did Ida climb K2?", 5, ("D1:1",)).answerable
        False
        """
        return self.category not in _UNANSWERABLE


@checked
@dataclass(frozen=True, slots=True)
class LabelledConversation:
    """A conversation and, apart from it, what is asked about it."""

    conversation: Conversation
    questions: tuple[Question, ...]


# -- questions to a lab -----------------------------------------------------------------------------------------------

_WANTED = ("wanted", "memory_id", "ref", "text")
_COLUMNS = ("question", *_WANTED, "project", "at", "category")
_MOST = 1_000_000
"""Rows of a file that are read."""


@checked
@dataclass(frozen=True, slots=True)
class WantedMemories:
    """A question to a lab; ``wanted`` are ids, refs or whole texts of memories that answer it, empty if none does."""

    text: str
    wanted: tuple[str, ...]
    project: str | None = None
    at: datetime | None = None
    category: str = ""


@checked
def read_questions(path: str | Path) -> tuple[WantedMemories, ...]:
    """Questions from a ``.jsonl`` or ``.csv`` file, in its order.

    A row has ``question``, and ``wanted``: an id, ref or text of a memory, in JSON also a list of them; the columns
    ``memory_id``, ``ref`` and ``text`` are read alike. Rows of one question in one ``project`` are one question.
    ``at`` (ISO 8601) is when it is asked; ``category`` is what figures are sorted by. Raises ``DatasetError``.

    >>> from memlab.io.ingest import read_questions
    >>> read_questions("wanted.jsonl")                                  # doctest: +SKIP
    (WantedMemories(text='Where is the key?', wanted=('17',), ...),)
    """
    path = Path(path).expanduser()
    if path.suffix not in (".jsonl", ".csv"):
        raise DatasetError(f"{path} is no .jsonl or .csv file of questions.")
    rows = (
        read_json_lines(path, "a file of questions") if path.suffix == ".jsonl" else _read_csv(path)
    )
    merged: dict[tuple[str, str | None], list[Any]] = {}
    for number, value in rows:
        if number > _MOST:
            raise DatasetError(f"{path} has more than {_MOST:,} rows: split it.")
        place = Location(path, f"line {number}")
        row = place.record(value, "(itself)")
        _check_columns(row, place)
        project = place.text(row, "project", "", required=False) or None
        key = place.text(row, "question", ""), project
        found = merged.setdefault(
            key, [[], _read_time(row, place), place.text(row, "category", "", required=False)]
        )
        found[0] += _read_wanted(row, place)
    if not merged:
        raise DatasetError(
            f'{path} holds no question. A row: {{"question": "Where is the key?", "wanted": [17]}}'
        )
    return tuple(
        WantedMemories(text, tuple(dict.fromkeys(wanted)), project, at, category)
        for (text, project), (wanted, at, category) in merged.items()
    )


def _read_csv(path: Path) -> Iterator[tuple[int, object]]:
    with open_text(path, "a file of questions") as file:
        try:
            reader = csv.DictReader(file, strict=True)
            for row in reader:
                if None in row:
                    raise DatasetError(
                        f"{path}, line {reader.line_num}: more fields than the first line names."
                    )
                yield reader.line_num, {name: value for name, value in row.items() if value}
        except csv.Error as error:
            raise DatasetError(f"{path}, line {reader.line_num}: not CSV: {error}.") from None


def _check_columns(row: dict[str, Any], place: Location) -> None:
    for name in row:
        if name not in _COLUMNS:
            raise place.error(
                str(name)[:40], f"there is no such field. {did_you_mean(str(name)[:40], _COLUMNS)}"
            )


def _read_wanted(row: dict[str, Any], place: Location) -> Iterator[str]:
    for field in _WANTED:
        given = row.get(field)
        for one in given if isinstance(given, list) else () if given is None else (given,):
            if isinstance(one, bool) or not isinstance(one, str | int):
                raise place.error(
                    field,
                    f"expected an id, a ref or a text of a memory, found {describe_value(one)}.",
                )
            yield str(one).strip()


def _read_time(row: dict[str, Any], place: Location) -> datetime | None:
    given = place.text(row, "at", "", required=False)
    return place.time(given, "at", "2026-03-01T09:00") if given else None
