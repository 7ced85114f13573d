"""Search over rows 0..n-1 by integer vectors and by words.

The nearest vectors are found exactly, or among the candidates of a verified index. Matches of words are ranked with BM25.

>>> words = Words()
>>> words.append(["Tabs, not spaces", "Spaces", "Neither"])
>>> hits = words.hits(words.query("tabs or spaces"))
>>> rows, scores = bm25(hits, words.lengths, count=len(words), mean_length=words.lengths.mean())
>>> rows.tolist()
[0, 1]
"""

from memlab.kernel.index._arrays import Grown, best, compact, is_in_sorted, products, products_below
from memlab.kernel.index._base import KINDS, Base, Kind, build_base, check_bases, list_bases
from memlab.kernel.index._matches import (
    GroupLengths,
    InPassages,
    Matches,
    bm25,
    group_lengths,
    group_scores,
    idf,
)
from memlab.kernel.index._neighbours import Neighbours, sweep
from memlab.kernel.index._postings import Query, Words
from memlab.kernel.index._report import IndexReport, report
from memlab.kernel.index._tokens import LANGUAGES, passages_of, words_of
from memlab.kernel.index._vectors import BLOCK, EXACT_UP_TO, Vectors, scanner

__all__ = [
    "BLOCK",
    "EXACT_UP_TO",
    "KINDS",
    "LANGUAGES",
    "Base",
    "GroupLengths",
    "Grown",
    "InPassages",
    "IndexReport",
    "Kind",
    "Matches",
    "Neighbours",
    "Query",
    "Vectors",
    "Words",
    "best",
    "bm25",
    "build_base",
    "check_bases",
    "compact",
    "group_lengths",
    "group_scores",
    "idf",
    "is_in_sorted",
    "list_bases",
    "passages_of",
    "products",
    "products_below",
    "report",
    "scanner",
    "sweep",
    "words_of",
]
