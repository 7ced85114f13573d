"""Topology against networkx."""

import networkx
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.kernel.graph import Edges, Nodes, communities
from memlab.kernel.schema import RELATIONS
from memlab.subjects.clusters.topology import key_scores, measure_topology, newest_edges

JOINS = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(1, 10)), max_size=40)


def graph(joins, nodes=12):
    """Return the same graph twice: as Edges, and in networkx with the weights of parallel edges summed."""
    edges, simple = Edges(), networkx.Graph()
    joins = [(one, other, tenth / 10) for one, other, tenth in joins if one != other]
    if joins:
        source, target, weight = zip(*joins, strict=True)
        edges.append(source, target, 1, weight, nodes=nodes)
    for one, other, weight in joins:
        before = simple.get_edge_data(one, other, {"weight": 0.0})["weight"]
        simple.add_edge(one, other, weight=before + weight)
    return edges, simple


@pytest.mark.long
@examples(60)
@given(JOINS)
def test_every_measure_is_that_of_networkx(joins):
    edges, simple = graph(joins)
    labels = communities(edges)
    shape = measure_topology(edges, labels)
    total = dict(shape.totals.iter_rows())
    assert shape.exact
    assert total["nodes"] == total["joined"] == simple.number_of_nodes()
    assert total["density"] == pytest.approx(networkx.density(simple) if simple else 0)
    assert total["clustering"] == pytest.approx(
        networkx.average_clustering(simple) if simple else 0
    )
    parts = list(networkx.connected_components(simple))
    assert total["components"] == len(parts)
    assert total["largest component"] == max(map(len, parts), default=0)
    of = dict(zip(labels.rows.tolist(), labels.labels.tolist(), strict=True))
    for row in shape.nodes.iter_rows(named=True):
        assert row["community"] == of[row["node"]]
        assert row["memory_id"] == row["node"] + 1
        assert row["bridge"] == any(of[near] != row["community"] for near in simple[row["node"]])
        assert row["degree"] == sum(
            (one == row["node"]) + (other == row["node"]) for one, other, _ in joins if one != other
        )
    for row in shape.communities.iter_rows(named=True):
        members = {node for node, label in of.items() if label == row["community"]}
        part = simple.subgraph(members)
        assert row["size"] == row["memories"] == len(members)
        assert row["edges"] == part.number_of_edges()
        assert row["density"] == pytest.approx(networkx.density(part))
        local = networkx.clustering(simple)
        assert row["clustering"] == pytest.approx(np.mean([local[node] for node in members]))
        assert row["bridges"] == networkx.cut_size(simple, members)
        strength = dict(part.degree(weight="weight"))
        assert [strength[item - 1] for item in row["central"]] == pytest.approx(
            sorted(strength.values())[::-1][:3]
        )


@pytest.mark.long
@examples(30)
@given(JOINS)
def test_bridges_name_their_strongest_edge(joins):
    edges, simple = graph(joins)
    labels = communities(edges)
    of = dict(zip(labels.rows.tolist(), labels.labels.tolist(), strict=True))
    for row in measure_topology(edges, labels).bridges.iter_rows(named=True):
        assert {of[row["source"] - 1], of[row["target"] - 1]} == {row["left"], row["right"]}
        assert row["relation"] == RELATIONS[1]
        between = [
            d["weight"]
            for a, b, d in simple.edges(data=True)
            if {of[a], of[b]} == {row["left"], row["right"]}
        ]
        assert row["weight"] == pytest.approx(sum(between))


def test_memories_that_nothing_joins_thin_the_graph_out():
    edges, _ = graph([(0, 1, 5), (1, 2, 5)])
    total = dict(measure_topology(edges, communities(edges), memories=10).totals.iter_rows())
    assert (total["nodes"], total["joined"], total["components"]) == (10, 3, 8)
    assert total["density"] == pytest.approx(2 / 45)


def test_tags_are_nodes_but_no_memories():
    edges, nodes = Edges(), Nodes(memories=3)
    (tag,) = nodes.intern("tag", ["boat"])
    edges.append([0, 1, 2], [tag] * 3, RELATIONS.index("has-tag"), 1.0, nodes=nodes)
    shape = measure_topology(edges, communities(edges), memories=3)
    assert shape.nodes["kind"].to_list() == ["memory"] * 3 + ["tag"]
    assert shape.nodes["memory_id"].to_list() == [1, 2, 3, None]
    assert shape.communities.select("memories", "size").row(0) == (3, 4)
    assert shape.communities["central"].to_list() == [[1, 2, 3]]
    assert shape.relations.select("relation", "edges", "share").rows() == [("has-tag", 3, 1.0)]


def test_a_removed_edge_is_gone():
    edges, _ = graph([(0, 1, 5), (1, 2, 5), (4, 5, 5)])
    edges.remove([2])
    shape = measure_topology(edges, communities(edges))
    assert shape.nodes["node"].to_list() == [0, 1, 2]
    assert shape.relations["edges"].to_list() == [2]


def test_no_edges():
    shape = measure_topology(Edges(), communities(Edges()), memories=4)
    total = dict(shape.totals.iter_rows())
    assert (total["nodes"], total["components"], total["largest component"]) == (4, 4, 1)
    for frame in (shape.nodes, shape.communities, shape.bridges, shape.relations):
        assert frame.height == 0
    assert shape.communities.schema["central"] == pl.List(pl.Int64)


def test_of_many_edges_those_of_the_newest_memories_are_taken():
    edges = Edges()
    edges.append(np.arange(99), np.arange(1, 100), 0, 1.0, nodes=100)
    edges.append([0, 0], [99, 50], 1, 1.0, nodes=100)
    assert newest_edges(edges, 101) is None
    mask = newest_edges(edges, 20)
    assert np.flatnonzero(mask).tolist() == list(range(79, 99))
    assert communities(edges, keep=mask).rows.tolist() == list(range(79, 100))


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 50)), min_size=1))
def test_a_key_memory_is_important_and_used(rows):
    importance, access = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    scores = key_scores(importance, access)
    assert scores.min() >= 0
    assert scores.max() <= 1
    assert np.all(scores[(importance == 0) | (access == 0)] == 0)
    top = np.flatnonzero(access == access.max())
    if access.max():
        assert scores[top] == pytest.approx(np.sqrt(importance[top]))
