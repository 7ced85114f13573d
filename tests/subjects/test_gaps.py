"""Gaps: seeds but nothing verified."""

import numpy as np
import polars as pl
import pytest

import memlab


@pytest.fixture
def cascade(trigrams, clock):
    with memlab.open(embedder=trigrams, clock=clock, pack="cascade") as lab:
        lab.remember(["the bakery opens at six", "the bakery closes at noon"], linking="off")
        yield lab


def test_a_gap_holds_the_context_its_vector_time_and_session(cascade, clock):
    clock.advance(days=2)
    hits = cascade.recall("when does the bakery open?", session="s1", project="town")
    clock.advance(hours=1)
    verified = cascade.agents.verify(hits, [])
    (gap,) = cascade.upkeep.review.gaps().to_dicts()
    assert verified.gap == gap["gap"] == verified.event
    assert (gap["decision"], gap["session"], gap["project"]) == (hits.decision, "s1", "town")
    assert gap["snippet"] == "when does the bakery open?"
    assert gap["at"] == memlab.kernel.base.clock.from_micros(clock())
    assert np.array_equal(
        gap["vector"], cascade.io.embedder.encode(["when does the bakery open?"])[0]
    )
    assert gap["embedder"] == cascade.io.embedder.fingerprint
    assert (gap["closed"], gap["reason"]) == (None, None)


def test_a_single_accepted_result_is_enough(cascade):
    hits = cascade.recall("when does the bakery open?")
    assert cascade.agents.verify(hits, hits[0]).gap is None
    assert cascade.upkeep.review.gaps().height == 0


def test_a_query_without_results_is_a_gap_and_a_greeting_is_none(cascade):
    hits = cascade.recall("zzzz qqqq xxxx")
    assert len(hits) == 0
    assert cascade.agents.verify(hits, []).gap is not None
    assert cascade.upkeep.review.gaps()["snippet"].to_list() == ["zzzz qqqq xxxx"]
    greeting = cascade.recall("and you?")
    assert len(greeting) == 0
    assert cascade.agents.verify(greeting, []).gap is None


def test_a_snippet_is_short_and_holds_no_secret(cascade):
    secret = "the bakery password is 'hunter2swordfish' and opens at six " * 9
    cascade.agents.verify(cascade.recall(secret), [])
    (snippet,) = cascade.upkeep.review.gaps()["snippet"]
    assert "hunter2" not in snippet
    assert len(snippet) <= 200 + len("[REDACTED: password]")
    assert b"hunter2" not in b"".join(
        str(event.body).encode() for event in cascade.io.store.journal.events()
    )


def test_closing_one(cascade, clock):
    gap = cascade.agents.verify(cascade.recall("the bakery"), []).gap
    clock.advance(hours=3)
    cascade.upkeep.review.close_gap(gap, "remembered the hours")
    (row,) = cascade.upkeep.review.gaps().to_dicts()
    assert (row["closed"], row["reason"]) == (
        memlab.kernel.base.clock.from_micros(clock()),
        "remembered the hours",
    )
    with pytest.raises(
        memlab.InputError, match="closed already, with the reason: remembered the hours"
    ):
        cascade.upkeep.review.close_gap(gap, "again")


@pytest.mark.parametrize("bad", [0, 99, True, "7", None])
def test_a_gap_that_is_not_there(cascade, bad):
    gap = cascade.agents.verify(cascade.recall("the bakery"), []).gap
    head = cascade.io.store.journal.head
    known = f'no gap "{bad}".*ids are not guessed' if type(bad) is int else "gap is a whole number"
    with pytest.raises(memlab.InputError, match=known):
        cascade.upkeep.review.close_gap(bad, "why")
    with pytest.raises(memlab.InputError, match="empty"):
        cascade.upkeep.review.close_gap(gap, " ")
    assert cascade.io.store.journal.head == head


def test_the_frame_has_its_columns_before_there_is_a_gap(cascade):
    empty = cascade.upkeep.review.gaps()
    cascade.agents.verify(cascade.recall("the bakery"), [])
    assert empty.schema == cascade.upkeep.review.gaps().schema
    assert empty.schema["vector"] == pl.List(pl.Int8)
