"""Arrays of zeros that are lent: always zero, never two at once, dropped where something went wrong."""

import threading

import numpy as np
import pytest

from memlab.kernel.base.scratch import zeros

LARGE = 10_000


@pytest.mark.parametrize("size", [0, 5, LARGE])
def test_scratch_arrays_are_zeros_of_the_requested_size_and_type(size):
    with zeros(size, np.int32) as lent:
        assert lent.shape == (size,)
        assert lent.dtype == np.int32
        assert not lent.any()


def test_a_large_one_is_lent_again():
    with zeros(LARGE, np.float64) as first:
        pass
    with zeros(LARGE - 1, np.float64) as second:
        assert np.shares_memory(first, second)


def test_a_block_within_a_block_has_its_own():
    with zeros(LARGE, np.int64) as outer, zeros(LARGE, np.int64) as inner:
        assert not np.shares_memory(outer, inner)


def test_an_array_left_by_an_error_is_not_reused():
    def spoil():
        with zeros(LARGE, np.uint8) as lent:
            lent[:] = 7
            raise KeyError("half-way")

    with pytest.raises(KeyError):
        spoil()
    with zeros(LARGE, np.uint8) as lent:
        assert not lent.any()


def test_every_thread_has_its_own():
    with zeros(LARGE, np.int16) as mine:
        theirs = []

        def borrow():
            with zeros(LARGE, np.int16) as lent:
                theirs.append(np.shares_memory(mine, lent))

        thread = threading.Thread(target=borrow)
        thread.start()
        thread.join()
    assert theirs == [False]
