"""What one viewer sees of a state: the fold of the journal as if what is private to others had never been remembered.

A memory with the visibility "private" is seen by its creator alone. Its row stays, empty and purged, so that ids are
those of the lab; nothing else of it is there: no text, tag, entity, edge, use, cluster, event. Whatever is computed of
such a state is what it would be in a lab without those memories, and nobody who computes has to know of viewers.

Texts, vectors and postings are those of the whole state, which search only where a population admits rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.graph import NODE_KINDS, kind_of
from memlab.kernel.index import Words
from memlab.kernel.journal import Event
from memlab.kernel.state.columns import Texts
from memlab.kernel.state.events import EVENTS, body_field
from memlab.kernel.state.state import Contents, State
from memlab.kernel.state.visible import VisibleBody

__all__ = ["EVERYONE", "NOBODY", "Asker", "Seen", "audience_of", "audiences", "hidden_from", "same_edges", "seen_rows"]

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

Asker = Callable[[int], str | None]
"""As whom a logged recall, by its number, was asked."""

EVERYONE = ""
"""A viewer that nobody is: it sees what everyone does."""

NOBODY = "nobody"
"""Whose what is private without a creator is."""


def hidden_from(state: State, viewer: str) -> Flags | None:
    """bool[rows]: what is private to another than ``viewer``; None where nothing is."""
    visibility, creator = state.names["visibility"], state.names["creator"]
    if not visibility.held:
        return None
    hidden = visibility.codes == visibility.code("private")
    own = creator.code(viewer)
    if own >= 0:
        hidden &= creator.codes != own
    return hidden if hidden.any() else None


def audience_of(state: State, row: int) -> str:
    """Who sees a memory: everyone, or the creator of what is private."""
    if state.names["visibility"].at(row) != "private":
        return EVERYONE
    return state.names["creator"].at(row) or NOBODY


def audiences(state: State) -> list[str]:
    """Everyone, then who keeps something private: what one of them alone sees moves no cluster that others see."""
    visibility, creator = state.names["visibility"], state.names["creator"]
    if not visibility.held:
        return [EVERYONE]
    codes = np.unique(creator.codes[visibility.codes == visibility.code("private")]).tolist()
    return [EVERYONE, *sorted({NOBODY if code < 0 else creator.vocabulary[code] for code in codes})]


def seen_rows(state: State) -> Ints | None:
    """The rows that are there for whom the state is; None for all of them."""
    return np.flatnonzero(~state.hidden) if isinstance(state, Seen) else None


def same_edges(numbers: Ints, one: State, other: State) -> Ints:
    """The numbers in ``other`` of these edges of ``one``, -1 for what is not there. Both have the same rows."""
    source, target = (_same_nodes(ends, one, other) for ends in one.edges.ends(numbers))
    relation = other.edges.codes_of(one.edges.words_of(one.edges.relation[numbers]).tolist())
    found = np.full(len(numbers), -1, dtype=np.int64)
    there = np.flatnonzero((source >= 0) & (target >= 0))
    if not len(there):
        return found
    found[there] = other.edges.find(source[there], target[there], relation[there])
    # several edges may have the same ends and relation: the one that was made at the same time is meant
    made = one.edges.created[numbers]
    for place in there[(found[there] >= 0) & (other.edges.created[found[there]] != made[there])].tolist():
        met = other.edges.crossings(source[place : place + 1])
        same = met.edge[
            (met.neighbour == target[place]) & met.outgoing & (other.edges.created[met.edge] == made[place])
        ]
        same = same[other.edges.relation[same] == relation[place]]
        found[place] = same[0] if len(same) else found[place]
    return found


def _same_nodes(nodes: Ints, one: State, other: State) -> Ints:
    kinds = kind_of(nodes)
    found = nodes.copy()
    for place in np.unique(kinds[kinds > 0]).tolist():
        mine = np.flatnonzero(kinds == place)
        names = [name or "" for name in one.nodes.names(nodes[mine])]
        found[mine] = other.nodes.find(NODE_KINDS[place], names)
    return found


class _SeenTexts(Texts):
    """The texts of another column, without those of some rows."""

    def __init__(self, full: Texts, hidden: Flags) -> None:
        self._full, self._hidden = full, hidden

    def __len__(self) -> int:
        return len(self._full)

    def series(self, name: str) -> pl.Series:
        return self._full.series(name).set(pl.Series(self._hidden), None)

    def at(self, row: int) -> str | None:
        return None if self._hidden[row] else self._full.at(row)

    def take(self, rows: NDArray[np.int64]) -> list[str | None]:
        texts = self._full.take(rows)
        for place in np.flatnonzero(self._hidden[rows]).tolist():
            texts[place] = None
        return texts


class Seen(State):
    """What ``viewer`` sees of ``full``, kept up by ``follow``. ``hidden`` says which rows are not there."""

    def __init__(self, full: State, viewer: str) -> None:
        super().__init__(full.declared)
        self.full, self.viewer = full, viewer
        self.hidden: Flags = np.zeros(0, dtype=np.bool_)
        self.visible: dict[int, None] = {}
        """The events that the viewer sees, by number, in order."""
        self._after = 0

    @property
    def upto(self) -> int:
        """The last event that was read, whether the viewer sees it or not."""
        return self._after

    def follow(self, events: Iterable[Event], contents: Contents, hidden: Flags, asker: Asker) -> None:
        """Take in what has happened since. ``asker`` says as whom a logged recall was asked."""
        self.hidden = hidden
        self.fold(self._visible_events(events, asker), contents)
        self.seq, self._after = next(reversed(self.visible), 0), self.full.seq

    def _read_contents(self, contents: Contents) -> None:
        full = self.full
        self.texts, self.asks = _SeenTexts(full.texts, self.hidden), full.asks
        self.vectors, self.words, self.other_words = full.vectors, full.words, full.other_words

    def words_in(self, language: str) -> Words:
        return self.full.words_in(language)

    def memories(self) -> pl.DataFrame:
        return super().memories().filter(~self.hidden)

    def edge_frame(self) -> pl.DataFrame:
        """``edge`` is the number that the lab gave it."""
        frame = super().edge_frame()
        numbers = pl.Series("edge", same_edges(frame["edge"].to_numpy(), self, self.full))
        return frame.with_columns(numbers.replace(-1, None))

    # -- events as they are seen -----------------------------------------------------------------------------

    def _visible_events(self, events: Iterable[Event], asker: Asker) -> Iterator[Event]:
        for event in events:
            body, known = self._body(event, asker)
            if known:
                self.visible[event.seq] = None
            if known or "count" in body:
                if known:
                    body = self._numbered(body)
                yield Event(event.seq, event.at, event.kind, body)

    def visible_body(self, event: Event) -> dict[str, Any]:
        """The body of an event that the viewer sees, without what is hidden; edges have their own numbers."""
        return VisibleBody(event, self.hidden, self.full).body

    def _body(self, event: Event, asker: Asker) -> tuple[dict[str, Any], bool]:
        """The body without what is hidden, and whether the viewer sees the event."""
        found, declared = VisibleBody(event, self.hidden, self.full), body_field(event.kind)
        body, known = found.body, bool(found.seen or not found.unseen)
        kind, private = EVENTS.get(event.kind), declared.for_asker
        if kind is not None and kind.asks and not (found.seen or found.unseen):
            known = asker(event.seq) in (None, self.viewer)
        elif (
            private
            and (known or not private.isdisjoint(body))
            and asker(body[declared.decision]) not in (None, self.viewer)
        ):
            body = {name: value for name, value in body.items() if name not in private}
            known = bool(found.seen)
        for projection in self.of_kind(event.kind):
            shown = projection.shows(event.kind, body, viewer=self.viewer, seen=bool(found.seen))
            known = known if shown is None else shown
        return body, known

    def _numbered(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body with the numbers that its edges have here."""
        if "unlink" in body:
            here = same_edges(np.asarray(body["unlink"], dtype=np.int64), self.full, self)
            body = body | {"unlink": here[here >= 0].tolist()}
        if "strengthen" in body:
            given = body["strengthen"]
            here = same_edges(np.asarray(given["edges"], dtype=np.int64), self.full, self)
            kept = np.flatnonzero(here >= 0)
            weight = [given["weight"][place] for place in kept.tolist()]
            body = body | {"strengthen": {"edges": here[kept].tolist(), "weight": weight}}
        return body
