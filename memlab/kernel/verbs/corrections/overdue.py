"""Memories that were deleted so long ago that they may be purged."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.kernel.base.clock import DAY, Micros
from memlab.kernel.policies import Pack
from memlab.kernel.schema import NEVER
from memlab.kernel.state import State, stamps

__all__ = ["due_for_purge"]


def due_for_purge(state: State, pack: Pack, now: Micros) -> pl.DataFrame:
    """What was deleted for the setting ``grace-days`` or longer, and so may be purged: id, deleted, due."""
    rows = np.flatnonzero(state.names["status"].among(["deleted"]))
    since = state.numbers["changed"].values[rows]
    # memories that came in as deleted, by import, were changed by nobody: their creation counts
    since = np.where(since == NEVER, state.numbers["created"].values[rows], since)
    grace = pack.number("grace-days") * DAY
    over = float(now) - since.astype(np.float64) >= grace
    end = since[over].astype(np.float64) + grace
    return pl.DataFrame(
        [
            pl.Series("id", rows[over] + 1, dtype=pl.Int64),
            stamps("deleted", since[over]),
            stamps("due", np.minimum(end, float(now)).astype(np.int64)),
        ]
    )
