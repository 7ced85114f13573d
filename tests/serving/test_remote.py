"""A lab that another process serves, from Python: the real server, killed and away; servers that lie; addresses."""

import dataclasses
import inspect
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import polars as pl
import pytest
from pydantic import ValidationError
from running import TOKEN, serving

import memlab
from memlab.errors import (
    InputError,
    LabUnavailable,
    MemlabError,
    NotPermitted,
    PolicyError,
    ReadOnlyLab,
    UnknownName,
)
from memlab.io.serving import connect, describe_error, restore_error
from memlab.io.serving.forms import LONGEST_REQUEST
from tests.displays import html_of

pytestmark = pytest.mark.long

CLIENTS = """
[ada]
token = "the-token-of-ada-0"
role = "member"

[bob]
token = "the-token-of-bob-0"
role = "owner"

[guest]
token = "the-token-of-a-guest"
role = "reader"
project = "api"
"""


def address(process):
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return json.loads(line)["url"]


@contextmanager
def served(folder, *words):
    """Yield the address of a real server, and its process."""
    with serving(folder, "--http", "--json", *words) as process:
        yield address(process), process


def test_the_verbs_of_a_lab_in_another_process(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMLAB_TOKEN", TOKEN)
    with served(tmp_path / "agent.memlab") as (url, _):
        lab = connect(url.removesuffix("/mcp"))
        assert repr(lab) == f"<RemoteLab {url}>"
        stored = lab.remember(
            "I indent with four spaces", kind="preference", tags=["style"], project=None
        )
        assert (stored.id, stored.outcome, stored.superseded) == (1, "added", ())
        lab.remember("Deploys go out on Tuesdays from the release branch", project="api")
        hits = lab.recall("how should I indent?", limit=2)
        assert (hits.ids[0], hits[0].text, hits[0].tags) == (
            1,
            "I indent with four spaces",
            ("style",),
        )
        assert (len(hits), hits[0].score >= hits[-1].score) == (2, True)
        assert 0 <= hits.known <= 1
        assert hits.frame.select("rank", "memory_id", "text", "ref").row(0) == (
            1,
            1,
            hits[0].text,
            None,
        )
        assert "four spaces" in repr(hits)
        with pytest.raises(IndexError):
            hits[2]
        assert lab.recall("how should I indent?", limit=1, session="a").ids == (1,)
        judged = lab.feedback(hits[0], "success", recall=hits.recall).judged
        assert [(item.memory, item.outcome, item.recall) for item in judged] == [
            (1, "success", hits.recall)
        ]
        answered = lab.feedback(recall=hits.recall, answer="You indent with four spaces.")
        assert answered.judged == ()
        assert answered.credited != ()
        context = lab.context("format the code", budget=800)
        assert "four spaces" in context.text
        assert context.tokens <= 800
        right = lab.remember("I indent with tabs", replaces=stored.id)
        assert (right.outcome, right.superseded) == ("replaced", (1,))
        assert lab.remember("My key is AKIAIOSFODNN7EXAMPLE").redacted == ("AWS access key",)
        assert lab.forget([right, 2]).forgotten == (2, right.id)
        assert lab.forget(2).unchanged == (2,)
        assert (
            lab.recall("when do deploys go out?", project="api")
            .frame.filter(pl.col("memory_id") == 2)
            .is_empty()
        )
    with memlab.load(tmp_path / "agent.memlab") as local:
        assert local.memories["success"].to_list()[0] == 1


def test_results_are_frozen_and_verbs_say_what_they_take(tmp_path):
    with served(tmp_path / "agent.memlab") as (url, _):
        lab = connect(url, token=TOKEN)
        stored, hits = lab.remember("tabs"), lab.recall("tabs")
    for change in (lambda: setattr(stored, "id", 2), lambda: setattr(hits[0], "text", "spaces")):
        with pytest.raises(ValidationError):
            change()
    for result, name in ((hits, "query"), (lab, "url")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, name, "x")
    assert list(inspect.signature(lab.recall).parameters) == [
        "query",
        "limit",
        "project",
        "session",
        "again",
    ]
    assert list(inspect.signature(lab.context).parameters)[:2] == ["task", "budget"]


def test_a_wrong_call_raises_what_a_local_call_raises(tmp_path):
    with served(tmp_path / "agent.memlab") as (url, _):
        lab = connect(url, token=TOKEN)
        with pytest.raises(UnknownName, match='There is no memory "99"') as caught:
            lab.forget(99)
        assert (caught.value.what, caught.value.name) == ("memory", "99")
        with pytest.raises(UnknownName, match="There is no logged recall"):
            lab.feedback(outcome="fail", recall=77)
        with pytest.raises(InputError, match="Give an `outcome`"):
            lab.feedback([1])
        with pytest.raises(InputError, match=r'no argument "limt"\. Did you mean limit'):
            lab.recall("tabs", limt=3)
        with pytest.raises(InputError, match="lone surrogate"):
            lab.remember("\ud800")
        with pytest.raises(UnknownName, match="kind"):
            lab.remember("tabs", kind="prefrence")
        with pytest.raises(InputError, match="the maximum is"):
            lab.remember("x" * LONGEST_REQUEST)
        with pytest.raises(InputError, match="bytes"):
            lab.remember("x" * 1_100_000)
        with pytest.raises(NotPermitted, match="refuses the token"):
            connect(url, token="another-token-of-16").remember("spaces")
        connect(url.replace("127.0.0.1", "localhost"), token=TOKEN).remember("tabs")
    with (
        served(tmp_path / "agent.memlab", "--read-only") as (url, _),
        pytest.raises(ReadOnlyLab, match="not available here"),
    ):
        connect(url, token=TOKEN).remember("spaces")
    with memlab.load(tmp_path / "agent.memlab") as local:
        assert local.memories["text"].to_list() == ["tabs"]


def test_two_identities_do_not_see_what_is_private_to_the_other(tmp_path):
    folder, clients = tmp_path / "agent.memlab", tmp_path / "clients.toml"
    clients.write_text(CLIENTS)
    clients.chmod(0o600)
    words = "The password hint is the name of the goat"
    with memlab.open(folder) as local:
        for who in ("agent:ada", "agent:bob"):
            local.remember(f"{words} of {who[6:]}", creator=who, visibility="private")
        local.remember("Everybody feeds the goat")
        local.remember("The pager of billing rings at night", project="billing")
    with served(folder, "--clients", str(clients)) as (url, _):
        ada, bob, guest = (
            connect(url, token=f"the-token-of-{item}") for item in ("ada-0", "bob-0", "a-guest")
        )
        # a private memory's own words, so that its vector is the nearest there is
        assert set(ada.recall(f"{words} of bob", limit=10).ids) == {1, 3, 4}
        assert set(bob.recall(f"{words} of ada", limit=10).ids) == {2, 3, 4}
        assert set(guest.recall(words, limit=10).ids) == {3}
        assert "of bob" not in ada.context("feed the goat of bob").text
        recall = bob.recall("which goat?").recall
        for call in (
            lambda: ada.forget(2),
            lambda: ada.remember("The hint is mine now", replaces=2),
            lambda: ada.feedback(2, "fail"),
            lambda: ada.feedback(recall=recall, outcome="fail"),
        ):
            with pytest.raises(UnknownName):
                call()
        for call in (
            lambda: guest.remember("tabs"),
            lambda: guest.recall("pager", project="billing"),
            lambda: ada.forget(3),
        ):
            with pytest.raises(NotPermitted):
                call()
        bob.remember("Bob met the goat")
        with pytest.raises(InputError, match='no argument "creator"'):
            ada.remember("Bob said so", creator="agent:bob")
    with memlab.load(folder) as local:
        assert local.memories["status"].unique().to_list() == ["active"]
        assert local.memories["creator"].to_list()[-1] == "agent:bob"


def test_a_server_that_is_killed_is_away_and_found_again(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    folder, port = tmp_path / "agent.memlab", free_port()
    lab = connect(f"http://127.0.0.1:{port}", token=TOKEN, timeout=20)
    away(lab, sent=False)
    with served(folder, "--port", str(port)) as (_, process):
        lab.remember("The user prefers tabs")
        process.send_signal(signal.SIGSTOP)
        outcome = []
        sent = on_sending(monkeypatch)
        call = threading.Thread(
            target=lambda: outcome.append(caught_from(lab.remember, "The user prefers tea"))
        )
        call.start()
        assert sent.wait(20)  # the request is in the socket of a server that does not read it
        slow = dataclasses.replace(lab, timeout=1.0)
        begun = time.monotonic()
        away(slow, sent=True)
        assert time.monotonic() - begun < 5
        process.kill()
        process.wait()
        call.join(20)
        assert isinstance(outcome[0], LabUnavailable)
        assert (outcome[0].sent, "may have executed the request" in str(outcome[0])) == (True, True)
        away(lab, sent=False)
    with served(folder, "--port", str(port)):
        assert lab.recall("tabs or spaces?")[0].text == "The user prefers tabs"
        assert lab.remember("The user prefers coffee").outcome == "added"
    assert list(elsewhere.iterdir()) == []
    with memlab.load(folder) as local:  # nothing was sent again
        assert local.memories["text"].to_list() == [
            "The user prefers tabs",
            "The user prefers coffee",
        ]
    assert memlab.check(folder).sound


def test_the_disk_of_the_server_goes_away(tmp_path):
    folder = tmp_path / "agent.memlab"
    memlab.open(folder).close()
    with served(folder, "--existing") as (url, _):
        lab = connect(url, token=TOKEN)
        lab.remember("The user prefers tabs")
        folder.rename(tmp_path / "away")
        for call in (
            lambda: lab.remember("spaces"),
            lambda: lab.recall("tabs"),
            lambda: lab.context("format"),
        ):
            with pytest.raises(LabUnavailable, match="out of reach"):
                call()
        assert not folder.exists()
        (tmp_path / "away").rename(folder)
        assert lab.recall("tabs").ids == (1,)


def away(lab, *, sent):
    for verb in (
        lab.remember,
        lab.recall,
        lab.context,
        lambda _: lab.forget(1),
        lambda _: lab.feedback(1, "fail"),
    ):
        error = caught_from(verb, "tea")
        assert type(error) is LabUnavailable
        assert error.sent is sent
        assert lab.url in str(error)
        assert "Continue without memory" in str(error)
        if not sent:
            assert "Nothing was written, there or elsewhere" in str(error)
        else:
            return  # each takes its timeout


def caught_from(call, *arguments):
    with pytest.raises(MemlabError) as caught:
        call(*arguments)
    return caught.value


def on_sending(monkeypatch):
    """Return an event that is set when a request was sent and its answer is pending."""
    sent, wait = threading.Event(), HTTPConnection.getresponse
    monkeypatch.setattr(HTTPConnection, "getresponse", lambda self: (sent.set(), wait(self))[1])
    return sent


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@contextmanager
def lying(answer, context=None):
    """Run a server that answers every POST by ``answer(handler)``; yield its lab and the requests."""
    heard = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            heard.append(
                (
                    self.headers["Authorization"],
                    self.rfile.read(int(self.headers["Content-Length"])),
                )
            )
            answer(self)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_):
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_):
            pass

    with Quiet(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield connect(f"http://127.0.0.1:{server.server_port}", token=TOKEN, timeout=2.0), heard
        server.shutdown()


def sends(body, status=200, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(handler):
        handler.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": len(content),
            **headers,
        }.items():
            handler.send_header(name.replace("_", "-"), str(value))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def result(structured, **more):
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [], "structuredContent": structured, **more},
    }


