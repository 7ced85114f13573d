"""Positions that are examined less: estimated from items at random positions, weighed away, and missing where they are."""

import itertools

import numpy as np
import polars as pl
import pytest

from memlab import Slates
from memlab.errors import InputError
from memlab.science.evaluation import evaluate
from memlab.science.evaluation._log import read_log
from memlab.science.evaluation._position import estimate_examination, pair_probes, random_position_p

pytestmark = pytest.mark.long

HEAD, BAND = 5, 10


def world(eta, *, recalls=800, seed=0, probes=1, places="random", worth=0.55):
    """Return a log whose items earn their reward times position^-eta, and the true values of three policies.

    ``plain`` logged; ``better`` is nearer to the true rewards; ``turned`` shows the results of ``plain`` in reverse.
    """
    dice = np.random.default_rng(seed)
    pool = HEAD + BAND
    quality = dice.normal(size=(recalls, pool))
    chance = worth / (1 + np.exp(-1.5 * quality))
    plain = quality + dice.normal(0, 1.2, (recalls, pool))
    order = np.argsort(-plain, axis=1)
    scores = {"plain": plain, "better": plain + 1.2 * quality}
    turned = np.full((recalls, pool), -100.0)
    np.put_along_axis(turned, order[:, :HEAD], np.arange(HEAD, dtype=float)[None, :], axis=1)
    scores["turned"] = turned
    rows = {name: [] for name in ("decision", "memory_id", "propensity", "position", "reward")}
    propensity = np.zeros((recalls, pool))
    np.put_along_axis(
        propensity, order, np.r_[np.ones(HEAD), np.full(BAND, probes / BAND)][None, :], axis=1
    )
    for number in range(recalls):
        shown = order[number, :HEAD].tolist()
        for probe in dice.choice(order[number, HEAD:], probes, replace=False):
            # "mixed" is a log that a later memlab continued
            later = int(number > recalls / 2)
            first = {"random": 0, "below": 1, "mixed": later, "last": len(shown)}[places]
            shown.insert(int(dice.integers(first, len(shown) + 1)), int(probe))
        for index, item in enumerate(shown, start=1):
            reward = float(dice.random() < chance[number, item] * index**-eta)
            for name, value in zip(
                rows, (number, item, propensity[number, item], index, reward), strict=True
            ):
                rows[name].append(value)
    decision, item = np.meshgrid(np.arange(recalls), np.arange(pool), indexing="ij")
    candidates = pl.DataFrame(
        {
            "decision": decision.ravel(),
            "memory_id": item.ravel(),
            "score": plain.ravel(),
            "propensity": propensity.ravel(),
            **{name: values.ravel() for name, values in scores.items()},
        }
    )
    exposures = pl.DataFrame(rows)
    decisions = pl.DataFrame({"decision": np.arange(recalls), "limit": np.full(recalls, HEAD)})
    slates = Slates.from_frames(
        decisions=decisions,
        candidates=candidates,
        exposures=exposures.drop("reward"),
        feedback=exposures.select("decision", "memory_id", "reward"),
    )
    seen = np.arange(1, HEAD + 1) ** -float(eta)
    truth = {
        name: float(
            (
                np.take_along_axis(chance, np.argsort(-values, axis=1)[:, :HEAD], axis=1) @ seen
            ).mean()
        )
        for name, values in scores.items()
    }
    return slates, truth


def ranks_of(log):
    score = log.pool(["score"])["score"].to_numpy()
    return np.argsort(np.argsort(-score.reshape(len(log), -1), axis=1), axis=1).ravel() / (
        HEAD + BAND
    )


@pytest.mark.parametrize("probes", [1, 2])
@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("places", "first"), [("random", 1), ("below", 2), ("mixed", 2)])
def test_examination_is_found(eta, probes, places, first):
    seed = int(10 * eta) + probes + 100 * (places == "mixed")
    log = read_log(world(eta, recalls=3000, seed=seed, probes=probes, places=places)[0])
    pairs = pair_probes(log, ranks_of(log))
    assert pairs.first == first
    found = estimate_examination(pairs, log, 0.99).eta
    assert found.low < eta < found.high
    # the first two positions differ most, and a log whose first item never moves says nothing of them
    assert found.high - found.low < {1: 0.5, 2: 1.1}[first]


@pytest.mark.parametrize("placed", ["random", "below"])
def test_the_estimate_maximises_the_likelihood(placed):
    """Against a search over eta of the likelihood, written as loops."""
    log = read_log(world(0.7, recalls=60, seed=5, places=placed)[0])
    places = pair_probes(log, ranks_of(log))
    first = places.first
    reward = np.nan_to_num(log.reward)

    def likelihood(eta):
        total = 0.0
        for row, at, moved, size in zip(
            places.row, places.at, places.moved, places.size, strict=True
        ):
            if at < first:
                assert not moved or placed == "random"
                continue
            stays, moves = (size - at) * at**-eta, (at + 1 - first) * (at + 1) ** -eta
            total += reward[row] * np.log((moves if moved else stays) / (stays + moves))
        for row, size in zip(places.probe, places.probe_size, strict=True):
            theta = np.arange(float(first), size + 1) ** -eta
            total += reward[row] * np.log(log.position[row] ** -eta / theta.sum())
        return total

    best = 1.0
    for step in (0.1, 0.01, 0.001):
        grid = best + step * np.arange(-20, 21)
        best = grid[np.argmax([likelihood(eta) for eta in grid])]
    assert estimate_examination(places, log, 0.95).eta.value == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("places", ["random", "below"])
