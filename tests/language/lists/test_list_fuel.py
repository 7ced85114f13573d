"""Hostile list policies: fuel ends them. What they would cost without it is far beyond any patience."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from memlab.errors import PolicyLimitError
from memlab.kernel.language._machine import FUEL, MAX_ITEMS, Machine
from tests.language.lists.interpreted import policy_of, program


def chain(name: str, first: str, step: str, count: int) -> str:
    """``count`` bindings, each made from the one before."""
    return f"({name}0 {first}) " + " ".join(f"({name}{i + 1} {step.format(f'{name}{i}')})" for i in range(count))


ITEMS_100 = [float(i % 7) for i in range(100)]
HUNDRED = {
    **dict.fromkeys(("access", "activation"), ITEMS_100),
    "limit": [10.0] * 100,
    "tail-n": [100.0] * 100,
    "kind": ["fact"] * 100,
    "pinned": [True] * 100,
}
BIG = "(range 4000)"
STEPS, ITEMS, OUTCOMES, DEPTH = "more than 120,000 steps", "4,096 items", "4,096 possibilities", "no recursion"
HOSTILE = {
    "a function of itself": ("(let ((w (lambda (x) (x x)))) (w w))", DEPTH),
    "a function of itself, unnamed": ("((lambda (x) (x x)) (lambda (x) (x x)))", DEPTH),
    "recursion through a list": ("(let ((w (lambda (x) (map (lambda (i) (x x)) accs)))) (length (w w)))", DEPTH),
    "recursion twice": ("(let ((w (lambda (x) (+ (x x) (x x))))) (w w))", DEPTH),
    "recursion through reduce": ("(let ((w (lambda (f x) (reduce (lambda (a i) (f f x)) 0 accs)))) (w w 1))", DEPTH),
    "recursion under chance": ("(let ((w (lambda (x) (if (flip 0.5) (x x) 0)))) (w w))", DEPTH),
    "loops in loops": (
        "(length (map (lambda (a) (map (lambda (b) (map (lambda (c) (map (lambda (d) 1) accs)) accs)) accs)) accs))",
        STEPS,
    ),
    "doubling lists": (f"(let* ({chain('a', 'accs', '(append {0} {0})', 30)}) (length a30))", ITEMS),
    "doubling calls": (
        f"(let* ({chain('f', '(lambda (x) (+ x 1))', '(lambda (x) ({0} ({0} x)))', 30)}) (f30 1))",
        STEPS,
    ),
    "a tower of functions": (
        f"(let [f (reduce (lambda (f i) (lambda (y) (f (+ y 1)))) (lambda (y) y) {BIG})] (f 0))",
        DEPTH,
    ),
    "a long range": ("(length (range 1e15))", ITEMS),
    "a longer range": ("(length (range -1e300 1e300))", ITEMS),
    "a flip for each item": ("(length (map (lambda (a) (flip 0.5)) accs))", OUTCOMES),
    "a flip in each of many names": (f"(let* ({chain('a', '(flip 0.5)', '(flip 0.5)', 300)}) 1)", STEPS),
    "a flip in each of some names": (f"(let* ({chain('a', '(flip 0.5)', '(flip 0.5)', 30)}) 1)", STEPS),
    "choices of many": ("(+ (choice accs) (* 100 (choice (range 100))) (* 10000 (choice (range 99))))", OUTCOMES),
    "a choice of orders": ("(first (sort (lambda (i) (choice accs)) (range tail_n)))", OUTCOMES),
    "random walks": (
        f"(choice (map (lambda (i) (reduce (lambda (a x) (if (flip 0.5) (+ a 1) (- a 1))) 0 {BIG})) {BIG}))",
        STEPS,
    ),
    "short random walks": (
        "(choice (map (lambda (i) (reduce (lambda (a x) (if (flip 0.5) (+ a 1) (- a 1))) 0 (range 300))) (range 10)))",
        STEPS,
    ),
    "a random subset": ("(length (reduce (lambda (a x) (if (flip 0.5) a (cons x a))) '() accs))", STEPS),
    "sorting": (f"(let [r {BIG}] (sum (lambda (a) (length (sort r))) r))", STEPS),
    "searching": (f"(let [r {BIG}] (length (filter (lambda (a) (member? -1 r)) r)))", STEPS),
    "transcendental": (f"(sum (lambda (a) (sum (lambda (b) (exp (log (pow a b)))) {BIG})) {BIG})", STEPS),
    "branches": (f"(sum (lambda (i) (cond (< i 0) 1 (= i 9) 2 else (sum {BIG}))) {BIG})", STEPS),
    "many names": (
        f"(let* ({chain('a', '(nth accs 0)', '(+ {0} limit)', 300)}) (length (map (lambda (i) a300) {BIG})))",
        STEPS,
    ),
}  # fmt: skip
A_HANG = 0.25
"""Seconds of one core. The worst of these takes 0.03; without fuel some would outlast the machine."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_programs_run_out_of_fuel(name: str) -> None:
    body, said = HOSTILE[name]
    policy = policy_of(body)
    took = math.inf
    for _ in range(3):
        started = time.process_time()
        with pytest.raises(PolicyLimitError) as caught:
            policy.weights(HUNDRED, 100)
        took = min(took, time.process_time() - started)
    assert said in caught.value.message
    assert "explore" in caught.value.message
    assert str(caught.value).startswith("policy explore, line 1, column")
    assert any(way in caught.value.message for way in ("Shorten the list first", "with map, filter or reduce"))
    assert took < A_HANG


