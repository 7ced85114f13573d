"""Labels of one's own: a file of questions, and which memories of a lab they want."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memlab.errors import DatasetError, did_you_mean
from memlab.io.formats.benchmarks.files import Place, lines, named, opened
from memlab.kernel.base.arguments import checked

__all__ = ["WantedMemories", "read_questions"]

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
    rows = lines(path, "a file of questions") if path.suffix == ".jsonl" else _csv_rows(path)
    merged: dict[tuple[str, str | None], list[Any]] = {}
    for number, value in rows:
        if number > _MOST:
            raise DatasetError(f"{path} has more than {_MOST:,} rows: split it.")
        place = Place(path, f"line {number}")
        row = place.record(value, "(itself)")
        _known(row, place)
        project = place.text(row, "project", "", required=False) or None
        key = place.text(row, "question", ""), project
        found = merged.setdefault(key, [[], _time(row, place), place.text(row, "category", "", required=False)])
        found[0] += _wanted(row, place)
    if not merged:
        raise DatasetError(f'{path} holds no question. A row: {{"question": "Where is the key?", "wanted": [17]}}')
    return tuple(
        WantedMemories(text, tuple(dict.fromkeys(wanted)), project, at, category)
        for (text, project), (wanted, at, category) in merged.items()
    )


def _csv_rows(path: Path) -> Iterator[tuple[int, object]]:
    with opened(path, "a file of questions") as file:
        try:
            reader = csv.DictReader(file, strict=True)
            for row in reader:
                if None in row:
                    raise DatasetError(f"{path}, line {reader.line_num}: more fields than the first line names.")
                yield reader.line_num, {name: value for name, value in row.items() if value}
        except csv.Error as error:
            raise DatasetError(f"{path}, line {reader.line_num}: not CSV: {error}.") from None


def _known(row: dict[str, Any], place: Place) -> None:
    for name in row:
        if name not in _COLUMNS:
            raise place.error(str(name)[:40], f"there is no such field. {did_you_mean(str(name)[:40], _COLUMNS)}")


def _wanted(row: dict[str, Any], place: Place) -> Iterator[str]:
    for field in _WANTED:
        given = row.get(field)
        for one in given if isinstance(given, list) else () if given is None else (given,):
            if isinstance(one, bool) or not isinstance(one, str | int):
                raise place.error(field, f"expected an id, a ref or a text of a memory, found {named(one)}.")
            yield str(one).strip()


def _time(row: dict[str, Any], place: Place) -> datetime | None:
    given = place.text(row, "at", "", required=False)
    return place.time(given, "at", "2026-03-01T09:00") if given else None
