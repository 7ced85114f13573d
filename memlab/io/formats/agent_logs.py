"""Logs of agents: Codex, OpenTelemetry spans, Inspect, and the memory server of the Model Context Protocol.

Codex writes lines with type and payload; older rollouts have bare items. The console and OTLP exporters of
OpenTelemetry's SDK write spans with ``gen_ai`` attributes. Inspect writes samples with messages and events, as JSON or
as an archive ``.eval``. server-memory writes entities with observations, and relations.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memlab.errors import DatasetError
from memlab.io.formats.archives import open_archive, read_member
from memlab.io.formats.entries import Entries, parse_json_lines
from memlab.io.formats.lines import Lines, Notes, decode_json, read_document
from memlab.io.formats.messages import unwrap_message


def _list_objects(value: object) -> Iterator[dict[str, Any]]:
    """Yield the objects in a list, or nothing for a value that is not a list."""
    return (item for item in (value if isinstance(value, list) else ()) if isinstance(item, dict))


# -- Codex --------------------------------------------------------------------------------------------------------

# The beginning of a rollout: its header in the present form, or in the form before envelopes.
_ROLLOUT = re.compile(
    r'\{[^\n]*"type":\s*"(?:session_meta|response_item|event_msg|turn_context)"[^\n]*"payload"'
    r'|\{[^\n]*"payload"[^\n]*"type":\s*"(?:session_meta|response_item|event_msg|turn_context)"'
    r'|\{"id":[^\n]*"instructions":'
)
# Texts that Codex sends in the name of the user.
_CODEX_CONTEXT = re.compile(
    r"<(?:environment_context|user_instructions|turn_aborted)>|# AGENTS\.md instructions"
)


def is_codex(path: Path, start: str) -> bool:
    """Return whether a file is the rollout of a Codex session."""
    return path.suffix.lower() == ".jsonl" and _ROLLOUT.match(start.lstrip()) is not None


def parse_codex(path: Path, notes: Notes) -> Entries:
    """Yield the messages, tool calls and results of a Codex rollout.

    Lines of type ``event_msg`` repeat messages for the screen, so they are counted and not read.
    """
    common: dict[str, Any] = {"session": path.stem}
    for number, entry in parse_json_lines(Lines(path, notes)):
        kind, payload = str(entry.get("type")), entry.get("payload")
        if not isinstance(payload, dict):
            payload = entry
            kind = "session_meta" if "instructions" in entry else "response_item"
        if kind == "session_meta":
            git = payload.get("git")
            branch = git.get("branch") if isinstance(git, dict) else None
            common |= {
                "session": payload.get("id") or path.stem,
                "cwd": payload.get("cwd"),
                "branch": branch,
            }
        elif kind != "response_item":
            notes.left_out[f"line of type {kind[:40]}"] += 1
        else:
            message = unwrap_message(payload)
            text = next((part.get("text") for part in _list_objects(message.get("content"))), None)
            is_context = isinstance(text, str) and _CODEX_CONTEXT.match(text) is not None
            yield number, {**message, "at": entry.get("timestamp"), **common, "isMeta": is_context}


# -- OpenTelemetry ------------------------------------------------------------------------------------------------


def is_spans(path: Path, start: str) -> bool:
    """Return whether a file contains spans in the format of OpenTelemetry's exporters."""
    return '"resourceSpans"' in start or ('"trace_id"' in start and '"parent_id"' in start)


# Events of the conventions before 1.37, each with one message, and the roles of the messages.
_EVENTS = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")} | {
    "gen_ai.choice": "assistant"
}


