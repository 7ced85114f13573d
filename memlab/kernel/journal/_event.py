"""One event, and its bytes."""

from __future__ import annotations

from typing import Any

import msgspec

from memlab.errors import DamagedLab, InputError
from memlab.kernel.base.clock import Micros
from memlab.kernel.journal._database import RESTORE

__all__ = ["Event", "decoded", "encoded"]


class Event(msgspec.Struct, frozen=True):
    """What happened ``seq``-th, ``at`` microseconds UTC. A batch is one event with columns in its body."""

    seq: int
    at: Micros
    kind: str
    body: dict[str, Any]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(dict[str, Any])


def encoded(kind: str, body: dict[str, Any]) -> bytes:
    """The msgpack of a body: None, bool, int of 64 bits, float, str, bytes, lists and dicts."""
    if not isinstance(body, dict) or set(map(type, body)) - {str}:
        raise InputError(f'The body of an event "{kind}" must be a dict with str keys, not {type(body).__name__}.')
    try:
        return _encoder.encode(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        field = next((f' (in "{key}")' for key, value in body.items() if not _encodable(value)), "")
        raise InputError(f'The body of the event "{kind}" cannot be stored{field}: {error}.') from None


def decoded(seq: int, blob: bytes) -> dict[str, Any]:
    try:
        return _decoder.decode(blob)
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedLab(f"The body of event {seq} is not what was written ({error}). {RESTORE}") from None


def _encodable(value: object) -> bool:
    try:
        _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True
