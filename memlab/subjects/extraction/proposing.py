"""Proposals for messages: the facts that they state, and what an agent remembers.

One message may give both. "I'm a nurse" is a fact about the user, visible to all agents. For the
agent that received the message, it is also a memory that the user shared something. Events
("yesterday I moved"), corrections and standing orders ("never log secrets") are memories in the
words of the speaker.
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
from memlab.subjects.extraction.circumstances import Setting, adjust_confidence, read_setting
from memlab.subjects.extraction.clause import DOUBTFUL, TEAM, USER, Fact
from memlab.subjects.extraction.durable import has_happened, is_durable_event, is_hypothetical
from memlab.subjects.extraction.reading import read_facts
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

MOST_TOKENS = 60
"""The maximum length of a quotation in a memory, in tokens."""

_CONTEXT = 300
"""The maximum characters of a quotation that a fact or memory keeps as its context."""

_NEAR = 40
"""The maximum distance in characters of two facts that are quoted together."""

_WORTH_SHARING = 0.6
"""The confidence below which a fact gives no observation, because its words say very little."""

_SURE_OF_WORDS = 0.8
"""The confidence of a memory in the speaker's own words."""


@dataclass(frozen=True)
class Scope:
    """The project, session and agent of a call's proposals, or None where unspecified."""

    project: str | None = None
    session: str | None = None
    agent: str | None = None


@dataclass(frozen=True)
class Source:
    """A message with its number in the conversation and the scope of the call."""

    message: Message
    number: int
    where: Scope

    def fields(self, *, own: bool) -> dict[str, Any]:
        """Return the fields that all memories of this message share.

        With ``own``, the memory belongs to the agent alone.
        """
        where, numbered = self.where, self.number if self.where.session is not None else None
        agent = None if where.agent is None else format_agent(where.agent)
        fields = {
            "project": where.project,
            "session": where.session,
            "agents": None if agent is None else [agent],
            "creator": agent if own else None,
            "at": self.message.at,
            "first_message": numbered,
            "last_message": numbered,
        }
        if own and agent is not None:
            # messages to one agent are private to that agent, even if the pack shares other writing
            fields["visibility"] = "private"
        return {name: value for name, value in fields.items() if value is not None}

    def memory(
        self, rule: str, text: str, fields: Mapping[str, Any], position: tuple[int, int]
    ) -> Proposed:
        """Return a proposal for a memory that is made from the message.

        ``rule`` is the rule that recognised the memory. ``position`` is the position of the
        quotation.
        """
        start, stop = position
        quotation = self.message.text[start:stop].strip()
        of_message = {
            "context": " ".join(quotation.split())[:_CONTEXT],
            "reason": _write_reason(rule),
        }
        all_fields = {**fields, **of_message, **self.fields(own=True)}
        return Proposed("memory", text, rule, self.number, start, stop, quotation, all_fields)

    def fact(self, fact: Fact, *, provenance: str, rule: str) -> Proposed:
        """Return a proposal for a fact that ``rule`` recognised in the message."""
        message = self.message
        quotation = message.text[fact.start : fact.stop]
        subject = fact.subject
        if subject == TEAM and (
            message.speaker is not None
            or fact.predicate in vocabulary("extraction", "people-share")
        ):
            subject = USER  # among friends "we" is not a team: the speaker loves what "we love"
        if message.speaker is not None and _is_of_user(subject):
            subject = message.speaker + subject.removeprefix(USER)
        fields = {
            "kind": fact.kind,
            "subject": subject,
            "predicate": fact.predicate,
            "object" if fact.entity else "value": fact.value,
            "confidence": _adjust_for_small_talk(fact, message),
            "provenance": provenance,
            "context": " ".join(quotation.split())[:_CONTEXT],
            "reason": _write_reason(rule),
        }
        if message.role != "user":
            fields["status"] = "staged"  # statements of others about the user await confirmation
        name = _name_subject(subject)
        text = fact_text(name, fact.predicate, fact.value)
        if fact.text is not None:
            text = fact.text.format(subject=name, possessive=f"{name}'s")
        fields |= self.fields(own=False)
        return Proposed("fact", text, rule, self.number, fact.start, fact.stop, quotation, fields)


