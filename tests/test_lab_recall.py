"""Recall as a person asks for it: choice, diversity, what is logged of them, and asking again."""

import datetime as dt
import json
import pickle

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.kernel.recall import Filters, Recaller
from memlab.kernel.slates import TABLES, decode, encode
from memlab.kernel.verbs.recalling.past import Past

NOTES = [
    {"text": "The user prefers tabs", "kind": "preference", "tags": ["style"], "importance": 0.9},
    {"text": "The user prefers tabs!", "kind": "preference", "importance": 0.4},
    {"text": "Deploys go out on Tuesdays", "kind": "convention", "project": "api"},
    {
        "text": "The bakery opens at six",
        "kind": "fact",
        "visibility": "private",
        "creator": "agent:a",
    },
    {"text": "Tabs were tried on a branch", "kind": "fact", "branch": "fix"},
]

FILTERS = {
    "where": pl.col("importance") > 0.45,
    "branch": ["main", "fix"],
    "visibility": ["project", "private"],
    "viewer": "agent:a",
    "status": ["active", "forgotten"],
}


@pytest.fixture
def noted(lab):
    lab.remember(NOTES)
    return lab


def past(lab):
    return Past(lab.io.store.journal, Recaller(lab.io.embedder))


class TestFilters:
    @pytest.mark.long
    def test_every_argument_narrows(self, noted):
        assert set(noted.recall("tabs", log=False).ids) == {1, 2, 3, 4, 5}
        assert set(noted.recall("tabs", log=False, where=pl.col("kind") == "preference").ids) == {
            1,
            2,
        }
        assert set(noted.recall("tabs", log=False, visibility="private").ids) == {4}
        assert set(noted.recall("tabs", log=False, branch="main").ids) == {1, 2, 3, 4}
        assert set(noted.recall("tabs", log=False, branch=["main", "fix"]).ids) == {1, 2, 3, 4, 5}
        assert set(noted.recall("tabs", log=False, viewer="agent:b").ids) == {1, 2, 3, 5}
        assert set(noted.recall("tabs", log=False, scope="global").ids) == set()

    def test_a_recall_that_finds_nothing_is_logged_too(self, noted):
        hits = noted.recall("tabs", where=pl.col("kind") == "goal")
        assert len(hits) == 0
        assert noted.slates().decisions.collect()["candidates"].to_list() == [0]

    @pytest.mark.long
    def test_the_decision_tells_what_was_admitted(self, noted):
        noted.recall("tabs")
        noted.recall("tabs", **FILTERS)
        plain, filtered = map(json.loads, noted.slates().decisions.collect()["filters"])
        assert plain == {}
        assert filtered.keys() == FILTERS.keys()
        assert (filtered["branch"], filtered["viewer"]) == (["fix", "main"], "agent:a")
        assert TABLES["decisions"]["filters"] == pl.String()

    def test_a_slate_survives_its_bytes(self, noted):
        slate = noted.recall("tabs", **FILTERS).slate
        again = decode(encode(slate))
        assert again.filters == slate.filters
        assert Filters.read(again.filters) == Filters.of(**FILTERS)

    @pytest.mark.long
    def test_frames_that_say_what_was_admitted_are_read_back(self, noted):
        noted.recall("tabs", **FILTERS)
        tables = noted.slates().collect()
        again = memlab.Slates.from_frames(
            tables.decisions, tables.candidates, tables.exposures, tables.feedback
        )
        assert (
            again.decisions.collect()["filters"].to_list()
            == tables.decisions.collect()["filters"].to_list()
        )

    @pytest.mark.long
    def test_a_lab_on_disk_keeps_them(self, disk):
        with disk() as lab:
            lab.remember(NOTES)
            decision = lab.recall("tabs", **FILTERS).decision
        with disk(read_only=True) as lab:
            assert set(past(lab).recall(decision, lab.policies.pack).ids.tolist()) == {1, 3, 4, 5}


