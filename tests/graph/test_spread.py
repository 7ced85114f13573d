"""Spreading activation: equal to loops over dictionaries, and to what can be worked out by hand."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples
from scipy.sparse import csr_array

from memlab.errors import InputError
from memlab.kernel.graph import SPREAD_MODES, Edges, Nodes, activate, spread
from memlab.kernel.graph._spread import select_within

NODES = 7
WAVES = ("cascade", "energy", "hops")
pairs = st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)).filter(
    lambda pair: pair[0] != pair[1]
)
graphs = st.lists(st.tuples(pairs, st.sampled_from([0.25, 0.5, 1.0])), max_size=14)
seeds = st.dictionaries(
    st.integers(0, NODES - 1), st.sampled_from([-0.5, 0.0, 0.4, 1.0]), max_size=4
)


def make_edges(graph, nodes=NODES):
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
    return make_edges([((row, row + 1), weight) for row in range(length - 1)], nodes=length)


def damped(batch):
    return 0.7 * batch.activation * batch.weight


def by_weight(batch):
    return batch.weight


def plain_spread(graph, energy, steps, threshold, mode):
    """Spread activation by definition, one edge at a time: {row: (activation, received, hops)}."""
    activation, received = dict(energy), dict.fromkeys(energy, 0.0)
    hops = dict.fromkeys(energy, 0)
    last = sorted(energy)
    for depth in range(1, steps + 1):
        leaving = sorted(activation) if mode == "energy" else last
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
            if mode != "energy":
                if mode == "cascade" or hops[row] == depth:
                    received[row] = max(received[row], *arrivals[row])
                if row not in energy:
                    activation[row] = received[row]
            else:
                total = 0.0
                for passed in arrivals[row]:
                    total += passed
                received[row] += total
                activation[row] += total
        if not last and mode != "energy":
            break
    return {row: (activation[row], received[row], hops[row]) for row in sorted(activation)}


def as_plain(spread_with):
    columns = (spread_with.rows, spread_with.activation, spread_with.received, spread_with.hops)
    return {
        row: (a, r, h)
        for row, a, r, h in zip(*(column.tolist() for column in columns), strict=True)
    }


@pytest.mark.long
@examples(200)
@given(graphs, seeds, st.integers(0, 4), st.sampled_from([0.0, 0.1, 0.3]), st.sampled_from(WAVES))
def test_equal_to_the_definition(graph, energy, steps, threshold, mode):
    activation = spread(
        make_edges(graph),
        list(energy),
        list(energy.values()),
        damped,
        steps=steps,
        nodes=NODES,
        threshold=threshold,
        mode=mode,
    )
    assert as_plain(activation) == plain_spread(graph, energy, steps, threshold, mode)
    assert (activation.unexpanded, activation.narrowed, activation.left) == (0, 0, 0.0)


@pytest.mark.long
@settings(deadline=None)
@given(graphs, st.integers(0, 14), seeds, st.sampled_from(SPREAD_MODES))
def test_the_storage_of_edges_does_not_move_a_bit(graph, cut, energy, mode):
    edges = make_edges(graph[:cut])
    edges.crossings([0])
    for (source, target), weight in graph[cut:]:
        edges.append([source], [target], 0, weight, nodes=NODES)
    # numbers of edges may differ by some that are gone
    gone = Edges()
    gone.append([0, 2], [1, 0], 0, 0.5, nodes=NODES)
    gone.append(
        *(make_edges(graph).source, make_edges(graph).target, 0, make_edges(graph).weight),
        nodes=NODES,
    )
    gone.remove([0, 1])
    limited = {"max_crossings": 5, "fan_out": 2}
    for limits in ({}, limited):
        results = [
            as_plain(
                spread(
                    held,
                    list(energy),
                    list(energy.values()),
                    damped,
                    steps=3,
                    nodes=NODES,
                    mode=mode,
                    **limits,
                )
            )
            for held in (edges, gone, make_edges(graph))
        ]
        assert results[0] == results[1] == results[2]


@pytest.mark.long
@settings(deadline=None)
@given(graphs, st.integers(0, NODES - 1), st.integers(0, 5), st.sampled_from(WAVES))
def test_hops_are_the_lengths_of_shortest_paths(graph, seed, steps, mode):
    oracle = networkx.Graph([pair for pair, _ in graph])
    oracle.add_node(seed)
    expected = networkx.single_source_shortest_path_length(oracle, seed, cutoff=steps)
    activation = spread(
        make_edges(graph),
        [seed],
        [1.0],
        lambda b: np.ones(len(b)),
        steps=steps,
        nodes=NODES,
        mode=mode,
    )
    assert dict(zip(activation.rows.tolist(), activation.hops.tolist(), strict=True)) == dict(
        expected
    )


class TestPageRank:
    @pytest.mark.long
    @examples(60)
    @given(graphs, seeds, st.sampled_from([0.0, 0.5, 0.85]))
    def test_equal_to_power_iteration(self, graph, energy, damping):
        total = sum(max(0.0, own) for own in energy.values())
        if not total:
            return
        oracle = networkx.DiGraph()
        oracle.add_nodes_from(range(NODES))
        for (source, target), weight in graph:
            for ends in ((source, target), (target, source)):
                known = oracle.get_edge_data(*ends, default={"weight": 0.0})["weight"]
                oracle.add_edge(*ends, weight=known + weight)
        shares = {row: max(0.0, own) for row, own in energy.items()}
        exact = networkx.pagerank(
            oracle, alpha=damping, personalization=shares, tol=1e-14, max_iter=1000
        )
        activation = spread(
            make_edges(graph), list(energy), list(energy.values()), by_weight, steps=1000, nodes=NODES, mode="ppr",
            damping=damping, threshold=1e-13,
        )  # fmt: skip
        values = dict(zip(activation.rows.tolist(), activation.activation.tolist(), strict=True))
        for row in range(NODES):
            assert values.get(row, 0.0) == pytest.approx(total * exact[row], abs=1e-10)
        assert activation.activation.sum() + activation.left == pytest.approx(total)

    @pytest.mark.long
    @settings(deadline=None)
    @given(graphs, seeds, st.sampled_from([0.3, 0.01]), st.integers(0, 4))
    def test_the_remaining_energy_bounds_the_error(self, graph, energy, threshold, steps):
        def spread_with(threshold, steps):
            return spread(
                make_edges(graph), list(energy), list(energy.values()), by_weight, steps=steps, nodes=NODES, mode="ppr",
                damping=0.7, threshold=threshold,
            )  # fmt: skip

        exact, rough = spread_with(0.0, 200), spread_with(threshold, steps)
        values = dict(zip(rough.rows.tolist(), rough.activation.tolist(), strict=True))
        for row, activation in zip(exact.rows.tolist(), exact.activation.tolist(), strict=True):
            assert -1e-9 <= activation - values.get(row, 0.0) <= rough.left + 1e-9

    def test_personalised_pagerank_stays_near_its_seeds(self):
        # a thousand nodes in a row: the bound of Andersen, Chung and Lang on all crossings together
        crossed = []

        def counted(batch):
            crossed.append(len(batch))
            assert batch.depth == 1
            assert (batch.activation == 1.0).all()
            return by_weight(batch)

        activation = spread(
            chain(1000), [500], [1.0], counted, steps=500, nodes=1000, mode="ppr", threshold=1e-3
        )
        assert sum(crossed) <= 1 / ((1 - 0.85) * 1e-3)
        assert len(activation.rows) < 60
        assert activation.hops.tolist() == abs(activation.rows - 500).tolist()

    def test_where_nothing_passes_the_walker_returns(self):
        activation = spread(
            chain(3),
            [0, 2],
            [3.0, 1.0],
            lambda b: np.zeros(len(b)),
            steps=400,
            nodes=3,
            mode="ppr",
            threshold=1e-12,
        )
        assert activation.activation.tolist() == pytest.approx([3.0, 1.0])


def test_tags_are_passed_through_and_count_as_a_hop():
    nodes = Nodes(memories=3)
    tag = int(nodes.intern("tag", ["rust"])[0])
    edges = Edges()
    edges.append([0, 2], [tag, tag], 7, 1.0, nodes=nodes)
    activation = spread(
        edges, [0], [0.9], lambda b: 0.8 * 0.7**b.depth * np.ones(len(b)), steps=2, nodes=nodes
    )
    assert as_plain(activation) == {
        0: (0.9, 0.8 * 0.7**2, 0),
        2: (0.8 * 0.7**2,) * 2 + (2,),
        tag: (0.8 * 0.7,) * 2 + (1,),
    }
    assert as_plain(activation.of_kind("memory")).keys() == {0, 2}
    assert as_plain(activation.of_kind("tag")).keys() == {tag}
    assert len(activation.of_kind("entity").rows) == 0
    assert spread(edges, [tag], [1.0], damped, steps=1, nodes=nodes).rows.tolist() == [0, 2, tag]
    with pytest.raises(InputError, match="There is no tag with number 1: the graph has 1"):
        spread(edges, [0, tag + 1], [1.0, 1.0], damped, steps=1, nodes=nodes)


def test_energy_equals_products_of_a_matrix():
    dice = np.random.default_rng(5)
    source = dice.integers(0, 20_000, 100_000)
    target = (source + dice.integers(1, 20_000, 100_000)) % 20_000
    weight = dice.random(100_000)
    edges = Edges()
    for part in np.array_split(np.arange(100_000), 7):
        edges.append(source[part], target[part], 0, weight[part], nodes=20_000)
        edges.crossings([0])
    matrix = csr_array((weight, (source, target)), shape=(20_000, 20_000))
    expected = np.zeros(20_000)
    expected[[3, 9]] = 1.0, 0.5
    for _ in range(3):
        expected = expected + 0.7 * ((matrix + matrix.T) @ expected)
    result = activate(edges, [3, 9], [1.0, 0.5], steps=3, threshold=0.0, nodes=20_000)
    assert result.unexpanded == 0
    assert result.rows.tolist() == np.flatnonzero(expected).tolist()
    np.testing.assert_allclose(result.activation, expected[result.rows], rtol=1e-12)


@pytest.mark.slow
def test_a_million_edges_on_one_node():
    edges = Edges()
    edges.append(np.zeros(1_000_000, dtype=int), np.arange(1, 1_000_001), 0, 1.0, nodes=1_000_001)
    for mode in SPREAD_MODES:
        activation = spread(edges, [5], [1.0], damped, steps=3, nodes=1_000_001, mode=mode)
        assert activation.narrowed >= 1
        assert len(activation.rows) <= 10_003
    bounded = Edges()
    numbers = bounded.append(
        np.zeros(1_000_000, dtype=int),
        np.arange(1, 1_000_001),
        0,
        1.0,
        nodes=1_000_001,
        max_degree=1_000,
    )
    assert len(bounded) == 1_000
    assert (numbers[:-1_000] == -1).all()  # of equals the newest


@given(
    st.lists(st.tuples(st.sampled_from([-1.0, 0.0, 0.5, 0.7, 1.0]), st.integers(0, 3)), min_size=1),
    st.data(),
)
def test_the_selected_nodes_are_a_prefix_of_a_sort(nodes, data):
    activation, degree = (np.array(column) for column in zip(*nodes, strict=True))
    nodes, activation, degree = nodes * 9, np.tile(activation, 9), np.tile(degree, 9)
    most = data.draw(st.integers(1, max(1, int(degree.sum()) - 1)))
    expected, spent = [], 0
    for position in sorted(range(len(nodes)), key=lambda place: (-activation[place], place)):
        spent += degree[position]
        if spent > most:
            break
        expected.append(position)
    if degree.sum():
        assert select_within(activation, degree, most).tolist() == expected


def test_a_hub_passes_over_its_newest_edges():
    edges = make_edges([((0, leaf), 1.0) for leaf in range(1, 9)], nodes=9)
    activation = spread(edges, [0], [1.0], damped, steps=1, nodes=9, fan_out=3)
    assert (activation.rows.tolist(), activation.narrowed) == ([0, 6, 7, 8], 1)
    edges.remove([7])
    assert spread(edges, [0], [1.0], damped, steps=1, nodes=9, fan_out=3).rows.tolist() == [
        0,
        5,
        6,
        7,
    ]
    # the limit of a wave counts what is crossed
    activation = spread(edges, [0], [1.0], damped, steps=1, nodes=9, fan_out=3, max_crossings=3)
    assert (activation.unexpanded, activation.narrowed) == (0, 1)


@pytest.mark.long
@settings(deadline=None)
@given(graphs, seeds, st.integers(0, 3), st.sampled_from([0.0, 0.1]))
def test_activating_is_spreading_energy_by_weight(graph, energy, steps, threshold):
    result = activate(
        make_edges(graph),
        list(energy),
        list(energy.values()),
        steps=steps,
        decay=0.7,
        threshold=threshold,
        nodes=NODES,
    )
    expected = plain_spread(graph, energy, steps, threshold, "energy")
    assert as_plain(result).keys() == expected.keys()
    for row, numbers in as_plain(result).items():
        assert numbers == pytest.approx(expected[row])


def test_a_seed_keeps_its_own_energy_and_a_row_its_best_arrival():
    # 0 and 2 are seeds around 1
    activation = spread(chain(4), [0, 2], [1.0, 0.1], damped, steps=3, nodes=4)
    assert as_plain(activation) == {
        0: (1.0, 0.7 * 0.7, 0),
        1: (0.7, 0.7, 1),
        2: (0.1, 0.7 * 0.7, 0),
        3: (0.7 * 0.1, 0.7 * 0.1, 1),
    }


def test_the_sum_flows_both_ways_at_every_step():
    activation = spread(
        chain(3), [0], [1.0], lambda batch: 0.5 * batch.activation, steps=2, nodes=3, mode="energy"
    )
    # step 1: 1 gets .5; step 2: 1 gets another .5 from 0, 0 and 2 get .25 from 1
    assert as_plain(activation) == {0: (1.25, 0.25, 0), 1: (1.0, 1.0, 1), 2: (0.25, 0.25, 2)}


def test_the_inputs_of_a_spread_policy():
    edges = Edges()
    edges.append([0, 2], [1, 1], [3, 4], [0.5, 0.25], nodes=3)
    batches = []

    def watched(batch):
        batches.append(batch)
        return np.ones(len(batch))

    spread(edges, [0], [0.9], watched, steps=2, nodes=3)
    first, second = batches
    assert (first.depth, first.source.tolist(), first.target.tolist(), first.edge.tolist()) == (
        1,
        [0],
        [1],
        [0],
    )
    assert (first.activation.tolist(), first.weight.tolist(), first.relation.tolist()) == (
        [0.9],
        [0.5],
        [3],
    )
    assert first.outgoing.tolist() == [True]
    # back over the edge it came by, and against the direction of the other
    assert (second.depth, second.source.tolist(), second.target.tolist()) == (2, [1, 1], [0, 2])
    assert second.outgoing.tolist() == [False, False]
    assert second.relation.tolist() == [3, 4]


@pytest.mark.parametrize("mode", WAVES)
@pytest.mark.parametrize("passed", [0.0, -1.0, np.nan, np.inf, 0.19])
def test_an_edge_that_passes_nothing_reaches_nothing(passed, mode):
    activation = spread(
        chain(3),
        [1],
        [1.0],
        lambda b: np.full(len(b), passed),
        steps=3,
        nodes=3,
        threshold=0.2,
        mode=mode,
    )
    assert as_plain(activation) == {1: (1.0, 0.0, 0)}


def test_the_threshold_itself_passes():
    activation = spread(
        chain(2), [0], [1.0], lambda b: np.full(len(b), 0.2), steps=1, nodes=2, threshold=0.2
    )
    assert activation.rows.tolist() == [0, 1]


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


def test_a_wave_is_bounded_and_reports_what_it_left_out():
    # two hubs with ten leaves each; the stronger one goes first
    graph = [((hub, 2 + 10 * hub + leaf), 1.0) for hub in (0, 1) for leaf in range(10)]
    edges = make_edges(graph, nodes=22)
    activation = spread(edges, [0, 1], [0.4, 0.9], damped, steps=1, nodes=22, max_crossings=15)
    assert activation.unexpanded == 1
    assert activation.rows.tolist() == [0, 1, *range(12, 22)]
    whole = spread(edges, [0, 1], [0.4, 0.9], damped, steps=1, nodes=22, max_crossings=20)
    assert (whole.unexpanded, len(whole.rows)) == (0, 22)
    none = spread(edges, [0], [0.4], damped, steps=1, nodes=22, max_crossings=9)
    assert (none.unexpanded, none.rows.tolist()) == (1, [0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [0, 0], "energy": [1.0, 1.0]}, "more than once"),
        ({"rows": [3]}, r"rows 0\.\.2"),
        ({"rows": [-1]}, r"rows 0\.\.2"),
        ({"rows": [0, 1]}, "one energy for each"),
        ({"energy": [np.nan]}, "activation of seed node 0 is nan"),
        ({"energy": [np.inf]}, "must be finite"),
        ({"mode": "energi"}, "no mode of spreading .*Did you mean energy"),
        ({"fan_out": 0}, "fan_out=0"),
        ({"damping": 1.0, "mode": "ppr"}, "Damping must be at least 0 and below 1"),
        ({"steps": -1}, "at least 0"),
        ({"threshold": np.nan}, "at least 0"),
        ({"pass_on": lambda batch: np.ones(3)}, r"returned an array of shape \(3,\) for 1 edges"),
        ({"pass_on": lambda batch: 1.0}, "for 1 edges"),
    ],
)
def test_invalid_arguments_are_refused(change, message):
    call = {"rows": [0], "energy": [1.0], "pass_on": damped, "steps": 1, "nodes": 3, **change}
    with pytest.raises(InputError, match=message):
        spread(chain(3), **call)