def propose(
    message: Message,
    number: int,
    where: Scope,
    admits: Callable[[str, Utterance, str], bool],
    before: Message | None = None,
    *,
    role_play: bool = False,
) -> Iterator[Proposed]:
    """Yield the proposals for one message: facts, then memories that the pack admits.

    ``before`` is the previous message; a question of another speaker is read together with the
    answer. ``role_play`` is whether an earlier message began a role or a game.
    """
    if not message.text or message.role == "tool" or _answers_game(message, before):
        return
    source = Source(message, number, where)
    question = find_question(message, before)
    answer = (
        None
        if question is None or message.role != "user"
        else complete_answer(question, message.text)
    )
    setting = _read_user_setting(message, role_play=role_play)
    answered = (
        []
        if answer is None
        else adjust_confidence(read_facts(answer.text, message.role), setting, answered=True)
    )
    facts = adjust_confidence(read_facts(message.text, message.role), setting)
    facts = [fact for fact in facts if _is_worth_proposing(fact, message)]
    places = [(fact.start, fact.stop) for fact in facts]
    quoted = (
        list(_propose_quotations(source, places, has_question=question is not None))
        if _may_be_memorable(message.text)
        else []
    )
    if setting is not None:  # events in a pasted text or a role did not happen to the writer
        quoted = [
            memory for memory in quoted if _OTHERS_WORDS.isdisjoint(setting.signs(memory.start))
        ]
    if not facts and not quoted and not answered:
        return
    full_text = message.text if not answered or answer is None else f"{answer.text} {message.text}"
    reading = utterance(full_text, message.role, answers_question=question is not None)
    provenance = provenance_of(message.role, reading.reasons)
    if answer is not None:
        for fact in answered:
            yield _propose_answer(fact, answer, source, provenance=provenance)
    for fact in facts:
        yield source.fact(fact, provenance=provenance, rule=fact.predicate)
    memories = [*_propose_shared(answered, answer, facts, source), *quoted]
    if memories and admits(full_text, reading, message.role):
        yield from memories


_OTHERS_WORDS = frozenset(("far", "labelled", "played"))
"""Signs that the words of a message are not the writer's own."""


def _read_user_setting(message: Message, *, role_play: bool) -> Setting | None:
    """Return the signs of a user's message, or None for another role or a named speaker."""
    if message.role != "user" or message.speaker is not None:
        return None
    return read_setting(message.text, role_play=role_play)


def _answers_game(message: Message, before: Message | None) -> bool:
    """Return whether a user's short message answers a hypothetical question."""
    if (
        before is None
        or before.role == "tool"
        or message.role != "user"
        or len(message.text) > _LONGEST_GAME
    ):
        return False
    return is_hypothetical(before.text)


_LONGEST_GAME = 300
"""The length in characters above which a message is more than the answer to a question."""


def _is_worth_proposing(fact: Fact, message: Message) -> bool:
    """Return whether a fact is about the user or team, is not doubtful, or comes from a message without a named speaker."""
    own = fact.subject.split("'s ", 1)[0] in (USER, TEAM)
    return own or message.speaker is None or fact.confidence > DOUBTFUL


def find_question(message: Message, before: Message | None) -> str | None:
    """Return another speaker's question that a message answers, or None without a question."""
    if before is None or not before.text or before.role == "tool":
        return None
    same = (before.role, before.speaker) == (message.role, message.speaker)
    return None if same else last_question(before.text)


def _propose_answer(fact: Fact, answer: Completed, source: Source, *, provenance: str) -> Proposed:
    """Return a proposal for the fact that a question and its answer state together.

    The proposal has the position of the answer, and its quotation includes the question.
    """
    moved = replace(fact, start=answer.start, stop=answer.stop)
    proposed = source.fact(moved, provenance=provenance, rule=fact.predicate)
    quotation = f"{answer.question.strip()} {proposed.span.strip()}"
    fields = {**proposed.fields, "context": " ".join(quotation.split())[:_CONTEXT]}
    return replace(proposed, fields=fields, span=quotation)


