"""The features of pairs: a new memory, an old one, and what they have to do with each other.

``new/...`` and ``old/...`` are the features of the two memories; ``pair/...`` is computed here, by column over all
pairs of one decision. Texts are read only where a policy asks what they say.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.base.clock import DAY
from memlab.kernel.english import restated
from memlab.kernel.language import Policy
from memlab.kernel.policies import FEATURES
from memlab.kernel.schema import is_single_valued
from memlab.subjects.linking.candidates import USER, RowView
from memlab.subjects.reading.claims import Statement
from memlab.subjects.reading.comparison import NOTHING, Verdict, compare, repeats

__all__ = ["Pairs"]


_ONE_STATEMENT = 16
"""Words up to which a text is taken to be one statement."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Values = NDArray[Any]
Column = Values | tuple[Values, Flags]


class Pairs:
    """``len(pairs)`` pairs: ``first[i]`` is a place in the side ``new``, ``second[i]`` one in ``old``.

    ``similarity`` and ``closeness`` are theirs, ``rank`` the old one's place among the new one's neighbours, from 1.
    """

    def __init__(
        self,
        new: RowView,
        old: RowView,
        first: Ints,
        second: Ints,
        similarity: Floats,
        closeness: Floats,
        rank: Ints,
    ) -> None:
        self.new, self.old, self.first, self.second = new, old, first, second
        self.similarity, self.closeness, self.rank = similarity, closeness, rank

    def __len__(self) -> int:
        return len(self.first)

    def take(self, kept: Ints) -> Pairs:
        """Some of the pairs."""
        return Pairs(
            self.new,
            self.old,
            self.first[kept],
            self.second[kept],
            self.similarity[kept],
            self.closeness[kept],
            self.rank[kept],
        )

    def ask(self, policy: Policy) -> Values:
        """What a policy says of each pair; an object array with None where it says nothing."""
        inputs = {name: self._given(policy, name) for name in policy.inputs or ("pair/rank",)}
        values, nulls = policy.arrays(inputs)
        found = np.asarray(values, dtype=object)
        if nulls is not None:
            found[nulls] = None
        return found

    def __getitem__(self, name: str) -> Values:
        """One feature; where nothing is known, NaN or None."""
        column = self._column(name)
        if not isinstance(column, tuple):
            return column
        found = column[0].astype(object)
        found[column[1]] = None
        return found

    def _given(self, policy: Policy, name: str) -> Column:
        test = policy.derived.get(name)
        if test is None:
            return self._column(name)
        values, nulls = test.array({item: self[item] for item in test.sets})
        return values if nulls is None else (values, nulls)

    def _column(self, name: str) -> Column:
        side, _, feature = name.partition("/")
        if side == "pair":
            return _COMPUTE[name](self)
        values = self.new[feature][self.first] if side == "new" else self.old[feature][self.second]
        return (
            (values, np.isnan(values))
            if feature in FEATURES and FEATURES[feature].nullable
            else values
        )

    # -- what the two have in common --------------------------------------------------------------------------

    def same(self, column: str, *, none: bool = False) -> Flags:
        """Whether both have the same name in a column; ``none``: or both have none."""
        new, old = self.new.word(column)[self.first], self.old.word(column)[self.second]
        equal = np.asarray(new == old, dtype=np.bool_)
        return equal if none else np.asarray(equal & (new != None), dtype=np.bool_)  # noqa: E711  by element

    def _known_same(self, name: str) -> tuple[Flags, Flags]:
        """Whether both say the same of a fact, in any case of letters; null where one says nothing."""
        new, old = _of_fact(self.new, name)[self.first], _of_fact(self.old, name)[self.second]
        unknown = np.asarray((new == None) | (old == None), dtype=np.bool_)  # noqa: E711  by element
        return np.asarray(new == old, dtype=np.bool_) & ~unknown, unknown

    def _single_valued(self) -> tuple[Flags, Flags]:
        predicates = self.new.word("predicate")
        declared = str(self.new.pack.settings["single-valued"])
        single = np.array(
            [one is not None and is_single_valued(one, declared) for one in predicates.tolist()],
            dtype=np.bool_,
        )
        unknown = np.asarray(predicates == None, dtype=np.bool_)  # noqa: E711  by element
        return single[self.first], unknown[self.first]

    def _days_apart(self) -> Floats:
        # far from now the difference of two instants does not fit 64 bits
        new = self.new.number("created").astype(np.float64)
        old = self.old.number("created").astype(np.float64)
        return np.asarray((new[self.first] - old[self.second]) / DAY)

    # -- what the two say -------------------------------------------------------------------------------------

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """What the later statement of each pair does to the earlier one.

        Of two that were extracted, and of which one is a fact, the words decide nothing: facts end facts by subject,
        predicate and value (``memlab.subjects.facts.lifecycle``), and a quotation ends none.
        """
        new, old = self.new.readings[self.first], self.old.readings[self.second]
        speakers = zip(self.new.speakers[self.first], self.old.speakers[self.second], strict=True)
        return [
            NOTHING
            if apart
            else compare(
                later, earlier, same_speaker=one == other, user_speaks=one == USER and other == USER
            )
            for later, earlier, (one, other), apart in zip(
                new, old, speakers, self._read_apart(), strict=True
            )
        ]

    def _read_apart(self) -> list[bool]:
        """Which pairs are of what was extracted, with a fact among them."""
        extracted = self.new.extracted[self.first] & self.old.extracted[self.second]
        if not extracted.any():
            return [False] * len(self)
        new, old = self.new.word("predicate")[self.first], self.old.word("predicate")[self.second]
        facts = (new != None) | (old != None)  # noqa: E711  by element
        found: list[bool] = (extracted & facts.astype(np.bool_)).tolist()
        return found

    def of_verdicts(self, name: str) -> Flags:
        """Return a flag of each verdict."""
        return np.array([getattr(verdict, name) for verdict in self.verdicts], dtype=np.bool_)

    @cached_property
    def on_line(self) -> Flags:
        """Whether both give one property, which has one value at a time, a value: the same or another."""
        _, unknown_value = self._known_same("value")
        same = self._known_same("subject"), self._known_same("predicate"), self._single_valued()
        flags = [values & ~unknown for values, unknown in same]
        return np.asarray(np.logical_and.reduce([*flags, ~unknown_value]))

    @cached_property
    def structured(self) -> Flags:
        """Whether both give one property, which has one value at a time, different values."""
        return np.asarray(self.on_line & ~self._known_same("value")[0])

    @cached_property
    def same_fact(self) -> Flags:
        """Whether both give one property of one subject the same value."""
        same = [self._known_same(name) for name in ("subject", "predicate", "value")]
        return np.asarray(np.logical_and.reduce([values & ~unknown for values, unknown in same]))

    @cached_property
    def certainty(self) -> Floats:
        """How surely the later ends or changes the earlier: facts by their columns, texts by what they say."""
        found = np.array([one.certainty for one in self.verdicts], dtype=np.float64)
        return np.where(self.structured, 1.0, found)

    @cached_property
    def repeats(self) -> Flags:
        """Whether the later says nothing that the earlier does not say."""
        new, old = self.new.readings[self.first], self.old.readings[self.second]
        same = self.new.speakers[self.first] == self.old.speakers[self.second]
        told = [
            repeats(*pair, same_speaker=bool(one))
            for *pair, one in zip(new, old, same, strict=True)
        ]
        return np.asarray(np.array(told, dtype=np.bool_) | self.same_fact)

    @cached_property
    def opposed(self) -> Flags:
        """Whether one denies the other, or both give one property, which has one value at a time, different ones."""
        return np.asarray(self.of_verdicts("denies") | self.structured)

    @cached_property
    def restates(self) -> Floats:
        language = str(self.new.pack.settings["language"])
        later = self.new.number("created")[self.first] >= self.old.number("created")[self.second]
        places = np.flatnonzero(later & self.same("speaker", none=True))
        found = np.zeros(len(self))
        pairs = zip(
            self.new.statements[self.first[places]],
            self.old.statements[self.second[places]],
            strict=True,
        )
        for place, (new, old) in zip(places.tolist(), pairs, strict=True):
            found[place] = _restates(new, old, language)
        return found

    def of_statements(self, ask: Callable[[Statement, Statement], float | bool]) -> Values:
        """Return what a function says of the statements of each pair."""
        pairs = zip(self.new.statements[self.first], self.old.statements[self.second], strict=True)
        return np.array([ask(new, old) for new, old in pairs])

    @cached_property
    def same_numbers(self) -> Flags:
        numbers: dict[frozenset[str], int] = {}
        new, old = (
            np.array(
                [numbers.setdefault(one.numbers, len(numbers)) for one in side.statements],
                dtype=np.int64,
            )
            for side in (self.new, self.old)
        )
        return np.asarray(new[self.first] == old[self.second])


