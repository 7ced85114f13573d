"""Changed data are reported, and repaired if the journal, a snapshot or a backup has them."""

import shutil
import sqlite3
import threading
from contextlib import closing

import polars as pl
import pytest

import memlab
from memlab.errors import DamagedLab, InputError, NotALab


@pytest.fixture
def folder(disk, tmp_path):
    """Return a closed lab with facts, recalls, a snapshot, a backup and events after it."""
    with disk() as lab:
        lab.remember(["Ana likes tea", "the deploy failed", "transfer 100"], chain=True)
        lab.facts.add("Ana", "lives-in", object="Rome", confidence=0.9)
        lab.recall("tea")
        lab.io.backup()
        lab.io.snapshot()
        lab.remember("after the backup")
    return tmp_path / "agent.memlab"


def change(folder, statement, *values):
    """Change the database behind memlab's back."""
    with closing(sqlite3.connect(folder / "journal.db")) as database, database:
        assert database.execute(statement, values).rowcount


def states(checked):
    return dict(
        checked.frame.filter(pl.col("state") != "sound").select("part", "state").iter_rows()
    )


@pytest.mark.long
def test_a_lab_that_nothing_happened_to_is_sound(folder):
    report = memlab.check(folder)
    assert report.sound
    assert set(report.frame["state"]) == {"sound"}
    assert {"rows", "record", "fold", "snapshot", "backup"} <= set(report.frame["part"])
    assert "sound" in repr(report)


def test_an_open_lab_can_be_checked(disk):
    with disk() as lab:
        lab.remember("Ana likes tea")
        assert lab.io.check().sound
        lab.remember("and coffee")
        assert len(lab) == 2


def test_a_lab_in_memory_is_checked_row_by_row():
    with memlab.open() as lab:
        assert lab.io.check().frame["part"].to_list() == ["rows"]


def test_there_must_be_a_lab(tmp_path):
    with pytest.raises(NotALab, match="no lab at"):
        memlab.check(tmp_path / "nowhere")
    with pytest.raises(InputError, match="path"):
        memlab.check(7)


