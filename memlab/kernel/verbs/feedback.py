"""Use: what came of the memories that a recall showed, and what that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError, MemlabError, UnknownName
from memlab.kernel.base.clock import Micros
from memlab.kernel.hooks import hooks
from memlab.kernel.journal import Transaction
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import refuse
from memlab.kernel.recall import Hit
from memlab.kernel.schema import OUTCOMES
from memlab.kernel.state import Change, State, find_audience, validate_text
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import view_state
from memlab.kernel.verbs.core import Core, MemoryLike
from memlab.kernel.verbs.gate import check_agent
from memlab.kernel.verbs.recalling.asking import find_slate, logged_slate
from memlab.kernel.verbs.registers import Judged, LastShown
from memlab.kernel.verbs.reinforcement import days_before, joined, pairs_with, reinforced, remaining
from memlab.kernel.verbs.results import Feedback, Memory

__all__ = ["Judgements", "Stated", "checked_judgement"]


class Judgements:
    """What came of the memories that a recall showed."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def feedback(self, judgement: Stated) -> Feedback:
        """Log one judgement and what it changes; see ``Lab.feedback``."""
        with self._core.store.writing() as tx:
            return self._logged(tx, judgement)

    def feedback_many(
        self, rows: Iterable[Mapping[str, Any]] | pl.DataFrame
    ) -> tuple[Feedback, ...]:
        """Log several judgements, all or nothing; see ``Lab.feedback``."""
        stated = judgements_of(rows, self._core.instant)
        if not stated:
            return ()
        logged: list[Feedback] = []
        with self._core.store.writing() as tx:
            for number, one in enumerate(stated):
                with naming_row(number):
                    self._core.row(one.hit)
                    _judged_recall(one.hit, self._core.store, self._core.row(one.hit), one.decision)
            for one in stated:
                # what a judgement changes is decided of the memory as the one before it left it
                if logged:
                    self._core.store.settle(tx)
                logged.append(self._logged(tx, one))
        return tuple(logged)

    def _logged(self, tx: Transaction, stated: Stated) -> Feedback:
        hit, outcome, rating, reward, agent, source, now, decision = stated
        state, pack = self._core.store.state, self._core.pack
        row = self._core.row(hit)
        recall = _judged_recall(hit, self._core.store, row, decision)
        decision = None if recall is None else recall.decision
        body: dict[str, Any] = {"decision": decision, "memory": row + 1, "outcome": outcome}
        body |= {"reward": reward, "source": source}
        if recall is not None:
            body |= {"pack": recall.pack, "probe": recall.probe}
        if rating is not None:
            body["rating"] = rating
        body |= _of_outcome(state, pack, row, stated, recall).body()
        if agent is not None:
            # how it did is known to whoever sees the memory, and so is what follows of it
            visible = view_state(self._core.store.journal, state, find_audience(state, row))
            for fields_of in hooks("feedback"):
                body |= fields_of(visible, pack, agent, outcome)
        seq = tx.event("feedback", body, at=now)
        return Feedback(seq, decision, row + 1, outcome, reward, source, rating, agent)


class _JudgedRecall(NamedTuple):
    """The recall that a judgement belongs to; one that was not logged has no ``decision``."""

    decision: int | None
    at: Micros
    pack: str
    probe: bool


def _judged_recall(
    hit: MemoryLike, store: Store, row: int, decision: int | None
) -> _JudgedRecall | None:
    """The recall that showed the memory: the hit's, the logged one that ``decision`` names, or the last logged one."""
    if isinstance(hit, Hit):
        if decision not in (None, hit.decision):
            raise InputError(f"This hit was shown by recall {hit.decision}, not by {decision}.")
        return _JudgedRecall(hit.decision, hit._hits.slate.at, hit._hits.pack.hash, hit.probe)
    if decision is None:
        last = store.state.projection(LastShown).decision(row + 1)
        slate = None if last is None else find_slate(store, last)
        if slate is None:
            return None
        decision = slate.decision
    else:
        slate = logged_slate(store, decision)
    if row + 1 not in slate.shown:
        raise UnknownName(f"memory that recall {decision} showed", row + 1, map(str, slate.shown))
    return _JudgedRecall(decision, slate.at, slate.pack_hash, row + 1 in slate.probes)


def _of_outcome(
    state: State, pack: Pack, row: int, stated: Stated, recall: _JudgedRecall | None
) -> Change:
    """What feedback changes: in the memory, and in the edges to what succeeded with it."""
    outcome, now = stated.outcome, stated.at
    if outcome is None or not remaining(state, [row + 1]):
        return Change()
    rows = np.array([row])
    used, decision = (None, None) if recall is None else (recall.at, recall.decision)
    change = reinforced(
        state,
        pack,
        rows,
        now,
        outcome="success" if outcome == "success" else "fail",
        rating=stated.rating,
        elapsed=lambda: days_before(state, rows, now, used=used, counted=decision is not None),
    )
    if outcome == "success" and decision is not None:
        kept = state.projection(Judged)
        others = remaining(state, kept.successes(decision))
        if row + 1 not in others:
            change += joined(state, pack, pairs_with(row + 1, others, pack.count("edge-pairs")))
    return change


