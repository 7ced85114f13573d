"""The correction of a search: fitted to two parts, judged on clusters left out, and kept for the selection."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from test_evolve import SETTINGS, START, build_log, search

import memlab
from memlab.science.evolution import _correction
from memlab.science.evolution._correction import _fit, _pair, _read_terms, fit_correction
from memlab.science.evolution._data import Data, read_data
from memlab.science.evolution._evolve import _correct, _select
from memlab.science.evolution._matrix import LabelGoal
from memlab.science.evolution._search import open_search, score_program

pytestmark = pytest.mark.long


def read(log: Any, **options: Any) -> Data:
    """Read a log with labels for recall@3."""
    return read_data(log[0], START, log[1], "recall@3", [], 0, **{**SETTINGS, **options})


@pytest.mark.parametrize("worth", ["sum", "gate"])
def test_a_correction_is_preferred_unless_another_is_better_by_two_standard_errors(
    worth: str,
) -> None:
    forms = {
        "sum": lambda v: v["b"] - v["c"] + 1.0 * np.random.default_rng(3).random(v["a"].shape),
        "gate": lambda v: np.where(v["c"] > 0.5, v["b"], 0.5 * v["a"]),
    }
    data = read(build_log(forms[worth]))
    space, state = open_search(data, 0, 60)
    _correct(data, space, state)
    fitted = state.correction[0].policy
    texts = ["(fn [a b c] (if (> c 0.5) b (* 0.5 a)))"]
    texts += [f"(fn [b c] (- b (* {k} c)))" for k in (0.8, 0.9, 1.1, 1.2)]
    part = data.parts["selection"]
    for text in texts:
        state.archive.add(score_program(space.part, data.compile(text), (), "propose"))
    scored = [score_program(part, data.compile(text), (), "") for text in texts]
    best = max(scored, key=lambda one: one.value)
    left_out = state.correction[1].clusters
    gaps = [x - y for x, y in zip(best.clusters, left_out, strict=True)]
    mean = sum(gaps) / len(gaps)
    error = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 / len(gaps) ** 0.5
    assert (mean <= 2 * error) == (worth == "sum")
    chosen = _select(data, state)[0].policy
    assert chosen.hash == (fitted if worth == "sum" else best.policy).hash


def test_the_fit_reads_no_label_of_the_report_part() -> None:
    slates, labels = build_log(lambda v: v["b"] * v["a"])
    data = read((slates, labels))
    report = data.parts["report"].log.decisions["decision"].to_list()
    other = labels.with_columns(
        memory_id=pl.when(pl.col("decision").is_in(report))
        .then(21 - pl.col("memory_id"))
        .otherwise("memory_id")
    )
    (one, own), (two, own_of_two) = (
        fit_correction(read((slates, every)), 0)  # type: ignore[misc]
        for every in (labels, other)
    )
    assert (one.hash, own.value) == (two.hash, own_of_two.value)


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
    start = part.matrix.scores(data.start)
    better, worse = _pair(part, np.random.default_rng(0), 1_000_000, start, 15, 10)
    assert len(better) > 100
    assert len(_pair(part, np.random.default_rng(0), 90, start, 15, 10)[0]) == 90
    assert (part.log.recall[better] == part.log.recall[worse]).all()
    assert (part.log.reward[better] > part.log.reward[worse]).all()
    fitted = fit_correction(data, 0)
    before = score_program(data.parts["selection"], data.start, (), "")
    assert fitted is None or len(fitted[1].outcome) == len(before.outcome)


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
    data = read((odd, labels))
    part = data.parts["search"]
    terms, table = _read_terms(data, part, np.arange(99.0), np.arange(9), np.arange(9) + 1)
    assert [term for term, _ in terms] == ["a", "(if-null a 0)", "(if-null (min-max a) 0)"]
    assert table.shape == (9, 3)


def test_nothing_is_fitted_if_all_candidates_are_wanted() -> None:
    slates, _ = build_log(lambda v: v["a"])
    every = slates.candidates.select("decision", "memory_id", relevance=pl.lit(1.0)).collect()
    assert fit_correction(read((slates, every)), 0) is None


def test_a_fit_to_the_first_pairs_stands_if_the_second_pairs_are_of_one_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A recall has 38 pairs of the second kind, and often fewer of the first, which then read a second recall.
    data = read(build_log(lambda v: v["b"]))
    monkeypatch.setattr(_correction, "_CELLS", 37 * len(data.signature.inputs))
    both = fit_correction(data, 7)
    monkeypatch.setattr(_correction, "_PAIRS", _correction._PAIRS[:1])
    first = fit_correction(data, 7)
    assert both is not None
    assert first is not None
    assert both[0].hash == first[0].hash


def test_weights_are_those_of_a_slow_descent() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal((0.5, 0.2, 0.8), 1, (61, 3))
    turned = [-1.0 if row % 2 else 1.0 for row in range(61)]
    weights = [0.0, 0.0, 0.0, 0.0]  # the last is that of the intercept
    costs = [1 / 900, 0.3 * 61, 0.3 * 61, 0.0]
    for _ in range(4_000):
        slope = [cost * weight for cost, weight in zip(costs, weights, strict=True)]
        for row, side in zip(table.tolist(), turned, strict=True):
            values = [*row, side]
            total = sum(v * w for v, w in zip(values, weights, strict=True))
            for index, value in enumerate(values):
                slope[index] -= value / (1 + math.exp(total))
        weights = [weight - 0.02 * step for weight, step in zip(weights, slope, strict=True)]
    assert _fit(table, 0.3) == pytest.approx(weights[:3], abs=1e-6)


def test_pairs_of_a_correction_are_few_and_hard_for_the_start() -> None:
    part = read(build_log(lambda v: v["a"])).parts["search"]
    assert isinstance(part.goal, LabelGoal)
    start = np.random.default_rng(4).random(len(part.log.recall))
    goal = LabelGoal.__new__(LabelGoal)
    rows = np.flatnonzero(np.arange(len(start)) % 20 < np.arange(len(start)) // 20 % 10)
    goal.__dict__ = {**part.goal.__dict__, "rows": rows}
    sides = _pair(part._replace(goal=goal), np.random.default_rng(0), 10_000_000, start, 15, 10)
    pairs = set(zip(*(side.tolist() for side in sides), strict=True))
    wanted, recall, random = set(rows.tolist()), part.log.recall.tolist(), []
    for first in range(0, len(recall), 20):
        own = range(first, first + 20)
        assert len(set(recall[first : first + 20])) == 1
        better = [i for i in own if i in wanted][:5]
        others = sorted((i for i in own if i not in wanted), key=lambda i: -start[i])
        for i in own:
            paired = {worse for row, worse in pairs if row == i}
            assert set(others[:15]) <= paired <= set(others) if i in better else not paired
            random += [worse in paired for worse in others[15:] if i in better]
    assert 0 < sum(random) < len(random)


def test_a_correction_of_noise_is_not_better_on_clusters_left_out() -> None:
    found = []
    for seed in range(8):
        noise = np.random.default_rng((5, seed)).random
        data = read(build_log(lambda v, noise=noise: 0.05 * v["a"] + noise(v["a"].shape), seed, 60))
        found.append(fit_correction(data, seed))
    assert found.count(None) >= 3  # with the clusters that are scored in the fit, all are better


@pytest.mark.parametrize(
    "start",
    [
        "(fn [a b] (if (> a 0.5) b (- 1 a)))",
        "(fn [a] (* (param :steep 2.0 :low 0 :high 3) (min-max a)))",
        "(fn [a b] (let [both (+ a b)] (/ both 2)))",
        "(fn [a] 1)",
    ],
)
def test_a_correction_adds_to_any_start(start: str) -> None:
    slates, labels = build_log(lambda v: v["b"] - v["c"] + 0.3 * v["a"])
    data = read_data(slates, start, labels, "recall@3", [], 0, **SETTINGS)
    fitted = fit_correction(data, 0)
    assert fitted is not None
    policy, left_out = fitted
    for part in data.parts.values():
        assert score_program(part, policy, (), "").value > 0.8
    # Fits to fewer clusters are about as good, and the search part's own value is not reported.
    assert left_out.value > 0.8
    assert len(left_out.outcome) == len(data.parts["selection"].log)
    search_part, state = open_search(data, 0, 60)
    assert _correct(data, search_part, state).notes == data.notes
    assert _select(data, state)[0].policy.hash == policy.hash


def test_a_correction_is_a_candidate_and_no_parent() -> None:
    found = search(build_log(lambda v: v["a"] + v["b"] - v["c"]), budget=700)
    (row,) = found.frame.filter(operator="correction").to_dicts()
    assert found.front["operator"].to_list()[1] == "correction"
    assert row["parents"] == [found.front["hash"][0]]
    assert row["hash"] in found.lineage["hash"].to_list()
    assert row["hash"] not in found.lineage["parents"].explode().to_list()
    assert found.frame.equals(found.frame.sort("value", descending=True, maintain_order=True))


def test_a_correction_that_is_worse_on_an_anchor_is_left_out() -> None:
    slates, labels = build_log(lambda v: v["b"])
    # One recall wants what the start ranks first; the others want what another feature ranks first.
    odd = slates.candidates.filter(decision=7).collect().sort("a", descending=True)["memory_id"][:2]
    labels = labels.with_columns(
        memory_id=pl.when(pl.col("decision") == 7)
        .then(pl.Series([*odd] * (labels.height // 2)))
        .otherwise("memory_id")
    )
    for anchors in ([], [7]):
        data = read_data(slates, START, labels, "recall@3", anchors, 0, **SETTINGS)
        space, state = open_search(data, 0, 60)
        _correct(data, space, state)
        assert bool(state.correction) != bool(anchors)


def test_a_correction_that_is_too_long_is_noted() -> None:
    slates, labels = build_log(lambda v: v["b"])
    long = {"b": "b" * 8_000, "c": "c" * 8_000}
    slates = memlab.Slates.from_frames(
        slates.decisions.collect(),
        slates.candidates.collect().rename(long),
        pl.DataFrame(schema={"decision": pl.Int64, "memory_id": pl.Int64}),
        empty="keep",
    )
    data = read((slates, labels))
    space, state = open_search(data, 0, 60)
    (note,) = set(_correct(data, space, state).notes) - set(data.notes)
    assert note.startswith("No fitted sum of features was added to the start: ")
    assert not state.correction
