"""Rewards that were read from answers, set right by those of them that somebody also judged.

``lab.agents.credits`` overlooks use and sees use where there was none, as often as agents and users at hand make it.
Where enough of what it credited was judged as well, the attributed reward is regressed on the judged one, and the line
is inverted: a reward that nobody judged counts ``(attributed - a) / b``, whose mean is that of the true rewards
wherever attribution errs alike on all memories that are equally of use (Rogan & Gladen 1978). To regress the other way
round would not do: it gives what a better policy shows the mean of all. The line is a function of sums over recalls,
like all else that is estimated here, so each interval knows how far it may be off (a stacked M-estimator; Stefanski &
Boos 2002), and widens where few were judged. What was judged is taken for a random part of what was credited.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from memlab.science.evaluation._log import Log

__all__ = ["JUDGED", "Credited", "credited_note", "recalibrate"]

Floats = NDArray[np.float64]

JUDGED = 30
"""So many attributed rewards must have been judged for a line to be drawn."""

_LEAST = 0.2
"""By so much more must the attributed reward rise from a judged 0 to a judged 1, or it says too little."""


@dataclass(frozen=True)
class Credited:
    """The line ``level + slope * attributed``. ``counts`` f64[recalls, 5] are what it is a function of.

    ``bases`` f64[n, 2]: what a step of level and of slope adds to each candidate's reward. Where no line could be
    drawn, ``line`` is (0, 1) and nothing is moved.
    """

    line: Floats
    judged: int
    unjudged: int
    counts: Floats = field(repr=False)
    bases: Floats = field(repr=False)

    def change(self, counts: Floats) -> Floats:
        """f64[..., 2]: the line of sums of counts f64[..., 5], less this one."""
        return np.asarray(_line(counts) - self.line)

    def range_of(self, low: float, high: float) -> tuple[float, float]:
        """The range of rewards, where attributed ones lie within ``low`` and ``high``."""
        ends = self.line[0] + self.line[1] * np.array([low, high])
        return min(low, float(ends.min())), max(high, float(ends.max()))

    @property
    def note(self) -> str:
        """What was done, for a report."""
        return (
            f"{self.unjudged:,} rewards were read from answers and judged by nobody. Each counts {self.line[0]:+.2f} "
            f"{self.line[1]:+.2f} times what was read, by {self.judged:,} that were judged as well, taken for a random "
            "part of them; intervals know how far that may be off."
        )


def recalibrate(log: Log) -> tuple[Log, Credited | None]:
    """The log with the rewards that nobody judged set right, and how.

    None, and the log as it is, where fewer than ``JUDGED`` were judged, or what was read hardly follows them.
    """
    read = ~np.isnan(log.attributed) & log.answered
    judged, unjudged = read & log.stated, read & ~log.stated
    if judged.sum() < JUDGED or not unjudged.any():
        return log, None
    given, worth = log.attributed[judged], log.reward[judged]
    each = np.column_stack([np.ones(len(given)), worth, worth**2, given, given * worth])
    counts = np.zeros((len(log), each.shape[1]))
    np.add.at(counts, log.recall[judged], each)
    line = _line(counts.sum(axis=0))
    if not 0 < line[1] <= 1 / _LEAST:
        return log, None
    reward, bases = log.reward.copy(), np.zeros((len(log.reward), 2))
    reward[unjudged] = line[0] + line[1] * log.attributed[unjudged]
    bases[unjudged] = np.column_stack([np.ones(int(unjudged.sum())), log.attributed[unjudged]])
    return replace(log, reward=reward), Credited(line, int(judged.sum()), int(unjudged.sum()), counts, bases)


def credited_note(log: Log, credited: Credited | None) -> list[str]:
    """What a report says of attributed rewards; nothing where none counts."""
    if credited is not None:
        return [credited.note]
    if not (~np.isnan(log.attributed) & ~log.stated & log.answered).any():
        return []
    return [
        f"Rewards that were read from answers count as they were read: fewer than {JUDGED} of them were judged as "
        "well, or what was read hardly follows what was judged. Judge some, and they are set right."
    ]


def _line(counts: Floats) -> Floats:
    """Level and slope of the inverse of the least-squares line of attributed on judged rewards."""
    many, worth, square, given, both = np.moveaxis(counts, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = (both - given * worth / many) / (square - worth**2 / many)
        start = (given - rise * worth) / many
        return np.stack([-start / rise, 1.0 / rise], axis=-1)
