"""Verdicts on simulated logs of a challenge: random positions, blocks that belong together, long result lists."""

import json
import re

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import InputError
from memlab.kernel.policies import Challenge
from memlab.kernel.recall import draw_challenge
from memlab.science.evaluation._duels import Course
from memlab.science.evaluation._log import read_log
from memlab.science.evaluation._position import lot_position_p

SAMPLERS = {"extra": "challenge", "lot": "lot", "draft": "draft", "ab": "ab"}


def challenged(
    design,
    *,
    recalls=300,
    limits=None,
    examined=None,
    gain=0.4,
    users=None,
    seed=0,
    within=False,
    extra=1,
    grouped=True,
):
    """Simulate a challenge: the live pack shows the first items, the challenger every second one, with better rewards.

    ``limits`` (int[recalls]) are result counts other than 4; ``seen`` is how often each position is looked at.
    With ``within`` the challenger shows all but the last of what the live pack shows. Without ``grouped`` the log is that
    of an earlier version, which did not record the groups of its draws.
    """
    dice, pack = np.random.default_rng(seed), memlab.load_pack("companion")
    limits = np.full(recalls, 4) if limits is None else limits
    rows = {"decisions": [], "candidates": [], "exposures": [], "feedback": []}
    for number, limit in enumerate(limits.tolist()):
        count = 2 * limit
        live = np.arange(limit)
        own = live[:-1] if within else np.arange(0, count, 2)
        challenge = Challenge(pack, design, extra, 1.0, 1, 0, "")
        shown, _, chance, draws, whose, groups = draw_challenge(
            live, [own], count, [challenge], dice
        )
        logged = {
            "design": design,
            "draws": draws,
            "live": live.tolist(),
            "heads": {"b": {"hash": "h", "ids": own.tolist()}},
        }
        if design == "ab":
            logged |= {"whose": ("", "b")[whose], "shares": {"": 0.5, "b": 0.5}}
        elif grouped:
            logged |= {"groups": groups, "extra": 0 if extra == "auto" else extra}
        user = str(number if users is None else users[number])
        rows["decisions"].append(
            (number, limit, SAMPLERS[design], "live", "a", json.dumps(logged), user)
        )
        rows["candidates"] += [
            (number, item, chance[item], item + 1, item) for item in range(count)
        ]
        for index, item in enumerate(shown.tolist()):
            rows["exposures"].append((number, item, index + 1, chance[item]))
            worth = (0.2 + gain * (item % 2 == 0)) * (1.0 if examined is None else examined[index])
            rows["feedback"].append((number, item, float(dice.random() < worth)))
    names = {
        "decisions": ["decision", "limit", "sampler", "pack", "pack_hash", "challenge", "cluster"],
        "candidates": ["decision", "memory_id", "propensity", "rank", "group"],
        "exposures": ["decision", "memory_id", "position", "propensity"],
        "feedback": ["decision", "memory_id", "reward"],
    }
    frames = [
        pl.DataFrame(rows[table], schema=columns, orient="row").lazy()
        for table, columns in names.items()
    ]
    return memlab.Slates(*frames)


@pytest.mark.long
@pytest.mark.parametrize("design", ["extra", "lot", "ab"])
def test_the_better_pack_is_found_under_each_design(design):
    result = memlab.verdict(challenged(design))["b"]
    assert result.closed == ()
    assert result.better == "b"
    assert result.difference.low <= 0.8 <= result.difference.high


@pytest.mark.long
def test_under_a_lot_only_what_is_chance_in_a_place_is_tested():
    """What the challenger ranks high stands high and earns more, wherever it stands."""
    assert lot_position_p(read_log(challenged("lot"))) >= 0.001
    steep = np.array([1.0, 1.0, 0.3, 0.1])
    assert lot_position_p(read_log(challenged("lot", examined=steep))) < 0.001
    assert "position" in {
        gate.name for gate in memlab.verdict(challenged("lot", examined=steep))["b"].closed
    }
    assert lot_position_p(read_log(challenged("extra"))) is None


@pytest.mark.long
def test_whole_heads_are_compared_without_sums_over_items(monkeypatch):
    for name in ("gather_evidence", "compare", "measure"):
        monkeypatch.delattr(f"memlab.science.evaluation._verdict.{name}")
    steep = np.array([1.0, 0.5, 0.3, 0.2])
    assert memlab.verdict(challenged("ab", examined=steep))["b"].closed == ()


@pytest.mark.long
def test_large_heads_that_come_again_are_named():
    limits = np.where(np.arange(200) % 10 == 5, 60, 4)
    limits[105] = 80
    result = memlab.verdict(challenged("extra", recalls=200, limits=limits, gain=0.1, seed=1))["b"]
    assert result.better is None
    assert "recall 105 may move the sum by" in result.sentence
    assert "Recall with a smaller limit" in result.faster


@pytest.mark.long
def test_the_interval_of_a_sentence_is_that_of_its_value():
    result = memlab.verdict(challenged("extra", gain=-0.6))["b"]
    assert result.better == "live"
    low, high = map(float, re.search(r"\[(\S+), (\S+)\]", result.sentence).groups())
    assert 0 < low <= -result.difference.value <= high


@pytest.mark.long
def test_no_more_extra_items_are_advised_where_nothing_is_extra():
    assert "Show 2 extra items" in memlab.verdict(challenged("extra", recalls=30))["b"].sentence
    within = memlab.verdict(challenged("extra", recalls=30, within=True))["b"]
    assert within.better is None
    assert "extra item" not in within.sentence


@pytest.mark.long
def test_a_single_large_result_list_does_not_prevent_a_verdict():
    limits = np.where(np.arange(300) == 20, 60, 4)
    assert memlab.verdict(challenged("extra", limits=limits))["b"].better == "b"


