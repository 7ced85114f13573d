"""Positions are tested within the slate: against slow references, on pools whose scores mean different things."""

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats
from test_verdicts import challenged

import memlab
from memlab import Slates
from memlab.science.evaluation._tests import falling_p, position_p, redundancy_p, score_strata

STEEP = np.array([1.0, 0.75, 0.55, 0.42, 0.34, 0.28, 0.24])


def slates_of(seed, recalls, seen=None, pool=20, head=5):
    """Return scores, ranks, positions and rewards of slates in which a score means more for one query than for another.

    The reward depends on the standing of an item in its pool alone, and on ``seen`` by position.
    """
    dice = np.random.default_rng(seed)
    standing = dice.normal(size=(recalls, pool))
    score = dice.normal(0, 5, (recalls, 1)) + dice.lognormal(0, 1, (recalls, 1)) * standing
    rank = np.argsort(np.argsort(-score, axis=1), axis=1)
    position = np.where(rank < head, rank + 1, 0)
    for row in range(recalls):
        for extra in range(2):
            below = np.flatnonzero(position[row] == 0)
            position[row, dice.choice(below)] = head + extra + 1
    worth = 1 / (1 + np.exp(-1.5 * standing))
    if seen is not None:
        worth = worth * np.r_[1.0, seen][position]
    return score, rank, position, (dice.random(worth.shape) < worth).astype(float)


def p_of(score, rank, position, reward):
    recall = np.repeat(np.arange(len(score)), score.shape[1])
    strata, shown = score_strata(score.ravel(), rank.ravel(), recall), position.ravel() > 0
    parts = strata, position.ravel(), reward.ravel(), recall
    return position_p(*(values[shown] for values in parts))


def test_strata_compare_items_with_their_own_slate_and_add_up_over_parts_of_a_log():
    score, rank, _, _ = slates_of(1, 40)
    recall = np.repeat(np.arange(40), 20)
    strata = score_strata(score.ravel(), rank.ravel(), recall)
    moved = (score * 3 - 7).ravel()
    assert (score_strata(moved, rank.ravel(), recall) == strata).all()
    halves = [
        score_strata(score[part].ravel(), rank[part].ravel(), np.repeat(np.arange(20), 20))
        for part in (slice(0, 20), slice(20, 40))
    ]
    assert (np.concatenate(halves) == strata).all()
    for row in range(40):
        scaled = (score[row] - score[row].mean()) / score[row].std()
        assert strata[row * 20 : row * 20 + 20].tolist() == [
            min(max(math.floor((value + 3) / 0.25), 0), 51) for value in scaled
        ]


@pytest.mark.long
def test_the_test_by_strata_is_a_t_test_of_products_of_residuals():
    score, rank, position, reward = slates_of(2, 60, STEEP)
    recall = np.repeat(np.arange(60), 20)
    strata = score_strata(score.ravel(), rank.ravel(), recall).reshape(score.shape)
    shown = [(row, item) for row in range(60) for item in range(20) if position[row, item]]

    def mean(of, at):
        values = [of(*place) for place in shown if strata[place] == strata[at]]
        return sum(values) / len(values)

    sums = [0.0] * 60
    for at in shown:
        off = math.log(position[at]) - mean(lambda *place: math.log(position[place]), at)
        sums[at[0]] += off * (reward[at] - mean(lambda *place: reward[place], at))
    fall = stats.ttest_1samp(sums, 0, alternative="less").pvalue
    assert p_of(score, rank, position, reward) == pytest.approx(min(1.0, 10 * fall / 0.9))


def test_nine_tenths_of_the_error_are_spent_on_a_fall():
    dice = np.random.default_rng(0)
    for shift in (-0.3, 0.0, 0.3):
        sums = dice.normal(shift, 1, 80)
        down, up = (
            stats.ttest_1samp(sums, 0, alternative=side).pvalue for side in ("less", "greater")
        )
        assert falling_p(sums) == pytest.approx(min(1.0, down / 0.9, up / 0.1))
    assert np.isnan(falling_p(np.ones(80)))
    assert np.isnan(falling_p(dice.normal(size=29)))


@pytest.mark.long
def test_scores_that_mean_more_for_one_query_accuse_no_position():
    """Rewards follow the standing within the slate; strata of raw scores rejected most of these logs."""
    sound = [p_of(*slates_of(seed, 300)) for seed in range(40)]
    assert sum(p < 0.01 for p in sound) <= 1
    assert all(p_of(*slates_of(seed, 300, STEEP)) < 0.01 for seed in range(10))


