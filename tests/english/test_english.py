"""English as memlab reads it: offsets, numbers, sentences, and what a sentence does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.kernel.english import NUMBER_WORDS, lexicon, number_of, tokenize, words_of
from memlab.subjects.reading.acts import read_sentences, subject_person
from memlab.subjects.reading.sentences import sentence_spans, without_quotations

SHAPES = ("word", "spoken", "hyphenated", "joined", "clitic", "value")
chat = st.text(st.sampled_from("aI b's.?!,;:-\"`'\n()\u2019\u2014 2"), max_size=80)


@pytest.mark.long
@given(chat, st.sampled_from(SHAPES))
def test_every_token_has_its_position(text: str, shape: str) -> None:
    for token in tokenize(text, shape):  # type: ignore[arg-type]
        assert text[token.start : token.stop].lower().replace("\u2019", "'") == token.low


@pytest.mark.long
@given(chat)
def test_sentences_cover_the_text_in_order(text: str) -> None:
    spans = list(sentence_spans(text))
    assert "".join(text[start:stop] for start, stop in spans) == text


@given(chat)
def test_statements_lie_within_a_sentence_and_outside_quotations(text: str) -> None:
    own = without_quotations(text)
    assert len(own) == len(text)
    for sentence in read_sentences(text):
        for start, stop in sentence.stated:
            assert sentence.start <= start < stop <= sentence.stop
        if sentence.act in ("greeting", "quotation", "reaction", "order", "supposition"):
            assert not sentence.stated


def test_words_are_the_tokens_of_shape_word() -> None:
    text = "Don\u2019t call get_user_name, Ada's C++"
    assert words_of(text) == [token.low for token in tokenize(text.replace("\u2019", "'"))]


def test_numbers_below_a_hundred_are_read_as_they_are_written() -> None:
    tens = {
        number: word
        for word, number in NUMBER_WORDS.items()
        if number % 10 == 0 and 20 <= number < 100
    }
    ones = {number: word for word, number in NUMBER_WORDS.items() if 1 <= number < 10}
    for number in range(21, 100):
        if number % 10:
            written = f"{tens[number - number % 10]}-{ones[number % 10]}"
            assert number_of(written) == number


@pytest.mark.parametrize(
    ("sentence", "act"),
    [
        ("See you for now!", "greeting"),
        ("Hey Maria, how's it going?", "greeting"),
        ("Text me when you land.", "order"),
        ("Did you read that novel?", "question"),
        ("Do you read any novels now", "question"),
        ("What a day!", "reaction"),
        ("What I like is tea.", "statement"),
        ("Thanks a lot, Ben!", "reaction"),
        ("Thanks, I moved to Oslo last week.", "statement"),
        ("Yeah, I sold the car.", "statement"),
        ("Yeah, that's so true.", "reaction"),
        ("Hopefully he finds work.", "wish"),
        ("Good luck with the exam!", "wish"),
        ("If I lived in Rome I would eat more.", "supposition"),
        ('"I live in Rome."', "quotation"),
        ("```\nimport os\n```", "quotation"),
        ("Never log tokens.", "order"),
        ("Work is done by the team.", "statement"),
        ("Ada, I moved to Oslo.", "statement"),
    ],
)
def test_the_act_of_a_sentence(sentence: str, act: str) -> None:
    assert next(read_sentences(sentence)).act == act


def test_the_statement_of_a_mixed_sentence_precedes_its_question() -> None:
    text = "I met Carla at the festival in May, and she gave me notes, but how can I use them?"
    (sentence,) = read_sentences(text)
    assert sentence.act == "question"
    assert (
        text[slice(*sentence.stated[0])].rstrip(" ,")
        == "I met Carla at the festival in May, and she gave me notes"
    )


@pytest.mark.parametrize(
    ("sentence", "person"),
    [("I moved", "first"), ("Your dog barks", "second"), ("The dog died", "third"), ("", None)],
)
def test_of_whom_a_sentence_speaks(sentence: str, person: str | None) -> None:
    assert subject_person(sentence) == person


def test_greetings_are_in_a_single_table() -> None:
    tables = lexicon()
    lists = [
        named["greetings"] for named in tables.values() if isinstance(named.get("greetings"), list)
    ]
    lists += tables.get("greetings", {}).values()
    every = [phrase for phrases in lists for phrase in phrases]
    assert len(every) > 100
    assert sorted(phrase for phrase in set(every) if every.count(phrase) > 1) == []
