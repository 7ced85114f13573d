"""Neighbours: equal to exact integer arithmetic in any batch, order, filter and storage."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from memlab.errors import DamagedLab, InputError
from memlab.kernel.index import Vectors

component = st.integers(-127, 127)


def matrices(dim, maximum=30, minimum=0):
    return hnp.arrays(
        np.int8, st.tuples(st.integers(minimum, maximum), st.just(dim)), elements=component
    )


def cosine(a, b):
    """Compute the cosine with Python's integers, which round only at the root."""
    dot = sum(int(x) * int(y) for x, y in zip(a, b, strict=True))
    squares = sum(int(x) ** 2 for x in a) * sum(int(y) ** 2 for y in b)
    return dot / math.sqrt(squares) if squares else 0.0


def ranked(query, matrix, rows, n):
    order = sorted((-cosine(query, matrix[row]), row) for row in rows)[:n]
    return [row for _, row in order], [-value for value, _ in order]


def stored(*blocks):
    vectors = Vectors(blocks[0].shape[1])
    for block in blocks:
        vectors.append(block)
    return vectors


def random_matrix(rows, dim, seed=0):
    return np.random.default_rng(seed).integers(-127, 128, (rows, dim), dtype=np.int8)


@pytest.mark.long
@settings(deadline=None)
@given(st.data(), st.sampled_from([1, 3, 8]))
def test_top_is_the_exact_ranking_with_ties_by_row(data, dim):
    matrix = data.draw(matrices(dim))
    query = data.draw(hnp.arrays(np.int8, dim, elements=component))
    n = data.draw(st.integers(0, len(matrix) + 2))
    vectors = stored(matrix)
    rows, cosines = vectors.top(query, n)
    assert (rows.tolist(), cosines.tolist()) == ranked(query, matrix, range(len(matrix)), n)
    some = np.array(
        sorted(data.draw(st.sets(st.sampled_from(range(len(matrix)))))) if len(matrix) else [],
        dtype=np.int64,
    )
    expected = ranked(query, matrix, some.tolist(), n)
    mask = np.isin(np.arange(len(matrix)), some)
    for key in (None, "filter", "filter"):
        for filters in ({"rows": some}, {"mask": mask}, {"rows": some, "mask": mask}):
            rows, cosines = vectors.top(query, n, key=key, **filters)
            assert (rows.tolist(), cosines.tolist()) == expected


class Lottery:
    """An index that proposes rows without looking at the query: whatever it says, scores must come out right."""

    def __init__(self, rows, dim, *, maximum=None, seed=0):
        self.rows, self.dim, self.most, self.asked = rows, dim, maximum, 0
        self.chance = np.random.default_rng(seed)

    def __len__(self):
        return self.rows

    def candidates(self, query, n, *, effort=1.0):
        self.asked += 1
        return self.chance.permutation(self.rows)[: n if self.most is None else min(n, self.most)]


@pytest.mark.long
@settings(deadline=None)
@given(st.data())
def test_with_an_index_every_row_found_is_eligible_and_scored_exactly_and_no_later_row_is_missed(
    data,
):
    matrix = data.draw(matrices(3, maximum=60, minimum=40))
    query = data.draw(hnp.arrays(np.int8, 3, elements=component))
    mask = data.draw(hnp.arrays(np.bool_, len(matrix)))
    sealed = data.draw(st.integers(20, len(matrix)))
    n = data.draw(st.integers(0, 6))
    vectors = Vectors(3, exact_up_to=4)
    vectors.append(matrix)
    vectors.attach(Lottery(sealed, 3, maximum=data.draw(st.sampled_from([None, 3]))))
    eligible = np.flatnonzero(mask)
    best_rows, best_cosines = ranked(query, matrix, eligible.tolist(), n)
    for filters in ({"rows": eligible}, {"mask": mask}, {"rows": eligible, "mask": mask}):
        rows, cosines = vectors.top(query, n, **filters)
        assert cosines.tolist() == [cosine(query, matrix[row]) for row in rows]
        assert list(zip(-cosines, rows, strict=True)) == sorted(
            set(zip(-cosines, rows, strict=True))
        )
        assert mask[rows].all()
        assert len(rows) == min(n, len(eligible))
        assert {row for row in best_rows if row >= sealed} <= set(rows.tolist())
        assert all(cosine <= true for cosine, true in zip(cosines, best_cosines, strict=True))


