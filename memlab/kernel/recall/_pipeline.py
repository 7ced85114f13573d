"""The road from a question to a slate.

    question -> filters -> find -> admit -> seed -> spread -> cut -> score -> known -> select -> explore -> log -> slate

Python finds candidates, carries activation over edges and sorts; what is eligible, what a candidate is worth, and
what passes over an edge are the pack's policies. ``_stages.py`` has the table of stages, ``_plan.py`` what is worked
out once for each pack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from memlab.errors import ExtensionError, PolicyError
from memlab.kernel.base.arguments import warn_caller
from memlab.kernel.embedding import Embedder
from memlab.kernel.graph import EdgeBatch, spread
from memlab.kernel.index import among, best
from memlab.kernel.language import Coded
from memlab.kernel.policies import Challenge, Pack, same_candidates
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._mentions import Triggers
from memlab.kernel.recall._moment import Column, reading_of
from memlab.kernel.recall._plan import STAGES, Plans, Reached, Run, Stage, is_over
from memlab.kernel.recall._population import Population, Populations
from memlab.kernel.recall._query import (
    NO_ENTITIES,
    EntityNames,
    Question,
    QuestionFeatures,
    SpeakerNames,
    WordVectors,
)
from memlab.kernel.recall._ranking import (
    Opposed,
    Ranking,
    Selected,
    Selection,
    Shown,
    chance_of,
    choose,
    describe_challenge,
    draw_challenge,
    rank_all,
    rank_by_policy,
    rank_by_score,
)
from memlab.kernel.recall._slating import bytes_of, log
from memlab.kernel.slates import Slate
from memlab.kernel.state import State, ViewerState

__all__ = [
    "Recaller",
    "admit",
    "admitted_rows",
    "cut",
    "estimate_known",
    "explore",
    "find",
    "score",
    "scores_of",
    "seed",
    "select",
    "spread_activation",
]


# The stages that make the pool: find, admit, seed, spread, cut.
#
# Python finds candidates, carries activation over edges and sorts; what is eligible, what a candidate is worth, and
# what passes over an edge are the pack's policies.


Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]

_NO_ROWS: Rows = np.empty(0, dtype=np.int64)


# -- find -------------------------------------------------------------------------------------------------------------


def find(run: Run) -> None:
    """The nearest vectors, the best matches of words and what has a trigger, by ascending row."""
    if len(run.about.nodes) and run.plan.spread.entities_first:
        run.found = _NO_ROWS
        return
    run.found = _found(run)
    if not run.plan.ending.possible(run.state):
        return
    # what is over takes nobody's place
    if is_over(Candidates(run.state, run.plan.pack, run.asked, run.found)).any():
        run.found = _found(
            run, lambda rows: rows[~is_over(Candidates(run.state, run.plan.pack, run.asked, rows))]
        )


def _found(run: Run, standing: Callable[[Rows], Rows] | None = None) -> Rows:
    """With ``standing``, which picks from ascending rows, only of what it picks."""
    plan, asked = run.plan.find, run.asked
    parts = []
    if plan.dense and len(asked.population.rows):
        nearest = asked.nearest
        parts.append(
            nearest(plan.dense) if standing is None else _best(nearest, plan.dense, standing)
        )
    if plan.lexical:
        matching = asked.matches.best
        parts.append(
            matching(plan.lexical) if standing is None else _best(matching, plan.lexical, standing)
        )
    if plan.triggers:
        called = asked.triggered
        parts.append(called if standing is None else standing(called))
    if not parts:
        return _NO_ROWS
    rows = np.concatenate(parts)
    rows.sort()
    fresh = np.empty(len(rows), dtype=np.bool_)
    fresh[:1] = True
    np.not_equal(rows[1:], rows[:-1], out=fresh[1:])
    return rows[fresh]


def _best(search: Callable[[int], Rows], count: int, standing: Callable[[Rows], Rows]) -> Rows:
    """The ``count`` best that a search gives, of what is ``standing``: it is asked for more until there are as many."""
    rows, wide = search(count), count
    while True:
        kept = rows[among(rows, standing(np.sort(rows)))]
        if len(kept) >= count or len(rows) < wide:
            return kept[:count]
        wide *= 4
        rows = search(wide)


# -- admit and seed ---------------------------------------------------------------------------------------------------


def admit(run: Run) -> None:
    """Those that the slot ``eligible`` lets take part."""
    rows, by_hops = run.found, run.plan.eligible
    if by_hops is not None and not by_hops[0]:
        rows = rows[:0]
    run.direct = Candidates(run.state, run.plan.pack, run.asked, rows)
    if by_hops is None:
        keep = _eligible(run.direct)
        if not keep.all():
            run.direct = Candidates(run.state, run.plan.pack, run.asked, rows[keep])


def seed(run: Run) -> None:
    """What each is worth before spreading, by the slot ``seed-score``."""
    run.seeds = scores_of("seed-score", run.direct) if len(run.found) else np.empty(0)


def admitted_rows(run: Run, rows: Rows, *, hops: int) -> Rows:
    """Those of ``rows``, which nothing found, that may be shown: eligible, and not over. They are so many hops away."""
    if not len(rows):
        return rows
    beside = Candidates(run.state, run.plan.pack, run.asked, rows)
    beside.give(hops=np.full(len(rows), float(hops)))
    return rows[_eligible(beside) & ~_over(run, beside)]


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


def _spread(run: Run) -> Reached:
    plan, direct, values, about = run.plan.spread, run.direct, run.seeds, run.about
    # activation leaves from the best candidates, in the order of their rows
    order = (
        np.arange(len(values)) if len(values) <= plan.seeds else np.sort(best(values, plan.seeds))
    )
    order = order[np.isfinite(values[order])]
    if len(about.nodes):
        # a seed keeps what it has: with nothing, it would hold up what an entity sends
        order = order[values[order] > 0]
    wave = spread(
        run.state.edges,
        np.concatenate((direct.rows[order], about.nodes)),
        np.concatenate((values[order], about.nearness)),
        _passing(run),
        steps=plan.steps,
        threshold=plan.threshold,
        mode=plan.mode,
        damping=min(plan.damping, 0.999),
        fan_out=plan.fan_out,
        nodes=run.state.nodes,
        validated=not len(about.nodes),
    ).of_kind("memory")
    # then every candidate is a seed, and the wave holds all
    everyone = len(order) == len(direct.rows)
    rows = wave.rows if everyone else np.union1d(direct.rows, wave.rows)
    seeds, received, activation = np.zeros((3, len(rows)))
    hops = np.empty(len(rows))
    hops.fill(np.inf)
    at_wave = slice(None) if everyone else rows.searchsorted(wave.rows)
    received[at_wave], activation[at_wave], hops[at_wave] = (
        wave.received,
        wave.activation,
        wave.hops,
    )
    at_direct = rows.searchsorted(direct.rows)
    seeds[at_direct], hops[at_direct] = np.where(np.isfinite(values), values, 0.0), 0.0
    reached = Reached(rows, seeds, received, activation, hops)
    if (
        run.plan.eligible is not None
        and all(run.plan.eligible)
        and not run.plan.ending.possible(run.state)
    ):
        return reached
    return _eligible_ones(run, reached)


def _passing(run: Run) -> Callable[[EdgeBatch], Scores]:
    """What passes over the edges of a wave, by the slot ``spread``; nothing to what takes no part."""
    damping = run.plan.spread.damping
    program = reading_of(run.plan.pack.policies["spread"]).program
    mask, relations = run.asked.population.mask, tuple(run.state.edges.relations)
    codes = _codes_of(relations)

    def passed_over(batch: EdgeBatch) -> Scores:
        count = len(batch.edge)
        given: dict[str, Any] = {
            "activation": batch.activation,
            "weight": batch.weight,
            "outgoing": batch.outgoing,
            "depth": float(batch.depth),
            "damping": damping,
            "relation": Coded(batch.relation, relations, codes),
        }
        columns = [given[name] for name in program.reads]
        ready = [
            (np.full(count, column) if type(column) is float else column, None)
            for column in columns
        ]
        values, nulls = program.compute(ready, count, order=batch.edge, quiet=True)
        passed = (
            np.array(values, dtype=np.float64) if nulls is None else np.where(nulls, 0.0, values)
        )
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
    away = reached.hops > 0
    if not away.any():
        return reached
    others = Candidates(run.state, run.plan.pack, run.asked, reached.rows[away])
    others.give(hops=reached.hops[away])
    eligible = _eligible(others) & ~_over(run, others)
    if eligible.all():
        return reached
    keep = ~away
    keep[away] = eligible
    rows, *columns = reached
    return Reached(rows[keep], *(column[keep] for column in columns))


# -- cut --------------------------------------------------------------------------------------------------------------


def cut(run: Run) -> None:
    """The best by the slot ``cut``, as many as the pool holds, and what a selection names whatever its nearness."""
    reached = Candidates(run.state, run.plan.pack, run.asked, run.reached.rows)
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
    found = Candidates(run.state, run.plan.pack, run.asked, np.union1d(pool.rows, rows))
    # of all: a policy may put each on a scale from the least to the greatest
    own = scores_of("seed-score", found)
    fresh = among(found.rows, rows)
    alone = np.where(fresh & np.isfinite(own), own, 0.0)
    given = {"seed": alone, "received": np.zeros(len(fresh)), "activation": alone, "hops": fresh}
    for name, values in given.items():
        both = values.astype(np.float64)
        both[~fresh] = pool[name]
        found.give(**{name: both})
    return found


# The stages that decide what is shown: score, known, select, explore.
#
# One selector serves the best of a pool, what a context or a session leaves out, probes and challenges: it gives the
# order in which candidates may be shown, and how many of the first are shown with certainty. Chance then adds to those.


# -- score and known --------------------------------------------------------------------------------------------------


def score(run: Run) -> None:
    """What each candidate is worth, by the slot ``recall-score``."""
    run.scores = scores_of("recall-score", run.pool)


def estimate_known(run: Run) -> None:
    """The probability that something of the pool answers.

    None where the pack does not say, or has another recall-score than its ``known`` was calibrated for.
    """
    policy, pool, scores = run.plan.pack.policies["known"], run.pool, run.scores
    run.known = None
    if not run.plan.show.tells_known:
        return
    if not len(pool.rows):
        run.known = 0.0 if policy.inputs else None
        return
    scored = np.isfinite(scores)
    given: Column = scores if scored.all() else (np.where(scored, scores, 0.0), ~scored)
    values, nulls = pool.ask(policy, given={"score": lambda: given})
    unknown = np.isnan(values)
    if nulls is not None:
        unknown |= nulls
    said = values[~unknown]
    if len(said):
        run.known = min(max(float(said.max()), 0.0), 1.0)


# -- select -----------------------------------------------------------------------------------------------------------


def select(run: Run) -> None:
    """The order in which candidates may be shown, and how many of the first are."""
    show, limit, wanted = run.plan.show, run.limit, None
    abstains = run.selection is None or run.selection.abstains
    if abstains and run.known is not None and run.known < show.known_floor:
        limit, wanted = min(limit, show.unknown_limit), limit
    ranking = _ranked(run, limit)
    challenges: tuple[Challenge, ...] = ()
    if run.seed is not None and run.challenges:
        challenges = tuple([one for one in run.challenges if one.pack.hash != run.plan.pack.hash])
    selected = Selected(ranking, limit, limit, wanted, challenges)
    if challenges:
        selected = _opposed(run, selected)
    if run.selection is not None:
        selected = _narrowed(run, run.selection, selected)
    run.selected = selected


def _ranked(run: Run, limit: int) -> Ranking:
    """The order in which a pool may be shown, by likeness where the pack minds it."""
    show, pool, scores, scale = run.plan.show, run.pool, run.scores, run.asked.embedder.scale
    depth = limit + show.probe_depth
    if show.selects:
        policy, spending = (
            run.plan.pack.policies["select"],
            None if run.selection is None else run.selection.spending,
        )
        return rank_by_policy(policy, pool, scores, depth=depth, closeness=scale, spending=spending)
    if show.diversifies:
        vectors = run.state.vectors.take(pool.rows)
        return rank_all(run.plan.pack, scores, lambda: vectors, depth=depth, closeness=scale)
    return rank_by_score(scores)


def _narrowed(run: Run, selection: Selection, selected: Selected) -> Selected:
    """What a selection made of the pool stands first; of challengers' heads, what it lets be shown."""
    chosen = selection.choose(
        run.pool, run.scores, selected.ranking, beside=_most_by_chance(run, selected.challenges)
    )
    limit = chosen.limit if selected.wanted is None else min(chosen.limit, selected.limit)
    ranking = selected.ranking
    front = np.concatenate([chosen.first, chosen.ranked])
    rest = ranking.order[~np.isin(ranking.order, front)]
    showable = np.isin(chosen.ranked, ranking.order[: ranking.showable])
    own, others = chosen.ranked[showable], chosen.ranked[~showable]
    order = np.concatenate([chosen.first, own, others, rest])
    first, open_to_all = run.pool.rows[chosen.first], np.sort(run.pool.rows[chosen.ranked])
    return Selected(
        Ranking(order, len(chosen.first) + len(own), ranking.duplicates),
        len(chosen.first) + limit,
        max(limit, 1),
        selected.wanted,
        selected.challenges,
        [
            Opposed(one.challenge, _within(one.rows, first, open_to_all, limit))
            for one in selected.opposed
        ],
    )


