"""What an utterance shows: reasons to remember it, and reasons not to."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.kernel.english import words_of
from memlab.subjects.reading.claims import Statement, difference
from memlab.subjects.reading.sentences import clauses
from memlab.subjects.reading.utterances import DETECTORS, kind_of, provenance_of, utterance

SHOWS = {
    "tells-identity": [
        "My name is Ada.",
        "I'm a nurse from Porto",
        "i am vegetarian",
        "We met before. I live in Graz!",
        "I work as a beekeeper",
        "I\u2019m from Malta",
        "The user is a pilot.",
    ],
    "tells-preference": [
        "I prefer tabs",
        "I really mean it: I love jazz",
        "I don't like long meetings",
        "My favourite colour is teal",
        "Always run the linter before you push.",
        "Never log secrets",
        "The user prefers short answers",
        "From now on answer in French",
    ],
    "tells-goal": [
        "I want to learn the cello",
        "I'm planning to move to Oslo",
        "We plan to ship in May",
        "my goal is a marathon",
        "I'd like to sleep more",
    ],
    "tells-event": [
        "Yesterday I broke my arm",
        "I recently changed jobs",
        "We shipped the release",
        "I met Ben two days ago",
        "Last week our server burned down",
    ],
    "corrects": [
        "No, the meeting is on Friday",
        "Actually, it was Tuesday",
        "That's wrong, the port is another",
        "I meant the other branch",
        "You misunderstood me",
    ],
    "greets": [
        "Hello!",
        "hi there, Claude",
        "Thanks a lot!",
        "Good morning",
        "ok",
        "See you later!",
    ],
    "commands": [
        "Write a test for the parser",
        "please fix the build",
        "Could you run the tests?",
        "Can you explain this",
        "Now delete the old branch",
    ],
    "holds-code": [
        "```python\nprint(1)\n```",
        "def area(r):\n    return 3 * r * r",
        "Look:\nconst x = 4;",
        "SELECT name FROM users",
        "$ git status",
        "import numpy as np",
        "Traceback (most recent call last):",
    ],
    "asks-plainly": [
        "What is a monad?",
        "How do I rename a branch",
        "where are my keys?",
        "Is there tea?",
    ],
}
SHOWS_NOT = {
    "tells-identity": [
        "I'm going home",
        "I am not sure",
        "Am I late?",
        "I'm working on it",
        "I am trying to sleep",
    ],
    "tells-preference": [
        "What do I like?",
        "It looks like rain",
        "There is an alternative",
        "He never came",
    ],
    "tells-goal": ["Do I want to go?", "The plan is old"],
    "tells-event": [
        "The release went out yesterday",
        "Recently the build fails",
        "What did I do yesterday?",
    ],
    "corrects": ["No problem", "No one came", "Know that it works", "No."],
    "greets": [
        "Thanks, that mended the parser in the end",
        "The okay button is green",
        "Hi, the build on main is red",
    ],
    "commands": [
        "Test coverage is low",
        "The fix is in",
        "Remember that deploys go out on Tuesdays",
        "Plans changed",
    ],
    "holds-code": [
        "The function parse fails on Mondays",
        "If (and only if) it rains we stay",
        "Return it by Friday; thanks",
        "class was boring",
    ],
    "asks-plainly": ["I know what is good", "Tell me how it went"],
}


@pytest.mark.parametrize(
    ("detector", "text"), [(name, text) for name, texts in SHOWS.items() for text in texts]
)
def test_the_rule_matches(detector: str, text: str) -> None:
    assert detector in utterance(text).reasons


@pytest.mark.parametrize(
    ("detector", "text"), [(name, text) for name, texts in SHOWS_NOT.items() for text in texts]
)
def test_the_rule_does_not_match(detector: str, text: str) -> None:
    assert detector not in utterance(text).reasons


def test_every_detector_is_tested() -> None:
    assert set(SHOWS) == set(SHOWS_NOT) == set(DETECTORS)


def test_a_question_states_nothing_but_its_neighbouring_sentence_may() -> None:
    assert utterance("I moved to Rome. What is the weather?").reasons == (
        "tells-event",
        "asks-plainly",
    )


OTHERS = [
    "Ich mag Tee",
    "\u6771\u4eac\u306b\u4f4f\u3093\u3067\u3044\u307e\u3059",
    "\U0001f600\U0001f600",
    "\u0645\u0631\u062d",
    "...",
    "7",
]


@pytest.mark.parametrize("text", OTHERS)
def test_other_languages_and_signs_show_nothing(text: str) -> None:
    assert utterance(text).reasons == ()


def test_length_counts_words() -> None:
    assert utterance("It's two\u2014or three, isn't it").length == 6


@pytest.mark.long
@given(st.text(max_size=200))
def test_any_text_has_features_and_case_does_not_matter(text: str) -> None:
    parsed = utterance(text)
    assert parsed.length >= 0
    assert parsed.fired <= set(DETECTORS)
    Statement(text).denies(Statement(text[::-1]))


@pytest.mark.long
@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "I am ",
        "no ",
        "hi ",
        "please ",
        "x(",
        "import ",
        "\n",
        " ",
        "<a ",
        "a'",
        "if (",
        "def ",
        "not, ",
        "{",
        "=;",
    ],
)
@pytest.mark.parametrize("small", [10_000, pytest.param(30_000, marks=pytest.mark.slow)])
def test_a_hostile_text_takes_time_in_proportion(unit: str, small: int) -> None:
    """Ten times the text takes at most forty times as long: a quadratic detector would take a hundred."""

    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        started = time.process_time()
        utterance(text)
        statement = Statement(text)
        assert not statement.denies(statement) or statement.denied
        assert statement.changes in (True, False)
        return time.process_time() - started

    least = min(seconds(small) for _ in range(3))
    assert seconds(10 * small) < max(40 * least, small / 60_000)


def test_kind_and_provenance_follow_from_reasons_and_role() -> None:
    assert kind_of(utterance("No, I prefer spaces").reasons) == "correction"
    assert kind_of(utterance("I prefer spaces").reasons) == "preference"
    assert kind_of(utterance("How are you?").reasons) is None
    assert kind_of(utterance("I prefer spaces", "assistant").reasons) is None
    assert kind_of(utterance("The user prefers spaces", "assistant").reasons) == "preference"
    assert kind_of(utterance("Yesterday I learned to code", "assistant").reasons) == "event"
    assert provenance_of("user", ("corrects",)) == "user-corrected"
    assert provenance_of("user", ()) == "user-stated"
    assert provenance_of("assistant", ("corrects",)) == "inferred"


class TestNegation:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("Use tabs", "Use spaces, not tabs"),
            ("The user likes jazz", "The user does not like jazz"),
            ("The user likes jazz", "The user dislikes jazz"),
            ("We use tabs", "We stopped using tabs"),
            ("Log secrets when debugging", "Never log secrets"),
            ("Ada eats meat", "Ada doesn\u2019t eat meat"),
        ],
    )
    def test_statements_that_deny_each_other(self, old: str, new: str) -> None:
        assert Statement(new).denies(Statement(old))
        assert not Statement(old).denies(Statement(new))

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("Use spaces", "Use spaces, not tabs"),
            ("Ada never eats meat", "Ada doesn't eat meat"),
            ("I prefer tea", "I don't drink coffee, I prefer tea"),
            ("Deploys go out on Tuesdays", "The bakery does not open on Sundays"),
        ],
    )
    def test_compatible_or_unrelated_statements_deny_nothing(self, old: str, new: str) -> None:
        assert not Statement(new).denies(Statement(old))
        assert not Statement(old).denies(Statement(new))

    def test_the_same_said_again_is_no_update(self) -> None:
        assert Statement("We now use spaces").updates(Statement("We use tabs"))
        assert Statement("We now use spaces").updates(Statement("We now use tabs"))
        assert not Statement("We now use spaces").updates(Statement("We use spaces now"))
        assert not Statement("Every now and then it rains").updates(Statement("It snows"))

    @pytest.mark.parametrize(
        ("old", "new", "text"),
        [
            ("Indent with tabs", "Indent with spaces now", "tabs -> spaces"),
            (
                "We use tabs for indentation.",
                "We now use spaces for indentation instead.",
                "tabs -> spaces",
            ),
            ("Deploys go out on Tuesdays", "Deploys go out on Fridays", "Tuesdays -> Fridays"),
            ("tabs", "spaces", "tabs -> spaces"),
            ("a b", "a b c", "a b -> a b c"),
            ("x " * 100, "y " * 100, f"{'x ' * 28}x... -> {'y ' * 28}y..."),
        ],
    )
    def test_changes_in_a_few_words(self, old: str, new: str, text: str) -> None:
        assert difference(old, new) == text

    @pytest.mark.long
    @given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=60))
    def test_any_two_texts_have_a_difference(self, old: str, new: str) -> None:
        assert " -> " in difference(old, new)


def test_words_and_clauses() -> None:
    assert words_of("Caf\u00e9s aren\u2019t open") == ["caf\u00e9s", "aren't", "open"]
    assert clauses("a, b but c") == ["a", " b ", " c"]
