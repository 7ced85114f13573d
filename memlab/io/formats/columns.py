"""Columns of rows: guesses of their meaning, and times in the forms of files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from memlab.errors import DatasetError, InputError, UnknownName
from memlab.io.formats.lines import Notes
from memlab.io.formats.messages import ROLES, parse_role, split_message
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.clock import check_instant, to_micros
from memlab.kernel.schema import FIELDS, KINDS, MEMORY, normalise_word

# The upper bound of a time in each unit, and the microseconds per unit. Bounds are a factor of
# 1,000 apart, so times after 1973 fit one unit only.
_UNITS = (
    (1e11, 1e6, "seconds"),
    (1e14, 1e3, "milliseconds"),
    (1e17, 1.0, "microseconds"),
    (1e20, 1e-3, "nanoseconds"),
)
_LEAST = 1e8
"""Minimum of seconds since 1970: a smaller number (before March 1973) is rather a count or an id."""


def parse_instant(value: object) -> tuple[int, str]:
    """Parse a time in a known format, and return microseconds since 1970 and the format.

    A time without a zone is UTC. Raises InputError for a value that is not a time or is ambiguous: 03/04/2026, a small
    number.

    >>> parse_instant(1_700_000_000), parse_instant("1700000000123")
    ((1700000000000000, 'seconds since 1970'), (1700000000123000, 'milliseconds since 1970'))
    """
    if isinstance(value, datetime | date):
        return check_instant(to_micros(value), "A time"), "times"
    if isinstance(value, str):
        text = value.strip()
        try:
            return (
                _parse_number(float(text))
                if text[:1].isdigit() and "-" not in text and ":" not in text
                else _parse_text(text)
            )
        except (ValueError, OverflowError):
            raise InputError(
                f'"{text:.40}" is not a time, or is ambiguous. Write it in ISO 8601, such as 2026-03-04T09:00'
            ) from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"a time must be a text or a number, not {type(value).__name__}")
    return _parse_number(float(value))


def _parse_text(text: str) -> tuple[int, str]:
    """Parse a time in ISO 8601 or in the format of e-mails; return microseconds and the name of the format.

    A time without a zone is in UTC.
    """
    try:
        at = datetime.fromisoformat(text.removesuffix(" UTC"))
        form = "ISO 8601"
    except ValueError:
        at, form = parsedate_to_datetime(text), "as in e-mails"
    return check_instant(
        to_micros(at if at.tzinfo is not None else at.replace(tzinfo=UTC)), "A time"
    ), form


def _parse_number(value: float) -> tuple[int, str]:
    """Convert a numeric time to microseconds since 1970, and return the unit that its size decided.

    The unit is seconds, milliseconds, microseconds or nanoseconds. Raises InputError for a number that is too small
    or too large.
    """
    if not math.isfinite(value) or value < _LEAST:
        raise InputError(
            f"{value:g} is no number of seconds, milliseconds, microseconds or nanoseconds "
            "since 1970: it is too small or not finite"
        )
    for limit, factor, unit in _UNITS:
        if value < limit:
            return check_instant(round(value * factor), "A time"), f"{unit} since 1970"
    raise InputError(f"{value:g} is too large for a number of nanoseconds since 1970")


# -- columns ----------------------------------------------------------------------------------------------------------

TARGETS = ("role", "at", *FIELDS)
"""What a column may provide: a field of a memory, its time, or the speaker's role."""

# Names of columns in exports and data sets by field, the most specific first.
_NAMES = {
    field: tuple(names.split())
    for field, names in {
        "role": "role sender author type from",
        "speaker": "speaker user username user_name from sender author who",
        "at": "at timestamp created_at create_time createdAt time datetime date sent sent_at ts created updated",
        "session": "session session_id sessionId conversation_id conversationId thread_id thread chat_id channel",
        "project": "project cwd repo repository workspace",
        "branch": "branch gitBranch",
        "ref": "ref id uuid message_id",
        "kind": "kind",
        "tags": "tags categories labels",
    }.items()
}
TEXTS = (
    "text",
    "content",
    "message",
    "memory",
    "body",
    "utterance",
    "statement",
    "note",
    "value",
    "data",
)
"""Names of columns of texts, the most specific first."""
_NEVER_MISSED = frozenset(
    (
        "content",
        "text",
        "parts",
        "tool_calls",
        "additional_kwargs",
        "function_call",
        "lc",
        "type",
        "isSidechain",
    )
)
"""Fields of a message that are read elsewhere or only name its type; they are never counted as omitted."""
# A message with one of these fields may contain tool calls, so its parts are read.
_CALLED = frozenset(("tool_calls", "additional_kwargs", "function_call"))
# Values that are not worth a note when they are omitted.
_NOTHING: tuple[object, ...] = ("", [], {})
_PROSE = 20
"""Minimum average characters of a column of texts whose name is unknown: shorter ones are labels."""


