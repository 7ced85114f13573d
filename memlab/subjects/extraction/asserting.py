"""What a message asserts: its clauses, without code, quotations, questions, conditions and what others are said to say.

Everything is a scan over words, in time proportional to the text. Places are those of the message as it was given, so
that each clause can be shown where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from memlab.subjects.phrases import first_of, holds, lexicon, padded, phrases
from memlab.subjects.remembering.detectors import code_lines

__all__ = ["LONGEST", "Clause", "Word", "asserted", "listed", "table", "tells"]

LONGEST = 20_000
"""Characters of a message that are read for facts; what follows is no talk."""

_FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED = re.compile(
    r"\"[^\"\n]{1,600}\"|\u201c[^\u201d\n]{1,600}\u201d|\u00ab[^\u00bb\n]{1,600}\u00bb|`[^`\n]{1,600}`"
    r"|(?<![\w'])'[^'\n]{2,300}'(?!\w)|\u2018[^\u2019\n]{2,300}\u2019(?!\w)|^[ \t]*>[^\n]*",
    re.MULTILINE,
)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\).*\Z", re.DOTALL | re.MULTILINE)
_SEPARATE = re.compile(r"[\w'-]+")
_OTHERS_WORDS = (
    (_FENCED, ("```", "~~~")),
    (_TRACEBACK, ("Traceback (",)),
    (_QUOTED, ('"', "\u201c", "\u00ab", "`", "'", "\u2018", ">")),
)
"""Patterns of what is not the speaker's, each with signs of which it has one."""

_WORD = re.compile(r"[^\s,;:()\[\]\u2013\u2014]+")
_END = re.compile(r"[.!?\u2026]+[)\"'\u201d\u2019]*(?=\s|\Z)|\n")
_BREAK = re.compile(
    r"[;()\[\]]|:(?!\d|//)|,(?!\s?\d)|\s[-\u2013]\s|\u2014|\s(?:and|but|or|so|because|while|whereas|though|although|which)\s",
    re.IGNORECASE,
)
_AFTER_A_REPORT = frozenset(("but", ";", "though", "although", "whereas"))
_JOINS = frozenset((",", "and", "or"))
_MOST_LISTED = 3
_NEAR = 200
"""Characters within which an order says what it is about."""

_SOON = 12
"""Words within which it does."""

_EDGES = ".!?\u2026\"'*_~"


class Word(NamedTuple):
    """A word in lower case, contractions taken apart, and where it stands in the message."""

    low: str
    start: int
    stop: int


class Clause(NamedTuple):
    """What is asserted between two breaks: its words, where it begins and ends, and ``after`` which break it comes.

    ``sentence`` numbers the sentences, so that a clause can go on with the subject of the one before it.
    """

    words: list[Word]
    start: int
    stop: int
    after: str
    sentence: int


@cache
def table(name: str) -> Any:
    """A table of the language's ``extraction``; lists as sets."""
    found = lexicon()["extraction"][name]
    return frozenset(found) if isinstance(found, list) else found


def listed(text: str, start: int, stop: int) -> list[Word]:
    """The words between two places; "I'm" is two words in one place.

    >>> [word.low for word in listed("I'm Ada, hi", 0, 11)]
    ['i', 'am', 'ada', 'hi']
    """
    contracted = table("contractions")
    found = []
    for match in _WORD.finditer(text, start, stop):
        low = match[0].lower().replace("\u2019", "'").strip(_EDGES)
        if low in contracted:
            found += [Word(part, *match.span()) for part in contracted[low].split()]
        elif low:
            found.append(Word(low, *match.span()))
    return found


def asserted(text: str, wanted: Callable[[str], bool] | None = None) -> list[Clause]:
    """The clauses that a message states to be so, in order: of the sentences that are ``wanted``, unless given of all.

    >>> said = "If I lived in Rome, I would eat. I like tea; Tom says I snore. Do I work?"
    >>> [said[clause.start : clause.stop].strip() for clause in asserted(said)]
    ['I like tea']
    """
    read = _without_others_words(text[:LONGEST])
    found: list[Clause] = []
    for number, (start, stop) in enumerate(_sentences(read)):
        if (order := _text_order().match(read, start, stop)) is not None and _works_on_a_text(read, order.end(), stop):
            if _goes_on(read[start:stop]):
                break
        elif wanted is None or wanted(read[start:stop]):
            found += _of_a_sentence(read, start, stop, number)
    return found


