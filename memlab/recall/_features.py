"""The features of candidates, computed by column for the rows that need them and only once each.

``memlab.policies.FEATURES`` says what each name means; this module computes it. Nothing here weighs or decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.clock import DAY
from memlab.language import Policy
from memlab.memory import State
from memlab.policies import FEATURES, Pack
from memlab.recall._question import Asked
from memlab.schema import RELATIONS, USES

__all__ = ["Candidates", "columns", "read"]

_NEXT = RELATIONS.index("next")
_LN2 = math.log(2.0)
_MS_A_DAY = 86_400_000.0
_TAG = re.compile(r"(?<!\w)#([\w:/.+-]*\w)")
_NULLABLE = frozenset(name for name, feature in FEATURES.items() if feature.nullable)

Rows = NDArray[np.int64]
Values = NDArray[Any]
Column = Values | tuple[Values, NDArray[np.bool_]]
_NOTHING: Mapping[str, Callable[[], Values]] = MappingProxyType({})


class Features(Protocol):
    """Columns of features by name."""

    def __getitem__(self, name: str) -> Values: ...


def read(pool: Features, policy: Policy, name: str) -> Values:
    """One input of a policy: a feature, or what a test of sets gives; null is NaN."""
    test = policy.derived.get(name)
    if test is None:
        return pool[name]
    values, nulls = test.array({item: pool[item] for item in test.sets})
    return np.asarray(values if nulls is None else np.where(nulls, np.nan, values))


def columns(
    pool: Features,
    policy: Policy,
    *,
    given: Mapping[str, Callable[[], Values]] = _NOTHING,
    at: Rows | None = None,
) -> dict[str, Column]:
    """What ``policy`` reads, as its arrays want it: ``given`` first, then features, with their nulls.

    ``at`` picks some of the rows. A policy that reads nothing gets one column, which says how many rows there are.
    """
    found: dict[str, Column] = {}
    for name in policy.inputs or (next(iter(given), "hops"),):
        if name in given:
            found[name] = given[name]()
            continue
        values = read(pool, policy, name)
        values = values if at is None else values[at]
        found[name] = (values, np.isnan(values)) if name in _NULLABLE else values
    return found


class Candidates:
    """Some rows of a state under one question, with features on demand. Rows are ascending."""

    def __init__(self, state: State, pack: Pack, asked: Asked, rows: Rows) -> None:
        self.state, self.pack, self.asked, self.rows = state, pack, asked, rows
        self._known: dict[str, Values] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Values:
        values = self._known.get(name)
        if values is None:
            values = self._known[name] = _COMPUTE[name](self)
        return values

    def give(self, name: str, values: Values) -> None:
        """Set a feature that an earlier stage of the pipeline decided."""
        self._known[name] = values

    # -- one method for each family ---------------------------------------------------------------------------

    def _number(self, column: str) -> Values:
        return np.asarray(self.state.numbers[column].values[self.rows])

    def _word(self, column: str) -> Values:
        return self.state.names[column].objects(self.rows)

    def _days_since(self, column: str) -> Values:
        elapsed = (self.asked.at - self._number(column)) / DAY
        return np.asarray(np.maximum(elapsed, 0.0))

    def before(self) -> Rows:
        """The row just before each one in its session; -1 where none is."""
        if "before" not in self._known:
            self._known["before"] = self.state.edges.step(self.rows, _NEXT, outgoing=False)
        return self._known["before"]

    def contexts(self) -> NDArray[np.int32]:
        return self.state.contexts.codes[self.rows]

    def use_days(self) -> Values:
        """f64[uses, rows]: the ages of each row's latest uses, the newest first; NaN where there were fewer."""
        if "use-days" not in self._known:
            uses = self.state.uses
            instants = uses.values[self.rows].T
            ages = np.maximum((self.asked.at - instants) / DAY, 0.0)
            ages[instants == uses.NEVER] = np.nan
            self._known["use-days"] = ages
        return self._known["use-days"]

    def half_life(self) -> Values:
        """Days, by the pack's policy; NaN where it gives null."""
        if "half-life" not in self._known:
            policy = self.pack.policies["half-life"]
            base = self.pack.number("base-half-life")
            given: dict[str, Callable[[], Values]] = {
                "base-half-days": lambda: np.full(len(self), base),
                "base-half-ms": lambda: np.full(len(self), base * _MS_A_DAY),
                "recency-ms": lambda: self["idle-days"] * _MS_A_DAY,
            }
            half, nulls = policy.arrays(columns(self, policy, given=given), order=self.rows)
            half = half / self.pack.unit("half-life")
            self._known["half-life"] = half if nulls is None else np.where(nulls, np.nan, half)
        return self._known["half-life"]

    def recency(self) -> Values:
        with np.errstate(all="ignore"):
            return np.asarray(np.exp(-_LN2 * self["idle-days"] / self.half_life()))

    def retention(self) -> Values:
        policy = self.pack.policies["retention"]
        values, nulls = policy.arrays(columns(self, policy, given={"half-life": self.half_life}), order=self.rows)
        return np.asarray(values if nulls is None else np.where(nulls, np.nan, values))

    def sets(self, column: str) -> Values:
        """The strings of each row as tuples, empty for none."""
        lists = self.state.lists[column]
        found = np.empty(len(self), dtype=object)
        found[:] = [lists.at(row) for row in self.rows.tolist()]
        return found

    def query_tags(self) -> Values:
        named = tuple(dict.fromkeys(_TAG.findall(self.asked.question.text)))
        found = np.empty(len(self), dtype=object)
        found[:] = [named] * len(self)
        return found

    def triggered(self) -> Values:
        return _any_of(self.rows, self.asked.triggered())

    def names_speaker(self) -> Values:
        return _any_of(self.state.names["speaker"].codes[self.rows], self.asked.named)

    def answers(self) -> Values:
        before = self.before()
        return np.asarray((before >= 0) & self.state.asks.values[np.maximum(before, 0)])

    def before_coverage(self) -> Values:
        rows = self.before()
        covered: Values = self.asked.coverage(np.maximum(rows, 0))
        return np.asarray(np.where(rows >= 0, covered, 0.0))

    def same_branch(self) -> Values:
        branches = self.state.names["branch"]
        codes = branches.codes[self.rows]
        asked = self.asked.question.filters.branch or ()
        return _any_of(codes, np.array([-1, *map(branches.code, asked)]))

    def same_session(self) -> Values:
        sessions = self.state.names["session"]
        session = self.asked.question.session
        if session is None:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray(sessions.codes[self.rows] == sessions.code(session))

    def session_seed(self) -> Values:
        """The best seed of each session among these rows; a row without a session has its own."""
        contexts, seeds = self.contexts(), self["seed"]
        inside = contexts >= 0
        best = seeds.copy()
        if inside.any():
            groups, index = np.unique(contexts[inside], return_inverse=True)
            top = np.full(len(groups), -np.inf)
            np.maximum.at(top, index, seeds[inside])
            best[inside] = top[index]
        return np.asarray(best)


