"""Long rows by passage: the parts of a text, and scores equal to those of a naive search of every passage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DamagedLab
from memlab.kernel.index import (
    InPassages,
    Matches,
    Words,
    best,
    idf,
    passages_of,
    words_of,
)

VOCABULARY = [f"w{number}" for number in range(9)]
texts = st.lists(st.sampled_from([*VOCABULARY, "one two.", "\n"]), max_size=30).map(" ".join)
corpora = st.lists(texts, min_size=1, max_size=15)
questions = st.lists(st.sampled_from([*VOCABULARY, "unheard"]), max_size=5).map(" ".join)


@pytest.fixture
def short(monkeypatch):
    """Use passages of about four words, for texts of more than six."""
    monkeypatch.setattr("memlab.kernel.index._tokens.LONG", 6)
    monkeypatch.setattr("memlab.kernel.index._postings.LONG", 6)
    monkeypatch.setattr("memlab.kernel.index._tokens._WORDS", 4)


@pytest.fixture(params=["all are scored", "some are left out"])
def way(request, monkeypatch):
    if request.param == "some are left out":
        monkeypatch.setattr("memlab.kernel.index._matches._FEW", -1)
        monkeypatch.setattr("memlab.kernel.index._matches._BOUND_FROM", 1)


class TestParts:
    @given(st.text(max_size=60) | texts, st.integers(0, 9))
    def test_they_follow_one_another_and_are_the_text(self, text, wanted):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("memlab.kernel.index._tokens.LONG", wanted)
            patch.setattr("memlab.kernel.index._tokens._WORDS", wanted + 1)
            spans = passages_of(text)
        assert "".join(text[start:stop] for start, stop in spans) == text
        assert len(words_of(text)) > wanted or len(spans) == 1
        inside = {word for start, stop in spans for word in words_of(text[start:stop])}
        assert inside <= set(words_of(text))

    def test_a_passage_ends_with_a_sentence_or_a_line(self):
        text = " ".join(f"Sentence {number} has seven words in it." for number in range(60))
        parts = [text[start:stop].strip() for start, stop in passages_of(text)]
        assert all(part.endswith(".") for part in parts)
        assert all(63 <= len(words_of(part)) <= 98 for part in parts)
        lines = "\n".join("- a line without an end to it" for _ in range(60))
        assert all(lines[start] == "-" for start, _ in passages_of(lines))

    def test_a_sentence_without_an_end_is_cut_at_spaces(self):
        text = " ".join(f"word{number}" for number in range(400))
        assert [len(words_of(text[start:stop])) for start, stop in passages_of(text)] == [80] * 5

    @pytest.mark.parametrize("words", [0, 1, 82, 160])
    def test_a_text_that_is_not_long_is_one(self, words):
        text = "word " * words
        assert passages_of(text) == [(0, len(text))]


def naive(words, corpus, question, mask, k1, b):
    """Compute BM25 and coverage of each row as the maximum over its passages."""
    query = words.query(question)
    count = int(mask.sum())
    parts = [
        [words.stems(text[start:stop]) for start, stop in passages_of(text)] for text in corpus
    ]
    wholes = [words.stems(text) for text in corpus]
    taking = [row for row in range(len(corpus)) if mask[row]]
    mean = (
        sum(len(wholes[row]) for row in taking) / max(sum(len(parts[row]) for row in taking), 1)
        or 1.0
    )
    stems = [words.vocabulary[term] for term in query.terms]
    weight = [
        float(idf(np.array([sum(stem in wholes[row] for row in taking)]), count)[0])
        for stem in stems
    ]
    mass = sum(weight) + query.unknown * float(idf(np.zeros(1, dtype=np.int64), count)[0])
    scores, shares = np.zeros(len(corpus)), np.zeros(len(corpus))
    for row in taking:
        for part in parts[row]:
            tfs = [part.count(stem) for stem in stems]
            norm = k1 * (1 - b + b * len(part) / mean)
            score = sum(own * tf / (tf + norm) for own, tf in zip(weight, tfs, strict=True) if tf)
            share = sum(own for own, tf in zip(weight, tfs, strict=True) if tf) / (mass or 1.0)
            scores[row], shares[row] = max(scores[row], score), max(shares[row], share)
    return mean, scores, shares


@pytest.mark.long
@pytest.mark.usefixtures("short", "way")
def test_equal_to_a_naive_search_of_every_passage():
    @settings(deadline=None, max_examples=50)
    @given(corpora, questions, st.floats(0.1, 3), st.floats(0, 1), st.integers(0, 12), st.randoms())
    def holds(corpus, question, k1, b, n, dice):
        words = Words(None)
        words.append(corpus[: len(corpus) // 2])
        words.append(corpus[len(corpus) // 2 :])
        mask = np.array([dice.random() < 0.7 for _ in corpus])
        query = words.query(question)
        mean, scores, shares = naive(words, corpus, question, mask, k1, b)
        inside = None
        if words.passages is not None:
            hits = words.passages.words.hits(query, mask[words.passages.of])
            inside = InPassages(words.passages, hits, mean)
        count = int(mask.sum())
        mean_of_rows = float(words.lengths[mask].mean()) if count else 0.0
        arguments = {
            "count": count,
            "mean_length": mean_of_rows,
            "k1": k1,
            "b": b,
            "inside": inside,
        }
        matches = Matches(words.hits(query, mask), words.lengths, **arguments)
        rows = np.flatnonzero(mask)
        result = matches.scores(rows)
        assert result == pytest.approx(scores[rows])
        assert matches.coverage(rows[::-1]) == pytest.approx(shares[rows][::-1])
        # the order is that of the scores found: sums in another order may part a tie
        expected = rows[best(result, n)]
        assert matches.best(n).tolist() == expected[matches.scores(expected) > 0].tolist()

    holds()


@pytest.mark.usefixtures("short")
class TestKept:
    corpus = (
        "w1 w2",
        "w1 w2 w3. w4 w5 w6. w7 w8 w1.",
        "w3",
        "Ann w1 w1 w1. w2 w2 w2. w8 w8 w8. w1 w2 w3.",
    )

    def test_saved_loaded_and_added_to(self, tmp_path):
        words, whole = Words(), Words()
        whole.append([*self.corpus, *self.corpus], ["Ann", None] * 4)
        words.append(self.corpus, ["Ann", None] * 2)
        for _ in range(2):
            words.save(tmp_path / "words.npz")
            words = Words.load(tmp_path / "words.npz")
        words.append(self.corpus, ["Ann", None] * 2)
        assert words.passages.of.tolist() == whole.passages.of.tolist()
        for one, other in ((words, whole), (words.passages.words, whole.passages.words)):
            found, expected = (own.hits(own.query("Ann w1 w2 w8")) for own in (one, other))
            assert found.row.tolist() == expected.row.tolist()
            assert found.tf.tolist() == expected.tf.tolist()
            rows = np.arange(len(one))
            assert [part.tolist() for part in one.written.forms_of(rows)] == [
                part.tolist() for part in other.written.forms_of(rows)
            ]

    def test_passages_of_rows_that_are_not_there_are_not_believed(self, tmp_path):
        words = Words()
        words.append(self.corpus)
        words.save(path := tmp_path / "words.npz")
        with np.load(path) as arrays:
            values = dict(arrays)
        for wrong in (
            values["passages_of"] + 9,
            values["passages_of"][1:],
            values["passages_of"][::-1],
        ):
            np.savez(path, **{**values, "passages_of": wrong})
            with pytest.raises(DamagedLab, match="do not match the rows"):
                Words.load(path)
