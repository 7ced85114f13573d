"""Find the lessons of a session: solutions, failures, changes of plan, procedures.

Sentences are recognised by the phrases in ``english.toml`` and kept in their own words. Questions
and suppositions are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from memlab.io.formats import Message
from memlab.kernel.english import first_of, holds, padded, phrases, vocabulary, words_of
from memlab.subjects.extraction.proposing import Scope, Source
from memlab.subjects.extraction.staged import Proposed
from memlab.subjects.reading.clauses import asserted
from memlab.subjects.reading.sentences import count_tokens, shorten
from memlab.subjects.reading.utterances import utterance

LESSONS = {
    "breakthrough": "session-insight",
    "solution": "learning",
    "avoid": "negative",
    "failure": "error-pattern",
    "pivot": "decision",
    "tools": "procedure",
    "cue": "session-insight",
    "dynamics": "session-insight",
}
"""The sorts of lesson in order of importance, with the kind of memory of each."""

# A pattern of the ends of sentences, and of a comma before a request.
_PARTS = re.compile(r"[.!?;\n]+(?=\s|$)|,(?=\s+(?:please|can|could|would|will)\b)", re.IGNORECASE)

# The first sort that matches is used, so specific sorts come before general ones.
_RECOGNISED = ("breakthrough", "avoid", "solution", "pivot", "failure", "cue")

# Limits that keep the lessons of a session short. The confidence of each sort is below.
_MOST_OF_A_SORT = 5
_MOST_TOKENS = 60
_FEWEST_WORDS, _MOST_WORDS = 3, 80
# The minimum number of content words of a breakthrough, and the maximum number of steps of a procedure.
_FEWEST_TELLING = 4
_MOST_STEPS = 12
_SURE = {
    "breakthrough": 0.7,
    "solution": 0.7,
    "avoid": 0.7,
    "failure": 0.6,
    "pivot": 0.6,
    "tools": 0.7,
    "cue": 0.5,
    "dynamics": 0.6,
}


def find_lessons(
    messages: Sequence[Message], where: Scope, *, budget: int, open_words: bool
) -> list[Proposed]:
    """Return the distinct lessons of a session, ordered by sort of lesson.

    The lessons take at most ``budget`` tokens. With ``open_words``, the kind of a lesson may be its
    sort, such as "breakthrough". Otherwise only a tag names the sort.
    """
    by_sort: dict[str, list[Proposed]] = {sort: [] for sort in LESSONS}
    texts: set[str] = set()
    for number, message in enumerate(messages):
        if message.role in ("user", "assistant") and message.text:
            for lesson in _read_message(Source(message, number, where), open_words):
                if lesson.text.casefold() not in texts:
                    texts.add(lesson.text.casefold())
                    by_sort[lesson.rule].append(lesson)
    by_sort["tools"] = list(_find_procedures(messages, where))
    by_sort["dynamics"] = list(_summarise_session(messages, where, by_sort, open_words))
    return select_lessons([lesson for lessons in by_sort.values() for lesson in lessons], budget)


def select_lessons(lessons: Sequence[Proposed], budget: int) -> list[Proposed]:
    """Return the last few lessons of each sort within a budget, ordered by sort of lesson."""
    result: list[Proposed] = []
    remaining = budget
    for sort in LESSONS:
        of_sort = [lesson for lesson in lessons if lesson.rule == sort]
        for lesson in of_sort[-_MOST_OF_A_SORT:]:  # the last ones describe the outcome
            if (cost := count_tokens(lesson.text)) <= remaining:
                result.append(lesson)
                remaining -= cost
    return result


def _read_message(source: Source, open_words: bool) -> Iterator[Proposed]:
    """Yield the lessons that the sentences of a message state."""
    text = source.message.text
    sentences: dict[int, tuple[int, int]] = {}
    for clause in asserted(text):
        start, _ = sentences.get(clause.sentence, (clause.start, clause.stop))
        sentences[clause.sentence] = (start, clause.stop)
    for start, stop in sentences.values():
        sentence = " ".join(text[start:stop].split())
        words = words_of(sentence)
        if not _FEWEST_WORDS <= len(words) <= _MOST_WORDS:
            continue
        low = padded(words)
        sort = next((sort for sort in _RECOGNISED if holds(low, phrases("session", sort))), None)
        if sort is not None and _is_informative(sort, sentence, words, low):
            extra = (
                {"triggers": forbidden}
                if sort == "avoid" and (forbidden := _find_trigger(low))
                else {}
            )
            yield propose_lesson(
                sort, shorten(sentence, _MOST_TOKENS), source, (start, stop), open_words, extra
            )


def _is_informative(sort: str, sentence: str, words: list[str], low: str) -> bool:
    """Return whether a sentence is informative enough for its sort of lesson.

    "It works now!" is not, and an order to fix a failure does not report a failure.
    """
    if sort == "failure":
        return not holds(low, phrases("session", "not-wrong")) and not _is_task(sentence)
    content = [word for word in words if word not in vocabulary("negation", "fillers")]
    return sort != "breakthrough" or len(content) >= _FEWEST_TELLING


def propose_lesson(
    sort: str,
    text: str,
    source: Source,
    position: tuple[int, int],
    open_words: bool,
    extra: Mapping[str, object],
) -> Proposed:
    """Return a lesson as a proposal, with the kind, confidence and tag of its sort."""
    fields = {
        "kind": sort if open_words and sort in _OPEN else LESSONS[sort],
        "confidence": _SURE[sort],
        "provenance": "user-stated" if source.message.role == "user" else "inferred",
        "tags": [sort],
        "reason": f"extracted by the rule {sort}",
        **extra,
    } | source.fields(own=True)
    span = source.message.text[position[0] : position[1]].strip()
    return Proposed("memory", text, sort, source.number, *position, span, fields)


_OPEN = ("breakthrough", "failure", "pivot", "solution")
"""The sorts of lesson that are kinds of memory if the vocabulary of kinds is open."""


def _find_trigger(low: str) -> list[str]:
    """Return a list with the first informative word after a prohibition, or an empty list.

    The warning is then recalled when a query mentions the forbidden thing.
    """
    at = min(
        (low.find(phrase) + len(phrase) for phrase in phrases("session", "avoid") if phrase in low),
        default=-1,
    )
    after = low[at:].split() if at >= 0 else []
    word = next((word for word in after if word not in vocabulary("negation", "fillers")), None)
    return [word] if word is not None and len(word) > 2 else []


def _find_procedures(messages: Sequence[Message], where: Scope) -> Iterator[Proposed]:
    """Yield a procedure of successful tool calls for each completed task."""
    task: Source | None = None
    pending: list[str] = []
    succeeded: list[str] = []
    failed: list[str] = []
    for number, message in enumerate(messages):
        is_last = number + 1 == len(messages)
        if message.role == "tool":
            name = message.tool or (pending.pop(0) if pending else None)
            if name is not None:
                (failed if _went_wrong(message) else succeeded).append(name)
            finished = is_last and not _went_wrong(message)
        else:
            finished = _is_done(message)
            pending += message.calls
        if (
            task is not None
            and finished
            and (procedure := _build_procedure(task, succeeded, failed)) is not None
        ):
            yield procedure
            task = None
        if message.role == "user" and _is_task(message.text):
            task, succeeded, failed = Source(message, number, where), [], []


def _summarise_session(
    messages: Sequence[Message],
    where: Scope,
    by_sort: Mapping[str, Sequence[Proposed]],
    open_words: bool,
) -> Iterator[Proposed]:
    """Yield at most one summary of a session, with its corrections, failures, changes and outcome.

    A session without a correction, complaint, praise or failure gets none.
    """
    # Each sort of event is reported once, with its number, so that the summary stays one sentence.
    messages_said = [
        (number, message, padded(words_of(message.text)))
        for number, message in enumerate(messages)
        if message.text
    ]
    user_messages = [
        (number, message, low) for number, message, low in messages_said if message.role == "user"
    ]
    corrections = [
        (number, message)
        for number, message, _ in user_messages
        if number and "corrects" in utterance(message.text).fired
    ]
    complaints = [
        (number, message)
        for number, message, low in user_messages
        if holds(low, phrases("session", "upset"))
    ]
    praise = [
        (number, message)
        for number, message, low in user_messages
        if number and holds(low, phrases("session", "pleased"))
    ]
    failed = sum(message.role == "tool" and _went_wrong(message) for message in messages) + len(
        by_sort["failure"]
    )
    if len(messages_said) < _FEWEST_SAID or not (corrections or complaints or praise or failed):
        return
    events = []
    if corrections:
        quoted = shorten(" ".join(corrections[0][1].text.split()), _SHORT_QUOTE)
        events.append(
            f'the user corrected the agent {_count_times(len(corrections))} (first: "{quoted}")'
        )
    if failed:
        events.append(f"{failed} {'attempt' if failed == 1 else 'attempts'} failed")
    if complaints:
        events.append(f"the user was impatient {_count_times(len(complaints))}")
    if by_sort["pivot"]:
        events.append(f"the plan changed {_count_times(len(by_sort['pivot']))}")
    succeeded = bool(by_sort["breakthrough"] or by_sort["solution"] or by_sort["tools"])
    ending = "it ended in success" if succeeded else "it ended without a success that was named"
    ending += (
        " and the user was pleased" if praise and praise[-1][0] >= user_messages[-1][0] - 1 else ""
    )
    text = f"How the session went, in {len(messages_said)} messages: {', '.join(events)}; {ending}".replace(
        ": ;", ":"
    )
    number, last = (
        corrections or complaints or praise or [(messages_said[-1][0], messages_said[-1][1])]
    )[0]
    yield propose_lesson(
        "dynamics", text, Source(last, number, where), (0, len(last.text)), open_words, {}
    )


def _count_times(count: int) -> str:
    """Return a count in words, such as "once", "twice" or "3 times"."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


