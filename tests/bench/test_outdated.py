"""The pairs of ``experiments/outdated.py`` and ``absence.py``: their data, and how they count."""

import json
from collections import Counter

import numpy as np
import pytest

import memlab
from experiments.absence import Asked, compare_aucs, compute_auc, compute_scores
from experiments.outdated import DATA, Answer, build_lives, find_rank, recall_pairs


@pytest.fixture(scope="module")
def pairs():
    return [
        json.loads(line)
        for line in (DATA / "outdated.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def test_the_pairs_are_a_hundred_in_two_splits_and_two_wordings(pairs):
    counts = Counter((pair["split"], pair["wording"]) for pair in pairs)
    assert counts == {
        ("dev", "cue"): 30,
        ("dev", "plain"): 30,
        ("held", "cue"): 20,
        ("held", "plain"): 20,
    }
    for part in ("old", "new", "question", "kept", "beside", "kept_question"):
        assert len({pair[part] for pair in pairs}) == 100


def test_a_replacement_is_stated_later_in_every_run(pairs):
    for _, rows, group in build_lives(pairs):
        said = {row["ref"]: row["at"] for row in rows}
        assert len(said) == len(rows)
        for pair in group:
            assert said[f"{pair['id']}-new"] > said[f"{pair['id']}-old"]
            assert said[f"{pair['id']}-beside"] > said[f"{pair['id']}-kept"]


@pytest.mark.parametrize(
    ("current", "outdated", "wrong"), [(1, 2, False), (2, 1, True), (0, 3, True), (3, 0, False)]
)
def test_the_outdated_statement_leads_if_it_ranks_above_or_alone(current, outdated, wrong):
    assert Answer("life-1", "cue", current, outdated).wrong is wrong
    assert find_rank(["a", None, "b"], ["b", "c"]) == 3
    assert find_rank([], ["b"]) == 0


@pytest.mark.long
def test_each_pair_and_each_control_is_asked_once():
    changed, controls = recall_pairs("memlab", "dev", progress=False)
    assert len(changed) == len(controls) == 60
    assert np.mean([answer.current > 0 for answer in changed]) > 0.8


def test_the_auc_is_the_share_of_pairs_in_order():
    answerable = np.array([True, True, False, False])
    assert compute_auc(np.array([3.0, 1.0, 2.0, 0.0]), answerable) == 0.75
    assert compute_auc(np.array([1.0, 1.0, 1.0, 1.0]), answerable) == 0.5
    assert np.isnan(compute_auc(np.array([1.0]), np.array([True])))


@pytest.mark.long
def test_known_is_compared_with_the_best_raw_score():
    rng = np.random.default_rng(3)
    asked = [
        Asked(
            {"top score": float(rng.normal(yes)), "hits.known": float(rng.normal(3 * yes))},
            yes,
            f"c{at % 4}",
        )
        for at in range(200)
        for yes in (True, False)
    ]
    result = compare_aucs(asked)
    assert result["unanswerable"] == 200
    assert result["gain"]["over"] == "top score"
    assert result["gain"]["low"] > 0
    assert result["scores"][0]["score"] == "hits.known"


def test_raw_scores_of_a_recall():
    with memlab.open() as lab:
        lab.remember([{"text": "I keep bees."}, {"text": "Rent is due on the third."}])
        scores = compute_scores(lab.recall("Where are the bees?", log=False))
    assert scores["top score"] >= scores["mean of ten"]
    with memlab.open() as empty:
        assert np.isnan(compute_scores(empty.recall("Where?", log=False))["top score"])
