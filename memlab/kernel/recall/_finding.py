"""The stages that make the pool: find, admit, seed, spread, cut.

Python finds candidates, carries activation over edges and sorts; what is eligible, what a candidate is worth, and
what passes over an edge are the pack's policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.graph import EdgeBatch, spread
from memlab.kernel.index import among, best
from memlab.kernel.language import Coded
from memlab.kernel.policies import Pack
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._reading import reading_of
from memlab.kernel.recall._run import Reached, Run
from memlab.kernel.recall._standing import is_over

__all__ = ["admit", "admitted_rows", "cut", "find", "scores_of", "seed", "spread_activation"]

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]

_OF_EDGES: dict[str, Callable[[EdgeBatch, float], NDArray[Any]]] = {
    "activation": lambda batch, damping: batch.activation,
    "weight": lambda batch, damping: batch.weight,
    "depth": lambda batch, damping: np.full(len(batch.weight), float(batch.depth)),
    "damping": lambda batch, damping: np.full(len(batch.weight), damping),
    "outgoing": lambda batch, damping: batch.outgoing,
}
"""What a policy of spreading reads of the edges crossed, and of the pack's damping."""

_NO_ROWS: Rows = np.empty(0, dtype=np.int64)


# -- find -------------------------------------------------------------------------------------------------------------


def find(run: Run) -> None:
    """The nearest vectors, the best matches of words and what has a trigger, by ascending row."""
    if _begins_with_entities(run):
        run.found = _NO_ROWS
        return
    run.found = _found(run)
    if not run.plan.ending.possible(run.state):
        return
    # what is over takes nobody's place
    if is_over(_candidates(run, run.found)).any():
        run.found = _found(run, lambda rows: rows[~is_over(_candidates(run, rows))])


def _found(run: Run, standing: Callable[[Rows], Rows] | None = None) -> Rows:
    """With ``standing``, which picks from ascending rows, only of what it picks."""
    plan, asked = run.plan.find, run.asked
    parts = []
    if plan.dense and len(asked.population.rows):
        parts.append(_best(asked.nearest, plan.dense, standing))
    if plan.lexical:
        parts.append(_best(asked.matches.best, plan.lexical, standing))
    if plan.triggers:
        called = asked.triggered()
        parts.append(called if standing is None else standing(called))
    if not parts:
        return _NO_ROWS
    rows = np.concatenate(parts)
    rows.sort()
    fresh = np.empty(len(rows), dtype=np.bool_)
    fresh[:1] = True
    np.not_equal(rows[1:], rows[:-1], out=fresh[1:])
    return rows[fresh]


def _best(search: Callable[[int], Rows], count: int, standing: Callable[[Rows], Rows] | None) -> Rows:
    """The ``count`` best that a search gives, of what is ``standing``: it is asked for more until there are as many."""
    rows = search(count)
    if standing is None:
        return rows
    wide = count
    while True:
        kept = rows[among(rows, standing(np.sort(rows)))]
        if len(kept) >= count or len(rows) < wide:
            return kept[:count]
        wide *= 4
        rows = search(wide)


# -- admit and seed ---------------------------------------------------------------------------------------------------


def admit(run: Run) -> None:
    """Those that the slot ``eligible`` lets take part."""
    direct = _candidates(run, run.found)
    by_hops = run.plan.eligible
    if by_hops is None:
        keep = _eligible(direct)
        direct = direct if keep.all() else _candidates(run, run.found[keep])
    elif not by_hops[0]:
        direct = _candidates(run, run.found[:0])
    run.direct = direct


def seed(run: Run) -> None:
    """What each is worth before spreading, by the slot ``seed-score``."""
    run.seeds = scores_of("seed-score", run.direct) if len(run.found) else np.empty(0)


def admitted_rows(run: Run, rows: Rows, *, hops: int) -> Rows:
    """Those of ``rows``, which nothing found, that may be shown: eligible, and not over. They are so many hops away."""
    if not len(rows):
        return rows
    beside = _candidates(run, rows)
    beside.give(hops=np.full(len(rows), float(hops)))
    return rows[_eligible(beside) & ~_over(run, beside)]


def _candidates(run: Run, rows: Rows) -> Candidates:
    return Candidates(run.state, run.plan.pack, run.asked, rows)


def _eligible(pool: Candidates) -> Flags:
    values, nulls = pool.ask(pool.pack.policies["eligible"])
    return np.asarray(values if nulls is None else values & ~nulls, dtype=np.bool_)


def _over(run: Run, pool: Candidates) -> Flags:
    if not run.plan.ending.possible(run.state):
        return np.zeros(len(pool), dtype=np.bool_)
    return is_over(pool)


def scores_of(slot: str, pool: Candidates, pack: Pack | None = None) -> Scores:
    """The slot's score of each candidate, by its own pack or another; NaN and null sort last, as -inf."""
    values, nulls = pool.ask((pack or pool.pack).policies[slot])
    bad = np.isnan(values)
    if nulls is not None:
        bad |= nulls
    return np.where(bad, -np.inf, values) if bad.any() else values


# -- spread -----------------------------------------------------------------------------------------------------------


def spread_activation(run: Run) -> None:
    """Carry activation over edges, from seeds and entities."""
    plan = run.plan.spread
    begins = len(run.about.nodes) or (len(run.direct.rows) and plan.seeds)
    if begins and plan.steps:
        run.reached = _spread(run)
        return
    own = np.where(np.isfinite(run.seeds), run.seeds, 0.0)
    nothing = np.zeros(len(own))
    run.reached = Reached(run.direct.rows, own, nothing, own, nothing)


