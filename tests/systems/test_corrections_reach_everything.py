"""A corrected memory is told in its new words, wherever something was made of the old ones."""

import polars as pl
import pytest

import memlab

pytestmark = pytest.mark.long


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-06-01")


def test_a_context_has_the_new_words(clock):
    lab = memlab.open(pack="workbench", clock=clock)
    note = lab.remember("Deploy with make ship", kind="convention", project="p")
    lab.edit(note, text="Deploy with make deploy")
    text = lab.context("deploy", project="p").text
    assert "make deploy" in text
    assert "make ship" not in text
    assert lab.memories["summary"].to_list() == ["Deploy with make ship", "Deploy with make deploy"]


def test_a_fact_has_its_new_object_in_the_profile(clock):
    lab = memlab.open(pack="companion", clock=clock)
    lab.agents.commit(lab.agents.extract("I live in Rome"))
    fact = lab.memories.filter(pl.col("text") == "The user lives in Rome")["id"][0]
    after = lab.edit(fact, text="The user lives in Milan")
    assert (after.subject, after.predicate, after.object, after.dropped) == (
        "user",
        "lives-in",
        "Milan",
        ("context",),
    )
    assert "Milan" in lab.facts.profile().text
    assert "Rome" not in lab.facts.profile().text


def test_derived_fields_without_support_in_the_new_text_are_dropped_and_reported(clock):
    lab = memlab.open(pack="factgraph", clock=clock)
    fact = lab.facts.add("Ada", "lives-in", object="Rome", confidence=0.9)
    after = lab.edit(fact, text="Nobody knows where Ada went")
    assert set(after.dropped) == {"subject", "predicate", "object"}
    assert lab.facts.frame(subject="Ada", status="staged").is_empty()


def test_a_summary_that_quotes_the_old_text_is_retired_and_its_members_return(clock):
    lab = memlab.open(pack="associative", clock=clock)
    for number in range(6):
        lab.remember(f"rust crate {number} fails to link on the old CI machine", linking="off")
    clock.advance(days=200)
    done = lab.upkeep.consolidation.run()
    if not len(done):
        pytest.skip("nothing was consolidated")
    stood_for = done.frame["members"].to_list()[0]
    after = lab.edit(stood_for[0], text="rust crate 0 links")
    status = dict(lab.memories.select("id", "status").rows())
    assert status[done.frame["summary"].to_list()[0]] == "forgotten"
    assert {status[id] for id in stood_for[1:]} == {"active"}
    assert status[after.id] == "active"


def test_a_frame_of_edits_is_written_back_whole_or_not_at_all(clock):
    lab = memlab.open(clock=clock)
    lab.remember("a fact")
    lab.remember("b fact")
    changed = lab.edit(lab.memories.with_columns(importance=pl.lit(0.9)))
    assert [memory.id for memory in changed] == [1, 2]
    assert lab.memories["importance"].to_list() == [0.9, 0.9]
    assert lab.edit(lab.memories) == ()
    frame = lab.memories.with_columns(text=pl.Series(["first", " "]))
    with pytest.raises(memlab.InputError):
        lab.edit(frame)
    assert lab.memories["text"].to_list() == ["a fact", "b fact"]
    with pytest.raises(memlab.InputError, match="cannot be edited"):
        lab.edit(lab.memories.with_columns(status=pl.lit("forgotten")))
