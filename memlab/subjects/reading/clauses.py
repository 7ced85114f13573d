"""Split a message into the clauses that it asserts.

Code, quotations, questions, conditions and reported speech are left out.

Every function takes time in proportion to the text. Offsets refer to the original message, so that
each clause can be highlighted there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from memlab.kernel.english import Token, first_of, holds, padded, phrases, table, word_pattern
from memlab.subjects.reading.sentences import sentence_spans, without_quotations

LONGEST = 20_000
"""The maximum characters of a message that are read for facts; a longer message contains a document."""

# Patterns of words and of breaks between clauses; breaks after which reported speech ends or a list continues.
_SEPARATE = word_pattern("hyphenated")
_WORD = word_pattern("spoken")
_BREAK = re.compile(
    r"[;()\[\]]|:(?!\d|//)|,(?!\s?\d)|\s[-\u2013]\s|\u2014|\s(?:and|but|or|so|because|while|whereas|though|although|which)\s",
    re.IGNORECASE,
)
_AFTER_A_REPORT = frozenset(("but", ";", "though", "although", "whereas"))
_JOINS = frozenset((",", "and", "or"))
_MOST_LISTED = 3
"""The maximum words of an item of a list within a sentence."""

# An order such as "translate" names its text ("the following") within these characters and words.
_NEAR = 200
_SOON = 12

# Punctuation and markup that is removed around a word.
_EDGES = ".!?\u2026\"'*_~"


def _table(name: str) -> Any:
    """Return the table of this name from the extraction rules."""
    return table("extraction", name)


class Clause(NamedTuple):
    """A clause of a message: its words, offsets, preceding break and sentence number.

    ``after`` is the break before the clause in lower case: a comma, a conjunction or a bracket. It
    is "" at the start of a sentence.
    """

    words: list[Token]
    start: int
    stop: int
    after: str
    sentence: int


def contracted_words(text: str, start: int, stop: int) -> list[Token]:
    """Return the lower-case words in a span of a text, with contractions expanded.

    Both words of a contraction have the offsets of the contraction.

    Parameters
    ----------
    text
        Any text.
    start, stop
        The span to read.

    Returns
    -------
    list of Token
        The words without surrounding punctuation.

    Examples
    --------
    >>> [word.low for word in contracted_words("I'm Ada, hi", 0, 11)]
    ['i', 'am', 'ada', 'hi']
    """
    contracted = _table("contractions")
    words = []
    for match in _WORD.finditer(text, start, stop):
        low = match[0].lower().replace("\u2019", "'").strip(_EDGES)
        if low in contracted:
            words += [Token(part, *match.span()) for part in contracted[low].split()]
        elif low:
            words.append(Token(low, *match.span()))
    return words


def asserted(text: str, wanted: Callable[[str], bool] | None = None) -> list[Clause]:
    """Return the clauses that a message asserts, in their order.

    Code, quotations, questions, conditions, wishes, jokes and reported speech are left out.

    Parameters
    ----------
    text
        A message; its first ``LONGEST`` characters are read.
    wanted
        A function that selects sentences by their text; by default all sentences are read.

    Returns
    -------
    list of Clause
        The clauses with their offsets in the message.

    Examples
    --------
    >>> message = "If I lived in Rome, I would eat. I like tea; Tom says I snore. Do I work?"
    >>> [message[clause.start : clause.stop].strip() for clause in asserted(message)]
    ['I like tea']
    """
    read = without_quotations(text[:LONGEST])
    clauses: list[Clause] = []
    for number, (start, stop) in enumerate(sentence_spans(read)):
        if (
            order := _text_order_pattern().match(read, start, stop)
        ) is not None and _works_on_a_text(read, order.end(), stop):
            if _text_follows(read[start:stop]):
                break
        elif wanted is None or wanted(read[start:stop]):
            clauses += _sentence_clauses(read, start, stop, number)
    return clauses


def _split_low_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return [
        low
        for match in _WORD.finditer(text)
        if (low := match[0].lower().replace("\u2019", "'").strip(_EDGES))
    ]


# Compiled once from the table of orders, because it is tried on every sentence.
@cache
def _text_order_pattern() -> re.Pattern[str]:
    """Return a pattern for opening verbs that may order work on a text, such as "Translate"."""
    orders = "|".join(sorted(_table("text-orders")))
    return re.compile(
        rf"\W*(?:(?:please|can|could|you|would|now)\W+){{0,6}}(?:{orders})\b", re.IGNORECASE
    )


def _works_on_a_text(text: str, start: int, stop: int) -> bool:
    """Return whether an order is to process a text, as in "Translate into German: ..."."""
    words = [word.low for word in contracted_words(text, start, min(stop, start + _NEAR))]
    return ":" in text[start:stop] or not _table("their-texts").isdisjoint(words[:_SOON])


def _text_follows(sentence: str) -> bool:
    """Return whether an order refers to a text that follows in the message."""
    low = padded(_split_low_words(sentence))
    return ":" in sentence or " following " in low or " below " in low


def _sentence_clauses(text: str, start: int, stop: int, number: int) -> list[Clause]:
    # Reported speech lasts until "but" or a semicolon. A question ends the reading of its sentence.
    """Return the clauses that one sentence states: denials too, but no questions or reports."""
    sentence = text[start:stop]
    asks = sentence.rstrip(" \n\"')").endswith("?")
    if _is_retracted(sentence, asks=asks):
        return []
    stop = start + _find_unreal(sentence)
    words = contracted_words(text, start, stop)
    asked_to_remember = (
        first_of(padded(word.low for word in words[:_SOON]), _opening_phrases()) is not None
    )
    clauses = []
    reported = False
    for piece in _split_clauses(text, start, stop, words, number):
        if not piece.words:
            continue
        low = padded(word.low for word in piece.words)
        if reported and piece.after in _AFTER_A_REPORT:
            reported = False
        if reported or _is_report(low):
            reported = True
            continue
        if not asked_to_remember and (_begins_a_question(low) or (asks and piece.stop >= stop - 1)):
            break
        clauses.append(piece)
    return clauses


def _is_retracted(sentence: str, *, asks: bool) -> bool:
    """Return whether a sentence ends with a tag question or a joke."""
    words = _split_low_words(sentence[-_NEAR:].rpartition(",")[2])
    ending = " ".join(words)
    if asks and "," in sentence and len(words) <= _LONGEST_TAG:
        inverted = (
            len(words) > 1
            and words[0].removesuffix("n't") in _table("tag-verbs")
            and words[-1] in _table("tagged")
        )
        return ending in _table("tags") or inverted
    return holds(padded(words), phrases("extraction", "jokes")) and "not" not in words


_LONGEST_TAG = 3
"""The maximum words of a tag question, as in "isn't it just"."""


# Built once, because contractions are expanded in each phrase.
@cache
def _opening_phrases() -> tuple[str, ...]:
    """Return the phrases that open a sentence, with contractions expanded."""
    contracted = _table("contractions")
    opened = (
        " ".join(contracted.get(word, word) for word in phrase.split())
        for phrase in _table("opening-phrases")
    )
    return tuple(padded(phrase.split()) for phrase in opened)


def _begins_a_question(piece: str) -> bool:
    """Return whether a padded clause begins like a question."""
    words = piece.split(None, 2)
    inverted = (
        len(words) > 1 and words[0] in _table("inverted-verbs") and words[1] in _table("subjects")
    )
    return inverted or first_of(piece, phrases("utterance", "questions")) is not None


def _find_unreal(sentence: str) -> int:
    """Return the index at which a hypothesis begins, or the length of the sentence."""
    lowered = sentence.lower().replace("\u2019", "'")
    if frozenset(_SEPARATE.findall(lowered)).isdisjoint(_unreal_first_words()):
        return len(sentence)
    for phrase in _table("polite-conditions"):
        lowered = lowered.replace(phrase, "~" * len(phrase))
    match = _unreal_pattern().search(lowered)
    return len(sentence) if match is None else min(match.start(), len(sentence))


# Built once. This set rejects most sentences before the pattern runs.
@cache
def _unreal_first_words() -> frozenset[str]:
    """Return the first words of the phrases that open a hypothesis."""
    return frozenset(_SEPARATE.findall(phrase)[0] for phrase in _table("unreal"))


# Compiled once from the table of phrases.
@cache
def _unreal_pattern() -> re.Pattern[str]:
    """Return a pattern for the phrases that open a hypothesis."""
    words = sorted(_table("unreal"), key=len, reverse=True)
    return re.compile(rf"(?<![\w'-])(?:{'|'.join(map(re.escape, words))})(?![\w'-])")


def _is_report(piece: str) -> bool:
    """Return whether a clause reports the words or thoughts of another person.

    "I said" reports words of the speaker, so it does not count.
    """
    words = piece.split()
    reports, adverbs = _table("reports"), _table("adverbs")
    if reports.isdisjoint(words):
        return False
    for position, word in enumerate(words):
        if word in reports and position:
            subject = next(
                (before for before in reversed(words[:position]) if before not in adverbs), ""
            )
            if subject not in ("i", "we", "to", "never", "not"):
                return True
    return False


def _split_clauses(
    text: str, start: int, stop: int, words: list[Token], number: int
) -> list[Clause]:
    """Return the clauses of a sentence, each with its words and the preceding break.

    A list stays in one clause: "Dutch, Greek and a little Welsh" is split only if a verb follows a
    break.
    """
    # The sentence is cut at every break first. Then pieces that are items of a list are joined.
    pieces: list[Clause] = []
    first, kind, next_word = start, "", 0
    for match in _BREAK.finditer(text, start, stop):
        before = next_word
        while next_word < len(words) and words[next_word].start < match.start():
            next_word += 1
        pieces.append(Clause(words[before:next_word], first, match.start(), kind, number))
        while next_word < len(words) and words[next_word].start < match.end():
            next_word += 1  # The conjunction belongs to no clause.
        first, kind = match.end(), match[0].strip().lower()
    pieces.append(Clause(words[next_word:], first, stop, kind, number))
    if len(pieces) == 1:
        return pieces
    alone = [_stands_alone(piece.words) for piece in pieces]
    joined: list[Clause] = []
    for position, piece in enumerate(pieces):
        goes_on = bool(joined) and not alone[position] and piece.after in _JOINS
        if goes_on and piece.after == ",":
            follows = (
                position + 1 < len(pieces)
                and pieces[position + 1].after in _JOINS
                and not alone[position + 1]
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
    """Return whether a clause has a subject or verb of its own, or has no words."""
    adverbs, openers = _table("adverbs"), _table("openers")
    rest = [word.low for word in words[:6] if word.low not in adverbs and word.low not in openers]
    if rest and rest[0] in _table("clause-starts"):
        return True
    return (
        not rest
        or rest[0] in _table("subjects")
        or not _first_verb_words().isdisjoint(rest[:2])
        or "is" in rest[1:4]
    )


# Built once from the table of verbs, because it is looked up for every clause.
@cache
def _first_verb_words() -> frozenset[str]:
    """Return the first words of all first-person and third-person verbs."""
    verbs = _table("verbs")
    return frozenset(
        form.split()[0] for own, (other, *_) in verbs.items() for form in (own, other)
    ) | {"is", "am"}
