"""What a pack's ``label`` policy says of memories at an instant, without a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.clock import Micros
from memlab.kernel.recall import Moment
from memlab.kernel.state import State

if TYPE_CHECKING:
    from memlab.kernel.policies import Pack

__all__ = ["labels"]

_BLOCK = 1 << 16
"""Memories at a time: what a policy makes in between takes some megabytes."""


def labels(state: State, pack: Pack, rows: NDArray[np.int64], now: Micros) -> pl.Series:
    """The word of each of ``rows``, null where the policy gives null."""
    policy = pack.policies["label"]
    parts = [pl.Series("layer", [], dtype=pl.String)]
    for start in range(0, len(rows), _BLOCK):
        words, nulls = Moment(state, pack, rows[start : start + _BLOCK], now).ask(policy)
        found = pl.Series("layer", words.tolist(), dtype=pl.String)
        parts.append(found if nulls is None else found.set(pl.Series(nulls), None))
    return pl.concat(parts)
