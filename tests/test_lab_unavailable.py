"""A lab whose disk is away: it says so, nothing is written elsewhere, and it goes on when it is back."""

import contextlib
import os
import warnings

import pytest
from embedders import letters

import memlab
from memlab.errors import LabBusy, LabUnavailable
from memlab.kernel.journal import WriterLock

AWAY = r"Memory is unavailable: .*agent.memlab is out of reach \(.*\). Nothing was written, there or elsewhere. Continue"


@pytest.fixture
def share(tmp_path):
    """Return a disk that can be taken away."""
    folder = tmp_path / "share"
    folder.mkdir()
    return folder


@pytest.fixture
def path(share):
    return share / "agent.memlab"


def opened(path, **more):
    return memlab.open(path, embedder=letters, **more)


def away(path):
    """Move the lab away; return a function that brings it back."""
    there = path.with_name("away")
    path.rename(there)
    return lambda: there.rename(path)


def calls(lab):
    agent = lab.agents("coder", project="api")
    return [
        lambda: lab.remember("deploys go out on Wednesdays"),
        lambda: lab.remember(["a", "b"]),
        lambda: lab.recall("deploys"),
        lambda: lab.recall("deploys", log=False),
        lambda: lab.context("deploys"),
        lambda: lab.memories,
        lambda: lab.log,
        lambda: lab.forget(1),
        lambda: lab.io.snapshot(),
        lambda: lab.io.backup(),
        lambda: lab.upkeep.maintain(),
        lambda: lab.agents.switch_off(),
        lambda: lab.load([{"role": "user", "content": "x"}], progress=False),
        lambda: agent.remember("deploys are announced"),
        lambda: agent.recall("deploys"),
    ]


@pytest.mark.long
def test_every_call_says_that_memory_is_unavailable_and_goes_on_when_it_is_back(path, share):
    with opened(path) as lab:
        lab.remember("deploys go out on Tuesdays")
        asked = calls(lab)
        head = lab.io.store.journal.head
        back = away(path)
        before = sorted(file.name for file in share.iterdir())
        for call in asked:
            with pytest.raises(LabUnavailable, match=AWAY):
                call()
        assert sorted(file.name for file in share.iterdir()) == before, (
            "no folder was made elsewhere"
        )
        back()
        assert lab.io.store.journal.head == head, "nothing was written while it was away"
        assert len(lab.recall("deploys")) == 1
        lab.remember("deploys are announced")
    with opened(path, create=False) as lab:
        assert len(lab) == 2
        assert lab.io.check().sound


def test_an_empty_place_where_it_was_is_not_the_lab(path):
    """The point at which a disk is mounted is a folder too."""
    with opened(path) as lab:
        back = away(path)
        path.mkdir()
        with pytest.raises(LabUnavailable):
            lab.remember("x")
        with pytest.raises(LabUnavailable, match="no lab is there"):
            opened(path, create=False)
        assert list(path.iterdir()) == []
        path.rmdir()
        back()
        lab.remember("x")


def test_turns_say_so_and_go_on(path):
    with opened(path) as lab, lab.agents.turns() as turns:
        lab.remember("deploys go out on Tuesdays")
        back = away(path)
        turns.offer("deploys")
        assert turns.wait(30)
        with pytest.raises(LabUnavailable):
            turns.offer("deploys")
        assert turns.wait(30)
        back()
        with contextlib.suppress(LabUnavailable):  # what came of the search before
            turns.offer("when do deploys go out?")
        assert turns.wait(30)
        assert len(turns.offer("when do deploys go out?")) == 1
        assert turns.wait(30)


def test_closing_while_it_is_away_loses_nothing(path, share):
    lab = opened(path)
    lab.remember("deploys go out on Tuesdays")
    back = away(path)
    before = sorted(file.name for file in share.iterdir())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lab.close()
    assert sorted(file.name for file in share.iterdir()) == before
    back()
    with opened(path, create=False) as lab:
        assert len(lab) == 1


def test_opening_what_is_away_makes_nothing(path, share):
    with pytest.raises(LabUnavailable, match=AWAY):
        opened(path, create=False)
    with pytest.raises(LabUnavailable):
        opened(share / "deeper" / "agent.memlab", create=False)
    assert list(share.iterdir()) == []
    with pytest.raises(memlab.InputError, match="always new"):
        memlab.open(create=False)
    opened(path).close()
    opened(path, create=False).close()


@pytest.mark.skipif(os.geteuid() == 0, reason="the owner of the machine may read everything")
def test_no_permission(path, share):
    opened(path).close()
    share.chmod(0)
    try:
        with pytest.raises(LabUnavailable, match="Permission denied"):
            opened(path)
    finally:
        share.chmod(0o700)


def test_a_disk_that_answers_with_an_error(path, monkeypatch):
    opened(path).close()
    monkeypatch.setattr(
        "pathlib.Path.exists", lambda self: (_ for _ in ()).throw(OSError(116, "Stale file handle"))
    )
    with pytest.raises(LabUnavailable, match="Stale file handle"):
        opened(path)


def test_a_lock_of_another_machine_is_called_that(tmp_path, monkeypatch):
    lock, other = WriterLock(tmp_path / "lock"), WriterLock(tmp_path / "lock")
    with lock.hold(0.0):
        with pytest.raises(LabBusy, match=rf"by process {os.getpid()}, which"), other.hold(0.0):
            pass

        def gone(pid, signal):
            raise ProcessLookupError

        monkeypatch.setattr(os, "kill", gone)
        with pytest.raises(LabBusy, match="of another machine"), other.hold(0.0):
            pass


def test_serving_a_lab_that_is_away(path, run):
    served = run("serve", path, "--existing")
    assert served.exit_code == 1
    assert "Memory is unavailable" in served.stderr
    assert not path.exists()


def test_adapters_say_so_and_go_on(path, share):
    from memlab.io.adapters.mem0 import Mem0Memory

    with opened(path) as lab:
        memory = Mem0Memory(lab)
        memory.add("I live in Rome", user_id="ida", infer=False)
        back = away(path)
        before = sorted(file.name for file in share.iterdir())
        for call in (
            lambda: memory.add("I live in Oslo", user_id="ida", infer=False),
            lambda: memory.search("Rome", filters={"user_id": "ida"}),
            lambda: memory.get_all(filters={"user_id": "ida"}),
        ):
            with pytest.raises(LabUnavailable):
                call()
        assert sorted(file.name for file in share.iterdir()) == before
        back()
        assert len(memory.get_all(filters={"user_id": "ida"})["results"]) == 1
