"""Which policies are live, which were, and which are pinned: the fold of the events that change policies."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from memlab.errors import (
    ExtensionWarning,
    InputError,
    MissingExtension,
    NewerLab,
    PolicyError,
    UnknownName,
)
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.journal import Event, check_event_format
from memlab.kernel.language import Policy, compile_policy
from memlab.kernel.policies._packs import (
    Challenge,
    Pack,
    pack_from_sources,
    refusal_of,
    warn_of_versions,
)
from memlab.kernel.policies._slots import SLOTS, get_slot
from memlab.kernel.version import __version__

# The number of the vocabulary in which packs and policies are written, and what an event says of it.


POLICY_FORMAT = 2
"""Raised whenever a slot, an input of one, a setting, a feature or a form is added, or means something else.

1: that of every event without a number, which memlab wrote before there was one. 2: the slot ``select`` with
its inputs ``tokens`` and ``budget``.
"""

VOCABULARY = "vocabulary"
"""The field of an event with the text of a pack or a policy that holds the ``POLICY_FORMAT`` of its writer."""


@contextmanager
def naming_vocabulary(where: str, number: object) -> Iterator[None]:
    """Raise NewerLab for a text in a later vocabulary, in place of an error of the text.

    ``where`` is what errors call the text, ``number`` that of its vocabulary.

    A text in a later vocabulary that uses none of its new words is read like any other.
    """
    try:
        yield
    except (PolicyError, InputError) as error:
        if not isinstance(number, int) or number <= POLICY_FORMAT:
            raise
        raise NewerLab(
            f"{where} is written in the vocabulary of policies {number}, and memlab "
            f"{__version__} knows vocabularies up to {POLICY_FORMAT}. {_first_line(error)} Upgrade memlab."
        ) from error


def _first_line(error: PolicyError | InputError) -> str:
    """What is unknown, without the place in the text: the name is right, and its reader is too old."""
    said = error.message if isinstance(error, PolicyError) else str(error)
    if isinstance(error, UnknownName):
        return f'There is no {error.what} "{error.name}" here.'
    return said.split(" Did you mean ")[0].split(" Known: ")[0].splitlines()[0]


_FORMAT = 1
"""The newest version of the bodies of events of policies that ``VersionLog`` reads."""

_STAMP = pl.Datetime("us", "UTC")


@dataclass(frozen=True)
class Version(Displayed):
    """One policy that a slot had: ``number`` counts from 1 within the slot, ``seq`` is the event that made it live.

    ``hash`` is the one that was logged; ``params`` are the values that parameters had in place of their defaults.
    """

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
    params: tuple[tuple[str, float], ...] = ()

    @cached_property
    def policy(self) -> Policy:
        """The policy itself, compiled by this version of memlab.

        MissingExtension where it came with a pack that needs an extension which was not registered.
        """
        if not self.source:
            raise MissingExtension(
                f"{self} came with the pack {self.pack}, which needs an extension that is missing."
            )
        signature = get_slot(self.slot).signature
        return compile_policy(
            self.source, signature, name=self.slot, params=dict(self.params), helpers=self.helpers
        )

    def __repr__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return printable(
            f"<Version {self.number} of {self.slot} [{self.hash[:12]}], {self.action} {self.pack}{why}>"
        )

    def _display(self) -> object:
        return repr(self), self.policy

    def __str__(self) -> str:
        return f"{self.slot} {self.number} [{self.hash[:12]}]"


class _Entry(NamedTuple):
    """A line of the history: what one event did to one slot."""

    seq: int
    at: int
    action: str
    version: Version
    pinned: bool
    reason: str


class _Live(NamedTuple):
    """The live pack after one event; ``hash`` is the one that was logged.

    A pack that needs an extension which is not registered here is None, and ``refusal`` says so.
    """

    seq: int
    action: str
    known: Pack | None
    hash: str
    name: str
    refusal: str = ""

    @property
    def decides(self) -> str:
        """The hash of the pack as this memlab reads it; the logged one where it cannot be read."""
        return self.hash if self.known is None else self.known.hash

    @property
    def pack(self) -> Pack:
        """The pack. Raises MissingExtension where it cannot be read here."""
        if self.known is None:
            raise MissingExtension(self.refusal)
        return self.known


class VersionLog:
    """The live pack of a lab, its pins, and the history of every slot."""

    def __init__(self) -> None:
        self._versions: defaultdict[str, list[Version]] = defaultdict(
            list, {slot: [] for slot in SLOTS}
        )
        self._entries: list[_Entry] = []
        self._lives: list[_Live] = []
        self._hashes: dict[str, None] = {}
        self._pins: dict[str, Policy] = {}
        self._challenges: dict[str, Challenge] = {}
        self._challenged: list[Challenge] = []
        self._ended: dict[int, int] = {}
        self._seq = 0

    # -- what is ----------------------------------------------------------------------------------------------

    @property
    def pack(self) -> Pack:
        """The live pack. Raises MissingExtension where it needs an extension that is not registered."""
        if not self._lives:
            raise InputError("No pack is live yet.")
        return self._lives[-1].pack

    @property
    def pack_hashes(self) -> tuple[str, ...]:
        """The hashes of all packs that have been live, in the order in which they first were."""
        return tuple(self._hashes)

    @property
    def live_hash(self) -> str:
        """The hash of the live pack, as it was logged."""
        return self._lives[-1].hash if self._lives else ""

    @property
    def empty(self) -> bool:
        """Whether no pack was ever live."""
        return not self._lives

    @property
    def readable(self) -> bool:
        """Whether a pack is live and everything that it needs is registered."""
        return bool(self._lives) and self._lives[-1].known is not None

    @property
    def pins(self) -> Mapping[str, Version]:
        """The pinned slots and the version that each is held at."""
        return MappingProxyType({slot: self._versions[slot][-1] for slot in self._pins})

    @property
    def challenges(self) -> tuple[Challenge, ...]:
        """The packs that are compared with the live one, oldest first."""
        return tuple(self._challenges.values())

    def with_pins(self, pack: Pack) -> Pack:
        """What is live once ``pack`` is used: the pack with the pinned policies in their slots."""
        for slot, policy in self._pins.items():
            if pack.policies[slot].hash != policy.hash:
                pack = pack.with_policy(slot, policy)
        return pack

    # -- the fold ---------------------------------------------------------------------------------------------

    def fold(self, event: Event, source_of: Callable[[str], str]) -> None:
        """Apply one event; ``source_of`` gives the text of a source by its hash. Other kinds of event pass by.

        An event that was applied is not applied again, and one that cannot be, as its policy is of a later version,
        raises each time: so that no stale policy decides without a word.
        """
        if event.seq <= self._seq:
            return
        try:
            self._apply(event, source_of)
        except MissingExtension as error:
            self._leave_out(event, str(error), source_of)
        except (PolicyError, UnknownName):
            refusal = refusal_of(_described(event), event.body.get("needs"))
            if refusal is None:
                raise
            self._leave_out(event, refusal, source_of)
        else:
            warn_of_versions(_described(event), event.body.get("needs"))
        self._seq = event.seq

    def _leave_out(self, event: Event, refusal: str, source_of: Callable[[str], str]) -> None:
        """Note that a decision needs an extension that is not registered: the lab opens, and what asks it raises."""
        if event.kind in ("challenge", "end-challenge"):
            warnings.warn(
                f"{refusal} The challenger is left out of recalls.", ExtensionWarning, stacklevel=2
            )
            return
        body = event.body
        hash = body.get("live", body.get("hash", ""))
        name = body.get("pack") or (self._lives[-1].name if self._lives else "")
        self._lives.append(_Live(event.seq, event.kind, None, hash, name, refusal))
        self._hashes.setdefault(hash)
        if "slot" in body and "source" in body:
            helpers, params = (
                tuple(body.get("helpers", ())),
                tuple((body.get("params") or {}).items()),
            )
            version = self._new_version(
                event, body["slot"], body["hash"], source_of(body["source"]), helpers, params
            )
            self._enter(event, version)
        for slot, logged in body.get("policies", {}).items():
            if not self._versions[slot] or self._versions[slot][-1].hash != logged:
                self._enter(event, self._new_version(event, slot, logged, "", (), ()))

    def _apply(self, event: Event, source_of: Callable[[str], str]) -> None:
        body = event.body
        check_event_format(event, _FORMAT)
        if event.kind == "use":
            self._become(event, _pack_in(event, source_of))
        elif event.kind == "rollback-pack":
            self._become(event, self.live_at(body["to"]))
        elif event.kind in ("install", "rollback", "pin"):
            slot, policy = body["slot"], _policy_in(event, source_of)
            if event.kind == "pin":
                self._pins[slot] = policy
            self._put(event, slot, policy)
        elif event.kind == "challenge":
            pack = _pack_in(event, source_of)
            given = body["design"], body["extra"], body["rate"]
            self._challenges[pack.name] = Challenge(
                pack, *given, event.seq, event.at, body["reason"]
            )
            self._challenged.append(self._challenges[pack.name])
        elif event.kind == "end-challenge":
            ended = self._challenges.pop(body["pack"], None)
            if ended is not None:  # one that needs an extension was left out
                self._ended[ended.seq] = event.at
        elif event.kind == "unpin":
            del self._pins[body["slot"]]
            self._live(event, self.pack)
            self._enter(event, self._versions[body["slot"]][-1])

    def _become(self, event: Event, pack: Pack) -> None:
        """Another pack is live: the slots whose policies it changes have a new version."""
        last = self._lives[-1].known if self._lives else None
        before = {} if last is None else last.policies
        pack = self.with_pins(pack)
        self._live(event, pack)
        logged = event.body.get("policies", {})
        for slot, policy in pack.policies.items():
            if slot not in before or before[slot].hash != policy.hash:
                self._enter(event, self._added(event, slot, policy, logged.get(slot, policy.hash)))

    def _put(self, event: Event, slot: str, policy: Policy) -> None:
        """Another policy is live in one slot; a pin of what is live makes no new version."""
        same = event.kind == "pin" and self.pack.policies[slot].hash == policy.hash
        self._live(event, self.pack if same else self.pack.with_policy(slot, policy))
        if same:
            self._enter(event, self._versions[slot][-1])
        else:
            self._enter(
                event, self._added(event, slot, policy, event.body.get("hash", policy.hash))
            )

    def _live(self, event: Event, pack: Pack) -> None:
        body = event.body
        # the first labs wrote the hash of the live pack under other names, before there were pins
        hash = body.get("live") or body.get(
            {"use": "hash", "install": "pack"}.get(event.kind, ""), pack.hash
        )
        self._lives.append(_Live(event.seq, event.kind, pack, hash, pack.name))
        self._hashes.setdefault(hash)

    def _added(self, event: Event, slot: str, policy: Policy, hash: str) -> Version:
        params = tuple(
            (item.name, item.value) for item in policy.params.values() if item.value != item.default
        )
        return self._new_version(event, slot, hash, policy.source, policy.helpers, params)

    def _new_version(
        self,
        event: Event,
        slot: str,
        hash: str,
        source: str,
        helpers: tuple[str, ...],
        params: tuple[tuple[str, float], ...],
    ) -> Version:
        version = Version(
            number=len(self._versions[slot]) + 1,
            seq=event.seq,
            at=event.at,
            slot=slot,
            action=_action(event.kind),
            pack=self._lives[-1].name,
            hash=hash,
            source=source,
            helpers=helpers,
            reason=event.body.get("reason", ""),
            params=params,
        )
        self._versions[slot].append(version)
        return version

    def _enter(self, event: Event, version: Version) -> None:
        pinned = version.slot in self._pins
        reason = event.body.get("reason", "")
        self._entries.append(
            _Entry(event.seq, event.at, _action(event.kind), version, pinned, reason)
        )

    # -- what was ---------------------------------------------------------------------------------------------

    def versions(self, slot: str) -> tuple[Version, ...]:
        """Every version of a slot, oldest first; the last is live."""
        get_slot(slot)
        return tuple(self._versions[slot])

    def version(self, slot: str, wanted: int | str) -> Version:
        """A version by its number or by the first characters of its hash."""
        known = self.versions(slot)
        for version in reversed(known):
            if wanted == version.number or (
                isinstance(wanted, str) and wanted and version.hash.startswith(wanted)
            ):
                return version
        raise UnknownName(
            f"version of {slot}", wanted, [f"{item.number} [{item.hash[:12]}]" for item in known]
        )

    def previous(self, slot: str) -> Version:
        """The latest version whose policy differs from the live one."""
        known = self.versions(slot)
        for version in reversed(known[:-1]):
            if version.hash != known[-1].hash:
                return version
        raise InputError(
            f"The slot {slot} has had one policy only: there is nothing to roll back to."
        )

    def previous_pack(self) -> int:
        """The event after which the pack before was live as it was when another was last used.

        What was installed since then is undone with the pack. A use that changed nothing is passed over, and so is a
        pack that would decide as the live one does.
        """
        for before, change in zip(self._lives[-2::-1], self._lives[:0:-1], strict=True):
            if before.known is None:  # it needs an extension that is missing
                continue
            whole = (
                change.action in ("use", "rollback-pack") and before.known.hash != change.decides
            )
            if whole and self.with_pins(before.known).hash != self._lives[-1].decides:
                return before.seq
        raise InputError(
            f"No other pack was live before {self.pack.name}: there is nothing to roll back to."
        )

    def event_of(self, wanted: int | str) -> int:
        """The event after which a pack was live: by that event, or by the first characters of the pack's hash."""
        for live in reversed(self._lives):
            if wanted == live.seq or (
                isinstance(wanted, str) and wanted and live.hash.startswith(wanted)
            ):
                return live.seq
        known = [f"{live.seq} [{live.hash[:12]}]" for live in self._lives]
        raise UnknownName("event of policies or live pack", wanted, known)

    def live_at(self, seq: int) -> Pack:
        """The pack that was live after the event ``seq``."""
        return self._lives[bisect_right(self._lives, seq, key=lambda live: live.seq) - 1].pack

    def deciders(self, pack: str) -> dict[str, Version]:
        """The version of each slot when the pack of this hash (its first characters) was last live."""
        seq = self.event_of(pack)
        return {
            slot: known[bisect_right(known, seq, key=lambda version: version.seq) - 1]
            for slot, known in self._versions.items()
            if known
        }

    def timeline(self, slot: str) -> pl.DataFrame:
        """``event``, ``pack_hash``, ``version``: the live pack after each event and the slot's version in it."""
        since = [version.seq for version in self.versions(slot)]
        return pl.DataFrame(
            {
                "event": [live.seq for live in self._lives],
                "pack_hash": [live.hash for live in self._lives],
                "version": [bisect_right(since, live.seq) for live in self._lives],
            },
            schema={"event": pl.Int64, "pack_hash": pl.String, "version": pl.Int64},
        )

    def challenge_frame(self) -> pl.DataFrame:
        """Every challenge there was, oldest first; see ``LabPolicies.challenge_history``."""
        every = self._challenged
        return pl.DataFrame(
            {
                "name": [one.name for one in every],
                "hash": [one.pack.hash for one in every],
                "design": [one.design for one in every],
                "since": pl.Series([one.at for one in every], dtype=pl.Int64).cast(_STAMP),
                "until": pl.Series(
                    [self._ended.get(one.seq) for one in every], dtype=pl.Int64
                ).cast(_STAMP),
                "reason": [one.reason for one in every],
            },
            schema_overrides=dict.fromkeys(("name", "hash", "design", "reason"), pl.String),
        )

    def frame(self, slot: str | None = None) -> pl.DataFrame:
        """What happened to a slot, or to all, oldest first; see ``LabPolicies.history``."""
        if slot is not None:
            get_slot(slot)
        rows = [entry for entry in self._entries if slot is None or entry.version.slot == slot]
        last = {row.version.slot: row.seq for row in rows}
        frame = pl.DataFrame(
            {
                "slot": [row.version.slot for row in rows],
                "version": [row.version.number for row in rows],
                "live": [row.seq == last[row.version.slot] for row in rows],
                "pinned": [row.pinned for row in rows],
                "at": pl.Series([row.at for row in rows], dtype=pl.Int64).cast(_STAMP),
                "action": [row.action for row in rows],
                "pack": [row.version.pack for row in rows],
                "hash": [row.version.hash for row in rows],
                "reason": [row.reason for row in rows],
                "event": [row.seq for row in rows],
            },
            schema_overrides={"version": pl.Int64, "event": pl.Int64},
        )
        return frame if slot is None else frame.drop("slot")


def _naming_vocabulary(event: Event) -> AbstractContextManager[None]:
    return naming_vocabulary(f"Event {event.seq} ({event.kind})", event.body.get(VOCABULARY, 1))


def _pack_in(event: Event, source_of: Callable[[str], str]) -> Pack:
    """The pack whose texts an event names."""
    sources = tuple(source_of(hash) for hash in event.body["sources"])
    with _naming_vocabulary(event):
        return pack_from_sources(sources)


def _policy_in(event: Event, source_of: Callable[[str], str]) -> Policy:
    """The policy of one slot whose text an event names."""
    body, source = event.body, source_of(event.body["source"])
    with _naming_vocabulary(event):
        return compile_policy(
            source,
            get_slot(body["slot"]).signature,
            name=body["slot"],
            params=body.get("params") or None,
            helpers=tuple(body.get("helpers", ())),
        )


def _action(kind: str) -> str:
    return "rollback" if kind == "rollback-pack" else kind


def _described(event: Event) -> str:
    """Return what an event put to use, for a message: a pack or the policy of a slot."""
    body = event.body
    return (
        f"The policy of {body['slot']}"
        if "slot" in body
        else f"The pack {body.get('pack', '')}".rstrip()
    )
