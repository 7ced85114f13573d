"""The order in which candidates may be shown, and exploration.

The order is by score, by diversity, or by the slot ``select``.

Maximal marginal relevance (Carbonell & Goldstein 1998) repeatedly selects the candidate with the maximum of

    w * relevance - (1 - w) * likeness

where ``likeness`` is its maximum closeness to a candidate selected before. Relevance and likeness
are scaled to 0..1. Relevance is the recall-score divided by the maximum of the pool. If a score is
negative, the minimum is subtracted first. A negative closeness counts as 0. Min-max scaling would
give the last candidate of a small pool a relevance of 0, so that five near-duplicates would precede
it. The weight ``w`` is the setting ``mmr-weight``. At 1 the order is that of the scores.

Closeness is the cosine of two stored vectors on the scale of the embedders for which such thresholds are written. The
raw cosine of the shipped model is unsuitable: half of all pairs of turns of a conversation have a cosine above 0.9.

A candidate whose closeness to a selected candidate is above ``collapse-above`` is its near-duplicate. A
near-duplicate is neither shown nor drawn as a probe. The hit of the selected candidate lists it.

Diversity decides the ranks that can be shown: the top-k and the ranks below it from which probes
are drawn. Lower candidates keep the order of the scores, and near-duplicates come last. Scores are
unchanged. The order is the same on every machine, because dot products of stored vectors are sums
of integers, which float64 holds exactly. Ties go to the older memory.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from memlab.errors import PolicyError
from memlab.kernel.base.arguments import warn_caller
from memlab.kernel.base.arrays import Codes, Components, Floats, Ints, Rows, Scores, Values
from memlab.kernel.index import best, products
from memlab.kernel.language import Policy
from memlab.kernel.policies import Challenge, Pack
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._moment import Column, Features, columns
from memlab.kernel.recall._query import QuestionFeatures

Positions = Ints
_Item = TypeVar("_Item")

_AT_ONCE = 512
"""The maximum number of candidates whose closeness is computed as one matrix: 2 MB at 512."""


@dataclass(frozen=True)
class Ranking:
    """The candidates of a pool in order of rank, as positions.

    The first ``showable`` of them may be shown. ``duplicates`` lists the near-duplicates of a position, by descending
    score.
    """

    order: Positions
    showable: int
    duplicates: dict[int, list[int]] = field(default_factory=dict)


def diversifies(pack: Pack) -> bool:
    """Return whether a pack's ranking of an item depends on the other items.

    Otherwise the ranking depends on the scores alone.
    """
    likeness = float(pack.settings["mmr-weight"]) < 1 or float(pack.settings["collapse-above"]) < 1
    return likeness or pack.selects


def rank_by_score(scores: Scores) -> Ranking:
    """Rank by descending score, with ties by position.

    A candidate with an infinite score cannot be shown.

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
    vectors: Callable[[], Components],
    *,
    depth: int,
    closeness: Callable[[Scores], Scores] = lambda cosine: cosine,
) -> Ranking:
    """Rank candidates by score and diversity (``mmr-weight``, ``collapse-above``).

    Diversity decides the first ``depth`` ranks. ``vectors`` returns the int8 matrix (candidates,
    dim), and is called only if the pack uses diversity. ``closeness`` maps cosines to the scale of
    ``collapse-above``.
    """
    plain = rank_by_score(scores)
    if not diversifies(pack) or plain.showable < 2:
        return plain
    able = np.sort(plain.order[: plain.showable])
    selected, duplicates_of = _diversify(
        scores[able],
        vectors()[able].astype(np.float64),
        closeness,
        weight=float(pack.settings["mmr-weight"]),
        above=float(pack.settings["collapse-above"]),
        depth=depth,
    )
    front = able[selected]
    hidden = {
        int(able[group]): [int(able[other]) for other in duplicates]
        for group, duplicates in duplicates_of.items()
    }
    # The group of each position: -1 selected, 0 by score, 1 a near-duplicate, 2 without a finite score.
    group = np.zeros(len(scores), dtype=np.int8)
    group[plain.order[plain.showable :]] = 2
    group[[other for duplicates in hidden.values() for other in duplicates]] = 1
    group[front] = -1
    rest = plain.order[group[plain.order] >= 0]
    order = np.concatenate([front, rest[np.argsort(group[rest], kind="stable")]])
    return Ranking(order, int((group <= 0).sum()), hidden)


