"""Five memories that say the same are not injected before one that says something else of the question."""

import pytest

import memlab

STORIES = {
    "refresh token bug": (
        "Redis refresh token bug in middleware copy {}",
        "Token refresh race with multiple tabs",
    ),
    "why does the checkout time out": (
        "Checkout times out when the payment gateway retries, seen {} times",
        "The checkout page waits for the stock service before it shows a timeout",
    ),
    "flaky login test": (
        "The login test is flaky on run {}",
        "Why login tests turn flaky: the session ends early",
    ),
}


@pytest.mark.parametrize("question", STORIES)
def test_something_else_comes_before_a_third_copy(clock, question):
    copy, other = STORIES[question]
    with memlab.open(pack="workbench", clock=clock) as lab:
        for number in range(5):
            lab.remember(copy.format(number), kind="gotcha", linking="off")
        lab.remember(other, kind="gotcha", linking="off")
        lab.remember("Lunch is at noon on Thursdays", kind="gotcha", linking="off")
        texts = [hit.text for hit in lab.recall(question, limit=3, log=False)]
        assert other in texts[:2]
        assert "Lunch is at noon on Thursdays" not in texts[:2]
