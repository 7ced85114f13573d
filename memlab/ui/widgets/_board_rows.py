"""What the evaluation board shows, as plain values."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from memlab.kernel.policies import Pack, load_pack
from memlab.science.evaluation import Disagreement, Evaluation

__all__ = ["by_day", "evaluation_rows", "name_of", "plain", "top_of"]

_TOP = 5


def evaluation_rows(policies: list[dict[str, Any]], found: Evaluation) -> list[dict[str, Any]]:
    """The ``policies`` of an evaluation that have a row, each with all of its gates."""
    return [
        {
            **row,
            "gates": [
                {"name": g.name, "shown": g.shown, "asked": g.threshold, "state": g.state, "finding": g.finding}
                | {"advice": g.advice, "more": g.more}
                for g in (one.measured.gates if one.measured is not None else one.closed)
            ],
        }
        for row, one in zip(policies, found.rows, strict=False)  # what was refused comes last, and has no gates
    ]


def name_of(policy: str | Pack) -> str:
    """What a policy is called: a pack that is given as a text has its name within."""
    return load_pack(policy).name if isinstance(policy, Pack) or policy.lstrip().startswith("(pack") else policy


def top_of(one: Disagreement, side: int) -> list[dict[str, Any]]:
    """The top five under one of two policies, each with its rank under the other."""
    own = sorted(
        ((rank, item) for item in one.items if (rank := item.ranks[side]) is not None and rank <= _TOP),
        key=lambda found: found[0],
    )
    return [
        {"memory": str(item.memory), "text": item.text, "rank": rank, "other": item.ranks[1 - side]}
        | {"shown": item.shown, "reward": item.reward}
        for rank, item in own
    ]


def by_day(track: pl.DataFrame) -> list[dict[str, Any]]:
    """A sequence as it stood at the end of each day; of a log without times, after each recall."""
    if "at" not in track.columns:
        return track.with_columns(day=pl.col("recalls").cast(pl.String)).to_dicts()
    days = track.group_by(day=pl.col("at").dt.date().cast(pl.String), maintain_order=True).last()
    return days.drop("at").sort("day").to_dicts()


def plain(value: Any) -> Any:
    """A value for JSON: what is no finite number is null, what is no plain value is said."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
