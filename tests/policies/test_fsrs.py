"""The pack `fsrs` against py-fsrs, the reference implementation of FSRS-6."""

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from fsrs import Card, Rating, Scheduler
from fsrs.scheduler import DEFAULT_PARAMETERS, LOWER_BOUNDS_PARAMETERS, UPPER_BOUNDS_PARAMETERS
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.kernel.base.clock import from_micros
from memlab.kernel.policies import load_pack

PACK = load_pack("fsrs")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
# the dialect divides by a constant as a product with its inverse, the last bit of which may differ
CLOSE = 1e-12

ratings = st.integers(1, 4)
gaps = st.floats(math.log(60), math.log(30 * 365 * 86_400)).map(
    lambda x: timedelta(seconds=math.exp(x))
)
histories = st.lists(st.tuples(ratings, gaps), min_size=1, max_size=25)
weights = st.one_of(
    st.just(DEFAULT_PARAMETERS),
    st.tuples(
        *(
            st.floats(low, high)
            for low, high in zip(LOWER_BOUNDS_PARAMETERS, UPPER_BOUNDS_PARAMETERS, strict=True)
        )
    ),
)


def scheduler(parameters=DEFAULT_PARAMETERS):
    return Scheduler(parameters, learning_steps=(), relearning_steps=(), enable_fuzzing=False)


def policy(slot, parameters=DEFAULT_PARAMETERS):
    """Return a slot's policy with these weights, w0 to w20."""
    result = PACK.policies[slot]
    return result.with_params({name: parameters[int(name[1:])] for name in result.params})


def inputs(*, outcome="success", rating=None, elapsed_days=0.0, stability=None, difficulty=None):
    return {
        "outcome": outcome,
        "rating": rating,
        "elapsed-days": elapsed_days,
        "stability": stability,
        "difficulty": difficulty,
    }


def state(*, of=None, **values):
    """Return stability and difficulty after one use."""
    after = (of or PACK.policies["reinforce"]).row(inputs(**values))
    return after["stability"], after["difficulty"]


class TestWeights:
    """The weights are the package's: defaults, bounds, names."""

    def test_every_weight_is_a_parameter_with_the_package_s_default_and_bounds(self):
        declared = PACK.policies["reinforce"].params
        assert declared.keys() == {f"w{i}" for i in range(21)}
        for i, expected in enumerate(
            zip(DEFAULT_PARAMETERS, LOWER_BOUNDS_PARAMETERS, UPPER_BOUNDS_PARAMETERS, strict=True)
        ):
            param = declared[f"w{i}"]
            assert (param.default, param.low, param.high) == expected

    def test_retention_reads_the_decay_and_the_stability_of_a_first_good(self):
        declared = PACK.policies["retention"].params
        assert declared.keys() == {"w2", "w20"}
        assert all(declared[name] == PACK.policies["reinforce"].params[name] for name in declared)


