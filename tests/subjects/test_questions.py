"""``lab.questions``: questions added, refused, kept, moved and removed with their memories."""

import json
from pathlib import Path

import polars as pl
import pytest

import memlab
from memlab.errors import InputError, MemlabError, ReadOnlyLab, UnknownName
from memlab.io.ingest import Conversation, LabelledConversation, Question, Turn

TEXTS = ["The user prefers tabs", "Deploys go out on Tuesdays", "Ana lives in Rome"]


@pytest.fixture
def lab():
    with memlab.open() as lab:
        lab.remember(
            [{"text": text, "ref": f"ref-{n}", "project": "p"} for n, text in enumerate(TEXTS, 1)]
        )
        yield lab


def queries(lab) -> list[str]:
    return lab.questions.frame["query"].to_list()


def head(lab) -> int:
    return lab.io.store.journal.head


class TestAdd:
    @pytest.mark.long
    def test_ids_refs_and_texts_name_memories(self, lab):
        added = lab.questions.add("what do you know?", wants=[1, "ref-2", TEXTS[2], lab[1], "2"])
        assert added["wants"].to_list() == [[1, 2, 3]]
        assert added["source"].to_list() == ["hand"]

    @pytest.mark.long
    def test_one_name_is_enough(self, lab):
        assert lab.questions.add("tabs?", wants="ref-1")["wants"].to_list() == [[1]]
        assert lab.questions.add("deploy?", wants=lab[2])["wants"].to_list() == [[2]]

    @pytest.mark.long
    def test_a_name_is_looked_up_in_the_project(self, lab):
        lab.remember({"text": TEXTS[0], "ref": "ref-1", "project": "q"} for _ in range(1))
        assert lab.questions.add("a?", wants="ref-1", project="q")["wants"].to_list() == [[4]]
        assert lab.questions.add("b?", wants="ref-1")["wants"].to_list() == [[1, 4]]

    @pytest.mark.long
    @pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
    def test_files(self, lab, tmp_path, suffix):
        path = tmp_path / f"own.{suffix}"
        rows = [
            {"query": "tabs?", "wants": ["1", "ref-2"], "project": "p", "at": "2026-01-02"},
            {"query": "where is Ana?", "wants": [TEXTS[2]], "project": None, "at": None},
        ]
        frame = pl.DataFrame(rows)
        if suffix == "csv":
            frame.with_columns(
                pl.Series("wants", [json.dumps(row["wants"]) for row in rows])
            ).write_csv(path)
        elif suffix == "jsonl":
            frame.write_ndjson(path)
        else:
            frame.write_parquet(path)
        added = lab.questions.add(str(path))
        assert added["wants"].to_list() == [[1, 2], [3]]
        assert added["project"].to_list() == ["p", None]
        assert added["at"].dt.to_string("%Y-%m-%d").to_list() == ["2026-01-02", None]
        assert lab.questions.add(Path(path)).height == 2
        assert len(lab.questions) == 2

    @pytest.mark.long
    def test_files_of_bench(self, lab, tmp_path):
        path = tmp_path / "own.csv"
        path.write_text("question,wanted\ntabs?,1\n", encoding="utf-8")
        assert lab.questions.add(path)["wants"].to_list() == [[1]]
        assert lab.questions.add(memlab.ingest.read_questions(path)).height == 1
        assert len(lab.questions) == 1

    @pytest.mark.long
    def test_a_frame_of_questions_can_be_added_again(self, lab):
        lab.questions.add("tabs?", wants=1, category="style")
        lab.questions.propose()
        saved = lab.questions.frame
        lab.questions.remove(saved)
        assert lab.questions.add(saved).drop("id", "source").equals(saved.drop("id", "source"))

    def test_labelled_conversations(self):
        turns = tuple(
            Turn(ref, "Ana", text, "s", memlab.kernel.base.clock.from_micros(0))
            for ref, text in (("D1", "I have a cat"), ("D2", "I have a boat"))
        )
        source = Conversation("chat", turns)
        asked = (
            Question("which pet?", 1, ("D1",)),
            Question("a boat, in no place?", 5, ("D2",)),
            Question("without evidence?", 1, ()),
        )
        with memlab.open() as lab:
            lab.remember(source.rows(project="chat"))
            added = lab.questions.add([LabelledConversation(source, asked)])
            assert added.select("query", "wants", "project", "source").rows() == [
                ("which pet?", [1], "chat", "benchmark")
            ]

    def test_secrets_are_redacted_as_in_a_recall(self, lab):
        lab.questions.add("my password is 'hunter2hunter', which tabs?", wants=1)
        assert "hunter2" not in queries(lab)[0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"query": "a?", "wants": 1}, {"query": "b?", "wants": 9}], "Row 2 wants"),
        ([{"query": "b?", "wants": "ref-9"}], "Did you mean ref-"),
        ([{"query": "b?", "wants": "ref-1", "project": "q"}], "in project q"),
        ([{"query": "b?", "wants": []}], "Row 1 wants no memory"),
        ([{"query": "b?", "wants": 0}], "Row 1 wants"),
        ([{"query": "b?", "wants": True}], "Row 1: True in wants"),
        ([{"query": "b?", "wants": 1.0}], "Row 1: 1.0 in wants"),
        ([{"query": "  ", "wants": 1}], "Row 1 has no query"),
        ([{"wants": 1}], "Row 1 has no query"),
        ([{"query": "b?", "wnats": 1}], "Did you mean wants"),
        ([{"query": "b?", "wants": 1, "at": "noon"}], "at must be a time"),
        ([{"query": "b?", "wants": 1, "project": 3}], "project must be a text"),
        ([{"query": "a?", "wants": 1}, {"query": "a? ", "wants": 2}], "Row 1 wants"),
        ([{"query": "known?", "wants": 2}], "The lab wants"),
        ([3], "Row 1 must be a dict with query and wants, not 3"),
        (3, "Questions come from"),
        ("questions.txt", "is not a file of questions"),
        ("missing.csv", "cannot be read"),
    ],
)
def test_bad_rows_are_refused_whole(lab, rows, message):
    lab.questions.add("known?", wants=1)
    before, frame = head(lab), lab.questions.frame
    with pytest.raises(InputError) as error:
        lab.questions.add(rows)
    assert message in str(error.value)
    assert head(lab) == before
    assert lab.questions.frame.equals(frame)