def _diversify(
    scores: Scores,
    matrix: Floats,
    closeness: Callable[[Scores], Scores],
    *,
    weight: float,
    above: float,
    depth: int,
) -> tuple[list[int], dict[int, list[int]]]:
    """Return the first ``depth`` positions by relevance and diversity, and the near-duplicates of each.

    ``weight`` is the weight of relevance. Positions that are closer than ``above`` to a returned one
    are left out as its near-duplicates.
    """
    # At a weight of 1 scores are not scaled, so that rounding cannot change their order.
    relevance = scores if weight >= 1 else weight * _scale_scores(scores)
    closeness_to = _closeness_to(matrix, closeness)
    likeness = np.zeros(len(scores))
    values = relevance.copy()
    waiting = np.ones(len(scores), dtype=np.bool_)
    selected: list[int] = []
    duplicates: dict[int, list[int]] = {}
    while len(selected) < depth and waiting.any():
        first = int(np.argmax(values))
        selected.append(first)
        waiting[first] = False
        close = closeness_to(first)
        if above < 1:
            twins = np.flatnonzero(waiting & (close > above))
            if len(twins):
                waiting[twins] = False
                duplicates[first] = twins[best(scores[twins], len(twins))].tolist()
        if weight < 1:
            np.maximum(likeness, close, out=likeness)
            values = relevance - (1.0 - weight) * likeness
        values[~waiting] = -np.inf
    return selected, duplicates


def _closeness_to(matrix: Floats, closeness: Callable[[Scores], Scores]) -> Callable[[int], Scores]:
    """Return a function that computes the closeness of one row to every row.

    For few rows the whole matrix is computed at once, at half the cost of row by row.
    """
    if len(matrix) <= _AT_ONCE:
        whole = closeness(cosines(matrix))
        return lambda first: whole[first]
    squares = np.vecdot(matrix, matrix)
    return lambda first: closeness(
        _divide(np.vecdot(matrix, matrix[first]), np.sqrt(squares * squares[first]))
    )


def cosines(matrix: Floats) -> Floats:
    """Return the cosine of every pair of rows, or 0 if a row is zero."""
    squares = np.vecdot(matrix, matrix)
    return _divide(products(matrix, matrix), np.sqrt(np.multiply.outer(squares, squares)))


def _divide(dots: Floats, norms: Floats) -> Floats:
    """Divide dot products by norms, with 0 where a norm is 0."""
    return np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)


def _scale_scores(scores: Scores) -> Scores:
    """Scale scores to 0..1: raise them if the minimum is negative, and divide by the maximum; all 0 if that is 0."""
    low, high = min(0.0, scores.min()), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros(len(scores))


# The order of candidates by the slot ``select``, one step per rank.
#
# Each step evaluates the policy for every remaining candidate, given the selected ones: the closeness of the nearest,
# the share of the candidate's vector that they do not span, the numbers of its session and speaker, and the remaining
# budget of a context. The maximum is selected next, ties by id; a null excludes a candidate from the step. Selection
# ends when every value is null, or after as many steps as ranks can be shown. No candidate is selected twice.


Spending = Callable[[Positions], tuple[Scores, float] | None]
"""A function that returns the tokens of each memory, and the budget, or None."""

_MINIMUM_NOVELTY = 1e-12
"""The novelty of a vector that the selected vectors span.

The value is above 0, so that its logarithm is finite.
"""


def rank_by_policy(
    policy: Policy,
    pool: Candidates,
    scores: Scores,
    *,
    depth: int,
    closeness: Callable[[Scores], Scores],
    spending: Spending | None = None,
) -> Ranking:
    """Rank a scored pool with the slot ``select``.

    The slot decides at most ``depth`` ranks, and the other candidates follow by score. If it gives
    null for all remaining candidates before that, these are not shown.
    """
    plain = rank_by_score(scores)
    able = np.sort(plain.order[: plain.showable])
    selection = _Selection(pool, able, closeness, policy.inputs, spending)
    while len(selection.positions) < depth and selection.waiting.any():
        waiting = np.flatnonzero(selection.waiting)
        values, nulls = pool.ask_some(
            policy, able[waiting], selection.inputs(waiting, scores[able])
        )
        ranked_values = np.where(np.isnan(values), -np.inf, values.astype(np.float64))
        if nulls is not None:
            ranked_values[nulls] = -np.inf
        if not np.isfinite(ranked_values).any():
            break
        selection.take(int(waiting[int(np.argmax(ranked_values))]))
    front = able[selection.positions]
    rest = plain.order[~np.isin(plain.order, front)]
    ended = len(selection.positions) < min(depth, len(able))
    return Ranking(np.concatenate([front, rest]), len(front) if ended else plain.showable)


