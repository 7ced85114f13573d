"""What a question names in passing: two words together, a file, a tag, a day."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.kernel.index import Matches, Words
from memlab.kernel.recall._mentions import Phrases, file_namer, tag_namer

words = st.sampled_from(["board", "boards", "meeting", "the", "in", "Lisbon", "2023", "meet"])
texts = st.lists(words, max_size=8).map(" ".join)


def slow_stems(text):
    """Read off the index of a single text: its words one by one."""
    results = []
    for word in re.findall(r"\w+", text.lower()):
        index = Words()
        index.append([word])
        results += index.vocabulary
    return results


@pytest.mark.long
@given(texts, texts, texts)
def test_phrases_are_neighbouring_stems(question, text, stems):
    index = Words()
    index.append([stems])
    hints_of, held = slow_stems(question), slow_stems(text)
    wanted = {(one, two) for one, two in pairwise(hints_of) if one != two}
    results = [
        pair for pair in wanted if any(tuple(held[at : at + 2]) == pair for at in range(len(held)))
    ]
    assert Phrases(index, question).share(text) == (len(results) / len(wanted) if wanted else 0)
    assert len(index.vocabulary) == len(set(slow_stems(stems)))


@pytest.mark.long
@given(texts, st.lists(texts, min_size=1, max_size=6))
def test_a_text_with_a_pair_holds_both_of_its_words(question, corpus):
    index = Words()
    index.append(corpus)
    hints_of, hits = Phrases(index, question), index.hits(index.query(question))
    matches = Matches(
        hits, index.lengths, count=len(corpus), mean_length=index.lengths.mean(), k1=1.0, b=0.5
    )
    read = matches.with_pair(np.arange(len(corpus)), hints_of.terms).tolist()
    pairs = {frozenset(pair) for pair in pairwise(slow_stems(question)) if len(set(pair)) == 2}
    assert read == [any(pair <= set(slow_stems(text)) for pair in pairs) for text in corpus]
    assert all(may or not hints_of.share(text) for may, text in zip(read, corpus, strict=True))


@given(texts, st.lists(words, max_size=3).map("-".join))
def test_a_tag_is_named_by_its_stems_in_a_row(question, tag):
    hints_of, held = slow_stems(question), slow_stems(tag)
    rows = [hints_of[at : at + len(held)] for at in range(len(hints_of))]
    assert tag_namer(Words(), question)(tag) == (bool(held) and held in rows)


parts = st.sampled_from(
    ["src", "app", "parser", "index.ts", "Makefile", "parser.py", "the", "a.b.py", ".env"]
)


@given(st.lists(parts, min_size=1, max_size=4), st.data())
def test_a_file_is_named_by_any_end_of_its_path_and_by_its_stem(path, data):
    written = "/".join(path)
    end = "/".join(path[data.draw(st.integers(0, len(path) - 1)) :])
    for said in (
        end,
        end.upper(),
        f"`{end}`",
        f"({end}),",
        f"./{end}",
        f"{end}:120",
        end.replace("/", "\\"),
    ):
        assert file_namer(frozenset(), f"Who changed {said}?")(written)
    assert not file_namer(frozenset(), "Who changed x" + end + "?")(written)
    stem = path[-1].rpartition(".")[0].lower()
    assert file_namer(frozenset(), f"Who changed {stem}?")(written) == (len(stem) >= 3)


@pytest.mark.parametrize("path", ["", "/", "a/" * 5000 + "b.py", "...", ".", "\\"])
def test_odd_paths_are_not_named(path):
    assert not file_namer(frozenset(), "what of . and / ?")(path)


class TestInARecall:
    @pytest.fixture
    def ask(self, lab, clock):
        lab.remember(
            [
                {
                    "text": "The board meeting is in Lisbon",
                    "tags": ["travel plan"],
                    "at": "2023-05-07T10:00:00",
                },
                {
                    "text": "A board, for a meeting",
                    "files": ["src/board.py"],
                    "at": "2023-05-18T23:59:59",
                },
                {"text": "Lisbon", "at": "2023-05-19T00:00:00"},
            ]
        )
        clock.now = 1_684_497_600_000_000  # Friday, 19 May 2023, 12:00

        def hints_of(question, name):
            slate = lab.recall(question, log=False).slate
            return dict(zip(slate.ids.tolist(), slate.numbers[name].tolist(), strict=True))

        return hints_of

    def test_phrase(self, lab, ask):
        lab.policies.use(
            '(pack phrases "Pairs of words.") (defpolicy recall-score [phrase] phrase)'
        )  # else a slate has none
        assert ask("When is the board meeting in Lisbon?", "phrase") == {1: 1.0, 2: 0.5, 3: 0.0}
        assert ask("When?", "phrase") == {1: 0.0, 2: 0.0, 3: 0.0}

    @pytest.mark.long
    def test_dates(self, ask):
        assert ask("What was yesterday?", "names-date") == {1: 0, 2: 1, 3: 0}
        assert ask("What was in May?", "names-date") == {1: 1, 2: 1, 3: 1}
        gaps = ask("What was on 8 May 2023?", "date-gap")
        assert gaps == pytest.approx({1: -14 / 24, 2: 10 - 1 / 86_400, 3: 10}, abs=1e-9)
        assert np.isnan(list(ask("What was it?", "names-date").values())).all()

    def test_files_and_tags(self, ask):
        assert ask("what is in board.py", "names-file") == {1: 0, 2: 1, 3: 0}
        assert ask("our travel plans", "names-tag") == {1: 1, 2: 0, 3: 0}
