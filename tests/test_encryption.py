"""A lab encrypted at rest: nothing of it can be read in its files, and everything else is as in a plain lab."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn
from unittest import mock

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import InputError, MissingExtra, NewerLab, WrongKey
from memlab.kernel.journal import Journal, unlock
from tests.embedders import letters

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("sqlcipher3") is None
    or importlib.util.find_spec("cryptography") is None,
    reason="the extra secure is not installed",
)

KEY = hashlib.sha256(b"a test").digest()
SECRETS = ["zebrafish", "Plaskett", "hetzner-7", "Quentin", "marmalade", "recall-score", "billing"]


def open_lab(path: Path, key: object = KEY, **options: object) -> memlab.Lab:
    return memlab.open(path, key=key, embedder=letters, **options)


def use(lab: memlab.Lab) -> None:
    """Let every kind of content reach the disk."""
    lab.remember("The zebrafish project runs on hetzner-7", subject="Quentin", project="billing")
    lab.remember(
        [{"text": f"Plaskett said {number}", "tags": ["marmalade"]} for number in range(60)]
    )
    for number in range(5):
        hits = lab.recall(f"what did Plaskett say about marmalade {number}?", project=None)
        lab.feedback(hits[0], "success")
    lab.policies.install("recall-score", "(fn [similarity] similarity)")
    lab.io.snapshot()
    lab.io.backup()


def plaintext(folder: Path, words: list[str] = SECRETS) -> set[str]:
    """Return the words that a byte search finds in any file, whatever its case, also as UTF-16."""
    found = set()
    for file in folder.rglob("*"):
        if file.is_file():
            content = file.read_bytes().lower()
            for word in words:
                if any(word.lower().encode(code) in content for code in ("utf-8", "utf-16-le")):
                    found.add(f"{word} in {file.relative_to(folder)}")
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the folder of a closed lab in use, made once. Tests copy it before they open or change it."""
    folders = {}

    def make(kind):
        if kind not in folders:
            folders[kind] = tmp_path_factory.mktemp(kind) / "lab"
            with open_lab(folders[kind], KEY if kind == "encrypted" else None) as lab:
                use(lab)
        return folders[kind]

    return make


@pytest.fixture
def lab(tmp_path):
    with open_lab(tmp_path / "lab") as opened:
        use(opened)
        yield opened


@pytest.fixture(autouse=True)
def no_other_key(monkeypatch):
    monkeypatch.delenv("MEMLAB_KEY", raising=False)
    monkeypatch.setattr("memlab.kernel.journal._vault._from_key_ring", lambda id: None)


@pytest.mark.long
def test_no_file_holds_a_word(lab, tmp_path):
    folder = tmp_path / "lab"
    assert {"head", "journal.enc", "journal.enc-wal", "snapshots"} <= {
        p.name for p in folder.iterdir()
    }
    assert not plaintext(folder)
    lab.close()
    assert not plaintext(folder)
    with memlab.open(tmp_path / "plain", embedder=letters) as plain:
        use(plain)
        plain.close()
    words = {line.partition(" in ")[0] for line in plaintext(tmp_path / "plain")}
    assert words == set(SECRETS)  # so the search finds what is there


@pytest.mark.long
def test_a_thousand_words_are_in_no_file_during_use_and_after_a_kill(tmp_path):
    pages = sorted((Path(__file__).parents[1] / "docs").rglob("*.md"))
    text = " ".join(page.read_text(encoding="utf-8") for page in pages)
    open_lab(tmp_path / "empty").close()
    own = (tmp_path / "empty" / "journal.db").read_bytes().lower()  # its schema and its version
    found = sorted(set(re.findall(r"[A-Za-z]{7,}", text)))
    words = [word for word in found if word.lower().encode() not in own][:1000]
    assert len(words) == 1000
    with open_lab(tmp_path / "lab", backups=True) as lab:
        rows = [
            {"text": " ".join(words[n : n + 10]), "subject": words[n]} for n in range(0, 1000, 10)
        ]
        lab.remember(rows)
        for word in words[::25]:
            lab.recall(f"what about {word}?")
        lab.io.snapshot()
        lab.io.backup()
        shutil.copytree(tmp_path / "lab", tmp_path / "killed")
        assert not plaintext(tmp_path / "lab", words)
    assert not plaintext(tmp_path / "lab", words)
    with open_lab(tmp_path / "killed") as lab:
        assert lab.io.check().sound
    assert not plaintext(tmp_path / "killed", words)
    memlab.decrypt(tmp_path / "killed", key=KEY)
    assert len(plaintext(tmp_path / "killed", words)) > 1000


