"""Durable events: whether a sentence reports a move or a job, rather than lunch.

An event is durable by its verb (of a change of life, a post or an illness), by a date, or by a
name. Events of the day ("this morning", "a quiz", "I saw a video") are not durable. The lists are
under ``durable`` in ``english.toml``.
"""

from __future__ import annotations

import re

from memlab.kernel.english import first_of, holds, padded, phrases, vocabulary, words_of
from memlab.subjects.reading.names import proper_names

# A date: a month with a day, a year, an amount of money or a percentage.
_DATE = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,2}\b|\b(?:19|20)\d\d\b|\$\d|\b\d{1,3}%",
    re.IGNORECASE,
)
_BEFORE_A_PRONOUN = 2
"""The number of content words before a pronoun from which one of them may be its antecedent."""


def is_durable_event(sentence: str, low: str) -> bool:
    """Return whether a sentence reports an event that stays relevant for weeks.

    Parameters
    ----------
    sentence
        The sentence as written.
    low
        The sentence as padded words in lower case.

    Returns
    -------
    Whether the event lasts, has a date or a name, and is understandable without context.

    Examples
    --------
    >>> is_durable_event("I moved to Rome in May", " i moved to rome in may ")
    True
    >>> is_durable_event("I just ate lunch today", " i just ate lunch today ")
    False
    """
    words = low.split()
    is_cut = words[-1] in vocabulary("durable", "unfinished")
    if words[0] in vocabulary("durable", "goes-on") or is_cut or _begins_negated(low):
        return False
    has_date = _DATE.search(sentence) is not None
    is_life_event = holds(low, phrases("durable", "of-life"))
    if not has_date and (holds(low, phrases("durable", "of-the-chat")) or _refers_outside(words)):
        return False
    if has_date or is_life_event:
        return True
    if holds(low, phrases("durable", "of-the-day")) or not vocabulary(
        "durable", "trifles"
    ).isdisjoint(words):
        return False
    has_act = not vocabulary("durable", "acts").isdisjoint(words)
    has_weak_act = not vocabulary("durable", "weak-acts").isdisjoint(words)
    is_long_ago = holds(low, phrases("durable", "long-times"))
    has_name = bool(proper_names(sentence))
    return (has_act and (has_name or is_long_ago or len(words) >= _ENOUGH)) or (
        has_weak_act and (has_name or is_long_ago)
    )


_ENOUGH = 9
"""The number of words from which a sentence without a name describes an event well enough."""


def _begins_negated(low: str) -> bool:
    """Return whether the first words of a sentence contain a negated event, as in "I haven't seen"."""
    return holds(" " + " ".join(low.split()[:_MOST_BEFORE]) + " ", phrases("durable", "not-done"))


_MOST_BEFORE = 7
"""The number of words at the beginning of a sentence that may negate its event."""


def _refers_outside(words: list[str]) -> bool:
    """Return whether a pronoun occurs before there are enough content words to which it could refer."""
    content = 0
    fillers = (
        vocabulary("negation", "fillers")
        | vocabulary("acts", "openers")
        | vocabulary("extraction", "past-tenses")
    )
    for word in words:
        if word in vocabulary("durable", "pronouns") and content < _BEFORE_A_PRONOUN:
            return True
        content += word not in fillers and not word.endswith("ed")
    return False


def has_happened(low: str) -> bool:
    """Return whether a sentence reports a past event that needs no context.

    Opinions, habits and exercises are not events.

    Parameters
    ----------
    low
        The sentence as padded words in lower case.
    """
    if holds(low, phrases("extraction", "no-events")) or first_of(
        _skip_openers(low), phrases("extraction", "opinions")
    ):
        return False
    if _DANGLING.search(low) or _POINTS_BACK.search(_skip_openers(low)) or _EXERCISE.search(low):
        return False
    just = _JUST.search(low)
    if just is None or holds(low, phrases("utterance", "times")):
        return True
    verb = just["verb"]
    return verb.endswith("ed") or verb in vocabulary("extraction", "past-tenses")


def _skip_openers(low: str) -> str:
    """Return a padded sentence without interjections and fillers before its first other word, "i" or "we"."""
    words = low.split()
    openers = vocabulary("acts", "openers") | vocabulary("negation", "fillers")
    first = next(
        (n for n, word in enumerate(words) if word not in openers or word in ("i", "we")),
        len(words),
    )
    return padded(words[first:])


_JUST = re.compile(r" (?:i|we) (?:\w+ly )?just (?:\w+ly |also |now |recently )*(?P<verb>[\w']+) ")
"""A pattern of the verb after "just".

In the present tense it states a habit: "I just leave my camera at home".
"""

_POINTS_BACK = re.compile(
    r"^ (?:i|we|i've|we've) (?:(?:have|had|just|first|also|never|only|\w+ly) )*[\w']+ "
    r"(?:to \w+ )?(?:out )?(?:about |of |like )?"
    r"(?:one|two|three|four|\d+|\d+ or \d+|it|them|him|her|those|these|this|there)"
    r"(?: (?:and|but|so|because|when|on|in|at|for|with|to|a|as|until|once|last|yesterday|today|recently)"
    r"| (?:from|is|was|like)| $)(?: |$)"
)
"""A pattern of a verb whose object is in another sentence: "I started following him when"."""

_EXERCISE = re.compile(
    r" (?:solve|calculate|compute|derive|prove) |\bp \w{1,2} ?\b.* equals | formula "
)
"""A pattern of a step of an exercise, which is not an event in a life."""

_DANGLING = re.compile(
    r" (?:how|what|where) to \w+ (?:it|this|that|them) $"
    r"|^ (?:i|we) (?:first |just |finally )?"
    r"(?:saw|watched|read|tried|made|found|got|heard|bought) (?:it|this|that|them) "
)
"""A pattern of an event whose object is in another sentence: "I first watched it in May"."""


# Hypothetical questions: an answer to "If you could ..." states nothing about its speaker.


_LONGEST_QUESTION = 600
"""The characters at the end of a message that may contain its question."""


def is_hypothetical(question: str) -> bool:
    """Return whether a message asks a hypothetical question, such as "If you could ...".

    Parameters
    ----------
    question
        The message before an answer.

    Examples
    --------
    >>> is_hypothetical("If you could fly, where to?"), is_hypothetical("Where do you live?")
    (True, False)
    """
    if "?" not in question and not question.lower().lstrip().startswith(_SUPPOSES):
        return False
    return holds(
        padded(words_of(question[-_LONGEST_QUESTION:])), phrases("answers", "hypothetical")
    )


# Beginnings of hypothetical questions that need no question mark.
_SUPPOSES = ("if you", "what if", "imagine", "pretend", "suppose", "would you rather")
