"""Decisions of consolidation: which memories are replaced by which summary.

In recall, a summary replaces old memories with similar content. The pack's ``consolidate`` policy selects the memories.
They are grouped by cluster or community. Each group is divided by project, scope, visibility, branch, season and
creator, and by session if the memories are bound to one. So everyone who sees a summary can also see each of its
members. Facts about a subject are never consolidated, because they have a life cycle of their own.

A summary has the maximum importance and emotional weight of its members, the minimum confidence, and the sums of
recalls, successes and failures. It has the date of its newest member and is valid since its oldest member. So
consolidation does not make old memories look new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from memlab.errors import InputError
from memlab.kernel.base.arrays import Floats, Ints
from memlab.kernel.graph import communities
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment
from memlab.kernel.schema import NEVER, RECALLABLE, RELATIONS
from memlab.kernel.state import Change, State, build_edges, build_values, list_audiences
from memlab.subjects.clusters.membership import get_centroids, read_members, rows_in_use
from memlab.subjects.clusters.registers import Summaries, Summary
from memlab.subjects.clusters.wording import Utterance, describe_groups

Grouping = Literal["clusters", "communities"]

# The code of the relation "derived-from" in the columns of edges.
_DERIVED = RELATIONS.index("derived-from")
_ASIDE = [RELATIONS.index(name) for name in ("derived-from", "in-cluster", "has-tag", "mentions")]
"""Relations that are ignored for communities. Edges of consolidation are ignored so that a second run gives the same
groups."""

# Columns by which groups are divided, because they restrict who sees a memory, and columns that a summary inherits if
# all members have the same value.
_APART = ("project", "branch", "season", "creator")
_COMMON = ("session", "speaker")


@dataclass(frozen=True)
class Group:
    """The memories that one summary replaces, as ascending rows.

    ``label`` is the name of the cluster or community of these memories.
    """

    rows: Ints
    label: str


def get_summaries(state: State) -> Summaries:
    """Return the register of all summaries."""
    return state.projection(Summaries)


def summaries_by_id(state: State) -> dict[int, Summary]:
    """Return all summaries, active or undone, by the id of the summary memory."""
    return get_summaries(state).all


def select_active_summaries(state: State, rows: Sequence[int]) -> list[int]:
    """Return the rows of summaries that are active and were not undone."""
    summaries, status = get_summaries(state).all, state.names["status"]
    return [
        row
        for row in rows
        if row + 1 in summaries
        and summaries[row + 1].undone is None
        and status.value_at(row) in RECALLABLE
    ]


def select_candidates(
    state: State, pack: Pack, now: int, *, older_than: float, project: str | None = None
) -> Ints:
    """Return the rows of memories that the pack's ``consolidate`` policy selects.

    A null result of the policy counts as False. With `project`, only memories of this project are selected. Facts are
    never selected.
    """
    rows = rows_in_use(state)
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
    is_selected, nulls = moment.ask(
        pack.policies["consolidate"], inputs={"older-than": lambda: old}
    )
    is_selected = np.broadcast_to(np.asarray(is_selected, dtype=np.bool_), len(rows))
    return rows[is_selected if nulls is None else is_selected & ~nulls]


def label_rows(
    state: State, by: Grouping, rows: Ints, *, seed: int
) -> tuple[Ints, Mapping[int, str]]:
    """Return the group number of each row, or -1, and the names of the groups.

    Communities are computed over all edges between memories, including memories that take no part in recall.
    """
    if by == "clusters":
        numbers = read_members(state).numbers_of(rows)
        live = {
            id: cluster
            for id, cluster in get_centroids(state).every.items()
            if cluster.ended is None
        }
        numbers[~np.isin(numbers, list(live))] = -1
        return numbers, {id: cluster.name for id, cluster in live.items()}
    labels = np.full(len(rows), -1, dtype=np.int64)
    names: dict[int, str] = {}
    for audience in list_audiences(state):
        own = np.isin(rows, rows_in_use(state, audience))
        label = _label_communities(state, audience, seed)[rows[own]]
        communities, dense = np.unique(label, return_inverse=True)
        about = describe_groups(state, rows[own], np.where(label < 0, -1, dense), len(communities))
        first = max(names, default=-1) + 1
        labels[own] = np.where(label < 0, -1, label + first)
        for id, terms in zip(communities.tolist(), about, strict=True):
            names[id + first] = f"community {id + 1}" + (
                f" about {', '.join(terms)}" if terms else ""
            )
    return labels, names


def _label_communities(state: State, audience: str, seed: int) -> Ints:
    """Return the community number of each row within one audience, or -1 for other rows.

    Edges from consolidation, clusters, tags and names of entities are ignored.
    """
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
    partition = communities(edges, seed=seed, keep=keep)
    label = np.full(len(state), -1, dtype=np.int64)
    label[partition.rows] = partition.labels
    return label


def form_groups(
    state: State, rows: Ints, labels: Ints, names: Mapping[int, str], *, min_size: int, keep: int
) -> list[Group]:
    """Return the groups to summarise, ordered by the first row of each group.

    A group has at least `min_size` rows with the same label and the same audience. The `keep` most important memories
    of each group are excluded. Of equal importance, memories with more recalls are excluded first, then older memories.
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
    result = []
    for start, stop in zip(first.tolist(), [*first[1:].tolist(), len(order)], strict=True):
        positions = order[start + keep : stop]
        if len(positions) >= min_size:
            result.append(Group(np.sort(rows[positions]), names[int(labels[positions[0]])]))
    return sorted(result, key=lambda member_group: int(member_group.rows[0]))


