"""The memories that may take part in a recall, and what is counted over them once, not at every question."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from memlab.index import GroupLengths, group_lengths
from memlab.memory import State
from memlab.recall._filters import Filters
from memlab.schema import RECALLABLE

__all__ = ["Population", "Populations", "admitted"]

_POPULATIONS = 16

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Population:
    """The memories that may take part in a recall: filter first, then search what is left.

    Document statistics of BM25 are those of the population, so one project's words say nothing of another's.
    ``mask`` is None where all memories take part. ``speakers`` are the codes of those who said any of them,
    ``sessions`` the lengths of sessions, ``mean_length`` that of a memory, in words.
    """

    mask: Mask | None
    rows: Rows
    speakers: NDArray[np.int64]
    mean_length: float
    sessions: GroupLengths
    key: Hashable

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def search(self) -> dict[str, Any]:
        """How ``Vectors.top`` is told of it."""
        return {} if self.mask is None else {"rows": self.rows, "mask": self.mask, "key": self.key}

    def among(self, rows: Rows) -> Rows:
        """Those of ``rows`` that take part."""
        return rows if self.mask is None else rows[self.mask[rows]]


class Populations:
    """The populations of recent filters. One is valid until a memory is added or changes its status, and where its
    expression reads what recalls and feedback change, until the next event.
    """

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[State, OrderedDict[Hashable, tuple[Hashable, Population]]] = WeakKeyDictionary()

    def get(self, state: State, *, project: str | None, session: str | None, filters: Filters) -> Population:
        """The memories that a question from this project and session may find."""
        kept = self._kept.setdefault(state, OrderedDict())
        key = (project, session, filters)
        lasting = filters.where is None or filters.where.lasting
        version = (state.generation, len(state), None if lasting else state.seq)
        known = kept.get(key)
        if known is not None and known[0] == version and (filters.where is None or filters.where.plain):
            kept.move_to_end(key)
            return known[1]
        found = _counted(state, admitted(state, project=project, session=session, filters=filters), key)
        kept[key] = (version, found)
        kept.move_to_end(key)
        while len(kept) > _POPULATIONS:
            kept.popitem(last=False)
        return found


def admitted(state: State, *, project: str | None, session: str | None, filters: Filters) -> Mask:
    """bool[memories]: which may take part.

    In use (or of the statuses named), of this project or none, of this session if bound to one, of these branches or
    none, of these scopes and visibilities; not private to another than ``viewer``; and what ``where`` admits.
    """
    names = state.names
    mask = _among(state, "status", RECALLABLE if filters.status is None else filters.status)
    if project is not None:
        mask &= _among(state, "project", (project, None))
    bound = names["scope"].codes == names["scope"].code("session")
    if bound.any():
        mask &= ~bound | (names["session"].codes == names["session"].code(session or ""))
    if filters.scope is not None:
        mask &= _among(state, "scope", filters.scope)
    if filters.visibility is not None:
        mask &= _among(state, "visibility", filters.visibility)
    if filters.branch is not None:
        mask &= _among(state, "branch", (*filters.branch, None))
    if filters.viewer is not None:
        mask &= ~_among(state, "visibility", ("private",)) | _among(state, "creator", (filters.viewer,))
    if filters.where is not None:
        mask &= filters.where.mask(state)
    return mask


def _among(state: State, column: str, words: Iterable[str | None]) -> Mask:
    """Which rows have one of these words; None is null."""
    names = state.names[column]
    wanted = np.zeros(len(names.vocabulary) + 1, dtype=np.bool_)
    wanted[[code for code in map(names.code, words) if code >= -1]] = True  # the last place is that of null, code -1
    mask: Mask = wanted[names.codes]
    return mask


def _counted(state: State, mask: Mask, key: Hashable) -> Population:
    rows = np.flatnonzero(mask)
    whole = len(rows) == len(state)
    lengths, speakers = state.words.lengths, state.names["speaker"].codes
    own, theirs = (lengths, speakers) if whole else (lengths[rows], speakers[rows])
    return Population(
        mask=None if whole else mask,
        rows=rows,
        speakers=np.flatnonzero(np.bincount(theirs[theirs >= 0])),
        mean_length=float(own.mean()) if len(rows) else 0.0,
        sessions=group_lengths(state.contexts.codes, lengths, rows=None if whole else rows),
        key=key,
    )