def _within(rows: Rows, first: Rows, open_to_all: Rows, limit: int) -> Rows:
    return np.concatenate([first, rows[among(rows, open_to_all)][:limit]])


def _most_by_chance(run: Run, challenges: Sequence[Challenge]) -> int:
    """How many may be shown beside the head to learn of them."""
    if run.seed is None:
        return 0
    if challenges:
        return max(one.extra for one in challenges) if challenges[0].design == "extra" else 0
    return run.plan.show.probes if run.plan.show.probe_rate else 0


# -- challengers ------------------------------------------------------------------------------------------------------


def _opposed(run: Run, selected: Selected) -> Selected:
    """With the head of each challenger, whose candidates join the pool: last, without a score."""
    opposed = []
    for challenge in selected.challenges:
        try:
            opposed.append(_head_of(run, challenge, selected.limit))
        except (PolicyError, ExtensionError) as error:
            warn_caller(
                f"The challenger {challenge.pack.name} was left out of this recall. {error}"
            )
    ranking = _joined(run, selected.ranking, opposed)
    return Selected(
        ranking, selected.head, selected.limit, selected.wanted, selected.challenges, opposed
    )


def _head_of(run: Run, challenge: Challenge, limit: int) -> Opposed:
    """The head of a challenger: of the same candidates where only its order differs, else of its own."""
    assert run.rival is not None
    rival = run.rival(challenge.pack)
    # who asked for the pack's own number of items gets each pack's own
    most = rival.plan.show.limit if limit == run.plan.show.limit else limit
    if same_candidates(run.plan.pack, challenge.pack):
        rival.pool = run.pool
        rival.scores = scores_of("recall-score", run.pool, challenge.pack)
    else:
        rival.through(rival.plan.upto("score"))
    ranking = _ranked(rival, most)
    return Opposed(challenge, rival.pool.rows[ranking.order[: ranking.showable][:most]])


