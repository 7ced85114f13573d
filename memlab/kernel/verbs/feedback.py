"""Feedback: judgements of retrieved memories and the changes that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError, MemlabError, UnknownName
from memlab.kernel.base.clock import Micros
from memlab.kernel.hooks import list_hooks
from memlab.kernel.journal import Body, Transaction
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import refuse
from memlab.kernel.recall import Hit
from memlab.kernel.schema import OUTCOMES
from memlab.kernel.state import Change, State, find_audience, validate_text
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import view_state
from memlab.kernel.verbs.core import Core, MemoryLike
from memlab.kernel.verbs.gate import check_agent
from memlab.kernel.verbs.recalling.past import find_slate, read_slate
from memlab.kernel.verbs.registers import Judged, LastShown
from memlab.kernel.verbs.reinforcement import (
    days_between_uses,
    drop_deleted,
    make_pairs_with,
    reinforce,
    strengthen_pairs,
)
from memlab.kernel.verbs.results import Feedback, Memory


class Judgements:
    """The verb ``feedback`` of one lab."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def feedback(self, judgement: Judgement) -> Feedback:
        """Log one judgement and the changes that it causes; see ``Lab.feedback``."""
        with self._core.store.writing() as tx:
            logged = self._log_judgement(tx, judgement)
        call_judged(self._core)
        return logged

    def feedback_many(
        self, rows: Iterable[Mapping[str, Any]] | pl.DataFrame
    ) -> tuple[Feedback, ...]:
        """Log several judgements, or none if any judgement is invalid; see ``Lab.feedback``."""
        judgements = parse_judgements(rows, self._core.instant)
        if not judgements:
            return ()
        logged: list[Feedback] = []
        with self._core.store.writing() as tx:
            for number, judgement in enumerate(judgements):
                with name_row_in_errors(number):
                    self._core.row(judgement.hit)
                    _find_judged_recall(
                        judgement.hit,
                        self._core.store,
                        self._core.row(judgement.hit),
                        judgement.decision,
                    )
            for judgement in judgements:
                # A judgement's changes depend on the memory as the previous judgement left it.
                if logged:
                    self._core.store.settle(tx)
                logged.append(self._log_judgement(tx, judgement))
        call_judged(self._core)
        return tuple(logged)

    def _log_judgement(self, tx: Transaction, stated: Judgement) -> Feedback:
        """Write the event of one judgement and return its record."""
        hit, outcome, rating, reward, agent, source, now, decision = stated
        state, pack = self._core.store.state, self._core.pack
        row = self._core.row(hit)
        recall = _find_judged_recall(hit, self._core.store, row, decision)
        decision = None if recall is None else recall.decision
        body: Body = {
            "decision": decision,
            "memory": row + 1,
            "outcome": outcome,
            "reward": reward,
            "source": source,
        }
        if recall is not None:
            body |= {"pack": recall.pack, "probe": recall.probe}
        if rating is not None:
            body["rating"] = rating
        body |= _compute_change(state, pack, row, stated, recall).body()
        if agent is not None:
            # The outcome is visible to all viewers of the memory, and so are its consequences.
            visible = view_state(self._core.store.journal, state, find_audience(state, row))
            for fields_of in list_hooks("feedback"):
                body |= fields_of(visible, pack, agent, outcome)
        seq = tx.event("feedback", body, at=now)
        return Feedback(seq, decision, row + 1, outcome, reward, source, rating, agent)


def call_judged(core: Core) -> None:
    """Call the hooks that follow feedback, after the feedback is stored."""
    for follow in list_hooks("judged"):
        follow(core)


class _JudgedRecall(NamedTuple):
    """The recall that a judgement belongs to; an unlogged recall has no ``decision``."""

    decision: int | None
    at: Micros
    pack: str
    probe: bool


def _find_judged_recall(
    hit: MemoryLike, store: Store, row: int, decision: int | None
) -> _JudgedRecall | None:
    """Return the logged recall that showed the memory, or None if no recall showed it.

    The recall of the hit has priority, then the logged recall ``decision``, then the last logged recall that showed the
    memory.
    """
    if isinstance(hit, Hit):
        if decision not in (None, hit.decision):
            raise InputError(
                f"The hit belongs to recall {hit.decision}, not to {decision}: leave decision= out."
            )
        return _JudgedRecall(hit.decision, hit._hits.slate.at, hit._hits.pack.hash, hit.probe)
    if decision is None:
        last = store.state.projection(LastShown).decision(row + 1)
        slate = None if last is None else find_slate(store, last)
        if slate is None:
            return None
        decision = slate.decision
    else:
        slate = read_slate(store, decision)
    if row + 1 not in slate.shown:
        raise UnknownName(
            f"memory among the results of recall {decision}", row + 1, map(str, slate.shown)
        )
    return _JudgedRecall(decision, slate.at, slate.pack_hash, row + 1 in slate.probes)


def _compute_change(
    state: State, pack: Pack, row: int, stated: Judgement, recall: _JudgedRecall | None
) -> Change:
    """Return the changes to a memory and its edges that an outcome causes."""
    outcome, now = stated.outcome, stated.at
    if outcome is None or not drop_deleted(state, [row + 1]):
        return Change()
    rows = np.array([row])
    recalled, decision = (None, None) if recall is None else (recall.at, recall.decision)
    change = reinforce(
        state,
        pack,
        rows,
        now,
        outcome="success" if outcome == "success" else "fail",
        rating=stated.rating,
        elapsed=lambda: days_between_uses(
            state, rows, now, used=recalled, counted=decision is not None
        ),
    )
    if outcome == "success" and decision is not None:
        others = drop_deleted(state, state.projection(Judged).successes(decision))
        if row + 1 not in others:
            change += strengthen_pairs(
                state, pack, make_pairs_with(row + 1, others, pack.count("edge-pairs"))
            )
    return change


