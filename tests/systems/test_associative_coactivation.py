"""What is recalled together grows together: +0.05 a time, at most 1."""

import pytest

import memlab


@pytest.fixture
def lab(clock):
    with memlab.open(pack="associative", clock=clock) as lab:
        lab.remember(
            ["rust build fails on CI", "rust build on CI is slow", "the cake was sweet"],
            linking="off",
        )
        yield lab


def edges(lab):
    return lab.edges.filter(to_kind="memory").select("relation", "weight", "reinforcements").rows()


@pytest.mark.long
def test_five_recalls_of_both_strengthen_their_edge_five_times(lab):
    lab.graph.link(1, 2, weight=0.3)
    for _ in range(5):
        assert {1, 2} <= set(lab.recall("rust build CI", limit=2).ids)
    ((relation, weight, times),) = edges(lab)
    assert (relation, times) == ("relates-to", 5)
    assert weight == pytest.approx(0.55)


def test_the_weight_is_at_most_one_and_no_edge_is_added(lab):
    lab.graph.link(1, 2, "inspires", weight=0.97)
    for _ in range(3):
        lab.recall("rust build CI", limit=3)
    assert edges(lab) == [("inspires", 1.0, 3)]


def test_unlogged_recalls_and_single_results_strengthen_nothing(lab):
    lab.graph.link(1, 2, weight=0.3)
    lab.recall("rust build CI", limit=2, log=False)
    assert edges(lab) == [("relates-to", 0.3, 0)]


def test_a_contradiction_does_not_grow_truer_by_being_seen(lab):
    lab.graph.link(1, 2, "contradicts", weight=0.3)
    lab.recall("rust build CI", limit=2)
    assert edges(lab) == [("contradicts", 0.3, 0)]


def test_other_packs_strengthen_nothing_by_showing(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        lab.remember(["rust build fails on CI", "rust build on CI is slow"], linking="off")
        lab.graph.link(1, 2, weight=0.3)
        lab.recall("rust build fails on CI")
        assert edges(lab) == [("relates-to", 0.3, 0)]