def _joined(run: Run, ranking: Ranking, opposed: Sequence[Opposed]) -> Ranking:
    """The pool with what challengers would show beside it, as far as the live pack may show it."""
    pool = run.pool
    rows = np.unique(np.concatenate([one.rows for one in opposed] or [pool.rows[:0]]))
    rows = admitted_rows(run, rows[~among(rows, pool.rows)], hops=0)
    if not len(rows):
        return ranking
    beside = Candidates(run.state, run.plan.pack, run.asked, rows)
    own = scores_of("seed-score", beside)
    own = np.where(np.isfinite(own), own, 0.0)
    union = np.concatenate([pool.rows, rows])
    order = np.argsort(union, kind="stable")
    found = Candidates(run.state, run.plan.pack, run.asked, union[order])
    nothing = np.zeros(len(rows))
    given = {"seed": own, "received": nothing, "activation": own, "hops": nothing}
    found.give(
        **{name: np.concatenate([pool[name], values])[order] for name, values in given.items()}
    )
    place = np.empty(len(union), dtype=np.int64)
    place[order] = np.arange(len(union))
    run.pool = found
    run.scores = np.concatenate([run.scores, np.full(len(rows), -np.inf)])[order]
    return Ranking(
        place[np.concatenate([ranking.order, np.arange(len(pool.rows), len(union))])],
        ranking.showable,
        {int(place[one]): place[others].tolist() for one, others in ranking.duplicates.items()},
    )


