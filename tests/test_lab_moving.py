"""A lab's own verbs for moving: what they keep, and that they are part of its history."""

import pytest

import memlab
from memlab.errors import PrivacyError, ReadOnlyLab
from tests.displays import html_of

pytestmark = pytest.mark.long


def test_a_lab_that_was_imported_goes_on_living(disk, tmp_path, trigrams, clock):
    with memlab.open(embedder=trigrams, clock=clock) as source:
        source.remember(
            [{"text": "one", "session": "s"}, {"text": "two", "session": "s"}], chain=True
        )
        source.feedback(source.recall("one")[0], "success")
        path = source.io.export(tmp_path / "a.jsonl")
    with disk() as lab:
        lab.load(path)
        lab.remember("three", session="s", chain=True)
        assert lab.edges.select("source", "target", "relation").rows() == [
            (1, 2, "next"),
            (2, 3, "next"),
        ]
        before = (lab.memories, lab.edges)
    with disk() as lab:
        # Folded again from the journal, and then from a snapshot.
        assert lab.memories.equals(before[0])
        assert lab.edges.equals(before[1])
        lab.io.snapshot()
    with disk() as lab:
        assert lab.memories.equals(before[0])
        assert lab.edges.equals(before[1])


def test_two_labs_of_one_instant_are_not_taken_for_one(tmp_path, trigrams):
    """Their journals begin alike, so they share a name; texts tell the memories apart."""

    def fresh(text):
        lab = memlab.open(embedder=trigrams, clock=memlab.ManualClock("2026-01-01"))
        lab.remember(text)
        return lab

    first, second, third = fresh("one"), fresh("two"), fresh("three")
    third.load(first.io.export(tmp_path / "a.jsonl"))
    third.load(second.io.export(tmp_path / "b.jsonl"))
    assert third.memories["text"].to_list() == ["three", "one", "two"]
    assert third.load(tmp_path / "a.jsonl").count("known") == 1


def test_a_memory_keeps_its_first_origin_through_several_labs(lab, tmp_path, trigrams):
    def hop(path, name):
        other = memlab.open(embedder=trigrams, clock=memlab.ManualClock(f"2026-0{len(name)}-01"))
        other.load(path)
        return other, other.io.export(tmp_path / f"{name}.md")

    lab.remember("tabs")
    one, path = hop(lab.io.export(tmp_path / "x.jsonl"), "a")
    two, path = hop(path, "bb")
    assert two.memories["origin"].to_list() == one.memories["origin"].to_list()
    # It comes home, and is known.
    assert lab.load(path).count("known") == 1


def test_a_project_may_be_given_to_all(lab, tmp_path, trigrams, clock):
    lab.remember("tabs", project="old")
    path = lab.io.export(tmp_path / "a.jsonl")
    with memlab.open(embedder=trigrams, clock=clock) as other:
        other.load(path, project="new")
        assert other[1].project == "new"
        with pytest.raises(memlab.MemlabError):
            other.load(lab.io.export(tmp_path / "b.jsonl"), project="")
        secret = "ghp_" + "a1" * 20
        with pytest.raises(PrivacyError):
            other.load(tmp_path / "b.jsonl", project=secret)


def test_a_lab_that_may_not_be_written_exports_and_does_not_load(disk, tmp_path):
    with disk() as lab:
        lab.remember("tabs")
    with disk(read_only=True) as lab:
        path = lab.io.export(tmp_path / "a.jsonl")
        with pytest.raises(ReadOnlyLab):
            lab.load(path)
        with pytest.raises(ReadOnlyLab):
            lab.upkeep.operations.run('(remember "x")')


def test_the_load_report_renders(lab, tmp_path, trigrams, clock):
    lab.remember("<b>tabs</b>")
    path = lab.io.export(tmp_path / "<i>.jsonl")
    with memlab.open(embedder=trigrams, clock=clock) as other:
        loaded = other.load(path)
    assert loaded.text().splitlines() == [
        "1 memory and 0 edges from <i>.jsonl",
        "",
        "time  2026-03-01 12:00 to 2026-03-01 12:00 UTC",
        "Next: lab.questions.propose()",
    ]
    assert "&lt;i&gt;" in html_of(loaded)
    assert loaded.frame.columns == ["theirs", "id", "what", "origin"]
    assert loaded.ids == (1,)


def test_an_export_of_an_empty_lab(lab, tmp_path, trigrams, clock):
    for name in ("a.jsonl", "a.md", "a.sexp", "a.parquet"):
        path = lab.io.export(tmp_path / name)
        with memlab.load(path, embedder=trigrams, clock=clock) as other:
            assert len(other) == 0


def test_tags_beyond_counting(lab, tmp_path, trigrams, clock):
    lab.remember("x", tags=[f"tag {n}" for n in range(4_000)])
    lab.remember("y" * 200_000)
    path = lab.io.export(tmp_path / "a.md")
    with memlab.load(path, embedder=trigrams, clock=clock) as other:
        assert other.edges.drop("edge").equals(lab.edges.drop("edge"))
        assert len(other[2].text) == 200_000


def test_an_import_and_a_run_stand_in_the_log(lab, tmp_path, trigrams, clock):
    lab.remember(["one", "two"])
    path = lab.io.export(tmp_path / "a.jsonl")
    with memlab.open(embedder=trigrams, clock=clock) as other:
        other.load(path)
        other.upkeep.operations.run("(get-policy)")
        rows = other.log.filter(other.log["kind"].is_in(["import", "run"]))
        assert rows.select("kind", "memories").rows() == [("import", [1, 2]), ("run", [])]
