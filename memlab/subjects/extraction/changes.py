"""Changes of life in what a clause asserts: something ended, began or became something else.

"I gave up Spanish", "we got engaged", "I started a new job as a teacher", "my dog died", "I no longer work at Acme". A
change is a fact of its own, whose predicate says what changed; which older facts it ends is decided by
``memlab.subjects.facts.lifecycle`` when it is stored. The verbs stand in ``english.toml`` under ``lifecycle``.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from memlab.kernel.english import Token, lexicon, number_of, table
from memlab.subjects.extraction.values import ARTICLES, bare, capital, value_at
from memlab.subjects.extraction.verbs import past_adverbs, verb_of

__all__ = ["Change", "changes_in"]

_OLDEST = 120
_MOST_WORDS = 5
_STATE_VERBS = ("got", "am", "was", "are", "became", "were", "getting", "gotten", "been", "is")
_AUXILIARIES = frozenset(["have", "had", "ended", "up", "has"])
_PRONOUNS = frozenset(["i", "we", "you", "he", "she", "it", "they", "this", "that"])
_PARTICIPLES = ("become", "gone")
"""Beginnings that need "have" before them."""
_OWNERS = {"my": "user", "our": "user"}


@dataclass(frozen=True, slots=True)
class Change:
    """One change: of whom, by which predicate, what, and where it stands in the message.

    ``text`` says it as a sentence where predicate and value do not; ``entity`` whether the value is an entity.
    """

    subject: str
    predicate: str
    value: str
    entity: bool
    start: int
    stop: int
    text: str | None = None


def changes_in(text: str, words: Sequence[Token], place: int, user: str) -> Iterator[Change]:
    """Yield the changes of life that a clause states.

    Parameters
    ----------
    text
        The message.
    words
        The words of the clause, contractions taken apart.
    place
        Where the clause begins after what only opens it.
    user
        What the speaker is called as a subject.

    Yields
    ------
    Change
        The changes, in order.
    """
    if place >= len(words):
        return
    low = words[place].low
    if low in _OWNERS or _gone_at(words, place + 1) is not None or _gone_at(words, place + 2) is not None:
        yield from _of_what_is_had(text, words, place, user)
    if low not in ("i", "we"):
        return
    start, at = words[place].start, _past_helpers(words, place + 1)
    for change in (
        _no_longer(text, words, place + 1, user, start),
        _post(text, words, at, user, start),
        _age(words, at, user, start),
        _state(text, words, at, user, start),
        _became(text, words, at, user, start),
        _ended(text, words, at, user, start),
        _now(text, words, at, user, start),
    ):
        found = list(change)
        if found:
            yield from found
            return


def _past_helpers(words: Sequence[Token], at: int) -> int:
    """Past adverbs and forms of "have" before a verb: "I have just sold", "we've finally"."""
    while at < len(words) and (words[at].low in _AUXILIARIES or words[at].low in table("extraction", "adverbs")):
        if words[at].low in ("have", "had") and at + 1 < len(words) and words[at + 1].low in (*ARTICLES, "my"):
            return at
        at += 1
    return at


def _phrase(words: Sequence[Token], at: int, phrases: Container[str]) -> str | None:
    """The longest phrase of a table that stands at a place."""
    for size in range(min(_MOST_WORDS, len(words) - at), 0, -1):
        said = " ".join(word.low for word in words[at : at + size])
        if said in phrases:
            return said
    return None


def _value(text: str, words: Sequence[Token], at: int, sort: str) -> tuple[str, int] | None:
    return value_at(text, list(words), at, sort) if at < len(words) else None


def _no_longer(text: str, words: Sequence[Token], at: int, user: str, start: int) -> Iterator[Change]:
    """ "I no longer work at Acme", "I don't drink coffee anymore", "I'm not a student any more"."""
    lows = [word.low for word in words]
    tail = next((n for n in (2, 1) if " ".join(lows[-n:]) in _words("anymore") and "not" in lows), 0)
    tail = 0 if " ".join(lows[-2:]) == "these days" else tail
    longer = next((n for n in range(at, len(lows) - 1) if lows[n : n + 2] == ["no", "longer"]), None)
    if not tail and longer is None:
        return
    kept = [word for word in words[: len(words) - tail] if word.low != "do"]
    drop = {"no", "longer"} if longer is not None else {"not"}
    kept = [word for word in kept if word.low not in drop]
    verb = verb_of(kept, at, own=True)
    stop = words[-1].stop
    if verb is not None:
        _, predicate, sort, _ = lexicon()["extraction"]["verbs"][verb[0]]
        value = _value(text, kept, verb[1], sort)
        if value is not None:
            yield Change(user, f"no-longer-{predicate}", value[0], False, start, stop)
        return
    be = next((n for n in past_adverbs(kept, at) if n < len(kept) and kept[n].low == "am"), None)
    if be is not None:
        value = _value(text, kept, be + 1, "is")
        if value is not None:
            yield Change(user, "no-longer-is", value[0], False, start, stop)


def _post(text: str, words: Sequence[Token], at: int, user: str, start: int) -> Iterator[Change]:
    """A new post: "I started a new job as a teacher at Harrow"."""
    for how, predicate, sort in (("as", "works-as", "job"), ("at", "works-at", "work")):
        said = _phrase_of(words, at, how)
        if not said:
            continue
        value = _value(text, words, at + said, sort)
        if value is None:
            return
        yield Change(user, predicate, value[0], predicate == "works-at", start, value[1])
        after = next((n for n, word in enumerate(words) if n > at and word.start >= value[1]), None)
        if how == "as" and after is not None and words[after].low in ("at", "for") and after + 1 < len(words):
            firm = _value(text, words, after + 1, "work")
            if firm is not None and capital(text, words[after + 1]):
                yield Change(user, "works-at", firm[0], True, start, firm[1])
        if how == "at" and after is not None and words[after].low == "as":
            post = _value(text, words, after + 1, "job")
            if post is not None:
                yield Change(user, "works-as", post[0], False, start, post[1])
        return


def _phrase_of(words: Sequence[Token], at: int, how: str) -> int:
    """How many words of a post's phrase stand at a place."""
    lows = [word.low for word in words[at : at + 8]]
    for phrase in lexicon()["lifecycle"]["posts"][how]:
        parts = phrase.split()
        if lows[: len(parts)] == parts:
            return len(parts)
    # "started my new job as", "started a job last week as"
    return 0


