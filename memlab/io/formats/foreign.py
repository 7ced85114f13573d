"""What other tools export: the memories of mem0, the items of a LangGraph store.

Shapes as their packages give them. mem0 2.2.1, ``Memory.get_all``: ``{"results": [{"id", "memory", "hash",
"created_at", "updated_at", "metadata", "user_id", "agent_id", "run_id", "actor_id", "role", "attributed_to",
"expiration_date"}]}``; its platform adds ``categories``, ``count``, ``next``, ``previous``. LangGraph 1.2.22,
``Item.dict()``: ``{"namespace": [...], "key", "value": {...}, "created_at", "updated_at"}``, and ``{"items":
[...]}`` as its server answers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memlab.errors import DatasetError, InputError
from memlab.io.formats.bundle import MEMORIES, Bundle, memory_frame
from memlab.io.formats.lines import json_of, lines_of, text_of
from memlab.io.formats.records import time_of
from memlab.kernel.schema import KINDS, spelled

__all__ = ["is_langgraph", "is_mem0", "read_langgraph", "read_mem0"]

_LINES = (".jsonl", ".ndjson")
_ITEM = {"namespace", "key", "value"}
_LISTS = ("results", "memories", "items")
_TEXTS = ("memory", "content", "text", "data")
"""The keys under which an item's value says what is remembered, as their own examples have it."""


class _Row:
    """One entry of such a file as it becomes a memory, and what of it found no place."""

    def __init__(self, source: str, place: str, entry: Mapping[str, Any], left_out: Counter[str]) -> None:
        self.source, self.place, self.entry, self.left_out = source, place, dict(entry), left_out
        self.memory: dict[str, Any] = dict.fromkeys(MEMORIES)
        self.memory["uses"] = []

    def error(self, field: str, problem: str) -> DatasetError:
        return DatasetError(f"{self.source}, {self.place}, field {field}: {problem}")

    def take(self, *names: str) -> Any:
        """The first of these that is there, taken out."""
        found = None
        for name in names:
            value = self.entry.pop(name, None)
            found = value if found is None else found
        return found

    def text(self, column: str, *names: str, required: bool = False) -> None:
        value = self.take(*names)
        if value is None and not required:
            return
        if not isinstance(value, str) or not value.strip():
            raise self.error(names[0], f"A text stands here, not {value!r:.60}.")
        self.memory[column] = value

    def time(self, column: str, *names: str) -> None:
        value = self.take(*names)
        if value is None:
            return
        try:
            self.memory[column] = time_of(value)
        except InputError as problem:
            raise self.error(names[0], str(problem)) from None

    def tags(self, values: object, field: str) -> None:
        given = [values] if isinstance(values, str) else values
        if given is None:
            return
        if not isinstance(given, list) or not all(isinstance(item, str) and item for item in given):
            raise self.error(field, f"Labels are texts, not {values!r:.60}.")
        self.memory["tags"] = list(dict.fromkeys([*(self.memory["tags"] or ()), *given])) or None

    def kind(self, value: object) -> bool:
        if isinstance(value, str) and spelled(value, KINDS) in KINDS:
            self.memory["kind"] = spelled(value, KINDS)
            return True
        return False

    def rest(self, entry: Mapping[str, Any], prefix: str = "") -> None:
        for name, value in entry.items():
            if value is not None and value != {} and value != []:
                self.left_out[f"{prefix}{name}"] += 1


def _mem0(row: _Row) -> None:
    row.text("text", "memory", "data", required=True)
    id = row.take("id")
    if not isinstance(id, str | int) or isinstance(id, bool) or not str(id):
        raise row.error("id", f"A memory of mem0 has an id, not {id!r:.60}.")
    row.memory["origin"] = f"mem0:{id}"
    row.time("created", "created_at")
    row.time("changed", "updated_at")
    row.time("valid_until", "expiration_date")
    row.text("session", "run_id")
    row.text("creator", "user_id")
    row.text("speaker", "actor_id")
    agent = row.take("agent_id")
    if agent is not None:
        if not isinstance(agent, str) or not agent:
            raise row.error("agent_id", f"A text stands here, not {agent!r:.60}.")
        row.memory["agents"] = [agent]
    row.tags(row.take("categories"), "categories")
    metadata = row.take("metadata")
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise row.error("metadata", f"An object stands here, not {metadata!r:.60}.")
        left = dict(metadata)
        for name in ("category", "tags"):
            if isinstance(left.get(name), str | list):
                row.tags(left.pop(name), f"metadata.{name}")
        for name in ("kind", "type"):
            if row.kind(left.get(name)):
                left.pop(name)
        row.rest(left, "metadata.")
    row.take("hash", "score")  # of their index, which is theirs
    row.rest(row.entry)


