"""Compare a text with an earlier text that it may end or contradict.

The verdict names the rule and its certainty.

Texts are compared statement by statement. Statements about different holders never conflict; the
holder of the first person is the speaker. A pair conflicts by a slot (one property, two values), by
values (two numbers for one count, date or amount), or as two claims (``conflicts``). ``CERTAINTY``
has the measured share of correct decisions of each rule (``experiments/fit_certainty.py``).
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
from memlab.subjects.reading.denials import ends_value, spares_rule
from memlab.subjects.reading.slots import SPEAKER, Slot, read_slots

# The statements of a text are its sentences without greetings, questions, wishes, quotations and orders.
#
# Linking compares statements. Greetings, questions, wishes, quotations, suppositions and orders to the listener state
# nothing, so they neither end a statement nor can be ended. An order that is a standing rule ("Never log tokens", "Use
# spaces") counts as a statement. Each text is read once.


MOST_PARTS = 32
"""The maximum statements of a text that are compared.

Comparing 32 statements with 32 others takes about 0.2 ms.
"""

MOST_CHARACTERS = 6_000
"""The maximum characters that are read of a text, a page and a half; a longer text is a document."""

MOST_WORDS = 90
"""The maximum words of a text that the model of change scores; a longer text is a document."""

# Patterns of openings of a statement in a question, ends of statements in a long sentence, and labels of messages.
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
    """One statement of a text.

    ``whole`` is whether the text consists of this statement, ``hedged`` whether the statement is
    uncertain.
    """

    text: str
    person: str | None
    hedged: bool
    whole: bool

    @cached_property
    def statement(self) -> Statement:
        """The statement's words, stems and negations."""
        return Statement(self.text)

    @cached_property
    def claim(self) -> Claim | None:
        """The claim in the statement, or None for a statement of unsuitable length."""
        return claim(self.text)

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The property slots to which the statement assigns values."""
        return read_slots(self.text)


@dataclass(frozen=True)
class Reading:
    """The statements of a text, in order."""

    text: str
    parts: tuple[Part, ...]

    @cached_property
    def telling(self) -> Telling | None:
        """The statements as input of the change model, or None for a long document."""
        text = " . ".join(part.text for part in self.parts)
        return Telling(text, self.text) if text and text.count(" ") < MOST_WORDS else None

    @property
    def single(self) -> bool:
        """Whether the text consists of exactly one statement."""
        return len(self.parts) == 1 and self.parts[0].whole


# Cached, because each text is compared with many others. A reading takes about 8 kB. In a lab of 40,000 memories, room for
# 4,096 readings is so small that three of four comparisons read the earlier text again.
@lru_cache(maxsize=32768)
def read_text(text: str) -> Reading:
    """Return a ``Reading``, which is the text divided into statements.

    >>> [part.text for part in read_text("Hi Ada! I moved to Oslo, have you been there?").parts]
    ['I moved to Oslo']
    >>> len(read_text("See you for now!").parts), len(read_text("Never log tokens").parts)
    (0, 1)
    """
    parts: list[Part] = []
    read = _LABEL.sub("", text[:MOST_CHARACTERS])
    sentences = list(read_sentences(read))
    for sentence in sentences:
        whole = len(sentences) == 1
        for start, stop in _statement_spans(read, sentence):
            statement = read[start:stop].strip(" \n\t,;:-*\u2022")
            pieces = (
                [statement]
                if len(statement) <= 160
                else [piece.strip() for piece in _CUT.split(statement)]
            )
            alone = whole and len(pieces) == 1 and sentence.act != "question"
            parts += [
                Part(piece, sentence.person, sentence.hedged, alone)
                for piece in pieces
                if any(map(str.isalnum, piece))
            ]
            if len(parts) >= MOST_PARTS:
                return Reading(text, tuple(parts[:MOST_PARTS]))
    return Reading(text, tuple(parts))


def _statement_spans(text: str, sentence: Sentence) -> list[tuple[int, int]]:
    """Return the spans of a sentence that are statements, standing rules, denials or presuppositions of a question."""
    if sentence.act == "order":
        return (
            [(sentence.start, sentence.stop)]
            if _is_standing_rule(text[sentence.start : sentence.stop])
            else []
        )
    if sentence.act == "reaction" and words_of(text[sentence.start : sentence.stop])[:1] in (
        ["no"],
        ["never"],
    ):
        return [(sentence.start, sentence.stop)]
    spans = list(sentence.stated)
    if sentence.act == "question":
        after = max([stop for _, stop in spans], default=sentence.start)
        presupposed = _PRESUPPOSED.search(text, after, sentence.stop)
        if presupposed is not None:
            spans.append((presupposed.end(), sentence.stop))
    return spans


def _is_standing_rule(sentence: str) -> bool:
    """Return whether an order is a lasting rule rather than a single request.

    Orders with "me", "you", "let's" or "please" are requests.
    """
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
    "value": 0.95,
    "words": 0.2,
    **rules(),
}
"""The share of correct decisions of each rule, measured on labelled pairs.

