"""Conversations with labelled questions, and reading of benchmark files."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

from memlab.errors import DatasetError, did_you_mean
from memlab.io.formats.lines import check_values
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.disk import check_regular, open_regular

LONGEST_LINE = 64 * 2**20
"""Maximum characters of a line of JSON Lines; it bounds what a file without line ends can claim."""
LARGEST = 4 * 2**30
"""Maximum bytes of a file; the largest of LongMemEval has 2.7 GB."""


@dataclass(frozen=True, slots=True)
class Location:
    """A location in a file, with checks whose errors name the location.

    Attributes
    ----------
    path
        Path of the file.
    within
        Part of the file, such as "line 3".
    """

    path: Path
    within: str = ""

    def error(self, field: str, problem: str) -> DatasetError:
        """Build a DatasetError that names the file, the field and the problem."""
        return DatasetError(
            f"{self.path}: {f'{self.within}, ' if self.within else ''}field {field}: {problem}"
        )

    def text(self, record: dict[str, Any], key: str, field: str, *, required: bool = True) -> str:
        """Return the stripped text of ``key``; "" if the key is optional and missing."""
        value = record.get(key)
        if value is None and not required:
            return ""
        if not isinstance(value, str) or (required and not value.strip()):
            raise self.error(
                _join_field(field, key), f"expected text, found {describe_json(value)}."
            )
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise self.error(
                _join_field(field, key),
                "the text contains a lone surrogate, so it is not valid Unicode.",
            )
        return value.strip()

    def items(self, value: object, field: str, what: str) -> list[Any]:
        """Return ``value`` if it is a list; raise DatasetError otherwise."""
        if not isinstance(value, list):
            raise self.error(field, f"expected a list of {what}, found {describe_json(value)}.")
        return value

    def records(self, value: object, field: str, what: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the field name and the value of each object in a list."""
        begins = "" if field == "(itself)" else field
        for index, item in enumerate(self.items(value, field, what)):
            yield f"{begins}[{index}]", self.record(item, f"{begins}[{index}]")

    def time(
        self, value: object, field: str, example: str, pattern: re.Pattern[str] | None = None
    ) -> datetime:
        """Parse a UTC time in a text, or raise DatasetError if the text has no time.

        The text has the form of ``pattern``, whose groups name the parts (months in English), or is
        in ISO 8601.
        """
        match = (
            pattern.match(value.strip()) if pattern is not None and isinstance(value, str) else None
        )
        try:
            if match is not None:
                return _build_time(match.groupdict())
            at = datetime.fromisoformat(str(value))
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        except (ValueError, OverflowError):
            raise self.error(
                field, f'{describe_json(value)} is not a time such as "{example}".'
            ) from None

    def record(self, value: object, field: str, what: str = "an object") -> dict[str, Any]:
        """Return ``value`` if it is an object; raise DatasetError otherwise."""
        if not isinstance(value, dict):
            raise self.error(field, f"expected {what}, found {describe_json(value)}.")
        return value


# English months, by which the benchmarks name dates.
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _build_time(parts: Mapping[str, str | None]) -> datetime:
    """Build a time in UTC from a match's groups for date and time; a missing time is midnight."""
    year, month, day = (str(parts[name]) for name in ("year", "month", "day"))
    hour, half = int(parts.get("hour") or 0), parts.get("half")
    if half and not 1 <= hour <= 12:
        raise ValueError(hour)
    if half:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    number = int(month) if month.isdecimal() else _MONTHS.index(month[:3].lower()) + 1
    return datetime(int(year), number, int(day), hour, int(parts.get("minute") or 0), tzinfo=UTC)


def load_json(path: Path, kind: str) -> object:
    """Return the contents of a JSON file, or raise DatasetError for an unreadable file.

    ``kind`` names the expected contents in errors.
    """
    try:
        size = check_regular(path)
        if size > LARGEST:
            raise DatasetError(f"{path} has {size:,} bytes; the maximum for {kind} is {LARGEST:,}.")
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
    """Open a text file for reading line by line, or raise DatasetError if opening fails."""
    try:
        with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path} is not UTF-8 text, so it cannot be {kind}: {error.reason}."
        ) from error


def read_json_lines(path: Path, kind: str) -> Iterator[tuple[int, object]]:
    """Yield the number and the value of each non-blank line of a JSON Lines file."""
    with open_text(path, kind) as file:
        for number, line in enumerate(_read_lines(file, path, kind), 1):
            if line.strip():
                yield number, parse_json(line, path, kind, line=number)