def _with_nulls(values: Scores) -> Column:
    """Return values with a mask of their nulls."""
    return values, np.isnan(values)


class _Selection:
    """The candidates selected so far, and the values that depend on them.

    These values are inputs of the slot ``select``.
    """

    def __init__(
        self,
        pool: Candidates,
        able: Positions,
        closeness: Callable[[Scores], Scores],
        reads: tuple[str, ...],
        spending: Spending | None,
    ) -> None:
        self.positions: list[int] = []
        self.waiting = np.ones(len(able), dtype=np.bool_)
        self._closeness = closeness
        self._likeness = np.zeros(len(able))
        self._novelty = np.ones(len(able))
        self._spanned = np.zeros((0, len(able)))
        self._contexts = pool.contexts()[able]
        self._speakers = pool.state.names["speaker"].codes[pool.rows[able]]
        self._cosines: Floats | None = None
        if "likeness" in reads or "novelty" in reads:
            self._cosines = cosines(pool.state.vectors.take(pool.rows[able]).astype(np.float64))
        self._costs, self._budget = np.full(len(able), np.nan), np.nan
        if spending is not None and ("tokens" in reads or "budget" in reads):
            self._costs, self._budget = spending(pool.rows[able]) or (self._costs, self._budget)

    def inputs(self, waiting: Positions, scores: Scores) -> Mapping[str, Callable[[], Column]]:
        """Return the inputs of the slot ``select`` for unselected candidates."""
        return {
            "score": lambda: scores[waiting],
            "likeness": lambda: self._likeness[waiting],
            "novelty": lambda: self._novelty[waiting],
            "taken": lambda: np.full(len(waiting), float(len(self.positions))),
            "session-taken": lambda: self._same(self._contexts, waiting),
            "speaker-taken": lambda: self._same(self._speakers, waiting),
            "tokens": lambda: _with_nulls(self._costs[waiting]),
            "budget": lambda: _with_nulls(
                np.full(len(waiting), self._budget - self._costs[self.positions].sum())
            ),
        }

    def _same(self, codes: Codes, waiting: Positions) -> Scores:
        """Count the selected candidates that share each waiting candidate's session or speaker.

        A code of -1, for a missing session or speaker, is shared with no candidate.
        """
        counts = np.zeros(len(waiting))
        for position in self.positions:
            if codes[position] >= 0:
                counts += codes[waiting] == codes[position]
        return counts

    def take(self, position: int) -> None:
        """Add the candidate at a position to the selection."""
        self.positions.append(position)
        self.waiting[position] = False
        if self._cosines is None:
            return
        near = self._cosines[position]
        np.maximum(self._likeness, np.maximum(self._closeness(near), 0.0), out=self._likeness)
        # One step of a Cholesky factorisation: the part of each vector that the selected vectors do not span.
        residual = near - self._spanned.T @ self._spanned[:, position]
        row = residual / np.sqrt(max(self._novelty[position], _MINIMUM_NOVELTY))
        self._spanned = np.vstack([self._spanned, row])
        self._novelty = np.maximum(self._novelty - row * row, _MINIMUM_NOVELTY)


# The shown items: the top-k, and at a given rate a probe from the ranks below, with its exact probability.
#
# The top-k is certain. At the rate ``probe-rate`` one probe is drawn from the band, the ``probe-depth`` ranks below the
# top-k, and inserted at a random position below the first result. An item of the band is drawn with probability
# ``(1 - floor) * w / sum(w) + floor / n``, where the ``explore`` policy gives the weights ``w``. Its inclusion
# probability is the rate times that. Several probes are drawn by Gumbel top-k (Kool et al. 2019): given the threshold
# kappa, the inclusion probability ``1 - exp(-exp(phi - kappa))`` makes inverse weighting unbiased.
#
# Random numbers come from a counter-based generator, keyed by the lab's seed and the event before the recall. So the
# same journal draws the same probes.


class _NoSeed(np.random.bit_generator.ISeedSequence):
    """A seed that is never used.

    Philox with a key still asks the system for entropy, then overwrites it. This took longer than
    all other steps of a draw. NumPy's type stub accepts only arrays and SeedSequence.
    """

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Values:
        """Return zeros as the seed state; the key is set afterwards."""
        return np.zeros(n_words, dtype=dtype)


