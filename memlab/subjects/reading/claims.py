"""Whether one text denies what another says, and whether it says that something changed: by words, in plain English.

A denial has a reach: the words after it, to the end of its clause. One text denies another where a word that it denies
stands undenied in the other: "Use spaces, not tabs" denies "Use tabs", and does not deny "Use spaces". That a text says
of a change (now, no longer, instead) counts only beside a text that says something else: the same sentence said again
changes nothing. Of a text of more than ``LONGEST_STATEMENT`` words nothing is said: it says more than one thing; what of it is
denied or changed cannot be seen by its words. What the tables (``english.toml``) cannot see: denial without a word for
it ("tabs are out"), and two denials that cancel each other.
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

__all__ = [
    "LONGEST_STATEMENT",
    "Claim",
    "Statement",
    "both",
    "claim",
    "conflicts",
    "difference",
    "of_another",
    "stem",
    "updates",
]


_negation_phrases, _negation_words = partial(phrases, "negation"), partial(vocabulary, "negation")

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_CAPITAL = re.compile(r"(?<![\w'.])[B-HJ-Z](?![\w'])|(?<=\w )A(?![\w'])")
LONGEST_STATEMENT = 40
"""Words. Of 909 long messages to an assistant a quarter would deny or change an earlier one, and hardly any does."""
_MOST_SHOWN = 60


@dataclass(frozen=True)
class Statement:
    """One text as the detectors see it; each property is computed when it is first asked for.

    >>> Statement("We use spaces, not tabs").denies(Statement("We use tabs"))
    True
    >>> Statement("We use spaces, not tabs").denies(Statement("We use spaces"))
    False
    """

    text: str

    @cached_property
    def words(self) -> list[str]:
        """Its words, in order."""
        return words_of(self.text)

    @cached_property
    def short(self) -> bool:
        """Whether it can be one statement."""
        return len(self.words) <= LONGEST_STATEMENT

    @cached_property
    def content(self) -> frozenset[str]:
        """The stems of its words, without those that only join others and those that speak of denial or change."""
        left_out = _negation_words("fillers", "denials", "change-words")
        return frozenset(stem(word) for word in self.words if word not in left_out)

    @cached_property
    def denied(self) -> frozenset[str]:
        """The stems within reach of a denial: after it, or the rest of its clause where nothing comes after."""
        found: set[str] = set()
        text = self.text.lower()
        plain = text.replace("\u2019", "'")
        if not any(denial in plain for denial in _negation_words("denials")):
            return frozenset()
        for clause in clauses(text):
            words = words_of(clause)
            place = next(
                (at for at, word in enumerate(words) if word in _negation_words("denials")), None
            )
            if place is None:
                continue
            after = [
                word
                for word in words[place + 1 :]
                if word not in _negation_words("fillers", "change-words")
            ]
            reached = after or [
                word for word in words[:place] if word not in _negation_words("fillers")
            ]
            found.update(stem(word) for word in reached if word not in _negation_words("denials"))
        return frozenset(found)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Its words that hold a digit, single capitals, weekdays and months.

        They tell two things apart that are spoken of in the same words.
        """
        return (
            frozenset(_NUMBER.findall(self.text))
            | frozenset(_CAPITAL.findall(self.text))
            | _negation_words("calendar").intersection(self.words)
        )

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The stems of its content, in the order in which they stand."""
        return tuple(stem for stem in map(stem, self.words) if stem in self.content)

    def same_order(self, other: Statement) -> bool:
        """Whether the other says the same words in another order: "A owes B" is not "B owes A"."""
        return self.content != other.content or self.order == other.order

    @cached_property
    def changes(self) -> bool:
        """Whether it says that something changed."""
        text = padded(self.words)
        for phrase in _negation_phrases("no-changes"):
            text = text.replace(phrase, " ")
        return any(phrase in text for phrase in _negation_phrases("changes"))

    def denies(self, other: Statement) -> bool:
        """Whether a word that it denies stands undenied in the other."""
        return (
            self.short and other.short and not self.denied.isdisjoint(other.content - other.denied)
        )

    def overlap(self, other: Statement) -> float:
        """The share of the content of either that both have: Jaccard's index, 0 where neither has any."""
        either = len(self.content | other.content)
        return len(self.content & other.content) / either if either else 0.0

    def updates(self, old: Statement) -> bool:
        """Whether it says that something changed, beside an older text that says something else."""
        return self.short and old.short and self.changes and self.content != old.content


