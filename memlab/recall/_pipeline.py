"""The road from a question to a slate.

    question -> candidates -> eligible -> seed-score -> spread -> features -> recall-score -> top -> slate

Python finds candidates, carries activation over edges and sorts; what is eligible, what a candidate is worth, and
what passes over an edge are the pack's policies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.embedding import Embedder
from memlab.graph import EdgeBatch, spread
from memlab.index import best
from memlab.language import Policy
from memlab.memory import State
from memlab.policies import FEATURES, Pack
from memlab.recall._explore import choose, generator
from memlab.recall._features import Candidates, columns, read
from memlab.recall._question import Asked, Population, Populations, Question, SpeakerNames
from memlab.schema import RELATIONS
from memlab.slates import Slate

__all__ = ["Recaller"]

_CUT = "best by seed + received, ties by id"
_RELATION_WORDS: NDArray[Any] = np.array(RELATIONS, dtype=object)
_NUMERIC = tuple(name for name, feature in FEATURES.items() if feature.type in ("num", "bool"))
_FLAGS = tuple(name for name, feature in FEATURES.items() if feature.type == "bool")
_RANKING = ("recall-score", "explore")
_VERBAL = tuple(name for name, feature in FEATURES.items() if feature.type == "str")

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


class Recaller:
    """Recalls from states that share an embedder; keeps the populations of recent filters."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._populations = Populations()
        self._speakers = SpeakerNames()
        self._fingerprints: dict[str, dict[str, str]] = {}

    def recall(self, state: State, pack: Pack, question: Question, *, limit: int, seed: int | None = None) -> Slate:
        """The slate of a question; nothing is written. With a ``seed``, the pack's probes are drawn too."""
        population = self._populations.get(state, project=question.project, session=question.session)
        asked = Asked(state, pack, self._embedder, question, population, self._speakers)
        pool = _pool(state, pack, asked, population)
        scores = _scores(pack, "recall-score", pool)
        chance = None if seed is None else generator(seed, state.seq)
        shown = choose(pack, pool, scores, limit=limit, chance=chance)
        ids = pool.rows + 1
        return Slate(
            at=question.at,
            query=question.text,
            vector=asked.vector.tobytes(),
            limit=limit,
            project=question.project,
            pack=pack.name,
            pack_hash=pack.hash,
            policies={slot: policy.hash for slot, policy in pack.policies.items()},
            settings=dict(pack.settings),
            fingerprints=self._fingerprints_of(pack),
            state=state.seq,
            cut=f"{pack.count('pool')} {_CUT}",
            sampler=shown.sampler,
            ids=ids,
            scores=scores,
            numbers=_numbers(pack, pool),
            words={name: pool[name].tolist() for name in _VERBAL},
            shown=tuple(ids[shown.places].tolist()),
            seed=None if shown.sampler == "deterministic" else seed,
            kappa=shown.kappa,
            ranks=shown.ranks,
            propensity=shown.propensity,
            conditional=shown.conditional,
            probes=tuple(ids[shown.places[len(shown.places) - shown.probes :]].tolist()),
            session=question.session,
            branch=question.branch,
            flags=_flags(pack),
        )

    def _fingerprints_of(self, pack: Pack) -> dict[str, str]:
        known = self._fingerprints.get(pack.hash)
        if known is None:
            embedder = self._embedder.fingerprint
            known = {"embedder": embedder, **pack.fingerprints(embedder)}
            self._fingerprints = {pack.hash: known}
        return known


def _pool(state: State, pack: Pack, asked: Asked, population: Population) -> Candidates:
    """The candidates that are scored: found by the question or reached by spreading, and eligible."""
    found = _found(state, pack, asked, population)
    direct = Candidates(state, pack, asked, found)
    keep = _eligible(pack, direct)
    if not keep.all():
        direct = Candidates(state, pack, asked, found[keep])
    seed = _scores(pack, "seed-score", direct)
    if not len(direct) or not pack.count("seeds") or not pack.count("spread-steps"):
        received = np.zeros(len(direct))
        rows, hops = direct.rows, np.zeros(len(direct))
        activation = np.where(np.isfinite(seed), seed, 0.0)
        seed = activation
    else:
        rows, seed, received, activation, hops = _spread(state, pack, asked, population, direct, seed)
    # Rows ascend, so ties by position are ties by id.
    kept = np.sort(best(seed + received, pack.count("pool")))
    pool = Candidates(state, pack, asked, rows[kept])
    for name, values in (("seed", seed), ("received", received), ("activation", activation), ("hops", hops)):
        pool.give(name, values[kept])
    return pool


def _tests(pack: Pack) -> dict[str, Policy]:
    """The tests of sets that the pack's policies of ranking make, each with a policy that makes it."""
    return {name: pack.policies[slot] for slot in _RANKING for name in pack.policies[slot].derived}


