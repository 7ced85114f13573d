"""The features of memories at an instant, each computed once as a column.

``memlab.kernel.policies.FEATURES`` defines each feature; this module computes the values. Policies weigh them.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from memlab.errors import ExtensionError, ExtensionWarning, UnknownName
from memlab.kernel.base.arrays import Flags, Floats, Ints, Rows, Values
from memlab.kernel.base.clock import DAY
from memlab.kernel.english import SAYS
from memlab.kernel.index import Words
from memlab.kernel.language import Coded, Known, Policy, Program, Value
from memlab.kernel.policies import FEATURES, Pack
from memlab.kernel.schema import MEMORY, RELATIONS, SPEAKER_ROLES, USES, infer_role
from memlab.kernel.state import State, gather_numbers, read_words
from memlab.kernel.state.columns import Names

if TYPE_CHECKING:
    from memlab.kernel.policies import Feature

__all__ = [
    "CODES",
    "NOTHING",
    "NULLABLE",
    "PLAIN",
    "SHARED",
    "TEST",
    "WORDS",
    "Column",
    "Features",
    "Moment",
    "Pool",
    "Ready",
    "Rows",
    "Values",
    "columns",
    "extended_values",
    "read",
    "reading_of",
]


# How policies read features: the columns of each policy, and the form of each input.


Column = Values | tuple[Values, Flags]
Ready = tuple[Any, Flags | None]
"""A column as a program reads it: values, and a mask of nulls or None."""

# No inputs besides features: the default of several functions, hence immutable.
NOTHING: Mapping[str, Callable[[], Column]] = MappingProxyType({})

WORDS = ("kind", "scope", "provenance", "visibility", "source", "status")
"""Features that are columns of words."""

_CODED = frozenset((*WORDS, "speaker-role"))
"""String features that policies read as codes if they only compare them with constants."""

SHARED = frozenset(
    (
        *("asks-when", "asks-how-many", "asks-you", "asks-now", "asks-over-time"),
        *("names-speaker", "names-other", "names-date", "date-gap", "same-session", "triggered"),
        "reliance",
    )
)
"""Features that all candidates of a recall may share, because they follow from the query alone."""

TEST, NULLABLE, CODES, PLAIN = "test", "nullable", "codes", "plain"
"""The forms of an input: a test of sets, a column with a mask of nulls, codes of words, or a plain column."""

_CACHED_READINGS = 256
"""Maximum number of cached readings, enough for policies of recently used packs."""


class Features(Protocol):
    """An object that returns the values of features by name."""

    def __getitem__(self, name: str) -> Values: ...


def read(pool: Features, policy: Policy, name: str) -> Values:
    """Return the values of a set test such as ``(has tags "x")``, with NaN for null."""
    test = policy.derived[name]
    values, nulls = test.array({item: pool[item] for item in test.sets})
    return np.asarray(values if nulls is None else np.where(nulls, np.nan, values))


def columns(
    pool: Features,
    policy: Policy,
    *,
    inputs: Mapping[str, Callable[[], Column]] = NOTHING,
    at: Rows | None = None,
) -> dict[str, Column]:
    """Return the inputs of ``policy`` as columns with their nulls.

    Values of ``inputs`` take precedence over features. ``at`` selects rows by position. A policy
    without inputs gets one column, which only sets the number of rows.
    """
    columns_by_name: dict[str, Column] = {}
    tests = policy.derived
    for name in policy.inputs or (next(iter(inputs), "access"),):
        if name in inputs:
            columns_by_name[name] = inputs[name]()
            continue
        values = read(pool, policy, name) if name in tests else pool[name]
        values = values if at is None else values[at]
        nullable = name in FEATURES and FEATURES[name].nullable
        columns_by_name[name] = (values, np.isnan(values)) if nullable else values
    return columns_by_name


class Reading:
    """The inputs that a policy reads, and the form in which it reads each.

    A test of sets is an input of its own. A nullable feature comes with a mask of nulls. Words that
    are compared only with constants come as codes.
    """

    def __init__(self, policy: Policy, program: Program) -> None:
        self.policy, self.program = policy, program
        self.inputs = tuple((name, _find_form(policy, program, name)) for name in program.reads)
        self.uniform = tuple(name for name in program.reads if name in SHARED)
        """The inputs that all candidates of some recalls share."""
        # Readings specialised for shared values; None for values that occurred once.
        self._specialised: dict[Known, Reading | None] = {}

    def specialise(self, shared: Known) -> Reading:
        """Return the reading specialised for inputs that have one value in all rows.

        Specialising costs as much as a recall, so it happens when the same values occur a second time.
        """
        reading = self._specialised.get(shared)
        if reading is None:
            if len(self._specialised) > _CACHED_READINGS:
                self._specialised.clear()
            is_repeated = shared in self._specialised
            self._specialised[shared] = reading = (
                Reading(self.policy, self.program.specialise(shared)) if is_repeated else None
            )
        return reading or self


def reading_of(policy: Policy) -> Reading:
    """Return the cached `Reading` of a policy for the currently declared features."""
    return _read_policy(policy, FEATURES.changes)


# Compiling a policy takes as long as a recall.
@lru_cache(maxsize=_CACHED_READINGS)
def _read_policy(policy: Policy, changes: int) -> Reading:
    """Return the reading of a policy; ``changes`` counts the declarations of features."""
    return Reading(policy, Program(policy))


def _find_form(policy: Policy, program: Program, name: str) -> str:
    """Return the form of a policy's input: set test, codes, nullable or plain column."""
    if name in policy.derived:
        return TEST
    if name in program.compares and name in _CODED:
        return CODES
    return NULLABLE if name in FEATURES and FEATURES[name].nullable else PLAIN


