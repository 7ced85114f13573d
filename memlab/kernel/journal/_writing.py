"""One write: rows are gathered and checked, then written in one go when the ``with`` block ends.

Until then the database is untouched, so readers (this thread as well, in memory as on disk) see the state before.
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
from numpy.typing import NDArray

from memlab.errors import DamagedLab, InputError, LabError
from memlab.kernel.base.clock import Micros
from memlab.kernel.journal._database import GENERATION, IDENTITY
from memlab.kernel.journal._events import (
    CHAIN_BYTES,
    RESTORE,
    SALT_BYTES,
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

__all__ = ["HashPaths", "Scrub", "Transaction", "no_hashes", "rechain"]


# Taking content out of a journal that otherwise only grows, so that no byte of it is left in its files.
#
# What is taken out is overwritten in one transaction; then ``Journal.expunge`` empties the log and writes the database
# again, because SQLite leaves old bytes in free pages, in the gaps of pages and in the log.


_AT_ONCE = 900


@dataclass(frozen=True)
class Scrub:
    """What stands in the place of what is taken out: other bodies for events and other slates, by ``seq``.

    The texts of ``ids`` become empty, and their vectors zero, of every embedder.
    """

    bodies: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    slates: Mapping[int, bytes] = field(default_factory=dict)
    ids: Sequence[int] = ()

    def apply(self, connection: sqlite3.Connection) -> bytes:
        """Overwrite, within the transaction that is open, and chain what comes after again: another generation of the
        journal, so that nothing that was made of the one before is taken for its own. Returns the last chain value.
        """
        # freed bytes are zeroed at once: if the disk is too full for a new database, the old one holds little already
        connection.execute("PRAGMA secure_delete=ON")
        bodies = [(encode_body("rewritten", body), seq) for seq, body in self.bodies.items()]
        connection.executemany("UPDATE event SET body = ? WHERE seq = ?", bodies)
        slates = [(blob, checksum(seq, blob), seq) for seq, blob in self.slates.items()]
        connection.executemany("UPDATE slate SET data = ?, sum = ? WHERE seq = ?", slates)
        emptied: set[int] = set()
        for id in self.ids:
            found = connection.execute("SELECT event FROM payload WHERE id = ?", (id,)).fetchone()
            emptied.update(found or ())
        # another digest too: the old one is in no chain that could be asked whether a guess was right
        blank = [(os.urandom(CHAIN_BYTES), id) for id in self.ids]
        connection.executemany(
            "UPDATE payload SET text = '', salt = NULL, digest = ? WHERE id = ?", blank
        )
        _blank_vectors(connection, np.unique(np.asarray(self.ids, dtype=np.int64)))
        return rechain(connection, (*self.bodies, *self.slates), emptied)


def rechain(
    connection: sqlite3.Connection, changed: Collection[int], refilled: Collection[int]
) -> bytes:
    """Chain again from the first of the events whose rows ``changed`` or whose texts did (``refilled``) on, as another
    generation of the journal; returns the last chain value.
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
    for seq, at, kind, body, known in rows:
        content = contents.get(seq, known)
        link = chain_event(link, seq, at, kind, body, content)
        links.append((content, link, seq))
    connection.executemany("UPDATE event SET content = ?, chain = ? WHERE seq = ?", links)
    return link


def _contents(connection: sqlite3.Connection, events: Sequence[int]) -> dict[int, bytes]:
    """What these events keep of their texts: a sweep over all texts for each nine hundred of them."""
    digests: dict[int, list[bytes]] = {}
    for start in range(0, len(events), _AT_ONCE):
        some = events[start : start + _AT_ONCE]
        marks = ",".join("?" * len(some))
        for event, digest in connection.execute(
            f"SELECT event, digest FROM payload WHERE event IN ({marks}) ORDER BY id", some
        ):
            digests.setdefault(event, []).append(digest)
    return {event: hash_digests(of) for event, of in digests.items()}


def _blank_vectors(connection: sqlite3.Connection, ids: NDArray[np.int64]) -> None:
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
                f"The vectors from memory {first} on are not what was written. {RESTORE}"
            )
        matrix = np.frombuffer(data, dtype=np.int8).reshape(count, dim).copy()
        matrix[ids[start:stop] - first] = 0
        data = matrix.tobytes()
        row = (data, checksum(embedder, first, count, dim, data), *key)
        connection.execute(
            "UPDATE vector SET data = ?, sum = ? WHERE embedder = ? AND first_id = ?", row
        )


