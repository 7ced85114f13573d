"""Keywords: what sets a group apart, in words as they are written."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.subjects.clusters.wording import keywords


def test_a_word_that_is_common_everywhere_is_no_keyword():
    texts = ["we ship tabs", "we ship tabs now", "we ship on Friday", "Friday we ship"]
    assert keywords(texts, [0, 0, 1, 1], max_terms=1) == [("tabs",), ("friday",)]


def test_noise_tells_what_is_common():
    texts = ["garden party", "garden party", *["party"] * 9]
    assert keywords(texts, [0, 0, *[-1] * 9], max_terms=1) == [("garden",)]


def test_forms_of_one_word_stand_once():
    texts = ["the memory", "memories and memory", "memory of a lake", "lake"]
    assert keywords(texts, [0] * 4) == [("memory", "lake")]


def test_stop_words_numbers_letters_and_silenced_words_are_left_out():
    texts = ["the x 2023 <b>Ann</b> snake_case"] * 2
    assert keywords(texts, [0, 0], exclude=["Ann"]) == [("case", "snake")]


def test_scripts_without_spaces_and_accents():
    assert keywords(["記憶", "記"], [0, 0]) == [("記", "憶")]
    assert keywords(["cafe\u0301"] * 2, [0, 0]) == [("café",)]


def test_groups_without_words():
    assert keywords([], []) == []
    assert keywords([None, "the", "boat"], [0, 2, 3]) == [(), (), (), ("boat",)]


WORDS = st.lists(st.sampled_from(["ant", "bee", "cow", "dog", "elk", "fox"]), max_size=6)


@pytest.mark.long
@examples(50)
@given(st.lists(st.tuples(WORDS, st.integers(-1, 2)), max_size=20))
def test_the_order_is_that_of_the_formula(given_texts):
    result = keywords(
        [" ".join(words) for words, _ in given_texts],
        [group for _, group in given_texts],
        language=None,
    )
    held = [Counter() for _ in result]
    every = Counter()
    for words, group in given_texts:
        every.update(set(words))
        if group >= 0:
            held[group].update(set(words))
    mean = sum(every.values()) / max(len(result), 1)
    for group, words in zip(held, result, strict=True):
        worth = {word: count * math.log(1 + mean / every[word]) for word, count in group.items()}
        order = sorted(group, key=lambda word: (group[word] <= 1, -round(worth[word], 9), word))
        assert list(words) == order[:5]
