"""What the words of a text and the names of files are about: tags, a summary for prompts, feelings, code bases.

Tags come from paths (the language of a file, the folder that it lies in), from topics by words (plain English) and from
the names in a text. A summary is one or two of the text's own sentences, those with the words that it repeats. Words of
code bases are in ``code_bases.toml``.
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
"""Tokens of a summary: at least, where the text has them, and at most."""

_READ = 20_000
"""Characters of a text that are read for its summary and topics."""

_SHORT = 8
"""Tokens below which a sentence gains nothing by being shorter."""

_LONGEST_TAG = 40
_NOT_OF_A_TAG = re.compile(r"[^\w:.+#]+")
_NOBODY = frozenset(["user", "team"])


def describing() -> ModuleType:
    """Return this module, which the kernel asks for what a text gives a memory."""
    return sys.modules[__name__]


def tags_of(text: str, files: Sequence[str], entities: Sequence[str | None] = ()) -> list[str]:
    """Tags of a text, the paths that it is about and the entities that it names; at most six.

    >>> tags_of("The login fails", ["src/auth/handler.rs"])
    ['rust', 'auth']
    """
    found = [tag for path in files for tag in _of_a_path(path)]
    names = [*entities, *proper_names(text)]
    found += [
        tag for name in names if name is not None and (tag := _tag(name)) and tag not in _NOBODY
    ]
    topics, told = _topics(), Counter(words_of(text[:_READ]))
    of_topics = [(-told[word], topics[word]) for word in told if word in topics]
    found += [topic for _, topic in sorted(of_topics, key=lambda pair: pair[0])]
    return list(dict.fromkeys(found))[: lexicon()["tags"]["most"]]


def summary_of(text: str) -> str:
    """At most 35 tokens of a text's own words, and from 25 on where its sentences allow it.

    >>> summary_of("The cache is stale after a deploy.")
    'The cache is stale after a deploy.'
    """
    flat = " ".join(text[:_READ].split())
    if count_tokens(flat) <= MOST:
        return flat
    parts = sentences_and_lines(text[:_READ]) or [flat]
    said, plain = [words_of(part) for part in parts], vocabulary("negation", "fillers")
    told = Counter(word for words in said for word in words if word not in plain)
    weights = [
        sum(told[word] for word in set(words)) / (_SHORT + count_tokens(part)) ** 0.5
        for words, part in zip(said, parts, strict=True)
    ]
    best = max(range(len(parts)), key=lambda place: (weights[place], -place))
    summary = " ".join(parts[best].split())
    for later in range(best + 1, len(parts)):
        if count_tokens(summary) >= FEWEST:
            break
        longer = f"{summary} {' '.join(parts[later].split())}"
        if count_tokens(longer) > MOST and count_tokens(shorten(longer, MOST)) < FEWEST:
            break
        summary = longer
    return shorten(summary, MOST)


def _of_a_path(path: str) -> list[str]:
    """The language of a file by its ending, and the innermost folder that says something."""
    *folders, name = [
        part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")
    ] or [""]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    found = [lexicon()["tags"]["extensions"].get(ending)]
    plain = vocabulary("tags", "plain-folders")
    telling = [
        tag for folder in folders if (tag := _tag(folder)) and tag not in plain and ":" not in tag
    ]
    return [tag for tag in (*found, *telling[-1:]) if tag]


def _tag(name: str) -> str:
    """A name as a tag: small letters, words joined by hyphens; empty for what would be too long."""
    tag = _NOT_OF_A_TAG.sub("-", name.casefold()).strip("-.")
    return tag if len(tag) <= _LONGEST_TAG else ""


@cache
def _topics() -> dict[str, str]:
    return {word: topic for topic, words in lexicon()["tags"]["topics"].items() for word in words}


# -- feelings ---------------------------------------------------------------------------------------------------------

_STRONGER, _WEAKER = 1.2, 0.6
"""Factors of words such as "deeply" and "a bit" right before a word of feeling."""

_MOST = 100.0


def emotional_weight(text: str) -> float | None:
    """Return how much feeling a text carries; None where no word of the table stands in it.

    The strongest word counts. The table is ``feelings`` in ``english.toml``: 90 for grief and terror down to 40 for
    what is merely pleasant. A word such as "very" right before it counts 1.2 times, one such as "a bit" 0.6 times.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    float or None
        The weight, 0-100.

    Examples
    --------
    >>> emotional_weight("Ada was heartbroken"), emotional_weight("a bit worried"), emotional_weight("The build passed")
    (90.0, 36.0, None)
    """
    words = words_of(text)
    weights = [
        min(_weights()[word] * _factor(padded(words[max(place - 3, 0) : place])), _MOST)
        for place, word in enumerate(words)
        if word in _weights()
    ]
    return max(weights, default=None)


def _factor(before: str) -> float:
    if any(before.endswith(phrase) for phrase in phrases("feelings", "weaker")):
        return _WEAKER
    return (
        _STRONGER
        if any(before.endswith(phrase) for phrase in phrases("feelings", "stronger"))
        else 1.0
    )


@cache
def _weights() -> dict[str, float]:
    return {
        word: float(weight)
        for weight, words in lexicon()["feelings"]["weights"].items()
        for word in words
    }


# -- code bases -------------------------------------------------------------------------------------------------------


@cache
def _code_base_tables() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("code_bases.toml").read_text(encoding="utf-8"))


@cache
def code_words(name: str) -> frozenset[str]:
    """Return one of the lists of words.

    Parameters
    ----------
    name
        generated, frameworks, common, layers or entries; "layer stems" are the stems of layers.
    """
    if name == "layer stems":
        return frozenset(map(stem_code_word, code_words("layers")))
    return frozenset(_code_base_tables()[name].split())


@cache
def _abbreviations() -> dict[str, str]:
    return {
        long: short
        for short, longer in _code_base_tables()["abbreviations"].items()
        for long in longer.split()
    }


def stem_code_word(word: str) -> str:
    """Return the stem of a word in small letters; what is usually abbreviated has the abbreviation.

    Parameters
    ----------
    word
        A word in small letters.

    Examples
    --------
    >>> stem_code_word("routes"), stem_code_word("authentication")
    ('rout', 'auth')
    """
    if word in _abbreviations():
        return _abbreviations()[word]
    for end in ("ings", "ing", "ers", "er", "ed", "es", "s"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[: -len(end)]
    return word


def name_stems(name: str) -> list[str]:
    """Return the stems of the words of a name; words written together are split at capitals.

    Parameters
    ----------
    name
        The name of a file, a folder or a class.

    Examples
    --------
    >>> name_stems("AuthStore"), name_stems("user_routes")
    (['auth', 'store'], ['user', 'rout'])
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [stem_code_word(word) for word in re.findall(r"[^\W_]{2,}", apart.lower())]


def file_subject(name: str) -> str:
    """Return the subject of the name of a file without its ending; empty where it names a layer alone.

    Parameters
    ----------
    name
        The name of a file, without folder and ending.

    Examples
    --------
    >>> file_subject("auth-store"), file_subject("UserService"), file_subject("index")
    ('auth', 'user', 'index')
    """
    silent = code_words("layer stems") | code_words("common")
    subject = " ".join(word for word in name_stems(name) if word not in silent)
    return subject if len(subject) >= 2 else ""


@cache
def _languages() -> dict[str, str]:
    return {
        end: name for name, ends in _code_base_tables()["languages"].items() for end in ends.split()
    }


def file_language(path: str) -> str | None:
    """Return the programming language of a file by the end of its name; None for what is no source.

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
    return _languages().get(path[dot:].lower()) if dot >= 0 else None
