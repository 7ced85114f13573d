"""Denials, changes and conflicts between two texts, by English words.

A denial reaches the words after it, up to the end of its clause. A text denies another text if the
other text affirms one of the denied words. "Use spaces, not tabs" denies "Use tabs" and does not
deny "Use spaces". Words of change (now, no longer, instead) count only against a text with other
content, because a repeated sentence changes nothing.

Texts of more than ``LONGEST_STATEMENT`` words are not judged: they state several things, and words
do not show which of them is denied. The tables in ``english.toml`` miss denials without a word of
denial ("tabs are out"), and double denials.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial

from memlab.kernel.english import (
    NUMBER_WORDS,
    WEEKDAYS,
    lexicon,
    padded,
    phrases,
    vocabulary,
    word_pattern,
    words_of,
)
from memlab.subjects.reading.sentences import clauses

_negation_phrases, _negation_words = partial(phrases, "negation"), partial(vocabulary, "negation")

# Patterns of a number, and of a single capital letter ("plan B"); "I" and an initial "A" are words.
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_CAPITAL = re.compile(r"(?<![\w'.])[B-HJ-Z](?![\w'])|(?<=\w )A(?![\w'])")
LONGEST_STATEMENT = 40
"""The maximum words of a statement.

By this module's words, a quarter of 909 long messages to an assistant would deny or change an
earlier message, and hardly any does.
"""

_MOST_SHOWN = 60
"""The maximum characters of each side of a difference in a message."""


@dataclass(frozen=True)
class Statement:
    """The words, stems and denials of one text, each computed on first use.

    >>> Statement("We use spaces, not tabs").denies(Statement("We use tabs"))
    True
    >>> Statement("We use spaces, not tabs").denies(Statement("We use spaces"))
    False
    """

    text: str

    @cached_property
    def words(self) -> list[str]:
        """The words of the text, in order."""
        return words_of(self.text)

    @cached_property
    def short(self) -> bool:
        """Whether the text is short enough to be a single statement."""
        return len(self.words) <= LONGEST_STATEMENT

    @cached_property
    def content(self) -> frozenset[str]:
        """The stems of the words, without function words and words of denial or change."""
        left_out = _negation_words("fillers", "denials", "change-words")
        return frozenset(stem(word) for word in self.words if word not in left_out)

    @cached_property
    def denied(self) -> frozenset[str]:
        """The stems of the words that a denial covers.

        A denial reaches the words after it in its clause, or the words before it if no words
        follow.
        """
        # Most texts deny nothing, so the text is searched for a word of denial before it is split into clauses.
        reached_stems: set[str] = set()
        text = self.text.lower()
        plain = text.replace("\u2019", "'")
        if not any(denial in plain for denial in _negation_words("denials")):
            return frozenset()
        for clause in clauses(text):
            words = words_of(clause)
            position = next(
                (at for at, word in enumerate(words) if word in _negation_words("denials")), None
            )
            if position is None:
                continue
            after = [
                word
                for word in words[position + 1 :]
                if word not in _negation_words("fillers", "change-words")
            ]
            reached = after or [
                word for word in words[:position] if word not in _negation_words("fillers")
            ]
            reached_stems.update(
                stem(word) for word in reached if word not in _negation_words("denials")
            )
        return frozenset(reached_stems)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Numbers, single capital letters, weekdays and months in the text.

        They distinguish two things that are described with the same words.
        """
        return (
            frozenset(_NUMBER.findall(self.text))
            | frozenset(_CAPITAL.findall(self.text))
            | _negation_words("calendar").intersection(self.words)
        )

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The stems of the content words in the order of the text."""
        return tuple(stem for stem in map(stem, self.words) if stem in self.content)

    def same_order(self, other: Statement) -> bool:
        """Return False only for two texts with equal stems in different orders.

        "A owes B" and "B owes A" have equal stems in different orders.
        """
        return self.content != other.content or self.order == other.order

    @cached_property
    def changes(self) -> bool:
        """Whether the text reports that something changed."""
        text = padded(self.words)
        for phrase in _negation_phrases("no-changes"):
            text = text.replace(phrase, " ")
        return any(phrase in text for phrase in _negation_phrases("changes"))

    def denies(self, other: Statement) -> bool:
        """Return whether this text denies a word that another text affirms."""
        return (
            self.short and other.short and not self.denied.isdisjoint(other.content - other.denied)
        )

    def overlap(self, other: Statement) -> float:
        """Return the Jaccard index of two texts' content stems, or 0 if both have none."""
        either = len(self.content | other.content)
        return len(self.content & other.content) / either if either else 0.0

    def updates(self, old: Statement) -> bool:
        """Return whether this text reports a change and differs from an older text."""
        return self.short and old.short and self.changes and self.content != old.content


