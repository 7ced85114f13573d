"""What is shown: the best, and now and then a probe from below, with its exact probability.

The head is shown with certainty. At the rate ``probe-rate`` one probe comes from the band, the ``probe-depth`` ranks
just below the head, at a random place among it, with probability ``(1 - floor) * w / sum(w) + floor / n``; the pack's
``explore`` policy gives the weights. Its inclusion probability is the rate times that. Several probes are drawn by
Gumbel top-k (Kool et al. 2019): given the threshold kappa, ``1 - exp(-exp(phi - kappa))`` weighs each item without
bias.

The engine owns chance: a counter-based generator, keyed by the lab's seed and the state that the recall has seen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import PolicyError
from memlab.kernel.base.arguments import warn_caller
from memlab.kernel.index import best
from memlab.kernel.policies import Pack
from memlab.kernel.recall._diversity import Ranking, rank_by_score
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._reading import Features, columns

__all__ = ["Shown", "chance_of", "choose", "generator", "put_among"]

Places = NDArray[np.int64]
Scores = NDArray[np.float64]


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


def generator(seed: int, state: int) -> np.random.Generator:
    """The chance of one recall: the same for the same lab, seed and state, independent of any other."""
    return _begun(np.random.Generator(np.random.Philox(_NO_SEED)), seed, state)  # type: ignore[arg-type]  # see _NO_SEED


_ours = threading.local()


def chance_of(seed: int, state: int) -> np.random.Generator:
    """What ``generator`` gives, in this thread's own generator, which begins anew with the thread's next recall."""
    known = getattr(_ours, "generator", None)
    if known is None:
        known = _ours.generator = generator(seed, state)
    return _begun(known, seed, state)


def _begun(chance: np.random.Generator, seed: int, state: int) -> np.random.Generator:
    chance.bit_generator.state = {
        "bit_generator": "Philox",
        "state": {"counter": np.array([0, 0, 0, state], dtype=np.uint64), "key": np.array([seed, 0], dtype=np.uint64)},
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
    shown = head
    for place in drawn.tolist():
        shown = np.insert(shown, int(chance.integers(len(shown) + 1)), place)
    return shown


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
            weights, nulls = policy.arrays(columns(pool, policy, given=given, at=band), order=np.arange(len(band)))
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
    return int(min(np.searchsorted(edges, chance.random() * edges[-1], side="right"), len(share) - 1))


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
