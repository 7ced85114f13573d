"""Cues that relate an answer to each memory: inputs of the policy ``credit``.

Texts are read up to a maximum length, so the duration is bounded. Nothing in the texts is executed
or believed: "memory 3 was useful" is the same cue as any other mention of that number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np

from memlab.kernel.base.arrays import Components, Floats
from memlab.kernel.base.clock import DAY, Micros
from memlab.kernel.embedding import Embedder, load_embedder
from memlab.kernel.english import NUMBER_WORDS, holds, padded, phrases, vocabulary, words_of
from memlab.kernel.index import Words, idf
from memlab.subjects.attribution.dates import Days, compute_overlap, find_days
from memlab.subjects.reading.claims import Statement
from memlab.subjects.reading.utterances import utterance

MAX_LENGTH = 20_000
"""The maximum characters that are read of an answer, a memory or another text."""

MAX_CITED = 5
"""The maximum memories that one answer can credit by id alone.

An answer with more ids singles out none of the memories.
"""

_MIN_QUOTED = 4
"""The minimum words of a quote.

Three words in a row are often shared by accident ("one of the").
"""

_MEANING = 0.7
"""The weight of a word of similar meaning, relative to an equal word."""

_WORDS_COMPARED = 400
"""The maximum distinct words of one text that are compared by meaning."""

_LED = ("words", "alike", "near", "asked", "evidence")
"""The cues that also have a lead: the difference between a memory and the best other memory."""

# Number words, and patterns of names within a sentence, of ids of memories in words and in brackets, of numbers of
# other things than memories, and of polite requests. Then words for the person who speaks or is addressed.
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
class RetrievedMemory:
    """One retrieved memory; ``before`` is the previous text of its session."""

    id: int
    text: str
    speaker: str | None
    created: Micros
    before: str
    vector: Components


@dataclass(frozen=True)
class Answer:
    """An answer with its query, the arguments of tools, and the user's reply."""

    question: str
    text: str
    at: Micros
    arguments: str = ""
    reply: str = ""

    @property
    def cut(self) -> bool:
        """Whether the query, answer, arguments or reply is longer than ``MAX_LENGTH``."""
        return max(map(len, (self.question, self.text, self.arguments, self.reply))) > MAX_LENGTH


def compute_cues(
    answer: Answer, memories: Sequence[RetrievedMemory], words: Words, embedder: Embedder
) -> dict[str, Floats]:
    """Return the inputs of the slot ``credit`` by name, as f64[memories].

    ``words`` gives the rarity of words, and ``embedder`` encodes query and answer.
    """
    # Cues that other cues depend on are computed first.
    if not memories:
        return {}
    reader = _CueReader(answer, memories, words, embedder)
    covers, share_asked, same_date, match_meaning = (
        reader.share(reader.fresh),
        reader.share_asked(),
        reader.match_dates(),
        reader.match_meaning(reader.fresh_words),
    )
    answering = np.maximum(np.maximum(covers, same_date), _MEANING * match_meaning)
    result = {
        "covers": covers,
        "alone": reader.share(reader.fresh, alone=True),
        "words": reader.count_rare(reader.fresh),
        "rarest": reader.rarest_shared(),
        "quoted": reader.count_quoted(),
        "names": reader.count_terms(reader.names),
        "numbers": reader.count_terms(frozenset(term for term in reader.fresh if term.isdecimal())),
        "same-date": same_date,
        "said-then": reader.is_said_then(),
        "alike": match_meaning,
        "near": reader.match_vector(),
        "asked": share_asked,
        "asked-words": reader.count_rare(reader.asked_terms - reader.speakers),
        "evidence": np.maximum(share_asked, reader.match_meaning(reader.question_words))
        * answering,
        "in-arguments": reader.share(reader.called),
        "is-question": reader.to_flags(["?" in memory.text for memory in memories]),
        "of-another": reader.is_about_another(),
        "length": np.array([len(terms) for terms in reader.terms], dtype=np.float64),
        "restates": reader.fill(reader.share_restated()),
        "explained": reader.fill(reader.share_explained()),
        "abstains": reader.fill(
            holds(padded(words_of(reader.answer)), phrases("answer", "abstains"))
        ),
        "corrected": reader.fill("corrects" in utterance(reader.reply).fired)
        if reader.reply
        else np.zeros(len(memories)),
        "denied": reader.is_denied(),
        **reader.find_cited(),
    }
    return result | {f"{name}-lead": _compute_lead(result[name]) for name in _LED}


