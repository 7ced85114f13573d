"""Policies that update: several fields at once, each from the old values."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError, PolicyError, PolicyNameError, PolicyTypeError, UnknownName
from memlab.kernel.language import Input, Policy, Signature, compile_policy
from tests.language.programs import NUM, program

SLOT = Signature(
    "reinforce",
    [
        Input("stability"),
        Input("difficulty"),
        Input("mood", "str", words=("calm", "tense")),
        Input("outcome", "str", words=("success", "fail")),
        Input("pinned", "bool"),
        Input("tags", "set"),
    ],
    "record",
    fields=("stability", "difficulty", "mood", "pinned"),
)
OLD = {"stability": 3.0, "difficulty": 5.0, "mood": "calm", "outcome": "success", "pinned": False}


def policy(body: str, arguments: str = "stability difficulty mood outcome pinned") -> Policy:
    return compile_policy(f"(fn [{arguments}] {body})", SLOT)


def test_every_expression_reads_the_old_values() -> None:
    swap = policy("(update :stability difficulty :difficulty stability)")
    assert swap.row(OLD) == {"stability": 5.0, "difficulty": 3.0}
    assert swap.fields == ("difficulty", "stability")


def test_a_field_omitted_in_a_branch_keeps_its_old_value() -> None:
    chosen = policy('(if (= outcome "success") (update :stability 9) (update :difficulty 8))')
    assert chosen.row(OLD) == {"stability": 9.0, "difficulty": 5.0}
    assert chosen.row({**OLD, "outcome": "fail"}) == {"stability": 3.0, "difficulty": 8.0}
    assert chosen.row({**OLD, "outcome": None}) == {"stability": 3.0, "difficulty": 8.0}


@pytest.mark.parametrize(
    "body",
    [
        '(when (= outcome "success") (update :stability 9))',
        '(cond (= outcome "success") (update :stability 9) else (update))',
        '(case outcome "success" (update :stability 9) else (update))',
        '(if (= outcome "fail") (update) (update :stability 9))',
        '(if (= outcome "success") (update :stability 9) null)',
        '(let [gain 6] (if (= outcome "success") (update :stability (+ gain stability)) (update)))',
    ],
)
def test_every_way_to_change_nothing(body: str) -> None:
    chosen = policy(body)
    assert chosen.row(OLD) == {"stability": 9.0}
    assert chosen.row({**OLD, "outcome": "fail"}) == {"stability": 3.0}


def test_fields_of_every_type() -> None:
    assert policy('(update :mood "tense" :pinned (> stability 1))').row(OLD) == {
        "mood": "tense",
        "pinned": True,
    }


def test_columns_give_a_struct_and_arrays_a_column_each() -> None:
    both = policy("(update :stability (* 2 stability) :difficulty 7)")
    frame = pl.DataFrame({"stability": [1.0, None, 3.0], "difficulty": [0.0, 0.0, 0.0]})
    expected = pl.DataFrame({"difficulty": [7.0, 7.0, 7.0], "stability": [2.0, None, 6.0]})
    for height in (3, 1, 0):
        assert both.columns(frame.head(height)).struct.unnest().equals(expected.head(height))
    values = both.updates({"stability": ([1.0, 0.0, 3.0], [False, True, False])})
    assert values["difficulty"][0].tolist() == [7.0, 7.0, 7.0]
    assert values["stability"][0][[0, 2]].tolist() == [2.0, 6.0]
    nulls = values["stability"][1]
    assert nulls is not None
    assert nulls.tolist() == [False, True, False]


def test_an_empty_update_is_a_policy() -> None:
    nothing = compile_policy("(fn [] (update))", SLOT)
    assert (nothing.fields, nothing.row({})) == ((), {})
    assert len(nothing.columns(pl.DataFrame({"x": [1, 2]}))) == 2


def test_a_single_field_is_a_scalar_policy() -> None:
    both = policy("(update :stability (* (param :gain 2) stability) :difficulty (+ 1 difficulty))")
    stability = both.field("stability")
    assert stability.row(OLD) == 6.0
    assert stability.inputs == ("stability",)
    assert [term.value for term in both.field("difficulty").explain(OLD).terms] == [1.0, 5.0]
    assert stability.with_params({"gain": 3}).row(OLD) == 9.0
    assert stability.hash not in (both.hash, both.field("difficulty").hash)
    with pytest.raises(UnknownName, match="Did you mean stability"):
        both.field("stabilty")


def test_a_slot_that_needs_a_scalar_says_how_to_get_one() -> None:
    both = policy("(update :stability 1)")
    with pytest.raises(InputError, match=r"policy\.field\('stability'\)\.explain"):
        both.explain(OLD)
    with pytest.raises(InputError, match=r"policy\.field\('stability'\)\.arrays"):
        both.arrays({"stability": [1.0]})
    with pytest.raises(InputError, match="updates no fields"):
        both.field("stability").updates({"stability": [1.0]})


@pytest.mark.parametrize(
    ("body", "message", "kind"),
    [
        ("1", "returns (update :stability value ...), but this expression is a number", PolicyTypeError),
        ("(+ 1 (update :stability 1))", "must be the result of the policy", PolicyTypeError),
        ("(let [u (update :stability 1)] u)", "must be the result of the policy", PolicyTypeError),
        ("(update :stabilty 1)", "Did you mean stability?", PolicyNameError),
        ("(update :stability 1 :stability 2)", "updated twice", PolicyTypeError),
        ("(update :stability true)", "The field stability is a number", PolicyTypeError),
        ("(update stability 1)", "written as a keyword", PolicyTypeError),
        ("(update :stability)", "has no value", PolicyTypeError),
        ('(update :mood "tens")', 'Did you mean tense', PolicyTypeError),
        ('(if (= outcome "fail") (update :stability 1) 2)', "is an update, but this one is a number", PolicyTypeError),
        ("(update :tags 1)", "updates no field :tags", PolicyNameError),
    ],
)  # fmt: skip
def test_errors(body: str, message: str, kind: type[PolicyError]) -> None:
    with pytest.raises(kind) as caught:
        policy(body)
    assert message in str(caught.value)


def test_update_belongs_to_record_slots() -> None:
    with pytest.raises(PolicyTypeError, match="update sets fields, but score returns a number"):
        compile_policy("(fn [x] (update :x 1))", NUM)
    with pytest.raises(InputError, match="declare fields if and only if it returns a record"):
        Signature("reinforce", [Input("x")], "record")
    with pytest.raises(InputError, match="updates y, which is not a scalar among its inputs"):
        Signature("reinforce", [Input("x")], "record", fields=("y",))


PROGRAMS = Signature("reinforce", NUM.inputs, "record", fields=("x", "y", "p", "s"))
tables = st.lists(
    st.fixed_dictionaries(
        {
            **dict.fromkeys("xyz", st.none() | st.floats()),
            **dict.fromkeys("pq", st.none() | st.booleans()),
            **dict.fromkeys("st", st.none() | st.sampled_from(["", "a", "b"])),
        }
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.long
@given(
    program("num", 2, inexact=True),
    program("bool", 2, inexact=True),
    program("num", 2, inexact=True),
    tables,
)
def test_a_record_is_its_fields_compiled_alone(
    number: str, test: str, other: str, table: list[dict]
) -> None:
    body = f"(if {test} (update :x {number} :p {test}) (update :y {other}))"
    record = compile_policy(f"(fn [x y z p q s t] {body})", PROGRAMS)
    alone = {
        name: compile_policy(
            f"(fn [x y z p q s t] (if {test} {then} {otherwise}))", Signature("f", NUM.inputs, type)
        )
        for name, type, then, otherwise in (
            ("x", "num", number, "x"),
            ("y", "num", "y", other),
            ("p", "bool", test, "p"),
        )
    }
    schema = {
        **dict.fromkeys("xyz", pl.Float64),
        **dict.fromkeys("pq", pl.Boolean),
        **dict.fromkeys("st", pl.String),
    }
    frame = pl.DataFrame(table, schema=schema)
    columns = record.columns(frame).struct.unnest()
    for name, policy in alone.items():
        assert columns[name].equals(policy.columns(frame), null_equal=True)
        assert np.array_equal(
            np.array([record.row(row)[name] for row in table], dtype=float),
            np.array([policy.row(row) for row in table], dtype=float),
            equal_nan=True,
        )
