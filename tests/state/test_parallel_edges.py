"""Edges of the same ends and relation, to a viewer from whom another edge is hidden: each has the lab's number."""

import memlab


def test_each_of_two_edges_between_the_same_memories_has_the_number_that_the_lab_gave_it():
    clock = memlab.ManualClock("2026-03-01")
    with memlab.open(clock=clock) as lab:
        lab.remember(["The goat eats hay", "The horse eats oats"], linking="off")
        lab.remember("The goat of Ann eats gold", visibility="private", creator="ann")
        lab.graph.link(1, 3)
        for weight in (0.3, 0.4):
            clock.advance(days=1)
            edge = {"source": [1], "target": [2], "relation": "relates-to", "weight": weight}
            with lab.io.store.writing() as tx:
                tx.event("link", {"edges": edge}, at=clock())
        own = lab.edges.filter(target=2).select("weight", "edge").rows()
        assert own == [(0.3, 1), (0.4, 2)]
        assert lab.at(viewer="bob").edges.select("weight", "edge").rows() == own
