"""Speech acts of the sentences of a message.

The acts are statement, question, greeting, reaction, wish, order, quotation and supposition.

A sentence of chat often combines two acts ("I'm a nurse, how do I ...?"). Therefore each sentence
also has the spans that state something. The tables are under ``acts`` in ``english.toml``. Every
function takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from memlab.kernel.english import (
    first_of,
    holds,
    lexicon,
    padded,
    phrases,
    table,
    tokenize,
    vocabulary,
    words_of,
)
from memlab.subjects.reading.sentences import sentence_spans, without_quotations

Act = Literal[
    "statement", "question", "greeting", "reaction", "wish", "order", "quotation", "supposition"
]
"""The speech acts.

A "reaction" is thanks, praise or agreement. A "supposition" is a condition or something imagined.
"""

Person = Literal["first", "second", "third"]
"""The grammatical person of a subject: the speaker, the listener, or another person or thing."""

_LONGEST_REACTION = 14
"""The maximum words of a sentence that only thanks, praises or agrees.

A longer sentence also states something.
"""

_MOST_LEFT = 2
"""The maximum words of a greeting besides its phrases, as for a name of two words."""

_MOST_OPENERS = 4
"""The maximum interjections that are skipped at a sentence start, as in "oh well, you know"."""

# Patterns of the end of a clause, of a name that a sentence addresses ("Wow Jon, ..."), and of a list mark.
_BREAK = re.compile(
    r"[,;:\u2013\u2014]|\s-\s|(?<=\s)(?:and|but|so|or|because)(?=\s)", re.IGNORECASE
)
_VOCATIVE = re.compile(r"\s*(?P<opener>[^\W\d_]{1,9},?\s+)?(?P<name>[A-Z][a-z]+)[,!]\s+")
_LIST_MARK = re.compile(r"^\W*(?:[-*\u2022#>]|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a message, with its speech act and the spans that state something.

    Attributes
    ----------
    start, stop
        The offsets of the sentence in the message.
    act
        The speech act.
    person
        The grammatical person of the subject; None if the sentence has no subject.
    hedged
        Whether the sentence is hedged ("maybe", "I think").
    stated
        The spans that state something: a whole statement, or the clauses of a mixed sentence before
        its question or condition. Empty for other sentences.
    """

    start: int
    stop: int
    act: Act
    person: Person | None
    hedged: bool
    stated: tuple[tuple[int, int], ...]


