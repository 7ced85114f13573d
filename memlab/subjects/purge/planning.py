"""What a purge takes out, and what stands in its place: aliases, cut texts, slates that hold the content no more.

What becomes of events is in ``rewriting``, and what a purge may change of the state in ``verifying``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.graph import NODE_KINDS
from memlab.kernel.journal import Event
from memlab.kernel.slates import Question, question_of, with_question
from memlab.kernel.state import (
    EVERYONE,
    PLACEHOLDER,
    Change,
    State,
    Tombstones,
    build_values,
    entity_key,
    normalize_text,
    prefix_speaker,
)
from memlab.subjects.purge.names import gather_names
from memlab.subjects.purge.questions import ALL, NOTHING, Quotes, owners_of, quotes_of

__all__ = ["Cut", "PurgePlan", "cut_of", "plan_purge", "purging", "redact_slates", "tombstones_of"]

_PLACEHOLDER = re.compile(re.escape(PLACEHOLDER) + r"\d+-\d+\]")

_PIECE = 12
"""Characters of a text by which it is looked for within others; a shorter one is only found whole."""

_AT_ONCE = 4_000
"""Questions that are looked through together."""

_UNREADABLE = {"where-text": "purged"}
"""The filter of a recall that cannot be asked again."""


@dataclass(frozen=True)
class Cut:
    """Takes purged texts out of others: ``exact`` where they are the whole, ``pieces`` by how they begin."""

    exact: frozenset[str]
    pieces: Mapping[str, tuple[str, ...]]

    def __call__(self, content: str) -> str:
        """A string without the purged texts that it is, begins or holds."""
        if normalize_text(content) in self.exact:
            return ""
        if len(content) < _PIECE or not self.pieces:
            return content
        begun = content.rstrip("\u2026. ")
        if len(begun) >= _PIECE and any(
            text.startswith(begun) for text in self.pieces.get(content[:_PIECE], ())
        ):
            return ""
        place = 0
        while place <= len(content) - _PIECE:
            found = next(
                (
                    t
                    for t in self.pieces.get(content[place : place + _PIECE], ())
                    if content.startswith(t, place)
                ),
                "",
            )
            content = content[:place] + content[place + len(found) :] if found else content
            place += 0 if found else 1
        return content

    def note(self, column: str, note: str | None) -> str | None:
        """A note without the purged texts; None where nothing is left, and for operations, of which no part is run."""
        if note is None:
            return None
        left = self(note)
        return None if column == "operations" and left != note else left or None


def cut_of(state: State, rows: NDArray[np.int64]) -> Cut:
    """What the texts of these rows are taken out of others by."""
    texts = [text for text in state.texts.to_list(rows) if text]
    speakers = state.names["speaker"]
    attributed = [
        prefix_speaker(state.texts.value_at(int(row)) or "", speakers.value_at(int(row)))
        for row in rows
        if state.texts.value_at(int(row))
    ]
    pieces: dict[str, tuple[str, ...]] = {}
    for text in sorted({text for text in texts if len(text) >= _PIECE}, key=len, reverse=True):
        pieces[text[:_PIECE]] = (*pieces.get(text[:_PIECE], ()), text)
    return Cut(frozenset(map(normalize_text, (*texts, *attributed))), pieces)


@dataclass(frozen=True)
class PurgePlan:
    """What is to go: the texts of these memories, and the names that no other memory ever had and nobody declared.

    A name that was declared stays unless it is a purged text as a whole. Entities are known by ``entity_key``, so that
    every spelling of one has one alias; ``clusters`` are the names that tell what only purged memories said.
    """

    ids: NDArray[np.int64]
    names: frozenset[str]
    entities: frozenset[str]
    clusters: frozenset[str]
    cut: Cut
    created: NDArray[np.int64]
    """When each memory was remembered, by row."""
    mark: str
    quotes: Quotes = NOTHING
    """What of a question tells of the purged memories."""
    hidden: Mapping[str, tuple[frozenset[str], Quotes]] = field(default_factory=dict)
    """``names`` and ``quotes`` by viewer, where memories stay that are private: what those bear counts for their
    creators alone."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """The project, session or viewer that goes as a whole: what was asked there goes too."""
    taken: frozenset[str] = frozenset()
    emptied: set[int] = field(default_factory=set)
    """The recalls whose questions were taken out, filled by ``redact_slates``."""
    askers: dict[int, str] = field(default_factory=dict)
    """As whom recalls were asked, by decision, filled by ``redact_slates``."""
    _aliases: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def asked_by(self, viewer: str | None) -> PurgePlan:
        """What goes of a recall that was asked as ``viewer``; of one that nobody in particular asked, this."""
        if viewer is None or not self.hidden:
            return self
        names, quotes = self.hidden.get(viewer, self.hidden[EVERYONE])
        return replace(self, names=names, quotes=quotes)

    def alias(self, name: str) -> str:
        """What stands for a name from now on: the same for the same, so that what was joined by it stays joined.

        Never a placeholder that is there already: an import may have brought those of another lab.
        """
        if _PLACEHOLDER.fullmatch(name):
            return name
        while name not in self._aliases:
            made = f"{PLACEHOLDER}{self.mark}-{next(self._numbers)}]"
            if made not in self.taken:
                self._aliases[name] = made
        return self._aliases[name]

    def within(self, ids: Sequence[int]) -> list[int]:
        """The places of purged memories among ``ids``."""
        found: list[int] = np.flatnonzero(
            np.isin(np.asarray(ids, dtype=np.int64), self.ids)
        ).tolist()
        return found

    def named(self, name: str | None, field: str = "") -> str | None:
        """The name, or what stands for it; ``field`` is whose name it is."""
        matches = len(self.filters) == 1 and field in self.filters and self.filters[field] == name
        return self.alias(name) if name is not None and (matches or name in self.names) else name

    def name(self, role: str, name: str) -> str:
        """The name, or what stands for it: that of a node, or one of the field ``role``."""
        if role in NODE_KINDS:
            return self.node(role, name)
        return self.named(name, role) or name

    def takes(self, question: str, **filters: str | None) -> bool:
        """Whether the words of a question go: they are or quote what is gone, or were asked of what goes."""
        return self.takes_whole(question, **filters) or self.quotes.within(question)

    def takes_whole(self, question: str, **filters: str | None) -> bool:
        """Whether a question goes that quotes nothing: it is what is gone, or was asked of what goes."""
        matches = bool(self.filters) and all(
            filters.get(name) == given for name, given in self.filters.items()
        )
        return matches or normalize_text(question) in self.cut.exact

    def node(self, kind: str, name: str, *, own: bool = False) -> str:
        """What a node is called now; ``own`` says that a purged memory was joined to it."""
        if kind == "entity":
            key = _key(name)
            return self.alias(key) if own or key in self.entities else name
        also = kind == "cluster" and name in self.clusters
        return self.alias(name) if own or also or name in self.names else name


def plan_purge(
    state: State,
    events: Iterable[Event],
    rows: NDArray[np.int64],
    *,
    seq: int,
    filters: Mapping[str, str] | None = None,
    entity: Collection[str] = (),
) -> PurgePlan:
    """What the purge of ``rows`` by the event ``seq`` takes out.

    ``filters`` names the project, session or viewer that goes as a whole, ``entity`` all names of the one that goes:
    they go even where a person declared them, unless a memory that stays bears them.
    """
    ids = rows + 1
    known, owners = _keys(entity), owners_of(state)
    held, cut = gather_names(events, ids, owners), cut_of(state, rows)
    every = held.own.union(held.declared, *held.others.values())
    named_alike = {
        name for name in held.declared if normalize_text(name) in cut.exact or _key(name) in known
    }
    # an entity is one under every spelling
    others, declared = _keys(held.entities), _keys(held.by_hand - named_alike)
    go = frozenset(held.own - held.declared | named_alike)
    quotes, shown = quotes_of(state, rows, entity, owners), held.others[ALL]
    creators = state.names["creator"]
    hidden = {
        viewer: (go - shown - held.others[creators.code(viewer)], found)
        for viewer, found in quotes.items()
        if viewer is not None
    }
    return PurgePlan(
        ids,
        go.difference(*held.others.values()),
        frozenset(
            (_keys(held.own_entities) - declared | _keys(held.by_hand & named_alike)) - others
        ),
        frozenset(_telling(state, rows)),
        cut,
        np.array(state.numbers["created"].values),
        str(seq),
        quotes[None],
        hidden if (owners != ALL).any() else {},
        filters or {},
        frozenset(name for name in every if _PLACEHOLDER.fullmatch(name)),
    )


def _keys(names: Iterable[str]) -> set[str]:
    return set(map(_key, names))


def _key(name: str) -> str:
    """What all spellings of an entity's name share; an imported name may be none, and stays what it is."""
    try:
        return entity_key(name)
    except InputError:
        return name


