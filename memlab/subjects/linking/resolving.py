"""Decide how new memories relate to old memories, and what follows from it.

The ``link`` policy is evaluated for all pairs of a block at once, and the ``resolve`` policy for
duplicates, updates and contradictions. Conflicts are then settled in the order of new rows and of
their similarity, because one decision may affect the next. In later conflicts, a merged memory is
replaced by its survivor, and a superseded memory is no longer compared.

A memory replaces another memory only if both have the same reach. The reach consists of project,
scope, branch, season and visibility, and of the session or creator if the memories are bound to
them. Otherwise both memories stay, joined by an edge, because a lesson of one branch does not end
what other branches know. Turns are not compared.

A new memory that is not stored yet, and is merged or skipped, is never stored. A memory that was
stored before (linking "later") was acknowledged, so it stays in the lab, superseded by its
replacement.

Of two memories, the memory with the later valid time is the new one of the pair, whichever was
stored first. So a fact that is stored late is superseded by a newer fact that is already present.
Destructive decisions need near certainty: if ``pair/certainty`` is below the setting
``destroy-certainty``, both memories stay and an edge flags the conflict. Both also stay if all new
memories are compared and the text that would end has several statements or a question, because the
other text is about one of them. Literal repetitions may merge, because nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memlab.kernel.base.arrays import Flags, Floats, Ints, Values
from memlab.kernel.schema import NEVER, RELATIONS
from memlab.kernel.state import Change, build_edges, build_values
from memlab.kernel.verbs.results import Linked, Outcome
from memlab.subjects.linking.candidates import PairedState, Populate, Scopes, find_candidates
from memlab.subjects.linking.compared import ComparedPairs
from memlab.subjects.linking.corrections import (
    READ,
    are_resolvable,
    have_same_reach,
    keep_corrections,
    spare_long,
    spare_stated,
)
from memlab.subjects.linking.pairs import Pairs
from memlab.subjects.linking.timeline import FOREVER, Meeting, Timeline, find_past_rows
from memlab.subjects.reading.claims import both, difference

_BLOCK = 256
"""The number of new rows per block, so that the pairs of a block fit into memory."""

LINK_EDGES = {
    "similar": "similar-to",
    "related": "relates-to",
    "restates": "updates",
    "updates": "updates",
    "contradicts": "contradicts",
    "duplicate": "similar-to",
}
"""The relation of the edge between two memories that both stay, by the result of ``link``."""

# The results of ``link`` that ``resolve`` decides, the columns of a memory's reach, and the lists that a merge unites.
_CONFLICTS = ("duplicate", "updates", "contradicts")
_UNITED = ("tags", "files", "agents")

Closeness = Callable[[Floats, Floats], Floats]


def decide_links(
    joint: PairedState,
    rows: Ints,
    populate: Populate,
    closeness: Closeness,
    *,
    count: int,
    strength_gain: float,
    max_edges: int,
    min_certainty: float,
    corrections: bool = False,
) -> Linked:
    """Decide the links of new rows by the pack's policies, without storing them.

    `rows` ascend. They are all rows of ``joint.fresh``, or rows of the state. Each row is compared
    with its `count` nearest memories. A merge adds `strength_gain` to the survivor's strength. A
    memory gets at most `max_edges` edges of one relation (0: unlimited). If the certainty is below
    `min_certainty`, no memory is ended. With `corrections`, only statements that report a change
    end others, and nothing merges.
    """
    decision = _Decision(
        joint,
        rows,
        populate,
        closeness,
        count=count,
        bound=min_certainty,
        corrections=corrections,
    )
    return decision.build(strength_gain=strength_gain, max_edges=max_edges)


class _Decision:
    """The decisions about new rows, with the memories merged and superseded so far."""

    def __init__(
        self,
        joint: PairedState,
        rows: Ints,
        populate: Populate,
        closeness: Closeness,
        *,
        count: int,
        bound: float,
        corrections: bool = False,
    ) -> None:
        self.joint, self.rows, self.bound = joint, rows, bound
        self.corrections = corrections
        self.timeline = Timeline(joint)
        self.ended_by: dict[int, int] = {}
        """The memory at whose valid time each superseded memory ended."""
        self.stored = joint.fresh is None
        self.gone = np.zeros(joint.total, dtype=np.bool_)
        self.root: dict[int, int] = {}
        """The survivor of each new row that was merged or skipped."""
        self.outcome: dict[int, Outcome] = {}
        self.why: dict[int, str] = {}
        self.successor: dict[int, int] = {}
        self.superseded: list[tuple[int, int, int, str]] = []
        self.merges: dict[int, list[int]] = {}
        self.texts: dict[int, str] = {}
        """The combined text of each new row in ``combined``, which lists the old rows."""
        self.combined: dict[int, list[int]] = {}
        self.relied_on: set[int] = set()
        """The survivors of other rows, which must not be replaced themselves."""
        self.edges: list[tuple[int, int, str, float]] = []
        self.flags: list[tuple[int, int, str, float, bool]] = []
        """Conflicts in which both memories stay: new row, old row, relation, weight and direction.

        The direction is True if the edge starts at the old row.
        """
        self.plain: list[tuple[Ints, Ints, Values, Floats]] = []
        scopes = Scopes(joint, rows) if len(rows) else None
        for start in range(0, len(rows), _BLOCK):
            assert scopes is not None
            self._decide_block(rows[start : start + _BLOCK], scopes, populate, closeness, count)

    def _decide_block(
        self, rows: Ints, scopes: Scopes, populate: Populate, closeness: Closeness, count: int
    ) -> None:
        """Decide the links of one block of rows.

        Whether a new memory itself stays is decided first, because its survivor supersedes other
        memories.
        """
        gone = self.gone if self.gone.any() else None
        found_pairs = find_candidates(self.joint, rows, scopes, populate, count=count, gone=gone)
        if not len(found_pairs):
            return
        past = np.array(
            self._pair_with_past(rows, found_pairs.new, found_pairs.old), dtype=np.int64
        ).reshape(-1, 2)
        new, old = (
            np.concatenate([found_pairs.new, past[:, 0]]),
            np.concatenate([found_pairs.old, past[:, 1]]),
        )
        rank = np.concatenate([found_pairs.rank, np.full(len(past), 1_000_000)])
        similarity = np.concatenate([found_pairs.similarity, np.ones(len(past))])
        compared = self._compare(new, old, similarity, rank, closeness)
        on_line = compared.pairs.on_line & have_same_reach(compared.pairs, self.joint.now)
        self._resolve(compared, on_line)
        if self.corrections:
            keep_corrections(compared, self.joint.now)
        self._weigh_restatements(compared)
        settled = compared.resolution != "keep-both"
        settled &= np.array(
            [resolution is not None for resolution in compared.resolution.tolist()], dtype=np.bool_
        )
        # merges come first: if the new row merges, its survivor supersedes the other memories
        supersedes = (compared.resolution == "keep-new") | (
            (compared.resolution == "merge") & (compared.relation != "duplicate")
        )
        order = np.lexsort((rank, supersedes, ~on_line, new))
        # pairs that drop the new value or combine both values are settled like other texts
        separate = (
            on_line
            & np.isin(compared.resolution, ("merge", "keep-old"))
            & ~compared.pairs.same_fact
        )
        separate &= ~compared.late & (np.arange(len(new)) < len(found_pairs))
        for pair in order[separate[order]].tolist():
            self._settle(compared, pair, is_late=False)
        self._insert_into_timeline(compared, np.flatnonzero(on_line & ~separate))
        for pair in order[(settled & ~on_line)[order]].tolist():
            self._settle(compared, pair, is_late=bool(compared.late[pair]))
        join = np.isin(compared.relation, tuple(LINK_EDGES)) & ~settled
        join[len(found_pairs) :] = False
        self.plain.append((new[join], old[join], compared.relation[join], compared.weight[join]))

    def _compare(
        self,
        new: Ints,
        old: Ints,
        similarity: Floats,
        rank: Ints,
        closeness: Closeness,
    ) -> ComparedPairs:
        """Evaluate ``link`` for each pair; the memory with the later valid time is the new one."""
        all_rows = np.unique(np.concatenate([new, old]))
        side = self.joint.side(all_rows)
        is_late = self._read_beginnings(old) > self._read_beginnings(new)
        first, second = (
            np.searchsorted(all_rows, np.where(is_late, *pair)) for pair in ((old, new), (new, old))
        )
        lengths = np.array([len(text) for text in side.texts], dtype=np.float64)
        mean_length = np.sqrt(np.maximum(lengths[first] * lengths[second], 1.0))
        pairs = Pairs(
            side, side, first, second, similarity, closeness(similarity, mean_length), rank
        )
        return ComparedPairs(new, old, pairs, is_late, self.joint.pack)

    def _resolve(self, compared: ComparedPairs, on_line: Flags) -> None:
        """Apply ``resolve`` to conflicts, but keep the memories that must not end."""
        conflict = np.flatnonzero(
            np.isin(compared.relation, _CONFLICTS) | self._find_opposed(compared)
        )
        if len(conflict):
            conflict = conflict[
                on_line[conflict] | are_resolvable(compared.pairs.take(conflict), self.joint.now)
            ]
        if len(conflict):
            compared.resolution[conflict] = compared.pairs.take(conflict).ask(
                self.joint.pack.policies["resolve"]
            )
            spare_long(compared)
            self._spare_uncertain(compared)
            spare_stated(compared)

    def _pair_with_past(self, rows: Ints, new: Ints, old: Ints) -> list[tuple[int, int]]:
        """Return more pairs: new facts with superseded ones, stored for the same property or superseded in this run."""
        known_pairs = set(zip(new.tolist(), old.tolist(), strict=True))
        result = []
        for row in rows.tolist():
            if self._read_name("subject", row) is not None:
                others = [
                    *find_past_rows(self.joint, row),
                    *(other for other in self.successor if other < row),
                ]
                result += [
                    (row, other)
                    for other in dict.fromkeys(others)
                    if (row, other) not in known_pairs and other not in self.root
                ]
        return result

    def _spare_uncertain(self, compared: ComparedPairs) -> None:
        """Keep both memories of each conflict whose certainty is too low."""
        resolved = compared.find_resolved()
        if not self.bound or not len(resolved):
            return
        resolved_pairs = compared.pairs.take(resolved)
        is_certain = (resolved_pairs.certainty >= self.bound) & ~compared.is_merging(resolved)
        if not self.corrections:
            is_certain &= resolved_pairs.lose_one_statement(
                compared.resolution[resolved] == "keep-old"
            )
        is_certain |= resolved_pairs.repeats
        spared = resolved[~is_certain]
        compared.resolution[spared] = "keep-both"
        is_similar = np.isin(compared.relation[spared], ("similar", "related"))
        compared.relation[spared[is_similar]] = "contradicts"

    def _insert_into_timeline(self, compared: ComparedPairs, selected: Ints) -> None:
        """Insert new facts into the timelines of their properties, in row order."""
        same_fact = compared.pairs.same_fact
        # The end of a value is recorded only if its killer changes here. Earlier rows recorded earlier ends.
        for row in np.unique(compared.new[selected]).tolist():
            if row in self.outcome or row in self.combined:
                continue
            row_pairs = [
                pair
                for pair in selected[compared.new[selected] == row].tolist()
                if int(compared.old[pair]) not in self.root
            ]
            meetings = [
                Meeting(
                    int(compared.old[pair]),
                    bool(same_fact[pair]),
                    bool(same_fact[pair]) and compared.resolution[pair] == "merge",
                    not same_fact[pair] and compared.resolution[pair] == "keep-new",
                )
                for pair in row_pairs
            ]
            before = {
                meeting.other: self.timeline.line(meeting.other).killer for meeting in meetings
            }
            root = self.timeline.insert(row, meetings)
            survivor = row if root is None else root
            pair_of = {int(compared.old[pair]): pair for pair in reversed(row_pairs)}
            if root is not None and self._replace_by(row, root, "merged"):
                self.why[row] = compared.describe(pair_of[root])
                self.merges.setdefault(root, []).append(row)
            for pair in row_pairs:
                other = int(compared.old[pair])
                if self.timeline.line(other).killer not in (before[other], None):
                    self._end_value(compared, pair, row, survivor, other)
            killer = None if root is not None else self.timeline.line(row).killer
            if killer is not None:
                self._end_value(compared, pair_of[killer], row, killer, row)

    def _end_value(
        self, compared: ComparedPairs, pair: int, fresh: int, survivor: int, ended: int
    ) -> None:
        """Record that one fact ends where another fact begins."""
        self.ended_by[ended] = survivor
        self._take_over(survivor, ended, compared.word(pair), float(compared.weight[pair]))
        self.superseded.append((fresh, survivor, ended, compared.write_reason(pair)))

    def _take_over(self, survivor: int, superseded: int, word: str, weight: float) -> None:
        """Record that one memory supersedes another, with the edges between the two."""
        self.successor[superseded] = survivor
        self.gone[superseded] = True
        self.relied_on.add(survivor)
        self.edges += [
            (survivor, superseded, LINK_EDGES[word], weight),
            (survivor, superseded, "supersedes", 1.0),
        ]

    def _weigh_restatements(self, compared: ComparedPairs) -> None:
        """Weight the edges of partial restatements, and relate memories that may not end.

        Both memories stay. A restatement in another reach, or of a memory that is not valid, is
        only "related".
        """
        restating = np.flatnonzero(compared.relation == "restates")
        if len(restating):
            may_resolve = are_resolvable(compared.pairs.take(restating), self.joint.now)
            compared.relation[restating[~may_resolve]] = "related"
            compared.weight[restating[may_resolve]] = np.clip(
                compared.pairs.restates[restating[may_resolve]], 0.0, 1.0
            )

    def _find_opposed(self, compared: ComparedPairs) -> Flags:
        """Return whether the memories of each pair are similar but contradict each other.

        The memories are nearer than the setting ``conflict-closeness``. One denies the other, or
        gives another value to its property.
        """
        is_similar = np.isin(compared.relation, ("similar", "related"))
        is_near = is_similar & (
            compared.pairs.closeness > float(self.joint.pack.settings["conflict-closeness"])
        )
        return is_near & compared.pairs.opposed if is_near.any() else is_near

    def _settle(self, compared: ComparedPairs, pair: int, *, is_late: bool) -> None:
        """Apply one pair's resolution: supersede, merge, skip, or flag as a conflict.

        With `is_late`, the old memory has the later valid time, so that the new memory may end.
        """
        # An earlier decision may have settled the pair, or made it circular, so that is checked first.
        fresh, other = int(compared.new[pair]), self._find_survivor(int(compared.old[pair]))
        if (
            self.outcome.get(fresh) == "skipped"
            or other in self.successor
            or self.outcome.get(other) == "skipped"
        ):
            return
        word, resolution, weight = (
            compared.word(pair),
            str(compared.resolution[pair]),
            float(compared.weight[pair]),
        )
        if is_late and word != "duplicate":
            if resolution == "keep-new" and fresh not in self.root and fresh not in self.successor:
                self._supersede(
                    other, fresh, word, weight, compared.write_reason(pair), reported=fresh
                )
            elif resolution != "keep-new":
                self.flags.append((fresh, other, word, weight, True))
        elif resolution == "keep-new":
            self._supersede(fresh, other, word, weight, compared.write_reason(pair))
        elif fresh in self.root or other == fresh:
            return
        elif resolution == "merge" and word != "duplicate":
            self._combine(fresh, other, word, weight, *compared.texts(pair))
        elif fresh in self.relied_on:
            self.flags.append((fresh, other, word, weight, False))
        elif resolution == "merge" and self._replace_by(fresh, other, "merged"):
            self.why[fresh] = compared.describe(pair)
            self.merges.setdefault(other, []).append(fresh)
        elif resolution == "keep-old" and self._replace_by(fresh, other, "skipped"):
            self.why[fresh] = (
                f"{word}, and the older memory stays: {difference(*compared.texts(pair))}"
            )

    def _combine(
        self, fresh: int, other: int, word: str, weight: float, new: str, old: str
    ) -> None:
        """Put both texts into the new memory, which supersedes the old memory.

        If the new memory is already stored, or the combined text is too long, both memories stay.
        """
        text = both(old, self.texts.get(fresh, new))
        if self.stored or len(text) > READ:
            self.flags.append((fresh, other, word, weight, False))
            return
        self._supersede(fresh, other, word, weight, f"Merged: {difference(old, new)}")
        if self.successor.get(other) == fresh:
            self.texts[fresh] = text
            self.combined.setdefault(fresh, []).append(other)

    def _find_survivor(self, row: int) -> int:
        """Return the memory that replaced a new row, or the row itself if none did."""
        return self.root.get(row, row)

    def _replace_by(self, fresh: int, other: int, outcome: Outcome) -> bool:
        """Replace a new row; return False if that makes a cycle or the row has a successor."""
        if self._leads_to(other, fresh) or fresh in self.successor:
            return False
        self.root[fresh], self.outcome[fresh] = other, outcome
        self.relied_on.add(other)
        self.gone[fresh] = True
        return True

    def _supersede(
        self,
        fresh: int,
        other: int,
        word: str,
        weight: float,
        why: str,
        *,
        reported: int | None = None,
    ) -> None:
        """Mark `other` as superseded by `fresh`, unless a cycle would result.

        `reported` is the new row if the new row is the one that ends.
        """
        survivor = self._find_survivor(fresh)
        if survivor == other or survivor in self.successor or self._leads_to(survivor, other):
            return
        self.ended_by[other] = fresh
        self._take_over(survivor, other, word, weight)
        self.superseded.append((fresh if reported is None else reported, survivor, other, why))

    def _leads_to(self, row: int, goal: int) -> bool:
        """Return whether the chain of successors of `row` reaches `goal`."""
        state, visited = self.joint.state, set()
        while row != goal:
            if row in visited:
                return False
            visited.add(row)
            if row in self.successor:
                row = self.successor[row]
                continue
            successor = state.numbers["superseded_by"].values[row] if row < len(state) else np.nan
            if np.isnan(successor):
                return False
            row = int(successor) - 1
        return True

    # The result in the form that is stored

    def build(self, *, strength_gain: float, max_edges: int) -> Linked:
        """Return the outcomes, changes and edges that result from all decisions."""
        # new turns are not compared, but they are stored
        considered = self.rows if self.stored else np.arange(self.joint.size, self.joint.total)
        rows = considered.tolist()
        outcomes: tuple[Outcome, ...] = tuple(self.outcome.get(row, "added") for row in rows)
        ids = np.arange(1, self.joint.total + 1)
        if not self.stored:
            # only rows that are stored get ids
            is_stored = np.array([outcome == "added" for outcome in outcomes], dtype=np.bool_)
            ids[considered[is_stored]] = self.joint.size + 1 + np.arange(int(is_stored.sum()))
        position_of = {row: position for position, row in enumerate(rows)}
        source, target, relation, weight = self._collect_edges()
        change = self._collect_changes(ids, strength_gain) + Change(
            edges=build_edges(
                ids[source].tolist(), ids[target].tolist(), relation.tolist(), weight.tolist()
            )
            if len(source)
            else None
        )
        if change.edges and max_edges:
            change = Change(edges={**change.edges, "most": max_edges}, set=change.set)
        is_reported = relation != "supersedes"
        positions = np.array([position_of.get(row, -1) for row in source.tolist()], dtype=np.int64)
        is_reported &= positions >= 0
        return Linked(
            outcomes=outcomes,
            standing=tuple(int(ids[self._find_survivor(row)]) for row in rows),
            superseded=tuple(
                (position_of[fresh], int(ids[stays]), int(ids[goes]), why)
                for fresh, stays, goes, why in self.superseded
            ),
            whys={position_of[row]: why for row, why in self.why.items()},
            change=change,
            texts={position_of[row]: text for row, text in self.texts.items()},
            edges=(
                positions[is_reported],
                ids[source[is_reported]],
                ids[target[is_reported]],
                relation[is_reported],
                weight[is_reported],
            ),
            fact_times=self._fact_times(ids),
        )

    def _collect_edges(self) -> tuple[Ints, Ints, Values, Floats]:
        """Return the edges to add between memories that conflict or are related, without those that exist already."""
        survivor_of = np.arange(self.joint.total)
        for row, root in self.root.items():
            survivor_of[row] = root
        has_left = np.zeros(self.joint.total, dtype=np.bool_)
        has_left[list(self.root)] = True
        conflicts = self.edges
        for fresh, earlier, flag, strength, reverse in self.flags:
            other = int(survivor_of[earlier])
            if not has_left[fresh] and other != fresh:
                ends = (other, fresh) if reverse else (fresh, other)
                conflicts = [*conflicts, (*ends, LINK_EDGES[flag], strength)]
        if self.stored:
            conflicts = [
                *conflicts,
                *((root, row, "supersedes", 1.0) for row, root in self.root.items()),
            ]
        parts = [
            (
                np.array([edge[0] for edge in conflicts], dtype=np.int64),
                np.array([edge[1] for edge in conflicts], dtype=np.int64),
                np.array([edge[2] for edge in conflicts], dtype=object),
                np.array([edge[3] for edge in conflicts], dtype=np.float64),
            )
        ]
        for new, old, word, weight in self.plain:
            survivors = survivor_of[old]
            is_kept = ~has_left[new] & (survivors != new)
            parts.append(
                (
                    new[is_kept],
                    survivors[is_kept],
                    np.array(
                        [LINK_EDGES[relation_word] for relation_word in word[is_kept].tolist()],
                        dtype=object,
                    ),
                    weight[is_kept],
                )
            )
        source, target, relation, weight = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        codes = np.array([RELATIONS.index(word) for word in relation.tolist()], dtype=np.int64)
        if not len(source):
            return source, target, relation, weight
        _, distinct = np.unique(np.stack([source, target, codes]), axis=1, return_index=True)
        distinct = np.sort(distinct)
        source, target, relation, weight, codes = (
            source[distinct],
            target[distinct],
            relation[distinct],
            weight[distinct],
            codes[distinct],
        )
        # the survivor of a new memory may already have the edge
        size = self.joint.size
        stored_pairs = np.flatnonzero((source < size) & (target < size))
        exists = np.zeros(len(source), dtype=np.bool_)
        exists[stored_pairs] = (
            self.joint.state.edges.find(
                source[stored_pairs], target[stored_pairs], codes[stored_pairs]
            )
            >= 0
        )
        return source[~exists], target[~exists], relation[~exists], weight[~exists]

    def _collect_changes(self, ids: Ints, gain: float) -> Change:
        """Return the changed column values of superseded and surviving memories.

        A survivor gains ``gain`` in strength for each memory that was merged into it.
        """
        now, parts = self.joint.now, []
        superseded = {
            other: (stays, why, self.ended_by[other])
            for _, stays, other, why in self.superseded
            if self._has_ended(other)
        }
        if self.stored:
            superseded |= {row: (root, self.why[row], root) for row, root in self.root.items()}
        if superseded:
            old = np.array(sorted(superseded))
            valid_until = self._read_numbers("valid_until", old)
            ends = self._read_beginnings(np.array([superseded[row][2] for row in old.tolist()]))
            # a superseded memory was valid until its successor began
            ends = np.maximum(ends, self._read_beginnings(old))
            ends = self._timeline_ends(old, ends)
            parts.append(
                build_values(
                    ids[old].tolist(),
                    status="superseded",
                    superseded_by=[
                        float(ids[self._find_survivor(superseded[row][0])]) for row in old.tolist()
                    ],
                    valid_until=np.where(
                        valid_until == NEVER, ends, np.minimum(valid_until, ends)
                    ).tolist(),
                    changed=now,
                    reason=[superseded[row][1] for row in old.tolist()],
                )
            )
        if self.merges:
            roots, access_gain = (
                np.array(sorted(self.merges)),
                self.joint.pack.number("merge-access"),
            )
            merge_counts = np.array([len(self.merges[row]) for row in roots.tolist()])
            strength = self._read_numbers("strength", roots) + gain * merge_counts
            extra = (
                {
                    "access": (
                        self._read_numbers("access", roots) + access_gain * merge_counts
                    ).tolist()
                }
                if access_gain
                else {}
            )
            parts.append(
                build_values(ids[roots].tolist(), strength=strength.tolist(), changed=now, **extra)
            )
            parts += self._join_lists(ids, self.merges)
            parts += self._earlier_beginnings(ids)
        if self.combined:
            parts += self._join_lists(ids, self.combined) + self._joint_values(ids)
        return Change(set=parts)

    def _has_ended(self, row: int) -> bool:
        """Return whether the validity of a superseded memory has ended."""
        line = self.timeline.lines.get(row)
        return line is None or line.killer is not None

    def _timeline_ends(self, rows: Ints, default_ends: Ints) -> Ints:
        """Return the end of validity of each row: of its last interval if its timeline changed, else its default."""
        ends = default_ends.copy()
        for position, row in enumerate(rows.tolist()):
            line = self.timeline.lines.get(row)
            if (
                line is not None
                and row in self.timeline.touched
                and line.segments[-1][1] != FOREVER
            ):
                ends[position] = line.segments[-1][1]
        return ends

    def _earlier_beginnings(self, ids: Ints) -> list[dict[str, Any]]:
        """Return the changes that move a fact's start to its earliest statement."""
        parts = []
        for root, others in self.merges.items():
            began = int(self._read_beginnings(np.array([root]))[0])
            first = min(int(self._read_beginnings(np.array([other]))[0]) for other in others)
            if first < began:
                parts.append(build_values([int(ids[root])], valid_from=[first]))
        return parts

    def _fact_times(self, ids: Ints) -> list[list[Any]]:
        """Return the statement times and the gaps of facts that were stated repeatedly."""
        result = []
        for row in self.timeline.touched:
            line = self.timeline.lines.get(row)
            if line is not None and (len(line.stated) > 1 or line.gaps):
                result.append([int(ids[row]), line.stated, [list(gap) for gap in line.gaps]])
        return result

    def _joint_values(self, ids: Ints) -> list[dict[str, Any]]:
        """Return the changes that join the values of facts whose memories were combined."""
        parts = []
        for row, others in self.combined.items():
            values = [
                value
                for value in (self._read_name("value", member) for member in (*others, row))
                if value is not None
            ]
            if len(set(values)) > 1:
                parts.append(build_values([ids[row]], value="; ".join(dict.fromkeys(values))))
        return parts

    def _join_lists(self, ids: Ints, merges: dict[int, list[int]]) -> list[dict[str, Any]]:
        """Return the changes that give survivors the tags, files and agents of merged rows.

        Confidence, source and provenance come from the most confident of these memories.
        """
        # Only rows that change are written, so that an unchanged survivor is part of no event.
        roots, parts = np.array(sorted(merges)), []
        most_confident = {
            row: max([row, *merges[row]], key=self._confidence) for row in roots.tolist()
        }
        improved = [
            row
            for row in roots.tolist()
            if self._confidence(most_confident[row]) > self._confidence(row)
        ]
        if improved:
            words = {
                name: [self._read_name(name, most_confident[row]) for row in improved]
                for name in ("source", "provenance")
            }
            confidences = [self._confidence(most_confident[row]) for row in improved]
            parts.append(build_values(ids[improved].tolist(), confidence=confidences, **words))
        for column in _UNITED:
            before = {row: self._read_list(column, row) for row in roots.tolist()}
            united = {
                row: list(
                    dict.fromkeys(
                        [
                            *items,
                            *(
                                item
                                for merged_row in merges[row]
                                for item in self._read_list(column, merged_row)
                            ),
                        ]
                    )
                )
                for row, items in before.items()
            }
            grown = [row for row in roots.tolist() if len(united[row]) > len(before[row])]
            if grown:
                parts.append(
                    build_values(ids[grown].tolist(), **{column: [united[row] for row in grown]})
                )
        return parts

    def _read_beginnings(self, rows: Ints) -> Ints:
        """Return the time from which each row is valid, which is its creation by default."""
        valid_from = self._read_numbers("valid_from", rows)
        return np.where(valid_from == NEVER, self._read_numbers("created", rows), valid_from)

    def _read_numbers(self, column: str, rows: Ints) -> Values:
        """Return the values of rows in a numeric column; a row may occur several times."""
        distinct, position = np.unique(rows, return_inverse=True)
        return np.asarray(self.joint.side(distinct).number(column)[position.reshape(-1)])

    def _confidence(self, row: int) -> float:
        """Return the confidence of a row, 0 to 1."""
        state, local_row = self.joint.home(row)
        return float(state.numbers["confidence"].values[local_row])

    def _read_name(self, column: str, row: int) -> str | None:
        """Return the value of a row in a text column, or None for null."""
        state, local_row = self.joint.home(row)
        return state.names[column].value_at(local_row)

    def _read_list(self, column: str, row: int) -> tuple[str, ...]:
        """Return a memory's values in a list column; the agents include the creator."""
        state, local_row = self.joint.home(row)
        items = state.lists[column].value_at(local_row)
        creator = self._read_name("creator", row)
        if (
            column == "agents"
            and creator is not None
            and creator.startswith("agent:")
            and creator not in items
        ):
            return (*items, creator)
        return items
