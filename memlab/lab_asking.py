"""Asking: recalls, what is similar, and what came of it."""

from __future__ import annotations

import math

import polars as pl

from memlab.clock import When, to_micros
from memlab.errors import InputError, UnknownName
from memlab.lab_base import LabBase, MemoryLike
from memlab.lab_results import Feedback, Memory
from memlab.memory import checked_text
from memlab.privacy import refuse
from memlab.recall import Filters, Hit, Hits, WordOrWords
from memlab.schema import OUTCOMES

__all__ = ["LabAsking"]


class LabAsking(LabBase):
    """``recall``, ``similar``, ``feedback``."""

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        project: str | None = None,
        session: str | None = None,
        branch: WordOrWords = None,
        scope: WordOrWords = None,
        visibility: WordOrWords = None,
        status: WordOrWords = None,
        viewer: str | None = None,
        where: pl.Expr | None = None,
        at: When | None = None,
        log: bool = True,
    ) -> Hits:
        """The memories that the live pack puts first for ``query``: at most ``limit``, and now and then a probe.

        A probe (``hit.probe``, always last) comes from just below, at the pack's ``probe-rate``, so that the log can
        tell what another policy would have been worth. ``at`` is the time of asking. The slate is logged and what was
        shown gains an access, unless ``log=False`` or the lab is read-only; then nothing is explored either.

        What takes part: ``project`` and ``branch`` also admit what belongs to none; ``scope``, ``visibility`` and
        ``status`` (instead of active, staged and confirmed) take one word or several. ``viewer``, who asks, leaves out
        what is private to another creator. ``where`` is any Polars expression over the columns of ``lab.memories``,
        true or false for each of them; aggregates range over all. What is left out counts in no statistic either.

        >>> lab.recall("release", where=pl.col("tags").list.contains("ci"), status=["active", "superseded"]) \
        ... # doctest: +SKIP
        """
        filters = Filters.of(
            branch=branch, scope=scope, visibility=visibility, status=status, viewer=viewer, where=where
        )
        return self._recalls.ask(query, limit=limit, project=project, session=session, filters=filters, at=at, log=log)

    def similar(
        self,
        memory: MemoryLike,
        *,
        limit: int = 10,
        project: str | None = None,
        where: pl.Expr | None = None,
    ) -> pl.DataFrame:
        """The memories nearest to one of them by the cosine of their vectors, best first; nothing is logged.

        Columns: ``rank``, ``memory_id``, ``similarity`` (-1..1), ``text``, ``kind``, ``ref``, ``speaker``, ``session``,
        ``project``. What recall does not admit (forgotten, superseded, retracted; bound to another session) is left
        out, and ``project`` and ``where`` are those of ``recall``. UnknownName for an id that nothing has.

        >>> lab.similar(hits[0], where=pl.col("kind") == "decision")                       # doctest: +SKIP
        """
        with self._reading():
            row = self._row(memory)
        return self._recalls.similar(row, limit=limit, project=project, filters=Filters.of(where=where))

    def feedback(
        self,
        hit: Hit | Memory | int,
        outcome: str | None = None,
        *,
        reward: float | None = None,
        source: str = "user",
        at: When | None = None,
    ) -> Feedback:
        """Say how a memory that was shown did: ``"success"``, ``"fail"``, or a ``reward``; durable when it returns."""
        if outcome is None and reward is None:
            raise InputError('Feedback needs an outcome, "success" or "fail", or a reward.')
        if outcome is not None and outcome not in OUTCOMES:
            raise UnknownName("outcome", outcome, OUTCOMES)
        if reward is not None and (
            isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward)
        ):
            raise InputError(f"A reward is a finite number, not {reward!r}.")
        refuse(checked_text(source, where="source"), "the source of feedback")
        now = self._store.clock() if at is None else to_micros(at)
        decision = hit.decision if isinstance(hit, Hit) else None
        with self._store.writing() as tx:
            memory = self._row(hit) + 1
            body = {"decision": decision, "memory": memory, "outcome": outcome, "reward": reward, "source": source}
            if isinstance(hit, Hit):
                body |= {"pack": hit._hits.pack.hash, "probe": hit.probe}
            seq = tx.event("feedback", body, at=now)
        return Feedback(seq, decision, memory, outcome, reward, source)
