"""``memlab view``: a process that serves a lab to this machine alone, and a folder that needs no Python."""

import asyncio
import base64
import io
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import polars as pl
import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

import memlab
from memlab.ui import widgets
from memlab.ui.widgets.view import write_bundle

pytestmark = pytest.mark.long

STATIC = Path(widgets.__file__).parent / "static"


@pytest.fixture
def agent(tmp_path):
    """Write a lab to disk with the shipped embedder, as an agent leaves it."""
    with memlab.open(tmp_path / "agent.memlab") as lab:
        lab.remember(["The user prefers tabs", "<b>Deploys</b> go out </script> on Tuesdays"])
        lab.feedback(lab.recall("tabs or spaces?")[0], "success")
    return tmp_path / "agent.memlab"


@pytest.fixture
def viewed(agent):
    """Start ``memlab view`` as a process and return its address."""
    started = []

    def start(*words):
        command = [
            sys.executable,
            "-m",
            "memlab",
            "view",
            str(agent),
            "--no-open",
            "--json",
            *words,
        ]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        line = process.stdout.readline()
        assert line, process.stderr.read()
        return json.loads(line), process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def status(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


class Tab:
    """The browser's side of the websocket of one widget."""

    def __init__(self, url, bundle, **headers):
        self.runner = asyncio.Runner()
        address = url.replace("http://", "ws://").replace("/?", f"/live/{bundle}?")

        async def connect():
            return await websocket_connect(HTTPRequest(address, headers=headers))

        try:
            self.socket = self.runner.run(connect())
        except BaseException:
            self.runner.close()
            raise

    async def _frame(self):
        return await asyncio.wait_for(self.socket.read_message(), 60)

    def read(self):
        """Return the message and the buffers of the next frame."""
        frame = self.runner.run(self._frame())
        assert frame is not None, self.socket.close_reason
        size = int.from_bytes(frame[:4], "big")
        head, at, buffers = json.loads(frame[4 : 4 + size]), 4 + size, []
        for length in head["sizes"]:
            buffers.append(frame[at : at + length])
            at += length
        return head["data"], buffers

    def ask(self, verb, **arguments):
        message = {"method": "custom", "content": {"id": 1, "verb": verb, "arguments": arguments}}

        async def send():
            await self.socket.write_message(json.dumps(message))

        self.runner.run(send())
        while True:
            data, _ = self.read()
            if data["method"] == "custom":
                return data["content"]

    def trait(self, name):
        """Return the next value of a trait."""
        while True:
            data, _ = self.read()
            if data["method"] == "update" and name in data["state"]:
                return data["state"][name]

    def close(self):
        async def end():
            self.socket.close()
            while await self.socket.read_message() is not None:
                pass

        self.runner.run(end())
        self.runner.close()


def test_the_view_serves_this_machine_alone_with_a_token_and_ends_on_ctrl_c(viewed):
    told, process = viewed()
    url = told["url"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", url)
    port = url.split(":")[2].split("/")[0]
    assert status(url) == 200
    assert status(url, Host=f"localhost:{port}") == 200
    assert status(url.partition("?")[0]) == 403
    assert status(url[:-1] + ("a" if url[-1] != "a" else "b")) == 403
    assert status(url + "x") == 403
    assert status(url, Host=f"evil.example:{port}") == 403
    assert status(url, Origin="http://evil.example") == 403
    assert status(url.partition("?")[0] + "static/page.js", Host="evil.example") == 403
    with urllib.request.urlopen(url) as page:
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert process.stderr.read() == ""


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}])
def test_a_websocket_of_another_page_is_refused(viewed, headers):
    told, _ = viewed()
    with pytest.raises(Exception, match="403"):
        Tab(told["url"], "explorer", **headers)
    with pytest.raises(Exception, match="403"):
        Tab(told["url"].replace("token=", "token=x"), "explorer")


