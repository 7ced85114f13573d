"""What a recall returns and explains: why one memory ranks above another, and why one is missing."""

from __future__ import annotations

import math

import pytest

from memlab.errors import InputError, UnknownName
from tests.displays import html_of

TALK = [
    {"text": "The bakery opens at six.", "speaker": "Ada"},
    {"text": "When does the bakery open?", "speaker": "Ben"},
    {"text": "We have two goats by the sea.", "speaker": "Ada"},
    {"text": "A kayak trip with the goats.", "speaker": "Cy"},
    {"text": "Rain again, the whole week.", "speaker": "Ben"},
]


@pytest.fixture
def hits(lab):
    lab.remember(TALK, chain=True)
    return lab.recall("when does the bakery open?", limit=2)


def left_out(hits):
    return [memory for memory in hits.slate.ids.tolist() if memory not in hits.ids]


@pytest.mark.long
def test_why_is_the_difference_of_scores(hits):
    why = hits.why(hits[0], hits[1])
    assert why.names == (f"memory {hits[0].id}", f"memory {hits[1].id}")
    assert why.difference == pytest.approx(hits[0].score - hits[1].score, abs=1e-12)
    assert math.fsum(t.difference for t in why.terms) == pytest.approx(why.difference, abs=1e-12)
    assert hits[0].above(hits[1]) == why
    assert hits.why(hits[0].id, hits[1].id) == why


def test_why_not_compares_with_the_last_that_was_shown(hits):
    missing = left_out(hits)[-1]
    why = hits.why(missing)
    assert why.names == (f"memory {hits[-1].id}", f"memory {missing}")
    assert why.difference >= 0


def test_a_hit_alone_is_compared_with_the_best_that_was_not_shown(hits):
    best = hits.slate.frame.filter(~hits.slate.frame["memory_id"].is_in(hits.ids)).sort("rank")[
        "memory_id"
    ][0]
    assert hits[1].above().names == (f"memory {hits[1].id}", f"memory {best}")


@pytest.mark.long
def test_probes_were_not_shown_for_their_score(lab):
    lab.remember([{"text": f"kayak number {n}"} for n in range(30)])
    lab.policies.use(
        "(pack probing) (setting probe-rate 1) (setting probe-depth 10) (setting probes 1)"
    )
    hits = lab.recall("kayak", limit=3, explore=True)
    assert [hit.probe for hit in hits].count(True) == 1
    for said in (repr(hits), html_of(hits)):
        assert f"not in the top {len(hits) - 1}" in said
    last = [hit for hit in hits if not hit.probe][-1]
    assert hits.why(left_out(hits)[0]).names[0] == f"memory {last.id}"


def test_explaining_a_memory_outside_the_pool_is_an_error(hits):
    for ask in (hits.why, hits.explain):
        with pytest.raises(UnknownName, match="candidates of this recall"):
            ask(99)


def test_with_all_shown_there_is_nothing_left_to_compare(lab):
    lab.remember("kayak")
    with pytest.raises(InputError, match="Every candidate was returned"):
        lab.recall("kayak").why(1)


@pytest.mark.long
def test_the_tree_has_the_score_at_its_root(hits):
    for hit in hits:
        explanation = hit.explain()
        assert explanation.tree.root.value == pytest.approx(hit.score, abs=1e-12)
        assert "step by step" in html_of(explanation)


def test_a_pack_that_tests_sets(lab):
    lab.remember([{"text": f"kayak {n}", "tags": ["sea"] if n % 2 else []} for n in range(4)])
    lab.policies.use(
        '(pack tagged) (defpolicy recall-score [tags lexical] (+ lexical (if (has tags "sea") 1 0)))'
    )
    hits = lab.recall("kayak", limit=2)
    why = hits.why(left_out(hits)[0])
    assert why.terms[0].features == ('(has tags "sea")',)


def test_aggregates_range_over_the_pool(lab):
    lab.remember([{"text": f"kayak {n} {'very ' * n}"} for n in range(5)])
    lab.policies.use(
        "(pack ranks) (defpolicy recall-score [lexical length] (/ (slate-rank lexical) (+ 1 length)))"
    )
    hits = lab.recall("kayak", limit=2)
    assert hits[0].explain().tree.root.value == pytest.approx(hits[0].score)
