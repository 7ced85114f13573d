"""Logs of agents; ``tests/fixtures/exports/make.py`` says which programs wrote the fixtures."""

import contextlib
import json
import struct
import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

import memlab
from memlab.errors import DatasetError
from memlab.io.formats.agent_logs import parse_spans
from memlab.io.formats.lines import Notes

FIXTURES = Path(__file__).parents[1] / "fixtures" / "exports"


def load(path):
    lab = memlab.open()
    loaded = lab.load(path)
    return lab.memories.select("text", "speaker", "session", "created").rows(), loaded


def stored(value):
    return datetime.fromisoformat(value).astimezone(UTC)


@pytest.mark.parametrize("name", ["inspect.eval", "inspect.json"])
def test_inspect(name):
    """The .eval log is packed with zstd, as Inspect writes it today."""
    rows, loaded = load(FIXTURES / name)
    assert [row[:3] for row in rows] == [
        ("When does my train to Bergen leave?", "user", "travel/train/1"),
        ("tool call for tool train_time", "assistant", "travel/train/1"),
        ('train_time({"city":"Bergen"})', "tool", "travel/train/1"),
        ("The train to Bergen leaves at 09:14 from platform 3.", "tool", "travel/train/1"),
        ("Your train leaves at 09:14.", "assistant", "travel/train/1"),
    ]
    times = [row[3] for row in rows]
    assert times == sorted(times)
    log = json.loads((FIXTURES / "inspect.json").read_text())
    if name == "inspect.json":
        assert times[0] == stored(log["samples"][0]["started_at"])
    assert not loaded.skipped


@pytest.mark.parametrize("name", ["spans-console.json", "spans-otlp.jsonl"])
def test_spans_repeat_no_message(name):
    rows, loaded = load(FIXTURES / name)
    assert [row[:2] for row in rows] == [
        ("When does my train to Bergen leave?", "user"),
        ("Reply 1: the train leaves at 09:14.", "assistant"),
        ("And back?", "user"),
        ("Reply 3: the train leaves at 09:14.", "assistant"),
    ]
    first = json.JSONDecoder().raw_decode((FIXTURES / "spans-console.json").read_text())[0]
    assert rows[0][3] == stored(first["start_time"])
    assert rows[1][3] == stored(first["end_time"])
    assert {row[2] for row in rows} == {first["context"]["trace_id"].removeprefix("0x")}
    assert loaded.left_out == {"span without messages": 1}


AT_END = "2026-01-02T09:00:01Z"


def test_spans_with_events_and_a_cut_off_end(tmp_path):
    """The form of semantic conventions before 1.37: an event for each message."""
    span = {
        "name": "chat",
        "context": {"trace_id": "0x1", "span_id": "0x2"},
        "parent_id": None,
        "start_time": "2026-01-02T09:00:00Z",
        "end_time": "2026-01-02T09:00:01Z",
        "attributes": {"gen_ai.conversation.id": "talk"},
        "events": [
            {
                "name": "gen_ai.user.message",
                "timestamp": "2026-01-02T09:00:00Z",
                "attributes": {"content": "Hi"},
            },
            {
                "name": "gen_ai.choice",
                "timestamp": AT_END,
                "attributes": {"message": '{"content": "Hello"}'},
            },
            {"name": "exception", "timestamp": "2026-01-02T09:00:01Z", "attributes": {}},
        ],
    }
    path = tmp_path / "spans.json"
    whole = json.dumps(span, indent=4)
    path.write_text(f"{whole}\n{whole[:-40]}")
    rows, loaded = load(path)
    assert [row[:3] for row in rows] == [("Hi", "user", "talk"), ("Hello", "assistant", "talk")]
    assert loaded.skipped == {"span is not JSON": 1}