# Features of extensions: the argument of their functions, and the check of their results.


_SLOW = 5.0
"""Seconds after which the function of a feature is reported as slow: a recall waits for it."""


class Pool:
    """The memories for which an extension computes a feature, in order of ids.

    Parameters
    ----------
    moment
        The memories at an instant. memlab passes it.

    Attributes
    ----------
    query
        The text of the query; empty for a feature of stage ``memory``.
    now
        The time of the recall in microseconds UTC, or an array with one time per memory.
    """

    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        query = getattr(moment, "query", None)
        self.query: str = "" if query is None else query.question.text
        self.now = moment.now

    def __len__(self) -> int:
        return len(self._moment)

    @property
    def ids(self) -> Ints:
        """The ids of the memories, ascending."""
        return self._moment.rows + 1

    @property
    def texts(self) -> list[str]:
        """The texts of the memories, in the order of their ids."""
        return [text or "" for text in self._moment.state.texts.to_list(self._moment.rows)]

    def frame(self, *columns: str) -> pl.DataFrame:
        """Return columns of ``lab.memories`` for the memories of the recall.

        Parameters
        ----------
        *columns
            Names of columns; only ``id`` by default.

        Returns
        -------
        polars.DataFrame
            One row per memory, in ascending order of ids.

        Raises
        ------
        UnknownName
            If there is no such column.
        """
        unknown = next((name for name in columns if name not in MEMORY and name != "id"), None)
        if unknown is not None:
            raise UnknownName("column of memories", unknown, ("id", *MEMORY))
        state, rows = self._moment.state, self._moment.rows
        return pl.DataFrame([state.column(name, rows) for name in columns or ("id",)])

    def __getitem__(self, feature: str) -> Values:
        """Return the values of another feature, one per memory."""
        return self._moment[feature]


def extended_values(feature: Feature, moment: Moment) -> Values:
    """Compute and check the values of an extension's feature.

    Raises
    ------
    ExtensionError
        If the function raises, or does not return one value of the declared type per memory.
    """
    assert feature.compute is not None
    start = time.monotonic()
    try:
        result = feature.compute(Pool(moment))
        values = result.to_numpy() if isinstance(result, pl.Series) else np.asarray(result)
    except Exception as error:
        raise ExtensionError(
            f"{_name_feature(feature)} failed with {type(error).__name__}: {error}"
        ) from error
    seconds = time.monotonic() - start
    if seconds > _SLOW:
        warnings.warn(
            f"{_name_feature(feature)} took {seconds:.0f} seconds for {len(moment)} memories, and the recall waited for "
            "it. Make its function faster.",
            ExtensionWarning,
            stacklevel=2,
        )
    if values.shape != (len(moment),):
        raise ExtensionError(
            f"{_name_feature(feature)} returned values of shape {values.shape} for {len(moment)} memories. "
            "Return one value for each memory."
        )
    return _CHECKS[feature.type](feature, values)