def _langgraph(row: _Row) -> None:
    key, namespace, value = row.take("key"), row.take("namespace"), row.take("value")
    if not isinstance(key, str) or not key:
        raise row.error("key", f"An item has a key, a text, not {key!r:.60}.")
    if not isinstance(namespace, list) or not all(isinstance(part, str) for part in namespace):
        raise row.error("namespace", f"A list of texts stands here, not {namespace!r:.60}.")
    if not isinstance(value, dict) or not value:
        raise row.error("value", f"An object stands here, not {value!r:.60}.")
    path = "/".join(namespace)
    row.memory["ref"] = key
    row.memory["project"] = path or None
    row.memory["origin"] = f"langgraph:{path}/{key}"
    row.time("created", "created_at", "createdAt")
    row.time("changed", "updated_at", "updatedAt")
    fields = dict(value)
    if isinstance(fields.get("content"), dict) and fields["content"]:
        # LangMem keeps {"kind": "Memory", "content": {"content": "..."}}.
        inner = fields.pop("content")
        fields = {**{name: item for name, item in fields.items() if name not in inner}, **inner}
    text = next((name for name in _TEXTS if isinstance(fields.get(name), str) and fields[name].strip()), None)
    row.memory["text"] = fields.pop(text) if text else json.dumps(value, ensure_ascii=False, sort_keys=True)
    if text:
        for name in ("kind", "type"):
            if row.kind(fields.get(name)):
                fields.pop(name)
        if isinstance(fields.get("tags"), list):
            row.tags(fields.pop("tags"), "value.tags")
        row.rest(fields, "value.")
    row.take("score")
    row.rest(row.entry)


def is_mem0(path: Path, head: str) -> bool:
    """Return whether the first entry of a JSON file is a memory of mem0."""
    first = _first_entry(path, head, "memory")
    return {"memory", "id"} <= first.keys() and not first.keys() >= _ITEM


def is_langgraph(path: Path, head: str) -> bool:
    """Return whether the first entry of a JSON file is an item of a LangGraph store."""
    return _first_entry(path, head, "namespace").keys() >= _ITEM


def _first_entry(path: Path, head: str, key: str) -> Mapping[str, Any]:
    """Return the first entry of a file that names ``key`` near its beginning; an empty one of any other file."""
    suffix = path.suffix.lower()
    if suffix not in (".json", *_LINES) or re.search(rf'"{key}"\s*:', head) is None:
        return {}
    if suffix == ".json":
        first = next((entry for _, entry in _entries_of(path)), None)
    else:
        try:
            first = json_of(head.lstrip().partition("\n")[0].encode(), path.name, 1)
        except DatasetError:
            return {}
    return first if isinstance(first, dict) else {}


def _entries_of(path: Path) -> list[tuple[str, Any]]:
    """What a JSON file lists, or each line of a file of JSON lines, with its place."""
    if path.suffix in _LINES:
        return [(f"line {number}", json_of(line, path.name, number)) for number, line in lines_of(path)]
    value = json_of(text_of(path).encode(), path.name, 1)
    if isinstance(value, dict):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), value)
    if not isinstance(value, list):
        raise DatasetError(f"{path.name}: A list of memories stands here, or an object with {' or '.join(_LISTS)}.")
    return [(f"entry {number}", entry) for number, entry in enumerate(value, 1)]


def read_mem0(path: Path) -> Bundle:
    """Return the memories of a file of mem0."""
    return _read(path, "mem0", _mem0)


def read_langgraph(path: Path) -> Bundle:
    """Return the items of a file of LangGraph as memories."""
    return _read(path, "langgraph", _langgraph)


def _read(path: Path, format: str, fill: Callable[[_Row], None]) -> Bundle:
    entries = _entries_of(path)
    left_out: Counter[str] = Counter()
    columns: dict[str, list[Any]] = {name: [] for name in MEMORIES}
    for number, (place, entry) in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise DatasetError(f"{path.name}, {place}: A memory is an object, not {type(entry).__name__}.")
        row = _Row(path.name, place, entry, left_out)
        fill(row)
        row.memory["id"] = number
        for name, values in columns.items():
            values.append(row.memory[name])
    return Bundle(
        lab=format,
        memories=memory_frame(columns),
        source=path.name,
        places=tuple(place for place, _ in entries),
        left_out=dict(left_out),
    )
