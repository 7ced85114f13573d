"""Metrics over labels: equal to ir_measures on random runs, and said where harnesses differ."""

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.errors import InputError, UnknownName
from memlab.science.evaluation import METRICS, judge, measure

ITEMS = [f"m{number}" for number in range(30)]
rankings = st.lists(st.permutations(ITEMS).map(lambda order: order[:20]), min_size=1, max_size=6)
gold_sets = st.sets(st.sampled_from([*ITEMS, "never-found"]), min_size=1, max_size=25)

ORACLES = {
    "recall": ir_measures.R,
    "recall_any": ir_measures.Success,
    "mrr": ir_measures.RR,
    "map": ir_measures.AP,
    "ndcg": ir_measures.nDCG,
}


@pytest.mark.long
@examples(100)
@given(st.data(), st.integers(1, 20))
def test_equal_to_ir_measures(data, cut):
    runs = data.draw(rankings)
    gold = [data.draw(gold_sets) for _ in runs]
    lengths = [data.draw(st.integers(1, 20)) for _ in runs]
    runs = [run[:length] for run, length in zip(runs, lengths, strict=True)]
    judged = judge(runs, gold, depth=20)
    qrels = [ir_measures.Qrel(str(q), item, 1) for q, wanted in enumerate(gold) for item in wanted]
    # strict ranks: scores that fall by one leave the oracle no tie to break
    run = [
        ir_measures.ScoredDoc(str(q), item, float(-rank))
        for q, ranking in enumerate(runs)
        for rank, item in enumerate(ranking)
    ]
    for name, oracle in ORACLES.items():
        expected = np.zeros(len(runs))
        for metric in ir_measures.iter_calc([oracle @ cut], qrels, run):
            expected[int(metric.query_id)] = metric.value
        np.testing.assert_allclose(measure(judged, f"{name}@{cut}"), expected, atol=1e-12)


@pytest.mark.long
@examples(100)
@given(rankings, st.data(), st.integers(1, 19))
def test_properties_of_metrics_for_any_ranking(runs, data, cut):
    gold = [data.draw(gold_sets) for _ in runs]
    judged = judge(runs, gold, depth=20)
    every, some, share = (
        measure(judged, f"{name}@{cut}") for name in ("recall_all", "recall_any", "recall")
    )
    assert (every <= share).all()
    assert (share <= some).all()
    for name in METRICS:
        values = measure(judged, f"{name}@{cut}")
        assert ((values >= 0) & (values <= 1 + 1e-12)).all()
        if name != "ndcg":  # whose ideal grows with the cut
            assert (values <= measure(judged, f"{name}@{cut + 1}") + 1e-12).all()
    perfect = judge([sorted(wanted) for wanted in gold], gold, depth=25)
    assert measure(perfect, f"ndcg@{cut}") == pytest.approx(1.0)


def test_a_worked_example():
    judged = judge([["x", "a", "y", "b"]], [{"a", "b", "c"}], depth=4)
    assert measure(judged, "recall@4").tolist() == [2 / 3]
    assert measure(judged, "recall_any@4").tolist() == [1.0]
    assert measure(judged, "recall_all@4").tolist() == [0.0]
    assert measure(judged, "mrr@4").tolist() == [0.5]
    assert measure(judged, "map@4").tolist() == [(1 / 2 + 2 / 4) / 3]
    dcg, ideal = 1 / np.log2(3) + 1 / np.log2(5), 1 + 1 / np.log2(3) + 1 / np.log2(4)
    assert measure(judged, "ndcg@4") == pytest.approx(dcg / ideal)


@pytest.mark.parametrize("name", METRICS)
def test_a_question_without_evidence_has_no_value(name):
    values = measure(judge([["a"], ["a"]], [set(), {"a"}], depth=5), f"{name}@5")
    assert np.isnan(values[0])
    assert values[1] == 1.0


@pytest.mark.parametrize("name", METRICS)
def test_a_question_whose_search_found_nothing_scores_zero(name):
    assert measure(judge([[]], [{"a"}], depth=5), f"{name}@5").tolist() == [0.0]


def test_an_item_listed_twice_counts_once_and_holds_both_ranks():
    judged = judge([["a", "a", "b"]], [["a", "b", "b"]], depth=3)
    assert judged.gold.tolist() == [2]
    assert measure(judged, "recall@2").tolist() == [0.5]
    assert measure(judged, "recall@3").tolist() == [1.0]


def test_no_questions_give_no_values():
    assert measure(judge([], [], depth=3), "ndcg@3").tolist() == []


@pytest.mark.parametrize(
    "name", ["recal@10", "recall", "recall@0", "recall@-1", "recall@1e9", "ndcg@ten", ""]
)
def test_an_unknown_metric_is_refused(name):
    with pytest.raises(UnknownName, match="There is no metric"):
        measure(judge([["a"]], [{"a"}], depth=3), name)


def test_a_cut_below_what_was_judged_is_refused():
    with pytest.raises(
        InputError, match="recall@10 needs 10 ranks, and these rankings were judged to depth 3"
    ):
        measure(judge([["a"]], [{"a"}], depth=3), "recall@10")


def test_rankings_and_evidence_must_pair():
    with pytest.raises(InputError, match="2 rankings, but 1 questions with evidence"):
        judge([["a"], ["b"]], [{"a"}], depth=3)
    with pytest.raises(InputError, match="depth is a whole number of at least 1, not 0"):
        judge([["a"]], [{"a"}], depth=0)
