"""The road from a question to a slate.

    question -> filters -> candidates -> eligible -> seed-score -> spread -> cut -> features -> recall-score
             -> known -> diversity -> top -> slate

Python finds candidates, carries activation over edges and sorts; what is eligible, what a candidate is worth, and
what passes over an edge are the pack's policies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from memlab.embedding import Embedder
from memlab.errors import ExtensionError, PolicyError
from memlab.graph import SPREAD_MODES, EdgeBatch, spread
from memlab.index import among, best
from memlab.language import Policy
from memlab.policies import FEATURES, Challenge, Pack, same_candidates
from memlab.recall._challenge import Opposed, draw_challenge
from memlab.recall._challenge import logged as logged_challenge
from memlab.recall._diversity import Ranking, rank_all
from memlab.recall._entities import NO_ENTITIES, About, EntityNames
from memlab.recall._explore import Shown, choose, generator
from memlab.recall._features import Candidates, Column, columns, read
from memlab.recall._late import WordVectors
from memlab.recall._population import Population, Populations
from memlab.recall._question import Question, QuestionFeatures, SpeakerNames
from memlab.recall._standing import is_over
from memlab.recall._triggers import Triggers
from memlab.slates import Slate
from memlab.state import Seen, State

__all__ = ["Chosen", "Recaller", "Selection"]

_RANKING = ("recall-score", "explore")

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]

_OF_EDGES: dict[str, Callable[[EdgeBatch, float], NDArray[Any]]] = {
    "activation": lambda batch, damping: batch.activation,
    "weight": lambda batch, damping: batch.weight,
    "depth": lambda batch, damping: np.full(len(batch.weight), float(batch.depth)),
    "damping": lambda batch, damping: np.full(len(batch.weight), damping),
    "outgoing": lambda batch, damping: batch.outgoing,
}
"""What a policy of spreading reads of the edges crossed, and of the pack's damping."""


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

    def choose(self, pool: Candidates, scores: Scores, ranking: Ranking, *, beside: int) -> Chosen:
        """What may be shown; at most ``beside`` more are shown to learn of them."""


