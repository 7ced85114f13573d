"""Compute the features of pairs of a new and an old memory.

``new/...`` and ``old/...`` are features of the two memories. ``pair/...`` is computed here, for all
pairs of one decision at once. Texts are read only if a policy uses features of their content.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

import numpy as np

from memlab.kernel.base.arrays import Flags, Floats, Ints, Values
from memlab.kernel.base.clock import DAY
from memlab.kernel.english import restated
from memlab.kernel.language import Policy
from memlab.kernel.policies import FEATURES
from memlab.kernel.schema import is_single_valued
from memlab.subjects.linking.candidates import USER, RowView
from memlab.subjects.reading.claims import Statement
from memlab.subjects.reading.comparison import NOTHING, Verdict, compare, repeats

_ONE_STATEMENT = 16
"""The maximum words of a text that counts as one statement."""

_SEVERAL = re.compile(
    r"(?i)\?|(?:[.!;]\s|\n)\s*\S|,\s(?:and|but)\s|\s(?:and|but)\s(?:i|my|we|our|s?he|they)\b"
)
"""A pattern of a question and of a second sentence or clause, which another text may not be about."""

Column = Values | tuple[Values, Flags]


class Pairs:
    """Pairs of new and old memories, with their features.

    ``first[i]`` is the position of a pair's new memory in ``new``, and ``second[i]`` that of its
    old memory in ``old``. ``rank`` is the rank of the old memory among the neighbours of the new
    memory, from 1.
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

    def take(self, selected: Ints) -> Pairs:
        """Return the pairs at these indices."""
        return Pairs(
            self.new,
            self.old,
            self.first[selected],
            self.second[selected],
            self.similarity[selected],
            self.closeness[selected],
            self.rank[selected],
        )

    def ask(self, policy: Policy) -> Values:
        """Return a policy's result for each pair, with None for null."""
        inputs = {
            name: self._policy_input(policy, name) for name in policy.inputs or ("pair/rank",)
        }
        values, nulls = policy.arrays(inputs)
        result = np.asarray(values, dtype=object)
        if nulls is not None:
            result[nulls] = None
        return result

    def __getitem__(self, name: str) -> Values:
        """Return a feature of all pairs, with NaN or None for unknown values."""
        column = self._column(name)
        if not isinstance(column, tuple):
            return column
        result = column[0].astype(object)
        result[column[1]] = None
        return result

    def _policy_input(self, policy: Policy, name: str) -> Column:
        """Return the values of a policy's input for each pair."""
        test = policy.derived.get(name)
        if test is None:
            return self._column(name)
        values, nulls = test.array({item: self[item] for item in test.sets})
        return values if nulls is None else (values, nulls)

    def _column(self, name: str) -> Column:
        """Return the values of a feature, and a mask of nulls if the feature can be null."""
        side, _, feature = name.partition("/")
        if side == "pair":
            return _COMPUTE[name](self)
        values = self.new[feature][self.first] if side == "new" else self.old[feature][self.second]
        return (
            (values, np.isnan(values))
            if feature in FEATURES and FEATURES[feature].nullable
            else values
        )

    # Comparisons by fields

    def same(self, column: str, *, none: bool = False) -> Flags:
        """Return whether the two memories of each pair have the same value in a column.

        With `none`, two missing values are equal too; otherwise they are not.
        """
        new, old = self.new.word(column)[self.first], self.old.word(column)[self.second]
        equal = np.asarray(new == old, dtype=np.bool_)
        return equal if none else np.asarray(equal & (new != None), dtype=np.bool_)  # noqa: E711  by element

    def _known_same(self, name: str) -> tuple[Flags, Flags]:
        """Return a mask of pairs that agree in a field of their facts, ignoring case, and a mask of pairs with a null."""
        new, old = (
            _fold_fact_field(self.new, name)[self.first],
            _fold_fact_field(self.old, name)[self.second],
        )
        unknown = np.asarray((new == None) | (old == None), dtype=np.bool_)  # noqa: E711  by element
        return np.asarray(new == old, dtype=np.bool_) & ~unknown, unknown

    def _single_valued(self) -> tuple[Flags, Flags]:
        """Return a mask of pairs whose new fact has a single-valued predicate, and a mask of pairs without a predicate."""
        predicates = self.new.word("predicate")
        declared = str(self.new.pack.settings["single-valued"])
        is_single = np.array(
            [
                predicate is not None and is_single_valued(predicate, declared)
                for predicate in predicates.tolist()
            ],
            dtype=np.bool_,
        )
        unknown = np.asarray(predicates == None, dtype=np.bool_)  # noqa: E711  by element
        return is_single[self.first], unknown[self.first]

    def _days_apart(self) -> Floats:
        """Return the days from the creation of the old memory to that of the new memory; negative if the old is later."""
        # the difference of two extreme instants does not fit 64 bits
        new = self.new.number("created").astype(np.float64)
        old = self.old.number("created").astype(np.float64)
        return np.asarray((new[self.first] - old[self.second]) / DAY)

    # Comparisons by text

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdict on each pair: the effect of the later text on the earlier text.

        If both memories were extracted and one is a fact, texts are not compared. Facts end facts
        by their fields (see ``memlab.subjects.facts.lifecycle``), and a quotation ends no memory.
        """
        new, old = self.new.readings[self.first], self.old.readings[self.second]
        speakers = zip(self.new.speakers[self.first], self.old.speakers[self.second], strict=True)
        return [
            NOTHING
            if is_separate
            else compare(
                later,
                earlier,
                same_speaker=speaker == other_speaker,
                user_speaks=speaker == USER and other_speaker == USER,
            )
            for later, earlier, (speaker, other_speaker), is_separate in zip(
                new, old, speakers, self._read_apart(), strict=True
            )
        ]

    def _read_apart(self) -> list[bool]:
        """Return whether both memories of a pair were extracted and at least one is a fact."""
        extracted = self.new.extracted[self.first] & self.old.extracted[self.second]
        if not extracted.any():
            return [False] * len(self)
        new, old = self.new.word("predicate")[self.first], self.old.word("predicate")[self.second]
        facts = (new != None) | (old != None)  # noqa: E711  by element
        result: list[bool] = (extracted & facts.astype(np.bool_)).tolist()
        return result

    def of_verdicts(self, name: str) -> Flags:
        """Return the attribute ``name`` of each pair's verdict as a mask."""
        return np.array([getattr(verdict, name) for verdict in self.verdicts], dtype=np.bool_)

    @cached_property
    def on_line(self) -> Flags:
        """Whether both memories of each pair give a value to one single-valued property."""
        _, unknown_value = self._known_same("value")
        same = self._known_same("subject"), self._known_same("predicate"), self._single_valued()
        flags = [values & ~unknown for values, unknown in same]
        return np.asarray(np.logical_and.reduce([*flags, ~unknown_value]))

    @cached_property
    def structured(self) -> Flags:
        """Whether the facts of each pair give one single-valued property different values."""
        return np.asarray(self.on_line & ~self._known_same("value")[0])

    @cached_property
    def same_fact(self) -> Flags:
        """Whether both facts of each pair give one property of one subject the same value."""
        same = [self._known_same(name) for name in ("subject", "predicate", "value")]
        return np.asarray(np.logical_and.reduce([values & ~unknown for values, unknown in same]))

    @cached_property
    def certainty(self) -> Floats:
        """The certainty that the later memory of each pair ends or changes the earlier one."""
        certainties = np.array([verdict.certainty for verdict in self.verdicts], dtype=np.float64)
        return np.where(self.structured, 1.0, certainties)

    def lose_one_statement(self, keeps_old: Flags) -> Flags:
        """Return whether the memory that each pair loses is a value, a single statement or an order.

        `keeps_old` is whether the older memory stays.
        """
        lost = np.where(keeps_old, self.new.readings[self.first], self.old.readings[self.second])
        single = [
            (text.single or not text.parts) and not _SEVERAL.search(text.text) for text in lost
        ]
        return self.structured | np.array(single, dtype=np.bool_)

    @cached_property
    def repeats(self) -> Flags:
        """Whether the later memory of each pair adds nothing to the earlier memory."""
        new, old = self.new.readings[self.first], self.old.readings[self.second]
        same = self.new.speakers[self.first] == self.old.speakers[self.second]
        repeated = [
            repeats(*pair, same_speaker=bool(same_speaker))
            for *pair, same_speaker in zip(new, old, same, strict=True)
        ]
        return np.asarray(np.array(repeated, dtype=np.bool_) | self.same_fact)

    @cached_property
    def opposed(self) -> Flags:
        """Whether the memories of each pair contradict each other, by text or by value."""
        return np.asarray(self.of_verdicts("denies") | self.structured)

    @cached_property
    def restates(self) -> Floats:
        """The similarity of a statement that the later memory of a pair changes, or else 0."""
        language = str(self.new.pack.settings["language"])
        later = self.new.number("created")[self.first] >= self.old.number("created")[self.second]
        positions = np.flatnonzero(later & self.same("speaker", none=True))
        result = np.zeros(len(self))
        pairs = zip(
            self.new.statements[self.first[positions]],
            self.old.statements[self.second[positions]],
            strict=True,
        )
        for position, (new, old) in zip(positions.tolist(), pairs, strict=True):
            result[position] = _restatement_likelihood(new, old, language)
        return result

    def of_statements(self, ask: Callable[[Statement, Statement], float | bool]) -> Values:
        """Return the value of the function ``ask`` for the two statements of each pair."""
        pairs = zip(self.new.statements[self.first], self.old.statements[self.second], strict=True)
        return np.array([ask(new, old) for new, old in pairs])

    @cached_property
    def same_numbers(self) -> Flags:
        """Whether both texts of each pair contain the same numbers, weekdays and months."""
        numbers: dict[frozenset[str], int] = {}
        new, old = (
            np.array(
                [
                    numbers.setdefault(statement.numbers, len(numbers))
                    for statement in side.statements
                ],
                dtype=np.int64,
            )
            for side in (self.new, self.old)
        )
        return np.asarray(new[self.first] == old[self.second])


def _restatement_likelihood(new: Statement, old: Statement, language: str) -> float:
    """Return the likelihood that a new text restates part of an old text with a change.

    Two texts of one statement each are compared only if one has all words of the other. If only
    their numbers differ, the result is 1.
    """
    if max(len(new.words), len(old.words)) <= _ONE_STATEMENT:
        new_words, old_words = new.content - new.numbers, old.content - old.numbers
        if new_words == old_words:
            return float(new.numbers != old.numbers)
        if not (new_words <= old_words or old_words <= new_words):
            return 0.0
    return max(
        (new_words.likeness for new_words in restated(old.text, new.text, language)), default=0.0
    )


def _fold_fact_field(side: RowView, name: str) -> Values:
    """Return the subject, predicate or value of each fact, in lower case.

    The object of a fact counts as its value.
    """
    words = side.word(name)
    if name == "value":
        objects = side.word("object")
        words = np.where(words == None, objects, words)  # noqa: E711  by element
    folded = np.empty(len(words), dtype=object)
    folded[:] = [None if word is None else word.casefold() for word in words.tolist()]
    return folded


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
"""The function that computes each ``pair/...`` input of a policy."""
