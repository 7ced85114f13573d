"""Probes: which items are shown in addition to the best, and with which probability."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from properties import examples

from memlab.kernel.policies import load_pack
from memlab.kernel.recall import generator
from memlab.kernel.recall._ranking import choose


@dataclass
class Pool:
    """Candidates with the features that an explore policy may read."""

    scores: np.ndarray
    features: dict = field(default_factory=dict)

    def __post_init__(self):
        self.rows = np.arange(len(self.scores))

    def __getitem__(self, name):
        return self.features[name]


def pack(*, rate=1.0, depth=4, floor=0.25, probes=1, explore="(fn [activation] activation)"):
    body = explore.replace("(fn", "(defpolicy explore", 1)
    return load_pack(
        f"(pack trial) (setting probe-rate {rate}) (setting probe-depth {depth}) (setting probe-floor {floor})"
        f"(setting probes {probes}) {body}"
    )


def pool(count=10):
    scores = np.linspace(1, 0.1, count)
    return Pool(
        scores, {"activation": np.arange(count, dtype=float), "access": np.arange(count) % 3 * 4.0}
    )


def choose_shown(trial, *, limit=3, seed=0, state=1, of=None):
    of = of or pool()
    return choose(trial, of, of.scores, limit=limit, chance=generator(seed, state))


def test_without_chance_only_the_best():
    of = pool()
    result = choose(pack(), of, of.scores, limit=3, chance=None)
    assert result.places.tolist() == [0, 1, 2]
    assert result.sampler == "deterministic"
    assert result.propensity.tolist() == [1, 1, 1] + [0] * 7


def test_the_head_is_certain_and_the_band_has_the_rate():
    result = choose_shown(pack(rate=0.4))
    assert result.propensity[:3].tolist() == [1, 1, 1]
    assert result.propensity[3:7].sum() == pytest.approx(0.4)
    assert result.propensity[7:].tolist() == [0, 0, 0]


def test_a_probe_weighs_policy_and_floor():
    weights = np.array([3.0, 4, 5, 6])
    expected = 0.75 * weights / weights.sum() + 0.25 / 4
    assert choose_shown(pack()).propensity[3:7] == pytest.approx(expected)


@pytest.mark.long
def test_frequencies_are_the_propensities():
    trial, count = pack(rate=0.6), 4000
    seen = np.zeros(10)
    for state in range(count):
        result = choose_shown(trial, state=state)
        seen[result.places] += 1
    expected = choose_shown(trial).propensity
    error = np.sqrt(expected * (1 - expected) / count)
    assert (np.abs(seen / count - expected) <= 4.5 * error + 1e-12).all()


@pytest.mark.long
def test_several_probes_weigh_each_item_without_bias():
    """Given kappa, the indicator over 1 - exp(-exp(phi - kappa)) has mean 1 for every item of the band."""
    trial, count = pack(probes=2), 6000
    total, square = np.zeros(4), np.zeros(4)
    for state in range(count):
        result = choose_shown(trial, state=state)
        weight = np.zeros(10)
        weight[result.places] = 1 / result.propensity[result.places]
        total += weight[3:7]
        square += weight[3:7] ** 2
    mean = total / count
    error = np.sqrt((square / count - mean**2) / count)
    assert result.sampler == "gumbel"
    assert (np.abs(mean - 1) <= 4.5 * error).all()


def test_conditionals_multiply_to_the_probability_of_the_order():
    result = choose_shown(pack(probes=3, floor=1.0))
    assert math.prod(result.conditional) == pytest.approx(1 / (4 * 3 * 2))
    assert len(result.conditional) == len(result.places) == 6


def test_more_probes_than_the_band_show_all_of_it():
    result = choose_shown(pack(probes=9))
    assert sorted(result.places.tolist()) == [0, 1, 2, 3, 4, 5, 6]
    assert result.propensity[3:7].tolist() == [1, 1, 1, 1]


@pytest.mark.long
def test_probes_are_uniform_over_positions_below_the_first_and_keep_the_order_of_the_top_k():
    count, places = 4000, np.zeros(4)
    for state in range(count):
        result = choose_shown(pack(), state=state)
        order = result.places.tolist()
        assert [position for position in order if position not in result.probes.tolist()] == [
            0,
            1,
            2,
        ]
        if len(result.probes):
            places[order.index(int(result.probes[0]))] += 1
    assert places[0] == 0, "the first result is certain"
    share, expected = places[1:] / places.sum(), 1 / 3
    error = np.sqrt(expected * (1 - expected) / places.sum())
    assert (np.abs(share - expected) <= 4.5 * error).all()


def test_the_same_seed_and_state_draw_the_same():
    assert (
        choose_shown(pack(), state=5).places.tolist()
        == choose_shown(pack(), state=5).places.tolist()
    )
    draws = {tuple(choose_shown(pack(), state=state).places.tolist()) for state in range(30)}
    assert len(draws) > 1


def test_a_policy_that_wants_none_gets_none():
    result = choose_shown(pack(explore="(fn [activation] 0)"))
    assert result.sampler == "deterministic"
    assert not len(result.probes)


def test_the_original_list_policy_explores_what_was_rarely_used():
    trial = load_pack("associative")
    of = Pool(
        np.linspace(1, 0.1, 8),
        {"activation": np.ones(8), "access": np.array([0, 0, 0, 9, 9, 2, 0, 9.0])},
    )
    floor = trial.number("probe-floor")
    result = choose(trial, of, of.scores, limit=3, chance=generator(0, 1))
    share = result.propensity / trial.number("probe-rate")
    # below the three results, the first item that was used fewer than five times is at position 5
    assert share[5] == pytest.approx(1 - floor + floor / 5)
    assert share[[3, 4, 6, 7]] == pytest.approx(floor / 5)


def test_scores_of_minus_infinity_are_neither_shown_nor_probed():
    of = pool()
    of.scores[[1, 4]] = -np.inf
    for state in range(50):
        result = choose_shown(pack(), of=of, state=state)
        assert not {1, 4} & set(result.places.tolist())
    assert result.propensity[[1, 4]].tolist() == [0, 0]


@pytest.mark.long
@given(
    st.lists(st.floats(-5, 5), max_size=30),
    st.integers(1, 12),
    st.integers(1, 12),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(1, 4),
)
@examples(60)
# more probes than candidates to which the policy gives a weight
@example([0.0, 0.0, 1.0, 1.0], 1, 3, 1.0, 0.0, 2)
def test_any_pool_gives_probabilities(scores, limit, depth, rate, floor, probes):
    of = Pool(np.array(scores), {"activation": np.abs(np.array(scores))})
    trial = pack(rate=rate, depth=depth, floor=floor, probes=probes)
    result = choose(trial, of, of.scores, limit=limit, chance=generator(1, 1))
    assert ((result.propensity >= 0) & (result.propensity <= 1)).all()
    assert len(set(result.places.tolist())) == len(result.places)
    assert (result.propensity[result.places] > 0).all()
    assert len(result.conditional) == len(result.places)
    assert sorted(result.ranks.tolist()) == list(range(1, len(scores) + 1))
    assert (
        result.places[: min(limit, len(scores))].tolist()
        == result.places.tolist()[: min(limit, len(scores))]
    )
