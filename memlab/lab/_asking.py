"""Asking: recalls, and what is similar."""

from __future__ import annotations

import polars as pl

from memlab.arguments import Count, checked
from memlab.clock import When
from memlab.lab._base import LabBase, MemoryLike
from memlab.recall import Filters, Hits, WordOrWords

__all__ = ["LabAsking"]


class LabAsking(LabBase):
    """``recall``, ``similar``."""

    @checked
    def recall(
        self,
        query: str,
        *,
        limit: Count | None = None,
        project: str | None = None,
        session: str | None = None,
        branch: WordOrWords = None,
        scope: WordOrWords = None,
        visibility: WordOrWords = None,
        status: WordOrWords = None,
        season: WordOrWords = None,
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
        what is private to another creator, as if it had never been told (see ``viewed_by``). What belongs to a season
        takes part only while ``season`` names it ("release-week", or several). ``where`` is any Polars expression over
        the columns of ``lab.memories``, true or false for each of them; aggregates range over all that ``viewer`` sees.
        What is left out counts in no statistic either.

        >>> lab.recall("release", where=pl.col("tags").list.contains("ci"), status=["active", "superseded"]) \
        ... # doctest: +SKIP
        """
        filters = Filters.of(
            branch=branch,
            scope=scope,
            visibility=visibility,
            status=status,
            season=season,
            viewer=viewer,
            where=where,
        )
        return self._recalls.ask(query, limit=limit, project=project, session=session, filters=filters, at=at, log=log)

    @checked
    def similar(
        self,
        memory: MemoryLike,
        *,
        limit: Count = 10,
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