def _telling(state: State, rows: NDArray[np.int64]) -> set[str]:
    """The names of clusters in which a word stands that only the memories in ``rows`` have said."""
    found = set()
    for name in state.nodes.vocabularies()["cluster"]:
        posted = [held for held, _ in state.words.hits(state.words.query(name)).parts]
        if any(len(holders) and np.isin(holders, rows).all() for holders in posted):
            found.add(name)
    return found


def purging(state: State, rows: NDArray[np.int64], now: int) -> tuple[Change, dict[str, Any]]:
    """What the event of a purge changes in the state, and the tombstones that it leaves."""
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
    """What was purged from this lab: imports ask it."""
    return state.projection(Tombstones)


# -- slates -----------------------------------------------------------------------------------------------------


def redact_slates(slates: Iterable[tuple[int, bytes]], gone: PurgePlan) -> dict[int, bytes]:
    """The slates of recalls that hold something of what is gone, by decision, without it.

    A question that was or quotes a purged text, or was asked in a purged project or session, loses its words and its
    vector, and cannot be asked again. Ids, features and scores stay.
    """
    found: dict[int, bytes] = {}
    waiting: list[tuple[int, bytes, Question]] = []
    for decision, blob in slates:
        waiting.append((decision, blob, question_of(blob, decision=decision)))
        if len(waiting) == _AT_ONCE:
            found |= _redacted(waiting, gone)
            waiting = []
    return found | _redacted(waiting, gone)


