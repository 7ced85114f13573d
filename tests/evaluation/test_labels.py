"""Policies on labels: equal to ir_measures, and never mixed with feedback."""

from dataclasses import replace

import ir_measures
import numpy as np
import polars as pl
import pytest
from probed_logs import World

from memlab.errors import InputError, UnknownName
from memlab.science.evaluation import METRICS, evaluate
from memlab.science.evaluation._evaluation import reproduction

WORLD = World(clusters=8, recalls=6, pool=20, limit=5, depth=5, seed=2)
ORACLES = {
    "recall": ir_measures.R,
    "recall_any": ir_measures.Success,
    "mrr": ir_measures.RR,
    "map": ir_measures.AP,
    "ndcg": ir_measures.nDCG,
}


def labels(world=WORLD, threshold=0.75):
    frame = world.frames()["candidates"].select("decision", "memory_id")
    return frame.with_columns(relevance=pl.Series((world.truth.ravel() > threshold).astype(int)))


@pytest.mark.long
def test_the_metrics_are_those_of_ir_measures():
    judged = labels()
    ev = evaluate(WORLD.slates(), ["good", "noise"], labels=judged)
    assert (ev.settings.measure, ev.settings.metric) == ("labels", "recall@5")
    qrels = [ir_measures.Qrel(str(d), str(m), r) for d, m, r in judged.iter_rows() if r]
    query_ids = {qrel.query_id for qrel in qrels}
    candidates = WORLD.frames()["candidates"]
    for row in ev.rows:
        column = "score" if row.policy == "logged" else row.policy
        run = [
            ir_measures.ScoredDoc(str(d), str(m), score)
            for d, m, score in candidates.select("decision", "memory_id", column).iter_rows()
        ]
        assert set(row.metrics) == {f"{name}@5" for name in METRICS}
        for name, oracle in ORACLES.items():
            by_query = {
                m.query_id: m.value for m in ir_measures.iter_calc([oracle @ 5], qrels, run)
            }
            expected = np.mean([by_query[query] for query in query_ids])
            assert row.metrics[f"{name}@5"] == pytest.approx(expected, abs=1e-9)
        assert row.value.value == row.metrics["recall@5"]


@pytest.mark.long
def test_one_short_list_does_not_decide_the_metric():
    """One recall of 48 was asked for one result; the logged pools have all ranks."""
    slates = WORLD.slates()
    short = slates.decisions.with_columns(
        limit=pl.when(pl.col("decision") == 1).then(1).otherwise(WORLD.limit)
    )
    judged = labels()
    whole = evaluate(slates, ["good", "noise"], labels=judged)
    one_short = evaluate(replace(slates, decisions=short), ["good", "noise"], labels=judged)
    assert one_short.settings.metric == "recall@5"
    values = [{row.policy: row.value.value for row in ev.rows} for ev in (whole, one_short)]
    assert {name: values[0][name] for name in ("good", "noise")} == {
        name: values[1][name] for name in ("good", "noise")
    }


@pytest.mark.parametrize("metric", ["ndcg@3", "mrr@5", "recall_all@10"])
def test_the_named_metric_ranks_the_policies(metric):
    ev = evaluate(WORLD.slates(), ["noise", "good"], labels=labels(), metric=metric)
    assert ev.settings.metric == metric
    for row in ev.rows:
        assert row.value.value == pytest.approx(row.metrics[metric], rel=1e-12)
    values = [row.value.value for row in ev.rows]
    assert values == sorted(values, reverse=True)
    assert f"labels=labels, metric='{metric}'" in reproduction(ev)


def test_a_metric_is_one_of_labels():
    with pytest.raises(UnknownName, match="recall@10"):
        evaluate(WORLD.slates(), ["good"], labels=labels(), metric="recall")
    with pytest.raises(InputError, match="Pass labels="):
        evaluate(WORLD.slates(), ["good"], missing="zero", metric="recall@5")
    with pytest.raises(InputError, match="metric= needs the whole log"):
        evaluate(WORLD.frames()["candidates"].lazy(), ["good"], metric="recall@5")


