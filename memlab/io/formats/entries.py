"""Entries of JSON, JSON Lines, tables and Python lists, converted to rows."""

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
from memlab.io.formats.columns import TEXTS, Rows
from memlab.io.formats.lines import Lines, Notes, decode_json, decode_line, read_document
from memlab.io.formats.messages import ROLES, is_message, parse_role, unwrap_message
from memlab.io.formats.parquet_limits import UNREADABLE
from memlab.kernel.base.arguments import Called

Entries = Iterator[tuple[int, Mapping[str, Any]]]

# The number of entries that decide the kind of a source: enough to see each column, and few enough
# to hold.
_SAMPLE = 64
# Fields of a message's content in the protocols.
_CONTENTS = ("content", "text", "parts", "value")
# Fields under which services list messages or records, the most specific first.
_LISTS = ("messages", "conversations", "data", "items", "records", "rows", "memories", "results")


def parse_json_lines(read: Lines) -> Entries:
    """Yield each object of JSON Lines with its line number; skip other lines."""
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
            read.notes.skip(number, "line is not an object")


def parse_document(path: Path, notes: Notes) -> tuple[int, Entries]:
    """Read a JSON document, and return its size in bytes and its entries.

    Entries of a list are decoded one at a time, so that a large file is never held as objects. Raises DatasetError with
    line and column of the first error.
    """
    data = read_document(path)
    notes.unit = "entry"
    if not data.strip():
        return len(data), iter(())
    if data.lstrip()[:1] == b"[":
        return len(data), _decode_entries(decode_json(data, path.name, 1, list[msgspec.Raw]), notes)
    document = decode_json(data, path.name, 1)
    if not isinstance(document, dict):
        raise DatasetError(f"{path.name}: expected a list of objects or one conversation.")
    return len(data), _read_object(document, notes)


def _decode_entries(raws: list[msgspec.Raw], notes: Notes) -> Entries:
    """Yield the objects and texts in a JSON list as entries; skip other items."""
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
            notes.skip(number, "entry is not an object")


def _read_object(document: dict[str, Any], notes: Notes) -> Entries:
    """Yield the entries in a JSON object.

    If the object is a conversation or a message, it is the only entry. Otherwise the entries are
    the items of the list in the object.
    """
    if find_conversation(document, notes) is None and not is_message(unwrap_message(document)):
        names = [name for name in _LISTS if isinstance(document.get(name), list)]
        if name := names[0] if names else _find_only_list(document):
            for number, value in enumerate(document[name], 1):
                if isinstance(value, dict):
                    yield number, value
                else:
                    notes.skip(number, "entry is not an object")
            return
    yield 1, document


def _find_only_list(document: Mapping[str, Any]) -> str | None:
    """Return the name of the only list of objects in a JSON object; None if there are several, or a text next to it."""
    names = [
        name
        for name, value in document.items()
        if value and isinstance(value, list) and all(isinstance(item, dict) for item in value)
    ]
    return names[0] if len(names) == 1 and document.keys().isdisjoint(TEXTS) else None


# -- conversations ------------------------------------------------------------------------------------------------


def find_conversation(entry: Mapping[str, Any], notes: Notes) -> list[Mapping[str, Any]] | None:
    """Return the messages of a conversation object in order, or None for another object."""
    tree = entry.get("mapping")
    if isinstance(tree, Mapping):
        return _read_branch(entry, tree, notes)
    for name in ("chat_messages", "messages", "conversations"):
        listed = entry.get(name)
        if isinstance(listed, list):
            messages = [message for message in listed if isinstance(message, Mapping)]
            # an export lists whole conversations, which are entries of their own
            if name != "conversations" or (messages and is_message(messages[0])):
                return messages
    listed = entry.get("output")
    if entry.get("object") == "response" and isinstance(listed, list):
        at = entry.get("created_at")
        return [{"created_at": at, **item} for item in listed if isinstance(item, Mapping)]
    listed = entry.get("data")
    if entry.get("object") == "list" and isinstance(listed, list):
        messages = [message for message in listed if isinstance(message, Mapping)]
        times = [message.get("created_at") for message in messages]
        # a thread's messages are listed newest first
        return (
            sorted(messages, key=lambda message: message["created_at"])
            if all(isinstance(at, int) for at in times)
            else messages
        )
    return None


