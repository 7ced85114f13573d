"""Reading of a journal.

Every row is checked against the chain or the checksum that was written with it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memlab.errors import DamagedLab, UnknownName
from memlab.kernel.base.arrays import Components
from memlab.kernel.journal._database import GENERATION, IDENTITY, translate_error
from memlab.kernel.journal._events import (
    RESTORE,
    Event,
    chain_event,
    checksum,
    decode_body,
    digest_text,
    initial_chain,
)
from memlab.kernel.journal._vault import sql_errors

SEALING = ("seal", "thin")
"""The kinds of events that hold digests of new and thinned segments."""

# One row for each kind of content: name, number of rows, bytes. The names are shown by ``memlab du``.
_USAGE = """
SELECT 'events: ' || kind, count(*), sum(length(body)) FROM event GROUP BY kind UNION ALL
SELECT 'texts', count(*), sum(length(CAST(text AS BLOB))) FROM payload UNION ALL
SELECT 'vectors', sum(count), sum(length(data)) FROM vector UNION ALL
SELECT 'policies', count(*), sum(length(text)) FROM source UNION ALL
SELECT 'slates', count(*), sum(length(data)) FROM slate WHERE seq > (SELECT coalesce(max(upto), 0) FROM segment)
UNION ALL
SELECT 'questions of sealed slates', count(*), sum(length(data)) FROM slate
    WHERE seq <= (SELECT coalesce(max(upto), 0) FROM segment) UNION ALL
SELECT 'sealed slates: ' || CASE WHEN name IN ('', 'recalls', 'memory_id', 'score', 'rank', 'propensity')
    THEN 'scores and what was shown' ELSE 'features' END, count(DISTINCT upto), sum(length(data))
    FROM segment GROUP BY 1
"""

# Reads go in chunks, so that a long one neither blocks writers nor fills memory: 256 events, 900 ids (below SQLite's
# limit of 999 parameters), 32,768 vectors of some 400 bytes, or 4 MB of slates.
_HEAD = "SELECT coalesce(max(seq), 0) FROM event"
_EVENTS_AT_ONCE, _IDS_AT_ONCE = 256, 900
_ROWS_AT_ONCE = 32_768  # of some 400 bytes
_SLATE_BYTES_AT_ONCE = 4_000_000  # some 120 slates
_UNREADABLE = (TypeError, ValueError, AttributeError, OverflowError)
"""The errors that damaged rows cause.