def hit(**more):
    return {
        "id": 1,
        "text": "tabs",
        "kind": "fact",
        "created": "2026-03-01T12:00:00Z",
        "score": 0.5,
        **more,
    }


def recalled(**more):
    return result({"recall": 1, "memories": [hit(**more)]})


def drips(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)


def hangs_up(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)


def half(handler):
    sends(b"{", Content_Length=500)(handler)


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(40):
        handler.wfile.write(b" " * (1 << 20))


LIES = {
    "nothing": sends(b""),
    "garbage": sends(b"\xff\xfe\x00"),
    "a page": sends(b"<html>hotel wifi, please log in</html>"),
    "null": sends(b"null"),
    "nested": sends(b'{"jsonrpc": "2.0", "id": 1, "result": ' + b"[" * 200_000),
    "nested objects": sends(
        b'{"jsonrpc":"2.0","id":1,"result":{"structuredContent":' + b'{"a":' * 100_000
    ),
    "another id": sends({**recalled(), "id": 2}),
    "no result": sends({"jsonrpc": "2.0", "id": 1}),
    "no answer": sends(result(None)),
    "an empty answer": sends(result({})),
    "another tool's": sends(result({"forgotten": [], "unchanged": []})),
    "a number too large": sends(recalled(id=1 << 70)),
    "half a character": sends(json.dumps(recalled(text="?")).replace("?", "\\ud800").encode()),
    "a text for a score": sends(recalled(score="high")),
    "half of it": half,
    "endless": endless,
    "drips": drips,
    "hangs up": hangs_up,
    "status 500": sends(b"oops", 500),
    "status 204": sends(b"", 204),
    "no http": lambda handler: handler.wfile.write(b"220 mail ready\r\n\r\n"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_server_that_lies_is_no_lab(name):
    with lying(LIES[name]) as (lab, heard):
        begun = time.monotonic()
        error = caught_from(lab.recall, "tabs")
        assert (type(error), error.sent) == (LabUnavailable, True)
        assert time.monotonic() - begun < 6
        assert len(heard) == 1  # nothing is sent again


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, NotPermitted, "refuses the token"),
        (403, NotPermitted, "refuses the token"),
        (404, LabUnavailable, "there is no memlab server"),
        (413, LabUnavailable, "too large"),
        (421, LabUnavailable, "a tunnel needs the same port"),
        (302, LabUnavailable, "a token is not sent elsewhere"),
        (307, LabUnavailable, "a token is not sent elsewhere"),
        (418, LabUnavailable, "status 418"),
    ],
)
def test_a_refusal_wrote_nothing_and_no_redirection_is_followed(status, kind, words):
    with lying(sends(recalled())) as (target, stolen):
        with lying(sends(b"", status, Location=target.url)) as (lab, heard):
            error = caught_from(lab.remember, "tabs")
        assert (type(error), len(heard), stolen) == (kind, 1, [])
        assert words in str(error)
        assert not getattr(error, "sent", False)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_no_token_goes_to_a_server_whose_certificate_is_not_trusted(tmp_path):
    names = [
        "-keyout",
        tmp_path / "key.pem",
        "-out",
        tmp_path / "cert.pem",
        "-subj",
        "/CN=localhost",
    ]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *names],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with lying(sends(recalled()), context) as (lab, heard):
        secure = connect(lab.url.replace("http:", "https:"), token=TOKEN, timeout=5)
        error = caught_from(secure.remember, "tabs")
    assert (type(error), error.sent, heard) == (LabUnavailable, False, [])
    assert "certificate" in str(error)


