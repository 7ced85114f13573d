"""Consolidation of a lab: ``lab.upkeep.consolidation``.

The texts of summaries are written without the writer's lock. Groups are decided again under the lock.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError, ReadOnlyLab, RenamedWarning, UnknownName
from memlab.kernel.base.arguments import Seed, Within, checked
from memlab.kernel.base.arrays import Ints
from memlab.kernel.base.clock import INSTANT, Micros, from_micros
from memlab.kernel.base.display import Displayed, table
from memlab.kernel.base.printable import printable
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import Finding, Screened, personal_kinds, screen
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import (
    Change,
    State,
    add_prefix,
    build_values,
    compact_columns,
    describe_redactions,
    list_audiences,
    validate_text,
)
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.core import Core, MemoryLike
from memlab.kernel.verbs.corrections.editing import find_latest_version
from memlab.kernel.verbs.corrections.replacing import Dependents, Editor, EditOutcome
from memlab.kernel.verbs.results import Memory
from memlab.subjects.clusters.clusters import MAX_ROWS, check_writable, cluster_lab, find_clusters
from memlab.subjects.clusters.finding import Clusters
from memlab.subjects.clusters.grouping import (
    Group,
    Grouping,
    build_consolidation,
    build_restoration,
    form_groups,
    get_summaries,
    label_rows,
    read_utterances,
    select_active_summaries,
    select_candidates,
)
from memlab.subjects.clusters.membership import get_centroids, rows_in_use
from memlab.subjects.clusters.wording import write_summary

Summarise = Callable[[list[str]], str]


@dataclass(frozen=True)
class Consolidated(Displayed):
    """The result of a consolidation: the summaries and the memories they replace.

    Attributes
    ----------
    at
        The instant of the consolidation, in UTC.
    pack
        The name of the pack whose ``consolidate`` policy selected the memories.
    event
        The position of the event in the journal; None if nothing was written.
    dry_run
        Whether the summaries were only planned.
    redacted
        The number of secrets that were removed from the summaries.
    frame
        One row per summary with the columns summary (id, null in a dry run), of (the name of the cluster or community),
        count, members (ids), project, visibility and text.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("The goat eats hay.")
    >>> lab.upkeep.consolidation.run(dry_run=True)
    <Consolidated 0 memories would become 0 summaries, pack memlab>
    """

    at: datetime
    pack: str
    event: int | None
    dry_run: bool
    redacted: int
    frame: pl.DataFrame = field(repr=False)

    @property
    def ids(self) -> list[int]:
        """The ids of the new summaries."""
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
        """Return the table of the first summaries for a notebook."""
        rows = self.frame.head(MAX_ROWS).select("summary", "of", "count", "text").rows()
        return table(repr(self), ("summary", "of", "memories", "text"), rows)


class LabConsolidation:
    """Summaries that replace old memories in recall: ``lab.upkeep.consolidation``.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> len(lab.upkeep.consolidation.run(older_than_days=30))
    0
    """

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
        """Replace old memories of each cluster or community by a summary, in one event.

        The pack's ``consolidate`` policy selects the memories. The default policy selects rarely used events of some
        age. They are grouped by cluster or community and by audience. The replaced memories get the status
        "consolidated" and no longer take part in recall. The summary is a memory of kind "summary", with edges
        ``derived-from`` to the replaced memories. It has their project, scope, visibility, branch, season and creator,
        so the same people see it. A second call writes nothing.

        Parameters
        ----------
        older_than_days
            The minimum age of the memories in days, by default the setting ``consolidate-days``.
        keep
            The number of most important memories of each group that are not replaced, by default the setting
            ``consolidate-keep``. At least ``consolidate-least`` other memories must remain in the group.
        summarise
            A function that receives the texts of the members, oldest first, and returns the text of the summary.
            Secrets in the result are redacted. The function is called without any lock. If it raises, nothing is
            written. By default, a summary has a heading and the most representative sentences of its members, within
            ``summary-tokens``. Questions and short exclamations are left out.
        project
            The project whose memories are consolidated. By default, all projects are included.
        by
            How memories are grouped: by "clusters", or by "communities" of linked memories.
        seed
            The seed of the random draws in computing clusters and communities.
        dry_run
            Whether to return only a plan, without writing anything.

        Returns
        -------
        The summaries, with one row each in ``frame``.

        Raises
        ------
        ReadOnlyLab
            If the lab was opened read-only.
        UnknownName
            If there is no such project.
        InputError
            If a value is out of range, or `summarise` returns no text.

        Notes
        -----
        A summary has the maximum importance and the minimum confidence of its members. Recalls, successes and failures
        are summed, and its date is that of the newest member. The policy decides whether a summary may be consolidated
        again; the shipped policies exclude summaries. If the clusters do not cover the selected memories, clusters are
        computed first, as by ``lab.graph.clusters.find``. Apart from clustering, processor time is 1.5 s for 10,000
        memories and 10 s for 100,000, mostly to embed sentences.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The goat eats hay.", "The goat likes hay."])
        >>> lab.upkeep.consolidation.run(older_than_days=30, dry_run=True).ids
        []
        """
        if project is not None:
            with self._core.reading() as state:
                projects = state.names["project"]
                if projects.code(project) < 0:
                    raise UnknownName("project", project, projects.vocabulary)
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
        """Undo a summary; call ``lab.restore(summary)`` instead.

        Parameters
        ----------
        summary
            The summary, as a memory or an id.

        Returns
        -------
        The summary, which no longer takes part in recall.

        Raises
        ------
        InputError
            If the memory is not an active summary, or is part of another summary.

        Examples
        --------
        >>> lab.upkeep.consolidation.undo(summary)  # doctest: +SKIP
        """
        note = "lab.upkeep.consolidation.undo(summary) will be removed after 0.2. Call lab.restore(summary)."
        warnings.warn(note, RenamedWarning, stacklevel=3)
        row = self._core.row(summary)
        undo_consolidations(self._core.store, [row])
        return self._core.memory(row + 1)

    def frame(self) -> pl.DataFrame:
        """Return a frame with one row per summary, both active and undone.

        Returns
        -------
        One row per summary with the columns memory_id, of, by, count, members (ids), at, undone (null while active),
        status and text.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().upkeep.consolidation.frame().height
        0
        """
        with self._core.reading() as state:
            return summaries_frame(state)


def undo_consolidations(store: Store, rows: Sequence[int]) -> None:
    """Undo summaries: restore their members' status, and retire the summaries.

    Members that were restored, deleted or purged in the meantime are unchanged. Recalls and feedback of a summary stay
    with the summary. Raises InputError for a memory that is not an active summary.
    """
    if store.journal.read_only:
        raise ReadOnlyLab(
            f"{store.where} was opened with read_only=True, so summaries cannot be undone. Open it without read_only."
        )
    with store.writing() as tx:
        for row in rows:
            now = store.clock()
            change = build_restoration(store.state, row, now)
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
    """Select groups of memories, write their summaries, and store them.

    Texts are written without the writer's lock, because a language model may take long. If the groups differ when the
    lock is held, the changed groups are summarised again.
    """
    if not dry_run:
        check_writable(store)
    plan = _Plan(store, now, older_than_days, keep, summarise, project, by, seed)
    planned = plan.cluster_unseen(dry_run=dry_run)
    while True:
        draft = plan.draft(planned)
        if dry_run or not draft.groups:
            with store.reading() as state:
                return _build_result(state, now, draft, None, dry_run, [None] * len(draft.groups))
        if (result := _store_draft(plan, draft)) is not None:
            store.snapshot_if_due()
            return result


class _Summary(NamedTuple):
    """The summary of a group, its speaker, and the secrets that were removed from its text."""

    text: Screened
    speaker: str | None
    findings: tuple[Finding, ...]


class _Draft(NamedTuple):
    """Groups that a pack selected, and their summaries."""

    pack: Pack
    groups: Sequence[Group]
    summaries: Sequence[_Summary]


@dataclass(frozen=True)
class _Plan:
    """The arguments of a consolidation, which its methods apply to the current state."""

    store: Store
    now: Micros
    older_than_days: float | None
    keep: int | None
    summarise: Summarise | None
    project: str | None
    by: Grouping
    seed: int
    _written: dict[tuple[int, ...], _Summary] = field(default_factory=dict)
    """The summaries so far by the rows of their group, so that no group is summarised twice."""

    def candidates(self, state: State, pack: Pack) -> Ints:
        """Return the rows of the memories that can be consolidated."""
        days = (
            pack.number("consolidate-days")
            if self.older_than_days is None
            else self.older_than_days
        )
        return select_candidates(state, pack, self.now, older_than=days, project=self.project)

    def unseen(self) -> list[str]:
        """Return the audiences with selected memories that no clustering has covered yet."""
        with self.store.reading():
            state, result = self.store.state, []
            rows = self.candidates(state, self.store.versions.pack)
            for audience in list_audiences(state) if len(rows) else ():
                audience_rows, clusters = (
                    rows[np.isin(rows, rows_in_use(state, audience))],
                    get_centroids(state).part(audience),
                )
                if len(audience_rows) and (
                    clusters.upto <= audience_rows[-1] or clusters.fingerprint != state.fingerprint
                ):
                    result.append(audience)
            return result

    def cluster_unseen(self, *, dry_run: bool) -> dict[str, Clusters] | None:
        """Cluster the audiences that no clustering has covered; a dry run returns its clusters."""
        unseen = self.unseen() if self.by == "clusters" else []
        if unseen and dry_run:
            return find_clusters(self.store, min_size=None, seed=self.seed)[0]
        if unseen:  # events of their own
            cluster_lab(self.store, self.now, min_size=None, seed=self.seed, only=unseen)
        return None

    def draft(self, planned: dict[str, Clusters] | None) -> _Draft:
        """Return the groups of the current state with their summaries, and write those that are new."""
        store = self.store
        with store.reading() as state:
            pack, language = store.versions.pack, state.words.language
            groups = self.groups(state, pack, planned)
            pending = [
                (tuple(group.rows), *read_utterances(state, group))
                for group in groups
                if tuple(group.rows) not in self._written
            ]
        for rows, utterances, speaker in pending:
            if self.summarise is None:
                text = write_summary(
                    utterances, store.embedder, pack.count("summary-tokens"), language=language
                )
            else:
                text = _call_summarise(
                    self.summarise,
                    [add_prefix(member.text, member.speaker) for member in utterances],
                )
            screening = screen(text, personal=personal_kinds(pack.settings))
            self._written[rows] = _Summary(screening.text, speaker, screening.findings)
        return _Draft(pack, groups, [self._written[tuple(group.rows)] for group in groups])

    def groups(self, state: State, pack: Pack, planned: dict[str, Clusters] | None) -> list[Group]:
        """Return the groups to summarise; a dry run uses the ``planned`` clusters."""
        rows = self.candidates(state, pack)
        names: dict[int, str] | Mapping[int, str]
        if planned is not None:
            label, names = np.full(len(state), -1, dtype=np.int64), {}
            for clusters in planned.values():
                first = len(names)
                label[clusters.rows] = np.where(clusters.labels < 0, -1, clusters.labels + first)
                names |= {
                    first + number: f"planned cluster {number + 1}"
                    for number in range(len(clusters))
                }
            labels = label[rows]
        else:
            labels, names = label_rows(state, self.by, rows, seed=self.seed)
        keep = pack.count("consolidate-keep") if self.keep is None else self.keep
        return form_groups(
            state, rows, labels, names, min_size=pack.count("consolidate-least"), keep=keep
        )


def _call_summarise(summarise: Summarise, texts: list[str]) -> str:
    """Return the summary that a user's function writes for texts; raise InputError if invalid."""
    text = summarise(texts)
    if not isinstance(text, str):
        raise InputError(
            f"summarise= must return a str, not {type(text).__name__}. It gets a list of texts."
        )
    return validate_text(text, where="the result of summarise=")


