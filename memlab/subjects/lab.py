"""``Lab``: the verbs of daily use on one page, and an accessor for each other subject.

Verbs of the kernel are called directly. What an extension of memlab's own offers, such as ``lab.clusters`` or
``lab.purge``, is made by its name when it is asked for, and its modules are imported for type checkers alone.
"""

# mypy: disable-error-code="no-any-return"
# (what an extension makes is known by its name; the annotation of the verb says what it is)

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, overload

import polars as pl

from memlab.errors import InputError, LabUnavailable
from memlab.kernel.base.arguments import AnyNumber, AsGiven, Count, Seed, Within, checked, renamed
from memlab.kernel.base.clock import Clock, When, system_clock
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.embedding import EmbedderSpec, load_embedder
from memlab.kernel.extension import load_installed
from memlab.kernel.journal import lab_exists
from memlab.kernel.policies import DEFAULT_PACK, Challenge, ChallengeDesign, PackLike, load_pack
from memlab.kernel.recall import Filters, Hit, Hits, WordOrWords
from memlab.kernel.registry import Registry
from memlab.kernel.slates import Slates
from memlab.kernel.state import ViewerState, add_extension_projections
from memlab.kernel.storage.copies import list_outdated_mirrors
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.core import Core, Memories, MemoryLike
from memlab.kernel.verbs.corrections.corrections import Corrected, Corrections
from memlab.kernel.verbs.features.features import LabFeatures
from memlab.kernel.verbs.feedback import Judgements, checked_judgement
from memlab.kernel.verbs.policies.policies import LabPolicies
from memlab.kernel.verbs.projections import KEPT, MADE, PROJECTIONS
from memlab.kernel.verbs.recalling.asking import Questions
from memlab.kernel.verbs.remembering.remember import Remembering
from memlab.kernel.verbs.results import Edited, Feedback, Memory, Remembered, overview
from memlab.kernel.verbs.seam import Accessor, Seam
from memlab.kernel.verbs.verbs import Verbs
from memlab.subjects.mending import mending

if TYPE_CHECKING:
    from memlab.science.evaluation import Verdicts
    from memlab.subjects.agent_verbs.agents import LabAgents
    from memlab.subjects.clusters.clusters import LabGraph
    from memlab.subjects.context.context import Context
    from memlab.subjects.facts.facts import LabFacts
    from memlab.subjects.io.io import LabIO
    from memlab.subjects.io.results import Loaded
    from memlab.subjects.purge.receipt import Purged
    from memlab.subjects.retention.retention import LabUpkeep
    from memlab.subjects.review.review import Quarantined

__all__ = ["ACCESSORS", "Lab"]


