"""The commands for published benchmarks, on files in their formats that were written for these tests."""

import hashlib
import json
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from memlab.errors import DatasetError
from memlab.io.ingest import correct_evidence, digest, read_lmeb, read_locomo, read_longmemeval
from memlab.ui.cli import main


def instance(id="q1", **more):
    return {
        "question_id": id,
        "question_type": "single-session-user",
        "question": "Where does the user keep bees?",
        "answer": 3,
        "question_date": "2023/06/01 (Thu) 09:30",
        "haystack_session_ids": ["s2", "s1"],
        "haystack_dates": ["2023/05/21 (Sun) 02:21", "2023/05/20 (Sat) 11:00"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "What rhymes with hive?"},
                {"role": "assistant", "content": "Five."},
            ],
            [{"role": "user", "content": "I keep bees behind the mill.", "has_answer": True}],
        ],
        "answer_session_ids": ["s1"],
    } | more


@pytest.fixture
def written(tmp_path):
    def write(value, name="data.json"):
        path = tmp_path / name
        path.write_text(json.dumps(value))
        return path

    return write


@pytest.fixture
def command():
    def run(*words):
        return CliRunner().invoke(main, ["bench", *map(str, words)])

    return run


def test_longmemeval_is_a_conversation_for_each_question(written):
    first, gone = read_longmemeval(written([instance(), instance("q2_abs")]))
    turns = first.conversation.turns
    assert [(turn.ref, turn.role, turn.at.day) for turn in turns] == [
        ("s1:1", "user", 20),
        ("s2:1", "user", 21),
        ("s2:2", "assistant", 21),
    ]
    (question,) = first.questions
    assert (question.evidence, question.category, question.answer) == (
        ("s1:1",),
        "single-session-user",
        "3",
    )
    assert question.at == datetime(2023, 6, 1, 9, 30, tzinfo=UTC)
    assert not gone.questions[0].answerable


def test_a_repeated_session_of_a_haystack_keeps_its_turns_apart(written):
    (read,) = read_longmemeval(written([instance(haystack_session_ids=["s1", "s1"])]))
    assert {turn.ref for turn in read.conversation.turns} == {"s1:1", "s1:2", "s1#1:1"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "expected a list of instances, found an object"),
        ([], "contains no instance"),
        ([7], r"instance 1, field \(itself\): expected an object"),
        (
            [
                instance(""),
            ],
            "field question_id: expected text, found empty text",
        ),
        ([instance(), instance()], '2 instances have the question_id "q1"'),
        (
            [instance(haystack_dates=["2023/05/20"])],
            r"instance 1 \(q1\).*lists differ in length: 2 haystack_session_ids, 1",
        ),
        (
            [instance(haystack_dates=["x", "y"])],
            r'haystack_dates\[0\]: "x" is not a time such as "2023/05/20',
        ),
        ([instance(haystack_dates=["2023/13/20", "2023/05/20"])], "is not a time"),
        (
            [instance(haystack_sessions=[{}, {}])],
            r"haystack_sessions\[0\]: expected a list of turns",
        ),
        ([instance(haystack_sessions=[[], []])], "no session has a turn"),
        (
            [instance(haystack_sessions=[[{"role": 1}], []])],
            r"haystack_sessions\[0\]\[0\].role: expected text",
        ),
        ([instance(haystack_session_ids=[1, 2])], r"haystack_session_ids\[0\]: expected text"),
        ([instance(answer={})], "field answer: expected text or a number"),
        ([instance(question_date=None)], "question_date: nothing is not a time"),
    ],
)
def test_an_invalid_longmemeval_file_is_refused_with_its_position(written, value, message):
    with pytest.raises(DatasetError, match=message):
        read_longmemeval(written(value))


