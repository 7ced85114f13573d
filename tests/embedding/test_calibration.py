"""Closeness: the shipped model's cosines on its teacher's scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.kernel.embedding import SHIPPED_KNOTS, load_embedder

cosines = st.lists(st.floats(-1, 1), min_size=1, max_size=50).map(np.array)


@pytest.mark.long
@given(cosines)
def test_the_shipped_scale_is_monotone_and_stays_a_cosine(values):
    close = load_embedder().closeness(np.sort(values))
    assert (np.diff(close) >= 0).all()
    assert (np.abs(close) <= 1).all()


def test_knots_are_met():
    own, reference = np.array(SHIPPED_KNOTS).T
    assert np.array_equal(load_embedder().closeness(own), reference)


@given(cosines)
def test_another_embedder_is_left_as_it_is(values):
    other = load_embedder(lambda texts: [[len(text), 1.0] for text in texts])
    assert np.array_equal(other.closeness(values), values)
