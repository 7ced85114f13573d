"""The graph of a lab: tags as nodes, cascades through them, activation and traces."""

import polars as pl
import pytest

import memlab
from memlab.errors import InputError, UnknownName
from tests.displays import html_of


def test_tags_are_nodes_that_memories_share():
    lab = memlab.open()
    lab.remember(
        [
            {"text": "a", "tags": ["rust", "style"]},
            {"text": "b"},
            {"text": "c", "tags": ["style", "style"]},
        ]
    )
    edges = lab.edges.select("source", "target", "relation", "from_kind", "to_kind", "to").rows()
    assert edges == [
        (1, 1, "has-tag", "memory", "tag", "rust"),
        (1, 2, "has-tag", "memory", "tag", "style"),
        (3, 2, "has-tag", "memory", "tag", "style"),
    ]


def test_a_tag_is_given_with_or_without_its_sign(lab):
    result = lab.remember("cargo is slow", tags=["#rust", "builds", "#"])
    assert sorted(lab[result.id].tags) == ["#", "builds", "rust"]


@pytest.mark.long
def test_a_cascade_reaches_what_shares_a_tag_and_no_word(tmp_path):
    path = tmp_path / "a.memlab"
    with memlab.open(path, pack="cascade") as lab:
        lab.remember("The borrow checker rejects two mutable references", tags=["rust"])
        lab.remember("Tea is at four", tags=["rust"])
        lab.remember("Coffee is at nine")
        before = lab.recall("borrow checker mutable references", log=False)
        assert before.ids[:2] == (1, 2)  # memory, tag, memory: two hops
        assert before.frame.filter(memory_id=2)["hops"].item() == 2
        edges = lab.edges
        assert edges.filter(to="rust").select("source", "relation").rows() == [
            (1, "has-tag"),
            (2, "has-tag"),
        ]
        assert set(edges["to"]) == {"rust", "food"}, "cascade infers tags of topics"
        lab.io.snapshot()
    with memlab.open(path) as lab:  # the tags are in the snapshot
        assert lab.recall("borrow checker mutable references", log=False).ids == before.ids
        assert lab.edges.equals(edges)


@pytest.fixture
def lab():
    with memlab.open() as lab:
        rows = [
            {"text": "The borrow checker", "tags": ["rust"]},
            {"text": "Tea is at four", "tags": ["rust", "tea"]},
        ]
        lab.remember([*rows, "Coffee is at nine"])
        lab.graph.link(1, 3, "relates-to", weight=0.5)
        yield lab


def test_activation_adds_up_in_both_directions(lab):
    """Against the definition, A[j] += A[i] W[i,j] D, in plain Python."""
    edges = {("m1", "rust"): 1.0, ("m2", "rust"): 1.0, ("m2", "tea"): 1.0, ("m1", "m3"): 0.5}
    active = {"m1": 1.0}
    for _ in range(3):
        arrived: dict[str, float] = {}
        for (a, b), weight in edges.items():
            for here, there in ((a, b), (b, a)):
                arrived[there] = arrived.get(there, 0.0) + active.get(here, 0.0) * weight * 0.7
        active = {
            node: active.get(node, 0.0) + arrived.get(node, 0.0) for node in {*active, *arrived}
        }
    names = {
        "m1": ("memory", 1),
        "m2": ("memory", 2),
        "m3": ("memory", 3),
        "rust": ("tag", 1),
        "tea": ("tag", 2),
    }
    result = {
        (kind, id): value
        for kind, id, value in lab.graph.activate(1).select("kind", "id", "activation").rows()
    }
    assert result == pytest.approx(
        {names[node]: value for node, value in active.items() if value > 0}
    )


def test_a_trace_tells_the_paths_and_is_cut(lab):
    trace = lab.graph.trace(1, 2)
    assert trace.frame.select("to_kind", "to_id", "depth", "product").rows() == [
        ("tag", 1, 1, 1.0),
        ("memory", 2, 2, 1.0),
        ("memory", 3, 1, 0.5),
    ]
    assert "←has-tag─ 2: Tea is at four" in repr(trace)
    assert not trace.cut
    assert lab.graph.trace(1, 3, most=1).cut
    with pytest.raises(InputError, match="depth and limit of a trace must be at least 1"):
        lab.graph.trace(1, 0)
    with pytest.raises(UnknownName):
        lab.graph.trace(99)


def test_an_edge_that_is_linked_again_gets_the_weight(lab):
    first, second = lab.remember(["a chorus", "a walk"], linking="off").ids
    for weight in (0.4, 0.7, 0.7):
        lab.graph.link(first, second, "derived-from", weight=weight)
    made = pl.col("relation") == "derived-from"
    assert lab.edges.filter(made).select("weight", "reinforcements").rows() == [(0.7, 1.0)]
    lab.graph.link(second, first, "derived-from")
    assert lab.edges.filter(made).height == 2


@pytest.mark.long
def test_the_frames_of_the_structure_are_attributes(lab):
    stats = lab.graph.stats(progress=False)
    assert stats.communities is stats.frames["communities"]
    assert {"layers", "totals", "figure"} <= set(dir(stats))
    with pytest.raises(AttributeError, match="Its frames: totals, kinds"):
        _ = stats.comunities


@pytest.mark.long
def test_rendered_trees_are_escaped():
    with memlab.open() as lab:
        lab.remember("<script>alert(1)</script>", tags=["<b>"])
        assert "<script>" not in html_of(lab.graph.trace(1))
        assert "<script>" not in html_of(lab.graph.stats(progress=False))


@pytest.mark.long
def test_the_structure_of_a_lab(lab):
    stats = lab.graph.stats(at="2026-11-01", progress=False)
    assert stats.frames["relations"].height == 2
    assert "3 memories" in repr(stats)
    assert "<svg" in html_of(stats) or "<img" in html_of(stats)


def test_a_small_lab_searches_exactly_and_says_so(lab):
    assert "searched exactly" in repr(lab.upkeep.index)
    report = lab.upkeep.index.report(["when is tea?"], n=2)
    assert (report.index, report.recall) == ("exact", 1.0)