def _read_branch(
    entry: Mapping[str, Any], tree: Mapping[str, Any], notes: Notes
) -> list[Mapping[str, Any]]:
    """Return the messages on a conversation tree's current branch, from the root."""
    nodes = {str(other): node for other, node in tree.items() if isinstance(node, Mapping)}
    current = entry.get("current_node")
    name = current if isinstance(current, str) and current in nodes else next(reversed(nodes), None)
    path: list[Mapping[str, Any]] = []
    visited: set[str] = set()
    while isinstance(name, str) and name in nodes and name not in visited:
        visited.add(name)
        message = nodes[name].get("message")
        if isinstance(message, Mapping):
            path.append(message)
        name = nodes[name].get("parent")
    omitted = sum(
        isinstance(node.get("message"), Mapping)
        for other, node in nodes.items()
        if other not in visited
    )
    if omitted:
        notes.left_out["message of another branch"] += omitted
    return path[::-1]


def _name_session(
    entry: Mapping[str, Any], messages: Iterable[Mapping[str, Any]], default_session: str
) -> str:
    """Name a conversation by its id or title, or by its first messages."""
    names = (
        entry.get(name)
        for name in ("id", "uuid", "conversation_id", "thread_id", "session_id", "title", "name")
    )
    title = next(
        (str(name) for name in names if isinstance(name, str | int) and str(name).strip()), None
    )
    return title[:200] if title is not None else _name_by_opening(messages, default_session)


def _name_by_opening(messages: Iterable[Mapping[str, Any]], default_session: str) -> str:
    """Name a conversation by a hash of its messages up to the first user message.

    A conversation keeps this name as it grows, and two conversations almost never share one.
    """
    digest = hashlib.blake2b(digest_size=4)
    for message in messages:
        role = next((word for name in ROLES if (word := parse_role(message.get(name)))), "")
        content = next((message[name] for name in _CONTENTS if message.get(name)), "")
        digest.update(msgspec.msgpack.encode((role, content), enc_hook=str))
        if role == "user":
            break
    return f"{default_session}-{digest.hexdigest()}"


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
    """Convert entries to memory rows, each with the location of its entry.

    The first entries decide whether all are messages, conversations or records.
    """
    sample: list[tuple[int, Mapping[str, Any]]] = []
    for numbered in islice(entries, _SAMPLE):
        sample.append(numbered)
        if enough():
            break
    # the notes of the sample are discarded, because its entries are read again below
    talks = [
        talk for _, entry in sample if (talk := find_conversation(entry, Notes(""))) is not None
    ]
    plain_messages = [
        message for _, entry in sample if is_message(message := unwrap_message(entry))
    ]
    conversations = bool(talks) and format != "records"
    # a quarter suffices: transcripts of agents have more lines of bookkeeping than messages
    messages = format == "messages" or (
        format is None and (conversations or 4 * len(plain_messages) >= max(1, len(sample)))
    )
    if messages and not conversations and session is None:
        session = _name_by_opening(plain_messages, default_session)
    rows = Rows(notes, columns, session=session, project=project, messages=messages)
    if conversations:
        rows.settle([unwrap_message(message) for talk in talks for message in talk[:_SAMPLE]])
    else:
        rows.settle(plain_messages if messages else [entry for _, entry in sample])
    kind = "conversations" if conversations else "messages" if messages else "records"
    notes.guessed = {"reader": kind, **notes.guessed}
    for location, entry in chain(sample, entries):
        conversation = find_conversation(entry, notes) if conversations else None
        if conversation is not None:
            name = session or _name_session(entry, conversation, default_session)
            for message in conversation:
                for row in rows.of(location, unwrap_message(message), name):
                    yield location, row
            continue
        plain = unwrap_message(entry) if messages else entry
        if messages and not is_message(plain):
            notes.left_out[f"{notes.unit} of type {str(entry.get('type') or 'unknown')[:40]}"] += 1
            continue
        for row in rows.of(location, plain):
            yield location, row


