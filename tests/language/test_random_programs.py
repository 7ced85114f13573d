"""Random programs on random tables: the back ends agree.

Columns and row agree on every bit for the whole language. Arrays do so for programs of exact IEEE operations. NumPy
rounds ``exp``, ``log``, ``tanh`` and ``pow`` differently, and a difference may then choose another branch, so
``test_differential`` compares those alone.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from properties import examples

from memlab.errors import PolicyError
from memlab.kernel.language import compile_policy
from tests.language.agreement import disagreement
from tests.language.grammar import Program
from tests.language.programs import (
    ARGUMENTS,
    BOOL,
    NUM,
    SCHEMA,
    STR,
    bits,
    policies,
    program,
    rows,
    slates,
)

pytestmark = pytest.mark.long

SLOTS = {"num": NUM, "bool": BOOL, "str": STR}
QUICK = examples(80, quick=8, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))

typed = st.sampled_from(["num", "bool", "str"])
anything = typed.flatmap(lambda t: st.tuples(st.just(t), program(t, 3, inexact=True)))
exact = typed.flatmap(lambda t: st.tuples(st.just(t), program(t, 3, inexact=False)))


def compiled(type: str, body: str):
    return compile_policy(f"(fn [{ARGUMENTS}] {body})", SLOTS[type])


def check_columns(type: str, body: str, table: list[dict]) -> None:
    policy = compiled(type, body)
    columns = policy.columns(pl.DataFrame(table, schema=SCHEMA)).to_list()
    assert [bits(v) for v in columns] == [bits(policy.row(row)) for row in table]
    if type == "num":
        assert all(v is None or isinstance(v, float) for v in columns)


def check_arrays(type: str, body: str, table: list[dict]) -> None:
    policy = compiled(type, body)
    blank = {"x": 0.0, "y": 0.0, "z": 0.0, "p": False, "q": False, "s": "", "t": ""}
    dtype = {float: float, bool: bool, str: object}
    columns = {}
    for name, empty in blank.items():
        values = [row[name] for row in table]
        filled = np.array([empty if v is None else v for v in values], dtype[type_of(empty)])
        columns[name] = (filled, np.array([v is None for v in values]))
    values, nulls = policy.arrays(columns)
    results = [None if nulls is not None and nulls[i] else v for i, v in enumerate(values.tolist())]
    assert [bits(v) for v in results] == [bits(policy.row(row)) for row in table]


def type_of(value: object) -> type:
    return value.__class__


@QUICK
@given(anything, rows)
def test_columns_are_rows_to_the_bit(case: tuple[str, str], table: list[dict]) -> None:
    check_columns(*case, table)


@QUICK
@given(exact, rows)
def test_arrays_are_rows_to_the_bit_where_arithmetic_is_exact(
    case: tuple[str, str], table: list[dict]
) -> None:
    check_arrays(*case, table)


@QUICK
@given(policies, slates)
def test_back_ends_agree_on_the_whole_language(drawn: Program, slate: list[dict]) -> None:
    try:
        policy = compile_policy(drawn.source, drawn.signature)
        result = disagreement(policy, slate)
    except PolicyError:
        # now and then a name is hidden by another type, or a list holds what its reader cannot take
        assume(False)
    assert result is None


@QUICK
@given(anything, rows)
def test_terms_sum_to_the_value(case: tuple[str, str], table: list[dict]) -> None:
    policy = compiled(*case)
    explanation = policy.explain(table[0])
    assert bits(explanation.value) == bits(policy.row(table[0]))
    if case[0] != "num" or explanation.value is None:
        assert explanation.terms == ()
        return
    values = [t.value for t in explanation.terms]
    if np.isfinite(explanation.value) and np.isfinite(values).all():
        scale = max([abs(v) for v in values], default=0.0)
        assert np.isclose(sum(values), explanation.value, rtol=1e-9, atol=1e-9 * scale)


@QUICK
@given(anything)
def test_hashes_are_functions_of_the_program(case: tuple[str, str]) -> None:
    type, body = case
    policy = compiled(type, body)
    spaced = compile_policy(
        f"; a comment\n(lambda ({ARGUMENTS})\n   {body.replace(' ', '  ')})", SLOTS[type]
    )
    assert spaced.source_hash == policy.source_hash
    assert spaced.hash == policy.hash
    assert spaced.meaning_hash == policy.meaning_hash


@pytest.mark.slow
@LONG
@given(anything, rows)
def test_many_columns_are_rows(case: tuple[str, str], table: list[dict]) -> None:
    check_columns(*case, table)


@pytest.mark.slow
@LONG
@given(exact, rows)
def test_many_arrays_are_rows(case: tuple[str, str], table: list[dict]) -> None:
    check_arrays(*case, table)


@QUICK
@given(anything, rows)
def test_columns_that_are_the_same_throughout_are_rows(
    case: tuple[str, str], table: list[dict]
) -> None:
    """A choice that takes one branch throughout is a literal for Polars, and literals are computed in another way."""
    check_columns(*case, [table[0]] * 3)
    check_columns(*case, [table[0]] * 200)
