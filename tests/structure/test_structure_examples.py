"""The examples in the docstrings run."""

import doctest

import pytest

from memlab.structure import _clusters, _figure, _keywords, _topology


@pytest.mark.parametrize("module", [_clusters, _figure, _keywords, _topology])
def test_examples(module):
    failed, run = doctest.testmod(module)
    assert run
    assert not failed
