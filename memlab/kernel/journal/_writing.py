"""One write to the journal.

Rows are collected and checked, then written together when the ``with`` block ends.

Until then the database is unchanged, so that all readers see the previous state. This includes
readers in the same thread and labs in memory.
"""

from __future__ import annotations

import os
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from memlab.errors import DamagedLab, InputError, LabError
from memlab.kernel.base.arrays import Components, Ints
from memlab.kernel.base.clock import Micros
from memlab.kernel.journal._database import GENERATION, IDENTITY
from memlab.kernel.journal._events import (
    CHAIN_BYTES,
    RESTORE,
    SALT_BYTES,
    Body,
    Event,
    chain_event,
    checksum,
    decode_body,
    digest_text,
    encode_body,
    hash_digests,
    initial_chain,
)
from memlab.kernel.journal._reading import vectors_are_sound
from memlab.kernel.privacy import refuse, refuse_strings

if TYPE_CHECKING:
    from memlab.kernel.journal._reading import Reading
    from memlab.kernel.privacy import Screened

# These functions remove content from a journal that otherwise only grows, so that no byte of it
# stays in the files.
#
# The content is overwritten in one transaction. Then ``Journal.expunge`` empties the log and rewrites the database,
# because SQLite leaves old bytes in free pages, in the gaps of pages and in the log.


_AT_ONCE = 900
"""Ids in one statement; SQLite allows 999 parameters."""


@dataclass(frozen=True)
class Scrub:
    """A replacement of removed content: new bodies of events and slates, by ``seq``.

    The texts of the memories ``ids`` become empty, and their vectors become zero for every
    embedder.
    """

    bodies: Mapping[int, Body] = field(default_factory=dict)
    slates: Mapping[int, bytes] = field(default_factory=dict)
    ids: Sequence[int] = ()

    def apply(self, connection: sqlite3.Connection) -> bytes:
        """Overwrite the content within the open transaction; return the last chain value.

        The events that follow are chained again as another generation of the journal. So files that
        were derived from the former generation, such as snapshots, are no longer accepted.
        """
        # Freed bytes are zeroed immediately, so that little content stays if the disk is too full
        # for a new database.
        connection.execute("PRAGMA secure_delete=ON")
        bodies = [(encode_body("rewritten", body), seq) for seq, body in self.bodies.items()]
        connection.executemany("UPDATE event SET body = ? WHERE seq = ?", bodies)
        slates = [(blob, checksum(seq, blob), seq) for seq, blob in self.slates.items()]
        connection.executemany("UPDATE slate SET data = ?, sum = ? WHERE seq = ?", slates)
        emptied: set[int] = set()
        for id in self.ids:
            row = connection.execute("SELECT event FROM payload WHERE id = ?", (id,)).fetchone()
            emptied.update(row or ())
        # The digests are replaced too, so that no chain confirms a guess of a removed text.
        blank = [(os.urandom(CHAIN_BYTES), id) for id in self.ids]
        connection.executemany(
            "UPDATE payload SET text = '', salt = NULL, digest = ? WHERE id = ?", blank
        )
        _blank_vectors(connection, np.unique(np.asarray(self.ids, dtype=np.int64)))
        return rechain(connection, (*self.bodies, *self.slates), emptied)


def rechain(
    connection: sqlite3.Connection, changed: Collection[int], refilled: Collection[int]
) -> bytes:
    """Recompute the chain from the first changed event; return the last chain value.

    The journal then has a new generation. ``changed`` are events whose rows changed, and
    ``refilled`` are events whose texts changed.
    """
    (identity,) = connection.execute("SELECT value FROM meta WHERE key = ?", (IDENTITY,)).fetchone()
    (generation,) = connection.execute(
        "SELECT value FROM meta WHERE key = ?", (GENERATION,)
    ).fetchone()
    value = str(int(generation) + 1)
    connection.execute(
        "UPDATE meta SET value = ?, sum = ? WHERE key = ?",
        (value, checksum(GENERATION, value), GENERATION),
    )
    contents = _contents(connection, sorted(refilled))
    first = min((*changed, *refilled), default=1 << 62)
    row = connection.execute(
        "SELECT chain FROM event WHERE seq < ? ORDER BY seq DESC LIMIT 1", (first,)
    ).fetchone()
    link: bytes = initial_chain(identity) if row is None else row[0]
    rows = connection.execute(
        "SELECT seq, at, kind, body, content FROM event WHERE seq >= ? ORDER BY seq", (first,)
    )
    links = []
    for seq, at, kind, body, stored in rows:
        content = contents.get(seq, stored)
        link = chain_event(link, seq, at, kind, body, content)
        links.append((content, link, seq))
    connection.executemany("UPDATE event SET content = ?, chain = ? WHERE seq = ?", links)
    return link


