"""What is overwritten in a journal leaves no byte in its files; a copy is a lab of its own."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from memlab.errors import DamagedLab, InputError, LabBusy, LabError, ReadOnlyLab
from memlab.kernel.journal import Journal, Scrub, copy_journal
from memlab.kernel.journal._copies import is_intact
from memlab.kernel.privacy import Screened

SECRET = "quokkas in the shed"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a journal of 300 long texts in several sessions; number 7 is the one to purge."""
    folder = tmp_path / "lab"
    for first in range(1, 301, 100):
        with Journal.open(folder) as journal, journal.write() as tx:
            ids = range(first, first + 100)
            tx.payloads(
                ids, [Screened(f"{SECRET if id == 7 else 'text'} {id} " * 60) for id in ids]
            )
            tx.vectors(first, "one", np.full((100, 16), 5, dtype=np.int8))
            tx.event("remember", {"tags": [SECRET if id == 7 else "tag" for id in ids]}, at=0)
            tx.slate(tx.head + 1, f"slate of {SECRET}".encode() if first == 1 else b"slate")
    return folder


def scrub(journal: Journal, upto: int = 1) -> None:
    with journal.write() as tx:
        body = {"tags": [None if id == 7 else "tag" for id in range(1, 101)]}
        tx.scrub(Scrub(bodies={1: body}, slates={1: b"slate of"}, ids=[7]))
        tx.event("purge", {}, at=1)


def holds(folder: Path, word: str = SECRET) -> list[str]:
    return [file.name for file in folder.iterdir() if word.encode() in file.read_bytes()]


def test_a_scrubbed_journal_reads_as_if_the_text_had_never_existed(path: Path) -> None:
    with Journal.open(path) as journal:
        scrub(journal)
        assert journal.texts([6, 7, 8]) == ["text 6 " * 60, "", "text 8 " * 60]
        assert next(journal.events()).body["tags"][5:8] == ["tag", None, "tag"]
        assert next(journal.slates()) == (1, b"slate of")
        vectors = np.concatenate([block for _, block in journal.vectors("one")])
        assert np.flatnonzero((vectors == 0).all(axis=1)).tolist() == [6]


def test_bytes_stay_until_they_are_expunged(path: Path) -> None:
    with Journal.open(path) as journal:
        assert holds(path)
        scrub(journal)
        journal.expunge()
        assert holds(path) == []
        assert (path / "journal.db-wal").stat().st_size == 0
    assert holds(path) == []
    assert is_intact(path)


def test_vectors_of_every_embedder_go_and_blocks_stay_whole(path: Path) -> None:
    with Journal.open(path) as journal:
        with journal.write() as tx:
            tx.vectors(5, "two", np.full((4, 3), 9, dtype=np.int8))
        scrub(journal)
        (first, block) = next(journal.vectors("two"))
        assert (first, block[:, 0].tolist()) == (5, [9, 9, 0, 9])


def test_a_scrub_that_fails_leaves_everything(path: Path) -> None:
    with Journal.open(path) as journal:
        with pytest.raises(InputError), journal.write() as tx:
            tx.scrub(Scrub(ids=[7], bodies={1: {"bad": object()}}))
        assert SECRET in journal.texts([7])[0]


@pytest.mark.long
def test_a_reader_of_the_old_state_is_in_the_way_and_is_named_as_the_reason(path: Path) -> None:
    with (
        Journal.open(path, timeout=0.3) as journal,
        closing(sqlite3.connect(path / "journal.db")) as other,
    ):
        scrub(journal)
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM event").fetchone()
        with pytest.raises(LabBusy, match="still uses an old state"):
            journal.expunge()
        other.execute("COMMIT")
        journal.expunge()
        assert holds(path) == []


def test_nothing_is_expunged_of_a_journal_that_cannot_be_written(path: Path) -> None:
    with Journal.open(path, read_only=True) as journal, pytest.raises(ReadOnlyLab):
        journal.expunge()
    with Journal.open(None) as memory:
        memory.expunge()


# -- copies ---------------------------------------------------------------------------------------------------------


def test_a_copy_holds_what_the_journal_did_at_one_moment(path: Path, tmp_path: Path) -> None:
    with Journal.open(path) as journal:
        with journal.write() as tx:
            tx.meta("kept", "1")
            tx.meta("own", "1")
        copy_journal(journal, tmp_path / "copy", without=("own",))
        with journal.write() as tx:
            tx.event("later", {}, at=2)
        with Journal.open(tmp_path / "copy") as copy:
            assert copy.head == journal.head - 1
            assert [event.body for event in copy.events()] == [
                event.body for event in journal.events(upto=3)
            ]
            assert copy.texts(range(1, 301)) == journal.texts(range(1, 301))
            assert (copy.meta("kept"), copy.meta("own")) == ("1", None)
            with copy.write() as tx:
                tx.event("its own way", {}, at=3)
    assert is_intact(tmp_path / "copy")


def test_a_journal_in_memory_is_copied_to_disk(tmp_path: Path) -> None:
    with Journal.open(None) as journal:
        with journal.write() as tx:
            tx.event("noted", {}, at=0)
        copy_journal(journal, tmp_path / "copy")
    with Journal.open(tmp_path / "copy", create=False) as copy:
        assert copy.head == 1


def test_a_copy_takes_no_place_that_is_taken(path: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    with Journal.open(path) as journal, pytest.raises(LabError, match="No copy"):
        copy_journal(journal, tmp_path / "copy")


def test_damage_is_noticed_by_copying(path: Path, tmp_path: Path) -> None:
    file = path / "journal.db"
    data = bytearray(file.read_bytes())
    data[40960:45056] = b"\x07" * 4096
    file.write_bytes(data)
    assert not is_intact(path)
    with Journal.open(path) as journal, pytest.raises(DamagedLab):
        copy_journal(journal, tmp_path / "copy")
