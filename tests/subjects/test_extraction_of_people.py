"""Chats of people who type to each other: small talk, games, run-on sentences, and what lasts among them."""

import pytest

import memlab


@pytest.fixture(scope="module")
def lab():
    with memlab.open(pack="companion") as opened:
        yield opened


def messages_of(*texts):
    return [
        {"role": "user", "speaker": ("Ada", "Ben")[n % 2], "content": text}
        for n, text in enumerate(texts)
    ]


def facts_of(lab, *texts):
    return [
        (fact.rule, fact.fields.get("value", fact.fields.get("object")))
        for fact in lab.agents.extract(messages_of(*texts)).facts
    ]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("i love San Fran its such a fun city", [("likes", "San Fran")]),
        ("i love econ haha", [("likes", "econ")]),
        ("I'm a Russian major and stay far away from math", [("is", "a Russian major")]),
        ("i live in Orem and signed a year lease", [("lives-in", "Orem")]),
        ("i like eating more when im happy", []),
        ("I really like some of their songs", []),
        ("i want to live there", []),
        ("i want to visit", []),
        ("I know BYU is tight", []),
        ("I like to chill here", []),
        ("I really like learning about", []),
    ],
)
def test_a_value_is_extracted_without_its_context(lab, text, facts):
    assert facts_of(lab, text) == facts


def test_an_answer_to_what_would_be_is_no_fact(lab):
    assert (
        facts_of(
            lab,
            "If you could have any superpower, what would it be?",
            "I want to become a dragon tamer",
        )
        == []
    )
    assert facts_of(lab, "What do you want to be?", "I want to become a nurse") == [
        ("wants-to", "become a nurse")
    ]


def test_an_answer_is_read_without_what_only_opens_it(lab):
    assert facts_of(lab, "What is your favorite movie?", "Hmmm hands down Mulan") == [
        ("favorite-movie", "Mulan")
    ]
    assert facts_of(lab, "What is your favorite movie?", "haha idk") == []


def test_roles_in_a_game_are_doubtful(lab):
    (fact,) = lab.agents.extract(messages_of("I am Gryffindor")).facts
    assert fact.rule == "name"
    assert fact.confidence < 0.6


@pytest.mark.parametrize(
    ("text", "fact_text"),
    [
        ("I just ran a half marathon a few weeks ago", True),
        ("I went on a theater trip to Chicago in January", True),
        ("I broke my wrist last year playing soccer", True),
        ("I just had some little panda filled chocolate cookie things", False),
        ("On saturday i slept for 17 hours at my cousins house", False),
        ("I just started this chat challenge and want to get points", False),
        ("Last night I watched a video about quantum computers with friends", False),
    ],
)
def test_an_event_of_the_day_is_not_remembered(lab, text, fact_text):
    observed = [item for item in lab.agents.extract(messages_of(text)) if item.sort == "memory"]
    assert bool(observed) is fact_text