def test_https_to_a_server_that_speaks_none():
    with lying(sends(recalled())) as (lab, heard):
        error = caught_from(
            connect(lab.url.replace("http:", "https:"), token=TOKEN, timeout=5).remember, "tabs"
        )
    assert (type(error), heard) == (LabUnavailable, [])


def test_text_of_a_server_is_data():
    wild = "<script>alert(1)</script>\x1b[2J\u202e"
    with lying(sends(recalled(text=wild, kind="<b>", ref=wild, tags=[wild]))) as (lab, _):
        hits = lab.recall("<i>")
    html = html_of(hits)
    assert [item for item in ("<script", "<b>", "<i>", "\x1b") if item in html] == []
    assert "\x1b" not in repr(hits) + hits[0].text + hits[0].tags[0] + hits[0].ref + str(hits.frame)
    with lying(
        sends(
            result(None, isError=True, content=[{"type": "text", "text": f"{wild}{'x' * 100_000}"}])
        )
    ) as (
        lab,
        _,
    ):
        error = caught_from(lab.recall, "tabs")
    assert type(error) is MemlabError
    assert "\x1b" not in str(error)
    assert len(str(error)) < 3_000
    fault = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": wild}}
    with lying(sends(fault)) as (lab, _):
        error = caught_from(lab.recall, "tabs")
    assert (type(error), "\x1b" in str(error)) == (MemlabError, False)


