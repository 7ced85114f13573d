"""``lab.policies``: the active policies, their history, feedback by version, and rollback."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, overload

import polars as pl

from memlab.errors import InputError, RankingWarning, UnknownName
from memlab.kernel.base.arguments import AnyNumber, AsGiven, Within, checked, warn_caller
from memlab.kernel.base.display import Displayed, box, table
from memlab.kernel.base.printable import printable
from memlab.kernel.hooks import load_part
from memlab.kernel.journal import Body
from memlab.kernel.language import Policy
from memlab.kernel.policies import (
    POLICY_FORMAT,
    SLOTS,
    VOCABULARY,
    Challenge,
    ChallengeDesign,
    ExtraItems,
    Lineage,
    Pack,
    PolicyLike,
    SinglePolicy,
    Version,
    VersionLog,
    as_pack,
    error_share,
    get_slot,
    needs_of_pack,
    needs_of_policy,
    pack_from_sources,
    read_policy,
)
from memlab.kernel.privacy import refuse
from memlab.kernel.verbs.core import Core


class _Change(NamedTuple):
    """An event to write, and the policy texts that it refers to by hash."""

    kind: str
    body: Body
    sources: Mapping[str, str]


class LabPolicies(Displayed):
    """The policies of one lab.

    Every change is an event with hashes and takes effect at the next recall. The accessor may be
    stored and called from any thread. Each call sees the changes of other threads and processes.
    ``lab.policies["recall-score"]`` is the active policy of a slot.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> version = lab.policies.install(
    ...     "recall-score", "(fn [similarity recency] (+ similarity recency))"
    ... )
    >>> version.number, lab.policies.pack.name
    (2, 'memlab')
    """

    def __init__(self, core: Core) -> None:
        self._core, self._store = core, core.store

    @checked
    def recall_again(self, decision: Mapping[str, Any], pack: Pack) -> pl.DataFrame | None:
        """Return the candidates that a pack would have had for a logged decision.

        The query is repeated on the state before the decision. ``memlab.evaluate`` uses it where
        the logged features do not suffice.

        Parameters
        ----------
        decision
            A row of ``lab.slates().decisions``, as a dict.
        pack
            The pack that ranks the candidates.

        Returns
        -------
        DataFrame or None
            The candidates; None if the recall cannot be repeated, because its filter is not in the
            log.

        Raises
        ------
        InputError
            If ``decision`` is not a row of decisions.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The user prefers tabs")
        >>> _ = lab.recall("tabs or spaces?")
        >>> decision = lab.slates().decisions.collect().row(0, named=True)
        >>> candidates = lab.policies.recall_again(decision, memlab.load_pack("companion"))
        >>> candidates["memory_id"].to_list()
        [1]
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
        """Use the pack or policy of a ``.hy`` file, now and after each save.

        The watch ends with its method ``stop``.

        Parameters
        ----------
        path
            The path of the file.
        slot
            The slot of the file's only policy. Default: the file holds a pack.
        every
            The seconds between two checks of the file, 0.001 to 86,400.
        on_change
            A function that is called with each change, in the watching thread. Default: changes are
            displayed.

        Returns
        -------
        Watch
            The watch, with ``stop`` and ``close``.

        Raises
        ------
        PolicyError
            If the file is invalid at the beginning.

        Examples
        --------
        >>> import memlab, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "score.hy"
        >>> _ = path.write_text("(fn [similarity] (* 2 similarity))")
        >>> lab = memlab.open()
        >>> watch = lab.policies.watch(path, "recall-score", on_change=print)
        >>> watch.stop()
        """
        return self._core.component("watches").start(path, slot, every=every, on_change=on_change)

    # -- changing ---------------------------------------------------------------------------------------------

    @checked
    def use(
        self, pack: PolicyLike, *, reason: str = "", compare: Annotated[int, Within(0, 100)] = 10
    ) -> Pack:
        """Make a pack active. Pinned slots keep their policies.

        Parameters
        ----------
        pack
            A pack in any form: an object, a name, a path, a text or Hy forms. A single policy is
            installed in its slot, by default ``recall-score``.
        reason
            The reason for the change, which the history stores.
        compare
            The number of queries of the lab, 0 to 100, on which the new and the active pack are
            compared. A ``RankingWarning`` reports if a published design ranks a lab of chats very
            differently. The pack ``NAME-plus`` combines such a design's rules of decay and upkeep
            with the default ranking.

        Returns
        -------
        Pack
            The active pack, including pinned policies.

        Raises
        ------
        InputError
            If the pack does not exist, or its settings differ from its text.
        PolicyError
            If a policy of the text is invalid.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.policies.use("companion", compare=0).name
        'companion'
        """
        loaded = read_policy(pack)
        if not isinstance(loaded, Pack):
            self.install(loaded.slot, pack, reason=reason)
            return self.pack
        notice = load_part("ranking-notice")(self._core, loaded, compare) if compare else None

        def make(versions: VersionLog) -> list[_Change]:
            # Policies that were changed after the pack was read are installed on top of its text.
            from_text = pack_from_sources(loaded.sources)
            after = versions.with_pins(from_text)
            sources = {_hash(text): text for text in loaded.sources}
            body: Body = {
                "pack": loaded.name,
                "hash": from_text.hash,
                "sources": list(sources),
                VOCABULARY: POLICY_FORMAT,
                "live": after.hash,
                "policies": after.policy_hashes,
                **_needs_field(needs_of_pack(after)),
                **_lineage_fields(loaded.lineage),
            }
            changes = [_Change("use", {**body, "reason": reason}, sources)]
            for slot, policy in loaded.differing(from_text).items():
                from_text = from_text.with_policy(slot, policy)
                if slot not in versions.pins:
                    after = after.with_policy(slot, policy)
                    changes.append(
                        _make_change("install", slot, policy, after, reason, loaded.lineage)
                    )
            if from_text.hash != loaded.hash:
                raise InputError(
                    f"The settings of the pack {loaded.name} differ from its text, and only the text is stored. "
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
        source: PolicyLike,
        *,
        helpers: tuple[str, ...] = (),
        params: Mapping[str, Annotated[float, AnyNumber]] | None = None,
    ) -> Policy:
        """Return the policy that ``install`` would install, without installing it.

        Parameters
        ----------
        slot
            The name of the slot for which the policy is checked.
        source
            The policy, as for ``install``.
        helpers
            ``defn`` forms that the policy calls.
        params
            Values of the policy's parameters, by name.

        Returns
        -------
        Policy
            The compiled policy, which is not installed.

        Raises
        ------
        PolicyError
            If the policy is invalid.
        InputError
            If the policy names another slot.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> policy = lab.policies.check("recall-score", "(fn [similarity] (* 2 similarity))")
        >>> policy.source
        '(fn [similarity] (* 2 similarity))'
        """
        return _compile(slot, source, helpers, params, lambda: self.pack)

    @checked
    def install(
        self,
        slot: str,
        source: PolicyLike,
        *,
        helpers: tuple[str, ...] = (),
        params: Mapping[str, Annotated[float, AnyNumber]] | None = None,
        reason: str = "",
        compare: Annotated[int, Within(0, 1000)] = 100,
    ) -> Version:
        """Install a policy in one slot of the active pack.

        Parameters
        ----------
        slot
            The name of the slot, such as "recall-score".
        source
            The policy: a text, a Hy form, the path of a ``.hy`` file, the name of a feature, or a
            compiled policy with its helpers and parameters. Of a pack, the policy of the slot.
        helpers
            ``defn`` forms that the policy calls.
        params
            Values of the policy's parameters, by name.
        reason
            The reason for the change, which the history stores.
        compare
            The maximum number of the lab's labelled questions on which the policy is compared with
            the active pack first, in a random sample of larger sets. A ``RankingWarning`` reports a
            loss that exceeds its interval.

        Returns
        -------
        Version
            The new version of the slot, with its ``scores`` next to those of the active pack.

        Raises
        ------
        PolicyError
            If the policy is invalid.
        InputError
            If the slot is pinned.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.policies.install("recall-score", "(fn [similarity] (* 2 similarity))").number
        2
        """
        check = partial(self.check, slot, source, helpers=helpers, params=params)
        scores, lineage = None, source.lineage if isinstance(source, Pack) else None
        if compare:
            scores, notice = load_part("score-notice")(self._core, check, compare)
            if notice:
                warn_caller(notice, RankingWarning)

        def make(versions: VersionLog) -> list[_Change]:
            # The pack may change between two calls, so (inherited) is resolved where the event is written.
            policy = _compile(slot, source, helpers, params, lambda: versions.pack)
            _check_unpinned(versions, slot)
            after = versions.pack.with_policy(slot, policy)
            return [_make_change("install", slot, policy, after, reason, lineage)]

        return replace(self._write_slot(slot, make, reason), scores=scores)

    @checked
    def calibrate(
        self, questions: Annotated[Any, AsGiven] = None, *, install: bool = True, reason: str = ""
    ) -> Any:
        """Fit the policy ``known`` to the active ranking on labelled questions.

        ``hits.known`` is the probability that one of the results answers the query. Its policy is
        calibrated for one ranking, so recalls show no probability after another ``recall-score``,
        ``seed-score``, ``spread`` or ``cut`` is installed. Each question is recalled twice without
        logging: with its answer, and without the memories that answer it.

        Parameters
        ----------
        questions
            The questions, as for ``lab.score``. Default: those of the lab.
        install
            Whether to install the fitted policy.
        reason
            The reason for the change, which the history stores.

        Returns
        -------
        Calibration
            The fitted policy, and its quality on questions that a fit has not seen.

        Raises
        ------
        InputError
            If there are fewer than 20 questions, or the slot ``known`` is pinned.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> ids = lab.remember([f"The code of door {number} is {number * 7}." for number in range(20)]).ids
        >>> for number, id in enumerate(ids):
        ...     question = lab.questions.add(f"What is the code of door {number}?", wants=[id])
        >>> version = lab.policies.install("recall-score", "(fn [lexical] lexical)", compare=0)
        >>> lab.recall("What is the code of door 7?").known is None
        True
        >>> lab.policies.calibrate().questions, lab.recall("What is the code of door 7?").known > 0.5
        (20, True)
        """
        return load_part("calibrate-known")(self._core.owner, questions, install, reason)

    @checked
    def challenge(
        self,
        pack: PolicyLike,
        *,
        design: ChallengeDesign = "extra",
        extra: ExtraItems = "auto",
        rate: Annotated[float, Within(0.01, 1)] = 1.0,
        reason: str = "",
    ) -> Challenge:
        """Compare a pack with the active pack in all later logged recalls.

        ``lab.verdict`` reports which is better. There may be several challengers, under one design.

        Parameters
        ----------
        pack
            The challenger, in any form that ``use`` takes. A single policy challenges as the
            active pack with this policy in its slot.
        design
            "extra" shows all results of the active pack, and in addition, at random ranks below the
            first, ``extra`` items that only a challenger would show. "lot" shows the results that all
            packs share, and draws the other positions, so that no recall is longer. "draft" shows the
            results that both packs share, and fills the other positions with the best items of each
            pack in turn. "ab" shows all results of one pack.
        extra
            The number of added items per recall, 1 to 20, under "extra" and "draft". "auto" adds half
            of the items that only a challenger would show, at most 3 for 10 results, and no item to a
            draft.
        rate
            The share of recalls that take part, 0.01 to 1.
        reason
            The reason for the change, which the history stores.

        Returns
        -------
        Challenge
            The challenge that has begun.

        Raises
        ------
        InputError
            If the pack is active or a challenger already, if another challenge has another design, or
            if a draft has another challenger.

        Notes
        -----
        The event of the challenge states the number of the comparison and its share of the error of
        all verdicts. So the level of its verdict is fixed, and part of a log has the same level.

        "draft" needs the fewest recalls and says only which pack is better; with ``extra=2`` it
        estimates by how much. "ab" needs the most recalls, and is the only valid design if items make
        one another redundant or if positions matter. Only under "extra" is the first result always
        that of the active pack. In a challenged recall, challengers replace the pack's own
        exploration items. Items that the active pack's ``eligible``, a viewer or a filter excludes
        do not appear.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.policies.challenge("companion", reason="Are recent memories better?").name
        'companion'
        """
        return begin_challenge(self, pack, design, extra, rate, reason)

    @checked
    def end_challenge(self, name: str, *, reason: str = "") -> None:
        """End a challenge and keep its log.

        Parameters
        ----------
        name
            The name of the challenger.
        reason
            The reason for the change, which the history stores.

        Raises
        ------
        UnknownName
            If there is no such challenger.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.policies.challenge("companion")
        >>> lab.policies.end_challenge("companion")
        >>> lab.policies.challenges
        ()
        """

        def make(versions: VersionLog) -> list[_Change]:
            names = [challenge.name for challenge in versions.challenges]
            if name not in names:
                raise UnknownName("challenger", name, names)
            return [_Change("end-challenge", {"pack": name, "reason": reason}, {})]

        self._write(make, reason)

    @property
    def challenges(self) -> tuple[Challenge, ...]:
        """The current challenges, oldest first."""
        with self.reading() as versions:
            return versions.challenges

    @property
    def challenge_history(self) -> pl.DataFrame:
        """All challenges, current and ended, oldest first.

        Columns: ``name``, ``hash``, ``design``, ``since``, ``until`` (null for a current one),
        ``reason``, ``end_reason`` (the reason of the end).
        """
        with self.reading() as versions:
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
        """Restore the previous policy of one slot, or of the whole pack.

        Parameters
        ----------
        slot
            The name of the slot. Default: the whole pack.
        to
            Of a slot, the number of a version or the start of its hash; default: the version before
            the active one. Of the pack, an event of ``history`` or the start of the hash of an
            earlier pack; default: the pack before the last ``use``.
        reason
            The reason for the change, which the history stores.

        Returns
        -------
        Version or Pack
            The version of the slot, or the active pack.

        Raises
        ------
        InputError
            If the slot is pinned.
        UnknownName
            If there is no such version.

        Notes
        -----
        A rollback of the pack includes the policies that were installed in the earlier pack, and
        undoes those installed since. Pinned slots keep their policies. A second rollback undoes the
        first.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.policies.use("companion", compare=0)
        >>> lab.policies.rollback(reason="worse on old questions").name
        'memlab'
        """
        if slot is not None:
            return self._reinstall(slot, to, "rollback", reason)

        def make(versions: VersionLog) -> list[_Change]:
            event = versions.previous_pack() if to is None else versions.event_of(to)
            after = versions.with_pins(versions.live_at(event))
            body: Body = {
                "to": event,
                "pack": after.name,
                "live": after.hash,
                "reason": reason,
                "policies": {slot: policy.hash for slot, policy in after.policies.items()},
                **_needs_field(needs_of_pack(after)),
                **_lineage_fields(after.lineage),
            }
            return [_Change("rollback-pack", body, {})]

        self._write(make, reason)
        return self.pack

    @checked
    def pin(self, slot: str, to: int | str | None = None, *, reason: str = "") -> Version:
        """Keep a slot at one version through every later ``use``, until ``unpin``.

        Meanwhile ``install`` and ``rollback`` of the slot raise errors. Pinning another version
        moves the pin.

        Parameters
        ----------
        slot
            The name of the slot to pin.
        to
            The number of a version or the start of its hash. Default: the active version.
        reason
            The reason for the change, which the history stores.

        Returns
        -------
        Version
            The version to which the slot is pinned.

        Raises
        ------
        UnknownName
            If there is no such slot or version.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.policies.pin("recall-score")
        >>> list(lab.policies.pins)
        ['recall-score']
        """
        return self._reinstall(slot, to, "pin", reason)

    @checked
    def unpin(self, slot: str, *, reason: str = "") -> Version:
        """Unpin a slot. Its current policy stays active until another policy is installed.

        Parameters
        ----------
        slot
            The name of the pinned slot.
        reason
            The reason for the change, which the history stores.

        Returns
        -------
        Version
            The active version of the slot.

        Raises
        ------
        InputError
            If the slot is not pinned.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.policies.pin("recall-score")
        >>> lab.policies.unpin("recall-score").number
        1
        """
        get_slot(slot)

        def make(versions: VersionLog) -> list[_Change]:
            if slot not in versions.pins:
                pinned = ", ".join(versions.pins) or "none"
                raise InputError(f"The slot {slot} is not pinned. Pinned: {pinned}.")
            active = versions.pack
            body = {
                "slot": slot,
                "hash": active.policies[slot].hash,
                "live": active.hash,
                "reason": reason,
            }
            return [_Change("unpin", body, {})]

        return self._write_slot(slot, make, reason)

    @checked
    def explore(self, on: bool, *, reason: str = "") -> None:
        """Decide whether plain recalls explore as the active pack declares.

        Agents, servers, adapters and simulations always explore as the pack declares. Challenges
        show their items in every logged recall. Plain recalls of a new lab explore only if the call
        says ``explore=True``. False also ends a guard that draws results.

        Parameters
        ----------
        on
            Whether plain recalls explore unless the call says ``explore=False``.
        reason
            The reason for the change, which the history stores.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.policies.explore(True, reason="collect evidence")
        >>> lab.policies.explores
        True
        """

        def make(versions: VersionLog) -> list[_Change]:
            is_decided = versions.explores == on and not versions.explores_by_habit
            is_decided &= versions.refuses_chance != on
            changes = [] if is_decided else [_Change("explore", {"on": on, "reason": reason}, {})]
            # An owner who refuses random draws refuses those of a guard; a guard in shadow draws none.
            why = reason or "Random draws were refused."
            return changes + [
                _Change("end-challenge", {"pack": challenge.name, "reason": why}, {})
                for challenge in versions.challenges
                if challenge.guard and challenge.rate and not on
            ]

        self._write(make, reason)

    @property
    def explores(self) -> bool:
        """Whether plain recalls explore as the active pack declares."""
        with self.reading() as versions:
            return versions.explores

    # -- reading ----------------------------------------------------------------------------------------------

    @property
    def pack(self) -> Pack:
        """The active pack."""
        with self.reading() as versions:
            return versions.pack

    @property
    def pins(self) -> dict[str, Version]:
        """The pinned version of each pinned slot."""
        with self.reading() as versions:
            return dict(versions.pins)

    @checked
    def __getitem__(self, slot: str) -> Policy:
        """Return the active policy of a slot."""
        get_slot(slot)
        return self.pack.policies[slot]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the slots."""
        return iter(SLOTS)

    def __len__(self) -> int:
        return len(SLOTS)

    def __contains__(self, slot: object) -> bool:
        return slot in SLOTS

    def _ipython_key_completions_(self) -> list[str]:
        return list(SLOTS)

    @checked
    def history(self, slot: str | None = None) -> pl.DataFrame:
        """Return the history of one slot or of all slots, oldest first.

        Parameters
        ----------
        slot
            The name of the slot. Default: all slots.

        Returns
        -------
        DataFrame
            One row per event and slot. Columns:

            - ``slot``: only in the history of all slots
            - ``version`` and ``pinned``: after the event
            - ``live``: whether the row is the active version
            - ``at``: the time of the event
            - ``action``: use, install, rollback, pin or unpin
            - ``pack`` and ``hash``: the pack, and the hash of the policy
            - ``reason`` and ``event``: the reason, and the position of the event
            - ``parents``, ``operator`` and ``evidence``: the ``memlab.Lineage``; null without one

        Raises
        ------
        UnknownName
            If there is no such slot.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.policies.install("recall-score", "(fn [similarity] (* 2 similarity))")
        >>> lab.policies.history("recall-score")["action"].to_list()
        ['use', 'install']
        """
        with self.reading() as versions:
            return versions.frame(slot)

    @checked
    def diff(
        self, slot: str, before: int | str | None = None, after: int | str | None = None
    ) -> Any:
        """Compare two versions of a slot.

        Parameters
        ----------
        slot
            The name of the slot whose versions are compared.
        before
            The number of a version or the start of its hash. Default: the previous version.
        after
            The number of a version or the start of its hash. Default: the active version.

        Returns
        -------
        PolicyDiff
            The difference, see ``memlab.subjects.lens.PolicyDiff``.

        Raises
        ------
        UnknownName
            If there is no such slot or version.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.policies.install("recall-score", "(fn [similarity] (* 2 similarity))")
        >>> _ = lab.policies.install("recall-score", "(fn [similarity] (* 3 similarity))")
        >>> difference = lab.policies.diff("recall-score", before=2, after=3)
        """
        with self.reading() as versions:
            new = versions.versions(slot)[-1] if after is None else versions.version(slot, after)
            old = versions.previous(slot) if before is None else versions.version(slot, before)
        return load_part("compare-policies")(old, new)

    @checked
    def deciders(self, pack: str) -> dict[str, Version]:
        """Return the version of each slot in an earlier pack.

        Recalls, feedback and slates record the hash of the whole pack. This method returns the
        version of each policy in the pack.

        Parameters
        ----------
        pack
            The hash of a pack that was active, or its start.

        Returns
        -------
        dict of str to Version
            The version of each slot.

        Raises
        ------
        UnknownName
            If no such pack was active.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.policies.deciders(lab.policies.pack.hash)["recall-score"].number
        1
        """
        with self.reading() as versions:
            return versions.deciders(pack)

    @checked
    def attribution(self, slot: str = "recall-score") -> Any:
        """Compare the feedback on each version of a slot, with 95% credible intervals.

        The comparison is observational: the versions got different queries. ``memlab.evaluate``
        compares policies on equal terms.

        Parameters
        ----------
        slot
            The name of the slot whose versions are compared.

        Returns
        -------
        Attribution
            The feedback by version.

        Raises
        ------
        UnknownName
            If there is no such slot.

        Notes
        -----
        Reading 100,000 recalls with as many judgements takes about 1.7 s.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The user prefers tabs")
        >>> _ = lab.feedback(lab.recall("tabs or spaces?")[0], "success")
        >>> attribution = lab.policies.attribution("recall-score")
        """
        with self.reading() as versions:
            versions_of_slot, timeline, head = (
                versions.versions(slot),
                versions.timeline(slot),
                self._store.state.seq,
            )
        return load_part("attribute-feedback")(self._store, slot, versions_of_slot, timeline, head)

    def __repr__(self) -> str:
        with self.reading() as versions:
            pack, rows = versions.pack, _list_slots(versions)
        lines = [f"pack {pack.name} [{pack.hash[:12]}]"]
        lines += [
            f"  {row.slot:<14} {row.number:>3} [{row.hash[:12]}] {row.pack:<12} "
            f"{'pinned ' if row.pinned else ''}{row.doc}".rstrip()
            for row in rows
        ]
        return printable("\n".join(lines))

    def _display(self) -> object:
        with self.reading() as versions:
            pack, rows = versions.pack, _list_slots(versions)
        cells = [
            (r.slot, r.number, r.hash[:12], r.pack, "pinned" if r.pinned else "", r.doc)
            for r in rows
        ]
        columns = ("slot", "version", "hash", "pack", "", "description")
        return box(table(f"pack {pack.name} [{pack.hash[:12]}]", columns, cells))

    # -- internal -----------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[VersionLog]:
        """Lock the policy versions against changes within the block, and yield the versions."""
        with self._store.reading():
            yield self._store.versions

    def _reinstall(self, slot: str, to: int | str | None, kind: str, reason: str) -> Version:
        """Roll back or pin a slot to version ``to``, by default the previous, for a pin the latest; return the new one."""
        get_slot(slot)

        def make(versions: VersionLog) -> list[_Change]:
            if kind == "rollback":
                _check_unpinned(versions, slot)
            if to is not None:
                version = versions.version(slot, to)
            else:
                version = versions.versions(slot)[-1] if kind == "pin" else versions.previous(slot)
            after = versions.pack.with_policy(slot, version.policy)
            change = _make_change(kind, slot, version.policy, after, reason, version.lineage)
            return [change._replace(body={**change.body, "to": version.number})]

        return self._write_slot(slot, make, reason)

    def _write_slot(
        self, slot: str, make: Callable[[VersionLog], list[_Change]], reason: str
    ) -> Version:
        """Write the changes of one slot that ``make`` builds; return the slot's last version."""
        with self._store.exclusive():
            self._write(make, reason)
            return self._store.versions.versions(slot)[-1]

    def _write(self, make: Callable[[VersionLog], list[_Change]], reason: str) -> None:
        """Write all events that ``make`` builds from the current versions, or none; end guards if the pack changes."""
        refuse(reason, "reason")
        with self._store.writing() as tx:
            now = self._store.clock()
            versions = self._store.versions
            changes = make(versions)
            for change in changes:
                refuse(change.body.get("operator", ""), "operator of a lineage")
                for hash, source in change.sources.items():
                    refuse(source, "policy")
                    tx.source(hash, source)
                for helper in change.body.get("helpers", ()):
                    refuse(helper, "helper of a policy")
                tx.event(change.kind, change.body, at=now)
            live = [change.body["live"] for change in changes if "live" in change.body]
            for challenge in versions.challenges:
                # A guard compares with one active pack, so it ends with that pack.
                if challenge.guard and live and live[-1] != versions.live_hash:
                    why = "The active pack changed."
                    body = {"pack": challenge.name, "live": live[-1], "reason": why}
                    tx.event("end-challenge", body, at=now)


