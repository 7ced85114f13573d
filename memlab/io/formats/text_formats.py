"""Exports as text: JSON Lines, S-expressions and Markdown.

JSON Lines has one record a line, ``{"memory": {...}}``; the first line is the header.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from memlab.errors import DatasetError, PolicyError, PolicySyntaxError
from memlab.io.formats.bundle import Bundle
from memlab.io.formats.lines import decode_json, read_lines, read_text
from memlab.io.formats.records import (
    Record,
    build_bundle_from_records,
    check_fields,
    export_records,
)
from memlab.kernel.base.printable import json_safe, printable
from memlab.kernel.language import Form, Text, read_data, read_forms, write_call

__all__ = [
    "build_file_name",
    "is_jsonl_export",
    "is_markdown_export",
    "read_jsonl",
    "read_markdown",
    "read_sexp",
    "render_memory_page",
    "write_jsonl",
    "write_markdown",
    "write_sexp",
]


def is_jsonl_export(path: Path, start: str) -> bool:
    """Return whether a file begins with the header of an export."""
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        return False
    try:
        first = decode_json(start.lstrip().partition("\n")[0].encode(), path.name, 1)
    except DatasetError:
        return False
    return isinstance(first, dict) and len(first) == 1 and isinstance(first.get("memlab"), dict)


def write_jsonl(bundle: Bundle, file: BinaryIO) -> None:
    encoder = msgspec.json.Encoder()
    for record in export_records(bundle):
        file.write(encoder.encode({record.kind: record.fields}) + b"\n")


def read_jsonl(path: Path) -> Bundle:
    return build_bundle_from_records(_read_jsonl_records(path), path.name)


def _read_jsonl_records(path: Path) -> Iterator[Record]:
    for number, line in read_lines(path):
        value = decode_json(line, path.name, number)
        if not isinstance(value, dict) or len(value) != 1:
            raise DatasetError(
                f'{path.name}, line {number}: A line is one record, such as {{"memory": {{...}}}}.'
            )
        ((kind, fields),) = value.items()
        yield Record(
            kind, dict(check_fields(fields, path.name, f"line {number}")), f"line {number}"
        )


# -- S-expressions: ``(memory :id 1 :text "..." ...)``, data that nothing runs ----------------------------------------

_MOST_CHARACTERS = 1 << 28
_MOST_FORMS = 40_000_000


def write_sexp(bundle: Bundle, file: BinaryIO) -> None:
    file.write(b"; Data of a memlab: nothing here is code.\n")
    for record in export_records(bundle):
        file.write(write_call(record.kind, record.fields).encode() + b"\n")


def read_sexp(path: Path) -> Bundle:
    text = Text(read_text(path, max_bytes=4 * _MOST_CHARACTERS), None, path.name)
    try:
        return build_bundle_from_records(_read_sexp_records(text), path.name)
    except PolicyError as error:
        place = f", line {error.line}, column {error.column}" if error.line is not None else ""
        raise DatasetError(f"{path.name}{place}: {error.message}") from None


def _read_sexp_records(text: Text) -> Iterator[Record]:
    line, counted = 1, 0
    for form in read_forms(text, characters=_MOST_CHARACTERS, forms=_MOST_FORMS):
        line += text.source.count("\n", counted, form.start)
        counted = form.start
        if not form.head:
            raise text.error(
                PolicySyntaxError, "A record is a form such as (memory :id 1 ...).", form
            )
        yield Record(form.head, _read_pairs(form, text), f"line {line}")


def _read_pairs(form: Form, text: Text) -> dict[str, object]:
    fields: dict[str, object] = {}
    rest = form.items[1:]
    if len(rest) % 2:
        raise text.error(
            PolicySyntaxError, f"({form.head} ...) takes pairs of :name and value.", form
        )
    for key, value in zip(rest[::2], rest[1::2], strict=True):
        if key.kind != "keyword":
            raise text.error(PolicySyntaxError, "A name such as :text stands here.", key)
        name = key.text.replace("-", "_")
        if name in fields:
            raise text.error(PolicySyntaxError, f":{key.text} is given twice.", key)
        fields[name] = read_data(value, text)
    return fields


# -- Markdown: a heading, fields and a text for each memory -----------------------------------------------------------
# Whatever is data stands in a fence of more backticks than the data has in a row, so no content can end its own fence;
# what stands outside of fences is for people and is not read. Fields are JSON scalars, which are YAML. No content is
# markup for a page that takes fences for nothing, nor a command to a terminal: a text that holds a tag or a control
# character stands in a fence of its own kind, with such characters as references, and fields escape them as JSON does.

_RUN = re.compile(r"`{3,}")
_OPENING = re.compile(r"(`{3,})(\S+) memlab$")
_HEADER = re.compile(r"^`{3,}yaml memlab\s*$", re.MULTILINE)
_BREAKS = re.compile("[<\x7f-\x9f\u2028\u2029\ufeff]")
_ACTIVE = re.compile("<(?=[A-Za-z/!?])|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_REFERENCE = re.compile("&#([0-9]{1,5});")
_MARKS = re.compile(r"([\\`*_{}\[\]()#+\-.!|~])")
_WORDS = re.compile(r"[^a-z0-9]+")
_SHOWN = 70


def is_markdown_export(path: Path, start: str) -> bool:
    """Return whether a file begins with a fence of an export."""
    return path.suffix.lower() in (".md", ".markdown") and _HEADER.search(start) is not None


def write_markdown(bundle: Bundle, file: BinaryIO) -> None:
    rest: list[str] = []
    for record in export_records(bundle):
        if record.kind == "memlab":
            summary = f"{len(bundle.memories):,} memories, {len(bundle.edges):,} edges, {record.fields['exported']}"
            file.write(
                f"# A lab's memories\n\n{summary}\n\n{format_fence('yaml', format_front_matter(record.fields))}\n\n".encode()
            )
        elif record.kind == "memory":
            file.write(_format_section(record.fields).encode())
        else:
            rest.append(encode_json({record.kind: record.fields}))
    if rest:
        body = "\n".join(rest)
        file.write(f"# What joins them\n\n{format_fence('json', body)}\n".encode())


def _format_section(fields: Mapping[str, Any]) -> str:
    about = {name: value for name, value in fields.items() if name != "text"}
    text = fields.get("text")
    parts = [
        f"## {format_heading(fields['id'], text)}",
        format_fence("yaml", format_front_matter(about)),
    ]
    if text is not None:
        parts.append(format_text_fence(text))
    return "\n\n".join(parts) + "\n\n"


def format_heading(id: int, text: str | None) -> str:
    """A line that names a memory, in which nothing is markup."""
    flat = " ".join((text or "").split())
    shown = flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"
    escaped = _MARKS.sub(r"\\\1", html.escape(printable(shown), quote=False))
    return f"{id}: {escaped}" if escaped else f"{id}"


def format_front_matter(fields: Mapping[str, Any]) -> str:
    """One ``name: value`` a line."""
    return "\n".join(f"{name}: {encode_json(value)}" for name, value in fields.items())


def encode_json(value: Any) -> str:
    """A value as JSON in which no tag begins and no character breaks a line: all of these stand within strings."""
    encoded = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return json_safe(_BREAKS.sub(lambda match: f"\\u{ord(match.group()):04x}", encoded))


def format_text_fence(text: str) -> str:
    """A text in its fence; where a page or a terminal might obey it, with references in the place of such characters.

    >>> print(format_text_fence("a <b>"))
    ```escaped memlab
    a &#60;b>
    ```
    """
    if _ACTIVE.search(text) is None:
        return format_fence("text", text)
    return format_fence(
        "escaped",
        _ACTIVE.sub(lambda found: f"&#{ord(found.group())};", text.replace("&#", "&#38;#")),
    )


def _unescape(body: str) -> str:
    return _REFERENCE.sub(
        lambda found: chr(int(found[1])) if int(found[1]) < 0xD800 else found[0], body
    )


def format_fence(info: str, body: str) -> str:
    """A block that ends where it is to end, whatever ``body`` holds."""
    longest = max((len(run) for run in _RUN.findall(body)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{info} memlab\n{body}\n{fence}"


def build_file_name(id: int, text: str | None) -> str:
    """Return the name of a memory's file: its number and the beginning of its text in letters that every system takes.

    >>> build_file_name(7, "CON: Grüße/aux?")
    '0000007-con-grusse-aux.md'
    """
    plain = (
        unicodedata.normalize("NFKD", (text or "")[:200].replace("ß", "ss"))
        .encode("ascii", "ignore")
        .decode()
    )
    words = _WORDS.sub("-", plain.lower()).strip("-")[:48].strip("-")
    return f"{id:07}-{words}.md" if words else f"{id:07}.md"


def render_memory_page(
    fields: Mapping[str, Any], links: list[str], names: Mapping[int, str]
) -> str:
    """Return the page of a memory: front matter, a heading, the text in a fence, and what it is joined to."""
    about = {name: value for name, value in fields.items() if name not in ("text", "uses")}
    text = fields["text"]
    parts = [
        f"---\n{format_front_matter(about)}\n---",
        f"# {format_heading(fields['id'], text)}",
        format_text_fence(text),
    ]
    lines = []
    for link in links:
        relation, _, rest = link.partition(" ")
        target, _, weight = rest.rpartition(" ")
        shown = format_heading(int(target), None) if target.isdecimal() else encode_json(target)
        name = names.get(int(target)) if target.isdecimal() else None
        end = f"[{shown}]({name})" if name else f"`{shown.replace('`', '')}`"
        lines.append(f"- {relation} {end} ({weight})")
    if lines:
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def read_markdown(path: Path) -> Bundle:
    return build_bundle_from_records(_read_markdown_records(path), path.name)


def _read_markdown_records(path: Path) -> Iterator[Record]:
    pending: Record | None = None
    header = False
    for info, body, line in _read_fences(path):
        if info == "yaml":
            if pending is not None:
                yield pending
            fields = _read_fields(body, path.name, line)
            pending = Record("memory" if header else "memlab", fields, f"line {line}")
            if not header:
                yield pending
                pending, header = None, True
        elif info in ("text", "escaped"):
            if pending is None or "text" in pending.fields:
                raise DatasetError(
                    f"{path.name}, line {line}: A text follows the fields of its memory."
                )
            pending.fields["text"] = body if info == "text" else _unescape(body)
        elif info == "json":
            if pending is not None:
                yield pending
                pending = None
            for offset, part in enumerate(body.split("\n"), 1):
                value = check_fields(
                    decode_json(part.encode(), path.name, line + offset),
                    path.name,
                    f"line {line + offset}",
                )
                for kind, fields in value.items():
                    place = f"line {line + offset}"
                    yield Record(kind, dict(check_fields(fields, path.name, place)), place)
        else:
            raise DatasetError(
                f"{path.name}, line {line}: A fence is yaml, text, escaped or json, not {info:.40}."
            )
    if pending is not None:
        yield pending


def _read_fences(path: Path) -> Iterator[tuple[str, str, int]]:
    """The fences that are ours: what they hold, and the line in which they begin."""
    source = read_text(path)
    first, _, _ = source.partition("\n")
    if first.endswith("\r"):
        # A program has rewritten every end of a line.
        source = source.replace("\r\n", "\n")
    lines = source.split("\n")
    at = 0
    while at < len(lines):
        opening = _OPENING.match(lines[at])
        if opening is None:
            at += 1
            continue
        try:
            end = lines.index(opening[1], at + 1)
        except ValueError:
            raise DatasetError(
                f"{path.name}, line {at + 1}: This fence is not closed: {opening[1]} is missing."
            ) from None
        yield opening[2], "\n".join(lines[at + 1 : end]), at + 1
        at = end + 1


def _read_fields(body: str, source: str, line: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for offset, entry in enumerate(body.split("\n"), 1):
        if not entry.strip():
            continue
        name, colon, value = entry.partition(":")
        if not colon:
            raise DatasetError(
                f"{source}, line {line + offset}: A field is a name, a colon and a value."
            )
        if name in fields:
            raise DatasetError(
                f"{source}, line {line + offset}, field {name:.60}: It is given twice."
            )
        fields[name] = decode_json(value.strip().encode(), source, line + offset)
    return fields