Rules with fewer than five decisions have an estimate. If the certainty is below the setting
destroy-certainty, both memories stay.
"""

_SHARED = 0.5
"""The minimum Jaccard index of the words of two statements about the same thing."""

_ANOTHER_ACT = 0.5
"""The certainty of a verdict on a standing rule by a text that does not name what the rule is about."""

_HEDGED = 0.9
"""The factor of the certainty if one of the two statements is hedged."""


@dataclass(frozen=True)
class Verdict:
    """The result of comparing a later text with an earlier text.

    - `updates`: the later text says that the earlier text is no longer true.
    - `conflicts`: the texts cannot both be true.
    - `denies`: one text denies a word of the other in a statement about the same thing.
    - `changes`: the later text reports a change in a statement about the same thing.
    """

    updates: bool = False
    conflicts: bool = False
    denies: bool = False
    changes: bool = False
    certainty: float = 0.0
    rule: str = ""


# The verdict on texts that are not comparable. Callers test for it by identity.
NOTHING = Verdict()


def compare(new: Reading, old: Reading, *, same_speaker: bool, user_speaks: bool) -> Verdict:
    """Return the verdict on a text and an earlier text: repetition, change or conflict.

    `same_speaker` is whether one person said both. `user_speaks` is whether a missing speaker is
    the user, so that "I" is the user. If the speakers differ, only statements about a named third
    person are compared, with a certainty of at most 0.5.
    """
    if new.text == old.text:
        return NOTHING
    if not new.parts or not old.parts:
        # an order such as "Forget X" states nothing, but may say that a value is over
        is_over = same_speaker and _asserts(new) and ends_value(new.text, old.text)
        return Verdict(True, certainty=CERTAINTY["value"], rule="value") if is_over else NOTHING
    ruled = by_rules(new, old, same_speaker=same_speaker, user_speaks=user_speaks)
    if not same_speaker or new.telling is None or old.telling is None:
        return ruled
    return _apply_odds(ruled, score(new.telling, old.telling, ruled.certainty))


def _asserts(reading: Reading) -> bool:
    """Return whether a text is short and contains no question, wish or condition."""
    words = words_of(reading.text)
    return (
        len(words) < MOST_WORDS
        and "if" not in words
        and all(part.act not in ("question", "wish") for part in read_sentences(reading.text))
    )


def _apply_odds(ruled: Verdict, odds: float | None) -> Verdict:
    """Return the rules' verdict on two texts, raised to the certainty of the change model if that is higher."""
    if odds is None or not noticed(odds):
        return ruled
    likely = certain(odds)
    if likely <= ruled.certainty:
        return ruled
    return replace(
        ruled, updates=ruled.updates or not ruled.conflicts, certainty=likely, rule="change"
    )


