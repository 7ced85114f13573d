"""Products of whole numbers block by block are those of one product."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memlab.kernel.index import products, products_below


def matrices(rows, dim):
    return arrays(np.int8, st.tuples(st.integers(0, rows), st.just(dim)))


@pytest.mark.long
@given(
    st.integers(1, 40).flatmap(lambda dim: st.tuples(matrices(9, dim), matrices(9, dim))),
    st.booleans(),
)
def test_each_pair_as_by_hand(pair, wide):
    left, right = pair
    result = products(left, right.astype(np.float64 if wide else np.float32))
    by_hand = [
        [sum(int(a) * int(b) for a, b in zip(x, y, strict=True)) for y in right] for x in left
    ]
    assert result.tolist() == by_hand or not result.size
    assert result.shape == (len(left), len(right))


def test_many_blocks_of_rows_and_columns():
    dice = np.random.default_rng(3)
    left, right = (dice.integers(-128, 128, (count, 256)).astype(np.int8) for count in (130, 530))
    whole = left.astype(np.int64) @ right.T.astype(np.int64)
    assert (products(left, right.astype(np.float32)) == whole).all()
    assert (
        products(left[:, :1], right[:, :1].astype(np.float32))
        == np.outer(left[:, 0], right[:, 0].astype(int))
    ).all()


def test_products_with_rows_before_are_those_of_all():
    dice = np.random.default_rng(3)
    for rows in (0, 1, 2, 31, 33, 100, 301):
        matrix = dice.integers(-127, 128, (rows, 256)).astype(np.float32)
        assert np.array_equal(
            np.tril(products_below(matrix, matrix)), np.tril(products(matrix, matrix))
        )
