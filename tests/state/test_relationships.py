"""A relationship per agent: familiarity grows with conversations, trust with recalls that help."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memlab
from memlab.kernel.base.clock import from_micros


@pytest.fixture
def companion(trigrams, clock):
    with memlab.open(embedder=trigrams, clock=clock, pack="companion") as lab:
        lab.remember(["I like tea", "I live in Lisbon"], linking="off")
        yield lab


def row(lab, agent):
    (found,) = lab.agents.relationships().filter(agent=agent).to_dicts()
    return found


@pytest.mark.long
def test_each_conversation_adds_a_hundredth_of_what_is_missing(companion):
    familiarity = 0.0
    for count in range(1, 61):
        familiarity += (100 - familiarity) * 0.01
        known = companion.agents.conversation("tutor")
        assert known.familiarity == pytest.approx(familiarity, rel=1e-12)
        assert (known.conversations, known.trust) == (count, 50.0)
    assert familiarity == pytest.approx(100 * (1 - 0.99**60))


@pytest.mark.long
def test_trust_moves_by_one_and_by_two_within_its_bounds(companion):
    trust = 50.0
    for outcome in ["success"] * 3 + ["fail"] * 40 + ["success"] * 120:
        companion.feedback(1, outcome, agent="tutor")
        trust = min(100.0, max(0.0, trust + (1 if outcome == "success" else -2)))
        assert row(companion, "tutor")["trust"] == trust
    assert trust == 100.0
    assert (row(companion, "tutor")["helpful"], row(companion, "tutor")["unhelpful"]) == (123, 40)


@pytest.mark.long
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(["ann", "böt 🤖"]), st.sampled_from(["talk", "success", "fail"])),
        max_size=20,
    )
)
def test_agents_do_not_share_a_relationship(trigrams, statements):
    with memlab.open(embedder=trigrams, clock=memlab.ManualClock(), pack="companion") as lab:
        lab.remember("I like tea", linking="off")
        expected = {}
        for agent, what in statements:
            trust, familiarity = expected.get(agent, (50.0, 0.0))
            if what == "talk":
                lab.agents.conversation(agent)
                familiarity += (100 - familiarity) * 0.01
            else:
                lab.feedback(1, what, agent=agent)
                trust += 1 if what == "success" else -2
            expected[agent] = (trust, familiarity)
        result = {
            row["agent"]: (row["trust"], row["familiarity"])
            for row in lab.agents.relationships().to_dicts()
        }
        assert result == expected
        assert lab.agents.relationships()["agent"].to_list() == sorted(expected)


@pytest.mark.long
def test_feedback_without_an_agent_or_an_outcome_moves_no_trust(companion):
    companion.feedback(1, "success")
    assert companion.agents.relationships().height == 0
    companion.feedback(1, reward=0.5, agent="tutor")
    assert row(companion, "tutor")["trust"] == 50.0


def test_first_and_last_instants(companion, clock):
    begun = clock()
    companion.agents.conversation("tutor")
    clock.advance(days=3)
    companion.agents.conversation("tutor")
    companion.agents.conversation("tutor", at=begun - 10**9)
    values = row(companion, "tutor")
    assert (values["since"], values["last"]) == (from_micros(begun - 10**9), from_micros(clock()))


def test_the_default_pack_counts_and_moves_nothing(lab):
    lab.remember("I like tea", linking="off")
    assert (
        lab.agents.conversation("tutor").familiarity,
        lab.agents.conversation("tutor").conversations,
    ) == (0.0, 2)
    lab.feedback(1, "fail", agent="tutor")
    assert row(lab, "tutor")["trust"] == 50.0


@pytest.mark.long
def test_a_relationship_survives_reopening_and_a_snapshot(disk):
    with disk(pack="companion") as lab:
        lab.remember("I like tea", linking="off")
        lab.agents.conversation("tutor")
        lab.feedback(1, "success", agent="tutor")
        lab.io.snapshot()
        lab.agents.conversation("tutor")
        before = lab.agents.relationships()
    with disk(read_only=True) as lab:
        assert lab.agents.relationships().equals(before)


@pytest.mark.parametrize("agent", ["", 7, None, "x" * 1001, "\ud800"])
def test_an_agent_has_a_name(companion, agent):
    head = companion.io.store.journal.head
    with pytest.raises(memlab.InputError):
        companion.agents.conversation(agent)
    if agent is not None:
        with pytest.raises(memlab.InputError):
            companion.feedback(1, "success", agent=agent)
    assert companion.io.store.journal.head == head


def test_a_secret_is_no_name(companion):
    with pytest.raises(memlab.errors.PrivacyError, match="name of an agent"):
        companion.agents.conversation("password = hunter2swordfish")
