"""Labelled conversations become a simulated run in which the evidence is useful."""

import pytest

from memlab.errors import DatasetError
from memlab.science.simulation import MessageEvent, QuestionEvent, User, from_conversations, live

TURNS = {
    "talk": [
        {
            "ref": "D1:1",
            "text": "I moved to Graz.",
            "speaker": "Ida",
            "session": "talk/1",
            "at": "2026-01-01T10:00:00",
        },
        {
            "ref": "D1:2",
            "text": "My cat is Plum.",
            "speaker": "Bo",
            "session": "talk/1",
            "at": "2026-01-01T10:01",
        },
        {
            "ref": "D2:1",
            "text": "Plum sleeps all day.",
            "speaker": "Bo",
            "session": "talk/2",
            "at": "2026-01-09T09:00",
        },
    ],
    "walk": [
        {
            "ref": "D1:1",
            "text": "The lake froze over.",
            "speaker": "Mo",
            "session": "walk/1",
            "at": "2026-02-01",
        }
    ],
}
QUESTIONS = {
    "talk": [
        {"text": "What do we know of Bo's cat?", "evidence": ["D1:2", "D2:1", "D2:1"]},
        {"text": "Where does Ida live?", "evidence": ["D1:1"], "at": "2026-01-05"},
        {"text": "Who won?", "evidence": []},
    ],
    "walk": [{"text": "What happened to the lake?", "evidence": ["D1:1"]}],
}


def test_evidence_becomes_utility():
    script = from_conversations(TURNS, QUESTIONS)
    asked = [event for event in script.events() if isinstance(event, QuestionEvent)]
    assert [item.text for item in asked] == [
        QUESTIONS["talk"][1]["text"],
        QUESTIONS["talk"][0]["text"],
        "What happened to the lake?",
    ]
    assert asked[1].useful == {"talk/D1:2": 1.0, "talk/D2:1": 1.0}
    assert script.unjudged == 1
    assert [event.at for event in script.events()] == sorted(event.at for event in script.events())


def test_fractional_utilities_make_a_value_the_recall():
    script = from_conversations(TURNS, QUESTIONS, fractional=True)
    assert all(
        sum(event.useful.values()) == 1
        for event in script.events()
        if isinstance(event, QuestionEvent)
    )


def test_refs_of_two_conversations_do_not_mix():
    said = [
        event
        for event in from_conversations(TURNS, QUESTIONS).events()
        if isinstance(event, MessageEvent)
    ]
    assert len({item.ref for item in said}) == 4


@pytest.mark.long
def test_a_transcript_is_lived_like_any_world():
    user = User(answers=1, errors=0, delay_hours=0)
    script = from_conversations(TURNS, QUESTIONS, fractional=True, user=user)
    with live(script) as life:
        assert len(life.lab) == 4
        assert life.slates.decisions.collect().height == 3
        assert life.truth("memlab", how="rescore") == pytest.approx(1.0)
        assert life.slates.decisions.collect()["project"].to_list() == ["talk", "talk", "walk"]


def test_evidence_that_is_not_there_is_named():
    with pytest.raises(DatasetError, match=r'talk, question 0.*"D1:3".*D1:1'):
        from_conversations(TURNS, {"talk": [{"text": "What?", "evidence": ["D1:3"]}]})
    with pytest.raises(DatasetError, match="walc"):
        from_conversations(TURNS, {"walc": [{"text": "What?", "evidence": ["D1:1"]}]})