# Constant arguments of the generator: its key and counter replace the seed, and its buffer is empty.
_NO_SEED = _NoSeed()
_EMPTY = np.zeros(4, dtype=np.uint64)


@dataclass(frozen=True)
class Shown:
    """The shown positions of a pool, and the propensity of each candidate.

    Attributes
    ----------
    ranks
        The ranks in the whole pool, from 1.
    propensity
        1 in the top-k and 0 for a candidate that cannot be shown. With ``kappa`` it is the probability
        given that threshold.
    conditional
        The probability of each shown item given those drawn before it.
    """

    places: Positions
    ranks: Positions
    propensity: Scores
    conditional: tuple[float, ...]
    probes: Positions
    sampler: str
    kappa: float | None = None


# Each thread has one generator, because making one takes longer than all draws of a recall.
_local = threading.local()


def generator(seed: int, state: int) -> np.random.Generator:
    """Return the random generator of one recall.

    The same seed and state always give the same random numbers.
    """
    return _begin(np.random.Generator(np.random.Philox(_NO_SEED)), seed, state)  # type: ignore[arg-type]  # see _NO_SEED


def chance_of(seed: int, state: int) -> np.random.Generator:
    """Return the same generator as ``generator``, reusing one object per thread.

    The object is reset at the next recall of the thread.
    """
    existing: np.random.Generator | None = getattr(_local, "generator", None)
    if existing is None:
        _local.generator = existing = generator(seed, state)
    return _begin(existing, seed, state)


def _begin(chance: np.random.Generator, seed: int, state: int) -> np.random.Generator:
    """Reset a generator to the start of the random numbers of one recall."""
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
    within: bool = False,
) -> Shown:
    """Return the top-k of a ranking and the pack's probes.

    Without ``ranking``, candidates are ranked by score. Without ``chance``, no probe is drawn.
    Probes are drawn from the ranks below the top-k, so a probe is an item that would be shown next.
    A candidate that the ranking excludes has probability 0. Without a first result, nothing is drawn.
    Probes ``within`` the limit take the last ranks of the top-k, whose items are shown if nothing is drawn.
    """
    ranking = rank_by_score(scores) if ranking is None else ranking
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[ranking.order] = np.arange(1, len(scores) + 1)
    showable = ranking.order[: ranking.showable]
    # What fits completely is shown, so that no item gives its rank to another one without need.
    reserved = min(int(pack.settings["probes"]), limit) if within and len(showable) > limit else 0
    head, end = showable[:limit], limit - reserved
    band = showable[end : end + int(pack.settings["probe-depth"])]
    propensity = np.zeros(len(scores))
    propensity[head] = 1.0
    certain = Shown(head, ranks, propensity, (1.0,) * len(head), band[:0], "deterministic")
    rate = float(pack.settings["probe-rate"])
    if chance is None or not rate or not len(band) or not len(showable[:end]):
        return certain
    share = _probe_probabilities(pack, pool, scores, band, end)
    if share is None:
        return certain
    drawable = np.flatnonzero(share)
    count = min(int(pack.settings["probes"]), len(drawable))
    if count == 1 or len(drawable) == count:
        propensity[band] = rate * (share if count == 1 else share > 0)
        propensity[band[:reserved]] += 1.0 - rate
        if chance.random() >= rate:
            return Shown(head, ranks, propensity, certain.conditional, band[:0], "probe")
        drawn = np.array([_draw_index(share, chance)]) if count == 1 else drawable
        conditional = share[drawn] if count == 1 else np.ones(count)
        return _insert_probes(
            showable[:end], band[drawn], conditional, ranks, propensity, chance, "probe"
        )
    showing = chance.random() < rate
    drawn, kappa = _gumbel_top(share, count, chance)
    with np.errstate(divide="ignore"):
        propensity[band] = rate * -np.expm1(-np.exp(np.log(share) - kappa))
    propensity[band[:reserved]] += 1.0 - rate
    if not showing:
        return Shown(head, ranks, propensity, certain.conditional, band[:0], "gumbel", kappa)
    conditional = np.array(_conditional_probabilities(share, drawn))
    return _insert_probes(
        showable[:end], band[drawn], conditional, ranks, propensity, chance, "gumbel", kappa
    )


def put_among(head: Positions, drawn: Positions, chance: np.random.Generator) -> Positions:
    """Insert the drawn items at random positions below the first result.

    The position must be random, because items near the top are seen more often.
    """
    positions = head.tolist()
    for position in drawn.tolist():
        positions.insert(1 + int(chance.integers(len(positions))), position)
    return np.array(positions, dtype=np.int64)