def test_a_block_rests_on_blocks_that_ended_before_it_alone():
    log = read_log(challenged("ab", recalls=6, users=["u", "v", "u", "w", "v", "w"]))
    course = Course.of(log, clustered=True)
    assert course.order.tolist() == [0, 2, 1, 4, 3, 5]
    assert course.sizes.tolist() == [2, 2, 2]
    assert course.last.tolist() == [2, 4, 5]
    values = np.array([1.0, 10.0, 2.0, 100.0, 20.0, 200.0])
    assert course.sums(values).tolist() == [3.0, 30.0, 300.0]
    assert course.before(values).tolist() == [0.0, 3.0, 0.0, 33.0, 3.0, 33.0]
    assert Course.of(log, clustered=False).before(values).tolist() == [
        0.0,
        1.0,
        11.0,
        13.0,
        113.0,
        133.0,
    ]


@pytest.mark.long
def test_recalls_that_belong_together_enter_as_one():
    log = challenged("ab", users=np.repeat(np.arange(60), 5).tolist())
    result = memlab.verdict(log, cluster="cluster")["b"]
    assert result.track.height == 60
    assert result.track["recalls"].to_list() == list(range(5, 305, 5))
    assert result.difference.low <= 0.8 <= result.difference.high


def with_challenge(slates, change):
    """Return the log with the text of every challenge changed."""
    decisions = slates.decisions.collect()
    texts = pl.Series([change(text) for text in decisions["challenge"]])
    decisions = decisions.with_columns(challenge=texts).lazy()
    return memlab.Slates(decisions, slates.candidates, slates.exposures, slates.feedback)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not json", "of recall 0 cannot be read"),
        ("[]", "Expected `object`, got `array`"),
        ("{}", "missing required field `live`"),
        ('{"live": [0], "heads": {}}', "No recall of this log was challenged"),
        ('{"live": [0], "heads": 3}', "Expected `object`"),
        (
            '{"live": [0], "heads": {"b": {"ids": ["x"]}}}',
            "names the memory 'x', but memory ids of this log are Int64",
        ),
        ('{"live": [0], "heads": {"b": {"ids": [1]}}, "draws": "a"}', "Expected `float`"),
        (
            '{"live": [0], "heads": {"b": {"ids": [1]}}, "design": "ab"}',
            "the live pack no probability above 0",
        ),
        (
            '{"live": [0], "heads": {"b": {"ids": [1]}}, "shares": {"": 0.5, "b": 0.5}, "whose": "c"}',
            "shows the results of 'c'",
        ),
    ],
)
def test_a_challenge_that_makes_no_sense_is_refused_with_its_recall(text, reason):
    slates = with_challenge(challenged("extra", recalls=3), lambda _: text)
    with pytest.raises(InputError, match=reason):
        memlab.verdict(slates)


@pytest.mark.long
@pytest.mark.parametrize("design", ["extra", "lot"])
@pytest.mark.parametrize("factor", [0.5, 1.3, 2.0])
def test_propensities_that_are_wrong_by_a_factor_give_no_verdict(design, factor):
    """Twice a half is certain, and was not shown."""
    slates, chance = challenged(design), pl.col("propensity")
    wrong = pl.when(chance.is_between(0, 1, closed="none")).then(chance * factor).otherwise(chance)
    tables = (
        table.with_columns(propensity=wrong) for table in (slates.candidates, slates.exposures)
    )
    result = memlab.verdict(memlab.Slates(slates.decisions, *tables, slates.feedback))["b"]
    assert "balance" in {gate.name for gate in result.closed}


@pytest.mark.long
def test_whole_heads_that_were_shown_more_often_than_logged_give_no_verdict():
    def change(text):
        return json.dumps(json.loads(text) | {"shares": {"": 0.8, "b": 0.2}})

    result = memlab.verdict(with_challenge(challenged("ab"), change))["b"]
    assert {gate.name for gate in result.closed} == {"balance"}


@pytest.mark.long
def test_a_challenger_that_fails_on_some_rows_shows_fewer_and_that_is_said():
    def change(text):
        logged = json.loads(text)
        logged["heads"]["b"]["ids"] = logged["heads"]["b"]["ids"][:3]
        return json.dumps(logged)

    verdict = memlab.verdict(with_challenge(challenged("extra", recalls=40), change))
    assert "b shows fewer items than live in 40 recalls" in repr(verdict)
    with pytest.raises(InputError, match="shows 4 items, and the results of b have 3"):
        memlab.verdict(with_challenge(challenged("ab", recalls=40), change))


@pytest.mark.long
def test_a_challenger_that_ends_in_the_middle_is_judged_by_its_recalls():
    slates = challenged("extra")
    ended = pl.when(pl.col("decision") < 120).then("challenge")
    slates = memlab.Slates(
        slates.decisions.with_columns(challenge=ended),
        slates.candidates,
        slates.exposures,
        slates.feedback,
    )
    assert memlab.verdict(slates)["b"].recalls == 120


@pytest.mark.long
def test_feedback_that_is_dated_before_its_recall_is_named():
    slates, noon = challenged("extra", recalls=40), pl.datetime(2026, 3, 1, 12, time_zone="UTC")
    decisions = slates.decisions.with_columns(at=noon + pl.duration(hours="decision"))
    early = pl.duration(
        hours=pl.col("decision") - pl.when(pl.col("decision") < 3).then(2).otherwise(0)
    )
    feedback = slates.feedback.with_columns(at=noon + early)
    verdict = memlab.verdict(
        memlab.Slates(decisions, slates.candidates, slates.exposures, feedback)
    )
    assert "15 judgements dated before the recall (a clock ran back)" in repr(verdict)
