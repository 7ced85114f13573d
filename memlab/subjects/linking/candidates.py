"""A lab's memories and those that are about to join it, as one row of rows; and which of them are compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.index import Vectors, best
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Filters, Moment, Population
from memlab.kernel.state import EVERYONE, State
from memlab.subjects.reading.claims import Statement
from memlab.subjects.reading.comparison import read_text

__all__ = ["Candidates", "PairedState", "Places", "Populate", "RowView", "candidates"]


USER = "user"
"""Who speaks where nobody is named."""

Ints = NDArray[np.int64]
Values = NDArray[Any]


class PairedState:
    """The memories of ``state``, then those of ``fresh``, which are in no journal yet: row ``len(state) + p``.

    ``before`` says which row each of the fresh follows in its session, -1 for none. Without ``fresh``, what is new was
    stored already and is among the rows of the state.
    """

    def __init__(
        self,
        state: State,
        pack: Pack,
        now: int,
        *,
        fresh: State | None = None,
        before: Ints | None = None,
    ) -> None:
        self.state, self.pack, self.now, self.fresh = state, pack, now, fresh
        self.size = state.rows
        """How many are stored; ``total`` counts the fresh too."""
        self.total = state.rows + (0 if fresh is None else fresh.rows)
        self.before = before

    def side(self, rows: Ints) -> RowView:
        """These rows (strictly ascending) with their features."""
        return RowView(self, rows)

    def home(self, row: int) -> tuple[State, int]:
        """The state that holds a row, and the row's number there."""
        if self.fresh is not None and row >= self.size:
            return self.fresh, row - self.size
        return self.state, row

    def vectors(self, rows: Ints) -> tuple[Vectors, Ints]:
        """Where the vectors of rows that are all old or all fresh are, and the rows' numbers there."""
        if self.fresh is not None and len(rows) and rows[0] >= self.size:
            return self.fresh.vectors, rows - self.size
        return self.state.vectors, rows


class RowView:
    """Some rows of a ``PairedState``: features by name, columns, and texts."""

    def __init__(self, joint: PairedState, rows: Ints) -> None:
        self.rows, self.pack = rows, joint.pack
        cut = int(np.searchsorted(rows, joint.size)) if joint.fresh is not None else len(rows)
        self._moments = [Moment(joint.state, joint.pack, rows[:cut], joint.now)]
        if joint.fresh is not None and cut < len(rows):
            places = rows[cut:] - joint.size
            late = Moment(joint.fresh, joint.pack, places, joint.now)
            if joint.before is not None:
                late.give(answers=_answers(joint, joint.before[places]))
            self._moments = [*(self._moments if cut else []), late]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Values:
        return _join_columns([moment[name] for moment in self._moments])

    def word(self, column: str) -> Values:
        """A column of names as an object array, null as None."""
        return _join_columns([moment.word(column) for moment in self._moments])

    def number(self, column: str) -> Values:
        return _join_columns([moment.number(column) for moment in self._moments])

    @cached_property
    def statements(self) -> Values:
        """Each text as the detectors of negation see it: an object array of ``Statement``."""
        return _objects([Statement(text) for text in self.texts])

    @cached_property
    def texts(self) -> list[str]:
        """Each text, empty where there is none."""
        return [
            text or ""
            for moment in self._moments
            for text in moment.state.texts.to_list(moment.rows)
        ]

    @cached_property
    def readings(self) -> Values:
        """Each text as its statements: an object array of ``Reading``."""
        return _objects([read_text(text) for text in self.texts])

    @cached_property
    def extracted(self) -> Values:
        """bool[rows]: what extraction made of a message, by the reason that it gives."""
        reasons = [
            moment.state.notes["reason"].value_at(row)
            for moment in self._moments
            for row in moment.rows.tolist()
        ]
        return np.array(
            [one is not None and one.startswith("extracted by ") for one in reasons], dtype=np.bool_
        )

    @cached_property
    def speakers(self) -> Values:
        """Who speaks, without the case of letters; the user where nobody is named."""
        words = self.word("speaker").tolist()
        return _objects(
            [
                USER if word is None or not word.strip() else word.strip().casefold()
                for word in words
            ]
        )


def _objects(found: list[Any]) -> Values:
    objects = np.empty(len(found), dtype=object)
    objects[:] = found
    return objects


