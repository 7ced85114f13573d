"""What kind of act each sentence of a message is: a statement, a question, a greeting, a wish, an order ...

A sentence of chat often holds two acts ("I'm a nurse, how do I ...?"), so that each sentence also says which part of it
states something. The tables are ``acts`` in ``english.toml``. Everything takes time in proportion to the text.
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

__all__ = [
    "Act",
    "Completed",
    "Person",
    "Sentence",
    "complete_answer",
    "last_question",
    "read_sentences",
    "speech_act",
    "subject_person",
]


Act = Literal[
    "statement", "question", "greeting", "reaction", "wish", "order", "quotation", "supposition"
]
"""What a sentence does; "reaction": thanks, praise, agreement; "supposition": a condition or what is imagined."""

Person = Literal["first", "second", "third"]
"""Of whom a sentence speaks: its speaker, the listener, or anybody or anything else."""

_LONGEST_REACTION = 14
"""Words up to which a sentence that opens with thanks, praise or agreement is no more than that."""

_MOST_LEFT = 2
"""Words next to a greeting, such as a name."""

_MOST_OPENERS = 4
_BREAK = re.compile(
    r"[,;:\u2013\u2014]|\s-\s|(?<=\s)(?:and|but|so|or|because)(?=\s)", re.IGNORECASE
)
_VOCATIVE = re.compile(r"\s*(?P<opener>[^\W\d_]{1,9},?\s+)?(?P<name>[A-Z][a-z]+)[,!]\s+")
_LIST_MARK = re.compile(r"^\W*(?:[-*\u2022#>]+|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a message.

    Attributes
    ----------
    start, stop
        Its place in the message.
    act
        What it does.
    person
        Of whom its subject speaks, None where it has no subject.
    hedged
        Whether it says that something may be so ("maybe", "I think").
    stated
        The places of the part that states something: all of a statement, the part before the question or the condition
        of a mixed sentence, nothing otherwise.
    """

    start: int
    stop: int
    act: Act
    person: Person | None
    hedged: bool
    stated: tuple[tuple[int, int], ...]


def read_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a message with what each of them does.

    Parameters
    ----------
    text
        A message. Code and quotations within it state nothing; a sentence that holds nothing else is a "quotation".

    Yields
    ------
    Sentence
        The sentences that hold a letter or digit, in order.

    Examples
    --------
    >>> text = "Hi Ada! I moved to Oslo, have you been there? If only it were warmer."
    >>> [(one.act, [text[a:b].strip() for a, b in one.stated]) for one in read_sentences(text)]
    [('greeting', []), ('question', ['I moved to Oslo']), ('wish', [])]
    """
    own = without_quotations(text)
    for start, stop in sentence_spans(own):
        if not any(map(str.isalnum, text[start:stop])):
            continue
        if not any(map(str.isalnum, own[start:stop])):
            yield Sentence(start, stop, "quotation", None, False, ())
            continue
        yield _read(own, start, stop)


def speech_act(sentence: str) -> Act:
    """Return what one sentence does.

    Parameters
    ----------
    sentence
        One sentence, with the mark that ends it. Of several the first decides.

    Returns
    -------
    str
        One of ``Act``; "statement" where nothing else fits.

    Examples
    --------
    >>> [speech_act(one) for one in ("See you for now!", "Do you read any novels now?", "I sold the car")]
    ['greeting', 'question', 'statement']
    >>> [speech_act(one) for one in ("Thanks a lot!", "I hope it rains", "Send me the file", "If I lived in Rome ...")]
    ['reaction', 'wish', 'order', 'supposition']
    """
    return next((one.act for one in read_sentences(sentence)), "statement")


def subject_person(sentence: str) -> Person | None:
    """Return of whom a sentence speaks, by its first pronoun or noun.

    Parameters
    ----------
    sentence
        One sentence or clause.

    Returns
    -------
    str or None
        "first" for I, we and what is mine, "second" for you and yours, "third" for anybody or anything else, None for a
        sentence without a subject.

    Examples
    --------
    >>> [subject_person(one) for one in ("My dog died", "You moved", "Ada lives here", "Well, I sold it", "Wow!")]
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
    if holds(low, (" i ", " i'm ", " i've ", " my ", " we ")) and words[0] in _settings():
        return "first"
    return "third"


