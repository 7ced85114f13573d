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
_NO_NAME = re.compile(r"[|=<>{}\\]|-[a-z]|:$|^[A-Z]\d?$")
"""Code, adjectives such as "UK-based", headings, single letters."""


def proper_names(text: str) -> list[str]:
    """Return the names that a text mentions, in order, each once.

    A word that begins a sentence counts only if the text writes it with a capital elsewhere too, or if more capitalised
    words or a verb in the third person follow. Days, months, pronouns and what only opens a sentence are no names.

    Parameters
    ----------
    text
        Any text; code and quotations are left out.

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
    own = without_quotations(text[:_LONGEST])
    runs = [run for start, stop in sentence_spans(own) for run in _runs(own, start, stop)]
    written = frozenset(words_of(own)) & frozenset(_LOWER.findall(own))
    runs = [run for run in runs if " " in run[0] or run[0].lower() not in written]
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
            first += 1  # "Remember Jon", "Learning German"
        if first == last - 1 and place == 0 and (first or _only_begins(words[first])) and last == 1:
            place = last
            continue
        name = text[words[first].start : words[last - 1].stop].strip(_TRIMMED)
        for ending in ("'s", "\u2019s"):
            name = name.removesuffix(ending)
        place = first
        titled = _bare(words[place]) in vocabulary("extraction", "titles")
        if len(name) > 1 and not (titled and last == place + 1) and _NO_NAME.search(name) is None:
            yield name, place == 0, last > place + 1 or (_acts(words, last) and not name.endswith(_ENDINGS))
        place = last


def _only_begins(word: Token) -> bool:
    """Whether a word has its capital from the beginning of its sentence: an order, an activity, an adverb."""
    orders = vocabulary("utterance", "orders", "doubtful-orders") | vocabulary("acts", "orders")
    return word.low in orders or word.low.endswith(_ENDINGS)


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
    low = words[place].low
    third = low.endswith("s") and low in vocabulary("conflicts", "verbs")
    return third or low in ("was", "said", "told", "went", "came", "moved", "wants", "loves", "thinks", "will", "can")


def _is_capital(text: str, word: Token) -> bool:
    written = text[word.start : word.stop].lstrip("\"'*_~(")
    return written[:1].isupper()


def _bare(word: Token) -> str:
    return word.low.removesuffix("'s")
