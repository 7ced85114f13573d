"""``lab.policies``: which policies decide, since when, and how to go back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from memlab.language import Policy, compile_policy
from memlab.policies import Pack, PolicyDiff, Version, VersionLog, load_pack, slot_named

__all__ = ["LabPolicies"]

_Write = Callable[[str, Callable[[], tuple[dict[str, Any], Mapping[str, str]]]], None]


class LabPolicies:
    """The policies of one lab. Every change is an event with hashes, and takes effect at the next recall.

    >>> lab.policies.install("recall-score", "(fn [similarity recency] (+ similarity recency))")  # doctest: +SKIP
    """

    def __init__(self, versions: VersionLog, write: _Write) -> None:
        self._versions = versions
        self._write = write

    def __getitem__(self, slot: str) -> Policy:
        """The live policy of a slot."""
        slot_named(slot)
        return self._versions.pack.policies[slot]

    def use(self, pack: str | Path | Pack, *, reason: str = "") -> Pack:
        """Make a pack live: by name, by path or by text."""
        chosen = load_pack(pack)
        sources = {_hash(text): text for text in chosen.sources}
        body = {"pack": chosen.name, "hash": chosen.hash, "sources": list(sources), "reason": reason}
        self._write("use", lambda: (body, sources))
        for slot, policy in chosen.policies.items():
            if self._versions.pack.policies[slot].hash != policy.hash:
                # A pack that was changed after it was read: its single policies are installed on top.
                self.install(slot, policy.source, helpers=policy.helpers, reason=reason)
        return self._versions.pack

    def install(self, slot: str, source: str, *, helpers: tuple[str, ...] = (), reason: str = "") -> Version:
        """Put a policy into one slot of the live pack; ``helpers`` are ``defn`` forms that it calls."""
        policy = compile_policy(source, slot_named(slot).signature, name=slot, helpers=helpers)

        def make() -> tuple[dict[str, Any], Mapping[str, str]]:
            after = self._versions.pack.with_policy(slot, policy)
            hash = _hash(source)
            body = {
                "slot": slot,
                "hash": policy.hash,
                "source": hash,
                "helpers": list(helpers),
                "pack": after.hash,
                "reason": reason,
            }
            return body, {hash: source}

        self._write("install", make)
        return self._versions.versions(slot)[-1]

    def rollback(self, slot: str, *, to: int | str | None = None, reason: str = "") -> Version:
        """Bring back the policy before the live one, or the version ``to`` (its number, or the start of its hash)."""

        def make() -> tuple[dict[str, Any], Mapping[str, str]]:
            wanted = self._versions.previous(slot) if to is None else self._versions.version(slot, to)
            hash = _hash(wanted.source)
            body = {
                "slot": slot,
                "hash": wanted.hash,
                "source": hash,
                "helpers": list(wanted.helpers),
                "to": wanted.number,
                "reason": reason,
            }
            return body, {hash: wanted.source}

        self._write("rollback", make)
        return self._versions.versions(slot)[-1]

    def history(self, slot: str) -> pl.DataFrame:
        """Every version that the slot had, oldest first: version, live, at, action, pack, hash, reason, event."""
        return self._versions.frame(slot)

    def diff(self, slot: str, before: int | str | None = None, after: int | str | None = None) -> PolicyDiff:
        """Two versions side by side; without numbers, the live one and the one before it."""
        known = self._versions.versions(slot)
        new = known[-1] if after is None else self._versions.version(slot, after)
        old = self._versions.previous(slot) if before is None else self._versions.version(slot, before)
        return PolicyDiff(old, new)

    def __repr__(self) -> str:
        pack = self._versions.pack
        lines = [f"pack {pack.name} [{pack.hash[:12]}]"]
        lines += [f"  {slot:<14} [{policy.hash[:12]}] {policy.doc or ''}" for slot, policy in pack.policies.items()]
        return "\n".join(lines)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
