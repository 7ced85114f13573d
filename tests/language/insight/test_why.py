"""Why one item stands above another: differences of terms, branches that part, features that differ."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from properties import examples

from memlab.errors import InputError
from memlab.kernel.language import Input, Policy, Signature, compile_policy
from memlab.subjects.lens.explain import FeatureGap, Parting, Why
from tests.displays import html_of
from tests.language.insight.test_tree import Page
from tests.language.programs import ARGUMENTS, NUM, program, rows

SLOT = Signature(
    "score",
    [Input("x"), Input("y"), Input("z"), Input("pinned", "bool"), Input("kind", "str")],
    aggregates=True,
)
A = {"x": 2.0, "y": 3.0, "z": 5.0, "pinned": False, "kind": "fact"}
QUICK = examples(80, quick=8, suppress_health_check=list(HealthCheck))


def why(policy: Policy, a: dict, b: dict, **more: object) -> Why:
    return policy.why(a, b, **more)


def explain_change(body: str, **b: object) -> Why:
    return why(compile_policy(f"(fn [x y z pinned kind] {body})", SLOT), A, {**A, **b})


def test_terms_are_subtracted_side_by_side() -> None:
    result = explain_change("(+ (* 0.5 x) (* 0.1 y) z)", x=6.0, y=1.0)
    assert result.difference == pytest.approx(-1.8)
    assert [(t.text, t.a, t.b, t.branch, t.features) for t in result.terms] == [
        ("(* 0.5 x)", 1.0, 3.0, "both", ("x",)),
        ("(* 0.1 y)", pytest.approx(0.3), 0.1, "both", ("y",)),
    ]
    assert result.features == (FeatureGap("x", 2.0, 6.0), FeatureGap("y", 3.0, 1.0))


def test_the_deciding_terms_are_those_without_which_the_order_changes() -> None:
    result = explain_change("(+ x y)", x=0.0, y=4.0)
    assert [(t.text, t.difference, t.decides) for t in result.terms] == [
        ("x", 2.0, True),
        ("y", -1.0, False),
    ]


def test_branches_that_part_are_named() -> None:
    result = explain_change("(if pinned (+ x 10) (* 2 x))", pinned=True)
    assert result.partings == (Parting("pinned", False, True),)
    assert {(t.text, t.branch): t.difference for t in result.terms} == {
        ("x", "both"): 2.0,
        ("10", "b"): -10.0,
    }


def test_a_term_of_a_single_branch_is_on_one_side() -> None:
    result = explain_change("(if pinned y (* x z))", pinned=True)
    assert [(t.text, t.branch, t.a, t.b) for t in result.terms] == [
        ("(* x z)", "a", 10.0, 0.0),
        ("y", "b", 0.0, 3.0),
    ]


def test_a_choice_of_bare_numbers_is_one_term_of_both() -> None:
    (term,) = explain_change("(+ x (if pinned 0.5 0))", pinned=True).terms
    assert (term.text, term.a, term.b, term.branch) == ("(if pinned 0.5 0)", 0.0, 0.5, "both")


def test_a_default_for_null_is_a_branch() -> None:
    result = explain_change("(+ y (if-null x z))", x=None)
    assert result.partings == (Parting("(null? x)", False, True),)
    assert result.difference == -3.0


def test_a_product_names_the_features_that_differ() -> None:
    (term,) = explain_change("(* x (+ y z))", y=4.0).terms
    assert term.features == ("y",)


def test_equal_items_tie() -> None:
    result = explain_change("(+ x y)")
    assert (result.difference, result.terms, result.partings, result.features) == (0.0, (), (), ())
    assert result.verdict.endswith("a tie")


def test_a_term_without_a_number_is_explained_by_its_difference() -> None:
    result = explain_change("(+ x y)", x=None)
    assert (result.difference, result.terms) == (None, ())
    assert result.features == (FeatureGap("x", 2.0, None),)
    label = compile_policy(
        '(fn [x] (if (> x 3) "keep" "drop"))', Signature("label", [Input("x")], "str")
    )
    reasons = why(label, {"x": 1}, {"x": 9})
    assert reasons.partings == (Parting("(> x 3)", False, True),)
    assert reasons.difference is None


def test_aggregates_of_both_items() -> None:
    import polars as pl

    policy = compile_policy("(fn [x] (min-max x))", SLOT)
    frame = pl.DataFrame({"x": [1.0, 3.0, 2.0], "memory_id": [1, 2, 3]})
    per_row = policy.aggregates(frame).rows(named=True)
    reasons = why(policy, {"x": 3.0}, {"x": 2.0}, aggregates=(per_row[1], per_row[2]))
    assert reasons.difference == 0.5


def test_a_record_is_refused_by_name() -> None:
    slot = Signature("reinforce", [Input("stability")], "record", fields=("stability",))
    policy = compile_policy("(fn [stability] (update :stability (* 2 stability)))", slot)
    with pytest.raises(InputError, match=r"policy\.field\('stability'\)\.why"):
        why(policy, {"stability": 1.0}, {"stability": 2.0})
    assert why(policy.field("stability"), {"stability": 1.0}, {"stability": 2.0}).difference == -2.0


def test_text_frame_and_html() -> None:
    reasons = why(
        compile_policy('(fn [x kind] (+ (* 2 x) (if (= kind "<b>") 3 0)))', SLOT),
        {"x": 2.0, "kind": "fact"},
        {"x": 1.0, "kind": "<b>"},
        names=("memory 1", "memory <2>"),
    )
    assert repr(reasons).splitlines() == [
        "memory 1 has 4 and memory <2> has 5: memory 1 is below by 1",
        "  difference     memory 1   memory <2>   term",
        '     -3.0000       0.0000       3.0000 * (if (= kind "<b>") 3 0)',
        "     +2.0000       4.0000       2.0000   (* 2 x)",
        "* without this term the order would reverse",
        'branches differ at (= kind "<b>"): false | true',
        'features that differ: x 2 | 1, kind "fact" | "<b>"',
    ]
    columns = ["term", "a", "b", "difference", "branch", "features", "decides", "label", "group"]
    assert reasons.frame.columns == columns
    page = Page(html_of(reasons))
    assert page.open == []
    assert "script" not in page.tags
    assert "memory <2>" in page.text


@pytest.mark.long
@QUICK
@given(program("num", 3, inexact=True), rows)
def test_terms_sum_to_the_difference_of_values(body: str, table: list[dict]) -> None:
    policy = compile_policy(f"(fn [{ARGUMENTS}] {body})", NUM)
    a, b = table[0], table[-1]
    reasons = why(policy, a, b)
    if policy.row(a) is None or policy.row(b) is None:
        assert (reasons.difference, reasons.terms) == (None, ())
        return
    assert reasons.difference is not None
    sides = [x for t in reasons.terms for x in (t.a, t.b)]
    if math.isfinite(reasons.difference) and np.isfinite(sides).all():
        scale = max([abs(policy.row(a)), abs(policy.row(b)), *map(abs, sides)], default=0.0)
        total = sum(t.difference for t in reasons.terms)
        assert np.isclose(total, reasons.difference, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.long
@QUICK
@given(program("num", 3, inexact=True), rows)
def test_the_other_way_round_is_the_negative(body: str, table: list[dict]) -> None:
    policy = compile_policy(f"(fn [{ARGUMENTS}] {body})", NUM)
    one, other = why(policy, table[0], table[-1]), why(policy, table[-1], table[0])
    assert {(t.text, t.difference) for t in one.terms if t.difference == t.difference} == {
        (t.text, -t.difference) for t in other.terms if t.difference == t.difference
    }
    assert len(one.partings) == len(other.partings)
