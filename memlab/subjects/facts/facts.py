"""Facts of a lab: ``lab.facts``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Count, checked
from memlab.kernel.base.clock import When, check_instant, from_micros, to_micros
from memlab.kernel.privacy import refuse
from memlab.kernel.recall import Filters, Hits, Question
from memlab.kernel.schema import STATUSES, normalise_word
from memlab.kernel.state import Change, State, entity_key, validate_text
from memlab.kernel.verbs.core import Core, Memories
from memlab.kernel.verbs.fact_rows import get_entities, normalize_predicate
from memlab.kernel.verbs.gate import apply_switches
from memlab.kernel.verbs.recalling.asking import Questions
from memlab.kernel.verbs.remembering.remember import Remembering
from memlab.kernel.verbs.results import Memory
from memlab.subjects.fact_rows import (
    are_valid_at,
    build_facts_frame,
    fact_text,
    find_facts,
    have_status,
    retract,
)
from memlab.subjects.facts.entities import check_name, find_entity
from memlab.subjects.facts.narrative import (
    USER,
    Narrative,
    select_profile_rows,
    write_narrative,
    write_profile,
)

if TYPE_CHECKING:
    from memlab.subjects.facts.entities import LabEntities


class LabFacts:
    """Facts about entities, as a table and as text: ``lab.facts``.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.facts.add("Ada", "lives-in", object="Oslo")
    >>> lab.facts.frame(subject="ada").select("predicate", "object").rows()
    [('lives-in', 'Oslo')]
    """

    def __init__(self, core: Core, remembering: Remembering, questions: Questions) -> None:
        self._core, self._remembering, self._questions = core, remembering, questions

    @property
    def entities(self) -> LabEntities:
        """The accessor for entities: declare, list, merge and split them."""
        entities: LabEntities = self._core.component("entities")
        return entities

    @checked
    def add(
        self,
        subject: str,
        predicate: str,
        value: str | bool | float | None = None,
        *,
        object: str | None = None,
        text: str | None = None,
        at: When | None = None,
        chain: bool = False,
        linking: str | None = None,
        **fields: Any,
    ) -> Memory:
        """Remember a fact: a subject, a predicate, and a value or a second entity.

        Names of entities are matched case-insensitively; a new name creates an entity. The fact
        starts with the status of the pack's setting ``fact-status``. The pack's ``link`` and
        ``resolve`` policies decide its effect on older facts. The fact is durable when the call
        returns.

        Parameters
        ----------
        subject
            The entity that the fact is about, by any of its names.
        predicate
            The property or relation, such as "lives-in".
        value
            The value, as a text, number or boolean.
        object
            Another entity, instead of a value.
        text
            The text of the memory; by default a sentence such as "Ada lives in Oslo".
        at
            The instant of the memory; by default now.
        chain
            Whether to link the memory to the previous one of its session.
        linking
            When to compare it with other memories: "now", "later" or "off"; by default the pack's setting.
        fields
            Other fields of ``lab.remember``, such as confidence, source, valid_from and valid_until. Without
            ``valid_from`` the fact is valid from `at` on.

        Returns
        -------
        The stored memory.

        Raises
        ------
        InputError
            If the fact has both a value and an object or neither, or ends before it begins.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().facts.add("Ada", "lives-in", object="Oslo", confidence=0.95).text
        'Ada lives in Oslo'
        """
        if (value is None) == (object is None):
            raise InputError(
                "A fact needs either a value or an object. Pass a text or number as value=, or an entity as object=."
            )
        if isinstance(value, bool | int | float):
            value = str(value).lower() if isinstance(value, bool) else str(value)
        # All names are checked before anything is written, because they become visible nodes.
        names = {"subject": subject, "predicate": predicate, "value": value, "object": object}
        for role, name in names.items():
            if name is not None or role in ("subject", "predicate"):
                check_name(role, name)
        start, stop = (
            None
            if fields.get(name) is None
            else check_instant(to_micros(fields[name]), f"Field {name}: A time")
            for name in _INTERVAL
        )
        began = start if start is not None else self._core.instant(at)
        if stop is not None and stop <= began:
            raise InputError(
                f"valid_from must be before valid_until, but {from_micros(began).isoformat()} is not before "
                f"{from_micros(stop).isoformat()}."
            )
        if text is None:
            with self._core.reading() as state:
                entities = get_entities(state)
                canonical_names = [
                    entities.canonical_name(name) or name
                    for name in (subject, object)
                    if name is not None
                ]
            text = fact_text(
                canonical_names[0], predicate, str(canonical_names[1] if value is None else value)
            )
        fields |= {
            name: name_or_none for name, name_or_none in names.items() if name_or_none is not None
        }
        return self._remembering.remember_one(
            text, at=at, chain=chain, linking=linking, fields=fields
        )

    @checked
    def frame(
        self,
        *,
        at: When | None = None,
        subject: str | None = None,
        predicate: str | None = None,
        status: str | Iterable[str] | None = None,
    ) -> pl.DataFrame:
        """Return a frame with one row per fact, ordered by id.

        Parameters
        ----------
        at
            The instant in the world at which the facts were valid: ``valid_from <= at < valid_until``.
            Retracted, deprecated and deleted facts are left out; a superseded fact was valid until then. This
            is not the instant at which a fact became known, which is ``created`` of ``lab.memories``.
        subject
            An entity, by any of its names.
        predicate
            A predicate.
        status
            One status or several.

        Returns
        -------
        One row per fact: ``id``, ``subject``, ``predicate``, ``object``, ``value``, ``confidence``,
        ``status``, ``source``, ``valid_from``, ``valid_until`` (null while valid), ``superseded_by``,
        ``access``, ``text`` and ``relevance``. Relevance is the pack's ``recall-score`` now at full
        activation, null if the score depends on a query.

        Raises
        ------
        UnknownName
            If the subject or status is unknown.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> fact = lab.facts.add("Ada", "lives-in", object="Oslo", valid_from="2024-01-01")
        >>> lab.facts.frame(at="2024-06-01", subject="Ada")["object"].to_list()
        ['Oslo']
        """
        statuses = None if status is None else [status] if isinstance(status, str) else list(status)
        statuses = statuses and [normalise_word(word, STATUSES) for word in statuses]
        for word in statuses or ():
            if word not in STATUSES:
                raise UnknownName("status", word, STATUSES)
        instant = None if at is None else to_micros(at)
        with self._core.reading() as state:
            rows = find_facts(
                state, subject=None if subject is None else self._called(state, subject)
            )
            if predicate is not None:
                rows = rows[
                    state.names["predicate"].codes[rows]
                    == state.names["predicate"].code(normalize_predicate(predicate))
                ]
            if statuses is not None:
                rows = rows[have_status(state, rows, statuses)]
            if instant is not None:
                rows = rows[are_valid_at(state, rows, instant)]
            return build_facts_frame(state, self._core.pack, rows, self._core.store.clock())

    @checked
    def retract(self, fact: Memories, *, reason: str | None = None) -> None:
        """Mark a fact as never true, so that only ``lab.facts.frame`` still lists it.

        Facts that it superseded stay superseded. If the same fact is stored later, it is a new
        fact. Packs that forget retracted facts, such as ``factgraph``, delete it in the next pass
        of upkeep; ``lab.restore`` brings it back until it is purged.

        Parameters
        ----------
        fact
            The fact, as a memory or an id; or several, as a list or frame. All are retracted or none.
        reason
            The reason, which must not contain secrets.

        Raises
        ------
        InputError
            If the memory is not a fact, or is deleted or purged.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> fact = lab.facts.add("Ada", "lives-in", object="Oslo")
        >>> lab.facts.retract(fact, reason="a misunderstanding")
        >>> lab.facts.frame()["status"].to_list()
        ['retracted']
        """
        if reason is not None:
            refuse(validate_text(reason, where="reason"), "the reason")
        with self._core.store.writing() as tx:
            now = self._core.store.clock()
            change = Change()
            for row in self._core.rows(fact):
                change += retract(self._core.store.state, row, now, reason)
            if change:
                tx.event("retract", change.body(), at=now)

    @checked
    def narrative(
        self,
        about: str | Hits | Memories,
        *,
        budget_tokens: Count | None = None,
        limit: Count | None = None,
        project: str | None = None,
        session: str | None = None,
        at: When | None = None,
        log: bool = True,
    ) -> Narrative:
        """Write facts about a query, or the given memories, with one line per entity.

        The text is for a prompt: "USER CONTEXT: prefers dark (theme); uses Python (staged)."
        Nothing is generated: a fact is its predicate and value, another memory its text. Entities
        that the query names come first, then each entity by its best memory. Superseded, retracted
        and expired memories are left out.

        Parameters
        ----------
        about
            A query to recall, or the results of a recall, or memories.
        budget_tokens
            The maximum length in tokens; by default the setting ``tier-2-tokens``.
        limit, project, session, log
            As in ``lab.recall``, if `about` is a query.
        at
            The instant at which facts must be valid; by default now.

        Returns
        -------
        The text, with the memories it uses.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> fact = lab.facts.add("Ada", "lives-in", object="Oslo", confidence=0.95)
        >>> print(lab.facts.narrative([fact]))
        ADA CONTEXT: lives in Oslo.
        """
        now = self._core.instant(at)
        if isinstance(about, str):
            about = self._questions.ask(
                about,
                limit=limit,
                project=project,
                session=session,
                filters=Filters.of(),
                at=at,
                log=log,
                explore=None,
            )
        query = about.slate.query if isinstance(about, Hits) else ""
        with self._core.reading() as state:
            rows = np.array(self._core.rows(about), dtype=np.int64)
            max_tokens = (
                self._core.pack.count("tier-2-tokens") if budget_tokens is None else budget_tokens
            )
            stop_words = state.get_words(str(self._core.pack.settings["language"])).stop_words
            return write_narrative(
                state, rows, now, budget=max_tokens, query=query, stop_words=stop_words
            )

    @checked
    def profile(
        self,
        subject: str = USER,
        *,
        budget_tokens: Count | None = None,
        project: str | None = None,
        session: str | None = None,
        at: When | None = None,
    ) -> Narrative:
        """Write a prose description of one entity, for a prompt.

        Example: "The user is a software engineer who likes Python and lives in Oslo." The text uses
        the valid facts of the entity. For the user it also uses memories of the kinds personal,
        preference, goal and trait.

        Parameters
        ----------
        subject
            The entity, by any of its names.
        budget_tokens
            The maximum length in tokens; by default the setting ``tier-1-tokens``.
        project, session
            As in ``lab.recall``.
        at
            The instant at which facts must be valid; by default now.

        Returns
        -------
        The text, with the memories it uses.

        Raises
        ------
        UnknownName
            If the entity is unknown, except for the user.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> fact = lab.facts.add("Ada", "lives-in", object="Oslo")
        >>> print(lab.facts.profile("Ada"))
        Ada lives in Oslo.
        """
        now = self._core.instant(at)
        with self._core.reading() as state:
            pack, entities = self._core.pack, get_entities(state)
            number = entities.find_number(subject)
            if number is None and entity_key(subject) != USER:
                find_entity(entities, subject)
            entry = None if number is None else entities.entries[number]
            name = subject if entry is None else entry.name
            filters, _ = apply_switches(self._core.store, state, project, Filters.of())
            question = Question("", at=now, project=project, session=session, filters=filters)
            visible = self._core.recaller.population(state, question).mask
            max_tokens = pack.count("tier-1-tokens") if budget_tokens is None else budget_tokens
            rows = select_profile_rows(state, pack, name, now, visible=visible)
            return write_profile(
                state, rows, name, None if entry is None else entry.type, budget=max_tokens
            )

    def _called(self, state: State, name: str) -> str:
        """Return the canonical name of an entity, or raise UnknownName."""
        check_name("subject", name)
        entities = get_entities(state)
        return entities.entries[find_entity(entities, name)].name


_INTERVAL = ("valid_from", "valid_until")
"""The fields of the interval in which a fact is valid."""
