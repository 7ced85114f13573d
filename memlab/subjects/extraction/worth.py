"""Whether a value is one that lasts and is whole: no step of a task, no first half of a phrase."""

from __future__ import annotations

import re

from memlab.kernel.english import Token
from memlab.subjects.extraction.asserting import table

__all__ = ["is_cut_short", "is_first_of_two", "lasts", "title_at"]


def title_at(text: str, words: list[Token], at: int, sort: str) -> tuple[str, int] | None:
    """A title in quotation marks right after a verb of taste: "I love \"The Santa Clause\" too"."""
    if sort not in ("taste", "choice", "subject-matter") or not at:
        return None
    found = _TITLE.match(text, words[at - 1].stop)
    return None if found is None else (found["title"].strip(), found.end())


_TITLE = re.compile(r"\s*[\"\u201c](?P<title>[^\"\u201c\u201d\n]{2,60})[\"\u201d]")


def lasts(plan: str, *, said_to_someone: bool) -> bool:
    """Whether a plan, wish or attempt is one of life, and no request or step of a task."""
    words = [word for word in plan.lower().split() if word not in table("adverbs")]
    if not words or words[0] not in table("life-verbs"):
        return said_to_someone and bool(words) and words[0] not in table("asking-verbs") and len(words) > 2
    if words[0] == "apply" and words[1:2] not in (["for"], ["to"]):  # a formula, and no post
        return False
    named = any(part[:1].isupper() or part[:1].isdigit() for part in plan.split()[1:])
    nouns = {word.strip(".,;!") for word in words}
    if "i" in nouns:
        return False
    return named or words[0] not in table("weak-verbs") or not table("life-nouns").isdisjoint(nouns)


_SENTENCES = frozenset(("that's", "who's", "it's", "i'm", "i've", "i'll", "im", "ive", "theyre", "dont", "youre"))


def is_cut_short(value: str) -> bool:
    """Whether a value ends where its sentence cannot: "similes like", "a style that's specifically designed"."""
    words = value.lower().split()
    if "i" in words[1:]:
        return True
    return words[-1] in table("open-ends") or bool(_SENTENCES & set(words)) or value[:1] in "-"


def is_first_of_two(text: str, value: tuple[str, int]) -> bool:
    """Whether a value ends with the first adjective of several: "self-directed, independent learning"."""
    found = _NEXT.match(text, value[1])
    if found is None or value[0].rsplit(" ", 1)[-1][:1].isupper():
        return False
    low, last = found["word"].lower(), value[0].lower().rsplit(" ", 1)[-1]
    goes_on = table("subjects") | table("openers") | table("inverted-verbs") | table("after-comma")
    return low not in goes_on and not last.endswith("s") and not found["word"][0].isupper()


_NEXT = re.compile(r",\s+(?P<word>[^\W\d_][\w'\u2019-]*)\s+[^\W_]")
