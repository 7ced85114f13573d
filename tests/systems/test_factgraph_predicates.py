"""One predicate however it is spelled, and predicates of one value declared by the pack."""

import pytest

import memlab


@pytest.mark.long
@pytest.mark.parametrize(
    "spelled", ["lives_in", "lives-in", "livesIn", "Lives in", "lives In", "LIVES_IN"]
)
def test_a_new_city_ends_the_old_one_however_the_predicate_is_spelled(clock, spelled):
    with memlab.open(pack="factgraph", clock=clock) as lab:
        lab.facts.add("User", "lives_in", "NYC", confidence=0.8)
        lab.facts.add("User", spelled, "SF", confidence=0.95)
        assert lab.facts.frame()["predicate"].to_list() == ["lives-in"] * 2
        assert lab.facts.frame()["status"].to_list() == ["superseded", "staged"]
        assert lab.facts.frame(predicate=spelled).height == 2


@pytest.mark.long
def test_the_pack_declares_what_has_one_value(clock):
    told = (("role", "student", "engineer"), ("timezone", "CET", "PST"), ("uses", "Rust", "Hy"))
    with memlab.open(pack="factgraph", clock=clock) as lab:
        for predicate, before, after in told:
            lab.facts.add("User", predicate, before, confidence=0.8)
            lab.facts.add("User", predicate, after, confidence=0.95)
        status = {
            row["predicate"]: row["status"]
            for row in lab.facts.frame().iter_rows(named=True)
            if row["id"] % 2
        }
        assert status == {"role": "superseded", "timezone": "superseded", "uses": "staged"}


@pytest.mark.long
def test_a_lab_declares_its_own(clock):
    text = (
        memlab.load_pack("factgraph")
        .sources[0]
        .replace('single-valued "', 'single-valued "favourite-* ')
    )
    with memlab.open(pack=text, clock=clock) as lab:
        lab.facts.add("User", "favourite_colour", "red", confidence=0.8)
        lab.facts.add("User", "favouriteColour", "blue", confidence=0.95)
        assert lab.facts.frame()["status"].to_list() == ["superseded", "staged"]


def test_a_setting_of_text_is_printable():
    with pytest.raises(memlab.PolicyError, match="printable"):
        memlab.load_pack("(pack x) (setting single-valued 3)")
