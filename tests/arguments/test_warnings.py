"""A warning names the line of the caller, not one of memlab."""

import warnings

import pytest

import memlab
from memlab.kernel.base.arguments import warn_caller


def heard(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(warning.category, warning.filename) for warning in caught]


@pytest.mark.parametrize(
    "call",
    [
        lambda lab: lab.remember("the key is AKIAIOSFODNN7EXAMPLE"),
        lambda lab: lab.agents("coder").remember("the key is AKIAIOSFODNN7EXAMPLE"),
        lambda lab: lab.edit(
            lab.remember("the key is in the vault"), text="the key is AKIAIOSFODNN7EXAMPLE"
        ),
    ],
    ids=["remember", "agent", "edit"],
)
def test_a_redaction_names_the_callers_line(lab, call):
    assert heard(lambda: call(lab)) == [(memlab.RedactionWarning, __file__)]


def test_a_warning_without_a_caller_outside_is_still_given():
    scope = {"__name__": "memlab.somewhere", "warn_caller": warn_caller}
    exec("def within(): warn_caller('told')", scope)
    assert heard(scope["within"]) == [(UserWarning, __file__)]
