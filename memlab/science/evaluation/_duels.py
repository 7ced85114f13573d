"""The recalls on which a challenger stood against the live pack, and what each of them says of the difference.

An observation comes with the bounds between which it lies whatever is drawn and whatever is rewarded: a confidence
sequence rests on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.science.evaluation._intervals import Floats, Ints
from memlab.science.evaluation._log import Challenged, Log, challenges_of
from memlab.science.evaluation._measure import ARM, COLUMNS, Compared, Credited, Evidence, Head
from memlab.science.evaluation._prepared import Settings

__all__ = [
    "Course",
    "Duel",
    "Seen",
    "answer_rate",
    "by_items",
    "by_recalls",
    "comparisons_begun",
    "duels_of",
]

Seen = tuple[Floats, Floats, Floats, Floats]
"""Of each recall, f64[recalls]: what it says of the difference, at least and at most, and the bounds of that."""
_CERTAIN, _PROBES, _UNSUPPORTED = (
    COLUMNS.index(name) for name in ("certain", "probes", "unsupported")
)


@dataclass(frozen=True)
class Course:
    """The order in which recalls enter a sequence: that of time; those that belong together, as one when the last ends.

    ``order`` holds the recalls, ``first`` where each block begins among them.
    """

    order: Ints
    first: Ints

    @classmethod
    def of(cls, log: Log, *, clustered: bool) -> Course:
        order = np.arange(len(log))
        if "at" in log.decisions.columns and not log.decisions["at"].null_count():
            order = np.argsort(log.decisions["at"].to_physical().to_numpy(), kind="stable")
        if not clustered:
            return cls(order, np.arange(len(log)))
        end = np.zeros(log.clusters, dtype=np.int64)
        np.maximum.at(end, log.cluster[order], np.arange(len(log)))
        ends = end[log.cluster[order]]
        by_block = np.argsort(ends, kind="stable")
        return cls(order[by_block], np.flatnonzero(np.diff(ends[by_block], prepend=-1)))

    @property
    def sizes(self) -> Ints:
        """int64[blocks]: recalls of each."""
        return np.asarray(np.diff(self.first, append=len(self.order)))

    @property
    def last(self) -> Ints:
        """int64[blocks]: the last recall of each."""
        return np.asarray(self.order[self.first + self.sizes - 1])

    def sums(self, values: Floats) -> Floats:
        """f64[blocks], of values of recalls."""
        return np.asarray(np.add.reduceat(values[self.order], self.first))

    def before(self, values: Floats) -> Floats:
        """f64[recalls]: the sum over all blocks that had ended before that of the recall: what was known before it."""
        sums = self.sums(values)
        found = np.empty(len(self.order))
        found[self.order] = np.repeat(np.cumsum(sums) - sums, self.sizes)
        return found


@dataclass(frozen=True)
class Duel:
    """The recalls on which one challenger stood against the live pack, and the two heads on each."""

    challenger: str
    live: str
    log: Log
    own: Head
    base: Head
    draws: Floats
    shares: Floats | None
    """f64[recalls, 2]: the probability of the challenger's head and of the live one's, where whole heads are shown."""
    arm: Ints
    """Whose head was shown: 1 the challenger's, -1 the live one's, 0 another's."""
    same: NDArray[np.bool_]
    """Where the two heads are the same."""
    number: int
    """How many comparisons the log had begun with this one."""
    notes: tuple[str, ...]


def duels_of(log: Log, wanted: str | None) -> list[Duel]:
    """Of each challenger, or the one that is wanted: its recalls under its last version and design."""
    logged, hashes = challenges_of(log), _live_hashes(log)
    last = {name: at for at, one in enumerate(logged) if one is not None for name in one.heads}
    if not last:
        raise InputError(
            'No recall here was challenged: lab.challenge("companion", reason="...") lets a pack stand against the '
            "live one from the next recall on."
        )
    if wanted is not None and wanted not in last:
        raise UnknownName("challenger", wanted, last)
    numbers = _numbers(logged, hashes)
    duels = []
    for name, end in last.items():
        if wanted not in (None, name):
            continue
        with_it = {
            at: one for at, one in enumerate(logged) if one is not None and name in one.heads
        }
        version = {at: _version(name, one, hashes[at]) for at, one in with_it.items()}
        chosen = {at: one for at, one in with_it.items() if version[at] == version[end]}
        part, drawn = log.only(np.array(list(chosen), dtype=np.int64)), list(chosen.values())
        live = log.decisions["pack"][end] if "pack" in log.decisions.columns else "live"
        duels.append(
            Duel(
                name,
                live,
                part,
                _head(name, [one.heads[name].ids for one in drawn], part),
                _head("live", [one.live for one in drawn], part),
                np.array([one.draws for one in drawn]),
                np.array([[one.shares[name], one.shares[""]] for one in drawn])
                if version[end][-1]
                else None,
                np.array([{name: 1, "": -1}.get(one.whose, 0) for one in drawn]),
                np.array([one.heads[name].ids == one.live for one in drawn]),
                numbers[version[end]],
                _notes(name, live, len(with_it) - len(chosen), drawn),
            )
        )
    return duels


