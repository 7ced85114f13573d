"""Spreading activation: equal to loops over dictionaries, and to what can be worked out by hand."""

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import InputError
from memlab.graph import Edges, _spread, spread

NODES = 7
pairs = st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)).filter(lambda pair: pair[0] != pair[1])
graphs = st.lists(st.tuples(pairs, st.sampled_from([0.25, 0.5, 1.0])), max_size=14)
seeds = st.dictionaries(st.integers(0, NODES - 1), st.sampled_from([-0.5, 0.0, 0.4, 1.0]), max_size=4)


def made(graph, nodes=NODES):
    edges = Edges()
    edges.append(
        [source for (source, _), _ in graph],
        [target for (_, target), _ in graph],
        0,
        [w for _, w in graph],
        nodes=nodes,
    )
    return edges


def chain(length, weight=1.0):
    return made([((row, row + 1), weight) for row in range(length - 1)], nodes=length)


def damped(batch):
    return 0.7 * batch.activation * batch.weight


def plain_spread(graph, energy, steps, threshold, combine):
    """The definition, one edge at a time: {row: (activation, received, hops)}."""
    activation, received = dict(energy), dict.fromkeys(energy, 0.0)
    hops = dict.fromkeys(energy, 0)
    last = sorted(energy)
    for depth in range(1, steps + 1):
        leaving = last if combine == "max" else sorted(activation)
        arrivals = {}
        for row in leaving:
            for (source, target), weight in graph:
                if row in (source, target):
                    passed = 0.7 * activation[row] * weight
                    if passed > 0 and passed >= threshold:
                        arrivals.setdefault(target if row == source else source, []).append(passed)
        last = []
        for row in sorted(arrivals):
            if row not in hops:
                hops[row] = depth
                received[row] = activation[row] = 0.0
                last.append(row)
            if combine == "max":
                received[row] = max(received[row], *arrivals[row])
                if row not in energy:
                    activation[row] = received[row]
            else:
                total = 0.0
                for passed in arrivals[row]:
                    total += passed
                received[row] += total
                activation[row] += total
        if not last and combine == "max":
            break
    return {row: (activation[row], received[row], hops[row]) for row in sorted(activation)}


def as_plain(found):
    columns = (found.rows, found.activation, found.received, found.hops)
    return {row: (a, r, h) for row, a, r, h in zip(*(column.tolist() for column in columns), strict=True)}


@settings(deadline=None, max_examples=200)
@given(graphs, seeds, st.integers(0, 4), st.sampled_from([0.0, 0.1, 0.3]), st.sampled_from(["max", "sum"]))
def test_equal_to_the_definition(graph, energy, steps, threshold, combine):
    found = spread(
        made(graph),
        list(energy),
        list(energy.values()),
        damped,
        steps=steps,
        nodes=NODES,
        threshold=threshold,
        combine=combine,
    )
    assert as_plain(found) == plain_spread(graph, energy, steps, threshold, combine)
    assert found.unexpanded == 0


@settings(deadline=None)
@given(graphs, st.integers(0, 14), seeds, st.sampled_from(["max", "sum"]))
def test_the_storage_of_edges_does_not_move_a_bit(graph, cut, energy, combine):
    edges = made(graph[:cut])
    edges.crossings([0])
    for (source, target), weight in graph[cut:]:
        edges.append([source], [target], 0, weight, nodes=NODES)
    found, expected = (
        spread(held, list(energy), list(energy.values()), damped, steps=3, nodes=NODES, combine=combine)
        for held in (edges, made(graph))
    )
    assert as_plain(found) == as_plain(expected)


def test_a_seed_keeps_its_own_energy_and_a_row_its_best_arrival():
    # 0 and 2 are seeds around 1
    found = spread(chain(4), [0, 2], [1.0, 0.1], damped, steps=3, nodes=4)
    assert as_plain(found) == {
        0: (1.0, 0.7 * 0.7, 0),
        1: (0.7, 0.7, 1),
        2: (0.1, 0.7 * 0.7, 0),
        3: (0.7 * 0.1, 0.7 * 0.1, 1),
    }


def test_the_sum_flows_both_ways_at_every_step():
    found = spread(chain(3), [0], [1.0], lambda batch: 0.5 * batch.activation, steps=2, nodes=3, combine="sum")
    # step 1: 1 gets .5; step 2: 1 gets another .5 from 0, 0 and 2 get .25 from 1
    assert as_plain(found) == {0: (1.25, 0.25, 0), 1: (1.0, 1.0, 1), 2: (0.25, 0.25, 2)}


