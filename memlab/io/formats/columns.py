"""Columns of rows: which is the text, who says it, when and where; times in the forms of files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from memlab.errors import DatasetError, InputError, UnknownName
from memlab.io.formats.lines import Notes
from memlab.io.formats.messages import ROLES, pieces, role_word
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.clock import check_instant, to_micros
from memlab.kernel.schema import FIELDS, KINDS, MEMORY, normalise_word

__all__ = ["TARGETS", "Rows", "instant"]

_UNITS = (
    (1e11, 1e6, "seconds"),
    (1e14, 1e3, "milliseconds"),
    (1e17, 1.0, "microseconds"),
    (1e20, 1e-3, "nanoseconds"),
)
_LEAST = 1e8
"""Seconds since 1970 below which a number is no time of a conversation: March 1973."""


def instant(value: object) -> tuple[int, str]:
    """Microseconds since 1970, and what the form was taken for. A time without a zone is UTC.

    InputError for what is no time, and for what may be two: 03/04/2026, a number that is too small.

    >>> instant(1_700_000_000), instant("1700000000123")
    ((1700000000000000, 'seconds since 1970'), (1700000000123000, 'milliseconds since 1970'))
    """
    if isinstance(value, datetime | date):
        return check_instant(to_micros(value), "A time"), "times"
    if isinstance(value, str):
        text = value.strip()
        try:
            return (
                _number(float(text))
                if text[:1].isdigit() and "-" not in text and ":" not in text
                else _text(text)
            )
        except (ValueError, OverflowError):
            raise InputError(f'"{text:.40}" is no time, or may be several') from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"a time is a text or a number, not {type(value).__name__}")
    return _number(float(value))


def _text(text: str) -> tuple[int, str]:
    try:
        at = datetime.fromisoformat(text.removesuffix(" UTC"))
        form = "ISO 8601"
    except ValueError:
        at, form = parsedate_to_datetime(text), "as in e-mails"
    return check_instant(
        to_micros(at if at.tzinfo is not None else at.replace(tzinfo=UTC)), "A time"
    ), form


def _number(value: float) -> tuple[int, str]:
    if not math.isfinite(value) or value < _LEAST:
        raise InputError(f"{value:g} is no time since 1970 in seconds or less")
    for limit, factor, unit in _UNITS:
        if value < limit:
            return check_instant(round(value * factor), "A time"), f"{unit} since 1970"
    raise InputError(f"{value:g} is no time since 1970")


# -- columns ----------------------------------------------------------------------------------------------------------

TARGETS = ("role", "at", *FIELDS)
"""What a column may be taken for: a field of a memory, its time, or the role of who says it."""

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
_TEXTS = (
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
"""What is read of a message wherever it stands, or only says what it is."""
_CALLED = frozenset(("tool_calls", "additional_kwargs", "function_call"))
_NOTHING: tuple[object, ...] = ("", [], {})
_PROSE = 20
"""Characters that texts have on average, at least, where nothing but their length speaks for a column."""


class Rows:
    """Entries of a source as rows for ``lab.remember``, once ``settle`` has seen some of them.

    ``columns`` says what a column of memlab is taken from, or with None from nothing. ``project`` is given to all rows,
    ``session`` to those that name none.
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
        self.notes, self.given, self.session, self.project, self.messages = (
            notes,
            columns,
            session,
            project,
            messages,
        )
        self.taken: dict[str, str] = {}

    def settle(self, sample: Sequence[Mapping[str, Any]]) -> None:
        """Decide which column is what. DatasetError if none is a text, UnknownName for one that is not there."""
        values: dict[str, list[Any]] = {}
        for entry in sample:
            for name, value in entry.items():
                if value is not None and value != "":
                    values.setdefault(str(name), []).append(value)
        names = {str(name) for entry in sample for name in entry}
        for field, column in self.given.items():
            if column is not None and sample and column not in names:
                raise UnknownName(f"column of {self.notes.source}", column, names)
            if column is not None:
                self.taken[field] = column
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
            if field not in self.given and (column := self._guess(field, values)) is not None:
                self.taken[field] = column
        if sample and "text" not in self.taken:
            known = ", ".join(sorted(names)[:12])
            raise DatasetError(
                f'{self.notes.source}: no column looks like a text. It has {known}. Say which: columns={{"text": ...}}.'
            )
        self._tell(values)
        self._used = (
            _NEVER_MISSED.union(self.taken.values())
            if self.messages
            else frozenset(self.taken.values())
        )
        self._role, self._text_column = (
            self.taken.get("role", ""),
            self.taken.get("text", "content"),
        )
        self._fields = [
            (
                field,
                column,
                column != "cwd" and field != "at" and MEMORY[field].storage in ("name", "text"),
            )
            for field, column in self.taken.items()
            if field not in ("text", "role", "speaker")
        ]

    def of(
        self, place: int, entry: Mapping[str, Any], session: str | None = None
    ) -> list[dict[str, Any]]:
        """The rows of one entry; none for one without words, or where something in it cannot be taken."""
        notes = self.notes
        if self.messages and entry.get("isMeta") is True:
            notes.left_out["message that the program wrote to itself"] += 1
            return []
        row: dict[str, Any] = {}
        for field, column, plain in self._fields:
            value = entry.get(column)
            if value is None or value == "" or value != value:  # NaN is nothing
                continue
            if plain and type(value) is str:
                row[field] = value
                continue
            try:
                row[field] = instant(value)[0] if field == "at" else _value(field, column, value)
            except InputError as problem:
                notes.skip(place, f"{field} not understood", f"{column}: {problem}")
                return []
        given = entry.get(self._role)
        role = role_word(given)
        if role is None and self.messages:
            role = next((word for name in ROLES if (word := role_word(entry.get(name)))), None)
        speaker = self._speaker(entry, role, given)
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
        return self._said(entry, row)

    def _said(self, entry: Mapping[str, Any], row: dict[str, Any]) -> list[dict[str, Any]]:
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
        for piece in pieces(entry if self.messages else {}, content, self.notes):
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

    def _speaker(self, entry: Mapping[str, Any], role: str | None, given: object) -> str | None:
        """A name beside the role; without a role what stands in its place."""
        column = self.taken.get("speaker")
        name = entry.get(column) if column is not None else None
        if role is not None:
            named = isinstance(name, str) and bool(name.strip()) and role_word(name) is None
            if named:
                self.notes.left_out["role of a speaker who has a name"] += 1
            return str(name).strip() if named else None
        called = name if isinstance(name, str) and name.strip() else given
        return role_word(called) or called.strip() or None if isinstance(called, str) else None

    # -- guesses ----------------------------------------------------------------------------------------------

    def _guess(self, field: str, values: Mapping[str, list[Any]]) -> str | None:
        if field == "text":
            return self._text(values)
        taken = set(self.taken.values())
        there = [name for name in _NAMES[field] if name in values and name not in taken]
        if field == "speaker" and self.messages and "name" in values:
            there.append("name")
        if field == "role":
            there = [name for name in there if _are_roles(values[name])]
        elif field == "at":
            timed = [name for name in there if any(map(_is_time, values[name]))]
            if there and not timed:
                self.notes.guessed["at"] = f"nothing: {there[0]} holds no time that is understood"
            there = timed
        elif field == "tags":
            there = [name for name in there if _are(values[name], str, list)]
        elif field == "kind":
            there = [name for name in there if any(map(_is_kind, values[name]))]
        else:
            there = [name for name in there if _are(values[name], str, int)]
        return there[0] if there else None

    def _text(self, values: Mapping[str, list[Any]]) -> str | None:
        names = ("content", *_TEXTS) if self.messages else _TEXTS
        taken = set(self.taken.values())
        for name in names:
            if (
                name in values
                and name not in taken
                and any(isinstance(v, str | list | dict) for v in values[name])
            ):
                return name
        if self.messages:
            return "content"
        texts = {
            name: given for name, given in values.items() if name not in taken and _are(given, str)
        }
        lengths = {name: sum(map(len, given)) / len(given) for name, given in texts.items()}
        longest = max(lengths, key=lambda name: lengths[name], default=None)
        return longest if longest is not None and lengths[longest] >= _PROSE else None

    def _tell(self, values: Mapping[str, list[Any]]) -> None:
        for field, column in self.taken.items():
            taken = column
            if field == "at":
                form = next(
                    (form for value in values.get(column, ()) if (form := _is_time(value))), ""
                )
                taken = f"{column} ({form})" if form else column
            self.notes.guessed[field] = taken
        for field in self.given:
            if self.given[field] is None:
                self.notes.guessed[field] = "nothing, as was said"
        if "session" not in self.taken and self.session is not None:
            self.notes.guessed["session"] = f'"{self.session}", as nothing names one'


