"""What somebody says of a memory that was shown, checked: one judgement, or many as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import polars as pl

from memlab.errors import InputError, MemlabError, UnknownName
from memlab.kernel.base.clock import Micros
from memlab.kernel.privacy import refuse
from memlab.kernel.recall import Hit
from memlab.kernel.schema import OUTCOMES
from memlab.kernel.state import checked_text
from memlab.kernel.verbs.core import MemoryLike
from memlab.kernel.verbs.gate.names import check_agent
from memlab.kernel.verbs.results import Memory

__all__ = ["Stated", "checked_judgement", "judgements_of", "naming_row"]

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
    refuse(checked_text(source, where="source"), "the source of feedback")
    if agent is not None:
        check_agent(agent)
    return Stated(hit, outcome, rating, reward, agent, source, at, decision)


def judgements_of(rows: Iterable[Mapping[str, Any]] | pl.DataFrame, instant: Callable[[Any], Micros]) -> list[Stated]:
    """Judgements given as dicts or as a frame, checked; ``instant`` reads a time. The error names the row."""
    if not isinstance(rows, pl.DataFrame) and (isinstance(rows, str | Mapping) or not isinstance(rows, Iterable)):
        raise InputError(f"Feedback in batches is a list of rows or a Polars frame, not {type(rows).__name__}.")
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
        raise InputError(f"Feedback is an object with some of {', '.join(_FIELDS)}, not {type(row).__name__}.")
    named = {str(name): value for name, value in row.items() if value is not None}
    given = {_OTHER_NAMES.get(name, name): value for name, value in named.items()}
    unknown = next((name for name in given if name not in _FIELDS), None)
    if unknown is not None:
        raise UnknownName("field of feedback", unknown, _FIELDS)
    memory = given.get("memory")
    if not isinstance(memory, Memory | Hit | int) or isinstance(memory, bool):
        raise InputError(f"Feedback names a memory (its id, a hit or a memory), not {memory!r:.60}.")
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
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1 or not 1 <= value <= most:
        raise InputError(f"The {name} of feedback is a whole number from 1 to {most}, not {value!r:.60}.")
    return int(value)


def _reward(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise InputError(f"A reward is a finite number, not {value!r:.60}.")
    return float(value)
