"""A statement that a later memory replaced ranks lower for queries about it, and for no others."""

import pytest

import memlab
from memlab.kernel.base.clock import ManualClock

pytestmark = pytest.mark.long

OLD = (
    "I was in the garden. The shed has 12 shelves, which my father built, and the new door is made of oak. "
    "It kept raining, so nothing else was done."
)
NEW = "It was a long weekend. After the sale I can say that the shed has 15 shelves, and I slept badly."
SHELVES, DOOR = "How many shelves does the shed have?", "What is the new door made of?"


@pytest.fixture
def lived():
    clock = ManualClock("2026-01-01")
    with memlab.open(clock=clock) as lab:
        lab.remember("The cellar smells of apples", linking="now")
        old = lab.remember(OLD, linking="now")
        clock.advance(days=3)
        new = lab.remember(NEW, linking="now")
        yield lab, old, new


def outdated(lab, question, id):
    slate = lab.recall(question, limit=3, log=False).slate
    return slate.numbers["outdated"][slate.ids.tolist().index(id)]


def test_linking_joins_the_two_and_both_stay(lived):
    lab, old, new = lived
    edges = lab.edges.filter(relation="updates")
    assert edges.select("source", "target").rows() == [(new.id, old.id)]
    assert 0.4 <= edges["weight"][0] <= 1
    assert lab.memories["status"].to_list() == ["active"] * 3


def test_only_queries_about_the_replaced_statement_rank_it_lower(lived):
    lab, old, new = lived
    assert outdated(lab, SHELVES, old.id) == 1
    assert outdated(lab, SHELVES, new.id) == 0
    assert outdated(lab, DOOR, old.id) == 0
    assert lab.recall(SHELVES, limit=3, log=False)[0].id == new.id
    assert lab.recall(DOOR, limit=3, log=False)[0].id == old.id


def test_a_question_that_compares_times_is_told_so(lived):
    lab, *_ = lived
    asked = lambda text: set(lab.recall(text, log=False).slate.numbers["asks-over-time"].tolist())  # noqa: E731
    assert asked("How many more shelves does the shed have than originally?") == {1.0}
    assert asked(SHELVES) == {0.0}


@pytest.mark.parametrize("end", ["purge", "forget"])
def test_a_statement_is_current_again_once_its_replacement_is_deleted(lived, end):
    lab, old, new = lived
    if end == "purge":
        lab.purge(new.id)
        assert not lab.edges.filter(relation="updates").height
    else:
        lab.forget(new.id)
    assert outdated(lab, SHELVES, old.id) == 0


def test_another_speaker_or_project_puts_nothing_right():
    for given in ({"speaker": "Ada"}, {"project": "another"}):
        with memlab.open() as lab:
            lab.remember(OLD, linking="now", speaker="Tom")
            lab.remember(NEW, linking="now", **({"speaker": "Tom"} | given))
            assert "updates" not in lab.edges["relation"].to_list()