def tells(text: str) -> bool:
    """Whether a text may state a fact: asked first, as most of what is said states none.

    >>> tells("I live in Rome"), tells("It rained all day")
    (True, False)
    """
    words = _SEPARATE.findall(text.replace("\u2019", "'"))
    lows = " ".join(words).lower().split(" ")  # word by word it takes three times as long
    first = _beginnings()["first"]
    if first.isdisjoint(lows):
        return False
    for place, low in enumerate(lows):  # noqa: SIM110 - a generator takes twice as long
        if low in first and _begins(words, lows, place):
            return True
    return False


def _begins(words: list[str], lows: list[str], place: int) -> bool:
    """Whether a subject and its verb, or a verb as another says it, may begin at ``place``."""
    low, of = lows[place], _beginnings()
    if low in of["others"]:
        return low in of["things"] or _is_subject_of(words, lows, place)
    if low in ("user", "i'd", "we'd"):
        return True
    if low not in _SIGNS:
        return False
    after = place + 1
    while after < len(lows) and after <= place + _MOST_ADVERBS and lows[after] in table("adverbs"):
        after += 1
    following = lows[after] if after < len(lows) else ""
    if low in ("is", "are") and following and _may_have(lows, place, following, words[after] != following):
        return True
    if low in ("i", "we"):
        return following in of["own"]
    if low in ("my", "our"):
        return following.removesuffix("'s") in of["mine"]
    if low == "i've":
        return following in of["have"]
    if low == "call":
        return following == "me"
    if low == "is":
        return following in of["things"] or (following in of["being"] and _is_subject_of(words, lows, place))
    return following in of["being"] or words[after : after + 1] != lows[after : after + 1] or following.isdigit()


def _may_have(lows: list[str], place: int, following: str, named: bool) -> bool:
    """Whether a property of something may be stated by "is" or "are" at ``place``; ``named``: a capital follows."""
    if not (named or following in _VALUES or following.endswith("ed") or not following.isalpha()):
        of = _beginnings()
        if following not in of["participles"] and lows[place - 1] not in of["in-a-word"]:
            return False
    before = lows[max(place - _MOST_OWNED, 0) : place]
    return lows[place] == "are" or not _OWNERS.isdisjoint(before) or any(low.endswith(("'s", "s'")) for low in before)


def _is_subject_of(words: list[str], lows: list[str], place: int) -> bool:
    """Whether somebody who may be told of stands before the verb at ``place``: a name, a relative, he or she."""
    before = place - 1
    while before >= 0 and lows[before] in table("adverbs"):
        before -= 1
    if before < 0:
        return False
    low = lows[before]
    return low in _TOLD_OF or low in _beginnings()["mine"] or (words[before] != low and low not in table("no-names"))


def _low_words(text: str) -> list[str]:
    return [low for match in _WORD.finditer(text) if (low := match[0].lower().replace("\u2019", "'").strip(_EDGES))]


_SIGNS = frozenset(
    ("i", "we", "i'm", "im", "i've", "i'd", "we'd", "we're", "am", "user", "call", "my", "our", "is", "are")
)
_OWNERS = frozenset(("my", "our", "the"))
_VALUES = frozenset(("a", "an", "the", "number", "at", "on", "in", "under", "from", "by", "between", "near"))
"""Words that begin a value."""
_MOST_OWNED = 9
"""Words from an owner to "is"."""
_TOLD_OF = frozenset(("he", "she", "user", "and", "but"))
_MOST_ADVERBS = 3


def _of_things(verbs: list[tuple[list[str], list[str]]]) -> list[tuple[list[str], list[str]]]:
    predicates = table("things")["predicates"]
    return [(own, other) for own, other in verbs if table("verbs")[" ".join(own)][1] in predicates]