def _name_feature(feature: Feature) -> str:
    """Return the subject of an error message: a feature and its extension."""
    return f"The feature {feature.name} of the extension {feature.owner}"


def _check_numbers(feature: Feature, values: Values) -> Values:
    """Check a numeric feature's values and return them as float64, with NaN for null."""
    if values.dtype == object:
        values = np.array([math.nan if value is None else value for value in values.tolist()])
    if values.dtype.kind not in "biuf":
        raise ExtensionError(
            f"{_name_feature(feature)} returned {_describe_values(values)}, but declares numbers. "
            "Return numbers, or declare another type."
        )
    numbers = values.astype(np.float64)
    if not feature.nullable and np.isnan(numbers).any():
        raise ExtensionError(
            f"{_name_feature(feature)} returned NaN, which would be stored as null. "
            "Declare the feature with nullable=True, or return numbers only."
        )
    return numbers


def _check_flags(feature: Feature, values: Values) -> Values:
    """Check a boolean feature's values and return them, as float64 if nullable."""
    if feature.nullable:
        return _check_numbers(feature, values)
    if values.dtype.kind != "b":
        raise ExtensionError(
            f"{_name_feature(feature)} returned {_describe_values(values)}, but declares true or false. Return booleans."
        )
    return values


def _check_words(feature: Feature, values: Values) -> Values:
    """Check a string feature's values and return them as an array of objects."""
    words: list[Any] = values.tolist()
    for word in words:
        if word is not None and not isinstance(word, str):
            raise ExtensionError(
                f"{_name_feature(feature)} returned {word!r:.60}, but declares strings. Return strings."
            )
        if word is not None and feature.words and word not in feature.words:
            raise ExtensionError(
                f"{_name_feature(feature)} returned {word!r:.60}, which is none of {', '.join(feature.words)}. "
                "Return one of these."
            )
    return np.array(words, dtype=object)


def _refuse_sets(feature: Feature, values: Values) -> Values:
    """Raise ExtensionError, because extensions cannot declare set features."""
    raise ExtensionError(
        f"{_name_feature(feature)} has the type set. An extension declares num, bool or str."
    )


# The check of the values of each type of feature.
_CHECKS = {
    "num": _check_numbers,
    "bool": _check_flags,
    "str": _check_words,
    "set": _refuse_sets,
}


def _describe_values(values: Values) -> str:
    """Describe values of a wrong type for an error message."""
    first: Sequence[Any] = values[:1].tolist()
    return f"values such as {first[0]!r:.60}" if first else "no numbers"


# The relation of neighbours in a session.
_NEXT = RELATIONS.index("next")

_BITS: Flags = np.arange(1 << len(SAYS)) >> np.arange(len(SAYS))[:, None] & 1 != 0
"""bool[signs, numbers]: whether each number has each bit. Stored signs of a text are the bits of one number."""

# Half-lives are in days or milliseconds, by the unit that a pack declares.
_LN2 = math.log(2.0)
_MS_A_DAY = 86_400_000.0

_STORED = {
    "access": "access",
    "success": "success",
    "fail": "fail",
    "importance": "importance",
    "confidence": "confidence",
    "trust": "trust",
    "strength": "strength",
    "energy": "energy",
    "stability": "stability",
    "difficulty": "difficulty",
    "ttl-days": "ttl_days",
    "emotional-weight": "emotional_weight",
    "recency-weight": "recency_weight",
    "pinned": "pinned",
}
"""Features that are stored columns of numbers, with the name of the column."""

