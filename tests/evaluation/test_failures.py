"""Every wanted memory is assigned to one position in the pipeline: the stage that lost it."""

import json

import polars as pl
import pytest

import memlab
from memlab.errors import InputError
from memlab.science.evaluation import PLACES
from tests.displays import html_of

PACK = """(pack few "The default pack, two memories, a pool of four." :inherits memlab)
(setting limit 2) (setting pool 4) (setting dense-candidates 4) (setting lexical-candidates 4)
(defpolicy recall-score [importance] importance)
"""
HELD = [
    "tea with milk",
    "tea with lemon",
    "tea of herbs",
    "green tea",
    "the sea is cold",
    "a goat in the hills",
]


@pytest.fixture
def agent(trigrams, clock):
    with memlab.open(embedder=trigrams, clock=clock, pack=PACK) as lab:
        lab.remember(
            [
                {
                    "text": text,
                    "ref": f"t{n}",
                    "importance": 1 - n / 10,
                    "project": "api",
                    "session": "s",
                }
                for n, text in enumerate(HELD, 1)
            ]
        )
        yield lab


def ask_all(lab, clock, *questions):
    clock.advance(hours=1)
    return [lab.recall(question, project="api") for question in questions]


def wanted(*rows):
    return pl.DataFrame(rows, schema=["question", "ref"], orient="row")


def places(failures):
    return dict(zip(failures.rows["ref"], failures.rows["place"], strict=True))


@pytest.mark.long
def test_each_of_the_four_places(agent, clock):
    (hits,) = ask_all(agent, clock, "tea")
    head, pool = list(hits.ids), hits.slate.frame["memory_id"].to_list()
    low = next(id for id in pool if id not in head)
    away = next(id for id in range(1, 7) if id not in pool)
    agent.feedback(hits[0], "fail")
    labels = wanted(*((("tea", f"t{id}")) for id in (head[0], head[1], low, away)), ("tea", "t99"))
    failures = memlab.failures(agent, labels)
    assert places(failures) == {
        f"t{head[0]}": "shown and unused",
        f"t{head[1]}": "found",
        f"t{low}": "ranked out",
        f"t{away}": "not in the pool",
        "t99": "never stored",
    }
    assert failures.frame["count"].to_list() == [1, 1, 1, 1, 1]
    assert failures.frame["share"].sum() == pytest.approx(1)
    assert len(failures) == 4
    assert "4 of 5 wanted memories were lost" in repr(failures)
    row = failures.examples.filter(place="ranked out").row(0, named=True)
    assert (row["wanted"], row["pool"], row["question"]) == (HELD[low - 1], 4, "tea")
    assert row["rank"] > 2
    assert row["above"][:2] == [HELD[id - 1] for id in head]
    assert "Examples" in html_of(failures)
    json.dumps(failures.to_dict())


@pytest.mark.long
def test_shares_are_those_of_wanted_memories_with_intervals_by_cluster(agent, clock):
    hits = ask_all(agent, clock, "tea", "milk", "lemon", "herbs")
    labels = pl.DataFrame(
        [(hit.decision, id) for hit in hits for id in (hit.ids[0], 6)],
        schema=["decision", "memory_id"],
        orient="row",
    )
    failures = memlab.failures(agent, labels, cluster="decision")
    assert failures.shares["found"].value == pytest.approx(
        sum(p == "found" for p in failures.rows["place"]) / 8
    )
    assert failures.frame["low"].min() >= 0
    assert failures.frame["high"].max() <= 1
    assert "4 clusters (decision)" in failures.method


@pytest.mark.long
def test_nothing_known_is_counted_and_no_failure(agent, clock):
    ask_all(agent, clock, "tea", "who is Ada?", "milk")
    failures = memlab.failures(
        agent, pl.DataFrame({"question": ["tea", "who is Ada?"], "ref": ["t1", None]})
    )
    assert (failures.known, failures.unknown, failures.unlabelled) == (1, 1, 1)
    assert failures.rows.height == 1
    assert "1 with none known" in repr(failures)


@pytest.mark.long
def test_judged_labels_of_relevance_0_are_not_wanted(agent, clock):
    (hits,) = ask_all(agent, clock, "tea")
    labels = pl.DataFrame(
        {"decision": [hits.decision] * 2, "memory_id": [1, 2], "relevance": [1, 0]}
    )
    assert memlab.failures(agent, labels).rows["memory_id"].to_list() == [1]


