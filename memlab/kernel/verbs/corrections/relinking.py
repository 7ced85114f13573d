"""The edges of an edited memory: which hold for its new words, which go, and what linking makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from memlab.kernel.journal import Event, Journal, JournalView
from memlab.kernel.schema import RELATIONS
from memlab.kernel.state import Change, State, edges_of
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.linking import comparing

__all__ = ["edges_after", "linked_again", "word_edges"]

_BY_WORDS = tuple(RELATIONS.index(name) for name in ("similar-to", "updates", "contradicts"))
"""Relations that say how two texts compare: another text is compared again."""
_RELATED = RELATIONS.index("relates-to")
_NOT_CARRIED = tuple(RELATIONS.index(name) for name in ("supersedes",))
_DERIVED = RELATIONS.index("derived-from")


def edges_after(state: State, journal: Journal | JournalView, row: int, id: int) -> Change:
    """Return the change of edges when the memory ``id`` takes the place of the one in ``row``.

    Edges that were stated (a chain of turns, a link by hand, a verifier's relation) or strengthened by use hold for the
    new memory too. Edges that linking made of the old words go.
    """
    met = state.edges.crossings(np.array([row]))
    gone = word_edges(state, journal, row)
    statuses = state.names["status"]
    source, target, relation, weight = [], [], list[str](), list[float]()
    for place, edge in enumerate(met.edge.tolist()):
        code, other, outgoing = int(state.edges.relation[edge]), int(met.neighbour[place]), bool(met.outgoing[place])
        if edge in gone or other >= len(state) or code in _NOT_CARRIED or (code == _DERIVED and not outgoing):
            continue
        if other == row or statuses.at(other) in ("superseded", "purged"):
            continue
        ends = (id, other + 1) if outgoing else (other + 1, id)
        source.append(ends[0])
        target.append(ends[1])
        relation.append(str(state.edges.words_of(np.array([code]))[0]))
        weight.append(float(state.edges.weight[edge]))
    edges = edges_of(source, target, relation, weight) if source else None
    return Change(edges=edges, unlink=sorted(gone))


def word_edges(state: State, journal: Journal | JournalView, row: int) -> set[int]:
    """Return the numbers of the edges that hold for the words of the memory in ``row`` alone."""
    met = state.edges.crossings(np.array([row]))
    memory = met.neighbour < len(state)
    relation = state.edges.relation[met.edge]
    gone = {int(edge) for edge in met.edge[memory & np.isin(relation, _BY_WORDS)]}
    related = met.edge[memory & (relation == _RELATED) & (state.edges.reinforcements[met.edge] == 0)]
    return gone | {int(edge) for edge in related if _was_compared(state, journal, int(edge))}


def _was_compared(state: State, journal: Journal | JournalView, edge: int) -> bool:
    """Whether linking made this edge, and no person, verifier or import."""
    made = int(state.edges.created[edge])
    ends = int(state.edges.source[edge]) + 1, int(state.edges.target[edge]) + 1
    for event in _made_at(journal, made, state.seq):
        edges = event.body.get("edges")
        if not isinstance(edges, dict) or isinstance(edges["relation"], str):
            continue  # one relation for all edges: the first labs wrote so what a person linked
        if event.kind == "link" and event.body.get("by") != "hand":
            pairs = zip(edges["source"], edges["target"], edges["relation"], strict=True)
            if (*ends, "relates-to") in pairs:
                return True
    return False


def _made_at(journal: Journal | JournalView, instant: int, head: int) -> Iterator[Event]:
    after, upto = journal.last_at(instant - 1), min(journal.last_at(instant), head)
    yield from journal.events(after, upto=upto, kinds=("link",))


def linked_again(core: Core, id: int) -> tuple[dict[str, Any], list[str]]:
    """Return the body of the event that links the new words as the live pack says, and a note for each supersession.

    The state must hold the memory. What a person corrected stays: where linking would merge it into another memory or
    keep the other one in its place, both stay, joined by an edge.
    """
    if core.pack.settings["linking"] == "off":
        return {}, []
    linked = comparing(core).after(range(id, id + 1))
    if not linked.outcomes:
        return {}, []
    outcome, other = linked.outcomes[0], linked.standing[0]
    if outcome == "added":
        return linked.body, [f"Memory {goes} is superseded. {why}" for _, _, goes, why in linked.superseded]
    if outcome == "merged":
        note = f"Memory {other} says the same; both stay, joined by a similar-to edge."
    else:
        note = f"Memory {other} says otherwise; both stay, joined by a contradicts edge."
    relation = "similar-to" if outcome == "merged" else "contradicts"
    return Change(edges=edges_of([id], [other], relation, 1.0)).body(), [note]
