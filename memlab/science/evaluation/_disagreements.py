"""Where two policies differ: the recalls whose heads have least in common, with every term that decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base import arguments
from memlab.kernel.base.display import Report, Table, clip
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._targets import Target

__all__ = ["Disagreement", "Disagreements", "Item", "disagreements"]

Terms = tuple[tuple[str, float], ...]
_EXPLAINED = 4
"""Items a recall whose scores are explained: what moved furthest."""


@dataclass(frozen=True)
class Item:
    """A memory in the head of one of the policies; a rank or score is None where the policy would not show it."""

    memory: int | str
    text: str | None
    ranks: tuple[int | None, int | None]
    scores: tuple[float | None, float | None]
    shown: bool
    reward: float | None
    terms: tuple[Terms, Terms]
    """Additive parts of the score under either policy; empty for what is no policy of the language."""


@dataclass(frozen=True)
class Disagreement:
    """One recall: ``shared`` items of the two heads, and all items by how far they moved."""

    decision: int | str
    query: str | None
    shared: int
    distance: float
    items: tuple[Item, ...]


class Disagreements(Sequence[Disagreement], Report):
    """Recalls by how much two policies differ on them, the most first."""

    def __init__(self, a: str, b: str, found: Sequence[Disagreement]) -> None:
        self.a, self.b = a, b
        self._found = tuple(found)

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, at: int) -> Disagreement: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Disagreement]: ...
    @arguments.checked
    def __getitem__(self, at: int | slice) -> Disagreement | Sequence[Disagreement]:
        found: Disagreement | Sequence[Disagreement] = arguments.get_item(
            self._found, at, "disagreement"
        )
        return found

    def __iter__(self) -> Iterator[Disagreement]:
        return iter(self._found)

    @property
    def frame(self) -> pl.DataFrame:
        """One row an item: ranks and scores under ``a`` and ``b``, whether it was shown, and what it earned."""
        rows = [
            {
                "decision": one.decision,
                "query": one.query,
                "memory_id": item.memory,
                "text": item.text,
                "rank_a": item.ranks[0],
                "rank_b": item.ranks[1],
                "score_a": item.scores[0],
                "score_b": item.scores[1],
                "shown": item.shown,
                "reward": item.reward,
            }
            for one in self
            for item in one.items
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _display(self) -> object:
        parts: list[object] = [
            f"{self.a} against {self.b}, the {len(self)} recalls on which they differ most"
        ]
        for one in self:
            title = f"recall {one.decision}{f': {one.query}' if one.query else ''} ({one.shared} shared)"
            rows = [
                (
                    *("-" if rank is None else str(rank) for rank in item.ranks),
                    clip(item.text or f"memory {item.memory}", 90),
                    "" if item.reward is None else f"{item.reward:g}",
                )
                for item in one.items[:_EXPLAINED]
            ]
            parts.append(Table(title, (self.a, self.b, "memory", "earned"), rows, left=(2,)))
        return parts


def disagreements(
    log: Log, a: Target, b: Target, n: int, *, schema: pl.Schema, lab: Any
) -> Disagreements:
    """The ``n`` recalls whose heads are furthest apart, by the sum over items of |1/rank under a - 1/rank under b|.

    An item that only one would show counts with 0 for the other: what moves at the top weighs most.
    """
    heads = [_head(target, log) for target in (a, b)]
    both = heads[0].join(
        heads[1], on=["recall", "memory_id"], how="full", coalesce=True, suffix="_b"
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
    found = []
    for recall, distance, shared in furthest.iter_rows():
        items = both.filter(pl.col("recall") == recall).sort(
            ["moved", "memory_id"], descending=[True, False]
        )
        found.append(
            _disagreement(recall, distance, shared, items, log, a, b, schema=schema, lab=lab)
        )
    return Disagreements(a.name, b.name, found)


def _head(target: Target, log: Log) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "recall": target.recall,
            "memory_id": target.memory,
            "rank": target.rank,
            "score": target.score,
        }
    )


def _disagreement(
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
    decision = log.decisions.row(recall, named=True)
    rows = np.flatnonzero(log.recall == recall)
    place = dict(zip(log.ids["memory_id"][rows].to_list(), rows.tolist(), strict=True))
    texts = _texts(log, rows, schema)
    first = items["memory_id"].head(_EXPLAINED).to_list()
    terms = [_terms(target, recall, first, log, schema) for target in (a, b)]
    described = []
    for item in items.iter_rows(named=True):
        memory = item["memory_id"]
        at = place.get(memory)
        shown = at is not None and bool(log.shown[at])
        earned = log.reward[at] if at is not None and shown else np.nan
        described.append(
            Item(
                memory,
                texts.get(memory) if texts else _text_of(lab, memory),
                (item["rank"], item["rank_b"]),
                (item["score"], item["score_b"]),
                shown,
                None if np.isnan(earned) else float(earned),
                (terms[0].get(memory, ()), terms[1].get(memory, ())),
            )
        )
    return Disagreement(
        decision["decision"], decision.get("query"), shared, distance, tuple(described)
    )


def _texts(log: Log, rows: NDArray[np.intp], schema: pl.Schema) -> dict[Any, str | None]:
    if "text" not in schema.names():
        return {}
    pool = log.pool(["text"])[rows]
    return dict(zip(pool["memory_id"].to_list(), pool["text"].to_list(), strict=True))


def _text_of(lab: Any, memory: int | str) -> str | None:
    return None if lab is None else str(lab[memory].text)


def _terms(
    target: Target, recall: int, memories: Sequence[Any], log: Log, schema: pl.Schema
) -> dict[Any, Terms]:
    """The additive terms of the scores of some memories of one recall."""
    policy = target.ranker.policy
    if policy is None:
        return {}
    if target.pool is not None:
        pool = target.pool.filter(pl.col("recall") == recall)
    else:
        names = {name.replace("_", "-"): name for name in schema.names()}
        columns = [names[name] for name in policy.inputs if name in names]
        pool = log.pool(columns)[np.flatnonzero(log.recall == recall)]
    named = pool.rename(
        {name: name.replace("_", "-") for name in pool.columns if name != "memory_id"}
    )
    if any(name not in named.columns for name in policy.inputs):
        return {}
    aggregates = policy.aggregates(pool)
    explained = {}
    for index, memory in enumerate(named["memory_id"].to_list()):
        if memory in memories:
            values = {name: named[name][index] for name in policy.inputs}
            found = policy.explain(
                values, aggregates=aggregates.row(index, named=True) if aggregates.width else None
            )
            explained[memory] = tuple((term.text, term.value) for term in found.terms)
    return explained
