"""Histories of uses, and the retention that a pack gives to each of their items at any time.

A history has items, such as the cards of a review log or the memories of a lab, and their uses in order of time. The
pack's ``reinforce`` changes the fields of an item after each use, and its ``retention`` is computed before a use. Both are
the lab's own policies, computed for all items at once: first every item's first use, then every second one.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from memlab.kernel.base.arrays import Floats, Rows
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.language import Policy, changed_fields
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment
from memlab.kernel.schema import MEMORY
from memlab.kernel.verbs.reinforcement import clip_to_column
from memlab.subjects.opening import open_lab

Columns = dict[str, Any]

# Features in milliseconds are of packs whose designs count in them.
_MS_A_DAY = 86_400_000.0


@dataclass(frozen=True, eq=False)
class Uses:
    """The uses of items, sorted by item and time.

    Attributes
    ----------
    item
        The number of the item of each use, from 0.
    days
        The time of each use in days.
    rating
        The rating of each use, 1 to 4; NaN without a rating. A use that is rated 1 failed.
    created
        The time of each item in days.
    """

    item: Rows
    days: Floats
    rating: Floats
    created: Floats

    @cached_property
    def start(self) -> Rows:
        """The row of the first use of each item."""
        return np.searchsorted(self.item, np.arange(len(self.created)))

    @cached_property
    def fails(self) -> Rows:
        """The number of failures of the item up to and including each use."""
        total = np.cumsum(self.rating == 1)
        before = np.concatenate([[0], total])[self.start[self.item]]
        return np.asarray(total - before)

    def last_before(self, item: Rows, days: Floats) -> Rows:
        """Return the row of each item's last use before a time, or the row before its first use."""
        order = np.lexsort((self.days, self.item))
        keys = np.rec.fromarrays([self.item[order], self.days[order]])
        wanted = np.rec.fromarrays([item, days], dtype=keys.dtype)
        return np.searchsorted(keys, wanted) - 1

    def features(self, names: Container[str], item: Rows, last: Rows, days: Floats) -> Columns:
        """Return features of time and use at the times ``days``, after each item's last use."""
        count = last - self.start[item] + 1
        used = count > 0
        created = self.created[item]
        idle = np.maximum(days - np.where(used, self.days[last], created), 0.0)
        fails = np.where(used, self.fails[last], 0).astype(np.float64)
        columns: Columns = {
            "age-days": np.maximum(days - created, 0.0),
            "elapsed-days": idle,
            "idle-days": idle,
            "recency-ms": idle * _MS_A_DAY,
            "access": count.astype(np.float64),
            "uses": count + 1.0,
            "fail": fails,
            "success": count - fails,
        }
        for number in range(1, 9):  # the creation is the use before the first one
            name = f"use-{number}-days"
            if name in names:
                at = np.where(number <= count, self.days[last - number + 1], created)
                columns[name] = np.where(number <= count + 1, np.maximum(days - at, 0.0), np.nan)
        return columns


def replay(pack: Pack, uses: Uses) -> dict[str, Floats]:
    """Return the values that ``reinforce`` gives to fields after each use; NaN if missing."""
    policy = pack.policies["reinforce"]
    names = tuple(policy.fields)
    defaults = {name: _default(name) for name in names}
    after = {name: np.full(len(uses.item), value) for name, value in defaults.items()}
    if not names or not len(uses.item):
        return after
    inputs = {*policy.inputs, *pack.policies["half-life"].inputs}
    # a use that a lab logs as recalled changes the fields of few packs
    reinforces_recall = bool(changed_fields(policy, {"outcome": "recalled", "rating": None}))
    position = np.arange(len(uses.item)) - uses.start[uses.item]
    order = np.argsort(position, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(position[order])) + 1):
        item, days, rating = uses.item[rows], uses.days[rows], uses.rating[rows]
        first = position[rows[0]] == 0
        values = {
            name: np.full(len(rows), value) if first else after[name][rows - 1]
            for name, value in defaults.items()
        }
        recalling = uses.features(inputs, item, rows - 1, days)
        judged = uses.features(inputs, item, rows, days) | {
            name: recalling[name] for name in ("elapsed-days", "fail", "success")
        }
        judged["outcome"] = np.where(rating == 1, "fail", "success").astype(object)
        recalling["outcome"] = np.full(len(rows), "recalled", object)
        # a lab reinforces a memory when it is recalled, and again when the use is judged
        for columns, grade in ((recalling, np.full(len(rows), np.nan)), (judged, rating)):
            if columns is recalling and not reinforces_recall:
                continue
            columns |= {"rating": grade, **values}
            updates = policy.updates(_inputs(pack, policy, columns))
            values = {
                name: clip_to_column(name.replace("-", "_"), values[name], *updates[name])
                for name in names
            }
        for name in names:
            after[name][rows] = values[name]
    return after


def retain(
    pack: Pack, uses: Uses, fields: Mapping[str, Floats], item: Rows, last: Rows, days: Floats
) -> Floats:
    """Return the pack's retention of each item at the time ``days``, given its last use."""
    used = last >= uses.start[item]
    policy = pack.policies["retention"]
    inputs = {*policy.inputs, *pack.policies["half-life"].inputs}
    columns = uses.features(inputs, item, last, days) | {
        name: np.where(used, values[last], _default(name)) for name, values in fields.items()
    }
    values, nulls = policy.arrays(_inputs(pack, policy, columns))
    return np.where(nulls, np.nan, values) if nulls is not None else np.asarray(values, np.float64)


def _inputs(pack: Pack, policy: Policy, columns: Columns) -> Columns:
    """Return a column for each input of a policy, with a new memory's value if unknown."""
    count = len(columns["age-days"])

    def input_column(name: str) -> Any:
        if name == "half-life":
            half = pack.policies["half-life"]
            values, nulls = half.arrays(_inputs(pack, half, columns))
            return values / pack.unit("half-life"), nulls
        if name == "recency":
            values, nulls = input_column("half-life")
            return np.exp2(-columns["idle-days"] / values), nulls
        if name in ("base-half-days", "base-half-ms"):
            base = float(pack.settings["base-half-life"])
            return np.full(count, base if name == "base-half-days" else base * _MS_A_DAY)
        stored: Any = columns.get(name)
        if stored is None:
            stored = np.repeat(np.asarray(_new_memory()[name]), count)
        return (stored, np.isnan(stored)) if stored.dtype == np.float64 else stored

    with np.errstate(all="ignore"):
        return {name: input_column(name) for name in policy.inputs}


# Features of a new memory are the same for all packs, and opening a lab takes 20 ms.
@cache
def _new_memory() -> Moment:
    """Return the features of a new memory."""
    with open_lab(clock=ManualClock()) as lab:
        lab.remember("A card.", linking="off")
        with lab.io.store.reading() as state:
            return Moment(state, lab.policies.pack, np.zeros(1, np.int64), lab.io.store.clock())


def _default(field: str) -> float:
    """Return a field's value for a new memory, or NaN if the field starts without a value."""
    value = MEMORY[field.replace("-", "_")].default
    return np.nan if value is None else float(value)
