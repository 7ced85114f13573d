"""Consolidation: old memories that say much the same become one summary, which takes part in recall in their place.

The pack's ``consolidate`` policy says which memories may go. They are grouped by cluster or community, and within it by
whoever may see them: project, scope, visibility, branch, season, creator, and the session where they are bound to it.
So a summary is never seen by anyone who could not see each of its members. Facts of a subject never go: their life is
their own.

Numbers are carried so that a summary weighs what its members weighed: the greatest importance and feeling, the least
confidence, and the sums of recalls, successes and failures. It is as old as its newest member, and valid since its
oldest; so consolidating makes nothing old look new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.graph import communities
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment
from memlab.kernel.schema import NEVER, RECALLABLE, RELATIONS
from memlab.kernel.state import Change, State, build_edges, build_values, list_audiences
from memlab.subjects.clusters.membership import centroids_of, in_use, members
from memlab.subjects.clusters.registers import Summaries, Summary
from memlab.subjects.clusters.wording import Told, words

__all__ = [
    "Group",
    "Grouping",
    "candidates",
    "consolidated",
    "groups",
    "labelled",
    "standing_summaries",
    "summaries_by_id",
    "summaries_of",
    "told_by",
    "unconsolidated",
]

Ints = NDArray[np.int64]
Grouping = Literal["clusters", "communities"]

_DERIVED = RELATIONS.index("derived-from")
_ASIDE = [RELATIONS.index(name) for name in ("derived-from", "in-cluster", "has-tag", "mentions")]
"""What makes no community of memories: what consolidation itself joins among it, so that it finds the same again."""

_APART = ("project", "branch", "season", "creator")
_COMMON = ("session", "speaker")


@dataclass(frozen=True)
class Group:
    """Memories that one summary will stand for: ``rows`` ascending, and what they have in common (``of``)."""

    rows: Ints
    of: str


def summaries_of(state: State) -> Summaries:
    """The register of summaries."""
    return state.projection(Summaries)


def summaries_by_id(state: State) -> dict[int, Summary]:
    """Return every summary by its id, those that were undone included."""
    return summaries_of(state).all


def standing_summaries(state: State, rows: Sequence[int]) -> list[int]:
    """Select the rows that are summaries in use, standing for their members."""
    known, status = summaries_of(state).all, state.names["status"]
    return [
        row
        for row in rows
        if row + 1 in known and known[row + 1].undone is None and status.value_at(row) in RECALLABLE
    ]


def candidates(
    state: State, pack: Pack, now: int, *, older_than: float, project: str | None = None
) -> Ints:
    """The rows that may go into a summary, as the pack's ``consolidate`` policy says; null is no."""
    rows = in_use(state)
    if project is not None:
        names = state.names["project"]
        rows = rows[names.codes[rows] == names.code(project)]
    subject = state.names["subject"]
    if subject.has_values:
        rows = rows[subject.codes[rows] < 0]
    if not len(rows):
        return rows
    moment = Moment(state, pack, rows, now)
    old = np.full(len(rows), older_than)
    may, nulls = moment.ask(pack.policies["consolidate"], inputs={"older-than": lambda: old})
    may = np.broadcast_to(np.asarray(may, dtype=np.bool_), len(rows))
    return rows[may if nulls is None else may & ~nulls]


def labelled(
    state: State, by: Grouping, rows: Ints, *, seed: int
) -> tuple[Ints, Mapping[int, str]]:
    """The group of each of ``rows``, -1 for none, and what each group is called.

    Communities are those of all memories, over the edges between memories, whether or not they take part in recall.
    """
    if by == "clusters":
        found = members(state).of(rows)
        live = {id: one for id, one in centroids_of(state).every.items() if one.ended is None}
        found[~np.isin(found, list(live))] = -1
        return found, {id: one.name for id, one in live.items()}
    labels = np.full(len(rows), -1, dtype=np.int64)
    names: dict[int, str] = {}
    for audience in list_audiences(state):
        own = np.isin(rows, in_use(state, audience))
        label = _communities(state, audience, seed)[rows[own]]
        present, dense = np.unique(label, return_inverse=True)
        about = words(state, rows[own], np.where(label < 0, -1, dense), len(present))
        first = max(names, default=-1) + 1
        labels[own] = np.where(label < 0, -1, label + first)
        for id, some in zip(present.tolist(), about, strict=True):
            names[id + first] = f"community {id + 1}" + (
                f" about {', '.join(some)}" if some else ""
            )
    return labels, names


