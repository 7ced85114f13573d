"""Maximal marginal relevance and near-duplicates: the array code against the definition, and what probes make of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.kernel.policies import load_pack
from memlab.kernel.recall import diversifies, generator, rank_by_score
from memlab.kernel.recall._ranking import choose, rank_all


def pack(weight=1.0, above=1.0, more=""):
    return load_pack(
        f"(pack trial) (setting mmr-weight {weight}) (setting collapse-above {above}) {more}"
    )


PACKS = [pack(weight, above) for weight in (0.0, 0.3, 0.7, 1.0) for above in (0.2, 0.9, 1.0)]


def cosine(first, second):
    norms = np.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / norms if norms else 0.0


def by_definition(trial, scores, vectors, depth):
    """Compute the diversity by definition, candidate by candidate: order, number of results, and who is demoted."""
    weight, above = trial.number("mmr-weight"), trial.number("collapse-above")
    vectors = vectors.astype(float)
    able = [position for position in range(len(scores)) if np.isfinite(scores[position])]
    low, high = min([0.0, *(scores[p] for p in able)]), max((scores[p] for p in able), default=0)
    relevance = {p: (scores[p] - low) / (high - low) if high > low else 0.0 for p in able}
    falling = sorted(range(len(scores)), key=lambda p: (-scores[p], p))
    waiting, taken, behind = list(able), [], {}
    while waiting and len(taken) < depth:

        def worth(position):
            if weight >= 1:
                return scores[position]
            likeness = max([0.0, *(cosine(vectors[position], vectors[other]) for other in taken)])
            return weight * relevance[position] - (1 - weight) * likeness

        first = max(waiting, key=lambda place: (worth(place), -place))
        waiting.remove(first)
        taken.append(first)
        twins = [p for p in falling if p in waiting and cosine(vectors[p], vectors[first]) > above]
        if twins and above < 1:
            behind[first] = twins
            waiting = [p for p in waiting if p not in twins]
    hidden = {p for twins in behind.values() for p in twins}
    later = [p for p in falling if p in waiting]
    order = [
        *taken,
        *later,
        *(p for p in falling if p in hidden),
        *(p for p in falling if p not in able),
    ]
    return order, len(taken) + len(later), behind


@st.composite
def pools(draw):
    count = draw(st.integers(0, 9))
    some = st.one_of(st.integers(-3, 3).map(float), st.just(-np.inf))
    scores = np.array(draw(st.lists(some, min_size=count, max_size=count)), dtype=float)
    rows = st.lists(st.sampled_from([-127, -1, 0, 1, 2, 127]), min_size=3, max_size=3)
    vectors = draw(st.lists(rows, min_size=count, max_size=count))
    return scores, np.array(vectors, dtype=np.int8).reshape(count, 3)


@pytest.mark.long
@given(pools(), st.sampled_from(PACKS), st.integers(1, 10))
@examples(300)
def test_the_array_code_is_the_definition(pool, trial, depth):
    scores, vectors = pool
    ranking = rank_all(trial, scores, lambda: vectors, depth=depth)
    order, able, behind = by_definition(trial, scores, vectors, depth)
    assert ranking.order.tolist() == order
    assert (ranking.showable, ranking.duplicates) == (able, behind)


@pytest.mark.long
@given(pools(), st.sampled_from(PACKS), st.integers(1, 10))
@examples(100)
def test_many_candidates_are_lined_up_as_few_are(pool, trial, depth):
    scores, vectors = pool
    few = rank_all(trial, scores, lambda: vectors, depth=depth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memlab.kernel.recall._ranking._AT_ONCE", 0)
        many = rank_all(trial, scores, lambda: vectors, depth=depth)
    assert many.order.tolist() == few.order.tolist()
    assert many.duplicates == few.duplicates


@pytest.mark.long
@given(pools(), st.sampled_from(PACKS), st.integers(1, 5), st.integers(1, 5))
@examples(100)
def test_looking_deeper_leaves_the_ranks_above_as_they_are(pool, trial, depth, more):
    scores, vectors = pool
    near = rank_all(trial, scores, lambda: vectors, depth=depth)
    deep = rank_all(trial, scores, lambda: vectors, depth=depth + more)
    shared = min(depth, near.showable)
    assert near.order[:shared].tolist() == deep.order[:shared].tolist()


def test_where_both_are_off_no_vector_is_read():
    def vectors():
        raise AssertionError

    scores = np.array([0.2, 0.9, 0.9, -np.inf])
    ranking = rank_all(pack(), scores, vectors, depth=2)
    assert ranking.order.tolist() == rank_by_score(scores).order.tolist() == [1, 2, 0, 3]
    assert ranking.showable == 3
    assert not diversifies(pack())
    assert diversifies(pack(weight=0.99))
    assert diversifies(pack(above=0.99))


def test_equal_vectors_are_above_whatever_is_below_one():
    vectors = np.array([[127, 3, 9], [127, 3, 9], [1, 0, 0]], dtype=np.int8)
    ranking = rank_all(pack(above=0.999999), np.array([1.0, 2.0, 0.5]), lambda: vectors, depth=3)
    assert ranking.duplicates == {1: [0]}
    assert ranking.order.tolist() == [1, 2, 0]


def test_likeness_is_measured_as_closeness():
    vectors = np.array([[10, 9], [10, 10], [-10, 0]], dtype=np.int8)
    strict = rank_all(
        pack(above=0.9), np.array([3.0, 2, 1]), lambda: vectors, depth=3, closeness=lambda c: c / 2
    )
    assert strict.duplicates == {}


@pytest.mark.parametrize(
    ("above", "hidden"),
    [(0.5, {}), (np.nextafter(0.5, 0.0), {0: [1]}), (np.nextafter(0.5, 1.0), {})],
)
def test_a_memory_exactly_as_close_as_the_setting_is_shown(above, hidden):
    """``collapse-above``: two of these vectors have a closeness of exactly one half."""
    vectors = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]], dtype=np.int8)
    assert cosine(vectors[0], vectors[1]) == 0.5
    ranking = rank_all(
        pack(above=repr(float(above))), np.array([3.0, 2.0, 1.0]), lambda: vectors, depth=3
    )
    assert ranking.duplicates == hidden
    assert ranking.showable == 3 - len(hidden)


class Pool:
    """Candidates of which only the activation is read."""

    def __init__(self, scores):
        self.rows = np.arange(len(scores))
        self.scores = scores

    def __getitem__(self, name):
        return {"activation": np.ones(len(self.scores))}[name]


EXPLORES = (
    "(setting probe-rate 0.5) (setting probe-depth 3) (setting probe-floor 0.2) (setting probes 1)"
)


@pytest.mark.long
@given(
    pools(), st.sampled_from([0.3, 0.7, 1.0]), st.sampled_from([0.2, 0.9, 1.0]), st.integers(1, 4)
)
@examples(100)
def test_the_head_is_certain_and_probes_come_from_the_ranks_below_it(pool, weight, above, limit):
    scores, vectors = pool
    trial = pack(weight, above, EXPLORES)
    ranking = rank_all(trial, scores, lambda: vectors, depth=limit + 3)
    shown = choose(
        trial, Pool(scores), scores, limit=limit, chance=generator(3, 5), ranking=ranking
    )
    head, band = (
        ranking.order[: ranking.showable][:limit],
        ranking.order[: ranking.showable][limit : limit + 3],
    )
    assert [
        position for position in shown.places.tolist() if position not in shown.probes.tolist()
    ] == head.tolist()
    assert set(shown.probes.tolist()) <= set(band.tolist())
    assert (shown.propensity[head] == 1).all()
    assert shown.propensity[band].sum() == pytest.approx(0.5 if len(band) else 0)
    assert shown.propensity[ranking.order[limit + 3 :]].sum() == 0
    assert shown.ranks[ranking.order].tolist() == list(range(1, len(scores) + 1))


@pytest.mark.long
def test_frequencies_are_the_propensities_where_likeness_reorders():
    dice = np.random.default_rng(1)
    scores, vectors = dice.random(12), dice.integers(-127, 128, (12, 4)).astype(np.int8)
    vectors[3] = vectors[int(np.argmax(scores))]
    trial, count = pack(0.5, 0.95, EXPLORES), 3000
    ranking = rank_all(trial, scores, lambda: vectors, depth=6)
    seen = np.zeros(12)
    for state in range(count):
        seen[
            choose(
                trial, Pool(scores), scores, limit=3, chance=generator(0, state), ranking=ranking
            ).places
        ] += 1
    expected = choose(
        trial, Pool(scores), scores, limit=3, chance=generator(0, 0), ranking=ranking
    ).propensity
    error = np.sqrt(expected * (1 - expected) / count)
    assert (np.abs(seen / count - expected) <= 4.5 * error + 1e-12).all()
    assert expected[3] == 0 or int(np.argmax(scores)) == 3
