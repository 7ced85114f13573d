"""Search over rows 0..n-1: neighbours of integer vectors, exact or by a base that is checked, and words with BM25.

vectors = Vectors(256); vectors.append(embedder.encode(texts))
rows, cosine = vectors.top(embedder.encode(["tabs or spaces"])[0], 10)

words = Words(); words.append(texts)
hits = words.hits(words.query("tabs or spaces"))
rows, scores = bm25(hits, words.lengths, count=len(words), mean_length=words.lengths.mean())
"""

from memlab.kernel.index._arrays import Grown, among, best, compact, products, products_below
from memlab.kernel.index._base import (
    KINDS,
    Base,
    Kind,
    Opened,
    Points,
    Projection,
    build_base,
    found_bases,
    search_k,
    unsound_bases,
)
from memlab.kernel.index._matches import (
    GroupLengths,
    InPassages,
    Matches,
    bm25,
    coverage,
    group_bm25,
    group_lengths,
    group_scores,
    idf,
)
from memlab.kernel.index._neighbours import Neighbours, build_from_spool, sweep
from memlab.kernel.index._postings import Query, TermHits, Words, segment_of
from memlab.kernel.index._report import IndexReport, report, wilson
from memlab.kernel.index._tokens import LANGUAGES, Tokens, passages_of, words_of
from memlab.kernel.index._vectors import BLOCK, EXACT_UP_TO, Approximate, Vectors, View

__all__ = [
    "BLOCK",
    "EXACT_UP_TO",
    "KINDS",
    "LANGUAGES",
    "Approximate",
    "Base",
    "GroupLengths",
    "Grown",
    "InPassages",
    "IndexReport",
    "Kind",
    "Matches",
    "Neighbours",
    "Opened",
    "Points",
    "Projection",
    "Query",
    "TermHits",
    "Tokens",
    "Vectors",
    "View",
    "Words",
    "among",
    "best",
    "bm25",
    "build_base",
    "build_from_spool",
    "compact",
    "coverage",
    "found_bases",
    "group_bm25",
    "group_lengths",
    "group_scores",
    "idf",
    "passages_of",
    "products",
    "products_below",
    "report",
    "search_k",
    "segment_of",
    "sweep",
    "unsound_bases",
    "wilson",
    "words_of",
]