def test_a_purged_memory_cannot_be_wanted(lab):
    lab.purge(1, reason="on request")
    with pytest.raises(InputError, match="memory 1 was purged"):
        lab.questions.add("tabs?", wants=1)


def test_numbers_of_questions_are_checked(lab):
    lab.questions.add("tabs?", wants=1)
    for bad in (9, [1, 9], True, pl.DataFrame({"id": ["1"]}), ["1"]):
        with pytest.raises((UnknownName, InputError)):
            lab.questions.remove(bad)
    assert len(lab.questions) == 1


class TestPropose:
    @pytest.mark.long
    def test_a_statement_of_two_memories_is_left_out(self, lab):
        lab.remember("Ana lives in Rome", project="q")
        assert lab.questions.propose()["query"].to_list() == ["What does the user prefer?"]

    @pytest.mark.long
    def test_proposals_count_only_when_accepted(self, lab):
        proposed = lab.questions.propose()
        assert proposed["wants"].to_list() == [[1], [3]]
        assert len(lab.questions) == 0
        with pytest.raises(InputError, match="no accepted question"):
            lab.score()
        lab.questions.accept(proposed["id"].to_list()[:1])
        assert lab.score().ranks["query"].to_list() == ["What does the user prefer?"]

    @pytest.mark.long
    def test_a_proposal_stays_one_when_its_row_is_added_again(self, lab):
        proposed = lab.questions.propose()
        again = lab.questions.add(lab.questions.frame)
        assert again.equals(proposed)
        assert not len(lab.questions)
        added = lab.questions.add(proposed[0].with_columns(accepted=True))
        assert added["accepted"].to_list() == [True]
        assert lab.questions.add(proposed[1]["query"].item(), wants=3, project="p").height == 1
        assert len(lab.questions) == 2
        lab.questions.add(proposed)
        assert len(lab.questions) == 2

    @pytest.mark.long
    def test_feedback_accepts_no_proposal(self, lab):
        query = lab.questions.propose()["query"][0]
        lab.feedback(lab.recall(query, project="p")[0], "success")
        assert lab.questions.infer().is_empty()
        assert lab.questions.frame["accepted"].to_list() == [False] * lab.questions.frame.height

    @pytest.mark.long
    def test_nothing_is_proposed_twice(self, lab):
        first = lab.questions.propose(1)
        again = lab.questions.propose(9)
        assert first.height == again.height == 1
        assert lab.questions.propose().is_empty()

    @pytest.mark.long
    def test_a_removed_proposal_does_not_come_back(self, tmp_path):
        with memlab.open(tmp_path / "lab") as lab:
            lab.remember(
                [
                    {"text": "Ana lives in Rome"},
                    {"text": "We walked past the old harbour.", "speaker": "Ana"},
                ]
            )
            proposed = lab.questions.propose()
            assert proposed.height == 2
            lab.questions.remove(proposed)
            assert lab.questions.propose().is_empty()
        with memlab.open(tmp_path / "lab") as lab:
            assert lab.questions.propose().is_empty()
            # Another memory with the same question may be the right answer.
            lab.forget(1)
            lab.remember("Ana lives in Oslo")
            assert lab.questions.propose().select("query", "wants").rows() == [
                ("Where does Ana live?", [3])
            ]

    @pytest.mark.long
    def test_a_purge_of_a_rejected_memory_leaves_proposals_working(self):
        with memlab.open() as lab:
            lab.remember(["Ana lives in Rome", "Ben lives in Oslo"])
            lab.questions.remove(lab.questions.propose())
            lab.purge([1])
            assert lab.questions.propose().is_empty()

    def test_the_speaker_is_the_subject(self):
        with memlab.open() as lab:
            lab.remember("I live in Bergen", speaker="Emi")
            assert lab.questions.propose()["query"].to_list() == ["Where does Emi live?"]

    @pytest.mark.long
    def test_a_message_is_asked_for_by_a_phrase_of_its_own(self):
        with memlab.open() as lab:
            lab.remember(
                [
                    {"text": "We saw the old harbour, and more", "speaker": "Emi"},
                    {"text": "I miss the pottery class in town", "speaker": "Ana"},
                    {"text": "Is the pottery class on today?", "speaker": "Emi"},
                    {"text": "See the long answer.", "speaker": "assistant"},
                ]
            )
            proposed = lab.questions.propose()
            assert proposed.select("query", "wants").rows() == [
                ("What did Emi say about the old harbour?", [1])
            ]
            assert lab.questions.propose().is_empty()

    @pytest.mark.parametrize(
        "text",
        [
            "The fam's small, you know.",
            "We took the long way, and sang.",
            "How's the store going?",
            "I saw the banker yesterday.",
            "What a great chance!",
            "Look: [image: a photo of the notepad stand, in blue]",
        ],
    )
    def test_clauses_opinions_and_captions_are_no_phrases(self, text):
        with memlab.open() as lab:
            lab.remember(text, speaker="Emi")
            assert lab.questions.propose().is_empty()

    @pytest.mark.parametrize(
        ("predicate", "query"),
        [
            ("wants-to", "What does Ana want to do?"),
            ("colleague", "Who is Ana's colleague?"),
            ("dog", "What is Ana's dog?"),
        ],
    )
    def test_people_and_plans_are_asked_for_in_english(self, predicate, query):
        with memlab.open() as lab:
            fact = {"subject": "Ana", "predicate": predicate, "object": "x"}
            lab.remember([{"text": "A note", **fact}])
            assert lab.questions.propose()["query"].to_list() == [query]

    def test_a_private_memory_is_asked_by_its_creator(self):
        with memlab.open() as lab:
            lab.remember("Ana lives in Rome", creator="agent:a", visibility="private")
            assert lab.questions.propose()["viewer"].to_list() == ["agent:a"]