def test_an_index_that_proposes_too_few_is_asked_again_and_then_passed_over():
    matrix = random_matrix(5_000, 4)
    vectors = Vectors(4, exact_up_to=100)
    vectors.append(matrix)
    exact = vectors.top(matrix[9], 20)
    stingy, generous = Lottery(5_000, 4, maximum=5), Lottery(5_000, 4)
    vectors.attach(stingy)
    assert vectors.top(matrix[9], 20)[0].tolist() == exact[0].tolist()
    assert stingy.asked == 2
    vectors.attach(generous)
    assert vectors.top(matrix[9], 20)[0].tolist() != exact[0].tolist()
    assert generous.asked == 1


@pytest.mark.long
def test_few_eligible_rows_are_searched_exactly_whatever_is_attached():
    matrix = random_matrix(5_000, 4)
    vectors = Vectors(4, exact_up_to=100)
    vectors.append(matrix)
    vectors.attach(Lottery(5_000, 4))
    for rows in (np.arange(0, 5_000, 50), np.arange(0, 1_000)):  # within the limit; a fifth of all
        assert (
            vectors.top(matrix[50], 3, rows=rows)[0].tolist()
            == ranked(matrix[50], matrix, rows, 3)[0]
        )
    vectors.exact_up_to = 5_000
    assert vectors.top(matrix[50], 3)[0].tolist() == ranked(matrix[50], matrix, range(5_000), 3)[0]


def test_rows_after_the_index_are_those_after_the_index_of_now():
    matrix = random_matrix(500, 4)
    vectors = Vectors(4, exact_up_to=260)
    vectors.append(matrix[:250])
    vectors.top(matrix[0], 1)
    vectors.append(matrix[250:])
    for sealed in (300, 250, 400):
        vectors.attach(Lottery(sealed, 4, seed=sealed))
        for row in range(sealed, 500, 10):
            assert row in vectors.top(matrix[row], 3)[0]


def test_a_zero_query_finds_the_first_rows_with_an_index_too():
    vectors = Vectors(4, exact_up_to=10)
    vectors.append(random_matrix(500, 4))
    vectors.attach(Lottery(500, 4))
    rows, cosines = vectors.top(np.zeros(4, dtype=np.int8), 3, rows=np.arange(1, 500))
    assert (rows.tolist(), cosines.tolist()) == ([1, 2, 3], [0.0, 0.0, 0.0])


def test_an_index_of_other_vectors_is_not_attached():
    vectors = stored(random_matrix(10, 4))
    for wrong in (Lottery(11, 4), Lottery(5, 3)):
        with pytest.raises(InputError, match="does not fit"):
            vectors.attach(wrong)


def test_blocks_that_are_converted_one_by_one_are_one_search(monkeypatch):
    matrix = random_matrix(1_000, 8)
    path_of = Vectors(8, exact_up_to=10)
    path_of.append(matrix)
    whole = stored(matrix)
    monkeypatch.setattr("memlab.kernel.index._vectors._CONVERTED", 8 * 37)
    for query in (matrix[3], matrix[:5]):
        assert path_of.similarity(query).tolist() == whole.similarity(query).tolist()
        rows = np.arange(999, 0, -3)
        assert path_of.similarity(query, rows).tolist() == whole.similarity(query, rows).tolist()
    assert path_of.top(matrix[3], 5)[0].tolist() == whole.top(matrix[3], 5)[0].tolist()