def _read(text: str, start: int, stop: int) -> Sentence:
    sentence = text[start:stop]
    mark = _LIST_MARK.match(sentence)
    words = words_of(_without_vocative(sentence[mark.end() :] if mark else sentence))
    low = padded(words)
    asks = sentence.rstrip(" \n\"'\u201d*_)").endswith("?")
    hedged = holds(low, phrases("acts", "hedges"))
    person = subject_person(" ".join(words))
    if _greets(words):
        return Sentence(start, stop, "greeting", None, False, ())
    kept = padded(_without_openers(words))
    if asks or _begins_question(kept):
        return Sentence(start, stop, "question", person, hedged, _stated(text, start, stop))
    if first_of(low, phrases("acts", "wishes")) or first_of(kept, phrases("acts", "wishes")):
        return Sentence(start, stop, "wish", person, hedged, ())
    if first_of(kept, phrases("acts", "suppositions")):
        return Sentence(start, stop, "supposition", person, hedged, ())
    if _reacts(low, kept, len(words)):
        return Sentence(start, stop, "reaction", person, hedged, ())
    if _orders(kept):
        return Sentence(start, stop, "order", "second", hedged, ())
    stated = _stated(text, start, stop)
    return Sentence(start, stop, "statement" if stated else "wish", person, hedged, stated)


def _without_vocative(sentence: str) -> str:
    """A sentence without the name that it is addressed to: "Wow Jon, same here" as "Wow, same here"."""
    found = _VOCATIVE.match(sentence)
    if found is None or (found["opener"] or "").strip(" ,!").lower() not in {
        "",
        *vocabulary("acts", "openers"),
    }:
        return sentence
    if found["name"].lower() in vocabulary("acts", "openers") | vocabulary(
        "extraction", "no-names"
    ):
        return sentence
    return (found["opener"] or "") + " " + sentence[found.end() :]


def _without_openers(words: list[str]) -> list[str]:
    place = 0
    while place < min(len(words), _MOST_OPENERS) and words[place] in vocabulary("acts", "openers"):
        place += 1
    return words[place:]


@cache
def _settings() -> frozenset[str]:
    return vocabulary("extraction", "settings", "openers") | {
        "last",
        "this",
        "yesterday",
        "today",
        "since",
        "when",
    }


def _greets(words: list[str]) -> bool:
    """Whether a sentence greets and says hardly more: two words, such as a name."""
    left, greeted = padded(words), False
    while (
        greeting := first_of(left, phrases("greetings", "anywhere", "of-sentences"))
    ) is not None:
        left, greeted = left[len(greeting) - 1 :], True
        while (more := first_of(left, phrases("acts", "addressing"))) is not None:
            left = left[len(more) - 1 :]
    if not greeted:
        opened = _without_openers(words)
        return opened != words and bool(opened) and _greets(opened)
    return len(left.split()) <= _MOST_LEFT


def _begins_question(low: str) -> bool:
    opening = first_of(low, phrases("acts", "questions"))
    if opening is None:
        return False
    rest = low[len(opening) :].split(None, 1)
    exclaims = (
        opening.strip() in ("what", "how")
        and bool(rest)
        and rest[0] in vocabulary("acts", "exclaims")
    )
    # "What I like is tea" states; "what do", "what is", "what time" ask
    states = opening.strip() in ("what", "which", "who", "where", "how", "why", "whose") and bool(
        rest
    )
    return not exclaims and not (
        states and rest[0] in vocabulary("acts", "first-person", "third-person")
    )


def _reacts(low: str, kept: str, count: int) -> bool:
    if count > _LONGEST_REACTION:
        return False
    if not kept.strip():
        return True
    table = phrases("acts", "reactions")
    opening = first_of(kept, table) or first_of(low, table)
    if opening is None:
        return False
    rest = low[low.find(opening) + len(opening) - 1 :] if opening in low else kept
    if opening.strip() in vocabulary("acts", "light-reactions") and len(rest.split()) > 2:
        # "Yeah, I moved" tells; "Yeah, that's so true" does not
        return first_of(padded(_without_openers(rest.split())), table) is not None
    return not _tells_of_oneself(rest)


def _tells_of_oneself(low: str) -> bool:
    """Whether somebody goes on to tell of what they did: "Thanks, I moved last week"."""
    return holds(low, phrases("utterance", "events")) or holds(low, phrases("utterance", "times"))


