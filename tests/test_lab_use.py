"""Use as a person sees it: verdicts, seasons, and when clusters are due."""

import json

import polars as pl
import pytest

import memlab
from memlab.kernel.recall import Recaller
from memlab.kernel.verbs.recalling.past import Past
from memlab.subjects import verifiers
from memlab.subjects.agents.verifying import Verified
from memlab.subjects.clusters.registers import is_refinement_due
from memlab.subjects.verifiers import Verdict
from tests.displays import html_of

NOTES = [
    "the bakery opens at six",
    "the bakery opens at noon",
    "the bakery opens at ten",
    "tabs in the editor",
]


@pytest.fixture
def cascade(trigrams, clock):
    with memlab.open(embedder=trigrams, clock=clock, pack="cascade") as lab:
        lab.remember([{"text": text, "confidence": 0.5} for text in NOTES], linking="off")
        yield lab


def confidence(lab):
    return dict(zip(lab.memories["id"], lab.memories["confidence"].round(12), strict=True))


class TestVerdict:
    @pytest.mark.long
    def test_accepted_results_gain_confidence_and_rejected_ones_lose_it(self, cascade, clock):
        hits = cascade.recall("the bakery opens", limit=3)
        clock.advance(hours=2)
        verified = cascade.agents.verify(hits, [hits[0], hits[1].id])
        best, second, third = hits.ids[:3]
        assert (verified.accepted, verified.rejected[0]) == ((best, second), third)
        expected = dict.fromkeys((1, 2, 3, 4), 0.5) | dict.fromkeys(verified.rejected, 0.48)
        assert confidence(cascade) == expected | {best: 0.52, second: 0.52}
        access = dict(zip(cascade.memories["id"], cascade.memories["access"], strict=True))
        assert [access[id] for id in (best, second, third)] == [1, 1, 0]
        # it fades from the recall on: a late verdict does not make it fresh
        assert cascade.memories["accessed"][best - 1] == memlab.kernel.base.clock.from_micros(
            hits.slate.at
        )

    @pytest.mark.long
    def test_two_that_pass_are_joined_and_strengthened_to_at_most_one(self, cascade):
        for count in range(1, 13):
            hits = cascade.recall("the bakery opens", limit=3)
            cascade.agents.verify(hits, [1, 2])
            edge = cascade.edges.filter(relation="relates-to").to_dicts()
            assert [(item["source"], item["target"]) for item in edge] == [(1, 2)]
            assert edge[0]["weight"] == pytest.approx(min(1.0, 0.1 * count))
            assert edge[0]["reinforcements"] == count - 1

    def test_the_verifier_may_name_relations(self, cascade):
        def says(hits):
            return Verdict(hits[:3], relations={(hits.ids[0], hits.ids[1]): "supersedes"})

        hits = cascade.recall("the bakery opens", limit=3)
        a, b, c = hits.ids[:3]
        cascade.agents.verify(hits, says, relations={(c, a): "contradicts"})
        between = cascade.edges.filter(pl.col("relation") != "has-tag")
        unique = set(between.select("source", "target", "relation").rows())
        assert unique == {
            (a, b, "supersedes"),
            (c, a, "contradicts"),
            (min(b, c), max(b, c), "relates-to"),
        }

    @pytest.mark.long
    def test_some_may_be_left_undecided(self, cascade):
        hits = cascade.recall("the bakery opens", limit=3)
        verified = cascade.agents.verify(hits, hits[0], rejected=hits[1])
        assert (verified.accepted, verified.rejected) == ((hits[0].id,), (hits[1].id,))
        assert confidence(cascade)[hits[2].id] == 0.5

    @pytest.mark.long
    def test_a_verdict_counts_once(self, cascade):
        hits = cascade.recall("the bakery opens", limit=3)
        cascade.agents.verify(hits, hits)
        before = cascade.memories
        with pytest.raises(memlab.InputError, match=f"recall {hits.decision} was verified already"):
            cascade.agents.verify(hits, hits)
        assert cascade.memories.equals(before)

    def test_its_result_is_a_frame_and_renders(self, cascade):
        hits = cascade.recall("the bakery opens", limit=2)
        verified = cascade.agents.verify(hits, hits[0])
        assert verified.frame.rows() == [(hits[0].id, True), *[(id, False) for id in hits.ids[1:]]]
        assert "1 accepted" in html_of(verified)
        tag = "<script>x</script>"
        assert "<script>" not in html_of(Verified(1, 1, (1,), (), 0, 0, tag, None))

    @pytest.mark.long
    def test_the_default_pack_changes_nothing_in_what_passed(self, lab):
        lab.remember(NOTES, linking="off")
        hits = lab.recall("the bakery", limit=2)
        before = lab.memories
        lab.agents.verify(hits, hits)
        assert lab.memories.equals(before)
        assert len(lab.edges) == 0

    @pytest.mark.long
    def test_the_same_journal_gives_the_same_state(self, disk):
        with disk(pack="cascade") as lab:
            lab.remember(
                [{"text": text, "tags": ["town"] if i < 2 else []} for i, text in enumerate(NOTES)],
                linking="off",
            )
            for words in ("the bakery opens", "the bakery at ten", "tabs"):
                hits = lab.recall(words)
                lab.agents.verify(hits, verifiers.overlap)
                for hit in hits:
                    lab.feedback(hit, "success", agent="coder")
            memories, edges = lab.memories, lab.edges
        with disk() as lab:
            assert lab.memories.equals(memories)
            assert lab.edges.equals(edges)

    @pytest.mark.long
    def test_two_labs_on_one_folder_agree(self, disk):
        with disk(pack="cascade") as one, disk() as two:
            one.remember(NOTES, linking="off")
            hits = one.recall("the bakery opens", limit=3)
            one.feedback(hits[0], "success", agent="coder")
            two.feedback(hits[1], "success", agent="coder")
            two.agents.verify(hits, hits[:2])
            with pytest.raises(memlab.InputError, match="verified already"):
                one.agents.verify(hits, hits)
            for lab in (one, two):
                (edge,) = lab.edges.filter(pl.col("relation") != "has-tag").to_dicts()
                assert {edge["source"], edge["target"]} == {hits[0].id, hits[1].id}
                assert (edge["weight"], edge["reinforcements"]) == (0.2, 1)
                assert lab.agents.relationships()["helpful"].to_list() == [2]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"accepted": [4]}, "no hit of this recall.*4"),
            ({"accepted": [1], "rejected": [1]}, "Memory 1 is both"),
            ({"accepted": [1, 2], "relations": {(1, 2): "like"}}, "like"),
            ({"accepted": [1, 2], "relations": {(1, 2): "has-tag"}}, "has-tag"),
            (
                {"accepted": [1, 2], "relations": {(1, 1): "updates"}},
                "must join two different accepted memories",
            ),
            ({"accepted": [1, 2], "relations": {(1, 3): "updates"}}, "no accepted memory.*3"),
            ({"accepted": lambda hits: ["x"]}, "x"),
        ],
    )
    def test_bad_input_changes_nothing(self, cascade, arguments, message):
        hits = cascade.recall("the bakery opens at", limit=3, where=pl.col("id") < 4)
        head = cascade.io.store.journal.head
        with pytest.raises(memlab.InputError, match=message):
            cascade.agents.verify(hits, **arguments)
        assert cascade.io.store.journal.head == head

    def test_only_a_logged_recall_is_verified(self, cascade):
        with pytest.raises(memlab.InputError, match="was not logged"):
            cascade.agents.verify(cascade.recall("the bakery", log=False), [])
        with pytest.raises(memlab.InputError, match=r"what lab\.recall returned"):
            cascade.agents.verify([1], [1])


