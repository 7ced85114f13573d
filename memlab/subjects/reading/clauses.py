"""What a message asserts: its clauses, without code, quotations, questions, conditions and reports of others.

Everything is a scan over words, in time proportional to the text. Places are those of the message as it was given, so
that each clause can be shown where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from memlab.kernel.english import Token, first_of, holds, padded, phrases, table, word_pattern
from memlab.subjects.reading.sentences import sentence_spans, without_quotations

__all__ = ["LONGEST", "Clause", "asserted", "contracted_words"]


LONGEST = 20_000
"""Characters of a message that are read for facts; what follows is no talk."""

_SEPARATE = word_pattern("hyphenated")
_WORD = word_pattern("spoken")
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


def _table(name: str) -> Any:
    return table("extraction", name)


class Clause(NamedTuple):
    """A clause of a message: its words, its place, the break before it and the number of its sentence.

    ``after`` is the break in lower case: a comma, a conjunction, a bracket, or nothing at the start of a sentence.
    """

    words: list[Token]
    start: int
    stop: int
    after: str
    sentence: int


def contracted_words(text: str, start: int, stop: int) -> list[Token]:
    """Return the words of shape "spoken" between two places, with contractions taken apart.

    Both words of a contraction have its place.

    Parameters
    ----------
    text
        Any text.
    start, stop
        The part to read.

    Returns
    -------
    list of Token
        The words without the marks around them.

    Examples
    --------
    >>> [word.low for word in contracted_words("I'm Ada, hi", 0, 11)]
    ['i', 'am', 'ada', 'hi']
    """
    contracted = _table("contractions")
    found = []
    for match in _WORD.finditer(text, start, stop):
        low = match[0].lower().replace("\u2019", "'").strip(_EDGES)
        if low in contracted:
            found += [Token(part, *match.span()) for part in contracted[low].split()]
        elif low:
            found.append(Token(low, *match.span()))
    return found


def asserted(text: str, wanted: Callable[[str], bool] | None = None) -> list[Clause]:
    """Return the clauses that a message states to be so, in order.

    Code, quotations, questions, conditions, wishes, jokes and what others are reported to say are left out.

    Parameters
    ----------
    text
        A message; its first ``LONGEST`` characters are read.
    wanted
        A function of a sentence that says whether to read it; all are read where it is None.

    Returns
    -------
    list of Clause
        The clauses with their places in the message.

    Examples
    --------
    >>> said = "If I lived in Rome, I would eat. I like tea; Tom says I snore. Do I work?"
    >>> [said[clause.start : clause.stop].strip() for clause in asserted(said)]
    ['I like tea']
    """
    read = without_quotations(text[:LONGEST])
    found: list[Clause] = []
    for number, (start, stop) in enumerate(sentence_spans(read)):
        if (order := _text_order().match(read, start, stop)) is not None and _works_on_a_text(
            read, order.end(), stop
        ):
            if _goes_on(read[start:stop]):
                break
        elif wanted is None or wanted(read[start:stop]):
            found += _of_a_sentence(read, start, stop, number)
    return found


def _low_words(text: str) -> list[str]:
    return [
        low
        for match in _WORD.finditer(text)
        if (low := match[0].lower().replace("\u2019", "'").strip(_EDGES))
    ]


@cache
def _text_order() -> re.Pattern[str]:
    """An order to work on a text, at the beginning of a sentence."""
    orders = "|".join(sorted(_table("text-orders")))
    return re.compile(
        rf"\W*(?:(?:please|can|could|you|would|now)\W+){{0,6}}(?:{orders})\b", re.IGNORECASE
    )


def _works_on_a_text(text: str, start: int, stop: int) -> bool:
    """Whether what follows the order is a text: "Translate into German: ..." """
    words = [word.low for word in contracted_words(text, start, min(stop, start + _NEAR))]
    return ":" in text[start:stop] or not _table("their-texts").isdisjoint(words[:_SOON])


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
    words = contracted_words(text, start, stop)
    asked_to_remember = (
        first_of(padded(word.low for word in words[:_SOON]), _openings()) is not None
    )
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
            len(words) > 1
            and words[0].removesuffix("n't") in _table("tag-verbs")
            and words[-1] in _table("tagged")
        )
        return said in _table("tags") or inverted
    return holds(padded(words), phrases("extraction", "jokes")) and "not" not in words


_LONGEST_TAG = 3


@cache
def _openings() -> tuple[str, ...]:
    """Phrases that open a sentence, contractions taken apart."""
    contracted = _table("contractions")
    opened = (
        " ".join(contracted.get(word, word) for word in phrase.split())
        for phrase in _table("opening-phrases")
    )
    return tuple(padded(phrase.split()) for phrase in opened)


def _begins_a_question(piece: str) -> bool:
    words = piece.split(None, 2)
    inverted = (
        len(words) > 1 and words[0] in _table("inverted-verbs") and words[1] in _table("subjects")
    )
    return inverted or first_of(piece, phrases("utterance", "questions")) is not None


def _first_unreal(sentence: str) -> int:
    """Where a sentence begins to tell of what is not so; its length if it does nowhere."""
    lowered = sentence.lower().replace("\u2019", "'")
    if frozenset(_SEPARATE.findall(lowered)).isdisjoint(_first_words()):
        return len(sentence)
    for phrase in _table("polite-conditions"):
        lowered = lowered.replace(phrase, "~" * len(phrase))
    found = _unreal().search(lowered)
    return len(sentence) if found is None else min(found.start(), len(sentence))


@cache
def _first_words() -> frozenset[str]:
    return frozenset(_SEPARATE.findall(phrase)[0] for phrase in _table("unreal"))


@cache
def _unreal() -> re.Pattern[str]:
    words = sorted(_table("unreal"), key=len, reverse=True)
    return re.compile(rf"(?<![\w'-])(?:{'|'.join(map(re.escape, words))})(?![\w'-])")


def _reports(piece: str) -> bool:
    """Whether it says what somebody else says or thinks; what "I said" is mine."""
    words = piece.split()
    reports, adverbs = _table("reports"), _table("adverbs")
    if reports.isdisjoint(words):
        return False
    for place, word in enumerate(words):
        if word in reports and place:
            who = next((before for before in reversed(words[:place]) if before not in adverbs), "")
            if who not in ("i", "we", "to", "never", "not"):
                return True
    return False


def _pieces(text: str, start: int, stop: int, words: list[Token], number: int) -> list[Clause]:
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
            follows = (
                place + 1 < len(pieces)
                and pieces[place + 1].after in _JOINS
                and not alone[place + 1]
            )
            goes_on = follows and len(piece.words) <= _MOST_LISTED
        if goes_on:
            last = joined.pop()
            between = contracted_words(text, last.stop, piece.start)
            piece = Clause(
                [*last.words, *between, *piece.words], last.start, piece.stop, last.after, number
            )
        joined.append(piece)
    return joined


def _stands_alone(words: list[Token]) -> bool:
    """Whether a piece has a subject or a verb of its own, or nothing at all."""
    adverbs, openers = _table("adverbs"), _table("openers")
    rest = [word.low for word in words[:6] if word.low not in adverbs and word.low not in openers]
    if rest and rest[0] in _table("clause-starts"):
        return True
    return (
        not rest
        or rest[0] in _table("subjects")
        or not _verb_starts().isdisjoint(rest[:2])
        or "is" in rest[1:4]
    )


@cache
def _verb_starts() -> frozenset[str]:
    """The first words of verbs, as one says them of oneself and as another says them."""
    verbs = _table("verbs")
    return frozenset(
        form.split()[0] for own, (other, *_) in verbs.items() for form in (own, other)
    ) | {"is", "am"}
