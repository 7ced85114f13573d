"""What a use changes in the memories that were used: the ``reinforce`` policy, asked once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.base.clock import DAY, Micros
from memlab.kernel.language import changed_fields
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment, columns
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import Change, State, values_of

__all__ = ["Outcome", "days_before", "reinforced"]

Outcome = Literal["success", "fail", "recalled", "verified", "rejected"]
Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def reinforced(
    state: State,
    pack: Pack,
    rows: Rows,
    now: Micros,
    *,
    outcome: Outcome,
    rating: int | None = None,
    elapsed: Callable[[], Floats] | None = None,
) -> Change:
    """The other values that ``rows`` (ascending) have after a use with this outcome; every one of them is decided by
    the values before.

    ``elapsed`` gives the days from the use before to the one that is judged, f64[rows]; without it they are the days
    since the last use. What the policy gives is held within the range of its column. Null makes a column unknown where
    it may be (``stability``, ``difficulty``), and elsewhere leaves the value as it was; so does what is no finite
    number.

    A policy that can change nothing on this outcome is not run: that is known from its text.
    """
    policy = pack.policies["reinforce"]
    known = {"outcome": outcome, "rating": None if rating is None else float(rating)}
    fields = changed_fields(policy, known)
    if not fields or not len(rows):
        return Change()
    moment, count = Moment(state, pack, rows, now), len(rows)

    def half_life() -> tuple[Floats, Flags]:
        days = moment.half_life()
        return days, np.isnan(days)

    given: dict[str, Callable[[], NDArray[np.generic] | tuple[Floats, Flags]]] = {
        "outcome": lambda: np.full(count, outcome, dtype=object),
        "rating": lambda: (np.full(count, np.nan if rating is None else rating), np.full(count, rating is None)),
        "half-life": half_life,
    }
    if elapsed is not None:
        given["elapsed-days"] = elapsed
    updates = policy.updates(columns(moment, policy, given=given), order=rows)
    moved = np.zeros(count, dtype=np.bool_)
    after: dict[str, Floats] = {}
    for field in fields:
        column = field.replace("-", "_")
        old = moment.number(column)
        after[column] = _held(column, old, *updates[field])
        moved |= ~((after[column] == old) | (np.isnan(after[column]) & np.isnan(old)))
    if not moved.any():
        return Change()
    return Change(
        set=(
            values_of((rows[moved] + 1).tolist(), **{name: _nullable(values[moved]) for name, values in after.items()}),
        )
    )


def days_before(state: State, rows: Rows, now: Micros, *, used: Micros | None = None, counted: bool = True) -> Floats:
    """f64[rows]: days from the use before to the one at ``used``, at least 0.

    ``counted`` says whether that use stands among the uses of these memories already. Without ``used`` the latest use
    is judged, or what happens ``now`` where there was none since the creation. Of older uses than the latest
    eight nothing is known; they count as if the creation was the one before.
    """
    instants = state.uses.values[rows]
    created = state.numbers["created"].values[rows]
    if used is None:
        first = instants[:, 1] == state.uses.NEVER
        judged = np.where(first, now, instants[:, 0])
        place = np.where(first, 0, 1)
    else:
        judged = np.full(len(rows), used)
        place = (instants > used).sum(axis=1) + int(counted)
    depth = instants.shape[1]
    before = instants[np.arange(len(rows)), np.minimum(place, depth - 1)]
    before = np.where((place >= depth) | (before == state.uses.NEVER), created, before)
    # far from one another two instants differ by more than 64 bits hold
    return np.asarray(np.maximum((judged.astype(np.float64) - before.astype(np.float64)) / DAY, 0.0))


def _held(column: str, old: Floats, new: Floats, nulls: Flags | None) -> Floats:
    """What the column can hold of ``new``."""
    declared = MEMORY[column]
    bounded = np.clip(new, declared.low, declared.high)
    bounded = np.where(np.isfinite(bounded), bounded, old)
    if nulls is None:
        return bounded
    return np.where(nulls, np.nan if declared.nullable else old, bounded)


def _nullable(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
