"""Tags, summaries and emotional weights of texts, and subjects of source files.

Tags come from paths (the language of a file and its folder), from topics of English words and from
names in the text. A summary consists of one or two sentences of the text that contain its most
frequent words. Words of code bases are in ``code_bases.toml``.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from memlab.kernel.english import lexicon, padded, phrases, vocabulary, words_of
from memlab.subjects.reading.names import proper_names
from memlab.subjects.reading.sentences import count_tokens, sentences_and_lines, shorten

__all__ = [
    "code_words",
    "describing",
    "emotional_weight",
    "file_language",
    "file_subject",
    "name_stems",
    "proper_names",
    "stem_code_word",
    "summary_of",
    "tags_of",
]

FEWEST, MOST = 25, 35
"""The minimum tokens of a summary, if the text is long enough, and the maximum tokens."""

_READ = 20_000
"""The maximum characters that are read for a summary and for topics."""

_SHORT = 8
"""The tokens that are added to the length of a sentence, so that very short ones are not preferred."""

# The maximum characters of a tag, a pattern of characters that tags replace by hyphens, and names that are no topics.
_LONGEST_TAG = 40
_NOT_OF_A_TAG = re.compile(r"[^\w:.+#]+")
_NOBODY = frozenset(["user", "team"])


def describing() -> ModuleType:
    """Return this module, which provides the kernel with tags and summaries."""
    return sys.modules[__name__]


def tags_of(text: str, files: Sequence[str], entities: Sequence[str | None] = ()) -> list[str]:
    """Return at most six tags, taken from a text, its file paths and its entities.

    >>> tags_of("The login fails", ["src/auth/handler.rs"])
    ['rust', 'auth']
    """
    tags = [tag for path in files for tag in _path_tags(path)]
    names = [*entities, *proper_names(text)]
    tags += [
        tag for name in names if name is not None and (tag := _to_tag(name)) and tag not in _NOBODY
    ]
    topics, counts = _topic_by_word(), Counter(words_of(text[:_READ]))
    of_topics = [(-counts[word], topics[word]) for word in counts if word in topics]
    tags += [topic for _, topic in sorted(of_topics, key=lambda pair: pair[0])]
    return list(dict.fromkeys(tags))[: lexicon()["tags"]["most"]]


def summary_of(text: str) -> str:
    """Return a summary of a text in its own words, with at most 35 tokens.

    >>> summary_of("The cache is stale after a deploy.")
    'The cache is stale after a deploy.'
    """
    flat = " ".join(text[:_READ].split())
    if count_tokens(flat) <= MOST:
        return flat
    parts = sentences_and_lines(text[:_READ]) or [flat]
    words_by_part, plain = [words_of(part) for part in parts], vocabulary("negation", "fillers")
    counts = Counter(word for words in words_by_part for word in words if word not in plain)
    weights = [
        sum(counts[word] for word in set(words)) / (_SHORT + count_tokens(part)) ** 0.5
        for words, part in zip(words_by_part, parts, strict=True)
    ]
    # The best sentence has the words that the text repeats most. The sentences after it are added up to the budget.
    best = max(range(len(parts)), key=lambda index: (weights[index], -index))
    summary = " ".join(parts[best].split())
    for later in range(best + 1, len(parts)):
        if count_tokens(summary) >= FEWEST:
            break
        longer = f"{summary} {' '.join(parts[later].split())}"
        if count_tokens(longer) > MOST and count_tokens(shorten(longer, MOST)) < FEWEST:
            break
        summary = longer
    return shorten(summary, MOST)


def _path_tags(path: str) -> list[str]:
    """Return at most two tags of a file: its language and its innermost specific folder."""
    *folders, name = [
        part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")
    ] or [""]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    tags = [lexicon()["tags"]["extensions"].get(ending)]
    plain = vocabulary("tags", "plain-folders")
    telling = [
        tag
        for folder in folders
        if (tag := _to_tag(folder)) and tag not in plain and ":" not in tag
    ]
    return [tag for tag in (*tags, *telling[-1:]) if tag]


def _to_tag(name: str) -> str:
    """Return a name as a tag in lower case with hyphens, or "" if it is too long."""
    tag = _NOT_OF_A_TAG.sub("-", name.casefold()).strip("-.")
    return tag if len(tag) <= _LONGEST_TAG else ""


# Built once from the table of topics.
@cache
def _topic_by_word() -> dict[str, str]:
    """Return the topic of each word in the table of topics."""
    return {word: topic for topic, words in lexicon()["tags"]["topics"].items() for word in words}


# -- feelings ---------------------------------------------------------------------------------------------------------

_STRONGER, _WEAKER = 1.2, 0.6
"""The factors of words such as "deeply" and of words such as "a bit" before a word of feeling."""

_MOST = 100.0
"""The maximum emotional weight."""


def emotional_weight(text: str) -> float | None:
    """Return the emotional weight of a text, or None if it has no emotional words.

    The strongest word counts. The weights in the table ``feelings`` of ``english.toml`` range from
    90 for grief and terror to 40 for pleasant things. A word such as "very" before the strongest
    word multiplies its weight by 1.2, and "a bit" by 0.6.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    float or None
        The weight, 0 to 100.

    Examples
    --------
    >>> emotional_weight("Ada was heartbroken"), emotional_weight("a bit worried"), emotional_weight("The build passed")
    (90.0, 36.0, None)
    """
    words = words_of(text)
    weights = [
        min(
            _feeling_weights()[word]
            * _read_intensity(padded(words[max(position - 3, 0) : position])),
            _MOST,
        )
        for position, word in enumerate(words)
        if word in _feeling_weights()
    ]
    return max(weights, default=None)


def _read_intensity(before: str) -> float:
    """Return the factor by which preceding words change the weight of an emotional word."""
    if any(before.endswith(phrase) for phrase in phrases("feelings", "weaker")):
        return _WEAKER
    return (
        _STRONGER
        if any(before.endswith(phrase) for phrase in phrases("feelings", "stronger"))
        else 1.0
    )


# Built once from the table of feelings.
@cache
def _feeling_weights() -> dict[str, float]:
    """Return the weight of each word that expresses emotion."""
    return {
        word: float(weight)
        for weight, words in lexicon()["feelings"]["weights"].items()
        for word in words
    }


# -- code bases -------------------------------------------------------------------------------------------------------


# Read from the file once per process.
@cache
def _code_base_tables() -> dict[str, Any]:
    """Return the tables of ``code_bases.toml``, which is read once per process."""
    return tomllib.loads(Path(__file__).with_name("code_bases.toml").read_text(encoding="utf-8"))


# Built once for each list, because it is looked up for every file of a code base.
@cache
def code_words(name: str) -> frozenset[str]:
    """Return a word list about code bases.

    Parameters
    ----------
    name
        "generated", "frameworks", "common", "layers" or "entries". "layer stems" are the stems of
        "layers".
    """
    if name == "layer stems":
        return frozenset(map(stem_code_word, code_words("layers")))
    return frozenset(_code_base_tables()[name].split())


# Built once from the table of abbreviations.
@cache
def _short_forms() -> dict[str, str]:
    """Return the abbreviation of each word that code usually abbreviates."""
    return {
        long: short
        for short, longer in _code_base_tables()["abbreviations"].items()
        for long in longer.split()
    }


def stem_code_word(word: str) -> str:
    """Return the stem of a word in code, or the word's usual abbreviation.

    Parameters
    ----------
    word
        A word in lower case.

    Examples
    --------
    >>> stem_code_word("routes"), stem_code_word("authentication")
    ('rout', 'auth')
    """
    if word in _short_forms():
        return _short_forms()[word]
    for end in ("ings", "ing", "ers", "er", "ed", "es", "s"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[: -len(end)]
    return word


def name_stems(name: str) -> list[str]:
    """Return the stems of the words in a name, split at capitals and punctuation.

    Parameters
    ----------
    name
        The name of a file, a folder or a class.

    Examples
    --------
    >>> name_stems("AuthStore"), name_stems("user_routes")
    (['auth', 'store'], ['user', 'rout'])
    """
    separated = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [stem_code_word(word) for word in re.findall(r"[^\W_]{2,}", separated.lower())]


def file_subject(name: str) -> str:
    """Return the subject in a file name, or "" for a name without a subject.

    Parameters
    ----------
    name
        The name of a file without folder and extension.

    Examples
    --------
    >>> file_subject("auth-store"), file_subject("UserService"), file_subject("index")
    ('auth', 'user', 'index')
    """
    ignored = code_words("layer stems") | code_words("common")
    subject = " ".join(word for word in name_stems(name) if word not in ignored)
    return subject if len(subject) >= 2 else ""


# Built once from the table of languages.
@cache
def _language_by_ending() -> dict[str, str]:
    """Return the programming language for each file extension."""
    return {
        end: name for name, ends in _code_base_tables()["languages"].items() for end in ends.split()
    }


def file_language(path: str) -> str | None:
    """Return the programming language of a file extension, or None if unknown.

    Parameters
    ----------
    path
        The path of a file.

    Examples
    --------
    >>> file_language("src/app.TSX"), file_language("README.md")
    ('TypeScript', None)
    """
    dot = path.rfind(".")
    return _language_by_ending().get(path[dot:].lower()) if dot >= 0 else None
