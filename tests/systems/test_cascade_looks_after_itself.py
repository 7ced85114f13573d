"""After each retrieval, in the background: a verifier by default, links, gaps, clusters refined every fifty retrievals.

The pack as it comes, with the shipped embedder; nobody calls maintain.
"""

import polars as pl
import pytest

import memlab
from memlab.subjects.clusters.registers import Recalls

pytestmark = pytest.mark.long

NOTES = [
    "The build on CI fails when the redis container is missing",
    "Redis listens on port 6380 in the build on CI",
    "The user speaks French fluently",
    "The release goes out on Tuesdays",
]


@pytest.fixture
def lab(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        lab.remember(NOTES, linking="off")
        yield lab


def offered(turns, *contexts):
    """Return the memories that are offered for each of the contexts."""
    results = []
    for context in contexts:
        turns.offer(context)
        assert turns.wait(60)
    results = turns.offer("zzzz qqqq")
    assert turns.wait(60)
    return results


def test_a_verifier_is_there_without_being_asked_for(lab):
    with lab.agents.turns() as turns:
        result = offered(turns, "the redis build on CI fails")
    assert {hit.id for hit in result} == {1, 2}
    assert result.notes == ()
    assert lab.edges.filter(pl.col("relation") == "relates-to").select(
        "source", "target", "weight"
    ).rows() == [(1, 2, 0.1)]
    confidence = lab.memories["confidence"].round(12).to_list()
    assert confidence[:2] == [0.82, 0.82], "verified ones gain 0.02"


def test_an_offer_may_name_relations(lab):
    lab.remember("The user speaks no French", linking="off")
    with lab.agents.turns() as turns:
        offered(turns, "Does the user speak French?")
    named = lab.edges.filter(pl.col("relation") == "contradicts").select("source", "target").rows()
    assert named == [(5, 3)], "the later one contradicts the earlier"
    assert lab.memories["status"].unique().to_list() == ["active"], "nothing is retired by a rule"


def test_a_gap_is_brought_up_at_the_end_of_the_session(lab):
    with lab.agents.turns(session="monday", verifier=lambda hits: []) as turns:
        offered(turns, "the redis build on CI needs which password?")
    learned = lab.agents.end_session("monday")
    assert "the redis build on CI needs which password?" in learned.gaps["snippet"].to_list()
    assert "Recall returned nothing useful 2 times" in learned.text
    assert "- the redis build on CI needs which password?" in learned.text
    for gap in learned.gaps["gap"]:
        lab.upkeep.review.close_gap(gap, "asked the user")
    with pytest.raises(memlab.InputError, match="has no turns"):
        lab.agents.end_session("monday")


def refined(lab):
    return lab.log.filter(pl.col("kind") == "refine").height


def test_clusters_are_refined_after_fifty_retrievals(lab):
    for number in range(49):
        lab.recall(f"the build number {number}")
    assert refined(lab) == 0
    with lab.agents.turns() as turns:
        turns.offer("the redis build on CI fails")
        assert turns.wait(60)
        assert refined(lab) == 1, "the fiftieth was that of a turn"
        turns.offer("the release")
        assert turns.wait(60)
    assert refined(lab) == 1
    assert lab.io.store.state.projection(Recalls).since_refined == 1


def test_clusters_that_results_span_are_refined(clock):
    topics = ["the bakery opens at {}", "deploys go out on {}"]
    with memlab.open(pack="cascade", clock=clock) as lab:
        lab.remember(
            [topic.format(n) for topic in topics for n in ("one", "two", "three", "four")],
            linking="off",
        )
        lab.graph.clusters.find(min_size=2)
        assert len(lab.graph.clusters.frame()) > 1
        before = refined(lab)
        with lab.agents.turns(verifier=None) as turns:
            turns.offer("the bakery opens, and deploys go out")
            assert turns.wait(60)
        assert refined(lab) == before + 1


def test_a_trigger_and_a_gap_of_what_is_unknown_in_turns():
    clock = memlab.ManualClock("2026-06-01")
    with memlab.open(pack="cascade", clock=clock) as lab:
        lab.remember(
            "How we ship",
            kind="procedure",
            triggers=["deploy to production"],
            steps=["make deploy"],
        )
        lab.remember("Banana bread needs ripe bananas")
        with lab.agents.turns(session="s") as turns:
            turns.offer("please deploy to production")
            turns.wait(30)
            assert [
                hit.id for hit in turns.offer("how is the kubernetes cluster upgraded?").hits
            ] == [1]
            turns.wait(30)
            turns.offer("hello")
            turns.wait(30)
        (gap,) = lab.upkeep.review.gaps().to_dicts()
        assert (gap["snippet"], gap["session"]) == ("how is the kubernetes cluster upgraded?", "s")
        assert gap["at"].isoformat() == "2026-06-01T00:00:00+00:00"
        hits = lab.recall("who repairs the espresso machine?", session="t")
        lab.agents.verify(hits, [])
        assert lab.upkeep.review.gaps()["session"].to_list() == ["s", "t"]
