"""Rows of labelled questions, from a frame, a file or a benchmark, and the ids that they want."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from memlab.errors import InputError, did_you_mean
from memlab.io.formats import UNREADABLE
from memlab.io.formats.labelled import read_json_lines
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.clock import to_micros
from memlab.kernel.state import State, hidden_rows
from memlab.kernel.verbs.core import listed_memories

# The columns of a row, and the names that ``memlab bench`` has for two of them.
_COLUMNS = ("query", "wants", "project", "viewer", "at", "category")
_ALIASES = {"question": "query", "text": "query", "wanted": "wants"}
_DELAY = timedelta(days=1)
"""The time from the end of a conversation to its questions, as in ``memlab.bench_conversations``."""

_COMPARED = 10_000
"""The maximum number of names that are compared with an unknown one; that takes about a second."""


class Row(NamedTuple):
    """One question before its memories are looked up; ``where`` names the row in messages."""

    where: str
    query: str
    wants: tuple[int | str, ...]
    project: str | None = None
    viewer: str | None = None
    at: int | None = None
    category: str = ""
    accepted: bool = True


Key = tuple[str, str | None, str | None, int | None]
"""The query, project, viewer and time of a question, for which there is one set of wanted memories."""


def question_key(values: Mapping[str, Any]) -> Key:
    """Return the key of a question, in which the query has normalized white space."""
    query = " ".join(values["query"].split())
    return query, values.get("project"), values.get("viewer"), values.get("at")


def read_rows(source: object, projects: Collection[str | None]) -> tuple[list[Row], str]:
    """Return the questions in a frame, file or benchmark, and the kind of source.

    ``projects`` are those of the lab. A conversation's questions are asked in the project with its
    name, if there is one.
    """
    # A conversation is recognised by its attribute, because each benchmark has classes of its own.
    if isinstance(source, str | Path):
        return list(_read_records(_read_file(Path(source).expanduser()))), "file"
    if isinstance(source, pl.DataFrame):
        source = source.to_dicts()
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InputError(
            "Questions come from a frame, a file, dicts or labelled conversations, not from "
            f"{describe_value(source)}. Pass query and wants for a single question."
        )
    items = list(source)
    if items and all(hasattr(item, "conversation") for item in items):
        return [row for item in items for row in _conversation_rows(item, projects)], "benchmark"
    return list(_read_records((f"Row {n}", item) for n, item in enumerate(items, 1))), "frame"


def _conversation_rows(labelled: Any, projects: Collection[str | None]) -> Iterator[Row]:
    """Yield the questions of a conversation that have an answer and evidence."""
    conversation = labelled.conversation
    project = conversation.name if conversation.name in projects else None
    for number, question in enumerate(labelled.questions, 1):
        if question.answerable and question.evidence:
            yield Row(
                f"Question {number} of {conversation.name}",
                question.text,
                tuple(question.evidence),
                project,
                at=to_micros(question.at or conversation.end + _DELAY),
                category=str(question.category),
            )


def _read_file(path: Path) -> Iterator[tuple[str, object]]:
    """Yield the rows of a file, each with its position for messages."""
    if path.suffix == ".jsonl":
        for number, record in read_json_lines(path, "a file of questions"):
            yield f"Line {number} of {path.name}", record
        return
    # Values stay strings, because a column of wanted memories may mix ids and texts.
    readers: dict[str, Callable[[Path], pl.DataFrame]] = {
        ".csv": partial(pl.read_csv, infer_schema=False),
        ".parquet": pl.read_parquet,
    }
    if path.suffix not in readers:
        raise InputError(
            f"{path} is not a file of questions. Pass a .csv, .jsonl or .parquet file, or wants= with a query."
        )
    try:
        frame = readers[path.suffix](path)
    except UNREADABLE as error:
        raise InputError(f"The questions in {path} cannot be read: {error}") from None
    for number, record in enumerate(frame.iter_rows(named=True), 1):
        yield f"Row {number} of {path.name}", record


def _read_records(records: Iterable[tuple[str, object]]) -> Iterator[Row]:
    """Yield a question row for each record; raise InputError for an invalid record."""
    for where, record in records:
        if is_dataclass(record) and not isinstance(record, type):
            record = asdict(record)  # a result of memlab.ingest.read_questions
        if not isinstance(record, Mapping):
            raise InputError(
                f"{where} must be a dict with query and wants, not {describe_value(record)}."
            )
        values = {_ALIASES.get(name, name): value for name, value in record.items()}
        for name in values:
            if name not in (*_COLUMNS, "id", "source", "accepted"):
                raise InputError(
                    f'{where}: questions have no column "{name}". {did_you_mean(str(name), _COLUMNS)}'
                )
        query, at = values.get("query"), values.get("at")
        if not isinstance(query, str) or not query.strip():
            raise InputError(f"{where} has no query. Write the text of the question in query.")
        names = {name: values.get(name) or None for name in ("project", "viewer", "category")}
        for name, value in names.items():
            if not isinstance(value, str | None):
                raise InputError(f"{where}: {name} must be a text, not {value!r:.40}.")
        try:
            instant = to_micros(at) if at else None
        except (InputError, TypeError, ValueError):
            raise InputError(f"{where}: at must be a time, not {at!r:.40}.") from None
        yield Row(
            where,
            query,
            read_wants(where, values.get("wants")),
            names["project"],
            names["viewer"],
            instant,
            names["category"] or "",
            values.get("accepted") not in (False, "false"),
        )


def read_wants(where: str, wants: object) -> tuple[int | str, ...]:
    """Return the names of wanted memories: ids, refs or texts; at least one is required."""
    if isinstance(wants, str) and wants.lstrip().startswith("["):
        with suppress(json.JSONDecodeError):  # a text may begin with a bracket
            wants = json.loads(wants)
    if isinstance(wants, pl.DataFrame):
        wants = listed_memories(wants)
    listed = wants if isinstance(wants, list | tuple | set | range) else [wants]
    names: list[int | str] = []
    for item in listed:
        name = getattr(item, "id", item)
        if isinstance(name, bool) or not isinstance(name, int | str | None) or name == "":
            raise InputError(
                f"{where}: {describe_value(name)} in wants names no memory. Pass ids, refs or texts of memories."
            )
        if name is not None:
            names.append(name)
    if not names:
        raise InputError(f"{where} wants no memory. Name at least one by its id, ref or text.")
    return tuple(names)


class Wanted:
    """The memories of a state by id, ref and text."""

    def __init__(self, state: State) -> None:
        self._state = state

    def ids(self, row: Row) -> list[int]:
        """Return the ids of the memories that a question wants, ascending."""
        hidden = None if row.viewer is None else hidden_rows(self._state, row.viewer)
        wanted: set[int] = set()
        for name in row.wants:
            ids = self._by_name(name, row.project)
            ids = [id for id in ids if hidden is None or not hidden[id - 1]]
            if not ids:
                raise InputError(
                    f'{row.where} wants "{str(name)[:80]}", which is not the id, ref or text of a memory'
                    f"{f' in project {row.project}' if row.project else ''}. {self._near(name)}"
                )
            if self._state.names["status"].value_at(ids[0] - 1) == "purged":
                raise InputError(
                    f"{row.where}: memory {ids[0]} was purged. Remove it from the wanted memories."
                )
            wanted.update(ids)
        return sorted(wanted)

    def _by_name(self, name: int | str, project: str | None) -> list[int]:
        """Return the memories with a ref, or else a text, or else an id; ``project`` limits memories by ref or text."""
        # refs of benchmarks are digits too, and the ids of a file are texts
        text = name.strip() if isinstance(name, str) else ""
        for table in self._tables if text else ():
            ids = [
                id for id, own in table.get(text, ()) if project is None or own in (project, None)
            ]
            if ids:
                return ids
        id = int(name) if isinstance(name, int) or (name.isdecimal() and len(name) < 19) else 0
        return [id] if 1 <= id <= self._state.rows else []

    @cached_property
    def _tables(self) -> tuple[dict[str, list[tuple[int, str | None]]], ...]:
        """The ids and projects of memories, by ref and by text, as two dicts."""
        refs: dict[str, list[tuple[int, str | None]]] = {}
        texts: dict[str, list[tuple[int, str | None]]] = {}
        frame = self._state.memories().select("id", "project", "ref", "text")
        for id, project, ref, text in frame.iter_rows():
            for table, name in ((refs, ref), (texts, text)):
                if name:
                    table.setdefault(name.strip(), []).append((id, project))
        return refs, texts

    def _near(self, name: int | str) -> str:
        """Return a sentence that suggests similar names, or else states the range of valid ids."""
        names = [str(own) for table in self._tables for own in table][:_COMPARED]
        near = get_close_matches(str(name), names, n=3)
        if near:
            return f"Did you mean {' or '.join(text[:80] for text in near)}?"
        return f"The ids are 1 to {self._state.rows}." if self._state.rows else "The lab is empty."