def test_examination_of_an_item_is_its_mean_over_the_possible_orders(places):
    """All orders in which the first item is drawn, as in the log, or in which it is certain."""
    slates, _ = world(0.5, recalls=40, probes=2, places=places)
    log = read_log(slates)
    result = estimate_examination(pair_probes(log, ranks_of(log)), log, 0.95)
    seen = result.average(0.8)
    theta = np.arange(1, HEAD + 3) ** -0.8
    firsts = set()
    for recall in range(40):
        shown = np.flatnonzero(log.exposed & (log.recall == recall))
        head = [row for row in shown if log.propensity[row] == 1]
        head.sort(key=lambda row: log.position[row])
        probes = [row for row in shown if log.propensity[row] < 1]
        drawn_first = bool((log.position[probes] == 1).any())
        firsts.add(drawn_first)
        orders = [
            taken
            for taken in itertools.permutations(range(HEAD + 2), 2)
            if (0 in taken) == drawn_first
        ]
        for rank, row in enumerate(head):
            spots = [[at for at in range(HEAD + 2) if at not in taken][rank] for taken in orders]
            assert seen[row] == pytest.approx(theta[spots].mean(), abs=1e-12)
        for number, row in enumerate(probes):
            spots = [taken[number] for taken in orders]
            assert seen[row] == pytest.approx(theta[spots].mean(), abs=1e-12)
    assert firsts == ({True, False} if places == "random" else {False})


def test_places_that_are_not_random_are_not_taken_for_such():
    log = read_log(world(0.5, places="last")[0])
    assert pair_probes(log, ranks_of(log)) is None
    with pytest.raises(InputError, match="random positions"):
        evaluate(world(0.5, places="last")[0], ["better"], position=True)


def test_slates_in_the_order_of_a_score_are_not_random():
    """Each set of items is drawn, but what is good stands first: nothing may be learned from the places."""
    dice = np.random.default_rng(0)
    rows = []
    for number in range(200):
        chosen = sorted(dice.choice(6, 3, replace=False).tolist())
        places = {item: index for index, item in enumerate(chosen, start=1)}
        rows += [(number, item, float(-item), places.get(item, 0), 0.5, 1.0) for item in range(6)]
    frame = pl.DataFrame(
        rows, schema=["decision", "memory_id", "by", "rank", "p", "reward"], orient="row"
    )
    frame = frame.with_columns(reward=pl.when(pl.col("rank") > 0).then("reward"))
    slates = Slates.from_wide(
        frame,
        decision="decision",
        item="memory_id",
        shown="rank",
        reward="reward",
        propensity="p",
        scores=["by"],
    )
    log = read_log(slates)
    assert pair_probes(log, -log.pool(["by"])["by"].to_numpy() / 6) is None


@pytest.mark.parametrize("seeds", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_the_test_of_places_finds_what_is_there_and_little_else(seeds):
    def p(eta, seed):
        log = read_log(world(eta, recalls=500, seed=seed)[0])
        return random_position_p(pair_probes(log, ranks_of(log)), log)

    assert sum(p(1.0, seed) < 0.001 for seed in range(seeds)) >= 0.9 * seeds
    flat = [p(0.0, seed) for seed in range(3 * seeds)]
    assert sum(value < 0.05 for value in flat) <= 0.4 * seeds
    assert min(flat) > 0.001


@pytest.mark.parametrize(("logs", "bound"), [(10, 2), pytest.param(50, 6, marks=pytest.mark.slow)])
def test_a_value_under_position_bias(logs, bound):
    """Values and differences cover the true ones; without ``position=`` the gate is closed."""
    off = {name: [] for name in ("plain", "better", "turned", "better - plain", "turned - plain")}
    missed = dict.fromkeys(off, 0)
    for seed in range(logs):
        slates, truth = world(0.9, recalls=500, seed=seed, probes=2)
        evaluation = evaluate(
            slates, ["plain", "better", "turned"], position=True, baseline="plain"
        )
        for row in evaluation.rows:
            if row.value is None:
                assert {gate.name for gate in row.closed} == {"influence"}
                continue
            held = [(row.policy, row.value, truth[row.policy])]
            if row.difference is not None:
                held.append(
                    (f"{row.policy} - plain", row.difference, truth[row.policy] - truth["plain"])
                )
            for name, estimate, value in held:
                missed[name] += not estimate.low <= value <= estimate.high
                off[name].append(estimate.value - value)
        assert any(note.startswith("Position k is examined") for note in evaluation.notes)
    assert max(missed.values()) <= bound, missed
    for name, errors in off.items():
        assert len(errors) >= 0.8 * logs, name
        assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors)), name
    plain = evaluate(slates, ["plain", "better", "turned"], baseline="plain")
    assert {gate.name for row in plain.rows for gate in row.closed} == {"position"}


def test_without_position_bias_it_changes_little():
    slates, truth = world(0.0, recalls=1500, seed=4)
    plain, weighed = (
        evaluate(slates, ["plain", "better"], baseline="plain", position=on) for on in (False, True)
    )
    for item, other in zip(plain.rows, weighed.rows, strict=True):
        assert item.policy == other.policy
        assert other.value.low < truth[other.policy] < other.value.high
        assert item.value.value == pytest.approx(other.value.value, abs=0.15)
    # an item at another position of the top-k has the same reward, and no longer cancels
    turned = evaluate(slates, ["plain", "turned"], baseline="plain", position=True).rows
    gap = next(row.difference for row in turned if row.difference)
    assert gap.low < 0 < gap.high


def test_rewards_below_nothing_have_no_examination():
    slates, _ = world(0.5, recalls=50)
    with pytest.raises(InputError, match="rewards of at least 0"):
        evaluate(slates, ["better"], position=True, reward_range=(-1.0, 1.0))
