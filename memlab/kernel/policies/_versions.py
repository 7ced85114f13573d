"""The history of a lab's policies: active, former and pinned versions, folded from events."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from memlab.errors import (
    ExtensionWarning,
    InputError,
    MissingExtension,
    NewerLab,
    PolicyError,
    UnknownName,
)
from memlab.kernel.base.clock import INSTANT
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.journal import Event, check_event_format
from memlab.kernel.language import Policy, compile_policy
from memlab.kernel.policies._lineage import Lineage, read_lineage
from memlab.kernel.policies._packs import (
    Challenge,
    Pack,
    error_share,
    pack_from_sources,
    refusal_of,
    warn_of_versions,
)
from memlab.kernel.policies._slots import SLOTS, get_slot
from memlab.kernel.version import __version__

# The version of the vocabulary of packs and policies, and its field in events.


POLICY_FORMAT = 7
"""Version of the vocabulary. It is raised when a slot, input, setting, feature or form is added or changes its meaning.

Events without a number have version 1. Version 2 added the slot ``select`` with its inputs
``tokens`` and ``budget``. Version 3 added ``(inherited)`` and the helpers ``boost``, ``penalise`` and ``blend``.
Version 4 added macros, ``beta-sample``, and the input ``score`` of ``explore``. It changed the
meaning of ``probe-rate``: plain recalls explore only if the call or the lab says so. Version 5 added
the setting ``context-fill`` and the input ``share`` of ``inject``. Version 6 added
the feature ``reliance``. Version 7 added the value "corrections" of ``linking`` and the feature
``says-rule``, and changed the meaning of ``asks-you``.
"""

_EXPLORES_UNTIL = 3
"""Last version of the vocabulary in which every logged recall explored.

A lab that began with it keeps exploring in plain recalls until its owner decides.
"""

VOCABULARY = "vocabulary"
"""Field with the writer's ``POLICY_FORMAT``, in events that contain the text of a pack or policy."""


@contextmanager
def naming_vocabulary(where: str, number: object) -> Iterator[None]:
    """Convert errors in a text of a later vocabulary to NewerLab.

    `where` is the name of the text in messages, and `number` the version of its vocabulary. A text
    of a later vocabulary that uses no new words is read like any other.
    """
    try:
        yield
    except (PolicyError, InputError) as error:
        if not isinstance(number, int) or number <= POLICY_FORMAT:
            raise
        raise NewerLab(
            f"{where} is written in the vocabulary of policies {number}, but memlab "
            f"{__version__} reads vocabularies up to {POLICY_FORMAT}. {_first_line(error)} Upgrade memlab."
        ) from error


def _first_line(error: PolicyError | InputError) -> str:
    """Return an error's message without its position and suggestions.

    This memlab is too old for the text, so its suggestions would mislead.
    """
    message = error.message if isinstance(error, PolicyError) else str(error)
    if isinstance(error, UnknownName):
        return f'There is no {error.what} "{error.name}" here.'
    return message.split(" Did you mean ")[0].split(" Known: ")[0].splitlines()[0]


_FORMAT = 1
"""Newest version of the bodies of policy events that `VersionLog` reads."""


