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

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.errors import PolicyError
from memlab.kernel.base.arguments import warn_caller
from memlab.kernel.index import best, products
from memlab.kernel.language import Policy
from memlab.kernel.policies import Challenge, Pack
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._moment import Column, Features, columns
from memlab.kernel.recall._query import QuestionFeatures

__all__ = [
    "Chosen",
    "Opposed",
    "Ranking",
    "Selected",
    "Selection",
    "Shown",
    "chance_of",
    "choose",
    "cosines",
    "describe_challenge",
    "diversifies",
    "draw_challenge",
    "generator",
    "inclusion",
    "put_among",
    "rank_all",
    "rank_by_policy",
    "rank_by_score",
    "shares",
]


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
    hidden = {
        int(able[place]): [int(able[other]) for other in others] for place, others in behind.items()
    }
    # 0: by score, -1: in front, 1: behind another, 2: no score
    place = np.zeros(len(scores), dtype=np.int8)
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


def _closeness_to(
    matrix: NDArray[np.float64], closeness: Callable[[Scores], Scores]
) -> Callable[[int], Scores]:
    """The closeness of every row to one of them: of few rows all at once, at half the cost of one by one."""
    if len(matrix) <= _AT_ONCE:
        whole = closeness(cosines(matrix))
        return lambda first: whole[first]
    squares = np.vecdot(matrix, matrix)
    return lambda first: closeness(
        _divide(np.vecdot(matrix, matrix[first]), np.sqrt(squares * squares[first]))
    )


