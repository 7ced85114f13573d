"""The words of a clause: verbs of a table, phrases, and values that end by rules.

Facts are read from one clause at a time. ``ClauseWords`` holds the words of a clause in lower case,
with their positions in the message. An index beyond the end of the clause gives an empty word.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from memlab.kernel.english import Token, lexicon, vocabulary, word_pattern
from memlab.kernel.english import table as read_table

__all__ = [
    "ARTICLES",
    "CHANGED",
    "DOUBTFUL",
    "INFERRED",
    "LOWEST",
    "OPEN",
    "SAID_OF_OTHERS",
    "SURE",
    "TEAM",
    "USER",
    "ClauseValue",
    "ClauseWords",
    "Fact",
    "Subject",
    "is_cut_short",
    "is_lasting_plan",
    "may_state_fact",
    "strip_marks",
    "word_table",
]

# The names of the user and of the user's group as subjects.
USER, TEAM = "user", "team"

SURE, CHANGED, SAID_OF_OTHERS, INFERRED = 0.95, 0.92, 0.85, 0.6
"""The confidence of four sorts of facts.

They are facts about the speaker, facts about a move or new post, facts about others, and facts that
an assistant states.
"""

OPEN = 0.55
"""The confidence of a property whose noun has no judged example.

It is below .6, the minimum for use, until such facts are judged.
"""

LOWEST = 0.44
"""The confidence below which no fact is proposed, because fewer than half of such facts are useful."""

DOUBTFUL = 0.5
"""The maximum confidence of a value that rarely fits its predicate.

