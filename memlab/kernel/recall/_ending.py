"""The status that a pack gives memories at an instant.

``lab.upkeep`` writes these statuses. A recall also computes them itself, so that an expired memory is neither returned
nor reinforced between two passes of upkeep.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arrays import NO_ROWS, Flags, Ints, Rows, Values
from memlab.kernel.language import Policy, Value, possible_results
from memlab.kernel.policies import Pack
from memlab.kernel.recall._moment import Moment
from memlab.kernel.schema import RECALLABLE, STATUSES
from memlab.kernel.state import State

# bool[statuses]: whether memories of the status at that index take part in recall.
_IN_RECALL = np.array([word in RECALLABLE for word in STATUSES])
_NO_CODE = -3
"""The code of a null result. It differs from every status and from -1, the code of null in columns."""

# The results of a policy that is always false; statuses as Python strings, for policies that compare them.
_NEVER = frozenset({("const", False)})
_WORDS: Values = np.array(STATUSES, dtype=object)


def in_recall(status: Ints) -> Flags:
    """Return a mask of the statuses that take part in recall.

    Statuses are indices into ``STATUSES``.
    """
    return np.asarray(_IN_RECALL[status])


def read_statuses(state: State, rows: Rows) -> Ints:
    """Return the status of each row as an index into ``STATUSES``.

    The state's own codes may differ, because a snapshot of an older version may order the words otherwise.
    """
    status = state.names["status"]
    return np.array([STATUSES.index(word) for word in status.vocabulary])[status.codes[rows]]


class Ending(NamedTuple):
    """The memories that a pack's ``promote`` and ``forget`` could remove from recall.

    The memories are derived from the texts of the policies.
    """

    promotes: Literal["none", "mortal", "any"]
    """Which memories ``promote`` could remove from recall; "mortal": only those with a time to live."""
    forgets: bool

    def possible(self, state: State) -> bool:
        """Return whether the policies could remove any memory of ``state`` from recall."""
        if self.forgets or self.promotes == "any":
            return True
        return self.promotes == "mortal" and state.numbers["ttl_days"].has_values


def analyse_ending(pack: Pack) -> Ending:
    """Return which memories ``promote`` and ``forget`` could remove from recall.

    ``promote`` and ``forget`` are slots of the pack.
    """
    promote, forgets = pack.policies["promote"], _may_forget(pack.policies["forget"])
    if _stays(possible_results(promote, {})):
        return Ending("none", forgets)
    mortal = _stays(possible_results(promote, {"ttl-days": None}))
    return Ending("mortal" if mortal else "any", forgets)


def is_expired(moment: Moment) -> Flags:
    """Return which memories ``promote`` or ``forget`` removes from recall.

    Only memories whose stored status takes part in recall count. The possible results of a policy
    are derived from its text. Most packs can only remove memories with a time to live, so this
    takes 7 microseconds if no memory has one.
    """
    over = np.zeros(len(moment), dtype=np.bool_)
    promoting, forgets = _to_promote(moment), _may_forget(moment.pack.policies["forget"])
    if not len(promoting) and not forgets:
        return over
    before = read_statuses(moment.state, moment.rows)
    after = before.copy()
    if len(promoting):
        part = moment
        if len(promoting) < len(moment):
            part = Moment(moment.state, moment.pack, moment.rows[promoting], moment.now)
        after[promoting] = apply_promote(part, before[promoting])[1]
        over = ~_IN_RECALL[after]
    if forgets:
        standing = moment
        if (after != before).any():
            standing = Moment(moment.state, moment.pack, moment.rows, moment.now)
            standing.give(status=_WORDS[after])
        gone, nulls = standing.ask(moment.pack.policies["forget"])
        over = over | (gone if nulls is None else gone & ~nulls)
    return np.asarray(over & _IN_RECALL[before])


# Without the cache, every recall would evaluate the policy once for each status.
@lru_cache(maxsize=256)
def _may_forget(policy: Policy) -> bool:
    """Return whether a ``forget`` policy could remove a recallable memory."""
    if set(policy.inputs) <= {"status"} and not policy.derived:
        return any(policy.row({"status": word} if policy.inputs else {}) for word in RECALLABLE)
    return possible_results(policy, {}) != _NEVER


def _to_promote(moment: Moment) -> Rows:
    """Return the positions of memories whose status ``promote`` might change."""
    promotes = analyse_ending(moment.pack).promotes
    if promotes == "any":
        return np.arange(len(moment))
    if promotes == "none" or not moment.state.numbers["ttl_days"].has_values:
        return NO_ROWS
    return np.flatnonzero(~np.isnan(moment.number("ttl_days")))


def _stays(results: frozenset[tuple[str, Value]] | None) -> bool:
    """Return whether none of a policy's possible results removes a memory from recall; False if unknown.

    A null result keeps the status. ``results`` is None if the possible results are unknown.
    """
    return results is not None and all(
        result == ("input", "status") or (result[0] == "const" and result[1] in (None, *RECALLABLE))
        for result in results
    )


def apply_promote(moment: Moment, before: Ints) -> tuple[Moment, Ints]:
    """Apply ``promote`` until statuses settle; return the moment and the statuses.

    Statuses are indices into ``STATUSES``.

    Raises
    ------
    InputError
        If the statuses have not settled after one evaluation for each status.
    """
    policy, after = moment.pack.policies["promote"], before
    for _ in STATUSES:
        codes, words = encode_words(*moment.ask(policy))
        indices = np.array([*map(_status_index, words), _NO_CODE])
        new = np.where((codes >= 0) & _IN_RECALL[after], indices[codes], after)
        moved = new != after
        if not moved.any():
            return moment, after
        # Evaluate again, because other features may depend on the status.
        after, moment = new, Moment(moment.state, moment.pack, moment.rows, moment.now)
        moment.give(status=_WORDS[after])
    index = int(np.argmax(moved))
    raise InputError(
        f"The promote policy of {moment.pack.name} keeps changing the status of memory "
        f'{moment.rows[index] + 1}; the last was "{STATUSES[after[index]]}". Change the '
        "policy so that it stops at some status."
    )


def _status_index(status: str) -> int:
    """Return the index of a status in ``STATUSES``. Raises UnknownName for another word."""
    if status not in STATUSES:
        raise UnknownName("status", status, STATUSES)
    return STATUSES.index(status)


def encode_words(values: Values, nulls: Flags | None) -> tuple[Ints, tuple[str, ...]]:
    """Encode strings as indices into their distinct values, or -1 for null.

    There are few distinct words, and each costs one comparison of the whole column.
    """
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
