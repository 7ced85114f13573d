"""What groups of texts are about, in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from memlab.kernel.english import STOP_WORDS
from memlab.kernel.index import Words

__all__ = ["keywords"]

_UNSPACED = r"\p{Han}\p{Hiragana}"
_WORD = rf"[{_UNSPACED}]|[\p{{L}}\p{{M}}\p{{N}}&&[^{_UNSPACED}]]+"
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
        .with_columns(pl.col("word").str.normalize("NFC").str.to_lowercase().str.extract_all(_WORD))
        .explode("word", empty_as_null=False)
        .filter(_telling({*STOP_WORDS.get(language or "", ()), *(word.lower() for word in without)}))
        .unique(["text", "word"])
        .group_by("group", "word")
        .agg(pl.len().cast(pl.Float64).alias("held"))
        .with_columns(pl.col("held").sum().over("word").alias("all"))
    )
    mean = pl.col("held").sum() / count
    best = (
        held.with_columns(((pl.col("held") * (1 + mean / pl.col("all")).log()).round(9)).alias("worth"))
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
