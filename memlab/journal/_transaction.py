"""One write: rows are gathered and checked, then written in one go when the ``with`` block ends.

Until then the database is untouched, so readers (this thread as well, in memory as on disk) see the state before.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memlab.clock import Micros
from memlab.errors import InputError, LabError
from memlab.journal._event import Event, decoded, encoded

if TYPE_CHECKING:
    from memlab.journal._scrub import Scrub
    from memlab.privacy import Screened

__all__ = ["Transaction"]

_LAST_ID = 2**63 - 1
_EVENT = "INSERT INTO event VALUES (?, ?, ?, ?)"
_PAYLOAD = "INSERT INTO payload VALUES (?, ?)"


class Transaction:
    """What ``with journal.write() as tx`` gives. ``head`` is the last event before this write."""

    def __init__(self, head: int) -> None:
        self.head = head
        self._next = head + 1
        self._open = True
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._vectors: list[tuple[int, str, NDArray[np.int8]]] = []
        self._sources: list[tuple[str, str]] = []
        self._scrubs: list[Scrub] = []

    @property
    def events(self) -> list[Event]:
        """The events of this write as a reader of the journal will see them, without asking the database."""
        rows = self._rows.get(_EVENT, ())
        return [Event(seq, at, kind, decoded(seq, blob)) for seq, at, kind, blob in rows]

    def texts(self, ids: range) -> list[str] | None:
        """The texts that this write stores for ``ids``; None unless it has every one of them."""
        stored = dict(self._rows.get(_PAYLOAD, ()))
        return [stored[id] for id in ids] if all(id in stored for id in ids) else None

    def vectors_from(self, fingerprint: str, first_id: int) -> list[tuple[int, NDArray[np.int8]]] | None:
        """The vectors of one embedder that this write stores from ``first_id`` on; None unless it begins there."""
        blocks = [(first, matrix) for first, known, matrix in self._vectors if known == fingerprint]
        return blocks if len(blocks) == 1 and blocks[0][0] == first_id else None

    def event(self, kind: str, body: dict[str, Any], *, at: Micros) -> int:
        """Append an event and return its ``seq``. ``body`` holds what msgpack can: bytes and lists included."""
        if not isinstance(kind, str) or not kind:
            raise InputError(f"The kind of an event must be a word, not {kind!r}.")
        if isinstance(at, bool) or not isinstance(at, int) or not -(2**63) <= at <= _LAST_ID:
            raise InputError(f"The time of an event must be microseconds as an int of 64 bits, not {at!r}.")
        seq = self._next
        self._add(_EVENT, [(seq, at, _text(kind, "kind"), encoded(kind, body))])
        self._next += 1
        return seq

    def payloads(self, ids: Sequence[int], texts: Sequence[Screened]) -> None:
        """Store a text for each id. Ids must be new; texts come from the privacy gate."""
        if len(ids) != len(texts):
            raise InputError(f"There are {len(ids):,} ids and {len(texts):,} texts: give one text for each id.")
        checked = [(_id(id), _text(text, f"text of {id}")) for id, text in zip(ids, texts, strict=True)]
        self._add(_PAYLOAD, checked)

    def vectors(self, first_id: int, fingerprint: str, matrix: NDArray[np.int8]) -> None:
        """Store int8 vectors, shape (n, dim), of the ids from ``first_id`` on. They replace what those ids had."""
        first_id = _id(first_id)
        if not isinstance(matrix, np.ndarray) or matrix.dtype != np.int8 or matrix.ndim != 2 or not matrix.shape[1]:
            raise InputError(f"Vectors must be an int8 matrix of shape (n, dim), not {_kind_of(matrix)}.")
        self._check_open()
        if len(matrix):
            self._vectors.append((first_id, _text(fingerprint, "fingerprint"), matrix.copy()))

    def slate(self, seq: int, blob: bytes) -> None:
        """Join bytes to the event ``seq``, of this write or an earlier one that has none yet."""
        if not 1 <= seq < self._next:
            raise InputError(f"There is no event {seq} to join a slate to; the last is {self._next - 1}.")
        self._add("INSERT INTO slate VALUES (?, ?)", [(seq, bytes(blob))])

    def source(self, hash: str, text: str) -> None:
        """Keep the source of a policy under its hash; keeping it twice is the same as once."""
        self._check_open()
        self._sources.append((_text(hash, "hash"), _text(text, "source")))

    def meta(self, key: str, value: str) -> None:
        """Set a named value."""
        row = (_text(key, "key"), _text(value, f'value of "{key}"'))
        self._add("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", [row])

    def scrub(self, scrub: Scrub) -> None:
        """Overwrite what earlier writes stored; ``expunge`` then removes the bytes."""
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
        for statement, rows in self._rows.items():
            connection.executemany(statement, rows)
        for first_id, fingerprint, matrix in self._vectors:
            _put_vectors(connection, first_id, fingerprint, matrix)
        for hash, text in self._sources:
            _put_source(connection, hash, text)
        for scrub in self._scrubs:
            scrub.apply(connection)
        return bool(self._rows or self._vectors or self._sources or self._scrubs)


def _put_source(connection: sqlite3.Connection, hash: str, text: str) -> None:
    connection.execute("INSERT INTO source VALUES (?, ?) ON CONFLICT DO NOTHING", (hash, text))
    if connection.execute("SELECT text FROM source WHERE hash = ?", (hash,)).fetchone() != (text,):
        raise InputError(f"The hash {hash} belongs to another policy source already.")


def _put_vectors(connection: sqlite3.Connection, first: int, fingerprint: str, matrix: NDArray[np.int8]) -> None:
    connection.execute("INSERT INTO embedder (fingerprint) VALUES (?) ON CONFLICT DO NOTHING", (fingerprint,))
    (embedder,) = connection.execute("SELECT id FROM embedder WHERE fingerprint = ?", (fingerprint,)).fetchone()
    stop = first + len(matrix)
    # blocks never overlap, so at most one that begins before this one reaches into it
    overlapping = connection.execute(
        "SELECT first_id, count, dim, data FROM vector WHERE embedder = ?1 AND first_id < ?3 AND first_id >= coalesce("
        "(SELECT max(first_id) FROM vector WHERE embedder = ?1 AND first_id <= ?2), ?2) AND first_id + count > ?2",
        (embedder, first, stop),
    ).fetchall()
    blocks = [(first, len(matrix), matrix.shape[1], matrix.tobytes())]
    for begin, count, dim, data in overlapping:
        connection.execute("DELETE FROM vector WHERE embedder = ? AND first_id = ?", (embedder, begin))
        if begin < first:
            blocks.append((begin, first - begin, dim, data[: (first - begin) * dim]))
        if begin + count > stop:
            blocks.append((stop, begin + count - stop, dim, data[(stop - begin) * dim :]))
    connection.executemany("INSERT INTO vector VALUES (?, ?, ?, ?, ?)", [(embedder, *block) for block in blocks])


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
        raise InputError(f"The {what} is not valid Unicode: a lone surrogate at character {error.start}.") from None
    return text


def _kind_of(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return type(value).__name__
