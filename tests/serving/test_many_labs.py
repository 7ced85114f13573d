"""A folder of labs behind one address: tokens, the labs that are open, and the audit log."""

import contextlib
import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_remote import address

import memlab
from memlab.errors import InputError, LabUnavailable, NotPermitted, UnknownName
from memlab.io.serving import audit, connect, read_audit_log
from memlab.io.serving._doors import RootDoor, default_capacity
from tests.embedders import letters


def write_clients(root, *, names=("ada", "bob"), more=""):
    path = root / "clients.toml"
    tables = [f'[{name}]\ntoken = "the-token-of-{name}-0"\nrole = "owner"\n' for name in names]
    path.write_text("\n".join(tables) + more, encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.fixture
def door(tmp_path):
    write_clients(tmp_path, names=("ada", "bob", "eve"))
    door = RootDoor(tmp_path, tmp_path / "clients.toml", 2, audit=True)
    yield door
    door.close()


def ask(door, name, run=len):
    with door.connect(door.find_client(f"the-token-of-{name}-0")) as connection:
        return run(connection.lab)


@pytest.mark.long
def test_few_labs_are_open_and_the_least_recent_is_closed(door, tmp_path):
    for name in ("ada", "bob"):
        ask(door, name, lambda lab: lab.remember("The door is blue"))
    ask(door, "ada")
    ask(door, "eve", lambda lab: lab.remember("a text of Eve"))
    assert list(door._labs) == ["ada", "eve"]
    assert ask(door, "bob") == 1  # opened again, with its memory
    assert list(door._labs) == ["eve", "bob"]


def test_a_lab_in_use_stays_open(door):
    with door.connect(door.find_client("the-token-of-ada-0")) as connection:
        ask(door, "bob")
        ask(door, "eve")
        assert list(door._labs) == ["ada", "eve"]
        assert len(connection.lab) == 0


@pytest.mark.long
def test_a_request_waits_until_a_lab_is_free(door):
    # the holders and the test meet when both labs are in use
    entered, leave, answers = threading.Barrier(3, timeout=30), threading.Event(), []

    def hold(name):
        with door.connect(door.find_client(f"the-token-of-{name}-0")):
            entered.wait()
            leave.wait(30)

    holders = [threading.Thread(target=hold, args=(name,)) for name in ("ada", "bob")]
    for holder in holders:
        holder.start()
    entered.wait()
    waiting = threading.Thread(target=lambda: answers.append(ask(door, "eve")))
    waiting.start()
    time.sleep(0.1)
    assert answers == []
    leave.set()
    for thread in (waiting, *holders):
        thread.join(30)
    assert answers == [0]


def test_clients_are_read_again_and_an_invalid_file_changes_nothing(door, tmp_path, capsys):
    assert door.find_client("the-token-of-zoe-0") is None
    write_clients(tmp_path, names=("ada", "zoe"))
    assert door.find_client("the-token-of-zoe-0").lab == "zoe"
    assert door.find_client("the-token-of-bob-0") is None
    (tmp_path / "clients.toml").write_text("[broken", encoding="utf-8")
    for _ in range(3):
        assert door.find_client("the-token-of-zoe-0").lab == "zoe"
    assert capsys.readouterr().err.count("The clients stay as they were") == 1
    (tmp_path / "clients.toml").chmod(0o644)
    assert door.find_client("the-token-of-ada-0").lab == "ada"


@pytest.mark.parametrize("name", ["../ada", "/etc", ".hidden", "a/b", "", "a\\nb", "x" * 200])
def test_a_lab_cannot_lie_elsewhere(tmp_path, name):
    path = write_clients(
        tmp_path, names=(), more=f'[a]\ntoken = "{"x" * 20}"\nrole = "owner"\nlab = "{name}"\n'
    )
    with pytest.raises(InputError, match="is not the name of a lab's folder"):
        RootDoor(tmp_path, path, 2, audit=False)


def test_a_file_of_tokens_that_others_can_read_is_refused(tmp_path):
    path = write_clients(tmp_path)
    path.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        RootDoor(tmp_path, path, 2, audit=False)


def test_capacity_follows_the_limit_of_open_files(monkeypatch):
    for files, labs in ((128, 5), (256, 26), (1024, 64), (64, 1)):
        monkeypatch.setattr("resource.getrlimit", lambda _, files=files: (files, files))
        assert default_capacity() == labs


# The audit log


def test_the_log_rotates_and_is_read_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "_FILE_BYTES", 1_000)
    log = audit.AuditLog(tmp_path)
    for number in range(60):
        log.record("agent:coder", "recall", [number])
    log.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["audit.jsonl", *(f"audit.jsonl.{number}" for number in range(1, 6))]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in tmp_path.iterdir())
    ids = [row[0] for row in read_audit_log(tmp_path)["ids"].to_list()]
    assert ids == list(range(ids[0], 60))
    assert len(ids) > 40


