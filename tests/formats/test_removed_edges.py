"""An edge that was removed from a lab stays removed when an export that holds it is loaded again."""

import pytest

import memlab
from memlab.kernel.state import Change

pytestmark = pytest.mark.long

SUFFIXES = {
    "jsonl": ".jsonl",
    "markdown": ".md",
    "sexp": ".sexp",
    "parquet": ".parquet",
    "folder": "",
}


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-03-01")


@pytest.fixture
def lab(trigrams, clock):
    with memlab.open(embedder=trigrams, clock=clock) as lab:
        lab.remember("The build needs a compiler", linking="off")
        lab.remember("The compiler is GCC", linking="off")
        lab.graph.link(1, 2, relation="depends-on")
        yield lab


@pytest.fixture(params=SUFFIXES)
def export(request, lab, tmp_path):
    kind = request.param
    return lab.io.export(
        tmp_path / f"lab{SUFFIXES[kind]}", format="parquet" if kind == "folder" else None
    )


def remove_edges(lab, clock, relation="depends-on"):
    with lab.io.store.writing() as tx:
        numbers = lab.edges.filter(lab.edges["relation"] == relation)["edge"].to_list()
        tx.event("unlink", Change(unlink=numbers).body(), at=clock())


def test_in_the_lab_that_wrote_the_export(lab, export, clock):
    clock.advance(days=1)
    remove_edges(lab, clock)
    head = lab.io.store.journal.head
    assert lab.load(export).edges == 0
    assert lab.edges.is_empty()
    assert lab.io.store.journal.head == head, "nothing is new, so that nothing is written"


def test_in_a_lab_that_loaded_the_export_before(export, clock, trigrams):
    with memlab.open(embedder=trigrams, clock=clock) as other:
        assert other.load(export).edges == 1
        clock.advance(days=1)
        remove_edges(other, clock)
        assert other.load(export).edges == 0
        assert other.edges.is_empty()


def test_an_edge_that_the_lab_never_had_comes_in(lab, export, clock, tmp_path):
    clock.advance(days=1)
    remove_edges(lab, clock)
    clock.advance(days=1)
    with memlab.open(embedder=lab.io.embedder, clock=clock) as other:
        other.load(export)
        other.graph.link(2, 1, relation="depends-on")
        other.graph.link(1, 2, relation="updates")
        later = other.io.export(tmp_path / "later.jsonl")
    assert lab.load(later).edges == 2
    assert sorted(lab.edges.select("source", "target", "relation").rows()) == [
        (1, 2, "updates"),
        (2, 1, "depends-on"),
    ]


def test_an_edge_that_another_lab_made_after_the_removal_comes_in(lab, export, clock, tmp_path):
    remove_edges(lab, clock)
    with memlab.open(embedder=lab.io.embedder, clock=clock) as other:
        other.load(export)
        remove_edges(other, clock)
        clock.advance(days=1)
        other.graph.link(1, 2, relation="depends-on")
        later = other.io.export(tmp_path / "later.jsonl")
    assert lab.load(later).edges == 1
