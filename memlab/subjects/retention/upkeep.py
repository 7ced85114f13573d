"""A pass of upkeep: status transitions, labels and pruned edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import numpy as np
import polars as pl

from memlab.errors import ReadOnlyLab
from memlab.kernel.base.arrays import NO_ROWS, Flags, Floats, Ints, Values
from memlab.kernel.base.clock import DAY, INSTANT, Micros, from_micros
from memlab.kernel.base.display import Displayed, table
from memlab.kernel.base.printable import printable
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.graph import NODE_KINDS, node_kinds, node_numbers
from memlab.kernel.hooks import list_hooks
from memlab.kernel.language import Policy
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment, apply_promote, encode_words, in_recall, read_statuses
from memlab.kernel.schema import RELATIONS, STATUSES
from memlab.kernel.state import EVERYONE, Change, State, build_values, hidden_rows
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.corrections.editing import due_for_purge

# Transitions: the changes of status and label by a pack's policies at an instant.


# The code of a status, as columns store it.
_RETRACTED = STATUSES.index("retracted")
_NO_CODE = -3
"""A code that no word has, and that differs from the code of null."""
# The words of statuses by their codes.
_WORDS: Values = np.array(STATUSES, dtype=object)


@dataclass(frozen=True)
class Standing:
    """The status and label of some memories, as codes.

    ``status`` is an index into ``STATUSES``. ``label`` is an index into ``words``, -1 where the
    policy gave null or was not evaluated.
    """

    status: Ints
    label: Ints
    words: tuple[str, ...]


@dataclass(frozen=True)
class Transitions:
    """Changes of statuses and labels, as a frame (id, what, from, to) and a change."""

    frame: pl.DataFrame
    change: Change


def select_evaluated(state: State, rows: Ints, now: Micros) -> Ints:
    """Return the rows that upkeep evaluates: recallable and retracted memories.

    Memories that changed after `now` are skipped, so that a clock that runs backwards undoes
    nothing. A retracted memory is forgotten at a later instant only.
    """
    status = read_statuses(state, rows)
    is_selected, changed = in_recall(status) | (status == _RETRACTED), state.numbers["changed"]
    if changed.has_values:
        changed_at = changed.values[rows]
        is_selected &= (changed_at < now) | ((changed_at == now) & (status != _RETRACTED))
    return np.asarray(rows[is_selected])


def evaluate_standing(
    state: State, pack: Pack, rows: Ints, now: Micros | Ints, *, status: Ints | None = None
) -> Standing:
    """Return the status and label that the pack gives to `rows`, which ascend.

    `now` is one instant, or one per row. The argument `status` replaces the status in the state.
    The policies ``promote`` and ``label`` are evaluated for recallable memories. The
    policy ``promote`` is repeated until the status settles, so that a second evaluation changes
    nothing.
    Raises InputError if it never settles. Null keeps a status or label.
    """
    before = read_statuses(state, rows) if status is None else status
    moment = Moment(state, pack, rows, now)
    if status is not None:
        moment.give(status=_WORDS[before])
    moment, after = apply_promote(moment, before)
    is_forgotten, nulls = moment.ask(pack.policies["forget"])
    is_forgotten = is_forgotten if nulls is None else is_forgotten & ~nulls
    # a memory that is retracted by this pass is forgotten by a later one, so that people can see it before
    is_forgotten = is_forgotten & (in_recall(after) | (before == _RETRACTED))
    if is_forgotten.any():
        after = np.where(is_forgotten, STATUSES.index(str(pack.settings["forgotten-as"])), after)
    label, words = encode_words(*moment.ask(pack.policies["label"]))
    return Standing(after, np.where(in_recall(after), label, -1), words)


def find_transitions(state: State, pack: Pack, rows: Ints, now: Micros) -> Transitions:
    """Return the changes of status and label at `now`, without writing them.

    Rows that upkeep does not evaluate never change. The change also sets the column ``changed``.
    """
    rows = select_evaluated(state, rows, now)
    if not len(rows):
        return Transitions(_join_transitions([]), Change())
    new_standing, labels = evaluate_standing(state, pack, rows, now), state.names["label"]
    status, label = read_statuses(state, rows), labels.codes[rows].astype(np.int64)
    label_codes = np.array(
        [*(labels.code(word) for word in new_standing.words), _NO_CODE], dtype=np.int64
    )
    status_changes = np.flatnonzero(new_standing.status != status)
    label_changes = np.flatnonzero(
        (new_standing.label >= 0) & (label_codes[new_standing.label] != label)
    )
    frames, parts = [], []
    for column, positions, old, old_words, new, new_words in (
        ("status", status_changes, status, STATUSES, new_standing.status, STATUSES),
        ("label", label_changes, label, labels.vocabulary, new_standing.label, new_standing.words),
    ):
        ids = rows[positions] + 1
        frames.append(
            _transition_rows(
                ids,
                column,
                decode_words(old[positions], old_words),
                decode_words(new[positions], new_words),
            )
        )
        # sorted by word, so that the order does not reveal which memory, perhaps a private one, came first
        for code in sorted(
            np.unique(new[positions]).tolist(), key=lambda code: str(new_words[code])
        ):
            selected = ids[new[positions] == code].tolist()
            parts.append(build_values(selected, **{column: new_words[code], "changed": now}))
    return Transitions(_join_transitions(frames), Change(set=parts))


def decode_words(codes: Ints, words: Sequence[str]) -> pl.Series:
    """Return the words with these codes, or null for the code -1."""
    table = pl.Series([*words, None], dtype=pl.String)
    return table.gather(np.where(codes < 0, len(words), codes))


def _transition_rows(ids: Ints, what: str, before: pl.Series, after: pl.Series) -> pl.DataFrame:
    """Return a row for each memory whose status or label (``what``) changed, with both values."""
    return pl.DataFrame(
        [
            pl.Series("id", ids, dtype=pl.Int64),
            pl.Series("what", [what], dtype=pl.String).new_from_index(0, len(ids)),
            before.alias("from"),
            after.alias("to"),
        ]
    )


# The columns of transitions.
_SCHEMA = {"id": pl.Int64, "what": pl.String, "from": pl.String, "to": pl.String}


def _join_transitions(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return tables of changes as one table, sorted by memory id."""
    return pl.concat([pl.DataFrame(schema=_SCHEMA), *parts]).sort("id", maintain_order=True)


