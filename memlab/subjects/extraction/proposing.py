"""Proposals of messages: the facts that they state, and what an agent remembers of having heard them.

One message may yield both. "I'm a nurse" is a fact about the user, shared by all agents, and for the agent that heard
it a memory that the user shared who they are. What happened ("yesterday I moved") and what a user puts right or orders
for good ("never log secrets") is a memory in the speaker's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from memlab.english import asserted, first_of, holds, padded, phrases, vocabulary, words_of
from memlab.reading import Message
from memlab.subjects.consolidation.extracting import cut
from memlab.subjects.extraction.asserting import table
from memlab.subjects.extraction.reading import TEAM, USER, Fact, facts_in
from memlab.subjects.extraction.staged import Proposed
from memlab.subjects.facts.fact_rows import fact_text
from memlab.subjects.remembering.detectors import Utterance, corrects, provenance_of, tells_event, utterance
from memlab.subjects.remembering.limits import as_agent

__all__ = ["MOST_TOKENS", "Where", "fact_proposed", "memory_proposed", "proposals"]

MOST_TOKENS = 60
"""Of what somebody said, as a memory keeps it."""

_CONTEXT = 300
"""Characters of what was said around a fact that it keeps."""

_SURE_OF_WORDS = 0.8


@dataclass(frozen=True)
class Where:
    """What every proposal of a call has in common; None for what was not given."""

    project: str | None = None
    session: str | None = None
    agent: str | None = None

    def fields(self, message: Message, number: int, *, own: bool) -> dict[str, Any]:
        """Of a proposal from this message; ``own``: it is the agent's and nobody else's."""
        agents = None if self.agent is None else [as_agent(self.agent)]
        creator = as_agent(self.agent) if own and self.agent is not None else None
        given = {
            "project": self.project,
            "session": self.session,
            "agents": agents,
            "creator": creator,
            "at": message.at,
            "first_message": number if self.session is not None else None,
            "last_message": number if self.session is not None else None,
        }
        return {name: value for name, value in given.items() if value is not None}


def proposals(
    message: Message, number: int, where: Where, admits: Callable[[str, Utterance, str], bool]
) -> Iterator[Proposed]:
    """What one message proposes: its facts, then what is remembered of it if it is admitted."""
    if not message.text or message.role == "tool":
        return
    facts = facts_in(message.text, message.role)
    words = list(_words(message, number, where)) if _hears(message.text) else []
    if not facts and not words:
        return
    shown = utterance(message.text, message.role)
    stated = provenance_of(message.role, shown.reasons)
    for fact in facts:
        yield fact_proposed(fact, message, number, where, provenance=stated, rule=fact.predicate)
    heard = [*_shared(facts, message, number, where), *words]
    if heard and admits(message.text, shown, message.role):
        yield from heard


def _hears(text: str) -> bool:
    """Whether a text may hold what is remembered in its own words: asked first, as most have nothing of it."""
    words = words_of(text)
    firsts, times, speakers = _heard_firsts()
    known = firsts.intersection(words)
    timed = not (times.isdisjoint(words) or speakers.isdisjoint(words))
    if not known and not timed:
        return False
    low, heard = padded(words), _heard()
    return any(holds(low, heard[first]) for first in known) or (
        timed and holds(low, phrases("utterance", "times")) and holds(low, phrases("utterance", "speakers"))
    )


@cache
def _heard_firsts() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The first words of phrases that are heard, of times, and who speaks of themselves."""
    times = frozenset(phrase.split()[0] for phrase in phrases("utterance", "times"))
    return frozenset(_heard()), times, vocabulary("utterance", "speakers")


@cache
def _heard() -> dict[str, tuple[str, ...]]:
    """By their first words, the phrases of what happened, of corrections and of orders for good."""
    names = ("events", "correction", "correction-openings", "preference-openings")
    several = sorted({phrase for name in names for phrase in phrases("utterance", name)} | {" no "})
    firsts = dict.fromkeys(phrase.split()[0] for phrase in several)
    return {first: tuple(phrase for phrase in several if phrase.split()[0] == first) for first in firsts}


def fact_proposed(fact: Fact, message: Message, number: int, where: Where, *, provenance: str, rule: str) -> Proposed:
    """A fact of a message as it is proposed; ``rule`` recognised it."""
    said = message.text[fact.start : fact.stop]
    subject = fact.subject
    if message.speaker is not None and subject.split("'s ", 1)[0] == USER:
        subject = message.speaker + subject.removeprefix(USER)
    fields = {
        "kind": fact.kind,
        "subject": subject,
        "predicate": fact.predicate,
        "object" if fact.entity else "value": fact.value,
        "confidence": fact.confidence,
        "provenance": provenance,
        "context": " ".join(said.split())[:_CONTEXT],
        "reason": _reason(rule),
    }
    text = fact_text(_called(subject), fact.predicate, fact.value)
    fields |= where.fields(message, number, own=False)
    return Proposed("fact", text, rule, number, fact.start, fact.stop, said, fields)


