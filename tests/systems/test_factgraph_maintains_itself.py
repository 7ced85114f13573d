"""factgraph: promotion, decay and conflicts are settled after each conversation, as events."""

import pytest

import memlab

TURNS = [
    {"role": "user", "content": "We looked at the map together."},
    {"role": "assistant", "content": "We did."},
]


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-06-01")


@pytest.fixture
def lab(clock):
    with memlab.open(pack="factgraph", clock=clock) as opened:
        opened.facts.add("Bob", "lives_in", object="Oslo", confidence=0.9)
        opened.facts.add("Zoe", "plays", object="Cello", confidence=0.3)
        yield opened


def statuses(lab):
    return dict(
        lab.facts.frame(status=["staged", "confirmed", "retracted"])
        .select("subject", "status")
        .rows()
    )


def ends(lab):
    return (
        lambda: lab.agents.end_session("s", TURNS),
        lambda: lab.agents.conversation("tutor"),
        lambda: lab.agents("tutor", session="s").end_session(TURNS),
    )


@pytest.mark.long
@pytest.mark.parametrize("way", [0, 1, 2])
def test_the_end_of_a_conversation_promotes_and_retracts(lab, clock, way):
    for _ in range(4):
        lab.recall("where does Bob live?")
    clock.advance(days=180)
    assert statuses(lab) == {"Bob": "staged", "Zoe": "staged"}
    ends(lab)[way]()
    assert statuses(lab)["Bob"] == "confirmed"
    assert statuses(lab)["Zoe"] == "retracted"
    assert lab.log["kind"].to_list().count("maintain") == 1


@pytest.mark.long
def test_nothing_is_written_where_nothing_changes(lab):
    lab.upkeep.maintain()
    before = lab.log["kind"].to_list().count("maintain")
    lab.agents.conversation("tutor")
    assert lab.log["kind"].to_list().count("maintain") == before


def test_another_pack_leaves_it_to_upkeep(clock):
    with memlab.open(pack="companion", clock=clock) as lab:
        lab.remember("The user was glad", kind="feeling")
        clock.advance(days=30)
        lab.agents.conversation("tutor")
        assert "maintain" not in lab.log["kind"].to_list()


@pytest.mark.long
def test_a_lab_that_is_only_read_is_not_maintained(lab, clock):
    clock.advance(days=180)
    lab.agents.end_session("s", TURNS, store=False)
    assert "maintain" not in lab.log["kind"].to_list()