# Pruning: edges that a pack's ``prune`` policy removes.


# The code of the relation in the edge columns, and codes of viewers that differ from those of creators.
_HAS_TAG = RELATIONS.index("has-tag")
_EVERYONES, _NOBODYS = -3, -2

# Inputs that other edges at the same node affect.
_DEGREES = ("source-degree", "target-degree")


def can_prune(pack: Pack) -> bool:
    """Return whether the policy ``prune`` can remove any edge.

    A policy without inputs is evaluated once instead of for every edge.
    """
    policy = pack.policies["prune"]
    return bool(policy.inputs) or bool(_evaluate_prune(policy, {"weight": lambda: np.zeros(1)})[0])


def reads_degrees(pack: Pack) -> bool:
    """Return whether ``prune`` reads degrees, so that removing an edge affects others."""
    return any(name in _DEGREES for name in pack.policies["prune"].inputs)


def find_pruned(state: State, pack: Pack, edges: Ints, now: Micros) -> Ints:
    """Return the active edges among `edges` that the policy ``prune`` removes at `now`.

    Edges to tags follow from the column ``tags`` and are never evaluated. Null keeps an edge.
    """
    graph = state.edges
    edges = edges[graph.alive[edges] & (graph.relation[edges] != _HAS_TAG)]
    if not len(edges):
        return edges
    source, target = graph.ends(edges)

    def age() -> Floats:
        """Return the age of each edge in days."""
        return np.asarray(np.maximum((float(now) - graph.created[edges]) / DAY, 0.0))

    def idle() -> Floats:
        """Return the days since each edge was last used."""
        accessed = state.numbers["accessed"].values
        last = graph.created[edges].astype(np.float64)
        last_access = np.full(len(edges), np.inf)
        for end in (source, target):
            memory = end < len(state)
            last_access[memory] = np.minimum(last_access[memory], accessed[end[memory]])
        # edges between other nodes are never recalled, and no edge was used before it existed
        last = np.where(np.isfinite(last_access), np.maximum(last_access, last), last)
        return np.asarray(np.maximum((float(now) - last) / DAY, 0.0))

    inputs: dict[str, Callable[[], Values]] = {
        "weight": lambda: graph.weight[edges],
        "relation": lambda: graph.words_of(graph.relation[edges]),
        "reinforcements": lambda: graph.reinforcements[edges].astype(np.float64),
        "age-days": age,
        "idle-days": idle,
        "source-degree": lambda: _visible_degree(state, edges, source),
        "target-degree": lambda: _visible_degree(state, edges, target),
    }
    return edges[_evaluate_prune(pack.policies["prune"], inputs)]


