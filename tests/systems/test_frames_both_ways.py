"""Frames are what a person filters and changes: verbs take them, and a lab reads its own frame back."""

import json
from datetime import UTC, datetime

import polars as pl
import pytest

import memlab
from memlab.kernel.schema import MEMORY

pytestmark = pytest.mark.long

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock():
    return memlab.ManualClock(NOON)


@pytest.fixture
def lab(clock):
    with memlab.open(clock=clock) as opened:
        opened.remember(
            "Deploys go out on Tuesdays",
            kind="convention",
            tags=["ci"],
            importance=0.7,
            project="api",
        )
        clock.advance(days=2)
        opened.remember(
            "Ada prefers tea", kind="preference", scope="global", confidence=0.6, speaker="Ada"
        )
        opened.remember(
            "How we ship", kind="procedure", triggers=["ship it"], steps=["make", "make deploy"]
        )
        opened.facts.add("Ada", "lives_in", "Rome", confidence=0.95, at="2026-05-01")
        opened.graph.link(1, 3, "depends-on", weight=0.5)
        opened.feedback(opened.recall("tea")[0], "success")
        opened.forget(3)
        yield opened


def test_a_frame_as_it_is_changes_nothing(lab):
    events = lab.log.height
    assert lab.edit(lab.memories) == ()
    assert lab.log.height == events


def test_changed_values_are_written_back_in_one_transaction_or_not_at_all(lab):
    frame = lab.memories.with_columns(importance=pl.lit(0.9), tags=pl.lit(["a", "b"]))
    changed = lab.edit(frame)
    assert [memory.id for memory in changed] == [1, 2, 3, 4]
    assert lab.memories["importance"].to_list() == [0.9] * 4
    assert lab.memories["tags"].to_list() == [["a", "b"]] * 4
    before = lab.memories
    for column, value in {
        "access": 7.0,
        "status": "active",
        "created": NOON,
        "superseded_by": 2.0,
    }.items():
        with pytest.raises(memlab.InputError, match=column):
            lab.edit(
                lab.memories.with_columns(
                    pl.lit(0.2).alias("importance"), pl.lit(value).alias(column)
                )
            )
    with pytest.raises(memlab.InputError, match='no column "colour"'):
        lab.edit(lab.memories.with_columns(colour=pl.lit("red"), importance=pl.lit(0.1)))
    with pytest.raises(memlab.InputError, match="importance"):
        lab.edit(
            lab.memories.with_columns(
                importance=pl.when(pl.col("id") == 4).then(7.0).otherwise(0.3)
            )
        )
    assert lab.memories.equals(before)


def test_a_changed_text_goes_the_way_of_an_edited_one(lab):
    frame = lab.memories.filter(pl.col("id") == 1).select(
        "id", text=pl.lit("Deploys go out on Fridays")
    )
    (memory,) = lab.edit(frame)
    assert memory.text == "Deploys go out on Fridays"
    assert dict(lab.memories.select("id", "status").rows())[1] == "superseded"


def test_nothing_that_is_not_a_number_counts_as_a_change(lab):
    frame = lab.memories.with_columns(stability=pl.lit(float("nan")))
    assert lab.edit(frame) == ()


def test_forget_and_its_kin_take_a_frame(lab):
    chosen = lab.memories.filter(pl.col("kind") == "convention")
    assert lab.forget(chosen).ids == (1,)
    assert lab.restore(chosen).ids == (1,)
    hits = lab.recall("tea", log=False)
    assert lab.forget(hits.frame, how="delete").ids == tuple(hits.frame["memory_id"])
    with pytest.raises(memlab.InputError, match="id or memory_id"):
        lab.forget(chosen.drop("id"))


def test_a_loaded_frame_loses_no_column(lab, clock):
    clock.advance(days=30)
    with memlab.open(clock=clock) as other:
        loaded = other.load(lab.memories)
        assert loaded.count("added") == 4
        assert not loaded.left_out
        mine, theirs = lab.memories, other.memories
        for name in mine.columns:
            if name != "origin":
                assert mine[name].equals(theirs[name], null_equal=True), name
        assert other.load(lab.memories).count("known") == 4
        assert len(other) == 4


def with_lists_as_json(frame):
    """Return a frame that ``write_csv`` takes, because it refuses columns of lists."""
    lists = pl.col(pl.List(pl.String))
    return frame.with_columns(
        lists.map_elements(lambda own: json.dumps(own.to_list()), return_dtype=pl.String)
    )


