"""Three ordinary acts that once destroyed or falsified a lab, and what lay near them."""

from __future__ import annotations

import shutil
import sys

import pytest

import memlab


@pytest.fixture
def folder(disk, tmp_path):
    with disk() as lab:
        lab.remember([{"text": f"precious memory {n}", "session": "first"} for n in range(20)])
        lab.facts.add("Ana", "likes", "tea")
        lab.io.snapshot()
        lab.recall("precious memory")
    return tmp_path / "agent.memlab"


@pytest.fixture
def texts(folder, disk):
    with disk() as lab:
        return lab.memories["text"].to_list()


# -- a purge of a text that begins with a name ----------------------------------------------------------------------


@pytest.mark.long
def test_a_purge_keeps_names_that_are_not_the_purged_text(disk):
    with disk() as lab:
        lab.remember("precious")
        # its text begins with the name, which is an entity's
        fact = lab.facts.add("Adele Quuxley", "likes", "cheese")
        lab.facts.entities.declare("Adele Quuxley", type="person")
        lab.io.backup()
        lab.purge(fact)
        live, names = lab.memories, lab.facts.entities.frame()["name"].to_list()
        assert "Adele Quuxley" in names
        [backup] = (lab.io.path / "backups").iterdir()
    for path in (lab.io.path, backup):
        with memlab.open(path, embedder=lab.io.embedder, read_only=True) as again:
            assert again.memories.equals(live)
            assert again.facts.entities.frame()["name"].to_list() == names


# -- Ctrl-C within a fold -------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("calls", [5, 40, 80])
def test_an_interrupt_within_a_fold_is_as_if_it_had_not_been(folder, disk, texts, calls):
    lab, seen = disk(), 0
    with disk() as other:
        other.remember(["a", "b", "c"])
        other.remember("d")

    def interrupt(frame, event, _):
        nonlocal seen
        seen += "/memlab/kernel/state/" in frame.f_code.co_filename
        if seen == calls:
            seen += 1
            raise KeyboardInterrupt

    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            len(lab)
    finally:
        sys.settrace(None)
    assert lab.memories["text"].to_list() == [*texts, *"abcd"]
    assert lab.remember("next").id == len(texts) + 5
    lab.close()
    with disk() as again:
        assert again.memories["text"].to_list() == [*texts, *"abcd", "next"]


# -- snapshots that are of another lab, or damaged ------------------------------------------------------------------


@pytest.mark.long
def test_the_snapshots_of_another_lab_are_not_believed(
    folder, disk, texts, tmp_path, trigrams, clock
):
    with memlab.open(tmp_path / "other", embedder=trigrams, clock=clock) as other:
        other.remember([f"alpha {n}" for n in range(21)])
        other.io.snapshot()
    shutil.rmtree(folder / "snapshots")
    shutil.copytree(tmp_path / "other" / "snapshots", folder / "snapshots")
    for name in (folder / "snapshots").iterdir():
        # of an event that this journal has, too
        name.rename(name.with_name("snapshot-000000000003"))
    with pytest.warns(memlab.DamageWarning, match="another history"):
        lab = disk()
    with lab:
        assert lab.memories["text"].to_list() == texts


@pytest.mark.long
@pytest.mark.parametrize(
    "file", ["memories.parquet", "vectors.bin", "registers.msgpack", "manifest.json", "words.npz"]
)
def test_a_flipped_bit_anywhere_in_a_snapshot_is_noticed(folder, disk, texts, file):
    for share in (0.01, 0.35, 0.7, 0.99):
        [path] = (folder / "snapshots").glob(f"*/{file}")
        data = bytearray(path.read_bytes())
        data[int(share * len(data))] ^= 4
        path.write_bytes(data)
        with pytest.warns(memlab.DamageWarning, match="rebuilt from the journal"):
            lab = disk()
        with lab:
            assert lab.memories["text"].to_list() == texts
            lab.io.snapshot()


@pytest.mark.long
def test_drafts_of_killed_processes_are_swept_on_opening(folder, disk):
    drafts = [
        folder / "snapshots" / ".draft-1-000000000003",
        folder / "backups" / ".draft-1-000001",
    ]
    for draft in drafts:
        draft.mkdir(parents=True)
        (draft / "memories.parquet").write_bytes(b"half")
    disk().close()
    assert not any(draft.exists() for draft in drafts)


# -- a lab of someone else, with links ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["head", "lock", "derived.lock", "journal.db-wal", "journal.db-shm"]
)
@pytest.mark.parametrize("has_journal", [True, False])
def test_no_link_in_a_lab_lets_memlab_overwrite_another_file(folder, tmp_path, name, has_journal):
    target = tmp_path / "profile"
    target.write_text("a file of the reader")
    if not has_journal:
        shutil.rmtree(folder)
        folder.mkdir()
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(target)
    with pytest.raises(memlab.LabError, match="is a symbolic link"):
        memlab.open(folder)
    assert target.read_text() == "a file of the reader"


@pytest.mark.long
def test_a_link_that_appears_in_an_open_lab_is_not_followed(folder, disk, tmp_path):
    target = tmp_path / "profile"
    target.write_text("a file of the reader")
    with disk() as lab:
        for name, fault in (("lock", memlab.LabError), ("head", memlab.DamageWarning)):
            (folder / name).unlink()
            (folder / name).symlink_to(target)
            with pytest.raises(fault):
                lab.remember(f"a memory after the link {name}")
            (folder / name).unlink()
    assert target.read_text() == "a file of the reader"
