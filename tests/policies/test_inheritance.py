"""Inheritance of packs: what a pack inherits, and what its own policy for a slot replaces."""

from memlab.kernel.policies import load_pack


def test_a_pack_with_a_recall_score_of_its_own_inherits_no_known():
    own = load_pack('(pack own "Nearness alone.") (defpolicy recall-score [similarity] similarity)')
    assert "known" in load_pack('(pack same "As before.") (setting limit 7)').decided
    assert "known" not in own.decided
