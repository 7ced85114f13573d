"""How a conversation enters a lab: by its turns, and by nothing else."""

from datetime import UTC, datetime

import polars as pl

import memlab
from memlab.io.ingest import Conversation, LabelledConversation, Question, Turn, conversation

MAY = datetime(2026, 5, 1, 9, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, 9, tzinfo=UTC)
TALK = Conversation(
    "talk",
    (
        Turn("D1:1", "Ida", "The ferry leaves at noon.", "session_1", MAY),
        Turn("D1:2", "Bo", "", "session_1", MAY, "a harbour at dawn"),
        Turn("D1:3", "Ida", "", "session_1", MAY),
        Turn("D1:4", "Bo", "See you there!", "session_1", MAY),
        Turn("D2:1", "Ida", "We missed the ferry.", "session_2", JUNE, "an empty quay"),
    ),
)


def test_a_picture_is_stored_by_its_caption():
    assert [turn.content for turn in TALK.turns] == [
        "The ferry leaves at noon.",
        "[image: a harbour at dawn]",
        "",
        "See you there!",
        "We missed the ferry. [image: an empty quay]",
    ]


def test_rows_hold_who_when_where_and_the_callers_id_and_pass_over_turns_without_words():
    rows = TALK.rows(project="p")
    assert [row["ref"] for row in rows] == ["D1:1", "D1:2", "D1:4", "D2:1"]
    assert rows[-1] == {
        "text": "We missed the ferry. [image: an empty quay]",
        "kind": "turn",
        "speaker": "Ida",
        "session": "talk/session_2",
        "project": "p",
        "at": JUNE,
        "ref": "D2:1",
    }


def test_speakers_and_end():
    assert TALK.speakers == ("Ida", "Bo")
    assert TALK.end == JUNE


def test_ingesting_goes_through_the_public_api_and_joins_the_turns_of_a_session():
    with memlab.open() as lab:
        conversation(lab, TALK)
        frame = lab.memories
        assert frame["ref"].to_list() == ["D1:1", "D1:2", "D1:4", "D2:1"]
        assert frame["created"].to_list() == [MAY, MAY, MAY, JUNE]
        assert frame["project"].unique().to_list() == ["talk"]
        assert frame["kind"].unique().to_list() == ["turn"]
        edges = lab.edges.filter(pl.col("relation").cast(pl.String) == "next")
        assert edges.select("source", "target").rows() == [(1, 2), (2, 3)]


def test_nothing_of_questions_and_labels_reaches_the_memory():
    asked = Question("Where is the hidden treasure?", 1, ("D1:1",), answer="Under the lighthouse")
    labelled = LabelledConversation(TALK, (asked,))
    with memlab.open() as lab:
        conversation(lab, labelled.conversation, project="other")
        words = " ".join(lab.memories["text"].to_list())
        assert "treasure" not in words
        assert "lighthouse" not in words
        assert lab.memories["project"].unique().to_list() == ["other"]