@pytest.mark.long
def test_the_time_of_many_spans_is_linear(tmp_path):
    """Copying the rest of the file for each span took three seconds."""
    path = tmp_path / "spans.jsonl"
    span = json.dumps({"trace_id": "a", "parent_id": None, "x": "y" * 900})
    path.write_text("\u2003\n".join([span] * 10_000) + " \n" * 1_000)
    notes = Notes("spans")
    began = time.process_time()
    assert not list(parse_spans(path, notes))
    assert time.process_time() - began < 1
    assert notes.left_out == {"span without messages": 10_000}


def test_responses_of_openai(tmp_path):
    rows, loaded = load(FIXTURES / "responses.json")
    assert [row[:3] for row in rows] == [
        ('train_time({"city": "Bergen"})', "tool", "resp_1"),
        ("The train leaves at 09:14.", "assistant", "resp_1"),
    ]
    assert rows[0][3] == datetime.fromtimestamp(1764000000, UTC)
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "When does my train leave?"}]},
        *json.loads((FIXTURES / "responses.json").read_text())["output"],
        {"type": "function_call_output", "call_id": "c1", "output": '{"time": "09:14"}'},
    ]
    lab = memlab.open()
    loaded = lab.load(items)
    assert lab.memories["speaker"].to_list() == ["user", "tool", "assistant", "tool"]
    assert lab.memories["text"].to_list()[3] == '{"time": "09:14"}'
    assert loaded.left_out["message of type reasoning"] == 1
    assert set(loaded.left_out) <= {
        "message of type reasoning",
        "field id",
        "field status",
        "field phase",
    }


@pytest.mark.long
def test_server_memory():
    lab = memlab.open()
    loaded = lab.load(FIXTURES / "server-memory.jsonl")
    assert lab.memories["text"].to_list() == [
        "Marta: is allergic to peanuts",
        "Marta: lives in Lisbon",
        "Acme: sells green bicycles",
        "Marta works at Acme",
    ]
    assert lab.memories["kind"].unique().to_list() == ["fact"]
    assert (
        "server-memory.jsonl",
        "at",
        "nothing: the file contains no times",
    ) in loaded.guessed.rows()
    assert "Marta" in lab.recall("who is allergic?")[0].text


AT = "2025-10-01T09:00:0{}.000Z"


def line(number, kind, payload):
    return {"timestamp": AT.format(number), "type": kind, "payload": payload}


def said(role, kind, text):
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def tool(kind, **fields):
    return {"type": kind, "call_id": "c", **fields}


META = {
    "id": "0199",
    "timestamp": AT.format(0),
    "cwd": "/home/ida/bikes",
    "git": {"branch": "main"},
}
CODEX = [
    line(0, "session_meta", META),
    line(1, "response_item", said("user", "input_text", "<environment_context>\n<cwd>/home</cwd>")),
    line(1, "turn_context", {"cwd": "/home/ida/bikes", "model": "m"}),
    line(2, "response_item", said("user", "input_text", "Why does the build fail?")),
    line(2, "event_msg", {"type": "user_message", "message": "Why does the build fail?"}),
    line(3, "response_item", {"type": "reasoning", "summary": [], "encrypted_content": "x"}),
    line(3, "response_item", tool("function_call", name="shell", arguments='{"command":["make"]}')),
    line(4, "response_item", tool("function_call_output", output="missing header bike.h")),
    line(5, "response_item", tool("custom_tool_call", name="apply_patch", input="*** Begin Patch")),
    line(6, "response_item", said("assistant", "output_text", "A header was missing.")),
]


@pytest.mark.long
@pytest.mark.parametrize("form", ["envelopes", "bare"])
def test_codex_rollouts(tmp_path, form):
    path = tmp_path / "rollout-2025-10-01T09-00-00-0199.jsonl"
    lines = CODEX
    if form == "bare":
        head = {
            "id": "0199",
            "timestamp": AT.format(0),
            "instructions": None,
            "cwd": "/home/ida/bikes",
        }
        lines = [head, *(item["payload"] for item in CODEX if item["type"] == "response_item")]
    path.write_text("".join(json.dumps(item) + "\n" for item in lines))
    rows, loaded = load(path)
    assert [row[:2] for row in rows] == [
        ("Why does the build fail?", "user"),
        ('shell({"command":["make"]})', "tool"),
        ("missing header bike.h", "tool"),
        ("apply_patch(*** Begin Patch)", "tool"),
        ("A header was missing.", "assistant"),
    ]
    assert {row[2] for row in rows} == {"0199"}
    if form == "envelopes":
        assert rows[0][3] == stored(AT.format(2))
        assert loaded.left_out["line of type event_msg"] == 1
    assert loaded.left_out["message that the program wrote to itself"] == 1
    assert loaded.left_out["line of type reasoning"] == 1
    path.write_text(path.read_text()[:-30])
    rows, loaded = load(path)
    assert len(rows) == 4
    assert loaded.skipped == {"line is not JSON": 1}