@pytest.mark.long
def test_no_file_holds_a_vector(lab, tmp_path):
    rows = lab.io.store.state.vectors.take(np.arange(20))
    lab.close()
    files = [file.read_bytes() for file in (tmp_path / "lab").rglob("*") if file.is_file()]
    assert not any(row.tobytes() in content for row in rows for content in files)


@pytest.mark.long
def test_a_killed_process_leaves_no_word(tmp_path):
    code = (
        "import memlab, os, sys, signal\n"
        "from tests.test_encryption import open_lab, use\n"
        "from pathlib import Path\n"
        "lab = open_lab(Path(sys.argv[1])); use(lab); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "lab")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not plaintext(tmp_path / "lab")
    with open_lab(tmp_path / "lab") as lab:
        assert len(lab) == 61
        checked = lab.io.check()
        assert checked.sound
        assert "journal.enc" in checked.frame["file"].to_list()


@pytest.mark.long
def test_it_recalls_as_a_plain_lab_does(lab, tmp_path):
    with memlab.open(tmp_path / "plain", embedder=letters) as plain:
        use(plain)
        for query in ("zebrafish", "what did Plaskett say?"):
            hits, others = lab.recall(query, log=False), plain.recall(query, log=False)
            assert [(hit.id, hit.score) for hit in hits] == [(hit.id, hit.score) for hit in others]


@pytest.mark.long
@pytest.mark.parametrize("key", ["wrong", b"short", b"x" * 40, "", lambda: "wrong", lambda: 7])
def test_a_wrong_key_is_one_sentence_and_changes_nothing(lab, tmp_path, key):
    lab.close()
    before = contents(tmp_path / "lab")
    for read_only in (True, False):
        with pytest.raises(WrongKey) as refused:
            open_lab(tmp_path / "lab", key, read_only=read_only)
        assert str(refused.value).count("\n") == 0
    assert contents(tmp_path / "lab") == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.long
def test_a_missing_key_is_told_with_the_ways_to_give_it(lab, tmp_path):
    lab.close()
    for call in (
        lambda: open_lab(tmp_path / "lab", None),
        lambda: memlab.check(tmp_path / "lab"),
        lambda: memlab.restore(tmp_path / "lab"),
        lambda: memlab.load(tmp_path / "lab"),
        lambda: memlab.decrypt(tmp_path / "lab"),
        lambda: memlab.rekey(tmp_path / "lab", "new"),
    ):
        with pytest.raises(
            WrongKey, match=r"key=\.\.\..*--key-file.*MEMLAB_KEY.*keyring set memlab"
        ):
            call()


@pytest.mark.long
def test_the_environment_a_function_and_the_key_ring_give_the_key(lab, tmp_path, monkeypatch):
    lab.close()
    memlab.rekey(tmp_path / "lab", "pass phrase", key=KEY)
    open_lab(tmp_path / "lab", lambda: "pass phrase").close()
    with monkeypatch.context() as patch:
        patch.setenv("MEMLAB_KEY", "pass phrase")
        open_lab(tmp_path / "lab", None, read_only=True).close()
    asked = []
    monkeypatch.setattr(
        "memlab.kernel.journal._vault._from_key_ring", lambda id: asked.append(id) or "pass phrase"
    )
    open_lab(tmp_path / "lab", None).close()
    assert len(asked) == 1


@pytest.mark.long
def test_the_key_ring_is_asked_for_the_id_of_the_lab(lab, tmp_path, monkeypatch):
    keyring = pytest.importorskip("keyring")
    monkeypatch.undo()
    monkeypatch.delenv("MEMLAB_KEY", raising=False)
    lab.close()
    memlab.rekey(tmp_path / "lab", "pass phrase", key=KEY)
    with pytest.raises(WrongKey) as refused:
        open_lab(tmp_path / "lab", None)
    id = re.search(r"keyring set memlab (\w+)", str(refused.value))[1]
    monkeypatch.setattr(
        keyring, "get_password", lambda *asked: {("memlab", id): "pass phrase"}[asked]
    )
    open_lab(tmp_path / "lab", None).close()
    (backup,) = (tmp_path / "lab" / "backups").iterdir()
    open_lab(backup, None, read_only=True).close()


def test_with_the_variable_set_new_labs_are_encrypted(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMLAB_KEY", "pass phrase")
    memlab.open(tmp_path / "lab", embedder=letters).close()
    assert (tmp_path / "lab" / "journal.enc").exists()


def test_a_key_for_a_plain_lab_or_a_lab_in_memory_is_refused(tmp_path):
    memlab.open(tmp_path / "lab", embedder=letters).close()
    with pytest.raises(memlab.InputError, match="is not encrypted"):
        open_lab(tmp_path / "lab")
    with pytest.raises(memlab.InputError, match="in memory"):
        open_lab(None)
    for call in (memlab.decrypt, lambda path: memlab.rekey(path, "new")):
        with pytest.raises(memlab.InputError, match="is not encrypted"):
            call(tmp_path / "lab")


@pytest.mark.long
def test_a_plain_lab_is_encrypted_with_its_backups_and_decrypted_again(tmp_path):
    folder, elsewhere = tmp_path / "lab", tmp_path / "elsewhere"
    with memlab.open(folder, embedder=letters) as lab:
        use(lab)
        lab.io.backup(elsewhere)
        lab.io.export(tmp_path / "lab.jsonl")
        before, events = lab.memories, [event.body for event in lab.io.store.journal.events()]
        ranks = [hit.id for hit in lab.recall("Plaskett", log=False)]
    assert memlab.encrypt(folder, KEY) == [tmp_path / "lab.jsonl"]
    assert not plaintext(folder)
    assert not plaintext(elsewhere)
    with pytest.raises(memlab.InputError, match="encrypted already"):
        memlab.encrypt(folder, KEY)
    with open_lab(folder) as lab:
        assert lab.memories.equals(before)
        assert [event.body for event in lab.io.store.journal.events()] == events
        assert [hit.id for hit in lab.recall("Plaskett", log=False)] == ranks
        assert lab.io.check().sound
    memlab.decrypt(folder, key=KEY)
    assert {file.name for file in folder.iterdir()} == {
        "backups", "derived.lock", "head", "journal.db", "lock"
    }  # fmt: skip
    with memlab.open(folder, embedder=letters) as lab:
        assert lab.memories.equals(before)
        assert lab.io.check().sound


CHANGES = {
    "encrypt": lambda folder: memlab.encrypt(folder, KEY),
    "decrypt": lambda folder: memlab.decrypt(folder, key=KEY),
    "rekey": lambda folder: memlab.rekey(folder, "new", key=KEY),
}


def change_until(verb: str, folder: Path, step: int, stop: Callable[[], NoReturn]) -> None:
    """Make a change that is stopped at its rename, removal or sync number ``step``."""
    left = [step]

    def stopped(call):
        def calling(*args, **options):
            if not left[0]:
                stop()
            left[0] -= 1
            return call(*args, **options)

        return calling

    with contextlib.ExitStack() as patches:
        for owner, name in ((Path, "rename"), (Path, "unlink"), (os, "fsync"), (shutil, "rmtree")):
            patches.enter_context(mock.patch.object(owner, name, stopped(getattr(owner, name))))
        CHANGES[verb](folder)


def interrupt() -> NoReturn:
    raise KeyboardInterrupt


def check_whole(folder: Path, count: int) -> None:
    """The lab opens with exactly one of its keys, and is as it was."""
    opened = []
    for key in (None, KEY, "new"):
        try:
            with open_lab(folder, key) as lab:
                assert len(lab) == count
                assert lab.io.check().sound
                opened.append(key)
        except (WrongKey, memlab.InputError):
            continue
    assert len(opened) == 1
    assert opened == [None] or not plaintext(folder)


@pytest.mark.long
@pytest.mark.parametrize("step", range(12))
@pytest.mark.parametrize("verb", CHANGES)
def test_an_interrupted_change_leaves_a_whole_lab(made, tmp_path, verb, step):
    shutil.copytree(made("plain" if verb == "encrypt" else "encrypted"), tmp_path / "lab")
    with contextlib.suppress(KeyboardInterrupt):
        change_until(verb, tmp_path / "lab", step, interrupt)
    check_whole(tmp_path / "lab", 61)


@pytest.mark.slow
@pytest.mark.parametrize("verb", CHANGES)
def test_a_killed_change_leaves_a_whole_lab(tmp_path, verb):
    base = tmp_path / "base"
    with memlab.open(base, embedder=letters, key=None if verb == "encrypt" else KEY) as lab:
        use(lab)
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom tests.test_encryption import change_until\n"
        "change_until(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), lambda: os.kill(os.getpid(), 9))\n"
    )
    for step in range(40):
        folder = Path(shutil.copytree(base, tmp_path / str(step)))
        done = subprocess.run(
            [sys.executable, "-c", code, verb, str(folder), str(step)], check=False
        )
        check_whole(folder, 61)
        if not done.returncode:
            break
    assert step > 5
    assert not done.returncode


@pytest.mark.long
def test_a_changed_key_replaces_one_file_and_reaches_the_backups(lab, tmp_path):
    folder = tmp_path / "lab"
    before = contents(folder)
    memlab.rekey(folder, "new", key=KEY)
    changed = {
        Path(name).name for name, content in contents(folder).items() if before.get(name) != content
    }
    assert changed <= {"journal.db", "lock", "derived.lock"}
    lab.remember("written by the process that had it open")
    lab.close()
    with pytest.raises(WrongKey):
        open_lab(folder)
    (backup,) = (folder / "backups").iterdir()
    for path in (folder, backup):
        open_lab(path, "new", read_only=True).close()


@pytest.mark.long
def test_a_backup_restores_an_encrypted_lab_even_without_its_record(lab, tmp_path):
    folder = tmp_path / "lab"
    lab.close()
    for name in ("journal.db", "journal.enc"):
        file = folder / name
        file.write_bytes(b"\0" * 4096 + file.read_bytes()[4096:])
        with pytest.raises(memlab.errors.DamagedLab):
            open_lab(folder)
        with pytest.raises(WrongKey):
            memlab.restore(folder, key="wrong")
        restored = memlab.restore(folder, key=KEY)
        assert restored.backup is not None
        assert not plaintext(folder)
        with open_lab(folder) as again:
            assert len(again) == 61
            again.io.backup()


@pytest.mark.long
def test_a_lab_without_the_record_of_its_key_is_not_replaced_by_a_new_one(lab, tmp_path):
    lab.close()
    folder = tmp_path / "lab"
    (folder / "journal.db").unlink()
    before = (folder / "journal.enc").read_bytes()
    for name in ("head", "snapshots"):
        with pytest.raises(memlab.errors.DamagedLab, match=r"no journal\.db"):
            open_lab(folder)
        (folder / name).rename(tmp_path / name)
    assert (folder / "journal.enc").read_bytes() == before
    memlab.restore(folder, key=KEY)
    with open_lab(folder) as again:
        assert len(again) == 61


@pytest.mark.long
def test_plain_and_encrypted_copies_are_not_exchanged(lab, tmp_path):
    lab.close()
    (backup,) = (tmp_path / "lab" / "backups").iterdir()
    shutil.copytree(backup, tmp_path / "kept")
    memlab.decrypt(tmp_path / "lab", key=KEY)
    with pytest.raises(memlab.InputError, match="one is encrypted, and the other is not"):
        memlab.restore(tmp_path / "lab", tmp_path / "kept", key=KEY)
    open_lab(tmp_path / "lab", None).close()


@pytest.mark.long
def test_a_purge_reaches_everything_and_says_what_it_searched(lab, tmp_path):
    receipt = lab.purge(subject="Quentin")
    assert "encrypted, of which the decrypted rows were searched" in str(receipt)
    assert receipt.found.is_empty()
    folder = tmp_path / "lab"
    shutil.copytree(folder, tmp_path / "copy")
    memlab.decrypt(tmp_path / "copy", key=KEY)
    assert not plaintext(tmp_path / "copy", ["zebrafish", "hetzner-7", "Quentin"])


@pytest.mark.long
def test_the_search_of_a_purge_reads_what_is_encrypted(lab):
    from memlab.subjects.purge.traces import search_files, search_terms

    nothing = pl.DataFrame(schema={"id": pl.Int64, "text": pl.String})
    terms = search_terms({1: "The zebrafish project runs on hetzner-7"}, [], nothing, [])
    report = search_files([lab.io.store.folder], terms)
    assert {trace.file.name for trace in report.traces} == {"journal.enc"}


@pytest.mark.long
def test_a_reader_follows_a_writer_in_another_process(lab, tmp_path):
    code = (
        "import sys\nfrom pathlib import Path\nfrom tests.test_encryption import open_lab\n"
        "with open_lab(Path(sys.argv[1])) as lab: lab.remember('from another process')\n"
    )
    with open_lab(tmp_path / "lab", read_only=True) as reader:
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "lab")], check=True)
        assert len(reader) == len(lab) == 62
        assert reader.recall("from another process", log=False)[0].id == 62
    lab.remember("and from this one")
    assert lab.io.check().sound