@cache
def _beginnings() -> dict[str, frozenset[str]]:
    """The words with which verbs begin or go on: of oneself, of others, after "am", after "have"; and after "my"."""
    verbs = [(own.split(), other.split()) for own, (other, *_) in table("verbs").items()]
    being = {own[1] for own, _ in verbs if own[0] in ("am", "are")} | {trait.split()[0] for trait in table("traits")}
    mine = table("relations") | table("properties") | table("favourites")
    others = frozenset(other[0] for _, other in verbs) - {"has", "does", "cannot", "would", "is"}
    return {
        "first": _SIGNS | others,
        "own": frozenset({own[0] for own, _ in verbs} | {"don't", "dont", "can't"}) - {"are"},
        "others": others,
        "being": frozenset(being | {"a", "an", "the", "our"}),
        "have": frozenset(own[1] for own, _ in verbs if own[0] == "have" and len(own) > 1),
        "mine": frozenset(part for name in mine for part in (name.split()[0], name.split()[-1])),
        "participles": table("participles"),
        "in-a-word": table("said-in-a-word"),
        "things": frozenset(own[1] if own[0] == "are" else other[0] for own, other in _of_things(verbs)),
    }


def _without_others_words(text: str) -> str:
    """The message with code and quotations as blanks: every place stays where it is."""
    for pattern, signs in _OTHERS_WORDS:
        if any(sign in text for sign in signs):
            text = pattern.sub(lambda found: " " * len(found[0]), text)
    code = code_lines(text)
    return "".join(_blanked(text, code)) if code else text


