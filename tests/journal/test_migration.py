"""A lab of an earlier format opens as it was, and once opened for writing it is of today's."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import msgspec
import pytest
from polars.testing import assert_frame_equal

import memlab
from memlab.errors import DamagedLab, LabBusy, NewerLab
from memlab.kernel.journal import Journal, WriterLock
from memlab.kernel.journal._copies import is_intact
from memlab.kernel.journal._database import VERSION
from tests.journal.formats import as_format_1, as_format_2, format_of

pytestmark = pytest.mark.long


@pytest.fixture
def folder(disk, tmp_path):
    with disk() as lab:
        lab.remember(["Ana likes tea", "the deploy failed"], chain=True)
        lab.facts.add("Ana", "lives-in", object="Rome", confidence=0.9)
        lab.recall("tea")
        lab.purge(2)
        lab.io.snapshot()
    return tmp_path / "agent.memlab"


def frames(lab):
    return [
        lab.memories,
        lab.edges,
        lab.facts.entities.frame(),
        lab.slates().candidates.collect(),
        lab.policies.history("explore"),
    ]


def test_everything_is_as_it_was(folder, disk):
    with disk(read_only=True) as lab:
        before = frames(lab)
    as_format_1(folder)
    # the snapshot is of the lab as it was
    with pytest.warns(memlab.DamageWarning, match="another history"):
        lab = disk()
    with lab:
        for was, now in zip(before, frames(lab), strict=True):
            assert_frame_equal(was, now)
        assert lab.io.check().sound
    with disk() as lab:
        assert lab.remember("and it goes on").id == 4


def test_a_lab_that_may_not_be_written_is_read_through_a_copy_in_memory(folder, disk):
    with disk(read_only=True) as lab:
        before = lab.memories
    as_format_1(folder)
    shutil.rmtree(folder / "snapshots")
    as_it_is = (folder / "journal.db").read_bytes()
    with disk(read_only=True) as lab:
        assert_frame_equal(lab.memories, before)
    assert (folder / "journal.db").read_bytes() == as_it_is


def test_a_migration_runs_once_and_in_one_process(folder):
    as_format_1(folder)
    with Journal.open(folder) as lab, Journal.open(folder) as other:
        assert lab.identity == other.identity
        assert lab.chain(lab.head) == other.chain(other.head)
    assert is_intact(folder)


def test_a_format_that_the_tables_do_not_have_is_damage(folder):
    with closing(sqlite3.connect(folder / "journal.db")) as database:
        database.execute("PRAGMA user_version = 1")
    with pytest.raises(DamagedLab, match="not the tables of format 1"):
        Journal.open(folder)


def test_ids_that_an_interrupted_write_left_out_are_rows_without_content(folder, disk):
    """An earlier version gave the id 6 where 4 was next: its state had a row twice."""
    with disk() as lab:
        lab.remember("the newest", kind="goal")
    as_format_1(folder)
    shutil.rmtree(folder / "snapshots")
    with closing(sqlite3.connect(folder / "journal.db")) as database, database:
        seq, body = database.execute(
            "SELECT seq, body FROM event ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        body = msgspec.msgpack.decode(body) | {"first": 6}
        database.execute(
            "UPDATE event SET body = ? WHERE seq = ?", (msgspec.msgpack.encode(body), seq)
        )
        database.execute("UPDATE payload SET id = 6 WHERE id = 4")
        database.execute("UPDATE vector SET first_id = 6 WHERE first_id = 4")
    with disk() as lab:
        assert lab.memories["status"].to_list() == [
            "active",
            "purged",
            "active",
            "purged",
            "purged",
            "active",
        ]
        assert (lab[6].text, lab[6].kind) == ("the newest", "goal")
        assert lab.recall("the newest")[0].id == 6
        assert lab.io.check().sound


TODAY = (VERSION, memlab.__version__)


def test_a_new_lab_and_a_migrated_one_say_their_format_and_who_gave_it(folder):
    assert format_of(folder) == TODAY
    as_format_1(folder)
    Journal.open(folder).close()
    assert format_of(folder) == TODAY


def test_opening_for_writing_raises_format_2_and_changes_nothing_else(folder, disk):
    with disk(read_only=True) as lab:
        before, head = frames(lab), lab.io.store.journal.chain(lab.io.store.journal.head)
    as_format_2(folder)
    with disk() as lab:  # warnings are errors: the snapshot is believed
        assert format_of(folder) == TODAY
        assert lab.io.store.journal.chain(lab.io.store.journal.head) == head
        for was, now in zip(before, frames(lab), strict=True):
            assert_frame_equal(was, now)
        assert lab.io.check().sound
    with disk() as lab:
        assert lab.remember("and it goes on").id == 4


@pytest.mark.parametrize("immutable", [False, True])
def test_reading_format_2_changes_nothing(folder, disk, immutable):
    with disk(read_only=True) as lab:
        before = lab.memories
    as_format_2(folder)
    as_it_is = (folder / "journal.db").read_bytes()
    with disk(read_only=True) as lab:
        assert_frame_equal(lab.memories, before)
        assert_frame_equal(lab.at(event=lab.io.store.journal.head).memories, before)
    with Journal.open(folder, read_only=True, immutable=immutable) as journal:
        assert not journal.faults()
    assert (folder / "journal.db").read_bytes() == as_it_is
    assert format_of(folder) == (2, None)


def test_format_2_is_raised_under_the_writers_lock(folder):
    as_format_2(folder)
    with WriterLock(folder / "lock").hold(1), pytest.raises(LabBusy):
        Journal.open(folder, timeout=0.05)
    assert format_of(folder) == (2, None)


_KILLED = """
import os, signal, sys
from memlab.kernel.journal import Journal, _database
mark = _database.mark_format
def killed(connection):
    mark(connection)
    os.kill(os.getpid(), signal.SIGKILL)
