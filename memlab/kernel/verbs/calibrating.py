"""The calibration of a user's own embedder, at the first use of a lab with enough memories."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.recall import Filters, Question
from memlab.kernel.state import State
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import apply_switches

__all__ = ["calibrate_embedder"]


def calibrate_embedder(core: Core) -> None:
    """Calibrate the embedder on the memories that a plain recall may show, if it is due."""

    def find_rows(state: State) -> NDArray[np.int64]:
        filters, off = apply_switches(core.store, state, None, Filters())
        if off is not None:
            return np.empty(0, dtype=np.int64)
        question = Question("", at=core.store.clock(), filters=filters)
        return core.recaller.population(state, question).rows

    core.store.calibrate_embedder(find_rows)
