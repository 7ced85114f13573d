"""Plans: the design that shows where policies differ needs the fewest recalls, and says how many."""

import numpy as np
import polars as pl
import pytest
from probed_logs import World

import memlab
from memlab.errors import InputError
from tests.displays import html_of

WORLD = World(clusters=30, recalls=30, pool=30, limit=5, depth=25, rate=0.5, seed=3)


@pytest.fixture(scope="module")
def plan():
    return memlab.plan(WORLD.slates(), ["good", "noise"])


def design(plan, policy, name):
    return next(
        row
        for row in plan.frame.iter_rows(named=True)
        if (row["policy"], row["design"]) == (policy, name)
    )


@pytest.mark.long
def test_a_challenge_needs_fewer_recalls_than_probes(plan):
    probes, extra, more = (
        design(plan, "good", name)["one_look"]
        for name in ("probes as logged", "challenge, 1 extra", "challenge, 3 extra")
    )
    assert extra < probes / 3
    assert more <= extra
    assert plan.best["good"].startswith("challenge")


@pytest.mark.long
def test_watching_costs_about_twice_the_recalls_of_one_look(plan):
    row = design(plan, "good", "challenge, 1 extra")
    assert 1.2 * row["one_look"] < row["every_look"] < 4.5 * row["one_look"]


@pytest.mark.long
def test_the_half_width_is_that_of_logs_of_the_design(plan):
    """Logs of 400 recalls with one extra item, drawn from what is truly worth what."""
    dice, found = np.random.default_rng(1), []
    head = WORLD.rank <= WORLD.limit
    order = np.argsort(-WORLD.good, axis=1, kind="stable")[:, : WORLD.limit]
    own = np.zeros_like(head)
    np.put_along_axis(own, order, True, axis=1)
    for _ in range(120):
        total = []
        for recall in dice.integers(WORLD.count, size=400):
            reward = dice.random(WORLD.pool) < WORLD.truth[recall]
            only, lost = np.flatnonzero(own[recall] & ~head[recall]), head[recall] & ~own[recall]
            drawn = reward[dice.choice(only)] * len(only) if len(only) else 0.0
            total.append(drawn - reward[lost].sum())
        found.append(np.mean(total))
    row = design(plan, "good", "challenge, 1 extra")
    assert row["half_width"] == pytest.approx(1.96 * np.std(found), rel=0.2)
    assert row["difference"] == pytest.approx(np.mean(found), abs=0.1)


def test_the_recall_cost_is_that_of_what_is_shown(plan):
    slates = WORLD.slates()
    candidates = slates.candidates.collect()
    rewards = slates.feedback.collect().filter(pl.col("reward") > 0)
    useful = rewards.group_by("decision").agg("memory_id").rows()

    def top(value):
        ranked = candidates.sort(value).group_by("decision", maintain_order=True).head(WORLD.limit)
        return dict(ranked.group_by("decision").agg("memory_id").iter_rows())

    old, new = top(pl.col("rank")), top(-pl.col("good"))
    exchanged, drafted = [], []
    for key, ids in useful:
        first = [id for id in old[key] if id not in new[key]]
        second = [id for id in new[key] if id not in old[key]]
        lost = len({*first} & {*ids}) - len({*second} & {*ids})
        exchanged.append(lost / len(ids))
        # each policy fills half of the disputed positions, best first; a coin decides about the middle
        chances = np.clip(len(first) / 2 - np.arange(len(first)), 0, 1)
        kept, added = (
            sum(chance for id, chance in zip(own, chances, strict=True) if id in ids)
            for own in (first, second)
        )
        drafted.append((len({*first} & {*ids}) - kept - added) / len(ids))
    costs = {
        name: design(plan, "good", name)["recall_cost"]
        for name in plan.frame["design"].unique().to_list()
    }
    assert costs["A/B by recall"] == costs["challenge by lot"]
    assert costs["A/B by recall"] == pytest.approx(np.mean(exchanged) / 2)
    assert costs["challenge by draft"] == pytest.approx(np.mean(drafted))
    assert 0 < costs["challenge, 1 extra"] < costs["challenge, 3 extra"]


def test_of_a_small_difference_it_gives_the_half_width_and_no_promise(plan):
    row = design(plan, "noise", "probes as logged")
    assert row["half_width"] > 0
    assert row["one_look"] is None or row["one_look"] > 1000


def test_a_plan_renders_and_names_its_reference(plan):
    assert "Compared with logged" in repr(plan)
    assert "challenge by lot" in html_of(plan)
    assert plan.frame.columns[:3] == ["policy", "design", "extra"]


@pytest.mark.long
def test_without_rewards_there_is_nothing_to_plan_by():
    frames = WORLD.frames()
    few = {"feedback": frames["feedback"].head(5)}
    with pytest.raises(InputError, match="no experiment can be planned"):
        memlab.plan(WORLD.slates(**few), ["good"], missing="censor")


@pytest.mark.long
def test_a_plan_of_the_baseline_alone_asks_for_a_second_policy():
    log = pl.read_parquet(memlab.examples.LOG)
    slates = memlab.Slates.from_wide(
        log,
        decision="query_id",
        item="memory_id",
        shown="rank",
        reward="clicked",
        propensity="p",
        limit=3,
        scores=["new_score"],
    )
    with pytest.raises(InputError, match="Pass a second policy"):
        memlab.plan(slates, ["new_score"], missing="zero")