def _contents(connection: sqlite3.Connection, events: Sequence[int]) -> dict[int, bytes]:
    """Return the digest of the texts of each of ``events`` that has texts.

    One statement over all texts serves 900 events.
    """
    digests: dict[int, list[bytes]] = {}
    for start in range(0, len(events), _AT_ONCE):
        some = events[start : start + _AT_ONCE]
        marks = ",".join("?" * len(some))
        for event, digest in connection.execute(
            f"SELECT event, digest FROM payload WHERE event IN ({marks}) ORDER BY id", some
        ):
            digests.setdefault(event, []).append(digest)
    return {event: hash_digests(hashes) for event, hashes in digests.items()}


def _blank_vectors(connection: sqlite3.Connection, ids: Ints) -> None:
    """Set the vectors of the memories ``ids`` to zero, for every embedder."""
    blocks = connection.execute("SELECT embedder, first_id, count, dim FROM vector").fetchall()
    for embedder, first, count, dim in blocks:
        start, stop = np.searchsorted(ids, [first, first + count])
        if start == stop:
            continue
        key = (embedder, first)
        query = "SELECT data, sum FROM vector WHERE embedder = ? AND first_id = ?"
        data, sum = connection.execute(query, key).fetchone()
        if not vectors_are_sound(embedder, first, count, dim, data, sum):
            raise DamagedLab(
                f"The vectors from memory {first} on were changed since they were written. {RESTORE}"
            )
        matrix = np.frombuffer(data, dtype=np.int8).reshape(count, dim).copy()
        matrix[ids[start:stop] - first] = 0
        data = matrix.tobytes()
        row = (data, checksum(embedder, first, count, dim, data), *key)
        connection.execute(
            "UPDATE vector SET data = ?, sum = ? WHERE embedder = ? AND first_id = ?", row
        )


HashPaths = Callable[[str], Collection[tuple[str, ...]]]
"""A function from a kind of event to the paths of the content hashes in its body."""

# SQLite's integers are signed and have 64 bits. The statements are kept together, so that they can
# be compared with the columns of the schema.
_LAST_ID = 2**63 - 1
_EVENT = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)"
_PAYLOAD = "INSERT INTO payload VALUES (?, ?, ?, ?, ?)"
_SLATE = "INSERT INTO slate VALUES (?, ?, ?)"
_QUESTION = "UPDATE slate SET data = ?, sum = ? WHERE seq = ?"
_SEGMENT = "INSERT INTO segment VALUES (?, ?, ?, ?)"
_DROP, _DROP_SLATES = (
    "DELETE FROM segment WHERE upto = ?",
    "DELETE FROM slate WHERE seq > ? AND seq <= ?",
)
# Values of ``meta`` are the only rows that are replaced.
_META = "INSERT INTO meta VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value, sum = excluded.sum"


def no_hashes(kind: str) -> Collection[tuple[str, ...]]:
    """Return no paths of hashes, so that every string of the event is screened for secrets."""
    return ()


