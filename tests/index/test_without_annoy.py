"""Without Annoy, searches of any number of rows are exact, and a report names what to install."""

import sys

import numpy as np
import pytest

from memlab.kernel.index import BLOCK, KINDS, Neighbours, Vectors, build_base, list_bases, report

DIM = 32
INSTALL = "pip install 'memlab-core[annoy]'"


@pytest.fixture
def vectors():
    vectors = Vectors(DIM, exact_up_to=1_000)
    vectors.append(np.random.default_rng(0).integers(-127, 128, (BLOCK, DIM), dtype=np.int8))
    return vectors


def assert_exact(vectors, neighbours):
    neighbours.refresh()
    query = np.random.default_rng(1).integers(-127, 128, DIM, dtype=np.int8)
    expected = np.argsort(-vectors.similarity(query), kind="stable")[:10]
    assert vectors.top(query, 10)[0].tolist() == expected.tolist()
    measured = report(neighbours, sample=5)
    assert (measured.index, measured.recall) == ("exact", 1.0)
    assert INSTALL in str(measured)
    assert INSTALL in measured.failure


def test_a_scan_serves_and_the_report_names_what_to_install(tmp_path, vectors, monkeypatch):
    monkeypatch.setitem(sys.modules, "annoy", None)
    neighbours = Neighbours(tmp_path / "neighbours", vectors)
    assert_exact(vectors, neighbours)
    assert not neighbours.building
    assert not neighbours.rebuild()
    # it is tried again after a tenth more rows, not at every search
    neighbours.failure = None
    neighbours.refresh()
    assert neighbours.failure is None
    assert not (tmp_path / "neighbours").exists()


@pytest.mark.long
def test_an_index_of_another_installation_is_kept(tmp_path, vectors, monkeypatch):
    pytest.importorskip("annoy")
    build_base(vectors, tmp_path, KINDS["annoy"], seconds=lambda: 1.0)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "annoy", None)
        assert_exact(vectors, Neighbours(tmp_path, vectors))
    assert len(list_bases(tmp_path, "annoy")) == 1
    neighbours = Neighbours(tmp_path, vectors)
    neighbours.refresh()
    assert neighbours.base is not None