def cosines(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosine of every pair of rows; 0 with a row of zeros."""
    squares = np.vecdot(matrix, matrix)
    return _divide(products(matrix, matrix), np.sqrt(np.multiply.outer(squares, squares)))


def _divide(dots: NDArray[np.float64], norms: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)


def _share(scores: Scores) -> Scores:
    low, high = min(0.0, scores.min()), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros(len(scores))


# The order in which candidates may be shown, decided one after another by the slot ``select``.
#
# The policy is asked of every candidate that waits, given what was taken before it: how near its closest taken one is,
# how much of its vector the taken ones do not span, how many of its session and of its speaker were taken, and what
# they leave of a context's budget. The greatest value is taken next, ties by id; a candidate with null is not taken in
# this step. It ends when nothing has a value, or after as many steps as ranks can be shown. Nothing is taken twice.


Spending = Callable[[Places], tuple[Scores, float] | None]
"""What memories would cost in tokens, and how many there are; None without a budget."""

_LEAST = 1e-12
"""Novelty of a vector that the taken ones span: its logarithm stays finite."""


def rank_by_policy(
    policy: Policy,
    pool: Candidates,
    scores: Scores,
    *,
    depth: int,
    closeness: Callable[[Scores], Scores],
    spending: Spending | None = None,
) -> Ranking:
    """Rank a scored pool by the slot ``select``, up to ``depth`` ranks; the rest follows by score.

    What the policy gave null in the last step stays behind, and is not shown.
    """
    plain = rank_by_score(scores)
    able = np.sort(plain.order[: plain.showable])
    taken = _Taken(pool, able, closeness, policy.inputs, spending)
    while len(taken.places) < depth and taken.waiting.any():
        waiting = np.flatnonzero(taken.waiting)
        values, nulls = pool.ask_some(policy, able[waiting], taken.inputs(waiting, scores[able]))
        worth = np.where(np.isnan(values), -np.inf, values.astype(np.float64))
        if nulls is not None:
            worth[nulls] = -np.inf
        if not np.isfinite(worth).any():
            break
        taken.take(int(waiting[int(np.argmax(worth))]))
    front = able[taken.places]
    rest = plain.order[~np.isin(plain.order, front)]
    ended = len(taken.places) < min(depth, len(able))
    return Ranking(np.concatenate([front, rest]), len(front) if ended else plain.showable)


def _with_nulls(values: Scores) -> Column:
    return values, np.isnan(values)


class _Taken:
    """What was taken of the candidates at ``able``, and what that says of those that wait."""

    def __init__(
        self,
        pool: Candidates,
        able: Places,
        closeness: Callable[[Scores], Scores],
        reads: tuple[str, ...],
        spending: Spending | None,
    ) -> None:
        self.places: list[int] = []
        self.waiting = np.ones(len(able), dtype=np.bool_)
        self._closeness = closeness
        self._likeness = np.zeros(len(able))
        self._novelty = np.ones(len(able))
        self._spanned = np.zeros((0, len(able)))
        self._contexts = pool.contexts()[able]
        self._speakers = pool.state.names["speaker"].codes[pool.rows[able]]
        self._cosines: NDArray[np.float64] | None = None
        if "likeness" in reads or "novelty" in reads:
            self._cosines = cosines(pool.state.vectors.take(pool.rows[able]).astype(np.float64))
        self._costs, self._budget = np.full(len(able), np.nan), np.nan
        if spending is not None and ("tokens" in reads or "budget" in reads):
            self._costs, self._budget = spending(pool.rows[able]) or (self._costs, self._budget)

    def inputs(self, waiting: Places, scores: Scores) -> Mapping[str, Callable[[], Column]]:
        """The inputs of the slot that are no features, for the candidates that wait."""
        return {
            "score": lambda: scores[waiting],
            "likeness": lambda: self._likeness[waiting],
            "novelty": lambda: self._novelty[waiting],
            "taken": lambda: np.full(len(waiting), float(len(self.places))),
            "session-taken": lambda: self._same(self._contexts, waiting),
            "speaker-taken": lambda: self._same(self._speakers, waiting),
            "tokens": lambda: _with_nulls(self._costs[waiting]),
            "budget": lambda: _with_nulls(
                np.full(len(waiting), self._budget - self._costs[self.places].sum())
            ),
        }

    def _same(self, codes: NDArray[np.int32], waiting: Places) -> Scores:
        """How many were taken that have the code of each; a memory without one shares it with nobody."""
        counts = np.zeros(len(waiting))
        for place in self.places:
            if codes[place] >= 0:
                counts += codes[waiting] == codes[place]
        return counts

    def take(self, place: int) -> None:
        """Take the candidate at ``place``."""
        self.places.append(place)
        self.waiting[place] = False
        if self._cosines is None:
            return
        near = self._cosines[place]
        np.maximum(self._likeness, np.maximum(self._closeness(near), 0.0), out=self._likeness)
        # one step of a Cholesky factorisation: what is left of each vector beside those that were taken
        left = near - self._spanned.T @ self._spanned[:, place]
        row = left / np.sqrt(max(self._novelty[place], _LEAST))
        self._spanned = np.vstack([self._spanned, row])
        self._novelty = np.maximum(self._novelty - row * row, _LEAST)


# What is shown: the best, and now and then a probe from below, with its exact probability.
#
# The head is shown with certainty. At the rate ``probe-rate`` one probe comes from the band, the ``probe-depth`` ranks
# just below the head, at a random place among it, with probability ``(1 - floor) * w / sum(w) + floor / n``; the pack's
# ``explore`` policy gives the weights. Its inclusion probability is the rate times that. Several probes are drawn by
# Gumbel top-k (Kool et al. 2019): given the threshold kappa, ``1 - exp(-exp(phi - kappa))`` weighs each item without
# bias.
#
# The engine owns chance: a counter-based generator, keyed by the lab's seed and the state that the recall has seen.


class _NoSeed(np.random.bit_generator.ISeedSequence):
    """Philox by key asks the system for entropy that it then overwrites, which took longer than all else of a draw.

    Its stub knows arrays and SeedSequence alone.
    """

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        return np.zeros(n_words, dtype=dtype)


_NO_SEED = _NoSeed()
_EMPTY = np.zeros(4, dtype=np.uint64)


@dataclass(frozen=True)
class Shown:
    """Positions in the pool in the order in which they are shown, and how likely each candidate was to be among them.

    ``ranks`` run over the whole pool from 1. ``propensity`` is the inclusion probability of each candidate: 1 in the
    head, 0 where nothing can be shown; with ``kappa``, the weight given that threshold. ``conditional`` holds, for
    each one shown, its probability given those drawn before it.
    """

    places: Places
    ranks: Places
    propensity: Scores
    conditional: tuple[float, ...]
    probes: Places
    sampler: str
    kappa: float | None = None


_ours = threading.local()


def generator(seed: int, state: int) -> np.random.Generator:
    """The chance of one recall: the same for the same lab, seed and state, independent of any other."""
    return _begin(np.random.Generator(np.random.Philox(_NO_SEED)), seed, state)  # type: ignore[arg-type]  # see _NO_SEED


def chance_of(seed: int, state: int) -> np.random.Generator:
    """What ``generator`` gives, in this thread's own generator, which begins anew with the thread's next recall."""
    known: np.random.Generator | None = getattr(_ours, "generator", None)
    if known is None:
        _ours.generator = known = generator(seed, state)
    return _begin(known, seed, state)


def _begin(chance: np.random.Generator, seed: int, state: int) -> np.random.Generator:
    chance.bit_generator.state = {
        "bit_generator": "Philox",
        "state": {
            "counter": np.array([0, 0, 0, state], dtype=np.uint64),
            "key": np.array([seed, 0], dtype=np.uint64),
        },
        "buffer": _EMPTY,
        "buffer_pos": 4,
        "has_uint32": 0,
        "uinteger": 0,
    }
    return chance


def choose(
    pack: Pack,
    pool: Candidates | Features,
    scores: Scores,
    *,
    limit: int,
    chance: np.random.Generator | None,
    ranking: Ranking | None = None,
) -> Shown:
    """The head of ``line`` (by score unless given) and, with ``chance``, what the pack's exploration adds.

    The band lies below the head in the order of the ranking, so that what a probe may be is what would have been shown
    next. What the ranking says may not be shown has probability 0.
    """
    ranking = rank_by_score(scores) if ranking is None else ranking
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[ranking.order] = np.arange(1, len(scores) + 1)
    fit = ranking.order[: ranking.showable]
    head, band = fit[:limit], fit[limit : limit + int(pack.settings["probe-depth"])]
    propensity = np.zeros(len(scores))
    propensity[head] = 1.0
    sure = Shown(head, ranks, propensity, (1.0,) * len(head), band[:0], "deterministic")
    rate = float(pack.settings["probe-rate"])
    if chance is None or not rate or not len(band):
        return sure
    share = _shares(pack, pool, band, limit)
    if share is None:
        return sure
    able = np.flatnonzero(share)
    count = min(int(pack.settings["probes"]), len(able))
    if count == 1 or len(able) == count:
        propensity[band] = rate * (share if count == 1 else share > 0)
        if chance.random() >= rate:
            return Shown(head, ranks, propensity, sure.conditional, band[:0], "probe")
        drawn = np.array([_draw(share, chance)]) if count == 1 else able
        conditional = share[drawn] if count == 1 else np.ones(count)
        return _shown(head, band[drawn], conditional, ranks, propensity, chance, "probe")
    showing = chance.random() < rate
    drawn, kappa = _gumbel_top(share, count, chance)
    with np.errstate(divide="ignore"):
        propensity[band] = rate * -np.expm1(-np.exp(np.log(share) - kappa))
    if not showing:
        return Shown(head, ranks, propensity, sure.conditional, band[:0], "gumbel", kappa)
    conditional = np.array(_in_order(share, drawn))
    return _shown(head, band[drawn], conditional, ranks, propensity, chance, "gumbel", kappa)


def put_among(head: Places, drawn: Places, chance: np.random.Generator) -> Places:
    """The head in its order with each of the drawn at a random place: what is shown first is seen more often."""
    shown = head.tolist()
    for place in drawn.tolist():
        shown.insert(int(chance.integers(len(shown) + 1)), place)
    return np.array(shown, dtype=np.int64)


def _shown(
    head: Places,
    drawn: Places,
    conditional: Scores,
    ranks: Places,
    propensity: Scores,
    chance: np.random.Generator,
    sampler: str,
    kappa: float | None = None,
) -> Shown:
    places = put_among(head, drawn, chance)
    given = dict(zip(drawn.tolist(), conditional.tolist(), strict=True))
    chances = tuple(given.get(place, 1.0) for place in places.tolist())
    return Shown(places, ranks, propensity, chances, drawn, sampler, kappa)


def _shares(pack: Pack, pool: Candidates | Features, band: Places, limit: int) -> Scores | None:
    """The probability of each of the band as the first probe; None when the policy wants none of them."""
    policy = pack.policies["explore"]
    given: dict[str, Callable[[], NDArray[Any]]] = {
        "limit": lambda: np.full(len(band), float(limit)),
        "tail-n": lambda: np.full(len(band), float(len(band))),
    }
    try:
        if isinstance(pool, Candidates):
            weights, nulls = pool.ask_some(policy, band, given)
        else:
            weights, nulls = policy.arrays(
                columns(pool, policy, given=given, at=band), order=np.arange(len(band))
            )
    except PolicyError as error:
        # What a policy over lists meets is known only now. A recall answers all the same; it explores nothing.
        warn_caller(f"No probe was drawn. {error}")
        return None
    wanted = np.isfinite(weights) & (weights > 0)
    if nulls is not None:
        wanted &= ~nulls
    weights = np.where(wanted, weights, 0.0)
    total = float(weights.sum())
    if total <= 0:
        return None
    floor = float(pack.settings["probe-floor"])
    return np.asarray((1.0 - floor) * weights / total + floor / len(band))


def _draw(share: Scores, chance: np.random.Generator) -> int:
    edges = np.cumsum(share)
    return int(
        min(np.searchsorted(edges, chance.random() * edges[-1], side="right"), len(share) - 1)
    )


def _gumbel_top(share: Scores, count: int, chance: np.random.Generator) -> tuple[Places, float]:
    """Positions in the order in which they were drawn, and the threshold below which nothing was."""
    with np.errstate(divide="ignore"):
        keys = np.log(share) + chance.gumbel(size=len(share))
    order = best(keys, count + 1)
    return order[:count], float(keys[order[count]])


def _in_order(share: Scores, drawn: Places) -> list[float]:
    """The probability of each draw given the draws before it, without replacement."""
    before = np.concatenate([[0.0], np.cumsum(share[drawn])[:-1]])
    given: list[float] = (share[drawn] / np.maximum(share.sum() - before, share[drawn])).tolist()
    return given


# Exploration where packs differ: what a challenger would show and the live pack would not, with a known probability.
#
# Probes that are drawn from the ranks below the head seldom fall where two packs differ, and so tell them apart late or
# never. While a pack is challenged, every recall may show something of the difference:
#
# - *extra*: the head is shown whole. Of what challengers would show beside it, ``extra`` items are drawn without
# replacement, with probabilities fixed in advance: equal under one challenger, and in proportion to the root of the
# number of challengers that would show an item under several, which keeps the sum of the variances of their
# differences least. Each stands at a random place, for an item shown first is seen more often than one shown last. -
# *lot*: as many items as ever. What all packs would show is shown, and of the rest as many as the live head has room
# for are drawn, each with the same probability (Radlinski & Craswell 2013). Their order is that of the best rank that
# any pack gave them; ties are drawn. - *ab*: the whole head of one pack, as it would show it; the live one and each
# challenger are equally likely. Nothing is assumed of how the reward of an item depends on its place or on what else
# is shown, at the price of more recalls.
#
# What the live pack's ``eligible``, the viewer or a filter forbids is never shown; its probability is 0.


@dataclass(frozen=True)
class Opposed:
    """One challenger's head on a recall, as rows of the state, best first."""

    challenge: Challenge
    rows: Places


def draw_challenge(
    head: Places,
    opposed: Sequence[Places],
    count: int,
    challenges: Sequence[Challenge],
    chance: np.random.Generator,
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
    return (
        heads[whose],
        np.setdiff1d(heads[whose], heads[0]),
        np.minimum(propensity, 1.0),
        most,
        whose,
    )


def shares(challengers: int, rate: float) -> Scores:
    """f64[1 + challengers]: the probability that "ab" shows the live head, and that of each challenger.

    >>> shares(1, 0.5).tolist()
    [0.75, 0.25]
    """
    found = np.full(1 + challengers, rate / (1 + challengers))
    found[0] += 1 - rate
    return found


def _extra(
    head: Places,
    opposed: Sequence[Places],
    count: int,
    challenges: Sequence[Challenge],
    chance: np.random.Generator,
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
    sure, free = (
        np.flatnonzero(votes == 1 + len(opposed)),
        np.flatnonzero((votes > 0) & (votes <= len(opposed))),
    )
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
        share[rest] = (
            (draws - sure.sum()) * weights[rest] / weights[rest].sum() if rest.any() else 0.0
        )
        over = rest & (share >= 1)
        if not over.any():
            return share
        share[over], sure = 1.0, sure | over


def _systematic(share: Scores, chance: np.random.Generator) -> Places:
    """Positions drawn without replacement, each with its share, which sum to a whole number (Madow 1949)."""
    order = chance.permutation(len(share))
    ends = np.cumsum(share[order])
    points = chance.random() + np.arange(round(float(ends[-1])))
    return np.asarray(
        order[np.minimum(np.searchsorted(ends, points, side="right"), len(order) - 1)]
    )


def describe_challenge(
    opposed: Sequence[Opposed], design: str, draws: int, whose: int, live: Places
) -> dict[str, Any]:
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
            one.challenge.name: {"hash": one.challenge.pack.hash, "ids": (one.rows + 1).tolist()}
            for one in opposed
        },
    }


# What a selector gives: the order in which candidates may be shown, and how many of the first are.


Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Chosen:
    """What a selection makes of a pool, by places in it.

    ``first`` are shown with certainty, before all others; of ``ranked``, best first, the ``limit`` best. The rest is
    never shown.
    """

    first: Rows
    ranked: Rows
    limit: int


class Selection(Protocol):
    """Who decides what is shown of a pool where that is more than its best.

    Where ``abstains`` is true, ``unknown-limit`` holds for it where nothing seems to answer, as for any recall.
    """

    abstains: bool

    def named(self, asked: QuestionFeatures) -> Rows:
        """The rows, ascending, that take part whatever their nearness: they count as one hop from the question."""

    def spending(self, rows: Rows) -> tuple[Scores, float] | None:
        """What the text of each of these rows would cost in tokens, and how many there are; None without a budget."""

    def choose(self, pool: Candidates, scores: Scores, ranking: Ranking, *, beside: int) -> Chosen:
        """What may be shown; at most ``beside`` more are shown to learn of them."""


@dataclass(frozen=True)
class Selected:
    """What may be shown of a pool: of the ``ranking``, the first ``head`` with certainty.

    ``limit`` is how many places the best have, and ``wanted`` how many were asked for where nothing seems to answer.
    ``opposed`` are the heads of challengers, within what may be shown; ``challenges`` all those that are asked.
    """

    ranking: Ranking
    head: int
    limit: int
    wanted: int | None = None
    challenges: Sequence[Challenge] = ()
    opposed: Sequence[Opposed] = ()

    @property
    def shown(self) -> Rows:
        """The places that are shown with certainty, best first."""
        return self.ranking.order[: min(self.head, self.ranking.showable)]