def _store_draft(plan: _Plan, draft: _Draft) -> Consolidated | None:
    """Store summaries, unless the groups have changed since they were drafted: then return None."""
    store, now, summaries = plan.store, plan.now, draft.summaries
    vectors = store.embedder.encode([add_prefix(text, speaker) for text, speaker, _ in summaries])
    with store.writing() as tx:
        state, pack = store.state, store.versions.pack
        groups = plan.groups(state, pack, None)
        if [tuple(group.rows) for group in groups] != [tuple(group.rows) for group in draft.groups]:
            return None
        body, change = build_consolidation(state, groups, plan.by, now)
        body["columns"] = compact_columns(body["columns"])
        ids = list(range(body["first"], body["first"] + body["count"]))
        body |= describe_redactions(
            [
                (id, finding)
                for id, summary in zip(ids, summaries, strict=True)
                for finding in summary.findings
            ]
        )
        tx.payloads(ids, [summary.text for summary in summaries])
        tx.vectors(ids[0], store.embedder.fingerprint, vectors)
        event = tx.event("consolidate", {"pack": pack.hash, **body, **change.body()}, at=now)
        return _build_result(state, now, _Draft(pack, groups, summaries), event, False, ids)


def _build_result(
    state: State,
    now: Micros,
    draft: _Draft,
    event: int | None,
    dry_run: bool,
    ids: Sequence[int | None],
) -> Consolidated:
    """Return the result of a consolidation, with one row per summary."""
    # All members of a group have one project and one visibility.
    firsts = [int(group.rows[0]) for group in draft.groups]
    frame = pl.DataFrame(
        {
            "summary": ids,
            "of": [group.label for group in draft.groups],
            "count": [len(group.rows) for group in draft.groups],
            "members": [(group.rows + 1).tolist() for group in draft.groups],
            **{
                name: [state.names[name].value_at(first) for first in firsts]
                for name in ("project", "visibility")
            },
            "text": [summary.text for summary in draft.summaries],
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
        draft.pack.name,
        event,
        dry_run,
        sum(len(summary.findings) for summary in draft.summaries),
        frame,
    )


def summaries_frame(state: State) -> pl.DataFrame:
    """Return a frame with one row per summary: group, members, dates, status and text."""
    rows = [
        (
            id,
            summary.of,
            summary.by,
            len(summary.members),
            summary.members,
            summary.at,
            summary.undone,
            state.names["status"].value_at(id - 1),
            state.texts.value_at(id - 1),
        )
        for id, summary in get_summaries(state).all.items()
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
    return frame.with_columns(pl.col("at", "undone").cast(INSTANT))


class Quoting(Dependents):
    """Summaries as dependents of the memories that they quote.

    When a memory is edited, the summaries of its old text are undone, and their members take part in recall again.
    """

    def derived_ids(self, state: State) -> Collection[int]:
        """Return the ids of all memories that are summaries."""
        return get_summaries(state).all.keys()

    def find(self, state: State, row: int, new: str, others: Collection[int]) -> list[int]:
        """Return the rows of the active summaries that include the memory in `row`."""
        return [id - 1 for id in summaries_quoting(state, row)]

    def withdraw(
        self,
        editor: Editor,
        row: int,
        rows: Sequence[int],
        before: dict[str, Any],
        outcome: EditOutcome,
    ) -> dict[str, Any]:
        """Undo the summaries of an edited memory, and return the memory's new fields."""
        after = dict(before)
        for summary in rows:
            state = editor.state
            ids_by_status = get_summaries(state).all[summary + 1].was
            change = build_restoration(state, summary, editor.now)
            successor = find_latest_version(state, summary)
            if successor != summary and state.names["status"].value_at(successor) in RECALLABLE:
                reason = "its members were restored"
                change += Change(
                    set=[
                        build_values(
                            [successor + 1], status="forgotten", changed=editor.now, reason=reason
                        )
                    ]
                )
            editor.write("unconsolidate", {"summary": summary + 1, **change.body()})
            status = next((word for word, ids in ids_by_status.items() if row + 1 in ids), None)
            if status is not None and after.get("status") == "consolidated":
                del after["status"]
                after |= {} if status == "active" else {"status": status}
            outcome.dropped.append("consolidation")
            outcome.notes.append(
                f"Summary {summary + 1} was undone, because it summarises the old text. "
                "Run lab.upkeep.consolidation.run() to write a new summary."
            )
        return after

    def stand_ins(self, state: State, rows: Sequence[int]) -> list[int]:
        """Return the subset of `rows` that are active summaries."""
        return select_active_summaries(state, rows)

    def members(self, state: State, row: int) -> Sequence[int]:
        """Return the ids of the members of the summary in `row`."""
        return get_summaries(state).all[row + 1].members

    def undo(self, store: Store, rows: Sequence[int]) -> None:
        """Undo the summaries in `rows`, so that their members are active again."""
        undo_consolidations(store, rows)


def summaries_quoting(state: State, row: int) -> list[int]:
    """Return the ids of the active summaries that include a memory, outermost first.

    Summaries of summaries are included.
    """
    status = state.names["status"]
    quoting: list[int] = []
    members = {row + 1}
    while members:
        summaries = [
            id
            for id, summary in get_summaries(state).all.items()
            if summary.undone is None
            and status.value_at(id - 1) in (*RECALLABLE, "consolidated", "superseded")
            and not members.isdisjoint(summary.members)
            and id not in quoting
        ]
        quoting += summaries
        members = set(summaries)
    return quoting[::-1]