def read_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a message with their speech acts.

    Parameters
    ----------
    text
        A message. Code and quotations state nothing. A sentence that consists of them is a
        "quotation".

    Yields
    ------
    Sentence
        The sentences that contain a letter or digit, in order.

    Examples
    --------
    >>> text = "Hi Ada! I moved to Oslo, have you been there? If only it were warmer."
    >>> [(part.act, [text[a:b].strip() for a, b in part.stated]) for part in read_sentences(text)]
    [('greeting', []), ('question', ['I moved to Oslo']), ('wish', [])]
    """
    own = without_quotations(text)
    for start, stop in sentence_spans(own):
        if not any(map(str.isalnum, text[start:stop])):
            continue
        if not any(map(str.isalnum, own[start:stop])):
            yield Sentence(start, stop, "quotation", None, False, ())
            continue
        yield _read_sentence(own, start, stop)


def subject_person(sentence: str) -> Person | None:
    """Return the grammatical person of a sentence, taken from its first pronoun or noun.

    Parameters
    ----------
    sentence
        One sentence or clause.

    Returns
    -------
    str or None
        "first" for I, we and my, "second" for you and your, "third" for other persons and things.
        None for a sentence without a subject.

    Examples
    --------
    >>> [subject_person(text) for text in ("My dog died", "You moved", "Ada lives here", "Well, I sold it", "Wow!")]
    ['first', 'second', 'third', 'first', None]
    """
    words = _without_openers(words_of(sentence))
    if not words:
        return None
    first, second = vocabulary("acts", "first-person"), vocabulary("acts", "second-person")
    if words[0] in first:
        return "first"
    if words[0] in second:
        return "second"
    low = padded(words[:_MOST_OPENERS])
    if holds(low, (" i ", " i'm ", " i've ", " my ", " we ")) and words[0] in _setting_words():
        return "first"
    return "third"


def _read_sentence(text: str, start: int, stop: int) -> Sentence:
    # The order of the tests matters: a greeting may look like a question, and a reaction or an order like a statement.
    """Return one sentence of a message with its speech act."""
    sentence = text[start:stop]
    mark = _LIST_MARK.match(sentence)
    words = words_of(_without_vocative(sentence[mark.end() :] if mark else sentence))
    low = padded(words)
    asks = sentence.rstrip(" \n\"'\u201d*_)").endswith("?")
    hedged = holds(low, phrases("acts", "hedges"))
    person = subject_person(" ".join(words))
    if _is_greeting(words):
        return Sentence(start, stop, "greeting", None, False, ())
    body = padded(_without_openers(words))
    if asks or _begins_question(body):
        return Sentence(start, stop, "question", person, hedged, _find_stated(text, start, stop))
    if first_of(low, phrases("acts", "wishes")) or first_of(body, phrases("acts", "wishes")):
        return Sentence(start, stop, "wish", person, hedged, ())
    if first_of(body, phrases("acts", "suppositions")):
        return Sentence(start, stop, "supposition", person, hedged, ())
    if _is_reaction(low, body, len(words)):
        return Sentence(start, stop, "reaction", person, hedged, ())
    if _is_order(body):
        return Sentence(start, stop, "order", "second", hedged, ())
    stated = _find_stated(text, start, stop)
    return Sentence(start, stop, "statement" if stated else "wish", person, hedged, stated)


def _without_vocative(sentence: str) -> str:
    """Return a sentence without the name by which it addresses the listener.

    "Wow Jon, same here" becomes "Wow  same here".
    """
    vocative = _VOCATIVE.match(sentence)
    if vocative is None or (vocative["opener"] or "").strip(" ,!").lower() not in {
        "",
        *vocabulary("acts", "openers"),
    }:
        return sentence
    if vocative["name"].lower() in vocabulary("acts", "openers") | vocabulary(
        "extraction", "no-names"
    ):
        return sentence
    return (vocative["opener"] or "") + " " + sentence[vocative.end() :]


def _without_openers(words: list[str]) -> list[str]:
    """Return the words of a sentence after at most ``_MOST_OPENERS`` interjections at its start."""
    position = 0
    while position < min(len(words), _MOST_OPENERS) and words[position] in vocabulary(
        "acts", "openers"
    ):
        position += 1
    return words[position:]


# Built once, because the union of the tables is looked up for every sentence.
@cache
def _setting_words() -> frozenset[str]:
    """Return the words that may precede the subject: openers, and beginnings of adverbial phrases such as "when"."""
    return vocabulary("extraction", "settings", "openers") | {
        "last",
        "this",
        "yesterday",
        "today",
        "since",
        "when",
    }


def _is_greeting(words: list[str]) -> bool:
    """Return whether a sentence is a greeting with at most two other words."""
    left, greeted = padded(words), False
    while (
        greeting := first_of(left, phrases("greetings", "anywhere", "of-sentences"))
    ) is not None:
        left, greeted = left[len(greeting) - 1 :], True
        while (more := first_of(left, phrases("acts", "addressing"))) is not None:
            left = left[len(more) - 1 :]
    if not greeted:
        opened = _without_openers(words)
        return opened != words and bool(opened) and _is_greeting(opened)
    return len(left.split()) <= _MOST_LEFT


def _begins_question(low: str) -> bool:
    """Return whether a padded sentence begins like a question."""
    opening = first_of(low, phrases("acts", "questions"))
    if opening is None:
        return False
    rest = low[len(opening) :].split(None, 1)
    exclaims = (
        opening.strip() in ("what", "how")
        and bool(rest)
        and rest[0] in vocabulary("acts", "exclaims")
    )
    # "What I like is tea" is a statement; "what do", "what is" and "what time" begin questions.
    states = opening.strip() in ("what", "which", "who", "where", "how", "why", "whose") and bool(
        rest
    )
    return not exclaims and not (
        states and rest[0] in vocabulary("acts", "first-person", "third-person")
    )


def _is_reaction(low: str, body: str, count: int) -> bool:
    """Return whether a short enough sentence only thanks, praises or agrees, or has only openers."""
    if count > _LONGEST_REACTION:
        return False
    if not body.strip():
        return True
    table = phrases("acts", "reactions")
    opening = first_of(body, table) or first_of(low, table)
    if opening is None:
        return False
    rest = low[low.find(opening) + len(opening) - 1 :] if opening in low else body
    if opening.strip() in vocabulary("acts", "light-reactions") and len(rest.split()) > 2:
        # "Yeah, I moved" states something; "Yeah, that's so true" is a reaction.
        return first_of(padded(_without_openers(rest.split())), table) is not None
    return not _tells_event(rest)


def _tells_event(low: str) -> bool:
    """Return whether padded words report an event or name a time, as in "Thanks, I moved last week"."""
    return holds(low, phrases("utterance", "events")) or holds(low, phrases("utterance", "times"))


def _is_order(low: str) -> bool:
    """Return whether a padded sentence begins with an imperative verb."""
    first, _, rest = low.strip().partition(" ")
    if first in vocabulary("utterance", "doubtful-orders"):
        return rest.partition(" ")[0] in vocabulary("utterance", "objects")
    if first not in vocabulary("utterance", "orders") and first not in vocabulary("acts", "orders"):
        return False
    follows = rest.partition(" ")[0]
    return follows not in ("is", "was", "are", "has", "were", "will", "of")


def _find_stated(text: str, start: int, stop: int) -> tuple[tuple[int, int], ...]:
    """Return the span of the clauses before the first question, wish or condition.

    The result is empty if the sentence begins with a question, wish or condition.
    """
    asks = text[start:stop].rstrip(" \n\"'\u201d*_)").endswith("?")
    begins = start
    end = start
    pieces = [match.span() for match in _BREAK.finditer(text, start, stop)]
    edges = [*pieces, (stop, stop)]
    for number, (cut, goes_on) in enumerate(edges):
        low = padded(_without_openers(words_of(text[begins:cut])))
        opens = first_of(low, phrases("acts", "later-questions")) or first_of(
            low, phrases("acts", "suppositions")
        )
        last = number == len(edges) - 1
        if low.strip() and (opens or first_of(low, phrases("acts", "wishes")) or (last and asks)):
            break
        end = cut
        begins = goes_on
    words = _without_openers(words_of(text[start:end]))
    return ((start, end),) if words and not _is_greeting(words) else ()


# An answer is completed with its question: "What do you do?" "A nurse." becomes "I am a nurse".
#
# The question is turned into the opening of a statement, and the answer completes that statement. Only a short fragment
# is completed, and only with the question at the end of the previous message.


_LONGEST_ANSWER = 12
"""The maximum words of an answer that is completed; a longer answer states something by itself."""

_LONGEST_QUESTION = 300
"""The maximum characters of a question that completes an answer; a longer one describes a task."""


@dataclass(frozen=True, slots=True)
class Completed:
    """An answer as a statement, with the offsets of the answer in the message.

    From ``offset`` on, ``text`` has the answer's own words. If ``offset`` is the length of
    ``text``, all words come from the question, as for "Do you like tea?" "Yes.".
    """

    text: str
    offset: int
    start: int
    stop: int
    question: str


def last_question(text: str) -> str | None:
    """Return the question at the end of a message, or None without a question.

    Parameters
    ----------
    text
        The message.

    Returns
    -------
    str or None
        The last sentence of the message if it is a question, otherwise None.

    Examples
    --------
    >>> last_question("Nice to meet you. What do you do?")
    'What do you do?'
    """
    last = None
    for start, stop in sentence_spans(text[-2_000:]):
        sentence = text[-2_000:][start:stop].strip()
        if sentence:
            last = sentence
    if last is None or len(last) > _LONGEST_QUESTION or not last.rstrip("\"')*_ ").endswith("?"):
        return None
    return last


def complete_answer(question: str, answer: str) -> Completed | None:
    """Return the statement that a question and its answer form together, or None.

    Parameters
    ----------
    question
        The question at the end of the previous message, by another speaker.
    answer
        The message that contains the answer.

    Returns
    -------
    Completed or None
        The statement, in the first person.

    Examples
    --------
    >>> complete_answer("What is your profession?", "A nurse.").text
    'I am a nurse.'
    >>> complete_answer("Where do you live?", "In Rome, with my cat.").text
    'I live in Rome, with my cat.'
    >>> complete_answer("Do you like tea?", "Yes, very much!").text
    'I like tea'
    """
    span = _first_sentence(answer)
    if span is None:
        return None
    start, stop = span
    answer_text = answer[start:stop]
    words = words_of(answer_text)
    question_words = _question_words(question)
    if not words or not question_words or len(words) > _LONGEST_ANSWER:
        return None
    begins = first_of(padded(words), _yes_phrases())
    if begins is not None:
        return _complete_yes(question_words, answer_text, words, begins, start, stop, question)
    if words[0] in _no_words() or words[0].partition("'")[0] in vocabulary(
        "answers", "own-statement"
    ):
        return None
    start += _measure_opening(answer_text)
    answer_text = answer[start:stop]
    words = words_of(answer_text)
    if (
        not words
        or words[0] in table("answers", "no-values")
        or words[0].partition("'")[0] in vocabulary("answers", "own-statement")
    ):
        return None
    question_words = [word for word in question_words if word != "again"]
    return _complete_wh_question(question_words, answer_text, start, stop, question)


def _measure_opening(answer: str) -> int:
    """Return the length in characters of the interjections before an answer."""
    cut = 0
    for token in tokenize(answer):
        if token.low not in table("answers", "interjections") and _CRY.fullmatch(token.low) is None:
            return token.start
        cut = token.stop
    return cut


_CRY = re.compile(
    r"(?:ha|ah){2,}h?|[aou]+h+|h+m+|m+h+m*h*m*|u+h*m+|[a-z]*([a-z])\1{2,}[a-z]*|lo+l|x+d"
)
"""A pattern of cries and drawn-out words, such as "hmmmm", "mhmh", "ooooh" and "yesss"."""


def _first_sentence(text: str) -> tuple[int, int] | None:
    """Return the span of a text's first sentence, or None if it is a question or the text has no sentence."""
    for start, stop in sentence_spans(text):
        sentence = text[start:stop]
        if any(map(str.isalnum, sentence)):
            lead = len(sentence) - len(sentence.lstrip())
            if sentence.rstrip().endswith("?"):
                return None
            return start + lead, stop
    return None


