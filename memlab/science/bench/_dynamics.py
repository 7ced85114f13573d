"""Measure packs on simulated conversations: the effects of time and linking.

Packs are measured on conversations that are simulated, and on the same conversations stored at
once.

A conversation is simulated session by session, at its own times. Messages of the user are linked
with existing memories, which may supersede, merge or reinforce them. After each session, and before
the questions, the pack's upkeep decays, promotes or deletes memories. In the stored variant, the
same messages are put into a lab without linking or upkeep. Both labs get the same questions at the
same time, without a log, so that the recalls are independent.

A question may mark some of its evidence as outdated, because the user corrected it later. The
upkeep of memories should show less outdated evidence. Recall counts only the other evidence, so a
pack loses nothing if it drops outdated evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby, product
from typing import Annotated, Any

import polars as pl

from memlab.errors import DatasetError
from memlab.io.ingest import LabelledConversation
from memlab.kernel.base.arguments import Taken, Within, checked
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.embedding import EmbedderSpec
from memlab.kernel.policies import Pack, PolicyLike, as_packs, pack_names
from memlab.science.batch import Workers, run_tasks
from memlab.science.bench._questions import QUESTION_DELAY
from memlab.science.evaluation import Estimate, cluster_interval
from memlab.subjects.lab import Lab
from memlab.subjects.opening import open_lab


@dataclass(frozen=True)
class LivedAbility:
    """One pack's recall on the questions of one ability, stored and simulated.

    Parameters
    ----------
    pack
        The name of the pack.
    ability
        The ability that the questions test; "" for all abilities.
    questions
        The number of questions.
    stored, lived
        The mean recall of evidence that is not outdated, in the stored and in the simulated lab.
    difference
        The paired difference of that recall, simulated minus stored; None for a single
        conversation.
    outdated
        The number of questions with outdated evidence.
    outdated_stored, outdated_lived
        The share of outdated evidence that was shown, in the stored and in the simulated lab.
    outdated_difference
        The paired difference of that share, simulated minus stored.
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
    """The recall of packs on conversations that were simulated or stored at once.

    Parameters
    ----------
    dataset
        The name of the data.
    conversations
        The number of conversations.
    limit
        The maximum number of results of a recall.
    rows
        The results by pack and ability.
    hashes
        The hash of each pack.
    statuses
        The number of memories in each status at the end, by pack.
    unit
        What a memory contains, such as "message".
    sha256
        The SHA-256 digest of the data.

    Examples
    --------
    >>> row = LivedAbility("memlab", "", 4, 0.75, 0.5, None, 0, None, None, None)
    >>> result = DynamicsResult("chats", 1, 10, (row,), {"memlab": "hash"}, {"memlab": {"active": 9}})
    >>> result.frame.select("pack", "stored", "lived").rows()
    [('memlab', 0.75, 0.5)]
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
        """A row for each pack and ability (null: all), with paired 95% intervals."""
        return pl.DataFrame([_flatten(row) for row in self.rows], infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values.

        Returns
        -------
        dict
            The keys are ``dataset``, ``sha256``, ``unit``, ``conversations``, ``limit``, ``packs``,
            ``rows`` and ``statuses``.
        """
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
            f"{self.dataset}: {self.conversations} conversations, stored and simulated; fractional recall@{self.limit} of "
            f"current evidence, and the share of outdated evidence in the top {self.limit}; 95% intervals of differences "
            "by conversation"
        )
        headings, rows = format_rows(self.frame.iter_rows(named=True), _COLUMNS)
        became = [
            f"{pack}: {', '.join(f'{count:,} {status}' for status, count in counts.items())}"
            for pack, counts in self.statuses.items()
        ]
        return caption, Table("", headings, rows, left=(0, 1)), became


# Columns on current evidence, then on outdated evidence.
_COLUMNS: Columns = (
    ("pack", "{pack}"),
    ("questions", lambda row: row["ability"] or "all"),
    ("n", "{questions}"),
    ("stored", "{stored:.3f}"),
    ("simulated", "{lived:.3f}"),
    ("difference", "{difference:+.3f} [{low:+.3f}, {high:+.3f}]"),
    ("n outdated", lambda row: row["outdated"] or ""),
    ("outdated, stored", "{outdated_stored:.3f}"),
    ("outdated, simulated", "{outdated_lived:.3f}"),
    (
        "outdated, difference",
        "{outdated_difference:+.3f} [{outdated_low:+.3f}, {outdated_high:+.3f}]",
    ),
)


