"""Entries of JSON, JSON Lines, tables and Python's own lists, as messages, conversations or records."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from memlab.errors import DatasetError, InputError
from memlab.io.formats.columns import Rows
from memlab.io.formats.lines import Lines, Notes, decode_json, decode_line, read_document
from memlab.io.formats.messages import ROLES, is_message, parse_role, unwrap_message
from memlab.kernel.base.arguments import Called

__all__ = [
    "Entries",
    "convert_entries",
    "find_conversation",
    "is_pandas",
    "parse_document",
    "parse_json_lines",
    "parse_sheet",
    "read_frame",
    "read_pandas",
]

Entries = Iterator[tuple[int, Mapping[str, Any]]]

_SAMPLE = 64
_SAMPLE_BYTES = 4 << 20
_CONTENTS = ("content", "text", "parts", "value")
_LISTS = ("messages", "conversations", "data", "items", "records", "rows", "memories", "results")


def parse_json_lines(read: Lines) -> Entries:
    """Each line of JSON Lines with its number; what is no object is skipped."""
    decode = msgspec.json.Decoder().decode
    for number, line in read:
        if not line or line.isspace():
            continue
        try:
            value = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            read.notes.skip(number, "line is not JSON", str(error))
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            read.notes.skip(number, "line is no object")


def parse_document(path: Path, notes: Notes) -> tuple[int, Entries]:
    """How many bytes one JSON document has, and its entries. DatasetError with line and column of what is wrong.

    Entries of a list are decoded one by one, so that a large export costs its bytes and not its objects.
    """
    data = read_document(path)
    notes.unit = "entry"
    if not data.strip():
        return len(data), iter(())
    if data.lstrip()[:1] == b"[":
        return len(data), _decode_entries(decode_json(data, path.name, 1, list[msgspec.Raw]), notes)
    found = decode_json(data, path.name, 1)
    if not isinstance(found, dict):
        raise DatasetError(f"{path.name}: a list of objects or one conversation stands here.")
    return len(data), _read_object(found, notes)


def _decode_entries(raws: list[msgspec.Raw], notes: Notes) -> Entries:
    for number, raw in enumerate(raws, 1):
        try:
            value = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            notes.skip(number, "entry is not JSON", str(error))
            continue
        if isinstance(value, dict):
            yield number, value
        elif isinstance(value, str):
            yield number, {"text": value}
        else:
            notes.skip(number, "entry is no object")


def _read_object(found: dict[str, Any], notes: Notes) -> Entries:
    """The entries of an object: itself, if it is a conversation or a message, or those of the list in it."""
    if find_conversation(found, notes) is None and not is_message(unwrap_message(found)):
        listed = next((found[name] for name in _LISTS if isinstance(found.get(name), list)), None)
        if listed is not None:
            for number, value in enumerate(listed, 1):
                if isinstance(value, dict):
                    yield number, value
                else:
                    notes.skip(number, "entry is no object")
            return
    yield 1, found


# -- conversations ------------------------------------------------------------------------------------------------


def find_conversation(entry: Mapping[str, Any], notes: Notes) -> list[Mapping[str, Any]] | None:
    """The messages of a conversation that lie in one object, in order; None for what is none."""
    tree = entry.get("mapping")
    if isinstance(tree, Mapping):
        return _read_branch(entry, tree, notes)
    for name in ("chat_messages", "messages"):
        listed = entry.get(name)
        if isinstance(listed, list):
            return [one for one in listed if isinstance(one, Mapping)]
    listed = entry.get("conversations")
    if (
        isinstance(listed, list)
        and listed
        and isinstance(listed[0], Mapping)
        and is_message(listed[0])
    ):
        return [one for one in listed if isinstance(one, Mapping)]
    listed = entry.get("data")
    if entry.get("object") == "list" and isinstance(listed, list):
        found = [one for one in listed if isinstance(one, Mapping)]
        times = [one.get("created_at") for one in found]
        # a thread's messages are listed newest first
        return (
            sorted(found, key=lambda one: one["created_at"])
            if all(isinstance(at, int) for at in times)
            else found
        )
    return None


def _read_branch(
    entry: Mapping[str, Any], tree: Mapping[str, Any], notes: Notes
) -> list[Mapping[str, Any]]:
    """The branch of a tree of messages that its reader saw last, from the root on."""
    nodes = {str(name): node for name, node in tree.items() if isinstance(node, Mapping)}
    current = entry.get("current_node")
    here = current if isinstance(current, str) and current in nodes else next(reversed(nodes), None)
    path: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while isinstance(here, str) and here in nodes and here not in seen:
        seen.add(here)
        message = nodes[here].get("message")
        if isinstance(message, Mapping):
            path.append(message)
        here = nodes[here].get("parent")
    others = sum(
        isinstance(node.get("message"), Mapping) for name, node in nodes.items() if name not in seen
    )
    if others:
        notes.left_out["message of another branch"] += others
    return path[::-1]


def _name_session(
    entry: Mapping[str, Any], messages: Iterable[Mapping[str, Any]], default_session: str
) -> str:
    """What a conversation is called: its id, its title, or by how it begins."""
    names = (
        entry.get(name)
        for name in ("id", "uuid", "conversation_id", "thread_id", "session_id", "title", "name")
    )
    found = next(
        (str(name) for name in names if isinstance(name, str | int) and str(name).strip()), None
    )
    return found[:200] if found is not None else _name_by_opening(messages, default_session)


def _name_by_opening(messages: Iterable[Mapping[str, Any]], default_session: str) -> str:
    """A name that a conversation keeps as it grows, and that no other has: by what comes before its first answer."""
    made = hashlib.blake2b(digest_size=4)
    for message in messages:
        role = next((word for name in ROLES if (word := parse_role(message.get(name)))), "")
        content = next((message[name] for name in _CONTENTS if message.get(name)), "")
        made.update(msgspec.msgpack.encode((role, content), enc_hook=str))
        if role == "user":
            break
    return f"{default_session}-{made.hexdigest()}"


# -- rows ---------------------------------------------------------------------------------------------------------


def convert_entries(
    entries: Entries,
    notes: Notes,
    columns: Mapping[str, str | None],
    *,
    session: str | None,
    project: str | None,
    default_session: str,
    format: str | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of entries, each of them a message, a conversation or a record: what the first of them are decides."""
    sample: list[tuple[int, Mapping[str, Any]]] = []
    for one in islice(entries, _SAMPLE):
        sample.append(one)
        if enough():
            break
    talks = [
        talk for _, entry in sample if (talk := find_conversation(entry, Notes(""))) is not None
    ]
    said = [found for _, entry in sample if is_message(found := unwrap_message(entry))]
    conversations = bool(talks) and format != "records"
    messages = format == "messages" or (
        format is None and (conversations or 4 * len(said) >= max(1, len(sample)))
    )
    if messages and not conversations and session is None:
        session = _name_by_opening(said, default_session)
    rows = Rows(notes, columns, session=session, project=project, messages=messages)
    if conversations:
        rows.settle([unwrap_message(one) for talk in talks for one in talk[:_SAMPLE]])
    else:
        rows.settle(said if messages else [entry for _, entry in sample])
    kind = "conversations" if conversations else "messages" if messages else "records"
    notes.guessed = {"reader": kind, **notes.guessed}
    for place, entry in chain(sample, entries):
        talk = find_conversation(entry, notes) if conversations else None
        if talk is not None:
            named = session or _name_session(entry, talk, default_session)
            for message in talk:
                for row in rows.of(place, unwrap_message(message), named):
                    yield place, row
            continue
        found = unwrap_message(entry) if messages else entry
        if messages and not is_message(found):
            notes.left_out[f"{notes.unit} of type {str(entry.get('type') or 'unknown')[:40]}"] += 1
            continue
        for row in rows.of(place, found):
            yield place, row


