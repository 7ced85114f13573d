"""Reading BEAM folders: batches, anchors and the forms that evidence takes; what is refused with its place."""

import json
from datetime import UTC, datetime

import pytest

from memlab.errors import DatasetError
from memlab.io.ingest import read_beam


def message(id, role="user", content="I keep bees. ->-> 1,2", **more):
    return {"id": id, "role": role, "content": content} | more


def batch(*messages, **more):
    return {"batch_number": 1, "turns": [list(messages)], "time_anchor": None} | more


TWO = [
    batch(message(0, time_anchor="March-15-2024"), message(1, "assistant", "How many hives?")),
    batch(message(2, content="Nine now ->-> 2,N/A"), message(3, "assistant", "That is many.")),
]


@pytest.fixture
def read(tmp_path):
    def reader(chat=TWO, questions=None, name="7"):
        folder = tmp_path / name
        (folder / "probing_questions").mkdir(parents=True, exist_ok=True)
        (folder / "chat.json").write_text(json.dumps(chat))
        (folder / "probing_questions" / "probing_questions.json").write_text(
            json.dumps(questions or {})
        )
        return read_beam(tmp_path)

    return reader


def probing_question(ids, **more):
    return {"question": "How many hives?", "source_chat_ids": ids} | more


def test_a_complaintis_a_turn_of_its_batch_with_role_and_time(read):
    (chat,) = read()
    turns = chat.conversation.turns
    assert chat.conversation.name == "beam-7"
    assert [(turn.ref, turn.role, turn.speaker, turn.session) for turn in turns] == [
        ("0", "user", "user", "session_1"),
        ("1", "assistant", "assistant", "session_1"),
        ("2", "user", "user", "session_2"),
        ("3", "assistant", "assistant", "session_2"),
    ]
    assert {turn.at for turn in turns} == {datetime(2024, 3, 15, tzinfo=UTC)}


def test_the_mark_of_the_generator_is_no_part_of_what_was_said(read):
    (chat,) = read()
    assert [turn.text for turn in chat.conversation.turns[::2]] == ["I keep bees.", "Nine now"]


def test_an_anchor_dates_what_follows_it(read):
    later = batch(message(9), time_anchor="2024-05-01T10:00:00+02:00")
    (chat,) = read([batch(message(1)), later, batch(message(10))])
    first, *rest = [turn.at for turn in chat.conversation.turns]
    assert first == datetime(2024, 1, 1, tzinfo=UTC)
    assert rest == [datetime(2024, 5, 1, 8, tzinfo=UTC)] * 2


@pytest.mark.parametrize(
    ("ids", "evidence", "dropped", "parts"),
    [
        ([2, 0, 2], ("2", "0"), (), ()),
        ([[0, 1], [2]], ("0", "1", "2"), (), ()),
        (3, ("3",), (), ()),
        ([2, 77], ("2",), ("77",), ()),
        (None, (), (), ()),
        (
            {"original_info": [0], "updated_info": [2, 0]},
            ("0", "2"),
            (),
            (("original_info", ("0",)), ("updated_info", ("2", "0"))),
        ),
    ],
)
def test_evidence_in_its_forms(read, ids, evidence, dropped, parts):
    (chat,) = read(questions={"knowledge_update": [probing_question(ids, answer="nine")]})
    (question,) = chat.questions
    assert (question.evidence, question.dropped, question.parts) == (evidence, dropped, parts)
    assert (question.category, question.answer, question.answerable) == (
        "knowledge_update",
        "nine",
        True,
    )


@pytest.mark.parametrize(
    ("parts", "outdated"),
    [
        ({"original_info": [0], "updated_info": [2]}, ("0",)),
        ({"first_statement": [2], "second_statement": [1]}, ("1",)),
        ({"original_info": [0, 1], "updated_info": [1]}, ()),
        ({"original_info": [0]}, ()),
        ([0, 1], ()),
    ],
)
def test_an_earlier_statement_is_outdated_unless_the_later_one_contains_it(read, parts, outdated):
    (chat,) = read(questions={"knowledge_update": [probing_question(parts, answer="nine")]})
    assert chat.questions[0].outdated == outdated


def test_abstention_has_no_evidence_and_no_answer_to_find(read):
    (chat,) = read(
        questions={"abstention": [{"question": "Who sold them?", "ideal_response": "Nobody said."}]}
    )
    assert not chat.questions[0].answerable
    assert chat.questions[0].answer == "Nobody said."


def test_chats_come_by_number_and_one_may_be_named_alone(read, tmp_path):
    read(name="10"), read(name="2")
    assert [chat.conversation.name for chat in read(name="draft")] == [
        "beam-2",
        "beam-10",
        "beam-draft",
    ]
    assert [chat.conversation.name for chat in read_beam(tmp_path / "10")] == ["beam-10"]


@pytest.mark.parametrize(
    ("chat", "complaint"),
    [
        ({}, r"chat.json: field \(itself\): expected a list of batches, found an object"),
        ([], "no batch contains a message"),
        ([7], r"field \[0\]: expected an object, found the number 7"),
        ([{"turns": {}}], r"field \[0\].turns: expected a list of turns"),
        ([{"turns": [{}]}], r"field \[0\].turns\[0\]: expected a list of messages"),
        ([batch(message("a"))], r"turns\[0\]\[0\].id: expected an integer, found \"a\""),
        ([batch(message(True))], "expected an integer, found true"),
        ([batch(message(1, role=None))], r"\.role: expected text, found nothing"),
        ([batch(message(1, content=["x"]))], r"\.content: expected text, found a list"),
        (
            [batch(message(1, time_anchor="soon"))],
            'time_anchor: "soon" is not a time such as "March-15-2024"',
        ),
        ([batch(message(1, time_anchor="March-45-2024"))], "is not a time"),
        ([batch(message(1), message(1))], "2 messages have the id 1"),
    ],
)
def test_an_invalid_chat_is_refused_with_its_position(read, chat, complaint):
    with pytest.raises(DatasetError, match=complaint):
        read(chat)


@pytest.mark.parametrize(
    ("questions", "complaint"),
    [
        ([1], "expected an object with a list for each ability"),
        ({"abstention": {}}, "field abstention: expected a list of questions"),
        ({"abstention": ["Who?"]}, r"field abstention\[0\]: expected an object"),
        ({"x": [{"question": " "}]}, r"field x\[0\].question: expected text, found empty text"),
        ({"x": [probing_question(["1"])]}, r"x\[0\].source_chat_ids: expected an integer"),
        (
            {"x": [probing_question({"first": ["1"]})]},
            r"source_chat_ids.first: expected an integer",
        ),
    ],
)
def test_invalid_questions_are_refused_with_their_position(read, questions, complaint):
    with pytest.raises(DatasetError, match=complaint):
        read(questions=questions)


def test_missing_files_are_named(read, tmp_path):
    with pytest.raises(DatasetError, match=r"is not a folder. BEAM is a folder of chats"):
        read_beam(tmp_path / "none")
    with pytest.raises(DatasetError, match=r"contains no chat. Expected 1/chat.json or chat.json"):
        read_beam(tmp_path)
    read()
    (tmp_path / "7" / "probing_questions" / "probing_questions.json").unlink()
    with pytest.raises(DatasetError, match=r"probing_questions.json cannot be read"):
        read_beam(tmp_path)
