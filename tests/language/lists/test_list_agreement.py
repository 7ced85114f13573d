"""What lifts to columns and what the interpreter runs mean the same."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memlab.language import Policy, compile_policy
from tests.language.lists.interpreted import ARGUMENTS, SLOT, program
from tests.language.lists.test_originals import EXPLORE, TAIL

VALUES = ("access", "activation")
tame = st.one_of(st.none(), st.integers(-3, 12).map(float), st.sampled_from([0.5, 0.1, 0.3]))
wild = st.one_of(tame, st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1e-310]), st.floats())


def slates(numbers: st.SearchStrategy[float | None]) -> st.SearchStrategy[list[dict]]:
    item = {
        **dict.fromkeys(VALUES, numbers),
        "kind": st.sampled_from(["a", "b", "", None]),
        "pinned": st.sampled_from([True, False, None]),
    }
    slate = st.lists(st.fixed_dictionaries(item), min_size=1, max_size=7)
    return st.tuples(slate, numbers).map(lambda v: [{**row, "limit": v[1]} for row in v[0]])


literals = st.sampled_from(["0", "1", "2", "3", "-1", "0.5", "0.1", "7"])


@cache
def liftable(depth: int, places: bool) -> st.SearchStrategy[str]:
    """Bodies over lists that give numbers. ``_lift`` takes most of them. ``places`` adds those that read values at
    computed places of a list, which it takes seldom.
    """
    numbers = st.one_of(literals, st.sampled_from(["limit", "tail_n", "(length acts)"]))
    if depth == 0:
        return numbers
    below, tests = liftable(depth - 1, places), truths(depth - 1, places)
    positions = listed(depth - 1, places)
    own = [
        numbers,
        positions.map(lambda xs: f"(first {xs})"),
        positions.map(lambda xs: f"(length {xs})"),
        values(depth - 1, places).map(lambda xs: f"(length {xs})"),
        arithmetic(below),
        st.tuples(tests, below, below).map(lambda v: "(if {} {} {})".format(*v)),
        st.tuples(below, below).map(lambda v: "(if-null {} {})".format(*v)),
        st.tuples(below, below, below).map(lambda v: "(let ((x {}) (y {})) (+ x (* y {})))".format(*v)),
        st.tuples(positions, below).map(lambda v: "(let* ((xs {})) (if (empty? xs) {} (first xs)))".format(*v)),
        st.tuples(below, literals).map(lambda v: "(capped {} {})".format(*v)),
    ]
    if places:
        own += [
            st.tuples(values(depth - 1, places)).map(lambda v: f"(first {v[0]})"),
            st.tuples(st.sampled_from(["accs", "acts"]), below).map(lambda v: "(nth {} {})".format(*v)),
        ]
    return st.one_of(*own)


def arithmetic(x: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "/", "min", "max"]), x, x).map(lambda v: "({} {} {})".format(*v)),
        st.tuples(st.sampled_from(["-", "abs", "floor", "sign", "hours", "sqrt"]), x).map(
            lambda v: "({} {})".format(*v)
        ),
        st.tuples(x, st.sampled_from(["0.5", "2", "3"])).map(lambda v: "(pow {} {})".format(*v)),
        st.tuples(x, x, x).map(lambda v: "(clamp {} {} {})".format(*v)),
    )


@cache
def truths(depth: int, places: bool) -> st.SearchStrategy[str]:
    below = liftable(depth, places)
    return st.one_of(
        comparisons(below),
        listed(depth, places).map(lambda xs: f"(empty? {xs})"),
        below.map(lambda x: f"(null? {x})"),
    )


def comparisons(x: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), x, x).map(lambda v: "({} {} {})".format(*v))


@cache
def listed(depth: int, places: bool) -> st.SearchStrategy[str]:
    """Lists of positions."""
    whole = st.sampled_from(
        ["(range 0 (length acts))", "(range tail_n)", "(range 1 (length kinds))", "(range 2 tail_n)", "'()"]
    )
    if depth == 0:
        return whole
    here = st.one_of(
        st.sampled_from(["(nth accs i)", "(nth acts i)", "i"]),
        liftable(depth - 1, places),
    )
    test = st.one_of(
        comparisons(st.one_of(here, arithmetic(here))),
        st.sampled_from(["(nth pins i)", "(not (nth pins i))", "(null? (nth pins i))", '(= (nth kinds i) "a")']),
        st.just('(in (nth kinds i) ["b" ""])'),
        st.tuples(literals, literals).map(lambda v: '(< (case (nth kinds i) "a" {} else {}) 2)'.format(*v)),
        st.tuples(comparisons(here), comparisons(here)).map(lambda v: "(and {} (or (nth pins i) {}))".format(*v)),
    )
    return st.one_of(
        whole,
        st.tuples(test, listed(depth - 1, places)).map(lambda v: "(filter (lambda (i) {}) {})".format(*v)),
    )


@cache
def values(depth: int, places: bool) -> st.SearchStrategy[str]:
    """Lists of values."""
    whole = st.sampled_from(["accs", "acts"])
    if depth == 0:
        return whole
    item = st.one_of(st.just("a"), literals, liftable(depth - 1, places))
    gentle = st.sampled_from(["(+ a 1)", "(* a 2)", "(abs a)", "(max a 3)", "(if (> a 2) a 1)", "(+ a (length acts))"])
    made = gentle if places else arithmetic(st.one_of(st.just("a"), literals))
    below = values(depth - 1, places)
    return st.one_of(
        whole,
        st.tuples(comparisons(item), below).map(lambda v: "(filter (lambda (a) {}) {})".format(*v)),
        st.tuples(made, below).map(lambda v: "(map (lambda (a) {}) {})".format(*v)),
        listed(depth - 1, places).map(lambda xs: f"(map (lambda (i) (nth accs i)) {xs})"),
    )


def lifted(policy: Policy, table: list[dict]) -> list[float]:
    """The weights of the policy that is lifted to columns, run on arrays."""
    columns = {}
    blank = {"limit": 0.0, "access": 0.0, "activation": 0.0, "kind": "", "pinned": False}
    for name, empty in blank.items():
        given_values = [row[name] for row in table]
        dtype = {str: object}.get(type(empty), type(empty))
        columns[name] = (
            np.array([empty if v is None else v for v in given_values], dtype),
            np.array([v is None for v in given_values]),
        )
    found, nulls = policy.arrays(columns)
    assert nulls is None
    return found.tolist()


def check_agreement(body: str, table: list[dict]) -> bool:
    """Whether the policy is lifted at all; if it is, the two must agree."""
    source = f"(lambda ({ARGUMENTS}) {body})"
    policy = compile_policy(source, SLOT)
    if policy.root.op == "interpreted":
        return False
    columns = {name: [row[name] for row in table] for name in table[0]}
    assert program(source).weights(columns, len(table)).tolist() == lifted(policy, table)
    return True


@settings(max_examples=250, deadline=None)
@given(liftable(3, places=True), slates(wild))
def test_what_lifts_means_the_same(body: str, table: list[dict]) -> None:
    assume(check_agreement(body, table))


@settings(max_examples=250, deadline=None)
@given(liftable(3, places=False), slates(wild))
def test_what_lifts_means_the_same_on_nan_infinities_and_signed_zeros(body: str, table: list[dict]) -> None:
    assume(check_agreement(body, table))


@pytest.mark.slow
@settings(max_examples=2_000, deadline=None)
@given(st.booleans().flatmap(lambda p: st.tuples(liftable(4, p), slates(wild))))
def test_much_that_lifts_means_the_same(case: tuple[str, list[dict]]) -> None:
    assume(check_agreement(*case))


@given(st.lists(st.one_of(st.none(), st.just(math.nan), st.integers(0, 12)), min_size=1, max_size=12))
def test_the_original_exploration_policy_is_the_same_lifted_and_interpreted(access: list[float | None]) -> None:
    column = (np.array([0.0 if a is None else a for a in access], float), np.array([a is None for a in access]))
    found = program(EXPLORE, TAIL).weights({"access": access}, len(access))
    assert found.tolist() == compile_policy(EXPLORE, TAIL).arrays({"access": column})[0].tolist()
    under = [i for i, a in enumerate(access) if a is not None and a < 5]
    assert np.flatnonzero(found).tolist() == (under[:1] if len(access) > 2 else [])


def test_constants_round_as_they_do_in_columns() -> None:
    # x / 49 runs as x * (1 / 49): 49 of them is not 1
    for body in ("(/ 49 49)", "(let [d 49] (/ limit d))", "(capped limit 49)"):
        table = [{"limit": 49.0, "access": 1.0, "activation": 49.0, "kind": "a", "pinned": True}]
        assert check_agreement(f"(if (= {body} 1) 0 -1)", table)
