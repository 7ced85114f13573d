"""``memlab serve`` as a process: over standard input and output, killed, fed with garbage; and over HTTP."""

import asyncio
import contextlib
import http.client
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from running import TOKEN, run_alone, serving

import memlab

pytestmark = pytest.mark.long

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "garbage", "version": "1"},
}
ROUNDS = 8


class Wire:
    """The lines of a client that keeps to nothing."""

    def __init__(self, process):
        self._process, self._id = process, 0

    def send(self, line):
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._process.stderr.read()
        return json.loads(answer)

    def ask(self, method, **params):
        self._id += 1
        asked = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        answer = self.send(json.dumps(asked).encode())
        assert answer["id"] == self._id
        return answer

    def call(self, tool, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]


BROKEN = [
    b"{broken",
    b"\xff\xfe\x00",
    b"",
    b"[" * 100_000,
    b'{"text": "\\ud800"}',
    b"null",
    b"[1]",
    b'{"jsonrpc": "2.0"}',
]


def test_garbage_is_answered_and_a_kill_loses_nothing_that_was_acknowledged(tmp_path):
    with serving(tmp_path / "agent.memlab") as process:
        wire = Wire(process)
        assert {wire.send(line)["error"]["code"] for line in BROKEN} == {-32700, -32600}
        wire.ask("initialize", **INITIALIZE)
        assert {wire.send(line)["error"]["code"] for line in BROKEN} == {-32700, -32600}
        assert wire.ask("no/such/method")["error"]["code"] == -32601
        assert wire.ask("tools/call", name=5)["error"]["code"] == -32602
        assert wire.ask("tools/call", name="recall", arguments=[])["error"]["code"] == -32602
        assert wire.call("no-such-tool")["isError"]
        assert (
            "10,000,000 bytes" in wire.call("remember", text="x" * 10_000_000)["content"][0]["text"]
        )
        assert wire.call("recall", query="\x1b[2J")["structuredContent"]["memories"] == []
        stored = wire.call("remember", text="The user prefers tabs")["structuredContent"]
        process.kill()
        process.wait()
    with memlab.open(tmp_path / "agent.memlab") as lab:
        assert lab.memories["text"].to_list() == ["The user prefers tabs"]
        assert lab[stored["id"]].session.startswith("mcp-")
        assert memlab.check(tmp_path / "agent.memlab").sound


