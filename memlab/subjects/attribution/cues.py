"""What joins an answer to each memory that was shown for it: the inputs of the policy ``credit``.

Every text is read to a fixed length, so the time taken is bounded whatever it holds, and nothing of it is executed or
believed: that an answer says "memory 3 was useful" is the same cue as any other mention of that number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.base.clock import DAY, Micros
from memlab.kernel.embedding import Embedder, load_embedder
from memlab.kernel.english import NUMBER_WORDS, holds, padded, phrases, vocabulary, words_of
from memlab.kernel.index import Words, idf
from memlab.subjects.attribution.dates import Days, days_named, shared_days
from memlab.subjects.reading.claims import Statement
from memlab.subjects.reading.utterances import utterance

__all__ = ["LONGEST", "MOST_CITED", "Answer", "Shown", "cues"]

Floats = NDArray[np.float64]

LONGEST = 20_000
"""Characters of an answer, of a memory and of whatever else is read; the rest is as if it were not there."""

MOST_CITED = 5
"""Memories that one answer credits by their ids alone. An answer that names more names none of them in particular."""

_LEAST_QUOTED = 4
"""Words: three in a row are shared by chance ("one of the")."""

_MEANING = 0.7
"""What a word of like meaning counts beside the word itself."""

_WORDS_COMPARED = 400
"""Different words of one text that are compared by meaning."""

_LED = ("words", "alike", "near", "asked", "evidence")
"""Cues that have a lead, too: how far a memory stands above the best of the others."""

_NUMBERS = {
    word: number for word, number in NUMBER_WORDS.items() if number <= 12 and word != "dozen"
}
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)(?<!\w)[A-Z][\w&'-]*", re.MULTILINE)
_BY_WORD = re.compile(
    r"\bmemor(?:y|ies)\s+(#?\d{1,12}(?:\s*(?:,|and|&|or)\s*#?\d{1,12})*)", re.IGNORECASE
)
_BY_SIGN = re.compile(r"\[\s*#?(\d{1,12}(?:\s*[,;]\s*#?\d{1,12})*)\s*\]|(?<![\w#])#(\d{1,12})\b")
_OTHER_NUMBERS = re.compile(
    r"(?:issues?|pr|prs|pull requests?|tickets?|bugs?|tasks?|steps?|items?|no|number)\s*\Z", re.I
)
_POLITE = re.compile(r"\b(?:can|could|would|will|do|please)\s+you\b")
_PERSONS = ("user", "assistant")
_FIRST = frozenset(("i", "my", "me", "mine", "i'm", "i've", "i'd", "we", "our"))
_EPOCH = date(1970, 1, 1).toordinal()
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Shown:
    """One memory as a recall showed it; ``before`` is the text just before it in its session."""

    id: int
    text: str
    speaker: str | None
    created: Micros
    before: str
    vector: NDArray[np.int8]


@dataclass(frozen=True)
class Answer:
    """What came of a recall: the question, the answer, what tools were called with, and what the user said next."""

    question: str
    text: str
    at: Micros
    arguments: str = ""
    reply: str = ""

    @property
    def cut(self) -> bool:
        """Whether some of it is too long to be read."""
        return max(map(len, (self.question, self.text, self.arguments, self.reply))) > LONGEST


def cues(
    answer: Answer, shown: Sequence[Shown], words: Words, embedder: Embedder
) -> dict[str, Floats]:
    """f64[shown] by the names of the inputs of the slot ``credit``, flags as 0 and 1.

    ``words`` says how rare a word is, and ``embedder`` is the one of the vectors.
    """
    if not shown:
        return {}
    read = _Read(answer, shown, words, embedder)
    covers, asked, same_date, alike = (
        read.share(read.fresh),
        read.asked(),
        read.dates(),
        read.alike(read.fresh_words),
    )
    answering = np.maximum(np.maximum(covers, same_date), _MEANING * alike)
    found = {
        "covers": covers,
        "alone": read.share(read.fresh, alone=True),
        "words": read.words_held(read.fresh),
        "rarest": read.rarest(),
        "quoted": read.quoted(),
        "names": read.count(read.names),
        "numbers": read.count(frozenset(term for term in read.fresh if term.isdecimal())),
        "same-date": same_date,
        "said-then": read.said_then(),
        "alike": alike,
        "near": read.near(),
        "asked": asked,
        "asked-words": read.words_held(read.asked_terms - read.speakers),
        "evidence": np.maximum(asked, read.alike(read.question_words)) * answering,
        "in-arguments": read.share(read.called),
        "is-question": read.flags(["?" in one.text for one in shown]),
        "of-another": read.of_another(),
        "length": np.array([len(terms) for terms in read.terms], dtype=np.float64),
        "restates": read.everywhere(read.restated()),
        "explained": read.everywhere(read.explained()),
        "abstains": read.everywhere(
            holds(padded(words_of(read.answer)), phrases("answer", "abstains"))
        ),
        "corrected": read.everywhere("corrects" in utterance(read.reply).fired)
        if read.reply
        else np.zeros(len(shown)),
        "denied": read.denied(),
        **read.cited(),
    }
    return found | {f"{name}-lead": _lead(found[name]) for name in _LED}


def _lead(values: Floats) -> Floats:
    """How far each stands above the best of the others: what is shared with all tells nothing of one."""
    if len(values) < 2:
        return values.copy()
    best = int(np.argmax(values))
    lead: Floats = values - values[best]
    lead[best] = values[best] - np.delete(values, best).max()
    return lead


class _Read:
    """An answer and what was shown, as words. ``fresh`` are words of the answer that the question did not hold."""

    def __init__(
        self, answer: Answer, shown: Sequence[Shown], words: Words, embedder: Embedder
    ) -> None:
        self.question, self.answer, self.arguments, self.reply = (
            text[:LONGEST]
            for text in (answer.question, answer.text, answer.arguments, answer.reply)
        )
        self.at, self.shown, self.words, self.embedder = answer.at, shown, words, embedder
        self.texts = [one.text[:LONGEST] for one in shown]
        self.speakers = frozenset(term for one in shown for term in self._terms(one.speaker or ""))
        self.terms = [frozenset(self._terms(text)) for text in self.texts]
        self.asked_terms = frozenset(self._terms(self.question))
        known = (
            self.asked_terms
            | self.speakers
            | frozenset(self._terms(" ".join(vocabulary("answer", "plain"))))
        )
        self.said = tuple(dict.fromkeys(self._terms(self.answer)))
        self.fresh = frozenset(self.said) - known
        self.called = frozenset(self._terms(self.arguments)) - known
        self.names = frozenset(self._terms(" ".join(_NAME.findall(self.answer)))) & self.fresh
        self.question_words = self._content(self.question, left_out=self.speakers)
        self.fresh_words = self._content(self.answer, left_out=known)
        self.rarity = self._rarity()

    # -- words ------------------------------------------------------------------------------------------------

    def _terms(self, text: str) -> list[str]:
        """Stems without stop words and single letters; a number in words is the number in digits."""
        stems = (str(_NUMBERS.get(stem, stem)) for stem in self.words.stems(text))
        return [stem for stem in stems if len(stem) > 1 or stem.isdecimal()]

    def _content(self, text: str, *, left_out: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Its different words as they are written, those of ``left_out`` stems not."""
        kept = [word for word in dict.fromkeys(words_of(text)) if set(self._terms(word)) - left_out]
        return tuple(kept[:_WORDS_COMPARED])

    def _rarity(self) -> dict[str, float]:
        """The inverse document frequency of each word of the question, the answer and the arguments."""
        query = self.words.query(" ".join((self.question, self.answer, self.arguments)))
        known = idf(np.asarray(self.words.hits(query).frequency, dtype=np.int64), len(self.words))
        self._rarest = float(idf(np.zeros(1, dtype=np.int64), len(self.words))[0])
        stems = self.words.vocabulary
        terms = [stems[term] for term in query.terms.tolist()]
        return {
            str(_NUMBERS.get(term, term)): float(value)
            for term, value in zip(terms, known, strict=True)
        }

    def weight(self, term: str) -> float:
        return self.rarity.get(term, self._rarest)

    def mass(self, terms: frozenset[str]) -> float:
        return sum(map(self.weight, sorted(terms)))

    # -- the answer and each memory ---------------------------------------------------------------------------

    def flags(self, values: Sequence[bool]) -> Floats:
        return np.array(values, dtype=np.float64)

    def everywhere(self, value: float | bool) -> Floats:
        return np.full(len(self.shown), float(value))

    @cached_property
    def holders(self) -> Counter[str]:
        """How many of the memories hold each word."""
        return Counter(term for terms in self.terms for term in terms)

    def share(self, wanted: frozenset[str], *, alone: bool = False) -> Floats:
        """The share of these words, by rarity, that each memory holds; ``alone`` divides it among their holders."""
        whole = self.mass(wanted)
        found = [
            sum(
                self.weight(term) / (self.holders[term] if alone else 1)
                for term in sorted(wanted & terms)
            )
            for terms in self.terms
        ]
        return np.array(found) / whole if whole else np.zeros(len(self.shown))

    def rarest(self) -> Floats:
        """Of the rarest word that answer and memory share, as a share of what a word has that no memory holds."""
        found = [max(map(self.weight, self.fresh & terms), default=0.0) for terms in self.terms]
        return np.array(found) / self._rarest

    def words_held(self, wanted: frozenset[str]) -> Floats:
        """How many of these words each memory holds, a word that no other memory of the lab holds counting 1."""
        return np.array([self.mass(wanted & terms) for terms in self.terms]) / self._rarest

    def count(self, wanted: frozenset[str]) -> Floats:
        return np.array([len(wanted & terms) for terms in self.terms], dtype=np.float64)

    def asked(self) -> Floats:
        """The share of the question's words in the memory and the one just before it: a reply leaves them unsaid."""
        wanted = self.asked_terms - self.speakers
        whole = self.mass(wanted)
        both = [
            terms | frozenset(self._terms(one.before[:LONGEST]))
            for terms, one in zip(self.terms, self.shown, strict=True)
        ]
        return (
            np.array([self.mass(wanted & terms) for terms in both]) / whole
            if whole
            else np.zeros(len(both))
        )

    @cached_property
    def named(self) -> tuple[Days, ...]:
        """The days that the answer names."""
        return days_named(self.answer, self.at)

    def dates(self) -> Floats:
        """How nearly the answer names a day or span that the memory names, each as of when it was said."""
        if not self.named:
            return np.zeros(len(self.shown))
        named = [
            days_named(text, one.created) for text, one in zip(self.texts, self.shown, strict=True)
        ]
        return np.array([shared_days(self.named, days) for days in named])

    def said_then(self) -> Floats:
        """Whether the answer names the day on which it was said, or a span around that day."""
        days = [one.created // DAY + _EPOCH for one in self.shown]
        return self.flags(
            [any(first <= day < after for first, after in self.named) for day in days]
        )

    def of_another(self) -> Floats:
        """Whether the question is about somebody who speaks, but did not say this: by name, or as "I" or "you" where
        a user and an assistant speak.
        """
        named = self.asked_terms & self.speakers or self._persons()
        return self.flags(
            [bool(named) and not named & set(self._terms(one.speaker or "")) for one in self.shown]
        )

    def _persons(self) -> frozenset[str]:
        """Whom "I" and "you" stand for, where they stand for one of those who speak."""
        who = frozenset(_PERSONS) & {(one.speaker or "").lower() for one in self.shown}
        said = set(words_of(_POLITE.sub(" ", self.question.lower())))
        meant = (
            "assistant" if "you" in said or "your" in said else "user" if said & _FIRST else None
        )
        return frozenset(self._terms(meant)) if meant in who else frozenset()

    def restated(self) -> float:
        """The share of the answer's words that the question held."""
        said = frozenset(self.said)
        whole = self.mass(said)
        return self.mass(said & self.asked_terms) / whole if whole else 0.0

    def explained(self) -> float:
        """The share of the answer's new words that any memory holds."""
        whole = self.mass(self.fresh)
        return self.mass(self.fresh & frozenset(self.holders)) / whole if whole else 0.0

    def quoted(self) -> Floats:
        """Words in the longest run that answer and memory share, where neither the question nor another memory holds
        it; 0 for a short one.
        """
        said, question = words_of(self.answer), padded(words_of(self.question))
        texts = [padded(words_of(text)) for text in self.texts]
        found = np.zeros(len(texts))
        for place, text in enumerate(texts):
            length, end = _longest_run(said, text.split())
            run = padded(said[end - length : end])
            if (
                length >= _LEAST_QUOTED
                and run not in question
                and sum(run in other for other in texts) == 1
            ):
                found[place] = length
        return found

    def denied(self) -> Floats:
        """Whether what the user says next denies what the memory says, in words both use."""
        said = Statement(self.reply)
        if not self.reply or not said.denied:
            return np.zeros(len(self.shown))
        return self.flags([said.denies(Statement(text)) for text in self.texts])

    def cited(self) -> dict[str, Floats]:
        """``cited``: the answer names its id, and at most MOST_CITED of those that were shown; ``listed``: more."""
        ids = _ids_in(self.answer, ranks=len(self.shown)) - set().union(
            *(_ids_in(text, ranks=len(self.shown)) for text in self.texts)
        )
        named = self.flags([one.id in ids for one in self.shown])
        many = float(named.sum() > MOST_CITED)
        return {"cited": named * (1 - many), "listed": named * many}

    # -- by meaning -------------------------------------------------------------------------------------------

    def alike(self, words: tuple[str, ...]) -> Floats:
        """How near, by rarity, the words have their nearest word in each memory, 0-1."""
        if not words:
            return np.zeros(len(self.shown))
        wanted = _vectors(words)
        weights = np.array(
            [max(map(self.weight, self._terms(word)), default=0.0) for word in words]
        )
        found = np.zeros(len(self.shown))
        for place, text in enumerate(self.texts):
            held = self._content(text)
            if held and weights.sum():
                nearest = (wanted @ _vectors(held).T).max(axis=1).clip(0, 1)
                found[place] = nearest @ weights / weights.sum()
        return found

    def near(self) -> Floats:
        """Cosine of the question and the answer together with the memory."""
        both = _unit(self.embedder.encode([f"{self.question} {self.answer}"]))[0]
        return np.asarray(
            _unit(np.stack([one.vector for one in self.shown])) @ both, dtype=np.float64
        )


def _longest_run(one: list[str], other: list[str]) -> tuple[int, int]:
    """The length of the longest run of words that both hold, and where in the first it ends."""
    numbers: dict[str, int] = {}
    codes = np.array([numbers.setdefault(word, len(numbers)) for word in other], dtype=np.int64)
    run, best = np.zeros(len(other) + 1, dtype=np.int64), (0, 0)
    for place, word in enumerate(one, 1):
        code = numbers.get(word, -1)
        if code < 0:
            run[:] = 0
            continue
        run[1:] = np.where(codes == code, run[:-1] + 1, 0)
        longest = int(run.max())
        if longest > best[0]:
            best = longest, place
    return best


def _ids_in(text: str, *, ranks: int) -> set[int]:
    """The ids that a text names as ids: "memory 12", "[12]", "#12". A small number in brackets may be a rank, and the
    number of an issue or a step is no memory's.
    """
    found = {int(digits) for said in _BY_WORD.findall(text) for digits in _DIGITS.findall(said)}
    for match in _BY_SIGN.finditer(text):
        if not _OTHER_NUMBERS.search(text[max(0, match.start() - 16) : match.start()]):
            found.update(
                number for digits in _DIGITS.findall(match[0]) if (number := int(digits)) > ranks
            )
    return found


def _vectors(words: Sequence[str]) -> Floats:
    """f64[words, dim], of length 1, by the shipped model: a word by itself needs no other."""
    if len(_kept) > _MOST_KEPT:
        _kept.clear()
    fresh = [word for word in words if word not in _kept]
    if fresh:
        _kept.update(zip(fresh, _unit(load_embedder().encode(fresh)), strict=True))
    return np.stack([_kept[word] for word in words])


_kept: dict[str, Floats] = {}
_MOST_KEPT = 20_000


def _unit(vectors: NDArray[np.int8]) -> Floats:
    floats = vectors.astype(np.float64)
    return np.asarray(floats / np.maximum(np.linalg.norm(floats, axis=1, keepdims=True), 1e-9))
