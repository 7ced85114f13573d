"""factgraph: someone moves. A fact is staged, confirmed by use, superseded by a surer one; another fades and goes.

Every number is worked out here, from the system's own description: relevance = confidence * source *
0.95 ** (max(0, days - 7) / 7) * (1 + 0.5 log10(accesses + 1)).
"""

import math

import polars as pl
import pytest

import memlab


@pytest.fixture
def lab(clock):
    with memlab.open(pack="factgraph", clock=clock) as opened:
        yield opened


def relevance(confidence, *, days, access, source=1.0):
    return confidence * source * 0.95 ** (max(0, days - 7) / 7) * (1 + 0.5 * math.log10(access + 1))


def use(lab, memory, times):
    """Recall one fact and nothing else, so often."""
    for _ in range(times):
        assert lab.recall(memory.text, limit=1, where=pl.col("id") == memory.id).ids[0] == memory.id


def status(lab, memory):
    return lab[memory.id].status


@pytest.mark.long
def test_a_life_of_facts(lab, clock):
    rome = lab.facts.add("Ada Lovelace", "lives-in", object="Rome", confidence=0.85)
    assert (rome.status, rome.text) == ("staged", "Ada Lovelace lives in Rome")
    assert lab.facts.frame()["relevance"].to_list() == pytest.approx([0.85 / 2])

    # two accesses are not enough, three are
    use(lab, rome, 2)
    lab.upkeep.maintain()
    assert status(lab, rome) == "staged"
    use(lab, rome, 1)
    lab.upkeep.maintain()
    assert status(lab, rome) == "confirmed"
    clock.advance(days=70)
    weight = relevance(0.85, days=70, access=3)
    assert 0.5 < 0.95 ** (63 / 7) < 1, "no clamp is reached"
    assert lab.facts.frame()["relevance"].to_list() == pytest.approx([weight])

    # a city stated with less confidence stays next to the old one
    clock.advance(days=1)
    doubted = lab.facts.add("ada lovelace", "lives-in", object="Bonn", confidence=0.9)
    assert (status(lab, rome), doubted.status) == ("confirmed", "staged")
    assert ("contradicts",) in lab.edges.select("relation").rows()

    # said with more than 0.9, it takes its place
    clock.advance(days=1)
    before_moving = clock() - 1
    moved_at = clock()
    oslo = lab.facts.add(
        "Ada Lovelace", "lives-in", object="Oslo", confidence=0.95, source="user-edit"
    )
    assert oslo.status == "staged"
    old = lab.facts.frame(status="superseded")
    assert set(old["object"]) == {"Rome", "Bonn"}
    assert old["superseded_by"].to_list() == [oslo.id, oslo.id]
    assert old["valid_until"].dt.timestamp("us").to_list() == [moved_at, moved_at]

    # what held when
    assert set(lab.facts.frame(at=before_moving)["object"]) == {"Rome", "Bonn"}
    assert lab.facts.frame(at=moved_at)["object"].to_list() == ["Oslo"]
    assert lab.facts.frame(at=rome.created)["object"].to_list() == ["Rome"]
    assert lab.facts.frame(at="2020-01-01").is_empty()

    # and what is recalled and told
    hits = lab.recall("Where does Ada Lovelace live now?")
    assert hits[0].id == oslo.id
    assert not {rome.id, doubted.id} & set(hits.ids)
    assert hits[0].score == pytest.approx(0.95 * 2.0 / 2), "a user's edit counts twice, staged half"
    assert (
        lab.facts.narrative(hits).text.splitlines()[0]
        == "ADA LOVELACE CONTEXT: lives in Oslo (staged)."
    )


@pytest.mark.long
def test_a_predicate_with_several_values_supersedes_nothing(lab):
    lab.facts.add("Ada", "uses", object="Python", confidence=0.95)
    lab.facts.add("Ada", "uses", object="Rust", confidence=0.99)
    lab.facts.add("Ada", "prefers:theme", "dark", confidence=0.95)
    lab.facts.add("Ada", "prefers:editor", "vim", confidence=0.99)
    assert lab.facts.frame()["status"].to_list() == ["staged"] * 4
    lab.facts.add("Ada", "prefers:theme", "light", confidence=0.99)
    assert lab.facts.frame(status="superseded")["value"].to_list() == ["dark"]


