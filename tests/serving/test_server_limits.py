"""Limits of ``memlab serve``: half-sent and broken requests, and long lines of standard input."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from running import TOKEN, serving

import memlab
from memlab.io.serving import _limits
from memlab.io.serving.forms import RecallForm

HEAD = (
    "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
    "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
)
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


class Served:
    """A server over HTTP, and requests to it."""

    def __init__(self, process: Any) -> None:
        self.process = process
        self.port = int(json.loads(process.stdout.readline())["url"].split(":")[2].split("/")[0])

    def ask(self) -> float:
        """Recall as a client with a token; return the seconds."""
        began = time.monotonic()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/mcp",
            json.dumps(
                {**CALL, "params": {"name": "recall", "arguments": {"query": "tea"}}}
            ).encode(),
            {
                "Authorization": f"Bearer {TOKEN}",
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
            },
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert json.loads(answer.read())["result"]["isError"] is False
        return time.monotonic() - began

    def connect(self, text: str) -> socket.socket:
        """Send a part of a request."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        with contextlib.suppress(ConnectionError):
            connection.sendall(text.format(port=self.port, token=TOKEN).encode())
        return connection

    def count_files(self) -> int:
        """Return the number of open files of the server."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def read_errors(self) -> list[str]:
        """Return the lines on standard error so far."""
        text = b""
        while select.select([self.process.stderr], [], [], 1.5)[0]:
            part = os.read(self.process.stderr.fileno(), 1 << 16)
            if not part:
                break
            text += part
        return text.decode().splitlines()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    memlab.open(tmp_path / "lab").close()
    with serving(tmp_path / "lab", "--http", "--json") as process:
        yield Served(process)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit, which Linux has")
def test_half_sent_heads_keep_no_client_out(served: Served) -> None:
    resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, (256, 256))
    served.ask()
    halves = [served.connect("POST /mcp HTTP/1.1\r\nHost: 127") for _ in range(400)]
    assert served.ask() < 5
    # 256 open files permit 32 connections
    assert served.count_files() < 100
    whole = [served.connect(HEAD + "Content-Length: 90\r\n\r\n{{") for _ in range(100)]
    assert served.ask() < 5
    assert served.count_files() < 100
    for connection in (*halves, *whole):
        connection.close()
    assert served.ask() < 5
    assert len(served.read_errors()) < 20


@pytest.mark.long
def test_a_connection_that_breaks_leaves_no_traceback(served: Served) -> None:
    for _ in range(20):
        served.connect(HEAD + "Content-Length: 90\r\n\r\n{{").close()
    for text in ("nonsense\r\n\r\n", "GET / HTTP/1.1\r\nX: " + "a" * 100_000, "\0" * 10):
        served.connect(text).close()
    served.ask()
    errors = served.read_errors()
    assert len(errors) <= 1
    assert "Traceback" not in "".join(errors)


@pytest.mark.long
def test_a_head_that_is_late_is_closed(served: Served) -> None:
    late = served.connect("POST /mcp HTTP/1.1\r\nHost: 127")
    body = served.connect(HEAD + "Content-Length: 90\r\n\r\n{{")
    assert late.recv(10) == b""
    with contextlib.suppress(ConnectionError):
        assert b"200" not in body.recv(100)
    late.close()
    body.close()
    (line,) = served.read_errors()
    assert "before their request was complete" in line
    served.ask()


@pytest.mark.long
def test_a_long_line_is_skipped_and_the_next_one_answered(tmp_path: Path) -> None:
    memlab.open(tmp_path / "lab").close()
    with serving(tmp_path / "lab") as process:
        for length in (_limits.MAX_LINE + 1, 16 * _limits.MAX_LINE):
            process.stdin.write(b"x" * length + b"\n")
            process.stdin.flush()
            error = json.loads(process.stdout.readline())["error"]
            assert f"at most {_limits.MAX_LINE:,} bytes" in error["message"]
        peak = Path(f"/proc/{process.pid}/status").read_text().split("VmHWM:")[1].split()[0]
        assert int(peak) < 400_000
        process.stdin.write(b"{broken\n")
        process.stdin.flush()
        assert "not JSON" in json.loads(process.stdout.readline())["error"]["message"]


@pytest.mark.parametrize("limit", ["9", 9.0, True, [9]])
def test_an_argument_of_another_type_is_refused(limit: object) -> None:
    with pytest.raises(ValidationError):
        RecallForm.model_validate({"query": "tea", "limit": limit})
    assert RecallForm.model_validate({"query": "tea", "limit": 9}).limit == 9


def test_the_number_of_connections_follows_the_limit_of_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from memlab.subjects.loopback import max_connections

    for files, expected in ((64, 16), (256, 32), (1_024, 128), (1 << 20, 256)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert max_connections() == expected


@pytest.mark.long
def test_half_an_emoji_in_a_request_does_not_lose_its_answer(tmp_path: Path) -> None:
    memlab.open(tmp_path / "lab").close()
    params = '{"name": "remember", "arguments": {"text": "%s"}}'
    text = r"cut \ud83d, whole \ud83d\ude00, low \uDE00, quoted \\ud83d \\\ud83d end\\"
    lines = (
        '{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", '
        '"capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}}',
        '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        f'{{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {params % text}}}',
    )
    with serving(tmp_path / "lab") as process:
        process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [answer["id"] for answer in answers] == [0, 7]
    with memlab.open(tmp_path / "lab") as lab:
        (stored,) = lab.memories["text"]
    assert stored == "cut \ufffd, whole \U0001f600, low \ufffd, quoted \\ud83d \\\ufffd end\\"
