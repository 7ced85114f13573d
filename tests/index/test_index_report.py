"""The report of an index: what it says is what a count by hand gives."""

import numpy as np
import pytest

from memlab.errors import InputError
from memlab.kernel.index import BLOCK, Neighbours, Vectors, report
from memlab.kernel.index._report import wilson
from tests.displays import html_of

pytest.importorskip("annoy")

DIM = 64


@pytest.fixture(scope="module")
def neighbours():
    vectors = Vectors(DIM, exact_up_to=1_000)
    vectors.append(np.random.default_rng(0).integers(-127, 128, (BLOCK + 200, DIM), dtype=np.int8))
    built = Neighbours(None, vectors, effort=0.05, background=False)
    assert built.rebuild(), built.failure
    yield built
    built.close()


@pytest.mark.long
def test_recall_is_the_share_of_the_exact_neighbours_that_are_found(neighbours):
    vectors = neighbours.vectors
    queries = np.random.default_rng(1).integers(-127, 128, (30, DIM), dtype=np.int8)
    measured = report(neighbours, queries, n=5)
    by_hand = [
        np.isin(
            np.argsort(-vectors.similarity(query), kind="stable")[:5], vectors.top(query, 5)[0]
        ).mean()
        for query in queries
    ]
    assert measured.recall == pytest.approx(np.mean(by_hand))
    assert 0 < measured.low < measured.recall < measured.high <= 1
    assert measured.recall < 1
    assert (measured.index, measured.rows, measured.covered, measured.delta) == (
        "annoy",
        BLOCK + 200,
        BLOCK,
        200,
    )
    assert (measured.n, measured.queries, measured.settings["trees"]) == (5, 30, 25)
    assert 0 < measured.p50_ms <= measured.p95_ms
    assert measured.megabytes > 0
    assert measured.build_seconds > 0


@pytest.mark.long
def test_stored_rows_as_queries_leave_themselves_out_and_are_drawn_by_the_seed(neighbours):
    one, same, other = (report(neighbours, sample=40, seed=seed) for seed in (1, 1, 2))
    assert one.recall == same.recall
    assert (one.queries, other.queries) == (40, 40)
    assert one.recall < 1


@pytest.mark.long
def test_the_report_renders(neighbours):
    measured = report(neighbours, sample=10, verify=True)
    assert measured.frame.columns == ["way", "recall", "low", "high", "p50_ms", "p95_ms"]
    assert measured.frame["way"].to_list() == ["annoy", "exact"]
    assert "recall@10" in str(measured)
    assert "are undamaged" in str(measured)
    assert "<table" in html_of(measured)


def test_exact_search_says_so():
    vectors = Vectors(4)
    vectors.append(np.eye(4, dtype=np.int8) * 100)
    measured = report(Neighbours(None, vectors), n=10)
    assert (measured.index, measured.recall, measured.delta) == ("exact", 1.0, 4)
    assert str(measured).startswith("Exact search over 4 rows")


def test_equal_neighbours_count_as_one_another():
    vectors = Vectors(4)
    vectors.append(np.ones((300, 4), dtype=np.int8))
    assert report(Neighbours(None, vectors), n=3, sample=20).recall == 1.0


def test_the_interval_is_wilsons():
    # 8 of 10, as tabulated by Brown, Cai and DasGupta's formula
    assert wilson(0.8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(1.0, 50)[1] == 1.0


@pytest.mark.long
def test_nothing_to_measure_is_refused(neighbours):
    for wrong in (
        {"n": 0},
        {"sample": 0},
        {"queries": np.zeros((0, DIM), np.int8)},
        {"queries": np.zeros(DIM, np.int8)},
    ):
        with pytest.raises(InputError):
            report(neighbours, **wrong)
    with pytest.raises(InputError):
        report(Neighbours(None, Vectors(4)))
