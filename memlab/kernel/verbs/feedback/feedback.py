"""Use: what came of the memories that a recall showed, and what that changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import Micros, When
from memlab.kernel.base.display import Displayed
from memlab.kernel.hooks import hooks
from memlab.kernel.journal import Transaction
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Hit, Hits
from memlab.kernel.schema import RELATIONS, is_open_word, spelled
from memlab.kernel.state import Change, State, audience_of
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import seen
from memlab.kernel.verbs.core import Core, Memories, MemoryLike, listed_memories
from memlab.kernel.verbs.feedback.judged import Judged
from memlab.kernel.verbs.feedback.last_shown import LastShown
from memlab.kernel.verbs.feedback.stated import Stated, checked_judgement, judgements_of, naming_row
from memlab.kernel.verbs.feedback.verdict import gap_of, judged
from memlab.kernel.verbs.recalling.asking import find_slate, logged_slate
from memlab.kernel.verbs.reinforcement.coactivation import NAMEABLE, joined, pairs_with, remaining
from memlab.kernel.verbs.reinforcement.reinforcing import days_before, reinforced
from memlab.kernel.verbs.results import Feedback, Memory
from memlab.subjects.verifiers import Verdict, Verifier

__all__ = ["Judgements", "Verified", "verdict_of"]

_MOST_NAMED = 10_000
"""Memories that one list of a verdict names at most: a verifier may never come to an end."""


@dataclass(frozen=True)
class Verified(Displayed):
    """A verdict as it was logged: which ids passed, best first, and which did not.

    ``edges`` were made between those that passed, ``strengthened`` were there before; ``tag`` was inferred for those
    without it; ``gap`` is the number of the gap that was logged because nothing passed.
    """

    event: int
    decision: int
    accepted: tuple[int, ...]
    rejected: tuple[int, ...]
    edges: int
    strengthened: int
    tag: str | None
    gap: int | None

    @property
    def frame(self) -> pl.DataFrame:
        """``memory_id``, ``passed``."""
        ids = [*self.accepted, *self.rejected]
        passed = [True] * len(self.accepted) + [False] * len(self.rejected)
        return pl.DataFrame({"memory_id": ids, "passed": passed}, schema={"memory_id": pl.Int64, "passed": pl.Boolean})

    def _display(self) -> object:
        parts = [f"{len(self.accepted)} passed, {len(self.rejected)} did not"]
        parts += [f"{self.edges} edges made, {self.strengthened} strengthened"] * bool(self.edges or self.strengthened)
        if self.tag is not None:
            parts.append(f"tag {self.tag} inferred")
        if self.gap is not None:
            parts.append(f"gap {self.gap} logged")
        return f"Recall {self.decision}: {'; '.join(parts)}."


class Judgements:
    """What came of the memories that a recall showed."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def feedback(
        self,
        hit: MemoryLike,
        outcome: str | None,
        *,
        rating: int | None,
        reward: float | None,
        agent: str | None,
        source: str,
        at: When | None,
        decision: int | None = None,
    ) -> Feedback:
        """Log one judgement and what it changes; see ``Lab.feedback``."""
        stated = checked_judgement(hit, outcome, rating, reward, agent, source, self._core.instant(at), decision)
        with self._core.store.writing() as tx:
            return self._logged(tx, stated)

    def feedback_many(self, rows: Iterable[Mapping[str, Any]] | pl.DataFrame) -> tuple[Feedback, ...]:
        """Log several judgements, all or nothing; see ``Lab.feedback``."""
        stated = judgements_of(rows, self._core.instant)
        if not stated:
            return ()
        logged: list[Feedback] = []
        with self._core.store.writing() as tx:
            for number, one in enumerate(stated):
                with naming_row(number):
                    self._core.row(one.hit)
                    _judged_recall(one.hit, self._core.store, self._core.row(one.hit), one.decision)
            for one in stated:
                if logged:  # what a judgement changes is decided of the memory as the one before it left it
                    self._core.store.settle(tx)
                logged.append(self._logged(tx, one))
        return tuple(logged)

    def _logged(self, tx: Transaction, stated: Stated) -> Feedback:
        hit, outcome, rating, reward, agent, source, now, decision = stated
        state, pack = self._core.store.state, self._core.pack
        row = self._core.row(hit)
        recall = _judged_recall(hit, self._core.store, row, decision)
        decision = None if recall is None else recall.decision
        body: dict[str, Any] = {"decision": decision, "memory": row + 1, "outcome": outcome}
        body |= {"reward": reward, "source": source}
        if recall is not None:
            body |= {"pack": recall.pack, "probe": recall.probe}
        if rating is not None:
            body["rating"] = rating
        body |= _of_outcome(state, pack, row, now, recall=recall, outcome=outcome, rating=rating).body()
        if agent is not None:
            # how it did is known to whoever sees the memory, and so is what follows of it
            visible = seen(self._core.store.journal, state, audience_of(state, row))
            for fields_of in hooks("feedback"):
                body |= fields_of(visible, pack, agent, outcome)
        seq = tx.event("feedback", body, at=now)
        return Feedback(seq, decision, row + 1, outcome, reward, source, rating, agent)

    def verify(
        self,
        hits: Hits,
        accepted: Verifier | Verdict | Memories,
        *,
        rejected: Memories | None = None,
        relations: Mapping[tuple[int, int], str] | None = None,
        at: When | None = None,
    ) -> Verified:
        """Carry out a verdict on a recall; see ``Lab.verify``."""
        decision = hits.decision
        if decision is None:
            raise InputError("This recall was not logged, so a verdict on it cannot be: recall with log=True.")
        verdict = verdict_of(hits, accepted)
        passed = _shown(hits, verdict.accepted)
        failing = verdict.rejected if rejected is None else listed_memories(rejected)
        failed = [id for id in hits.ids if id not in passed] if failing is None else _shown(hits, failing)
        both = sorted(set(passed) & set(failed))
        if both:
            raise InputError(f"Memory {both[0]} is both accepted and rejected.")
        named = _checked_relations({**verdict.relations, **(relations or {})}, passed, self._core.open_words)
        now = self._core.instant(at)
        with self._core.store.writing() as tx:
            state, pack = self._core.store.state, self._core.pack
            known = state.projection(Judged)
            if known.verified(decision):
                raise InputError(f"The recall {decision} was verified already: a verdict counts once.")
            found = judged(
                state,
                pack,
                now,
                used=hits.slate.at,
                accepted=passed,
                rejected=failed,
                relations=named,
                query=hits.slate.query,
            )
            gap = None if passed else gap_of(hits.slate)
            body = {"decision": decision, "used": hits.slate.at, "verified": passed, "rejected": failed}
            body |= found.change.body()
            seq = tx.event("verify", body if gap is None else {**body, "gap": gap}, at=now)
        return Verified(
            seq,
            decision,
            tuple(passed),
            tuple(failed),
            edges=len((found.change.edges or {"source": ()})["source"]),
            strengthened=len((found.change.strengthen or {"edges": ()})["edges"]),
            tag=found.tag,
            gap=None if gap is None else seq,
        )