class TestOverlap:
    def test_a_memory_with_the_words_of_the_query_passes(self, cascade):
        hits = cascade.recall("when does the bakery open?", limit=4)
        passing = {hit.id for hit in verifiers.overlap(hits).accepted}
        coverage = dict(
            zip(hits.slate.ids.tolist(), hits.slate.numbers["coverage"].tolist(), strict=True)
        )
        assert passing == {id for id in hits.ids if coverage[id] >= 0.25} == {1, 2, 3}

    def test_its_threshold_is_a_setting(self, trigrams, clock):
        strict = '(pack strict "All words." :inherits cascade) (setting verify-coverage 1)'
        with memlab.open(embedder=trigrams, clock=clock, pack=strict) as lab:
            lab.remember(NOTES, linking="off")
            hits = lab.recall("the bakery opens with tabs")
            assert verifiers.overlap(hits).accepted == []

    def test_a_triggered_memory_passes(self, cascade):
        cascade.remember("never log secrets", kind="negative", triggers=["print("], linking="off")
        hits = cascade.recall("print(value) then")
        assert 5 in [hit.id for hit in verifiers.overlap(hits).accepted]


class TestSeasons:
    @pytest.fixture
    def seasonal(self, lab):
        lab.remember(
            [
                {"text": "freeze the bakery", "season": "release-week"},
                {"text": "the bakery is closed", "season": "holidays"},
                {"text": "the bakery opens at six"},
            ],
            linking="off",
        )
        return lab

    def test_a_memory_with_a_season_takes_part_only_while_it_is_named(self, seasonal):
        assert set(seasonal.recall("the bakery").ids) == {3}
        assert set(seasonal.recall("the bakery", season="release-week").ids) == {1, 3}
        assert set(seasonal.recall("the bakery", season=["holidays", "release-week"]).ids) == {
            1,
            2,
            3,
        }
        assert set(seasonal.recall("the bakery", season="summer").ids) == {3}
        assert set(seasonal.graph.similar(3)["memory_id"]) == set()

    def test_a_season_that_comes_later_is_seen(self, seasonal):
        assert set(seasonal.recall("the bakery", season="summer").ids) == {3}
        seasonal.remember("the bakery sells ice", season="summer", linking="off")
        assert set(seasonal.recall("the bakery", season="summer").ids) == {3, 4}
        assert set(seasonal.recall("the bakery").ids) == {3}

    def test_the_first_season_of_a_lab_is_seen_too(self, lab):
        lab.remember(NOTES, linking="off")
        assert set(lab.recall("the bakery").ids) == {1, 2, 3, 4}
        lab.remember("the bakery sells ice", season="summer", linking="off")
        assert set(lab.recall("the bakery").ids) == {1, 2, 3, 4}

    @pytest.mark.long
    def test_the_log_says_so_and_the_question_can_be_asked_again(self, seasonal):
        hits = seasonal.recall("the bakery", season="release-week")
        seasonal.recall("the bakery")
        named, none = map(json.loads, seasonal.slates().decisions.collect()["filters"])
        assert (named, none) == ({"season": ["release-week"]}, {})
        again = Past(seasonal.io.store.journal, Recaller(seasonal.io.embedder)).recall(
            hits.decision, seasonal.policies.pack
        )
        assert again.ids.tolist() == hits.slate.ids.tolist()

    @pytest.mark.parametrize("bad", ["", [], 7, [None]])
    def test_a_season_is_a_word(self, seasonal, bad):
        with pytest.raises(memlab.InputError, match="season"):
            seasonal.recall("the bakery", season=bad)