@pytest.mark.parametrize(
    "extra", [None, 5, {}, {"memlab/error": 5}, {"memlab/error": {"class": "SystemExit"}}]
)
def test_a_refusal_that_names_no_class_of_memlabs_is_a_memlab_error(extra):
    with lying(
        sends(result(None, isError=True, **({} if extra in (None, 5) else {"_meta": extra})))
    ) as (lab, _):
        assert type(caught_from(lab.recall, "tabs")) is MemlabError
    assert type(restore_error(extra, "why")) is MemlabError


@pytest.mark.parametrize("name", memlab.errors.__all__)
def test_every_error_is_restored_as_its_class(name):
    cls = getattr(memlab.errors, name)
    if not (isinstance(cls, type) and issubclass(cls, MemlabError)):
        return
    given = (
        ("pack", "old")
        if issubclass(cls, UnknownName)
        else ("a", "b", "c")
        if name == "MissingExtra"
        else ("why",)
    )
    error = cls(*given)
    again = restore_error(json.loads(json.dumps(describe_error(error))), str(error))
    assert type(again) is (MemlabError if name == "MissingExtra" else cls)
    assert str(error) in str(again) or issubclass(cls, PolicyError)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://127.0.0.1/mcp", "with http or https"),
        ("file:///etc/passwd", "with http or https"),
        ("127.0.0.1:8765", "with http or https"),
        ("http://", "with http or https"),
        ("http://127.0.0.1:99999", "An address has the form"),
        ("http://[::1", "An address has the form"),
        ("http://ada:word@127.0.0.1:8765", "without a name, a password"),
        ("http://127.0.0.1:8765/mcp?token=x", "a query"),
        ("http://127.0.0.1:8765/mcp#x", "a fragment"),
        ("http://127.0.0.1:8765/a b", "ASCII without spaces"),
        ("http://127.0.0.1:8765/\r\nX: y", "ASCII without spaces"),
        ("http://127.0.0.1:0", "a port of at least 1"),
        ("http://memory.example:8765", "Plain http"),
        ("http://127.0.0.1.example:8765", "Plain http"),
        ("http://0.0.0.0:8765", "Plain http"),
    ],
)
def test_an_address_that_a_token_is_not_sent_to(url, words):
    with pytest.raises(InputError, match=words):
        connect(url, token=TOKEN)