class Lab(Displayed):
    """A memory: its journal, the state folded from it, and the pack that decides. Use ``memlab.open``.

    ``policies``, ``features``, ``facts``, ``graph``, ``agents``, ``upkeep`` and ``io`` hold the verbs of their
    subjects. Names of earlier versions work throughout 0.2, with a ``RenamedWarning`` that says what to write instead.
    """

    _backs_up = False

    @checked
    def __init__(
        self,
        path: str | Path | None = None,
        *,
        pack: PackLike | None = None,
        embedder: EmbedderSpec = None,
        clock: Clock = system_clock,
        seed: Seed = 0,
        read_only: bool = False,
        reembed: bool | Literal["background"] = False,
        index: str = "annoy",
        backups: bool = False,
        create: bool = True,
    ) -> None:
        load_installed()
        chosen = load_pack(pack) if pack is not None else None
        folder = None if path is None else Path(path).expanduser()
        if backups and (folder is None or read_only):
            raise InputError("backups=True needs a lab in a directory that is opened for writing.")
        if not create and folder is None:
            raise InputError(
                "create=False is for a lab in a directory: one in memory is always new."
            )
        if not create and folder is not None and not lab_exists(folder):
            raise LabUnavailable.at(folder, "no lab is there")
        store = Store(
            folder,
            load_embedder(embedder),
            clock,
            read_only=read_only,
            create=create,
            reembed=reembed,
            index=index,
            projections=add_extension_projections(PROJECTIONS),
            mend=mending(),
        )
        self._compose(store, seed)
        try:
            if chosen is not None or store.versions.empty:
                self.policies.use(chosen or DEFAULT_PACK, compare=0)
            if not read_only and list_outdated_mirrors(store.journal):
                self._made("mirrors")()
            if backups:
                self._backs_up = True
                self._made("backups")(closing=False)
        except BaseException:
            store.journal.close()
            raise

    def _compose(self, store: Store, seed: int) -> None:
        """Put the lab together on ``store``."""
        core = self._core = Core(store, seed)
        self._questions, self._judgements = Questions(core), Judgements(core)
        self._remembering = Remembering(core, partial(_wake_linker, weakref.ref(self)))
        self._corrections = Corrections(core)
        self._kept: dict[str, Any] = {}
        if store.state.projections["waiting"]:
            self._made("linker").wake()
        if not store.journal.read_only and store.state.unembedded:
            self._made("reembedder").wake()

    def _made(self, name: str) -> Any:
        """Return what an extension of memlab's own offers of this lab; what is kept with the lab is made once."""
        if name in self._kept:
            return self._kept[name]
        if name == "questions":
            return self._questions
        kept = KEPT.get(name)
        if kept is None:
            return (
                MADE[name](self._verbs(self._held, self._made))
                if name in MADE
                else getattr(self, name)
            )
        made = self._kept[name] = kept(self._verbs(self._core, _kept_alone))
        if hasattr(made, "stop_soon"):
            weakref.finalize(self, made.stop_soon)
        return made

    def _verbs(self, core: Core, made: Callable[[str], Any]) -> Verbs:
        verbs = self._questions, self._judgements, self._remembering, self._corrections
        return Verbs(core, *verbs, made)

    # -- subjects ---------------------------------------------------------------------------------------------

    @property
    def policies(self) -> LabPolicies:
        """Choose a pack; install, roll back, pin, compare, watch and attribute policies."""
        return LabPolicies(self._held)

    @property
    def features(self) -> LabFeatures:
        """Features of one's own, for any policy: from an expression or a function."""
        return LabFeatures()

    @property
    def facts(self) -> LabFacts:
        """Facts as rows and in words, and the entities that they are about."""
        return self._made("facts")

    @property
    def graph(self) -> LabGraph:
        """Link, activate, trace; what is similar, clusters, and the structure of it all."""
        return self._made("graph")

    @property
    def upkeep(self) -> LabUpkeep:
        """What time does: maintain, schedule, forecast, consolidate; what to review; operations; the search index."""
        return self._made("upkeep")

    @property
    def agents(self) -> LabAgents:
        """An agent by its name, ``lab.agents("tutor")``; what agents say, learn and are credited with; their switch."""
        return self._made("agents")

    @property
    def io(self) -> LabIO:
        """Export, mirror, back up, check, embed anew; where the lab is."""
        return self._made("io")

    @property
    def _held(self) -> Core:
        """For accessors: ``lab.upkeep`` keeps the lab alive, and the lab does not keep its accessors."""
        return self._core.held_by(self, self._made)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return what an extension's accessor of this name makes."""
            if name in RENAMED:
                return renamed(self, "lab", name, RENAMED)
            if name.startswith("_") or name not in ACCESSORS:
                raise AttributeError(f"Lab has no attribute {name!r}.", name=name, obj=self)
            accessor = ACCESSORS[name]
            return accessor.make(Seam(self, self._core, accessor.owner))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *ACCESSORS})

    # -- remembering ------------------------------------------------------------------------------------------

    @overload
    def remember(  # type: ignore[overload-overlap]  # a text is an iterable of texts
        self,
        text: str,
        *,
        at: When | None = None,
        chain: bool = False,
        linking: str | None = None,
        **fields: Any,
    ) -> Memory: ...
    @overload
    def remember(
        self,
        text: pl.DataFrame | Iterable[Mapping[str, Any] | str],
        *,
        chain: bool = False,
        linking: str | None = None,
    ) -> Remembered: ...
    @checked
    def remember(
        self,
        text: str | pl.DataFrame | Iterable[Any],
        *,
        at: When | None = None,
        chain: bool = False,
        linking: str | None = None,
        **fields: Any,
    ) -> Memory | Remembered:
        """Remember a text, or several in one transaction, all or nothing; durable when it returns.

        ``fields`` are those of ``memlab.FIELDS``: kind, tags, project, session, speaker, importance, ref, ...; see
        docs/reference/memories.md#fields-of-a-memory. Without a ``creator`` nobody is, and the project sees the memory.
        Several are texts, dicts of ``text`` and any of these fields and ``at``, or a frame with such columns.
        ``chain=True`` links a memory by a ``next`` edge to the last of its session.

        ``linking`` says when they are compared with what is there, and with one another: "off" not at all; "now" before
        they are stored, so that a near-duplicate is never stored; "later" in the background, so that this returns at
        once and near-duplicates, which have their ids by then, are superseded by what replaces them. Unless given it
        is the pack's setting; see docs/systems.md#settings-of-each-pack. After "later", ``lab.graph.link_waiting()``
        waits until that is done. Turns of a conversation (kind "turn") are never compared: they were said.

        Of one text the memory that represents it is returned: a new one, or the old one that it was merged into or that
        the pack keeps in its place. Of several the result has these memories, and says in ``outcomes`` what became of
        each: the pack's ``link`` is asked of each new memory and its neighbours, ``resolve`` where it finds a conflict;
        docs/policy-language.md#what-link-and-resolve-leave has the edge of each answer.

        InputError if an agent (a creator "agent:...") writes more bytes than the setting ``write-bytes`` or more
        memories of one session than ``session-writes``; nothing is stored then.

        >>> lab.remember("Deploys go out on Tuesdays", kind="convention", project="api")   # doctest: +SKIP
        >>> lab.remember(["The user likes tea", {"text": "and tabs", "kind": "preference"}]).ids   # doctest: +SKIP
        """
        if isinstance(text, str):
            return self._remembering.one(text, at=at, chain=chain, linking=linking, fields=fields)
        if at is not None or fields:
            raise InputError(
                "Several texts say their own fields and times, in dicts or columns: give none beside them."
            )
        return self._remembering.many(text, chain=chain, linking=linking)

    @checked
    def load(
        self,
        x: Annotated[Any, AsGiven],
        *,
        format: str | None = None,
        columns: Mapping[str, str | None] | None = None,
        project: str | None = None,
        session: str | None = None,
        linking: str | None = None,
        policies: bool = False,
        strict: bool = False,
        extract: bool = False,
        progress: bool = True,
    ) -> Loaded:
        """Add what a file, a folder, another lab, a frame or a list of messages holds; see ``memlab.load``.

        ``extract=True`` also stores the facts and observations that ``lab.agents.extract`` finds in what is added.

        >>> lab.load("chat.csv", columns={"text": "body"}).guessed                             # doctest: +SKIP
        """
        return self._made("load")(
            x,
            format=format,
            columns=columns or {},
            project=project,
            session=session,
            linking=linking,
            policies=policies,
            strict=strict,
            extract=extract,
            progress=progress,
        )

    # -- recalling --------------------------------------------------------------------------------------------

    @checked
    def recall(
        self,
        query: str,
        *,
        limit: Count | None = None,
        project: str | None = None,
        session: str | None = None,
        branch: WordOrWords = None,
        scope: WordOrWords = None,
        visibility: WordOrWords = None,
        status: WordOrWords = None,
        season: WordOrWords = None,
        viewer: str | None = None,
        where: pl.Expr | None = None,
        at: When | None = None,
        pack: PackLike | None = None,
        params: Mapping[str, Annotated[float, AnyNumber]] | None = None,
        log: bool = True,
        again: bool | None = True,
    ) -> Hits:
        """The memories that the live pack puts first for ``query``: at most ``limit``, and now and then a probe.

        A probe (``hit.probe``) comes from just below, at the pack's ``probe-rate``, so that the log can tell what
        another policy would have been worth. It comes in addition to the ``limit`` and stands at a random place among
        the others: ``limit=10`` shows ten or eleven. ``at`` is the time of asking.
        The slate is logged and what was shown gains an access, unless ``log=False`` or the lab is read-only; then
        nothing is explored either. ``pack`` asks another pack than the live one, to see what it would show: that is
        never logged. ``params`` gives other values to parameters of the pack's policies for this recall,
        ``{"near": 0.5}`` or of one slot alone ``{"eligible:near": 0.5}``; it is logged under the hash that the pack has
        with them.

        What takes part: ``project`` and ``branch`` also admit what belongs to none; ``scope``, ``visibility`` and
        ``status`` (instead of active, staged and confirmed) take one word or several. ``viewer``, who asks, leaves out
        what is private to another creator, as ``at(viewer=...)`` does. What belongs to a season takes part only while
        ``season`` names it. ``where`` is any Polars expression over the columns of ``lab.memories``, true or false;
        aggregates range over all that ``viewer`` sees. What is left out counts in no statistic either.

        Without ``branch`` every branch takes part, except under packs that read ``same-branch`` (``workbench``): there
        only what has no branch does. A lab knows nothing of merges: name a merged branch as well,
        ``branch=["main", "feature"]``.

        ``again=False`` leaves out what the ``viewer`` was given before in the ``session``, by contexts and by recalls
        of this kind; None follows the pack's setting ``recall-again``. ``hits.repeated`` lists what was left out.

        >>> lab.recall("release", where=pl.col("tags").list.contains("ci"), status="superseded")  # doctest: +SKIP
        """
        words = {
            "branch": branch,
            "scope": scope,
            "visibility": visibility,
            "status": status,
            "season": season,
        }
        filters = Filters.of(**words, viewer=viewer, where=where)
        return self._questions.ask(
            query,
            limit=limit,
            project=project,
            session=session,
            filters=filters,
            at=at,
            pack=None if pack is None else load_pack(pack),
            params=params,
            log=log,
            again=again,
        )

    @checked
    def context(
        self,
        task: str,
        *,
        budget: Count = 1800,
        session: str | None = None,
        project: str | None = None,
        files: str | Sequence[str] = (),
        viewer: str | None = None,
        at: When | None = None,
        log: bool = True,
    ) -> Context:
        """What an agent is to know for ``task``, in at most ``budget`` tokens: text, Markdown or messages for a prompt.

        What a prompt always holds, what a trigger, a file (``files`` are at hand) or an entity calls up, and the best
        of a recall, by the pack's ``inject``, in its tiers; in a ``session`` nothing twice. Logged as a ``recall`` is.

        >>> lab.context("fix the token refresh", project="api", files=["src/auth.py"]).text  # doctest: +SKIP
        """
        return self._made("contexts").make(
            task,
            budget=budget,
            session=session,
            project=project,
            files=files,
            viewer=viewer,
            at=at,
            log=log,
        )

    # -- judging ----------------------------------------------------------------------------------------------

    @overload
    def feedback(
        self,
        hit: MemoryLike,
        outcome: str | None = None,
        *,
        rating: int | None = None,
        reward: float | None = None,
        agent: str | None = None,
        source: str = "user",
        at: When | None = None,
        decision: int | None = None,
    ) -> Feedback: ...
    @overload
    def feedback(self, hit: pl.DataFrame | Iterable[Mapping[str, Any]]) -> tuple[Feedback, ...]: ...
    @checked
    def feedback(
        self,
        hit: MemoryLike | pl.DataFrame | Iterable[Any],
        outcome: str | None = None,
        *,
        rating: Annotated[int, Within(1, 4)] | None = None,
        reward: float | None = None,
        agent: str | None = None,
        source: str = "user",
        at: When | None = None,
        decision: Annotated[int, Within(1, 1 << 62)] | None = None,
    ) -> Feedback | tuple[Feedback, ...]:
        """Say how a memory that was shown did: ``"success"``, ``"fail"``, or a ``reward``; or how several did.

        ``rating`` says how easily it was remembered: 1 again, 2 hard, 3 good, 4 easy; without an outcome, 1 is a
        failure and the others are successes. The live pack's ``reinforce`` policy decides what an outcome changes in
        the memory. A success is shared: edges to the other memories that succeeded in the same recall are made or
        strengthened, by the setting ``edge-gain``. With ``agent``, the outcome also counts for how far that agent is
        trusted (``lab.agents.relationships``).

        Where the live policy is found to earn less than an earlier one did, the result's ``notice`` proposes, once, to
        bring that one back, and names the call that does. Nothing changes without it.

        It belongs to the recall of the hit. For a memory or its id, ``decision`` names the logged recall that showed it
        (``hits.decision``), else it is the last that did, if any: ``memlab.evaluate`` reads only what has one.

        Several are dicts, or a frame with such columns: ``memory`` (an id, a hit or a memory; ``memory_id`` in a frame
        of ``hits``), and any of the other arguments; null stands for what is not given. All of it is checked first,
        and all or nothing is logged; errors name the row.

        >>> lab.feedback([{"memory": hits[0], "outcome": "success"}, {"memory": 7, "reward": 0}])  # doctest: +SKIP
        """
        if isinstance(hit, pl.DataFrame | list):
            if (outcome, rating, reward, agent, at, decision, source) != (*[None] * 6, "user"):
                raise InputError(
                    "Several judgements say it all, in dicts or columns: give nothing beside them."
                )
            return self._with_notice(self._judgements.feedback_many(hit))
        assert isinstance(hit, Memory | Hit | int)
        now = self._core.instant(at)
        judgement = checked_judgement(hit, outcome, rating, reward, agent, source, now, decision)
        logged = self._judgements.feedback(judgement)
        return self._with_notice((logged,))[0]

    def _with_notice(self, logged: tuple[Feedback, ...]) -> tuple[Feedback, ...]:
        """Let the last one say whether the live policy has fallen."""
        notice = self._made("falls").after_feedback() if logged else None
        return logged if notice is None else (*logged[:-1], replace(logged[-1], notice=notice))

    # -- correcting -------------------------------------------------------------------------------------------

    @overload
    def edit(self, memory: MemoryLike, *, text: str | None = None, **fields: Any) -> Edited: ...
    @overload
    def edit(self, memory: pl.DataFrame) -> tuple[Edited, ...]: ...
    @checked
    def edit(
        self, memory: MemoryLike | pl.DataFrame, *, text: str | None = None, **fields: Any
    ) -> Edited | tuple[Edited, ...]:
        """Correct a memory, and return the one that replaces it; or write a frame of ``lab.memories`` back.

        Of a frame with the column ``id``, the values that differ from the lab's are written, all or none; what it
        returns are the memories that changed.

        ``fields`` are those of ``memlab.FIELDS``, checked as ``remember`` checks them; None takes a value away. Most
        are changed in place. Another ``text``, ``speaker``, ``session``, ``project`` or ``ref`` makes a new memory,
        which has all other fields of the old one, supersedes it, and is "user-corrected" from a "user-edit" unless
        ``provenance`` and ``source`` are given. It keeps the status of a fact, "staged" or "confirmed", and begins with
        ``access``, ``success`` and ``fail`` at 0; an edit in place keeps them. An edit of a memory that was edited
        meanwhile, here or in another process, edits the one that replaced it: the last edit counts, and all are kept.

        A correction reaches what was derived from the text: summary, fact, inferred tags, edges of linking, steps and
        triggers that repeat its words, facts and observations extracted from it, and summaries of consolidation. What
        can be read again is rebuilt, the rest is dropped; ``rebuilt``, ``dropped`` and ``notes`` of the result say
        which. The old words stay in the history (``lab.at``) and in rows with the status "superseded".

        Raises InputError for an empty text, for a memory that is deleted, purged or of another lab, for another text of
        one that another memory superseded, and for a value that ``remember`` would not take; PrivacyError for a secret
        in a field. A secret in the text is redacted. An edit that changes nothing writes nothing, and says so in
        ``notes``.

        >>> lab.edit(hit, text="Deploys go out on Wednesdays").notes                       # doctest: +SKIP
        ('summary: rebuilt from the new text.',)
        """
        if isinstance(memory, pl.DataFrame):
            if text is not None or fields:
                raise InputError(
                    "A frame of edits says itself what changes: give no text or fields beside it."
                )
            return self._corrections.edit_frame(memory)
        return self._corrections.edit(memory, text=text, fields=fields)

    @overload
    def forget(
        self,
        memory: Memories | None = None,
        *,
        how: Literal["forget", "delete", "deprecate"] = "forget",
        project: str | None = None,
        reason: str = "",
    ) -> Corrected: ...
    @overload
    def forget(
        self,
        *,
        how: Literal["quarantine"],
        source: str | None = None,
        session: str | None = None,
        creator: str | None = None,
        since: When | None = None,
        reason: str = "",
        dry_run: bool = False,
        replay: int = 100,
        progress: bool = True,
    ) -> Quarantined: ...
    @checked
    def forget(
        self,
        memory: Memories | None = None,
        *,
        how: Literal["forget", "delete", "deprecate", "quarantine"] = "forget",
        project: str | None = None,
        reason: str = "",
        **origin: Any,
    ) -> Corrected | Quarantined:
        """Take memories out of every recall. Each way of doing so has a status, and ``restore`` is its inverse.

        ================  =============  =======================================  =======================
        ``how``           status         which memories                           brought back by
        ================  =============  =======================================  =======================
        ``"forget"``      forgotten      ``memory``                               ``restore(memory)``
        ``"delete"``      deleted        ``memory``, or all of a ``project``      the same, until purged
        ``"deprecate"``   deprecated     ``memory`` that is wrong: ``reason``     ``restore(memory)``
        ``"quarantine"``  quarantined    all from a ``source``, ``session`` or    ``restore(quarantine=)``
                                         ``creator``
        ================  =============  =======================================  =======================

        A memory that was edited goes with its corrections, whichever version is named: the named one and every edit
        after it. ``ids`` of the result are the memories that were reached. A newer fact that ended a memory is no
        correction and stays; ``review`` of the result lists what else may want a look.

        What is deleted is due to be purged once the live pack's ``grace-days`` are over; ``purge(overdue=True)``
        removes it, nothing is purged by itself. With ``project`` the map of its modules (``lab.agents.modules``) goes
        at once. What is deprecated stays, with the reason. A quarantine also takes ``since``, ``dry_run``, ``replay``
        and ``progress``: see ``lab.upkeep.review.quarantine``.

        >>> lab.forget(1).ids                                                              # doctest: +SKIP
        (1, 4)
        >>> lab.forget(hit, how="deprecate", reason="the office has moved").review         # doctest: +SKIP
        >>> lab.forget(how="quarantine", session="web 17", dry_run=True).shown             # doctest: +SKIP
        """
        if how != "deprecate" and how != "quarantine" and reason:
            raise InputError(
                f'forget(how="{how}") keeps no reason: use how="deprecate", which does.'
            )
        if how != "delete" and project is not None:
            raise InputError(
                f'forget(how="{how}") takes no project=: use how="delete", which does.'
            )
        if how == "quarantine":
            if memory is not None:
                raise InputError(
                    "A quarantine takes source=, session= or creator=, and no memories."
                )
            return self.upkeep.review.quarantine(reason=reason, **origin)
        if origin:
            raise InputError(
                f'forget(how="{how}") takes no {next(iter(origin))}=: use how="quarantine", which does.'
            )
        if how == "delete":
            return self._corrections.delete(memory, project=project)
        if memory is None:
            raise InputError(
                f'forget(how="{how}") takes memories: an id, a hit, a list of these, or a frame.'
            )
        if how == "deprecate":
            return self._corrections.deprecate(memory, reason)
        return self._corrections.forget(memory)

    @checked
    def restore(
        self,
        memory: Memories | None = None,
        *,
        project: str | None = None,
        quarantine: Annotated[Any, AsGiven] = None,
    ) -> Corrected:
        """Bring back memories that are out of use, all that is deleted of a project, or what a quarantine took.

        That is what was forgotten, deprecated, retracted or deleted, ran out or went into a summary. Each gets the
        status that it had before; a memory that was put out of use with its corrections comes back with them. What was
        superseded comes back once what took its place is out of use. Bringing back
        is a use: the pack's ``reinforce`` is asked as of a recall; what a deprecation changed is undone where nothing
        has changed it since. So a strength that had faded to 0 is what a recall adds to 0 (5 under ``companion``), and
        time counts from now on; ``access`` stays as it was.

        A summary of ``lab.upkeep.consolidation.run`` that is in use is undone: its members get the status that they
        had, and the summary is forgotten. A member that left it since stays as it is.

        ``quarantine`` is what ``forget(how="quarantine")`` returned, or the number of its event: each memory gets back
        what it had before. What has changed since stays as it is.

        InputError for what is superseded by a memory in use, or purged, and for what is no quarantine of this lab.
        """
        if quarantine is None:
            return self._corrections.restore(memory, project=project)
        if memory is not None or project is not None:
            raise InputError("restore takes memories, a project= or a quarantine=: one of them.")
        return self.upkeep.review.release(quarantine)

    @checked
    def purge(
        self,
        memory: Memories | None = None,
        *,
        project: str | None = None,
        session: str | None = None,
        subject: str | None = None,
        creator: str | None = None,
        overdue: bool = False,
        remove_exports: bool = False,
        reason: str = "",
    ) -> Purged:
        """Remove memories for good, and return a receipt.

        They are ``memory`` (without its edits, which are memories of their own: ``review`` of the result lists those
        joined to it), those of a ``project``, ``session``, ``subject`` or ``creator``, or with ``overdue`` what
        was deleted for longer than ``grace-days``. Names narrow each other: ``project="web", session="monday"`` are the
        memories that have both. ``subject`` is an entity under all its names, aliases and merged ones too, and what is
        known of it goes: the facts, its own names unless a memory that stays has them, and questions that name it. A
        memory that only mentions it stays, and the receipt tells of it.

        Texts, names, lists, notes and vectors go from the journal, logged recalls (questions that quote or name what
        goes too), snapshots, sealed slates, indexes, backups and mirrors; files of ``export`` stay unless
        ``remove_exports`` is True. Then every file of the lab, its backups, mirrors and known exports is searched, and
        the receipt tells what was searched and found. What stays: the row with the status "purged", its numbers, times
        and kind, and a keyed hash of the text, by which imports know it again. ``reason`` is kept: it should not repeat
        what goes. docs/your-data.md says all of it.
        It is done or not begun: whoever opens the lab next ends what a killed process left. LabBusy where another
        process is in the way for a minute. A thousand of 100,000 memories took 14 seconds of processor time.

        >>> lab.purge(subject="Ada Lovelace").found                                        # doctest: +SKIP
        """
        return self._made("purge")(
            memory,
            project=project,
            session=session,
            subject=subject,
            creator=creator,
            overdue=overdue,
            remove_exports=remove_exports,
            reason=reason,
        )

    # -- looking ----------------------------------------------------------------------------------------------

    @property
    @checked
    def memories(self) -> pl.DataFrame:
        """Every memory as a row, in the order of their ids, whatever its status: a copy.

        Columns: docs/reference/memories.md#columns-of-labmemories.
        """
        return self._core.memories()

    @property
    @checked
    def edges(self) -> pl.DataFrame:
        """Every edge as a row, in the order in which they were made: a copy.

        Columns: docs/reference/memories.md#columns-of-labedges.
        """
        with self._core.reading() as state:
            return state.edge_frame()

    @property
    @checked
    def log(self) -> pl.DataFrame:
        """Every event as a row: ``event``, ``at``, ``kind``, ``memories`` (whom it concerned), ``edges``, ``what``.

        ``lab.log.filter(pl.col("memories").list.contains(7))`` is the history of one memory.
        """
        with self._core.reading() as state:
            hidden = state.hidden if isinstance(state, ViewerState) else None
            return self._made("log")(self._core.store.journal.events(), hidden=hidden)

    @checked
    def slates(self) -> Slates:
        """Every logged recall and what was said about it, as four lazy frames.

        >>> memlab.evaluate(lab.slates(), "mine.hy")                                       # doctest: +SKIP
        """
        return self._core.store.slates(lab=self)

    @checked
    def at(
        self,
        when: When | None = None,
        *,
        event: int | None = None,
        viewer: str | None = None,
        progress: bool = True,
    ) -> Self:
        """The lab as it was, at a time or after an event, or as ``viewer`` sees it, or both: to read and to ask.

        At a time is after the last event that had happened by then. The pack that decided then decides, the clock
        stands still, and nothing is logged. It is folded from the beginning, about a second for 20,000 events or
        100,000 memories, and ends with this lab. What was purged since is not there.

        For a ``viewer`` what is private to another creator does not exist: it is in no frame, text, count, score,
        cluster or export, and moves none. Without a time such a lab goes on as this one does, and ends with it. Nothing
        is logged there: ``recall`` and ``turns`` of the lab itself take ``viewer=``. The first question folds the
        journal, about 0.3 s for 100,000 memories.

        InputError before the lab had a pack, for an event that is not there, for what is no viewer, for another one
        than this lab is viewed by already, or unless one of the three is given.

        >>> lab.at("2026-11-01").recall("where does Ada live?")                            # doctest: +SKIP
        >>> lab.at(viewer="agent:coder").memories                                          # doctest: +SKIP
        """
        store = self._core.store
        if viewer is None or when is not None or event is not None:
            store = self._made("at")(when, event=event, progress=progress)
        if viewer is not None:
            store = self._made("viewed_by")(store, viewer)
        return self if store is self._core.store else self._on(store)

    def _on(self, store: Store) -> Self:
        """A lab on another store, to read and to ask."""
        lab = type(self).__new__(type(self))
        lab._compose(store, self._core.seed)
        return lab

    @checked
    def __len__(self) -> int:
        return self._core.count()

    @checked
    def __getitem__(self, memory: MemoryLike) -> Memory:
        return self._core.memory(memory)

    @checked
    def __repr__(self) -> str:
        with self._core.reading() as state:
            where, pack, embedder = (
                self._core.store.where,
                self._core.pack,
                self._core.store.embedder,
            )
            count, edges = f"{self._core.count():,} memories", f"{state.edges.live:,} edges"
            embeds = "" if embedder.remote is None else f", embedded by {embedder.remote}"
        return printable(
            f"<Lab {where}: {count}, {edges}, pack {pack.name} [{pack.hash[:12]}]{embeds}>"
        )

    @checked
    def _display(self) -> object:
        with self._core.reading():
            return overview(repr(self), self.memories)

    # -- the pack, opening and closing ------------------------------------------------------------------------

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
        """Compare a pack with the live one from the next recall on; see ``lab.policies.challenge``.

        >>> lab.challenge("companion", reason="is fresh better?")                              # doctest: +SKIP
        """
        return self.policies.challenge(pack, design=design, extra=extra, rate=rate, reason=reason)

    @checked
    def verdict(
        self,
        challenger: str | None = None,
        *,
        horizon: str | timedelta | None = None,
        missing: Literal["censor", "inverse", "bounds", "zero"] | None = None,
        cluster: str | None = None,
        level: float = 0.95,
        reward_range: tuple[float, float] | None = None,
    ) -> Verdicts:
        """Whether each challenger is better than the live pack, valid at every look; see ``memlab.verdict``.

        >>> lab.verdict(horizon="1d", missing="zero")                                          # doctest: +SKIP
        """
        from memlab.science.evaluation import verdict

        return verdict(
            self.slates(),
            challenger,
            horizon=horizon,
            missing=missing,
            cluster=cluster,
            level=level,
            reward_range=reward_range,
        )

    @checked
    def close(self) -> None:
        """End watches, the schedule and turns, write a snapshot if that will save time, and close the journal."""
        for worker in self._kept.values():
            if hasattr(worker, "stop"):
                worker.stop()
        try:
            if self._backs_up and not self._core.store.journal.closed:
                self._made("backups")(closing=True)
        finally:
            self._core.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _wake_linker(lab: weakref.ref[Lab]) -> None:
    """Wake the worker that links in the background what was remembered, if the lab is still there."""
    here = lab()
    if here is not None:
        here._made("linker").wake()


