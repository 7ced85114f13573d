"""Find the pairs of memories to compare: stored memories and new memories."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import NO_ROWS, Components, Flags, Floats, Ints, Values
from memlab.kernel.index import Vectors, best
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Filters, Moment, Population
from memlab.kernel.state import EVERYONE, State
from memlab.subjects.reading.claims import Statement
from memlab.subjects.reading.comparison import read_text
from memlab.subjects.reading.denials import find_name, names_of_change, reports_change

USER = "user"
"""The speaker of a memory that names no speaker."""


class PairedState:
    """The memories of ``state``, followed by the new memories of ``fresh``.

    Row ``len(state) + i`` is the new memory ``i``. ``before`` has the row before each new memory in
    its session, or -1. Without ``fresh``, the new memories are already stored in ``state``.
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
        """The number of stored memories; ``total`` also counts new memories."""
        self.total = state.rows + (0 if fresh is None else fresh.rows)
        self.before = before

    def side(self, rows: Ints) -> RowView:
        """Return a view of the features of the rows, which must ascend strictly."""
        return RowView(self, rows)

    def home(self, row: int) -> tuple[State, int]:
        """Return the state that contains a row, and the row's number in that state."""
        if self.fresh is not None and row >= self.size:
            return self.fresh, row - self.size
        return self.state, row

    def vectors(self, rows: Ints) -> tuple[Vectors, Ints]:
        """Return the vector store that holds the rows, and the rows' numbers in that store.

        The rows are either all stored or all new.
        """
        if self.fresh is not None and len(rows) and rows[0] >= self.size:
            return self.fresh.vectors, rows - self.size
        return self.state.vectors, rows


class RowView:
    """Some rows of a ``PairedState``, with their features, columns and texts."""

    def __init__(self, joint: PairedState, rows: Ints) -> None:
        self.rows, self.pack = rows, joint.pack
        boundary = int(np.searchsorted(rows, joint.size)) if joint.fresh is not None else len(rows)
        self._moments = [Moment(joint.state, joint.pack, rows[:boundary], joint.now)]
        if joint.fresh is not None and boundary < len(rows):
            local_rows = rows[boundary:] - joint.size
            fresh_moment = Moment(joint.fresh, joint.pack, local_rows, joint.now)
            if joint.before is not None:
                fresh_moment.give(answers=_follows_question(joint, joint.before[local_rows]))
            self._moments = [*(self._moments if boundary else []), fresh_moment]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Values:
        """Return the values of a feature for all rows."""
        return _join_columns([moment[name] for moment in self._moments])

    def word(self, column: str) -> Values:
        """Return a text column as an object array, with None for null."""
        return _join_columns([moment.word(column) for moment in self._moments])

    def number(self, column: str) -> Values:
        """Return the values of a numeric column for all rows."""
        return _join_columns([moment.number(column) for moment in self._moments])

    @cached_property
    def statements(self) -> Values:
        """The texts as ``Statement`` objects, which compare words and denials."""
        return _to_objects([Statement(text) for text in self.texts])

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the rows, with "" for a missing text."""
        return [
            text or ""
            for moment in self._moments
            for text in moment.state.texts.to_list(moment.rows)
        ]

    @cached_property
    def readings(self) -> Values:
        """The texts as ``Reading`` objects, which are split into statements."""
        return _to_objects([read_text(text) for text in self.texts])

    @cached_property
    def extracted(self) -> Values:
        """Whether each memory was extracted from a message, bool[rows]."""
        reasons = [
            moment.state.notes["reason"].value_at(row)
            for moment in self._moments
            for row in moment.rows.tolist()
        ]
        return np.array(
            [reason is not None and reason.startswith("extracted by ") for reason in reasons],
            dtype=np.bool_,
        )

    @cached_property
    def files(self) -> list[set[str]]:
        """The files of each memory."""
        return [
            set(moment.state.lists["files"].value_at(row) or ())
            for moment in self._moments
            for row in moment.rows.tolist()
        ]

    @cached_property
    def speakers(self) -> Values:
        """The speakers in lower case, with "user" for a memory without a speaker."""
        words = self.word("speaker").tolist()
        return _to_objects(
            [
                USER if word is None or not word.strip() else word.strip().casefold()
                for word in words
            ]
        )


def _to_objects(values: list[Any]) -> Values:
    """Return a list of values as an object array."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def _join_columns(parts: list[Values]) -> Values:
    """Return the values of stored rows and of new rows as one column."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _follows_question(joint: PairedState, before: Ints) -> Values:
    """Return whether each row directly follows a question."""
    is_question = joint.state.asks.values
    if joint.fresh is not None:
        is_question = np.concatenate([is_question, joint.fresh.asks.values])
    return np.asarray((before >= 0) & is_question[np.maximum(before, 0)])


# A new memory is compared with the nearest memories, and with memories of the same subject.
#
# This module decides which memories may be compared at all; policies cannot change that. A new memory is compared with
# the memories that a recall from its scope would return. They belong to its project or to none, to its branch or to
# none, and to its session if the memory is bound to the session. Public memories are compared with public ones, private
# memories also with other private memories of their creator. A memory without a project is compared only with memories
# without a project, because a general statement says nothing about one project. Turns are never compared, because they
# are utterances.


_BATCH = 1 << 22
"""The number of similarities per block, which take 32 MB."""

_FEW = 4
"""The maximum number of new memories that are searched one by one.

