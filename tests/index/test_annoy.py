"""Kinds of index: the same bytes each time, more effort finds more, and nothing that an index says is a score."""

import math

import numpy as np
import pytest

from memlab.errors import InputError, UnknownName
from memlab.kernel.index import KINDS, Base, Neighbours, Vectors, build_base, list_bases
from memlab.kernel.index._base import Projection, search_k

pytest.importorskip("annoy")

ROWS, DIM = 8_192, 64


def clustered(rows, dim=DIM, seed=0):
    """Return vectors with a decaying spectrum, as those of texts have."""
    rng = np.random.default_rng(seed)
    spread = np.exp(-np.arange(dim) / 6)
    made = rng.normal(size=(rows, dim)) * spread @ np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    return np.rint(made * (127 / np.abs(made).max(axis=1, keepdims=True))).astype(np.int8)


@pytest.fixture(scope="module")
def vectors():
    result = Vectors(DIM, exact_up_to=1_000)
    result.append(clustered(ROWS))
    return result


@pytest.fixture(scope="module")
def built(vectors, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bases")
    build_base(vectors, folder, KINDS["annoy"], seconds=lambda: 1.0)
    return folder, "annoy"


def opened(built, **more):
    folder, kind = built
    [(path, header)] = list_bases(folder, kind)
    return Base(path, header, **more)


def recall(vectors, base, queries, n=10):
    result = 0
    for query in queries:
        near = base.candidates(query, n)
        cosines = vectors.similarity(query)
        result += np.isin(np.argsort(-cosines, kind="stable")[:n], near).sum()
    return result / len(queries) / n


@pytest.mark.long
def test_two_builds_are_the_same_bytes(built, vectors, tmp_path):
    folder, kind = built
    again = build_base(vectors, tmp_path, KINDS[kind], seconds=lambda: 2.0)
    assert again.read_bytes() == (folder / again.name).read_bytes()


@pytest.mark.long
def test_more_effort_finds_more(built, vectors):
    queries = vectors.take(np.arange(0, ROWS, 200))
    shares = [
        recall(vectors, opened(built, effort=effort), queries) for effort in (0.05, 1.0, 20.0)
    ]
    assert shares == sorted(shares)
    assert shares[-1] > 0.98


@pytest.mark.long
def test_candidates_are_different_rows_and_enough(built):
    base = opened(built)
    query = clustered(1, seed=7)[0]
    for n in (1, 50, ROWS):
        near = base.candidates(query, n)
        assert len(np.unique(near)) == len(near) >= min(n, 1_000)
    assert (len(base), base.dim) == (ROWS, DIM)


@pytest.mark.long
def test_a_search_is_scored_exactly_whatever_the_index_says(built, vectors):
    vectors.attach(opened(built))
    for query in clustered(20, seed=3):
        rows, cosines = vectors.top(query, 10)
        assert cosines.tolist() == vectors.similarity(query, rows).tolist()
        assert sorted(zip(-cosines, rows, strict=True)) == list(zip(-cosines, rows, strict=True))
    vectors.attach(None)


def test_the_removed_graph_index_names_its_replacement(vectors):
    with pytest.raises(InputError, match=r'removed.*index="annoy"'):
        Neighbours(None, vectors, kind="graph")


def test_bases_of_former_kinds_are_forgotten_too(vectors, tmp_path):
    (tmp_path / "graph-000000000010-abc.index").write_bytes(b"vectors")
    Neighbours(tmp_path, vectors, background=False).forget()
    assert not list(tmp_path.iterdir())


def test_an_unknown_kind_names_the_nearest(vectors):
    with pytest.raises(UnknownName, match="Did you mean annoy"):
        Neighbours(None, vectors, kind="anoy")


def test_search_k_grows_with_the_rows():
    grown = [search_k(rows) for rows in (1, 1_000, 10_000, 100_000, 300_000, 1_000_000, 3_000_000)]
    assert grown == sorted(grown)
    assert grown[0] >= 1
    assert (search_k(100_000), search_k(1_000_000)) == (40_000, 90_000)


class TestProjection:
    def test_the_projection_keeps_the_directions_of_greatest_variance(self, vectors):
        projection = Projection.of(vectors)
        assert projection.kept == 32
        whole = vectors.take().astype(np.float64)
        kept = projection(vectors.take()).astype(np.float64)
        assert (kept**2).sum() / (whole**2).sum() > 0.97

    def test_the_index_survives_writing_and_reading(self, vectors):
        projection = Projection.of(vectors)
        again = Projection.from_text(DIM, projection.to_text())
        assert (again(vectors.take()) == projection(vectors.take())).all()

    def test_vectors_that_spread_evenly_are_left_as_they_are(self):
        even = Vectors(48)
        even.append(np.random.default_rng(0).integers(-127, 128, (4_096, 48), dtype=np.int8))
        projection = Projection.of(even)
        assert (projection.kept, projection.to_text()) == (48, None)
        assert (projection(even.take()) == even.take()).all()

    @pytest.mark.parametrize("rows", [1, 5, 4_096])
    def test_zero_vectors_are_no_trouble(self, rows):
        empty = Vectors(40)
        empty.append(np.zeros((rows, 40), dtype=np.int8))
        assert np.isfinite(Projection.of(empty)(empty.take())).all()
        assert math.isclose(float(Projection.of(empty)(empty.take()).sum()), 0.0)
