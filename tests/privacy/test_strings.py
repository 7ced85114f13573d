"""Every string that reaches the disk passes the gate: texts are redacted and told, names refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import memlab
from memlab.errors import PrivacyError
from memlab.journal import Journal
from memlab.privacy import Ignored, is_sensitive, refuse_strings, without_sensitive

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
    "deprecate": lambda lab: lab.review.deprecate(1, f"because of {TOKEN}"),
    "purge": lambda lab: lab.purge(1, reason=TOKEN),
    "fact": lambda lab: lab.facts.add("Ada", "likes", TOKEN),
    "entity": lambda lab: lab.entities.declare(TOKEN, type="person"),
    "policy": lambda lab: lab.policies.install("recall-score", f"(fn [length] length) ; {TOKEN}"),
    "reason": lambda lab: lab.policies.install("recall-score", "(fn [length] length)", reason=TOKEN),
    "backup": lambda lab: lab.io.backup(lab.store.folder.parent / TOKEN),
    "pack": lambda lab: lab.use(f'(pack p "{TOKEN}")'),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_holds_a_secret_is_refused_and_nothing_is_stored(disk: Any, tmp_path: Path, name: str) -> None:
    with disk() as lab:
        lab.remember("a first memory of tea")
        before = lab.store.journal.head
        with pytest.raises(PrivacyError) as refused:
            NAMES[name](lab)
        assert TOKEN not in str(refused.value)
        assert lab.store.journal.head == before
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


def test_a_secret_in_a_question_is_redacted_told_and_logged(disk: Any, tmp_path: Path) -> None:
    with disk() as lab:
        lab.remember("tea is green")
        hits = lab.recall(f"is {TOKEN} tea?")
        assert [found.type for found in hits.redacted] == ["GitHub token"]
        assert "1 secrets redacted" in repr(hits)
        event = list(lab.store.journal.events(kinds=["recall"]))[-1]
        assert event.body["redacted"] == ["GitHub token"]
        assert lab.recall(f"is {TOKEN} tea?", project=None, log=False).redacted
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


def test_a_secret_in_a_text_is_told_and_logged(lab: memlab.Lab) -> None:
    told = lab.remember_many(["tea", f"use {TOKEN}"])
    assert [(id, found.type) for id, found in told.redacted] == [(2, "GitHub token")]
    event = list(lab.store.journal.events(kinds=["remember"]))[-1]
    assert event.body["redacted"] == [[2, "GitHub token"]]
    lab.edit(1, text=f"tea, and {TOKEN}")
    event = list(lab.store.journal.events(kinds=["remember"]))[-1]
    assert event.body["redacted"] == [[3, "GitHub token"]]
    lab.close()


def test_a_question_that_is_not_logged_may_name_what_it_likes(lab: memlab.Lab) -> None:
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


@pytest.mark.parametrize("path", [
    ".env", "deploy/.env.production", "prod.env", "/srv/bo/.ssh/id_rsa", "id_ed25519", "certs/server.pem", "a.key",
    "~/.aws/credentials", ".netrc", "C:\\Users\\bo\\.ssh\\id_rsa", ".pgpass", "~/.kube/config", "infra/x.tfstate",
    ".docker/config.json", "credentials.json", "ID_RSA", "./.env",
])  # fmt: skip
def test_a_file_of_secrets_is_known_by_its_path(lab: memlab.Lab, path: str) -> None:
    assert is_sensitive(path)
    with pytest.raises(PrivacyError, match=r"field files: .* is by its name a file of secrets"):
        lab.remember("where the settings are", files=["src/app.py", path])
    assert len(lab) == 0


@pytest.mark.parametrize(
    "path", ["src/env.py", ".env.example", "id_rsa.pub", "docs/keys.md", "monkey.py", "", ".", "/"]
)
def test_other_files_are_no_secret(path: str) -> None:
    assert not is_sensitive(path)


def test_an_import_leaves_them_out_and_says_so(disk: Any, tmp_path: Path, trigrams: Any) -> None:
    assert without_sensitive([".env", "a.py"]) == (["a.py"], (".env",))
    with memlab.open(embedder=trigrams) as lab:
        lab.remember("tea", files=["a.py", "b.txt"])
        lab.io.export(tmp_path / "lab.jsonl")
    file = tmp_path / "lab.jsonl"
    file.write_text(file.read_text().replace("b.txt", ".env"))
    with disk() as lab:
        told = lab.load(file)
        assert told.left_out == {"path of a file of secrets": 1}
        assert lab.memories["files"].to_list() == [["a.py"]]


def test_a_folder_says_what_else_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    (tmp_path / ".secretsignore").write_text("internal/*.md\n")
    ignored = Ignored(tmp_path)
    assert all(path in ignored for path in ("build/x.py", "a.log", "internal/plan.md", "sub/.env"))
    assert not any(path in ignored for path in ("src/a.py", "keep.log", "docs/plan.md"))
