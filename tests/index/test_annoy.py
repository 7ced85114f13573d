"""The approximate base: same bytes each time, exact scores, later rows found, damage noticed."""

import json

import numpy as np
import pytest

from memlab.errors import InputError
from memlab.index import Vectors, index_recall, open_or_build

ROWS, DIM = 2_000, 16


@pytest.fixture
def vectors():
    made = Vectors(DIM, annoy_above=1_000)
    made.append(np.random.default_rng(0).integers(-127, 128, (ROWS, DIM), dtype=np.int8))
    return made


@pytest.fixture
def path(tmp_path):
    return tmp_path / "neighbours.annoy"


def test_it_is_built_once_and_mapped_afterwards(vectors, path):
    first = open_or_build(vectors, path, trees=5, search_k=500)
    assert first.rebuilt
    assert first.reason == "neighbours.annoy or its header is missing"
    again = open_or_build(vectors, path, trees=5, search_k=500)
    assert (again.rebuilt, again.reason, len(again.base)) == (False, None, ROWS)


def test_two_builds_are_the_same_bytes(vectors, tmp_path):
    for name in ("one", "two"):
        open_or_build(vectors, tmp_path / name, trees=5)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_what_it_finds_is_scored_exactly_and_recall_rises_with_search_k(vectors, path):
    queries = vectors.take(np.arange(0, ROWS, 50))
    poor = open_or_build(vectors, path, trees=5, search_k=20).base
    good = open_or_build(vectors, path, trees=5, search_k=ROWS * 5).base
    assert index_recall(vectors, poor, queries) < 0.7
    assert index_recall(vectors, good, queries) > 0.99
    exact = vectors.top(queries[3], 10)
    vectors.attach(good)
    rows, cosines = vectors.top(queries[3], 10)
    assert (rows.tolist(), cosines.tolist()) == (exact[0].tolist(), exact[1].tolist())
    vectors.attach(poor)
    rows, cosines = vectors.top(queries[3], 10)
    assert cosines.tolist() == vectors.similarity(queries[3], rows).tolist()


def test_rows_after_the_base_are_all_found(vectors, path):
    vectors.attach(open_or_build(vectors, path, rows=1_500, trees=2, search_k=10).base)
    for row in range(1_500, ROWS, 25):
        assert vectors.top(vectors.take(np.array([row]))[0], 1)[0].tolist() == [row]
    fresh = np.full((1, DIM), 99, dtype=np.int8)
    vectors.append(fresh)
    assert vectors.top(fresh[0], 1)[0].tolist() == [ROWS]


def test_a_filter_or_few_rows_are_searched_exactly(vectors, path):
    base = open_or_build(vectors, path, trees=1, search_k=1).base
    query = vectors.take(np.array([7]))[0]
    exact = vectors.top(query, 50)[0].tolist()
    vectors.attach(base)
    assert vectors.top(query, 50)[0].tolist() != exact
    assert vectors.top(query, 50, rows=np.arange(ROWS))[0].tolist() == exact
    vectors.annoy_above = ROWS
    assert vectors.top(query, 50)[0].tolist() == exact


class TestDamage:
    def rebuilt_after(self, vectors, path, change):
        open_or_build(vectors, path, trees=3)
        change(path, path.with_name(f"{path.name}.json"))
        opened = open_or_build(vectors, path, trees=3)
        assert not open_or_build(vectors, path, trees=3).rebuilt
        return opened.reason

    def test_a_flipped_byte(self, vectors, path):
        def flip(file, _):
            held = bytearray(file.read_bytes())
            held[len(held) // 2] ^= 255
            file.write_bytes(held)

        assert self.rebuilt_after(vectors, path, flip) == "neighbours.annoy is damaged"

    def test_a_cut_file(self, vectors, path):
        def cut(file, _):
            file.write_bytes(file.read_bytes()[:100])

        assert self.rebuilt_after(vectors, path, cut) == "neighbours.annoy is damaged"

    def test_a_header_that_is_missing_or_nonsense(self, vectors, path):
        assert "missing" in self.rebuilt_after(vectors, path, lambda _, header: header.unlink())
        assert "cannot be read" in self.rebuilt_after(vectors, path, lambda _, header: header.write_text("{"))
        assert "cannot be read" in self.rebuilt_after(vectors, path, lambda _, header: header.write_text("[1]"))

    def test_other_vectors_and_other_settings(self, vectors, path):
        open_or_build(vectors, path, trees=3)
        other = Vectors(DIM)
        other.append(-vectors.take())
        assert open_or_build(other, path, trees=3).reason == "neighbours.annoy was built from other vectors"
        assert "other settings" in open_or_build(other, path, trees=4).reason
        assert json.loads(path.with_name("neighbours.annoy.json").read_text())["trees"] == 4


def test_a_base_of_other_vectors_is_not_attached(vectors, path):
    base = open_or_build(vectors, path, trees=1).base
    with pytest.raises(InputError, match="does not belong"):
        Vectors(DIM).attach(base)
    with pytest.raises(InputError):
        open_or_build(Vectors(DIM), path)
    with pytest.raises(InputError):
        open_or_build(vectors, path, trees=0)
    with pytest.raises(InputError):
        index_recall(vectors, base, np.zeros((0, DIM), dtype=np.int8))