@pytest.mark.long
def test_without_labels_a_success_is_what_was_wanted(trigrams, clock):
    pack = PACK + "(setting probe-rate 1) (setting probes 1)"
    with memlab.open(embedder=trigrams, clock=clock, pack=pack) as lab:
        lab.remember([{"text": text, "importance": 1 - n / 10} for n, text in enumerate(HELD)])
        (hits,) = [lab.recall("tea", explore=True)]
        for hit in hits:
            lab.feedback(hit, "success" if hit.probe or hit.id == hits.ids[0] else "fail")
        failures = memlab.failures(lab.slates())
        probe = next(hit.id for hit in hits if hit.probe)
        assert dict(failures.rows.select("memory_id", "place").iter_rows())[probe] == "ranked out"
        assert any("read from feedback" in note for note in failures.notes)


@pytest.mark.long
def test_a_ref_is_looked_for_in_the_project_of_the_recall(agent, clock):
    agent.remember("coffee is black", ref="t1", project="web")
    agent.remember("coffee is brown", ref="w2", project="web")
    ask_all(agent, clock, "tea with milk")
    failures = memlab.failures(agent, wanted(("tea with milk", "t1"), ("tea with milk", "w2")))
    assert failures.rows.filter(ref="t1")["memory_id"].to_list() == [1]
    assert places(failures)["w2"] == "never stored"


@pytest.mark.long
def test_a_memory_stored_after_the_query_counts_as_not_stored(agent, clock):
    ask_all(agent, clock, "coffee")
    clock.advance(days=1)
    agent.remember("coffee is black", ref="late", project="api")
    assert places(memlab.failures(agent, wanted(("coffee", "late")))) == {"late": "never stored"}


@pytest.mark.long
def test_a_forgotten_memory_is_reported_as_forgotten(agent, clock):
    agent.forget(1)
    ask_all(agent, clock, "tea with milk")
    row = memlab.failures(agent, wanted(("tea with milk", "t1"))).examples.row(0, named=True)
    assert (row["place"], row["status"]) == ("not in the pool", "forgotten")


@pytest.mark.long
def test_slates_alone_do_with_ids(agent, clock):
    (hits,) = ask_all(agent, clock, "tea")
    tables = agent.slates()
    log = memlab.Slates.from_frames(
        *(
            table.collect()
            for table in (tables.decisions, tables.candidates, tables.exposures, tables.feedback)
        )
    )
    labels = pl.DataFrame({"decision": [hits.decision] * 2, "memory_id": [hits.ids[0], 77]})
    failures = memlab.failures(log, labels)
    assert failures.rows["place"].to_list() == ["found", "not in the pool"]
    assert any("Without the lab" in note for note in failures.notes)
    with pytest.raises(InputError, match="and none was passed"):
        memlab.failures(log, wanted(("tea", "t1")))


@pytest.mark.long
def test_labels_that_say_nothing_are_refused(agent, clock):
    ask_all(agent, clock, "tea")
    with pytest.raises(InputError, match="no column decision or question"):
        memlab.failures(agent, pl.DataFrame({"ref": ["t1"]}))
    with pytest.raises(InputError, match="no column memory_id or ref"):
        memlab.failures(agent, pl.DataFrame({"question": ["tea"]}))
    with pytest.raises(InputError, match="matches a recall of the log"):
        memlab.failures(agent, wanted(("milk?", "t1")))
    with pytest.raises(InputError, match="No wanted memory is known"):
        memlab.failures(agent, wanted(("tea", None)))
    with pytest.raises(InputError, match="decision is String in the labels"):
        memlab.failures(agent, pl.DataFrame({"decision": ["tea"], "memory_id": [1]}))


def test_every_stage_has_a_description():
    assert list(PLACES) == ["never stored", "not in the pool", "ranked out", "shown and unused"]


@pytest.mark.long
def test_the_command(run, json_of, tmp_path):
    run("remember", "day.memlab", "tea with milk")
    run("recall", "day.memlab", "tea")
    (tmp_path / "labels.csv").write_text("question,memory_id\ntea,1\ntea,9\n")
    data = json_of("bench", "failures", "day.memlab", "--labels", "labels.csv")
    assert {row["place"]: row["count"] for row in data["places"]}["never stored"] == 1
    assert (
        "1 of 2 wanted memories were lost"
        in run("bench", "failures", "day.memlab", "--labels", "labels.csv").stdout
    )
    (tmp_path / "labels.txt").write_text("x")
    refused = run("bench", "failures", "day.memlab", "--labels", "labels.txt")
    assert "Give a .parquet, .csv or .jsonl file" in refused.stderr