def begin_challenge(
    policies: LabPolicies,
    pack: PolicyLike,
    design: ChallengeDesign,
    extra: ExtraItems,
    rate: float,
    reason: str,
    guard: Mapping[str, float] | None = None,
) -> Challenge:
    """Begin a challenge; ``guard`` has the options of ``lab.guard`` that its event stores."""
    loaded = as_pack(pack, lambda: policies.pack)

    def make(versions: VersionLog) -> list[_Change]:
        if loaded.hash == versions.pack.hash:
            raise InputError(f"{loaded.name} is the active pack: challenge it with another one.")
        for other in versions.challenges:
            if other.name == loaded.name or other.guard or guard is not None:
                raise InputError(
                    f"{other.name} is a challenger already. End that challenge first: "
                    f'lab.policies.end_challenge("{other.name}").'
                )
            if other.design != design:
                raise InputError(
                    f'{other.name} is a challenger with design="{other.design}": use the same design, '
                    "or end that challenge first."
                )
            if design == "draft":
                raise InputError(
                    f'A challenge with design="draft" compares two packs, and {other.name} is a challenger already. '
                    f'End that challenge first: lab.policies.end_challenge("{other.name}").'
                )
        if pack_from_sources(loaded.sources).hash != loaded.hash:
            raise InputError(
                f"The pack {loaded.name} was changed after it was read, but only its text "
                "is stored. Write the change into its text."
            )
        sources = {_hash(text): text for text in loaded.sources}
        added = 0 if extra == "auto" else extra
        number = versions.number_comparison(loaded.name, loaded.hash, design, added)
        body: Body = {
            "pack": loaded.name,
            "hash": loaded.hash,
            "sources": list(sources),
            VOCABULARY: POLICY_FORMAT,
            "number": number,
            "share": error_share(number),
            "design": design,
            "extra": added,
            "rate": rate,
            "reason": reason,
            **_needs_field(needs_of_pack(loaded)),
            **_lineage_fields(loaded.lineage),
            **({} if guard is None else {"guard": dict(guard), "live": versions.live_hash}),
        }
        return [_Change("challenge", body, sources)]

    with policies._store.exclusive():
        policies._write(make, reason)
        return policies._store.versions.challenges[-1]


