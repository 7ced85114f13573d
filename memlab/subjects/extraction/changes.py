"""Changes of life in what a clause asserts: something ended, began or became something else.

"I gave up Spanish", "we got engaged", "I started a new job as a teacher", "my dog died", "I no longer work at Acme". A
change is a fact of its own, whose predicate says what changed; which older facts it ends is decided by
``memlab.subjects.facts.lifecycle`` when it is stored. The verbs stand in ``english.toml`` under ``lifecycle``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any

from memlab.kernel.english import lexicon, number_of, table
from memlab.subjects.extraction.clause import ARTICLES, SURE, USER, Fact, Said

__all__ = ["changes_in"]

_OLDEST = 120
_STATE_VERBS = ("got", "am", "was", "are", "became", "were", "getting", "gotten", "been", "is")
_AUXILIARIES = frozenset(["have", "had", "ended", "up", "has"])
_PRONOUNS = frozenset(["i", "we", "you", "he", "she", "it", "they", "this", "that"])
_PARTICIPLES = ("become", "gone")
"""Beginnings that need "have" before them."""
_OWNERS = ("my", "our")
_UNITS = frozenset(
    ["percent", "minutes", "hours", "days", "weeks", "months", "km", "miles", "degrees", "times"]
)
_ALONE = frozenset(["broke up", "split up", "separated", "graduated", "retired", "divorced"])
_WITH = {
    "engaged to": "is-engaged-to",
    "married to": "is-married-to",
    "divorced from": "divorced",
    "separated from": "separated-from",
    "broke up with": "broke-up-with",
    "split up with": "broke-up-with",
    "graduated from": "graduated-from",
    "retired from": "retired-from",
}


def changes_in(said: Said, place: int) -> Iterator[Fact]:
    """Yield the changes of life that a clause states, in order.

    Parameters
    ----------
    said
        The clause.
    place
        Where it begins after what only opens it.
    """
    if place >= len(said):
        return
    low = said.low(place)
    if (
        low in _OWNERS
        or _gone_at(said, place + 1) is not None
        or _gone_at(said, place + 2) is not None
    ):
        yield from _of_what_is_had(said, place)
    if low not in ("i", "we"):
        return
    start, at = said.words[place].start, _past_helpers(said, place + 1)
    found = list(_no_longer(said, place + 1, start))
    for read in (_post, _age, _state, _became, _ended, _now):
        found = found or list(read(said, at, start))
    yield from found


def _change(
    start: int,
    stop: int,
    predicate: str,
    value: str,
    *,
    of: str = USER,
    entity: bool = False,
    text: str | None = None,
) -> Fact:
    return Fact(of, predicate, value, entity, "personal", SURE, start, stop, text)


def _past_helpers(said: Said, at: int) -> int:
    """Past adverbs and forms of "have" before a verb: "I have just sold", "we've finally"."""
    while said.low(at) in _AUXILIARIES or said.low(at) in table("extraction", "adverbs"):
        if said.low(at) in ("have", "had") and said.low(at + 1) in (*ARTICLES, "my"):
            return at
        at += 1
    return at


def _no_longer(said: Said, at: int, start: int) -> Iterator[Fact]:
    """ "I no longer work at Acme", "I don't drink coffee anymore", "I'm not a student any more"."""
    lows, size = said.lows, len(said)
    tail = next(
        (n for n in (2, 1) if " ".join(lows[-n:]) in _words("anymore") and "not" in lows), 0
    )
    tail = 0 if " ".join(lows[-2:]) == "these days" else tail
    longer = any(lows[place : place + 2] == ["no", "longer"] for place in range(at, size - 1))
    if not tail and not longer:
        return
    left_out = {"do", "no", "longer"} if longer else {"do", "not"}
    kept = Said(said.text, [word for word in said.words[: size - tail] if word.low not in left_out])
    stop = said.words[-1].stop
    verb = kept.verb(at, own=True)
    if verb is not None:
        _, predicate, sort, _ = lexicon()["extraction"]["verbs"][verb[0]]
        value = kept.value(verb[1], sort)
        if value is not None:
            yield _change(start, stop, f"no-longer-{predicate}", value.text)
        return
    be = next((place for place in kept.past_adverbs(at) if kept.low(place) == "am"), None)
    value = None if be is None else kept.value(be + 1, "is")
    if value is not None:
        yield _change(start, stop, "no-longer-is", value.text)


def _post(said: Said, at: int, start: int) -> Iterator[Fact]:
    """A new post: "I started a new job as a teacher at Harrow"."""
    how = next((how for how in ("as", "at") if said.length_of(at, _lifecycle("posts")[how])), None)
    if how is None:
        return
    value = said.value(
        at + said.length_of(at, _lifecycle("posts")[how]), "job" if how == "as" else "work"
    )
    if value is None:
        return
    post = how == "as"
    yield _change(
        start, value.stop, "works-as" if post else "works-at", value.text, entity=not post
    )
    after = said.after(at, value.stop)
    if post and said.low(after) in ("at", "for"):
        firm = said.value(after + 1, "work")
        if firm is not None and said.is_capital(after + 1):
            yield _change(start, firm.stop, "works-at", firm.text, entity=True)
    if not post and said.low(after) == "as":
        role = said.value(after + 1, "job")
        if role is not None:
            yield _change(start, role.stop, "works-as", role.text)


def _age(said: Said, at: int, start: int) -> Iterator[Fact]:
    """ "I turned 35", "I'm 35 now"."""
    if at + 1 >= len(said) or said.low(at) not in ("turned", "am"):
        return
    then = said.past_adverbs(at + 1)[-1]
    number, follows = number_of(said.low(then)), said.low(then + 1)
    told = said.low(at) == "turned" or follows in ("now", "today", "already")
    if told and number is not None and number <= _OLDEST and follows not in _UNITS:
        yield _change(start, said.words[then].stop, "age", said.low(then))


def _state(said: Said, at: int, start: int) -> Iterator[Fact]:
    """ "We got engaged", "I'm divorced now", "we broke up", "I retired", "I graduated"."""
    first = at + (said.low(at) in _STATE_VERBS)
    first = next(iter(said.past_adverbs(first)[-1:]), first)
    state = said.longest(first, _plain_states())
    if state is None:
        return
    last = first + len(state.split())
    follows = said.low(last)
    if follows in ("from", "with", "to") and last + 1 < len(said):
        person = said.value(last + 1, "person")
        predicate = _WITH.get(f"{state} {follows}")
        if predicate is not None and person is not None:
            yield _change(
                start, person.stop, predicate, person.text, entity=said.is_capital(last + 1)
            )
            return
    if first == at and state not in _ALONE:
        return
    stop = said.words[last - 1].stop
    if state in ("broke up", "split up"):
        yield _change(
            start, stop, "relationship", state, text=f"{{subject}} {state} with their partner"
        )
    else:
        yield _change(start, stop, "has" if state == "graduated" else "is", state)


def _became(said: Said, at: int, start: int) -> Iterator[Fact]:
    """ "I became a chef", "I went vegan", "I switched to tea"."""
    verb = said.longest(at, _lifecycle("beginnings"))
    if verb is None or (verb in _PARTICIPLES and said.lows[at - 1] in ("i", "we")):
        return  # "I become a teacher when I finish" is no change so far; "I have become" is one
    after = at + len(verb.split())
    predicate = _lifecycle("beginnings")[verb]
    value = said.value(after, "replacement" if predicate == "switched-to" else "is")
    if value is None:
        return
    post = said.low(after) in ("a", "an") and _names_profession(value.text)
    if predicate == "switched-to" or post or value.text.lower() in _states():
        yield _change(start, value.stop, predicate, value.text)


def _ended(said: Said, at: int, start: int) -> Iterator[Fact]:
    """ "I gave up Spanish", "I sold the car", "I switched from Vim to Emacs"."""
    verb = said.longest(at, _lifecycle("endings"))
    if verb is None:
        return
    predicate, sort = _lifecycle("endings")[verb]
    after = at + len(verb.split())
    value = said.value(after, sort)
    if value is None or not _tells_what(
        said.low(after), predicate, value.text, said.is_capital(after)
    ):
        return
    yield _change(start, value.stop, predicate, value.text)
    follows = said.after(after, value.stop)
    other = said.value(follows + 1, "replacement") if said.low(follows) == "to" else None
    if predicate == "switched-from" and other is not None:
        yield _change(start, other.stop, "switched-to", other.text)


def _tells_what(first: str, predicate: str, value: str, named: bool) -> bool:
    """Whether the words after an ending verb name what ended: "lost my keys" may, "lost to them" does not."""
    owned = first in _OWNERS or first in ARTICLES
    words = {*value.lower().split()}
    if predicate in ("lost", "dropped", "finished", "deleted", "cancelled", "abandoned"):
        known = table("extraction", "belongings") | table("extraction", "relations")
        names_what = owned and bool(words & (known | {"job", "work"}))
        return names_what or (predicate == "dropped" and named)
    if predicate == "left":
        classes = _lifecycle("classes")
        people = {
            *classes["work"]["words"],
            *classes["partner"]["words"],
            *classes["study"]["words"],
        }
        return named or (first == "my" and bool(words & people))
    if predicate in ("quit", "stopped", "gave-up"):
        return first not in ("on", "at", "by", "for", "and") and value.lower() not in (
            "hope",
            "trying",
            "early",
        )
    return owned or named or predicate != "sold"


def _now(said: Said, at: int, start: int) -> Iterator[Fact]:
    """ "I'm a teacher now", "I'm now an engineer at Acme"."""
    if said.low(at) != "am":
        return
    noun = next((place for place in (at + 1, at + 2) if said.low(place) in ("a", "an")), None)
    if noun is None or not (said.low(at + 1) == "now" or "now" in said.lows[at:][-3:]):
        return
    value = said.value(noun, "is")
    if value is not None and _names_profession(value.text):
        yield _change(start, value.stop, "is-now", value.text)


def _gone_at(said: Said, at: int) -> str | None:
    while said.low(at) in table("extraction", "adverbs"):
        at += 1
    return said.longest(at, _words("gone"))


def _of_what_is_had(said: Said, place: int) -> Iterator[Fact]:
    """ "My dog died", "my dog Rex passed away", "Rex died", "our car was stolen"."""
    start = said.words[place].start
    owned = said.low(place) in _OWNERS
    first = place + owned
    for verb in range(first + 1, first + 4):
        gone = _gone_at(said, verb)
        if gone is None:
            continue
        named = all(map(said.is_capital, range(first, verb)))
        if not owned and (not named or said.low(first) in _PRONOUNS):
            return
        last = verb
        while said.low(last) in table("extraction", "adverbs"):
            last += 1
        stop = said.words[last + len(gone.split()) - 1].stop
        what, gone = said.written(first, verb), gone.removeprefix("has ")
        if owned:
            yield _change(
                start, stop, "lost", f"their {what}", text=f"{{possessive}} {what} {gone}"
            )
        else:
            yield _change(start, stop, "is", "gone", of=what, text=f"{what} {gone}")
        return
    if owned and said.low(place + 1) in _lifecycle("classes")["partner"]["words"]:
        yield from _parted(said, place, start)


def _parted(said: Said, place: int, start: int) -> Iterator[Fact]:
    """ "My girlfriend left me", "my girlfriend and I broke up" (whose second half is read by itself)."""
    lows = said.lows[place + 2 : place + 5]
    at = int(bool(lows) and said.is_capital(place + 2))
    if lows[at : at + 2] in (["left", "me"], ["dumped", "me"]) or lows[at : at + 4] == [
        "broke",
        "up",
        "with",
        "me",
    ]:
        stop = said.words[min(place + 2 + at + len(lows[at:]) - 1, len(said) - 1)].stop
        yield _change(
            start, stop, "relationship", "broke up", text="{subject} broke up with their partner"
        )


def _lifecycle(name: str) -> Any:
    return lexicon()["lifecycle"][name]


def _names_profession(value: str) -> bool:
    return not _words("professions").isdisjoint(value.lower().split())


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(_lifecycle("words")[name])


@cache
def _states() -> frozenset[str]:
    """What somebody is for long, of which another state is the end: "vegan", "a vegan", "a smoker"."""
    return frozenset(chain.from_iterable(_lifecycle("states").values()))


@cache
def _plain_states() -> frozenset[str]:
    return frozenset(
        state for state in _states() if not state.startswith(("a ", "in a ")) and state != "dating"
    )