def _value(field: str, column: str, value: Any) -> Any:
    """What a cell is as a field of a memory. InputError for what cannot be one."""
    storage = MEMORY[field].storage
    if storage == "time":
        return instant(value)[0]
    if storage == "list":
        parts: Iterable[Any] = (
            value.replace(";", ",").split(",") if isinstance(value, str) else value
        )
        if not isinstance(parts, Iterable):
            raise InputError(f"a list stands here, not {describe_value(value)}")
        return [str(part).strip() for part in parts if str(part).strip()]
    if storage == "num":
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError(f"a number stands here, not {describe_value(value)}") from None
    if storage == "bool":
        word = str(value).strip().lower()
        if word not in ("true", "false", "yes", "no", "1", "0"):
            raise InputError(f"true or false stands here, not {describe_value(value)}")
        return word in ("true", "yes", "1")
    if not isinstance(value, str | int | float):
        raise InputError(f"a text stands here, not {type(value).__name__}")
    name = str(value)
    if column == "cwd":
        return name.replace("\\", "/").rstrip("/").rpartition("/")[2] or name
    return name


def _is_kind(value: object) -> bool:
    """Return whether a value is the name of a kind, an underscore standing for a hyphen."""
    return isinstance(value, str) and normalise_word(value, KINDS) in KINDS


def _is_time(value: object) -> str:
    """The form of a time, or ""."""
    try:
        return instant(value)[1]
    except InputError:
        return ""


def _are(values: Iterable[object], *kinds: type) -> bool:
    return all(isinstance(value, kinds) for value in values)


def _are_roles(values: Sequence[object]) -> bool:
    """Return whether most of the values are words for roles."""
    return 2 * sum(role_word(value) is not None for value in values) > len(values)
