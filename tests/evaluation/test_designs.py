"""Designs of a challenge: what a draft says, observations of independent groups, and logs of earlier versions."""

import itertools
import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from test_verdicts import challenged

import memlab
from memlab.errors import InputError
from memlab.kernel.policies import Challenge
from memlab.kernel.recall import drafted, draw_challenge, generator
from memlab.science.evaluation._duels import Course, find_duels, observe_items
from memlab.science.evaluation._evidence import gather_evidence
from memlab.science.evaluation._log import read_log
from memlab.science.evaluation._measure import compare
from memlab.science.evaluation._prepared import check_settings

COUNT = 9
HEADS = st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=6, unique=True)
PACK = memlab.load_pack("companion")


def log_of(decisions, exposures, rewards):
    """Return a log from the ``challenge`` and probabilities of each recall, and the items that it showed."""
    number = range(len(decisions))
    return memlab.Slates(
        pl.DataFrame(
            [
                (n, COUNT, "lot", "live", "a", json.dumps(challenge))
                for n, (challenge, _) in zip(number, decisions, strict=True)
            ],
            schema=["decision", "limit", "sampler", "pack", "pack_hash", "challenge"],
            orient="row",
        ).lazy(),
        pl.DataFrame(
            [
                (n, item, float(chance[item]), item + 1)
                for n, (_, chance) in zip(number, decisions, strict=True)
                for item in range(COUNT)
            ],
            schema=["decision", "memory_id", "propensity", "rank"],
            orient="row",
        ).lazy(),
        pl.DataFrame(
            [
                (n, item, position, float(decisions[n][1][item]))
                for n, items in zip(number, exposures, strict=True)
                for position, item in enumerate(items, start=1)
            ],
            schema=["decision", "memory_id", "position", "propensity"],
            orient="row",
        ).lazy(),
        pl.DataFrame(
            [
                (n, item, float(reward[item]))
                for n, items, reward in zip(number, exposures, rewards, strict=True)
                for item in items
            ],
            schema=["decision", "memory_id", "reward"],
            orient="row",
        ).lazy(),
    )


def observe(log):
    """Return the duel of a log and its observations."""
    settings = check_settings(None, "zero", "snips", 0.95, (0.0, 1.0), None, None)
    (duel,) = find_duels(read_log(log, zero=True, reward_range=(0.0, 1.0)), None)
    ones = np.ones(len(duel.log))
    evidence = gather_evidence(
        duel.log, settings, np.zeros((len(duel.log.recall), 0)), answered=ones[duel.log.recall]
    )
    return duel, observe_items(
        duel, evidence, compare(evidence, duel.own, duel.base), ones, settings
    )


@pytest.mark.long
@given(
    HEADS,
    HEADS,
    st.sampled_from(
        [("extra", 1), ("extra", 2), ("extra", "auto"), ("lot", 1), ("draft", "auto"), ("draft", 2)]
    ),
    st.lists(st.floats(0, 1), min_size=COUNT, max_size=COUNT),
)
@examples(60)
def test_observations_are_unbiased_and_within_bounds_over_all_draws(head, other, design, rewards):
    challenge = Challenge(PACK, design[0], design[1], 1.0, 1, 0, "")
    draw = draw_challenge(np.array(head), [np.array(other)], COUNT, [challenge], generator(7, 0))
    logged = {
        "design": design[0],
        "extra": 0 if design[1] == "auto" else design[1],
        "draws": draw.draws,
        "live": head,
        "heads": {"b": {"hash": "h", "ids": other}},
        "groups": draw.groups,
    }
    certain = set(np.flatnonzero(draw.propensity == 1)) - set(itertools.chain(*draw.groups))
    outcomes = list(itertools.product(*draw.groups))
    shown = [[*map(int, certain), *outcome] for outcome in outcomes]
    log = log_of([(logged, draw.propensity)] * len(outcomes), shown, [rewards] * len(outcomes))
    duel, observations = observe(log)
    assert (observations.lower >= observations.floor - 1e-12).all()
    assert (observations.upper <= observations.ceiling + 1e-12).all()
    chances = [math.prod(draw.propensity[item] for item in outcome) for outcome in outcomes]
    lower, upper, *_ = observations.sums()
    live, own = (
        drafted(head, other)
        if duel.kind == "draft"
        else (set(head) - set(other), set(other) - set(head))
    )
    truth = sum(rewards[item] for item in own) - sum(rewards[item] for item in live)
    # Items that the design cannot show may have any reward: an empty active result has room for none.
    assert math.fsum(np.multiply(chances, lower)) <= truth + 1e-9
    assert math.fsum(np.multiply(chances, upper)) >= truth - 1e-9
    if all(draw.propensity[item] > 0 for item in [*live, *own]):
        assert math.fsum(np.multiply(chances, lower)) == pytest.approx(truth, abs=1e-9)
        assert lower == pytest.approx(upper)


