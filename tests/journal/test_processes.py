"""One journal, several processes."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import sys
from multiprocessing.synchronize import Barrier
from multiprocessing.synchronize import Event as Signal
from pathlib import Path

import pytest

from memlab.errors import LabBusy, LabError
from memlab.kernel.journal import Journal
from memlab.kernel.privacy import Screened

pytestmark = pytest.mark.long

spawn = multiprocessing.get_context("spawn")

WRITES = 150


def write_many(path: Path, name: str, start: Barrier) -> None:
    with Journal.open(path) as journal:
        start.wait(30)
        for number in range(WRITES):
            with journal.write(durable=number % 2 == 0) as tx:
                id = tx.head + 1
                assert tx.event("note", {"by": name, "number": number}, at=0) == id
                tx.payloads([id], [Screened(f"{name} {number} " * 50)])
            if number == WRITES // 2:
                # the lock is not fair: without this one may be done before the other begins
                start.wait(30)
            if number % 50 == 49:
                journal.close()
                journal = Journal.open(path)
        journal.close()


def hold(path: Path, acquired: Signal, release: Signal) -> None:
    with Journal.open(path) as journal, journal.write() as tx:
        tx.event("note", {"by": "holder"}, at=0)
        acquired.set()
        release.wait()


def test_two_processes_that_write_at_once_lose_nothing_and_interleave(tmp_path: Path) -> None:
    path, start = tmp_path / "lab", spawn.Barrier(2)
    writers = [spawn.Process(target=write_many, args=(path, name, start)) for name in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    with Journal.open(path) as journal:
        events = list(journal.events())
        texts = journal.texts(range(1, 2 * WRITES + 1))
    assert [event.seq for event in events] == list(range(1, 2 * WRITES + 1))
    for name in ("a", "b"):
        assert [event.body["number"] for event in events if event.body["by"] == name] == list(
            range(WRITES)
        )
    assert texts == [f"{event.body['by']} {event.body['number']} " * 50 for event in events]
    changes = sum(one.body["by"] != two.body["by"] for one, two in itertools.pairwise(events))
    assert changes > 1


def test_another_process_that_writes_is_named_and_does_not_stop_readers(tmp_path: Path) -> None:
    path, held, release = tmp_path / "lab", spawn.Event(), spawn.Event()
    with Journal.open(path, timeout=0.1) as journal:
        with journal.write() as tx:
            tx.event("note", {"by": "me"}, at=0)
        holder = spawn.Process(target=hold, args=(path, held, release))
        holder.start()
        assert held.wait(30)
        with pytest.raises(LabBusy, match=f"process {holder.pid}"), journal.write():
            pass
        assert journal.head == 1
        with Journal.open(path) as other:
            assert [event.body["by"] for event in other.events()] == ["me"]
        release.set()
        holder.join()
        assert [event.body["by"] for event in journal.events()] == ["me", "holder"]


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    path, held, release = tmp_path / "lab", spawn.Event(), spawn.Event()
    holder = spawn.Process(target=hold, args=(path, held, release))
    holder.start()
    assert held.wait(30)
    holder.kill()
    holder.join()
    with Journal.open(path, timeout=0.5) as journal:
        assert journal.head == 0
        with journal.write() as tx:
            assert tx.event("note", {}, at=0) == 1


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="fork warns in a process with threads from 3.12 on"
)
def test_a_fork_must_open_its_own(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "lab") as journal:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _ = journal.head
            except LabError as error:
                code = 0 if "fork" in str(error) else 2
            journal.close()
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with journal.write() as tx:
            assert tx.event("note", {}, at=0) == 1
