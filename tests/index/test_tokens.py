"""Words of a text: what is one word and what is not."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError, UnknownName
from memlab.index import STOP_WORDS, Words
from memlab.index._tokens import Tokens, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The user prefers tabs.", ["the", "user", "prefers", "tabs"]),
        ("get_user_name(x2)", ["get", "user", "name", "x2"]),
        ("don't", ["don", "t"]),
        ("Straße Ünïcode ΣΊΣΥΦΟΣ", ["straße", "ünïcode", "σίσυφος"]),
        ("cafe\u0301", ["café"]),
        ("東京で会う tokyo", ["東", "京", "で", "会", "う", "tokyo"]),
        ("カタカナ 한국어", ["カタカナ", "한국어"]),
        ("", []),
        ("?! … 🙂", []),
    ],
)
def test_words(text, words):
    assert words_of(text) == words


@given(st.text())
def test_composed_and_decomposed_text_have_the_same_words(text):
    assert words_of(unicodedata.normalize("NFD", text)) == words_of(unicodedata.normalize("NFC", text))


@given(st.text())
def test_a_word_holds_letters_and_digits_only(text):
    for word in words_of(text):
        assert all(character.isalnum() for character in word)


def test_stems_share_an_id_and_stop_words_have_none():
    tokens = Tokens("english", ["the"])
    assert tokens["prefers"] == tokens["preferred"] == 0
    assert tokens["tabs"] == 1
    assert tokens["the"] == -1
    assert tokens.terms == ["prefer", "tab"]
    assert (tokens.id_of("prefer"), tokens.id_of("space"), tokens.stem("spaces"), tokens.stem("the")) == (
        0,
        -1,
        "space",
        None,
    )


def test_every_stop_word_is_a_word_of_its_own():
    for words in STOP_WORDS.values():
        assert all(words_of(word) == [word] for word in words)


def test_an_unknown_language_is_named():
    with pytest.raises(UnknownName, match="Did you mean english"):
        Words("englisch")
    with pytest.raises(InputError, match="several words"):
        Words(stop_words="the")
