"""Draw many logs from one simulated run, with new exploration items and new feedback.

For studies of estimators: the true values do not change, and a log costs milliseconds.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.slates import Slates
from memlab.science.simulation import Life

__all__ = ["Pools"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_STAMP = pl.Datetime("us", "UTC")


@dataclass(frozen=True)
class Pools:
    """The pools of a simulated run. Arrays are over candidates, by decision and falling score.

    >>> pools = Pools.of(life)                                           # doctest: +SKIP
    >>> logs = [pools.redraw(seed) for seed in range(300)]               # doctest: +SKIP
    """

    life: Life
    decisions: pl.DataFrame
    candidates: pl.DataFrame
    start: Ints
    count: Ints
    propensity: Floats
    utility: Floats
    cluster: Ints

    @classmethod
    def of(
        cls,
        life: Life,
        *,
        rate: float | None = None,
        depth: int = 30,
        floor: float = 1.0,
        explore: pl.Expr | None = None,
    ) -> Pools:
        """Return the pools of a run with the logged probabilities, or with one probe at ``rate``.

        Such a probe comes from the ``depth`` ranks below the results. Item i has the probability
        ``(1 - floor) * w_i / sum(w) + floor / n``, where the expression ``explore`` over the candidates gives w.

        Raises InputError for a log with several probes per recall, whose probabilities hold only jointly.
        """
        decisions = life.slates.decisions.sort("decision").collect()
        if "cluster" not in decisions.columns:
            decisions = decisions.with_columns(cluster=pl.col("project"))
        order = ["decision", "score", "memory_id"]
        candidates = life.slates.candidates.sort(order, descending=[False, True, False]).collect()
        sizes = candidates.group_by("decision", maintain_order=True).len()
        sizes = decisions.select("decision").join(
            sizes, on="decision", how="left", maintain_order="left"
        )
        count = sizes["len"].fill_null(0).to_numpy().astype(np.int64)
        start = np.cumsum(count) - count
        if rate is None:
            if (decisions["sampler"] == "gumbel").any():
                raise InputError(
                    "Logs with several probes per recall cannot be redrawn: set rate to draw one probe."
                )
        else:
            for name, value in (("rate", rate), ("floor", floor)):
                if not 0 <= value <= 1:
                    raise InputError(f"{name} lies in 0..1, not {value!r}.")
            if depth < 1:
                raise InputError(f"depth is at least one rank, not {depth!r}.")
            rank = np.arange(1, count.sum() + 1) - np.repeat(start, count)
            limit = np.repeat(decisions["limit"].to_numpy(), count)
            finite = np.isfinite(candidates["score"].to_numpy())
            band = (rank > limit) & (rank <= limit + depth) & finite
            weights = candidates.select(
                (pl.lit(1.0) if explore is None else explore.cast(pl.Float64)).alias("w")
            )
            weight = np.where(
                band, np.maximum(np.broadcast_to(weights["w"].to_numpy(), len(band)), 0.0), 0.0
            )
            total = np.repeat(_sums(weight, count), count)
            wide = np.repeat(_sums(band.astype(np.float64), count), count)
            even = band / np.maximum(wide, 1.0)
            share = np.where(
                total > 0,
                (1 - floor) * weight / np.where(total > 0, total, 1.0) + floor * even,
                even,
            )
            propensity = np.where((rank <= limit) & finite, 1.0, np.minimum(rate * share, 1.0))
            candidates = candidates.with_columns(
                rank=pl.Series(rank), propensity=pl.Series(propensity)
            )
            decisions = decisions.with_columns(
                sampler=pl.lit("probe" if rate else "deterministic"),
                kappa=pl.lit(None, dtype=pl.Float64),
            )
        propensity = candidates["propensity"].to_numpy()
        key = ["decision", "memory_id"]
        with_utility = candidates.select(key).join(
            life.worth, on=key, how="left", maintain_order="left"
        )
        utility = with_utility["utility"].to_numpy()
        cluster = decisions["cluster"].fill_null("").rank("dense").to_numpy().astype(np.int64) - 1
        return cls(life, decisions, candidates, start, count, propensity, utility, cluster)

    def redraw(self, seed: int, *, clusters: int | None = None) -> Slates:
        """Return another log of the same run, with other probes and other feedback.

        With ``clusters`` the log has that many clusters (projects), drawn with replacement from the run's own. Repeated
        clusters get different names. An interval should then cover the value over the whole run. The same seed gives
        the same log.
        """
        rng = np.random.Generator(
            np.random.Philox(np.random.SeedSequence([seed, zlib.crc32(b"redraw")]))
        )
        decisions, candidates = self.decisions, self.candidates.lazy()
        rows = np.arange(len(self.start))
        if clusters is not None:
            rows, names = self._drawn_clusters(clusters, rng)
            decisions = decisions[rows].with_columns(
                decision=pl.int_range(1, len(rows) + 1, dtype=pl.Int64), cluster=pl.Series(names)
            )
        by_chance = pl.col("sampler") != "deterministic"
        decisions = decisions.with_columns(
            seed=pl.when(by_chance).then(pl.lit(seed, dtype=pl.Int64))
        )
        count = self.count[rows]
        start = np.cumsum(count) - count
        owner = np.repeat(np.arange(len(rows)), count)
        flat = np.arange(count.sum()) - start[owner] + self.start[rows][owner]
        if clusters is not None:
            # Lazy, because an evaluation reads a few of forty features, and only those are gathered.
            decision_column = pl.Series(decisions["decision"].to_numpy()[owner])
            candidates = candidates.select(pl.all().gather(pl.lit(pl.Series(flat)))).with_columns(
                decision=decision_column
            )
        propensity = self.propensity[flat]
        probe = _probes(propensity, start, count, rng)
        is_shown = np.sort(np.concatenate([np.flatnonzero(propensity == 1.0), probe]))
        flagged = np.isin(is_shown, probe)
        ids = self.candidates["memory_id"].to_numpy()[flat[is_shown]]
        decision_of_row = decisions["decision"].to_numpy()[owner[is_shown]]
        rate = _sums(np.where(propensity < 1, propensity, 0.0), count)
        exposures = pl.DataFrame(
            {
                "decision": decision_of_row,
                "position": _positions(owner[is_shown]),
                "memory_id": ids,
                "propensity": propensity[is_shown],
                "conditional": np.where(
                    flagged, propensity[is_shown] / np.where(flagged, rate[owner[is_shown]], 1), 1.0
                ),
                "probe": flagged,
            }
        )
        asked_at = decisions["at"].to_physical().to_numpy()[owner[is_shown]]
        feedback = self._feedback(self.utility[flat][is_shown], decision_of_row, ids, asked_at, rng)
        return Slates(decisions.lazy(), candidates, exposures.lazy(), feedback.lazy())

    def _drawn_clusters(self, number: int, rng: np.random.Generator) -> tuple[Ints, list[str]]:
        """Draw clusters; return their decisions and names."""
        if number < 1:
            raise InputError(f"A log has at least one cluster, not {number}.")
        with_utility = self.decisions["cluster"].fill_null("").unique().sort().to_list()
        drawn = rng.integers(len(with_utility), size=number)
        members = [np.flatnonzero(self.cluster == cluster_index) for cluster_index in drawn]
        names = [
            f"{with_utility[cluster_index]} ({turn})" for turn, cluster_index in enumerate(drawn, 1)
        ]
        labels = [name for name, rows in zip(names, members, strict=True) for _ in rows]
        return np.concatenate(members), labels

    def _feedback(
        self,
        utility: Floats,
        decision: NDArray[Any],
        memory: NDArray[Any],
        at: Ints,
        rng: np.random.Generator,
    ) -> pl.DataFrame:
        """Draw the feedback that arrives before the run ends, ordered by time."""
        reactions = self.life.world.user.react(utility, rng)
        end = int(self.life.world.events()[-1].at)
        came = reactions.answered & (at + reactions.delay <= end)
        success = reactions.success[came]
        return pl.DataFrame(
            {
                "decision": decision[came],
                "memory_id": memory[came],
                "reward": success.astype(np.float64),
                "outcome": pl.Series(np.where(success, "success", "fail"), dtype=pl.String),
                "at": pl.Series(at[came] + reactions.delay[came]).cast(_STAMP),
                "source": pl.Series(["simulated user"] * len(success), dtype=pl.String),
            }
        ).sort("at", maintain_order=True)


def _sums(values: Floats, count: Ints) -> Floats:
    """Return the sum of each segment; 0 for an empty one."""
    owner = np.repeat(np.arange(len(count)), count)
    return np.bincount(owner, weights=values, minlength=len(count)).astype(np.float64)


def _probes(propensity: Floats, start: Ints, count: Ints, rng: np.random.Generator) -> Ints:
    """Draw at most one candidate of each pool, with its own probability below 1."""
    chances = np.where(propensity < 1.0, propensity, 0.0)
    upto = np.cumsum(chances)
    before = np.concatenate([[0.0], upto])[start]
    roll = rng.random(len(start))
    total = np.concatenate([[0.0], upto])[start + count] - before
    hit = np.flatnonzero(roll < total)
    drawn = np.searchsorted(upto, (before + roll)[hit], side="right")
    # Rounding may step over the end of a pool by one place in 10^15 draws.
    return np.asarray(drawn[drawn < (start + count)[hit]])


def _positions(owner: Ints) -> Ints:
    """Return 1, 2, ... within each run of the same owner."""
    first = (
        np.concatenate([[True], owner[1:] != owner[:-1]])
        if len(owner)
        else np.zeros(0, dtype=np.bool_)
    )
    begin = np.flatnonzero(first)
    return np.arange(len(owner)) - np.repeat(begin, np.diff([*begin, len(owner)])) + 1
