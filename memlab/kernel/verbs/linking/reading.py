"""What a text states, part by part: its sentences without greetings, questions, wishes, quotations and orders.

Linking compares statements. A greeting, a question, a wish, a quotation, a supposition and an order to the listener
state nothing, so nothing ends them and they end nothing. An order that is a rule ("Never log tokens", "Use spaces") is
a statement of how things are done. Each part is read once and has what the comparison of two texts needs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from memlab.kernel.english import Sentence, read_sentences, vocabulary, words_of
from memlab.kernel.verbs.linking.change import Telling
from memlab.kernel.verbs.linking.conflicts import Claim, claim
from memlab.kernel.verbs.linking.negation import Statement
from memlab.kernel.verbs.linking.slots import Slot, read_slots

__all__ = ["Part", "Reading", "read_text"]

MOST_PARTS = 32
"""Parts of a text that are compared with those of another: 1,024 pairs of sets, some 0.2 ms."""

MOST_CHARACTERS = 6_000
"""Characters of a text that are read: a page and a half of talk; what follows is a document."""

MOST_TOLD = 90
"""Words of a text in which a change is looked for: one that states more is a document."""

_PRESUPPOSED = re.compile(
    r"\b(?:the fact that|remind me that|noticed(?: that)?|now that|remember that)\s+", re.IGNORECASE
)
_CUT = re.compile(
    r",\s(?:so|but|and|which|because)\s|;\s|\s-\s|\s(?:but|because|although|whereas)\s|:\s(?=[A-Z])", re.IGNORECASE
)
_LABEL = re.compile(r"^\s*(?:Information Update|Update|Note|News):\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Part:
    """One statement of a text. ``whole``: the text says nothing else; ``hedged``: it may be so."""

    text: str
    person: str | None
    hedged: bool
    whole: bool

    @cached_property
    def statement(self) -> Statement:
        return Statement(self.text)

    @cached_property
    def claim(self) -> Claim | None:
        return claim(self.text)

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        return read_slots(self.text)


@dataclass(frozen=True)
class Reading:
    """A text as its statements. ``states`` says whether it states anything at all."""

    text: str
    parts: tuple[Part, ...]

    @property
    def states(self) -> bool:
        return bool(self.parts)

    @cached_property
    def telling(self) -> Telling | None:
        """Its statements in one, in which a change is looked for; None where it states nothing, or more than one thing."""
        text = " . ".join(part.text for part in self.parts)
        return Telling(text, self.text) if text and text.count(" ") < MOST_TOLD else None

    @property
    def single(self) -> bool:
        """Whether the text is one statement and nothing else."""
        return len(self.parts) == 1 and self.parts[0].whole


@lru_cache(maxsize=4096)
def read_text(text: str) -> Reading:
    """Return the statements of a text.

    >>> [part.text for part in read_text("Hi Ada! I moved to Oslo, have you been there?").parts]
    ['I moved to Oslo']
    >>> read_text("See you for now!").states, read_text("Never log tokens").states
    (False, True)
    """
    found: list[Part] = []
    read = _LABEL.sub("", text[:MOST_CHARACTERS])
    sentences = list(read_sentences(read))
    for one in sentences:
        whole = len(sentences) == 1
        for start, stop in _spans(read, one):
            said = read[start:stop].strip(" \n\t,;:-*\u2022")
            pieces = [said] if len(said) <= 160 else [piece.strip() for piece in _CUT.split(said)]
            alone = whole and len(pieces) == 1 and one.act != "question"
            found += [Part(piece, one.person, one.hedged, alone) for piece in pieces if any(map(str.isalnum, piece))]
            if len(found) >= MOST_PARTS:
                return Reading(text, tuple(found[:MOST_PARTS]))
    return Reading(text, tuple(found))


def _spans(text: str, one: Sentence) -> list[tuple[int, int]]:
    if one.act == "order":
        return [(one.start, one.stop)] if _is_rule(text[one.start : one.stop]) else []
    if one.act == "reaction" and words_of(text[one.start : one.stop])[:1] in (["no"], ["never"]):
        return [(one.start, one.stop)]
    spans = [(start, stop) for start, stop in one.stated]
    if one.act == "question":
        after = max([stop for _, stop in spans], default=one.start)
        told = _PRESUPPOSED.search(text, after, one.stop)
        if told is not None:
            spans.append((told.end(), one.stop))
    return spans


def _is_rule(sentence: str) -> bool:
    """Whether an order says how things are done, and asks nothing of the listener: no me, you, let's, please."""
    words = words_of(sentence)
    asks = vocabulary("linking", "asks-the-listener")
    if not words or not asks.isdisjoint(words):
        return False
    rule = vocabulary("linking", "rule-verbs")
    first = next(
        (word for word in words if word not in ("always", "never", "do", "not", "don't", "please", "only")), ""
    )
    return first in rule or words[0] in ("always", "never")
