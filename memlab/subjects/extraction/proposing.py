"""Proposals of messages: the facts that they state, and what an agent remembers of having heard them.

One message may yield both. "I'm a nurse" is a fact about the user, shared by all agents, and for the agent that heard
it a memory that the user shared who they are. What happened ("yesterday I moved") and what a user puts right or orders
for good ("never log secrets") is a memory in the speaker's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from memlab.io.formats import Message
from memlab.kernel.english import first_of, holds, padded, phrases, vocabulary, words_of
from memlab.kernel.verbs.gate import format_agent
from memlab.subjects.extraction.circumstances import Setting, kept_of, setting_of
from memlab.subjects.extraction.clause import DOUBTFUL, TEAM, USER, Fact
from memlab.subjects.extraction.durable import has_happened, is_durable_event, is_hypothetical
from memlab.subjects.extraction.reading import facts_in
from memlab.subjects.extraction.staged import Proposed
from memlab.subjects.fact_rows import fact_text
from memlab.subjects.reading.acts import (
    Completed,
    Sentence,
    complete_answer,
    last_question,
    read_sentences,
)
from memlab.subjects.reading.clauses import asserted
from memlab.subjects.reading.sentences import shorten
from memlab.subjects.reading.utterances import (
    Utterance,
    corrects,
    provenance_of,
    tells_event,
    utterance,
)

__all__ = ["MOST_TOKENS", "Heard", "Where", "proposals"]

MOST_TOKENS = 60
"""Of what somebody said, as a memory keeps it."""

_CONTEXT = 300
"""Characters of what was said around a fact that it keeps."""

_NEAR = 40
"""Characters between two facts within which what stands between is quoted with them."""

_WORTH_SHARING = 0.6
"""Confidence of a fact below which its words are no observation: it says next to nothing."""

_SURE_OF_WORDS = 0.8


@dataclass(frozen=True)
class Where:
    """What every proposal of a call has in common; None for what was not given."""

    project: str | None = None
    session: str | None = None
    agent: str | None = None


@dataclass(frozen=True)
class Heard:
    """A message, its number in the conversation, and what the proposals of the call have in common."""

    message: Message
    number: int
    where: Where

    def fields(self, *, own: bool) -> dict[str, Any]:
        """Return what a memory of this message has; ``own``: it is the agent's and nobody else's."""
        where, numbered = self.where, self.number if self.where.session is not None else None
        agent = None if where.agent is None else format_agent(where.agent)
        given = {
            "project": where.project,
            "session": where.session,
            "agents": None if agent is None else [agent],
            "creator": agent if own else None,
            "at": self.message.at,
            "first_message": numbered,
            "last_message": numbered,
        }
        if own and agent is not None:
            # what one agent heard is its own, whatever the pack says of other writing
            given["visibility"] = "private"
        return {name: value for name, value in given.items() if value is not None}

    def memory(
        self, rule: str, text: str, fields: Mapping[str, Any], place: tuple[int, int]
    ) -> Proposed:
        """Return what is remembered of the message as it is proposed; ``rule`` recognised it, at this place."""
        start, stop = place
        said = self.message.text[start:stop].strip()
        of_message = {"context": " ".join(said.split())[:_CONTEXT], "reason": _reason(rule)}
        given = {**fields, **of_message, **self.fields(own=True)}
        return Proposed("memory", text, rule, self.number, start, stop, said, given)

    def fact(self, fact: Fact, *, provenance: str, rule: str) -> Proposed:
        """Return a fact of the message as it is proposed; ``rule`` recognised it."""
        message = self.message
        said = message.text[fact.start : fact.stop]
        subject = fact.subject
        if subject == TEAM and (
            message.speaker is not None
            or fact.predicate in vocabulary("extraction", "people-share")
        ):
            subject = USER  # among friends "we" is no team: what "we love" the speaker loves
        if message.speaker is not None and _is_of_user(subject):
            subject = message.speaker + subject.removeprefix(USER)
        fields = {
            "kind": fact.kind,
            "subject": subject,
            "predicate": fact.predicate,
            "object" if fact.entity else "value": fact.value,
            "confidence": _sure_of(fact, message),
            "provenance": provenance,
            "context": " ".join(said.split())[:_CONTEXT],
            "reason": _reason(rule),
        }
        if message.role != "user":
            fields["status"] = "staged"  # what others say of a user waits for the user's own word
        called = _called(subject)
        text = fact_text(called, fact.predicate, fact.value)
        if fact.text is not None:
            text = fact.text.format(subject=called, possessive=f"{called}'s")
        fields |= self.fields(own=False)
        return Proposed("fact", text, rule, self.number, fact.start, fact.stop, said, fields)


def proposals(
    message: Message,
    number: int,
    where: Where,
    admits: Callable[[str, Utterance, str], bool],
    before: Message | None = None,
    *,
    played: bool = False,
) -> Iterator[Proposed]:
    """Yield what one message proposes: its facts, then what is remembered of it if it is admitted.

    ``before`` is the message just before: a question of somebody else is read together with its answer. ``played`` says
    that an earlier message began a role or a game.
    """
    if not message.text or message.role == "tool" or _answers_a_game(message, before):
        return
    told = Heard(message, number, where)
    question = _question_to(message, before)
    answer = (
        None
        if question is None or message.role != "user"
        else complete_answer(question, message.text)
    )
    setting = _setting(message, played=played)
    answered = (
        []
        if answer is None
        else kept_of(facts_in(answer.text, message.role), setting, answered=True)
    )
    facts = kept_of(facts_in(message.text, message.role), setting)
    facts = [fact for fact in facts if _lasts_among_people(fact, message)]
    places = [(fact.start, fact.stop) for fact in facts]
    words = list(_words(told, places, asked=question is not None)) if _hears(message.text) else []
    if setting is not None:  # what a text or a role says happened is nothing that its writer tells
        words = [one for one in words if _OTHERS_WORDS.isdisjoint(setting.signs(one.start))]
    if not facts and not words and not answered:
        return
    read = message.text if not answered or answer is None else f"{answer.text} {message.text}"
    shown = utterance(read, message.role, asked=question is not None)
    stated = provenance_of(message.role, shown.reasons)
    if answer is not None:
        for fact in answered:
            yield _answered(fact, answer, told, provenance=stated)
    for fact in facts:
        yield told.fact(fact, provenance=stated, rule=fact.predicate)
    heard = [*_shared(answered, answer, facts, told), *words]
    if heard and admits(read, shown, message.role):
        yield from heard


_OTHERS_WORDS = frozenset(("far", "labelled", "played"))


def _setting(message: Message, *, played: bool) -> Setting | None:
    """The setting of what a user writes to an assistant; None for talk among people by their names."""
    if message.role != "user" or message.speaker is not None:
        return None
    return setting_of(message.text, played=played)


def _answers_a_game(message: Message, before: Message | None) -> bool:
    """Whether a short message of a user follows what supposes something: "If you could have any superpower ...?"."""
    if (
        before is None
        or before.role == "tool"
        or message.role != "user"
        or len(message.text) > _LONGEST_GAME
    ):
        return False
    return is_hypothetical(before.text)


_LONGEST_GAME = 300
"""Characters of a message beyond which it says more than the answer to a question."""


def _lasts_among_people(fact: Fact, message: Message) -> bool:
    """Whether a fact is worth a proposal: where people talk, a doubtful one of a thing says nothing of anybody."""
    own = fact.subject.split("'s ", 1)[0] in (USER, TEAM)
    return own or message.speaker is None or fact.confidence > DOUBTFUL


def _question_to(message: Message, before: Message | None) -> str | None:
    """The question of somebody else that a message answers."""
    if before is None or not before.text or before.role == "tool":
        return None
    same = (before.role, before.speaker) == (message.role, message.speaker)
    return None if same else last_question(before.text)


def _answered(fact: Fact, answer: Completed, told: Heard, *, provenance: str) -> Proposed:
    """A fact of an answer and its question: its place is the answer's, its quotation is what says the value."""
    placed = replace(fact, start=answer.start, stop=answer.stop)
    proposed = told.fact(placed, provenance=provenance, rule=fact.predicate)
    said = f"{answer.question.strip()} {proposed.span.strip()}"
    fields = {**proposed.fields, "context": " ".join(said.split())[:_CONTEXT]}
    return replace(proposed, fields=fields, span=said)


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
        timed
        and holds(low, phrases("utterance", "times"))
        and holds(low, phrases("utterance", "speakers"))
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
    return {
        first: tuple(phrase for phrase in several if phrase.split()[0] == first) for first in firsts
    }