_Version = tuple[str, str, str | None, bool]
"""Of a comparison: the challenger's name and hash, the live pack's hash, and whether whole heads are shown."""


def _version(name: str, one: Challenged, live: str | None) -> _Version:
    return name, one.heads[name].hash, live, bool(one.shares)


def _numbers(
    logged: Sequence[Challenged | None], hashes: Sequence[str | None]
) -> dict[_Version, int]:
    """Number every comparison from 1, in the order in which the log began them.

    A number depends on the recalls before alone, so it is known when the comparison begins and never changes.
    """
    begun: dict[_Version, int] = {}
    for at, one in enumerate(logged):
        if one is not None:
            for name in one.heads:
                begun.setdefault(_version(name, one, hashes[at]), len(begun) + 1)
    return begun


def comparisons_begun(log: Log) -> int:
    """Return how many comparisons of a challenger with a live pack the log has begun."""
    return len(_numbers(challenges_of(log), _live_hashes(log)))


def _live_hashes(log: Log) -> list[str | None]:
    return (
        log.decisions["pack_hash"].to_list()
        if "pack_hash" in log.decisions.columns
        else [None] * len(log)
    )


def _notes(name: str, live: str, others: int, drawn: Sequence[Challenged]) -> tuple[str, ...]:
    short = sum(len(one.heads[name].ids) < len(one.live) for one in drawn)
    notes = []
    if others:
        notes.append(
            f"{others:,} recalls under other versions of {name} or of {live}, or designs, are left out."
        )
    if short:
        notes.append(
            f"{name} shows fewer items than {live} in {short:,} recalls: what it gives no score, or excludes."
        )
    return tuple(notes)


def _head(name: str, ids: Sequence[Sequence[int | str]], log: Log) -> Head:
    """The head that was logged: its rows among the candidates, and how many of it are none."""
    given = pl.DataFrame(
        {
            "recall": np.repeat(np.arange(len(ids)), [len(one) for one in ids]),
            "memory_id": pl.Series(
                [memory for one in ids for memory in one], dtype=log.ids["memory_id"].dtype
            ),
        }
    )
    row = log.rows_of(given)
    outside = np.bincount(
        given["recall"].filter(row.is_null()).to_numpy(), minlength=len(log)
    ).astype(np.float64)
    return Head(name, np.sort(row.drop_nulls().to_numpy().astype(np.int64)), outside)


def by_items(
    duel: Duel, evidence: Evidence, compared: Compared, rate: Floats, settings: Settings
) -> Seen:
    """What each recall says of the difference by the items on which the two packs differ."""
    low, high = settings.reward_range
    arms = compared.totals[:, 1 : 1 + ARM], compared.totals[:, 1 + ARM : 1 + 2 * ARM]
    least, most = (
        _sum(arms[0], ends[0]) - _sum(arms[1], ends[1]) for ends in ((low, high), (high, low))
    )
    apart = evidence.apart(duel.own, duel.base)
    heaviest = [
        _heaviest(arm, rows, duel, evidence, rate) for arm, rows in zip(arms, apart, strict=True)
    ]
    low, high = _widest(evidence.credited, settings)
    up, down = max(high, 0.0), min(low, 0.0)
    return least, most, heaviest[0] * down - heaviest[1] * up, heaviest[0] * up - heaviest[1] * down


