"""Features of a small conversation, each against what a reader would work out by hand."""

import math

import numpy as np
import pytest

from memlab.policies import FEATURES
from memlab.recall._features import _COMPUTE

TALK = [
    {"text": "Did you find the kayak?", "speaker": "Ann", "session": "1", "project": "p"},
    {"text": "Yes, behind the garage.", "speaker": "Bob", "session": "1", "project": "p"},
    {"text": "My garage is full of boxes.", "speaker": "Ann", "session": "2", "project": "p"},
    {"text": "The garage of someone else", "speaker": "Cyd", "session": "1", "project": "q"},
]


@pytest.fixture
def pool(lab, clock):
    lab.remember_many(TALK, chain=True)
    clock.advance(days=3)

    def recalled(query, **more):
        return lab.recall(query, log=False, **({"project": "p"} | more)).slate

    return recalled


def feature(slate, name):
    return dict(zip(slate.ids.tolist(), slate.numbers[name].tolist(), strict=True))


def test_every_declared_feature_is_computed_and_none_else():
    assert _COMPUTE.keys() == FEATURES.keys()


def test_the_population_is_the_project(pool):
    assert pool("kayak").ids.tolist() == [1, 2, 3]


def test_who_is_named(pool):
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
    stored = lab.embedder.encode([f"{turn['speaker']}: {turn['text']}" for turn in TALK[:3]]).astype(float)
    asked = np.frombuffer(slate.vector, dtype=np.int8).astype(float)
    expected = stored @ asked / (np.linalg.norm(stored, axis=1) * np.linalg.norm(asked))
    assert slate.numbers["similarity"] == pytest.approx(expected, abs=1e-12)


def test_another_branch_and_this_session(lab):
    lab.remember("a", branch="main", session="1")
    lab.remember("a b")
    lab.remember("a", branch="fix")
    slate = lab.recall("a", branch="main", session="1", log=False).slate
    assert feature(slate, "same-branch") == {1: 1, 2: 1, 3: 0}
    assert feature(slate, "same-session") == {1: 1, 2: 0, 3: 0}


def test_a_memory_bound_to_another_session_stays_away(lab):
    lab.remember_many([{"text": "a", "scope": "session", "session": "1"}, {"text": "a b", "session": "2"}])
    assert lab.recall("a", session="2", log=False).ids == (2,)
    assert set(lab.recall("a", session="1", log=False).ids) == {1, 2}
