"""Consolidation of a lab: summaries are worded beside the writer's lock; what they stand for is decided under it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.clock import Micros, from_micros
from memlab.errors import InputError
from memlab.lab._clustering import SHOWN, check_writable, cluster, sought, table
from memlab.life import (
    Group,
    Grouping,
    candidates,
    centroids_of,
    chosen,
    consolidated,
    cut,
    groups,
    labelled,
    said_of,
    sentences,
    summaries_of,
)
from memlab.memory import State, as_said, checked_text, compact, redactions
from memlab.policies import Pack
from memlab.printable import printable
from memlab.privacy import Finding, Screened, personal_kinds, screen
from memlab.store import Store
from memlab.structure import Clusters

__all__ = ["Consolidated", "Summarise", "consolidate", "summaries_frame"]

Summarise = Callable[[list[str]], str]
Ints = NDArray[np.int64]

_READ = 256
"""Sentences of a group among which a summary is chosen, the likest to its mean: each is compared with each."""


@dataclass(frozen=True)
class Consolidated:
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
        return printable(f"<Consolidated {count:,} memories {done} {len(self):,} summaries, pack {self.pack}>")

    def _repr_html_(self) -> str:
        rows = self.frame.head(SHOWN).select("summary", "of", "count", "text").rows()
        return table(repr(self), ("summary", "of", "memories", "text"), rows)


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
    """Plan, write the summaries' texts beside the lock, and under it plan again: what changed since is said anew."""
    if not dry_run:
        check_writable(store)
    plan = _Plan(store, now, older_than_days, keep, project, by, seed)
    said: dict[tuple[int, ...], tuple[Screened, str | None, tuple[Finding, ...]]] = {}
    planned: Clusters | None = None
    if by == "clusters" and plan.unseen():
        if dry_run:
            planned = sought(store, min_size=None, seed=seed)[0]
        else:
            cluster(store, now, min_size=None, seed=seed)  # an event of its own
    while True:
        with store.reading():
            found = plan.groups(store.state, store.versions.pack, planned)
            asked = [(group, *said_of(store.state, group)) for group in found if tuple(group.rows) not in said]
            most, pack = store.versions.pack.count("summary-tokens"), store.versions.pack
        for group, texts, speaker in asked:
            text = _extracted(store, texts, most) if summarise is None else _summarised(summarise, texts)
            screening = screen(text, personal=personal_kinds(pack.settings))
            said[tuple(group.rows)] = screening.text, speaker, screening.findings
        told = [said[tuple(group.rows)] for group in found]
        if dry_run or not found:
            with store.reading() as state:
                return _result(state, now, pack, None, dry_run, found, told, [None] * len(found))
        vectors = store.embedder.encode([as_said(text, speaker) for text, speaker, _ in told])
        with store.writing() as tx:
            state = store.state
            still = plan.groups(state, store.versions.pack, None)
            if [tuple(one.rows) for one in still] != [tuple(one.rows) for one in found]:
                continue
            body, change = consolidated(state, still, by, now)
            body["columns"] = compact(body["columns"])
            ids = list(range(body["first"], body["first"] + body["count"]))
            body |= redactions([(id, one) for id, (_, _, findings) in zip(ids, told, strict=True) for one in findings])
            tx.payloads(ids, [text for text, _, _ in told])
            tx.vectors(ids[0], store.embedder.fingerprint, vectors)
            event = tx.event("consolidate", {"pack": store.versions.pack.hash, **body, **change.body()}, at=now)
            result = _result(state, now, store.versions.pack, event, False, still, told, ids)
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
        days = pack.number("consolidate-days") if self.older_than_days is None else self.older_than_days
        return candidates(state, pack, self.now, older_than=days, project=self.project)

    def unseen(self) -> bool:
        """Whether there is something that may go and that the clusters, as they are, have not seen."""
        with self.store.reading():
            state = self.store.state
            rows, known = self.candidates(state, self.store.versions.pack), centroids_of(state)
            return bool(len(rows)) and bool(known.upto <= rows[-1] or known.fingerprint != state.fingerprint)

    def groups(self, state: State, pack: Pack, planned: Clusters | None) -> list[Group]:
        """With ``planned``, of clusters that are not written down."""
        rows = self.candidates(state, pack)
        names: Mapping[int, str]
        if planned is not None:
            rows = rows[np.isin(rows, planned.rows)]
            labels = planned.labels[np.searchsorted(planned.rows, rows)]
            names = {label: f"cluster {label + 1} of those to be found" for label in range(len(planned))}
        else:
            labels, names = labelled(state, self.by, rows, seed=self.seed)
        keep = pack.count("consolidate-keep") if self.keep is None else self.keep
        return groups(state, rows, labels, names, least=pack.count("consolidate-least"), keep=keep)


def _extracted(store: Store, texts: Sequence[str], most: int) -> str:
    """The sentences that stand for the others, within ``most`` tokens."""
    said = [one for text in texts for one in sentences(text)] or [" ".join(text.split()) for text in texts]
    vectors = store.embedder.encode(said)
    if len(said) > _READ:
        mean = vectors.astype(np.int64).sum(axis=0)
        length = np.sqrt((vectors.astype(np.int64) ** 2).sum(axis=1))
        near = np.round((vectors @ mean) / np.maximum(length, 1.0), 6)
        kept = np.sort(np.lexsort((np.arange(len(said)), -near))[:_READ])
        said, vectors = [said[place] for place in kept.tolist()], vectors[kept]
    places = chosen(said, vectors, most)
    return " ".join(said[place] for place in places) if places else cut(said[0], most)


def _summarised(summarise: Summarise, texts: list[str]) -> str:
    text = summarise(texts)
    if not isinstance(text, str):
        raise InputError(f"summarise= gives one text for a list of texts, not {type(text).__name__}.")
    return checked_text(text, where="what summarise= gave")


def _result(
    state: State,
    now: Micros,
    pack: Pack,
    event: int | None,
    dry_run: bool,
    found: Sequence[Group],
    told: Sequence[tuple[Screened, str | None, tuple[Finding, ...]]],
    ids: Sequence[int | None],
) -> Consolidated:
    frame = pl.DataFrame(
        {
            "summary": ids,
            "of": [group.of for group in found],
            "count": [len(group.rows) for group in found],
            "members": [(group.rows + 1).tolist() for group in found],
            "project": [state.names["project"].at(int(group.rows[0])) for group in found],
            "visibility": [state.names["visibility"].at(int(group.rows[0])) for group in found],
            "text": [text for text, _, _ in told],
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
        from_micros(now), pack.name, event, dry_run, sum(len(findings) for _, _, findings in told), frame
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
            state.names["status"].at(id - 1),
            state.texts.at(id - 1),
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
