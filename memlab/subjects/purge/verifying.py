"""What a purge may change of a state, and nothing else: asked of the journal as rewritten before it takes the place of
the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.graph import NODE_KINDS, node_kinds, node_numbers
from memlab.kernel.schema import MEMORY, RELATIONS
from memlab.kernel.state import PLACEHOLDER, Entities, EntitySummary, State, Tombstones
from memlab.kernel.verbs.fact_rows import get_entities
from memlab.subjects.purge.planning import Cut, cut_of
from memlab.subjects.purge.rewriting import without_redactable

__all__ = ["differences"]

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]

_SET = ("status", "changed", "superseded_by")
"""What the event of a purge sets in the rows that it purges."""

_MENTIONS = RELATIONS.index("mentions")


def differences(before: State, after: State, rows: Rows) -> list[str]:
    """Where the state folded after a purge of ``rows`` is not the one ``before`` without their content, in sentences.

    Empty where all is well: memories that were not purged are the same but for notes that quoted a purged text; edges
    keep numbers, ends, relations and weights, and those of purged memories are gone; names stand or have placeholders;
    registers tell the same. Column by column: it costs about what a fold of the edges and columns does.
    """
    if len(before) != len(after):
        return [f"There were {len(before):,} memories, and there are {len(after):,}."]
    gone = np.zeros(len(before), dtype=np.bool_)
    gone[rows] = True
    return [
        *_of_memories(before, after, gone, cut_of(before, rows)),
        *_of_edges(before, after, gone),
        *_of_entities(before, after, gone),
        *_of_registers(before, after),
    ]


# -- memories ---------------------------------------------------------------------------------------------------


def _of_memories(before: State, after: State, gone: Flags, cut: Cut) -> Iterator[str]:
    for name, column in before.numbers.items():
        counted = ~gone if name in _SET else np.ones_like(gone)
        old, new = column.values, after.numbers[name].values
        yield from _differences(name, counted & (old != new) & ~((old != old) & (new != new)))
    yield from _differences("uses", (before.uses.values != after.uses.values).any(axis=1))
    for name, names in before.names.items():
        words = np.array(
            [after.names[name].code(word) for word in (*names.vocabulary, None)], dtype=np.int64
        )
        codes = after.names[name].codes
        yield from _differences(name, ~gone & (words[names.codes] != codes))
        if name == "status":
            yield from _differences(name, gone & (codes != after.names[name].code("purged")))
        elif MEMORY[name].storage == "name":
            yield from _differences(f"{name} of a purged memory", gone & (codes >= 0))
    for name, lists in before.lists.items():
        expected = {row: items for row, items in lists.items() if not gone[row]}
        found = dict(after.lists[name].items())
        if expected != found:
            rows = [
                row for row in expected.keys() | found.keys() if expected.get(row) != found.get(row)
            ]
            yield from _differences(name, np.isin(np.arange(len(gone)), rows))
    for name, notes in before.notes.items():
        if notes.has_values or after.notes[name].has_values:
            differ = notes.series("").ne_missing(after.notes[name].series("")).to_numpy() | gone
            wrong = np.zeros_like(gone)
            for row in np.flatnonzero(differ).tolist():
                wrong[row] = after.notes[name].value_at(row) != (
                    None if gone[row] else cut.note(name, notes.value_at(row))
                )
            yield from _differences(name, wrong)
    for name, texts, now in (("text", before.texts, after.texts), ("ref", before.refs, after.refs)):
        yield from _differences(
            name, ~gone & texts.series("").ne_missing(now.series("")).to_numpy()
        )
        yield from _differences(
            f"{name} of a purged memory", gone & (now.series("").fill_null("") != "").to_numpy()
        )
    yield from _differences("words", ~gone & (before.words.lengths != after.words.lengths))
    purged = np.flatnonzero(gone)
    if len(after.vectors) != len(before.vectors):
        yield f"There were {len(before.vectors):,} vectors, and there are {len(after.vectors):,}."
    elif after.vectors.take(purged).any():
        yield "A vector of a purged memory is still there."


# -- edges ------------------------------------------------------------------------------------------------------


def _of_edges(before: State, after: State, gone: Flags) -> Iterator[str]:
    old, new = before.edges, after.edges
    if len(old) != len(new):
        yield f"There were {len(old):,} edges, and there are {len(new):,}."
        return
    ends, ended = np.stack([old.source, old.target]), np.stack([new.source, new.target])
    memories = ends < len(gone)
    touched = (gone[np.where(memories, ends, 0)] & memories).any(axis=0)
    if wrong := int(np.count_nonzero(new.alive != (old.alive & ~touched))):
        yield f"{wrong:,} edges are there that should not be, or are not."
    for name in ("relation", "weight", "reinforcements", "created"):
        if wrong := int(np.count_nonzero(getattr(old, name) != getattr(new, name))):
            yield f"{wrong:,} edges have another {name}."
    alive = new.alive & old.alive
    if (node_kinds(ends) != node_kinds(ended)).any() or (ends != ended)[memories].any():
        yield "Edges have other ends."
        return
    names, now = before.nodes.vocabularies(), after.nodes.vocabularies()
    for kind in NODE_KINDS[1:]:
        mine = (node_kinds(ends) == NODE_KINDS.index(kind)) & alive
        pairs = np.unique(
            np.stack([node_numbers(ends[mine]), node_numbers(ended[mine])], axis=1), axis=0
        )
        was = [names[kind][number] for number in pairs[:, 0].tolist()]
        is_ = [now[kind][number] for number in pairs[:, 1].tolist()]
        other = [
            one
            for one, two in zip(was, is_, strict=True)
            if one != two and not two.startswith(PLACEHOLDER)
        ]
        if other:
            yield f"{len(other):,} nodes of kind {kind} have another name, such as {other[0]!r}."
        if len(set(was)) != len(was):
            yield f"Nodes of kind {kind} fell apart: one name has become several."


# -- registers --------------------------------------------------------------------------------------------------


def _of_entities(before: State, after: State, gone: Flags) -> Iterator[str]:
    """Entities that others mention stand as they stood. How often they are mentioned is a count of what is left."""
    old, new = _listed(before), _listed(after)
    edges = before.edges
    mentions = np.flatnonzero(edges.alive & (edges.relation == _MENTIONS))
    source, target = edges.source[mentions], edges.target[mentions]
    held = target[(source < len(gone)) & ~gone[np.where(source < len(gone), source, 0)]]
    named = set(before.nodes.names(np.unique(held)))
    for column in ("subject", "object"):
        codes = np.unique(before.names[column].codes[~gone])
        named |= {before.names[column].vocabulary[code] for code in codes.tolist() if code >= 0}
    for name, was in old.items():
        now = new.get(name)
        if now is None:
            if name in named:
                yield f"The entity {name!r} is gone."
            continue
        if now.type != was.type:
            yield f"The entity {name!r} is of type {now.type}, and was of {was.type}."
        if was.merged_into in new and now.merged_into != was.merged_into:
            yield f"The entity {name!r} is merged into {now.merged_into!r}, and was into {was.merged_into!r}."
    for name in new.keys() - old.keys():
        yield f"There is an entity {name!r}, and was none."


def _listed(state: State) -> dict[str, EntitySummary]:
    every = get_entities(state).summarize_all()
    return {one.name: one for one in every if not one.name.startswith(PLACEHOLDER)}


def _of_registers(before: State, after: State) -> Iterator[str]:
    for name, one in before.projections.items():
        if name in (Entities.name, Tombstones.name):
            continue
        was, now = (
            without_redactable(one.dumped, dumped.dump())
            for dumped in (one, after.projections[name])
        )
        if was != now:
            yield f"The register {name} tells something else."
    was, now = (state.projection(Tombstones).dump() for state in (before, after))
    known = {key: set(hashes) for key, hashes in now["hashes"]}
    if not set(was["origins"]) <= set(now["origins"]) or any(
        not set(hashes) <= known.get(key, set()) for key, hashes in was["hashes"]
    ):
        yield "What was purged before is not known any more."


def _differences(what: str, wrong: Flags) -> Iterator[str]:
    count = int(np.count_nonzero(wrong))
    if count:
        yield f"{count:,} memories differ in {what}, the first of them memory {int(np.argmax(wrong)) + 1}."
