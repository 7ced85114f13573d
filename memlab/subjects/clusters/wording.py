"""Texts of summaries, and names of clusters.

A summary has a heading and the most representative sentences of its members. The heading lists shared terms, the number
of members and the days on which they were stored. Questions and short exclamations are quoted only if there are no
other sentences. Speakers are named if there are several.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from memlab.kernel.base.arrays import Components, Ints
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

# Summaries are extractive. They quote representative sentences of the members, in order of time.
#
# No text is generated. Sentences are chosen greedily. Each step chooses the sentence that most increases the similarity
# of all sentences to their nearest chosen sentence (facility location, Lin and Bilmes, 2011). So each chosen sentence
# is central, and differs from those chosen before.


def choose_sentences(texts: Sequence[str], vectors: Components, budget: int) -> list[int]:
    """Return the positions of the most representative sentences that fit a budget.

    `vectors` (sentences, dim) are the embeddings of the sentences, and `budget` is a number of tokens. Positions
    ascend, and the list is empty if no sentence fits. Of equal sentences the earlier one is chosen, and a repeated text
    is chosen once.
    """
    costs = [len(text.encode()) + 1 for text in texts]  # including a space after the sentence
    matrix = vectors.astype(np.float64)
    matrix /= np.maximum(np.sqrt(np.einsum("ij,ij->i", matrix, matrix)), 1e-9)[:, None]
    similarity = np.round(matrix @ matrix.T, 9)  # the last bits of a product depend on the machine
    covered = np.full(len(texts), -1.0)
    chosen: list[int] = []
    quoted: set[str] = set()
    remaining = (
        budget * BYTES_A_TOKEN + 1
    )  # each cost includes a space, but no space follows the last sentence
    while True:
        gain = np.maximum(similarity - covered[:, None], 0.0).sum(axis=0)
        gain = np.round(gain, 6)
        fits = [
            cost <= remaining and text.casefold() not in quoted
            for cost, text in zip(costs, texts, strict=True)
        ]
        gain[~np.array(fits, dtype=np.bool_)] = -1.0
        best = int(np.argmax(gain)) if len(gain) else -1
        if best < 0 or gain[best] <= 0.0:
            return sorted(chosen)
        chosen.append(best)
        quoted.add(texts[best].casefold())
        remaining -= costs[best]
        covered = np.maximum(covered, similarity[:, best])


# Keywords are terms that distinguish groups of texts.


# In scripts without spaces, each character counts as a term.
_UNSPACED = r"\p{Han}\p{Hiragana}"
_TERM = rf"[{_UNSPACED}]|[\p{{L}}\p{{M}}\p{{N}}&&[^{_UNSPACED}]]+"
_CONSIDERED = 4
"""Number of candidate terms per returned term, because some candidates are inflections of one another."""


def keywords(
    texts: Sequence[str | None],
    labels: ArrayLike,
    *,
    max_terms: int = 5,
    language: str | None = "english",
    exclude: Iterable[str] = (),
) -> list[tuple[str, ...]]:
    """Return the terms that distinguish each group of texts, in descending order of score.

    ``labels[i]`` is the group of ``texts[i]``. Texts of the group -1 count only as background. The score of a term is
    ``n * log(1 + mean / all)``. ``n`` is the number of texts of the group with the term. ``all`` is the number of all
    texts with the term, and ``mean`` is the mean number of terms per group. This is c-TF-IDF (Grootendorst, 2022) over
    texts instead of occurrences. Terms of a single text come last. Stop words of the language, bare numbers and the
    terms in `exclude` are left out. Of terms with the same stem, only the best is returned.

    >>> texts = ["tabs or spaces", "the tabs", "ship on Friday", "Friday's ship", "on"]
    >>> keywords(texts, [0, 0, 1, 1, -1], max_terms=2)
    [('tabs', 'spaces'), ('friday', 'ship')]
    """
    groups = np.asarray(labels)
    count = int(groups.max(initial=-1)) + 1
    terms: list[tuple[str, ...]] = [() for _ in range(count)]
    if not count:
        return terms
    counts = (
        pl.LazyFrame({"group": groups.astype(np.int64), "word": pl.Series(texts, dtype=pl.String)})
        .with_row_index("text")
        .with_columns(pl.col("word").str.normalize("NFC").str.to_lowercase().str.extract_all(_TERM))
        .explode("word", empty_as_null=False)
        .filter(
            _is_informative(
                {*STOP_WORDS.get(language or "", ()), *(word.lower() for word in exclude)}
            )
        )
        .unique(["text", "word"])
        .group_by("group", "word")
        .agg(pl.len().cast(pl.Float64).alias("held"))
        .with_columns(pl.col("held").sum().over("word").alias("all"))
    )
    mean = pl.col("held").sum() / count
    best = (
        counts.with_columns(
            ((pl.col("held") * (1 + mean / pl.col("all")).log()).round(9)).alias("worth")
        )
        .filter(pl.col("group") >= 0)
        .sort(pl.col("held") > 1, "worth", "word", descending=[True, True, False])
        .group_by("group", maintain_order=True)
        .agg(pl.col("word").head(_CONSIDERED * max_terms))
        .collect()
    )
    for group, words in best.iter_rows():
        terms[group] = _drop_inflections(words, max_terms, language)
    return terms


def _is_informative(excluded: set[str]) -> pl.Expr:
    """Return a filter that drops excluded words, numbers and single letters."""
    word = pl.col("word")
    is_letter = word.str.contains(rf"^[^{_UNSPACED}]$")
    return (
        word.is_not_null()
        & word.str.contains(r"\p{L}")
        & ~is_letter
        & ~word.is_in(sorted(excluded))
    )


def _drop_inflections(
    words: Sequence[str], max_terms: int, language: str | None
) -> tuple[str, ...]:
    """Keep the first term of each stem, and at most `max_terms` terms."""
    index = Words(language, stop_words=())
    index.append(words)
    by_stem: dict[tuple[int, ...], str] = {}
    for word in words:
        by_stem.setdefault(tuple(index.query(word).terms.tolist()), word)
    return tuple(by_stem.values())[:max_terms]


_READ = 256
"""Maximum number of sentences that are compared for a summary, because the comparison takes quadratic time."""

_TOPICS = 3
"""Maximum number of terms in a heading, so that it stays one short line."""

_EXCLAIMED = 5
"""Minimum number of words of an exclamation that counts as a statement. "See you!" and "That is so great!" do not."""

_LEAST_BODY = 0.5
"""Minimum share of the budget for quoted sentences. A heading that takes more than the other half is left out."""

# Patterns of words, and of the ends of sentences, questions and exclamations.
_WORDS = re.compile(r"\w+")
_ENDED = re.compile(r"[.!?\u2026\u3002\uff01\uff1f:;)\"'\u201d\u2019\]]$")
_QUESTION = re.compile(r"[?\uff1f][\"')\]\u201d\u2019]*$")
_EXCLAMATION = re.compile(r"[!\uff01][\"')\]\u201d\u2019]*$")


class Utterance(NamedTuple):
    """The text of one member, its speaker and its time of creation.

    The speaker is None if all members have the same speaker or none.
    """

    text: str
    speaker: str | None
    created: Micros


def write_summary(
    members: Sequence[Utterance], embedder: Embedder, max_tokens: int, *, language: str | None
) -> str:
    """Write the text of a summary from the texts of its members, oldest first.

    Parameters
    ----------
    members
        The utterances to summarise.
    embedder
        The encoder that finds the most representative sentences.
    max_tokens
        The maximum length of the whole text, in tokens.
    language
        The language of the lab, whose stop words are left out of the heading. None keeps all words.

    Returns
    -------
    A heading, if it fits into half of the tokens, and quoted sentences.
    """
    sentences = [
        Utterance(piece, sentence.speaker, sentence.created)
        for sentence in members
        for piece in sentences_and_lines(sentence.text)
    ]
    # Statements are quoted if there are any, and otherwise whole texts, so that a summary is never empty.
    sentences = sentences or [
        Utterance(" ".join(sentence.text.split()), sentence.speaker, sentence.created)
        for sentence in members
    ]
    sentences = [sentence for sentence in sentences if is_statement(sentence.text)] or sentences
    title = write_heading(
        members, language=language, sentences=[sentence.text for sentence in sentences]
    ) or write_heading(members, language=language)
    if count_tokens(title) > max_tokens * _LEAST_BODY:
        title = ""
    remaining = max_tokens - count_tokens(f"{title} ") if title else max_tokens
    vectors = embedder.encode([sentence.text for sentence in sentences])
    if len(sentences) > _READ:
        mean = vectors.astype(np.int64).sum(axis=0)
        length = np.sqrt((vectors.astype(np.int64) ** 2).sum(axis=1))
        similarity = np.round((vectors @ mean) / np.maximum(length, 1.0), 6)
        nearest = np.sort(np.lexsort((np.arange(len(sentences)), -similarity))[:_READ])
        sentences, vectors = (
            [sentences[position] for position in nearest.tolist()],
            vectors[nearest],
        )
    costs = [
        _end_sentence(sentence.text)
        if sentence.speaker is None
        else f"{sentence.speaker}: {_end_sentence(sentence.text)}"
        for sentence in sentences
    ]
    positions = choose_sentences(costs, vectors, remaining)
    body = (
        _join_sentences([sentences[position] for position in positions])
        if positions
        else shorten(costs[0], remaining)
    )
    return f"{title} {body}" if title else body


def write_heading(
    members: Sequence[Utterance], *, language: str | None, sentences: Sequence[str] | None = None
) -> str:
    """Write the heading of a summary: shared terms, number of members and date range.

    The terms come from `sentences`, by default the texts of the members. The heading is empty if no
    term occurs twice.

    >>> told = [Utterance("The goat eats hay", None, 0), Utterance("Hay for the goat", None, 86_400_000_000)]
    >>> write_heading(told, language="english")
    'Goat, hay (2 notes, 1970-01-01 to 1970-01-02):'
    """
    texts = [member.text for member in members] if sentences is None else list(sentences)
    speakers = [
        word
        for name in {member.speaker for member in members if member.speaker}
        for word in name.split()
    ]
    terms = keywords(
        texts, [0] * len(texts), max_terms=2 * _TOPICS, language=language, exclude=speakers
    )
    vocabularies = [frozenset(_WORDS.findall(text.lower())) for text in texts]
    about = [
        word
        for word in (terms[0] if terms else ())
        if sum(word in words for words in vocabularies) > 1
    ][:_TOPICS]
    # Without a shared term, the heading would only repeat numbers that the metadata has.
    if not about:
        return ""
    first, last = (from_micros(when).date().isoformat() for when in _date_range(members))
    days = first if first == last else f"{first} to {last}"
    words = ", ".join(about)
    return f"{words[:1].upper()}{words[1:]} ({len(members):,} notes, {days}):"


def is_statement(sentence: str) -> bool:
    """Return whether a sentence is neither a question nor a short exclamation.

    >>> [is_statement(text) for text in ("Does it rain?", "See you!", "It rains.")]
    [False, False, True]
    """
    if _QUESTION.search(sentence):
        return False
    return not _EXCLAMATION.search(sentence) or len(sentence.split()) >= _EXCLAIMED


def _date_range(members: Sequence[Utterance]) -> tuple[Micros, Micros]:
    """Return the first and the last creation time among the members."""
    created = [member.created for member in members]
    return min(created), max(created)


def _end_sentence(sentence: str) -> str:
    """Add a full stop to a sentence without closing punctuation."""
    return sentence if _ENDED.search(sentence) else f"{sentence}."


def _join_sentences(sentences: Sequence[Utterance]) -> str:
    """Join sentences into a text, and name the speaker whenever the speaker changes."""
    parts: list[str] = []
    speaker: str | None = None
    for sentence in sentences:
        is_new_speaker = sentence.speaker is not None and sentence.speaker != speaker
        parts.append(
            f"{sentence.speaker}: {_end_sentence(sentence.text)}"
            if is_new_speaker
            else _end_sentence(sentence.text)
        )
        speaker = sentence.speaker
    return " ".join(parts)


# The name of a cluster has distinguishing terms that reveal neither a single memory nor a private one.


_WORDS_OF_NAME = 3
"""Maximum number of terms in a name, as in the heading of a summary."""
_TRIED = 6
"""Number of candidate terms for a name, because some terms occur in one memory only."""
_READ_OF_GROUP = 50
"""Approximate number of members of a group whose texts are read, which gives good terms at a bounded cost."""


def describe_groups(state: State, rows: Ints, labels: Ints, count: int) -> list[tuple[str, ...]]:
    """Return up to three distinguishing terms for each group from 0 to ``count - 1``.

    A term must occur in two public memories of the group. Names of clusters are visible to
    everyone, so a name must not reveal the words of a single or private memory.
    """
    visibility = state.names["visibility"]
    is_public = (labels >= 0) & (visibility.codes[rows] != visibility.code("private"))
    rows, labels = rows[is_public], labels[is_public]
    order = np.lexsort((rows, labels))
    first = np.flatnonzero(np.diff(labels[order], prepend=-1) != 0)
    sizes = np.diff(first, append=len(order))
    position = np.arange(len(order)) - np.repeat(first, sizes)
    # The sample is spread evenly over each group, because the rows of a group are in order of time.
    sample = order[position % np.repeat(-(-sizes // _READ_OF_GROUP), sizes) == 0]
    texts = [text or "" for text in state.texts.to_list(rows[sample])]
    groups = labels[sample]
    # names of speakers distinguish conversations, but do not describe their subject
    names = state.names["speaker"]
    public = np.unique(names.codes[visibility.codes != visibility.code("private")]).tolist()
    speakers = [word for code in public if code >= 0 for word in names.vocabulary[code].split()]
    terms = keywords(
        texts, groups, max_terms=_TRIED, language=state.words.language, exclude=speakers
    )
    terms += [()] * (count - len(terms))
    lowered: dict[int, list[str]] = {}
    for group, text in zip(groups.tolist(), texts, strict=True):
        lowered.setdefault(group, []).append(text.lower())
    return [
        tuple(
            [
                word
                for word in group_terms
                if sum(word in text for text in lowered.get(group, ())) > 1
            ][:_WORDS_OF_NAME]
        )
        for group, group_terms in enumerate(terms)
    ]


def name_cluster(
    state: State, number: int, about: tuple[str, ...], used: Collection[str], creator: str
) -> str:
    """Return an unused name for a cluster, made of its terms or number and its creator.

    The name differs from the names of existing clusters and from the names in `used`. It contains a space, so it cannot
    equal a word of a vocabulary.
    """
    name = f"about {', '.join(about)}" if about else f"number {number}"
    if screen(
        name
    ).findings:  # a text may contain a secret that was stored before the gate knew its pattern
        name = f"number {number}"
    name += f" of {creator}" if creator else ""
    exists = name in used or int(state.nodes.find("cluster", [name])[0]) >= 0
    return f"{name} ({number})" if exists else name
