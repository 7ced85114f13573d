"""A tag that memories have in common, inferred: what most of them bear is given to the others."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from memlab.policies import Pack
from memlab.state import Change, State, values_of

__all__ = ["common_tag", "tagged"]


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


def tagged(state: State, rows: NDArray[np.int64], tag: str) -> Change:
    """This tag for those of ``rows`` that do not bear it, behind what they have."""
    lists = state.lists["tags"]
    bare = [row for row in rows.tolist() if tag not in lists.at(row)]
    if not bare:
        return Change()
    return Change(set=(values_of([row + 1 for row in bare], tags=[[*lists.at(row), tag] for row in bare]),))
