"""``lab.policies``: which policies decide, since when, how they did, and how to go back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple, overload

import polars as pl

from memlab.errors import InputError, RankingWarning, UnknownName
from memlab.kernel.base.arguments import AnyNumber, AsGiven, Within, checked, warn_caller
from memlab.kernel.base.display import Displayed, box, table
from memlab.kernel.base.printable import printable
from memlab.kernel.hooks import load_part
from memlab.kernel.language import Policy, compile_policy, policy_parts, slot_of
from memlab.kernel.policies import (
    POLICY_FORMAT,
    SLOTS,
    VOCABULARY,
    Challenge,
    ChallengeDesign,
    Pack,
    PackLike,
    Version,
    VersionLog,
    load_pack,
    needs_of_pack,
    needs_of_policy,
    pack_from_sources,
    slot_named,
)
from memlab.kernel.privacy import refuse
from memlab.kernel.verbs.core import Core

__all__ = ["LabPolicies"]


class _Change(NamedTuple):
    """An event to be written, and the texts that it refers to by their hashes."""

    kind: str
    body: dict[str, Any]
    sources: Mapping[str, str]


class LabPolicies(Displayed):
    """The policies of one lab. Every change is an event with hashes, and takes effect at the next recall.

    It may be kept and called from any thread; each call sees what other threads and processes have changed.

    >>> lab.policies.install("recall-score", "(fn [similarity recency] (+ similarity recency))")  # doctest: +SKIP
    """

    def __init__(self, core: Core) -> None:
        self._core, self._store = core, core.store

    @checked
    def recall_again(self, decision: Mapping[str, Any], pack: Pack) -> pl.DataFrame | None:
        """The candidates that ``pack`` would have had for a logged decision (a row of ``slates().decisions``).

        It is asked of the state before the decision. None where the recall cannot be repeated, because its filter is
        not in the log. ``memlab.evaluate`` uses it where logged features do not do.
        """
        candidates: pl.DataFrame | None = self._core.component("questions").again(decision, pack)
        return candidates

    @checked
    def watch(
        self,
        path: str | Path,
        slot: str | None = None,
        *,
        every: Annotated[float, Within(0.001, 86_400)] = 0.2,
        on_change: Callable[[Any], None] | None = None,
    ) -> Any:
        """Use the pack in a ``.hy`` file, now and at every save, until ``stop`` or ``close``; see ``Watch``.

        With ``slot``, the file holds one policy for it. ``on_change`` is called, in the watching thread, in place of
        showing changes. A file that is broken to begin with raises a PolicyError.

        >>> watch = lab.policies.watch("mine.hy")                                          # doctest: +SKIP
        """
        return self._core.component("watches").start(path, slot, every=every, on_change=on_change)

    # -- changing ---------------------------------------------------------------------------------------------

    @checked
    def use(
        self, pack: PackLike, *, reason: str = "", compare: Annotated[int, Within(0, 100)] = 10
    ) -> Pack:
        """Make a pack live: by name, by path or by text. Slots that are pinned keep their policies.

        Returns the live pack, with whatever is pinned in it. A published design ranks by its own formula; on a lab of
        chats a ``RankingWarning`` says how far it and the live pack agree on at most ``compare`` queries of the lab.
        The pack ``NAME-plus`` keeps the same rules of a memory's life over the ranking of the default pack. 0 queries
        leave the comparison out.
        """
        chosen = load_pack(pack)
        notice = load_part("ranking-notice")(self._core, chosen, compare) if compare else None

        def make(versions: VersionLog) -> list[_Change]:
            # A pack that was changed after it was read: its single policies are installed on top.
            read = pack_from_sources(chosen.sources)
            after = versions.with_pins(read)
            sources = {_hash(text): text for text in chosen.sources}
            body: dict[str, Any] = {
                "pack": chosen.name,
                "hash": read.hash,
                "sources": list(sources),
            }
            body[VOCABULARY] = POLICY_FORMAT
            body["live"] = after.hash
            body["policies"] = after.policy_hashes
            body |= _needing(needs_of_pack(after))
            changes = [_Change("use", {**body, "reason": reason}, sources)]
            for slot, policy in chosen.policies.items():
                if read.policies[slot].hash != policy.hash:
                    read = read.with_policy(slot, policy)
                    if slot not in versions.pins:
                        after = after.with_policy(slot, policy)
                        changes.append(_put("install", slot, policy, after, reason))
            if read.hash != chosen.hash:
                raise InputError(
                    f"The settings of the pack {chosen.name} are not those of its text, which is what is kept. "
                    "Write them in its text: (setting name value)."
                )
            return changes

        self._write(make, reason)
        if notice is not None:
            warn_caller(notice, RankingWarning)
        return self.pack

    @checked
    def check(
        self,
        slot: str,
        source: Annotated[Any, AsGiven],
        *,
        helpers: tuple[str, ...] = (),
        params: Mapping[str, Annotated[float, AnyNumber]] | None = None,
    ) -> Policy:
        """Return the compiled policy that ``install`` would put into a slot, and change nothing.

        ``source``, ``helpers`` and ``params`` are those of ``install``. Raises a PolicyError for what the dialect does
        not have, and InputError for a policy of another slot.

        >>> lab.policies.check("recall-score", "(fn [similarity] (* 2 similarity))").hash      # doctest: +SKIP
        """
        text, own_helpers, own_params = policy_parts(source)
        helpers = tuple(dict.fromkeys((*own_helpers, *helpers)))
        values = {**own_params, **(params or {})} if own_params else params
        policy = compile_policy(
            text, slot_named(slot).signature, name=slot, params=values, helpers=helpers
        )
        named = slot_of(text)
        if named not in ("", slot):
            raise InputError(
                f"This is a policy of {named}, and {slot} is to be filled: rename it, or install it there."
            )
        return policy

    @checked
    def install(
        self,
        slot: str,
        source: Annotated[Any, AsGiven],
        *,
        helpers: tuple[str, ...] = (),
        params: Mapping[str, Annotated[float, AnyNumber]] | None = None,
        reason: str = "",
    ) -> Version:
        """Put a policy into one slot of the live pack.

        ``source`` is a text, a form of Hy's reader (a quoted one too), or a compiled policy, whose helpers and values
        of parameters come with it. ``helpers`` are ``defn`` forms that it calls, ``params`` values of its parameters.
        InputError if the slot is pinned.

        >>> lab.policies.install("recall-score", hy.read("(fn [similarity] (* 2 similarity))"))    # doctest: +SKIP
        """
        policy = self.check(slot, source, helpers=helpers, params=params)

        def make(versions: VersionLog) -> list[_Change]:
            _check_free(versions, slot)
            return [_put("install", slot, policy, versions.pack.with_policy(slot, policy), reason)]

        return self._write_slot(slot, make, reason)

    @checked
    def challenge(
        self,
        pack: PackLike,
        *,
        design: ChallengeDesign = "extra",
        extra: Annotated[int, Within(1, 20)] = 1,
        rate: Annotated[float, Within(0.01, 1)] = 1.0,
        reason: str = "",
    ) -> Challenge:
        """Compare a pack with the live one from the next recall on; ``lab.verdict`` says which is better.

        With ``design="extra"`` the head is shown in full, and beside it, at a random place, ``extra`` items that a
        challenger would show and the live pack did not. With ``"lot"`` no recall is longer: what all packs would show
        is shown, and a lot decides among the rest. With ``"ab"`` the whole head of one pack is shown, the live one's or
        a challenger's: the slowest, and the one that holds where items make one another worthless or places count.
        ``rate`` is the share of recalls in which this happens; challengers take the place of the pack's own probes.
        There may be several at once, under one design. Nothing is shown that the live pack's ``eligible``, a viewer or
        a filter forbids. Logged; ``end_challenge`` ends it.

        InputError for the live pack itself, for one that is a challenger already, and for two designs at once.

        >>> lab.policies.challenge("companion", reason="is fresh better?")                     # doctest: +SKIP
        """
        chosen = load_pack(pack)

        def make(versions: VersionLog) -> list[_Change]:
            if chosen.hash == versions.pack.hash:
                raise InputError(f"{chosen.name} is the live pack: challenge it with another one.")
            for other in versions.challenges:
                if other.name == chosen.name:
                    raise InputError(
                        f"{chosen.name} is a challenger already. End that first: "
                        f'lab.policies.end_challenge("{chosen.name}").'
                    )
                if other.design != design:
                    raise InputError(
                        f'{other.name} is challenged by design="{other.design}": all challengers share one design.'
                    )
            if pack_from_sources(chosen.sources).hash != chosen.hash:
                raise InputError(
                    f"The pack {chosen.name} was changed after it was read. Write the change in its text."
                )
            sources = {_hash(text): text for text in chosen.sources}
            body: dict[str, Any] = {
                "pack": chosen.name,
                "hash": chosen.hash,
                "sources": list(sources),
            }
            body |= {
                VOCABULARY: POLICY_FORMAT,
                "design": design,
                "extra": extra,
                "rate": rate,
                "reason": reason,
            }
            body |= _needing(needs_of_pack(chosen))
            return [_Change("challenge", body, sources)]

        with self._store.alone():
            self._write(make, reason)
            return self._store.versions.challenges[-1]

    @checked
    def end_challenge(self, name: str, *, reason: str = "") -> None:
        """Compare a pack no longer; what was logged meanwhile stays. UnknownName if it is no challenger."""

        def make(versions: VersionLog) -> list[_Change]:
            known = [one.name for one in versions.challenges]
            if name not in known:
                raise UnknownName("challenger", name, known)
            return [_Change("end-challenge", {"pack": name, "reason": reason}, {})]

        self._write(make, reason)

    @property
    def challenges(self) -> tuple[Challenge, ...]:
        """The packs that are compared with the live one, oldest first."""
        with self.seen() as versions:
            return versions.challenges

    @property
    def challenge_history(self) -> pl.DataFrame:
        """Every pack that was compared with the live one, oldest first.

        Columns: ``name``, ``hash``, ``design``, ``since``, ``until`` (null: it still is), ``reason``.
        """
        with self.seen() as versions:
            return versions.challenge_frame()

    @overload
    def rollback(self, slot: str, *, to: int | str | None = None, reason: str = "") -> Version: ...
    @overload
    def rollback(
        self, slot: None = None, *, to: int | str | None = None, reason: str = ""
    ) -> Pack: ...
    @checked
    def rollback(
        self, slot: str | None = None, *, to: int | str | None = None, reason: str = ""
    ) -> Version | Pack:
        """Bring back what decided before: one slot's policy, or without a slot the whole pack.

        Of a slot: the policy before the live one, or the version ``to`` (its number, or the start of its hash).
        InputError if the slot is pinned.

        Of the pack: all of it as it stood just before a pack was last used, with what had been installed in it; what
        was installed since is undone too. ``to`` is an event of ``history`` or the start of the hash of a pack that was
        live, and brings back what was live then. Slots that are pinned keep their policies. A second rollback undoes
        the first.
        """
        if slot is not None:
            return self._return(slot, to, "rollback", reason)

        def make(versions: VersionLog) -> list[_Change]:
            event = versions.previous_pack() if to is None else versions.event_of(to)
            after = versions.with_pins(versions.live_at(event))
            body: dict[str, Any] = {
                "to": event,
                "pack": after.name,
                "live": after.hash,
                "reason": reason,
            }
            body["policies"] = {slot: policy.hash for slot, policy in after.policies.items()}
            body |= _needing(needs_of_pack(after))
            return [_Change("rollback-pack", body, {})]

        self._write(make, reason)
        return self.pack

    @checked
    def pin(self, slot: str, to: int | str | None = None, *, reason: str = "") -> Version:
        """Hold a slot at its live policy, or at the version ``to``, through every later ``use`` until ``unpin``.

        Meanwhile ``install`` and ``rollback`` of the slot are errors. Pinning a pinned slot to another version moves
        the pin.
        """
        return self._return(slot, to, "pin", reason)

    @checked
    def unpin(self, slot: str, *, reason: str = "") -> Version:
        """Let a slot go: its policy stays until something replaces it. InputError if it is not pinned."""
        slot_named(slot)

        def make(versions: VersionLog) -> list[_Change]:
            if slot not in versions.pins:
                pinned = ", ".join(versions.pins) or "none"
                raise InputError(f"The slot {slot} is not pinned. Pinned: {pinned}.")
            live = versions.pack
            body = {
                "slot": slot,
                "hash": live.policies[slot].hash,
                "live": live.hash,
                "reason": reason,
            }
            return [_Change("unpin", body, {})]

        return self._write_slot(slot, make, reason)

    # -- looking ----------------------------------------------------------------------------------------------

    @property
    def pack(self) -> Pack:
        """The live pack."""
        with self.seen() as versions:
            return versions.pack

    @property
    def pins(self) -> dict[str, Version]:
        """The pinned slots and the version that each is held at."""
        with self.seen() as versions:
            return dict(versions.pins)

    @checked
    def __getitem__(self, slot: str) -> Policy:
        """The live policy of a slot."""
        slot_named(slot)
        return self.pack.policies[slot]

    def __iter__(self) -> Iterator[str]:
        """The slots."""
        return iter(SLOTS)

    def __len__(self) -> int:
        return len(SLOTS)

    def __contains__(self, slot: object) -> bool:
        return slot in SLOTS

    def _ipython_key_completions_(self) -> list[str]:
        return list(SLOTS)

    @checked
    def history(self, slot: str | None = None) -> pl.DataFrame:
        """What happened to a slot, oldest first; without a slot, to all of them.

        One row for each event and slot that it concerns: ``slot`` (for all), ``version`` that was live after it,
        ``live`` (in the last row of the slot: what decides now), ``pinned`` (after it), ``at``, ``action`` (use,
        install, rollback, pin, unpin), ``pack``, ``hash`` of the policy, ``reason`` and ``event``.
        """
        with self.seen() as versions:
            return versions.frame(slot)

    @checked
    def diff(
        self, slot: str, before: int | str | None = None, after: int | str | None = None
    ) -> Any:
        """Compare two versions, by default the live one and the one before: a ``memlab.subjects.lens.PolicyDiff``."""
        with self.seen() as versions:
            new = versions.versions(slot)[-1] if after is None else versions.version(slot, after)
            old = versions.previous(slot) if before is None else versions.version(slot, before)
        return load_part("compare-policies")(old, new)

    @checked
    def deciders(self, pack: str) -> dict[str, Version]:
        """The version that each slot had under a pack that was live, by the (start of the) hash that events carry.

        Recalls, feedback and slates carry the hash of the whole pack; this tells the hash of each policy.
        """
        with self.seen() as versions:
            return versions.deciders(pack)

    @checked
    def attribution(self, slot: str = "recall-score") -> Any:
        """How what each version of a slot showed was judged, with 95% credible intervals; see ``Attribution``.

        Observational: versions met different questions. ``memlab.evaluate`` compares policies on equal terms.
        100,000 recalls with as many judgements take 1.7 s on a busy machine, most of it to read them.
        """
        with self.seen() as versions:
            known, timeline, head = (
                versions.versions(slot),
                versions.timeline(slot),
                self._store.state.seq,
            )
        return load_part("attribute-feedback")(self._store, slot, known, timeline, head)

    def __repr__(self) -> str:
        with self.seen() as versions:
            pack, rows = versions.pack, _rows(versions)
        lines = [f"pack {pack.name} [{pack.hash[:12]}]"]
        lines += [
            f"  {row.slot:<14} {row.number:>3} [{row.hash[:12]}] {row.pack:<12} "
            f"{'pinned ' if row.pinned else ''}{row.doc}".rstrip()
            for row in rows
        ]
        return printable("\n".join(lines))

    def _display(self) -> object:
        with self.seen() as versions:
            pack, rows = versions.pack, _rows(versions)
        cells = [
            (r.slot, r.number, r.hash[:12], r.pack, "pinned" if r.pinned else "", r.doc)
            for r in rows
        ]
        heads = ("slot", "version", "hash", "pack", "", "what it says")
        return box(table(f"pack {pack.name} [{pack.hash[:12]}]", heads, cells))

    # -- within -----------------------------------------------------------------------------------------------

    @contextmanager
    def seen(self) -> Iterator[VersionLog]:
        """The versions as they are now; nothing in this process changes them within the block."""
        with self._store.reading():
            yield self._store.versions

    def _return(self, slot: str, to: int | str | None, kind: str, reason: str) -> Version:
        """Install a version of the slot again; of a pin, the live one unless ``to`` says otherwise."""
        slot_named(slot)

        def make(versions: VersionLog) -> list[_Change]:
            if kind == "rollback":
                _check_free(versions, slot)
            if to is not None:
                wanted = versions.version(slot, to)
            else:
                wanted = versions.versions(slot)[-1] if kind == "pin" else versions.previous(slot)
            after = versions.pack.with_policy(slot, wanted.policy)
            change = _put(kind, slot, wanted.policy, after, reason)
            return [change._replace(body={**change.body, "to": wanted.number})]

        return self._write_slot(slot, make, reason)

    def _write_slot(
        self, slot: str, make: Callable[[VersionLog], list[_Change]], reason: str
    ) -> Version:
        with self._store.alone():
            self._write(make, reason)
            return self._store.versions.versions(slot)[-1]

    def _write(self, make: Callable[[VersionLog], list[_Change]], reason: str) -> None:
        """One transaction: what ``make`` says of the versions as they are once nobody else can write."""
        refuse(reason, "reason")
        with self._store.writing() as tx:
            now = self._store.clock()
            for change in make(self._store.versions):
                for hash, source in change.sources.items():
                    refuse(source, "policy")
                    tx.source(hash, source)
                for helper in change.body.get("helpers", ()):
                    refuse(helper, "helper of a policy")
                tx.event(change.kind, change.body, at=now)


def _check_free(versions: VersionLog, slot: str) -> None:
    pinned = versions.pins.get(slot)
    if pinned is not None:
        raise InputError(
            f"The slot {slot} is pinned to version {pinned.number} [{pinned.hash[:12]}]. Unpin it first: "
            f'lab.policies.unpin("{slot}").'
        )


def _put(kind: str, slot: str, policy: Policy, after: Pack, reason: str) -> _Change:
    """The event that makes ``policy`` live in ``slot``, and ``after`` the live pack."""
    hash = _hash(policy.source)
    body: dict[str, Any] = {
        "slot": slot,
        "hash": policy.hash,
        "source": hash,
        "helpers": list(policy.helpers),
        VOCABULARY: POLICY_FORMAT,
        "live": after.hash,
        "reason": reason,
    }
    params = {
        param.name: param.value for param in policy.params.values() if param.value != param.default
    }
    if params:
        body["params"] = params
    return _Change(kind, body | _needing(needs_of_policy(slot, policy)), {hash: policy.source})


def _needing(needs: dict[str, str]) -> dict[str, Any]:
    """Return the field that says which extensions a decision needs; none if it needs none."""
    return {"needs": needs} if needs else {}


class _Row(NamedTuple):
    slot: str
    number: int
    hash: str
    pack: str
    pinned: bool
    doc: str


def _rows(versions: VersionLog) -> list[_Row]:
    rows = []
    for slot, policy in versions.pack.policies.items():
        version = versions.versions(slot)[-1]
        doc = " ".join(policy.doc.split())
        rows.append(
            _Row(slot, version.number, version.hash, version.pack, slot in versions.pins, doc)
        )
    return rows


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
