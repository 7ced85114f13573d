"""Consolidation of a lab: summaries are worded beside the writer's lock; what they stand for is decided under it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, ReadOnlyLab, RenamedWarning, UnknownName
from memlab.kernel.base.arguments import Seed, Within, checked
from memlab.kernel.base.clock import Micros, from_micros
from memlab.kernel.base.display import Displayed, table
from memlab.kernel.base.printable import printable
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import Finding, Screened, personal_kinds, screen
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import (
    Change,
    State,
    build_values,
    compact_columns,
    describe_redactions,
    list_audiences,
    prefix_speaker,
    validate_text,
)
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.core import Core, MemoryLike
from memlab.kernel.verbs.corrections.editing import find_latest_version
from memlab.kernel.verbs.corrections.replacing import Dependents, Editor, EditOutcome
from memlab.kernel.verbs.results import Memory
from memlab.subjects.clusters.clusters import SHOWN, check_writable, cluster, find_clusters
from memlab.subjects.clusters.finding import Clusters
from memlab.subjects.clusters.grouping import (
    Group,
    Grouping,
    candidates,
    consolidated,
    groups,
    labelled,
    standing_summaries,
    summaries_of,
    told_by,
    unconsolidated,
)
from memlab.subjects.clusters.membership import centroids_of, in_use
from memlab.subjects.clusters.wording import worded

__all__ = [
    "Consolidated",
    "LabConsolidation",
    "Quoting",
    "Summarise",
    "consolidate",
    "summaries_frame",
]


Summarise = Callable[[list[str]], str]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Consolidated(Displayed):
    """The summaries that were made, or with ``dry_run`` would be made, as of ``at``, under the pack of this name.

    ``frame``: a row a summary (summary: its id, null in a dry run; of: the cluster or community; count and members:
    their ids; project, visibility, text). ``event`` is the place in the journal, None where nothing was written.
    ``redacted`` counts secrets that the privacy gate took out of the summaries.
    """

    at: datetime
    pack: str
    event: int | None
    dry_run: bool
    redacted: int
    frame: pl.DataFrame = field(repr=False)

    @property
    def ids(self) -> list[int]:
        """The ids of the summaries that were made."""
        return self.frame["summary"].drop_nulls().to_list()

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        count = int(self.frame["count"].sum())
        done = "would become" if self.dry_run else "became"
        return printable(
            f"<Consolidated {count:,} memories {done} {len(self):,} summaries, pack {self.pack}>"
        )

    def _display(self) -> object:
        rows = self.frame.head(SHOWN).select("summary", "of", "count", "text").rows()
        return table(repr(self), ("summary", "of", "memories", "text"), rows)


class LabConsolidation:
    """``lab.upkeep.consolidation``: one summary in the place of many old memories."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @checked
    def run(
        self,
        *,
        older_than_days: Annotated[float, Within(0)] | None = None,
        keep: Annotated[int, Within(0)] | None = None,
        summarise: Summarise | None = None,
        project: str | None = None,
        by: Grouping = "clusters",
        seed: Seed = 0,
        dry_run: bool = False,
    ) -> Consolidated:
        """Let one summary stand for many old memories of a cluster, or of a community of linked ones; one event.

        ``by`` is "clusters" or "communities". The pack's ``consolidate`` policy says which memories may go: by default
        what merely happened, was hardly used, and not for ``older_than_days`` (else the setting ``consolidate-days``).
        Of each group that the same people may see, the ``keep`` (``consolidate-keep``) most important stay as they are,
        and the others, at least ``consolidate-least``, become one memory of kind "summary" in their place. They stay,
        with the status "consolidated", out of recall, and the summary leads to them by edges ``derived-from``. A
        summary is never wider than its members: project, scope, visibility, branch, season and creator are theirs.

        Without ``summarise`` a summary has a heading (what its members are about, how many they are, of which days) and
        the most telling of their own sentences, with their speakers, within ``summary-tokens``; questions and bare
        exclamations are left out. ``summarise`` takes the members' texts, the oldest first, and returns a text; it goes
        through the privacy gate. It is called outside of any lock, and what it raises ends the call with nothing
        written.

        Importance is the greatest of the members', confidence the least; recalls, successes and failures are summed;
        it is dated as its newest member. A second call writes nothing. Whether a summary may go into another one is up
        to the policy; the shipped ones say no.

        Clusters are found first (as by ``lab.graph.clusters.find``) where they have not seen all that may go. With
        ``dry_run`` nothing is written. CPU, clusters aside: 1.5 s of 10,000 memories, 10 s of 100,000, of which most is
        embedding each sentence. Raises ReadOnlyLab, UnknownName for a project or ``by``, InputError for other values.

        >>> lab.upkeep.consolidation.run(older_than_days=30, dry_run=True).frame                        # doctest: +SKIP
        """
        if project is not None:
            with self._core.reading() as state:
                known = state.names["project"]
                if known.code(project) < 0:
                    raise UnknownName("project", project, known.vocabulary)
        return consolidate(
            self._core.store,
            self._core.store.clock(),
            older_than_days=older_than_days,
            keep=keep,
            summarise=summarise,
            project=project,
            by=by,
            seed=seed,
            dry_run=dry_run,
        )

    @checked
    def undo(self, summary: MemoryLike) -> Memory:
        """Restore the members of a summary: ``lab.restore(summary)`` by its former name.

        InputError for a memory that is no summary, or stands for nobody any more, and for a summary that is part of
        another: restore that first.
        """
        note = "lab.upkeep.consolidation.undo(summary) is lab.restore(summary) from 0.1 on, and goes after 0.2."
        warnings.warn(note, RenamedWarning, stacklevel=3)
        row = self._core.row(summary)
        undo_consolidations(self._core.store, [row])
        return self._core.memory(row + 1)

    def frame(self) -> pl.DataFrame:
        """What consolidation made: memory_id, of, by, count, members, at, undone (null: it stands), status, text."""
        with self._core.reading() as state:
            return summaries_frame(state)


