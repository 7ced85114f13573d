"""Quarantine: one event hides all memories of a source and restores what they displaced; another reverses it."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import memlab
from memlab.errors import InputError, PrivacyError, ReadOnlyLab, UnknownName
from memlab.kernel.state import State
from memlab.kernel.verbs.projections import new_state
from tests.displays import html_of


def statuses(lab):
    return lab.memories["status"].to_list()


def as_it_was(lab):
    """Return every memory without the time of its last change, and every edge."""
    return lab.memories.drop("changed").to_dicts(), lab.edges.to_dicts()


def fact(lab, value, **fields):
    """State the user's preference: a fact that has one value at a time."""
    about = {"subject": "Robin", "predicate": "prefers:theme", "value": value}
    return lab.remember(f"Robin prefers the theme {value}", **about, **fields)


@pytest.fixture
def facts(trigrams, clock):
    """Return a lab with a fact, and what a web page said about it later."""
    with memlab.open(embedder=trigrams, clock=clock, pack="factgraph") as lab:
        fact(lab, "dark", session="talk")
        clock.advance(days=1)
        fact(lab, "light", session="web", creator="agent:web", source="file", confidence=0.95)
        yield lab


# -- what is chosen -------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("chosen", "ids"),
    [
        ({"session": "web"}, (2, 3)),
        ({"creator": "agent:web"}, (3, 4)),
        ({"source": "file"}, (4,)),
        ({"session": "web", "creator": "agent:web"}, (3,)),
        ({"source": "user-edit"}, ()),
    ],
)
def test_memories_of_a_session_a_creator_or_a_source_leave_recall(lab, chosen, ids):
    lab.remember("tabs, not spaces", session="talk", linking="off")
    lab.remember("tabs are bad", session="web", linking="off")
    lab.remember("tabs are evil", session="web", creator="agent:web", linking="off")
    lab.remember("tabs are gone", creator="agent:web", source="file", linking="off")
    done = lab.upkeep.review.quarantine(**chosen, reason="a web page")
    assert done.ids == ids
    assert set(lab.recall("tabs", log=False).ids) == {1, 2, 3, 4} - set(ids)
    assert lab.log["kind"].to_list().count("quarantine") == bool(ids)
    assert (done.event is None) == (not ids)
    assert set(lab.recall("tabs", status="quarantined", log=False).ids) == set(ids)


def test_since_goes_by_when_it_was_written_and_not_by_what_the_writer_says(lab, clock):
    lab.remember("one", session="web")
    clock.advance(days=2)
    lab.remember("two", session="web")
    lab.remember("three, as if it were old", session="web", at="2020-01-01")
    assert lab.forget(session="web", since="2026-03-02", how="quarantine").ids == (2, 3)
    assert statuses(lab) == ["active", "quarantined", "quarantined"]


@pytest.mark.long
def test_deleted_memories_stay_deleted_and_other_inactive_ones_are_quarantined(lab):
    for text in ("a", "b", "c"):
        lab.remember(text, session="web")
    lab.forget(1, how="delete")
    lab.forget(2)
    done = lab.forget(session="web", how="quarantine")
    assert statuses(lab) == ["deleted", "quarantined", "quarantined"]
    assert done.frame["before"].to_list() == ["forgotten", "active"]
    assert lab.forget(session="web", how="quarantine").event is None
    lab.restore(quarantine=done)
    assert statuses(lab) == ["deleted", "forgotten", "active"]


# -- what comes back ------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_memory_superseded_only_by_a_quarantined_one_is_active_again(facts):
    was = facts.at("2026-03-01T12:00:00").memories.row(0, named=True)
    assert statuses(facts) == ["superseded", "staged"]
    done = facts.forget(session="web", how="quarantine")
    now = facts.memories.row(0, named=True)
    assert (done.ids, done.back) == ((2,), (1,))
    assert {name for name in was if was[name] != now[name]} == {"changed"}
    assert facts.facts.frame(at="2026-03-03")["value"].to_list() == ["dark"]


@pytest.mark.long
def test_a_memory_superseded_by_another_since_stays_superseded(facts):
    fact(facts, "grey", session="talk", confidence=0.95)
    done = facts.forget(session="web", how="quarantine")
    assert statuses(facts) == ["superseded", "quarantined", "staged"]
    assert done.back == ()
    assert dict(done.derived.select("memory_id", "how").rows()) == {
        1: "superseded by it",
        3: "supersedes it",
    }


