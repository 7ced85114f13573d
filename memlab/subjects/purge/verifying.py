"""Verification of a purge: the new state may differ only in the purged content.

The rewritten journal is folded and compared before it replaces the old one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memlab.kernel.base.arrays import Flags, Rows
from memlab.kernel.graph import NODE_KINDS, node_kinds, node_numbers
from memlab.kernel.schema import MEMORY, RELATIONS
from memlab.kernel.state import PLACEHOLDER, Entities, EntitySummary, State, Tombstones
from memlab.kernel.verbs.fact_rows import get_entities
from memlab.subjects.purge.planning import Cut, cut_of
from memlab.subjects.purge.rewriting import without_redactable

_SET = ("status", "changed", "superseded_by")
"""The columns that the event of a purge sets in purged rows."""

# The code of the relation from a memory to an entity.
_MENTIONS = RELATIONS.index("mentions")


def find_differences(before: State, after: State, rows: Rows) -> list[str]:
    """Return sentences about differences that a purge of ``rows`` should not cause.

    The list is empty if only purged content changed. Memories that were not purged may only lose
    quotations of purged texts in notes. Edges must keep numbers, ends, relations and weights, and
    those of purged memories must be gone. Names must be unchanged or replaced by placeholders, and
    registers unchanged. The comparison goes column by column and costs about as much as a fold of
    edges and columns.
    """
    if len(before) != len(after):
        return [f"There were {len(before):,} memories, and there are {len(after):,}."]
    gone = np.zeros(len(before), dtype=np.bool_)
    gone[rows] = True
    return [
        *_compare_memories(before, after, gone, cut_of(before, rows)),
        *_compare_edges(before, after, gone),
        *_compare_entities(before, after, gone),
        *_compare_registers(before, after),
    ]


def _compare_memories(before: State, after: State, gone: Flags, cut: Cut) -> Iterator[str]:
    """Yield sentences about differences in the columns of memories."""
    # Numbers are compared first, and NaN equals NaN. Uses, names, lists, notes, texts, words and
    # vectors follow.
    for name, column in before.numbers.items():
        counted = ~gone if name in _SET else np.ones_like(gone)
        old, new = column.values, after.numbers[name].values
        yield from _count_differences(name, counted & (old != new) & ~((old != old) & (new != new)))
    yield from _count_differences("uses", (before.uses.values != after.uses.values).any(axis=1))
    for name, names in before.names.items():
        words = np.array(
            [after.names[name].code(word) for word in (*names.vocabulary, None)], dtype=np.int64
        )
        codes = after.names[name].codes
        yield from _count_differences(name, ~gone & (words[names.codes] != codes))
        if name == "status":
            yield from _count_differences(name, gone & (codes != after.names[name].code("purged")))
        elif MEMORY[name].storage == "name":
            yield from _count_differences(f"{name} of a purged memory", gone & (codes >= 0))
    for name, lists in before.lists.items():
        expected = {row: items for row, items in lists.items() if not gone[row]}
        actual = dict(after.lists[name].items())
        if expected != actual:
            rows = [
                row
                for row in expected.keys() | actual.keys()
                if expected.get(row) != actual.get(row)
            ]
            yield from _count_differences(name, np.isin(np.arange(len(gone)), rows))
    for name, notes in before.notes.items():
        if notes.has_values or after.notes[name].has_values:
            differ = notes.series("").ne_missing(after.notes[name].series("")).to_numpy() | gone
            wrong = np.zeros_like(gone)
            for row in np.flatnonzero(differ).tolist():
                wrong[row] = after.notes[name].value_at(row) != (
                    None if gone[row] else cut.note(name, notes.value_at(row))
                )
            yield from _count_differences(name, wrong)
    for name, texts, now in (("text", before.texts, after.texts), ("ref", before.refs, after.refs)):
        yield from _count_differences(
            name, ~gone & texts.series("").ne_missing(now.series("")).to_numpy()
        )
        yield from _count_differences(
            f"{name} of a purged memory", gone & (now.series("").fill_null("") != "").to_numpy()
        )
    yield from _count_differences("words", ~gone & (before.words.lengths != after.words.lengths))
    purged = np.flatnonzero(gone)
    if len(after.vectors) != len(before.vectors):
        yield f"There were {len(before.vectors):,} vectors, and there are {len(after.vectors):,}."
    elif after.vectors.take(purged).any():
        yield "A vector of a purged memory is still there."


def _compare_edges(before: State, after: State, gone: Flags) -> Iterator[str]:
    """Yield sentences about differences in edges and in the names of nodes."""
    # An edge is expected to be gone if either of its ends is a purged memory.
    old, new = before.edges, after.edges
    if len(old) != len(new):
        yield f"There were {len(old):,} edges, and there are {len(new):,}."
        return
    ends, ended = np.stack([old.source, old.target]), np.stack([new.source, new.target])
    memories = ends < len(gone)
    touched = (gone[np.where(memories, ends, 0)] & memories).any(axis=0)
    if wrong := int(np.count_nonzero(new.alive != (old.alive & ~touched))):
        yield f"{wrong:,} edges were wrongly kept or removed."
    for name in ("relation", "weight", "reinforcements", "created"):
        if wrong := int(np.count_nonzero(getattr(old, name) != getattr(new, name))):
            yield f"{wrong:,} edges have another {name}."
    alive = new.alive & old.alive
    if (node_kinds(ends) != node_kinds(ended)).any() or (ends != ended)[memories].any():
        yield "Edges have other ends."
        return
    names, vocabularies = before.nodes.vocabularies(), after.nodes.vocabularies()
    for kind in NODE_KINDS[1:]:
        mine = (node_kinds(ends) == NODE_KINDS.index(kind)) & alive
        pairs = np.unique(
            np.stack([node_numbers(ends[mine]), node_numbers(ended[mine])], axis=1), axis=0
        )
        old_names = [names[kind][number] for number in pairs[:, 0].tolist()]
        new_names = [vocabularies[kind][number] for number in pairs[:, 1].tolist()]
        other = [
            old_name
            for old_name, new_name in zip(old_names, new_names, strict=True)
            if old_name != new_name and not new_name.startswith(PLACEHOLDER)
        ]
        if other:
            yield f"{len(other):,} nodes of kind {kind} have another name, such as {other[0]!r}."
        if len(set(old_names)) != len(old_names):
            yield f"Nodes of kind {kind} fell apart: one name has become several."


def _compare_entities(before: State, after: State, gone: Flags) -> Iterator[str]:
    """Yield sentences about differences in entities that remaining memories mention."""
    # A merge into an entity that is gone cannot stay, so only merges into present entities are compared.
    old, new = _listed(before), _listed(after)
    edges = before.edges
    mentions = np.flatnonzero(edges.alive & (edges.relation == _MENTIONS))
    source, target = edges.source[mentions], edges.target[mentions]
    mentioned = target[(source < len(gone)) & ~gone[np.where(source < len(gone), source, 0)]]
    required = set(before.nodes.names(np.unique(mentioned)))
    for column in ("subject", "object"):
        codes = np.unique(before.names[column].codes[~gone])
        required |= {before.names[column].vocabulary[code] for code in codes.tolist() if code >= 0}
    for name, old_entity in old.items():
        new_entity = new.get(name)
        if new_entity is None:
            if name in required:
                yield f"The entity {name!r} is gone."
            continue
        if new_entity.type != old_entity.type:
            yield f"The entity {name!r} has the type {new_entity.type} instead of {old_entity.type}."
        if old_entity.merged_into in new and new_entity.merged_into != old_entity.merged_into:
            yield (
                f"The entity {name!r} is merged into {new_entity.merged_into!r} instead of {old_entity.merged_into!r}."
            )
    for name in new.keys() - old.keys():
        yield f"There is a new entity {name!r}."


def _listed(state: State) -> dict[str, EntitySummary]:
    """Return a summary of each entity by name, except placeholders."""
    entities = get_entities(state).summarize_all()
    return {entity.name: entity for entity in entities if not entity.name.startswith(PLACEHOLDER)}


def _compare_registers(before: State, after: State) -> Iterator[str]:
    """Yield sentences about differences in registers, apart from values that may change."""
    # Entities are compared by name above; tombstones may only gain entries.
    for name, projection in before.projections.items():
        if name in (Entities.name, Tombstones.name):
            continue
        old_dump, new_dump = (
            without_redactable(projection.dumped, dumped.dump())
            for dumped in (projection, after.projections[name])
        )
        if old_dump != new_dump:
            yield f"The register {name} differs."
    old_dump, new_dump = (state.projection(Tombstones).dump() for state in (before, after))
    hashes_after = {key: set(hashes) for key, hashes in new_dump["hashes"]}
    if not set(old_dump["origins"]) <= set(new_dump["origins"]) or any(
        not set(hashes) <= hashes_after.get(key, set()) for key, hashes in old_dump["hashes"]
    ):
        yield "Tombstones of an earlier purge are missing."


def _count_differences(what: str, wrong: Flags) -> Iterator[str]:
    """Yield a sentence with the number of memories that differ in a column, if any."""
    count = int(np.count_nonzero(wrong))
    if count:
        yield f"{count:,} memories differ in {what}, the first of them memory {int(np.argmax(wrong)) + 1}."
