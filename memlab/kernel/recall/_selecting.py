"""The stages that decide what is shown: score, known, select, explore.

One selector serves the best of a pool, what a context or a session leaves out, probes and challenges: it gives the
order in which candidates may be shown, and how many of the first are shown with certainty. Chance then adds to those.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memlab.errors import ExtensionError, PolicyError
from memlab.kernel.base.arguments import warn_caller
from memlab.kernel.index import among
from memlab.kernel.policies import Challenge, same_candidates
from memlab.kernel.recall._by_policy import rank_by_policy
from memlab.kernel.recall._challenge import Opposed, draw_challenge, logged
from memlab.kernel.recall._diversity import Ranking, rank_all
from memlab.kernel.recall._explore import Shown, chance_of, choose
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._finding import admitted_rows, scores_of
from memlab.kernel.recall._reading import Column
from memlab.kernel.recall._run import Run
from memlab.kernel.recall._selected import Selected, Selection
from memlab.kernel.state import Seen

__all__ = ["estimate_known", "explore", "score", "select"]

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


# -- score and known --------------------------------------------------------------------------------------------------


def score(run: Run) -> None:
    """What each candidate is worth, by the slot ``recall-score``."""
    run.scores = scores_of("recall-score", run.pool)


def estimate_known(run: Run) -> None:
    """The probability that something of the pool answers.

    None where the pack does not say, or has another recall-score than its ``known`` was calibrated for.
    """
    run.known = _known(run)


def _known(run: Run) -> float | None:
    policy, pool, scores = run.plan.pack.policies["known"], run.pool, run.scores
    if not run.plan.show.tells_known:
        return None
    if not len(pool):
        return 0.0 if policy.inputs else None
    scored = np.isfinite(scores)
    given: Column = scores if scored.all() else (np.where(scored, scores, 0.0), ~scored)
    values, nulls = pool.ask(policy, given={"score": lambda: given})
    unknown = np.isnan(values)
    if nulls is not None:
        unknown |= nulls
    said = values[~unknown]
    return min(max(float(said.max()), 0.0), 1.0) if len(said) else None


# -- select -----------------------------------------------------------------------------------------------------------


def select(run: Run) -> None:
    """The order in which candidates may be shown, and how many of the first are."""
    limit, wanted = _limits(run)
    ranking = _ranked(run, limit)
    challenges = () if run.seed is None else tuple(one for one in run.challenges if one.pack.hash != run.plan.pack.hash)
    selected = Selected(ranking, limit, limit, wanted, challenges)
    if challenges:
        selected = _opposed(run, selected)
    if run.selection is not None:
        selected = _narrowed(run, run.selection, selected)
    run.selected = selected


def _limits(run: Run) -> tuple[int, int | None]:
    """How many are shown, and how many were asked for where that is fewer because nothing seems to answer."""
    show = run.plan.show
    abstains = run.selection is None or run.selection.abstains
    if abstains and run.known is not None and run.known < show.known_floor:
        return min(run.limit, show.unknown_limit), run.limit
    return run.limit, None


def _ranked(run: Run, limit: int) -> Ranking:
    pool = run.pool
    if run.plan.show.selects:
        return rank_by_policy(
            run.plan.pack.policies["select"],
            pool,
            run.scores,
            depth=limit + run.plan.show.probe_depth,
            closeness=run.asked.embedder.scale,
        )
    return rank_all(
        run.plan.pack,
        run.scores,
        lambda: run.state.vectors.take(pool.rows),
        depth=limit + run.plan.show.probe_depth,
        closeness=run.asked.embedder.scale,
    )


def _narrowed(run: Run, selection: Selection, selected: Selected) -> Selected:
    """What a selection made of the pool stands first; of challengers' heads, what it lets be shown."""
    chosen = selection.choose(run.pool, run.scores, selected.ranking, beside=_most_by_chance(run, selected.challenges))
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
        [Opposed(one.challenge, _within(one.rows, first, open_to_all, limit)) for one in selected.opposed],
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
            warn_caller(f"The challenger {challenge.pack.name} was left out of this recall. {error}")
    ranking = _joined(run, selected.ranking, opposed)
    return Selected(ranking, selected.head, selected.limit, selected.wanted, selected.challenges, opposed)


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
    found.give(**{name: np.concatenate([pool[name], values])[order] for name, values in given.items()})
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
    selected, chance = run.selected, _chance(run)
    if selected.challenges and chance is not None:
        _challenge(run, chance)
        return
    run.challenge = None
    run.shown = choose(
        run.plan.pack, run.pool, run.scores, limit=selected.head, chance=chance, ranking=selected.ranking
    )


def _chance(run: Run) -> np.random.Generator | None:
    if run.seed is None:
        return None
    # what others do in private moves no probe
    happened = len(run.state.visible) if isinstance(run.state, Seen) else run.state.seq
    return chance_of(run.seed, happened)


def _challenge(run: Run, chance: np.random.Generator) -> None:
    """What is shown while packs are challenged, and what a slate says of it."""
    selected, pool = run.selected, run.pool
    head, count = selected.shown, len(pool.rows)
    ranks = np.empty(count, dtype=np.int64)
    ranks[selected.ranking.order] = np.arange(1, count + 1)
    design, draws, whose = selected.challenges[0].design, 0, 0
    if selected.opposed:
        heads = [pool.rows.searchsorted(one.rows[among(one.rows, pool.rows)]) for one in selected.opposed]
        asked = [one.challenge for one in selected.opposed]
        places, drawn, propensity, draws, whose = draw_challenge(head, heads, count, asked, chance)
        sampler = "challenge" if asked[0].design == "extra" else asked[0].design
        run.shown = Shown(places, ranks, propensity, (), drawn, sampler)
    else:
        sure = np.zeros(count)
        sure[head] = 1.0
        run.shown = Shown(head, ranks, sure, (), head[:0], "deterministic")
    run.challenge = logged(selected.opposed, design, draws, whose, pool.rows[head])
