"""Smaller promises of the five designs."""

import pytest

import memlab
from memlab.subjects.reading.claims import difference


def test_the_notice_of_a_change_says_instead_of_what():
    changed = difference(
        "We use JWT for auth", "We now use session cookies for auth instead of JWT"
    )
    assert changed == "JWT for auth -> session cookies for auth instead of JWT"
    assert difference("Indent with tabs", "Indent with spaces instead") == "tabs -> spaces"


def test_cascade_counts_consolidations_as_strength(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        lab.remember("The deploy takes ten minutes")
        lab.remember("given", strength=7.0, linking="off")
        lab.remember("The deploy takes ten minutes.")
        assert lab.memories["strength"].to_list() == [2.0, 7.0]


def test_statements_of_people_have_the_highest_weight_of_all_kinds(clock):
    with memlab.open(pack="workbench", clock=clock) as lab:
        for kind in ("gotcha", "convention", "human-feedback", "decision", "codebase-map"):
            lab.remember("Keep migrations reversible", kind=kind, linking="off")
        kinds = [hit.kind for hit in lab.recall("reversible migrations", log=False)]
        assert kinds[0] == "human-feedback"


@pytest.mark.long
def test_a_fact_that_is_told_three_times_more_is_confirmed(clock):
    with memlab.open(pack="factgraph", clock=clock) as lab:
        for confidence in (0.5, 0.7, 0.6, 0.6):
            lab.facts.add("Ada", "uses", "Rust", confidence=confidence)
        assert lab.memories.select("access", "confidence", "status").rows() == [
            (3.0, 0.7, "staged")
        ]
        lab.upkeep.maintain()
        assert lab.memories["status"].to_list() == ["confirmed"]