class TestRefineDue:
    def due(self, lab):
        with lab.io.store.reading() as state:
            return is_refinement_due(state, lab.policies.pack)

    @pytest.mark.long
    def test_every_fiftieth_recall(self, cascade):
        for _ in range(49):
            cascade.recall("the bakery", limit=1)
            assert not self.due(cascade)
        cascade.recall("the bakery", limit=1, log=False)
        assert not self.due(cascade)
        cascade.recall("the bakery", limit=1)
        assert self.due(cascade)
        self.refined(cascade)
        assert not self.due(cascade)

    def test_when_results_span_clusters(self, cascade):
        joined = [
            {
                "source": [1, 2, 3],
                "kind": "cluster",
                "target": ["c1", "c1", "c2"],
                "relation": "in-cluster",
            }
            | {"weight": [1.0] * 3}
        ]
        with cascade.io.store.writing() as tx:
            tx.event("link", {"join": joined}, at=0)
        cascade.recall("the bakery opens at six", limit=1)
        assert not self.due(cascade)
        cascade.recall("the bakery opens at six", limit=4)
        assert self.due(cascade)
        self.refined(cascade)
        assert not self.due(cascade)

    def test_never_where_the_setting_is_nothing(self, lab):
        lab.remember(NOTES, linking="off")
        for _ in range(3):
            lab.recall("the bakery")
        assert not self.due(lab)

    @pytest.mark.long
    def test_the_count_outlives_the_lab(self, disk):
        with disk(pack="cascade") as lab:
            lab.remember(NOTES, linking="off")
            for _ in range(30):
                lab.recall("the bakery", limit=1)
            lab.io.snapshot()
        with disk() as lab:
            for _ in range(20):
                lab.recall("the bakery", limit=1)
            assert self.due(lab)

    def refined(self, lab):
        with lab.io.store.writing() as tx:
            tx.event("refine", {}, at=lab.io.store.clock())
