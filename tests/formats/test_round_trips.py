"""What is written reads back exactly, in every format, whatever the texts hold."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from labs import content, lived, lives
from properties import examples

import memlab
from memlab.errors import DatasetError, NewerLab
from memlab.io.formats import build_bundle, compute_lab_id, read_bundle
from memlab.kernel.embedding import load_embedder
from memlab.kernel.policies import POLICY_FORMAT

FORMATS = ["jsonl", "markdown", "sexp", "parquet", "folder"]
SUFFIX = {
    "jsonl": ".jsonl",
    "markdown": ".md",
    "sexp": ".sexp",
    "parquet": ".parquet",
    "folder": "",
}


def exported(lab, kind, folder, **more):
    return lab.io.export(
        Path(folder) / f"lab{SUFFIX[kind]}", format="parquet" if kind == "folder" else None, **more
    )


@pytest.mark.long
@pytest.mark.parametrize("kind", FORMATS)
@given(life=lives())
@examples(15, quick=4)
def test_an_export_reads_back_as_the_same_lab(kind, trigrams, life):
    clock = memlab.ManualClock("2026-03-01")
    with (
        lived(*life, embedder=trigrams, clock=clock) as lab,
        tempfile.TemporaryDirectory() as folder,
    ):
        path = exported(lab, kind, folder)
        clock.advance(days=3)
        with memlab.open(embedder=trigrams, clock=clock) as other:
            loaded = other.load(path)
            assert loaded.count("added") == len(lab)
            assert content(other) == content(lab)
            # The embedder saw the same texts, so a recall ranks the same.
            query = lab.memories["text"][0][:500]
            assert other.recall(query, log=False).ids == lab.recall(query, log=False).ids
            # A second import of the same adds nothing: no memory, no edge, no event.
            before = other.io.store.journal.head
            again = other.load(path)
            assert (again.count("known"), again.edges, len(other)) == (len(lab), 0, len(lab))
            assert other.io.store.journal.head == before


@pytest.mark.long
@pytest.mark.parametrize("kind", FORMATS)
@given(life=lives())
@examples(10, quick=4)
def test_a_bundle_is_what_was_written(kind, trigrams, life):
    """Without a lab in between: the tables of the file are those of the state."""
    clock = memlab.ManualClock("2026-03-01")
    with (
        lived(*life, embedder=trigrams, clock=clock) as lab,
        tempfile.TemporaryDirectory() as folder,
    ):
        path = exported(lab, kind, folder)
        read = read_bundle(path, "parquet" if kind == "folder" else kind)
        with lab.io.store.reading() as state:
            result = build_bundle(state, lab=compute_lab_id(lab.io.store.journal), now=clock())
        assert read.memories.equals(result.memories)
        assert read.edges.equals(result.edges)
        assert (read.lab, read.complete, read.exported) == (result.lab, True, clock())


@pytest.mark.long
@given(life=lives())
@examples(10, quick=4)
def test_another_labs_folder_is_read_without_its_embedder(trigrams, life):
    clock = memlab.ManualClock("2026-03-01")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.memlab"
        rows, change = life
        with memlab.open(path, embedder=trigrams, clock=clock) as lab:
            lab.remember(rows)
            with lab.io.store.writing() as tx:
                tx.event("edit", change.body(), at=clock())
            kept = content(lab)

        def counts(texts):
            return [[len(text), text.count("a") + 1.0, 1.0] for text in texts]

        other = load_embedder(counts)
        with memlab.open(embedder=other, clock=clock) as lab:
            lab.load(path)
            assert content(lab) == kept


@pytest.mark.long
@pytest.mark.parametrize("kind", FORMATS)
def test_the_pack_comes_along_when_it_is_wanted(kind, lab, tmp_path, trigrams, clock):
    lab.policies.use("associative", reason="a try")
    lab.policies.install(
        "recall-score",
        "(fn [similarity] (* (param :w 2 :low 0 :high 9) similarity))",
        params={"w": 3},
    )
    lab.remember("tabs")
    path = exported(lab, kind, tmp_path)
    with memlab.open(embedder=trigrams, clock=clock) as other:
        other.load(path)
        assert other.policies.pack.name == "memlab"
    with memlab.load(path, embedder=trigrams, clock=clock) as other:
        assert other.policies.pack.hash == lab.policies.pack.hash
        assert other.policies.history("recall-score")["reason"][-1].startswith("came with")
    history = read_bundle(path, "parquet" if kind == "folder" else kind).policies["history"]
    assert [entry["version"] for entry in history if entry["slot"] == "recall-score"] == [1, 2, 3]


@pytest.mark.long
def test_memories_left_out_of_an_export_take_their_edges_along(lab, tmp_path, trigrams, clock):
    import polars as pl

    lab.remember(
        [{"text": f"m{n}", "project": "a" if n < 3 else "b", "tags": [f"t{n}"]} for n in range(5)]
    )
    lab.graph.link(1, 2)
    lab.graph.link(2, 4)
    path = lab.io.export(tmp_path / "a.jsonl", project="a")
    with memlab.open(embedder=trigrams, clock=clock) as other:
        other.remember("it was here before")
        loaded = other.load(path)
        assert loaded.ids == (2, 3, 4)
        joined = other.edges.filter(pl.col("to_kind") == "memory")
        assert joined.select("source", "target").rows() == [(2, 3)]
        assert other.memories["text"].to_list() == ["it was here before", "m0", "m1", "m2"]
    path = lab.io.export(tmp_path / "b.jsonl", where=pl.col("tags").list.contains("t4"))
    with memlab.load(path, embedder=trigrams, clock=clock) as other:
        assert other.memories["text"].to_list() == ["m4"]


@pytest.mark.long
def test_memories_that_supersede_keep_their_places_among_others(lab, tmp_path, trigrams, clock):
    from memlab.kernel.state import Change, build_values

    lab.remember(["old", "new"])
    with lab.io.store.writing() as tx:
        body = Change(
            set=[build_values([1], status="superseded", superseded_by=2, changed=clock())]
        ).body()
        tx.event("edit", body, at=clock())
    path = lab.io.export(tmp_path / "a.sexp")
    with memlab.open(embedder=trigrams, clock=clock) as other:
        other.remember(["one", "two", "three"])
        other.load(path)
        assert other.memories["superseded_by"].to_list() == [None, None, None, 5.0, None]
        assert other[4].status == "superseded"


def test_instants_beyond_the_calendar_are_told_in_microseconds():
    from memlab.io.formats.records import format_time, parse_time

    for micros in (
        -(2**62),
        2**62,
        -1,
        0,
        253_402_300_799_999_999,
        253_402_300_800_000_000,
        -62_135_596_800_000_001,
    ):
        assert parse_time(format_time(micros)) == micros


@pytest.mark.long
def test_many_memories_are_several_events_of_one_transaction(
    lab, tmp_path, trigrams, clock, monkeypatch
):
    """Ids and edges run on across events."""
    monkeypatch.setattr("memlab.subjects.io.storing._CHUNK", 10)
    lab.remember([{"text": f"memory {n}", "session": "s"} for n in range(25)], chain=True)
    path = lab.io.export(tmp_path / "a.parquet")
    with memlab.open(embedder=trigrams, clock=clock) as other:
        loaded = other.load(path)
        assert (len(other), loaded.edges) == (25, 24)
        kinds = [event.kind for event in other.io.store.journal.events() if event.kind == "import"]
        assert len(kinds) == 4  # three of memories, one of edges
        assert other.memories["text"][24] == "memory 24"


@pytest.mark.long
def test_a_markdown_file_and_a_mirror_hold_neither_markup_nor_control_characters(lab, tmp_path):
    evil = "<script>alert(1)</script> <!-- \x1b]0;x\x07 \x9b \u202e -->"
    lab.remember(evil, tags=[f"tag {evil}"], title=evil, context=f"before: {evil}")
    lab.remember("if a < b && c: List[int] -> x", subject=evil, predicate="likes", value=evil)
    written = lab.io.export(tmp_path / "out.md").read_text()
    mirrored = "".join(
        page.read_text() for page in lab.io.mirror(tmp_path / "copy").folder.iterdir()
    )
    for told in (written, mirrored):
        assert "<s" not in told
        assert "<!" not in told
        assert not set(told) & set("\x1b\x07\x9b\u202e")
        assert "if a < b && c: List[int] -> x" in told  # code stays as it is
    assert content(
        memlab.load(tmp_path / "out.md", embedder=lab.io.embedder, clock=lab.io.store.clock)
    ) == content(lab)


@pytest.mark.long
def test_an_export_of_a_later_vocabulary_is_not_blamed_for_its_words(tmp_path):
    with memlab.open() as lab:
        lab.remember("tabs")
        path = lab.io.export(tmp_path / "later.jsonl")
    told = [json.loads(line) for line in path.read_text().splitlines()]
    policies = next(record["policies"] for record in told if "policies" in record)
    assert policies.pop("vocabulary") == POLICY_FORMAT
    policies["sources"] = ['(pack mine "Mine.") (setting dreams 1)']
    for number, error in (
        (None, DatasetError),
        (POLICY_FORMAT, DatasetError),
        (POLICY_FORMAT + 1, NewerLab),
    ):
        policies |= {} if number is None else {"vocabulary": number}
        path.write_text("".join(json.dumps(record) + "\n" for record in told))
        with memlab.open() as lab:
            with pytest.raises(error, match="dreams"):
                lab.load(path, policies=True)
            assert len(lab) == 0
            assert lab.load(path, policies=False).count("added") == 1


def test_a_later_memlab_numbers_the_vocabulary_of_its_exports(tmp_path, monkeypatch):
    monkeypatch.setattr("memlab.io.formats.lab_folder.POLICY_FORMAT", POLICY_FORMAT + 1)
    with memlab.open() as lab:
        lab.remember("tabs")
        path = lab.io.export(tmp_path / "later.jsonl")
    assert f'"vocabulary":{POLICY_FORMAT + 1}' in path.read_text()


@pytest.mark.parametrize(
    "text", ["(fn []\n (inherited))", "(fn [similarity] (boost\n similarity 1 2))"]
)
def test_an_export_with_words_of_vocabulary_3_says_so(tmp_path, text):
    with memlab.open() as lab:
        lab.policies.install("recall-score", text)
        path = lab.io.export(tmp_path / "new.jsonl")
    assert f'"vocabulary":{POLICY_FORMAT}' in path.read_text()