def _join_columns(parts: list[Values]) -> Values:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _answers(joint: PairedState, before: Ints) -> Values:
    """Whether the row before asks, for rows whose edges are not there yet."""
    asks = joint.state.asks.values
    if joint.fresh is not None:
        asks = np.concatenate([asks, joint.fresh.asks.values])
    return np.asarray((before >= 0) & asks[np.maximum(before, 0)])


# Which old memories a new one is compared with: its nearest, and those that speak of the same subject.
#
# What Python decides here is what a policy cannot see: who could be meant. A new memory is compared with what a
# recall from its own place would find: its project and what belongs to none, its branch and what has none, its
# session where it is bound to it. What everyone sees is compared with what everyone sees, what is private also with
# what else its creator keeps so. A memory without a project is compared with its like, as what holds everywhere says
# nothing of one project. Turns of a conversation are compared with nothing: they were said.


_BATCH = 1 << 22
"""Similarities computed at a time: 32 MB."""

_FEW = 4
"""New memories up to which each is searched for alone, over the sub-matrix that recalls keep."""

_LATE = 64
"""Newer rows up to which the nearest are searched among all, and the newer ones left out after."""

_AMONG = 32
"""How many of the nearest are looked at where some of them do not count."""
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Populate(Protocol):
    """The memories that a recall from a place may find."""

    def __call__(
        self, *, project: str | None, session: str | None, filters: Filters
    ) -> Population: ...


@dataclass(frozen=True)
class Candidates:
    """Pairs by row, the new one's neighbours by (-similarity, row): ``rank`` is a neighbour's place among them."""

    new: Ints
    old: Ints
    similarity: Floats
    rank: Ints

    def __len__(self) -> int:
        return len(self.new)


@dataclass(frozen=True)
class _Place:
    """From where a new memory looks."""

    project: str | None
    branch: str | None
    session: str | None
    viewer: str | None


class Places:
    """From where each of some new rows (ascending) looks: rows of one place are compared with one another."""

    def __init__(self, joint: PairedState, rows: Ints) -> None:
        self.rows = rows
        state = joint.state if joint.fresh is None else joint.fresh
        local = rows - (0 if joint.fresh is None else joint.size)
        names = state.names
        private = joint.state.names["visibility"].has_values or names["visibility"].has_values
        bound = names["scope"].codes[local] == names["scope"].code("session")
        own = names["visibility"].codes[local] == names["visibility"].code("private")
        keys = (
            names["project"].codes[local],
            names["branch"].codes[local],
            np.where(bound, names["session"].codes[local], -1),
            np.where(own, names["creator"].codes[local], -2)
            if private
            else np.full(len(local), -1),
        )
        different, group = np.unique(np.stack(keys).astype(np.int64), axis=1, return_inverse=True)
        self.of: Ints = group.reshape(-1)

        def name(column: str, code: int) -> str | None:
            return None if code < 0 else names[column].vocabulary[code]

        self.known = [
            _Place(
                project=name("project", project),
                branch=name("branch", branch),
                session=name("session", session),
                viewer=EVERYONE if creator < -1 else name("creator", creator),
            )
            for project, branch, session, creator in different.T.tolist()
        ]


@lru_cache(maxsize=256)
def _filters(branch: str | None, viewer: str | None, unbound: bool) -> Filters:
    where = pl.col("project").is_null() if unbound else None
    return replace(Filters.of(branch=branch, where=where), viewer=viewer)


def candidates(
    joint: PairedState,
    rows: Ints,
    places: Places,
    populate: Populate,
    *,
    count: int,
    gone: Flags | None = None,
) -> Candidates:
    """The pairs to decide of for some new rows (ascending, among those of ``places``), each with rows before it.

    ``count`` nearest by the cosine of their vectors; as many of those with the same subject; and of a fact all with the
    same subject and predicate. ``gone``: bool[rows of the joint], what is no longer there.
    """
    groups = places.of[np.searchsorted(places.rows, rows)]
    found = [_none()]
    for group in np.unique(groups).tolist():
        own = rows[groups == group]
        peers = places.rows[(places.of == group) & (places.rows < own[-1])]
        if gone is not None:
            peers = peers[~gone[peers]]
        found.append(_around(joint, own, peers, places.known[group], populate, count, gone))
    new, old, similarity = _join_pairs(found)
    order = np.lexsort((old, -similarity, new))
    new, old, similarity = new[order], old[order], similarity[order]
    start = np.flatnonzero(np.diff(new, prepend=-1) > 0)
    rank = np.arange(len(new)) - np.repeat(start, np.diff(start, append=len(new))) + 1
    return Candidates(new, old, similarity, rank)