def _orders(low: str) -> bool:
    first, _, rest = low.strip().partition(" ")
    if first in vocabulary("utterance", "doubtful-orders"):
        return rest.partition(" ")[0] in vocabulary("utterance", "objects")
    if first not in vocabulary("utterance", "orders") and first not in vocabulary("acts", "orders"):
        return False
    follows = rest.partition(" ")[0]
    return follows not in ("is", "was", "are", "has", "were", "will", "of")


def _stated(text: str, start: int, stop: int) -> tuple[tuple[int, int], ...]:
    """The clauses of a sentence before a question, a wish or a condition begins; none where it begins with one."""
    asks = text[start:stop].rstrip(" \n\"'\u201d*_)").endswith("?")
    begins = start
    end = start
    pieces = [match.span() for match in _BREAK.finditer(text, start, stop)]
    edges = [*pieces, (stop, stop)]
    for place, (cut, goes_on) in enumerate(edges):
        low = padded(_without_openers(words_of(text[begins:cut])))
        opens = first_of(low, phrases("acts", "later-questions")) or first_of(
            low, phrases("acts", "suppositions")
        )
        last = place == len(edges) - 1
        if low.strip() and (opens or first_of(low, phrases("acts", "wishes")) or (last and asks)):
            break
        end = cut
        begins = goes_on
    said = _without_openers(words_of(text[start:end]))
    return ((start, end),) if said and not _greets(said) else ()


# An answer read together with the question before it: "What do you do?" "A nurse." says "I am a nurse".
#
# The question's own words are turned into the beginning of a statement, and the answer completes it. Only a short
# answer that states nothing by itself is completed, and only by the question that ends the message just before it.


_LONGEST_ANSWER = 12
"""Words of an answer that may be a fragment."""

_LONGEST_QUESTION = 300


@dataclass(frozen=True, slots=True)
class Completed:
    """An answer as a statement: its text, and where the answer stands in the message.

    ``offset`` is the place in ``text`` from which it is the answer's own words; where it is the length of ``text``, all
    content comes from the question ("Do you like tea?" "Yes.").
    """

    text: str
    offset: int
    start: int
    stop: int
    question: str


def last_question(text: str) -> str | None:
    """Return the question with which a message ends, None if it ends otherwise.

    Parameters
    ----------
    text
        The message.

    Returns
    -------
    str or None
        The last sentence where that is a question.

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
    """Return an answer as the statement that it makes with its question; None where it makes none.

    Parameters
    ----------
    question
        The question just before, asked by somebody else.
    answer
        The message that answers.

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
    said = answer[start:stop]
    words = words_of(said)
    asked = _asked(question)
    if not words or not asked or len(words) > _LONGEST_ANSWER:
        return None
    begins = first_of(padded(words), _yes())
    if begins is not None:
        return _affirmed(asked, said, words, begins, start, stop, question)
    if words[0] in _no() or words[0].partition("'")[0] in _OWN_STATEMENT:
        return None
    start += _opening_length(said)
    said = answer[start:stop]
    words = words_of(said)
    if (
        not words
        or words[0] in table("answers", "no-values")
        or words[0].partition("'")[0] in _OWN_STATEMENT
    ):
        return None
    asked = [word for word in asked if word != "again"]
    return _filled(asked, said, start, stop, question)


_OWN_STATEMENT = frozenset(
    ("i", "we", "my", "our", "it", "that", "you", "what", "why", "how", "let", "there", "this")
)
"""A sentence that begins so states something by itself, or asks back."""


def _opening_length(said: str) -> int:
    """Characters of what only opens an answer: "Haha, honestly", "Hmmm ..."."""
    cut = 0
    for token in tokenize(said):
        if token.low not in table("answers", "interjections") and _CRY.fullmatch(token.low) is None:
            return token.start
        cut = token.stop
    return cut


_CRY = re.compile(
    r"(?:ha|ah){2,}h?|[aou]+h+|h+m+|m+h+m*h*m*|u+h*m+|[a-z]*([a-z])\1{2,}[a-z]*|lo+l|x+d"
)
"""A cry of vowels and "h" or "m", or a drawn-out word: "hmmmm", "mhmh", "ooooh", "yesss"."""


