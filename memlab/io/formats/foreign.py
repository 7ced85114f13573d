"""Exports of other tools: memories of mem0 and items of a LangGraph store.

Shapes as of mem0 2.2.1, ``Memory.get_all``: ``{"results": [{"id", "memory", "hash", "created_at", "updated_at",
"metadata", "user_id", "agent_id", "run_id", "actor_id", "role", "attributed_to", "expiration_date"}]}``; its platform
adds ``categories``, ``count``, ``next``, ``previous``. As of LangGraph 1.2.22, ``Item.dict()``: ``{"namespace": [...],
"key", "value": {...}, "created_at", "updated_at"}``; its server returns ``{"items": [...]}``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memlab.errors import DatasetError
from memlab.io.formats.bundle import MEMORIES, Bundle, build_memory_frame
from memlab.io.formats.lines import decode_json, read_lines, read_text
from memlab.io.formats.records import Wrong, check_column_value
from memlab.kernel.schema import KINDS, MEMORY, normalise_word

# Suffixes of JSON Lines.
_LINES = (".jsonl", ".ndjson")
# Fields of every item of a LangGraph store.
_ITEM = {"namespace", "key", "value"}
# Fields under which the tools list their entries.
_LISTS = ("results", "memories", "items")
_TEXTS = ("memory", "content", "text", "data")
"""Fields of an item's value with the text of a memory, from the examples of LangGraph and LangMem."""


_MEM0 = {
    "created": "created_at",
    "changed": "updated_at",
    "valid_until": "expiration_date",
    "session": "run_id",
    "creator": "user_id",
    "speaker": "actor_id",
    "agents": "agent_id",
    "tags": "categories",
}
"""Field of mem0 by column of a memory."""
# The Python package and the server spell the fields differently.
_LANGGRAPH = {"created": ("created_at", "createdAt"), "changed": ("updated_at", "updatedAt")}


class _Row:
    """An entry of another tool's export, and the memory columns built from the entry."""

    def __init__(self, entry: Mapping[str, Any], left_out: Counter[str]) -> None:
        self.entry, self.left_out = dict(entry), left_out
        self.memory: dict[str, Any] = dict.fromkeys(MEMORIES)
        self.memory["uses"] = []

    def take(self, *names: str) -> Any:
        """Remove fields from the entry and return the first value that is not null."""
        values = [self.entry.pop(name, None) for name in names]
        return next((value for value in values if value is not None), None)

    def put(self, column: str, *names: str) -> None:
        """Set a column to the first non-null value of some fields, and remove these fields."""
        self.set(column, self.take(*names), names[0])

    def set(self, column: str, value: Any, field: str) -> None:
        """Check a value, then set a memory column to the value or extend a list column."""
        if value is None:
            return
        storage = MEMORY[column].storage
        try:
            checked = check_column_value(
                column, [value] if storage == "list" and isinstance(value, str) else value
            )
        except Wrong as problem:
            raise Wrong(str(problem), field) from None
        texts = checked if storage == "list" else [checked] if isinstance(checked, str) else []
        if not all(text.strip() for text in texts):
            raise Wrong(f"Expected a text that is not blank, not {value!r:.60}.", field)
        self.memory[column] = (
            [*dict.fromkeys([*(self.memory[column] or ()), *texts])]
            if storage == "list"
            else checked
        )

    def set_kind(self, fields: dict[str, Any]) -> None:
        """Set the kind from a field that names one, and remove the field."""
        for name in ("kind", "type"):
            value = fields.get(name)
            if isinstance(value, str) and normalise_word(value, KINDS) in KINDS:
                self.memory["kind"] = normalise_word(fields.pop(name), KINDS)

    def leave_out(self, fields: Mapping[str, Any], prefix: str = "") -> None:
        """Count the fields, other than empty ones, that have no place in a memory, by name."""
        self.left_out.update(
            f"{prefix}{name}" for name, value in fields.items() if value not in (None, {}, [])
        )


def _fill_from_mem0(row: _Row) -> None:
    """Fill the columns of a memory from an entry of mem0."""
    text, id, metadata = row.take("memory", "data"), row.take("id"), row.take("metadata")
    row.set("text", "" if text is None else text, "memory")
    if not isinstance(id, str | int) or isinstance(id, bool) or not str(id):
        raise Wrong(f"A memory of mem0 must have an id, not {id!r:.60}.", "id")
    row.memory["origin"] = f"mem0:{id}"
    for column, name in _MEM0.items():
        row.put(column, name)
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise Wrong(f"Expected an object, not {metadata!r:.60}.", "metadata")
        rest = dict(metadata)
        for name in ("category", "tags"):
            if isinstance(rest.get(name), str | list):
                row.set("tags", rest.pop(name), f"metadata.{name}")
        row.set_kind(rest)
        row.leave_out(rest, "metadata.")
    row.take("hash", "score")  # values of mem0's own index, which mean nothing in a lab
    row.leave_out(row.entry)


