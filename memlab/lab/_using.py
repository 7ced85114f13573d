"""Use: what came of the memories that a recall showed, and what that changes."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl

from memlab.arguments import Within, checked
from memlab.clock import Micros, When
from memlab.errors import InputError, UnknownName
from memlab.lab._base import LabBase, MemoryLike
from memlab.lab._results import Feedback, Memory
from memlab.life import (
    NAMEABLE,
    audience_of,
    days_before,
    gap_of,
    joined,
    judged,
    pairs_with,
    reinforced,
    relationship_of,
    remaining,
    talked,
    trusted,
)
from memlab.memory import Change, Gaps, Judged, Relationship, Relationships, State, checked_text
from memlab.policies import Pack
from memlab.privacy import refuse
from memlab.recall import Hit, Hits
from memlab.schema import OUTCOMES
from memlab.seen import seen
from memlab.verifiers import Verdict, Verifier

__all__ = ["LabUsing", "Verified"]


@dataclass(frozen=True)
class Verified:
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

    def _repr_html_(self) -> str:
        told = [f"{len(self.accepted)} passed, {len(self.rejected)} did not"]
        told += [f"{self.edges} edges made, {self.strengthened} strengthened"] * bool(self.edges or self.strengthened)
        if self.tag is not None:
            told.append(f"tag <code>{html.escape(self.tag)}</code> inferred")
        if self.gap is not None:
            told.append(f"gap {self.gap} logged")
        return f"<p>Recall {self.decision}: {'; '.join(told)}.</p>"


class LabUsing(LabBase):
    """``feedback``, ``verify``, ``gaps``, ``close_gap``, ``conversation``, ``relationships``."""

    @checked
    def feedback(
        self,
        hit: MemoryLike,
        outcome: str | None = None,
        *,
        rating: Annotated[int, Within(1, 4)] | None = None,
        reward: float | None = None,
        agent: str | None = None,
        source: str = "user",
        at: When | None = None,
    ) -> Feedback:
        """Say how a memory that was shown did: ``"success"``, ``"fail"``, or a ``reward``; durable when it returns.

        ``rating`` says how easily it was remembered: 1 again, 2 hard, 3 good, 4 easy; without an outcome, 1 is a
        failure and the others are successes. The live pack's ``reinforce`` policy decides what an outcome changes in
        the memory. A success is shared: edges to the other memories that succeeded in the same recall are made or
        strengthened, by the setting ``edge-gain``. With ``agent``, the outcome also counts for how far that agent is
        trusted (``lab.relationships``).
        """
        if outcome is None and rating is not None:
            outcome = "fail" if rating == 1 else "success"
        if outcome is None and reward is None:
            raise InputError('Feedback needs an outcome, "success" or "fail", a rating or a reward.')
        if outcome is not None and outcome not in OUTCOMES:
            raise UnknownName("outcome", outcome, OUTCOMES)
        refuse(checked_text(source, where="source"), "the source of feedback")
        if agent is not None:
            _check_agent(agent)
        now = self._instant(at)
        decision = hit.decision if isinstance(hit, Hit) else None
        with self._store.writing() as tx:
            state, pack = self._store.state, self._store.versions.pack
            row = self._row(hit)
            body: dict[str, Any] = {"decision": decision, "memory": row + 1, "outcome": outcome}
            body |= {"reward": reward, "source": source}
            if isinstance(hit, Hit):
                body |= {"pack": hit._hits.pack.hash, "probe": hit.probe}
            if rating is not None:
                body["rating"] = rating
            body |= _of_outcome(state, pack, row, now, hit=hit, outcome=outcome, rating=rating).body()
            if agent is not None:
                # how it did is known to whoever sees the memory, and so is what follows of it
                known = relationship_of(seen(self._store.journal, state, audience_of(state, row)), pack, agent)
                body["relationship"] = _told(
                    known if outcome is None else trusted(known, pack, helpful=outcome == "success")
                )
            seq = tx.event("feedback", body, at=now)
        return Feedback(seq, decision, row + 1, outcome, reward, source, rating, agent)

    @checked
    def verify(
        self,
        hits: Hits,
        accepted: Verifier | MemoryLike | Iterable[MemoryLike],
        *,
        rejected: MemoryLike | Iterable[MemoryLike] | None = None,
        relations: Mapping[tuple[int, int], str] | None = None,
        at: When | None = None,
    ) -> Verified:
        """Carry out a verifier's verdict on a logged recall, once; durable when it returns.

        ``accepted`` are the hits that pass, or a callable that says so (``memlab.verifiers.overlap``, or your own).
        ``rejected`` are those that do not: without it, all others that were shown. ``relations`` names what joins two
        that pass, from the first id to the second: ``{(3, 7): "supersedes"}``.

        What passed gains an access, and what the live pack's ``reinforce`` policy gives for "verified"; what did not
        gets what it gives for "rejected". Two or more that passed are joined by ``relates-to`` edges, or those are
        strengthened, and share the tag that most of them have. Where there were seeds and nothing passed, a gap is
        logged: see ``gaps``.

        InputError for a recall that was not logged or was verified before, UnknownName for what it did not show.

        >>> lab.verify(lab.recall("release"), memlab.verifiers.overlap)                    # doctest: +SKIP
        """
        decision = hits.decision
        if decision is None:
            raise InputError("This recall was not logged, so a verdict on it cannot be: recall with log=True.")
        verdict = _verdict(hits, accepted)
        passed = _shown(hits, verdict.accepted)
        failing = verdict.rejected if rejected is None else _several(rejected)
        failed = [id for id in hits.ids if id not in passed] if failing is None else _shown(hits, failing)
        both = sorted(set(passed) & set(failed))
        if both:
            raise InputError(f"Memory {both[0]} is both accepted and rejected.")
        named = _checked_relations({**verdict.relations, **(relations or {})}, passed)
        now = self._instant(at)
        with self._store.writing() as tx:
            state, pack = self._store.state, self._store.versions.pack
            known = state.registers["judged"]
            assert isinstance(known, Judged)
            if known.verified(decision):
                raise InputError(f"The recall {decision} was verified already: a verdict counts once.")
            found = judged(state, pack, now, used=hits.slate.at, accepted=passed, rejected=failed, relations=named)
            gap = None if passed else gap_of(hits.slate)
            body = {"decision": decision, "verified": passed, "rejected": failed, **found.change.body()}
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

    @property
    def gaps(self) -> pl.DataFrame:
        """What was looked for and not found: recalls with seeds of which a verifier let nothing pass, oldest first.

        Columns: gap, decision, at, project, session, snippet (the context's first 200 characters, after the privacy
        gate), closed (null while open), reason, embedder, vector (the context's, of that embedder).
        """
        with self._reading() as state:
            kept = state.registers["gaps"]
            assert isinstance(kept, Gaps)
            return kept.frame

    @checked
    def close_gap(self, gap: int, reason: str) -> None:
        """Say what became of a gap: something was remembered, or nothing has to be. It stays in ``gaps``, as closed.

        UnknownName for a number that no gap has, InputError for one that was closed.
        """
        refuse(checked_text(reason, where="reason"), "the reason for closing a gap")
        with self._store.writing() as tx:
            kept = self._store.state.registers["gaps"]
            assert isinstance(kept, Gaps)
            kept.check_open(gap)
            tx.event("close-gap", {"gap": gap, "reason": reason}, at=self._store.clock())

    @checked
    def conversation(self, agent: str, *, at: When | None = None) -> Relationship:
        """Count one more conversation of this agent with its user, and return their relationship as it is then.

        A first conversation starts from the settings ``familiarity-start`` and ``trust-start``; each adds a share
        ``familiarity-gain`` of the familiarity still missing to 100.
        """
        _check_agent(agent)
        now = self._instant(at)
        with self._store.writing() as tx:
            state, pack = self._store.state, self._store.versions.pack
            body = {"relationship": _told(talked(relationship_of(state, pack, agent), pack))}
            tx.event("conversation", body, at=now)
        with self._reading() as state:
            return relationship_of(state, pack, agent)

    @property
    def relationships(self) -> pl.DataFrame:
        """One row an agent: agent, trust, familiarity (both 0-100), conversations, helpful, unhelpful, since, last."""
        with self._reading() as state:
            kept = state.registers["relationships"]
            assert isinstance(kept, Relationships)
            return kept.frame


def _of_outcome(
    state: State, pack: Pack, row: int, now: Micros, *, hit: MemoryLike, outcome: str | None, rating: int | None
) -> Change:
    """What feedback changes: in the memory, and in the edges to what succeeded with it."""
    if outcome is None or not remaining(state, [row + 1]):
        return Change()
    rows = np.array([row])
    used = hit._hits.slate.at if isinstance(hit, Hit) else None
    decision = hit.decision if isinstance(hit, Hit) else None
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
        kept = state.registers["judged"]
        assert isinstance(kept, Judged)
        others = remaining(state, kept.successes(decision))
        if row + 1 not in others:
            change += joined(state, pack, pairs_with(row + 1, others, pack.count("edge-pairs")))
    return change


def _verdict(hits: Hits, accepted: Verifier | MemoryLike | Iterable[MemoryLike]) -> Verdict:
    given = accepted(hits) if callable(accepted) else accepted
    if isinstance(given, Verdict):
        return verdict(given.accepted, given.rejected, given.relations)
    return verdict(given)


@checked
def verdict(
    accepted: MemoryLike | Iterable[MemoryLike],
    rejected: MemoryLike | Iterable[MemoryLike] | None = None,
    relations: Mapping[tuple[int, int], str] | None = None,
) -> Verdict:
    """What a verifier gave, checked."""
    failing = None if rejected is None else _several(rejected)
    return Verdict(_several(accepted), failing, relations or {})


def _several(given: MemoryLike | Iterable[MemoryLike]) -> list[MemoryLike]:
    return [given] if isinstance(given, Memory | Hit | int) else list(given)


def _shown(hits: Hits, given: Iterable[MemoryLike]) -> list[int]:
    """The ids that ``given`` names, each once, in the order in which they were shown."""
    ids = {memory.id if isinstance(memory, Memory | Hit) else memory for memory in given}
    unknown = next((id for id in ids if id not in hits.ids), None)
    if unknown is not None:
        raise UnknownName("hit of this recall", unknown, map(str, hits.ids))
    return [id for id in hits.ids if id in ids]


def _checked_relations(relations: Mapping[tuple[int, int], str], passed: list[int]) -> dict[tuple[int, int], str]:
    for pair, relation in relations.items():
        if relation not in NAMEABLE:
            raise UnknownName("relation", relation, NAMEABLE)
        if pair[0] == pair[1]:
            raise InputError(f"A relation joins two memories that pass, such as (3, 7), not {pair!r}.")
        outside = next((id for id in pair if id not in passed), None)
        if outside is not None:
            raise UnknownName("accepted memory", outside, map(str, passed))
    return dict(relations)


def _told(known: Relationship) -> dict[str, object]:
    """What an event says of a relationship: the rest is counted."""
    return {name: value for name, value in asdict(known).items() if name in ("agent", "trust", "familiarity")}


def _check_agent(agent: object) -> None:
    if not isinstance(agent, str) or not agent or len(agent) > 1000:
        raise InputError(f'An agent is a name of 1 to 1000 characters, such as "coder", not {agent!r:.60}.')
    refuse(checked_text(agent, where="agent"), "the name of an agent")