def test_a_rollout_in_the_tests_of_another_parser():
    """The sample is of cc-session-core 0.2.0, whose licence is next to it."""
    rows, loaded = load(FIXTURES / "codex-rollout.jsonl")
    assert [row[:2] for row in rows] == [
        ("Implement the Codex parser.", "user"),
        ("I will inspect the repository.", "assistant"),
        ('exec_command({"cmd":"rg --files"})', "tool"),
        ("README.md\npyproject.toml", "tool"),
        ("Implemented and validated.", "assistant"),
    ]
    assert {row[2] for row in rows} == {"019c0000-0000-7000-8000-000000000001"}
    assert rows[0][3] == stored("2026-07-25T14:00:01Z")
    assert loaded.left_out["line of type reasoning"] == 1


@pytest.mark.long
@pytest.mark.parametrize("step", [397, pytest.param(97, marks=pytest.mark.slow)])
def test_a_hostile_inspect_log(tmp_path, step):
    whole = (FIXTURES / "inspect.eval").read_bytes()
    path = tmp_path / "log.eval"
    path.write_bytes(whole[:-100])
    with pytest.raises(DatasetError, match="not a readable zip"):
        load(path)
    for start in range(0, len(whole), step):
        path.write_bytes(whole[:start] + b"\xff\x00\x13" + whole[start + 3 :])
        with contextlib.suppress(DatasetError):
            load(path)
    # a frame of one repeated byte that unpacks to 2 GB, in an archive that states 20 bytes
    block = struct.pack("<I", (1 << 17) << 3 | 1 << 1)[:3] + b"0"
    frame = b"\x28\xb5\x2f\xfd\x00\x58" + block * 16_000 + b"\x01\x00\x00"
    # a frame to skip, whose content resembles the header of one stored block around the frame above
    hidden = b"\0" + (1 | 252 + len(frame) << 3).to_bytes(3, "little")
    skipped = struct.pack("<II", 0x184D2A50, 256) + hidden.ljust(256, b"\0")
    first = b"\x28\xb5\x2f\xfd\x00\x58\x19\x00\x00{}\n"
    for packed, why in (
        (frame, "to 2,097,152,000 bytes"),
        (first + skipped + frame, "other than frames"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("samples/a.json", packed)
        data = bytearray(path.read_bytes())
        for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            at = data.find(signature)
            data[at + offset : at + offset + 2] = struct.pack("<H", 93)
        path.write_bytes(data)
        rows, loaded = load(path)
        assert not rows
        assert loaded.skipped == {"sample not read": 1}
        assert why in loaded.places["why"][0]


@pytest.mark.parametrize(
    "broken", [None, 3, [[]], {"arrayValue": {"values": 1.5}}, {"arrayValue": 1}]
)
def test_spans_and_documents_of_other_types(tmp_path, broken):
    path = tmp_path / "x.json"
    document = {"traceId": "1", "attributes": [{"key": "gen_ai.input.messages", "value": broken}]}
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [document]}]}]}))
    lab = memlab.open()
    loaded = lab.load(path, format="spans")
    assert loaded.skipped or loaded.left_out == {"span without messages": 1}
    path.write_text("[1, 2]")
    for name in ("discord", "telegram", "inspect", "slack"):
        with pytest.raises(DatasetError, match=r"x\.json"):
            lab.load(path, format=name)
