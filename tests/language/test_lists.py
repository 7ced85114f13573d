"""The three policies of the associative memory install in their own Scheme spelling, unchanged, and mean the same."""

from __future__ import annotations

import math
import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.errors import PolicyError
from memlab.kernel.language import Input, Signature, compile_policy
from memlab.kernel.policies import SLOTS

DECAY = (
    "(lambda (success fail energy importance recency_ms base_half_ms) (let* ((total (+ success fail 1)) "
    "(ratio (/ success total)) (scale (+ 0.5 (* 1.5 ratio)))) (* base_half_ms scale)))"
)
RECALL = (
    "(lambda (activation recency importance access success fail) (+ (* 0.4 activation) (* 0.3 recency) "
    "(* 0.2 importance) (* 0.1 (/ success (+ success fail 1)))))"
)
EXPLORE = (
    "(lambda (limit tail_n acts recs imps accs succ fails) (if (> tail_n 2) (let* ((under-explored (filter (lambda (i) "
    "(< (nth accs i) 5)) (range 0 (length acts))))) (if (not (empty? under-explored)) (first under-explored) -1)) -1))"
)

HALF_LIFE = Signature(
    "half-life",
    [Input(n) for n in ("success", "fail", "energy", "importance", "recency_ms", "base_half_ms")],
)
SCORE = Signature(
    "recall-score",
    [Input(n) for n in ("activation", "recency", "importance", "access", "success", "fail")],
)
LISTS = {
    "acts": "activation",
    "recs": "recency",
    "imps": "importance",
    "accs": "access",
    "succ": "success",
    "fails": "fail",
}
TAIL = Signature(
    "explore",
    [*SCORE.inputs.values(), Input("limit"), Input("tail_n")],
    aggregates=True,
    lists=LISTS,
)
SCALAR = memlab.load_pack("associative").policies["explore"].source

counts = st.integers(0, 1000)


@given(counts, counts, st.floats(1, 1e12))
def test_decay_gives_a_half_life_in_milliseconds(success: int, fail: int, base: float) -> None:
    row = {
        "success": success,
        "fail": fail,
        "energy": 1,
        "importance": 0.5,
        "recency_ms": 0,
        "base_half_ms": base,
    }
    expected = base * (0.5 + 1.5 * (success / (success + fail + 1)))
    assert compile_policy(DECAY, HALF_LIFE).row(row) == expected


@given(st.floats(0, 10), st.floats(0, 1), st.floats(0, 1), counts, counts)
def test_recall_score(
    activation: float, recency: float, importance: float, success: int, fail: int
) -> None:
    row = {
        "activation": activation,
        "recency": recency,
        "importance": importance,
        "success": success,
        "fail": fail,
    }
    expected = (
        0.4 * activation + 0.3 * recency + 0.2 * importance + 0.1 * (success / (success + fail + 1))
    )
    assert compile_policy(RECALL, SCORE).row(row) == pytest.approx(expected, rel=1e-15)


def explore(tail_n: int, acts: list[float], accs: list[float]) -> int:
    """Run the original in Python."""
    if tail_n > 2:
        under_explored = [i for i in range(len(acts)) if accs[i] < 5]
        return under_explored[0] if under_explored else -1
    return -1


accesses = st.one_of(
    st.none(), st.integers(0, 12).map(float), st.sampled_from([math.nan, math.inf, -0.0, 4.999])
)


@pytest.mark.long
@given(st.lists(accesses, min_size=1, max_size=12))
def test_the_list_form_and_the_scalar_form_give_the_same_weights(
    access: list[float | None],
) -> None:
    """The original, the policy of the shipped pack, and both on every back end."""
    size = len(access)
    chosen = explore(
        size, [0.0] * size, [math.inf if a is None or math.isnan(a) else a for a in access]
    )
    expected = [1.0 if i == chosen else 0.0 for i in range(size)]
    frame = pl.DataFrame(
        {"access": access, "tail_n": [float(size)] * size, "memory_id": range(size)},
        schema_overrides={"access": pl.Float64},
    )
    given_arrays = {
        "access": (
            np.array([0.0 if a is None else a for a in access]),
            np.array([a is None for a in access]),
        ),
        "tail-n": np.full(size, float(size)),
    }
    for source in (EXPLORE, SCALAR):
        policy = compile_policy(source, TAIL)
        assert policy.inputs == ("access", "tail-n")
        weights, nulls = policy.arrays(given_arrays)
        assert nulls is None or not nulls.any()
        assert weights.tolist() == expected
        assert policy.columns(frame).to_list() == expected
        aggregates = policy.aggregates(frame)
        rows = zip(frame.iter_rows(named=True), aggregates.iter_rows(named=True), strict=True)
        assert [policy.row(row, aggregates=found) for row, found in rows] == expected


def test_the_originals_install_in_their_slots() -> None:
    for slot, source in (("half-life", DECAY), ("recall-score", RECALL), ("explore", EXPLORE)):
        assert compile_policy(source, SLOTS[slot].signature).name == slot


