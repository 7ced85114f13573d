"""The examples in the docstrings of slates run."""

import doctest

import polars as pl

from memlab.slates import _tables


def test_examples():
    found = doctest.testmod(_tables, extraglobs={"pl": pl})
    assert found.attempted >= 5
    assert found.failed == 0