class TestAgainstThePackage:
    @pytest.mark.long
    @examples(300)
    @given(histories, weights)
    def test_any_history_under_any_weights(self, history, parameters):
        reference, card, now = scheduler(parameters), Card(), EPOCH
        reinforce, retention = policy("reinforce", parameters), policy("retention", parameters)
        stability = difficulty = None
        for rating, gap in history:
            now += gap
            if stability is not None:
                elapsed = (now - card.last_review) / DAY
                chance = retention.row({"stability": stability, "elapsed-days": elapsed})
                assert chance == pytest.approx(
                    reference.get_card_retrievability(card, now), rel=CLOSE
                )
            else:
                elapsed = gap / DAY
            stability, difficulty = state(
                of=reinforce,
                rating=rating,
                elapsed_days=elapsed,
                stability=stability,
                difficulty=difficulty,
            )
            card, _ = reference.review_card(card, Rating(rating), now)
            assert stability == pytest.approx(card.stability, rel=CLOSE)
            assert difficulty == pytest.approx(card.difficulty, rel=CLOSE)

    @pytest.mark.long
    @given(st.floats(0.001, 36_500), st.floats(1, 10), st.floats(0, 36_500), ratings)
    def test_a_step_from_any_state(self, stability, difficulty, days, rating):
        gap = timedelta(days=days)
        card = Card(stability=stability, difficulty=difficulty, last_review=EPOCH)
        card, _ = scheduler().review_card(card, Rating(rating), EPOCH + gap)
        after = state(
            rating=rating, elapsed_days=gap / DAY, stability=stability, difficulty=difficulty
        )
        assert after == pytest.approx((card.stability, card.difficulty), rel=CLOSE)

    @given(st.floats(0.001, 36_500), st.floats(1, 10), st.floats(0, 36_500), st.integers(2, 4))
    def test_stability_after_a_success_is_the_package_s_to_the_last_bit(
        self, stability, difficulty, days, rating
    ):
        """The same operations in the same order; a lapse and the difficulty divide by constants."""
        gap = timedelta(days=days)
        card = Card(stability=stability, difficulty=difficulty, last_review=EPOCH)
        card, _ = scheduler().review_card(card, Rating(rating), EPOCH + gap)
        after = state(
            rating=rating, elapsed_days=gap / DAY, stability=stability, difficulty=difficulty
        )
        assert after[0] == card.stability

    @given(st.floats(0.001, 36_500), st.floats(0, 36_500))
    def test_retrievability_is_the_package_s_to_the_last_bit(self, stability, days):
        gap = timedelta(days=days)
        card = Card(stability=stability, difficulty=5.0, last_review=EPOCH)
        expected = scheduler().get_card_retrievability(card, EPOCH + gap)
        assert (
            PACK.policies["retention"].row({"stability": stability, "elapsed-days": gap / DAY})
            == expected
        )

    @given(histories)
    def test_learning_steps_and_fuzz_decide_when_to_ask_and_not_what_is_remembered(self, history):
        """So the comparison with a scheduler without steps is one with any scheduler."""
        plain, usual, one, other, now = scheduler(), Scheduler(), Card(), Card(), EPOCH
        for rating, gap in history:
            now += gap
            one, _ = plain.review_card(one, Rating(rating), now)
            other, _ = usual.review_card(other, Rating(rating), now)
            assert (one.stability, one.difficulty) == (other.stability, other.difficulty)


MEMORIES, USES = 300, 20


@pytest.fixture(scope="module")
def life():
    """Draw ratings and gaps in days (a row a use, a column a memory), and the results of the package."""
    chance = np.random.default_rng(6)
    rating = chance.integers(1, 5, (USES, MEMORIES))
    seconds = np.exp(
        chance.uniform(math.log(60), math.log(10 * 365 * 86_400), rating.shape)
    ).round()
    reference, states = scheduler(), np.empty((USES, MEMORIES, 2))
    for memory in range(MEMORIES):
        card, now = Card(), EPOCH
        for use in range(USES):
            now += timedelta(seconds=seconds[use, memory])
            card, _ = reference.review_card(card, Rating(int(rating[use, memory])), now)
            states[use, memory] = card.stability, card.difficulty
    return rating, seconds / 86_400, states


