"""The memories that may take part in a recall, with cached counts over them."""

from __future__ import annotations

import io
import json
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arrays import NO_ROWS, Flags, Ints, Rows
from memlab.kernel.index import GroupLengths, Grown, Words, group_lengths, words_of
from memlab.kernel.privacy import refuse
from memlab.kernel.schema import MEMORY, RECALLABLE, SCOPES, STATUSES, VISIBILITIES, normalise_word
from memlab.kernel.state import State, ViewerState, visible_rows

# A Polars expression over the memories as a filter, and as data in a log.
#
# Polars serialises a Python function as a pickle, and reading a pickle runs code. So every node of a logged expression
# is checked against a list of harmless nodes before it is read. Lists of values, which Polars serialises as Arrow
# buffers, are logged as plain values. An expression that calls Python can filter, but cannot be read from a log.


# The columns that a filter may read.
_COLUMNS = ("id", *MEMORY)
_LASTING = {
    "id",
    "created",
    *(n for n, c in MEMORY.items() if c.storage not in ("num", "bool", "time")),
}
"""Columns whose values change only when ``State.changes`` does.

Use and feedback change the other columns at every event.
"""

# The nodes, aggregates, functions and scalars of Polars that only compute. Anything else is not read from a log.
# fmt: off
_NODES = {"Agg", "BinaryExpr", "Cast", "Eval", "Function", "Len", "Over", "Ternary"}
_AGGREGATES = {"Min", "Max", "Median", "NUnique", "First", "Last", "Mean", "Count", "Sum", "Std", "Var"}
_FUNCTIONS = {
    "Abs", "Boolean", "Ceil", "Clip", "Coalesce", "Exp", "FillNull", "Floor", "ListExpr", "Log", "MaxHorizontal",
    "MinHorizontal", "Negate", "NullCount", "Pow", "Quantile", "Rank", "Round", "Sign", "StringExpr", "SumHorizontal",
    "TemporalExpr",
}
_SCALARS = {
    "Boolean", "Date", "Datetime", "DatetimeOwned", "Duration", "Float32", "Float64", "Int8", "Int16", "Int32",
    "Int64", "String", "StringOwned", "Time", "UInt8", "UInt16", "UInt32", "UInt64",
}
# fmt: on
_DYNAMIC = {"Float", "Int", "Str"}
_LISTED = {str(kind): kind for kind in (pl.String, pl.Int64, pl.Float64, pl.Boolean)}


