"""Packs on conversations that are lived, and the same ones that are only stored: what time and linking do to recall.

A conversation is lived session by session, at the times when it was held: what a user says is compared with what is
there, which may supersede, merge or strengthen it, and after each session, and before the questions, the pack's upkeep
lets things fade, move up or go. Stored, the same messages are put into the lab, and nothing happens to them.
Both labs are then asked the same questions at the same instant, without a log, so that no answer depends on another.

A question may say which of its evidence is outdated, because somebody put it right later. How much of that is still
shown is what a life cycle is for; recall is that of the other evidence, as what falls of the outdated is no loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from memlab.errors import DatasetError
from memlab.io.ingest import LabelledConversation
from memlab.kernel.base.arguments import Taken, Within, checked
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.kernel.base.progress import bar
from memlab.kernel.embedding import EmbedderSpec
from memlab.kernel.policies import Pack, load_pack, pack_names
from memlab.science.evaluation import Estimate, cluster_interval
from memlab.subjects.lab import Lab
from memlab.subjects.opening import open_lab

__all__ = ["DynamicsResult", "LivedAbility", "bench_dynamics"]

_DELAY = timedelta(days=1)
"""From the end of a conversation to its questions, where they do not say."""


@dataclass(frozen=True)
class LivedAbility:
    """One pack on the questions of one ability ("" for all): recall stored and lived, with their paired difference.

    Recall is of the evidence that is not outdated. ``outdated`` counts the questions that name outdated evidence;
    ``outdated_stored`` and ``outdated_lived`` are the share of it that was shown.
    """

    pack: str
    ability: str
    questions: int
    stored: float
    lived: float
    difference: Estimate | None
    outdated: int
    outdated_stored: float | None
    outdated_lived: float | None
    outdated_difference: Estimate | None


@dataclass(frozen=True, repr=False)
class DynamicsResult(Report):
    """What packs recall of conversations that were lived, beside the same that were stored.

    ``limit`` is how many memories a recall shows. ``statuses`` counts, by pack, what lived memories had become.
    """

    dataset: str
    conversations: int
    limit: int
    rows: tuple[LivedAbility, ...]
    hashes: Mapping[str, str]
    statuses: Mapping[str, Mapping[str, int]]
    unit: str = "message"
    sha256: str = field(default="", repr=False)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row for each pack and ability (null: all questions), with the ends of paired 95% intervals."""
        return pl.DataFrame([_flat(row) for row in self.rows], infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "dataset": self.dataset,
            "sha256": self.sha256,
            "unit": self.unit,
            "conversations": self.conversations,
            "limit": self.limit,
            "packs": dict(self.hashes),
            "rows": self.frame.to_dicts(),
            "statuses": {pack: dict(counts) for pack, counts in self.statuses.items()},
        }

    def _display(self) -> object:
        caption = (
            f"{self.dataset}: {self.conversations} conversations, lived and stored; recall@{self.limit} of what is not "
            f"outdated, fractional, and the share of outdated evidence among the {self.limit}; 95% intervals of "
            "differences by conversation"
        )
        heads, rows = format_rows(self.frame.iter_rows(named=True), _COLUMNS)
        became = [
            f"{pack}: {', '.join(f'{count:,} {status}' for status, count in counts.items())}"
            for pack, counts in self.statuses.items()
        ]
        return caption, Table("", heads, rows, left=(0, 1)), became


_COLUMNS: Columns = (
    ("pack", "{pack}"),
    ("questions", lambda row: row["ability"] or "all"),
    ("n", "{questions}"),
    ("stored", "{stored:.3f}"),
    ("lived", "{lived:.3f}"),
    ("difference", "{difference:+.3f} [{low:+.3f}, {high:+.3f}]"),
    ("n outdated", lambda row: row["outdated"] or ""),
    ("stored", "{outdated_stored:.3f}"),
    ("lived", "{outdated_lived:.3f}"),
    ("difference", "{outdated_difference:+.3f} [{outdated_low:+.3f}, {outdated_high:+.3f}]"),
)


@checked
def bench_dynamics(
    conversations: Annotated[
        Sequence[LabelledConversation], Taken("what memlab.ingest.read_beam(path) returns")
    ],
    *,
    packs: Iterable[str | Path | Pack] | None = None,
    limit: Annotated[int, Within(1)] = 10,
    dataset: str = "conversations",
    unit: str = "message",
    sha256: str = "",
    embedder: EmbedderSpec = None,
    progress: bool = False,
) -> DynamicsResult:
    """Live each conversation under each pack, and ask: what is recalled, and how much of it is outdated.

    ``packs`` are names, paths or texts; all that come with memlab unless given. A user's messages are memories without
    a kind of their own, so that they are compared; those of others are turns. Raises ``DatasetError`` where no question
    has evidence, ``UnknownName``, ``PolicyError``.

    >>> from memlab.science.bench import bench_dynamics
    >>> from memlab.io.ingest import read_beam
    >>> bench_dynamics(read_beam("beam/100K"), packs=["factgraph"]).frame               # doctest: +SKIP
    """
    chosen = [load_pack(pack) for pack in (pack_names() if packs is None else packs)]
    if not any(
        question.answerable and question.evidence
        for one in conversations
        for question in one.questions
    ):
        raise DatasetError("No answerable question has evidence: there is nothing to measure.")
    found: list[LivedAbility] = []
    statuses: dict[str, dict[str, int]] = {}
    with bar(
        progress, len(chosen) * len(conversations), unit="conversation", desc="living"
    ) as step:
        for pack in chosen:
            asked, became = [], Counter[str]()
            for labelled in conversations:
                with (
                    _lab(pack, labelled, embedder) as stored,
                    _lab(pack, labelled, embedder) as lived,
                ):
                    stored.remember(_rows(labelled), chain=True, linking="off")
                    _live(lived, labelled)
                    asked += _asked(labelled, stored, lived, limit)
                    became.update(lived.memories["status"].to_list())
                step(1)
            statuses[pack.name] = dict(became.most_common())
            found += _summed(pack.name, pl.DataFrame(asked, infer_schema_length=None))
    hashes = {pack.name: pack.hash for pack in chosen}
    return DynamicsResult(
        dataset, len(conversations), limit, tuple(found), hashes, statuses, unit, sha256
    )


