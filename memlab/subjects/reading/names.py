"""Proper names in a text: capitalised words that name a person, place or thing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from memlab.kernel.english import Token, table, vocabulary, words_of
from memlab.subjects.reading.clauses import contracted_words
from memlab.subjects.reading.sentences import is_plain_word, sentence_spans, without_quotations

# The maximum characters that are read of a text, the maximum words of a name, endings of words that are capitalised
# only at the start of a sentence, and punctuation around names.
_LONGEST = 20_000
_MOST_WORDS = 4
_ENDINGS = ("ing", "tic", "ical", "ous", "tion", "ment", "ness", "ity", "ism", "ly")
_TRIMMED = " \t\n.,;:!?\u2026\"'*_~-()[]"


# A pattern of a whole word in lower case.
_LOWER = re.compile(r"(?<![^\W_])[a-z]+(?![^\W_])")
_NO_NAME = re.compile(
    r"[|=<>{}\\]|-[a-z]|/[a-z]|:$|^[A-Z]\d?$|^[A-Z]{2,5} ?\d{2,4}[A-Z]?$|^[A-Z]+[a-z]$|^I'|'(?:ed|ing|d)$|[.]{3}"
    r"|^[A-Z]{1,2}\d{1,4}(?:[-:][A-Z]{1,2}\d{1,4})?$"
)
"""A pattern of runs of capitalised words that are no names.

They are code, adjectives such as "UK-based", pairs such as "TV/film", headings, single letters,
courses, typing errors and cells of a spreadsheet.
"""

_CODE = re.compile(
    r".*(?:[;{}][ \t]*|=>.*|,[ \t]*\\)|[ \t]*(?://|/\*|import |using |package |@|</?\w).*"
)
"""A pattern of a line of a program that is not marked as code."""

_TITLED = 0.6
"""The minimum share of capitalised words, among a line's longer words, that makes it a title."""

_INITIALS = re.compile(r"(?:[a-z]\.)+")
"""A pattern of initials before a name, such as "J.K." in "J.K. Rowling"."""

_CUT_INITIALS = re.compile(r"(?:[A-Z]\.)+[A-Z]")
"""A pattern of initials without the last dot, such as "D.C"."""

# Patterns of markup: lists, labels, headings, bold text, the first words of an item, and ends of sentences.
_ITEM = re.compile(r"[ \t]*(?:[-*+\u2022\u2013]|\(?\d{1,3}[.)]|[A-Za-z][.)])[ \t]+")
_LABEL = re.compile(
    r"[ \t]*(?:\*\*|__)[^\n]{1,80}?(?:\*\*|__)[ \t]*:?|[ \t]*(?:[^\s:.!?]+[ \t]+){0,5}[^\s:.!?]+:(?=\s|$)"
)
_HEADING = re.compile(
    r"[ \t]*(?:#{1,6}[ \t].*|(?:\*\*|__)[^*_]+(?:\*\*|__)[ \t]*:?|\|.*|[^.!?]{1,80}:)[ \t]*"
)
_MARKED = re.compile(r"(\*\*|__)[^*_\n]{1,80}\1")
_LEADING = re.compile(r"[ \t]*[^\W\d_][\w'\u2019-]*(?:[ \t]+[A-Z][\w'\u2019-]*)*")
_AFTER_STOP = re.compile(
    r"(?:[.!?:]|\u2026)[\"'\u2019\u201d)\]*_]*[ \t\n]+[\"'\u2018\u201c(\[*_]*$"
)
# The maximum words of a list item without a full stop that is no sentence, and verbs whose subject is a person.
_SHORT_ITEM = 8


def _blank_non_prose(text: str) -> str:
    """Return a text of the same length in which everything except prose is blank.

    Headings, rows of tables, labels, bold text, list items without a sentence and the first words
    of a list item are replaced by spaces. Their capitals do not mark names: "Contract Details",
    "Rest Days: ...".
    """
    lines = [_blank_non_prose_line(line) for line in text.split("\n")]
    return _MARKED.sub(_blank_match, "\n".join(lines))