def by_recalls(
    duel: Duel,
    log: Log,
    credited: Credited | None,
    course: Course,
    rate: Floats,
    settings: Settings,
) -> Seen:
    """What each recall says of the difference where one of the two heads was shown whole.

    The reward of the recall less the mean of those before it, over the probability of the head that was shown; 0 where
    the heads are the same. What may not be shown of a head earns anything within the range. ``log`` is that of the
    duel, attributed rewards set right.
    """
    assert duel.shares is not None
    low, high = settings.reward_range
    _check_shown(duel, log)
    unknown = log.shown & ~log.answered & (settings.missing == "bounds")
    silent = np.bincount(log.recall, weights=unknown, minlength=len(log))
    earned = (
        np.bincount(
            log.recall, weights=np.nan_to_num(log.reward) * log.answered, minlength=len(log)
        )
        / rate
    )
    typical = course.before(earned) / (course.before(np.ones(len(log))) + 1.0)
    weight = np.where(
        duel.arm > 0, 1 / duel.shares[:, 0], np.where(duel.arm < 0, -1 / duel.shares[:, 1], 0.0)
    )
    ends = weight * (earned + silent * low - typical), weight * (earned + silent * high - typical)
    never = log.propensity == 0
    hidden = [
        np.bincount(log.recall[head.rows], weights=never[head.rows], minlength=len(log))
        + head.outside
        for head in (duel.own, duel.base)
    ]
    shortest, longest = hidden[0] * low - hidden[1] * high, hidden[0] * high - hidden[1] * low
    least, most = np.minimum(*ends) + shortest, np.maximum(*ends) + longest
    low, high = _widest(credited, settings)
    floors, ceilings = [np.zeros(len(log))], [np.zeros(len(log))]
    for head, share, sign in (
        (duel.own, duel.shares[:, 0], 1.0),
        (duel.base, duel.shares[:, 1], -1.0),
    ):
        size = np.bincount(log.recall[head.rows], weights=~never[head.rows], minlength=len(log))
        reach = [sign * (size * end / rate - typical) / share for end in (low, high)]
        floors.append(np.minimum(*reach))
        ceilings.append(np.maximum(*reach))
    floor, ceiling = np.minimum.reduce(floors), np.maximum.reduce(ceilings)
    least, most, floor, ceiling = (
        np.where(duel.same, 0.0, values)
        for values in (least, most, floor + shortest, ceiling + longest)
    )
    return least, most, floor, ceiling


def _check_shown(duel: Duel, log: Log) -> None:
    """InputError for a recall that shows more or fewer items than the head that it says it shows."""
    shown = np.bincount(log.recall, weights=log.shown, minlength=len(log))
    for head, arm in ((duel.own, 1), (duel.base, -1)):
        wrong = (duel.arm == arm) & (
            shown != np.bincount(log.recall[head.rows], minlength=len(log))
        )
        if wrong.any():
            at = int(np.argmax(wrong))
            size = int((log.recall[head.rows] == at).sum())
            raise InputError(
                f"Recall {log.decisions['decision'][at]} shows {shown[at]:.0f} items, and the head of {head.name} has "
                f"{size}: a challenge of whole heads shows one of them."
            )


def _widest(credited: Credited | None, settings: Settings) -> tuple[float, float]:
    """The range of a reward, attributed ones among them."""
    return settings.reward_range if credited is None else credited.range_of(*settings.reward_range)


def _sum(arm: Floats, fill: float) -> Floats:
    _, _, certain_reward, _, _, reward, silent, unsupported = arm.T
    return np.asarray(certain_reward + reward + (silent + unsupported) * fill)


def _heaviest(arm: Floats, rows: Ints, duel: Duel, evidence: Evidence, rate: Floats) -> Floats:
    """The most that the weights of an arm can add up to, f64[recalls]: known before anything is drawn."""
    log = duel.log
    weight = np.zeros(len(log))
    probes = rows[evidence.probe[rows]]
    np.maximum.at(weight, log.recall[probes], 1.0 / log.propensity[probes])
    drawn = np.minimum(arm[:, _PROBES], duel.draws)
    return np.asarray((arm[:, _CERTAIN] + drawn * weight) / rate + arm[:, _UNSUPPORTED])


def answer_rate(log: Log, course: Course) -> Floats:
    """f64[recalls]: the share of items answered in earlier blocks, by which a censored reward is scaled up."""
    shown, answered = (
        np.bincount(log.recall, weights=flags, minlength=len(log)).astype(np.float64)
        for flags in (log.shown, log.answered)
    )
    if (shown == answered).all():
        return np.ones(len(log))
    return np.clip((course.before(answered) + 5.0) / (course.before(shown) + 10.0), 0.05, 1.0)