def _age(words: Sequence[Token], at: int, user: str, start: int) -> Iterator[Change]:
    """ "I turned 35", "I'm 35 now"."""
    if at + 1 >= len(words) or words[at].low not in ("turned", "am"):
        return
    then = next(iter(past_adverbs(words, at + 1)[-1:]), at + 1)
    number = number_of(words[then].low)
    follows = words[then + 1].low if then + 1 < len(words) else ""
    said = words[at].low == "turned" or follows in ("now", "today", "already")
    units = follows in ("years", "year", "") or follows not in _UNITS
    if said and number is not None and number <= _OLDEST and units:
        yield Change(user, "age", words[then].low, False, start, words[then].stop)


_UNITS = frozenset(["percent", "minutes", "hours", "days", "weeks", "months", "km", "miles", "degrees", "times"])


def _state(text: str, words: Sequence[Token], at: int, user: str, start: int) -> Iterator[Change]:
    """ "We got engaged", "I'm divorced now", "we broke up", "I retired", "I graduated"."""
    if at >= len(words):
        return
    first = at + (words[at].low in _STATE_VERBS)
    first = next(iter(past_adverbs(words, first)[-1:]), first)
    if first >= len(words):
        return
    state = _phrase(words, first, _plain_states())
    if state is None:
        return
    last = first + len(state.split())
    follows = words[last].low if last < len(words) else ""
    if follows in ("from", "with", "to") and last + 1 < len(words):
        person = _value(text, words, last + 1, "person")
        predicate = _WITH.get((state, follows))
        if predicate is not None and person is not None:
            yield Change(user, predicate, person[0], capital(text, words[last + 1]), start, person[1])
            return
    if first == at and state not in _ALONE:
        return
    stop = words[last - 1].stop
    if state in ("broke up", "split up"):
        yield Change(user, "relationship", state, False, start, stop, f"{{subject}} {state} with their partner")
    elif state == "graduated":
        yield Change(user, "has", state, False, start, stop)
    else:
        yield Change(user, "is", state, False, start, stop)


