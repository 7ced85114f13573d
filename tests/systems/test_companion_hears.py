"""Whose words become what: a user tells of the user, an assistant tells of no user."""

import pytest

import memlab

OF_THE_USER = ("personal", "preference", "goal", "trait", "correction")
SAID = (
    "I am your assistant and I like helping people",
    "I'm a language model, and my name is Bo",
    "I prefer to answer in short sentences",
    "I want to help you plan the trip",
    "No, actually that was wrong: I am three years old",
)


@pytest.mark.parametrize("role", ["assistant", "system", "tool"])
@pytest.mark.parametrize("text", SAID)
@pytest.mark.parametrize("pack", ["companion", "memlab"])
def test_an_assistants_statement_about_itself_is_no_fact_about_the_user(clock, pack, role, text):
    with memlab.open(pack=pack, clock=clock) as lab:
        heard = lab.agents.observe(text, role=role)
        assert heard.memory is None or heard.memory.kind not in OF_THE_USER
        assert "assistant" not in lab.facts.profile().text
        if pack == "companion":
            assert heard.memory is None


@pytest.mark.parametrize("text", SAID[:4])
def test_the_same_words_of_a_user_are_one(clock, text):
    with memlab.open(pack="companion", clock=clock) as lab:
        assert lab.agents.observe(text).memory.kind in OF_THE_USER


def test_an_assistants_statement_about_the_user_is_inferred(clock):
    with memlab.open(pack="companion", clock=clock) as lab:
        heard = lab.agents.observe("The user wants to move to Lisbon", role="assistant")
        assert (heard.memory.kind, lab.memories["provenance"][0]) == ("goal", "inferred")


def test_an_agents_experience_is_its_own_memory(clock):
    with memlab.open(pack="companion", clock=clock) as lab:
        heard = lab.agents.observe(
            "Yesterday I finally understood the joke about the goat", role="assistant"
        )
        assert (heard.memory.kind, lab.memories["provenance"][0]) == ("event", "inferred")
