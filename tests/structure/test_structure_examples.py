"""The examples in the docstrings run."""

import doctest

import pytest

from memlab.structure import figure as _figure
from memlab.structure import topology as _topology
from memlab.subjects.clusters import keywords as _keywords
from memlab.subjects.clusters import searching as _clusters


@pytest.mark.parametrize("module", [_clusters, _figure, _keywords, _topology])
def test_examples(module):
    failed, run = doctest.testmod(module)
    assert run
    assert not failed