It is below .6, from which on facts are used.
"""

# The articles, the maximum lengths of phrases, and patterns of words at the ends of values. The lengths cover all
# phrases of the tables; longer values are clauses.
ARTICLES = ("a", "an", "the")
_MOST_ADVERBS = 3
_MOST_OF_A_VERB = 5
_MOST_OF_A_VALUE = 14
_LONGEST_VALUE = 120
_TRIMMED = " \t\r\n.,;:!?\u2026\"'*_~-\u2013\u2014()[]"
_LAUGHTER = re.compile(r"[ab]?(?:ha|ah)+h?|l+o+l+|x+d+|x+p+|:+[a-z()]*|[;:=]\S{1,2}|l+m+f?a+o+")
_TITLE = re.compile(r"\s*[\"\u201c](?P<title>[^\"\u201c\u201d\n]{2,60})[\"\u201d]")
_NEXT = re.compile(r",\s+(?P<word>[^\W\d_][\w'\u2019-]*)\s+[^\W_]")
_YEAR = re.compile(r"(?:19|20)\d\d")
_OF_SEVERAL = frozenset(("their", "they", "them", "its"))
_SEVERAL = frozenset(("people", "children", "men", "women", "folks"))
_OF_STUDENTS = ("student", "major", "minor")
_WITHOUT_A_VERB = ("place", "work", "is", "job", "subject-matter")
_DATED = ("place", "work", "job", "is")


@dataclass(frozen=True, slots=True)
class Fact:
    """A subject, a predicate and a value, with their position in the message.

    Attributes
    ----------
    subject, predicate, value
        The parts of the fact.
    entity
        Whether the value is an entity, such as a place or a person.
    kind
        The kind of memory to store.
    confidence
        The confidence of the rule, 0 to 1.
    start, stop
        The position of the statement in the message, in characters.
    text
        The fact as a sentence, if subject, predicate and value do not form one. The placeholders
        {subject} and {possessive} stand for the subject.
    """

    subject: str
    predicate: str
    value: str
    entity: bool
    kind: str
    confidence: float
    start: int
    stop: int
    text: str | None = None


@dataclass(slots=True)
class Subject:
    """The subject of a clause.

    ``verb`` is the word index at which its verb may begin. ``own`` is whether the verb has the form
    of the first person, ``is_thing`` whether the subject is a thing.
    """

    name: str
    own: bool
    verb: int
    start: int
    is_thing: bool = False


class ClauseValue(NamedTuple):
    """A value in the third person, and the character of the message where it ends."""

    text: str
    stop: int


@cache  # converting lists to sets takes time, and the tables do not change
def word_table(name: str) -> Any:
    """Return the table of this name from the extraction rules."""
    return read_table("extraction", name)


def strip_marks(text: str) -> str:
    """Remove white space and punctuation from both ends of a text."""
    return text.strip(_TRIMMED)


class ClauseWords:
    """The words of a clause, with methods that find verbs, names and values.

    Attributes
    ----------
    text
        The message.
    words
        The words of the clause with their positions in the message; contractions are split.
    lows
        The words of the clause in lower case.
    """

    __slots__ = ("lows", "text", "words")

    def __init__(self, text: str, words: Sequence[Token]) -> None:
        self.text, self.words = text, words
        self.lows = [word.low for word in words]

    def __len__(self) -> int:
        return len(self.lows)

    def low(self, index: int) -> str:
        """Return the word at an index in lower case, or "" past the end."""
        return self.lows[index] if index < len(self.lows) else ""

    def join_words(self, start: int, stop: int) -> str:
        """Return the words from ``start`` to ``stop`` as one text in lower case."""
        return " ".join(self.lows[start:stop])

    def original_text(self, start: int, stop: int) -> str:
        """Return the text from word ``start`` to ``stop`` as written, without outer punctuation."""
        return strip_marks(self.text[self.words[start].start : self.words[stop - 1].stop])

    def is_capital(self, index: int) -> bool:
        """Return whether the word at an index begins with a capital letter."""
        if index >= len(self.words):
            return False
        word = self.words[index]
        first = next((sign for sign in self.text[word.start : word.stop] if sign.isalnum()), "")
        return first.isupper()

    def find_name_end(self, start: int, max_words: int) -> int:
        """Return the index after at most ``max_words`` capitalised words."""
        stop = start
        while stop < start + max_words and self.is_capital(stop):
            stop += 1
        return stop

    def index_after(self, index: int, stop: int) -> int:
        """Return the index of the next word that begins at the character ``stop`` or later.

        The result is a word index; ``stop`` is a character position in the message.
        """
        following = range(index + 1, len(self.words))
        return next(
            (position for position in following if self.words[position].start >= stop),
            len(self.words),
        )

    def find_longest(self, index: int, phrases: Container[str]) -> str | None:
        """Return the longest of the ``phrases`` at a word, or None without a match."""
        for stop in range(min(index + _MOST_OF_A_VERB, len(self)), index, -1):
            phrase = self.join_words(index, stop)
            if phrase in phrases:
                return phrase
        return None

    def measure_phrase(self, index: int, phrases: Sequence[str]) -> int:
        """Return the number of words in the first phrase that matches at a word, or 0."""
        for phrase in phrases:
            parts = phrase.split()
            if self.lows[index : index + len(parts)] == parts:
                return len(parts)
        return 0

    # Verbs

    def skip_adverbs(self, index: int) -> list[int]:
        """Return the indices at which a verb may begin: ``index``, and after each adverb."""
        positions = [index] if index < len(self) else []
        while (
            positions
            and len(positions) <= _MOST_ADVERBS
            and self.lows[positions[-1]] in word_table("adverbs")
        ):
            if positions[-1] + 1 >= len(self):
                break
            positions.append(positions[-1] + 1)
        return positions

    def find_verb(self, index: int, *, own: bool) -> tuple[str, int] | None:
        """Return the longest verb after the adverbs at a word, and the index after the verb.

        The verb is returned in the form of the first person. ``own`` is whether the clause uses
        that form.

        >>> from memlab.subjects.reading.clauses import contracted_words
        >>> text = "really likes tea"
        >>> ClauseWords(text, contracted_words(text, 0, len(text))).find_verb(0, own=False)
        ('like', 2)
        """
        for position in self.skip_adverbs(index):
            match = self._find_form(own, (), position)
            # an auxiliary, adverbs and the verb, as in "I'm now living in"
            if match is None and self.low(position) in ("am", "is", "have", "has"):
                after_auxiliary = next(
                    (
                        next_position
                        for next_position in self.skip_adverbs(position + 1)
                        if next_position > position + 1
                    ),
                    None,
                )
                match = (
                    None
                    if after_auxiliary is None
                    else self._find_form(own, (self.lows[position],), after_auxiliary)
                )
            if match is not None:
                return match
        return None

    def _find_form(self, own: bool, before: tuple[str, ...], index: int) -> tuple[str, int] | None:
        """Return the longest verb form at a word and the index after the form, or None if there is no verb.

        ``before`` are words that precede the form.
        """
        forms = _index_forms(own)
        for stop in range(min(index + _MOST_OF_A_VERB, len(self)), index, -1):
            verb = forms.get((*before, *self.lows[index:stop]))
            if verb is not None:
                return verb, stop
        return None

    def is_something(self, index: int) -> bool:
        """Return whether "is" and another word follow at an index, after optional adverbs."""
        return any(
            self.lows[position] == "is" and position + 1 < len(self)
            for position in self.skip_adverbs(index)
        )

    # Values

    def read_value(self, index: int, sort: str) -> ClauseValue | None:
        """Return the value that starts at a word and ends by the rules for its sort of value.

        The value is in the third person. The result is None if the value is empty, refers to the
        moment, or is a whole sentence.
        """
        if index >= len(self):
            return None
        lows = self.lows[index:]
        lows = lows[: _end_at_stops(lows, sort)]
        lows = lows[: _end_at_date(lows, sort)]
        lows = lows[: _end_at_run_on(lows)]
        if _is_comparison(lows):
            return None
        lows = lows[: _end_at_tails(lows)]
        lows = lows[: self._end_at_second_verb(index, lows, sort)]
        if (
            not lows
            or len(lows) > _MOST_OF_A_VALUE
            or self._refers_outside(index, lows)
            or _is_empty(lows)
        ):
            return None
        stop = self.words[index + len(lows) - 1].stop
        text = " ".join(self.text[self.words[index].start : stop].split())
        text = " ".join(
            word_table("possessives").get(word.lower(), word)
            for word in strip_marks(text).split(" ")
        )
        is_valid = text and len(text) <= _LONGEST_VALUE and any(map(str.isalnum, text))
        return ClauseValue(text, stop) if is_valid else None

    def read_title(self, index: int, sort: str) -> ClauseValue | None:
        r"""Return the quoted title after a verb of taste, as in "I love \"The Santa Clause\" too"."""
        if sort not in ("taste", "choice", "subject-matter") or not index:
            return None
        match = _TITLE.match(self.text, self.words[index - 1].stop)
        return None if match is None else ClauseValue(match["title"].strip(), match.end())

    def is_trait(self, index: int) -> bool:
        """Return whether a lasting trait such as "Polish" begins at this word."""
        low = self.low(index)
        if low in word_table("traits") or self.join_words(index, index + 2) in word_table("traits"):
            return True
        return (
            self.is_capital(index)
            and len(low) > 4
            and low.endswith(tuple(word_table("nationality-endings")))
        )

    def is_first_of_two(self, value: ClauseValue) -> bool:
        """Return whether a value ends with an adjective before further adjectives.

        An example is "self-directed, independent learning".
        """
        match = _NEXT.match(self.text, value.stop)
        last = value.text.rsplit(" ", 1)[-1]
        if match is None or last[:1].isupper():
            return False
        continuing = (
            word_table("subjects")
            | word_table("openers")
            | word_table("inverted-verbs")
            | word_table("after-comma")
        )
        is_list = match["word"].lower() in continuing or match["word"][0].isupper()
        return not is_list and not last.lower().endswith("s")

    def _end_at_second_verb(self, index: int, lows: list[str], sort: str) -> int:
        """Return the number of words in a value before an "and" that starts a new clause, or of all words without one.

        Examples are "a Russian major and stay far away" and "Orem and signed a lease".
        """
        if sort not in _WITHOUT_A_VERB:
            return len(lows)
        for position in range(1, len(lows) - 1):
            if lows[position] not in ("and", "then"):
                continue
            after = lows[position + 1]
            continues = after in (*ARTICLES, "my", "our") or after in word_table("places-after-and")
            continues = continues or self.is_capital(index + position + 1)
            if sort == "subject-matter":
                continues = not after.endswith("ing") or after in word_table("activities")
            elif sort in ("is", "job"):
                continues = continues or any(map(_is_role, lows[position + 1 : position + 3]))
            if not continues:
                return position
        return len(lows)

    def _refers_outside(self, index: int, lows: list[str]) -> bool:
        """Return whether a third-person pronoun in a value has no name, relative or fitting plural before it."""
        for position, low in enumerate(lows):
            if low not in word_table("third-pronouns"):
                continue
            is_named = any(
                self.is_capital(index + offset) or lows[offset] in word_table("relations")
                for offset in range(position)
            )
            if low in _OF_SEVERAL:
                is_named = is_named or any(
                    offset.endswith("s") or offset in _SEVERAL for offset in lows[:position]
                )
            if not is_named:
                return True
        return False


@cache  # the tables of the language do not change
def _index_forms(own: bool) -> dict[tuple[str, ...], str]:
    """Return an index from the words of a verb form to the first-person verb.

    With ``own``, the form is the first-person form, otherwise the third-person form.
    """
    return {
        tuple((verb if own else other).split()): verb
        for verb, (other, *_) in word_table("verbs").items()
    }


@cache  # the tables of the language do not change
def _stop_phrases(sort: str) -> frozenset[str]:
    """Return the phrases that end an extracted value of this sort."""
    return frozenset(word_table("stops")[sort])


def _end_at_stops(lows: list[str], sort: str) -> int:
    """Return the number of words in a value before the first phrase that ends the value, or of all words without one.

    The first word never ends the value.
    """
    end = len(lows)
    for size in (1, 2, 3):
        phrases = (" ".join(lows[position : position + size]) for position in range(1, end))
        end = next(
            (
                position
                for position, phrase in enumerate(phrases, 1)
                if phrase in _stop_phrases(sort)
            ),
            end,
        )
    return end


def _end_at_date(lows: list[str], sort: str) -> int:
    """Return the number of words in a value before a date, as in "Cardiff in May", or of all words without one."""
    if sort not in _DATED:
        return len(lows)
    for position in range(1, len(lows) - 1):
        first, last = lows[position + 1], lows[position + 1 : position + 3][-1]
        if lows[position] in ("in", "on", "around", "during") and (
            _is_date(first)
            or _YEAR.fullmatch(first)
            or (first in ("early", "late", "mid", "the") and _is_date(last))
        ):
            return position
    return len(lows)


def _is_date(low: str) -> bool:
    """Return whether a word can be part of a date, such as a month."""
    return low in word_table("dates") or low in word_table("months")


def _end_at_run_on(lows: list[str]) -> int:
    """Return the number of words in a value before a run-on sentence, or of all words without one.

    Examples are "San Fran its such a fun city" and "hiking cause it is".
    """
    for position, (low, after) in enumerate(zip(lows, [*lows[1:], ""], strict=True)):
        if position and (
            low in word_table("run-on") or (low == "its" and after in word_table("after-its"))
        ):
            return position
    return len(lows)


def _end_at_tails(lows: list[str]) -> int:
    """Return the number of words in a value before its adverbials and laughter at the end, such as "these days"."""
    end = len(lows)
    while end:
        sizes = (
            size
            for size in (3, 2, 1)
            if end > size and " ".join(lows[end - size : end]) in word_table("tails")
        )
        size = next(sizes, 0) or int(end > 1 and _LAUGHTER.fullmatch(lows[end - 1]) is not None)
        if not size:
            break
        end -= size
    return end


def _is_comparison(lows: list[str]) -> bool:
    """Return whether an activity ends in a bare comparison, as in "eating more"."""
    return lows[-1] in ("more", "better", "less", "worse") and (
        lows[0] == "to" or lows[0].endswith("ing")
    )


def _is_empty(lows: list[str]) -> bool:
    """Return whether a value has no content or refers only to the present moment."""
    if lows == ["to"] or lows[0] == "like" or lows[0] in word_table("deictic"):
        return True
    lone_words = {
        low
        for low, after in zip(lows, [*lows[1:], ""], strict=True)
        if after not in word_table("spans")
    }
    first = lows[: 3 if lows[0] in ARTICLES else 2]
    return not word_table("deictic-anywhere").isdisjoint(lone_words) or not word_table(
        "empty-values"
    ).isdisjoint(first)


def _is_role(low: str) -> bool:
    """Return whether a word is a role, relation, trait or occupation."""
    vocabularies = (
        vocabulary("extraction", "relations", "traits"),
        vocabulary("linking", "occupations"),
    )
    return low.endswith(_OF_STUDENTS) or any(low in words for words in vocabularies)


def is_lasting_plan(plan: str, *, said_to_someone: bool) -> bool:
    """Return whether a plan or wish concerns the user's life rather than a task."""
    words = [word for word in plan.lower().split() if word not in word_table("adverbs")]
    if not words or words[0] not in word_table("life-verbs"):
        return (
            said_to_someone
            and bool(words)
            and words[0] not in word_table("asking-verbs")
            and len(words) > 2
        )
    if words[0] == "apply" and words[1:2] not in (["for"], ["to"]):  # a formula, not a post
        return False
    is_named = any(part[:1].isupper() or part[:1].isdigit() for part in plan.split()[1:])
    nouns = {word.strip(".,;!") for word in words}
    if "i" in nouns:
        return False
    return (
        is_named
        or words[0] not in word_table("weak-verbs")
        or not word_table("life-nouns").isdisjoint(nouns)
    )