@pytest.fixture
def lmeb(tmp_path):
    task = tmp_path / "eval_data" / "Dialogue" / "Talks"
    for name in ("single", "multi"):
        (task / name).mkdir(parents=True)
    lines = {
        "corpus.jsonl": [
            {"id": "c_1_1", "title": "May", "text": "I keep bees behind the mill."},
            {"id": "c_1_2", "title": "", "text": "Rent is due on the third."},
            {"id": "c_2_1", "title": None, "text": "The cat is called Mangold."},
        ],
        "candidates.jsonl": [
            {"scene_id": "c_1", "candidate_doc_ids": ["c_1_1", "c_1_2"]},
            {"scene_id": "c_2", "candidate_doc_ids": ["c_2_1"]},
        ],
        "single/queries.jsonl": [
            {"id": "c_1_q1", "text": "Where are bees kept?"},
            {"id": "c_2_q1", "text": "Which cat?"},
        ],
        "multi/queries.jsonl": [{"id": "c_1_q9", "text": "When is rent due, and for what?"}],
    }
    for name, values in lines.items():
        (task / name).write_text("".join(json.dumps(value) + "\n" for value in values))
    (task / "single" / "qrels.tsv").write_text(
        "c_1_q1\tc_1_1\t1\nc_2_q1\tc_2_1\t1\nc_1_q1\tc_1_2\t0\n"
    )
    (task / "multi" / "qrels.tsv").write_text("c_1_q9\tc_1_2\t1\nc_1_q9\tc_2_1\t1\n")
    return task


def test_lmeb_is_a_conversation_for_each_scene(lmeb):
    first, second = read_lmeb(lmeb)
    assert [turn.ref for turn in first.conversation.turns] == ["c_1_1", "c_1_2"]
    assert first.conversation.turns[0].text == "May I keep bees behind the mill."
    assert {
        (question.text, question.category, question.evidence, question.dropped)
        for question in first.questions
    } == {
        ("Where are bees kept?", "single", ("c_1_1",), ()),
        ("When is rent due, and for what?", "multi", ("c_1_2",), ("c_2_1",)),
    }
    assert [turn.ref for turn in second.conversation.turns] == ["c_2_1"]
    assert read_lmeb(lmeb / "single")[0].questions[0].category == "single"


def test_lmeb_without_candidates_is_one_scene(lmeb):
    (lmeb / "candidates.jsonl").unlink()
    (only,) = read_lmeb(lmeb)
    assert len(only.conversation.turns) == 3
    assert len(only.questions) == 3


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl", '{"id": 3}', "line 1, field id: expected text, found the number 3"),
        ("corpus.jsonl", '{"id": "a"', "line 1, column 11: not JSON"),
        (
            "candidates.jsonl",
            '{"scene_id": "c_1", "candidate_doc_ids": ["x"]}',
            "corpus has no document 'x'",
        ),
        (
            "candidates.jsonl",
            '{"scene_id": "c_9", "candidate_doc_ids": []}',
            '"c_1_q9" belongs to no scene',
        ),
        (
            "single/qrels.tsv",
            "c_1_q1 c_1_1 1",
            "qrels.tsv, line 1: expected query, document and an integer score",
        ),
        ("single/qrels.tsv", "a\tb\thigh", "expected query, document and an integer score"),
        ("single/queries.jsonl", '{"id": "c_1_q1"}', "field text: expected text, found nothing"),
    ],
)
def test_an_invalid_lmeb_file_is_refused_with_its_position(lmeb, name, content, message):
    (lmeb / name).write_text(content)
    with pytest.raises(DatasetError, match=message):
        read_lmeb(lmeb)


def test_lmeb_without_its_files_is_refused(lmeb, tmp_path):
    with pytest.raises(DatasetError, match=r"contains no queries.jsonl"):
        read_lmeb(tmp_path / "none")
    (lmeb / "corpus.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"has no corpus.jsonl, neither next to its queries"):
        read_lmeb(lmeb)


TALK = [
    {
        "sample_id": "talk",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ida", "dia_id": "D1:1", "text": "I keep bees behind the mill."},
                {"speaker": "Ola", "dia_id": "D1:2", "text": "How many hives?"},
            ],
        },
        "qa": [{"question": "Where are the bees?", "category": 4, "evidence": ["D1:2"]}],
    }
]
MENDED = [
    {
        "sample_id": "talk",
        "qa": 0,
        "question": "Where are the bees?",
        "correct": ["D1:1"],
        "error_type": "X",
    }
]