def test_the_arguments_of_connect(monkeypatch):
    monkeypatch.delenv("MEMLAB_TOKEN", raising=False)
    assert connect("https://memory.example", token=TOKEN).url == "https://memory.example/mcp"
    assert (
        connect("http://memory.example/x/", token=TOKEN, insecure=True).url
        == "http://memory.example/x/"
    )
    assert connect("http://[::1]:8765", token=TOKEN).url == "http://[::1]:8765/mcp"
    with pytest.raises(InputError, match="MEMLAB_TOKEN"):
        connect("http://127.0.0.1:8765")
    for given in (
        {"token": "short"},
        {"token": "sixteen letters\r\nX: y"},
        {"token": TOKEN, "timeout": 0},
    ):
        with pytest.raises(InputError):
            connect("http://127.0.0.1:8765", **given)
    assert TOKEN not in repr(connect("http://127.0.0.1:8765", token=TOKEN))


def test_without_the_extra_it_says_what_to_install(tmp_path):
    script = (
        "import sys; sys.modules['pydantic'] = None\n"
        "import memlab; from memlab.io.serving import connect\n"
        "try: connect('http://127.0.0.1:1', token='x' * 16)\n"
        "except memlab.errors.MissingExtra as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=True
    )
    assert "pip install 'memlab-core[mcp]'" in done.stdout