Such a search uses the sub-matrix that recalls cache.
"""

_LATE = 64
"""The maximum number of newer rows that are removed from results instead of before the search."""

_READ_FOR_NAMES = 2_000
"""The newest memories in which the names of a report of a change are looked up, in about 10 ms."""

_AMONG = 32
"""The number of neighbours that are read if some of them may not be eligible."""


class Populate(Protocol):
    """A function that returns the memories that a recall may return."""

    def __call__(self, *, project: str | None, session: str | None, filters: Filters) -> Population:
        """Return the memories that a recall in a project and session can return."""


@dataclass(frozen=True)
class Candidates:
    """Pairs of a new and an old row, sorted by new row and then by falling similarity.

    ``rank`` is the rank of the old row among the neighbours of the new row, from 1.
    """

    new: Ints
    old: Ints
    similarity: Floats
    rank: Ints

    def __len__(self) -> int:
        return len(self.new)


@dataclass(frozen=True)
class _Scope:
    """The project, branch, session and viewer of the memories to compare with."""

    project: str | None
    branch: str | None
    session: str | None
    viewer: str | None


class Scopes:
    """The scopes of some ascending new rows; only rows of the same scope are compared."""

    def __init__(self, joint: PairedState, rows: Ints) -> None:
        self.rows = rows
        state = joint.state if joint.fresh is None else joint.fresh
        local = rows - (0 if joint.fresh is None else joint.size)
        names = state.names
        private = joint.state.names["visibility"].has_values or names["visibility"].has_values
        is_bound = names["scope"].codes[local] == names["scope"].code("session")
        is_private = names["visibility"].codes[local] == names["visibility"].code("private")
        keys = (
            names["project"].codes[local],
            names["branch"].codes[local],
            np.where(is_bound, names["session"].codes[local], -1),
            np.where(is_private, names["creator"].codes[local], -2)
            if private
            else np.full(len(local), -1),
        )
        different, group = np.unique(np.stack(keys).astype(np.int64), axis=1, return_inverse=True)
        self.groups: Ints = group.reshape(-1)

        def name(column: str, code: int) -> str | None:
            """Return the name that a code stands for, or None for a negative code."""
            return None if code < 0 else names[column].vocabulary[code]

        self.scopes = [
            _Scope(
                project=name("project", project),
                branch=name("branch", branch),
                session=name("session", session),
                viewer=EVERYONE if creator < -1 else name("creator", creator),
            )
            for project, branch, session, creator in different.T.tolist()
        ]


@lru_cache(maxsize=256)  # equal filters share the cached population of a recall
def _build_filters(branch: str | None, viewer: str | None, unbound: bool) -> Filters:
    """Return filters for a branch and a viewer; `unbound` excludes rows with a project."""
    where = pl.col("project").is_null() if unbound else None
    return replace(Filters.of(branch=branch, where=where), viewer=viewer)


def find_candidates(
    joint: PairedState,
    rows: Ints,
    scopes: Scopes,
    populate: Populate,
    *,
    count: int,
    gone: Flags | None = None,
) -> Candidates:
    """Return the pairs of new and earlier rows that may be linked.

    A new row is paired with its `count` nearest rows by the cosine of their vectors, and with as
    many rows of the same subject. A fact is also paired with every memory of its subject and
    predicate. `rows` ascend and are among those of `scopes`. `gone` (bool[rows]) marks rows that
    are no longer compared.
    """
    groups = scopes.groups[np.searchsorted(scopes.rows, rows)]
    parts = [_no_pairs()]
    for group in np.unique(groups).tolist():
        own_rows = rows[groups == group]
        peers = scopes.rows[(scopes.groups == group) & (scopes.rows < own_rows[-1])]
        if gone is not None:
            peers = peers[~gone[peers]]
        parts.append(
            _find_in_scope(joint, own_rows, peers, scopes.scopes[group], populate, count, gone)
        )
    new, old, similarity = _join_pairs(parts)
    order = np.lexsort((old, -similarity, new))
    new, old, similarity = new[order], old[order], similarity[order]
    start = np.flatnonzero(np.diff(new, prepend=-1) > 0)
    rank = np.arange(len(new)) - np.repeat(start, np.diff(start, append=len(new))) + 1
    return Candidates(new, old, similarity, rank)


def _find_in_scope(
    joint: PairedState,
    rows: Ints,
    peers: Ints,
    scope: _Scope,
    populate: Populate,
    count: int,
    gone: Flags | None,
) -> tuple[Ints, Ints, Floats]:
    """Return distinct pairs within one scope: new rows, old rows and similarities."""
    state = joint.state
    unbound = scope.project is None and state.names["project"].has_values
    population = populate(
        project=scope.project,
        session=scope.session,
        filters=_build_filters(scope.branch, scope.viewer, unbound),
    )
    below = (
        joint.size
        if joint.fresh is not None
        else int(min(rows[0], peers[0] if len(peers) else rows[0]))
    )
    old_rows = population.rows[: int(np.searchsorted(population.rows, below))]
    eligible = _eligible_rows(state, gone)
    pairs = [_no_pairs()]
    if count:
        neighbours = [
            _find_nearest_old(joint, rows, old_rows, population, eligible, count),
            _find_nearest_new(joint, rows, peers, count),
        ]
        pairs.append(_keep_nearest(*_join_pairs(neighbours), count))
    pairs += _find_by_subject(
        joint, rows, old_rows if eligible is None else old_rows[eligible[old_rows]], peers, count
    )
    if joint.pack.settings["linking"] == "corrections" and scope.project is not None:
        pairs += _find_by_names(joint, rows, old_rows)
    new, old, similarity = _join_pairs(pairs)
    _, distinct = np.unique(new * joint.total + old, return_index=True)
    return new[distinct], old[distinct], similarity[distinct]


def _join_pairs(pairs: list[tuple[Ints, Ints, Floats]]) -> tuple[Ints, Ints, Floats]:
    """Concatenate several arrays of pairs."""
    new, old, similarity = zip(*pairs, strict=True)
    return np.concatenate(new), np.concatenate(old), np.concatenate(similarity)


def _keep_nearest(
    new: Ints, old: Ints, similarity: Floats, count: int
) -> tuple[Ints, Ints, Floats]:
    """Return the `count` most similar pairs for each new row."""
    order = np.lexsort((old, -similarity, new))
    new = new[order]
    start = np.flatnonzero(np.diff(new, prepend=-1) > 0)
    rank = np.arange(len(new)) - np.repeat(start, np.diff(start, append=len(new)))
    selected = order[rank < count]
    return new[rank < count], old[selected], similarity[selected]


def _eligible_rows(state: State, gone: Flags | None) -> Flags | None:
    """Return a mask of the stored rows that can be linked, or None if every row can.

    Turns and rows marked as gone cannot.
    """
    kinds = state.names["kind"]
    eligible = kinds.codes != kinds.code("turn")
    if gone is not None:
        eligible &= ~gone[: len(state)]
    return None if eligible.all() else eligible


def _find_nearest_old(
    joint: PairedState,
    rows: Ints,
    old_rows: Ints,
    population: Population,
    eligible: Flags | None,
    count: int,
) -> tuple[Ints, Ints, Floats]:
    """Return pairs of each new row with its ``count`` nearest eligible stored memories."""
    old_rows = joint.state.drop_unembedded(old_rows)
    if not len(old_rows):
        return _no_pairs()
    own, local = joint.vectors(rows)
    queries, vectors = own.take(local), joint.state.vectors
    if len(vectors) <= vectors.exact_up_to and 2 * len(old_rows) >= len(vectors):
        # the matrix of all rows stays valid, but that of a population is rebuilt whenever a row leaves it
        is_excluded = np.ones(len(vectors), dtype=np.bool_)
        is_excluded[old_rows if eligible is None else old_rows[eligible[old_rows]]] = False
        pairs = [_no_pairs()]
        nearest = vectors.nearest(queries, count, excluded=is_excluded)
        for row, (old, cosine) in zip(rows.tolist(), nearest, strict=True):
            pairs.append((np.full(len(old), row), old, cosine))
        return _join_pairs(pairs)
    if len(rows) > _FEW and (len(old_rows) <= vectors.exact_up_to or vectors.attached is None):
        searched = old_rows if eligible is None else old_rows[eligible[old_rows]]
        return _search_blocks(
            rows, queries, lambda block: vectors.similarity(block, searched), searched, count
        )
    limit = max(count, _AMONG) if eligible is not None else count
    newer_count = len(population.rows) - len(old_rows)
    parts = [_no_pairs()]
    for row, query in zip(rows.tolist(), queries, strict=True):
        if newer_count > _LATE:
            old, cosine = vectors.top(query, limit, rows=old_rows)
        else:
            old, cosine = vectors.top(query, limit + newer_count, **population.search)
        is_kept = (old <= old_rows[-1]) & (old >= joint.state.unembedded)
        if eligible is not None:
            is_kept &= eligible[old]
        old, cosine = old[is_kept][:count], cosine[is_kept][:count]
        parts.append((np.full(len(old), row), old, cosine))
    return _join_pairs(parts)


def _find_nearest_new(
    joint: PairedState, rows: Ints, peers: Ints, count: int
) -> tuple[Ints, Ints, Floats]:
    """Return pairs of each row with its ``count`` nearest earlier rows of ``peers``, the new rows of its scope."""
    if not len(peers):
        return _no_pairs()
    vectors, queried = joint.vectors(rows)
    _, local = joint.vectors(peers)
    return _search_blocks(
        rows,
        vectors.take(queried),
        lambda block: vectors.similarity(block, local),
        peers,
        count,
        before=True,
    )


def _search_blocks(
    rows: Ints,
    queries: Components,
    similarities: _Similarities,
    searched: Ints,
    count: int,
    *,
    before: bool = False,
) -> tuple[Ints, Ints, Floats]:
    """Return pairs of each row with its ``count`` nearest `searched` rows, computed in blocks.

    With `before`, only earlier rows count.
    """
    new, old, cosine_parts = [], [], []
    # a few single products are as fast as one matrix product, and do not wait for its threads
    step = 1 if len(rows) <= _FEW else max(1, _BATCH // max(1, len(searched)))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        batch = queries[start : start + step]
        cosines = similarities(batch) if step > 1 else similarities(batch[0])[None, :]
        if before:
            cosines = np.where(searched[None, :] < block[:, None], cosines, -np.inf)
        for row, cosine in zip(block.tolist(), cosines, strict=True):
            selected = best(cosine, count)
            selected = selected[np.isfinite(cosine[selected])]
            new.append(np.full(len(selected), row))
            old.append(searched[selected])
            cosine_parts.append(cosine[selected])
    return np.concatenate(new), np.concatenate(old), np.concatenate(cosine_parts)


class _Similarities(Protocol):
    """A function that returns the similarities of a block of vectors to other vectors."""

    def __call__(self, block: Components, /) -> Floats:
        """Return the similarities of each query vector in a block, f64[block, vectors]."""


def _find_by_names(
    joint: PairedState, rows: Ints, old_rows: Ints
) -> list[tuple[Ints, Ints, Floats]]:
    """Return pairs of reports of a change with recent stored memories of the same name or topic.

    A memory has a name of the report. For a report of a person, two of its words or a rare one suffice. The pairs have
    a similarity of 0, because their texts may use different words.
    """
    # Only recent memories are compared, because each comparison reads both texts.
    side = joint.side(rows)
    columns = side.texts, side.readings, side.word("provenance"), side.word("kind") == "correction"
    reports = [
        (
            row,
            names_of_change(text, stated=stated),
            reading.telling.strong if source != "inferred" else frozenset(),
        )
        for row, text, reading, source, stated in zip(rows.tolist(), *columns, strict=True)
        if reading.telling and (stated or reports_change(text))
    ]
    if not reports:
        return []
    kinds = joint.state.names["kind"]
    recent = old_rows[kinds.codes[old_rows] != kinds.code("turn")][-_READ_FOR_NAMES:]
    before = joint.side(recent)
    topics = [
        reading.telling.strong if reading.telling else frozenset() for reading in before.readings
    ]
    counts = Counter(word for topic in topics for word in topic)
    pairs = []
    for row, names, topic in reports:
        rare = {word for word in topic if counts[word] <= _FEW}
        for other, text, words in zip(recent.tolist(), before.texts, topics, strict=True):
            is_near = len(topic & words) > 1 or not rare.isdisjoint(words)
            if other < row and (is_near or any(find_name(name, text) for name in names)):
                pairs.append((row, other))
    if not pairs:
        return []
    new, old = np.array(pairs, dtype=np.int64).T
    return [(new, old, np.zeros(len(new)))]


def _find_by_subject(
    joint: PairedState, rows: Ints, old_rows: Ints, peers: Ints, count: int
) -> list[tuple[Ints, Ints, Floats]]:
    """Return pairs of new rows with earlier memories of the same subject.

    These are the nearest memories of the subject, and all with the same predicate.
    """
    subjects = _read_names(joint, rows, "subject")
    with_subject = np.flatnonzero(subjects != None)  # noqa: E711  by element
    if not len(with_subject):
        return []
    rows_by_subject = {name: np.concatenate([_select_rows(joint, rows, "subject", name) for rows in (old_rows, peers)])
             for name in dict.fromkeys(subjects[with_subject].tolist())}  # fmt: skip
    predicates = _read_names(joint, rows, "predicate")
    parts = []
    for position in with_subject.tolist():
        others = rows_by_subject[subjects[position]]
        others = others[: int(np.searchsorted(others, rows[position]))]
        if len(others):
            parts.append(
                _find_by_fact(joint, int(rows[position]), others, predicates[position], count)
            )
    return parts


def _find_by_fact(
    joint: PairedState, row: int, others: Ints, predicate: str | None, count: int
) -> tuple[Ints, Ints, Floats]:
    """Pair a new fact with the ``count`` nearest of the rows ``others``, and with all of them of its predicate.

    Return three arrays of equal length: the new fact's row, repeated; the rows of the others; and their cosines.
    """
    vectors, local = joint.vectors(np.array([row]))
    query = vectors.take(local)[0]
    boundary = int(np.searchsorted(others, joint.size)) if joint.fresh is not None else len(others)
    cosine = np.concatenate(
        [
            vectors.similarity(query, local_rows)
            for vectors, local_rows in map(joint.vectors, (others[:boundary], others[boundary:]))
        ]
    )
    is_selected = np.zeros(len(others), dtype=np.bool_)
    is_selected[best(cosine, count)] = True
    if predicate is not None:
        is_selected |= np.isin(others, _select_rows(joint, others, "predicate", predicate))
    return np.full(int(is_selected.sum()), row), others[is_selected], cosine[is_selected]


def _select_rows(joint: PairedState, rows: Ints, column: str, name: str) -> Ints:
    """Return those of the ascending ``rows`` whose value in a column is ``name``."""
    boundary = int(np.searchsorted(rows, joint.size)) if joint.fresh is not None else len(rows)
    names = joint.state.names[column]
    stored_matches: Ints = rows[:boundary][names.codes[rows[:boundary]] == names.code(name)]
    if joint.fresh is None or boundary == len(rows):
        return stored_matches
    fresh_names = joint.fresh.names[column]
    return np.concatenate(
        [
            stored_matches,
            rows[boundary:][
                fresh_names.codes[rows[boundary:] - joint.size] == fresh_names.code(name)
            ],
        ]
    )


def _read_names(joint: PairedState, rows: Ints, column: str) -> Values:
    """Return the values of new rows in a text column, with None for null."""
    state = joint.state if joint.fresh is None else joint.fresh
    return state.names[column].to_objects(rows - (0 if joint.fresh is None else joint.size))


def _no_pairs() -> tuple[Ints, Ints, Floats]:
    """Return empty arrays of new rows, old rows and similarities."""
    return NO_ROWS, NO_ROWS, np.empty(0)