def parse_spans(path: Path, notes: Notes) -> Entries:
    """Yield the messages in the spans of model calls, in temporal order.

    A session is a conversation or a trace. A span repeats the messages before it, so a message is read as often as the
    span that has it most often.
    """
    notes.unit = "span"
    read: Counter[tuple[str, str]] = Counter()
    spans = [span for document in _read_documents(path, notes) for span in _list_spans(document)]
    for number, span in enumerate(sorted(spans, key=_find_start), 1):
        context = span.get("context")
        trace = context.get("trace_id") if isinstance(context, dict) else span.get("traceId")
        try:
            attributes = _read_attributes(span.get("attributes"))
            session = str(attributes.get("gen_ai.conversation.id") or trace).removeprefix("0x")
            messages = list(_list_messages(span, attributes))
        except (ValueError, AttributeError, TypeError, RecursionError) as problem:
            notes.skip(number, "span not understood", str(problem))
            continue
        if not messages:
            notes.left_out["span without messages"] += 1
        repeated: Counter[tuple[str, str]] = Counter()
        for role, content, at in messages:
            key = session, json.dumps((role, content), sort_keys=True)
            repeated[key] += 1
            if repeated[key] > read[key]:
                read[key] += 1
                yield number, {"role": role, "content": content, "at": at, "session": session}


def _find_start(span: Mapping[str, Any]) -> str:
    """Return a span's start time as a text to sort spans by, or "None" if the span has none."""
    return str(span.get("start_time") or span.get("startTimeUnixNano"))


