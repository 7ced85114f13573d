"""The life cycle of facts: which older fact a new fact ends.

A fact ends another one of the same subject in four cases. It gives a different value of a property
with one value at a time. It names an end ("gave up Spanish", "sold the car"). It is another state of
one group (single, engaged, married). Or it states the opposite. The decision depends on the two facts
only, so that a history gives the same facts in whatever order it is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from memlab.kernel.english import lexicon, table, words_of
from memlab.kernel.policies import Pack
from memlab.kernel.schema import MEMORY, NEVER
from memlab.kernel.state import Change, State, build_edges, build_values
from memlab.subjects.fact_rows import find_facts, get_fact_times

# A crude stemmer is enough here: values are short, and both sides use the same one.
_SHORTEST_STEM = 4
_ENDINGS = ("ing", "ers", "er", "ed", "es", "s", "e")
_NO_LONGER = "no-longer-"


@dataclass(frozen=True, slots=True)
class Triple:
    """A fact as subject, predicate and value."""

    subject: str
    predicate: str
    value: str


def ends_fact(new: Triple, old: Triple) -> bool:
    """Return whether a new fact ends an older fact.

    A fact does not end another fact that states the same.

    Parameters
    ----------
    new, old
        The later and the earlier fact.

    Examples
    --------
    >>> ends_fact(Triple("user", "gave-up", "Spanish"), Triple("user", "speaks", "Spanish"))
    True
    >>> ends_fact(Triple("user", "likes", "tea"), Triple("user", "likes", "coffee"))
    False
    """
    if new.subject.casefold() != old.subject.casefold():
        return _is_gone(new) and _had_lost_thing(new.subject, old)
    if (new.predicate, new.value.casefold()) == (old.predicate, old.value.casefold()):
        return False
    return (
        _replaces_value(new, old)
        or _changes_state(new, old)
        or _ends_by_name(new, old)
        or _is_opposite(new, old)
        or _excludes_food(new, old)
    )


def _replaces_value(new: Triple, old: Triple) -> bool:
    """Return whether a new fact gives a single-valued property another value, or chooses another alternative."""
    is_favourite = new.predicate.startswith(("favourite-", "favorite-"))
    if new.predicate == old.predicate and (
        is_favourite or new.predicate in _lifecycle_words("one-value")
    ):
        return _differ(new.value, old.value)
    if new.predicate in ("is-now", "works-as") and old.predicate in (
        "is",
        "is-now",
        "works-as",
        "job",
    ):
        return (
            _is_profession(old.value)
            and _is_profession(new.value)
            and _differ(new.value, old.value)
        )
    if new.predicate == "prefers" == old.predicate:
        return _are_alternatives(new.value, old.value)
    if new.predicate == "switched-to" and old.predicate in (
        "uses",
        "prefers",
        "drinks",
        "drives",
        "eats",
        "works-with",
    ):
        return _are_alternatives(new.value, old.value)
    return False


def _changes_state(new: Triple, old: Triple) -> bool:
    """Return whether a new fact states a condition that is incompatible with the old fact."""
    if new.predicate not in (
        "is",
        "is-now",
        "has",
        "relationship",
        "is-married-to",
        "is-engaged-to",
        "divorced",
    ):
        return False
    # States of one group exclude each other; ``state-ends`` lists further predicates that a state ends.
    state = {"is-married-to": "married", "is-engaged-to": "engaged"}.get(
        new.predicate, _find_state(new.value)
    )
    state = "divorced" if new.predicate == "divorced" else state
    group = _index_states().get(state)
    if group is None:
        return False
    if old.predicate in ("is", "is-now", "has", "relationship"):
        old_state = _find_state(old.value)
        if _index_states().get(old_state) == group and old_state != state:
            return True
        if group == "occupation" and state != "employed" and state != "self-employed":
            return _is_profession(old.value)
        if group == "study" and state == "graduated":
            return "student" in words_of(old.value)
    state_then = {"is-married-to": "married", "is-engaged-to": "engaged"}.get(old.predicate)
    if new.predicate == "is-married-to" and old.predicate == "is-engaged-to":
        return True
    if state_then == state:
        return False
    return old.predicate in table("lifecycle", "state-ends").get(state, ())


def _ends_by_name(new: Triple, old: Triple) -> bool:
    """Return whether a new fact reports the end of the thing in an older fact.

    Examples: "quit my job", "sold the car".
    """
    if new.predicate.startswith(_NO_LONGER):
        verb = new.predicate.removeprefix(_NO_LONGER)
        same_predicate = verb == old.predicate or (verb == "is" and old.predicate == "is-now")
        if verb == "is" and old.predicate in ("is", "is-now"):
            return _find_state(new.value) == _find_state(old.value) or bool(
                _stem_value(new.value) & _stem_value(old.value)
            )
        return same_predicate and (
            not _stem_value(new.value) or bool(_stem_value(new.value) & _stem_value(old.value))
        )
    if new.predicate not in _ending_predicates() or old.predicate not in _lifecycle_words(
        "may-end"
    ):
        return False
    # The ended thing is named by its value or predicate ("quit my job"), or by its class ("sold the car").
    stems = _stem_value(new.value)
    if stems & (_stem_value(old.value) | _stem_value(old.predicate.replace("-", " "))):
        return True
    for word_class in lexicon()["lifecycle"]["classes"].values():
        if stems & _stem_words(tuple(word_class["words"])):
            if old.predicate in word_class["predicates"] and not _is_of_another_kind(
                new.value, old.value, word_class["words"]
            ):
                return True
            if word_class["professions"] and old.predicate == "is" and _is_profession(old.value):
                return True
    return False


def _is_of_another_kind(new: str, old: str, words: list[str]) -> bool:
    """Return whether two values name different kinds of one class, such as car and van.

    A person who sold the van still drives a car.
    """
    stems = _stem_words(tuple(words))
    new_kinds, old_kinds = _stem_value(new) & stems, _stem_value(old) & stems
    return bool(new_kinds and old_kinds and not new_kinds & old_kinds)


def _is_opposite(new: Triple, old: Triple) -> bool:
    """Return whether two facts express opposite opinions of one thing."""
    for pair in lexicon()["lifecycle"]["words"]["opposites"]:
        if {new.predicate, old.predicate} == set(pair.split()):
            return bool(_stem_value(new.value) & _stem_value(old.value))
    return False


def _excludes_food(new: Triple, old: Triple) -> bool:
    """Return whether the diet in one of two facts excludes a food that is eaten in the other."""
    foods = table("lifecycle", "foods")
    for diet, food_fact, is_food_later in ((new, old, False), (old, new, True)):
        excluded_foods = foods.get(_find_state(diet.value).removeprefix("a "))
        if diet.predicate not in ("is", "is-now") or excluded_foods is None:
            continue
        if food_fact.predicate == "eats" and set(words_of(food_fact.value)) & set(excluded_foods):
            return True
        if (
            food_fact.predicate == "likes"
            and not is_food_later
            and set(words_of(food_fact.value)) & set(excluded_foods)
        ):
            return False
    return False


def _is_gone(new: Triple) -> bool:
    """Return whether a fact says that its subject died or is gone."""
    return (new.predicate == "is" and new.value in ("dead", "gone")) or new.predicate == "died"


def _had_lost_thing(name: str, old: Triple) -> bool:
    """Return whether an older fact says that its subject had the thing now lost.

    The lost thing is given by its name, or as "user's dog".
    """
    owner, _, noun = name.rpartition("'s ")
    if owner:
        is_owner = old.subject.casefold() == owner.casefold()
        return is_owner and (
            old.predicate == noun
            or (old.predicate in ("has", "owns") and noun in words_of(old.value))
        )
    is_possession = old.predicate in table("extraction", "relations") or old.predicate in (
        "has",
        "owns",
    )
    return is_possession and bool(set(words_of(name)) & set(words_of(old.value)))


def _differ(new: str, old: str) -> bool:
    """Return whether two values of a property differ; "Oslo" and "Oslo, Norway" agree."""
    new_words, old_words = (
        set(words_of(new)) - _lifecycle_words("light"),
        set(words_of(old)) - _lifecycle_words("light"),
    )
    return not (new_words <= old_words or old_words <= new_words)


def _are_alternatives(new: str, old: str) -> bool:
    """Return whether two values are different choices from one group of alternatives."""
    new_words, old_words = set(words_of(new)), set(words_of(old))
    return any(
        new_words & set(group) and old_words & set(group) and not new_words & old_words
        for group in lexicon()["conflicts"]["alternatives"]
    )


def _is_profession(value: str) -> bool:
    """Return whether a value contains the name of a profession."""
    words = words_of(value)
    return bool(words) and not _lifecycle_words("professions").isdisjoint(words)


@cache  # the tables that this reads do not change
def _index_states() -> dict[str, str]:
    """Return the group of exclusive states to which each state belongs."""
    return {
        state: group
        for group, states in lexicon()["lifecycle"]["states"].items()
        for state in states
    }


def _find_state(value: str) -> str:
    """Return the known state at the start of a value, or the whole value in lower case without one.

    "married with two kids" begins with the state "married".
    """
    low = " ".join(words_of(value))
    if low in _index_states():
        return low
    for size in (3, 2, 1):
        prefix = " ".join(low.split()[:size])
        if prefix in _index_states():
            return prefix
    return low


@cache  # the tables that this reads do not change
def _lifecycle_words(name: str) -> frozenset[str]:
    """Return a word list of the lifecycle rules as a set."""
    return frozenset(lexicon()["lifecycle"]["words"][name])


@cache  # the tables that this reads do not change
def _ending_predicates() -> frozenset[str]:
    """Return the predicates of verbs that report an ending, such as "sold"."""
    endings: dict[str, Any] = lexicon()["lifecycle"]["endings"]
    return frozenset(predicate for predicate, _ in endings.values())


@cache  # each list of words in the tables is stemmed only once
def _stem_words(words: tuple[str, ...]) -> frozenset[str]:
    """Return the stems of the words as a set."""
    return frozenset(map(_stem_word, words))


def _stem_value(value: str) -> frozenset[str]:
    """Return the stems of a value's words, except words of little meaning."""
    return frozenset(
        _stem_word(word) for word in words_of(value) if word not in _lifecycle_words("light")
    )