def by_rules(new: Reading, old: Reading, *, same_speaker: bool, user_speaks: bool) -> Verdict:
    """Return the verdict of the rules alone, without the change model."""
    # Every pair of statements is compared. The most certain rule is named in the verdict.
    best = NOTHING
    short = new.single and old.single
    documents = new.telling is None or old.telling is None
    ours, theirs = new.parts, old.parts
    if not same_speaker:
        ours, theirs = (
            tuple(part for part in parts if _names_third_person(part)) for parts in (ours, theirs)
        )
    for later in ours:
        for earlier in theirs:
            verdict = _compare_parts(later, earlier, short, user_speaks, documents)
            if verdict is not NOTHING:
                best = _merge_verdicts(best, verdict)
    if same_speaker and new.telling and old.telling and moves_a_value(new.telling, old.telling):
        best = _merge_verdicts(
            best, Verdict(updates=True, certainty=CERTAINTY["values, moved"], rule="values, moved")
        )
    if same_speaker and not documents:
        if ends_value(new.text, old.text):
            best = _merge_verdicts(best, Verdict(True, certainty=CERTAINTY["value"], rule="value"))
        elif best.certainty > _ANOTHER_ACT and spares_rule(new.text, old.text):
            best = replace(best, certainty=_ANOTHER_ACT)
    if not same_speaker and best is not NOTHING:
        return replace(best, certainty=min(best.certainty, 0.5))
    return best


def repeats(new: Reading, old: Reading, *, same_speaker: bool) -> bool:
    """Return whether one speaker's texts have equal words or equal stems."""
    if not same_speaker:
        return False
    if new.text == old.text:
        return True
    return words_of(new.text) == words_of(old.text) or _normalized_stems(
        new.text
    ) == _normalized_stems(old.text)


def _normalized_stems(text: str) -> tuple[str, ...]:
    """Return the stems of a text in order, without articles, "is", "are", "that" and "please".

    So "The port is 80" repeats "port is 80".
    """
    return tuple(
        stem(word)
        for word in words_of(text)
        if word not in ("a", "an", "the", "is", "are", "that", "please")
    )


def _names_third_person(part: Part) -> bool:
    """Return whether a statement's subject is a third person or thing with a name."""
    return (
        part.person == "third"
        and any(word[0].isupper() for word in part.text.split()[:1])
        and part.claim is not None
        and part.claim.bare
    )


def _merge_verdicts(first: Verdict, second: Verdict) -> Verdict:
    """Return the union of two verdicts, with the rule of the more certain verdict."""
    top = first if first.certainty >= second.certainty else second
    return Verdict(
        first.updates or second.updates,
        first.conflicts or second.conflicts,
        first.denies or second.denies,
        first.changes or second.changes,
        top.certainty,
        top.rule,
    )


def _compare_parts(
    new: Part, old: Part, short: bool, user_speaks: bool, documents: bool
) -> Verdict:
    """Return the verdict of the rules on a later and an earlier statement."""
    new_statement, old_statement = new.statement, old.statement
    shared = bool(new_statement.content & old_statement.content)
    if not short and not shared and not (new.slots and old.slots):
        return NOTHING
    overlap = new_statement.overlap(old_statement)
    denies = changes = False
    if short or overlap >= _SHARED:
        denies = (
            new_statement.denies(old_statement) or old_statement.denies(new_statement)
        ) and not of_another(new.claim, old.claim)
        changes = new_statement.updates(old_statement)
    rule, updated = _find_rule(new, old, short, user_speaks, documents, overlap)
    if rule is None and not denies and not changes:
        return NOTHING
    name = rule
    if name is None:
        name = ("denial" if denies else "words") + (
            ", short" if short and overlap >= _SHARED else ""
        )
    sure = CERTAINTY[name] * (_HEDGED if new.hedged or old.hedged else 1.0)
    return Verdict(
        rule is not None and updated, rule is not None and not updated, denies, changes, sure, name
    )


