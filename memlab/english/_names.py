"""Proper names in a text: runs of capitalised words that name somebody or something."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from memlab.english._clauses import contracted_words
from memlab.english._foreign import without_quotations
from memlab.english._lexicon import table, vocabulary
from memlab.english._sentences import sentence_spans
from memlab.english._tokens import Token, words_of

__all__ = ["proper_names"]

_LONGEST = 20_000
_MOST_WORDS = 4
_ENDINGS = ("ing", "tic", "ical", "ous", "tion", "ment", "ness", "ity", "ism", "ly")
_TRIMMED = " \t\n.,;:!?\u2026\"'*_~-()[]"


_LOWER = re.compile(r"(?<![^\W_])[a-z]+(?![^\W_])")
_NO_NAME = re.compile(
    r"[|=<>{}\\]|-[a-z]|:$|^[A-Z]\d?$|^[A-Z]{1,2}\d{1,4}(?:[-:][A-Z]{1,2}\d{1,4})?$|^[A-Z][\w-]*-owned$"
)
"""Code, adjectives such as "UK-based", headings, single letters, cells of a sheet."""

_CODE = re.compile(r".*(?:[;{}][ \t]*|=>.*|,[ \t]*\\)|[ \t]*(?://|/\*|import |using |package |@|</?\w).*")
"""A line of a program outside of marks for code."""

_TITLED = 0.6
"""Share of a line's longer words that begin with a capital from which on it is a title."""


_ITEM = re.compile(r"[ \t]*(?:[-*+\u2022\u2013]|\(?\d{1,3}[.)]|[A-Za-z][.)])[ \t]+")
_LABEL = re.compile(
    r"[ \t]*(?:\*\*|__)[^\n]{1,80}?(?:\*\*|__)[ \t]*:?|[ \t]*(?:[^\s:.!?]+[ \t]+){0,5}[^\s:.!?]+:(?=\s|$)"
)
_HEADING = re.compile(r"[ \t]*(?:#{1,6}[ \t].*|(?:\*\*|__)[^*_]+(?:\*\*|__)[ \t]*:?|\|.*|[^.!?]{1,80}:)[ \t]*")
_MARKED = re.compile(r"(\*\*|__)[^*_\n]{1,80}\1")
_LEADING = re.compile(r"[ \t]*[^\W\d_][\w'\u2019-]*(?:[ \t]+[A-Z][\w'\u2019-]*)*")
_AFTER_STOP = re.compile(r"(?:[.!?:]|\u2026)[\"'\u2019\u201d)\]*_]*[ \t\n]+[\"'\u2018\u201c(\[*_]*$")
_SHORT_ITEM = 8
_OF_PERSONS = frozenset(["was", "said", "told", "went", "came", "moved", "wants", "loves", "thinks", "will"])


def _prose(text: str) -> str:
    """The text with what is no prose as spaces.

    Headings, rows of tables, labels, what is set in bold, items of lists without a sentence, and how such an item
    begins. There a capital says nothing of a name: "Contract Details", "Rest Days: ..." are written so.
    """
    lines = [_prose_of_line(line) for line in text.split("\n")]
    return _MARKED.sub(_spaces, "\n".join(lines))


def _prose_of_line(line: str) -> str:
    if _HEADING.fullmatch(line) or _CODE.fullmatch(line) or _is_title(line):
        return " " * len(line)
    item = _ITEM.match(line)
    if item is None:
        return line
    rest = line[item.end() :]
    label = _LABEL.match(rest)
    start = item.end() + (label.end() if label is not None else 0)
    told = line[start:]
    if not told.rstrip().endswith((".", "!", "?")) and len(told.split()) <= _SHORT_ITEM:
        return " " * len(line)
    first = _LEADING.match(told)
    begun = 0 if first is None or _acts_next(told[first.end() :]) else first.end()
    return " " * (start + begun) + told[begun:]


def _is_title(line: str) -> bool:
    """Whether a line is written as a title: five words or more that are not short, most of them with a capital."""
    if line.rstrip().endswith((".", "!", ",", ";")):
        return False
    long = [word for word in line.split() if len(word) > _SHORT_WORD and word[0].isalpha()]
    return len(long) >= _TITLE_WORDS and sum(word[0].isupper() for word in long) >= _TITLED * len(long)


_SHORT_WORD = 3
_TITLE_WORDS = 5


def _is_common(name: str, *, first: bool) -> bool:
    """Whether a name is an abbreviation, a word that is mostly written small, or several such at a beginning."""
    parts = [part.strip(_TRIMMED).lower() for part in name.split()]
    common = vocabulary("names", "common")
    if len(parts) == 1:
        return parts[0] in common or parts[0] in vocabulary("names", "abbreviations") or parts[0].endswith(_ADJECTIVES)
    return first and all(part in common for part in parts)


_ADJECTIVES = ("able", "ible")


def _acts_next(text: str) -> bool:
    """Whether a text goes on with a verb of persons, so that what stands before it is its subject."""
    words = words_of(text[:40])
    return bool(words) and words[0] in _OF_PERSONS


