"""The examples in the docstrings run."""

import doctest

import pytest

from memlab.structure import figure as _figure, topology as _topology
from memlab.subjects.clusters import searching as _clusters, keywords as _keywords


@pytest.mark.parametrize("module", [_clusters, _figure, _keywords, _topology])
def test_examples(module):
    failed, run = doctest.testmod(module)
    assert run
    assert not failed