def _stem_word(word: str) -> str:
    """Remove an English ending from a word if at least three letters remain."""
    word = word.removesuffix("'s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM - 1:
            return word[: -len(ending)]
    return word


# Succession: which facts of a lab end because of new facts, as a change of state.
#
# The valid time decides, not the order of storing: a fact from before a change ends at the change,
# even if it is stored later. Only statements of users end facts; statements of an assistant, a tool
# or a page never do. A statement with less confidence than the setting ``succession-confidence``
# ends no fact: an edge ``contradicts`` marks the conflict.


# Fields that two facts must share for one to end the other, and statuses of valid facts.
_REACH = ("project", "scope", "branch", "season", "visibility")
_HOLDING = ("active", "staged", "confirmed")
_WAS_SO = (*_HOLDING, "superseded")
"""Statuses of facts that were valid at some time: they can end older facts, or end earlier than recorded."""

_STATED = ("user-stated", "user-corrected")
"""Provenances of statements by users."""


@dataclass(frozen=True)
class Succession:
    """The effects of new facts on older ones.

    Attributes
    ----------
    pairs
        The ids of each new fact and of the fact that it ends.
    change
        The change of state.
    fact_times
        The id, the instants and the gaps of facts that were stated again after another value.
    """

    pairs: tuple[tuple[int, int], ...]
    change: Change
    fact_times: tuple[list[Any], ...] = ()


@dataclass(frozen=True, slots=True)
class _Fact:
    """A fact with its interval, audience and confidence."""

    id: int
    triple: Triple
    began: int
    until: int
    reach: tuple[Any, ...]
    confidence: float
    stated: bool
    fresh: bool


@dataclass(frozen=True, slots=True)
class _End:
    """A statement, at an instant, of a new fact that ends an old one."""

    at: int
    new: _Fact
    old: _Fact


def decide_succession(
    state: State,
    pack: Pack,
    columns: Mapping[str, Sequence[Any]],
    ids: Sequence[int],
    *,
    gone: Collection[int],
    told: Sequence[Sequence[Any]] = (),
    now: int,
) -> Succession:
    """Decide which stored facts the new facts end, and which new facts have already ended.

    A fact that is stated again after another value is valid again. The statement ends the fact with
    the other value, whose valid time becomes a gap in the repeated fact.

    Parameters
    ----------
    state
        The state without the new facts.
    pack
        The active pack, whose ``succession-confidence`` is the minimum confidence to end a fact.
    columns
        The columns of the new memories, with canonical names of entities.
    ids
        The ids of the new memories.
    gone
        Ids that linking superseded in the same write.
    told
        The facts into which new rows were merged: id, instants of the statements, gaps.
    now
        The instant of the write, microseconds UTC.

    Returns
    -------
    The pairs and the change; empty if no fact ends.
    """
    fresh = [
        fact
        for position, id in enumerate(ids)
        if (fact := _read_new_fact(columns, position, id, now)) is not None
    ]
    instants_of = {id: instants for id, instants, _ in told}
    restated_facts = [
        stored_fact.triple
        for id in instants_of
        if id <= len(state) and (stored_fact := _read_stored_fact(state, id - 1)) is not None
    ]
    if not fresh and not restated_facts:
        return Succession((), Change())
    minimum = pack.number("succession-confidence")
    facts = [
        *_find_affected(state, [*(fact.triple for fact in fresh), *restated_facts], gone),
        *fresh,
    ]
    before = get_fact_times(state).told
    tellings = {
        fact.id: sorted({fact.began, *instants_of.get(fact.id, before.get(fact.id, ()))})
        for fact in facts
    }
    # Confident statements end a fact at the earliest of them; doubtful ones leave an edge. Statements between two
    # statements of the same fact leave a gap.
    ended: dict[int, _End] = {}
    doubtful: dict[tuple[int, int], None] = {}
    times: list[list[Any]] = []
    for old in facts:
        instants = tellings[old.id]
        candidate_ends = [
            _End(at, new, old)
            for new in facts
            if (new.fresh or old.fresh or new.id in instants_of or old.id in instants_of)
            and new.stated
            and new.reach == old.reach
            and ends_fact(new.triple, old.triple)
            for at in tellings[new.id]
            if old.until > at
        ]
        later_ends = [
            end for end in candidate_ends if (end.at, end.new.id) > (instants[-1], old.id)
        ]
        confident_ends = [end for end in candidate_ends if end.new.confidence >= minimum]
        final_ends = [end for end in later_ends if end.new.confidence >= minimum]
        if final_ends:
            ended[old.id] = min(final_ends, key=lambda end: (end.at, end.new.id))
        else:
            doubtful |= dict.fromkeys((end.new.id, old.id) for end in later_ends)
        gaps = [
            [min(ends_between), stop]
            for start, stop in pairwise(instants)
            if (ends_between := [end.at for end in confident_ends if start < end.at < stop])
        ]
        if gaps:
            times.append([old.id, instants, gaps])
    if not ended and not doubtful and not times:
        return Succession((), Change())
    return Succession(
        tuple((end.new.id, old) for old, end in ended.items()),
        _build_change(ended, list(doubtful), now),
        tuple(times),
    )


def _build_change(
    ended: Mapping[int, _End], doubtful: Sequence[tuple[int, int]], now: int
) -> Change:
    """Build the change that supersedes ended facts and links contradictory facts."""
    # Ids are sorted, so that equal decisions give equal events.
    parts = []
    if ended:
        gone = sorted(ended)
        parts.append(
            build_values(
                gone,
                status="superseded",
                superseded_by=[float(ended[id].new.id) for id in gone],
                valid_until=[min(ended[id].old.until, ended[id].at) for id in gone],
                changed=now,
                reason=[_write_reason(ended[id].new, ended[id].old) for id in gone],
            )
        )
    edges = [(ended[id].new.id, id, "supersedes") for id in sorted(ended)]
    edges += [(new, old, "contradicts") for new, old in doubtful]
    if not edges:
        return Change()
    sources, targets, relations = (list(column) for column in zip(*edges, strict=True))
    return Change(set=parts, edges=build_edges(sources, targets, relations, [1.0] * len(edges)))


def _write_reason(new: _Fact, old: _Fact) -> str:
    """Return the reason to store with an ended fact."""
    return f"Updated: {old.triple.predicate} {old.triple.value} -> {new.triple.predicate} {new.triple.value}"


def _read_new_fact(
    columns: Mapping[str, Sequence[Any]], position: int, id: int, now: int
) -> _Fact | None:
    """Return the fact in a new row, or None without a fact or if it is neither active, staged nor confirmed."""

    def of(name: str) -> Any:
        """Return a field of the new row, or the default of the field."""
        column = columns.get(name)
        value = None if column is None else column[position]
        return MEMORY[name].default if value is None and name in MEMORY else value

    value = of("value") if of("value") is not None else of("object")
    if (
        of("subject") is None
        or of("predicate") is None
        or value is None
        or of("status") not in _HOLDING
    ):
        return None
    created = now if of("created") in (None, NEVER, "now") else of("created")
    began = created if of("valid_from") in (None, NEVER) else of("valid_from")
    until = NEVER if of("valid_until") is None else of("valid_until")
    return _Fact(
        id,
        Triple(of("subject"), of("predicate"), value),
        began,
        _close_interval(until),
        tuple(of(name) for name in _REACH),
        float(of("confidence")),
        of("provenance") in _STATED,
        True,
    )


def _find_affected(state: State, fresh: Sequence[Triple], gone: Collection[int]) -> list[_Fact]:
    """Return the stored facts that the new facts may end or contradict.

    Such a fact has the subject of a new fact, or the owner of that subject. A fact also counts if
    its value names the subject of a new fact, or if a new value names its subject.
    """
    # Comparing every stored fact with every new one would be slow, so unrelated subjects are skipped.
    names = state.names
    result = []
    subjects = {triple.subject.casefold() for triple in fresh}
    owners = {triple.subject.rpartition("'s ")[0].casefold() for triple in fresh}
    values = [triple.value.casefold() for triple in fresh]
    for row in find_facts(state).tolist():
        subject, value = (
            names["subject"].value_at(row),
            names["value"].value_at(row) or names["object"].value_at(row),
        )
        if subject is None or value is None or row + 1 in gone:
            continue
        folded = subject.casefold()
        is_named = any(name in value.casefold() for name in subjects) or any(
            folded in triple for triple in values
        )
        if (folded in subjects | owners or is_named) and (
            fact := _read_stored_fact(state, row)
        ) is not None:
            result.append(fact)
    return result


def _read_stored_fact(state: State, row: int) -> _Fact | None:
    """Return the fact in a stored row, or None without a fact or if it is neither valid, superseded nor staged.

    A fact is valid if its status is "active" or "confirmed".
    """
    names, numbers = state.names, state.numbers
    subject, value = (
        names["subject"].value_at(row),
        names["value"].value_at(row) or names["object"].value_at(row),
    )
    if subject is None or value is None or names["status"].value_at(row) not in _WAS_SO:
        return None
    created, valid_from = (int(numbers[name].values[row]) for name in ("created", "valid_from"))
    return _Fact(
        row + 1,
        Triple(subject, names["predicate"].value_at(row) or "", value),
        created if valid_from == NEVER else valid_from,
        _close_interval(int(numbers["valid_until"].values[row])),
        tuple(names[name].value_at(row) for name in _REACH),
        float(numbers["confidence"].values[row]),
        names["provenance"].value_at(row) in _STATED,
        False,
    )


def _close_interval(until: int) -> int:
    """Return the end of an interval, or the far future for an open interval."""
    return _FOREVER if until == NEVER else until


_FOREVER = 1 << 62
"""An instant after all others, in microseconds."""
