"""Exports as text: JSON Lines, S-expressions and Markdown.

JSON Lines has one record per line, such as ``{"memory": {...}}``; the first line is the header.
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


def is_jsonl_export(path: Path, start: str) -> bool:
    """Return whether a file begins with the header of a JSON Lines export."""
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        return False
    try:
        first = decode_json(start.lstrip().partition("\n")[0].encode(), path.name, 1)
    except DatasetError:
        return False
    return isinstance(first, dict) and len(first) == 1 and isinstance(first.get("memlab"), dict)


def write_jsonl(bundle: Bundle, file: BinaryIO) -> None:
    """Write a bundle as JSON Lines."""
    encoder = msgspec.json.Encoder()
    for record in export_records(bundle):
        file.write(encoder.encode({record.kind: record.fields}) + b"\n")


def read_jsonl(path: Path) -> Bundle:
    """Read an export in JSON Lines."""
    return build_bundle_from_records(_read_jsonl_records(path), path.name)


def _read_jsonl_records(path: Path) -> Iterator[Record]:
    """Yield the record in each line of a JSON Lines export."""
    for number, line in read_lines(path):
        value = decode_json(line, path.name, number)
        if not isinstance(value, dict) or len(value) != 1:
            raise DatasetError(
                f'{path.name}, line {number}: Expected one record, such as {{"memory": {{...}}}}.'
            )
        ((kind, fields),) = value.items()
        yield Record(
            kind, dict(check_fields(fields, path.name, f"line {number}")), f"line {number}"
        )


# -- S-expressions: ``(memory :id 1 :text "..." ...)``, data that is never executed-------------------------------------

# Bound the memory that a hostile file can claim: 268 million characters, 40 million forms.
_MAX_CHARACTERS = 1 << 28
_MAX_FORMS = 40_000_000


def write_sexp(bundle: Bundle, file: BinaryIO) -> None:
    """Write a bundle as S-expressions."""
    file.write(b"; Data of a memlab: nothing here is code.\n")
    for record in export_records(bundle):
        file.write(write_call(record.kind, record.fields).encode() + b"\n")


def read_sexp(path: Path) -> Bundle:
    """Read an export of S-expressions."""
    text = Text(read_text(path, max_bytes=4 * _MAX_CHARACTERS), None, path.name)
    try:
        return build_bundle_from_records(_read_sexp_records(text), path.name)
    except PolicyError as error:
        location = f", line {error.line}, column {error.column}" if error.line is not None else ""
        raise DatasetError(f"{path.name}{location}: {error.message}") from None


def _read_sexp_records(text: Text) -> Iterator[Record]:
    """Yield the record in each form of an S-expression export."""
    line, position = 1, 0
    for form in read_forms(text, characters=_MAX_CHARACTERS, forms=_MAX_FORMS):
        line += text.source.count("\n", position, form.start)
        position = form.start
        if not form.head:
            raise text.error(
                PolicySyntaxError, "Expected a record such as (memory :id 1 ...).", form
            )
        yield Record(form.head, _read_pairs(form, text), f"line {line}")


def _read_pairs(form: Form, text: Text) -> dict[str, object]:
    """Convert the name-value pairs of an S-expression to a dict."""
    fields: dict[str, object] = {}
    rest = form.items[1:]
    if len(rest) % 2:
        raise text.error(
            PolicySyntaxError, f"({form.head} ...) takes pairs of :name and value.", form
        )
    for key, value in zip(rest[::2], rest[1::2], strict=True):
        if key.kind != "keyword":
            raise text.error(PolicySyntaxError, "Expected a name such as :text.", key)
        name = key.text.replace("-", "_")
        if name in fields:
            raise text.error(PolicySyntaxError, f":{key.text} occurs twice.", key)
        fields[name] = read_data(value, text)
    return fields


# -- Markdown: a heading, fields and a text for each memory -----------------------------------------------------------
# Data are in fences of more backticks than the data contain in a row, so that no content can end its fence; the rest of
# a file is for people and is not read. Fields are JSON scalars, which are also YAML. A page that ignores fences must not
# render content as markup, and a terminal must not obey it: a text with a tag or a control character is in another kind
# of fence, with these characters as references, and fields escape them as JSON does.

# Runs of backticks, opening fences and header of an export.
_RUN = re.compile(r"`{3,}")
_OPENING = re.compile(r"(`{3,})(\S+) memlab$")
_HEADER = re.compile(r"^`{3,}yaml memlab\s*$", re.MULTILINE)
# Characters that begin a tag or break a line; tags and control characters; their references; characters of markup.
_BREAKS = re.compile("[<\x7f-\x9f\u2028\u2029\ufeff]")
_ACTIVE = re.compile("<(?=[A-Za-z/!?])|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_REFERENCE = re.compile("&#([0-9]{1,5});")
_MARKS = re.compile(r"([\\`*_{}\[\]()#+\-.!|~])")
# Characters that a file name replaces by a hyphen, and the maximum characters of a heading.
_WORDS = re.compile(r"[^a-z0-9]+")
_SHOWN = 70


def is_markdown_export(path: Path, start: str) -> bool:
    """Return whether a file contains the header fence of an export."""
    return path.suffix.lower() in (".md", ".markdown") and _HEADER.search(start) is not None


def write_markdown(bundle: Bundle, file: BinaryIO) -> None:
    """Write a bundle as Markdown."""
    rest: list[str] = []
    for record in export_records(bundle):
        if record.kind == "memlab":
            summary = f"{len(bundle.memories):,} memories, {len(bundle.edges):,} edges, {record.fields['exported']}"
            fields = format_fence("yaml", format_front_matter(record.fields))
            file.write(f"# A lab's memories\n\n{summary}\n\n{fields}\n\n".encode())
        elif record.kind == "memory":
            file.write(_format_section(record.fields).encode())
        else:
            rest.append(encode_json({record.kind: record.fields}))
    if rest:
        body = "\n".join(rest)
        file.write(f"# What joins them\n\n{format_fence('json', body)}\n".encode())


def _format_section(fields: Mapping[str, Any]) -> str:
    """Format a memory as a section: heading, fields and text."""
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
    """Return a memory's heading, built from the id and the escaped beginning of the text."""
    flat = " ".join((text or "").split())
    short = flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"
    escaped = _MARKS.sub(r"\\\1", html.escape(printable(short), quote=False))
    return f"{id}: {escaped}" if escaped else f"{id}"