def _restates(new: Statement, old: Statement, language: str) -> float:
    """Of two texts of one statement each only those are read of which one holds all words of the other; what differs in
    numbers alone is seen without.
    """
    if max(len(new.words), len(old.words)) <= _ONE_STATEMENT:
        one, other = new.content - new.numbers, old.content - old.numbers
        if one == other:
            return float(new.numbers != old.numbers)
        if not (one <= other or other <= one):
            return 0.0
    return max((one.likeness for one in restated(old.text, new.text, language)), default=0.0)


def _of_fact(side: RowView, name: str) -> Values:
    """A fact's subject, predicate or value (the entity where it has one), without the case of its letters."""
    words = side.word(name)
    if name == "value":
        objects = side.word("object")
        words = np.where(words == None, objects, words)  # noqa: E711  by element
    found = np.empty(len(words), dtype=object)
    found[:] = [None if word is None else word.casefold() for word in words.tolist()]
    return found


_COMPUTE: dict[str, Callable[[Pairs], Column]] = {
    "pair/similarity": lambda pairs: pairs.similarity,
    "pair/closeness": lambda pairs: pairs.closeness,
    "pair/negates": lambda pairs: pairs.of_verdicts("denies"),
    "pair/update-words": lambda pairs: pairs.of_verdicts("changes"),
    "pair/certainty": lambda pairs: pairs.certainty,
    "pair/conflicts": lambda pairs: pairs.of_verdicts("conflicts"),
    "pair/updates": lambda pairs: pairs.of_verdicts("updates"),
    "pair/restates": lambda pairs: pairs.restates,
    "pair/overlap": lambda pairs: pairs.of_statements(Statement.overlap),
    "pair/same-numbers": lambda pairs: pairs.same_numbers,
    "pair/same-order": lambda pairs: pairs.of_statements(Statement.same_order),
    "pair/same-subject": lambda pairs: pairs._known_same("subject"),
    "pair/same-predicate": lambda pairs: pairs._known_same("predicate"),
    "pair/same-value": lambda pairs: pairs._known_same("value"),
    "pair/single-valued": Pairs._single_valued,
    "pair/same-session": lambda pairs: pairs.same("session") & pairs.same("project", none=True),
    "pair/same-speaker": lambda pairs: np.asarray(
        pairs.new.speakers[pairs.first] == pairs.old.speakers[pairs.second], dtype=np.bool_
    ),
    "pair/same-kind": lambda pairs: pairs.same("kind"),
    "pair/days-apart": Pairs._days_apart,
    "pair/rank": lambda pairs: pairs.rank.astype(np.float64),
}
"""Of each input that a slot of pairs declares."""
