"""What the circumstances of a user's message to an assistant leave of a fact's confidence."""

from __future__ import annotations

import pytest

import memlab
from memlab.subjects.extraction.circumstances import adjust_confidence, list_signs, read_setting
from memlab.subjects.extraction.reading import read_facts

OWN = "I work as a nurse."
TEXT = "The council met again on the second day and went through each of the points. "


def confidence(*messages: str, speaker: str | None = None) -> float:
    """Return the highest confidence of a fact of the last message, 0 if none is proposed."""
    said = [
        {"role": "user", "content": text} | ({"speaker": speaker} if speaker else {})
        for text in messages
    ]
    with memlab.open() as lab:
        proposed = [
            item
            for item in lab.agents.extract(said)
            if item.sort == "fact" and item.message == len(messages) - 1
        ]
    return max((item.confidence for item in proposed), default=0.0)


def test_talk_to_an_assistant_keeps_the_share_of_its_rule():
    assert confidence(OWN) == read_facts(OWN)[0].confidence


@pytest.mark.parametrize(
    "message",
    [
        f"Let's play a text adventure. {OWN}",
        f"Summarize the following text. {TEXT * 20} {OWN}",
        f"Doctor: {OWN}\nPatient: I see.",
    ],
    ids=["a role", "a pasted text", "a label"],
)
def test_statements_in_a_role_or_a_text_rank_below_real_ones(message):
    assert confidence(message) < 0.6


def test_a_role_lasts_for_the_rest_of_a_conversation():
    assert (
        confidence("Let's role play a hospital.", OWN)
        < 0.6
        <= confidence("Let's plan a week.", OWN)
    )


@pytest.mark.parametrize(
    "message", ["I play the piano.", "Do you play chess? I do.", "I love D&D and wizard films."]
)
def test_a_hobby_is_no_role(message):
    assert "played" not in read_setting(message).signs(0)


def test_people_by_their_names_have_no_circumstances():
    assert confidence(f"Let's play a game. {OWN}", speaker="Anna") == read_facts(OWN)[0].confidence


def test_a_doubtful_thing_in_a_brief_message_is_still_proposed():
    setting = read_setting("The staging port is 8443.")
    (fact,) = read_facts(setting.text)
    assert list_signs(fact, setting) == ()
    assert adjust_confidence([fact], setting) == [fact]
