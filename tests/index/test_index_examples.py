"""The examples in the docstrings of the index run."""

import doctest

import numpy as np
import pytest

from memlab.index import _bm25, _segments, _tokens, _vectors, _words


@pytest.mark.parametrize("module", [_bm25, _segments, _tokens, _vectors, _words], ids=lambda module: module.__name__)
def test_examples(module):
    assert doctest.testmod(module, extraglobs={"np": np}).failed == 0