def undo_consolidations(store: Store, rows: Sequence[int]) -> None:
    """Give the members of these summaries the status that they had, and take the summaries out of recall.

    A member that left its summary since (restored, deleted, purged) stays as it is. Recalls and feedback of a summary
    stay its own. InputError for what is no summary, or no longer stands for its members.
    """
    if store.journal.read_only:
        raise ReadOnlyLab(f"{store.where} was opened with read_only=True.")
    with store.writing() as tx:
        for row in rows:
            now = store.clock()
            change = unconsolidated(store.state, row, now)
            tx.event("unconsolidate", {"summary": row + 1, **change.body()}, at=now)
            store.settle(tx)


def consolidate(
    store: Store,
    now: Micros,
    *,
    older_than_days: float | None,
    keep: int | None,
    summarise: Summarise | None,
    project: str | None,
    by: Grouping,
    seed: int,
    dry_run: bool,
) -> Consolidated:
    """Plan, write the summaries' texts beside the lock, and under it plan again: what changed is summarised again."""
    if not dry_run:
        check_writable(store)
    plan = _Plan(store, now, older_than_days, keep, project, by, seed)
    summary_of: dict[tuple[int, ...], tuple[Screened, str | None, tuple[Finding, ...]]] = {}
    planned: dict[str, Clusters] | None = None
    unseen = plan.unseen() if by == "clusters" else []
    if unseen:
        if dry_run:
            planned = find_clusters(store, min_size=None, seed=seed)[0]
        else:
            cluster(store, now, min_size=None, seed=seed, among=unseen)  # events of their own
    while True:
        with store.reading():
            found = plan.groups(store.state, store.versions.pack, planned)
            pending = [
                (group, *told_by(store.state, group))
                for group in found
                if tuple(group.rows) not in summary_of
            ]
            most, pack = store.versions.pack.count("summary-tokens"), store.versions.pack
            language = store.state.words.language
        for group, told, speaker in pending:
            if summarise is None:
                text = worded(told, store.embedder, most, language=language)
            else:
                text = _summarised(
                    summarise, [prefix_speaker(one.text, one.speaker) for one in told]
                )
            screening = screen(text, personal=personal_kinds(pack.settings))
            summary_of[tuple(group.rows)] = screening.text, speaker, screening.findings
        found_texts = [summary_of[tuple(group.rows)] for group in found]
        if dry_run or not found:
            with store.reading() as state:
                return _result(
                    state, now, pack, None, dry_run, found, found_texts, [None] * len(found)
                )
        vectors = store.embedder.encode(
            [prefix_speaker(text, speaker) for text, speaker, _ in found_texts]
        )
        with store.writing() as tx:
            state = store.state
            still = plan.groups(state, store.versions.pack, None)
            if [tuple(one.rows) for one in still] != [tuple(one.rows) for one in found]:
                continue
            body, change = consolidated(state, still, by, now)
            body["columns"] = compact_columns(body["columns"])
            ids = list(range(body["first"], body["first"] + body["count"]))
            body |= describe_redactions(
                [
                    (id, one)
                    for id, (_, _, findings) in zip(ids, found_texts, strict=True)
                    for one in findings
                ]
            )
            tx.payloads(ids, [text for text, _, _ in found_texts])
            tx.vectors(ids[0], store.embedder.fingerprint, vectors)
            event = tx.event(
                "consolidate", {"pack": store.versions.pack.hash, **body, **change.body()}, at=now
            )
            result = _result(state, now, store.versions.pack, event, False, still, found_texts, ids)
        store.snapshot_if_due()
        return result


