"""An export of a person contains exactly what a purge of the person removes."""

import json
import random

import polars as pl
import pytest

import memlab
from memlab.errors import InputError, UnknownName
from memlab.kernel.slates import decode
from tests.campaigns.living.verbs import VERBS
from tests.campaigns.living.words import Words
from tests.embedders import letters

STEPS = 40
# Verbs that store, relate and ask. The others need files or end the life.
LIVED = (
    *(
        "remember",
        "remember_many",
        "hear",
        "fact",
        "retract",
        "entity",
        "merge_entities",
        "edit",
        "forget",
    ),
    *(
        "delete",
        "recall",
        "feedback",
        "conversation",
        "agent",
        "consolidate",
        "cluster",
        "purge",
        "turns",
    ),
)


def read_records(path, kind):
    lines = path.read_text(encoding="utf-8").splitlines()
    return [record[kind] for line in lines if kind in (record := json.loads(line))]


def queries_of(lab):
    slates = lab.io.store.journal.slates()
    return {seq: decode(blob, decision=seq).query for seq, blob in slates}


def live(seed, folder):
    dice = random.Random(f"person-{seed}")
    words, clock = Words(dice), memlab.ManualClock("2026-03-01")
    lab = memlab.open(folder / "lab.memlab", embedder=letters, clock=clock)
    for _ in range(STEPS):
        clock.advance(hours=dice.choice([0, 1, 30]))
        name = dice.choice(LIVED)
        try:
            VERBS[name][1](lab, dice, words, folder)
        except memlab.MemlabError:
            continue  # the lab refused a step of nonsense
    return lab, dice


def check_life(seed, folder):
    """Compare an export with the purge that follows it; return the names, or None if the lab names nobody."""
    lab, dice = live(seed, folder)
    frame = lab.memories
    people = [
        {column: name}
        for column in ("subject", "creator")
        for name in frame.filter(frame["status"] != "purged")[column].drop_nulls().unique().sort()
    ]
    if not people:
        lab.close()
        return None
    names = dice.choice(people)
    if dice.random() < 0.2:
        other = dice.choice(people)
        names = {**other, **names}
    target = folder / "person.jsonl"
    try:
        lab.io.export(target, **names)
    except UnknownName:
        with pytest.raises(UnknownName):
            lab.purge(**names)
        lab.close()
        return None
    before, texts = queries_of(lab), dict(frame.select("id", "text").iter_rows())
    purged = lab.purge(**names)
    exported = {row["id"]: row.get("text") for row in read_records(target, "memory")}
    assert sorted(exported) == sorted(purged.ids)
    assert exported == {id: texts[id] for id in purged.ids}
    after = queries_of(lab)
    emptied = {seq: query for seq, query in before.items() if query and not after[seq]}
    assert {row["decision"]: row["query"] for row in read_records(target, "query")} == emptied
    lab.close()
    return names


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_what_is_exported_is_what_a_purge_removes(seed, tmp_path):
    check_life(seed, tmp_path)


@pytest.mark.slow
def test_two_hundred_lives(tmp_path):
    done = []
    for seed in range(200):
        folder = tmp_path / str(seed)
        folder.mkdir()
        done.append(check_life(seed, folder))
    assert sum(names is not None for names in done) > 150


@pytest.fixture
def lab():
    lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
    lab.agents("ada").remember("Ada drinks green tea with lemon")
    lab.agents("bob").remember("Bob plays chess on Sundays")
    lab.facts.add("Ada", "lives-in", object="Oslo")
    return lab


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".md", ".sexp"])
def test_every_format_loads_again(lab, tmp_path, suffix):
    lab.agents("ada").recall("what do I drink?")
    path = lab.io.export(tmp_path / f"ada{suffix}", creator="agent:ada")
    again = memlab.load(path)
    assert again.memories["text"].to_list() == ["Ada drinks green tea with lemon"]
    assert "what do I drink?" in path.read_bytes().decode(errors="replace")


@pytest.mark.long
def test_a_viewer_gets_what_the_viewer_sees(lab, tmp_path):
    rows = read_records(lab.io.export(tmp_path / "bob.jsonl", viewer="agent:bob"), "memory")
    assert [row["text"] for row in rows] == ["Bob plays chess on Sundays", "Ada lives in Oslo"]


@pytest.mark.parametrize("more", [{"where": pl.col("id") > 0}, {"viewer": "agent:bob"}])
def test_a_person_is_exported_whole(lab, tmp_path, more):
    with pytest.raises(InputError, match="together with where= or viewer="):
        lab.io.export(tmp_path / "x.jsonl", subject="Ada", **more)
    assert not (tmp_path / "x.jsonl").exists()


def test_unknown_names_are_refused_and_nothing_is_written(lab, tmp_path):
    with pytest.raises(UnknownName, match="Eve"):
        lab.io.export(tmp_path / "x.jsonl", subject="Eve")
    assert list(tmp_path.iterdir()) == []
    assert lab.io.check().frame.height


@pytest.mark.long
def test_queries_of_sealed_recalls_are_exported(tmp_path):
    clock = memlab.ManualClock("2026-03-01")
    with memlab.open(tmp_path / "lab.memlab", embedder=letters, clock=clock) as lab:
        ana = lab.agents("ana")
        ana.remember("Ana drinks green tea with lemon")
        for number in range(8):
            clock.advance(minutes=1)
            ana.recall(f"which tea, part {number}?")
        lab.io.store.seal(every=4)
        path = lab.io.export(tmp_path / "ana.jsonl", creator="agent:ana")
    rows = read_records(path, "query")
    assert [row["query"] for row in rows] == [f"which tea, part {number}?" for number in range(8)]
    assert [row["at"][14:16] for row in rows] == [f"{minute:02}" for minute in range(1, 9)]