def _communities(state: State, audience: str, seed: int) -> Ints:
    """The community of each row over the edges between memories of one audience; -1 for none."""
    edges, private = state.edges, np.zeros(len(state), dtype=np.bool_)
    visibility, creator = state.names["visibility"], state.names["creator"]
    if visibility.has_values:
        private = visibility.codes == visibility.code("private")
        if audience:
            private &= creator.codes != creator.code(audience)
    keep = (
        edges.alive
        & ~np.isin(edges.relation, _ASIDE)
        & (edges.target < len(state))
        & (edges.source < len(state))
    )
    numbers = np.flatnonzero(keep)
    source, target = edges.ends(numbers)
    keep[numbers[private[source] | private[target]]] = False
    joined = communities(edges, seed=seed, keep=keep)
    label = np.full(len(state), -1, dtype=np.int64)
    label[joined.rows] = joined.labels
    return label


def groups(
    state: State, rows: Ints, labels: Ints, names: Mapping[int, str], *, least: int, keep: int
) -> list[Group]:
    """What becomes one summary each: at least ``least`` of ``rows`` of one label that the same people may see.

    The ``keep`` most important of each stay as they are; of equals what was recalled more, then the older. In the order
    of their least row.
    """
    rows, labels = rows[labels >= 0], labels[labels >= 0]
    if not len(rows):
        return []
    scope = state.names["scope"]
    bound = scope.codes[rows] == scope.code("session")
    session = np.where(bound, state.names["session"].codes[rows], -1)
    keys = [
        labels,
        session,
        *(state.names[name].codes[rows] for name in (*_APART, "scope", "visibility")),
    ]
    _, group = np.unique(np.stack(keys), axis=1, return_inverse=True)
    numbers = state.numbers
    order = np.lexsort(
        (rows, -numbers["access"].values[rows], -numbers["importance"].values[rows], group)
    )
    first = np.flatnonzero(np.diff(group[order], prepend=-1) != 0)
    found = []
    for start, stop in zip(first.tolist(), [*first[1:].tolist(), len(order)], strict=True):
        places = order[start + keep : stop]
        if len(places) >= least:
            found.append(Group(np.sort(rows[places]), names[int(labels[places[0]])]))
    return sorted(found, key=lambda one: int(one.rows[0]))


def told_by(state: State, group: Group) -> tuple[list[Told], str | None]:
    """What its members say, in the order of time, and who says it if it is one: then not repeated with each text."""
    created = state.numbers["created"].values[group.rows]
    order = np.lexsort((group.rows, created))
    rows = group.rows[order]
    speaker = _common(state, "speaker", rows)
    names = state.names["speaker"]
    speakers = [None if speaker is not None else names.value_at(int(row)) for row in rows]
    texts = [text or "" for text in state.texts.to_list(rows)]
    return list(map(Told, texts, speakers, created[order].tolist())), speaker


def consolidated(
    state: State, found: list[Group], by: Grouping, now: int
) -> tuple[dict[str, Any], Change]:
    """The event's own fields, with the columns of a summary for each group, and what becomes of the members.

    Texts and vectors of the summaries are the caller's; they are numbered from ``first`` on in the order of ``found``.
    """
    first = len(state) + 1
    each = [_columns(state, group.rows) for group in found]
    columns = {name: [one[name] for one in each] for name in each[0]}
    accessed = [int(state.numbers["accessed"].values[group.rows].max()) for group in found]
    status = state.names["status"]
    summaries = []
    for offset, group in enumerate(found):
        words_of = status.to_objects(group.rows)
        was = {
            word: (group.rows[words_of == word] + 1).tolist()
            for word in RECALLABLE
            if (words_of == word).any()
        }
        summaries.append({"summary": first + offset, "of": group.of, "was": was})
    ids = [first + offset for offset in range(len(found))]
    source = np.repeat(ids, [len(group.rows) for group in found])
    gone = (np.concatenate([group.rows for group in found]) + 1).tolist()
    change = Change(
        edges=build_edges(source.tolist(), gone, "derived-from", 1.0),
        set=[
            build_values(gone, status="consolidated", changed=now),
            build_values(ids, accessed=accessed),
        ],
    )
    return {
        "first": first,
        "count": len(found),
        "columns": columns,
        "by": by,
        "summaries": summaries,
    }, change


