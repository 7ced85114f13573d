"""Proper names in a text: runs of capitalised words that name somebody or something."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from memlab.kernel.english import Token, table, vocabulary, words_of
from memlab.subjects.reading.clauses import contracted_words
from memlab.subjects.reading.sentences import is_plain_word, sentence_spans, without_quotations

__all__ = ["proper_names"]


_LONGEST = 20_000
_MOST_WORDS = 4
_ENDINGS = ("ing", "tic", "ical", "ous", "tion", "ment", "ness", "ity", "ism", "ly")
_TRIMMED = " \t\n.,;:!?\u2026\"'*_~-()[]"


_LOWER = re.compile(r"(?<![^\W_])[a-z]+(?![^\W_])")
_NO_NAME = re.compile(
    r"[|=<>{}\\]|-[a-z]|/[a-z]|:$|^[A-Z]\d?$|^[A-Z]{2,5} ?\d{2,4}[A-Z]?$|^[A-Z]+[a-z]$|^I'|'(?:ed|ing|d)$|[.]{3}"
    r"|^[A-Z]{1,2}\d{1,4}(?:[-:][A-Z]{1,2}\d{1,4})?$"
)
"""Code, adjectives such as "UK-based", pairs such as "TV/film", headings, single letters, courses, slips, cells of a
sheet."""

_CODE = re.compile(
    r".*(?:[;{}][ \t]*|=>.*|,[ \t]*\\)|[ \t]*(?://|/\*|import |using |package |@|</?\w).*"
)
"""A line of a program outside of marks for code."""

_TITLED = 0.6
"""Share of a line's longer words that begin with a capital from which on it is a title."""

_INITIALS = re.compile(r"(?:[a-z]\.)+")
"""They stand before a name: "J.K." of "J.K. Rowling"."""

_CUT_INITIALS = re.compile(r"(?:[A-Z]\.)+[A-Z]")
"""Initials without their last dot: "D.C"."""


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
_SHORT_ITEM = 8
_OF_PERSONS = frozenset(
    ["was", "said", "told", "went", "came", "moved", "wants", "loves", "thinks", "will"]
)


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
    """Whether a line is written as a title: of four words or more after its first, most have a capital."""
    words = line.split()
    if not line.strip()[:1].isupper() or line.rstrip().endswith((".", "!", ",", ";")):
        return False
    if not vocabulary("acts", "first-person", "third-person").isdisjoint(
        word.lower() for word in words
    ):
        return False  # what somebody says: "I just met John Mayer at BYU"
    long = [word for word in words[1:] if len(word) > _SHORT_WORD and word[0].isalpha()]
    return len(long) >= _TITLE_WORDS and sum(word[0].isupper() for word in long) >= _TITLED * len(
        long
    )


_SHORT_WORD = 3
_TITLE_WORDS = 4


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
    inner = Counter(name for name, first, _ in runs if not first)
    found = [name for name, first, sure in runs if not first or sure or name in inner]
    return list(dict.fromkeys(found))