@pytest.mark.long
def test_any_prefix_folds_to_the_same_state(lab):
    last = lab.io.store.journal.head
    for head in range(3, last, 3):
        assert len(lab.at(event=head).memories) <= len(lab)
    assert len(lab.at(event=last).memories) == len(lab)


@pytest.mark.long
def test_a_snapshot_of_another_place_is_not_used(lab, tmp_path):
    (snapshot,) = (tmp_path / "lab" / "snapshots").iterdir()
    lab.close()
    snapshot.rename(snapshot.with_name("snapshot-000000000099"))
    with pytest.warns(memlab.DamageWarning, match="was changed since it was encrypted"):
        open_lab(tmp_path / "lab").close()


@pytest.mark.long
def test_a_memlab_without_encryption_refuses_it_and_changes_nothing(lab, tmp_path):
    """Earlier versions look at ``journal.db`` alone: it says a format that they do not know, and who wrote it."""
    lab.close()
    with sqlite3.connect(f"file:{tmp_path / 'lab' / 'journal.db'}?mode=ro", uri=True) as record:
        assert record.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)
        assert record.execute("PRAGMA user_version").fetchone() == (100,)
        by = record.execute("SELECT value FROM meta WHERE key = 'format-by'").fetchone()[0]
    record.close()
    assert by == f"{memlab.__version__}, encrypted"
    assert "Upgrade memlab" in str(NewerLab.of_format("lab", 100, 4, written_by=by))
    (tmp_path / "lab" / "journal.enc").unlink()
    with pytest.raises(memlab.errors.DamagedLab, match=r"journal\.enc is missing"):
        open_lab(tmp_path / "lab", None)