class Rows:
    """A converter of a source's entries to rows for ``lab.remember``.

    Call ``settle`` with a sample of the entries before the first conversion.

    Parameters
    ----------
    notes
        Notes on guesses and skipped rows.
    columns
        Column by field of a memory, from the caller; None for no column. For ``at``, the time of the first row is
        possible, too; each further row is a second later.
    session
        Session of rows that have none.
    project
        Project of all rows.
    messages
        Whether the entries are messages.
    """

    def __init__(
        self,
        notes: Notes,
        columns: Mapping[str, str | None],
        *,
        session: str | None = None,
        project: str | None = None,
        messages: bool = False,
    ) -> None:
        self.notes, self.chosen, self.session, self.project, self.messages = (
            notes,
            columns,
            session,
            project,
            messages,
        )
        self.columns: dict[str, str] = {}
        self._next_at: int | None = None

    def settle(self, sample: Sequence[Mapping[str, Any]]) -> None:
        """Choose the column for each field from a sample of entries.

        Raises DatasetError if no column is a text, UnknownName for a column that does not exist.
        """
        values: dict[str, list[Any]] = {}
        for entry in sample:
            for name, value in entry.items():
                if value is not None and value != "":
                    values.setdefault(str(name), []).append(value)
        names = {str(name) for entry in sample for name in entry}
        for field, column in self.chosen.items():
            if field == "at" and column is not None and column not in names and _time_form(column):
                self._next_at = parse_instant(column)[0]
                self.notes.guessed["at"] = f"{column}, and a second more for each row"
                continue
            if column is not None and sample and column not in names:
                raise UnknownName(f"column of {self.notes.source}", column, names)
            if column is not None:
                self.columns[field] = column
        # the order matters, because a column provides one field: a sender may be a role or a name
        for field in (
            "role",
            "text",
            "speaker",
            "at",
            "session",
            "project",
            "branch",
            "ref",
            "kind",
            "tags",
        ):
            if field not in self.chosen and (column := self._guess(field, values)) is not None:
                self.columns[field] = column
        if sample and "text" not in self.columns:
            listed = ", ".join(sorted(names)[:12])
            near = _propose("text", names)
            proposal = "" if near is None else f' {near} may be one: columns={{"text": "{near}"}}.'
            raise DatasetError(
                f"{self.notes.source}: no column looks like a text. "
                f'The columns are {listed}. Name one: columns={{"text": ...}}.{proposal}'
            )
        self._tell(values)
        missing = [
            field
            for field in ("speaker", "session", "at")
            if field not in self.columns and field not in self.chosen
        ]
        if not self.messages:
            self._tell_missing(missing, names.difference(self.columns.values()))
        if "at" in missing:
            self.notes.guessed.setdefault("at", "nothing, so the time of loading counts")
        self._used = (
            _NEVER_MISSED.union(self.columns.values())
            if self.messages
            else frozenset(self.columns.values())
        )
        self._role, self._text_column = (
            self.columns.get("role", ""),
            self.columns.get("text", "content"),
        )
        self._fields = [
            (
                field,
                column,
                column != "cwd" and field != "at" and MEMORY[field].storage in ("name", "text"),
            )
            for field, column in self.columns.items()
            if field not in ("text", "role", "speaker")
        ]

    def of(
        self, location: int, entry: Mapping[str, Any], session: str | None = None
    ) -> list[dict[str, Any]]:
        """Convert an entry to memory rows; return [] if the entry is empty or invalid."""
        notes = self.notes
        if self.messages and entry.get("isMeta") is True:
            notes.left_out["message that the program wrote to itself"] += 1
            return []
        row: dict[str, Any] = {}
        for field, column, plain in self._fields:
            value = entry.get(column)
            if value is None or value == "" or value != value:  # NaN is a missing value
                continue
            if plain and type(value) is str:
                row[field] = value
                continue
            try:
                row[field] = (
                    parse_instant(value)[0]
                    if field == "at"
                    else _convert_cell(field, column, value)
                )
            except InputError as problem:
                notes.skip(location, f"{field} not understood", f"{column}: {problem}")
                return []
        if self._next_at is not None:
            row["at"] = self._next_at
            self._next_at += 1_000_000
        role_cell = entry.get(self._role)
        role = parse_role(role_cell)
        if role is None and self.messages:
            role = next((word for name in ROLES if (word := parse_role(entry.get(name)))), None)
        speaker = self._speaker(entry, role, role_cell)
        if "session" not in row and (session or self.session):
            row["session"] = session or self.session
        if entry.get("isSidechain") is True and "session" in row:
            row["session"] += "/sidechain"
        if self.project is not None:
            row["project"] = self.project
        if "kind" in row:
            row["kind"] = normalise_word(row["kind"], KINDS)
        if "kind" in row and row["kind"] not in KINDS:
            notes.left_out[f"kind {str(row.pop('kind'))[:40]}"] += 1
        if "kind" not in row and (role or speaker):
            row["kind"] = "turn"
        for name in entry.keys() - self._used:
            if entry[name] is not None and entry[name] not in _NOTHING:
                notes.left_out[f"field {name}" if self.messages else f"column {name}"] += 1
        if speaker or role:
            row["speaker"] = speaker or role
        return self._rows_of_words(entry, row)

    def _rows_of_words(self, entry: Mapping[str, Any], row: dict[str, Any]) -> list[dict[str, Any]]:
        """Return a row for an entry's text, and a row for each tool call or tool result."""
        # words of all parts are one row; results and calls of tools are rows of their own, said by "tool"
        content = entry.get(self._text_column)
        if self.messages and not content:
            content = entry.get("text") or entry.get("parts")
        if isinstance(content, str) and (not self.messages or _CALLED.isdisjoint(entry)):
            if content and not content.isspace():
                row["text"] = content
                return [row]
            self.notes.left_out["entry without words"] += 1
            return []
        if (
            not self.messages
            and not isinstance(content, list | tuple | Mapping)
            and content is not None
        ):
            content = str(content)
        rows: list[dict[str, Any]] = []
        own: list[str] = []
        for piece in split_message(entry if self.messages else {}, content, self.notes):
            if not (text := piece.words).strip():
                continue
            if piece.kind == "said":
                own.append(text)
            else:
                rows.append({**row, "text": text, "speaker": "tool", "kind": "turn"})
        if own:
            row["text"] = "\n\n".join(own)
            rows.insert(0, row)
        if not rows:
            self.notes.left_out["entry without words"] += 1
        return rows

    def _speaker(self, entry: Mapping[str, Any], role: str | None, fallback: object) -> str | None:
        """Return the name or the role of an entry's speaker, or None without a speaker.

        In an entry with a role, only a proper name counts as the speaker. Without a role, any text
        in the column of speakers or of roles counts.
        """
        column = self.columns.get("speaker")
        name = entry.get(column) if column is not None else None
        if role == "tool" and self.messages:
            return None  # the name of a tool, such as ChatGPT's python
        if role is not None:
            has_name = isinstance(name, str) and bool(name.strip()) and parse_role(name) is None
            if has_name:
                self.notes.left_out["role of a speaker who has a name"] += 1
            return str(name).strip() if has_name else None
        label = name if isinstance(name, str) and name.strip() else fallback
        return parse_role(label) or label.strip() or None if isinstance(label, str) else None

    # -- guesses ----------------------------------------------------------------------------------------------

    def _guess(self, field: str, values: Mapping[str, list[Any]]) -> str | None:
        """Guess which column provides a field, or None if no column fits."""
        # the name of a column alone is no proof: its values must fit, too
        if field == "text":
            return self._guess_text(values)
        used = set(self.columns.values())
        candidates = [name for name in _NAMES[field] if name in values and name not in used]
        if field == "speaker" and self.messages and "name" in values:
            candidates.append("name")
        if field == "role":
            candidates = [name for name in candidates if _are_roles(values[name])]
        elif field == "at":
            with_times = [name for name in candidates if any(map(_time_form, values[name]))]
            if candidates and not with_times:
                self.notes.guessed["at"] = (
                    f"nothing: {candidates[0]} contains no known form of time"
                )
            candidates = with_times
        elif field == "tags":
            candidates = [name for name in candidates if _have_type(values[name], str, list)]
        elif field == "kind":
            candidates = [name for name in candidates if any(map(_is_kind, values[name]))]
        else:
            candidates = [name for name in candidates if _have_type(values[name], str, int)]
        return candidates[0] if candidates else None

    def _guess_text(self, values: Mapping[str, list[Any]]) -> str | None:
        """Guess which column contains the texts; without a match, return "content" for messages, else None."""
        names = ("content", *TEXTS) if self.messages else TEXTS
        used = set(self.columns.values())
        for name in names:
            if (
                name in values
                and name not in used
                and any(isinstance(v, str | list | dict) for v in values[name])
                and not all(map(_time_form, values[name]))
            ):
                return name
        if self.messages:
            return "content"
        texts = {
            name: cells
            for name, cells in values.items()
            if name not in used and _have_type(cells, str) and not all(map(_time_form, cells))
        }
        lengths = {name: sum(map(len, cells)) / len(cells) for name, cells in texts.items()}
        longest = max(lengths, key=lambda name: lengths[name], default=None)
        return longest if longest is not None and lengths[longest] >= _PROSE else None

    def _tell_missing(self, fields: Iterable[str], names: Iterable[str]) -> None:
        """Note for each field without a column the unused column whose name resembles the field, if any."""
        for field in fields:
            near = _propose(field, names)
            if near is not None:
                self.notes.proposed[field] = near
                self.notes.guessed.setdefault(
                    field, f'nothing. {near} may be one: columns={{"{field}": "{near}"}}.'
                )

    def _tell(self, values: Mapping[str, list[Any]]) -> None:
        """Record in the notes which column provides each field."""
        for field, column in self.columns.items():
            description = column
            if field == "at":
                form = next(
                    (form for value in values.get(column, ()) if (form := _time_form(value))), ""
                )
                description = f"{column} ({form})" if form else column
            self.notes.guessed[field] = description
        for field in self.chosen:
            if self.chosen[field] is None:
                self.notes.guessed[field] = "nothing, as requested"
        if "session" not in self.columns and self.session is not None:
            self.notes.guessed["session"] = f'"{self.session}", because no column names one'