def _sure_of(fact: Fact, message: Message) -> float:
    """The confidence of a fact; among people what is said of a thing, or of whom all know, is small talk."""
    own = fact.subject.split("'s ", 1)[0] in (USER, TEAM)
    talk = fact.kind == "fact" or (
        fact.predicate == "is" and not own and "their" not in fact.value.split()
    )
    return (
        min(fact.confidence, DOUBTFUL) if message.speaker is not None and talk else fact.confidence
    )


def _is_of_user(subject: str) -> bool:
    """Whether a subject is the user, or somebody or something of theirs."""
    return subject.split("'s ", 1)[0] == USER


def _called(subject: str) -> str:
    """A subject as a sentence names it: "The user", "The user's sister", "The team", a name as it is."""
    return (
        f"The {subject}" if subject in (USER, TEAM) or subject.startswith(f"{USER}'s ") else subject
    )


def _shared(
    answered: list[Fact], answer: Completed | None, facts: list[Fact], told: Heard
) -> Iterator[Proposed]:
    """What the user shared of themselves, in the words that say it: one memory a message."""
    message = told.message
    own = [
        fact for fact in facts if _is_of_user(fact.subject) and fact.confidence >= _WORTH_SHARING
    ]
    answers = answer is not None and any(
        fact.subject == USER and fact.confidence >= _WORTH_SHARING for fact in answered
    )
    if message.role != "user" or not (own or answers):
        return
    spans: list[tuple[int, int]] = []
    for fact in sorted(own, key=lambda fact: fact.start):
        if spans and fact.start <= spans[-1][1] + _NEAR:
            spans[-1] = (spans[-1][0], max(spans[-1][1], fact.stop))
        else:
            spans.append((fact.start, fact.stop))
    said = [message.text[start:stop].strip() for start, stop in spans]
    if answers and answer is not None:
        said.insert(0, answer.text.strip(" .!"))
        spans.append((answer.start, answer.stop))
    words = shorten(" ... ".join(" ".join(one.split()) for one in said), MOST_TOKENS)
    text = f'{message.speaker or "The user"} shared: "{words}"'
    place = (min(start for start, _ in spans), max(stop for _, stop in spans))
    yield _in_words(told, "shared", text, "observation", place)


