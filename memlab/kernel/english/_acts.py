"""What kind of act each sentence of a message is: a statement, a question, a greeting, a wish, an order ...

A sentence of chat often holds two acts ("I'm a nurse, how do I ...?"), so that each sentence also says which part of it
states something. The tables are ``acts`` in ``english.toml``. Everything takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from memlab.kernel.english._foreign import without_quotations
from memlab.kernel.english._lexicon import first_of, holds, padded, phrases, vocabulary
from memlab.kernel.english._sentences import sentence_spans
from memlab.kernel.english._tokens import words_of

__all__ = ["Act", "Person", "Sentence", "read_sentences", "speech_act", "subject_person"]

Act = Literal["statement", "question", "greeting", "reaction", "wish", "order", "quotation", "supposition"]
"""What a sentence does; "reaction": thanks, praise, agreement; "supposition": a condition or what is imagined."""

Person = Literal["first", "second", "third"]
"""Of whom a sentence speaks: its speaker, the listener, or anybody or anything else."""

_LONGEST_REACTION = 14
"""Words up to which a sentence that opens with thanks, praise or agreement is no more than that."""

_MOST_LEFT = 2
"""Words next to a greeting, such as a name."""

_MOST_OPENERS = 4
_BREAK = re.compile(r"[,;:\u2013\u2014]|\s-\s|(?<=\s)(?:and|but|so|or|because)(?=\s)", re.IGNORECASE)
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
    if found is None or (found["opener"] or "").strip(" ,!").lower() not in {"", *vocabulary("acts", "openers")}:
        return sentence
    if found["name"].lower() in vocabulary("acts", "openers") | vocabulary("extraction", "no-names"):
        return sentence
    return (found["opener"] or "") + " " + sentence[found.end() :]


def _without_openers(words: list[str]) -> list[str]:
    place = 0
    while place < min(len(words), _MOST_OPENERS) and words[place] in vocabulary("acts", "openers"):
        place += 1
    return words[place:]


@cache
def _settings() -> frozenset[str]:
    return vocabulary("extraction", "settings", "openers") | {"last", "this", "yesterday", "today", "since", "when"}


def _greets(words: list[str]) -> bool:
    """Whether a sentence greets and says hardly more: two words, such as a name."""
    left, greeted = padded(words), False
    while (greeting := first_of(left, phrases("greetings", "anywhere", "of-sentences"))) is not None:
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
    exclaims = opening.strip() in ("what", "how") and bool(rest) and rest[0] in vocabulary("acts", "exclaims")
    # "What I like is tea" states; "what do", "what is", "what time" ask
    states = opening.strip() in ("what", "which", "who", "where", "how", "why", "whose") and bool(rest)
    return not exclaims and not (states and rest[0] in vocabulary("acts", "first-person", "third-person"))


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
        opens = first_of(low, phrases("acts", "later-questions")) or first_of(low, phrases("acts", "suppositions"))
        last = place == len(edges) - 1
        if low.strip() and (opens or first_of(low, phrases("acts", "wishes")) or (last and asks)):
            break
        end = cut
        begins = goes_on
    said = _without_openers(words_of(text[start:end]))
    return ((start, end),) if said and not _greets(said) else ()