def test_refused_logins_are_counted(tmp_path):
    log = audit.AuditLog(tmp_path)
    for _ in range(500):
        log.refuse_login()
    log.close()
    frame = read_audit_log(tmp_path)
    assert frame.height <= 3
    assert frame["count"].sum() == 500
    assert frame["outcome"].unique().to_list() == ["refused"]


def test_a_damaged_log_is_refused_by_line(tmp_path):
    (tmp_path / "audit.jsonl").write_text('{"at": "2026-01-01T00:00:00+00:00"}\nnonsense\n')
    with pytest.raises(memlab.MemlabError, match=r"line 2: The audit log is damaged"):
        read_audit_log(tmp_path)


@pytest.mark.parametrize(
    "junk", ['{"at": 3}', "[]", "{}", '{"at": "2026-01-01", "ids": "x"}', "\x00"]
)
def test_no_line_raises_a_raw_error(tmp_path, junk):
    (tmp_path / "audit.jsonl").write_text(junk + "\n")
    with contextlib.suppress(memlab.MemlabError):
        read_audit_log(tmp_path)


def test_a_call_that_cannot_be_logged_fails(tmp_path):
    from memlab.io.serving._connection import Connection

    lab = memlab.open(embedder=letters)
    connection = Connection.from_lab(
        lab, project=None, viewer=None, session=None, audit=audit.AuditLog(tmp_path / "gone")
    )
    with pytest.raises(memlab.LabError, match="cannot be written to the audit log"):
        connection.log("recall")


# With a real server


@pytest.mark.long
def test_tokens_open_their_labs_and_calls_are_logged(tmp_path):
    write_clients(
        tmp_path, more='\n[reader]\ntoken = "the-token-of-reader"\nrole = "reader"\nlab = "ada"\n'
    )
    command = [sys.executable, "-m", "memlab", "serve", "--root", str(tmp_path), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            url = address(server)
            ada, bob, reader = (
                connect(url, token=token)
                for token in ("the-token-of-ada-0", "the-token-of-bob-0", "the-token-of-reader")
            )
            stored = ada.remember("Ada indents with tabs")
            bob.remember("Bob indents with spaces")
            assert [hit.text for hit in ada.recall("how to indent?")] == ["Ada indents with tabs"]
            assert [hit.text for hit in reader.recall("how to indent?")] == [
                "Ada indents with tabs"
            ]
            with pytest.raises(NotPermitted):
                reader.forget(1)
            with pytest.raises(UnknownName):
                bob.forget(7)
            for _ in range(3):
                with pytest.raises(NotPermitted):
                    connect(url, token="a-wrong-token-indeed").recall("x")
        finally:
            server.terminate()
            _, errors = server.communicate(timeout=60)
    assert errors == ""
    log = read_audit_log(tmp_path / "ada").select("client", "call", "outcome", "ids").rows()
    assert log == [
        ("owner", "remember", "ok", [stored.id]),
        ("owner", "recall", "ok", [1]),
        ("reader", "recall", "ok", [1]),
        ("reader", "forget", "NotPermitted", []),
    ]
    assert read_audit_log(tmp_path / "bob")["outcome"].to_list() == ["ok", "UnknownName"]
    refused = read_audit_log(tmp_path)
    assert (refused["call"].unique().to_list(), refused["count"].sum()) == (["login"], 3)
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("audit.jsonl*"))
    assert b"indent" not in everything
    assert json.loads(everything.splitlines()[0])


