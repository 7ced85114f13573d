"""Five features of a user's own, added through the public seam: an example, and the features of ``evolve.py --own``.

    import own_features
    own_features.register()

Each is a function of a ``memlab.Pool``: the candidates of one recall, their texts, columns, and other features.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

import memlab
from memlab.kernel.base.arrays import Floats
from memlab.kernel.embedding import load_embedder

_WORD = re.compile(r"\w+")
_STEM = 5
"""The letters of a word that are compared: "painting" and "painted" are one word."""
_NEIGHBOURS = {1: 0.5, 2: 0.25}
"""The weights of the turns one and two before and after a memory."""
_NEAREST = 3
"""The candidates of the highest relevance that stand for the answer."""
_NUMBERS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "once",
    "twice",
    "dozen",
    "hundred",
]
_ANSWERS = (
    (r"how (many|much|long|often|old|far)|age\b", rf"\d|\b({'|'.join(_NUMBERS)})\b"),
    (
        r"why|reason|motivat|inspir",
        r"(?i)\b(because|so that|since|reason|inspired?|want(ed)? to)\b",
    ),
    (
        r"who|whom|where|which|name|called|title|book|song|movie|game|band|city|country",
        r'(?<=[a-z,] )[A-Z][a-z]|"',
    ),
)
"""Patterns of questions, and of texts that may answer them."""


def smooth_relevance(pool: memlab.Pool) -> Floats:
    """Return the mean relevance of neighbouring turns of the same session, by distance."""
    relevance = dict(zip(pool.ids.tolist(), _read_relevance(pool).tolist(), strict=True))
    sessions = dict(zip(pool.ids.tolist(), pool.frame("session")["session"], strict=True))
    return np.array(
        [
            sum(
                weight * relevance[other]
                for distance, weight in _NEIGHBOURS.items()
                for other in (number - distance, number + distance)
                if sessions.get(other, ...) == session
            )
            for number, session in sessions.items()
        ]
    )


def find_rarest_word(pool: memlab.Pool) -> Floats:
    """Return the inverse document frequency of the rarest word shared with the query."""
    texts = [_list_stems(text) for text in pool.texts]
    counts = Counter(word for words in texts for word in words)
    query = _list_stems(pool.query)
    return np.array(
        [
            max((np.log(len(texts) / counts[word]) for word in words & query), default=0.0)
            for words in texts
        ]
    )


def compare_nearest(pool: memlab.Pool) -> Floats:
    """Return the mean cosine with the other candidates of the highest relevance."""
    vectors = np.asarray(load_embedder(None).encode(pool.texts), dtype=np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    order = np.argsort(-_read_relevance(pool), kind="stable")[:_NEAREST]
    cosines = vectors @ vectors[order].T
    others = np.arange(len(vectors))[:, None] != order
    return np.asarray((cosines * others).sum(axis=1) / np.maximum(others.sum(axis=1), 1))


def match_answer(pool: memlab.Pool) -> Floats:
    """Return whether a text has the form of an answer to the query: a number, a reason or a name."""
    patterns = [
        re.compile(answer) for question, answer in _ANSWERS if re.search(question, pool.query, re.I)
    ]
    return np.array(
        [float(any(pattern.search(text) for pattern in patterns)) for text in pool.texts]
    )


def sum_session(pool: memlab.Pool) -> Floats:
    """Return the mean relevance of the three most relevant candidates of a memory's session."""
    relevance, sessions = _read_relevance(pool), pool.frame("session")["session"].to_list()
    of_session: dict[object, list[float]] = {}
    for session, value in zip(sessions, relevance.tolist(), strict=True):
        of_session.setdefault(session, []).append(value)
    means = {name: sum(sorted(values)[-3:]) / 3 for name, values in of_session.items()}
    return np.array([means[session] for session in sessions])


def _read_relevance(pool: memlab.Pool) -> Floats:
    """Return the sum of two features of memlab that measure relevance."""
    return np.asarray(pool["late"] + pool["similarity"], dtype=np.float64)


def _list_stems(text: str) -> set[str]:
    """Return the first letters of the words of a text."""
    return {word[:_STEM] for word in _WORD.findall(text.lower())}


def register() -> None:
    """Add the features to memlab in this process."""
    functions = {
        "near-relevance": smooth_relevance,
        "rarest-shared": find_rarest_word,
        "near-top": compare_nearest,
        "answer-form": match_answer,
        "session-relevance": sum_session,
    }
    features = [
        memlab.Feature(name, "num", "query", str(function.__doc__), compute=function)
        for name, function in functions.items()
    ]
    memlab.extend(memlab.Extension("own", "1.0", features=features))
