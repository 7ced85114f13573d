"""The attacks of experiments/poisoning.py in short: what a quarantine gives back, and what it cannot."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import memlab

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
poisoning: Any = importlib.import_module("poisoning")

OTHERS = [name for name in poisoning.ATTACKS if name != "foretold"]
"""What stores the same thing once does not store what was foretold: see below."""


@pytest.fixture(scope="module")
def month():
    return poisoning.Month(1, days=6, projects=1, asked_per_day=3)


@pytest.mark.parametrize("pack", memlab.packs())
def test_after_a_quarantine_every_question_is_answered_as_if_nothing_had_been_planted(month, trigrams, pack):
    clean = month.lived(pack, embedder=trigrams, logged=False)
    attacked = month.lived(pack, OTHERS, embedder=trigrams, logged=False)
    after = month.lived(pack, OTHERS, quarantined=True, embedder=trigrams, logged=False)
    assert any(attacked.planted)
    assert not any(after.planted)
    assert after.heads == clean.heads
    assert after.touched == 0


def test_a_pack_that_reinforces_nothing_answers_so_even_where_the_planted_were_recalled_and_praised(month, trigrams):
    clean = month.lived("memlab", embedder=trigrams)
    after = month.lived("memlab", OTHERS, quarantined=True, embedder=trigrams)
    assert after.heads == clean.heads


def test_what_was_not_stored_because_it_was_planted_before_is_lost(month, trigrams):
    after = month.lived("workbench", ["foretold"], quarantined=True, embedder=trigrams, logged=False)
    assert after.lost > 0
    assert not any(after.planted)