def _convert_cell(field: str, column: str, value: Any) -> Any:
    """Convert a table cell to the value of a memory field; raise InputError if the cell has no such value."""
    # files spell values in their own ways, so that more forms are accepted than of a caller
    storage = MEMORY[field].storage
    if storage == "time":
        return parse_instant(value)[0]
    if storage == "list":
        parts: Iterable[Any] = (
            value.replace(";", ",").split(",") if isinstance(value, str) else value
        )
        if not isinstance(parts, Iterable):
            raise InputError(f"expected a list, not {describe_value(value)}")
        return [str(part).strip() for part in parts if str(part).strip()]
    if storage == "num":
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError(f"expected a number, not {describe_value(value)}") from None
    if storage == "bool":
        word = str(value).strip().lower()
        if word not in ("true", "false", "yes", "no", "1", "0"):
            raise InputError(f"expected true or false, not {describe_value(value)}")
        return word in ("true", "yes", "1")
    if not isinstance(value, str | int | float):
        raise InputError(f"expected a text, not {type(value).__name__}")
    name = str(value)
    if column == "cwd":
        return name.replace("\\", "/").rstrip("/").rpartition("/")[2] or name
    return name


def _propose(field: str, names: Iterable[str]) -> str | None:
    """Return the alphabetically first column that abbreviates a usual name of the field, or None."""
    words = (*_NAMES.get(field, ()), *(TEXTS if field == "text" else ()))
    for name in sorted(names):
        # people shorten names of columns: usr, conv, msg
        short = re.sub("[^a-z]", "", name.lower())
        if len(short) > 2 and any(_abbreviates(short, word.lower()) for word in words):
            return name
    return None


def _abbreviates(short: str, word: str) -> bool:
    """Return whether a name has a word's first letter and only letters of the word, in order."""
    letters = iter(word)
    return short[0] == word[0] and all(letter in letters for letter in short)


def _is_kind(value: object) -> bool:
    """Return whether a value names a kind of memory, with hyphens or underscores."""
    return isinstance(value, str) and normalise_word(value, KINDS) in KINDS


def _time_form(value: object) -> str:
    """Return the name of a value's time format, or "" for a value that is not a time."""
    try:
        return parse_instant(value)[1]
    except InputError:
        return ""


def _have_type(values: Iterable[object], *kinds: type) -> bool:
    """Return whether all values have one of the given types."""
    return all(isinstance(value, kinds) for value in values)


def _are_roles(values: Sequence[object]) -> bool:
    """Return whether most values are role names such as "user"."""
    return 2 * sum(parse_role(value) is not None for value in values) > len(values)
