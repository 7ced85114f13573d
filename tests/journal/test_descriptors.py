"""Open files of a lab: three, none when it is closed or dropped, and an error that says what to do at the limit."""

from __future__ import annotations

import errno
import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memlab
from memlab.errors import LabUnavailable
from memlab.kernel.journal import _database

FILES = Path("/proc/self/fd")

pytestmark = pytest.mark.skipif(not FILES.exists(), reason="needs the folder /proc of Linux")


def files_below(folder: Path) -> list[str]:
    """Return the open files below a folder, by name."""
    names = []
    for file in FILES.iterdir():
        try:
            target = str(file.readlink())
        except FileNotFoundError:  # that of the listing itself
            continue
        if target.startswith(str(folder)):
            names.append(Path(target).name)
    return sorted(names)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[memlab.Lab]:
    with memlab.open(tmp_path / "lab") as lab:
        yield lab


@pytest.mark.long
def test_an_open_lab_has_three_files(lab: memlab.Lab, tmp_path: Path) -> None:
    for number in range(5):
        lab.remember(f"The user likes tea number {number}")
        lab.recall("tea")
    lab.feedback(1, "success")
    lab.io.snapshot()
    lab.upkeep.maintain()
    assert files_below(tmp_path) == ["journal.db", "journal.db-shm", "journal.db-wal"]
    # opened again from the snapshot
    lab.close()
    lab = memlab.open(tmp_path / "lab")
    lab.recall("tea")
    assert files_below(tmp_path) == ["journal.db", "journal.db-shm", "journal.db-wal"]
    lab.io.backup()
    # SQLite keeps the descriptor of the copying connection, and uses it for the next copy
    lab.io.backup()
    assert len(files_below(tmp_path)) <= 4
    with memlab.open(tmp_path / "lab", read_only=True) as reader:
        reader.recall("tea")
        assert len(files_below(tmp_path)) <= 6
    lab.close()
    assert files_below(tmp_path) == []


@pytest.mark.long
def test_a_lab_that_is_dropped_leaves_no_file_open(tmp_path: Path) -> None:
    for number in range(5):
        lab = memlab.open(tmp_path / str(number))
        lab.remember("tea")
        lab.recall("tea")
    del lab
    gc.collect()
    assert files_below(tmp_path) == []


@pytest.mark.long
def test_many_labs_within_the_limit(tmp_path: Path) -> None:
    labs = [memlab.open(tmp_path / str(number)) for number in range(20)]
    for lab in labs:
        lab.remember("tea")
    assert len(files_below(tmp_path)) <= 60
    for lab in labs:
        lab.close()
    assert files_below(tmp_path) == []


def test_the_limit_of_open_files_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memlab.open(tmp_path / "lab").close()

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "dup", refuse)
    monkeypatch.setattr(
        _database, "open_database", lambda *a, **k: (_ for _ in ()).throw(_cannot_open())
    )
    with pytest.raises(LabUnavailable, match=r"Too many open files.*Close other labs") as caught:
        memlab.open(tmp_path / "lab")
    assert "read_only" not in str(caught.value)


def fail_after_preview(journal: Any, head: int) -> None:
    """Write an event, read it within the write, and give it up."""
    with journal.write() as tx:
        tx.event("link", {}, at=0)
        assert tx.preview().head == head + 1
        time.sleep(0.01)  # the other threads read
        raise RuntimeError


def _cannot_open() -> Exception:
    import sqlite3

    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    error.sqlite_errorname = "SQLITE_CANTOPEN"
    return error


@pytest.mark.long
def test_readers_see_only_committed_rows_beside_a_writer(lab: memlab.Lab) -> None:
    """One connection reads and writes: other threads must never see a row that is rolled back."""
    journal, seen, stop = lab.io.store.journal, [], threading.Event()
    lab.remember("The user likes tea")
    head = journal.head

    def read() -> None:
        while not stop.is_set():
            seen.append(journal.head)
            lab.io.backup() if len(seen) == 50 else None

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(30):
        with pytest.raises(RuntimeError):
            fail_after_preview(journal, head)
    stop.set()
    for reader in readers:
        reader.join(30)
    assert set(seen) == {head}