# The minimum number of messages for a summary, and the maximum tokens of its quotation.
_FEWEST_SAID = 3
_SHORT_QUOTE = 25


def _is_task(text: str) -> bool:
    """Return whether any part of a text's first 400 characters is an order, as in "It is flaky, please fix it"."""
    parts = _PARTS.split(text[:400])
    return any(first_of(padded(words_of(part)), _list_orders()) is not None for part in parts)


@cache  # the tables of the language do not change
def _list_orders() -> tuple[str, ...]:
    """Return the phrases that begin an order, with and without polite words."""
    polite = ("", *phrases("utterance", "polite"))
    verbs = sorted(vocabulary("utterance", "orders", "doubtful-orders"))
    return tuple(f"{start.rstrip()} {verb} " for start in polite for verb in verbs)


def _is_done(message: Message) -> bool:
    """Return whether a message reports success and no failure."""
    low = padded(words_of(message.text))
    is_success = any(
        holds(low, phrases("session", name)) for name in ("breakthrough", "solution", "went-well")
    )
    return is_success and not holds(low, phrases("session", "failure"))


def _went_wrong(message: Message) -> bool:
    """Return whether a message or a tool result reports a failure."""
    low = padded(words_of(message.text))
    for phrase in phrases("session", "not-wrong"):
        low = low.replace(phrase, " ")
    return message.failed or holds(low, phrases("session", "went-wrong"))


def _build_procedure(task: Source, succeeded: list[str], failed: list[str]) -> Proposed | None:
    """Return a procedure made of a task's successful tool calls, or None for fewer than two steps.

    Consecutive calls of the same tool count once.
    """
    steps = [
        name
        for position, name in enumerate(succeeded)
        if position == 0 or name != succeeded[position - 1]
    ][:_MOST_STEPS]
    if len(steps) < 2:
        return None
    text = task.message.text
    goal = shorten(" ".join(text.split()), 25)
    summary = f"{goal.rstrip('.')}: what led to success was {', then '.join(steps)}"
    warnings = [f"{name} failed" for name in dict.fromkeys(failed)]
    extra: dict[str, object] = {
        "title": goal,
        "steps": steps,
        **({"warnings": warnings} if warnings else {}),
    }
    return propose_lesson("tools", summary, task, (0, len(text)), False, extra)