def _kept_alone(name: str) -> Any:
    raise LookupError(
        f"What is kept with a lab is made without {name}: that would keep the lab alive."
    )


RENAMED: dict[str, str | tuple[str, Callable[[Lab], Any]]] = {
    "agent": "agents",
    "attribute": "agents.credits.answer",
    "check": "io.check",
    "clusters": "graph.clusters",
    "consolidation": "upkeep.consolidation",
    "credits": "agents.credits",
    "delete": ('forget(..., how="delete")', lambda lab: partial(lab.forget, how="delete")),
    "embedder": "io.embedder",
    "entities": "facts.entities",
    "extract": "agents.extract",
    "feedback_many": ("feedback(rows)", lambda lab: lambda rows: lab.feedback(rows)),
    "index": "upkeep.index",
    "modules": "agents.modules",
    "observe": "agents.observe",
    "operations": "upkeep.operations",
    "pack": "policies.pack",
    "path": "io.path",
    "recall_again": "policies.recall_again",
    "remember_many": ("remember(rows)", lambda lab: lambda rows, **how: lab.remember(rows, **how)),
    "review": "upkeep.review",
    "seed": "io.seed",
    "similar": "graph.similar",
    "store": "io.store",
    "use": "policies.use",
    "verify": "agents.verify",
    "viewed_by": ("at(viewer=...)", lambda lab: lambda viewer: lab.at(viewer=viewer)),
}
"""Names of earlier versions, and what replaces each."""


def _refusal(accessor: Accessor) -> str | None:
    """Return why an extension's accessor is refused."""
    if not accessor.name.isidentifier() or accessor.name.startswith("_"):
        return f"The accessor {accessor.name!r} is no name of an attribute."
    return (
        f"Lab has an attribute {accessor.name} of its own."
        if accessor.name in RENAMED or hasattr(Lab, accessor.name)
        else None
    )


ACCESSORS: Registry[Accessor] = Registry("accessor", kind="accessors", about="doc", check=_refusal)
"""The accessors that extensions declare."""
