"""The tool link of a coding assistant: what a newer memory supersedes is out of use."""

import pytest

import memlab
from memlab.subjects.verifiers import Verdict


@pytest.fixture
def lab(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        lab.remember("deploy on Tuesdays")
        clock.advance(days=1)
        lab.remember("deploy on Wednesdays", linking="off")
        yield lab


def standing(lab):
    return lab.memories.select("status", "superseded_by").rows()


@pytest.mark.long
def test_link_supersedes_retires_the_older(lab):
    lab.graph.link(2, 1, "supersedes")
    assert standing(lab) == [("superseded", 2.0), ("active", None)]
    assert lab.memories["valid_until"][0] == lab.memories["created"][1]
    assert 1 not in lab.recall("deploy on Tuesdays", log=False).ids


@pytest.mark.long
def test_a_verifier_that_names_the_relation_does_the_same(lab):
    hits = lab.recall("deploy on Tuesdays or Wednesdays")
    lab.agents.verify(hits, lambda hits: Verdict(hits, relations={(2, 1): "supersedes"}))
    assert standing(lab) == [("superseded", 2.0), ("active", None)]


def test_no_circle_closes(lab):
    lab.graph.link(2, 1, "supersedes")
    lab.graph.link(1, 2, "supersedes")
    assert standing(lab) == [("superseded", 2.0), ("active", None)]
    assert lab.edges.filter(to_kind="memory").height == 2


@pytest.mark.long
def test_the_older_comes_back_once_the_newer_is_wrong(lab):
    lab.graph.link(2, 1, "supersedes")
    with pytest.raises(memlab.InputError, match="superseded by memory 2"):
        lab.restore(1)
    lab.forget(2, how="deprecate", reason="never mind")
    lab.restore(1)
    assert standing(lab)[0] == ("active", None)


def test_other_relations_retire_nothing(lab):
    lab.graph.link(2, 1, "contradicts")
    assert standing(lab) == [("active", None), ("active", None)]
