"""Paths: the strongest of all simple ones, in order."""

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import InputError
from memlab.kernel.graph import Edges, trace

NODES = 6
pairs = st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)).filter(
    lambda pair: pair[0] != pair[1]
)
graphs = st.lists(st.tuples(pairs, st.sampled_from([0.0, 0.5, 1.0])), max_size=9)


def make_edges(graph):
    edges = Edges()
    edges.append(
        [s for (s, _), _ in graph],
        [t for (_, t), _ in graph],
        1,
        [w for _, w in graph],
        nodes=NODES,
    )
    return edges


@pytest.mark.long
@settings(deadline=None)
@given(graphs, st.integers(0, NODES - 1), st.integers(1, 4), st.integers(1, 30))
def test_equal_to_a_sort_of_all_simple_paths(graph, node, depth, limit):
    oracle = networkx.MultiGraph()
    oracle.add_nodes_from(range(NODES))
    for number, ((source, target), weight) in enumerate(graph):
        oracle.add_edge(source, target, key=number, weight=weight)
    every = []
    for path in networkx.all_simple_edge_paths(
        oracle, node, set(range(NODES)) - {node}, cutoff=depth
    ):
        product = 1.0
        for _, _, number in path:
            product *= graph[number][1]
        every.append((-product, len(path), tuple(number for _, _, number in path)))
    paths = trace(make_edges(graph), node, depth, limit=limit)
    assert [(-path.product, path.depth, path.edges) for path in paths.paths] == sorted(every)[
        :limit
    ]
    assert paths.cut == (len(every) > limit)
    # whatever a path goes on from stands before it, so the tree has a line for each
    lines = paths.tree().splitlines()
    assert len(lines) == 1 + len(paths.paths) + paths.cut


def test_the_frame_and_the_tree_of_a_chain():
    edges = Edges()
    edges.append([0, 2], [1, 1], [1, 2], [0.5, 0.5], nodes=3)
    paths = trace(edges, 0, 2)
    assert paths.frame.to_dicts() == [
        {
            "target": 1, "depth": 1, "product": 0.5, "nodes": [0, 1], "edges": [0], "relations": ["relates-to"],
            "weights": [0.5], "outgoing": [True],
        },
        {
            "target": 2, "depth": 2, "product": 0.25, "nodes": [0, 1, 2], "edges": [0, 1],
            "relations": ["relates-to", "supersedes"], "weights": [0.5, 0.5], "outgoing": [True, False],
        },
    ]  # fmt: skip
    assert paths.tree("#{}".format) == "#0\n└─relates-to→ #1 (0.50)\n  └←supersedes─ #2 (0.50)"
    assert trace(edges, 9, 2).frame.is_empty()
    assert str(trace(edges, 9, 2)) == "9"


def test_a_hub_is_looked_at_and_cut():
    edges = Edges()
    edges.append(
        [0] * 5_000, range(1, 5_001), 1, [1 - i / 10_000 for i in range(5_000)], nodes=5_001
    )
    paths = trace(edges, 1, 3, limit=5)
    assert [path.nodes for path in paths.paths] == [
        (1, 0),
        (1, 0, 2),
        (1, 0, 3),
        (1, 0, 4),
        (1, 0, 5),
    ]
    assert paths.cut


def test_invalid_arguments_are_refused():
    edges = make_edges([((0, 1), 1.0)])
    for call in ({"depth": 0}, {"depth": 1, "limit": 0}):
        with pytest.raises(InputError, match="must be at least 1"):
            trace(edges, 0, **call)
    with pytest.raises(InputError, match="Nodes must be in"):
        trace(edges, -1, 1)
    edges.relations[:] = ["next"]
    with pytest.raises(
        InputError, match="Edge 0 has relation number 1, but only 1 relations have names"
    ):
        trace(edges, 0, 1)