class TestPrefixes:
    def test_a_digest_names_the_rows_and_nothing_else(self, tmp_path):
        matrix = random_matrix(3 * 4096 + 5, 4)
        one, other = stored(matrix), stored(matrix[:5_000], matrix[5_000:])
        assert one.digest(8192) == other.digest(8192) == stored(matrix[:8192]).digest(8192)
        assert len({one.digest(rows) for rows in (0, 4096, 8192, 12288)}) == 4
        changed = matrix.copy()
        changed[3, 1] += 1 if changed[3, 1] < 127 else -1
        assert stored(changed).digest(12288) != one.digest(12288)
        assert stored(matrix.reshape(-1, 2)).digest(8192) != one.digest(4096)
        one.save(tmp_path / "vectors")
        loaded = Vectors.load(tmp_path / "vectors")
        assert loaded.digest(12288) == loaded.digest(12288, rehash=True) == one.digest(12288)
        for rows in (1, -4096, 16384):
            with pytest.raises(InputError, match="whole blocks"):
                one.digest(rows)

    @pytest.mark.parametrize("mapped", [0, 4_096, 6_000])
    def test_a_prefix_never_changes(self, tmp_path, mapped):
        matrix = random_matrix(9_000, 4)
        stored(matrix[:mapped]).save(tmp_path / "vectors")
        vectors = Vectors.load(tmp_path / "vectors")
        vectors.append(matrix[mapped:])
        first = vectors.prefix(8_192)
        vectors.append(matrix[:100])
        assert len(first) == 8_192
        first.append(-matrix[:5_000])
        assert (first.take() == np.concatenate([matrix[:8_192], -matrix[:5_000]])).all()
        assert (vectors.take() == np.concatenate([matrix, matrix[:100]])).all()
        assert first.digest(12_288) != vectors.prefix(8_192).digest(8_192)
        assert vectors.digest(8_192) == vectors.digest(8_192, rehash=True)

    @pytest.mark.parametrize("late", [0, 10])
    def test_a_spooled_copy_holds_at_least_these_rows_and_outlives_the_file(self, tmp_path, late):
        matrix = random_matrix(5_000, 4)
        stored(matrix).save(tmp_path / "vectors")
        vectors = Vectors.load(tmp_path / "vectors")
        vectors.append(matrix[:late])
        vectors.prefix(4_096 if not late else 5_000 + late).spool(tmp_path / "spool")
        assert (tmp_path / "spool").samefile(tmp_path / "vectors") == (not late)
        (tmp_path / "vectors").unlink()
        assert Vectors.load(tmp_path / "spool").digest(4_096, rehash=True) == vectors.digest(4_096)
        vectors.prefix(4_096).spool(tmp_path / "again")  # the mapped file has no name any more
        assert Vectors.load(tmp_path / "again").digest(4_096, rehash=True) == vectors.digest(4_096)


@pytest.mark.long
@pytest.mark.parametrize("dim", [256, 1040, 1041, 3072])
def test_a_cosine_has_the_same_bits_however_it_is_computed(dim):
    # the worst case: every product is 127 * 127, and a sum in f32 beyond 1,040 of them would round
    matrix = np.concatenate(
        [
            random_matrix(50, dim),
            np.full((3, dim), 127, dtype=np.int8),
            -np.full((3, dim), 127, np.int8),
        ]
    )
    matrix[-1, 0] = 126
    vectors = stored(matrix)
    for query in (matrix[7], matrix[50], matrix[-1]):
        exact = [cosine(query, row) for row in matrix]
        assert vectors.similarity(query).tolist() == exact
        assert vectors.similarity(query, np.arange(len(matrix))[::-1]).tolist() == exact[::-1]
        assert [
            vectors.similarity(query, np.array([row]))[0] for row in range(len(matrix))
        ] == exact
        assert vectors.similarity(np.stack([matrix[0], query]))[1].tolist() == exact
        assert vectors.view("all but one", np.arange(1, len(matrix))).matrix.shape == (
            len(matrix) - 1,
            dim,
        )


def test_a_cosine_is_one_for_equal_vectors_and_never_beyond():
    matrix = random_matrix(500, 96)
    vectors = stored(matrix)
    for row in range(0, 500, 50):
        similarities = vectors.similarity(matrix[row])
        assert similarities[row] == 1.0
        assert np.abs(similarities).max() <= 1.0
        assert vectors.similarity(-matrix[row])[row] == -1.0
    assert Fraction(float(vectors.similarity(matrix[0], np.array([0]))[0])) == 1