@dataclass(frozen=True)
class _Plan:
    """Which memories become which summaries, asked of whatever state there is."""

    store: Store
    now: Micros
    older_than_days: float | None
    keep: int | None
    project: str | None
    by: Grouping
    seed: int

    def candidates(self, state: State, pack: Pack) -> Ints:
        days = (
            pack.number("consolidate-days")
            if self.older_than_days is None
            else self.older_than_days
        )
        return candidates(state, pack, self.now, older_than=days, project=self.project)

    def unseen(self) -> list[str]:
        """The audiences of which there is something that may go and that their clusters, as they are, have not seen."""
        with self.store.reading():
            state, found = self.store.state, []
            rows = self.candidates(state, self.store.versions.pack)
            for audience in list_audiences(state) if len(rows) else ():
                own, known = (
                    rows[np.isin(rows, in_use(state, audience))],
                    centroids_of(state).part(audience),
                )
                if len(own) and (known.upto <= own[-1] or known.fingerprint != state.fingerprint):
                    found.append(audience)
            return found

    def groups(self, state: State, pack: Pack, planned: dict[str, Clusters] | None) -> list[Group]:
        """With ``planned``, of clusters that are not written down."""
        rows = self.candidates(state, pack)
        names: dict[int, str] | Mapping[int, str]
        if planned is not None:
            label, names = np.full(len(state), -1, dtype=np.int64), {}
            for found in planned.values():
                first = len(names)
                label[found.rows] = np.where(found.labels < 0, -1, found.labels + first)
                names |= {
                    first + one: f"cluster {one + 1} of those to be found"
                    for one in range(len(found))
                }
            labels = label[rows]
        else:
            labels, names = labelled(state, self.by, rows, seed=self.seed)
        keep = pack.count("consolidate-keep") if self.keep is None else self.keep
        return groups(state, rows, labels, names, least=pack.count("consolidate-least"), keep=keep)


def _summarised(summarise: Summarise, texts: list[str]) -> str:
    text = summarise(texts)
    if not isinstance(text, str):
        raise InputError(
            f"summarise= gives one text for a list of texts, not {type(text).__name__}."
        )
    return validate_text(text, where="what summarise= gave")


