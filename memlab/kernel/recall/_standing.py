"""What time has made of memories: the status that a pack gives them at an instant, whoever has asked before.

Upkeep writes such statuses down. A recall asks for them itself, so that what is over, or has nothing left, is not shown
and not revived for want of a pass.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.language import Policy, Value, possible_results
from memlab.kernel.policies import Pack
from memlab.kernel.recall._moment import Moment
from memlab.kernel.schema import RECALLABLE, STATUSES
from memlab.kernel.state import State

__all__ = ["Ending", "coded", "ending_of", "in_recall", "is_over", "promoted", "status_of"]

Rows = NDArray[np.int64]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]

_IN_RECALL = np.array([word in RECALLABLE for word in STATUSES])
_NO_CODE = -3
"""Of no word, and not of null either."""
_NEVER = frozenset({("const", False)})
_WORDS: NDArray[Any] = np.array(STATUSES, dtype=object)


def in_recall(status: Codes) -> Flags:
    """Which of these statuses, places in ``STATUSES``, take part in recall."""
    return np.asarray(_IN_RECALL[status])


def status_of(state: State, rows: Rows) -> Codes:
    """The status of each row as its place in ``STATUSES``; a snapshot of an older version may count otherwise."""
    status = state.names["status"]
    return np.array([STATUSES.index(word) for word in status.vocabulary])[status.codes[rows]]


class Ending(NamedTuple):
    """Which memories a pack's ``promote`` and ``forget`` could take out of recall, known from their texts."""

    promotes: Literal["none", "mortal", "any"]
    """"mortal": those that have a time to live."""
    forgets: bool

    def possible(self, state: State) -> bool:
        """Whether they could take any memory of a state."""
        if self.forgets or self.promotes == "any":
            return True
        return self.promotes == "mortal" and state.numbers["ttl_days"].held


def ending_of(pack: Pack) -> Ending:
    """Which memories this pack could take out of recall."""
    promote, forgets = pack.policies["promote"], _may_forget(pack.policies["forget"])
    if _stays(possible_results(promote, {})):
        return Ending("none", forgets)
    mortal = _stays(possible_results(promote, {"ttl-days": None}))
    return Ending("mortal" if mortal else "any", forgets)


def is_over(moment: Moment) -> Flags:
    """Which of these memories take part in recall as it is written down, and no more by ``promote`` and ``forget``.

    What a policy can give is known from its text, so most packs ask only of what has a time to live: 7 microseconds
    where nothing has.
    """
    over = np.zeros(len(moment), dtype=np.bool_)
    promoting, forgets = _to_promote(moment), _may_forget(moment.pack.policies["forget"])
    if not len(promoting) and not forgets:
        return over
    before = status_of(moment.state, moment.rows)
    after = before.copy()
    if len(promoting):
        part = moment
        if len(promoting) < len(moment):
            part = Moment(moment.state, moment.pack, moment.rows[promoting], moment.now)
        after[promoting] = promoted(part, before[promoting])[1]
        over = ~_IN_RECALL[after]
    if forgets:
        standing = moment
        if (after != before).any():
            standing = Moment(moment.state, moment.pack, moment.rows, moment.now)
            standing.give(status=_WORDS[after])
        gone, nulls = standing.ask(moment.pack.policies["forget"])
        over = over | (gone if nulls is None else gone & ~nulls)
    return np.asarray(over & _IN_RECALL[before])


@lru_cache(maxsize=256)
def _may_forget(policy: Policy) -> bool:
    """Whether a ``forget`` policy could forget what takes part in recall."""
    if set(policy.inputs) <= {"status"} and not policy.derived:
        return any(policy.row({"status": word} if policy.inputs else {}) for word in RECALLABLE)
    return possible_results(policy, {}) != _NEVER


def _to_promote(moment: Moment) -> Rows:
    """The places of those that ``promote`` could take out of recall."""
    promotes = ending_of(moment.pack).promotes
    if promotes == "any":
        return np.arange(len(moment))
    if promotes == "none" or not moment.state.numbers["ttl_days"].held:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(~np.isnan(moment.number("ttl_days")))


def _stays(results: frozenset[tuple[str, Value]] | None) -> bool:
    """Whether a policy with these results takes nothing out of recall; null leaves a status as it is."""
    return results is not None and all(
        found == ("input", "status") or (found[0] == "const" and found[1] in (None, *RECALLABLE)) for found in results
    )


def promoted(moment: Moment, before: Codes) -> tuple[Moment, Codes]:
    """The status that ``promote`` gives and keeps giving, and a moment that knows it.

    InputError if it never settles on one.
    """
    policy, after = moment.pack.policies["promote"], before
    for _ in STATUSES:
        codes, words = coded(*moment.ask(policy))
        places = np.array([*map(_place, words), _NO_CODE])
        new = np.where((codes >= 0) & _IN_RECALL[after], places[codes], after)
        moved = new != after
        if not moved.any():
            return moment, after
        # again, since other features may follow from the status
        after, moment = new, Moment(moment.state, moment.pack, moment.rows, moment.now)
        moment.give(status=_WORDS[after])
    place = int(np.argmax(moved))
    raise InputError(
        f"The promote policy of {moment.pack.name} never settles on a status of memory {moment.rows[place] + 1}, "
        f'the last was "{STATUSES[after[place]]}": of a status that it gave it has to give the same again.'
    )


def _place(status: str) -> int:
    if status not in STATUSES:
        raise UnknownName("status", status, STATUSES)
    return STATUSES.index(status)


def coded(values: NDArray[Any], nulls: Flags | None) -> tuple[Codes, tuple[str, ...]]:
    """Strings as codes of the words that occur, -1 for null. There are few words: each costs one comparison of all."""
    codes = np.full(len(values), -1)
    words: list[str] = []
    left = np.ones(len(values), dtype=np.bool_) if nulls is None else ~nulls
    if values.dtype == object:
        left &= values != None  # noqa: E711  elementwise
    while left.any():
        word = str(values[int(np.argmax(left))])
        same = left & (values == word)
        codes[same] = len(words)
        words.append(word)
        left &= ~same
    return codes, tuple(words)
