"""The three policies of the associative memory install in their own Scheme spelling, unchanged, and mean the same."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
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
    "half-life", [Input(n) for n in ("success", "fail", "energy", "importance", "recency_ms", "base_half_ms")]
)
SCORE = Signature(
    "recall-score", [Input(n) for n in ("activation", "recency", "importance", "access", "success", "fail")]
)
LISTS = {
    "acts": "activation",
    "recs": "recency",
    "imps": "importance",
    "accs": "access",
    "succ": "success",
    "fails": "fail",
}
TAIL = Signature("explore", [*SCORE.inputs.values(), Input("limit"), Input("tail_n")], aggregates=True, lists=LISTS)
SCALAR = memlab.load_pack("associative").policies["explore"].source

counts = st.integers(0, 1000)


@given(counts, counts, st.floats(1, 1e12))
def test_decay_gives_a_half_life_in_milliseconds(success: int, fail: int, base: float) -> None:
    row = {"success": success, "fail": fail, "energy": 1, "importance": 0.5, "recency_ms": 0, "base_half_ms": base}
    expected = base * (0.5 + 1.5 * (success / (success + fail + 1)))
    assert compile_policy(DECAY, HALF_LIFE).row(row) == expected


@given(st.floats(0, 10), st.floats(0, 1), st.floats(0, 1), counts, counts)
def test_recall_score(activation: float, recency: float, importance: float, success: int, fail: int) -> None:
    row = {"activation": activation, "recency": recency, "importance": importance, "success": success, "fail": fail}
    expected = 0.4 * activation + 0.3 * recency + 0.2 * importance + 0.1 * (success / (success + fail + 1))
    assert compile_policy(RECALL, SCORE).row(row) == pytest.approx(expected, rel=1e-15)


def explore(tail_n: int, acts: list[float], accs: list[float]) -> int:
    """The original, in Python."""
    if tail_n > 2:
        under_explored = [i for i in range(len(acts)) if accs[i] < 5]
        return under_explored[0] if under_explored else -1
    return -1


accesses = st.one_of(st.none(), st.integers(0, 12).map(float), st.sampled_from([math.nan, math.inf, -0.0, 4.999]))


@given(st.lists(accesses, min_size=1, max_size=12))
def test_the_list_form_and_the_scalar_form_give_the_same_weights(access: list[float | None]) -> None:
    """The original, the policy of the shipped pack, and both on every back end."""
    size = len(access)
    chosen = explore(size, [0.0] * size, [math.inf if a is None or math.isnan(a) else a for a in access])
    expected = [1.0 if i == chosen else 0.0 for i in range(size)]
    frame = pl.DataFrame(
        {"access": access, "tail_n": [float(size)] * size, "memory_id": range(size)},
        schema_overrides={"access": pl.Float64},
    )
    given_arrays = {
        "access": (np.array([0.0 if a is None else a for a in access]), np.array([a is None for a in access])),
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


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(first (range 0 (length acts)))", [1, 0, 0, 0]),
        ("(nth accs 0)", [0, 0, 1, 0]),
        ("2", [0, 0, 1, 0]),
        ("(- (length acts) 1)", [0, 0, 0, 1]),
        ("(- (length (filter (lambda (i) (> (nth accs i) 2)) (range tail_n))) 1)", [0, 1, 0, 0]),
        ("(first (filter (lambda (a) (> a 5)) accs))", [0, 0, 0, 0]),
        ("(if (empty? (filter (lambda (a) (> a 50)) accs)) 3 0)", [0, 0, 0, 1]),
        ("(first (map (lambda (i) (+ i 1)) (range 0 tail_n)))", [0, 1, 0, 0]),
        ("(first (filter (lambda (i) (< i 0)) (range 0 tail_n)))", [0, 0, 0, 0]),
    ],
)
def test_simple_bodies(body: str, expected: list[float]) -> None:
    policy = compile_policy(f"(lambda (tail_n acts accs) {body})", TAIL)
    columns = {"access": np.array([2.0, 7.0, 1.0, 9.0]), "activation": np.zeros(4), "tail-n": np.full(4, 4.0)}
    assert policy.arrays(columns)[0].tolist() == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(reduce (lambda (a b) (if (> a b) a b)) accs)", [0, 0, 0, 0]),
        ("(argmax accs)", [0, 0, 0, 1]),
        ("(first (range 0 2))", [1, 0, 0, 0]),
        ("(nth (filter (lambda (a) (> a 1)) accs) 0)", [0, 0, 1, 0]),
        ("(first (if (> (length acts) 1) accs acts))", [0, 0, 1, 0]),
        ("(choice (list 1 3))", [0, 0.5, 0, 0.5]),
        ("(let* ((old? (lambda (i) (> (nth accs i) 5)))) (first (filter old? (range 0 (length acts)))))", [0, 1, 0, 0]),
    ],
)
def test_loops(body: str, expected: list[float]) -> None:
    policy = compile_policy(f"(lambda (acts accs) {body})", TAIL)
    assert policy.root.op == "interpreted"
    frame = pl.DataFrame({"access": [2.0, 7.0, 1.0, 9.0], "activation": [0.0] * 4, "memory_id": [1, 2, 3, 4]})
    assert policy.arrays({"access": frame["access"].to_numpy(), "activation": np.zeros(4)})[0].tolist() == expected
    assert policy.columns(frame).to_list() == expected
    found = policy.aggregates(frame)
    rows = zip(frame.to_dicts(), found.to_dicts(), strict=True)
    assert [policy.row(row, aggregates=slate) for row, slate in rows] == expected


def test_a_place_that_differs_from_item_to_item_is_not_read_row_by_row() -> None:
    later = "(map (lambda (i) (+ i 1)) (range 0 (length acts)))"
    policy = compile_policy(f"(lambda (acts) (- (length (filter (lambda (i) (< i (nth acts i))) {later})) 1))", TAIL)
    assert policy.root.op == "interpreted"
    assert policy.arrays({"activation": np.array([1e308, 3.29, 2.0, 1e-310])})[0].tolist() == [1, 0, 0, 0]


def test_each_slate_is_run_alone_in_the_order_of_its_ids() -> None:
    policy = compile_policy("(lambda (accs) (argmax accs))", TAIL)
    frame = pl.DataFrame(
        {"access": [5.0, 9.0, 7.0, 9.0, None], "memory_id": [3, 9, 1, 2, 4], "of": ["a", "b", "a", "b", "b"]}
    )
    assert policy.columns(frame, by="of").to_list() == [0, 0, 1, 1, 0]


def test_a_slot_that_offers_lists_also_takes_a_weight_for_one_item() -> None:
    slot = Signature("explore", [Input("activation"), Input("access")], lists={"acts": "activation"})
    policy = compile_policy("(fn [activation access] (/ activation (+ access 1)))", slot)
    assert policy.row({"activation": 3.0, "access": 2.0}) == 1.0