def _insert_probes(
    head: Positions,
    drawn: Positions,
    conditional: Scores,
    ranks: Positions,
    propensity: Scores,
    chance: np.random.Generator,
    sampler: str,
    kappa: float | None = None,
) -> Shown:
    """Return the shown items, with exploration items inserted at random positions."""
    positions = put_among(head, drawn, chance)
    probability = dict(zip(drawn.tolist(), conditional.tolist(), strict=True))
    chances = tuple(probability.get(position, 1.0) for position in positions.tolist())
    return Shown(positions, ranks, propensity, chances, drawn, sampler, kappa)


def _probe_probabilities(
    pack: Pack, pool: Candidates | Features, scores: Scores, band: Positions, limit: int
) -> Scores | None:
    """Return the probability of each candidate of ``band`` to be the first exploration item drawn.

    The result is None if all weights are 0 or the policy fails.
    """
    policy = pack.policies["explore"]
    inputs: dict[str, Callable[[], Values]] = {
        "score": lambda: scores[band],
        "limit": lambda: np.full(len(band), float(limit)),
        "tail-n": lambda: np.full(len(band), float(len(band))),
    }
    try:
        if isinstance(pool, Candidates):
            weights, nulls = pool.ask_some(policy, band, inputs)
        else:
            weights, nulls = policy.arrays(
                columns(pool, policy, inputs=inputs, at=band), order=np.arange(len(band))
            )
    except PolicyError as error:
        # A policy over lists can fail on the data. The recall must still answer, without exploration.
        warn_caller(f"No exploration item was drawn for this recall. {error}")
        return None
    is_positive = np.isfinite(weights) & (weights > 0)
    if nulls is not None:
        is_positive &= ~nulls
    weights = np.where(is_positive, weights, 0.0)
    total = float(weights.sum())
    if total <= 0:
        return None
    floor = float(pack.settings["probe-floor"])
    return np.asarray((1.0 - floor) * weights / total + floor / len(band))


def _draw_index(share: Scores, chance: np.random.Generator) -> int:
    """Draw one index with the given probabilities."""
    edges = np.cumsum(share)
    return int(
        min(np.searchsorted(edges, chance.random() * edges[-1], side="right"), len(share) - 1)
    )


def _gumbel_top(share: Scores, count: int, chance: np.random.Generator) -> tuple[Positions, float]:
    """Draw indices by Gumbel top-k; return them and the largest key not drawn."""
    with np.errstate(divide="ignore"):
        keys = np.log(share) + chance.gumbel(size=len(share))
    order = best(keys, count + 1)
    return order[:count], float(keys[order[count]])


def _conditional_probabilities(share: Scores, drawn: Positions) -> list[float]:
    """Return the probability of each draw given the draws before it.

    Draws are without replacement.
    """
    before = np.concatenate([[0.0], np.cumsum(share[drawn])[:-1]])
    probabilities: list[float] = (
        share[drawn] / np.maximum(share.sum() - before, share[drawn])
    ).tolist()
    return probabilities


# Exploration while packs are challenged: items that a challenger would show and the active pack would not.
#
# Probes from the ranks below the top-k seldom fall where two packs differ, so they distinguish packs late or never.
# While a pack is challenged, every recall may show a difference, by one of four designs:
#
# - *extra*: all results of the active pack, and ``extra`` items of challengers, one drawn from each of as many groups.
#   The probabilities are fixed in advance: equal within a group under one challenger; under several, proportional to the
#   square root of the number of challengers that would show the item, which minimises the sum of the variances of their
#   differences. Each item is inserted at a random position below the first result, because items near the top are seen
#   more often. Only the other designs may leave the first result to chance.
# - *lot*: no more items than usual. Items that all packs would show are certain. The others form as many groups as there
#   are positions left, and one item of each group is drawn with equal probability. Under one challenger with as many
#   items, a group is a pair: the j-th item that only the active pack would show, and the j-th of the challenger. The
#   order is by the best rank that any pack gave an item; ties are random.
# - *draft*: team-draft interleaving (Radlinski, Kurup & Joachims 2008) of what two packs do not share. Items that both
#   would show are certain. Each pack fills half of the other positions with its best items, and a coin decides about a
#   middle position. So result lists are compared at equal depth, and not in full: deeper items are shown only with
#   ``extra``, one drawn from each group. The order is drafted in rounds: a coin decides which pack places first.
# - *ab*: the results of one pack, drawn among the active pack and its challengers. This assumes nothing about how the
#   reward of an item depends on its position or on other items, at the price of more recalls.
#
# Groups are drawn independently of each other, so each group is an observation with a range of its own. A confidence
# sequence needs that: the sum of a recall has a wide range and is seldom far from zero. With ``rate`` below 1, one draw
# decides whether a recall takes part, so its groups depend on each other and are not logged.
#
# A memory that the active pack's ``eligible``, the viewer or a filter excludes has probability 0.


