"""Ways of search: exact products of integers, settings of Annoy, and the comparison in the report."""

import numpy as np
import pytest

import memlab
from memlab.errors import InputError
from memlab.kernel.index import Vectors, _vectors
from memlab.subjects.index import ways

DIM = 256


def products(first, second, metric):
    """Stand in for numkong's function: pairwise products of int8 matrices."""
    assert metric == "dot"
    assert first.dtype == second.dtype == np.int8
    return first.astype(np.int64) @ second.astype(np.int64).T


def filled(rows, dim=DIM):
    vectors = Vectors(dim)
    components = np.random.default_rng(3).integers(-127, 128, (rows, dim)).astype(np.int8)
    components[5] = 0
    vectors.append(components)
    return vectors


@pytest.fixture(params=["numkong", "stand-in"])
def scanned(request, monkeypatch):
    if request.param == "numkong":
        pytest.importorskip("numkong")
    else:
        monkeypatch.setattr(_vectors, "scanner", lambda: products)


class TestScan:
    @pytest.mark.long
    def test_it_gives_the_bits_of_numpy(self, monkeypatch, scanned):
        vectors = filled(9_000)
        query = vectors.take(np.array([17]))[0]
        plain = vectors.similarity(query)
        scan = _vectors.scanner()
        scores = vectors._scan(scan, *vectors._check_query(query))
        assert (scores == plain).all()
        assert scores[5] == 0.0

    def test_no_index_is_asked_below_its_limit_and_filters_hold(self, monkeypatch, scanned):
        monkeypatch.setattr(_vectors, "EXACT_UP_TO", 1_000)
        vectors = filled(9_000)
        vectors.exact_up_to = 1_000
        assert vectors.searched_up_to == _vectors.SCANNED_UP_TO
        query = vectors.take(np.array([17]))[0]

        class Refuses:
            dim = DIM

            def __len__(self):
                return 8_192

            def candidates(self, *args, **options):
                raise AssertionError("searched")

        vectors.attach(Refuses())
        rows, cosines = vectors.top(query, 10)
        wanted, exact = vectors.top(query, 10, exact=True)
        assert (rows == wanted).all()
        assert (cosines == exact).all()
        mask = np.random.default_rng(1).random(9_000) < 0.5
        rows, _ = vectors.top(query, 10, mask=mask)
        scores = np.where(mask, vectors.similarity(query), -2.0)
        assert (rows == np.argsort(-scores, kind="stable")[:10]).all()

    def test_without_the_package_nothing_changes(self, monkeypatch):
        monkeypatch.setattr(_vectors, "scanner", lambda: None)
        vectors = filled(100)
        assert vectors.searched_up_to == vectors.exact_up_to == _vectors.EXACT_UP_TO


@pytest.fixture
def lab():
    pytest.importorskip("annoy")
    table = np.random.default_rng(0).standard_normal((5_000, 32))

    def embed(texts):
        return [table[int(text.split()[-1]) % 5_000] for text in texts]

    with memlab.open(
        embedder=lambda texts: embed(
            [f"{text} 0" if not text[-1].isdigit() else text for text in texts]
        )
    ) as lab:
        lab.remember([f"number {row}" for row in range(4_200)], linking="off")
        yield lab


class TestReport:
    @pytest.mark.long
    def test_installed_ways_are_compared_on_the_queries(self, lab):
        report = lab.upkeep.index.report(
            [f"where is {row}" for row in range(20)], compare=True, progress=False
        )
        frame = report.frame
        assert {"exact", "annoy"} <= set(frame["way"])
        recall = dict(frame.select("way", "recall").iter_rows())
        assert recall["exact"] == 1.0
        assert min(recall.values()) > 0.5
        assert dict(frame.select("way", "recall").iter_rows())[report.recommended] >= 0.95
        assert f"Recommended: {report.recommended}." in str(report)
        assert lab.upkeep.index.report(progress=False).recommended is None

    @pytest.mark.long
    def test_a_missing_package_is_left_out(self, lab, monkeypatch):
        monkeypatch.setattr(ways, "scanner", lambda: None)
        monkeypatch.setitem(__import__("sys").modules, "usearch.index", None)
        monkeypatch.setitem(__import__("sys").modules, "faiss", None)
        report = lab.upkeep.index.report(sample=5, compare=True, progress=False)
        assert set(report.frame["way"]) == {"exact", "annoy"}

    def test_few_memories_are_refused_in_a_sentence(self):
        with memlab.open() as lab:
            lab.remember("Ana prefers tabs")
            with pytest.raises(InputError, match="needs at least 4,096 memories"):
                lab.upkeep.index.report(compare=True)


@pytest.mark.long
class TestSettings:
    def test_trees_and_search_k_are_those_of_the_index_and_of_later_ones(self, lab):
        index = lab.upkeep.index
        assert index.rebuild()
        assert lab.io.store.neighbours.base.settings["trees"] == 25
        assert index.rebuild(trees=7, search_k=900)
        settings = lab.io.store.neighbours.base.settings
        assert (settings["trees"], settings["search_k"]) == (7, 900)
        assert index.rebuild(search_k=1_200)
        settings = lab.io.store.neighbours.base.settings
        assert (settings["trees"], settings["search_k"]) == (7, 1_200)
        lab.io.store.neighbours.chosen = None  # as in another process
        assert dict(lab.io.store.neighbours._chosen()) == {"trees": 7, "search_k": 1_200}
