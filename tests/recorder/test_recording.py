"""Recorded searches: the results that are shown, the log, and the effects of a faulty search."""

import asyncio
import contextlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import memlab
from memlab.errors import DatasetError, InputError, NotALab, UnknownName
from memlab.kernel.journal import Journal
from memlab.ui.cli import main

TEXTS = [f"Note {number} about the deploy of team {number % 7}" for number in range(40)]


def results(k, start=0):
    return [
        {"id": f"m{number}", "score": 1 - number / 100, "memory": TEXTS[number]}
        for number in range(start, min(start + k, 40))
    ]


def search(query, k):
    return results(k)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "searches"


def tables(recorder):
    slates = recorder.slates()
    return [
        getattr(slates, name).collect()
        for name in ("decisions", "candidates", "exposures", "feedback")
    ]


@pytest.mark.long
def test_a_recorded_log_is_not_opened_as_a_lab(log):
    recorded = memlab.record(search, log=log)
    recorded("a query")
    for read_only in (True, False):
        with pytest.raises(
            NotALab, match=r"not a lab, for example a log of memlab\.record.*read_record"
        ):
            memlab.open(log, read_only=read_only)
    recorded("another query")
    assert recorded.slates().decisions.collect().height == 2


# -- what is shown, and with which probability


@pytest.mark.long
def test_ten_results_and_one_probe_below_the_first_are_shown(log):
    recorded = memlab.record(search, log=log)
    for number in range(200):
        hits = recorded(f"query {number}")
        assert hits[0] == results(1)[0]
        assert len(hits) == 11
        assert [hit for hit in hits if int(hit["id"][1:]) < 10] == results(10)
    decisions, candidates, exposures, _ = tables(recorded)
    assert decisions["sampler"].unique().to_list() == ["probe"]
    assert candidates.height == 200 * 20
    expected = pl.when(pl.col("rank") <= 10).then(1.0).otherwise(0.1)
    assert candidates.select((pl.col("propensity") - expected).abs().max()).item() < 1e-12
    assert exposures.group_by("decision").agg(pl.col("probe").sum())[
        "probe"
    ].unique().to_list() == [1]
    assert exposures.filter("probe")["position"].min() > 1
    drawn = exposures.filter("probe")["memory_id"].value_counts()
    assert drawn.height == 10
    assert drawn["count"].max() < 45


@pytest.mark.long
@pytest.mark.parametrize(("probes", "pool"), [(1, 6), (2, 9), (3, 15), (5, 10)])
def test_the_logged_probability_is_the_share_of_draws(log, probes, pool):
    recorded = memlab.record(search, log=log, limit=5, probes=probes, pool=pool)
    for number in range(200):
        recorded(f"query {number}")
    _, candidates, exposures, _ = tables(recorded)
    band = candidates.filter(pl.col("rank") > 5)
    share = probes / (pool - 5)
    assert (band["propensity"] - share).abs().max() < 1e-12
    counts = exposures.filter("probe")["memory_id"].value_counts()["count"]
    spread = math.sqrt(200 * share * (1 - share))
    assert counts.len() == pool - 5
    assert ((counts - 200 * share).abs() <= 4 * spread + 1e-9).all()