_ALONE = frozenset(["broke up", "split up", "separated", "graduated", "retired", "divorced"])
_WITH = {
    ("engaged", "to"): "is-engaged-to",
    ("married", "to"): "is-married-to",
    ("divorced", "from"): "divorced",
    ("separated", "from"): "separated-from",
    ("broke up", "with"): "broke-up-with",
    ("split up", "with"): "broke-up-with",
    ("graduated", "from"): "graduated-from",
    ("retired", "from"): "retired-from",
}


@cache
def _plain_states() -> frozenset[str]:
    every = {state for states in lexicon()["lifecycle"]["states"].values() for state in states}
    return frozenset(state for state in every if not state.startswith(("a ", "in a ")) and state != "dating")


def _became(text: str, words: Sequence[Token], at: int, user: str, start: int) -> Iterator[Change]:
    """ "I became a chef", "I went vegan", "I switched to tea"."""
    verb = _phrase(words, at, lexicon()["lifecycle"]["beginnings"])
    if verb is None:
        return
    if verb in _PARTICIPLES and words[at - 1].low in ("i", "we"):
        return  # "I become a teacher when I finish" is no change so far; "I have become" is one
    after = at + len(verb.split())
    predicate = lexicon()["lifecycle"]["beginnings"][verb]
    if predicate == "switched-to":
        value = _value(text, words, after, "replacement")
        if value is not None:
            yield Change(user, predicate, value[0], False, start, value[1])
        return
    value = _value(text, words, after, "is") if after < len(words) else None
    if value is None:
        return
    post = words[after].low in ("a", "an") and not _words("professions").isdisjoint(value[0].lower().split())
    if post or value[0].lower() in _states():
        yield Change(user, predicate, value[0], False, start, value[1])


@cache
def _states() -> frozenset[str]:
    """What somebody is for long, of which another state is the end: "vegan", "a vegan", "a smoker"."""
    return frozenset(chain.from_iterable(lexicon()["lifecycle"]["states"].values()))


def _ended(text: str, words: Sequence[Token], at: int, user: str, start: int) -> Iterator[Change]:
    """ "I gave up Spanish", "I sold the car", "I switched from Vim to Emacs"."""
    verb = _phrase(words, at, lexicon()["lifecycle"]["endings"])
    if verb is None:
        return
    predicate, sort = lexicon()["lifecycle"]["endings"][verb]
    after = at + len(verb.split())
    value = _value(text, words, after, sort)
    if value is None or not _tells_what(words[after].low, predicate, value[0], capital(text, words[after])):
        return
    yield Change(user, predicate, value[0], False, start, value[1])
    follows = next((n for n, word in enumerate(words) if n > after and word.start >= value[1]), None)
    if predicate == "switched-from" and follows is not None and words[follows].low == "to":
        other = _value(text, words, follows + 1, "replacement")
        if other is not None:
            yield Change(user, "switched-to", other[0], False, start, other[1])