@dataclass(frozen=True)
class ChallengerResults:
    """The results of one challenger for a query, as rows of the state, best first."""

    challenge: Challenge
    rows: Positions


class ChallengeDraw(NamedTuple):
    """The shown items of a challenged recall, as positions among the candidates.

    Attributes
    ----------
    results, drawn
        The shown items in order, and the shown items that the active pack would not show.
    propensity
        The inclusion probability of each candidate.
    draws
        The maximum number of draws.
    arm
        0 for the active pack, i for challenger i. Only the design "ab" has arms above 0.
    groups
        The groups from each of which one item was drawn, independently of the other groups. None if
        the draws depend on each other.
    """

    results: Positions
    drawn: Positions
    propensity: Scores
    draws: int
    arm: int = 0
    groups: list[list[int]] | None = None


def draw_challenge(
    active: Positions,
    challengers: Sequence[Positions],
    count: int,
    challenges: Sequence[Challenge],
    chance: np.random.Generator,
) -> ChallengeDraw:
    """Draw the shown items of a recall in which packs are challenged.

    ``active`` and ``challengers`` are the results of the packs as positions among ``count``
    candidates, best first.
    """
    rate, design = max(challenge.rate for challenge in challenges), challenges[0].design
    if design == "ab":
        return _draw_ab([active, *challengers], count, rate, chance)
    heads = [active.tolist(), *(positions.tolist() for positions in challengers)]
    group_items = {"extra": _group_extra, "lot": _group_lot, "draft": _group_draft}[design]
    certain, groups, added = group_items(heads, challenges)
    takes_part = rate == 1 or chance.random() < rate
    propensity, items = np.zeros(count), []
    propensity[certain] = rate
    for group in [*groups, *added]:
        # Several challengers may want an extra item; other groups are drawn evenly.
        votes = [sum(item in head for head in heads) if design == "extra" else 1 for item in group]
        share = np.sqrt(votes) / np.sqrt(votes).sum()
        propensity[group] = rate * share
        if takes_part:
            ends = np.cumsum(share)[:-1]
            items.append(group[int(np.searchsorted(ends, chance.random(), side="right"))])
    propensity[active] += 1 - rate
    propensity[[item for item in certain if item in heads[0]]] = 1.0
    draws = len(groups) + len(added)
    if design == "draft" and rate < 1:
        draws = len(set(heads[0]).difference(heads[1])) + len(added)
    logged = [*groups, *added] if rate == 1 else None
    if not takes_part or (set(certain) <= set(heads[0]) and not items):
        return ChallengeDraw(active, active[:0], propensity, draws, 0, logged)
    results = np.array([*certain, *items[: len(groups)]], dtype=np.int64)
    if design == "lot":
        results = _order_by_best_rank(results, heads, chance)
    elif design == "draft":
        results = _order_by_draft(set(results.tolist()), heads, chance)
    results = put_among(results, np.array(items[len(groups) :], dtype=np.int64), chance)
    return ChallengeDraw(results, np.setdiff1d(results, active), propensity, draws, 0, logged)


Heads = Sequence[Sequence[int]]
"""The results of the active pack and of each challenger, best first."""

_Grouping = tuple[list[int], list[list[int]], list[list[int]]]
"""The certain items, the groups that fill positions of the results, and those of added items."""

ADDED_SHARE = 0.3
"""The added items of ``extra="auto"`` per result of the active pack, at most.

With three items in ten, recall@10 of the first ten results falls by .005 to .019 on LoCoMo; with
half of all disputed items, by up to .025.
"""