class Transaction:
    """The write of one block ``with journal.write() as tx``.

    ``head`` is the last event before this write, and ``next_id`` the first id without a text. Ids are assigned by the
    journal, so that two writers, or an interrupted one, never assign the same id twice.
    """

    def __init__(
        self,
        head: int,
        chain: bytes,
        next_id: int,
        apply: Callable[[Transaction], Reading],
        hash_paths: HashPaths = no_hashes,
    ) -> None:
        self.head, self.next_id = head, next_id
        self._chain = chain
        self._preview = apply
        self._hash_paths = hash_paths
        self.slates = 0
        """The number of slates that this write adds."""
        self._next = head + 1
        self._open, self._applied = True, False
        self._events: list[tuple[int, int, str, bytes]] = []
        self._payloads: list[tuple[int, str]] = []
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._vectors: list[tuple[int, str, Components]] = []
        self._sources: list[tuple[str, str]] = []
        self._scrubs: list[Scrub] = []

    @property
    def events(self) -> list[Event]:
        """The events of this write, as a reader of the journal will see them."""
        return self.events_after(0)

    def events_after(self, seq: int) -> list[Event]:
        """Return the events of this write that come after the event ``seq``."""
        first = 0 if seq <= self.head else bisect_right(self._events, seq, key=itemgetter(0))
        return [
            Event(own, at, kind, decode_body(own, blob))
            for own, at, kind, blob in self._events[first:]
        ]

    @property
    def kinds(self) -> str:
        """The kinds of the events of this write, for the program's log."""
        return ", ".join(dict.fromkeys(kind for _, _, kind, _ in self._events)) or "no event"

    @property
    def rewrites(self) -> bool:
        """Whether this write changes rows of earlier writes."""
        return bool(self._scrubs)

    @property
    def last(self) -> tuple[int, bytes]:
        """The last event and the chain value of the journal after this write."""
        return self._next - 1, self._chain

    def preview(self) -> Reading:
        """Return the journal as it will be after this write.

        Nothing can be added to the write afterwards.
        """
        return self._preview(self)

    def texts(self, ids: range) -> list[str] | None:
        """Return the texts that this write stores for the memories ``ids``.

        Returns None if the write does not store all of them.
        """
        stored = dict(self._payloads)
        return [stored[id] for id in ids] if all(id in stored for id in ids) else None

    def vectors_from(self, fingerprint: str, first_id: int) -> list[tuple[int, Components]] | None:
        """Return the vectors of one embedder that this write stores from ``first_id`` on.

        Returns None if the write does not store an unbroken run of vectors from there.
        """
        blocks, expected = [], first_id
        for first, embedder, matrix in self._vectors:
            # Vectors before ``first_id`` were applied and read already.
            if embedder == fingerprint and first + len(matrix) > first_id:
                if first != expected:
                    return None
                blocks.append((first, matrix))
                expected = first + len(matrix)
        return blocks or None

    def vectors_of(self, fingerprint: str) -> list[tuple[int, Components]]:
        """Return the vector blocks that this write stores for an embedder, in call order."""
        return [
            (first, matrix) for first, embedder, matrix in self._vectors if embedder == fingerprint
        ]

    def source_of(self, hash: str) -> str | None:
        """Return the policy source that this write stores under ``hash``, or None if absent."""
        return dict(self._sources).get(hash)

    def event(self, kind: str, body: Body, *, at: Micros) -> int:
        """Append an event and return its ``seq``.

        ``body`` holds values that msgpack can encode, including bytes and lists. Raises
        PrivacyError if a string in it holds a secret, because callers redact texts before. Content
        hashes in the fields that ``Journal.hash_paths`` names are not screened.
        """
        if not isinstance(kind, str) or not _text(kind, "kind"):
            raise InputError(f"The kind of an event must be a word, not {kind!r}.")
        if isinstance(at, bool) or not isinstance(at, int) or not -(2**63) <= at <= _LAST_ID:
            raise InputError(
                f"The time of an event must be microseconds as an int of 64 bits, not {at!r}."
            )
        self._check_open()
        seq, blob = self._next, encode_body(kind, body)
        refuse_strings(body, f'event "{kind}"', hashes=self._hash_paths(kind))
        self._events.append((seq, at, kind, blob))
        self._next += 1
        return seq

    def payloads(self, ids: Sequence[int], texts: Sequence[Screened]) -> None:
        """Store the text of each new memory id.

        Ids must be new, and the texts must have passed the screening for secrets.
        """
        if len(ids) != len(texts):
            raise InputError(
                f"There are {len(ids):,} ids and {len(texts):,} texts: give one text for each id."
            )
        checked = [
            (_id(id), _text(text, f"text of {id}")) for id, text in zip(ids, texts, strict=True)
        ]
        self._check_open()
        self._payloads += checked

    def vectors(self, first_id: int, fingerprint: str, matrix: Components) -> None:
        """Store int8 vectors, shape (n, dim), for the ids from ``first_id`` on.

        The vectors replace earlier vectors of the same embedder.
        """
        first_id = _id(first_id)
        if (
            not isinstance(matrix, np.ndarray)
            or matrix.dtype != np.int8
            or matrix.ndim != 2
            or not matrix.shape[1]
        ):
            raise InputError(
                f"Vectors must be an int8 matrix of shape (n, dim), not {_kind_of(matrix)}."
            )
        self._check_open()
        if len(matrix):
            self._vectors.append((first_id, _text(fingerprint, "fingerprint"), matrix.copy()))

    def slate(self, seq: int, blob: bytes) -> None:
        """Attach the bytes of a slate to the event ``seq``, which must not have a slate yet."""
        if not 1 <= seq < self._next:
            raise InputError(
                f"A slate cannot be attached to event {seq}, which does not exist; the last event is {self._next - 1}."
            )
        data = bytes(blob)
        self._add(_SLATE, [(seq, data, checksum(seq, data))])
        self.slates += 1

    def segment(
        self, upto: int, parts: Mapping[str, bytes], questions: Mapping[int, bytes]
    ) -> None:
        """Store a segment that replaces slates or an earlier form of the segment.

        The queries of the slates are kept.
        """
        self._add(_DROP, [(upto,)])
        self._add(
            _SEGMENT,
            [(upto, name, data, checksum(upto, name, data)) for name, data in parts.items()],
        )
        self._add(_QUESTION, [(data, checksum(seq, data), seq) for seq, data in questions.items()])

    def drop_slates(self, after: int, upto: int) -> None:
        """Remove the segment that ends at ``upto``, with the queries of its recalls."""
        self._add(_DROP, [(upto,)])
        self._add(_DROP_SLATES, [(after, upto)])

    def source(self, hash: str, text: str) -> None:
        """Store a policy source under its hash. Does nothing if it is already stored."""
        self._check_open()
        refuse(_text(text, "source"), "source of a policy")
        self._sources.append((_text(hash, "hash"), text))

    def meta(self, key: str, value: str) -> None:
        """Set a metadata value by name, replacing any previous value."""
        row = (_text(key, "key"), _text(value, f'value of "{key}"'))
        refuse(value, f'value of "{key}"')
        self._add(_META, [(*row, checksum(*row))])

    def scrub(self, scrub: Scrub) -> None:
        """Overwrite rows of earlier writes; ``Journal.expunge`` then removes the bytes."""
        self._check_open()
        self._scrubs.append(scrub)

    def _add(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        """Queue the rows of an SQL statement until the write is applied."""
        self._check_open()
        self._rows.setdefault(statement, []).extend(rows)

    def _check_open(self) -> None:
        """Raise LabError if the block of this write has ended."""
        if not self._open:
            raise LabError("This write transaction has ended. Begin another with journal.write().")

    def _apply(self, connection: sqlite3.Connection) -> bool:
        """Write all rows into the open transaction, and return whether any row was written."""
        if self._applied:
            return True
        self._open = False
        self._put_events(connection)
        for statement, rows in self._rows.items():
            connection.executemany(statement, rows)
        for first_id, fingerprint, matrix in self._vectors:
            _put_vectors(connection, first_id, fingerprint, matrix)
        for hash, text in self._sources:
            _put_source(connection, hash, text)
        for scrub in self._scrubs:
            self._chain = scrub.apply(connection)
        self._applied = True
        return bool(
            self._events
            or self._payloads
            or self._rows
            or self._vectors
            or self._sources
            or self._scrubs
        )

    def _put_events(self, connection: sqlite3.Connection) -> None:
        """Insert the events, each with its chain value.

        The first event covers the texts of this write.
        """
        salts = os.urandom(SALT_BYTES * len(self._payloads))
        event = (
            self.head + 1 if self._events else 0
        )  # 0: the texts are covered only by their digests
        texts = []
        for number, (id, text) in enumerate(self._payloads):
            salt = salts[SALT_BYTES * number : SALT_BYTES * (number + 1)]
            texts.append((id, text, event, salt, digest_text(salt, id, text)))
        if texts:
            texts.sort()
            connection.executemany(_PAYLOAD, texts)
        rows: list[tuple[Any, ...]] = []
        for seq, at, kind, body in self._events:
            content = hash_digests(row[4] for row in texts) if texts and not rows else None
            self._chain = chain_event(self._chain, seq, at, kind, body, content)
            rows.append((seq, at, kind, body, content, self._chain))
        connection.executemany(_EVENT, rows)


def _put_source(connection: sqlite3.Connection, hash: str, text: str) -> None:
    """Insert a policy source. Raises InputError if another source has the same hash."""
    row = (hash, text, checksum(hash, text))
    connection.execute("INSERT INTO source VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row)
    if connection.execute("SELECT text FROM source WHERE hash = ?", (hash,)).fetchone() != (text,):
        raise InputError(
            f"The hash {hash} belongs to another policy source already. Pass the hash of this source."
        )


def _put_vectors(
    connection: sqlite3.Connection, first: int, fingerprint: str, matrix: Components
) -> None:
    """Insert a block of vectors; stored blocks that overlap it keep only their other ids."""
    embedder = _embedder(connection, fingerprint)
    stop = first + len(matrix)
    # Blocks never overlap, so at most one block that begins before this one reaches into it.
    overlapping = connection.execute(
        "SELECT first_id, count, dim, data, sum FROM vector "
        "WHERE embedder = :embedder AND first_id < :stop AND first_id >= coalesce("
        "(SELECT max(first_id) FROM vector WHERE embedder = :embedder AND first_id <= :first), :first) "
        "AND first_id + count > :first",
        {"embedder": embedder, "first": first, "stop": stop},
    ).fetchall()
    blocks = [(first, len(matrix), matrix.shape[1], matrix.tobytes())]
    for begin, count, dim, data, sum in overlapping:
        if not vectors_are_sound(embedder, begin, count, dim, data, sum):
            raise DamagedLab(
                f"The vectors from memory {begin} on were changed since they were written. {RESTORE}"
            )
        connection.execute(
            "DELETE FROM vector WHERE embedder = ? AND first_id = ?", (embedder, begin)
        )
        if begin < first:
            blocks.append((begin, first - begin, dim, data[: (first - begin) * dim]))
        if begin + count > stop:
            blocks.append((stop, begin + count - stop, dim, data[(stop - begin) * dim :]))
    rows = [(embedder, *block, checksum(embedder, *block)) for block in blocks]
    connection.executemany("INSERT INTO vector VALUES (?, ?, ?, ?, ?, ?)", rows)


def _embedder(connection: sqlite3.Connection, fingerprint: str) -> int:
    """Return the number of an embedder, assigning a number to a new embedder."""
    row = connection.execute(
        "SELECT id FROM embedder WHERE fingerprint = ?", (fingerprint,)
    ).fetchone()
    if row is not None:
        return int(row[0])
    (number,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM embedder").fetchone()
    connection.execute(
        "INSERT INTO embedder VALUES (?, ?, ?)",
        (number, fingerprint, checksum(number, fingerprint)),
    )
    return int(number)


def _id(id: int) -> int:
    """Return an id as an int. Raises InputError unless it is from 1 to 2^63 - 1."""
    if isinstance(id, bool | float | str) or not 1 <= id <= _LAST_ID:
        raise InputError(f"An id must be an integer from 1 to 2^63 - 1, not {id!r}.")
    return int(id)


def _text(text: str, what: str) -> str:
    """Return a text. Raises InputError if it is not valid Unicode."""
    if not isinstance(text, str):
        raise InputError(f"The {what} must be a str, not {type(text).__name__}.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The {what} is not valid Unicode: a lone surrogate at character {error.start}."
        ) from None
    return text


def _kind_of(value: object) -> str:
    """Describe the type of a value for a message."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return type(value).__name__
