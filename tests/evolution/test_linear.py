"""The linear policies of a search: fitted to the search part alone, and kept for the selection part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from test_evolve import SETTINGS, START, build_log, search

import memlab
from memlab.science.evolution._data import Data, read_data
from memlab.science.evolution._evolve import _select
from memlab.science.evolution._linear import _pair, fit_linear
from memlab.science.evolution._matrix import LabelGoal
from memlab.science.evolution._search import open_search, score_program


def read(log: Any, **options: Any) -> Data:
    """Read a log with labels for recall@3."""
    return read_data(log[0], START, log[1], "recall@3", [], 0, **{**SETTINGS, **options})


def test_a_weighted_sum_is_found_by_the_fit_and_stays_until_the_selection() -> None:
    log = build_log(lambda v: 2 * v["b"] - v["c"])
    data = read(log)
    values = [score_program(data.parts["report"], one, (), "").value for one in fit_linear(data, 0)]
    assert min(values) > 0.95 > score_program(data.parts["report"], data.start, (), "").value
    found = search(log, budget=700)
    assert "linear" in found.frame["operator"].to_list()
    assert found.lineage.filter(pl.col("operator") == "linear")["parents"][0].to_list() == [
        data.start.hash
    ]


@pytest.mark.parametrize("worth", ["sum", "gate"])
def test_a_weighted_sum_is_preferred_unless_another_is_better_by_two_standard_errors(
    worth: str,
) -> None:
    forms = {
        "sum": lambda v: v["b"] - v["c"] + 1.0 * np.random.default_rng(3).random(v["a"].shape),
        "gate": lambda v: np.where(v["c"] > 0.5, v["b"], v["a"]),
    }
    data = read(build_log(forms[worth]))
    space, state = open_search(data, 0, 60)
    programs = [
        *[(policy, "linear") for policy in fit_linear(data, 0)],
        (data.compile("(fn [a b c] (if (> c 0.5) b a))"), "propose"),
        *[(data.compile(f"(fn [b c] (- b (* {k} c)))"), "propose") for k in (0.8, 0.9, 1.1, 1.2)],
    ]
    for policy, operator in programs:
        state.archive.add(score_program(space.part, policy, (), operator))
    by_cluster = {
        one.policy.hash: score_program(data.parts["selection"], one.policy, (), "").clusters
        for one in state.archive.programs
    }
    means = {key: sum(values) / len(values) for key, values in by_cluster.items()}
    best = max(means, key=lambda key: means[key])
    linear = max(
        (key for key in means if key in {p.hash for p in fit_linear(data, 0)}),
        key=lambda key: means[key],
    )
    gaps = [x - y for x, y in zip(by_cluster[best], by_cluster[linear], strict=True)]
    mean = sum(gaps) / len(gaps)
    error = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 / len(gaps) ** 0.5
    assert best != linear
    assert (mean <= 2 * error) == (worth == "sum")
    assert _select(data, state)[0].policy.hash == (linear if worth == "sum" else best)


def test_the_fit_reads_no_label_of_the_report_part() -> None:
    data = read(build_log(lambda v: v["b"] * v["a"]))
    report = data.parts["report"]
    assert isinstance(report.goal, LabelGoal)
    goal = LabelGoal.__new__(LabelGoal)
    goal.__dict__ = {**report.goal.__dict__, "rows": report.goal.rows[:1]}
    other = replace(data, parts={**data.parts, "report": report._replace(goal=goal)})
    assert [one.hash for one in fit_linear(data, 0)] == [one.hash for one in fit_linear(other, 0)]


@pytest.mark.parametrize("most", [10_000_000, 500])
def test_pairs_are_those_of_a_double_loop(most: int) -> None:
    part = read(build_log(lambda v: v["a"])).parts["search"]
    assert isinstance(part.goal, LabelGoal)
    wanted, recall = set(part.goal.rows.tolist()), part.log.recall.tolist()
    every = {
        (i, j)
        for i in wanted
        for j in range(len(recall))
        if recall[i] == recall[j] and j not in wanted
    }
    pairs = set(
        zip(*(side.tolist() for side in _pair(part, np.random.default_rng(0), most)), strict=True)
    )
    assert pairs <= every
    assert len(pairs) == min(most, len(every))


def test_pairs_of_feedback_are_of_unequal_rewards() -> None:
    log = memlab.Slates.from_wide(
        pl.read_parquet(memlab.examples.LOG),
        decision="query_id",
        item="memory_id",
        shown="rank",
        reward="clicked",
        propensity="p",
        limit=3,
        scores=["old_score", "new_score"],
    )
    data = read_data(log, "old_score", None, None, [], 0, **{**SETTINGS, "missing": "zero"})
    part = data.parts["search"]
    better, worse = _pair(part, np.random.default_rng(0), 1_000_000)
    assert len(better) > 100
    assert (part.log.recall[better] == part.log.recall[worse]).all()
    assert (part.log.reward[better] > part.log.reward[worse]).all()
    assert fit_linear(data, 0)


@pytest.mark.parametrize("name", ["min-max", "if_null", "a b", "+", "x y(", "7"])
def test_a_feature_whose_name_cannot_be_read_is_left_out(name: str) -> None:
    slates, labels = build_log(lambda v: v["a"])
    columns = pl.col("decision", "memory_id", "a"), pl.col("b").alias(name)
    odd = memlab.Slates.from_frames(
        slates.decisions.collect(),
        slates.candidates.collect().select(*columns),
        pl.DataFrame(schema={"decision": pl.Int64, "memory_id": pl.Int64}),
        empty="keep",
    )
    assert [one.inputs for one in fit_linear(read((odd, labels)), 0)] == [("a",)] * 2


def test_nothing_is_fitted_if_all_candidates_are_wanted() -> None:
    slates, _ = build_log(lambda v: v["a"])
    every = slates.candidates.select("decision", "memory_id", relevance=pl.lit(1.0)).collect()
    assert fit_linear(read((slates, every)), 0) == []