@dataclass(frozen=True)
class Where:
    """A Polars expression over the columns of ``lab.memories`` as a filter.

    ``text`` is the form of the filter in the log, by which filters are compared. If ``plain`` is
    true, the filter can be read from the log.
    """

    text: str
    plain: bool
    expression: pl.Expr = field(compare=False, repr=False)

    @classmethod
    def of(cls, expression: object) -> Where:
        """Build a filter from a checked Polars expression.

        Parameters
        ----------
        expression
            A Polars expression over columns of ``lab.memories`` that gives true or false.

        Returns
        -------
        Where
            The expression with its form in the log.

        Raises
        ------
        InputError
            If it is no expression, or has several outputs.
        UnknownName
            If it reads a column that memories do not have.
        PrivacyError
            If it contains a secret.

        Examples
        --------
        >>> Where.of(pl.col("importance") > 0.5).plain
        True
        """
        if not isinstance(expression, pl.Expr):
            raise InputError(
                f'where must be a Polars expression, such as pl.col("kind") == "fact", not {expression!r:.60}.'
            )
        if expression.meta.has_multiple_outputs():
            raise InputError(
                f"where must give one column, true or false, but {_clip_expression(expression)} gives several."
            )
        for name in expression.meta.root_names():
            if name not in _COLUMNS:
                raise UnknownName("column of the memories", name, _COLUMNS)
        text = _serialise(expression)
        where = cls(str(expression) if text is None else text, text is not None, expression)
        refuse(where.text, "filter")
        return where

    @classmethod
    def read(cls, text: str) -> Where:
        """Restore a filter from its form in the log.

        Parameters
        ----------
        text
            The form of the filter in the log.

        Returns
        -------
        Where
            The filter of the logged recall.

        Raises
        ------
        InputError
            If a part of it could do more than compute, or if another version of Polars wrote it.
        """
        try:
            tree = json.loads(text)
            if not _is_plain(tree):
                raise InputError(
                    "The logged filter contains a part, such as a Python function, that "
                    "is not loaded from a log because it could run any code. Pass the filter again."
                )
            return cls(
                text,
                True,
                pl.Expr.deserialize(io.StringIO(json.dumps(_pack_buffers(tree))), format="json"),
            )
        except (pl.exceptions.PolarsError, json.JSONDecodeError, TypeError, OverflowError) as error:
            raise InputError(
                f"The logged filter was written by another version of Polars and cannot be read: {error}. Pass it again."
            ) from None

    @property
    def lasting(self) -> bool:
        """Whether the filter's result can change only when ``State.changes`` changes."""
        return self.plain and _LASTING.issuperset(self.expression.meta.root_names())

    def mask(self, state: State) -> Flags:
        """Evaluate the filter for each memory of a state, treating null as false.

        Parameters
        ----------
        state
            The state whose memories are filtered.

        Returns
        -------
        numpy.ndarray
            bool[memories].

        Raises
        ------
        InputError
            If the expression fails, or gives anything but one boolean per memory.
        """
        frame, visible = (
            memory_columns(state, self.expression.meta.root_names() or ["id"]),
            visible_rows(state),
        )
        frame = frame if visible is None else frame[visible]
        try:
            result = frame.select(self.expression.alias("where")).to_series()
        # A Python function in the expression may raise anything.
        except Exception as error:
            raise InputError(
                f"The filter {_clip_expression(self.expression)} cannot be computed: {error}"
            ) from error
        if result.dtype != pl.Boolean:
            raise InputError(
                f"The filter {_clip_expression(self.expression)} gives values of type "
                f"{result.dtype}. It must give true or false."
            )
        if len(result) != len(frame):
            remedy = (
                "It aggregates: compare a column with the aggregate"
                if len(result) == 1
                else "Return one value per memory"
            )
            raise InputError(
                f"The filter {_clip_expression(self.expression)} gives {len(result):,} values for {len(frame):,} memories. "
                f"{remedy}."
            )
        mask: Flags = result.fill_null(False).to_numpy()
        if visible is None:
            return mask
        every = np.zeros(len(state), dtype=np.bool_)
        every[visible] = mask
        return every


def memory_columns(state: State, names: Sequence[str]) -> pl.DataFrame:
    """Return a frame with the named columns of ``lab.memories``.

    Other columns are not built, because building all takes seconds for a million memories.
    """
    return pl.DataFrame([state.column(name) for name in dict.fromkeys(names)])


# -- as data ----------------------------------------------------------------------------------------------------------


def _serialise(expression: pl.Expr) -> str | None:
    """Serialise an expression as JSON; return None if a log cannot store it."""
    try:
        tree = _unpack_buffers(json.loads(expression.meta.serialize(format="json")))
    except (pl.exceptions.PolarsError, TypeError):
        return None
    return json.dumps(tree, separators=(",", ":")) if _is_plain(tree) else None


def _unpack_buffers(node: Any) -> Any:
    """Convert Polars' binary buffers in a serialised expression to value lists."""
    if isinstance(node, list):
        return [_unpack_buffers(item) for item in node]
    if not isinstance(node, dict):
        return node
    # Polars writes a list of values as a Series or as a Scalar of type List.
    literal = node.get("Literal")
    if isinstance(literal, dict):
        shape = (
            "Series"
            if "Series" in literal
            else "List"
            if "List" in (literal.get("Scalar") or ())
            else None
        )
        if shape is None:
            return node
        values = pl.select(
            pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
        ).to_series()
        if shape == "List":
            values = values.explode(empty_as_null=False)
        values = values.cast(pl.Int64) if values.dtype.is_integer() else values
        if str(values.dtype) not in _LISTED:
            raise TypeError(f"a log cannot store a list of {values.dtype}")
        return {"Values": {"type": str(values.dtype), "shape": shape, "items": values.to_list()}}
    return {key: _unpack_buffers(value) for key, value in node.items()}


