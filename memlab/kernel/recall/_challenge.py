"""Exploration where packs differ: what a challenger would show and the live pack would not, with a known probability.

Probes that are drawn from the ranks below the head seldom fall where two packs differ, and so tell them apart late or
never. While a pack is challenged, every recall may show something of the difference:

- *extra*: the head is shown whole. Of what challengers would show beside it, ``extra`` items are drawn without
  replacement, with probabilities fixed in advance: equal under one challenger, and in proportion to the root of the
  number of challengers that would show an item under several, which keeps the sum of the variances of their
  differences least. Each stands at a random place, for an item shown first is seen more often than one shown last.
- *lot*: as many items as ever. What all packs would show is shown, and of the rest as many as the live head has room
  for are drawn, each with the same probability (Radlinski & Craswell 2013). Their order is that of the best rank that
  any pack gave them; ties are drawn.
- *ab*: the whole head of one pack, as it would show it; the live one and each challenger are equally likely. Nothing is
  assumed of how the reward of an item depends on its place or on what else is shown, at the price of more recalls.

What the live pack's ``eligible``, the viewer or a filter forbids is never shown; its probability is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.policies import Challenge
from memlab.kernel.recall._explore import put_among

__all__ = ["Opposed", "draw_challenge", "inclusion", "logged", "shares"]

Places = NDArray[np.int64]
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Opposed:
    """One challenger's head on a recall, as rows of the state, best first."""

    challenge: Challenge
    rows: Places


def draw_challenge(
    head: Places, opposed: Sequence[Places], count: int, challenges: Sequence[Challenge], chance: np.random.Generator
) -> tuple[Places, Places, Scores, int, int]:
    """What is shown, which of it by chance, the probability of each of ``count`` candidates, the most draws, and whose.

    ``head`` and ``opposed`` are positions among the candidates, best first; those of challengers hold what may be
    shown alone. Whose head it is: 0 the live pack's, i that of challenger i, counted from 1; "ab" alone shows another.
    """
    rate = max(one.rate for one in challenges)
    if challenges[0].design == "ab":
        return _whole([head, *opposed], count, rate, chance)
    if challenges[0].design == "lot":
        return *_lot(head, opposed, count, rate, chance), 0
    return *_extra(head, opposed, count, challenges, chance), 0


def _whole(
    heads: Sequence[Places], count: int, rate: float, chance: np.random.Generator
) -> tuple[Places, Places, Scores, int, int]:
    propensity = np.zeros(count)
    for share, one in zip(shares(len(heads) - 1, rate), heads, strict=True):
        propensity[one] += share
    whose = int(chance.integers(len(heads))) if rate == 1 or chance.random() < rate else 0
    most = max(len(np.setdiff1d(one, heads[0])) for one in heads)
    return heads[whose], np.setdiff1d(heads[whose], heads[0]), np.minimum(propensity, 1.0), most, whose


def shares(challengers: int, rate: float) -> Scores:
    """f64[1 + challengers]: the probability that "ab" shows the live head, and that of each challenger.

    >>> shares(1, 0.5).tolist()
    [0.75, 0.25]
    """
    found = np.full(1 + challengers, rate / (1 + challengers))
    found[0] += 1 - rate
    return found


def _extra(
    head: Places, opposed: Sequence[Places], count: int, challenges: Sequence[Challenge], chance: np.random.Generator
) -> tuple[Places, Places, Scores, int]:
    propensity = np.zeros(count)
    propensity[head] = 1.0
    wanted = np.zeros(count)
    for one in opposed:
        wanted[one] += 1.0
    wanted[head] = 0.0
    free = np.flatnonzero(wanted)
    draws = min(max(one.extra for one in challenges), len(free))
    if not draws:
        return head, free, propensity, 0
    rate = max(one.rate for one in challenges)
    share = inclusion(np.sqrt(wanted[free]), draws)
    propensity[free] = rate * share
    if rate < 1 and chance.random() >= rate:
        return head, free[:0], propensity, draws
    drawn = free[_systematic(share, chance)]
    return put_among(head, drawn, chance), drawn, propensity, draws


def _lot(
    head: Places, opposed: Sequence[Places], count: int, rate: float, chance: np.random.Generator
) -> tuple[Places, Places, Scores, int]:
    best = np.full(count, np.inf)
    votes = np.zeros(count)
    for one in (head, *opposed):
        best[one] = np.minimum(best[one], np.arange(len(one)))
        votes[one] += 1
    sure, free = np.flatnonzero(votes == 1 + len(opposed)), np.flatnonzero((votes > 0) & (votes <= len(opposed)))
    draws = len(head) - len(sure)
    propensity = np.zeros(count)
    propensity[sure] = 1.0
    propensity[head] = np.maximum(propensity[head], 1 - rate)
    if not draws:
        return head, free[:0], propensity, 0
    propensity[free] += rate * draws / len(free)
    propensity = np.minimum(propensity, 1.0)
    if rate < 1 and chance.random() >= rate:
        return head, free[:0], propensity, draws
    shown = np.concatenate([sure, chance.permutation(free)[:draws]])
    shown = chance.permutation(shown)
    shown = shown[np.argsort(best[shown], kind="stable")]
    return shown, np.setdiff1d(shown, head), propensity, draws


def inclusion(weights: Scores, draws: int) -> Scores:
    """The probabilities of ``draws`` items in proportion to positive weights, none above 1; they sum to ``draws``.

    >>> inclusion(np.array([1.0, 1.0, 4.0]), 2).tolist()
    [0.5, 0.5, 1.0]
    """
    share = np.zeros(len(weights))
    sure = np.zeros(len(weights), dtype=np.bool_)
    while True:
        rest = ~sure
        share[rest] = (draws - sure.sum()) * weights[rest] / weights[rest].sum() if rest.any() else 0.0
        over = rest & (share >= 1)
        if not over.any():
            return share
        share[over], sure = 1.0, sure | over


def _systematic(share: Scores, chance: np.random.Generator) -> Places:
    """Positions drawn without replacement, each with its share, which sum to a whole number (Madow 1949)."""
    order = chance.permutation(len(share))
    ends = np.cumsum(share[order])
    points = chance.random() + np.arange(round(float(ends[-1])))
    return np.asarray(order[np.minimum(np.searchsorted(ends, points, side="right"), len(order) - 1)])


def logged(opposed: Sequence[Opposed], design: str, draws: int, whose: int, live: Places) -> dict[str, Any]:
    """What a slate says of a challenge: the heads by memory ids; of an A/B, whose was shown, and the probabilities."""
    drawn = {}
    if design == "ab" and opposed:
        names = ["", *(one.challenge.name for one in opposed)]
        chances = shares(len(opposed), max(one.challenge.rate for one in opposed))
        drawn = {"whose": names[whose], "shares": dict(zip(names, chances.tolist(), strict=True))}
    return drawn | {
        "design": design,
        "draws": draws,
        "live": (live + 1).tolist(),
        "heads": {
            one.challenge.name: {"hash": one.challenge.pack.hash, "ids": (one.rows + 1).tolist()} for one in opposed
        },
    }
