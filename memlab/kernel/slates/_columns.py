"""From slates to columns: one concatenation a column, not a frame a slate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.slates._schema import ATTRIBUTED, DECISIONS, FEEDBACK, STAMP
from memlab.kernel.slates._slate import FORMAT, Slate, number_series

__all__ = ["Logged", "feedback_table", "tables_of"]


class Logged(NamedTuple):
    """The three tables that recalls write; feedback comes later."""

    decisions: pl.DataFrame
    candidates: pl.DataFrame
    exposures: pl.DataFrame


def tables_of(slates: Sequence[Slate]) -> Logged:
    """The tables of these slates, in their order. A feature that a slate lacks is null there."""
    return Logged(_decisions(slates), _candidates(slates), _exposures(slates))


def _decisions(slates: Sequence[Slate]) -> pl.DataFrame:
    def json(value: object) -> str:
        return msgspec.json.encode(value).decode()

    columns: dict[str, list[Any]] = {
        "decision": [slate.decision for slate in slates],
        "at": [slate.at for slate in slates],
        "query": [slate.query for slate in slates],
        "cluster": [slate.project or slate.session or str(slate.decision) for slate in slates],
        "limit": [slate.limit for slate in slates],
        "pack": [slate.pack for slate in slates],
        "pack_hash": [slate.pack_hash for slate in slates],
        "state": [slate.state for slate in slates],
        "sampler": [slate.sampler for slate in slates],
        "seed": [slate.seed for slate in slates],
        "kappa": [slate.kappa for slate in slates],
        "cut": [slate.cut for slate in slates],
        "candidates": [len(slate.ids) for slate in slates],
        "fingerprints": [json(slate.fingerprints) for slate in slates],
        "settings": [json(slate.settings) for slate in slates],
        "format": [FORMAT] * len(slates),
        "project": [slate.project for slate in slates],
        "session": [slate.session for slate in slates],
        "filters": [json(slate.filters) for slate in slates],
        "challenge": [None if slate.challenge is None else json(slate.challenge) for slate in slates],
        "known": [slate.known for slate in slates],
    }
    return pl.DataFrame(
        [
            pl.Series(name, columns[name], dtype=pl.Int64).cast(kind)
            if kind == STAMP
            else pl.Series(name, columns[name], dtype=kind)
            for name, kind in DECISIONS.items()
        ]
    )


def _candidates(slates: Sequence[Slate]) -> pl.DataFrame:
    blocks: dict[tuple[tuple[str, ...], ...], list[int]] = {}
    for index, slate in enumerate(slates):
        blocks.setdefault((tuple(slate.numbers), tuple(slate.words), slate.flags), []).append(index)
    frames = [_block([slates[index] for index in indices]) for indices in blocks.values()] or [_block([])]
    if len(frames) == 1:
        return frames[0]
    last = ["score", "rank", "propensity"]
    together = pl.concat(frames, how="diagonal_relaxed")
    owner = np.concatenate(
        [np.repeat(indices, [len(slates[index].ids) for index in indices]) for indices in blocks.values()]
    )
    features = [name for name in together.columns if name not in last]
    return together[np.argsort(owner, kind="stable")].select(*features, *last)


def _block(slates: Sequence[Slate]) -> pl.DataFrame:
    """The candidates of slates that have the same features."""
    numbers, words, flags = (slates[0].numbers, slates[0].words, slates[0].flags) if slates else ({}, {}, ())
    sizes = [len(slate.ids) for slate in slates]
    decisions = np.repeat(np.array([slate.decision for slate in slates], dtype=np.int64), sizes)
    return pl.DataFrame(
        [
            pl.Series("decision", decisions),
            pl.Series("memory_id", _joined([slate.ids for slate in slates], np.int64)),
            *(
                number_series(name, _joined([slate.numbers[name] for slate in slates], np.float64), flag=name in flags)
                for name in numbers
            ),
            *(
                pl.Series(name, list(chain.from_iterable(slate.words[name] for slate in slates)), dtype=pl.String)
                for name in words
            ),
            pl.Series("score", _joined([slate.scores for slate in slates], np.float64)),
            pl.Series("rank", _joined(list(map(_ranking, slates)), np.int64)),
            pl.Series("propensity", _joined(list(map(_inclusion, slates)), np.float64)),
        ]
    )


def _exposures(slates: Sequence[Slate]) -> pl.DataFrame:
    sizes = [len(slate.shown) for slate in slates]
    propensity = _joined([_inclusion(slate)[slate.places] for slate in slates], np.float64)
    sure = np.where(propensity == 1.0, 1.0, np.nan)
    ends = np.cumsum(sizes)
    for slate, size, end in zip(slates, sizes, ends, strict=True):
        if slate.conditional:
            sure[end - size : end] = slate.conditional
    return pl.DataFrame(
        [
            pl.Series("decision", np.repeat(np.array([slate.decision for slate in slates], dtype=np.int64), sizes)),
            pl.Series("position", _joined([np.arange(1, size + 1) for size in sizes], np.int64)),
            pl.Series("memory_id", list(chain.from_iterable(slate.shown for slate in slates)), dtype=pl.Int64),
            pl.Series("propensity", propensity),
            pl.Series("conditional", sure).fill_nan(None),
            pl.Series(
                "probe", [memory in slate.probes for slate in slates for memory in slate.shown], dtype=pl.Boolean
            ),
        ]
    )


def _inclusion(slate: Slate) -> NDArray[np.float64]:
    return slate.inclusion if slate.propensity is None else slate.propensity


def _ranking(slate: Slate) -> NDArray[np.int64]:
    return slate.ranking if slate.ranks is None else slate.ranks


def _joined(parts: Sequence[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype=kind)


def feedback_table(feedback: pl.DataFrame) -> pl.DataFrame:
    """The feedback that a lab logged, in its order; an outcome without a reward is worth 1 (success) or 0 (fail).

    What was attributed to a memory of a recall counts where nobody stated anything of it, and counts once: the last.
    Beside what was stated it is kept, in ``attributed``.
    """
    absent = [pl.lit(None, dtype=kind).alias(name) for name, kind in FEEDBACK.items() if name not in feedback.columns]
    item, attributed = ["decision", "memory_id"], pl.col("source").eq_missing(ATTRIBUTED)
    stated = (~attributed).any().over(item)
    read = reward_of("reward", "outcome").filter(attributed).last().over(item)
    last = pl.int_range(pl.len()).over(item) == pl.len().over(item) - 1
    return (
        feedback.with_columns(absent)
        .with_columns(attributed=read)
        .filter(~attributed | (~stated & last))
        .select(*("decision", "memory_id"), reward_of("reward", "outcome"), *list(FEEDBACK)[3:])
    )


def reward_of(reward: str, outcome: str) -> pl.Expr:
    """The reward of each judgement, in place of ``reward``."""
    worth = pl.col(outcome).replace_strict({"success": 1.0, "fail": 0.0}, default=None, return_dtype=pl.Float64)
    return pl.coalesce(pl.col(reward), worth).alias(reward)
