"""Which fact a later fact brings to an end: by subject, predicate and value, with the tables of the language.

A fact ends another of the same subject where both give a property with one value at a time different values, where it
names an end ("gave up Spanish", "sold the car"), where it is another state of one group (single, engaged, married), or
where it says the opposite of the same thing. Two facts are enough: the answer depends on nothing else, so that a
history gives the same facts in whatever order it is loaded.
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

__all__ = ["Said", "Succession", "ends", "succession"]


_SHORTEST_STEM = 4
_ENDINGS = ("ing", "ers", "er", "ed", "es", "s", "e")
_NO_LONGER = "no-longer-"


@dataclass(frozen=True, slots=True)
class Said:
    """A fact as three words: of whom, by which predicate, what."""

    subject: str
    predicate: str
    value: str


def ends(new: Said, old: Said) -> bool:
    """Return whether a fact that is true from now on ends one that was true before.

    Parameters
    ----------
    new, old
        The later fact, and the earlier one.

    Returns
    -------
    bool
        Whether the earlier fact holds no longer. A fact ends none that says the same.

    Examples
    --------
    >>> ends(Said("user", "gave-up", "Spanish"), Said("user", "speaks", "Spanish"))
    True
    >>> ends(Said("user", "likes", "tea"), Said("user", "likes", "coffee"))
    False
    """
    if new.subject.casefold() != old.subject.casefold():
        return _is_gone(new) and _names(new.subject, old)
    if (new.predicate, new.value.casefold()) == (old.predicate, old.value.casefold()):
        return False
    return (
        _replaces(new, old)
        or _changes_state(new, old)
        or _ends_by_name(new, old)
        or _denies(new, old)
        or _excludes_food(new, old)
    )


def _replaces(new: Said, old: Said) -> bool:
    """Another value of a property that has one at a time."""
    favourite = new.predicate.startswith(("favourite-", "favorite-"))
    if new.predicate == old.predicate and (favourite or new.predicate in _words("one-value")):
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
        return _alternatives(new.value, old.value)
    if new.predicate == "switched-to" and old.predicate in (
        "uses",
        "prefers",
        "drinks",
        "drives",
        "eats",
        "works-with",
    ):
        return _alternatives(new.value, old.value)
    return False


def _changes_state(new: Said, old: Said) -> bool:
    """Another state of one group, or a state that ends what somebody had or was."""
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
    state = {"is-married-to": "married", "is-engaged-to": "engaged"}.get(
        new.predicate, _state_of(new.value)
    )
    state = "divorced" if new.predicate == "divorced" else state
    group = _groups().get(state)
    if group is None:
        return False
    if old.predicate in ("is", "is-now", "has", "relationship"):
        before = _state_of(old.value)
        if _groups().get(before) == group and before != state:
            return True
        if group == "occupation" and state != "employed" and state != "self-employed":
            return _is_profession(old.value)
        if group == "study" and state == "graduated":
            return "student" in words_of(old.value)
    after = {"is-married-to": "married", "is-engaged-to": "engaged"}.get(old.predicate)
    if new.predicate == "is-married-to" and old.predicate == "is-engaged-to":
        return True
    if after == state:
        return False
    return old.predicate in table("lifecycle", "state-ends").get(state, ())


def _ends_by_name(new: Said, old: Said) -> bool:
    """An ending verb that names the same thing, or what it belongs to: "quit my job", "sold the car"."""
    if new.predicate.startswith(_NO_LONGER):
        verb = new.predicate.removeprefix(_NO_LONGER)
        alike = verb == old.predicate or (verb == "is" and old.predicate == "is-now")
        if verb == "is" and old.predicate in ("is", "is-now"):
            return _state_of(new.value) == _state_of(old.value) or bool(
                _stems(new.value) & _stems(old.value)
            )
        return alike and (not _stems(new.value) or bool(_stems(new.value) & _stems(old.value)))
    if new.predicate not in _ending_predicates() or old.predicate not in _words("may-end"):
        return False
    named = _stems(new.value)
    if named & (_stems(old.value) | _stems(old.predicate.replace("-", " "))):
        return True
    for one in lexicon()["lifecycle"]["classes"].values():
        if named & _as_stems(tuple(one["words"])):
            if old.predicate in one["predicates"] and not _is_of_another_kind(
                new.value, old.value, one["words"]
            ):
                return True
            if one["professions"] and old.predicate == "is" and _is_profession(old.value):
                return True
    return False


def _is_of_another_kind(new: str, old: str, words: list[str]) -> bool:
    """Whether both name a kind of their class, and not the same: who sold the van still drives a car."""
    stems = _as_stems(tuple(words))
    one, other = _stems(new) & stems, _stems(old) & stems
    return bool(one and other and not one & other)


def _denies(new: Said, old: Said) -> bool:
    """The opposite of the same thing: likes and dislikes."""
    for pair in lexicon()["lifecycle"]["words"]["opposites"]:
        if {new.predicate, old.predicate} == set(pair.split()):
            return bool(_stems(new.value) & _stems(old.value))
    return False


def _excludes_food(new: Said, old: Said) -> bool:
    foods = table("lifecycle", "foods")
    for diet, eaten, later in ((new, old, False), (old, new, True)):
        banned = foods.get(_state_of(diet.value).removeprefix("a "))
        if diet.predicate not in ("is", "is-now") or banned is None:
            continue
        if eaten.predicate == "eats" and set(words_of(eaten.value)) & set(banned):
            return True
        if eaten.predicate == "likes" and not later and set(words_of(eaten.value)) & set(banned):
            return False
    return False


def _is_gone(new: Said) -> bool:
    return (new.predicate == "is" and new.value in ("dead", "gone")) or new.predicate == "died"


def _names(name: str, old: Said) -> bool:
    """Whether an older fact says that somebody has what is gone: by its name, or as "user's dog"."""
    owner, _, noun = name.rpartition("'s ")
    if owner:
        owned = old.subject.casefold() == owner.casefold()
        return owned and (
            old.predicate == noun
            or (old.predicate in ("has", "owns") and noun in words_of(old.value))
        )
    pets = old.predicate in table("extraction", "relations") or old.predicate in ("has", "owns")
    return pets and bool(set(words_of(name)) & set(words_of(old.value)))


def _differ(new: str, old: str) -> bool:
    """Whether two values of one property are known to differ: "Oslo" and "Oslo, Norway" are not."""
    one, other = set(words_of(new)) - _light(), set(words_of(old)) - _light()
    return not (one <= other or other <= one)


def _alternatives(new: str, old: str) -> bool:
    one, other = set(words_of(new)), set(words_of(old))
    return any(
        one & set(group) and other & set(group) and not one & other
        for group in lexicon()["conflicts"]["alternatives"]
    )


def _is_profession(value: str) -> bool:
    words = words_of(value)
    return bool(words) and not _words("professions").isdisjoint(words)


@cache
def _groups() -> dict[str, str]:
    return {
        state: group
        for group, states in lexicon()["lifecycle"]["states"].items()
        for state in states
    }


def _state_of(value: str) -> str:
    """The state that a value names: "married with two kids" is married."""
    low = " ".join(words_of(value))
    if low in _groups():
        return low
    for size in (3, 2, 1):
        head = " ".join(low.split()[:size])
        if head in _groups():
            return head
    return low


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(lexicon()["lifecycle"]["words"][name])


@cache
def _light() -> frozenset[str]:
    return _words("light")


@cache
def _ending_predicates() -> frozenset[str]:
    found: dict[str, Any] = lexicon()["lifecycle"]["endings"]
    return frozenset(predicate for predicate, _ in found.values())


@cache
def _as_stems(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(_stem, words))


def _stems(value: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in words_of(value) if word not in _light())


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM - 1:
            return word[: -len(ending)]
    return word


# Which facts of a lab new facts bring to an end, as a change that the fold applies.
#
# The valid time decides, not the order of telling: a fact that was true before a change is over from then on, also
# where it is told after it. Only what a user stated of themselves ends anything; what an assistant, a tool or a page
# says of a user never does. Below the setting ``succession-confidence`` nothing ends, and an edge ``contradicts``
# says why.


_REACH = ("project", "scope", "branch", "season", "visibility")
_HOLDING = ("active", "staged", "confirmed")
_WAS_SO = (*_HOLDING, "superseded")
"""What was true for a time can end an older fact, and may have ended earlier than was known."""

_STATED = ("user-stated", "user-corrected")


@dataclass(frozen=True)
class Succession:
    """What new facts end: ``pairs`` of the id that takes over and the id that ends, and the ``change`` for the fold.

    ``fact_times`` has the id, the instants and the gaps of facts that were told again after another value held.
    """

    pairs: tuple[tuple[int, int], ...]
    change: Change
    fact_times: tuple[list[Any], ...] = ()


@dataclass(frozen=True, slots=True)
class _Fact:
    id: int
    said: Said
    began: int
    until: int
    reach: tuple[Any, ...]
    confidence: float
    stated: bool
    fresh: bool


@dataclass(frozen=True, slots=True)
class _End:
    """A telling, at an instant, of a new fact that ends an old one."""

    at: int
    new: _Fact
    old: _Fact


def succession(
    state: State,
    pack: Pack,
    columns: Mapping[str, Sequence[Any]],
    ids: Sequence[int],
    *,
    gone: Collection[int],
    told: Sequence[Sequence[Any]] = (),
    now: int,
) -> Succession:
    """Decide what new facts end, and which of them are over already.

    A fact that is told again after another value held is in force again: it ends the other, which leaves a gap in it.

    Parameters
    ----------
    state
        The state without the new facts.
    pack
        The live pack; its setting ``succession-confidence`` is the least confidence that ends a fact.
    columns
        The columns of the new memories, subjects called by the names of their entities.
    ids
        The ids that the new memories get.
    gone
        Ids that linking superseded in the same write.
    told
        The facts that new rows were merged into: id, instants of their tellings, gaps.
    now
        The instant of the write, microseconds UTC.

    Returns
    -------
    Succession
        The pairs and the change; empty where nothing ends.
    """
    fresh = [
        fact
        for place, id in enumerate(ids)
        if (fact := _fresh(columns, place, id, now)) is not None
    ]
    again = {id: instants for id, instants, _ in told}
    retold = [
        one.said
        for id in again
        if id <= len(state) and (one := _stored_fact(state, id - 1)) is not None
    ]
    if not fresh and not retold:
        return Succession((), Change())
    least = pack.number("succession-confidence")
    known = [*_stored(state, [*(fact.said for fact in fresh), *retold], gone), *fresh]
    before = get_fact_times(state).told
    tellings = {
        fact.id: sorted({fact.began, *again.get(fact.id, before.get(fact.id, ()))})
        for fact in known
    }
    over: dict[int, _End] = {}
    doubtful: dict[tuple[int, int], None] = {}
    times: list[list[Any]] = []
    for old in known:
        own = tellings[old.id]
        others = [
            _End(at, new, old)
            for new in known
            if (new.fresh or old.fresh or new.id in again or old.id in again)
            and new.stated
            and new.reach == old.reach
            and ends(new.said, old.said)
            for at in tellings[new.id]
            if old.until > at
        ]
        later = [end for end in others if (end.at, end.new.id) > (own[-1], old.id)]
        sure = [end for end in others if end.new.confidence >= least]
        last = [end for end in later if end.new.confidence >= least]
        if last:
            over[old.id] = min(last, key=lambda end: (end.at, end.new.id))
        else:
            doubtful |= dict.fromkeys((end.new.id, old.id) for end in later)
        gaps = [
            [min(between), high]
            for low, high in pairwise(own)
            if (between := [end.at for end in sure if low < end.at < high])
        ]
        if gaps:
            times.append([old.id, own, gaps])
    if not over and not doubtful and not times:
        return Succession((), Change())
    return Succession(
        tuple((end.new.id, old) for old, end in over.items()),
        _change(over, list(doubtful), now),
        tuple(times),
    )


def _change(over: Mapping[int, _End], doubtful: Sequence[tuple[int, int]], now: int) -> Change:
    parts = []
    if over:
        gone = sorted(over)
        parts.append(
            build_values(
                gone,
                status="superseded",
                superseded_by=[float(over[id].new.id) for id in gone],
                valid_until=[min(over[id].old.until, over[id].at) for id in gone],
                changed=now,
                reason=[_why(over[id].new, over[id].old) for id in gone],
            )
        )
    edges = [(over[id].new.id, id, "supersedes") for id in sorted(over)]
    edges += [(new, old, "contradicts") for new, old in doubtful]
    if not edges:
        return Change()
    sources, targets, relations = (list(column) for column in zip(*edges, strict=True))
    return Change(set=parts, edges=build_edges(sources, targets, relations, [1.0] * len(edges)))


def _why(new: _Fact, old: _Fact) -> str:
    return (
        f"Updated: {old.said.predicate} {old.said.value} -> {new.said.predicate} {new.said.value}"
    )


def _fresh(columns: Mapping[str, Sequence[Any]], place: int, id: int, now: int) -> _Fact | None:
    def of(name: str) -> Any:
        given = columns.get(name)
        value = None if given is None else given[place]
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
        Said(of("subject"), of("predicate"), value),
        began,
        _end(until),
        tuple(of(name) for name in _REACH),
        float(of("confidence")),
        of("provenance") in _STATED,
        True,
    )


def _stored(state: State, fresh: Sequence[Said], gone: Collection[int]) -> list[_Fact]:
    """The facts of the subjects of new facts, and those that name one of them, or are named by one."""
    names = state.names
    found = []
    low = {one.subject.casefold() for one in fresh}
    owners = {one.subject.rpartition("'s ")[0].casefold() for one in fresh}
    values = [one.value.casefold() for one in fresh]
    for row in find_facts(state).tolist():
        subject, value = (
            names["subject"].value_at(row),
            names["value"].value_at(row) or names["object"].value_at(row),
        )
        if subject is None or value is None or row + 1 in gone:
            continue
        of = subject.casefold()
        named = any(one in value.casefold() for one in low) or any(of in one for one in values)
        if (of in low | owners or named) and (fact := _stored_fact(state, row)) is not None:
            found.append(fact)
    return found


def _stored_fact(state: State, row: int) -> _Fact | None:
    """The fact in a row; None for a memory that is none, or that was never true."""
    names, numbers = state.names, state.numbers
    subject, value = (
        names["subject"].value_at(row),
        names["value"].value_at(row) or names["object"].value_at(row),
    )
    if subject is None or value is None or names["status"].value_at(row) not in _WAS_SO:
        return None
    created, since = (int(numbers[name].values[row]) for name in ("created", "valid_from"))
    return _Fact(
        row + 1,
        Said(subject, names["predicate"].value_at(row) or "", value),
        created if since == NEVER else since,
        _end(int(numbers["valid_until"].values[row])),
        tuple(names[name].value_at(row) for name in _REACH),
        float(numbers["confidence"].values[row]),
        names["provenance"].value_at(row) in _STATED,
        False,
    )


def _end(until: int) -> int:
    return _FOREVER if until == NEVER else until


_FOREVER = 1 << 62
