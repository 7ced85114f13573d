"""Sparse matrices and components compared with SciPy."""

import numpy as np
import pytest

from memlab.kernel.graph._shape import SimpleGraph
from memlab.kernel.graph._sparse import build_matrix, order_by_number
from memlab.subjects.clusters.topology import _count_components

sparse = pytest.importorskip("scipy.sparse")
csgraph = pytest.importorskip("scipy.sparse.csgraph")


def make_entries(seed, size, count):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, size, (2, count))
    # eighths: sums are exact in any order
    weight = rng.integers(1, 80, count) / 8
    return np.append(left, right), np.append(right, left), np.tile(weight, 2)


@pytest.mark.parametrize(("size", "count"), [(1, 0), (1, 3), (7, 5), (40, 300), (3_000, 2_000)])
@pytest.mark.parametrize("seed", range(4))
def test_a_matrix_is_that_of_scipy(seed, size, count):
    rows, columns, data = make_entries(seed, size, count)
    own = build_matrix(rows, columns, data, size)
    reference = sparse.csr_matrix((data, (rows, columns)), shape=(size, size))
    reference.sort_indices()
    assert own.starts.tolist() == reference.indptr.tolist()
    assert own.columns.tolist() == reference.indices.tolist()
    assert own.data.tolist() == reference.data.tolist()
    assert own.rows().tolist() == reference.tocoo().row.tolist()
    assert own.sums().tolist() == np.asarray(reference.sum(axis=1)).ravel().tolist()
    chosen = np.random.default_rng(seed).integers(0, size, 5)
    assert own.columns_of(chosen).tolist() == reference[chosen].indices.tolist()
    count, label = csgraph.connected_components(reference, directed=False)
    assert _count_components(SimpleGraph(np.arange(size), own)) == (count, np.bincount(label).max())


def test_components_of_a_path_in_any_order():
    order = np.random.default_rng(0).permutation(5_000)
    rows, columns = np.append(order[1:], order[:-1]), np.append(order[:-1], order[1:])
    graph = build_matrix(rows, columns, np.ones(len(rows)), 5_000)
    assert _count_components(SimpleGraph(np.arange(5_000), graph)) == (1, 5_000)


@pytest.mark.parametrize("top", [1, 2, 1_000, 1 << 31])
def test_equal_numbers_keep_their_order(top):
    numbers = np.random.default_rng(0).integers(0, top, 4_096)
    assert order_by_number(numbers).tolist() == np.argsort(numbers, kind="stable").tolist()
