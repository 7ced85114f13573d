"""``lab.edit(frame)``: one event for all values, which folds, hides, purges, moves and replays like other events."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.errors import InputError, PrivacyError
from memlab.kernel.verbs.projections import new_state
from tests.embedders import letters
from tests.properties import examples
from tests.test_declared_events import copy_of

TEXTS = ["The user prefers tabs", "Deploys go out on Tuesdays", "Ana lives in Rome", "Bob paints"]


def open_lab(path=None):
    lab = memlab.open(path, embedder=letters, clock=memlab.ManualClock("2026-06-01"))
    lab.remember([{"text": text, "project": "p"} for text in TEXTS])
    return lab


@pytest.fixture
def lab():
    with open_lab() as opened:
        yield opened


def kinds(lab, since):
    return lab.log.filter(pl.col("event") > since)["kind"].to_list()


def head(lab):
    return lab.io.store.journal.head


VALUES = {
    "importance": st.none() | st.floats(0, 1),
    "tags": st.lists(st.sampled_from(["a", "b", "c"]), max_size=2, unique=True),
    "kind": st.sampled_from(["fact", "event", "convention"]),
    "subject": st.none() | st.sampled_from(["Ana", "bob", "The Parser"]),
    "pinned": st.booleans(),
    "title": st.none() | st.sampled_from(["One", "Two"]),
}


@pytest.mark.long
@given(st.data())
@examples(60, 4)
def test_a_frame_does_what_an_edit_of_each_row_does_as_one_event(data):
    names = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, unique=True))
    rows = data.draw(st.lists(st.integers(1, 4), min_size=1, unique=True))
    drawn = {name: [data.draw(VALUES[name]) for _ in rows] for name in names}
    with open_lab() as lab, open_lab() as other:
        before, past = head(lab), lab.memories
        frame = pl.DataFrame(
            {"id": rows, **drawn}, schema={name: past.schema[name] for name in ("id", *names)}
        )
        changed = lab.edit(frame)
        assert kinds(lab, before) == ["edit-frame"] * bool(len(changed))
        for at, id in enumerate(rows):
            other.edit(id, **{name: drawn[name][at] for name in names})
        assert lab.memories.equals(other.memories)
        columns = ["source", "relation", "weight", "to_kind", "to"]
        assert (
            lab.edges.select(columns)
            .sort(columns)
            .equals(other.edges.select(columns).sort(columns))
        )
        assert lab.at(event=before).memories.equals(past)
        assert lab.edit(lab.memories) == ()
        # The fold of a prefix, written down, and the rest is that of all.
        journal = lab.io.store.journal
        whole = new_state()
        whole.fold(journal.events(), journal)
        for cut in range(before, journal.head + 1):
            parts = new_state()
            parts.fold(journal.events(upto=cut), journal)
            again = copy_of(parts)
            again.fold(journal.events(after=cut), journal)
            assert again.memories().equals(whole.memories())
            assert again.edge_frame().equals(whole.edge_frame())


@pytest.mark.long
def test_the_result_says_how_many_rows_changed(lab):
    frame = lab.memories.select("id", importance=pl.Series([0.5, 0.9, 0.5, 0.8]))
    changed = lab.edit(frame)
    assert repr(changed) == "<2 of 4 memories changed>"
    assert [memory.id for memory in changed] == [2, 4]
    before = head(lab)
    assert repr(lab.edit(frame)) == "<0 of 4 memories changed>"
    assert repr(lab.edit(frame.clear())) == "<0 of 0 memories changed>"
    assert head(lab) == before


@pytest.mark.long
def test_texts_follow_the_event_of_the_other_values(lab):
    before = head(lab)
    frame = lab.memories.with_columns(
        importance=pl.lit(0.9), text=pl.col("text").replace(TEXTS[0], "The user prefers spaces")
    )
    changed = lab.edit(frame)
    assert kinds(lab, before)[:2] == ["edit-frame", "remember"]
    assert [memory.id for memory in changed] == [5, 2, 3, 4]
    assert lab.memories.filter(status="active")["importance"].to_list() == [0.9] * 4


@pytest.mark.long
def test_two_versions_of_a_memory_are_one_memory(lab):
    lab.edit(1, text="The user prefers spaces")
    lab.edit(lab.memories.filter(pl.col("id").is_in([1, 5])).with_columns(importance=pl.lit(0.9)))
    assert lab.memories["importance"].to_list() == [0.5] * 4 + [0.9]


@pytest.mark.long
def test_the_event_is_hidden_purged_exported_and_replayed(tmp_path):
    with open_lab(tmp_path / "lab") as lab:
        lab.remember("Zebedee hides a zither", creator="bob", visibility="private")
        frame = lab.memories.select("id", importance=pl.lit(0.9), title=pl.lit("On a zither"))
        frame = frame.with_columns(
            title=pl.when(pl.col("id") == 5).then(pl.col("title")).otherwise(pl.lit("Plain"))
        )
        lab.edit(frame)
        seen = lab.at(viewer="ann")
        assert len(seen) == 4
        (event,) = seen.io.store.journal.events(kinds=("edit-frame",))
        assert event.body["memories"] == [1, 2, 3, 4]
        assert "zither" not in str(event.body)
        assert "zither" in str(next(lab.io.store.journal.events(kinds=("edit-frame",))).body)
        exported = seen.io.export(tmp_path / "seen.jsonl").read_text()
        assert "zither" not in exported
        copied = memlab.load(lab.io.export(tmp_path / "all.jsonl"), embedder=letters)
        assert copied.memories["title"].to_list() == lab.memories["title"].to_list()
        again = memlab.replay(lab, lab.policies.pack)
        assert again.lab.memories["title"].to_list() == lab.memories["title"].to_list()
        assert dict(again.frame.select("kind", "applied").rows())["edit-frame"] == 1
        lab.io.snapshot()
        found = lab.purge(5).found
        assert found.filter(~pl.col("where").str.contains("jsonl")).is_empty()
        lab.io.snapshot()
        (event,) = lab.io.store.journal.events(kinds=("edit-frame",))
        assert "zither" not in str(event.body)
    for file in (tmp_path / "lab").rglob("*"):
        assert not file.is_file() or b"zither" not in file.read_bytes()
    with memlab.open(tmp_path / "lab", embedder=letters) as lab:
        assert lab.memories["importance"].to_list()[:4] == [0.9] * 4


@pytest.mark.long
def test_an_injected_memory_may_be_injected_again(lab):
    first = lab.context("tabs", session="s").text
    assert "tabs" in first
    assert "tabs" not in lab.context("tabs", session="s").text
    lab.edit(lab.memories.select("id", title=pl.lit("Indentation")))
    assert "tabs" in lab.context("tabs", session="s").text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop("id"), "needs the column id"),
        (lambda frame: frame.with_columns(pl.col("id") + 2), "Row 2: .*memory"),
        (lambda frame: frame.with_columns(id=pl.lit(1)), "Row 1: memory 1 occurs twice"),
        (lambda frame: frame.with_columns(pl.col("id").cast(pl.Float64)), "Row 0, column id: 1.0"),
        (lambda frame: frame.with_columns(pl.col("id").cast(pl.String)), "Row 0, column id: '1'"),
        (lambda frame: frame.with_columns(id=pl.lit(None)), "Row 0, column id: None"),
        (
            lambda frame: frame.with_columns(
                importance=pl.when(pl.col("id") == 3).then(float("nan")).otherwise(0.9)
            ),
            "Row 2, column importance: NaN",
        ),
        (
            lambda frame: frame.with_columns(
                importance=pl.when(pl.col("id") == 3).then(7.0).otherwise(0.9)
            ),
            "Row 2 of the frame, memory 3: importance",
        ),
        (lambda frame: frame.with_columns(importance=pl.lit("high")), "Row 0 of the frame, memory"),
        (lambda frame: frame.with_columns(kind=pl.lit("factt")), "Did you mean fact"),
        (lambda frame: frame.with_columns(colour=pl.lit("red")), 'no column "colour"'),
        (lambda frame: frame.with_columns(created=pl.col("created").dt.offset_by("1d")), "created"),
        (lambda frame: frame.with_columns(status=pl.lit("forgotten")), "Row 0: status of memory 1"),
        (
            lambda frame: frame.with_columns(
                valid_from=pl.col("created"), valid_until=pl.col("created").dt.offset_by("-1d")
            ),
            "Row 0 of the frame",
        ),
        (lambda frame: frame.lazy(), "or a Polars DataFrame"),
        (lambda frame: frame.with_columns(text=pl.lit("")), "Row 0 of the frame, memory 1"),
    ],
)
def test_a_bad_frame_is_refused_whole(lab, change, message):
    before, memories = head(lab), lab.memories
    frame = memories.with_columns(importance=pl.lit(0.9))
    with pytest.raises(InputError, match=message):
        lab.edit(change(frame))
    assert head(lab) == before
    assert lab.memories.equals(memories)


@pytest.mark.long
def test_frames_of_another_lab_purged_rows_and_secrets_are_refused(lab):
    with open_lab() as other:
        other.io.store.clock.advance(days=3)
        other.remember("Something else")
        lab.remember("A fifth")
        before = lab.memories
        with pytest.raises(InputError, match="Row 4: created of memory 5"):
            lab.edit(other.memories.with_columns(importance=pl.lit(0.9)))
        lab.purge(2)
        purged = before.with_columns(importance=pl.lit(0.9))
        with pytest.raises(InputError, match="Row 1"):
            lab.edit(purged)
        secret = "ghp_" + "k3Jx9Qw2Zt7Lm4Vb8Nc1Rd6Hf5Gs0Ya3Pe9U"
        with pytest.raises(PrivacyError):
            lab.edit(lab.memories.filter(pl.col("id") != 2).with_columns(title=pl.lit(secret)))
        assert lab.memories["importance"].drop_nulls().unique().to_list() == [0.5]


def test_an_unchanged_frame_of_edges_writes_nothing(lab):
    lab.graph.link(1, 3, "depends-on", weight=0.5)
    before = head(lab)
    lab.graph.link(lab.edges)
    assert head(lab) == before
    lab.graph.link(lab.edges.with_columns(weight=pl.lit(0.25)))
    assert head(lab) == before + 1
    assert lab.edges.filter(pl.col("relation") == "depends-on")["weight"].to_list() == [0.25]


@pytest.mark.long
def test_verbs_take_a_frame_of_memories(lab):
    lab.recall("tabs", limit=4)
    frame = lab.memories.filter(pl.col("id") < 3)
    assert [own.memory for own in lab.feedback(frame, "success")] == [1, 2]
    hits = lab.recall("tabs")
    assert len(lab.feedback(hits.frame, rating=2)) == len(hits)
    assert len(lab.feedback([1, hits[0]], reward=0.5)) == 2
    assert lab.questions.add("what?", wants=frame)["wants"].to_list() == [[1, 2]]
    assert lab.graph.tag(frame, "x") == (1, 2)
    for person in ("Ana", "Bob"):
        lab.facts.add(person, "lives-in", object="Rome")
    facts = lab.memories.filter(pl.col("kind") == "fact", pl.col("subject").is_not_null())
    lab.facts.retract(facts, reason="a test")
    assert lab.facts.frame()["status"].unique().to_list() == ["retracted"]


@pytest.mark.parametrize(
    "frame",
    [
        {"id": [1, 99]},
        {"id": [1, None]},
        {"id": [1.0, 2.0]},
        {"id": ["1", "2"]},
        {"memory": [1, 2]},
        {"id": [1, 0]},
    ],
)
def test_verbs_refuse_a_bad_frame_whole(lab, frame):
    lab.recall("tabs", limit=4)
    before = head(lab)
    frame = pl.DataFrame(frame)
    calls = (
        lambda chosen: lab.feedback(chosen, "success"),
        lambda chosen: lab.graph.tag(chosen, "x"),
        lambda chosen: lab.forget(chosen),
        lambda chosen: lab.forget(chosen, how="delete"),
        lambda chosen: lab.restore(chosen),
        lambda chosen: lab.purge(chosen),
        lambda chosen: lab.facts.retract(chosen),
        lambda chosen: lab.questions.add("what?", wants=chosen),
    )
    for call in calls:
        for chosen in (frame, frame.lazy()):
            with pytest.raises(InputError):
                call(chosen)
    assert head(lab) == before
