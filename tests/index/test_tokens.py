"""Words of a text: what is one word and what is not."""

import unicodedata
from itertools import groupby

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError, UnknownName
from memlab.kernel.english import STOP_WORDS
from memlab.kernel.index import LANGUAGES, Words, words_of
from memlab.kernel.index._tokens import Tokens


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The user prefers tabs.", ["the", "user", "prefers", "tabs"]),
        ("get_user_name(x2)", ["get", "user", "name", "x2"]),
        ("don't", ["don", "t"]),
        ("Straße Ünïcode ΣΊΣΥΦΟΣ", ["straße", "ünïcode", "σίσυφος"]),
        ("cafe\u0301", ["café"]),
        ("東京で会う tokyo", ["東", "東京", "京", "京で", "で会", "会", "会う", "tokyo"]),
        ("猫 です", ["猫", "です"]),
        ("データベースServer2", ["デー", "ータ", "タベ", "ベー", "ース", "server2"]),
        ("한국어 밥", ["한국", "국어", "밥"]),
        ("ที่ดีมาก", ["ที่ดี", "ดีม", "มา", "าก"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("كَتَبَ", ["كَتَبَ"]),
        ("İSTANBUL'da", ["istanbul", "da"]),
        ("❤️ 1️⃣ it’s", ["1", "it", "s"]),
        ("", []),
        ("?! … 🙂", []),
    ],
)
def test_words(text, words):
    assert words_of(text) == words


@given(st.text())
def test_composed_and_decomposed_text_have_the_same_words(text):
    assert words_of(unicodedata.normalize("NFD", text)) == words_of(
        unicodedata.normalize("NFC", text)
    )


@pytest.mark.long
@given(st.text())
def test_a_word_holds_letters_their_marks_and_digits_only(text):
    for word in words_of(text):
        assert word[0].isalnum()
        assert all(item.isalnum() or unicodedata.category(item) in ("Mn", "Mc") for item in word)


SCRIPTS = [*"aé7ßжयकि\u0301 ,.", *"東京々", *"かナー", *"한글", *"ไทยที่", *"ລາວ", *"မြန်"]


@given(st.lists(st.sampled_from(SCRIPTS), max_size=30).map("".join))
def test_equal_to_reading_one_character_at_a_time(text):
    assert words_of(text) == slow_words(unicodedata.normalize("NFC", text.lower()))


def slow_words(text):
    """Split a text at spaces, and text without spaces into characters; pairs of the latter for Han."""
    signs = []
    for item in text:
        if item.isalnum():
            signs.append(item)
        elif signs and signs[-1] and unicodedata.category(item) in ("Mn", "Mc"):
            signs[-1] += item
        else:
            signs.append("")
    words = []
    for unspaced, run in groupby(signs, lambda sign: script(sign)):
        run = list(run)
        if unspaced == "spaced":
            words.append("".join(run))
        elif unspaced == "unspaced":
            for index, sign in enumerate(run):
                if len(run) == 1 or name(sign) in ("CJK", "IDEOGRAPHIC"):
                    words.append(sign)
                words += ["".join(run[index : index + 2])] if index + 1 < len(run) else []
    return words


def name(sign):
    return unicodedata.name(sign[0]).split()[0]


def script(sign):
    if not sign:
        return "none"
    unspaced = (
        "CJK",
        "IDEOGRAPHIC",
        "HIRAGANA",
        "KATAKANA",
        "KATAKANA-HIRAGANA",
        "HANGUL",
        "THAI",
        "LAO",
        "MYANMAR",
    )
    return "unspaced" if name(sign) in unspaced else "spaced"


@pytest.mark.long
def test_long_texts_take_linear_time():
    for piece in ("a\u0301", "東\u0301", "\u0301", "ก็", "a東"):
        assert len(words_of(piece * 50_000)) <= 200_000


@pytest.mark.parametrize(
    ("language", "text", "question"),
    [
        ("german", "Meine Häuser stehen in Köln", "Wo steht das Haus?"),
        ("french", "Nous mangeons des pommes", "Qui mange une pomme ?"),
        ("russian", "Вчера мы смотрели фильмы", "Какой фильм смотрел ты?"),
        ("spanish", "Prefiero los gatos negros", "¿Qué gato prefieres?"),
        ("hindi", "मुझे किताबें पसंद हैं", "किताब"),
        ("none", "我昨天去了东京", "东京在哪里"),
        ("english", "昨日は猫を見た", "猫が"),
        ("german", "ฉันชอบหนังสือ", "หนังสือ"),
    ],
)
def test_other_forms_of_a_word_find_it(language, text, question):
    words = Words(None if language == "none" else language)
    words.append([text])
    assert len(words.hits(words.query(question)))


def test_function_words_of_a_language_are_left_out():
    words = Words("german")
    words.append(["Wann ist der Termin bei dem Zahnarzt?"])
    assert words.vocabulary == ("termin", "zahnarzt")


def test_every_language_but_none_has_a_stemmer():
    assert set(LANGUAGES) - {"none"} <= set(Stemmer.algorithms())
    assert set(STOP_WORDS) <= set(LANGUAGES)
    assert len(LANGUAGES) == len(set(LANGUAGES))


def test_stems_share_an_id_and_stop_words_have_none():
    tokens = Tokens("english", ["the"])
    assert tokens["prefers"] == tokens["preferred"] == 0
    assert tokens["tabs"] == 1
    assert tokens["the"] == -1
    assert tokens.terms == ["prefer", "tab"]
    assert (
        tokens.id_of("prefer"),
        tokens.id_of("space"),
        tokens.stem("spaces"),
        tokens.stem("the"),
    ) == (
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
