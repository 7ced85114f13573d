"""Recalls on which two policies differ most, and the score terms that decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base import arguments
from memlab.kernel.base.display import Report, Table, clip
from memlab.kernel.base.printable import count_of
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._targets import Target

Terms = tuple[tuple[str, float], ...]
_EXPLAINED = 4
"""The number of items of a recall whose scores are explained.

They are the items that moved most, because other items differ little.
"""


@dataclass(frozen=True)
class Item:
    """A memory in the results of at least one of two policies.

    A rank or score is None if the policy would not show the memory. The first value of each pair
    belongs to the first policy.
    """

    memory: int | str
    text: str | None
    ranks: tuple[int | None, int | None]
    scores: tuple[float | None, float | None]
    shown: bool
    reward: float | None
    terms: tuple[Terms, Terms]
    """The additive terms of the score under each policy; empty for expressions and columns."""


@dataclass(frozen=True)
class Disagreement:
    """One recall on which two policies differ.

    Parameters
    ----------
    decision
        The id of the recall.
    query
        The text of the query; None if it is not in the log.
    shared
        The number of items that both policies show.
    distance
        The distance of the two results: the sum of |1/rank - 1/rank| over their items.
    items
        The items of both results; the items that moved most are first.
    """

    decision: int | str
    query: str | None
    shared: int
    distance: float
    items: tuple[Item, ...]


class Disagreements(Sequence[Disagreement], Report):
    """The recalls on which two policies differ most, largest difference first.

    Parameters
    ----------
    a, b
        The names of the policies.
    found
        The disagreements, largest difference first.
    """

    def __init__(self, a: str, b: str, found: Sequence[Disagreement]) -> None:
        self.a, self.b = a, b
        self._items = tuple(found)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> Disagreement: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Disagreement]: ...
    @arguments.checked
    def __getitem__(self, at: int | slice) -> Disagreement | Sequence[Disagreement]:
        items: Disagreement | Sequence[Disagreement] = arguments.get_item(
            self._items, at, "disagreement"
        )
        return items

    def __iter__(self) -> Iterator[Disagreement]:
        return iter(self._items)

    @property
    def frame(self) -> pl.DataFrame:
        """A row for each item: ranks, scores, whether it was shown, and its reward."""
        rows = [
            {
                "decision": disagreement.decision,
                "query": disagreement.query,
                "memory_id": item.memory,
                "text": item.text,
                "rank_a": item.ranks[0],
                "rank_b": item.ranks[1],
                "score_a": item.scores[0],
                "score_b": item.scores[1],
                "shown": item.shown,
                "reward": item.reward,
            }
            for disagreement in self
            for item in disagreement.items
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _display(self) -> object:
        parts: list[object] = [
            f"{self.a} vs. {self.b}: the {count_of(len(self), 'recall')} on which they differ most"
        ]
        for disagreement in self:
            query = disagreement.query or ""
            title = (
                f"recall {disagreement.decision} ({disagreement.shared} shared) {query}".rstrip()
            )
            rows = [
                (
                    *("-" if rank is None else str(rank) for rank in item.ranks),
                    clip(item.text or f"memory {item.memory}", 90),
                    "" if item.reward is None else f"{item.reward:g}",
                )
                for item in disagreement.items[:_EXPLAINED]
            ]
            parts.append(Table(title, (self.a, self.b, "memory", "reward"), rows, left=(2,)))
        return parts


def disagreements(
    log: Log, a: Target, b: Target, n: int, *, schema: pl.Schema, lab: Any
) -> Disagreements:
    """Return the ``n`` recalls on which two policies' results differ most.

    The distance of a recall is the sum over items of |1/rank under a - 1/rank under b|, with 0 for
    items that a policy would not show. So changes at the top weigh most.
    """
    results = [_top_k_frame(target) for target in (a, b)]
    both = results[0].join(
        results[1], on=["recall", "memory_id"], how="full", coalesce=True, suffix="_b"
    )
    gain = [(1 / pl.col(name)).fill_null(0.0) for name in ("rank", "rank_b")]
    both = both.with_columns(
        moved=(gain[0] - gain[1]).abs(),
        shared=pl.all_horizontal(pl.col("rank", "rank_b").is_not_null()),
    )
    furthest = (
        both.group_by("recall")
        .agg(pl.col("moved").sum().alias("distance"), pl.col("shared").sum())
        .filter(pl.col("distance") > 0)
        .sort(["distance", "recall"], descending=[True, False])
        .head(n)
    )
    selected = []
    for recall, distance, shared in furthest.iter_rows():
        items = both.filter(pl.col("recall") == recall).sort(
            ["moved", "memory_id"], descending=[True, False]
        )
        selected.append(
            _describe_disagreement(
                recall, distance, shared, items, log, a, b, schema=schema, lab=lab
            )
        )
    return Disagreements(a.name, b.name, selected)


def _top_k_frame(target: Target) -> pl.DataFrame:
    """Return a policy's top-k as a frame of recall, memory_id, rank and score."""
    return pl.DataFrame(
        {
            "recall": target.recall,
            "memory_id": target.memory,
            "rank": target.rank,
            "score": target.score,
        }
    )