@pytest.mark.long
def test_a_chain_of_planted_facts_ends_where_the_true_one_was(facts):
    fact(facts, "grey", session="web", confidence=0.95)
    fact(facts, "blue", session="web", confidence=0.95)
    done = facts.forget(session="web", how="quarantine")
    assert done.back == (1,)
    assert statuses(facts) == ["staged", "quarantined", "quarantined", "quarantined"]
    facts.restore(quarantine=done)
    assert statuses(facts) == ["superseded", "superseded", "superseded", "staged"]


@pytest.mark.long
def test_a_chain_over_two_sessions_is_undone_when_both_are_out(facts):
    fact(facts, "grey", session="mail", confidence=0.95)
    first = facts.forget(session="web", how="quarantine")
    assert first.back == ()
    assert facts.forget(session="mail", how="quarantine").back == (1,)
    assert statuses(facts) == ["staged", "quarantined", "quarantined"]


@pytest.fixture
def herd(trigrams, clock):
    """Return a lab of two kinds of old messages, each in a summary; a web page is part of the first."""
    with memlab.open(embedder=trigrams, clock=clock) as lab:
        goats = [
            {"text": f"The goat on meadow {n} wants hay", "session": "web" if n > 7 else "talk"}
            for n in range(10)
        ]
        ships = [
            {"text": f"Deploy {n} ships the release to staging", "session": "talk"}
            for n in range(10)
        ]
        lab.remember([{**row, "kind": "observation"} for row in (*goats, *ships)])
        clock.advance(days=100)
        first, _ = lab.upkeep.consolidation.run().ids
        yield lab, first


@pytest.mark.long
def test_a_summary_of_it_goes_too_and_the_other_members_come_back(herd):
    lab, summary = herd
    before = as_it_was(lab)
    done = lab.forget(session="web", how="quarantine")
    assert done.frame.filter(role="summary")["memory_id"].to_list() == [summary]
    assert (done.ids, done.back) == ((9, 10, summary), tuple(range(1, 9)))
    assert statuses(lab)[:10] == ["active"] * 8 + ["quarantined"] * 2
    lab.restore(quarantine=done)
    assert as_it_was(lab) == before


@pytest.mark.long
def test_members_do_not_go_back_into_a_summary_that_is_gone(herd):
    lab, summary = herd
    done = lab.forget(session="web", how="quarantine")
    lab.forget(summary, how="delete")
    assert lab.restore(quarantine=done).ids == (9, 10)
    assert statuses(lab)[:10] == ["active"] * 10


# -- the way back ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_release_gives_back_exactly_what_was(facts):
    facts.recall("theme")
    before = as_it_was(facts)
    done = facts.forget(creator="agent:web", how="quarantine")
    assert as_it_was(facts) != before
    released = facts.restore(quarantine=done)
    assert as_it_was(facts) == before
    assert released.frame.select("memory_id", "before", "status").rows() == [
        (1, "staged", "superseded"),
        (2, "quarantined", "staged"),
    ]
    assert facts.restore(quarantine=done.event).ids == ()


def test_single_memories_are_restored_and_release_leaves_them_alone(lab):
    lab.remember("a", session="web")
    lab.remember("b", session="web")
    done = lab.forget(session="web", how="quarantine")
    assert lab.restore(1).frame["status"].to_list() == ["active"]
    lab.forget(2, how="delete")
    assert lab.restore(quarantine=done).ids == ()
    assert lab.restore(2).frame["status"].to_list() == ["quarantined"]
    assert lab.restore(quarantine=done).ids == (2,)
    assert statuses(lab) == ["active", "active"]


@pytest.mark.long
def test_a_memory_purged_meanwhile_displaces_nothing_on_release(facts):
    done = facts.forget(session="web", how="quarantine")
    facts.purge(2)
    assert facts.restore(quarantine=done).ids == ()
    assert statuses(facts) == ["staged", "purged"]