def _blank_non_prose_line(line: str) -> str:
    """Return a line of the same length in which everything except prose is blank."""
    if _HEADING.fullmatch(line) or _CODE.fullmatch(line) or _is_title(line):
        return " " * len(line)
    item = _ITEM.match(line)
    if item is None:
        return line
    rest = line[item.end() :]
    label = _LABEL.match(rest)
    start = item.end() + (label.end() if label is not None else 0)
    content = line[start:]
    if not content.rstrip().endswith((".", "!", "?")) and len(content.split()) <= _SHORT_ITEM:
        return " " * len(line)
    first = _LEADING.match(content)
    begun = 0 if first is None or _begins_with_verb(content[first.end() :]) else first.end()
    return " " * (start + begun) + content[begun:]


def _is_title(line: str) -> bool:
    """Return whether a line is a title, with capitals in most long words.

    The first word is ignored, and at least ``_TITLE_WORDS`` other long words are required.
    """
    words = line.split()
    if not line.strip()[:1].isupper() or line.rstrip().endswith((".", "!", ",", ";")):
        return False
    if not vocabulary("acts", "first-person", "third-person").isdisjoint(
        word.lower() for word in words
    ):
        return False  # A statement about a person: "I just met John Mayer at BYU".
    long = [word for word in words[1:] if len(word) > _SHORT_WORD and word[0].isalpha()]
    return len(long) >= _TITLE_WORDS and sum(word[0].isupper() for word in long) >= _TITLED * len(
        long
    )


# The maximum letters of words that titles leave in lower case ("of", "the"), and the minimum long words of a title.
_SHORT_WORD = 3
_TITLE_WORDS = 4


def _begins_with_verb(text: str) -> bool:
    """Return whether a text begins with a verb whose subject is a person."""
    words = words_of(text[:40])
    return bool(words) and words[0] in vocabulary("names", "of-persons")


def _blank_match(match: re.Match[str]) -> str:
    """Return as many spaces as a match has characters."""
    return " " * len(match[0])


def proper_names(text: str) -> list[str]:
    """Return the distinct names that a text mentions, in order of mention.

    The first word of a sentence counts only if it is also capitalised elsewhere in the text, or if
    a capitalised word or a verb in the third person follows. Days, months, pronouns and openers of
    sentences are no names.

    Parameters
    ----------
    text
        Any text; code, quotations, headings and labels of lists are ignored.

    Returns
    -------
    list of str
        The names, spelled as in their first mention.

    Examples
    --------
    >>> proper_names("Yesterday Sarah works on JACQ with Dr. Okafor. Well, both others left.")
    ['Sarah', 'JACQ', 'Dr. Okafor']
    >>> proper_names("Besides I think so. Nice! On Monday we met.")
    []
    """
    own = _blank_non_prose(without_quotations(text[:_LONGEST]))
    runs = [
        run for start, stop in sentence_spans(own) for run in _capitalised_runs(own, start, stop)
    ]
    written = frozenset(words_of(own)) & frozenset(_LOWER.findall(own))
    runs = [run for run in runs if " " in run[0] or run[0].lower() not in written]
    inner = Counter(name for name, first, _ in runs if not first)
    names = [name for name, first, sure in runs if not first or sure or name in inner]
    return list(dict.fromkeys(names))