def _visible_degree(state: State, edges: Ints, ends: Ints) -> Floats:
    """Return the degree of one end of each edge, counting only edges that the viewers of that edge can see."""
    graph = state.edges
    degree = graph.degree(ends).astype(np.float64)
    if hidden_rows(state, EVERYONE) is None:
        return degree
    viewers = _find_viewers(state, edges)
    crossings = graph.crossings(ends)
    neighbour_viewers = _find_viewers(state, crossings.edge)
    is_visible = (neighbour_viewers == _EVERYONES) | (
        neighbour_viewers == viewers[crossings.position]
    )
    return np.bincount(crossings.position[is_visible], minlength=len(ends)).astype(np.float64)


def _find_viewers(state: State, edges: Ints) -> Ints:
    """Return who sees each edge: everyone, one creator, or nobody."""
    visibility, creator = state.names["visibility"], state.names["creator"]
    private = visibility.codes == visibility.code("private")
    viewers = np.full(len(edges), _EVERYONES, dtype=np.int64)
    for ends in state.edges.ends(edges):
        rows = np.where(ends < len(state), ends, 0)
        is_private = (ends < len(state)) & private[rows]
        codes = creator.codes[rows].astype(np.int64)
        viewers = np.where(
            ~is_private,
            viewers,
            np.where((viewers == _EVERYONES) | (viewers == codes), codes, _NOBODYS),
        )
    return viewers


def edges_frame(state: State, edges: Ints) -> pl.DataFrame:
    """Return edges as a frame with the columns of ``lab.edges``."""
    source, target = state.edges.ends(edges)
    kinds = np.array(NODE_KINDS, dtype=object)
    return pl.DataFrame(
        [
            pl.Series("edge", edges, dtype=pl.Int64),
            pl.Series(
                "relation",
                state.edges.words_of(state.edges.relation[edges]).tolist(),
                dtype=pl.String,
            ),
            pl.Series("weight", state.edges.weight[edges], dtype=pl.Float64),
            pl.Series("from_kind", kinds[node_kinds(source)].tolist(), dtype=pl.String),
            pl.Series("source", node_numbers(source) + 1, dtype=pl.Int64),
            pl.Series("to_kind", kinds[node_kinds(target)].tolist(), dtype=pl.String),
            pl.Series("target", node_numbers(target) + 1, dtype=pl.Int64),
        ]
    )


def _evaluate_prune(policy: Policy, inputs: dict[str, Callable[[], Values]]) -> Flags:
    """Return a mask of the edges that the policy ``prune`` removes."""
    columns = {name: inputs[name]() for name in policy.inputs or ("weight",)}
    values, nulls = policy.arrays(columns)
    return np.asarray(values if nulls is None else values & ~nulls, dtype=np.bool_)


Result = TypeVar("Result")

_BLOCK = 1 << 16
"""Memories per block, which blocks other writers for about 30 ms."""

_EDGES = 1 << 18
"""Edges per block."""

_NODES = 1 << 14
"""Nodes per block whose edges are evaluated again."""

_SLOW = 500_000
"""Memories beyond which a pass takes a second, so a progress bar is drawn."""

_SHOWN = 12
"""Transitions in a summary, so that it fits on a screen."""


