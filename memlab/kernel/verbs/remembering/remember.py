"""Remembering: texts are screened, embedded, linked if the pack says so, and stored in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.clock import When
from memlab.kernel.hooks import list_hooks, load_part
from memlab.kernel.journal import Transaction
from memlab.kernel.privacy import Finding, screen, screen_many
from memlab.kernel.state import (
    Change,
    describe_redactions,
    refuse_secret_values,
    rows_to_columns,
    validate_columns,
)
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.fact_rows import canonicalize_names
from memlab.kernel.verbs.gate import check_on
from memlab.kernel.verbs.linking import check_linking, choose_linking, get_comparer
from memlab.kernel.verbs.remembering.known import Known
from memlab.kernel.verbs.remembering.rows import (
    Rows,
    chained,
    check_files,
    event_body,
    names_in_texts,
)
from memlab.kernel.verbs.results import Linked, Memory, Remembered, with_redacted
from memlab.kernel.verbs.tellings import tellings_in

__all__ = ["Remembering"]

Findings = tuple[tuple[int, Finding], ...]


class Remembering:
    """How one lab remembers. ``wake_linker`` is called where something is to be linked in the background."""

    def __init__(self, core: Core, wake_linker: Callable[[], None]) -> None:
        self._core, self._wake_linker = core, wake_linker

    def one(
        self,
        text: str,
        *,
        at: When | None,
        chain: bool,
        linking: str | None,
        fields: Mapping[str, Any],
    ) -> Memory:
        """Return the memory that represents one text; see ``Lab.remember``."""
        row = {"text": text, **fields}
        if at is not None:
            row["at"] = at
        return self.alone(self.many([row], chain=chain, linking=linking))

    def alone(self, remembered: Remembered) -> Memory:
        """Return the memory of a call that gave one text; warn of what was taken out of it."""
        return with_redacted(
            self._core.memory(remembered.standing[0]), [found for _, found in remembered.redacted]
        )

    def many(
        self,
        rows: Iterable[Mapping[str, Any] | str] | pl.DataFrame,
        *,
        chain: bool,
        linking: str | None,
        known: Known | None = None,
        succeed: bool = False,
    ) -> Remembered:
        """Store all of ``rows`` or, where one is refused, none; see ``Lab.remember``.

        ``known`` leaves out what is here already. ``succeed``: facts among them end older ones; see ``succession``.
        """
        given = rows_to_columns(rows)
        check_linking(linking)
        store = self._core.store
        now = store.clock()
        fresh = self._read(given, now)
        if known is not None and len(fresh):
            with store.reading() as state:
                fresh.keep(known.fresh(state, fresh.columns, fresh.texts))
        if not len(fresh):
            return Remembered(self._core.memory, self._core.memories, range(0), ())
        self._embed(fresh)
        linked: Linked | None = None
        told: list[dict[str, Any]] = []
        with self._core.latencies.measured("write"), store.writing() as tx:
            if known is not None:
                fresh.keep(known.still(store.state))
            self._complete(fresh)
            first, how = tx.next_id, choose_linking(store.versions.pack, linking, fresh.columns)
            if how == "now":
                linked = self._compare(fresh, first, now, chain=chain)
                told = tellings_in(linked, fresh.columns, now)
                self._combine(fresh, linked.texts)
            findings = _by_id(
                fresh, range(first, first + len(fresh)) if linked is None else linked.standing
            )
            if linked is not None:
                fresh.keep(linked.added)
            ids = self._store(tx, fresh, findings, now, chain=chain, waits=how == "later")
            self._end_older(tx, fresh, ids, linked, told, now, succeed=succeed)
        store.snapshot_if_due()
        if how == "later":
            self._wake_linker()
        return Remembered(
            self._core.memory,
            self._core.memories,
            ids,
            findings,
            linked=linked,
            waits=how == "later",
        )

    def _read(self, given: Mapping[str, Sequence[Any]], now: int) -> Rows:
        """Check what a caller gives, and take secrets out of its texts."""
        if not len(next(iter(given.values()), ())):
            return Rows({}, given, [], [])
        columns = validate_columns(given, now=now, open_words=self._core.open_words)
        if "purged" in columns.get("status", ()):
            row = columns["status"].index("purged")
            raise InputError(
                f"Row {row}: a new memory cannot have the status purged; see lab.forget(how='delete') and lab.purge."
            )
        screenings = screen_many(columns.pop("text"), personal=self._core.personal())
        refuse_secret_values(columns)
        if "operations" in columns:
            load_part("check-operations")(columns["operations"])
        return Rows(
            columns, given, [one.text for one in screenings], [one.findings for one in screenings]
        )

    def _embed(self, fresh: Rows) -> None:
        """Compute the vectors; an embedder may be elsewhere, so it is not sent what will be refused."""
        store = self._core.store
        with store.reading() as state:
            check_on(store, state, fresh.columns.get("project", [None]))
        with self._core.latencies.measured("embedding"):
            fresh.vectors = store.embedder.encode([fresh.said(row) for row in range(len(fresh))])

    def _complete(self, fresh: Rows) -> None:
        """Fill in what the pack decides; refuse what it does not let in."""
        store = self._core.store
        state, pack = store.state, store.versions.pack
        check_on(store, state, fresh.columns.get("project", [None]))
        check_files(pack, fresh.columns)
        fresh.fill_from_pack(pack)
        if "creator" in fresh.columns:
            fresh.check_bytes(pack)
        fresh.columns = canonicalize_names(state, pack, fresh.columns)

    def _compare(self, fresh: Rows, first: int, now: int, *, chain: bool) -> Linked:
        """Decide what becomes of the rows beside what is stored."""
        columns, count = fresh.columns, len(fresh)
        edges = chained(self._core.store.state, columns, first, count) if chain else None
        return get_comparer(self._core).before(
            columns, edges, fresh.texts, fresh.vectors, first=first, now=now
        )

    def _combine(self, fresh: Rows, texts: Mapping[int, str]) -> None:
        """Give rows the texts that say what they and what they supersede say."""
        if not texts:
            return
        personal = self._core.personal()
        for row, text in texts.items():
            fresh.texts[row] = screen(text, personal=personal).text
        fresh.vectors[list(texts)] = self._core.store.embedder.encode(
            [fresh.said(row) for row in texts]
        )
        if "summary" in fresh.columns:  # what was given sums up one of the two texts
            fresh.fill("summary", dict.fromkeys(texts))

    def _store(
        self,
        tx: Transaction,
        fresh: Rows,
        findings: Findings,
        now: int,
        *,
        chain: bool,
        waits: bool,
    ) -> range:
        """Write the event that adds the rows; return their ids."""
        store = self._core.store
        state, pack, first = store.state, store.versions.pack, tx.next_id
        fresh.infer(pack)
        if "creator" in fresh.columns:
            fresh.check_sessions(state, pack)
        ids = range(first, first + len(fresh))
        if ids:
            names = names_in_texts(state, pack, fresh.columns, fresh.texts)
            body = event_body(state, fresh.columns, first, len(ids), chain=chain, named_in=names)
            body |= describe_redactions(findings)
            tx.payloads(ids, fresh.texts)
            tx.vectors(first, store.embedder.fingerprint, fresh.vectors)
            tx.event("remember", {**body, "waits": True} if waits else body, at=now)
        return ids

    def _end_older(
        self,
        tx: Transaction,
        fresh: Rows,
        ids: range,
        linked: Linked | None,
        told: list[dict[str, Any]],
        now: int,
        *,
        succeed: bool,
    ) -> None:
        """Write the event of what linking decided and, with ``succeed``, of older facts that new ones end."""
        store = self._core.store
        change, times, gone = Change(), list[Any](), frozenset[int]()
        if linked is not None:
            change, times = linked.change, linked.fact_times
            gone = frozenset(goes for _, _, goes, _ in linked.superseded)
        for ended_by in list_hooks("facts-stored") if succeed else ():
            succeeded = ended_by(
                store.state, store.versions.pack, fresh.columns, ids, gone=gone, told=times, now=now
            )
            change += succeeded.change
            again = {id for id, _, _ in succeeded.fact_times}
            times = [*(one for one in times if one[0] not in again), *succeeded.fact_times]
        if change or told or times:
            body = (
                change.body()
                | ({"tellings": told} if told else {})
                | ({"fact_times": times} if times else {})
            )
            tx.event("link", body, at=now)


def _by_id(fresh: Rows, standing: Sequence[int]) -> Findings:
    """Return what was taken out of the texts, with the id of what stands for each row."""
    return tuple(
        (standing[row], found) for row, findings in enumerate(fresh.findings) for found in findings
    )
