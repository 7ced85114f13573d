"""A removed public name says what to use instead; a name that never existed is any missing attribute."""

import pytest

import memlab
from memlab.science import evaluation, simulation


@pytest.mark.parametrize(
    ("module", "name", "replacement"),
    [
        (memlab, "audit", "remember"),
        (evaluation, "estimators", "memlab.evaluate"),
        (simulation, "SPARSE", "probe-rate"),
    ],
)
def test_a_removed_name_says_what_to_use_instead(module, name, replacement):
    with pytest.raises(AttributeError, match=f"{name} was removed; instead: .*{replacement}"):
        getattr(module, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018
