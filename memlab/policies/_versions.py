"""Which policies are live, and which were: the fold of the events ``use``, ``install`` and ``rollback``."""

from __future__ import annotations

import difflib
import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.language import Policy, compile_policy
from memlab.policies._packs import Pack, pack_from_sources
from memlab.policies._slots import SLOTS, slot_named

__all__ = ["PolicyDiff", "Version", "VersionLog"]


class _Event(Protocol):
    @property
    def seq(self) -> int: ...
    @property
    def at(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def body(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Version:
    """One policy that a slot had: ``number`` counts from 1 within the slot, ``seq`` is the event that made it live."""

    number: int
    seq: int
    at: int
    slot: str
    action: str
    pack: str
    hash: str
    source: str
    helpers: tuple[str, ...]
    reason: str


class VersionLog:
    """The live pack of a lab and the history of every slot."""

    def __init__(self) -> None:
        self._history: dict[str, list[Version]] = {slot: [] for slot in SLOTS}
        self._live: Pack | None = None

    @property
    def pack(self) -> Pack:
        if self._live is None:
            raise InputError("No pack is live yet.")
        return self._live

    @property
    def empty(self) -> bool:
        return self._live is None

    def fold(self, event: _Event, source_of: Callable[[str], str]) -> None:
        """Apply one event; ``source_of`` gives the text of a source by its hash."""
        body = event.body
        if event.kind == "use":
            self._live = pack_from_sources(tuple(source_of(hash) for hash in body["sources"]))
            for slot, policy in self._live.policies.items():
                seen = self._history[slot]
                if not seen or seen[-1].hash != policy.hash:
                    self._record(event, slot, policy)
        elif event.kind in ("install", "rollback"):
            slot = body["slot"]
            policy = compile_policy(
                source_of(body["source"]), slot_named(slot).signature, name=slot, helpers=tuple(body.get("helpers", ()))
            )
            self._live = self.pack.with_policy(slot, policy)
            self._record(event, slot, policy)

    def _record(self, event: _Event, slot: str, policy: Policy) -> None:
        seen = self._history[slot]
        seen.append(
            Version(
                number=len(seen) + 1,
                seq=event.seq,
                at=event.at,
                slot=slot,
                action=event.kind,
                pack=self.pack.name,
                hash=policy.hash,
                source=policy.source,
                helpers=policy.helpers,
                reason=event.body.get("reason", ""),
            )
        )

    def versions(self, slot: str) -> tuple[Version, ...]:
        slot_named(slot)
        return tuple(self._history[slot])

    def version(self, slot: str, wanted: int | str) -> Version:
        """A version by its number or by the first characters of its hash."""
        known = self.versions(slot)
        for version in reversed(known):
            if wanted == version.number or (isinstance(wanted, str) and version.hash.startswith(wanted)):
                return version
        raise UnknownName(f"version of {slot}", wanted, [f"{item.number} [{item.hash[:12]}]" for item in known])

    def previous(self, slot: str) -> Version:
        """The latest version whose policy differs from the live one."""
        known = self.versions(slot)
        for version in reversed(known[:-1]):
            if version.hash != known[-1].hash:
                return version
        raise InputError(f"The slot {slot} has had one policy only: there is nothing to roll back to.")

    def frame(self, slot: str) -> pl.DataFrame:
        """The history of a slot, oldest first."""
        known = self.versions(slot)
        return pl.DataFrame(
            {
                "version": [item.number for item in known],
                "live": [item is known[-1] for item in known],
                "at": pl.Series([item.at for item in known], dtype=pl.Int64).cast(pl.Datetime("us", "UTC")),
                "action": [item.action for item in known],
                "pack": [item.pack for item in known],
                "hash": [item.hash for item in known],
                "reason": [item.reason for item in known],
                "event": [item.seq for item in known],
            }
        )


@dataclass(frozen=True)
class PolicyDiff:
    """Two versions of a policy line by line."""

    before: Version
    after: Version

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(
            difflib.unified_diff(
                self.before.source.splitlines(),
                self.after.source.splitlines(),
                f"{self.before.slot} {self.before.number} [{self.before.hash[:12]}]",
                f"{self.after.slot} {self.after.number} [{self.after.hash[:12]}]",
                lineterm="",
            )
        )

    def __repr__(self) -> str:
        return "\n".join(self.lines) or f"{self.before.slot}: no difference"

    def _repr_html_(self) -> str:
        colour = {"+": "#1a7f37", "-": "#cf222e", "@": "#6e7781"}
        rows = "".join(
            f'<div style="color:{colour.get(line[:1], "inherit")}">{html.escape(line)}</div>' for line in self.lines
        )
        return f'<pre style="line-height:1.35">{rows or "no difference"}</pre>'