@checked
def bench_dynamics(
    conversations: Annotated[
        Sequence[LabelledConversation], Taken("what memlab.ingest.read_beam(path) returns")
    ],
    *,
    packs: PolicyLike | None = None,
    limit: Annotated[int, Within(1)] = 10,
    dataset: str = "conversations",
    unit: str = "message",
    sha256: str = "",
    embedder: EmbedderSpec = None,
    progress: bool = False,
    executor: Workers = None,
) -> DynamicsResult:
    """Measure recall of current and outdated evidence on simulated conversations.

    Messages of the user are memories without a kind, so that they are linked. Messages of others
    have the kind "turn".

    Parameters
    ----------
    conversations
        Labelled conversations, such as the result of ``memlab.ingest.read_beam``.
    packs
        Packs in any form, or policies that replace the policy of their slot in the default pack. Default:
        all packs of memlab.
    limit
        The maximum number of results of a recall, at least 1.
    dataset
        The name of the data, for reports.
    unit
        What a memory contains, for reports.
    sha256
        The SHA-256 digest of the data, for reports.
    embedder
        The embedder of the labs.
    progress
        Whether to show a progress bar.
    executor
        A number of processes, or an object with ``submit``, such as a ``dask.distributed.Client``.
        Each conversation under each pack is a task. Default: this thread.

    Returns
    -------
    DynamicsResult
        The recall of each pack, stored and simulated.

    Raises
    ------
    DatasetError
        If no answerable question has evidence.
    UnknownName, PolicyError
        If a pack does not exist or is invalid.
    WorkerLost
        If the executor does not return the result of a task.

    Examples
    --------
    >>> from memlab.science.bench import bench_dynamics
    >>> from memlab.io.ingest import read_beam
    >>> bench_dynamics(read_beam("beam/100K"), packs=["factgraph"]).frame               # doctest: +SKIP
    """
    chosen = as_packs(pack_names() if packs is None else packs)
    if not any(
        question.answerable and question.evidence
        for conversation in conversations
        for question in conversation.questions
    ):
        raise DatasetError(
            "No answerable question has evidence, so there is nothing to measure. Pass conversations with labelled "
            "questions."
        )
    tasks = list(product(chosen, conversations))
    with bar(progress, len(tasks), unit="conversation", desc="simulating") as step:
        measured = run_tasks(partial(_measure_dynamics, embedder, limit), tasks, executor, step)
    abilities: list[LivedAbility] = []
    statuses: dict[str, dict[str, int]] = {}
    for number, pack in enumerate(chosen):
        # Tasks are in the order of packs, and have one conversation each.
        own = measured[number * len(conversations) : (number + 1) * len(conversations)]
        answers = [row for rows, _ in own for row in rows]
        became = Counter(status for _, names in own for status in names)
        statuses[pack.name] = dict(became.most_common())
        abilities += _summarise_pack(pack.name, pl.DataFrame(answers, infer_schema_length=None))
    hashes = {pack.name: pack.hash for pack in chosen}
    return DynamicsResult(
        dataset, len(conversations), limit, tuple(abilities), hashes, statuses, unit, sha256
    )


def _measure_dynamics(
    embedder: EmbedderSpec, limit: int, task: tuple[Pack, LabelledConversation], step: Step
) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure a pack on a conversation, stored at once and simulated over time.

    Returns the answers of ``_ask_questions``, and the status of each memory at the end.
    """
    pack, labelled = task
    with (
        _open_lab(pack, labelled, embedder) as stored,
        _open_lab(pack, labelled, embedder) as lived,
    ):
        stored.remember(_message_rows(labelled), chain=True, linking="off")
        _simulate(lived, labelled)
        answers = _ask_questions(labelled, stored, lived, limit)
        step(1)
        return answers, lived.memories["status"].to_list()


def _open_lab(pack: Pack, labelled: LabelledConversation, embedder: EmbedderSpec) -> Lab:
    """Open a lab in memory, at the time of a conversation's first turn."""
    return open_lab(
        pack=pack, embedder=embedder, clock=ManualClock(labelled.conversation.turns[0].at)
    )