def _fill_from_langgraph(row: _Row) -> None:
    """Fill the columns of a memory from an item of a LangGraph store."""
    key, namespace, value = row.take("key"), row.take("namespace"), row.take("value")
    if not isinstance(key, str) or not key:
        raise Wrong(f"The key of an item must be a text, not {key!r:.60}.", "key")
    if not isinstance(namespace, list) or not all(isinstance(part, str) for part in namespace):
        raise Wrong(f"Expected a list of texts, not {namespace!r:.60}.", "namespace")
    if not isinstance(value, dict) or not value:
        raise Wrong(f"Expected an object with fields, not {value!r:.60}.", "value")
    path = "/".join(namespace)
    row.memory |= {"ref": key, "project": path or None, "origin": f"langgraph:{path}/{key}"}
    for column, names in _LANGGRAPH.items():
        row.put(column, *names)
    fields = dict(value)
    if isinstance(fields.get("content"), dict) and fields["content"]:
        # LangMem keeps {"kind": "Memory", "content": {"content": "..."}}.
        inner = fields.pop("content")
        fields = {**{name: item for name, item in fields.items() if name not in inner}, **inner}
    text = next(
        (name for name in _TEXTS if isinstance(fields.get(name), str) and fields[name].strip()),
        None,
    )
    row.memory["text"] = (
        fields.pop(text) if text else json.dumps(value, ensure_ascii=False, sort_keys=True)
    )
    if text:
        row.set_kind(fields)
        if isinstance(fields.get("tags"), list):
            row.set("tags", fields.pop("tags"), "value.tags")
        row.leave_out(fields, "value.")
    row.take("score")
    row.leave_out(row.entry)


def is_mem0(path: Path, start: str) -> bool:
    """Return whether the first entry of a JSON file is a memory of mem0."""
    first = _first_entry(path, start, "memory")
    return {"memory", "id"} <= first.keys() and not first.keys() >= _ITEM


def is_langgraph(path: Path, start: str) -> bool:
    """Return whether the first entry of a JSON file is an item of a LangGraph store."""
    return _first_entry(path, start, "namespace").keys() >= _ITEM


def _first_entry(path: Path, start: str, key: str) -> Mapping[str, Any]:
    """Return a JSON file's first entry if the file's opening text contains ``key``.

    Returns an empty mapping for any other file.
    """
    suffix = path.suffix.lower()
    if suffix not in (".json", *_LINES) or re.search(rf'"{key}"\s*:', start) is None:
        return {}
    try:
        if suffix == ".json":
            first = next((entry for _, entry in _read_entries(path)), None)
        else:
            first = decode_json(start.lstrip().partition("\n")[0].encode(), path.name, 1)
    except DatasetError:
        # the reader of another format says where the file is wrong
        return {}
    return first if isinstance(first, dict) else {}


def _read_entries(path: Path) -> list[tuple[str, Any]]:
    """Return the entries of a JSON or JSON Lines file with their locations."""
    if path.suffix in _LINES:
        return [
            (f"line {number}", decode_json(line, path.name, number))
            for number, line in read_lines(path)
        ]
    value = decode_json(read_text(path).encode(), path.name, 1)
    if isinstance(value, dict):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), value)
    if not isinstance(value, list):
        raise DatasetError(
            f"{path.name}: Expected a list of memories, or an object with {' or '.join(_LISTS)}."
        )
    return [(f"entry {number}", entry) for number, entry in enumerate(value, 1)]


def read_mem0(path: Path) -> Bundle:
    """Return the memories of a mem0 file as a bundle."""
    return _read_memories(path, "mem0", _fill_from_mem0)


def read_langgraph(path: Path) -> Bundle:
    """Return the items of a LangGraph file as a bundle."""
    return _read_memories(path, "langgraph", _fill_from_langgraph)


def _read_memories(path: Path, format: str, fill: Callable[[_Row], None]) -> Bundle:
    """Build a bundle from a file's entries, each converted by ``fill``."""
    entries = _read_entries(path)
    left_out: Counter[str] = Counter()
    columns: dict[str, list[Any]] = {name: [] for name in MEMORIES}
    for number, (location, entry) in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise DatasetError(
                f"{path.name}, {location}: A memory must be an object, not {type(entry).__name__}."
            )
        row = _Row(entry, left_out)
        try:
            fill(row)
        except Wrong as problem:
            raise problem.at(path.name, location) from None
        row.memory["id"] = number
        for name, values in columns.items():
            values.append(row.memory[name])
    locations = tuple(location for location, _ in entries)
    return Bundle(
        lab=format,
        memories=build_memory_frame(columns),
        source=path.name,
        locations=locations,
        left_out=dict(left_out),
    )
