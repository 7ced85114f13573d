"""Detectors of utterances: the features that the ``admit`` policy reads.

Each detector is a table of phrases (``english.toml``) or a test of the first words of a sentence;
none was fitted to a data set. Questions say nothing about their speaker, so detectors of personal
statements ignore questions, except for a statement before a question. Every detector takes time in
proportion to the text.

Assistants that keep a user profile suggested the reasons to extract an utterance and the reasons to
skip it. The policy decides between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from memlab.kernel.english import first_of, holds, padded, phrases, vocabulary, words_of
from memlab.subjects.reading.sentences import code_lines, sentences

_phrases, _words = partial(phrases, "utterance"), partial(vocabulary, "utterance")

# The maximum words of a greeting besides its phrases, the maximum words of a greeting message, and the maximum polite
# phrases before an order.
_MOST_WITH_GREETING = 2
_LONGEST_GREETING = 24
_MOST_POLITE = 6

# A pattern of ends of clauses before a question.
_CLAUSE = re.compile(r"[,;:\u2013\u2014]")

DETECTORS = (
    "tells-identity",
    "tells-preference",
    "tells-goal",
    "tells-event",
    "corrects",
    "greets",
    "commands",
    "holds-code",
    "asks-plainly",
)
"""The names of the detectors, in the order of an utterance's reasons."""

# The kind of a memory by detector, and the provenance of a memory by the role of the speaker.
_KINDS = {
    "corrects": "correction",
    "tells-identity": "personal",
    "tells-preference": "preference",
    "tells-goal": "goal",
    "tells-event": "event",
}
_PROVENANCES = {
    "user": "user-stated",
    "assistant": "inferred",
    "system": "observed",
    "tool": "observed",
}


@dataclass(frozen=True)
class Utterance:
    """The number of words of an utterance, and the names of the detectors that fired."""

    length: int
    fired: frozenset[str]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The names of the detectors that fired, in the order of ``DETECTORS``."""
        return tuple(name for name in DETECTORS if name in self.fired)


def utterance(text: str, role: str = "user", *, answers_question: bool = False) -> Utterance:
    """Return the features of one utterance; the time is linear in the length.

    Identity, preferences and goals are those of the user: stated by the user, or by another speaker
    about "the user". An assistant's statements about itself fire no detector of these, and an
    assistant corrects nothing; its events count. ``answers_question`` is whether the utterance
    answers a question, so that its "no" corrects nothing.

    >>> utterance("Hi! I'm a nurse and I prefer short answers.").reasons
    ('tells-identity', 'tells-preference')
    >>> utterance("I'm an assistant and I like to help.", "assistant").reasons
    ()
    >>> utterance("How do I rename a branch?").reasons
    ('asks-plainly',)
    """
    # Identity, preference and goal are read from statements about the user, the other features from the whole text.
    words = words_of(text)
    parts = [(sentence, padded(words_of(sentence))) for sentence in sentences(text)]
    parts = [(sentence, low) for sentence, low in parts if low.strip()]
    stated = [low for sentence, low in parts if not _is_question(sentence, low)]
    stated += [
        low
        for sentence, low in parts
        if _is_question(sentence, low)
        for low in _stated_before(sentence)
    ]
    of_user = stated if role == "user" else [low for low in stated if not _is_first_person(low)]
    fired = {
        "tells-identity": any(map(_tells_identity, of_user)),
        "tells-preference": any(map(_tells_preference, of_user)),
        "tells-goal": any(holds(low, _phrases("goal")) for low in of_user),
        "tells-event": any(map(tells_event, stated)),
        "corrects": role == "user"
        and any(corrects(low, answers_question=answers_question) for low in stated),
        "greets": len(words) <= _LONGEST_GREETING and _is_greeting(padded(words)),
        "commands": any(_is_command(low) for _, low in parts),
        "holds-code": bool(code_lines(text)),
        "asks-plainly": bool(parts) and _is_question(*parts[-1]),
    }
    return Utterance(len(words), frozenset(name for name, is_fired in fired.items() if is_fired))


def kind_of(reasons: tuple[str, ...]) -> str | None:
    """Return the kind of memory that these reasons imply, or None if they imply no kind."""
    return next((kind for name, kind in _KINDS.items() if name in reasons), None)


def provenance_of(role: str, reasons: tuple[str, ...]) -> str:
    """Return the provenance of a memory made from an utterance."""
    return "user-corrected" if role == "user" and "corrects" in reasons else _PROVENANCES[role]


def _stated_before(question: str) -> list[str]:
    """Return the statements that precede a question in its sentence, padded with spaces.

    "I am a nurse, how ...?" has such a statement. A condition states nothing.
    """
    *before, _ = _CLAUSE.split(question)
    clauses = [padded(words_of(clause)) for clause in before]
    stated = [low for low in clauses if low.strip() and not _is_question("", low)]
    return [low for low in stated if not low.startswith(_phrases("conditions"))]


def _is_first_person(low: str) -> bool:
    """Return whether a padded sentence contains a first-person pronoun."""
    own = vocabulary("first-person", "pronouns")
    return any(word.split("'")[0] in own for word in low.split())


def _is_question(sentence: str, low: str) -> bool:
    """Return whether a sentence ends with a question mark or begins like a question."""
    return sentence.rstrip().endswith("?") or first_of(low, _phrases("questions")) is not None


def _tells_identity(low: str) -> bool:
    """Return whether a padded sentence states who the speaker is."""
    if holds(low, _phrases("identity")):
        return True
    for start in _phrases("i-am"):
        position = low.find(start)
        while position >= 0:
            following = low[position + len(start) : position + len(start) + 40].split(" ", 1)[0]
            activity = following.endswith("ing") and following != "living"
            if following and not activity and following not in _words("not-identity"):
                return True
            position = low.find(start, position + 1)
    return False


def _tells_preference(low: str) -> bool:
    """Return whether a padded sentence states a preference."""
    return (
        holds(low, _phrases("preference"))
        or first_of(low, _phrases("preference-openings")) is not None
    )


def tells_event(low: str) -> bool:
    """Return whether a padded sentence reports an event in its speaker's life."""
    return holds(low, _phrases("events")) or (
        holds(low, _phrases("times")) and holds(low, _phrases("speakers"))
    )


def corrects(low: str, *, answers_question: bool = False) -> bool:
    """Return whether a padded sentence corrects an earlier statement.

    A "no" that answers a question corrects nothing. Nor does a "no" before a denial of one's own,
    as in "No, I don't have pets".
    """
    if (
        holds(low, _phrases("correction"))
        or first_of(low, _phrases("correction-openings")) is not None
    ):
        return True
    if answers_question or not low.startswith(" no ") or len(low) <= 4:
        return False
    return first_of(low, _phrases("no-correction")) is None


def _is_greeting(low: str) -> bool:
    """Return whether a text is a greeting with at most two other words, as in "Hi Ada"."""
    greeted = False
    while (greeting := first_of(low, phrases("greetings", "anywhere", "of-messages"))) is not None:
        greeted, low = True, low[len(greeting) - 1 :]
    return greeted and len(low.split()) <= _MOST_WITH_GREETING


def _is_command(low: str) -> bool:
    """Return whether a sentence begins with an order, with or without polite words."""
    for _ in range(_MOST_POLITE):
        polite = first_of(low, _phrases("polite"))
        if polite is None:
            break
        low = low[len(polite) - 1 :]
    first, _, rest = low.strip().partition(" ")
    return first in _words("orders") or (
        first in _words("doubtful-orders") and rest.partition(" ")[0] in _words("objects")
    )