def test_the_same_fact_again_is_the_same_fact(lab):
    first = lab.facts.add("Ada", "lives-in", object="Oslo", confidence=0.95)
    assert lab.facts.add("ADA", "lives-in", object="oslo", confidence=0.95).id == first.id
    assert len(lab.facts.frame()) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("confidence", "source", "factor"), [(0.3, "conversation", 1.0), (0.25, "file", 1.5)]
)
def test_a_staged_fact_that_nobody_asks_for_is_retracted_below_a_fifth(
    lab, clock, confidence, source, factor
):
    fact = lab.facts.add("Ada", "uses", "a slide rule", confidence=confidence, source=source)
    day = 7 + 7 * math.log(0.2 / (confidence * factor)) / math.log(0.95)
    assert relevance(confidence, days=day, access=0, source=factor) == pytest.approx(0.2)
    clock.advance(days=math.floor(day))
    lab.upkeep.maintain()
    assert status(lab, fact) == "staged"
    clock.advance(days=1)
    lab.upkeep.maintain()
    assert status(lab, fact) != "staged"
    clock.advance(days=1)
    lab.upkeep.maintain()
    assert lab.recall("slide rule").ids == ()
    assert lab.facts.frame(at=clock()).is_empty()


@pytest.mark.long
def test_a_memory_accessed_five_times_stays(lab, clock):
    faint = lab.facts.add("Ada", "uses", "chalk", confidence=0.2)
    result = lab.facts.add("Ada", "uses", "lead", confidence=0.2)
    use(lab, result, 5)
    clock.advance(days=400)
    assert relevance(0.2, days=400, access=5) < 0.2
    lab.upkeep.maintain()
    assert status(lab, result) == "confirmed"
    assert status(lab, faint) not in ("staged", "confirmed")


@pytest.mark.long
def test_a_confirmed_fact_is_retracted_by_its_user_alone(lab, clock):
    fact = lab.facts.add("Ada", "uses", "ink", confidence=0.3)
    use(lab, fact, 3)
    lab.upkeep.maintain()
    clock.advance(days=2000)
    lab.upkeep.maintain()
    assert status(lab, fact) == "confirmed"
    lab.facts.retract(fact, reason="it was Babbage")
    assert status(lab, fact) == "retracted"
    assert lab.memories["reason"].to_list() == ["it was Babbage"]
    assert lab.recall("ink").ids == ()


@pytest.mark.long
def test_two_spellings_of_one_person(lab):
    lab.facts.add("Ada Lovelace", "lives-in", object="Rome", confidence=0.85)
    lab.facts.add("A. Lovelace", "works-at", object="Analytical Engines", confidence=0.8)
    assert lab.recall("What does Ada Lovelace do?", log=False).slate.numbers["hops"].max() <= 3
    lab.facts.entities.declare("Ada Lovelace", type="person", aliases=["the countess"])
    lab.facts.entities.merge("A. Lovelace", into="Ada Lovelace")
    lab.facts.add("The Countess", "lives-in", object="Oslo", confidence=0.95)
    assert lab.facts.frame(subject="A. Lovelace")["status"].to_list() == [
        "superseded",
        "staged",
        "staged",
    ]
    narrative = lab.facts.narrative("What is known about the countess?")
    assert narrative.text.startswith("ADA LOVELACE CONTEXT: ")
    assert "lives in Oslo (staged)" in narrative.text
    assert "works at Analytical Engines (staged)" in narrative.text
    assert "Rome" not in narrative.text
    assert lab.facts.profile("the countess").text == (
        "Ada Lovelace lives in Oslo (staged) and works at Analytical Engines (staged)."
    )
    lab.facts.entities.split("A. Lovelace")
    assert lab.facts.frame(subject="A. Lovelace")["object"].to_list() == ["Analytical Engines"]


@pytest.mark.long
def test_a_friend_of_a_friend_is_two_hops_away(lab):
    lab.facts.add("Ada Lovelace", "knows", object="Charles Babbage", confidence=0.9)
    lab.facts.add("Charles Babbage", "designs", object="Difference Engine", confidence=0.9)
    lab.facts.add("Difference Engine", "weighs", "five tons", confidence=0.9)
    for number in range(20):
        lab.facts.add(f"Stranger {number}", "grows", f"vegetable {number}", confidence=0.9)
    hits = lab.recall("Ada Lovelace's circle", limit=30, log=False)
    reached = dict(zip(hits.slate.ids.tolist(), hits.slate.numbers["hops"].tolist(), strict=True))
    assert {1, 2} <= reached.keys()
    assert len(reached) < 12, "strangers stay away"


@pytest.mark.long
def test_the_user_in_a_prompt(lab):
    lab.facts.add("user", "is", "a software engineer", confidence=0.95, source="user-edit")
    lab.facts.add("user", "prefers:theme", "dark mode", confidence=0.9)
    lab.facts.add("user", "uses", object="Python", confidence=0.85)
    for fact in (1, 2, 3):
        use(lab, lab[fact], 3)
    lab.upkeep.maintain()
    assert lab.facts.narrative("Which theme does the user prefer?").text.startswith(
        "USER CONTEXT: "
    )
    assert (
        lab.facts.profile().text
        == "The user is a software engineer who prefers dark mode (theme) and uses Python."
    )
