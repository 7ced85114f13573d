"""Types and relations of an S-expression memory are open: "insight", "inspires"."""

import pytest

import memlab


@pytest.fixture
def lab(tmp_path, clock):
    with memlab.open(tmp_path / "lab", pack="associative", clock=clock) as lab:
        yield lab


@pytest.mark.long
def test_types_and_relations_as_the_agent_calls_them(lab):
    lab.upkeep.operations.run(
        '(remember "tabs align" "insight" 0.8 "30d" ["t"]) (remember "use tabs" "fact")'
    )
    lab.upkeep.operations.run('(associate 1 2 "inspires" 0.7)')
    assert lab.memories["kind"].to_list() == ["insight", "fact"]
    edge = lab.edges.filter(relation="inspires")
    assert edge.select("source", "target", "weight").rows() == [(1, 2, 0.7)]
    assert "─inspires→" in str(lab.graph.trace(1))
    assert lab.recall("tabs align", log=False)[0].kind == "insight"
    assert {"insight", "inspires"} <= set(
        str(lab.graph.stats(progress=False).frames).replace('"', " ").split()
    )


@pytest.mark.long
def test_they_are_there_after_opening_again_and_in_a_copy(lab, tmp_path, clock):
    lab.remember("tabs align", kind="breakthrough")
    lab.remember("use tabs", linking="off")
    lab.graph.link(1, 2, "inspires")
    lab.io.store.snapshot()
    lab.graph.link(2, 1, "explains")
    lab.io.export(tmp_path / "copy.jsonl")
    with memlab.open(tmp_path / "lab", clock=clock, read_only=True) as again:
        assert again.memories.equals(lab.memories)
        assert again.edges.equals(lab.edges)
    with memlab.load(tmp_path / "copy.jsonl", clock=clock) as copy:
        assert copy.edges["relation"].to_list() == ["inspires", "explains"]
        assert copy.memories["kind"][0] == "breakthrough"


def test_a_verifier_may_name_an_open_relation(lab):
    lab.remember("tabs align")
    lab.remember("tabs align again", linking="off")
    lab.agents.verify(lab.recall("tabs align"), [1, 2], relations={(1, 2): "inspires"})
    assert "inspires" in lab.edges["relation"].to_list()


@pytest.mark.parametrize("word", ["two words", "a\x1b[2J", "x" * 60, "7up", "(eval)", ""])
def test_a_word_is_short_and_printable(lab, word):
    with pytest.raises(memlab.InputError):
        lab.remember("tabs", kind=word)
    lab.remember(["tabs", "spaces"], linking="off")
    with pytest.raises(memlab.InputError):
        lab.graph.link(1, 2, word)


def test_a_closed_pack_names_the_nearest(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        lab.remember(["tabs", "spaces"], linking="off")
        with pytest.raises(memlab.InputError, match='no kind "insihgt"'):
            lab.remember("x", kind="insihgt")
        with pytest.raises(memlab.InputError, match="Did you mean relates-to"):
            lab.graph.link(1, 2, "relatesto")
        with pytest.raises(memlab.PolicyError, match='no type "insight"'):
            lab.upkeep.operations.run('(remember "y" "fact") (remember "x" "insight")')
        assert len(lab) == 2
        with pytest.raises(memlab.PolicyError, match='no relation "inspires"'):
            lab.upkeep.operations.run('(associate 1 2 "inspires")')
