"""`bench lab`: one's own lab, one's own labels."""

import json

import pytest

import memlab
from memlab.errors import DatasetError, NotALab
from memlab.io.ingest import WantedMemories, read_questions
from memlab.science.bench import bench_lab

TEXTS = [
    "The spare key hangs in the boiler room.",
    "Rent is due on the third.",
    "The cat is called Mangold.",
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "mine.memlab"
    with memlab.open(path) as lab:
        lab.remember(
            [
                {"text": text, "ref": f"n{number}", "project": "home"}
                for number, text in enumerate(TEXTS)
            ]
            + [{"text": "The key of the van is with Ola.", "ref": "n0", "project": "work"}]
        )
    return path


def wanted_memories(text, *wanted, **more):
    return WantedMemories(text, wanted, **more)


@pytest.mark.long
def test_a_wanted_memory_may_be_an_id_a_ref_or_a_text(lab):
    with memlab.open(lab, read_only=True) as opened:
        id = opened.memories["id"][1]
    questions = [
        wanted_memories("Where is the spare key?", "n0", project="home"),
        wanted_memories("When is rent due?", str(id)),
        wanted_memories("What is the cat called?", TEXTS[2], category="names"),
        wanted_memories("Who painted the door?"),
    ]
    result = bench_lab(lab, questions, packs=["memlab"])
    assert (result.questions, result.unjudged, result.unit) == (3, 1, "memory")
    assert result.systems[0].metrics["recall@5"] == 1.0
    assert result.systems[0].counts == {"all": 2, "names": 1}
    assert result.systems[0].ingest_per_s is None
    assert result.systems[0].intervals["recall@10"] is not None
    assert "mine.memlab: 3 answerable questions, 1 without evidence left out; memory level" in repr(
        result
    )


@pytest.mark.long
def test_the_lab_is_left_as_it_was(lab):
    with memlab.open(lab, read_only=True) as opened:
        before = opened.memories, opened.log, opened.policies.pack.hash
    bench_lab(lab, [wanted_memories("When is rent due?", "n1")], packs=["cascade", "memlab"])
    with memlab.open(lab, read_only=True) as opened:
        assert opened.memories.equals(before[0])
        assert opened.log.equals(before[1])
        assert opened.policies.pack.hash == before[2]


@pytest.mark.long
def test_a_ref_is_one_of_its_project(lab):
    result = bench_lab(
        lab, [wanted_memories("Where is the key?", "n0")], packs=["memlab"], baselines=False
    )
    assert len(result.evidence["published"][0]) == 2
    result = bench_lab(
        lab,
        [wanted_memories("Where is the key?", "n0", project="work")],
        packs=["memlab"],
        baselines=False,
    )
    assert len(result.evidence["published"][0]) == 1


@pytest.mark.long
def test_a_missing_memory_is_named_with_the_nearest(lab):
    with pytest.raises(
        DatasetError,
        match=r'wants "The cat is called Mango\.", which is not an id.*nearest text is "The cat',
    ):
        bench_lab(
            lab, [wanted_memories("Which cat?", "The cat is called Mango.")], packs=["memlab"]
        )
    with pytest.raises(DatasetError, match="No question wants a memory"):
        bench_lab(lab, [wanted_memories("Which cat?")], packs=["memlab"])
    with pytest.raises(NotALab, match="There is no lab at"):
        bench_lab(lab.parent / "none", [wanted_memories("Which cat?", "n2")])


def test_files_of_questions(tmp_path):
    path = tmp_path / "wanted.jsonl"
    rows = [
        {"question": "Where?", "wanted": [17, "n3"]},
        {"question": "When?", "memory_id": 4, "project": "home", "at": "2026-03-01T10:00:00+01:00"},
        {"question": "Where?", "ref": "n9", "category": "late"},
        {"question": "Who?"},
    ]
    path.write_text("\n\n".join(map(json.dumps, rows)))
    result = read_questions(path)
    assert [(item.text, item.wanted, item.project) for item in result] == [
        ("Where?", ("17", "n3", "n9"), None),
        ("When?", ("4",), "home"),
        ("Who?", (), None),
    ]
    assert result[1].at.hour == 9
    table = tmp_path / "wanted.csv"
    table.write_text(
        '\ufeffquestion,wanted,project\nWhere?,17,\n"Where, then?","a ""b""\nc",home\nWhere?,n3,\n'
    )
    assert [(question.text, question.wanted) for question in read_questions(table)] == [
        ("Where?", ("17", "n3")),
        ("Where, then?", ('a "b"\nc',)),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "x", "is not a .jsonl or .csv file"),
        ("a.jsonl", "", "contains no question"),
        ("a.jsonl", '{"question": "a"}\n{', "line 2, column 2: not JSON"),
        ("a.jsonl", "[1]", r"line 1, field \(itself\): expected an object"),
        ("a.jsonl", '{"question": 3}', "field question: expected text, found the number 3"),
        (
            "a.jsonl",
            '{"question": "a", "wantd": 3}',
            "wantd: unknown field. Did you mean wanted",
        ),
        (
            "a.jsonl",
            '{"question": "a", "wanted": [{}]}',
            "wanted: expected an id, a ref or a text of a memory, found an obj",
        ),
        ("a.jsonl", '{"question": "a", "wanted": true}', "found true"),
        ("a.jsonl", '{"question": "a", "at": "noon"}', '"noon" is not a time'),
        ("a.jsonl", "[" * 200_000, "nested too deeply"),
        ("a.jsonl", "9" * 5_000, "is not a file of questions"),
        (
            "a.csv",
            "question,wanted\na,1,2\n",
            "line 2: the row has more fields than the first line has names",
        ),
        ("a.csv", 'question,wanted\n"a,1\n', "not CSV"),
        ("a.csv", "frage,wanted\na,1\n", "frage: unknown field"),
    ],
)
def test_broken_files_of_questions_are_refused_with_their_place(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DatasetError, match=message):
        read_questions(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"question": "\xff"}')
    with pytest.raises(DatasetError, match="is not UTF-8 text"):
        read_questions(path)