def _runs(text: str, start: int, stop: int) -> Iterator[tuple[str, bool, bool]]:
    """Each run of capitalised words: the name, whether it begins the sentence, and whether it is one even so."""
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
        return  # a heading
    place = 0
    while place < len(words):
        if not _is_capital(text, words[place]) or _bare(words[place]) in no_names:
            place += 1
            continue
        last = _end_of_run(text, words, place, no_names)
        first = place
        while first < last - 1 and (
            _opens_anywhere(words[first]) or (first == 0 and _only_begins(words[first]))
        ):
            first += 1  # "Remember Jon", "Learning German", "In Rome", "Dear Anna", "Googled Jon"
        while first < last - 1 and not _is_capital(text, words[first]):
            first += 1
        if first == last - 1 and place == 0 and (first or _only_begins(words[first])) and last == 1:
            place = last
            continue
        stop = last
        while stop > first + 1 and words[stop - 1].low in vocabulary("names", "cries"):
            stop -= 1  # "Disney XD"
        name = text[words[first].start : words[stop - 1].stop].strip(_TRIMMED)
        for ending in ("'s", "\u2019s"):
            name = name.removesuffix(ending)
        place = first
        begins = (
            place == 0
            or _AFTER_STOP.search(text[words[place - 1].start : words[place].start]) is not None
        )
        begins = begins and (
            place == 0 or words[place - 1].low not in vocabulary("extraction", "titles")
        )
        titled = _bare(words[place]) in _titles()
        if _CUT_INITIALS.fullmatch(name):
            name += "."
        if _is_common(text, name, words, last):
            place = last
            continue
        if len(name) > 1 and not (titled and last == place + 1) and _NO_NAME.search(name) is None:
            yield (
                name,
                begins,
                last > place + 1 or (_acts(words, last) and not name.endswith(_ENDINGS)),
            )
        place = last


def _end_of_run(text: str, words: list[Token], place: int, no_names: frozenset[str]) -> int:
    """Where the capitalised words that begin at a place end, with what joins two parts of a title."""
    last = place + 1
    most = place + _MOST_WORDS
    while last < len(words) and last < most:
        if _joins(text, words[last - 1], words[last]):
            if _bare(words[last]) in no_names and (
                place == 0 or _bare(words[last]) not in _numbers()
            ):
                break
            last += 1
            continue
        joining = _joining_length(text, words, last)
        if joining and words[last].low == "and" and last > place + 1:
            break  # "Pride and Prejudice", and not "Lion King and the Lost World"
        if not joining or _bare(words[last + joining]) in no_names - _numbers():
            break
        last += joining + 1
        most = min(most + joining + 1, place + _LONGEST_TITLE)
    return last


def _joining_length(text: str, words: list[Token], at: int) -> int:
    """How many small words join a capitalised word to the next: "of", "of the", "to the" before an ordinary word."""
    lows = [word.low for word in words[at : at + 2]]
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
        at + size >= len(words)
        or lows[0] not in ("of", "to", "in", "and", "at", "on")
        or (size == 1 and lows[0] in ("to", "in", "at", "on"))
    ):
        return 0
    between = text[words[at - 1].stop : words[at + size].start]
    before, after = words[at - 1], words[at + size]
    if (
        not _is_capital(text, after)
        or _MARKS.search(between)
        or text[after.start : after.stop].isupper()
    ):
        return 0
    if (size == 2 and _is_capital(text, words[at + 1])) or after.low in _SEASONS:
        return 0  # "Peter Pan and The Little Mermaid", "BYU in the Fall"
    if lows[0] == "of":
        return size
    plain = is_plain_word(_bare(after)) or (lows[0] == "and" and after.low.endswith("s"))
    both = plain and (lows[0] in ("to", "on") or is_plain_word(_bare(before)))
    # "Pride and Prejudice", "Back to the Future"; not "Mozart and Beethoven"
    return size if both else 0


_MARKS = re.compile(r"[^\w\s'\u2019]|\n")
_LONGEST_TITLE = 8
_SEASONS = frozenset(("spring", "summer", "fall", "autumn", "winter", "morning", "evening"))


def _opens_anywhere(word: Token) -> bool:
    """Whether a capitalised word before a name is no part of it: "Dear", "Googled"."""
    if word.low in vocabulary("extraction", "past-tenses"):
        return True
    regular = (
        word.low.endswith("ed") and len(word.low) > _FEWEST_OF_A_PAST and is_plain_word(word.low)
    )
    return word.low in vocabulary("names", "addressing") or (
        regular and word.low not in _KEPT_PASTS
    )


_FEWEST_OF_A_PAST = 5
_KEPT_PASTS = frozenset(("united", "advanced", "applied", "allied", "united's"))
"""They begin names: "United States", "Applied Materials"."""