HashPaths = Callable[[str], Collection[tuple[str, ...]]]
"""The names that lead to each content hash in the body of a kind of event."""

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
_META = "INSERT INTO meta VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value, sum = excluded.sum"


def no_hashes(kind: str) -> Collection[tuple[str, ...]]:
    """Return no path: every string of the event is screened."""
    return ()


class Transaction:
    """What ``with journal.write() as tx`` gives.

    ``head`` is the last event before this write, ``next_id`` the first id that no text has: ids are the journal's to
    give, so that two writers, or one that was interrupted, never give the same twice.
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
        """How many slates this write adds."""
        self._next = head + 1
        self._open, self._applied = True, False
        self._events: list[tuple[int, int, str, bytes]] = []
        self._payloads: list[tuple[int, str]] = []
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._vectors: list[tuple[int, str, NDArray[np.int8]]] = []
        self._sources: list[tuple[str, str]] = []
        self._scrubs: list[Scrub] = []

    @property
    def events(self) -> list[Event]:
        """The events of this write as a reader of the journal will see them, without asking the database."""
        return self.events_after(0)

    def events_after(self, seq: int) -> list[Event]:
        """Those of them that come after the event ``seq``."""
        first = 0 if seq <= self.head else bisect_right(self._events, seq, key=itemgetter(0))
        return [
            Event(own, at, kind, decode_body(own, blob))
            for own, at, kind, blob in self._events[first:]
        ]

    @property
    def rewrites(self) -> bool:
        """Whether this write changes what earlier ones stored."""
        return bool(self._scrubs)

    @property
    def last(self) -> tuple[int, bytes]:
        """The last event once this write is applied, and its chain value."""
        return self._next - 1, self._chain

    def preview(self) -> Reading:
        """The journal as it will be once this write is committed. Nothing can be added to the write after that."""
        return self._preview(self)

    def texts(self, ids: range) -> list[str] | None:
        """The texts that this write stores for ``ids``; None unless it has every one of them."""
        stored = dict(self._payloads)
        return [stored[id] for id in ids] if all(id in stored for id in ids) else None

    def vectors_from(
        self, fingerprint: str, first_id: int
    ) -> list[tuple[int, NDArray[np.int8]]] | None:
        """The vectors of one embedder that this write stores from ``first_id`` on; None unless they follow one another
        from there.
        """
        blocks, expected = [], first_id
        for first, known, matrix in self._vectors:
            # what was settled before is read already
            if known == fingerprint and first + len(matrix) > first_id:
                if first != expected:
                    return None
                blocks.append((first, matrix))
                expected = first + len(matrix)
        return blocks or None

    def vectors_of(self, fingerprint: str) -> list[tuple[int, NDArray[np.int8]]]:
        """All vectors of one embedder that this write stores, in the order in which they were given."""
        return [(first, matrix) for first, known, matrix in self._vectors if known == fingerprint]

    def source_of(self, hash: str) -> str | None:
        """The policy source that this write stores under ``hash``; None if it stores none."""
        return dict(self._sources).get(hash)

    def event(self, kind: str, body: dict[str, Any], *, at: Micros) -> int:
        """Append an event and return its ``seq``. ``body`` holds what msgpack can: bytes and lists included.

        PrivacyError if any string in it holds a secret: what is text is redacted before it gets here. Content hashes in
        the fields that ``Journal.hash_paths`` names are no text.
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
        """Store a text for each id. Ids must be new; texts come from the privacy gate."""
        if len(ids) != len(texts):
            raise InputError(
                f"There are {len(ids):,} ids and {len(texts):,} texts: give one text for each id."
            )
        checked = [
            (_id(id), _text(text, f"text of {id}")) for id, text in zip(ids, texts, strict=True)
        ]
        self._check_open()
        self._payloads += checked

    def vectors(self, first_id: int, fingerprint: str, matrix: NDArray[np.int8]) -> None:
        """Store int8 vectors, shape (n, dim), of the ids from ``first_id`` on. They replace what those ids had."""
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
        """Join bytes to the event ``seq``, of this write or an earlier one that has none yet."""
        if not 1 <= seq < self._next:
            raise InputError(
                f"There is no event {seq} to join a slate to; the last is {self._next - 1}."
            )
        data = bytes(blob)
        self._add(_SLATE, [(seq, data, checksum(seq, data))])
        self.slates += 1

    def segment(
        self, upto: int, parts: Mapping[str, bytes], questions: Mapping[int, bytes]
    ) -> None:
        """Keep a segment in the place of slates, of which the questions stay, or in that of the segment before."""
        self._add(_DROP, [(upto,)])
        self._add(
            _SEGMENT,
            [(upto, name, data, checksum(upto, name, data)) for name, data in parts.items()],
        )
        self._add(_QUESTION, [(data, checksum(seq, data), seq) for seq, data in questions.items()])

    def drop_slates(self, after: int, upto: int) -> None:
        """Remove the segment that ends at ``upto``, with the questions of its recalls."""
        self._add(_DROP, [(upto,)])
        self._add(_DROP_SLATES, [(after, upto)])

    def source(self, hash: str, text: str) -> None:
        """Keep the source of a policy under its hash; keeping it twice is the same as once."""
        self._check_open()
        refuse(_text(text, "source"), "source of a policy")
        self._sources.append((_text(hash, "hash"), text))

    def meta(self, key: str, value: str) -> None:
        """Set a named value."""
        row = (_text(key, "key"), _text(value, f'value of "{key}"'))
        refuse(value, f'value of "{key}"')
        self._add(_META, [(*row, checksum(*row))])

    def scrub(self, scrub: Scrub) -> None:
        """Overwrite what earlier writes stored; ``Journal.expunge`` then removes the bytes."""
        self._check_open()
        self._scrubs.append(scrub)

    def _add(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        self._check_open()
        self._rows.setdefault(statement, []).extend(rows)

    def _check_open(self) -> None:
        if not self._open:
            raise LabError("This write has ended. Open another with journal.write().")

    def _apply(self, connection: sqlite3.Connection) -> bool:
        """Write everything into the open SQLite transaction; False if there was nothing."""
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
        """The events, each with its link of the chain; texts go with the first of them."""
        salts = os.urandom(SALT_BYTES * len(self._payloads))
        event = self.head + 1 if self._events else 0  # 0: covered by its digest alone
        texts = []
        for place, (id, text) in enumerate(self._payloads):
            salt = salts[SALT_BYTES * place : SALT_BYTES * (place + 1)]
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
    row = (hash, text, checksum(hash, text))
    connection.execute("INSERT INTO source VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row)
    if connection.execute("SELECT text FROM source WHERE hash = ?", (hash,)).fetchone() != (text,):
        raise InputError(f"The hash {hash} belongs to another policy source already.")


def _put_vectors(
    connection: sqlite3.Connection, first: int, fingerprint: str, matrix: NDArray[np.int8]
) -> None:
    embedder = _embedder(connection, fingerprint)
    stop = first + len(matrix)
    # blocks never overlap, so at most one that begins before this one reaches into it
    overlapping = connection.execute(
        "SELECT first_id, count, dim, data, sum FROM vector "
        "WHERE embedder = ?1 AND first_id < ?3 AND first_id >= coalesce("
        "(SELECT max(first_id) FROM vector WHERE embedder = ?1 AND first_id <= ?2), ?2) AND first_id + count > ?2",
        (embedder, first, stop),
    ).fetchall()
    blocks = [(first, len(matrix), matrix.shape[1], matrix.tobytes())]
    for begin, count, dim, data, sum in overlapping:
        if not vectors_are_sound(embedder, begin, count, dim, data, sum):
            raise DamagedLab(
                f"The vectors from memory {begin} on are not what was written. {RESTORE}"
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
    """The number of an embedder; a new one gets the next."""
    known = connection.execute(
        "SELECT id FROM embedder WHERE fingerprint = ?", (fingerprint,)
    ).fetchone()
    if known is not None:
        return int(known[0])
    (number,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM embedder").fetchone()
    connection.execute(
        "INSERT INTO embedder VALUES (?, ?, ?)",
        (number, fingerprint, checksum(number, fingerprint)),
    )
    return int(number)


def _id(id: int) -> int:
    if isinstance(id, bool | float | str) or not 1 <= id <= _LAST_ID:
        raise InputError(f"An id must be an int from 1 on, not {id!r}.")
    return int(id)


def _text(text: str, what: str) -> str:
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
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return type(value).__name__
