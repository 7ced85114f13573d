"""What becomes of memories that nobody uses: what the closed forms of one pack or several say of times to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.clock import Micros, from_micros
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment, status_of
from memlab.kernel.schema import RECALLABLE, STATUSES
from memlab.kernel.state import State, stamps
from memlab.subjects.retention.curves import Forecast
from memlab.subjects.retention.transitions import spelled, standing

__all__ = ["forecast"]

Rows = NDArray[np.int64]
Instants = NDArray[np.int64]

_MOST_POINTS = 10_000
_MOST_VALUES = 5_000_000
"""Rows of a frame: some 300 MB."""

_FINEST: Micros = 1_000_000
"""Transitions have a resolution of one second."""

_MOST_MOVES = 16
"""Transitions of one memory between two points; any more of them stand at the second point."""

_IN_RECALL = np.array([word in RECALLABLE for word in STATUSES])


def forecast(
    state: State, packs: Sequence[Pack], rows: Rows, now: Micros, until: Micros, *, points: int = 100
) -> Forecast:
    """What each pack makes of ``rows`` (ascending) at ``points`` instants from ``now`` to ``until``, both included.

    Nothing is changed, and nothing is used in between. Upkeep is taken to follow at once: status and label are those
    that ``promote``, ``forget`` and ``label`` give at each instant of what takes part in recall; what has left it keeps
    what it had. A transition that is undone again between two instants is not seen.
    """
    if until <= now:
        raise InputError(
            f"A forecast ends after it begins: until= is {from_micros(until):%Y-%m-%d %H:%M:%S}, and it begins at "
            f"{from_micros(now):%Y-%m-%d %H:%M:%S} UTC."
        )
    if not packs:
        raise InputError("A forecast needs a pack: packs= is empty.")
    if len(rows) * points * len(packs) > _MOST_VALUES:
        raise InputError(
            f"{len(rows):,} memories at {points:,} instants under {len(packs)} packs are more than {_MOST_VALUES:,} "
            "values: ask for fewer of one of them."
        )
    step = (until - now) / (points - 1)
    instants = [*dict.fromkeys(now + round(step * place) for place in range(points - 1)), until]
    walks = [_walked(state, pack, name, rows, instants) for pack, name in zip(packs, _named(packs), strict=True)]
    return Forecast(
        at=from_micros(now),
        until=from_micros(until),
        packs=tuple((name, pack.hash) for name, pack in zip(_named(packs), packs, strict=True)),
        texts=tuple((row + 1, text or "") for row, text in zip(rows.tolist(), state.texts.take(rows), strict=True)),
        frame=pl.concat([frame for frame, _ in walks]),
        transitions=pl.concat([moved for _, moved in walks]),
    )


def _named(packs: Sequence[Pack]) -> list[str]:
    """The packs' names; hashes are added to those that share one."""
    names = [pack.name for pack in packs]
    return [f"{pack.name} [{pack.hash[:6]}]" if names.count(pack.name) > 1 else pack.name for pack in packs]


@dataclass(frozen=True)
class _Held:
    """Status and label of some memories at an instant, the label as a code of ``words``, -1 for none."""

    rows: Rows
    status: NDArray[np.int64]
    label: NDArray[np.int64]

    def at(self, places: NDArray[Any]) -> _Held:
        return _Held(self.rows[places], self.status[places], self.label[places])

    def where(self, mask: NDArray[np.bool_], other: _Held) -> _Held:
        """This one where ``mask`` holds, and else the other."""
        return _Held(self.rows, np.where(mask, self.status, other.status), np.where(mask, self.label, other.label))

    @classmethod
    def joined(cls, parts: Sequence[_Held]) -> _Held:
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.status for part in parts]),
            np.concatenate([part.label for part in parts]),
        )

    def differs(self, other: _Held) -> NDArray[np.bool_]:
        return np.asarray((self.status != other.status) | (self.label != other.label))


@dataclass(frozen=True)
class _Step:
    """What some memories were just after ``since``, and are by ``until``: an instant for each."""

    old: _Held
    new: _Held
    since: Instants
    until: Instants

    @classmethod
    def joined(cls, steps: Sequence[_Step]) -> _Step:
        return cls(
            _Held.joined([step.old for step in steps]),
            _Held.joined([step.new for step in steps]),
            np.concatenate([step.since for step in steps]),
            np.concatenate([step.until for step in steps]),
        )