# -- explore ----------------------------------------------------------------------------------------------------------


def explore(run: Run) -> None:
    """What is shown: the head, and what chance adds to it, with its probabilities."""
    selected, chance, state = run.selected, None, run.state
    if run.seed is not None:
        # what others do in private moves no probe
        chance = chance_of(
            run.seed, len(state.visible) if isinstance(state, ViewerState) else state.seq
        )
    if selected.challenges and chance is not None:
        _challenge(run, chance)
        return
    run.challenge = None
    run.shown = choose(
        run.plan.pack,
        run.pool,
        run.scores,
        limit=selected.head,
        chance=chance,
        ranking=selected.ranking,
    )


def _challenge(run: Run, chance: np.random.Generator) -> None:
    """What is shown while packs are challenged, and what a slate says of it."""
    selected, pool = run.selected, run.pool
    head, count = selected.shown, len(pool.rows)
    ranks = np.empty(count, dtype=np.int64)
    ranks[selected.ranking.order] = np.arange(1, count + 1)
    design, draws, whose = selected.challenges[0].design, 0, 0
    if selected.opposed:
        heads = [
            pool.rows.searchsorted(one.rows[among(one.rows, pool.rows)]) for one in selected.opposed
        ]
        asked = [one.challenge for one in selected.opposed]
        places, drawn, propensity, draws, whose = draw_challenge(head, heads, count, asked, chance)
        sampler = "challenge" if asked[0].design == "extra" else asked[0].design
        run.shown = Shown(places, ranks, propensity, (), drawn, sampler)
    else:
        sure = np.zeros(count)
        sure[head] = 1.0
        run.shown = Shown(head, ranks, sure, (), head[:0], "deterministic")
    run.challenge = describe_challenge(selected.opposed, design, draws, whose, pool.rows[head])


