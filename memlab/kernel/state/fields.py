"""Checks and conversions of the fields of memories before anything is written."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import category

import polars as pl

from memlab.errors import InputError, PrivacyError, UnknownName, did_you_mean
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.clock import check_instant, from_micros, to_micros
from memlab.kernel.privacy import Finding, is_sensitive, refuse_strings
from memlab.kernel.schema import FIELDS, MEMORY, Column, is_open_word, normalise_word

MAX_TEXT_BYTES = 1_000_000
"""Maximum size of a memory's text in UTF-8; docs/howto/load.md promises it."""

_GREATEST = sys.float_info.max  # integers beyond it have no float
_INVISIBLE = ("Cc", "Cf", "Zs", "Zl", "Zp")
"""Unicode categories of characters that draw nothing: controls, formats, spaces."""
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that fonts draw as blanks: Hangul fillers and the empty Braille pattern."""


def rows_to_columns(rows: Iterable[Mapping[str, Any] | str] | pl.DataFrame) -> dict[str, list[Any]]:
    """Convert rows, texts or a frame to a mapping of column names to lists.

    A row that lacks a key has None in that column. Raises InputError for values of other types.
    """
    if isinstance(rows, pl.DataFrame):
        return rows.to_dict(as_series=False)
    if isinstance(rows, str | Mapping):
        raise InputError(
            "remember takes several rows: a list of dicts, a list of texts, or a Polars frame."
        )
    if not isinstance(rows, Iterable):
        raise InputError(
            f"remember takes a list of dicts, a list of texts, or a Polars frame, not {describe_value(rows)}."
        )
    # Each refusal names the exact fault because users pass rows from files, frames and generators.
    try:
        records = []
        for number, row in enumerate(rows):
            if not isinstance(row, str | Mapping):
                raise InputError(
                    f"Row {number} is {type(row).__name__}. Pass a dict with a text, or the text itself."
                )
            records.append({"text": row} if isinstance(row, str) else row)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"The rows cannot be read: iterating over them raised {type(error).__name__}. Pass a list of dicts or texts."
        ) from error
    names = dict.fromkeys(name for row in records for name in row)
    if records and not names:
        raise InputError('A memory needs a text. Add the field "text" to the rows.')
    return {name: [row.get(name) for row in records] for name in names}


def validate_columns(
    columns: Mapping[str, Sequence[Any]], *, now: int, open_words: bool = False
) -> dict[str, list[Any]]:
    """Check and convert all values of the columns of new memories.

    The column ``at`` is returned as ``created``. With ``open_words``, a column that allows new words accepts short
    words outside memlab's vocabulary. Raises InputError that names the row and column of the first invalid value.
    """
    # Unknown fields are refused first: a misspelled "text" would otherwise be reported as missing.
    for name in columns:
        if name not in FIELDS and name != "at":
            raise InputError(
                f'A memory has no field "{name}". {did_you_mean(name, (*FIELDS, "at"))}'
            )
    if "text" not in columns:
        raise InputError('A memory needs a text. Add the field "text" to the rows.')
    checked: dict[str, list[Any]] = {}
    for name, values in columns.items():
        if name == "at":
            checked["created"] = [
                now if when is None else _instant(when, row) for row, when in _flatten_rows(values)
            ]
        elif name == "text":
            checked["text"] = [_text(text, row) for row, text in _flatten_rows(values)]
        else:
            checked[name] = _checked(MEMORY[name], values, open_words)
    if "valid_from" in checked and "valid_until" in checked:
        for row, (start, stop) in _flatten_rows(
            list(zip(checked["valid_from"], checked["valid_until"], strict=True))
        ):
            check_interval(start, stop, where=_head(row))
    return checked


def check_interval(start: int | None, stop: int | None, *, where: str = "") -> None:
    """Raise InputError if the end of a valid time is before its start.

    ``start`` and ``stop`` are microseconds UTC, or None for an open end.
    """
    if start is not None and stop is not None and stop < start:
        raise InputError(
            f"{where}valid_from must not be after valid_until, but "
            f"{from_micros(stop).isoformat()} is before {from_micros(start).isoformat()}. "
            "Exchange the two times, or leave one out."
        )


def validate_text(text: object, *, where: str = "") -> str:
    """Return ``text``. Raises InputError if it cannot be stored.

    A text can be stored if it is not blank, has no lone surrogate, and has at most 1 MB in UTF-8. Messages include
    ``where``, the position of the text, such as "row 3".
    """
    at = f" ({where})" if where else ""
    if not isinstance(text, str):
        raise InputError(f"A text must be a string, not {type(text).__name__}{at}.")
    text = str.__str__(text)  # a subclass of str may override its conversion
    if is_blank(text):
        raise InputError(f"The text is empty{at}: give a text with at least one visible character.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InputError(
            f"The text holds a lone surrogate at character {error.start}{at}: "
            'decode its source as UTF-8, or clean it with text.encode("utf-8", "replace").decode().'
        ) from None
    if size > MAX_TEXT_BYTES:
        raise InputError(
            f"The text has {size:,} bytes{at}; the maximum is {MAX_TEXT_BYTES:,}. Split it into several memories."
        )
    return text


def is_blank(text: str) -> bool:
    r"""Return whether a text has no visible character.

    Spaces, controls and characters without width are invisible.

    >>> is_blank(" \u200b\x00"), is_blank("-")
    (True, False)
    """
    if text.isascii() and text.isprintable():  # the fast path for most texts
        return not text or text.isspace()
    return all(
        character.isspace() or character in _FILLERS or category(character) in _INVISIBLE
        for character in text
    )


def _flatten_rows(values: Sequence[Any]) -> Iterable[tuple[int | None, Any]]:
    """Yield each value with its row number, or with None in place of the number if there is only one value."""
    return enumerate(values) if len(values) > 1 else ((None, value) for value in values)


def _position(row: int | None, field: str = "") -> str:
    """Describe the row and field of a value for an error message.

    Returns "" if both are missing, as for the text of a single memory.
    """
    if row is None:
        return f"field {field}" if field else ""
    return f"row {row}, field {field}" if field else f"row {row}"


def _head(row: int | None) -> str:
    """Return the start of an error message, "Row 3: ", or "" for a single memory."""
    return "" if row is None else f"Row {row}: "


def _instant(when: Any, row: int | None, field: str = "at") -> int:
    """Convert a time to microseconds UTC. An InputError names its row and field."""
    try:
        return check_instant(to_micros(when), "A time")
    except InputError as error:
        without_end = (
            " Leave valid_until out if the memory has no end." if field == "valid_until" else ""
        )
        raise InputError(f"{_position(row, field).capitalize()}: {error}{without_end}") from None


def _checked(column: Column, values: Sequence[Any], open_words: bool) -> list[Any]:
    """Check all values of one column and replace None by the column's default.

    With ``open_words``, columns with an open vocabulary admit other words too. Raises InputError for
    the first invalid value.
    """
    # Each kind of storage has its own check. A column is checked as a whole, because a call with a thousand rows
    # usually has few columns.
    default = column.default
    name, storage = column.name, column.storage
    if storage == "word":
        words = [
            normalise_word(str.__str__(value), column.words) if isinstance(value, str) else value
            for value in values
        ]
        for row, value in _flatten_rows(words):
            if open_words and column.open and is_open_word(value):
                continue
            if value is not None and (not isinstance(value, str) or value not in column.words):
                text = value if isinstance(value, str) else describe_value(value)
                raise UnknownName(name, text, column.words, where=_head(row))
        return [default if value is None else value for value in words]
    if storage == "num":
        return [
            default if value is None else _number(column, value, row)
            for row, value in _flatten_rows(values)
        ]
    if storage == "bool":
        for row, value in _flatten_rows(values):
            if value is not None and not isinstance(value, bool):
                raise InputError(
                    f"{_head(row)}{name} must be true or false, not {describe_value(value)}."
                )
        return [default if value is None else value for value in values]
    if storage == "time":
        return [
            None if value is None else _instant(value, row, name)
            for row, value in _flatten_rows(values)
        ]
    if storage == "note":
        return [
            value if value is None else _text(value, row, name)
            for row, value in _flatten_rows(values)
        ]
    if storage == "list":
        return [_strings(name, value, row) for row, value in _flatten_rows(values)]
    return [
        value if value is None else _name(name, value, row) for row, value in _flatten_rows(values)
    ]


def _number(column: Column, value: Any, row: int | None) -> float:
    """Return a value as a float after checking it against the column's bounds.

    Raises InputError if it is not a finite number within the column's bounds.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not -_GREATEST <= value <= _GREATEST
    ):
        raise InputError(
            f"{_head(row)}{column.name} must be a finite number, not {describe_value(value)}."
        )
    if not column.low <= value <= column.high:
        raise InputError(
            f"{_head(row)}{column.name} must be in {column.low:g}..{column.high:g}, not {value:g}."
        )
    return float(value)