def _compute_lead(values: Floats) -> Floats:
    """Return the difference between each memory's value and the largest value of the others.

    A single memory keeps its value.
    """
    if len(values) < 2:
        return values.copy()
    best = int(np.argmax(values))
    lead: Floats = values - values[best]
    lead[best] = values[best] - np.delete(values, best).max()
    return lead


class _CueReader:
    """An answer and the retrieved memories as sets of words.

    ``fresh`` are the words of the answer that are not in the query, not names of speakers, and not
    common.
    """

    def __init__(
        self, answer: Answer, memories: Sequence[RetrievedMemory], words: Words, embedder: Embedder
    ) -> None:
        self.question, self.answer, self.arguments, self.reply = (
            text[:MAX_LENGTH]
            for text in (answer.question, answer.text, answer.arguments, answer.reply)
        )
        self.at, self.shown, self.words, self.embedder = answer.at, memories, words, embedder
        self.texts = [memory.text[:MAX_LENGTH] for memory in memories]
        self.speakers = frozenset(
            term for memory in memories for term in self._terms(memory.speaker or "")
        )
        self.terms = [frozenset(self._terms(text)) for text in self.texts]
        self.asked_terms = frozenset(self._terms(self.question))
        expected = (
            self.asked_terms
            | self.speakers
            | frozenset(self._terms(" ".join(vocabulary("answer", "plain"))))
        )
        self.answer_terms = tuple(dict.fromkeys(self._terms(self.answer)))
        self.fresh = frozenset(self.answer_terms) - expected
        self.called = frozenset(self._terms(self.arguments)) - expected
        self.names = frozenset(self._terms(" ".join(_NAME.findall(self.answer)))) & self.fresh
        self.question_words = self._content(self.question, left_out=self.speakers)
        self.fresh_words = self._content(self.answer, left_out=expected)
        self.rarity = self._rarity()

    # -- words ------------------------------------------------------------------------------------------------

    def _terms(self, text: str) -> list[str]:
        """Return the stems of a text without stop words and single letters, with number words as digits."""
        stems = (str(_NUMBERS.get(stem, stem)) for stem in self.words.stems(text))
        return [stem for stem in stems if len(stem) > 1 or stem.isdecimal()]

    def _content(self, text: str, *, left_out: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Return the first ``_WORDS_COMPARED`` distinct words of a text, without stop words and words of left-out stems.

        A word is left out if all its stems are in `left_out`.
        """
        content = [
            word for word in dict.fromkeys(words_of(text)) if set(self._terms(word)) - left_out
        ]
        return tuple(content[:_WORDS_COMPARED])

    def _rarity(self) -> dict[str, float]:
        """Return the inverse document frequency of each stem that is in the pool and in query, answer or arguments."""
        query = self.words.query(" ".join((self.question, self.answer, self.arguments)))
        frequencies = idf(
            np.asarray(self.words.hits(query).frequency, dtype=np.int64), len(self.words)
        )
        self._rarest = float(idf(np.zeros(1, dtype=np.int64), len(self.words))[0])
        stems = self.words.vocabulary
        terms = [stems[term] for term in query.terms.tolist()]
        return {
            str(_NUMBERS.get(term, term)): float(value)
            for term, value in zip(terms, frequencies, strict=True)
        }

    def weight(self, term: str) -> float:
        """Return the inverse document frequency of a word."""
        return self.rarity.get(term, self._rarest)

    def mass(self, terms: frozenset[str]) -> float:
        """Return the sum of the inverse document frequencies of the terms."""
        return sum(map(self.weight, sorted(terms)))

    # -- the answer and each memory ---------------------------------------------------------------------------

    def to_flags(self, values: Sequence[bool]) -> Floats:
        """Return booleans as the floats 0 and 1."""
        return np.array(values, dtype=np.float64)

    def fill(self, value: float | bool) -> Floats:
        """Return an array that has the same value for every memory."""
        return np.full(len(self.shown), float(value))

    @cached_property
    def holders(self) -> Counter[str]:
        """The number of retrieved memories that contain each word."""
        return Counter(term for terms in self.terms for term in terms)

    def share(self, terms: frozenset[str], *, alone: bool = False) -> Floats:
        """Return the share of ``terms`` that each memory contains, weighted by rarity.

        ``alone`` divides each word among the memories that contain it.
        """
        whole = self.mass(terms)
        masses = [
            sum(
                self.weight(term) / (self.holders[term] if alone else 1)
                for term in sorted(terms & memory_terms)
            )
            for memory_terms in self.terms
        ]
        return np.array(masses) / whole if whole else np.zeros(len(self.shown))

    def rarest_shared(self) -> Floats:
        """Return the rarity, 0 to 1, of the rarest new word of the answer in each memory."""
        weights = [max(map(self.weight, self.fresh & terms), default=0.0) for terms in self.terms]
        return np.array(weights) / self._rarest

    def count_rare(self, terms: frozenset[str]) -> Floats:
        """Return the number of ``terms`` in each memory, weighted by their rarity.

        A word that occurs in no memory of the lab would count as 1, and other words count less.
        """
        return (
            np.array([self.mass(terms & memory_terms) for memory_terms in self.terms])
            / self._rarest
        )

    def count_terms(self, terms: frozenset[str]) -> Floats:
        """Return the number of ``terms`` that each memory contains."""
        return np.array(
            [len(terms & memory_terms) for memory_terms in self.terms], dtype=np.float64
        )

    def share_asked(self) -> Floats:
        """Return the share of the query's words that a memory or the preceding message has.

        The message before counts, because a reply often leaves out the words of the query.
        """
        query_terms = self.asked_terms - self.speakers
        whole = self.mass(query_terms)
        combined = [
            terms | frozenset(self._terms(memory.before[:MAX_LENGTH]))
            for terms, memory in zip(self.terms, self.shown, strict=True)
        ]
        return (
            np.array([self.mass(query_terms & terms) for terms in combined]) / whole
            if whole
            else np.zeros(len(combined))
        )

    @cached_property
    def named_days(self) -> tuple[Days, ...]:
        """The days and date ranges that occur in the answer."""
        return find_days(self.answer, self.at)

    def match_dates(self) -> Floats:
        """Return how well the dates in the answer match the dates in each memory, 0 to 1.

        Dates such as "yesterday" are relative to the time of their text.
        """
        if not self.named_days:
            return np.zeros(len(self.shown))
        days_by_memory = [
            find_days(text, memory.created)
            for text, memory in zip(self.texts, self.shown, strict=True)
        ]
        return np.array([compute_overlap(self.named_days, days) for days in days_by_memory])

    def is_said_then(self) -> Floats:
        """Return whether a date in the answer contains the day on which each memory was created."""
        days = [memory.created // DAY + _EPOCH for memory in self.shown]
        return self.to_flags(
            [any(first <= day < after for first, after in self.named_days) for day in days]
        )

    def is_about_another(self) -> Floats:
        """Return whether the query is about a speaker other than the speaker of each memory.

        The query names the speaker, or contains "I" or "you" between a user and an assistant.
        """
        persons = self.asked_terms & self.speakers or self._find_person()
        return self.to_flags(
            [
                bool(persons) and not persons & set(self._terms(memory.speaker or ""))
                for memory in self.shown
            ]
        )

    def _find_person(self) -> frozenset[str]:
        """Return the terms of the speaker that "I" or "you" in the query means.

        The result is empty unless this person is one of the speakers.
        """
        speakers = frozenset(_PERSONS) & {(memory.speaker or "").lower() for memory in self.shown}
        query_words = set(words_of(_POLITE.sub(" ", self.question.lower())))
        person = (
            "assistant"
            if "you" in query_words or "your" in query_words
            else "user"
            if query_words & _FIRST
            else None
        )
        return frozenset(self._terms(person)) if person in speakers else frozenset()

    def share_restated(self) -> float:
        """Return the share of the answer's words that occur in the query, weighted by rarity."""
        answer_terms = frozenset(self.answer_terms)
        whole = self.mass(answer_terms)
        return self.mass(answer_terms & self.asked_terms) / whole if whole else 0.0

    def share_explained(self) -> float:
        """Return the share of the answer's new words that occur in a memory, weighted by rarity."""
        whole = self.mass(self.fresh)
        return self.mass(self.fresh & frozenset(self.holders)) / whole if whole else 0.0

    def count_quoted(self) -> Floats:
        """Return the number of words in the longest quote from each memory, 0 for a short quote.

        A run that the query or another memory contains does not count.
        """
        answer_words, question = words_of(self.answer), padded(words_of(self.question))
        texts = [padded(words_of(text)) for text in self.texts]
        lengths = np.zeros(len(texts))
        for index, text in enumerate(texts):
            length, end = _longest_run(answer_words, text.split())
            run = padded(answer_words[end - length : end])
            if (
                length >= _MIN_QUOTED
                and run not in question
                and sum(run in other for other in texts) == 1
            ):
                lengths[index] = length
        return lengths

    def is_denied(self) -> Floats:
        """Return whether the user's reply denies a word of each memory."""
        reply = Statement(self.reply)
        if not self.reply or not reply.denied:
            return np.zeros(len(self.shown))
        return self.to_flags([reply.denies(Statement(text)) for text in self.texts])

    def find_cited(self) -> dict[str, Floats]:
        """Return the cues ``cited`` and ``listed``, for answers that name memories by id.

        ``listed`` replaces ``cited`` if the answer names more than ``MAX_CITED`` of the memories.
        """
        ids = _find_ids(self.answer, ranks=len(self.shown)) - set().union(
            *(_find_ids(text, ranks=len(self.shown)) for text in self.texts)
        )
        is_named = self.to_flags([memory.id in ids for memory in self.shown])
        many = float(is_named.sum() > MAX_CITED)
        return {"cited": is_named * (1 - many), "listed": is_named * many}

    # -- by meaning -------------------------------------------------------------------------------------------

    def match_meaning(self, words: tuple[str, ...]) -> Floats:
        """Return the mean similarity of the answer's words to their nearest word in each memory."""
        if not words:
            return np.zeros(len(self.shown))
        vectors = _encode_words(words)
        weights = np.array(
            [max(map(self.weight, self._terms(word)), default=0.0) for word in words]
        )
        values = np.zeros(len(self.shown))
        for index, text in enumerate(self.texts):
            memory_words = self._content(text)
            if memory_words and weights.sum():
                nearest = (vectors @ _encode_words(memory_words).T).max(axis=1).clip(0, 1)
                values[index] = nearest @ weights / weights.sum()
        return values

    def match_vector(self) -> Floats:
        """Return each memory's cosine similarity to the combined query and answer."""
        query_vector = _normalize(self.embedder.encode([f"{self.question} {self.answer}"]))[0]
        return np.asarray(
            _normalize(np.stack([memory.vector for memory in self.shown])) @ query_vector,
            dtype=np.float64,
        )


def _longest_run(words: list[str], other_words: list[str]) -> tuple[int, int]:
    """Return the length of the longest common run of words, and its exclusive end in ``words``; zeros for none."""
    numbers: dict[str, int] = {}
    codes = np.array(
        [numbers.setdefault(word, len(numbers)) for word in other_words], dtype=np.int64
    )
    run, best = np.zeros(len(other_words) + 1, dtype=np.int64), (0, 0)
    for position, word in enumerate(words, 1):
        code = numbers.get(word, -1)
        if code < 0:
            run[:] = 0
            continue
        run[1:] = np.where(codes == code, run[:-1] + 1, 0)
        longest = int(run.max())
        if longest > best[0]:
            best = longest, position
    return best


def _find_ids(text: str, *, ranks: int) -> set[int]:
    """Return the ids of memories that a text cites as "memory 12", "[12]" or "#12".

    Numbers up to `ranks` in "[12]" or "#12" may be ranks and are ignored, as are numbers of issues or steps.
    """
    ids = {
        int(digits)
        for answer_terms in _BY_WORD.findall(text)
        for digits in _DIGITS.findall(answer_terms)
    }
    for match in _BY_SIGN.finditer(text):
        if not _OTHER_NUMBERS.search(text[max(0, match.start() - 16) : match.start()]):
            ids.update(
                number for digits in _DIGITS.findall(match[0]) if (number := int(digits)) > ranks
            )
    return ids


def _encode_words(words: Sequence[str]) -> Floats:
    """Return unit vectors of words by the shipped embedder, f64[words, dim]."""
    if len(_vector_cache) > _MAX_CACHED:
        _vector_cache.clear()
    missing = [word for word in words if word not in _vector_cache]
    if missing:
        _vector_cache.update(zip(missing, _normalize(load_embedder().encode(missing)), strict=True))
    return np.stack([_vector_cache[word] for word in words])


# Vectors of words are cached, because the answers of one log share most of their words.
_vector_cache: dict[str, Floats] = {}
_MAX_CACHED = 20_000  # The vectors take about 40 MB.


def _normalize(vectors: Components) -> Floats:
    """Return vectors scaled to length 1."""
    floats = vectors.astype(np.float64)
    return np.asarray(floats / np.maximum(np.linalg.norm(floats, axis=1, keepdims=True), 1e-9))