@pytest.mark.long
def test_a_group_is_an_observation_of_its_own():
    duel, observations = observe(challenged("lot", recalls=50))
    assert np.bincount(observations.recall).tolist() == [2] * 50
    assert observations.floor.min() >= -2
    assert observations.ceiling.max() <= 2
    process = observations.process(Course.of(duel.log, clustered=False), 1.0, 2.0)
    assert process.sizes.sum() == pytest.approx(50)
    assert len(process.bounds(0.95).low) == 50


@pytest.mark.long
def test_a_log_of_an_earlier_version_has_the_verdict_of_its_time():
    """The figures are those of the version before groups were logged."""
    dice, decisions, exposures, rewards = np.random.default_rng(5), [], [], []
    live, own = [0, 1, 2, 3], [2, 4, 3, 5]
    chance = np.array([0.5, 0.5, 1, 1, 0.5, 0.5, 0, 0, 0])
    logged = {"design": "lot", "draws": 2, "live": live, "heads": {"b": {"hash": "h", "ids": own}}}
    for _ in range(400):
        drawn = dice.permutation([0, 1, 4, 5])[:2].tolist()
        decisions.append((logged, chance))
        exposures.append([2, 3, *drawn])
        rewards.append(
            (dice.random(COUNT) < np.array([0.2, 0.2, 0.3, 0.3, 0.6, 0.6, 0, 0, 0])).astype(float)
        )
    log = log_of(decisions, exposures, rewards)
    duel, observations = observe(log)
    assert (duel.scale, duel.kind, len(observations.recall)) == (1.0, "", 400)
    track = memlab.verdict(log, missing="zero")["b"].track
    expected = {
        99: (0.1540014689638792, 1.3196963165826852),
        399: (0.5444784163499079, 1.0120754760617157),
    }
    for row, ends in expected.items():
        assert (track["low"][row], track["high"][row]) == pytest.approx(ends, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("gain", [0.4, -0.2])
def test_a_draft_says_which_pack_is_preferred_and_no_value(gain):
    (result,) = verdicts = memlab.verdict(challenged("draft", extra="auto", gain=gain))
    assert result.preference
    assert result.better == ("b" if gain > 0 else "live")
    assert "is preferred to" in result.title
    assert "rewards per recall" not in result.sentence
    assert "Credit per recall" in result.details
    assert any("says which pack is better, not by how much" in note for note in verdicts.notes)
    assert verdicts.frame["preference"].to_list() == [True]


@pytest.mark.long
def test_extra_items_of_a_draft_estimate_the_difference():
    result = memlab.verdict(challenged("draft", extra=2, recalls=400))["b"]
    assert not result.preference
    assert result.unsupported == 0
    assert result.difference.low <= 0.8 <= result.difference.high


@pytest.mark.long
def test_a_draft_and_another_design_are_two_comparisons():
    logs = challenged("draft", extra="auto", recalls=60), challenged("extra", recalls=60)
    shift = [
        table.with_columns(pl.col("decision") + 60)
        for table in (logs[1].decisions, logs[1].candidates, logs[1].exposures, logs[1].feedback)
    ]
    tables = (logs[0].decisions, logs[0].candidates, logs[0].exposures, logs[0].feedback)
    log = memlab.Slates(
        *(pl.concat([first, second]) for first, second in zip(tables, shift, strict=True))
    )
    result = memlab.verdict(log)["b"]
    assert (result.recalls, result.number, result.preference) == (60, 2, False)


def test_a_group_of_which_two_items_were_shown_is_refused_by_name():
    log = challenged("lot", recalls=20)

    def widen(text):
        challenge = json.loads(text)
        challenge["groups"] = [sorted(itertools.chain(*challenge["groups"]))]
        return json.dumps(challenge)

    decisions = log.decisions.collect()
    decisions = decisions.with_columns(
        challenge=pl.Series(
            [widen(text) if n == 7 else text for n, text in enumerate(decisions["challenge"])]
        )
    )
    with pytest.raises(InputError, match="recall 7 names a group of which 2 items were shown"):
        memlab.verdict(memlab.Slates(decisions.lazy(), log.candidates, log.exposures, log.feedback))


def test_a_draft_refuses_a_second_challenger(lab):
    lab.challenge("companion", design="draft")
    with pytest.raises(
        InputError, match='design="draft" compares two packs, and companion is a challenger'
    ):
        lab.challenge("cascade", design="draft")
    assert [challenge.name for challenge in lab.policies.challenges] == ["companion"]


def test_hits_say_that_their_first_result_was_drawn(lab):
    lab.remember([f"note {n} on the {'boat' if n % 2 else 'rope'}" for n in range(12)])
    lab.challenge(
        "(pack old :inherits memlab) (defpolicy recall-score [similarity] (- similarity))",
        design="draft",
    )
    assert "the first result was drawn at random" in repr(lab.recall("boat", limit=4))
    lab.policies.end_challenge("old")
    assert "drawn at random" not in repr(lab.recall("boat", limit=4))


def test_auto_is_logged_as_zero_and_survives_reopening(disk):
    with disk() as lab:
        assert lab.challenge("companion").extra == "auto"
    with disk() as lab:
        (challenge,) = lab.policies.challenges
        assert challenge.extra == "auto"
        assert "up to 3 for 10 results" in repr(challenge)