class TestAskingAgain:
    @pytest.mark.long
    def test_the_same_memories_are_admitted(self, noted):
        hits = noted.recall("tabs", **FILTERS)
        noted.remember("More tabs", importance=0.8)
        again = past(noted).recall(hits.decision, noted.policies.pack)
        assert again.frame.drop("propensity").equals(hits.slate.frame.drop("propensity"))

    @pytest.mark.long
    def test_a_filter_by_use_sees_the_use_of_that_time(self, noted):
        first = noted.recall("tabs", limit=1, where=pl.col("access") == 0)
        second = noted.recall("tabs", limit=1, where=pl.col("access") == 0)
        assert first.ids[0] not in second.slate.ids
        again = past(noted)
        assert (
            again.recall(second.decision, noted.policies.pack).ids.tolist()
            == second.slate.ids.tolist()
        )
        assert (
            again.recall(first.decision, noted.policies.pack).ids.tolist()
            == first.slate.ids.tolist()
        )

    def test_a_value_that_the_log_cannot_store_is_refused_by_name(self, noted):
        shout = pl.col("text").map_batches(
            lambda texts: texts.str.to_uppercase() != "", return_dtype=pl.Boolean
        )
        decision = noted.recall("tabs", where=shout).decision
        assert not past(noted).repeats(decision)
        with pytest.raises(
            memlab.InputError, match=f"recall {decision} cannot be repeated.*expression"
        ):
            past(noted).recall(decision, noted.policies.pack)

    @pytest.mark.long
    def test_evaluate_refuses_the_policy_and_not_the_log(self, noted):
        shout = pl.col("text").map_batches(
            lambda texts: texts.str.to_uppercase() != "", return_dtype=pl.Boolean
        )
        for number in range(4):
            hits = noted.recall("tabs", where=shout)
            noted.feedback(hits[0], "success" if number % 2 else "fail")
        ev = memlab.evaluate(noted.slates(), ["memlab", "workbench"], missing="zero")
        assert [refusal.policy for refusal in ev.refusals] == ["workbench"]
        assert "cannot be repeated" in ev.refusals[0].reason

    def test_a_forged_log_is_not_run(self, noted, tmp_path):
        slate = noted.recall("tabs", where=pl.col("importance") > 0).slate
        proof = tmp_path / "ran"

        class Bomb:
            def __reduce__(self):
                return (proof.write_text, ("ran",))

        tree = json.loads(
            pl.col("text").map_batches(str, return_dtype=pl.Boolean).meta.serialize(format="json")
        )
        tree["AnonymousFunction"]["function"] = list(b"PLPYFN" + pickle.dumps(Bomb()))
        forged = decode(encode(slate)).filters | {"where": json.dumps(tree)}
        with pytest.raises(memlab.InputError, match="not loaded from a log"):
            Filters.read(forged)
        assert not proof.exists()


