"""What groups of memories are called: the words that set them apart, without what is nobody's business."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.privacy import screen
from memlab.kernel.state import State
from memlab.subjects.clusters.keywords import keywords

__all__ = ["named_by", "words"]

Ints = NDArray[np.int64]

_WORDS = 3
_TRIED = 6
"""Words looked at for the few of a name, since some are said by one memory alone."""
_READ = 50
"""Members of a group whose texts are read."""


def words(state: State, rows: Ints, labels: Ints, count: int) -> list[tuple[str, ...]]:
    """A few words for each of the groups 0..count - 1: such as two memories or more that are not private say.

    A name is seen by whoever is led to a cluster, so it holds nothing that one memory alone, or a private one, says.
    """
    visibility = state.names["visibility"]
    shown = (labels >= 0) & (visibility.codes[rows] != visibility.code("private"))
    rows, labels = rows[shown], labels[shown]
    order = np.lexsort((rows, labels))
    first = np.flatnonzero(np.diff(labels[order], prepend=-1) != 0)
    sizes = np.diff(first, append=len(order))
    place = np.arange(len(order)) - np.repeat(first, sizes)
    # evenly spread over each group
    drawn = order[place % np.repeat(-(-sizes // _READ), sizes) == 0]
    texts = [text or "" for text in state.texts.take(rows[drawn])]
    groups = labels[drawn]
    # who speaks sets conversations apart, and says nothing of what they are about
    names = state.names["speaker"]
    public = np.unique(names.codes[visibility.codes != visibility.code("private")]).tolist()
    speakers = [word for code in public if code >= 0 for word in names.vocabulary[code].split()]
    found = keywords(texts, groups, most=_TRIED, language=state.words.language, without=speakers)
    found += [()] * (count - len(found))
    low: dict[int, list[str]] = {}
    for group, text in zip(groups.tolist(), texts, strict=True):
        low.setdefault(group, []).append(text.lower())
    return [
        tuple([word for word in some if sum(word in text for text in low.get(group, ())) > 1][:_WORDS])
        for group, some in enumerate(found)
    ]


def named_by(state: State, number: int, about: tuple[str, ...], fresh: Collection[str], creator: str) -> str:
    """A name for the cluster ``number`` of a ``creator`` (or of everyone) that neither a node has nor is in ``fresh``.

    It holds a space, so that it cannot be taken for a word of a vocabulary.
    """
    name = f"about {', '.join(about)}" if about else f"number {number}"
    if screen(name).findings:  # of a text that an older gate let through
        name = f"number {number}"
    name += f" of {creator}" if creator else ""
    taken = name in fresh or int(state.nodes.find("cluster", [name])[0]) >= 0
    return f"{name} ({number})" if taken else name
