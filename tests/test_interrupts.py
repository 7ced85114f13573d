"""Locks that an interrupt leaves held: a public call that it ends gives them back."""

import threading
from pathlib import Path

import pytest

import memlab
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.threads import ThreadLock


def test_a_lock_that_an_interrupt_left_held_is_given_back():
    lock = ThreadLock()

    @checked
    def call(count: int) -> None:
        # as an interrupt leaves it that strikes between the end of a block and its release
        lock.__enter__()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(1)
    assert not lock.owned


@pytest.mark.long
def test_a_block_within_a_block_of_one_thread():
    lock, entered = ThreadLock(), threading.Event()
    other = threading.Thread(target=lambda: lock.__enter__() or entered.set() or lock.__exit__())
    with lock:
        with lock:
            other.start()
        assert lock.owned
        assert not entered.wait(0.05)
    assert entered.wait(10)
    other.join()


def test_a_block_that_is_closed_late_releases_nothing_that_was_freed():
    lock = ThreadLock()
    block = lock.hold()
    block.__enter__()
    lock.free()
    with lock:
        block.__exit__(None, None, None)
        assert lock.owned


@pytest.mark.long
def test_every_lock_is_one_that_an_interrupt_gives_back():
    """An interrupt could leave a ``threading.Lock`` or ``RLock`` locked; a waiting thread would wait permanently."""
    folder = Path(memlab.__file__).parent
    names = [
        file.name
        for file in folder.rglob("*.py")
        if "Lock()" in file.read_text().replace("ThreadLock()", "")
    ]
    assert names == ["threads.py"]