def maximum_draws(challenges: Sequence[Challenge], limit: int, available: int = sys.maxsize) -> int:
    """Return the number of items, up to ``available``, that a challenge adds to the results.

    ``extra="auto"`` adds half of them in the design "extra", because probabilities of one half cost
    little variance, and none in a draft.
    """
    automatic = min(-(-available // 2), max(1, int(ADDED_SHARE * limit)))
    return min(
        available,
        max(
            challenge.extra
            if challenge.extra != "auto"
            else automatic * (challenge.design == "extra")
            for challenge in challenges
        ),
    )


def drafted(live: Sequence[_Item], own: Sequence[_Item]) -> tuple[list[_Item], list[_Item]]:
    """Return the active pack's items and the challenger's items that a draft compares.

    They are the better half of the items that only one pack would show.

    >>> drafted([1, 2, 3, 4], [2, 5, 6, 7])
    ([1, 3], [5, 6])
    """
    live_only = [item for item in live if item not in own]
    half = (len(live_only) + 1) // 2
    return live_only[:half], [item for item in own if item not in live][:half]


def _alternate(lists: Iterable[Iterable[int]]) -> list[int]:
    """Interleave ranked lists by rank, keeping each item once."""
    rounds = itertools.zip_longest(*lists)
    return list(dict.fromkeys(item for items in rounds for item in items if item is not None))


def _split(items: Sequence[int], number: int) -> list[list[int]]:
    """Split ranked items into groups of almost equal size, smaller groups first."""
    parts = np.array_split(np.array(items[::-1], dtype=np.int64), number) if number else []
    return [part[::-1].tolist() for part in parts[::-1]]


def _group_extra(heads: Heads, challenges: Sequence[Challenge]) -> _Grouping:
    """Group the items that only challengers would show.

    Without a result of the active pack nothing is added, because the first result is never drawn.
    """
    wanted = _alternate([item for item in head if item not in heads[0]] for head in heads[1:])
    draws = maximum_draws(challenges, len(heads[0]), len(wanted)) if heads[0] else 0
    return list(heads[0]), [], _split(wanted, draws)


def _group_lot(heads: Heads, challenges: Sequence[Challenge]) -> _Grouping:
    """Group the items that not all packs would show, one group per contested position."""
    certain = [item for item in heads[0] if all(item in head for head in heads)]
    free = _alternate([item for item in head if item not in certain] for head in heads)
    parts = np.array_split(np.array(free, dtype=np.int64), max(len(heads[0]) - len(certain), 1))
    return certain, [part.tolist() for part in parts] if len(heads[0]) > len(certain) else [], []


def _group_draft(heads: Heads, challenges: Sequence[Challenge]) -> _Grouping:
    """Group the items of a two-pack draft: certain items, a middle pair and added items."""
    live, own = heads
    halves = drafted(live, own)
    slots, half = len(set(live).difference(own)), len(halves[0])
    certain, groups = [item for item in live if item in own], []
    if slots % 2 and len(halves[1]) == half:
        groups = [[halves[1][-1], halves[0][-1]]]
        halves = halves[0][:-1], halves[1][:-1]
    # A challenger with few results leaves positions to the active pack.
    mine = [item for item in live if item not in own][: slots - len(groups) - len(halves[1])]
    certain += [*halves[1], *mine]
    left = _alternate(
        [item for item in head if item not in {*certain, *itertools.chain(*groups)}]
        for head in heads
    )
    return certain, groups, _split(left, maximum_draws(challenges, len(live), len(left)))


def _order_by_best_rank(items: Positions, heads: Heads, chance: np.random.Generator) -> Positions:
    """Order items by the best rank that any pack gave them; ties are random."""
    items = chance.permutation(items)
    ranks = [min(head.index(item) for head in heads if item in head) for item in items.tolist()]
    return np.asarray(items[np.argsort(ranks, kind="stable")])


def _order_by_draft(items: set[int], heads: Heads, chance: np.random.Generator) -> Positions:
    """Order items in rounds: each pack places its best item, and a coin decides which is first."""
    order: dict[int, None] = {}
    lists = [[item for item in head if item in items] for head in heads]
    while len(order) < len(items):
        for head in lists[:: 1 if chance.random() < 0.5 else -1]:
            order |= dict.fromkeys([item for item in head if item not in order][:1])
    return np.array(list(order), dtype=np.int64)


def _draw_ab(
    rankings: Sequence[Positions], count: int, rate: float, chance: np.random.Generator
) -> ChallengeDraw:
    """Draw one pack and show its results (design "ab").

    With the probability ``rate`` each pack is equally likely; otherwise the active pack is drawn.
    """
    propensity = np.zeros(count)
    for share, positions in zip(shares(len(rankings) - 1, rate), rankings, strict=True):
        propensity[positions] += share
    arm = int(chance.integers(len(rankings))) if rate == 1 or chance.random() < rate else 0
    maximum = max(len(np.setdiff1d(positions, rankings[0])) for positions in rankings)
    drawn = np.setdiff1d(rankings[arm], rankings[0])
    return ChallengeDraw(rankings[arm], drawn, np.minimum(propensity, 1.0), maximum, arm)


def shares(challengers: int, rate: float) -> Scores:
    """Return the probability that design "ab" shows each pack.

    The active pack is first.

    >>> shares(1, 0.5).tolist()
    [0.75, 0.25]
    """
    probabilities = np.full(1 + challengers, rate / (1 + challengers))
    probabilities[0] += 1 - rate
    return probabilities


def describe_challenge(
    challengers: Sequence[ChallengerResults],
    design: str,
    draw: ChallengeDraw,
    live: Positions,
    rows: Positions,
) -> dict[str, Any]:
    """Return the description of a challenge that a slate logs.

    ``live`` has the rows of the active pack's results, and ``rows`` those of all candidates. The
    description has the design, the maximum number of draws, and the results of each pack as memory
    ids. It also has the groups of independent draws, if there are any. For design "ab" it has the
    drawn pack and the probability of each pack.
    """
    drawn: dict[str, Any] = {}
    challenges = [results.challenge for results in challengers]
    if design == "ab" and challengers:
        names = ["", *(challenge.name for challenge in challenges)]
        chances = shares(len(challengers), max(challenge.rate for challenge in challenges))
        drawn = {
            "whose": names[draw.arm],
            "shares": dict(zip(names, chances.tolist(), strict=True)),
        }
    elif challenges:
        extra = max(0 if challenge.extra == "auto" else challenge.extra for challenge in challenges)
        drawn = {"extra": extra}
    if draw.groups is not None:
        drawn["groups"] = [(rows[group] + 1).tolist() for group in draw.groups]
    return drawn | {
        "design": design,
        "draws": draw.draws,
        "live": (live + 1).tolist(),
        "heads": {
            results.challenge.name: {
                "hash": results.challenge.pack.hash,
                "ids": (results.rows + 1).tolist(),
                # A challenge from before comparisons were numbered is counted in its log.
                **(
                    {"number": results.challenge.number, "share": results.challenge.share}
                    if results.challenge.number
                    else {}
                ),
            }
            for results in challengers
        },
    }


# The result of a selector: the order in which candidates may be shown, and how many of the first are certain.


@dataclass(frozen=True)
class Chosen:
    """The choice of a selection (context or session), as positions in the pool.

    ``first`` is shown with certainty, before all others. Of ``ranked``, best first, the ``limit`` best are shown. Other
    candidates have probability 0.
    """

    first: Rows
    ranked: Rows
    limit: int


class Selection(Protocol):
    """A caller that decides which candidates may be shown.

    Examples are a context and a session.

    If ``abstains`` is true, a recall without a likely answer shows at most ``unknown-limit``
    memories.
    """

    abstains: bool

    def requested_rows(self, query: QuestionFeatures) -> Rows:
        """Return the rows that join the pool regardless of their score, ascending.

        These rows count as one hop from the query.
        """

    def spending(self, rows: Rows) -> tuple[Scores, float] | None:
        """Return the token cost of each row and the token budget, or None without a budget."""

    def choose(
        self,
        pool: Candidates,
        scores: Scores,
        ranking: Ranking,
        *,
        extra: int,
        probability: float | None,
    ) -> Chosen:
        """Choose the items to show, leaving room for at most ``extra`` exploration items.

        ``probability`` is the probability that the candidates contain the answer, None without an
        estimate.
        """


@dataclass(frozen=True)
class Selected:
    """The order and the limits that the stage ``select`` has decided.

    Attributes
    ----------
    certain
        The number of first positions of the ranking that are shown with certainty.
    limit
        The maximum number of results, as the slate logs it.
    wanted
        The caller's limit, if it was lowered because the recall has no likely answer; otherwise
        None.
    challengers
        The admissible results of challengers.
    challenges
        All running challenges.
    """

    ranking: Ranking
    certain: int
    limit: int
    wanted: int | None = None
    challenges: Sequence[Challenge] = ()
    challengers: Sequence[ChallengerResults] = ()

    @property
    def certain_positions(self) -> Rows:
        """The positions that are shown with certainty, best first."""
        return self.ranking.order[: min(self.certain, self.ranking.showable)]