def read_utterances(state: State, group: Group) -> tuple[list[Utterance], str | None]:
    """Return a group's texts in order of time, and the speaker if all texts share one.

    If all members have the same speaker, the speaker is returned once and not with each text.
    """
    created = state.numbers["created"].values[group.rows]
    order = np.lexsort((group.rows, created))
    rows = group.rows[order]
    speaker = _shared_value(state, "speaker", rows)
    names = state.names["speaker"]
    speakers = [None if speaker is not None else names.value_at(int(row)) for row in rows]
    texts = [text or "" for text in state.texts.to_list(rows)]
    return list(map(Utterance, texts, speakers, created[order].tolist())), speaker


def build_consolidation(
    state: State, members_of: list[Group], by: Grouping, now: int
) -> tuple[dict[str, Any], Change]:
    """Return the body of a consolidation event, and the changes to the summarised members.

    The body has the columns of one summary for each group. Summaries get the ids after the last memory, in the order of
    the groups. The caller adds their texts and vectors.
    """
    first = len(state) + 1
    each = [_summary_columns(state, group.rows) for group in members_of]
    columns = {name: [row[name] for row in each] for name in each[0]}
    accessed = [int(state.numbers["accessed"].values[group.rows].max()) for group in members_of]
    status = state.names["status"]
    summaries = []
    for offset, group in enumerate(members_of):
        # The event stores the former status of each member, which the member gets back when it is restored.
        statuses = status.to_objects(group.rows)
        ids_by_status = {
            word: (group.rows[statuses == word] + 1).tolist()
            for word in RECALLABLE
            if (statuses == word).any()
        }
        summaries.append({"summary": first + offset, "of": group.label, "was": ids_by_status})
    ids = [first + offset for offset in range(len(members_of))]
    source = np.repeat(ids, [len(group.rows) for group in members_of])
    gone = (np.concatenate([group.rows for group in members_of]) + 1).tolist()
    change = Change(
        edges=build_edges(source.tolist(), gone, "derived-from", 1.0),
        set=[
            build_values(gone, status="consolidated", changed=now),
            build_values(ids, accessed=accessed),
        ],
    )
    return {
        "first": first,
        "count": len(members_of),
        "columns": columns,
        "by": by,
        "summaries": summaries,
    }, change


def build_restoration(state: State, row: int, now: int) -> Change:
    """Return the changes that restore a summary's members and retire the summary.

    Members that were restored, deleted or purged in the meantime are unchanged. Raises InputError for a memory that is
    not an active summary, and for a summary that is part of another summary.
    """
    summary = get_summaries(state).all.get(row + 1)
    if summary is None or summary.undone is not None:
        why = "it was not made by consolidation" if summary is None else "it was undone already"
        raise InputError(
            f"Memory {row + 1} is not an active summary: {why}. lab.upkeep.consolidation.frame() lists the summaries."
        )
    status = state.names["status"]
    own_status = status.value_at(row)
    if own_status == "consolidated":
        raise InputError(
            f"Summary {row + 1} is itself part of another summary. Undo that one first, or restore memory {row + 1}."
        )
    sets = []
    for word, ids in summary.was.items():
        restored = [id for id in ids if status.value_at(id - 1) == "consolidated"]
        if restored:
            sets.append(build_values(restored, status=word, changed=now))
    if own_status in RECALLABLE:
        sets.append(
            build_values(
                [row + 1], status="forgotten", changed=now, reason="its members were restored"
            )
        )
    if state.lists["tags"].value_at(row):
        sets.append(build_values([row + 1], tags=[None]))  # tags are removed with their edges
    crossings = state.edges.crossings(np.array([row]))
    own_edges = crossings.outgoing & (state.edges.relation[crossings.edge] == _DERIVED)
    own_edges &= np.isin(crossings.neighbour + 1, summary.members)
    return Change(unlink=np.sort(crossings.edge[own_edges]).tolist(), set=sets)


def _shared_value(state: State, name: str, rows: Ints) -> str | None:
    """Return the value of a text column that all rows share, or None if they differ."""
    codes = state.names[name].codes[rows]
    return state.names[name].value_at(int(rows[0])) if (codes == codes[0]).all() else None


def _summary_columns(state: State, rows: Ints) -> dict[str, Any]:
    """Return the value of each column for the summary of `rows`."""
    numbers, lists = state.numbers, state.lists
    created = numbers["created"].values[rows]

    def number(name: str) -> Floats:
        """Return the values of a numeric column for the members of a group."""
        return numbers[name].values[rows]

    lists_in_common = {
        name: _intersect_lists([lists[name].value_at(row) for row in rows.tolist()])
        if lists[name].has_values
        else []
        for name in ("tags", "files")
    }
    agents = (
        sorted({agent for row in rows.tolist() for agent in lists["agents"].value_at(row)})
        if lists["agents"].has_values
        else []
    )
    session = _shared_value(state, "session", rows)
    messages = {"first_message": np.fmin, "last_message": np.fmax}
    since = numbers["valid_from"].values[rows]
    return {
        "kind": "summary",
        **{
            name: _shared_value(state, name, rows)
            for name in (*_APART, *_COMMON, "scope", "visibility")
        },
        "provenance": "inferred",
        "source": "system",
        **{name: values or None for name, values in lists_in_common.items()},
        "agents": agents or None,
        **{
            name: None if session is None else _nan_to_none(reduce.reduce(number(name)))
            for name, reduce in messages.items()
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


def _nan_to_none(value: Any) -> float | None:
    """Return a number as a float, or None for NaN."""
    return None if value != value else float(value)


def _intersect_lists(lists: list[tuple[str, ...]]) -> list[str]:
    """Return the items that are in every list, in the order of the first list."""
    common = set(lists[0]).intersection(*lists[1:])
    return [item for item in lists[0] if item in common]
