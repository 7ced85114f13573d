"""The memories that may take part in a recall, and what is counted over them once, not at every question."""

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
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.index import GroupLengths, Grown, Words, group_lengths, words_of
from memlab.kernel.privacy import refuse
from memlab.kernel.schema import MEMORY, RECALLABLE, SCOPES, STATUSES, VISIBILITIES, normalise_word
from memlab.kernel.state import Seen, State, seen_rows

__all__ = [
    "NO_FILTERS",
    "Filters",
    "Lengths",
    "Population",
    "Populations",
    "Where",
    "WordOrWords",
    "admitted",
    "memory_columns",
]


# A Polars expression over the memories as a filter, and as data that a log may hold.
#
# Polars writes a Python function into an expression as a pickle, and reading one runs it. So what is read back is
# checked first, node by node, against what is known to compute and nothing else; lists of values, which Polars writes
# as Arrow buffers, are logged as plain values. An expression that calls Python filters, but cannot be read back.


_COLUMNS = ("id", *MEMORY)
_LASTING = {
    "id",
    "created",
    *(n for n, c in MEMORY.items() if c.storage not in ("num", "bool", "time")),
}
"""Columns that change only with the state's generation; use and feedback change the others."""

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
    """A Polars expression over the columns of ``lab.memories``. ``text`` is its form in the log, and its identity.

    ``plain`` says that ``text`` can be read back; else it only tells what was asked.
    """

    text: str
    plain: bool
    expression: pl.Expr = field(compare=False, repr=False)

    @classmethod
    def of(cls, expression: object) -> Where:
        """A caller's expression, checked. InputError, UnknownName, PrivacyError.

        >>> Where.of(pl.col("importance") > 0.5).plain
        True
        """
        if not isinstance(expression, pl.Expr):
            raise InputError(
                f'where is a Polars expression, such as pl.col("kind") == "fact", not {expression!r:.60}.'
            )
        if expression.meta.has_multiple_outputs():
            raise InputError(
                f"where gives one column, true or false; {_shown(expression)} gives several."
            )
        for name in expression.meta.root_names():
            if name not in _COLUMNS:
                raise UnknownName("column of the memories", name, _COLUMNS)
        text = _written(expression)
        where = cls(str(expression) if text is None else text, text is not None, expression)
        refuse(where.text, "filter")
        return where

    @classmethod
    def read(cls, text: str) -> Where:
        """What a log holds. InputError for what could do more than compute, and for the form of another version."""
        try:
            tree = json.loads(text)
            if not _is_plain(tree):
                raise InputError("The logged filter holds what is not read back from a log.")
            return cls(
                text,
                True,
                pl.Expr.deserialize(io.StringIO(json.dumps(_packed(tree))), format="json"),
            )
        except (pl.exceptions.PolarsError, json.JSONDecodeError, TypeError, OverflowError) as error:
            raise InputError(
                f"The logged filter cannot be read by this version of Polars: {error}"
            ) from None

    @property
    def lasting(self) -> bool:
        """Whether its value is the same until the state's generation changes."""
        return self.plain and _LASTING.issuperset(self.expression.meta.root_names())

    def mask(self, state: State) -> NDArray[np.bool_]:
        """bool[memories]; null is false. InputError if the expression gives something else."""
        frame, seen = (
            memory_columns(state, self.expression.meta.root_names() or ["id"]),
            seen_rows(state),
        )
        frame = frame if seen is None else frame[seen]
        try:
            found = frame.select(self.expression.alias("where")).to_series()
        except Exception as error:  # a Python function in it may raise anything
            raise InputError(
                f"The filter {_shown(self.expression)} cannot be computed: {error}"
            ) from error
        if found.dtype != pl.Boolean:
            raise InputError(
                f"The filter {_shown(self.expression)} gives {found.dtype}; it has to be true or false."
            )
        if len(found) != len(frame):
            way = (
                "it aggregates: compare a column with the aggregate"
                if len(found) == 1
                else "it takes one for each"
            )
            raise InputError(
                f"The filter {_shown(self.expression)} gives {len(found):,} values for {len(frame):,} memories; {way}."
            )
        mask: NDArray[np.bool_] = found.fill_null(False).to_numpy()
        if seen is None:
            return mask
        every = np.zeros(len(state), dtype=np.bool_)
        every[seen] = mask
        return every


def memory_columns(state: State, names: Sequence[str]) -> pl.DataFrame:
    """These columns of ``lab.memories`` and no others: all of them take seconds of a million memories."""
    return pl.DataFrame([state.column(name) for name in dict.fromkeys(names)])


# -- as data ----------------------------------------------------------------------------------------------------------


def _written(expression: pl.Expr) -> str | None:
    """The expression as JSON; None if it holds what would not be read back."""
    try:
        tree = _unpacked(json.loads(expression.meta.serialize(format="json")))
    except (pl.exceptions.PolarsError, TypeError):
        return None
    return json.dumps(tree, separators=(",", ":")) if _is_plain(tree) else None


def _unpacked(node: Any) -> Any:
    """The tree with buffers of values as ``{"Values": {"type", "shape", "items"}}``."""
    if isinstance(node, list):
        return [_unpacked(item) for item in node]
    if not isinstance(node, dict):
        return node
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
            raise TypeError(f"a list of {values.dtype}")
        return {"Values": {"type": str(values.dtype), "shape": shape, "items": values.to_list()}}
    return {key: _unpacked(value) for key, value in node.items()}