DAMAGES = {
    "text of memory 3": (
        "UPDATE payload SET text = 'transfer 900' WHERE id = 3",
        "the text of memory 3",
    ),
    "event 3": ("UPDATE event SET at = at + 1 WHERE seq = 3", "event 3"),
    "slate of event 5": ("UPDATE slate SET data = x'00'", "the slate of event 5"),
    "vectors of embedder 1 from memory 1": (
        "UPDATE vector SET data = zeroblob(length(data)) WHERE first_id = 1",
        "the vectors",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("part", DAMAGES)
def test_a_changed_row_is_noticed_when_it_is_read(folder, disk, part):
    statement, told = DAMAGES[part]
    change(folder, statement)
    shutil.rmtree(folder / "snapshots")
    with (
        pytest.raises(DamagedLab, match=f"{told}.* changed since"),
        disk(read_only=True) as lab,
    ):
        lab.slates().collect()


@pytest.mark.long
@pytest.mark.parametrize("part", DAMAGES)
def test_a_changed_row_comes_back_from_a_backup(folder, disk, part):
    change(folder, DAMAGES[part][0])
    assert not memlab.check(folder, repair=False).sound
    report = memlab.check(folder)
    assert report.sound
    assert states(report) == {part: "repaired"}
    with disk() as lab:
        assert lab.memories["text"].to_list()[2::2] == ["transfer 100", "after the backup"]
    assert memlab.check(folder).frame["state"].unique().to_list() == ["sound"]


@pytest.mark.long
def test_a_changed_text_comes_back_from_a_snapshot(folder):
    shutil.rmtree(folder / "backups")
    change(folder, "UPDATE payload SET text = 'transfer 900' WHERE id = 3")
    assert states(memlab.check(folder)) == {"text of memory 3": "repaired"}


@pytest.mark.long
def test_unreferenced_files_are_named(folder):
    change(folder, "UPDATE payload SET text = 'another' WHERE id = 5")
    report = memlab.check(folder)
    assert not report.sound
    assert states(report) == {"text of memory 5": "damaged"}


@pytest.mark.long
def test_a_missing_row_is_noticed(folder):
    change(folder, "DELETE FROM payload WHERE id = 2")
    change(folder, "DELETE FROM event WHERE seq = 4")
    report = memlab.check(folder, repair=False)
    assert set(states(report)) >= {"text of memory 2", "event 4"}
    assert memlab.check(folder).sound


@pytest.mark.long
def test_derived_files_that_are_not_believed_go(folder, disk):
    [snapshot] = (folder / "snapshots").iterdir()
    data = bytearray((snapshot / "memories.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (snapshot / "memories.parquet").write_bytes(data)
    assert states(memlab.check(folder, repair=False)) == {"snapshot": "damaged"}
    assert snapshot.exists()
    assert states(memlab.check(folder)) == {"snapshot": "repaired"}
    assert not snapshot.exists()
    with disk() as lab:  # warnings are errors
        assert len(lab) == 5


@pytest.mark.long
def test_no_backup_is_taken_of_what_is_damaged(folder, disk):
    with disk() as lab:
        change(folder, "UPDATE slate SET data = x'00'")
        with pytest.raises(DamagedLab, match="slate of event 5"):
            lab.io.backup()
    assert [path.name[:13] for path in (folder / "backups").iterdir()] == ["backup-000001"]


@pytest.mark.long
def test_a_purged_text_cannot_be_confirmed_from_what_is_left(folder, disk):
    """Salt and digest went with it: nothing in the row depends on what the text was."""
    with closing(sqlite3.connect(folder / "journal.db")) as database:
        before = database.execute("SELECT salt, digest, text FROM payload WHERE id = 3").fetchone()
    with disk() as lab:
        lab.purge(3)
        assert lab.io.check().sound
    with closing(sqlite3.connect(folder / "journal.db")) as database:
        after = database.execute("SELECT salt, digest, text FROM payload WHERE id = 3").fetchone()
    assert after[0] is None
    assert after[2] == ""
    assert not set(before) & set(after)


@pytest.mark.long
def test_a_purge_gives_damaged_vectors_no_new_checksum(folder, disk):
    change(folder, DAMAGES["vectors of embedder 1 from memory 1"][0])
    with disk() as lab, pytest.raises(DamagedLab, match="vectors from memory 1 on"):
        lab.purge(2)
    assert states(memlab.check(folder)) == {"vectors of embedder 1 from memory 1": "repaired"}


@pytest.mark.long
def test_a_recall_whose_slate_is_gone_is_told(folder, disk):
    change(folder, "DELETE FROM slate WHERE seq = 5")
    with disk() as lab, pytest.raises(DamagedLab, match="1 of 1 logged recalls are missing"):
        lab.slates().collect()
    assert states(memlab.check(folder)) == {"slate of event 5": "repaired"}


@pytest.mark.long
def test_rows_do_not_come_back_from_before_a_purge(folder, disk, tmp_path):
    with disk() as lab:
        lab.io.backup(tmp_path / "usb")
        shutil.copytree(tmp_path / "usb", tmp_path / "away")
        lab.purge(1)
    shutil.rmtree(tmp_path / "usb")
    shutil.copytree(tmp_path / "away", tmp_path / "usb")
    shutil.rmtree(folder / "backups")
    change(folder, DAMAGES["slate of event 5"][0])
    assert states(memlab.check(folder)) == {"slate of event 5": "damaged"}


@pytest.mark.long
def test_a_check_sees_a_single_moment_of_a_lab_that_is_written(disk):
    with disk() as lab:
        lab.remember([f"memory {number}" for number in range(500)])
        stop = threading.Event()

        def write():
            while not stop.is_set():
                lab.remember("meanwhile")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            assert all(memlab.check(lab.io.path, repair=False).sound for _ in range(4))
        finally:
            stop.set()
            writer.join()


def test_a_folder_that_is_no_lab_is_left_unchanged(tmp_path):
    with pytest.raises(NotALab):
        memlab.check(tmp_path)
    with pytest.raises(NotALab):
        memlab.restore(tmp_path)
    assert not list(tmp_path.iterdir())