def _tells_what(first: str, predicate: str, value: str, named: bool) -> bool:
    """Whether the words after an ending verb name what ended: "lost my keys" may, "lost to them" does not."""
    owned = first in ("my", "our") or first in ARTICLES
    if predicate in ("lost", "dropped", "finished", "deleted", "cancelled", "abandoned"):
        known = table("extraction", "belongings") | table("extraction", "relations")
        names_what = owned and bool({*value.lower().split()} & (known | {"job", "work"}))
        return names_what or (predicate == "dropped" and named)
    if predicate == "left":
        classes = lexicon()["lifecycle"]["classes"]
        people = {*classes["work"]["words"], *classes["partner"]["words"], *classes["study"]["words"]}
        return named or (first == "my" and bool({*value.lower().split()} & people))
    if predicate in ("quit", "stopped", "gave-up"):
        return first not in ("on", "at", "by", "for", "and") and value.lower() not in ("hope", "trying", "early")
    return owned or named or predicate not in ("sold",)


def _now(text: str, words: Sequence[Token], at: int, user: str, start: int) -> Iterator[Change]:
    """ "I'm a teacher now", "I'm now an engineer at Acme"."""
    if at >= len(words) or words[at].low != "am":
        return
    lows = [word.low for word in words[at:]]
    noun = next((n for n in (at + 1, at + 2) if n < len(words) and words[n].low in ("a", "an")), None)
    if noun is None or not ("now" in lows and (lows[1] == "now" or lows[-1] == "now" or "now" in lows[-3:])):
        return
    value = _value(text, words, noun, "is")
    if value is not None and not _words("professions").isdisjoint(value[0].lower().split()):
        yield Change(user, "is-now", value[0], False, start, value[1])


def _gone_at(words: Sequence[Token], at: int) -> str | None:
    after = at
    while after < len(words) and words[after].low in table("extraction", "adverbs"):
        after += 1
    return _phrase(words, after, _words_list("gone"))


def _of_what_is_had(text: str, words: Sequence[Token], place: int, user: str) -> Iterator[Change]:
    """ "My dog died", "my dog Rex passed away", "Rex died", "our car was stolen"."""
    start = words[place].start
    owned = words[place].low in _OWNERS
    for size in (1, 2, 3):
        verb = place + owned + size
        said = _gone_at(words, verb)
        if said is None:
            continue
        nouns = words[place + owned : verb]
        named = [word for word in nouns if capital(text, word)]
        if not owned and (len(named) != len(nouns) or nouns[0].low in _PRONOUNS):
            return
        while verb < len(words) and words[verb].low in table("extraction", "adverbs"):
            verb += 1
        stop = words[verb + len(said.split()) - 1].stop
        what = bare(text[nouns[0].start : nouns[-1].stop])
        gone = said.removeprefix("has ")
        if owned:
            yield Change(user, "lost", f"their {what}", False, start, stop, f"{{possessive}} {what} {gone}")
        else:
            yield Change(what, "is", "gone", False, start, stop, f"{what} {gone}")
        return
    if owned and _is_partner(words, place + 1):
        yield from _parted(text, words, place, user, start)


def _is_partner(words: Sequence[Token], at: int) -> bool:
    partners = lexicon()["lifecycle"]["classes"]["partner"]["words"]
    return at < len(words) and words[at].low in partners


def _parted(text: str, words: Sequence[Token], place: int, user: str, start: int) -> Iterator[Change]:
    """ "My girlfriend left me", "my girlfriend and I broke up" (whose second half is read by itself)."""
    lows = [word.low for word in words[place + 2 : place + 5]]
    at = 1 if lows[:1] and capital(text, words[place + 2]) else 0
    if lows[at : at + 2] in (["left", "me"], ["dumped", "me"]) or lows[at : at + 4] == ["broke", "up", "with", "me"]:
        stop = words[min(place + 2 + at + len(lows[at:]) - 1, len(words) - 1)].stop
        yield Change(user, "relationship", "broke up", False, start, stop, "{subject} broke up with their partner")


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(lexicon()["lifecycle"]["words"][name])


@cache
def _words_list(name: str) -> tuple[str, ...]:
    return tuple(lexicon()["lifecycle"]["words"][name])
