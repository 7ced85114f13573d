"""``lab.agents``: verbs for agents: identity, sessions, turns, extraction, consent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, overload

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import AsGiven, Count, Seconds, Within, checked, renamed
from memlab.kernel.base.clock import When, from_micros, to_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.privacy import refuse
from memlab.kernel.recall import Filters, Hits, WordOrWords
from memlab.kernel.state import State, rows_to_columns, validate_text
from memlab.kernel.verbs.core import Memories, MemoryLike
from memlab.kernel.verbs.corrections.corrections import Corrected
from memlab.kernel.verbs.feedback import check_judgement
from memlab.kernel.verbs.gate import (
    Consents,
    Switches,
    check_agent,
    consent_fields,
    format_agent,
    is_agent,
    lacks_consent,
)
from memlab.kernel.verbs.linking import links_all
from memlab.kernel.verbs.results import Edited, Feedback, Memory, Remembered
from memlab.kernel.verbs.verbs import Verbs
from memlab.subjects.agent_verbs.recalls import read_recalls
from memlab.subjects.agent_verbs.session import Session, SessionName
from memlab.subjects.agents.relationships import (
    Relationship,
    Relationships,
    count_conversation,
    get_relationship,
    make_event_fields,
)
from memlab.subjects.agents.turns import PATIENCE, OpenTurns, Turns
from memlab.subjects.agents.verifying import Verified, Verifying
from memlab.subjects.context.context import Context, Contexts, Metrics, compute_metrics
from memlab.subjects.extraction.extraction import Extraction, Learned, make_scope
from memlab.subjects.extraction.staged import Extracted
from memlab.subjects.identity import Identity, is_fact
from memlab.subjects.models import LanguageModel, Otherwise
from memlab.subjects.modules.module_map import ModuleMap
from memlab.subjects.modules.modules import LabModules
from memlab.subjects.observing.observing import Admission, Observation, Observing
from memlab.subjects.retention.upkeep import maintain_after_session
from memlab.subjects.verifiers import Verifier, local

if TYPE_CHECKING:
    from memlab.subjects.attribution.attribution import LabCredits

# Verbs of earlier versions, and the replacement of each.
_RENAMED = {
    "remember_many": (
        "remember(rows)",
        lambda agent: lambda rows, **how: agent.remember(rows, **how),
    )
}


def make_identity(
    name: str, *, project: str | None, session: str | None, role: str, now: int
) -> Identity:
    """Return the identity of the agent "tutor" or "agent:tutor".

    Without ``session``, the agent gets a session of its own, named after it and the time.
    """
    short = name.removeprefix("agent:")
    own = f"{short} {from_micros(now).isoformat()}"
    return Identity(
        format_agent(name) if short else "",
        project,
        own if session is None else session,
        role,
        keeps=True,
    )


class Agent(Displayed):
    """One agent on a lab, from ``lab.agents(name)``, with the verbs of daily use.

    The agent is the creator of its memories and the viewer of its recalls. Its memories are private
    to it unless the pack or the argument ``visibility`` says otherwise. Facts are visible to all
    agents: memories of the kinds personal, preference, goal, trait and fact, and memories with
    subject and predicate. A fact that several agents assert is stored once, with all of them in
    ``agents``.

    Recalls show no private memory of others. With a ``project``, the agent reads and writes that
    project alone; it also reads memories without a project. The pack's settings ``session-writes``
    and ``write-bytes`` limit its ``session``.

    A "reader" recalls. A "member" also writes, and changes memories that it created and nobody else
    contributed to. An "owner" changes every memory it sees.

    Parameters
    ----------
    identity
        The name, project, session and role of the agent.
    verbs
        The verbs of the lab.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> tutor = lab.agents("tutor", project="algebra")
    >>> _ = tutor.remember("Fractions went badly; begin with pictures", kind="learning")
    >>> tutor.recall("fractions")[0].text
    'Fractions went badly; begin with pictures'
    >>> len(lab.agents("coach", project="algebra").recall("fractions"))
    0
    """

    def __init__(self, identity: Identity, verbs: Verbs) -> None:
        self._identity, self._verbs, self._core = identity, verbs, verbs.core

    @property
    def name(self) -> str:
        """The ``creator`` and ``viewer`` value of this agent, such as "agent:tutor"."""
        return self._identity.name or ""

    @property
    def project(self) -> str | None:
        """The project of this agent, or None if each call may name a project."""
        return self._identity.project

    @property
    def session(self) -> SessionName:
        """The name of this agent's session; ``agent.session("s1")`` opens a chat session."""
        return SessionName.of(self._identity.session or "", self._converse)

    def _converse(self, name: str | None, **options: Any) -> Session:
        """Open a chat of this agent in the session `name`, or for None in its own session; `options` go to ``Session``."""
        identity = self._identity if name is None else replace(self._identity, session=name)
        agent = Agent(identity, self._verbs)
        return Session(agent, self._verbs, identity.session or "", **options)

    @property
    def role(self) -> str:
        """The role of this agent: "reader", "member" or "owner"."""
        return self._identity.role

    def __repr__(self) -> str:
        where = "" if self.project is None else f", project {self.project}"
        return printable(f"<Agent {self.name}: {self.role}{where}, session {self.session}>")

    @property
    def memories(self) -> pl.DataFrame:
        """The rows of ``lab.memories`` that this agent created or contributed to."""
        mine = (pl.col("creator") == self.name) | pl.col("agents").list.contains(self.name)
        if self.project is not None:
            mine &= pl.col("project").is_null() | (pl.col("project") == self.project)
        return self._core.memories().filter(mine.fill_null(False))

    @overload
    def remember(  # type: ignore[overload-overlap]  # a text is an iterable of texts
        self, text: str, *, at: When | None = None, linking: str | None = None, **fields: Any
    ) -> Memory: ...
    @overload
    def remember(
        self, text: pl.DataFrame | Iterable[Mapping[str, Any] | str], *, linking: str | None = None
    ) -> Remembered: ...
    @checked
    def remember(
        self,
        text: str | pl.DataFrame | Iterable[Mapping[Any, Any] | str],
        *,
        at: When | None = None,
        linking: str | None = None,
        **fields: Any,
    ) -> Memory | Remembered:
        """Remember one or several texts in one transaction, as this agent.

        Facts are always compared with stored ones, so that a repeated fact is stored once.

        Parameters
        ----------
        text
            A text, or several, as for ``lab.remember``.
        at
            The time of the memory. Default: now.
        linking
            When the memories are compared, as for ``lab.remember``.
        **fields
            Fields of ``memlab.FIELDS``.

        Returns
        -------
        Memory or Remembered
            The memory that represents the text; for several texts, their outcomes.

        Raises
        ------
        NotPermitted
            If the agent is a reader, or the project, creator or source is not its own.
        InputError
            If a field is invalid, or a limit of the session is exceeded.
        MemoryOff
            If memory is switched off.

        Examples
        --------
        >>> import memlab
        >>> tutor = memlab.open().agents("tutor")
        >>> tutor.remember("The user prefers examples", kind="preference").text
        'The user prefers examples'
        """
        if isinstance(text, str):
            row = {"text": text, **fields} | ({} if at is None else {"at": at})
            return self._verbs.remembering.get_single(self._store([row], linking))
        if at is not None or fields:
            raise InputError(
                "With several texts, fields and at= are not allowed as arguments. Write them in dicts or columns."
            )
        columns = rows_to_columns(text)
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return self._store(rows, linking)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return the attribute that has replaced a former attribute of this name."""
            if name not in _RENAMED:
                raise AttributeError(f"Agent has no attribute {name!r}.", name=name, obj=self)
            return renamed(self, "agent", name, _RENAMED)

    def _store(self, rows: Sequence[Mapping[str, Any]], linking: str | None) -> Remembered:
        """Store rows as memories of this agent. If `linking` is None, compare stated facts with stored facts at once."""
        self._identity.check_writes()
        with self._core.reading():
            pack = self._core.pack
            written = [self._identity.row(pack, row) for row in rows]
            unites = linking is None and not links_all(pack) and any(map(is_fact, rows))
        return self._verbs.remembering.remember_many(
            written, chain=False, linking="now" if unites else linking
        )

    @checked
    def recall(
        self,
        query: str,
        *,
        limit: Count | None = None,
        project: str | None = None,
        branch: WordOrWords = None,
        season: WordOrWords = None,
        where: pl.Expr | None = None,
        at: When | None = None,
        log: bool = True,
        again: bool | None = None,
    ) -> Hits:
        """Retrieve the highest-ranked memories that this agent may see.

        Parameters
        ----------
        query
            The text to search for.
        limit
            The maximum number of results, as for ``lab.recall``.
        project
            A project, if the agent has none of its own.
        branch
            Admit memories of this branch, or of several.
        season
            Admit the memories of this season, or of several.
        where
            A boolean Polars expression over the columns of ``lab.memories``.
        at
            The time of the recall. Default: now.
        log
            Whether to log the slate and count accesses.
        again
            Whether to show memories that the session has received before. Default: as the pack's
            setting ``recall-again`` says (off in ``workbench``).

        Returns
        -------
        Hits
            The results; empty while memory is off, with the reason in ``hits.off``.

        Raises
        ------
        NotPermitted
            If the project is not the agent's own.

        Examples
        --------
        >>> import memlab
        >>> tutor = memlab.open().agents("tutor")
        >>> _ = tutor.remember("Begin with pictures", kind="learning")
        >>> [hit.text for hit in tutor.recall("how to begin?")]
        ['Begin with pictures']
        """
        filters = Filters.of(branch=branch, season=season, viewer=self.name, where=where)
        return self._verbs.questions.ask(
            query,
            limit=limit,
            project=self._identity.check_project(project),
            session=self._identity.session,
            filters=filters,
            at=at,
            log=log,
            again=again,
        )

    @checked
    def context(
        self,
        task: str,
        *,
        budget: Count = 1800,
        project: str | None = None,
        files: str | Sequence[str] = (),
        at: When | None = None,
        again: bool = False,
        log: bool = True,
        tokens: Callable[[str], float] | None = None,
    ) -> Context:
        """Build a prompt context for a task, as this agent; see ``lab.context``.

        The session receives no memory twice.

        Parameters
        ----------
        task
            The task or message that the agent works on.
        budget
            The maximum length in tokens.
        project
            A project, if the agent has none of its own.
        files
            Paths of the files that the agent works on, one or several.
        at
            The time of the request. Default: now.
        again
            Whether to include memories that the session has received.
        log
            Whether to log the context and count accesses.
        tokens
            A function that counts the tokens of a text. Default: four bytes are a token.

        Returns
        -------
        Context
            The text, also as Markdown and as messages, and the selected memories.

        Raises
        ------
        NotPermitted
            If the project is not the agent's own.

        Examples
        --------
        >>> import memlab
        >>> tutor = memlab.open().agents("tutor")
        >>> _ = tutor.remember("Begin with pictures", kind="learning")
        >>> "pictures" in tutor.context("plan the next lesson").text
        True
        """
        where = self._identity.check_project(project)
        contexts: Contexts = self._verbs.component("contexts")
        return contexts.make(
            task,
            budget=budget,
            session=self._identity.session,
            project=where,
            files=files,
            viewer=self.name,
            at=at,
            again=again,
            log=log,
            tokens=tokens,
        )

    @checked
    def feedback(
        self,
        hit: MemoryLike,
        outcome: str | None = None,
        *,
        rating: Annotated[int, Within(1, 4)] | None = None,
        reward: float | None = None,
        source: str = "agent",
        at: When | None = None,
        decision: Annotated[int, Within(1, 1 << 62)] | None = None,
    ) -> Feedback:
        """Record feedback on a memory that this agent retrieved.

        The feedback also counts for the agent's trust (``lab.agents.relationships``).

        Parameters
        ----------
        hit
            A hit, a memory or its id.
        outcome
            "success" or "fail".
        rating
            How easily the memory was recalled, 1 (again) to 4 (easy).
        reward
            A finite number, for outcomes that are a matter of degree.
        source
            The person or program that gives the feedback.
        at
            The time of the feedback. Default: now.
        decision
            The logged recall that showed the memory. Default: the recall of the hit.

        Returns
        -------
        Feedback
            The logged judgement.

        Raises
        ------
        NotPermitted
            If the agent is a reader.
        UnknownName
            If the agent does not see the memory.

        Examples
        --------
        >>> import memlab
        >>> tutor = memlab.open().agents("tutor")
        >>> _ = tutor.remember("Begin with pictures", kind="learning")
        >>> tutor.feedback(tutor.recall("how to begin?")[0], "success").agent
        'tutor'
        """
        self._identity.check_writes()
        with self._core.reading() as state:
            self._identity.check_sees(state, [self._core.row(hit)])
        now = self._core.instant(at)
        judgement = check_judgement(
            hit, outcome, rating, reward, self._short, source, now, decision
        )
        return self._verbs.judgements.feedback(judgement)

    @checked
    def edit(self, memory: MemoryLike, *, text: str | None = None, **fields: Any) -> Edited:
        """Correct a memory of this agent; see ``lab.edit``.

        Parameters
        ----------
        memory
            A memory, a hit or an id.
        text
            The corrected text.
        **fields
            Fields of ``memlab.FIELDS``; None removes a value.

        Returns
        -------
        Edited
            The corrected memory.

        Raises
        ------
        NotPermitted
            If another agent created or contributed to the memory and this agent is no owner, or if a
            field names another project or creator.

        Examples
        --------
        >>> import memlab
        >>> tutor = memlab.open().agents("tutor")
        >>> memory = tutor.remember("Begin with pictures", kind="learning")
        >>> tutor.edit(memory, text="Begin with drawings").text
        'Begin with drawings'
        """
        self._check_changes(memory)
        self._identity.check_fields(fields)

        return self._verbs.corrections.edit(memory, text=text, fields=fields, permit=self._permit)

    @checked
    def forget(self, memory: Memories) -> Corrected:
        """Remove memories of this agent, with their corrections, from every recall.

        Parameters
        ----------
        memory
            One memory or several.

        Returns
        -------
        Corrected
            The memories that were forgotten; ``restore`` brings them back.

        Raises
        ------
        NotPermitted
            If another agent created a memory, or a correction of it, and this agent is no owner.

        Examples
        --------
        >>> import memlab
        >>> tutor = memlab.open().agents("tutor")
        >>> memory = tutor.remember("Begin with pictures", kind="learning")
        >>> tutor.forget(memory).ids
        (1,)
        """
        chosen = self._check_changes(memory)
        return self._verbs.corrections.forget(chosen, permit=self._permit)

    @checked
    def restore(self, memory: Memories) -> Corrected:
        """Restore memories of this agent that are out of use; see ``lab.restore``.

        Parameters
        ----------
        memory
            One memory or several.

        Returns
        -------
        Corrected
            The memories that were brought back.

        Raises
        ------
        NotPermitted
            If another agent created a memory and this agent is no owner.

        Examples
        --------
        >>> import memlab
        >>> tutor = memlab.open().agents("tutor")
        >>> memory = tutor.remember("Begin with pictures", kind="learning")
        >>> _ = tutor.forget(memory)
        >>> tutor.restore(memory).ids
        (1,)
        """
        chosen = self._check_changes(memory)
        return self._verbs.corrections.restore(
            chosen, project=None, permit=self._permit, summaries=False
        )

    def _permit(self, state: State, row: int) -> None:
        """Raise NotPermitted if this agent may not change the memory in ``row``."""
        self._identity.check_changes(state, [row])

    def _check_changes(self, memories: Memories) -> list[int]:
        """Return the memories' ids, or raise NotPermitted if this agent may not change them."""
        with self._core.reading() as state:
            rows = self._core.rows(memories)
            self._identity.check_changes(state, rows)
        return [row + 1 for row in rows]

    @checked
    def turns(
        self,
        *,
        verifier: Verifier | None = local,
        patience: Seconds = PATIENCE,
        limit: Count | None = None,
        project: str | None = None,
        branch: WordOrWords = None,
        season: WordOrWords = None,
        where: pl.Expr | None = None,
    ) -> Turns:
        """Start background recall for the turns of a conversation, as this agent.

        See ``lab.agents.turns``.

        Parameters
        ----------
        verifier
            The verifier of each recall. Default: rules; None accepts all hits.
        patience
            The seconds that the verifier has for one recall.
        limit
            The maximum number of results of each recall.
        project
            A project, if the agent has none of its own.
        branch
            Admit memories of this branch, or of several.
        season
            Admit the memories of this season, or of several.
        where
            A boolean Polars expression over the columns of ``lab.memories``.

        Returns
        -------
        Turns
            The turns; close them at the end.

        Raises
        ------
        NotPermitted
            If the project is not the agent's own.

        Examples
        --------
        >>> import memlab
        >>> tutor = memlab.open().agents("tutor")
        >>> with tutor.turns() as turns:
        ...     surfaced = turns.offer("the lesson on fractions begins")
        >>> len(surfaced)
        0
        """
        turns: Turns = self._verbs.component("agents").turns(
            verifier=verifier,
            patience=patience,
            limit=limit,
            project=self._identity.check_project(project),
            session=self._identity.session,
            branch=branch,
            season=season,
            viewer=self.name,
            where=where,
        )
        return turns

    @checked
    def end_session(
        self,
        messages: Annotated[Any, AsGiven] = None,
        *,
        model: LanguageModel | None = None,
        otherwise: Otherwise = "raise",
        store: bool = True,
    ) -> Learned:
        """Extract memories from this agent's session, and store them.

        See ``lab.agents.end_session``. Private memories of others are neither used nor reported.

        Parameters
        ----------
        messages
            The messages of the session. Default: its turns in the lab.
        model
            A language model that extracts facts and lessons. Default: rules.
        otherwise
            Handling of messages that the model fails to read: "raise", "rules" or "skip".
        store
            Whether to store the result.

        Returns
        -------
        Learned
            Lessons, facts and notices; print it for a report.

        Raises
        ------
        NotPermitted
            If the agent is a reader and ``store`` is True.
        InputError
            If there are no messages.

        Examples
        --------
        >>> import memlab
        >>> tutor = memlab.open().agents("tutor")
        >>> learned = tutor.end_session([{"role": "user", "content": "I live in Rome."}])
        >>> type(learned).__name__
        'Learned'
        """
        if store:
            self._identity.check_writes()
        with self._core.reading():
            pack = self._core.pack
        extraction: Extraction = self._verbs.component("extraction")
        learned = extraction.end(
            self._identity.session or "",
            messages,
            agent=self._short if is_agent(self.name) else None,
            project=self.project,
            model=model,
            otherwise=otherwise,
            store=store,
            viewer=self.name,
            written=lambda row: self._identity.row(pack, row),
        )
        if store:
            maintain_after_session(self._core.store)
        return learned

    @checked
    def touch(
        self, files: str | Iterable[str | Mapping[str, Any]] | Mapping[str, Any]
    ) -> ModuleMap:
        """Log the files that the agent's session read or wrote.

        Parameters
        ----------
        files
            Paths, or calls of tools that name them, as for ``lab.agents.modules.touch``.

        Returns
        -------
        ModuleMap
            The map of the project.

        Raises
        ------
        NotPermitted
            If the agent is a reader.
        InputError
            If the agent has no project.

        Examples
        --------
        >>> import memlab
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> (folder / "auth.py").write_text("TOKEN_DAYS = 30")
        15
        >>> lab = memlab.open()
        >>> _ = lab.agents.modules.scan(folder, project="api")
        >>> coder = lab.agents("coder", project="api")
        >>> module_map = coder.touch(
        ...     {"tool_name": "Edit", "tool_input": {"file_path": str(folder / "auth.py")}}
        ... )
        """
        self._identity.check_writes()
        if self.project is None:
            raise InputError(
                f"{self.name} has no project, so its files belong to no project: use lab.agents(name, project=...)."
            )
        return LabModules(self._core).touch(files, project=self.project, session=self.session)

    @checked
    def conversation(self, *, at: When | None = None) -> Relationship:
        """Record one more conversation of this agent with its user.

        See ``lab.agents.conversation``.

        Parameters
        ----------
        at
            The time of the conversation. Default: now.

        Returns
        -------
        Relationship
            The relationship after the conversation.

        Raises
        ------
        NotPermitted
            If the agent is a reader.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().agents("tutor").conversation().conversations
        1
        """
        self._identity.check_writes()
        relationship: Relationship = self._verbs.component("agents").conversation(
            self._short, at=at
        )
        return relationship

    @property
    def _short(self) -> str:
        """The name of this agent without the prefix "agent:"."""
        return self.name.removeprefix("agent:")