def _called(subject: str) -> str:
    """A subject as a sentence names it: "The user", "The user's sister", "The team", a name as it is."""
    return f"The {subject}" if subject in (USER, TEAM) or subject.startswith(f"{USER}'s ") else subject


def _shared(facts: list[Fact], message: Message, number: int, where: Where) -> Iterator[Proposed]:
    """That the user shared something of themselves: one memory a message."""
    own = [fact for fact in facts if fact.subject == USER]
    if not own or message.role != "user":
        return
    topics = dict.fromkeys(_topic(fact.predicate) for fact in own)
    *others, last = topics
    text = f"{message.speaker or 'The user'} shared {', '.join(others)}{' and ' if others else ''}{last}"
    start, stop = min(fact.start for fact in own), max(fact.stop for fact in own)
    yield _memory("shared", text, "observation", message, number, (start, stop), where)


def _topic(predicate: str) -> str:
    """What a predicate is about: its own topic, "what they drive", "what they do not eat", "their favourite colour"."""
    named = table("topics").get(predicate)
    verb, denied = predicate.removeprefix("does-not-"), predicate.startswith("does-not-")
    own = verb.replace("-", " ") if denied else _own_verbs().get(predicate)
    if named is None and own is not None:
        return f"what they {'do not ' if denied else ''}{own}"
    return named or f"their {predicate.replace('-', ' ').replace(':', ' ')}"


@cache
def _own_verbs() -> dict[str, str]:
    """By predicate, the verb as people say it of themselves: "drive" of ``drives``. Nothing of what one was or is."""
    found: dict[str, str] = {}
    for own, (_, predicate, *_) in table("verbs").items():
        if own.split()[0] not in ("am", "are", "was"):
            found.setdefault(predicate, own)
    return found


def _words(message: Message, number: int, where: Where) -> Iterator[Proposed]:
    """What happened, what is put right and what is ordered for good, in the words of who said it."""
    text = message.text
    sentences: dict[int, tuple[int, int]] = {}
    for clause in asserted(text, _hears):
        start, _ = sentences.get(clause.sentence, (clause.start, clause.stop))
        sentences[clause.sentence] = (start, clause.stop)
    for start, stop in sentences.values():
        said = text[start:stop].strip()
        low = padded(words_of(said))
        rule = _rule(low, of_user=message.role == "user")
        if rule is None:
            continue
        kind = {"corrects": "correction", "tells-event": "event"}.get(rule)
        if kind is None:
            kind = "negative" if low.startswith(" never ") else "preference"
        words = cut(" ".join(said.split()), MOST_TOKENS)
        told = words if rule == "orders-for-good" else f'{message.speaker or f"The {message.role}"} said: "{words}"'
        yield _memory(rule, told, kind, message, number, (start, stop), where)


def _rule(low: str, *, of_user: bool) -> str | None:
    """What makes a sentence worth remembering in its own words, None if nothing does."""
    if of_user and corrects(low):
        return "corrects"
    if tells_event(low):
        return "tells-event"
    ordered = of_user and first_of(low, phrases("utterance", "preference-openings")) is not None
    return "orders-for-good" if ordered else None


def _memory(
    rule: str, text: str, kind: str, message: Message, number: int, place: tuple[int, int], where: Where
) -> Proposed:
    provenance = provenance_of(message.role, ("corrects",) if rule == "corrects" else ())
    fields = {"kind": kind, "confidence": _SURE_OF_WORDS, "provenance": provenance}
    return memory_proposed(rule, text, fields, message, number, place, where)


def memory_proposed(
    rule: str,
    text: str,
    fields: Mapping[str, Any],
    message: Message,
    number: int,
    place: tuple[int, int],
    where: Where,
) -> Proposed:
    """What is remembered of a message as it is proposed; ``rule`` recognised it, at this place."""
    start, stop = place
    said = message.text[start:stop].strip()
    of_message = {"context": " ".join(said.split())[:_CONTEXT], "reason": _reason(rule)}
    given = {**fields, **of_message, **where.fields(message, number, own=True)}
    return Proposed("memory", text, rule, number, start, stop, said, given)


def _reason(rule: str) -> str:
    """How it came to be, in a memory's own field: by a rule, or by a model."""
    return f"extracted by the {rule if rule.startswith('model ') else f'rule {rule}'}"