class TestInfer:
    @pytest.mark.long
    def test_memories_that_helped_are_wanted(self, lab):
        for outcome in ("success", "success", "fail"):
            lab.feedback(lab.recall("tabs or spaces?", project="p")[0], outcome)
        lab.feedback(lab.recall("what about Ana?")[0], "fail")
        added = lab.questions.infer()
        assert added.select("query", "wants", "project", "source").rows() == [
            ("tabs or spaces?", [1], "p", "feedback")
        ]
        assert lab.questions.infer().is_empty()
        assert len(lab.questions) == 1
        lab.feedback(lab.recall("where does Ana live?")[0], "success")
        assert lab.questions.infer()["query"].to_list() == ["where does Ana live?"]

    @pytest.mark.long
    def test_a_question_by_hand_is_kept(self, lab):
        lab.feedback(lab.recall("tabs or spaces?")[0], "success")
        lab.questions.add("tabs or spaces?", wants=2)
        lab.questions.infer()
        assert lab.questions.frame["wants"].to_list() == [[2]]

    def test_an_empty_log_gives_none(self, lab):
        assert lab.questions.infer().is_empty()


@pytest.mark.long
class TestHistory:
    def test_each_change_is_an_event(self, lab):
        lab.questions.add("tabs?", wants=1)
        first = head(lab)
        lab.questions.accept(lab.questions.propose())
        lab.questions.remove(1)
        assert queries(lab.at(event=first)) == ["tabs?"]
        assert "tabs?" not in queries(lab)
        kinds = lab.log["kind"].to_list()
        assert kinds[-4:] == ["question", "question", "accept-question", "remove-question"]
        with pytest.raises(ReadOnlyLab):
            lab.at(event=first).questions.add("deploy?", wants=2)

    def test_a_lab_on_disk_keeps_them(self, tmp_path):
        with memlab.open(tmp_path / "lab") as lab:
            lab.remember(TEXTS)
            lab.questions.add("tabs?", wants=1, viewer="agent:a", at="2026-01-02")
            lab.questions.propose()
            lab.questions.remove(2)
            frame = lab.questions.frame
        with memlab.open(tmp_path / "lab") as lab:
            assert lab.questions.frame.equals(frame)
            assert lab.questions.add("deploy?", wants=2)["id"].to_list() == [4]

    def test_an_export_without_questions_is_what_earlier_versions_read(self, lab, tmp_path):
        lab.io.export(tmp_path / "bundle.jsonl")
        assert '"questions"' not in (tmp_path / "bundle.jsonl").read_text(encoding="utf-8")

    def test_an_export_carries_them(self, lab, tmp_path):
        lab.questions.add("tabs?", wants=1)
        lab.questions.propose()
        lab.io.export(tmp_path / "bundle.jsonl")
        assert '"questions"' in (tmp_path / "bundle.jsonl").read_text(encoding="utf-8")
        with memlab.open() as other:
            assert "questions" in other.load(tmp_path / "bundle.jsonl").registers
            assert other.questions.frame.equals(lab.questions.frame)


