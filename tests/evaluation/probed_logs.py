"""Logs whose truth is known: rewards are drawn without looking at any feature that a policy reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from memlab import Slates

START = datetime(2026, 3, 1, tzinfo=UTC)


class World:
    """Recalls of a pool each, with an expected reward for every item, and a policy that logged with probes.

    ``good`` follows the true rewards more closely than ``plain``, which ranked the log; ``noise`` ignores them.
    ``far`` looks outside head and band.
    """

    def __init__(
        self, *, clusters=10, recalls=20, pool=30, limit=5, depth=10, rate=1.0, seed=0, spread=0.3
    ):
        dice = np.random.default_rng(seed)
        count = clusters * recalls
        self.limit, self.count, self.pool = limit, count, pool
        self.cluster = np.repeat(np.arange(clusters), recalls)
        mood = dice.normal(0, spread, clusters)[self.cluster]
        quality = dice.normal(size=(count, pool))
        # some of the items have much the same worth in every policy's eyes, so that heads overlap
        self.truth = 1 / (1 + np.exp(-(quality + mood[:, None] - 0.5)))
        self.plain = quality + dice.normal(0, 1.5, (count, pool))
        self.good = self.plain + 0.35 * quality
        self.noise = self.plain + dice.normal(0, 0.4, (count, pool))
        self.far = -self.plain
        order = np.argsort(-self.plain, axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(1, pool + 1)[None, :], axis=1)
        self.rank = rank
        band = (rank > limit) & (rank <= limit + depth)
        self.propensity = np.where(rank <= limit, 1.0, np.where(band, rate / depth, 0.0))
        self.shown = rank <= limit
        probed = dice.random(count) < rate
        at = limit + dice.integers(1, depth + 1, count)
        self.shown |= probed[:, None] & (rank == at[:, None])
        self.reward = (dice.random((count, pool)) < self.truth).astype(float)

    def value(self, name):
        """Return the expected reward of the top of a ranking by this score."""
        scores = getattr(self, name)
        top = np.argsort(-scores, axis=1, kind="stable")[:, : self.limit]
        return float(np.take_along_axis(self.truth, top, axis=1).sum(axis=1).mean())

    def frames(self):
        decision, item = np.meshgrid(
            np.arange(1, self.count + 1), np.arange(1, self.pool + 1), indexing="ij"
        )
        decisions = pl.DataFrame(
            {
                "decision": np.arange(1, self.count + 1),
                "at": [START + timedelta(hours=int(hour)) for hour in range(self.count)],
                "query": [f"question {number}" for number in range(1, self.count + 1)],
                "cluster": [f"c{number}" for number in self.cluster],
                "limit": np.full(self.count, self.limit),
                "sampler": ["probe"] * self.count,
            },
            schema_overrides={"at": pl.Datetime("us", "UTC")},
        )
        candidates = pl.DataFrame(
            {
                "decision": decision.ravel(),
                "memory_id": item.ravel(),
                "plain": self.plain.ravel(),
                "good": self.good.ravel(),
                "noise": self.noise.ravel(),
                "far": self.far.ravel(),
                "score": self.plain.ravel(),
                "rank": self.rank.ravel(),
                "propensity": self.propensity.ravel(),
            }
        )
        at = self.shown.ravel()
        exposures = candidates.filter(pl.Series(at)).select(
            "decision", "memory_id", "propensity", position="rank"
        )
        feedback = exposures.select("decision", "memory_id").with_columns(
            reward=pl.Series(self.reward.ravel()[at]),
            outcome=pl.lit(None, dtype=pl.String),
            source=pl.lit("user"),
        )
        feedback = feedback.join(decisions.select("decision", "at"), on="decision").with_columns(
            pl.col("at") + timedelta(minutes=5)
        )
        return {
            "decisions": decisions,
            "candidates": candidates,
            "exposures": exposures,
            "feedback": feedback,
        }

    def slates(self, **changed):
        """Return the log; ``changed`` replaces tables."""
        frames = self.frames() | changed
        return Slates(
            *(frames[name].lazy() for name in ("decisions", "candidates", "exposures", "feedback"))
        )
