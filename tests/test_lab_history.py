"""A lab as it was: at any time, after any event; and the log of what happened."""

from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.errors import InputError, ReadOnlyLab
from memlab.kernel.verbs.projections import new_state


@pytest.fixture
def moved(lab, clock):
    """Return a lab in which Ada moves twice in January; the old city is forgotten on the eleventh."""
    lab.remember("Ada lives in Rome", tags=["home"])
    clock.advance(days=10)
    lab.remember("Ada lives in Oslo", tags=["home"])
    lab.forget(1)
    return lab


def days_after(clock, days):
    return clock.now + days * memlab.kernel.base.clock.DAY


@pytest.mark.long
def test_the_past_knows_nothing_of_what_came_later(moved, clock):
    past = moved.at(days_after(clock, -5))
    assert past.memories["text"].to_list() == ["Ada lives in Rome"]
    assert past.memories["status"].to_list() == ["active"]
    assert [hit.text for hit in past.recall("where does Ada live?")] == ["Ada lives in Rome"]
    assert [hit.text for hit in moved.recall("where does Ada live?")] == ["Ada lives in Oslo"]


def test_the_past_is_asked_at_its_own_time(moved, clock):
    before = moved.at(days_after(clock, -5))
    assert before.recall("Ada").slate.at == days_after(clock, -5)


def test_an_event_is_as_good_as_a_time(moved):
    kinds = dict(zip(moved.log["event"], moved.log["kind"], strict=True))
    forgotten = next(event for event, kind in kinds.items() if kind == "forget")
    assert moved.at(event=forgotten - 1)[1].status == "active"
    assert moved.at(event=forgotten)[1].status == "forgotten"


@pytest.mark.long
def test_the_pack_is_the_one_that_decided_then(moved, clock):
    event = moved.log["event"].max()
    moved.policies.use("companion")
    assert moved.at(event=event).policies.pack.name == "memlab"
    assert moved.at(clock.now).policies.pack.name == "companion"


@pytest.mark.long
@pytest.mark.parametrize(
    "write",
    [
        lambda lab: lab.remember("new"),
        lambda lab: lab.forget(1),
        lambda lab: lab.policies.use("cascade"),
        lambda lab: lab.graph.link(1, 2),
    ],
)
def test_the_past_cannot_be_written(moved, write):
    past = moved.at(event=moved.log["event"].max())
    with pytest.raises(ReadOnlyLab, match="which is read-only"):
        write(past)
    assert moved.memories.equals(past.memories)


@pytest.mark.long
def test_a_recall_of_the_past_leaves_no_trace(moved):
    events = moved.log.height
    hits = moved.at(event=moved.log["event"].max()).recall("Ada")
    assert hits.decision is None
    assert moved.log.height == events


def test_the_past_of_the_past(moved, clock):
    past = moved.at(clock.now)
    assert len(past.at(days_after(clock, -5))) == 1
    with pytest.raises(InputError, match="from 1 to"):
        past.at(event=past.log["event"].max() + 1)


def test_before_the_beginning_there_was_no_lab(moved):
    with pytest.raises(
        InputError, match=r"The lab did not exist at that time\. It began .*2026-03-01"
    ):
        moved.at("1999-12-31")
    with pytest.raises(InputError, match="not both"):
        moved.at()


@pytest.mark.long
def test_a_lab_on_disk_has_a_past_while_others_write_to_it(tmp_path, clock):
    with (
        memlab.open(tmp_path / "a", clock=clock) as lab,
        memlab.open(tmp_path / "a", clock=clock) as other,
    ):
        lab.remember("Ada lives in Rome")
        event = lab.log["event"].max()
        other.remember("Ada lives in Oslo")
        past = lab.at(event=event)
        other.remember("Ada lives in Bergen")
        assert (len(past), len(lab)) == (1, 3)


def test_the_log_says_whom_an_event_concerned(moved, clock):
    hits = moved.recall("Ada")
    moved.feedback(hits[0], "success")
    log = moved.log
    assert log["at"].dtype == pl.Datetime("us", "UTC")
    assert log["at"][-1] == datetime.fromtimestamp(clock.now / 1e6, UTC)
    about_the_first = log.filter(pl.col("memories").list.contains(1))
    assert about_the_first["kind"].to_list() == ["remember", "forget"]
    assert "status -> forgotten" in about_the_first["what"][1]
    assert log.filter(pl.col("memories").list.contains(2))["kind"].to_list() == [
        "remember",
        "recall",
        "feedback",
    ]


STEPS = st.sampled_from(["remember", "recall", "feedback", "forget", "link"])


@pytest.mark.long
@given(st.lists(STEPS, min_size=1, max_size=12), st.data())
@examples(25, quick=8)
def test_the_lab_at_an_event_is_the_lab_that_was_there(steps, data):
    clock = memlab.ManualClock("2026-01-01")
    seen = []
    with memlab.open(clock=clock, embedder=by_length) as lab:
        for number, step in enumerate(["remember", *steps]):
            clock.advance(hours=1)
            if step == "remember":
                lab.remember(f"note {'x' * number}")
            elif step == "recall":
                lab.recall("note")
            elif step == "feedback":
                lab.feedback(1, "success")
            elif step == "forget":
                lab.forget(len(lab))
            elif len(lab) > 1:
                lab.graph.link(1, len(lab))
            seen.append((clock.now, lab.memories, lab.edges))
        now, memories, edges = data.draw(st.sampled_from(seen))
        past = lab.at(now)
        assert past.memories.equals(memories)
        assert past.edges.equals(edges)


def by_length(texts):
    return [[float(len(text)), 1.0, 2.0] for text in texts]


@pytest.mark.long
def test_a_state_folded_in_one_go_is_the_one_of_the_past(moved):
    state = new_state()
    journal = moved.io.store.journal
    state.fold(journal.events(), journal)
    assert moved.at(event=journal.head).memories.equals(state.memories())
