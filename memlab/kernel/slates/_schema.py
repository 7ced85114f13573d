"""The columns of the four tables of a log, each declared once."""

from __future__ import annotations

import polars as pl

from memlab.kernel.base.clock import INSTANT

ATTRIBUTED = "attributed"
"""The source of feedback that ``lab.agents.credits.answer`` derived from an answer."""

CONTENT = ("group", "refs")
"""The columns of candidates that near-duplicates share: a group or the sources. A log need not have them."""

IDS = ("decision", "memory_id")
"""The id columns. They are Int64 or String, with the same type in every table. The tables below declare Int64."""

SAMPLERS = (
    "deterministic",
    "probe",
    "gumbel",
    "challenge",
    "lot",
    "draft",
    "ab",
    "logged",
    "unknown",
)
"""The ways in which shown items were chosen. ``logged`` is the sampler of another system that logged propensities."""

# One row per logged recall.
DECISIONS: dict[str, pl.DataType] = {
    "decision": pl.Int64(),  # unique
    "at": INSTANT,
    "query": pl.String(),
    # decisions that are not independent: project, else session, else the decision itself
    "cluster": pl.String(),
    "limit": pl.Int64(),  # the number of results
    "pack": pl.String(),
    "pack_hash": pl.String(),
    "state": pl.Int64(),  # the event before the decision
    "sampler": pl.String(),
    "seed": pl.Int64(),  # null if deterministic
    "kappa": pl.Float64(),  # null unless gumbel
    "cut": pl.String(),  # how the candidate pool was chosen
    "candidates": pl.Int64(),  # the size of the pool
    "fingerprints": pl.String(),  # a JSON object: feature -> fingerprint
    "settings": pl.String(),  # a JSON object
    "format": pl.Int64(),
    "project": pl.String(),  # with `session`, needed to repeat the recall
    "session": pl.String(),
    "filters": pl.String(),  # a JSON object: the filters of the caller
    # a JSON object: the results of the active pack and its challengers; null without a challenger
    "challenge": pl.String(),
    # the estimated probability that the pool contains the answer; null without an estimate
    "known": pl.Float64(),
}

# One row per candidate. The features are between the ids and the score.
CANDIDATES: dict[str, pl.DataType] = {
    "decision": pl.Int64(),
    "memory_id": pl.Int64(),
    "score": pl.Float64(),  # by the logging policy
    "rank": pl.Int64(),  # 1.. by the logging policy, over the whole pool
    "propensity": pl.Float64(),  # the probability of being shown; null if unknown
}

# One row per shown item.
EXPOSURES: dict[str, pl.DataType] = {
    "decision": pl.Int64(),
    "position": pl.Int64(),  # 1..
    "memory_id": pl.Int64(),
    "propensity": pl.Float64(),
    "conditional": pl.Float64(),  # given the items drawn before; 1 if certain
    "probe": pl.Boolean(),
}

# One row per judgement.
FEEDBACK: dict[str, pl.DataType] = {
    "decision": pl.Int64(),
    "memory_id": pl.Int64(),
    "reward": pl.Float64(),
    "outcome": pl.String(),
    "at": INSTANT,
    "source": pl.String(),  # "attributed": derived from an answer
    # of an attributed reward: the probability that it is on the right side of 0.5
    "confidence": pl.Float64(),
    "attributed": pl.Float64(),  # the reward derived from an answer, if a user also stated one
}

# The four tables of a log with their columns and types.
TABLES: dict[str, dict[str, pl.DataType]] = {
    "decisions": DECISIONS,
    "candidates": CANDIDATES,
    "exposures": EXPOSURES,
    "feedback": FEEDBACK,
}


def reward_of(reward: str, outcome: str) -> pl.Expr:
    """Return a Polars expression for the reward of each judgement.

    A judgement without a reward has reward 1 for success and 0 for failure.
    """
    implied = pl.col(outcome).replace_strict(
        {"success": 1.0, "fail": 0.0}, default=None, return_dtype=pl.Float64
    )
    return pl.coalesce(pl.col(reward), implied).alias(reward)
