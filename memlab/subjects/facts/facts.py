"""``lab.facts``: facts as rows, and what is known in words for a prompt."""

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
from memlab.kernel.state import State, entity_key, validate_text
from memlab.kernel.verbs.core import Core, Memories, MemoryLike
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
from memlab.subjects.facts.entities import check_name, entity_named
from memlab.subjects.facts.narrative import USER, Narrative, about, narrative, profile

if TYPE_CHECKING:
    from memlab.subjects.facts.entities import LabEntities

__all__ = ["LabFacts"]


class LabFacts:
    """``lab.facts``: facts about entities, as a table and in words."""

    def __init__(self, core: Core, remembering: Remembering, questions: Questions) -> None:
        self._core, self._remembering, self._questions = core, remembering, questions

    @property
    def entities(self) -> LabEntities:
        """Who and what facts are about: declare, list, merge, split."""
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
        """Remember that ``subject`` has, by ``predicate``, a ``value``, or is joined to another entity, ``object``.

        Subject and object may be any name of an entity, in any case; a new name is a new entity. Without a ``text`` one
        is made: "Ada lives in Oslo". ``fields`` are those of ``remember``: confidence, source, valid_from, valid_until
        ... Without ``valid_from`` the fact holds since ``at``, which is now unless given. It begins with the status
        that the pack's setting ``fact-status`` says, and what it means for older facts is up to the pack's ``link`` and
        ``resolve``. Durable when it returns.

        >>> lab.facts.add("Ada", "lives-in", object="Oslo", confidence=0.95)   # doctest: +SKIP
        """
        if (value is None) == (object is None):
            raise InputError(
                "A fact has either a value or an object: a value is a text or a number, an object an entity."
            )
        if isinstance(value, bool | int | float):
            value = str(value).lower() if isinstance(value, bool) else str(value)
        names = {"subject": subject, "predicate": predicate, "value": value, "object": object}
        for what, name in names.items():
            if name is not None or what in ("subject", "predicate"):
                check_name(what, name)
        start, stop = (
            None
            if fields.get(name) is None
            else check_instant(to_micros(fields[name]), f"Field {name}: A time")
            for name in _INTERVAL
        )
        began = start if start is not None else self._core.instant(at)
        if stop is not None and stop <= began:
            raise InputError(
                f"A fact holds from valid_from to before valid_until, not from {from_micros(began).isoformat()} to "
                f"{from_micros(stop).isoformat()}."
            )
        if text is None:
            with self._core.reading() as state:
                entities = get_entities(state)
                called = [
                    entities.canonical_name(name) or name
                    for name in (subject, object)
                    if name is not None
                ]
            text = fact_text(called[0], predicate, str(called[1] if value is None else value))
        fields |= {name: held for name, held in names.items() if held is not None}
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
        """Facts as rows, by id: of an entity, by any of its names; of a predicate; of one status or several.

        With ``at``, those that held at that instant: ``valid_from <= at < valid_until``, and true at all (not
        retracted, deprecated or deleted; what was superseded held until then). That is the time *in the world*. When
        something became *known* is another time, ``created`` of ``lab.memories``: what was said in March of January is
        among the facts of January.

        Columns: ``id``, ``subject``, ``predicate``, ``object``, ``value``, ``confidence``, ``status``, ``source``,
        ``valid_from``, ``valid_until`` (null: it still holds), ``superseded_by``, ``access``, ``text``, and
        ``relevance``: what the pack's ``recall-score`` gives it now at full activation; null where that depends on
        more of a query.

        >>> lab.facts.frame(at="2024-06-01", subject="Ada")                                # doctest: +SKIP
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
    def retract(self, fact: MemoryLike, *, reason: str | None = None) -> None:
        """Say that a fact was never true: it takes part in nothing from now on, and only ``lab.facts.frame`` shows it.

        Told again, it is a new fact. What it superseded stays superseded. Where the pack forgets what is retracted, as
        ``factgraph`` does, the next pass of upkeep deletes it; ``lab.restore`` brings it back until it is purged.
        InputError for a memory that is no fact, or that is deleted or purged.
        """
        if reason is not None:
            refuse(validate_text(reason, where="reason"), "the reason")
        with self._core.store.writing() as tx:
            now = self._core.store.clock()
            change = retract(self._core.store.state, self._core.row(fact), now, reason)
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
        """What is known about a question, or what hits or memories say, as a line an entity, for a prompt.

        "USER CONTEXT: prefers dark (theme); uses Python (staged)." Nothing is made up: a fact is its predicate
        and value, another memory by its text; as many as fit. The entities that the query names come first, in its
        order; then each by its best memory. What is superseded, retracted or over is
        left out. A question is recalled, with ``limit``, ``project``, ``session`` and ``log`` as in ``recall``.
        ``budget_tokens`` is the setting ``tier-2-tokens`` unless given.

        >>> print(lab.facts.narrative("Where does Ada live?", budget_tokens=100))                # doctest: +SKIP
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
            )
        query = about.slate.query if isinstance(about, Hits) else ""
        with self._core.reading() as state:
            rows = np.array(self._core.rows(about), dtype=np.int64)
            most = (
                self._core.pack.count("tier-2-tokens") if budget_tokens is None else budget_tokens
            )
            stop_words = state.get_words(str(self._core.pack.settings["language"])).stop_words
            return narrative(state, rows, now, budget=most, query=query, stop_words=stop_words)

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
        """One entity in prose, for a prompt.

        "The user is a software engineer who likes Python and lives in Oslo.": made of its facts that hold, and for the
        user also of the memories of the kinds personal, preference, goal and trait. ``project`` and ``session`` are
        those of ``recall``. ``budget_tokens`` is the setting ``tier-1-tokens`` unless given. UnknownName for an entity
        of which nothing was ever said, except the user.
        """
        now = self._core.instant(at)
        with self._core.reading() as state:
            pack, entities = self._core.pack, get_entities(state)
            known = entities.find_number(subject)
            if known is None and entity_key(subject) != USER:
                entity_named(entities, subject)
            entry = None if known is None else entities.entries[known]
            called = subject if entry is None else entry.name
            filters, _ = apply_switches(self._core.store, state, project, Filters.of())
            question = Question("", at=now, project=project, session=session, filters=filters)
            among = self._core.recaller.population(state, question).mask
            most = pack.count("tier-1-tokens") if budget_tokens is None else budget_tokens
            rows = about(state, pack, called, now, among=among)
            return profile(state, rows, called, None if entry is None else entry.type, budget=most)

    def _called(self, state: State, name: str) -> str:
        check_name("subject", name)
        entities = get_entities(state)
        return entities.entries[entity_named(entities, name)].name


_INTERVAL = ("valid_from", "valid_until")