def _name(field: str, value: Any, row: int | None) -> str:
    """Check that a value is a string of 1 to 1,000 characters, and return it.

    Raises InputError otherwise.
    """
    if not isinstance(value, str) or not value or len(value) > 1000:
        raise InputError(
            f"{_head(row)}{field} must be a string of 1 to 1000 characters, not {describe_value(value)}."
        )
    return _text(value, row, field)


def _text(value: Any, row: int | None, field: str = "") -> str:
    """Return a text if it can be stored; otherwise raise InputError."""
    # Most texts are printable ASCII, which needs no further check; this saves 1 microsecond for each value.
    if (
        type(value) is str
        and value.isascii()
        and value.isprintable()
        and value.strip()
        and len(value) <= MAX_TEXT_BYTES
    ):
        return value
    return validate_text(value, where=_position(row, field))


def normalize_tag(tag: str) -> str:
    """Return a tag without its leading "#"; a lone "#" is unchanged."""
    return tag.removeprefix("#") or tag


def _strings(name: str, value: Any, row: int | None) -> list[str] | None:
    """Check a list of names and return it, or return None if the list is empty.

    Tags lose their leading "#".
    """
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InputError(
            f"{_head(row)}{name} must be a list of strings, not {describe_value(value)}."
        )
    names = [_name(name, item, row) for item in value]
    if name == "tags":
        names = [normalize_tag(tag) for tag in names]
    return names or None