def test_what_a_policy_sees():
    edges = Edges()
    edges.append([0, 2], [1, 1], [3, 4], [0.5, 0.25], nodes=3)
    batches = []

    def watched(batch):
        batches.append(batch)
        return np.ones(len(batch))

    spread(edges, [0], [0.9], watched, steps=2, nodes=3)
    first, second = batches
    assert (first.depth, first.source.tolist(), first.target.tolist(), first.edge.tolist()) == (1, [0], [1], [0])
    assert (first.activation.tolist(), first.weight.tolist(), first.relation.tolist()) == ([0.9], [0.5], [3])
    assert first.outgoing.tolist() == [True]
    # back over the edge it came by, and against the direction of the other
    assert (second.depth, second.source.tolist(), second.target.tolist()) == (2, [1, 1], [0, 2])
    assert second.outgoing.tolist() == [False, False]
    assert second.relation.tolist() == [3, 4]


@pytest.mark.parametrize("combine", ["max", "sum"])
@pytest.mark.parametrize("passed", [0.0, -1.0, np.nan, np.inf, 0.19])
def test_what_does_not_pass_reaches_nothing(passed, combine):
    found = spread(
        chain(3), [1], [1.0], lambda b: np.full(len(b), passed), steps=3, nodes=3, threshold=0.2, combine=combine
    )
    assert as_plain(found) == {1: (1.0, 0.0, 0)}


def test_the_threshold_itself_passes():
    found = spread(chain(2), [0], [1.0], lambda b: np.full(len(b), 0.2), steps=1, nodes=2, threshold=0.2)
    assert found.rows.tolist() == [0, 1]


def test_a_policy_is_asked_once_a_wave_and_not_without_edges():
    calls = []

    def counted(batch):
        calls.append(batch.depth)
        return damped(batch)

    spread(chain(50), [0, 20], [1.0, 1.0], counted, steps=4, nodes=50)
    assert calls == [1, 2, 3, 4]
    calls.clear()
    spread(Edges(), [0], [1.0], counted, steps=4, nodes=50)
    spread(chain(50), [], [], counted, steps=4, nodes=50)
    spread(chain(50), [0], [1.0], counted, steps=0, nodes=50)
    assert calls == []


def test_a_wave_is_bounded_and_says_what_it_left_out():
    # two hubs with ten leaves each; the stronger one goes first
    graph = [((hub, 2 + 10 * hub + leaf), 1.0) for hub in (0, 1) for leaf in range(10)]
    edges = made(graph, nodes=22)
    found = spread(edges, [0, 1], [0.4, 0.9], damped, steps=1, nodes=22, most_crossings=15)
    assert found.unexpanded == 1
    assert found.rows.tolist() == [0, 1, *range(12, 22)]
    whole = spread(edges, [0, 1], [0.4, 0.9], damped, steps=1, nodes=22, most_crossings=20)
    assert (whole.unexpanded, len(whole.rows)) == (0, 22)
    none = spread(edges, [0], [0.4], damped, steps=1, nodes=22, most_crossings=9)
    assert (none.unexpanded, none.rows.tolist()) == (1, [0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [0, 0], "energy": [1.0, 1.0]}, "a seed once"),
        ({"rows": [3]}, r"rows 0\.\.2"),
        ({"rows": [-1]}, r"rows 0\.\.2"),
        ({"rows": [0, 1]}, "one energy each"),
        ({"energy": [np.nan]}, "energy of seed 0 is nan"),
        ({"energy": [np.inf]}, "must be finite"),
        ({"combine": "mean"}, '"max" or "sum"'),
        ({"steps": -1}, "at least 0"),
        ({"threshold": np.nan}, "at least 0"),
        ({"pass_on": lambda batch: np.ones(3)}, r"answered \(3,\) for 1 edges"),
        ({"pass_on": lambda batch: 1.0}, "for 1 edges"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    call = {"rows": [0], "energy": [1.0], "pass_on": damped, "steps": 1, "nodes": 3, **change}
    with pytest.raises(InputError, match=message):
        spread(chain(3), **call)


def test_examples():
    assert doctest.testmod(_spread).failed == 0