class Recaller:
    """Recalls from states that share an embedder; keeps the populations of recent filters."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._populations = Populations()
        self._speakers: WeakKeyDictionary[State, SpeakerNames] = WeakKeyDictionary()
        self._triggers = Triggers()
        self._entities = EntityNames(embedder)
        self._word_vectors = WordVectors()
        self._known: tuple[tuple[str, int], _Declared] | None = None

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
        asked, pool = self._asked_and_pool(state, pack, question)
        if selection is not None:
            pool = _with_named(state, pack, asked, pool, selection.named(asked))
        scores = _scores(pack, "recall-score", pool)
        known = _known(pack, pool, scores)
        wanted = None
        if (selection is None or selection.abstains) and known is not None and known < pack.number("known-floor"):
            wanted, limit = limit, min(limit, pack.count("unknown-limit"))
        # what others do in private moves no probe
        happened = len(state.visible) if isinstance(state, Seen) else state.seq
        chance = None if seed is None else generator(seed, happened)
        ranking = self._ranked(state, pack, pool, scores, limit)
        against = [] if chance is None else [one for one in challenges if one.pack.hash != pack.hash]
        opposed: list[Opposed] = []
        if against:
            opposed = self._oppose(state, pack, question, pool, against, limit)
            pool, scores, ranking = _with_heads(state, pack, asked, pool, scores, ranking, opposed)
        shows = limit
        if selection is not None:
            by_chance = 0 if chance is None else _most_by_chance(pack, against)
            chosen = selection.choose(pool, scores, ranking, beside=by_chance)
            if wanted is not None:
                chosen = replace(chosen, limit=min(chosen.limit, limit))
            limit, shows = max(chosen.limit, 1), len(chosen.first) + chosen.limit
            ranking, opposed = _selected(chosen, pool, ranking, opposed)
        challenge = None
        if against and chance is not None:
            live = pool.rows[ranking.order[: ranking.showable][:shows]]
            shown, draws, whose = _challenged(pool, ranking, opposed, shows, chance)
            challenge = logged_challenge(opposed, against[0].design, draws, whose, live)
        else:
            shown = choose(pack, pool, scores, limit=shows, chance=chance, ranking=ranking)
        ids = pool.rows + 1
        declared = self._declared(pack)
        branches = question.filters.branch or ()
        return Slate(
            at=question.at,
            query=question.text,
            vector=asked.vector.tobytes(),
            limit=limit,
            project=question.project,
            pack=pack.name,
            pack_hash=pack.hash,
            policies=dict(declared.policies),
            settings=dict(pack.settings),
            fingerprints=dict(declared.fingerprints),
            state=state.seq,
            cut=f"{pack.settings['pool']} best by cut {pack.policies['cut'].hash[:12]}, ties by id",
            sampler=shown.sampler,
            ids=ids,
            scores=scores,
            numbers=_numbers(declared, pool),
            words=pool.words(declared.words),
            shown=tuple(ids[shown.places].tolist()),
            seed=None if shown.sampler == "deterministic" else seed,
            kappa=shown.kappa,
            ranks=shown.ranks,
            propensity=shown.propensity,
            conditional=shown.conditional,
            probes=tuple(ids[shown.probes].tolist()),
            session=question.session,
            branch=branches[0] if len(branches) == 1 else None,
            flags=declared.flags,
            filters=question.filters.logged(),
            challenge=challenge,
            known=known,
            wanted=wanted,
            also={
                int(ids[place]): _ids(ids, ranking.duplicates[place])
                for place in shown.places
                if place in ranking.duplicates
            },
        )

    def _asked_and_pool(self, state: State, pack: Pack, question: Question) -> tuple[QuestionFeatures, Candidates]:
        speakers = self._speakers.get(state) or self._speakers.setdefault(state, SpeakerNames())
        asked = QuestionFeatures(
            state,
            pack,
            self._embedder,
            question,
            self.population(state, question),
            speakers,
            self._triggers,
            self._word_vectors,
        )
        most = int(pack.settings["entity-seeds"])
        about = self._entities.about(asked, most, pack.number("entity-floor")) if most else NO_ENTITIES
        return asked, _pool(state, pack, asked, about)

    def _ranked(self, state: State, pack: Pack, pool: Candidates, scores: Scores, limit: int) -> Ranking:
        depth = limit + int(pack.settings["probe-depth"])
        return rank_all(
            pack, scores, lambda: state.vectors.take(pool.rows), depth=depth, closeness=self._embedder.scale
        )

    def _oppose(
        self,
        state: State,
        pack: Pack,
        question: Question,
        pool: Candidates,
        challenges: Sequence[Challenge],
        limit: int,
    ) -> list[Opposed]:
        """The head of each challenger: of the same candidates where only its order differs, else of its own."""
        found = []
        for one in challenges:
            other = one.pack
            # who asked for the pack's own number of items gets each pack's own
            most = int(other.settings["limit"]) if limit == int(pack.settings["limit"]) else limit
            try:
                theirs = pool if same_candidates(pack, other) else self._asked_and_pool(state, other, question)[1]
                scores = _scores(other, "recall-score", theirs)
            except (PolicyError, ExtensionError) as error:
                warnings.warn(f"The challenger {other.name} was left out of this recall. {error}", stacklevel=4)
                continue
            ranking = self._ranked(state, other, theirs, scores, most)
            found.append(Opposed(one, theirs.rows[ranking.order[: ranking.showable][:most]]))
        return found

    def population(self, state: State, question: Question) -> Population:
        """The memories that may answer a question."""
        return self._populations.get(
            state, project=question.project, session=question.session, filters=question.filters
        )

    def _declared(self, pack: Pack) -> _Declared:
        key = pack.hash, FEATURES.changes
        if self._known is None or self._known[0] != key:
            self._known = key, _declared(pack, self._embedder.fingerprint)
        return self._known[1]


@dataclass(frozen=True)
class _Declared:
    """What every slate under a pack says of it, and the tests of sets that its policies of ranking make."""

    policies: dict[str, str]
    fingerprints: dict[str, str]
    numeric: tuple[str, ...]
    words: tuple[str, ...]
    tests: dict[str, Policy]
    flags: tuple[str, ...]


def _declared(pack: Pack, embedder: str) -> _Declared:
    tests = {name: pack.policies[slot] for slot in _RANKING for name in pack.policies[slot].derived}
    read_by_some = {name for policy in pack.policies.values() for name in policy.inputs}
    left_out = {name for name, feature in FEATURES.items() if feature.on_demand or feature.owner} - read_by_some
    kept = {name: feature for name, feature in FEATURES.items() if name not in left_out}
    fingerprints = {name: hash for name, hash in pack.fingerprints(embedder).items() if name not in left_out}
    return _Declared(
        policies={slot: policy.hash for slot, policy in pack.policies.items()},
        fingerprints={"embedder": embedder, **fingerprints},
        numeric=tuple(name for name, feature in kept.items() if feature.type in ("num", "bool")),
        words=tuple(name for name, of in kept.items() if of.type == "str" and (of.on_demand or of.owner)),
        tests=tests,
        flags=tuple(name for name, feature in kept.items() if feature.type == "bool")
        + tuple(name for name, policy in tests.items() if policy.derived[name].type == "bool"),
    )


def _ids(ids: Rows, places: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(ids[place]) for place in places)


def _pool(state: State, pack: Pack, asked: QuestionFeatures, about: About) -> Candidates:
    """The candidates that are scored: found by the question or reached by spreading, and eligible."""
    if len(about.nodes) and pack.settings["anchors"] == "entities-first":
        nothing = np.empty(0, dtype=np.int64)
        rows, seed, received, activation, hops = _spread(
            state, pack, asked, Candidates(state, pack, asked, nothing), np.empty(0), about
        )
        return _cut(state, pack, asked, rows, seed=seed, received=received, activation=activation, hops=hops)
    found = _found(pack, asked)
    direct = Candidates(state, pack, asked, found)
    if is_over(direct).any():
        found = _found(pack, asked, standing=lambda rows: rows[~is_over(Candidates(state, pack, asked, rows))])
        direct = Candidates(state, pack, asked, found)
    keep = _eligible(pack, direct)
    if not keep.all():
        direct = Candidates(state, pack, asked, found[keep])
    seed = _scores(pack, "seed-score", direct)
    begins = len(about.nodes) or (len(direct.rows) and pack.settings["seeds"])
    if not begins or not pack.settings["spread-steps"]:
        rows, received, hops = direct.rows, np.zeros(len(seed)), np.zeros(len(seed))
        activation = np.where(np.isfinite(seed), seed, 0.0)
        seed = activation
    else:
        rows, seed, received, activation, hops = _spread(state, pack, asked, direct, seed, about)
    return _cut(state, pack, asked, rows, seed=seed, received=received, activation=activation, hops=hops)


def _cut(state: State, pack: Pack, asked: QuestionFeatures, rows: Rows, **features: Scores) -> Candidates:
    """The best candidates by the slot ``cut``, as many as the pool holds; ``features`` are those of spreading."""
    reached = Candidates(state, pack, asked, rows)
    reached.give(**features)
    # Rows ascend, so ties by position are ties by id.
    kept = best(_scores(pack, "cut", reached), int(pack.settings["pool"]))
    kept.sort()
    return reached.among(kept)


def _with_heads(
    state: State,
    pack: Pack,
    asked: QuestionFeatures,
    pool: Candidates,
    scores: Scores,
    ranking: Ranking,
    opposed: Sequence[Opposed],
) -> tuple[Candidates, Scores, Ranking]:
    """The pool and what challengers would show beside it, as far as the live pack may show it: last, without score."""
    rows = np.unique(np.concatenate([one.rows for one in opposed] or [pool.rows[:0]]))
    rows = rows[~among(rows, pool.rows)]
    beside = Candidates(state, pack, asked, rows)
    if len(rows) and not (allowed := _eligible(pack, beside) & ~is_over(beside)).all():
        rows = rows[allowed]
        beside = Candidates(state, pack, asked, rows)
    if not len(rows):
        return pool, scores, ranking
    own = _scores(pack, "seed-score", beside)
    own = np.where(np.isfinite(own), own, 0.0)
    union = np.concatenate([pool.rows, rows])
    order = np.argsort(union, kind="stable")
    found = Candidates(state, pack, asked, union[order])
    nothing = np.zeros(len(rows))
    given = {"seed": own, "received": nothing, "activation": own, "hops": nothing}
    found.give(**{name: np.concatenate([pool[name], values])[order] for name, values in given.items()})
    place = np.empty(len(union), dtype=np.int64)
    place[order] = np.arange(len(union))
    ranked = Ranking(
        place[np.concatenate([ranking.order, np.arange(len(pool.rows), len(union))])],
        ranking.showable,
        {int(place[one]): place[others].tolist() for one, others in ranking.duplicates.items()},
    )
    return found, np.concatenate([scores, np.full(len(rows), -np.inf)])[order], ranked


def _with_named(state: State, pack: Pack, asked: QuestionFeatures, pool: Candidates, named: Rows) -> Candidates:
    """The pool and those of the ``named`` rows that are not in it, as far as they may be shown."""
    rows = named[~among(named, pool.rows)]
    beside = Candidates(state, pack, asked, rows)
    beside.give(hops=np.ones(len(rows)))
    if len(rows):
        rows = rows[_eligible(pack, beside) & ~is_over(beside)]
    if not len(rows):
        return pool
    found = Candidates(state, pack, asked, np.union1d(pool.rows, rows))
    own = _scores(pack, "seed-score", found)  # of all: a policy may put each on a scale from the least to the greatest
    fresh = among(found.rows, rows)
    alone = np.where(fresh & np.isfinite(own), own, 0.0)
    given = {"seed": alone, "received": np.zeros(len(fresh)), "activation": alone, "hops": fresh}
    for name, values in given.items():
        both = values.astype(np.float64)
        both[~fresh] = pool[name]
        found.give(**{name: both})
    return found


def _most_by_chance(pack: Pack, against: Sequence[Challenge]) -> int:
    """How many may be shown beside the head to learn of them."""
    if against:
        return max(one.extra for one in against) if against[0].design == "extra" else 0
    return int(pack.settings["probes"]) if pack.settings["probe-rate"] else 0


def _selected(
    chosen: Chosen, pool: Candidates, ranking: Ranking, opposed: Sequence[Opposed]
) -> tuple[Ranking, list[Opposed]]:
    """The order in which what was chosen stands first, and the heads of challengers within what may be shown."""
    front = np.concatenate([chosen.first, chosen.ranked])
    rest = ranking.order[~np.isin(ranking.order, front)]
    showable = np.isin(chosen.ranked, ranking.order[: ranking.showable])
    open_to_all = np.sort(pool.rows[chosen.ranked])
    own, others = chosen.ranked[showable], chosen.ranked[~showable]
    order = np.concatenate([chosen.first, own, others, rest])
    first = pool.rows[chosen.first]
    heads = [
        replace(one, rows=np.concatenate([first, one.rows[among(one.rows, open_to_all)][: chosen.limit]]))
        for one in opposed
    ]
    return Ranking(order, len(chosen.first) + len(own), ranking.duplicates), heads


def _challenged(
    pool: Candidates, ranking: Ranking, opposed: Sequence[Opposed], limit: int, chance: np.random.Generator
) -> tuple[Shown, int, int]:
    """What is shown while packs are challenged, the most that chance may add, and whose head it is."""
    count = len(pool.rows)
    ranks = np.empty(count, dtype=np.int64)
    ranks[ranking.order] = np.arange(1, count + 1)
    head = ranking.order[: ranking.showable][:limit]
    heads = [pool.rows.searchsorted(one.rows[among(one.rows, pool.rows)]) for one in opposed]
    challenges = [one.challenge for one in opposed]
    if not challenges:
        sure = np.zeros(count)
        sure[head] = 1.0
        return Shown(head, ranks, sure, (), head[:0], "deterministic"), 0, 0
    places, drawn, propensity, draws, whose = draw_challenge(head, heads, count, challenges, chance)
    sampler = "challenge" if challenges[0].design == "extra" else challenges[0].design
    return Shown(places, ranks, propensity, (), drawn, sampler), draws, whose


def _numbers(declared: _Declared, pool: Candidates) -> dict[str, Scores]:
    """The numbers and flags that the slate keeps."""
    numbers = dict(zip(declared.numeric, pool.table(declared.numeric), strict=True))
    for name, policy in declared.tests.items():
        numbers[name] = np.asarray(read(pool, policy, name), dtype=np.float64)
    return numbers


def _found(pack: Pack, asked: QuestionFeatures, *, standing: Callable[[Rows], Rows] | None = None) -> Rows:
    """The nearest vectors and the best matches of words, by ascending row.

    With ``standing``, which picks from ascending rows, only of what it picks: what is over takes nobody's place.
    """
    dense, lexical = int(pack.settings["dense-candidates"]), int(pack.settings["lexical-candidates"])
    found = [np.empty(0, dtype=np.int64)]
    if dense and len(asked.population.rows):
        found.append(_best(asked.nearest, dense, standing))
    if lexical:
        found.append(_best(asked.matches.best, lexical, standing))
    if pack.settings["triggers"]:
        called = asked.triggered()
        found.append(called if standing is None else standing(called))
    rows = np.concatenate(found)
    rows.sort()
    return np.concatenate([rows[:1], rows[1:][rows[1:] != rows[:-1]]])


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


def _spread(
    state: State, pack: Pack, asked: QuestionFeatures, direct: Candidates, seed: Scores, about: About
) -> tuple[Rows, Scores, Scores, Scores, Scores]:
    """Carry activation over edges, from seeds and entities: rows, seed, received, activation, hops of all reached."""
    most = int(pack.settings["seeds"])
    order = np.arange(len(seed)) if len(seed) <= most else np.sort(best(seed, most))
    order = order[np.isfinite(seed[order])]
    if len(about.nodes):
        order = order[seed[order] > 0]  # a seed keeps what it has: with nothing, it would hold up what an entity sends
    damping = float(pack.settings["damping"])
    policy = pack.policies["spread"]

    def pass_on(batch: EdgeBatch) -> Scores:
        columns = {name: _OF_EDGES[name](batch, damping) for name in policy.inputs if name != "relation"}
        if "relation" in policy.inputs or not columns:
            columns["relation"] = state.edges.words_of(batch.relation)
        values, nulls = policy.arrays(columns, order=batch.edge)
        passed = np.array(values, dtype=np.float64) if nulls is None else np.where(nulls, 0.0, values)
        mask = asked.population.mask
        if mask is not None:
            barred = batch.target < len(mask)  # tags, clusters and entities are passed through
            barred[barred] = ~mask[batch.target[barred]]
            passed[barred] = 0.0
        return np.asarray(passed)

    wave = spread(
        state.edges,
        np.concatenate((direct.rows[order], about.nodes)),
        np.concatenate((seed[order], about.nearness)),
        pass_on,
        steps=int(pack.settings["spread-steps"]),
        threshold=float(pack.settings["spread-threshold"]),
        mode=next(mode for mode in SPREAD_MODES if mode == pack.settings["spread-mode"]),
        damping=min(damping, 0.999),
        fan_out=int(pack.settings["fan-out"]),
        nodes=state.nodes,
    ).of_kind("memory")
    everyone = len(order) == len(direct.rows)  # then every candidate is a seed, and the wave holds all
    rows = wave.rows if everyone else np.union1d(direct.rows, wave.rows)
    seeds, received, activation = (np.zeros(len(rows)) for _ in range(3))
    hops = np.full(len(rows), np.inf)
    at_wave = slice(None) if everyone else rows.searchsorted(wave.rows)
    received[at_wave], activation[at_wave], hops[at_wave] = wave.received, wave.activation, wave.hops
    at_direct = rows.searchsorted(direct.rows)
    seeds[at_direct], hops[at_direct] = np.where(np.isfinite(seed), seed, 0.0), 0.0
    away = hops > 0
    reached = Candidates(state, pack, asked, rows[away])
    if len(reached.rows):
        reached.give(hops=hops[away])
        eligible = _eligible(pack, reached) & ~is_over(reached)
        if not eligible.all():
            keep = ~away
            keep[away] = eligible
            rows, seeds, received = rows[keep], seeds[keep], received[keep]
            activation, hops = activation[keep], hops[keep]
    return rows, seeds, received, activation, hops


def _eligible(pack: Pack, pool: Candidates) -> NDArray[np.bool_]:
    values, nulls = pool.ask(pack.policies["eligible"])
    return np.asarray(values if nulls is None else values & ~nulls, dtype=np.bool_)


def _scores(pack: Pack, slot: str, pool: Candidates) -> Scores:
    """The slot's score of each candidate; NaN and null sort last, as -inf."""
    values, nulls = pool.ask(pack.policies[slot])
    bad = np.isnan(values) if nulls is None else np.isnan(values) | nulls
    return np.where(bad, -np.inf, values) if bad.any() else np.asarray(values, dtype=np.float64)


def _known(pack: Pack, pool: Candidates, scores: Scores) -> float | None:
    """Return the probability that something of the pool answers.

    None where the pack does not say, or has another recall-score than its ``known`` was calibrated for.
    """
    policy = pack.policies["known"]
    if not pack.tells_known:
        return None
    if not len(pool):
        return 0.0 if policy.inputs else None
    scored = np.isfinite(scores)
    given: Column = scores if scored.all() else (np.where(scored, scores, 0.0), ~scored)
    values, nulls = pool.ask(policy, given={"score": lambda: given})
    said = values[~np.isnan(values) if nulls is None else ~(np.isnan(values) | nulls)]
    return float(np.clip(said.max(), 0.0, 1.0)) if len(said) else None