@lru_cache(maxsize=32768)
def stem(word: str) -> str:
    """Return a word without the commonest endings; only compared with stems of the same kind."""
    if word.endswith("'s"):
        word = word[:-2]
    for ending in lexicon()["text"]["endings"]:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def difference(old: str, new: str) -> str:
    """What changed between two texts, as "tabs -> spaces": without what they begin and end with in common.

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
    return f"{_short(' '.join(gone))} -> {_short(' '.join(come))}"


def both(old: str, new: str) -> str:
    """What two texts say in one: the one that holds every word of the other, else both, the older first.

    >>> both("Ada works at Acme.", "Ada works at Globex in sales")
    'Ada works at Acme; Ada works at Globex in sales'
    """
    before, after = frozenset(words_of(old)), frozenset(words_of(new))
    if after <= before:
        return old
    return new if before <= after else f"{old.rstrip('. ')}; {new}"


def _content_words(text: str) -> list[str]:
    """Its words without those that only say that something changed, and without marks around them."""
    words = [bare for bare in (word.strip(".,;:!?\"'()[]") for word in text.split()) if bare]
    kept: list[str] = []
    place = 0
    while place < len(words):
        opening = next((size for size in (3, 2) if _opens(words[place : place + size])), 0)
        compares = [word.lower() for word in words[place : place + 2]] == ["instead", "of"]
        if not opening and (
            compares or words[place].lower() not in _negation_words("change-words")
        ):
            kept.append(words[place])
        place += max(opening, 1)
    return kept or text.split()


def _opens(words: list[str]) -> bool:
    return padded([word.lower() for word in words]) in _negation_phrases("change-openings")


def _short(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3].rstrip()}..."


# Whether two short statements of one subject exclude one another: by words, without a model of a language.
#
# A statement is read as a subject, whether it denies, when it holds, and the stems of what it says. Two of one
# subject and one time conflict where
#
# - one denies what the other says, and says nothing else ("speaks no French" / "speaks French fluently");
# - they differ by opposites ("open" / "closed"), by alternatives ("tabs" / "spaces") or by numbers, and the verb takes
# one object at a time: one who likes tea may like coffee, and one who prefers tea prefers no coffee;
# - the later says that something changed, and of the same thing ("lives in Boston" / "has moved to Seattle").
#
# Tables are in ``english.toml`` under ``conflicts``; of another language nothing is found. Of code, and of a text of
# more than ``LONGEST_CLAIM`` words or less than ``FEWEST_OF_CLAIM``, nothing is said: what it is about cannot be seen by its words.
# Linear in the length of both texts.


FEWEST_OF_CLAIM, LONGEST_CLAIM = 3, 16

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
_SAYS_NOTHING = frozenset({"now", "instead", "nowadays", "anymore"})
_LIGHT = frozenset({"hav", "want", "need", "get", "b", "us", "do", "year", "now"})


def _claim_words(name: str) -> frozenset[str]:
    return vocabulary("conflicts", name)


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word.rstrip("e") or word


@cache
def _classes(name: str) -> dict[str, frozenset[int]]:
    """Of each stem, the numbers of the classes that hold it."""
    found: dict[str, set[int]] = {}
    for number, words in enumerate(lexicon()["conflicts"][name]):
        for word in words:
            found.setdefault(_stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


@cache
def _stems(name: str) -> frozenset[str]:
    return frozenset(map(_stem, _claim_words(name)))


@cache
def _table(name: str) -> dict[str, str]:
    return dict(lexicon()["conflicts"][name])


@cache
def _sets(name: str) -> dict[str, frozenset[str]]:
    """A table of lists by stem, each with the stems of its words."""
    return {
        _stem(key): frozenset(map(_stem, words))
        for key, words in lexicon()["conflicts"][name].items()
    }


@cache
def _rewriting() -> re.Pattern[str]:
    phrases = sorted(_table("rewritten"), key=len, reverse=True)
    return re.compile(r"\b(" + "|".join(map(re.escape, phrases)) + r")\b")


@dataclass(frozen=True)
class Claim:
    """One statement: ``subject`` (stems before the verb), ``verb``, ``said`` (stems of the rest, the verb's included),
    ``denies``, ``times`` (words that say when it holds), ``changing`` (words that say that something changed).
    """

    subject: tuple[str, ...]
    verb: str
    said: frozenset[str]
    denies: bool
    times: frozenset[str]
    changing: frozenset[str]
    numbers: tuple[str, ...]
    names: frozenset[str]
    past: bool
    order: tuple[str, ...]
    ranks: bool
    bare: bool
    """Its subject is one word without an article: as a rule a name."""

    @cached_property
    def general(self) -> bool:
        """Whether the subject is a person, of whom much may be said, or none."""
        return not self.subject or set(self.subject) <= _EVERYONE


@lru_cache(maxsize=4096)
def claim(text: str) -> Claim | None:
    """What a text says, if it is short enough to be one statement.

    >>> claim("The user's dog does not like cats").subject, claim("Never log tokens").denies
    (('user', "'s", 'dog'), True)
    """
    if len(text) > 20 * LONGEST_CLAIM or _CODE.search(text):
        return None
    plain = text.replace("\u2019", "'").strip()
    low = _rewriting().sub(lambda match: _table("rewritten")[match[1]], plain.lower())
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
    begins, at = _predicate(tokens)
    subject, rest = tokens[:begins], tokens[at:]
    same, denial = _table("same-as"), _table("denial-of")
    finite = next(
        (
            token
            for token in tokens[begins:]
            if token in _claim_words("verbs") or token in _claim_words("past")
        ),
        "",
    )
    negative, order, verb = 0, list[str](), ""
    for token in (*subject, *rest) if not begins else rest:
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
    kept = [
        token
        for token in subject
        if token == "'s" or token not in _claim_words("joining") | {"now", "nowadays"}
    ]
    named = frozenset(_stem(word.lower()) for word in re.findall(r"(?<=\s)[A-Z][\w-]+", plain))
    return Claim(
        subject=tuple(_stem(token) if token != "'s" else token for token in kept),
        verb=verb,
        order=tuple(order),
        said=frozenset(order)
        - {
            _stem(token) for token in changing if token in ("now", "instead", "nowadays", "anymore")
        },
        denies=negative % 2 == 1,
        times=frozenset(when),
        changing=changing,
        numbers=tuple(token for token in rest if _NUMBER.match(token) or token in _NUMBER_WORDS),
        names=named,
        past=past,
        ranks="over" in tokens,
        bare=begins == 1 and tokens[0] not in _EVERYONE,
    )


def _predicate(tokens: list[str]) -> tuple[int, int]:
    """How many tokens are the subject, and where what is said begins: at the verb, with the denial before it."""
    verbs, nouns = _claim_words("verbs"), _claim_words("nouns-too")
    candidates = [place for place, token in enumerate(tokens[:8]) if token in verbs]
    sure = [place for place in candidates if tokens[place] not in nouns]
    if not candidates:
        return 0, 0
    opens = next((at for at, token in enumerate(tokens) if token not in _BEFORE_AN_ORDER), 0)
    # "Work is ...": a word that could be an order, and is what the verb just after it is said of
    if opens in candidates and not (tokens[opens] in nouns and sure and opens < sure[0] <= 2):
        return 0, 0
    place = sure[0] if sure and (sure[0] <= candidates[0] or candidates[0] <= 1) else candidates[0]
    if (
        candidates[0] < place
        and candidates[0] > 0
        and tokens[candidates[0] - 1] not in ("the", "a", "'s", "an")
    ):
        place = candidates[0]
    begins = place
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
    """Whether two statements are known to speak of different subjects."""
    return (
        new is not None
        and old is not None
        and bool(new.subject and old.subject)
        and new.subject != old.subject
    )


def conflicts(new: Claim | None, old: Claim | None) -> bool:
    """Whether two statements cannot both hold; which of them is the newer does not matter.

    >>> conflicts(claim("The user speaks no French"), claim("The user speaks French fluently"))
    True
    >>> conflicts(claim("The user likes tea"), claim("The user likes coffee"))
    False
    """
    if new is None or old is None or new.subject != old.subject or not _same_time(new, old):
        return False
    if new.denies != old.denies:
        return _denied(new, old) if new.denies else _denied(old, new)
    return not new.denies and _excluding(new, old)


def updates(new: Claim | None, old: Claim | None) -> bool:
    """Whether the new statement says that what the old one says is so no more.

    >>> updates(claim("The user has moved to Seattle"), claim("The user lives in Boston"))
    True
    """
    if new is None or old is None or not new.changing or old.changing:
        return False
    shared = new.said & old.said - _LIGHT
    if shared & (old.names | _classes("alternatives").keys()) and not new.changing <= _claim_words(
        "happening"
    ):
        return True
    ends, said = _sets("ends"), old.said | set(old.subject)
    if any(
        _stem(word) in ends and ends[_stem(word)] & (said | _small(old))
        for word in (*new.changing, *new.said)
    ):
        return new.subject == old.subject or not old.subject or new.general
    if new.subject != old.subject and old.subject and not (new.general and old.general):
        return False
    if new.subject == old.subject and not new.general:
        # of Ada, who found something or lives elsewhere now, much else may still be so; of a thing that was moved, not
        alike = new.verb == old.verb or bool(shared) or _excluding(new, old)
        return alike or not new.bare or not new.changing <= _claim_words("happening") | {"now"}
    return 2 * len(shared) >= max(1, len(old.said - _LIGHT)) and bool(shared)


def _small(old: Claim) -> frozenset[str]:
    return frozenset({"ha"}) if old.verb == "hav" else frozenset()


def _same_time(new: Claim, old: Claim) -> bool:
    """Both name the same times or none, and none is past where the other is not."""
    return new.times == old.times and new.past == old.past


def _denied(denying: Claim, other: Claim) -> bool:
    """Whether all that is denied is said by the other."""
    holding = _sets("holding")
    core = denying.said - _LIGHT
    if not core:
        return denying.said == other.said
    return all(
        word in other.said or (word in holding and holding[word] & other.said)
        for word in core - set(denying.numbers)
    )


def _excluding(new: Claim, old: Claim) -> bool:
    """Whether two claims that both affirm, or both deny, give one thing two values."""
    gone, come = old.said - new.said, new.said - old.said
    if new.ranks and old.ranks and not gone and not come:
        return new.order != old.order
    numbers = {*new.numbers, *old.numbers}
    words_gone, words_come = (
        gone - numbers - _number_stems(old),
        come - numbers - _number_stems(new),
    )
    if new.numbers != old.numbers and not words_gone and not words_come:
        return new.verb not in _stems("several") or not new.general or new.verb == "hav"
    if not gone or not come:
        return False
    if _meet("opposites", gone, come):
        return max(len(gone), len(come)) <= 4
    holding = _sets("holding")
    if any(holding.get(word, frozenset()) & come for word in gone) or any(
        holding.get(word, frozenset()) & gone for word in come
    ):
        return True
    if new.subject and (new.verb in _stems("several") or new.said & old.said & _stems("several")):
        return False
    if max(len(gone), len(come)) > 3:
        return False
    if _meet("alternatives", gone, come):
        return True
    frame = ({new.verb} | set(new.subject) | (new.said & old.said)) & _stems("one-value")
    same_frame = bool(frame) and (
        new.verb == old.verb or bool(set(new.subject) & _stems("one-value"))
    )
    both_named = bool(gone & old.names) and bool(come & new.names)
    return same_frame and (
        both_named or (len(gone) == len(come) == 1 and bool(new.said & old.said or not new.general))
    )


def _number_stems(one: Claim) -> frozenset[str]:
    return frozenset(_stem(word) for word in one.numbers)


def _meet(name: str, gone: frozenset[str], come: frozenset[str]) -> bool:
    """Whether a word that went and one that came are of one class."""
    classes = _classes(name)
    there = frozenset().union(*(classes.get(word, frozenset()) for word in gone))
    here = frozenset().union(*(classes.get(word, frozenset()) for word in come))
    return bool(there & here)
