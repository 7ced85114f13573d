"""Remembering: what is new in a lab."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from memlab.clock import When
from memlab.errors import InputError, UnknownName
from memlab.lab._base import LabBase, MemoryLike
from memlab.lab._hearing import Admission, Heard, admission
from memlab.lab._limits import check_bytes, check_sessions
from memlab.lab._linking import Comparing, check_linking, linking_of, waiting_of
from memlab.lab._remember import chosen, remembering, with_confidence, without_confidence
from memlab.lab._results import Memory, Remembered
from memlab.life import Linked, kind_of, named, provenance_of, utterance
from memlab.memory import Change, as_said, checked_columns, checked_text, columns_of, edges_of, redactions, refuse_names
from memlab.operations import checked_operations
from memlab.privacy import Finding, screen, screen_many
from memlab.schema import RELATIONS

__all__ = ["LabWriting"]


_TO_NODES = ("has-tag", "in-cluster", "mentions")


class LabWriting(LabBase):
    """``remember``, ``remember_many``, ``admit``, ``hear``, ``link``, ``settle``."""

    def remember(
        self, text: str, *, at: When | None = None, chain: bool = False, linking: str | None = None, **fields: Any
    ) -> Memory:
        """Remember one text; durable when it returns.

        ``fields`` are those of ``memlab.FIELDS``: kind, tags, project, session, speaker, importance, ref, ...
        ``chain=True`` links it by a ``next`` edge to the last memory of its session. ``linking``: see
        ``remember_many``. Returned is the memory that stands for the text: a new one, or the old one that it was merged
        into or that the pack keeps in its place; ``remember_many`` says which in ``outcomes``.

        >>> lab.remember("Deploys go out on Tuesdays", kind="convention", project="api")   # doctest: +SKIP
        """
        row = {"text": text, **fields}
        if at is not None:
            row["at"] = at
        return self.remember_many([row], chain=chain, linking=linking)[0]

    def remember_many(
        self,
        rows: Iterable[Mapping[str, Any] | str] | pl.DataFrame,
        *,
        chain: bool = False,
        linking: str | None = None,
    ) -> Remembered:
        """Remember several at once: one transaction, all or nothing.

        ``rows`` are dicts of ``text`` and any of ``memlab.FIELDS`` and ``at``, or texts, or a Polars frame with
        those columns. ``chain=True`` links consecutive memories of a session by ``next`` edges.

        ``linking`` says when they are compared with what is there, and with one another: "off" not at all; "now" before
        they are stored, so that a near-duplicate is never stored; "later" in the background, so that this returns at
        once and near-duplicates, which have their ids by then, are superseded by what stands for them. Unless given it
        is the pack's setting. Turns of a conversation (kind "turn") are never compared: they were said.

        The pack's ``link`` is asked of each new memory and its neighbours, ``resolve`` where it finds a conflict. What
        came of it is in ``outcomes``. InputError if an agent (a creator "agent:...") writes more bytes than the setting
        ``write-bytes`` or more memories of one session than ``session-writes``; nothing is stored then.
        """
        columns = columns_of(rows)
        count = len(next(iter(columns.values()), ()))
        check_linking(linking)
        if not count:
            return self._remembered(range(0), ())
        now = self._store.clock()
        unsure = without_confidence(columns, count)
        columns = checked_columns(columns, now=now)
        if "purged" in columns.get("status", ()):
            row = columns["status"].index("purged")
            raise InputError(f"Row {row}: what is purged is not remembered; see lab.delete and lab.purge.")
        screenings = screen_many(columns.pop("text"), personal=self._personal())
        texts = [screening.text for screening in screenings]
        refuse_names(columns)
        checked_operations(columns.get("operations", ()))
        speakers = columns.get("speaker") or [None] * count
        vectors = self._store.embedder.encode([as_said(*said) for said in zip(texts, speakers, strict=True)])
        linked: Linked | None = None
        with self._store.writing() as tx:
            state, pack = self._store.state, self._store.versions.pack
            first, how = tx.next_id, linking_of(pack, linking, columns)
            with_confidence(columns, unsure, pack)
            check_bytes(pack, columns, texts)
            columns = named(state, pack, columns)
            body = remembering(state, columns, first, count, chain=chain)
            if how == "now":
                linked = Comparing(self._store, self._recalls).before(body, texts, vectors, now=now)
                kept = linked.kept
                if not kept.all():
                    columns = {name: chosen(values, kept) for name, values in columns.items()}
                    texts, vectors, count = chosen(texts, kept), vectors[kept], int(kept.sum())
                    body = remembering(state, columns, first, count, chain=chain)
            check_sessions(state, pack, columns, count)
            ids = range(first, first + count)
            stands: Sequence[int] = ids if linked is None else linked.stands
            findings = tuple(
                (stands[row], found) for row, screening in enumerate(screenings) for found in screening.findings
            )
            if count:
                body |= redactions(findings)
                tx.payloads(ids, texts)
                tx.vectors(first, self._store.embedder.fingerprint, vectors)
                tx.event("remember", {**body, "waits": True} if how == "later" else body, at=now)
            if linked is not None and linked.change:
                tx.event("link", linked.change.body(), at=now)
        self._store.snapshot_if_due()
        if how == "later":
            self._linker.wake()
        return self._remembered(ids, findings, linked=linked, waits=how == "later")

    extend = remember_many

    def _remembered(
        self,
        ids: range,
        redacted: tuple[tuple[int, Finding], ...],
        *,
        linked: Linked | None = None,
        waits: bool = False,
    ) -> Remembered:
        return Remembered(self.__getitem__, lambda: self.memories, ids, redacted, linked=linked, waits=waits)

    # -- listening --------------------------------------------------------------------------------------------

    def admit(self, text: str, *, role: str = "user", project: str | None = None) -> Admission:
        """Whether an utterance is worth remembering, by the live pack's ``admit``; nothing is stored or logged.

        ``role`` is who speaks: user, assistant, system, tool. The answer carries its reasons, the detectors that fired
        (plain English; in other languages none does), and a confidence.

        >>> lab.admit("I prefer tabs").reasons                                             # doctest: +SKIP
        ('tells-preference',)
        """
        said = screen(checked_text(text), personal=self._personal()).text
        with self._reading():
            comparing = Comparing(self._store, self._recalls)
            return admission(self._store.versions.pack, comparing, said, utterance(said), role=role, project=project)

    def hear(
        self,
        text: str,
        *,
        role: str = "user",
        at: When | None = None,
        chain: bool = False,
        linking: str | None = None,
        **fields: Any,
    ) -> Heard:
        """Remember an utterance if it is worth it: ``admit``, then ``remember``.

        What is not admitted is not stored, and ``heard.admission`` says why. ``kind`` and ``provenance`` follow from
        the reasons and the role unless they are given: what corrects is a correction, what tells a preference is one;
        what a user says is user-stated, what an assistant says is inferred.

        >>> lab.hear("How are you?").memory is None                                        # doctest: +SKIP
        True
        """
        found = self.admit(text, role=role, project=fields.get("project"))
        if not found.admitted:
            return Heard(found, None)
        fields.setdefault("provenance", provenance_of(role, found.reasons))
        if (kind := kind_of(found.reasons)) is not None:
            fields.setdefault("kind", kind)
        return Heard(found, self.remember(text, at=at, chain=chain, linking=linking, **fields))

    # -- linking ----------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many memories wait to be linked in the background."""
        with self._reading() as state:
            return len(waiting_of(state))

    def settle(self, timeout: float | None = None) -> bool:
        """Link here and now what waits, for at most ``timeout`` seconds; whether nothing waits any more.

        Nothing has to call this: a thread does the same. It raises what hinders that thread: ReadOnlyLab, LabBusy, or
        what a policy raises.
        """
        return self._linker.settle(timeout)

    def link(
        self,
        source: MemoryLike,
        target: MemoryLike,
        relation: str = "relates-to",
        *,
        weight: float = 1.0,
    ) -> None:
        """Join two memories by an edge. InputError for what is purged: nothing leads to a row that is empty."""
        if relation not in RELATIONS:
            raise UnknownName("relation", relation, RELATIONS)
        if relation in _TO_NODES:
            raise InputError(f"An edge {relation} leads from a memory to a node of another kind, not to a memory.")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
            raise InputError(f"The weight of an edge lies in 0..1, not {weight!r}.")
        with self._store.writing() as tx:
            ends = self._row(source) + 1, self._row(target) + 1
            if ends[0] == ends[1]:
                raise InputError(f"Memory {ends[0]} cannot be linked to itself.")
            status = self._store.state.names["status"]
            gone = next((id for id in ends if status.at(id - 1) == "purged"), None)
            if gone is not None:
                raise InputError(f"Memory {gone} is purged: only its row is left, and nothing is linked to it.")
            change = Change(edges=edges_of([ends[0]], [ends[1]], relation, weight))
            tx.event("link", {"by": "hand", **change.body()}, at=self._store.clock())