def _message_rows(labelled: LabelledConversation) -> list[dict[str, Any]]:
    """Return the rows of a conversation's messages.

    Messages of the user have no kind, so that they are linked.
    """
    rows: list[dict[str, Any]] = labelled.conversation.rows(project=labelled.conversation.name)
    return [
        {name: value for name, value in row.items() if name != "kind" or row["speaker"] != "user"}
        for row in rows
    ]


def _simulate(lab: Lab, labelled: LabelledConversation) -> None:
    """Remember a conversation session by session, with linking and upkeep."""
    clock = lab.io.store.clock
    assert isinstance(clock, ManualClock)
    for _, rows in groupby(_message_rows(labelled), key=lambda row: row["session"]):
        session = list(rows)
        clock.set(max(row["at"] for row in session))
        lab.remember(session, chain=True, linking="now")
        lab.upkeep.maintain(progress=False)
    clock.set(labelled.conversation.end + QUESTION_DELAY)
    lab.upkeep.maintain(progress=False)


def _ask_questions(
    labelled: LabelledConversation, stored: Lab, lived: Lab, limit: int
) -> list[dict[str, Any]]:
    """Recall for each question in both labs, and return a row for each question.

    A row has the recall of current evidence, and the share of outdated evidence shown, in each lab.
    """
    talk, rows = labelled.conversation, []
    for question in labelled.questions:
        current = [ref for ref in question.evidence if ref not in question.outdated]
        if not (question.answerable and current):
            continue
        at = max(question.at or talk.end + QUESTION_DELAY, talk.end + QUESTION_DELAY)
        row: dict[str, Any] = {"conversation": talk.name, "ability": str(question.category)}
        for name, lab in (("stored", stored), ("lived", lived)):
            hits = lab.recall(question.text, limit=limit, project=talk.name, at=at, log=False)
            refs = {hit.ref for hit in hits}
            row[name] = _count_share(refs, current)
            row[f"outdated_{name}"] = (
                _count_share(refs, question.outdated) if question.outdated else None
            )
        rows.append(row)
    return rows


def _count_share(refs: set[str | None], wanted: Sequence[str]) -> float:
    """Return the share of the wanted refs that ``refs`` contains."""
    return sum(ref in refs for ref in wanted) / len(wanted)


def _summarise_pack(pack: str, answers: pl.DataFrame) -> list[LivedAbility]:
    """Summarise a pack's results over all questions, and for each ability."""
    parts = [
        ("", answers),
        *(
            (str(name), part)
            for (name,), part in answers.sort("ability").group_by("ability", maintain_order=True)
        ),
    ]
    return [_summarise_ability(pack, name, part) for name, part in parts]


def _summarise_ability(pack: str, ability: str, answers: pl.DataFrame) -> LivedAbility:
    """Summarise a pack's results on the questions of one ability."""
    outdated = answers.filter(pl.col("outdated_stored").is_not_null())
    stored, lived, difference = _compare_means(answers, "stored", "lived")
    before, after, gap = (
        _compare_means(outdated, "outdated_stored", "outdated_lived")
        if outdated.height
        else (None,) * 3
    )
    assert stored is not None
    assert lived is not None
    return LivedAbility(
        pack,
        ability,
        answers.height,
        stored,
        lived,
        difference,
        outdated.height,
        before,
        after,
        gap,
    )


def _compare_means(
    answers: pl.DataFrame, *names: str
) -> tuple[float | None, float | None, Estimate | None]:
    """Return the means of two columns, and their difference (second minus first) over conversations."""
    first, second = (answers[name].cast(pl.Float64).to_numpy() for name in names)
    return (
        float(first.mean()),
        float(second.mean()),
        cluster_interval(second - first, answers["conversation"].to_list()),
    )


def _flatten(row: LivedAbility) -> dict[str, Any]:
    """Return the results on one ability as a row of the result frame."""
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
