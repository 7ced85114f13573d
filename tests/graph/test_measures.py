"""The shape of a graph, against networkx."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples

from memlab.errors import InputError
from memlab.kernel.graph import Edges, bridges, clustering, communities

NODES = 9
pairs = st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)).filter(
    lambda pair: pair[0] != pair[1]
)
weighted = st.lists(st.tuples(pairs, st.sampled_from([0.25, 0.5, 1.0])), max_size=20)


def make_edges(graph, nodes=NODES):
    edges = Edges()
    edges.append(
        [s for (s, _), _ in graph],
        [t for (_, t), _ in graph],
        0,
        np.array([w for _, w in graph]),
        nodes=nodes,
    )
    return edges


def from_networkx(graph):
    return make_edges([(ends, 1.0) for ends in graph.edges], nodes=len(graph))


def simple(graph):
    oracle = networkx.Graph()
    oracle.add_nodes_from(range(NODES))
    oracle.add_edges_from(pair for pair, _ in graph)
    return oracle


@pytest.mark.long
@settings(deadline=None)
@given(weighted)
def test_clustering_of_the_simple_graph(graph):
    edges, oracle = make_edges(graph), simple(graph)
    result = clustering(edges, range(NODES))
    assert result.coefficient.tolist() == pytest.approx(list(networkx.clustering(oracle).values()))
    assert result.mean == pytest.approx(networkx.average_clustering(oracle))
    assert result.exact


def test_removed_edges_do_not_count():
    edges = make_edges([((0, 1), 1.0), ((1, 2), 1.0), ((0, 2), 1.0)], nodes=3)
    edges.remove([2])
    assert clustering(edges, [1]).coefficient.tolist() == [0.0]


@pytest.mark.long
def test_a_sample_says_so_and_comes_near():
    oracle = networkx.powerlaw_cluster_graph(2_000, 6, 0.7, seed=4)
    edges = from_networkx(oracle)
    result = clustering(edges, range(2_000), max_rows=500, seed=1)
    assert not result.exact
    assert len(result.rows) == 500
    assert result.mean == pytest.approx(networkx.average_clustering(oracle), abs=0.05)
    again = clustering(edges, range(2_000), max_rows=500, seed=1)
    assert again.coefficient.tolist() == result.coefficient.tolist()
    hub = int(np.argmax(edges.degree(range(2_000))))
    assert clustering(edges, [hub]).mean == pytest.approx(
        networkx.clustering(oracle, hub), abs=0.05
    )


@pytest.mark.long
@settings(deadline=None)
@given(weighted, st.lists(st.integers(0, 2), min_size=NODES, max_size=NODES), st.integers(0, NODES))
def test_bridges_equal_a_loop(graph, labels, bridges_known):
    expected = {}
    for number, ((source, target), weight) in enumerate(graph):
        if max(source, target) < bridges_known and labels[source] != labels[target]:
            key = tuple(sorted((labels[source], labels[target])))
            expected.setdefault(key, []).append((weight, number))
    result = bridges(make_edges(graph), range(bridges_known), labels[:bridges_known])
    assert {
        row[:2]: row[2:]
        for row in result.select("left", "right", "edges", "weight", "strongest").rows()
    } == {
        key: (
            len(crossing),
            sum(w for w, _ in crossing),
            min(n for w, n in crossing if w == max(crossing)[0]),
        )
        for key, crossing in expected.items()
    }
    assert result["weight"].to_list() == sorted(result["weight"].to_list(), reverse=True)


def test_bridges_refuse_labels_that_do_not_fit():
    with pytest.raises(InputError, match="There are 2 rows but 1 labels"):
        bridges(Edges(), [0, 1], [0])
    with pytest.raises(InputError, match="more than once"):
        bridges(Edges(), [1, 1], [0, 0])


class TestCommunities:
    @pytest.mark.long
    @examples(50, quick=20)
    @given(weighted, st.integers(0, 3))
    def test_modularity_and_order(self, graph, seed):
        labels = communities(make_edges(graph), seed=seed)
        assert labels.rows.tolist() == sorted({end for pair, _ in graph for end in pair})
        if not graph:
            return
        oracle = networkx.MultiGraph()
        oracle.add_weighted_edges_from((s, t, w) for (s, t), w in graph)
        groups = [set(labels.rows[labels.labels == label].tolist()) for label in range(len(labels))]
        assert labels.modularity == pytest.approx(networkx.community.modularity(oracle, groups))
        assert groups == sorted(groups, key=lambda group: (-len(group), min(group)))
        # never worse than everyone alone
        assert (
            labels.modularity
            >= networkx.community.modularity(oracle, [{row} for row in oracle]) - 1e-12
        )
        again = communities(make_edges(graph), seed=seed)
        assert again.labels.tolist() == labels.labels.tolist()

    @pytest.mark.long
    @pytest.mark.parametrize(
        "graph",
        [
            networkx.karate_club_graph(),
            networkx.gnm_random_graph(400, 1200, seed=1),
            networkx.ring_of_cliques(30, 5),
        ],
        ids=["karate", "random", "cliques"],
    )
    def test_as_good_as_moving_one_node_after_the_other(self, graph):
        ours = [communities(from_networkx(graph), seed=seed).modularity for seed in range(5)]
        theirs = [
            networkx.community.modularity(
                graph,
                networkx.community.louvain_communities(graph, seed=seed, weight=None),
                weight=None,
            )
            for seed in range(5)
        ]
        assert max(ours) >= max(theirs) - 0.01

    @pytest.mark.long
    def test_planted_groups_are_found(self):
        graph = networkx.planted_partition_graph(8, 40, 0.4, 0.01, seed=2)
        labels = communities(from_networkx(graph))
        assert len(labels) == 8
        assert len(set(zip(labels.labels.tolist(), (labels.rows // 40).tolist(), strict=True))) == 8

    def test_a_mask_and_a_resolution(self):
        edges = make_edges([((0, 1), 1.0), ((2, 3), 1.0), ((1, 2), 1.0)], nodes=4)
        assert communities(edges, keep=np.array([True, False, False])).rows.tolist() == [0, 1]
        assert len(communities(edges, resolution=10.0)) == 4
        for bad in ({"resolution": 0.0}, {"keep": np.array([1, 0, 1])}, {"keep": np.array([True])}):
            with pytest.raises(InputError):
                communities(edges, **bad)

    def test_nothing_joined_is_no_community(self):
        edges = make_edges([((0, 1), 0.0)], nodes=2)
        assert len(communities(edges)) == 0
        assert communities(edges).frame.is_empty()
