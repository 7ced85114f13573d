"""Read changes of life that a clause states: something ended, began or changed.

Examples are "I gave up Spanish", "we got engaged", "I started a new job as a teacher", "my dog
died" and "I no longer work at Acme". A change is a fact whose predicate names the change. When the
fact is stored, ``memlab.subjects.facts.lifecycle`` decides which older facts it ends. The verbs are
in ``english.toml`` under ``lifecycle``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any

from memlab.kernel.english import lexicon, number_of, table, vocabulary
from memlab.subjects.extraction.clause import ARTICLES, SURE, USER, ClauseWords, Fact

# The maximum age that a fact may state, and words around verbs of change.
_OLDEST = 120
_STATE_VERBS = ("got", "am", "was", "are", "became", "were", "getting", "gotten", "been", "is")
_AUXILIARIES = frozenset(["have", "had", "ended", "up", "has"])
_PARTICIPLES = ("become", "gone")
"""Verbs of becoming that state a change only after "have": "I have become"."""

# Possessives, units after a number that is no age, states that need no verb, and predicates of states with a person.
_OWNERS = ("my", "our")
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


def read_changes(clause: ClauseWords, position: int) -> Iterator[Fact]:
    """Yield the life changes that a clause states, in their order in the clause.

    Parameters
    ----------
    clause
        The words of the clause.
    position
        The index of the first word after opening phrases.
    """
    if position >= len(clause):
        return
    low = clause.low(position)
    if (
        low in _OWNERS
        or _find_loss(clause, position + 1) is not None
        or _find_loss(clause, position + 2) is not None
    ):
        yield from _read_loss(clause, position)
    if low not in ("i", "we"):
        return
    start, index = clause.words[position].start, _skip_helpers(clause, position + 1)
    facts = list(_read_no_longer(clause, position + 1, start))
    for reader in (
        _read_post,
        _read_age,
        _read_state,
        _read_became,
        _read_ended,
        _read_present_role,
    ):
        facts = facts or list(reader(clause, index, start))
    yield from facts


def _build_change(
    start: int,
    stop: int,
    predicate: str,
    value: str,
    *,
    subject: str = USER,
    entity: bool = False,
    text: str | None = None,
) -> Fact:
    """Return the fact that states a change in a person's life."""
    return Fact(subject, predicate, value, entity, "personal", SURE, start, stop, text)


def _skip_helpers(clause: ClauseWords, index: int) -> int:
    """Return the index after adverbs and forms of "have", as in "I have just sold"."""
    while clause.low(index) in _AUXILIARIES or clause.low(index) in table("extraction", "adverbs"):
        if clause.low(index) in ("have", "had") and clause.low(index + 1) in (*ARTICLES, "my"):
            return index
        index += 1
    return index


def _read_no_longer(clause: ClauseWords, index: int, start: int) -> Iterator[Fact]:
    """Yield a "no-longer-" fact about something that ended, as in "I no longer work at Acme"."""
    # The negation is removed, so that the other words are the statement that no longer holds.
    lows, size = clause.lows, len(clause)
    tail_length = next(
        (n for n in (2, 1) if " ".join(lows[-n:]) in _lifecycle_words("anymore") and "not" in lows),
        0,
    )
    tail_length = 0 if " ".join(lows[-2:]) == "these days" else tail_length
    has_no_longer = any(
        lows[position : position + 2] == ["no", "longer"] for position in range(index, size - 1)
    )
    if not tail_length and not has_no_longer:
        return
    dropped = {"do", "no", "longer"} if has_no_longer else {"do", "not"}
    rest = ClauseWords(
        clause.text,
        [word for word in clause.words[: size - tail_length] if word.low not in dropped],
    )
    stop = clause.words[-1].stop
    verb = rest.find_verb(index, own=True)
    if verb is not None:
        _, predicate, sort, _ = lexicon()["extraction"]["verbs"][verb[0]]
        value = rest.read_value(verb[1], sort)
        if value is not None:
            yield _build_change(start, stop, f"no-longer-{predicate}", value.text)
        return
    copula = next(
        (position for position in rest.skip_adverbs(index) if rest.low(position) == "am"), None
    )
    value = None if copula is None else rest.read_value(copula + 1, "is")
    if value is not None:
        yield _build_change(start, stop, "no-longer-is", value.text)