@dataclass(frozen=True)
class Version(Displayed):
    """One policy in the history of a slot.

    Attributes
    ----------
    number
        Number of the version within the slot, from 1.
    seq
        Number of the event that made the policy active.
    at
        Time of the event in microseconds since 1970-01-01 UTC.
    slot
        Name of the slot.
    action
        Kind of the event, such as "use" or "install".
    pack
        Name of the pack that was active then.
    hash
        Hash of the policy as logged.
    source
        Text of the policy.
    helpers
        Texts of the ``defn`` forms that the policy was compiled with.
    reason
        Reason given for the change.
    params
        Values of parameters that differ from their defaults.
    scores
        The ``Scores`` of a policy that was just installed, next to the active pack, on the lab's
        labelled questions. None if the lab has no questions, and for versions of the history.
    lineage
        Packs that the version was made from, and the operator; see ``memlab.Lineage``.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> version = lab.policies.install("recall-score", "(fn [similarity] similarity)")
    >>> version.number, version.action
    (2, 'install')
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
    scores: Any = field(default=None, compare=False, repr=False)
    lineage: Lineage | None = None

    @cached_property
    def policy(self) -> Policy:
        """The policy, compiled by this version of memlab.

        Raises MissingExtension if its pack needs an extension that is not registered.
        """
        if not self.source:
            raise MissingExtension(
                f"{self} came with the pack {self.pack}, which needs an extension that is missing. "
                "Register it with memlab.extend(...)."
            )
        signature = get_slot(self.slot).signature
        return compile_policy(
            self.source, signature, name=self.slot, params=dict(self.params), helpers=self.helpers
        )

    def __repr__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return printable(
            f"<Version {self.number} of {self.slot} [{self.hash[:12]}], {self.action} {self.pack}{why}>"
            + ("" if self.scores is None else f"\n{self.scores.sentence}")
        )

    def _display(self) -> object:
        line = repr(self).partition("\n")[0]
        return line, self.policy, *([] if self.scores is None else [self.scores])

    def __str__(self) -> str:
        return f"{self.slot} {self.number} [{self.hash[:12]}]"


class _Entry(NamedTuple):
    """A line of the history: the effect of one event on one slot."""

    seq: int
    at: int
    action: str
    version: Version
    pinned: bool
    reason: str


class _Live(NamedTuple):
    """The active pack after one event, with its logged hash.

    The field `loaded` is None if the pack needs an extension that is not registered. `refusal` is
    then the error message.
    """

    seq: int
    action: str
    loaded: Pack | None
    hash: str
    name: str
    refusal: str = ""

    @property
    def decides(self) -> str:
        """The pack's hash, recomputed if the pack can be read, otherwise as logged."""
        return self.hash if self.loaded is None else self.loaded.hash

    @property
    def pack(self) -> Pack:
        """The pack. Raises MissingExtension if it cannot be read."""
        if self.loaded is None:
            raise MissingExtension(self.refusal)
        return self.loaded


def _observed_design(design: str, extra: int) -> str:
    """Return ``design``, or "extra" for a draft with extra items.

    A draft with extra items observes all items on which packs differ, as "extra" does.
    """
    return "extra" if design == "draft" and extra else design