# -- checks of judgements: one, or many as rows -----------------------------------------------------------------------


# The fields of a judgement, other names of its memory in frames, and the largest event number
# that fits an integer column.
_FIELDS = ("memory", "outcome", "rating", "reward", "agent", "source", "at", "decision")
_OTHER_NAMES = {"memory_id": "memory", "id": "memory"}
_LAST_EVENT = 1 << 62


class Judgement(NamedTuple):
    """One judgement of a memory: an outcome, a rating or a reward, with its recall."""

    hit: MemoryLike
    outcome: str | None
    rating: int | None
    reward: float | None
    agent: str | None
    source: str
    at: Micros
    decision: int | None


def check_judgement(
    hit: MemoryLike,
    outcome: str | None,
    rating: int | None,
    reward: float | None,
    agent: str | None,
    source: str,
    at: Micros,
    decision: int | None,
) -> Judgement:
    """Check a judgement, inferring a missing outcome from its rating.

    Raises InputError if there is neither an outcome nor a reward, UnknownName for an unknown outcome.
    """
    if outcome is None and rating is not None:
        outcome = "fail" if rating == 1 else "success"
    if outcome is None and reward is None:
        raise InputError('Feedback needs an outcome, "success" or "fail", a rating or a reward.')
    if outcome is not None and outcome not in OUTCOMES:
        raise UnknownName("outcome", outcome, OUTCOMES)
    refuse(validate_text(source, where="source"), "the source of feedback")
    if agent is not None:
        check_agent(agent)
    return Judgement(hit, outcome, rating, reward, agent, source, at, decision)


def parse_judgements(
    rows: Iterable[Mapping[str, Any]] | pl.DataFrame, instant: Callable[[Any], Micros]
) -> list[Judgement]:
    """Return checked judgements from dicts or a frame; errors name the row.

    ``instant`` converts a time to microseconds.
    """
    if not isinstance(rows, pl.DataFrame) and (
        isinstance(rows, str | Mapping) or not isinstance(rows, Iterable)
    ):
        raise InputError(
            f"Feedback in batches must be a list of rows or a Polars frame, not {type(rows).__name__}."
        )
    try:
        records = list(rows.iter_rows(named=True) if isinstance(rows, pl.DataFrame) else rows)
    except Exception as error:
        raise InputError(
            f"The rows cannot be read ({type(error).__name__}): give a list of rows."
        ) from error
    judgements = []
    for number, row in enumerate(records):
        with name_row_in_errors(number):
            judgements.append(_parse_judgement(row, instant))
    return judgements


@contextmanager
def name_row_in_errors(number: int) -> Iterator[None]:
    """Prefix errors raised in the block with the row number."""
    try:
        yield
    except MemlabError as error:
        error.args = (f"Row {number}: {error}",)
        raise


def _parse_judgement(row: object, instant: Callable[[Any], Micros]) -> Judgement:
    """Return the checked judgement of one row."""
    # Values of frames are untyped, so each field is checked as ``Lab.feedback`` checks its
    # argument.
    if not isinstance(row, Mapping):
        raise InputError(
            f"A row of feedback must be an object with some of {', '.join(_FIELDS)}, not {type(row).__name__}."
        )
    fields = {str(name): value for name, value in row.items() if value is not None}
    judgement = {_OTHER_NAMES.get(name, name): value for name, value in fields.items()}
    unknown = next((name for name in judgement if name not in _FIELDS), None)
    if unknown is not None:
        raise UnknownName("field of feedback", unknown, _FIELDS)
    memory = judgement.get("memory")
    if not isinstance(memory, Memory | Hit | int) or isinstance(memory, bool):
        raise InputError(
            f"The memory of feedback must be an id, a hit or a memory, not {memory!r:.60}."
        )
    for name in ("outcome", "agent", "source"):
        if not isinstance(judgement.get(name, ""), str):
            raise InputError(f"The {name} of feedback must be a text, not {judgement[name]!r:.60}.")
    return check_judgement(
        memory,
        judgement.get("outcome"),
        _parse_integer(judgement, "rating", 4),
        _parse_reward(judgement.get("reward")),
        judgement.get("agent"),
        judgement.get("source", "user"),
        instant(judgement.get("at")),
        _parse_integer(judgement, "decision", _LAST_EVENT),
    )


def _parse_integer(fields: Mapping[str, Any], name: str, maximum: int) -> int | None:
    """Return a field as an integer from 1 to ``maximum``, or None if it is missing."""
    value = fields.get(name)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or value != value // 1
        or not 1 <= value <= maximum
    ):
        raise InputError(
            f"The {name} of feedback must be an integer from 1 to {maximum}, not {value!r:.60}."
        )
    return int(value)


def _parse_reward(value: object) -> float | None:
    """Return a reward as a float, or None if it is missing."""
    if value is None:
        return None
    if (
        isinstance(value, str)
        or not isinstance(value, int | float)
        or not abs(value) < float("inf")
    ):
        raise InputError(f"A reward must be a finite number, not {value!r:.60}.")
    return float(value)
