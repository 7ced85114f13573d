"""What a lab refuses, before anything is written: a message that names the argument, and a lab as it was."""

import datetime
from operator import attrgetter

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import InputError


@pytest.fixture
def two_memories(lab):
    lab.remember("tabs")
    lab.remember("spaces")
    return lab


@pytest.mark.parametrize("when", [10**19, -(10**17), 5 * 10**17, 2**63])
@pytest.mark.parametrize("field", ["at", "valid_from", "valid_until"])
def test_a_time_that_no_calendar_has_does_not_reach_the_journal(disk, field, when):
    with disk() as lab:
        lab.remember("tabs")
        with pytest.raises(InputError, match="years 1 to 9998"):
            lab.remember("spaces", **{field: when})
    with disk() as lab:
        assert lab.memories["text"].to_list() == ["tabs"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda lab: lab.recall("x", at=10**19),
        lambda lab: lab.feedback(1, "success", at=10**19),
        lambda lab: lab.upkeep.maintain(10**19),
        lambda lab: lab.upkeep.forecast(1, 10**19),
    ],
)
def test_an_invalid_query_changes_nothing(two_memories, ask):
    events = two_memories.log.height
    with pytest.raises(InputError, match="years 1 to 9998"):
        ask(two_memories)
    assert two_memories.log.height == events


def test_a_purged_memory_is_not_stored_again(two_memories):
    with pytest.raises(InputError, match="cannot have the status purged"):
        two_memories.remember("x", status="purged")
    assert len(two_memories) == 2


@pytest.mark.parametrize("rows", [[{}], [{}, {}], [{"kind": "fact"}]])
def test_a_memory_needs_a_text(two_memories, rows):
    with pytest.raises(InputError, match="needs a text"):
        two_memories.remember(rows)


@pytest.mark.parametrize("huge", [10**400, float("inf"), float("nan"), True])
def test_a_number_is_finite(two_memories, huge):
    with pytest.raises(InputError, match="importance must be a finite number"):
        two_memories.remember("x", importance=huge)


@pytest.mark.parametrize("verb", ["forget", "restore", "purge", "upkeep.review.related"])
@pytest.mark.parametrize("what", [1.0, object(), 3, "1", [1, 3], [None]])
def test_a_missing_memory_is_reported(two_memories, verb, what):
    before = two_memories.memories
    with pytest.raises(InputError, match=r"There is no memory|is a memory"):
        attrgetter(verb)(two_memories)(what)
    assert two_memories.memories.equals(before)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "fcat"}, 'There is no kind "fcat"'),
        ({"importance": 3}, "importance must be in"),
        ({"text": " "}, "The text is empty: "),
        ({"speaker": ""}, "speaker must be a string"),
        ({"pinned": 1}, "pinned must be true or false"),
    ],
)
def test_a_row_is_named_where_there_are_several(lab, wrong, message):
    row = {"text": "tabs", **wrong}
    with pytest.raises(InputError, match=f"^{message}"):
        lab.remember(row.pop("text"), **row)
    with pytest.raises(InputError, match=r"(?i)row 1"):
        lab.remember([{"text": "tabs"}, {"text": "tabs", **wrong}])


def test_ids_may_be_numbers_of_numpy(two_memories):
    assert two_memories.forget([np.int64(1)]).ids == (1,)
    assert two_memories.forget(np.array([2])).ids == (2,)
    assert two_memories.restore(np.int64(1)).ids == (1,)


def test_all_that_a_recall_showed_is_not_one_memory(two_memories):
    with pytest.raises(InputError, match=r"such as hits\[0\]"):
        two_memories.graph.trace(two_memories.recall("tabs"))


@pytest.mark.parametrize("relation", ["has-tag", "in-cluster", "mentions"])
def test_edges_to_other_nodes_do_not_join_memories(two_memories, relation):
    with pytest.raises(InputError, match="leads to a tag, a cluster or an entity"):
        two_memories.graph.link(1, 2, relation)
    assert two_memories.edges.is_empty()


def test_a_date_is_a_time(two_memories):
    assert two_memories.remember("x", at=datetime.date(2025, 1, 2)).created == datetime.datetime(
        2025, 1, 2, tzinfo=datetime.UTC
    )


