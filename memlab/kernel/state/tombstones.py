"""Tombstones: what was purged is known again, but cannot be read, so that an import does not bring it back.

A tombstone is a keyed hash of the text and where the memory came from. The key is drawn once for a lab: whoever has the
lab can ask whether a text was purged from it, and nobody can tell from it what was.
"""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from collections.abc import Iterable
from typing import Any, ClassVar

from memlab.kernel.journal import Event
from memlab.kernel.state.projections import Projection
from memlab.kernel.state.roles import Field, listed, mapping

__all__ = ["PLACEHOLDER", "Tombstones", "plain"]

PLACEHOLDER = "[purged "
"""How the names begin that a purge puts in the place of others."""

_KEY_BYTES, _HASH_BYTES = 32, 16


def plain(text: str) -> str:
    """What copies of one text have in common: composed, and one space for any white space.

    >>> plain(" Tabs,\\n not  spaces ")
    'Tabs, not spaces'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


class Tombstones(Projection):
    """The purged texts of a lab by their hashes, and the origins of what was purged.

    >>> tombstones = Tombstones()
    >>> tombstones.is_purged("tabs")
    False
    """

    name: ClassVar[str] = "purged"
    kinds: ClassVar[tuple[str, ...]] = ("purge",)
    dumped: ClassVar[Field] = mapping(
        {"hashes": listed(Field("bytes"), Field("bytes")), "origins": Field("word")},
    )

    def __init__(self) -> None:
        self._hashes: dict[bytes, set[bytes]] = {}
        """By the key that they were made with: the first is this lab's, others came with an import."""
        self._origins: set[str] = set()

    def __len__(self) -> int:
        """How many texts were purged."""
        return sum(map(len, self._hashes.values()))

    def is_purged(self, text: str, *, origin: str | None = None) -> bool:
        """Whether this text was purged here, as the privacy gate left it, or a memory that came from ``origin``."""
        if origin is not None and origin in self._origins:
            return True
        return any(_hash(key, text) in hashes for key, hashes in self._hashes.items())

    def made(self, texts: Iterable[str], origins: Iterable[str]) -> dict[str, Any]:
        """What the event of a purge holds of these texts and origins."""
        key = next(iter(self._hashes), b"") or secrets.token_bytes(_KEY_BYTES)
        return {"key": key, "hashes": sorted({_hash(key, text) for text in texts}), "origins": sorted(set(origins))}

    def fold(self, event: Event) -> None:
        given = event.body["tombstones"]
        self._hashes.setdefault(given["key"], set()).update(given["hashes"])
        self._origins.update(given["origins"])

    def dump(self) -> Any:
        return {
            "hashes": [[key, sorted(hashes)] for key, hashes in self._hashes.items()],
            "origins": sorted(self._origins),
        }

    def load(self, dumped: Any) -> None:
        """On top of what is known: what was purged here or where an import comes from stays so."""
        for key, hashes in dumped["hashes"]:
            self._hashes.setdefault(key, set()).update(hashes)
        self._origins.update(dumped["origins"])


def _hash(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(plain(text).encode(), key=key, digest_size=_HASH_BYTES).digest()