def _question_words(question: str) -> list[str]:
    """Return a question's words from the question word on, with contractions expanded.

    The result is [] if no question word is near the start.
    """
    low = question.lower().replace("\u2019", "'")
    for short, whole in (
        ("what's", "what is"),
        ("where's", "where is"),
        ("who's", "who is"),
        ("how's", "how is"),
    ):
        low = re.sub(rf"\b{short}\b", whole, low)
    tail = re.split(r"[,;:\u2014]| - | but | and ", low)[-1]
    words = words_of(tail)
    if not words or words[0] not in vocabulary("answers", "question-starts"):
        words = words_of(low)
    position = next(
        (at for at, word in enumerate(words) if word in vocabulary("answers", "question-starts")),
        None,
    )
    return [] if position is None or position > _MOST_BEFORE else words[position:]


# The maximum words before the question word ("and tell me, where").
_MOST_BEFORE = 4


def _complete_yes(
    question_words: Sequence[str],
    answer: str,
    words: Sequence[str],
    yes: str,
    start: int,
    stop: int,
    question: str,
) -> Completed | None:
    """Return the statement that a question forms with an answer such as "Yes, I do", or None.

    Words after the yes may complete it: "Do you have any pets?" "Yes, a dog". Only questions to "you" form a
    statement.
    """
    after = words[len(yes.split()) :]
    verb = {"do": "I", "are": "I am", "have": "I have"}.get(question_words[0])
    if verb is None or len(question_words) < 3 or question_words[1] != "you":
        return None
    rest = [
        _to_first_person(word)
        for word in question_words[2:]
        if word not in ("already", "ever", "also", "really", "still", "currently")
    ]
    vague = next(
        (at for at, word in enumerate(rest) if word in ("any", "anything", "anyone", "some")), None
    )
    fresh = [word for word in after if word not in table("answers", "filling")]
    if vague is not None:
        if not fresh or after[0] in ("i", "we", "my", "it", "but", "and"):
            return None
        own = answer[answer.lower().find(after[0], len(yes.strip())) :]
        text = f"{verb} {' '.join(rest[:vague])} {own}"
        return Completed(text, len(text) - len(own), start, stop, question)
    if fresh or "or" in rest:
        return None
    text = f"{verb} {_restore_capitals(rest, question)}"
    return Completed(text, len(text), start, stop, question)


