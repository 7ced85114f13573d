"""Search over rows 0..n-1: exact neighbours of integer vectors, words with BM25, and an optional Annoy base.

vectors = Vectors(256); vectors.append(embedder.encode(texts))
rows, cosine = vectors.top(embedder.encode(["tabs or spaces"])[0], 10)

words = Words(); words.append(texts)
hits = words.hits(words.query("tabs or spaces"))
rows, scores = bm25(hits, words.lengths, count=len(words), mean_length=words.lengths.mean())
"""

from memlab.index._annoy import AnnoyBase, OpenedBase, index_recall, open_or_build
from memlab.index._bm25 import bm25, coverage, group_bm25, group_coverage, idf
from memlab.index._select import best
from memlab.index._tokens import STOP_WORDS
from memlab.index._vectors import Vectors, View
from memlab.index._words import Query, TermHits, Words

__all__ = [
    "STOP_WORDS",
    "AnnoyBase",
    "OpenedBase",
    "Query",
    "TermHits",
    "Vectors",
    "View",
    "Words",
    "best",
    "bm25",
    "coverage",
    "group_bm25",
    "group_coverage",
    "idf",
    "index_recall",
    "open_or_build",
]
