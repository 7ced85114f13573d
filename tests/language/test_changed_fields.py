"""Which fields of an update can change, from the text alone: never fewer than do change when it is run."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.kernel.language import Input, Signature, changed_fields, compile_policy
from tests.language.programs import NUM, program

SLOT = Signature(
    "reinforce",
    [
        Input("a"),
        Input("b"),
        Input("word", "str", words=("one", "two", "three")),
        Input("flag", "bool"),
    ],
    "record",
    fields=("a", "b", "flag"),
)


def fields(body: str, **values: object) -> tuple[str, ...]:
    return changed_fields(compile_policy(f"(fn [a b word flag] {body})", SLOT), values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "word", "expected"),
    [
        ("(update)", "one", ()),
        ("(update :a a)", "one", ()),
        ("(update :a (* a 1))", "one", ()),
        ("(update :a (+ a 0))", "one", ("a",)),  # which of -0.0 makes 0.0
        ("(update :a b :b a)", "one", ("a", "b")),
        ('(if (= word "one") (update :a 1) (update :b 2))', "one", ("a",)),
        ('(if (= word "one") (update :a 1) (update :b 2))', "two", ("b",)),
        ('(case word ["one" "two"] (update :a 1) else (update))', "two", ("a",)),
        ('(case word ["one" "two"] (update :a 1) else (update))', "three", ()),
        ('(if (in word ["two" "three"]) (update :flag true) (update))', "one", ()),
        ('(update :a (* a (case word "one" 1 else 2)))', "one", ()),
        ('(update :a (* a (case word "one" 1 else 2)))', "two", ("a",)),
        ('(cond (and (= word "one") (> b 1)) (update :a 5) else (update))', "two", ()),
        ('(cond (and (= word "one") (> b 1)) (update :a 5) else (update))', "one", ("a",)),
    ],
)
def test_decisions_of_a_known_word(body: str, word: str, expected: tuple[str, ...]) -> None:
    assert fields(body, word=word) == expected


def test_null_is_a_value_that_may_be_known() -> None:
    body = "(if (null? b) (update) (update :a 1))"
    assert (fields(body, b=None), fields(body), fields(body, b=2.0)) == ((), ("a",), ("a",))


def test_without_a_policy_of_several_fields_there_is_nothing_to_change() -> None:
    assert changed_fields(compile_policy("(fn [x] x)", NUM), {}) == ()


PROGRAMS = Signature("reinforce", NUM.inputs, "record", fields=("x", "y"))
rows = st.fixed_dictionaries(
    {
        **dict.fromkeys("xyz", st.none() | st.floats()),
        **dict.fromkeys("pq", st.none() | st.booleans()),
        **dict.fromkeys("st", st.none() | st.sampled_from(["", "a", "b"])),
    }
)


@pytest.mark.long
@given(
    program("num", 2, inexact=True),
    program("bool", 2, inexact=True),
    program("num", 2, inexact=True),
    rows,
)
def test_every_changed_field_was_predicted(number: str, test: str, other: str, row: dict) -> None:
    source = f"(fn [x y z p q s t] (if {test} (update :x {number}) (update :y {other})))"
    policy = compile_policy(source, PROGRAMS)
    foreseen = changed_fields(policy, {name: row[name] for name in "pqst"})
    for name, value in policy.row(row).items():  # type: ignore[union-attr]
        same = value == row[name] or (value != value and row[name] != row[name])
        assert (
            same
            or name in foreseen
            or (value == 0 and row[name] == 0 and math.copysign(1, row[name]) < 0)
        )
