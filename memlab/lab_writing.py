"""Remembering: what is new in a lab."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from memlab.clock import When
from memlab.errors import InputError, UnknownName
from memlab.lab_base import LabBase, MemoryLike
from memlab.lab_remember import chained, compact, refuse_names
from memlab.lab_results import Memory, Remembered
from memlab.life import named
from memlab.memory import Change, as_said, checked_columns, columns_of, edges_of
from memlab.privacy import Finding, screen_many
from memlab.schema import RELATIONS

__all__ = ["LabWriting"]


class LabWriting(LabBase):
    """``remember``, ``remember_many``, ``link``."""

    def remember(self, text: str, *, at: When | None = None, chain: bool = False, **fields: Any) -> Memory:
        """Remember one text; durable when it returns.

        ``fields`` are those of ``memlab.FIELDS``: kind, tags, project, session, speaker, importance, ref, ...
        ``chain=True`` links it by a ``next`` edge to the last memory of its session.

        >>> lab.remember("Deploys go out on Tuesdays", kind="convention", project="api")   # doctest: +SKIP
        """
        row = {"text": text, **fields}
        if at is not None:
            row["at"] = at
        return self.remember_many([row], chain=chain)[0]

    def remember_many(
        self, rows: Iterable[Mapping[str, Any] | str] | pl.DataFrame, *, chain: bool = False
    ) -> Remembered:
        """Remember several at once: one transaction, one event, all or nothing.

        ``rows`` are dicts of ``text`` and any of ``memlab.FIELDS`` and ``at``, or texts, or a Polars frame with
        those columns. ``chain=True`` links consecutive memories of a session by ``next`` edges.
        """
        columns = columns_of(rows)
        count = len(next(iter(columns.values()), ()))
        if not count:
            return self._remembered(range(0), ())
        now = self._store.clock()
        columns = checked_columns(columns, now=now)
        screenings = screen_many(columns.pop("text"))
        texts = [screening.text for screening in screenings]
        refuse_names(columns)
        speakers = columns.get("speaker") or [None] * count
        vectors = self._store.embedder.encode([as_said(*said) for said in zip(texts, speakers, strict=True)])
        with self._store.writing() as tx:
            first = len(self._store.state) + 1
            ids = range(first, first + count)
            columns, mentions = named(self._store.state, self._store.versions.pack, columns, ids)
            body: dict[str, Any] = {"first": first, "count": count, "columns": compact(columns), **mentions.body()}
            if chain:
                body["edges"] = chained(self._store.state, columns, first, count)
            tx.payloads(ids, texts)
            tx.vectors(first, self._store.embedder.fingerprint, vectors)
            tx.event("remember", body, at=now)
        findings = tuple((ids[row], found) for row, screening in enumerate(screenings) for found in screening.findings)
        self._store.snapshot_if_due()
        return self._remembered(ids, findings)

    extend = remember_many

    def _remembered(self, ids: range, redacted: tuple[tuple[int, Finding], ...]) -> Remembered:
        return Remembered(self.__getitem__, lambda: self.memories, ids, redacted)

    def link(
        self,
        source: MemoryLike,
        target: MemoryLike,
        relation: str = "relates-to",
        *,
        weight: float = 1.0,
    ) -> None:
        """Join two memories by an edge."""
        if relation not in RELATIONS:
            raise UnknownName("relation", relation, RELATIONS)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
            raise InputError(f"The weight of an edge lies in 0..1, not {weight!r}.")
        with self._store.writing() as tx:
            ends = self._row(source) + 1, self._row(target) + 1
            if ends[0] == ends[1]:
                raise InputError(f"Memory {ends[0]} cannot be linked to itself.")
            change = Change(edges=edges_of([ends[0]], [ends[1]], relation, weight))
            tx.event("link", change.body(), at=self._store.clock())
