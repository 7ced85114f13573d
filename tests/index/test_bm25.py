"""Scores of words: equal to bm25s, to the formula written out, and to an index of nothing but the eligible rows."""

import math
from collections import Counter

import bm25s
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from properties import examples

from memlab.errors import InputError
from memlab.kernel.index import Words, bm25
from memlab.kernel.index._matches import coverage, group_bm25

VOCABULARY = [f"w{number}" for number in range(12)]
corpora = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=10), min_size=1, max_size=15)
questions = st.lists(st.sampled_from([*VOCABULARY, "unheard"]), max_size=6)
k1s, bs = st.floats(0, 3), st.floats(0, 1)


def indexed(corpus):
    words = Words(None)
    words.append([" ".join(document) for document in corpus])
    return words


def idf(df, count):
    return math.log(1 + (count - df + 0.5) / (df + 0.5))


def plain_bm25(corpus, question, k1, b):
    """Compute BM25 by its formula: {document: score} of the documents with a hit."""
    mean = sum(map(len, corpus)) / len(corpus)
    scores = {}
    for number, document in enumerate(corpus):
        counts = Counter(document)
        for word in dict.fromkeys(question):
            if tf := counts[word]:
                weight = idf(sum(word in other for other in corpus), len(corpus))
                norm = k1 * (1 - b + b * len(document) / mean)
                scores[number] = scores.get(number, 0.0) + weight * tf / (tf + norm)
    return scores


def plain_coverage(corpus, question):
    weights = {
        word: idf(sum(word in document for document in corpus), len(corpus)) for word in question
    }
    result = {
        number: sum(weight for word, weight in weights.items() if word in document)
        / sum(weights.values())
        for number, document in enumerate(corpus)
        if weights
    }
    return {number: share for number, share in result.items() if share}


def close(scores, expected):
    keys, values = scores
    assert keys.tolist() == sorted(expected)
    assert values.tolist() == pytest.approx([expected[key] for key in sorted(expected)], rel=1e-12)


@pytest.mark.long
@settings(deadline=None)
@given(corpora, questions, k1s, bs)
def test_equal_to_the_formula(corpus, question, k1, b):
    words = indexed(corpus)
    hits = words.hits(words.query(" ".join(question)))
    mean = float(words.lengths.mean())
    close(
        bm25(hits, words.lengths, count=len(words), mean_length=mean, k1=k1, b=b),
        plain_bm25(corpus, question, k1, b),
    )
    close(coverage(hits, count=len(words)), plain_coverage(corpus, question))


@pytest.mark.long
@examples(30)
@given(corpora.filter(lambda corpus: all(corpus)), questions, st.floats(0.1, 3), bs)
def test_equal_to_bm25s(corpus, question, k1, b):
    words = indexed(corpus)
    items = list(
        dict.fromkeys(word for word in question if any(word in document for document in corpus))
    )
    assume(items)
    oracle = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    oracle.index(corpus, show_progress=False)
    rows, scores = bm25(
        words.hits(words.query(" ".join(question))),
        words.lengths,
        count=len(words),
        mean_length=float(words.lengths.mean()),
        k1=k1,
        b=b,
    )
    dense = np.zeros(len(words))
    dense[rows] = scores
    assert dense.tolist() == pytest.approx(oracle.get_scores(items).tolist(), abs=1e-5)


@pytest.mark.long
def test_equal_to_bm25s_on_many_texts():
    random = np.random.default_rng(0)
    corpus = [[f"w{number}" for number in random.zipf(1.3, 20) % 500] for _ in range(3_000)]
    words = indexed(corpus)
    oracle = bm25s.BM25(method="lucene", k1=0.9, b=0.4, dtype="float64")
    oracle.index(corpus, show_progress=False)
    for _ in range(20):
        question = list(dict.fromkeys(f"w{number}" for number in random.zipf(1.3, 10) % 500))
        question = [word for word in question if word in words.vocabulary]
        rows, scores = bm25(
            words.hits(words.query(" ".join(question))),
            words.lengths,
            count=3_000,
            mean_length=words.lengths.mean(),
        )
        dense = np.zeros(3_000)
        dense[rows] = scores
        assert np.allclose(dense, oracle.get_scores(question), atol=1e-5)


