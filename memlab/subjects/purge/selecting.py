"""Selection of the memories to purge, by hand or by names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from memlab.errors import InputError, UnknownName
from memlab.kernel.slates import question_of
from memlab.kernel.state import State, entity_key
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.fact_rows import get_entities
from memlab.subjects.purge.planning import plan_purge, redact_slates
from memlab.subjects.purge.rewriting import select_affected_events


@dataclass(frozen=True)
class Choice:
    """The rows to purge, with the filters and entity names that selected them.

    ``filters`` name a project, session or viewer whose logged queries are purged too. ``entity``
    has the names of a purged entity.
    """

    rows: list[int]
    filters: dict[str, str] = field(default_factory=dict)
    entity: tuple[str, ...] = ()

    def remaining_rows(self, state: State) -> list[int]:
        """Return the rows of memories that are not yet purged."""
        return [row for row in self.rows if state.names["status"].value_at(row) != "purged"]


def choose_by_name(
    state: State,
    *,
    project: str | None,
    session: str | None,
    subject: str | None,
    creator: str | None,
) -> Choice:
    """Return the memories that match every name; raise UnknownName for an unused name."""
    # A subject is matched under every name of its entity. Queries are only purged with a project, session or creator.
    mask = np.ones(len(state), dtype=np.bool_)
    for column, name in (("project", project), ("session", session), ("creator", creator)):
        if name is not None:
            names = state.names[column]
            matching = (
                names.codes == names.code(name)
                if names.code(name) >= 0
                else np.zeros(len(state), dtype=np.bool_)
            )
            if not matching.any():
                raise UnknownName(column, name, names.vocabulary)
            mask &= matching
    entity: tuple[str, ...] = ()
    if subject is not None:
        entity = _names_of(state, subject)
        keys, names = {entity_key(name) for name in entity}, state.names["subject"]
        codes = [code for code, name in enumerate(names.vocabulary) if entity_key(name) in keys]
        matching = np.isin(names.codes, codes)
        if not matching.any():
            raise UnknownName("subject", subject, names.vocabulary)
        mask &= matching
    filters = (
        {} if subject is not None else {"project": project, "session": session, "viewer": creator}
    )
    rows: list[int] = np.flatnonzero(mask).tolist()
    entity_names = entity if project is session is creator is None else ()
    return Choice(
        rows, {name: value for name, value in filters.items() if value is not None}, entity_names
    )


def _names_of(state: State, subject: str) -> tuple[str, ...]:
    """Return all names of an entity, or only ``subject`` if the entity is unknown."""
    entities = get_entities(state)
    number = entities.find_number(subject)
    if number is None:
        return (subject,)
    listed = entities.summarize(number)
    return (listed.name, *listed.aliases)


def check_choice(memory: object, overdue: object, **names: object) -> None:
    """Raise InputError unless memories are chosen in exactly one way."""
    for name, value in names.items():
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise InputError(f"{name} must be a name, not {value!r:.60}.")
    if not isinstance(overdue, bool):
        raise InputError(f"overdue must be True or False, not {overdue!r:.60}.")
    if sum((memory is not None, any(value is not None for value in names.values()), overdue)) != 1:
        raise InputError(
            "purge takes exactly one of: memories, overdue=True, or names (project=, session=, subject=, creator=, "
            "which may be combined)."
        )


def select_person(
    store: Store, *, project: str | None, subject: str | None, creator: str | None
) -> tuple[list[int], list[dict[str, Any]]]:
    """Return the rows and logged queries that a purge by these names would remove."""
    state, journal = store.state, store.journal
    check_choice(None, False, project=project, subject=subject, creator=creator)
    chosen = choose_by_name(state, project=project, session=None, subject=subject, creator=creator)
    rows = chosen.remaining_rows(state)
    if not rows:
        return [], []
    gone = plan_purge(
        state,
        select_affected_events(journal.events()),
        np.array(sorted(rows), dtype=np.int64),
        seq=journal.head + 1,
        filters=chosen.filters,
        entity=chosen.entity,
    )
    redact_slates(journal.slates(), gone)
    return rows, list(_read_queries(store, gone.emptied))


def _read_queries(store: Store, decisions: set[int]) -> Iterator[dict[str, Any]]:
    """Yield the decision, time, query, and any project, session and viewer of each logged recall in ``decisions``."""
    # A sealed recall has its query in the journal and its time in its event alone.
    times = {event.seq: event.at for event in store.journal.events(kinds=("recall",))}
    for decision, blob in store.journal.slates():
        if decision in decisions:
            question = question_of(blob, decision=decision)
            fields = {"project": question.project, "session": question.session}
            fields["viewer"] = question.filters.get("viewer")
            yield {
                "decision": decision,
                "at": times[decision],
                "query": question.query,
                **{name: value for name, value in fields.items() if value is not None},
            }
