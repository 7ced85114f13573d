"""Directions: at length 1, and the same sums in any order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from memlab.subjects.clusters.finding import compute_centre, compute_directions

ROWS = hnp.arrays(
    np.int8, st.tuples(st.integers(1, 30), st.just(5)), elements=st.integers(-127, 127)
)


@pytest.mark.long
@given(ROWS)
def test_a_direction_has_length_1_and_a_zero_vector_has_none(vectors):
    length = np.linalg.norm(compute_directions(vectors, compute_centre(vectors)), axis=1)
    assert np.all((np.abs(length - 1) < 1e-6) | (length == 0))
    assert np.all(length[~vectors.any(axis=1)] == 0)


@pytest.mark.long
@given(ROWS, st.randoms())
def test_neither_order_nor_batch_changes_a_bit(vectors, dice):
    order = np.array(dice.sample(range(len(vectors)), len(vectors)))
    centre = compute_centre(vectors)
    assert np.array_equal(compute_centre(vectors[order]), centre)
    whole = compute_directions(vectors, centre)
    assert np.array_equal(compute_directions(vectors[order], centre), whole[order])
    alone = np.concatenate(
        [compute_directions(vectors[index : index + 1], centre) for index in range(len(vectors))]
    )
    assert np.array_equal(alone, whole)
    assert np.array_equal(whole[order].sum(axis=0), whole.sum(axis=0))


def test_scale_does_not_count():
    vectors = np.array([[1.0, 2.0], [-3.0, 0.5]])
    assert np.array_equal(compute_directions(vectors), compute_directions(vectors * 64))