def _lab(pack: Pack, labelled: LabelledConversation, embedder: EmbedderSpec) -> Lab:
    return open_lab(
        pack=pack, embedder=embedder, clock=ManualClock(labelled.conversation.turns[0].at)
    )


def _rows(labelled: LabelledConversation) -> list[dict[str, Any]]:
    """What a lab remembers of a conversation: what a user says has no kind, and is compared."""
    rows: list[dict[str, Any]] = labelled.conversation.rows(project=labelled.conversation.name)
    return [
        {name: value for name, value in row.items() if name != "kind" or row["speaker"] != "user"}
        for row in rows
    ]


def _live(lab: Lab, labelled: LabelledConversation) -> None:
    clock = lab.io.store.clock
    assert isinstance(clock, ManualClock)
    for _, rows in groupby(_rows(labelled), key=lambda row: row["session"]):
        session = list(rows)
        clock.set(max(row["at"] for row in session))
        lab.remember(session, chain=True, linking="now")
        lab.upkeep.maintain(progress=False)
    clock.set(labelled.conversation.end + _DELAY)
    lab.upkeep.maintain(progress=False)


def _asked(
    labelled: LabelledConversation, stored: Lab, lived: Lab, limit: int
) -> list[dict[str, Any]]:
    """A row a question: its recall in both labs, and the share of its outdated evidence that each shows."""
    talk, rows = labelled.conversation, []
    for question in labelled.questions:
        holds = [ref for ref in question.evidence if ref not in question.outdated]
        if not (question.answerable and holds):
            continue
        at = max(question.at or talk.end + _DELAY, talk.end + _DELAY)
        row: dict[str, Any] = {"conversation": talk.name, "ability": str(question.category)}
        for name, lab in (("stored", stored), ("lived", lived)):
            hits = lab.recall(question.text, limit=limit, project=talk.name, at=at, log=False)
            shown = {hit.ref for hit in hits}
            row[name] = _share(shown, holds)
            row[f"outdated_{name}"] = (
                _share(shown, question.outdated) if question.outdated else None
            )
        rows.append(row)
    return rows


def _share(shown: set[str | None], wanted: Sequence[str]) -> float:
    return sum(ref in shown for ref in wanted) / len(wanted)


def _summed(pack: str, asked: pl.DataFrame) -> list[LivedAbility]:
    parts = [
        ("", asked),
        *(
            (str(name), part)
            for (name,), part in asked.sort("ability").group_by("ability", maintain_order=True)
        ),
    ]
    return [_ability(pack, name, part) for name, part in parts]


def _ability(pack: str, ability: str, asked: pl.DataFrame) -> LivedAbility:
    outdated = asked.filter(pl.col("outdated_stored").is_not_null())
    stored, lived, difference = _compared(asked, "stored", "lived")
    before, after, gap = (
        _compared(outdated, "outdated_stored", "outdated_lived") if outdated.height else (None,) * 3
    )
    assert stored is not None
    assert lived is not None
    return LivedAbility(
        pack, ability, asked.height, stored, lived, difference, outdated.height, before, after, gap
    )


def _compared(
    asked: pl.DataFrame, *names: str
) -> tuple[float | None, float | None, Estimate | None]:
    """Both means, and their paired difference by conversation."""
    first, second = (asked[name].cast(pl.Float64).to_numpy() for name in names)
    return (
        float(first.mean()),
        float(second.mean()),
        cluster_interval(second - first, asked["conversation"].to_list()),
    )


def _flat(row: LivedAbility) -> dict[str, Any]:
    gap, stale = row.difference, row.outdated_difference
    return {
        "pack": row.pack,
        "ability": row.ability or None,
        "questions": row.questions,
        "stored": row.stored,
        "lived": row.lived,
        "difference": None if gap is None else gap.value,
        "low": None if gap is None else gap.low,
        "high": None if gap is None else gap.high,
        "outdated": row.outdated,
        "outdated_stored": row.outdated_stored,
        "outdated_lived": row.outdated_lived,
        "outdated_difference": None if stale is None else stale.value,
        "outdated_low": None if stale is None else stale.low,
        "outdated_high": None if stale is None else stale.high,
    }