def test_the_draw_depends_on_the_seed_and_the_number_alone(tmp_path):
    shown = [
        [memlab.record(search, log=tmp_path / f"{name}", seed=seed)("q").ids for _ in range(1)]
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert shown[0] == shown[1] != shown[2]


@pytest.mark.long
def test_without_probes_the_log_is_deterministic(log):
    recorded = memlab.record(search, log=log, limit=3, probes=0)
    assert recorded("q").ids == ["m0", "m1", "m2"]
    decisions, candidates, *_ = tables(recorded)
    assert decisions["sampler"].to_list() == ["deterministic"]
    assert sorted(candidates["propensity"].unique()) == [0.0, 1.0]


def test_the_log_has_no_text_of_a_result_and_no_secret_of_a_query(log):
    recorded = memlab.record(search, log=log)
    recorded("the password is 'hunter2-long', who deploys?", session="ada")
    recorded.close()
    content = b"".join(file.read_bytes() for file in log.iterdir() if file.is_file())
    assert b"about the deploy" not in content
    assert b"hunter2" not in content
    assert b"who deploys" in content


# -- rewards


@pytest.mark.long
def test_feedback_counts_the_last_reward_and_a_stated_one_before_an_inferred_one(log):
    recorded = memlab.record(search, log=log, limit=2)
    hits = recorded("When do we deploy?")
    hits.feedback(hits[0], 1)
    hits.feedback("m0", 0.25)
    rewards = hits.used("Note 1 says team 1.")
    assert set(rewards) <= set(hits.ids)
    *_, feedback = tables(recorded)
    stated = feedback.filter(pl.col("memory_id") == "m0")
    assert stated["reward"].to_list() == [0.25]
    assert stated["source"].to_list() == ["user"]
    inferred = feedback.filter(pl.col("memory_id") != "m0")
    assert inferred["source"].unique().to_list() == ["attributed"]
    assert inferred["confidence"].is_between(0, 1).all()


def test_an_answer_credits_the_result_that_it_restates(log):
    texts = ["Ana prefers tabs", "Deploys go out on Tuesdays", "The cat is called Miso"]
    recorded = memlab.record(lambda query, k: texts[:k], log=log)
    hits = recorded("When do we deploy?")
    rewards = hits.used("We deploy on Tuesdays.")
    assert max(rewards, key=rewards.get) == hits.ids[hits.index("Deploys go out on Tuesdays")]
    assert not any(value > 0.5 for value in hits.used("I don't know.").values())


@pytest.mark.parametrize("reward", [2, -0.1, math.nan])
def test_a_reward_outside_the_range_is_refused(log, reward):
    hits = memlab.record(search, log=log)("q")
    with pytest.raises(InputError, match=r"outside 0\.\.1|finite"):
        hits.feedback(hits[0], reward)


def test_feedback_on_a_result_that_was_not_shown_is_refused(log):
    recorded = memlab.record(search, log=log)
    hits = recorded("q")
    with pytest.raises(UnknownName, match="m39"):
        hits.feedback("m39", 1)
    with pytest.raises(UnknownName, match="recorded search"):
        recorded.feedback(99, "m0", 1)
    with pytest.raises(InputError):
        recorded.feedback("first", "m0", 1)


# -- faulty searches


@pytest.mark.long
def test_a_search_that_returns_fewer_shows_them_without_a_draw(log):
    recorded = memlab.record(lambda query, k: results(3), log=log)
    assert recorded("q").ids == ["m0", "m1", "m2"]
    assert memlab.record(lambda query, k: [], log=log)("nothing") == []
    decisions, candidates, *_ = tables(recorded)
    assert decisions["sampler"].to_list() == ["deterministic"] * 2
    assert candidates["propensity"].to_list() == [1.0] * 3


@pytest.mark.long
def test_a_search_that_returns_more_than_asked_is_cut(log):
    recorded = memlab.record(lambda query, k: results(40), log=log, limit=5)
    recorded("q")
    assert tables(recorded)[1].height == 15


def test_repeated_ids_count_once_and_bad_scores_are_unknown(log):
    rows = [
        ("m1", 0.2, "b"),
        ("m0", math.nan, "a"),
        ("m1", 0.9, "b"),
        ("m2", "high", 7),
        ("m3", 0.5, None),
    ]
    recorded = memlab.record(
        lambda query, k: [{"id": id, "score": score, "text": text} for id, score, text in rows],
        log=log,
        limit=2,
    )
    assert recorded("q").ids[0] == "m1"
    candidates = tables(recorded)[1].sort("rank")
    assert candidates["memory_id"].to_list() == ["m1", "m0", "m2", "m3"]
    assert candidates["search-score"].to_list() == [0.2, None, None, 0.5]
    assert candidates["words"].to_list() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.long
def test_results_may_be_texts_pairs_and_objects(log):
    document = SimpleNamespace(page_content="Tabs", metadata={})
    memory = SimpleNamespace(id=7, text="Spaces", score=0.5)
    recorded = memlab.record(lambda query, k: [(document, 0.9), memory, "plain"], log=log)
    hits = recorded("tabs?")
    assert hits == [(document, 0.9), memory, "plain"]
    assert hits.ids[1] == "7"
    assert tables(recorded)[1].sort("rank")["search-score"].to_list() == [0.9, 0.5, None]


@pytest.mark.parametrize("answer", [None, 7, "text", {"results": []}, [{"score": 1}], [None]])
def test_an_answer_without_results_is_refused_and_not_recorded(log, answer):
    recorded = memlab.record(lambda query, k: answer, log=log)
    with pytest.raises(InputError, match="search"):
        recorded("q")
    with pytest.raises(InputError, match="no recorded search"):
        recorded.slates()


def test_an_error_of_the_search_is_raised_and_nothing_recorded(log):
    recorded = memlab.record(lambda query, k: 1 / 0, log=log)
    with pytest.raises(ZeroDivisionError):
        recorded("q")
    with pytest.raises(InputError, match="no recorded search"):
        recorded.slates()


@pytest.mark.long
def test_a_failing_feature_is_null_and_named(log):
    features = {
        "good": lambda query, items: [len(query)] * len(items),
        "bad": lambda query, items: 1 / 0,
        "short": lambda query, items: [1],
    }
    recorded = memlab.record(search, log=log, features=features)
    with pytest.warns(UserWarning, match="feature") as caught:
        recorded("abc")
    assert {"bad", "short"} == {str(each.message).split()[2] for each in caught}
    memlab.record(search, log=log)("another")
    candidates = tables(recorded)[1]
    assert candidates["good"].drop_nulls().unique().to_list() == [3.0]
    assert candidates["good"].null_count() == 20
    assert "bad" not in candidates.columns


@pytest.mark.long
def test_a_log_that_cannot_be_written_still_shows_results(log):
    recorded = memlab.record(search, log=log, limit=5)
    recorded("first")
    recorded.close()
    with pytest.warns(UserWarning, match="not recorded"):
        hits = recorded("second")
    assert hits.ids == ["m0", "m1", "m2", "m3", "m4"]
    assert hits.decision is None
    hits.feedback(hits[0], 1)
    assert hits.used("Note 1") is not None
    assert len(memlab.read_record(log)) == 1


def test_bad_arguments_are_refused(log):
    for options, message in (
        ({"limit": 0}, "limit"),
        ({"pool": 10}, "larger pool"),
        ({"reward_range": (1.0, 0.0)}, "reward_range"),
        ({"probes": -1}, "probes"),
    ):
        with pytest.raises(InputError, match=message):
            memlab.record(search, log=log, **options)
    with pytest.raises(InputError, match="must be a function"):
        memlab.record("not a search", log=log)
    with pytest.raises(InputError, match="must be a text"):
        memlab.record(search, log=log)(7)


def test_a_lab_is_no_log_and_a_missing_folder_is_named(tmp_path):
    with memlab.open(tmp_path / "lab") as lab:
        lab.remember("x")
    with pytest.raises(InputError, match="is a lab"):
        memlab.record(search, log=tmp_path / "lab")
    with pytest.raises(InputError, match="is a lab"):
        memlab.read_record(tmp_path / "lab")
    with pytest.raises(NotALab):
        memlab.read_record(tmp_path / "none")


# -- asynchronous searches


async def search_later(query, k):
    await asyncio.sleep(0)
    return results(k)


async def hang(query, k):
    await asyncio.Event().wait()


@pytest.mark.long
def test_an_asynchronous_search_is_recorded(log):
    recorded = memlab.record(search_later, log=log)
    recorded.challenge(search, name="sync")
    hits = asyncio.run(recorded("q"))
    assert hits[0] == results(1)[0]
    assert len(recorded.slates()) == 1


def test_a_cancelled_search_is_not_recorded(log):
    recorded = memlab.record(hang, log=log)
    recorded.challenge(search_later, name="new")

    async def cancel():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(recorded("q"), 0.01)

    asyncio.run(cancel())
    with pytest.raises(InputError, match="no recorded search"):
        recorded.slates()


@pytest.mark.long
def test_a_challenger_that_hangs_is_left_out(log):
    recorded = memlab.record(search_later, log=log)
    recorded.challenge(hang, name="slow", timeout=0.01)
    with pytest.warns(UserWarning, match="slow is left out"):
        hits = asyncio.run(recorded("q"))
    assert len(hits) == 11
    decisions = tables(recorded)[0]
    assert decisions["failed"].to_list() == ["slow"]
    assert decisions["challenge"].to_list() == [None]


@pytest.mark.parametrize("error", [OSError, asyncio.CancelledError])
def test_an_error_of_an_asynchronous_search_is_raised(log, error):
    async def fail(query, k):
        raise error("down")

    recorded = memlab.record(fail, log=log)
    with pytest.raises(error):
        asyncio.run(recorded("q"))


# -- challenges


@pytest.mark.long
def test_a_challenge_names_the_better_search(log):
    recorded = memlab.record(search, log=log, limit=3, probes=0)
    recorded.challenge(lambda query, k: results(k, start=2), name="new", extra=2, version="2")
    assert "compared with new" in repr(recorded)
    rng = np.random.default_rng(0)
    for number in range(250):
        for id in (hits := recorded(f"query {number}")).ids:
            hits.feedback(id, float(rng.random() < (0.9 if int(id[1:]) > 2 else 0.1)))
    _, candidates, exposures, _ = tables(recorded)
    disputed = candidates.filter(pl.col("memory_id").is_in(["m3", "m4"]))
    assert (disputed["propensity"] - 1.0).abs().max() < 1e-12
    assert exposures.filter(pl.col("position") == 1)["memory_id"].unique().to_list() == ["m0"]
    verdict = recorded.verdict()["new"]
    assert verdict.better == "new"
    assert verdict.live == "search"
    assert verdict.difference.low < 1.6 < verdict.difference.high
    recorded.end_challenge("new")
    assert len(recorded("later")) == 3
    with pytest.raises(UnknownName, match="challenger"):
        recorded.end_challenge("new")


@pytest.mark.long
def test_the_log_has_the_results_of_both_searches(log):
    recorded = memlab.record(search, log=log, limit=3)
    recorded.challenge(lambda query, k: results(k, start=2), name="new", version="2")
    recorded("q")
    challenge = json.loads(tables(recorded)[0]["challenge"].item())
    assert challenge["live"] == ["m0", "m1", "m2"]
    assert challenge["heads"]["new"]["ids"] == ["m2", "m3", "m4"]
    assert challenge["heads"]["new"]["hash"] == "2"


@pytest.mark.long
def test_an_extra_item_has_the_probability_of_its_draw(log):
    recorded = memlab.record(search, log=log, limit=4, probes=0)
    recorded.challenge(lambda query, k: results(k, start=30), name="new")
    for number in range(200):
        recorded(f"query {number}")
    _, candidates, exposures, _ = tables(recorded)
    theirs = candidates.filter(pl.col("memory_id").is_in(["m30", "m31", "m32", "m33"]))
    assert (theirs["propensity"] - 0.25).abs().max() < 1e-12
    counts = exposures.filter("probe")["memory_id"].value_counts()["count"]
    assert counts.sum() == 200
    assert counts.min() > 25


@pytest.mark.long
@pytest.mark.parametrize("design", ["lot", "draft", "ab"])
def test_other_designs_log_what_their_verdict_needs(log, design):
    recorded = memlab.record(search, log=log, limit=4, probes=0)
    recorded.challenge(lambda query, k: results(k, start=2), name="new", design=design)
    for number in range(60):
        hits = recorded(f"query {number}")
        assert len(hits) == 4
        for id in hits.ids:
            hits.feedback(id, float(int(id[1:]) > 3))
    assert recorded.slates().decisions.collect()["sampler"].unique().to_list() == [design]
    assert recorded.verdict()["new"].recalls == 60
    with pytest.raises(InputError, match="design"):
        recorded.challenge(search, name="third")


@pytest.mark.long
def test_a_challenger_that_raises_is_left_out_of_that_search(log):
    def flaky(query, k):
        if "3" in query:
            raise OSError("down")
        return results(k, start=1)

    recorded = memlab.record(search, log=log, limit=3)
    recorded.challenge(flaky, name="flaky")
    for number in range(10):
        with pytest.warns() if number == 3 else contextlib.nullcontext():
            hits = recorded(f"query {number}")
        for item in hits:
            hits.feedback(item, 1 if item["id"] == "m0" else 0)
    decisions = tables(recorded)[0]
    assert decisions["failed"].drop_nulls().to_list() == ["flaky"]
    assert recorded.verdict()["flaky"].recalls == 9


@pytest.mark.long
def test_recorded_logs_are_evaluated_and_planned(log):
    recorded = memlab.record(search, log=log, limit=5, probes=2, seed=3)
    rng = np.random.default_rng(1)
    for number in range(300):
        for id in (hits := recorded(f"query {number}")).ids:
            hits.feedback(id, float(rng.random() < (0.8 if int(id[1:]) >= 5 else 0.2)))
    value = memlab.evaluate(recorded, {"reversed": "(fn [search-score] (- 0 search-score))"})
    rows = {row["policy"]: row for row in value.frame.to_dicts()}
    assert rows["reversed"]["verdict"] == "better"
    assert rows["reversed"]["low"] < 4.0 < rows["reversed"]["high"]
    assert memlab.plan(recorded, {"longest": "(fn [words] words)"}).recalls == 300


@pytest.mark.long
def test_the_command_evaluates_a_recorded_log(log):
    recorded = memlab.record(search, log=log, limit=2, probes=2, pool=6)
    for number in range(60):
        for item in (hits := recorded(f"query {number}")):
            hits.feedback(item, float(item["id"] == "m1"))
    result = CliRunner().invoke(main, ["evaluate", str(log), "-p", "words", "-p", "overlap"])
    assert "words" in result.output, result.output
    assert "60 recalls" in result.output
    assert "Give --policies" in CliRunner().invoke(main, ["evaluate", str(log)]).output


# -- stores of other packages, by their published signatures; tests/recorder/test_stores.py has the packages themselves


def stand_in(module, **methods):
    return type("Store", (), {"__module__": module, **methods})()


def test_mem0_is_searched_with_top_k(log):
    def answer(self, query, *, top_k=20, filters=None, threshold=0.1):
        assert filters == {"user_id": "ada"}
        assert threshold == 0.2
        return {"results": results(top_k)}

    recorded = memlab.record(stand_in("mem0.memory.main", search=answer), log=log, limit=4)
    hits = recorded("q", filters={"user_id": "ada"}, threshold=0.2)
    assert hits[0] == results(1)[0]
    assert len(hits) == 5
    assert tables(recorded)[0]["session"].to_list() == ["ada"]


def test_a_langgraph_store_is_searched_in_a_namespace(log):
    def answer(self, namespace, /, *, query=None, filter=None, limit=10, offset=0):
        return [
            SimpleNamespace(
                namespace=(*namespace, owner),
                key=key,
                value={"text": "Tabs"},
                score=0.5,
                created_at="2026-01-01T00:00:00+00:00",
            )
            for key in ("k1", "k2")
            for owner in ("ada", "ben")
        ][:limit]

    recorded = memlab.record(stand_in("langgraph.store.memory", search=answer), log=log)
    hits = recorded("tabs", ("users",))
    assert hits.ids == ["users/ada/k1", "users/ben/k1", "users/ada/k2", "users/ben/k2"]
    assert hits[0].value == {"text": "Tabs"}
    assert tables(recorded)[0]["session"].to_list() == ["users"]


@pytest.mark.long
def test_a_chroma_collection_is_queried_and_distances_become_scores(log):
    def answer(self, query_texts, n_results=10, where=None, include=None):
        rows = results(n_results)
        columns = {
            "ids": [[row["id"] for row in rows]],
            "documents": [[row["memory"] for row in rows]],
        }
        return columns | {"distances": [[0.1 * n for n in range(len(rows))]], "metadatas": None}

    collection = stand_in("chromadb.api.models.Collection", query=answer)
    recorded = memlab.record(collection.query, log=log, limit=2)
    assert recorded("q")[0] == {"id": "m0", "text": TEXTS[0], "score": 0.0}
    assert tables(recorded)[1].sort("rank")["search-score"].to_list()[1] == pytest.approx(-0.1)


# -- traces of other programs


def otlp(searches):
    def attribute(key, value):
        return {"key": key, "value": {"stringValue": value}}

    spans = [
        {
            "spanId": f"a{number}",
            "startTimeUnixNano": str(1_700_000_000_000_000_000 + number),
            "attributes": [
                attribute("gen_ai.operation.name", name),
                attribute("gen_ai.memory.query.text", f"query {number}"),
                *(
                    []
                    if records is None
                    else [attribute("gen_ai.memory.records", json.dumps(records))]
                ),
            ],
        }
        for number, (name, records) in enumerate(searches)
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


@pytest.mark.long
def test_searches_of_a_trace_are_read_and_refused_as_evidence(tmp_path):
    rng = np.random.default_rng(0)
    records = [
        [
            {"id": f"m{item}", "content": TEXTS[item], "score": 1 - rank / 10}
            for rank, item in enumerate(rng.permutation(40)[:6].tolist())
        ]
        for _ in range(80)
    ]
    searches = [("search_memory", each) for each in records]
    file = tmp_path / "spans.jsonl"
    lines = [
        otlp([*searches[:40], ("chat", None)]),
        otlp(searches[40:]),
        otlp([("search_memory", None)]),
    ]
    lines[1]["resourceSpans"][0]["scopeSpans"][0]["spans"] = [
        span | {"spanId": f"b{number}"}
        for number, span in enumerate(lines[1]["resourceSpans"][0]["scopeSpans"][0]["spans"])
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    log = memlab.read_spans(file)
    assert len(log) == 80
    assert any("1 searches without records" in note for note in log.notes)
    shown = log.exposures.collect().select("decision", "memory_id")
    rewards = shown.with_columns(reward=pl.Series(rng.random(shown.height).round()))
    log = memlab.read_spans(file, feedback=rewards)
    policy = {"short": "(fn [words search-score] (- search-score words))"}
    value = memlab.evaluate(log, policy, missing="zero")
    (short,) = (row for row in value.frame.to_dicts() if row["policy"] == "short")
    assert short["value"] is None
    assert "probability" in str(value)
    designs = memlab.plan(log, policy, missing="zero").frame["design"].to_list()
    assert "challenge, 1 extra" in designs
    assert "probes as logged" not in designs


def test_a_trace_without_records_is_refused(tmp_path):
    file = tmp_path / "spans.jsonl"
    file.write_text(json.dumps(otlp([("search_memory", None)])))
    with pytest.raises(DatasetError, match=r"spans of searches without it: 1\)"):
        memlab.read_spans(file)
    file.write_text("{")
    with pytest.raises(DatasetError):
        memlab.read_spans(file)


# -- processes


WORKER = """
import sys
import memlab
rows = [{"id": f"m{n}", "score": -n} for n in range(30)]
recorded = memlab.record(lambda query, k: rows[:k], log=sys.argv[1])
for number in range(int(sys.argv[2])):
    hits = recorded(f"query {number} of {sys.argv[3]}")
    hits.feedback(hits.ids[-1], 1)
    print(hits.decision, hits.ids[-1], flush=True)
"""


def start(log, count, name):
    environment = os.environ | {"PYTHONPATH": str(Path(memlab.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(log), str(count), name],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.long
def test_acknowledged_searches_and_rewards_survive_a_killed_process(log):
    process = start(log, 100_000, "one")
    lines = [process.stdout.readline() for _ in range(50)]
    process.kill()
    lines += process.communicate()[0].splitlines()
    acknowledged = [line.split() for line in lines if len(line.split()) == 2]
    slates = memlab.read_record(log)
    exposures = slates.exposures.collect()
    for decision, last in acknowledged[:-1]:
        row = exposures.filter(pl.col("decision") == int(decision)).sort("position")
        assert row["memory_id"][-1] == last
    assert slates.feedback.collect().height >= len(acknowledged) - 1
    memlab.record(search, log=log)("later")


@pytest.mark.long
def test_two_processes_record_to_one_log(log):
    processes = [start(log, 60, name) for name in ("one", "two")]
    numbers = [line.split()[0] for each in processes for line in each.communicate()[0].splitlines()]
    assert len(set(numbers)) == 120
    decisions = memlab.read_record(log).decisions.collect()
    assert decisions.height == 120
    assert decisions["query"].str.extract(r"of (\w+)").value_counts()["count"].to_list() == [60, 60]
    with Journal.open(log, read_only=True) as journal:
        assert not journal.faults()


@pytest.mark.long
def test_a_recorder_works_after_a_fork(log):
    recorded = memlab.record(search, log=log)
    recorded("before")
    child = os.fork()
    if not child:
        recorded("in the child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    recorded("after")
    assert recorded.slates().decisions.collect()["query"].to_list() == [
        "before",
        "in the child",
        "after",
    ]


@pytest.mark.parametrize(
    ("span", "is_read"),
    [
        ({"attributes": "a text"}, False),
        ({"attributes": [{"value": {"stringValue": "no key"}}]}, False),
        ({"attributes": ["text", None, 3, {"key": ["a"], "value": "text"}]}, False),
        ({"startTimeUnixNano": "noon"}, False),
        ({"startTimeUnixNano": []}, False),
        ({"startTimeUnixNano": "9" * 400}, False),
        ({"startTimeUnixNano": "9" * 5000}, False),
        ({"startTimeUnixNano": "1700000000000000000"}, True),
        ({"gen_ai.memory.query.text": 5}, True),
        ({"gen_ai.conversation.id": []}, True),
        ({"gen_ai.conversation.id": 7}, True),
    ],
)
def test_spans_with_values_of_other_types(tmp_path, span, is_read):
    attributes = {"gen_ai.operation.name": "search_memory", "gen_ai.memory.records": '["a text"]'}
    attributes |= {name: span.pop(name) for name in list(span) if name.startswith("gen_ai")}
    file = tmp_path / "spans.jsonl"
    file.write_text(json.dumps({"attributes": attributes, "span_id": "a"} | span))
    if is_read:
        assert memlab.read_spans(file).candidates.collect().height == 1
    else:
        with pytest.raises(DatasetError):
            memlab.read_spans(file)
