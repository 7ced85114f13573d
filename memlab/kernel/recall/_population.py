"""The memories that may take part in a recall, and what is counted over them once, not at every question."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.index import GroupLengths, Grown, Words, group_lengths, words_of
from memlab.kernel.recall._filters import Filters
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import Seen, State

__all__ = ["Lengths", "Population", "Populations", "admitted"]

_POPULATIONS = 16

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Lengths:
    """Of the first ``count`` memories of a population, in words: the total, and that of each session.

    ``parts`` counts each passage of a long memory, and every other memory, as one.
    """

    count: int
    total: int
    sessions: GroupLengths
    parts: int

    @property
    def mean(self) -> float:
        """Of a memory."""
        return self.total / self.count if self.count else 0.0

    @property
    def mean_of_parts(self) -> float:
        """Of a passage or a memory that is one."""
        return self.total / self.parts if self.parts else 0.0


@dataclass(frozen=True)
class Population:
    """The memories that may take part in a recall: filter first, then search what is left.

    Document statistics of BM25 are those of the population, so one project's words say nothing of another's.
    ``mask`` is None where all memories take part. ``speakers`` are the codes of those who said any of them.
    """

    mask: Mask | None
    rows: Rows
    speakers: NDArray[np.int64]
    key: Hashable
    exact: bool = False
    """Whether an index of all memories may not be asked: it knows some that are hidden from who asks."""
    _lengths: dict[str | None, Lengths] = field(default_factory=dict, repr=False, compare=False)
    _newest: list[tuple[int, int]] = field(default_factory=list, repr=False, compare=False)
    _names: list[frozenset[str]] = field(default_factory=list, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.rows)

    def lengths(self, state: State, words: Words) -> Lengths:
        """The lengths as ``words`` counts them, once for each language; of what came since, where some were known."""
        known = self._lengths.get(words.language)
        if known is None or known.count < len(self):
            groups, lengths = state.contexts.codes, words.lengths
            if known is None:
                rows = None if self.mask is None else self.rows
                own = lengths if rows is None else lengths[rows]
                sessions = group_lengths(groups, lengths, rows=rows)
                known = Lengths(len(self), int(own.sum()), sessions, self._parts(words, self.rows))
            else:
                late = self.rows[known.count :]
                sessions = known.sessions.with_rows(groups[late], lengths[late])
                total, parts = known.total + int(lengths[late].sum()), known.parts + self._parts(words, late)
                known = Lengths(len(self), total, sessions, parts)
            self._lengths[words.language] = known
        return known

    def _parts(self, words: Words, rows: Rows) -> int:
        """How many parts these rows have, the last ones that take part."""
        if words.passages is None or not len(rows):
            return len(rows)
        of = words.passages.of
        of = self.among(of[of.searchsorted(rows[0]) :])
        return len(rows) + int(np.count_nonzero(of[1:] == of[:-1]))

    def newest(self, state: State) -> int:
        """When its newest memory was created, microseconds UTC; there is at least one. Of what came since, where some
        were known: a pass over a million costs a third of a millisecond.
        """
        known, instant = self._newest[0] if self._newest else (0, None)
        if known < len(self):
            late = int(state.numbers["created"].values[self.rows[known:]].max())
            instant = late if instant is None else max(instant, late)
            self._newest[:] = [(len(self), instant)]
        assert instant is not None
        return instant

    def names(self, state: State) -> frozenset[str]:
        """The words of the names of those who said any of them."""
        if not self._names:
            vocabulary = state.names["speaker"].vocabulary
            self._names.append(
                frozenset(word for code in self.speakers.tolist() for word in words_of(vocabulary[code]))
            )
        return self._names[0]

    @property
    def search(self) -> dict[str, Any]:
        """What ``Vectors.top`` takes it as."""
        if self.mask is None:
            return {}
        return {"rows": self.rows, "mask": self.mask, "key": self.key, "exact": self.exact}

    def among(self, rows: Rows) -> Rows:
        """Those of ``rows`` that take part."""
        return rows if self.mask is None else rows[self.mask[rows]]


@dataclass(frozen=True)
class _Kept:
    """A population of the first ``size`` memories, and what it is valid for; its arrays in buffers that grow."""

    changes: int
    seen: int | None
    size: int
    population: Population
    rows: Grown
    mask: Grown


class Populations:
    """The populations of recent filters. One is valid until a memory changes in what filters read, and where its
    expression reads what recalls and feedback change, until the next event. Memories that are added are asked and
    counted alone: counting a million anew takes some ten milliseconds, at each question after each memory.
    """

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[State, OrderedDict[Hashable, _Kept]] = WeakKeyDictionary()

    def get(self, state: State, *, project: str | None, session: str | None, filters: Filters) -> Population:
        """The memories that a question from this project and session may find."""
        kept = self._kept.setdefault(state, OrderedDict())
        key = (project, session, filters)
        where = filters.where
        seen = None if where is None or where.lasting else state.seq
        known = kept.get(key)
        if known is not None and (known.changes, known.seen) == (state.changes, seen):
            if known.size == state.rows and (where is None or where.plain):
                kept.move_to_end(key)
                return known.population
            # an expression may speak of all memories at once, so that more of them change its value for the others
            known = known if where is None and known.size < state.rows else None
        else:
            known = None
        start = 0 if known is None else known.size
        fresh = admitted(state, project=project, session=session, filters=filters, start=start)
        found = _counted(state, fresh, key, seen, known)
        kept[key] = found
        kept.move_to_end(key)
        while len(kept) > _POPULATIONS:
            kept.popitem(last=False)
        return found.population


def admitted(state: State, *, project: str | None, session: str | None, filters: Filters, start: int = 0) -> Mask:
    """bool[memories]: which may take part, of those from row ``start`` on.

    In use (or of the statuses named), of this project, of none or of global scope, of this session if bound to one, of
    these seasons and branches or none, of these scopes and visibilities; not private to another than ``viewer``; and
    what ``where`` admits. Nothing of projects for which memory is off.
    """

    def among(column: str, *words: str | None) -> Mask:
        return state.names[column].among(words, start)

    mask = among("status", *(RECALLABLE if filters.status is None else filters.status))
    if project is not None:
        mask &= among("project", project, None) | among("scope", "global")
    bound = among("scope", "session")
    if bound.any():
        mask &= ~bound | (among("session", session or ""))
    if state.names["season"].held:
        mask &= among("season", *(filters.season or ()), None)
    if filters.scope is not None:
        mask &= among("scope", *filters.scope)
    if filters.visibility is not None:
        mask &= among("visibility", *filters.visibility)
    if filters.branch is not None:
        mask &= among("branch", *filters.branch, None)
    if filters.viewer is not None:
        mask &= ~among("visibility", "private") | among("creator", filters.viewer)
    if filters.without is None:
        mask[:] = False
    elif filters.without:
        mask &= ~among("project", *filters.without)
    if filters.where is not None:
        mask &= filters.where.mask(state)[start:]
    return mask


def _counted(state: State, fresh: Mask, key: Hashable, seen: int | None, known: _Kept | None) -> _Kept:
    """What takes part of the ``fresh`` memories, beside what was ``known`` of those before them."""
    start = state.rows - len(fresh)
    rows = Grown(np.empty(0, dtype=np.int64)) if known is None else known.rows
    mask = Grown(np.empty(0, dtype=np.bool_)) if known is None else known.mask
    late = np.flatnonzero(fresh) + start
    rows.append(late)
    if rows.size < state.rows:
        if mask.size < start:
            mask.append(np.ones(start - mask.size, dtype=np.bool_))  # so far all took part
        mask.append(fresh)
    speakers = state.names["speaker"].codes[start:] if len(late) == len(fresh) else state.names["speaker"].codes[late]
    present = np.flatnonzero(np.bincount(speakers[speakers >= 0]))
    population = Population(
        mask=mask.columns[0] if mask.size else None,
        rows=rows.columns[0],
        speakers=present if known is None else np.union1d(known.population.speakers, present),
        key=key,
        exact=isinstance(state, Seen),
        _lengths={} if known is None else dict(known.population._lengths),
        _newest=[] if known is None else list(known.population._newest),
    )
    return _Kept(state.changes, seen, state.rows, population, rows, mask)
