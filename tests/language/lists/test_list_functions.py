"""The functions and forms of list policies, by their values on one slate."""

from __future__ import annotations

import pytest

from memlab.errors import PolicyTypeError
from memlab.kernel.language._derived import SET_TESTS
from memlab.kernel.language._forms import FORMS
from memlab.kernel.language._list_compiler import SPECIAL_FORMS
from memlab.kernel.language._list_functions import FUNCTIONS
from memlab.kernel.language._words import AGGREGATE_FORMS
from tests.language.lists.interpreted import items, value, weights


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("accs", [2, 7, 1, 9]),
        ("[1 2 3]", [1, 2, 3]),
        ("(list 1 (+ 1 1))", [1, 2]),
        ("'(1 2)", [1, 2]),
        ("'()", []),
        ("(range 3)", [0, 1, 2]),
        ("(range 2 5)", [2, 3, 4]),
        ("(range 5 2)", []),
        ("(range -2 1)", [-2, -1, 0]),
        ("(range (- (length accs) 2) (nth accs 0))", []),
        ("(rest accs)", [7, 1, 9]),
        ("(cdr '())", []),
        ("(take accs 2)", [2, 7]),
        ("(take accs 0)", []),
        ("(take accs 1.9)", [2]),
        ("(take accs 99)", [2, 7, 1, 9]),
        ("(reverse accs)", [9, 1, 7, 2]),
        ("(append accs [3] '() [4])", [2, 7, 1, 9, 3, 4]),
        ("(cons 5 [1])", [5, 1]),
        ("(map (lambda (a) (* a 2)) accs)", [4, 14, 2, 18]),
        ("(map - accs)", [-2, -7, -1, -9]),
        ("(map + accs [1 2 3])", [3, 9, 4]),
        ("(map square accs)", [4, 49, 1, 81]),
        ("(filter (lambda (a) (> a 1)) accs)", [2, 7, 9]),
        ("(filter (lambda (a) (> a 1)) [2 null 0])", [2]),
        ("(filter null? [2 null (/ 0 0)])", ["null"]),
        ("(sort accs)", [1, 2, 7, 9]),
        ("(sort [3 null (/ 0 0) 1])", [1, 3, "nan", "null"]),
        ("(sort (lambda (i) (nth accs i)) (range tail_n))", [2, 0, 1, 3]),
        ("(sort (lambda (i) 0) [3 1 2])", [3, 1, 2]),
        ("(sort (lambda (i) (nth kinds i)) (range tail_n))", [1, 0, 3, 2]),
        ("(map length [[1 2] []])", [2, 0]),
    ],
)
def test_lists(expression: str, expected: list[object]) -> None:
    assert items(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("(length accs)", 4),
        ("(first accs)", 2),
        ("(first '())", "null"),
        ("(car (cdr accs))", 7),
        ("(nth accs 3)", 9),
        ("(nth accs 4)", "null"),
        ("(nth accs -1)", "null"),
        ("(nth accs 0.5)", "null"),
        ("(nth accs null)", "null"),
        ("(nth accs (/ 0 0))", "null"),
        ("(reduce + accs)", 19),
        ("(reduce - 30 accs)", 11),
        ("(reduce + '())", "null"),
        ("(reduce + 3 '())", 3),
        ("(reduce max accs)", 9),
        ("(reduce (lambda (longest xs) (max longest (length xs))) 0 [[1] [1 2 3] []])", 3),
        ("(sum accs)", 19),
        ("(sum [1 null (/ 0 0) 2])", 3),
        ("(sum square [1 2])", 5),
        ("(sum '())", 0),
        ("(argmax [1 3 3])", 1),
        ("(argmin [2 1 1])", 1),
        ("(argmax [null (/ 0 0) -5])", 2),
        ("(argmax '())", "null"),
        ("(argmin (lambda (a) (- a)) accs)", 3),
        ("(let [f (lambda (x) (* x 2)) g (lambda (h x) (h (h x)))] (g f 3))", 12),
        ("((lambda (x y) (+ x y)) 1 2)", 3),
        ("(let [add (lambda (n) (lambda (x) (+ x n)))] (+ ((add 1) 10) ((add 2) 20)))", 33),
        ("(let [fs [+ *]] ((nth fs 1) 3 4))", 12),
        ("(if-null (first '()) 7)", 7),
        ("(let [length 3] 1)", None),
        ("(case (first kinds) (fact 5) (event 6) (else 7))", 5),
        ("(case (nth kinds 2) 'fact 5 else 7)", 7),
        ("(case (nth accs 0) [1 2] 5 else 7)", 5),
        ("(cond (empty? accs) 1 (> limit 5) 2 else 3)", 2),
        ("(cond ((empty? accs) 1) (else 3))", 3),
        ("(when (> limit 50) 3)", "null"),
        ("(min 3 null 2)", 2),
        ("(clamp 50 0 9)", 9),
        ("(weeks 2)", 14),
        ("(+ 3)", 3),
        ("(* (param :scale 3 :low 1 :high 9) 2)", 6),
    ],
)
def test_values(expression: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(PolicyTypeError, match="length is a form of the dialect and cannot be bound"):
            weights(expression)
    else:
        assert value(expression) == expected


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("(any? (lambda (a) (> a 8)) accs)", True),
        ("(all? (lambda (a) (> a 8)) accs)", False),
        ("(any? pins)", True),
        ("(all? pins)", False),
        ("(null? (any? [false null]))", True),
        ("(null? (all? [true null]))", True),
        ("(any? '())", False),
        ("(all? '())", True),
        ("(empty? accs)", False),
        ("(empty? (filter (lambda (a) (> a 50)) accs))", True),
        ("(member? 7 accs)", True),
        ("(member? 8 accs)", False),
        ("(member? (/ 0 0) [1 (/ 0 0)])", True),
        ("(null? (member? null [1]))", True),
        ('(in (first kinds) ["fact" "goal"])', True),
        ("(not-in (first kinds) '(fact goal))", False),
        ('(one-of "a" "b" "a")', True),
        ("(null? (in (nth kinds 2) kinds))", True),
        ("(= (first kinds) 'fact)", True),
        ("(!= (first kinds) (nth kinds 1))", True),
        ("(= (first pins) false)", True),
        ("(< 1 2 3)", True),
        ("(< 1 3 2)", False),
        ("(<= 1 1 (/ 0 0))", True),
        ("(and (> 1 0) (null? null))", True),
        ("(null? (and true null))", True),
        ("(and null false)", False),
        ("(or null true)", True),
        ("(reduce and true [true true])", True),
    ],
)
def test_tests(test: str, expected: bool) -> None:
    assert weights(f"(if {test} 0 1)") == ([1, 0, 0, 0] if expected else [0, 1, 0, 0])


def test_a_sum_runs_in_order_and_is_not_compensated() -> None:
    assert weights("(if (= (sum [1e16 1 -1e16]) 0) 0 1)") == [1, 0, 0, 0]


def test_every_form_of_the_dialect_is_there() -> None:
    elsewhere = {*AGGREGATE_FORMS, *SET_TESTS, "update", "defn", "defpolicy", "pack", "setting"}
    assert set(FORMS) - elsewhere <= {*SPECIAL_FORMS, *FUNCTIONS}
