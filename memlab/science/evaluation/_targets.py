"""What each policy would have shown: re-scored on the logged pool, re-recalled by the lab, or refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.policies import Pack
from memlab.kernel.recall import diversifies
from memlab.science.evaluation._fingerprints import Fingerprints
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._rankers import Ranker
from memlab.science.evaluation._top import best_of_each

__all__ = ["RecallsAgain", "Refused", "Target", "aim", "pool_of", "rescored"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class RecallsAgain(Protocol):
    """A lab that can answer a logged recall once more, on the state before it, under another pack.

    ``decision`` is the recall's row of ``decisions``. The frame has ``memory_id`` (of the log's type), ``score`` and
    the features of every candidate. None where that state cannot be had.
    """

    def __call__(self, decision: dict[str, Any], pack: Pack, /) -> pl.DataFrame | None: ...


@dataclass(frozen=True)
class Refused:
    """A policy that cannot be evaluated on this log, and why."""

    policy: str
    reason: str


@dataclass(frozen=True)
class Target:
    """The items that a policy would have shown, best first, recall by recall (arrays over these items, t).

    ``row`` points into the log's arrays, -1 for what the log's pool does not hold. ``unscored`` counts candidates whose
    score is NaN, null or infinite: they are never shown.
    """

    ranker: Ranker
    kind: Literal["re-scored", "re-recalled"]
    recall: Ints
    rank: Ints
    row: Ints
    memory: pl.Series = field(repr=False)
    score: Floats = field(repr=False)
    unscored: int
    scores: Floats | None = field(repr=False)
    """Of every candidate of the log, f64[n]; none if it was re-recalled."""
    pool: pl.DataFrame | None = field(repr=False)
    """The re-recalled pools with a column ``recall``; none if it was re-scored."""

    @property
    def name(self) -> str:
        return self.ranker.name


def aim(
    rankers: Sequence[Ranker],
    log: Log,
    schema: pl.Schema,
    fingerprints: Fingerprints,
    recall_again: RecallsAgain | None,
) -> tuple[list[Target], list[Refused]]:
    """A target for each ranker, or the reason why there is none."""
    targets: list[Target] = []
    refused: list[Refused] = []
    rescorable, again = [], []
    for ranker in rankers:
        objections = [*fingerprints.objections(ranker, schema), *_likeness(ranker)]
        if not objections:
            rescorable.append(ranker)
        elif ranker.pack is not None and recall_again is not None:
            again.append((ranker, ranker.pack))
        else:
            refused.append(Refused(ranker.name, _way_out(ranker, objections)))
    pool = pool_of(rescorable, log, schema) if rescorable else pl.DataFrame()
    found = [rescored(ranker, log, pool) for ranker in rescorable]
    if again and recall_again is not None:
        found += _recalled(again, log, recall_again)
    for one in found:
        if isinstance(one, Refused):
            refused.append(one)
        else:
            targets.append(one)
    place = {ranker.name: index for index, ranker in enumerate(rankers)}
    return sorted(targets, key=lambda target: place[target.name]), refused


def _likeness(ranker: Ranker) -> list[str]:
    """A pack that orders by more than its scores shows what no scores of the logged pool can tell."""
    if ranker.pack is None or not diversifies(ranker.pack):
        return []
    given = ", ".join(f"{name} {ranker.pack.number(name):g}" for name in ("mmr-weight", "collapse-above"))
    return [f"what it shows depends on the likeness of candidates ({given}), and the log holds no vectors"]


def _way_out(ranker: Ranker, objections: Sequence[str]) -> str:
    sentence = "; ".join(objections)
    sentence = f"{sentence[0].upper()}{sentence[1:]}."
    if ranker.pack is not None:
        return f"{sentence} Evaluate on the slates of a lab, which can recall again, or log with this pack for a while."
    return f"{sentence} Log that feature, or evaluate a policy that does without it."


def _spelled(name: str, schema: pl.Schema) -> str:
    known = schema.names()
    if name in known:
        return name
    return next(column for column in known if column.replace("_", "-") == name.replace("_", "-"))


def pool_of(rankers: Sequence[Ranker], log: Log, schema: pl.Schema) -> pl.DataFrame:
    """The candidates with every column that one of the rankers reads."""
    columns = dict.fromkeys(_spelled(name, schema) for ranker in rankers for name in ranker.reads)
    return log.pool([name for name in columns if name not in ("decision", "memory_id")])


def rescored(ranker: Ranker, log: Log, pool: pl.DataFrame) -> Target | Refused:
    """What the ranker makes of the logged candidates."""
    if ranker.policy is not None:
        values = ranker.policy.columns(pool, by="decision")
    else:
        assert ranker.expression is not None
        values = pool.select(ranker.expression.alias("value")).to_series()
        if len(values) != pool.height:
            raise InputError(f"The expression {ranker.name} gives {len(values)} values for {pool.height} candidates.")
    if not (values.dtype.is_numeric() or values.dtype == pl.Boolean):
        raise InputError(f"The policy {ranker.name} gives {values.dtype}; a score is a number.")
    scores = values.cast(pl.Float64).to_numpy()
    unscored = int((~np.isfinite(scores)).sum())
    if unscored == len(scores) and unscored:
        return Refused(ranker.name, f"None of its {unscored} scores is a finite number: it would show nothing.")
    row, rank = best_of_each(scores, log.recall, log.limit)
    memory = log.ids["memory_id"][row]
    return Target(ranker, "re-scored", log.recall[row], rank, row, memory, scores[row], unscored, scores, None)


def _recalled(rankers: Sequence[tuple[Ranker, Pack]], log: Log, recall_again: RecallsAgain) -> list[Target | Refused]:
    """Recalls in time order, each under every pack, so that a lab that folds its journal forward does so once."""
    again: dict[str, dict[int, pl.DataFrame]] = {ranker.name: {} for ranker, _ in rankers}
    refused: dict[str, Refused] = {}
    order = log.decisions["at"].arg_sort().to_list() if "at" in log.decisions.columns else range(len(log))
    for number in order:
        decision = log.decisions.row(number, named=True)
        for ranker, pack in rankers:
            if ranker.name in refused:
                continue
            frame = recall_again(decision, pack)
            if frame is not None:
                again[ranker.name][number] = frame.with_columns(recall=pl.lit(number, dtype=pl.Int64))
                continue
            why = f"Its features differ from the logged ones, and recall {decision['decision']} cannot be had again."
            refused[ranker.name] = Refused(ranker.name, why)
    return [refused.get(ranker.name) or _aimed(ranker, pack, log, again[ranker.name]) for ranker, pack in rankers]


def _aimed(ranker: Ranker, pack: Pack, log: Log, again: dict[int, pl.DataFrame]) -> Target:
    """What a pack shows of the pools that it found, which are by the number of their recall."""
    pool = pl.concat([again[number] for number in sorted(again)], how="diagonal").sort("recall", "memory_id")
    scores = pool["score"].cast(pl.Float64).to_numpy()
    recall = pool["recall"].to_numpy()
    worth = scores
    if diversifies(pack):
        # the head of the slate is what would have been shown, in the order of its ranks
        worth = np.where(pool["propensity"].to_numpy() > 0, -pool["rank"].to_numpy().astype(np.float64), np.nan)
    chosen, rank = best_of_each(worth, recall, log.limit)
    shown = pool.select("recall", "memory_id")[chosen]
    return Target(
        ranker,
        "re-recalled",
        recall[chosen],
        rank,
        log.rows_of(shown).fill_null(-1).to_numpy(),
        shown["memory_id"],
        scores[chosen],
        int((~np.isfinite(scores)).sum()),
        None,
        pool,
    )