The values of such rows have other types than memlab wrote.
"""


class Reading:
    """The contents of a journal's database, read through one connection.

    Methods raise DamagedLab for changed rows.
    """

    def __init__(
        self,
        path: Path | None,
        reader: sqlite3.Connection,
        guard: contextlib.AbstractContextManager[Any],
    ) -> None:
        self.path = path
        self._reader, self._reading = reader, guard
        self._verified = 0
        """The number of the last event that this object has compared with the chain."""

    # -- Identity -------------------------------------------------------------------------------------------------

    @property
    def head(self) -> int:
        """The ``seq`` of the last event, or 0 if there is none.

        Reading it takes 4 microseconds.
        """
        return int(self._rows(_HEAD)[0][0])

    @property
    def identity(self) -> str:
        """The identity of the journal, which its copies share."""
        return self.meta(IDENTITY) or ""

    @property
    def generation(self) -> int:
        """The number of purges that have rewritten the journal."""
        return int(self.meta(GENERATION) or 0)

    def chain(self, seq: int) -> bytes | None:
        """Return the chain value at an event, or None if there is no such event.

        The number 0 stands for the moment before the first event. Two journals have the same value
        only if they hold the same events and texts up to that event.
        """
        if seq == 0:
            return initial_chain(self.identity)
        rows = self._rows("SELECT chain FROM event WHERE seq = ?", (seq,))
        return bytes(rows[0][0]) if rows and isinstance(rows[0][0], bytes) else None

    # -- Rows -----------------------------------------------------------------------------------------------------

    def events(
        self, after: int = 0, *, upto: int | None = None, kinds: Iterable[str] | None = None
    ) -> Iterator[Event]:
        """Yield the events with ``after < seq <= upto`` in order.

        Without ``upto``, reading ends with the last event at the time of the call. ``kinds``
        selects kinds of events.
        """
        upto = self.head if upto is None else upto
        if kinds is None:
            for seq, at, kind, body in self._chained(after, upto):
                yield Event(seq, at, kind, decode_body(seq, body))
            return
        # An event whose kind is damaged would be missed by the selection below.
        self.verify_events(upto)
        chosen = list(kinds)
        while after < upto:
            rows = self._rows(
                f"SELECT seq, at, kind, body FROM event WHERE seq > ? AND seq <= ? AND kind IN ({_marks(chosen)}) "
                "ORDER BY seq LIMIT ?",
                (after, upto, *chosen, _EVENTS_AT_ONCE),
            )
            for seq, at, kind, body in rows:
                yield Event(seq, at, kind, decode_body(seq, body))
            if len(rows) < _EVENTS_AT_ONCE:
                return
            after = rows[-1][0]

    def verify_events(self, upto: int) -> None:
        """Check the events up to ``upto`` against the chain, skipping verified events."""
        for _ in self._chained(self._verified, upto):
            pass

    def _chained(self, after: int, upto: int) -> Iterator[tuple[int, int, str, bytes]]:
        """Yield (number, time, kind, body) of the events after ``after`` up to ``upto``, checked against the hash chain.

        Raises DamagedLab if an event is missing or changed.
        """
        before = self.chain(after) if after < upto else None
        while after < upto:
            rows = self._rows(
                "SELECT seq, at, kind, body, content, chain FROM event WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
                (after, upto, _EVENTS_AT_ONCE),
            )
            if rows and _check_link(before, after, rows[0]) is None:
                before = self.chain(
                    after
                )  # a purge in another process may have rewritten the chain
            for row in rows:
                link = _check_link(before, after, row)
                if link is None:
                    raise DamagedLab(
                        f"{self._name}: event {after + 1} was changed since it was written. {RESTORE}"
                    )
                after, before = row[0], link
                yield row[0], row[1], row[2], row[3]
            if not rows:
                raise DamagedLab(f"{self._name}: event {after + 1} is missing. {RESTORE}")
            if self._verified >= rows[0][0] - 1:
                self._verified = max(self._verified, after)

    def count(self, kind: str) -> int:
        """Return the number of events of a kind."""
        head = self.head
        self.verify_events(head)
        return int(
            self._rows("SELECT count(*) FROM event WHERE kind = ? AND seq <= ?", (kind, head))[0][0]
        )

    def last_at(self, instant: int) -> int:
        """Return the ``seq`` of the last event at or before ``instant``, or 0 without an event.

        ``instant`` is in microseconds UTC.
        """
        self.verify_events(self.head)
        return int(
            self._rows("SELECT coalesce(max(seq), 0) FROM event WHERE at <= ?", (instant,))[0][0]
        )

    def texts(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each id, in the order of ``ids``.

        A ``range`` is read with one statement. Raises UnknownName if an id has no text.
        """
        ids = ids if isinstance(ids, range) else [int(id) for id in ids]
        stored: dict[int, str] = {}
        columns = "SELECT id, text, salt, digest FROM payload WHERE id"
        if isinstance(ids, range) and ids.step == 1:
            stored.update(
                self._texts(self._rows(f"{columns} >= ? AND id < ?", (ids.start, ids.stop)))
            )
        else:
            for start in range(0, len(ids), _IDS_AT_ONCE):
                some = ids[start : start + _IDS_AT_ONCE]
                stored.update(
                    self._texts(self._rows(f"{columns} IN ({_marks(some)})", tuple(some)))
                )
        try:
            return [stored[id] for id in ids]
        except KeyError as error:
            raise UnknownName("stored text of memory", int(error.args[0]), None) from None

    def _texts(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, str]]:
        """Yield the id and the text of each row. Raises DamagedLab if a row was changed."""
        for id, text, salt, digest in rows:
            if not text_is_sound(id, text, salt, digest):
                raise DamagedLab(
                    f"{self._name}: the text of memory {id} was changed since it was written. {RESTORE}"
                )
            yield id, text

    def vectors(self, fingerprint: str, *, after_id: int = 0) -> Iterator[tuple[int, Components]]:
        """Yield the vectors of one embedder as read-only arrays, ordered by id.

        Each item is ``(first_id, matrix of shape (n, dim))``. Adjacent blocks are joined. A gap
        between two matrices is a gap in the ids.
        """
        embedder = self._rows("SELECT id, sum FROM embedder WHERE fingerprint = ?", (fingerprint,))
        if not embedder:
            return
        if embedder[0][1] != checksum(embedder[0][0], fingerprint):
            raise DamagedLab(
                f"{self._name}: an embedder was changed since it was written. {RESTORE}"
            )
        first = after_id + 1
        while True:
            blocks = self._rows(
                "SELECT first_id, count, dim, data, sum FROM vector WHERE embedder = :embedder "
                "AND first_id + count > :first AND first_id >= coalesce((SELECT max(first_id) FROM vector "
                "WHERE embedder = :embedder AND first_id <= :first), 0) ORDER BY first_id",
                {"embedder": embedder[0][0], "first": first},
                budget=(1, _ROWS_AT_ONCE),
            )
            if not blocks:
                return
            for block in blocks:
                if not vectors_are_sound(embedder[0][0], *block):
                    raise DamagedLab(
                        f"{self._name}: the vectors from memory {block[0]} on were changed since they were written. "
                        f"{RESTORE}"
                    )
            for begin, matrix in _join_blocks(blocks):
                cut = max(0, first - begin)
                yield begin + cut, matrix[cut:]
            first = blocks[-1][0] + blocks[-1][1]

    def slates(self, after: int = 0, *, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the pair ``(seq, bytes)`` of each event with a slate, in order.

        Events satisfy ``after < seq <= upto``.
        """
        upto = self.head if upto is None else upto
        while True:
            rows = self._rows(
                "SELECT seq, data, length(data), sum FROM slate WHERE seq > ? AND seq <= ? ORDER BY seq",
                (after, upto),
                budget=(2, _SLATE_BYTES_AT_ONCE),
            )
            if not rows:
                return
            for seq, data, _, sum in rows:
                if not row_is_sound(sum, seq, data):
                    raise DamagedLab(
                        f"{self._name}: the slate of event {seq} was changed since it was written. {RESTORE}"
                    )
                yield seq, data
            after = rows[-1][0]

    def segments(self) -> dict[int, str | None]:
        """Return the digest of each segment ever written, keyed by its last recall.

        The digest is None if the segment was dropped.
        """
        digests: dict[int, str | None] = {}
        for event in self.events(kinds=SEALING):
            if event.kind == "seal":
                digests[event.body["upto"]] = event.body["digest"]
            else:
                digests |= dict(zip(event.body["upto"], event.body["digest"], strict=True))
        return dict(sorted(digests.items()))

    def segment_parts(self, upto: int) -> dict[str, bytes]:
        """Return the parts of a segment of sealed slates by name, without checking them.

        Compare their digest to find out whether they are sound.
        """
        rows = self._rows("SELECT name, data FROM segment WHERE upto = ? ORDER BY name", (upto,))
        return {
            name: data for name, data in rows if isinstance(name, str) and isinstance(data, bytes)
        }

    def segment_part(self, upto: int, name: str) -> bytes:
        """Return one part of a segment of sealed slates.

        Raises DamagedLab if the part is missing or was changed.
        """
        rows = self._rows("SELECT data, sum FROM segment WHERE upto = ? AND name = ?", (upto, name))
        if not rows or not row_is_sound(rows[0][1], upto, name, rows[0][0]):
            raise DamagedLab(
                f"{self._name}: the sealed slates up to recall {upto} were changed since they were written. {RESTORE}"
            )
        return bytes(rows[0][0])

    def usage(self) -> list[tuple[str, int, int]]:
        """Return the name, row count and size in bytes of each kind of content in the database."""
        contents = [
            (name, int(count or 0), int(size or 0)) for name, count, size in self._rows(_USAGE)
        ]
        (pages,), (page,) = (
            self._rows("PRAGMA freelist_count")[0],
            self._rows("PRAGMA page_size")[0],
        )
        return [*contents, ("free pages", pages, pages * int(page))]

    def unsealed(self) -> int:
        """Return the number of slates that no segment contains yet."""
        return int(
            self._rows(
                "SELECT count(*) FROM slate WHERE seq > (SELECT coalesce(max(upto), 0) FROM segment)"
            )[0][0]
        )

    def without_slate(self) -> list[int]:
        """Return the logged recalls whose slate and query are no longer stored."""
        self.verify_events(self.head)
        gone = "SELECT seq FROM event WHERE kind = 'recall' AND seq NOT IN (SELECT seq FROM slate)"
        return [seq for (seq,) in self._rows(gone)]

    def source(self, hash: str) -> str:
        """Return the policy source with the given hash. Raises UnknownName for an unknown hash."""
        rows = self._rows("SELECT text, sum FROM source WHERE hash = ?", (hash,))
        if not rows:
            raise UnknownName(
                "policy source",
                hash,
                [stored for (stored,) in self._rows("SELECT hash FROM source")],
            )
        if not row_is_sound(rows[0][1], hash, rows[0][0]):
            raise DamagedLab(
                f"{self._name}: the policy source {hash[:12]} was changed since it was written. {RESTORE}"
            )
        return str(rows[0][0])

    def meta(self, key: str) -> str | None:
        """Return a metadata value by name, or None if it was never set."""
        rows = self._rows("SELECT value, sum FROM meta WHERE key = ?", (key,))
        if rows and not row_is_sound(rows[0][1], key, rows[0][0]):
            raise DamagedLab(
                f'{self._name}: the value "{key}" was changed since it was written. {RESTORE}'
            )
        return str(rows[0][0]) if rows else None

    # -- Private --------------------------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return str(self.path or "the lab in memory")

    def _check_usable(self) -> None:
        """Raise an error if the connection cannot be used; subclasses override this."""

    def _rows(
        self,
        statement: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        *,
        budget: tuple[int, int] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Return rows up to the one at which the sum of a column reaches a budget, or all rows.

        ``budget`` has the column's index and the maximum sum.
        """
        self._check_usable()
        try:
            with self._reading:
                cursor = self._reader.execute(statement, parameters)
                if budget is None:
                    return cursor.fetchall()
                column, left = budget
                rows = []
                with contextlib.closing(cursor):
                    for row in cursor:
                        rows.append(row)
                        left -= row[column] if isinstance(row[column], int) else 1
                        if left <= 0:
                            break
                return rows
        except sql_errors() as error:
            raise translate_error(error, self.path) from error


def _check_link(before: bytes | None, after: int, row: tuple[Any, ...]) -> bytes | None:
    """Return the chain hash of ``row`` if it is the unchanged event after event ``after``, otherwise None.

    ``before`` is the chain hash of event ``after``; without it, the result is None.
    """
    link: bytes = row[5]
    is_next = before is not None and row[0] == after + 1 and compute_link(before, *row[:5]) == link
    return link if is_next else None


def compute_link(
    before: bytes, seq: Any, at: Any, kind: Any, body: Any, content: Any
) -> bytes | None:
    """Compute an event's chain value from its values and the previous chain value.

    Returns None if no event has such values, so that the row is damaged.
    """
    try:
        return chain_event(before, seq, at, kind, body, content)
    except (*_UNREADABLE, struct.error):
        return None


def text_is_sound(id: int, text: Any, salt: Any, digest: Any) -> bool:
    """Return whether a row of ``payload`` is unchanged.

    The row of a purged text has neither salt nor text.
    """
    if salt is None:
        return (
            text == "" and isinstance(digest, bytes) and len(digest) == len(digest_text(b"", 0, ""))
        )
    try:
        return bool(digest_text(salt, id, text) == digest)
    except _UNREADABLE:
        return False


def vectors_are_sound(embedder: Any, first: Any, count: Any, dim: Any, data: Any, sum: Any) -> bool:
    """Return whether a row of ``vector`` is unchanged."""
    if not (
        isinstance(count, int)
        and isinstance(dim, int)
        and isinstance(data, bytes)
        and len(data) == count * dim
    ):
        return False
    return row_is_sound(sum, embedder, first, count, dim, data)


def row_is_sound(sum: Any, *values: Any) -> bool:
    """Return whether the values of a row match the stored checksum."""
    return all(isinstance(value, int | str | bytes) for value in values) and bool(
        sum == checksum(*values)
    )


def _marks(values: Sequence[object]) -> str:
    """Return SQL placeholders, one for each value."""
    return ",".join("?" * len(values))


def _join_blocks(blocks: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Components]]:
    """Join vector blocks with adjacent ids; yield each first id and joined matrix."""
    start = 0
    for stop in range(1, len(blocks) + 1):
        first, count, dim = blocks[stop - 1][:3]
        if stop < len(blocks) and blocks[stop][0] == first + count and blocks[stop][2] == dim:
            continue
        run = blocks[start:stop]
        data = run[0][3] if len(run) == 1 else b"".join(block[3] for block in run)
        yield (
            run[0][0],
            np.frombuffer(data, dtype=np.int8).reshape(sum(block[1] for block in run), dim),
        )
        start = stop
