"""S-expressions: ``(memory :id 1 :text "..." ...)``, data that the dialect's reader reads and nothing runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from memlab.errors import DatasetError, PolicyError, PolicySyntaxError
from memlab.io.formats.exports.bundle import Bundle
from memlab.io.formats.exports.records import Record, bundle_from, records_of
from memlab.io.formats.exports.text import text_of
from memlab.kernel.language import Form, Text, read_data, read_forms, write_call

__all__ = ["read_sexp", "write_sexp"]

_MOST_CHARACTERS = 1 << 28
_MOST_FORMS = 40_000_000


def write_sexp(bundle: Bundle, file: BinaryIO) -> None:
    file.write(b"; Data of a memlab: nothing here is code.\n")
    for record in records_of(bundle):
        file.write(write_call(record.kind, record.fields).encode() + b"\n")


def read_sexp(path: Path) -> Bundle:
    text = Text(text_of(path, most=4 * _MOST_CHARACTERS), None, path.name)
    try:
        return bundle_from(_records(text), path.name)
    except PolicyError as error:
        place = f", line {error.line}, column {error.column}" if error.line is not None else ""
        raise DatasetError(f"{path.name}{place}: {error.message}") from None


def _records(text: Text) -> Iterator[Record]:
    line, counted = 1, 0
    for form in read_forms(text, characters=_MOST_CHARACTERS, forms=_MOST_FORMS):
        line += text.source.count("\n", counted, form.start)
        counted = form.start
        if not form.head:
            raise text.error(PolicySyntaxError, "A record is a form such as (memory :id 1 ...).", form)
        yield Record(form.head, _fields(form, text), f"line {line}")


def _fields(form: Form, text: Text) -> dict[str, object]:
    fields: dict[str, object] = {}
    rest = form.items[1:]
    if len(rest) % 2:
        raise text.error(PolicySyntaxError, f"({form.head} ...) takes pairs of :name and value.", form)
    for key, value in zip(rest[::2], rest[1::2], strict=True):
        if key.kind != "keyword":
            raise text.error(PolicySyntaxError, "A name such as :text stands here.", key)
        name = key.text.replace("-", "_")
        if name in fields:
            raise text.error(PolicySyntaxError, f":{key.text} is given twice.", key)
        fields[name] = read_data(value, text)
    return fields
