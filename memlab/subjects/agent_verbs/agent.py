"""One agent on a lab: the daily verbs, with its name on what it writes and its eyes on what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, overload

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import AsGiven, Count, Seconds, Within, checked, renamed
from memlab.kernel.base.clock import When, from_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.recall import Filters, Hits, WordOrWords
from memlab.kernel.state import State, columns_of
from memlab.kernel.verbs.core import Memories, MemoryLike
from memlab.kernel.verbs.corrections.corrections import Corrected
from memlab.kernel.verbs.feedback import checked_judgement
from memlab.kernel.verbs.gate import as_agent
from memlab.kernel.verbs.results import Edited, Feedback, Memory, Remembered
from memlab.kernel.verbs.verbs import Verbs
from memlab.subjects.agents.relationships import Relationship
from memlab.subjects.agents.turns import PATIENCE, Turns
from memlab.subjects.context.context import Context, Contexts
from memlab.subjects.extraction.extraction import Extraction, Learned
from memlab.subjects.identity import Identity, is_fact
from memlab.subjects.models import LanguageModel, Otherwise
from memlab.subjects.modules.module_map import ModuleMap
from memlab.subjects.modules.modules import LabModules
from memlab.subjects.retention.upkeep import maintain_after_session
from memlab.subjects.verifiers import Verifier, local

__all__ = ["Agent", "identity_of"]


_RENAMED = {"remember_many": ("remember(rows)", lambda agent: lambda rows, **how: agent.remember(rows, **how))}


def identity_of(name: str, *, project: str | None, session: str | None, role: str, now: int) -> Identity:
    """Who "tutor" or "agent:tutor" is; without a session it has one of its own, called by its name and the time."""
    short = name.removeprefix("agent:")
    own = f"{short} {from_micros(now).isoformat()}"
    return Identity(as_agent(name) if short else "", project, own if session is None else session, role, keeps=True)


class Agent(Displayed):
    """One agent on a lab, ``lab.agents(name)``. It has the daily verbs, and is whoever is named on what they write.

    What it remembers is its own: created by it, and private to it unless the pack says who sees what agents write, or
    it is given a ``visibility``. Facts (of the kinds personal, preference, goal, trait and fact, where that is given,
    and whatever has subject and predicate) are shared by all agents, and one that several assert is one, with all of
    them as sources in ``agents``: which is the same, the pack's ``link`` decides. Every question is asked as this
    agent: what is private to others does not exist. With a ``project`` it reads and writes that alone, beside what
    belongs to none. The pack's limits (``session-writes``, ``write-bytes``) hold for its ``session``; without one it
    has one of its own, called by its name and the time.

    A "reader" only recalls, a "member" also writes and changes what it created and nobody else contributed to, an
    "owner" changes whatever it sees.

    >>> tutor = lab.agents("tutor", project="algebra")                                      # doctest: +SKIP
    >>> tutor.remember("Fractions went badly; begin with pictures", kind="learning")       # doctest: +SKIP
    """

    def __init__(self, identity: Identity, verbs: Verbs) -> None:
        self._identity, self._verbs, self._core = identity, verbs, verbs.core

    @property
    def name(self) -> str:
        """Who it is, as ``creator`` and ``viewer`` have it: "agent:tutor"."""
        return self._identity.name or ""

    @property
    def project(self) -> str | None:
        """The project that it reads and writes; None: it may name one at each call."""
        return self._identity.project

    @property
    def session(self) -> str:
        """What its memories and questions belong to."""
        return self._identity.session or ""

    @property
    def role(self) -> str:
        """ "reader", "member" or "owner"."""
        return self._identity.role

    def __repr__(self) -> str:
        where = "" if self.project is None else f", project {self.project}"
        return printable(f"<Agent {self.name}: {self.role}{where}, session {self.session}>")

    @property
    def memories(self) -> pl.DataFrame:
        """What is its own and what it is a source of, as rows of ``lab.memories``."""
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
        text: str | pl.DataFrame | Iterable[Any],
        *,
        at: When | None = None,
        linking: str | None = None,
        **fields: Any,
    ) -> Memory | Remembered:
        """Remember a text, or several in one transaction, as this agent; the arguments are those of ``lab.remember``.

        NotPermitted for another project, creator or source than its own, and for a reader; InputError above the limits
        of its session; MemoryOff while memory is off.

        >>> tutor.remember("The user prefers examples", kind="preference").agents          # doctest: +SKIP
        ('agent:tutor',)
        """
        if isinstance(text, str):
            row = {"text": text, **fields} | ({} if at is None else {"at": at})
            return self._verbs.remembering.alone(self._stored([row], linking))
        if at is not None or fields:
            raise InputError(
                "Several texts say their own fields and times, in dicts or columns: give none beside them."
            )
        columns = columns_of(text)
        given = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return self._stored(given, linking)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return what a name of an earlier version stands for."""
            if name not in _RENAMED:
                raise AttributeError(f"Agent has no attribute {name!r}.", name=name, obj=self)
            return renamed(self, "agent", name, _RENAMED)

    def _stored(self, rows: Sequence[Mapping[str, Any]], linking: str | None) -> Remembered:
        """Facts are always compared with what is known, so that one which is told twice is one."""
        self._identity.check_writes()
        with self._core.reading():
            pack = self._core.pack
            written = [self._identity.row(pack, row) for row in rows]
            unites = linking is None and pack.settings["linking"] == "off" and any(map(is_fact, rows))
        return self._verbs.remembering.many(written, chain=False, linking="now" if unites else linking)

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
        """What the live pack puts first among what this agent sees; the arguments are those of ``lab.recall``.

        Unless given, ``again`` is the pack's setting ``recall-again``: where that is off (in ``workbench``), a session
        shows no memory twice, and ``again=True`` shows all.

        NotPermitted for another project than its own. While memory is off it is empty, and ``hits.off`` says why.
        """
        filters = Filters.of(branch=branch, season=season, viewer=self.name, where=where)
        return self._verbs.questions.ask(
            query,
            limit=limit,
            project=self._identity.place(project),
            session=self.session,
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
        log: bool = True,
    ) -> Context:
        """What this agent is to know for a task, nothing twice in its session; see ``lab.context``."""
        where = self._identity.place(project)
        contexts: Contexts = self._verbs.made("contexts")
        return contexts.make(
            task, budget=budget, session=self.session, project=where, files=files, viewer=self.name, at=at, log=log
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
        """Say how a memory did that was shown to this agent; it counts for how far the agent is trusted, too.

        The arguments are those of ``lab.feedback``. UnknownName for a memory that it does not see.
        """
        self._identity.check_writes()
        with self._core.reading() as state:
            self._identity.check_sees(state, [self._core.row(hit)])
        now = self._core.instant(at)
        judgement = checked_judgement(hit, outcome, rating, reward, self._short, source, now, decision)
        return self._verbs.judgements.feedback(judgement)

    @checked
    def edit(self, memory: MemoryLike, *, text: str | None = None, **fields: Any) -> Edited:
        """Correct a memory of its own, and return the one that replaces it; see ``lab.edit``.

        NotPermitted for what another created or contributed to, unless it is an owner, and for another project.
        """
        self._check_changes(memory)
        self._identity.check_fields(fields)

        return self._verbs.corrections.edit(memory, text=text, fields=fields, permit=self._permit)

    @checked
    def forget(self, memory: Memories) -> Corrected:
        """Take memories of its own, with their corrections, out of every recall; ``restore`` brings them back.

        NotPermitted as for ``edit``: also where a correction is of another.
        """
        chosen = self._check_changes(memory)
        return self._verbs.corrections.forget(chosen, permit=self._permit)

    @checked
    def restore(self, memory: Memories) -> Corrected:
        """Bring back memories of its own that are out of use; see ``lab.restore``. NotPermitted as for ``edit``."""
        chosen = self._check_changes(memory)
        return self._verbs.corrections.restore(chosen, project=None, permit=self._permit, summaries=False)

    def _permit(self, state: State, row: int) -> None:
        """Raise NotPermitted for a row that this agent may not change."""
        self._identity.check_changes(state, [row])

    def _check_changes(self, memories: Memories) -> list[int]:
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
        """Turns that recall in the background as this agent; see ``lab.agents.turns``."""
        turns: Turns = self._verbs.made("agents").turns(
            verifier=verifier,
            patience=patience,
            limit=limit,
            project=self._identity.place(project),
            session=self.session,
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
        """What its session taught, stored unless ``store=False``, and what it looked for in vain.

        See ``lab.agents.end_session``; what is private to others is neither known nor a gap.
        """
        if store:
            self._identity.check_writes()
        with self._core.reading():
            pack = self._core.pack
        extraction: Extraction = self._verbs.made("extraction")
        learned = extraction.end(
            self.session,
            messages,
            agent=self._short,
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
        self, files: Annotated[str | Iterable[str | Mapping[str, Any]] | Mapping[str, Any], AsGiven]
    ) -> ModuleMap:
        """Log the files that the agent's session read or wrote, and return the map of its project.

        Parameters
        ----------
        files
            Paths, or what names them, as for ``lab.agents.modules.touch``.

        Raises
        ------
        NotPermitted
            For a reader.
        InputError
            For an agent without a project.

        Examples
        --------
        >>> agent.touch({"tool_name": "Edit", "tool_input": {"file_path": "src/auth.py"}})  # doctest: +SKIP
        """
        self._identity.check_writes()
        if self.project is None:
            raise InputError(f"{self.name} has no project, so its files belong to none. Make it with project=...")
        return LabModules(self._core).touch(files, project=self.project, session=self.session)

    @checked
    def conversation(self, *, at: When | None = None) -> Relationship:
        """Count one more conversation of this agent with its user; see ``lab.agents.conversation``."""
        self._identity.check_writes()
        counted: Relationship = self._verbs.made("agents").conversation(self._short, at=at)
        return counted

    @property
    def _short(self) -> str:
        return self.name.removeprefix("agent:")
