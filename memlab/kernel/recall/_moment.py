"""The features of memories at an instant, by column and only once each.

``memlab.kernel.policies.FEATURES`` says what each name means; this module computes it. Nothing here weighs or decides.
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
from numpy.typing import NDArray

from memlab.errors import ExtensionError, ExtensionWarning, UnknownName
from memlab.kernel.base.clock import DAY
from memlab.kernel.english import SAYS
from memlab.kernel.index import Words
from memlab.kernel.language import Coded, Known, Policy, Program, Value
from memlab.kernel.policies import FEATURES, Pack
from memlab.kernel.schema import MEMORY, RELATIONS, SPEAKER_ROLES, USES, infer_role
from memlab.kernel.state import State, gather, words_at
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


# How policies read features: what each input is, and how it comes.


Rows = NDArray[np.int64]
Values = NDArray[Any]
Column = Values | tuple[Values, NDArray[np.bool_]]
Ready = tuple[Any, NDArray[np.bool_] | None]
"""A column as a program takes it."""

NOTHING: Mapping[str, Callable[[], Column]] = MappingProxyType({})

WORDS = ("kind", "scope", "provenance", "visibility", "source", "status")
"""Features that are columns of words."""

_CODED = frozenset((*WORDS, "speaker-role"))
"""Features of words that policies can be given as codes."""

SHARED = frozenset(
    (
        *("asks-when", "asks-how-many", "asks-you", "asks-now", "asks-over-time"),
        *("names-speaker", "names-other", "names-date", "date-gap", "same-session", "triggered"),
    )
)
"""Features that all candidates of some recalls share, since they follow from the query alone."""

TEST, NULLABLE, CODES, PLAIN = "test", "nullable", "codes", "plain"
"""How an input comes: as a test of sets, with its nulls, as codes of words, or as it is."""

_KEPT = 256
"""Readings that are kept."""


class Features(Protocol):
    """Columns of features by name."""

    def __getitem__(self, name: str) -> Values: ...


def read(pool: Features, policy: Policy, name: str) -> Values:
    """What a test of sets, which a policy has as an input, gives; null is NaN."""
    test = policy.derived[name]
    values, nulls = test.array({item: pool[item] for item in test.sets})
    return np.asarray(values if nulls is None else np.where(nulls, np.nan, values))


def columns(
    pool: Features,
    policy: Policy,
    *,
    given: Mapping[str, Callable[[], Column]] = NOTHING,
    at: Rows | None = None,
) -> dict[str, Column]:
    """What ``policy`` reads, as its arrays want it: ``given`` first, then features, with their nulls.

    ``at`` picks some of the rows. A policy that reads nothing gets one column, which says how many rows there are.
    """
    found: dict[str, Column] = {}
    tests = policy.derived
    for name in policy.inputs or (next(iter(given), "access"),):
        if name in given:
            found[name] = given[name]()
            continue
        values = read(pool, policy, name) if name in tests else pool[name]
        values = values if at is None else values[at]
        nullable = name in FEATURES and FEATURES[name].nullable
        found[name] = (values, np.isnan(values)) if nullable else values
    return found


class Reading:
    """How a policy reads features: a test of sets comes with the sets that it reads, what may be null with a mask, and
    words that are compared with constants alone as codes.
    """

    def __init__(self, policy: Policy, program: Program) -> None:
        self.policy, self.program = policy, program
        self.inputs = tuple((name, _how(policy, program, name)) for name in program.reads)
        self.uniform = tuple(name for name in program.reads if name in SHARED)
        """The inputs that all candidates of some recalls share."""
        self._knowing: dict[Known, Reading | None] = {}
        """None of what was met once."""

    def knowing(self, known: Known) -> Reading:
        """The same where all rows have these values. It is made when it is met again: it costs as much as a recall."""
        reading = self._knowing.get(known)
        if reading is None:
            if len(self._knowing) > _KEPT:
                self._knowing.clear()
            met = known in self._knowing
            self._knowing[known] = reading = (
                Reading(self.policy, self.program.knowing(known)) if met else None
            )
        return reading or self


_readings: dict[tuple[str, str, int], Reading] = {}


def reading_of(policy: Policy) -> Reading:
    """How ``policy`` reads features, as they are declared now."""
    key = policy.hash, policy.signature.slot, FEATURES.changes
    reading = _readings.get(key)
    if reading is None:
        if len(_readings) > _KEPT:
            _readings.clear()
        reading = _readings[key] = Reading(policy, Program(policy))
    return reading


def _how(policy: Policy, program: Program, name: str) -> str:
    if name in policy.derived:
        return TEST
    if name in program.compares and name in _CODED:
        return CODES
    return NULLABLE if name in FEATURES and FEATURES[name].nullable else PLAIN


# Features of extensions: what their functions are given, and the check of what they return.


_SLOW = 5.0
"""Seconds after which the function of a feature is reported as slow: a recall waits for it."""


class Pool:
    """The memories whose values an extension's feature computes, in the order of their ids.

    Attributes
    ----------
    query
        The text of the query. Empty for a feature of stage ``memory``, which has no query.
    now
        The time of the recall, microseconds UTC; an array with one time for each memory where they differ.
    """

    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        asked = getattr(moment, "asked", None)
        self.query: str = "" if asked is None else asked.question.text
        self.now = moment.now

    def __len__(self) -> int:
        return len(self._moment)

    @property
    def ids(self) -> NDArray[np.int64]:
        """The id of each memory."""
        return self._moment.rows + 1

    @property
    def texts(self) -> list[str]:
        """The text of each memory."""
        return [text or "" for text in self._moment.state.texts.take(self._moment.rows)]

    def frame(self, *columns: str) -> pl.DataFrame:
        """Return columns of ``lab.memories``, one row for each memory; only ``id`` unless columns are named."""
        unknown = next((name for name in columns if name not in MEMORY and name != "id"), None)
        if unknown is not None:
            raise UnknownName("column of memories", unknown, ("id", *MEMORY))
        state, rows = self._moment.state, self._moment.rows
        return pl.DataFrame([state.column(name, rows) for name in columns or ("id",)])

    def __getitem__(self, feature: str) -> NDArray[Any]:
        """Return the values of another feature."""
        return self._moment[feature]


def extended_values(feature: Feature, moment: Moment) -> NDArray[Any]:
    """Compute the values of an extension's feature and check them.

    Raises
    ------
    ExtensionError
        If its function raises, or returns anything but one value of the feature's type for each memory.
    """
    assert feature.compute is not None
    began = time.monotonic()
    try:
        given = feature.compute(Pool(moment))
        values = given.to_numpy() if isinstance(given, pl.Series) else np.asarray(given)
    except Exception as error:
        raise ExtensionError(
            f"{_name_feature(feature)} failed with {type(error).__name__}: {error}"
        ) from error
    took = time.monotonic() - began
    if took > _SLOW:
        warnings.warn(
            f"{_name_feature(feature)} took {took:.0f} seconds for {len(moment)} memories, and the recall waited for "
            "it.",
            ExtensionWarning,
            stacklevel=2,
        )
    if values.shape != (len(moment),):
        raise ExtensionError(
            f"{_name_feature(feature)} returned values of shape {values.shape} for {len(moment)} memories. "
            "Return one value for each memory."
        )
    return _CHECKED[feature.type](feature, values)


def _name_feature(feature: Feature) -> str:
    return f"The feature {feature.name} of the extension {feature.owner}"


def _checked_numbers(feature: Feature, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype == object:
        values = np.array([math.nan if value is None else value for value in values.tolist()])
    if values.dtype.kind not in "biuf":
        raise ExtensionError(
            f"{_name_feature(feature)} returned {_kind_of(values)}, and declares numbers."
        )
    numbers = values.astype(np.float64)
    if not feature.nullable and np.isnan(numbers).any():
        raise ExtensionError(
            f"{_name_feature(feature)} returned NaN, which stands for null. Declare it with nullable=True, or return "
            "numbers."
        )
    return numbers


def _checked_flags(feature: Feature, values: NDArray[Any]) -> NDArray[Any]:
    if feature.nullable:
        return _checked_numbers(feature, values)
    if values.dtype.kind != "b":
        raise ExtensionError(
            f"{_name_feature(feature)} returned {_kind_of(values)}, and declares true or false."
        )
    return values


def _checked_words(feature: Feature, values: NDArray[Any]) -> NDArray[Any]:
    words: list[Any] = values.tolist()
    for word in words:
        if word is not None and not isinstance(word, str):
            raise ExtensionError(
                f"{_name_feature(feature)} returned {word!r:.60}, and declares strings."
            )
        if word is not None and feature.words and word not in feature.words:
            raise ExtensionError(
                f"{_name_feature(feature)} returned {word!r:.60}, which is none of {', '.join(feature.words)}."
            )
    return np.array(words, dtype=object)


def _refused_sets(feature: Feature, values: NDArray[Any]) -> NDArray[Any]:
    raise ExtensionError(
        f"{_name_feature(feature)} has the type set. An extension declares num, bool or str."
    )


_CHECKED = {
    "num": _checked_numbers,
    "bool": _checked_flags,
    "str": _checked_words,
    "set": _refused_sets,
}


def _kind_of(values: NDArray[Any]) -> str:
    first: Sequence[Any] = values[:1].tolist()
    return f"values such as {first[0]!r:.60}" if first else "no numbers"


_NEXT = RELATIONS.index("next")

_BITS: NDArray[np.bool_] = np.arange(1 << len(SAYS)) >> np.arange(len(SAYS))[:, None] & 1 != 0
"""bool[signs, numbers]: which bits each number has."""

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
"""Features that are columns of numbers."""

_SINCE = {"age-days": "created", "idle-days": "accessed", "elapsed-days": "accessed"}
"""Features that are the days since an instant."""

_USES = {f"use-{number}-days": number - 1 for number in range(1, USES + 1)}
_SAYS = {name: place for place, name in enumerate(SAYS)}

_ROLES = {role: code for code, role in enumerate(SPEAKER_ROLES)}
_roles_by_speaker: WeakKeyDictionary[Names, tuple[str | None, NDArray[np.int64]]] = (
    WeakKeyDictionary()
)


class Moment:
    """Rows of a state at an instant (``now``, microseconds UTC), with features on demand. Rows ascend.

    ``now`` may be an instant for each row.
    """

    quiet: ClassVar[bool] = False
    """Whether NumPy's warnings are off whenever a policy is asked."""

    uniform: Mapping[str, Value] = MappingProxyType({})
    """The features that all rows share, with their values: what follows from the query alone. Without a query, none."""

    def __init__(
        self, state: State, pack: Pack, rows: Rows, now: int | Rows | NDArray[np.float64]
    ) -> None:
        self.state, self.pack, self.rows, self.now = (
            state,
            pack,
            rows,
            np.asarray(now, dtype=np.float64),
        )
        self._known: dict[str, Values] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Values:
        values = self._known.get(name)
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
            self._known[name] = values
        return values

    def compute(self, name: str) -> Values:
        """Compute a feature of memories, or one of an extension."""
        rows, state = self.rows, self.state
        if name in _STORED:
            return self.number(_STORED[name])
        if name in WORDS:
            return self.word(name)
        if name in _SAYS:
            return np.asarray(self._says()[_SAYS[name]])
        if name in _SINCE:
            # far from now the difference of two instants does not fit 64 bits
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
                # -1 is some row too, and does not count
                return np.asarray((before >= 0) & state.asks.values[before])
            case "length":  # stop words left out
                return self._words().lengths[rows].astype(np.float64)
            case "words":  # stop words counted
                return self._words().written.counts[rows].astype(np.float64)
            case "speaker-role":
                coded = self._coded_roles()
                return coded if isinstance(coded, np.ndarray) else coded.array()
            case "tags" | "files":
                lists = [state.lists[name].at(row) for row in rows.tolist()]
                return np.fromiter(lists, dtype=object, count=len(lists))
        return extended_values(FEATURES[name], self)

    def fill(self, table: NDArray[np.float64], names: tuple[str, ...]) -> None:
        """Write numbers and flags, null as NaN, into the first rows of f64[names, rows]. Columns of the state are read
        all at once.
        """
        layout = _layout(names)
        numbers = self.state.numbers
        gather(
            [numbers[column] for _, column in layout.stored],
            self.rows,
            [table[place] for place, _ in layout.stored],
        )
        if len(layout.uses):
            table[layout.uses] = self.use_days()[layout.numbers]
        known, uniform = self._known, self.uniform
        for place, name in layout.others:
            if name in known:
                table[place] = known[name]
            elif name in uniform:
                value = uniform[name]
                table[place] = np.nan if value is None else value
            else:
                table[place] = self[name]

    def words(self, also: Iterable[str] = ()) -> dict[str, list[str | None]]:
        """The features that are columns of words, and those of ``also``, by name."""
        names = self.state.names
        found = dict(zip(WORDS, words_at([names[name] for name in WORDS], self.rows), strict=True))
        return found | {name: self[name].tolist() for name in also}

    def give(self, **features: Values) -> None:
        """Set features that something else decided."""
        self._known.update(features)

    def ask(
        self, policy: Policy, *, given: Mapping[str, Callable[[], Column]] = NOTHING
    ) -> tuple[Values, NDArray[np.bool_] | None]:
        """What a policy makes of these memories, and where it makes nothing. ``given``: inputs that are no features."""
        reading = reading_of(policy)
        if reading.uniform and self.uniform:
            uniform = self.uniform
            reading = reading.knowing(
                tuple([(name, uniform[name]) for name in reading.uniform if name in uniform])
            )
        ready = [
            (self[name], None)
            if how == PLAIN and name not in given
            else self._ready(policy, name, how, given)
            for name, how in reading.inputs
        ]
        return reading.program.compute(ready, len(self.rows), order=self.rows, quiet=self.quiet)

    def ask_some(
        self, policy: Policy, places: Rows, given: Mapping[str, Callable[[], Column]]
    ) -> tuple[Values, NDArray[np.bool_] | None]:
        """What a policy makes of the memories at ``places``, in that order; ``given`` are inputs of these alone."""
        reading = reading_of(policy)
        ready: list[Ready] = []
        for name, how in reading.inputs:
            values, nulls = self._ready(policy, name, how, given)
            if name not in given:
                values = (values.array() if isinstance(values, Coded) else values)[places]
                nulls = None if nulls is None else nulls[places]
            ready.append((values, nulls if nulls is not None and nulls.any() else None))
        return reading.program.compute(
            ready, len(places), order=np.arange(len(places)), quiet=self.quiet
        )

    def _ready(
        self, policy: Policy, name: str, how: str, given: Mapping[str, Callable[[], Column]]
    ) -> Ready:
        """One input of a policy, and where it is null."""
        if name in given:
            column = given[name]()
            values, nulls = column if isinstance(column, tuple) else (column, None)
        elif how == CODES and name not in self._known:
            if name == "speaker-role":
                return self._coded_roles(), None
            names = self.state.names[name]
            return Coded(names.codes[self.rows], names.vocabulary, names.known), None
        elif how == TEST:
            return read(self, policy, name), None
        else:
            values = self[name]
            nulls = np.isnan(values) if how == NULLABLE else None
        return values, nulls if nulls is not None and nulls.any() else None

    # -- columns, and one method for each other family ---------------------------------------------------------

    def number(self, column: str) -> Values:
        """Return a column of numbers of the state."""
        values: Values = self.state.numbers[column].values[self.rows]
        return values

    def word(self, column: str) -> Values:
        """Return a column of words of the state."""
        return self.state.names[column].objects(self.rows)

    def before(self) -> Rows:
        """The row just before each one in its session; -1 where none is."""
        if "before" not in self._known:
            self._known["before"] = self.state.edges.step(self.rows, _NEXT, outgoing=False)
        return self._known["before"]

    def use_days(self) -> Values:
        """f64[uses, rows]: the ages of each row's latest uses, the newest first; NaN where there were fewer."""
        if "use-days" not in self._known:
            uses = self.state.uses
            instants = uses.values[self.rows].T
            ages = np.maximum((self.now - instants) / DAY, 0.0)
            ages[instants == uses.NEVER] = np.nan
            self._known["use-days"] = ages
        return self._known["use-days"]

    def _words(self) -> Words:
        return self.state.words_in(str(self.pack.settings["language"]))

    def _says(self) -> Values:
        """bool[signs, rows]: which signs the words of each row are."""
        if "says" not in self._known:
            self._known["says"] = _BITS.take(self._words().written.signs[self.rows], axis=1)
        return self._known["says"]

    def _coded_roles(self) -> Coded | Values:
        """The roles as codes; as words where creators differ. Those of all speakers are kept until one is new."""
        speakers, creators = self.state.names["speaker"], self.state.names["creator"]
        if creators.held:
            pairs = zip(speakers.objects(self.rows), creators.objects(self.rows), strict=True)
            return np.array([infer_role(*pair) for pair in pairs], dtype=object)
        creator, known = creators.default, _roles_by_speaker.get(speakers)
        if known is None or known[0] != creator or len(known[1]) != len(speakers.vocabulary) + 1:
            # the last is that of no speaker, whose code is -1
            roles = [_ROLES[infer_role(name, creator)] for name in (*speakers.vocabulary, None)]
            known = _roles_by_speaker[speakers] = creator, np.array(roles, dtype=np.int64)
        return Coded(known[1][speakers.codes[self.rows]], SPEAKER_ROLES, _ROLES)

    def half_life(self) -> Values:
        """Days, by the pack's policy; NaN where it gives null."""
        if "half-life" not in self._known:
            policy, unit = self.pack.policies["half-life"], self.pack.unit("half-life")
            base = float(self.pack.settings["base-half-life"])
            if policy.inputs == ("base-half-days",) and not reading_of(policy).program.aggregates:
                half, nulls = np.full(len(self.rows), _same_half_life(policy, base)), None
            else:
                given: dict[str, Callable[[], Values]] = {
                    "base-half-days": lambda: np.full(len(self), base),
                    "base-half-ms": lambda: np.full(len(self), base * _MS_A_DAY),
                    "recency-ms": lambda: self["idle-days"] * _MS_A_DAY,
                }
                half, nulls = self.ask(policy, given=given)
            half = half / unit
            self._known["half-life"] = half if nulls is None else np.where(nulls, np.nan, half)
        return self._known["half-life"]

    def _recency(self) -> Values:
        """Return the share that is left of each memory after its half-life."""
        with nullcontext() if self.quiet else np.errstate(all="ignore"):
            return np.asarray(np.exp(-_LN2 * self["idle-days"] / self.half_life()))

    def retention(self) -> Values:
        """Return what the slot ``retention`` gives; NaN where it gives null."""
        values, nulls = self.ask(
            self.pack.policies["retention"], given={"half-life": self.half_life}
        )
        return np.asarray(values if nulls is None else np.where(nulls, np.nan, values))


@lru_cache(maxsize=64)
def _same_half_life(policy: Policy, base: float) -> float:
    """What a policy gives every memory that reads nothing of it; NaN for null."""
    same = policy.row({"base-half-days": base})
    return float(same) if isinstance(same, float) else math.nan


class _Layout(NamedTuple):
    """Where the features of a table come from, each with its place in it."""

    stored: list[tuple[int, str]]
    uses: Rows
    numbers: Rows
    """Which use stands at each of the places ``uses``."""
    others: list[tuple[int, str]]


@cache
def _layout(names: tuple[str, ...]) -> _Layout:
    placed = list(enumerate(names))
    return _Layout(
        [(place, _STORED[name]) for place, name in placed if name in _STORED],
        np.array([place for place, name in placed if name in _USES], dtype=np.int64),
        np.array([_USES[name] for name in names if name in _USES], dtype=np.int64),
        [(place, name) for place, name in placed if name not in _STORED and name not in _USES],
    )
