"""The plan of a purge: names to replace, texts to cut and logged queries to empty.

``rewriting`` applies the plan to events, and ``verifying`` compares the states before and after.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import msgspec
import numpy as np

from memlab.errors import InputError
from memlab.kernel.base.arrays import Ints
from memlab.kernel.graph import NODE_KINDS
from memlab.kernel.journal import Event
from memlab.kernel.slates import Question, question_of, with_question
from memlab.kernel.state import (
    EVERYONE,
    PLACEHOLDER,
    Change,
    State,
    Tombstones,
    add_prefix,
    build_values,
    entity_key,
    normalize_text,
)
from memlab.subjects.purge.names import gather_names
from memlab.subjects.purge.questions import ALL, NOTHING, Quotes, owners_of, quotes_of

# The form of a placeholder: the number of the purge's event, and a running number.
_PLACEHOLDER = re.compile(re.escape(PLACEHOLDER) + r"\d+-\d+\]")

_PIECE = 12
"""The length of the beginning by which a purged text is found in a string; a shorter text must be the whole string."""

_AT_ONCE = 4_000
"""The number of logged queries that are searched together: searching one takes as long as a hundred."""

_UNREADABLE = {"where-text": "purged"}
"""The filter of a recall whose query was removed, so that the recall cannot be repeated."""


@dataclass(frozen=True)
class Cut:
    """A callable that removes purged texts from other strings.

    ``exact`` has the normalized texts. ``pieces`` has the texts of at least 12 characters, by their
    first 12.
    """

    exact: frozenset[str]
    pieces: Mapping[str, tuple[str, ...]]

    def __call__(self, content: str) -> str:
        """Return a string without purged texts, or "" for the beginning of a purged text."""
        if normalize_text(content) in self.exact:
            return ""
        if len(content) < _PIECE or not self.pieces:
            return content
        begun = content.rstrip("\u2026. ")
        if len(begun) >= _PIECE and any(
            text.startswith(begun) for text in self.pieces.get(content[:_PIECE], ())
        ):
            return ""
        position = 0
        while position <= len(content) - _PIECE:
            texts = self.pieces.get(content[position : position + _PIECE], ())
            match = next((text for text in texts if content.startswith(text, position)), "")
            content = content[:position] + content[position + len(match) :] if match else content
            position += 0 if match else 1
        return content

    def note(self, column: str, note: str | None) -> str | None:
        """Return a note without purged texts, or None if nothing remains.

        Operations are code, so one that contains a purged text is removed as a whole.
        """
        if note is None:
            return None
        left = self(note)
        return None if column == "operations" and left != note else left or None


def cut_of(state: State, rows: Ints) -> Cut:
    """Return a function that removes the texts of some rows from strings."""
    pairs = zip(state.texts.to_list(rows), state.prefixes(rows.tolist()), strict=True)
    texts, attributed = [], []
    for text, prefix in pairs:
        if text:
            texts.append(text)
            attributed.append(add_prefix(text, prefix))
    pieces: dict[str, tuple[str, ...]] = {}
    for text in sorted({text for text in texts if len(text) >= _PIECE}, key=len, reverse=True):
        pieces[text[:_PIECE]] = (*pieces.get(text[:_PIECE], ()), text)
    return Cut(frozenset(map(normalize_text, (*texts, *attributed))), pieces)


@dataclass(frozen=True)
class PurgePlan:
    """The content that a purge removes: texts of memories, and names that only they have.

    A declared name stays unless it equals a purged text. Entities are compared by ``entity_key``,
    so that all spellings of a name get the same placeholder.

    Attributes
    ----------
    ids
        The ids of the purged memories.
    names
        The names to replace, except those of entities and clusters.
    entities
        The keys of the entities to replace.
    clusters
        The names of clusters with a word that only purged memories contain.
    cut
        The function that removes the purged texts from other strings.
    created
        The time of creation of each memory, by row.
    mark
        The number of the purge's event, which is part of each placeholder.
    quotes
        The words and characters by which a query quotes purged memories.
    hidden
        ``names`` and ``quotes`` by viewer, if private memories stay: their names count only for
        their creators.
    filters
        The project, session or viewer that is purged as a whole, with all queries.
    placeholders
        The placeholders that the lab already has, perhaps from another lab.
    emptied
        The recalls whose queries were removed; filled by ``redact_slates``.
    askers
        The viewer of each recall, by decision; filled by ``redact_slates``.
    """

    ids: Ints
    names: frozenset[str]
    entities: frozenset[str]
    clusters: frozenset[str]
    cut: Cut
    created: Ints
    mark: str
    quotes: Quotes = NOTHING
    hidden: Mapping[str, tuple[frozenset[str], Quotes]] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    placeholders: frozenset[str] = frozenset()
    emptied: set[int] = field(default_factory=set)
    askers: dict[int, str] = field(default_factory=dict)
    _aliases: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def for_viewer(self, viewer: str | None) -> PurgePlan:
        """Return the purge plan for recalls of one viewer or for recalls without a viewer."""
        if viewer is None or not self.hidden:
            return self
        names, quotes = self.hidden.get(viewer, self.hidden[EVERYONE])
        return replace(self, names=names, quotes=quotes)

    def alias(self, name: str) -> str:
        """Return the placeholder of a name, which is the same wherever the name occurs.

        Memories that shared the name then share the placeholder. A name that is a placeholder
        already stays, and a placeholder that came from another lab is not assigned again.
        """
        if _PLACEHOLDER.fullmatch(name):
            return name
        while name not in self._aliases:
            placeholder = f"{PLACEHOLDER}{self.mark}-{next(self._numbers)}]"
            if placeholder not in self.placeholders:
                self._aliases[name] = placeholder
        return self._aliases[name]

    def within(self, ids: Sequence[int]) -> list[int]:
        """Return the positions of purged memories in ``ids``."""
        positions: list[int] = np.flatnonzero(
            np.isin(np.asarray(ids, dtype=np.int64), self.ids)
        ).tolist()
        return positions

    def replace_name(self, name: str | None, field: str = "") -> str | None:
        """Return the name in a field, or the placeholder of a purged name."""
        matches = len(self.filters) == 1 and field in self.filters and self.filters[field] == name
        return self.alias(name) if name is not None and (matches or name in self.names) else name

    def name(self, role: str, name: str) -> str:
        """Return a name or its placeholder; ``role`` is a kind of node or of field."""
        if role in NODE_KINDS:
            return self.node(role, name)
        return self.replace_name(name, role) or name

    def removes_query(self, query: str, **filters: str | None) -> bool:
        """Return whether a purge removes a query for its text, its filters or a quotation."""
        return self.removes_exactly(query, **filters) or self.quotes.within(query)

    def removes_exactly(self, query: str, **filters: str | None) -> bool:
        """Return whether a purge removes a query because of its whole text or its filters."""
        matches = bool(self.filters) and all(
            filters.get(name) == purged for name, purged in self.filters.items()
        )
        return matches or normalize_text(query) in self.cut.exact

    def node(self, kind: str, name: str, *, own: bool = False) -> str:
        """Return the name of a node, or the placeholder of a purged name.

        ``own`` is true if an edge joins a purged memory to the node.
        """
        if kind == "entity":
            key = _key(name)
            return self.alias(key) if own or key in self.entities else name
        also = kind == "cluster" and name in self.clusters
        return self.alias(name) if own or also or name in self.names else name


def plan_purge(
    state: State,
    events: Iterable[Event],
    rows: Ints,
    *,
    seq: int,
    filters: Mapping[str, str] | None = None,
    entity: Collection[str] = (),
) -> PurgePlan:
    """Return the plan for purging ``rows`` by the event ``seq``.

    ``filters`` names a project, session or viewer that is purged as a whole, ``entity`` all names
    of a purged entity. The names of such an entity are replaced even if declared, unless another
    memory has them.
    """
    ids = rows + 1
    entity_keys, owners = _keys(entity), owners_of(state)
    bearers, cut = gather_names(events, ids, owners), cut_of(state, rows)
    all_names = bearers.own.union(bearers.declared, *bearers.others.values())
    purged_declarations = {
        name
        for name in bearers.declared
        if normalize_text(name) in cut.exact or _key(name) in entity_keys
    }
    # Entities are compared by key, because an entity is the same under every spelling.
    others, declared = _keys(bearers.entities), _keys(bearers.by_hand - purged_declarations)
    purged_names = frozenset(bearers.own - bearers.declared | purged_declarations)
    quotes, public_names = quotes_of(state, rows, entity, owners), bearers.others[ALL]
    creators = state.names["creator"]
    hidden = {
        viewer: (purged_names - public_names - bearers.others[creators.code(viewer)], viewer_quotes)
        for viewer, viewer_quotes in quotes.items()
        if viewer is not None
    }
    return PurgePlan(
        ids,
        purged_names.difference(*bearers.others.values()),
        frozenset(
            (_keys(bearers.own_entities) - declared | _keys(bearers.by_hand & purged_declarations))
            - others
        ),
        frozenset(_revealing_clusters(state, rows)),
        cut,
        np.array(state.numbers["created"].values),
        str(seq),
        quotes[None],
        hidden if (owners != ALL).any() else {},
        filters or {},
        frozenset(name for name in all_names if _PLACEHOLDER.fullmatch(name)),
    )


def _keys(names: Iterable[str]) -> set[str]:
    """Return the keys of entities with these names."""
    return set(map(_key, names))


def _key(name: str) -> str:
    """Return the key that is common to all spellings of an entity's name.

    An invalid name of an import is its own key.
    """
    try:
        return entity_key(name)
    except InputError:
        return name


def _revealing_clusters(state: State, rows: Ints) -> set[str]:
    """Return the names of clusters that contain a word which only purged memories use."""
    clusters = set()
    for name in state.nodes.vocabularies()["cluster"]:
        posted = [
            rows_with_word for rows_with_word, _ in state.words.hits(state.words.query(name)).parts
        ]
        if any(len(holders) and np.isin(holders, rows).all() for holders in posted):
            clusters.add(name)
    return clusters


def purge_change(state: State, rows: Ints, now: int) -> tuple[Change, dict[str, Any]]:
    """Return the state change and the tombstones of a purge event."""
    edges = state.edges
    purged = np.zeros(len(state), dtype=np.bool_)
    purged[rows] = True
    alive = np.flatnonzero(edges.alive)
    ends = np.stack([edges.source[alive], edges.target[alive]])
    memories = ends < len(state)
    touched = (purged[np.where(memories, ends, 0)] & memories).any(axis=0)
    nothing: list[None] = [None] * len(rows)
    columns = {"status": "purged", "changed": now, "superseded_by": None, "tags": nothing}
    change = Change(
        unlink=alive[touched].tolist(), set=[build_values((rows + 1).tolist(), **columns)]
    )
    texts = [text for text in state.texts.to_list(rows) if text]
    origins = [
        origin for row in rows if (origin := state.names["origin"].value_at(int(row))) is not None
    ]
    return change, tombstones_of(state).build_body(texts, origins)


def tombstones_of(state: State) -> Tombstones:
    """Return the register of digests by which imports recognise purged texts."""
    return state.projection(Tombstones)


def redact_slates(slates: Iterable[tuple[int, bytes]], gone: PurgePlan) -> dict[int, bytes]:
    """Return the redacted slates of recalls that contained purged content, by decision.

    A query that equals or quotes a purged text, or was asked in a purged project or session, loses
    its words and its vector, and cannot be repeated. Ids, features and scores stay.
    """
    redacted: dict[int, bytes] = {}
    waiting: list[tuple[int, bytes, Question]] = []
    for decision, blob in slates:
        waiting.append((decision, blob, question_of(blob, decision=decision)))
        if len(waiting) == _AT_ONCE:
            redacted |= _redact_batch(waiting, gone)
            waiting = []
    return redacted | _redact_batch(waiting, gone)


def _redact_batch(
    slates: Sequence[tuple[int, bytes, Question]], gone: PurgePlan
) -> dict[int, bytes]:
    """Return by decision the slates of a batch that contained purged content, after redaction."""
    viewers = [question.filters.get("viewer") for _, _, question in slates]
    gone.askers.update(
        {
            decision: asker
            for (decision, *_), asker in zip(slates, viewers, strict=True)
            if asker is not None
        }
    )
    quoting: set[int] = set()
    # The queries of one viewer are searched together, because a single one would take as long as a hundred.
    for viewer in set(viewers):
        queries = {
            decision: question.query
            for (decision, _, question), asker in zip(slates, viewers, strict=True)
            if asker == viewer
        }
        quoting |= gone.for_viewer(viewer).quotes.within_any(queries)
    redacted = {}
    for (decision, blob, question), viewer in zip(slates, viewers, strict=True):
        plan = gone.for_viewer(viewer)
        changed = msgspec.structs.replace(
            question,
            project=plan.replace_name(question.project, "project"),
            session=plan.replace_name(question.session, "session"),
            branch=plan.replace_name(question.branch),
            filters=_filters(question.filters, plan),
        )
        where = {"project": question.project, "session": question.session, "viewer": viewer}
        if question.query and (
            decision in quoting or plan.removes_exactly(question.query, **where)
        ):
            gone.emptied.add(decision)
            emptied = {
                "query": "",
                "vector": bytes(len(question.vector)),
                "filters": _unreadable(question.filters, plan),
            }
            changed = msgspec.structs.replace(changed, **emptied)
        if changed != question:
            redacted[decision] = with_question(blob, changed, decision=decision)
    return redacted


def _unreadable(filters: Mapping[str, Any], gone: PurgePlan) -> dict[str, Any]:
    """Return filters with the mark that their recall cannot be repeated.

    The viewer stays, because it decides who may see the recall.
    """
    viewer = filters.get("viewer")
    return {
        **_UNREADABLE,
        **({} if viewer is None else {"viewer": gone.replace_name(viewer, "viewer")}),
    }


def _filters(filters: Mapping[str, Any], gone: PurgePlan) -> dict[str, Any]:
    """Return a recall's filters, with placeholders for purged names.

    An expression that contains a purged name or text is dropped.
    """
    text = next(
        (filters[name] for name in ("where", "where-text") if isinstance(filters.get(name), str)),
        "",
    )
    if text and (
        gone.cut(text) != text or any(len(name) > 3 and name in text for name in gone.names)
    ):
        return _unreadable(filters, gone)
    return {
        name: [gone.replace_name(word) for word in value]
        if isinstance(value, list)
        else gone.replace_name(value, name)
        if isinstance(value, str) and name != "where"
        else value
        for name, value in filters.items()
    }
