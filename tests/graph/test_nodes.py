"""Nodes: codes that carry their kind, and names that keep their codes."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError, UnknownName
from memlab.kernel.graph import NODE_KINDS, Nodes, node_kinds
from memlab.kernel.graph._nodes import Layout, node_codes

names = st.lists(st.text(min_size=1, max_size=3), max_size=8)
codes = st.tuples(st.sampled_from(NODE_KINDS), st.integers(0, 40))


def test_a_memory_is_its_row():
    assert node_codes("memory", [0, 5]).tolist() == [0, 5]


@given(st.lists(codes))
def test_a_code_carries_its_kind(code):
    nodes = np.array([node_codes(kind, [number])[0] for kind, number in code], dtype=np.int64)
    assert [NODE_KINDS[kind] for kind in node_kinds(nodes)] == [kind for kind, _ in code]


@pytest.mark.long
@given(st.lists(st.tuples(st.sampled_from(NODE_KINDS[1:]), names), max_size=6))
def test_names_keep_their_codes_and_survive_a_snapshot(batches):
    nodes = Nodes(memories=3)
    known = {}
    for kind, batch in batches:
        for name, code in zip(batch, nodes.intern(kind, batch).tolist(), strict=True):
            assert known.setdefault((kind, name), code) == code
    again = Nodes(json.loads(json.dumps(nodes.vocabularies())), memories=3)
    for (kind, name), code in known.items():
        assert again.find(kind, [name]).tolist() == [code]
        assert again.labels([code]) == [f"{kind} {name}"]
    assert (
        again.counts
        == nodes.counts
        == (3, *(len({n for k, n in known if k == kind}) for kind in NODE_KINDS[1:]))
    )
    assert len(set(known.values())) == len(known)


@given(st.lists(codes, min_size=1, unique=True))
def test_a_layout_gives_every_node_a_place_in_the_order_of_codes(code):
    nodes = np.sort(
        np.array([node_codes(kind, [number])[0] for kind, number in code], dtype=np.int64)
    )
    layout = Layout().with_room_for(nodes)
    places = layout.positions(nodes)
    assert (np.diff(places) > 0).all()
    assert 0 <= places[0] <= places[-1] < layout.size
    assert layout.code(places).tolist() == nodes.tolist()
    assert layout.positions_or_end(nodes).tolist() == places.tolist()
    assert (
        layout.positions_or_end(np.array([-1, 1 << 40, nodes[-1] + 1_000])).tolist()
        == [layout.size] * 3
    )
    assert layout.with_room_for(nodes) is layout


def test_invalid_nodes_are_refused():
    nodes = Nodes(memories=2)
    with pytest.raises(UnknownName, match=r'no kind of node "tags"\. Did you mean tag'):
        nodes.intern("tags", ["rust"])
    with pytest.raises(InputError, match="has a row number and no name"):
        nodes.intern("memory", ["rust"])
    with pytest.raises(
        InputError, match="The name of a tag must be a text with at least one character, not ''"
    ):
        nodes.intern("tag", ["rust", ""])
    assert nodes.counts == (2, 0, 0, 0)
    with pytest.raises(InputError, match="There is no memory with number 2: the graph has 2"):
        nodes.labels([2])
    with pytest.raises(InputError, match="Nodes must be in"):
        node_kinds([-1])
    with pytest.raises(InputError, match="numbered 0"):
        node_codes("tag", [1 << 28])
    with pytest.raises(InputError, match="grow from 2"):
        nodes.grow(1)
    with pytest.raises(InputError, match="share a name"):
        Nodes({"tag": ["rust", "rust"]})