def _titles() -> frozenset[str]:
    return vocabulary("extraction", "titles") | vocabulary("names", "abbreviations")


def _numbers() -> frozenset[str]:
    return frozenset(
        (
            "one",
            "two",
            "three",
            "first",
            "second",
            "last",
            "day",
            "time",
            "way",
            "art",
            "love",
            "life",
            "music",
        )
    )


def _only_begins(word: Token) -> bool:
    """Whether a word has its capital from the beginning of its sentence: an order, an activity, an adverb, "In"."""
    orders = vocabulary("utterance", "orders", "doubtful-orders") | vocabulary("acts", "orders")
    if (
        word.low in orders
        or word.low in vocabulary("names", "openings")
        or word.low in vocabulary("negation", "fillers")
    ):
        return True
    return word.low.endswith(_ENDINGS) and (not word.low.endswith("ly") or is_plain_word(word.low))


def _joins(text: str, before: Token, word: Token) -> bool:
    """Whether a capitalised word goes on with a name: nothing but white space stands between."""
    between = text[before.stop : word.start]
    ends = text[before.start : before.stop].endswith((",", "!", "?"))
    if text[before.start : before.stop].endswith(("'s", "\u2019s")):
        ends = ends or not is_plain_word(word.low)  # "America's Got Talent", and not "Ada's Toyota"
    title = before.low in _titles()
    initials = _INITIALS.fullmatch(text[before.start : before.stop].lower()) is not None
    ends = ends or (text[before.start : before.stop].endswith(".") and not title and not initials)
    return (
        not between.strip() and word.start > before.start and _is_capital(text, word) and not ends
    )


def _is_common(text: str, name: str, words: list[Token], after: int) -> bool:
    """Whether a run of capitals is of common words: an acronym of all trades, a heading, "European" before "brands"."""
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
        parts[-1] in vocabulary("names", "demonyms") and follows and not _is_third(words[after].low)
    )
    return describes and words[after].low not in vocabulary("extraction", "no-nouns")


def _is_short_name(name: str, words: list[Token], after: int) -> bool:
    """Whether two or three capitals name something: a known place or body, or what "at" or "from" stands before."""
    if name.lower() in vocabulary("names", "short-names") or _acts(words, after):
        return True
    before = words[after - 2].low if after > 1 else ""
    return before in vocabulary("names", "before-short-names")


_SHORTEST_CRY = 4
"""Letters of each word of several in capitals that are shouted: "LOVVE METALL"."""


def _is_field(parts: list[str]) -> bool:
    """Whether words name a field of study or a post: "Human Development", "Product Intern"."""
    fields = vocabulary("names", "fields")
    last = parts[-1] in fields or parts[-1].removesuffix("s") in fields
    return len(parts) > 1 and last and all(map(_is_ordinary, parts))


def _is_ordinary(word: str) -> bool:
    return (
        is_plain_word(word)
        or _names_science(word)
        or word in ("and", "of", "&", *vocabulary("names", "common"))
    )


def _names_science(word: str) -> bool:
    """Whether a word names a field of knowledge or a process: "meiosis", "linguistics", "biochemistry"."""
    return (
        len(word) > _SHORTEST_SCIENCE
        and word.endswith(_SCIENCES)
        and word not in ("olympics", "paralympics")
    )


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
    """Whether a name in capitals is a plain word: "LOT", "DOING", "SOOO"."""
    low = name.lower()
    if not name.isupper() or len(name) < _SHORTEST_SHOUTED:
        return False
    plain = low.endswith(_ENDINGS) or low in vocabulary(
        "extraction", "contentless", "no-nouns", "discourse-nouns"
    )
    return plain or is_plain_word(low) or (len(low) > _LONGEST_ACRONYM and name.isalpha())


_SHORTEST_SHOUTED = 3
_LONGEST_ACRONYM = 5
"""Letters of an acronym: "NAFTA"; a longer word in capitals is shouted."""


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