def _blanked(text: str, places: list[tuple[int, int]]) -> Iterator[str]:
    end = 0
    for start, stop in places:
        yield text[end:start]
        yield " " * (stop - start)
        end = stop
    yield text[end:]


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end; a dot after an abbreviation or an initial ends none."""
    start = 0
    for end in _END.finditer(text):
        if end[0] == ".":
            before = text[max(start, end.start() - 12) : end.start()].rsplit(None, 1)
            word = before[-1].lower() if before else ""
            if word in table("abbreviations") or (len(word) == 1 and word.isalpha() and word != "i"):
                continue
        if end.end() > start:
            yield start, end.end()
        start = end.end()
    if start < len(text):
        yield start, len(text)


@cache
def _text_order() -> re.Pattern[str]:
    """An order to work on a text, at the beginning of a sentence."""
    orders = "|".join(sorted(table("text-orders")))
    return re.compile(rf"\W*(?:(?:please|can|could|you|would|now)\W+){{0,6}}(?:{orders})\b", re.IGNORECASE)


def _works_on_a_text(text: str, start: int, stop: int) -> bool:
    """Whether what follows the order is a text: "Translate into German: ..." """
    words = [word.low for word in listed(text, start, min(stop, start + _NEAR))]
    return ":" in text[start:stop] or not table("their-texts").isdisjoint(words[:_SOON])


def _goes_on(sentence: str) -> bool:
    """Whether the text that an order is about begins where the order ends."""
    low = padded(_low_words(sentence))
    return ":" in sentence or " following " in low or " below " in low


def _of_a_sentence(text: str, start: int, stop: int, number: int) -> list[Clause]:
    sentence = text[start:stop]
    asks = sentence.rstrip(" \n\"')").endswith("?")
    if _takes_back(sentence, asks=asks):
        return []
    stop = start + _first_unreal(sentence)
    words = listed(text, start, stop)
    asked_to_remember = first_of(padded(word.low for word in words[:_SOON]), _openings()) is not None
    clauses = []
    reported = False
    for piece in _pieces(text, start, stop, words, number):
        if not piece.words:
            continue
        low = padded(word.low for word in piece.words)
        if reported and piece.after in _AFTER_A_REPORT:
            reported = False
        if reported or _reports(low):
            reported = True
            continue
        if not asked_to_remember and (_begins_a_question(low) or (asks and piece.stop >= stop - 1)):
            break
        clauses.append(piece)
    return clauses


def _takes_back(sentence: str, *, asks: bool) -> bool:
    """Whether the end of a sentence asks whether it is so ("..., right?"), or says that it was no more than a joke."""
    words = _low_words(sentence[-_NEAR:].rpartition(",")[2])
    said = " ".join(words)
    if asks and "," in sentence and len(words) <= _LONGEST_TAG:
        inverted = (
            len(words) > 1 and words[0].removesuffix("n't") in table("tag-verbs") and words[-1] in table("tagged")
        )
        return said in table("tags") or inverted
    return holds(padded(words), phrases("extraction", "jokes")) and "not" not in words


_LONGEST_TAG = 3


@cache
def _openings() -> tuple[str, ...]:
    """Phrases that open a sentence, contractions taken apart."""
    contracted = table("contractions")
    opened = (" ".join(contracted.get(word, word) for word in phrase.split()) for phrase in table("opening-phrases"))
    return tuple(padded(phrase.split()) for phrase in opened)


def _begins_a_question(piece: str) -> bool:
    words = piece.split(None, 2)
    inverted = len(words) > 1 and words[0] in table("inverted-verbs") and words[1] in table("subjects")
    return inverted or first_of(piece, phrases("utterance", "questions")) is not None


def _first_unreal(sentence: str) -> int:
    """Where a sentence begins to tell of what is not so; its length if it does nowhere."""
    lowered = sentence.lower().replace("\u2019", "'")
    if frozenset(_SEPARATE.findall(lowered)).isdisjoint(_first_words()):
        return len(sentence)
    for phrase in table("polite-conditions"):
        lowered = lowered.replace(phrase, "~" * len(phrase))
    found = _unreal().search(lowered)
    return len(sentence) if found is None else min(found.start(), len(sentence))


@cache
def _first_words() -> frozenset[str]:
    return frozenset(_SEPARATE.findall(phrase)[0] for phrase in table("unreal"))


@cache
def _unreal() -> re.Pattern[str]:
    words = sorted(table("unreal"), key=len, reverse=True)
    return re.compile(rf"(?<![\w'-])(?:{'|'.join(map(re.escape, words))})(?![\w'-])")


def _reports(piece: str) -> bool:
    """Whether it says what somebody else says or thinks; what "I said" is mine."""
    words = piece.split()
    reports, adverbs = table("reports"), table("adverbs")
    if reports.isdisjoint(words):
        return False
    for place, word in enumerate(words):
        if word in reports and place:
            who = next((before for before in reversed(words[:place]) if before not in adverbs), "")
            if who not in ("i", "we", "to", "never", "not"):
                return True
    return False


def _pieces(text: str, start: int, stop: int, words: list[Word], number: int) -> list[Clause]:
    """What stands between breaks, each with its words and the break before it.

    A list is one piece: "Dutch, Greek and a little Welsh" stays whole where no verb of its own follows.
    """
    pieces: list[Clause] = []
    first, kind, at = start, "", 0
    for found in _BREAK.finditer(text, start, stop):
        before = at
        while at < len(words) and words[at].start < found.start():
            at += 1
        pieces.append(Clause(words[before:at], first, found.start(), kind, number))
        while at < len(words) and words[at].start < found.end():
            at += 1  # the conjunction itself
        first, kind = found.end(), found[0].strip().lower()
    pieces.append(Clause(words[at:], first, stop, kind, number))
    if len(pieces) == 1:
        return pieces
    alone = [_stands_alone(piece.words) for piece in pieces]
    joined: list[Clause] = []
    for place, piece in enumerate(pieces):
        goes_on = bool(joined) and not alone[place] and piece.after in _JOINS
        if goes_on and piece.after == ",":
            follows = place + 1 < len(pieces) and pieces[place + 1].after in _JOINS and not alone[place + 1]
            goes_on = follows and len(piece.words) <= _MOST_LISTED
        if goes_on:
            last = joined.pop()
            between = listed(text, last.stop, piece.start)
            piece = Clause([*last.words, *between, *piece.words], last.start, piece.stop, last.after, number)
        joined.append(piece)
    return joined


def _stands_alone(words: list[Word]) -> bool:
    """Whether a piece has a subject or a verb of its own, or nothing at all."""
    adverbs, openers = table("adverbs"), table("openers")
    rest = [word.low for word in words[:6] if word.low not in adverbs and word.low not in openers]
    return not rest or rest[0] in table("subjects") or not _verb_starts().isdisjoint(rest[:2]) or "is" in rest[1:4]


@cache
def _verb_starts() -> frozenset[str]:
    """The first words of verbs, as one says them of oneself and as another says them."""
    verbs = table("verbs")
    return frozenset(form.split()[0] for own, (other, *_) in verbs.items() for form in (own, other)) | {"is", "am"}
