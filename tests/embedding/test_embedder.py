"""Embedders: whatever computes the vectors, they come out as integers, and what is wrong is named."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from memlab.errors import InputError
from memlab.kernel.embedding import Embedder, load_embedder


def counts(texts):
    return [[text.count(letter) for letter in "aeiou"] for text in texts]


def of_matrix(matrix):
    """Return an embedder that gives the rows of a matrix, after three ones for the first texts."""
    return lambda texts: (
        matrix[: len(texts)]
        if len(texts) <= len(matrix)
        else np.ones((len(texts), matrix.shape[1]))
    )


@pytest.mark.long
@settings(deadline=None)
@given(hnp.arrays(np.float64, (3, 4), elements=st.floats(-1e300, 1e300)))
def test_the_largest_component_is_127_and_zero_stays_zero(matrix):
    vectors = load_embedder(of_matrix(matrix)).encode(["a", "b", "c"])
    assert vectors.dtype == np.int8
    for given_row, row in zip(matrix, vectors.astype(int), strict=True):
        largest = np.abs(given_row).max()
        assert np.abs(row).max() == (127 if largest > 0 else 0)
        if largest > 0:
            assert np.abs(row / 127 - given_row / largest).max() <= 0.5001 / 127


def test_scale_does_not_matter():
    matrix = np.array([[1.0, -2.0, 3.0, 0.5]])
    for factor in (1e-320, 1e-30, 1.0, 1e300):
        assert (
            load_embedder(of_matrix(matrix * factor)).encode(["x"]).tolist() == [[42, -85, 127, 21]]
            or factor < 1e-300
        )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
def test_any_type_of_number_will_do(dtype):
    embedder = load_embedder(lambda texts: np.array(counts(texts), dtype=dtype))
    assert embedder.dim == 5
    assert embedder.encode(["aab", "ou"]).tolist() == [[127, 0, 0, 0, 0], [0, 0, 0, 127, 127]]
    assert embedder.encode([]).shape == (0, 5)


class TestFingerprints:
    def test_the_fingerprint_of_a_callable_covers_name_dimension_and_results(self):
        same = load_embedder(counts)
        assert same.name == "counts"
        assert same.fingerprint == load_embedder(counts).fingerprint
        others = [
            load_embedder(counts, name="letters"),
            load_embedder(lambda texts: [[*row, 0] for row in counts(texts)], name="counts"),
            load_embedder(lambda texts: [row[::-1] for row in counts(texts)], name="counts"),
            load_embedder(lambda texts: -np.array(counts(texts)), name="counts"),
        ]
        assert len({same.fingerprint, *(other.fingerprint for other in others)}) == 5

    def test_rounding_noise_is_the_same_embedder(self):
        random = np.random.default_rng(0)
        weights = random.normal(size=(5, 64))

        def noisy(texts):
            exact = np.array(counts(texts)) @ weights
            return exact * (1 + 1e-7 * random.normal(size=exact.shape))

        assert len({load_embedder(noisy, name="remote").fingerprint for _ in range(20)}) == 1

    def test_an_object_is_named_by_its_class(self):
        class Letters:
            def __call__(self, texts):
                return counts(texts)

        assert load_embedder(Letters()).name.endswith("Letters")

    def test_an_embedder_is_itself(self):
        embedder = load_embedder(counts)
        assert load_embedder(embedder) is embedder
        assert isinstance(embedder, Embedder)
        with pytest.raises(AttributeError):
            embedder.name = "other"


class TestRefusals:
    """``broken`` gives three good vectors to its probes, and then something else."""

    @pytest.fixture
    def broken(self):
        def make(answer):
            asked = []

            def embed(texts):
                asked.append(texts)
                return answer(texts) if len(asked) > 1 else counts(texts)

            return load_embedder(embed, name="broken")

        return make

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (
                lambda texts: [[np.nan] * 5 if "bad" in text else [1] * 5 for text in texts],
                "nan in component 0 .* text 1",
            ),
            (
                lambda texts: [
                    [1, 1, np.inf, 1, 1] if "bad" in text else [1] * 5 for text in texts
                ],
                "inf in component 2",
            ),
            (
                lambda texts: [[1] * 4 if "bad" in text else [1] * 5 for text in texts],
                r"an array \(4,\) for text 1",
            ),
            (
                lambda texts: [["x"] if "bad" in text else [1] * 5 for text in texts],
                "no vector of numbers for text 1",
            ),
            (lambda texts: [None if "bad" in text else [1] * 5 for text in texts], "text 1"),
            (lambda texts: [[1] * 6 for _ in texts], "6 dimensions .* but 5 before"),
            (lambda texts: [[1] * 5], r"an array \(1, 5\) for 2 texts"),
            (lambda texts: [1, 2], r"an array \(2,\) for 2 texts"),
            (lambda texts: None, "broken returned"),
            (lambda texts: np.zeros((len(texts), 0)), "broken returned"),
        ],
    )
    def test_a_bad_vector_is_named_with_its_text(self, broken, answer, message):
        with pytest.raises(InputError, match=message):
            broken(answer).encode(["a good text", "a bad text"])

    def test_at_the_first_look_too(self):
        with pytest.raises(InputError, match="returned"):
            load_embedder(lambda texts: np.full((len(texts), 3), np.nan))
        with pytest.raises(InputError, match="returned"):
            load_embedder(lambda texts: 7)

    @pytest.mark.long
    def test_errors_of_the_callable_itself_are_told_with_their_cause(self):
        def offline(texts):
            raise ConnectionError("no route")

        with pytest.raises(InputError, match="raised ConnectionError: no route"):
            load_embedder(offline)

    def test_texts_are_checked(self):
        embedder = load_embedder(counts)
        with pytest.raises(InputError, match="is a list of which each is a text"):
            embedder.encode("tabs")
        with pytest.raises(InputError, match=r"texts\[1\] is a text, not None"):
            embedder.encode(["tabs", None])
        with pytest.raises(InputError, match=r"texts\[0\] .* lone surrogate at character 3"):
            embedder.encode(["abc\ud800"])

    @pytest.mark.parametrize("spec", [7, 3.5, ["a"], object()])
    def test_values_that_are_no_embedder(self, spec):
        with pytest.raises(InputError, match="An embedder must be"):
            load_embedder(spec)