def _read_post(clause: ClauseWords, index: int, start: int) -> Iterator[Fact]:
    """Yield the role and the employer of a new post, as in "I started a new job as a teacher at Harrow"."""
    preposition = next(
        (
            preposition
            for preposition in ("as", "at")
            if clause.measure_phrase(index, _lifecycle_table("posts")[preposition])
        ),
        None,
    )
    if preposition is None:
        return
    value = clause.read_value(
        index + clause.measure_phrase(index, _lifecycle_table("posts")[preposition]),
        "job" if preposition == "as" else "work",
    )
    if value is None:
        return
    is_role = preposition == "as"
    yield _build_change(
        start, value.stop, "works-as" if is_role else "works-at", value.text, entity=not is_role
    )
    after = clause.index_after(index, value.stop)
    if is_role and clause.low(after) in ("at", "for"):
        firm = clause.read_value(after + 1, "work")
        if firm is not None and clause.is_capital(after + 1):
            yield _build_change(start, firm.stop, "works-at", firm.text, entity=True)
    if not is_role and clause.low(after) == "as":
        role = clause.read_value(after + 1, "job")
        if role is not None:
            yield _build_change(start, role.stop, "works-as", role.text)


def _read_age(clause: ClauseWords, index: int, start: int) -> Iterator[Fact]:
    """Yield a stated age as a fact, as in "I turned 35" or "I'm 35 now"."""
    if index + 1 >= len(clause) or clause.low(index) not in ("turned", "am"):
        return
    number_index = clause.skip_adverbs(index + 1)[-1]
    number, following = number_of(clause.low(number_index)), clause.low(number_index + 1)
    is_age = clause.low(index) == "turned" or following in ("now", "today", "already")
    if (
        is_age
        and number is not None
        and number <= _OLDEST
        and following not in vocabulary("lifecycle", "units")
    ):
        yield _build_change(start, clause.words[number_index].stop, "age", clause.low(number_index))


def _read_state(clause: ClauseWords, index: int, start: int) -> Iterator[Fact]:
    """Yield a new state, as in "We got engaged", "we broke up" or "I retired"."""
    first = index + (clause.low(index) in _STATE_VERBS)
    first = next(iter(clause.skip_adverbs(first)[-1:]), first)
    state = clause.find_longest(first, _list_plain_states())
    if state is None:
        return
    last = first + len(state.split())
    following = clause.low(last)
    if following in ("from", "with", "to") and last + 1 < len(clause):
        person = clause.read_value(last + 1, "person")
        predicate = _WITH.get(f"{state} {following}")
        if predicate is not None and person is not None:
            yield _build_change(
                start, person.stop, predicate, person.text, entity=clause.is_capital(last + 1)
            )
            return
    if first == index and state not in _ALONE:
        return
    stop = clause.words[last - 1].stop
    if state in ("broke up", "split up"):
        yield _build_change(
            start, stop, "relationship", state, text=f"{{subject}} {state} with their partner"
        )
    else:
        yield _build_change(start, stop, "has" if state == "graduated" else "is", state)


def _read_became(clause: ClauseWords, index: int, start: int) -> Iterator[Fact]:
    """Yield a new role, state or choice, as in "I became a chef" or "I switched to tea"."""
    verb = clause.find_longest(index, _lifecycle_table("beginnings"))
    if verb is None or (verb in _PARTICIPLES and clause.lows[index - 1] in ("i", "we")):
        return  # "I become a teacher when I finish" is no change yet; "I have become" is one
    after = index + len(verb.split())
    predicate = _lifecycle_table("beginnings")[verb]
    value = clause.read_value(after, "replacement" if predicate == "switched-to" else "is")
    if value is None:
        return
    is_profession = clause.low(after) in ("a", "an") and _names_profession(value.text)
    if predicate == "switched-to" or is_profession or value.text.lower() in _list_states():
        yield _build_change(start, value.stop, predicate, value.text)


def _read_ended(clause: ClauseWords, index: int, start: int) -> Iterator[Fact]:
    """Yield an ending, and what replaces it, as facts, as in "I gave up Spanish" or "I switched from Vim to Emacs"."""
    verb = clause.find_longest(index, _lifecycle_table("endings"))
    if verb is None:
        return
    predicate, sort = _lifecycle_table("endings")[verb]
    after = index + len(verb.split())
    value = clause.read_value(after, sort)
    if value is None or not _names_what_ended(
        clause.low(after), predicate, value.text, clause.is_capital(after)
    ):
        return
    yield _build_change(start, value.stop, predicate, value.text)
    following = clause.index_after(after, value.stop)
    replacement = (
        clause.read_value(following + 1, "replacement") if clause.low(following) == "to" else None
    )
    if predicate == "switched-from" and replacement is not None:
        yield _build_change(start, replacement.stop, "switched-to", replacement.text)