def _find_rule(
    new: Part, old: Part, short: bool, user_speaks: bool, documents: bool, overlap: float
) -> tuple[str | None, bool]:
    """Return the rule by which two statements conflict, or None, and whether one updates the other.

    The second value is whether the later statement says that the earlier statement is no longer true. `documents`
    is whether one of the texts is long. Values are not compared then, because a long text counts different things
    in similar words.
    """
    if _hold_at_different_times(new, old) or _hold_in_different_places(new.text, old.text):
        return None, False
    by_slot = _find_slot_rule(new, old, short, user_speaks)
    if by_slot is not None:
        return by_slot
    ours, theirs = _normalize_user(new.claim, user_speaks), _normalize_user(old.claim, user_speaks)
    if (
        ours is not None
        and theirs is not None
        and (short or (ours.subject and ours.subject == theirs.subject and overlap >= _SHARED))
    ):
        updated, contrary = updates(ours, theirs), conflicts(ours, theirs)
        if updated or contrary:
            return "claim, short" if short else "claim", updated
    return (None if documents else _find_value_rule(new, old, short)) or (None, False)


def _hold_at_different_times(new: Part, old: Part) -> bool:
    """Return whether two statements refer to different times and the new statement reports no change.

    Examples of times are "in 2020" and "as a child".
    """
    ours, theirs = new.claim, old.claim
    if ours is None or theirs is None:
        return False
    return (
        not ours.changing
        and (ours.times != theirs.times or ours.past != theirs.past)
        and bool(ours.times | theirs.times)
    )


# A pattern of a scope after a preposition, such as "in Python files".
_WHERE = re.compile(
    r"\b(?:in|for|on) (?:the |our |my |all |a )?(?P<where>[A-Za-z][\w.-]*(?: files?| code| projects?)?)"
)


def _hold_in_different_places(new: str, old: str) -> bool:
    """Return whether two statements apply to different things, as in "spaces in Python".

    Tabs in Makefiles do not conflict with spaces in Python.
    """
    ours, theirs = (
        {stem(match["where"].lower().split()[0]) for match in _WHERE.finditer(text)}
        for text in (new, old)
    )
    if not ours or not theirs or ours & theirs:
        return False
    new_stems, old_stems = (frozenset(map(stem, words_of(text))) for text in (new, old))
    # Scopes separate statements only if other words differ too: "in Boston" and "in Seattle" are two values.
    return (
        bool((new_stems - old_stems) - ours - _LITTLE)
        and bool((old_stems - new_stems) - theirs - _LITTLE)
        and bool(new_stems & old_stems - _LITTLE)
        and not _CHANGED.search(new)
    )


# Words without content for the comparison of scopes, and a pattern of words of change.
_LITTLE = frozenset(map(stem, vocabulary("linking", "little")))
_CHANGED = re.compile(
    r"\b(?:now|moved|switched|no longer|instead|changed|relocated|rescheduled|migrated)\b",
    re.IGNORECASE,
)


def _normalize_user(claim: Claim | None, user_speaks: bool) -> Claim | None:
    """Return a claim with the user in place of the subject "I"; other claims, and None, are unchanged.

    ``user_speaks`` is whether the speaker is the user. A claim about the user's possession becomes one about the
    thing.
    """
    if claim is None or not user_speaks:
        return claim
    if claim.subject[:1] == ("i",):
        return replace(claim, subject=("user", *claim.subject[1:]))
    if claim.subject[:2] == ("user", "'s") and len(claim.subject) > 2:
        return replace(claim, subject=claim.subject[2:])
    return claim


# -- slots ----------------------------------------------------------------------------------------------------