class VersionLog:
    """The active pack of a lab, its pins, challenges, and the history of every slot."""

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
        # Challengers by name, also those that need a missing extension: all machines must number alike.
        self._opponents: dict[str, tuple[str, str]] = {}
        self._comparisons: dict[tuple[str, ...], int] = {}
        self._ended: dict[int, tuple[int, str]] = {}
        self._seq = 0
        self.explores = False
        """Whether plain recalls explore."""
        self.explores_by_habit = False
        """Whether plain recalls explore because the lab is old, not because its owner decided so."""
        self.refuses_chance = False
        """Whether the owner decided that plain recalls do not explore."""

    # -- current state ----------------------------------------------------------------------------------------------

    @property
    def pack(self) -> Pack:
        """The active pack. Raises MissingExtension if it needs a missing extension."""
        if not self._lives:
            raise InputError("No pack is active yet.")
        return self._lives[-1].pack

    @property
    def pack_hashes(self) -> tuple[str, ...]:
        """The hashes of all packs that were ever active, in the order of their first use."""
        return tuple(self._hashes)

    @property
    def live_hash(self) -> str:
        """The logged hash of the active pack."""
        return self._lives[-1].hash if self._lives else ""

    @property
    def empty(self) -> bool:
        """True if no pack was ever active."""
        return not self._lives

    @property
    def readable(self) -> bool:
        """True if a pack is active and every extension that it needs is registered."""
        return bool(self._lives) and self._lives[-1].loaded is not None

    @property
    def pins(self) -> Mapping[str, Version]:
        """The pinned slots, each with its pinned version."""
        return MappingProxyType({slot: self._versions[slot][-1] for slot in self._pins})

    @property
    def challenges(self) -> tuple[Challenge, ...]:
        """The packs that challenge the active pack, oldest first."""
        return tuple(self._challenges.values())

    def number_comparison(self, name: str, hash: str, design: str, extra: int = 0) -> int:
        """Return the number of a challenger's comparison with the active pack, starting at 1.

        The next number is returned for a new comparison. A comparison is a version of the challenger,
        a version of the active pack, and a kind of design, so it continues if a challenge begins again.

        Parameters
        ----------
        name, hash
            The name and the hash of the challenger.
        design, extra
            The design of the challenge, and its number of extra items.

        Returns
        -------
        int
            The number, which is fixed from the first event on that makes the comparison possible.
        """
        comparison = self._comparison(name, hash, _observed_design(design, extra))
        return self._comparisons.get(comparison) or max(self._comparisons.values(), default=0) + 1

    def _comparison(self, name: str, hash: str, design: str) -> tuple[str, ...]:
        """Return the identity of a comparison: the challenger's name and hash, the active pack's hash, the kind."""
        # Observations of extra items and of a lot have the same estimand, so both continue one comparison.
        kind = "items" if design in ("extra", "lot") else design
        return name, hash, self.live_hash, kind

    def _number_comparisons(self) -> None:
        """Assign numbers to the comparisons of all challengers with the pack that became active."""
        for name, (hash, design) in self._opponents.items():
            if hash == self.live_hash:
                continue
            number = self.number_comparison(name, hash, design)
            self._comparisons[self._comparison(name, hash, design)] = number
            challenge = self._challenges.get(name)
            if challenge is not None and challenge.number:
                self._challenges[name] = replace(
                    challenge, number=number, share=error_share(number)
                )

    def with_pins(self, pack: Pack) -> Pack:
        """Return a pack with the pinned policies in their slots.

        The result is the pack that would be active.

        Parameters
        ----------
        pack
            The pack to combine with the pins.

        Returns
        -------
        Pack
            The pack itself if it has the pinned policies.
        """
        for slot, policy in self._pins.items():
            if pack.policies[slot].hash != policy.hash:
                pack = self._with_earlier(pack, slot, policy)
        return pack

    def _with_earlier(self, pack: Pack, slot: str, policy: Policy) -> Pack:
        """Return a pack with a policy that was active before.

        The policy ``known`` stays calibrated for the ranking that it was last active with.
        """
        pack = pack.with_policy(slot, policy)
        earlier = (live.loaded for live in reversed(self._lives) if live.loaded is not None)
        known_for = (
            other.known_for
            for other in earlier
            if slot == "known" and other.policies[slot].hash == policy.hash
        )
        return replace(pack, known_for=next(known_for, pack.known_for))

    # -- fold of events ---------------------------------------------------------------------------------------------

    def fold(self, event: Event, source_of: Callable[[str], str]) -> None:
        """Apply one event. Other kinds of events and events applied before are ignored.

        An event whose policy is of a later version raises an error every time, so that no outdated
        policy is used silently.

        Parameters
        ----------
        event
            The event to apply.
        source_of
            Function that returns the text of a source by its hash.

        Raises
        ------
        NewerLab
            If the event was written by a later version.
        PolicyError
            If a text is invalid.
        """
        if event.seq <= self._seq:
            return
        live = self.live_hash
        if not self._seq:
            self.explores = event.body.get(VOCABULARY, 1) <= _EXPLORES_UNTIL
            self.explores_by_habit = self.explores
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
        self._track_comparisons(event, live)
        self._seq = event.seq

    def _track_comparisons(self, event: Event, live: str) -> None:
        """Record challengers and comparison numbers. ``live`` is the previous pack's hash."""
        body = event.body
        if event.kind == "challenge":
            opponent = body["pack"], body["hash"], _observed_design(body["design"], body["extra"])
            self._opponents[opponent[0]] = opponent[1:]
            number = body.get("number") or self.number_comparison(*opponent)
            self._comparisons[self._comparison(*opponent)] = number
        elif event.kind == "end-challenge":
            self._opponents.pop(body["pack"], None)
        elif self.live_hash != live:
            self._number_comparisons()

    def _leave_out(self, event: Event, refusal: str, source_of: Callable[[str], str]) -> None:
        """Record a policy event that needs a missing extension; for a challenge, only warn with ``refusal``.

        The lab opens, but reading its active pack raises an error.
        """
        if event.kind in ("challenge", "end-challenge"):
            warnings.warn(
                f"{refusal} The challenger is left out of recalls.", ExtensionWarning, stacklevel=2
            )
            return
        body = event.body
        hash = body["live"] if "live" in body else body.get("hash", "")
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
        """Apply a policy event, whose extensions are registered, to the version log."""
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
            pack = replace(_pack_in(event, source_of), lineage=read_lineage(body))
            self._challenges[pack.name] = Challenge(
                pack,
                body["design"],
                body["extra"] or "auto",
                body["rate"],
                event.seq,
                event.at,
                body["reason"],
                body.get("number", 0),
                body.get("share", 0.0),
                "guard" in body,
            )
            self._challenged.append(self._challenges[pack.name])
        elif event.kind == "end-challenge":
            ended = self._challenges.pop(body["pack"], None)
            if ended is not None:  # A challenger that needs a missing extension was left out.
                self._ended[ended.seq] = event.at, event.body.get("reason", "")
        elif event.kind == "explore":
            self.explores, self.explores_by_habit = body["on"], False
            self.refuses_chance = not body["on"]
        elif event.kind == "unpin":
            del self._pins[body["slot"]]
            self._live(event, self.pack)
            self._enter(event, self._versions[body["slot"]][-1])

    def _become(self, event: Event, pack: Pack) -> None:
        """Make another pack active and add versions for changed slots."""
        last = self._lives[-1].loaded if self._lives else None
        before = {} if last is None else last.policies
        pack = self.with_pins(replace(pack, lineage=read_lineage(event.body) or pack.lineage))
        self._live(event, pack)
        logged = event.body.get("policies", {})
        entries = len(self._entries)
        for slot, policy in pack.policies.items():
            if slot not in before or before[slot].hash != policy.hash:
                self._enter(event, self._added(event, slot, policy, logged.get(slot, policy.hash)))
        lineage = read_lineage(event.body)
        if len(self._entries) == entries and lineage is not None:
            # The active pack stays, and has a lineage now.
            for versions in filter(None, self._versions.values()):
                self._enter(event, replace(versions[-1], lineage=lineage))

    def _put(self, event: Event, slot: str, policy: Policy) -> None:
        """Make another policy active in one slot, and record the version.

        If a pin keeps the active policy, no version is added.
        """
        same = event.kind == "pin" and self.pack.policies[slot].hash == policy.hash
        put = Pack.with_policy if event.kind == "install" else self._with_earlier
        pack = self.pack if same else put(self.pack, slot, policy)
        self._live(event, replace(pack, lineage=read_lineage(event.body) or pack.lineage))
        if same:
            self._enter(event, self._versions[slot][-1])
        else:
            self._enter(
                event, self._added(event, slot, policy, event.body.get("hash", policy.hash))
            )

    def _live(self, event: Event, pack: Pack) -> None:
        """Record the pack that is active after an event."""
        body = event.body
        # Labs from before pins existed stored the hash of the active pack under other names.
        hash = body.get("live") or body.get(
            {"use": "hash", "install": "pack"}.get(event.kind, ""), pack.hash
        )
        self._lives.append(_Live(event.seq, event.kind, pack, hash, pack.name))
        self._hashes.setdefault(hash)

    def _added(self, event: Event, slot: str, policy: Policy, hash: str) -> Version:
        """Add a version of a slot with a compiled policy, and return the version."""
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
        """Add a version of a slot from its parts, and return the version."""
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
            lineage=read_lineage(event.body),
        )
        self._versions[slot].append(version)
        return version

    def _enter(self, event: Event, version: Version) -> None:
        """Append a line to the history: the version that an event made active."""
        pinned = version.slot in self._pins
        reason = event.body.get("reason", "")
        self._entries.append(
            _Entry(event.seq, event.at, _action(event.kind), version, pinned, reason)
        )

    # -- history ---------------------------------------------------------------------------------------------

    def versions(self, slot: str) -> tuple[Version, ...]:
        """Return every version of a slot, oldest first.

        The last one is active.

        Parameters
        ----------
        slot
            Name of the slot.

        Returns
        -------
        tuple of Version
            The versions of the slot.

        Raises
        ------
        UnknownName
            If no slot has this name.
        """
        get_slot(slot)
        return tuple(self._versions[slot])

    def version(self, slot: str, wanted: int | str) -> Version:
        """Return a slot's version by its number or hash prefix.

        Parameters
        ----------
        slot
            Name of the slot.
        wanted
            Number or beginning of a hash.

        Returns
        -------
        Version
            The latest version that matches.

        Raises
        ------
        UnknownName
            If no version matches.
        """
        versions = self.versions(slot)
        for version in reversed(versions):
            if wanted == version.number or (
                isinstance(wanted, str) and wanted and version.hash.startswith(wanted)
            ):
                return version
        raise UnknownName(
            f"version of {slot}", wanted, [f"{item.number} [{item.hash[:12]}]" for item in versions]
        )

    def previous(self, slot: str) -> Version:
        """Return a slot's latest version that differs from the active policy.

        Parameters
        ----------
        slot
            Name of the slot.

        Returns
        -------
        Version
            The version that a roll-back would restore.

        Raises
        ------
        InputError
            If the slot has had only one policy.
        """
        versions = self.versions(slot)
        for version in reversed(versions[:-1]):
            if version.hash != versions[-1].hash:
                return version
        raise InputError(
            f"The slot {slot} has had one policy only: there is nothing to roll back to."
        )

    def previous_pack(self) -> int:
        """Return the number of the event after which the previous pack was active.

        A rollback to it undoes policies that were installed since. Events that changed nothing are
        skipped, and so are packs that decide like the active one.

        Returns
        -------
        int
            Number of the event.

        Raises
        ------
        InputError
            If no other pack was active before.
        """
        for before, change in zip(self._lives[-2::-1], self._lives[:0:-1], strict=True):
            if before.loaded is None:  # It needs an extension that is missing.
                continue
            whole = (
                change.action in ("use", "rollback-pack") and before.loaded.hash != change.decides
            )
            if whole and self.with_pins(before.loaded).hash != self._lives[-1].decides:
                return before.seq
        raise InputError(
            f"No other pack was active before {self.pack.name}: there is nothing to roll back to."
        )

    def event_of(self, wanted: int | str) -> int:
        """Return the number of the event after which a pack was active.

        Parameters
        ----------
        wanted
            Number of an event, or the first characters of the pack's hash.

        Returns
        -------
        int
            Number of the latest event that matches.

        Raises
        ------
        UnknownName
            If no event matches.
        """
        for live in reversed(self._lives):
            if wanted == live.seq or (
                isinstance(wanted, str) and wanted and live.hash.startswith(wanted)
            ):
                return live.seq
        options = [f"{live.seq} [{live.hash[:12]}]" for live in self._lives]
        raise UnknownName(
            "event number of a policy change, or hash of a formerly active pack", wanted, options
        )

    def live_at(self, seq: int) -> Pack:
        """Return the pack that was active after an event.

        Parameters
        ----------
        seq
            Number of the event.

        Returns
        -------
        Pack
            The pack with its pins.
        """
        return self._lives[bisect_right(self._lives, seq, key=lambda live: live.seq) - 1].pack

    def deciders(self, pack: str) -> dict[str, Version]:
        """Return the version of each slot when a pack was last active.

        Parameters
        ----------
        pack
            First characters of the pack's hash.

        Returns
        -------
        dict
            `Version` by slot.

        Raises
        ------
        UnknownName
            If no pack with this hash was active.
        """
        seq = self.event_of(pack)
        return {
            slot: versions[bisect_right(versions, seq, key=lambda version: version.seq) - 1]
            for slot, versions in self._versions.items()
            if versions
        }

    def timeline(self, slot: str) -> pl.DataFrame:
        """Return the active pack after each event, with the slot's version in that pack.

        Parameters
        ----------
        slot
            Name of the slot.

        Returns
        -------
        DataFrame
            The columns ``event``, ``pack_hash`` and ``version``.
        """
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
        """Return every challenge, oldest first; see ``LabPolicies.challenge_history``.

        Returns
        -------
        DataFrame
            One row for each challenge.
        """
        # A challenge without an end is still running, so its end and the reason are null.
        every = self._challenged
        ends = [self._ended.get(challenge.seq, (None, None)) for challenge in every]
        return pl.DataFrame(
            {
                "name": [challenge.name for challenge in every],
                "hash": [challenge.pack.hash for challenge in every],
                "design": [challenge.design for challenge in every],
                "since": pl.Series([challenge.at for challenge in every], dtype=pl.Int64).cast(
                    INSTANT
                ),
                "until": pl.Series([at for at, _ in ends], dtype=pl.Int64).cast(INSTANT),
                "reason": [challenge.reason for challenge in every],
                "end_reason": [reason for _, reason in ends],
            },
            schema_overrides=dict.fromkeys(
                ("name", "hash", "design", "reason", "end_reason"), pl.String
            ),
        )

    def frame(self, slot: str | None = None) -> pl.DataFrame:
        """Return the history of one slot or of all slots, oldest version first.

        Parameters
        ----------
        slot
            Name of the slot; by default all slots.

        Returns
        -------
        DataFrame
            One row for each event and slot.
        """
        if slot is not None:
            get_slot(slot)
        # The last row of a slot is the active one.
        rows = [entry for entry in self._entries if slot is None or entry.version.slot == slot]
        last = {row.version.slot: row.seq for row in rows}
        lineages = [row.version.lineage for row in rows]
        frame = pl.DataFrame(
            {
                "slot": [row.version.slot for row in rows],
                "version": [row.version.number for row in rows],
                "live": [row.seq == last[row.version.slot] for row in rows],
                "pinned": [row.pinned for row in rows],
                "at": pl.Series([row.at for row in rows], dtype=pl.Int64).cast(INSTANT),
                "action": [row.action for row in rows],
                "pack": [row.version.pack for row in rows],
                "hash": [row.version.hash for row in rows],
                "reason": [row.reason for row in rows],
                "event": [row.seq for row in rows],
                "parents": [None if line is None else list(line.parents) for line in lineages],
                "operator": [None if line is None else line.operator for line in lineages],
                "evidence": [None if line is None else line.evidence for line in lineages],
            },
            schema_overrides={
                "version": pl.Int64,
                "event": pl.Int64,
                "parents": pl.List(pl.String),
                "operator": pl.String,
                "evidence": pl.String,
            },
        )
        return frame if slot is None else frame.drop("slot")


def _naming_vocabulary(event: Event) -> AbstractContextManager[None]:
    """Return a context that converts errors to NewerLab if a later version of memlab wrote an event's text."""
    return naming_vocabulary(f"Event {event.seq} ({event.kind})", event.body.get(VOCABULARY, 1))


def _pack_in(event: Event, source_of: Callable[[str], str]) -> Pack:
    """Build the pack from the source texts that an event refers to."""
    sources = tuple(source_of(hash) for hash in event.body["sources"])
    with _naming_vocabulary(event):
        return pack_from_sources(sources)


def _policy_in(event: Event, source_of: Callable[[str], str]) -> Policy:
    """Build the policy of one slot from the text that an event refers to."""
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
    """Return the word for a kind of event in the history: the kind, but "rollback" for "rollback-pack"."""
    return "rollback" if kind == "rollback-pack" else kind


def _described(event: Event) -> str:
    """Return the subject of a message about an event: a pack or a slot's policy."""
    body = event.body
    return (
        f"The policy of {body['slot']}"
        if "slot" in body
        else f"The pack {body.get('pack', '')}".rstrip()
    )
