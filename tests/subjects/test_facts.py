"""Facts by themselves: how they are said, when they held, what an edit of their names moves."""

import numpy as np
import pytest

from memlab.errors import InputError
from memlab.kernel.policies import load_pack
from memlab.kernel.schema import NEVER, STATUSES
from memlab.kernel.verbs.fact_rows import get_entities, rename_entities
from memlab.kernel.verbs.projections import new_state
from memlab.subjects.fact_rows import (
    are_valid_at,
    compute_relevance,
    fact_text,
    find_facts,
    phrase_fact,
    read_validity,
)
from memlab.subjects.facts.entities import decide_merge, decide_undo
from memlab.subjects.facts.narrative import convert_to_third_person

DAY = 86_400_000_000


def state_of(lab):
    with lab.io.store.reading() as state:
        return state


class TestWords:
    @pytest.mark.parametrize(
        ("predicate", "said"),
        [
            ("lives-in", "Ada lives in X"),
            ("works_at", "Ada works at X"),
            ("moved-to", "Ada moved to X"),
            ("born-in", "Ada born in X"),
            ("is", "Ada is X"),
            ("is-a", "Ada is a X"),
            ("uses", "Ada uses X"),
            ("prefers:theme", "Ada prefers X (theme)"),
            ("prefers:code-style", "Ada prefers X (code style)"),
            ("prefers:", "Ada prefers X"),
            ("status", "Ada has status X"),
            ("address", "Ada has address X"),
            ("age", "Ada has age X"),
            ("birth-day", "Ada has birth day X"),
            ("-", "Ada has - X"),
            ("知る", "Ada has 知る X"),
        ],
    )
    def test_a_fact_is_a_sentence(self, predicate, said):
        assert fact_text("Ada", predicate, "X") == said

    def test_a_property_without_an_owner_where_the_owner_is_known(self):
        assert phrase_fact("status", "done") == (False, "status done")

    @pytest.mark.parametrize(
        ("said", "told"),
        [
            ("I like Python.", "likes Python"),
            ("I'm a nurse", "is a nurse"),
            ("I\u2019m tired!", "is tired"),
            ("my name is Ann", "is called Ann"),
            ("The user prefers tabs", "prefers tabs"),
            ("User is left-handed", "is left-handed"),
            ("I have two dogs", "has two dogs"),
            ("I like that we met", None),
            ("I am here. You are there.", None),
            ("I bought a car", None),
            ("Python is liked", None),
            ("", None),
        ],
    )
    def test_only_what_is_certain_is_told_in_the_third_person(self, said, told):
        assert convert_to_third_person(said) == told


class TestIntervals:
    def test_open_ends_come_from_creation_and_from_being_superseded(self, lab, clock):
        now = clock()
        lab.facts.add("Ada", "lives-in", object="Rome")
        lab.facts.add("Ada", "lives-in", object="Oslo", valid_from=now - DAY, valid_until=now + DAY)
        lab.facts.add("Ada", "lives-in", object="Bonn")
        clock.advance(days=3)
        with lab.io.store.writing() as tx:
            values = {"ids": [3], "columns": {"status": "superseded", "changed": clock()}}
            tx.event("resolve", {"set": [values]}, at=clock())
        start, stop = read_validity(state_of(lab), np.arange(3))
        assert start.tolist() == [now, now - DAY, now]
        assert stop.tolist() == [NEVER, now + DAY, now + 3 * DAY]

    def test_an_interval_holds_its_start_and_not_its_end(self, lab, clock):
        lab.facts.add(
            "Ada", "lives-in", object="Oslo", valid_from=clock() - 10, valid_until=clock() + 10
        )
        rows = np.array([0])
        held = {
            shift: bool(are_valid_at(state_of(lab), rows, clock() + shift)[0])
            for shift in (-11, -10, 0, 9, 10)
        }
        assert held == {-11: False, -10: True, 0: True, 9: True, 10: False}

    @pytest.mark.parametrize("status", [status for status in STATUSES if status != "purged"])
    def test_a_retracted_fact_was_never_valid(self, lab, clock, status):
        lab.facts.add("Ada", "lives-in", object="Oslo", status=status)
        held = are_valid_at(state_of(lab), np.array([0]), clock())[0]
        assert held == (status in ("active", "staged", "confirmed"))

    def test_before_1970_and_after_2200(self, lab):
        lab.facts.add(
            "Ada", "lives-in", object="London", valid_from="1815-12-10", valid_until="1852-11-27"
        )
        lab.facts.add("Zed", "lives-in", object="Mars", valid_from="2400-01-01")
        assert lab.facts.frame(at="1843-01-01")["id"].to_list() == [1]
        assert lab.facts.frame(at="2500-01-01")["id"].to_list() == [2]
        assert lab.facts.frame(at="2026-03-01").is_empty()


class TestRelevance:
    def test_is_what_the_pack_gives_before_any_question(self, lab):
        lab.facts.add("Ada", "uses", "x", confidence=0.9, source="file", status="confirmed")
        state = state_of(lab)
        assert compute_relevance(
            state, load_pack("factgraph"), np.array([0]), lab.io.store.clock()
        ) == pytest.approx([1.35])

    def test_is_unknown_where_it_takes_a_question(self, lab):
        lab.facts.add("Ada", "uses", "x")
        assert np.isnan(
            compute_relevance(state_of(lab), load_pack("memlab"), np.array([0]), 0)
        ).all()


class TestNames:
    def test_an_edit_moves_the_mentions_that_no_other_name_needs(self, lab):
        lab.facts.add("Ada", "knows", object="Grace")
        lab.facts.add("Bob", "knows", object="Ada")
        state = state_of(lab)
        columns, change = rename_entities(state, 0, {"subject": "ADA"})
        assert (columns, bool(change)) == ({"subject": "Ada"}, False)
        columns, change = rename_entities(state, 0, {"subject": "grace"})
        assert columns == {"subject": "Grace"}
        assert change.body() == {"unlink": [0]}
        columns, change = rename_entities(state, 1, {"object": "Eve", "confidence": 0.5})
        assert columns == {"object": "Eve", "confidence": 0.5}
        assert change.body()["join"][0]["target"] == ["Eve"]
        columns, change = rename_entities(state, 0, {"subject": None, "object": None})
        assert change.body() == {"unlink": [0, 1]}

    def test_an_empty_state_has_no_facts(self):
        assert find_facts(new_state()).tolist() == []
        assert len(get_entities(new_state())) == 0

    def test_a_merge_decides_without_writing(self, lab):
        lab.facts.add("Ada", "knows", object="A. L.")
        state = state_of(lab)
        before = state.seq, state.edge_frame()
        decided = decide_merge(state, "a. l.", "ada")
        assert decided.body["moved"] == {"subject": [], "object": [1], "edges": [1], "shared": []}
        assert decided.change.body()["set"] == [{"ids": [1], "columns": {"object": "Ada"}}]
        assert (state.seq, state.edge_frame().equals(before[1])) == (before[0], True)
        with pytest.raises(InputError, match=r"was not merged"):
            decide_undo(state, "Ada")
