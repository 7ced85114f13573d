"""What a log cannot say is asked about, however the question is put; and a gate closes on its own fault alone."""

import numpy as np
import polars as pl
import pytest
from probed_logs import World
from test_verdicts import challenged

import memlab
from memlab.errors import InputError


def closed(ev):
    (good,) = (row for row in ev.rows if row.policy == "good")
    return {gate.name for gate in good.closed}


@pytest.mark.parametrize("challenger", [None, "b"])
def test_the_meaning_of_missing_feedback_is_required_for_one_challenger_and_for_all(challenger):
    full = challenged("extra", recalls=40)
    answered = full.feedback.filter(pl.col("memory_id") > 3)
    few = memlab.Slates(full.decisions, full.candidates, full.exposures, answered)
    with pytest.raises(InputError, match="set what missing feedback counts as"):
        memlab.verdict(few, challenger)


@pytest.mark.parametrize("against", [True, False])
def test_rewards_that_move_against_each_other_are_redundant_and_those_of_one_mood_are_not(against):
    world, dice = World(clusters=1, recalls=200, spread=0), np.random.default_rng(3)
    if against:  # one item of those shown is of use, and makes the others worthless
        chosen = np.where(world.shown, dice.random(world.shown.shape), 0).argmax(axis=1)
        world.reward = (np.arange(world.pool) == chosen[:, None]).astype(float)
    else:
        world.reward = np.repeat(dice.integers(0, 2, (world.count, 1)), world.pool, 1).astype(float)
    result = closed(memlab.evaluate(world.slates(), ["good"], cluster="decision"))
    assert ("redundancy" in result) == against


def test_recalls_with_more_answers_than_others_do_not_thereby_earn_alike():
    world = World(clusters=1, recalls=240, spread=0)
    frames = world.frames()
    dice = np.random.default_rng(2)
    kept = (pl.col("decision") <= 120) | pl.Series(dice.random(len(frames["feedback"])) < 0.3)
    slates = world.slates(**{**frames, "feedback": frames["feedback"].filter(kept)})
    result = closed(memlab.evaluate(slates, ["good"], cluster="decision", missing="censor"))
    assert "independence" not in result


@pytest.mark.long
def test_the_heads_of_a_third_pack_count_for_neither_of_the_two(lab, clock):
    lab.remember([f"note {number} on the tide" for number in range(20)])
    for pack in ("words", "other"):
        lab.challenge(
            f'(pack {pack} "Words.") (defpolicy recall-score [lexical] lexical)', design="ab"
        )
    for number in range(90):
        clock.advance(hours=1)
        for hit in lab.recall(f"note {number % 20}", limit=2):
            lab.feedback(hit, "success")
    for found in lab.verdict():
        assert "balance" not in {gate.name for gate in found.closed}