# -- what it did ----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_result_says_which_recalls_showed_it_and_what_they_answer_without(lab, clock):
    for text in ("tabs for the parser", "tabs for the lexer", "tabs for the printer"):
        lab.remember(text, session="talk")
    lab.recall("tabs for what?", limit=3)
    planted = lab.remember("tabs for what? tabs", session="web")
    clock.advance(days=1)
    hits = lab.recall("tabs for what?", limit=3)
    assert hits[0].id == planted.id
    lab.feedback(hits[0], "success")
    seen = lab.forget(how="quarantine", session="web", dry_run=True)
    rows = seen.shown.filter(pl.col("probe").not_())
    assert rows.select("decision", "query", "position", "memory_id", "outcome").rows() == [
        (hits.decision, "tabs for what?", 1, 4, "success")
    ]
    row = seen.replay.row(0, named=True)
    assert (row["decision"], row["left"], len(row["came"])) == (hits.decision, [4], 1)
    assert row["overlap"] == pytest.approx(2 / 3)
    assert seen.event is None
    assert statuses(lab) == ["active"] * 4
    done = lab.forget(session="web", how="quarantine")
    assert done.replay.equals(seen.replay)
    assert done.shown.equals(seen.shown)
    assert {*lab.recall("tabs for what?", limit=3, log=False).ids} == {
        *hits.ids[:3],
        *row["came"],
    } - {4}


@pytest.mark.long
def test_a_question_asked_again_finds_what_was_superseded_then(facts):
    hits = facts.recall("which theme does Robin prefer?")
    assert hits.ids == (2,)
    (asked,) = facts.forget(session="web", how="quarantine").replay.to_dicts()
    assert (asked["left"], asked["came"], asked["overlap"]) == ([2], [1], 0.0)


@pytest.mark.long
def test_only_the_newest_are_asked_again_and_none_that_the_log_cannot_repeat(lab):
    lab.remember("tabs", session="web")
    for _ in range(3):
        lab.recall("tabs")
    lab.recall(
        "tabs", where=pl.col("text").map_elements(lambda text: True, return_dtype=pl.Boolean)
    )
    last = lab.recall("tabs").decision
    assert lab.forget(session="web", dry_run=True, replay=0, how="quarantine").replay.height == 0
    replay = lab.forget(session="web", dry_run=True, replay=2, how="quarantine").replay
    assert replay["decision"].to_list()[-1] == last
    assert replay["overlap"].to_list() == [None, 0.0]


def test_edges_and_contributions_are_told(lab):
    lab.remember("goats", session="talk", agents=["agent:main", "agent:web"])
    lab.remember("sheep", session="web", creator="agent:web", tags=["herd"])
    lab.graph.link(2, 1)
    done = lab.forget(creator="agent:web", how="quarantine")
    assert done.derived.select("memory_id", "how").rows() == [(1, "contributed to")]
    content_of = done.edges.select("relation", "outgoing", "kind", "other", "name").rows()
    assert sorted(content_of) == [
        ("has-tag", True, "tag", 1, "herd"),
        ("relates-to", True, "memory", 1, None),
    ]
    assert lab.edges.height == 2


@pytest.mark.long
def test_the_result_renders_in_a_notebook(facts):
    facts.recall(facts[2].text)
    done = facts.forget(session="web", reason="<b>a page</b>", how="quarantine")
    assert "1 memories left recall, 1 back in use, shown 1 times in 1 recalls" in repr(done)
    assert "&lt;b&gt;a page" in html_of(done)
    assert "would leave" in repr(facts.forget(session="talk", dry_run=True, how="quarantine"))


# -- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, InputError),
        ({"since": "2026-01-01"}, InputError),
        ({"session": "wbe"}, UnknownName),
        ({"source": "webpage"}, UnknownName),
        ({"creator": ["agent:web"]}, InputError),
        ({"session": "web", "since": "yesterday"}, InputError),
        ({"session": "web", "since": 2**63}, InputError),
        ({"session": "web", "replay": -1}, InputError),
        ({"session": "web", "replay": True}, InputError),
        ({"session": "web", "reason": 1}, InputError),
        ({"session": "web", "reason": "the key is AKIAIOSFODNN7EXAMPLE"}, PrivacyError),
    ],
)
def test_bad_calls_change_nothing(lab, arguments, error):
    lab.remember("tabs", session="web")
    with pytest.raises(error):
        lab.upkeep.review.quarantine(**arguments)
    assert statuses(lab) == ["active"]