def _read_lines(file: TextIO, path: Path, kind: str) -> Iterator[str]:
    """Yield the lines of a text file, or raise DatasetError for a line that is too long."""
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise DatasetError(
                f"{path}, line {number}: more than {LONGEST_LINE:,} characters; {kind} has one value per line."
            )
        yield line


@checked
def digest(path: str | Path) -> str:
    """Compute the SHA-256 of a file or of a folder's data files.

    For a folder, it is the digest that ``find . -name '*.json*' -o -name '*.tsv' | sort | xargs
    sha256sum | sha256sum`` prints, with paths sorted by bytes and without "./".

    Parameters
    ----------
    path
        File or folder.

    Returns
    -------
    str
        The digest, 64 hexadecimal digits.

    Raises
    ------
    DatasetError
        If a file cannot be read.

    Examples
    --------
    >>> from memlab.io.ingest import digest
    >>> digest("locomo10.json")[:8]                                     # doctest: +SKIP
    '79fa87e9'
    """
    path = Path(path).expanduser()
    try:
        if path.is_dir():
            files = (file for file in path.rglob("*") if file.suffix in (".json", ".jsonl", ".tsv"))
            try:
                files_by_name = sorted((file.relative_to(path).as_posix(), file) for file in files)
            except RecursionError:
                raise DatasetError(
                    f"{path} has hundreds of levels of folders. Flatten it."
                ) from None
            listed = "".join(f"{digest(file)}  {name}\n" for name, file in files_by_name)
            return hashlib.sha256(listed.encode()).hexdigest()
        with open_regular(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error


@checked
def check_digest(path: str | Path, expected: str) -> str:
    """Compute the SHA-256 of a file or folder; raise DatasetError on a mismatch.

    Parameters
    ----------
    path
        File or folder; see ``digest``.
    expected
        The digest that it must have; empty for no check.

    Returns
    -------
    str
        The digest, 64 hexadecimal digits.

    Raises
    ------
    DatasetError
        If the digest differs, or a file cannot be read.

    Examples
    --------
    >>> from memlab.io.ingest import LOCOMO_SHA256, check_digest
    >>> check_digest("locomo10.json", LOCOMO_SHA256)[:8]                # doctest: +SKIP
    '79fa87e9'
    """
    actual = digest(path)
    if expected and actual != expected.strip().lower():
        raise DatasetError(
            f"{path} has the sha256 {actual}, but {expected} was expected: it is another version of the data."
        )
    return actual


def parse_json(text: str, path: Path, kind: str, *, line: int | None = None) -> object:
    """Parse a JSON value; raise DatasetError with line and column if the text is invalid.

    For JSON Lines, ``line`` is the number of the line in the file, for error messages.
    """
    check_values(text.count(","), path.name)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        at = error.lineno if line is None else line
        raise DatasetError(
            f"{path}, line {at}, column {error.colno}: not JSON: {error.msg}."
        ) from error
    except ValueError as error:  # Python refuses an integer of thousands of digits
        raise DatasetError(f"{path} is not {kind}: {error}.") from error
    except RecursionError as error:
        raise DatasetError(f"{path} is nested too deeply to be {kind}.") from error


def describe_json(value: object) -> str:
    """Describe a JSON value in a few words, for an error message."""
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
    """Return the path of a key within a field, such as ``qa[0].question``."""
    return f"{field}.{key}" if field else key


# -- conversations ----------------------------------------------------------------------------------------------------


@checked
@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation.

    Parameters
    ----------
    ref
        Identifier of the turn, unique in its conversation.
    speaker
        Name of the speaker, or the role.
    text
        What was said.
    session
        Name of the session.
    at
        When it was said (UTC).
    caption
        Description of a picture in the message.
    role
        Role in a chat: user, assistant or tool; empty in a conversation between people.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from memlab.io.ingest import Turn
    >>> Turn("D1:1", "Ida", "I moved to Oslo", "s1", datetime(2026, 1, 1, tzinfo=UTC)).content
    'I moved to Oslo'
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
        """The text to remember, including the caption of a picture.

        >>> from datetime import UTC
        >>> Turn("D1:1", "Ida", "Look!", "s1", datetime(2026, 1, 1, tzinfo=UTC), "a dog in the snow").content
        'Look! [image: a dog in the snow]'
        """
        image = f"[image: {self.caption}]" if self.caption else ""
        return f"{self.text} {image}".strip()


@checked
@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns of some speakers over one or more sessions, in order.

    Parameters
    ----------
    name
        Name of the conversation.
    turns
        Its turns, in the order in which they were said.

    Examples
    --------
    >>> from memlab.io.ingest import Conversation
    >>> Conversation("chat", ()).speakers
    ()
    """

    name: str
    turns: tuple[Turn, ...]

    @property
    def speakers(self) -> tuple[str, ...]:
        """The names of the speakers, in order of first appearance."""
        return tuple(dict.fromkeys(turn.speaker for turn in self.turns))

    @property
    def refs(self) -> frozenset[str]:
        """The identifiers of all turns."""
        return frozenset(turn.ref for turn in self.turns)

    @property
    def end(self) -> datetime:
        """The time of the last turn."""
        return max(turn.at for turn in self.turns)

    @checked
    def rows(self, *, project: str | None = None) -> list[dict[str, object]]:
        """Return a row for ``lab.remember`` for each turn that contains text.

        Session names include the conversation's name, so that two conversations in one lab share none.

        Parameters
        ----------
        project
            Project of all rows.

        Returns
        -------
        list of dict
            Rows with ``text``, ``kind``, ``speaker``, ``session``, ``project``, ``at`` and ``ref``.

        Examples
        --------
        >>> from memlab.io.ingest import Conversation
        >>> Conversation("chat", ()).rows(project="home")
        []
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
    """A lab or agent with the verb ``remember``."""

    def remember(self, rows: Sequence[dict[str, Any]], /, *, chain: bool = False) -> Remembered:
        """Store the rows as memories."""
        ...


@checked
def conversation(
    lab: Remembers[Remembered], conversation: Conversation, *, project: str | None = None
) -> Remembered:
    """Remember all turns of a conversation in one transaction.

    Consecutive turns of a session are linked by edges ``next``.

    Parameters
    ----------
    lab
        Lab or agent that remembers them.
    conversation
        The conversation.
    project
        Project of the memories. Default: the name of the conversation.

    Returns
    -------
    Remembered
        What ``lab.remember`` returns.

    Examples
    --------
    >>> import memlab
    >>> from memlab.io.ingest import conversation, read_locomo
    >>> for labelled in read_locomo("locomo10.json"):                   # doctest: +SKIP
    ...     conversation(memlab.open(), labelled.conversation)
    """
    describe_json = conversation.name if project is None else project
    return lab.remember(conversation.rows(project=describe_json), chain=True)


# -- questions about a conversation -----------------------------------------------------------------------------------

# Categories of questions without an answer: LoCoMo's adversarial ones, and abstention in the others.
_UNANSWERABLE = (5, "abstention")


@checked
@dataclass(frozen=True, slots=True)
class Question:
    """A question about a conversation, with its labels.

    Parameters
    ----------
    text
        The question.
    category
        Category in the file: 1-5 in LoCoMo, otherwise the name of an ability or question type.
    evidence
        Identifiers of the turns that contain the answer.
    answer
        Expected answer; empty if the file has none.
    dropped
        Identifiers in the file's labels that no turn has.
    parts
        Named parts of the evidence, such as ``original_info`` and ``updated_info`` of BEAM.
    at
        When the question is asked, if the file says so.
    outdated
        Evidence that other evidence of the question corrects or contradicts.

    Examples
    --------
    >>> from memlab.io.ingest import Question
    >>> Question("Where does Ida live?", 4, ("D1:1",)).evidence
    ('D1:1',)
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
        """Whether the conversation contains an answer to the question.

        Questions of LoCoMo's category 5 and questions of abstention have no answer.

        >>> Question("When did Ida climb K2?", 5, ("D1:1",)).answerable
        False
        """
        return self.category not in _UNANSWERABLE


@checked
@dataclass(frozen=True, slots=True)
class LabelledConversation:
    """A conversation and the questions about it.

    Parameters
    ----------
    conversation
        The conversation.
    questions
        Its questions; a lab never receives them.

    Examples
    --------
    >>> from memlab.io.ingest import Conversation, LabelledConversation
    >>> LabelledConversation(Conversation("chat", ()), ()).questions
    ()
    """

    conversation: Conversation
    questions: tuple[Question, ...]


# -- queries of a lab -------------------------------------------------------------------------------------------------

# Columns that name wanted memories, and all columns of a file of queries.
_WANTED = ("wanted", "memory_id", "ref", "text")
_COLUMNS = ("question", *_WANTED, "project", "at", "category")
_MAX_ROWS = 1_000_000
"""Maximum rows of a file: it bounds the memory that a wrong file can claim."""


@checked
@dataclass(frozen=True, slots=True)
class WantedMemories:
    """A query of a lab, and the memories that answer it.

    Parameters
    ----------
    text
        The query.
    wanted
        Ids, refs or whole texts of memories that answer it; empty if none does.
    project
        Project of the query.
    at
        When it is asked (UTC).
    category
        Category by which results are grouped.

    Examples
    --------
    >>> from memlab.io.ingest import WantedMemories
    >>> WantedMemories("Where is the key?", ("17",)).wanted
    ('17',)
    """

    text: str
    wanted: tuple[str, ...]
    project: str | None = None
    at: datetime | None = None
    category: str = ""


@checked
def read_questions(path: str | Path) -> tuple[WantedMemories, ...]:
    """Read labelled queries from a ``.jsonl`` or ``.csv`` file.

    A row has ``question`` and ``wanted``: an id, ref or text of a memory, or in JSON a list of them. The columns
    ``memory_id``, ``ref`` and ``text`` are equivalent to ``wanted``. Rows with the same question and ``project``
    are merged. ``at`` (ISO 8601) is the time of the query; results are grouped by ``category``.

    Parameters
    ----------
    path
        Path of the file.

    Returns
    -------
    tuple of WantedMemories
        The queries, in the order of the file.

    Raises
    ------
    DatasetError
        If the file is malformed, empty, or has more than 1,000,000 rows.

    Examples
    --------
    >>> from memlab.io.ingest import read_questions
    >>> read_questions("wanted.jsonl")                                  # doctest: +SKIP
    (WantedMemories(text='Where is the key?', wanted=('17',), ...),)
    """
    path = Path(path).expanduser()
    if path.suffix not in (".jsonl", ".csv"):
        raise DatasetError(f"{path} is not a .jsonl or .csv file of questions.")
    rows = (
        read_json_lines(path, "a file of questions") if path.suffix == ".jsonl" else _read_csv(path)
    )
    merged: dict[tuple[str, str | None], list[Any]] = {}
    for number, value in rows:
        if number > _MAX_ROWS:
            raise DatasetError(
                f"{path} has more than {_MAX_ROWS:,} rows. Split it into several files."
            )
        location = Location(path, f"line {number}")
        row = location.record(value, "(itself)")
        _check_columns(row, location)
        project = location.text(row, "project", "", required=False) or None
        key = location.text(row, "question", ""), project
        entry = merged.setdefault(
            key, [[], _read_time(row, location), location.text(row, "category", "", required=False)]
        )
        entry[0] += _read_wanted(row, location)
    if not merged:
        raise DatasetError(
            f'{path} contains no question. Example of a row: {{"question": "Where is the key?", "wanted": [17]}}'
        )
    return tuple(
        WantedMemories(text, tuple(dict.fromkeys(wanted)), project, at, category)
        for (text, project), (wanted, at, category) in merged.items()
    )


def _read_csv(path: Path) -> Iterator[tuple[int, object]]:
    """Yield the non-empty fields of each row of a CSV file, after the number of the row's last line."""
    with open_text(path, "a file of questions") as file:
        try:
            reader = csv.DictReader(_read_lines(file, path, "a file of questions"), strict=True)
            for row in reader:
                if None in row:
                    raise DatasetError(
                        f"{path}, line {reader.line_num}: the row has more fields than the first line has names."
                    )
                yield reader.line_num, {name: value for name, value in row.items() if value}
        except csv.Error as error:
            raise DatasetError(f"{path}, line {reader.line_num}: not CSV: {error}.") from None


def _check_columns(row: dict[str, Any], location: Location) -> None:
    """Raise DatasetError for an unknown column."""
    for name in row:
        if name not in _COLUMNS:
            raise location.error(
                str(name)[:40], f"unknown field. {did_you_mean(str(name)[:40], _COLUMNS)}"
            )


def _read_wanted(row: dict[str, Any], location: Location) -> Iterator[str]:
    """Yield the ids, refs and texts of the memories that a row names."""
    for field in _WANTED:
        value = row.get(field)
        for item in value if isinstance(value, list) else () if value is None else (value,):
            if isinstance(item, bool) or not isinstance(item, str | int):
                raise location.error(
                    field,
                    f"expected an id, a ref or a text of a memory, found {describe_json(item)}.",
                )
            yield str(item).strip()


def _read_time(row: dict[str, Any], location: Location) -> datetime | None:
    """Return the time of the query in a row, or None without a time."""
    text = location.text(row, "at", "", required=False)
    return location.time(text, "at", "2026-03-01T09:00") if text else None