_database.mark_format = killed
Journal.open(sys.argv[1])
"""


@pytest.mark.parametrize("as_it_was", [as_format_1, as_format_2])
def test_a_process_that_is_killed_while_it_raises_the_format_leaves_the_lab_as_it_was(
    folder, as_it_was
):
    shutil.rmtree(folder / "snapshots")
    as_it_was(folder)
    with closing(sqlite3.connect(folder / "journal.db")) as database:
        before = list(database.iterdump())
    assert subprocess.run([sys.executable, "-c", _KILLED, folder]).returncode == -signal.SIGKILL
    with closing(sqlite3.connect(folder / "journal.db")) as database:
        assert list(database.iterdump()) == before
        assert database.execute("PRAGMA user_version").fetchone()[0] < VERSION
    with Journal.open(folder) as journal:
        assert not journal.faults()
    assert format_of(folder) == TODAY


def test_a_backup_of_a_lab_of_format_2_is_restored_to_one_of_today(folder, disk):
    with disk() as lab:
        path = lab.io.backup().path
        before = lab.memories
    as_format_2(path)
    (folder / "journal.db").write_bytes(b"")
    assert memlab.restore(folder, path).backup == path
    assert format_of(folder) == TODAY
    with disk() as lab:
        assert_frame_equal(lab.memories, before)


def test_a_journal_of_a_later_version_is_neither_restored_nor_replaced(folder, disk):
    with disk() as lab:
        kept, older = lab.io.backup().path, lab.io.backup(folder.parent / "older").path
    make_newer(kept)
    with pytest.raises(NewerLab, match=f"{kept.name} has format {VERSION + 1}, written by memlab"):
        memlab.restore(folder, kept)
    make_newer(folder)
    before = (folder / "journal.db").read_bytes()
    for backup in (None, older):
        with pytest.raises(
            NewerLab, match=f"agent.memlab has format {VERSION + 1}, written by memlab"
        ):
            memlab.restore(folder, backup)
    for repair in (False, True):
        with pytest.raises(NewerLab, match=f"agent.memlab has format {VERSION + 1}"):
            memlab.check(folder, repair=repair)
    assert (folder / "journal.db").read_bytes() == before


def make_newer(folder):
    """Give a closed lab, or a backup, the number of a later format."""
    with closing(sqlite3.connect(folder / "journal.db")) as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