def _capitalised_runs(text: str, start: int, stop: int) -> Iterator[tuple[str, bool, bool]]:
    """Yield the names among the runs of capitalised words in a sentence.

    Each name comes with two flags: whether it begins the sentence, and whether it is certainly a
    name even at the beginning.
    """
    words = contracted_words(text, start, stop)
    no_names = vocabulary("extraction", "no-names") | vocabulary(
        "acts", "openers", "first-person", "second-person"
    )
    contracted = table("extraction", "contractions")
    words = [
        word
        for word in words
        if text[word.start : word.stop].lower().replace("\u2019", "'") not in contracted
    ]
    if len(words) > 1 and all(_is_capital(text, word) for word in words):
        return  # Every word is capitalised: a heading.
    position = 0
    while position < len(words):
        if not _is_capital(text, words[position]) or _bare(words[position]) in no_names:
            position += 1
            continue
        last = _end_of_run(text, words, position, no_names)
        first = position
        while first < last - 1 and (
            _precedes_name(words[first]) or (first == 0 and _has_sentence_capital(words[first]))
        ):
            first += 1  # These words are not part of the name: "Remember Jon", "Learning German", "Dear Anna".
        while first < last - 1 and not _is_capital(text, words[first]):
            first += 1
        if (
            first == last - 1
            and position == 0
            and (first or _has_sentence_capital(words[first]))
            and last == 1
        ):
            position = last
            continue
        stop = last
        while stop > first + 1 and words[stop - 1].low in vocabulary("names", "cries"):
            stop -= 1  # "Disney XD"
        name = text[words[first].start : words[stop - 1].stop].strip(_TRIMMED)
        for ending in ("'s", "\u2019s"):
            name = name.removesuffix(ending)
        position = first
        begins = (
            position == 0
            or _AFTER_STOP.search(text[words[position - 1].start : words[position].start])
            is not None
        )
        begins = begins and (
            position == 0 or words[position - 1].low not in vocabulary("extraction", "titles")
        )
        titled = _bare(words[position]) in _title_words()
        if _CUT_INITIALS.fullmatch(name):
            name += "."
        if _is_common_phrase(text, name, words, last):
            position = last
            continue
        if (
            len(name) > 1
            and not (titled and last == position + 1)
            and _NO_NAME.search(name) is None
        ):
            yield (
                name,
                begins,
                last > position + 1 or (_verb_follows(words, last) and not name.endswith(_ENDINGS)),
            )
        position = last


def _end_of_run(text: str, words: list[Token], position: int, no_names: frozenset[str]) -> int:
    """Return the index after a run of capitalised words.

    Small words that join two pieces of a title belong to the run.
    """
    last = position + 1
    limit = position + _MOST_WORDS
    while last < len(words) and last < limit:
        if _continues_name(text, words[last - 1], words[last]):
            if _bare(words[last]) in no_names and (
                position == 0 or _bare(words[last]) not in _title_nouns()
            ):
                break
            last += 1
            continue
        joining = _joining_length(text, words, last)
        if joining and words[last].low == "and" and last > position + 1:
            break  # "Pride and Prejudice" is one title, "Lion King and the Lost World" is two.
        if not joining or _bare(words[last + joining]) in no_names - _title_nouns():
            break
        last += joining + 1
        limit = min(limit + joining + 1, position + _LONGEST_TITLE)
    return last


def _joining_length(text: str, words: list[Token], position: int) -> int:
    """Return the number of small words that join two capitalised words, or 0.

    Examples are "of", "of the", and "to the" before an ordinary word.
    """
    lows = [word.low for word in words[position : position + 2]]
    size = (
        2
        if lows
        in (
            ["of", "the"],
            ["to", "the"],
            ["in", "the"],
            ["and", "the"],
            ["at", "the"],
            ["on", "the"],
        )
        else 1
    )
    if (
        position + size >= len(words)
        or lows[0] not in ("of", "to", "in", "and", "at", "on")
        or (size == 1 and lows[0] in ("to", "in", "at", "on"))
    ):
        return 0
    between = text[words[position - 1].stop : words[position + size].start]
    before, after = words[position - 1], words[position + size]
    if (
        not _is_capital(text, after)
        or _MARKS.search(between)
        or text[after.start : after.stop].isupper()
    ):
        return 0
    if (size == 2 and _is_capital(text, words[position + 1])) or after.low in _SEASONS:
        return 0  # Two names or a time: "Peter Pan and The Little Mermaid", "BYU in the Fall".
    if lows[0] == "of":
        return size
    plain = is_plain_word(_bare(after)) or (lows[0] == "and" and after.low.endswith("s"))
    both = plain and (lows[0] in ("to", "on") or is_plain_word(_bare(before)))
    # One title: "Pride and Prejudice", "Back to the Future". Two names: "Mozart and Beethoven".
    return size if both else 0