def _any_of(values: Values, wanted: Values) -> Values:
    """Which values are wanted; a few comparisons cost a fifth of ``isin``, which sorts."""
    if len(wanted) > 8:
        return np.isin(values, wanted)
    found = np.zeros(len(values), dtype=np.bool_)
    for value in wanted:
        found |= values == value
    return found


def _plain(column: str) -> Callable[[Candidates], Values]:
    return lambda pool: pool._number(column)


def _words(column: str) -> Callable[[Candidates], Values]:
    return lambda pool: pool._word(column)


def _use(number: int) -> Callable[[Candidates], Values]:
    return lambda pool: pool.use_days()[number - 1]


_COMPUTE: dict[str, Callable[[Candidates], Values]] = {
    "similarity": lambda pool: pool.asked.similarity(pool.rows),
    "closeness": lambda pool: pool.asked.closeness(pool["similarity"]),
    "lexical": lambda pool: pool.asked.lexical(pool.rows),
    "coverage": lambda pool: pool.asked.coverage(pool.rows),
    "session-lexical": lambda pool: pool.asked.session_lexical(pool.contexts()),
    "before-coverage": Candidates.before_coverage,
    "names-speaker": Candidates.names_speaker,
    "names-other": lambda pool: ~pool["names-speaker"] & bool(len(pool.asked.named)),
    "query-tags": Candidates.query_tags,
    "triggered": Candidates.triggered,
    "same-session": Candidates.same_session,
    "same-branch": Candidates.same_branch,
    "asks": lambda pool: pool.state.asks.values[pool.rows],
    "answers": Candidates.answers,
    "length": lambda pool: pool.state.words.lengths[pool.rows].astype(np.float64),
    "seed": lambda pool: np.zeros(len(pool)),
    "received": lambda pool: np.zeros(len(pool)),
    "activation": lambda pool: pool["seed"] + pool["received"],
    "hops": lambda pool: np.zeros(len(pool)),
    "session-seed": Candidates.session_seed,
    "age-days": lambda pool: pool._days_since("created"),
    "idle-days": lambda pool: pool._days_since("accessed"),
    "recency": Candidates.recency,
    "elapsed-days": lambda pool: pool["idle-days"],
    "retention": Candidates.retention,
    "access": _plain("access"),
    "uses": lambda pool: pool["access"] + 1.0,
    **{f"use-{number}-days": _use(number) for number in range(1, USES + 1)},
    "success": _plain("success"),
    "fail": _plain("fail"),
    "importance": _plain("importance"),
    "confidence": _plain("confidence"),
    "strength": _plain("strength"),
    "energy": _plain("energy"),
    "stability": _plain("stability"),
    "difficulty": _plain("difficulty"),
    "ttl-days": _plain("ttl_days"),
    "emotional-weight": _plain("emotional_weight"),
    "recency-weight": _plain("recency_weight"),
    "pinned": _plain("pinned"),
    "kind": _words("kind"),
    "scope": _words("scope"),
    "provenance": _words("provenance"),
    "visibility": _words("visibility"),
    "source": _words("source"),
    "status": _words("status"),
    "tags": lambda pool: pool.sets("tags"),
    "files": lambda pool: pool.sets("files"),
}