def _first_sentence(text: str) -> tuple[int, int] | None:
    for start, stop in sentence_spans(text):
        said = text[start:stop]
        if any(map(str.isalnum, said)):
            lead = len(said) - len(said.lstrip())
            if said.rstrip().endswith("?"):
                return None
            return start + lead, stop
    return None


def _asked(question: str) -> list[str]:
    """The words of a question from its question word on, contractions taken apart."""
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
    if not words or words[0] not in _STARTS:
        words = words_of(low)
    place = next((at for at, word in enumerate(words) if word in _STARTS), None)
    return [] if place is None or place > _MOST_BEFORE else words[place:]


_MOST_BEFORE = 4
_STARTS = frozenset(
    ("what", "where", "which", "who", "how", "when", "do", "are", "have", "did", "is")
)


def _affirmed(
    asked: Sequence[str],
    said: str,
    words: Sequence[str],
    yes: str,
    start: int,
    stop: int,
    question: str,
) -> Completed | None:
    """A yes: the question turned round; what follows the yes completes "Do you have any pets?" "Yes, a dog"."""
    after = words[len(yes.split()) :]
    verb = {"do": "I", "are": "I am", "have": "I have"}.get(asked[0])
    if verb is None or len(asked) < 3 or asked[1] != "you":
        return None
    rest = [
        _mine(word)
        for word in asked[2:]
        if word not in ("already", "ever", "also", "really", "still", "currently")
    ]
    vague = next(
        (at for at, word in enumerate(rest) if word in ("any", "anything", "anyone", "some")), None
    )
    fresh = [word for word in after if word not in table("answers", "filling")]
    if vague is not None:
        if not fresh or after[0] in ("i", "we", "my", "it", "but", "and"):
            return None
        own = said[said.lower().find(after[0], len(yes.strip())) :]
        text = f"{verb} {' '.join(rest[:vague])} {own}"
        return Completed(text, len(text) - len(own), start, stop, question)
    if fresh or "or" in rest:
        return None
    text = f"{verb} {_as_written(rest, question)}"
    return Completed(text, len(text), start, stop, question)


def _as_written(words: Sequence[str], question: str) -> str:
    """Words of a question with the capitals that they have there."""
    found = (question[token.start : token.stop] for token in tokenize(question))
    written = {word.lower(): word for word in found if word[0].isupper()}
    return " ".join(written.get(word, word) for word in words)


def _filled(
    asked: Sequence[str], said: str, start: int, stop: int, question: str
) -> Completed | None:
    """A wh-question turned into the beginning of a statement, and the fragment behind it."""
    begins = _beginning(list(asked))
    if begins is None:
        return None
    first = words_of(said)[0]
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
    lowered = {"a", "an", "the", "in", "at", "on", "for", "from", "as"}
    own = (said[0].lower() + said[1:]) if first in lowered else said
    text = f"{begins} {own}"
    return Completed(text, len(begins) + 1, start, stop, question)


_PREPOSITIONS = frozenset(("in", "at", "on", "for", "from", "with", "near"))


def _beginning(asked: list[str]) -> str | None:
    """How the statement begins that answers a question."""
    low = " ".join(asked)
    for phrase, begins in lexicon()["answers"]["openings"].items():
        if low == phrase or low.startswith(phrase + " "):
            return str(begins)
    if asked[:1] == ["what"] and len(asked) >= 4 and asked[1] == "is" and asked[2] == "your":
        return "My " + " ".join(asked[3:]) + " is"
    if asked[:3] == ["who", "is", "your"] and len(asked) >= 4:
        return "My " + " ".join(asked[3:]) + " is"
    if "you" in asked[2:4] and asked[0] in ("what", "which", "who") and "do" in asked[1:4]:
        verb = asked[asked.index("you") + 1 :]
        verb = [
            _mine(word)
            for word in verb
            if word not in ("usually", "mostly", "currently", "normally")
        ]
        return "I " + " ".join(verb) if verb and verb != ["do"] else None
    return None


def _mine(word: str) -> str:
    return {"your": "my", "you": "me", "yourself": "myself", "yours": "mine"}.get(word, word)


@cache
def _yes() -> tuple[str, ...]:
    return phrases("answers", "yes")


@cache
def _no() -> frozenset[str]:
    return frozenset(lexicon()["answers"]["no"])
