"""``lab.policies.use`` of a published pack on a lab of chats says how far it agrees with the live pack."""

import warnings
from datetime import UTC, datetime, timedelta

import pytest

import memlab
from memlab.errors import RankingWarning

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
TALK = (
    "I keep bees on the roof of the school.",
    "How many hives do you have there?",
    "Three hives, and a fourth one is planned.",
    "Where do you sell the honey in autumn?",
    "Mostly at the market behind the station.",
    "My sister paints the labels for the jars.",
    "Does she paint anything else for you?",
    "She painted the door of the shed last year.",
    "The winter was hard on the second hive.",
    "What did you feed them during the winter?",
    "Sugar water, and I wrapped the hives in straw.",
    "The inspector comes in April.",
)


@pytest.fixture
def chat():
    with memlab.open(clock=memlab.ManualClock(START + timedelta(days=1))) as lab:
        lab.load([{"role": "user", "content": text} for text in TALK] * 2)
        yield lab


def warnings_of(lab, pack, **more):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lab.policies.use(pack, **more)
    return [str(item.message) for item in caught if item.category is RankingWarning]


@pytest.mark.long
def test_of_questions_found_in_the_messages(chat):
    (said,) = warnings_of(chat, "workbench")
    assert said.startswith("For 8 questions found in its messages, workbench shows ")
    assert "workbench-plus, with the same rules of forgetting and linking, shows " in said
    assert "The queries have no labels" in said
    assert chat.policies.pack.name == "workbench"


@pytest.mark.long
def test_the_same_lab_says_the_same(chat):
    one = warnings_of(chat, "cascade")
    chat.policies.use("memlab")
    assert warnings_of(chat, "cascade") == one


@pytest.mark.long
def test_of_logged_queries_where_there_are_some(chat):
    for query in ("bees on the roof", "who paints labels?", "bees on the roof"):
        chat.recall(query)
    (said,) = warnings_of(chat, "associative")
    assert said.startswith("For 2 logged queries, ")


def test_where_there_is_nothing_to_ask_it_says_nothing():
    with memlab.open() as lab:
        assert warnings_of(lab, "cascade") == []
        lab.load([{"role": "user", "content": text} for text in TALK if "?" not in text] * 2)
        lab.policies.use("memlab")
        assert warnings_of(lab, "companion") == []


@pytest.mark.long
def test_of_memories_that_nobody_chatted_it_says_nothing():
    with memlab.open() as lab:
        for text in TALK:
            lab.remember(text)
        lab.recall("bees on the roof")
        assert warnings_of(lab, "cascade") == []


@pytest.mark.long
def test_the_warning_can_be_switched_off(chat):
    assert warnings_of(chat, "cascade", compare=0) == []
    chat.policies.use("memlab")
    assert warnings_of(chat, "cascade-plus") == []
    chat.policies.use("memlab")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RankingWarning)
        chat.policies.use("cascade")