def _may_be_memorable(text: str) -> bool:
    """Return whether a text may contain phrases worth quoting as memories.

    This is a cheap test before parsing, because most texts contain no such phrase.
    """
    words = words_of(text)
    firsts, times, speakers = _memorable_first_words()
    first_words = firsts.intersection(words)
    has_time = not (times.isdisjoint(words) or speakers.isdisjoint(words))
    if not first_words and not has_time:
        return False
    low, phrases_by_first_word = padded(words), _index_memorable_phrases()
    return any(holds(low, phrases_by_first_word[first]) for first in first_words) or (
        has_time
        and holds(low, phrases("utterance", "times"))
        and holds(low, phrases("utterance", "speakers"))
    )


@cache  # the tables of the language do not change
def _memorable_first_words() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the first words of memorable phrases, first words of times, and pronouns."""
    times = frozenset(phrase.split()[0] for phrase in phrases("utterance", "times"))
    return frozenset(_index_memorable_phrases()), times, vocabulary("utterance", "speakers")


@cache  # the tables of the language do not change
def _index_memorable_phrases() -> dict[str, tuple[str, ...]]:
    """Return the phrases of events, corrections and standing orders, by their first word."""
    names = ("events", "correction", "correction-openings", "preference-openings")
    all_phrases = sorted(
        {phrase for name in names for phrase in phrases("utterance", name)} | {" no "}
    )
    firsts = dict.fromkeys(phrase.split()[0] for phrase in all_phrases)
    return {
        first: tuple(phrase for phrase in all_phrases if phrase.split()[0] == first)
        for first in firsts
    }


def _adjust_for_small_talk(fact: Fact, message: Message) -> float:
    """Return a fact's confidence, at most ``DOUBTFUL`` if a named speaker says it and it is small talk."""
    own = fact.subject.split("'s ", 1)[0] in (USER, TEAM)
    small_talk = fact.kind == "fact" or (
        fact.predicate == "is" and not own and "their" not in fact.value.split()
    )
    return (
        min(fact.confidence, DOUBTFUL)
        if message.speaker is not None and small_talk
        else fact.confidence
    )


def _is_of_user(subject: str) -> bool:
    """Return whether a subject is the user, or a relative or possession of the user."""
    return subject.split("'s ", 1)[0] == USER


def _name_subject(subject: str) -> str:
    """Return a subject as written in a sentence, such as "The user's sister" or a name."""
    return (
        f"The {subject}" if subject in (USER, TEAM) or subject.startswith(f"{USER}'s ") else subject
    )


def _propose_shared(
    answered: list[Fact], answer: Completed | None, facts: list[Fact], source: Source
) -> Iterator[Proposed]:
    """Yield at most one memory, which quotes the confident facts that a user shared about themselves in a message."""
    message = source.message
    own = [
        fact for fact in facts if _is_of_user(fact.subject) and fact.confidence >= _WORTH_SHARING
    ]
    answers = answer is not None and any(
        fact.subject == USER and fact.confidence >= _WORTH_SHARING for fact in answered
    )
    if message.role != "user" or not (own or answers):
        return
    # Adjacent facts are quoted together, so that the memory reads as the user wrote it.
    spans: list[tuple[int, int]] = []
    for fact in sorted(own, key=lambda fact: fact.start):
        if spans and fact.start <= spans[-1][1] + _NEAR:
            spans[-1] = (spans[-1][0], max(spans[-1][1], fact.stop))
        else:
            spans.append((fact.start, fact.stop))
    quotations = [message.text[start:stop].strip() for start, stop in spans]
    if answers and answer is not None:
        quotations.insert(0, answer.text.strip(" .!"))
        spans.append((answer.start, answer.stop))
    joined = shorten(
        " ... ".join(" ".join(quotation.split()) for quotation in quotations), MOST_TOKENS
    )
    text = f'{message.speaker or "The user"} shared: "{joined}"'
    position = (min(start for start, _ in spans), max(stop for _, stop in spans))
    yield _propose_words(source, "shared", text, "observation", position)


