"""Ask a server while other connections send half a request, nothing, or one byte a second.

    python -m tests.campaigns.half_open                                  # 1,200 connections to serve and to view
    python -m tests.campaigns.half_open --connections 300 --files 256 --seed 3

The server may open ``--files`` files. A client with the token asks it while the other connections are made and for ten
seconds afterwards. Then the others hang up in the middle of a body.

    slow        an answer took more than a second
    refused     an honest request got no answer
    lines       lines that the server wrote to standard error: fewer than 20 are permitted
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

import memlab

__all__ = ["Attacked", "attack"]

TOKEN = "a-token-of-the-campaign"
HEAD = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
BODY = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 900\r\n\r\n{{"

# what a connection sends, by kind
STARTS = {
    "nothing": "",
    "half a head": HEAD + "Content-",
    "half a body": HEAD + BODY,
    "half a body with the token": HEAD + f"Authorization: Bearer {TOKEN}\r\n" + BODY,
    "half a websocket": "GET /live/studio HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnec",
    "no HTTP": "\x16\x03\x01\x02",
}


class Attacked(NamedTuple):
    """The seconds of each honest request, those without an answer, and the lines of standard error."""

    seconds: list[float]
    refused: list[str]
    errors: list[str]
    files: int


def attack(
    command: str, *, connections: int, files: int, seed: int, patience: float = 10.0
) -> Attacked:
    """Start ``memlab serve`` or ``memlab view``, and ask it while connections of every kind are open."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        lab = Path(folder) / "lab"
        with memlab.open(lab) as opened:
            opened.remember("The user likes tea")
        words = (
            ["serve", str(lab), "--http"] if command == "serve" else ["view", str(lab), "--no-open"]
        )
        error = Path(folder) / "stderr"
        with error.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "memlab", *words, "--json"],
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=os.environ | {"MEMLAB_TOKEN": TOKEN},
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
            )
            assert process.stdout is not None
            try:
                url = json.loads(process.stdout.readline())["url"]
                return _attack(url, process.pid, dice, connections, patience, error)
            finally:
                process.kill()
                process.stdout.close()
                process.wait()


def _attack(
    url: str, process: int, dice: random.Random, connections: int, patience: float, error: Path
) -> Attacked:
    port = int(url.split(":")[2].partition("/")[0])
    seconds: list[float] = []
    refused: list[str] = []

    def ask() -> None:
        began = time.monotonic()
        try:
            with urllib.request.urlopen(_request(url), timeout=15) as answer:
                answer.read()
        except OSError as problem:
            refused.append(str(problem))
        seconds.append(time.monotonic() - began)

    ask()
    open_connections: list[socket.socket] = []
    with contextlib.ExitStack() as stack:
        for number in range(connections):
            kind = dice.choice(list(STARTS.values()))
            connection = stack.enter_context(
                socket.create_connection(("127.0.0.1", port), timeout=15)
            )
            open_connections.append(connection)
            _send(connection, kind.format(port=port))
            if number % 100 == 99:
                ask()
        files = len(list(Path(f"/proc/{process}/fd").iterdir()))
        ends = time.monotonic() + patience
        while time.monotonic() < ends:
            for connection in open_connections:
                _send(connection, "a")
            ask()
            time.sleep(1)
    for _ in range(200):
        with socket.create_connection(("127.0.0.1", port), timeout=15) as connection:
            _send(connection, STARTS["half a body with the token"].format(port=port))
    ask()
    time.sleep(1)
    return Attacked(seconds, refused, error.read_text(errors="replace").splitlines(), files)


def _request(url: str) -> urllib.request.Request:
    """Return a recall of ``memlab serve``, or the page of ``memlab view``."""
    if "token=" in url:
        return urllib.request.Request(url)
    call = {"name": "recall", "arguments": {"query": "tea"}}
    return urllib.request.Request(
        url,
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode(),
        {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        },
    )


def _send(connection: socket.socket, text: str) -> None:
    """Send a text, unless the server has ended the connection."""
    with contextlib.suppress(OSError):
        connection.sendall(text.encode("latin-1"))


def main() -> int:
    """Run the campaign; the status is 1 if an honest client waited or the server wrote much."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", type=int, default=1_200)
    parser.add_argument("--files", type=int, default=1_024)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (options.connections + 100,) * 2)
    failed = False
    for command in ("serve", "view"):
        result = attack(
            command, connections=options.connections, files=options.files, seed=options.seed
        )
        slow = sum(seconds > 1 for seconds in result.seconds)
        print(
            f"{command:6} {len(result.seconds)} requests, slowest {max(result.seconds):.2f} s, {slow} slow, "
            f"{len(result.refused)} refused, {result.files} open files, {len(result.errors)} lines on stderr"
        )
        for line in [*result.refused[:3], *result.errors[:3]]:
            print(f"       {line[:150]}")
        failed |= bool(slow or result.refused or len(result.errors) >= 20)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
