"""How two policies differ: what changed in their canonical print, and nothing that is only spelling."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import HealthCheck, given
from properties import examples

from memlab.kernel.language import (
    Input,
    Policy,
    Signature,
    compile_policy,
    read_pack,
)
from memlab.kernel.language.reader import Text, read_forms
from memlab.kernel.policies import load_pack
from memlab.subjects.lens import diff_packs, diff_policies
from memlab.subjects.lens.diff import FormDiff, print_definition
from tests.displays import html_of
from tests.language.programs import ARGUMENTS, NUM, program

SLOT = Signature(
    "recall-score", [Input("x"), Input("y"), Input("z"), Input("kind", "str")], aggregates=True
)
QUICK = examples(60, quick=8, suppress_health_check=list(HealthCheck))


def policy(source: str, signature: Signature = SLOT, **options) -> Policy:
    return compile_policy(
        source if source.startswith("(fn") else f"(fn [x y z kind] {source})", signature, **options
    )


def diff(before: str, after: str) -> FormDiff:
    return diff_policies(policy(before), policy(after))


def printed(source: str) -> str:
    text = Text(source)
    return print_definition(read_forms(text)[0], text)


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("(+ (* 0.4 x) y)", "(+ (* 0.5 x) y)", [("changed", "0.4", "0.5")]),
        ("(+ x y)", "(+ x y (* 2 z))", [("added", None, "(* 2 z)")]),
        ("(+ x y (* 2 z))", "(+ x y)", [("removed", "(* 2 z)", None)]),
        ("(max (exp x) y)", "(min (exp x) y)", [("changed", "(max)", "(min)")]),
        ("(+ (exp x) 1 y z)", "(+ (log y) 1 y z)", [("changed", "(exp x)", "(log y)")]),
        ("(fn [x] (* 2 x))", "(fn [x y] (* 2 x))", [("added", None, "y")]),
    ],
)
def test_the_changed_parts_are_listed(
    before: str, after: str, changes: list[tuple[str, str | None, str | None]]
) -> None:
    assert [
        (change.kind, change.before, change.after) for change in diff(before, after).changes
    ] == changes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(+ x ; why\n  y)", "(+ x y)"),
        ("(let* ((a 1) (b a)) (* a b x))", "(let [a 1 b a] (* a b x))"),
        ("(cond ((> x 1) 2) (else 3))", "(cond (> x 1) 2 else 3)"),
        ("(case kind ((a b) 1) (else 2))", '(case kind ["a" "b"] 1 else 2)'),
        ("(if (= kind 'fact) x nil)", '(if (== kind "fact") x None)'),
        ("(coalesce (expt x 2) 0)", "(if-null (pow x 2) 0)"),
    ],
)
def test_spelling_and_layout_do_not_count(before: str, after: str) -> None:
    assert not diff(before, after).changes


def test_parameters_helpers_and_slots_of_packs() -> None:
    old = policy("(fn [x] (* (param :w 1) x))")
    (change,) = diff_policies(old, old.with_params({"w": 2})).changes
    assert (change.kind, change.name, change.before, change.after) == ("parameter", "w", "1", "2")
    packs = [
        read_pack(f"(pack p) (defn f [a] (* {n} a)) (defpolicy recall-score [x] (f x))")
        for n in (2, 3)
    ]
    left, right = (
        compile_policy(p.policies["recall-score"], SLOT, helpers=p.helpers) for p in packs
    )
    (change,) = diff_policies(left, right).changes
    assert (change.place, change.kind, change.after) == ("recall-score, helper f", "changed", "3")
    old_pack, new_pack = load_pack("memlab"), load_pack("cascade")
    result = diff_packs(old_pack, new_pack)
    assert {"settings", "recall-score"} <= set(result.frame["place"])
    assert not diff_packs(old_pack, old_pack)
    assert {c.name for c in result.changes if c.kind == "setting"} == {
        name for name in old_pack.settings if old_pack.settings[name] != new_pack.settings[name]
    }
    assert "spread" in html_of(result)


def test_how_it_reads() -> None:
    difference = diff("(fn [x y] (+ (* 0.4 x) y 1 2 3))", "(fn [x y] (+ (* 0.5 x) (tanh y) 1 2 3))")
    assert repr(difference).splitlines()[1:] == [
        "  recall-score:2  ~ 0.4 -> 0.5",
        "  recall-score:2  + (tanh)",
    ]
    assert "(+ (* [-0.4-]{+0.5+} x) {+(tanh+} y{+)+} 1 2 3))" in difference.text()
    assert "\x1b[" not in difference.text()
    assert "0.40.5 x) (tanh y) 1" in re.sub(r"\x1b\[[0-9;]*m", "", difference.text(color=True))


def test_mostly_new_expressions_are_shown_next_to_the_old_ones() -> None:
    difference = diff(
        "(+ (* 0.5 x) (* 0.3 y) (* 0.2 z))",
        '(if (= kind "fact") (sqrt (max 0 z)) (clamp (- 1 (log z)) 0 1))',
    )
    (change,) = difference.changes
    assert (change.kind, change.line) == ("changed", None)
    left, right = difference.text().splitlines()[4].split(" | ")
    assert left.strip() == "(+ (* 0.5 x) (* 0.3 y) (* 0.2 z)))"
    assert right.startswith('  (if (= kind "fact")')
    assert "[-" not in difference.text()
    assert html_of(difference).count("<pre") == 2


def test_html_is_escaped_and_marks_both_sides() -> None:
    page = html_of(diff('(if (= kind "<b>") x y)', '(if (= kind "<i>&") x y)'))
    assert "<b>&" not in page
    assert "&lt;i&gt;&amp;" in page
    assert "<del style" in page
    assert "<ins style" in page


def test_a_terminal_is_not_steered_by_a_source() -> None:
    difference = diff('(if (= kind "a") x y)', '(if (= kind "\x1b[2J") x y)')
    assert "\x1b" not in difference.text()
    assert "\x1b[2J" not in difference.text(color=True)


@pytest.mark.long
@QUICK
@given(program("num", 2, inexact=True), program("num", 2, inexact=True))
def test_the_marked_text_holds_both_prints(before: str, after: str) -> None:
    old, new = (f"(fn [{ARGUMENTS}] {body})" for body in (before, after))
    result = diff_policies(policy(old, NUM), policy(new, NUM))
    assert bool(result) or printed(old) == printed(new)
    for block in result._blocks:
        pieces = list(block.pieces())
        assert "".join(piece.text for piece in pieces if piece.kind != "del") == printed(new)
        older = "".join(piece.text for piece in pieces if piece.kind != "ins")
        assert re.sub(r"\s", "", older) == re.sub(r"\s", "", printed(old))


@pytest.mark.long
@QUICK
@given(program("num", 3, inexact=True))
def test_the_canonical_print_is_the_same_policy_and_its_own_print(body: str) -> None:
    source = f"(fn [{ARGUMENTS}] {body})"
    again = printed(source)
    assert printed(again) == again
    assert policy(again, NUM).meaning_hash == policy(source, NUM).meaning_hash
    assert not diff_policies(policy(source, NUM), policy(again, NUM)).changes


@pytest.mark.long
def test_large_policies_take_bounded_time() -> None:
    def wide(k: int) -> str:
        return " ".join(f"(* {i * k % 97}.5 (- x {i % 13}))" for i in range(80))

    def deep(op: str) -> str:
        return f"({op} x " * 80 + "y" + ")" * 80

    start = time.process_time()
    for before, after in ((f"(+ {wide(1)})", f"(+ {wide(5)})"), (deep("+"), deep("min"))):
        assert diff(before, after)
    assert time.process_time() - start < 3
