"""JSON Lines: one record a line, ``{"memory": {...}}``; the first line is the header."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from memlab.errors import DatasetError
from memlab.io.formats.exports.bundle import Bundle
from memlab.io.formats.exports.records import Record, bundle_from, fields_of, records_of
from memlab.io.formats.exports.text import json_of, lines_of

__all__ = ["is_export", "read_jsonl", "write_jsonl"]


def is_export(path: Path, head: str) -> bool:
    """Return whether a file begins with the header of an export."""
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        return False
    try:
        first = json_of(head.lstrip().partition("\n")[0].encode(), path.name, 1)
    except DatasetError:
        return False
    return isinstance(first, dict) and len(first) == 1 and isinstance(first.get("memlab"), dict)


def write_jsonl(bundle: Bundle, file: BinaryIO) -> None:
    encoder = msgspec.json.Encoder()
    for record in records_of(bundle):
        file.write(encoder.encode({record.kind: record.fields}) + b"\n")


def read_jsonl(path: Path) -> Bundle:
    return bundle_from(_records(path), path.name)


def _records(path: Path) -> Iterator[Record]:
    for number, line in lines_of(path):
        value = json_of(line, path.name, number)
        if not isinstance(value, dict) or len(value) != 1:
            raise DatasetError(f'{path.name}, line {number}: A line is one record, such as {{"memory": {{...}}}}.')
        ((kind, fields),) = value.items()
        yield Record(kind, dict(fields_of(fields, path.name, f"line {number}")), f"line {number}")
