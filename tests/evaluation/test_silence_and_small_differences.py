"""Verdicts where items have no feedback, and where no number of recalls would be enough."""

import polars as pl
import pytest
from test_verdicts import challenged

import memlab

pytestmark = pytest.mark.long


def half_answered():
    """Return a challenge in which every second item has feedback."""
    slates = challenged("ab")
    chosen = (pl.col("decision") + pl.col("memory_id") // 2) % 2 == 0
    return memlab.Slates(
        slates.decisions, slates.candidates, slates.exposures, slates.feedback.filter(chosen)
    )


def test_a_censored_reward_stands_in_for_items_without_feedback():
    slates = half_answered()
    zero = memlab.verdict(slates, missing="zero")["b"].difference
    censored = memlab.verdict(slates, missing="censor")["b"].difference
    assert censored.value == pytest.approx(2 * zero.value, rel=0.05)


def test_where_no_number_of_recalls_would_tell_and_all_is_shown_no_trial_is_advised():
    result = memlab.verdict(half_answered(), missing="bounds")["b"]
    assert (result.needed, result.unsupported) == (None, 0.0)
    assert result.faster == (
        "The difference, if any, is too small to detect within ten million recalls."
    )