def _propose_quotations(
    source: Source, fact_positions: list[tuple[int, int]], *, has_question: bool
) -> Iterator[Proposed]:
    """Yield memories that quote events, corrections and standing orders.

    Sentences that gave a fact are left out, and so are sentences that only express a feeling.
    """
    message, text = source.message, source.message.text
    parsed = list(read_sentences(text))
    sentences: dict[int, tuple[int, int]] = {}
    for clause in asserted(text, _may_be_memorable):
        start, _ = sentences.get(clause.sentence, (clause.start, clause.stop))
        sentences[clause.sentence] = (start, clause.stop)
    for start, stop in sentences.values():
        sentence_text = text[start:stop].strip()
        low = padded(words_of(sentence_text))
        rule = _choose_rule(low, of_user=message.role == "user", has_question=has_question)
        if rule is None or any(start < end and begin < stop for begin, end in fact_positions):
            continue
        sentence = next(
            (candidate for candidate in parsed if candidate.start <= start < candidate.stop), None
        )
        if sentence is None or not _is_informative(
            rule, sentence, sentence_text, low, among_people=message.speaker is not None
        ):
            continue
        kind = {"corrects": "correction", "tells-event": "event"}.get(rule)
        if kind is None:
            kind = "negative" if low.startswith(" never ") else "preference"
        quotation = shorten(" ".join(sentence_text.split()), MOST_TOKENS)
        if rule == "orders-for-good":
            stop = sentence.stop  # including its condition: "... when I ask about deadlines"
            quotation = shorten(" ".join(text[start:stop].split()), MOST_TOKENS)
        content = (
            quotation
            if rule == "orders-for-good"
            else f'{message.speaker or f"The {message.role}"} said: "{quotation}"'
        )
        yield _propose_words(source, rule, content, kind, (start, stop))


def _is_informative(
    rule: str, sentence: Sentence, text: str, low: str, *, among_people: bool
) -> bool:
    """Return whether a sentence is informative enough to be remembered under a rule."""
    if rule == "orders-for-good":
        verbs = [
            word
            for word in low.split()
            if word not in ("always", "never", "from", "now", "on", "by", "default")
        ]
        orders = vocabulary("utterance", "orders", "doubtful-orders") | vocabulary("acts", "orders")
        order_verbs = orders | vocabulary("extraction", "rule-verbs")
        return (
            sentence.act == "order"
            and verbs[:1] != []
            and verbs[0] in order_verbs - vocabulary("extraction", "no-orders")
        )
    if rule == "tells-event" and not (has_happened(low) and is_durable_event(text, low)):
        return False
    if rule == "corrects" and among_people and not is_durable_event(text, low):
        return False
    if sentence.act not in ("statement", "question") or not sentence.stated:
        return False
    content_words = {word for word in low.split() if word not in _empty_words() and len(word) > 1}
    if (
        rule == "tells-event"
        and len(content_words - vocabulary("extraction", "event-light")) < _FEWEST_OF_AN_EVENT
    ):
        return False
    return len(content_words) >= _FEWEST_TELLING and (
        rule == "corrects" or sentence.person == "first"
    )


_FEWEST_OF_AN_EVENT = 3
"""The minimum content words of an event, so that "had a setback" does not count."""

_FEWEST_TELLING = 4
"""The minimum content words of a remembered sentence; no query could ask for less."""


@cache  # the tables of the language do not change
def _empty_words() -> frozenset[str]:
    """Return the words without content, such as fillers and pronouns."""
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
"""A pattern of a statement of absence, which is no correction: "no law against both"."""


def _choose_rule(low: str, *, of_user: bool, has_question: bool) -> str | None:
    """Return the rule by which to remember a user's sentence, or None if no rule applies."""
    if of_user and corrects(low, answers_question=has_question) and _NO_SUCH.match(low) is None:
        return "corrects"
    if of_user and tells_event(low):
        return "tells-event"
    ordered = of_user and first_of(low, phrases("utterance", "preference-openings")) is not None
    return "orders-for-good" if ordered else None


def _propose_words(
    source: Source, rule: str, text: str, kind: str, position: tuple[int, int]
) -> Proposed:
    """Return a proposal for a memory that quotes the speaker."""
    provenance = provenance_of(source.message.role, ("corrects",) if rule == "corrects" else ())
    return source.memory(
        rule, text, {"kind": kind, "confidence": _SURE_OF_WORDS, "provenance": provenance}, position
    )


def _write_reason(rule: str) -> str:
    """Return the reason stored with a memory: the rule or model that extracted it."""
    return f"extracted by the {rule if rule.startswith('model ') else f'rule {rule}'}"
