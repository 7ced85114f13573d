"""Linking: what new memories are to old ones, and what becomes of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from embedders import letters
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.kernel.embedding import load_embedder
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import State
from memlab.kernel.verbs.projections import new_state
from memlab.subjects.reading.comparison import compare, read_text

TRIGRAMS = load_embedder(letters)

SAME = """
(fn [pair/similarity pair/negates pair/update-words]
  (cond (< pair/similarity 0.3) "none"
        pair/update-words "updates"
        pair/negates "contradicts"
        (> pair/similarity 0.999) "duplicate"
        (> pair/similarity 0.8) "similar"
        else "related"))
"""


def decides(lab: memlab.Lab, resolution: str) -> None:
    """Let ``link`` go by the cosine, and ``resolve`` always say the same."""
    lab.policies.install("link", SAME, reason="for this test")
    lab.policies.install("resolve", f'(fn [pair/rank] "{resolution}")', reason="for this test")


def row_of(lab: memlab.Lab, id: int) -> dict[str, Any]:
    return lab.memories.row(id - 1, named=True)


def edges(lab: memlab.Lab) -> list[tuple[int, int, str]]:
    joined = lab.edges.filter(pl.col("to_kind") == "memory")
    return joined.select("source", "target", "relation").rows()


class TestWhatBecomesOfTheNewOne:
    def test_far_from_all_it_is_simply_added(self, lab: memlab.Lab) -> None:
        decides(lab, "merge")
        lab.remember("goats by the sea", linking="now")
        added = lab.remember(["zzzzqqqq"], linking="now")
        assert added.outcomes.rows() == [(0, 2, "added", None, None, "new")]
        assert edges(lab) == []

    def test_a_duplicate_merges_and_the_old_one_gains(self, lab: memlab.Lab) -> None:
        decides(lab, "merge")
        old = lab.remember("goats by the sea", tags=["a"], creator="user")
        again = lab.remember(
            [
                {
                    "text": "goats by the sea",
                    "tags": ["b", "a"],
                    "files": ["x.py"],
                    "creator": "agent:coder",
                }
            ]
            * 2,
            linking="now",
        )
        assert len(lab) == 1
        assert (list(again.ids), again.standing, [memory.id for memory in again]) == (
            [],
            (1, 1),
            [1, 1],
        )
        assert again.outcomes.select("id", "outcome", "of").rows() == [(None, "merged", 1)] * 2
        kept = row_of(lab, old.id)
        assert (kept["strength"], kept["tags"], kept["files"]) == (102, ["a", "b"], ["x.py"])
        assert kept["agents"] == ["agent:coder"]
        assert lab.edges.filter(pl.col("to") == "b").height == 1

    def test_keep_old_skips_it_and_leaves_no_trace(self, lab: memlab.Lab) -> None:
        decides(lab, "keep-old")
        lab.remember("goats by the sea")
        head = lab.io.store.journal.head
        result = lab.remember("goats by the sea", linking="now")
        assert (result.id, len(lab), lab.io.store.journal.head) == (1, 1, head)

    def test_keep_new_supersedes_the_old_one(
        self, lab: memlab.Lab, clock: memlab.ManualClock
    ) -> None:
        decides(lab, "keep-new")
        lab.remember("deploys go out on tuesdays")
        clock.advance(days=1)
        added = lab.remember(["deploys now go out on fridays"], linking="now")
        old, new = row_of(lab, 1), row_of(lab, 2)
        assert (old["status"], old["superseded_by"], old["reason"]) == (
            "superseded",
            2,
            "Updated: tuesdays -> fridays",
        )
        assert old["valid_until"] == old["changed"] == new["created"]
        assert new["status"] == "active"
        assert edges(lab) == [(2, 1, "updates"), (2, 1, "supersedes")]
        result = added.outcomes.select("outcome", "of", "relation").rows()
        assert result == [
            ("added", None, None),
            ("superseded", 1, "supersedes"),
            ("linked", 1, "updates"),
        ]
        assert [hit.id for hit in lab.recall("deploys")] == [2]

    def test_keep_both_is_flagged_by_the_edge(self, lab: memlab.Lab) -> None:
        decides(lab, "keep-both")
        lab.remember(["the user likes jazz", "goats by the sea"])
        lab.remember(["the user does not like jazz", "goats by the sea"], linking="now")
        assert {(3, 1, "contradicts"), (4, 2, "similar-to")} <= set(edges(lab))
        assert set(lab.memories["status"]) == {"active"}

    def test_a_near_one_is_joined_with_its_closeness(self, lab: memlab.Lab) -> None:
        decides(lab, "keep-both")
        lab.remember(["goats by the sea", "goats by the lake"])
        lab.remember("goats by the seas", linking="now")
        joined = {(row["target"], row["relation"]): row["weight"] for row in lab.edges.to_dicts()}
        assert set(joined) == {(1, "similar-to"), (2, "relates-to")}
        assert 0 < joined[2, "relates-to"] < joined[1, "similar-to"] <= 1

    def test_nothing_that_the_policy_does_not_say(self, lab: memlab.Lab) -> None:
        unsure = '(fn [pair/same-subject] (if pair/same-subject "duplicate" null))'
        lab.policies.install("link", unsure, reason="for this test")
        lab.remember("goats")
        lab.remember("goats", linking="now")
        assert (len(lab), edges(lab)) == (2, [])


class TestOneBatch:
    def test_duplicates_are_stored_once(self, lab: memlab.Lab) -> None:
        decides(lab, "merge")
        added = lab.remember(
            [
                {"text": text, "tags": [str(row)]}
                for row, text in enumerate(["goats", "sea", "goats", "goats"])
            ],
            linking="now",
        )
        assert added.standing == (1, 2, 1, 1)
        assert lab.memories["text"].to_list() == ["goats", "sea"]
        assert row_of(lab, 1)["tags"] == ["0", "2", "3"]
        assert row_of(lab, 1)["strength"] == 102

    def test_the_last_of_several_updates_is_active(self, lab: memlab.Lab) -> None:
        decides(lab, "keep-new")
        lab.remember("deploys go out on mondays")
        lab.remember(
            [f"deploys now go out on {day}" for day in ("tuesdays", "fridays")], linking="now"
        )
        assert lab.memories["status"].to_list() == ["superseded", "superseded", "active"]
        # the second supersedes the first; the third, all that is left
        assert lab.memories["superseded_by"].to_list() == [2, 3, None]

    @pytest.mark.long
    def test_a_merged_memory_passes_on_its_successions(self, lab: memlab.Lab) -> None:
        lab.policies.install("link", SAME, reason="for this test")
        by_nearness = '(fn [pair/similarity] (if (> pair/similarity 0.999) "merge" "keep-new"))'
        lab.policies.install("resolve", by_nearness, reason="for this test")
        lab.remember(["deploys go out on tuesdays", "deploys now go out on fridays"])
        result = lab.remember("deploys now go out on fridays", linking="now")
        assert result.id == 2
        lab.policies.install(
            "link", SAME.replace("(> pair/similarity 0.999)", "(> pair/similarity 0.6)"), reason=""
        )
        assert lab.remember("deploys now go out on fridays", linking="now").id == 2
        assert row_of(lab, 1)["superseded_by"] == 2, "memory 2 stands for the new one"

    def test_a_chain_joins_what_is_stored(self, lab: memlab.Lab) -> None:
        decides(lab, "merge")
        rows = [{"text": text, "session": "s"} for text in ("goats", "goats", "sea and sand")]
        lab.remember(rows, chain=True, linking="now")
        assert edges(lab) == [(1, 2, "next")]

    def test_vectors_and_texts_stay_with_their_memories(self, lab: memlab.Lab) -> None:
        decides(lab, "merge")
        lab.remember(["goats", "goats", "the bakery opens at six"], linking="now")
        assert [hit.text for hit in lab.recall("bakery", limit=1)] == ["the bakery opens at six"]
        assert lab.graph.similar(2)["similarity"].to_list() == pytest.approx(
            [float(lab.io.store.state.vectors.similarity(TRIGRAMS.encode(["goats"])[0])[1])]
        )


class TestWhoMayTakeWhosePlace:
    """Only what reaches equally far: else both stay, joined by an edge."""

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ({"project": None}, {"project": "a"}),
            ({"branch": None}, {"branch": "x"}),
            ({"branch": "x"}, {"branch": None}),
            ({}, {"season": "release-week"}),
            ({"scope": "global"}, {"scope": "project"}),
            ({"visibility": "team"}, {}),
            ({"valid_until": "2026-02-01"}, {}),
            ({}, {"valid_until": "2026-02-01"}),
            ({}, {"valid_from": "2027-02-01"}),
        ],
    )
    @pytest.mark.parametrize("resolution", ["merge", "keep-new", "keep-old"])
    def test_others_stay(
        self, lab: memlab.Lab, old: dict[str, Any], new: dict[str, Any], resolution: str
    ) -> None:
        decides(lab, resolution)
        lab.remember("goats by the sea", **old)
        lab.remember("goats by the sea", **new, linking="now")
        assert lab.memories["status"].to_list() == ["active", "active"]
        assert edges(lab) == [(2, 1, "similar-to")]

    def test_private_notes_of_two_are_not_even_compared(self, lab: memlab.Lab) -> None:
        decides(lab, "merge")
        lab.remember("goats", visibility="private", creator="user")
        assert lab.remember("goats", visibility="private", creator="agent:a", linking="now").id == 2
        assert edges(lab) == []

    @pytest.mark.long
    def test_long_texts_that_begin_alike_both_stay(self, lab: memlab.Lab) -> None:
        """An embedder reads the beginning; what comes after may be anything."""
        decides(lab, "merge")
        lab.policies.install("link", '(fn [pair/rank] "duplicate")', reason="for this test")
        long = "goats by the sea " * 200
        lab.remember(long)
        assert lab.remember(f"{long} and a secret passage", linking="now").id == 2
        assert lab.remember(long, linking="now").id == 1

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (
                "The choir rehearsal is at 7 PM, can you write the invitation to the altos?",
                "The choir rehearsal was moved to 8:30 PM.",
            ),
            (
                "The choir rehearsal is at 7 PM. The altos bring their own stands.",
                "The choir rehearsal was moved to 8:30 PM.",
            ),
            ("I use vim, and my sister sings alto", "I switched from vim to emacs"),
            ("I use vim and my sister sings alto", "I switched from vim to emacs"),
            (
                "The pool has pool_size = 20:\n```python\nengine = create_engine(url, pool_size=20)\n```",
                "The engine runs with pool_size = 40 now",
            ),
        ],
    )
    def test_one_statement_of_several_ends_not_all(
        self, lab: memlab.Lab, clock: memlab.ManualClock, old: str, new: str
    ) -> None:
        verdict = compare(read_text(new), read_text(old), same_speaker=True, user_speaks=True)
        assert verdict.updates
        assert verdict.certainty >= lab.policies.pack.settings["destroy-certainty"]
        lab.remember(old)
        clock.advance(days=1)
        lab.remember(new, linking="now")
        assert lab.memories["status"].to_list() == ["active", "active"]
        assert edges(lab) == [(2, 1, "updates")]

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("The choir rehearsal is at 7 PM.", "The choir rehearsal was moved to 8:30 PM."),
            ("I use vim", "I switched from vim to emacs"),
        ],
    )
    def test_a_single_statement_ends(
        self, lab: memlab.Lab, clock: memlab.ManualClock, old: str, new: str
    ) -> None:
        lab.remember(old)
        clock.advance(days=1)
        lab.remember(new, linking="now")
        assert lab.memories["status"].to_list() == ["superseded", "active"]

    @pytest.mark.long
    def test_turns_are_never_dropped(self, lab: memlab.Lab) -> None:
        decides(lab, "merge")
        rows = [{"text": "ok", "kind": "turn"}] * 5 + [{"text": "ok"}] * 2
        added = lab.remember(rows, linking="now")
        assert added.standing == (1, 2, 3, 4, 5, 6, 6)
        assert added.outcomes["outcome"].to_list() == ["added"] * 6 + ["merged"]


class TestFactgraph:
    @pytest.fixture
    def facts(self, lab: memlab.Lab) -> memlab.Lab:
        lab.policies.use("factgraph")
        return lab

    def state(self, lab: memlab.Lab, value: str, confidence: float, **more: Any) -> memlab.Memory:
        fields = {"subject": "Ada", "predicate": "lives-in", **more}
        return lab.remember(
            f"{value}: {fields['predicate']}", value=value, confidence=confidence, **fields
        )

    @pytest.mark.long
    def test_a_surer_value_of_a_single_valued_predicate_supersedes(self, facts: memlab.Lab) -> None:
        self.state(facts, "Rome", 0.8)
        self.state(facts, "Oslo", 0.95)
        old, new = row_of(facts, 1), row_of(facts, 2)
        assert (old["status"], old["superseded_by"], new["status"]) == ("superseded", 2, "staged")
        assert old["valid_until"] is not None
        assert old["reason"] == "Updated: Rome -> Oslo"

    def test_a_contradiction_of_at_most_nine_tenths_confidence_is_flagged(
        self, facts: memlab.Lab
    ) -> None:
        self.state(facts, "Rome", 0.8)
        self.state(facts, "Oslo", 0.9)
        assert set(facts.memories["superseded_by"]) == {None}
        assert (2, 1, "contradicts") in edges(facts)

    @pytest.mark.long
    def test_a_predicate_with_many_values_keeps_them(self, facts: memlab.Lab) -> None:
        self.state(facts, "Ben", 0.95, predicate="knows")
        self.state(facts, "Cleo", 0.95, predicate="knows")
        assert set(facts.memories["superseded_by"]) == {None}
        assert (2, 1, "relates-to") in edges(facts)

    def test_the_same_fact_again_merges(self, facts: memlab.Lab) -> None:
        self.state(facts, "Rome", 0.8)
        assert self.state(facts, "rome", 0.95).id == 1
        assert row_of(facts, 1)["strength"] == 101

    def test_two_values_in_one_batch(self, facts: memlab.Lab) -> None:
        ada = {"subject": "Ada", "predicate": "lives-in", "confidence": 0.95}
        facts.remember(
            [{"text": town, "value": town, **ada} for town in ("Rome", "Oslo", "Bonn", "bonn")]
        )
        assert facts.memories.select("value", "superseded_by").rows() == [
            ("Rome", 2),
            ("Oslo", 3),
            ("Bonn", None),
        ]


def test_edges_of_one_relation_are_bounded(lab: memlab.Lab) -> None:
    """A thousand like ones leave no thousand edges at any of them."""
    lab.policies.use(
        '(pack few) (setting edges-per-node 3) (setting link-candidates 8) (defpolicy link [pair/rank] "similar")'
    )
    lab.remember([f"goats {number}" for number in range(40)], linking="now")
    ends = pl.concat([lab.edges["source"], lab.edges["target"]])
    assert ends.value_counts()["count"].max() == 3


def test_with_linking_off_the_same_events_are_written(
    trigrams: Any, clock: memlab.ManualClock
) -> None:
    """No byte of the journal of the default pack differs from what it was without linking."""
    with memlab.open(embedder=trigrams, clock=clock) as lab:
        lab.remember(
            [{"text": "goats", "session": "s"}, {"text": "goats", "session": "s"}], chain=True
        )
        [event] = lab.io.store.journal.events(kinds=("remember", "link"))
        assert event.body == {
            "first": 1,
            "count": 2,
            "columns": {"session": "s"},
            "edges": {"source": [1], "target": [2], "relation": "next", "weight": 1.0},
        }
        assert lab.io.store.journal.head == event.seq


def test_a_memory_that_absorbed_others_is_not_dropped_for_a_farther_neighbour(
    lab: memlab.Lab,
) -> None:
    """The nearest is to be rewritten with the new one, which goes for the sake of the next: nothing leads to it."""
    lab.policies.install(
        "resolve",
        '(fn [pair/rank] (if (> pair/rank 1) "keep-old" "merge"))',
        reason="for this test",
    )
    lab.policies.install("link", SAME.replace("0.999", "0.7"), reason="for this test")
    added = lab.remember(["goat", "goat sea", "goat not"], linking="now")
    assert added.standing == (1, 2, 2)
    assert lab.memories["superseded_by"].to_list() == [None, None]


def check_chains(state: State) -> None:
    """Check that every chain of successors ends at a memory without one."""
    after = state.numbers["superseded_by"].values
    for row in range(len(state)):
        unique: set[int] = set()
        while not np.isnan(after[row]):
            assert row not in unique
            unique.add(row)
            row = int(after[row]) - 1


@pytest.mark.long
@examples(40, quick=8)
@given(st.data())
def test_whatever_the_policies_say_the_state_is_sound(data: st.DataObject) -> None:
    """Nothing is lost or doubled, no chain of successors closes, and the fold of the journal is the state."""
    words = st.lists(
        st.sampled_from(["goat", "sea", "not", "now", "tabs"]), min_size=1, max_size=3
    ).map(" ".join)
    row = st.fixed_dictionaries(
        {
            "text": words,
            "kind": st.sampled_from(["fact", "fact", "turn"]),
            "tags": st.sampled_from([["x"], ["y"], None]),
        }
    )
    batches = data.draw(
        st.lists(
            st.tuples(st.sampled_from(["now", "later"]), st.lists(row, max_size=6)), max_size=5
        )
    )
    resolution = data.draw(st.sampled_from(["keep-new", "keep-old", "merge", "keep-both"]))
    with memlab.open(embedder=TRIGRAMS, clock=memlab.ManualClock("2026-03-01")) as lab:
        lab.policies.install("link", SAME.replace("0.999", "0.7"), reason="")
        ranks = f'(if (> pair/rank 1) "{resolution}" "{data.draw(st.sampled_from(["merge", "keep-new", "keep-old"]))}")'
        lab.policies.install("resolve", f"(fn [pair/rank] {ranks})", reason="")
        for how, rows in batches:
            before = len(lab)
            added = lab.remember(rows, linking=how)
            lab.graph.link_waiting()
            assert len(added) == len(rows)
            assert len(lab) == before + len(added.ids)
            turns = [memory.text for memory in added if memory.kind == "turn"]
            assert turns == [row["text"] for row in rows if row["kind"] == "turn"]
            if how == "later":
                assert len(added.ids) == len(rows)
        state = lab.io.store.state
        check_chains(state)
        status = state.names["status"].to_objects(np.arange(len(state)))
        superseded = ~np.isnan(state.numbers["superseded_by"].values)
        assert (np.isin(status, RECALLABLE) != superseded).all()
        if any(rows for _, rows in batches):
            assert np.isin(status, RECALLABLE).any()
        again = new_state()
        again.fold(lab.io.store.journal.events(), lab.io.store.journal)
        assert again.memories().equals(state.memories())
        assert again.edge_frame().equals(state.edge_frame())
