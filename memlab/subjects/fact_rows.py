"""Facts: memories that state an object (an entity) or a value of a subject and predicate.

A fact has two times. It is *valid* from ``valid_from`` (or its creation) until just before
``valid_until``. It is *known* since ``created``. Queries about an instant use the validity of all
facts that are known now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arrays import Flags, Floats, Rows
from memlab.kernel.journal import Event
from memlab.kernel.policies import FEATURES, Pack
from memlab.kernel.recall import Moment
from memlab.kernel.schema import NEVER, RECALLABLE
from memlab.kernel.state import (
    MEMORY_ID,
    TIME,
    Change,
    Field,
    Projection,
    State,
    build_values,
    list_field,
    to_datetimes,
)

_TOOK_PART = (*RECALLABLE, "superseded")
"""The statuses of facts that were true at some time; retracted or deprecated ones never were."""

# Signs of a verb in a predicate: a preposition at its end, an irregular past, an s that is no plural.
_LINKS = frozenset(
    ["about", "as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "with"]
)
_PAST = ("quit", "sold", "left", "lost", "got", "gave", "broke")
_NO_VERBS = ("us", "ss", "is")
_PARTS = re.compile(r"[-_\s]+")


class FactTimes(Projection):
    """The instants at which a fact was stated again, and gaps in its validity.

    A ``link`` event with ``fact_times`` replaces instants and gaps of some facts. A gap is a time
    in which another value was valid. Times are microseconds.
    """

    name = "fact-times"
    kinds = ("link",)
    dumped = list_field(MEMORY_ID, TIME, TIME, drops=True)
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {"link": {"fact_times": dumped}}

    def __init__(self) -> None:
        self.told: dict[int, list[int]] = {}
        self.gaps: dict[int, list[tuple[int, int]]] = {}

    def fold(self, event: Event) -> None:
        """Apply an event: replace the statement times and gaps of its facts."""
        for id, instants, gaps in event.body.get("fact_times", ()):
            self.told[id] = list(instants)
            self.gaps[id] = [(start, stop) for start, stop in gaps]

    def dump(self) -> Any:
        """Return the statement times and gaps of all facts as plain values for a snapshot."""
        return [
            [id, instants, [list(gap) for gap in self.gaps.get(id, [])]]
            for id, instants in self.told.items()
        ]

    def load(self, dumped: Any) -> None:
        """Restore the statement times and gaps from the result of ``dump``."""
        self.told = {id: list(instants) for id, instants, _ in dumped}
        self.gaps = {id: [(start, stop) for start, stop in gaps] for id, _, gaps in dumped}


def get_fact_times(state: State) -> FactTimes:
    """Return the register of the times at which facts were stated again."""
    return state.projection(FactTimes)


def split_validity(start: int, stop: int, gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the intervals in which a fact was valid, without the gaps.

    >>> split_validity(1, 9, [(3, 4)])
    [(1, 3), (4, 9)]
    """
    segments, begins = [], start
    for low, high in sorted(gaps):
        if begins < low:
            segments.append((begins, low))
        begins = max(begins, high)
    return [*segments, (begins, stop)] if begins < stop or not segments else segments


def phrase_fact(predicate: str, value: str) -> tuple[bool, str]:
    """Return a fact's predicate and value as a phrase, and whether the predicate is a verb.

    The words of the predicate precede the value. The text after a colon is a qualifier, which
    follows the value in brackets.

    >>> phrase_fact("lives-in", "Oslo"), phrase_fact("prefers:theme", "dark"), phrase_fact("status", "done")
    ((True, 'lives in Oslo'), (True, 'prefers dark (theme)'), (False, 'status done'))
    """
    name, _, qualifier = predicate.partition(":")
    words = _PARTS.split(name.strip("-_ ")) if name.strip("-_ ") else [predicate]
    suffix = " ".join(_PARTS.split(qualifier.strip("-_ ")))
    text = f"{' '.join(words)} {value}"
    return _is_verb(words), f"{text} ({suffix})" if suffix else text


def fact_text(subject: str, predicate: str, value: str) -> str:
    """Return a fact as a sentence; equal facts give equal sentences.

    >>> fact_text("Ada", "lives-in", "Oslo"), fact_text("memlab", "status", "done")
    ('Ada lives in Oslo', 'memlab has status done')
    """
    verb, text = phrase_fact(predicate, value)
    return f"{subject} {text}" if verb else f"{subject} has {text}"


def _is_verb(words: Sequence[str]) -> bool:
    """Return whether words form a verb ("born in") rather than a noun ("address")."""
    first, last = words[0].lower(), words[-1].lower()
    if first in ("is", "was", "has") or tuple(words[:2]) in (
        ("no", "longer"),
        ("gave", "up"),
        ("broke", "up"),
    ):
        return True
    if first in _PAST:
        return True
    return (
        first.endswith("ed")
        or (first.endswith("s") and not first.endswith(_NO_VERBS))
        or last in _LINKS
    )