class _JudgedRecall(NamedTuple):
    """The recall that a judgement belongs to; one that was not logged has no ``decision``."""

    decision: int | None
    at: Micros
    pack: str
    probe: bool


def _judged_recall(hit: MemoryLike, store: Store, row: int, decision: int | None) -> _JudgedRecall | None:
    """The recall that showed the memory: the hit's, the logged one that ``decision`` names, or the last logged one."""
    if isinstance(hit, Hit):
        if decision not in (None, hit.decision):
            raise InputError(f"This hit was shown by recall {hit.decision}, not by {decision}.")
        return _JudgedRecall(hit.decision, hit._hits.slate.at, hit._hits.pack.hash, hit.probe)
    if decision is None:
        last = store.state.projection(LastShown).decision(row + 1)
        slate = None if last is None else find_slate(store, last)
        if slate is None:
            return None
        decision = slate.decision
    else:
        slate = logged_slate(store, decision)
    if row + 1 not in slate.shown:
        raise UnknownName(f"memory that recall {decision} showed", row + 1, map(str, slate.shown))
    return _JudgedRecall(decision, slate.at, slate.pack_hash, row + 1 in slate.probes)


def _of_outcome(
    state: State,
    pack: Pack,
    row: int,
    now: Micros,
    *,
    recall: _JudgedRecall | None,
    outcome: str | None,
    rating: int | None,
) -> Change:
    """What feedback changes: in the memory, and in the edges to what succeeded with it."""
    if outcome is None or not remaining(state, [row + 1]):
        return Change()
    rows = np.array([row])
    used, decision = (None, None) if recall is None else (recall.at, recall.decision)
    change = reinforced(
        state,
        pack,
        rows,
        now,
        outcome="success" if outcome == "success" else "fail",
        rating=rating,
        elapsed=lambda: days_before(state, rows, now, used=used, counted=decision is not None),
    )
    if outcome == "success" and decision is not None:
        kept = state.projection(Judged)
        others = remaining(state, kept.successes(decision))
        if row + 1 not in others:
            change += joined(state, pack, pairs_with(row + 1, others, pack.count("edge-pairs")))
    return change