@dataclass(frozen=True)
class Upkeep(Displayed):
    """The result of a pass of ``lab.upkeep.maintain``.

    Attributes
    ----------
    at
        The instant of the pass, in UTC.
    pack, pack_hash
        The name and hash of the pack.
    events
        The positions of the events in the journal; empty if nothing changed. The last events may
        have refined clusters.
    complete
        False if the pass was stopped; the next pass continues it.
    frame
        One row per change of a memory: id, what (status or label), from, to and at.
    pruned
        The removed edges: edge, relation, weight, from_kind, source, to_kind and target.
    due
        The deleted memories that may be purged: id, deleted and due.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> upkeep = lab.upkeep.maintain()
    >>> len(upkeep), upkeep.complete
    (0, True)
    """

    at: datetime
    pack: str
    pack_hash: str
    events: tuple[int, ...]
    complete: bool
    frame: pl.DataFrame = field(repr=False)
    pruned: pl.DataFrame = field(repr=False)
    due: pl.DataFrame = field(repr=False)

    @property
    def counts(self) -> pl.DataFrame:
        """The number of memories per change of status or label, the most frequent first.

        Columns: what, from, to and memories.
        """
        counted = self.frame.group_by("what", "from", "to").agg(
            pl.len().cast(pl.Int64).alias("memories")
        )
        return counted.sort(
            "memories", "what", "from", "to", descending=[True, False, False, False]
        )

    def __len__(self) -> int:
        """Return the number of changes, including pruned edges."""
        return self.frame.height + self.pruned.height

    def __bool__(self) -> bool:
        return len(self) > 0

    def __repr__(self) -> str:
        parts = [
            f"{count:,} {what} {old or 'none'} -> {new}"
            for what, old, new, count in self._top_transitions()
        ]
        more = self.counts.height - len(parts)
        parts += [f"{more} other transitions"] if more > 0 else []
        parts += [f"{self.pruned.height:,} edges pruned"] if self.pruned.height else []
        parts += [f"{self.due.height:,} due to be purged"] if self.due.height else []
        ending = "" if self.complete else ", stopped early"
        return printable(
            f"<Upkeep {self.at:%Y-%m-%d %H:%M} UTC, pack {self.pack}: {'; '.join(parts) or 'nothing changed'}{ending}>"
        )

    def _display(self) -> object:
        """Return the table of changes for a notebook."""
        title = f"Upkeep as of {self.at:%Y-%m-%d %H:%M} UTC, pack {self.pack}"
        notes = [] if self else ["nothing changed"]
        notes += [f"{self.pruned.height:,} edges pruned"] if self.pruned.height else []
        notes += (
            [f"{self.due.height:,} deleted memories are due to be purged"]
            if self.due.height
            else []
        )
        notes += [] if self.complete else ["the pass was stopped; the next one continues it"]
        rows = [
            (what, old or "none", new, f"{count:,}")
            for what, old, new, count in self._top_transitions()
        ]
        return table(
            title,
            ("what", "from", "to", "memories"),
            rows,
            notes=["; ".join(notes)] if notes else [],
        )

    def _top_transitions(self) -> list[tuple[str, str | None, str, int]]:
        """Return the most frequent changes: rows of the field, the old value, the new value and the count."""
        return self.counts.head(_SHOWN).rows()