def _words(told: Heard, places: list[tuple[int, int]], *, asked: bool) -> Iterator[Proposed]:
    """What happened, what is put right and what is ordered for good, in the words of who said it.

    A sentence of which a fact was read is left out, and one that says no more than how somebody feels about it.
    """
    message, text = told.message, told.message.text
    read = list(read_sentences(text))
    sentences: dict[int, tuple[int, int]] = {}
    for clause in asserted(text, _hears):
        start, _ = sentences.get(clause.sentence, (clause.start, clause.stop))
        sentences[clause.sentence] = (start, clause.stop)
    for start, stop in sentences.values():
        said = text[start:stop].strip()
        low = padded(words_of(said))
        rule = _rule(low, of_user=message.role == "user", asked=asked)
        if rule is None or any(start < end and begin < stop for begin, end in places):
            continue
        sentence = next((one for one in read if one.start <= start < one.stop), None)
        if sentence is None or not _tells(
            rule, sentence, said, low, among_people=message.speaker is not None
        ):
            continue
        kind = {"corrects": "correction", "tells-event": "event"}.get(rule)
        if kind is None:
            kind = "negative" if low.startswith(" never ") else "preference"
        words = shorten(" ".join(said.split()), MOST_TOKENS)
        if rule == "orders-for-good":
            stop = sentence.stop  # with its condition: "... when I ask about deadlines"
            words = shorten(" ".join(text[start:stop].split()), MOST_TOKENS)
        kept = (
            words
            if rule == "orders-for-good"
            else f'{message.speaker or f"The {message.role}"} said: "{words}"'
        )
        yield _in_words(told, rule, kept, kind, (start, stop))