def _restore_capitals(words: Sequence[str], question: str) -> str:
    """Return words of a question with their original capitals."""
    tokens = (question[token.start : token.stop] for token in tokenize(question))
    written = {word.lower(): word for word in tokens if word[0].isupper()}
    return " ".join(written.get(word, word) for word in words)


def _complete_wh_question(
    question_words: Sequence[str], answer: str, start: int, stop: int, question: str
) -> Completed | None:
    """Return the statement that a wh-question, such as "What is your job?", forms with its answer, or None."""
    begins = _statement_opening(list(question_words))
    if begins is None:
        return None
    first = words_of(answer)[0]
    if begins == "I am" and first not in (
        "a",
        "an",
        "the",
        "retired",
        "unemployed",
        "self-employed",
    ):
        begins = "I work as"
    last = begins.rsplit(" ", 1)[-1]
    if first in _PREPOSITIONS and last in _PREPOSITIONS:
        begins = begins.rsplit(" ", 1)[0]
    if first in ("as", "because", "since", "yesterday", "last") or first in (
        "that",
        "this",
        "these",
        "those",
    ):
        return None
    lowered = vocabulary("answers", "lowered")
    own = (answer[0].lower() + answer[1:]) if first in lowered else answer
    text = f"{begins} {own}"
    return Completed(text, len(begins) + 1, start, stop, question)


