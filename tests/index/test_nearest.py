"""The nearest rows of many queries at once: equal to exact search, row by row and bit by bit."""

import numpy as np
import pytest

from memlab.kernel.index import Vectors

DIM = 16


def filled(rows, seed, low=-127):
    vectors = Vectors(DIM)
    components = np.random.default_rng(seed).integers(low, 128, (rows, DIM)).astype(np.int8)
    components[::7] = components[0]  # ties
    components[3::11] = 0
    vectors.append(components)
    return vectors


@pytest.mark.parametrize("rows", [1, 5, 40, 700])
@pytest.mark.parametrize("n", [0, 1, 5, 30])
@pytest.mark.parametrize("queries", [1, 3, 9])
def test_it_equals_exact_search_with_ties_zeros_and_excluded_rows(rows, n, queries):
    vectors = filled(rows, rows)
    drawn = np.random.default_rng(n)
    asked = drawn.integers(-127, 128, (queries, DIM)).astype(np.int8)
    asked[0] = vectors.take(np.array([0]))[0]
    if queries > 1:
        asked[1] = 0
    for excluded in (None, drawn.random(rows) < 0.4, np.ones(rows, dtype=np.bool_)):
        searched = np.arange(rows) if excluded is None else np.flatnonzero(~excluded)
        for query, (found, cosines) in zip(
            asked, vectors.nearest(asked, n, excluded=excluded), strict=True
        ):
            wanted, exact = vectors.top(query, n, rows=searched, exact=True)
            assert (found == wanted).all()
            assert (cosines == exact).all()


def test_beyond_the_rows_in_memory_it_equals_exact_search():
    vectors = filled(60, 1)
    small = Vectors(DIM, exact_up_to=10)
    small.append(vectors.take())
    query = vectors.take(np.array([8, 9]))
    for one, other in zip(small.nearest(query, 4), vectors.nearest(query, 4), strict=True):
        assert (one[0] == other[0]).all()
        assert (one[1] == other[1]).all()
