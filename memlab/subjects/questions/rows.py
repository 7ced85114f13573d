"""Rows of labelled questions, from a frame, a file or a benchmark, and the ids that they want."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from memlab.errors import InputError, MemlabError, did_you_mean
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.clock import to_micros
from memlab.kernel.state import State, hidden_rows

__all__ = ["Row", "Wanted", "conversation_rows", "question_key", "read_rows"]

# The columns of a row, and the names that files of ``memlab bench`` have for two of them.
_COLUMNS = ("query", "wants", "project", "viewer", "at", "category")
_ALIASES = {"question": "query", "wanted": "wants"}
# Columns of ``lab.questions.frame`` that get new values.
_IGNORED = frozenset(("id", "source"))

_DELAY = timedelta(days=1)
"""The time from the end of a conversation to its questions, as in ``memlab.bench_conversations``."""

_COMPARED = 10_000
"""The maximum number of names that are compared with an unknown one; that takes about a second."""

_SUFFIXES = (".csv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Row:
    """One question before its memories are looked up; ``where`` names the row in messages."""

    where: str
    query: str
    wants: tuple[int | str, ...]
    project: str | None = None
    viewer: str | None = None
    at: int | None = None
    category: str = ""
    accepted: bool = True


class _Key(NamedTuple):
    """The parts of a question that must not occur with different wanted memories."""

    query: str
    project: str | None
    viewer: str | None
    at: int | None


def question_key(row: Mapping[str, Any] | Row) -> _Key:
    """Return the key of a question, with single spaces in the query."""
    values = vars(row) if isinstance(row, Row) else row
    query = " ".join(values["query"].split())
    return _Key(query, values.get("project"), values.get("viewer"), values.get("at"))


def read_rows(source: object, projects: Iterable[str | None]) -> tuple[list[Row], str]:
    """Return the questions of a frame, a file or a benchmark, and the word for their source.

    ``projects`` are those of the lab. A conversation's questions are asked in the project with its
    name, if there is one.
    """
    if isinstance(source, str | Path):
        return list(_read_records(_read_file(Path(source).expanduser()))), "file"
    if isinstance(source, pl.DataFrame):
        records = enumerate(source.iter_rows(named=True), 1)
        return list(_read_records((f"Row {number}", record) for number, record in records)), "frame"
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InputError(
            "Questions come from a frame, a file, dicts or labelled conversations, not from "
            f"{describe_value(source)}. Pass query and wants for a single question."
        )
    items, known = list(source), frozenset(projects)
    if items and all(hasattr(item, "conversation") for item in items):
        return [row for item in items for row in conversation_rows(item, known)], "benchmark"
    return list(_read_records(_list_records(items))), "frame"


def _list_records(items: Iterable[object]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each dict, or each result of ``memlab.ingest.read_questions`` as a dict."""
    for number, item in enumerate(items, 1):
        if isinstance(item, Mapping):
            yield f"Row {number}", item
        elif hasattr(item, "wanted") and hasattr(item, "text"):
            names = ("project", "at", "category")
            rest = {name: getattr(item, name, None) for name in names}
            yield f"Row {number}", {"query": item.text, "wants": list(item.wanted), **rest}
        else:
            raise InputError(
                f"Row {number} of the questions is {describe_value(item)}. Pass dicts with query and wants."
            )


def conversation_rows(labelled: Any, projects: frozenset[str | None]) -> Iterator[Row]:
    """Yield the answerable questions of a conversation that have evidence."""
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


