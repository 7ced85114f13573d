"""Reading LoCoMo files: what the original needs repaired, and what is refused with its place."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import DatasetError
from memlab.io.formats.locomo import parse_ref
from memlab.io.ingest import read_locomo


def turn(number, text="Hello", *, session=1, **more):
    return {"speaker": "Ida", "dia_id": f"D{session}:{number}", "text": text, **more}


def sample(qa=(), *, turns=None, name="one", **conversation):
    turns = [turn(1), turn(2), turn(3)] if turns is None else turns
    return {
        "sample_id": name,
        "conversation": {
            "speaker_a": "Ida",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": turns,
            **conversation,
        },
        "qa": list(qa),
    }


def question(evidence, **more):
    return {"question": "What?", "answer": "That", "evidence": evidence, "category": 1, **more}


@pytest.fixture
def read(tmp_path):
    def reader(*samples):
        path = tmp_path / "file.json"
        path.write_text(json.dumps(samples))
        return read_locomo(path)

    return reader


def test_turns_keep_their_order_speaker_session_and_time(read):
    (labelled,) = read(
        sample(session_10=[turn(1, session=10)], session_10_date_time="12:05 am on 9 May, 2023")
    )
    turns = labelled.conversation.turns
    assert [turn.ref for turn in turns] == ["D1:1", "D1:2", "D1:3", "D10:1"]
    assert turns[0].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert turns[3].at == labelled.conversation.end == datetime(2023, 5, 9, 0, 5, tzinfo=UTC)
    assert turns[3].session == "session_10"


def test_sessions_are_ordered_by_number_and_not_by_name(read):
    later = {"session_10": [turn(1, session=10)], "session_10_date_time": "2023-06-01"}
    (labelled,) = read(
        sample(
            **later, session_2=[turn(1, session=2)], session_2_date_time="2023-05-20T10:00:00+02:00"
        )
    )
    assert [turn.ref for turn in labelled.conversation.turns[-2:]] == ["D2:1", "D10:1"]
    assert labelled.conversation.turns[-2].at == datetime(2023, 5, 20, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("evidence", "turns", "dropped"),
    [
        (["D1:1"], ("D1:1",), ()),
        (["D1:1; D1:2"], ("D1:1", "D1:2"), ()),
        (["D1:3 D1:1,D1:2"], ("D1:3", "D1:1", "D1:2"), ()),
        (["D:1:2"], ("D1:2",), ()),
        (["D01:03"], ("D1:3",), ()),
        (["D1:1", "D1:01"], ("D1:1",), ()),
        (["D1:1", "D", "D7:1"], ("D1:1",), ("D", "D7:1")),
        ("D1:2", ("D1:2",), ()),
        ([""], (), ()),
        ([], (), ()),
        (None, (), ()),
    ],
)
def test_evidence_is_repaired_and_what_names_no_turn_is_dropped(read, evidence, turns, dropped):
    (labelled,) = read(sample([question(evidence)]))
    assert labelled.questions[0].evidence == turns
    assert labelled.questions[0].dropped == dropped


def test_a_question_may_have_no_evidence_key(read):
    asked = question([])
    del asked["evidence"]
    (labelled,) = read(sample([asked]))
    assert labelled.questions[0].evidence == ()


@pytest.mark.parametrize(
    ("answer", "text"), [("x", "x"), (2022, "2022"), (1.5, "1.5"), (["a", 2], "a, 2"), (None, "")]
)
def test_answers_become_text(read, answer, text):
    (labelled,) = read(sample([question(["D1:1"], answer=answer)]))
    assert labelled.questions[0].answer == text


def test_an_adversarial_question_has_its_own_answer(read):
    asked = {
        "question": "What?",
        "adversarial_answer": "Nothing",
        "evidence": ["D1:1"],
        "category": 5,
    }
    (labelled,) = read(sample([asked]))
    assert (labelled.questions[0].category, labelled.questions[0].answer) == (5, "Nothing")


def test_dates_of_sessions_that_do_not_exist_are_passed_over(read):
    (labelled,) = read(
        sample(session_2_date_time="not even a date", session_3=[], session_4_date_time=7)
    )
    assert len(labelled.conversation.turns) == 3


def test_a_ref_may_name_two_turns(read):
    (labelled,) = read(sample([question(["D1:1"])], turns=[turn(1, "a"), turn(1, "b")]))
    assert [turn.ref for turn in labelled.conversation.turns] == ["D1:1", "D1:1"]
    assert labelled.questions[0].evidence == ("D1:1",)


def test_conversations_without_an_id_are_numbered(read):
    unnamed = sample()
    del unnamed["sample_id"]
    assert [item.conversation.name for item in read(unnamed, sample())] == ["conversation-1", "one"]


@pytest.mark.long
@given(session=st.integers(0, 999), number=st.integers(0, 999), pad=st.integers(0, 3))
def test_every_spelling_of_an_id_has_one_canonical_form(session, number, pad):
    plain = f"D{session}:{number}"
    zeros = "0" * pad
    assert parse_ref(plain) == plain
    assert parse_ref(f"D:{zeros}{session}:{zeros}{number}") == plain
    assert parse_ref(f"d{zeros}{session}:{zeros}{number}") == plain


@pytest.mark.parametrize(
    ("broken", "where"),
    [
        ({"qa": []}, "field conversation: expected an object"),
        (sample(turns="hello"), 'field session_1: expected a list of turns, found "hello"'),
        (sample(turns=["hello"]), "field session_1[0]: expected an object"),
        (
            sample(turns=[turn(1), {"dia_id": "D1:2", "text": "x"}]),
            "field session_1[1].speaker: expected text",
        ),
        (
            sample(turns=[{**turn(1), "text": 5}]),
            "field session_1[0].text: expected text, found the number 5",
        ),
        (
            sample(turns=[turn(1, "half \ud83d")]),
            "field session_1[0].text: the text contains a lone surrogate",
        ),
        (sample(turns=[]), "field conversation: there are no turns in session_1"),
        (
            sample(session_1_date_time=None),
            "field conversation.session_1_date_time: expected text, found nothing",
        ),
        (
            sample(session_1_date_time="13:56 pm on 8 May, 2023"),
            '"13:56 pm on 8 May, 2023" is not a time such as',
        ),
        (sample(session_1_date_time="1:56 pm on 31 June, 2023"), "is not a time such as"),
        (sample(session_1_date_time="yesterday"), "is not a time such as"),
        (
            sample([question(["D1:1"], category=6)]),
            "field qa[0].category: expected 1, 2, 3, 4 or 5, found 6",
        ),
        (sample([question(["D1:1"], category=True)]), "field qa[0].category"),
        (
            sample([question(["D1:1"]), question([7])]),
            "field qa[1].evidence: expected turn ids as text",
        ),
        (
            sample([question({"D1": 1})]),
            "field qa[0].evidence: expected a list of turn ids, found an object",
        ),
        (
            sample([question(["D1:1"], question="  ")]),
            "field qa[0].question: expected text, found empty text",
        ),
        (
            sample([question(["D1:1"], answer={})]),
            "field qa[0].answer: expected text, a number or a list",
        ),
        (sample([None]), "field qa[0]: expected an object, found nothing"),
        ({**sample(), "qa": 3}, "field qa: expected a list of questions, found the number 3"),
        ({**sample(), "sample_id": 3}, "field (top).sample_id: expected text, found the number 3"),
        ("text", 'field (itself): expected an object, found "text"'),
    ],
)
def test_a_malformed_conversation_is_refused_by_file_conversation_and_field(
    read, tmp_path, broken, where
):
    with pytest.raises(DatasetError) as caught:
        read(sample(name="fine"), broken)
    assert where in str(caught.value)
    assert str(tmp_path / "file.json") in str(caught.value)
    assert "conversation 2" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[{]", "line 1, column 3: not JSON"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"{}", "a LoCoMo file must be a list of conversations, not an object"),
        (b"[]", "not an empty list"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" + b"1" * 5_000 + b"]", "is not a LoCoMo file"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, content, problem):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=problem):
        read_locomo(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(DatasetError, match="cannot be read: No such file"):
        read_locomo(tmp_path / "none.json")
    with pytest.raises(DatasetError, match="cannot be read"):
        read_locomo(tmp_path)


def test_two_conversations_of_one_name_are_refused(read):
    with pytest.raises(DatasetError, match='two conversations have the name "one"'):
        read(sample(), sample())