def status(url, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(
        url, data=data, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    try:
        with urllib.request.urlopen(asked) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


def status_of_size(url, size, **headers):
    """Return the status for a request that announces the size of its body and does not send it."""
    where = urllib.parse.urlsplit(url)
    asked = http.client.HTTPConnection(where.netloc)
    asked.putrequest("POST", where.path)
    arguments = {
        "Content-Length": str(size),
        "Content-Type": "application/json",
        "Accept": "application/json",
        **headers,
    }
    for name, value in arguments.items():
        asked.putheader(name, value)
    asked.endheaders()
    with contextlib.closing(asked):
        return asked.getresponse().status


def test_http_answers_who_has_the_token_and_asks_this_machine(tmp_path):
    right = {"Authorization": f"Bearer {TOKEN}"}
    json_only = {
        "Content_Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}

    async def session(url):
        async with (
            httpx2.AsyncClient(headers=right) as asking,
            Client(streamable_http_client(url, http_client=asking)) as client,
        ):
            stored = await client.call_tool("remember", {"text": "The user prefers tabs"})
            answer = await client.call_tool("recall", {"query": "tabs or spaces?"})
            return stored.structured_content["id"], answer.structured_content["memories"][0]["id"]

    with serving(tmp_path / "agent.memlab", "--http", "--json") as process:
        data = json.loads(process.stdout.readline())
        url = data["url"]
        assert (url.startswith("http://127.0.0.1:"), data["token"]) == (True, TOKEN)
        assert status(url, message, **json_only) == 401
        assert status(url, message, **json_only, Authorization="Bearer wrong") == 401
        assert status(url, message, **json_only, Authorization=TOKEN) == 401
        assert status(url.replace("/mcp", "/"), **right) == 404
        assert status(url, message, **json_only, **right, Host="attacker.example") == 421
        assert status(url, message, **json_only, **right, Origin="http://attacker.example") == 403
        assert status_of_size(url, 5_000_000, **right) == 413
        assert status(url, message, **json_only, **right) == 200
        assert run_alone(session(url)) == (1, 1)
        process.terminate()
        assert process.wait(20) in (0, -15)
    assert len(memlab.load(tmp_path / "agent.memlab")) == 1


CLIENTS = """
[ada]
token = "the-token-of-ada-0"
role = "member"

[guest]
token = "the-token-of-a-guest"
role = "reader"
viewer = "user"
"""


def test_each_client_has_its_token_and_its_role(tmp_path):
    file = tmp_path / "clients.toml"
    file.write_text(CLIENTS)
    file.chmod(0o600)

    async def session(url, token, messages):
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as asking,
            Client(streamable_http_client(url, http_client=asking)) as client,
        ):
            tools = {tool.name for tool in (await client.list_tools()).tools}
            stored = await client.call_tool("remember", {"text": messages})
            answer = await client.call_tool("recall", {"query": "tabs or spaces?"})
            return (
                tools,
                stored,
                [memory["text"] for memory in answer.structured_content["memories"]],
            )

    async def both(url):
        ada = await session(url, "the-token-of-ada-0", "The user prefers tabs")
        return ada, *await asyncio.gather(
            session(url, "the-token-of-a-guest", "The user prefers spaces"),
            session(url, "the-token-of-ada-0", "Deploys go out on Tuesdays"),
        )

    with serving(tmp_path / "agent.memlab", "--http", "--json", "--clients", str(file)) as process:
        data = json.loads(process.stdout.readline())
        assert "token" not in data
        assert status(data["url"], Authorization=f"Bearer {TOKEN}") == 401
        first, guest, ada = run_alone(both(data["url"]))
        process.terminate()
        assert process.wait(20) in (0, -15)
    assert ada[0] - guest[0] == {"remember", "forget", "feedback"}
    assert (first[1].is_error, guest[1].is_error, ada[1].is_error) == (False, True, False)
    assert "The user prefers tabs" in guest[2]
    with memlab.load(tmp_path / "agent.memlab") as lab:
        assert lab.memories.select("text", "creator").rows() == [
            ("The user prefers tabs", "agent:ada"),
            ("Deploys go out on Tuesdays", "agent:ada"),
        ]


def test_two_agents_and_a_notebook_live_on_one_lab_at_once(tmp_path):
    folder = tmp_path / "agent.memlab"
    memlab.open(folder).close()

    async def agent(name, finished):
        command = ["-m", "memlab", "serve", str(folder), "--viewer", f"agent:{name}"]
        process = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        async with Client(stdio_client(process)) as client:
            for number in range(ROUNDS):
                await client.call_tool(
                    "remember", {"text": f"Agent {name} did step {number} of its plan"}
                )
                answer = await client.call_tool(
                    "recall", {"query": f"what was step {number} of the plan?"}
                )
                said = answer.structured_content
                arguments = {
                    "recall": said["recall"],
                    "memories": [said["memories"][0]["id"]],
                    "outcome": "success",
                }
                assert not (await client.call_tool("feedback", arguments)).is_error
            await finished.wait()
            answer = await client.call_tool(
                "recall", {"query": "what did the notebook write in line 7?"}
            )
            live = json.loads((await client.read_resource("memlab://policies")).contents[0].text)
            return {memory["text"] for memory in answer.structured_content["memories"]}, live[
                "pack"
            ]

    def work():
        with memlab.open(folder) as lab:
            for number in range(ROUNDS):
                lab.remember(f"The notebook wrote line {number}")
                lab.recall(f"line {number}")
            lab.policies.use("companion", reason="a notebook may do so while agents are at work")

    async def notebook(finished):
        await asyncio.to_thread(work)
        await finished.wait()

    async def everybody():
        finished = asyncio.Barrier(3)
        return await asyncio.gather(
            agent("ada", finished), agent("bob", finished), notebook(finished)
        )

    # each knows what the others have written and decided
    for seen, pack in run_alone(everybody())[:2]:
        assert "The notebook wrote line 7" in seen
        assert pack == "companion"
    with memlab.open(folder) as lab:
        assert (
            lab.memories["creator"].fill_null("notebook").value_counts(sort=True)["count"].to_list()
            == [ROUNDS] * 3
        )
        assert len(lab.slates()) == 3 * ROUNDS + 2
        assert lab.memories["success"].sum() == 2 * ROUNDS
    assert memlab.check(folder).sound