@pytest.mark.long
def test_a_lab_that_cannot_be_opened_answers_with_its_reason(tmp_path):
    write_clients(tmp_path)
    (tmp_path / "bob").write_text("no folder")
    command = [sys.executable, "-m", "memlab", "serve", "--root", str(tmp_path), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            url = address(server)
            with pytest.raises(LabUnavailable):
                connect(url, token="the-token-of-bob-0").recall("x")
            assert connect(url, token="the-token-of-ada-0").recall("x").ids == ()
        finally:
            server.terminate()
            server.communicate(timeout=60)


def test_the_log_of_an_encrypted_lab_is_encrypted(tmp_path, monkeypatch):
    pytest.importorskip("sqlcipher3")
    pytest.importorskip("cryptography")
    lab = memlab.open(tmp_path / "lab", key=b"k" * 32, embedder=letters)
    log = audit.AuditLog(lab.io.path)
    log.record("agent:secretive", "recall", [3])
    log.close()
    assert b"secretive" not in (lab.io.path / "audit.jsonl").read_bytes()
    assert read_audit_log(lab.io.path)["client"].to_list() == ["agent:secretive"]
    (lab.io.path / "audit.jsonl").write_bytes(b"aGVsbG8gd29ybGQsIHRoaXMgaXMgbm90aGluZw==\n")
    with pytest.raises(memlab.MemlabError, match="line 1"):
        read_audit_log(lab.io.path)


@pytest.mark.long
def test_the_log_follows_the_encryption_of_its_lab(tmp_path):
    pytest.importorskip("sqlcipher3")
    pytest.importorskip("cryptography")
    path = tmp_path / "lab"
    memlab.open(path, embedder=letters).close()
    for number, change in enumerate((None, "encrypt", "decrypt")):
        if change == "encrypt":
            memlab.encrypt(path, key=b"k" * 32)
        elif change == "decrypt":
            memlab.decrypt(path, key=b"k" * 32)
        if change == "encrypt":
            with memlab.open(path, key=b"k" * 32, embedder=letters):
                log = audit.AuditLog(path)
                log.record(f"agent:{number}", "recall")
                log.close()
                assert read_audit_log(path)["client"].to_list() == ["agent:0", "agent:1"]
            assert b"agent" not in (path / "audit.jsonl").read_bytes()
            continue
        log = audit.AuditLog(path)
        log.record(f"agent:{number}", "recall")
        log.close()
    assert read_audit_log(path)["client"].to_list() == ["agent:0", "agent:1", "agent:2"]
    assert (path / "audit.jsonl").stat().st_mode & 0o777 == 0o600


def test_no_call_is_served_without_its_log(door, monkeypatch):
    class Broken:
        def __init__(self, folder):
            raise OSError("no descriptors")

    monkeypatch.setattr("memlab.io.serving._doors.AuditLog", Broken)
    for _ in range(2):
        with pytest.raises(OSError, match="no descriptors"):
            ask(door, "ada")


@pytest.mark.long
def test_requests_that_wait_for_a_lab_let_others_finish(tmp_path):
    """Sixty requests for one lab, while another is in use and only one may be open."""
    write_clients(tmp_path)
    code = (
        "import sys; from memlab.io.serving import serve_root; serve_root(sys.argv[1], capacity=1)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip()
            ada, bob = (
                connect(url, token=f"the-token-of-{name}-0", timeout=60) for name in ("ada", "bob")
            )
            for lab, name in ((ada, "Ada"), (bob, "Bob")):
                lab.remember(f"{name} likes tea")
            began = time.monotonic()
            with ThreadPoolExecutor(60) as pool:
                answers = list(
                    pool.map(lambda n: (bob if n % 3 else ada).recall("tea?")[0].text, range(60))
                )
            assert set(answers) == {"Ada likes tea", "Bob likes tea"}
            assert time.monotonic() - began < 30  # no request waited for its patience
        finally:
            server.terminate()


def test_the_log_is_not_written_through_a_link(tmp_path):
    target = tmp_path / "profile"
    target.write_text("a file of the reader")
    (tmp_path / audit.AUDIT_FILE).symlink_to(target)
    with pytest.raises(OSError, match="symbolic link"):
        audit.AuditLog(tmp_path).record("client", "recall")
    assert target.read_text() == "a file of the reader"