class TestPrivacy:
    @pytest.mark.long
    def test_another_viewer_does_not_see_them(self, lab):
        lab.remember("Eve keeps a ferret", creator="agent:a", visibility="private")
        lab.questions.add("does Eve have a pet?", wants=[4])
        lab.questions.add("whose tabs?", wants=1, viewer="agent:a")
        lab.questions.add("tabs?", wants=1)
        assert queries(lab.at(viewer="agent:a")) == queries(lab)
        assert queries(lab.at(viewer="agent:b")) == ["tabs?"]
        log = lab.at(viewer="agent:b").log
        assert "ferret" not in str(log.to_dicts())
        assert "pet" not in str(log.to_dicts())

    def test_a_viewer_cannot_want_what_it_does_not_see(self, lab):
        lab.remember("Eve keeps a ferret", creator="agent:a", visibility="private")
        with pytest.raises(InputError, match="wants"):
            lab.questions.add("a pet?", wants=4, viewer="agent:b")
        assert lab.questions.add("a pet?", wants=4, viewer="agent:a").height == 1

    @pytest.mark.long
    @pytest.mark.parametrize("imported", [False, True])
    def test_a_purge_removes_questions_from_every_byte(self, tmp_path, imported):
        folder = tmp_path / "lab"
        with memlab.open(folder) as lab:
            lab.remember([*TEXTS, "Zorblax keeps a ferret called Quuxine in the shed"])
            lab.questions.add(
                [
                    {"query": "is there a wildebeest?", "wants": [1, 4], "category": "gnucategory"},
                    {"query": "who is Quuxine in the shed?", "wants": [2]},
                    {"query": "tabs?", "wants": [1]},
                ]
            )
            if imported:
                lab.io.export(tmp_path / "bundle.jsonl")
                folder = tmp_path / "other"
        with memlab.open(folder) as lab:
            if imported:
                lab.load(tmp_path / "bundle.jsonl")
            assert len(lab.questions) == 3
            lab.purge(4, reason="on request")
            assert queries(lab) == ["tabs?"]
        held = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        assert b"tabs?" in held
        for gone in (b"wildebeest", b"Quuxine", b"gnucategory"):
            assert gone not in held
        with memlab.open(folder) as lab:
            assert queries(lab) == ["tabs?"]
            assert lab.io.check().sound

    @pytest.mark.long
    def test_a_purge_of_a_project_removes_its_questions(self, lab):
        lab.remember("Bob has a boat", project="q")
        lab.questions.add("a boat, in q?", wants="Bob has a boat", project="q")
        lab.purge(project="q", reason="on request")
        assert queries(lab) == []


def test_a_refusal_in_a_write_leaves_the_lab_as_it_was(lab):
    with pytest.raises(MemlabError):
        lab.questions.add("tabs?", wants=1, category="password='hunter2hunter'")
    assert len(lab.questions) == 0
    assert lab.questions.add("tabs?", wants=1)["id"].to_list() == [1]


@pytest.mark.long
def test_a_text_of_digits_is_a_ref_before_it_is_an_id():
    lab = memlab.open()
    rows = [{"text": f"The box {n} is on shelf {n}.", "ref": str(n)} for n in range(4)]
    lab.remember(rows)
    lab.questions.add("box two?", wants=["2"])
    lab.questions.add("box one?", wants=[2])
    lab.questions.add("box three?", wants=["4"])
    assert lab.questions.frame["wants"].to_list() == [[3], [2], [4]]