def format_front_matter(fields: Mapping[str, Any]) -> str:
    """Format fields as lines of ``name: value``, with values as JSON."""
    return "\n".join(f"{name}: {encode_json(value)}" for name, value in fields.items())


def encode_json(value: Any) -> str:
    """Encode a value as one line of JSON that is safe inside an HTML page.

    Characters that would begin a tag or break a line occur only in strings, where they are escaped.
    """
    encoded = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return json_safe(_BREAKS.sub(lambda match: f"\\u{ord(match.group()):04x}", encoded))


def format_text_fence(text: str) -> str:
    """Return a text in a code fence; escape markup and control characters as references.

    >>> print(format_text_fence("a <b>"))
    ```escaped memlab
    a &#60;b>
    ```
    """
    if _ACTIVE.search(text) is None:
        return format_fence("text", text)
    return format_fence(
        "escaped",
        _ACTIVE.sub(lambda match: f"&#{ord(match.group())};", text.replace("&#", "&#38;#")),
    )


def _unescape(body: str) -> str:
    """Return a text with its character references decoded."""
    return _REFERENCE.sub(
        lambda match: chr(int(match[1])) if int(match[1]) < 0xD800 else match[0], body
    )


def format_fence(info: str, body: str) -> str:
    """Enclose a text in a code fence longer than any run of backticks in the text."""
    longest = max((len(run) for run in _RUN.findall(body)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{info} memlab\n{body}\n{fence}"


def build_file_name(id: int, text: str | None) -> str:
    """Return a memory's file name, built from the id and the beginning of the text.

    All characters are valid on every system.

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
    """Return the Markdown page of a memory: fields, heading, text and links."""
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
        label = format_heading(int(target), None) if target.isdecimal() else encode_json(target)
        name = names.get(int(target)) if target.isdecimal() else None
        end = f"[{label}]({name})" if name else f"`{label.replace('`', '')}`"
        lines.append(f"- {relation} {end} ({weight})")
    if lines:
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def read_markdown(path: Path) -> Bundle:
    """Read an export in Markdown."""
    return build_bundle_from_records(_read_markdown_records(path), path.name)


def _read_markdown_records(path: Path) -> Iterator[Record]:
    """Yield the memories and other records in the code fences of a Markdown export."""
    # a memory is complete when the next one begins, because its text comes after its fields
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
                    f"{path.name}, line {line}: A text must follow the fields of its memory."
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
                    location = f"line {line + offset}"
                    yield Record(kind, dict(check_fields(fields, path.name, location)), location)
        else:
            raise DatasetError(
                f"{path.name}, line {line}: A fence must be yaml, text, escaped or json, not {info:.40}. "
                "Correct the word after the backticks of this Markdown code block."
            )
    if pending is not None:
        yield pending


def _read_fences(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the content and the line number of each code fence in an export."""
    source = read_text(path)
    first, _, _ = source.partition("\n")
    if first.endswith("\r"):
        # a program has converted the line ends of the whole file
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
                f"{path.name}, line {at + 1}: The fence is not closed. Add a line {opening[1]}."
            ) from None
        yield opening[2], "\n".join(lines[at + 1 : end]), at + 1
        at = end + 1


def _read_fields(body: str, source: str, line: int) -> dict[str, Any]:
    """Parse the lines ``name: value`` in a fence of YAML."""
    fields: dict[str, Any] = {}
    for offset, entry in enumerate(body.split("\n"), 1):
        if not entry.strip():
            continue
        name, colon, value = entry.partition(":")
        if not colon:
            raise DatasetError(
                f"{source}, line {line + offset}: Expected a name, a colon and a value."
            )
        if name in fields:
            raise DatasetError(
                f"{source}, line {line + offset}, field {name:.60}: The field occurs twice."
            )
        fields[name] = decode_json(value.strip().encode(), source, line + offset)
    return fields