# A preposition at the start of an answer replaces the one that ends the opening: "I live in" + "near Rome".
_PREPOSITIONS = frozenset(("in", "at", "on", "for", "from", "with", "near"))


def _statement_opening(words: list[str]) -> str | None:
    """Return the words that begin a question's answer, or None for other questions."""
    low = " ".join(words)
    for phrase, begins in lexicon()["answers"]["openings"].items():
        if low == phrase or low.startswith(phrase + " "):
            return str(begins)
    if words[:1] == ["what"] and len(words) >= 4 and words[1] == "is" and words[2] == "your":
        return "My " + " ".join(words[3:]) + " is"
    if words[:3] == ["who", "is", "your"] and len(words) >= 4:
        return "My " + " ".join(words[3:]) + " is"
    if "you" in words[2:4] and words[0] in ("what", "which", "who") and "do" in words[1:4]:
        verb = words[words.index("you") + 1 :]
        verb = [
            _to_first_person(word)
            for word in verb
            if word not in ("usually", "mostly", "currently", "normally")
        ]
        return "I " + " ".join(verb) if verb and verb != ["do"] else None
    return None


def _to_first_person(word: str) -> str:
    """Return the first-person form of a second-person pronoun, or the word itself."""
    return {"your": "my", "you": "me", "yourself": "myself", "yours": "mine"}.get(word, word)


# Built once. Otherwise the phrases would be padded for every answer.
@cache
def _yes_phrases() -> tuple[str, ...]:
    """Return the phrases that answer a question in the affirmative."""
    return phrases("answers", "yes")


# Built once, because it is looked up for every answer.
@cache
def _no_words() -> frozenset[str]:
    """Return the words that answer a question in the negative."""
    return frozenset(lexicon()["answers"]["no"])