def test_release_takes_a_quarantine_of_this_lab(lab):
    lab.remember("tabs", session="web")
    for wrong in (1, 99, lab.forget(how="quarantine", session="web", dry_run=True)):
        with pytest.raises(InputError, match="it has none"):
            lab.restore(quarantine=wrong)
    for wrong in (True, "3"):
        with pytest.raises(InputError, match="is a Quarantined or a whole number"):
            lab.restore(quarantine=wrong)
    event = lab.forget(session="web", how="quarantine").event
    with pytest.raises(InputError, match=f"its quarantines are the events {event}"):
        lab.restore(quarantine=event + 1)


@pytest.mark.long
def test_a_lab_of_the_past_tells_what_would_have_been_done_then(lab):
    lab.remember("tabs", session="web")
    lab.recall("tabs")
    then = lab.io.store.journal.head
    lab.remember("spaces", session="web")
    past = lab.at(event=then)
    assert past.forget(session="web", dry_run=True, how="quarantine").ids == (1,)
    assert past.forget(session="web", dry_run=True, how="quarantine").shown.height == 1
    with pytest.raises(ReadOnlyLab):
        past.forget(session="web", how="quarantine")


def test_a_lab_that_is_read_only_tells_what_would_be_done(disk):
    with disk() as lab:
        lab.remember("tabs", session="web")
    with disk(read_only=True) as lab:
        assert lab.forget(how="quarantine", session="web", dry_run=True).ids == (1,)
        with pytest.raises(ReadOnlyLab):
            lab.forget(session="web", how="quarantine")
        with pytest.raises(ReadOnlyLab):
            lab.restore(quarantine=3)


# -- any life -------------------------------------------------------------------------------------------------------


def content_of(state: State):
    registers = {
        name: msgspec.msgpack.encode(register.dump())
        for name, register in state.projections.items()
    }
    return state.memories().to_dicts(), state.edge_frame().to_dicts(), registers


def fold_of(lab, *cuts) -> State:
    state, journal = new_state(), lab.io.store.journal
    for after, upto in zip((0, *cuts), (*cuts, journal.head), strict=True):
        state.fold(journal.events(after=after, upto=upto), journal)
    return state


verbs = st.sampled_from(
    [
        "fact",
        "fact",
        "fact",
        "edit",
        "forget",
        "restore",
        "quarantine",
        "release",
        "delete",
        "purge",
    ]
)


@pytest.mark.long
@given(st.lists(st.tuples(verbs, st.integers(0, 9)), min_size=4, max_size=14), st.data())
@settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
# what displaced a memory was deleted
@example([("fact", 1), ("fact", 1), ("delete", 1), ("quarantine", 1)], None)
@example(
    [
        ("fact", 0),
        ("fact", 7),
        ("quarantine", 0),
        ("quarantine", 3),
        ("restore", 4),
        ("quarantine", 9),
    ],
    None,
)
def test_a_quarantine_that_is_released_at_once_leaves_what_was_and_folds_in_parts(
    trigrams, life, data
):
    clock = memlab.ManualClock("2026-03-01")
    with memlab.open(embedder=trigrams, clock=clock, pack="factgraph") as lab:
        fact(lab, "dark", session="a")
        events = []
        for verb, which in life:
            clock.advance(hours=1)
            id = which % len(lab) + 1
            session = "ab"[which % 2]
            usable = lab[id].status not in ("deleted", "purged")
            if verb == "fact":
                fact(lab, f"v{which % 4}", session=session, confidence=0.95)
            elif verb == "edit" and usable:
                lab.edit(id, summary=f"note {which}")
            elif verb in ("forget", "delete") and usable:
                lab.forget(id, how=verb)
            elif verb == "restore" and lab[id].status not in ("superseded", "purged"):
                lab.restore(id)
            elif verb == "purge" and usable:
                lab.purge(id)
            elif verb == "quarantine" and session in lab.memories["session"]:
                before = as_it_was(lab)
                done = lab.forget(session=session, how="quarantine")
                assert not {*done.ids} & {*lab.recall("theme", limit=50, log=False).ids}
                if done.event is not None:
                    lab.restore(quarantine=done)
                assert as_it_was(lab) == before
                events.append(lab.forget(session=session, how="quarantine").event)
            elif verb == "release" and events and events[which % len(events)]:
                lab.restore(quarantine=events[which % len(events)])
        head = lab.io.store.journal.head
        cuts = [] if data is None else sorted(data.draw(st.lists(st.integers(0, head), max_size=2)))
        assert (
            content_of(fold_of(lab, *cuts))
            == content_of(fold_of(lab))
            == content_of(lab.io.store.state)
        )
