"""Whether an event that somebody tells of matters for longer than the day: a move, a trip, a job, and no lunch.

An event is kept for what it is (a verb of life, a post, an illness), for a date, or for what it names; what belongs to
the day ("this morning", "a quiz", "I saw a video") is not. The lists stand in ``english.toml`` under ``durable``.
"""

from __future__ import annotations

import re

from memlab.english import holds, phrases, proper_names, vocabulary

__all__ = ["is_durable_event"]

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
    if holds(low, phrases("durable", "of-the-day")) or not vocabulary("durable", "trifles").isdisjoint(words):
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
    light = vocabulary("negation", "fillers") | vocabulary("acts", "openers") | vocabulary("extraction", "past-tenses")
    for word in words:
        if word in _PRONOUNS and content < _BEFORE_A_PRONOUN:
            return True
        content += word not in light and not word.endswith("ed")
    return False


_PRONOUNS = frozenset(
    ("it", "them", "him", "he", "she", "her", "they", "there", "these", "those", "his", "their", "that", "this")
)
