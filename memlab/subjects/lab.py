"""``Lab``: the verbs of daily use, and one accessor for each other subject.

The kernel's verbs are called directly. Components of memlab's own extensions, such as
``lab.graph.clusters`` or ``lab.purge``, are imported by name at their first use.
"""

# mypy: disable-error-code="no-any-return"
# (components are made by name and untyped; the annotation of each verb states the type)

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
from memlab.kernel.base.arguments import (
    AnyNumber,
    AsGiven,
    Count,
    Misfit,
    Seconds,
    Seed,
    Taken,
    Within,
    checked,
    describe_value,
    renamed,
)
from memlab.kernel.base.clock import Clock, When, system_clock
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.embedding import EmbedderSpec, load_embedder
from memlab.kernel.extension import load_installed
from memlab.kernel.journal import KeySource, lab_exists
from memlab.kernel.policies import (
    DEFAULT_PACK,
    Challenge,
    ChallengeDesign,
    ExtraItems,
    PackLike,
    PolicyLike,
    as_pack,
    load_pack,
)
from memlab.kernel.recall import Filters, Hit, Hits, WordOrWords
from memlab.kernel.registry import Registry
from memlab.kernel.slates import Slates
from memlab.kernel.state import ViewerState, add_extension_projections
from memlab.kernel.storage.copies import list_outdated_mirrors
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.core import Core, Memories, MemoryLike, listed_memories
from memlab.kernel.verbs.corrections.corrections import Corrected, Corrections
from memlab.kernel.verbs.features.features import LabFeatures
from memlab.kernel.verbs.feedback import Judgements, check_judgement
from memlab.kernel.verbs.policies.policies import LabPolicies
from memlab.kernel.verbs.projections import COMPONENTS, LASTING_COMPONENTS, PROJECTIONS
from memlab.kernel.verbs.recalling.asking import Questions
from memlab.kernel.verbs.remembering.remember import Remembering
from memlab.kernel.verbs.results import Edited, Edits, Feedback, Memory, Remembered, render_overview
from memlab.kernel.verbs.seam import Accessor, Seam
from memlab.kernel.verbs.verbs import Verbs
from memlab.science.batch import Workers
from memlab.subjects.listening import Listener, Listeners
from memlab.subjects.mending import make_repairer

if TYPE_CHECKING:
    from memlab.science.evaluation import Verdicts
    from memlab.subjects.agent_verbs.agents import Agent, LabAgents
    from memlab.subjects.clusters.clusters import LabGraph
    from memlab.subjects.context.context import Context
    from memlab.subjects.facts.facts import LabFacts
    from memlab.subjects.guard.guard import Guard
    from memlab.subjects.io.io import LabIO
    from memlab.subjects.io.results import Loaded
    from memlab.subjects.purge.receipt import Purged
    from memlab.subjects.questions.questions import LabQuestions
    from memlab.subjects.questions.scoring import Scores
    from memlab.subjects.retention.retention import LabUpkeep
    from memlab.subjects.review.review import Quarantined


def _check_memories(value: Any) -> Any:
    """Return a list of memories unchanged, or a `Misfit` for any other value."""
    # Other iterables are judgements, which are checked one by one, because they may be endless.
    if isinstance(value, list) and all(isinstance(item, Memory | Hit | int) for item in value):
        return value
    return Misfit("a list of memories", describe_value(value))


