"""A summary in the words of what it sums up: the sentences that stand for the others, in the order of time.

Nothing is generated. Sentences are chosen one by one, each the one that brings most of all the others closer to what is
chosen (facility location, Lin and Bilmes, 2011): so it is central, and says what those before it do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memlab.subjects.reading.sentences import BYTES_A_TOKEN

__all__ = ["chosen"]


def chosen(texts: Sequence[str], vectors: NDArray[np.int8], budget: int) -> list[int]:
    """The places, ascending, of the sentences that stand for all within ``budget`` tokens; none if none fits.

    ``vectors`` (sentences, dim) say what each means. Ties go to the earlier one. What is said twice is said once.
    """
    costs = [len(one.encode()) + 1 for one in texts]  # with a space
    matrix = vectors.astype(np.float64)
    matrix /= np.maximum(np.sqrt(np.einsum("ij,ij->i", matrix, matrix)), 1e-9)[:, None]
    likeness = np.round(matrix @ matrix.T, 9)  # a product of matrices may differ in its last bits
    reached = np.full(len(texts), -1.0)
    taken: list[int] = []
    seen: set[str] = set()
    left = budget * BYTES_A_TOKEN + 1  # no space follows the last
    while True:
        gain = np.maximum(likeness - reached[:, None], 0.0).sum(axis=0)
        gain = np.round(gain, 6)
        fits = [cost <= left and one.casefold() not in seen for cost, one in zip(costs, texts, strict=True)]
        gain[~np.array(fits, dtype=np.bool_)] = -1.0
        best = int(np.argmax(gain)) if len(gain) else -1
        if best < 0 or gain[best] <= 0.0:
            return sorted(taken)
        taken.append(best)
        seen.add(texts[best].casefold())
        left -= costs[best]
        reached = np.maximum(reached, likeness[:, best])
