"""The text of a summary: a heading of its own, then the sentences of its members that stand for the others.

The heading says what the members are about, how many they are and of which days. A question states nothing and a bare
exclamation says nothing, so neither is quoted while there is anything else. Who said a sentence is told where several
people speak.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from memlab.kernel.base.clock import Micros, from_micros
from memlab.kernel.embedding import Embedder
from memlab.kernel.english import STOP_WORDS
from memlab.kernel.index import Words
from memlab.kernel.privacy import screen
from memlab.kernel.state import State
from memlab.subjects.reading.sentences import (
    BYTES_A_TOKEN,
    count_tokens,
    sentences_and_lines,
    shorten,
)

__all__ = ["Told", "chosen", "heading", "is_statement", "keywords", "named_by", "worded", "words"]


# A summary in the words of what it sums up: the sentences that stand for the others, in the order of time.
#
# Nothing is generated. Sentences are chosen one by one, each the one that brings most of all the others closer to
# what is chosen (facility location, Lin and Bilmes, 2011): so it is central, and says what those before it do not.


def chosen(texts: Sequence[str], vectors: NDArray[np.int8], budget: int) -> list[int]:
    """The places, ascending, of the sentences that stand for all within ``budget`` tokens; none if none fits.

    ``vectors`` (sentences, dim) say what each means. Ties go to the earlier one. What is said twice is said once.
    """
    costs = [len(one.encode()) + 1 for one in texts]  # with a space
    matrix = vectors.astype(np.float64)
    matrix /= np.maximum(np.sqrt(np.einsum("ij,ij->i", matrix, matrix)), 1e-9)[:, None]
    likeness = np.round(matrix @ matrix.T, 9)  # a product of matrices may differ in its last bits
    reached = np.full(len(texts), -1.0)
    taken: list[int] = []
    seen: set[str] = set()
    left = budget * BYTES_A_TOKEN + 1  # no space follows the last
    while True:
        gain = np.maximum(likeness - reached[:, None], 0.0).sum(axis=0)
        gain = np.round(gain, 6)
        fits = [
            cost <= left and one.casefold() not in seen
            for cost, one in zip(costs, texts, strict=True)
        ]
        gain[~np.array(fits, dtype=np.bool_)] = -1.0
        best = int(np.argmax(gain)) if len(gain) else -1
        if best < 0 or gain[best] <= 0.0:
            return sorted(taken)
        taken.append(best)
        seen.add(texts[best].casefold())
        left -= costs[best]
        reached = np.maximum(reached, likeness[:, best])


# What groups of texts are about, in a few words.


_UNSPACED = r"\p{Han}\p{Hiragana}"
_TERM = rf"[{_UNSPACED}]|[\p{{L}}\p{{M}}\p{{N}}&&[^{_UNSPACED}]]+"
_CONSIDERED = 4
"""Words looked at for one that is shown, as some are forms of one another."""


def keywords(
    texts: Sequence[str | None],
    labels: ArrayLike,
    *,
    most: int = 5,
    language: str | None = "english",
    without: Iterable[str] = (),
) -> list[tuple[str, ...]]:
    """For each group 0..max(labels) the words that set its texts apart, best first, as they are written.

    ``labels[i]`` is the group of ``texts[i]``, -1 for a text that belongs to none and only tells what is common. A
    word's worth is ``n * log(1 + mean / all)``: how many texts of the group hold it, how many of all, and how many
    words a group has on average (c-TF-IDF, Grootendorst 2022, counting texts where it counts words). Words of a single
    text come last; stop words of the language, bare numbers and the words ``without`` not at all. Of forms with the
    same stem the best stands for all.

    >>> keywords(["tabs or spaces", "the tabs", "ship on Friday", "Friday's ship", "on"], [0, 0, 1, 1, -1], most=2)
    [('tabs', 'spaces'), ('friday', 'ship')]
    """
    groups = np.asarray(labels)
    count = int(groups.max(initial=-1)) + 1
    found: list[tuple[str, ...]] = [() for _ in range(count)]
    if not count:
        return found
    held = (
        pl.LazyFrame({"group": groups.astype(np.int64), "word": pl.Series(texts, dtype=pl.String)})
        .with_row_index("text")
        .with_columns(pl.col("word").str.normalize("NFC").str.to_lowercase().str.extract_all(_TERM))
        .explode("word", empty_as_null=False)
        .filter(
            _telling({*STOP_WORDS.get(language or "", ()), *(word.lower() for word in without)})
        )
        .unique(["text", "word"])
        .group_by("group", "word")
        .agg(pl.len().cast(pl.Float64).alias("held"))
        .with_columns(pl.col("held").sum().over("word").alias("all"))
    )
    mean = pl.col("held").sum() / count
    best = (
        held.with_columns(
            ((pl.col("held") * (1 + mean / pl.col("all")).log()).round(9)).alias("worth")
        )
        .filter(pl.col("group") >= 0)
        .sort(pl.col("held") > 1, "worth", "word", descending=[True, True, False])
        .group_by("group", maintain_order=True)
        .agg(pl.col("word").head(_CONSIDERED * most))
        .collect()
    )
    for group, words in best.iter_rows():
        found[group] = _distinct(words, most, language)
    return found


def _telling(silent: set[str]) -> pl.Expr:
    """Whether a word says something: it has a letter, and is neither a letter alone nor ``silent``."""
    word = pl.col("word")
    alone = word.str.contains(rf"^[^{_UNSPACED}]$")
    return word.is_not_null() & word.str.contains(r"\p{L}") & ~alone & ~word.is_in(sorted(silent))


def _distinct(words: Sequence[str], most: int, language: str | None) -> tuple[str, ...]:
    """The first of each stem."""
    index = Words(language, stop_words=())
    index.append(words)
    by_stem: dict[tuple[int, ...], str] = {}
    for word in words:
        by_stem.setdefault(tuple(index.query(word).terms.tolist()), word)
    return tuple(by_stem.values())[:most]


_READ = 256
"""Sentences of a group among which a summary is chosen, the likest to its mean: each is compared with each."""

_TOPICS = 3
_EXCLAIMED = 5
"""Words from which an exclamation is taken for a statement: "See you!" and "That is so great!" are none."""

_LEAST_BODY = 0.5
"""Share of the budget that sentences have at least: a heading that takes more is left out."""

_WORDS = re.compile(r"\w+")
_ENDED = re.compile(r"[.!?\u2026\u3002\uff01\uff1f:;)\"'\u201d\u2019\]]$")
_QUESTION = re.compile(r"[?\uff1f][\"')\]\u201d\u2019]*$")
_EXCLAMATION = re.compile(r"[!\uff01][\"')\]\u201d\u2019]*$")


class Told(NamedTuple):
    """What one member says, who says it (None where all members have one speaker, or none), and when."""

    text: str
    speaker: str | None
    created: Micros


def worded(members: Sequence[Told], embedder: Embedder, most: int, *, language: str | None) -> str:
    """Return the text of a summary of ``members``, the oldest first, in at most ``most`` tokens.

    Parameters
    ----------
    members
        What the summary stands for.
    embedder
        Tells which sentences are central.
    most
        Tokens of the whole text.
    language
        The language of the lab's words, for the heading's stop words; None for words as they are written.
    """
    said = [
        Told(piece, one.speaker, one.created)
        for one in members
        for piece in sentences_and_lines(one.text)
    ]
    said = said or [Told(" ".join(one.text.split()), one.speaker, one.created) for one in members]
    said = [one for one in said if is_statement(one.text)] or said
    head = heading(members, language=language, said=[one.text for one in said]) or heading(
        members, language=language
    )
    if count_tokens(head) > most * _LEAST_BODY:
        head = ""
    room = most - count_tokens(f"{head} ") if head else most
    vectors = embedder.encode([one.text for one in said])
    if len(said) > _READ:
        mean = vectors.astype(np.int64).sum(axis=0)
        length = np.sqrt((vectors.astype(np.int64) ** 2).sum(axis=1))
        near = np.round((vectors @ mean) / np.maximum(length, 1.0), 6)
        nearest = np.sort(np.lexsort((np.arange(len(said)), -near))[:_READ])
        said, vectors = [said[place] for place in nearest.tolist()], vectors[nearest]
    costs = [
        _ended(one.text) if one.speaker is None else f"{one.speaker}: {_ended(one.text)}"
        for one in said
    ]
    places = chosen(costs, vectors, room)
    body = _joined([said[place] for place in places]) if places else shorten(costs[0], room)
    return f"{head} {body}" if head else body


def heading(
    members: Sequence[Told], *, language: str | None, said: Sequence[str] | None = None
) -> str:
    """Return what members are about, how many they are, and of which days; empty where no word is shared.

    ``said`` are the sentences from which the words come, unless given the whole texts.

    >>> told = [Told("The goat eats hay", None, 0), Told("Hay for the goat", None, 86_400_000_000)]
    >>> heading(told, language="english")
    'Goat, hay (2 notes, 1970-01-01 to 1970-01-02):'
    """
    texts = [one.text for one in members] if said is None else list(said)
    speakers = [
        word for name in {one.speaker for one in members if one.speaker} for word in name.split()
    ]
    found = keywords(texts, [0] * len(texts), most=2 * _TOPICS, language=language, without=speakers)
    held = [frozenset(_WORDS.findall(text.lower())) for text in texts]
    about = [
        word for word in (found[0] if found else ()) if sum(word in words for words in held) > 1
    ][:_TOPICS]
    if not about:
        return ""
    first, last = (from_micros(when).date().isoformat() for when in _ends(members))
    days = first if first == last else f"{first} to {last}"
    words = ", ".join(about)
    return f"{words[:1].upper()}{words[1:]} ({len(members):,} notes, {days}):"


def is_statement(sentence: str) -> bool:
    """Return whether a sentence is neither a question nor an exclamation of a few words.

    >>> [is_statement(text) for text in ("Does it rain?", "See you!", "It rains.")]
    [False, False, True]
    """
    if _QUESTION.search(sentence):
        return False
    return not _EXCLAMATION.search(sentence) or len(sentence.split()) >= _EXCLAIMED


def _ends(members: Sequence[Told]) -> tuple[Micros, Micros]:
    created = [one.created for one in members]
    return min(created), max(created)


def _ended(sentence: str) -> str:
    """A sentence with a full stop where nothing ends it, so that two do not run into one."""
    return sentence if _ENDED.search(sentence) else f"{sentence}."


def _joined(said: Sequence[Told]) -> str:
    """Sentences one after the other, each speaker named where another one spoke before."""
    parts: list[str] = []
    speaker: str | None = None
    for one in said:
        named = one.speaker is not None and one.speaker != speaker
        parts.append(f"{one.speaker}: {_ended(one.text)}" if named else _ended(one.text))
        speaker = one.speaker
    return " ".join(parts)


# What groups of memories are called: the words that set them apart, without what is nobody's business.


Ints = NDArray[np.int64]

_WORDS_OF_NAME = 3
_TRIED = 6
"""Words looked at for the few of a name, since some are said by one memory alone."""
_READ_OF_GROUP = 50
"""Members of a group whose texts are read."""


def words(state: State, rows: Ints, labels: Ints, count: int) -> list[tuple[str, ...]]:
    """A few words for each of the groups 0..count - 1: such as two memories or more that are not private say.

    A name is seen by whoever is led to a cluster, so it holds nothing that one memory alone, or a private one, says.
    """
    visibility = state.names["visibility"]
    shown = (labels >= 0) & (visibility.codes[rows] != visibility.code("private"))
    rows, labels = rows[shown], labels[shown]
    order = np.lexsort((rows, labels))
    first = np.flatnonzero(np.diff(labels[order], prepend=-1) != 0)
    sizes = np.diff(first, append=len(order))
    place = np.arange(len(order)) - np.repeat(first, sizes)
    # evenly spread over each group
    drawn = order[place % np.repeat(-(-sizes // _READ_OF_GROUP), sizes) == 0]
    texts = [text or "" for text in state.texts.to_list(rows[drawn])]
    groups = labels[drawn]
    # who speaks sets conversations apart, and says nothing of what they are about
    names = state.names["speaker"]
    public = np.unique(names.codes[visibility.codes != visibility.code("private")]).tolist()
    speakers = [word for code in public if code >= 0 for word in names.vocabulary[code].split()]
    found = keywords(texts, groups, most=_TRIED, language=state.words.language, without=speakers)
    found += [()] * (count - len(found))
    low: dict[int, list[str]] = {}
    for group, text in zip(groups.tolist(), texts, strict=True):
        low.setdefault(group, []).append(text.lower())
    return [
        tuple(
            [word for word in some if sum(word in text for text in low.get(group, ())) > 1][
                :_WORDS_OF_NAME
            ]
        )
        for group, some in enumerate(found)
    ]


def named_by(
    state: State, number: int, about: tuple[str, ...], fresh: Collection[str], creator: str
) -> str:
    """A name for the cluster ``number`` of a ``creator`` (or of everyone) that neither a node has nor is in ``fresh``.

    It holds a space, so that it cannot be taken for a word of a vocabulary.
    """
    name = f"about {', '.join(about)}" if about else f"number {number}"
    if screen(name).findings:  # of a text that an older gate let through
        name = f"number {number}"
    name += f" of {creator}" if creator else ""
    taken = name in fresh or int(state.nodes.find("cluster", [name])[0]) >= 0
    return f"{name} ({number})" if taken else name
