"""Features of a small conversation, each against what a reader would work out by hand."""

import math

import numpy as np
import polars as pl
import pytest

import memlab
from memlab import Extension
from memlab.kernel.extension import forget_extension
from memlab.kernel.policies import FEATURES, load_pack
from memlab.kernel.recall import Stage
from memlab.kernel.recall._stages import own_stage

TALK = [
    {"text": "Did you find the kayak?", "speaker": "Ann", "session": "1", "project": "p"},
    {"text": "Yes, behind the garage.", "speaker": "Bob", "session": "1", "project": "p"},
    {"text": "My garage is full of boxes.", "speaker": "Ann", "session": "2", "project": "p"},
    {"text": "The garage of someone else", "speaker": "Cyd", "session": "1", "project": "q"},
]


@pytest.fixture
def pool(lab, clock):
    lab.remember(TALK, chain=True)
    clock.advance(days=3)

    def recalled(query, **more):
        return lab.recall(query, log=False, **({"project": "p"} | more)).slate

    return recalled


def feature(slate, name):
    return dict(zip(slate.ids.tolist(), slate.numbers[name].tolist(), strict=True))


def test_every_declared_feature_is_computed_and_none_else(lab):
    lab.remember(TALK, chain=True)
    pools = []

    def record_pool(run):
        pools.append(run.pool)
        own_stage("score").run(run)

    memlab.extend(
        Extension(
            "seen",
            "1.0",
            stages=(Stage("score", "As it is.", ("pool",), ("scores",), record_pool),),
        )
    )
    try:
        lab.recall(
            "When did Ann find the kayak, on 7 May 2023?", project="p", session="1", log=False
        )
        lab.recall("kayak", project="p", log=False)
    finally:
        forget_extension("seen")
    for pool in pools:
        assert all(len(pool[name]) == len(pool.rows) == 3 for name in FEATURES)
        with pytest.raises(KeyError):
            pool["no-feature"]


def test_the_population_is_the_project(pool):
    assert pool("kayak").ids.tolist() == [1, 2, 3]


def test_the_feature_of_named_people(pool):
    slate = pool("What did Ann look for?")
    assert feature(slate, "names-speaker") == {1: 1, 2: 0, 3: 1}
    assert feature(slate, "names-other") == {1: 0, 2: 1, 3: 0}


def test_someone_of_another_project_is_not_named(pool):
    assert set(feature(pool("What did Cyd say?"), "names-other").values()) == {0}


def test_questions_and_answers(pool):
    slate = pool("kayak")
    assert feature(slate, "asks") == {1: 1, 2: 0, 3: 0}
    assert feature(slate, "answers") == {1: 0, 2: 1, 3: 0}


def test_coverage_is_the_share_of_idf_mass(pool):
    covered = feature(pool("kayak garage"), "coverage")

    def idf(df):
        return math.log(1 + (3 - df + 0.5) / (df + 0.5))

    mass = idf(1) + idf(2)
    assert covered == pytest.approx({1: idf(1) / mass, 2: idf(2) / mass, 3: idf(2) / mass})


def test_before_coverage_is_that_of_the_turn_before(pool):
    slate = pool("kayak garage")
    assert feature(slate, "before-coverage")[2] == feature(slate, "coverage")[1]
    assert feature(slate, "before-coverage")[1] == feature(slate, "before-coverage")[3] == 0


def test_a_session_speaks_as_one(pool):
    lexical = feature(pool("kayak"), "session-lexical")
    assert lexical[1] == lexical[2] > lexical[3] == 0


def test_session_seed_is_the_best_of_the_session(pool):
    slate = pool("kayak")
    seed = feature(slate, "seed")
    assert feature(slate, "session-seed")[2] == max(seed[1], seed[2])


def test_time(pool):
    slate = pool("kayak")
    assert feature(slate, "age-days") == {1: 3, 2: 3, 3: 3}
    assert feature(slate, "recency") == pytest.approx(dict.fromkeys((1, 2, 3), 0.5 ** (3 / 30)))


def test_similarity_is_a_cosine(pool, lab):
    slate = pool("kayak")
    stored = lab.io.embedder.encode(
        [f"{turn['speaker']}: {turn['text']}" for turn in TALK[:3]]
    ).astype(float)
    lab_with_uses = np.frombuffer(slate.vector, dtype=np.int8).astype(float)
    expected = (
        stored @ lab_with_uses / (np.linalg.norm(stored, axis=1) * np.linalg.norm(lab_with_uses))
    )
    assert slate.numbers["similarity"] == pytest.approx(expected, abs=1e-12)


def test_another_branch_and_this_session(lab):
    lab.remember("a", branch="main", session="1")
    lab.remember("a b")
    lab.remember("a", branch="fix")
    slate = lab.recall("a", session="1", log=False).slate
    assert feature(slate, "same-branch") == {1: 0, 2: 1, 3: 0}
    assert feature(slate, "same-session") == {1: 1, 2: 0, 3: 0}
    slate = lab.recall("a", branch=["main", "hotfix"], log=False).slate
    assert feature(slate, "same-branch") == {1: 1, 2: 1}


def test_a_memory_bound_to_another_session_stays_away(lab):
    lab.remember(
        [{"text": "a", "scope": "session", "session": "1"}, {"text": "a b", "session": "2"}]
    )
    assert lab.recall("a", session="2", log=False).ids == (2,)
    assert set(lab.recall("a", session="1", log=False).ids) == {1, 2}


