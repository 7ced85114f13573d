"""A journal as it was after one of its events."""

import pytest

from memlab.errors import ReadOnlyLab
from memlab.kernel.journal import Journal, JournalView


@pytest.fixture
def journal():
    with Journal.open(None) as opened:
        for at in (10, 30, 20):
            with opened.write() as tx:
                tx.slate(tx.event("noted", {"at": at}, at=at), b"slate %d" % at)
        yield opened


@pytest.mark.parametrize("head", [0, 1, 2, 3])
def test_later_events_are_not_there(journal, head):
    view = JournalView(journal, head)
    assert view.head == head
    assert [event.seq for event in view.events()] == list(range(1, head + 1))
    assert [event.seq for event in view.events(after=1, upto=99)] == list(range(2, head + 1))
    assert [seq for seq, _ in view.slates()] == list(range(1, head + 1))


def test_the_last_event_by_a_time_though_clocks_went_back(journal):
    assert [journal.last_at(at) for at in (9, 10, 19, 20, 30)] == [0, 1, 1, 3, 3]
    assert JournalView(journal, 2).last_at(20) == 2


def test_nothing_can_be_written(journal):
    with pytest.raises(ReadOnlyLab, match="after event 2"), JournalView(journal, 2).write():
        raise AssertionError("not reached")
    assert journal.head == 3


def test_closing_the_past_leaves_the_journal_open(journal):
    view = JournalView(JournalView(journal, 3), 2)
    view.close()
    assert view.closed
    assert not journal.closed