def _spaces(found: re.Match[str]) -> str:
    return " " * len(found[0])


def proper_names(text: str) -> list[str]:
    """Return the names that a text mentions, in order, each once.

    A word that begins a sentence counts only if the text writes it with a capital elsewhere too, or if more capitalised
    words or a verb in the third person follow. Days, months, pronouns and what only opens a sentence are no names.

    Parameters
    ----------
    text
        Any text; code, quotations, headings and labels of lists are left out.

    Returns
    -------
    list of str
        The names as they are written first.

    Examples
    --------
    >>> proper_names("Yesterday Sarah works on JACQ with Dr. Okafor. Well, both others left.")
    ['Sarah', 'JACQ', 'Dr. Okafor']
    >>> proper_names("Besides I think so. Nice! On Monday we met.")
    []
    """
    own = _prose(without_quotations(text[:_LONGEST]))
    runs = [run for start, stop in sentence_spans(own) for run in _runs(own, start, stop)]
    written = frozenset(words_of(own)) & frozenset(_LOWER.findall(own))
    runs = [run for run in runs if " " in run[0] or run[0].lower() not in written]
    subjects = Counter(name for name, _, sure in runs if sure)
    runs = [
        (name, first, sure) for name, first, sure in runs if subjects[name] > 1 or not _is_common(name, first=first)
    ]
    inner = Counter(name for name, first, _ in runs if not first)
    found = [name for name, first, sure in runs if not first or sure or name in inner]
    return list(dict.fromkeys(found))


def _runs(text: str, start: int, stop: int) -> Iterator[tuple[str, bool, bool]]:
    """Each run of capitalised words: the name, whether it begins the sentence, and whether it is one even so."""
    words = contracted_words(text, start, stop)
    no_names = vocabulary("extraction", "no-names") | vocabulary("acts", "openers", "first-person", "second-person")
    contracted = table("extraction", "contractions")
    words = [word for word in words if text[word.start : word.stop].lower().replace("\u2019", "'") not in contracted]
    if len(words) > 1 and all(_is_capital(text, word) for word in words):
        return  # a heading
    place = 0
    while place < len(words):
        if not _is_capital(text, words[place]) or _bare(words[place]) in no_names:
            place += 1
            continue
        last = place + 1
        while last < len(words) and last < place + _MOST_WORDS and _joins(text, words[last - 1], words[last]):
            if _bare(words[last]) in no_names:
                break
            last += 1
        first = place
        while first < last - 1 and first == 0 and _only_begins(words[first]):
            first += 1  # "Remember Jon", "Learning German", "In Rome"
        if first == last - 1 and place == 0 and (first or _only_begins(words[first])) and last == 1:
            place = last
            continue
        name = text[words[first].start : words[last - 1].stop].strip(_TRIMMED)
        for ending in ("'s", "\u2019s"):
            name = name.removesuffix(ending)
        place = first
        begins = place == 0 or _AFTER_STOP.search(text[words[place - 1].start : words[place].start]) is not None
        begins = begins and (place == 0 or words[place - 1].low not in vocabulary("extraction", "titles"))
        titled = _bare(words[place]) in vocabulary("extraction", "titles")
        if len(name) > 1 and not (titled and last == place + 1) and _NO_NAME.search(name) is None:
            yield name, begins, last > place + 1 or (_acts(words, last) and not name.endswith(_ENDINGS))
        place = last


def _only_begins(word: Token) -> bool:
    """Whether a word has its capital from the beginning of its sentence: an order, an activity, an adverb, "In"."""
    orders = vocabulary("utterance", "orders", "doubtful-orders") | vocabulary("acts", "orders")
    return word.low in orders or word.low in vocabulary("negation", "fillers") or word.low.endswith(_ENDINGS)


def _joins(text: str, before: Token, word: Token) -> bool:
    """Whether a capitalised word goes on with a name: nothing but white space stands between."""
    between = text[before.stop : word.start]
    ends = text[before.start : before.stop].endswith(("'s", "\u2019s", ",", "!", "?"))
    title = before.low in vocabulary("extraction", "titles")
    ends = ends or (text[before.start : before.stop].endswith(".") and not title and len(before.low) > 1)
    return not between.strip() and word.start > before.start and _is_capital(text, word) and not ends


def _acts(words: list[Token], place: int) -> bool:
    """Whether a verb in the third person stands at a place: "Sarah works", "Rust is"."""
    if place >= len(words):
        return False
    return _is_third(words[place].low)


def _is_third(low: str) -> bool:
    return low in _OF_PERSONS or (low.endswith("s") and low in vocabulary("conflicts", "verbs"))


def _is_capital(text: str, word: Token) -> bool:
    written = text[word.start : word.stop].lstrip("\"'*_~(")
    return written[:1].isupper()


def _bare(word: Token) -> str:
    """The word without a possessive, and of a day the singular."""
    bare = word.low.removesuffix("'s")
    return bare[:-1] if bare.endswith("days") else bare
