"""Facts: memories that say of a subject, by a predicate, an object (an entity) or a value.

Two times belong to a fact. *When it holds*: from ``valid_from`` (else its creation) until just before ``valid_until``.
*When it was known*: since ``created``. Questions about an instant go by the first, and use all that is known by now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.policies import FEATURES, Pack
from memlab.kernel.recall import Moment
from memlab.kernel.schema import NEVER, RECALLABLE, RELATIONS
from memlab.kernel.state import Change, Entities, State, entity_key, entity_name, join_of, stamps, values_of
from memlab.kernel.verbs.tellings import fact_times_of

__all__ = [
    "entities_of",
    "fact_text",
    "facts_frame",
    "facts_of",
    "held_at",
    "intervals",
    "mention_edges",
    "mentioned",
    "named",
    "phrase",
    "relevance",
    "renamed",
    "retracted",
    "with_status",
]

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]

_TOOK_PART = (*RECALLABLE, "superseded")
"""The statuses of what was true at some time; what was retracted or flagged never was."""

_MENTIONS = RELATIONS.index("mentions")
_NAMING = ("subject", "object")
_LINKS = frozenset(["about", "as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "with"])
_PAST = ("quit", "sold", "left", "lost", "got", "gave", "broke")
_NO_VERBS = ("us", "ss", "is")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PARTS = re.compile(r"[-_\s]+")


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
    if first in ("is", "was", "has") or tuple(words[:2]) in (("no", "longer"), ("gave", "up"), ("broke", "up")):
        return True
    if first in _PAST:
        return True
    return first.endswith("ed") or (first.endswith("s") and not first.endswith(_NO_VERBS)) or last in _LINKS


def predicate_of(name: str) -> str:
    """A predicate as it is kept: in small letters, its words joined, however they were told apart.

    >>> predicate_of("Lives in"), predicate_of("livesIn"), predicate_of("lives_in"), predicate_of("prefers:theme")
    ('lives-in', 'lives-in', 'lives-in', 'prefers:theme')
    """
    words = _PARTS.split(_HUMP.sub("-", name).casefold().strip("-_ \t\n"))
    return "-".join(words) or name.casefold()


def named(state: State, pack: Pack, columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """What is about to be remembered, with each subject and object called by its entity's name.

    A fact (a subject and a predicate) for which no status is given begins as the setting ``fact-status`` says.
    """
    after = dict(columns)
    called: dict[str, str] = {}
    given = [column for column in _NAMING if column in columns]
    names = dict.fromkeys(name for column in given for name in columns[column] if name is not None)
    if names:
        entities = entities_of(state)
        for name in names:
            called.setdefault(entity_key(name), entities.canonical(name) or entity_name(name))
    for column in given:
        after[column] = [None if name is None else called[entity_key(name)] for name in columns[column]]
    if "predicate" in columns:
        after["predicate"] = [None if name is None else predicate_of(name) for name in columns["predicate"]]
    first = str(pack.settings["fact-status"])
    if "status" not in columns and first != "active" and {"subject", "predicate"} <= columns.keys():
        pairs = zip(columns["subject"], columns["predicate"], strict=True)
        after["status"] = ["active" if None in pair else first for pair in pairs]
    return after


def mentioned(
    columns: Mapping[str, Sequence[str | None]], ids: Sequence[int], named_in: Mapping[int, Sequence[str]] | None = None
) -> Change:
    """The edges from memories with these ids to the entities that they name as subject or object, or in their texts.

    ``named_in`` has the names in a text by the place of its row.
    """
    given = [columns[column] for column in _NAMING if column in columns]
    texts = named_in or {}
    pairs = [
        (id, name)
        for row, (id, *names) in enumerate(zip(ids, *given, strict=True))
        for name in dict.fromkeys([*names, *texts.get(row, ())])
        if name is not None
    ]
    if not pairs:
        return Change()
    source, target = zip(*pairs, strict=True)
    return Change(join=[join_of(source, "entity", target, "mentions")])


def renamed(state: State, row: int, given: Mapping[str, Any]) -> tuple[dict[str, Any], Change]:
    """Another ``subject`` or ``object`` for a memory: called by their entities' names, and the mentions that follow."""
    entities, after = entities_of(state), dict(given)
    before = {column: state.names[column].at(row) for column in _NAMING}
    for column in (column for column in _NAMING if column in given):
        name = given[column]
        after[column] = None if name is None else entities.canonical(name) or entity_name(name)
    if after.get("predicate") is not None:
        after["predicate"] = predicate_of(after["predicate"])
    now = {name for column in before if (name := after.get(column, before[column])) is not None}
    was = {name for name in before.values() if name is not None}
    place = np.array([row])
    gone = [int(mention_edges(state, place, name)[0]) for name in sorted(was - now)]
    fresh = sorted(now - was)
    join = [join_of([row + 1] * len(fresh), "entity", fresh, "mentions")] if fresh else []
    return after, Change(unlink=[edge for edge in gone if edge >= 0], join=join)


