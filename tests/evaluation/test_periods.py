"""What versions earned while they were active: bounds valid at every interim analysis, and drops that are steps."""

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import InputError
from memlab.science.evaluation import Earnings, compare_periods
from memlab.science.evaluation._periods import (
    Bets,
    difference_bounds,
    falls_at,
    lower_bound,
    pair_numbers,
)

ONES = np.ones(12)
OTHER = "(lambda (activation importance) (- (* 0.2 activation) importance))"


def test_a_total_fall_is_seen_in_a_few_blocks():
    needed = next(n for n in range(1, 20) if Bets(ONES).evidence_above(Bets(np.zeros(n))) >= 66)
    assert needed == 3
    assert Bets(np.ones(60)).evidence_above(Bets(np.zeros(2))) > 66


@pytest.mark.long
@pytest.mark.parametrize(
    "mean", [0.2, *(pytest.param(mean, marks=pytest.mark.slow) for mean in (0.5, 0.9, 0.98))]
)
def test_without_a_fall_the_bet_is_hardly_ever_won_at_any_look(mean):
    """Days of one to six judgements, whose rate varies from day to day; looked at after each of 40 days."""
    dice, won, alpha = np.random.default_rng(7), 0, 0.05
    for _ in range(200):
        sizes = dice.integers(1, 7, 80)
        rates = dice.beta(4 * mean, 4 * (1 - mean), 80)
        values = dice.binomial(sizes, rates) / sizes
        before, after = Bets(values[:40]), Bets()
        for value in values[40:]:
            after.add(float(value))
            if before.evidence_above(after) >= 1 / alpha:
                won += 1
                break
    assert won <= 10  # of 200: the bet is held to .05, and does better


@pytest.mark.long
def test_bounds_hold_and_close_in():
    dice, held = np.random.default_rng(3), 0
    for _ in range(200):
        values = dice.random(60) < 0.7
        held += lower_bound(values.astype(float), 0.05) <= 0.7
    assert held >= 190
    low, high = difference_bounds(Bets(np.full(300, 0.9)), Bets(np.full(300, 0.2)), 0.025)
    assert 0.5 < low < 0.7 < high < 0.9
    low, high = difference_bounds(Bets(ONES), Bets(ONES), 0.025)
    assert low < 0 < high


def test_evidence_is_the_same_whichever_way_it_is_counted():
    values = np.random.default_rng(1).random(30)
    one_by_one = Bets()
    for value in values:
        one_by_one.add(float(value))
    assert one_by_one.evidence_above(Bets(1 - values)) == Bets(values).evidence_above(
        Bets(1 - values)
    )


STEP = np.repeat([0.8, 0.4], 30)
TIMES = np.arange(60.0)


@pytest.mark.parametrize(
    ("values", "after", "right"),
    [
        (STEP, TIMES >= 30, True),
        (np.linspace(0.9, 0.3, 60), TIMES >= 30, False),
        (0.9 - 0.6 * (TIMES / 60) ** 2, TIMES >= 30, False),
        (STEP, TIMES >= 45, False),
        (STEP, TIMES >= 18, False),
        (np.array([1.0, 0.0, 0.0]), np.array([False, True, True]), False),
        (np.array([1.0] * 9 + [0.0] * 4), np.arange(13) >= 9, True),
        (STEP, TIMES < 0, False),
        (np.interp(TIMES, [29, 39], [0.9, 0.2]), TIMES >= 30, True),
        (np.interp(TIMES, [29, 36], [0.9, 0.2]), TIMES >= 30, True),
        (np.interp(TIMES, [29, 49], [0.9, 0.2]), TIMES >= 30, True),
        (np.interp(TIMES, [29, 39], [0.9, 0.2]), TIMES >= 20, False),
        (np.interp(TIMES, [29, 39], [0.9, 0.2]), TIMES >= 25, False),
        (np.interp(TIMES, [29, 39], [0.9, 0.2]), TIMES >= 40, False),
    ],
)
def test_a_fall_begins_where_the_version_changed(values, after, right):
    noisy = np.clip(values + np.random.default_rng(0).normal(0, 0.05, len(values)), 0, 1)
    assert falls_at(np.arange(float(len(values))), values, after) == right
    assert falls_at(np.arange(float(len(values))), noisy, after) == right


def test_later_versions_change_no_number():
    few, many = pair_numbers("ab"), pair_numbers("abcde")
    assert many[frozenset("ab")] == few[frozenset("ab")] == 1
    assert sorted(many.values()) == list(range(1, 11))
    assert pair_numbers("abc").items() <= many.items()


def test_earnings_end_a_block_when_the_next_begins():
    earned = Earnings()
    for day in range(12):
        for _ in range(3):
            earned.add("a", day, 1.0, recall=day)
    assert earned.blocks("a") == 11
    assert not earned.may_have_fallen(["a"], "a")
    for day in range(12, 20):
        assert earned.may_have_fallen(["a", "b"], "b") == (day > 15)
        earned.add("b", day, 0.0, recall=day)


def test_days_with_many_recalls_have_parts():
    earned = Earnings()
    for recall in range(100):
        for _ in range(3):
            earned.add("a", 0, 1.0, recall)
    assert earned.blocks("a") == 7  # of five recalls each, and the last that has not ended
    for recall in range(100, 140):
        earned.add("b", 0, 0.0, recall)
    assert earned.may_have_fallen(["a", "b"], "b")