# -- Columns in the body of an event: small, and without secrets ------------------------------------------------------


def compact_columns(columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Drop columns of nulls, and reduce a column of equal values to one value."""
    small: dict[str, Any] = {}
    for name, values in columns.items():
        first = values[0]
        if isinstance(first, list) or any(isinstance(value, list) for value in values):
            small[name] = values
        elif all(value == first for value in values):
            if first is not None:
                small[name] = first
        else:
            small[name] = values
    return small


def describe_redactions(redacted: Sequence[tuple[int, Finding]]) -> dict[str, Any]:
    """Return the event field that lists redacted secrets by memory id and type."""
    return {"redacted": [[id, finding.type] for id, finding in redacted]} if redacted else {}


def refuse_secret_values(columns: Mapping[str, list[Any]]) -> None:
    """Raise PrivacyError if a field other than the text contains a secret.

    Raises it too if ``files`` names a file that usually holds secrets, such as ``.env``.
    """
    for name, values in columns.items():
        refuse_strings(values, f"field {name}")
    for row, paths in enumerate(columns.get("files", ())):
        sensitive = next(filter(is_sensitive, paths or ()), None)
        if sensitive is not None:
            raise PrivacyError(
                f'Row {row}, field files: "{sensitive}" is the name of a file of secrets, and no memory may point to '
                "such a file. Leave it out of files."
            )


# -- The parts of an event that contain the result of a decision, so that folding the event needs no policy --------------


@dataclass(frozen=True)
class Change:
    """Changes to edges and memories in an event's body, in the order of application.

    ``edges`` contains new edges as the columns source and target (memory ids), relation and weight. ``strengthen`` sets
    the weights of edges, and ``unlink`` removes edges; both refer to edges by number. Each item of ``join`` links
    memories (``source``) to nodes of another ``kind`` by name (``target``). Each item of ``set`` assigns values to
    ``columns`` of memories (``ids``): one value for all of them, or a list with one for each. A column whose values are
    lists always has one list for each memory.

    >>> Change(set=(build_values([3, 7], status="superseded"),)).body()
    {'set': [{'ids': [3, 7], 'columns': {'status': 'superseded'}}]}
    """

    edges: Mapping[str, Any] | None = None
    strengthen: Mapping[str, Any] | None = None
    unlink: Sequence[int] = ()
    join: Sequence[Mapping[str, Any]] = ()
    set: Sequence[Mapping[str, Any]] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.edges or self.strengthen or len(self.unlink) or self.join or self.set)

    def __add__(self, other: Change) -> Change:
        """Combine two changes; the parts of this change come first."""
        return Change(
            _joined(self.edges, other.edges),
            _joined(self.strengthen, other.strengthen),
            [*self.unlink, *other.unlink],
            [*self.join, *other.join],
            [*self.set, *other.set],
        )

    def body(self) -> dict[str, Any]:
        """Return the fields of the change for an event body, without empty fields."""
        # Empty fields are left out because each one takes bytes in every event and every export.
        parts: dict[str, Any] = {}
        if self.edges:
            parts["edges"] = dict(self.edges)
        if self.strengthen:
            parts["strengthen"] = dict(self.strengthen)
        if len(self.unlink):
            parts["unlink"] = [int(edge) for edge in self.unlink]
        if self.join:
            parts["join"] = [dict(part) for part in self.join]
        if self.set:
            parts["set"] = [dict(part) for part in self.set]
        return parts


def build_values(ids: Sequence[int], **columns: Any) -> dict[str, Any]:
    """Return an item of ``Change.set`` that assigns ``columns`` to memories."""
    return {"ids": [int(id) for id in ids], "columns": columns}


def build_edges(
    source: Sequence[int],
    target: Sequence[int],
    relation: str | Sequence[str],
    weight: float | Sequence[float],
) -> dict[str, Any]:
    """Return the value of ``Change.edges`` for edges between memory ids.

    ``relation`` and ``weight`` are either one value for all edges, or a list with one for each edge.
    """
    count = len(source)
    relations = [relation] * count if isinstance(relation, str) else list(relation)
    weights = (
        [float(weight)] * count
        if isinstance(weight, int | float)
        else [float(value) for value in weight]
    )
    return {
        "source": [int(id) for id in source],
        "target": [int(id) for id in target],
        "relation": relations,
        "weight": weights,
    }


def build_join(
    source: Sequence[int],
    kind: str,
    target: Sequence[str],
    relation: str,
    weight: float | Sequence[float] = 1.0,
) -> dict[str, Any]:
    """Return an item of ``Change.join``: edges from memories to nodes of one kind.

    ``source`` has the ids of the memories, and ``target`` the names of the nodes.
    """
    weights = (
        [float(weight)] * len(source)
        if isinstance(weight, int | float)
        else [float(value) for value in weight]
    )
    return {
        "source": [int(id) for id in source],
        "kind": kind,
        "target": list(target),
        "relation": relation,
        "weight": weights,
    }


def _joined(
    first: Mapping[str, Any] | None, second: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Concatenate two mappings from a column's name to its values; if one is None or empty, return the other."""
    if not first or not second:
        return first or second
    return {name: [*first[name], *second[name]] for name in first}
