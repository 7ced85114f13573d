"""Edges that are found, removed, bounded and written down, against plain lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.errors import DamagedLab, InputError
from memlab.kernel.graph import Edges, Nodes
from memlab.kernel.graph._nodes import MIN_ROOM, node_codes

NODES = 6
edge = st.tuples(
    st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)).filter(
        lambda pair: pair[0] != pair[1]
    ),
    st.integers(0, 1),
    st.sampled_from([0.0, 0.3, 0.6, 1.0]),
)
batches = st.lists(edge, max_size=8)


@pytest.fixture(
    params=[(1024, 65_536), (2, 65_536), (2, 4)], ids=["tail", "run", "base"], autouse=True
)
def limits(request, monkeypatch):
    monkeypatch.setattr("memlab.kernel.graph._nodes.TAIL", request.param[0])
    monkeypatch.setattr("memlab.kernel.graph._nodes.RUN_MIN", request.param[1])


def columns(batch):
    return (
        [source for (source, _), _, _ in batch],
        [target for (_, target), _, _ in batch],
        np.array([relation for _, relation, _ in batch], dtype=np.int64),
        np.array([weight for _, _, weight in batch]),
    )


class Plain:
    """The same edges as a list; None is one that was removed."""

    def __init__(self):
        self.edges = []

    def live(self):
        return [(number, edge) for number, edge in enumerate(self.edges) if edge is not None]

    def remove(self, numbers):
        gone = {number for number in numbers if self.edges[number] is not None}
        for number in gone:
            self.edges[number] = None
        return len(gone)

    def append(self, batch, maximum):
        """Append a batch and keep the strongest edges of each node and relation, the newer of equal ones."""
        held = self.live() + [(len(self.edges) + at, edge) for at, edge in enumerate(batch)]
        out = set()
        if maximum is not None:
            for group in {(end, relation) for ends, relation, _ in batch for end in ends}:
                here = [
                    (w, number)
                    for number, (ends, relation, w) in held
                    if group[0] in ends and group[1] == relation
                ]
                out |= {number for _, number in sorted(here, reverse=True)[maximum:]}
        before = len(self.edges)
        self.remove(number for number in out if number < before)
        numbers = []
        for at, edge in enumerate(batch):
            numbers.append(-1 if before + at in out else len(self.edges))
            if before + at not in out:
                self.edges.append(edge)
        return numbers

    def crossings(self, row, newest=None):
        met = [
            (number, target if source == row else source, source == row)
            for number, ((source, target), _, _) in self.live()
            if row in (source, target)
        ]
        return met if newest is None else met[-newest:]


def crossings(edges, row, newest=None):
    result = edges.crossings([row], newest=newest)
    return list(
        zip(result.edge.tolist(), result.neighbour.tolist(), result.outgoing.tolist(), strict=True)
    )


operation = st.one_of(
    st.tuples(st.just("append"), batches, st.sampled_from([None, 1, 2, 4])),
    st.tuples(st.just("remove"), st.lists(st.integers(0, 60), max_size=4)),
    st.tuples(st.just("look")),
    st.tuples(st.just("reopen")),
)


@pytest.mark.long
@examples(60)
@given(operations=st.lists(operation, max_size=12))
def test_any_history_equals_a_list(operations, tmp_path_factory):
    edges, plain = Edges(), Plain()
    path = tmp_path_factory.mktemp("edges") / "edges.bin"
    for name, *given_ in operations:
        if name == "append":
            batch, most = given_
            assert edges.append(
                *columns(batch), nodes=NODES, max_degree=most
            ).tolist() == plain.append(batch, most)
        elif name == "remove":
            numbers = [number for number in given_[0] if number < len(plain.edges)]
            assert edges.remove(np.array(numbers, dtype=np.int64)) == plain.remove(numbers)
        elif name == "reopen":
            edges.save(path)
            edges = Edges.load(path)
        else:
            edges.crossings([0])
    assert (len(edges), edges.live) == (len(plain.edges), len(plain.live()))
    assert edges.alive.tolist() == [edge is not None for edge in plain.edges]
    assert edges.degree(range(NODES)).tolist() == [
        len(plain.crossings(row)) for row in range(NODES)
    ]
    for row in range(NODES):
        assert crossings(edges, row) == plain.crossings(row)
        assert crossings(edges, row, newest=2) == plain.crossings(row, newest=2)
    pairs = [(a, b, r) for a in range(NODES) for b in range(NODES) for r in (0, 1)]
    first = {}
    for number, (ends, relation, _) in plain.live():
        first.setdefault((*ends, relation), number)
    sources, targets, relations = (list(column) for column in zip(*pairs, strict=True))
    assert edges.find(sources, targets, relations).tolist() == [
        first.get(pair, -1) for pair in pairs
    ]
    either = [
        min((first[key] for key in ((a, b, r), (b, a, r)) if key in first), default=-1)
        for a, b, r in pairs
    ]
    assert edges.find(sources, targets, relations, either=True).tolist() == either


def test_an_edge_keeps_its_number_when_others_go():
    edges = Edges()
    edges.append([0, 1, 2], [1, 2, 3], 0, [0.1, 0.2, 0.3], nodes=4)
    assert edges.remove(edges.weight < 0.15) == 1
    assert edges.remove([0]) == 0
    assert edges.append([0], [1], 0, 0.9, nodes=4).tolist() == [3]
    edges.reinforce([2], 1.0)
    assert edges.weight.tolist() == [0.1, 0.2, 1.0, 0.9]
    with pytest.raises(InputError, match="Edge 0 was removed"):
        edges.reinforce([0], 1.0)
    with pytest.raises(InputError, match=r"numbered 0\.\.3"):
        edges.remove([4])
    with pytest.raises(InputError, match="mask of edges must have 4 values"):
        edges.remove(np.array([True]))


def test_many_links_to_one_node_leave_the_strongest():
    edges = Edges()
    edges.append([0], [1], 7, 0.01, nodes=5_001)
    weight = np.random.default_rng(3).permutation(5_000) / 5_000
    numbers = edges.append(
        np.arange(1, 5_001), np.zeros(5_000, dtype=int), 0, weight, nodes=5_001, max_degree=100
    )
    kept = weight[numbers >= 0]
    assert sorted(kept) == sorted(weight)[-100:]
    # another relation is left alone, and what was refused takes no room
    assert edges.degree([0]).tolist() == [101]
    assert len(edges) == 101
    assert edges.append([1], [0], 0, 0.0, nodes=5_001, max_degree=100).tolist() == [-1]
    assert edges.append([1], [0], 0, 1.0, nodes=5_001, max_degree=100).tolist() == [101]
    assert edges.degree([0]).tolist() == [101]


def test_a_bound_of_none_is_refused():
    with pytest.raises(InputError, match="max_degree must be at least 1"):
        Edges().append([0], [1], 0, 1.0, nodes=2, max_degree=0)


def test_nodes_of_every_kind():
    nodes = Nodes(memories=3)
    tag, entity = nodes.intern("tag", ["rust"])[0], nodes.intern("entity", ["Ana", "Bo"])[1]
    edges = Edges()
    edges.append([0, 2, entity], [tag, tag, 1], [7, 7, 1], 1.0, nodes=nodes)
    assert edges.crossings([tag]).neighbour.tolist() == [0, 2]
    assert edges.degree([0, 1, 2, tag, entity, tag + 1]).tolist() == [1, 1, 1, 2, 1, 0]
    nodes.grow(2_000)
    edges.append([1_999], [tag], 7, 1.0, nodes=nodes)
    assert edges.degree([tag, 1_999, entity]).tolist() == [3, 1, 1]
    for bad in (tag + 1, node_codes("cluster", [0])[0], 1 << 40, -1, 2_000):
        with pytest.raises(InputError, match="there are 2000 of kind memory, 1 of kind tag"):
            edges.append([0], [bad], 7, 1.0, nodes=nodes)
    with pytest.raises(InputError, match=r"rows lie in 0\.\.1999"):
        edges.append([0], [tag], 7, 1.0, nodes=2_000)


class TestOnDisk:
    def filled(self):
        edges = Edges()
        edges.append([0, 1, 2], [1, 2, node_codes("tag", [0])[0]], [1, 2, 7], [0.5, 0.25, 1.0],
                     nodes=Nodes({"tag": ["rust"]}, memories=3), created=[5, 6, 7])  # fmt: skip
        edges.reinforce([1], 0.75)
        edges.remove([0])
        return edges

    def test_every_column_survives(self, tmp_path):
        edges = self.filled()
        edges.save(tmp_path / "edges.bin")
        loaded = Edges.load(tmp_path / "edges.bin")
        for name in (
            "source",
            "target",
            "relation",
            "weight",
            "reinforcements",
            "created",
            "alive",
        ):
            assert getattr(loaded, name).tolist() == getattr(edges, name).tolist(), name

    def test_changes_do_not_reach_the_file(self, tmp_path):
        path = tmp_path / "edges.bin"
        self.filled().save(path)
        before = path.read_bytes()
        loaded = Edges.load(path)
        loaded.reinforce([1], 1.0)
        loaded.append([0] * 70_000, [1] * 70_000, 0, 0.5, nodes=3)  # beyond the room in the file
        assert loaded.degree([0, 1, 2]).tolist() == [70_000, 70_001, 2]
        assert path.read_bytes() == before

    def test_an_empty_one(self, tmp_path):
        Edges().save(tmp_path / "edges.bin")
        loaded = Edges.load(tmp_path / "edges.bin")
        assert len(loaded) == 0
        assert loaded.append([0], [1], 0, 1.0, nodes=2).tolist() == [0]

    @pytest.mark.parametrize("cut", [0, 10, 5_000, -1])
    def test_a_truncated_file_is_damaged(self, tmp_path, cut):
        path = tmp_path / "edges.bin"
        self.filled().save(path)
        path.write_bytes(path.read_bytes()[:cut])
        with pytest.raises(DamagedLab):
            Edges.load(path)

    @pytest.mark.long
    @examples(40)
    @given(st.integers(0, 4095), st.integers(1, 255))
    def test_a_header_of_another_byte_in_the_header_is_damage(self, tmp_path_factory, at, flip):
        path = tmp_path_factory.mktemp("edges") / "edges.bin"
        self.filled().save(path)
        data = bytearray(path.read_bytes())
        data[at] ^= flip
        path.write_bytes(data)
        with pytest.raises(DamagedLab, match="header is damaged"):
            Edges.load(path)

    def test_a_missing_file_is_damaged(self, tmp_path):
        with pytest.raises(DamagedLab, match="cannot be read"):
            Edges.load(tmp_path / "none.bin")

    def test_room_to_grow_takes_no_space(self, tmp_path):
        path = tmp_path / "edges.bin"
        self.filled().save(path)
        assert path.stat().st_size > 31 * MIN_ROOM
        assert path.stat().st_blocks * 512 < 200_000
