"""What happened is shown whatever the gates say; the same query asked repeatedly is one cluster."""

import json
import re

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.io.ingest import read_locomo
from memlab.science.evaluation import cluster_interval, evaluate
from memlab.science.examples import CONVERSATION
from tests.evaluation.probed_logs import World


@pytest.fixture(scope="module")
def log():
    """Queries of the bundled conversation, each recalled three times, every item judged by its labels."""
    (chat,) = read_locomo(CONVERSATION)
    with memlab.open() as lab:
        lab.remember(list(chat.conversation.rows()), chain=True)
        ref = dict(lab.memories.select("id", "ref").iter_rows())
        asked = [question for question in chat.questions if question.answerable][:14]
        for _ in range(3):
            for question in asked:
                hits = lab.recall(question.text)
                for hit in hits:
                    lab.feedback(hit, "success" if ref[hit.id] in question.evidence else "fail")
        yield lab.slates()


def rewards(log):
    """The summed rewards of each recall, by reading the tables alone."""
    judged = log.feedback.collect().with_columns(
        reward=(pl.col("outcome") == "success").cast(pl.Float64)
    )
    sums = judged.group_by("decision").agg(pl.col("reward").sum(), pl.len().alias("items"))
    return log.decisions.collect().join(sums, on="decision").sort("decision")


@pytest.mark.long
def test_the_facts_are_those_of_the_tables(log):
    frame, facts = rewards(log), evaluate(log, ["companion"]).observed
    assert (facts.recalls, facts.queries) == (42, 14)
    assert facts.items == facts.judged == frame["items"].sum()
    assert facts.value.value == pytest.approx(frame["reward"].mean())
    assert facts.per_item.value == pytest.approx(frame["reward"].sum() / frame["items"].sum())
    by_query = frame.group_by("query", maintain_order=True).agg(pl.col("reward").mean())
    assert facts.frame.select("query", "reward").rows() == by_query.rows()
    assert facts.frame["recalls"].to_list() == [3] * 14


@pytest.mark.long
def test_the_same_query_is_one_cluster(log):
    frame, ev = rewards(log), evaluate(log, ["companion"])
    assert (ev.clusters, ev.observed.unit) == (14, "query")
    means = frame.group_by("query").agg(pl.col("reward").mean())["reward"].to_numpy()
    # With clusters of equal size, the interval is that of the means of queries.
    half = (ev.observed.value.high - ev.observed.value.low) / 2
    error = means.std(ddof=1) / np.sqrt(14)
    assert half == pytest.approx(2.160369 * error, rel=1e-5)
    single = cluster_interval(frame["reward"].to_numpy(), np.arange(42))
    assert half > (single.high - single.low) / 2
    assert evaluate(log, ["companion"], cluster="decision").clusters == 42


@pytest.mark.long
def test_the_policy_that_logged_has_a_value_and_others_one_sentence_each(log):
    ev = evaluate(log, ["memlab", "companion", "actr"])
    values = {row.policy: row.value for row in ev.rows}
    assert values["memlab"].value == pytest.approx(ev.observed.value.value, abs=0.2)
    assert values["companion"] is None
    text = ev.text().split("Next:")[0]
    for name in ("companion", "actr"):
        assert (
            len(re.findall(rf"^[^:\n]*\b{name}\b[^:\n]*: (?:withheld|refused)\.", text, re.M)) == 1
        )
    assert ev.observed.sentence in ev.text()
    assert ev.observed.sentence in ev._repr_html_()
    assert json.loads(json.dumps(ev.to_dict()))["observed"]["recalls"] == 42


def test_closed_gates_withhold_no_fact():
    """Rewards that follow the position, of one user on one day."""
    world = World(clusters=1, recalls=80, seed=4)
    frames = world.frames()
    shown = frames["exposures"].select("decision", "memory_id", "position")
    feedback = (
        frames["feedback"]
        .join(shown, on=["decision", "memory_id"])
        .with_columns(reward=(pl.col("position") == 1).cast(pl.Float64))
    )
    day = frames["decisions"].with_columns(at=pl.lit(frames["decisions"]["at"][0]))
    slates = world.slates(**{**frames, "decisions": day, "feedback": feedback.drop("position")})
    ev = evaluate(slates, ["good"])
    logged, good = (
        next(row for row in ev.rows if row.policy == name) for name in ("logged", "good")
    )
    assert logged.closed
    assert good.value is None
    assert logged.value.value == pytest.approx(1.0), "the first of each recall was liked"
    assert (logged.verdict, logged.needed) == ("baseline", 0)
    assert good.verdict == "withheld"
    assert not any(item["policy"] == "logged" for item in ev.to_dict()["withheld"])
    assert any(line.startswith("logged") for line in ev.details), "its gates are still told"


def test_a_policy_that_was_not_shown_is_no_fact():
    """The ranking "logged" of a log that showed other items at random has closed gates and no value."""
    world = World(clusters=1, recalls=80, rate=0.9, seed=4)
    frames = world.frames()
    top = frames["exposures"].filter(pl.col("position") == 1).select("decision", "memory_id")
    frames["exposures"] = frames["exposures"].join(top, on=["decision", "memory_id"], how="anti")
    frames["feedback"] = frames["feedback"].join(top, on=["decision", "memory_id"], how="anti")
    day = frames["decisions"].with_columns(at=pl.lit(frames["decisions"]["at"][0]))
    ev = evaluate(world.slates(**{**frames, "decisions": day}), ["good"])
    assert all(row.value is None for row in ev.rows)
    assert ev.observed.value.value > 0


@pytest.mark.long
def test_missing_feedback_is_counted_and_not_guessed():
    world = World(clusters=6, recalls=20, seed=1)
    frames = world.frames()
    some = frames["feedback"].gather_every(2)
    ev = evaluate(world.slates(**{**frames, "feedback": some}), ["good"], missing="censor")
    assert ev.observed.judged == some.height < ev.observed.items
    assert ev.observed.value.value == pytest.approx(some["reward"].sum() / 120)
    none = evaluate(
        world.slates(**{**frames, "feedback": some.head(0)}), ["good"], missing="censor"
    )
    assert none.observed.judged == 0
    assert "0 judged" in none.observed.sentence
