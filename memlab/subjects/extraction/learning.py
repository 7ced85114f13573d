"""What a session taught: breakthroughs, solutions, failures, what to avoid, changes of plan, steps that worked.

Sentences are recognised by the phrases of ``english.toml``; each that is kept is in its own words. What was asked and
what was only supposed is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from memlab.io.formats import Message
from memlab.kernel.english import first_of, holds, padded, phrases, vocabulary, words_of
from memlab.subjects.extraction.proposing import Heard, Where
from memlab.subjects.extraction.staged import Proposed
from memlab.subjects.reading.clauses import asserted
from memlab.subjects.reading.sentences import count_tokens, shorten
from memlab.subjects.reading.utterances import utterance

__all__ = ["LESSONS", "lessons"]

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
"""What is looked for, in the order of importance, and the kind of memory that it makes."""

_PARTS = re.compile(r"[.!?;\n]+(?=\s|$)|,(?=\s+(?:please|can|could|would|will)\b)", re.IGNORECASE)

_RECOGNISED = ("breakthrough", "avoid", "solution", "pivot", "failure", "cue")
"""In this order, the first that fits."""

_MOST_OF_A_SORT = 5
_MOST_TOKENS = 60
_FEWEST_WORDS, _MOST_WORDS = 3, 80
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


def lessons(
    messages: Sequence[Message], where: Where, *, budget: int, open_words: bool
) -> list[Proposed]:
    """What a session taught, in the order of ``LESSONS``, within ``budget`` tokens; nothing of it twice.

    Where ``open_words`` the kind of a breakthrough is "breakthrough", and so on; the tag says it anyhow.
    """
    found: dict[str, list[Proposed]] = {sort: [] for sort in LESSONS}
    known: set[str] = set()
    for number, message in enumerate(messages):
        if message.role in ("user", "assistant") and message.text:
            for one in _of_a_message(Heard(message, number, where), open_words):
                if one.text.casefold() not in known:
                    known.add(one.text.casefold())
                    found[one.rule].append(one)
    found["tools"] = list(_sequences(messages, where))
    found["dynamics"] = list(_dynamics(messages, where, found, open_words))
    kept: list[Proposed] = []
    left = budget
    for sort in LESSONS:
        for one in found[sort][-_MOST_OF_A_SORT:]:  # the last are nearest to how it ended
            if (cost := count_tokens(one.text)) <= left:
                kept.append(one)
                left -= cost
    return kept


def _of_a_message(heard: Heard, open_words: bool) -> Iterator[Proposed]:
    text = heard.message.text
    sentences: dict[int, tuple[int, int]] = {}
    for clause in asserted(text):
        start, _ = sentences.get(clause.sentence, (clause.start, clause.stop))
        sentences[clause.sentence] = (start, clause.stop)
    for start, stop in sentences.values():
        said = " ".join(text[start:stop].split())
        words = words_of(said)
        if not _FEWEST_WORDS <= len(words) <= _MOST_WORDS:
            continue
        low = padded(words)
        sort = next((sort for sort in _RECOGNISED if holds(low, phrases("session", sort))), None)
        if sort is not None and _says_enough(sort, said, words, low):
            more = (
                {"triggers": forbidden}
                if sort == "avoid" and (forbidden := _forbidden(low))
                else {}
            )
            yield _lesson(sort, shorten(said, _MOST_TOKENS), heard, (start, stop), open_words, more)


def _says_enough(sort: str, said: str, words: list[str], low: str) -> bool:
    """Whether it tells of what: "It works now!" alone does not, and an order to fix what fails reports no failure."""
    if sort == "failure":
        return not holds(low, phrases("session", "not-wrong")) and not _is_a_task(said)
    telling = [word for word in words if word not in vocabulary("negation", "fillers")]
    return sort != "breakthrough" or len(telling) >= _FEWEST_TELLING


def _lesson(
    sort: str,
    text: str,
    heard: Heard,
    place: tuple[int, int],
    open_words: bool,
    more: Mapping[str, object],
) -> Proposed:
    fields = {
        "kind": sort if open_words and sort in _OPEN else LESSONS[sort],
        "confidence": _SURE[sort],
        "provenance": "user-stated" if heard.message.role == "user" else "inferred",
        "tags": [sort],
        "reason": f"extracted by the rule {sort}",
        **more,
    } | heard.fields(own=True)
    span = heard.message.text[place[0] : place[1]].strip()
    return Proposed("memory", text, sort, heard.number, *place, span, fields)


_OPEN = ("breakthrough", "failure", "pivot", "solution")


def _forbidden(low: str) -> list[str]:
    """What is not to be used, so that its name brings the warning up: the first word after it that says something."""
    at = min(
        (low.find(phrase) + len(phrase) for phrase in phrases("session", "avoid") if phrase in low),
        default=-1,
    )
    after = low[at:].split() if at >= 0 else []
    word = next((word for word in after if word not in vocabulary("negation", "fillers")), None)
    return [word] if word is not None and len(word) > 2 else []


def _sequences(messages: Sequence[Message], where: Where) -> Iterator[Proposed]:
    """Calls of tools that went well, from a task of the user to what says that it is done."""
    task: Heard | None = None
    waiting: list[str] = []
    done: list[str] = []
    failed: list[str] = []
    for number, message in enumerate(messages):
        ends = number + 1 == len(messages)
        if message.role == "tool":
            name = message.tool or (waiting.pop(0) if waiting else None)
            if name is not None:
                (failed if _went_wrong(message) else done).append(name)
            finished = ends and not _went_wrong(message)
        else:
            finished = _is_done(message)
            waiting += message.calls
        if task is not None and finished and (found := _steps(task, done, failed)) is not None:
            yield found
            task = None
        if message.role == "user" and _is_a_task(message.text):
            task, done, failed = Heard(message, number, where), [], []


def _dynamics(
    messages: Sequence[Message],
    where: Where,
    found: Mapping[str, Sequence[Proposed]],
    open_words: bool,
) -> Iterator[Proposed]:
    """How the session went between user and agent: what was put right, what failed on the way, how it ended."""
    said = [
        (number, one, padded(words_of(one.text))) for number, one in enumerate(messages) if one.text
    ]
    own = [(number, one, low) for number, one, low in said if one.role == "user"]
    right = [
        (number, one)
        for number, one, _ in own
        if number and "corrects" in utterance(one.text).fired
    ]
    upset = [(number, one) for number, one, low in own if holds(low, phrases("session", "upset"))]
    pleased = [
        (number, one)
        for number, one, low in own
        if number and holds(low, phrases("session", "pleased"))
    ]
    failed = sum(one.role == "tool" and _went_wrong(one) for one in messages) + len(
        found["failure"]
    )
    if len(said) < _FEWEST_SAID or not (right or upset or pleased or failed):
        return
    parts = []
    if right:
        quoted = shorten(" ".join(right[0][1].text.split()), _SHORT_QUOTE)
        parts.append(f'the user corrected the agent {_times(len(right))} (first: "{quoted}")')
    if failed:
        parts.append(f"{failed} {'attempt' if failed == 1 else 'attempts'} failed")
    if upset:
        parts.append(f"the user was impatient {_times(len(upset))}")
    if found["pivot"]:
        parts.append(f"the plan changed {_times(len(found['pivot']))}")
    worked = bool(found["breakthrough"] or found["solution"] or found["tools"])
    ended = "it ended in success" if worked else "it ended without a success that was named"
    ended += " and the user was pleased" if pleased and pleased[-1][0] >= own[-1][0] - 1 else ""
    text = f"How the session went, in {len(said)} messages: {', '.join(parts)}; {ended}".replace(
        ": ;", ":"
    )
    number, last = (right or upset or pleased or [(said[-1][0], said[-1][1])])[0]
    yield _lesson("dynamics", text, Heard(last, number, where), (0, len(last.text)), open_words, {})


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


_FEWEST_SAID = 3
_SHORT_QUOTE = 25


def _is_a_task(text: str) -> bool:
    """Whether a sentence of a text, or what follows a comma, gives an order: "It is flaky, please fix it"."""
    parts = _PARTS.split(text[:400])
    return any(first_of(padded(words_of(part)), _orders()) is not None for part in parts)


@cache
def _orders() -> tuple[str, ...]:
    polite = ("", *phrases("utterance", "polite"))
    verbs = sorted(vocabulary("utterance", "orders", "doubtful-orders"))
    return tuple(f"{start.rstrip()} {verb} " for start in polite for verb in verbs)


def _is_done(message: Message) -> bool:
    """Whether it says that something went well, and nothing that went wrong."""
    low = padded(words_of(message.text))
    good = any(
        holds(low, phrases("session", name)) for name in ("breakthrough", "solution", "went-well")
    )
    return good and not holds(low, phrases("session", "failure"))


def _went_wrong(message: Message) -> bool:
    low = padded(words_of(message.text))
    for phrase in phrases("session", "not-wrong"):
        low = low.replace(phrase, " ")
    return message.failed or holds(low, phrases("session", "went-wrong"))


def _steps(task: Heard, done: list[str], failed: list[str]) -> Proposed | None:
    """The procedure: each tool that went well, in order, one after the other once."""
    steps = [name for place, name in enumerate(done) if place == 0 or name != done[place - 1]][
        :_MOST_STEPS
    ]
    if len(steps) < 2:
        return None
    told = task.message.text
    goal = shorten(" ".join(told.split()), 25)
    text = f"{goal.rstrip('.')}: what led to success was {', then '.join(steps)}"
    warnings = [f"{name} failed" for name in dict.fromkeys(failed)]
    more: dict[str, object] = {
        "title": goal,
        "steps": steps,
        **({"warnings": warnings} if warnings else {}),
    }
    return _lesson("tools", text, task, (0, len(told)), False, more)
