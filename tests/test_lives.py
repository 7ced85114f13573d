"""A few random lives: whatever happened, however it is opened, the lab tells the same (more: tests/campaigns/lives.py)."""

import importlib

import pytest

pytestmark = pytest.mark.long

life = importlib.import_module("tests.campaigns.living.life")


@pytest.mark.parametrize("number", range(5))
def test_a_life(number):
    lived = life.live(f"short-{number}", range(20), without=["kill", "replay"])
    assert lived.troubles == [], "\n".join(lived.said)
    assert len(lived.said) == 20


def test_lives_of_purges_and_entities_alone():
    """Names, texts and beginnings of texts coincide, and what is purged was merged, split, imported and clustered."""
    expected = {
        "remember",
        "fact",
        "entity",
        "merge_entities",
        "split_entity",
        "edit",
        "cluster",
        "consolidate",
        "load",
    }
    without = set(life.VERBS) - expected - {"purge", "conversation", "verify"} | {"kill", "reopen"}
    for number in range(4):
        lived = life.live(f"purge-{number}", range(25), without=without)
        assert lived.troubles == [], "\n".join(lived.said)
        assert lived.purged