class TestUse:
    """A memory that was created, and recalled twice; one that nobody asked for."""

    @pytest.fixture
    def lab_with_uses(self, lab, clock):
        lab.remember("The bakery opens at six.")
        lab.remember("Goats like salt.")
        for days in (2, 3):
            clock.advance(days=days)
            lab.recall("When does the bakery open?", limit=1)
        clock.advance(days=4)
        return lambda: lab.recall("bakery goats", log=False).slate

    def test_ages_of_the_latest_uses(self, lab_with_uses):
        slate = lab_with_uses()
        assert slate.frame.select(
            "use-1-days", "use-2-days", "use-3-days", "use-4-days"
        ).rows() == [
            (4, 7, 9, None),
            (9, None, None, None),
        ]
        assert feature(slate, "uses") == {1: 3, 2: 1}
        assert feature(slate, "elapsed-days") == feature(slate, "idle-days") == {1: 4, 2: 9}

    @pytest.mark.long
    def test_only_the_latest_eight_are_kept(self, lab, lab_with_uses, clock):
        for _ in range(8):
            clock.advance(days=1)
            lab.recall("When does the bakery open?", limit=1)
        slate = lab_with_uses()
        assert [feature(slate, f"use-{number}-days")[1] for number in range(1, 9)] == list(range(8))
        assert feature(slate, "uses")[1] == 11

    def test_retention_is_what_the_policy_gives(self, lab, lab_with_uses):
        lab.policies.install(
            "retention", "(fn [elapsed-days half-life uses] (/ uses (+ elapsed-days half-life)))"
        )
        assert feature(lab_with_uses(), "retention") == pytest.approx(
            {1: 3 / (4 + 30), 2: 1 / (9 + 30)}
        )

    @pytest.mark.long
    def test_half_lives_reach_retention_in_days(self, lab, lab_with_uses):
        lab.policies.use("associative")
        half = {1: 30 * 0.5, 2: 30 * 0.5}
        assert feature(lab_with_uses(), "retention") == pytest.approx(
            {1: 0.5 ** (4 / half[1]), 2: 0.5 ** (9 / half[2])}
        )


class TestWhatMayBeNull:
    SET = "(fn [stability] (if-null stability 7))"

    @pytest.fixture
    def learned(self, lab):
        lab.remember("Goats like salt.", stability=2.5, difficulty=4)
        lab.remember("Goats like hills.")
        return lab

    @pytest.mark.long
    def test_a_score_sees_null_and_so_does_who_scores_the_slate_again(self, learned):
        policy = learned.policies.install("recall-score", self.SET)
        slate = learned.recall("goats").slate
        assert dict(zip(slate.ids.tolist(), slate.scores.tolist(), strict=True)) == {1: 2.5, 2: 7}
        frame = learned.slates().candidates.collect()
        assert frame["difficulty"].to_list() == [4, None]
        again = load_pack(f"(pack p) (defpolicy recall-score {self.SET[4:-1]})").policies[
            "recall-score"
        ]
        assert again.columns(frame, by="decision").to_list() == frame["score"].to_list()
        assert policy.hash

    def test_probes_see_it_too(self, learned):
        learned.policies.use(
            "(pack p) (setting probe-rate 1) (setting probe-floor 0)"
            "(defpolicy recall-score [stability] (if-null stability 0))"
            "(defpolicy explore [stability] (if (null? stability) 1 0))"
        )
        hits = learned.recall("goats", limit=1, explore=True)
        assert [(hit.id, hit.probe) for hit in hits] == [(1, False), (2, True)]


class TestSets:
    @pytest.fixture
    def tagged(self, lab):
        lab.remember("Goats like salt.", tags=["rust", "style"], files=["a.py"])
        lab.remember("Goats like hills.")
        return lab

    @pytest.mark.long
    def test_tests_of_sets_decide_and_are_logged(self, tagged):
        tagged.policies.install(
            "recall-score",
            '(fn [tags query-tags] (+ (if (has tags "style") 1 0) (overlap tags query-tags)))',
        )
        slate = tagged.recall("goats #rust #style, C#sharp").slate
        assert feature(slate, '(has tags "style")') == {1: 1, 2: 0}
        assert feature(slate, "(overlap query-tags tags)") == {1: 2, 2: 0}
        assert dict(zip(slate.ids.tolist(), slate.scores.tolist(), strict=True)) == {1: 3, 2: 0}
        assert slate.frame['(has tags "style")'].dtype == pl.Boolean
        scores = tagged.policies["recall-score"].columns(
            tagged.slates().candidates.collect(), by="decision"
        )
        assert scores.to_list() == [3, 0]

    def test_they_can_exclude(self, tagged):
        tagged.policies.install("eligible", '(fn [files] (has files "a.py"))')
        assert tagged.recall("goats", log=False).ids == (1,)


class TestTriggers:
    @pytest.fixture
    def warned(self, lab):
        lab.remember(
            "Never put credentials there!", kind="negative", triggers=["Log file", "stdout"]
        )
        lab.remember("Write the log file to disk.")
        return lab

    def test_triggered(self, warned):
        assert feature(warned.recall("open the LOG FILE", log=False).slate, "triggered") == {
            1: 1,
            2: 0,
        }
        assert feature(warned.recall("write to disk", log=False).slate, "triggered") == {1: 0, 2: 0}

    def test_a_trigger_brings_up_what_nothing_else_would(self, warned):
        warned.remember([f"Write entry {number} to the log file" for number in range(20)])
        warned.policies.use("cascade")
        hits = warned.recall("write to the log file", log=False)
        assert hits[0].id == 1
        assert 1 not in warned.recall("write an entry", log=False).ids

    def test_only_in_its_own_project(self, lab):
        lab.policies.use("cascade")
        lab.remember("Careful!", kind="negative", triggers=["deploy"], project="api")
        lab.remember("The deploy is on Tuesday", project="web")
        assert 1 not in lab.recall("deploy", project="web", log=False).slate.ids