@pytest.mark.long
class TestManyAtOnce:
    """300 memories in step, 20 uses each, as arrays and as columns."""

    def test_arrays(self, life):
        rating, days, states = life
        reinforce = PACK.policies["reinforce"]
        fields = {
            name: (np.full(MEMORIES, np.nan), np.ones(MEMORIES, bool))
            for name in ("stability", "difficulty")
        }
        for use in range(USES):
            fields = reinforce.updates(
                {
                    "outcome": np.full(MEMORIES, "success", object),
                    "rating": rating[use].astype(float),
                    "elapsed-days": days[use],
                    **fields,
                },
                order=np.arange(MEMORIES),
            )
            for i, name in enumerate(("stability", "difficulty")):
                values, nulls = fields[name]
                assert nulls is None or not nulls.any()
                np.testing.assert_allclose(values, states[use, :, i], rtol=CLOSE, atol=0)

    def test_columns_are_the_rows_to_the_last_bit(self, life):
        rating, days, states = life
        frame = pl.DataFrame(
            {
                "outcome": ["success", "fail", "recalled", "verified", "rejected"]
                * (MEMORIES // 5),
                "rating": [None if i % 3 == 0 else int(r) for i, r in enumerate(rating[5])],
                "elapsed_days": days[5],
                "stability": [None if i % 7 == 0 else s for i, s in enumerate(states[4, :, 0])],
                "difficulty": [None if i % 7 == 0 else d for i, d in enumerate(states[4, :, 1])],
            }
        )
        reinforce = PACK.policies["reinforce"]
        assert reinforce.columns(frame).to_list() == [
            reinforce.row(row) for row in frame.iter_rows(named=True)
        ]


class TestOutcomes:
    """What counts as which rating when nobody has rated."""

    @given(st.floats(0.001, 3650), st.floats(1, 10), st.floats(0, 3650))
    def test_success_is_good_failure_again_and_a_verifier_s_yes_hard(
        self, stability, difficulty, days
    ):
        then = {"elapsed_days": days, "stability": stability, "difficulty": difficulty}
        assert state(outcome="success", **then) == state(rating=3, **then)
        assert state(outcome="fail", **then) == state(rating=1, **then)
        assert state(outcome="verified", **then) == state(rating=2, **then)

    @pytest.mark.parametrize("outcome", ["recalled", "rejected"])
    @pytest.mark.parametrize("old", [(None, None), (12.5, 4.0)])
    def test_being_shown_or_not_fitting_the_question_changes_nothing(self, outcome, old):
        assert state(outcome=outcome, elapsed_days=9, stability=old[0], difficulty=old[1]) == old

    @pytest.mark.parametrize("outcome", ["success", "fail", "recalled", "verified", "rejected"])
    def test_a_rating_outweighs_the_outcome(self, outcome):
        then = {"elapsed_days": 9, "stability": 12.5, "difficulty": 4.0}
        assert state(outcome=outcome, rating=4, **then) == state(rating=4, **then)

    @pytest.mark.parametrize("rating", [1, 2, 3, 4])
    def test_the_first_rating_sets_both_whatever_the_time_since_storing(self, rating):
        assert state(rating=rating, elapsed_days=0.1) == state(rating=rating, elapsed_days=900)
        assert state(rating=rating)[0] == DEFAULT_PARAMETERS[rating - 1]


class TestTime:
    """Days are whole, as in the package: 24 hours must have passed."""

    def test_within_a_day_nothing_is_forgotten(self):
        retention = PACK.policies["retention"]
        assert retention.row({"stability": 2.0, "elapsed-days": 0.999}) == 1.0
        assert retention.row({"stability": 2.0, "elapsed-days": 1.0}) < 1.0
        assert retention.row({"stability": 2.0, "elapsed-days": 1.999}) == retention.row(
            {"stability": 2.0, "elapsed-days": 1.0}
        )

    def test_stability_is_the_days_until_nine_in_ten_are_recalled(self):
        assert PACK.policies["retention"].row(
            {"stability": 40.0, "elapsed-days": 40.0}
        ) == pytest.approx(0.9, rel=1e-15)

    def test_an_unrated_memory_decays_as_after_a_first_good(self):
        first = {"stability": DEFAULT_PARAMETERS[2], "elapsed-days": 30.0}
        retention = PACK.policies["retention"]
        assert retention.row({"stability": None, "elapsed-days": 30.0}) == retention.row(first)


@pytest.mark.long
class TestInALab:
    """On the engine: what a recall logs and ranks by."""

    @pytest.fixture
    def lab(self, trigrams, clock):
        with memlab.open(embedder=trigrams, clock=clock, pack="fsrs") as opened:
            yield opened

    def test_the_score_is_relevance_times_the_retrievability_of_the_package(self, lab, clock):
        chance, told = np.random.default_rng(3), {}
        for i in range(20):
            stability = float(chance.uniform(0.5, 90))
            memory = lab.remember(
                f"deploys of service {i} go out on Tuesdays", stability=stability, difficulty=5.0
            )
            told[memory.id] = Card(
                stability=stability, difficulty=5.0, last_review=from_micros(clock())
            )
            clock.advance(hours=31)
        slate = lab.recall("when do deploys go out?", limit=5).slate
        expected = [
            scheduler().get_card_retrievability(told[i], from_micros(clock()))
            for i in slate.ids.tolist()
        ]
        np.testing.assert_allclose(slate.numbers["retention"], expected, rtol=CLOSE)
        np.testing.assert_array_equal(
            slate.scores, slate.numbers["activation"] * slate.numbers["retention"]
        )

    def test_a_life_of_recalls_and_feedback(self, lab, clock):
        lab.remember([f"note {i}: the build of module {i % 4} needs {i} GB" for i in range(30)])
        for outcome in ("success", "fail") * 3:
            hits = lab.recall("how much does the build need?", limit=4)
            assert len(hits) >= 4
            assert np.isfinite(hits.slate.scores).all()
            lab.feedback(hits[0], outcome)
            clock.advance(days=2)
        assert hits[0].explain().score == hits[0].score
