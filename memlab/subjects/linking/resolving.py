"""Linking: what new memories are to those that a lab holds, and what becomes of both.

``link`` is asked for all pairs of a block at once, ``resolve`` where it says duplicate, updates or contradicts. Then
the conflicts alone are gone through in the order of the new rows and of their nearness, because what is decided of one
may settle the next: what was merged away is met as what replaced it, and what was superseded is met no more.

A memory takes the place of another only where both reach equally far: the same project, scope, branch, season and
visibility (and session or creator where these bind it). Otherwise both stay, joined by an edge: what one branch taught
does not end what the others know. Turns of a conversation have no part in this: they were said, and are neither
compared nor dropped.

A new memory that is *not stored yet* and is merged or skipped never comes to be. One that *was stored already* (linking
"later") was acknowledged, so it stays in the lab and is superseded by what replaces it.

Of two memories the one that is valid later is the new one of the pair, whichever was told first: a fact told late is
superseded by the newer one that is there already. What destroys needs to be nearly certain: where ``pair/certainty`` is
below the setting ``destroy-certainty`` both stay, whatever ``resolve`` decides, and the edge flags the conflict. What
repeats another word for word may merge: nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.policies import Pack
from memlab.kernel.schema import NEVER, RELATIONS
from memlab.kernel.state import Change, build_edges, build_values
from memlab.kernel.verbs.results import Linked, Outcome
from memlab.subjects.linking.candidates import PairedState, Places, Populate, candidates
from memlab.subjects.linking.pairs import Pairs
from memlab.subjects.linking.timeline import FOREVER, Meeting, Timeline, past_rows
from memlab.subjects.reading.claims import both, difference

__all__ = ["linked"]


_BLOCK = 256
"""New rows of which the pairs are decided at once."""

_READ = 1500
"""Characters of which every embedder has read all: two longer texts may be near for how they begin."""

LINK_EDGES = {
    "similar": "similar-to",
    "related": "relates-to",
    "restates": "updates",
    "updates": "updates",
    "contradicts": "contradicts",
    "duplicate": "similar-to",
}
"""The relation of the edge that each answer of ``link`` leaves between two memories that both stay."""
_CONFLICTS = ("duplicate", "updates", "contradicts")
_REACH = ("project", "scope", "branch", "season", "visibility")
_UNITED = ("tags", "files", "agents")

Ints = NDArray[np.int64]
Closeness = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


def linked(
    joint: PairedState,
    rows: Ints,
    populate: Populate,
    closeness: Closeness,
    *,
    count: int,
    gain: float,
    most: int,
    bound: float,
) -> Linked:
    """Decide of the new ``rows`` (ascending; all of ``joint.fresh``, or rows of its state) by the pack's policies.

    ``count`` is how many nearest are looked at, ``gain`` what a merge adds to a strength, ``most`` how many edges of
    one relation a memory has at most (0: any number), ``bound`` the certainty below which nothing is destroyed. Nothing
    is written.
    """
    return _Decision(joint, rows, populate, closeness, count=count, bound=bound).made(
        gain=gain, most=most
    )


class _Met:
    """The pairs of a block of new rows, and what the policies say of each.

    Attributes
    ----------
    new, old
        The new row of each pair and the other. In ``pairs`` the one that is valid later is the new one.
    late
        Whether the other is valid later, so that the new row was told late.
    rank
        The other's place among the neighbours of the new row.
    relation, resolution, weight
        What ``link`` and ``resolve`` say, and the weight of the edge that this leaves.
    """

    def __init__(
        self, new: Ints, old: Ints, pairs: Pairs, late: NDArray[np.bool_], pack: Pack
    ) -> None:
        self.new, self.old, self.pairs, self.late = new, old, pairs, late
        self.relation = pairs.ask(pack.policies["link"])
        self.resolution = np.full(len(pairs), "keep-both", dtype=object)
        self.weight = np.clip(np.nan_to_num(pairs.closeness), 0.0, 1.0)

    def word(self, place: int) -> str:
        return str(self.relation[place])

    def texts(self, place: int) -> tuple[str, str]:
        """Return the texts of the later and the earlier of a pair."""
        first, second = self.pairs.first[place], self.pairs.second[place]
        return self.pairs.new.texts[first], self.pairs.old.texts[second]

    def update(self, place: int) -> str:
        """Return why the earlier of a pair ends."""
        later, earlier = self.texts(place)
        return f"Updated: {difference(earlier, later)}"

    def likeness(self, place: int) -> str:
        return f"{self.word(place)}, closeness {self.weight[place]:.2f}"

    def keep_both(self, places: Ints, relation: str) -> None:
        """Let both stay, joined by this relation."""
        self.resolution[places] = "keep-both"
        self.relation[places] = relation

    def resolved(self) -> Ints:
        """Return the pairs of which not both stay."""
        return np.flatnonzero(self.resolution != "keep-both")

    def merging(self, places: Ints) -> NDArray[np.bool_]:
        return np.asarray(
            (self.resolution[places] == "merge") & (self.relation[places] == "duplicate")
        )


class _Decision:
    """The state of one decision: what was merged and superseded so far."""

    def __init__(
        self,
        joint: PairedState,
        rows: Ints,
        populate: Populate,
        closeness: Closeness,
        *,
        count: int,
        bound: float,
    ) -> None:
        self.joint, self.rows, self.bound = joint, rows, bound
        self.timeline = Timeline(joint)
        self.ended_by: dict[int, int] = {}
        """Of what was superseded, the memory with whose valid time it ended."""
        self.stored = joint.fresh is None
        self.gone = np.zeros(joint.total, dtype=np.bool_)
        self.root: dict[int, int] = {}
        """What replaces a new row that was merged or skipped; a skipped one has no part in anything else."""
        self.outcome: dict[int, Outcome] = {}
        self.why: dict[int, str] = {}
        self.successor: dict[int, int] = {}
        self.superseded: list[tuple[int, int, int, str]] = []
        self.merges: dict[int, list[int]] = {}
        self.texts: dict[int, str] = {}
        """What a new row says in place of its own text, since it was combined with the old ones in ``combined``."""
        self.combined: dict[int, list[int]] = {}
        self.relied_on: set[int] = set()
        """What others were merged into or superseded by: it stays itself, or they would stand on nothing."""
        self.edges: list[tuple[int, int, str, float]] = []
        self.flags: list[tuple[int, int, str, float, bool]] = []
        """New row, old row, word, weight and whether the edge leads from the old one, where both stay so far."""
        self.plain: list[tuple[Ints, Ints, NDArray[Any], NDArray[np.float64]]] = []
        places = Places(joint, rows) if len(rows) else None
        for start in range(0, len(rows), _BLOCK):
            assert places is not None
            self._block(rows[start : start + _BLOCK], places, populate, closeness, count)

    def _block(
        self, rows: Ints, places: Places, populate: Populate, closeness: Closeness, count: int
    ) -> None:
        gone = self.gone if self.gone.any() else None
        near = candidates(self.joint, rows, places, populate, count=count, gone=gone)
        if not len(near):
            return
        past = np.array(self._past(rows, near.new, near.old), dtype=np.int64).reshape(-1, 2)
        new, old = np.concatenate([near.new, past[:, 0]]), np.concatenate([near.old, past[:, 1]])
        rank = np.concatenate([near.rank, np.full(len(past), 1_000_000)])
        similarity = np.concatenate([near.similarity, np.ones(len(past))])
        met = self._met(new, old, similarity, rank, closeness)
        on_line = met.pairs.on_line & _reach_alike(met.pairs, self.joint.now)
        self._resolve(met, on_line)
        self._restates(met)
        settled = met.resolution != "keep-both"
        settled &= np.array([one is not None for one in met.resolution.tolist()], dtype=np.bool_)
        # first whether a new one stays: what it supersedes is superseded by what stands for it
        supersedes = (met.resolution == "keep-new") | (
            (met.resolution == "merge") & (met.relation != "duplicate")
        )
        order = np.lexsort((rank, supersedes, ~on_line, new))
        # one that drops the new value or says both in one is settled as of any two texts
        apart = on_line & np.isin(met.resolution, ("merge", "keep-old")) & ~met.pairs.same_fact
        apart &= ~met.late & (np.arange(len(new)) < len(near))
        for place in order[apart[order]].tolist():
            self._settle(met, place, late=False)
        self._place(met, np.flatnonzero(on_line & ~apart))
        for place in order[(settled & ~on_line)[order]].tolist():
            self._settle(met, place, late=bool(met.late[place]))
        join = np.isin(met.relation, tuple(LINK_EDGES)) & ~settled
        join[len(near) :] = False
        self.plain.append((new[join], old[join], met.relation[join], met.weight[join]))

    def _met(
        self,
        new: Ints,
        old: Ints,
        similarity: NDArray[np.float64],
        rank: Ints,
        closeness: Closeness,
    ) -> _Met:
        """Ask ``link`` of each pair: the one that is valid later is the new one, whichever was told first."""
        every = np.unique(np.concatenate([new, old]))
        side = self.joint.side(every)
        late = self._began(old) > self._began(new)
        first, second = (
            np.searchsorted(every, np.where(late, *pair)) for pair in ((old, new), (new, old))
        )
        sizes = np.array([len(text) for text in side.texts], dtype=np.float64)
        length = np.sqrt(np.maximum(sizes[first] * sizes[second], 1.0))
        pairs = Pairs(side, side, first, second, similarity, closeness(similarity, length), rank)
        return _Met(new, old, pairs, late, self.joint.pack)

    def _resolve(self, met: _Met, on_line: NDArray[np.bool_]) -> None:
        """Ask ``resolve`` of the conflicts, and spare what may not be destroyed."""
        conflict = np.flatnonzero(np.isin(met.relation, _CONFLICTS) | self._opposed(met))
        if len(conflict):
            conflict = conflict[
                on_line[conflict] | _may_resolve(met.pairs.take(conflict), self.joint.now)
            ]
        if len(conflict):
            met.resolution[conflict] = met.pairs.take(conflict).ask(
                self.joint.pack.policies["resolve"]
            )
            _spare_long(met)
            self._spare_uncertain(met)
            _spare_stated(met)

    def _past(self, rows: Ints, new: Ints, old: Ints) -> list[tuple[int, int]]:
        """Pairs of new facts and superseded ones of the same property."""
        met = set(zip(new.tolist(), old.tolist(), strict=True))
        found = []
        for row in rows.tolist():
            if self._word("subject", row) is not None:
                others = [
                    *past_rows(self.joint, row),
                    *(one for one in self.successor if one < row),
                ]
                found += [
                    (row, one)
                    for one in dict.fromkeys(others)
                    if (row, one) not in met and one not in self.root
                ]
        return found

    def _spare_uncertain(self, met: _Met) -> None:
        """Where it is not nearly certain that one ends the other, both stay and the edge flags it."""
        places = met.resolved()
        if not self.bound or not len(places):
            return
        some = met.pairs.take(places)
        certain = np.where(
            met.merging(places), some.repeats, (some.certainty >= self.bound) | some.repeats
        )
        spared = places[~certain]
        met.resolution[spared] = "keep-both"
        alike = np.isin(met.relation[spared], ("similar", "related"))
        met.relation[spared[alike]] = "contradicts"

    def _place(self, met: _Met, places: Ints) -> None:
        """Put new facts on the line of their property, in the order of the rows."""
        same = met.pairs.same_fact
        for row in np.unique(met.new[places]).tolist():
            if row in self.outcome or row in self.combined:
                continue
            own = [
                place
                for place in places[met.new[places] == row].tolist()
                if int(met.old[place]) not in self.root
            ]
            meetings = [
                Meeting(
                    int(met.old[place]),
                    bool(same[place]),
                    bool(same[place]) and met.resolution[place] == "merge",
                    not same[place] and met.resolution[place] == "keep-new",
                )
                for place in own
            ]
            before = {one.other: self.timeline.line(one.other).killer for one in meetings}
            root = self.timeline.insert(row, meetings)
            stays = row if root is None else root
            place_of = {int(met.old[place]): place for place in reversed(own)}
            if root is not None and self._leave(row, root, "merged"):
                self.why[row] = met.likeness(place_of[root])
                self.merges.setdefault(root, []).append(row)
            for place in own:
                other = int(met.old[place])
                if self.timeline.line(other).killer not in (before[other], None):
                    self._end(met, place, row, stays, other)
            killer = None if root is not None else self.timeline.line(row).killer
            if killer is not None:
                self._end(met, place_of[killer], row, killer, row)

    def _end(self, met: _Met, place: int, fresh: int, stays: int, goes: int) -> None:
        """One value ends where another began."""
        self.ended_by[goes] = stays
        self._take_over(stays, goes, met.word(place), float(met.weight[place]))
        self.superseded.append((fresh, stays, goes, met.update(place)))

    def _take_over(self, stays: int, goes: int, word: str, weight: float) -> None:
        self.successor[goes] = stays
        self.gone[goes] = True
        self.relied_on.add(stays)
        self.edges += [(stays, goes, LINK_EDGES[word], weight), (stays, goes, "supersedes", 1.0)]

    def _restates(self, met: _Met) -> None:
        """One statement of the old one holds no more: both stay, and the edge weighs how surely that is so."""
        places = np.flatnonzero(met.relation == "restates")
        if len(places):
            reaches = _may_resolve(met.pairs.take(places), self.joint.now)
            met.relation[places[~reaches]] = "related"
            met.weight[places[reaches]] = np.clip(met.pairs.restates[places[reaches]], 0.0, 1.0)

    def _opposed(self, met: _Met) -> NDArray[np.bool_]:
        """Pairs that ``link`` calls no more than alike, nearer than the setting conflict-closeness, of which one denies
        the other or gives its property another value.
        """
        alike = np.isin(met.relation, ("similar", "related"))
        near = alike & (met.pairs.closeness > float(self.joint.pack.settings["conflict-closeness"]))
        return near & met.pairs.opposed if near.any() else near

    def _settle(self, met: _Met, place: int, *, late: bool) -> None:
        """One conflict, after those of earlier rows and of nearer neighbours.

        ``late``: the old one of the two is valid later, so that the new one was told late and is what ends.
        """
        fresh, other = int(met.new[place]), self._standing(int(met.old[place]))
        if (
            self.outcome.get(fresh) == "skipped"
            or other in self.successor
            or self.outcome.get(other) == "skipped"
        ):
            return
        word, decided, weight = (
            met.word(place),
            str(met.resolution[place]),
            float(met.weight[place]),
        )
        if late and word != "duplicate":
            if decided == "keep-new" and fresh not in self.root and fresh not in self.successor:
                self._supersede(other, fresh, word, weight, met.update(place), told=fresh)
            elif decided != "keep-new":
                self.flags.append((fresh, other, word, weight, True))
        elif decided == "keep-new":
            self._supersede(fresh, other, word, weight, met.update(place))
        elif fresh in self.root or other == fresh:
            return
        elif decided == "merge" and word != "duplicate":
            self._combine(fresh, other, word, weight, *met.texts(place))
        elif fresh in self.relied_on:
            self.flags.append((fresh, other, word, weight, False))
        elif decided == "merge" and self._leave(fresh, other, "merged"):
            self.why[fresh] = met.likeness(place)
            self.merges.setdefault(other, []).append(fresh)
        elif decided == "keep-old" and self._leave(fresh, other, "skipped"):
            self.why[fresh] = f"{word}, and what was known stays: {difference(*met.texts(place))}"

    def _combine(
        self, fresh: int, other: int, word: str, weight: float, new: str, old: str
    ) -> None:
        """Both in one: the new one, which is not stored yet, says what both say, and takes the old one's place.

        One that is stored already keeps its text, and both stay.
        """
        text = both(old, self.texts.get(fresh, new))
        if self.stored or len(text) > _READ:
            self.flags.append((fresh, other, word, weight, False))
            return
        self._supersede(fresh, other, word, weight, f"Merged: {difference(old, new)}")
        if self.successor.get(other) == fresh:
            self.texts[fresh] = text
            self.combined.setdefault(fresh, []).append(other)

    def _standing(self, row: int) -> int:
        """The row itself, or what it was merged into."""
        return self.root.get(row, row)

    def _leave(self, fresh: int, other: int, outcome: Outcome) -> bool:
        """The new one goes and the other stands for it; False where that would close a circle."""
        if self._leads(other, fresh) or fresh in self.successor:
            return False
        self.root[fresh], self.outcome[fresh] = other, outcome
        self.relied_on.add(other)
        self.gone[fresh] = True
        return True

    def _supersede(
        self, fresh: int, other: int, word: str, weight: float, why: str, *, told: int | None = None
    ) -> None:
        """``fresh`` takes the place of ``other``; ``told``: what was told now, where that is what ends."""
        stays = self._standing(fresh)
        if stays == other or stays in self.successor or self._leads(stays, other):
            return
        self.ended_by[other] = fresh
        self._take_over(stays, other, word, weight)
        self.superseded.append((fresh if told is None else told, stays, other, why))

    def _leads(self, row: int, to: int) -> bool:
        """Whether the chain of what superseded ``row`` comes to ``to``."""
        state, seen = self.joint.state, set()
        while row != to:
            if row in seen:
                return False
            seen.add(row)
            if row in self.successor:
                row = self.successor[row]
                continue
            after = state.numbers["superseded_by"].values[row] if row < len(state) else np.nan
            if np.isnan(after):
                return False
            row = int(after) - 1
        return True

    # -- what the fold reads ----------------------------------------------------------------------------------

    def made(self, *, gain: float, most: int) -> Linked:
        # turns among the fresh were compared with nothing, and are stored as well
        considered = self.rows if self.stored else np.arange(self.joint.size, self.joint.total)
        rows = considered.tolist()
        outcomes: tuple[Outcome, ...] = tuple(self.outcome.get(row, "added") for row in rows)
        ids = np.arange(1, self.joint.total + 1)
        if not self.stored:
            # ids are given to what is stored only
            held = np.array([outcome == "added" for outcome in outcomes], dtype=np.bool_)
            ids[considered[held]] = self.joint.size + 1 + np.arange(int(held.sum()))
        place_of = {row: place for place, row in enumerate(rows)}
        source, target, relation, weight = self._joined()
        change = self._changed(ids, gain) + Change(
            edges=build_edges(
                ids[source].tolist(), ids[target].tolist(), relation.tolist(), weight.tolist()
            )
            if len(source)
            else None
        )
        if change.edges and most:
            change = Change(edges={**change.edges, "most": most}, set=change.set)
        shown = relation != "supersedes"
        own = np.array([place_of.get(row, -1) for row in source.tolist()], dtype=np.int64)
        shown &= own >= 0
        return Linked(
            outcomes=outcomes,
            standing=tuple(int(ids[self._standing(row)]) for row in rows),
            superseded=tuple(
                (place_of[fresh], int(ids[stays]), int(ids[goes]), why)
                for fresh, stays, goes, why in self.superseded
            ),
            whys={place_of[row]: why for row, why in self.why.items()},
            change=change,
            texts={place_of[row]: text for row, text in self.texts.items()},
            edges=(
                own[shown],
                ids[source[shown]],
                ids[target[shown]],
                relation[shown],
                weight[shown],
            ),
            fact_times=self._fact_times(ids),
        )

    def _joined(self) -> tuple[Ints, Ints, NDArray[Any], NDArray[np.float64]]:
        """Every new edge, each once: those of conflicts that were settled, and those of pairs that stay as they are."""
        standing = np.arange(self.joint.total)
        for row, root in self.root.items():
            standing[row] = root
        left = np.zeros(self.joint.total, dtype=np.bool_)
        left[list(self.root)] = True
        conflicts = self.edges
        for fresh, earlier, flag, share, reverse in self.flags:
            other = int(standing[earlier])
            if not left[fresh] and other != fresh:
                ends = (other, fresh) if reverse else (fresh, other)
                conflicts = [*conflicts, (*ends, LINK_EDGES[flag], share)]
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
            met = standing[old]
            kept = ~left[new] & (met != new)
            parts.append(
                (
                    new[kept],
                    met[kept],
                    np.array([LINK_EDGES[one] for one in word[kept].tolist()], dtype=object),
                    weight[kept],
                )
            )
        source, target, relation, weight = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        codes = np.array([RELATIONS.index(word) for word in relation.tolist()], dtype=np.int64)
        if not len(source):
            return source, target, relation, weight
        _, once = np.unique(np.stack([source, target, codes]), axis=1, return_index=True)
        once = np.sort(once)
        source, target, relation, weight, codes = (
            source[once],
            target[once],
            relation[once],
            weight[once],
            codes[once],
        )
        # what stands for a new memory may have had the edge before
        size = self.joint.size
        both = np.flatnonzero((source < size) & (target < size))
        had = np.zeros(len(source), dtype=np.bool_)
        had[both] = self.joint.state.edges.find(source[both], target[both], codes[both]) >= 0
        return source[~had], target[~had], relation[~had], weight[~had]

    def _changed(self, ids: Ints, gain: float) -> Change:
        """Other values: of what was superseded, of what others were merged into."""
        now, parts = self.joint.now, []
        goes = {
            other: (stays, why, self.ended_by[other])
            for _, stays, other, why in self.superseded
            if self._ends(other)
        }
        if self.stored:
            goes |= {row: (root, self.why[row], root) for row, root in self.root.items()}
        if goes:
            old = np.array(sorted(goes))
            until = self._numbers("valid_until", old)
            over = self._began(np.array([goes[row][2] for row in old.tolist()]))
            # it held until the other began
            over = np.maximum(over, self._began(old))
            over = self._on_the_line(old, over)
            parts.append(
                build_values(
                    ids[old].tolist(),
                    status="superseded",
                    superseded_by=[
                        float(ids[self._standing(goes[row][0])]) for row in old.tolist()
                    ],
                    valid_until=np.where(until == NEVER, over, np.minimum(until, over)).tolist(),
                    changed=now,
                    reason=[goes[row][1] for row in old.tolist()],
                )
            )
        if self.merges:
            roots, again = np.array(sorted(self.merges)), self.joint.pack.number("merge-access")
            times = np.array([len(self.merges[row]) for row in roots.tolist()])
            strength = self._numbers("strength", roots) + gain * times
            counted = (
                {"access": (self._numbers("access", roots) + again * times).tolist()}
                if again
                else {}
            )
            parts.append(
                build_values(
                    ids[roots].tolist(), strength=strength.tolist(), changed=now, **counted
                )
            )
            parts += self._united(ids, self.merges)
            parts += self._since(ids)
        if self.combined:
            parts += self._united(ids, self.combined) + self._values(ids)
        return Change(set=parts)

    def _ends(self, row: int) -> bool:
        """Whether a memory is superseded in the end: on a line, whether the last of its times is over."""
        line = self.timeline.lines.get(row)
        return line is None or line.killer is not None

    def _on_the_line(self, rows: Ints, over: Ints) -> Ints:
        """When memories end, for those on the line of a property as the line has it."""
        ends = over.copy()
        for place, row in enumerate(rows.tolist()):
            line = self.timeline.lines.get(row)
            if (
                line is not None
                and row in self.timeline.touched
                and line.segments[-1][1] != FOREVER
            ):
                ends[place] = line.segments[-1][1]
        return ends

    def _since(self, ids: Ints) -> list[dict[str, Any]]:
        """An earlier beginning for what was told again late."""
        parts = []
        for root, others in self.merges.items():
            began = int(self._began(np.array([root]))[0])
            first = min(int(self._began(np.array([one]))[0]) for one in others)
            if first < began:
                parts.append(build_values([int(ids[root])], valid_from=[first]))
        return parts

    def _fact_times(self, ids: Ints) -> list[list[Any]]:
        """Of facts that were told again: when, and the times within which another value held."""
        found = []
        for row in self.timeline.touched:
            line = self.timeline.lines.get(row)
            if line is not None and (len(line.told) > 1 or line.gaps):
                found.append([int(ids[row]), line.told, [list(gap) for gap in line.gaps]])
        return found

    def _values(self, ids: Ints) -> list[dict[str, Any]]:
        """The values of a fact that was combined with another: both."""
        parts = []
        for row, others in self.combined.items():
            told = [
                value
                for value in (self._word("value", one) for one in (*others, row))
                if value is not None
            ]
            if len(set(told)) > 1:
                parts.append(build_values([ids[row]], value="; ".join(dict.fromkeys(told))))
        return parts

    def _united(self, ids: Ints, merges: dict[int, list[int]]) -> list[dict[str, Any]]:
        """Tags, files and agents of what others were merged into; and how sure it is, and of what source, from the most
        confident of them.
        """
        roots, parts = np.array(sorted(merges)), []
        best_known = {row: max([row, *merges[row]], key=self._confidence) for row in roots.tolist()}
        more_confident = [
            row
            for row in roots.tolist()
            if self._confidence(best_known[row]) > self._confidence(row)
        ]
        if more_confident:
            words = {
                name: [self._word(name, best_known[row]) for row in more_confident]
                for name in ("source", "provenance")
            }
            sure = [self._confidence(best_known[row]) for row in more_confident]
            parts.append(build_values(ids[more_confident].tolist(), confidence=sure, **words))
        for column in _UNITED:
            before = {row: self._list(column, row) for row in roots.tolist()}
            united = {
                row: list(
                    dict.fromkeys(
                        [*held, *(item for one in merges[row] for item in self._list(column, one))]
                    )
                )
                for row, held in before.items()
            }
            grown = [row for row in roots.tolist() if len(united[row]) > len(before[row])]
            if grown:
                parts.append(
                    build_values(ids[grown].tolist(), **{column: [united[row] for row in grown]})
                )
        return parts

    def _began(self, rows: Ints) -> Ints:
        """Since when each of them holds."""
        since = self._numbers("valid_from", rows)
        return np.where(since == NEVER, self._numbers("created", rows), since)

    def _numbers(self, column: str, rows: Ints) -> NDArray[Any]:
        known, place = np.unique(rows, return_inverse=True)
        return np.asarray(self.joint.side(known).number(column)[place.reshape(-1)])

    def _confidence(self, row: int) -> float:
        state, place = self.joint.home(row)
        return float(state.numbers["confidence"].values[place])

    def _word(self, column: str, row: int) -> str | None:
        state, place = self.joint.home(row)
        return state.names[column].value_at(place)

    def _list(self, column: str, row: int) -> tuple[str, ...]:
        state, place = self.joint.home(row)
        held = state.lists[column].value_at(place)
        creator = state.names["creator"].value_at(place)
        if (
            column == "agents"
            and creator is not None
            and creator.startswith("agent:")
            and creator not in held
        ):
            return (*held, creator)
        return held


def _may_resolve(pairs: Pairs, now: int) -> NDArray[np.bool_]:
    """Which pairs reach equally far and hold at the same time."""
    may = _reach_alike(pairs, now)
    for side, places in ((pairs.new, pairs.first), (pairs.old, pairs.second)):
        # what held before says nothing against what holds
        until = side.number("valid_until")[places]
        may &= (until == NEVER) | (until > now)
    return may


def _reach_alike(pairs: Pairs, now: int) -> NDArray[np.bool_]:
    """Which pairs reach equally far, and began: what is to hold one day says nothing against what holds."""
    may = np.ones(len(pairs), dtype=np.bool_)
    for column in _REACH:
        may &= pairs.same(column, none=True)
    scope = pairs.new.word("scope")[pairs.first]
    visibility = pairs.new.word("visibility")[pairs.first]
    may &= (scope != "session") | pairs.same("session", none=True)
    may &= (visibility != "private") | pairs.same("creator", none=True)
    for side, places in ((pairs.new, pairs.first), (pairs.old, pairs.second)):
        may &= side.number("valid_from")[places] <= now
    return may


def _spare_stated(met: _Met) -> None:
    """Keep what a user stated where only somebody else says otherwise, such as an assistant or a page; flag both."""
    places, pairs = met.resolved(), met.pairs
    if not len(places):
        return
    first, second = pairs.first[places], pairs.second[places]
    hearsay = np.isin(pairs.new.word("provenance")[first], ("inferred", "observed"))
    hearsay &= pairs.new.word("status")[first] == "staged"
    stated = np.isin(pairs.old.word("provenance")[second], ("user-stated", "user-corrected"))
    met.keep_both(places[hearsay & stated & ~met.merging(places)], "contradicts")


def _spare_long(met: _Met) -> None:
    """Long texts that are not the same both stay where they were called the same: nobody has read all of them."""
    for place in np.flatnonzero(
        (met.relation == "duplicate") & (met.resolution != "keep-both")
    ).tolist():
        later, earlier = met.texts(place)
        if max(len(later), len(earlier)) > _READ and later != earlier:
            met.resolution[place] = "keep-both"