def _around(
    joint: PairedState,
    rows: Ints,
    peers: Ints,
    place: _Place,
    populate: Populate,
    count: int,
    gone: Flags | None,
) -> tuple[Ints, Ints, Floats]:
    """New rows, old rows and similarities of one place, each pair once."""
    state = joint.state
    unbound = place.project is None and state.names["project"].has_values
    population = populate(
        project=place.project,
        session=place.session,
        filters=_filters(place.branch, place.viewer, unbound),
    )
    below = (
        joint.size
        if joint.fresh is not None
        else int(min(rows[0], peers[0] if len(peers) else rows[0]))
    )
    known = population.rows[: int(np.searchsorted(population.rows, below))]
    fits = _fitting(state, gone)
    pairs = [_none()]
    if count:
        near = [
            _nearest_old(joint, rows, known, population, fits, count),
            _nearest_new(joint, rows, peers, count),
        ]
        pairs.append(_cut(*_join_pairs(near), count))
    pairs += _of_subject(joint, rows, known if fits is None else known[fits[known]], peers, count)
    new, old, similarity = _join_pairs(pairs)
    _, once = np.unique(new * joint.total + old, return_index=True)
    return new[once], old[once], similarity[once]


def _join_pairs(pairs: list[tuple[Ints, Ints, Floats]]) -> tuple[Ints, Ints, Floats]:
    new, old, similarity = zip(*pairs, strict=True)
    return np.concatenate(new), np.concatenate(old), np.concatenate(similarity)


def _cut(new: Ints, old: Ints, similarity: Floats, count: int) -> tuple[Ints, Ints, Floats]:
    """The ``count`` nearest of each new row."""
    order = np.lexsort((old, -similarity, new))
    new = new[order]
    start = np.flatnonzero(np.diff(new, prepend=-1) > 0)
    rank = np.arange(len(new)) - np.repeat(start, np.diff(start, append=len(new)))
    kept = order[rank < count]
    return new[rank < count], old[kept], similarity[kept]


def _fitting(state: State, gone: Flags | None) -> Flags | None:
    """Which old rows count: no turns, and nothing that is gone; None: all do."""
    kinds = state.names["kind"]
    fits = kinds.codes != kinds.code("turn")
    if gone is not None:
        fits &= ~gone[: len(state)]
    return None if fits.all() else fits


def _nearest_old(
    joint: PairedState,
    rows: Ints,
    known: Ints,
    population: Population,
    fits: Flags | None,
    count: int,
) -> tuple[Ints, Ints, Floats]:
    """Among ``known``, the part of the population that was there before the first of these rows."""
    known = joint.state.drop_unembedded(known)
    if not len(known):
        return _none()
    own, local = joint.vectors(rows)
    queries, vectors = own.take(local), joint.state.vectors
    if len(vectors) <= vectors.exact_up_to and 2 * len(known) >= len(vectors):
        # the matrix of all rows is kept whatever becomes of them; that of a population is rebuilt when one goes
        out = np.ones(len(vectors), dtype=np.bool_)
        out[known if fits is None else known[fits[known]]] = False
        among = np.arange(len(vectors))
        return _block(rows, queries, vectors.similarity, among, count, out=out)
    if len(rows) > _FEW and (len(known) <= vectors.exact_up_to or vectors.attached is None):
        among = known if fits is None else known[fits[known]]
        return _block(rows, queries, lambda block: vectors.similarity(block, among), among, count)
    wide = max(count, _AMONG) if fits is not None else count
    late = len(population.rows) - len(known)
    found = [_none()]
    for row, query in zip(rows.tolist(), queries, strict=True):
        if late > _LATE:
            old, cosine = vectors.top(query, wide, rows=known)
        else:
            old, cosine = vectors.top(query, wide + late, **population.search)
        kept = (old <= known[-1]) & (old >= joint.state.unembedded)
        if fits is not None:
            kept &= fits[old]
        old, cosine = old[kept][:count], cosine[kept][:count]
        found.append((np.full(len(old), row), old, cosine))
    return _join_pairs(found)