def _list_messages(
    span: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Iterator[tuple[object, object, object]]:
    """Yield the role, content and time of each message in a span's attributes and events."""
    records = [
        ("", attributes, _find_start(span), span.get("end_time") or span.get("endTimeUnixNano"))
    ]
    for event in _list_objects(span.get("events")):
        at = event.get("timestamp") or event.get("timeUnixNano")
        records.append(
            (str(event.get("name")), _read_attributes(event.get("attributes")), str(at), at)
        )
    for name, fields, before, after in records:
        if name in _EVENTS:
            message = fields.get("message")
            source = json.loads(message) if isinstance(message, str) else fields
            yield _EVENTS[name], source.get("content"), after
        for field, at in (
            ("system_instructions", before),
            ("input.messages", before),
            ("output.messages", after),
        ):
            value = fields.get(f"gen_ai.{field}")
            value = json.loads(value) if isinstance(value, str) else value
            if value and field == "system_instructions":
                value = [{"role": "system", "parts": value}]
            for message in _list_objects(value):
                yield message.get("role"), message.get("parts") or message.get("content"), at


# The space before the next document, matched in place: copying the rest for each document takes quadratic time.
_SPACE = re.compile(r"\s*(?=\S)")


def _read_documents(path: Path, notes: Notes) -> Iterator[Any]:
    """Yield the consecutive JSON documents in a file, up to the first text that is not JSON."""
    text = read_document(path).decode(errors="replace")
    decoder, position = json.JSONDecoder(), 0
    while space := _SPACE.match(text, position):
        position = space.end()
        try:
            document, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as problem:
            notes.skip(text.count("\n", 0, position) + 1, "span is not JSON", str(problem))
            return
        yield document


def _list_spans(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the spans in a document, which is a span, a list of spans, or an OTLP request."""
    if isinstance(document, list):
        yield from _list_objects(document)
    elif isinstance(document, dict) and "resourceSpans" not in document:
        yield document
    elif isinstance(document, dict):
        for resource in _list_objects(document["resourceSpans"]):
            for scope in _list_objects(resource.get("scopeSpans")):
                yield from _list_objects(scope.get("spans"))


def _read_attributes(value: Any) -> dict[str, Any]:
    """Return a span's attributes as a dict, also from OTLP's list of keys and typed values."""
    if isinstance(value, list):
        return {
            str(item.get("key")): _unwrap_value(item.get("value")) for item in _list_objects(value)
        }
    return value if isinstance(value, dict) else {}


def _unwrap_value(value: Any) -> Any:
    """Return the plain value in a typed OTLP value, such as ``{"stringValue": "a"}``."""
    if not isinstance(value, dict):
        return value
    if "arrayValue" in value:
        return [_unwrap_value(item) for item in value["arrayValue"].get("values", [])]
    if "kvlistValue" in value:
        return _read_attributes(value["kvlistValue"].get("values", []))
    return next(iter(value.values()), None)


# -- Inspect ------------------------------------------------------------------------------------------------------


def is_inspect(path: Path, start: str) -> bool:
    """Return whether a file is a log of Inspect."""
    return path.suffix.lower() == ".eval" or (
        start.lstrip()[:1] == "{"
        and all(f'"{name}"' in start for name in ("eval", "task_id", "run_id"))
    )


def parse_inspect(path: Path, notes: Notes) -> Entries:
    """Yield the messages of each sample of an Inspect log, with the sample as the session.

    The time of a message is the time of the event that produced the message, or of the preceding message.
    """
    notes.unit = "sample"
    for number, (task, sample) in enumerate(_list_samples(path, notes), 1):
        times, at = _find_times(sample), sample.get("started_at")
        attached = sample.get("attachments")
        for message in _list_objects(sample.get("messages")):
            at = times.get(str(message.get("tool_call_id") or message.get("id")), at)
            content = message.get("content")
            if isinstance(content, str) and isinstance(attached, dict):
                content = attached.get(content.removeprefix("attachment://"), content)
            calls = [
                call | {"name": call.get("function")}
                for call in _list_objects(message.get("tool_calls"))
            ]
            session = f"{task}/{sample.get('id')}/{sample.get('epoch')}"[:200]
            entry = {"role": message.get("role"), "content": content, "tool_calls": calls}
            yield number, entry | {"at": at, "session": session}


def _find_times(sample: Mapping[str, Any]) -> dict[object, object]:
    """Return the times of a sample's events, by the ids of their messages and tool calls."""
    times: dict[object, object] = {}
    for event in _list_objects(sample.get("events")):
        output = event.get("output")
        choices = _list_objects(output.get("choices") if isinstance(output, dict) else None)
        produced = _list_objects([choice.get("message") for choice in choices])
        times |= dict.fromkeys(
            (str(item.get("id")) for item in (event, *produced)), event.get("timestamp")
        )
    return times


def _list_samples(path: Path, notes: Notes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the task's name and each sample of an Inspect log, in JSON or as an archive."""
    if path.suffix.lower() != ".eval":
        log = decode_json(read_document(path), path.name, 1, dict)
        yield from ((_find_task(log, path), sample) for sample in _list_objects(log.get("samples")))
        return
    with open_archive(path) as archive:
        task = path.stem
        # the header begins the archive only while the log is written, so headers are read first
        for item in sorted(
            archive.infolist(), key=lambda item: item.filename.startswith("samples/")
        ):
            is_head = item.filename in ("header.json", "_journal/start.json")
            if not is_head and not item.filename.startswith("samples/"):
                continue
            try:
                document = decode_json(
                    read_member(archive, item, path.name), item.filename, 1, dict
                )
            except DatasetError as problem:
                notes.skip(0, "sample not read", str(problem))
                continue
            if is_head:
                task = _find_task(document, path)
            else:
                yield task, document


def _find_task(log: Mapping[str, Any], path: Path) -> str:
    """Return the name of the task of an Inspect log, or the file's name."""
    head = log.get("eval")
    return str((head.get("task") if isinstance(head, dict) else None) or path.stem)


# -- server-memory ------------------------------------------------------------------------------------------------


def is_server_memory(path: Path, start: str) -> bool:
    """Return whether a file is a graph written by the memory server of MCP."""
    return (
        re.match(r'\{"type":\s*"(?:entity|relation)",\s*"(?:name|from)"', start.lstrip())
        is not None
    )


def parse_server_memory(path: Path, notes: Notes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield a fact for each observation of an entity and for each relation."""
    notes.guessed |= {"text": "observations and relations", "tags": "entityType"}
    notes.guessed["at"] = "nothing: the file contains no times"
    for number, entry in parse_json_lines(Lines(path, notes)):
        if entry.get("type") == "relation":
            words = (entry.get("from"), entry.get("relationType"), entry.get("to"))
            yield number, {"text": " ".join(str(word).replace("_", " ") for word in words)}
        elif isinstance(entry.get("observations"), list):
            for observation in entry["observations"]:
                row = {"text": f"{entry.get('name')}: {observation}"}
                yield (
                    number,
                    row | {"tags": [str(entry["entityType"])]} if entry.get("entityType") else row,
                )
        else:
            notes.left_out[f"line of type {str(entry.get('type'))[:40]}"] += 1