def _numbers(pack: Pack, pool: Candidates) -> dict[str, Scores]:
    """The numbers and flags that the slate keeps."""
    numbers = {name: np.asarray(pool[name], dtype=np.float64) for name in _NUMERIC}
    for name, policy in _tests(pack).items():
        numbers[name] = np.asarray(read(pool, policy, name), dtype=np.float64)
    return numbers


def _flags(pack: Pack) -> tuple[str, ...]:
    """Which of those numbers are true or false."""
    tests = _tests(pack).items()
    return _FLAGS + tuple(name for name, policy in tests if policy.derived[name].type == "bool")


def _found(state: State, pack: Pack, asked: Asked, population: Population) -> Rows:
    """The nearest vectors and the best matches of words, by ascending row."""
    dense, lexical = pack.count("dense-candidates"), pack.count("lexical-candidates")
    found = [np.empty(0, dtype=np.int64)]
    if dense and len(population):
        question = asked.question
        key = (question.project, question.session)
        found.append(state.vectors.top(asked.vector, dense, rows=population.rows, key=key)[0])
    if lexical:
        found.append(asked.posted[best(asked.posted_scores, lexical)])
    if pack.settings["triggers"]:
        found.append(asked.triggered())
    return np.unique(np.concatenate(found))


def _spread(
    state: State, pack: Pack, asked: Asked, population: Population, direct: Candidates, seed: Scores
) -> tuple[Rows, Scores, Scores, Scores, Scores]:
    """Carry the seeds' activation over edges: rows, seed, received, activation and hops of all that take part."""
    order = best(seed, pack.count("seeds"))
    order = np.sort(order[np.isfinite(seed[order])])
    damping = pack.number("damping")
    policy = pack.policies["spread"]

    def pass_on(batch: EdgeBatch) -> Scores:
        count = len(batch.weight)
        given: dict[str, Callable[[], NDArray[Any]]] = {
            "activation": lambda: batch.activation,
            "weight": lambda: batch.weight,
            "relation": lambda: _RELATION_WORDS[batch.relation],
            "depth": lambda: np.full(count, float(batch.depth)),
            "damping": lambda: np.full(count, damping),
            "outgoing": lambda: batch.outgoing,
        }
        columns = {name: given[name]() for name in policy.inputs} or {"weight": batch.weight}
        values, nulls = policy.arrays(columns, order=batch.edge)
        passed = values if nulls is None else np.where(nulls, 0.0, values)
        if population.mask is not None:
            passed = np.where(population.mask[batch.target], passed, 0.0)
        return np.asarray(passed)

    wave = spread(
        state.edges,
        direct.rows[order],
        seed[order],
        pass_on,
        steps=pack.count("spread-steps"),
        threshold=pack.number("spread-threshold"),
        combine="sum" if pack.settings["spread-combine"] == "sum" else "max",
        nodes=len(state),
    )
    rows = np.union1d(direct.rows, wave.rows)
    seeds, received, activation = (np.zeros(len(rows)) for _ in range(3))
    hops = np.full(len(rows), np.inf)
    at_wave = np.searchsorted(rows, wave.rows)
    received[at_wave], activation[at_wave], hops[at_wave] = wave.received, wave.activation, wave.hops
    at_direct = np.searchsorted(rows, direct.rows)
    finite = np.where(np.isfinite(seed), seed, 0.0)
    seeds[at_direct], hops[at_direct] = finite, 0.0
    reached = Candidates(state, pack, asked, rows[hops > 0])
    if len(reached):
        reached.give("hops", hops[hops > 0])
        keep = np.ones(len(rows), dtype=np.bool_)
        keep[hops > 0] = _eligible(pack, reached)
        rows, seeds, received = rows[keep], seeds[keep], received[keep]
        activation, hops = activation[keep], hops[keep]
    return rows, seeds, received, activation, hops


def _eligible(pack: Pack, pool: Candidates) -> NDArray[np.bool_]:
    policy = pack.policies["eligible"]
    values, nulls = policy.arrays(columns(pool, policy), order=pool.rows)
    return np.asarray(values if nulls is None else values & ~nulls, dtype=np.bool_)


def _scores(pack: Pack, slot: str, pool: Candidates) -> Scores:
    """The slot's score of each candidate; NaN and null sort last, as -inf."""
    policy = pack.policies[slot]
    values, nulls = policy.arrays(columns(pool, policy), order=pool.rows)
    bad = np.isnan(values) if nulls is None else np.isnan(values) | nulls
    return np.where(bad, -np.inf, values) if bad.any() else np.asarray(values, dtype=np.float64)
