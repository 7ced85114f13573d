"""Every string that reaches the disk passes the gate: texts are redacted and told, names refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.errors import PrivacyError
from memlab.kernel.journal import Journal
from memlab.kernel.privacy import Ignored, is_sensitive, refuse_strings, split_sensitive
from memlab.kernel.state import EVENTS, hash_paths
from memlab.kernel.verbs import projections

# made up, and put together so that no scanner takes it for one
TOKEN = "ghp_" + "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7"

NAMES: dict[str, Callable[[memlab.Lab], Any]] = {
    "project": lambda lab: lab.remember("tea", project=TOKEN),
    "session": lambda lab: lab.remember("tea", session=TOKEN),
    "speaker": lambda lab: lab.remember("tea", speaker=TOKEN),
    "tags": lambda lab: lab.remember("tea", tags=["a", TOKEN]),
    "ref": lambda lab: lab.remember("tea", ref=TOKEN),
    "creator": lambda lab: lab.remember("tea", creator=TOKEN),
    "files": lambda lab: lab.remember("tea", files=[TOKEN]),
    "edit": lambda lab: lab.edit(1, tags=[TOKEN]),
    "recall project": lambda lab: lab.recall("tea", project=TOKEN),
    "recall session": lambda lab: lab.recall("tea", session=TOKEN),
    "recall viewer": lambda lab: lab.recall("tea", viewer=TOKEN),
    "recall branch": lambda lab: lab.recall("tea", branch=TOKEN),
    "recall season": lambda lab: lab.recall("tea", season=[TOKEN]),
    "recall where": lambda lab: lab.recall("tea", where=pl.col("kind") == TOKEN),
    "feedback source": lambda lab: lab.feedback(1, "success", source=TOKEN),
    "feedback agent": lambda lab: lab.feedback(1, "success", agent=TOKEN),
    "agent": lambda lab: lab.agents.conversation(TOKEN),
    "deprecate": lambda lab: lab.forget(1, how="deprecate", reason=f"because of {TOKEN}"),
    "purge": lambda lab: lab.purge(1, reason=TOKEN),
    "fact": lambda lab: lab.facts.add("Ada", "likes", TOKEN),
    "entity": lambda lab: lab.facts.entities.declare(TOKEN, type="person"),
    "policy": lambda lab: lab.policies.install("recall-score", f"(fn [length] length) ; {TOKEN}"),
    "reason": lambda lab: lab.policies.install(
        "recall-score", "(fn [length] length)", reason=TOKEN
    ),
    "backup": lambda lab: lab.io.backup(lab.io.store.folder.parent / TOKEN),
    "pack": lambda lab: lab.policies.use(f'(pack p "{TOKEN}")'),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_holds_a_secret_is_refused_and_nothing_is_stored(
    disk: Any, tmp_path: Path, name: str
) -> None:
    with disk() as lab:
        lab.remember("a first memory of tea")
        before = lab.io.store.journal.head
        with pytest.raises(PrivacyError) as refused:
            NAMES[name](lab)
        assert TOKEN not in str(refused.value)
        assert lab.io.store.journal.head == before
    assert not [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and TOKEN.encode() in path.read_bytes()
    ]


def test_a_secret_in_a_question_is_redacted_told_and_logged(disk: Any, tmp_path: Path) -> None:
    with disk() as lab:
        lab.remember("tea is green")
        hits = lab.recall(f"is {TOKEN} tea?")
        assert [found.type for found in hits.redacted] == ["GitHub token"]
        assert "1 secret redacted" in repr(hits)
        event = list(lab.io.store.journal.events(kinds=["recall"]))[-1]
        assert event.body["redacted"] == ["GitHub token"]
        assert lab.recall(f"is {TOKEN} tea?", project=None, log=False).redacted
    assert not [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and TOKEN.encode() in path.read_bytes()
    ]


def test_a_secret_in_a_text_is_told_and_logged(lab: memlab.Lab) -> None:
    result = lab.remember(["tea", f"use {TOKEN}"])
    assert [(id, found.type) for id, found in result.redacted] == [(2, "GitHub token")]
    event = list(lab.io.store.journal.events(kinds=["remember"]))[-1]
    assert event.body["redacted"] == [[2, "GitHub token"]]
    lab.edit(1, text=f"tea, and {TOKEN}")
    event = list(lab.io.store.journal.events(kinds=["remember"]))[-1]
    assert event.body["redacted"] == [[3, "GitHub token"]]
    lab.close()


def test_an_unlogged_query_may_contain_secrets(lab: memlab.Lab) -> None:
    lab.remember("tea")
    assert lab.recall("tea", project=TOKEN, log=False).decision is None


def test_the_journal_itself_refuses_what_went_round_the_checks(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "j") as journal:
        for write in (
            lambda tx: tx.event("noted", {"deep": [{"er": ["fine", TOKEN]}]}, at=0),
            lambda tx: tx.source("hash", f"({TOKEN})"),
            lambda tx: tx.meta("key", TOKEN),
        ):
            with pytest.raises(PrivacyError), journal.write() as tx:
                write(tx)
        assert journal.head == 0


def test_the_place_of_a_secret_is_named() -> None:
    refuse_strings({"a": [1, None, {"b": ["fine"]}], "c": (2.0, "also fine")}, "event")
    with pytest.raises(PrivacyError, match=r"event, field a\.b holds"):
        refuse_strings({"a": [1, {"b": ["fine", TOKEN]}]}, "event")
    with pytest.raises(PrivacyError, match=r"event, field a holds"):
        refuse_strings({"a": {TOKEN: 1}}, "event")


HASHING = sorted(kind for kind in EVENTS if projections and hash_paths(kind))

hashes = st.builds(
    lambda start, rest: (start + rest)[:64],
    st.sampled_from(["", "eaaa", "0eaaa", "eaab"]),
    st.binary(min_size=32, max_size=32).map(bytes.hex),
)
LIKE_A_TOKEN = "eaaace310cf4883acf70b8db7d9576a5" + "9e9c6a6935c2230ffa3270be08330a7e"


def nested(path: tuple[str, ...], value: Any) -> Any:
    """Return a body in which a path of names leads to the value."""
    for name in reversed(path):
        value = {"x" if name == "*" else name: value}
    return value


@pytest.mark.long
@examples(200, 50)
@given(st.sampled_from(HASHING), st.data(), st.lists(hashes, min_size=1, max_size=5))
def test_a_content_hash_is_no_secret_where_one_is_declared(
    kind: str, data: st.DataObject, body: list[str]
) -> None:
    path = data.draw(st.sampled_from(hash_paths(kind)))
    for value in (body[0], body):
        refuse_strings(nested(path, value), "event", hashes=hash_paths(kind))


@pytest.mark.parametrize(
    "secret", [LIKE_A_TOKEN, LIKE_A_TOKEN.upper(), LIKE_A_TOKEN[:60], f"{LIKE_A_TOKEN}\n", TOKEN]
)
def test_a_secret_is_refused_in_every_other_field(secret: str) -> None:
    with pytest.raises(PrivacyError):
        refuse_strings({"pack": "0" * 64, "reason": secret}, "event", hashes=hash_paths("recall"))
    with pytest.raises(PrivacyError):
        refuse_strings({"policies": {secret: "0" * 64}}, "event", hashes=hash_paths("use"))
    if secret != LIKE_A_TOKEN:
        with pytest.raises(PrivacyError, match="event, field pack"):
            refuse_strings({"pack": secret}, "event", hashes=hash_paths("recall"))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_has_the_form_of_a_hash_is_screened(
    lab: memlab.Lab, name: str, monkeypatch: Any
) -> None:
    monkeypatch.setitem(globals(), "TOKEN", LIKE_A_TOKEN)
    if name == "backup":
        return  # of a lab on disk
    lab.remember("a first memory of tea")
    before = lab.io.store.journal.head
    with pytest.raises(PrivacyError):
        NAMES[name](lab)
    assert lab.io.store.journal.head == before


LAB_OF_SUCH_HASHES = """
import hashlib