def test_with_a_zero_vector_the_cosine_is_zero():
    matrix = random_matrix(5, 8)
    matrix[2] = 0
    vectors = stored(matrix)
    assert vectors.similarity(matrix[0])[2] == 0.0
    assert vectors.similarity(np.zeros(8, dtype=np.int8)).tolist() == [0.0] * 5
    assert vectors.top(np.zeros(8, dtype=np.int8), 3)[0].tolist() == [0, 1, 2]


@pytest.mark.long
@settings(deadline=None)
@given(
    st.lists(matrices(4, maximum=9), max_size=6),
    hnp.arrays(np.int8, 4, elements=component),
    st.integers(0, 6),
)
def test_base_and_delta_equal_all_at_once(tmp_path_factory, blocks, query, cut):
    path = tmp_path_factory.mktemp("vectors") / "vectors"
    whole = stored(np.concatenate([np.zeros((0, 4), np.int8), *blocks]))
    early = stored(np.zeros((0, 4), np.int8), *blocks[:cut])
    early.save(path)
    grown = Vectors.load(path)
    for block in blocks[cut:]:
        grown.append(block)
    assert len(grown) == len(whole)
    assert (grown.take() == whole.take()).all()
    rows = np.arange(len(whole))[::-2]
    assert grown.similarity(query).tolist() == whole.similarity(query).tolist()
    assert grown.similarity(query, rows).tolist() == whole.similarity(query, rows).tolist()
    assert grown.top(query, 5)[0].tolist() == whole.top(query, 5)[0].tolist()


class TestViews:
    def test_a_view_is_kept_extended_and_replaced(self):
        vectors = stored(random_matrix(40, 8))
        first = vectors.view("project", np.arange(0, 20, 2))
        assert vectors.view("project", np.arange(0, 20, 2)).matrix.base is first.matrix.base
        vectors.append(random_matrix(10, 8, seed=1))
        longer = vectors.view("project", np.append(np.arange(0, 20, 2), [44, 49]))
        assert (longer.matrix.astype(np.int8) == vectors.take(longer.rows)).all()
        other = vectors.view("project", np.arange(5))
        assert other.rows.tolist() == [0, 1, 2, 3, 4]
        assert (other.matrix.astype(np.int8) == vectors.take(np.arange(5))).all()
        # what was handed out before did not change
        assert (first.matrix.astype(np.int8) == vectors.take(np.arange(0, 20, 2))).all()

    def test_returned_arrays_are_read_only(self):
        vectors = stored(random_matrix(10, 8))
        view = vectors.view("v", np.arange(5))
        with pytest.raises(ValueError, match="read-only"):
            view.matrix[0, 0] = 1
        assert vectors.take().flags.writeable

    def test_the_callers_rows_may_change_afterwards(self):
        vectors = stored(random_matrix(10, 8))
        rows = np.arange(5)
        vectors.view("v", rows)
        rows[:] = [1, 2, 3, 4, 5]
        assert (vectors.view("v", rows).matrix.astype(np.int8) == vectors.take(rows)).all()

    def test_kept_views_are_bounded_by_the_vectors_themselves(self):
        vectors = stored(random_matrix(10_000, 4))
        for key in range(10):
            vectors.view(key, np.arange(key, 10_000, 4))
        kept = vectors._views
        assert sum(len(view.rows) for view in kept.values()) <= 10_000
        assert list(kept) == [6, 7, 8, 9]


