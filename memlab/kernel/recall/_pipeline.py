"""The road from a question to a slate.

    question -> filters -> find -> admit -> seed -> spread -> cut -> score -> known -> select -> explore -> log -> slate

Python finds candidates, carries activation over edges and sorts; what is eligible, what a candidate is worth, and
what passes over an edge are the pack's policies. ``_stages.py`` has the table of stages, ``_plan.py`` what is worked
out once for each pack.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np

from memlab.kernel.embedding import Embedder
from memlab.kernel.policies import Challenge, Pack
from memlab.kernel.recall._entities import NO_ENTITIES, About, EntityNames
from memlab.kernel.recall._finding import admit, cut, find, seed, spread_activation
from memlab.kernel.recall._late import WordVectors
from memlab.kernel.recall._plan import Plan, Plans
from memlab.kernel.recall._population import Population, Populations
from memlab.kernel.recall._question import Question, QuestionFeatures, SpeakerNames
from memlab.kernel.recall._run import Run
from memlab.kernel.recall._selected import Selection
from memlab.kernel.recall._selecting import estimate_known, explore, score, select
from memlab.kernel.recall._slating import bytes_of, log
from memlab.kernel.recall._stages import STAGES, Stage
from memlab.kernel.recall._triggers import Triggers
from memlab.kernel.slates import Slate
from memlab.kernel.state import State

__all__ = ["Recaller"]

STAGES.declare(
    (
        Stage("find", "Find the nearest vectors and the best matches of words.", ("question",), ("found",), find),
        Stage("admit", "Keep what is eligible.", ("found",), ("direct",), admit),
        Stage("seed", "Score what was found, before spreading.", ("direct",), ("seeds",), seed),
        Stage("spread", "Carry activation over edges.", ("direct", "seeds"), ("reached",), spread_activation),
        Stage("cut", "Keep the best, as many as the pool holds.", ("reached",), ("pool",), cut),
        Stage("score", "Score the pool.", ("pool",), ("scores",), score),
        Stage(
            "known", "Estimate whether anything of the pool answers.", ("pool", "scores"), ("known",), estimate_known
        ),
        Stage("select", "Decide what may be shown, and what surely is.", ("scores", "known"), ("selected",), select),
        Stage("explore", "Draw what chance adds to that.", ("selected",), ("shown", "challenge"), explore),
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
            return run.through(run.plan.stages).slate

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
        population = self.population(state, question)
        asked = QuestionFeatures(
            state, pack, self._embedder, question, population, speakers, self._triggers, self._word_vectors
        )
        about = self._about(plan, asked)
        return Run(plan, state, question, asked, plan.show.limit, about)

    def _about(self, plan: Plan, asked: QuestionFeatures) -> About:
        """The entities that the question is about, where activation begins with any."""
        if not plan.spread.entities:
            return NO_ENTITIES
        return self._entities.about(asked, plan.spread.entities, plan.spread.entity_floor)
