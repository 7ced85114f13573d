"""Edges: crossings and steps equal to a list of tuples, whatever was appended when."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import InputError
from memlab.kernel.graph import Edges

NODES = 8
pairs = st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)).filter(
    lambda pair: pair[0] != pair[1]
)
edge = st.tuples(pairs, st.integers(0, 2), st.sampled_from([0.0, 0.3, 1.0]))
batches = st.lists(st.lists(edge, max_size=6), max_size=6)


def filled(batches, *, look_between=False):
    edges = Edges()
    for batch in batches:
        edges.append(
            [source for (source, _), _, _ in batch],
            [target for (_, target), _, _ in batch],
            [relation for _, relation, _ in batch],
            [weight for _, _, weight in batch],
            nodes=NODES,
        )
        if look_between:
            edges.crossings(np.arange(NODES))
    return edges


@pytest.fixture(params=[(1024, 65_536), (2, 65_536), (2, 4)], ids=["tail", "run", "base"])
def limits(request, monkeypatch):
    monkeypatch.setattr("memlab.kernel.graph._nodes.TAIL", request.param[0])
    monkeypatch.setattr("memlab.kernel.graph._nodes.RUN_MIN", request.param[1])


@pytest.mark.long
@pytest.mark.usefixtures("limits")
class TestLookUps:
    @settings(deadline=None)
    @given(batches, st.lists(st.integers(0, NODES - 1), max_size=5), st.booleans())
    def test_crossings_equal_a_search_through_all(self, batches, rows, look_between):
        edges = filled(batches, look_between=look_between)
        plain = [(source, target) for batch in batches for (source, target), _, _ in batch]
        expected = [
            (position, number, target if source == row else source, source == row)
            for position, row in enumerate(rows)
            for number, (source, target) in enumerate(plain)
            if row in (source, target)
        ]
        result = edges.crossings(rows)
        assert (
            list(
                zip(
                    result.position.tolist(),
                    result.edge.tolist(),
                    result.neighbour.tolist(),
                    result.outgoing.tolist(),
                    strict=True,
                )
            )
            == expected
        )
        assert edges.degree(rows).tolist() == [sum(row in pair for pair in plain) for row in rows]

    @settings(deadline=None)
    @given(
        batches, st.lists(st.integers(0, NODES - 1), max_size=5), st.integers(0, 3), st.booleans()
    )
    def test_a_step_takes_the_first_edge_of_the_relation(self, batches, rows, relation, outgoing):
        edges = filled(batches, look_between=True)
        plain = [
            ((source, target), kind) for batch in batches for (source, target), kind, _ in batch
        ]
        expected = []
        for row in rows:
            along = [
                pair[1] if outgoing else pair[0]
                for pair, kind in plain
                if kind == relation and pair[0 if outgoing else 1] == row
            ]
            expected.append(along[0] if along else -1)
        assert edges.step(rows, relation, outgoing=outgoing).tolist() == expected


def test_columns_grow_and_are_read_only():
    edges = Edges()
    for start in range(200):
        numbers = edges.append([start], [start + 1], start % 3, 0.5, nodes=201, created=start * 10)
        assert numbers.tolist() == [start]
    assert edges.source.tolist() == list(range(200))
    assert edges.target.tolist() == list(range(1, 201))
    assert edges.relation.tolist() == [start % 3 for start in range(200)]
    assert edges.created.tolist() == list(range(0, 2000, 10))
    with pytest.raises(ValueError, match="read-only"):
        edges.weight[0] = 1.0
    edges.append([0], [1], 0, 0.25, nodes=201)
    assert edges.weight[-1] == 0.25


def test_reinforcing_sets_the_weight_and_counts():
    edges = Edges()
    edges.append([0, 1, 2], [1, 2, 3], 0, 0.5, nodes=4)
    edges.crossings([0])
    edges.reinforce([0, 2], np.minimum(edges.weight[[0, 2]] + 0.05, 1.0))
    edges.reinforce([2], 1.0)
    assert edges.weight.tolist() == [0.55, 0.5, 1.0]
    assert edges.reinforcements.tolist() == [1, 0, 2]
    for numbers, weight in (
        ([3], 0.1),
        ([-1], 0.1),
        ([0], 1.1),
        ([0], np.nan),
        ([0, 0], 0.1),
        ([0], [0.1, 0.2]),
    ):
        with pytest.raises(InputError):
            edges.reinforce(numbers, weight)
    assert edges.weight.tolist() == [0.55, 0.5, 1.0]


@pytest.mark.parametrize(
    ("edge", "message"),
    [
        ((3, 3, 0, 0.5), r"Edge 1 of 3 \(3 -> 3, weight 0.5\): a node cannot be linked to itself"),
        ((0, 9, 0, 0.5), r"Edge 1 of 3 \(0 -> 9.*rows lie in 0\.\.8"),
        ((-1, 2, 0, 0.5), r"Edge 1 of 3 \(-1 -> 2"),
        ((0, 2, 0, 1.5), r"Edge 1 of 3 .*a weight must be in 0\.\.1"),
        ((0, 2, 0, -0.1), r"weight -0\.1"),
        ((0, 2, 0, float("nan")), r"weight nan"),
        ((0, 2, -1, 0.5), r"relation code"),
        ((0, 2, 40_000, 0.5), r"relation code"),
    ],
)
def test_a_bad_edge_is_named_and_nothing_is_added(edge, message):
    edges = Edges()
    columns = [[0, edge[0], 1], [1, edge[1], 2], [0, edge[2], 0], [1.0, edge[3], 1.0]]
    with pytest.raises(InputError, match=message):
        edges.append(*columns, nodes=9)
    assert len(edges) == 0


def test_columns_of_other_lengths_or_types_are_refused():
    edges = Edges()
    for columns in (
        ([0, 1], [1], 0, 1.0),
        ([0], [1], [0, 0], 1.0),
        ([0], [1], 0, [1.0, 1.0]),
        ([0.5], [1], 0, 1.0),
        ([True], [False], 0, 1.0),
    ):
        with pytest.raises(InputError):
            edges.append(*columns, nodes=3)
    with pytest.raises(InputError, match="no rows yet"):
        edges.append([0], [1], 0, 1.0, nodes=0)
    assert edges.append([], [], [], [], nodes=0).tolist() == []


def test_no_edges_at_all():
    edges = Edges()
    assert len(edges.crossings([0, 5])) == 0
    assert edges.step([0, 5], 0).tolist() == [-1, -1]
    assert edges.degree([]).tolist() == []


@pytest.mark.long
@given(batches)
def test_the_nodes_that_a_relation_entered_are_known_after_every_append(batches):
    edges, ends = Edges(), set()
    for batch in batches:
        for (source, target), relation, weight in batch:
            edges.append([source], [target], [relation], [weight], nodes=NODES)
            ends |= {target} if relation == 1 else set()
        assert edges.entered(1).tolist() == sorted(ends)