@pytest.mark.parametrize("how", ["parquet", "parquet read", "csv", "csv read", "csv dates"])
def test_a_frame_from_a_file_loses_no_column(lab, clock, tmp_path, how):
    lab.edit(2, title='Tea, "green"', context="a\nb")
    lab.edit(1, text="Deploys go out on Fridays")
    mine, path = lab.memories, tmp_path / f"table.{how.split()[0]}"
    if path.suffix == ".parquet":
        mine.write_parquet(path)
    else:
        with_lists_as_json(mine).write_csv(path)
    source = {
        "parquet": path,
        "parquet read": pl.scan_parquet(tmp_path / "table.parquet"),
        "csv": str(path),
    }.get(how)
    if source is None:
        source = pl.read_csv(path, try_parse_dates=how == "csv dates", infer_schema_length=None)
    clock.advance(days=30)
    with memlab.open(clock=clock) as other:
        loaded = other.load(source)
        assert loaded.count("added") == mine.height
        assert not loaded.left_out
        for name in mine.columns:
            if name != "origin":
                assert mine[name].equals(other.memories[name], null_equal=True), name
        assert other.load(source).count("known") == mine.height


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("tags", "ci", "Row 1, column tags .*'ci'"),
        ("tags", "[" * 100_000, "Row 1, column tags"),
        ("tags", '["a"', "Row 1, column tags"),
        ("importance", "high", "Row 1, column importance .*'high'"),
        ("created", "yesterday", "Row 1, column created"),
        ("pinned", "maybe", "Row 1, column pinned"),
        ("id", "x", "Row 1, column id"),
        ("id", "1", "a different id in each row"),
        ("kind", "", "kind"),
    ],
)
def test_a_table_with_a_wrong_value_is_refused_whole(lab, tmp_path, column, value, message):
    texts = with_lists_as_json(lab.memories).cast(pl.String)
    path = tmp_path / "table.csv"
    rows = [at == 1 for at in range(texts.height)]
    texts.with_columns(
        pl.when(pl.Series(rows)).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    ).write_csv(path)
    with memlab.open() as other:
        with pytest.raises(memlab.MemlabError, match=message):
            other.load(path)
        assert not len(other)


def test_a_lab_knows_its_own_frame(lab):
    assert lab.load(lab.memories).count("known") == 4
    assert len(lab) == 4


def test_some_rows_and_columns_of_a_frame_are_loaded_with_defaults_for_the_others(lab, clock):
    frame = lab.memories.select("id", "text", "kind", "created", "importance").filter(
        pl.col("id") != 4
    )
    with memlab.open(clock=clock) as other:
        assert other.load(frame.lazy()).count("added") == 3
        assert other.memories["importance"].to_list() == lab.memories["importance"].to_list()[:3]
        assert other.memories["confidence"].to_list() == [MEMORY["confidence"].default] * 3
        with pytest.raises(memlab.InputError, match="a different id in each row"):
            other.load(pl.concat([frame, frame]))


def test_edges_are_written_from_a_frame(lab):
    lab.graph.link(
        pl.DataFrame({"source": [1, 2], "target": [2, 4], "relation": ["relates_to", "caused-by"]})
    )
    lab.graph.link(lab.edges.with_columns(weight=pl.lit(0.25)))
    between = lab.edges.filter(pl.col("to_kind") == "memory").select(
        "source", "target", "relation", "weight"
    )
    assert sorted(between.rows()) == [
        (1, 2, "relates-to", 0.25),
        (1, 3, "depends-on", 0.25),
        (2, 4, "caused-by", 0.25),
    ]
    tagged = lab.edges.filter(pl.col("to_kind") == "tag")
    assert tagged["weight"].to_list() == [1.0] * len(tagged)
    before = lab.edges
    for wrong in (
        {"source": [1, 1], "target": [2, 99]},
        {"source": [1, 1], "target": [2, 1]},
        {"source": [1], "target": [2], "weight": [7.0]},
        {"source": [1], "target": [2], "relation": ["no such"]},
        {"source": [1], "target": [2], "colour": ["red"]},
        {"source": [1]},
    ):
        with pytest.raises(memlab.InputError):
            lab.graph.link(pl.DataFrame(wrong))
    assert lab.edges.equals(before)


def test_a_lazy_scan_reads_the_columns_of_its_query_when_it_is_collected(lab):
    scan = lab.io.scan()
    query = scan.filter(pl.col("kind") == "preference").select("text", "importance")
    assert query.collect().rows() == [("Ada prefers tea", 0.5)]
    lab.edit(2, importance=0.9)
    assert query.collect().rows() == [("Ada prefers tea", 0.9)]
    assert scan.collect().equals(lab.memories)
    assert scan.head(2).collect().equals(lab.memories.head(2))
    assert lab.io.scan("edges").collect().equals(lab.edges)
    lab.remember("Bob's own", visibility="private", creator="agent:bob")
    assert lab.at(viewer="agent:ann").io.scan().select("id").collect().height == 4


def test_two_labs_that_went_apart_get_each_others_memories_once(clock, tmp_path):
    with (
        memlab.open(tmp_path / "a", clock=clock) as lab,
        memlab.open(tmp_path / "b", clock=clock) as other,
    ):
        lab.remember("Deploys go out on Tuesdays")
        other.load(lab.io.export(tmp_path / "a.jsonl"))
        lab.remember("The cellar floods in spring")
        other.remember("The roof was mended in May")
        other.edit(1, importance=1)
        for _ in range(2):
            lab.load(other.io.export(tmp_path / "b.jsonl", overwrite=True))
            other.load(lab.io.export(tmp_path / "a.jsonl", overwrite=True))
        assert sorted(lab.memories["text"]) == sorted(other.memories["text"])
        assert len(lab) == len(other) == 3
        # what was changed of a memory that both have stays where it was changed
        assert lab.memories["importance"][0] == 0.5
        assert other.memories["importance"][0] == 1.0
