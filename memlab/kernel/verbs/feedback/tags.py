"""A tag that memories have in common, inferred: what most of them bear is given to the others."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.english import STOP_WORDS, vocabulary, words_of
from memlab.kernel.policies import Pack
from memlab.kernel.state import Change, State, values_of
from memlab.kernel.verbs.remembering.rows import describing

__all__ = ["common_tag", "inferred_tag", "tagged"]

_SHORTEST = 3
"""Letters of a word that may become a tag."""


def common_tag(state: State, pack: Pack, rows: NDArray[np.int64]) -> str | None:
    """The tag that more than the setting ``tag-share`` of these memories bear, if some of them do not.

    Of several it is the most frequent, then the first by name. One memory shares nothing.
    """
    if len(rows) < 2:
        return None
    lists = state.lists["tags"]
    counts = Counter(tag for row in rows.tolist() for tag in dict.fromkeys(lists.at(row)))
    least = pack.number("tag-share") * len(rows)
    shared = [(-count, tag) for tag, count in counts.items() if max(least, 1) < count < len(rows)]
    return min(shared)[1] if shared else None


def inferred_tag(state: State, pack: Pack, rows: NDArray[np.int64], query: str) -> str | None:
    """Return a tag for memories that share a context and no tag, if the setting ``infer-common-tag`` asks for one.

    It is the topic that all of them have, else a word that all of them and the query have: the longest, then the first
    of the query. None for fewer than two memories, or where two of them bear the same tag already.
    """
    if not pack.settings["infer-common-tag"] or len(rows) < 2:
        return None
    lists = state.lists["tags"]
    borne = Counter(tag for row in rows.tolist() for tag in dict.fromkeys(lists.at(row)))
    if any(count > 1 for count in borne.values()):
        return None
    texts = [text or "" for text in state.texts.take(rows)]
    topics = [describing().tags_of(text, ()) for text in texts]
    common = [topic for topic in topics[0] if all(topic in others for others in topics[1:])]
    if common:
        return common[0]
    said = [frozenset(words_of(text)) for text in texts]
    plain = STOP_WORDS["english"] | vocabulary("negation", "fillers")
    shared = [
        word
        for word in dict.fromkeys(words_of(query))
        if len(word) >= _SHORTEST and word.isalpha() and word not in plain and all(word in words for words in said)
    ]
    return max(shared, key=len, default=None)


def tagged(state: State, rows: NDArray[np.int64], tag: str) -> Change:
    """This tag for those of ``rows`` that do not bear it, behind what they have."""
    lists = state.lists["tags"]
    bare = [row for row in rows.tolist() if tag not in lists.at(row)]
    if not bare:
        return Change()
    return Change(set=(values_of([row + 1 for row in bare], tags=[[*lists.at(row), tag] for row in bare]),))