def _begins_with_entities(run: Run) -> bool:
    return bool(len(run.about.nodes)) and run.plan.spread.entities_first


def _spread(run: Run) -> Reached:
    plan, direct, values = run.plan.spread, run.direct, run.seeds
    order = _sources(run)
    wave = spread(
        run.state.edges,
        np.concatenate((direct.rows[order], run.about.nodes)),
        np.concatenate((values[order], run.about.nearness)),
        _passing(run),
        steps=plan.steps,
        threshold=plan.threshold,
        mode=plan.mode,
        damping=min(plan.damping, 0.999),
        fan_out=plan.fan_out,
        nodes=run.state.nodes,
        sound=not len(run.about.nodes),
    ).of_kind("memory")
    everyone = len(order) == len(direct.rows)  # then every candidate is a seed, and the wave holds all
    rows = wave.rows if everyone else np.union1d(direct.rows, wave.rows)
    seeds, received, activation = np.zeros((3, len(rows)))
    hops = np.full(len(rows), np.inf)
    at_wave = slice(None) if everyone else rows.searchsorted(wave.rows)
    received[at_wave], activation[at_wave], hops[at_wave] = wave.received, wave.activation, wave.hops
    at_direct = rows.searchsorted(direct.rows)
    seeds[at_direct], hops[at_direct] = np.where(np.isfinite(values), values, 0.0), 0.0
    return _eligible_ones(run, Reached(rows, seeds, received, activation, hops))


def _sources(run: Run) -> Rows:
    """The places of the candidates from which activation leaves, ascending."""
    values, most = run.seeds, run.plan.spread.seeds
    order = np.arange(len(values)) if len(values) <= most else np.sort(best(values, most))
    order = order[np.isfinite(values[order])]
    # a seed keeps what it has: with nothing, it would hold up what an entity sends
    return order[values[order] > 0] if len(run.about.nodes) else order


def _passing(run: Run) -> Callable[[EdgeBatch], Scores]:
    """What passes over the edges of a wave, by the slot ``spread``; nothing to what takes no part."""
    damping = run.plan.spread.damping
    program = reading_of(run.plan.pack.policies["spread"]).program
    mask, relations = run.asked.population.mask, tuple(run.state.edges.relations)

    def column(batch: EdgeBatch, name: str) -> Any:
        if name == "relation":
            return Coded(batch.relation, relations, _codes_of(relations))
        return _OF_EDGES[name](batch, damping)

    def passed_over(batch: EdgeBatch) -> Scores:
        ready = [(column(batch, name), None) for name in program.reads]
        values, nulls = program.compute(ready, len(batch.edge), order=batch.edge, quiet=True)
        passed = np.array(values, dtype=np.float64) if nulls is None else np.where(nulls, 0.0, values)
        if mask is not None:
            barred = batch.target < len(mask)  # tags, clusters and entities are passed through
            barred[barred] = ~mask[batch.target[barred]]
            passed[barred] = 0.0
        return np.asarray(passed)

    return passed_over


@lru_cache(maxsize=64)
def _codes_of(relations: tuple[str, ...]) -> Mapping[str, int]:
    return {name: code for code, name in enumerate(relations)}


def _eligible_ones(run: Run, reached: Reached) -> Reached:
    """Without what spreading alone reached and may not be shown."""
    if run.plan.eligible is not None and all(run.plan.eligible) and not run.plan.ending.possible(run.state):
        return reached
    away = reached.hops > 0
    if not away.any():
        return reached
    others = _candidates(run, reached.rows[away])
    others.give(hops=reached.hops[away])
    eligible = _eligible(others) & ~_over(run, others)
    if eligible.all():
        return reached
    keep = ~away
    keep[away] = eligible
    return Reached(
        reached.rows[keep], reached.seed[keep], reached.received[keep], reached.activation[keep], reached.hops[keep]
    )


# -- cut --------------------------------------------------------------------------------------------------------------


def cut(run: Run) -> None:
    """The best by the slot ``cut``, as many as the pool holds, and what a selection names whatever its nearness."""
    reached = _candidates(run, run.reached.rows)
    reached.give(**dict(zip(Reached._fields[1:], run.reached[1:], strict=True)))
    # Rows ascend, so ties by position are ties by id.
    kept = best(scores_of("cut", reached), run.plan.find.pool)
    kept.sort()
    run.pool = reached.among(kept)
    if run.selection is not None:
        run.pool = _with_named(run, run.selection.named(run.asked))


def _with_named(run: Run, named: Rows) -> Candidates:
    """The pool and those of the ``named`` rows that are not in it, as far as they may be shown."""
    pool = run.pool
    rows = admitted_rows(run, named[~among(named, pool.rows)], hops=1)
    if not len(rows):
        return pool
    found = _candidates(run, np.union1d(pool.rows, rows))
    own = scores_of("seed-score", found)  # of all: a policy may put each on a scale from the least to the greatest
    fresh = among(found.rows, rows)
    alone = np.where(fresh & np.isfinite(own), own, 0.0)
    given = {"seed": alone, "received": np.zeros(len(fresh)), "activation": alone, "hops": fresh}
    for name, values in given.items():
        both = values.astype(np.float64)
        both[~fresh] = pool[name]
        found.give(**{name: both})
    return found
