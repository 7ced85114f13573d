"""JSON Lines: one record a line, ``{"memory": {...}}``; the first line is the header."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from memlab.errors import DatasetError
from memlab.io.moving._bundle import Bundle
from memlab.io.moving._records import Record, bundle_from, fields_of, records_of
from memlab.io.moving._text import json_of, lines_of

__all__ = ["read_jsonl", "write_jsonl"]


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
