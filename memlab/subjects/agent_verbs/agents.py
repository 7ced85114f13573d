"""``lab.agents``: what an agent that lives on a lab needs beside the daily verbs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import AsGiven, Count, Seconds, Within, checked
from memlab.kernel.base.clock import When, to_micros
from memlab.kernel.privacy import refuse
from memlab.kernel.recall import Filters, Hits, WordOrWords
from memlab.kernel.state import checked_text
from memlab.kernel.verbs.core import Memories
from memlab.kernel.verbs.gate import Consents, Switches, check_agent, consent_of, lacks_consent
from memlab.kernel.verbs.results import Remembered
from memlab.kernel.verbs.verbs import Verbs
from memlab.subjects.agent_verbs.agent import Agent, identity_of
from memlab.subjects.agents.relationships import Relationship, Relationships, in_event, relationship_of, talked
from memlab.subjects.agents.turns import PATIENCE, BegunTurns, Turns
from memlab.subjects.agents.verifying import Verified, Verifying
from memlab.subjects.context.metrics import Metrics, metrics_of
from memlab.subjects.extraction.extraction import Extraction, Learned, where_of
from memlab.subjects.extraction.staged import Extracted
from memlab.subjects.models import LanguageModel, Otherwise
from memlab.subjects.observing.observing import Admission, Observation, Observing
from memlab.subjects.retention.upkeep import maintain_after_session
from memlab.subjects.verifiers import Verifier, local

if TYPE_CHECKING:
    from memlab.subjects.attribution.attribution import LabCredits
    from memlab.subjects.modules.modules import LabModules

__all__ = ["LabAgents"]


class LabAgents:
    """``lab.agents``: one agent by its name, and what agents say, learn, touch and are credited with.

    >>> lab.agents("tutor", project="algebra").recall("fractions")                         # doctest: +SKIP
    """

    def __init__(
        self, verbs: Verbs, observing: Observing, verifying: Verifying, begun: BegunTurns, extraction: Extraction
    ) -> None:
        self._verbs, self._core = verbs, verbs.core
        self._observing, self._verifying, self._begun, self._extraction = observing, verifying, begun, extraction

    @checked
    def __call__(
        self, name: str, *, project: str | None = None, session: str | None = None, role: str = "member"
    ) -> Agent:
        """The daily verbs as one agent ("reader", "member", "owner"), which keeps to its project; see ``Agent``."""
        now = self._core.store.clock()
        return Agent(identity_of(name, project=project, session=session, role=role, now=now), self._verbs)

    @property
    def credits(self) -> LabCredits:
        """Rewards that are read from answers and transcripts, and how sure they are."""
        credits: LabCredits = self._core.made("credits")
        return credits

    @property
    def modules(self) -> LabModules:
        """The parts of a code base: scan, map, find, describe."""
        modules: LabModules = self._core.made("modules")
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
        return self._extraction.extract(messages, role, where_of(agent, project, session), model, otherwise)

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
                context, limit=limit, project=project, session=session, filters=filters, at=None, log=True
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
            session, messages, agent=agent, project=project, model=model, otherwise=otherwise, store=store
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
    def switch_on(self, project: str | None = None, *, reason: str = "", by: str = "user") -> pl.DataFrame:
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

    def _switch(self, project: str | None, reason: str, *, on: bool, by: str = "user") -> pl.DataFrame:
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
                told = {"creator": by, "consent": consent_of(store)} if consents else {}
                tx.event("switch", {"project": project, "on": on, "reason": reason, **told}, at=store.clock())
        return self.switched_off()

    @checked
    def metrics(self, *, since: When | None = None) -> Metrics:
        """What the contexts that agents were given were worth: tokens injected and saved, coverage, frequent gotchas.

        ``since`` leaves out what came before. All is computed from the journal, which holds no wall time, but for the
        latencies: those are medians of the calls of this process.

        >>> lab.agents.metrics()["tokens-saved"]                                           # doctest: +SKIP
        """
        return metrics_of(self._core, since=None if since is None else to_micros(since))