def find_facts(state: State, *, subject: str | None = None) -> Rows:
    """Return the rows of all facts or of the facts about a subject, ascending."""
    subjects, predicates = state.names["subject"].codes, state.names["predicate"].codes
    mask = predicates >= 0
    mask &= subjects >= 0 if subject is None else subjects == state.names["subject"].code(subject)
    return np.flatnonzero(mask)


def have_status(state: State, rows: Rows, words: Iterable[str]) -> Flags:
    """Return a mask of the rows that have one of these statuses."""
    names, mask = state.names["status"], np.zeros(len(rows), dtype=np.bool_)
    codes = names.codes[rows]
    for word in words:  # a few comparisons cost a fifth of ``isin``, which sorts
        mask |= codes == names.code(word)
    return mask


def are_valid_at(state: State, rows: Rows, at: int) -> Flags:
    """Return a mask of the facts that were valid at an instant."""
    start, stop = read_validity(state, rows)
    true = have_status(state, rows, _TOOK_PART)
    valid = np.asarray(true & (start <= at) & ((stop == NEVER) | (at < stop)))
    gaps = get_fact_times(state).gaps
    if gaps:
        valid &= ~np.array(
            [any(low <= at < high for low, high in gaps.get(row + 1, ())) for row in rows.tolist()],
            dtype=np.bool_,
        )
    return valid


def read_validity(state: State, rows: Rows) -> tuple[Rows, Rows]:
    """Return the start and end of each fact's validity; the end ``NEVER`` means still valid."""
    numbers = state.numbers
    start, stop = (np.array(numbers[name].values[rows]) for name in ("valid_from", "valid_until"))
    start = np.where(start == NEVER, numbers["created"].values[rows], start)
    # A superseded fact without an end was valid until the change, or never if it was stored so.
    past = (stop == NEVER) & have_status(state, rows, ("superseded",))
    changed = numbers["changed"].values[rows]
    return start, np.where(past, np.where(changed == NEVER, start, changed), stop)


def compute_relevance(state: State, pack: Pack, rows: Rows, now: int) -> Floats:
    """Return each memory's ``recall-score`` at full activation.

    All values are NaN if the policy reads features of a query.
    """
    policy = pack.policies["recall-score"]
    reads = [
        item
        for name in policy.inputs
        for item in getattr(policy.derived.get(name), "sets", (name,))
    ]
    if not len(rows) or not all(
        FEATURES[name].stage == "memory" or name == "activation" for name in reads
    ):
        return np.full(len(rows), np.nan)
    values, nulls = Moment(state, pack, rows, now).ask(
        policy, inputs={"activation": lambda: np.ones(len(rows))}
    )
    return np.asarray(
        values if nulls is None else np.where(nulls, np.nan, values), dtype=np.float64
    )


def build_facts_frame(state: State, pack: Pack, rows: Rows, now: int) -> pl.DataFrame:
    """Return the frame of ``lab.facts`` for some rows."""
    start, stop = read_validity(state, rows)
    score = pl.Series("relevance", compute_relevance(state, pack, rows, now)).fill_nan(None)
    superseded_by = (
        pl.Series("superseded_by", state.numbers["superseded_by"].values[rows])
        .fill_nan(None)
        .cast(pl.Int64)
    )
    return pl.DataFrame(
        [
            pl.Series("id", rows + 1),
            *(
                state.names[name].series(name, rows)
                for name in ("subject", "predicate", "object", "value")
            ),
            pl.Series("confidence", state.numbers["confidence"].values[rows]),
            *(state.names[name].series(name, rows) for name in ("status", "source")),
            to_datetimes("valid_from", start),
            to_datetimes("valid_until", stop),
            superseded_by,
            pl.Series("access", state.numbers["access"].values[rows]).cast(pl.Int64),
            pl.Series("text", state.texts.to_list(rows), dtype=pl.String),
            score,
        ]
    )


def retract(state: State, row: int, now: int, reason: str | None) -> Change:
    """Return the change that retracts a fact, or raise InputError for other memories."""
    names = state.names
    if names["subject"].value_at(row) is None or names["predicate"].value_at(row) is None:
        raise InputError(
            f"Memory {row + 1} is not a fact: it has no subject and predicate. "
            'Use lab.forget(memory, how="deprecate").'
        )
    status = names["status"].value_at(row)
    if status in ("deleted", "purged"):
        raise InputError(f"Fact {row + 1} is {status}; there is nothing to retract.")
    why = {} if reason is None else {"reason": reason}
    return Change(set=[build_values([row + 1], status="retracted", changed=now, **why)])