@pytest.mark.long
@pytest.mark.parametrize("order", [["old", "new"], ["new", "old"]])
def test_a_log_without_score_is_tested_by_the_column_that_ranked_it(order):
    score, _, position, reward = slates_of(3, 300, STEEP)
    rows = np.indices(score.shape)
    frame = pl.DataFrame(
        {
            "q": rows[0].ravel(),
            "item": rows[1].ravel(),
            "rank": position.ravel(),
            "clicked": np.where(position > 0, reward, np.nan).ravel(),
            "p": np.where((position > 0) & (position < 6), 1.0, 2 / 15).ravel(),
            "old": score.ravel(),
            "new": np.random.default_rng(4).normal(size=score.size),
        }
    )
    log = Slates.from_wide(
        frame,
        decision="q",
        item="item",
        shown="rank",
        reward="clicked",
        propensity="p",
        limit=5,
        scores=order,
    )
    evaluation = memlab.evaluate(log, order)
    assert {gate.name for row in evaluation.rows for gate in row.closed} >= {"position"}
    unranked = frame.with_columns(old=pl.col("new") * 2)
    log = Slates.from_wide(
        unranked,
        decision="q",
        item="item",
        shown="rank",
        reward="clicked",
        propensity="p",
        limit=5,
        scores=order,
    )
    assert {"position", "redundancy"} <= {
        gate.name for row in memlab.evaluate(log, order).rows for gate in row.untested
    }


@pytest.mark.long
@pytest.mark.parametrize("design", ["extra", "lot"])
def test_packs_that_show_the_same_are_told_so(design, monkeypatch):
    import test_verdicts

    draw = test_verdicts.draw_challenge
    monkeypatch.setattr(
        test_verdicts,
        "draw_challenge",
        lambda live, heads, *rest: draw(live, [live[::-1] for _ in heads], *rest),
    )
    same = challenged(design, examined=STEEP, recalls=200).decisions.collect()
    text = same["challenge"][0]
    live = text[text.index('"live": ') + 8 : text.index("]", text.index('"live": ')) + 1]
    slates = challenged(design, examined=STEEP, recalls=200)
    slates = Slates(
        slates.decisions.with_columns(
            pl.col("challenge").str.replace(r'"ids": \[[^\]]*\]', f'"ids": {live}')
        ),
        slates.candidates,
        slates.exposures,
        slates.feedback,
    )
    (verdict,) = memlab.verdict(slates)
    assert verdict.same == 1
    assert "they show the same in 100% of recalls" in verdict.title
    assert not verdict.closed
    assert (verdict.difference.low, verdict.difference.high) == (0, 0)
    assert "end the challenge" in verdict.sentence


def test_redundancy_is_a_lack_of_variance_of_sums():
    score, rank, position, reward = slates_of(5, 50)
    recall = np.repeat(np.arange(50), 20)
    strata = score_strata(score.ravel(), rank.ravel(), recall)
    shown = position.ravel() > 0
    strata, earned, recall = strata[shown], reward.ravel()[shown], recall[shown]
    residual = [
        value - np.mean([other for other, at in zip(earned, strata, strict=True) if at == mine])
        for value, mine in zip(earned, strata, strict=True)
    ]
    excess = [0.0] * 50
    for row in range(50):
        own = [value for value, at in zip(residual, recall, strict=True) if at == row]
        excess[row] = sum(own) ** 2 - 0.75 * sum(value**2 for value in own)
    less = stats.ttest_1samp(excess, 0, alternative="less").pvalue
    assert redundancy_p(strata, earned, recall) == pytest.approx(less)


def test_one_answer_for_each_query_is_no_redundancy_and_one_for_each_kind_is():
    """Half of the recalls show the one item that answers the query; or the second item of a kind earns nothing."""
    dice = np.random.default_rng(6)
    recall, strata = np.repeat(np.arange(300), 6), np.tile(np.arange(6), 300)
    answers = (dice.integers(0, 24, (300, 1)) == np.arange(6)).astype(float)
    assert redundancy_p(strata, answers.ravel(), recall) > 0.5
    earned, kind = dice.random((300, 6)) < 0.6, dice.integers(0, 3, (300, 6))
    for row, item in np.ndindex(300, 6):
        earned[row, item] &= not (earned[row, :item] & (kind[row, :item] == kind[row, item])).any()
    assert redundancy_p(strata, earned.ravel().astype(float), recall) < 0.001


def test_users_of_two_tastes_do_not_close_the_gate():
    """Two of five users like what the others do not; rewards of items add up."""
    dice = np.random.default_rng(7)
    recall, strata = np.repeat(np.arange(600), 6), np.tile(np.arange(6), 600)
    taste = np.where(np.arange(600)[:, None] % 5 < 2, np.arange(6) % 2 == 0, np.arange(6) % 2 == 1)
    closed = [
        redundancy_p(strata, (dice.random((600, 6)) < 0.15 + 0.5 * taste).ravel() * 1.0, recall)
        < 0.001
        for _ in range(50)
    ]
    assert sum(closed) <= 1
