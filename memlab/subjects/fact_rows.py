"""Facts: memories that say of a subject, by a predicate, an object (an entity) or a value.

Two times belong to a fact. *When it holds*: from ``valid_from`` (else its creation) until just before ``valid_until``.
*When it was known*: since ``created``. Questions about an instant go by the first, and use all that is known by now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
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

__all__ = [
    "FactTimes",
    "fact_text",
    "fact_times_of",
    "facts_frame",
    "facts_of",
    "held_at",
    "intervals",
    "phrase",
    "relevance",
    "retracted",
    "segments_of",
    "with_status",
]

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]

_TOOK_PART = (*RECALLABLE, "superseded")
"""The statuses of what was true at some time; what was retracted or flagged never was."""

_LINKS = frozenset(
    ["about", "as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "with"]
)
_PAST = ("quit", "sold", "left", "lost", "got", "gave", "broke")
_NO_VERBS = ("us", "ss", "is")
_PARTS = re.compile(r"[-_\s]+")


class FactTimes(Projection):
    """Of a fact that was told more than once: the instants, and the gaps in which another value held.

    A ``link`` event whose body has ``fact_times`` gives both anew for some memories. Times are microseconds.
    """

    name: ClassVar[str] = "fact-times"
    kinds: ClassVar[tuple[str, ...]] = ("link",)
    dumped: ClassVar[Field] = list_field(MEMORY_ID, TIME, TIME, drops=True)
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {"link": {"fact_times": dumped}}

    def __init__(self) -> None:
        self.told: dict[int, list[int]] = {}
        self.gaps: dict[int, list[tuple[int, int]]] = {}

    def fold(self, event: Event) -> None:
        for id, told, gaps in event.body.get("fact_times", ()):
            self.told[id] = list(told)
            self.gaps[id] = [(start, stop) for start, stop in gaps]

    def dump(self) -> Any:
        return [
            [id, told, [list(gap) for gap in self.gaps.get(id, [])]]
            for id, told in self.told.items()
        ]

    def load(self, dumped: Any) -> None:
        self.told = {id: list(told) for id, told, _ in dumped}
        self.gaps = {id: [(start, stop) for start, stop in gaps] for id, _, gaps in dumped}


def fact_times_of(state: State) -> FactTimes:
    """Return when the facts of a state were told again."""
    return state.projection(FactTimes)


def segments_of(start: int, stop: int, gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the times within which a fact held: from start to stop without the gaps.

    >>> segments_of(1, 9, [(3, 4)])
    [(1, 3), (4, 9)]
    """
    found, begins = [], start
    for low, high in sorted(gaps):
        if begins < low:
            found.append((begins, low))
        begins = max(begins, high)
    return [*found, (begins, stop)] if begins < stop or not found else found


def phrase(predicate: str, value: str) -> tuple[bool, str]:
    """Whether a predicate is a verb, and it with its value as people say it: a verb, or a property after its name.

    The part after a colon says in which respect.

    >>> phrase("lives-in", "Oslo"), phrase("prefers:theme", "dark"), phrase("status", "done")
    ((True, 'lives in Oslo'), (True, 'prefers dark (theme)'), (False, 'status done'))
    """
    name, _, respect = predicate.partition(":")
    words = _PARTS.split(name.strip("-_ ")) if name.strip("-_ ") else [predicate]
    aside = " ".join(_PARTS.split(respect.strip("-_ ")))
    words_of = f"{' '.join(words)} {value}"
    return _is_verb(words), f"{words_of} ({aside})" if aside else words_of


def fact_text(subject: str, predicate: str, value: str) -> str:
    """A fact as a sentence, the same for the same fact.

    >>> fact_text("Ada", "lives-in", "Oslo"), fact_text("memlab", "status", "done")
    ('Ada lives in Oslo', 'memlab has status done')
    """
    verb, words_of = phrase(predicate, value)
    return f"{subject} {words_of}" if verb else f"{subject} has {words_of}"


def _is_verb(words: Sequence[str]) -> bool:
    """lives, was, moved, born in; not status, address, age."""
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


def facts_of(state: State, *, subject: str | None = None) -> Rows:
    """The rows of facts, ascending: of all, or of what the entity of this name is the subject of."""
    subjects, predicates = state.names["subject"].codes, state.names["predicate"].codes
    found = predicates >= 0
    found &= subjects >= 0 if subject is None else subjects == state.names["subject"].code(subject)
    return np.flatnonzero(found)


def with_status(state: State, rows: Rows, words: Iterable[str]) -> Flags:
    """Which of these rows have one of these statuses."""
    names = state.names["status"]
    return np.isin(names.codes[rows], [names.code(word) for word in words])


def held_at(state: State, rows: Rows, at: int) -> Flags:
    """Which facts held at an instant: were true for a time, and this is within it."""
    start, stop = intervals(state, rows)
    true = with_status(state, rows, _TOOK_PART)
    held = np.asarray(true & (start <= at) & ((stop == NEVER) | (at < stop)))
    gaps = fact_times_of(state).gaps
    if gaps:
        held &= ~np.array(
            [any(low <= at < high for low, high in gaps.get(row + 1, ())) for row in rows.tolist()],
            dtype=np.bool_,
        )
    return held


def intervals(state: State, rows: Rows) -> tuple[Rows, Rows]:
    """Since when and until when each fact holds; ``NEVER`` as an end means that it still does."""
    numbers = state.numbers
    start, stop = (np.array(numbers[name].values[rows]) for name in ("valid_from", "valid_until"))
    start = np.where(start == NEVER, numbers["created"].values[rows], start)
    # what was superseded without a word on its end held until then, and not at all if it began so
    past = (stop == NEVER) & with_status(state, rows, ("superseded",))
    changed = numbers["changed"].values[rows]
    return start, np.where(past, np.where(changed == NEVER, start, changed), stop)


def relevance(state: State, pack: Pack, rows: Rows, now: int) -> NDArray[np.float64]:
    """The ``recall-score`` of memories at full activation; NaN throughout if the policy reads more of a query."""
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


def facts_frame(state: State, pack: Pack, rows: Rows, now: int) -> pl.DataFrame:
    """The columns that ``Lab.facts`` lists."""
    start, stop = intervals(state, rows)
    score = pl.Series("relevance", relevance(state, pack, rows, now)).fill_nan(None)
    by = (
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
            by,
            pl.Series("access", state.numbers["access"].values[rows]).cast(pl.Int64),
            pl.Series("text", state.texts.to_list(rows), dtype=pl.String),
            score,
        ]
    )


def retracted(state: State, row: int, now: int, reason: str | None) -> Change:
    """A fact that was never true. InputError if the memory is no fact, or is gone."""
    names = state.names
    if names["subject"].value_at(row) is None or names["predicate"].value_at(row) is None:
        raise InputError(
            f"Memory {row + 1} is no fact: it has no subject and predicate. deprecate takes any memory."
        )
    status = names["status"].value_at(row)
    if status in ("deleted", "purged"):
        raise InputError(f"Fact {row + 1} is {status}; there is nothing to retract.")
    why = {} if reason is None else {"reason": reason}
    return Change(set=[build_values([row + 1], status="retracted", changed=now, **why)])