@pytest.mark.parametrize(
    "body",
    [
        # lists that share their parts, 2^60 items if unfolded, where chance compares them
        f"(let* ({chain('a', '[1]', '[{0} {0}]', 60)}) (length (choice [a60 a59 a60])))",
        # deep lists are freed without recursion
        "(length (reduce (lambda (a i) [a]) '() (range 4000)))",
        f"(length (reduce (lambda (f i) [(lambda () f)]) '() {BIG}))",
        "(- " * 97 + "1" + ")" * 97,
        "(+ " + "limit " * 120 + ")",
        "(let [x limit] " * 90 + "x" + ")" * 90,
    ],
)
def test_harmless_programs_run(body: str) -> None:
    policy_of(body).weights(HUNDRED, 100)


def test_comparing_every_item_with_every_other_is_within_the_fuel_at_a_hundred() -> None:
    below = "(lambda (i) (length (filter (lambda (j) (< (nth accs j) (nth accs i))) (range tail_n))))"
    found = policy_of(f"(argmax {below} (range tail_n))").weights(HUNDRED, 100)
    assert np.flatnonzero(found).tolist() == [6]


def test_a_slate_of_more_than_the_most_items_is_refused() -> None:
    policy = program("(lambda (accs) (argmax accs))")
    assert policy.weights({"access": [0.0] * MAX_ITEMS}, MAX_ITEMS)[0] == 1.0
    with pytest.raises(PolicyLimitError, match=r"at most 4,096 items, and this slate has 4,097"):
        policy.weights({"access": [0.0] * (MAX_ITEMS + 1)}, MAX_ITEMS + 1)


def test_a_choice_of_the_largest_slate_is_possible() -> None:
    found = program("(lambda (accs) (choice (range (length accs))))").weights({}, MAX_ITEMS)
    assert found.tolist() == [1 / MAX_ITEMS] * MAX_ITEMS


def test_programs_too_deep_or_too_large_are_refused_when_they_are_checked() -> None:
    tower = "".join(f"(defn f{i} [n] {'(abs ' * 60}(f{i + 1} n){')' * 60}) " for i in range(8))
    tower += "(defn f8 [n] n) (lambda (limit) (f0 limit))"
    with pytest.raises(PolicyLimitError, match="nest deeper than"):
        program(tower)
    doubling = "(defn g0 [n] n) " + "".join(f"(defn g{i + 1} [n] (+ (g{i} n) (g{i} n))) " for i in range(20))
    with pytest.raises(PolicyLimitError, match="more than 120,000 steps"):
        program(doubling + "(lambda (limit) (g20 limit))").weights({"limit": [1.0]}, 1)


def test_fuel_is_counted_in_forms_and_items_alike_on_every_machine() -> None:
    # each item: one to make the list, then for its square 1 call, 2 names, 1 more to hold the function's own names
    policy = program("(lambda () (length (map (lambda (a) (* a a)) (range 1000))))")
    machine = Machine("explore", 1)
    policy.code.run(machine, ())
    assert FUEL - machine.fuel == 1000 * (1 + 4 + 1)
