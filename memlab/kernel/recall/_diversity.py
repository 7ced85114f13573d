"""The order in which candidates may be shown, where likeness counts: MMR, and near-duplicates that stand as one.

Maximal marginal relevance (Carbonell & Goldstein 1998) takes, again and again, the candidate with the greatest

    w * relevance - (1 - w) * likeness

where ``likeness`` is its greatest closeness to one that was taken before. Both are put on 0..1: relevance is the
recall-score as a share of the pool's greatest (of their distances from the least, where a score is below 0), and a
closeness below 0 counts as 0, as what is opposite repeats nothing. Scaled from the least to the greatest, the least
relevant of a small pool would have no relevance at all, and five copies would be shown before it. ``w`` is the
setting ``mmr-weight``; at 1 the order is that of the scores.

Closeness is the cosine of two stored vectors on the scale of the embedders for which such thresholds are written. The
bare cosine of the shipped model would not do: half of all pairs of turns of a conversation have one above 0.9.

A candidate whose closeness to one taken before is above ``collapse-above`` stands behind it: it is neither shown nor
probed, and the one in front says for whom it stands.

Likeness decides the ranks that can be shown (the head and the band of probes); what lies below keeps the order of the
scores, then come those that stand behind another. Scores themselves stay as the policy gave them. Dot products of
stored vectors are sums of integers in f64, exact in any order, and ties go to the older memory, so the order is the
same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.index import best, products
from memlab.kernel.policies import Pack

__all__ = ["Ranking", "cosines", "diversifies", "rank_all", "rank_by_score"]

Places = NDArray[np.int64]
Scores = NDArray[np.float64]

_AT_ONCE = 512


@dataclass(frozen=True)
class Ranking:
    """``order`` holds every position of the pool by rank; the first ``showable`` of them may be shown.

    ``duplicates`` says for which near-duplicates a position stands, in the order of the scores.
    """

    order: Places
    showable: int
    duplicates: dict[int, list[int]] = field(default_factory=dict)


def diversifies(pack: Pack) -> bool:
    """Whether what the pack shows depends on what else is shown, and not on the scores alone."""
    likeness = float(pack.settings["mmr-weight"]) < 1 or float(pack.settings["collapse-above"]) < 1
    return likeness or pack.selects


def rank_by_score(scores: Scores) -> Ranking:
    """By falling score, ties by position; a score that is infinite is never shown.

    >>> rank_by_score(np.array([0.5, -np.inf, 0.9])).order.tolist()
    [2, 0, 1]
    """
    order = best(scores, len(scores))
    finite = np.isfinite(scores[order])
    if finite.all():
        return Ranking(order, len(order))
    return Ranking(np.concatenate([order[finite], order[~finite]]), int(finite.sum()))


def rank_all(
    pack: Pack,
    scores: Scores,
    vectors: Callable[[], NDArray[np.int8]],
    *,
    depth: int,
    closeness: Callable[[Scores], Scores] = lambda cosine: cosine,
) -> Ranking:
    """The order under the pack's ``mmr-weight`` and ``collapse-above``, decided by likeness to ``depth`` ranks.

    ``vectors`` gives the int8 matrix (candidates, dim), and is asked only if likeness counts; ``closeness`` maps
    cosines.
    """
    plain = rank_by_score(scores)
    if not diversifies(pack) or plain.showable < 2:
        return plain
    able = np.sort(plain.order[: plain.showable])
    taken, behind = _taken(
        scores[able],
        vectors()[able].astype(np.float64),
        closeness,
        weight=float(pack.settings["mmr-weight"]),
        above=float(pack.settings["collapse-above"]),
        depth=depth,
    )
    front = able[taken]
    hidden = {int(able[place]): [int(able[other]) for other in others] for place, others in behind.items()}
    place = np.zeros(len(scores), dtype=np.int8)  # 0: by score, -1: in front, 1: behind another, 2: no score
    place[plain.order[plain.showable :]] = 2
    place[[other for others in hidden.values() for other in others]] = 1
    place[front] = -1
    rest = plain.order[place[plain.order] >= 0]
    order = np.concatenate([front, rest[np.argsort(place[rest], kind="stable")]])
    return Ranking(order, int((place <= 0).sum()), hidden)


def _taken(
    scores: Scores,
    matrix: NDArray[np.float64],
    closeness: Callable[[Scores], Scores],
    *,
    weight: float,
    above: float,
    depth: int,
) -> tuple[list[int], dict[int, list[int]]]:
    """The first ``depth`` positions that are taken, and who is behind whom."""
    # undivided scores keep their order exactly where likeness does not weigh in
    relevance = scores if weight >= 1 else weight * _share(scores)
    near = _closeness_to(matrix, closeness)
    likeness = np.zeros(len(scores))
    worth = relevance.copy()
    waiting = np.ones(len(scores), dtype=np.bool_)
    taken: list[int] = []
    behind: dict[int, list[int]] = {}
    while len(taken) < depth and waiting.any():
        first = int(np.argmax(worth))
        taken.append(first)
        waiting[first] = False
        close = near(first)
        if above < 1:
            twins = np.flatnonzero(waiting & (close > above))
            if len(twins):
                waiting[twins] = False
                behind[first] = twins[best(scores[twins], len(twins))].tolist()
        if weight < 1:
            np.maximum(likeness, close, out=likeness)
            worth = relevance - (1.0 - weight) * likeness
        worth[~waiting] = -np.inf
    return taken, behind


def _closeness_to(matrix: NDArray[np.float64], closeness: Callable[[Scores], Scores]) -> Callable[[int], Scores]:
    """The closeness of every row to one of them: of few rows all at once, at half the cost of one by one."""
    if len(matrix) <= _AT_ONCE:
        whole = closeness(cosines(matrix))
        return lambda first: whole[first]
    squares = np.vecdot(matrix, matrix)
    return lambda first: closeness(_shares(np.vecdot(matrix, matrix[first]), np.sqrt(squares * squares[first])))


def cosines(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosine of every pair of rows; 0 with a row of zeros."""
    squares = np.vecdot(matrix, matrix)
    return _shares(products(matrix, matrix), np.sqrt(np.multiply.outer(squares, squares)))


def _shares(dots: NDArray[np.float64], norms: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)


def _share(scores: Scores) -> Scores:
    low, high = min(0.0, scores.min()), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros(len(scores))