@pytest.fixture
def lived(trigrams):
    """Run twenty days of success, change the policy, and run twelve days of failure."""
    clock = memlab.ManualClock("2026-03-01T12:00:00")
    with memlab.open(embedder=trigrams, clock=clock, pack="associative") as lab:
        for n in range(6):
            lab.remember(f"rust note {n}", importance=n / 6, linking="off")
        for day in range(32):
            if day == 20:
                lab.policies.install("recall-score", OTHER)
            clock.advance(days=1)
            for index, hit in enumerate(lab.recall("rust", limit=3)):
                if index < 2:
                    lab.feedback(hit, "success" if day < 20 else "fail")
        yield lab


def hashes(lab):
    with lab.policies.reading() as versions:
        return versions.pack_hashes


@pytest.mark.long
def test_periods_of_a_lab(lived):
    result = compare_periods(lived, hashes(lived), missing="censor")
    (earlier,) = result.earlier
    assert (earlier.blocks, earlier.earned, result.live.blocks, result.live.earned) == (
        20,
        1.0,
        11,
        0.0,
    )
    assert earlier.fell
    assert result.fallen == (earlier,)
    assert 0 < earlier.difference[1] < 1.0 <= earlier.difference[2]
    assert result.frame["live"].to_list() == [True, False]
    assert "The versions were live at different times" in result.notes[0]


@pytest.mark.long
def test_the_treatment_of_missing_feedback_follows_the_argument(lived):
    with pytest.raises(InputError, match="set what missing feedback counts as"):
        compare_periods(lived, hashes(lived))
    zero = compare_periods(lived, hashes(lived), missing="zero")
    assert 0.5 <= zero.earlier[0].earned < 1
    bounds = compare_periods(lived, hashes(lived), missing="bounds")
    assert bounds.earlier[0].earned == zero.earlier[0].earned  # the earlier version the least,
    assert bounds.live.earned > 0  # the live one the most
    assert bounds.earlier[0].evidence < zero.earlier[0].evidence


@pytest.mark.long
def test_a_pack_that_answered_nothing_costs_no_evidence(lived):
    packs = hashes(lived)
    alone = compare_periods(lived, packs, missing="censor").earlier[0]
    after_another = compare_periods(lived, ["unused", *packs], missing="censor").earlier[0]
    assert after_another.needed == alone.needed
    earned = Earnings()
    for day in range(24):
        earned.add("a" if day < 20 else "b", day, float(day < 20), recall=day)
    assert earned.may_have_fallen(["a", "b"], "b") == earned.may_have_fallen(
        ["unused", "other", "a", "b"], "b"
    )


@pytest.mark.long
def test_clusters_and_horizons(lived):
    by_recall = compare_periods(lived, hashes(lived), missing="censor", cluster="decision")
    assert by_recall.live.blocks == 11
    late = compare_periods(lived, hashes(lived), missing="censor", horizon="5d")
    assert late.live.recalls < 11
    assert any("time for feedback (horizon) is not over" in note for note in late.notes)
    with pytest.raises(InputError, match="no column nothing"):
        compare_periods(lived, hashes(lived), missing="censor", cluster="nothing")


@pytest.mark.long
def test_only_packs_that_were_live_are_compared(lived):
    for _ in range(5):
        for hit in lived.recall("rust", limit=3, pack="memlab"):
            lived.feedback(hit, "success")
    assert len(hashes(lived)) == 2
    assert len(compare_periods(lived, hashes(lived), missing="censor").earlier) == 1
    assert compare_periods(lived, ["unknown"], missing="censor").live is None


@pytest.mark.long
def test_delayed_judgements_wait_for_the_usual_delay(trigrams):
    """Failures are told at once and successes two days later: the latest days would seem worse."""
    clock, waiting = memlab.ManualClock("2026-03-01T12:00:00"), []
    with memlab.open(embedder=trigrams, clock=clock, pack="associative") as lab:
        for n in range(6):
            lab.remember(f"rust note {n}", linking="off")
        for day in range(30):
            if day == 24:
                lab.policies.install("recall-score", OTHER)
            clock.advance(days=1)
            waiting += [
                (day + 2 * (index < 2), hit, index < 2)
                for index, hit in enumerate(lab.recall("rust", limit=3))
            ]
            for due, hit, good in waiting:
                if due == day:
                    lab.feedback(hit, "success" if good else "fail")
        result = compare_periods(lab, hashes(lab), missing="censor")
        assert result.live.earned == pytest.approx(2 / 3)
        assert result.fallen == ()


def test_a_log_without_packs_is_refused():
    frames = [
        pl.DataFrame({"decision": [1], "limit": [1]}),
        pl.DataFrame({"decision": [1], "memory_id": [1], "propensity": [1.0]}),
        pl.DataFrame({"decision": [1], "memory_id": [1], "position": [1], "propensity": [1.0]}),
        pl.DataFrame({"decision": [1], "memory_id": [1], "reward": [1.0]}),
    ]
    with pytest.raises(InputError, match="which pack answered"):
        compare_periods(
            memlab.Slates(*(frame.lazy() for frame in frames)), ["a"], cluster="decision"
        )