def entities_of(state: State) -> Entities:
    """The register of entities."""
    return state.projection(Entities)


def mention_edges(state: State, rows: Rows, name: str) -> Rows:
    """The edge by which each row mentions an entity, -1 where it does not."""
    node = int(state.nodes.find("entity", [name])[0])
    if node < 0:
        return np.full(len(rows), -1, dtype=np.int64)
    return state.edges.find(rows, np.full(len(rows), node), np.full(len(rows), _MENTIONS))


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
            [any(low <= at < high for low, high in gaps.get(row + 1, ())) for row in rows.tolist()], dtype=np.bool_
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
    reads = [item for name in policy.inputs for item in getattr(policy.derived.get(name), "sets", (name,))]
    if not len(rows) or not all(FEATURES[name].stage == "memory" or name == "activation" for name in reads):
        return np.full(len(rows), np.nan)
    values, nulls = Moment(state, pack, rows, now).ask(policy, given={"activation": lambda: np.ones(len(rows))})
    return np.asarray(values if nulls is None else np.where(nulls, np.nan, values), dtype=np.float64)


def facts_frame(state: State, pack: Pack, rows: Rows, now: int) -> pl.DataFrame:
    """The columns that ``Lab.facts`` lists."""
    start, stop = intervals(state, rows)
    score = pl.Series("relevance", relevance(state, pack, rows, now)).fill_nan(None)
    by = pl.Series("superseded_by", state.numbers["superseded_by"].values[rows]).fill_nan(None).cast(pl.Int64)
    return pl.DataFrame(
        [
            pl.Series("id", rows + 1),
            *(state.names[name].series(name, rows) for name in ("subject", "predicate", "object", "value")),
            pl.Series("confidence", state.numbers["confidence"].values[rows]),
            *(state.names[name].series(name, rows) for name in ("status", "source")),
            stamps("valid_from", start),
            stamps("valid_until", stop),
            by,
            pl.Series("access", state.numbers["access"].values[rows]).cast(pl.Int64),
            pl.Series("text", state.texts.take(rows), dtype=pl.String),
            score,
        ]
    )


def retracted(state: State, row: int, now: int, reason: str | None) -> Change:
    """A fact that was never true. InputError if the memory is no fact, or is gone."""
    names = state.names
    if names["subject"].at(row) is None or names["predicate"].at(row) is None:
        raise InputError(f"Memory {row + 1} is no fact: it has no subject and predicate. deprecate takes any memory.")
    status = names["status"].at(row)
    if status in ("deleted", "purged"):
        raise InputError(f"Fact {row + 1} is {status}; there is nothing to retract.")
    why = {} if reason is None else {"reason": reason}
    return Change(set=[values_of([row + 1], status="retracted", changed=now, **why)])
