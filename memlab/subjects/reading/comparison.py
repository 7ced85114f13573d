"""Whether one text ends or contradicts what another says, by which rule, and how certain that is.

Two texts are compared statement by statement. Statements of different holders never conflict: first person is the
speaker. A pair conflicts by a slot (one property, two values), by values (one count, date or amount, two numbers), or
by what two short statements say (``conflicts``). ``CERTAINTY`` is how often each rule was right on pairs that were
read (``experiments/fit_certainty.py``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache

from memlab.kernel.english import lexicon, table, vocabulary, words_of
from memlab.subjects.reading.acts import Sentence, read_sentences
from memlab.subjects.reading.change import (
    Telling,
    certain,
    moves_a_value,
    noticed,
    read_values,
    rules,
    score,
)
from memlab.subjects.reading.claims import (
    Claim,
    Statement,
    claim,
    conflicts,
    of_another,
    stem,
    updates,
)
from memlab.subjects.reading.slots import SPEAKER, Slot, read_slots

__all__ = [
    "CERTAINTY",
    "NOTHING",
    "Part",
    "Reading",
    "Verdict",
    "by_rules",
    "compare",
    "read_text",
    "repeats",
]


# What a text states, part by part: its sentences without greetings, questions, wishes, quotations and orders.
#
# Linking compares statements. A greeting, a question, a wish, a quotation, a supposition and an order to the listener
# state nothing, so nothing ends them and they end nothing. An order that is a rule ("Never log tokens", "Use spaces")
# is a statement of how things are done. Each part is read once and has what the comparison of two texts needs.


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
    r",\s(?:so|but|and|which|because)\s|;\s|\s-\s|\s(?:but|because|although|whereas)\s|:\s(?=[A-Z])",
    re.IGNORECASE,
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
            found += [
                Part(piece, one.person, one.hedged, alone)
                for piece in pieces
                if any(map(str.isalnum, piece))
            ]
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
        (
            word
            for word in words
            if word not in ("always", "never", "do", "not", "don't", "please", "only")
        ),
        "",
    )
    return first in rule or words[0] in ("always", "never")


CERTAINTY: dict[str, float] = {
    "slot, cue": 0.93,
    "slot, short": 0.92,
    "slot": 0.6,
    "values, moved": 0.92,
    "values, cue, short": 0.92,
    "values, cue": 0.4,
    "values, short": 0.6,
    "claim, short": 0.95,
    "claim": 0.4,
    "denial, short": 0.9,
    "words, short": 0.9,
    "denial": 0.3,
    "words": 0.2,
    **rules(),
}
"""By rule: the share of right ones among pairs that were read; those that fired there less than five times are guessed.
Below the setting destroy-certainty both stay.
"""

_SHARED = 0.5
"""Share of the words of two statements that both have, where they are about the same thing."""

_HEDGED = 0.9
"""What is left of the certainty where one of the two says that it may be so."""


@dataclass(frozen=True)
class Verdict:
    """``updates``: the later says that the earlier is so no more; ``conflicts``: both cannot hold; ``denies`` and
    ``changes``: one denies the other, or says that something changed, in the statement about the same thing.
    """

    updates: bool = False
    conflicts: bool = False
    denies: bool = False
    changes: bool = False
    certainty: float = 0.0
    rule: str = ""


NOTHING = Verdict()


def compare(new: Reading, old: Reading, *, same_speaker: bool, user_speaks: bool) -> Verdict:
    """Compare a text with an earlier one.

    ``same_speaker``: both were said by one person; ``user_speaks``: of a missing speaker, so that "I" is the user.
    Across speakers only statements of a named third person are compared, and nothing is certain.
    """
    if not new.parts or not old.parts or new.text == old.text:
        return NOTHING
    ruled = by_rules(new, old, same_speaker=same_speaker, user_speaks=user_speaks)
    if not same_speaker or new.telling is None or old.telling is None:
        return ruled
    return _with_odds(ruled, score(new.telling, old.telling, ruled.certainty))


def _with_odds(ruled: Verdict, odds: float | None) -> Verdict:
    """A rule that is nearly certain stands; of all else the odds decide."""
    if odds is None or not noticed(odds):
        return ruled
    likely = certain(odds)
    if likely <= ruled.certainty:
        return ruled
    return replace(
        ruled, updates=ruled.updates or not ruled.conflicts, certainty=likely, rule="change"
    )


def by_rules(new: Reading, old: Reading, *, same_speaker: bool, user_speaks: bool) -> Verdict:
    """What the rules alone say of two texts."""
    best = NOTHING
    short = new.single and old.single
    documents = new.telling is None or old.telling is None
    ours, theirs = new.parts, old.parts
    if not same_speaker:
        ours, theirs = (
            tuple(part for part in parts if _of_a_third(part)) for parts in (ours, theirs)
        )
    for later in ours:
        for earlier in theirs:
            found = _compare_parts(later, earlier, short, user_speaks, documents)
            if found is not NOTHING:
                best = _stronger(best, found)
    if same_speaker and new.telling and old.telling and moves_a_value(new.telling, old.telling):
        best = _stronger(
            best, Verdict(updates=True, certainty=CERTAINTY["values, moved"], rule="values, moved")
        )
    if not same_speaker and best is not NOTHING:
        return Verdict(
            best.updates,
            best.conflicts,
            best.denies,
            best.changes,
            min(best.certainty, 0.5),
            best.rule,
        )
    return best


def repeats(new: Reading, old: Reading, *, same_speaker: bool) -> bool:
    """Whether a text says nothing that the other does not say: one speaker, the same words, numbers and denials."""
    if not same_speaker:
        return False
    if new.text == old.text:
        return True
    return words_of(new.text) == words_of(old.text) or _bag(new.text) == _bag(old.text)


def _bag(text: str) -> tuple[str, ...]:
    """The words without articles, in order, so that "the port is 80" repeats "port is 80"."""
    return tuple(
        stem(word)
        for word in words_of(text)
        if word not in ("a", "an", "the", "is", "are", "that", "please")
    )


def _of_a_third(part: Part) -> bool:
    return (
        part.person == "third"
        and any(word[0].isupper() for word in part.text.split()[:1])
        and part.claim is not None
        and part.claim.bare
    )


def _stronger(one: Verdict, other: Verdict) -> Verdict:
    top = one if one.certainty >= other.certainty else other
    return Verdict(
        one.updates or other.updates,
        one.conflicts or other.conflicts,
        one.denies or other.denies,
        one.changes or other.changes,
        top.certainty,
        top.rule,
    )


def _compare_parts(
    new: Part, old: Part, short: bool, user_speaks: bool, documents: bool
) -> Verdict:
    one, other = new.statement, old.statement
    shared = bool(one.content & other.content)
    if not short and not shared and not (new.slots and old.slots):
        return NOTHING
    overlap = one.overlap(other)
    denies = changes = False
    if short or overlap >= _SHARED:
        denies = (one.denies(other) or other.denies(one)) and not of_another(new.claim, old.claim)
        changes = one.updates(other)
    rule, updated = _rule(new, old, short, user_speaks, documents, overlap)
    if rule is None and not denies and not changes:
        return NOTHING
    told = rule
    if told is None:
        told = ("denial" if denies else "words") + (
            ", short" if short and overlap >= _SHARED else ""
        )
    sure = CERTAINTY[told] * (_HEDGED if new.hedged or old.hedged else 1.0)
    return Verdict(
        rule is not None and updated, rule is not None and not updated, denies, changes, sure, told
    )


def _rule(
    new: Part, old: Part, short: bool, user_speaks: bool, documents: bool, overlap: float
) -> tuple[str | None, bool]:
    """The first rule by which two statements exclude each other, and whether the later one says that it ends.

    ``documents``: one of the texts is long; of those, two numbers in words alike are two numbers as a rule.
    """
    if _at_other_times(new, old) or _elsewhere(new.text, old.text):
        return None, False
    by_slot = _by_slot(new, old, short, user_speaks)
    if by_slot is not None:
        return by_slot
    ours, theirs = _as_user(new.claim, user_speaks), _as_user(old.claim, user_speaks)
    if ours is not None and theirs is not None and (short or _alike(ours, theirs, overlap)):
        updated, contrary = updates(ours, theirs), conflicts(ours, theirs)
        if updated or contrary:
            return "claim, short" if short else "claim", updated
    return (None if documents else _by_values(new, old, short)) or (None, False)


def _at_other_times(new: Part, old: Part) -> bool:
    """Whether each says when it holds, and not at one time: in 2020, as a child; nothing changed from one to the other."""
    ours, theirs = new.claim, old.claim
    if ours is None or theirs is None:
        return False
    return (
        not ours.changing
        and (ours.times != theirs.times or ours.past != theirs.past)
        and bool(ours.times | theirs.times)
    )


_WHERE = re.compile(
    r"\b(?:in|for|on) (?:the |our |my |all |a )?(?P<where>[A-Za-z][\w.-]*(?: files?| code| projects?)?)"
)


def _elsewhere(new: str, old: str) -> bool:
    """Whether both name where they hold, and different things: tabs in Makefiles, spaces in Python."""
    ours, theirs = (
        {stem(match["where"].lower().split()[0]) for match in _WHERE.finditer(text)}
        for text in (new, old)
    )
    if not ours or not theirs or ours & theirs:
        return False
    one, other = (frozenset(map(stem, words_of(text))) for text in (new, old))
    # what differs is where, and something else: "in Boston" and "in Seattle" differ in where alone
    return (
        bool((one - other) - ours - _LITTLE)
        and bool((other - one) - theirs - _LITTLE)
        and bool(one & other - _LITTLE)
        and not _CHANGED.search(new)
    )


_LITTLE = frozenset(
    map(
        stem,
        (
            "the",
            "a",
            "an",
            "i",
            "we",
            "in",
            "for",
            "on",
            "file",
            "files",
            "my",
            "our",
            "is",
            "are",
            "user",
            "now",
            "to",
            "at",
        ),
    )
)
_CHANGED = re.compile(
    r"\b(?:now|moved|switched|no longer|instead|changed|relocated|rescheduled|migrated)\b",
    re.IGNORECASE,
)


def _as_user(claim: Claim | None, user_speaks: bool) -> Claim | None:
    """A claim of the user in one form: "I" and "the user" are one where nobody else speaks."""
    if claim is None or not user_speaks or not claim.subject:
        return claim
    if claim.subject[:1] == ("i",):
        return _with_subject(claim, ("user", *claim.subject[1:]))
    if claim.subject[:2] == ("user", "'s") and len(claim.subject) > 2:
        return _with_subject(claim, claim.subject[2:])
    return claim


def _with_subject(claim: Claim, subject: tuple[str, ...]) -> Claim:
    values = {name: getattr(claim, name) for name in Claim.__dataclass_fields__}
    return Claim(**values | {"subject": subject})


def _alike(new: Claim, old: Claim, overlap: float) -> bool:
    """Whether two statements of longer texts are about one thing: one subject, and half of their words."""
    return bool(new.subject) and new.subject == old.subject and overlap >= _SHARED


# -- slots ----------------------------------------------------------------------------------------------------


def _by_slot(new: Part, old: Part, short: bool, user_speaks: bool) -> tuple[str, bool] | None:
    if not new.slots or not old.slots:
        return None
    for later in new.slots:
        for earlier in old.slots:
            if _differ(later, earlier, user_speaks) and not later.past:
                if earlier.past and not later.cue:
                    continue
                rule = "slot, cue" if later.cue else "slot, short" if short else "slot"
                return rule, later.cue
    return None


def _differ(new: Slot, old: Slot, user_speaks: bool) -> bool:
    if new.name.startswith("instead:"):
        return _names(new.name[8:], old.value) and old.name.split(":")[0] in (
            "tool",
            "class",
            "version",
        )
    if new.name != old.name or _owner(new.holder, user_speaks) != _owner(old.holder, user_speaks):
        return False
    if new.value == old.value:
        return False
    if new.name == "diet":
        return _excludes_diet(new.value, old.value)
    if new.value.startswith("not ") or old.value.startswith("not "):
        return new.value.removeprefix("not ") == old.value.removeprefix("not ")
    # "Rome" and "Rome, Italy", "senior engineer" and "engineer": one is said more closely
    return not (
        set(new.value.split()) <= set(old.value.split())
        or set(old.value.split()) <= set(new.value.split())
    )


def _owner(holder: str, user_speaks: bool) -> str:
    return "user" if user_speaks and holder == SPEAKER else holder


def _names(name: str, value: str) -> bool:
    return bool(value) and (value in name.split() or name == value)


@cache
def _diets() -> frozenset[frozenset[str]]:
    return frozenset(frozenset(pair) for pair in lexicon()["linking"]["diets-exclude"])


def _excludes_diet(new: str, old: str) -> bool:
    mine, theirs = new.removeprefix("not "), old.removeprefix("not ")
    if (new != mine) != (old != theirs):
        return mine == theirs
    return new == mine and old == theirs and frozenset((mine, theirs)) in _diets()


# -- numbers, dates and amounts -----------------------------------------------------------------------------


def _by_values(new: Part, old: Part, short: bool) -> tuple[str, bool] | None:
    mine, theirs = read_values(new.text), read_values(old.text)
    if not mine.by_kind or not theirs.by_kind:
        return None
    content = _frame(new)
    others = _frame(old)
    shared = len(content & others)
    if shared < 1:
        return None
    smaller = min(len(content), len(others))
    near = shared / max(1, smaller)
    cue = not vocabulary("linking", "moves").isdisjoint(words_of(new.text))
    for kind, values in mine.by_kind.items():
        for before in _comparable(kind, theirs.by_kind, content):
            if values & before:
                continue
            enough = (shared >= 2 and near >= (0.34 if cue else 0.6)) or (
                kind.startswith("count:") and len(kind) > 6 and cue and near >= 0.3
            )
            if not enough:
                continue
            if cue:
                return ("values, cue, short" if short and near >= 0.5 else "values, cue"), True
            if short and near >= 0.75:
                return "values, short", False
    return None


def _comparable(
    kind: str, others: dict[str, frozenset[str]], content: frozenset[str]
) -> list[frozenset[str]]:
    """The values of the other text of the same kind; a bare number meets what the new text names."""
    found = [others[kind]] if kind in others and kind != "count:" else []
    if kind == "count:":
        found += [
            values
            for name, values in others.items()
            if name.startswith("count:") and name[6:] in content and name[6:]
        ]
        found += [others["count:"]] if "count:" in others else []
    elif kind.startswith("count:") and "count:" in others and not found:
        found += []
    return found


def _frame(part: Part) -> frozenset[str]:
    """What a statement is about, without its values and the words of change."""
    left_out = table("linking", "moves") | {"user", "information", "update"}
    return frozenset(
        word
        for word in part.statement.content
        if word not in left_out and not word[0].isdigit() and word not in _months()
    )


@cache
def _months() -> frozenset[str]:
    return (
        frozenset(stem(word) for word in vocabulary("negation", "calendar"))
        | vocabulary("negation", "calendar")
        | {"am", "pm"}
    )