def test_many_slates_explore_each_for_itself_in_the_given_order() -> None:
    frame = pl.DataFrame(
        {
            "slate": [1, 1, 1, 2, 2, 2, 3, 3],
            "tail_n": [3, 3, 3, 3, 3, 3, 2, 2],
            "tail_rank": [2, 1, 0, 0, 1, 2, 0, 1],
            "access": [1, 1, 9, 9, 9, 9, 0, 0],
        }
    )
    weights = compile_policy(EXPLORE, TAIL).columns(frame, by="slate", order="tail_rank")
    assert weights.to_list() == [0, 1, 0, 0, 0, 0, 0, 0]


UNUSED = "(filter (lambda (i) (< (nth accs i) 5)) (range (length acts)))"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(first (range 0 (length acts)))", [1, 0, 0, 0]),
        (f"(first {UNUSED})", [1, 0, 0, 0]),
        ("(first (filter (fn [i] (> (nth accs i) 5)) (range (length accs))))", [0, 1, 0, 0]),
        (f"(first (filter (lambda (at) (< (nth accs at) 2)) {UNUSED}))", [0, 0, 1, 0]),
        ("(first (filter (lambda (i) (> (nth accs i) 50)) (range (length acts))))", [0, 0, 0, 0]),
        (f"(if (empty? {UNUSED}) -1 (first {UNUSED}))", [1, 0, 0, 0]),
        ("(if (> tail_n 4) (first (range (length acts))) null)", [0, 0, 0, 0]),
        (f"(cond (> tail_n 4) -1 (> tail_n 3) (first {UNUSED}) else -1)", [1, 0, 0, 0]),
        ("(if (> tail_n 3) -1 -1)", [0, 0, 0, 0]),
        ("-1", [0, 0, 0, 0]),
    ],
)
def test_a_policy_over_lists_gives_one_item_the_weight_one(
    body: str, expected: list[float]
) -> None:
    policy = compile_policy(f"(lambda (tail_n acts accs) {body})", TAIL)
    access = [2.0, 7.0, 1.0, 9.0]
    columns = {"access": np.array(access), "activation": np.zeros(4), "tail-n": np.full(4, 4.0)}
    assert policy.arrays(columns)[0].tolist() == expected
    frame = pl.DataFrame(
        {"access": access, "activation": [0.0] * 4, "tail_n": [4.0] * 4, "memory_id": range(4)}
    )
    assert policy.columns(frame).to_list() == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("2", "returns a position: (first items), or -1 for none; this is a number"),
        ("(length acts)", "this is a length"),
        ("acts", "this is a list"),
        ("(range (length acts))", "this is a list of positions"),
        ("(if (> tail_n 2) (first (range (length acts))) 0)", "this is a number"),
        ("(first acts)", "first takes a list of positions here, but this is a list"),
        ("(first (range 3))", "A range must cover all items"),
        ("(first (range 1 (length acts)))", "A range must cover all items"),
        (
            "(first (filter (fn [i j] true) (range (length acts))))",
            "must have one argument, a position",
        ),
        ("(first (filter seldom (range (length acts))))", "filter takes a function first"),
        (
            "(first (filter (fn [i] (nth accs 0)) (range (length acts))))",
            "the position of any item",
        ),
        ("(first (filter (fn [i] (< i 3)) (range (length acts))))", "compares numbers"),
        (
            "(first (filter (fn [i] (nth accs i)) (range (length acts))))",
            "filter tests true or false",
        ),
        (
            "(first (filter (fn [i] (null? i)) (range (length acts))))",
            "returns the position of any item",
        ),
        ("(if (null? acts) (first (range (length acts))) -1)", "returns a list"),
        ("(if (= acts accs) (first (range (length acts))) -1)", "returns a list"),
        ("(if (in acts [1]) (first (range (length acts))) -1)", "returns a list"),
        ("(first (if (> tail_n 2) acts accs))", "first takes a list of positions"),
        ("(argmax accs)", "The only list functions are"),
        ("(choice (range (length acts)))", "A policy does not draw"),
    ],
)
def test_an_invalid_choice_of_an_item_is_refused_with_its_position(body: str, message: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(message)) as caught:
        compile_policy(f"(lambda (tail_n acts accs) {body})", TAIL)
    assert caught.value.column is not None


def test_a_policy_over_lists_is_explained() -> None:
    policy = compile_policy(EXPLORE, TAIL)
    row = {"access": 2.0, "tail-n": 3.0}
    aggregates = policy.aggregates(
        pl.DataFrame({"access": [9.0, 2.0], "tail_n": [3.0] * 2, "memory_id": [1, 2]})
    )
    assert policy.explain(row, aggregates=aggregates.row(1, named=True)).value == 1.0


def test_a_slot_that_offers_lists_also_takes_a_weight_for_one_item() -> None:
    slot = Signature(
        "explore", [Input("activation"), Input("access")], lists={"acts": "activation"}
    )
    policy = compile_policy("(fn [activation access] (/ activation (+ access 1)))", slot)
    assert policy.row({"activation": 3.0, "access": 2.0}) == 1.0