def _read_file(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a file, each with its place for messages."""
    if path.suffix not in _SUFFIXES:
        raise InputError(
            f"{path} is not a file of questions. Pass a .csv, .jsonl or .parquet file, or wants= with a query."
        )
    try:
        if path.suffix == ".jsonl":
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if line.strip():
                    record = json.loads(line)
                    if not isinstance(record, dict):
                        raise InputError(
                            f"Line {number} of {path} is not a JSON object. Write one."
                        )
                    yield f"Line {number} of {path.name}", record
            return
        # Values stay strings, because a column of wanted memories may mix ids and texts.
        frame = (
            pl.read_parquet(path)
            if path.suffix == ".parquet"
            else pl.read_csv(path, infer_schema=False)
        )
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        if isinstance(error, MemlabError):
            raise
        raise InputError(f"The questions in {path} cannot be read: {error}") from None
    for number, record in enumerate(frame.iter_rows(named=True), 1):
        yield f"Row {number} of {path.name}", record


def _read_records(records: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Row]:
    """Yield a row for each record; raise InputError for a wrong column or value."""
    for where, record in records:
        values = {_ALIASES.get(name, name): value for name, value in record.items()}
        for name in values:
            if name not in {*_COLUMNS, *_IGNORED, "accepted"}:
                raise InputError(
                    f'{where}: questions have no column "{name}". {did_you_mean(name, _COLUMNS)}'
                )
        query, at = values.get("query"), values.get("at")
        if not isinstance(query, str) or not query.strip():
            raise InputError(f"{where} has no query. Write the text of the question in query.")
        for name in ("project", "viewer", "category"):
            if not isinstance(values.get(name), str | None):
                raise InputError(f"{where}: {name} must be a text, not {values[name]!r:.40}.")
        try:
            instant = None if at is None or at == "" else to_micros(at)
        except (InputError, TypeError, ValueError):
            raise InputError(f"{where}: at must be a time, not {at!r:.40}.") from None
        yield Row(
            where,
            query,
            read_wants(where, values.get("wants")),
            values.get("project") or None,
            values.get("viewer") or None,
            instant,
            values.get("category") or "",
            values.get("accepted") not in (False, "false"),
        )


def read_wants(where: str, wants: object) -> tuple[int | str, ...]:
    """Return the names of wanted memories: ids, refs or texts, of which there is at least one."""
    if isinstance(wants, str) and wants.lstrip().startswith("["):
        with suppress(json.JSONDecodeError):  # a text may begin with a bracket
            wants = json.loads(wants)
    listed = list(wants) if isinstance(wants, list | tuple | set | range) else [wants]
    names = [getattr(item, "id", item) for item in listed if item is not None]
    if not names:
        raise InputError(f"{where} wants no memory. Name at least one by its id, ref or text.")
    for name in names:
        if isinstance(name, bool) or not isinstance(name, int | str) or name == "":
            raise InputError(
                f"{where} wants {describe_value(name)}. Pass ids, refs or texts of memories."
            )
    return tuple(names)


class Wanted:
    """The memories of a state by id, ref and text."""

    def __init__(self, state: State) -> None:
        self._state = state

    def ids(self, row: Row) -> list[int]:
        """Return the ids that a row wants, ascending; raise InputError if one is missing."""
        hidden = None if row.viewer is None else hidden_rows(self._state, row.viewer)
        wanted: set[int] = set()
        for name in row.wants:
            ids = self._by_name(name, row.project)
            ids = [id for id in ids if hidden is None or not hidden[id - 1]]
            if not ids:
                raise InputError(
                    f'{row.where} wants "{str(name)[:80]}", which is no id, ref or text of a memory'
                    f"{f' in project {row.project}' if row.project else ''}. {self._near(name)}"
                )
            if self._state.names["status"].value_at(ids[0] - 1) == "purged":
                raise InputError(
                    f"{row.where}: memory {ids[0]} was purged. Remove it from the wanted memories."
                )
            wanted.update(ids)
        return sorted(wanted)

    def _by_name(self, name: int | str, project: str | None) -> list[int]:
        """Return the ids that an id, a ref or a text names, in a project or in none."""
        id = int(name) if isinstance(name, int) or (name.isdecimal() and len(name) < 19) else 0
        if 1 <= id <= self._state.rows:
            return [id]
        for table in self._tables if isinstance(name, str) else ():
            ids = [
                id
                for id, own in table.get(name.strip(), ())
                if project is None or own in (project, None)
            ]
            if ids:
                return ids
        return []

    @cached_property
    def _tables(self) -> tuple[dict[str, list[tuple[int, str | None]]], ...]:
        """The ids and projects of memories by ref, and by text."""
        refs: dict[str, list[tuple[int, str | None]]] = {}
        texts: dict[str, list[tuple[int, str | None]]] = {}
        frame = self._state.memories().select("id", "project", "ref", "text")
        for id, project, ref, text in frame.iter_rows():
            for table, name in ((refs, ref), (texts, text)):
                if name:
                    table.setdefault(name.strip(), []).append((id, project))
        return refs, texts

    def _near(self, name: int | str) -> str:
        """Return a sentence with the names that are similar to an unknown one."""
        known = [str(own) for table in self._tables for own in table][:_COMPARED]
        near = get_close_matches(str(name), known, n=3)
        if near:
            return f"Did you mean {' or '.join(text[:80] for text in near)}?"
        return f"The ids are 1 to {self._state.rows}." if self._state.rows else "The lab is empty."