def is_cut_short(value: str) -> bool:
    """Return whether a value ends with a word that cannot end a sentence."""
    words = value.lower().split()
    if "i" in words[1:]:
        return True
    return (
        words[-1] in word_table("open-ends")
        or bool(vocabulary("extraction", "sentence-starts") & set(words))
        or value[:1] in "-"
    )


# A cheap test whether a text may state a fact: one scan over its words.


_SEPARATE = word_pattern("hyphenated")
"""The pattern of words, which may contain hyphens."""


def may_state_fact(text: str) -> bool:
    """Return whether a text may state a fact.

    This is a cheap test before parsing, because most messages state no fact.

    >>> may_state_fact("I live in Rome"), may_state_fact("It rained all day")
    (True, False)
    """
    words = _SEPARATE.findall(text.replace("\u2019", "'"))
    lows = " ".join(words).lower().split(" ")  # lowering each word takes three times as long
    if not _change_words().isdisjoint(lows):
        return True
    first = _index_beginnings()["first"]
    if first.isdisjoint(lows):
        return False
    for position, low in enumerate(lows):  # noqa: SIM110 - a generator takes twice as long
        if low in first and _may_begin_fact(words, lows, position):
            return True
    return False


def _may_begin_fact(words: list[str], lows: list[str], position: int) -> bool:
    """Return whether the subject and verb of a fact may begin at a word."""
    # The cheapest tests come first, because the function runs for most words of every message.
    low, beginnings = lows[position], _index_beginnings()
    if low in beginnings["others"]:
        return low in beginnings["things"] or _follows_person(words, lows, position)
    if low in ("user", "i'd", "we'd"):
        return True
    if low not in vocabulary("extraction", "fact-starts"):
        return False
    after = position + 1
    while (
        after < len(lows)
        and after <= position + _MOST_ADVERBS
        and lows[after] in word_table("adverbs")
    ):
        after += 1
    following = lows[after] if after < len(lows) else ""
    if (
        low in ("is", "are")
        and following
        and _may_state_property(lows, position, following, words[after] != following)
    ):
        return True
    if low in ("i", "we"):
        return following in beginnings["own"]
    if low in ("my", "our"):
        return following.removesuffix("'s") in beginnings["mine"]
    if low == "i've":
        return following in beginnings["have"]
    if low == "call":
        return following == "me"
    if low == "is":
        return following in beginnings["things"] or (
            following in beginnings["being"] and _follows_person(words, lows, position)
        )
    return (
        following in beginnings["being"]
        or words[after : after + 1] != lows[after : after + 1]
        or following.isdigit()
    )