# Cached, because a conversation repeats a few thousand words.
@lru_cache(maxsize=32768)
def stem(word: str) -> str:
    """Return a word without its common ending, for comparison with other stems."""
    if word.endswith("'s"):
        word = word[:-2]
    for ending in lexicon()["text"]["endings"]:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def difference(old: str, new: str) -> str:
    """Return the words in which two texts differ, such as "tabs -> spaces".

    Words that both texts have at the beginning or at the end are left out.

    >>> difference("Indent with tabs", "From now on indent with spaces")
    'tabs -> spaces'
    >>> difference("JWT for auth", "session cookies for auth instead of JWT")
    'JWT for auth -> session cookies for auth instead of JWT'
    """
    before, after = _content_words(old), _content_words(new)
    first, second = [stem(word.lower()) for word in before], [stem(word.lower()) for word in after]
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    end = 0
    while end < min(len(first), len(second)) - start and first[-1 - end] == second[-1 - end]:
        end += 1
    gone, come = before[start : len(before) - end], after[start : len(after) - end]
    if not gone or not come:
        gone, come = before, after
    return f"{_truncate(' '.join(gone))} -> {_truncate(' '.join(come))}"


def both(old: str, new: str) -> str:
    """Return one text that contains the words of two texts.

    The result is the text that contains all words of the other. Otherwise it is both texts, the
    older first.

    >>> both("Ada works at Acme.", "Ada works at Globex in sales")
    'Ada works at Acme; Ada works at Globex in sales'
    """
    before, after = frozenset(words_of(old)), frozenset(words_of(new))
    if after <= before:
        return old
    return new if before <= after else f"{old.rstrip('. ')}; {new}"


def _content_words(text: str) -> list[str]:
    """Return the words of a text without punctuation and words that announce a change, such as "now".

    Words of denial stay. If no word is left, return all words with their punctuation.
    """
    words = [bare for bare in (word.strip(".,;:!?\"'()[]") for word in text.split()) if bare]
    content: list[str] = []
    position = 0
    while position < len(words):
        opening = next(
            (size for size in (3, 2) if _is_change_opening(words[position : position + size])), 0
        )
        compares = [word.lower() for word in words[position : position + 2]] == ["instead", "of"]
        if not opening and (
            compares or words[position].lower() not in _negation_words("change-words")
        ):
            content.append(words[position])
        position += max(opening, 1)
    return content or text.split()


def _is_change_opening(words: list[str]) -> bool:
    """Return whether words announce a change, as "from now on" does."""
    return padded([word.lower() for word in words]) in _negation_phrases("change-openings")


def _truncate(text: str) -> str:
    """Return a text, cut with "..." to the maximum length of each side of a quoted difference."""
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3].rstrip()}..."


# Conflicts of two short statements about one subject are found by words, without a language model.
#
# A claim has a subject, a time, the stems of its predicate, and whether it is denied. Two claims of one subject and one
# time conflict in three cases:
#
# - one claim denies the predicate of the other and says nothing else ("speaks no French" / "speaks French fluently");
# - they differ by opposites ("open" / "closed"), by alternatives ("tabs" / "spaces") or by numbers, and the verb takes
#   one object at a time: "likes tea" allows "likes coffee", and "prefers tea" excludes "prefers coffee";
# - the later claim says that the same thing changed ("lives in Boston" / "has moved to Seattle").
#
# The tables are in ``english.toml`` under ``conflicts``; other languages have no tables. Code and texts outside the
# limits below are not judged, because their words do not show the subject. The time is linear in the length of both
# texts.


FEWEST_OF_CLAIM, LONGEST_CLAIM = 3, 16
"""The minimum and maximum number of words of a claim."""