# -- tables -----------------------------------------------------------------------------------------------------------

# Separators of columns in use.
_DELIMITERS = ",;\t|"
# Rows of a frame that are held as Python objects at a time.
_SLICE = 5_000


def parse_sheet(read: Lines, head: str) -> Entries:
    """Yield the rows of a CSV or TSV file; the first line names the columns.

    The separator is the most frequent one in the first line. A row with more cells than names, or with a cell of more than
    131,072 characters (the limit of Python's ``csv``), is skipped to its end. Cells are read as texts;
    formulas are never evaluated.
    """
    first = head.partition("\n")[0]
    counts = Counter(letter for letter in first if letter in _DELIMITERS)
    delimiter = max(_DELIMITERS, key=lambda letter: counts[letter])
    read.notes.guessed["separator"] = {"\t": "tab"}.get(delimiter, delimiter)
    # the reader asks for several lines per row, so that a row's number is that of its first line
    current, quotes = [0], [0]

    def texts() -> Iterator[str]:
        """Yield decoded lines; record the current line's number and count the quotes of its row."""
        for number, line in read:
            current[0] = number
            text = decode_line(line, read.notes) + "\n"
            quotes[0] += text.count('"')
            yield text

    lines = texts()
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    names: list[str] = []
    while True:
        first_line, quotes[0] = current[0] + 1, 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # The next line may be in the middle of a quoted cell, whose lines are no rows.
            while quotes[0] % 2 and next(lines, None) is not None:
                pass
            read.notes.skip(
                first_line,
                "row is not CSV",
                "a quote is not closed" if quotes[0] % 2 else str(error),
            )
            continue
        if not any(cells):
            continue
        if not names:
            names = [cell.strip() or f"column {number}" for number, cell in enumerate(cells, 1)]
            if len(set(names)) < len(names):
                raise DatasetError(
                    f"{read.notes.source}: two columns have the name {_quote_repeated(names)}. Rename one of them."
                )
        elif len(cells) > len(names):
            read.notes.skip(first_line, "more cells than columns", f"{len(cells)} of {len(names)}")
        else:
            yield first_line, dict(zip(names, cells, strict=False))


def _quote_repeated(names: list[str]) -> str:
    """Return the name that occurs most often, in quotes."""
    return f'"{Counter(names).most_common(1)[0][0]}"'


def is_pandas(x: object) -> bool:
    """Return whether an object is a pandas frame; pandas itself is not imported."""
    return type(x).__module__.partition(".")[0] == "pandas" and hasattr(x, "columns")


def read_frame(frame: pl.DataFrame | pl.LazyFrame) -> Entries:
    """Yield the rows of a Polars frame with their row numbers, in batches of 5,000."""
    lazy, start = frame.lazy(), 0
    while True:
        try:
            rows = lazy.slice(start, _SLICE).collect().rows(named=True)
        # ValueError and OverflowError: a time that Python has no date for
        except (*UNREADABLE, ValueError, OverflowError) as error:
            raise DatasetError(
                f"The rows from {start + 1:,} on cannot be read: {error}. Correct or omit them."
            ) from None
        yield from enumerate(rows, start + 1)
        if len(rows) < _SLICE:
            return
        start += _SLICE


def read_pandas(frame: Any) -> Entries:
    """Yield the rows of a pandas frame; missing values are None."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise InputError(
            f"Two columns of the frame have the name {_quote_repeated(names)}. Rename one of them."
        )
    columns = [
        Called(lambda index=index: frame.iloc[:, index].tolist(), "load")()
        for index in range(len(names))
    ]
    for number, cells in enumerate(zip(*columns, strict=True), 1):
        yield number, {name: _clean_cell(cell) for name, cell in zip(names, cells, strict=True)}


def _clean_cell(cell: Any) -> Any:
    """Return a pandas cell, or None for a missing value."""
    return (
        None
        if cell is None or type(cell).__name__ in ("NaTType", "NAType") or cell != cell
        else cell
    )