def _may_state_property(
    lows: list[str], position: int, following: str, capital_follows: bool
) -> bool:
    """Return whether the "is" or "are" at a word may state a property."""
    if not (
        capital_follows
        or following in vocabulary("extraction", "before-values")
        or following.endswith("ed")
        or not following.isalpha()
    ):
        beginnings = _index_beginnings()
        if (
            following not in beginnings["participles"]
            and lows[position - 1] not in beginnings["in-a-word"]
        ):
            return False
    before = lows[max(position - _MOST_OWNED, 0) : position]
    return (
        lows[position] == "are"
        or not _OWNERS.isdisjoint(before)
        or any(low.endswith(("'s", "s'")) for low in before)
    )


def _follows_person(words: list[str], lows: list[str], position: int) -> bool:
    """Return whether a name, a relative or possession, "he" or "she" precedes a verb, with only adverbs between them."""
    before = position - 1
    while before >= 0 and lows[before] in word_table("adverbs"):
        before -= 1
    if before < 0:
        return False
    low = lows[before]
    return (
        low in _TOLD_OF
        or low in _index_beginnings()["mine"]
        or (words[before] != low and low not in word_table("no-names"))
    )


# Words with which an owner begins.
_OWNERS = frozenset(("my", "our", "the"))
_MOST_OWNED = 9
"""The maximum number of words from an owner to "is"."""
# Words that may precede the verb of a third-person fact.
_TOLD_OF = frozenset(("he", "she", "user", "and", "but"))