# Words, numbers from one to twelve in letters, code, years, endings that stems lose, and sets of words with a rule of
# their own: subjects that are people, words before an order, words that only mark a change, and verbs without content.
_TOKEN = word_pattern("clitic")
_NUMBER_WORDS = frozenset(
    word for word, number in NUMBER_WORDS.items() if 1 <= number <= 12 and word != "dozen"
)
_CODE = re.compile(r"[{}<>=;\[\]|\\#*]|\w\(|->|^[^\w'\"]|:$|https?:")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ENDINGS = ("ing", "ed", "s")
_DAYS = frozenset(WEEKDAYS)
_EVERYONE = frozenset({"user", "i", "we", "they", "he", "she", "you"})
_BEFORE_AN_ORDER = frozenset({"always", "never", "do", "not", "please"})
_LIGHT = frozenset({"hav", "want", "need", "get", "b", "us", "do", "year", "now"})


def _claim_words(name: str) -> frozenset[str]:
    """Return a word list of the rules for denials and conflicts."""
    return vocabulary("conflicts", name)


# Cached, because a conversation repeats a few thousand words.
@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """Return the stem of a word, for comparison with the stems of other claims."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word.rstrip("e") or word


# Built once for each table.
@cache
def _class_numbers(name: str) -> dict[str, frozenset[int]]:
    """Return the numbers of the word classes that contain each stem."""
    numbers_by_stem: dict[str, set[int]] = {}
    for number, words in enumerate(lexicon()["conflicts"][name]):
        for word in words:
            numbers_by_stem.setdefault(_stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in numbers_by_stem.items()}


# Built once for each table.
@cache
def _stem_table(name: str) -> frozenset[str]:
    """Return a word list of the rules for denials and conflicts, as stems."""
    return frozenset(map(_stem, _claim_words(name)))


# Built once for each table.
@cache
def _word_map(name: str) -> dict[str, str]:
    """Return a table of the claim rules that maps words to words."""
    return dict(lexicon()["conflicts"][name])


# Built once for each table.
@cache
def _stem_sets(name: str) -> dict[str, frozenset[str]]:
    """Return a table of the claim rules that maps each stem to a set of stems."""
    return {
        _stem(key): frozenset(map(_stem, words))
        for key, words in lexicon()["conflicts"][name].items()
    }


# Compiled once; the longest phrases come first so that they win.
@cache
def _rewrite_pattern() -> re.Pattern[str]:
    """Return the pattern of phrases that are rewritten before a claim is read."""
    phrases = sorted(_word_map("rewritten"), key=len, reverse=True)
    return re.compile(r"\b(" + "|".join(map(re.escape, phrases)) + r")\b")


@dataclass(frozen=True)
class Claim:
    """One short statement, as subject, verb and stems.

    ``subject`` has the stems before the verb, and ``stems`` has the others, including the verb.
    ``denies`` is whether the number of denials is odd. ``times`` has the words that date the
    statement, and ``changing`` the words of change.
    """

    subject: tuple[str, ...]
    verb: str
    stems: frozenset[str]
    denies: bool
    times: frozenset[str]
    changing: frozenset[str]
    numbers: tuple[str, ...]
    names: frozenset[str]
    past: bool
    order: tuple[str, ...]
    ranks: bool
    bare: bool
    """Whether the subject is a single word without an article, which is usually a name."""

    @cached_property
    def general(self) -> bool:
        """Whether the subject is missing or is a person; a person can have many properties."""
        return not self.subject or set(self.subject) <= _EVERYONE


# Cached, because each statement is compared with many others.
@lru_cache(maxsize=4096)
def claim(text: str) -> Claim | None:
    """Return the claim in a text, or None for code and for texts of unsuitable length.

    >>> claim("The user's dog does not like cats").subject, claim("Never log tokens").denies
    (('user', "'s", 'dog'), True)
    """
    # Contractions and phrases are rewritten first. Then the subject is separated, and denials in the predicate are
    # counted.
    if len(text) > 20 * LONGEST_CLAIM or _CODE.search(text):
        return None
    plain = text.replace("\u2019", "'").strip()
    low = _rewrite_pattern().sub(lambda match: _word_map("rewritten")[match[1]], plain.lower())
    low = re.sub(r"\bcannot\b", "can not", re.sub(r"n't\b", " not", low)).replace(
        "ca not", "can not"
    )
    tokens = _TOKEN.findall(low)
    if (
        not FEWEST_OF_CLAIM
        <= sum(token[0].isalpha() for token in tokens)
        <= len(tokens)
        <= LONGEST_CLAIM
    ):
        return None
    subject_length, verb_start = _predicate(tokens)
    subject, rest = tokens[:subject_length], tokens[verb_start:]
    same, denial = _word_map("same-as"), _word_map("denial-of")
    finite = next(
        (
            token
            for token in tokens[subject_length:]
            if token in _claim_words("verbs") or token in _claim_words("past")
        ),
        "",
    )
    negative, order, verb = 0, list[str](), ""
    for token in (*subject, *rest) if not subject_length else rest:
        if token in _claim_words("denying"):
            negative += 1
            continue
        if token in denial:
            negative += 1
            token = denial[token]
        token = same.get(token, token)
        if token in _claim_words("joining") and not (token in ("has", "have", "had") and not verb):
            continue
        stem = "hav" if token in ("has", "had", "have") else _stem(token)
        verb = verb or stem
        order.append(stem)
    changing = frozenset(token for token in tokens if token in _claim_words("changing"))
    when = {token for token in tokens if token in _claim_words("times") or _YEAR.fullmatch(token)}
    past = finite in _claim_words("past") and "born" not in tokens
    when |= {token for token in (tokens if past else tokens[:2]) if token in _DAYS}
    subject_words = [
        token
        for token in subject
        if token == "'s" or token not in _claim_words("joining") | {"now", "nowadays"}
    ]
    names = frozenset(_stem(word.lower()) for word in re.findall(r"(?<=\s)[A-Z][\w-]+", plain))
    return Claim(
        subject=tuple(_stem(token) if token != "'s" else token for token in subject_words),
        verb=verb,
        order=tuple(order),
        stems=frozenset(order)
        - {
            _stem(token) for token in changing if token in ("now", "instead", "nowadays", "anymore")
        },
        denies=negative % 2 == 1,
        times=frozenset(when),
        changing=changing,
        numbers=tuple(token for token in rest if _NUMBER.match(token) or token in _NUMBER_WORDS),
        names=names,
        past=past,
        ranks="over" in tokens,
        bare=subject_length == 1 and tokens[0] not in _EVERYONE,
    )


def _predicate(tokens: list[str]) -> tuple[int, int]:
    """Return the index at which the predicate begins, and the number of words of the subject.

    A denial before the verb belongs to the predicate. Both are 0 for an order or without a verb.
    """
    verbs, nouns = _claim_words("verbs"), _claim_words("nouns-too")
    candidates = [position for position, token in enumerate(tokens[:8]) if token in verbs]
    sure = [position for position in candidates if tokens[position] not in nouns]
    if not candidates:
        return 0, 0
    opens = next((index for index, token in enumerate(tokens) if token not in _BEFORE_AN_ORDER), 0)
    # "Work is ...": a word that could be an order is the subject of the verb right after it.
    if opens in candidates and not (tokens[opens] in nouns and sure and opens < sure[0] <= 2):
        return 0, 0
    position = (
        sure[0] if sure and (sure[0] <= candidates[0] or candidates[0] <= 1) else candidates[0]
    )
    if (
        candidates[0] < position
        and candidates[0] > 0
        and tokens[candidates[0] - 1] not in ("the", "a", "'s", "an")
    ):
        position = candidates[0]
    begins = position
    while begins and tokens[begins - 1] in (
        "always",
        "never",
        "not",
        "no",
        "also",
        "usually",
        "often",
        "now",
    ):
        begins -= 1
    return begins, begins


def of_another(new: Claim | None, old: Claim | None) -> bool:
    """Return whether both claims have a subject and the subjects differ."""
    return (
        new is not None
        and old is not None
        and bool(new.subject and old.subject)
        and new.subject != old.subject
    )


def conflicts(new: Claim | None, old: Claim | None) -> bool:
    """Return whether two claims cannot both be true, in either order.

    >>> conflicts(claim("The user speaks no French"), claim("The user speaks French fluently"))
    True
    >>> conflicts(claim("The user likes tea"), claim("The user likes coffee"))
    False
    """
    if new is None or old is None or new.subject != old.subject:
        return False
    if new.times != old.times or new.past != old.past:
        return False
    if new.denies != old.denies:
        return _contains_denied(new, old) if new.denies else _contains_denied(old, new)
    return not new.denies and _assigns_two_values(new, old)


def updates(new: Claim | None, old: Claim | None) -> bool:
    """Return whether a new claim declares an old claim invalid.

    >>> updates(claim("The user has moved to Seattle"), claim("The user lives in Boston"))
    True
    """
    if new is None or old is None or not new.changing or old.changing:
        return False
    shared = new.stems & old.stems - _LIGHT
    if shared & (
        old.names | _class_numbers("alternatives").keys()
    ) and not new.changing <= _claim_words("happening"):
        return True
    ends, old_stems = _stem_sets("ends"), old.stems | set(old.subject)
    if any(
        _stem(word) in ends and ends[_stem(word)] & (old_stems | _possession_stems(old))
        for word in (*new.changing, *new.stems)
    ):
        return new.subject == old.subject or not old.subject or new.general
    if new.subject != old.subject and old.subject and not (new.general and old.general):
        return False
    if new.subject == old.subject and not new.general:
        # Other statements about Ada stay true after she moves; those about a thing that was moved do not.
        alike = new.verb == old.verb or bool(shared) or _assigns_two_values(new, old)
        return alike or not new.bare or not new.changing <= _claim_words("happening") | {"now"}
    return 2 * len(shared) >= max(1, len(old.stems - _LIGHT)) and bool(shared)


def _possession_stems(old: Claim) -> frozenset[str]:
    """Return the set with the stem of "has" if the verb is "have", or an empty set."""
    return frozenset({"ha"}) if old.verb == "hav" else frozenset()


def _contains_denied(denying: Claim, other: Claim) -> bool:
    """Return whether ``other`` has each content word of ``denying`` except numbers, or a word that implies it."""
    holding = _stem_sets("holding")
    core = denying.stems - _LIGHT
    if not core:
        return denying.stems == other.stems
    return all(
        word in other.stems or (word in holding and holding[word] & other.stems)
        for word in core - set(denying.numbers)
    )


def _assigns_two_values(new: Claim, old: Claim) -> bool:
    """Return whether two claims give one property different values."""
    # Tests go from certain to uncertain signs: order, numbers, opposites, containment, alternatives, frames of one
    # value.
    gone, come = old.stems - new.stems, new.stems - old.stems
    if new.ranks and old.ranks and not gone and not come:
        return new.order != old.order
    numbers = {*new.numbers, *old.numbers}
    words_gone, words_come = (
        gone - numbers - _number_stems(old),
        come - numbers - _number_stems(new),
    )
    if new.numbers != old.numbers and not words_gone and not words_come:
        return new.verb not in _stem_table("several") or not new.general or new.verb == "hav"
    if not gone or not come:
        return False
    if _share_class("opposites", gone, come):
        return max(len(gone), len(come)) <= 4
    holding = _stem_sets("holding")
    if any(holding.get(word, frozenset()) & come for word in gone) or any(
        holding.get(word, frozenset()) & gone for word in come
    ):
        return True
    if new.subject and (
        new.verb in _stem_table("several") or new.stems & old.stems & _stem_table("several")
    ):
        return False
    if max(len(gone), len(come)) > 3:
        return False
    if _share_class("alternatives", gone, come):
        return True
    frame = ({new.verb} | set(new.subject) | (new.stems & old.stems)) & _stem_table("one-value")
    same_frame = bool(frame) and (
        new.verb == old.verb or bool(set(new.subject) & _stem_table("one-value"))
    )
    both_named = bool(gone & old.names) and bool(come & new.names)
    return same_frame and (
        both_named
        or (len(gone) == len(come) == 1 and bool(new.stems & old.stems or not new.general))
    )


def _number_stems(claim: Claim) -> frozenset[str]:
    """Return the stems of the numbers in a claim."""
    return frozenset(_stem(word) for word in claim.numbers)


def _share_class(name: str, gone: frozenset[str], come: frozenset[str]) -> bool:
    """Return whether a removed and an added word belong to one word class."""
    classes = _class_numbers(name)
    old_classes = frozenset().union(*(classes.get(word, frozenset()) for word in gone))
    new_classes = frozenset().union(*(classes.get(word, frozenset()) for word in come))
    return bool(old_classes & new_classes)