# -- tables -----------------------------------------------------------------------------------------------------------

_DELIMITERS = ",;\t|"
_SLICE = 5_000


def parse_sheet(read: Lines, head: str) -> Entries:
    """The rows of a file of comma-separated values under the names of its first line, by their line numbers.

    The separator is what stands most often in that line. A cell has at most 131,072 characters (the limit of Python's
    ``csv``); a row that has more, or more cells than there are names, is skipped. A cell is a text and never a formula.
    """
    first = head.partition("\n")[0]
    counts = Counter(letter for letter in first if letter in _DELIMITERS)
    delimiter = max(_DELIMITERS, key=lambda letter: counts[letter])
    read.notes.guessed["separator"] = {"\t": "tab"}.get(delimiter, delimiter)
    numbers = [0]

    def texts() -> Iterator[str]:
        for number, line in read:
            numbers[0] = number
            yield decode_line(line, read.notes) + "\n"

    parsed = csv.reader(texts(), delimiter=delimiter, skipinitialspace=True)
    names: list[str] = []
    while True:
        begins = numbers[0] + 1
        try:
            cells = next(parsed)
        except StopIteration:
            return
        except csv.Error as error:
            read.notes.skip(begins, "row is no CSV", str(error))
            continue
        if not any(cells):
            continue
        if not names:
            names = [cell.strip() or f"column {place}" for place, cell in enumerate(cells, 1)]
            if len(set(names)) < len(names):
                raise DatasetError(
                    f"{read.notes.source}: two columns are called {_quote_repeated(names)}."
                )
        elif len(cells) > len(names):
            read.notes.skip(begins, "more cells than columns", f"{len(cells)} of {len(names)}")
        else:
            yield begins, dict(zip(names, cells, strict=False))


def _quote_repeated(names: list[str]) -> str:
    return f'"{Counter(names).most_common(1)[0][0]}"'


def is_pandas(x: object) -> bool:
    """Whether it is a frame of pandas, asked without importing it."""
    return type(x).__module__.partition(".")[0] == "pandas" and hasattr(x, "columns")


def read_frame(frame: pl.DataFrame | pl.LazyFrame) -> Entries:
    """The rows of a frame by their numbers, a slice at a time."""
    lazy, start = frame.lazy(), 0
    while True:
        try:
            part = lazy.slice(start, _SLICE).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DatasetError(f"The frame cannot be read: {error}") from None
        yield from enumerate(part.iter_rows(named=True), start + 1)
        if len(part) < _SLICE:
            return
        start += _SLICE


def read_pandas(frame: Any) -> Entries:
    """The rows of a frame of pandas as dicts; what is missing is None."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise InputError(f"Two columns of the frame are called {_quote_repeated(names)}.")
    columns = [
        Called(lambda place=place: frame.iloc[:, place].tolist(), "load")()
        for place in range(len(names))
    ]
    for number, cells in enumerate(zip(*columns, strict=True), 1):
        yield number, {name: _clean_cell(cell) for name, cell in zip(names, cells, strict=True)}


def _clean_cell(cell: Any) -> Any:
    return (
        None
        if cell is None or type(cell).__name__ in ("NaTType", "NAType") or cell != cell
        else cell
    )