def _select_thing_verbs(
    verbs: list[tuple[list[str], list[str]]],
) -> list[tuple[list[str], list[str]]]:
    """Return the pairs of verb forms whose verb can have a thing as its subject."""
    predicates = word_table("things")["predicates"]
    return [
        (own, other) for own, other in verbs if word_table("verbs")[" ".join(own)][1] in predicates
    ]


@cache  # the tables of the language do not change
def _change_words() -> frozenset[str]:
    """Return words of which each statement of a life change contains at least one."""
    tables = lexicon()["lifecycle"]
    verbs = [
        *tables["endings"],
        *tables["beginnings"],
        *tables["posts"]["as"],
        *tables["posts"]["at"],
    ]
    verbs += [*tables["words"]["gone"], *tables["words"]["anymore"]]
    verbs += [state for states in tables["states"].values() for state in states]
    telling = {word for verb in verbs for word in verb.split()}
    return frozenset(telling - vocabulary("extraction", "plain"))


@cache  # the tables of the language do not change
def _index_beginnings() -> dict[str, frozenset[str]]:
    """Return the sets of words with which a fact's subject or verb may begin, by the type of subject."""
    verbs = [(own.split(), other.split()) for own, (other, *_) in word_table("verbs").items()]
    being = {own[1] for own, _ in verbs if own[0] in ("am", "are")} | {
        trait.split()[0] for trait in word_table("traits")
    }
    mine = word_table("relations") | word_table("properties") | word_table("favourites")
    others = frozenset(other[0] for _, other in verbs) - {"has", "does", "cannot", "would", "is"}
    return {
        "first": vocabulary("extraction", "fact-starts") | others,
        "own": frozenset({own[0] for own, _ in verbs} | {"don't", "dont", "can't"}) - {"are"},
        "others": others,
        "being": frozenset(being | {"a", "an", "the", "our"}),
        "have": frozenset(own[1] for own, _ in verbs if own[0] == "have" and len(own) > 1),
        "mine": frozenset(part for name in mine for part in (name.split()[0], name.split()[-1])),
        "participles": word_table("participles"),
        "in-a-word": word_table("said-in-a-word"),
        "things": frozenset(
            own[1] if own[0] == "are" else other[0] for own, other in _select_thing_verbs(verbs)
        ),
    }
