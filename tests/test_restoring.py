"""A journal that is shorter than it was is told of until it is settled; a backup can be put in its place."""

import functools
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import memlab
from memlab.errors import DamagedLab, InputError, LabError, NotALab

WRITE = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import memlab
from embedders import letters
lab = memlab.open({path!r}, embedder=letters)
for number in range(5):
    lab.remember(f"acknowledged {{number}}")
os.kill(os.getpid(), signal.SIGKILL)
"""


def write_lab(opened):
    """Write three memories, and a backup of the first two."""
    with opened() as lab:
        lab.remember(["Ana likes tea", "the deploy failed"])
        lab.io.backup()
        lab.remember("after the backup")


@pytest.fixture
def folder(disk, tmp_path):
    write_lab(disk)
    return tmp_path / "agent.memlab"


@pytest.fixture(scope="module")
def left(trigrams, tmp_path_factory):
    """Write a lab with a write-ahead log, as a killed process leaves it."""
    path = tmp_path_factory.mktemp("killed") / "agent.memlab"
    write_lab(
        functools.partial(
            memlab.open, path, embedder=trigrams, clock=memlab.ManualClock("2026-03-01T12:00:00")
        )
    )
    script = WRITE.format(tests=str(Path(__file__).parent), path=str(path))
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    assert (path / "journal.db-wal").stat().st_size
    return path


@pytest.fixture
def killed(left, tmp_path):
    """Copy the killed lab to the path where ``disk`` opens it."""
    return Path(shutil.copytree(left, tmp_path / "agent.memlab"))


@pytest.mark.long
def test_the_log_of_a_killed_process_is_taken_in(killed, disk):
    with disk() as lab:
        assert len(lab) == 8


@pytest.mark.long
@pytest.mark.parametrize("harm", ["truncated", "deleted", "flipped"])
def test_acknowledged_events_that_are_gone_are_told_until_they_are_settled(killed, disk, harm):
    log = killed / "journal.db-wal"
    if harm == "truncated":
        os.truncate(log, log.stat().st_size // 2)
    elif harm == "deleted":
        log.unlink()
        (killed / "journal.db-shm").unlink(missing_ok=True)
    else:
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 1
        log.write_bytes(data)
    for _ in range(2):
        with pytest.warns(
            memlab.DamageWarning, match=r"events [57] to 9 were acknowledged and are missing"
        ):
            lab = disk()
        with lab:
            lab.remember("it goes on")
    report = memlab.check(killed)
    assert not report.sound
    assert "lost" in report.frame["state"].to_list()
    done = memlab.restore(killed)
    assert (done.backup, done.replaced) == (None, None)  # the journal holds more than the backup
    assert memlab.check(killed).sound
    with disk() as lab:  # warnings are errors
        assert lab.memories["text"].to_list()[-2:] == ["it goes on", "it goes on"]


def test_a_damaged_head_file_is_reported_and_written_again(folder, disk):
    (folder / "head").write_bytes(b"nonsense")
    with pytest.warns(memlab.DamageWarning, match="is unknown"):
        disk().close()
    disk().close()


@pytest.mark.long
def test_a_head_file_that_is_older_than_the_journal_is_brought_up_to_it(folder, disk):
    before = (folder / "head").read_bytes()
    with disk() as lab:
        lab.remember("later")
    (folder / "head").write_bytes(before)
    disk().close()
    assert (folder / "head").read_bytes() != before
    (folder / "head").unlink()
    disk().close()
    assert memlab.check(folder).sound


@pytest.mark.long
def test_a_backup_is_put_in_place_of_a_damaged_journal(folder, disk):
    data = (folder / "journal.db").read_bytes()
    (folder / "journal.db").write_bytes(data[: len(data) // 2])
    with pytest.raises(DamagedLab, match="memlab upkeep restore"):
        disk()
    assert not memlab.check(folder).sound
    done = memlab.restore(folder)
    assert done.backup is not None
    assert (done.replaced / "journal.db").read_bytes() == data[: len(data) // 2]
    assert done.frame["event"].to_list() == [done.event]
    with disk() as lab:
        assert lab.memories["text"].to_list() == ["Ana likes tea", "the deploy failed"]
        lab.purge(1)
    assert not (folder / "replaced").exists()  # it held what was purged


@pytest.mark.long
def test_a_lab_whose_journal_is_gone_is_damaged_and_comes_back(folder, disk):
    (folder / "journal.db").unlink()
    with pytest.raises(DamagedLab, match="the journal is missing"):
        disk()
    assert memlab.restore(folder).backup is not None
    with disk() as lab:
        assert len(lab) == 2


@pytest.mark.long
def test_the_backup_that_is_named_is_taken(folder, disk):
    [backup] = (folder / "backups").iterdir()
    memlab.restore(folder, backup)
    with disk() as lab:
        assert len(lab) == 2
        assert lab.remember("another way").id == 3


@pytest.mark.long
def test_records_of_copies_in_the_journal_are_carried_over(folder, disk, tmp_path):
    with disk() as lab:
        lab.io.backup(tmp_path / "elsewhere")
        lab.io.export(tmp_path / "export.jsonl")
    memlab.restore(folder, next((folder / "backups").iterdir()))
    with disk() as lab:
        receipt = str(lab.purge(1).frame.rows())
    assert not list((tmp_path / "elsewhere").glob("backup-000001-*"))
    assert "export.jsonl" in receipt


@pytest.mark.long
def test_a_backup_of_another_lab_is_refused(folder, tmp_path):
    with memlab.open(tmp_path / "other") as other:
        backup = other.io.backup().path
    with pytest.raises(InputError, match="of another lab"):
        memlab.restore(folder, backup)
    with pytest.raises(InputError, match="is not a backup"):
        memlab.restore(folder, tmp_path)
    with pytest.raises(NotALab):
        memlab.restore(tmp_path / "nowhere")


@pytest.mark.long
def test_a_backup_from_before_a_purge_is_refused(folder, disk, tmp_path):
    [backup] = (folder / "backups").iterdir()
    shutil.copytree(backup, tmp_path / "kept aside")
    with disk() as lab:
        lab.purge(1)
    with pytest.raises(InputError, match="before a purge"):
        memlab.restore(folder, tmp_path / "kept aside")


@pytest.mark.long
def test_a_journal_from_before_a_purge_restored_by_hand_is_reported(folder, disk):
    before = (folder / "journal.db").read_bytes()
    with disk() as lab:
        lab.purge(1)
    (folder / "journal.db").write_bytes(before)
    with pytest.warns(memlab.DamageWarning, match="holds again what was purged"):
        disk().close()


@pytest.mark.long
def test_other_open_handles_must_open_the_restored_lab_again(folder, disk):
    [backup] = (folder / "backups").iterdir()
    with disk() as lab:
        memlab.restore(folder, backup)
        with pytest.raises(LabError, match="replaced or removed since it was opened"):
            lab.remember("into a file without a name")


@pytest.mark.long
def test_a_restored_journal_next_to_derived_files_of_a_later_one(folder, disk):
    """The texts of an undone history were shown in the place of what the journal held."""
    [backup] = (folder / "backups").iterdir()
    with disk() as lab:
        lab.remember([f"undone {number}" for number in range(5)])
        lab.io.snapshot()
    shutil.copyfile(backup / "journal.db", folder / "journal.db")
    with pytest.warns(memlab.DamageWarning) as caught:
        lab = disk()
    assert [str(warning.message).partition(": ")[2][:10] for warning in caught] == [
        "events 4 t",
        "The snapsh",
    ]
    with lab:
        lab.remember([f"true {number}" for number in range(8)])
    with pytest.warns(memlab.DamageWarning, match="are missing"):
        lab = disk()
    with lab:
        assert lab.memories["text"].to_list() == [
            *("Ana likes tea", "the deploy failed"),
            *(f"true {number}" for number in range(8)),
        ]


@pytest.mark.long
def test_a_purge_keeps_the_locks_by_which_others_know_that_the_lab_is_open(folder, disk):
    """A file of the database that is opened and closed in this process would drop them: the log would be removed."""
    with disk() as lab:
        lab.purge(1)
        script = WRITE.format(tests=str(Path(__file__).parent), path=str(folder)).replace(
            "os.kill(os.getpid(), signal.SIGKILL)", "lab.close()"
        )
        assert subprocess.run([sys.executable, "-c", script]).returncode == 0
        assert (folder / "journal.db-wal").exists()
        lab.remember("written after the other has closed")
        with disk(read_only=True) as other:
            assert other.memories["text"].to_list()[-1] == "written after the other has closed"


@pytest.mark.long
def test_the_head_file_follows_a_purge_of_another_process(folder, disk):
    [backup] = (folder / "backups").iterdir()
    shutil.copytree(backup, folder.parent / "aside")
    with disk() as lab, disk() as other:
        other.purge(1)
        lab.remember("of the next generation")
    (folder / "journal.db").write_bytes(b"damaged")
    with pytest.raises(InputError, match="before a purge"):
        memlab.restore(folder, folder.parent / "aside")


@pytest.mark.long
def test_a_backup_is_restored_with_its_log(folder, disk, trigrams, clock):
    [backup] = (folder / "backups").iterdir()
    with memlab.open(backup, embedder=trigrams, clock=clock) as copy:
        copy.remember("in the log of the backup")
        memlab.restore(folder, backup)
    with disk() as lab:
        assert lab.memories["text"].to_list()[-1] == "in the log of the backup"


@pytest.mark.long
def test_a_loss_that_somebody_settled_does_not_come_back(killed, disk):
    os.truncate(killed / "journal.db-wal", 0)
    with pytest.warns(memlab.DamageWarning, match="are missing"):
        lab = disk()
    with lab:
        memlab.restore(killed)
        lab.remember("after it was settled")
    disk().close()  # warnings are errors


@pytest.mark.long
def test_a_head_file_that_is_removed_comes_back(folder, disk):
    with disk() as lab:
        lab.remember("one")
        (folder / "head").unlink()
        lab.remember("two")
    assert (folder / "head").exists()
    disk().close()