@pytest.mark.long
def test_a_recall_without_relevant_items_has_no_value():
    judged = labels()
    some = judged.filter(pl.col("decision") <= 40)
    ev = evaluate(WORLD.slates(), ["good"], labels=some)
    answered = some.filter(pl.col("relevance") == 1)["decision"].n_unique()
    assert f"{48 - answered} recalls without a relevant item in the labels: left out." in ev.notes
    with pytest.raises(InputError, match="there is nothing to measure"):
        evaluate(WORLD.slates(), ["good"], labels=judged.with_columns(relevance=pl.lit(0)))


def test_evidence_outside_the_pool_counts_against_every_policy():
    far = pl.DataFrame({"decision": [1], "memory_id": [999], "relevance": [1]})
    ev = evaluate(
        WORLD.slates(),
        ["good"],
        labels=pl.concat([labels().with_columns(pl.col("relevance").cast(int)), far]),
    )
    assert next(row for row in ev.rows if row.policy == "good").metrics["recall_all@5"] < 1


@pytest.mark.long
def test_feedback_is_not_read():
    broken = WORLD.frames()["feedback"].with_columns(reward=pl.lit(float("nan")))
    with pytest.raises(InputError):
        evaluate(WORLD.slates(feedback=broken), ["good"])
    ev = evaluate(WORLD.slates(feedback=broken), ["good"], labels=labels())
    assert ev.model_values == {}
    assert {"unsupported", "model_value", "lower"}.isdisjoint(ev.frame.columns)
    assert "recall@5 by labels" in repr(ev)


@pytest.mark.long
def test_a_better_ranking_is_found_and_an_equal_one_is_not():
    world = World(clusters=35, recalls=10, pool=20, limit=5, seed=5)
    world.plain_again = world.plain
    ev = evaluate(world.slates(), ["good", pl.col("plain").alias("same")], labels=labels(world))
    verdicts = {row.policy: row.verdict for row in ev.rows}
    assert verdicts == {"good": "better", "logged": "baseline", "same": "not separated"}
    same = next(row for row in ev.rows if row.policy == "same")
    assert (same.difference.value, same.adjusted) == (0.0, 1.0)


def test_a_single_cluster_gives_no_ranking():
    world = World(clusters=1, recalls=20, pool=20, limit=5)
    ev = evaluate(world.slates(), ["good"], labels=labels(world))
    assert {row.verdict for row in ev.rows} == {"withheld"}
    assert all(row.value is None for row in ev.rows)
    assert "The labels are of 1 cluster" in repr(ev)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (pl.DataFrame({"decision": [1], "memory_id": [1]}), "The labels have no column relevance"),
        (labels().clear(), "The labels are empty"),
        (
            labels().with_columns(pl.lit(2).alias("relevance")),
            "Row 0 of the labels has relevance 2.0. Set it to 1",
        ),
        (labels().with_columns(pl.lit(None).alias("relevance")), "relevance None"),
        (
            labels().with_columns(pl.col("decision").cast(pl.String)),
            "decision is String in the labels and Int64",
        ),
        (pl.concat([labels(), labels().head(1)]), "The labels name recall 1, memory 1 twice"),
    ],
)
def test_labels_that_are_none_are_refused(frame, reason):
    with pytest.raises(InputError, match=reason):
        evaluate(WORLD.slates(), ["good"], labels=frame)
    with pytest.raises(InputError, match="labels is a Polars DataFrame"):
        evaluate(WORLD.slates(), ["good"], labels={"decision": [1]})


def test_labels_of_other_recalls_are_reported():
    more = pl.DataFrame({"decision": [999], "memory_id": [1], "relevance": [1]})
    ev = evaluate(WORLD.slates(), ["good"], labels=pl.concat([labels(), more]))
    assert "1 label of recalls that are not in the log: left out." in ev.notes