def _describe_disagreement(
    recall: int,
    distance: float,
    shared: int,
    items: pl.DataFrame,
    log: Log,
    a: Target,
    b: Target,
    *,
    schema: pl.Schema,
    lab: Any,
) -> Disagreement:
    """Describe one recall: its items with texts, rewards and the terms of their scores."""
    decision = log.decisions.row(recall, named=True)
    rows = np.flatnonzero(log.recall == recall)
    row_of = dict(zip(log.ids["memory_id"][rows].to_list(), rows.tolist(), strict=True))
    texts = _read_texts(log, rows, schema)
    first = items["memory_id"].head(_EXPLAINED).to_list()
    terms = [_explain_scores(target, recall, first, log, schema) for target in (a, b)]
    described = []
    for item in items.iter_rows(named=True):
        memory = item["memory_id"]
        row = row_of.get(memory)
        is_shown = row is not None and bool(log.exposed[row])
        earned = log.reward[row] if row is not None and is_shown else np.nan
        described.append(
            Item(
                memory,
                texts.get(memory) if texts else _read_text(lab, memory),
                (item["rank"], item["rank_b"]),
                (item["score"], item["score_b"]),
                is_shown,
                None if np.isnan(earned) else float(earned),
                (terms[0].get(memory, ()), terms[1].get(memory, ())),
            )
        )
    return Disagreement(
        decision["decision"], decision.get("query"), shared, distance, tuple(described)
    )


def _read_texts(log: Log, rows: NDArray[np.intp], schema: pl.Schema) -> dict[Any, str | None]:
    """Return the logged texts of candidates by memory id, or an empty dict without logged texts.

    ``rows`` are rows of the candidate table.
    """
    if "text" not in schema.names():
        return {}
    pool = log.pool(["text"])[rows]
    return dict(zip(pool["memory_id"].to_list(), pool["text"].to_list(), strict=True))


def _read_text(lab: Any, memory: int | str) -> str | None:
    """Return the text of a memory in the lab, or None without a lab."""
    return None if lab is None else str(lab[memory].text)


def _explain_scores(
    target: Target, recall: int, memories: Sequence[Any], log: Log, schema: pl.Schema
) -> dict[Any, Terms]:
    """Return the additive terms of the scores of some memories in one recall.

    The result is empty if the policy is not in the policy language, or the log lacks a feature.
    """
    # Only scores of the policy language have terms, and they can be computed only if the log has all features.
    policy = target.ranker.policy
    if policy is None:
        return {}
    if target.pool is not None:
        pool = target.pool.filter(pl.col("recall") == recall)
    else:
        names = {name.replace("_", "-"): name for name in schema.names()}
        columns = [names[name] for name in policy.inputs if name in names]
        pool = log.pool(columns)[np.flatnonzero(log.recall == recall)]
    columns_by_name = pool.rename(
        {name: name.replace("_", "-") for name in pool.columns if name != "memory_id"}
    )
    if any(name not in columns_by_name.columns for name in policy.inputs):
        return {}
    aggregates = policy.aggregates(pool)
    terms = {}
    for index, memory in enumerate(columns_by_name["memory_id"].to_list()):
        if memory in memories:
            values = {name: columns_by_name[name][index] for name in policy.inputs}
            explanation = policy.explain(
                values, aggregates=aggregates.row(index, named=True) if aggregates.width else None
            )
            terms[memory] = tuple(
                (term.label or term.text, term.value) for term in explanation.terms
            )
    return terms
