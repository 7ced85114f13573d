"""The stages from a query to a slate.

    query -> filters -> find -> admit -> seed -> spread -> cut -> score -> known -> select -> explore -> log -> slate

Python searches candidates, spreads activation over edges and sorts. The policies of the pack decide which memories are
eligible, how they are scored, and how much activation an edge passes on. ``_plan.py`` compiles each pack once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from memlab.errors import ExtensionError, PolicyError
from memlab.kernel.base.arguments import warn_caller
from memlab.kernel.base.arrays import NO_ROWS, Flags, Rows, Scores
from memlab.kernel.embedding import Embedder
from memlab.kernel.graph import EdgeBatch, spread
from memlab.kernel.index import best, is_in_sorted
from memlab.kernel.language import Coded
from memlab.kernel.policies import Challenge, Pack, same_candidates
from memlab.kernel.recall._ending import is_expired
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._mentions import Triggers
from memlab.kernel.recall._moment import Column, reading_of
from memlab.kernel.recall._plan import Plans, Reached, Run
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
    ChallengeDraw,
    ChallengerResults,
    Ranking,
    Selected,
    Selection,
    Shown,
    chance_of,
    choose,
    describe_challenge,
    draw_challenge,
    maximum_draws,
    rank_all,
    rank_by_policy,
    rank_by_score,
)
from memlab.kernel.recall._slating import bytes_of, log
from memlab.kernel.recall._stages import STAGES, Stage
from memlab.kernel.slates import Slate
from memlab.kernel.state import State, ViewerState

# The stages that build the pool: find, admit, seed, spread, cut.


# -- find -------------------------------------------------------------------------------------------------------------


def find(run: Run) -> None:
    """Find candidates by nearest vectors, word matches and triggers."""
    if len(run.about.nodes) and run.plan.spread.entities_first:
        run.found = NO_ROWS
        return
    run.found = _search_rows(run)
    if not run.plan.ending.possible(run.state):
        return
    # Search again without expired memories, so that they take no rank from others.
    if is_expired(Candidates(run.state, run.plan.pack, run.query, run.found)).any():
        run.found = _search_rows(
            run,
            lambda rows: rows[~is_expired(Candidates(run.state, run.plan.pack, run.query, rows))],
        )


def _search_rows(run: Run, filter_rows: Callable[[Rows], Rows] | None = None) -> Rows:
    """Return the rows that any of the searches finds, ascending.

    With ``filter_rows``, each search continues until enough rows pass it.
    """
    plan, query = run.plan.find, run.query
    parts = []
    if plan.dense and len(query.population.rows):
        nearest = query.nearest
        parts.append(
            nearest(plan.dense)
            if filter_rows is None
            else _search_passing(nearest, plan.dense, filter_rows)
        )
    if plan.lexical:
        matching = query.matches.best
        parts.append(
            matching(plan.lexical)
            if filter_rows is None
            else _search_passing(matching, plan.lexical, filter_rows)
        )
    if plan.triggers:
        triggered = query.triggered
        parts.append(triggered if filter_rows is None else filter_rows(triggered))
    if not parts:
        return NO_ROWS
    rows = np.concatenate(parts)
    rows.sort()
    is_first = np.empty(len(rows), dtype=np.bool_)
    is_first[:1] = True
    np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
    return rows[is_first]


def _search_passing(
    search: Callable[[int], Rows], count: int, filter_rows: Callable[[Rows], Rows]
) -> Rows:
    """Return the ``count`` best rows of a search that pass ``filter_rows``.

    The search is repeated with four times the count until enough rows pass or none are left.
    """
    rows, wide = search(count), count
    while True:
        passing = rows[is_in_sorted(rows, filter_rows(np.sort(rows)))]
        if len(passing) >= count or len(rows) < wide:
            return passing[:count]
        wide *= 4
        rows = search(wide)


# -- admit and seed ---------------------------------------------------------------------------------------------------


def admit(run: Run) -> None:
    """Keep the candidates that the slot ``eligible`` admits."""
    rows, by_hops = run.found, run.plan.eligible
    if by_hops is not None and not by_hops[0]:
        rows = rows[:0]
    run.direct = Candidates(run.state, run.plan.pack, run.query, rows)
    if by_hops is None:
        keep = _are_eligible(run.direct)
        if not keep.all():
            run.direct = Candidates(run.state, run.plan.pack, run.query, rows[keep])


def seed(run: Run) -> None:
    """Score the direct candidates with the slot ``seed-score``."""
    run.seeds = scores_of("seed-score", run.direct) if len(run.found) else np.empty(0)


def admitted_rows(run: Run, rows: Rows, *, hops: int) -> Rows:
    """Return the rows that are eligible and not expired.

    No search found these rows, so ``eligible`` reads ``hops`` as their distance.
    """
    if not len(rows):
        return rows
    candidates = Candidates(run.state, run.plan.pack, run.query, rows)
    candidates.give(hops=np.full(len(rows), float(hops)))
    return rows[_are_eligible(candidates) & ~_have_expired(run, candidates)]


def _are_eligible(pool: Candidates) -> Flags:
    """Return a mask of the candidates that the slot ``eligible`` admits."""
    values, nulls = pool.ask(pool.pack.policies["eligible"])
    return np.asarray(values if nulls is None else values & ~nulls, dtype=np.bool_)


def _have_expired(run: Run, pool: Candidates) -> Flags:
    """Return a mask of the candidates that ``promote`` or ``forget`` would remove from recall."""
    if not run.plan.ending.possible(run.state):
        return np.zeros(len(pool), dtype=np.bool_)
    return is_expired(pool)


def scores_of(slot: str, pool: Candidates, pack: Pack | None = None) -> Scores:
    """Score each candidate with a slot's policy, by default from the pool's pack.

    NaN and null become -inf, so that they sort last.
    """
    values, nulls = pool.ask((pack or pool.pack).policies[slot])
    bad = np.isnan(values)
    if nulls is not None:
        bad |= nulls
    return np.where(bad, -np.inf, values) if bad.any() else values


# -- spread -----------------------------------------------------------------------------------------------------------


def spread_activation(run: Run) -> None:
    """Spread activation over edges from seeds and entities."""
    plan = run.plan.spread
    begins = len(run.about.nodes) or (len(run.direct.rows) and plan.seeds)
    if begins and plan.steps:
        run.reached = _spread(run)
        return
    own = np.where(np.isfinite(run.seeds), run.seeds, 0.0)
    nothing = np.zeros(len(own))
    run.reached = Reached(run.direct.rows, own, nothing, own, nothing)


def _spread(run: Run) -> Reached:
    """Return the direct candidates and the eligible memories that activation reaches from seeds and entities."""
    plan, direct, values, about = run.plan.spread, run.direct, run.seeds, run.about
    # Activation starts at the best candidates, in ascending order of rows.
    order = (
        np.arange(len(values)) if len(values) <= plan.seeds else np.sort(best(values, plan.seeds))
    )
    order = order[np.isfinite(values[order])]
    if len(about.nodes):
        # A seed without activation would block what an entity sends to it.
        order = order[values[order] > 0]
    wave = spread(
        run.state.edges,
        np.concatenate((direct.rows[order], about.nodes)),
        np.concatenate((values[order], about.nearness)),
        _make_edge_function(run),
        steps=plan.steps,
        threshold=plan.threshold,
        mode=plan.mode,
        damping=min(plan.damping, 0.999),
        fan_out=plan.fan_out,
        nodes=run.state.nodes,
        validated=not len(about.nodes),
    ).of_kind("memory")
    # If every candidate is a seed, the wave contains all of them.
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
    return _remove_ineligible(run, reached)


def _make_edge_function(run: Run) -> Callable[[EdgeBatch], Scores]:
    """Return a function that computes how much activation each edge passes on.

    The function evaluates the slot ``spread``. A memory that takes no part in the recall receives
    nothing.
    """
    damping = run.plan.spread.damping
    program = reading_of(run.plan.pack.policies["spread"]).program
    mask, relations = run.query.population.mask, tuple(run.state.edges.relations)
    codes = _index_relations(relations)

    def passed_over(batch: EdgeBatch) -> Scores:
        """Return the activation that each edge of a wave passes on."""
        count = len(batch.edge)
        inputs: dict[str, Any] = {
            "activation": batch.activation,
            "weight": batch.weight,
            "outgoing": batch.outgoing,
            "depth": float(batch.depth),
            "damping": damping,
            "relation": Coded(batch.relation, relations, codes),
        }
        columns = [inputs[name] for name in program.reads]
        ready = [
            (np.full(count, column) if type(column) is float else column, None)
            for column in columns
        ]
        values, nulls = program.compute(ready, count, order=batch.edge, quiet=True)
        activation = (
            np.array(values, dtype=np.float64) if nulls is None else np.where(nulls, 0.0, values)
        )
        if mask is not None:
            # Nodes of tags, clusters and entities pass activation on; excluded memories do not.
            barred = batch.target < len(mask)
            barred[barred] = ~mask[batch.target[barred]]
            activation[barred] = 0.0
        return np.asarray(activation)

    return passed_over


# The relations of a state seldom change, and a policy needs their codes at every step.
@lru_cache(maxsize=64)
def _index_relations(relations: tuple[str, ...]) -> Mapping[str, int]:
    """Return the code of each relation, by name."""
    return {name: code for code, name in enumerate(relations)}


def _remove_ineligible(run: Run, reached: Reached) -> Reached:
    """Return the reached rows without those ineligible or expired ones that only spreading reached."""
    away = reached.hops > 0
    if not away.any():
        return reached
    others = Candidates(run.state, run.plan.pack, run.query, reached.rows[away])
    others.give(hops=reached.hops[away])
    eligible = _are_eligible(others) & ~_have_expired(run, others)
    if eligible.all():
        return reached
    keep = ~away
    keep[away] = eligible
    rows, *columns = reached
    return Reached(rows[keep], *(column[keep] for column in columns))


# -- cut --------------------------------------------------------------------------------------------------------------


def cut(run: Run) -> None:
    """Keep the candidates with the best scores from the slot ``cut``.

    Memories that the run's selection requests are kept too.
    """
    reached = Candidates(run.state, run.plan.pack, run.query, run.reached.rows)
    reached.give(**dict(zip(Reached._fields[1:], run.reached[1:], strict=True)))
    # Rows ascend, so a tie by position is a tie by id.
    positions = best(scores_of("cut", reached), run.plan.find.pool)
    positions.sort()
    run.pool = reached.select(positions)
    if run.selection is not None:
        run.pool = _add_requested(run, run.selection.requested_rows(run.query))


def _add_requested(run: Run, requested: Rows) -> Candidates:
    """Return the candidate pool, extended by the admitted rows among those that a context or session requests."""
    pool = run.pool
    rows = admitted_rows(run, requested[~is_in_sorted(requested, pool.rows)], hops=1)
    if not len(rows):
        return pool
    candidates = Candidates(run.state, run.plan.pack, run.query, np.union1d(pool.rows, rows))
    # Score all candidates: a policy may scale values by the minimum and maximum of the pool.
    seed_scores = scores_of("seed-score", candidates)
    is_added = is_in_sorted(candidates.rows, rows)
    seeds = np.where(is_added & np.isfinite(seed_scores), seed_scores, 0.0)
    features = {
        "seed": seeds,
        "received": np.zeros(len(is_added)),
        "activation": seeds,
        "hops": is_added,
    }
    for name, values in features.items():
        column = values.astype(np.float64)
        column[~is_added] = pool[name]
        candidates.give(**{name: column})
    return candidates


# The stages that decide what is shown: score, known, select, explore.
#
# One selector serves the top-k of a pool, a selection for a context or a session, probes and challenges. It gives the
# order in which candidates may be shown, and how many of the first are certain. Exploration may then add items.


# -- score and known --------------------------------------------------------------------------------------------------


def score(run: Run) -> None:
    """Score each candidate with the slot ``recall-score``."""
    run.scores = scores_of("recall-score", run.pool)


def estimate_known(run: Run) -> None:
    """Estimate the probability that the pool has an answer, with the slot ``known``.

    The estimate is None if the pack has no estimate, or if ``known`` was calibrated for another ranking. Only here and in
    `select` does it decide anything: without an estimate, no result is hidden.
    """
    policy, pool, scores = run.plan.pack.policies["known"], run.pool, run.scores
    run.known = None
    if not run.plan.show.tells_known:
        return
    if not len(pool.rows):
        run.known = 0.0 if policy.inputs else None
        return
    scored = np.isfinite(scores)
    score_input: Column = scores if scored.all() else (np.where(scored, scores, 0.0), ~scored)
    values, nulls = pool.ask(policy, inputs={"score": lambda: score_input})
    unknown = np.isnan(values)
    if nulls is not None:
        unknown |= nulls
    estimates = values[~unknown]
    if len(estimates):
        run.known = min(max(float(estimates.max()), 0.0), 1.0)


# -- select -----------------------------------------------------------------------------------------------------------


def select(run: Run) -> None:
    """Order the candidates and decide how many top candidates are shown with certainty."""
    show, limit, wanted = run.plan.show, run.limit, None
    abstains = run.selection is None or run.selection.abstains
    if abstains and run.known is not None and run.known < show.known_floor:
        limit, wanted = min(limit, show.unknown_limit), limit
    ranking = _rank_pool(run, limit)
    challenges: tuple[Challenge, ...] = ()
    if run.seed is not None and run.challenges:
        challenges = tuple(
            [challenge for challenge in run.challenges if challenge.pack.hash != run.plan.pack.hash]
        )
    selected = Selected(ranking, limit, limit, wanted, challenges)
    if challenges:
        selected = _add_challengers(run, selected)
    if run.selection is not None:
        selected = _apply_selection(run, run.selection, selected)
    run.selected = selected


def _rank_pool(run: Run, limit: int) -> Ranking:
    """Return the order of a pool by ``select``, by diversity, or by score."""
    show, pool, scores, scale = run.plan.show, run.pool, run.scores, run.query.embedder.scale
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


def _apply_selection(run: Run, selection: Selection, selected: Selected) -> Selected:
    """Return the selection, reordered and limited as the caller's context or session requires.

    The items that the selection requires come first. The results of challengers are limited to
    candidates that the selection allows.
    """
    chosen = selection.choose(
        run.pool,
        run.scores,
        selected.ranking,
        extra=_maximum_exploration(run, selected.challenges),
        probability=run.known,
    )
    limit = chosen.limit if selected.wanted is None else min(chosen.limit, selected.limit)
    ranking = selected.ranking
    front = np.concatenate([chosen.first, chosen.ranked])
    # masks by position: np.isin would sort each array
    is_front, is_showable = np.zeros((2, len(run.pool.rows)), dtype=np.bool_)
    is_front[front], is_showable[ranking.order[: ranking.showable]] = True, True
    rest, showable = ranking.order[~is_front[ranking.order]], is_showable[chosen.ranked]
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
            ChallengerResults(
                results.challenge, _limit_results(results.rows, first, open_to_all, limit)
            )
            for results in selected.challengers
        ],
    )


def _limit_results(rows: Rows, first: Rows, open_to_all: Rows, limit: int) -> Rows:
    """Return the required rows ``first``, then at most ``limit`` of ``rows`` that ``open_to_all`` contains."""
    return np.concatenate([first, rows[is_in_sorted(rows, open_to_all)][:limit]])


def _maximum_exploration(run: Run, challenges: Sequence[Challenge]) -> int:
    """Return the maximum number of exploration items that this recall may add."""
    if run.seed is None:
        return 0
    if challenges:
        is_adding = challenges[0].design in ("extra", "draft")
        return maximum_draws(challenges, run.limit) if is_adding else 0
    return run.plan.show.probes if run.explores and run.plan.show.probe_rate else 0


# -- challengers ------------------------------------------------------------------------------------------------------


def _add_challengers(run: Run, selected: Selected) -> Selected:
    """Return the selection with the results of each challenger pack, and add these results to the pool.

    A challenger whose policy or extension fails is left out with a warning.
    """
    opposed = []
    for challenge in selected.challenges:
        try:
            opposed.append(_rank_challenger(run, challenge, selected.limit))
        except (PolicyError, ExtensionError) as error:
            warn_caller(
                f"The challenger {challenge.pack.name} was left out of this recall. {error}"
            )
    ranking = _add_to_pool(run, selected.ranking, opposed)
    return Selected(
        ranking, selected.certain, selected.limit, selected.wanted, selected.challenges, opposed
    )


def _rank_challenger(run: Run, challenge: Challenge, limit: int) -> ChallengerResults:
    """Rank the candidates under the pack of a challenger, and return its results."""
    assert run.rival is not None
    rival = run.rival(challenge.pack)
    # If the caller left the limit to the pack, each pack uses its own.
    maximum = rival.plan.show.limit if limit == run.plan.show.limit else limit
    if same_candidates(run.plan.pack, challenge.pack):
        rival.pool = run.pool
        rival.scores = scores_of("recall-score", run.pool, challenge.pack)
    else:
        rival.run_stages(rival.plan.stages_through("score"))
    ranking = _rank_pool(rival, maximum)
    return ChallengerResults(
        challenge, rival.pool.rows[ranking.order[: ranking.showable][:maximum]]
    )


def _add_to_pool(run: Run, ranking: Ranking, opposed: Sequence[ChallengerResults]) -> Ranking:
    """Add admissible results of challengers to the pool.

    The added candidates are ranked last and scored -inf. Returns the ranking with the positions of
    the larger pool.
    """
    pool = run.pool
    rows = np.unique(np.concatenate([results.rows for results in opposed] or [pool.rows[:0]]))
    rows = admitted_rows(run, rows[~is_in_sorted(rows, pool.rows)], hops=0)
    if not len(rows):
        return ranking
    candidates = Candidates(run.state, run.plan.pack, run.query, rows)
    seeds = scores_of("seed-score", candidates)
    seeds = np.where(np.isfinite(seeds), seeds, 0.0)
    union = np.concatenate([pool.rows, rows])
    order = np.argsort(union, kind="stable")
    joined_pool = Candidates(run.state, run.plan.pack, run.query, union[order])
    zeros = np.zeros(len(rows))
    features = {"seed": seeds, "received": zeros, "activation": seeds, "hops": zeros}
    joined_pool.give(
        **{name: np.concatenate([pool[name], values])[order] for name, values in features.items()}
    )
    positions = np.empty(len(union), dtype=np.int64)
    positions[order] = np.arange(len(union))
    run.pool = joined_pool
    run.scores = np.concatenate([run.scores, np.full(len(rows), -np.inf)])[order]
    return Ranking(
        positions[np.concatenate([ranking.order, np.arange(len(pool.rows), len(union))])],
        ranking.showable,
        {
            int(positions[row]): positions[duplicates].tolist()
            for row, duplicates in ranking.duplicates.items()
        },
    )


# -- explore ----------------------------------------------------------------------------------------------------------


def explore(run: Run) -> None:
    """Choose the shown items, drawing exploration items and their probabilities."""
    selected, chance, state = run.selected, None, run.state
    if run.seed is not None:
        # Count visible memories for a viewer, so that private writes of others do not change the draw.
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
        limit=selected.certain,
        chance=chance if run.explores else None,
        ranking=selected.ranking,
        within=run.explores == "within",
    )


def _challenge(run: Run, chance: np.random.Generator) -> None:
    """Draw the shown items from the results of the active and the challenger packs.

    The draw is described for the slate.
    """
    selected, pool = run.selected, run.pool
    certain, count = selected.certain_positions, len(pool.rows)
    ranks = np.empty(count, dtype=np.int64)
    ranks[selected.ranking.order] = np.arange(1, count + 1)
    design: str = selected.challenges[0].design
    sampler = "deterministic"
    if selected.challengers:
        results = [
            pool.rows.searchsorted(challenger.rows[is_in_sorted(challenger.rows, pool.rows)])
            for challenger in selected.challengers
        ]
        challenges = [challenger.challenge for challenger in selected.challengers]
        draw = draw_challenge(certain, results, count, challenges, chance)
        sampler = "challenge" if design == "extra" else design
        if not challenges[0].rate:  # A guard in shadow never draws.
            design, sampler = "shadow", "deterministic"
    else:
        propensity = np.zeros(count)
        propensity[certain] = 1.0
        draw = ChallengeDraw(certain, certain[:0], propensity, 0)
    run.shown = Shown(draw.results, ranks, draw.propensity, (), draw.drawn, sampler)
    run.challenge = describe_challenge(
        selected.challengers, design, draw, pool.rows[certain], pool.rows
    )


STAGES.declare(
    (
        Stage(
            "find",
            "Search the nearest vectors, the best matches of words, and triggers.",
            ("question",),
            ("found",),
            find,
        ),
        Stage("admit", "Keep eligible memories.", ("found",), ("direct",), admit),
        Stage("seed", "Score the candidates before spreading.", ("direct",), ("seeds",), seed),
        Stage(
            "spread",
            "Spread activation over edges.",
            ("direct", "seeds"),
            ("reached",),
            spread_activation,
        ),
        Stage("cut", "Keep the best candidates as the pool.", ("reached",), ("pool",), cut),
        Stage("score", "Score the pool.", ("pool",), ("scores",), score),
        Stage(
            "known",
            "Estimate whether the pool contains an answer.",
            ("pool", "scores"),
            ("known",),
            estimate_known,
        ),
        Stage(
            "select",
            "Order the candidates and decide how many are certain.",
            ("scores", "known"),
            ("selected",),
            select,
        ),
        Stage(
            "explore",
            "Draw exploration items.",
            ("selected",),
            ("shown", "challenge"),
            explore,
        ),
        Stage("log", "Build the slate.", ("selected", "shown", "challenge"), ("slate",), log),
    )
)


class Recaller:
    """The executor of recalls on states that share an embedder.

    A recaller caches plans, populations and names.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder.plain
        self._plans = Plans()
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
        explores: bool | Literal["within"] = True,
        challenges: Sequence[Challenge] = (),
        selection: Selection | None = None,
    ) -> Slate:
        """Return the slate of a query without writing to the lab.

        With ``seed``, exploration items are drawn: those of ``challenges``, or else the pack's own probes if the recall
        ``explores``, next to the results or ``within`` their number. A ``selection`` decides which candidates may be shown
        and how many.
        """
        run = self._begin_run(state, pack, question)
        run.limit, run.challenges, run.selection = limit, challenges, selection
        run.seed, run.explores = seed, explores
        if challenges:
            run.rival = lambda other: self._begin_run(state, other, question)
        # The error state is set once for all policies, because each setting costs about a
        # microsecond.
        with np.errstate(all="ignore"):
            for stage in run.plan.stages:
                stage.run(run)
        return run.slate

    def encode(self, pack: Pack, slate: Slate) -> bytes:
        """Return the encoded slate of a recall under ``pack``."""
        return bytes_of(self._plans.get(pack, slate.fingerprints["embedder"]), slate)

    def population(self, state: State, question: Question) -> Population:
        """Return the memories that may take part in the recall of a query."""
        return self._populations.get(
            state, project=question.project, session=question.session, filters=question.filters
        )

    def _begin_run(self, state: State, pack: Pack, question: Question) -> Run:
        """Prepare the run of a recall: plan, eligible population and query features."""
        embedder = self._embedder if state.scale is None else self._embedder.scaled(state.scale)
        plan = self._plans.get(pack, embedder.scoring)
        speakers = self._speakers.get(state) or self._speakers.setdefault(state, SpeakerNames())
        population = self._populations.get(
            state, project=question.project, session=question.session, filters=question.filters
        )
        query = QuestionFeatures(
            state,
            pack,
            embedder,
            question,
            population,
            speakers,
            self._triggers,
            self._word_vectors,
        )
        about, spreading = NO_ENTITIES, plan.spread
        if spreading.entities:
            about = self._entities.about(query, spreading.entities, spreading.entity_floor)
        return Run(plan, state, question, query, plan.show.limit, about)
