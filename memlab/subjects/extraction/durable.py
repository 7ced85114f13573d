"""Whether a sentence tells of an event that matters for longer than the day: a move, a trip, a job, and no lunch.

An event is kept for what it is (a verb of life, a post, an illness), for a date, or for what it names; what belongs to
the day ("this morning", "a quiz", "I saw a video") is not. The lists stand in ``english.toml`` under ``durable``.
"""

from __future__ import annotations

import re

from memlab.kernel.english import first_of, holds, padded, phrases, vocabulary, words_of
from memlab.subjects.reading.names import proper_names

__all__ = ["has_happened", "is_durable_event", "is_hypothetical"]


_DATE = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,2}\b|\b(?:19|20)\d\d\b|\$\d|\b\d{1,3}%",
    re.IGNORECASE,
)
_BEFORE_A_PRONOUN = 2
"""Words with content before a pronoun, among which is what it stands for."""


def is_durable_event(said: str, low: str) -> bool:
    """Return whether a sentence tells of an event that is worth knowing in weeks.

    Parameters
    ----------
    said
        The sentence as written.
    low
        The sentence as ``padded`` made it.

    Returns
    -------
    bool
        Whether the event lasts, has a date or names something, and stands alone.

    Examples
    --------
    >>> [is_durable_event(one, f" {one.lower()} ") for one in ("I moved to Rome in May", "I just ate lunch today")]
    [True, False]
    """
    words = low.split()
    cut = words[-1] in vocabulary("durable", "unfinished")
    if words[0] in vocabulary("durable", "goes-on") or cut or _begins_negated(low):
        return False
    dated = _DATE.search(said) is not None
    strong = holds(low, phrases("durable", "of-life"))
    if not dated and (holds(low, phrases("durable", "of-the-chat")) or _points_outside(words)):
        return False
    if dated or strong:
        return True
    if holds(low, phrases("durable", "of-the-day")) or not vocabulary(
        "durable", "trifles"
    ).isdisjoint(words):
        return False
    acts = not vocabulary("durable", "acts").isdisjoint(words)
    went = not vocabulary("durable", "weak-acts").isdisjoint(words)
    long_ago = holds(low, phrases("durable", "long-times"))
    named = bool(proper_names(said))
    return (acts and (named or long_ago or len(words) >= _ENOUGH)) or (went and (named or long_ago))


_ENOUGH = 9
"""Words of a sentence that say what was done, where nothing is named."""


def _begins_negated(low: str) -> bool:
    """Whether what is told did not happen: "I haven't seen", "I was going to"."""
    return holds(" " + " ".join(low.split()[:_MOST_BEFORE]) + " ", phrases("durable", "not-done"))


_MOST_BEFORE = 7


def _points_outside(words: list[str]) -> bool:
    """Whether a pronoun comes before anything that it could stand for."""
    content = 0
    light = (
        vocabulary("negation", "fillers")
        | vocabulary("acts", "openers")
        | vocabulary("extraction", "past-tenses")
    )
    for word in words:
        if word in _PRONOUNS and content < _BEFORE_A_PRONOUN:
            return True
        content += word not in light and not word.endswith("ed")
    return False


_PRONOUNS = frozenset(
    (
        "it",
        "them",
        "him",
        "he",
        "she",
        "her",
        "they",
        "there",
        "these",
        "those",
        "his",
        "their",
        "that",
        "this",
    )
)


def has_happened(low: str) -> bool:
    """Return whether a sentence tells of what happened: no opinion, habit or exercise, and whole by itself.

    Parameters
    ----------
    low
        The sentence as ``padded`` made it.
    """
    if holds(low, phrases("extraction", "no-events")) or first_of(
        _after_openers(low), phrases("extraction", "opinions")
    ):
        return False
    if _DANGLING.search(low) or _POINTS_BACK.search(_after_openers(low)) or _EXERCISE.search(low):
        return False
    just = _JUST.search(low)
    if just is None or holds(low, phrases("utterance", "times")):
        return True
    verb = just["verb"]
    return verb.endswith("ed") or verb in vocabulary("extraction", "past-tenses")


def _after_openers(low: str) -> str:
    """A padded sentence without what only opens it."""
    words = low.split()
    openers = vocabulary("acts", "openers") | vocabulary("negation", "fillers")
    at = next(
        (n for n, word in enumerate(words) if word not in openers or word in ("i", "we")),
        len(words),
    )
    return padded(words[at:])


_JUST = re.compile(r" (?:i|we) (?:\w+ly )?just (?:\w+ly |also |now |recently )*(?P<verb>[\w']+) ")
"""After "just" a present tense says what somebody does again and again: "I just leave my camera at home"."""

_POINTS_BACK = re.compile(
    r"^ (?:i|we|i've|we've) (?:(?:have|had|just|first|also|never|only|\w+ly) )*[\w']+ "
    r"(?:to \w+ )?(?:out )?(?:about |of |like )?"
    r"(?:one|two|three|four|\d+|\d+ or \d+|it|them|him|her|those|these|this|there)"
    r"(?: (?:and|but|so|because|when|on|in|at|for|with|to|a|as|until|once|last|yesterday|today|recently)"
    r"| (?:from|is|was|like)| $)(?: |$)"
)
"""The object right after its verb stands in another sentence: "I started following him when", "I tried it on"."""

_EXERCISE = re.compile(
    r" (?:solve|calculate|compute|derive|prove) |\bp \w{1,2} ?\b.* equals | formula "
)
"""A step of an exercise, and no event of a life."""

_DANGLING = re.compile(
    r" (?:how|what|where) to \w+ (?:it|this|that|them) $"
    r"|^ (?:i|we) (?:first |just |finally )?"
    r"(?:saw|watched|read|tried|made|found|got|heard|bought) (?:it|this|that|them) "
)
"""What it tells of stands in another sentence: "I first watched it in May", "I taught people how to make this"."""


# Whether an answer is in earnest: one to "If you could ..." says nothing about its speaker.


_LONGEST_QUESTION = 600


def is_hypothetical(question: str) -> bool:
    """Return whether a message asks what would be, and not what is.

    Parameters
    ----------
    question
        The message just before an answer.

    Returns
    -------
    bool
        Whether the message asks, and supposes something.

    Examples
    --------
    >>> [is_hypothetical(one) for one in ("If you could fly, where to?", "Where do you live?")]
    [True, False]
    """
    if "?" not in question and not question.lower().lstrip().startswith(_SUPPOSES):
        return False
    return holds(
        padded(words_of(question[-_LONGEST_QUESTION:])), phrases("answers", "hypothetical")
    )


_SUPPOSES = ("if you", "what if", "imagine", "pretend", "suppose", "would you rather")
