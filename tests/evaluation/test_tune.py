"""Parameters searched without gradients, and the value of searching on what it has not seen."""

import numpy as np
import polars as pl
import pytest
from probed_logs import World

from memlab.errors import InputError, RenamedWarning, UnknownName
from memlab.science.evaluation import evaluate, judge, measure, tune
from tests.displays import html_of

WORLD = World(clusters=12, recalls=60, seed=5)
# good - plain is a third of the true quality: the more of it, the better
HELPS = "(fn [plain good] (+ plain (* (param :w 0 :low 0 :high 6) (- good plain))))"
IDLE = "(fn [plain noise] (+ (* (param :w 1 :low 0.5 :high 2) plain) (* (param :free 0) (- noise noise))))"


def labels_of(world: World) -> pl.DataFrame:
    best = np.argsort(-world.truth, axis=1)[:, :3]
    decision = np.repeat(np.arange(1, world.count + 1), 3)
    return pl.DataFrame({"decision": decision, "memory_id": best.ravel() + 1, "relevance": 1})


@pytest.fixture(scope="module")
def labelled():
    return tune(
        WORLD.slates(),
        HELPS,
        metric="recall@5",
        labels=labels_of(WORLD),
        budget=60,
        folds=4,
        seed=3,
    )


@pytest.mark.long
def test_a_parameter_that_helps_is_found_and_helps_where_it_was_not_searched(labelled):
    assert labelled.params["w"] > 2
    assert labelled.gain.low > 0
    assert labelled.value >= labelled.held_out.value - 0.02
    assert "The fit improves the policy" in labelled.verdict
    assert labelled.policy.params["w"].value == labelled.params["w"]
    assert labelled.metric == "recall@5"


@pytest.mark.long
def test_the_held_out_value_is_that_of_each_fold_under_the_others_parameters(labelled):
    by_fold = labelled.by_fold
    assert by_fold["clusters"].sum() == 12
    mean = (by_fold["value"] * by_fold["clusters"]).sum() / 12
    assert labelled.held_out.value == pytest.approx(mean)
    base = (by_fold["default"] * by_fold["clusters"]).sum() / 12
    assert labelled.gain.value == pytest.approx(mean - base)
    assert labelled.default == pytest.approx(base)


@pytest.mark.long
def test_no_trial_is_better_than_the_one_that_was_chosen(labelled):
    last = labelled.trials.filter(pl.col("search") == -1)
    assert last["value"].max() == pytest.approx(labelled.value)
    assert labelled.trials["w"].is_between(0, 6).all()
    assert set(labelled.trials["search"]) == {0, 1, 2, 3, -1}


@pytest.mark.long
def test_evaluate_gives_the_tuned_policy_the_same_value(labelled):
    ev = evaluate(WORLD.slates(), [labelled.policy], labels=labels_of(WORLD))
    assert next(row for row in ev.rows if row.kind == "re-scored").metrics[
        "recall@5"
    ] == pytest.approx(labelled.value)


@pytest.mark.long
def test_equal_seeds_give_equal_results(labelled):
    again = tune(
        WORLD.slates(),
        HELPS,
        metric="recall@5",
        labels=labels_of(WORLD),
        budget=60,
        folds=4,
        seed=3,
    )
    assert again.trials.equals(labelled.trials)
    assert again.policy.hash == labelled.policy.hash


@pytest.mark.long
def test_on_feedback_the_search_stays_where_something_is_known():
    result = tune(WORLD.slates(), HELPS, metric="value", budget=40, folds=3, missing="zero")
    assert result.metric == "value, at worst"
    assert result.gain.value > 0
    wild = tune(
        WORLD.slates(),
        "(fn [plain far] (+ plain (* (param :w 0 :low 0 :high 5) far)))",
        metric="value",
        budget=40,
        folds=3,
    )
    assert wild.params["w"] < 1  # beyond it, the policy shows what the log never could


