"""The verb ``remember``: screen, embed, link and store texts in one transaction."""

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
from memlab.kernel.verbs.gate import calibrate_embedder, check_on
from memlab.kernel.verbs.linking import check_linking, choose_linking, get_comparer
from memlab.kernel.verbs.remembering.known import Known
from memlab.kernel.verbs.remembering.rows import (
    Rows,
    build_event_body,
    check_files,
    find_names,
    make_chain,
)
from memlab.kernel.verbs.results import Linked, Memory, Remembered, note_redactions
from memlab.kernel.verbs.tellings import record_tellings

Findings = tuple[tuple[int, Finding], ...]


class Remembering:
    """The verb ``remember`` of one lab.

    ``wake_linker`` is called when memories wait to be linked in the background.
    """

    def __init__(self, core: Core, wake_linker: Callable[[], None]) -> None:
        self._core, self._wake_linker = core, wake_linker

    def remember_one(
        self,
        text: str,
        *,
        at: When | None,
        chain: bool,
        linking: str | None,
        fields: Mapping[str, Any],
    ) -> Memory:
        """Store one text and return the memory that represents it; see ``Lab.remember``."""
        row = {"text": text, **fields}
        if at is not None:
            row["at"] = at
        return self.get_single(self.remember_many([row], chain=chain, linking=linking))

    def get_single(self, remembered: Remembered) -> Memory:
        """Return the memory that represents a single text, warning about redactions."""
        return note_redactions(
            self._core.memory(remembered.standing[0]),
            [finding for _, finding in remembered.redacted],
        )

    def remember_many(
        self,
        rows: Iterable[Mapping[str, Any] | str] | pl.DataFrame,
        *,
        chain: bool,
        linking: str | None,
        known_rows: Known | None = None,
        succeed: bool = False,
    ) -> Remembered:
        """Store all rows, or no row if any row is refused; see ``Lab.remember``.

        ``known_rows`` leaves out rows that the lab has already. With ``succeed``, new facts end older facts.
        """
        # Embedding may call a remote service, so it happens outside the lock, and ``known_rows`` is
        # examined again within it.
        columns = rows_to_columns(rows)
        check_linking(linking)
        store = self._core.store
        now = store.clock()
        fresh = self._check_rows(columns, now)
        if known_rows is not None and len(fresh):
            with store.reading() as state:
                fresh.keep(known_rows.fresh(state, fresh.columns, fresh.texts))
        if not len(fresh):
            return Remembered(self._core.memory, self._core.memories, range(0), ())
        self._embed(fresh)
        linked: Linked | None = None
        tellings: list[dict[str, Any]] = []
        with self._core.latencies.measured("write"), store.writing() as tx:
            if known_rows is not None:
                fresh.keep(known_rows.still(store.state))
            self._complete(fresh)
            first, mode = tx.next_id, choose_linking(store.versions.pack, linking, fresh.columns)
            if mode in ("now", "corrections"):
                linked = self._compare(
                    fresh, first, now, chain=chain, corrections=mode == "corrections"
                )
            if linked is not None:
                tellings = record_tellings(linked, fresh.columns, now)
                self._combine(fresh, linked.texts)
            findings = _assign_findings(
                fresh, range(first, first + len(fresh)) if linked is None else linked.standing
            )
            if linked is not None:
                fresh.keep(linked.added)
            ids = self._store(tx, fresh, findings, now, chain=chain, waits=mode == "later")
            self._end_older(tx, fresh, ids, linked, tellings, now, succeed=succeed)
        store.snapshot_if_due()
        if mode == "later":
            self._wake_linker()
        return Remembered(
            self._core.memory,
            self._core.memories,
            ids,
            findings,
            linked=linked,
            waits=mode == "later",
        )

    def _check_rows(self, values: Mapping[str, Sequence[Any]], now: int) -> Rows:
        """Return the checked rows, with secrets removed from their texts."""
        if not len(next(iter(values.values()), ())):
            return Rows({}, values, [], [])
        columns = validate_columns(values, now=now, open_words=self._core.open_words)
        if "purged" in columns.get("status", ()):
            row = columns["status"].index("purged")
            raise InputError(
                f"Row {row}: a new memory cannot have the status purged. Use lab.purge on a stored one."
            )
        screenings = screen_many(columns.pop("text"), personal=self._core.personal())
        refuse_secret_values(columns)
        if "operations" in columns:
            load_part("check-operations")(columns["operations"])
        return Rows(
            columns,
            values,
            [screening.text for screening in screenings],
            [screening.findings for screening in screenings],
        )

    def _embed(self, fresh: Rows) -> None:
        """Set the vectors of the new rows.

        A remote embedder gets no text of a project for which memory is off.
        """
        store = self._core.store
        calibrate_embedder(self._core)
        with store.reading() as state:
            check_on(store, state, fresh.columns.get("project", [None]))
        with self._core.latencies.measured("embedding"):
            fresh.vectors = store.embedder.encode(
                [fresh.embedded_text(row) for row in range(len(fresh))]
            )

    def _complete(self, fresh: Rows) -> None:
        """Fill in values that the pack decides; refuse rows that the pack does not admit."""
        store = self._core.store
        state, pack = store.state, store.versions.pack
        check_on(store, state, fresh.columns.get("project", [None]))
        check_files(pack, fresh.columns)
        fresh.fill_from_pack(pack)
        if "creator" in fresh.columns:
            fresh.check_bytes(pack)
        fresh.columns = canonicalize_names(state, pack, fresh.columns)

    def _compare(
        self, fresh: Rows, first: int, now: int, *, chain: bool, corrections: bool
    ) -> Linked | None:
        """Compare new rows with stored memories, and return the outcomes and edges, or None if there are none.

        ``first`` is the id of the first row. With ``chain``, edges that join the rows in order are added.
        With ``corrections``, only statements that report a change end others.
        """
        columns, count = fresh.columns, len(fresh)
        edges = make_chain(self._core.store.state, columns, first, count) if chain else None
        return get_comparer(self._core).before(
            columns,
            edges,
            fresh.texts,
            fresh.vectors,
            first=first,
            now=now,
            corrections=corrections,
        )

    def _combine(self, fresh: Rows, texts: Mapping[int, str]) -> None:
        """Replace new texts by combinations with the texts that they supersede."""
        if not texts:
            return
        personal = self._core.personal()
        for row, text in texts.items():
            fresh.texts[row] = screen(text, personal=personal).text
        fresh.vectors[list(texts)] = self._core.store.embedder.encode(
            [fresh.embedded_text(row) for row in texts]
        )
        if "summary" in fresh.columns:  # the given summary covers only one of the two texts
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
        """Write the event that adds the rows; return their ids. With ``waits``, the rows are linked later.

        With ``chain``, edges join the rows in order.
        """
        store = self._core.store
        state, pack, first = store.state, store.versions.pack, tx.next_id
        fresh.infer(pack)
        if "creator" in fresh.columns:
            fresh.check_sessions(state, pack)
        ids = range(first, first + len(fresh))
        if ids:
            names = find_names(state, pack, fresh.columns, fresh.texts)
            body = build_event_body(
                state, fresh.columns, first, len(ids), chain=chain, named_in=names
            )
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
        tellings: list[dict[str, Any]],
        now: int,
        *,
        succeed: bool,
    ) -> None:
        """Write the event that links new memories and, with ``succeed``, ends older facts.

        ``linked`` has the outcomes of the comparison, and ``tellings`` provenance records that the event
        gets too.
        """
        store = self._core.store
        change, times, superseded = Change(), list[Any](), frozenset[int]()
        if linked is not None:
            change, times = linked.change, linked.fact_times
            superseded = frozenset(goes for _, _, goes, _ in linked.superseded)
        for end_older in list_hooks("facts-stored") if succeed else ():
            succeeded = end_older(
                store.state,
                store.versions.pack,
                fresh.columns,
                ids,
                gone=superseded,
                told=times,
                now=now,
            )
            change += succeeded.change
            restated = {id for id, _, _ in succeeded.fact_times}
            times = [*(entry for entry in times if entry[0] not in restated), *succeeded.fact_times]
        if change or tellings or times:
            body = (
                change.body()
                | ({"tellings": tellings} if tellings else {})
                | ({"fact_times": times} if times else {})
            )
            tx.event("link", body, at=now)


def _assign_findings(fresh: Rows, standing: Sequence[int]) -> Findings:
    """Return each redacted secret with the id of the memory that stores its row."""
    return tuple(
        (standing[row], finding)
        for row, findings in enumerate(fresh.findings)
        for finding in findings
    )