class Lab(Displayed):
    """A long-term memory: its journal, the state folded from it, and its active pack.

    Use ``memlab.open`` to make one. The accessors ``policies``, ``features``, ``facts``,
    ``graph``, ``agents``, ``upkeep`` and ``io`` hold the verbs of their subjects. Names of earlier
    versions work throughout 0.2, with a ``RenamedWarning`` that names the replacement.

    Parameters
    ----------
    path
        The directory of the lab; None for a lab in memory.
    pack
        The pack to use from now on. Default: the lab's active pack, "memlab" for a new lab.
    embedder
        The source of vectors. Default: the static model that memlab ships.
    clock
        A function that returns the current time in microseconds UTC.
    seed
        The seed from which exploration items are drawn.
    read_only
        Whether to open the lab without writing to it.
    reembed
        Whether to embed all memories again if the lab has vectors of another embedder.
    index
        The index that proposes neighbours among more than 100,000 memories.
    backups
        Whether to keep three backups in the lab's directory.
    create
        Whether to make a lab if the directory has none.
    key
        The key of an encrypted or new lab, as for ``memlab.open``.

    Raises
    ------
    LabError
        If the lab cannot be opened; ``memlab.open`` lists the classes.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memory = lab.remember("The user prefers tabs")
    >>> lab.recall("tabs or spaces?")[0].text
    'The user prefers tabs'
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
        key: KeySource | None = None,
    ) -> None:
        load_installed()
        loaded_pack = load_pack(pack) if pack is not None else None
        folder = None if path is None else Path(path).expanduser()
        if backups and (folder is None or read_only):
            raise InputError("backups=True needs a path and read_only=False.")
        if not create and folder is None:
            raise InputError("create=False needs a path: a lab in memory is always new.")
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
            mend=make_repairer(),
            key=key,
        )
        self._compose(store, seed)
        try:
            if loaded_pack is not None or store.versions.empty:
                self.policies.use(loaded_pack or DEFAULT_PACK, compare=0)
            if not read_only and list_outdated_mirrors(store.journal):
                self._component("mirrors")()
            if backups:
                self._backs_up = True
                self._component("backups")(closing=False)
        except BaseException:
            store.journal.close()
            raise

    def _compose(self, store: Store, seed: int) -> None:
        """Build the lab's verbs on ``store``, and start the background workers that have work."""
        core = self._core = Core(store, seed)
        self._questions, self._judgements = Questions(core), Judgements(core)
        self._remembering = Remembering(core, partial(_wake_linker, weakref.ref(self)))
        self._corrections = Corrections(core)
        self._components: dict[str, Any] = {}
        self._listeners: Listeners | None = None
        if store.state.projections["waiting"]:
            self._component("linker").wake()
        if not store.journal.read_only and store.state.unembedded:
            self._component("reembedder").wake()

    def _component(self, name: str) -> Any:
        """Return the component with this name from memlab's own extensions.

        Components that live as long as the lab (``LASTING_COMPONENTS``) are made once.
        """
        # A kept component gets the core without an owner: a reference to the lab would keep it
        # alive.
        if name in self._components:
            return self._components[name]
        if name == "questions":
            return self._questions
        make = LASTING_COMPONENTS.get(name)
        if make is None:
            return (
                self._watched(
                    name, COMPONENTS[name](self._verbs(self._owned_core, self._component))
                )
                if name in COMPONENTS
                else getattr(self, name)
            )
        component = self._components[name] = self._watched(
            name, make(self._verbs(self._core, _refuse_component))
        )
        if hasattr(component, "stop_soon"):
            weakref.finalize(self, component.stop_soon)
        return component

    def _verbs(self, core: Core, component: Callable[[str], Any]) -> Verbs:
        """Return the kernel's verbs, from which components are built."""
        verbs = self._questions, self._judgements, self._remembering, self._corrections
        return Verbs(core, *verbs, component)

    def _watched(self, name: str, component: Any) -> Any:
        """Return a component whose verbs are reported to listeners; see ``on``."""
        return component if self._listeners is None else self._listeners.watch(name, component)

    # -- subjects ---------------------------------------------------------------------------------------------

    @property
    def policies(self) -> LabPolicies:
        """The accessor for packs and policies: choose, install, pin, compare, watch."""
        return self._watched("policies", LabPolicies(self._owned_core))

    @property
    def features(self) -> LabFeatures:
        """The accessor for features, which are defined by expressions or functions."""
        return LabFeatures()

    @property
    def facts(self) -> LabFacts:
        """The accessor for facts as rows, facts as text, and entities."""
        return self._component("facts")

    @property
    def graph(self) -> LabGraph:
        """The accessor for edges, activation, similar memories, clusters and statistics."""
        return self._component("graph")

    @property
    def upkeep(self) -> LabUpkeep:
        """The accessor for decay, schedules, forecasts, consolidation and review."""
        return self._component("upkeep")

    @property
    def agents(self) -> LabAgents:
        """The accessor for agents; ``lab.agents("tutor")`` returns the agent "tutor"."""
        return self._component("agents")

    @checked
    def agent(
        self,
        name: str,
        *,
        project: str | None = None,
        session: str | None = None,
        role: str = "member",
    ) -> Agent:
        """Return an agent that reads and writes memories under its own name.

        This is the one way to name the agent of a call. The agent is the creator of its memories, the
        viewer of its recalls and the source of its feedback. ``lab.agents(name)`` is the same.

        Parameters
        ----------
        name
            The name, with or without the prefix "agent:".
        project
            The only project that it reads and writes. Default: any.
        session
            Its session. Default: a session of its own. ``agent.session("s1")`` opens one for chats.
        role
            "reader", "member" or "owner".

        Returns
        -------
        Agent
            The agent.

        Raises
        ------
        UnknownName
            If there is no such role.

        Examples
        --------
        >>> import memlab
        >>> coder = memlab.open().agent("coder", project="api")
        >>> _ = coder.remember("Run the tests before a push", kind="convention")
        >>> coder.memories["creator"].to_list()
        ['agent:coder']
        """
        return self.agents(name, project=project, session=session, role=role)

    @property
    def io(self) -> LabIO:
        """The accessor for exports, mirrors, backups, checks and re-embedding."""
        return self._component("io")

    @property
    def questions(self) -> LabQuestions:
        """The accessor for labelled questions: add, infer, propose, accept, remove."""
        return self._component("labels")

    @property
    def _owned_core(self) -> Core:
        """The core for accessors, with a reference that keeps the lab alive.

        The lab does not hold its accessors, so no reference cycle delays its release.
        """
        return self._core.held_by(self, self._component)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return an extension's accessor, or the replacement of a former attribute."""
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
        text: str | pl.DataFrame | Iterable[Mapping[Any, Any] | str],
        *,
        at: When | None = None,
        chain: bool = False,
        linking: str | None = None,
        **fields: Any,
    ) -> Memory | Remembered:
        """Remember one or several texts in one transaction.

        The memories are durable when the call returns. Of several texts, all are stored or none.

        Parameters
        ----------
        text
            A text, or several: an iterable of texts and dicts, or a frame. Dicts and columns have
            ``text``, any field of ``fields``, and ``at``.
        at
            The time of the memory. Default: now. Several texts give their own times.
        chain
            Whether to link each memory to the previous one of its session by a ``next`` edge.
        linking
            When the memories are compared with stored ones and with one another: "off" never,
            "corrections" before they are stored, if they report a change; nothing merges then,
            "now" before they are stored, "later" in the background. Default: the pack's setting
            (docs/systems.md#settings-of-each-pack).
        **fields
            Fields of ``memlab.FIELDS``: kind, tags, project, session, speaker, importance, ref, ...
            (docs/reference/memories.md#fields-of-a-memory). Without a ``creator`` the memory
            belongs to nobody, and its project sees it.

        Returns
        -------
        Memory or Remembered
            For one text, the memory that represents it: a new one, or a stored one that it was
            merged into or that the pack keeps instead. For several, a result whose ``outcomes`` say
            what became of each.

        Raises
        ------
        InputError
            If a field is invalid, or if an agent (a creator "agent:...") exceeds the setting
            ``write-bytes`` or ``session-writes``. Nothing is stored then.
        PrivacyError
            If a field other than the text holds a secret. Secrets in the text are redacted.
        MemoryOff
            If memory is switched off for the project.

        Notes
        -----
        With "now", a near-duplicate is never stored. With "later", the call returns at once;
        near-duplicates have ids by then and are superseded by their replacements. After "later",
        ``lab.graph.link_waiting()`` waits for the comparison. Turns of a conversation (kind "turn")
        are never compared.

        The pack's policy ``link`` decides on each new memory and its neighbours, ``resolve`` on
        conflicts. docs/reference/policy-language.md#link lists the edge of each answer.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.remember("Deploys go out on Tuesdays", kind="convention", project="api")
        <Memory 1, convention, active: 'Deploys go out on Tuesdays'>
        >>> lab.remember(["The user likes tea", {"text": "Use tabs", "kind": "preference"}]).ids
        range(2, 4)
        """
        if isinstance(text, str):
            return self._remembering.remember_one(
                text, at=at, chain=chain, linking=linking, fields=fields
            )
        if at is not None or fields:
            raise InputError(
                "With several texts, fields and at= are not allowed as arguments. Write them in dicts or columns."
            )
        return self._remembering.remember_many(text, chain=chain, linking=linking)

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
        seconds: Seconds | None = 3600,
        progress: bool = True,
        key: KeySource | None = None,
    ) -> Loaded:
        """Add the contents of a file, a folder, another lab, a frame or messages.

        ``memlab.load`` describes the formats.

        Parameters
        ----------
        x
            A path, a frame, or a list of messages, dicts or texts.
        format
            The name of the format. Default: recognized from the contents.
        columns
            The column of each field, for example ``{"text": "body"}``; None leaves a field out. For ``at``, the time
            of the first row is possible, too; each further row is a second later.
        project
            The project of all memories.
        session
            The session of memories that name none.
        linking
            When the memories are compared, as for ``remember``; every row keeps its own memory.
        policies
            Whether to use the pack of an export.
        strict
            Whether to raise DatasetError at the first broken line instead of counting it.
        extract
            Whether to also store the facts and observations that ``lab.agents.extract`` finds.
        seconds
            The seconds after which reading stops with an InputError; what was read is stored. None sets no limit.
        progress
            Whether to show a progress bar for work of more than a second.
        key
            The key of the encrypted lab at ``x``, as for ``memlab.open``.

        Returns
        -------
        Loaded
            The new memories, what was recognized (``guessed``) and what was skipped.

        Raises
        ------
        InputError
            If the file does not exist or its format is not recognized.
        DatasetError
            If a line is broken and ``strict`` is True.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> message = {"role": "user", "content": "I moved to Bergen."}
        >>> loaded = lab.load([message], progress=False)
        >>> lab[1].text
        'I moved to Bergen.'
        """
        return self._component("load")(
            x,
            format=format,
            columns=columns or {},
            project=project,
            session=session,
            linking=linking,
            policies=policies,
            strict=strict,
            extract=extract,
            seconds=seconds,
            progress=progress,
            key=key,
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
        pack: PolicyLike | None = None,
        params: Mapping[str, Annotated[float, AnyNumber]] | None = None,
        log: bool = True,
        explore: bool | Literal["within"] | None = None,
        again: bool | None = True,
    ) -> Hits:
        """Retrieve the memories that the active pack ranks highest for ``query``.

        The slate is logged, and each result counts as an access of its memory, unless ``log=False``
        or the lab is read-only. No result is drawn at random unless the recall explores.

        Parameters
        ----------
        query
            The text to search for.
        limit
            The maximum number of results. Default: the pack's setting ``limit``. Exploration items are added to this
            number.
        project
            Only memories of this project or no project.
        session
            The session of the recall. Memories bound to another session are left out.
        branch
            Admit memories of this branch, or of several, and memories without a branch. Default:
            every branch, except under packs that read ``same-branch`` (``workbench``).
        scope
            Admit memories of this scope, or of several.
        visibility
            Admit memories of this visibility, or of several.
        status
            Admit memories of this status, or of several. Default: active, staged and confirmed.
        season
            Admit the memories of this season, or of several, next to memories without a season.
        viewer
            The person or agent that recalls: private memories of other creators are left out.
        where
            A boolean Polars expression over the columns of ``lab.memories``.
        at
            The time of the recall. Default: now.
        pack
            A pack to use instead of the active one, or a policy that replaces that of its slot.
            Such a recall is never logged.
        params
            Other values for parameters of the pack's policies in this recall: ``{"near": 0.5}``, or
            ``{"eligible:near": 0.5}`` for one slot.
        log
            Whether to log the slate and count accesses. Without a log there is no exploration.
        explore
            Whether the recall may also show exploration items of the active pack. Default: no,
            unless ``lab.policies.explore(True)`` decided so. ``hits.probes`` lists them.
            ``"within"`` shows them in place of the last results, so that there are at most ``limit``.
        again
            Whether to show memories that the viewer has received before in this session. None: as
            the pack's setting ``recall-again`` says. ``hits.repeated`` lists what was left out.

        Returns
        -------
        Hits
            The results in the order in which they are shown.

        Raises
        ------
        InputError
            If an argument is invalid, or if ``explore`` is True with ``pack`` or ``log=False``.
        UnknownName
            If a parameter of ``params`` or a word of a filter does not exist.

        Notes
        -----
        With ``explore=True``, an exploration item (``hit.probe``) is drawn at the pack's
        ``probe-rate`` from the ranks just below the results. It is added to the ``limit`` results
        at a random rank below the first, so that ``limit=10`` shows ten or eleven. Its logged
        probability lets ``memlab.evaluate`` estimate other policies. While packs are challenged,
        every logged recall shows items of challengers instead (``lab.challenge``).

        Recalls of agents (``lab.agents``), contexts, servers, adapters and simulated runs explore as
        the pack declares.

        Aggregates in ``where`` range over all memories that ``viewer`` sees. Memories that are left
        out count in no statistic of the recall.

        A recall with ``params`` is logged under the hash that the pack has with these values. A lab
        has no record of merges: name a merged branch as well, ``branch=["main", "feature"]``.

        Examples
        --------
        >>> import memlab
        >>> import polars as pl
        >>> lab = memlab.open()
        >>> _ = lab.remember("Releases need a tag", tags=["ci"])
        >>> _ = lab.remember("The release party is on Friday")
        >>> hits = lab.recall("release", where=pl.col("tags").list.contains("ci"))
        >>> [hit.text for hit in hits]
        ['Releases need a tag']
        """
        words = {
            "branch": branch,
            "scope": scope,
            "visibility": visibility,
            "status": status,
            "season": season,
        }
        filters = Filters.of(**words, viewer=viewer, where=where)
        if explore and (pack is not None or not log):
            raise InputError(
                "explore=True needs a logged recall, because evidence that is not logged is lost. "
                "Leave out pack= and log=False."
            )
        return self._questions.ask(
            query,
            limit=limit,
            project=project,
            session=session,
            filters=filters,
            at=at,
            pack=None if pack is None else as_pack(pack, lambda: self.policies.pack),
            params=params,
            log=log,
            explore=explore,
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
        again: bool = False,
        log: bool = True,
        tokens: Callable[[str], float] | None = None,
    ) -> Context:
        """Build a prompt context for ``task`` within a token budget.

        The context has the memories that every prompt gets, and memories that match a trigger, a
        file or an entity of the task. The best results of a recall fill the rest of the budget. The
        pack's policy ``inject`` selects them. A session receives no memory twice. The context is
        logged as a recall is.

        Parameters
        ----------
        task
            The task or message that the agent works on.
        budget
            The maximum length in tokens.
        session
            The session of the agent. Memories that it has received are left out.
        project
            Only memories of this project or no project.
        files
            Paths of the files that the agent works on. One path may be a text.
        viewer
            The person or agent who receives the context.
        at
            The time of the request. Default: now.
        again
            Whether to include memories that the session has received. An agent needs them after its
            window was compacted.
        log
            Whether to log the context and count accesses.
        tokens
            A function that counts the tokens of a text, such as ``lambda text: len(tokenizer.encode(text))``. Default:
            four bytes are a token, as also in a replay of the log.

        Returns
        -------
        Context
            The text, also as Markdown and as messages, and the selected memories.

        Raises
        ------
        InputError
            If ``tokens`` raises, takes more than 10 seconds in all, or returns no number from 0.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("Refresh tokens expire after 30 days", project="api")
        >>> context = lab.context("fix the token refresh", project="api", files=["src/auth.py"])
        >>> "30 days" in context.text
        True
        """
        return self._component("contexts").make(
            task,
            budget=budget,
            session=session,
            project=project,
            files=files,
            viewer=viewer,
            at=at,
            again=again,
            log=log,
            tokens=tokens,
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
    def feedback(
        self,
        hit: pl.DataFrame | list[MemoryLike] | Iterable[Mapping[str, Any]],
        outcome: str | None = None,
        *,
        rating: int | None = None,
        reward: float | None = None,
        agent: str | None = None,
        source: str = "user",
        at: When | None = None,
        decision: int | None = None,
    ) -> tuple[Feedback, ...]: ...
    @checked
    def feedback(
        self,
        hit: MemoryLike
        | pl.DataFrame
        | Annotated[Any, Taken("a list of memories", _check_memories)]
        | Iterable[Mapping[Any, Any]],
        outcome: str | None = None,
        *,
        rating: Annotated[int, Within(1, 4)] | None = None,
        reward: float | None = None,
        agent: str | None = None,
        source: str = "user",
        at: When | None = None,
        decision: Annotated[int, Within(1, 1 << 62)] | None = None,
    ) -> Feedback | tuple[Feedback, ...]:
        """Record feedback on one or several retrieved memories.

        The active pack's policy ``reinforce`` decides how an outcome changes the memory. Memories
        that succeeded in the same recall get edges to one another, or stronger ones, by the setting
        ``edge-gain``.

        Parameters
        ----------
        hit
            A hit, a memory or its id; or several judgements as dicts or a frame. Dicts and columns
            have ``memory`` (in a frame of hits, ``memory_id``) and any of the other arguments; null
            means not given. Errors name the row. With other arguments, a list or frame of memories
            is judged alike.
        outcome
            "success" or "fail".
        rating
            How easily the memory was recalled: 1 again, 2 hard, 3 good, 4 easy. Without an outcome,
            1 means "fail" and the others "success".
        reward
            A finite number, for outcomes that are a matter of degree.
        agent
            The agent that used the memory. Its outcome also counts for the agent's trust
            (``lab.agents.relationships``).
        source
            The person or program that gives the feedback.
        at
            The time of the feedback. Default: now.
        decision
            The logged recall that showed the memory (``hits.decision``). Default: the recall of the
            hit, or the last logged recall that showed the memory.

        Returns
        -------
        Feedback or tuple of Feedback
            The logged judgements. ``notice`` proposes an earlier policy, once, if the active policy
            earns less than that one did.

        Raises
        ------
        InputError
            If there is neither an outcome, a rating nor a reward. Of several judgements, none is
            logged then.
        UnknownName
            If the recall did not show the memory.

        Notes
        -----
        ``memlab.evaluate`` reads only the feedback that belongs to a logged recall.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("Deploys go out on Tuesdays")
        >>> hits = lab.recall("when do deploys go out?")
        >>> lab.feedback(hits[0], "success").outcome
        'success'
        >>> len(lab.feedback([{"memory": hits[0], "outcome": "fail"}, {"memory": 1, "reward": 0}]))
        2
        """
        if isinstance(hit, pl.DataFrame | list):
            alike: dict[str, Any] = {"outcome": outcome, "rating": rating, "reward": reward}
            alike |= {"agent": agent, "at": at, "decision": decision}
            alike["source"] = None if source == "user" else source
            alike = {name: value for name, value in alike.items() if value is not None}
            rows: Any = hit
            if alike:
                rows = [{"memory": memory, **alike} for memory in _list_unjudged(hit)]
            return self._with_notice(self._judgements.feedback_many(rows))
        assert isinstance(hit, Memory | Hit | int)
        now = self._core.instant(at)
        judgement = check_judgement(hit, outcome, rating, reward, agent, source, now, decision)
        return self._with_notice((self._judgements.feedback(judgement),))[0]

    def _with_notice(self, logged: tuple[Feedback, ...]) -> tuple[Feedback, ...]:
        """Add a notice to the last feedback if results under the active policy became worse."""
        notice = self._component("falls").after_feedback() if logged else None
        return logged if notice is None else (*logged[:-1], replace(logged[-1], notice=notice))

    # -- correcting -------------------------------------------------------------------------------------------

    @overload
    def edit(self, memory: MemoryLike, *, text: str | None = None, **fields: Any) -> Edited: ...
    @overload
    def edit(self, memory: pl.DataFrame) -> Edits: ...
    @checked
    def edit(
        self, memory: MemoryLike | pl.DataFrame, *, text: str | None = None, **fields: Any
    ) -> Edited | Edits:
        """Correct a memory, or store changed values from a frame.

        Most fields are changed in place. Another ``text``, ``speaker``, ``session``, ``project`` or
        ``ref`` makes a new memory, which has the other fields of the old one and supersedes it.

        Parameters
        ----------
        memory
            A memory, a hit or an id; or a frame with the column ``id``. The values of a frame that
            differ from the lab's are written together, or not at all: changes in place as one
            event. Rows and columns that are missing or equal change nothing.
        text
            The corrected text. Secrets in it are redacted.
        **fields
            Fields of ``memlab.FIELDS``, checked as by ``remember``; None removes a value.

        Returns
        -------
        Edited or Edits
            The corrected memory; for a frame, the memories that changed. ``rebuilt``, ``dropped``
            and ``notes`` say which derived values changed.

        Raises
        ------
        InputError
            If the text is empty or a value invalid, if the memory is deleted, purged or of another
            lab, or if a superseded memory gets another text.
        PrivacyError
            If a field holds a secret.

        Notes
        -----
        The new memory is "user-corrected" from a "user-edit" unless ``provenance`` and ``source``
        are given. It keeps the status of a fact, "staged" or "confirmed". Its ``access``,
        ``success`` and ``fail`` begin at 0; an edit in place keeps them.

        If the memory was edited meanwhile, here or in another process, its replacement is edited:
        the last edit counts, and all versions are stored. An edit that changes nothing writes
        nothing.

        A correction also reaches derived values: summary, fact, inferred tags, edges of linking,
        steps, triggers, extracted facts and observations, and summaries of consolidation. Values
        that can be derived again are rebuilt; all others are dropped. The old text stays in the
        history (``lab.at``) and in rows with the status "superseded".

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> memory = lab.remember("Deploys go out on Tuesdays")
        >>> lab.edit(memory, text="Deploys go out on Wednesdays")
        <Memory 2, fact, active: 'Deploys go out on Wednesdays'>
        >>> lab[1].status
        'superseded'
        """
        if isinstance(memory, pl.DataFrame):
            if text is not None or fields:
                raise InputError(
                    "A frame of edits takes no text= or fields as arguments: write them in columns."
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
        """Remove memories from every recall; ``restore`` is the inverse.

        | ``how`` | status | memories | restored by |
        |---|---|---|---|
        | ``"forget"`` | forgotten | ``memory`` | ``restore(memory)`` |
        | ``"delete"`` | deleted | ``memory``, or all of a ``project`` | the same, until purged |
        | ``"deprecate"`` | deprecated | ``memory`` that is wrong: ``reason`` | ``restore(memory)`` |
        | ``"quarantine"`` | quarantined | all of a source, session or creator | ``restore(quarantine=)`` |

        Parameters
        ----------
        memory
            One memory or several; a frame names them by ``id`` or ``memory_id``.
        how
            The way of forgetting, see the table.
        project
            With ``how="delete"``, delete all memories of this project and its map of modules.
        reason
            The reason, which is stored. For "deprecate" and "quarantine".
        **origin
            With ``how="quarantine"``: ``source``, ``session``, ``creator``, ``since``, ``dry_run``,
            ``replay`` and ``progress`` of ``lab.upkeep.review.quarantine``.

        Returns
        -------
        Corrected or Quarantined
            The memories that were reached (``ids``), and related ones to check (``review``).

        Raises
        ------
        InputError
            If an argument does not belong to ``how``, or no memory is given.

        Notes
        -----
        A memory that was edited is forgotten together with every later version of it. A newer fact
        that ended a memory is not a version of it and stays.

        Deleted memories can be purged after the active pack's ``grace-days``:
        ``purge(overdue=True)`` removes them, and nothing is purged automatically.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The office is in Oslo", "The user prefers tabs"])
        >>> lab.forget(1, how="deprecate", reason="the office has moved").ids
        (1,)
        >>> lab[1].status
        'deprecated'
        """
        # Each way of forgetting takes other arguments; wrong ones are refused before anything is
        # written.
        if how != "deprecate" and how != "quarantine" and reason:
            raise InputError(
                f'forget(how="{how}") takes no reason=: use how="deprecate", which stores it.'
            )
        if how != "delete" and project is not None:
            raise InputError(
                f'forget(how="{how}") takes no project=: use how="delete", which takes it.'
            )
        if how == "quarantine":
            if memory is not None:
                raise InputError(
                    'how="quarantine" selects by source=, session= or creator=, and no memories can be passed.'
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
        """Restore forgotten, deleted, expired, deprecated or quarantined memories.

        Parameters
        ----------
        memory
            One memory or several. A memory that was forgotten together with its corrections comes
            back with them.
        project
            Restore all deleted memories of this project.
        quarantine
            The result of ``forget(how="quarantine")``, or the number of its event.

        Returns
        -------
        Corrected
            The memories that were brought back.

        Raises
        ------
        InputError
            If a memory is purged, or superseded by an active one; if there is no such quarantine;
            or if more than one argument is given.

        Notes
        -----
        Each memory gets its previous status. Values that changed since stay as they are, and so
        does ``access``. A superseded memory can be restored once its replacement is out of use.

        A restored memory counts as used: the pack's ``reinforce`` is applied as after a recall, and
        decay starts from now. A strength of 0 becomes what a recall adds to 0 (5 under
        ``companion``).

        Restoring an active summary of ``lab.upkeep.consolidation.run`` undoes it: its members get
        their previous status, and the summary is forgotten.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> memory = lab.remember("The office is in Oslo")
        >>> _ = lab.forget(memory)
        >>> lab.restore(memory).ids
        (1,)
        """
        if quarantine is None:
            return self._corrections.restore(memory, project=project)
        if memory is not None or project is not None:
            raise InputError("restore needs exactly one of: memories, project=, quarantine=.")
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
        """Delete memories permanently, and return a receipt.

        Several names select the memories that match all of them: ``project="web",
        session="monday"``.

        Parameters
        ----------
        memory
            One memory or several. Their other versions are separate memories: ``review`` of the
            result lists them.
        project
            Purge the memories of this project.
        session
            Purge the memories of this session.
        subject
            Purge what is known of this entity under all its names: facts, names and queries that
            name it. The receipt lists memories that only mention it; they stay.
        creator
            Purge the memories of this creator.
        overdue
            Purge memories that were deleted more than ``grace-days`` ago.
        remove_exports
            Whether to delete known files of ``export`` as well.
        reason
            The reason, which is stored: do not repeat the purged content.

        Returns
        -------
        Purged
            The receipt: what was purged, what was searched, and what was found.

        Raises
        ------
        InputError
            If no argument says what to purge.
        LabBusy
            If another process blocks the purge for a minute.

        Notes
        -----
        Texts, names, lists, notes and vectors are removed from the journal, logged recalls,
        snapshots, indexes, backups and mirrors, together with queries that quote or name them. Then
        every file of the lab, its backups, mirrors and known exports is searched. The row stays
        with the status "purged", its numbers, times and kind. A keyed hash of the text lets imports
        recognize it. docs/your-data.md has the details.

        An interrupted purge is completed when the lab is opened next. Purging a thousand of 100,000
        memories took 14 seconds of processor time.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["Ada lives in Oslo", "The user prefers tabs"])
        >>> lab.purge(1, reason="on request").ids
        (1,)
        >>> lab[1].status
        'purged'
        """
        return self._component("purge")(
            memory,
            project=project,
            session=session,
            subject=subject,
            creator=creator,
            overdue=overdue,
            remove_exports=remove_exports,
            reason=reason,
        )

    # -- reading ----------------------------------------------------------------------------------------------

    @property
    @checked
    def memories(self) -> pl.DataFrame:
        """Every memory as a row, whatever its status, ordered by id.

        The frame is a copy. Columns: docs/reference/memories.md#columns-of-labmemories.
        """
        return self._core.memories()

    @property
    @checked
    def edges(self) -> pl.DataFrame:
        """Every edge as a row, in the order of creation.

        The frame is a copy. Columns: docs/reference/memories.md#columns-of-labedges.
        """
        with self._core.reading() as state:
            return state.edge_frame()

    @property
    @checked
    def log(self) -> pl.DataFrame:
        """Every event as a row: event, at, kind, memories, edges, what.

        ``memories`` are the ids of the memories concerned, ``what`` is a description in words.
        ``lab.log.filter(pl.col("memories").list.contains(7))`` is the history of memory 7.
        """
        with self._core.reading() as state:
            hidden = state.hidden if isinstance(state, ViewerState) else None
            return self._component("log")(self._core.store.journal.events(), hidden=hidden)

    @checked
    def slates(self) -> Slates:
        """Return every logged recall and its feedback as four lazy frames.

        Returns
        -------
        Slates
            The log that ``memlab.evaluate`` reads.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The user prefers tabs")
        >>> _ = lab.recall("tabs or spaces?")
        >>> lab.slates().decisions.collect().height
        1
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
        """Return the lab as of a past time or event, as a viewer sees it, or both.

        The result can be read and queried, but not written. Nothing is logged in it, and it is
        closed together with this lab.

        Parameters
        ----------
        when
            A time: the lab is as it was after the last event up to then.
        event
            The number of an event (``lab.log``): the lab is as it was after this event.
        viewer
            A person or agent. Private memories of other creators are in no frame, text, count,
            score, cluster or export.
        progress
            Whether to show a progress bar for work of more than a second.

        Returns
        -------
        Lab
            A lab without writes. In the past, the pack that was active then decides and the clock
            stands still. With ``viewer`` alone, the lab shows every later change of this one: its
            memories, pack and clock.

        Raises
        ------
        InputError
            If none of ``when``, ``event`` and ``viewer`` is given, if the lab had no pack then, if
            the event does not exist, or if the viewer is invalid.

        Notes
        -----
        The past is folded from the first event: about a second for 20,000 events or 100,000
        memories. A viewer's lab folds the journal at the first query, about 0.3 s for 100,000
        memories. To log the recalls of a viewer, use ``recall(viewer=...)``. Purged content is not
        in the past either.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("Ada lives in Oslo")
        >>> before = lab.log["event"].max()
        >>> _ = lab.edit(1, text="Ada lives in Bergen")
        >>> lab.at(event=before).recall("where does Ada live?")[0].text
        'Ada lives in Oslo'
        """
        store = self._core.store
        if viewer is None or when is not None or event is not None:
            store = self._component("at")(when, event=event, progress=progress)
        if viewer is not None:
            store = self._component("viewed_by")(store, viewer)
        return self if store is self._core.store else self._open_on(store)

    def _open_on(self, store: Store) -> Self:
        """Return a lab on another store, such as a view of the past."""
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
            return render_overview(repr(self), self.memories)

    # -- the pack, opening and closing ------------------------------------------------------------------------

    @checked
    def on(self, verb: str, f: Annotated[Any, AsGiven]) -> Listener:
        """Call a function after each call of a verb in this process.

        Parameters
        ----------
        verb
            "recall", "remember", "feedback", "edit", "forget", "restore" or "purge". Of agents:
            "credit", "verify", "learn" (the end of a session). Of policies: "use", "install",
            "rollback", "pin", "unpin", "challenge", "end_challenge", "verdict". Also "close", and "*"
            for all.
        f
            A function of one argument, a ``VerbCall`` with the arguments, the result or error, and
            the seconds. It is called in the thread of the verb, before the verb returns.

        Returns
        -------
        Listener
            The listener; ``remove`` it, or use it in a ``with`` block.

        Raises
        ------
        UnknownName
            If there is no such verb.
        InputError
            If ``f`` is not callable, or is a coroutine function.

        Notes
        -----
        A verb is reported however it was called: by the lab, an agent, a context, turns in the
        background, a server or an adapter. Its own calls inside ``f`` are not. An error in ``f`` never
        reaches the caller of the verb: it is logged, and the first one is a warning. Without listeners
        the verbs cost nothing more. Writes of other processes are not reported.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The user prefers tabs")
        >>> with lab.on("recall", lambda call: print(call.arguments["query"], len(call.result))):
        ...     _ = lab.recall("tabs or spaces?")
        tabs or spaces? 1
        """
        # No reference from the listeners to the lab: the lab is released as soon as nobody uses it.
        listeners = self._listeners = self._listeners or Listeners()
        listener = listeners.add(verb, f)
        parts = {**vars(self._verbs(self._core, self._component)), **self._components, "lab": self}
        for name, part in parts.items():
            listeners.watch(name, part)
        return listener

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
        """Compare a pack with the active pack in every logged recall from now on.

        See ``lab.policies.challenge`` for the designs, and ``lab.verdict`` for the result.

        Parameters
        ----------
        pack
            The challenger: a pack in any form, or a policy that replaces that of its slot in the
            active pack.
        design
            How recalls are divided. "extra" adds items of the challenger at random ranks below the
            first. "lot" draws from the results of all packs, "draft" takes the best of both packs in
            turn, and "ab" shows the results of one pack.
        extra
            The number of added items per recall, 1 to 20, for "extra" and "draft". "auto" adds half of
            the items that only a challenger would show, at most 3 for 10 results.
        rate
            The share of recalls that take part, 0.01 to 1.
        reason
            The reason, which is stored.

        Returns
        -------
        Challenge
            The challenge, which ``lab.policies.end_challenge`` ends.

        Raises
        ------
        InputError
            If the pack is active or a challenger already, if another challenge has another design, or
            if a draft has another challenger.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.challenge("companion", reason="Are recent memories better?").name
        'companion'
        """
        return self.policies.challenge(pack, design=design, extra=extra, rate=rate, reason=reason)

    @checked
    def guard(
        self,
        pack: PolicyLike | None = None,
        *,
        share: Annotated[float, Within(0.01, 0.5)] = 0.1,
        tolerance: Annotated[float, Within(0, 1_000_000)] = 0.0,
        level: Annotated[float, Within(0.5, 0.9999)] = 0.95,
        shadow: bool = False,
        missing: Literal["censor", "zero"] = "censor",
        wait: Annotated[int, Within(0, 1000)] = 20,
        reward_range: tuple[float, float] = (0.0, 1.0),
        plan: bool = False,
        reason: str = "",
    ) -> Guard:
        """Let a pack serve a share of recalls, and roll it back if it earns less.

        A coin decides for each logged recall whose results it shows. Its probability is logged.
        After each feedback, the pack is rolled back if its loss of reward exceeds ``tolerance`` with
        confidence ``level``. The guard also ends if the active pack changes, for example to the
        guarded one, and by ``lab.policies.end_challenge``.

        Parameters
        ----------
        pack
            The guarded pack, in any form that ``lab.challenge`` takes. Default: nothing begins, and
            the state of the latest guard is returned.
        share
            The probability that a recall shows the results of the guarded pack, 0.01 to 0.5.
        tolerance
            The loss of reward per judged recall that is accepted.
        level
            The confidence of a rollback. Of packs without a loss, at most 1 - ``level`` are rolled
            back, however long they are guarded.
        shadow
            Whether to show the active pack's results in every recall, and only log those of the
            guarded pack. Nothing is rolled back then.
        missing
            How recalls without feedback count: "censor" leaves them out, "zero" gives them the
            lowest reward.
        wait
            The number of later recalls, 0 to 1000, after which the feedback of a recall is complete.
            With "censor", only later recalls with feedback count. With "zero", at least 1.
        reward_range
            The lower and upper bound of rewards. Rewards beyond them are clipped.
        plan
            Whether to return only the forecast of how many recalls a loss takes, and begin nothing.
        reason
            The reason, which is stored.

        Returns
        -------
        Guard
            The state of the guard, with the forecast.

        Raises
        ------
        InputError
            If the pack is active already, if a challenge is running, if ``lab.policies.explore``
            refused chance, or if no pack was guarded yet and ``pack`` is left out.

        Notes
        -----
        The reward of a recall is the mean over its judgements. While a guard runs, a recall ranks
        under both packs and takes about twice as long.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> guard = lab.guard("companion", share=0.1, reason="more recent memories")
        >>> lab.guard().state
        'running'
        >>> lab.policies.use("companion", compare=0).name, lab.guard().state
        ('companion', 'in use')
        """
        return self._component("guard")(
            pack,
            share=share,
            tolerance=tolerance,
            level=level,
            shadow=shadow,
            missing=missing,
            wait=wait,
            reward_range=reward_range,
            plan=plan,
            reason=reason,
        )

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
        """Return the verdict on each challenger, valid at every interim analysis.

        See ``memlab.verdict`` for the statistics.

        Parameters
        ----------
        challenger
            The name of one challenger. Default: all.
        horizon
            How long after a recall its feedback counts, for example "1d". Recalls whose horizon has
            not passed are left out.
        missing
            How missing feedback counts, as in ``memlab.evaluate``.
        cluster
            The unit of recalls that belong together: "session", "day" or a column of the decisions.
            Default: each recall alone.
        level
            The level of confidence at which all verdicts of the log hold together.
        reward_range
            The lower and upper bound of rewards.

        Returns
        -------
        Verdicts
            One verdict per challenger.

        Raises
        ------
        InputError
            If the log has no recall or no challenge.
        UnknownName
            If there is no such challenger.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["Deploys go out on Tuesdays", "The user prefers tabs"])
        >>> _ = lab.challenge("companion")
        >>> _ = lab.feedback(lab.recall("when do deploys go out?")[0], "success")
        >>> lab.verdict(missing="zero").frame["challenger"].to_list()
        ['companion']
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
    def score(
        self,
        policies: Annotated[Any, AsGiven] = (),
        questions: Annotated[Any, AsGiven] = None,
        *,
        metrics: str | Sequence[str] = ("ndcg@10", "hit@5", "recall@10", "mrr"),
        executor: Workers = None,
    ) -> Scores:
        """Score policies and the active pack on labelled questions, without logging.

        Parameters
        ----------
        policies
            One or several policies. A policy's text, Hy form or object replaces the active pack's
            policy of its slot, by default ``recall-score``. A pack is a name, a text, a path or an
            object. The name of a feature, or a Polars expression over features of the candidates and
            columns of ``lab.memories``, ranks the candidates of the active pack. A mapping gives each
            policy a name.
        questions
            The questions, in any form that ``lab.questions.add`` takes, or the questions of another
            view of the lab. Default: ``lab.questions``.
        metrics
            ``ndcg``, ``hit`` (any wanted memory is shown), ``recall``, ``mrr``, ``map`` or
            ``recall_all``, each with a number of ranks. Without a number, 10 ranks count.
        executor
            A number of processes, or an object with ``submit``, such as a
            ``dask.distributed.Client``. Each policy is a task, on a copy of the lab. Default: this
            thread.

        Returns
        -------
        Scores
            The metrics with paired intervals, and the questions gained and lost.

        Raises
        ------
        InputError
            If there is no accepted question, or a question or policy is invalid.
        UnknownName
            If there is no such pack, feature or metric.
        PolicyError
            If the text of a policy is invalid.
        WorkerLost
            If the executor does not return the result of a policy.

        Notes
        -----
        Each question is asked as a recall that is not logged, at its own time or now. Intervals are
        over projects if the questions name at least two, otherwise over questions.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
        >>> _ = lab.questions.add("when do deploys go out?", wants=2)
        >>> lab.score(["similarity"], metrics="mrr").frame["value"].to_list()
        [1.0, 1.0]
        """
        return self._component("score")(policies, questions, metrics, executor=executor)

    @checked
    def close(self) -> None:
        """Stop background workers and close the journal.

        A snapshot is written if it makes the next opening faster.

        Closing twice has no effect. ``with memlab.open(path) as lab:`` closes the lab at the end.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.close()
        """
        for worker in self._components.values():
            if hasattr(worker, "stop"):
                worker.stop()
        try:
            if self._backs_up and not self._core.store.journal.closed:
                self._component("backups")(closing=True)
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


def _list_unjudged(memories: Any) -> list[MemoryLike]:
    """Return the memories in a list or frame; raise InputError for judgements."""
    judged = {"outcome", "rating", "reward"}.intersection(getattr(memories, "columns", ()))
    listed = listed_memories(memories)
    if judged or any(isinstance(memory, Mapping) for memory in listed):
        raise InputError(
            "With several judgements, other arguments are not allowed. Write their values in the dicts or columns."
        )
    return listed


def _wake_linker(lab: weakref.ref[Lab]) -> None:
    """Start the worker that links memories, if the lab still exists."""
    target = lab()
    if target is not None:
        target._component("linker").wake()


def _refuse_component(name: str) -> Any:
    """Raise LookupError, because a long-lived component may not refer to the lab."""
    raise LookupError(
        f"A long-lived component of a lab cannot use {name}: the reference would keep the lab in memory. "
        "Pass the needed data as arguments."
    )


RENAMED: dict[str, str | tuple[str, Callable[[Lab], Any]]] = {
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
"""Attributes of earlier versions, and the replacement of each."""


def _find_refusal(accessor: Accessor) -> str | None:
    """Return the reason to refuse an extension's accessor, or None for a valid accessor."""
    if not accessor.name.isidentifier() or accessor.name.startswith("_"):
        return f"The accessor {accessor.name!r} is not a valid attribute name."
    return (
        f"Lab has an attribute {accessor.name} already: choose another name."
        if accessor.name in RENAMED or hasattr(Lab, accessor.name)
        else None
    )


ACCESSORS: Registry[Accessor] = Registry(
    "accessor", kind="accessors", about="doc", check=_find_refusal
)
"""The accessors that extensions declare."""