def _nearest_new(
    joint: PairedState, rows: Ints, peers: Ints, count: int
) -> tuple[Ints, Ints, Floats]:
    """Among those of the same place that are new as well and come before."""
    if not len(peers):
        return _none()
    vectors, queried = joint.vectors(rows)
    _, local = joint.vectors(peers)
    return _block(
        rows,
        vectors.take(queried),
        lambda block: vectors.similarity(block, local),
        peers,
        count,
        before=True,
    )


def _block(
    rows: Ints,
    queries: NDArray[np.int8],
    similarities: _Similarities,
    among: Ints,
    count: int,
    *,
    before: bool = False,
    out: Flags | None = None,
) -> tuple[Ints, Ints, Floats]:
    """The nearest of ``among`` for each row, by blocks of products.

    ``before``: only rows before it. ``out``: which of ``among`` do not count.
    """
    new, old, near = [], [], []
    # one by one a few are as quick, and wait for no threads of a matrix product
    step = 1 if len(rows) <= _FEW else max(1, _BATCH // max(1, len(among)))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        batch = queries[start : start + step]
        cosines = similarities(batch) if step > 1 else similarities(batch[0])[None, :]
        if out is not None:
            cosines[:, out] = -np.inf
        if before:
            cosines = np.where(among[None, :] < block[:, None], cosines, -np.inf)
        for row, cosine in zip(block.tolist(), cosines, strict=True):
            kept = best(cosine, count)
            kept = kept[np.isfinite(cosine[kept])]
            new.append(np.full(len(kept), row))
            old.append(among[kept])
            near.append(cosine[kept])
    return np.concatenate(new), np.concatenate(old), np.concatenate(near)


class _Similarities(Protocol):
    def __call__(self, block: NDArray[np.int8], /) -> Floats: ...


def _of_subject(
    joint: PairedState, rows: Ints, known: Ints, peers: Ints, count: int
) -> list[tuple[Ints, Ints, Floats]]:
    """Old and earlier new memories with the same subject: the nearest, and all with the same predicate."""
    subjects = _words(joint, rows, "subject")
    stating = np.flatnonzero(subjects != None)  # noqa: E711  by element
    if not len(stating):
        return []
    about = {name: np.concatenate([_with(joint, rows, "subject", name) for rows in (known, peers)])
             for name in dict.fromkeys(subjects[stating].tolist())}  # fmt: skip
    predicates = _words(joint, rows, "predicate")
    found = []
    for place in stating.tolist():
        others = about[subjects[place]]
        others = others[: int(np.searchsorted(others, rows[place]))]
        if len(others):
            found.append(_facts(joint, int(rows[place]), others, predicates[place], count))
    return found


def _facts(
    joint: PairedState, row: int, others: Ints, predicate: str | None, count: int
) -> tuple[Ints, Ints, Floats]:
    """Of one new row: the nearest of its subject, and all with its predicate."""
    held, local = joint.vectors(np.array([row]))
    query = held.take(local)[0]
    cut = int(np.searchsorted(others, joint.size)) if joint.fresh is not None else len(others)
    cosine = np.concatenate(
        [
            vectors.similarity(query, places)
            for vectors, places in map(joint.vectors, (others[:cut], others[cut:]))
        ]
    )
    kept = np.zeros(len(others), dtype=np.bool_)
    kept[best(cosine, count)] = True
    if predicate is not None:
        kept |= np.isin(others, _with(joint, others, "predicate", predicate))
    return np.full(int(kept.sum()), row), others[kept], cosine[kept]


def _with(joint: PairedState, rows: Ints, column: str, name: str) -> Ints:
    """Those of some rows (ascending) that have this name in a column."""
    cut = int(np.searchsorted(rows, joint.size)) if joint.fresh is not None else len(rows)
    names = joint.state.names[column]
    found: Ints = rows[:cut][names.codes[rows[:cut]] == names.code(name)]
    if joint.fresh is None or cut == len(rows):
        return found
    late = joint.fresh.names[column]
    return np.concatenate(
        [found, rows[cut:][late.codes[rows[cut:] - joint.size] == late.code(name)]]
    )


def _words(joint: PairedState, rows: Ints, column: str) -> NDArray[Any]:
    """The names of new rows, null as None."""
    state = joint.state if joint.fresh is None else joint.fresh
    return state.names[column].to_objects(rows - (0 if joint.fresh is None else joint.size))


def _none() -> tuple[Ints, Ints, Floats]:
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
