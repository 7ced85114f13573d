"""Recompute a verdict without each session, user, agent, project and day: a jackknife of sums.

The logarithm of the process behind a confidence sequence is a sum over observations, for each rate.
So the process without a group is the total minus the sum of the group, and one pass over the
observations serves all groups.

The process without a group is valid even if the recalls of that group are hostile. Expectations
from earlier data may use any earlier data, and each remaining factor has a conditional mean of at
most 1. So the process without one hostile session is wrong on a given side with a probability of at
most half of its error. The size and the time of that session do not matter. A verdict is named only
if it holds without any one session, so the bound holds for the verdict, too.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import Flags, Ints
from memlab.kernel.base.printable import printable
from memlab.science.evaluation._duels import Course, Duel
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._sequence import Process
from memlab.science.evaluation._tests import Gate

_KINDS = ("session", "user", "agent", "project")
"""The columns of the decisions whose values are groups, if the log has them."""

_FOLLOWED = 50
"""The number of groups that are left out at each earlier recall.

Each takes one pass over the recalls. The groups with the most recalls are followed, because they
can change the process most; the verdict itself rests on all groups.
"""


def level_without(level: float) -> float:
    """Return the confidence level that a verdict needs when any one group is left out.

    The error is 4 (1 - ``level``), at most .5, with half of it on each side. In simulations honest
    runs then need 6 to 8% more recalls, and 15 to 17% more with half of that error. The share of
    runs with a hostile session that name a wrong pack is .030 at most, and .014 with half of that
    error (experiments/hostile_sessions.py).

    >>> round(level_without(0.95), 2)
    0.8
    """
    return 1 - min(4 * (1 - level), 0.5)


def _group_recalls(log: Log, cluster: str | None) -> dict[str, pl.Series]:
    """Return each recall's group for each kind of group that the log has, by kind; null if not logged."""
    decisions = log.decisions
    # Each recall as a group of its own would name thousands of groups that cannot decide.
    groups = {
        kind: decisions[kind].cast(pl.String)
        for kind in dict.fromkeys((*_KINDS, cluster))
        if kind in decisions.columns
        and kind != "decision"
        and not (decisions.schema[kind].is_nested() or decisions.schema[kind] == pl.Binary)
    }
    if "at" in decisions.columns:
        groups["day"] = decisions["at"].dt.date().cast(pl.String)
    return {kind: names for kind, names in groups.items() if names.null_count() < len(names)}


# The columns of Verdict.influence but the last; the schema gives an empty frame the same columns.
_SCHEMA = {
    "kind": pl.String,
    "group": pl.String,
    "recalls": pl.Int64,
    "share": pl.Float64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}


@dataclass(frozen=True)
class Influence:
    """A comparison without each group of recalls.

    ``frame`` is ``Verdict.influence``. ``codes`` has the numbers of the groups of each block,
    int64[blocks], by the kind of group; -1 is no group. Numbers are positions in the rows of the kind.
    """

    frame: pl.DataFrame
    codes: dict[str, Ints]
    process: Process
    duel: Duel
    level: float

    @classmethod
    def of(
        cls, process: Process, course: Course, duel: Duel, cluster: str | None, level: float
    ) -> Influence:
        """Omit each group in turn; ``level`` is the confidence level of the remaining bounds."""
        frames, codes = [pl.DataFrame(schema=_SCHEMA)], {}
        for kind, values in _group_recalls(duel.log, cluster).items():
            group = values[course.last]
            names = group.drop_nulls().unique().sort()
            number = names.search_sorted(group.fill_null(names[0])).to_numpy().astype(np.int64)
            codes[kind] = np.where(group.is_null().to_numpy(), -1, number)
            recalls = np.bincount(codes[kind] + 1, course.sizes, len(names) + 1)[1:]
            bounds = process.without(codes[kind], len(names), level)
            rows = {
                "kind": [kind] * len(names),
                "group": names,
                "recalls": recalls.astype(np.int64),
                "share": recalls / course.sizes.sum(),
                "difference": bounds.mean,
                "low": bounds.low,
                "high": bounds.high,
            }
            frames.append(pl.DataFrame(rows, schema=_SCHEMA))
        frame = pl.concat(frames).with_columns(
            pl.col("difference").fill_nan(None),
            better=pl.when(pl.col("low") > 0)
            .then(pl.lit(duel.challenger))
            .when(pl.col("high") < 0)
            .then(pl.lit(duel.live)),
        )
        return cls(frame, codes, process, duel, level)

    def judge(self, above: bool, withholding: Container[str]) -> tuple[Gate | None, str]:
        """Return the gate that a decisive group closes, and a remark on an influential group.

        A group closes the gate if the verdict turns without it, or if its kind is ``withholding``
        and the verdict is lost without it. ``above`` says whether the difference is above or below
        zero.
        """
        better = self.duel.challenger if above else self.duel.live
        # Signs decide, because two versions of a pack have one name.
        sign, near, far = (1, "low", "high") if above else (-1, "high", "low")
        losing = self.frame.filter(pl.col(near) * sign <= 0).sort(pl.col("difference") * sign)
        remark = ""
        for row in losing.iter_rows(named=True):
            kind, name = row["kind"], printable(row["group"])
            alone = row["difference"] is None
            where = f"{kind} {name} ({row['share']:.0%} of the recalls)"
            without = f"without {where}, " + (
                f"{row['better']} is better" if row["better"] else "the packs are indistinguishable"
            )
            if row[far] * sign < 0 or kind in withholding:
                finding = f"all recalls are of {kind} {name}" if alone else without
                gate = Gate(
                    f"single {kind}",
                    row["share"],
                    f"a verdict without any one {kind}",
                    "closed",
                    f"{better} is better on all recalls, but {finding}.",
                    f"Collect recalls in other {kind}s, or read the feedback of that {kind}.",
                )
                return gate, ""
            if not alone:
                remark = remark or f"{without[0].upper()}{without[1:]}."
        return None, remark

    def decided(self, kinds: Container[str], *, above: bool) -> Flags:
        """Return the blocks after which the verdict holds if any one large group is left out."""
        decided: Flags = np.ones(int(self.process.block[-1]) + 1, dtype=np.bool_)
        for kind, codes in self.codes.items():
            if kind in kinds:
                recalls = self.frame.filter(kind=kind)["recalls"].to_numpy()
                largest = np.argsort(-recalls, kind="stable")[:_FOLLOWED].tolist()
                decided &= self.process.decided_without(codes, largest, self.level, above=above)
        return decided
