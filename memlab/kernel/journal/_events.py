"""What tells that a row is as it was written: a chain over events, salted digests of texts, checksums of the rest.

The chain value of an event covers its own row, the texts that came with it, and the chain value before it; the first
stands on the identity of the journal. So two journals have the same value at an event only if they hold the same up to
there. A text is covered by a digest with a random salt of its own: once text and salt are deleted, nobody can confirm
from what is left what the text was, however short.
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

__all__ = [
    "CHAIN_BYTES",
    "FORMAT",
    "RESTORE",
    "SALT_BYTES",
    "Event",
    "chain_event",
    "check_event_format",
    "checksum",
    "decode_body",
    "digest_parts",
    "digest_text",
    "encode_body",
    "hash_digests",
    "initial_chain",
]


RESTORE = "`memlab upkeep check` says what is damaged, and `memlab upkeep restore` puts a backup in its place."
"""What every message about damage ends with."""

CHAIN_BYTES = SALT_BYTES = 16
_ROW = struct.Struct("<qqqq")


def initial_chain(identity: str) -> bytes:
    """The chain value before the first event."""
    return hashlib.blake2b(
        identity.encode(), digest_size=CHAIN_BYTES, person=b"memlab journal"
    ).digest()


def chain_event(
    before: bytes, seq: int, at: int, kind: str, body: bytes, content: bytes | None
) -> bytes:
    """The chain value of an event; ``content`` is that of the texts that came with it."""
    name, texts = kind.encode(), content or b""
    hashed = hashlib.blake2b(before, digest_size=CHAIN_BYTES)
    hashed.update(_ROW.pack(seq, at, len(name), len(texts)))
    hashed.update(name)
    hashed.update(texts)
    hashed.update(body)
    return hashed.digest()


def hash_digests(digests: Iterable[bytes]) -> bytes:
    """What an event keeps of the digests of its texts, in the order of their ids."""
    return hashlib.blake2b(b"".join(digests), digest_size=CHAIN_BYTES).digest()


def digest_text(salt: bytes, id: int, text: str) -> bytes:
    """The digest of the text of one id."""
    hashed = hashlib.blake2b(
        text.encode(), digest_size=CHAIN_BYTES, salt=salt, person=id.to_bytes(8, "little")
    )
    return hashed.digest()


def digest_parts(parts: Iterable[tuple[str, bytes]]) -> str:
    """The digest of a sealed segment, of its parts in the order of their names; it stands in the chain."""
    hashed = hashlib.blake2b(digest_size=32)
    for name, data in parts:
        hashed.update(b"%d:%d:" % (len(name.encode()), len(data)))
        hashed.update(name.encode())
        hashed.update(data)
    return hashed.hexdigest()


def checksum(*values: int | str | bytes) -> int:
    """The CRC-32 of a row's values: 0.4 ns a byte, where a digest takes 2."""
    crc = 0
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode()
        crc = zlib.crc32(data, zlib.crc32(b"%d:" % len(data), crc))
    return crc


# One event, and its bytes.


class Event(msgspec.Struct, frozen=True):
    """What happened ``seq``-th, ``at`` microseconds UTC. A batch is one event with columns in its body."""

    seq: int
    at: Micros
    kind: str
    body: dict[str, Any]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(dict[str, Any])


def encode_body(kind: str, body: dict[str, Any]) -> bytes:
    """The msgpack of a body: None, bool, int of 64 bits, float, str, bytes, lists and dicts."""
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


def decode_body(seq: int, blob: bytes) -> dict[str, Any]:
    try:
        return _decoder.decode(blob)
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedLab(
            f"The body of event {seq} is not what was written ({error}). {RESTORE}"
        ) from None


def _encodable(value: object) -> bool:
    try:
        _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True


# The version of an event's body: the field that holds it, and its check.


FORMAT = "format"
"""The field of a body that holds its version. A body of version 1 has no such field."""


def check_event_format(event: Event, known: int) -> None:
    """Raise NewerLab where the body of an event is of a later version of its kind than the ``known`` one."""
    number = event.body.get(FORMAT, 1)
    if number != 1 and number > known:
        raise NewerLab.of_format(f"Event {event.seq} ({event.kind})", number, known)