def test_a_fact_keeps_its_statement(two_memories):
    fact = two_memories.facts.add("Ada", "Lives in", object="Oslo")
    assert (fact.subject, fact.predicate, fact.object, fact.value) == (
        "Ada",
        "lives-in",
        "Oslo",
        None,
    )


def test_a_global_memory_reaches_every_project(lab):
    lab.remember("tabs everywhere", project="api", scope="global")
    lab.remember("tabs here", project="api")
    assert [hit.text for hit in lab.recall("tabs", project="web")] == ["tabs everywhere"]


@pytest.mark.long
def test_a_fact_that_was_told_late_held_from_its_time_on(trigrams):
    clock = memlab.ManualClock("2026-01-01")
    with memlab.open(embedder=trigrams, clock=clock, pack="factgraph") as lab:
        lab.facts.add("Ada", "lives-in", object="Oslo", at="2020-01-01", confidence=0.95)
        lab.facts.add("Ada", "lives in", object="Bergen", at="2024-05-01", confidence=0.95)
        homes = {
            year: lab.facts.frame(at=f"{year}-01-01")["object"].to_list()
            for year in (2021, 2025, 2026)
        }
    assert homes == {2021: ["Oslo"], 2025: ["Bergen"], 2026: ["Bergen"]}


class TestConflictsOfCompanion:
    """Nearness above 0.8 and contradicting is a conflict, though the linker speaks of contradiction from 0.85 on."""

    @pytest.fixture
    def friend(self, clock):
        def near(texts):
            return [
                [0.83, 0.5578, 0.0] if "not" in text or "Oslo" in text else [1.0, 0.0, 0.0]
                for text in texts
            ]

        with memlab.open(embedder=near, clock=clock, pack="companion") as lab:
            yield lab

    def test_a_denial(self, friend):
        friend.remember("The user likes tea")
        friend.remember("The user does not like tea")
        assert friend.memories["status"].to_list() == ["superseded", "active"]

    def test_another_value_of_one_property(self, friend):
        friend.facts.add("Ada", "lives-in", object="Rome")
        friend.facts.add("Ada", "lives-in", object="Oslo")
        assert friend.memories["status"].to_list() == ["superseded", "active"]

    def test_compatible_statements_stay(self, friend):
        friend.remember("The user likes tea")
        friend.remember("The user likes Oslo")
        assert friend.memories["status"].to_list() == ["active", "active"]


@pytest.mark.long
def test_a_surer_duplicate_makes_the_old_one_surer(lab):
    lab.policies.use("factgraph")
    lab.facts.add("Ada", "uses", "ink", confidence=0.3)
    lab.facts.add("Ada", "uses", "ink", confidence=0.95, source="user-edit")
    assert lab.memories.select("confidence", "source").rows() == [(0.95, "user-edit")]


@pytest.mark.long
def test_a_faded_memory_that_is_restored_is_not_vivid(lab, clock):
    lab.policies.use("companion")
    lab.remember("We laughed about the goat", kind="event")
    clock.advance(days=30)
    lab.upkeep.maintain()
    lab.restore(1)
    assert lab.memories["strength"].to_list() == [5.0]


@pytest.mark.parametrize(
    "ask", [memlab.open, memlab.load, memlab.check, memlab.restore], ids=lambda one: one.__name__
)
def test_the_home_of_nobody_is_no_path(ask):
    with pytest.raises(InputError, match="user"):
        ask("~nobody-of-that-name/x.memlab")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"project": float("inf")}, "project must be a text, not inf"),
        ({"kind": pl.DataFrame()}, "kind must be a text"),
        ({"creator": pl.col("creator")}, "creator must be a text"),
        ({"agents": "agent:tutor"}, "agents must be a list of texts"),
        ({"agents": [object()]}, "agents must be a list of texts"),
    ],
)
@pytest.mark.parametrize("verb", ["remember", "edit"])
def test_an_agents_messages_are_compared_with_stored_texts(lab, verb, fields, message):
    agent = lab.agents("tutor", project="school")
    own = agent.remember("The class begins at nine")
    what = own if verb == "edit" else "The class ends at noon"
    with pytest.raises(InputError, match=message):
        getattr(agent, verb)(what, **fields)
    assert len(lab) == 1