class TestDiversity:
    SCORE = "(defpolicy recall-score [importance] importance)"

    @pytest.fixture
    def echo(self, lab):
        """Return a lab with three echoes of one note, and another note with a lower score."""
        lab.remember(
            [
                {"text": "The deploy failed on Monday", "importance": 0.9},
                {"text": "The deploy failed on Monday", "importance": 0.8},
                {"text": "The deploy failed on  Monday", "importance": 0.7},
                {"text": "Kayaks are boats", "importance": 0.6},
            ]
        )
        return lab

    def test_likeness_lets_another_note_up(self, echo):
        echo.policies.use(f"(pack alone) {self.SCORE}")
        assert echo.recall("deploy", limit=3, log=False).ids == (1, 2, 3)
        echo.policies.use(f"(pack diverse) {self.SCORE} (setting mmr-weight 0.5)")
        assert echo.recall("deploy", limit=3, log=False).ids[:2] == (1, 4)

    def test_a_hit_keeps_its_score_and_says_why_it_has_it(self, echo):
        echo.policies.use(f"(pack diverse) {self.SCORE} (setting mmr-weight 0.5)")
        hits = echo.recall("deploy", limit=2, log=False)
        assert [hit.score for hit in hits] == [0.9, 0.6]
        assert hits[1].explain().score == 0.6

    def test_near_duplicates_stand_as_one(self, echo):
        echo.policies.use(f"(pack alone) {self.SCORE} (setting collapse-above 0.8)")
        hits = echo.recall("deploy", limit=3, log=False)
        assert hits.ids == (1, 4)
        assert hits.slate.also == {1: (2, 3)}
        assert decode(encode(hits.slate)).also == {1: (2, 3)}
        assert hits.slate.ranks.tolist() == [1, 3, 4, 2]

    @pytest.mark.long
    def test_the_log_holds_the_order_that_was_used(self, echo):
        echo.policies.use(
            f"(pack diverse) {self.SCORE} (setting mmr-weight 0.5) (setting collapse-above 0.8)"
        )
        hits = echo.recall("deploy", limit=1)
        candidates = echo.slates().candidates.collect()
        assert candidates.sort("rank")["memory_id"].to_list() == [1, 4, 2, 3]
        assert candidates.filter(pl.col("propensity") == 1)["memory_id"].to_list() == [1]
        assert candidates.filter(pl.col("memory_id").is_in([2, 3]))["propensity"].to_list() == [
            0,
            0,
        ]
        assert json.loads(echo.slates().decisions.collect()["settings"][0])["mmr-weight"] == 0.5
        repeated = past(echo).recall(hits.decision, echo.policies.pack)
        assert repeated.ranking.tolist() == hits.slate.ranking.tolist()

    def test_the_default_pack_orders_by_score(self, noted):
        slate = noted.recall("tabs", log=False).slate
        assert (
            slate.ranking.tolist()
            == (1 + np.argsort(np.lexsort((slate.ids, -slate.scores)))).tolist()
        )
        assert slate.also == {}


class TestSimilar:
    def test_the_nearest_but_itself(self, noted):
        hits = noted.graph.similar(1, limit=3)
        assert hits["memory_id"][0] == 2
        assert hits["rank"].to_list() == [1, 2, 3]
        assert 1 not in hits["memory_id"]
        vectors = noted.io.store.state.vectors.take().astype(float)
        norms = np.linalg.norm(vectors, axis=1)
        expected = vectors @ vectors[0] / (norms * norms[0])
        assert hits["similarity"].to_list() == pytest.approx(
            expected[hits["memory_id"].to_numpy() - 1].tolist()
        )
        assert hits["similarity"].is_sorted(descending=True)

    def test_a_preview_reads_and_writes_nothing(self, noted):
        before = noted.io.store.journal.head, noted.memories
        noted.graph.similar(1)
        assert noted.io.store.journal.head == before[0]
        assert noted.memories.equals(before[1])

    def test_a_memory_that_recall_does_not_admit_is_left_out(self, noted):
        noted.forget(2)
        assert 2 not in noted.graph.similar(1)["memory_id"]
        assert noted.graph.similar(2)["memory_id"].to_list()[0] == 1
        assert noted.graph.similar(1, project="web")["memory_id"].sort().to_list() == [4, 5]
        assert noted.graph.similar(1, where=pl.col("kind") == "convention")[
            "memory_id"
        ].to_list() == [3]

    def test_a_hit_a_memory_or_an_id(self, noted):
        hit = noted.recall("tabs", log=False)[0]
        assert noted.graph.similar(hit).equals(noted.graph.similar(hit.id))
        assert noted.graph.similar(noted[hit.id]).equals(noted.graph.similar(hit.id))

    def test_alone(self, lab):
        lab.remember("one")
        hits = lab.graph.similar(1)
        assert hits.height == 0
        assert hits.schema["similarity"] == pl.Float64()

    @pytest.mark.parametrize(
        ("memory", "more"), [(9, {}), (True, {}), (1, {"limit": 0}), (1, {"limit": 2.5})]
    )
    def test_errors_say_what_is_wrong(self, noted, memory, more):
        with pytest.raises(memlab.InputError, match=r"memory|limit"):
            noted.graph.similar(memory, **more)


def test_a_recall_at_a_time_filters_by_that_state(noted, clock):
    clock.advance(days=2)
    noted.remember("Late tabs")
    late = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    assert noted.recall("tabs", where=pl.col("created") > late, log=False).ids == (6,)