def _pack_buffers(node: Any) -> Any:
    """Convert the value lists of a serialised expression to Polars' binary buffers."""
    if isinstance(node, list):
        return [_pack_buffers(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "Values" in node:
        kind = _LISTED[node["Values"]["type"]]
        items = pl.Series(node["Values"]["items"], dtype=kind, strict=True)
        value = (
            pl.lit(items)
            if node["Values"]["shape"] == "Series"
            else pl.lit(items.to_list(), dtype=pl.List(kind))
        )
        return json.loads(value.meta.serialize(format="json"))
    return {key: _pack_buffers(value) for key, value in node.items()}


def _is_plain(node: Any) -> bool:
    """Return whether a serialised Polars expression has only permitted operations."""
    # Each kind of node has its own form; an unknown kind or form is refused.
    if node == "Element" or node == "Len":
        return True
    if not isinstance(node, dict) or len(node) != 1:
        return False
    ((kind, inner),) = node.items()
    if kind == "Column":
        return isinstance(inner, str)
    if kind == "Literal":
        return _is_plain_literal(inner)
    if kind == "Values":
        return (
            isinstance(inner, dict)
            and set(inner) == {"type", "shape", "items"}
            and inner["type"] in _LISTED
            and inner["shape"] in ("Series", "List")
            and isinstance(inner["items"], list)
            and all(item is None or isinstance(item, str | int | float) for item in inner["items"])
        )
    if kind == "Alias":
        return (
            isinstance(inner, list)
            and len(inner) == 2
            and _is_plain(inner[0])
            and isinstance(inner[1], str)
        )
    if kind not in _NODES or not isinstance(inner, dict):
        return False
    if kind == "Agg":
        return inner.keys() <= _AGGREGATES and all(map(_is_operand, inner.values()))
    if kind == "Function":
        function = inner.get("function")
        name = (
            next(iter(function), None)
            if isinstance(function, dict) and len(function) == 1
            else function
        )
        return (
            set(inner) == {"input", "function"}
            and name in _FUNCTIONS
            and _is_operand(inner["input"])
        )
    return all(_is_operand(value) for value in inner.values())


def _is_operand(value: Any) -> bool:
    """Return whether a value is harmless inside a serialised expression.

    A harmless value is a plain expression, a list of harmless values, a scalar, or options of an
    aggregate.
    """
    if isinstance(value, list):
        return all(map(_is_operand, value))
    if isinstance(value, dict):
        return _is_plain(value) or (
            bool(value) and all(key[:1].islower() and _is_operand(value[key]) for key in value)
        )
    return True


def _is_plain_literal(inner: Any) -> bool:
    """Return whether a literal is a plain scalar or a string that names a cast's type."""
    if isinstance(inner, str):
        return True
    if not isinstance(inner, dict) or len(inner) != 1:
        return False
    ((sort, value),) = inner.items()
    if sort == "Scalar":
        return value == "Null" or (isinstance(value, dict) and value.keys() <= _SCALARS)
    return sort == "Dyn" and isinstance(value, dict) and value.keys() <= _DYNAMIC


def _clip_expression(expression: pl.Expr) -> str:
    """Return an expression as text for a message, at most 80 characters."""
    text = " ".join(str(expression).split())
    return text if len(text) <= 80 else f"{text[:79]}…"


# The filters of a recall: words of a few columns, the viewer, and a Polars expression over the memories.
#
# Filters apply before the search: an excluded memory is no candidate, and its words count in no statistic. They are
# logged with the slate, so that the query can be repeated.


WordOrWords = str | Sequence[str] | None

# The columns that a filter names by words, with their vocabularies; None for free words.
_VOCABULARIES = {
    "scope": SCOPES,
    "visibility": VISIBILITIES,
    "status": STATUSES,
    "branch": None,
    "season": None,
}


@dataclass(frozen=True)
class Filters:
    """The filters of a recall.

    A filter that is None admits every memory, except as stated below.

    Attributes
    ----------
    status
        The admitted statuses. If this is None, the recallable statuses are admitted.
    branch
        The admitted branches. Memories without a branch are admitted too.
    season
        The admitted seasons. Memories without a season are admitted too. If this is None, memories
        of any season are excluded.
    viewer
        The creator who reads. Memories that are private to another creator are excluded.
    without
        The projects that are excluded because memory is off for them. The element None stands for
        memories without a project. ``without=None`` excludes every memory.
    """

    scope: tuple[str, ...] | None = None
    branch: tuple[str, ...] | None = None
    visibility: tuple[str, ...] | None = None
    status: tuple[str, ...] | None = None
    season: tuple[str, ...] | None = None
    viewer: str | None = None
    where: Where | None = None
    without: tuple[str | None, ...] | None = ()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments with which ``Filters.of`` would build these filters."""
        arguments = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "without"
        }
        return arguments | {"where": None if self.where is None else self.where.expression}

    @classmethod
    def of(
        cls,
        *,
        scope: WordOrWords = None,
        branch: WordOrWords = None,
        visibility: WordOrWords = None,
        status: WordOrWords = None,
        season: WordOrWords = None,
        viewer: str | None = None,
        where: pl.Expr | None = None,
    ) -> Filters:
        """Build the filters of a recall, checking their values.

        Parameters
        ----------
        scope, visibility, status
            One word or several of the vocabulary of the column.
        branch, season
            One name or several.
        viewer
            The user or agent who reads the results.
        where
            A Polars expression over columns of ``lab.memories``.

        Returns
        -------
        Filters
            The checked filters, with words sorted.

        Raises
        ------
        InputError
            If an argument has the wrong type or is an empty list.
        UnknownName
            If a word or a column does not exist.
        PrivacyError
            If an argument contains a secret.

        Examples
        --------
        >>> Filters.of(status=["superseded", "active"]).status
        ('active', 'superseded')
        """
        requested = {
            "scope": scope,
            "visibility": visibility,
            "status": status,
            "branch": branch,
            "season": season,
        }
        if where is None and viewer is None and all(words is None for words in requested.values()):
            return NO_FILTERS
        if viewer is not None:
            if not isinstance(viewer, str) or not viewer:
                raise InputError(
                    f'viewer must be the name of a user or an agent, such as "agent:coder", not {viewer!r:.60}.'
                )
            refuse(viewer, "viewer")
        words = {name: _check_words(name, value) for name, value in requested.items()}
        return cls(**words, viewer=viewer, where=None if where is None else Where.of(where))

    @classmethod
    def read(cls, logged: Mapping[str, Any]) -> Filters:
        """Restore the filters of a recall from a slate.

        Parameters
        ----------
        logged
            The result of ``Filters.logged``.

        Returns
        -------
        Filters
            The filters of the logged recall.

        Raises
        ------
        InputError
            If an expression cannot be read.
        """
        if "where-text" in logged:
            raise InputError(
                f"The recall had a filter expression, and the log contains only the text of it: {logged['where-text']}. "
                "Pass where again."
            )
        words = {name: tuple(logged[name]) if name in logged else None for name in _VOCABULARIES}
        where = logged.get("where")
        return cls(
            **words,
            viewer=logged.get("viewer"),
            where=None if where is None else Where.read(where),
            without=tuple(logged.get("without", ())),
        )

    def logged(self) -> dict[str, Any]:
        """Return the filters as data for a slate, omitting filters that admit everything."""
        if self is NO_FILTERS:
            return {}
        logged: dict[str, Any] = {
            name: list(words)
            for name in _VOCABULARIES
            if (words := getattr(self, name)) is not None
        }
        if self.viewer is not None:
            logged["viewer"] = self.viewer
        if self.without:
            logged["without"] = list(self.without)
        if self.where is not None:
            logged["where" if self.where.plain else "where-text"] = self.where.text
        return logged


# Most recalls have no filters. They share one object, so that a test of identity is enough.
NO_FILTERS = Filters()


def _check_words(name: str, requested: WordOrWords) -> tuple[str, ...] | None:
    """Return one filter's checked and sorted values without duplicates, or None without a filter."""
    if requested is None:
        return None
    vocabulary = _VOCABULARIES[name]
    words = (
        [requested]
        if isinstance(requested, str)
        else list(requested)
        if isinstance(requested, Sequence)
        else [None]
    )
    if not words:
        ways = f" of {', '.join(vocabulary)}" if vocabulary else ""
        raise InputError(f"{name}=[] admits no memory. Name at least one{ways}.")
    for index, word in enumerate(words):
        if not isinstance(word, str) or not word:
            raise InputError(f"{name} must be a word or a list of words, not {requested!r:.60}.")
        if vocabulary is not None:
            words[index] = word = normalise_word(word, vocabulary)
        if vocabulary is not None and word not in vocabulary:
            raise UnknownName(name, word, vocabulary)
        refuse(word, name)
    return tuple(sorted(set(words)))


_POPULATIONS = 16
"""Maximum number of cached populations of a state, one per set of recent filters."""

Mask = Flags


@dataclass(frozen=True)
class Lengths:
    """Statistics of text lengths, in words, of the first memories of a population.

    ``count`` is the number of these memories, ``total`` the sum of their lengths, and ``sessions``
    the sum of each session. ``parts`` is the number of passages, where a short memory is one
    passage.
    """

    count: int
    total: int
    sessions: GroupLengths
    parts: int

    @cached_property
    def mean(self) -> float:
        """The mean length of a memory in words."""
        return self.total / self.count if self.count else 0.0

    @cached_property
    def mean_of_parts(self) -> float:
        """The mean length of a passage in words."""
        return self.total / self.parts if self.parts else 0.0


@dataclass(frozen=True)
class Population:
    """The memories that may take part in a recall.

    BM25 uses document frequencies of the population, so the words of one project do not affect another.

    Attributes
    ----------
    mask
        The memories that take part; None if all do.
    speakers
        The codes of the speakers of these memories.
    """

    mask: Mask | None
    rows: Rows
    speakers: Ints
    key: Hashable
    exact: bool = False
    """Whether the search must not use an index of all memories, because some are hidden from the viewer."""
    _lengths: dict[str | None, Lengths] = field(default_factory=dict, repr=False, compare=False)
    _newest: list[tuple[int, int]] = field(default_factory=list, repr=False, compare=False)
    _names: list[frozenset[str]] = field(default_factory=list, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.rows)

    def lengths(self, state: State, words: Words) -> Lengths:
        """Return statistics of the text lengths of the population, in indexed words.

        The result is cached by language. Only memories that were added since are counted.
        """
        cached = self._lengths.get(words.language)
        if cached is None or cached.count < len(self):
            groups, lengths = state.contexts.codes, words.lengths
            if cached is None:
                rows = None if self.mask is None else self.rows
                own = lengths if rows is None else lengths[rows]
                sessions = group_lengths(groups, lengths, rows=rows)
                cached = Lengths(
                    len(self), int(own.sum()), sessions, self._count_passages(words, self.rows)
                )
            else:
                added = self.rows[cached.count :]
                sessions = cached.sessions.with_rows(groups[added], lengths[added])
                total, parts = (
                    cached.total + int(lengths[added].sum()),
                    cached.parts + self._count_passages(words, added),
                )
                cached = Lengths(len(self), total, sessions, parts)
            self._lengths[words.language] = cached
        return cached

    def _count_passages(self, words: Words, rows: Rows) -> int:
        """Return the number of passages of ``rows``, the last rows of the population."""
        if words.passages is None or not len(rows):
            return len(rows)
        memory_of = words.passages.of
        memory_of = self.keep_members(memory_of[memory_of.searchsorted(rows[0]) :])
        return len(rows) + int(np.count_nonzero(memory_of[1:] == memory_of[:-1]))

    def newest(self, state: State) -> int:
        """Return the creation time of the newest memory in microseconds UTC.

        The population must not be empty. Only added memories are compared: a pass over a million costs a third of a
        millisecond.
        """
        count, instant = self._newest[0] if self._newest else (0, None)
        if count < len(self):
            latest = int(state.numbers["created"].values[self.rows[count:]].max())
            instant = latest if instant is None else max(instant, latest)
            self._newest[:] = [(len(self), instant)]
        assert instant is not None
        return instant

    def names(self, state: State) -> frozenset[str]:
        """Return the words that occur in the names of the population's speakers."""
        if not self._names:
            vocabulary = state.names["speaker"].vocabulary
            self._names.append(
                frozenset(
                    word for code in self.speakers.tolist() for word in words_of(vocabulary[code])
                )
            )
        return self._names[0]

    @property
    def search(self) -> dict[str, Any]:
        """The arguments of ``Vectors.top`` that restrict the search to the population."""
        if self.mask is None:
            return {}
        return {"rows": self.rows, "mask": self.mask, "key": self.key, "exact": self.exact}

    def keep_members(self, rows: Rows) -> Rows:
        """Return those of the given rows that belong to the population."""
        return rows if self.mask is None else rows[self.mask[rows]]


@dataclass(frozen=True)
class _CachedPopulation:
    """A cached population of the first ``size`` memories.

    ``changes`` and ``valid_at`` identify the state for which it is valid. ``rows`` and ``mask`` are
    growing buffers.
    """

    changes: int
    valid_at: int | None
    size: int
    population: Population
    rows: Grown
    mask: Grown


class Populations:
    """A cache of the populations of recent filters.

    A population is valid until a memory changes in a column that filters read. If its expression reads columns that
    recalls and feedback change, it is valid until the next event. Added memories are filtered and counted alone, because
    counting a million memories again takes some ten milliseconds.
    """

    def __init__(self) -> None:
        self._cache: WeakKeyDictionary[State, OrderedDict[Hashable, _CachedPopulation]] = (
            WeakKeyDictionary()
        )

    def get(
        self, state: State, *, project: str | None, session: str | None, filters: Filters
    ) -> Population:
        """Return the memories that a query from this project and session may recall."""
        cache = self._cache.setdefault(state, OrderedDict())
        key = (project, session, filters)
        where = filters.where
        valid_at = None if where is None or where.lasting else state.seq
        cached = cache.get(key)
        if cached is not None and (cached.changes, cached.valid_at) == (state.changes, valid_at):
            if cached.size == state.rows and (where is None or where.plain):
                cache.move_to_end(key)
                return cached.population
            # An expression may aggregate over all memories, so an added memory can change its value for others.
            cached = cached if where is None and cached.size < state.rows else None
        else:
            cached = None
        start = 0 if cached is None else cached.size
        mask = apply_filters(state, project=project, session=session, filters=filters, start=start)
        entry = _extend_population(state, mask, key, valid_at, cached)
        cache[key] = entry
        cache.move_to_end(key)
        while len(cache) > _POPULATIONS:
            cache.popitem(last=False)
        return entry.population


def apply_filters(
    state: State, *, project: str | None, session: str | None, filters: Filters, start: int = 0
) -> Mask:
    """Return a mask of the memories from row ``start`` on that may be recalled.

    A memory must have a recallable status (or one of ``status``), and belong to the project, to
    none, or to the global scope. A memory with the scope "session" must belong to the session. A
    memory must also pass the filters of seasons, branches, scopes, visibilities, viewer and
    expression. Projects for which memory is off are excluded.
    """

    def has_any(column: str, *words: str | None) -> Mask:
        """Return a mask of memories, from ``start`` on, whose column has one of the values."""
        return state.names[column].is_in(words, start)

    # Sorting filters by selectivity does not help, because each is one pass over a column of codes.
    mask = has_any("status", *(RECALLABLE if filters.status is None else filters.status))
    if project is not None:
        mask &= has_any("project", project, None) | has_any("scope", "global")
    is_bound = has_any("scope", "session")
    if is_bound.any():
        mask &= ~is_bound | (has_any("session", session or ""))
    if state.names["season"].has_values:
        mask &= has_any("season", *(filters.season or ()), None)
    if filters.scope is not None:
        mask &= has_any("scope", *filters.scope)
    if filters.visibility is not None:
        mask &= has_any("visibility", *filters.visibility)
    if filters.branch is not None:
        mask &= has_any("branch", *filters.branch, None)
    if filters.viewer is not None:
        mask &= ~has_any("visibility", "private") | has_any("creator", filters.viewer)
    if filters.without is None:
        mask[:] = False
    elif filters.without:
        mask &= ~has_any("project", *filters.without)
    if filters.where is not None:
        mask &= filters.where.mask(state)[start:]
    return mask


def _extend_population(
    state: State, fresh: Mask, key: Hashable, valid_at: int | None, cached: _CachedPopulation | None
) -> _CachedPopulation:
    """Return the cached population, or an empty one, extended by memories of the state's last rows.

    ``fresh`` is a mask of these rows.
    """
    start = state.rows - len(fresh)
    rows = Grown(NO_ROWS) if cached is None else cached.rows
    mask = Grown(np.empty(0, dtype=np.bool_)) if cached is None else cached.mask
    added = np.flatnonzero(fresh) + start
    rows.append(added)
    if rows.size < state.rows:
        if mask.size < start:
            # All earlier memories took part, so they had no mask.
            mask.append(np.ones(start - mask.size, dtype=np.bool_))
        mask.append(fresh)
    speakers = (
        state.names["speaker"].codes[start:]
        if len(added) == len(fresh)
        else state.names["speaker"].codes[added]
    )
    present = np.flatnonzero(np.bincount(speakers[speakers >= 0]))
    population = Population(
        mask=mask.columns[0] if mask.size else None,
        rows=rows.columns[0],
        speakers=present if cached is None else np.union1d(cached.population.speakers, present),
        key=key,
        exact=isinstance(state, ViewerState),
        _lengths={} if cached is None else dict(cached.population._lengths),
        _newest=[] if cached is None else list(cached.population._newest),
    )
    return _CachedPopulation(state.changes, valid_at, state.rows, population, rows, mask)
