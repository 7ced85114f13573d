"""Shared success makes and strengthens edges: against a table of pairs that counts."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memlab
from memlab.kernel.policies import load_pack
from memlab.kernel.schema import RELATIONS
from memlab.kernel.verbs.reinforcement import make_pairs, make_pairs_with, strengthen_pairs
from memlab.subjects.agents.verifying import find_common_tag

NOTES = [f"note {i} of the bakery" for i in range(6)]


# The pack strengthens what is merely recalled together too; here it is success alone that counts.
SUCCESS_ALONE = (
    load_pack("associative").sources[0].replace("coactivation-gain 0.05", "coactivation-gain 0")
)


@pytest.fixture
def associative(trigrams, clock):
    with memlab.open(embedder=trigrams, clock=clock, pack=SUCCESS_ALONE) as lab:
        lab.remember(NOTES, linking="off")
        yield lab


def pairs(lab):
    """Return weight and reinforcements of each pair, in whichever direction the edge runs."""
    shared = lab.edges.filter(relation="relates-to")
    ends = zip(shared["source"], shared["target"], strict=True)
    values = zip(shared["weight"].round(12), shared["reinforcements"], strict=True)
    return {tuple(sorted(pair)): value for pair, value in zip(ends, values, strict=True)}


class TestSharedSuccess:
    @pytest.mark.long
    def test_a_first_one_makes_an_edge_and_each_more_strengthens_it(self, associative):
        for count in range(1, 25):
            hits = associative.recall("note of the bakery", limit=6)
            for hit in hits:
                if hit.id in (2, 5):
                    associative.feedback(hit, "success")
            assert pairs(associative) == {
                (2, 5): (pytest.approx(min(1.0, 0.05 * count)), count - 1)
            }

    @pytest.mark.long
    def test_a_failure_joins_nothing(self, associative):
        hits = associative.recall("note of the bakery", limit=3)
        associative.feedback(hits[0], "success")
        associative.feedback(hits[1], "fail")
        assert pairs(associative) == {}
        associative.feedback(hits[2], "success")
        assert set(pairs(associative)) == {tuple(sorted((hits[0].id, hits[2].id)))}

    @pytest.mark.long
    def test_a_success_that_is_said_twice_counts_once(self, associative):
        hits = associative.recall("note of the bakery", limit=2)
        for hit in (hits[0], hits[1], hits[0], hits[1], hits[1]):
            associative.feedback(hit, "success")
        assert list(pairs(associative).values()) == [(0.05, 0.0)]

    def test_two_recalls_are_two_occasions(self, associative):
        one, two = (associative.recall("note of the bakery", limit=2) for _ in range(2))
        associative.feedback(one[0], "success")
        associative.feedback(two[1], "success")
        assert pairs(associative) == {}

    def test_without_a_recall_nothing_is_shared(self, associative):
        for memory in (1, 2):
            associative.feedback(memory, "success")
        assert pairs(associative) == {}

    def test_the_default_pack_makes_none(self, lab):
        lab.remember(NOTES, linking="off")
        for hit in lab.recall("note of the bakery"):
            lab.feedback(hit, "success")
        assert len(lab.edges) == 0

    @pytest.mark.long
    @settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(
            st.lists(st.sampled_from(["success", "fail", None]), min_size=6, max_size=6), max_size=5
        )
    )
    def test_against_a_table(self, trigrams, judged):
        with memlab.open(embedder=trigrams, clock=memlab.ManualClock(), pack=SUCCESS_ALONE) as lab:
            lab.remember(NOTES, linking="off")
            table = {}
            for outcomes in judged:
                hits, done = lab.recall("note of the bakery", limit=6), []
                for hit, outcome in zip(hits, outcomes, strict=False):
                    if outcome:
                        lab.feedback(hit, outcome)
                    if outcome == "success":
                        for other in done:
                            pair = tuple(sorted((hit.id, other)))
                            table[pair] = table.get(pair, 0) + 1
                        done.append(hit.id)
            assert pairs(lab) == {pair: (round(0.05 * n, 12), n - 1) for pair, n in table.items()}


class TestEdges:
    def test_an_edge_that_is_there_is_found_in_either_direction(self, associative):
        associative.graph.link(4, 2, weight=0.5)
        with associative.io.store.reading() as state:
            change = strengthen_pairs(state, associative.policies.pack, [(2, 4)])
        assert change.edges is None
        assert change.strengthen == {"edges": [0], "weight": [0.55]}

    def test_a_relation_that_was_named_has_a_direction(self, associative):
        associative.graph.link(4, 2, "supersedes", weight=0.98)
        with associative.io.store.reading() as state:
            same = strengthen_pairs(
                state, associative.policies.pack, [(2, 4), (2, 3)], relations={(4, 2): "supersedes"}
            )
            other = strengthen_pairs(
                state, associative.policies.pack, [(2, 4)], relations={(2, 4): "supersedes"}
            )
        assert same.strengthen == {"edges": [0], "weight": [1.0]}
        assert (same.edges["source"], same.edges["target"], same.edges["relation"]) == (
            [2],
            [3],
            ["relates-to"],
        )
        assert (other.edges["source"], other.edges["target"], other.edges["relation"]) == (
            [2],
            [4],
            ["supersedes"],
        )

    def test_both_ways_of_one_pair_are_one_edge(self, associative):
        named = {(1, 2): "relates-to", (2, 1): "relates-to"}
        with associative.io.store.reading() as state:
            change = strengthen_pairs(
                state, associative.policies.pack, [(2, 1), (1, 2)], relations=named
            )
        assert (change.edges["source"], change.edges["target"]) == ([1], [2])

    def test_a_removed_edge_is_added_again(self, associative):
        associative.graph.link(1, 2, weight=0.5)
        with associative.io.store.writing() as tx:
            tx.event("unlink", {"unlink": [0]}, at=0)
        with associative.io.store.reading() as state:
            assert strengthen_pairs(state, associative.policies.pack, [(1, 2)]).strengthen is None

    @pytest.mark.long
    def test_memories_due_for_deletion_are_unchanged(self, associative):
        hits = associative.recall("note of the bakery", limit=4)
        gone = hits[1]
        with associative.io.store.writing() as tx:
            tx.event(
                "delete", {"set": [{"ids": [gone.id], "columns": {"status": "deleted"}}]}, at=0
            )
        for hit in hits:
            associative.feedback(hit, "success")
        associative.agents.verify(hits, hits)
        assert not [pair for pair in pairs(associative) if gone.id in pair]
        assert pairs(associative)


class TestNoStorm:
    @given(st.lists(st.integers(1, 99), max_size=30, unique=True), st.integers(0, 60))
    def test_pairs_of_the_best_first(self, ids, limit):
        result = make_pairs(ids, limit)
        every = [tuple(sorted((ids[i], ids[j]))) for j in range(len(ids)) for i in range(j)]
        assert result == every[:limit]

    @given(st.integers(1, 9), st.lists(st.integers(1, 9), unique=True), st.integers(0, 5))
    def test_a_success_is_joined_to_the_latest_others(self, id, others, limit):
        result = make_pairs_with(id, others, limit)
        assert len(result) <= limit
        rest = [other for other in others if other != id]
        assert result == [tuple(sorted((id, other))) for other in rest[max(0, len(rest) - limit) :]]

    @pytest.mark.long
    def test_of_ten_thousand_that_passed_at_most_so_many_pairs_are_joined(self, trigrams, clock):
        source = '(pack mine "Few." :inherits cascade) (setting edge-pairs 20)'
        with memlab.open(embedder=trigrams, clock=clock, pack=source) as lab:
            lab.remember([f"note {i} of the bakery" for i in range(200)], linking="off")
            hits = lab.recall("note of the bakery", limit=100)
            assert lab.agents.verify(hits, hits).edges == min(20, len(hits) * (len(hits) - 1) // 2)


class TestCommonTag:
    @pytest.mark.parametrize(
        ("tags", "expected"),
        [
            ([["a"], ["a"], []], "a"),
            ([["a"], ["b"], []], None),
            ([["a"], []], None),  # one bearer shares nothing
            ([["a"], ["a"], ["a"]], None),  # nobody lacks it
            ([["b", "a"], ["a", "b"], ["c"]], "a"),
            ([["a", "b"], ["a", "b"], ["b"], []], "b"),
            ([["a", "a"], [], []], None),
            ([["a"]], None),
        ],
    )
    def test_tags_that_most_of_the_memories_have(self, trigrams, clock, tags, expected):
        with memlab.open(embedder=trigrams, clock=clock, pack="cascade") as lab:
            lab.remember(
                [{"text": f"note {i}", "tags": tag} for i, tag in enumerate(tags)],
                linking="off",
            )
            with lab.io.store.reading() as state:
                assert find_common_tag(state, lab.policies.pack, np.arange(len(tags))) == expected

    def test_the_default_pack_infers_none(self, lab):
        lab.remember(
            [{"text": f"note {i}", "tags": ["a"] if i else []} for i in range(5)], linking="off"
        )
        with lab.io.store.reading() as state:
            assert find_common_tag(state, lab.policies.pack, np.arange(5)) is None

    @pytest.mark.long
    def test_the_others_get_it_and_their_edge_to_it(self, trigrams, clock):
        with memlab.open(embedder=trigrams, clock=clock, pack="cascade") as lab:
            given = [["rust"], ["rust", "ci"], ["ci", "x"], []]
            lab.remember(
                [{"text": f"note {i} of the bakery", "tags": tags} for i, tags in enumerate(given)],
                linking="off",
            )
            lab.remember("note 4 of the bakery", tags=["rust"], linking="off")
            hits = lab.recall("note of the bakery", limit=5)
            assert len(hits) == 5
            assert lab.agents.verify(hits, hits).tag == "rust"
            assert lab.memories["tags"].to_list()[2:4] == [["ci", "x", "rust"], ["rust"]]
            bearers = lab.edges.filter(to="rust")["source"].sort().to_list()
            assert bearers == [1, 2, 3, 4, 5]


def test_every_relation_between_memories_may_be_named():
    from memlab.kernel.verbs.reinforcement import NAMEABLE

    assert set(RELATIONS) - set(NAMEABLE) == {"has-tag", "in-cluster", "mentions"}
