"""The text of a summary: a heading of its own, then the sentences of its members that stand for the others.

The heading says what the members are about, how many they are and of which days. A question states nothing and a bare
exclamation says nothing, so neither is quoted while there is anything else. Who said a sentence is told where several
people speak.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from memlab.kernel.base.clock import Micros, from_micros
from memlab.kernel.embedding import Embedder
from memlab.subjects.clusters.extracting import chosen
from memlab.subjects.clusters.keywords import keywords
from memlab.subjects.reading.sentences import count_tokens, sentences_and_lines, shorten

__all__ = ["Told", "heading", "is_statement", "worded"]

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
    said = [Told(piece, one.speaker, one.created) for one in members for piece in sentences_and_lines(one.text)]
    said = said or [Told(" ".join(one.text.split()), one.speaker, one.created) for one in members]
    said = [one for one in said if is_statement(one.text)] or said
    head = heading(members, language=language, said=[one.text for one in said]) or heading(members, language=language)
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
    costs = [_ended(one.text) if one.speaker is None else f"{one.speaker}: {_ended(one.text)}" for one in said]
    places = chosen(costs, vectors, room)
    body = _joined([said[place] for place in places]) if places else shorten(costs[0], room)
    return f"{head} {body}" if head else body


def heading(members: Sequence[Told], *, language: str | None, said: Sequence[str] | None = None) -> str:
    """Return what members are about, how many they are, and of which days; empty where no word is shared.

    ``said`` are the sentences from which the words come, unless given the whole texts.

    >>> told = [Told("The goat eats hay", None, 0), Told("Hay for the goat", None, 86_400_000_000)]
    >>> heading(told, language="english")
    'Goat, hay (2 notes, 1970-01-01 to 1970-01-02):'
    """
    texts = [one.text for one in members] if said is None else list(said)
    speakers = [word for name in {one.speaker for one in members if one.speaker} for word in name.split()]
    found = keywords(texts, [0] * len(texts), most=2 * _TOPICS, language=language, without=speakers)
    held = [frozenset(_WORDS.findall(text.lower())) for text in texts]
    about = [word for word in (found[0] if found else ()) if sum(word in words for words in held) > 1][:_TOPICS]
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