STAGES.declare(
    (
        Stage(
            "find",
            "Find the nearest vectors and the best matches of words.",
            ("question",),
            ("found",),
            find,
        ),
        Stage("admit", "Keep what is eligible.", ("found",), ("direct",), admit),
        Stage("seed", "Score what was found, before spreading.", ("direct",), ("seeds",), seed),
        Stage(
            "spread",
            "Carry activation over edges.",
            ("direct", "seeds"),
            ("reached",),
            spread_activation,
        ),
        Stage("cut", "Keep the best, as many as the pool holds.", ("reached",), ("pool",), cut),
        Stage("score", "Score the pool.", ("pool",), ("scores",), score),
        Stage(
            "known",
            "Estimate whether anything of the pool answers.",
            ("pool", "scores"),
            ("known",),
            estimate_known,
        ),
        Stage(
            "select",
            "Decide what may be shown, and what surely is.",
            ("scores", "known"),
            ("selected",),
            select,
        ),
        Stage(
            "explore",
            "Draw what chance adds to that.",
            ("selected",),
            ("shown", "challenge"),
            explore,
        ),
        Stage("log", "Make the slate.", ("selected", "shown", "challenge"), ("slate",), log),
    )
)


class Recaller:
    """Recalls from states that share an embedder; keeps the plans of packs and the populations of recent filters."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._plans = Plans(embedder.fingerprint)
        self._populations = Populations()
        self._speakers: WeakKeyDictionary[State, SpeakerNames] = WeakKeyDictionary()
        self._triggers = Triggers()
        self._entities = EntityNames(embedder)
        self._word_vectors = WordVectors()

    def recall(
        self,
        state: State,
        pack: Pack,
        question: Question,
        *,
        limit: int,
        seed: int | None = None,
        challenges: Sequence[Challenge] = (),
        selection: Selection | None = None,
    ) -> Slate:
        """The slate of a question; nothing is written. With a ``seed``, the pack's probes are drawn too, or what its
        challengers would show in their place. With a ``selection``, that says what is shown, and how many.
        """
        run = self._begun(state, pack, question)
        run.limit, run.seed, run.challenges, run.selection = limit, seed, challenges, selection
        if challenges:
            run.rival = lambda other: self._begun(state, other, question)
        with np.errstate(all="ignore"):  # once for all policies
            for stage in run.plan.stages:
                stage.run(run)
        return run.slate

    def encode(self, pack: Pack, slate: Slate) -> bytes:
        """The bytes of a slate that ``recall`` gave under this pack."""
        return bytes_of(self._plans.of(pack), slate)

    def population(self, state: State, question: Question) -> Population:
        """The memories that may answer a question."""
        return self._populations.get(
            state, project=question.project, session=question.session, filters=question.filters
        )

    def _begun(self, state: State, pack: Pack, question: Question) -> Run:
        """A recall before its first stage."""
        plan = self._plans.of(pack)
        speakers = self._speakers.get(state) or self._speakers.setdefault(state, SpeakerNames())
        population = self._populations.get(
            state, project=question.project, session=question.session, filters=question.filters
        )
        asked = QuestionFeatures(
            state,
            pack,
            self._embedder,
            question,
            population,
            speakers,
            self._triggers,
            self._word_vectors,
        )
        about, spreading = NO_ENTITIES, plan.spread
        if spreading.entities:
            about = self._entities.about(asked, spreading.entities, spreading.entity_floor)
        return Run(plan, state, question, asked, plan.show.limit, about)
