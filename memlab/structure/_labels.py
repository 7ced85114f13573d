"""What a pack's ``label`` policy says of memories at an instant, without a question."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.clock import DAY, Micros
from memlab.memory import State
from memlab.schema import MEMORY, RELATIONS, USES

if TYPE_CHECKING:
    from memlab.language import Policy
    from memlab.policies import Pack

__all__ = ["Moment", "labels"]

Rows = NDArray[np.int64]
Values = NDArray[Any]

_NEXT = RELATIONS.index("next")
_MS_A_DAY = 86_400_000.0
_BLOCK = 1 << 16
"""Memories at a time: what a policy makes in between takes some megabytes."""


def labels(state: State, pack: Pack, rows: Rows, now: Micros) -> pl.Series:
    """The word of each of ``rows``, null where the policy gives null."""
    policy = pack.policies["label"]
    parts = [pl.Series("layer", [], dtype=pl.String)]
    for start in range(0, len(rows), _BLOCK):
        moment = Moment(state, pack, rows[start : start + _BLOCK], now)
        words, nulls = moment.asked(policy)
        found = pl.Series("layer", words.tolist(), dtype=pl.String)
        parts.append(found if nulls is None else found.set(pl.Series(nulls), None))
    return pl.concat(parts)


class Moment:
    """The features of memories that need the memory and the time alone; ``memlab.policies.FEATURES`` defines them."""

    def __init__(self, state: State, pack: Pack, rows: Rows, now: Micros) -> None:
        self.state, self.pack, self.rows, self.now = state, pack, rows, now
        self._known: dict[str, Values] = {}

    def __getitem__(self, name: str) -> Values:
        if name not in self._known:
            self._known[name] = _COMPUTED[name](self) if name in _COMPUTED else self._column(name.replace("-", "_"))
        return self._known[name]

    def asked(
        self, policy: Policy, given: Mapping[str, Values] | None = None
    ) -> tuple[Values, NDArray[np.bool_] | None]:
        """What a policy makes of these memories; ``given`` are inputs that are no features."""
        columns: dict[str, Any] = dict(given or {})
        for name in policy.inputs or ("access",):
            for feature in policy.derived[name].sets if name in policy.derived else (name,):
                if feature not in columns:
                    values = self[feature]
                    columns[feature] = (values, np.isnan(values)) if values.dtype.kind == "f" else values
        return policy.arrays(columns, order=self.rows)

    def half_life(self) -> Values:
        """Days, by the pack's policy; NaN where it gives null."""
        base = self.pack.number("base-half-life")
        given = {
            "base-half-days": np.full(len(self.rows), base),
            "base-half-ms": np.full(len(self.rows), base * _MS_A_DAY),
            "recency-ms": self["idle-days"] * _MS_A_DAY,
        }
        days, nulls = self.asked(self.pack.policies["half-life"], given)
        days = days / self.pack.unit("half-life")
        return days if nulls is None else np.where(nulls, np.nan, days)

    def recency(self) -> Values:
        with np.errstate(all="ignore"):
            return np.asarray(np.exp(-math.log(2.0) * self["idle-days"] / self["half-life"]))

    def retention(self) -> Values:
        share, nulls = self.asked(self.pack.policies["retention"], {"half-life": self["half-life"]})
        return share if nulls is None else np.where(nulls, np.nan, share)

    def answers(self) -> Values:
        before = self.state.edges.step(self.rows, _NEXT, outgoing=False)
        return np.asarray((before >= 0) & self.state.asks.values[np.maximum(before, 0)])

    def use(self, number: int) -> Values:
        """The age in days of the latest use but ``number - 1``; NaN where there were fewer."""
        instants = self.state.uses.values[self.rows, number - 1]
        return np.where(instants == self.state.uses.NEVER, np.nan, self._days_since(instants))

    def _days_since(self, instants: Values) -> Values:
        # far from now the difference of two instants does not fit 64 bits
        return np.asarray(np.maximum((float(self.now) - instants) / DAY, 0.0))

    def _column(self, name: str) -> Values:
        storage = MEMORY[name].storage
        if storage in ("word", "name"):
            return self.state.names[name].objects(self.rows)
        if storage == "list":
            lists = self.state.lists[name]
            found = np.empty(len(self.rows), dtype=object)
            found[:] = [lists.at(row) for row in self.rows.tolist()]
            return found
        return np.asarray(self.state.numbers[name].values[self.rows])


def _uses(number: int) -> Callable[[Moment], Values]:
    return lambda moment: moment.use(number)


def _elapsed(column: str) -> Callable[[Moment], Values]:
    return lambda moment: moment._days_since(moment.state.numbers[column].values[moment.rows])


_COMPUTED: dict[str, Callable[[Moment], Values]] = {
    "asks": lambda moment: moment.state.asks.values[moment.rows],
    "answers": Moment.answers,
    "length": lambda moment: moment.state.words.lengths[moment.rows].astype(np.float64),
    "age-days": _elapsed("created"),
    "idle-days": _elapsed("accessed"),
    "elapsed-days": _elapsed("accessed"),
    "uses": lambda moment: moment["access"] + 1.0,
    **{f"use-{number}-days": _uses(number) for number in range(1, USES + 1)},
    "half-life": Moment.half_life,
    "recency": Moment.recency,
    "retention": Moment.retention,
}