def test_the_view_is_read_only_by_default(viewed, agent):
    told, process = viewed()
    tab = Tab(told["url"], "explorer")
    state = tab.read()[0]["state"]
    assert "view it with --write" in state["read_only"]
    assert not state["_about"]["loggable"]
    asked = {"question": "tabs?", "limit": 3, "pack": "", "at": "", "log": True}
    tab.ask("recall", **asked)
    assert "logged recall" in tab.ask("feedback", memory=1, outcome="success")["error"]
    tab.close()
    board = Tab(told["url"], "board")
    refused = board.ask(
        "challenge", policy="companion", design="extra", extra=1, rate=1.0, reason=""
    )
    assert "read" in refused["error"]
    board.close()
    process.send_signal(signal.SIGINT)
    process.wait(30)
    told, _ = viewed("--write")
    tab = Tab(told["url"], "explorer")
    assert tab.read()[0]["state"]["read_only"] == ""
    tab.ask("recall", **asked)
    assert "error" not in tab.ask("feedback", memory=1, outcome="success")
    tab.close()
    with memlab.open(agent, read_only=True) as lab:
        assert lab.slates().feedback.collect().height == 2


def test_the_view_follows_a_writing_agent_and_a_purge(viewed, agent):
    told, _ = viewed()
    tab = Tab(told["url"], "explorer")
    tab.read()
    tab.ask("recall", question="where does the harbour lie?", limit=3, pack="", at="")
    with memlab.open(agent) as lab:
        new = lab.remember("The harbour lies in the north")
        assert tab.trait("_about")["memories"] == 3
        lab.purge(new)
    for _ in range(3):
        data, buffers = tab.read()
        if data["method"] == "update" and ["_hits"] in data["buffer_paths"]:
            hits = pl.read_ipc_stream(io.BytesIO(buffers[data["buffer_paths"].index(["_hits"])]))
            if new.id not in hits["id"]:
                break
    assert new.id not in hits["id"]
    assert "north" not in " ".join(hits["text"])
    tab.close()


def test_a_port_that_is_taken_is_said(run, agent):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = run("view", agent, "--no-open", "--port", taken.getsockname()[1])
    assert result.exit_code == 1
    assert "is taken: choose another" in result.output


@pytest.mark.parametrize(
    ("words", "code"), [(["nowhere"], 1), (["{agent}", "--bundle", "x", "--write"], 2)]
)
def test_wrong_calls_are_refused(run, agent, words, code):
    assert run("view", *(word.format(agent=agent) for word in words), "--no-open").exit_code == code


def test_a_folder_holds_the_bundles_as_they_are_and_what_the_widgets_show(json_of, agent, tmp_path):
    result = Path(json_of("view", agent, "--bundle", tmp_path / "out")["index"])
    assert result == tmp_path / "out" / "index.html"
    names = [getattr(widgets, name).bundle for name in widgets.SHIPPED]
    for name in ("page", *names):
        assert (result.parent / "static" / f"{name}.js").read_bytes() == (
            STATIC / f"{name}.js"
        ).read_bytes()
    texts = json.loads(
        (result.parent / "bundles.js")
        .read_text()
        .removeprefix("globalThis.memlabBundles = ")
        .rstrip(";\n")
    )
    assert texts == {name: (STATIC / f"{name}.js").read_text() for name in names}
    state = json.loads(
        (result.parent / "state.js")
        .read_text()
        .removeprefix("globalThis.memlabState = ")
        .rstrip(";\n")
    )
    hits = pl.read_ipc_stream(io.BytesIO(base64.b64decode(state["explorer"]["tables"]["_hits"])))
    assert hits["id"][0] == 1
    assert state["explorer"]["values"]["question"] == "tabs or spaces?"
    page = result.read_text()
    assert page.count("</script>") == 3
    assert "https://" not in page
    assert "http://" not in page


def test_an_empty_lab_becomes_a_folder_too(lab, tmp_path):
    assert write_bundle(lab, tmp_path / "out").is_file()


def test_a_folder_that_cannot_be_written_is_said(lab, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(memlab.MemlabError):
        write_bundle(lab, tmp_path / "file" / "out")