class LabAgents:
    """``lab.agents``: agents by name, and verbs for utterances, lessons and files.

    ``lab.agents("tutor")`` is an ``Agent`` with the verbs of daily use.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> lab.agents("tutor", project="algebra").name
    'agent:tutor'
    """

    def __init__(
        self,
        verbs: Verbs,
        observing: Observing,
        verifying: Verifying,
        open_turns: OpenTurns,
        extraction: Extraction,
    ) -> None:
        self._verbs, self._core = verbs, verbs.core
        self._observing, self._verifying, self._open_turns, self._extraction = (
            observing,
            verifying,
            open_turns,
            extraction,
        )

    @checked
    def __call__(
        self,
        name: str | Identity,
        *,
        project: str | None = None,
        session: str | None = None,
        role: str = "member",
    ) -> Agent:
        """Return an agent with the verbs of daily use; see ``Agent``.

        Parameters
        ----------
        name
            The name, with or without the prefix "agent:". An ``Identity`` replaces all arguments.
        project
            The only project that it reads and writes. Default: any.
        session
            Its session. Default: a session of its own.
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
        >>> memlab.open().agents("tutor", role="reader").role
        'reader'
        """
        if isinstance(name, Identity):
            return Agent(name, self._verbs)
        now = self._core.store.clock()
        return Agent(
            make_identity(name, project=project, session=session, role=role, now=now), self._verbs
        )

    @property
    def credits(self) -> LabCredits:
        """The accessor for rewards that are inferred from answers and transcripts."""
        credits: LabCredits = self._core.component("credits")
        return credits

    @property
    def modules(self) -> LabModules:
        """The accessor for code modules: scan a code base, map and describe modules."""
        modules: LabModules = self._core.component("modules")
        return modules

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
        """Remember an utterance if the pack's policy ``admit`` accepts it.

        Parameters
        ----------
        text
            The utterance.
        role
            The speaker: "user", "assistant", "system" or "tool".
        at
            The time of the utterance. Default: now.
        chain
            Whether to link the memory to the previous one of its session by a ``next`` edge.
        linking
            When the memory is compared with stored ones, as for ``lab.remember``.
        before
            The preceding message of another speaker, because an answer needs its question: after
            "What do you do?", "A nurse." becomes "I am a nurse.". Default: the last message of the
            ``session``.
        **fields
            Fields of ``memlab.FIELDS``. ``kind`` and ``provenance`` are inferred unless given: a
            correction, a preference, ...; user-stated for a user, inferred for an assistant.

        Returns
        -------
        Observation
            The memory, None if it was not admitted, and the decision with its reasons.

        Raises
        ------
        InputError
            If a field is invalid.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.agents.observe("How are you?").memory is None
        True
        >>> lab.agents.observe("I prefer tabs").memory.kind
        'preference'
        """
        return self._observing.observe(
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
        """Extract facts and memories from a text or from messages; store nothing.

        Parameters
        ----------
        messages
            A text, or messages with ``role`` and ``content``.
        role
            The speaker of a text.
        agent
            The agent that hears the messages. It is listed in ``agents`` of facts, and is the
            creator of other memories, which are private to it.
        project
            The project of the proposals.
        session
            The session of the proposals.
        model
            A language model that extracts. Default: rules.
        otherwise
            Handling of messages that the model fails to read: "raise", "rules" or "skip"
            (docs/howto/extract.md).

        Returns
        -------
        Extracted
            The proposed facts and memories, for ``commit``.

        Raises
        ------
        ModelError
            If the model fails and ``otherwise`` is "raise".

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> extracted = lab.agents.extract("I live in Rome and I work at Acme.")
        >>> len(lab.memories)
        0
        """
        return self._extraction.extract(
            messages, role, make_scope(agent, project, session), model, otherwise
        )

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
        """Apply a verifier's verdict to a logged recall, at most once per recall.

        The active pack's ``reinforce`` decides what "verified" and "rejected" change.

        Parameters
        ----------
        hits
            The hits of a logged recall.
        accepted
            The accepted hits or ids, or a verifier (``memlab.verifiers.overlap``, or your own).
            ``[]`` rejects all.
        rejected
            The rejected hits or ids. Default: all other hits.
        relations
            Relations between accepted memories, from the first id to the second:
            ``{(3, 7): "supersedes"}`` takes memory 7 out of use.
        at
            The time of the verdict. Default: now.

        Returns
        -------
        Verified
            The logged verdict and its changes.

        Raises
        ------
        InputError
            If the recall was not logged or was verified before.
        UnknownName
            If the recall did not show a memory.

        Notes
        -----
        Rejected memories lose the access that the recall counted. Accepted memories get
        ``relates-to`` edges, or stronger ones, and share the tag that most of them have. If the
        recall had candidates but none was accepted, the query becomes a gap in
        ``lab.upkeep.review.gaps``.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
        >>> lab.agents.verify(lab.recall("tabs or spaces?"), memlab.verifiers.overlap).accepted
        (1,)
        """
        return self._verifying.verify(hits, accepted, rejected=rejected, relations=relations, at=at)

    @checked
    def turns(
        self,
        *,
        verifier: Verifier | None = local,
        patience: Seconds = PATIENCE,
        limit: Count | None = None,
        project: str | None = None,
        session: str | None = None,
        branch: WordOrWords = None,
        season: WordOrWords = None,
        viewer: str | None = None,
        where: pl.Expr | None = None,
    ) -> Turns:
        """Start background recall for the turns of an agent's conversation.

        An agent offers its current action and continues; related memories are there at its next turn.

        Parameters
        ----------
        verifier
            The verifier of each recall: only accepted hits surface. Default: rules; None accepts
            all hits.
        patience
            The seconds that the verifier has for one recall.
        limit
            The maximum number of results of each recall.
        project
            Admit memories of this project and memories without a project.
        session
            The session of the recalls.
        branch
            Admit memories of this branch, or of several.
        season
            Admit the memories of this season, or of several.
        viewer
            The person or agent that recalls.
        where
            A boolean Polars expression over the columns of ``lab.memories``.

        Returns
        -------
        Turns
            The turns, valid until ``close`` or until the lab is closed.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The build on CI needs Node 20")
        >>> with lab.agents.turns() as turns:
        ...     _ = turns.offer("the build fails on CI")
        ...     _ = turns.wait()
        ...     surfaced = turns.offer("a test times out")
        >>> [hit.text for hit in surfaced]
        ['The build on CI needs Node 20']
        """
        filters = Filters.of(branch=branch, season=season, viewer=viewer, where=where)

        def ask(context: str) -> Hits:
            return self._verbs.questions.ask(
                context,
                limit=limit,
                project=project,
                session=session,
                filters=filters,
                at=None,
                log=True,
            )

        turns = Turns(ask, self._verifying, verifier, self._core.store, patience=patience)
        self._open_turns.add(turns)
        return turns

    @checked
    def admit(self, text: str, *, role: str = "user", project: str | None = None) -> Admission:
        """Decide by the active pack's policy ``admit`` whether to remember an utterance.

        Nothing is stored or logged; ``observe`` stores admitted utterances.

        Parameters
        ----------
        text
            The utterance.
        role
            The speaker: "user", "assistant", "system" or "tool".
        project
            The project, whose memories the utterance is compared with.

        Returns
        -------
        Admission
            The decision with its reasons, the detectors that fired (English only), and a
            confidence.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().agents.admit("I prefer tabs").reasons
        ('tells-preference',)
        """
        return self._observing.admit(text, role=role, project=project)

    @checked
    def commit(
        self,
        extracted: Extracted,
        *,
        only: Iterable[Annotated[int, Within(0)]] | None = None,
        linking: str | None = None,
    ) -> Remembered:
        """Store the facts and memories that ``extract`` proposed, in one transaction.

        Proposals are stored as by ``lab.remember``: secrets are redacted, limits hold, and the
        pack's ``link`` and ``resolve`` compare them with stored memories.

        Parameters
        ----------
        extracted
            The result of ``extract``, or its ``facts``.
        only
            The numbers of the proposals to store, rows of its frame. Default: all.
        linking
            When the memories are compared, as for ``lab.remember``.

        Returns
        -------
        Remembered
            The memories and their outcomes.

        Raises
        ------
        InputError
            If a number is out of range.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> extracted = lab.agents.extract("I live in Rome and I work at Acme.")
        >>> [memory.text for memory in lab.agents.commit(extracted.facts)]
        ['The user lives in Rome', 'The user works at Acme']
        """
        return self._extraction.commit(extracted, only, linking)

    @checked
    def end_session(
        self,
        session: str,
        messages: Annotated[Any, AsGiven] = None,
        *,
        agent: str | None = None,
        project: str | None = None,
        model: LanguageModel | None = None,
        otherwise: Otherwise = "raise",
        store: bool = True,
    ) -> Learned:
        """Extract memories from a session, and store them.

        Parameters
        ----------
        session
            The session.
        messages
            The messages of the session. Default: its turns in the lab.
        agent
            The agent that learned.
        project
            The project of the session.
        model
            A language model that extracts facts and lessons. Default: rules. Rules always find
            procedures and the summary of the session.
        otherwise
            Handling of messages that the model fails to read: "raise", "rules" or "skip".
        store
            Whether to store the result.

        Returns
        -------
        Learned
            Lessons, facts and notices; print it for a report.

        Raises
        ------
        InputError
            If the lab has no turns of the session and no messages are given.

        Notes
        -----
        Lessons are breakthroughs, solutions, failures to avoid, changes of plan, successful calls
        of tools and important statements: at most five of each, and 2,000 tokens in all. Lessons
        that the lab has already (closeness above .92) are left out. New lessons are compared with
        stored memories if the pack links, and ``notices`` report conflicts.

        Under a pack with ``maintain-after-session``, such as ``factgraph``, ``lab.upkeep.maintain``
        runs afterwards.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> messages = [{"role": "user", "content": "Important: never deploy on Fridays."}]
        >>> learned = lab.agents.end_session("monday", messages, agent="coder")
        >>> len(lab.memories) > 0
        True
        """
        learned = self._extraction.end(
            session,
            messages,
            agent=agent,
            project=project,
            model=model,
            otherwise=otherwise,
            store=store,
        )
        if store:
            maintain_after_session(self._core.store)
        return learned

    @checked
    def conversation(self, agent: str, *, at: When | None = None) -> Relationship:
        """Record one more conversation of an agent with its user.

        A relationship starts with the settings ``familiarity-start`` and ``trust-start``. Each
        conversation adds the share ``familiarity-gain`` of the distance to 100. Under a pack
        with ``maintain-after-session``, ``lab.upkeep.maintain`` runs afterwards.

        Parameters
        ----------
        agent
            The name of the agent.
        at
            The time of the conversation. Default: now.

        Returns
        -------
        Relationship
            The relationship after the conversation.

        Raises
        ------
        InputError
            If the name is invalid.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().agents.conversation("tutor").conversations
        1
        """
        check_agent(agent)
        now = self._core.instant(at)
        with self._core.store.writing() as tx:
            state, pack = self._core.store.state, self._core.pack
            body = {
                "relationship": make_event_fields(
                    count_conversation(get_relationship(state, pack, agent), pack)
                )
            }
            tx.event("conversation", body, at=now)
        maintain_after_session(self._core.store)
        with self._core.reading() as state:
            return get_relationship(state, pack, agent)

    def relationships(self) -> pl.DataFrame:
        """Return the relationship of each agent with its user.

        Returns
        -------
        DataFrame
            The columns ``agent``, ``trust`` and ``familiarity`` (0 to 100), ``conversations``,
            ``helpful``, ``unhelpful``, ``since``, ``last``.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.agents.conversation("tutor")
        >>> lab.agents.relationships()["agent"].to_list()
        ['tutor']
        """
        with self._core.reading() as state:
            return state.projection(Relationships).frame

    @checked
    def switch_off(self, project: str | None = None, *, reason: str = "") -> pl.DataFrame:
        """Switch memory off for one project or for all projects.

        While it is off, calls that store memories raise ``MemoryOff``. Recalls, contexts and turns
        return nothing and are not logged; ``hits.off`` has the reason. Recalls without a project
        leave out projects that are off. Stored memories can still be read, judged, corrected,
        forgotten and purged.

        Parameters
        ----------
        project
            The project. Default: all.
        reason
            The reason, which is stored.

        Returns
        -------
        DataFrame
            What is switched off: ``project`` (null for all), ``since``, ``reason``.

        Raises
        ------
        PrivacyError
            If the reason holds a secret.

        Notes
        -----
        Nothing is written if memory was off already. A purge of the project removes its switch.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.agents.switch_off("api", reason="under audit")["project"].to_list()
        ['api']
        """
        return self._switch(project, reason, on=False)

    @checked
    def switch_on(
        self, project: str | None = None, *, reason: str = "", by: str = "user"
    ) -> pl.DataFrame:
        """Switch memory on for one project or for all, and record a person's consent.

        Projects that were switched off by name stay off when all is switched on. Under a pack whose
        setting ``consent`` is "needed", the call is the consent for the project, or for memories
        without a project.

        Parameters
        ----------
        project
            The project. Default: all.
        reason
            The reason, which is stored.
        by
            The person who consents.

        Returns
        -------
        DataFrame
            What is still switched off: ``project`` (null for all), ``since``, ``reason``.

        Raises
        ------
        PrivacyError
            If the reason holds a secret.

        Notes
        -----
        A consent is stored with its person, time, reason, and the embedder that gets the texts. It
        ends with ``switch_off``, and does not cover another remote embedder.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.agents.switch_off("api")
        >>> lab.agents.switch_on("api", reason="agreed in the kick-off", by="ida").height
        0
        """
        return self._switch(project, reason, on=True, by=by)

    def switched_off(self) -> pl.DataFrame:
        """Return the projects for which memory is switched off, one row per project.

        Returns
        -------
        DataFrame
            The columns ``project`` (null for all), ``since``, ``reason``.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().agents.switched_off().height
        0
        """
        with self._core.reading() as state:
            return state.projection(Switches).frame

    def consents(self) -> pl.DataFrame:
        """Return the consents of users to memory, one row per project.

        Returns
        -------
        DataFrame
            The columns ``project`` (null: no project), ``since``, ``creator``, ``reason``,
            ``embedder``, ``remote`` (null: texts stay on this machine).

        Examples
        --------
        >>> import memlab
        >>> memlab.open().agents.consents().height
        0
        """
        with self._core.reading() as state:
            return state.projection(Consents).frame

    def _switch(
        self, project: str | None, reason: str, *, on: bool, by: str = "user"
    ) -> pl.DataFrame:
        """Switch memory on or off for a project, or for all (None); return the table of projects for which memory is off.

        A change is logged as a "switch" event, and so is a first consent.
        """
        # Switching memory on while it is on writes an event only if the call is a consent.
        for name, text in (("project", project), ("reason", reason), ("by", by)):
            if text:
                refuse(validate_text(text, where=name), name)
        if project == "":
            raise InputError("project is empty: give a name, or leave it out for all.")
        if not by:
            raise InputError("by is empty: give the name of the person who consents.")
        store = self._core.store
        with store.writing() as tx:
            consents = on and lacks_consent(store, store.state, project)
            if consents or store.state.projection(Switches).has(project) == on:
                consent_fields_of_event = (
                    {"creator": by, "consent": consent_fields(store)} if consents else {}
                )
                tx.event(
                    "switch",
                    {"project": project, "on": on, "reason": reason, **consent_fields_of_event},
                    at=store.clock(),
                )
        return self.switched_off()

    @checked
    def metrics(self, *, since: When | None = None) -> Metrics:
        """Summarize prompt contexts: tokens injected and saved, coverage and warnings.

        Parameters
        ----------
        since
            The instant from which contexts count. Default: all contexts.

        Returns
        -------
        Metrics
            The figures, computed from the journal; latencies are medians of this process.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("Refresh tokens expire after 30 days")
        >>> _ = lab.context("fix the token refresh")
        >>> lab.agents.metrics()["contexts"]
        1.0
        """
        return compute_metrics(self._core, since=None if since is None else to_micros(since))

    @checked
    def recalls(self, *, since: When | None = None) -> pl.DataFrame:
        """List the logged recalls with their query, viewer, results and reward.

        Parameters
        ----------
        since
            The instant from which recalls count. Default: all recalls.

        Returns
        -------
        DataFrame
            One row per recall, oldest first. ``decision``, ``at``, ``query``, ``agent`` (the
            viewer), ``session``, ``project``, ``pack`` and ``known`` are those of the log.
            ``shown``, ``helped``, ``failed`` and ``stale`` are lists of memories. Feedback, credits
            and verifiers decide what helped; a stale memory is superseded by now. ``tokens`` counts
            the context, otherwise the shown texts. ``outcome`` is helped, failed, nothing (no
            result, or a verifier rejected all) or unrated.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
        >>> _ = lab.feedback(lab.recall("tabs or spaces?", limit=1)[0], "success")
        >>> lab.agents.recalls().select("query", "shown", "outcome").row(0)
        ('tabs or spaces?', [1], 'helped')
        """
        store = self._core.store
        recalls, _ = read_recalls(store.journal, self._core.memories(), store.slates(), since=since)
        return recalls