def unconsolidated(state: State, row: int, now: int) -> Change:
    """The members of a summary back to the status that they had, and the summary out of recall.

    A member that is no longer part of it (restored, deleted, purged ...) is left as it is. InputError for what is no
    summary that stands for others, and for one that is part of another summary itself.
    """
    summary = summaries_of(state).all.get(row + 1)
    if summary is None or summary.undone is not None:
        why = "made by consolidation" if summary is None else "any more: it was undone already"
        raise InputError(
            f"Memory {row + 1} is no summary {why}; lab.upkeep.consolidation.frame() lists those that stand for others."
        )
    status = state.names["status"]
    own = status.value_at(row)
    if own == "consolidated":
        raise InputError(
            f"Memory {row + 1} is part of another summary; undo that first, or restore memory {row + 1}."
        )
    sets = []
    for word, ids in summary.was.items():
        back = [id for id in ids if status.value_at(id - 1) == "consolidated"]
        if back:
            sets.append(build_values(back, status=word, changed=now))
    if own in RECALLABLE:
        sets.append(
            build_values(
                [row + 1], status="forgotten", changed=now, reason="its members were restored"
            )
        )
    if state.lists["tags"].value_at(row):
        sets.append(build_values([row + 1], tags=[None]))  # and with them its edges
    met = state.edges.crossings(np.array([row]))
    mine = met.outgoing & (state.edges.relation[met.edge] == _DERIVED)
    mine &= np.isin(met.neighbour + 1, summary.members)
    return Change(unlink=np.sort(met.edge[mine]).tolist(), set=sets)


# -- within -----------------------------------------------------------------------------------------------------


def _common(state: State, name: str, rows: Ints) -> str | None:
    """What all of them have in a column of names; None if they differ."""
    codes = state.names[name].codes[rows]
    return state.names[name].value_at(int(rows[0])) if (codes == codes[0]).all() else None


def _columns(state: State, rows: Ints) -> dict[str, Any]:
    """The columns of the summary of ``rows``, with one value each."""
    numbers, lists = state.numbers, state.lists
    created = numbers["created"].values[rows]

    def number(name: str) -> NDArray[np.float64]:
        return numbers[name].values[rows]

    shared = {
        name: _shared([lists[name].value_at(row) for row in rows.tolist()])
        if lists[name].has_values
        else []
        for name in ("tags", "files")
    }
    agents = (
        sorted({one for row in rows.tolist() for one in lists["agents"].value_at(row)})
        if lists["agents"].has_values
        else []
    )
    session = _common(state, "session", rows)
    messages = {"first_message": np.fmin, "last_message": np.fmax}
    since = numbers["valid_from"].values[rows]
    return {
        "kind": "summary",
        **{name: _common(state, name, rows) for name in (*_APART, *_COMMON, "scope", "visibility")},
        "provenance": "inferred",
        "source": "system",
        **{name: words_ or None for name, words_ in shared.items()},
        "agents": agents or None,
        **{
            name: None if session is None else _known(least.reduce(number(name)))
            for name, least in messages.items()
        },
        "importance": float(number("importance").max()),
        "confidence": float(number("confidence").min()),
        "emotional_weight": float(number("emotional_weight").max()),
        "access": float(number("access").sum()),
        "success": float(number("success").sum()),
        "fail": float(number("fail").sum()),
        "created": int(created.max()),
        "valid_from": int(np.where(since == NEVER, created, since).min()),
    }


def _known(value: Any) -> float | None:
    return None if value != value else float(value)


def _shared(given: list[tuple[str, ...]]) -> list[str]:
    """What every one of them has, in the order of the first."""
    common = set(given[0]).intersection(*given[1:])
    return [one for one in given[0] if one in common]