sha256 = hashlib.sha256


class LooksLikeAToken:
    def __init__(self, data=b""):
        self._digest = sha256(data)

    def update(self, data):
        self._digest.update(data)

    def digest(self):
        return self._digest.digest()

    def hexdigest(self):
        return "eaaa" + self._digest.hexdigest()[4:]


hashlib.sha256 = LooksLikeAToken

import memlab
from embedders import letters
from memlab.kernel.embedding import load_embedder
from memlab.kernel.privacy import screen

embedder, clock = load_embedder(letters), memlab.ManualClock("2026-03-01")
with memlab.open(embedder=embedder, clock=clock) as lab:
    lab.policies.use("(pack one :inherits memlab) (setting tier-3-tokens 17)")
    assert screen(lab.policies.pack.hash).findings
    lab.policies.install("recall-score", "(fn [length] (+ length 1))")
    lab.policies.install("recall-score", "(fn [length] (+ length 2))")
    lab.policies.rollback("recall-score")
    lab.policies.pin("recall-score")
    lab.policies.unpin("recall-score")
    lab.policies.rollback()
    lab.challenge("(pack two :inherits memlab) (setting tier-3-tokens 18)")
    lab.remember([f"{word} {number}" for number in range(20) for word in ("tea", "the sea")], linking="off")
    hits = lab.recall("tea")
    lab.feedback(hits[0], "success")
    lab.agents.credits.answer("tea 1", hits)
    lab.context("where is the boat of the harbour?", session="s")
    lab.agents.verify(lab.recall("where is the boat of the harbour?"), [])
    lab.upkeep.operations.run("(recall \\"tea\\")", consent=True)
    lab.graph.clusters.find()
    clock.advance(days=400)
    lab.upkeep.maintain()
    lab.io.export("lab.jsonl")
    kinds = set(lab.log["kind"])