def _packed(node: Any) -> Any:
    """The tree as Polars reads it."""
    if isinstance(node, list):
        return [_packed(item) for item in node]
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
    return {key: _packed(value) for key, value in node.items()}


def _is_plain(node: Any) -> bool:
    """Whether a tree is made of what computes and nothing else."""
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
    """An expression, several of them, a word or number that says how, or the options of an aggregate."""
    if isinstance(value, list):
        return all(map(_is_operand, value))
    if isinstance(value, dict):
        return _is_plain(value) or (
            bool(value) and all(key[:1].islower() and _is_operand(value[key]) for key in value)
        )
    return True


def _is_plain_literal(inner: Any) -> bool:
    if isinstance(inner, str):  # the type of a cast
        return True
    if not isinstance(inner, dict) or len(inner) != 1:
        return False
    ((sort, value),) = inner.items()
    if sort == "Scalar":
        return value == "Null" or (isinstance(value, dict) and value.keys() <= _SCALARS)
    return sort == "Dyn" and isinstance(value, dict) and value.keys() <= _DYNAMIC


def _shown(expression: pl.Expr) -> str:
    text = " ".join(str(expression).split())
    return text if len(text) <= 80 else f"{text[:79]}…"


# What a caller admits to a recall: words of a few columns, who asks, and any Polars expression over the memories.
#
# A filter is applied before anything is searched: what it leaves out is no candidate, and its words count in no
# statistic. It is logged with the slate, so that the question can be asked again as it was.


WordOrWords = str | Sequence[str] | None

_VOCABULARIES = {
    "scope": SCOPES,
    "visibility": VISIBILITIES,
    "status": STATUSES,
    "branch": None,
    "season": None,
}


@dataclass(frozen=True)
class Filters:
    """Which memories may take part; None admits all, of ``status`` all that recall admits by default.

    ``branch`` also admits what has no branch, and ``season`` what belongs to none; without it, nothing that belongs to
    a season takes part. ``viewer`` leaves out what is private to another creator. ``without`` names projects that take
    no part, as memory is off for them (None among them: what belongs to no project); None leaves out every memory, as
    it is off for all that is asked.
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
        """The arguments of ``of`` that give these filters."""
        given = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "without"
        }
        return given | {"where": None if self.where is None else self.where.expression}

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
        """What a caller gave, checked. InputError, UnknownName, PrivacyError.

        >>> Filters.of(status=["superseded", "active"]).status
        ('active', 'superseded')
        """
        given = {
            "scope": scope,
            "visibility": visibility,
            "status": status,
            "branch": branch,
            "season": season,
        }
        if where is None and viewer is None and all(words is None for words in given.values()):
            return NO_FILTERS
        if viewer is not None:
            if not isinstance(viewer, str) or not viewer:
                raise InputError(f'viewer is who asks, such as "agent:coder", not {viewer!r:.60}.')
            refuse(viewer, "viewer")
        words = {name: _words(name, value) for name, value in given.items()}
        return cls(**words, viewer=viewer, where=None if where is None else Where.of(where))

    @classmethod
    def read(cls, logged: Mapping[str, Any]) -> Filters:
        """What ``logged`` gave. InputError if an expression cannot be read back."""
        if "where-text" in logged:
            raise InputError(
                f"It was filtered by an expression that a log does not keep, only its text: {logged['where-text']}"
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
        """What a slate keeps: only what was given."""
        if self is NO_FILTERS:
            return {}
        kept: dict[str, Any] = {
            name: list(words)
            for name in _VOCABULARIES
            if (words := getattr(self, name)) is not None
        }
        if self.viewer is not None:
            kept["viewer"] = self.viewer
        if self.without:
            kept["without"] = list(self.without)
        if self.where is not None:
            kept["where" if self.where.plain else "where-text"] = self.where.text
        return kept


NO_FILTERS = Filters()


def _words(name: str, given: WordOrWords) -> tuple[str, ...] | None:
    if given is None:
        return None
    known = _VOCABULARIES[name]
    words = (
        [given]
        if isinstance(given, str)
        else list(given)
        if isinstance(given, Sequence)
        else [None]
    )
    if not words:
        ways = f" of {', '.join(known)}" if known else ""
        raise InputError(f"{name}=[] admits nothing; name at least one{ways}.")
    for place, word in enumerate(words):
        if not isinstance(word, str) or not word:
            raise InputError(f"{name} is a word or a list of words, not {given!r:.60}.")
        if known is not None:
            words[place] = word = normalise_word(word, known)
        if known is not None and word not in known:
            raise UnknownName(name, word, known)
        refuse(word, name)
    return tuple(sorted(set(words)))


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

    @cached_property
    def mean(self) -> float:
        """Of a memory."""
        return self.total / self.count if self.count else 0.0

    @cached_property
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
                total, parts = (
                    known.total + int(lengths[late].sum()),
                    known.parts + self._parts(words, late),
                )
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
                frozenset(
                    word for code in self.speakers.tolist() for word in words_of(vocabulary[code])
                )
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

    def get(
        self, state: State, *, project: str | None, session: str | None, filters: Filters
    ) -> Population:
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


def admitted(
    state: State, *, project: str | None, session: str | None, filters: Filters, start: int = 0
) -> Mask:
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


def _counted(
    state: State, fresh: Mask, key: Hashable, seen: int | None, known: _Kept | None
) -> _Kept:
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
    speakers = (
        state.names["speaker"].codes[start:]
        if len(late) == len(fresh)
        else state.names["speaker"].codes[late]
    )
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