# A pattern of punctuation that ends a title, the maximum words of a title, and times that follow names.
_MARKS = re.compile(r"[^\w\s'\u2019]|\n")
_LONGEST_TITLE = 8
_SEASONS = frozenset(("spring", "summer", "fall", "autumn", "winter", "morning", "evening"))


def _precedes_name(word: Token) -> bool:
    """Return whether a capitalised word only introduces a name, as "Dear" or a verb in the past does."""
    if word.low in vocabulary("extraction", "past-tenses"):
        return True
    regular = (
        word.low.endswith("ed") and len(word.low) > _FEWEST_OF_A_PAST and is_plain_word(word.low)
    )
    return word.low in vocabulary("names", "addressing") or (
        regular and word.low not in _KEPT_PASTS
    )


_FEWEST_OF_A_PAST = 5
"""The maximum letters of a word in "-ed" that is not read as a past tense, such as "Jared"."""
_KEPT_PASTS = frozenset(("united", "advanced", "applied", "allied", "united's"))
"""Words in "-ed" that begin names, such as "United States" and "Applied Materials"."""


def _title_words() -> frozenset[str]:
    """Return personal titles, such as "dr" and "mrs"."""
    return vocabulary("extraction", "titles") | vocabulary("names", "abbreviations")


def _title_nouns() -> frozenset[str]:
    """Return common nouns and numbers that occur in the titles of works."""
    return vocabulary("names", "title-nouns")


def _has_sentence_capital(word: Token) -> bool:
    """Return whether a word is capitalised only because it starts the sentence.

    Orders, activities, adverbs and words such as "In" count.
    """
    orders = vocabulary("utterance", "orders", "doubtful-orders") | vocabulary("acts", "orders")
    if (
        word.low in orders
        or word.low in vocabulary("names", "openings")
        or word.low in vocabulary("negation", "fillers")
    ):
        return True
    return word.low.endswith(_ENDINGS) and (not word.low.endswith("ly") or is_plain_word(word.low))


def _continues_name(text: str, before: Token, word: Token) -> bool:
    """Return whether a capitalised word continues the name that precedes it."""
    between = text[before.stop : word.start]
    ends = text[before.start : before.stop].endswith((",", "!", "?"))
    if text[before.start : before.stop].endswith(("'s", "\u2019s")):
        # "America's Got Talent" is one name, "Ada's Toyota" is two.
        ends = ends or not is_plain_word(word.low)
    title = before.low in _title_words()
    initials = _INITIALS.fullmatch(text[before.start : before.stop].lower()) is not None
    ends = ends or (text[before.start : before.stop].endswith(".") and not title and not initials)
    return (
        not between.strip() and word.start > before.start and _is_capital(text, word) and not ends
    )


def _is_common_phrase(text: str, name: str, words: list[Token], after: int) -> bool:
    """Return whether a run of capitalised words is a common phrase rather than a name.

    Examples are acronyms of a trade, headings, and "European" before "brands".
    """
    # Cheap look-ups in tables come first. The word list and the words around the run decide other cases.
    parts = [part.lower().replace("\u2019", "'").removesuffix("'s") for part in name.split()]
    if all(part in vocabulary("names", "common", "acronyms") for part in parts) or _is_field(parts):
        return True
    if len(parts) > 1:
        shouted = [part for part in name.split() if part.isupper() and len(part) > 1]
        long = all(len(part) >= _SHORTEST_CRY for part in parts)
        return len(shouted) == len(parts) and (long or any(map(is_plain_word, parts)))
    if "/" in parts[0] and all(map(is_plain_word, parts[0].split("/"))):
        return True
    if (
        name.isupper()
        and name.isalpha()
        and len(name) < _SHORTEST_CRY
        and not _is_short_name(name, words, after)
    ):
        return True
    if parts[0].removesuffix("s") in vocabulary("names", "acronyms") or _is_shouted(name):
        return True
    if is_plain_word(parts[0]) or _names_science(parts[0]):
        return True
    follows = (
        after < len(words) and not _is_capital(text, words[after]) and words[after].low.isalpha()
    )
    describes = (
        parts[-1] in vocabulary("names", "demonyms")
        and follows
        and not _is_third_person_verb(words[after].low)
    )
    return describes and words[after].low not in vocabulary("extraction", "no-nouns")


