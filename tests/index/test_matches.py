"""The best rows and the scores of any rows: to the bit what scoring every row gives, whatever was left unread."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import InputError
from memlab.kernel.index import Matches, Words, best, bm25, group_lengths, group_scores
from memlab.kernel.index._matches import coverage, group_bm25

VOCABULARY = [f"w{number}" for number in range(12)]
corpora = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=10), min_size=1, max_size=40)
questions = st.lists(st.sampled_from([*VOCABULARY, "unheard"]), max_size=6)
k1s, bs = st.floats(0, 3), st.floats(0, 1)


def indexed(corpus):
    """Index some rows in segments and leave the rest unsorted, as after a while of use."""
    words = Words(None)
    words.append([" ".join(document) for document in corpus[: len(corpus) // 2]])
    words.seal()
    words.append([" ".join(document) for document in corpus[len(corpus) // 2 :]])
    return words


def spread_out(rows, values, size):
    whole = np.zeros(size)
    whole[rows] = values
    return whole


@pytest.fixture(params=["all are scored", "some are left out"])
def way(request, monkeypatch):
    """Lower the size thresholds, which no small corpus reaches."""
    if request.param == "some are left out":
        monkeypatch.setattr("memlab.kernel.index._matches._FEW", -1)
        monkeypatch.setattr("memlab.kernel.index._matches._BOUND_FROM", 1)


def check(words, question, mask, k1, b, n):
    count, mean = (
        (len(words), words.lengths) if mask is None else (int(mask.sum()), words.lengths[mask])
    )
    mean = float(mean.mean()) if count else 0.0
    hits = words.hits(words.query(question), mask)
    arguments = {"count": count, "mean_length": mean, "k1": k1, "b": b}
    rows, scores = bm25(hits, words.lengths, **arguments)
    matches = Matches(hits, words.lengths, **arguments)
    assert matches.best(n).tolist() == rows[best(scores, n)].tolist()
    every = np.arange(len(words))
    assert matches.scores(every).tolist() == spread_out(rows, scores, len(words)).tolist()
    assert (
        matches.coverage(every[::-1]).tolist()
        == spread_out(*coverage(hits, count=count), len(words))[::-1].tolist()
    )
    holding = [set(rows.tolist()) for rows, _ in hits.parts]
    pairs = [(index, index - 1) for index in range(1, hits.size)]
    both = set().union(*(holding[one] & holding[two] for one, two in pairs))
    assert np.flatnonzero(matches.with_pair(every, pairs)).tolist() == sorted(both)


@pytest.mark.long
@pytest.mark.usefixtures("way")
class TestEveryWay:
    def test_equal_to_scoring_every_row(self):
        @settings(deadline=None)
        @given(corpora, questions, k1s, bs, st.integers(0, 12), st.randoms())
        def holds(corpus, question, k1, b, n, dice):
            words = indexed(corpus)
            check(words, " ".join(question), None, k1, b, n)
            check(
                words, " ".join(question), np.array([dice.random() < 0.5 for _ in corpus]), k1, b, n
            )

        holds()

    def test_equal_over_thousands_of_rows_and_words_of_all_frequencies(self):
        random = np.random.default_rng(3)
        drawn = np.minimum(random.zipf(1.3, (4_000, 9)), 500)
        words = indexed(
            [[f"w{word}" for word in row[: 1 + number % 9]] for number, row in enumerate(drawn)]
        )
        for _ in range(40):
            question = " ".join(f"w{word}" for word in np.unique(random.integers(1, 60, 5)))
            check(words, question, None, 0.9, 0.4, int(random.integers(1, 200)))
            check(words, question, random.random(4_000) < 0.3, 0.9, 0.4, 20)


@pytest.mark.long
@pytest.mark.parametrize("cells", [0, 65_536])
@pytest.mark.parametrize("at_once", [0, 8192])
def test_groups_that_are_asked_for_have_the_scores_of_all(cells, at_once, monkeypatch):
    monkeypatch.setattr("memlab.kernel.index._matches._CELLS", cells)
    monkeypatch.setattr("memlab.kernel.index._matches._AT_ONCE", at_once)

    @settings(deadline=None)
    @given(corpora, questions, k1s, bs, st.booleans(), st.randoms())
    def holds(corpus, question, k1, b, one_after_the_other, dice):
        words = indexed(corpus)
        groups = np.array([dice.randrange(-1, 5) for _ in corpus], dtype=np.int32)
        groups = np.sort(groups) if one_after_the_other else groups
        documents = group_lengths(groups, words.lengths)
        hits = words.hits(words.query(" ".join(question)))
        wanted = np.array([3, -1, 0, 1, 2, 4, 3, 7])
        expected = dict(
            zip(
                *(part.tolist() for part in group_bm25(hits, groups, documents, k1=k1, b=b)),
                strict=True,
            )
        )
        result = group_scores(hits, groups, documents, wanted, k1=k1, b=b)
        assert result.tolist() == [expected.get(code, 0.0) for code in wanted.tolist()]

    holds()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 6), st.integers(0, 5)), max_size=20), st.integers(0, 20))
def test_lengths_of_groups_grow_with_their_rows(rows, cut):
    groups, lengths = (np.array([row[part] for row in rows], dtype=np.int32) for part in (0, 1))
    grown = group_lengths(groups[:cut], lengths[:cut]).with_rows(groups[cut:], lengths[cut:])
    whole = group_lengths(groups, lengths)
    assert (grown.count, grown.mean) == (whole.count, whole.mean)
    assert grown.total.tolist() == whole.total.tolist()
    assert grown.rows.tolist() == whole.rows.tolist()


def test_impossible_statistics_are_refused():
    words = indexed([["w1"]])
    hits = words.hits(words.query("w1"))
    with pytest.raises(InputError, match="k1"):
        Matches(hits, words.lengths, count=1, mean_length=1.0, k1=-1, b=0.4)
    with pytest.raises(InputError, match="count=0 is below"):
        Matches(hits, words.lengths, count=0, mean_length=1.0, k1=1, b=0.4).best(1)
