"""``Lab``: the verbs of daily use on one page, and an accessor for each other subject.

Each verb is a few lines that call the module of its subject, in ``memlab.subjects``.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, overload

import polars as pl

from memlab.errors import InputError, LabUnavailable
from memlab.kernel.base.arguments import AnyNumber, AsGiven, Count, Seed, Within, checked
from memlab.kernel.base.clock import Clock, When, system_clock
from memlab.kernel.base.printable import printable
from memlab.kernel.embedding import Embedder, EmbedderSpec, load_embedder
from memlab.kernel.extension import load_installed
from memlab.kernel.journal import present
from memlab.kernel.policies import DEFAULT_PACK, Challenge, ChallengeDesign, Pack, PackLike, load_pack
from memlab.kernel.recall import Filters, Hits, WordOrWords
from memlab.kernel.registry import Registry
from memlab.kernel.slates import Slates
from memlab.kernel.state import Seen, with_extended
from memlab.kernel.storage.copies import unreached
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.core import Core, Memories, MemoryLike
from memlab.kernel.verbs.corrections.corrections import Corrected, Corrections
from memlab.kernel.verbs.features.features import LabFeatures
from memlab.kernel.verbs.feedback.feedback import Judgements, Verified
from memlab.kernel.verbs.graph.graph import LabGraph
from memlab.kernel.verbs.linking.linker import Linker
from memlab.kernel.verbs.migration import mending
from memlab.kernel.verbs.policies.falls import FallWatch
from memlab.kernel.verbs.policies.policies import LabPolicies
from memlab.kernel.verbs.policies.watch import Watches
from memlab.kernel.verbs.projections import PROJECTIONS
from memlab.kernel.verbs.recalling.asking import Questions
from memlab.kernel.verbs.remembering.admission import Observation
from memlab.kernel.verbs.remembering.remember import Remembering
from memlab.kernel.verbs.results import Edited, Feedback, Memory, Remembered, overview
from memlab.kernel.verbs.seam import Accessor, Seam
from memlab.subjects.agents.agent import Agent, identity_of
from memlab.subjects.agents.agents import LabAgents
from memlab.subjects.agents.turns import Turns
from memlab.subjects.attribution.attribution import Attributed, Attributions, LabCredits
from memlab.subjects.backups.backups import back_up_if_due
from memlab.subjects.backups.checking import Checked
from memlab.subjects.clusters.clusters import LabClusters
from memlab.subjects.consolidation.consolidation import LabConsolidation
from memlab.subjects.context.context import Context, Contexts
from memlab.subjects.entities.entities import LabEntities
from memlab.subjects.extraction.extraction import Extraction, Otherwise, where_of
from memlab.subjects.extraction.staged import Extracted
from memlab.subjects.facts.facts import LabFacts
from memlab.subjects.history.history import store_at, store_viewed_by
from memlab.subjects.history.log import happened
from memlab.subjects.index.index import LabIndex
from memlab.subjects.io.io import LabIO, reach_lost_mirrors
from memlab.subjects.io.loading import Given, load
from memlab.subjects.io.reembedding import Reembedder
from memlab.subjects.models import LanguageModel
from memlab.subjects.modules.modules import LabModules
from memlab.subjects.operations import LabOperations
from memlab.subjects.purge.purge import purge
from memlab.subjects.purge.receipt import Purged
from memlab.subjects.retention.retention import LabUpkeep
from memlab.subjects.retention.schedule import Scheduler
from memlab.subjects.review.review import LabReview
from memlab.subjects.verifiers import Verifier

if TYPE_CHECKING:
    from memlab.io.moving import Loaded
    from memlab.science.evaluation import Verdicts

__all__ = ["ACCESSORS", "Lab"]


class Lab:
    """A memory: its journal, the state folded from it, and the pack that decides. Use ``memlab.open``.

    ``policies``, ``facts``, ``entities``, ``graph``, ``clusters``, ``consolidation``, ``upkeep``, ``review``,
    ``agents``, ``modules``, ``credits``, ``operations``, ``io`` and ``index`` hold the verbs of their subjects.
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
            raise InputError("create=False is for a lab in a directory: one in memory is always new.")
        if not create and folder is not None and not present(folder):
            raise LabUnavailable.at(folder, "no lab is there")
        store = Store(
            folder,
            load_embedder(embedder),
            clock,
            read_only=read_only,
            create=create,
            reembed=reembed,
            index=index,
            projections=with_extended(PROJECTIONS),
            mend=mending(),
        )
        self._compose(store, seed)
        try:
            if chosen is not None or store.versions.empty:
                self.policies.use(chosen or DEFAULT_PACK, compare=0)
            if not read_only and unreached(store.journal):
                reach_lost_mirrors(store)
            if backups:
                self._backs_up = True
                back_up_if_due(store, closing=False)
        except BaseException:
            store.journal.close()
            raise

    def _compose(self, store: Store, seed: int) -> None:
        """Put the lab together on ``store``."""
        core = self._core = Core(store, seed)
        self._watches = Watches(store, LabPolicies(core))
        self._scheduler, self._linker = Scheduler(store), Linker(core)
        self._reembedder = Reembedder(store)
        for worker in (self._watches, self._scheduler, self._linker, self._reembedder):
            weakref.finalize(self, worker.stop_soon)
        self._questions, self._judgements = Questions(core), Judgements(core)
        self._falls = FallWatch(core.store)
        self._attributions, self._contexts = Attributions(core), Contexts(core, self._questions)
        self._remembering, self._corrections = Remembering(core, self._linker), Corrections(core)
        self._extraction = Extraction(core, self._remembering)
        self._turns: weakref.WeakSet[Turns] = weakref.WeakSet()
        self._linker.wake()
        self._reembedder.wake()

    # -- subjects ---------------------------------------------------------------------------------------------

    @property
    def policies(self) -> LabPolicies:
        """Install, roll back, pin, compare, watch and attribute policies."""
        return LabPolicies(self._held, self._watches)

    @property
    def features(self) -> LabFeatures:
        """Features of one's own, for any policy: from an expression or a function."""
        return LabFeatures()

    @property
    def facts(self) -> LabFacts:
        """Facts as rows and in words."""
        return LabFacts(self._held, self._remembering, self._questions)

    @property
    def entities(self) -> LabEntities:
        """Who and what facts are about: declare, list, merge, split."""
        return LabEntities(self._held)

    @property
    def graph(self) -> LabGraph:
        """Link, activate, trace, and the structure of it all."""
        return LabGraph(self._held, self._linker)

    @property
    def clusters(self) -> LabClusters:
        """Find, refine and list clusters."""
        return LabClusters(self._held)

    @property
    def consolidation(self) -> LabConsolidation:
        """Summaries in the place of many old memories: run, undo, list."""
        return LabConsolidation(self._held)

    @property
    def upkeep(self) -> LabUpkeep:
        """What time does: maintain, schedule, forecast."""
        return LabUpkeep(self._held, self._scheduler)

    @property
    def review(self) -> LabReview:
        """Deprecate, quarantine and release; what is related to that, and gaps."""
        return LabReview(self._held, self._corrections)

    @property
    def agents(self) -> LabAgents:
        """Turns, admission, what sessions taught, relationships of agents, and the switch of memory."""
        verbs = self._remembering, self._questions, self._judgements
        return LabAgents(self._held, *verbs, self._turns, self._extraction)

    @checked
    def agent(
        self, name: str, *, project: str | None = None, session: str | None = None, role: str = "member"
    ) -> Agent:
        """The daily verbs as one agent ("reader", "member", "owner"), which keeps to its project; see ``Agent``."""
        identity = identity_of(name, project=project, session=session, role=role, now=self.store.clock())
        verbs = self._remembering, self._questions, self._contexts, self._judgements, self._corrections
        return Agent(identity, self._held, self.agents, *verbs, self._extraction)

    @property
    def modules(self) -> LabModules:
        """The parts of a code base: scan, map, find, describe."""
        return LabModules(self._held)

    @property
    def credits(self) -> LabCredits:
        """Attributed rewards: those of a transcript, and how sure they are, calibrated on what was judged."""
        return LabCredits(self._held, self._attributions)

    @property
    def operations(self) -> LabOperations:
        """Run operations written as S-expressions, and see what memories propose."""
        return LabOperations(self, self._core)

    @property
    def io(self) -> LabIO:
        """Export, mirror, back up, check, embed anew."""
        return LabIO(self._held, self._reembedder)

    @property
    def index(self) -> LabIndex:
        """The search for neighbours, and how good it is."""
        return LabIndex(self.store)

    @property
    def _held(self) -> Core:
        """For accessors: ``lab.upkeep`` keeps the lab alive, and the lab does not keep its accessors."""
        return self._core.held_by(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return what an extension's accessor of this name makes."""
            if name.startswith("_") or name not in ACCESSORS:
                raise AttributeError(f"Lab has no attribute {name!r}.", name=name, obj=self)
            accessor = ACCESSORS[name]
            return accessor.make(Seam(self, self._core, accessor.owner))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *ACCESSORS})

    # -- remembering ------------------------------------------------------------------------------------------

    @checked
    def remember(
        self, text: str, *, at: When | None = None, chain: bool = False, linking: str | None = None, **fields: Any
    ) -> Memory:
        """Remember one text; durable when it returns.

        ``fields`` are those of ``memlab.FIELDS``: kind, tags, project, session, speaker, importance, ref, ...; see
        docs/reference/memories.md#fields-of-a-memory. Without a ``creator`` nobody is, and the project sees the memory.
        ``chain=True`` links it by a ``next`` edge to the last memory of its session. ``linking``: see
        ``remember_many``. Returned is the memory that represents the text: a new one, or the old one that it was merged
        into or that the pack keeps in its place; ``remember_many`` says which in ``outcomes``.

        >>> lab.remember("Deploys go out on Tuesdays", kind="convention", project="api")   # doctest: +SKIP
        """
        return self._remembering.one(text, at=at, chain=chain, linking=linking, fields=fields)

    @checked
    def remember_many(
        self,
        rows: Annotated[Iterable[Mapping[str, Any] | str] | pl.DataFrame, AsGiven],
        *,
        chain: bool = False,
        linking: str | None = None,
    ) -> Remembered:
        """Remember several at once: one transaction, all or nothing.

        ``rows`` are dicts of ``text`` and any of ``memlab.FIELDS`` and ``at``, or texts, or a Polars frame with
        those columns. ``chain=True`` links consecutive memories of a session by ``next`` edges.

        ``linking`` says when they are compared with what is there, and with one another: "off" not at all; "now" before
        they are stored, so that a near-duplicate is never stored; "later" in the background, so that this returns at
        once and near-duplicates, which have their ids by then, are superseded by what replaces them. Unless given it
        is the pack's setting; see docs/systems.md#settings-of-each-pack. After "later", ``lab.graph.link_waiting()``
        waits until that is done. Turns of a conversation (kind "turn") are never compared: they were said.

        The pack's ``link`` is asked of each new memory and its neighbours, ``resolve`` where it finds a conflict. What
        came of it is in ``outcomes``; docs/policy-language.md#what-link-and-resolve-leave has the edge of each answer.
        InputError if an agent (a creator "agent:...") writes more bytes than the setting ``write-bytes`` or more
        memories of one session than ``session-writes``; nothing is stored then.
        """
        return self._remembering.many(rows, chain=chain, linking=linking)

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

        ``extract=True`` also stores the facts and observations that ``lab.extract`` finds in what is added.

        >>> lab.load("chat.csv", columns={"text": "body"}).guessed                             # doctest: +SKIP
        """
        given = Given(
            columns or {}, format, project, session, linking, policies=policies, strict=strict, extract=extract
        )
        return load(
            x, given, self._core, self._remembering, self._linker, self.policies, self._extraction, progress=progress
        )

    @checked
    def observe(
        self,
        text: str,
        *,
        role: str = "user",
        at: When | None = None,
        chain: bool = False,
        linking: str | None = None,
        before: str | None = None,
        **fields: Any,
    ) -> Observation:
        """Remember an utterance if it is worth it: ``lab.agents.admit``, then ``remember``.

        ``before`` is the message just before, of somebody else; unless given it is the last of the ``session``. An
        answer is read with its question: after "What do you do?", "A nurse." is remembered as "I am a nurse.".

        What is not admitted is not stored, and ``observation.admission`` says why. ``kind`` and ``provenance`` follow
        from the reasons and the role unless they are given: what corrects is a correction, what tells a preference is
        one; what a user says is user-stated, what an assistant says is inferred.

        >>> lab.observe("How are you?").memory is None                                        # doctest: +SKIP
        True
        """
        return self._remembering.observe(
            text, role=role, at=at, chain=chain, linking=linking, fields=fields, before=before
        )

    @checked
    def extract(
        self,
        messages: Annotated[Any, AsGiven],
        *,
        role: str = "user",
        agent: str | None = None,
        project: str | None = None,
        session: str | None = None,
        model: LanguageModel | None = None,
        otherwise: Otherwise = "raise",
    ) -> Extracted:
        """Facts and memories of a text, or of messages with ``role`` and ``content``: by rules, or by a ``model``.

        Nothing is stored. ``agent`` is who hears it: a fact that it proposes has the agent among its ``agents`` and is
        shared, a memory is created by the agent and private to it. ``otherwise``: what becomes of a message that the
        model does not read, docs/howto/extract.md.
        """
        return self._extraction.extract(messages, role, where_of(agent, project, session), model, otherwise)

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
        what is private to another creator, as ``viewed_by`` does. What belongs to a season takes part only while
        ``season`` names it. ``where`` is any Polars expression over the columns of ``lab.memories``, true or false;
        aggregates range over all that ``viewer`` sees. What is left out counts in no statistic either.

        Without ``branch`` every branch takes part, except under packs that read ``same-branch`` (``workbench``): there
        only what has no branch does. A lab knows nothing of merges: name a merged branch as well,
        ``branch=["main", "feature"]``.

        ``again=False`` leaves out what the ``viewer`` was given before in the ``session``, by contexts and by recalls
        of this kind; None follows the pack's setting ``recall-again``. ``hits.repeated`` lists what was left out.

        >>> lab.recall("release", where=pl.col("tags").list.contains("ci"), status="superseded")  # doctest: +SKIP
        """
        words = {"branch": branch, "scope": scope, "visibility": visibility, "status": status, "season": season}
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
    def similar(
        self,
        memory: MemoryLike,
        *,
        limit: Count = 10,
        project: str | None = None,
        where: pl.Expr | None = None,
    ) -> pl.DataFrame:
        """The memories nearest to one of them by the cosine of their vectors, best first; nothing is logged.

        Columns: ``rank``, ``memory_id``, ``similarity`` (-1..1), ``text``, ``kind``, ``ref``, ``speaker``, ``session``,
        ``project``. What recall does not admit (forgotten, superseded, retracted; bound to another session) is left
        out, and ``project`` and ``where`` are those of ``recall``. UnknownName for an id that nothing has.

        >>> lab.similar(hits[0], where=pl.col("kind") == "decision")                       # doctest: +SKIP
        """
        with self._core.reading():
            row = self._core.row(memory)
        return self._questions.similar(row, limit=limit, project=project, filters=Filters.of(where=where))

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
        return self._contexts.make(
            task, budget=budget, session=session, project=project, files=files, viewer=viewer, at=at, log=log
        )

    # -- judging ----------------------------------------------------------------------------------------------

    @checked
    def feedback(
        self,
        hit: MemoryLike,
        outcome: str | None = None,
        *,
        rating: Annotated[int, Within(1, 4)] | None = None,
        reward: float | None = None,
        agent: str | None = None,
        source: str = "user",
        at: When | None = None,
        decision: Annotated[int, Within(1, 1 << 62)] | None = None,
    ) -> Feedback:
        """Say how a memory that was shown did: ``"success"``, ``"fail"``, or a ``reward``; durable when it returns.

        ``rating`` says how easily it was remembered: 1 again, 2 hard, 3 good, 4 easy; without an outcome, 1 is a
        failure and the others are successes. The live pack's ``reinforce`` policy decides what an outcome changes in
        the memory. A success is shared: edges to the other memories that succeeded in the same recall are made or
        strengthened, by the setting ``edge-gain``. With ``agent``, the outcome also counts for how far that agent is
        trusted (``lab.agents.relationships``).

        Where the live policy is found to earn less than an earlier one did, the result's ``notice`` proposes, once, to
        bring that one back, and names the call that does. Nothing changes without it.

        It belongs to the recall of the hit. For a memory or its id, ``decision`` names the logged recall that showed it
        (``hits.decision``), else it is the last that did, if any: ``memlab.evaluate`` reads only what has one.
        """
        logged = self._judgements.feedback(
            hit, outcome, rating=rating, reward=reward, agent=agent, source=source, at=at, decision=decision
        )
        notice = self._falls.after_feedback()
        return logged if notice is None else replace(logged, notice=notice)

    @checked
    def feedback_many(
        self, rows: Annotated[Iterable[Mapping[str, Any]] | pl.DataFrame, AsGiven]
    ) -> tuple[Feedback, ...]:
        """Say how several memories did, in one transaction: all of it is checked first, and all or nothing is logged.

        ``rows`` are dicts, or a frame with such columns: ``memory`` (an id, a hit or a memory; ``memory_id`` in a
        frame of ``hits``), and any of ``outcome``, ``rating``, ``reward``, ``agent``, ``source``, ``at`` and
        ``decision``, as in ``feedback``; null stands for what is not given. Returned in their order. The errors are
        those of ``feedback``, and name the row.

        >>> lab.feedback_many([{"memory": hits[0], "outcome": "success"}, {"memory": 7, "reward": 0}])  # doctest: +SKIP
        """
        logged = self._judgements.feedback_many(rows)
        notice = self._falls.after_feedback() if logged else None
        return logged if notice is None else (*logged[:-1], replace(logged[-1], notice=notice))

    @checked
    def attribute(
        self,
        answer: str,
        hits: Hits | Annotated[int, Within(1, 1 << 62)],
        *,
        arguments: str | None = None,
        reply: str | None = None,
        at: When | None = None,
    ) -> Attributed:
        """Read from an answer which of the memories that a recall showed it was made of, and log that as rewards.

        ``hits`` are those of a logged recall, or its number. ``arguments`` is what tools were called with, ``reply``
        what the user said next, who may put it right. The live pack's policy ``credit`` decides, of each shown memory,
        from named cues (``memlab.SLOTS["credit"]``): what only this memory has in common with the answer, dates as of
        when it was said, quotes, ids. Words of the question earn nothing by themselves.

        Each reward is feedback of source "attributed" with a confidence, for evaluation alone: it changes no memory.
        What somebody states of the same memory of the same recall takes its place. The same answer read twice changes
        nothing; of several answers to one recall the greatest credit counts, unless it was put right. No text is
        executed or believed, the first 20,000 characters are read, and more than five ids in an answer credit none.
        ``lab.credits.transcript`` reads the answers of a whole transcript. UnknownName for a recall not logged.

        >>> lab.attribute("On 7 May 2023 [memory 12]", hits)                               # doctest: +SKIP
        """
        return self._attributions.answer(answer, hits, arguments=arguments, reply=reply, at=at)

    @checked
    def verify(
        self,
        hits: Hits,
        accepted: Verifier | Memories,
        *,
        rejected: Memories | None = None,
        relations: Mapping[tuple[int, int], str] | None = None,
        at: When | None = None,
    ) -> Verified:
        """Carry out a verifier's verdict on a logged recall, once; durable when it returns.

        ``accepted`` are the hits that pass, or a callable that says so (``memlab.verifiers.overlap``, or your own);
        ``[]`` is allowed, and rejects all.
        ``rejected`` are those that do not: without it, all others that were shown. ``relations`` names what joins two
        that pass, from the first id to the second: ``{(3, 7): "supersedes"}``, which retires the second.

        The live pack's ``reinforce`` decides what "verified" and "rejected" change. What did not pass loses the access
        that the recall gave it; two or more that passed are joined by ``relates-to`` edges, or those are strengthened,
        and share the tag that most have. Where there were seeds and nothing passed, ``lab.review.gaps`` has a gap.

        InputError for a recall that was not logged or was verified before, UnknownName for what it did not show.

        >>> lab.verify(lab.recall("release"), memlab.verifiers.overlap)                    # doctest: +SKIP
        """
        return self._judgements.verify(hits, accepted, rejected=rejected, relations=relations, at=at)

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
                raise InputError("A frame of edits says itself what changes: give no text or fields beside it.")
            return self._corrections.edit_frame(memory)
        return self._corrections.edit(memory, text=text, fields=fields)

    @checked
    def forget(self, memory: Memories) -> Corrected:
        """Take memories out of every recall; ``restore`` brings them back.

        A memory that was edited is forgotten with its corrections, whichever version is named: the named one and every
        edit after it. ``ids`` of the result are the memories that were reached. A newer fact that ended a memory is no
        correction and stays; ``review`` lists it.

        >>> lab.forget(1).ids                                                              # doctest: +SKIP
        (1, 4)
        """
        return self._corrections.forget(memory)

    @checked
    def delete(self, memory: Memories | None = None, *, project: str | None = None) -> Corrected:
        """Delete memories, or all of a project: out of every recall now, and due to be purged after ``grace-days``.

        The live pack's setting ``grace-days`` says how long ``restore`` brings them back; ``purge(overdue=True)``
        removes what is due. Nothing is purged by itself. What is deleted already stays as it is. A memory that was
        edited is deleted with its corrections, as ``forget`` forgets it.

        With ``project`` the map of its modules (``lab.modules``) goes at once. ``restore`` brings back the memories, a
        new ``lab.modules.scan`` the map.
        """
        return self._corrections.delete(memory, project=project)

    @checked
    def restore(self, memory: Memories | None = None, *, project: str | None = None) -> Corrected:
        """Bring back memories that are out of use, or all that is deleted of a project.

        That is what was forgotten, deprecated, retracted or deleted, ran out or went into a summary. Each gets the
        status that it had before; a memory that was put out of use with its corrections comes back with them. What was
        superseded comes back once what took its place is out of use. Bringing back
        is a use: the pack's ``reinforce`` is asked as of a recall; what a deprecation changed is undone where nothing
        has changed it since. So a strength that had faded to 0 is what a recall adds to 0 (5 under ``companion``), and
        time counts from now on; ``access`` stays as it was.

        A summary of ``lab.consolidation.run`` that is in use is undone: its members get the status that they had, and
        the summary is forgotten. A member that left it since stays as it is.

        InputError for what is superseded by a memory in use, or purged.
        """
        return self._corrections.restore(memory, project=project)

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
        return purge(
            self._core,
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
            hidden = state.hidden if isinstance(state, Seen) else None
            return happened(self.store.journal.events(), hidden=hidden)

    @checked
    def slates(self) -> Slates:
        """Every logged recall and what was said about it, as four lazy frames.

        >>> memlab.evaluate(lab.slates(), "mine.hy")                                       # doctest: +SKIP
        """
        return self.store.slates(lab=self)

    @checked
    def recall_again(self, decision: Mapping[str, Any], pack: Pack) -> pl.DataFrame | None:
        """The candidates that ``pack`` would have had for a logged decision (a row of ``slates().decisions``).

        It is asked of the state before the decision. None where the recall cannot be repeated, because its filter is
        not in the log. ``memlab.evaluate`` uses it where logged features do not do.
        """
        return self._questions.again(decision, pack)

    @checked
    def at(self, when: When | None = None, *, event: int | None = None, progress: bool = True) -> Self:
        """The lab as it was: at a time (after the last event that had happened by then), or after an event.

        A lab to read and to ask, with the pack that decided then and a clock that stands still; nothing is logged.
        It is folded from the beginning, about a second for 20,000 events or 100,000 memories, and ends with this lab.
        What was purged since is not there. InputError before the lab had a pack, for an event that is not there, or
        unless one of the two is given.

        >>> lab.at("2026-11-01").recall("where does Ada live?")                            # doctest: +SKIP
        """
        return self._on(store_at(self.store, when, event=event, progress=progress))

    @checked
    def viewed_by(self, viewer: str) -> Self:
        """The lab as ``viewer`` sees it: without what is private to another creator, as if it did not exist.

        A lab to read and to ask: what others keep private is in no frame, text, count, score, cluster or export of it,
        and moves none. It goes on as the lab does, and ends with it. Nothing is logged here: ``recall`` and ``turns``
        of the lab itself take ``viewer=``. The first question folds the journal, about 0.3 s for 100,000 memories.
        InputError for what is no viewer, and for another one than this lab is viewed by already.

        >>> lab.viewed_by("agent:coder").memories                                          # doctest: +SKIP
        """
        store = store_viewed_by(self.store, viewer)
        return self if store is self.store else self._on(store)

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
            where, pack = self.store.where, self.pack
            count, edges = f"{self._core.count():,} memories", f"{state.edges.live:,} edges"
            embeds = "" if self.embedder.remote is None else f", embedded by {self.embedder.remote}"
        return printable(f"<Lab {where}: {count}, {edges}, pack {pack.name} [{pack.hash[:12]}]{embeds}>")

    @checked
    def _repr_html_(self) -> str:
        with self._core.reading():
            return overview(repr(self), self.memories)

    # -- the pack, opening and closing ------------------------------------------------------------------------

    @property
    @checked
    def pack(self) -> Pack:
        """The live pack."""
        with self._core.reading():
            return self._core.pack

    @checked
    def use(self, pack: PackLike, *, reason: str = "", compare: Annotated[int, Within(0, 100)] = 10) -> Pack:
        """Let another pack decide from the next recall on: logged, hashed, reversible.

        For daily use of a design take the pack ``NAME-plus``, such as ``companion-plus``: memories are admitted,
        linked, promoted and forgotten as in the design, and the default pack ranks them. The published pack ``NAME``
        ranks by its own formula; on a lab of chats a ``RankingWarning`` says how far it and the live pack agree on at
        most ``compare`` queries of the lab. 0 leaves that out.

        >>> lab.use("companion-plus")                                                      # doctest: +SKIP
        """
        return self.policies.use(pack, reason=reason, compare=compare)

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

    @property
    def path(self) -> Path | None:
        """The lab's folder; None in memory."""
        return self.store.folder

    @property
    def embedder(self) -> Embedder:
        """What turns texts into vectors."""
        return self.store.embedder

    @property
    def seed(self) -> int:
        """What decides, with what the lab has seen, which probes are drawn."""
        return self._core.seed

    @property
    def store(self) -> Store:
        """The journal and the state that is folded from it: for tools that read events, within ``store.reading()``."""
        return self._core.store

    @checked
    def check(self, *, repair: bool = True) -> Checked:
        """Check the lab's files, and find what corrections of earlier versions left in old words.

        See ``lab.io.check``; ``lab.review.stale`` lists what is stale and ``lab.review.rebuild`` rebuilds it.

        >>> lab.check().sound                                                              # doctest: +SKIP
        True
        """
        return self.io.check(repair=repair)

    @checked
    def close(self) -> None:
        """End watches, the schedule and turns, write a snapshot if that will save time, and close the journal."""
        self._watches.stop()
        self._scheduler.stop()
        self._linker.stop()
        self._reembedder.stop()
        for turns in list(self._turns):
            turns.close()
        try:
            if self._backs_up and not self.store.journal.closed:
                back_up_if_due(self.store, closing=True)
        finally:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _refusal(accessor: Accessor) -> str | None:
    """Return why an extension's accessor is refused."""
    if not accessor.name.isidentifier() or accessor.name.startswith("_"):
        return f"The accessor {accessor.name!r} is no name of an attribute."
    return f"Lab has an attribute {accessor.name} of its own." if hasattr(Lab, accessor.name) else None


ACCESSORS: Registry[Accessor] = Registry("accessor", kind="accessors", about="doc", check=_refusal)
"""The accessors that extensions declare."""