@pytest.mark.long
def test_a_parameter_that_decides_nothing_gains_nothing():
    result = tune(
        WORLD.slates(), IDLE, metric="recall@5", labels=labels_of(WORLD), budget=20, folds=2
    )
    assert list(result.params) == ["w"]  # free has no finite bounds
    assert result.gain.value == 0
    assert "changes nothing" in result.verdict
    both = tune(
        WORLD.slates(),
        IDLE,
        metric="recall@5",
        labels=labels_of(WORLD),
        budget=20,
        folds=2,
        bounds={"free": (0, 1)},
    )
    assert set(both.params) == {"free", "w"}


def test_the_frame_and_the_page(labelled):
    assert labelled.frame.columns == ["param", "default", "low", "high", "value", "least", "most"]
    assert "held out in 4 folds" in repr(labelled)
    assert "<script" not in html_of(labelled)


@pytest.mark.parametrize(
    ("policy", "more", "message"),
    [
        ("(fn [plain] plain)", {}, "no (param"),
        ("(fn [plain] (* (param :w 1) plain))", {}, "No parameter of"),
        (HELPS, {"bounds": {"w": (-1, 1)}}, "The bounds of w must be within 0 and 6"),
        (HELPS, {"folds": 1}, "folds is a whole number of at least 2"),
        (HELPS, {"budget": 3}, "budget is a whole number from 20 to"),
        ("(fn [similarity] (* (param :w 1 :low 0 :high 2) similarity))", {}, "similarity, which is not in the log"),
    ],
)  # fmt: skip
def test_searches_that_are_refused(policy, more, message):
    with pytest.raises(InputError) as caught:
        tune(WORLD.slates(), policy, metric="value", **more)
    assert message in str(caught.value)


def test_unknown_names():
    with pytest.raises(UnknownName, match="parameter"):
        tune(WORLD.slates(), HELPS, metric="value", bounds={"v": (0, 1)})


def test_a_single_cluster_cannot_be_held_out():
    with pytest.raises(InputError, match="no part can be held out"):
        tune(World(clusters=1, recalls=20).slates(), HELPS, metric="value")


@pytest.mark.parametrize(
    ("named", "labelled", "choices"),
    [
        ({}, True, ["recall, recall_any, recall_all, mrr, map, ndcg", 'metric="recall@10"']),
        ({}, False, ['metric="value" or "order"']),
        ({"metric": "value"}, True, ["not 'value'", 'metric="recall@10"']),
        ({"metric": "recall@5"}, False, ["not 'recall@5'", 'metric="value"']),
    ],
)
def test_the_metric_is_named_by_the_caller(named, labelled, choices):
    """The former default was recall at the smallest limit of the log, which a setting may have made five."""
    labels = labels_of(WORLD) if labelled else None
    with pytest.raises(InputError) as caught:
        tune(WORLD.slates(), HELPS, labels=labels, **named)
    assert all(choice in str(caught.value) for choice in choices)


@pytest.mark.parametrize("name", ["recall@", "precision@5"])
def test_metrics_that_do_not_exist(name):
    with pytest.raises(UnknownName, match="metric"):
        tune(WORLD.slates(), HELPS, metric=name, labels=labels_of(WORLD))


@pytest.mark.long
@pytest.mark.parametrize("name", ["recall@3", "recall@8", "ndcg@4", "mrr@10"])
def test_a_metric_has_the_ranks_that_it_names(name):
    """Whatever the limits of the recalls: the logged ones are five."""
    result = tune(WORLD.slates(), HELPS, metric=name, labels=labels_of(WORLD), budget=20, folds=2)
    assert result.metric == name
    wanted = np.argsort(-WORLD.truth, axis=1)[:, :3]
    ranking = np.argsort(-WORLD.plain, axis=1, kind="stable")
    judged = judge(
        [[str(item) for item in items] for items in ranking.tolist()],
        [{str(item) for item in items} for items in wanted.tolist()],
        depth=10,
    )
    assert result.default == pytest.approx(measure(judged, name).mean())


@pytest.mark.long
def test_the_former_name_of_the_metric_works_with_a_warning():
    with pytest.warns(RenamedWarning, match="metric="):
        tune(WORLD.slates(), HELPS, goal="order", budget=20, folds=2)