@pytest.mark.long
@pytest.mark.parametrize("package", ["sqlcipher3", "cryptography"])
def test_a_half_installed_extra_is_one_line_that_installs_it(tmp_path, lab, monkeypatch, package):
    lab.close()
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    for path in (tmp_path / "lab", tmp_path / "new"):
        with pytest.raises(MissingExtra, match=r"pip install .*'memlab-core\[secure\]'"):
            open_lab(path)
    assert not (tmp_path / "new" / "journal.db").exists()


@pytest.mark.long
def test_a_plain_lab_imports_nothing_of_it(tmp_path):
    code = (
        "import memlab, sys\nwith memlab.open(sys.argv[1]) as lab: lab.remember('a'); lab.recall('a'); lab.io.backup()\n"
        "assert not {'sqlcipher3', 'cryptography', 'keyring'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "lab")], check=True)


@pytest.mark.long
def test_a_closed_lab_needs_its_key_again_and_an_open_one_does_not(lab, tmp_path):
    with Journal.open(tmp_path / "lab", read_only=True) as journal:
        assert journal.vault is unlock(tmp_path / "lab")
    lab.close()
    with pytest.raises(WrongKey):
        unlock(tmp_path / "lab")


@pytest.mark.long
def test_a_dropped_lab_forgets_its_key(tmp_path):
    import gc

    lab = open_lab(tmp_path / "lab")
    lab.remember("a")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del lab
        gc.collect()
    with pytest.raises(WrongKey):
        open_lab(tmp_path / "lab", None)


@pytest.mark.long
def test_the_index_of_many_vectors_is_in_memory_alone(tmp_path, monkeypatch):
    from memlab.kernel.index import _neighbours

    with open_lab(tmp_path / "lab") as lab:
        lab.remember([f"memory {number}" for number in range(5000)])
        lab.io.store.state.vectors.exact_up_to = 100
        neighbours = lab.io.store.neighbours
        if _neighbours._MEMORY.is_dir() and importlib.util.find_spec("annoy"):
            assert neighbours.rebuild()
            folder = neighbours._folder
            assert folder.parent == _neighbours._MEMORY
            assert folder.stat().st_mode & 0o077 == 0
            lab.close()
            assert not folder.exists()
        assert not (tmp_path / "lab" / "neighbours").exists()
    monkeypatch.setattr(_neighbours, "_MEMORY", tmp_path / "absent")
    with open_lab(tmp_path / "lab") as lab:
        lab.io.store.state.vectors.exact_up_to = 100
        assert lab.recall("memory 7", log=False)
        assert not lab.io.store.neighbours.writable


@pytest.mark.long
def test_the_command_line_takes_a_key_file(run, tmp_path):
    key, new, lab = tmp_path / "key", tmp_path / "new", tmp_path / "lab"
    key.write_text("pass phrase\n")
    new.write_text("another\n")
    refused = run("--key-file", key, "remember", lab, "zebrafish")
    assert refused.exit_code == 1
    assert refused.stderr.strip().endswith(f"Run: chmod 600 {key}")
    key.chmod(0o600)
    new.chmod(0o600)
    assert run("remember", lab, "The zebrafish swims").exit_code == 0
    assert run("upkeep", "encrypt", lab, key).exit_code == 0
    assert not plaintext(lab)
    refused = run("recall", lab, "zebrafish")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert "--key-file" in refused.stderr
    # another process: it shares no key with this one
    words = [sys.executable, "-m", "memlab", "--key-file", key, "recall", lab, "what swims?"]
    assert b"zebrafish" in subprocess.run(words, capture_output=True, check=True).stdout
    assert run("--key-file", key, "upkeep", "rekey", lab, new).exit_code == 0
    assert run("--key-file", key, "upkeep", "check", lab).exit_code == 1
    assert run("--key-file", new, "upkeep", "check", lab).exit_code == 0
    assert run("--key-file", new, "upkeep", "decrypt", lab).exit_code == 0
    assert "zebrafish" in run("recall", lab, "what swims?").stdout


@pytest.mark.long
def test_short_campaigns_lose_nothing(tmp_path):
    from tests.campaigns import breaking, damage, kill_points

    with breaking.encrypted("pass phrase"):
        for name in ("remember", "purge"):
            (operation,) = (one for one in kill_points.OPERATIONS if one.name == name)
            assert not kill_points.run(operation, points=2, seed=5).problems
        settings = damage.make(tmp_path, names=["small"])
        ran = list(damage.run(settings, damage.cases(settings, 25, seed=3), tmp_path / "home"))
        assert not [(item.case, item.why) for item in ran if item.was in damage.CLASSES[2:]]


@pytest.mark.long
def test_rekey_leaves_a_plain_backup_as_it_is(tmp_path):
    with memlab.open(tmp_path / "lab", embedder=letters) as lab:
        lab.remember("The door is blue")
        plain = lab.io.backup().path
    shutil.copytree(plain, tmp_path / "aside")
    memlab.encrypt(tmp_path / "lab", key="first")
    shutil.rmtree(plain, ignore_errors=True)
    shutil.copytree(tmp_path / "aside", plain)
    memlab.rekey(tmp_path / "lab", "second", key="first")
    with memlab.open(plain, read_only=True, embedder=letters) as lab:
        assert len(lab) == 1


@pytest.mark.long
def test_a_copy_and_a_benchmark_of_a_closed_lab_take_its_key(tmp_path):
    from memlab.science.bench import bench_lab

    with open_lab(tmp_path / "lab") as lab:
        lab.remember(["The zebrafish swims", "Deploys go out on Tuesdays"])
        lab.policies.install("recall-score", "(fn [similarity] similarity)")
    copied = memlab.load(tmp_path / "lab", key=KEY, embedder=letters)
    assert copied.memories["text"].to_list() == [
        "The zebrafish swims",
        "Deploys go out on Tuesdays",
    ]
    questions = pl.DataFrame({"question": ["what swims?"], "wanted": ["1"]})
    options = {"packs": ["memlab"], "baselines": False, "embedder": letters}
    result = bench_lab(tmp_path / "lab", questions, key=KEY, **options)
    assert result.systems[0].metrics["recall@5"] == 1.0
    for wrong in (None, "another"):
        with pytest.raises(WrongKey):
            memlab.load(tmp_path / "lab", key=wrong, embedder=letters)
        with pytest.raises(WrongKey):
            bench_lab(tmp_path / "lab", questions, key=wrong, **options)
    with memlab.open(embedder=letters) as lab:
        copied.io.export(tmp_path / "plain.jsonl")
        for other in (tmp_path / "plain.jsonl", copied.memories, ["a text"]):
            with pytest.raises(
                InputError, match="key= applies only to the folder of an encrypted lab"
            ):
                lab.load(other, key=KEY)
        assert not len(lab)
    copied.close()