def _names_what_ended(first: str, predicate: str, value: str, has_name: bool) -> bool:
    """Return whether the words after "lost" or a similar verb name the thing that ended.

    "Lost my job" names it, "lost to them" does not.
    """
    has_owner = first in _OWNERS or first in ARTICLES
    words = {*value.lower().split()}
    if predicate in ("lost", "dropped", "finished", "deleted", "cancelled", "abandoned"):
        vocabulary = table("extraction", "belongings") | table("extraction", "relations")
        is_specific = has_owner and bool(words & (vocabulary | {"job", "work"}))
        return is_specific or (predicate == "dropped" and has_name)
    if predicate == "left":
        classes = _lifecycle_table("classes")
        people = {
            *classes["work"]["words"],
            *classes["partner"]["words"],
            *classes["study"]["words"],
        }
        return has_name or (first == "my" and bool(words & people))
    if predicate in ("quit", "stopped", "gave-up"):
        return first not in ("on", "at", "by", "for", "and") and value.lower() not in (
            "hope",
            "trying",
            "early",
        )
    return has_owner or has_name or predicate != "sold"


def _read_present_role(clause: ClauseWords, index: int, start: int) -> Iterator[Fact]:
    """Yield a present occupation, as in "I'm a teacher now" or "I'm now an engineer at Acme"."""
    if clause.low(index) != "am":
        return
    article = next(
        (position for position in (index + 1, index + 2) if clause.low(position) in ("a", "an")),
        None,
    )
    if article is None or not (clause.low(index + 1) == "now" or "now" in clause.lows[index:][-3:]):
        return
    value = clause.read_value(article, "is")
    if value is not None and _names_profession(value.text):
        yield _build_change(start, value.stop, "is-now", value.text)


def _find_loss(clause: ClauseWords, index: int) -> str | None:
    """Return the longest phrase of loss, such as "died", at a word or after the adverbs there, or None."""
    while clause.low(index) in table("extraction", "adverbs"):
        index += 1
    return clause.find_longest(index, _lifecycle_words("gone"))


def _read_loss(clause: ClauseWords, position: int) -> Iterator[Fact]:
    """Yield a loss, as in "My dog died", "Rex died" or "our cat ran away", or a separation from a partner."""
    start = clause.words[position].start
    has_owner = clause.low(position) in _OWNERS
    first = position + has_owner
    for verb in range(first + 1, first + 4):
        gone = _find_loss(clause, verb)
        if gone is None:
            continue
        is_named = all(map(clause.is_capital, range(first, verb)))
        if not has_owner and (
            not is_named or clause.low(first) in vocabulary("lifecycle", "pronouns")
        ):
            return
        last = verb
        while clause.low(last) in table("extraction", "adverbs"):
            last += 1
        stop = clause.words[last + len(gone.split()) - 1].stop
        possession, gone = clause.original_text(first, verb), gone.removeprefix("has ")
        if has_owner:
            yield _build_change(
                start,
                stop,
                "lost",
                f"their {possession}",
                text=f"{{possessive}} {possession} {gone}",
            )
        else:
            yield _build_change(
                start, stop, "is", "gone", subject=possession, text=f"{possession} {gone}"
            )
        return
    if has_owner and clause.low(position + 1) in _lifecycle_table("classes")["partner"]["words"]:
        yield from _read_separation(clause, position, start)


def _read_separation(clause: ClauseWords, position: int, start: int) -> Iterator[Fact]:
    """Yield a separation, as in "My girlfriend left me".

    "My girlfriend and I broke up" is read elsewhere, because "I broke up" is a separate clause.
    """
    lows = clause.lows[position + 2 : position + 5]
    index = int(bool(lows) and clause.is_capital(position + 2))
    if lows[index : index + 2] in (["left", "me"], ["dumped", "me"]) or lows[index : index + 4] == [
        "broke",
        "up",
        "with",
        "me",
    ]:
        stop = clause.words[min(position + 2 + index + len(lows[index:]) - 1, len(clause) - 1)].stop
        yield _build_change(
            start, stop, "relationship", "broke up", text="{subject} broke up with their partner"
        )


def _lifecycle_table(name: str) -> Any:
    """Return the table of this name from the lifecycle rules."""
    return lexicon()["lifecycle"][name]


def _names_profession(value: str) -> bool:
    """Return whether a value contains the name of a profession."""
    return not _lifecycle_words("professions").isdisjoint(value.lower().split())


@cache  # the tables of the language do not change
def _lifecycle_words(name: str) -> frozenset[str]:
    """Return a word list of the lifecycle rules as a set."""
    return frozenset(_lifecycle_table("words")[name])


@cache  # the tables of the language do not change
def _list_states() -> frozenset[str]:
    """Return the lasting states of persons that another state may end, such as "a vegan"."""
    return frozenset(chain.from_iterable(_lifecycle_table("states").values()))


@cache  # the tables of the language do not change
def _list_plain_states() -> frozenset[str]:
    """Return the lasting states that do not begin with "a" or "in a", such as "vegan", except "dating"."""
    return frozenset(
        state
        for state in _list_states()
        if not state.startswith(("a ", "in a ")) and state != "dating"
    )