with memlab.open(embedder=embedder, clock=clock) as lab:
    kinds |= {f"{name} loaded" for name in lab.load("lab.jsonl").registers}
print(*sorted(kinds), sep="\\n")
"""


@pytest.mark.long
def test_a_lab_all_of_whose_hashes_look_like_tokens_is_like_any_other(tmp_path: Path) -> None:
    """In a process of its own, in which every SHA-256 begins as a Square token does."""
    paths = os.pathsep.join(str(Path(file).parents[1]) for file in (memlab.__file__, __file__))
    done = subprocess.run(
        [sys.executable, "-c", LAB_OF_SUCH_HASHES],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths},
    )
    assert not done.returncode, done.stderr
    assert {
        "use",
        "install",
        "rollback",
        "pin",
        "unpin",
        "challenge",
        "recall",
        "feedback",
        "verify",
    } <= set(done.stdout.splitlines())
    assert {"run", "cluster", "maintain", "clusters loaded", "gaps loaded"} <= set(
        done.stdout.splitlines()
    )


@pytest.mark.parametrize("path", [
    ".env", "deploy/.env.production", "prod.env", "/srv/bo/.ssh/id_rsa", "id_ed25519", "certs/server.pem", "a.key",
    "~/.aws/credentials", ".netrc", "C:\\Users\\bo\\.ssh\\id_rsa", ".pgpass", "~/.kube/config", "infra/x.tfstate",
    ".docker/config.json", "credentials.json", "ID_RSA", "./.env",
])  # fmt: skip
def test_a_file_of_secrets_is_known_by_its_path(lab: memlab.Lab, path: str) -> None:
    assert is_sensitive(path)
    with pytest.raises(PrivacyError, match=r"field files: .* is the name of a file of secrets"):
        lab.remember("where the settings are", files=["src/app.py", path])
    assert len(lab) == 0


@pytest.mark.parametrize(
    "path", ["src/env.py", ".env.example", "id_rsa.pub", "docs/keys.md", "monkey.py", "", ".", "/"]
)
def test_other_files_are_no_secret(path: str) -> None:
    assert not is_sensitive(path)


@pytest.mark.long
def test_an_import_leaves_them_out_and_says_so(disk: Any, tmp_path: Path, trigrams: Any) -> None:
    assert split_sensitive([".env", "a.py"]) == (["a.py"], (".env",))
    with memlab.open(embedder=trigrams) as lab:
        lab.remember("tea", files=["a.py", "b.txt"])
        lab.io.export(tmp_path / "lab.jsonl")
    file = tmp_path / "lab.jsonl"
    file.write_text(file.read_text().replace("b.txt", ".env"))
    with disk() as lab:
        report = lab.load(file)
        assert report.left_out == {"path of a file of secrets": 1}
        assert lab.memories["files"].to_list() == [["a.py"]]


def test_a_folder_says_what_else_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    (tmp_path / ".secretsignore").write_text("internal/*.md\n")
    ignored = Ignored(tmp_path)
    assert all(path in ignored for path in ("build/x.py", "a.log", "internal/plan.md", "sub/.env"))
    assert not any(path in ignored for path in ("src/a.py", "keep.log", "docs/plan.md"))
