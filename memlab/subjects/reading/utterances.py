"""What an utterance shows: the features that the ``admit`` policy reads.

Each detector is a table of phrases (``english.toml``) or a look at how a sentence begins; none was fitted to a data
set. A question tells nothing of its speaker, so the detectors of what someone says of themselves leave questions out,
but for what is stated before the question begins. All take time in proportion to the text.

The idea of reasons to extract and reasons to skip comes from assistants that keep a profile of their user; which of
them wins is the policy's to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from memlab.kernel.english import first_of, holds, padded, phrases, vocabulary, words_of
from memlab.subjects.reading.sentences import code_lines, sentences

__all__ = [
    "DETECTORS",
    "Utterance",
    "corrects",
    "kind_of",
    "provenance_of",
    "tells_event",
    "utterance",
]


_phrases, _words = partial(phrases, "utterance"), partial(vocabulary, "utterance")

_MOST_WITH_GREETING = 2
_LONGEST_GREETING = 24
_MOST_POLITE = 6

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
"""The flags, in the order in which reasons are given."""

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
    """What one utterance shows: its number of words, and the detectors that fired."""

    length: int
    fired: frozenset[str]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The detectors that fired, in the order of ``DETECTORS``."""
        return tuple(name for name in DETECTORS if name in self.fired)


def utterance(text: str, role: str = "user", *, asked: bool = False) -> Utterance:
    """The features of one utterance; linear in the length of the text.

    Who somebody is, likes or wants is told of the user: by a user of themselves, by anybody else of "the user". What an
    assistant says of itself tells nothing of that, and puts nothing right; what happened may have happened to it.
    ``asked``: the utterance answers a question, so that its "no" puts nothing right.

    >>> utterance("Hi! I'm a nurse and I prefer short answers.").reasons
    ('tells-identity', 'tells-preference')
    >>> utterance("I'm an assistant and I like to help.", "assistant").reasons
    ()
    >>> utterance("How do I rename a branch?").reasons
    ('asks-plainly',)
    """
    words = words_of(text)
    parts = [(sentence, padded(words_of(sentence))) for sentence in sentences(text)]
    parts = [(sentence, low) for sentence, low in parts if low.strip()]
    stated = [low for sentence, low in parts if not _asks(sentence, low)]
    stated += [
        low for sentence, low in parts if _asks(sentence, low) for low in _stated_before(sentence)
    ]
    of_user = stated if role == "user" else [low for low in stated if not _in_first_person(low)]
    fired = {
        "tells-identity": any(map(_tells_identity, of_user)),
        "tells-preference": any(map(_tells_preference, of_user)),
        "tells-goal": any(holds(low, _phrases("goal")) for low in of_user),
        "tells-event": any(map(tells_event, stated)),
        "corrects": role == "user" and any(corrects(low, asked=asked) for low in stated),
        "greets": len(words) <= _LONGEST_GREETING and _greets(padded(words)),
        "commands": any(_commands(low) for _, low in parts),
        "holds-code": bool(code_lines(text)),
        "asks-plainly": bool(parts) and _asks(*parts[-1]),
    }
    return Utterance(len(words), frozenset(name for name, found in fired.items() if found))


def kind_of(reasons: tuple[str, ...]) -> str | None:
    """The kind of a memory that is made of an utterance with these reasons: what corrects is a correction, ..."""
    return next((kind for name, kind in _KINDS.items() if name in reasons), None)


def provenance_of(role: str, reasons: tuple[str, ...]) -> str:
    """How it came to be known: what a user says is stated, what an assistant says is inferred."""
    return "user-corrected" if role == "user" and "corrects" in reasons else _PROVENANCES[role]


def _stated_before(question: str) -> list[str]:
    """What a question states before it asks: "I am a nurse, how do I ...?". A condition states nothing."""
    *before, _ = _CLAUSE.split(question)
    clauses = [padded(words_of(clause)) for clause in before]
    stated = [low for low in clauses if low.strip() and not _asks("", low)]
    return [low for low in stated if not low.startswith(_phrases("conditions"))]


def _in_first_person(low: str) -> bool:
    own = vocabulary("first-person", "pronouns")
    return any(word.split("'")[0] in own for word in low.split())


def _asks(sentence: str, low: str) -> bool:
    return sentence.rstrip().endswith("?") or first_of(low, _phrases("questions")) is not None


def _tells_identity(low: str) -> bool:
    if holds(low, _phrases("identity")):
        return True
    for start in _phrases("i-am"):
        at = low.find(start)
        while at >= 0:
            following = low[at + len(start) : at + len(start) + 40].split(" ", 1)[0]
            activity = following.endswith("ing") and following != "living"
            if following and not activity and following not in _words("not-identity"):
                return True
            at = low.find(start, at + 1)
    return False


def _tells_preference(low: str) -> bool:
    return (
        holds(low, _phrases("preference"))
        or first_of(low, _phrases("preference-openings")) is not None
    )


def tells_event(low: str) -> bool:
    """Whether a sentence, padded, tells of what happened to its speaker."""
    return holds(low, _phrases("events")) or (
        holds(low, _phrases("times")) and holds(low, _phrases("speakers"))
    )


def corrects(low: str, *, asked: bool = False) -> bool:
    """Whether a sentence, padded, puts right what was said before; ``asked``: it answers a question.

    A "no" that answers a question puts nothing right, and neither does one that goes on to tell of what somebody has
    or is not ("No, I don't have pets").
    """
    if (
        holds(low, _phrases("correction"))
        or first_of(low, _phrases("correction-openings")) is not None
    ):
        return True
    if asked or not low.startswith(" no ") or len(low) <= 4:
        return False
    return first_of(low, _phrases("no-correction")) is None


def _greets(low: str) -> bool:
    """It begins with a greeting and says hardly more: two words, such as a name."""
    found = False
    while (greeting := first_of(low, phrases("greetings", "anywhere", "of-messages"))) is not None:
        found, low = True, low[len(greeting) - 1 :]
    return found and len(low.split()) <= _MOST_WITH_GREETING


def _commands(low: str) -> bool:
    """After what is merely polite it begins with the verb of an order."""
    for _ in range(_MOST_POLITE):
        polite = first_of(low, _phrases("polite"))
        if polite is None:
            break
        low = low[len(polite) - 1 :]
    first, _, rest = low.strip().partition(" ")
    return first in _words("orders") or (
        first in _words("doubtful-orders") and rest.partition(" ")[0] in _words("objects")
    )