def _tells(rule: str, sentence: Sentence, said: str, low: str, *, among_people: bool) -> bool:
    """Whether a sentence says enough to be remembered: a statement with content, an event of its speaker."""
    if rule == "orders-for-good":
        first = [
            word
            for word in low.split()
            if word not in ("always", "never", "from", "now", "on", "by", "default")
        ]
        orders = vocabulary("utterance", "orders", "doubtful-orders") | vocabulary("acts", "orders")
        known = orders | vocabulary("extraction", "rule-verbs")
        return (
            sentence.act == "order"
            and first[:1] != []
            and first[0] in known - vocabulary("extraction", "no-orders")
        )
    if rule == "tells-event" and not (has_happened(low) and is_durable_event(said, low)):
        return False
    if rule == "corrects" and among_people and not is_durable_event(said, low):
        return False
    if sentence.act not in ("statement", "question") or not sentence.stated:
        return False
    content = {word for word in low.split() if word not in _plain_words() and len(word) > 1}
    if (
        rule == "tells-event"
        and len(content - vocabulary("extraction", "event-light")) < _FEWEST_OF_AN_EVENT
    ):
        return False
    return len(content) >= _FEWEST_TELLING and (rule == "corrects" or sentence.person == "first")


_FEWEST_OF_AN_EVENT = 3
"""Words of an event that say more than "busy with work", "had a setback"."""

_FEWEST_TELLING = 4
"""Content words without which a sentence of chat says nothing that could be asked for."""


@cache
def _plain_words() -> frozenset[str]:
    light = vocabulary("negation", "fillers") | vocabulary(
        "acts", "openers", "light-reactions", "first-person"
    )
    return (
        light
        | vocabulary("acts", "second-person", "third-person")
        | vocabulary("extraction", "contentless")
    )


_NO_SUCH = re.compile(
    r" no (?!(?:i|it|he|she|we|you|they|that|this|the|my|actually|its|not) )(?!.* (?:is|was|are|were|not) )"
)
"""That there is none of something, and no correction: "no law against both"."""


def _rule(low: str, *, of_user: bool, asked: bool) -> str | None:
    """What makes a sentence worth remembering in its own words, None if nothing does."""
    if of_user and corrects(low, asked=asked) and _NO_SUCH.match(low) is None:
        return "corrects"
    if of_user and tells_event(low):
        return "tells-event"
    ordered = of_user and first_of(low, phrases("utterance", "preference-openings")) is not None
    return "orders-for-good" if ordered else None


def _in_words(told: Heard, rule: str, text: str, kind: str, place: tuple[int, int]) -> Proposed:
    provenance = provenance_of(told.message.role, ("corrects",) if rule == "corrects" else ())
    return told.memory(
        rule, text, {"kind": kind, "confidence": _SURE_OF_WORDS, "provenance": provenance}, place
    )


def _reason(rule: str) -> str:
    """How it came to be, in a memory's own field: by a rule, or by a model."""
    return f"extracted by the {rule if rule.startswith('model ') else f'rule {rule}'}"