_SINCE = {"age-days": "created", "idle-days": "accessed", "elapsed-days": "accessed"}
"""Features that are the days since a stored instant, with the name of the column."""

# The row of each feature in the tables of uses and signs.
_USES = {f"use-{number}-days": number - 1 for number in range(1, USES + 1)}
_SAYS = {name: row for row, name in enumerate(SAYS)}

# Deriving the role of every speaker again at each recall would cost as much as a policy.
_ROLES = {role: code for code, role in enumerate(SPEAKER_ROLES)}
_roles_by_speaker: WeakKeyDictionary[Names, tuple[str | None, Ints]] = WeakKeyDictionary()


class Moment:
    """Rows of a state at an instant, with features computed on access. Rows ascend.

    ``now`` is in microseconds UTC: one instant, or one for each row.
    """

    quiet: ClassVar[bool] = False
    """Whether the caller has already turned off NumPy's warnings."""

    uniform: Mapping[str, Value] = MappingProxyType({})
    """The features that follow from the query alone, with their values; empty without a query."""

    def __init__(self, state: State, pack: Pack, rows: Rows, now: int | Rows | Floats) -> None:
        self.state, self.pack, self.rows, self.now = (
            state,
            pack,
            rows,
            np.asarray(now, dtype=np.float64),
        )
        self._cache: dict[str, Values] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Values:
        values = self._cache.get(name)
        if values is None:
            if name in self.uniform:
                value = self.uniform[name]
                if type(value) is bool:
                    values = np.empty(len(self.rows), dtype=np.bool_)
                    values.fill(value)
                else:
                    values = np.full(len(self.rows), np.nan if value is None else value)
            else:
                values = self.compute(name)
            self._cache[name] = values
        return values

    def compute(self, name: str) -> Values:
        """Compute a feature of memories by name, including extensions' features."""
        rows, state = self.rows, self.state
        if name in _STORED:
            return self.number(_STORED[name])
        if name in WORDS:
            return self.word(name)
        if name in _SAYS:
            return np.asarray(self._says()[_SAYS[name]])
        if name in _SINCE:
            # The days are computed in float64, because the difference of two distant instants does
            # not fit 64 bits.
            return np.asarray(np.maximum((self.now - self.number(_SINCE[name])) / DAY, 0.0))
        if name in _USES:
            return np.asarray(self.use_days()[_USES[name]])
        match name:
            case "uses":
                return self["access"] + 1.0
            case "recency":
                return self._recency()
            case "retention":
                return self.retention()
            case "asks":
                return np.asarray(state.asks.values[rows])
            case "answers":
                before = self.before()
                # -1 indexes the last row, so it is masked.
                return np.asarray((before >= 0) & state.asks.values[before])
            case "length":  # without stop words
                return self._words().lengths[rows].astype(np.float64)
            case "words":  # with stop words
                return self._words().written.counts[rows].astype(np.float64)
            case "speaker-role":
                coded = self._coded_roles()
                return coded if isinstance(coded, np.ndarray) else coded.array()
            case "tags" | "files":
                lists = [state.lists[name].value_at(row) for row in rows.tolist()]
                return np.fromiter(lists, dtype=object, count=len(lists))
        return extended_values(FEATURES[name], self)

    def fill(self, table: Floats, names: tuple[str, ...]) -> None:
        """Write numeric features into the first rows of a table, f64[names, rows].

        Flags become 0 and 1, and null becomes NaN. Stored columns are gathered in one call, which
        is faster than one call for each.
        """
        layout = _layout(names)
        numbers = self.state.numbers
        gather_numbers(
            [numbers[column] for _, column in layout.stored],
            self.rows,
            [table[row] for row, _ in layout.stored],
        )
        if len(layout.uses):
            table[layout.uses] = self.use_days()[layout.numbers]
        cache, uniform = self._cache, self.uniform
        for row, name in layout.others:
            if name in cache:
                table[row] = cache[name]
            elif name in uniform:
                value = uniform[name]
                table[row] = np.nan if value is None else value
            else:
                table[row] = self[name]

    def words(self, also: Iterable[str] = ()) -> dict[str, list[str | None]]:
        """Return the stored string features and the features named in ``also``, by name."""
        names = self.state.names
        columns = dict(
            zip(WORDS, read_words([names[name] for name in WORDS], self.rows), strict=True)
        )
        return columns | {name: self[name].tolist() for name in also}

    def give(self, **features: Values) -> None:
        """Cache feature values that were computed elsewhere."""
        self._cache.update(features)

    def ask(
        self, policy: Policy, *, inputs: Mapping[str, Callable[[], Column]] = NOTHING
    ) -> tuple[Values, Flags | None]:
        """Evaluate a policy for all rows; return the values and a null mask, which may be None.

        ``inputs`` has functions that compute the inputs that are not features.
        """
        reading = reading_of(policy)
        if reading.uniform and self.uniform:
            uniform = self.uniform
            reading = reading.specialise(
                tuple([(name, uniform[name]) for name in reading.uniform if name in uniform])
            )
        ready = [
            (self[name], None)
            if how == PLAIN and name not in inputs
            else self._ready(policy, name, how, inputs)
            for name, how in reading.inputs
        ]
        return reading.program.compute(ready, len(self.rows), order=self.rows, quiet=self.quiet)

    def ask_some(
        self, policy: Policy, positions: Rows, inputs: Mapping[str, Callable[[], Column]]
    ) -> tuple[Values, Flags | None]:
        """Evaluate a policy for the rows at ``positions``, in that order.

        ``inputs`` has functions that compute the other inputs for these rows only.
        """
        reading = reading_of(policy)
        ready: list[Ready] = []
        for name, how in reading.inputs:
            values, nulls = self._ready(policy, name, how, inputs)
            if name not in inputs:
                values = (values.array() if isinstance(values, Coded) else values)[positions]
                nulls = None if nulls is None else nulls[positions]
            ready.append((values, nulls if nulls is not None and nulls.any() else None))
        return reading.program.compute(
            ready, len(positions), order=np.arange(len(positions)), quiet=self.quiet
        )

    def _ready(
        self, policy: Policy, name: str, how: str, inputs: Mapping[str, Callable[[], Column]]
    ) -> Ready:
        """Return a policy's input in the form ``how``, with a null mask, or None if no value is null.

        ``inputs`` has a function for each input that is no feature.
        """
        if name in inputs:
            column = inputs[name]()
            values, nulls = column if isinstance(column, tuple) else (column, None)
        elif how == CODES and name not in self._cache:
            if name == "speaker-role":
                return self._coded_roles(), None
            names = self.state.names[name]
            return Coded(names.codes[self.rows], names.vocabulary, names.codes_by_name), None
        elif how == TEST:
            return read(self, policy, name), None
        else:
            values = self[name]
            nulls = np.isnan(values) if how == NULLABLE else None
        return values, nulls if nulls is not None and nulls.any() else None

    # -- columns, and one method for each other family ---------------------------------------------------------

    def number(self, column: str) -> Values:
        """Return the values of a stored numeric column."""
        values: Values = self.state.numbers[column].values[self.rows]
        return values

    def word(self, column: str) -> Values:
        """Return the values of a stored column of words."""
        return self.state.names[column].to_objects(self.rows)

    def before(self) -> Rows:
        """Return the row before each row in the same session, or -1 for the first row."""
        if "before" not in self._cache:
            self._cache["before"] = self.state.edges.step(self.rows, _NEXT, outgoing=False)
        return self._cache["before"]

    def use_days(self) -> Values:
        """Return f64[uses, rows]: the ages of each row's latest uses in days.

        The newest use is first; NaN stands for a missing use.
        """
        if "use-days" not in self._cache:
            uses = self.state.uses
            instants = uses.values[self.rows].T
            ages = np.maximum((self.now - instants) / DAY, 0.0)
            ages[instants == uses.NEVER] = np.nan
            self._cache["use-days"] = ages
        return self._cache["use-days"]

    def _words(self) -> Words:
        """Return the word index of all memories in the pack's language."""
        return self.state.get_words(str(self.pack.settings["language"]))

    def _says(self) -> Values:
        """Return bool[signs, rows]: whether each text has each sign, such as "says-number"."""
        if "says" not in self._cache:
            self._cache["says"] = _BITS.take(self._words().written.signs[self.rows], axis=1)
        return self._cache["says"]

    def _coded_roles(self) -> Coded | Values:
        """Return each speaker's role as codes, or as strings if any memory names a creator.

        The roles of all speakers are cached until a speaker is added.
        """
        speakers, creators = self.state.names["speaker"], self.state.names["creator"]
        if creators.has_values:
            pairs = zip(speakers.to_objects(self.rows), creators.to_objects(self.rows), strict=True)
            return np.array([infer_role(*pair) for pair in pairs], dtype=object)
        creator, cached = creators.default, _roles_by_speaker.get(speakers)
        if cached is None or cached[0] != creator or len(cached[1]) != len(speakers.vocabulary) + 1:
            # The last role is for memories without a speaker, whose code is -1.
            roles = [_ROLES[infer_role(name, creator)] for name in (*speakers.vocabulary, None)]
            cached = _roles_by_speaker[speakers] = creator, np.array(roles, dtype=np.int64)
        return Coded(cached[1][speakers.codes[self.rows]], SPEAKER_ROLES, _ROLES)

    def half_life(self) -> Values:
        """Return the half-life of each candidate in days, or NaN where the policy gives null."""
        if "half-life" not in self._cache:
            policy, unit = self.pack.policies["half-life"], self.pack.unit("half-life")
            base = float(self.pack.settings["base-half-life"])
            if policy.inputs == ("base-half-days",) and not reading_of(policy).program.aggregates:
                half, nulls = np.full(len(self.rows), _same_half_life(policy, base)), None
            else:
                inputs: dict[str, Callable[[], Values]] = {
                    "base-half-days": lambda: np.full(len(self), base),
                    "base-half-ms": lambda: np.full(len(self), base * _MS_A_DAY),
                    "recency-ms": lambda: self["idle-days"] * _MS_A_DAY,
                }
                half, nulls = self.ask(policy, inputs=inputs)
            half = half / unit
            self._cache["half-life"] = half if nulls is None else np.where(nulls, np.nan, half)
        return self._cache["half-life"]

    def _recency(self) -> Values:
        """Return the decay factor of each memory, ``0.5 ** (idle / half_life)``."""
        with nullcontext() if self.quiet else np.errstate(all="ignore"):
            return np.asarray(np.exp(-_LN2 * self["idle-days"] / self.half_life()))

    def retention(self) -> Values:
        """Return the result of the slot ``retention``, with NaN for null."""
        values, nulls = self.ask(
            self.pack.policies["retention"], inputs={"half-life": self.half_life}
        )
        return np.asarray(values if nulls is None else np.where(nulls, np.nan, values))


# Most packs have one half-life for all memories, and each recall asks for it.
@lru_cache(maxsize=64)
def _same_half_life(policy: Policy, base: float) -> float:
    """Return the half-life in days that a policy without features gives to every memory, or NaN for null.

    ``base`` is the policy's only input, the base half-life in days.
    """
    same = policy.row({"base-half-days": base})
    return float(same) if isinstance(same, float) else math.nan


class _Layout(NamedTuple):
    """The sources of a feature table's rows: stored columns, uses, and other features."""

    stored: list[tuple[int, str]]
    uses: Rows
    numbers: Rows
    """The index of the use in each of the rows ``uses``."""
    others: list[tuple[int, str]]


# The rows of a table depend only on the plan, and each recall fills one table.
@cache
def _layout(names: tuple[str, ...]) -> _Layout:
    """Group features by source: stored columns, ages of uses, and computed features."""
    numbered = list(enumerate(names))
    return _Layout(
        [(row, _STORED[name]) for row, name in numbered if name in _STORED],
        np.array([row for row, name in numbered if name in _USES], dtype=np.int64),
        np.array([_USES[name] for name in names if name in _USES], dtype=np.int64),
        [(row, name) for row, name in numbered if name not in _STORED and name not in _USES],
    )
