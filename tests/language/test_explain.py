"""Why a value: additive terms of the live branch, each as source."""

from __future__ import annotations

import pytest

from memlab.language import Explanation, Input, Signature, compile_policy

INPUTS = [Input("x"), Input("y"), Input("z"), Input("pinned", "bool"), Input("kind", "str")]
SLOT = Signature("score", INPUTS, aggregates=True)


def explained(body: str, **row: object) -> Explanation:
    values = {"x": 2.0, "y": 3.0, "z": 5.0, "pinned": False, "kind": "fact", **row}
    return compile_policy(f"(fn [x y z pinned kind] {body})", SLOT).explain(values)


@pytest.mark.parametrize(
    ("body", "terms"),
    [
        ("(+ (* 0.4 x) (* 0.3 y))", {"(* 0.4 x)": 0.8, "(* 0.3 y)": 0.9}),
        ("(- x y)", {"x": 2.0, "(- y)": -3.0}),
        ("(* 2 (+ x y 1))", {"(* 2 x)": 4.0, "(* 2 y)": 6.0, "2": 2.0}),
        ("(/ (- (* x y) z) 10)", {"(* 0.1 (* x y))": 0.6, "(* -0.1 z)": -0.5}),
        ("(/ x 30)", {"(/ x 30)": 2 / 30}),
        ("(if pinned 1 (+ x y))", {"x": 2.0, "y": 3.0}),
        ("(* 0.5 (cond pinned x (> x 1) (- y) else z))", {"(* -0.5 y)": -1.5}),
        ('(+ x (case kind "fact" y else z))', {"x": 2.0, "y": 3.0}),
        ('(+ x (case kind "fact" 7 else 8))', {"x": 2.0, '(case kind "fact" 7 else 8)': 7.0}),
        ("(let [a (+ x y)] (- a z))", {"x": 2.0, "y": 3.0, "(- z)": -5.0}),
        ("(* x (+ y z))", {"(* x (+ y z))": 16.0}),
        ("(min x (exp 0))", {"(min x 1)": 1.0}),
        ("(+ (if-null x y) z)", {"x": 2.0, "z": 5.0}),
    ],
)
def test_terms(body: str, terms: dict[str, float]) -> None:
    found = explained(body)
    assert {t.text: t.value for t in found.terms} == pytest.approx(terms)
    assert sum(t.value for t in found.terms) == pytest.approx(found.value)


def test_branches_say_which_tests_chose() -> None:
    found = explained('(if (and (!= kind "event") (>= y 3)) (if pinned 1 2) 3)')
    assert [(b.text, b.taken) for b in found.branches] == [
        ('(and (!= kind "event") (>= y 3))', True),
        ("pinned", False),
    ]


def test_null_and_words_have_no_terms() -> None:
    assert explained("(+ x y)", x=None) == Explanation(None, (), ())
    label = Signature("label", INPUTS, "str")
    policy = compile_policy('(fn [pinned] (if pinned "keep" "drop"))', label)
    assert policy.explain({"pinned": None}).value == "drop"
    assert policy.explain({"pinned": None}).terms == ()


def test_aggregates_come_from_the_slate() -> None:
    import polars as pl

    policy = compile_policy("(fn [x y] (+ (* 0.5 (min-max x)) y))", SLOT)
    frame = pl.DataFrame({"x": [1.0, 3.0, 2.0], "y": [0.0, 0.0, 1.0], "memory_id": [1, 2, 3]})
    found = policy.aggregates(frame)
    explanation = policy.explain(frame.row(2, named=True), aggregates=found.row(2, named=True))
    assert {t.text: t.value for t in explanation.terms} == {"(* 0.5 (min-max x))": 0.25, "y": 1.0}