def run_upkeep(
    store: Store,
    now: Micros,
    *,
    progress: bool = False,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Upkeep:
    """Make one pass of upkeep as of `now`, in blocks of memories.

    Each block is decided and written under the writer's lock. `is_stopped` is called between
    blocks. The blocks that a killed pass has written stay, and another pass continues.
    """
    if store.journal.read_only:
        raise ReadOnlyLab(
            f"{store.where} was opened with read_only=True, and upkeep writes changes. Open it without read_only."
        )
    with store.reading():
        pack, memories, edges = store.versions.pack, len(store.state), len(store.state.edges)
    edges = edges if can_prune(pack) else 0
    work = _Pass(store, now, is_stopped)
    with bar(
        progress and memories + edges > _SLOW, memories + edges, unit="row", desc="upkeep"
    ) as step:
        work.over_memories(memories, step)
        if edges:
            work.over_edges(edges, step)
    if not work.ended:
        for follow in list_hooks("upkeep"):
            work.events += follow(store, now)
    with store.reading():
        due = due_for_purge(store.state, store.versions.pack, now)
    at = pl.lit(now).cast(INSTANT).alias("at")
    return Upkeep(
        at=from_micros(now),
        pack=pack.name,
        pack_hash=pack.hash,
        events=tuple(work.events),
        complete=not work.ended,
        frame=pl.concat(work.frames).with_columns(at),
        pruned=pl.concat(work.removed),
        due=due,
    )


def maintain_after_session(store: Store) -> None:
    """Run a pass of upkeep if the pack sets ``maintain-after-session``."""
    with store.reading():
        is_enabled = bool(store.versions.pack.settings["maintain-after-session"])
    if is_enabled:
        run_upkeep(store, store.clock())


class _Pass:
    """One pass of upkeep with its results so far."""

    def __init__(self, store: Store, now: Micros, is_stopped: Callable[[], bool]) -> None:
        self.store, self.now, self.stopped = store, now, is_stopped
        self.events: list[int] = []
        self.ended = False
        self.frames = [find_transitions(store.state, store.versions.pack, NO_ROWS, now).frame]
        self.removed = [edges_frame(store.state, NO_ROWS)]

    def over_memories(self, count: int, step: Step) -> None:
        """Evaluate all memories, one block after another."""
        for start in range(0, count, _BLOCK):
            if self._ended():
                return
            rows = np.arange(start, min(start + _BLOCK, count))
            self._memories(rows)
            step(len(rows))

    def _memories(self, rows: Ints) -> None:
        """Evaluate one block of memories, and write the changes of status and label."""

        def decide() -> tuple[Transitions, Change]:
            """Return the changes of status and label in the block."""
            result = find_transitions(self.store.state, self.store.versions.pack, rows, self.now)
            return result, result.change

        result = self._written(decide)
        if result is not None:
            self.frames.append(result.frame)

    def over_edges(self, count: int, step: Step) -> None:
        """Prune edges, and evaluate the edges next to removed edges again if degrees matter.

        The neighbours are evaluated again until no edge is removed.
        """
        has_degrees = reads_degrees(self.store.versions.pack)
        end_parts = []
        for start in range(0, count, _EDGES):
            if self._ended():
                return
            edges = np.arange(start, min(start + _EDGES, count))
            end_parts.append(self._edges(edges, has_degrees))
            step(len(edges))
        ends = _distinct(np.concatenate(end_parts))
        while len(ends):
            end_parts = []
            for start in range(0, len(ends), _NODES):
                if self._ended():
                    return
                with self.store.reading() as state:
                    edges_nearby = _distinct(
                        state.edges.crossings(ends[start : start + _NODES]).edge
                    )
                end_parts += [
                    self._edges(edges_nearby[start_edge : start_edge + _EDGES], has_degrees)
                    for start_edge in range(0, len(edges_nearby), _EDGES)
                ]
            ends = _distinct(np.concatenate(end_parts))

    def _edges(self, edges: Ints, has_degrees: bool) -> Ints:
        """Prune among `edges`; with ``has_degrees``, return the nodes whose other edges must be evaluated again."""

        def decide() -> tuple[tuple[pl.DataFrame, Ints], Change]:
            """Return the removed edges, and the nodes at their ends."""
            state = self.store.state
            removed = find_pruned(state, self.store.versions.pack, edges, self.now)
            ends = (
                _distinct(np.concatenate(state.edges.ends(removed))) if has_degrees else removed[:0]
            )
            return (edges_frame(state, removed), ends), Change(unlink=removed.tolist())

        result = self._written(decide)
        if result is None:
            return NO_ROWS
        self.removed.append(result[0])
        return result[1]

    def _written(self, decide: Callable[[], tuple[Result, Change]]) -> Result | None:
        """Write the change that `decide` returns; return the result of `decide`, or None without a change.

        The decision is first made without the writer's lock, which is taken only if there is a change. If the state
        changed in between, the decision is repeated.
        """
        store = self.store
        with store.reading():
            seen_seq, (result, change) = store.state.seq, decide()
        if not change:
            return None
        with store.writing() as tx:
            if store.state.seq != seen_seq:
                result, change = decide()
            if not change:
                return None
            body = {"pack": store.versions.pack.hash, **change.body()}
            self.events.append(tx.event("maintain", body, at=self.now))
        return result

    def _ended(self) -> bool:
        """Return whether the pass was stopped."""
        self.ended = self.ended or self.stopped()
        return self.ended


def _distinct(numbers: Ints) -> Ints:
    """Return the distinct numbers in ascending order. No number may be negative.

    Sorting is ten times as fast as a set of millions.
    """
    ordered = np.sort(numbers)
    return np.asarray(ordered[np.diff(ordered, prepend=-1) > 0])