# -- what somebody says, checked: one judgement, or many as rows ------------------------------------------------------


_FIELDS = ("memory", "outcome", "rating", "reward", "agent", "source", "at", "decision")
_OTHER_NAMES = {"memory_id": "memory", "id": "memory"}
_LAST_EVENT = 1 << 62


class Stated(NamedTuple):
    """One judgement: an outcome, a rating or a reward, of a memory that ``decision`` (or the last recall) showed."""

    hit: MemoryLike
    outcome: str | None
    rating: int | None
    reward: float | None
    agent: str | None
    source: str
    at: Micros
    decision: int | None


def checked_judgement(
    hit: MemoryLike,
    outcome: str | None,
    rating: int | None,
    reward: float | None,
    agent: str | None,
    source: str,
    at: Micros,
    decision: int | None,
) -> Stated:
    """It, with the outcome that a rating stands for. InputError where it says nothing, UnknownName for an outcome."""
    if outcome is None and rating is not None:
        outcome = "fail" if rating == 1 else "success"
    if outcome is None and reward is None:
        raise InputError('Feedback needs an outcome, "success" or "fail", a rating or a reward.')
    if outcome is not None and outcome not in OUTCOMES:
        raise UnknownName("outcome", outcome, OUTCOMES)
    refuse(validate_text(source, where="source"), "the source of feedback")
    if agent is not None:
        check_agent(agent)
    return Stated(hit, outcome, rating, reward, agent, source, at, decision)


def judgements_of(
    rows: Iterable[Mapping[str, Any]] | pl.DataFrame, instant: Callable[[Any], Micros]
) -> list[Stated]:
    """Judgements given as dicts or as a frame, checked; ``instant`` reads a time. The error names the row."""
    if not isinstance(rows, pl.DataFrame) and (
        isinstance(rows, str | Mapping) or not isinstance(rows, Iterable)
    ):
        raise InputError(
            f"Feedback in batches is a list of rows or a Polars frame, not {type(rows).__name__}."
        )
    try:
        given = list(rows.iter_rows(named=True) if isinstance(rows, pl.DataFrame) else rows)
    except Exception as error:
        raise InputError(f"The rows cannot be read: {type(error).__name__}.") from error
    found = []
    for number, row in enumerate(given):
        with naming_row(number):
            found.append(_judgement(row, instant))
    return found


@contextmanager
def naming_row(number: int) -> Iterator[None]:
    """What is wrong within the block is wrong in this row."""
    try:
        yield
    except MemlabError as error:
        error.args = (f"Row {number}: {error}",)
        raise


def _judgement(row: object, instant: Callable[[Any], Micros]) -> Stated:
    if not isinstance(row, Mapping):
        raise InputError(
            f"Feedback is an object with some of {', '.join(_FIELDS)}, not {type(row).__name__}."
        )
    named = {str(name): value for name, value in row.items() if value is not None}
    given = {_OTHER_NAMES.get(name, name): value for name, value in named.items()}
    unknown = next((name for name in given if name not in _FIELDS), None)
    if unknown is not None:
        raise UnknownName("field of feedback", unknown, _FIELDS)
    memory = given.get("memory")
    if not isinstance(memory, Memory | Hit | int) or isinstance(memory, bool):
        raise InputError(
            f"Feedback names a memory (its id, a hit or a memory), not {memory!r:.60}."
        )
    for name in ("outcome", "agent", "source"):
        if not isinstance(given.get(name, ""), str):
            raise InputError(f"The {name} of feedback is a text, not {given[name]!r:.60}.")
    return checked_judgement(
        memory,
        given.get("outcome"),
        _whole(given, "rating", 4),
        _reward(given.get("reward")),
        given.get("agent"),
        given.get("source", "user"),
        instant(given.get("at")),
        _whole(given, "decision", _LAST_EVENT),
    )


def _whole(given: Mapping[str, Any], name: str, most: int) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or value != value // 1
        or not 1 <= value <= most
    ):
        raise InputError(
            f"The {name} of feedback is a whole number from 1 to {most}, not {value!r:.60}."
        )
    return int(value)


def _reward(value: object) -> float | None:
    if value is None:
        return None
    if (
        isinstance(value, str)
        or not isinstance(value, int | float)
        or not abs(value) < float("inf")
    ):
        raise InputError(f"A reward is a finite number, not {value!r:.60}.")
    return float(value)
