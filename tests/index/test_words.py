"""Postings: whatever the batches, seals, merges and files, the hits of a query are those of a plain dictionary."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DamagedLab, InputError
from memlab.kernel.index import Words

VOCABULARY = [
    "tab",
    "space",
    "indent",
    "python",
    "rust",
    "deploy",
    "monday",
    "lisbon",
    "cat",
    "dog",
]
texts = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=8).map(" ".join), max_size=12)
questions = st.lists(st.sampled_from([*VOCABULARY, "unheard", "unseen"]), max_size=6).map(" ".join)


def indexed(batches, **settings):
    words = Words(None, **settings)
    for batch in batches:
        words.append(batch)
    return words


def plain_hits(corpus, question, rows):
    """Count the hits in the texts: {(row, word): count}."""
    wanted = set(question.split())
    return {
        (row, word): count
        for row in rows
        for word, count in Counter(corpus[row].split()).items()
        if word in wanted
    }


def as_plain(words, query, hits):
    return {
        (row, words.vocabulary[query.terms[term]]): tf
        for row, term, tf in zip(
            hits.row.tolist(), hits.term.tolist(), hits.tf.tolist(), strict=True
        )
    }


@pytest.fixture(params=[8192, 5], ids=["pending", "sealed often"])
def seal(request, monkeypatch):
    monkeypatch.setattr("memlab.kernel.index._postings._SEAL", request.param)


def check(batches, question, mask=None):
    corpus = [text for batch in batches for text in batch]
    words = indexed(batches)
    assert len(words) == len(corpus)
    assert words.lengths.tolist() == [len(text.split()) for text in corpus]
    query = words.query(question)
    hits = words.hits(query, mask)
    rows = range(len(corpus)) if mask is None else np.flatnonzero(mask).tolist()
    expected = plain_hits(corpus, question, rows)
    assert len(hits) == len(expected)
    assert as_plain(words, query, hits) == expected
    # each row's hits come in the order of the query's terms
    order = np.lexsort((np.arange(len(hits)), hits.row))
    for row in set(hits.row.tolist()):
        terms = hits.term[order][hits.row[order] == row].tolist()
        assert terms == sorted(terms)
    known = [
        word
        for word in dict.fromkeys(question.split())
        if any(word in text.split() for text in corpus)
    ]
    assert [words.vocabulary[term] for term in query.terms] == known
    assert query.unknown == len(set(question.split()) - set(known))
    assert hits.size == len(known)


@pytest.mark.long
@pytest.mark.usefixtures("seal")
class TestHits:
    @settings(deadline=None)
    @given(st.lists(texts, max_size=6), questions)
    def test_equal_to_a_dictionary_of_counts(self, batches, question):
        check(batches, question)

    @settings(deadline=None)
    @given(st.data(), st.lists(texts, max_size=4), questions)
    def test_a_mask_leaves_only_its_rows(self, data, batches, question):
        size = sum(len(batch) for batch in batches)
        mask = np.array(
            data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=np.bool_
        )
        check(batches, question, mask)

    @settings(deadline=None)
    @given(st.lists(texts, max_size=5), texts, questions)
    def test_a_loaded_index_goes_on_as_if_nothing_had_happened(
        self, tmp_path_factory, batches, late, question
    ):
        path = tmp_path_factory.mktemp("words") / "words"
        kept = indexed(batches)
        kept.save(path)
        loaded = Words.load(path)
        for words in (kept, loaded):
            words.append(late)
        whole = indexed([*batches, late])
        query = whole.query(question)
        for words in (kept, loaded):
            assert words.lengths.tolist() == whole.lengths.tolist()
            assert words.vocabulary == whole.vocabulary
            assert words.query(question).terms.tolist() == query.terms.tolist()
            assert as_plain(words, query, words.hits(query)) == as_plain(
                whole, query, whole.hits(query)
            )


@pytest.mark.long
def test_many_texts_are_merged_into_few_segments():
    words = Words()
    for number in range(3_000):
        words.append([f"text number {number} of many, with tabs and spaces in Lisbon on Monday"])
    assert len(words._segments) <= 4
    query = words.query("number 1234")
    hits = words.hits(query)
    assert len(hits) == 3_001
    assert hits.row[hits.term == 1].tolist() == [1234]


def test_stop_words_are_not_counted_unless_asked_for():
    words = Words()
    words.append(["what did the user prefer?"])
    assert words.lengths.tolist() == [2]
    assert words.query("What did they prefer").tokens == ("what", "did", "they", "prefer")
    assert words.query("What did they prefer").unknown == 0
    every = Words(stop_words=())
    every.append(["what did the user prefer?"])
    assert every.lengths.tolist() == [5]
    german = Words("german")
    german.append(["the Häuser"])
    assert german.vocabulary == ("the", "haus")


def test_a_question_teaches_no_words():
    words = Words()
    words.append(["tabs"])
    words.query("spaces and tabs")
    assert words.vocabulary == ("tab",)
    assert len(words.hits(words.query("spaces"))) == 0


def test_lengths_cannot_be_written():
    words = Words()
    words.append(["tabs"])
    with pytest.raises(ValueError, match="read-only"):
        words.lengths[0] = 7
    words.append(["spaces"])
    assert words.lengths.tolist() == [1, 1]


class TestOnDisk:
    @pytest.fixture
    def path(self, tmp_path):
        words = Words("english", stop_words=["indeed"])
        words.append(["The user prefers tabs, indeed", "käse 東京", ""])
        words.save(tmp_path / "words")
        return tmp_path / "words"

    def test_settings_come_back(self, path):
        words = Words.load(path)
        assert words.language == "english"
        words.append(["indeed spaces"])
        assert words.lengths.tolist() == [4, 4, 0, 1]
        assert [item.name for item in path.parent.iterdir()] == ["words"]

    @pytest.mark.parametrize(
        "damage", [lambda held: held[:-200], lambda held: b"", lambda held: b"PK" + held[:50]]
    )
    def test_a_damaged_file_is_refused(self, path, damage):
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(DamagedLab, match="words"):
            Words.load(path)

    def test_a_flipped_byte_is_refused(self, path):
        data = bytearray(path.read_bytes())
        at = data.index(b"prefer")
        data[at] ^= 1
        path.write_bytes(data)
        with pytest.raises(DamagedLab):
            Words.load(path)

    def test_arrays_that_do_not_fit_together_are_refused(self, path):
        with np.load(path, allow_pickle=False) as arrays:
            values = dict(arrays)
        values["rows"] = values["rows"] + 3
        with path.open("wb") as file:
            np.savez(file, **values)
        with pytest.raises(DamagedLab, match="inconsistent"):
            Words.load(path)
        with pytest.raises(DamagedLab):
            Words.load(path.with_name("nothing"))

    def test_nothing_indexed(self, tmp_path):
        Words(None).save(tmp_path / "words")
        words = Words.load(tmp_path / "words")
        assert (len(words), words.language, words.vocabulary) == (0, None, ())
        assert len(words.hits(words.query("tabs"))) == 0


def test_values_that_are_no_text_are_refused():
    words = Words()
    with pytest.raises(InputError, match="list of texts"):
        words.append("one text")
    with pytest.raises(InputError, match="Text 1 is NoneType"):
        words.append(["tabs", None])
    assert len(words) == 0
    with pytest.raises(InputError):
        words.query(None)
    with pytest.raises(InputError, match="mask"):
        words.hits(words.query("tabs"), np.ones(3, dtype=np.bool_))