def _result(
    state: State,
    now: Micros,
    pack: Pack,
    event: int | None,
    dry_run: bool,
    found: Sequence[Group],
    summaries: Sequence[tuple[Screened, str | None, tuple[Finding, ...]]],
    ids: Sequence[int | None],
) -> Consolidated:
    frame = pl.DataFrame(
        {
            "summary": ids,
            "of": [group.of for group in found],
            "count": [len(group.rows) for group in found],
            "members": [(group.rows + 1).tolist() for group in found],
            "project": [state.names["project"].value_at(int(group.rows[0])) for group in found],
            "visibility": [
                state.names["visibility"].value_at(int(group.rows[0])) for group in found
            ],
            "text": [text for text, _, _ in summaries],
        },
        schema={
            "summary": pl.Int64,
            "of": pl.String,
            "count": pl.Int64,
            "members": pl.List(pl.Int64),
            "project": pl.String,
            "visibility": pl.String,
            "text": pl.String,
        },
    )
    return Consolidated(
        from_micros(now),
        pack.name,
        event,
        dry_run,
        sum(len(findings) for _, _, findings in summaries),
        frame,
    )


def summaries_frame(state: State) -> pl.DataFrame:
    """A row a summary: memory_id, of, by, count, members (ids), at, undone (null: it stands), status, text."""
    rows = [
        (
            id,
            one.of,
            one.by,
            len(one.members),
            one.members,
            one.at,
            one.undone,
            state.names["status"].value_at(id - 1),
            state.texts.value_at(id - 1),
        )
        for id, one in summaries_of(state).all.items()
    ]
    schema: dict[str, Any] = {
        "memory_id": pl.Int64,
        "of": pl.String,
        "by": pl.String,
        "count": pl.Int64,
        "members": pl.List(pl.Int64),
        "at": pl.Int64,
        "undone": pl.Int64,
        "status": pl.String,
        "text": pl.String,
    }
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(pl.col("at", "undone").cast(pl.Datetime("us", "UTC")))


# Summaries that quote a memory: what a correction of it, and bringing a summary back, makes of them.


class Quoting(Dependents):
    """What consolidation made: a summary of the old words is undone, its members are in use again."""

    def derived_ids(self, state: State) -> Collection[int]:
        return summaries_of(state).all.keys()

    def find(self, state: State, row: int, new: str, others: Collection[int]) -> list[int]:
        return [id - 1 for id in summaries_quoting(state, row)]

    def withdraw(
        self,
        editor: Editor,
        row: int,
        rows: Sequence[int],
        before: dict[str, Any],
        outcome: EditOutcome,
    ) -> dict[str, Any]:
        """Undo the summaries in ``rows``: their members are in use again, in their own words."""
        after = dict(before)
        for summary in rows:
            state = editor.state
            was = summaries_of(state).all[summary + 1].was
            change = unconsolidated(state, summary, editor.now)
            standing = find_latest_version(state, summary)
            if standing != summary and state.names["status"].value_at(standing) in RECALLABLE:
                reason = "its members were restored"
                change += Change(
                    set=[
                        build_values(
                            [standing + 1], status="forgotten", changed=editor.now, reason=reason
                        )
                    ]
                )
            editor.write("unconsolidate", {"summary": summary + 1, **change.body()})
            status = next((word for word, ids in was.items() if row + 1 in ids), None)
            if status is not None and after.get("status") == "consolidated":
                del after["status"]
                after |= {} if status == "active" else {"status": status}
            outcome.dropped.append("consolidation")
            outcome.notes.append(
                f"Summary {summary + 1} is undone, because it sums up the old text; consolidate again."
            )
        return after

    def stand_ins(self, state: State, rows: Sequence[int]) -> list[int]:
        return standing_summaries(state, rows)

    def members(self, state: State, row: int) -> Sequence[int]:
        return summaries_of(state).all[row + 1].members

    def undo(self, store: Store, rows: Sequence[int]) -> None:
        undo_consolidations(store, rows)


def summaries_quoting(state: State, row: int) -> list[int]:
    """Return the ids of the summaries in use that were made of the memory in ``row``, the outermost first."""
    status = state.names["status"]
    found: list[int] = []
    wanted = {row + 1}
    while wanted:
        made = [
            id
            for id, one in summaries_of(state).all.items()
            if one.undone is None
            and status.value_at(id - 1) in (*RECALLABLE, "consolidated", "superseded")
            and not wanted.isdisjoint(one.members)
            and id not in found
        ]
        found += made
        wanted = set(made)
    return found[::-1]
