"""A lab of the format before chains and checksums opens as it was, and once opened it is of today's."""

import shutil
import sqlite3
from contextlib import closing

import msgspec
import pytest
from polars.testing import assert_frame_equal

import memlab
from memlab.errors import DamagedLab
from memlab.journal import Journal, is_complete
from tests.journal.formats import as_format_1


@pytest.fixture
def folder(disk, tmp_path):
    with disk() as lab:
        lab.remember_many(["Ana likes tea", "the deploy failed"], chain=True)
        lab.facts.add("Ana", "lives-in", object="Rome", confidence=0.9)
        lab.recall("tea")
        lab.purge(2)
        lab.io.snapshot()
    return tmp_path / "agent.memlab"


def frames(lab):
    return [
        lab.memories,
        lab.edges,
        lab.entities.frame(),
        lab.slates().candidates.collect(),
        lab.policies.history("explore"),
    ]


def test_everything_is_as_it_was(folder, disk):
    with disk(read_only=True) as lab:
        before = frames(lab)
    as_format_1(folder)
    with pytest.warns(memlab.DamageWarning, match="another history"):  # the snapshot is of the lab as it was
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


def test_it_is_done_once_and_by_one_process(folder):
    as_format_1(folder)
    with Journal.open(folder) as one, Journal.open(folder) as other:
        assert one.identity == other.identity
        assert one.chain(one.head) == other.chain(other.head)
    assert is_complete(folder)


def test_a_format_that_the_tables_do_not_have_is_damage(folder):
    with closing(sqlite3.connect(folder / "journal.db")) as database:
        database.execute("PRAGMA user_version = 1")
    with pytest.raises(DamagedLab, match="its tables are not of that format"):
        Journal.open(folder)


def test_ids_that_an_interrupted_write_left_out_are_rows_without_content(folder, disk):
    """An earlier version gave the id 6 where 4 was next: its state had a row twice."""
    with disk() as lab:
        lab.remember("the newest", kind="goal")
    as_format_1(folder)
    shutil.rmtree(folder / "snapshots")
    with closing(sqlite3.connect(folder / "journal.db")) as database, database:
        seq, body = database.execute("SELECT seq, body FROM event ORDER BY seq DESC LIMIT 1").fetchone()
        body = msgspec.msgpack.decode(body) | {"first": 6}
        database.execute("UPDATE event SET body = ? WHERE seq = ?", (msgspec.msgpack.encode(body), seq))
        database.execute("UPDATE payload SET id = 6 WHERE id = 4")
        database.execute("UPDATE vector SET first_id = 6 WHERE first_id = 4")
    with disk() as lab:
        assert lab.memories["status"].to_list() == ["active", "purged", "active", "purged", "purged", "active"]
        assert (lab[6].text, lab[6].kind) == ("the newest", "goal")
        assert lab.recall("the newest")[0].id == 6
        assert lab.io.check().sound