def _redacted(slates: Sequence[tuple[int, bytes, Question]], gone: PurgePlan) -> dict[int, bytes]:
    viewers = [asked.filters.get("viewer") for _, _, asked in slates]
    gone.askers.update(
        {
            decision: one
            for (decision, *_), one in zip(slates, viewers, strict=True)
            if one is not None
        }
    )
    quoting: set[int] = set()
    for viewer in set(viewers):  # together: a question by itself would take as long as a hundred
        queries = {
            decision: one.query
            for (decision, _, one), of in zip(slates, viewers, strict=True)
            if of == viewer
        }
        quoting |= gone.asked_by(viewer).quotes.within_any(queries)
    found = {}
    for (decision, blob, asked), viewer in zip(slates, viewers, strict=True):
        plan = gone.asked_by(viewer)
        changed = msgspec.structs.replace(
            asked,
            project=plan.named(asked.project, "project"),
            session=plan.named(asked.session, "session"),
            branch=plan.named(asked.branch),
            filters=_filters(asked.filters, plan),
        )
        where = {"project": asked.project, "session": asked.session, "viewer": viewer}
        if asked.query and (decision in quoting or plan.takes_whole(asked.query, **where)):
            gone.emptied.add(decision)
            emptied = {
                "query": "",
                "vector": bytes(len(asked.vector)),
                "filters": _unreadable(asked.filters, plan),
            }
            changed = msgspec.structs.replace(changed, **emptied)
        if changed != asked:
            found[decision] = with_question(blob, changed, decision=decision)
    return found


def _unreadable(filters: Mapping[str, Any], gone: PurgePlan) -> dict[str, Any]:
    """Filters with which nothing is asked again. As whom it was asked stays: it says who may see the recall."""
    viewer = filters.get("viewer")
    return {**_UNREADABLE, **({} if viewer is None else {"viewer": gone.named(viewer, "viewer")})}


def _filters(filters: Mapping[str, Any], gone: PurgePlan) -> dict[str, Any]:
    """What a caller admitted: names that are gone have placeholders; an expression that holds one is dropped."""
    text = next(
        (filters[name] for name in ("where", "where-text") if isinstance(filters.get(name), str)),
        "",
    )
    if text and (
        gone.cut(text) != text or any(len(name) > 3 and name in text for name in gone.names)
    ):
        return _unreadable(filters, gone)
    return {
        name: [gone.named(word) for word in given]
        if isinstance(given, list)
        else gone.named(given, name)
        if isinstance(given, str) and name != "where"
        else given
        for name, given in filters.items()
    }
