"""How policies read features: what each input is, and how it comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.language import Known, Policy, Program
from memlab.kernel.policies import FEATURES

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
    "Ready",
    "Rows",
    "Values",
    "columns",
    "read",
    "reading_of",
]

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
            self._knowing[known] = reading = Reading(self.policy, self.program.knowing(known)) if met else None
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
