"""Events and their encoding, and the hashes that detect changed rows.

A chain covers the events, salted digests cover the texts, and checksums cover other rows. The chain
value of an event covers its row, the texts that came with it and the chain value before it. The
first chain value is computed from the identity of the journal. So two journals have the same value
at an event only if they are equal up to that event.

The digest of a text has a random salt of its own. Once text and salt are deleted, nobody can test a
guess of the text, however short it was.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable
from typing import Any

import msgspec

from memlab.errors import DamagedLab, InputError, NewerLab
from memlab.kernel.base.clock import Micros

RESTORE = "`memlab upkeep check` says what is damaged, and `memlab upkeep restore` puts a backup in its place."
"""The last sentence of every message about damage: the commands that help."""

# 128 bits: no two texts or events share a digest by accident, and salts cannot be guessed.
CHAIN_BYTES = SALT_BYTES = 16
_ROW = struct.Struct("<qqqq")


def initial_chain(identity: str) -> bytes:
    """Return the chain value before the first event of a journal."""
    return hashlib.blake2b(
        identity.encode(), digest_size=CHAIN_BYTES, person=b"memlab journal"
    ).digest()


def chain_event(
    before: bytes, seq: int, at: int, kind: str, body: bytes, content: bytes | None
) -> bytes:
    """Return the hash that chains an event to its predecessor.

    ``content`` is the digest of the texts that came with the event.
    """
    name, texts = kind.encode(), content or b""
    hashed = hashlib.blake2b(before, digest_size=CHAIN_BYTES)
    hashed.update(_ROW.pack(seq, at, len(name), len(texts)))
    hashed.update(name)
    hashed.update(texts)
    hashed.update(body)
    return hashed.digest()


def hash_digests(digests: Iterable[bytes]) -> bytes:
    """Return one digest over the digests of an event's texts, ordered by text id."""
    return hashlib.blake2b(b"".join(digests), digest_size=CHAIN_BYTES).digest()


def digest_text(salt: bytes, id: int, text: str) -> bytes:
    """Return the salted digest of the text with the given id."""
    hashed = hashlib.blake2b(
        text.encode(), digest_size=CHAIN_BYTES, salt=salt, person=id.to_bytes(8, "little")
    )
    return hashed.digest()


def digest_parts(parts: Iterable[tuple[str, bytes]]) -> str:
    """Return the digest of a sealed segment's parts for the hash chain.

    The parts are in the order of their names.
    """
    hashed = hashlib.blake2b(digest_size=32)
    for name, data in parts:
        hashed.update(b"%d:%d:" % (len(name.encode()), len(data)))
        hashed.update(name.encode())
        hashed.update(data)
    return hashed.hexdigest()


def checksum(*values: int | str | bytes) -> int:
    """Return the CRC-32 of the values of a database row.

    A CRC detects accidental changes of these rows and is faster than a cryptographic digest.
    """
    crc = 0
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode()
        crc = zlib.crc32(data, zlib.crc32(b"%d:" % len(data), crc))
    return crc


# Events and their bytes.

Body = dict[str, Any]
"""The fields of an event by name, with values that msgpack can store."""


class Event(msgspec.Struct, frozen=True):
    """One event: number ``seq``, time ``at`` in microseconds UTC, kind and body.

    A batch of memories is one event with columns in its body.
    """

    seq: int
    at: Micros
    kind: str
    body: Body


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Body)


def encode_body(kind: str, body: Body) -> bytes:
    """Encode an event body as msgpack. Raises InputError if it cannot be encoded.

    A body is a dict with str keys. The values of a body are None, bool, 64-bit int, float, str,
    bytes, and lists and dicts of these.
    """
    if not isinstance(body, dict) or set(map(type, body)) - {str}:
        raise InputError(
            f'The body of an event "{kind}" must be a dict with str keys, not {type(body).__name__}.'
        )
    try:
        return _encoder.encode(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        field = next((f' (in "{key}")' for key, value in body.items() if not _encodable(value)), "")
        raise InputError(
            f'The body of the event "{kind}" cannot be stored{field}: {error}.'
        ) from None


def decode_body(seq: int, blob: bytes) -> Body:
    """Decode an event body from msgpack.

    Raises DamagedLab if the bytes are not msgpack of a dict.
    """
    try:
        return _decoder.decode(blob)
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedLab(
            f"The body of event {seq} was changed since it was written ({error}). {RESTORE}"
        ) from None


def _encodable(value: object) -> bool:
    """Return whether msgpack can encode a value."""
    try:
        _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True


# The version of an event's body.


FORMAT = "format"
"""The field of a body that holds its version.

A body of version 1 has no such field.
"""


def check_event_format(event: Event, newest: int) -> None:
    """Raise NewerLab if the body of an event has a later version than ``newest``."""
    number = event.body.get(FORMAT, 1)
    if number != 1 and number > newest:
        raise NewerLab.of_format(f"Event {event.seq} ({event.kind})", number, newest)
