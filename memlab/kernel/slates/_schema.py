"""The columns of the four tables, each declared once."""

from __future__ import annotations

import polars as pl

__all__ = [
    "ATTRIBUTED",
    "CANDIDATES",
    "DECISIONS",
    "EXPOSURES",
    "FEEDBACK",
    "IDS",
    "SAMPLERS",
    "STAMP",
    "TABLES",
    "reward_of",
]

STAMP = pl.Datetime("us", "UTC")

ATTRIBUTED = "attributed"
"""The source of feedback that nobody gave: what ``lab.agents.credits.answer`` read from an answer."""

IDS = ("decision", "memory_id")
"""Int64 or String, the same in every table; declared as Int64 below."""

SAMPLERS = ("deterministic", "probe", "gumbel", "challenge", "lot", "ab", "logged", "unknown")
"""How what was shown was chosen. ``logged``: by a sampler that is not memlab's, which logged its propensities."""

DECISIONS: dict[str, pl.DataType] = {
    "decision": pl.Int64(),  # unique
    "at": STAMP,
    "query": pl.String(),
    # what is not independent: project, else session, else the decision itself
    "cluster": pl.String(),
    "limit": pl.Int64(),  # the size of the head
    "pack": pl.String(),
    "pack_hash": pl.String(),
    "state": pl.Int64(),  # the event before the decision
    "sampler": pl.String(),
    "seed": pl.Int64(),  # null if deterministic
    "kappa": pl.Float64(),  # null unless gumbel
    "cut": pl.String(),  # how the pool was chosen
    "candidates": pl.Int64(),  # how many
    "fingerprints": pl.String(),  # a JSON object: feature -> fingerprint
    "settings": pl.String(),  # a JSON object
    "format": pl.Int64(),
    "project": pl.String(),  # with `session`, what a recall needs to be repeated
    "session": pl.String(),
    "filters": pl.String(),  # a JSON object: what the caller admitted
    # a JSON object: the heads of the live pack and of its challengers; null without any
    "challenge": pl.String(),
    # the probability that something of the pool answers, by the pack; null if it does not say
    "known": pl.Float64(),
}

CANDIDATES: dict[str, pl.DataType] = {  # the features stand between the ids and the score
    "decision": pl.Int64(),
    "memory_id": pl.Int64(),
    "score": pl.Float64(),  # by the logging policy
    "rank": pl.Int64(),  # 1.. by the logging policy, over the whole pool
    "propensity": pl.Float64(),  # the probability of being shown; null if unknown
}

EXPOSURES: dict[str, pl.DataType] = {
    "decision": pl.Int64(),
    "position": pl.Int64(),  # 1..
    "memory_id": pl.Int64(),
    "propensity": pl.Float64(),
    "conditional": pl.Float64(),  # given those drawn before; 1 for the head
    "probe": pl.Boolean(),
}

FEEDBACK: dict[str, pl.DataType] = {
    "decision": pl.Int64(),
    "memory_id": pl.Int64(),
    "reward": pl.Float64(),
    "outcome": pl.String(),
    "at": STAMP,
    "source": pl.String(),  # "attributed": read from an answer
    # of what was attributed: the chance that the reward is on the right side of a half
    "confidence": pl.Float64(),
    "attributed": pl.Float64(),  # the reward read from an answer, where somebody stated another too
}

TABLES: dict[str, dict[str, pl.DataType]] = {
    "decisions": DECISIONS,
    "candidates": CANDIDATES,
    "exposures": EXPOSURES,
    "feedback": FEEDBACK,
}


def reward_of(reward: str, outcome: str) -> pl.Expr:
    """The reward of each judgement, in place of ``reward``."""
    worth = pl.col(outcome).replace_strict(
        {"success": 1.0, "fail": 0.0}, default=None, return_dtype=pl.Float64
    )
    return pl.coalesce(pl.col(reward), worth).alias(reward)