def _find_slot_rule(
    new: Part, old: Part, short: bool, user_speaks: bool
) -> tuple[str, bool] | None:
    """Return the slot rule by which two statements conflict, or None without a conflict.

    The second value is whether the later statement reports a change.
    """
    if not new.slots or not old.slots:
        return None
    for later in new.slots:
        for earlier in old.slots:
            if _slots_conflict(later, earlier, user_speaks) and not later.past:
                if earlier.past and not later.cue:
                    continue
                rule = "slot, cue" if later.cue else "slot, short" if short else "slot"
                return rule, later.cue
    return None


def _slots_conflict(new: Slot, old: Slot, user_speaks: bool) -> bool:
    """Return whether two slots give one owner's property different values, of which neither contains the other."""
    if new.name.startswith("instead:"):
        return _contains_name(new.name[8:], old.value) and old.name.split(":")[0] in (
            "tool",
            "class",
            "version",
        )
    if new.name != old.name or _get_owner(new.holder, user_speaks) != _get_owner(
        old.holder, user_speaks
    ):
        return False
    if new.value == old.value:
        return False
    if new.name == "diet":
        return _excludes_diet(new.value, old.value)
    if new.value.startswith("not ") or old.value.startswith("not "):
        return new.value.removeprefix("not ") == old.value.removeprefix("not ")
    # In "Rome" and "Rome, Italy", or "engineer" and "senior engineer", one value is more specific. Those do not
    # conflict.
    return not (
        set(new.value.split()) <= set(old.value.split())
        or set(old.value.split()) <= set(new.value.split())
    )


def _get_owner(holder: str, user_speaks: bool) -> str:
    """Return the owner of a property; "I" stands for the user if the user speaks."""
    return "user" if user_speaks and holder == SPEAKER else holder


def _contains_name(name: str, value: str) -> bool:
    """Return whether a value is not empty and equals a name or one of the name's words."""
    return bool(value) and (value in name.split() or name == value)


# Built once from the table of diets.
@cache
def _diets() -> frozenset[frozenset[str]]:
    """Return the pairs of diets that exclude each other."""
    return frozenset(frozenset(pair) for pair in lexicon()["linking"]["diets-exclude"])


def _excludes_diet(new: str, old: str) -> bool:
    """Return whether two diets exclude each other or one denies the other."""
    mine, theirs = new.removeprefix("not "), old.removeprefix("not ")
    if (new != mine) != (old != theirs):
        return mine == theirs
    return new == mine and old == theirs and frozenset((mine, theirs)) in _diets()


# -- numbers, dates and amounts -----------------------------------------------------------------------------


def _find_value_rule(new: Part, old: Part, short: bool) -> tuple[str, bool] | None:
    # Values of one kind conflict only in similar contexts. A word of change lowers the similarity that is required.
    """Return the value rule by which two statements conflict, or None without a conflict.

    The second value is whether the later statement reports a change.
    """
    mine, theirs = read_values(new.text), read_values(old.text)
    if not mine.by_kind or not theirs.by_kind:
        return None
    content = _context_stems(new)
    others = _context_stems(old)
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
    """Return the sets of values in another text that have a comparable kind.

    A count without a unit is compared with counts of units that the new text names, and with counts
    without a unit.
    """
    comparable = [others[kind]] if kind in others and kind != "count:" else []
    if kind == "count:":
        comparable += [
            values
            for name, values in others.items()
            if name.startswith("count:") and name[6:] in content and name[6:]
        ]
        comparable += [others["count:"]] if "count:" in others else []
    return comparable


def _context_stems(part: Part) -> frozenset[str]:
    """Return the stems in a statement, except stems of values and of words of change."""
    left_out = table("linking", "moves") | {"user", "information", "update"}
    return frozenset(
        word
        for word in part.statement.content
        if word not in left_out and not word[0].isdigit() and word not in _months()
    )


# Built once, because it is looked up for every stem of a statement.
@cache
def _months() -> frozenset[str]:
    """Return the names and stems of months and days, with "am" and "pm"."""
    return (
        frozenset(stem(word) for word in vocabulary("negation", "calendar"))
        | vocabulary("negation", "calendar")
        | {"am", "pm"}
    )