def _is_short_name(name: str, words: list[Token], after: int) -> bool:
    """Return whether a word of two or three capital letters is a name.

    Known places and organisations are names, and so are capitals before a verb or after words such
    as "at" or "from".
    """
    if name.lower() in vocabulary("names", "short-names") or _verb_follows(words, after):
        return True
    before = words[after - 2].low if after > 1 else ""
    return before in vocabulary("names", "before-short-names")


_SHORTEST_CRY = 4
"""The minimum letters of each word of shouted text, such as "LOVVE METALL"."""


def _is_field(parts: list[str]) -> bool:
    """Return whether words name a field of study or a post, such as "Human Development"."""
    fields = vocabulary("names", "fields")
    last = parts[-1] in fields or parts[-1].removesuffix("s") in fields
    return len(parts) > 1 and last and all(map(_is_ordinary, parts))


def _is_ordinary(word: str) -> bool:
    """Return whether a word is common or names a science."""
    return (
        is_plain_word(word)
        or _names_science(word)
        or word in ("and", "of", "&", *vocabulary("names", "common"))
    )


def _names_science(word: str) -> bool:
    """Return whether a word denotes a science or a process, such as "linguistics"."""
    return (
        len(word) > _SHORTEST_SCIENCE
        and word.endswith(_SCIENCES)
        and word not in ("olympics", "paralympics")
    )


# Endings of sciences and processes, and the maximum letters of words that are too short for them.
_SCIENCES = (
    "osis",
    "ology",
    "nomy",
    "istry",
    "ography",
    "ometry",
    "etics",
    "istics",
    "omics",
    "atics",
    "amics",
    "onics",
)
_SHORTEST_SCIENCE = 6


def _is_shouted(name: str) -> bool:
    """Return whether a word in capitals is an ordinary word, such as "LOT" or "SOOO"."""
    low = name.lower()
    if not name.isupper() or len(name) < _SHORTEST_SHOUTED:
        return False
    plain = low.endswith(_ENDINGS) or low in vocabulary(
        "extraction", "contentless", "no-nouns", "discourse-nouns"
    )
    return plain or is_plain_word(low) or (len(low) > _LONGEST_ACRONYM and name.isalpha())


_SHORTEST_SHOUTED = 3
"""The minimum letters of a shouted word; two capitals are an acronym."""

_LONGEST_ACRONYM = 5
"""The maximum letters of an acronym such as "NAFTA"; a longer word in capitals is shouted."""


def _verb_follows(words: list[Token], position: int) -> bool:
    """Return whether a third-person verb is at an index, as in "Sarah works"."""
    if position >= len(words):
        return False
    return _is_third_person_verb(words[position].low)


def _is_third_person_verb(low: str) -> bool:
    """Return whether a word is a verb in the third person."""
    return low in vocabulary("names", "of-persons") or (
        low.endswith("s") and low in vocabulary("conflicts", "verbs")
    )


def _is_capital(text: str, word: Token) -> bool:
    """Return whether a word begins with a capital letter in the text."""
    written = text[word.start : word.stop].lstrip("\"'*_~(")
    return written[:1].isupper()


def _bare(word: Token) -> str:
    """Return a word without its possessive ending, and with "days" at its end as "day"."""
    bare = word.low.removesuffix("'s")
    return bare[:-1] if bare.endswith("days") else bare