def verdict_of(hits: Hits, accepted: Verifier | Verdict | Memories) -> Verdict:
    """What a verifier, or whoever names the hits that pass, says of a recall; nothing is written.

    InputError for what is no verdict. Whether it names what was shown is looked at when it is carried out.
    """
    given = accepted(hits) if callable(accepted) else accepted
    if isinstance(given, Verdict):
        return verdict(_ended(given.accepted), _ended(given.rejected), given.relations)
    return verdict(_ended(given))


def _ended(given: Any) -> Any:
    """What a verifier gave; of what has no length, a list. InputError for what may have no end."""
    if isinstance(given, Sized) or not isinstance(given, Iterable):
        return given
    named = list(islice(given, _MOST_NAMED + 1))
    if len(named) > _MOST_NAMED:
        raise InputError(f"A verdict names the hits that were shown, and not more than {_MOST_NAMED:,} memories.")
    return named


@checked
def verdict(
    accepted: Memories,
    rejected: Memories | None = None,
    relations: Mapping[tuple[int, int], str] | None = None,
) -> Verdict:
    """What a verifier gave, checked."""
    failing = None if rejected is None else listed_memories(rejected)
    return Verdict(listed_memories(accepted), failing, relations or {})


def _shown(hits: Hits, given: Iterable[MemoryLike]) -> list[int]:
    """The ids that ``given`` names, each once, in the order in which they were shown."""
    ids = {memory.id if isinstance(memory, Memory | Hit) else memory for memory in given}
    unknown = next((id for id in ids if id not in hits.ids), None)
    if unknown is not None:
        raise UnknownName("hit of this recall", unknown, map(str, hits.ids))
    return [id for id in hits.ids if id in ids]


def _checked_relations(
    relations: Mapping[tuple[int, int], str], passed: list[int], open_words: bool
) -> dict[tuple[int, int], str]:
    relations = {pair: spelled(relation, NAMEABLE) for pair, relation in relations.items()}
    for pair, relation in relations.items():
        if relation not in NAMEABLE and not (open_words and relation not in RELATIONS and is_open_word(relation)):
            raise UnknownName("relation", relation, NAMEABLE)
        if pair[0] == pair[1]:
            raise InputError(f"A relation joins two memories that pass, such as (3, 7), not {pair!r}.")
        outside = next((id for id in pair if id not in passed), None)
        if outside is not None:
            raise UnknownName("accepted memory", outside, map(str, passed))
    return dict(relations)
