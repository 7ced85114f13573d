"""The attacks of tests/campaigns/poisoning.py in short: what a quarantine restores, and what it cannot."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import memlab

pytestmark = pytest.mark.long

poisoning: Any = importlib.import_module("tests.campaigns.poisoning")

ATTACKS = (
    "instructions",
    "corrections",
    "near_duplicates",
    "user_corrections",
    "stuffing",
    "weighty",
    "dormant",
)
"""All but those that ask and praise, that write more than some packs let an agent write, and what is foretold."""


@pytest.fixture(scope="module")
def month():
    return poisoning.Month(1, days=6, projects=1, questions_per_day=2)


@pytest.mark.parametrize("pack", memlab.packs())
def test_an_attack_detected_at_once_leaves_no_trace_in_any_answer(trigrams, pack):
    month = poisoning.Month(1, days=5, projects=1, questions_per_day=2, detected=poisoning.BEGINS)
    clean = month.lived(pack, embedder=trigrams, logged=False)
    after = month.lived(pack, ATTACKS, quarantined=True, embedder=trigrams, logged=False)
    assert after.heads == clean.heads
    assert (after.touched, after.lost) == (0, 0)


def test_a_pack_that_reinforces_nothing_answers_so_even_where_the_planted_were_recalled_and_praised(
    month, trigrams
):
    clean = month.lived("memlab", embedder=trigrams)
    attacked = month.lived("memlab", ["boosted"], embedder=trigrams)
    after = month.lived("memlab", ["boosted"], quarantined=True, embedder=trigrams)
    assert any(attacked.planted)
    assert after.heads == clean.heads


def test_decisions_made_while_planted_memories_were_present_stay(month, trigrams):
    """Facts told while a planted one replaced the true one have no edge to it, so all of them are restored."""
    after = month.lived(
        "factgraph", ["near_duplicates"], quarantined=True, embedder=trigrams, logged=False
    )
    assert after.back > 0
    assert not any(after.planted)
    assert after.touched == 0


def test_a_statement_not_stored_because_of_a_planted_duplicate_is_lost(month, trigrams):
    after = month.lived(
        "workbench", ["foretold"], quarantined=True, embedder=trigrams, logged=False
    )
    assert not any(after.planted)
    assert after.lost > 0
