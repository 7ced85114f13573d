"""``lab.agents``: what an agent that lives on a lab needs beside the daily verbs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, overload

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import AsGiven, Count, Seconds, Within, checked, renamed
from memlab.kernel.base.clock import When, from_micros, to_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.privacy import refuse
from memlab.kernel.recall import Filters, Hits, WordOrWords
from memlab.kernel.state import State, checked_text, columns_of
from memlab.kernel.verbs.core import Memories, MemoryLike
from memlab.kernel.verbs.corrections.corrections import Corrected
from memlab.kernel.verbs.feedback import check_judgement
from memlab.kernel.verbs.gate import (
    Consents,
    Switches,
    check_agent,
    consent_fields,
    format_agent,
    lacks_consent,
)
from memlab.kernel.verbs.results import Edited, Feedback, Memory, Remembered
from memlab.kernel.verbs.verbs import Verbs
from memlab.subjects.agents.relationships import (
    Relationship,
    Relationships,
    in_event,
    relationship_of,
    talked,
)
from memlab.subjects.agents.turns import PATIENCE, BegunTurns, Turns
from memlab.subjects.agents.verifying import Verified, Verifying
from memlab.subjects.context.context import Context, Contexts, Metrics, metrics_of
from memlab.subjects.extraction.extraction import Extraction, Learned, where_of
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

__all__ = ["Agent", "LabAgents", "identity_of"]


# One agent on a lab: the daily verbs, with its name on what it writes and its eyes on what it reads.


_RENAMED = {
    "remember_many": (
        "remember(rows)",
        lambda agent: lambda rows, **how: agent.remember(rows, **how),
    )
}


def identity_of(
    name: str, *, project: str | None, session: str | None, role: str, now: int
) -> Identity:
    """Who "tutor" or "agent:tutor" is; without a session it has one of its own, called by its name and the time."""
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
            return self._verbs.remembering.get_single(self._stored([row], linking))
        if at is not None or fields:
            raise InputError(
                "Several texts say their own fields and times, in dicts or columns: give none beside them."
            )
        columns = columns_of(text)
        given = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
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
            unites = (
                linking is None and pack.settings["linking"] == "off" and any(map(is_fact, rows))
            )
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
        contexts: Contexts = self._verbs.component("contexts")
        return contexts.make(
            task,
            budget=budget,
            session=self.session,
            project=where,
            files=files,
            viewer=self.name,
            at=at,
            log=log,
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
        judgement = check_judgement(
            hit, outcome, rating, reward, self._short, source, now, decision
        )
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
        return self._verbs.corrections.restore(
            chosen, project=None, permit=self._permit, summaries=False
        )

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
        turns: Turns = self._verbs.component("agents").turns(
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
        extraction: Extraction = self._verbs.component("extraction")
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
            raise InputError(
                f"{self.name} has no project, so its files belong to none. Make it with project=..."
            )
        return LabModules(self._core).touch(files, project=self.project, session=self.session)

    @checked
    def conversation(self, *, at: When | None = None) -> Relationship:
        """Count one more conversation of this agent with its user; see ``lab.agents.conversation``."""
        self._identity.check_writes()
        counted: Relationship = self._verbs.component("agents").conversation(self._short, at=at)
        return counted

    @property
    def _short(self) -> str:
        return self.name.removeprefix("agent:")


class LabAgents:
    """``lab.agents``: one agent by its name, and what agents say, learn, touch and are credited with.

    >>> lab.agents("tutor", project="algebra").recall("fractions")                         # doctest: +SKIP
    """

    def __init__(
        self,
        verbs: Verbs,
        observing: Observing,
        verifying: Verifying,
        begun: BegunTurns,
        extraction: Extraction,
    ) -> None:
        self._verbs, self._core = verbs, verbs.core
        self._observing, self._verifying, self._begun, self._extraction = (
            observing,
            verifying,
            begun,
            extraction,
        )

    @checked
    def __call__(
        self,
        name: str,
        *,
        project: str | None = None,
        session: str | None = None,
        role: str = "member",
    ) -> Agent:
        """The daily verbs as one agent ("reader", "member", "owner"), which keeps to its project; see ``Agent``."""
        now = self._core.store.clock()
        return Agent(
            identity_of(name, project=project, session=session, role=role, now=now), self._verbs
        )

    @property
    def credits(self) -> LabCredits:
        """Rewards that are read from answers and transcripts, and how sure they are."""
        credits: LabCredits = self._core.component("credits")
        return credits

    @property
    def modules(self) -> LabModules:
        """The parts of a code base: scan, map, find, describe."""
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
        """Remember an utterance if it is worth it: ``admit``, then ``lab.remember``.

        ``before`` is the message just before, of somebody else; unless given it is the last of the ``session``. An
        answer is read with its question: after "What do you do?", "A nurse." is remembered as "I am a nurse.".

        What is not admitted is not stored, and ``observation.admission`` says why. ``kind`` and ``provenance`` follow
        from the reasons and the role unless they are given: what corrects is a correction, what tells a preference is
        one; what a user says is user-stated, what an assistant says is inferred.

        >>> lab.agents.observe("How are you?").memory is None                                        # doctest: +SKIP
        True
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
        """Facts and memories of a text, or of messages with ``role`` and ``content``: by rules, or by a ``model``.

        Nothing is stored. ``agent`` is who hears it: a fact that it proposes has the agent among its ``agents`` and is
        shared, a memory is created by the agent and private to it. ``otherwise``: what becomes of a message that the
        model does not read, docs/howto/extract.md.
        """
        return self._extraction.extract(
            messages, role, where_of(agent, project, session), model, otherwise
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
        """Carry out a verifier's verdict on a logged recall, once; durable when it returns.

        ``accepted`` are the hits that pass, or a callable that says so (``memlab.verifiers.overlap``, or your own);
        ``[]`` is allowed, and rejects all.
        ``rejected`` are those that do not: without it, all others that were shown. ``relations`` names what joins two
        that pass, from the first id to the second: ``{(3, 7): "supersedes"}``, which retires the second.

        The live pack's ``reinforce`` decides what "verified" and "rejected" change. What did not pass loses the access
        that the recall gave it; two or more that passed are joined by ``relates-to`` edges, or those are strengthened,
        and share the tag that most have. Where there were seeds and nothing passed, ``lab.upkeep.review.gaps`` has a
        gap.

        InputError for a recall that was not logged or was verified before, UnknownName for what it did not show.

        >>> lab.agents.verify(lab.recall("release"), memlab.verifiers.overlap)                    # doctest: +SKIP
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
        """The turns of one agent, until ``close`` or the end of the lab; the other arguments are those of ``recall``.

        An agent says what it is doing and goes on; what its memory has to say about it is there at the next turn. Each
        recall is verified, by rules unless another ``verifier`` is given, which has ``patience`` seconds, and only what
        passes comes up; with ``verifier=None`` all that a recall shows does. See ``Turns``.

        >>> turns = lab.agents.turns(project="api")                                        # doctest: +SKIP
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

        begun = Turns(ask, self._verifying, verifier, self._core.store, patience=patience)
        self._begun.add(begun)
        return begun

    @checked
    def admit(self, text: str, *, role: str = "user", project: str | None = None) -> Admission:
        """Whether an utterance is worth remembering, by the live pack's ``admit``; nothing is stored or logged.

        ``role`` is who speaks: user, assistant, system, tool. The answer carries its reasons, the detectors that fired
        (plain English; in other languages none does), and a confidence. ``observe`` stores what is admitted.

        >>> lab.agents.admit("I prefer tabs").reasons                                      # doctest: +SKIP
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
        """Store what ``extract`` proposed, or the items ``only`` (numbers of its frame), in one transaction.

        It goes the way of ``lab.remember``: secrets are redacted, limits hold, and the pack's ``link`` and ``resolve``
        decide what each means for what is known; ``outcomes`` says so. ``linking`` as there.

        >>> lab.agents.commit(lab.agents.extract("I live in Rome and I work at Acme").facts)      # doctest: +SKIP
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
        """What a session taught, stored unless ``store=False``: print it for "here is what I learned".

        Breakthroughs, solutions, what failed and is to be avoided, changes of plan, calls of tools that led to success
        and what was called important, at most five of each and 2,000 tokens in all; and what ``extract`` proposes.
        ``messages``, ``model`` and ``otherwise`` as there; unless messages are given, the turns of the session that the
        lab holds. Lessons are recognised by rules, whatever the model. A lesson that is known already
        (closeness above .92) is left out; the rest, where the pack links, is compared before it is stored, and
        ``notices`` say what conflicts.

        Under a pack with ``maintain-after-session``, such as ``factgraph``, a pass of ``lab.upkeep.maintain`` follows.

        InputError for a session of which the lab holds no turns.

        >>> print(lab.agents.end_session("monday", agent="coder"))                         # doctest: +SKIP
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
        """Count one more conversation of this agent with its user, and return their relationship as it is then.

        A first conversation starts from the settings ``familiarity-start`` and ``trust-start``; each adds a share
        ``familiarity-gain`` of the familiarity still missing to 100. Under a pack with ``maintain-after-session`` a
        pass of ``lab.upkeep.maintain`` follows.
        """
        check_agent(agent)
        now = self._core.instant(at)
        with self._core.store.writing() as tx:
            state, pack = self._core.store.state, self._core.pack
            body = {"relationship": in_event(talked(relationship_of(state, pack, agent), pack))}
            tx.event("conversation", body, at=now)
        maintain_after_session(self._core.store)
        with self._core.reading() as state:
            return relationship_of(state, pack, agent)

    def relationships(self) -> pl.DataFrame:
        """One row an agent: agent, trust, familiarity (both 0-100), conversations, helpful, unhelpful, since, last."""
        with self._core.reading() as state:
            return state.projection(Relationships).frame

    @checked
    def switch_off(self, project: str | None = None, *, reason: str = "") -> pl.DataFrame:
        """Switch memory off, for a project or without one for all; logged, and undone by ``switch_on``.

        While it is off nothing is remembered: ``remember`` and whatever stores memories, loads them or maps the
        project's modules raise ``MemoryOff``, as what is dropped in silence would be taken for known. Recalls, contexts
        and turns return nothing and are not logged; ``hits.off`` says why. A recall that names no project leaves out
        those that are off. What is there can still be looked at, judged, corrected, forgotten and purged.

        The purge of a project by name takes its switch with it.

        Returned is what is off; nothing is written if it was. PrivacyError for a secret in the reason.

        >>> lab.agents.switch_off("api", reason="under audit")                             # doctest: +SKIP
        """
        return self._switch(project, reason, on=False)

    @checked
    def switch_on(
        self, project: str | None = None, *, reason: str = "", by: str = "user"
    ) -> pl.DataFrame:
        """Switch memory on again, for a project or without one for all; projects that are off by themselves stay off.

        Under a pack whose setting ``consent`` is "needed" this is the consent, for the project or without one for what
        belongs to no project: an event with who (``by``), when, why, and where texts are sent to be embedded. It ends
        with ``switch_off``, and does not hold for an embedder elsewhere that was not disclosed then.

        Returned is what is off still; nothing is written if it was on.

        >>> lab.agents.switch_on("api", reason="agreed in the kick-off", by="ida")         # doctest: +SKIP
        """
        return self._switch(project, reason, on=True, by=by)

    def switched_off(self) -> pl.DataFrame:
        """One row for all (project null) and for each project for which memory is off: project, since, reason."""
        with self._core.reading() as state:
            return state.projection(Switches).frame

    def consents(self) -> pl.DataFrame:
        """One row for each project (null: what has none) to which somebody consented: who, when, why, what was told.

        Columns: project, since, creator, reason, embedder, remote (null: texts stay on this machine).
        """
        with self._core.reading() as state:
            return state.projection(Consents).frame

    def _switch(
        self, project: str | None, reason: str, *, on: bool, by: str = "user"
    ) -> pl.DataFrame:
        for name, text in (("project", project), ("reason", reason), ("by", by)):
            if text:
                refuse(checked_text(text, where=name), name)
        if project == "":
            raise InputError("project is a name, or nothing for all, not an empty one.")
        if not by:
            raise InputError("by is the name of whoever consents, not an empty one.")
        store = self._core.store
        with store.writing() as tx:
            consents = on and lacks_consent(store, store.state, project)
            if consents or store.state.projection(Switches).has(project) == on:
                told = {"creator": by, "consent": consent_fields(store)} if consents else {}
                tx.event(
                    "switch",
                    {"project": project, "on": on, "reason": reason, **told},
                    at=store.clock(),
                )
        return self.switched_off()

    @checked
    def metrics(self, *, since: When | None = None) -> Metrics:
        """What the contexts that agents were given were worth: tokens injected and saved, coverage, frequent gotchas.

        ``since`` leaves out what came before. All is computed from the journal, which holds no wall time, but for the
        latencies: those are medians of the calls of this process.

        >>> lab.agents.metrics()["tokens-saved"]                                           # doctest: +SKIP
        """
        return metrics_of(self._core, since=None if since is None else to_micros(since))
