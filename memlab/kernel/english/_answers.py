"""An answer read together with the question before it: "What do you do?" "A nurse." says "I am a nurse".

The question's own words are turned into the beginning of a statement, and the answer completes it. Only a short answer
that states nothing by itself is completed, and only by the question that ends the message just before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from memlab.kernel.english._lexicon import first_of, lexicon, padded, phrases, table
from memlab.kernel.english._sentences import sentence_spans
from memlab.kernel.english._tokens import tokenize, words_of

__all__ = ["Completed", "complete_answer", "last_question"]

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
    if not words or words[0] in table("answers", "no-values") or words[0].partition("'")[0] in _OWN_STATEMENT:
        return None
    asked = [word for word in asked if word != "again"]
    return _filled(asked, said, start, stop, question)


_OWN_STATEMENT = frozenset(("i", "we", "my", "our", "it", "that", "you", "what", "why", "how", "let", "there", "this"))
"""A sentence that begins so states something by itself, or asks back."""


def _opening_length(said: str) -> int:
    """Characters of what only opens an answer: "Haha, honestly", "Hmmm ..."."""
    cut = 0
    for token in tokenize(said):
        if token.low not in table("answers", "interjections") and _CRY.fullmatch(token.low) is None:
            return token.start
        cut = token.stop
    return cut


_CRY = re.compile(r"(?:ha|ah){2,}h?|[aou]+h+|h+m+|m+h+m*h*m*|u+h*m+|[a-z]*([a-z])\1{2,}[a-z]*|lo+l|x+d")
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
    for short, whole in (("what's", "what is"), ("where's", "where is"), ("who's", "who is"), ("how's", "how is")):
        low = re.sub(rf"\b{short}\b", whole, low)
    tail = re.split(r"[,;:\u2014]| - | but | and ", low)[-1]
    words = words_of(tail)
    if not words or words[0] not in _STARTS:
        words = words_of(low)
    place = next((at for at, word in enumerate(words) if word in _STARTS), None)
    return [] if place is None or place > _MOST_BEFORE else words[place:]


_MOST_BEFORE = 4
_STARTS = frozenset(("what", "where", "which", "who", "how", "when", "do", "are", "have", "did", "is"))


def _affirmed(
    asked: Sequence[str], said: str, words: Sequence[str], yes: str, start: int, stop: int, question: str
) -> Completed | None:
    """A yes: the question turned round; what follows the yes completes "Do you have any pets?" "Yes, a dog"."""
    after = words[len(yes.split()) :]
    verb = {"do": "I", "are": "I am", "have": "I have"}.get(asked[0])
    if verb is None or len(asked) < 3 or asked[1] != "you":
        return None
    rest = [
        _mine(word) for word in asked[2:] if word not in ("already", "ever", "also", "really", "still", "currently")
    ]
    vague = next((at for at, word in enumerate(rest) if word in ("any", "anything", "anyone", "some")), None)
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


def _filled(asked: Sequence[str], said: str, start: int, stop: int, question: str) -> Completed | None:
    """A wh-question turned into the beginning of a statement, and the fragment behind it."""
    begins = _beginning(list(asked))
    if begins is None:
        return None
    first = words_of(said)[0]
    if begins == "I am" and first not in ("a", "an", "the", "retired", "unemployed", "self-employed"):
        begins = "I work as"
    last = begins.rsplit(" ", 1)[-1]
    if first in _PREPOSITIONS and last in _PREPOSITIONS:
        begins = begins.rsplit(" ", 1)[0]
    if first in ("as", "because", "since", "yesterday", "last") or first in ("that", "this", "these", "those"):
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
        verb = [_mine(word) for word in verb if word not in ("usually", "mostly", "currently", "normally")]
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
