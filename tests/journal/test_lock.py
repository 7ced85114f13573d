"""The writer's lock: a thread cannot take it twice, and a process that ended does not hold it."""

import inspect
import sys
from pathlib import Path

import pytest

from memlab.errors import LabError
from memlab.kernel.journal import WriterLock

FILE = inspect.getfile(WriterLock)


def test_a_thread_cannot_take_the_lock_twice(tmp_path):
    lock = WriterLock(tmp_path / "lock")
    with lock.hold(1.0):
        with pytest.raises(LabError, match="already open in this thread"), lock.hold(1.0):
            pass
        # the first is held still
        with pytest.raises(LabError, match="already open"), lock.hold(1.0):
            pass
    with lock.hold(1.0):
        pass


# Where it strikes before anybody has the file, the file is closed as it is collected, with a ResourceWarning.
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_an_interrupt_at_any_line_leaves_it_free(tmp_path):
    """Each line of the file in turn, while acquiring and releasing the lock."""
    lock, tried = WriterLock(tmp_path / "lock"), 0
    for wanted in range(1, Path(FILE).read_text().count("\n") + 1):
        struck = False

        def trace(frame, event, argument, wanted=wanted):
            nonlocal struck
            if frame.f_code.co_filename != FILE:
                return None
            if event == "line" and frame.f_lineno == wanted and not struck:
                struck = True
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            with lock.hold(1.0):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        tried += struck
        with lock.hold(0.1):
            pass
    assert tried > 20
