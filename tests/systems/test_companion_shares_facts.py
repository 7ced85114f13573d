"""User facts are shared by all agents: one fact, and everyone who contributed to it."""

import pytest

import memlab


@pytest.fixture
def lab(clock):
    with memlab.open(pack="companion", clock=clock) as lab:
        yield lab


def test_the_same_fact_from_two_agents_is_one_with_both_as_sources(lab):
    lab.remember("User likes farm animals", kind="preference", agents=["coach"], confidence=0.7)
    lab.remember(
        "The user likes farm animals.", kind="preference", agents=["tutor"], confidence=0.9
    )
    assert lab.memories["agents"].to_list() == [["coach", "tutor"]]
    assert lab.memories["confidence"].to_list() == [0.9]
    assert lab.facts.profile().text.count("farm animals") == 1


def test_the_agent_that_writes_is_a_source(lab):
    for agent in ("agent:coach", "agent:tutor"):
        lab.remember("User likes farm animals", kind="preference", creator=agent, agents=[agent])
    assert lab.memories["agents"].to_list() == [["agent:coach", "agent:tutor"]]


def test_in_one_batch_too(lab):
    told = [
        {"text": "User likes farm animals", "kind": "preference", "agents": [who]}
        for who in ("a", "b", "c")
    ]
    assert lab.remember(told).outcomes["outcome"].to_list() == ["added", "merged", "merged"]
    assert lab.memories["agents"].to_list() == [["a", "b", "c"]]


def test_a_stated_property_is_one_however_it_is_worded(lab):
    known = {"subject": "user", "predicate": "works-at", "value": "Acme", "kind": "personal"}
    lab.remember("The user works at Acme", agents=["coach"], **known)
    lab.remember("Acme employs our user", agents=["tutor"], **known)
    assert lab.memories["agents"].to_list() == [["coach", "tutor"]]


@pytest.mark.parametrize(
    "other",
    ["User likes wild animals", "User does not like farm animals", "User likes 2 farm animals"],
)
def test_another_fact_is_another(lab, other):
    lab.remember("User likes farm animals", kind="preference", agents=["coach"])
    lab.remember(other, kind="preference", agents=["tutor"])
    assert lab.memories["agents"].to_list() == [["coach"], ["tutor"]]


def test_memories_of_an_agent_stay_its_own(lab):
    lab.remember("We laughed about the goat", kind="event", agents=["coach"])
    lab.remember("We laughed about the goat", kind="event", agents=["tutor"])
    assert lab.memories["agents"].to_list() == [["coach"], ["tutor"]]