class TestOnDisk:
    def test_a_saved_file_is_mapped_and_may_be_replaced_while_it_is(self, tmp_path):
        matrix = random_matrix(100, 16)
        path = tmp_path / "vectors"
        stored(matrix).save(path)
        loaded = Vectors.load(path)
        loaded.append(matrix[:3])
        loaded.save(path)
        assert (loaded.take() == np.concatenate([matrix, matrix[:3]])).all()
        assert (Vectors.load(path).take() == loaded.take()).all()
        assert [item.name for item in tmp_path.iterdir()] == ["vectors"]

    def test_an_index_without_vectors(self, tmp_path):
        Vectors(7).save(tmp_path / "vectors")
        loaded = Vectors.load(tmp_path / "vectors")
        assert (len(loaded), loaded.dim) == (0, 7)
        assert loaded.top(np.ones(7, dtype=np.int8), 3)[0].tolist() == []

    @pytest.mark.parametrize("keep", [0, 5, 100, 700, -1])
    def test_a_truncated_file_is_refused(self, tmp_path, keep):
        path = tmp_path / "vectors"
        stored(random_matrix(20, 16)).save(path)
        path.write_bytes(path.read_bytes()[:keep])
        with pytest.raises(DamagedLab, match="vectors"):
            Vectors.load(path)

    def test_a_file_takes_a_byte_a_component_and_is_not_read_on_opening(
        self, tmp_path, monkeypatch
    ):
        # smaller files are read, so that a lab keeps no descriptor of them
        monkeypatch.setattr("memlab.kernel.index._vectors.MAPPED_BYTES", 0)
        path = tmp_path / "vectors"
        stored(random_matrix(5_000, 64)).save(path)
        assert path.stat().st_size < 5_000 * (64 + 8) + 1_000
        loaded = Vectors.load(path)
        mapped = loaded._stored.parts[0]
        assert isinstance(mapped.matrix.base, np.memmap)
        assert isinstance(mapped.squares.base, np.memmap)

    def test_bytes_after_the_last_array_are_refused(self, tmp_path):
        path = tmp_path / "vectors"
        stored(random_matrix(20, 16)).save(path)
        path.write_bytes(path.read_bytes() + b"x")
        with pytest.raises(DamagedLab, match="vectors"):
            Vectors.load(path)

    def test_a_missing_or_other_file_is_refused(self, tmp_path):
        with pytest.raises(DamagedLab):
            Vectors.load(tmp_path / "nothing")
        np.save(tmp_path / "other.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
        with pytest.raises(DamagedLab):
            Vectors.load(tmp_path / "other.npy")


class TestRefusals:
    @pytest.mark.parametrize(
        "block",
        [
            np.zeros((2, 4)),
            np.zeros((2, 5), np.int8),
            np.zeros(4, np.int8),
            np.full((1, 4), -128, np.int8),
        ],
    )
    def test_only_int8_rows_of_the_dimension_are_appended(self, block):
        vectors = Vectors(4)
        with pytest.raises(InputError):
            vectors.append(block)
        assert len(vectors) == 0

    def test_rows_and_queries_are_checked(self):
        vectors = stored(random_matrix(5, 4))
        query = np.ones(4, dtype=np.int8)
        for rows in (np.array([5]), np.array([-1]), np.array([0.5]), np.array([[0]])):
            with pytest.raises(InputError):
                vectors.similarity(query, rows)
        for key in (None, "key"):
            with pytest.raises(InputError, match="ascending"):
                vectors.top(query, 2, rows=np.array([3, 1]), key=key)
        for mask in (np.ones(4, dtype=np.bool_), np.ones(5), np.ones((5, 1), dtype=np.bool_)):
            with pytest.raises(InputError, match="mask"):
                vectors.top(query, 2, mask=mask)
        with pytest.raises(InputError, match="admits 5 rows, but 2"):
            vectors.top(query, 2, rows=np.arange(2), mask=np.ones(5, dtype=np.bool_))
        with pytest.raises(InputError, match="int8 vector"):
            vectors.top(np.full(4, np.nan), 2)
        with pytest.raises(InputError, match="int8 vector"):
            vectors.top(np.ones(4), 2)
        with pytest.raises(InputError, match="one query"):
            vectors.top(np.ones((2, 4), dtype=np.int8), 2)
        with pytest.raises(InputError):
            vectors.top(query, -1)
        with pytest.raises(InputError):
            Vectors(0)