def _compile(
    slot: str,
    source: object,
    helpers: tuple[str, ...],
    params: Mapping[str, float] | None,
    pack: Callable[[], Pack],
) -> Policy:
    """Compile a policy for a slot; ``pack`` returns the pack that the policy inherits from."""
    get_slot(slot)
    read = read_policy(source)
    if isinstance(read, Pack):
        read = SinglePolicy.of(read.policies[slot])
    return read.compile(pack, slot, helpers=helpers, params=params)


def _check_unpinned(versions: VersionLog, slot: str) -> None:
    """Raise InputError if a slot is pinned."""
    pinned = versions.pins.get(slot)
    if pinned is not None:
        raise InputError(
            f"The slot {slot} is pinned to version {pinned.number} [{pinned.hash[:12]}]. Unpin it first: "
            f'lab.policies.unpin("{slot}").'
        )


def _make_change(
    kind: str, slot: str, policy: Policy, after: Pack, reason: str, lineage: Lineage | None
) -> _Change:
    """Build the event that installs ``policy`` and makes ``after`` the active pack."""
    hash = _hash(policy.source)
    body: Body = {
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
    body |= _needs_field(needs_of_policy(slot, policy)) | _lineage_fields(lineage)
    return _Change(kind, body, {hash: policy.source})


def _needs_field(needs: dict[str, str]) -> dict[str, Any]:
    """Return the event field "needs", or no field if no extension is required."""
    return {"needs": needs} if needs else {}


def _lineage_fields(lineage: Lineage | None) -> dict[str, Any]:
    """Return the event fields of a lineage, or no field without one."""
    return {} if lineage is None else {**asdict(lineage), "parents": list(lineage.parents)}


class _Row(NamedTuple):
    """One slot in the table of policies."""

    slot: str
    number: int
    hash: str
    pack: str
    pinned: bool
    doc: str


def _list_slots(versions: VersionLog) -> list[_Row]:
    """Return the table of policies, one row per slot."""
    rows = []
    for slot, policy in versions.pack.policies.items():
        version = versions.versions(slot)[-1]
        doc = " ".join(policy.doc.split())
        rows.append(
            _Row(slot, version.number, version.hash, version.pack, slot in versions.pins, doc)
        )
    return rows


def _hash(text: str) -> str:
    """Return the SHA-256 hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
