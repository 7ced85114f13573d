"""Why a value: additive terms of the live branch, each as source."""

from __future__ import annotations

import pytest

from memlab.kernel.language import Input, Signature, compile_policy
from memlab.subjects.lens import Explanation
from memlab.subjects.lens.tree import LIMIT

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
        ("(+ x y x)", {"(* 2 x)": 4.0, "y": 3.0}),
        ("(let [a (+ x y)] (+ a (* 2 a)))", {"(* 3 x)": 6.0, "(* 3 y)": 9.0}),
        ("(- (* 2 x) (/ x 4))", {"(* 2 x)": 4.0, "(* -0.25 x)": -0.5}),
        (
            '(+ x (cond pinned 1 (= kind "fact") 7 else 8))',
            {"x": 2.0, '(cond pinned 1 (= kind "fact") 7 else 8)': 7.0},
        ),
    ],
)
def test_terms(body: str, terms: dict[str, float]) -> None:
    result = explained(body)
    assert {t.text: t.value for t in result.terms} == pytest.approx(terms)
    assert sum(t.value for t in result.terms) == pytest.approx(result.value)


def test_branches_say_which_tests_chose() -> None:
    result = explained('(if (and (!= kind "event") (>= y 3)) (if pinned 1 2) 3)')
    assert [(b.text, b.taken) for b in result.branches] == [
        ('(and (!= kind "event") (>= y 3))', True),
        ("pinned", False),
    ]


def test_null_and_words_have_no_terms() -> None:
    nothing = explained("(+ x y)", x=None)
    assert (nothing.value, nothing.terms, nothing.branches) == (None, (), ())
    label = Signature("label", INPUTS, "str")
    policy = compile_policy('(fn [pinned] (if pinned "keep" "drop"))', label)
    assert policy.explain({"pinned": None}).value == "drop"
    assert policy.explain({"pinned": None}).terms == ()


def test_a_term_that_doubles_at_every_level_is_expanded_once() -> None:
    lets = " ".join(f"a{i + 1} (+ a{i} a{i})" for i in range(90))
    result = explained(f"(let [a0 (* x y) {lets}] a90)")
    assert [(t.text, t.value) for t in result.terms] == [
        ("(* 1.2379400392853803e+27 (* x y))", 6.0 * 2.0**90)
    ]


def test_a_shortened_text_is_short_and_says_so() -> None:
    lets = " ".join(f"a{i + 1} (exp (+ a{i} (* a{i} y)))" for i in range(30))
    (term,) = explained(f"(let [a0 x {lets}] a30)").terms
    assert "..." in term.text
    assert len(term.text) <= LIMIT


@pytest.mark.long
def test_the_largest_policy_is_explained_at_once() -> None:
    """A bound against hanging, not a benchmark: 1,900 operations, each of which uses the two before it twice."""
    lines = [f"a{i} (+ (* a{i - 1} a{i - 2}) (- a{i - 1} a{i - 2}))" for i in range(2, 45)]
    result = explained(f"(let [a0 x a1 y {' '.join(lines)}] a44)", x=0.3, y=0.4)
    assert sum(t.value for t in result.terms) == pytest.approx(result.value)
    assert len(repr(result.tree).splitlines()) < 70
    assert result.tree.frame.height < 400


def test_aggregates_come_from_the_slate() -> None:
    import polars as pl

    policy = compile_policy("(fn [x y] (+ (* 0.5 (min-max x)) y))", SLOT)
    frame = pl.DataFrame({"x": [1.0, 3.0, 2.0], "y": [0.0, 0.0, 1.0], "memory_id": [1, 2, 3]})
    result = policy.aggregates(frame)
    explanation = policy.explain(frame.row(2, named=True), aggregates=result.row(2, named=True))
    assert {t.text: t.value for t in explanation.terms} == {"(* 0.5 (min-max x))": 0.25, "y": 1.0}