def test_corrections_take_the_place_of_what_was_cited(written):
    read = read_locomo(written(TALK))
    (mended,) = correct_evidence(
        read, written([*MENDED, MENDED[0] | {"sample_id": "absent"}], "mended.json")
    )
    assert mended.questions[0].evidence == ("D1:1",)
    assert read[0].questions[0].evidence == ("D1:2",)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "expected a list of corrections"),
        ([], "corrects no question of the loaded conversations: talk"),
        ([MENDED[0] | {"qa": 1}], "expected the index of a question, 0-0, found the number 1"),
        ([MENDED[0] | {"question": "Who?"}], '"Who\\?" is not question 0, "Where are the bees'),
        ([MENDED[0] | {"correct": ["D9:9"]}], 'has no turn "D9:9"'),
        ([MENDED[0] | {"correct": "D1:1"}], "expected a list of turn ids"),
    ],
)
def test_corrections_of_something_else_are_refused(written, value, message):
    with pytest.raises(DatasetError, match=message):
        correct_evidence(read_locomo(written(TALK)), written(value, "mended.json"))


@pytest.mark.long
def test_locomo_is_judged_by_both_labels_in_one_run(written, command):
    talk, mended = written(TALK, "talk.json"), written(MENDED, "mended.json")
    done = command("locomo", talk, "--packs", "memlab", "--evidence", "corrected", mended, "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.output)
    assert [system["labels"] for system in data["systems"]] == ["published"] * 3 + ["corrected"] * 3
    assert data["sha256"] == hashlib.sha256(talk.read_bytes()).hexdigest()


def test_data_of_another_digest_is_refused(written, command):
    done = command("locomo", written(TALK), "--sha256", "0" * 64)
    assert done.exit_code == 1
    assert "it is another version of the data" in done.output


def test_the_digest_of_a_folder_is_that_of_its_list(lmeb):
    files = sorted(path.relative_to(lmeb).as_posix() for path in lmeb.rglob("*") if path.is_file())
    listed = "".join(
        f"{hashlib.sha256((lmeb / name).read_bytes()).hexdigest()}  {name}\n" for name in files
    )
    assert digest(lmeb) == hashlib.sha256(listed.encode()).hexdigest()


@pytest.mark.long
def test_longmemeval_and_lmeb_are_benched(written, command, lmeb):
    done = command(
        "longmemeval", written([instance(), instance("q2_abs")]), "--packs", "memlab", "--json"
    )
    assert done.exit_code == 0, done.output
    data = json.loads(done.output)
    assert data["questions"] == 1
    assert set(data["systems"][0]["by_category"]) == {"single-session-user", "abstention"}
    done = command("lmeb", lmeb, "--packs", "memlab")
    assert done.exit_code == 0, done.output
    assert "Talks: 3 answerable questions on 2 conversations; document level" in done.output


@pytest.mark.long
def test_beam_is_benched_by_ability(tmp_path, command):
    chat = [
        {
            "turns": [
                [
                    {"id": 0, "role": "user", "content": "I keep bees."},
                    {"id": 1, "role": "assistant"},
                ]
            ]
        }
    ]
    asked = {
        "information_extraction": [{"question": "What is kept?", "source_chat_ids": [0]}],
        "abstention": [],
    }
    folder = tmp_path / "beam" / "1" / "probing_questions"
    folder.mkdir(parents=True)
    (folder / "probing_questions.json").write_text(json.dumps(asked))
    (folder.parent / "chat.json").write_text(json.dumps(chat))
    done = command("beam", tmp_path / "beam", "--packs", "memlab", "--json")
    assert done.exit_code == 0, done.output
    assert (
        json.loads(done.output)["systems"][0]["by_category"]["information_extraction"]["recall@10"]
        == 1.0
    )


@pytest.mark.long
def test_an_own_lab_is_benchmarked(tmp_path, command):
    import memlab

    with memlab.open(tmp_path / "mine") as lab:
        lab.remember("I keep bees behind the mill.", ref="bees")
    (tmp_path / "wanted.csv").write_text("question,ref\nWhere are the bees?,bees\n")
    done = command("lab", tmp_path / "mine", tmp_path / "wanted.csv", "--packs", "memlab", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["systems"][0]["metrics"]["recall@5"] == 1.0
    assert command("lab", tmp_path / "mine", tmp_path / "none.csv").exit_code == 1