@pytest.mark.long
@settings(deadline=None)
@given(st.data(), corpora, questions, k1s, bs)
def test_a_mask_scores_as_an_index_of_its_rows_does(data, corpus, question, k1, b):
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(corpus), max_size=len(corpus))))
    assume(mask.any())
    rows = np.flatnonzero(mask)
    words, only = indexed(corpus), indexed([corpus[row] for row in rows])
    text = " ".join(question)
    masked, alone = words.hits(words.query(text), mask), only.hits(only.query(text))
    mean = float(only.lengths.mean())
    result = bm25(masked, words.lengths, count=len(rows), mean_length=mean, k1=k1, b=b)
    expected = bm25(alone, only.lengths, count=len(only), mean_length=mean, k1=k1, b=b)
    assert result[0].tolist() == rows[expected[0]].tolist()
    assert result[1].tolist() == expected[1].tolist()
    result, expected = coverage(masked, count=len(rows)), coverage(alone, count=len(only))
    assert result[0].tolist() == rows[expected[0]].tolist()
    # a word of the index that the mask lacks counts as unheard, but is added to the mass elsewhere
    assert result[1].tolist() == pytest.approx(expected[1].tolist(), rel=1e-14)
    codes = np.array(
        data.draw(st.lists(st.integers(-1, 4), min_size=len(corpus), max_size=len(corpus)))
    )
    result = group_bm25(masked, codes, words.lengths, rows=rows, k1=k1, b=b)
    expected = group_bm25(alone, codes[rows], only.lengths, k1=k1, b=b)
    assert (result[0].tolist(), result[1].tolist()) == (expected[0].tolist(), expected[1].tolist())


@pytest.mark.long
@settings(deadline=None)
@given(corpora, corpora, questions)
def test_the_storage_does_not_move_a_bit(early, late, question):
    whole, grown = indexed(early + late), indexed(early)
    for document in late:
        grown.append([" ".join(document)])
    grown.seal()
    text = " ".join(question)
    mean = float(whole.lengths.mean())
    one, two = (
        bm25(words.hits(words.query(text)), words.lengths, count=len(words), mean_length=mean)
        for words in (whole, grown)
    )
    assert (one[0].tolist(), one[1].tolist()) == (two[0].tolist(), two[1].tolist())


@pytest.mark.long
@settings(deadline=None)
@given(st.data(), corpora, questions, k1s, bs)
def test_a_group_is_scored_as_one_document(data, corpus, question, k1, b):
    codes = data.draw(st.lists(st.integers(-1, 4), min_size=len(corpus), max_size=len(corpus)))
    words = indexed(corpus)
    hits = words.hits(words.query(" ".join(question)))
    present = sorted(set(codes) - {-1})
    joined = [
        [word for code, text in zip(codes, corpus, strict=True) if code == group for word in text]
        for group in present
    ]
    expected = plain_bm25(joined, question, k1, b) if joined else {}
    result = group_bm25(hits, np.array(codes), words.lengths, k1=k1, b=b)
    close(result, {present[number]: score for number, score in expected.items()})


def test_a_word_that_nothing_holds_is_not_covered():
    words = indexed([["tabs"], ["spaces"]])
    known = coverage(words.hits(words.query("tabs")), count=2)[1].tolist()
    half = coverage(words.hits(words.query("tabs unheard")), count=2)[1].tolist()
    assert known == [1.0]
    assert 0 < half[0] < 0.5


def test_nothing_asked_or_nothing_indexed_scores_nothing():
    for words in (indexed([]), indexed([["tabs"]])):
        hits = words.hits(words.query(""))
        for keys, values in (
            bm25(hits, words.lengths, count=len(words), mean_length=0.0),
            coverage(hits, count=len(words)),
            group_bm25(hits, np.zeros(len(words), dtype=np.int64), words.lengths),
        ):
            assert keys.tolist() == values.tolist() == []


def test_numbers_that_cannot_be_are_refused():
    words = indexed([["tabs"], ["tabs"]])
    hits = words.hits(words.query("tabs"))
    for wrong in (
        {"k1": -1.0},
        {"k1": math.nan},
        {"b": 1.5},
        {"count": 1},
        {"mean_length": math.nan},
        {"mean_length": 0.0},
    ):
        with pytest.raises(InputError):
            bm25(hits, words.lengths, **{"count": 2, "mean_length": 1.0, **wrong})
    with pytest.raises(InputError):
        coverage(hits, count=1)
    with pytest.raises(InputError):
        group_bm25(hits, np.zeros(3, dtype=np.int64), words.lengths)