class _Walk:
    """One pack's way through time; it knows the words that it has met."""

    def __init__(self, state: State, pack: Pack) -> None:
        self.state, self.pack = state, pack
        self.words: list[str] = []

    def begun(self, rows: Rows) -> _Held:
        """What the state has."""
        labels = self.state.names["label"]
        self.words = list(labels.vocabulary)
        return _Held(rows, status_of(self.state, rows), labels.codes[rows].astype(np.int64))

    def on(self, held: _Held, now: Micros | Instants) -> _Held:
        """What becomes of it by ``now``, one instant or one for each row."""
        inside = np.flatnonzero(_IN_RECALL[held.status])
        if not len(inside):
            return held
        at = now if isinstance(now, int) else now[inside]
        found = standing(self.state, self.pack, held.rows[inside], at, status=held.status[inside])
        for word in found.words:
            if word not in self.words:
                self.words.append(word)
        codes = np.array([*map(self.words.index, found.words), -1])
        status, label = held.status.copy(), held.label.copy()
        status[inside] = found.status
        label[inside] = np.where(found.label >= 0, codes[found.label], label[inside])
        return _Held(held.rows, status, label)


def _walked(
    state: State, pack: Pack, name: str, rows: Rows, instants: Sequence[Micros]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The frame and the transitions of one pack."""
    walk, count = _Walk(state, pack), len(rows)
    held, before = walk.begun(rows), instants[0] - 1
    numbers: list[tuple[NDArray[Any], NDArray[Any], _Held]] = []
    steps: list[_Step] = []
    for now in instants:
        after = walk.on(held, now)
        places = np.flatnonzero(after.differs(held))
        steps.append(_Step(held.at(places), after.at(places), np.full(len(places), before), np.full(len(places), now)))
        held, before = after, now
        moment = Moment(state, pack, rows, now)
        numbers.append((moment.retention(), moment.half_life(), held))
    moved = _located(walk, steps)
    words = walk.words
    frame = pl.DataFrame(
        [
            pl.Series("pack", [name], dtype=pl.String).new_from_index(0, count * len(instants)),
            pl.Series("memory_id", np.tile(rows + 1, len(instants)), dtype=pl.Int64),
            stamps("at", np.repeat(np.array(instants, dtype=np.int64), count)),
            pl.Series("retention", np.concatenate([kept for kept, _, _ in numbers]), dtype=pl.Float64).fill_nan(None),
            pl.Series("half_life", np.concatenate([half for _, half, _ in numbers]), dtype=pl.Float64).fill_nan(None),
            spelled(np.concatenate([one.label for _, _, one in numbers]), words).alias("label"),
            spelled(np.concatenate([one.status for _, _, one in numbers]), STATUSES).alias("status"),
        ]
    )
    parts = [pl.DataFrame(schema=_MOVED)]
    for step in moved:
        for what, ours, theirs, known in (
            ("status", step.old.status, step.new.status, STATUSES),
            ("label", step.old.label, step.new.label, words),
        ):
            places = np.flatnonzero(ours != theirs)
            parts.append(
                pl.DataFrame(
                    [
                        pl.Series("pack", [name], dtype=pl.String).new_from_index(0, len(places)),
                        pl.Series("memory_id", step.old.rows[places] + 1, dtype=pl.Int64),
                        stamps("at", step.until[places]),
                        pl.Series("what", [what], dtype=pl.String).new_from_index(0, len(places)),
                        spelled(ours[places], known).alias("from"),
                        spelled(theirs[places], known).alias("to"),
                    ]
                )
            )
    by_memory = frame.sort("memory_id", "at", maintain_order=True)
    return by_memory, pl.concat(parts).sort("memory_id", "at", maintain_order=True)


_MOVED: dict[str, Any] = {
    "pack": pl.String,
    "memory_id": pl.Int64,
    "at": pl.Datetime("us", "UTC"),
    "what": pl.String,
    "from": pl.String,
    "to": pl.String,
}


def _located(walk: _Walk, steps: Sequence[_Step]) -> list[_Step]:
    """The transitions within these steps, each with the instant of ``until``: by halving the time, all at once."""
    found: list[_Step] = []
    left = _Step.joined(steps)
    for _ in range(_MOST_MOVES):
        if not len(left.old.rows):
            return found
        low, high = left.since.copy(), left.until.copy()
        # where nothing happens until the end although the end is another, it happens there
        while (wide := np.flatnonzero(high - low > _FINEST)).size:
            middle = low[wide] + (high[wide] - low[wide]) // 2
            moved = walk.on(left.old.at(wide), middle).differs(left.old.at(wide))
            high[wide[moved]], low[wide[~moved]] = middle[moved], middle[~moved]
        last = high == left.until
        new = walk.on(left.old, high).where(~last, left.new)
        found.append(_Step(left.old, new, low, high))
        rest = np.flatnonzero(new.differs(left.new))
        left = _Step(new.at(rest), left.new.at(rest), high[rest], left.until[rest])
    return [*found, left]
